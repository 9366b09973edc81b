"""Where the neighbours come from: features with a metric, a distance matrix, or a neighbour graph.

A space knows the training points as seen from the validation points and fills blocks of distances; it does not
know what they are for. With ``X_val=None`` the training points look at each other, each one excluded from its
own neighbours. Blocks are filled into a worker's scratch.
"""

import math
import threading
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Final, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Metric
from datassay._errors import InputError, UsageError
from datassay._tensors import without_tensors
from datassay.data import Inputs

Floats = NDArray[np.float32] | NDArray[np.float64]
ONE_RECORD: Final = "X has one row and there is no validation data; a record cannot be its own neighbour"
METRICS: Final[tuple[Metric, ...]] = get_args(Metric)
PRECOMPUTED: Final = -1  # where a metric's number is asked for and there is none


def as_floats(name: str, array: object, what: str = "feature") -> Floats:
    """A finite 2-D array in C order: float32 if it is float32, else float64. Errors name row and column."""
    array = without_tensors(array)
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InputError(f"{name} has masked entries; fill them in first")
    try:
        points = np.asarray(array)
        if points.dtype == object and all(isinstance(value, Real) for value in points.flat):
            points = points.astype(np.float64)
    except InputError:  # what X is says that it is not taken
        raise
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a table of numbers, every row of the same length") from None
    if points.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must hold numbers, not {points.dtype}; encode categories, dates and text first (read_table does "
            "it for files and frames)"
        )
    _checks.exact_as_float(name, points)
    if points.dtype not in (np.float32, np.float64):
        points = points.astype(np.float64)
    if points.ndim != 2:
        raise InputError(f"{name} must be 2-D, (rows, features); got {points.ndim}-D of shape {points.shape}")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0]
        raise InputError(
            f"{name} has the value {points[row, column]} at row {row}, column {column} (counting from 0); "
            f"every {what} must be finite"
        )
    return np.ascontiguousarray(points, points.dtype.newbyteorder("="))


@dataclass(frozen=True)
class FeatureSpace:
    """Distances computed from features, one tile of training points at a time."""

    tiles: Floats
    queries: Floats
    metric: int
    n_train: int
    excludes_self: bool

    @property
    def n_validation(self) -> int:
        """Number of validation points."""
        return int(self.queries.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.queries.shape[1])

    @property
    def dtype(self) -> np.dtype[np.float32] | np.dtype[np.float64]:
        """float32 or float64."""
        return self.queries.dtype

    def fill(self, start: int, out: Floats) -> None:
        """Fill ``out`` with squared Euclidean, Manhattan or minus-cosine distances."""
        from datassay.neighbors import kernels

        kernels.distances(self.metric, self.tiles, self.queries[start : start + out.shape[0]], out)
        _exclude_self(self, start, out)

    def threshold(self, tau: float) -> float:
        """``tau`` in the scale of ``fill``: for Euclidean distance the largest s with √s ≤ tau."""
        return limit_within(tau, self.metric, self.dtype)

    def true_distances(self, filled: Floats) -> Floats:
        """Square root for Euclidean distance; the number itself otherwise."""
        from datassay.neighbors import kernels

        return np.sqrt(filled) if self.metric == kernels.EUCLIDEAN else filled

    def before_self(self, rows: NDArray[np.intp], order: NDArray[np.uint32]) -> NDArray[np.int64]:
        """How many of the others, in ``order`` of their distance, come before the record itself, for some records."""
        from datassay.neighbors import kernels

        found = np.empty(len(rows), np.int64)
        kernels.count_before_self(self.metric, self.tiles, self.queries, rows, order, found)
        return found

    def seen_from(self, rows: NDArray[np.intp]) -> "FeatureSpace":
        """The training points as seen from some of the validation points, which are not excluded then."""
        return replace(self, queries=self.queries[rows], excludes_self=False)


