"""Work done by other processes, on this machine or on a cluster, which are sent the task once.

A task is a function and what it closes over, the training data above all; a call then carries a few numbers. Answers
come back in order, for the same sums. The calls of workers that die are made again.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from datassay._cluster import Cluster
from datassay._crew import Calls, Crew, Task, Workers
from datassay._packing import call_packed, pack, remove
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
        crew = Cluster(partial(_timed, task), by.client)
    else:
        crew = Processes(partial(_timed, task), min(by.count, max(1, len(groups))), writable=True)
    waiting: deque[Sequence[range]] = deque()
    at, size = 0, 1
    with Calls(crew) as calls:
        while at < len(groups) or waiting:
            while at < len(groups) and len(waiting) <= 2 * crew.count() + 1:
                # As many as are worth a call, but few at the end, where the other workers would wait for a long one.
                taken = groups[at : at + max(1, min(size, (len(groups) - at) // (4 * crew.count())))]
                calls.make(taken)
                waiting.append(taken)
                at += len(taken)
            seconds, found = calls.oldest()
            batch = waiting.popleft()
            size = min(LARGEST_CALL, max(1, int(SECONDS_A_CALL * len(batch) / max(seconds, 1e-6))))
            for group, result in zip(batch, found, strict=True):
                yield result
                report(len(group))


def _timed(task: Task, groups: Sequence[range]) -> tuple[float, list[Any]]:
    """How long several groups took, and what was found of each."""
    began = time.perf_counter()
    found = [task(group) for group in groups]
    return time.perf_counter() - began, found


def _through_joblib(
    task: Callable[[range], T], groups: Sequence[range], jobs: int, report: Callable[[int], None]
) -> Iterator[T]:
    """By the backend that the caller registered with joblib."""
    import joblib
    from joblib.parallel import get_active_backend

    backend = get_active_backend(prefer="threads")[0]
    near = type(backend).__name__ == "MultiprocessingBackend"  # on this machine: the task goes by file
    folder = pack(task, "the task") if near else None
    call = joblib.delayed(task if folder is None else partial(call_packed, str(folder), True))
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
