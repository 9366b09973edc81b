"""Published tables, done again: each reproduction puts our number beside the published one.

Register one with ``@reproduction``; ``datassay reproduce`` lists and runs them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datassay import _checks
from datassay._errors import UsageError
from datassay.results import Fact, as_facts

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Cell:
    """One number of a published table and ours; ``published`` is None where there is none to compare with.

    ``spread`` is the published standard deviation, for numbers that come out differently each time; numbers that are
    there to look at are not ``judged``.
    """

    row: str
    column: str
    ours: float
    published: float | None = None
    spread: float | None = None
    judged: bool = True

    def agrees(self, digits: int = 3) -> bool:
        """Whether the two are within two published standard deviations, or else equal when rounded."""
        if self.published is None:
            return False
        if self.spread is not None:
            return abs(self.ours - self.published) <= 2 * self.spread + 1e-9
        return round(self.ours, digits) == round(self.published, digits)


@dataclass(frozen=True)
class Redone:
    """What came out: the numbers, what they say, whether the published result holds, and a figure if there is one."""

    cells: Sequence[Cell]
    finding: str
    holds: bool
    draw: "Callable[[Axes], Axes] | None" = None


@dataclass(frozen=True)
class Reproduction(Redone):
    """A published result, redone."""

    name: str = ""
    title: str = ""

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``holds``, whether the published result does; ``compared``, numbers judged against a published one, and
        ``agree`` of them; ``ours.ROW.COLUMN`` and, where there is one, ``published.ROW.COLUMN``.
        """
        judged = [cell for cell in self.cells if cell.published is not None and cell.judged]
        found: dict[str, object] = {
            "holds": self.holds, "compared": len(judged), "agree": sum(cell.agrees() for cell in judged),
        }  # fmt: skip
        for cell in self.cells:
            found[f"ours.{cell.row}.{cell.column}"] = cell.ours
            if cell.published is not None:
                found[f"published.{cell.row}.{cell.column}"] = cell.published
        return as_facts(found)


@dataclass(frozen=True)
class _Entry:
    title: str
    run: Callable[[], Redone]


REPRODUCTIONS: dict[str, _Entry] = {}


def reproduction(name: str, title: str) -> Callable[[Callable[[], Redone]], Callable[[], Redone]]:
    """Register a reproduction under a name."""

    def register(run: Callable[[], Redone]) -> Callable[[], Redone]:
        REPRODUCTIONS[name] = _Entry(title, run)
        return run

    return register


def row(name: str, ours: Mapping[str, float], published: Iterable[float | None], judged: bool = False) -> list[Cell]:
    """A row of a table: our numbers by column, each beside the published one."""
    both = zip(ours.items(), published, strict=True)
    return [Cell(name, column, float(one), number, judged=judged) for (column, one), number in both]


def answered(claims: Mapping[str, bool]) -> str:
    """Each claim with the answer that came out: "risk falls with k: yes"."""
    return "; ".join(f"{claim}: {'yes' if holds else 'NO'}" for claim, holds in claims.items())


def list_reproductions() -> dict[str, str]:
    """Names and titles of what can be reproduced.

    >>> "tknn-detection" in list_reproductions()
    True
    """
    return {name: entry.title for name, entry in REPRODUCTIONS.items()}


def reproduce(name: str) -> Reproduction:
    """Redo a published result by name; see :func:`list_reproductions`."""
    if name not in REPRODUCTIONS:
        close = _checks.closest(name, REPRODUCTIONS)
        hint = f"did you mean {close!r}? There" if close else "there"
        raise UsageError(f"there is no reproduction {name!r}; {hint} are {', '.join(REPRODUCTIONS)}")
    entry = REPRODUCTIONS[name]
    redone = entry.run()
    return Reproduction(redone.cells, redone.finding, redone.holds, redone.draw, name, entry.title)
