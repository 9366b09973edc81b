"""Membership inference: whose record is in the model, guessed from how well the model predicts it.

For k-NN nothing is ever fitted: every record's nearest others are found once, who is in which model is one bit, and a
model's loss on a record is the share of wrong labels among the first k neighbours whose bit is set, the record itself
among them if it is in (Mathematics §7); ties go to the smaller index.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._checkpoint import digest
from datassay._choices import AttackName, Metric
from datassay._errors import InputError, UsageError
from datassay._run import Run, documented
from datassay._tensors import as_array
from datassay._work import Bar
from datassay.attacks.result import Attack
from datassay.neighbors import (
    EUCLIDEAN,
    DeviceSpace,
    FeatureSpace,
    Given,
    Ids,
    Labels,
    MatrixSpace,
    NearestRanking,
    Neighbours,
    Points,
    Ranked,
    as_floats,
    collect,
    space_on,
)
from datassay.results import Floats, Parameter
from datassay.value import Game, chance_of_fewer, knn_shapley, make_game, rank_chances

MOST_SHADOWS = 63  # with the model itself they fit into the bits of one word
T_WAKA_ERROR = 1e-12  # of t-WaKA scores: it says how many neighbours to look at


class Classifier(Protocol):
    """A classifier as scikit-learn has them."""

    classes_: NDArray[np.generic]

    def fit(self, X: NDArray[np.generic], y: NDArray[np.generic]) -> object:
        """Learn from records."""

    def predict_proba(self, X: NDArray[np.generic]) -> Floats:
        """Chances of the classes."""


@dataclass(frozen=True, eq=False)
class View:
    """All that an attack sees of one game.

    Attributes
    ----------
    loss
        Of the model under attack, on every target.
    shadow_loss, shadow_in
        Of the attacker's own models on every target (targets × models), and which of them hold the target.
    targets
        Positions of the targets in the population.
    grid
        The distance between possible losses, 1/k for k-NN; 0 if they are continuous.
    """

    loss: Floats
    shadow_loss: Floats
    shadow_in: NDArray[np.bool_]
    targets: NDArray[np.intp]
    grid: float


CustomAttack = Callable[[View], Floats]


@documented(knn_shapley)
def membership_attack(
    X: Points | Neighbours,
    y: Labels | None = None,
    method: AttackName | CustomAttack = "lira",
    k: int = 5,
    metric: Metric = EUCLIDEAN,
    *,
    model: Classifier | None = None,
    held: ArrayLike | None = None,
    shadow_held: Sequence[ArrayLike] | None = None,
    games: int = 48,
    targets: int | None = 100,
    shadows: int = 16,
    seed: int = 0,
    ids: Ids | None = None,
    **run: Unpack[Run],
) -> Attack:
    """Membership inference: scores that say whether a record was in the training data, from the model's loss on it.

    It plays security games. In each of them half of the records are the model's. The attacker knows the population, has
    ``shadows`` models of their own on random halves of it, and scores the targets.

    Parameters
    ----------
    X, y
        The population: features and labels, or a table; or :class:`Neighbours` of records among themselves in the place
        of all data, metric and ids.
    method
        ``"lira"``: Gaussian likelihood ratio of the loss, fitted to shadow models with and without the target
        (Carlini et al. 2022, online). ``"lira-offline"``: how unusually low the loss is for models without it.
        ``"t-waka"``: how much more the target moves the distribution of losses at or above the one observed than
        below it (Mathematics §4), which needs no shadow models. ``"confidence"``: how much more confident the model is
        than a k-NN of all others. ``"calibrated-confidence"``: the same against the mean of shadow models without the
        target. Or a function of yours from :class:`datassay.attacks.View` to scores.
    metric
        Of the k-NN model: ``"euclidean"``, ``"cosine"``, ``"manhattan"``, or ``"precomputed"``: then X is the matrix of
        distances between all records.
    model
        A scikit-learn classifier to attack instead of k-NN, by ``lira``, ``lira-offline``, ``calibrated-confidence``
        or a function; its shadow models are fitted once and serve all games. Losses are then −log(p/(1−p)) of the
        right label.
    held, shadow_held
        What the k-NN model holds in place of each record, row by row: noisy or coarsened copies, say; the attacker asks
        about the records as they are. Shadow models hold the same copies, or copies of the attacker's own making: then
        give one such array for each. ``t-waka`` and ``confidence``, which reckon with the record itself in the model,
        do not apply.
    games
        Number of games.
    targets
        Targets in each game; None: all records, for success rates of every one of them.
    shadows
        Shadow models, at most 63.
    seed
        Seed of all draws.
    memory
        Bytes for the neighbour search, 512 MiB if left out. Beside that, every target keeps its nearest 2k + O(√k)
        neighbours.
    progress
        True for a bar of the games on standard error, or a callback that gets (games played, games in all).

    Returns
    -------
    Attack
        Scores by game and target; ``attack.auc``, ``attack.tpr(0.01)``, ``attack.summary()``,
        ``attack.success_rates()``.

    References
    ----------
    Carlini et al., Membership Inference Attacks From First Principles, 2022. Mathematics §7.

    Examples
    --------
    >>> import datassay as da
    >>> table = da.load_dataset("census")
    >>> attack = da.membership_attack(table, method="t-waka", k=1, games=8)
    >>> 0.6 < attack.auc < 1.0
    True
    """
    name = method if isinstance(method, str) else getattr(method, "__name__", "custom")
    if isinstance(method, str):
        _checks.choice("method", method, get_args(AttackName))
        if model is not None and method in ("t-waka", "confidence"):
            raise UsageError(f'method="{method}" is about k-NN; leave out model, or attack it with lira')
        if held is not None and method in ("t-waka", "confidence"):
            raise UsageError(f'method="{method}" takes the model to hold the records themselves; use lira')
    if held is not None and (model is not None or metric == "precomputed"):
        raise UsageError('held is for k-NN models of features; leave out model, and metric="precomputed"')
    if shadow_held is not None and (held is None or len(shadow_held) != shadows):
        raise UsageError(f"shadow_held must come with held, and be one array for each of {shadows} shadow models")
    if model is not None and metric == "precomputed":
        raise UsageError("model needs features, not distances")
    if not isinstance(method, str) and not callable(method):
        raise UsageError(f"method must be a name or a function, got {type(method).__name__}")
    k = _checks.integer("k", k, at_least=1)
    games = _checks.integer("games", games, at_least=1)
    alone = model is None and method in ("t-waka", "confidence")  # they need no shadow models
    if not alone:
        shadows = _checks.integer("shadows", shadows, at_least=2, at_most=MOST_SHADOWS)
    seed = _checks.integer("seed", seed, at_least=0)
    if model is not None and run.get("device") is not None:
        raise UsageError("device finds the neighbours of k-NN models; leave it out with model")
    if model is not None and run.get("checkpoint") is not None:
        raise UsageError("checkpoint keeps the neighbours of k-NN models; leave it out with model")
    finding: Run = {**run, "progress": None}  # the bar is of games
    game = make_game(Given(X, y, metric=metric, ids=ids, among=True), **finding)
    metric = game.near.metric
    n = game.space.n_train
    if n < 4:
        raise InputError(f"a security game needs at least 4 records, got {n}")
    if targets is not None:
        targets = _checks.integer("targets", min(100, n) if targets == 100 else targets, at_least=2, at_most=n)
    if len(game.inputs.classes) < 2:
        raise InputError("there is one class only: every model is right about every record, and nothing can be told")
    if model is None and k > n // 2:
        raise UsageError(f"k={k} is more than half of the {n} records, which is all that a model has")
    generators = [np.random.default_rng([seed, number]) for number in range(games)]
    draws = [np.arange(n) if targets is None else np.sort(rng.choice(n, targets, replace=False)) for rng in generators]
    models: _KnnModels | _FittedModels
    if model is None:
        asked = np.unique(np.concatenate(draws))
        copies = [] if held is None else [held, *(shadow_held or ())]
        if run.get("checkpoint") is not None:
            others = digest(*(as_floats("held", one) for one in copies)) if copies else None
            game = game.keeping(
                f"membership_attack {name}",
                {"k": k, "games": games, "targets": targets, "shadows": shadows, "seed": seed, "held": others},
            )
        seen = [_among_copies(game, one, metric) for one in copies] or [game]
        looked_at = len(rank_chances(k, n, T_WAKA_ERROR)[0]) - 1 if method == "t-waka" else k
        models = _KnnModels(seen, asked, k, 0 if alone else shadows, also=looked_at)
    else:
        models = _FittedModels(game, model, shadows, seed)
    score = _scorer(method, models, k) if isinstance(method, str) else method
    played = []
    with Bar(run.get("progress"), games, "games") as report:
        for number, (rng, drawn) in enumerate(zip(generators, draws, strict=True)):
            inside, view = models.play(rng, drawn)
            played.append((_scores(score, view, number), inside, drawn, np.full(len(drawn), number)))
            report(1)
    values, members, about, numbers = (np.concatenate(parts) for parts in zip(*played, strict=True))
    settings: dict[str, Parameter] = {"games": games, "targets": targets, "shadows": None if alone else shadows}
    if model is None:
        device = game.space.device.type if isinstance(game.space, DeviceSpace) else None
        settings = {"k": k, "metric": metric, "held": None if held is None else "copies", **settings, "device": device}
    else:
        settings = {"model": type(model).__name__, **settings}
    return Attack(
        values=values,
        ids=game.inputs.ids[about],
        members=members,
        method=name,
        games=numbers,
        parameters={key: value for key, value in settings.items() if value is not None},
        seed=seed,
        notes=game.inputs.notes,
    )


def _scores(score: CustomAttack, view: View, number: int) -> Floats:
    """The scores of the targets of one game, checked."""
    try:
        given = np.asarray(score(view), np.float64)
    except ValueError:
        raise InputError("the attack must return one number for each target") from None
    if given.shape != view.targets.shape:
        raise InputError(f"the attack returned scores of shape {given.shape} for {len(view.targets)} targets")
    if np.isnan(given).any():
        raise InputError(f"the attack returned a score that is not a number in game {number}")
    return given


def _among_copies(game: Game, held: ArrayLike, metric: str) -> Game:
    """The same game, in which records look at copies of themselves and of the others."""
    points, copies = as_array(game.inputs.points), as_floats("held", held)
    if copies.shape != points.shape:
        raise InputError(f"held must have the shape of the records, {points.shape}; got {copies.shape}")
    device = game.space.device if isinstance(game.space, DeviceSpace) else None
    space = space_on(device, copies, points, metric, game.run, zero_rows=True)
    return replace(game, near=game.near.having(space=space))


def _half(rng: np.random.Generator, n: int) -> NDArray[np.bool_]:
    """A random half of n."""
    inside = np.zeros(n, bool)
    inside[rng.permutation(n)[: n // 2]] = True
    return inside


def nearest_others(game: Game, asked: NDArray[np.intp], limit: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The ``limit`` nearest others of the records asked about, and how many of them come before the record itself.

    Duplicates do, if their index is smaller; where more than ``limit`` do, it is not said how many.
    """
    space = game.space
    assert isinstance(space, FeatureSpace | MatrixSpace | DeviceSpace)
    kept = None if isinstance(space, DeviceSpace) or game.run.checkpoint else game.near.nearest_kept(limit + 1)
    if kept is not None:
        assert not isinstance(space, DeviceSpace)
        order = kept[asked]
        return order[:, :limit].copy(), space.before_self(asked, order)
    some = space.seen_from(asked)

    def compute(block: Ranked) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        order = block.here().order
        own = order == asked[block.rows, None]
        ahead = np.where(own.any(axis=1), own.argmax(axis=1), limit + 1)
        own[~own.any(axis=1), -1] = True  # all of these come before it
        return order[~own].reshape(len(own), -1), ahead

    found, ahead = collect(some, NearestRanking(limit + 1), compute, game.run)
    return found, ahead


