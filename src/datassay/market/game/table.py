"""Where a disclosure game is played, its trajectory, how it can end, and what is kept if it is cut short."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay.market.game.result import REACHED, TRACKED
from datassay.market.game.setup import GameRules, GameSetup
from datassay.market.moving import MovingNeighbours
from datassay.market.owner import DataOwner, Floats, Ints, RehearsingOwner
from datassay.market.pricing import gini
from datassay.privacy import BudgetExceededError

SPENT, LIMIT, STOPPED, NOTHING = "budget spent", "query limit reached", "strategy stopped", "no budget"
REFUSED, UNAVAILABLE, INTERRUPTED = "ledger refused", "ledger unavailable", "interrupted"
FAILED, BROKEN = "strategy failed", "stopped by an error"


@dataclass(frozen=True, eq=False)
class GameTable:
    """Where a game is played: by whom, by which rules, for how many queries at most; and its trajectory so far."""

    setup: GameSetup
    rules: GameRules
    owner: DataOwner
    target: float
    worth: Floats | None
    model: MovingNeighbours
    whole: int
    rows: list[tuple[float, ...]] = field(default_factory=list)

    def track(self, step: int, received: Ints, utility: float, scores: Floats | None) -> None:
        """Write down where the game is, once a step."""
        if self.rows and self.rows[-1][0] == step:
            return
        queries = self.owner.queries
        total = int(queries.sum())
        error = agree = math.nan
        if self.worth is not None:
            seen = received > 0
            if seen.any():
                error = float(np.sqrt(((self.model.centres - self.setup.points)[seen] ** 2).sum(axis=1)).mean())
            if scores is not None and np.isfinite(scores).all() and np.ptp(scores) > 0 and np.ptp(self.worth) > 0:
                from scipy.stats import spearmanr

                agree = float(spearmanr(scores, self.worth).statistic)
        self.rows.append((step, total, self.setup.epsilon * total, utility, gini(queries), agree, error))

    def trajectory(self) -> dict[str, Floats]:
        """The rows as columns."""
        return dict(zip(TRACKED, np.array(self.rows, np.float64).T, strict=True))

    def opening(self) -> str:
        """How the game ends before it begins, if it does."""
        if self.rules.t_max == 0:
            return NOTHING
        return REACHED if self.model.utility >= self.target else ""

    def cut(
        self, error: BaseException, received: Ints, blame: tuple[str, int] | None = None
    ) -> tuple[str, tuple[str, ...]]:
        """How a game ends that was cut short, and why; the error is raised if nothing was received, or in a rehearsal.

        ``blame`` is the strategy whose error it is, and its move.
        """
        held, paid = int(received.sum()), int(self.owner.queries.sum())
        stopped = isinstance(error, KeyboardInterrupt)
        if not held or (isinstance(self.owner, RehearsingOwner) and not stopped):
            raise error
        if stopped:
            outcome, why = INTERRUPTED, ""
        elif error is self.owner.trouble:
            outcome, why = REFUSED if isinstance(error, BudgetExceededError) else UNAVAILABLE, error_in_words(error)
        elif blame is not None:
            name, move = blame
            what = error_in_words(error).removeprefix(blame_on(name, move))
            outcome, why = FAILED, f"strategy {name} failed at move {move}: {what}"
        else:
            outcome, why = BROKEN, f"after {paid:,} queries: {error_in_words(error)}"
        lost = f"{paid - held:,} cop{'y was' if paid - held == 1 else 'ies were'} paid for and lost when the game ended"
        return outcome, (*(why,) * bool(why), *(lost,) * (paid > held))


@dataclass(frozen=True, eq=False)
class GameEnd:
    """How a game ended."""

    table: GameTable
    received: Ints
    used: NDArray[np.bool_]
    scores: Floats
    utility: float
    outcome: str
    notes: tuple[str, ...] = ()


def error_in_words(error: BaseException) -> str:
    """An error in words: what datassay says itself needs no name of a class."""
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__} {error}".strip()


def blame_on(name: str, move: int) -> str:
    """What an error begins with that is a strategy's own."""
    return f"strategy {name}, move {move}: "
