"""``datassay datasets``: what can be loaded by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from datassay._errors import UsageError
from datassay.cli.command import Ending, Outcome, check_files, command, listing, option
from datassay.cli.inputs import complete_dataset

if TYPE_CHECKING:
    from datassay.data import Table
    from datassay.results import Fact


@command("datasets")
def datasets(
    name: Annotated[
        str | None, Argument(help="Describe this one; without it, list all.", autocompletion=complete_dataset)
    ] = None,
    n: int | None = option("Number of records, for simulated ones.", "-n", "--rows"),
    seed: int | None = option("Seed, for simulated ones."),
    output: Path | None = option("Write its records here: .csv, .parquet or .json.", "--output", "-o"),
    *,
    ending: Ending,
) -> Outcome:
    """List the data sets that can be loaded by name, describe one, or write it to a file.

    A name can be given wherever a command takes a file.

    Examples:
      datassay datasets

      datassay datasets census -n 1000 -o census.csv
    """
    from datassay.data import list_datasets, load_dataset

    facts: dict[str, Fact]
    if name is None:
        if output is not None or n is not None or seed is not None:
            raise UsageError("name the data set to write, such as: datassay datasets census -o census.csv")
        every = list_datasets()
        facts = {"datasets": len(every)} | {f"source.{info.name}": info.source for info in every}
        rows = [(one.name, one.source, one.description) for one in every]
        return Outcome(facts, [listing("name", "from", "what it holds", rows=rows)])
    check_files([name], [output])
    table = load_dataset(name, n=n, seed=seed)
    said = _described(table)
    if output is not None:
        table.save(output)
        if table.label is not None:
            aside = f" --ignore {','.join(table.carried)}" if table.carried else ""
            said.append(f"Value it: datassay value {output} --label {table.label} --id {table.id_column}{aside}")
    return Outcome(table.facts(), said, table.notes, [output])


def _described(table: "Table") -> list[str]:
    lines = [f"{table.name}: {len(table):,} records"]
    for name, column in table.columns.items():
        role = "label" if name == table.label else "not a feature" if name in table.carried else "feature"
        values = "" if column.categories is None else f", {len(column.categories)} values"
        missing = int(column.missing.sum())
        lines.append(f"  {name}: {column.kind}{values}, {role}" + (f", {missing:,} missing" if missing else ""))
    return lines
