"""Passes on a device: rankings and neighbourhoods in blocks that fit into it, and what is made of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from datassay._crew import Workers
from datassay._errors import UnavailableError, UsageError
from datassay._run import Schedule
from datassay._tensors import Tensor, TorchDevice, in_memory, is_tensor, the_torch
from datassay._work import Bar, add_up, chunks, gather
from datassay.neighbors.device.memory import allowed_bytes, enough_for, memory_ran_out, too_little
from datassay.neighbors.device.space import DeviceSpace
from datassay.neighbors.device.sums import Total
from datassay.neighbors.views import (
    FullRanking,
    Nearest,
    NearestDistances,
    NearestRanking,
    Ranked,
    View,
    WithinThreshold,
    others,
)

MOST_PAIRS: Final = 2**36  # of so many validation points, before what was found is handed over
MOST_ROWS: Final = 1024  # … so many of them at the most, before their sum joins the others
FEWEST_ROWS: Final = 32
BLOCK: Final = 2**28  # pairs looked at together: enough to keep a card busy
FIRST: Final = 2**14  # training points that are sorted whole before others are compared with the nearest of them
ALONE: Final = 400_000  # points from which on a card sorts rows one by one, two at a time


def ranked(found: Tensor) -> Tensor:
    """For each row of distances the points, nearest first; ties to the smaller index."""
    torch = the_torch()
    rows, n = found.shape
    if found.device.type != "cuda" or n < ALONE:
        return torch.sort(found, dim=1, stable=True)[1]
    # A row of this size keeps a card busy, nearly: two at a time do.
    order = torch.empty((rows, n), dtype=torch.int64, device=found.device)
    now, streams = torch.cuda.current_stream(found.device), _streams(found.device)
    spare = [torch.empty(n, dtype=found.dtype, device=found.device) for _ in streams]
    for stream in streams:
        stream.wait_stream(now)
    try:
        for row in range(rows):
            with torch.cuda.stream(streams[row % 2]):
                torch.sort(found[row], stable=True, out=(spare[row % 2], order[row]))
    finally:  # also where memory runs out half way: others get this memory next, and must not before it is done with
        for stream in streams:
            now.wait_stream(stream)
    return order


@cache
def _streams(device: TorchDevice) -> tuple[Any, Any]:
    """Two streams of the card's work, always the same: each keeps memory for its sorts."""
    cuda = the_torch().cuda
    return cuda.Stream(device), cuda.Stream(device)


def nearest(space: DeviceSpace, start: int, rows: int, wanted: int, most_columns: int) -> tuple[Tensor, Tensor]:
    """The ``wanted`` nearest of each row and what ranks them, nearest first; ties to the smaller index.

    The first points are sorted; of the others, a piece at a time, only those nearer than the last one wanted are
    looked at. They have larger indices, so among equals they lose.
    """
    torch = the_torch()
    n = space.n_train
    width = min(n, most_columns, n if 2 * wanted >= n else max(4 * wanted, FIRST))
    far = space.between(start, rows, 0, width)
    order = ranked(far)[:, :wanted]
    far = far.gather(1, order)
    first = width
    while first < n:
        last = min(n, first + width)
        here = space.between(start, rows, first, last)
        limit = far[:, -1:] if far.shape[1] == wanted else torch.full_like(far[:, :1], float("inf"))
        row, column = (here < limit).nonzero(as_tuple=True)
        counts = torch.bincount(row, minlength=rows)
        most = int(counts.max())
        if most:
            place = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
            nearer = torch.full((rows, most), float("inf"), dtype=far.dtype, device=far.device)
            who = torch.zeros((rows, most), dtype=order.dtype, device=far.device)
            nearer[row, place], who[row, place] = here[row, column], column + first
            far, order = torch.cat([far, nearer], 1), torch.cat([order, who], 1)
            far, at = torch.sort(far, dim=1, stable=True)
            far, order = far[:, :wanted].clone(), order.gather(1, at[:, :wanted])
        first, width = last, min(2 * width, most_columns)
    return order, far


@dataclass(frozen=True)
class DeviceRanked:
    """A block of rankings on a device: as :class:`datassay.neighbors.Ranked`, of tensors."""

    rows: slice
    order: Any
    space: DeviceSpace
    far: Any = None

    on_device = True

    def empty(self) -> Any:
        """One number for each of the rows, to be filled in."""
        torch = the_torch()
        return torch.empty(len(self.order), dtype=torch.float64, device=self.order.device)

    def here(self) -> Any:
        """The same block, in memory."""
        order = in_memory(self.order).astype(np.uint32)
        if self.far is None:
            return Ranked(self.rows, order)
        return Nearest(self.rows, order, self.space.true_distances(in_memory(self.far)))


@dataclass(frozen=True)
class DeviceWithin:
    """A block of neighbourhoods on a device: as :class:`datassay.neighbors.Within`, of tensors."""

    rows: slice
    inside: Any

    on_device = True


