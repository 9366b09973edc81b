"""The one expensive thing, done once: blocks of validation points against all training points.

A pass runs groups of validation points through a *view* (the full ranking, the nearest J, or who is within τ)
and hands each block to a small kernel. :func:`accumulate` adds up what the kernel says of each training point;
:func:`collect` puts together what it says of each validation point. Groups are run by threads, other processes or a
cluster (see ``_work``): a kernel gets a block and returns numbers, and touches nothing else.

Same bits whoever runs them, however many they are, and for any amount of memory: distances do not depend on blocks (see
``kernels``), and sums are always taken in the same order: within a group of consecutive validation points one
after the other, then group after group. The groups depend on the sizes of the data alone.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._checkpoint import Checkpoint
from datassay._choices import Metric
from datassay._crew import Workers
from datassay._errors import InputError, UnavailableError, UsageError
from datassay._run import DEFAULT_MEMORY, Blocks, Bytes, Device, Run, Threads, documented
from datassay._work import Bar, Progress, add_up, chunks, gather, thread_count, workers
from datassay.data import Points
from datassay.neighbors.device import DeviceSpace, accumulate_on_device, collect_on_device, device_of, device_space
from datassay.neighbors.records import NOT_IN_MEMORY, RecordSpace
from datassay.neighbors.space import FeatureSpace, Floats, MatrixSpace, NeighbourGraph, make_space

if TYPE_CHECKING:
    import torch


AnySpace = FeatureSpace | MatrixSpace | NeighbourGraph | RecordSpace | DeviceSpace
T = TypeVar("T")


@dataclass(frozen=True)
class Schedule:
    """How a pass is run; none of it can change a result.

    ``client`` is a Dask client, ``checkpoint`` where that is kept which was done. ``here``: by threads of this process,
    whatever else was chosen, for what must not leave it.
    """

    n_jobs: int | None = None
    memory: int = DEFAULT_MEMORY
    progress: Progress = None
    client: object = None
    checkpoint: Checkpoint | None = None
    here: bool = False

    @classmethod
    def of(cls, run: Run | Blocks | Threads) -> "Schedule":
        """Those of the options for running that a pass knows; a device and a folder are for its caller."""
        given = cast(Run, run)
        return cls(given.get("n_jobs"), given.get("memory", DEFAULT_MEMORY), given.get("progress"), given.get("client"))

    def workers(self) -> Workers:
        """Who runs it."""
        return Workers("threads", thread_count(self.n_jobs)) if self.here else workers(self.n_jobs, self.client)

    @property
    def device_memory(self) -> int | None:
        """Bytes a device may use, if the caller said so; None for what is free there."""
        return None if isinstance(self.memory, Bytes) else self.memory

    def __reduce__(self) -> tuple[type["Schedule"], tuple[int | None, int]]:
        # Nobody draws a bar, or asks others to work, from within a worker.
        return Schedule, (self.n_jobs, self.memory)


@dataclass(frozen=True)
class Ranked:
    """A block of rankings: ``order[v, r]`` is the training point at rank r+1 from the v-th of the ``rows``."""

    rows: slice
    order: NDArray[np.uint32]

    on_device: ClassVar[bool] = False

    def empty(self) -> NDArray[np.float64]:
        """One number for each of the rows, to be filled in."""
        return np.empty(len(self.order))

    def here(self) -> Self:
        """The same block, in memory."""
        return self


@dataclass(frozen=True)
class Nearest(Ranked):
    """A block of the nearest few, with their distances."""

    distances: Floats


@dataclass(frozen=True)
class Distances:
    """A block of the numbers that rank the training points (squared, for Euclidean distance)."""

    rows: slice
    filled: Floats


@dataclass(frozen=True)
class Within:
    """A block of neighbourhoods: ``inside[v, i]`` is 1 if training point i is within τ of the v-th of ``rows``."""

    rows: slice
    inside: NDArray[np.uint8]

    on_device: ClassVar[bool] = False


B_co = TypeVar("B_co", covariant=True)


class View(Protocol[B_co]):
    """How a pass looks at the training points."""

    def bytes_fixed(self, space: AnySpace) -> int:
        """Scratch a worker needs whatever the block."""
        ...

    def bytes_per_row(self, space: AnySpace) -> int:
        """Scratch a worker needs for each row of a block."""
        ...

    def block(self, space: AnySpace, start: int, rows: int, scratch: "Scratch") -> B_co:
        """Look from the validation points start … start+rows."""
        ...


class Scratch:
    """A worker's buffers, kept from block to block so that memory is touched once."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[np.generic]] = {}

    def __call__(self, name: str, shape: tuple[int, ...], dtype: type[np.generic] | np.dtype[np.generic]) -> NDArray:  # type: ignore[type-arg]
        """A buffer of that name and shape, its content undefined."""
        size = math.prod(shape)
        array = self._arrays.get(name)
        if array is None or array.size < size or array.dtype != dtype:
            array = self._arrays[name] = np.empty(size, dtype)
        return array[:size].reshape(shape)


