"""Figures of what is released privately and of audits."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from datassay.results import GREY, PURPLE, legend_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


def draw_rates(
    ax: "Axes", false_positives: Floats, true_positives: Floats, allowed: tuple[Floats, Floats], label: str | None
) -> None:
    """How well guesses did, by threshold; without a label of their own, beside the most that a claim allows."""
    if label is None:
        ax.plot(false_positives, true_positives, color=PURPLE, label="best guesser")
        ax.plot(*allowed, color="black", label="most that the claim allows")
        ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="guessing blindly")
    else:
        ax.plot(false_positives, true_positives, label=legend_name(label))
    ax.set_xlabel("false-positive rate")
    ax.set_ylabel("true-positive rate")
    ax.legend(frameon=False, loc="lower right")
