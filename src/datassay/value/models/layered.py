"""Layered Shapley: many small coalitions, few large ones, and a promise about the error.

Where a record adds at most c/k to the utility of k others, small coalitions tell nearly everything. Layer k, the
coalitions of size k, is given m_k = c²/(2α²k²) · ln(2n/β) coalitions without each record, and

    φ̂_i = (1/n) Σ_k (1/m_k) Σ_{C in layer k, i not in C} [v(C∪i) − v(C)]

is within α of the Shapley value but for a chance of β. Layers with m_k below 1 are drawn with chance m_k, layers
small enough are visited whole, and layer 0 is there (Mathematics §6; the published algorithm leaves it out). The drawn
coalitions are a core set: known by index alone, kept, and used again for newcomers.
"""

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Bound
from datassay._errors import InputError, UsageError
from datassay._run import documented
from datassay._tensors import as_array
from datassay._version import __version__
from datassay.data import Labels, Points, Table, prepare
from datassay.results import Axes, Fact, Floats, Parameter, Result, as_facts, axes_on
from datassay.value.estimate import Estimate
from datassay.value.figures import draw_design
from datassay.value.models.coalitions import (
    Estimator,
    ModelGame,
    Task,
    is_regressor,
    is_stable,
    make_model_game,
    players,
)
from datassay.value.models.options import Intervals
from datassay.value.models.orders import data_shapley
from datassay.value.models.sampling_error import SamplingError
from datassay.value.models.tally import Tally, quantile

Ints = NDArray[np.int64]
MOST_COALITIONS = 20_000_000


def number_of_subsets(n: int, size: int) -> float:
    """Subsets of a size, or infinity where there are too many to matter."""
    near = min(size, n - size)
    return math.inf if near > 30 and n > 60 else float(math.comb(n, size))


def layer_counts(n: int, alpha: float, beta: float, c: float, bound: Bound = "hoeffding") -> Floats:
    """m_k for k = 0 … n−1: expected coalitions of size k without a given record; all of them where there are fewer.

    ``hoeffding`` is the published count, from a bound on every layer by itself. Errors of layers are independent and
    are averaged, and Bernstein's inequality for their mean promises the same with s times as many, usually far fewer:
    ln(2/β) = α² / (2 (V + b α/3)), V = 2α²/(n L s) the variance of the mean, b = 4α²/(c L s) the most by which one term
    is off, L = ln(2n/β).

    >>> layer_counts(100, 0.1, 0.05, 1.0).round(2)[[0, 1, 20, 99]].tolist()
    [1.0, 99.0, 1.04, 0.04]
    """
    k = np.arange(n)
    log = math.log(2 * n / beta)
    counts = c**2 / (2 * alpha**2) * log / np.maximum(k, 1.0) ** 2
    if bound == "bernstein":
        counts = counts * 2 * math.log(2 / beta) * (2 / n + 4 * alpha / (3 * c)) / log
    counts[0] = 1.0
    every = np.array([number_of_subsets(n - 1, size) for size in k.tolist()])
    return np.asarray(np.minimum(counts, every))


