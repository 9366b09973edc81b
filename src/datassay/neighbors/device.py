"""The second adapter: neighbours found by torch, on a graphics card or on the processor.

The same views of the same points, in blocks that fit into the card. Features that do not fit stay where they are and
pass by in pieces. Distances have the bits of ``kernels.distances``: every pair is summed feature by feature, and no
multiplication is fused with an addition (a matrix product would promise neither). So whoever is nearest is the same
everywhere, ties included.

Sums are taken of whole numbers, multiples of 2⁻⁶⁰ along a ranking and of 2⁻⁵² over validation points, whose sum does
not depend on its order: the same bits for any block, on any device, however many threads of a card add at once. From
the sums of ``kernels`` they differ by rounding alone.
"""

import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._crew import Workers
from datassay._errors import InputError, UnavailableError, UsageError
from datassay._tensors import in_memory, is_tensor, the_torch, without_tensors
from datassay._work import Bar, add_up, chunks, gather
from datassay.neighbors.space import (
    METRICS,
    PRECOMPUTED,
    Floats,
    NeighbourGraph,
    as_floats,
    check_reach,
    check_same_features,
    code_of,
    given_space,
    just_at_most,
    limit_within,
    no_direction,
    unit_length,
)

if TYPE_CHECKING:
    import torch

    from datassay.neighbors.passes import Schedule, View

ALONG: Final = 60  # bits after the point of sums along a ranking: numbers between −1 and 1, twice that on the way
OVER: Final = 52  # bits after the point of sums over validation points …
MOST_ROWS: Final = 1024  # … so many of them at the most, before their sum joins the others
FEWEST_ROWS: Final = 32
MOST_PAIRS: Final = 2**36  # of so many validation points, before what was found is handed over
BLOCK: Final = 2**28  # pairs looked at together: enough to keep a card busy
FIRST: Final = 2**14  # training points that are sorted whole before others are compared with the nearest of them
MOST_RECORDS: Final = 2**31 - 2**20  # kernels number them in 32 bits, and look a little past the last
ALONE: Final = 400_000  # points from which on a card sorts rows one by one, two at a time
SHARE: Final = 0.8  # of a card's free memory


def device_of(device: Any, *given: Any) -> "torch.device | None":
    """The device that was asked for, or the card on which one of these tensors lies; None for neither."""
    if device is None:
        found = [one.device for one in given if is_tensor(one) and one.device.type != "cpu"]
        if not found:
            return None
        device = found[0]
    torch = the_torch()
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        chosen = None
    if isinstance(device, str) and str(chosen) != device:  # torch takes cards' numbers modulo 256
        chosen = None
    if chosen is None or chosen.type not in ("cuda", "cpu") or (chosen.type == "cpu" and chosen.index):
        raise UsageError(f'device must be "cuda", "cuda:1" (the second card) or "cpu", got {device!r}')
    if chosen.type == "cuda":
        if not torch.cuda.is_available():
            raise UnavailableError(
                f'device="{chosen}" needs a card that torch can use, and it finds none; leave device out, or see '
                "whether the driver and a build of torch for CUDA are installed"
            )
        n = torch.cuda.device_count()
        chosen = torch.device("cuda", torch.cuda.current_device() if chosen.index is None else chosen.index)
        if chosen.index >= n:
            raise UnavailableError(f'there is no device "{chosen}": torch finds {n} of them, counting from 0')
    return chosen


