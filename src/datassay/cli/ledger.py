"""``datassay ledger``: look into the record of private releases."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datassay._errors import InputError
from datassay.cli.options import (
    FailIfOption,
    JsonOption,
    QuietOption,
    as_text,
    check_conditions,
    conclude,
    refuse_inputs,
)

if TYPE_CHECKING:
    from datassay.privacy import Ledger

app = typer.Typer(
    help="""Look into a ledger of private releases: what was spent, on what, and what is left.

    Examples:
      datassay ledger show market.ledger

      datassay ledger export market.ledger -o ledger.json
    """,
    no_args_is_help=True,
)

LedgerFile = Annotated[Path, typer.Argument(help="The ledger's file.")]


def _existing(path: Path) -> "Ledger":
    from datassay.privacy import Ledger

    if not path.exists():
        raise InputError(f"there is no ledger {str(path)!r}")
    return Ledger(path)


@app.command()
def show(
    ledger: LedgerFile, quiet: QuietOption = False, as_json: JsonOption = False, fail_if: FailIfOption = None
) -> None:
    """Show the budget and every release of a ledger.

    What was paid for is spent, whether it was delivered or not.

    Examples:
      datassay ledger show market.ledger

      datassay ledger show market.ledger --fail-if "left_epsilon < 0.5"
    """
    conditions = check_conditions(fail_if)
    book = _existing(ledger)
    conclude("ledger show", book.facts(), _told(book), [], [], quiet=quiet, as_json=as_json, conditions=conditions)


def _told(book: "Ledger") -> list[str]:
    """The ledger line by line, as a table."""
    from rich.table import Table

    from datassay.privacy import total_epsilon

    spent = book.spent()
    said = [
        f"Budget ε = {book.epsilon:g} at δ = {book.delta:g} ({book.relation}); spent ε = {spent:.4g}, "
        f"left {max(0.0, book.epsilon - spent):.4g}."
    ]
    lines, disclosed = book.releases(), book.disclosures()
    if not lines:
        return [*said, "Nothing was released yet."]
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
    said.append(as_text(table))
    if any(line.costs for line in lines):
        said.append("Costs compose: together they are less than the sum of each alone.")
    if disclosed:
        said.append(
            "A disclosure costs what its record most asked for has spent; disclosures of one data set add up record by "
            "record, those of different ones as they are."
        )
    return said


@app.command()
def export(
    ledger: LedgerFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here; to the terminal if left out.")
    ] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """Write a ledger as JSON, for an auditor: budget, costs and what was published, without any secret.

    Without --output it goes to the terminal, as it is.

    Examples:
      datassay ledger export market.ledger -o market.json
    """
    from datassay.results import write_whole

    conditions = check_conditions(fail_if)
    refuse_inputs([output], [str(ledger)])
    book = _existing(ledger)
    text = json.dumps(book.to_dict(), indent=1, ensure_ascii=False)

    def write(file: Path) -> None:
        file.write_text(f"{text}\n", encoding="utf-8")

    notes = []
    if output is not None:
        write_whole(output, write)
    elif as_json:  # two documents would be one too many
        notes.append("the ledger itself was not written: name a file for it with --output")
    else:
        typer.echo(text)
    conclude("ledger export", book.facts(), [], notes, [output], quiet=quiet, as_json=as_json, conditions=conditions)
