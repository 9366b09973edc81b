"""Partial disclosure: an owner gives out noisy copies of records, and a consumer averages them until it has enough.

Each query of a record returns x + Laplace(Δ_j/ε_j) in every feature and costs ε a feature; at most T_max queries a
record, so B_max = T_max · ε. The consumer, who does not know what records are worth, chooses what to query (thesis,
chapter 3; Mathematics §9).
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._choices import Metric, StrategyName, Trajectory, Unseen, Utility
from datassay._errors import InputError, UsageError
from datassay._frozen import FrozenMapping
from datassay._run import DEFAULT_MEMORY
from datassay._version import __version__
from datassay._work import Bar, Progress, check_progress
from datassay.data import Encoder, Inputs, Table, as_labels, prepare
from datassay.market.moving import METRICS, MovingNeighbours, knn_utility
from datassay.market.owner import DataOwner, RehearsingOwner, positions
from datassay.market.pricing import gini
from datassay.market.strategies import (
    ConsumerView,
    Move,
    NoisyShapley,
    RandomSubset,
    Strategy,
    check_options,
)
from datassay.neighbors import Schedule, as_floats
from datassay.privacy import BudgetExceededError, Guarantee, Ledger, NoisyRecords, check_apart, check_ledger
from datassay.results import (
    Fact,
    FrameKind,
    Parameter,
    as_facts,
    check_axes,
    freeze,
    frozen,
    make_frame,
    new_axes,
    save_columns,
    value_of,
)
from datassay.value import knn_shapley

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bounds = str | tuple[ArrayLike, ArrayLike] | NDArray[np.float64]
UNCERTIFIED = "not certified:"
MOST_QUERIES = 10**12  # of a record: nobody lives to see more
FARTHEST = 50  # scales of Laplace noise: more than that has a chance of 2e-22
TRACKED = ("step", "queries", "budget", "utility", "gini", "spearman", "error")
REACHED, SPENT, LIMIT, STOPPED, NOTHING = (
    "target reached",
    "budget spent",
    "query limit reached",
    "strategy stopped",
    "no budget",
)
REFUSED, UNAVAILABLE, INTERRUPTED = "ledger refused", "ledger unavailable", "interrupted"
FAILED, BROKEN = "strategy failed", "stopped by an error"


@dataclass(frozen=True, eq=False)
class Disclosure:
    """How a disclosure game went.

    Attributes
    ----------
    values, ids, labels
        What was spent on each record, in ε a feature; their ids and labels.
    queries, received, centres, used
        How often each record was queried (and its owner's budget charged), how many of these noisy copies arrived (all,
        but for those that were lost when the game was cut short), the mean of those that did (zeros if none), and
        whether the consumer's model holds it.
    scores
        What the consumer thinks of each record in the end: the bandit's Q, or the value of its centre; not a number
        where the strategy has no such idea.
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
        ε a feature (the mean, if they differ), queries a record, what a query really costs (Σ ε over features), and
        the noise: bounds and ε of every feature.
    guarantee
        What is promised for the whole game, whatever the consumer does: T_max queries of a record. Not certified for a
        rehearsal.
    strategy, parameters, seed, notes, version
        How the game was played. A game with a seed is a rehearsal.
    """

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
        freeze(self, "values", "ids", "labels", "queries", "received", "centres", "used", "scores", "worth")
        kept = {}
        for name in TRACKED:
            kept[name] = np.array(self.trajectory[name], np.float64)
            kept[name].setflags(write=False)
        object.__setattr__(self, "trajectory", FrozenMapping(kept))

    def __len__(self) -> int:
        return len(self.values)

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

    def of(self, id: object) -> float:
        """What was spent on the record with this id, in ε a feature."""
        return value_of(id, self.ids, self.values)

    def score(self, X: object, y: object = None, *, n_jobs: int | None = None) -> float:
        """Utility of the consumer's model (the centres in use) on other points, a test set say."""
        points, labels = self.as_played(X, y)
        classes, codes = np.unique(np.concatenate([self.labels, labels]), return_inverse=True)
        here = codes[: len(self)]
        told = self.parameters
        return knn_utility(
            self.centres[self.used], here[self.used], points, codes[len(self) :], len(classes), k=int(str(told["k"])),
            metric=str(told["metric"]), utility=told["utility"], run=Schedule(n_jobs, here=True),  # type: ignore[arg-type]
        )  # fmt: skip

    def as_played(self, X: object, y: object = None) -> tuple[Floats, NDArray[np.generic]]:
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
        told = {n: f"{v:.6g}" if isinstance(v, float) else v for n, v in self.parameters.items() if v is not None}
        settings = ", ".join(f"{name}={value}" for name, value in told.items())
        most = int(self.queries.max(initial=0))
        allowed = min(self.t_max, int(str(told.get("max_queries", self.t_max))))
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
        last = {name: track[-1] for name, track in self.trajectory.items()}
        if not math.isnan(last["error"]):
            agree = (
                "" if math.isnan(last["spearman"]) else f"; rank correlation with true values {last['spearman']:.3f}"
            )
            lines.append(f"For the owner: centres are {last['error']:.4g} off on average{agree}.")
        lines.append(f"Guarantee: {self.guarantee}.")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def plot(self, what: str = "utility", ax: "Axes | None" = None) -> "Axes":
        """Draw the trajectory against the budget: ``utility``, ``gini``, ``spearman`` or ``error``; or ``spending``.

        ``spending`` is the Lorenz curve: the share of all spending that goes to the least-queried share of records.
        Returns the axes.
        """
        _checks.choice("what", what, get_args(Trajectory))
        if ax is None:
            ax = new_axes(6.5, 4)
        check_axes(ax)
        if what == "spending":
            spent = np.concatenate([[0.0], np.cumsum(np.sort(self.values))])
            ax.plot(np.linspace(0, 1, len(spent)), spent / max(spent[-1], 1e-300), color="#4477aa")
            ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle="dashed")
            ax.set_xlabel("share of records, the least queried first")
            ax.set_ylabel("share of spending")
            ax.set_title(f"Spending of {self.strategy}: Gini {self.gini:.3f}", loc="left")
        else:
            ax.plot(self.trajectory["budget"], self.trajectory[what], color="#4477aa")
            if what == "utility":
                ax.axhline(self.target, color="black", linewidth=0.8, linestyle="dashed", label="target")
                ax.legend(frameon=False)
            ax.set_xlabel("budget spent (ε a feature × queries)")
            names = {"gini": "Gini of spending", "spearman": "rank correlation with true values"}
            ax.set_ylabel(names.get(what, "mean distance of centres" if what == "error" else what))
            ax.set_title(f"{self.strategy}: {self.outcome}", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        return {
            "id": self.ids, "label": self.labels, "spent": self.values, "queries": self.queries,
            "received": self.received, "used": self.used, "score": self.scores, "worth": self.worth,
        }  # fmt: skip

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """Record by record: id, label, spent, queries, received, used, score, worth."""
        return make_frame(self._columns(), kind)

    def trajectory_frame(self, kind: FrameKind | None = None) -> object:
        """The trajectory as a data frame."""
        return make_frame(dict(self.trajectory), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything, centres included, to Parquet or JSON (:func:`datassay.load_result`), or the table to CSV.

        The file holds what only the owner may see; ``result.for_consumer().save(path)`` writes one without.
        """
        header = {
            "kind": "disclosure",
            "encoder": None if self.encoder is None else self.encoder.to_dict(),
            "trajectory": {
                name: [None if x != x else x for x in track.tolist()] for name, track in self.trajectory.items()
            },
            "guarantee": self.guarantee.to_dict(),
            "mechanism": {name: getattr(self.mechanism, name).tolist() for name in ("low", "high", "epsilon")},
            "parameters": dict(self.parameters),
            "notes": list(self.notes),
            **{n: None if math.isnan(x := getattr(self, n)) else x for n in ("utility", "full_utility")},
        }
        for name in ("outcome", "target", "epsilon", "t_max", "query_cost", "strategy", "seed", "version"):
            header[name] = getattr(self, name)
        centres = {f"centre {j}": self.centres[:, j] for j in range(self.centres.shape[1])}
        return save_columns(path, header, {**self._columns(), **centres})


def load_disclosure(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> Disclosure:
    """The game that :meth:`Disclosure.save` wrote."""
    places = [name for name in columns if name.startswith("centre ")]
    utility, full = (math.nan if header[n] is None else float(header[n]) for n in ("utility", "full_utility"))
    seed = header["seed"]
    return Disclosure(
        values=columns["spent"].astype(np.float64),
        ids=columns["id"],
        labels=columns["label"],
        queries=columns["queries"].astype(np.int64),
        received=columns["received"].astype(np.int64),
        centres=np.stack([columns[name].astype(np.float64) for name in places], axis=1),
        used=columns["used"].astype(np.bool_),
        scores=columns["score"].astype(np.float64),
        worth=columns["worth"].astype(np.float64),
        trajectory={name: np.array(track, np.float64) for name, track in header["trajectory"].items()},
        outcome=str(header["outcome"]),
        target=float(header["target"]),
        utility=utility,
        full_utility=full,
        epsilon=float(header["epsilon"]),
        t_max=int(header["t_max"]),
        query_cost=float(header["query_cost"]),
        mechanism=NoisyRecords(**header["mechanism"]),
        guarantee=Guarantee(**header["guarantee"]),
        strategy=str(header["strategy"]),
        parameters=header["parameters"],
        seed=None if seed is None else int(seed),
        notes=tuple(map(str, header["notes"])),
        version=str(header["version"]),
        encoder=None if header["encoder"] is None else Encoder.from_dict(header["encoder"]),
    )


def disclosure_game(
    X: object,
    y: object = None,
    X_val: object | None = None,
    y_val: object | None = None,
    strategy: StrategyName | Strategy = "ucb",
    epsilon: ArrayLike = 1.0,
    t_max: int = 50,
    target: float | None = None,
    *,
    k: int = 5,
    metric: Metric = "euclidean",
    utility: Utility = "votes",
    bounds: Bounds = "validation",
    share: float | None = None,
    bootstrap: int | None = None,
    exploration: float | None = None,
    learning_rate: float | None = None,
    unseen: Unseen | None = None,
    max_queries: int | None = None,
    every: int | None = None,
    diagnostics: bool = True,
    ledger: Ledger | None = None,
    seed: int | None = None,
    ids: object | None = None,
    n_jobs: int | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Progress = None,
) -> Disclosure:
    """Play the information disclosure game: what is data worth when it is revealed bit by bit?

    The owner answers each query of a record with a noisy copy, x + Laplace(Δ_j/ε_j) in every feature, at most ``t_max``
    times a record. The consumer averages the copies it gets of a record into a centre, trains a k-NN classifier on the
    centres, and chooses what to query next until the classifier is good enough on its validation points.

    Parameters
    ----------
    X, y, X_val, y_val
        The owner's records and the consumer's validation points: arrays, data frames of numbers, or tables (encoded by
        the validation table alone, which is no secret to the consumer).
    strategy
        ``"random"``: commit to a random ``share`` of the records, query all of these in every round. ``"shapley"``:
        query everybody in every round and use the best ``share`` by k-NN Shapley values of the centres.
        ``"shapley-commit"``: the same for ``bootstrap`` rounds, then query the best alone. ``"ucb"``: a bandit that
        queries one record at a time (thesis, Algorithm 2): the highest Q + c·√(1/N)·(share of its budget left), where Q
        follows what queries of the record added to the utility. Or a function of yours from
        :class:`datassay.market.ConsumerView` to positions, or to a :class:`datassay.market.Move`; an empty list ends
        the game.
    epsilon
        ε a feature and query, one number or one for each feature. A query as a whole costs their sum: it composes over
        features.
    t_max
        Queries that each record can be asked: B_max = t_max · ε.
    target
        Utility at which the consumer stops. Left out, it is what the records themselves would give, which tells about
        them: a game for real names one.
    k, metric, utility
        The classifier, and what it is judged by: ``"votes"``, the mean share of right labels among the k nearest, or
        ``"accuracy"`` of their majority.
    bounds
        Within which features lie; Δ_j is their width, and what is outside is cut off. ``"validation"``: the range of
        the validation points, which is public; where some of these are the owner's records it is not, and the guarantee
        is not certified. ``(low, high)``: numbers, or one a feature, that you know without looking at the records.
        ``"data"``: the range of the records, as published; it leaks, and the guarantee is not certified.
    share, bootstrap
        Of ``"random"``, ``"shapley"`` and ``"shapley-commit"``: the share of the records to use (0.6 if left out); of
        the last, the rounds before committing (10).
    exploration, learning_rate, unseen
        Of ``"ucb"``: c (0.1 if left out) and α (0.1); and where its model has records that were never queried, all at
        the ``"origin"`` (as in Algorithm 2; if left out) or ``"absent"``. An option that is not the strategy's is
        refused.
    max_queries
        An end to the game, beside the target and the budgets.
    every
        Steps from one row of the trajectory to the next: a query of the bandit, else a move. Left out, some hundred
        rows for the bandit, else every move.
    diagnostics
        Whether to compute what only the owner can: true values, and how far off centres are.
    ledger
        Records every query, and refuses those beyond its budget; kept for ``replace-features``. It needs public bounds
        and a target.
    seed
        None: noise from OpenDP, for real, at some 20 µs a number. A number makes it a *rehearsal*: the noise is
        repeatable, fast, and protects nobody; nothing of it may be given away.
    ids, n_jobs, memory, progress
        As in :func:`knn_shapley`.

    Returns
    -------
    Disclosure
        ``game.summary()``, ``game.plot()``, ``game.trajectory``, ``game.score(X_test, y_test)``.

    References
    ----------
    Mesana, thesis, chapter 3: Data valuation via an information disclosure game. Mathematics §9.

    Examples
    --------
    >>> import datassay as da, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, X_val = rng.uniform(size=(60, 2)), rng.uniform(size=(40, 2))
    >>> y, y_val = X[:, 0] > 0.5, X_val[:, 0] > 0.5
    >>> game = da.disclosure_game(X, y, X_val, y_val, "shapley", epsilon=2.0, target=0.8, bounds=(0, 1), seed=0)
    >>> game.outcome, game.n_queries % 60
    ('target reached', 0)
    """
    bounds = tuple(bounds) if isinstance(bounds, np.ndarray) else bounds
    if isinstance(strategy, str):
        _checks.choice("strategy", strategy, get_args(StrategyName))
    elif not callable(strategy):
        raise UsageError(
            f"strategy must be one of {', '.join(get_args(StrategyName))}, or a function; got {strategy!r}"
        )
    options = check_options(
        strategy,
        {
            "share": share, "bootstrap": bootstrap, "exploration": exploration, "learning_rate": learning_rate,
            "unseen": unseen,
        },
    )  # fmt: skip
    rules = Rules(
        t_max, target, k, metric, utility, "origin" if unseen is None else unseen, max_queries, every,
        exploration=0.1 if exploration is None else exploration,
        learning_rate=0.1 if learning_rate is None else learning_rate,
    )  # fmt: skip
    share = 0.6 if share is None else _checks.number("share", share, above=0, at_most=1)
    bootstrap = 10 if bootstrap is None else _checks.integer("bootstrap", bootstrap, at_least=1)
    seed = None if seed is None else _checks.integer("seed", seed, at_least=0)
    _checks.boolean("diagnostics", diagnostics)
    check_ledger(ledger)
    if ledger is not None and seed is not None:
        raise UsageError("a game with a seed is a rehearsal and has no place in a ledger; leave out seed, or ledger")
    check_progress(progress)
    stage = Stage.set(X, y, X_val, y_val, epsilon, bounds, rules.metric, ids, Schedule(n_jobs, memory, here=True))
    if not math.isfinite(rules.t_max * stage.mechanism.cost):
        raise UsageError(f"epsilon is too large: t_max={rules.t_max} queries would cost more than can be written down")
    notes = list(stage.inputs.notes)
    # Bounds and encoding come from validation records: these are the consumer's, and must not be the owner's.
    shared = check_apart(stage.inputs, notes, features_alone=True) if seed is None else 0.0
    why = []
    if seed is not None:
        why.append("noise comes from a seed: this is a rehearsal, and nothing of it may be given away")
    if isinstance(bounds, str) and (bounds == "data" or shared > 0):
        whose = "records" if bounds == "data" else "validation points, some of which are among the records"
        why.append(f"bounds were taken from the {whose}, which leaks: give public ones, bounds=(low, high)")
    if target is None:
        why.append("the target was computed from the records: name one")
    if ledger is not None and why:
        raise UsageError(f"a ledger is for games that are certified, and this one is not: {'; '.join(why)}")
    full, worth = stage.secrets(rules) if diagnostics or target is None else (math.nan, np.full(stage.n, math.nan))
    rng = np.random.default_rng(seed)
    goal = full if rules.target is None else rules.target
    chooser: Strategy | None = None
    if strategy == "random":
        chooser = RandomSubset(stage.n, share, rng)
    elif not isinstance(strategy, str):
        chooser = strategy
    elif strategy != "ucb":
        chooser = NoisyShapley(stage.n, share, bootstrap if strategy == "shapley-commit" else None, stage.run)
    stage.try_out(rules, chooser)
    owner = stage.owner(rules.t_max, None if seed is None else rng, ledger)  # the ledger is asked from here on
    try:
        played = play(stage, rules, owner, goal, chooser, worth if diagnostics else None, progress)
    except BaseException:
        with suppress(Exception):  # what went wrong before counts
            owner.close()
        raise
    try:
        owner.close()
    except (Exception, KeyboardInterrupt) as error:  # the game is over, and what was received is paid for
        notes.append(f"the disclosure could not be closed in the ledger, and stays open there: {_told(error)}")
    name = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", type(strategy).__name__)
    told: dict[str, Parameter] = {
        "k": rules.k, "metric": metric, "utility": utility, "epsilon": stage.epsilon, "t_max": rules.t_max,
        "bounds": told_bounds(bounds), "max_queries": rules.max_queries,
        "n_validation": len(stage.points_val), "features": stage.points.shape[1],
    }  # fmt: skip
    chosen: dict[str, Parameter] = {
        "share": share, "bootstrap": bootstrap, "exploration": rules.exploration, "learning_rate": rules.learning_rate,
        "unseen": rules.unseen,
    }  # fmt: skip
    told |= {option: chosen[option] for option in options}
    notes += played.notes
    if owner.clipped:
        notes.append(
            f"{owner.clipped:,} of {stage.points.size:,} entries were outside the bounds and were cut off there"
        )
    notes += [f"{UNCERTIFIED} {reason}" for reason in why]
    return Disclosure(
        values=np.asarray(stage.epsilon * owner.queries, np.float64),
        ids=stage.inputs.ids,
        labels=stage.inputs.labels,
        queries=owner.queries,
        received=played.received,
        centres=played.model.centres,
        used=played.used,
        scores=played.scores,
        worth=worth if diagnostics else np.full(stage.n, math.nan),
        trajectory=played.track.columns(),
        outcome=played.outcome,
        target=goal,
        utility=played.utility,
        full_utility=full,
        epsilon=stage.epsilon,
        t_max=rules.t_max,
        query_cost=stage.mechanism.cost,
        mechanism=stage.mechanism,
        guarantee=_promise(stage, rules, not why, "public" if seed is None else "nobody"),
        strategy=name,
        parameters=told,
        seed=seed,
        notes=tuple(notes),
        encoder=stage.inputs.encoder,
    )


def _promise(stage: "Stage", rules: "Rules", certified: bool, audience: Literal["public", "nobody"]) -> Guarantee:
    t_max = rules.t_max if rules.max_queries is None else min(rules.t_max, rules.max_queries)
    d, epsilons = stage.points.shape[1], stage.mechanism.epsilon
    each = f"{epsilons[0]:g}" if np.ptp(epsilons) == 0 else f"{epsilons.min():g} to {epsilons.max():g}"
    return Guarantee(
        mechanism=(
            f"at most {t_max} noisy copies a record, Laplace noise on each of {d:,} features, ε = {each} a feature, "
            f"ε = {stage.mechanism.cost:g} a copy"
        ),
        epsilon=t_max * stage.mechanism.cost,
        delta=0.0,
        neighbours="replace-features",
        accountant="sums over features and queries (pure differential privacy)",
        audience=audience,
        certified=certified,
    )


@dataclass(frozen=True)
class Rules:
    """What a game is played by, checked."""

    t_max: int
    target: float | None
    k: int
    metric: Metric
    utility: Utility
    unseen: Unseen
    max_queries: int | None = None
    every: int | None = None
    exploration: float = 0.0
    learning_rate: float = 0.1

    def __post_init__(self) -> None:
        for name, kept in (
            ("t_max", _checks.integer("t_max", self.t_max, at_least=0)),
            ("k", _checks.integer("k", self.k, at_least=1)),
            ("metric", _checks.choice("metric", self.metric, METRICS)),
            ("utility", _checks.choice("utility", self.utility, get_args(Utility))),
            ("unseen", _checks.choice("unseen", self.unseen, get_args(Unseen))),
            ("exploration", _checks.number("exploration", self.exploration, at_least=0)),
            ("learning_rate", _checks.number("learning_rate", self.learning_rate, above=0, at_most=1)),
        ):
            object.__setattr__(self, name, kept)
        if self.target is not None:
            object.__setattr__(self, "target", _checks.number("target", self.target, above=0, at_most=1))
        if self.t_max > MOST_QUERIES:
            raise UsageError(f"t_max must be a whole number at most {MOST_QUERIES:,}; a larger one was given")
        for name, least in (("max_queries", 0), ("every", 1)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _checks.integer(name, getattr(self, name), at_least=least))


@dataclass(frozen=True, eq=False)
class Stage:
    """Who plays: records, validation points, the mechanism between them."""

    inputs: Inputs
    points: Floats
    points_val: Floats
    mechanism: NoisyRecords
    run: Schedule

    @classmethod
    def set(
        cls,
        X: object,
        y: object,
        X_val: object | None,
        y_val: object | None,
        epsilon: ArrayLike,
        bounds: Bounds,
        metric: Metric,
        ids: object | None,
        run: Schedule,
    ) -> "Stage":
        """Check the data and set up the mechanism."""
        if X_val is None:
            raise UsageError("X_val must be given: the consumer's validation points, none of them the owner's records")
        inputs = prepare(X, y, X_val, y_val, ids=ids, fitted_on="validation")
        points, points_val = as_floats("X", inputs.points), as_floats("X_val", inputs.points_val)
        points, points_val = (np.ascontiguousarray(p, np.float64) for p in (points, points_val))
        if not len(points) or not len(points_val):
            raise InputError(f"{'X_val' if len(points) else 'X'} has no rows")
        if points.shape[1] == 0:
            raise InputError("X has no features; there is nothing to disclose")
        if points.shape[1] != points_val.shape[1]:
            raise InputError(f"X has {points.shape[1]} features and X_val has {points_val.shape[1]}")
        for name, rows, labels in (("y", points, inputs.labels), ("y_val", points_val, inputs.labels_val)):
            if len(rows) != len(labels):
                raise InputError(f"{name} has {len(labels)} labels for {len(rows)} rows")
        zero = ~points_val.any(axis=1)
        if metric == "cosine" and zero.any():
            raise InputError(f"X_val has a row of length zero at row {int(zero.argmax())}: cosine has no meaning there")
        low, high = _bounds(bounds, points, points_val)
        return cls(inputs, points, points_val, NoisyRecords(low, high, epsilon), run)

    def at(self, epsilon: float) -> "Stage":
        """The same with another ε."""
        return replace(self, mechanism=NoisyRecords(self.mechanism.low, self.mechanism.high, epsilon))

    @property
    def n(self) -> int:
        """Records."""
        return len(self.points)

    @property
    def epsilon(self) -> float:
        """ε a feature, on average."""
        return self.mechanism.cost / len(self.mechanism.epsilon)

    def evaluate(self, points: Floats, use: Ints | None, rules: Rules) -> float:
        """Utility of these points, computed anew."""
        codes = self.inputs.codes if use is None else self.inputs.codes[use]
        return knn_utility(
            points if use is None else points[use], codes, self.points_val, self.inputs.codes_val,
            self.inputs.n_classes, k=rules.k, metric=rules.metric, utility=rules.utility, run=self.run,
        )  # fmt: skip

    def check_reach(self) -> Floats:
        """The farthest that noise can take a record, which distances must be able to hold."""
        mechanism = self.mechanism
        with np.errstate(over="ignore"):
            far = np.maximum(np.abs(mechanism.low), np.abs(mechanism.high))
            far = far + FARTHEST * mechanism.width / mechanism.epsilon
            reach = float(far.max()) + float(np.abs(self.points_val).max())
            fits = math.isfinite(4 * len(far) * reach * reach)
        if not fits:
            raise UsageError(
                f"epsilon is too small for such bounds: noise can reach {reach:.3g}, and distances that large can not "
                "be written down"
            )
        return far

    def try_out(self, rules: Rules, chooser: Strategy | None) -> None:
        """Do once, for one validation point, what a game does again and again: what fails, fails before it is paid."""
        far = self.check_reach()
        if chooser is None:
            return  # the bandit moves single points
        one = replace(
            self, points_val=self.points_val[:1], inputs=replace(self.inputs, codes_val=self.inputs.codes_val[:1])
        )
        points = np.tile(far, (self.n, 1))
        one.evaluate(points, None, rules)
        if isinstance(chooser, NoisyShapley):
            knn_shapley(
                points, self.inputs.labels, one.points_val, self.inputs.labels_val[:1], rules.k, metric=rules.metric,
                n_jobs=self.run.n_jobs, memory=self.run.memory,
            )  # fmt: skip

    def secrets(self, rules: Rules) -> tuple[float, Floats]:
        """What only the owner knows: the utility of the records as they are, and their true values."""
        inputs = self.inputs
        worth = knn_shapley(
            self.points, inputs.labels, self.points_val, inputs.labels_val, rules.k, metric=rules.metric,
            n_jobs=self.run.n_jobs, memory=self.run.memory,
        )  # fmt: skip
        return self.evaluate(self.points, None, rules), np.asarray(worth.values)

    def owner(self, t_max: int, rng: np.random.Generator | None, ledger: Ledger | None) -> DataOwner:
        """The owner's agent: for real without a generator, rehearsing with one."""
        ids = self.inputs.ids
        if rng is not None:
            return RehearsingOwner(self.points, self.mechanism, t_max, rng, ids)
        return DataOwner(self.points, self.mechanism, t_max, ids=ids, ledger=ledger, n_jobs=self.run.n_jobs)

    def model(self, rules: Rules) -> MovingNeighbours:
        """The consumer's classifier before the first query."""
        inputs = self.inputs
        return MovingNeighbours(
            self.n, inputs.codes, self.points_val, inputs.codes_val, inputs.n_classes, k=rules.k, metric=rules.metric,
            utility=rules.utility, unseen=rules.unseen,
        )  # fmt: skip


def _bounds(bounds: Bounds, points: Floats, points_val: Floats) -> tuple[Floats, Floats]:
    d = points.shape[1]
    if isinstance(bounds, str):
        _checks.choice("bounds", bounds, ("validation", "data"))
        of = points if bounds == "data" else points_val
        return of.min(axis=0), of.max(axis=0)
    try:
        low, high = (_checks.real_numbers(bound) for bound in bounds)
        if low is not None and high is not None:
            return np.broadcast_to(low, (d,)).copy(), np.broadcast_to(high, (d,)).copy()
    except (TypeError, ValueError):
        pass
    raise UsageError(
        f'bounds must be "validation", "data" or (low, high), each a number or {d} numbers; got {bounds!r}'
    )


def told_bounds(bounds: Bounds) -> str:
    """Bounds in a word, or as numbers if there are two."""
    if isinstance(bounds, str):
        return bounds
    low, high = (np.asarray(bound, np.float64) for bound in bounds)
    return f"{float(low):g} to {float(high):g}" if low.ndim == high.ndim == 0 else "given, one a feature"


class Track:
    """The trajectory, row by row."""

    def __init__(self, stage: Stage, model: MovingNeighbours, worth: Floats | None) -> None:
        self.stage, self.model, self.worth = stage, model, worth
        self.rows: list[tuple[float, ...]] = []

    def add(self, step: int, queries: Ints, received: Ints, utility: float, scores: Floats | None) -> None:
        """Write down where the game is."""
        total = int(queries.sum())
        if self.rows and self.rows[-1][0] == step:
            return
        error = agree = math.nan
        if self.worth is not None:
            seen = received > 0
            if seen.any():
                error = float(np.sqrt(((self.model.centres - self.stage.points)[seen] ** 2).sum(axis=1)).mean())
            if scores is not None and np.isfinite(scores).all() and np.ptp(scores) > 0 and np.ptp(self.worth) > 0:
                from scipy.stats import spearmanr

                agree = float(spearmanr(scores, self.worth).statistic)
        self.rows.append((step, total, self.stage.epsilon * total, utility, gini(queries), agree, error))

    @property
    def queries(self) -> int:
        """Queries made by the last row."""
        return int(self.rows[-1][1])

    def columns(self) -> dict[str, Floats]:
        """The rows as columns."""
        return dict(zip(TRACKED, np.array(self.rows, np.float64).T, strict=True))


@dataclass(frozen=True, eq=False)
class Played:
    """How a game ended."""

    model: MovingNeighbours
    track: Track
    received: Ints
    used: NDArray[np.bool_]
    scores: Floats
    utility: float
    outcome: str
    notes: tuple[str, ...] = ()


def play(
    stage: Stage,
    rules: Rules,
    owner: DataOwner,
    target: float,
    strategy: Strategy | None,
    worth: Floats | None,
    progress: Progress,
) -> Played:
    """One game: by the bandit, or by any other strategy."""
    whole = stage.n * rules.t_max if rules.max_queries is None else min(rules.max_queries, stage.n * rules.t_max)
    if strategy is not None:  # others hold what was queried, or what they say they use
        rules = replace(rules, unseen="absent")
    model = stage.model(rules)
    track = Track(stage, model, worth)
    table = _Table(stage, rules, owner, target, model, track, whole)
    with Bar(progress, whole, "queries") as report:
        if strategy is None:
            return _play_bandit(table, report)
        return _play_moves(table, strategy, report)


@dataclass(frozen=True, eq=False)
class _Table:
    """Where a game is played: who with whom, by which rules, for how many queries at most."""

    stage: Stage
    rules: Rules
    owner: DataOwner
    target: float
    model: MovingNeighbours
    track: Track
    whole: int

    def opening(self) -> str:
        """How the game ends before it begins, if it does."""
        if self.rules.t_max == 0:
            return NOTHING
        return REACHED if self.model.utility >= self.target else ""

    def cut(
        self, error: BaseException, received: Ints, blame: tuple[str, int] | None = None
    ) -> tuple[str, tuple[str, ...]]:
        """How a game ends that was cut short, and why: what was received is kept.

        If that is nothing there is nothing to keep, and a rehearsal has nothing to lose: the error is raised. ``blame``
        is the strategy whose error it is, and its move.
        """
        held, paid = int(received.sum()), int(self.owner.queries.sum())
        stopped = isinstance(error, KeyboardInterrupt)
        if not held or (isinstance(self.owner, RehearsingOwner) and not stopped):
            raise error
        if stopped:
            outcome, why = INTERRUPTED, ""
        elif error is self.owner.trouble:
            outcome, why = REFUSED if isinstance(error, BudgetExceededError) else UNAVAILABLE, _told(error)
        elif blame is not None:
            name, move = blame
            told = _told(error).removeprefix(_blame(name, move))
            outcome, why = FAILED, f"strategy {name} failed at move {move}: {told}"
        else:
            outcome, why = BROKEN, f"after {paid:,} queries: {_told(error)}"
        lost = f"{paid - held:,} cop{'y was' if paid - held == 1 else 'ies were'} paid for and lost when the game ended"
        return outcome, (*(why,) * bool(why), *(lost,) * (paid > held))


def _told(error: BaseException) -> str:
    """An error in words: what datassay says itself needs no name of a class."""
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__} {error}".strip()


def _play_bandit(table: _Table, report: Callable[[int], None]) -> Played:
    from datassay.market import kernels

    stage, rules, owner, model, track = table.stage, table.rules, table.owner, table.model, table.track
    n, d = owner.unit.shape
    state, queries, utility = model.state, owner.queries, model.utility
    learned, far = np.zeros(n), np.empty(len(stage.points_val))
    scores = np.full(n, kernels.bonus(rules.exploration, 0, rules.t_max) if rules.t_max else -math.inf)
    every = rules.every or max(1, n // 4, table.whole // 400)
    most = max(1, stage.run.memory // 4 // (8 * d))  # rows of noise at a time
    mechanism = owner.mechanism
    # Copies that are in the centres. A rehearsal loses none.
    received = queries if isinstance(owner, RehearsingOwner) else np.zeros(n, np.int64)
    track.add(0, queries, received, utility, learned)
    step, outcome = 0, table.opening()
    notes: tuple[str, ...] = ()
    try:
        while not outcome:
            ahead = min(every - step % every, most, table.whole - step)
            if ahead == 0:
                outcome = SPENT if step == n * rules.t_max else LIMIT
                break
            if isinstance(owner, RehearsingOwner):
                made, utility = kernels.play_bandit(
                    state, owner.unit, mechanism.low, mechanism.width, 1.0 / mechanism.epsilon, owner.noise(ahead),
                    rules.learning_rate, rules.exploration, rules.t_max, table.target, utility, queries, learned,
                    scores, far,
                )  # fmt: skip
            else:
                made = 0
                while made < ahead and utility < table.target:
                    best = kernels.best_arm(scores)
                    sample = owner.query([best])[0]
                    before, utility = utility, model.receive(best, sample, queries[best])
                    received[best] += 1
                    kernels.learn(
                        best, utility - before, rules.learning_rate, rules.exploration, rules.t_max, queries, learned,
                        scores,
                    )  # fmt: skip
                    made += 1
            step += made
            report(made)
            outcome = REACHED if utility >= table.target else ""
            if outcome or step % every == 0:
                track.add(step, queries, received, utility, learned)
    except (Exception, KeyboardInterrupt) as error:
        outcome, notes = table.cut(error, received)
        step, utility = int(queries.sum()), model.utility
    track.add(step, queries, received, utility, learned)
    used = np.ones(n, np.bool_) if rules.unseen == "origin" else state.placed.copy()
    return Played(model, track, received, used, learned, float(utility), outcome, notes)


def _play_moves(table: _Table, strategy: Strategy, report: Callable[[int], None]) -> Played:
    stage, rules, owner, model, track = table.stage, table.rules, table.owner, table.model, table.track
    name = getattr(strategy, "__name__", type(strategy).__name__)
    inputs, queries = stage.inputs, owner.queries
    utility, step, at, moving = model.utility, 0, 0, True  # moves made, and the number of the one being made
    used = np.zeros(stage.n, np.bool_)
    every = rules.every or 1
    # A strategy is the consumer's: it gets copies, lest it change whose record is charged.
    labels, ids, y_val = (frozen(array) for array in (inputs.labels, inputs.ids, inputs.labels_val))
    theirs = _read_only(stage.points_val.copy())
    view = partial(
        ConsumerView, centres=_read_only(model.centres), labels=labels, ids=ids, X_val=theirs, y_val=y_val, k=rules.k,
        metric=rules.metric,
    )  # fmt: skip
    idea = _idea(strategy, stage.n)
    held = np.zeros(stage.n, np.int64)  # copies that are in the centres
    track.add(0, queries, held, utility, idea)
    outcome = table.opening()
    notes: tuple[str, ...] = ()
    ours = isinstance(strategy, RandomSubset | NoisyShapley)
    choosing = False  # whose turn it is: the strategy's, or the game's
    at_once = max(1, stage.run.memory // (8 * stage.points.shape[1]))
    try:
        while not outcome:
            left = table.whole - int(queries.sum())
            if left == 0:
                outcome = LIMIT if (owner.remaining > 0).any() else SPENT
                break
            at, choosing = step, not ours
            move = strategy(view(step=step, queries=queries.copy(), remaining=owner.remaining, utility=utility))
            move = move if isinstance(move, Move) else Move(move)
            with _blaming(name, at):
                asked = owner.check(move.query)
            choosing = False
            if len(asked) == 0:
                outcome = SPENT if ours else STOPPED
                break
            moving = moving and move.use is None
            for part, copies in owner.answer(asked[:left], at_once):
                held[part] += 1
                if moving:
                    for i, copy in zip(part.tolist(), copies, strict=True):
                        utility = model.receive(i, copy, held[i])
                else:
                    model.centres[part] += (copies - model.centres[part]) / held[part, None]
                report(len(part))
            step += 1
            used = held > 0
            if not moving:
                use, choosing = move.use, not ours
                if callable(use):
                    use = use(view(step=step, queries=queries.copy(), remaining=owner.remaining, utility=utility))
                if use is not None:
                    used = _as_used(use, queries, name, at, cut_short=len(asked) > left)
                choosing = False
                utility = stage.evaluate(model.centres, np.flatnonzero(used), rules)
            choosing = not ours
            idea = _idea(strategy, stage.n)
            choosing = False
            outcome = REACHED if utility >= table.target else ""
            if outcome or step % every == 0:
                track.add(step, queries, held, utility, idea)
    except (Exception, KeyboardInterrupt) as error:
        outcome, notes = table.cut(error, held, (name, at) if choosing else None)
        used = used & (held > 0) if used.any() and not moving else held > 0
        try:
            utility = stage.evaluate(model.centres, np.flatnonzero(used), rules)
        except (Exception, KeyboardInterrupt) as again:
            utility = math.nan
            notes += (f"the utility of what was received is not known: {_told(again)}",)
        step += int(track.queries < queries.sum())
    track.add(step, queries, held, utility, idea)
    scores = np.full(stage.n, math.nan) if idea is None else idea
    return Played(model, track, held, used, scores, utility, outcome, notes)


def _idea(strategy: Strategy, n: int) -> Floats | None:
    """What a strategy thinks of the records, if it says so in ``scores``."""
    given = getattr(strategy, "scores", None)
    if given is None:
        return None
    try:
        scores = np.array(given, np.float64)
    except (TypeError, ValueError):
        scores = np.empty(0)
    if scores.shape != (n,):
        raise InputError(f"scores of a strategy must be {n} numbers, one a record")
    return scores


@contextmanager
def _blaming(name: str, step: int) -> Iterator[None]:
    """Say which strategy was wrong, and when."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{_blame(name, step)}{error}") from None


def _blame(name: str, step: int) -> str:
    return f"strategy {name}, move {step}: "


def _read_only(array: Floats) -> Floats:
    seen = array.view()
    seen.setflags(write=False)
    return seen


def _as_used(use: object, queries: Ints, name: str, step: int, cut_short: bool) -> NDArray[np.bool_]:
    """Who is in the model. A move that the query limit cut short goes without those it did not come to."""
    used = np.zeros(len(queries), np.bool_)
    with _blaming(name, step):
        used[positions(use, len(queries))] = True
    if cut_short:
        return np.asarray(used & (queries > 0))
    if (used & (queries == 0)).any():
        first = int((used & (queries == 0)).argmax())
        raise InputError(f"{_blame(name, step)}the record at position {first} was never queried")
    return used
