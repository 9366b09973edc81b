"""``datassay report``: one command, the whole answer."""

from pathlib import Path
from typing import Annotated

import typer

from datassay._errors import InputError
from datassay.cli.options import (
    CategoricalOption,
    DataArgument,
    FailIfOption,
    IgnoreOption,
    JobsOption,
    JsonOption,
    LabelOption,
    MemoryOption,
    QuietOption,
    check_conditions,
    check_jobs,
    column_list,
    conclude,
    nothing_printed,
    refuse_inputs,
    shows_progress,
)


def report(
    data: DataArgument,
    label: LabelOption = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the page here: .html; a .json with all of it goes beside it.")
    ] = Path("report.html"),
    quasi_identifiers: Annotated[
        str, typer.Option(help="What an attacker could know of a person, separated by commas; all columns if left out.")
    ] = "",
    epsilon: Annotated[float, typer.Option(help="ε of private values.")] = 1.0,
    delta: Annotated[
        float | None, typer.Option(help="δ of private values; 0.1 divided by the number of records, at most 0.00001.")
    ] = None,
    validation: Annotated[
        Path | None, typer.Option(help="File to value the records by, and to stand for the public ones.")
    ] = None,
    strategies: Annotated[
        str, typer.Option(help="Ways to release the data to compare, such as k=8,remove=0.25,copula.")
    ] = "",
    truth: Annotated[
        str | None, typer.Option(help="True/false column that marks faulty records: how well are they found?")
    ] = None,
    sections: Annotated[
        str, typer.Option(help="Only these, with commas: worth, leaks, found, release, told, trade.")
    ] = "",
    show_rows: Annotated[
        bool, typer.Option("--show-rows", help="Show the rows of the records listed. Without it, none is shown.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A first look: smaller samples, fewer strategies.")] = False,
    most: Annotated[
        int | None,
        typer.Option(help="Of more records than this, draw so many wherever pairs are looked at (60000; quick 5000)."),
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="Number of neighbours.", min=1)] = 5,
    balance: Annotated[
        float | None, typer.Option(help="How much larger classes count in values, the smallest being 1.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Column that identifies a row.")] = None,
    ignore: IgnoreOption = "",
    categorical: CategoricalOption = "",
    seed: Annotated[int, typer.Option(help="Seed of all draws (private noise has none).", min=0)] = 0,
    jobs: JobsOption = -1,
    memory: MemoryOption = 512,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """Write one page that says what the data is worth, what it leaks, who can be found, what to release and to tell.

    The page is complete in itself: no network, no scripts. It shows no row of the table unless asked to. A JSON file of
    the same name holds all of its numbers, and those of every record.

    Examples:
      datassay report people.csv --label income -o report.html

      datassay report people.csv --label income --id person --quasi-identifiers age,zip,sex --epsilon 0.5

      datassay report people.csv --quick --json --fail-if "share_unique > 0.1"
    """
    import datassay as da
    from datassay.report import check_page

    conditions = check_conditions(fail_if)
    check_page(output)
    beside = output.with_suffix(".json")
    refuse_inputs([output, beside], [data, None if validation is None else str(validation)])
    check_jobs(jobs)
    with nothing_printed():
        made = da.report(
            data,
            label,
            id=id,
            ignore=column_list(ignore),
            categorical=column_list(categorical),
            validation=validation,
            quasi_identifiers=column_list(quasi_identifiers) or None,
            epsilon=epsilon,
            delta=delta,
            strategies=column_list(strategies) or None,
            truth=truth,
            k=k,
            balance=balance,
            sections=column_list(sections) or None,
            show_rows=show_rows,
            quick=quick,
            most=most,
            seed=seed,
            n_jobs=jobs,
            memory=memory * 2**20,
            progress=shows_progress(quiet),
        )
    if all(section.left_out for section in made.sections):
        why = dict.fromkeys(section.left_out.rstrip(".") for section in made.sections)
        raise InputError(f"no question about {made.name} could be answered, and no page is written. {'; '.join(why)}")
    made.save(output)
    conclude(
        "report",
        made.facts(),
        [made.summary()],
        made.notes,
        [output, beside],
        quiet=quiet,
        as_json=as_json,
        conditions=conditions,
    )
