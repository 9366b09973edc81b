"""``datassay unique``: which attributes identify people, whom, and what coarsening them would change."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from datassay._choices import Calculation, MissingValues
from datassay._errors import UsageError
from datassay.cli.command import Options, Outcome, check_files, command, given, option, save
from datassay.cli.inputs import Categorical, Data, Id, Threads, column_list, to_bytes


class Sampling(Options):
    """How many orders of the attributes are drawn, where not all are visited."""

    seed: int = option("Sampling: seed of the orders.", default=0)
    permutations: int | None = option("Sampling: how many orders.")
    tolerance: float | None = option("Sampling: until means are known to ± this many bits.")
    seconds: float | None = option("Sampling: until this time is over.")
    confidence: float | None = option("Sampling: chance that an interval covers ({uniqueness_shapley.confidence}).")


class Counting(Threads):
    """How many threads count, and in how much memory."""

    memory: int | None = option(
        "MiB to use; larger files are counted on disk ({uniqueness_shapley.memory}).", min=64, callback=to_bytes
    )


@command("unique")
def unique(
    data: Data,
    columns: str = option("Attributes, separated by commas; all columns if left out.", "--columns", "-c", default=""),
    by: list[str] | None = option("Column to group people by, as it is (county) or coarser (age=10). May be repeated."),
    coarsen: list[str] | None = option(
        "Make an attribute coarser: age=5 (bins of 5; of categories, the first 5 characters), age=18,65 (cut "
        "points), birth=year (or month), zip=county (another column), race= (one bucket). All numbers are then "
        "of the coarser attributes; a table compares them with those as they are. May be repeated."
    ),
    drop: str = option("Attributes whose dropping is to be looked at, separated by commas.", default=""),
    key: bool = option("Also look at what a database key would change."),
    pairs: bool = option("Also tell how pairs of attributes interact."),
    missing: MissingValues | None = option(
        "A missing value is a value of its own, or its row is left out ({uniqueness_shapley.missing})."
    ),
    weights: str | None = option("Column with the number of people a row stands for."),
    id: Id = None,
    categorical: Categorical = "",
    sampled: bool = option("Estimate from random orders of the attributes (always beyond 20)."),
    *,
    sampling: Sampling,
    output: Path | None = option("Write the bits of each person: .parquet, .csv, .json.", "--output", "-o"),
    tables: Path | None = option(
        "Write all tables into a new folder, as CSV: means, sets, groups, changes, pairs, by_….csv."
    ),
    plot: Path | None = option("Draw a stacked bar for each person: .svg, .png, .pdf."),
    plot_means: Path | None = option("Draw attributes beside their entropies."),
    plot_by: Path | None = option("Draw group against group (the first column of --by)."),
    plot_changes: Path | None = option("Draw the effect of coarsening, dropping, a key."),
    top: int = option("How many people to list.", default=5, min=0),
    run: Counting,
) -> Outcome:
    """Which attributes identify people: bits for each person, attribute and group, and what coarsening would change.

    An attribute's bits are its uniqueness Shapley value: what it adds on average, over all orders of revealing
    attributes, to log2 of how many people are ruled out. One bit halves the crowd a person can hide in.

    Examples:
      datassay unique people.csv --columns zip,race,age --by county --coarsen age=5 -o unique.parquet

      datassay unique voters --coarsen zip=county --key --pairs --plot people.svg
    """
    import datassay as da
    from datassay import results

    grouping = _coarsenings("--by", by or [], plain=True)
    if tables is not None:
        results.check_new_folder(tables)
    figures = [plot, plot_means, plot_by, plot_changes]
    check_files([data], [output], figures, [tables])
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
    how = reading | given(missing=missing) | sampling.given() | run.arguments()
    method: Calculation | None = "sampled" if sampled else None
    found = da.uniqueness_shapley(
        table, column_list(columns) or None, coarsen=changed, weights=weights, method=method, **how
    )
    grouped = {name: found.by(name, steps) for name, steps in grouping.items()}
    changes = found.changes(column_list(drop), key) if changed or drop or key else None
    shown: dict[str, Any] = {f"by_{name}": table for name, table in grouped.items()}
    shown |= given(changes=changes, pairs=found.interactions() if pairs else None)
    groups = found.groups()
    save(found, output, plot, 9, 4)
    if tables is not None:
        _save_tables(tables, {"means": found.mean(), "groups": groups, **shown})
    save(found.mean(), None, plot_means, 7, min(12, 0.45 * len(found.columns) + 1.2))
    if grouped:
        first = next(iter(grouped.values()))
        save(first, None, plot_by, 8, 0.32 * min(len(first), 30) + 1.6)
    if changes is not None:
        save(changes, None, plot_changes, 8, 0.32 * len(changes) + 1.6)
    facts = found.facts() | groups.facts()
    said = [found.summary(top), f"\n{replace(groups, notes=()).summary(0)}"]
    for one in shown.values():
        facts |= one.facts()
        new = tuple(note for note in one.notes if note not in found.notes)
        said.append(f"\n{replace(one, notes=new).summary(20)}")
    notes = [note for one in (found, groups, *shown.values()) for note in one.notes]
    return Outcome(facts, said, notes, [output, tables, *figures])


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