# --- What is on the device ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DeviceSpace:
    """Distances computed on a device from features, or from a matrix of distances.

    Attributes
    ----------
    resident, points, queries
        Whether all features are on the device, as (features, points); where they do not fit, those of training and of
        validation stay where they are, as (points, features).
    matrix
        Distances the caller computed, in memory or on the device; then there are no features.
    """

    device: "torch.device"
    dtype: np.dtype[np.float32] | np.dtype[np.float64]
    metric: int
    n_train: int
    n_validation: int
    n_features: int
    excludes_self: bool
    resident: bool = True
    points: "torch.Tensor | None" = None
    queries: "torch.Tensor | None" = None
    matrix: "torch.Tensor | None" = None

    def __post_init__(self) -> None:
        if self.n_train > MOST_RECORDS:
            raise UnavailableError(
                f"a device takes at most {MOST_RECORDS:,} records and there are {self.n_train:,}; leave device out"
            )

    @property
    def others(self) -> int:
        """How many training points a validation point can have as neighbours."""
        return self.n_train - self.excludes_self

    @property
    def tensor_dtype(self) -> "torch.dtype":
        """The tensors' type."""
        return _torch_dtype(self.dtype)

    def fill(self, start: int, out: Floats) -> None:
        """Refuse: distances stay on the device."""
        raise UsageError("this looks at distances in memory; leave device out")

    def threshold(self, tau: float) -> float:
        """The largest number of this type that the distances within ``tau`` reach, in the scale of ``between``."""
        return float(just_at_most(limit_within(tau, self.metric, self.dtype), self.dtype))

    def true_distances(self, filled: Floats) -> Floats:
        """Square root for Euclidean distance, in memory, where it is rounded right; the number itself otherwise."""
        from datassay.neighbors import kernels

        return np.sqrt(filled) if self.metric == kernels.EUCLIDEAN else filled

    def seen_from(self, rows: NDArray[np.intp]) -> "DeviceSpace":
        """The training points as seen from some of the validation points, which are not excluded then."""
        at = the_torch().as_tensor(rows)
        if self.matrix is not None:
            return replace(
                self, n_validation=len(rows), matrix=self.matrix[at.to(self.matrix.device)], excludes_self=False
            )
        assert self.queries is not None
        queries = self.queries.index_select(1 if self.resident else 0, at.to(self.queries.device))
        return replace(self, n_validation=len(rows), queries=queries, excludes_self=False)

    def identity(self) -> tuple[object, ...]:
        """What tells these data from others, in memory: the same wherever features are kept."""
        features = (None if one is None else in_memory(one) for one in (self.points, self.queries))
        rows = (one.T if one is not None and self.resident else one for one in features)
        matrix = None if self.matrix is None else in_memory(self.matrix)
        return (*rows, matrix, self.metric, self.n_train, self.excludes_self)

    def between(self, start: int, rows: int, first: int, last: int) -> "torch.Tensor":
        """What ranks the training points first … last−1 as seen from the validation points start … start+rows−1."""
        return self._between(start, rows, first, last, None, float("inf"))

    def within(self, start: int, rows: int, first: int, last: int, limit: float) -> "torch.Tensor":
        """Whether what ranks them is at most this."""
        return self._between(start, rows, first, last, limit, False)

    def _between(
        self, start: int, rows: int, first: int, last: int, limit: float | None, own: float | bool
    ) -> "torch.Tensor":
        if self.matrix is not None:
            found = self.matrix[start : start + rows, first:last].to(self.device) + 0.0  # −0 becomes 0: the two tie
            found = found if limit is None else found <= limit
        else:
            assert self.points is not None
            assert self.queries is not None
            points, queries = self._some(self.points, first, last), self._some(self.queries, start, start + rows)
            found = distances(self.metric, points, queries, limit)
        if self.excludes_self and start < last and start + rows > first:
            same = the_torch().arange(max(start, first), min(start + rows, last), device=self.device)
            found[same - start, same - first] = own
        return found

    def _some(self, features: "torch.Tensor", first: int, last: int) -> "torch.Tensor":
        """The features of some points as (features, points) on the device, wherever they are kept."""
        return features[:, first:last] if self.resident else turned(features[first:last], self.device)


