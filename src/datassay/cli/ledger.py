"""``datassay ledger``: look into the record of private releases."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datassay._errors import InputError

if TYPE_CHECKING:
    from datassay.privacy import Ledger

app = typer.Typer(
    help="Look into a ledger of private releases: what was spent, on what, and what is left.", no_args_is_help=True
)

LedgerFile = Annotated[Path, typer.Argument(help="The ledger's file.")]


def _existing(path: Path) -> "Ledger":
    from datassay.privacy import Ledger

    if not path.exists():
        raise InputError(f"there is no ledger {str(path)!r}")
    return Ledger(path)


@app.command()
def show(ledger: LedgerFile) -> None:
    """Show the budget and every release of a ledger.

    Example:
      datassay ledger show market.ledger
    """
    from rich.console import Console
    from rich.table import Table

    from datassay.privacy import total_epsilon

    book = _existing(ledger)
    spent = book.spent()
    console = Console()
    console.print(
        f"Budget ε = {book.epsilon:g} at δ = {book.delta:g} ({book.neighbours}); spent ε = {spent:.4g}, "
        f"left {max(0.0, book.epsilon - spent):.4g}.",
        highlight=False,
    )
    lines, disclosed = book.releases(), book.disclosures()
    if not lines:
        console.print("Nothing was released yet.")
        return
    table = Table("no.", "paid (UTC)", "ε alone", "what", "for", "data", "state", box=None, pad_edge=False)
    numbers = {name: at for at, name in enumerate(dict.fromkeys(line.dataset for line in lines), start=1)}
    for line in lines:
        alone, what = total_epsilon(line.costs, book.delta), line.mechanism
        if line.number in disclosed:
            told = disclosed[line.number]
            alone = told.most
            what += f" ({told.queries:,} queries of {told.records:,} records, ε = {told.total:.6g} in all)"
        table.add_row(
            str(line.number),
            line.spent.replace("+00:00", "").replace("T", " "),
            f"{alone:.4g}",
            what,
            line.audience,
            f"no. {numbers[line.dataset]}",
            "released" if line.released else "paid, never delivered" if alone > 0 else "open, nothing paid",
        )
    console.print(table, highlight=False)
    if any(line.costs for line in lines):
        console.print("Costs compose: together they are less than the sum of each alone.", highlight=False)
    if disclosed:
        console.print(
            "A disclosure costs what its record most asked for has spent; disclosures of one data set add up record by "
            "record, those of different ones as they are.",
            highlight=False,
        )


@app.command()
def export(
    ledger: LedgerFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here; to the terminal if left out.")
    ] = None,
) -> None:
    """Write a ledger as JSON, for an auditor: budget, costs and what was published, without any secret.

    Example:
      datassay ledger export market.ledger -o market.json
    """
    from datassay.cli.options import refuse_inputs
    from datassay.results import write_whole

    text = json.dumps(_existing(ledger).to_dict(), indent=1, ensure_ascii=False)
    if output is None:
        typer.echo(text)
        return
    refuse_inputs([output], [str(ledger)])

    def write(file: Path) -> None:
        file.write_text(f"{text}\n", encoding="utf-8")

    write_whole(output, write)
    typer.echo(f"Written: {output}")
