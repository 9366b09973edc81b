"""Noisy copies of records: every feature within public bounds, with Laplace noise of its own.

A record x is scaled to u = (x − low)/(high − low), cut off at 0 and 1. No feature of u can move by more than 1, so
u_j + Laplace(1/ε_j) is ε_j-differentially private for the features of that record, and the copy as a whole Σ ε_j. To
scale it back, low + (high − low) ũ = x + Laplace((high − low)_j/ε_j), costs nothing. Noise is drawn on ε_j u_j at scale
1, in OpenDP's arithmetic, so that rounding gives nothing away.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._errors import UsageError
from datassay._work import chunks, in_order, thread_count
from datassay.privacy.mechanisms import add_noise

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoisyRecords:
    """The mechanism: bounds and ε, one of each for every feature.

    Examples
    --------
    >>> import numpy as np
    >>> from datassay.privacy import NoisyRecords
    >>> mechanism = NoisyRecords([0.0, 0.0], [1.0, 10.0], 0.5)
    >>> mechanism.cost
    1.0
    >>> mechanism.release(mechanism.to_unit(np.array([[0.5, 20.0]]))).shape
    (1, 2)
    """

    low: Floats
    high: Floats
    epsilon: Floats

    def __init__(self, low: ArrayLike, high: ArrayLike, epsilon: ArrayLike) -> None:
        ends = []
        for bound in (low, high):
            numbers = _checks.real_numbers(bound)
            if numbers is None:
                raise UsageError(f"bounds must be numbers, one low and one high a feature; got {bound!r}")
            ends.append(np.array(numbers, ndmin=1))
        low, high = ends
        if low.ndim != 1 or low.shape != high.shape or len(low) == 0:
            raise UsageError(f"bounds must be one low and one high a feature; got {low.shape} and {high.shape}")
        for at in np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low <= high))):
            raise UsageError(
                f"the bounds of feature {at} are {low[at]:g} and {high[at]:g}: they must be finite, the low one first"
            )
        with np.errstate(over="ignore"):
            width = high - low
        for at in np.flatnonzero(~np.isfinite(width)):
            raise UsageError(f"the bounds of feature {at} are too far apart")
        if not width.any():
            raise UsageError("the bounds leave no feature room to move: every copy would be the same, and tell nothing")
        if np.ndim(epsilon) == 0:
            epsilon = np.full(len(low), _checks.number("epsilon", epsilon, above=0))
        given = _checks.real_numbers(epsilon)
        if given is None:
            raise UsageError(f"epsilon must be one number, or one for each feature; got {epsilon!r}")
        each = np.array(given)
        if each.shape != low.shape:
            raise UsageError(f"epsilon must be one number, or one for each of {len(low)} features; {each.shape} given")
        for at in np.flatnonzero(~(np.isfinite(each) & (each > 0))):
            raise UsageError(f"epsilon must be above 0; that of feature {at} is {each[at]:g}")
        with np.errstate(over="ignore"):
            if not np.isfinite(width / each).all() or (each < 1e-100).any():
                raise UsageError("epsilon is too small: noise of such a scale cannot be written down")
            if not np.isfinite(each.sum()):
                raise UsageError(
                    f"epsilon is too large: over {len(low)} features it adds up to more than can be written down"
                )
        for name, array in (("low", low), ("high", high), ("epsilon", each)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoisyRecords) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.low.tobytes() + self.high.tobytes() + self.epsilon.tobytes())

    def to_dict(self) -> dict[str, list[float]]:
        """The mechanism as plain values."""
        return {name: array.tolist() for name, array in vars(self).items()}

    @property
    def width(self) -> Floats:
        """Δ_j, by how much a feature can move."""
        return np.asarray(self.high - self.low)

    @property
    def cost(self) -> float:
        """ε of one copy of one record: Σ ε_j over features."""
        return math.fsum(self.epsilon)

    def to_unit(self, points: Floats) -> Floats:
        """The records between 0 and 1 in every feature, cut off at the bounds; 0 in a feature that cannot move."""
        width = np.where(self.width > 0, self.width, 1.0)
        return np.where(self.width > 0, np.clip((points - self.low) / width, 0.0, 1.0), 0.0)

    def from_unit(self, unit: Floats) -> Floats:
        """Back to where the records were."""
        return np.asarray(self.low + self.width * unit)

    def release(self, unit: Floats, n_jobs: int | None = 1) -> Floats:
        """A noisy copy of every row of ``unit`` (see :meth:`to_unit`), by OpenDP; no seed repeats it."""
        scaled = np.asarray(unit, np.float64) * self.epsilon
        parts = chunks(len(scaled), 64)
        threads = max(1, min(thread_count(n_jobs), len(parts)))

        def draw(part: range) -> Floats:
            return np.asarray(add_noise(scaled[part.start : part.stop], "laplace", 1.0), np.float64)

        drawn = list(in_order(draw, parts, threads, lambda done: None))
        noisy = np.concatenate(drawn) if drawn else np.empty_like(scaled)
        return self.from_unit(noisy / self.epsilon)


def rehearsal_noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Standard Laplace noise for simulations. It can be repeated, and so it protects no one: never release it.

    >>> import numpy as np
    >>> rehearsal_noise(np.random.default_rng(0), (2, 3)).shape
    (2, 3)
    """
    return rng.laplace(size=shape)