def turned(points: "torch.Tensor", device: "torch.device") -> "torch.Tensor":
    """(points, features) as (features, points) on the device, a piece at a time: no second copy of all of them."""
    torch = the_torch()
    n, d = points.shape
    found = torch.empty((d, n), dtype=points.dtype, device=device)
    for piece in chunks(n, max(1, 2**25 // d)):
        found[:, piece.start : piece.stop] = points[piece.start : piece.stop].to(device).T
    return found


def as_tensor(array: NDArray[Any]) -> "torch.Tensor":
    """An array as a tensor over the same memory, read-only ones too: nobody writes to it."""
    if min(array.strides, default=0) < 0:  # of an axis of length 1, in what NumPy takes for contiguous
        array = array.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return the_torch().from_numpy(array)


def device_space(
    points: object,
    points_val: object | None,
    metric: str,
    device: "torch.device",
    memory: int | None = None,
    *,
    zero_rows: bool = False,
) -> DeviceSpace:
    """The space behind the arguments of a value function, on a device; ``memory`` None: what is free there."""
    _checks.choice("metric", metric, METRICS)
    if metric == "precomputed":
        return _given(points, points_val, device)
    if points is None:
        raise UsageError(f"X must be given with metric={metric!r}")
    try:
        return _of_features(points, points_val, metric, device, memory, zero_rows)
    except RuntimeError as error:
        raise _too_little(device, "the features", _memory_ran_out(error)) from None


def _of_features(
    points: object, points_val: object | None, metric: str, device: "torch.device", memory: int | None, zero_rows: bool
) -> DeviceSpace:
    """The space of features, checked, and on the device if they fit."""
    seen = _floats("X", points)
    queries = seen if points_val is None else _floats("X_val", points_val)
    check_same_features(tuple(seen.shape), None if points_val is None else tuple(queries.shape))
    dtype = _dtype(seen) if _dtype(seen) == _dtype(queries) else np.dtype(np.float64)
    code = code_of(metric)
    seen, queries = _prepared(seen, queries, dtype, code, zero_rows)
    n, d = seen.shape
    kept = n if queries is seen else n + len(queries)
    resident = 2 * kept * d * dtype.itemsize <= _allowed(device, memory) or seen.device.type != "cpu"
    space = DeviceSpace(device, dtype, code, n, len(queries), d, points_val is None, resident, seen, queries)
    if not resident:
        return space
    there = turned(seen, device)
    return replace(space, points=there, queries=there if queries is seen else turned(queries, device))


def _dtype(tensor: "torch.Tensor") -> np.dtype[np.float32] | np.dtype[np.float64]:
    return np.dtype(np.float32) if tensor.dtype == the_torch().float32 else np.dtype(np.float64)


def _torch_dtype(dtype: np.dtype[np.float32] | np.dtype[np.float64]) -> "torch.dtype":
    torch = the_torch()
    return torch.float32 if dtype == np.float32 else torch.float64


def _floats(name: str, given: object, what: str = "feature") -> "torch.Tensor":
    """Features as a finite tensor of rows, on the card where they lie, or else in memory."""
    tensor: Any = given
    if not is_tensor(given) or tensor.device.type != "cuda":
        return as_tensor(as_floats(name, given, what))
    torch, tensor = the_torch(), tensor.detach()
    if tensor.is_complex():
        raise InputError(f"{name} must hold numbers, not {tensor.dtype}")
    if tensor.layout != torch.strided:
        raise InputError(f"{name} is a sparse tensor; give it with to_dense()")
    if not tensor.is_floating_point() and tensor.numel() and max(int(tensor.max()), -int(tensor.min())) > 2**53:
        raise InputError(f"{name} has whole numbers beyond 2**53, which float64 cannot tell apart; subtract a constant")
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.to(torch.float64)
    if tensor.ndim != 2:
        raise InputError(f"{name} must be 2-D, (rows, features); got {tensor.ndim}-D of shape {tuple(tensor.shape)}")
    for piece in chunks(len(tensor), max(1, 2**27 // max(1, tensor.shape[1]))):
        bad = ~torch.isfinite(tensor[piece.start : piece.stop])
        if bad.any():
            row, column = bad.nonzero()[0].tolist()
            raise InputError(
                f"{name} has the value {tensor[piece.start + row, column].item()} at row {piece.start + row}, column "
                f"{column} (counting from 0); every {what} must be finite"
            )
    return tensor


def _prepared(
    points: "torch.Tensor",
    queries: "torch.Tensor",
    dtype: np.dtype[np.float32] | np.dtype[np.float64],
    metric: int,
    zero_rows: bool,
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Both as the metric wants them: of one type, of unit length, and neither too large nor too small."""
    from datassay.neighbors import kernels

    torch, wanted = the_torch(), _torch_dtype(dtype)
    same = queries is points
    points = points.to(wanted)
    queries = points if same else queries.to(wanted)
    if metric == kernels.COSINE:
        points = _unit("X", points, zero_rows)
        return points, points if same else _unit("X_val", queries, False)
    reach = sum(max(abs(float(edge)) for edge in torch.aminmax(one)) for one in (points, queries))
    check_reach(reach, dtype, points.shape[1], metric)
    return points, queries


def _unit(name: str, points: "torch.Tensor", zero_rows: bool) -> "torch.Tensor":
    """Rows scaled to length 1, with the bits of ``kernels.to_unit_length``."""
    if points.device.type == "cpu":
        return as_tensor(unit_length(name, points.numpy(), zero_rows))
    torch = the_torch()
    scaled = points.T.clone(memory_format=torch.contiguous_format)  # also where it is contiguous: it is the caller's
    largest = scaled.abs().amax(0)
    empty = largest == 0
    if empty.any():
        if not zero_rows:
            raise no_direction(name, int(empty.nonzero()[0]))
        largest[empty] = 1.0
    scaled /= largest
    squares = torch.zeros_like(largest)
    for feature in scaled:
        squares += feature * feature
    squares[empty] = 1.0
    scaled /= squares.sqrt()
    return scaled.T


def _given(points: object, points_val: object | None, device: "torch.device") -> DeviceSpace:
    """The space of distances that the caller computed."""
    space = given_space(without_tensors(points), without_tensors(points_val))
    if isinstance(space, NeighbourGraph):
        raise UsageError("a neighbour graph has its neighbours already: leave device out")
    return DeviceSpace(
        device, space.dtype, PRECOMPUTED, space.n_train, space.n_validation, 1, space.excludes_self,
        matrix=as_tensor(space.matrix),
    )  # fmt: skip


# --- Distances and rankings --------------------------------------------------------------------------------------


def distances(
    metric: int, points: "torch.Tensor", queries: "torch.Tensor", limit: float | None = None
) -> "torch.Tensor":
    """What ranks the points (features, n) as seen from the queries (features, m), with the bits of the CPU's kernel.

    With a limit, whether that is at most the limit.
    """
    from datassay.neighbors import kernels

    torch = the_torch()
    n, m = points.shape[1], queries.shape[1]
    if compiled(points.device):
        from datassay.neighbors import triton_kernels

        return triton_kernels.distances(metric, points, queries, limit)
    found = torch.zeros((m, n), dtype=points.dtype, device=points.device)
    for there, here in zip(points, queries.unsqueeze(2), strict=True):
        if metric == kernels.COSINE:
            found += there * here
            continue
        apart = there - here
        found += apart.abs_() if metric == kernels.MANHATTAN else apart.square_()
    if metric == kernels.COSINE:
        found = (0.0 - found).clamp_(-1.0, 1.0)
    return found if limit is None else found <= limit


@cache
def compiled(device: "torch.device") -> bool:
    """Whether kernels of our own can be compiled for this device; without them torch's do, more slowly."""
    if device.type != "cuda":
        return False
    try:
        from datassay.neighbors import triton_kernels

        triton_kernels.try_out(device)
    except Exception as error:  # no Triton, no C compiler, a card it does not know: all of them only cost time
        if isinstance(error, RuntimeError) and _is_of_memory(error):  # that is no answer: the next block may fit
            raise
        told = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        warnings.warn(f"Triton cannot be used ({told}); torch does the same, more slowly", stacklevel=2)
        return False
    return True


def ranked(found: "torch.Tensor") -> "torch.Tensor":
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
def _streams(device: "torch.device") -> "tuple[torch.cuda.Stream, torch.cuda.Stream]":
    """Two streams of the card's work, always the same: each keeps memory for its sorts."""
    cuda = the_torch().cuda
    return cuda.Stream(device), cuda.Stream(device)


def nearest(
    space: DeviceSpace, start: int, rows: int, wanted: int, most_columns: int
) -> "tuple[torch.Tensor, torch.Tensor]":
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


# --- Sums --------------------------------------------------------------------------------------------------------


def whole(numbers: "torch.Tensor", bits: int) -> "torch.Tensor":
    """Numbers as the nearest whole multiples of 2⁻ᵇⁱᵗˢ."""
    torch = the_torch()
    return (numbers * 2.0**bits + 0.5).floor_().to(torch.int64)


class Total:
    """One sum for each training point, of numbers between −1 and 1, at most ``MOST_ROWS`` of them."""

    def __init__(self, n: int, device: "torch.device") -> None:
        torch = the_torch()
        self.whole = torch.zeros(n, dtype=torch.int64, device=device)

    def add_at(self, order: "torch.Tensor", numbers: "torch.Tensor") -> None:
        """Add what each validation point (a row) says of the training points in ``order``."""
        self.whole.scatter_add_(0, order.reshape(-1), whole(numbers, OVER).reshape(-1))

    def add(self, wholes: "torch.Tensor") -> None:
        """Add whole multiples of 2⁻⁵², one for each training point."""
        self.whole += wholes

    def sums(self) -> NDArray[np.float64]:
        """The sums, in memory."""
        torch = the_torch()
        return in_memory(self.whole.to(torch.float64) * 2.0**-OVER)


_constants: dict[tuple[int, str, object], tuple[weakref.ref[Any], Any]] = {}


def constant(
    array: NDArray[Any], like: "torch.Tensor", make: "Callable[[torch.Tensor], torch.Tensor] | None" = None
) -> "torch.Tensor":
    """An array as a tensor where ``like`` is (or what ``make`` makes of it), sent there once while the array lives."""
    key = (id(array), str(like.device), make)
    there = _constants.get(key)
    if there is not None and there[0]() is array:
        return there[1]
    tensor = as_tensor(np.ascontiguousarray(array)).to(like.device)
    tensor = tensor.clone() if tensor.device.type == "cpu" else tensor
    tensor = tensor if make is None else make(tensor)
    _constants[key] = (weakref.ref(array, lambda _: _constants.pop(key, None)), tensor)
    return tensor


# --- Passes ------------------------------------------------------------------------------------------------------


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
        from datassay.neighbors.passes import Nearest, Ranked

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


class _Looks:
    """A view from a device, in blocks that fit: where one does not, it and all later ones are smaller."""

    def __init__(self, space: DeviceSpace, view: object, memory: int | None) -> None:
        from datassay.neighbors.passes import FullRanking, NearestDistances, NearestRanking, WithinThreshold

        if not isinstance(view, FullRanking | NearestRanking | WithinThreshold):
            raise UsageError("a device finds rankings, the nearest, and who is within a threshold; leave device out")
        self.space = space
        self.with_distances = isinstance(view, NearestDistances)
        self.chooses = isinstance(view, NearestRanking)
        n, size = space.n_train, space.dtype.itemsize
        self.wanted = min(view.limit, space.others) if isinstance(view, NearestRanking) else 0
        allowed = _allowed(space.device, memory)
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
            a_point, others, self.limit = 2 * size + 26, 0, space.threshold(view.tau)
        elif isinstance(view, FullRanking):
            a_point, others, self.wanted = 3 * size + 56, 0, space.others
        else:
            a_point, others = 5 * size + 66, self.wanted * (3 * size + 72)
        others += 0 if space.resident else features  # of those that are looked from, which pass by too
        self.piece = min(self.piece, max(self.wanted, (allowed - others) // a_point))
        each = (self.piece if self.chooses else n) * a_point + others
        if memory is not None and allowed < each:
            enough = 2 * all_features + (most if self.chooses else n) * a_point + others
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
                told = _memory_ran_out(error)
            else:
                start += rows
                continue
            self._halve(rows, told)

    def _halve(self, rows: int, told: str) -> None:
        """A block did not fit: make them smaller, or say that not even one row does."""
        if rows == 1:
            raise _too_little(self.space.device, f"one validation point beside {self.space.n_train:,} records", told)
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

    def _all(self, start: int, rows: int, look: Callable[..., Any], dtype: "torch.dtype") -> "torch.Tensor":
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
    space: DeviceSpace, view: "View[Any]", add: Callable[[Any, Any], None], run: "Schedule"
) -> NDArray[np.float64]:
    """Sum over validation points: ``add(block, total)`` adds to a :class:`Total`. The twin of ``accumulate``."""
    looks, groups = _Looks(space, view, run.device_memory), _groups(space)

    def task(group: range) -> NDArray[np.float64]:
        try:
            total = Total(space.n_train, space.device)
            looks.over(group, lambda block: add(block, total))
            return total.sums()
        except RuntimeError as error:
            raise _too_little(
                space.device, f"one sum for each of {space.n_train:,} records", _memory_ran_out(error)
            ) from None

    with Bar(run.progress, space.n_validation) as report:
        return add_up(task, groups, Workers("threads", 1), report, space.n_train, run.checkpoint)


def collect_on_device(
    space: DeviceSpace, view: "View[Any]", compute: Callable[[Any], tuple[Any, ...]], run: "Schedule"
) -> tuple[NDArray[Any], ...]:
    """What ``compute(block)`` says of each validation point, in memory. The twin of ``collect``."""
    looks, groups = _Looks(space, view, run.device_memory), _groups(space)

    def task(group: range) -> tuple[NDArray[Any], ...]:
        found: list[tuple[NDArray[Any], ...]] = []

        def use(block: Any) -> None:
            found.append(tuple(in_memory(one) if is_tensor(one) else one for one in compute(block)))

        looks.over(group, use)
        return found[0] if len(found) == 1 else tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    with Bar(run.progress, space.n_validation) as report:
        return gather(task, groups, Workers("threads", 1), report, run.checkpoint)


# --- Memory ------------------------------------------------------------------------------------------------------


def _allowed(device: "torch.device", memory: int | None) -> int:
    """Bytes that may be used: what the caller said, or most of what is free on the card."""
    if memory is not None:
        return _checks.integer("memory", memory, at_least=1)
    if device.type != "cuda":
        return 2**29
    cuda = the_torch().cuda
    try:
        free: int = cuda.mem_get_info(device)[0] + cuda.memory_reserved(device) - cuda.memory_allocated(device)
    except RuntimeError as error:  # to be asked, a card needs some memory
        raise _too_little(device, "anything at all", _memory_ran_out(error)) from None
    return int(SHARE * free)


def _is_of_memory(error: RuntimeError) -> bool:
    """Whether memory is used up, of a card or here, and not something else is wrong."""
    return isinstance(error, the_torch().OutOfMemoryError) or any(
        words in str(error) for words in ("out of memory", "allocate memory")
    )


def _memory_ran_out(error: RuntimeError) -> str:
    """What torch says where memory is used up; any other error is raised again."""
    if not _is_of_memory(error):
        raise error
    return str(error)


def _too_little(device: "torch.device", what: str, told: str) -> UnavailableError:
    return UnavailableError(
        f"the memory of {device} is too little for {what} ({told.strip().splitlines()[0][:200]}); free some of it, use "
        "another card, or leave device out"
    )
