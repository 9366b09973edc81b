"""Audits: does a mechanism leak more than it claims? Play the distinguishing game and count.

There are two neighbouring data sets, and many releases from each; :mod:`datassay.privacy.evidence` says what they
prove. Something refuted is proof of a leak, but for the stated chance of error. Nothing refuted is no proof of the
claim: this attacker did not refute it, that is all.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Neighbours, Relation, ReleaseKind
from datassay._errors import InputError, UsageError
from datassay._version import __version__
from datassay.privacy.accounting import NOISES, Cost, calibrate, check_delta, check_epsilon
from datassay.privacy.evidence import Outputs, Trials, delta_of, evaluate, in_turns, most_true_positives
from datassay.privacy.figures import draw_rates
from datassay.privacy.layered_release import private_layered_shapley
from datassay.privacy.mechanisms import add_noise
from datassay.privacy.records import NoisyRecords
from datassay.privacy.releases import private_knn_shapley, private_tknn_shapley
from datassay.results import Fact, Parameter, Result, as_facts, axes_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mechanism = Callable[[object, int], object]
RELEASES = ("private_tknn_shapley", "private_knn_shapley", "private_layered_shapley", "noisy_records")


@dataclass(frozen=True, eq=False)
class Audit(Result):
    """What an audit found.

    Attributes
    ----------
    mechanism, epsilon, delta, neighbours
        The claim.
    lower_bound
        The true ε is at least this, with the stated confidence, whatever the mechanism is.
    noise_bound
        ε is at least this if the noise is of the kind claimed (None if it is not known).
    faults
        What is proven wrong with the mechanism, one line each; empty if nothing is.
    bounds
        How each way of looking contributed to ``lower_bound``: bounds by name.
    confidence, trials
        Chance that no honest mechanism is refuted and all bounds hold, and how many releases there were from the two
        data sets together.
    false_positives, true_positives
        Rates of the best guesser by threshold, on releases it was not fitted to.
    """

    COLUMNS: ClassVar = {"false_positive_rate": "false_positives", "true_positive_rate": "true_positives"}

    mechanism: str
    epsilon: float
    delta: float
    neighbours: Relation | None
    lower_bound: float
    noise_bound: float | None
    faults: tuple[str, ...]
    bounds: Mapping[str, float]
    confidence: float
    trials: int
    false_positives: NDArray[np.float64]
    true_positives: NDArray[np.float64]
    costs: tuple[Cost, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def _who(self) -> str:
        return "thresholds"

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``epsilon`` and ``delta`` as claimed; ``lower_bound`` and ``noise_bound``; ``refuted`` and the number of
        ``faults``; ``trials`` and ``confidence``; ``bound.WAY`` for each way of looking.
        """
        return as_facts(
            {
                "epsilon": self.epsilon, "delta": self.delta, "lower_bound": self.lower_bound,
                "noise_bound": self.noise_bound, "refuted": self.refuted, "faults": len(self.faults),
                "trials": self.trials, "confidence": self.confidence,
                **{f"bound.{way}": bound for way, bound in self.bounds.items()},
            }
        )  # fmt: skip

    @property
    def refuted(self) -> bool:
        """Whether the claim is proven false."""
        return bool(self.faults)

    def __repr__(self) -> str:
        return f"Audit({self.mechanism!r}: {self})"

    def __str__(self) -> str:
        verdict = "REFUTED" if self.refuted else "not refuted"
        relation = "" if self.neighbours is None else f" ({self.neighbours})"
        noise = "" if self.noise_bound is None else f" (≥ {self.noise_bound:.4g} if the noise is of the kind claimed)"
        faults = "".join(f"; {fault}" for fault in self.faults)
        return (
            f"{self.mechanism}: claimed ε = {self.epsilon:.4g} at δ = {self.delta:g}{relation}: {verdict}{faults}. "
            f"{self.trials:,} trials show ε ≥ {self.lower_bound:.4g}{noise} with confidence {self.confidence:.2%}"
        )

    def plot(self, ax: "Axes | None" = None, *, label: str | None = None) -> "Axes":
        """Draw how well the best guesser did, and what the claim allows at most; returns the axes.

        With a ``label`` for the legend the guesser's rates are drawn alone, so that several audits can share the axes.
        """
        ax = axes_on(ax, 5, 5)
        rates = np.linspace(0, 1, 201)
        if self.costs:
            deltas = delta_of(self.costs)
            allowed = np.array([most_true_positives(rate, deltas) for rate in rates])
        else:
            grow = math.exp(self.epsilon)
            allowed = np.minimum(grow * rates + self.delta, 1 - (1 - rates - self.delta).clip(0) / grow).clip(0, 1)
        draw_rates(ax, self.false_positives, self.true_positives, (rates, allowed), label)
        ax.set_title("The claim is refuted" if self.refuted else "The claim is not refuted", loc="left")
        return ax