@dataclass(frozen=True, eq=False)
class Design(Result):
    """Coalitions drawn for Layered Shapley values, by index: a core set that can be kept and used again.

    Attributes
    ----------
    n
        Players among whom coalitions were drawn.
    alpha, beta, c, bound, seed
        What was promised, under which assumption, and what the coalitions were drawn from.
    expected
        m_k: for each size k, the number of coalitions without a given player that is expected; what sums are divided
        by.
    members
        The coalitions, one array of sorted players each, the smallest first.
    repeats
        How often each was drawn.

    Its data frames have a row for each coalition: size, repeats.

    Examples
    --------
    >>> import datassay as da
    >>> design = da.layered_design(100, alpha=0.5, beta=0.05, c=1.0)
    >>> 20 < design.coalitions_per_player < 40, design.fits < 4000
    (True, True)
    """

    COLUMNS: ClassVar = {"size": "sizes", "repeats": "repeats"}

    n: int
    alpha: float
    beta: float
    c: float
    bound: Bound
    seed: int
    expected: Floats
    members: tuple[Ints, ...]
    repeats: Ints
    version: str = __version__

    def __post_init__(self) -> None:
        """Sums and sensitivities rest on this: a design may come from a file, and is believed in nothing."""
        members = tuple(np.asarray(m, np.int64) for m in self.members)
        repeats, expected = np.asarray(self.repeats, np.int64), np.asarray(self.expected, np.float64)
        sizes = np.array([len(m) for m in members], np.int64)
        sound = (
            len(repeats) == len(members) > 0
            and expected.shape == (self.n,)
            and bool(np.isfinite(expected).all() and (expected > 0).all() and (repeats >= 1).all())
            and bool((np.diff(sizes) >= 0).all())
            and all(
                len(m) < self.n and (m >= 0).all() and (m < self.n).all() and (np.diff(m) > 0).all() for m in members
            )
            and self.bound in get_args(Bound)
            and all(0 < number < math.inf for number in (self.alpha, self.beta, self.c))
            and self.beta < 1
        )
        if not sound:
            raise InputError(
                "this is no design: coalitions must be sorted by size, players within them, each drawn at least once"
            )
        for name, array in (("members", members), ("repeats", repeats), ("expected", expected)):
            object.__setattr__(self, name, array)
        super().__post_init__()

    def _who(self) -> str:
        return "coalitions"

    def __repr__(self) -> str:
        return (
            f"Design(n={self.n}, alpha={self.alpha:g}, beta={self.beta:g}, c={self.c:g}: {len(self.members):,} "
            f"coalitions, {self.fits:,} fits for all players)"
        )

    @cached_property
    def sizes(self) -> Ints:
        """Players in each coalition."""
        return np.array([len(members) for members in self.members], np.int64)

    @cached_property
    def weights(self) -> Floats:
        """What a contribution to each coalition counts for: how often it was drawn, over n·m_k."""
        return np.asarray(self.repeats / (self.n * self.expected[self.sizes]))

    def is_whole(self, size: int) -> bool:
        """Whether all coalitions of this size are in the design."""
        return bool(self.expected[size] == number_of_subsets(self.n - 1, size))

    @property
    def fits(self) -> int:
        """Models to be fitted to value all players: each coalition, and each joined by every player not in it."""
        return int((self.sizes > 0).sum() + (self.n - self.sizes).sum())

    @property
    def coalitions_per_player(self) -> float:
        """Coalitions that the value of one player is made of, on average."""
        return float((self.n - self.sizes).sum() / self.n)

    @cached_property
    def share_touched(self) -> float:
        """Share of the other players whose records the value of a player depends on, on average over players."""
        if self.n == 1:
            return 0.0
        together = np.zeros((self.n, self.n), np.bool_)
        for members in self.members:
            if len(members):
                others = np.ones(self.n, np.bool_)
                others[members] = False
                together[np.ix_(np.flatnonzero(others), members)] = True
        return float(together.sum() / (self.n * (self.n - 1)))

    def facts(self) -> dict[str, Fact]:
        """The headline numbers.

        ``players``, ``alpha``, ``beta``, ``c``; ``coalitions``, ``coalitions_per_player``, ``fits`` for all players.
        """
        return as_facts(
            {
                "players": self.n, "alpha": self.alpha, "beta": self.beta, "c": self.c,
                "coalitions": len(self.members), "coalitions_per_player": self.coalitions_per_player,
                "fits": self.fits,
            }
        )  # fmt: skip

    def summary(self) -> str:
        """What the design promises and takes, in words."""
        whole = [k for k in range(self.n) if self.is_whole(k)]
        return (
            f"A design for {self.n:,} players: values within {self.alpha:g} but for a chance of {self.beta:g} each, if "
            f"a record adds at most {self.c:g}/k to k others. {len(self.members):,} coalitions, "
            f"{self.coalitions_per_player:,.0f} for each player; sizes visited whole: {_checks.listed(whole)}. "
            f"All players take {self.fits:,} model fits, a new one {len(self.members):,}."
        )

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw how many coalitions there are of each size, named ``label`` in the legend; returns the axes."""
        drawn = np.bincount(self.sizes, self.repeats, minlength=self.n)
        title = f"{self.fits:,} fits for {self.n:,} players"
        return draw_design(axes_on(ax, 6, 4), drawn, self.expected, title, label)

    def value(
        self,
        model: Estimator,
        X: object,
        y: object = None,
        X_new: object | None = None,
        y_new: object = None,
        X_val: object | None = None,
        y_val: Labels | None = None,
        **options: Unpack[Intervals],
    ) -> Estimate:
        """What new records would be worth to those of X, the players of this design: each as if it came alone.

        A contributor's batch is worth the sum of its records' values, or their mean for each record. It takes one fit
        for each coalition and one more for each new record. ``ids`` are those of the new records.

        Examples
        --------
        >>> import datassay as da
        >>> train, validation, batch = da.census(120, seed=1).split(0.4, 0.5, 0.1)
        >>> model = da.StableLogisticRegression(kappa=3.0)
        >>> design = da.layered_design(len(train), alpha=2.0, c=model.c)
        >>> values = design.value(model, train, X_new=batch, X_val=validation, n_jobs=1)
        >>> worth_of_the_batch = values.values.sum()
        """
        inputs = prepare(X, y, X_val, y_val, numeric=is_regressor(model))
        if X_new is None:
            raise UsageError("X_new must be given: the records that are to be valued")
        if isinstance(X_new, Table) != isinstance(X, Table):
            raise UsageError("X and X_new must both be Tables, or neither")
        newcomers = prepare(X_new, y_new, X_val, y_val, ids=options.get("ids"), numeric=is_regressor(model))
        points = as_array(newcomers.points)
        if isinstance(X_new, Table):
            assert inputs.encoder is not None
            points = np.asarray(inputs.encoder.transform(X_new)[0])
        old = as_array(inputs.points)
        if old.ndim != 2 or points.ndim != 2 or old.shape[1] != points.shape[1]:
            raise InputError(f"X_new has {points.shape[-1]} columns and X {old.shape[-1]}")
        owners = players(options.get("groups"), inputs, X)[1]
        if int(owners.max()) + 1 != self.n:
            raise InputError(f"the design is for {self.n:,} players, and there are {int(owners.max()) + 1:,}")
        new = len(newcomers.labels)
        asked = options | {"groups": np.concatenate([owners, self.n + np.arange(new)]), "seed": self.seed, "ids": None}
        game = make_model_game(
            model, np.vstack([old, points]), np.concatenate([inputs.labels, newcomers.labels]),
            as_array(inputs.points_val), inputs.labels_val, asked,
        )  # fmt: skip
        alone = replace(
            game, ids=newcomers.ids, labels=None if game.inputs.n_classes == 0 else newcomers.labels, sizes=None,
            notes=tuple(dict.fromkeys([*inputs.notes, *game.notes])),
        )  # fmt: skip
        return evaluate_design(game, self, newcomers=alone)


def load_design(path: str | os.PathLike[str]) -> Design:
    """The design that :meth:`Design.save` wrote: indices and settings, nothing of the data.

    >>> import datassay as da, tempfile, pathlib
    >>> file = da.layered_design(20, alpha=0.5, c=1.0).save(pathlib.Path(tempfile.mkdtemp()) / "core.json")
    >>> da.load_design(file).n
    20
    """
    return Design.load(path)


def layered_design(
    n: int, alpha: float = 0.1, beta: float = 0.05, c: float = 1.0, *, bound: Bound = "hoeffding", seed: int = 0
) -> Design:
    """Draw the coalitions of Layered Shapley values for n players, by index alone: no data is needed.

    A coalition serves every player who is not in it, so layer k is given m_k·n/(n−k) of them, m_k for each player.

    Parameters
    ----------
    n
        Players.
    alpha, beta
        The promise: a value is off by more than ``alpha`` with a chance of at most ``beta``.
    c
        The assumption: a record adds at most c/k to the utility of k others.
    bound
        How many coalitions that takes: ``"hoeffding"`` (as published), or ``"bernstein"``, which promises the same
        with fewer (see :func:`layered_shapley`).

    Examples
    --------
    >>> import datassay as da
    >>> da.layered_design(50, alpha=0.2, c=1.0).members[0].tolist()  # the empty coalition comes first
    []
    """
    n = _checks.integer("n", n, at_least=1)
    alpha, c = _checks.number("alpha", alpha, above=0), _checks.number("c", c, above=0)
    beta = _checks.number("beta", beta, above=0, below=1)
    _checks.choice("bound", bound, get_args(Bound))
    seed = _checks.integer("seed", seed, at_least=0)
    wanted = layer_counts(n, alpha, beta, c, bound)
    k = np.arange(n)
    draws = wanted * n / (n - k)
    if draws.sum() > MOST_COALITIONS:
        raise UsageError(f"alpha={alpha:g} with c={c:g} takes {draws.sum():.2g} coalitions; allow a larger error")
    rng = np.random.default_rng(seed)
    expected = np.empty(n)
    members: list[Ints] = []
    repeats: list[int] = []
    for size in range(n):
        every = number_of_subsets(n, size)
        if draws[size] >= every * (1 - 1e-12):
            members += [np.array(one, np.int64) for one in combinations(range(n), size)]
            repeats += [1] * int(every)
            expected[size] = number_of_subsets(n - 1, size)
            continue
        number = math.ceil(draws[size]) if draws[size] >= 1 else int(rng.random() < draws[size])
        expected[size] = (math.ceil(draws[size]) if draws[size] >= 1 else draws[size]) * (n - size) / n
        drawn, times = _subsets(rng, n, size, number)
        members += drawn
        repeats += times
    return Design(n, alpha, beta, c, bound, seed, expected, tuple(members), np.array(repeats, np.int64))


def _subsets(rng: np.random.Generator, n: int, size: int, number: int) -> tuple[list[Ints], list[int]]:
    """Uniform subsets of a size, drawn independently; equal ones once, with how often they came."""
    found = Counter(np.sort(rng.choice(n, size, replace=False)).astype(np.int64).tobytes() for _ in range(number))
    return [np.frombuffer(key, np.int64) for key in found], list(found.values())


def assumed_c(model: Any, c: float | None) -> float:
    """The constant of the promise: the learner's own where it is known, else what the user vouches for."""
    if c is not None:
        c = _checks.number("c", c, above=0)
    if is_stable(model):
        model.check_parameters()
        if c is not None and c < model.c:
            raise UsageError(f"c={c:g} is less than what the learner can do, c={model.c:g}; leave it out")
        return float(model.c) if c is None else c
    if c is not None:
        return c
    raise UsageError(
        f"give c, such that a record adds at most c/k to the score of k others: it is not known for "
        f"{type(model).__name__} (StableLogisticRegression knows its own)"
    )


