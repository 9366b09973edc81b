"""Figures of values: what was tuned, what a design draws, how an estimate settled."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datassay.results import BLUE, GREEN, PURPLE, Axes, legend_name


def draw_tuning(
    ax: Axes, parameter: str, candidates: NDArray[Any], scores: NDArray[np.float64], best: float, label: str | None
) -> Axes:
    """Accuracy of every candidate, a line at the best."""
    colour = BLUE if label is None else None
    (line,) = ax.plot(candidates.astype(float), scores, marker=".", color=colour)
    ax.axvline(best, color="black" if label is None else line.get_color(), linewidth=0.8)
    if label is not None:
        line.set_label(legend_name(label))
        ax.legend(frameon=False)
    ax.set_title(f"{parameter} = {best:g} predicts best ({scores.max():.1%})", loc="left")
    ax.set_xlabel(parameter)
    ax.set_ylabel("validation accuracy")
    return ax


def draw_design(ax: Axes, drawn: NDArray[Any], expected: NDArray[np.float64], title: str, label: str | None) -> Axes:
    """How many coalitions there are of each size, beside the number expected for each player."""
    sizes = np.arange(len(expected))
    name = "" if label is None else f"{legend_name(label)}: "
    colours = (BLUE, PURPLE) if label is None else (None, None)
    ax.plot(sizes, np.maximum(drawn, 0.5), ".", color=colours[0], label=f"{name}drawn")
    ax.plot(sizes, expected, color=colours[1], label=f"{name}expected for each player")
    ax.set_yscale("log")
    ax.set_xlabel("size of coalition")
    ax.set_ylabel("coalitions")
    ax.legend(frameon=False)
    ax.set_title(title, loc="left")
    return ax


def draw_convergence(ax: Axes, history: Mapping[str, Sequence[float]], title: str) -> Axes:
    """How the intervals narrowed and the ranking settled as coalitions were added."""
    at = history["coalitions"]
    ax.plot(at, history["widest"], ".-", color=PURPLE, label="widest interval (±)")
    ax.plot(at, history["median"], ".-", color=BLUE, label="median interval (±)")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("coalitions")
    ax.set_ylabel("half-width of intervals")
    right = ax.twinx()
    right.plot(at, history["agreement"], color=GREEN, linestyle=":", label="rank agreement with the end")
    right.set_ylabel("Spearman's ρ")
    right.set_ylim(min(0.0, *history["agreement"]), 1.02)
    lines = [*ax.get_lines(), *right.get_lines()]
    ax.legend(lines, [str(line.get_label()) for line in lines], frameon=False, loc="lower left")
    ax.set_title(title, loc="left")
    return ax
