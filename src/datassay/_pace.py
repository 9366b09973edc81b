"""Progress in lines on standard error: for a file or a pipe, where a bar is nothing to look at."""

import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

WORTH_SAYING: Final = 10.0  # seconds; of less nothing is said


class Pace(AbstractContextManager["Pace"]):
    """Progress to give to any function: after ten seconds it says how much is done and how long the rest will take.

    A calculation that plans its stages says before it starts how long they will take, and how long each took as it
    ends; then ``bar`` is whether to draw a bar for them as well.
    """

    def __init__(self, n_jobs: int | None = None, bar: bool = False) -> None:
        self.n_jobs, self.bar = n_jobs, bar
        self._done, self._before, self._begun, self._next = 0, 0, time.monotonic(), WORTH_SAYING
        self._stage, self._speaks = "", False

    def __call__(self, done: int, total: int) -> None:
        """So much is done, of so much."""
        now = time.monotonic()
        if done < self._done:  # a calculation of its own
            self._begun, self._before, self._next = now, done, WORTH_SAYING
        self._done = done
        spent, more = now - self._begun, done - self._before
        if spent >= self._next and more > 0 and done < total:
            self._next = 2 * spent
            _say(
                f"{done / total:.0%} done after {in_words(spent)}, about {in_words(spent * (total - done) / more)} left"
            )

    def plan(self, seconds: Mapping[str, float]) -> None:
        """Say how long it will take, and each stage of it, unless that is soon over."""
        from datassay._work import thread_count

        total = sum(seconds.values())
        self._speaks = total >= WORTH_SAYING
        if self._speaks:
            threads = thread_count(self.n_jobs)
            stages = ", ".join(f"{stage} {in_words(of)}" for stage, of in seconds.items() if of >= 1)
            _say(f"About {in_words(total)} on {threads} thread{'s' if threads > 1 else ''}: {stages}.")

    def show(self, done: float, stage: str) -> None:
        """A stage goes on, or the one before has ended."""
        if stage != self._stage:
            self._end()
            self._stage, self._begun = stage, time.monotonic()

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            self._end()

    def _end(self) -> None:
        if self._stage and self._speaks:
            _say(f"{self._stage}: {in_words(time.monotonic() - self._begun)}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def in_words(seconds: float) -> str:
    """A time as it is said aloud.

    >>> in_words(0.2), in_words(48.3), in_words(130), in_words(9000)
    ('1 s', '48 s', '2 minutes', '2.5 hours')
    """
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
