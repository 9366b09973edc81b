"""How a kernel is compiled: lazily on first call, cached on disk, without holding the interpreter's lock.

Arithmetic stays strictly IEEE (no reassociation, no fused multiply-add), so a kernel gives the same bits on
every machine, for every tile and thread.
"""

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` with numba, which infers its types on the first call."""
    compiled: Callable[..., Any]
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # nowhere to keep a cache: neither the package's folder nor the user's can be written
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled
