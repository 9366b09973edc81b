"""Training points that pass by in blocks, as seen from validation points that stay in memory.

The nearest J and who is within τ can be put together from blocks of training points; the full ranking cannot, without
keeping all of it. Whatever the blocks, the bits are those of all points in one array: a distance does not depend on
them, of equally near points the one with the smaller number wins, and sums are taken in the same order.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import CheckpointError, InputError, UnavailableError, UsageError
from datassay._run import Schedule
from datassay._work import thread_count
from datassay.data import Inputs, Records, read_ahead
from datassay.neighbors.space import (
    METRICS,
    FeatureSpace,
    Floats,
    Scratch,
    bits_of,
    check_not_too_large,
    check_not_too_small,
    just_at_most,
    make_space,
)

if TYPE_CHECKING:
    from datassay._checkpoint import Arrays, Kept

MOST_ROWS: Final = 2**17  # of a block: larger ones save nothing
BLOCK_BYTES: Final = 2**24
COPIES: Final = 9  # of a block's features at most at a time: three blocks, as read, as columns, and as tiles
AT_ONCE: Final = 32  # validation points whose distances are found together: their sums stay in the nearest cache
MOST_TILES: Final = 16  # whose distances are found together: they stay in the second-nearest cache
NOT_IN_MEMORY: Final = (
    "this needs all training records in memory, and these are read in blocks; read them with read_table or "
    "Records.read()"
)


@dataclass(frozen=True, eq=False)
class RecordSpace:
    """Records in files as seen from validation points in memory; distances are found a block at a time."""

    records: Records
    seen: FeatureSpace  # the validation points, before an empty room
    n_train: int
    n_validation: int
    n_features: int
    dtype: np.dtype[np.float32] | np.dtype[np.float64]
    excludes_self: bool = False

    def fill(self, start: int, out: Floats) -> None:
        """Refuse: not all training records are at hand."""
        raise UsageError(NOT_IN_MEMORY)

    def threshold(self, tau: float) -> float:
        """``tau`` in the scale of the distances."""
        return self.seen.threshold(tau)

    def true_distances(self, filled: Floats) -> Floats:
        """From what ranks points to distances."""
        return self.seen.true_distances(filled)

    def check(self) -> None:
        """Look at every record once, and refuse what cannot be used."""
        for _ in self.tiles(MOST_ROWS):
            pass

    def tiles(self, rows: int, first: int = 0) -> Iterator[tuple[int, int, Floats]]:
        """Records from ``first`` on in blocks of ``rows``: the number of a block's first, how many, and their tiles."""
        return read_ahead(self._tiles(rows, first))

    def _tiles(self, rows: int, first: int) -> Iterator[tuple[int, int, Floats]]:
        from datassay.neighbors import kernels

        cosine = self.seen.metric == kernels.COSINE
        reach, largest = float(np.abs(self.seen.queries).max()), 0.0
        for start, points in self.records.features_by_block(rows, first):
            given: Floats = points if points.dtype == self.dtype else points.astype(np.float64)
            if cosine:
                given = given.copy(order="C")  # row after row, as it is about to be gone through
                zero = kernels.to_unit_length(given)
                if zero >= 0:
                    file, row = self.records.where(start + zero)
                    raise InputError(
                        f"{file} has a row of length zero at row {row} (counting from 0); cosine distance has no "
                        "meaning there"
                    )
            else:
                largest = max(largest, float(given.max()), -float(given.min()))
                check_not_too_large(reach + largest, self.dtype, self.n_features, self.seen.metric)
            n = len(given)
            tiles = np.empty((-(-n // kernels.TILE), self.n_features, kernels.TILE), self.dtype)
            kernels.fill_tiles(given, tiles)
            yield start, n, tiles
        if not cosine:
            try:
                check_not_too_small(reach + largest, self.dtype, self.seen.metric)
            except InputError:
                if first == 0:
                    raise
                self.check()  # those before may be larger


def record_space(inputs: Inputs, metric: str) -> RecordSpace:
    """The space of records that are read in blocks and validation points, checked but for the records themselves."""
    records = inputs.points
    assert isinstance(records, Records)
    _checks.choice("metric", metric, METRICS)
    if metric == "precomputed":
        raise UsageError('records read in blocks have features; metric="precomputed" is for distances')
    # The validation points are checked beside a training point that is beyond suspicion.
    seen = make_space(np.ones((1, len(records.features)), records.dtype), inputs.points_val, metric)
    assert isinstance(seen, FeatureSpace)
    if len(inputs.codes_val) != seen.n_validation:
        raise InputError(f"y_val has {len(inputs.codes_val)} labels for {seen.n_validation} rows")
    if len(records) > np.iinfo(np.uint32).max:
        raise InputError(f"there are {len(records):,} records; 2**32 is the most")
    return RecordSpace(records, seen, len(records), seen.n_validation, seen.n_features, seen.dtype)


def _filled(space: RecordSpace, tiles: Floats, points: slice, n: int, scratch: Scratch) -> Floats:
    """The distances of ``n`` training points in tiles from some of the validation points."""
    from datassay.neighbors import kernels

    queries = space.seen.queries[points]
    out: Floats = scratch("distances", (len(queries), n), space.dtype)
    kernels.distances(space.seen.metric, tiles, queries, out)
    return out


def _pieces(tiles: Floats, n: int, some: range, few: int) -> Iterator[tuple[int, int, Floats]]:
    """A few tiles at a time: where they start among the n points of the block, how many points, and the tiles."""
    width = tiles.shape[2]
    for first in range(some.start, some.stop, few):
        last = min(first + few, some.stop)
        yield first * width, min(last * width, n) - first * width, tiles[first:last]


def _even(n: int, parts: int) -> list[range]:
    """0 … n−1 in so many parts of nearly equal size, none of them empty."""
    ends = [n * part // parts for part in range(parts + 1)]
    return [range(a, b) for a, b in pairwise(ends) if b > a]


def _plan(space: RecordSpace, threads: int, memory: int, marks: int = 0) -> tuple[int, int, int]:
    """How many threads there are, records in a block, and tiles a thread works on at a time, within this memory.

    ``marks`` are the bytes that a thread keeps for each training point, beside its distances.
    """
    from datassay.neighbors import kernels

    row = COPIES * space.n_features * max(space.dtype.itemsize, space.records.dtype.itemsize)
    tile = kernels.TILE * (AT_ONCE * space.dtype.itemsize + marks)
    threads = max(1, min(threads, (memory - row * kernels.TILE) // tile))
    tile *= threads
    few = max(1, min(MOST_TILES, memory // 4 // tile))
    rows = min(MOST_ROWS, max(kernels.TILE, COPIES * BLOCK_BYTES // row), (memory - few * tile) // row)
    if rows < kernels.TILE:
        raise UnavailableError(
            f"memory={2 * memory} bytes is too little to read records of {space.n_features} features in blocks; allow "
            f"{2 * (row * kernels.TILE + tile)}"
        )
    return threads, rows // kernels.TILE * kernels.TILE, few


def nearest_of(
    space: RecordSpace, points: range, limit: int, run: Schedule, memory: int, report: Callable[[int], None]
) -> NDArray[np.uint32]:
    """The ``limit`` nearest records (or all) of these validation points, nearest first: one pass over the files."""
    from datassay.neighbors import kernels

    wanted = min(limit, space.n_train)
    room, m = room_for(space.n_train, wanted), len(points)
    kept: Floats = np.empty((m, room), space.dtype)
    bits, half = bits_of(kept)
    who, held = np.empty((m, room), np.uint32), np.zeros(m, np.int64)
    farthest = np.full(m, np.inf, space.dtype)
    threads, rows, few = _plan(space, min(thread_count(run.n_jobs), m), memory)
    rounds = -(-m // (AT_ONCE * threads))
    parts = _even(m, rounds * threads)
    scratch = Scratch()
    state = (np.array([points.start, points.stop]), kept, who, held, farthest)

    def to_sort() -> tuple[NDArray[np.generic], ...]:
        return scratch("place", (room,), np.uint32), *scratch.to_sort(room)

    def task(mine: Sequence[range], start: int, n: int, tiles: Floats) -> None:
        for part in mine:
            some = slice(part.start, part.stop)
            seen = slice(points.start + part.start, points.start + part.stop)
            for at, width, piece in _pieces(tiles, n, range(len(tiles)), few):
                filled = _filled(space, piece, seen, width, scratch)
                kernels.offer(
                    filled, start + at, wanted, half, kept[some], bits[some], who[some], held[some], farthest[some],
                    *to_sort(),
                )  # fmt: skip

    with _Team(threads, "datassay") as team, kept_pass(run, "sum", lambda first, stop: state) as done:
        first = 0
        for blocks, there in done.before():
            if np.array_equal(there[0], state[0]):
                first = blocks.stop
                for own, found in zip(state, there, strict=True):
                    own[:] = found
                report(first)
            else:  # with other memory, other points are looked from at a time
                done.forget()
        for start, n, tiles in space.tiles(rows, first) if first < space.n_train else ():
            with done.upto(start + n):
                team.run([(task, parts[t::threads], start, n, tiles) for t in range(threads)])
            report(n)
    order = np.empty((m, wanted), np.uint32)
    kernels.finish_nearest(wanted, half, kept, bits, who, held, order, *to_sort())
    return order


def room_for(n: int, wanted: int) -> int:
    """How many candidates are set aside before those that are too far are left out."""
    return min(n, max(2 * wanted, 64))


def points_at_once(space: RecordSpace, limit: int, n_jobs: int | None, memory: int) -> int:
    """How many validation points' lists of the nearest fit into the memory for lists."""
    wanted = min(limit, space.n_train)
    room = room_for(space.n_train, wanted)
    each = room * (space.dtype.itemsize + 4) + 4 * wanted
    fixed = 24 * room * min(thread_count(n_jobs), space.n_validation)
    most = (memory - fixed) // each
    if most < 1:
        raise UnavailableError(
            f"memory={2 * memory} bytes is too little: half of it must hold the {wanted:,} nearest of one validation "
            f"point, {fixed + each} bytes; allow twice that, or a larger tolerance"
        )
    return min(most, space.n_validation)


def visit_within(
    space: RecordSpace,
    tau: float,
    visit: Callable[[int, NDArray[np.uint8]], None],
    n_jobs: int | None,
    memory: int,
    report: Callable[[int], None],
    first: int,
    done: "Done",
) -> None:
    """Call ``visit(start, marks)``, in threads, for pieces of the records from ``first`` on: one pass over the files.

    Bit s of ``marks[b, i]`` says whether record start + i is within ``tau`` of validation point 8b + s.
    """
    from datassay.neighbors import kernels

    limit = just_at_most(space.threshold(tau), space.dtype)
    m = space.n_validation
    threads, rows, few = _plan(space, thread_count(n_jobs), memory, mark_bytes(m))
    scratch = Scratch()

    def task(some: range, start: int, n: int, tiles: Floats) -> None:
        for at, width, piece in _pieces(tiles, n, some, few):
            inside = scratch("marks", (mark_bytes(m), width), np.uint8)
            for first in range(0, m, AT_ONCE):
                last = min(first + AT_ONCE, m)
                filled = _filled(space, piece, slice(first, last), width, scratch)
                kernels.mark_bits(filled, limit, inside[first // 8 : mark_bytes(last)])
            visit(start + at, inside)

    with _Team(threads, "datassay") as team:
        for start, n, tiles in space.tiles(rows, first) if first < space.n_train else ():
            with done.upto(start + n):
                team.run([(task, some, start, n, tiles) for some in _even(len(tiles), threads)])
            report(n)


def mark_bytes(n_validation: int) -> int:
    """Bytes that hold a bit for each validation point."""
    return -(-n_validation // 8)


class Done:
    """How many records have been looked at, and what was found of them: kept from time to time, when it is whole.

    ``state(first, stop)`` gives what is to be kept, of all records or of those that are not kept yet.
    """

    def __init__(self, file: "Kept | None", state: "Callable[[int, int], Arrays]") -> None:
        self._file, self._state = file, state
        self._records, self._whole = 0, True

    def before(self) -> "Iterator[tuple[range, Arrays]]":
        """What an earlier run kept: records, and what was found of them."""
        return iter(()) if self._file is None else self._file.load()

    def forget(self) -> None:
        """Go on from nothing: what was kept is of other validation points."""
        if self._file is not None:
            self._file.done = 0

    @contextmanager
    def upto(self, records: int) -> Iterator[None]:
        """Looks at the records up to this one; what is found in between is not yet to be kept."""
        self._whole = False
        yield
        self._records, self._whole = records, True
        if self._file is not None and self._file.is_time():
            self.save()

    def save(self) -> None:
        """Keep what was found, unless it is the half of something."""
        if self._file is not None and self._whole and self._records > self._file.done:
            self._file.save(self._records, self._state(self._file.done, self._records))


@contextmanager
def kept_pass(run: Schedule, kind: Literal["sum", "rows"], state: "Callable[[int, int], Arrays]") -> Iterator[Done]:
    """A pass over the files that is kept, if there is a checkpoint: now and then, at the end, and when interrupted."""
    with nullcontext() if run.checkpoint is None else run.checkpoint.begin(kind) as file:
        done = Done(file, state)
        try:
            yield done
        except CheckpointError:
            raise
        except BaseException:
            done.save()
            raise
        done.save()


class _Team(ThreadPoolExecutor):
    """Threads that do a block's tasks side by side; a task that is alone is done by the caller."""

    def run(self, tasks: Sequence[tuple[Callable[..., None], *tuple[object, ...]]]) -> None:
        """Do them all; the first error among them is raised when all have ended."""
        if len(tasks) == 1:
            [(call, *arguments)] = tasks
            call(*arguments)
            return
        running = [self.submit(call, *arguments) for call, *arguments in tasks]
        for error in [future.exception() for future in running]:
            if error is not None:
                raise error
