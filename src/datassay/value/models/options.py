"""What can be asked of every value by a model: which utility, how many coalitions, and when to stop."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from typing_extensions import TypeAliasType

from datassay import _checks
from datassay._run import Client, Fits, Threads
from datassay.data import Ids

Scorer = Callable[[Any, Any, Any], float]
Scoring = TypeAliasType("Scoring", str | Scorer | None)
Groups = TypeAliasType("Groups", str | Ids)
OnFailure = Literal["empty", "raise"]


class Utility(Fits, total=False):
    """What a coalition of records is worth.

    Parameters
    ----------
    scoring
        A name of scikit-learn's (``"accuracy"``, ``"neg_log_loss"``, ``"r2"`` …), ``"clipped_log_loss"`` (minus the
        log loss, no worse than guessing), or a function of (model, X, y). Left out: accuracy for classifiers, R² for
        regressors.
    groups
        One owner for each record (or the name of a column that the Table sets aside): values of owners instead.
    empty
        What no data is worth; by default the score of guessing.
    on_failure
        What a coalition is worth to which the model cannot be fitted (one class, say) or whose score is not a number:
        as much as no data (``"empty"``; they are counted), or ``"raise"`` an error.
    fast
        Fit binary logistic regression by our own solver: the same minimum, many times faster.
    seed
        Draws are made from it. Results are the same for any number of workers.
    ids
        Ids of the training records; 0, 1, … or the frame's index or the table's ids if left out.
    """

    scoring: Scoring
    groups: Groups | None
    empty: float | None
    on_failure: OnFailure
    fast: bool
    seed: int
    ids: Ids | None


class Intervals(Utility, total=False):
    """How sure values are.

    Parameters
    ----------
    confidence
        Of the interval of one record.
    """

    confidence: float


class Sampled(Intervals, total=False):
    """How many coalitions are drawn.

    Parameters
    ----------
    max_coalitions, max_seconds, max_width
        Stop after so many coalitions (10,000 if none of the three is given), so much time, or when every interval is
        narrower than this.
    """

    max_coalitions: int | None
    max_seconds: float | None
    max_width: float | None


class Bags(Threads, total=False):
    """How bags of records are drawn and models fitted to them; each option is as in :class:`Sampled`."""

    groups: Groups | None
    max_seconds: float | None
    max_width: float | None
    confidence: float
    on_failure: OnFailure
    seed: int
    ids: Ids | None
    client: Client | None


@dataclass(frozen=True)
class Stopping:
    """When to stop, and how to run."""

    max_coalitions: int | None = None
    max_seconds: float | None = None
    max_width: float | None = None
    confidence: float = 0.95
    seed: int = 0
    by_default: bool = False
    run: Fits = field(default_factory=Fits)

    @classmethod
    def of(cls, given: Utility, default: int | None = None) -> "Stopping":
        """Those of the options that are about this, checked; ``default`` coalitions where nothing else ends it."""
        asked = cast(Sampled, given)
        most, seconds, width = asked.get("max_coalitions"), asked.get("max_seconds"), asked.get("max_width")
        by_default = default is not None and most is None and seconds is None and width is None
        return cls(
            default if by_default else None if most is None else _checks.integer("max_coalitions", most, at_least=1),
            None if seconds is None else _checks.number("max_seconds", seconds, above=0),
            None if width is None else _checks.number("max_width", width, above=0),
            _checks.number("confidence", asked.get("confidence", 0.95), above=0, below=1),
            _checks.integer("seed", asked.get("seed", 0), at_least=0),
            by_default,
            cast(Fits, given),
        )
