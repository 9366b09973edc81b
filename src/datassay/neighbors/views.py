"""How a pass looks at the training points: all of them ranked, the nearest few, who is within τ; and how it is run."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay.neighbors.device.space import DeviceSpace
from datassay.neighbors.records import RecordSpace, room_for
from datassay.neighbors.space import FeatureSpace, Floats, MatrixSpace, NeighbourGraph, Scratch, bits_of

AnySpace = FeatureSpace | MatrixSpace | NeighbourGraph | RecordSpace | DeviceSpace


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

    on_device: ClassVar[bool] = False


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
        """Scratch a worker needs beside that for the rows of a block."""
        return 0

    def bytes_per_row(self, space: AnySpace) -> int:
        """Scratch a worker needs for each row of a block."""

    def block(self, space: AnySpace, start: int, rows: int, scratch: Scratch) -> B_co:
        """Look from the validation points start … start+rows."""


def others(space: AnySpace) -> int:
    """How many training points a validation point can have as neighbours."""
    return space.n_train - space.excludes_self


@dataclass(frozen=True)
class FullRanking(View[Ranked]):
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
        filled = EveryDistance().block(space, start, rows, scratch).filled
        order = scratch("order", (rows, others(space)), np.uint32)
        kernels.rank(*bits_of(filled), order, *scratch.to_sort(space.n_train))
        return Ranked(slice(start, start + rows), order)


@dataclass(frozen=True)
class NearestRanking:
    """The ``limit`` nearest training points (or all, if there are fewer), nearest first."""

    limit: int

    def bytes_fixed(self, space: AnySpace) -> int:
        """A buffer of candidates, or of all points where most are wanted."""
        return 36 * (space.n_train if self._sorts_all(space) else room_for(space.n_train, self._wanted(space)))

    def bytes_per_row(self, space: AnySpace) -> int:
        """Distances and the nearest."""
        if isinstance(space, NeighbourGraph):
            return 12 * self._wanted(space)
        return space.dtype.itemsize * (space.n_train + 2 * self._wanted(space)) + 4 * self._wanted(space)

    def _wanted(self, space: AnySpace) -> int:
        return min(self.limit, others(space))

    def _sorts_all(self, space: AnySpace) -> bool:
        return 2 * self._wanted(space) >= others(space)

    def block(self, space: AnySpace, start: int, rows: int, scratch: Scratch) -> Ranked:
        """Select and rank the nearest."""
        from datassay.neighbors import kernels

        wanted = self._wanted(space)
        if isinstance(space, NeighbourGraph):
            return Ranked(slice(start, start + rows), space.nearest(wanted, start, rows)[0])
        bits, half = bits_of(EveryDistance().block(space, start, rows, scratch).filled)
        order = scratch("order", (rows, wanted), np.uint32)
        if self._sorts_all(space):
            kernels.rank(bits, half, order, *scratch.to_sort(space.n_train))
        else:
            room = room_for(space.n_train, wanted)
            kernels.nearest(
                bits,
                half,
                order,
                scratch("chosen", (room,), np.uint32),
                scratch("gathered", (room,), bits.dtype),
                scratch("place", (room,), np.uint32),
                *scratch.to_sort(room),
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
class WithinThreshold(View[Within]):
    """Who is at a distance of at most ``tau``."""

    tau: float

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
            filled = EveryDistance().block(space, start, rows, scratch).filled
            kernels.mark_within(filled, space.threshold(self.tau), inside)
        return Within(slice(start, start + rows), inside)


@dataclass(frozen=True)
class EveryDistance(View[Distances]):
    """The distances themselves, unsorted."""

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