class DeviceBlocks:
    """A view from a device, in blocks that fit: where one does not, it and all later ones are smaller."""

    def __init__(self, space: DeviceSpace, view: object, memory: int | None) -> None:
        if not isinstance(view, FullRanking | NearestRanking | WithinThreshold):
            raise UsageError("a device finds rankings, the nearest, and who is within a threshold; leave device out")
        self.space = space
        self.with_distances = isinstance(view, NearestDistances)
        self.chooses = isinstance(view, NearestRanking)
        n, size = space.n_train, space.dtype.itemsize
        self.wanted = min(view.limit, others(space)) if isinstance(view, NearestRanking) else 0
        allowed = allowed_bytes(space.device, memory)
        # Training points looked at together, where not all must be.
        self.piece = most = min(n, max(FIRST, BLOCK // MOST_ROWS, 4 * self.wanted))
        features = space.n_features * size
        all_features = (n if space.excludes_self else n + space.n_validation) * features
        if not space.resident:
            self.piece = max(1, min(self.piece, allowed // (4 * features)))
            allowed -= 2 * self.piece * features
        elif memory is not None:
            allowed -= all_features
        # Bytes a row: distances, what it takes to sort or to choose at worst, and what formulas take.
        if isinstance(view, WithinThreshold):
            a_point, beside, self.limit = 2 * size + 26, 0, space.threshold(view.tau)
        elif isinstance(view, FullRanking):
            a_point, beside, self.wanted = 3 * size + 56, 0, others(space)
        else:
            a_point, beside = 5 * size + 66, self.wanted * (3 * size + 72)
        beside += 0 if space.resident else features  # of those that are looked from, which pass by too
        self.piece = min(self.piece, max(self.wanted, (allowed - beside) // a_point))
        each = (self.piece if self.chooses else n) * a_point + beside
        if memory is not None and allowed < each:
            enough = 2 * all_features + (most if self.chooses else n) * a_point + beside
            raise UnavailableError(
                f"memory={memory} bytes is too little for one validation point against {n} training points; allow "
                f"{enough} ({-(-enough // 2**20)} MiB)"
            )
        self.rows = max(1, min(allowed // each, BLOCK // (self.piece if self.chooses else n)))

    def over(self, group: range, use: Callable[[Any], None]) -> None:
        """Show every block of the group to ``use``, which changes nothing until it has all the memory it needs."""
        start = group.start
        while start < group.stop:
            rows = min(self.rows, group.stop - start)
            try:
                use(self._block(start, rows))
            except RuntimeError as error:
                told = memory_ran_out(error)
            else:
                start += rows
                continue
            self._halve(rows, told)

    def _halve(self, rows: int, told: str) -> None:
        """A block did not fit: make them smaller, or say that not even one row does."""
        if rows == 1:
            raise too_little(self.space.device, f"one validation point beside {self.space.n_train:,} records", told)
        self.rows = rows // 2
        if self.space.device.type == "cuda":
            the_torch().cuda.empty_cache()

    def _block(self, start: int, rows: int) -> "DeviceRanked | DeviceWithin":
        """Look from these validation points."""
        span, space = slice(start, start + rows), self.space
        if self.chooses:
            order, far = nearest(space, start, rows, self.wanted, self.piece)
            return DeviceRanked(span, order, space, far if self.with_distances else None)
        if self.wanted:
            found = self._all(start, rows, space.between, space.tensor_dtype)
            return DeviceRanked(span, ranked(found)[:, : self.wanted], space)
        return DeviceWithin(span, self._all(start, rows, partial(space.within, limit=self.limit), the_torch().bool))

    def _all(self, start: int, rows: int, look: Callable[..., Any], dtype: Any) -> Tensor:
        """What is seen of all training points, a piece at a time if their features pass by."""
        n = self.space.n_train
        if self.space.resident:
            return look(start, rows, 0, n)
        found = the_torch().empty((rows, n), dtype=dtype, device=self.space.device)
        for piece in chunks(n, self.piece):
            found[:, piece.start : piece.stop] = look(start, rows, piece.start, piece.stop)
        return found


def _groups(space: DeviceSpace) -> list[range]:
    """Validation points whose sums join at a time: by the sizes of the data alone, since they fix the bits."""
    return chunks(space.n_validation, min(MOST_ROWS, max(FEWEST_ROWS, MOST_PAIRS // space.n_train)))


def accumulate_on_device(
    space: DeviceSpace, view: View[Any], add: Callable[[Any, Any], None], run: Schedule
) -> NDArray[np.float64]:
    """Sum over validation points: ``add(block, total)`` adds to a :class:`Total`. The twin of ``accumulate``."""
    blocks, groups = DeviceBlocks(space, view, run.device_memory), _groups(space)

    def task(group: range) -> NDArray[np.float64]:
        with enough_for(space.device, f"one sum for each of {space.n_train:,} records"):
            total = Total(space.n_train, space.device)
            blocks.over(group, lambda block: add(block, total))
            return total.sums()

    with Bar(run.progress, space.n_validation) as report:
        return add_up(task, groups, Workers("threads", 1), report, space.n_train, run.checkpoint)


def collect_on_device(
    space: DeviceSpace, view: View[Any], compute: Callable[[Any], tuple[Any, ...]], run: Schedule
) -> tuple[NDArray[Any], ...]:
    """What ``compute(block)`` says of each validation point, in memory. The twin of ``collect``."""
    blocks, groups = DeviceBlocks(space, view, run.device_memory), _groups(space)

    def task(group: range) -> tuple[NDArray[Any], ...]:
        found: list[tuple[NDArray[Any], ...]] = []

        def use(block: Any) -> None:
            found.append(tuple(in_memory(one) if is_tensor(one) else one for one in compute(block)))

        blocks.over(group, use)
        return found[0] if len(found) == 1 else tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    with Bar(run.progress, space.n_validation) as report:
        return gather(task, groups, Workers("threads", 1), report, run.checkpoint)
