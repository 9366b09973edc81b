"""``datassay datasets``: what can be loaded by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datassay._errors import UsageError
from datassay.cli.options import (
    FailIfOption,
    JsonOption,
    QuietOption,
    as_text,
    check_conditions,
    check_written,
    complete_dataset,
    conclude,
)

if TYPE_CHECKING:
    from datassay.data import Table
    from datassay.results import Fact


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(help="Describe this one; without it, list all.", autocompletion=complete_dataset),
    ] = None,
    n: Annotated[int | None, typer.Option("-n", "--rows", help="Number of records, for simulated ones.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed, for simulated ones.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write its records here: .csv, .parquet or .json.")
    ] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """List the data sets that can be loaded by name, describe one, or write it to a file.

    A name can be given wherever a command takes a file.

    Examples:
      datassay datasets

      datassay datasets census -n 1000 -o census.csv
    """
    from datassay.data import list_datasets, load_dataset

    conditions = check_conditions(fail_if)
    facts: dict[str, Fact]
    if name is None:
        if output is not None or n is not None or seed is not None:
            raise UsageError("name the data set to write, such as: datassay datasets census -o census.csv")
        every = list_datasets()
        facts = {"datasets": len(every)} | {f"source.{info.name}": info.source for info in every}
        said = [_listing([(info.name, info.source, info.description) for info in every])]
        notes: tuple[str, ...] = ()
    else:
        check_written([output], [], [], [name])
        table = load_dataset(name, n=n, seed=seed)
        facts, said, notes = table.facts(), _described(table), table.notes
        if output is not None:
            table.save(output)
            if table.label is not None:
                aside = f" --ignore {','.join(table.carried)}" if table.carried else ""
                told = f"datassay value {output} --label {table.label} --id {table.id_column}{aside}"
                said.append(f"Value it: {told}")
    conclude("datasets", facts, said, notes, [output], quiet=quiet, as_json=as_json, conditions=conditions)


def _listing(rows: list[tuple[str, ...]]) -> str:
    from rich.table import Table as Listing

    listing = Listing("name", "from", "what it holds", box=None)
    for row in rows:
        listing.add_row(*row)
    return as_text(listing)


def _described(table: "Table") -> list[str]:
    lines = [f"{table.name}: {len(table):,} records"]
    for name, column in table.columns.items():
        role = "label" if name == table.label else "not a feature" if name in table.carried else "feature"
        values = "" if column.categories is None else f", {len(column.categories)} values"
        missing = int(column.missing.sum())
        lines.append(f"  {name}: {column.kind}{values}, {role}" + (f", {missing:,} missing" if missing else ""))
    return lines
