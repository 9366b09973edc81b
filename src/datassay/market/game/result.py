"""How a disclosure game went, for the owner; and what the consumer may see of it."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Trajectory
from datassay._errors import InputError
from datassay._run import Schedule
from datassay._version import __version__
from datassay.data import Encoder, Labels, Points, Table, as_labels
from datassay.market.figures import draw_spending, draw_trajectory
from datassay.market.moving import knn_utility
from datassay.market.pricing import gini
from datassay.neighbors import as_floats
from datassay.privacy import Guarantee, NoisyRecords
from datassay.results import (
    Axes,
    Columns,
    Fact,
    Floats,
    Frame,
    FrameKind,
    Parameter,
    PerRecord,
    as_facts,
    axes_on,
    make_frame,
)

Ints = NDArray[np.int64]
UNCERTIFIED: Final = "not certified:"
REACHED: Final = "target reached"
TRACKED: Final = ("step", "queries", "budget", "utility", "gini", "spearman", "error")


@dataclass(frozen=True, eq=False)
class Disclosure(PerRecord):
    """How a disclosure game went.

    Attributes
    ----------
    values, ids, labels
        What was spent on each record, in ε a feature; their ids and labels.
    queries, received, centres, used
        How often each record was queried (and charged), how many of these copies arrived (all but those lost when the
        game was cut short), their mean (zeros if none), and whether the consumer's model holds it.
    scores
        The consumer's scores in the end: the bandit's Q, or values of the centres; not a number without any.
    worth
        True k-NN Shapley values. For the owner only, as are ``spearman`` and ``error`` of the trajectory and
        ``full_utility``: they are computed from the records as they are. :meth:`for_consumer` leaves them out.
    trajectory
        Columns ``step``, ``queries``, ``budget`` (ε a feature, of all queries together), ``utility``, ``gini`` of
        spending, ``spearman`` of scores with worth, ``error`` (mean distance of the centres of queried records from the
        records), as the game went.
    outcome
        How it ended: ``target reached``, ``budget spent``, ``query limit reached``, ``strategy stopped``,
        ``no budget``, ``ledger refused`` (a query beyond the ledger's budget), ``interrupted``; or for a game for real,
        which keeps what was received, ``ledger unavailable`` (busy, or not to be read), ``strategy failed`` or
        ``stopped by an error``. The notes say which.
    target, utility, full_utility
        What the consumer wanted, what it got, and what it would have got from the records as they are.
    epsilon, t_max, query_cost, mechanism
        ε a feature (the mean, if they differ), queries a record, the cost of a query (Σ ε over features), and the
        noise: bounds and ε of every feature.
    guarantee
        The promise for T_max queries of every record, whatever the consumer does. Not certified for a rehearsal.
    strategy, parameters, seed, notes, version
        How the game was played. A game with a seed is a rehearsal.
    """

    COLUMNS: ClassVar = {
        "id": "ids",
        "label": "labels",
        "spent": "values",
        "queries": "queries",
        "received": "received",
        "used": "used",
        "score": "scores",
        "worth": "worth",
    }
    ASIDE: ClassVar = ("centres",)

    values: Floats
    ids: NDArray[np.generic]
    labels: NDArray[np.generic]
    queries: Ints
    received: Ints
    centres: Floats
    used: NDArray[np.bool_]
    scores: Floats
    worth: Floats
    trajectory: Mapping[str, Floats]
    outcome: str
    target: float
    utility: float
    full_utility: float
    epsilon: float
    t_max: int
    query_cost: float
    mechanism: NoisyRecords
    guarantee: Guarantee
    strategy: str
    parameters: Mapping[str, Parameter]
    seed: int | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__
    encoder: Encoder | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        track = {name: np.array(self.trajectory[name], np.float64) for name in TRACKED}
        object.__setattr__(self, "trajectory", track)
        super().__post_init__()

    def __repr__(self) -> str:
        return f"Disclosure({len(self):,} records by {self.strategy}: {self.outcome} at utility {self.utility:.4f})"

    @property
    def reached(self) -> bool:
        """Whether the consumer got what it wanted."""
        return self.outcome == REACHED

    @property
    def n_queries(self) -> int:
        """Queries made."""
        return int(self.queries.sum())

    @property
    def budget(self) -> float:
        """What the consumer spent: ε a feature × queries."""
        return self.epsilon * self.n_queries

    @property
    def gini(self) -> float:
        """Gini coefficient of spending over all records."""
        return gini(self.queries)

    @property
    def inclusiveness(self) -> float:
        """The share of records that were queried at all."""
        return float((self.queries > 0).mean())

    def score(self, X: Points, y: Labels | None = None, *, n_jobs: int | None = None) -> float:
        """Utility of the consumer's model (the centres in use) on other points, a test set say."""
        points, labels = self.as_played(X, y)
        classes, codes = np.unique(np.concatenate([self.labels, labels]), return_inverse=True)
        here, theirs, held = codes[: len(self)], codes[len(self) :], self.centres[self.used]
        how: Any = {name: self.parameters[name] for name in ("k", "metric", "utility")}
        run = Schedule(n_jobs, here=True)
        return knn_utility(held, here[self.used], points, theirs, len(classes), run=run, **how)

    def as_played(self, X: Points, y: Labels | None = None) -> tuple[Floats, NDArray[np.generic]]:
        """Features of records in the form in which the game had them, tables encoded as its own were; and labels."""
        if isinstance(X, Table):
            if self.encoder is None:
                raise InputError("this game was played on plain numbers: give X as numbers")
            y = X.labels if y is None else y
            X, _ = self.encoder.transform(X)
        points, labels = np.asarray(as_floats("X", X), np.float64), as_labels("y", y)
        if len(points) != len(labels):
            raise InputError(f"y has {len(labels)} labels for the {len(points)} rows of X")
        if len(labels) and (labels.dtype.kind == "U") != (self.labels.dtype.kind == "U"):
            raise InputError(
                f"the labels of the game and y are of different types: {self.labels[0].item()!r} and "
                f"{labels[0].item()!r}; make them both strings or both whole numbers"
            )
        if points.shape[1] != self.centres.shape[1]:
            raise InputError(f"X has {points.shape[1]} features and the records have {self.centres.shape[1]}")
        return points, labels

    def for_consumer(self) -> "Disclosure":
        """The same game without what only the owner may see: whatever was computed from the records themselves.

        Only of a game whose guarantee is certified: a rehearsal's seed would give the noise away, and bounds or a
        target taken from the records tell about them.
        """
        if not self.guarantee.certified:
            reasons = "; ".join(note.removeprefix(UNCERTIFIED).strip() for note in self.notes if UNCERTIFIED in note)
            raise InputError(f"there is nothing in this game that the consumer may see: {reasons}")
        blank = np.full(len(self.trajectory["step"]), math.nan)
        seen = {name: blank if name in ("spearman", "error") else track for name, track in self.trajectory.items()}
        nothing = np.full(len(self), math.nan)
        return replace(self, worth=nothing, trajectory=seen, full_utility=math.nan, notes=())  # notes tell of records

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name; for the owner.

        ``records``, ``outcome``, ``reached``; ``utility``, ``target`` and ``full_utility``; ``queries``, ``budget``,
        ``gini``, ``inclusiveness``; ``query_cost`` and ``most_spent``, what a query costs and what the record most
        asked for has spent, over all features; ``epsilon``, ``delta`` and ``certified`` of the guarantee; ``error`` of
        the centres and ``spearman`` of scores in the end, None where they are not known.
        """
        last = {name: self.trajectory[name][-1] for name in ("error", "spearman")}
        return as_facts(
            {
                "records": len(self), "outcome": self.outcome, "reached": self.reached, "utility": self.utility,
                "target": self.target, "full_utility": self.full_utility, "queries": self.n_queries,
                "budget": self.budget, "gini": self.gini, "inclusiveness": self.inclusiveness,
                "query_cost": self.query_cost, "most_spent": self.queries.max(initial=0) * self.query_cost,
                "epsilon": self.guarantee.epsilon, "delta": self.guarantee.delta,
                "certified": self.guarantee.certified, **last,
            }
        )  # fmt: skip

    def summary(self) -> str:
        """How the game went, in words."""
        given = {n: f"{v:.6g}" if isinstance(v, float) else v for n, v in self.parameters.items() if v is not None}
        settings = ", ".join(f"{name}={value}" for name, value in given.items())
        most = int(self.queries.max(initial=0))
        allowed = min(self.t_max, int(str(given.get("max_queries", self.t_max))))
        rest = f"; the ε below is for all {allowed:,} it may be asked, whatever the consumer does" * (most < allowed)
        d = self.centres.shape[1]
        full = "" if math.isnan(self.full_utility) else f"; {self.full_utility:.4f} from the records as they are"
        lines = [
            f"{len(self):,} records, strategy {self.strategy} ({settings}): {self.outcome}.",
            f"Utility {self.utility:.4f}; target {self.target:.4f}{full}.",
            f"{self.n_queries:,} queries of {self.inclusiveness:.1%} of the records: budget {self.budget:.6g} (ε a "
            f"feature × queries), Gini of spending {self.gini:.3f}.",
            f"A query costs ε = {self.query_cost:.6g} over {d:,} features; the record most asked for spent "
            f"{most * self.query_cost:.6g} in {most} quer{'y' if most == 1 else 'ies'}{rest}.",
        ]  # fmt: skip
        off, agreement = (self.trajectory[name][-1] for name in ("error", "spearman"))
        if not math.isnan(off):
            agree = "" if math.isnan(agreement) else f"; rank correlation with true values {agreement:.3f}"
            lines.append(f"For the owner: centres are {off:.4g} off on average{agree}.")
        lines.append(f"Guarantee: {self.guarantee}.")
        return self._in_words(lines)

    def plot(self, what: str = "utility", ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the trajectory against the budget: ``utility``, ``gini``, ``spearman`` or ``error``; or ``spending``.

        ``spending`` is the Lorenz curve: the share of all spending that goes to the least-queried share of records.
        Returns the axes. With a ``label`` for the legend several games can share them.
        """
        _checks.choice("what", what, get_args(Trajectory))
        ax = axes_on(ax, 6.5, 4)
        if what == "spending":
            draw_spending(ax, self.values, label)
            ax.set_title(f"Spending of {self.strategy}: Gini {self.gini:.3f}", loc="left")
            return ax
        target = self.target if what == "utility" else None
        draw_trajectory(ax, self.trajectory["budget"], self.trajectory[what], target, label)
        ax.set_ylabel(_AXES.get(what, what))
        ax.set_title(f"{self.strategy}: {self.outcome}", loc="left")
        return ax

    def trajectory_frame(self, kind: FrameKind | None = None) -> Frame:
        """The trajectory as a data frame."""
        return make_frame(self.trajectory, kind)

    def _saved(self) -> Columns:
        return {**self._columns(), **{f"centre {j}": centre for j, centre in enumerate(self.centres.T)}}

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        centres = [column.astype(np.float64) for name, column in columns.items() if name.startswith("centre ")]
        return {**super()._fields(header, columns), "centres": np.stack(centres, axis=1)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything, centres included, to ``.parquet`` or ``.json`` (complete), or the table to ``.csv``.

        The file holds what only the owner may see; ``result.for_consumer().save(path)`` writes one without.
        """
        return super().save(path)


_AXES: Mapping[str, str] = {
    "gini": "Gini of spending",
    "spearman": "rank correlation with true values",
    "error": "mean distance of centres",
}
