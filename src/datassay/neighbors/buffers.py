"""Memory that a worker fills again and again."""

import math
import threading

import numpy as np
from numpy.typing import NDArray


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


def bits_of(distances: NDArray[np.float32] | NDArray[np.float64]) -> tuple[NDArray[np.int32] | NDArray[np.int64], int]:
    """The floats' bits as signed integers, and all of an integer's bits but the sign's."""
    if distances.dtype == np.float32:
        return distances.view(np.int32), 2**31 - 1
    return distances.view(np.int64), 2**63 - 1
