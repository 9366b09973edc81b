"""Noise, from OpenDP: discrete Gaussian and Laplace on whole numbers, continuous Laplace on real ones.

Nothing here takes a seed. OpenDP draws from the operating system's generator, in arithmetic that leaks nothing through
floating point.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay.privacy.accounting import Noise

if TYPE_CHECKING:
    from opendp.mod import Measurement


@lru_cache(maxsize=32)
def _measurement(noise: Noise, scale: float) -> "Measurement":
    import opendp.prelude as dp

    dp.enable_features("contrib")
    number = "i64" if noise.startswith("discrete") else "f64"
    entry = dp.atom_domain(T="i64") if number == "i64" else dp.atom_domain(T="f64", nan=False)
    if noise.endswith("gaussian"):
        return dp.m.make_gaussian(dp.vector_domain(entry), dp.l2_distance(T=number), scale=scale)
    return dp.m.make_laplace(dp.vector_domain(entry), dp.l1_distance(T=number), scale=scale)


def add_noise(values: ArrayLike, noise: Noise, scale: float) -> NDArray[np.int64] | NDArray[np.float64]:
    """Independent noise on every entry, whole numbers for discrete noise.

    >>> add_noise([3, 4], "discrete gaussian", 2.0).dtype
    dtype('int64')
    """
    scale = _checks.number("scale", scale, above=0)
    given = np.asarray(values)
    discrete = noise.startswith("discrete")
    if discrete and given.dtype.kind not in "iu":
        raise InputError(f"{noise} noise is for whole numbers, got {given.dtype}")
    draw = _measurement(noise, scale)
    if discrete:
        return np.array(draw(given.ravel().astype(np.int64).tolist()), np.int64).reshape(given.shape)
    return np.array(draw(given.ravel().astype(np.float64).tolist())).reshape(given.shape)
