"""``datassay ledger``: look into the record of private releases."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument

from datassay._choices import AnyRelation
from datassay._errors import InputError, UsageError
from datassay.cli.command import Ending, Options, Outcome, as_text, command, option, refuse_inputs

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


class Budget(Options):
    """The ledger to pay from, and the budget of a new one."""

    ledger: Path | None = option("Ledger to ask before noise is drawn; made if new, with --budget-epsilon.")
    budget_epsilon: float | None = option("Budget ε of a new ledger.")
    budget_delta: float | None = option("Budget δ of a new ledger; --delta if left out.")

    def open(self, promised: float, relation: AnyRelation) -> "Ledger | None":
        """The ledger, if one is named; ``promised`` is the δ of a new one that is given none.

        A new one is made when it is first paid from: a command that fails before that leaves no ledger behind. One that
        fails after it leaves it there: others may be spending from it.
        """
        from datassay import _checks
        from datassay.privacy import Ledger

        path, epsilon, delta = self.ledger, self.budget_epsilon, self.budget_delta
        if path is None:
            if epsilon is not None or delta is not None:
                raise UsageError("a budget is that of a ledger: name it with --ledger")
            return None
        if epsilon is not None:
            epsilon = _checks.number("--budget-epsilon", epsilon, above=0)
        if delta is not None:
            delta = _checks.number("--budget-delta", delta, above=0, below=1)
        if not path.exists():
            if epsilon is None:
                raise UsageError(
                    f"there is no ledger {str(path)!r}; to make one, give its budget with --budget-epsilon"
                )
            return Ledger.planned(path, epsilon, promised if delta is None else delta, relation)
        ledger = Ledger(path, relation=relation)
        for name, given, kept in (("epsilon", epsilon, ledger.epsilon), ("delta", delta, ledger.delta)):
            if given is not None and given != kept:
                raise UsageError(
                    f"--budget-{name} {given:g}: the ledger {str(path)!r} has a budget of {name}={kept!r}, and a "
                    "budget is never changed"
                )
        return ledger


LedgerFile = Annotated[Path, Argument(help="The ledger's file.")]


def _existing(path: Path) -> "Ledger":
    from datassay.privacy import Ledger

    if not path.exists():
        raise InputError(f"there is no ledger {str(path)!r}")
    return Ledger(path)


@command("ledger show", app)
def show(ledger: LedgerFile, ending: Ending) -> Outcome:
    """Show the budget and every release of a ledger.

    What was paid for is spent, whether it was delivered or not.

    Examples:
      datassay ledger show market.ledger

      datassay ledger show market.ledger --fail-if "left_epsilon < 0.5"
    """
    book = _existing(ledger)
    return Outcome(book.facts(), _line_by_line(book))


def _line_by_line(book: "Ledger") -> list[str]:
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


@command("ledger export", app)
def export(
    ledger: LedgerFile,
    output: Path | None = option("Write here; to the terminal if left out.", "--output", "-o"),
    *,
    ending: Ending,
) -> Outcome:
    """Write a ledger as JSON, for an auditor: budget, costs and what was published, without any secret.

    Without --output it goes to the terminal, as it is.

    Examples:
      datassay ledger export market.ledger -o market.json
    """
    from datassay.results import write_whole

    refuse_inputs([output], [ledger])
    book = _existing(ledger)
    text = json.dumps(book.to_dict(), indent=1, ensure_ascii=False)
    notes = []
    if output is not None:
        write_whole(output, lambda file: file.write_text(f"{text}\n", encoding="utf-8"))
    elif ending.as_json:  # two documents would be one too many
        notes.append("the ledger itself was not written: name a file for it with --output")
    else:
        typer.echo(text)
    return Outcome(book.facts(), [], notes, [output])
