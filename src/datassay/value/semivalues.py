"""What a record is worth to any model: Data Shapley, Banzhaf, Beta Shapley, leave-one-out and out-of-bag values.

A semivalue is the mean, over coalitions of the others drawn by size, of what a record adds to the model's score. Each
coalition takes a model fit, so coalitions are sampled: in orders along which the records join one after the other
(Castro et al. 2009; Ghorbani & Zou 2019), or, for Banzhaf values, as sets that serve everybody at once (Wang & Jia
2023). Every value comes with an interval. Games small enough for it are enumerated, and exact.
"""

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._checkpoint import Checkpoint
from datassay._choices import Sampling
from datassay._errors import InputError, LostError, UsageError
from datassay._work import Bar, Progress, chunks
from datassay.results import Parameter
from datassay.value.coalitions import (
    Answer,
    Estimator,
    FittedModels,
    ModelGame,
    OnFailure,
    Scoring,
    Task,
    make_model_game,
)
from datassay.value.estimate import Estimate
from datassay.value.workers import UtilityCache, WorkerLostError, check_known, evaluate

Floats = NDArray[np.float64]

DEFAULT_COALITIONS = 10_000
FEWEST_DRAWS = 30  # before an interval is trusted to end the run
STRATA = 4
LARGEST_ENUMERATION = 24


@dataclass(frozen=True)
class Rules:
    """When to stop, and how to run."""

    max_coalitions: int | None = None
    max_seconds: float | None = None
    max_width: float | None = None
    confidence: float = 0.95
    seed: int = 0
    n_jobs: int | None = None
    cache: object | None = None
    progress: Progress = None
    by_default: bool = False
    client: object | None = None
    checkpoint: object | None = None


def _rules(
    max_coalitions: int | None,
    max_seconds: float | None,
    max_width: float | None,
    confidence: float,
    seed: int,
    n_jobs: int | None,
    cache: object | None,
    progress: Progress,
    default: int = DEFAULT_COALITIONS,
    client: object | None = None,
    checkpoint: object | None = None,
) -> Rules:
    if max_coalitions is not None:
        max_coalitions = _checks.integer("max_coalitions", max_coalitions, at_least=1)
    if max_seconds is not None:
        max_seconds = _checks.number("max_seconds", max_seconds, above=0)
    if max_width is not None:
        max_width = _checks.number("max_width", max_width, above=0)
    by_default = max_coalitions is None and max_seconds is None and max_width is None
    if by_default:
        max_coalitions = default
    return Rules(
        max_coalitions,
        max_seconds,
        max_width,
        _checks.number("confidence", confidence, above=0, below=1),
        _checks.integer("seed", seed, at_least=0),
        n_jobs,
        cache,
        progress,
        by_default,
        client,
        checkpoint,
    )