@dataclass(frozen=True)
class MatrixSpace:
    """Distances the caller computed: one row per validation point, one column per training point."""

    matrix: Floats
    excludes_self: bool = False

    n_features: int = 1

    @property
    def n_train(self) -> int:
        """Number of training points."""
        return int(self.matrix.shape[1])

    @property
    def n_validation(self) -> int:
        """Number of validation points."""
        return int(self.matrix.shape[0])

    @property
    def dtype(self) -> np.dtype[np.float32] | np.dtype[np.float64]:
        """float32 or float64."""
        return self.matrix.dtype

    def fill(self, start: int, out: Floats) -> None:
        """Copy the rows; −0 becomes 0 so that the two tie."""
        np.add(self.matrix[start : start + out.shape[0]], self.dtype.type(0), out=out)
        _exclude_self(self, start, out)

    def threshold(self, tau: float) -> float:
        """``tau`` itself."""
        return tau

    def true_distances(self, filled: Floats) -> Floats:
        """The numbers themselves."""
        return filled

    def before_self(self, rows: NDArray[np.intp], order: NDArray[np.uint32]) -> NDArray[np.int64]:
        """How many of the others, in ``order`` of their distance, come before the record itself, for some records."""
        own, far = self.matrix[rows, rows][:, None], self.matrix[rows[:, None], order]
        found: NDArray[np.int64] = ((far < own) | ((far == own) & (order < rows[:, None]))).sum(axis=1)
        return found

    def seen_from(self, rows: NDArray[np.intp]) -> "MatrixSpace":
        """The training points as seen from some of the validation points, which are not excluded then."""
        return replace(self, matrix=self.matrix[rows], excludes_self=False)


def limit_within(tau: float, metric: int, dtype: np.dtype[np.float32] | np.dtype[np.float64]) -> float:
    """``tau`` in the scale of what ranks points: for Euclidean distance the largest s with √s ≤ tau."""
    from datassay.neighbors import kernels

    if metric != kernels.EUCLIDEAN:
        return tau
    if tau < 0:
        return -1.0
    kind = dtype.type
    largest = float(np.finfo(dtype).max)
    if tau >= np.sqrt(largest):
        return largest
    limit = kind(tau * tau)
    while float(np.sqrt(limit)) > tau:
        limit = np.nextafter(limit, kind(0))
    while float(np.sqrt(np.nextafter(limit, kind(np.inf)))) <= tau:
        limit = np.nextafter(limit, kind(np.inf))
    return float(limit)


def just_at_most(limit: float, dtype: np.dtype[np.float32] | np.dtype[np.float64]) -> np.float32 | np.float64:
    """The largest number of this type that is not above ``limit``: comparing with it is comparing with the limit."""
    largest = float(np.finfo(dtype).max)
    found = dtype.type(min(max(limit, -largest), largest))
    with np.errstate(over="ignore"):  # below the least number there is −∞
        return found if float(found) <= limit else np.nextafter(found, dtype.type(-np.inf))


def _exclude_self(space: FeatureSpace | MatrixSpace, start: int, out: Floats) -> None:
    if space.excludes_self:
        rows = np.arange(out.shape[0])
        out[rows, start + rows] = np.inf