class _KnnModels:
    """k-NN models of random halves; ``games`` is one for all models, or one for each that holds copies of its own."""

    def __init__(self, games: list[Game], asked: NDArray[np.intp], k: int, shadows: int, also: int = 0) -> None:
        self.game, self.games, self.asked, self.k, self.shadows = games[0], games, asked, k, shadows
        self.n = self.game.space.n_train
        limit = min(self.n - 1, max(also, _ranks_for_half(k, self.n - 1)))
        self.lists = [nearest_others(game, asked, limit) for game in games]

    def place(self, records: NDArray[np.intp]) -> NDArray[np.intp]:
        """Rows of the neighbour lists."""
        return np.searchsorted(self.asked, records)

    def play(self, rng: np.random.Generator, targets: NDArray[np.intp]) -> tuple[NDArray[np.bool_], View]:
        """Draw the model and its shadows, and count votes: who is in the model, and what the attacker sees."""
        from datassay.attacks import kernels

        bits = np.zeros(self.n, np.uint64)
        for place in range(1 + self.shadows):
            bits |= _half(rng, self.n).astype(np.uint64) << np.uint64(place)
        codes, rows = self.game.inputs.codes, self.place(targets)
        models = [1] * len(self.games) if len(self.games) > 1 else [1 + self.shadows]
        counts = []
        for at, (game, together) in enumerate(zip(self.games, models, strict=True)):
            wrong = np.empty((len(targets), together), np.int32)
            own = bits >> np.uint64(at)
            while not kernels.count_wrong(*self.lists[at], rows, codes, targets, own, self.k, wrong):
                # A list ran out before k members were found: next to impossible, and mended by longer lists.
                longer = min(self.n - 1, 2 * self.lists[at][0].shape[1])
                self.lists[at] = nearest_others(game, self.asked, longer)
            counts.append(wrong)
        loss = np.concatenate(counts, axis=1) / self.k
        inside = (bits[targets, None] >> np.arange(1 + self.shadows, dtype=np.uint64)) & np.uint64(1) == 1
        return inside[:, 0], View(loss[:, 0], loss[:, 1:], inside[:, 1:], targets, 1 / self.k)


