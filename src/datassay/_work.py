"""Runs work in parts: by threads or other workers, the parts handed back in order, with progress shown.

Threads of this process do it, unless the caller chose a backend of joblib (``with joblib.parallel_config(…)``) or gave
a Dask client. None of it can change a result.
"""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from datassay import _checks
from datassay._crew import Kind, Workers
from datassay._errors import CheckpointError, LostError, UsageError

if TYPE_CHECKING:
    from datassay._checkpoint import Checkpoint, Kept

Progress = TypeAliasType("Progress", "Callable[[int, int], None] | bool | None")
"""Called with (how much is done, of how much); True draws a bar on standard error."""

T = TypeVar("T")
WORTH_SAYING: Final = 10.0  # seconds; a plan that takes less is not told where there is no bar
PATIENCE: Final = 30.0  # seconds until work without a plan is told of


def thread_count(n_jobs: int | None) -> int:
    """The number of threads asked for: −1 means every core this process may use, and so does None.

    Unless the caller told joblib how many there are: ``with joblib.parallel_config(n_jobs=2)``.
    """
    joblib = sys.modules.get("joblib")  # what is not loaded is not configured
    if n_jobs is None and joblib is not None:
        backend, configured = joblib.parallel.get_active_backend()
        n_jobs = None if configured in (None, -1) else int(backend.effective_n_jobs(configured))
    if n_jobs is None or n_jobs == -1:
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:  # not every platform tells a process its cores
            return os.cpu_count() or 1
    try:
        return _checks.integer("n_jobs", n_jobs, at_least=1)
    except UsageError:
        wanted = "the number of threads (n_jobs) must be at least 1, or -1 for all cores"
        raise UsageError(f"{wanted}; got {n_jobs!r}") from None


def workers(n_jobs: int | None = None, client: object = None) -> Workers:
    """Threads of this process, unless there is a Dask client, or joblib was told to use another backend."""
    if client is not None:
        from datassay._cluster import threads_of

        return Workers("dask", threads_of(client), client)
    joblib = sys.modules.get("joblib")
    count = thread_count(n_jobs)
    if joblib is None:
        return Workers("threads", count)
    backend = joblib.parallel.get_active_backend(prefer="threads")[0]
    if type(backend).__name__ == "DaskDistributedBackend":
        return workers(n_jobs, backend.client)
    ours: dict[str, Kind] = {"ThreadingBackend": "threads", "SequentialBackend": "threads", "LokyBackend": "processes"}
    return Workers(ours.get(type(backend).__name__, "joblib"), count)


def chunks(n: int, size: int) -> list[range]:
    """0 … n−1 in pieces of ``size``, the last one what is left."""
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


