"""Poisson samples that cannot be predicted, and that their secret key can draw again.

Amplification by sampling needs a secret sample: the coins come from a cryptographic expansion (SHAKE-256) of a secret
key of the operating system. The same key and place give the same sample on any machine and with any version of any
library, as is needed to serve a release again.
"""

import hashlib
import math
import secrets

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 32


def new_key() -> bytes:
    """A secret key, from the operating system."""
    return secrets.token_bytes(KEY_BYTES)


def words(key: bytes, place: tuple[int, ...], count: int) -> NDArray[np.uint64]:
    """The first ``count`` 64-bit words of the key at ``place``; a larger count begins with the same words."""
    name = b"".join(part.to_bytes(8, "little") for part in place)
    return np.frombuffer(hashlib.shake_256(key + name).digest(8 * count), dtype="<u8")


def members(key: bytes, place: tuple[int, ...], n: int, chance: float) -> NDArray[np.int64]:
    """Positions of a Poisson sample of n: each is in it with ``chance``, independently of the others.

    The gap from one member to the next is geometric, so the work is in proportion to the sample.
    """
    if chance >= 1:
        return np.arange(n, dtype=np.int64)
    drawn = int(n * chance + 6 * math.sqrt(n * chance) + 16)
    while True:
        uniform = ((words(key, place, drawn) >> np.uint64(11)) + np.uint64(1)) * 2.0**-53  # in (0, 1]
        skipped = np.floor(np.log(uniform) / math.log1p(-chance))
        at = np.cumsum(np.minimum(skipped, n).astype(np.int64) + 1) - 1
        if at[-1] >= n:
            return np.asarray(at[at < n])
        drawn *= 2