def _ranks_for_half(k: int, n: int) -> int:
    """How many of n neighbours hold k members of a random half, but for a chance of 1e-15."""
    return k + bisect_left(range(k, n), True, key=lambda ranks: chance_of_fewer(ranks, k) <= 1e-15)


class _FittedModels:
    """Models of random halves that must be fitted: a pool of shadow models serves all games."""

    def __init__(self, game: Game, model: Classifier, shadows: int, seed: int) -> None:
        self.game, self.model = game, model
        if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "predict_proba")):
            raise UsageError(
                f"model must have fit and predict_proba, as scikit-learn's have; got {type(model).__name__}"
            )
        self.points = as_array(game.inputs.points)
        self.rng = np.random.default_rng([seed, 2**32])
        n = game.space.n_train
        self.inside = np.stack([_half(self.rng, n) for _ in range(shadows)], axis=1)
        self.loss = np.stack([self._losses(inside, np.arange(n)) for inside in self.inside.T], axis=1)

    def _losses(self, inside: NDArray[np.bool_], targets: NDArray[np.intp]) -> Floats:
        """−log(p/(1−p)) of the right labels under a model of these records."""
        from sklearn.base import clone

        codes = self.game.inputs.codes
        model = clone(self.model)
        settings = model.get_params() if hasattr(model, "get_params") else {}
        if "random_state" in settings and settings["random_state"] is None:  # the seed is that of all draws
            model.set_params(random_state=int(self.rng.integers(2**31)))
        try:
            model.fit(self.points[inside], codes[inside])
        except ValueError as error:
            raise InputError(f"the model cannot be fitted to half of the records: {error}") from None
        place = np.full(len(self.game.inputs.classes), -1)
        place[model.classes_.astype(np.intp)] = np.arange(len(model.classes_))
        chances = model.predict_proba(self.points[targets])
        at = place[codes[targets]]
        right = np.where(at >= 0, chances[np.arange(len(targets)), at], 0.0)
        right = np.clip(right, 1e-4, 1 - 1e-4)  # chances of 0 and 1 are a coarse model's, and no certainty
        return np.asarray(np.log1p(-right) - np.log(right))

    def play(self, rng: np.random.Generator, targets: NDArray[np.intp]) -> tuple[NDArray[np.bool_], View]:
        """Draw the model: who is in it, and what the attacker sees."""
        inside = _half(rng, self.game.space.n_train)
        view = View(self._losses(inside, targets), self.loss[targets], self.inside[targets], targets, 0.0)
        return inside[targets], view