@dataclass(eq=False)
class Run:
    """What happened on the way: counted, timed, and stopped by the rules."""

    game: ModelGame
    rules: Rules
    method: str
    what: str = "coalitions"
    coalitions: int = 0
    fits: int = 0
    failures: int = 0
    message: str = ""
    stopped: str = ""
    started: float = field(default_factory=time.time)
    cache: UtilityCache | None = None
    _track: list[tuple[int, float, float, Floats]] = field(default_factory=list)
    _next: float = 0.0

    def __post_init__(self) -> None:
        if self.rules.checkpoint is not None:
            if self.rules.cache is not None:
                raise UsageError("a checkpoint has a cache of its own: leave out one of cache and checkpoint")
            check_known(self.game)
            told: dict[str, Parameter] = {"seed": self.rules.seed, **self.game.told}
            checkpoint = Checkpoint(self.rules.checkpoint, self.method, told, self.game.fingerprint)
            self.cache = UtilityCache(checkpoint.folder / "utilities.sqlite", self.game)
        elif self.rules.cache is not None:
            self.cache = UtilityCache(self.rules.cache, self.game)

    def answers(self, tasks: Iterator[Task], total: int | None) -> Iterator[Answer]:
        """Answers in order, with progress; an interruption ends them, and is remembered."""
        rules = self.rules
        bar = Bar(rules.progress, total or 0, self.what)
        stream = evaluate(
            self.game, tasks, n_jobs=rules.n_jobs, client=rules.client, cache=self.cache, seconds=rules.max_seconds
        )
        with bar as report:
            try:
                for answer in stream:
                    self._count(answer)
                    if total is None:
                        bar.extend(max(self.coalitions, self._guess()))
                    report(len(answer.utilities) if self.what != "bags" else 1)
                    yield answer
                if rules.max_seconds is not None and time.time() > self.started + rules.max_seconds:
                    self.stopped = self.stopped or "seconds"
            except KeyboardInterrupt:
                self.stopped = "interrupted"
            except WorkerLostError as error:
                self.stopped = "workers"
                self.message = str(error)
            except LostError as error:
                kept = "with cache=FILE or checkpoint=FOLDER a next run could go on from there"
                if self.cache is not None:
                    kept = f"{self.coalitions:,} {self.what} are kept: run it again, and it goes on from there"
                raise type(error)(f"{error}. {kept[0].upper()}{kept[1:]}") from None
            finally:
                stream.close()  # type: ignore[attr-defined]
                if self.cache is not None:
                    self.cache.close()

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """An interruption while answers are added up ends that, as one while they are awaited does."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped = "interrupted"

    def _count(self, answer: Answer) -> None:
        self.coalitions += 1 if self.what == "bags" else len(answer.utilities)
        self.fits += answer.fresh
        self.failures += answer.failures
        self.message = self.message or answer.message

    def _guess(self) -> int:
        """How many coalitions there will be, where it is not known: by the width so far, or by the time."""
        wide = self._track[-1][1] if self._track else math.nan
        guesses = []
        if self.rules.max_width is not None and math.isfinite(wide):
            guesses.append(self._track[-1][0] * (2 * wide / self.rules.max_width) ** 2)
        if self.rules.max_seconds is not None:
            guesses.append(self.coalitions * self.rules.max_seconds / max(1e-3, time.time() - self.started))
        return int(min(guesses, default=2.0 * self.coalitions))

    def observe(self, values: Floats, half: Floats) -> None:
        """After a complete draw: keep track of what there is."""
        widest = float(half.max())
        if self.coalitions >= self._next and math.isfinite(widest):
            self._track.append((self.coalitions, widest, float(np.median(half)), values.copy()))
            self._next = self.coalitions * 1.15

    def is_narrow(self, draws: int, half: Floats) -> bool:
        """Whether every interval is as narrow as asked."""
        width = self.rules.max_width
        if width is not None and draws >= FEWEST_DRAWS and 2 * float(half.max()) <= width:
            self.stopped = "width"
        return self.stopped == "width"

    def is_spent(self, draws: int) -> bool:
        """Whether one more draw, as large as those before on average, would be too much."""
        limit = self.rules.max_coalitions
        if limit is not None and (
            self.coalitions >= limit if draws == 1 else self.coalitions * (draws + 1) / draws > limit
        ):
            self.stopped = "coalitions"
        return self.stopped == "coalitions"

    def history(self, values: Floats, half: Floats | None) -> dict[str, tuple[float, ...]] | None:
        """The track, as numbers to plot."""
        if half is None or not self._track:
            return None
        from scipy.stats import rankdata

        track = list(self._track)
        if track[-1][0] != self.coalitions:
            track.append((self.coalitions, float(half.max()), float(np.median(half)), values))
        final = rankdata(values)

        def agreement(earlier: Floats) -> float:
            ranks = rankdata(earlier)
            if ranks.std() == 0 or final.std() == 0:
                return 0.0
            return float(np.corrcoef(ranks, final)[0, 1])

        return {
            "coalitions": tuple(float(at) for at, *_ in track),
            "widest": tuple(wide for _, wide, _, _ in track),
            "median": tuple(middle for _, _, middle, _ in track),
            "agreement": tuple(agreement(earlier) for *_, earlier in track),
        }

    def result(
        self,
        values: Floats,
        method: str,
        told: dict[str, Parameter],
        errors: Floats | None = None,
        half: Floats | None = None,
        notes: Sequence[str] = (),
    ) -> Estimate:
        """The result; everything that was not as asked becomes a note."""
        game = self.game
        remarks = [*game.notes, *notes]
        if self.failures:
            fate = "were passed over" if self.what == "bags" else f"count as no data ({game.empty:.4g})"
            remarks.append(
                f"{self.failures:,} of {self.coalitions:,} {self.what} had no model and {fate}: {self.message}"
            )
        if self.stopped in ("interrupted", "workers"):
            again = "run it again with the same cache and it goes on from there" if self.cache else "with cache=FILE a "
            again += "" if self.cache else "next run could go on from there"
            why = "it was interrupted" if self.stopped == "interrupted" else self.message
            remarks.append(f"not finished ({why}); these are the values so far; {again}")
        return Estimate(
            values=values,
            ids=game.ids,
            method=method,
            parameters=told | game.told,
            labels=game.labels,
            seed=self.rules.seed,
            notes=tuple(remarks),
            lower=None if half is None else values - half,
            upper=None if half is None else values + half,
            errors=errors,
            confidence=self.rules.confidence,
            sizes=game.sizes,
            coalitions=self.coalitions,
            fits=self.fits,
            failures=self.failures,
            stopped=self.stopped,
            history=self.history(values, half),
        )

    def give_up(self, needed: str) -> InputError:
        """There is nothing to return: why, and what to do about it."""
        if self.stopped == "interrupted":
            kept = f"; {self.coalitions:,} {self.what} are kept in the cache" if self.cache is not None else ""
            raise KeyboardInterrupt(f"interrupted before {needed} were done: there are no values yet{kept}")
        if self.stopped == "workers":
            raise WorkerLostError(self.message)
        if self.rules.max_seconds is None:
            return InputError(f"it ended before {needed} were done")
        return InputError(
            f"max_seconds={self.rules.max_seconds:g} was over after {self.coalitions:,} {self.what}, before {needed} "
            "were done; give it more time"
        )


class Moments:
    """Means of independent draws and their errors, one for each player, from sums that rounding does not spoil."""

    def __init__(self, n: int) -> None:
        self._state = (0, np.zeros(n), np.zeros(n))  # replaced as a whole, so that no interruption leaves half of it

    @property
    def draws(self) -> int:
        """How many draws there were."""
        return self._state[0]

    @property
    def mean(self) -> Floats:
        """Their means."""
        return self._state[1]

    def add(self, draw: Floats) -> None:
        """One more draw."""
        draws, mean, squares = self._state
        change = draw - mean
        closer = mean + change / (draws + 1)
        self._state = (draws + 1, closer, squares + change * (draw - closer))

    def errors(self) -> Floats:
        """Standard errors."""
        draws, mean, squares = self._state
        if draws < 2:
            return np.full(len(mean), math.inf)
        return np.asarray(np.sqrt(supported(squares / (draws - 1), draws - 1) / draws))

    def half_width(self, confidence: float) -> Floats:
        """How far intervals reach to either side, by Student's t."""
        return self.errors() * quantile(confidence, self.draws - 1)