class _Scratches:
    """The buffers of every thread that works on a pass; elsewhere there are others."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __reduce__(self) -> tuple[type["_Scratches"], tuple[()]]:
        return _Scratches, ()

    def mine(self) -> Scratch:
        """Those of this thread."""
        if not hasattr(self._local, "scratch"):
            self._local.scratch = Scratch()
        scratch: Scratch = self._local.scratch
        return scratch


def _sort_buffers(scratch: Scratch, n: int) -> tuple[NDArray[np.generic], ...]:
    from datassay.neighbors import kernels

    return (
        scratch("short", (n,), np.uint32),
        scratch("words", (n,), np.uint64),
        scratch("spare", (n,), np.uint64),
        scratch("counts", (3, 1 << kernels.DIGIT), np.uint32),
    )


def _bits(block: Floats) -> tuple[NDArray[np.int32] | NDArray[np.int64], int]:
    """The floats' bits as signed integers, and all of an integer's bits but the sign's."""
    if block.dtype == np.float32:
        return block.view(np.int32), 2**31 - 1
    return block.view(np.int64), 2**63 - 1


def others(space: AnySpace) -> int:
    """How many training points a validation point can have as neighbours."""
    excluded = not isinstance(space, NeighbourGraph) and space.excludes_self
    return space.n_train - 1 if excluded else space.n_train


@dataclass(frozen=True)
class FullRanking:
    """Every training point, nearest first."""

    def bytes_fixed(self, space: AnySpace) -> int:
        """Keys and two buffers of words."""
        return 20 * space.n_train

    def bytes_per_row(self, space: AnySpace) -> int:
        """Distances and ranking."""
        return 0 if isinstance(space, NeighbourGraph) else (space.dtype.itemsize + 4) * space.n_train

    def block(self, space: AnySpace, start: int, rows: int, scratch: Scratch) -> Ranked:
        """Rank all training points."""
        from datassay.neighbors import kernels

        if isinstance(space, NeighbourGraph):
            return Ranked(slice(start, start + rows), space.nearest(space.n_train, start, rows)[0])
        filled = scratch("distances", (rows, space.n_train), space.dtype)
        space.fill(start, filled)
        order = scratch("order", (rows, others(space)), np.uint32)
        kernels.rank(*_bits(filled), order, *_sort_buffers(scratch, space.n_train))
        return Ranked(slice(start, start + rows), order)


