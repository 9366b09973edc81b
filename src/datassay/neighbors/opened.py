"""One search for neighbours, many values: data opened once, and handed to every method that looks at the same.

What methods share is kept here: encoded features, the tiles that distances are computed from, and, where they fit into
the memory allowed, the rankings. A method that needs the nearest few is served from the lists of one that needed more.
None of it changes a value: sums are taken in the same order, whether blocks are computed or kept.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Metric
from datassay._errors import UsageError
from datassay._run import DEFAULT_MEMORY, Device, Schedule
from datassay._work import thread_count
from datassay.data import ACCEPTED, FittedOn, Inputs, Records, Table, prepare, prepare_records
from datassay.data import Ids as Ids  # what neighbours are opened with; what takes the one takes the others
from datassay.data import Labels as Labels
from datassay.data import Points as Points
from datassay.neighbors.device import DeviceSpace, device_of
from datassay.neighbors.passes import accumulate, collect, space_on
from datassay.neighbors.records import record_space
from datassay.neighbors.space import FeatureSpace, MatrixSpace, NeighbourGraph, Scratch, check_labels
from datassay.neighbors.views import (
    AnySpace,
    FullRanking,
    NearestDistances,
    NearestRanking,
    Ranked,
    View,
    Within,
    WithinThreshold,
    others,
)

T = TypeVar("T")
FEW: Final = 2**16
TWO_WORKERS: Final = "device and client are two answers to who does the work; give one of them"
IN_MEMORY: Final = object()
"""In place of a device: what calls this wants its data in memory, wherever they come from."""


class _Unsaid(str):
    """A metric that the caller did not ask for: neighbours that are handed over have one of their own."""


EUCLIDEAN: Final = cast(Metric, _Unsaid("euclidean"))
COSINE: Final = cast(Metric, _Unsaid("cosine"))


class Neighbours:
    """A data set opened once, for all methods that look at the same neighbours: they do not search again.

    Every function of records and their neighbours takes it in the place of X, and then no y, X_val, y_val, metric or
    ids. Results have the same bits as without it, where the metric is the same: threshold values want "cosine".

    Parameters
    ----------
    X, y, X_val, y_val
        As in :func:`datassay.knn_shapley`. A validation table may follow the training table directly, as each has its
        own labels. Without validation data the records are each other's neighbours.
    metric, ids, device
        As in :func:`datassay.knn_shapley`.
    memory
        Bytes for rankings that are kept (512 MiB). A ranking that does not fit is computed anew by every method that
        needs all of it, and as many of the nearest as fit are kept on the way. On a card, and of records in files, none
        is kept.
    fitted_on
        ``"validation"`` encodes tables by the validation table alone, as the private functions want it.

    Examples
    --------
    >>> import datassay as da
    >>> train, validation = da.census(500).split(0.8, 0.2)
    >>> near = da.Neighbours(train, validation)
    >>> values, exact = da.knn_shapley(near, k=5), da.knn_banzhaf(near, k=5)  # one search for both
    >>> bool((values.values == da.knn_shapley(train, X_val=validation, k=5).values).all())
    True
    """

    def __init__(
        self,
        X: Points | None,
        y: Labels | Table | None = None,
        X_val: Points | NeighbourGraph | None = None,
        y_val: Labels | None = None,
        metric: Metric = EUCLIDEAN,
        *,
        ids: Ids | None = None,
        device: Device | None = None,
        memory: int = DEFAULT_MEMORY,
        fitted_on: FittedOn = "training",
    ) -> None:
        _checks.choice("fitted_on", fitted_on, ("training", "validation"))
        if isinstance(X, Table | Records) and isinstance(y, Table) and X_val is None:
            y, X_val = None, y
        given = Given(X, y, X_val, y_val, metric, ids, fitted_on=fitted_on)
        self._open(given, Schedule(memory=memory or DEFAULT_MEMORY), device)
        self._memory = _checks.integer("memory", memory, at_least=0)
        _ = self.space

    def _open(self, given: "Given", run: Schedule, device: object) -> None:
        X, X_val = given.X, given.X_val
        self.metric, self.fitted_on = given.metric_used, given.fitted_on
        self._device = None if device is IN_MEMORY else device_of(device, X, X_val)
        if self._device is not None and run.client is not None:
            raise UsageError(TWO_WORKERS)
        self._run, self._held_out, self._memory = run, f"y_{given.held_out}", 0
        self._deepest: int | None = None
        self._space: AnySpace | None = None
        self._order: NDArray[np.uint32] | None = None
        self._found: dict[str, Any] = {}
        self._within: tuple[float, NDArray[np.uint8]] | None = None
        if not isinstance(X, Records):
            self.inputs = prepare(X, given.y, X_val, given.y_val, ids=given.ids, fitted_on=given.fitted_on)
            return
        if self._device is not None:
            raise UsageError("device is for records in memory or on a card, and these are read in blocks")
        if given.fitted_on == "validation":
            raise UsageError(f"X must be in memory here: {ACCEPTED}")
        if run.client is not None:
            raise UsageError("client is for records in memory, and these are read in blocks")
        self.inputs = prepare_records(X, given.y, X_val, given.y_val, given.ids)

    def __array__(self, *_: object, **__: object) -> NDArray[Any]:
        raise UsageError("no Neighbours are taken here: give the records themselves")

    @property
    def space(self) -> AnySpace:
        """The points, ready for distances."""
        if self._space is None:
            inputs = self.inputs
            if isinstance(inputs.points, Records):
                self._space = record_space(inputs, self.metric)
                if len(inputs.points) <= FEW:  # where k is no less than their number, no method looks at them
                    self._space.check()
                return self._space
            # Where the training data must not show, a record without a direction must not stop everybody's answer.
            zero_rows = self.fitted_on == "validation"
            found = space_on(
                self._device, inputs.points, inputs.points_val, self.metric, self._run, zero_rows=zero_rows
            )
            check_labels(inputs, found.n_train, found.n_validation, self._held_out)
            self._space = found
        return self._space

    def __repr__(self) -> str:
        seen = "each other" if self.inputs.points_val is None else f"{self.space.n_validation:,} validation points"
        return f"Neighbours({self.space.n_train:,} records as seen from {seen}, {self.metric})"

    def having(self, inputs: Inputs | None = None, space: AnySpace | None = None) -> "Neighbours":
        """The same with other inputs (notes), or another space, whose rankings are not kept."""
        other = copy.copy(self)
        other.inputs = self.inputs if inputs is None else inputs
        if space is not None:
            other._space, other._order, other._within, other._memory = space, None, None, 0
        return other

    def once(self, what: str, find: Callable[[], T]) -> T:
        """What is found out about these records, the first time it is asked for."""
        if what not in self._found:
            self._found[what] = find()
        found: T = self._found[what]
        return found

    def keep(self, deepest: int, memory: int = DEFAULT_MEMORY) -> "Neighbours":
        """Keep so many of the nearest with the first search, and no more, if they fit into so many bytes."""
        self._deepest, self._memory = deepest, memory
        return self

    def nearest_kept(self, limit: int) -> NDArray[np.uint32] | None:
        """The ``limit`` nearest of every validation point, nearest first, if they are kept."""
        if self._order is None or self._order.shape[1] < min(limit, others(self.space)):
            return None
        return self._order[:, :limit]

    def accumulate(
        self, view: View[T], add: Callable[[T, NDArray[np.float64]], None], run: Schedule
    ) -> NDArray[np.float64]:
        """Sum over validation points, as ``neighbors.accumulate`` does, from what is kept if it can be."""
        return self._look(view, run, lambda view, run: accumulate(self.space, view, add, run))

    def collect(
        self, view: View[T], compute: Callable[[T], tuple[NDArray[Any], ...]], run: Schedule
    ) -> tuple[NDArray[Any], ...]:
        """What is said of each validation point, as ``neighbors.collect`` has it, or from what is kept."""
        return self._look(view, run, lambda view, run: collect(self.space, view, compute, run))

    def _look(self, view: View[Any], run: Schedule, use: Callable[[View[Any], Schedule], T]) -> T:
        """Use what is kept of this view, or else look, and keep it from now on if it fits."""
        space = self.space
        if not self._memory or run.checkpoint is not None or not isinstance(space, FeatureSpace | MatrixSpace):
            return use(view, run)
        if isinstance(view, WithinThreshold):
            return self._look_within(view, run, use)
        if isinstance(view, NearestDistances) or not isinstance(view, FullRanking | NearestRanking):
            return use(view, run)
        n, m = others(space), space.n_validation
        wanted = n if isinstance(view, FullRanking) else min(view.limit, n)
        deep = 0 if self._order is None else self._order.shape[1]
        if wanted > deep:
            fits = min(wanted if self._deepest is None else min(self._deepest, n), self._memory // (4 * m))
            if fits < wanted and (fits <= deep or run.workers().kind != "threads"):
                return use(view, run)
            self._order = None  # a deeper one takes its place
            if fits < wanted:  # kept on the way, by the threads of this process
                order = np.empty((m, fits), np.uint32)
                found = use(_Keeping(view, order), run)
                self._order = order
                return found
            (self._order,) = collect(
                space, view if fits == wanted else NearestRanking(fits), lambda block: (block.order.copy(),), run
            )
            run = replace(run, progress=None)
        assert self._order is not None
        return use(_Kept(self._order, wanted, Ranked), replace(run, here=True))

    def _look_within(self, view: WithinThreshold, run: Schedule, use: Callable[[View[Any], Schedule], T]) -> T:
        if self._within is None or self._within[0] != view.tau:
            self._within = None
            if self.space.n_validation * self.space.n_train > self._memory:
                return use(view, run)
            (inside,) = collect(self.space, view, lambda block: (block.inside.copy(),), run)
            self._within, run = (view.tau, inside), replace(run, progress=None)
        return use(_Kept(self._within[1], self.space.n_train, Within), replace(run, here=True))


@dataclass(frozen=True, eq=False)
class _Keeping(View[Ranked]):
    """A ranking, the beginning of which is kept on the way."""

    view: View[Ranked]
    order: NDArray[np.uint32]

    def bytes_fixed(self, space: AnySpace) -> int:
        return self.view.bytes_fixed(space)

    def bytes_per_row(self, space: AnySpace) -> int:
        return self.view.bytes_per_row(space)

    def block(self, space: AnySpace, start: int, rows: int, scratch: Scratch) -> Ranked:
        found = self.view.block(space, start, rows, scratch)
        self.order[found.rows] = found.order[:, : self.order.shape[1]]
        return found


@dataclass(frozen=True, eq=False)
class _Kept(View[Ranked | Within]):
    """A view as it was seen before: of each row the first so many entries."""

    rows: NDArray[Any]
    wanted: int
    block_of: type[Ranked] | type[Within]

    def bytes_per_row(self, space: AnySpace) -> int:
        return self.rows.itemsize * self.wanted

    def block(self, space: AnySpace, start: int, rows: int, scratch: Scratch) -> Ranked | Within:
        found = scratch("kept", (rows, self.wanted), self.rows.dtype)  # without gaps, as kernels are compiled for
        found[:] = self.rows[start : start + rows, : self.wanted]
        return self.block_of(slice(start, start + rows), found)


@dataclass(frozen=True, eq=False)
class Given:
    """The data that a function was given: those themselves, or neighbours that were opened before.

    ``held_out`` is what the function calls its validation data, and ``among`` says that it has none.
    """

    X: object
    y: object = None
    X_val: object | None = None
    y_val: object | None = None
    metric: str = EUCLIDEAN
    ids: object | None = None
    fitted_on: FittedOn = "training"
    held_out: str = "val"
    among: bool = False

    @property
    def metric_used(self) -> Metric:
        """The metric of the neighbours that were opened before, or else the one that was given."""
        return self.X.metric if isinstance(self.X, Neighbours) else cast(Metric, str(self.metric))

    @property
    def has_validation(self) -> bool:
        """Whether there are validation data."""
        return (self.X.inputs.points_val if isinstance(self.X, Neighbours) else self.X_val) is not None


def neighbours_of(given: Given, run: Schedule | None = None, device: object = IN_MEMORY) -> Neighbours:
    """The neighbours behind the arguments of a function: those it was handed, or some for this call alone."""
    run, near = run or Schedule(), given.X
    if not isinstance(near, Neighbours):
        found = Neighbours.__new__(Neighbours)
        found._open(given, run, device)
        return found
    said = {"y": given.y, f"X_{given.held_out}": given.X_val, f"y_{given.held_out}": given.y_val, "ids": given.ids}
    said["device"] = None if device is IN_MEMORY else device
    said["metric"] = None if isinstance(given.metric, _Unsaid) else given.metric
    for name, value in said.items():
        if value is None:
            continue
        if name.endswith("_test"):
            raise UsageError(
                f"{name}: neighbours have a test set if they are opened with it, Neighbours(X, y, X_test, y_test)"
            )
        raise UsageError(f"{name} is known already, as X is Neighbours: leave it out, or give it to Neighbours")
    if given.fitted_on == "validation" and near.fitted_on != "validation":
        raise UsageError(
            'what is private must not shape how records are encoded: X must be Neighbours(…, fitted_on="validation")'
        )
    if given.among and given.has_validation:
        raise UsageError("X must be Neighbours among the records themselves here: Neighbours(X, y), without validation")
    if isinstance(near.space, DeviceSpace):
        if device is IN_MEMORY:
            raise UsageError("this looks at neighbours in memory; open Neighbours without device")
        if run.client is not None:
            raise UsageError(TWO_WORKERS)
    thread_count(run.n_jobs)
    return near
