"""``datassay unique``: which attributes identify people, whom, and what coarsening them would change."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datassay._errors import InputError
from datassay.cli.options import (
    CategoricalOption,
    JobsOption,
    QuietOption,
    check_jobs,
    column_list,
    draw,
    refuse_inputs,
)

if TYPE_CHECKING:
    from datassay.identity import AttributeTable

EXAMPLES = """
Examples:

  datassay unique people.csv --columns zip,race,age --by county --coarsen age=5 -o unique.parquet

  datassay unique voters --coarsen zip=county --key --pairs --plot people.svg
"""


class Missing(StrEnum):
    """What a missing value is."""

    VALUE = "value"
    EXCLUDE = "exclude"


def unique(
    data: Annotated[str, typer.Argument(help="A CSV or Parquet file, or the name of a data set (datassay datasets).")],
    columns: Annotated[
        str, typer.Option("--columns", "-c", help="Attributes, separated by commas; all columns if left out.")
    ] = "",
    by: Annotated[str, typer.Option(help="Columns to group people by, separated by commas.")] = "",
    coarsen: Annotated[
        list[str] | None,
        typer.Option(
            help="Make an attribute coarser: age=5 (bins of 5; of categories, the first 5 characters), age=18,65 (cut "
            "points), zip=county (another column), race= (one bucket). May be repeated."
        ),
    ] = None,
    drop: Annotated[str, typer.Option(help="Attributes whose dropping is to be looked at, separated by commas.")] = "",
    key: Annotated[bool, typer.Option("--key", help="Also look at what a database key would change.")] = False,
    pairs: Annotated[bool, typer.Option("--pairs", help="Also tell how pairs of attributes interact.")] = False,
    missing: Annotated[
        Missing, typer.Option(help="A missing value is a value of its own, or its row is left out.")
    ] = Missing.VALUE,
    weights: Annotated[str | None, typer.Option(help="Column with the number of people a row stands for.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="Column that identifies a row.")] = None,
    categorical: CategoricalOption = "",
    sampled: Annotated[
        bool, typer.Option("--sampled", help="Estimate from random orders of the attributes (always beyond 20).")
    ] = False,
    permutations: Annotated[int | None, typer.Option(help="Sampling: how many orders.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Sampling: until means are known to ± this many bits.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Sampling: until this time is over.")] = None,
    confidence: Annotated[float, typer.Option(help="Sampling: probability that an interval covers.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Sampling: seed of the orders.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the bits of each person: .parquet, .csv, .json.")
    ] = None,
    by_output: Annotated[
        Path | None, typer.Option(help="Write the table by group (the first column of --by): .parquet, .csv, .json.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a stacked bar for each person: .svg, .png, .pdf.")] = None,
    plot_means: Annotated[Path | None, typer.Option(help="Draw attributes beside their entropies.")] = None,
    plot_by: Annotated[Path | None, typer.Option(help="Draw group against group (the first column of --by).")] = None,
    plot_changes: Annotated[Path | None, typer.Option(help="Draw the effect of coarsening, dropping, a key.")] = None,
    top: Annotated[int, typer.Option(help="How many people to list.", min=0)] = 5,
    jobs: JobsOption = -1,
    memory: Annotated[int, typer.Option(help="MiB to use; larger files are counted on disk.", min=64)] = 4096,
    quiet: QuietOption = False,
) -> None:
    """Which attributes identify people: bits for each person, attribute and group, and what coarsening would change.

    An attribute's bits are its uniqueness Shapley value: what it adds on average, over all orders of revealing
    attributes, to log2 of how many people are ruled out. One bit halves the crowd a person can hide in.
    """
    import datassay as da
    from datassay import results

    groups = column_list(by)
    for file in (output, by_output):
        if file is not None:
            results.check_output(file)
    figures = (plot, plot_means, plot_by, plot_changes)
    for figure in figures:
        if figure is not None:
            results.check_figure(figure)
    refuse_inputs([output, by_output, *figures], [data])
    check_jobs(jobs)
    if not groups and (by_output or plot_by):
        raise InputError(f"{'--by-output' if by_output else '--plot-by'} needs --by: the column to group people by")
    changed = _coarsenings(coarsen or [])
    table, reading = _source(data)
    if reading:
        reading = {"id": id, "categorical": column_list(categorical), "carry": groups}
    elif id or categorical:
        raise InputError(f"{data} is a data set and read already: leave out --id and --categorical")
    found = da.uniqueness_shapley(
        table,
        column_list(columns) or None,
        coarsen=changed,
        missing=missing.value,
        weights=weights,
        method="sampled" if sampled else None,
        permutations=permutations,
        tolerance=tolerance,
        seconds=seconds,
        confidence=confidence,
        seed=seed,
        n_jobs=jobs,
        memory=memory * 2**20,
        progress=not quiet and sys.stderr.isatty(),
        **reading,
    )
    tables = [found.by(name) for name in groups]
    changes = _changes(found, changed, column_list(drop), key)
    if plot_changes is not None and changes is None:
        raise InputError("--plot-changes needs a change to look at: --coarsen, --drop or --key")
    interactions = found.interactions() if pairs else None
    if output is not None:
        found.save(output)
    if by_output is not None:
        tables[0].save(by_output)
    draw(found.plot, plot, 8, 4)
    draw(found.mean().plot, plot_means, 7, 0.6 * len(found.columns) + 1.2)
    if tables:
        draw(tables[0].plot, plot_by, 7.5, 0.32 * min(len(tables[0]), 30) + 1.6)
    if changes is not None:
        draw(changes.plot, plot_changes, 7.5, 0.32 * len(changes) + 1.6)
    if quiet:
        return
    typer.echo(found.summary(top))
    for shown in (*tables, changes, interactions):
        if shown is not None:
            typer.echo(f"\n{shown.summary(20)}")
    for written in (output, by_output, *figures):
        if written is not None:
            typer.echo(f"Written: {written}")


unique.__doc__ = f"{unique.__doc__}\n{EXAMPLES}"


def _source(data: str) -> tuple[object, dict[str, Any]]:
    """The data set of that name, or the file; and whether it is still to be read."""
    from datassay.data import list_datasets, load_dataset

    path = Path(data)
    if data in {info.name for info in list_datasets()} and not path.is_file():
        return load_dataset(data, text="categorical"), {}
    return path, {"read": True}


def _coarsenings(given: list[str]) -> dict[str, Any]:
    """age=5, age=18,65, zip=county and race= as the library takes them."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, how = (part.strip() for part in text.rpartition("="))
        if not equals or not name:
            raise InputError(f"--coarsen takes ATTRIBUTE=HOW, such as age=5 or zip=county; got {text!r}")
        if name in found:
            raise InputError(f"--coarsen names {name!r} twice")
        found[name] = _how(how)
    return found


def _how(text: str) -> Any:
    if not text:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        return text
    if len(numbers) > 1:
        return numbers
    return int(numbers[0]) if numbers[0].is_integer() else numbers[0]


def _changes(found: Any, changed: dict[str, Any], drop: list[str], key: bool) -> "AttributeTable | None":
    """What dropping, a key and the coarsening asked for change; what cannot be left as it is has no such row."""
    undone = {}
    for name in changed:
        try:
            found.compare(coarsen={name: "as it is"})
        except InputError:
            continue
        undone[name] = "as it is"
    if not (undone or drop or key):
        return None
    table: AttributeTable = found.compare(coarsen=undone, drop=drop, key=key)
    return table