@dataclass(frozen=True)
class NearestRanking:
    """The ``limit`` nearest training points (or all, if there are fewer), nearest first."""

    limit: int

    def bytes_fixed(self, space: AnySpace) -> int:
        """A buffer of candidates, or of all points where most are wanted."""
        return 36 * (space.n_train if self._sorts_all(space) else self._room(space))

    def bytes_per_row(self, space: AnySpace) -> int:
        """Distances and the nearest."""
        if isinstance(space, NeighbourGraph):
            return 12 * self._wanted(space)
        return space.dtype.itemsize * (space.n_train + 2 * self._wanted(space)) + 4 * self._wanted(space)

    def _wanted(self, space: AnySpace) -> int:
        return min(self.limit, others(space))

    def _sorts_all(self, space: AnySpace) -> bool:
        return 2 * self._wanted(space) >= others(space)

    def _room(self, space: AnySpace) -> int:
        return min(space.n_train, max(2 * self._wanted(space), 64))

    def block(self, space: AnySpace, start: int, rows: int, scratch: Scratch) -> Ranked:
        """Select and rank the nearest."""
        from datassay.neighbors import kernels

        wanted = self._wanted(space)
        if isinstance(space, NeighbourGraph):
            return Ranked(slice(start, start + rows), space.nearest(wanted, start, rows)[0])
        filled = scratch("distances", (rows, space.n_train), space.dtype)
        space.fill(start, filled)
        bits, half = _bits(filled)
        order = scratch("order", (rows, wanted), np.uint32)
        if self._sorts_all(space):
            kernels.rank(bits, half, order, *_sort_buffers(scratch, space.n_train))
        else:
            room = self._room(space)
            kernels.nearest(
                bits,
                half,
                order,
                scratch("chosen", (room,), np.uint32),
                scratch("gathered", (room,), bits.dtype),
                scratch("place", (room,), np.uint32),
                *_sort_buffers(scratch, room),
            )
        return Ranked(slice(start, start + rows), order)


@dataclass(frozen=True)
class NearestDistances(NearestRanking):
    """The nearest, as above, with their distances."""

    def block(self, space: AnySpace, start: int, rows: int, scratch: Scratch) -> Nearest:
        """Select and rank the nearest, and look up how far they are."""
        if isinstance(space, NeighbourGraph):
            return Nearest(slice(start, start + rows), *space.nearest(self._wanted(space), start, rows))
        ranked = super().block(space, start, rows, scratch)
        filled = scratch("distances", (rows, space.n_train), space.dtype)  # as the ranking left them
        return Nearest(
            ranked.rows, ranked.order, space.true_distances(np.take_along_axis(filled, ranked.order, axis=1))
        )


@dataclass(frozen=True)
class WithinThreshold:
    """Who is at a distance of at most ``tau``."""

    tau: float

    def bytes_fixed(self, space: AnySpace) -> int:
        """Nothing."""
        return 0

    def bytes_per_row(self, space: AnySpace) -> int:
        """Distances and marks."""
        return (1 if isinstance(space, NeighbourGraph) else space.dtype.itemsize + 1) * space.n_train

    def block(self, space: AnySpace, start: int, rows: int, scratch: Scratch) -> Within:
        """Mark the neighbours."""
        from datassay.neighbors import kernels

        inside = scratch("inside", (rows, space.n_train), np.uint8)
        if isinstance(space, NeighbourGraph):
            space.mark_within(self.tau, start, inside)
        else:
            filled = scratch("distances", (rows, space.n_train), space.dtype)
            space.fill(start, filled)
            kernels.mark_within(filled, space.threshold(self.tau), inside)
        return Within(slice(start, start + rows), inside)


@dataclass(frozen=True)
class EveryDistance:
    """The distances themselves, unsorted."""

    def bytes_fixed(self, space: AnySpace) -> int:
        """Nothing."""
        return 0

    def bytes_per_row(self, space: AnySpace) -> int:
        """Distances."""
        return 0 if isinstance(space, NeighbourGraph) else space.dtype.itemsize * space.n_train

    def block(self, space: AnySpace, start: int, rows: int, scratch: Scratch) -> Distances:
        """Fill in the distances."""
        if isinstance(space, NeighbourGraph):
            raise InputError("a neighbour graph does not hold every distance; give features or a distance matrix")
        filled = scratch("distances", (rows, space.n_train), space.dtype)
        space.fill(start, filled)
        return Distances(slice(start, start + rows), filled)