PRIOR_DRAWS = 8.0


def supported(variance: Floats, freedom: Floats | int) -> Floats:
    """Variances, each drawn up toward the mean of all as if that had been seen in a few draws more.

    What a player adds is often nothing and rarely much: few draws may miss it, and with it nearly all of the variance.
    """
    pooled = (freedom * variance + PRIOR_DRAWS * variance.mean()) / (freedom + PRIOR_DRAWS)
    return np.asarray(np.maximum(variance, pooled))


def quantile(confidence: float, freedom: Floats | float) -> Floats:
    """Student's t: what an error is multiplied by; infinite where nothing is known of it."""
    from scipy.special import stdtrit

    return np.where(np.less(freedom, 1), math.inf, stdtrit(np.maximum(freedom, 1), (1 + confidence) / 2))


def data_shapley(
    model: Estimator,
    X: object,
    y: object = None,
    X_val: object | None = None,
    y_val: object | None = None,
    *,
    scoring: Scoring = None,
    groups: object | None = None,
    sampling: Sampling = "auto",
    truncation: float | None = None,
    max_coalitions: int | None = None,
    max_seconds: float | None = None,
    max_width: float | None = None,
    confidence: float = 0.95,
    empty: float | None = None,
    on_failure: OnFailure = "empty",
    fast: bool = True,
    seed: int = 0,
    cache: object | None = None,
    ids: object | None = None,
    n_jobs: int | None = None,
    progress: Progress = None,
    client: object | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Estimate:
    """Data Shapley: the mean, over orders in which the records join, of what a record adds to the model's score.

    φ_i = (1/n) Σ_k mean over coalitions C of k others of [v(C∪i) − v(C)], where v(C) is the score on the validation
    set of the model fitted to C. Values add up to v(everybody) − v(∅).

    Parameters
    ----------
    model
        Any scikit-learn classifier or regressor, or pipeline of such. Random states left open are fixed by ``seed``.
    X, y, X_val, y_val, ids
        Tables, data frames or arrays, as in :func:`datassay.knn_shapley`; for a regressor y holds numbers.
    scoring
        A name of scikit-learn's (``"accuracy"``, ``"neg_log_loss"``, ``"r2"`` …), ``"clipped_log_loss"`` (minus the
        log loss, no worse than guessing), or a function of (model, X, y). Left out: accuracy for classifiers, R² for
        regressors.
    groups
        One owner for each record (or the name of a column that the Table sets aside): values of owners instead.
    sampling
        ``"plain"`` orders, ``"antithetic"`` ones (each order and its reverse), ``"stratified"`` ones (an order and
        rotations of it, so that a player comes at every stage of it), or ``"exact"``: all coalitions. ``"auto"`` is
        exact where that takes no more than ``max_coalitions``, else antithetic.
    truncation
        Follow an order only until the score is within this of everybody's, and take the rest to add nothing. Saves
        fits, and biases values in a way that the intervals do not show.
    max_coalitions, max_seconds, max_width
        Stop after so many coalitions (10,000 if none of the three is given), so much time, or when every interval is
        narrower than this.
    confidence
        Of the interval of one record.
    empty
        What no data is worth; by default the score of guessing.
    on_failure
        What a coalition is worth to which the model cannot be fitted (one class, say) or whose score is not a number:
        as much as no data (``"empty"``; they are counted), or ``"raise"`` an error.
    fast
        Fit binary logistic regression by our own solver: the same minimum, many times faster.
    seed
        Orders are drawn from it. Results are the same for any number of workers.
    cache
        A file in which utilities are kept by coalition; a run that was cut short goes on from it.
    n_jobs, progress
        Workers (all cores if left out) and a progress bar.
    client
        A ``dask.distributed.Client``, whose cluster fits the models: see :func:`datassay.knn_shapley`.
    checkpoint
        A folder with a cache for this calculation alone: other data, models or seeds are refused.

    ^C ends the run and returns the values so far, with a note.

    References
    ----------
    Ghorbani & Zou, Data Shapley: Equitable Valuation of Data for Machine Learning, 2019. Mitchell et al., Sampling
    Permutations for Shapley Value Estimation, 2022 (antithetic orders).

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> train, validation = da.census(200, seed=1).split(0.5)
    >>> values = da.data_shapley(LogisticRegression(), train, X_val=validation, max_coalitions=2000, n_jobs=1)
    >>> total = values.parameters["full"] - values.parameters["empty"]
    >>> bool(abs(values.values.sum() - total) < 1e-9)  # every order shares out the whole
    True
    """
    rules = _rules(max_coalitions, max_seconds, max_width, confidence, seed, n_jobs, cache, progress,
                   client=client, checkpoint=checkpoint)  # fmt: skip
    game = make_model_game(
        model, X, y, X_val, y_val, scoring=scoring, groups=groups, empty=empty, on_failure=on_failure, fast=fast,
        seed=rules.seed, ids=ids,
    )  # fmt: skip
    n = game.n_players
    return _by_orders(game, "data_shapley", rules, sampling, truncation, np.full(n, 1 / n), {})


def beta_shapley(
    model: Estimator,
    X: object,
    y: object = None,
    X_val: object | None = None,
    y_val: object | None = None,
    *,
    alpha: float = 16.0,
    beta: float = 1.0,
    scoring: Scoring = None,
    groups: object | None = None,
    sampling: Sampling = "auto",
    truncation: float | None = None,
    max_coalitions: int | None = None,
    max_seconds: float | None = None,
    max_width: float | None = None,
    confidence: float = 0.95,
    empty: float | None = None,
    on_failure: OnFailure = "empty",
    fast: bool = True,
    seed: int = 0,
    cache: object | None = None,
    ids: object | None = None,
    n_jobs: int | None = None,
    progress: Progress = None,
    client: object | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Estimate:
    """Beta(α, β) Shapley: Data Shapley with sizes of coalitions weighed by a beta-binomial distribution.

    The size of the coalition that a record joins has the distribution of a binomial number whose chance is Beta(β, α):
    with α > β small coalitions count more, where one record shows more. Beta(1, 1) is the Shapley value. Values do not
    add up to the score. Other parameters as in :func:`data_shapley`.

    References
    ----------
    Kwon & Zou, Beta Shapley: a Unified and Noise-reduced Data Valuation Framework for Machine Learning, 2022.

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> train, validation = da.census(200, seed=1).split(0.5)
    >>> values = da.beta_shapley(LogisticRegression(), train, X_val=validation, max_coalitions=500, n_jobs=1)
    >>> values.parameters["alpha"], values.parameters["beta"]
    (16.0, 1.0)
    """
    from scipy.stats import betabinom

    alpha, beta = _checks.number("alpha", alpha, above=0), _checks.number("beta", beta, above=0)
    rules = _rules(max_coalitions, max_seconds, max_width, confidence, seed, n_jobs, cache, progress,
                   client=client, checkpoint=checkpoint)  # fmt: skip
    game = make_model_game(
        model, X, y, X_val, y_val, scoring=scoring, groups=groups, empty=empty, on_failure=on_failure, fast=fast,
        seed=rules.seed, ids=ids,
    )  # fmt: skip
    n = game.n_players
    chance = betabinom.pmf(np.arange(n), n - 1, beta, alpha)
    told: dict[str, Parameter] = {"alpha": alpha, "beta": beta}
    return _by_orders(game, "beta_shapley", rules, sampling, truncation, chance, told)


def _by_orders(
    game: ModelGame,
    method: str,
    rules: Rules,
    sampling: Sampling,
    truncation: float | None,
    chance: Floats,
    told: dict[str, Parameter],
) -> Estimate:
    """Estimate from orders, or enumerate; ``chance`` is that of each size of the coalition that a player joins."""
    _checks.choice("sampling", sampling, get_args(Sampling))
    if truncation is not None:
        truncation = _checks.number("truncation", truncation, at_least=0)
    n = game.n_players
    if sampling == "exact" or (sampling == "auto" and _is_small(n, rules) and truncation is None):
        return _enumerated(game, method, rules, chance, told)
    # The last places of an order count for nothing where their weight is next to nothing.
    weights = n * chance  # in an order every size is as likely
    length = n - int(np.argmax(np.cumsum(weights[::-1]) > 1e-12 * n))
    limit = rules.max_coalitions
    if limit is not None and rules.by_default:
        limit = max(limit, 2 * length)
    if sampling == "auto":
        sampling = "plain" if limit is not None and truncation is None and limit < 4 * length else "antithetic"
    every = {"plain": 1, "antithetic": 2, "stratified": min(STRATA, n)}[sampling]
    if limit is not None and truncation is None and limit < 2 * every * length:
        raise UsageError(
            f"max_coalitions={limit:,} is not enough for two draws of {every} {sampling} orders of {n:,} players, "
            f"{2 * every * length:,} coalitions; allow more, value owners (groups), or cut orders short (truncation)"
        )
    told = told | {"sampling": sampling, "truncation": truncation, "max_coalitions": limit}
    rules = replace(rules, max_coalitions=limit)
    run = Run(game, rules, method)
    nobody = np.zeros(n, np.bool_)
    known = limit if truncation is None else None
    draws = count() if limit is None or truncation is not None else range(max(2, limit // (every * length)))

    # An order is one task if it may be cut short; else a few, so that not much is lost of what is cut off.
    cuts = chunks(length, length if truncation is not None else game.at_once)

    def tasks() -> Iterator[Task]:
        for draw in draws:
            for order in orders_of(n, sampling, rules.seed, draw):
                for cut in cuts:
                    before = nobody.copy()
                    before[order[: cut.start]] = True
                    part = order[cut.start : cut.stop]
                    yield Task("chain", before, part, -1.0 if truncation is None else truncation)

    moments = Moments(n)
    stream = run.answers(tasks(), known)
    with run.keeping():
        for draw in count():
            orders = orders_of(n, sampling, rules.seed, draw)
            answers = list(islice(stream, every * len(cuts)))
            if len(answers) < every * len(cuts):
                break
            total = np.zeros(n)
            for at, order in enumerate(orders):
                parts = [answer.utilities for answer in answers[at * len(cuts) : (at + 1) * len(cuts)]]
                steps = np.diff(game.filled(np.concatenate(parts)), prepend=game.empty)
                total[order[: len(steps)]] += weights[: len(steps)] * steps
            moments.add(total / every)
            half = moments.half_width(rules.confidence)
            run.observe(moments.mean, half)
            if run.is_narrow(moments.draws, half) or run.is_spent(moments.draws):
                break
    stream.close()  # type: ignore[attr-defined]
    if moments.draws == 0:
        raise run.give_up(f"the {every * length:,} of one draw of {every} orders")
    run.stopped = run.stopped or "coalitions"
    notes = []
    if truncation is not None:
        notes.append(
            f"orders were cut short within {truncation:g} of everybody's score, and the rest taken to add nothing: a "
            "bias that the intervals do not show"
        )
    if moments.draws == 1:
        notes.append("there was one draw only, which says nothing of its error: no intervals")
        return run.result(moments.mean, method, told, notes=notes)
    half = moments.half_width(rules.confidence)
    return run.result(moments.mean, method, told, moments.errors(), half, notes)


def orders_of(n: int, sampling: str, seed: int, draw: int) -> list[NDArray[np.int64]]:
    """The orders of one draw; draws are independent of each other and known by their number."""
    rng = np.random.default_rng([seed, draw])
    order = rng.permutation(n)
    if sampling == "antithetic":
        return [order, order[::-1].copy()]
    if sampling == "stratified":
        strata = min(STRATA, n)
        return [np.roll(order, round(at * n / strata)) for at in range(strata)]
    return [order]


def _is_small(n: int, rules: Rules) -> bool:
    """Whether all coalitions are no more than what is allowed."""
    return n <= LARGEST_ENUMERATION and 2**n <= (rules.max_coalitions or DEFAULT_COALITIONS)


def _enumerated(game: ModelGame, method: str, rules: Rules, chance: Floats, told: dict[str, Parameter]) -> Estimate:
    """All coalitions, once each: exact values."""
    n = game.n_players
    if rules.max_coalitions is not None and not rules.by_default and 2**n > rules.max_coalitions:
        raise UsageError(
            f"max_coalitions={rules.max_coalitions:,} is not enough for sampling='exact': {n:,} players have "
            f"{f'{2**n:,}' if n <= LARGEST_ENUMERATION else f'2^{n}'} coalitions"
        )
    if n > LARGEST_ENUMERATION:
        raise UsageError(
            f"{n:,} players have too many coalitions to visit all of them: sampling='exact' is for at most "
            f"{LARGEST_ENUMERATION} players"
        )
    run = Run(game, rules, method)
    codes = np.arange(2**n)
    players = np.arange(n)

    def members(of: range) -> NDArray[np.bool_]:
        return (codes[of.start : of.stop, None] >> players & 1).astype(np.bool_)

    parts = chunks(2**n, min(64, game.at_once))
    worth = np.empty(2**n)
    at = 0
    with run.keeping():
        for answer in run.answers((Task("sets", members(part)) for part in parts), 2**n):
            worth[at : at + len(answer.utilities)] = game.filled(answer.utilities)
            at += len(answer.utilities)
    if at < 2**n:
        raise run.give_up(f"all {2**n:,}")
    run.stopped = "exact"
    size = np.array([bits.bit_count() for bits in range(2**n)])
    by_size = np.array([chance[k] / math.comb(n - 1, k) for k in range(n)])  # of one coalition
    values = np.empty(n)
    for i in range(n):
        without = codes[(codes >> i & 1) == 0]
        values[i] = (by_size[size[without]] * (worth[without | (1 << i)] - worth[without])).sum()
    return run.result(values, method, told | {"sampling": "exact"})


def data_banzhaf(
    model: Estimator,
    X: object,
    y: object = None,
    X_val: object | None = None,
    y_val: object | None = None,
    *,
    scoring: Scoring = None,
    groups: object | None = None,
    sampling: Literal["auto", "plain", "exact"] = "auto",
    max_coalitions: int | None = None,
    max_seconds: float | None = None,
    max_width: float | None = None,
    confidence: float = 0.95,
    empty: float | None = None,
    on_failure: OnFailure = "empty",
    fast: bool = True,
    seed: int = 0,
    cache: object | None = None,
    ids: object | None = None,
    n_jobs: int | None = None,
    progress: Progress = None,
    client: object | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Estimate:
    """Data Banzhaf: the mean, over all coalitions of the others, of what a record adds to the model's score.

    Estimated with maximum sample reuse: every coalition drawn, each record in it by the toss of a coin, tells about
    every record. φ_i is the mean score of the coalitions with i less that of those without. Other parameters as in
    :func:`data_shapley`.

    References
    ----------
    Wang & Jia, Data Banzhaf: A Robust Data Valuation Framework for Machine Learning, 2023.

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> train, validation = da.census(200, seed=1).split(0.5)
    >>> values = da.data_banzhaf(LogisticRegression(), train, X_val=validation, max_coalitions=500, n_jobs=1)
    >>> len(values), values.coalitions
    (100, 500)
    """
    rules = _rules(max_coalitions, max_seconds, max_width, confidence, seed, n_jobs, cache, progress,
                   client=client, checkpoint=checkpoint)  # fmt: skip
    _checks.choice("sampling", sampling, ("auto", "plain", "exact"))
    game = make_model_game(
        model, X, y, X_val, y_val, scoring=scoring, groups=groups, empty=empty, on_failure=on_failure, fast=fast,
        seed=rules.seed, ids=ids,
    )  # fmt: skip
    n = game.n_players
    if sampling == "exact" or (sampling == "auto" and _is_small(n, rules)):
        halves = np.array([math.comb(n - 1, k) * 0.5 ** (n - 1) for k in range(n)])
        return _enumerated(game, "data_banzhaf", rules, halves, {})
    run, limit, at_once = Run(game, rules, "data_banzhaf"), rules.max_coalitions, 32

    def members(draw: int) -> NDArray[np.bool_]:
        here = at_once if limit is None else min(at_once, limit - draw * at_once)
        return np.random.default_rng([rules.seed, draw]).integers(0, 2, (here, n), np.uint8).astype(np.bool_)

    draws = count() if limit is None else range(math.ceil(limit / at_once))
    tasks = (Task("sets", members(draw)) for draw in draws)
    sides = (_Side.of(n), _Side.of(n))
    values, half = np.zeros(n), np.full(n, math.inf)
    stream = run.answers(tasks, limit)
    with run.keeping():
        for draw, answer in enumerate(stream):
            scores, joined = game.filled(answer.utilities) - game.full, members(draw)
            sides = (sides[0].plus(joined, scores), sides[1].plus(~joined, scores))
            values, half = _contrast(*sides, rules.confidence)
            run.observe(values, half)
            if run.is_narrow(run.coalitions, half):
                break
    stream.close()  # type: ignore[attr-defined]
    if run.coalitions < 4 or not np.isfinite(half).all():
        if run.stopped in ("interrupted", "workers", "seconds"):
            raise run.give_up("some with and some without every player")
        raise UsageError(
            f"max_coalitions={limit} is too few: every player must be in some coalitions and out of others"
        )
    run.stopped = run.stopped or "coalitions"
    values, half = _contrast(*sides, rules.confidence)
    told: dict[str, Parameter] = {"sampling": "plain", "max_coalitions": limit}
    return run.result(values, "data_banzhaf", told, half / quantile(rules.confidence, run.coalitions - 2), half)


@dataclass(frozen=True, eq=False)
class _Side:
    """Scores of the coalitions with, or without, each player."""

    count: Floats
    total: Floats
    squares: Floats

    @classmethod
    def of(cls, n: int) -> "_Side":
        return cls(np.zeros(n), np.zeros(n), np.zeros(n))

    def plus(self, members: NDArray[np.bool_], scores: Floats) -> "_Side":
        return _Side(
            self.count + members.sum(axis=0), self.total + scores @ members, self.squares + scores**2 @ members
        )

    def mean(self) -> Floats:
        return np.asarray(self.total / np.maximum(self.count, 1))

    def variance_of_mean(self) -> Floats:
        spread = np.maximum(self.squares - self.count * self.mean() ** 2, 0.0)
        enough = self.count >= 2
        return np.where(enough, spread / np.where(enough, (self.count - 1) * self.count, 1), math.inf)


def _contrast(inside: _Side, outside: _Side, confidence: float) -> tuple[Floats, Floats]:
    """Banzhaf values, the mean of one side less that of the other, and the half-widths of their intervals."""
    error2 = inside.variance_of_mean() + outside.variance_of_mean()
    number = float((inside.count + outside.count).max())
    return inside.mean() - outside.mean(), np.sqrt(error2) * quantile(confidence, number - 2)


def leave_one_out(
    model: Estimator,
    X: object,
    y: object = None,
    X_val: object | None = None,
    y_val: object | None = None,
    *,
    scoring: Scoring = None,
    groups: object | None = None,
    empty: float | None = None,
    on_failure: OnFailure = "empty",
    fast: bool = True,
    seed: int = 0,
    cache: object | None = None,
    ids: object | None = None,
    n_jobs: int | None = None,
    progress: Progress = None,
    client: object | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Estimate:
    """Leave-one-out values: what the model's score loses without a record, v(D) − v(D∖i). Exact; n fits.

    Parameters as in :func:`data_shapley`. Cheap to state and to compute, but one record among many rarely changes a
    model: most values are 0 or nearly so.

    References
    ----------
    Cook, Detection of Influential Observation in Linear Regression, 1977.

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.linear_model import LogisticRegression
    >>> train, validation = da.census(100, seed=1).split(0.5)
    >>> da.leave_one_out(LogisticRegression(), train, X_val=validation, n_jobs=1).coalitions
    50
    """
    rules = Rules(seed=_checks.integer("seed", seed, at_least=0), n_jobs=n_jobs, cache=cache, progress=progress,
                  client=client, checkpoint=checkpoint)  # fmt: skip
    game = make_model_game(
        model, X, y, X_val, y_val, scoring=scoring, groups=groups, empty=empty, on_failure=on_failure, fast=fast,
        seed=rules.seed, ids=ids,
    )  # fmt: skip
    n = game.n_players
    run = Run(game, rules, "leave_one_out")

    def without(part: range) -> NDArray[np.bool_]:
        members = np.ones((len(part), n), np.bool_)
        members[np.arange(len(part)), np.arange(part.start, part.stop)] = False
        return members

    found: list[Floats] = []
    with run.keeping():
        for answer in run.answers((Task("sets", without(part)) for part in chunks(n, min(16, game.at_once))), n):
            found.append(game.filled(answer.utilities))
    if sum(map(len, found)) < n:
        raise run.give_up(f"all {n:,}")
    run.stopped = "exact"
    return run.result(game.full - np.concatenate(found), "leave_one_out", {})


def data_oob(
    model: Estimator,
    X: object,
    y: object = None,
    *,
    groups: object | None = None,
    max_bags: int | None = None,
    max_seconds: float | None = None,
    max_width: float | None = None,
    confidence: float = 0.95,
    on_failure: OnFailure = "empty",
    seed: int = 0,
    ids: object | None = None,
    n_jobs: int | None = None,
    progress: Progress = None,
    client: object | None = None,
) -> Estimate:
    """Out-of-bag values: how often models fitted to samples without a record predict it right. No validation set.

    Every model is fitted to a bag, as many records as there are, drawn with replacement; about 37% of the records are
    not in it, and the model is tried on them. The value is the mean over those models: the share that gets the label
    right, or for a regressor minus the squared error. Mislabelled records are predicted wrong, so low values are
    suspicious. With ``groups``, owners are drawn, and an owner's value is the mean over their records.

    Parameters
    ----------
    max_bags
        Models to fit (1,000 if neither time nor width is given).

    Other parameters as in :func:`data_shapley`.

    References
    ----------
    Kwon & Zou, Data-OOB: Out-of-bag Estimate as a Simple and Efficient Data Value, 2023.

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> table = da.census(100, seed=1)
    >>> values = da.data_oob(DecisionTreeClassifier(), table, max_bags=50, n_jobs=1)
    >>> bool(values.values.min() >= 0) and bool(values.values.max() <= 1)
    True
    """
    if max_bags is not None:
        max_bags = _checks.integer("max_bags", max_bags, at_least=1)
    rules = _rules(max_bags, max_seconds, max_width, confidence, seed, n_jobs, None, progress, default=1000,
                   client=client)  # fmt: skip
    game = make_model_game(
        model, X, y, X, y, scoring=_unscored, groups=groups, empty=0.0, on_failure=on_failure, fast=False,
        seed=rules.seed, ids=ids,
    )  # fmt: skip
    assert isinstance(game.evaluator, FittedModels)
    if game.n_players == 1:
        raise InputError("there is one player only, who is in every bag: nothing is out of it")
    n, owner = game.n_players, game.owner
    by_owner = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=n))
    sizes = np.diff(ends, prepend=0)
    run = Run(game, rules, "data_oob", "bags")
    limit = rules.max_coalitions

    def bag(draw: int) -> Task:
        drawn = np.random.default_rng([rules.seed, draw]).integers(0, n, n)
        rows = [by_owner[ends[i] - sizes[i] : ends[i]] for i in drawn.tolist()]
        return Task("bag", np.empty(0, np.bool_), np.concatenate(rows).astype(np.int64))

    draws = count() if limit is None else range(limit)
    sums = (np.zeros(n), np.zeros(n), np.zeros(n))
    stream = run.answers((bag(draw) for draw in draws), limit)
    with run.keeping():
        for answer in stream:
            outside = ~np.isnan(answer.utilities)
            of = np.bincount(owner[outside], minlength=n)
            mean = np.bincount(owner[outside], answer.utilities[outside], minlength=n) / np.maximum(of, 1)
            sums = (sums[0] + mean, sums[1] + mean**2, sums[2] + (of > 0))
            half = _oob_errors(*sums) * quantile(rules.confidence, sums[2] - 1)
            run.observe(sums[0] / np.maximum(sums[2], 1), half)
            if run.is_narrow(run.coalitions, half):
                break
    stream.close()  # type: ignore[attr-defined]
    total, squares, seen = sums
    if not (seen > 0).all():
        if run.stopped or limit is None:
            raise run.give_up("some without every record")
        raise UsageError(f"max_bags={limit} is too few: some records were in all of them")
    run.stopped = run.stopped or "coalitions"
    values, errors = total / seen, _oob_errors(total, squares, seen)
    half = errors * quantile(rules.confidence, seen - 1)
    told: dict[str, Parameter] = {"max_bags": limit}
    known = bool(np.isfinite(half).all())
    result = run.result(values, "data_oob", told, errors if known else None, half if known else None)
    return _without_validation(result)


def _unscored(model: Any, X: Any, y: Any) -> float:
    """Bags are judged record by record: the model as a whole needs no score, nor a solver that is made for one."""
    return 0.0


def _oob_errors(total: Floats, squares: Floats, seen: Floats) -> Floats:
    """Errors of means over bags."""
    freedom = np.maximum(seen - 1, 1)
    variance = supported(np.maximum(squares - total**2 / np.maximum(seen, 1), 0.0) / freedom, freedom)
    return np.where(seen >= 2, np.sqrt(variance / np.maximum(seen, 1)), math.inf)


def _without_validation(result: Estimate) -> Estimate:
    skip = ("empty", "full", "n_validation", "scoring")
    kept: dict[str, Any] = {name: value for name, value in result.parameters.items() if name not in skip}
    return replace(result, parameters=kept)
