"""How long work is run: in threads, its parts handed back in order, with progress that can be watched.

None of it can change a result.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from datassay import _checks
from datassay._errors import InputError, UsageError

Progress = Callable[[int, int], None] | bool | None
"""Called with (how much is done, of how much); True draws a bar on standard error."""

T = TypeVar("T")


def thread_count(n_jobs: int | None) -> int:
    """The number of threads asked for: None or −1 means every core this process may use."""
    if n_jobs is None or n_jobs == -1:
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:  # not every platform tells a process its cores
            return os.cpu_count() or 1
    try:
        return _checks.integer("n_jobs", n_jobs, at_least=1)
    except InputError:
        raise UsageError(
            f"the number of threads (n_jobs) must be at least 1, or -1 for all cores; got {n_jobs!r}"
        ) from None


def chunks(n: int, size: int) -> list[range]:
    """0 … n−1 in pieces of ``size``, the last one what is left."""
    return [range(start, min(start + size, n)) for start in range(0, n, size)]


def in_order(
    task: Callable[[range], T], groups: Sequence[range], threads: int, report: Callable[[int], None]
) -> Iterator[T]:
    """Results of the tasks in their order, at most a few ahead of the one being consumed."""
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
    """Refuse what is no idea of progress."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise UsageError(f"progress must be True, False, None or a function of (done, total), got {progress!r}")


class Bar(AbstractContextManager["Callable[[int], None]"]):
    """Adapts the caller's idea of progress to «n more are done»."""

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