def in_order(
    task: Callable[[range], T], groups: Sequence[range], by: Workers | int, report: Callable[[int], None]
) -> Iterator[T]:
    """Results of the tasks in their order, at most a few ahead of the one being consumed.

    A number means threads of this process, whatever the caller chose: for tasks that other processes must not see, or
    that write where others cannot. Every other task may be pickled and run anywhere, and must have no side effects.
    """
    if isinstance(by, Workers) and by.kind != "threads":
        from datassay import _remote

        yield from _remote.in_order(task, groups, by, report)
        return
    threads = by.count if isinstance(by, Workers) else by
    if threads == 1:
        for group in groups:
            yield task(group)
            report(len(group))
        return
    waiting: deque[tuple[Future[T], range]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="datassay")
    try:
        for group in groups:
            waiting.append((pool.submit(task, group), group))
            if len(waiting) > threads:
                future, done = waiting.popleft()
                yield future.result()
                report(len(done))
        while waiting:
            future, done = waiting.popleft()
            yield future.result()
            report(len(done))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def check_progress(progress: object) -> None:
    """Refuse what cannot show progress."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise UsageError(f"progress must be True, False, None or a function of (done, total), got {progress!r}")


def add_up(
    task: Callable[[range], NDArray[np.float64]],
    groups: Sequence[range],
    by: Workers | int,
    report: Callable[[int], None],
    size: int,
    checkpoint: "Checkpoint | None" = None,
) -> NDArray[np.float64]:
    """The sum of what tasks find, each an array of so many numbers, taken in their order."""
    if checkpoint is None:
        total = np.zeros(size)
        with _keeping(groups):
            for part in in_order(task, groups, by, report):
                total += part
        return total
    with checkpoint.begin("sum") as kept:
        # How many were added, and their sum: replaced together, so that no interruption comes between them.
        state = (0, np.zeros(size))
        for blocks, (found,) in kept.load():
            state = (blocks.stop, found)
            report(sum(len(group) for group in groups[: blocks.stop]))
        with _keeping(groups, kept, lambda: kept.save(state[0], (state[1],))) as save:
            for part in in_order(task, groups[state[0] :], by, report):
                state = (state[0] + 1, state[1] + part)
                if kept.is_time():
                    save()
    return state[1]


def gather(
    task: Callable[[range], tuple[NDArray[Any], ...]],
    groups: Sequence[range],
    by: Workers | int,
    report: Callable[[int], None],
    checkpoint: "Checkpoint | None" = None,
) -> tuple[NDArray[Any], ...]:
    """What tasks find of the rows of their groups, put together: arrays with one row for each."""
    found: tuple[NDArray[Any], ...] = ()

    def put(rows: slice, parts: tuple[NDArray[Any], ...]) -> None:
        nonlocal found
        if not found:
            found = tuple(np.empty((groups[-1].stop, *part.shape[1:]), part.dtype) for part in parts)
        for whole, part in zip(found, parts, strict=True):
            whole[rows] = part

    if checkpoint is None:
        with _keeping(groups):
            for group, parts in zip(groups, in_order(task, groups, by, report), strict=True):
                put(slice(group.start, group.stop), parts)
        return found
    with checkpoint.begin("rows") as kept:
        for blocks, parts in kept.load():
            put(slice(groups[blocks.start].start, groups[blocks.stop - 1].stop), parts)
            report(sum(len(groups[at]) for at in blocks))
        done = kept.done

        def save() -> None:
            if done > kept.done:
                rows = slice(groups[kept.done].start, groups[done - 1].stop)
                kept.save(done, tuple(whole[rows] for whole in found))

        with _keeping(groups, kept, save):
            for parts in in_order(task, groups[done:], by, report):
                put(slice(groups[done].start, groups[done].stop), parts)
                done += 1
                if kept.is_time():
                    save()
    return found


@contextmanager
def _keeping(
    groups: Sequence[range], kept: "Kept | None" = None, save: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], None]]:
    """Save what was done however it ends; if workers or their scheduler are lost, say what was lost with them."""
    try:
        try:
            yield save
        except CheckpointError:
            raise
        except BaseException:
            save()
            raise
        save()
    except LostError as error:
        told = "Nothing is kept of what was done; with checkpoint=FOLDER a next run could go on from there"
        if kept is not None:
            told = (
                f"{kept.done:,} of {len(groups):,} blocks are kept in {kept.folder!r}: run it again with the same "
                "checkpoint, and it goes on from there"
            )
        raise type(error)(f"{error}. {told}") from None


class Bar(AbstractContextManager["Callable[[int], None]"]):
    """Shows progress as the caller asked, from «n more are done»."""

    def __init__(self, progress: Progress, total: int, what: str = "validation points") -> None:
        check_progress(progress)
        self._progress, self._total, self._done = progress, total, 0
        self._display: AbstractContextManager[object] = nullcontext()
        self._tick: Callable[[int, int], None] | None = progress if callable(progress) else None
        if progress is True:
            self._tick, self._display = _rich_bar(total, what)

    def __enter__(self) -> Callable[[int], None]:
        self._display.__enter__()
        return self._report

    def __exit__(self, *exception: object) -> None:
        self._display.__exit__(*exception)  # type: ignore[arg-type]

    def extend(self, total: int) -> None:
        """There is more to do than was thought."""
        self._total = total

    def _report(self, more: int) -> None:
        self._done += more
        if self._tick is not None:
            self._tick(self._done, self._total)


def _rich_bar(total: int, what: str) -> tuple[Callable[[int, int], None], AbstractContextManager[object]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    display = Display(
        TextColumn("valuing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{what}, left:"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar = display.add_task("valuing", total=total)
    return (lambda done, of: display.update(bar, completed=done, total=of)), display


class Pace(AbstractContextManager["Pace"]):
    """Progress in lines on standard error, for a file or a pipe: how much is done, and how long the rest will take.

    A calculation that plans its stages says before it starts how long they will take, and how long each took as it
    ends; then ``bar`` is whether to draw a bar for them as well.
    """

    def __init__(self, n_jobs: int | None = None, bar: bool = False) -> None:
        self.n_jobs, self.bar = n_jobs, bar
        self._done, self._before, self._begun, self._next = 0, 0, time.monotonic(), PATIENCE
        self._stage, self._speaks = "", False

    def __call__(self, done: int, total: int) -> None:
        """So much is done, of so much."""
        now = time.monotonic()
        if done < self._done:  # a calculation of its own
            self._begun, self._before, self._next = now, done, PATIENCE
        self._done = done
        spent, more = now - self._begun, done - self._before
        if spent >= self._next and more > 0 and done < total:
            self._next = 2 * spent
            _say(
                f"{done / total:.0%} done after {in_words(spent)}, about {in_words(spent * (total - done) / more)} left"
            )

    def plan(self, seconds: Mapping[str, float]) -> None:
        """Say how long it will take, and each stage of it, unless that is soon over."""
        total = sum(seconds.values())
        self._speaks = total >= WORTH_SAYING
        if self._speaks:
            threads = _checks.counted(thread_count(self.n_jobs), "thread")
            stages = ", ".join(f"{stage} {in_words(of)}" for stage, of in seconds.items() if of >= 1)
            _say(f"About {in_words(total)} on {threads}: {stages}.")

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