@documented(data_shapley)
def layered_shapley(
    model: Estimator,
    X: Points,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    c: float | None = None,
    bound: Bound | None = None,
    design: Design | None = None,
    **options: Unpack[Intervals],
) -> "LayeredValues":
    """Layered Shapley values: within ``alpha`` of the Shapley values but for a chance of ``beta`` each.

    Parameters
    ----------
    model
        A :class:`datassay.StableLogisticRegression`, whose ``c`` is known, or anything for which you vouch for ``c``.
    alpha, beta, c, bound
        The promise (0.1 and 0.05 if left out) and its assumption; see :func:`layered_design`.
    design
        Coalitions drawn before, by :func:`layered_design`, instead of ``alpha``, ``beta``, ``c``, ``bound`` and
        ``seed``. Its ``fits`` says beforehand how many models will be fitted; so does the progress bar.

    Intervals are those of the sampling error as observed, usually far narrower than what is promised. The ``design`` of
    the result can be saved, and can value newcomers: :meth:`Design.value`.

    References
    ----------
    Watson, Andreeva, Yang & Sarkar, Differentially Private Shapley Values for Data Evaluation, 2022. Mathematics §6.

    Examples
    --------
    >>> import datassay as da
    >>> train, validation = da.census(120, seed=1).split(0.5)
    >>> model = da.StableLogisticRegression(kappa=3.0, lam=1.0)
    >>> values = da.layered_shapley(model, train, X_val=validation, alpha=2.0, n_jobs=1)
    >>> values.coalitions == values.design.fits  # known before it starts
    True
    """
    if design is not None and not isinstance(design, Design):
        raise UsageError(f"design must be what layered_design returns, got {type(design).__name__}")
    given = {"alpha": alpha, "beta": beta, "c": c, "bound": bound}
    if design is not None and any(value is not None for value in given.values()):
        named = ", ".join(name for name, value in given.items() if value is not None)
        raise UsageError(f"the design has its own alpha, beta, c and bound: leave out {named}")
    known_c = None if design is not None else assumed_c(model, c)
    game = make_model_game(model, X, y, X_val, y_val, options)
    if design is None:
        assert known_c is not None
        promise: dict[str, Any] = {name: value for name, value in given.items() if value is not None and name != "c"}
        design = layered_design(game.n_players, c=known_c, seed=game.rules.seed, **promise)
    elif design.n != game.n_players:
        raise InputError(f"the design is for {design.n:,} players, and there are {game.n_players:,}")
    notes = []
    own = assumed_c(model, None) if is_stable(model) else 0.0
    if design.c < own * (1 - 1e-9):
        notes.append(f"the design is for c={design.c:g}, less than the learner's {own:g}: its promise does not hold")
    if game.n_players <= 24 and 2**game.n_players <= design.fits:
        notes.append(
            f"all {2**game.n_players:,} coalitions take fewer fits than this design: data_shapley(sampling='exact')"
        )
    result = evaluate_design(game, design, notes)
    return LayeredValues(**{one.name: getattr(result, one.name) for one in fields(Estimate)}, design=design)


