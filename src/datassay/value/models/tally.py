"""What happens while coalitions are valued: counted, timed, stopped by the rules, and made into a result."""

import math
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from datassay._checkpoint import Checkpoint
from datassay._crew import WorkerLostError
from datassay._errors import InputError, LostError, UsageError
from datassay._work import Bar
from datassay.results import Floats, Parameter
from datassay.value.estimate import Estimate
from datassay.value.models.coalitions import Answer, ModelGame, Task
from datassay.value.models.workers import UtilityCache, check_known, evaluate

FEWEST_DRAWS = 30  # before an interval is trusted to end the run


@dataclass(eq=False)
class Tally:
    """What happened on the way: counted, timed, and stopped by the rules."""

    game: ModelGame
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
        rules = self.rules = self.game.rules
        folder, cache = rules.run.get("checkpoint"), rules.run.get("cache")
        if folder is not None:
            if cache is not None:
                raise UsageError("a checkpoint has a cache of its own: leave out one of cache and checkpoint")
            check_known(self.game)
            parameters: dict[str, Parameter] = {"seed": rules.seed, **self.game.parameters}
            checkpoint = Checkpoint(folder, self.method, parameters, self.game.fingerprint)
            self.cache = UtilityCache(checkpoint.folder / "utilities.sqlite", self.game)
        elif cache is not None:
            self.cache = UtilityCache(cache, self.game)

    def answers(self, tasks: Iterator[Task], total: int | None) -> Generator[Answer, None, None]:
        """Answers in order, with progress; an interruption ends them, and is remembered."""
        rules, run = self.rules, self.rules.run
        bar = Bar(run.get("progress"), total or 0, self.what)
        jobs, client = run.get("n_jobs"), run.get("client")
        stream = evaluate(self.game, tasks, n_jobs=jobs, client=client, cache=self.cache, seconds=rules.max_seconds)
        with bar as report:
            try:
                for answer in stream:
                    done = 1 if self.what == "bags" else len(answer.utilities)
                    self.coalitions += done
                    self.fits += answer.fresh
                    self.failures += answer.failures
                    self.message = self.message or answer.message
                    if total is None:
                        bar.extend(max(self.coalitions, self._guess()))
                    report(done)
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
                stream.close()
                if self.cache is not None:
                    self.cache.close()

    @contextmanager
    def answering(self, tasks: Iterator[Task], total: int | None) -> Iterator[Iterator[Answer]]:
        """The answers; an interruption while they are added up ends that, as one while they are awaited does."""
        with closing(self.answers(tasks, total)) as stream:
            try:
                yield stream
            except KeyboardInterrupt:
                self.stopped = "interrupted"

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

    def stop_if_narrow(self, draws: int, half: Floats) -> bool:
        """Stop if every interval is as narrow as asked; whether it did."""
        width = self.rules.max_width
        if width is not None and draws >= FEWEST_DRAWS and 2 * float(half.max()) <= width:
            self.stopped = "width"
        return self.stopped == "width"

    def stop_if_spent(self, draws: int) -> bool:
        """Stop if one more draw, as large as those before on average, would be too much; whether it did."""
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
        parameters: dict[str, Parameter],
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
            again = "with cache=FILE a next run could go on from there"
            if self.cache:
                again = "run it again with the same cache and it goes on from there"
            why = "it was interrupted" if self.stopped == "interrupted" else self.message
            remarks.append(f"not finished ({why}); these are the values so far; {again}")
        return Estimate(
            values=values,
            ids=game.ids,
            method=method,
            parameters=parameters | game.parameters,
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

    def give_up(self, needed: str) -> NoReturn:
        """Raise, as there is nothing to return: why, and what to do about it."""
        if self.stopped == "interrupted":
            kept = f"; {self.coalitions:,} {self.what} are kept in the cache" if self.cache is not None else ""
            raise KeyboardInterrupt(f"interrupted before {needed} were done: there are no values yet{kept}")
        if self.stopped == "workers":
            raise WorkerLostError(self.message)
        if self.rules.max_seconds is None:
            raise InputError(f"it ended before {needed} were done")
        raise InputError(
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
