"""The one expensive thing, done once: blocks of validation points against all training points.

A pass runs groups of validation points through a *view* (the full ranking, the nearest J, or who is within τ)
and hands each block to a small kernel. Groups are run by threads, other processes or a cluster (see ``_work``): a
kernel gets a block and returns numbers, and touches nothing else.

Bits depend neither on who runs them nor on the memory: distances do not depend on blocks (see ``kernels``), and sums
are taken within a group of consecutive validation points one after the other, then group after group. The groups depend
on the sizes of the data alone.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Metric
from datassay._crew import Workers
from datassay._errors import UnavailableError, UsageError
from datassay._run import Blocks, Device, Schedule, documented
from datassay._tensors import TorchDevice
from datassay._work import Bar, add_up, chunks, gather, thread_count
from datassay.data import Points
from datassay.neighbors.device import DeviceSpace, device_of
from datassay.neighbors.records import NOT_IN_MEMORY, RecordSpace
from datassay.neighbors.space import Scratch, make_space
from datassay.neighbors.views import AnySpace, Nearest, NearestDistances, View, group_size, others

T = TypeVar("T")


def _plan(space: AnySpace, view: View[T], run: Schedule, extra_per_worker: int) -> tuple[Workers, int, Sequence[range]]:
    """Workers, rows a block that fit into the memory (of all of them on this machine, of each on a cluster), groups."""
    if isinstance(space, RecordSpace):
        raise UsageError(NOT_IN_MEMORY)
    memory = _checks.integer("memory", run.memory, at_least=1)
    size = group_size(space.n_validation, space.n_features)
    groups = chunks(space.n_validation, size)
    fixed = view.bytes_fixed(space) + extra_per_worker
    each = max(1, view.bytes_per_row(space))
    by = run.workers().at_most(max(1, min(len(groups), memory // (fixed + each))))
    rows = (memory // (by.count if by.share_memory else 1) - fixed) // each
    if rows < 1:
        raise UnavailableError(
            f"memory={memory} bytes is too little: one validation point against {space.n_train} training points "
            f"needs {fixed + each} ({-(-(fixed + each) // 2**20)} MiB)"
        )
    return by, min(rows, size), groups


def _blocks(space: AnySpace, view: View[T], group: range, rows: int, scratch: Scratch) -> Iterator[T]:
    for start in range(group.start, group.stop, rows):
        yield view.block(space, start, min(rows, group.stop - start), scratch)


def accumulate(
    space: AnySpace, view: View[T], add: Callable[[T, NDArray[np.float64]], None], run: Schedule
) -> NDArray[np.float64]:
    """Sum over validation points: ``add(block, total)`` adds, row after row, to one number per training point."""
    if isinstance(space, RecordSpace):
        from datassay.neighbors.streaming import accumulate_records

        return accumulate_records(space, view, add, run)
    if isinstance(space, DeviceSpace):
        from datassay.neighbors.device.passes import accumulate_on_device

        return accumulate_on_device(space, view, add, run)
    # A group's sum, one more that may wait for its turn, and as much for the kernel.
    by, rows, groups = _plan(space, view, run, extra_per_worker=24 * space.n_train)
    scratch = Scratch()

    def task(group: range) -> NDArray[np.float64]:
        total = np.zeros(space.n_train)
        for block in _blocks(space, view, group, rows, scratch):
            add(block, total)
        return total

    with Bar(run.progress, space.n_validation) as report:
        return add_up(task, groups, by, report, space.n_train, run.checkpoint)


def collect(
    space: AnySpace, view: View[T], compute: Callable[[T], tuple[NDArray[Any], ...]], run: Schedule
) -> tuple[NDArray[Any], ...]:
    """What ``compute(block)`` says of each validation point: arrays with one row for each, of every block in turn.

    Blocks are views of buffers that the next block writes over: ``compute`` returns arrays of its own.
    """
    if isinstance(space, DeviceSpace):
        from datassay.neighbors.device.passes import collect_on_device

        return collect_on_device(space, view, compute, run)
    by, rows, groups = _plan(space, view, run, extra_per_worker=0)
    scratch = Scratch()

    def task(group: range) -> tuple[NDArray[Any], ...]:
        found = [compute(block) for block in _blocks(space, view, group, rows, scratch)]
        return found[0] if len(found) == 1 else tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    with Bar(run.progress, space.n_validation) as report:
        return gather(task, groups, by, report, run.checkpoint)


def one_by_one(space: AnySpace, view: View[T], run: Schedule) -> Iterator[T]:
    """The blocks one after the other, here: for what is added up over validation points in a way of its own."""
    _, rows, groups = _plan(space, view, Schedule(1, run.memory, here=True), extra_per_worker=0)
    scratch = Scratch()
    with Bar(run.progress, space.n_validation) as report:
        for group in groups:
            yield from _blocks(space, view, group, rows, scratch)
            report(len(group))


def space_on(
    device: TorchDevice | None, X: object, X_val: object | None, metric: str, run: Schedule, *, zero_rows: bool = False
) -> AnySpace:
    """The space behind the arguments of a value function: in memory, or on this device."""
    if device is None:
        return make_space(X, X_val, metric, zero_rows=zero_rows)
    thread_count(run.n_jobs)  # which a device does not need, and what is no number of threads is refused all the same
    from datassay.neighbors.device import device_space

    return device_space(X, X_val, metric, device, run.device_memory, zero_rows=zero_rows)


@documented()
def nearest_neighbours(
    X: Points,
    X_val: Points | None = None,
    *,
    limit: int,
    metric: Metric = "euclidean",
    device: Device | None = None,
    **run: Unpack[Blocks],
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """The ``limit`` nearest training points of every validation point, and their distances.

    Exact, ties to the smaller index.

    Parameters
    ----------
    X
        Training features: an array or a data frame of numbers.
    X_val
        Features of the validation points. Left out, each record looks at all the others.
    limit
        How many neighbours are wanted.
    metric
        ``"euclidean"``, ``"cosine"`` (minus the similarity), ``"manhattan"``, or ``"precomputed"``: then X_val is the
        matrix of distances.

    Examples
    --------
    >>> import numpy as np
    >>> near, distance = nearest_neighbours(np.array([[0.0], [1.0], [5.0]]), limit=1)
    >>> near[:, 0].tolist(), distance[:, 0].tolist()
    ([1, 0, 1], [1.0, 1.0, 4.0])
    """
    limit, schedule = _checks.integer("limit", limit, at_least=1), Schedule.of(run)
    space = space_on(device_of(device, X, X_val), X, X_val, metric, schedule)

    def compute(block: Nearest) -> tuple[NDArray[Any], ...]:
        found = block.here()
        return found.order.copy(), found.distances.astype(np.float64)

    near, distances = collect(space, NearestDistances(min(limit, others(space))), compute, schedule)
    return near, distances