def audit(
    mechanism: str | Mechanism,
    first: object = None,
    second: object = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    neighbours: Neighbours = "add-remove",
    sampling: float = 1.0,
    release: ReleaseKind = "histogram",
    k: int = 5,
    costs: Sequence[Cost] = (),
    trials: int | None = None,
    confidence: float = 0.999,
) -> Audit:
    """An empirical lower bound on the ε of a mechanism, to be compared with the ε it claims.

    Parameters
    ----------
    mechanism
        One of datassay's own: ``"private_tknn_shapley"``, ``"private_knn_shapley"``, ``"private_layered_shapley"``
        (for which ``neighbours`` is ``replace``), ``"noisy_records"`` (what :func:`datassay.disclosure_game` gives out:
        a copy of a record, here with four features), or a kind of noise (``"gaussian"``, ``"discrete gaussian"``,
        ``"laplace"``, ``"discrete laplace"``), played on its worst pair of data sets through the public function.
        Or a function ``mechanism(data, trials)`` of yours that returns that many independent releases, one row each;
        then give the neighbouring data sets ``first`` and ``second``.
    epsilon, delta
        The claim.
    neighbours, sampling, release, k
        Settings of datassay's own mechanisms.
    costs
        For a function of yours: what it claims to do, as a list of :class:`datassay.privacy.Cost`. Then the amount of
        noise is audited, which sees more; without it, only (ε, δ) is.
    trials
        Releases in all, half of them from each data set.
    confidence
        Chance that the bound holds.

    Examples
    --------
    >>> import datassay as da, numpy as np
    >>> from datassay.privacy import Cost, add_noise
    >>> da.audit("discrete gaussian", epsilon=1.0, delta=1e-5, trials=2000).refuted
    False
    >>> def too_little_noise(count, trials):
    ...     return add_noise(np.full(trials, count), "discrete gaussian", 0.25)
    >>> da.audit(too_little_noise, 10, 11, epsilon=1.0, delta=1e-5, trials=2000).refuted
    True
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    confidence = _checks.number("confidence", confidence, above=0, below=1)
    if trials is not None:
        trials = _checks.integer("trials", trials, at_least=100)
    _checks.choice("neighbours", neighbours, get_args(Neighbours))
    sampling = _checks.number("sampling", sampling, above=0, at_most=1)
    checks: list[str] = []
    parts = 1
    relation: Relation | None
    if callable(mechanism):
        if first is None and second is None:
            raise UsageError("give the two neighbouring data sets that the mechanism is to be played on")
        name = getattr(mechanism, "__name__", type(mechanism).__name__)
        relation, half = None, (trials or 10_000) // 2
        outputs = [_outputs(mechanism(data, half), half) for data in (first, second)]
        if outputs[0].shape != outputs[1].shape:
            raise InputError(f"the two data sets led to releases of shapes {outputs[0].shape} and {outputs[1].shape}")
        games = {"the pair given": in_turns(outputs[0], outputs[1])}
        claimed: Sequence[Cost] = tuple(costs)
    else:
        name = mechanism
        relation = neighbours
        _checks.choice("mechanism", mechanism, (*RELEASES, *NOISES))
        if mechanism == "private_tknn_shapley":
            _checks.choice("release", release, get_args(ReleaseKind))
            play = _paper_games if release == "paper" else _histogram_games
            games, claimed = play(epsilon, delta, neighbours, sampling, trials)
            name = f"{name} ({release})"
        elif mechanism == "private_knn_shapley":
            k = _checks.integer("k", k, at_least=1)
            games, claimed = _knn_games(epsilon, delta, neighbours, sampling, trials, k)
        elif mechanism == "private_layered_shapley":
            if sampling < 1:
                raise UsageError("private_layered_shapley claims nothing from sampling: leave it at 1")
            relation = "replace"
            parts = 2
            games, claimed, faults = _layered_games(epsilon, trials, (1 - confidence) / parts)
            checks += [*faults, *_design_faults()]
        elif mechanism == "noisy_records":
            if sampling < 1:
                raise UsageError("noisy_records claims nothing from sampling: leave it at 1")
            relation = "replace-features"
            games, claimed = _record_games(epsilon, trials)
            copies = np.concatenate([game.outputs[:, 2] for game in games.values()])
            if len(np.unique(copies)) < 0.9 * len(copies):
                checks.append("noise repeats itself")
        else:
            cost = calibrate(mechanism, epsilon, delta)  # type: ignore[arg-type]
            half = (trials or 10_000) // 2
            drawn = [
                np.asarray(add_noise(np.full(half, count), cost.noise, cost.scale), np.float64)[:, None]
                for count in (1, 0)
            ]
            games, claimed = {"one count": in_turns(drawn[0], drawn[1], (np.ones(1),))}, [cost]
        if sampling < 1 and mechanism == "private_tknn_shapley":
            parts = 2
            checks += _sample_faults(sampling, release, (1 - confidence) / parts)
    found = evaluate(games, delta, claimed, (1 - confidence) / parts)
    bound = max(found.bounds.values())
    if bound > epsilon:
        checks.append(f"ε is at least {bound:.4g}")
    if not found.noise_allowed:
        checks.append("the claimed noise does not allow guesses as good as these")
    played = sum(len(game.outputs) for game in games.values())
    return Audit(
        name,
        epsilon,
        delta,
        relation,
        bound,
        found.noise_bound,
        tuple(checks),
        found.bounds,
        confidence,
        played,
        found.false_positives,
        found.true_positives,
        tuple(claimed),
    )


def _record_games(epsilon: float, trials: int | None) -> "_Games":
    """Copies of the two records farthest from each other, in all features at once and in one of them.

    Bounds differ from feature to feature, so that noise of one width for all would show; and the records lie far beyond
    them, so that it would show if they were not cut off.
    """
    d, half = 4, (trials or 10_000) // 4
    mechanism = NoisyRecords([0.0, -1.0, 5.0, 0.0], [1.0, 1.0, 5.5, 100.0], epsilon / d)
    ends = mechanism.low, mechanism.high
    games = {}
    for name, moved in (("all features", [True] * d), ("one feature", [False, False, True, False])):
        drawn = []
        for end in ends[::-1]:
            beyond = end + 9 * (end - (mechanism.low + mechanism.high) / 2)
            record = np.where(moved, beyond, mechanism.low)
            copies = mechanism.release(mechanism.to_unit(np.tile(record, (half, 1))), n_jobs=-1)
            drawn.append((copies - mechanism.low) / mechanism.width)
        games[name] = in_turns(drawn[0], drawn[1], (np.asarray(moved, np.float64),))
    return games, [Cost("laplace", d / epsilon, count=d, neighbours="replace")]


def _sample_faults(chance: float, release: ReleaseKind, error: float) -> list[str]:
    """Are samples as they should be: of the right size, fresh for every validation point and for every release?

    Amplification by sampling is worth nothing otherwise. With next to no noise the counts are the sizes of the samples.
    """
    from scipy.stats import binom, chi2

    n, points = math.ceil(max(200, 20 / chance)), 400
    records, labels = np.zeros((n, 1)), np.ones(n, np.int64)
    sizes, noise = [], 0.0
    for _ in range(2):
        released = private_tknn_shapley(
            records, labels, np.full((points, 1), 0.5), np.ones(points, np.int64), 1.0, "euclidean", epsilon=200.0,
            delta=1e-5, sampling=chance, release=release, n_classes=2, n_jobs=1,
        )  # fmt: skip
        assert released.statistics is not None
        sizes.append(released.statistics.counts[:, 0].astype(np.float64))
        noise = released.costs[0].scale
    spread = n * chance * (1 - chance) + noise**2
    faults = []
    low, high = (binom.ppf(q, 2 * points * n, chance) for q in (error / 8, 1 - error / 8))
    slack = 8 * noise * math.sqrt(2 * points)
    if not low - slack <= sizes[0].sum() + sizes[1].sum() <= high + slack:
        faults.append("samples are not of the size claimed")
    if ((sizes[0] - sizes[0].mean()) ** 2).sum() / spread < chi2.ppf(error / 8, points - 1) * 0.8:
        faults.append("validation points share their samples")
    if ((sizes[0] - sizes[1]) ** 2).sum() / (2 * spread) < chi2.ppf(error / 8, points) * 0.8:
        faults.append("releases share their samples")
    return faults


def _outputs(given: object, trials: int) -> Outputs:
    outputs = np.asarray(given, np.float64)
    outputs = outputs[:, None] if outputs.ndim == 1 else outputs
    if outputs.ndim != 2 or len(outputs) != trials:
        raise InputError(f"the mechanism must return {trials} releases, one row each; got shape {outputs.shape}")
    if not np.isfinite(outputs).all():
        raise InputError("the mechanism returned a release that is not finite")
    return outputs


_Games = tuple[dict[str, Trials], list[Cost]]


def _histogram_games(
    epsilon: float, delta: float, neighbours: Neighbours, sampling: float, trials: int | None
) -> _Games:
    """A run holds many games: pairs of validation points far from all others, each with a record of its own.

    A coin says whether the record is there (or, replaced, which label it has). It is near both points of its pair, or
    near one: the second game sees noise that is shared between points. With the geometry of the validation points
    taken into account, one record costs exactly the two points it can reach: each game has the whole claim at stake.
    """
    tau, far, at_once = 1.0, 8.0, 2_000
    offsets = {"near both points": (0.75 * tau, 1.0), "near one of two": (0.0, 0.0)}
    wanted = (trials or 20_000) // len(offsets)
    rng = np.random.default_rng()
    games: dict[str, Trials] = {}
    costs: list[Cost] = []
    for name, (offset, both) in offsets.items():
        views, coins = [], []
        for start in range(0, wanted, at_once):
            pairs = min(at_once, wanted - start)
            place = far * np.arange(pairs)
            points = np.stack([place, place + 1.5 * tau], axis=1).ravel()[:, None]
            is_in = rng.random(pairs) < 0.5
            records, labels = (place + offset)[:, None], is_in.astype(np.int64)
            if neighbours == "add-remove":
                records, labels = np.vstack([records[is_in], [[-far]]]), np.append(labels[is_in], 0)
            released = private_tknn_shapley(
                records, labels, points, np.ones(len(points), np.int64), tau, "euclidean", epsilon=epsilon,
                delta=delta, neighbours=neighbours, sampling=sampling, geometry=True, n_classes=2, n_jobs=1,
            )  # fmt: skip
            assert released.statistics is not None
            views.append(released.statistics.counts.reshape(pairs, 4).astype(np.float64))
            coins.append(is_in)
            costs = list(released.costs)
        view, present = np.concatenate(views), np.concatenate(coins)
        other = -1.0 if neighbours == "replace" else 0.0
        guess = np.array([1.0, other, both, both * other])
        games[name] = Trials(view, present, (guess,), one_run=neighbours == "add-remove")
    return games, costs


def _paper_games(epsilon: float, delta: float, neighbours: Neighbours, sampling: float, trials: int | None) -> _Games:
    """Many runs on one record more or less, near the only validation point."""
    data = {True: ([[0.0], [0.1], [5.0]], [1, 1, 0]), False: ([[0.0], [5.0]], [1, 0])}
    views: dict[bool, list[NDArray[np.int64]]] = {True: [], False: []}
    costs: list[Cost] = []
    for is_in, (X, y) in data.items():
        for _ in range((trials or 4_000) // 2):
            released = private_tknn_shapley(
                X, y, [[0.2]], [1], 1.0, "euclidean", epsilon=epsilon, delta=delta, neighbours=neighbours,
                sampling=sampling, release="paper", n_classes=2, n_jobs=1,
            )  # fmt: skip
            assert released.statistics is not None
            views[is_in].append(released.statistics.counts[0])
            costs = list(released.costs)
    first, second = (np.array(views[is_in], np.float64) for is_in in (True, False))
    return {"one neighbour more": in_turns(first, second, (np.ones(3),))}, costs


def _knn_games(
    epsilon: float, delta: float, neighbours: Neighbours, sampling: float, trials: int | None, k: int
) -> _Games:
    """Many runs on the pair that moves a value by all of 1/(k(k+1)): a record comes before the k-th of k matches."""
    X = np.arange(1.0, k + 1)[:, None]
    ahead, behind = ([[0.5]], [0]), ([[k + 1.0]], [0])
    views: dict[bool, list[float]] = {True: [], False: []}
    costs: list[Cost] = []
    for is_in in (True, False):
        extra = ahead if is_in else behind
        more, label = extra if is_in or neighbours == "replace" else ([], [])
        records = np.vstack([X, np.reshape(more, (-1, 1))])
        labels = [*([1] * k), *label]
        for _ in range((trials or 4_000) // 2):
            released = private_knn_shapley(
                records, labels, [[0.0]], [1], k=k, epsilon=epsilon, delta=delta, neighbours=neighbours,
                sampling=sampling, n_jobs=1,
            )  # fmt: skip
            views[is_in].append(float(released.values[k - 1]))
            costs = list(released.costs)
    first, second = (np.array(views[is_in])[:, None] for is_in in (True, False))
    return {"one value": in_turns(first, second, (-np.ones(1),))}, costs


def _layered_games(epsilon: float, trials: int | None, error: float) -> tuple[dict[str, Trials], list[Cost], list[str]]:
    """One record is for or against, among many that say nothing; each of those who join them is one trial.

    The promise is for every design: here it is a single large coalition that holds the record. What it can do to those
    who join must be small because the coalition is large, which is where a learner that is not stable is found out. An
    attacker who knows all but that record knows the values without noise, and looks at what is left.
    """
    from scipy.stats import gamma

    from datassay.value import Design, StableLogisticRegression, layered_shapley

    inside, joining, wanted = 100, 100, (trials or 4_000) // 2
    n = inside + joining
    model = StableLogisticRegression(kappa=1.0, lam=1.0, fit_intercept=False)
    design = Design(
        n, 1.0, 0.05, model.c, "hoeffding", 0, np.ones(n), (np.arange(inside),), np.ones(1, np.int64)
    )  # fmt: skip
    X_val, y_val = [[1.0], [-1.0]], [1, 0]
    X = np.concatenate([[1.0], np.zeros(inside - 1), np.ones(joining)])[:, None]
    labels = {True: np.ones(n, np.int64), False: np.append(0, np.ones(n - 1, np.int64))}
    known = layered_shapley(model, X, labels[False], X_val, y_val, design=design, n_jobs=1).values
    views: dict[bool, list[Outputs]] = {True: [], False: []}
    costs: list[Cost] = []
    for is_for, y in labels.items():
        for _ in range(math.ceil(wanted / joining)):
            released = private_layered_shapley(
                model, X, y, X_val, y_val, epsilon=epsilon, design=design, predict=False, n_jobs=1
            )
            scale = float(released.parameters["scale"] or 1.0)
            views[is_for].append(((released.values - known) / scale)[inside:])
            costs = list(released.costs)
    first, second = (np.concatenate(views[is_for])[:wanted, None] for is_for in (True, False))
    faults = []
    # What is left of the second is noise alone: Laplace of scale 1, the sum of whose sizes has a gamma distribution.
    if np.abs(second).sum() < gamma.ppf(error, len(second)):
        faults.append(f"there is less noise than claimed: {np.abs(second).mean():.3g} of it")
    textbook = private_layered_shapley(
        model, X, labels[True], X_val, y_val, epsilon=epsilon, design=design, constants="textbook", predict=False,
        n_jobs=1,
    )  # fmt: skip
    needed = 2 * model.c * (1 / inside + 1 / (inside + 1)) / n / epsilon  # Mathematics §6, by hand
    if float(textbook.parameters["scale"] or 0.0) < needed * (1 - 1e-9):
        faults.append("the noise is made for a smaller sensitivity than the learner has")
    return {"one record for or against": in_turns(first, second, (np.ones(1),))}, costs, faults


def _design_faults() -> list[str]:
    """Are values made of all coalitions of the design, whatever they are worth, and of no others?

    With next to no noise a value is what the formula says, which is computed here once more, one fit at a time. The
    labels are such that many coalitions do worse than guessing: leaving those out would be a choice by the data.
    """
    from datassay.value import Design, StableLogisticRegression, layered_design

    n = 6
    model = StableLogisticRegression(kappa=2.0, lam=0.5)
    design = layered_design(n, alpha=0.8, beta=0.05, c=model.c, seed=2)
    rng = np.random.default_rng(3)
    X, X_val = rng.normal(size=(n, 2)), rng.normal(size=(20, 2))
    y, y_val = (X[:, 0] + rng.normal(size=n) > 0).astype(int), (X_val[:, 0] > 0).astype(int)

    def utility(members: list[int]) -> float:
        if not members:
            return -math.log(2)
        fitted = StableLogisticRegression(**model.get_params()).fit(X[members], y[members])
        side = fitted.decision_function(X_val) * (1 if fitted.classes_[-1] == 1 else -1)
        loss = np.logaddexp(0, -np.where(y_val == 1, 1, -1) * side).mean()
        return max(-float(loss), -math.log(2))

    expected = np.zeros(n)
    for members, repeats in zip(design.members, design.repeats, strict=True):
        before = utility(members.tolist())
        for i in set(range(n)) - set(members.tolist()):
            gain = utility(sorted([*members.tolist(), i])) - before
            expected[i] += repeats * gain / (n * design.expected[len(members)])
    released = private_layered_shapley(
        model, X, y, X_val, y_val, epsilon=1e9, design=design, predict=False, n_jobs=1
    ).values
    off = float(np.abs(released - expected).max())
    faults = [] if off < 1e-5 else [f"values are not those of the published design, but off by {off:.3g}"]
    # With the empty coalition alone a value gets no noise: it must not know of anybody else, to the last bit.
    alone = Design(n, 1.0, 0.05, model.c, "hoeffding", 0, np.ones(n), (np.empty(0, np.int64),), np.ones(1, np.int64))
    told = []
    for last in (X[-1], 10 - X[-1]):
        others = np.vstack([X[:-1], last])
        values = private_layered_shapley(model, others, y, X_val, y_val, design=alone, predict=False, n_jobs=1).values
        told.append(values[:-1])
    if (told[0] != told[1]).any():
        faults.append("values depend on records of others that are in none of their coalitions")
    return faults
