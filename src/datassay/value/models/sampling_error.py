"""The error of layered values: how much sums over sampled layers vary."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PRIOR_DRAWS, POOLED_DRAWS = 2.0, 8.0


@dataclass(eq=False)
class SamplingError:
    """The variance of sums over sampled layers.

    A layer's terms are independent, 0 for the players in the coalition; their mean square is taken from those drawn,
    and, as with few or none of them it may be missed, drawn toward that of all layers, of which terms shrink as 1/k.
    """

    players: int
    c: float

    def __post_init__(self) -> None:
        self._layers: list[tuple[int, Floats, Floats, float]] = []
        self._scaled, self._times = np.zeros(self.players), np.zeros(self.players)

    def add(self, size: int, spread: Floats, squares: Floats, times: Floats, divisor: float) -> None:
        """Take in a layer: how much its terms differ, their squares, and how often each player was seen."""
        self._layers.append((size, spread, times, divisor))
        self._scaled += size**2 * squares
        self._times += times

    def of_values(self) -> tuple[Floats, Floats]:
        """Standard errors, and the degrees of freedom of their intervals (Satterthwaite)."""
        # Where nothing was drawn there is the assumption alone: no term is larger than c/k. A player who saw little is
        # drawn up toward what players see on average.
        known = self._times > 0
        own = np.where(known, self._scaled / np.maximum(self._times, 1), self.c**2)
        mean = float(self._scaled.sum() / self._times.sum()) if known.any() else self.c**2
        typical = np.maximum(own, (self._times * own + POOLED_DRAWS * mean) / (self._times + POOLED_DRAWS))
        variance, squares = np.zeros(self.players), np.zeros(self.players)
        for size, spread, times, divisor in self._layers:
            part = (spread + PRIOR_DRAWS * typical / size**2) / (times + PRIOR_DRAWS) / divisor
            variance += part
            squares += part**2 / np.maximum(times, 1)
        freedom = np.where(squares > 0, variance**2 / np.where(squares > 0, squares, 1), 1e6)
        return np.sqrt(variance), np.maximum(freedom, 2.0)