def _scorer(method: AttackName, models: "_KnnModels | _FittedModels", k: int) -> CustomAttack:
    """The attack of this name; what it needs of the population is computed once."""
    by_shadows = {"lira": _lira, "lira-offline": _lira_offline, "calibrated-confidence": _calibrated}
    if method in by_shadows:
        return by_shadows[method]
    assert isinstance(models, _KnnModels)
    codes = models.game.inputs.codes
    own = codes[models.asked]
    if method == "confidence":
        expected = (codes[models.lists[0][0][:, :k]] != own[:, None]).mean(axis=1)
        return lambda view: expected[models.place(view.targets)] - view.loss
    from datassay.attacks import kernels

    table = np.empty((len(own), k + 1))  # t-WaKA at every loss 0, 1/k, …, 1 that may be observed
    chances, _ = rank_chances(k, models.n, T_WAKA_ERROR)
    kernels.write_target_waka(models.lists[0][0], codes, own, chances, k, table)
    return lambda view: table[models.place(view.targets), np.rint(view.loss * k).astype(np.intp)]


_Moments = tuple[Floats, Floats, NDArray[np.bool_]]


def _moments(view: View) -> tuple[_Moments, _Moments]:
    """Mean and variance of the shadow losses of models with the target, and where there are any; the same without it.

    A handful of models says little about a variance: it is drawn towards the mean variance of all targets, as if from
    eight models more. Losses on a grid get the variance of rounding to it as well.
    """
    found = []
    for chosen in (view.shadow_in, ~view.shadow_in):
        count = chosen.sum(axis=1)
        some = np.maximum(count, 1)
        mean = np.where(chosen, view.shadow_loss, 0).sum(axis=1) / some
        spread = np.where(chosen, (view.shadow_loss - mean[:, None]) ** 2, 0).sum(axis=1) / some
        found.append((count, mean, spread))
    typical = float(np.mean([spread.mean() for _, _, spread in found]))
    inside, outside = (
        (mean, (count * spread + 8 * typical) / (count + 8) + view.grid**2 / 12 + 1e-18, count > 0)
        for count, mean, spread in found
    )
    return inside, outside


def _log_density(loss: Floats, mean: Floats, variance: Floats) -> Floats:
    return np.asarray(-0.5 * np.log(variance) - 0.5 * (loss - mean) ** 2 / variance)


def _lira(view: View) -> Floats:
    inside, outside = _moments(view)
    ratio = _log_density(view.loss, *inside[:2]) - _log_density(view.loss, *outside[:2])
    return np.where(inside[2] & outside[2], ratio, 0.0)


def _lira_offline(view: View) -> Floats:
    mean, variance, known = _moments(view)[1]
    return np.where(known, (mean - view.loss) / np.sqrt(variance), 0.0)


def _calibrated(view: View) -> Floats:
    mean, _, known = _moments(view)[1]
    return np.where(known, mean - view.loss, 0.0)
