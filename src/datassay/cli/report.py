"""``datassay report``: one command, the whole answer."""

import sys
from pathlib import Path
from typing import Any

from datassay._errors import InputError
from datassay.cli.command import Options, Outcome, command, option, refuse_inputs
from datassay.cli.inputs import Blocks, Columns, Data, Label, column_list, nothing_printed


class Questions(Options):
    """What the report is to say, and how it finds out."""

    quasi_identifiers: str = option(
        "What an attacker could know of a person, separated by commas; all columns if left out.", default=""
    )
    epsilon: float | None = option("ε of private values ({report.epsilon}).")
    delta: float | None = option("δ of private values; 0.1 divided by the number of records, at most 0.00001.")
    validation: Path | None = option("File to value the records by, and to stand for the public ones.")
    strategies: str = option("Ways to release the data to compare, such as k=8,remove=0.25,copula.", default="")
    truth: str | None = option("True/false column that marks faulty records: how well are they found?")
    sections: str = option("Only these, with commas: worth, leaks, found, release, told, trade.", default="")
    show_rows: bool = option("Show the rows of the records listed. Without it, none is shown.")
    quick: bool = option("A first look: smaller samples, fewer strategies.")
    most: int | None = option(
        "Of more records, draw so many wherever pairs are looked at ({MOST_PAIRED}; quick {MOST_PAIRED_QUICKLY})."
    )
    k: int | None = option("Number of neighbours ({report.k}).", "--k", "-k", min=1)
    balance: float | None = option("How much larger classes count in values, the smallest being 1.")

    def arguments(self) -> dict[str, Any]:
        """The questions as the library takes them."""
        lists = self.given("quasi_identifiers", "strategies", "sections")
        return self.given() | {name: column_list(text) or None for name, text in lists.items()}


@command("report")
def report(
    data: Data,
    label: Label = None,
    output: Path = option(
        "Write the page here: .html; a .json with all of it beside it.", "--output", "-o", default=Path("report.html")
    ),
    *,
    asked: Questions,
    reading: Columns,
    seed: int = option("Seed of all draws (private noise has none).", default=0, min=0),
    run: Blocks,
) -> Outcome:
    """Write one page that says what the data is worth, what it leaks, who can be found, what to release and to tell.

    The page is complete in itself: no network, no scripts. It shows no row of the table unless asked to. A JSON file of
    the same name holds all of its numbers, and those of every record.

    Examples:
      datassay report people.csv --label income -o report.html

      datassay report people.csv --label income --id person --quasi-identifiers age,zip,sex --epsilon 0.5

      datassay report people.csv --quick --json --fail-if "share_unique > 0.1"
    """
    import datassay as da
    from datassay._work import Pace
    from datassay.report import check_page

    check_page(output)
    beside = output.with_suffix(".json")
    refuse_inputs([output, beside], [data, asked.validation])
    with nothing_printed():
        made = da.report(
            data, label, id=reading.id, seed=seed, **reading.arguments(), **asked.arguments(),
            **run.arguments() | {"progress": None if run.quiet else Pace(run.jobs, bar=sys.stderr.isatty())},
        )  # fmt: skip
    if all(section.left_out for section in made.sections):
        why = dict.fromkeys(section.left_out.rstrip(".") for section in made.sections)
        raise InputError(f"no question about {made.name} could be answered, and no page is written. {'; '.join(why)}")
    made.save(output)
    return Outcome(made.facts(), [made.summary()], made.notes, [output, beside])
