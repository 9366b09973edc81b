"""How a kernel is compiled: lazily on first call, cached on disk, without holding the interpreter's lock.

Arithmetic stays strictly IEEE (no reassociation, no fused multiply-add), so a kernel gives the same bits on
every machine, for every tile and thread.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile ``function`` with numba; its type as seen from outside stays the same."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
