"""``datassay release``: which version of a table may leave, and what does it cost?"""

from pathlib import Path
from typing import Any

from datassay._choices import TextColumns, Weighing
from datassay._errors import UsageError
from datassay.cli.command import Options, Outcome, check_files, command, default, draw, option, save
from datassay.cli.inputs import Columns, Data, Label, Threads, column_list, load_table


class Groups(Options):
    """How k=… makes groups of people who look alike."""

    alike: str = option(
        "For k=…: columns to make alike (quasi-identifiers), separated by commas; all if left out.", default=""
    )
    sensitive: str | None = option("For k=…: a column left as it is, for --l and --t.")
    l: int | None = option("Different sensitive values in each group, at least.")  # noqa: E741
    t: float | None = option("Distance of sensitive values from all people's, at most.")
    relaxed: bool = option("For k=…: people with the same value may be in different groups.")

    def strategy(self, name: str) -> Any:
        """k=8 with what the options say of it; every other strategy by its name."""
        import datassay as da

        word, equals, number = name.partition("=")
        if word.strip() != "k" or not equals or not number.strip().isdigit():
            return name
        options = self.given("sensitive", "l", "t") | {"columns": column_list(self.alike) or None}
        return lambda table: da.release.mondrian(table, int(number), strict=not self.relaxed, **options)


class Attack(Options):
    """How people are searched for in what is released, and how its use is measured."""

    k: int | None = option("Neighbours of the classifier for utility ({compare_releases.k}).", "--k", "-k", min=1)
    people: int | None = option("Attack this many people, drawn at random ({compare_releases.people}).", min=1)
    permutations: int | None = option("Random orders of attributes for each person ({compare_releases.permutations}).")
    scenarios: Weighing | None = option(
        "What attackers know: each number of attributes, or each set, as likely ({compare_releases.scenarios})."
    )


@command("release")
def release(
    data: Data,
    label: Label = None,
    strategies: str | None = option(
        "Separated by commas: keep; k=8 (k-anonymous); remove=0.25 (at random), shapley=0.25, waka=0.25 "
        "(least valuable first); copula, ctgan, tvae: synthetic ({compare_releases.strategies})."
    ),
    *,
    groups: Groups,
    reading: Columns,
    text: TextColumns = option("What to do with text columns.", default="categorical"),
    search: Attack,
    individuals: bool = option("Also tell what each strategy does to people by their value."),
    write: str | None = option("Apply this one strategy to the whole table, and write it."),
    to: Path | None = option("Where to write it: .parquet, .csv, .json; sorted, without ids."),
    with_ids: bool = option("Write ids and ignored columns, too: to keep, not to hand out."),
    seed: int = option("Seed of splits, draws and orders.", default=0),
    output: Path | None = option("Write the comparison: .parquet, .csv, .json.", "--output", "-o"),
    plot: Path | None = option("Draw utility against safety: .svg, .png, .pdf."),
    plot_risks: Path | None = option("Draw the risk of people as boxes: .svg, .png, .pdf."),
    run: Threads,
) -> Outcome:
    """Strategies side by side: the risk that each leaves, how like the original it is, what can be learned from it.

    The table is split 70 : 15 : 15; strategies are applied to the 70, value-guided ones look at the first 15, and
    utility is measured on the last. The strategy you then choose is applied to the whole table with --write and --to.

    Examples:
      datassay release people.csv --label income --strategies k=2,k=8,k=32,remove=0.25,copula -o comparison.csv

      datassay release people.csv --label income --id person --strategies keep,k=8 --write k=8 --to released.csv

      datassay release people.csv --label income --alike age,zip,sex --sensitive illness --l 2 --strategies k=5,k=20
    """
    import datassay as da

    check_files([data], [output, to], [plot, plot_risks])
    if (write is None) != (to is None):
        raise UsageError("--write names the strategy and --to the file: give both")
    table = load_table(data, label, reading.id, reading.arguments() | {"text": text})
    compared = default("compare_releases", "strategies") if strategies is None else column_list(strategies)
    ways = {name: groups.strategy(name) for name in compared}
    how: dict[str, Any] = search.given() | run.arguments()
    found = da.compare_releases(table, strategies=ways, individuals=individuals, seed=seed, **how)
    made = None
    if write is not None:
        made = da.release.make_release(groups.strategy(write), table, seed=seed, **search.given("k"))
    save(found, output, plot, 7, 5)
    draw(found.plot_risks, plot_risks, 7, 0.4 * len(found) + 1.2)
    if made is not None and to is not None:
        made.save(to, ids=with_ids)
    said = [found.summary()]
    if individuals:
        said.append("\nWhat each strategy does to people, by their value:")
        for name, numbers in found.individuals().items():
            said.append(f"  {name}: " + ", ".join(f"{what} {number:.3g}" for what, number in numbers.items()))
    notes = [*found.notes, *(() if made is None else made.notes)]
    return Outcome(found.facts(), said, notes, [output, to, plot, plot_risks])
