"""What is on a device: features, or distances the caller computed."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UnavailableError, UsageError
from datassay._tensors import Tensor, TorchDevice, in_memory, is_tensor, the_torch, without_tensors
from datassay._work import chunks
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

MOST_RECORDS: Final = 2**31 - 2**20  # kernels number them in 32 bits, and look a little past the last


def device_of(device: Any, *given: Any) -> TorchDevice | None:
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

    device: TorchDevice
    dtype: np.dtype[np.float32] | np.dtype[np.float64]
    metric: int
    n_train: int
    n_validation: int
    n_features: int
    excludes_self: bool
    resident: bool = True
    points: Tensor | None = None
    queries: Tensor | None = None
    matrix: Tensor | None = None

    def __post_init__(self) -> None:
        if self.n_train > MOST_RECORDS:
            raise UnavailableError(
                f"a device takes at most {MOST_RECORDS:,} records and there are {self.n_train:,}; leave device out"
            )

    @property
    def tensor_dtype(self) -> Any:
        """The tensors' type."""
        return getattr(the_torch(), self.dtype.name)

    def fill(self, start: int, out: Floats) -> None:
        """Refuse: distances stay on the device."""
        raise UsageError("this blocks at distances in memory; leave device out")

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

    def between(self, start: int, rows: int, first: int, last: int) -> Tensor:
        """What ranks the training points first … last−1 as seen from the validation points start … start+rows−1."""
        return self._between(start, rows, first, last, None, float("inf"))

    def within(self, start: int, rows: int, first: int, last: int, limit: float) -> Tensor:
        """Whether what ranks them is at most this."""
        return self._between(start, rows, first, last, limit, False)

    def _between(self, start: int, rows: int, first: int, last: int, limit: float | None, own: float | bool) -> Tensor:
        if self.matrix is not None:
            found = self.matrix[start : start + rows, first:last].to(self.device) + 0.0  # −0 becomes 0: the two tie
            found = found if limit is None else found <= limit
        else:
            from datassay.neighbors.device.distances import distances

            assert self.points is not None
            assert self.queries is not None
            points, queries = self._some(self.points, first, last), self._some(self.queries, start, start + rows)
            found = distances(self.metric, points, queries, limit)
        if self.excludes_self and start < last and start + rows > first:
            same = the_torch().arange(max(start, first), min(start + rows, last), device=self.device)
            found[same - start, same - first] = own
        return found

    def _some(self, features: Tensor, first: int, last: int) -> Tensor:
        """The features of some points as (features, points) on the device, wherever they are kept."""
        return features[:, first:last] if self.resident else turned(features[first:last], self.device)


def turned(points: Tensor, device: TorchDevice) -> Tensor:
    """(points, features) as (features, points) on the device, a piece at a time: no second copy of all of them."""
    torch = the_torch()
    n, d = points.shape
    found = torch.empty((d, n), dtype=points.dtype, device=device)
    for piece in chunks(n, max(1, 2**25 // d)):
        found[:, piece.start : piece.stop] = points[piece.start : piece.stop].to(device).T
    return found


def as_tensor(array: NDArray[Any]) -> Tensor:
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
    device: TorchDevice,
    memory: int | None = None,
    *,
    zero_rows: bool = False,
) -> DeviceSpace:
    """The space behind the arguments of a value function, on a device; ``memory`` None: what is free there."""
    from datassay.neighbors import kernels
    from datassay.neighbors.device.memory import allowed_bytes, enough_for

    _checks.choice("metric", metric, METRICS)
    if metric == "precomputed":
        return _given(points, points_val, device)
    if points is None:
        raise UsageError(f"X must be given with metric={metric!r}")
    with enough_for(device, "the features"):
        torch = the_torch()
        seen = _floats("X", points)
        queries = seen if points_val is None else _floats("X_val", points_val)
        check_same_features(tuple(seen.shape), None if points_val is None else tuple(queries.shape))
        dtype = _dtype(seen) if _dtype(seen) == _dtype(queries) else np.dtype(np.float64)
        code, wanted, same = code_of(metric), getattr(torch, dtype.name), queries is seen
        seen = seen.to(wanted)
        queries = seen if same else queries.to(wanted)
        if code == kernels.COSINE:
            seen = _unit("X", seen, zero_rows)
            queries = seen if same else _unit("X_val", queries, False)
        else:
            reach = sum(max(abs(float(edge)) for edge in torch.aminmax(one)) for one in (seen, queries))
            check_reach(reach, dtype, seen.shape[1], code)
        n, d = seen.shape
        kept = n if queries is seen else n + len(queries)
        resident = 2 * kept * d * dtype.itemsize <= allowed_bytes(device, memory) or seen.device.type != "cpu"
        space = DeviceSpace(device, dtype, code, n, len(queries), d, points_val is None, resident, seen, queries)
        if not resident:
            return space
        there = turned(seen, device)
        return replace(space, points=there, queries=there if queries is seen else turned(queries, device))


def _dtype(tensor: Tensor) -> np.dtype[np.float32] | np.dtype[np.float64]:
    return np.dtype(np.float32) if tensor.dtype == the_torch().float32 else np.dtype(np.float64)


def _floats(name: str, given: object, what: str = "feature") -> Tensor:
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


def _unit(name: str, points: Tensor, zero_rows: bool) -> Tensor:
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


def _given(points: object, points_val: object | None, device: TorchDevice) -> DeviceSpace:
    """The space of distances that the caller computed."""
    space = given_space(without_tensors(points), without_tensors(points_val))
    if isinstance(space, NeighbourGraph):
        raise UsageError("a neighbour graph has its neighbours already: leave device out")
    return DeviceSpace(
        device, space.dtype, PRECOMPUTED, space.n_train, space.n_validation, 1, space.excludes_self,
        matrix=as_tensor(space.matrix),
    )  # fmt: skip
