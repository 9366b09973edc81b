"""``datassay unique``: which attributes identify people, whom, and what coarsening them would change."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from datassay._choices import MissingValues
from datassay._errors import UsageError
from datassay.cli.options import (
    CategoricalOption,
    DataArgument,
    FailIfOption,
    JobsOption,
    JsonOption,
    QuietOption,
    check_conditions,
    check_jobs,
    check_written,
    column_list,
    conclude,
    draw,
    shows_progress,
)


def unique(
    data: DataArgument,
    columns: Annotated[
        str, typer.Option("--columns", "-c", help="Attributes, separated by commas; all columns if left out.")
    ] = "",
    by: Annotated[
        list[str] | None,
        typer.Option(help="Column to group people by, as it is (county) or coarser (age=10). May be repeated."),
    ] = None,
    coarsen: Annotated[
        list[str] | None,
        typer.Option(
            help="Make an attribute coarser: age=5 (bins of 5; of categories, the first 5 characters), age=18,65 (cut "
            "points), birth=year (or month), zip=county (another column), race= (one bucket). All numbers are then "
            "of the coarser attributes; a table compares them with those as they are. May be repeated."
        ),
    ] = None,
    drop: Annotated[str, typer.Option(help="Attributes whose dropping is to be looked at, separated by commas.")] = "",
    key: Annotated[bool, typer.Option("--key", help="Also look at what a database key would change.")] = False,
    pairs: Annotated[bool, typer.Option("--pairs", help="Also tell how pairs of attributes interact.")] = False,
    missing: Annotated[
        MissingValues, typer.Option(help="A missing value is a value of its own, or its row is left out.")
    ] = "value",
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
    tables: Annotated[
        Path | None,
        typer.Option(help="Write all tables into a new folder, as CSV: means, sets, groups, changes, pairs, by_….csv."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a stacked bar for each person: .svg, .png, .pdf.")] = None,
    plot_means: Annotated[Path | None, typer.Option(help="Draw attributes beside their entropies.")] = None,
    plot_by: Annotated[Path | None, typer.Option(help="Draw group against group (the first column of --by).")] = None,
    plot_changes: Annotated[Path | None, typer.Option(help="Draw the effect of coarsening, dropping, a key.")] = None,
    top: Annotated[int, typer.Option(help="How many people to list.", min=0)] = 5,
    jobs: JobsOption = -1,
    memory: Annotated[int, typer.Option(help="MiB to use; larger files are counted on disk.", min=64)] = 4096,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """Which attributes identify people: bits for each person, attribute and group, and what coarsening would change.

    An attribute's bits are its uniqueness Shapley value: what it adds on average, over all orders of revealing
    attributes, to log2 of how many people are ruled out. One bit halves the crowd a person can hide in.

    Examples:
      datassay unique people.csv --columns zip,race,age --by county --coarsen age=5 -o unique.parquet

      datassay unique voters --coarsen zip=county --key --pairs --plot people.svg
    """
    import datassay as da
    from datassay import results

    conditions = check_conditions(fail_if)
    grouping = _coarsenings("--by", by or [], plain=True)
    if tables is not None:
        results.check_new_folder(tables)
    figures = [plot, plot_means, plot_by, plot_changes]
    check_written([output], figures, [tables], [data])
    check_jobs(jobs)
    if plot_by is not None and not grouping:
        raise UsageError("--plot-by needs --by: the column to group people by")
    changed = _coarsenings("--coarsen", coarsen or [])
    if plot_changes is not None and not (changed or drop or key):
        raise UsageError("--plot-changes needs a change to look at: --coarsen, --drop or --key")
    path = Path(data)
    if data in {info.name for info in da.list_datasets()} and not path.is_file():
        if id or categorical:
            raise UsageError(f"{data} is a data set and read already: leave out --id and --categorical")
        table: object = da.load_dataset(data, text="categorical")
        reading: dict[str, Any] = {}
    else:
        table, reading = path, {"id": id, "categorical": column_list(categorical), "carry": list(grouping)}
    found = da.uniqueness_shapley(
        table,
        column_list(columns) or None,
        coarsen=changed,
        missing=missing,
        weights=weights,
        method="sampled" if sampled else None,
        permutations=permutations,
        tolerance=tolerance,
        seconds=seconds,
        confidence=confidence,
        seed=seed,
        n_jobs=jobs,
        memory=memory * 2**20,
        progress=shows_progress(quiet),
        **reading,
    )
    grouped = {name: found.by(name, how) for name, how in grouping.items()}
    changes = found.changes(column_list(drop), key) if changed or drop or key else None
    shown: dict[str, Any] = {f"by_{name}": told for name, told in grouped.items()}
    shown |= {"changes": changes} if changes is not None else {}
    shown |= {"pairs": found.interactions()} if pairs else {}
    groups = found.groups()
    if output is not None:
        found.save(output)
    if tables is not None:
        _save_tables(tables, {"means": found.mean(), "groups": groups, **shown})
    draw(found.plot, plot, 9, 4)
    draw(found.mean().plot, plot_means, 7, min(12, 0.45 * len(found.columns) + 1.2))
    if grouped:
        first = next(iter(grouped.values()))
        draw(first.plot, plot_by, 8, 0.32 * min(len(first), 30) + 1.6)
    if changes is not None:
        draw(changes.plot, plot_changes, 8, 0.32 * len(changes) + 1.6)
    facts = found.facts() | groups.facts()
    said = [found.summary(top), f"\n{replace(groups, notes=()).summary(0)}"]
    for told in shown.values():
        facts |= told.facts()
        notes = tuple(note for note in told.notes if note not in found.notes)
        said.append(f"\n{replace(told, notes=notes).summary(20)}")
    conclude(
        "unique",
        facts,
        said,
        [note for one in (found, groups, *shown.values()) for note in one.notes],
        [output, tables, *figures],
        quiet=quiet,
        as_json=as_json,
        conditions=conditions,
    )


def _coarsenings(option: str, given: list[str], plain: bool = False) -> dict[str, Any]:
    """age=5, age=18,65, zip=county and race= as the library takes them; ``plain`` names are taken as they are."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, how = (part.strip() for part in text.rpartition("="))
        if not equals and plain:
            name = how
        elif not equals or not name:
            raise UsageError(f"{option} takes ATTRIBUTE=HOW, such as age=5 or zip=county; got {text!r}")
        if name in found:
            raise UsageError(f"{option} names {name!r} twice")
        found[name] = _how(how) if equals else "as it is"
    return found


def _save_tables(folder: Path, tables: dict[str, Any]) -> None:
    """All tables as CSV files in a folder that appears whole or not at all."""
    import re

    from datassay.results import write_folder

    def write(made: Path) -> None:
        for name, table in tables.items():
            plain = re.sub(r"[^\w.-]+", "_", name)
            table.save(made / f"{plain}.csv")

    write_folder(folder, write)


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
