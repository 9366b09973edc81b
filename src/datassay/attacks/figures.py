"""Figures of attacks: who is found, who is worth and exposed what, and what a removal changed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from datassay.results import BLUE, GREY, ORANGE, RED, SILVER, Axes, Floats, legend_name


def draw_roc(ax: Axes, rates: Floats, found: Floats, label: str) -> Axes:
    """The ROC curve, both axes logarithmic so that few false positives show, and the line of guessing."""
    least = float(rates[0])
    first = not ax.lines
    ax.plot(rates, np.maximum(found, least), label=legend_name(label))
    if first:
        ax.plot([least, 1], [least, 1], color=GREY, linestyle=":")
        ax.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1))
        ax.set_xlabel("false-positive rate")
        ax.set_ylabel("true-positive rate")
        ax.set_title("Who is found to be a member", loc="left")
    ax.legend(frameon=False, loc="lower right")
    return ax


def draw_quadrants(
    ax: Axes,
    values: Floats,
    exposure: Floats,
    quadrants: dict[str, NDArray[np.bool_]],
    lines: tuple[float, float],
    drawn: NDArray[np.bool_],
    label: str | None,
) -> Axes:
    """Value against exposure of the records drawn; the quadrants named and counted, or all of them in one colour."""
    size = 6 if drawn.sum() > 300 else 20
    shown: list[tuple[str, NDArray[np.bool_], str | None]]
    if label is None:
        colours = (RED, SILVER, ORANGE, BLUE)
        shown = [(f"{n} ({r.sum():,})", r, c) for (n, r), c in zip(quadrants.items(), colours, strict=True)]
    else:
        shown = [(legend_name(label), np.ones(len(values), bool), None)]
    for name, rows, colour in shown:
        seen = rows & drawn
        ax.scatter(values[seen], exposure[seen], s=size, color=colour, label=name, linewidths=0)
    ax.axvline(lines[0], color="black", linewidth=0.8)
    ax.axhline(lines[1], color="black", linewidth=0.8)
    ax.set_title("Value against exposure", loc="left")
    ax.legend(frameon=False, markerscale=2)
    return ax


def draw_change(ax: Axes, influence: Sequence[float], change: Sequence[float], label: str | None) -> Axes:
    """The mean change of success rates by WaKA influence."""
    (line,) = ax.plot(influence, change, marker=".")
    ax.axhline(0, color=GREY, linewidth=0.8)
    if label is not None:
        line.set_label(legend_name(label))
        ax.legend(frameon=False)
    ax.set_xlabel("WaKA influence of the removal")
    ax.set_ylabel("mean change of success rate")
    return ax