@dataclass(frozen=True, eq=False, repr=False)
class LayeredValues(Estimate):
    """Layered Shapley values and the design they were made from.

    ``design`` can be saved (:meth:`Design.save`) and can value newcomers (:meth:`Design.value`); the file of the values
    does not hold it.

    Examples
    --------
    >>> import datassay as da
    >>> train, validation = da.census(60, seed=1).split(0.5)
    >>> model = da.StableLogisticRegression()
    >>> da.layered_shapley(model, train, X_val=validation, alpha=1.0, n_jobs=1).design.n
    30
    """

    design: Design | None = field(default=None, compare=False)


def mask_of(members: Ints, n: int) -> NDArray[np.bool_]:
    """A coalition as a mask over n players."""
    present = np.zeros(n, np.bool_)
    present[members] = True
    return present


def evaluate_design(
    game: ModelGame, design: Design, notes: Sequence[str] = (), newcomers: ModelGame | None = None
) -> Estimate:
    """Values by a design: each of its coalitions is fitted, and joined by each player not in it.

    ``newcomers``, a game of them alone, are the last players of the first, in no coalition, and the ones valued.
    """
    n, new = design.n, 0 if newcomers is None else newcomers.n_players
    run = Tally(game, "layered_shapley", "model fits")
    joining: list[Ints] = [
        np.arange(n, n + new) if new else np.flatnonzero(~mask_of(members, n)) for members in design.members
    ]
    players = n + new
    # A newcomer is in no coalition: all of a layer count, n/(n−k) times as many; and everybody is one layer more.
    expected = design.expected * (n / (n - np.arange(n)) if new else 1.0)
    layers = n + 1 if new else n

    def tasks() -> Iterator[Task]:
        for members, others in zip(design.members, joining, strict=True):
            if len(members):
                yield Task("sets", mask_of(members, players)[None, :])
            yield Task("joined", mask_of(members, players), others)
        if new:
            yield Task("sets", mask_of(np.arange(n), players)[None, :])
            yield Task("joined", mask_of(np.arange(n), players), joining[0])

    fits = (len(design.members) + 1) * (new + 1) - 1 if new else design.fits
    stream = run.answers(tasks(), fits)

    def gains(size: int, others: Ints) -> Floats:
        before = None if size == 0 else next(stream, None)
        joined = next(stream, None)
        if joined is None or (size and before is None):
            run.give_up(f"all {fits:,}")
        base = game.empty if before is None else float(game.filled(before.utilities)[0])
        return game.filled(joined.utilities) - base

    values = np.zeros(players)
    error = SamplingError(players, design.c)
    at = 0
    for size in range(n):  # a layer at a time: its sum, and how much its terms differ
        stop = int(np.searchsorted(design.sizes, size, side="right"))
        total, squares, times = np.zeros(players), np.zeros(players), np.zeros(players)
        for place in range(at, stop):
            gain, who = gains(size, joining[place]), joining[place]
            total[who] += design.repeats[place] * gain
            squares[who] += design.repeats[place] * gain**2
            times[who] += design.repeats[place]
        values += total / expected[size] / layers
        if not design.is_whole(size):
            drawn = int(design.repeats[at:stop].sum())
            spread = (squares - total**2 / drawn) * drawn / (drawn - 1) if drawn > 1 else squares
            error.add(size, spread, squares, times, expected[size] * layers**2)
        at = stop
    promise: dict[str, Parameter] = {"alpha": design.alpha, "beta": design.beta, "c": design.c, "bound": design.bound}
    valued = slice(0, n)
    if newcomers is not None:
        values[n:] += gains(n, joining[0]) / layers
        run.game, valued, promise["newcomers"] = newcomers, slice(n, None), new
    stream.close()
    run.stopped = "design"
    errors, freedom = error.of_values()
    half = errors * quantile(game.rules.confidence, freedom)
    return run.result(values[valued], "layered_shapley", promise, errors[valued], half[valued], notes)