@dataclass(frozen=True)
class NeighbourGraph:
    """For each validation point, some of its training points and their distances, nearest first.

    Build one from a scipy CSR matrix (such as scikit-learn's ``kneighbors_graph(mode="distance")``) with
    :meth:`from_csr`, and give it as ``X_val`` with ``metric="precomputed"``. ``radius`` is the distance up to
    which every neighbour is in the graph, where that is known.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    distances: NDArray[np.float64]
    n_train: int
    radius: float | None = None

    excludes_self: ClassVar[bool] = False
    n_features: ClassVar[int] = 1  # as of a matrix: nothing is computed from them

    def __post_init__(self) -> None:
        n, ends = len(self.indices), self.indptr
        if len(ends) < 1 or ends[0] != 0 or ends[-1] != n or (np.diff(ends) < 0).any() or len(self.distances) != n:
            raise InputError("indptr, indices and distances of the neighbour graph do not fit together")
        if n and int(self.indices.max()) >= self.n_train:
            raise InputError(
                f"the neighbour graph names record {self.indices.max()} of {self.n_train}, counting from 0"
            )
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        if not np.array_equal(np.lexsort((self.indices, self.distances, rows)), np.arange(n)):
            raise InputError("the neighbours of each row of the graph must be sorted by distance, then by index")
        by_index = np.lexsort((self.indices, rows))
        twice = (np.diff(rows[by_index]) == 0) & (np.diff(self.indices[by_index].astype(np.int64)) == 0)
        if twice.any():
            raise InputError(f"row {rows[by_index][int(twice.argmax())]} of the neighbour graph has a neighbour twice")
        if self.radius is not None:
            _checks.number("radius", self.radius)

    @classmethod
    def from_csr(cls, matrix: object, radius: float | None = None) -> "NeighbourGraph":
        """From a sparse matrix (validation × training) whose stored entries are distances.

        >>> from scipy.sparse import csr_array
        >>> graph = NeighbourGraph.from_csr(csr_array([[0.5, 0, 0.25], [0, 0.1, 0]]))
        >>> graph.indices[: graph.indptr[1]].tolist()
        [2, 0]
        """
        from scipy import sparse

        if not sparse.issparse(matrix):
            raise InputError(f"a neighbour graph must be a scipy sparse matrix, got {type(matrix).__name__}")
        csr = sparse.csr_array(matrix)
        data = csr.data.astype(np.float64) + 0.0
        rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
        if not np.isfinite(data).all():
            bad = int(np.flatnonzero(~np.isfinite(data))[0])
            raise InputError(
                f"the neighbour graph has the distance {data[bad]} at row {rows[bad]}, column {csr.indices[bad]}"
            )
        order = np.lexsort((csr.indices, data, rows))
        return cls(
            indptr=csr.indptr.astype(np.int64),
            indices=csr.indices[order].astype(np.uint32),
            distances=data[order],
            n_train=int(csr.shape[1]),
            radius=radius,
        )

    @property
    def n_validation(self) -> int:
        """Number of validation points."""
        return len(self.indptr) - 1

    def nearest(self, limit: int, start: int, rows: int) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """The ``limit`` nearest of rows start … start+rows, as two (rows, limit) arrays."""
        first = self.indptr[start : start + rows]
        stored = self.indptr[start + 1 : start + rows + 1] - first
        if stored.min() < limit:
            row = int(stored.argmin())
            raise InputError(
                f"the neighbour graph holds {stored[row]} neighbours in row {start + row}, and this needs {limit}; "
                "build it with more neighbours, or ask for a larger tolerance"
            )
        at = first[:, None] + np.arange(limit)
        return self.indices[at], self.distances[at]

    def mark_within(self, tau: float, start: int, inside: NDArray[np.uint8]) -> None:
        """Mark the neighbours within ``tau`` of rows start …, refusing rows that may be incomplete."""
        rows = inside.shape[0]
        ends = self.indptr[start : start + rows + 1]
        row = np.repeat(np.arange(rows), np.diff(ends))
        near = self.distances[ends[0] : ends[-1]] <= tau
        if self.radius is None or tau > self.radius:
            found = np.bincount(row[near], minlength=rows)
            doubtful = (found == np.diff(ends)) & (found < self.n_train)
            if doubtful.any():
                raise InputError(
                    f"row {start + int(doubtful.argmax())} of the neighbour graph has only neighbours within "
                    f"tau={tau:g}; those left out may be within it too. Give the graph's radius, or one with more "
                    "neighbours"
                )
        inside[:] = 0
        inside[row[near], self.indices[ends[0] : ends[-1]][near]] = 1


def check_labels(inputs: Inputs, n_train: int, n_validation: int, held_out: str = "y_val") -> None:
    """Refuse labels that are not one for every row."""
    for name, codes, n in (("y", inputs.codes, n_train), (held_out, inputs.codes_val, n_validation)):
        if len(codes) != n:
            raise InputError(f"{name} has {len(codes)} labels for {n} rows")


def make_space(
    X: object, X_val: object | None, metric: str, *, zero_rows: bool = False
) -> FeatureSpace | MatrixSpace | NeighbourGraph:
    """The space behind the arguments of a value function, checked.

    ``zero_rows`` allows training rows of length zero with cosine distance: their similarity to everything is 0.

    ``X_val=None`` means that the training points look at each other. With ``metric="precomputed"``, ``X_val`` is
    the distance matrix (validation × training), or a :class:`NeighbourGraph` or scipy sparse matrix, and ``X`` is
    None; for training points looking at each other the square matrix is given as ``X``.
    """
    from datassay.neighbors import kernels

    _checks.choice("metric", metric, METRICS)
    if metric == "precomputed":
        return given_space(X, X_val)
    if X is None:
        raise UsageError(f"X must be given with metric={metric!r}")
    points = as_floats("X", X)
    queries = points if X_val is None else as_floats("X_val", X_val)
    check_same_features(points.shape, None if X_val is None else queries.shape)
    if points.dtype != queries.dtype:
        points, queries = points.astype(np.float64), queries.astype(np.float64)
    code = code_of(metric)
    if code == kernels.COSINE:
        points = unit_length("X", points, zero_rows)
        queries = points if X_val is None else unit_length("X_val", queries)
    else:
        reach = float(np.abs(points).max()) + float(np.abs(queries).max())
        check_reach(reach, points.dtype, points.shape[1], code)
    tiles = np.empty((-(-points.shape[0] // kernels.TILE), points.shape[1], kernels.TILE), points.dtype)
    kernels.fill_tiles(points, tiles)
    return FeatureSpace(tiles, queries, code, points.shape[0], X_val is None)


def check_same_features(shape: tuple[int, ...], shape_val: tuple[int, ...] | None) -> None:
    """Refuse features of which there are none, or others for validation; ``shape_val`` None: records see each other."""
    if shape[0] == 0:
        raise InputError("X has no rows; there is nothing to value")
    if shape[1] == 0:
        raise InputError("X has no features; distances need at least one")
    if shape_val is None:
        if shape[0] < 2:
            raise InputError(ONE_RECORD)
        return
    if shape_val[0] == 0:
        raise InputError("X_val has no rows; values need at least one validation point")
    if shape_val[1] != shape[1]:
        raise InputError(f"X has {shape[1]} features and X_val has {shape_val[1]}; they must have the same columns")


def no_direction(name: str, row: int) -> InputError:
    """What is said of a row of zeros, where there is an angle to be found."""
    return InputError(
        f"{name} has a row of length zero at row {row} (counting from 0); cosine distance has no meaning there"
    )


def unit_length(name: str, points: Floats, zero_rows: bool = False) -> Floats:
    """A copy of the rows, scaled to length 1."""
    from datassay.neighbors import kernels

    scaled = points.copy()
    zero = kernels.to_unit_length(scaled)
    if zero >= 0 and not zero_rows:
        raise no_direction(name, zero)
    return scaled


def code_of(metric: str) -> int:
    """What the kernels call a metric of features."""
    from datassay.neighbors import kernels

    return {"euclidean": kernels.EUCLIDEAN, "manhattan": kernels.MANHATTAN, "cosine": kernels.COSINE}[metric]


def check_reach(reach: float, dtype: np.dtype[np.generic], n_features: int, metric: int) -> None:
    """Refuse features (``reach`` is the largest of both sides, added) whose distances would over- or underflow."""
    check_not_too_large(reach, dtype, n_features, metric)
    check_not_too_small(reach, dtype, metric)


def check_not_too_large(reach: float, dtype: np.dtype[np.generic], n_features: int, metric: int) -> None:
    """Refuse features (``reach`` is the largest of both sides, added) whose distances would overflow."""
    from datassay.neighbors import kernels

    power = 2 if metric == kernels.EUCLIDEAN else 1
    if not reach < (float(np.finfo(dtype).max) / (4 * n_features)) ** (1 / power):  # type: ignore[type-var]
        raise InputError(
            f"features as large as {reach:g} overflow {dtype} distances; scale the features, or give float64 arrays"
        )


def check_not_too_small(reach: float, dtype: np.dtype[np.generic], metric: int) -> None:
    """Refuse features so small that their distances would underflow."""
    from datassay.neighbors import kernels

    power, limits = 2 if metric == kernels.EUCLIDEAN else 1, np.finfo(dtype)  # type: ignore[type-var]
    if 0 < reach < float(limits.tiny) ** (1 / power) / float(limits.eps):
        raise InputError(
            f"features no larger than {reach:g} underflow {dtype} distances; scale the features, or give float64 arrays"
        )


def given_space(X: object, X_val: object | None) -> MatrixSpace | NeighbourGraph:
    """The space of distances that the caller computed."""
    from scipy import sparse

    excludes_self = X_val is None
    given, name = (X, "X") if excludes_self else (X_val, "X_val")
    if given is None:
        raise UsageError(
            'metric="precomputed" needs the distances: X_val of shape (validation, training), or a square X alone'
        )
    if X is not None and not excludes_self:
        raise UsageError('with metric="precomputed" the distances are given as X_val and X must be None')
    if isinstance(given, NeighbourGraph) or sparse.issparse(given):
        graph = given if isinstance(given, NeighbourGraph) else NeighbourGraph.from_csr(given)
        if graph.n_validation == 0 or graph.n_train == 0:
            raise InputError(f"{name} is an empty neighbour graph ({graph.n_validation} × {graph.n_train})")
        if excludes_self:
            raise UsageError(
                "a neighbour graph is given as X_val, with y_val; leave each record out of its own neighbours "
                "when you build it"
            )
        return graph
    matrix = as_floats(name, given, "distance")
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise InputError(f"{name} is an empty distance matrix of shape {matrix.shape}")
    if excludes_self and matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"X must be a square distance matrix when there is no X_val; got shape {matrix.shape}")
    if excludes_self and matrix.shape[0] < 2:
        raise InputError(ONE_RECORD)
    return MatrixSpace(matrix, excludes_self)


class Scratch(threading.local):
    """Buffers, kept from block to block so that memory is touched once; every thread has its own."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[np.generic]] = {}

    def __reduce__(self) -> tuple[type["Scratch"], tuple[()]]:
        return Scratch, ()

    def __call__(self, name: str, shape: tuple[int, ...], dtype: type[np.generic] | np.dtype[np.generic]) -> NDArray:  # type: ignore[type-arg]
        """A buffer of that name and shape, its content undefined."""
        size = math.prod(shape)
        array = self._arrays.get(name)
        if array is None or array.size < size or array.dtype != dtype:
            array = self._arrays[name] = np.empty(size, dtype)
        return array[:size].reshape(shape)

    def to_sort(self, n: int) -> tuple[NDArray[np.generic], ...]:
        """What kernels need to rank n points."""
        from datassay.neighbors import kernels

        return (
            self("short", (n,), np.uint32),
            self("words", (n,), np.uint64),
            self("spare", (n,), np.uint64),
            self("counts", (3, 1 << kernels.DIGIT), np.uint32),
        )


def bits_of(distances: Floats) -> tuple[NDArray[np.int32] | NDArray[np.int64], int]:
    """The floats' bits as signed integers, and all of an integer's bits but the sign's."""
    if distances.dtype == np.float32:
        return distances.view(np.int32), 2**31 - 1
    return distances.view(np.int64), 2**63 - 1
