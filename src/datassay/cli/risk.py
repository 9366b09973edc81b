"""``datassay risk``: who can be found in what was released, and what gives them away."""

from pathlib import Path
from typing import Annotated, Any

import typer

from datassay._choices import Weighing
from datassay._errors import UsageError
from datassay.cli.options import (
    CategoricalOption,
    CheckpointOption,
    DaskOption,
    FailIfOption,
    JobsOption,
    JsonOption,
    QuietOption,
    check_conditions,
    check_jobs,
    check_written,
    column_list,
    complete_file,
    conclude,
    draw,
    folder_for,
    on_cluster,
    shows_progress,
)


def risk(
    original: Annotated[
        str, typer.Argument(help="The original table: a CSV or Parquet file.", autocompletion=complete_file)
    ],
    released: Annotated[
        str, typer.Argument(help="What is released of it: a CSV or Parquet file.", autocompletion=complete_file)
    ],
    columns: Annotated[
        str, typer.Option("--columns", "-c", help="Attributes, separated by commas; all if left out.")
    ] = "",
    id: Annotated[
        str | None,
        typer.Option("--id", help="Column that identifies a person in both files (datassay release --with-ids)."),
    ] = None,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="No released record is anybody's own: everyone is at risk.")
    ] = False,
    control: Annotated[str | None, typer.Option(help="File of people who are in neither: what chance scores.")] = None,
    scenarios: Annotated[
        Weighing, typer.Option(help="What attackers know: each number of attributes, or each set, as likely.")
    ] = "uniform",
    known: Annotated[
        list[str] | None,
        typer.Option(help="What a named attacker knows instead: neighbour=age,sex. May be repeated."),
    ] = None,
    query: Annotated[
        list[str] | None, typer.Option(help='Score a recorded filter as an attack: "age = 34". May be repeated.')
    ] = None,
    people: Annotated[int | None, typer.Option(help="Attack this many people, drawn at random.", min=1)] = None,
    permutations: Annotated[int, typer.Option(help="Random orders of the attributes for each person.")] = 50,
    neighbours: Annotated[int | None, typer.Option(help="Neighbours that say what is near (2%).")] = None,
    shapley: Annotated[bool, typer.Option("--shapley", help="Also tell which attributes give people away.")] = False,
    categorical: CategoricalOption = "",
    seed: Annotated[int, typer.Option(help="Seed of the orders and of the people drawn.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write each person's risk: .parquet, .csv, .json.")
    ] = None,
    shapley_output: Annotated[
        Path | None, typer.Option(help="Write each person's values by attribute: .parquet, .csv, .json.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the distribution of risk: .svg, .png, .pdf.")] = None,
    plot_shapley: Annotated[Path | None, typer.Option(help="Draw which attributes give people away.")] = None,
    top: Annotated[int, typer.Option(help="How many people to list.", min=0)] = 5,
    jobs: JobsOption = -1,
    dask: DaskOption = None,
    checkpoint: CheckpointOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """How likely it is that people are found in a release: linkability, information gain, risk; beside guessing.

    An attacker who knows some attributes of a person singles out the nearest released records; the risk says how
    linkable these are to the person and how much they tell of the rest, on average over what attackers may know.

    Examples:
      datassay risk original.csv released.csv --id person -o risk.parquet --plot risk.svg

      datassay risk original.csv synthetic.csv --synthetic --known neighbour=age,sex --known marketer=zip,income

      datassay risk original.csv released.csv --query "age = 34 AND zip = '27601'"
    """
    import datassay as da

    conditions = check_conditions(fail_if)
    check_written([output, shapley_output], [plot, plot_shapley], [], [original, released, control])
    check_jobs(jobs)
    if known and scenarios != "uniform":
        raise UsageError("--known names the scenarios: leave out --scenarios")
    words = column_list(categorical)
    here = da.read_table(original, id=id, categorical=words, text="categorical")
    there = da.read_table(released, id=None if synthetic else id, like=here, text="categorical")
    common: dict[str, Any] = {
        "columns": column_list(columns) or None, "neighbours": neighbours, "synthetic": synthetic,
    }  # fmt: skip
    run: dict[str, Any] = {
        **common, "people": people, "permutations": permutations, "seed": seed, "n_jobs": jobs,
        "progress": shows_progress(quiet),
    }  # fmt: skip
    outside = None if control is None else da.read_table(control, like=here, text="categorical")
    wanted = shapley or shapley_output is not None or plot_shapley is not None
    values = None
    with on_cluster(dask):
        found = da.reidentification_risk(
            here,
            there,
            scenarios=_named(known) if known else scenarios,
            control=outside,
            checkpoint=folder_for(checkpoint, "risk"),
            **run,
        )
        if wanted:
            values = da.reidentification_shapley(here, there, checkpoint=folder_for(checkpoint, "shapley"), **run)
    asked = da.score_queries(here, there, query, **common) if query else None
    if output is not None:
        found.save(output)
    draw(found.plot, plot)
    if values is not None:
        if shapley_output is not None:
            values.save(shapley_output)
        draw(values.plot, plot_shapley, 7, 0.35 * len(values.columns) + 1.2)
    facts, said, notes = found.facts(), [found.summary(top)], list(found.notes)
    for told in (values, asked):
        if told is not None:
            facts, said, notes = told.facts() | facts, [*said, f"\n{told.summary()}"], [*notes, *told.notes]
    conclude(
        "risk",
        facts,
        said,
        notes,
        [output, shapley_output, plot, plot_shapley],
        quiet=quiet,
        as_json=as_json,
        conditions=conditions,
    )


def _named(given: list[str]) -> dict[str, list[str]]:
    """neighbour=age,sex as the library takes it."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, attributes = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--known takes NAME=ATTRIBUTES, such as neighbour=age,sex; got {text!r}")
        found[name.strip()] = column_list(attributes)
    return found
