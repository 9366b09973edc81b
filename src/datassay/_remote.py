"""Work done by other processes, on this machine or on a cluster: what it is about is sent to each of them once.

A task is a function and all that it closes over, the training data above all. A call then carries a few numbers.
Answers come back in order, so that sums are added up in the same order.

Workers may die: their calls are made again. A caller who has lost them all, or the scheduler, gets an error.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any, TypeVar

from datassay._cluster import Cluster
from datassay._crew import Crew, Promise, Task, Workers
from datassay._packing import PackedTask, pack, remove
from datassay._processes import Processes

T = TypeVar("T")
SECONDS_A_CALL = 0.2  # a call takes milliseconds of everybody's time, whatever it asks for
LARGEST_CALL = 32  # groups


def in_order(
    task: Callable[[range], T], groups: Sequence[range], by: Workers, report: Callable[[int], None]
) -> Iterator[T]:
    """Results of the tasks in their order, at most a few ahead of the one being consumed."""
    if by.kind == "joblib":
        yield from _through_joblib(task, groups, by.count, report)
        return
    crew: Crew
    if by.kind == "dask":
        crew = Cluster(Timed(task), by.client)
    else:
        crew = Processes(Timed(task), min(by.count, max(1, len(groups))), writable=True)
    waiting: deque[tuple[Sequence[range], Promise]] = deque()

    def oldest() -> tuple[Sequence[range], float, list[T]]:
        while True:
            try:
                seconds, found = waiting[0][1].result()
                return waiting.popleft()[0], seconds, found
            except BrokenExecutor:
                crew.renew()
                for at, (batch, _) in enumerate(waiting):
                    waiting[at] = (batch, crew.submit(batch))

    at, size = 0, 1
    try:
        while at < len(groups) or waiting:
            while at < len(groups) and len(waiting) <= 2 * crew.count() + 1:
                # As many as are worth a call, but so that at the end nobody waits for a long one.
                taken = groups[at : at + max(1, min(size, (len(groups) - at) // (4 * crew.count())))]
                waiting.append((taken, crew.submit(taken)))
                at += len(taken)
            batch, seconds, found = oldest()
            size = min(LARGEST_CALL, max(1, int(SECONDS_A_CALL * len(batch) / max(seconds, 1e-6))))
            for group, result in zip(batch, found, strict=True):
                yield result
                report(len(group))
    except BaseException as problem:
        crew.close(at_once=isinstance(problem, KeyboardInterrupt))
        raise
    else:
        crew.close(at_once=False)


class Timed:
    """A task that is called for several groups at once, and says how long they took."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self, groups: Sequence[range]) -> tuple[float, list[Any]]:
        """Call the task for each."""
        began = time.perf_counter()
        found = [self.task(group) for group in groups]
        return time.perf_counter() - began, found


def _through_joblib(
    task: Callable[[range], T], groups: Sequence[range], jobs: int, report: Callable[[int], None]
) -> Iterator[T]:
    """By whatever backend the caller registered with joblib."""
    import joblib
    from joblib.parallel import get_active_backend

    backend = get_active_backend(prefer="threads")[0]
    near = type(backend).__name__ == "MultiprocessingBackend"  # on this machine: the task goes by file
    folder = pack(task, "the task") if near else None
    call = joblib.delayed(task if folder is None else PackedTask(str(folder), writable=True))
    try:
        if getattr(backend, "supports_return_generator", False):
            parts, kept = [groups], "generator"
        else:  # a few at a time, since all would have to be kept otherwise
            parts, kept = [groups[at : at + 4 * jobs] for at in range(0, len(groups), 4 * jobs)], "list"
        with joblib.Parallel(n_jobs=jobs, return_as=kept, batch_size=1) as parallel:
            for part in parts:
                for group, answer in zip(part, parallel(call(group) for group in part), strict=True):
                    yield answer
                    report(len(group))
    finally:
        if folder is not None:
            remove(folder)
