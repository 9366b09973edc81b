"""``datassay datasets``: what can be loaded by name."""

from pathlib import Path
from typing import Annotated

import typer

from datassay._errors import InputError
from datassay.cli.options import refuse_inputs


def datasets(
    name: Annotated[str | None, typer.Argument(help="Describe this one; without it, list all.")] = None,
    n: Annotated[int | None, typer.Option("-n", "--rows", help="Number of records, for simulated ones.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed, for simulated ones.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write its records here: .csv, .parquet or .json.")
    ] = None,
) -> None:
    """List the data sets that can be loaded by name, describe one, or write it to a file.

    Examples:
      datassay datasets

      datassay datasets census -n 1000 -o census.csv
    """
    from rich.console import Console
    from rich.table import Table

    from datassay import results
    from datassay.data import list_datasets, load_dataset

    if name is None:
        if output is not None:
            raise InputError("name the data set to write, such as: datassay datasets census -o census.csv")
        listing = Table("name", "from", "what it holds", box=None)
        for info in list_datasets():
            listing.add_row(info.name, info.source, info.description)
        Console().print(listing)
        return
    if output is not None:
        results.check_output(output)
        refuse_inputs([output], [name])
    table = load_dataset(name, n=n, seed=seed)
    typer.echo(f"{table.name}: {len(table):,} records")
    for column_name, column in table.columns.items():
        role = (
            "label" if column_name == table.label else ("not a feature" if column_name in table.carried else "feature")
        )
        kind = column.kind
        if column.categories is not None:
            kind = f"categorical, {len(column.categories)} values"  # type: ignore[assignment]
        missing = int(column.missing.sum())
        typer.echo(f"  {column_name}: {kind}, {role}" + (f", {missing:,} missing" if missing else ""))
    if output is not None:
        table.save(output)
        typer.echo(f"Written: {output}")
        if table.label is not None:
            aside = f" --ignore {','.join(table.carried)}" if table.carried else ""
            typer.echo(f"Value it: datassay value {output} --label {table.label} --id {table.id_column}{aside}")