def group_size(n_validation: int, n_features: int) -> int:
    """How many consecutive validation points are summed before their sum joins the total.

    About 64 groups keep many threads busy; more features a point want more points at a time, to read the
    training tiles fewer times. It depends on the data's sizes alone: it fixes the order of summation.
    """
    for_balance = -(-n_validation // 64)
    for_reuse = min(-(-n_validation // 8), -(-n_features // 2))
    return min(32, max(for_balance, for_reuse))


@dataclass(frozen=True)
class _Plan:
    workers: Workers
    rows: int
    groups: Sequence[range]


def _plan(space: AnySpace, view: View[T], run: Schedule, extra_per_worker: int) -> _Plan:
    """Workers and rows a block that fit into the memory allowed: for all of them on this machine, each on a cluster."""
    if isinstance(space, RecordSpace):
        raise UsageError(NOT_IN_MEMORY)
    memory = _checks.integer("memory", run.memory, at_least=1)
    n_features = 1 if isinstance(space, NeighbourGraph) else space.n_features
    size = group_size(space.n_validation, n_features)
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
    return _Plan(by, min(rows, size), groups)


def _blocks(space: AnySpace, view: View[T], group: range, rows: int, scratch: Scratch) -> Iterator[T]:
    for start in range(group.start, group.stop, rows):
        yield view.block(space, start, min(rows, group.stop - start), scratch)


def accumulate(
    space: AnySpace,
    view: View[T],
    add: Callable[[T, NDArray[np.float64]], None],
    run: Schedule,
) -> NDArray[np.float64]:
    """Sum over validation points: ``add(block, total)`` adds, row after row, to one number per training point."""
    if isinstance(space, RecordSpace):
        from datassay.neighbors.streaming import accumulate_records

        return accumulate_records(space, view, add, run)
    if isinstance(space, DeviceSpace):
        return accumulate_on_device(space, view, add, run)
    # A group's sum, one more that may wait for its turn, and as much for the kernel.
    plan = _plan(space, view, run, extra_per_worker=24 * space.n_train)
    rows, scratches = plan.rows, _Scratches()

    def task(group: range) -> NDArray[np.float64]:
        total = np.zeros(space.n_train)
        for block in _blocks(space, view, group, rows, scratches.mine()):
            add(block, total)
        return total

    with Bar(run.progress, space.n_validation) as report:
        return add_up(task, plan.groups, plan.workers, report, space.n_train, run.checkpoint)


def collect(
    space: AnySpace, view: View[T], compute: Callable[[T], tuple[NDArray[Any], ...]], run: Schedule
) -> tuple[NDArray[Any], ...]:
    """What ``compute(block)`` says of each validation point: arrays with one row for each, of every block in turn.

    Blocks are views of buffers that the next block writes over: ``compute`` returns arrays of its own.
    """
    if isinstance(space, DeviceSpace):
        return collect_on_device(space, view, compute, run)
    plan = _plan(space, view, run, extra_per_worker=0)
    rows, scratches = plan.rows, _Scratches()

    def task(group: range) -> tuple[NDArray[Any], ...]:
        found = [compute(block) for block in _blocks(space, view, group, rows, scratches.mine())]
        return found[0] if len(found) == 1 else tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    with Bar(run.progress, space.n_validation) as report:
        return gather(task, plan.groups, plan.workers, report, run.checkpoint)


def one_by_one(space: AnySpace, view: View[T], run: Schedule) -> Iterator[T]:
    """The blocks one after the other, here: for what is added up over validation points in a way of its own."""
    plan = _plan(space, view, Schedule(1, run.memory, here=True), extra_per_worker=0)
    scratch = Scratch()
    with Bar(run.progress, space.n_validation) as report:
        for group in plan.groups:
            yield from _blocks(space, view, group, plan.rows, scratch)
            report(len(group))


def space_on(
    device: "torch.device | None",
    X: object,
    X_val: object | None,
    metric: str,
    run: Schedule,
    *,
    zero_rows: bool = False,
) -> AnySpace:
    """The space behind the arguments of a value function: in memory, or on this device."""
    if device is None:
        return make_space(X, X_val, metric, zero_rows=zero_rows)
    thread_count(run.n_jobs)  # which a device does not need, and what is no number of threads is refused all the same
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
