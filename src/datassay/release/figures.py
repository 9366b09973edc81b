"""Figures of releases side by side: what safety costs, whose risk is left, and who gains."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from datassay.results import BLUE, ORANGE, Axes, Floats, legend_name


def draw_trade_off(
    ax: Axes, useful: Floats, safe: Floats, front: NDArray[np.bool_], names: Sequence[str], label: str | None
) -> Axes:
    """Utility against safety, and a line through the strategies that no other beats."""
    order = np.flatnonzero(front)[np.argsort(useful[front])]
    name = "Pareto front" if label is None else legend_name(label)
    (line,) = ax.plot(useful[order], safe[order], color=ORANGE if label is None else None, zorder=1, label=name)
    best, rest = (ORANGE, BLUE) if label is None else (line.get_color(), line.get_color())
    ax.scatter(useful, safe, color=[best if mark else rest for mark in front], zorder=2)
    for i, strategy in enumerate(names):
        ax.annotate(strategy, (useful[i], safe[i]), textcoords="offset points", xytext=(5, 4), fontsize=8)
    ax.set_ylabel("safety: 1 − mean re-identification risk")
    ax.set_title("What safety costs", loc="left")
    ax.legend(frameon=False)
    return ax


def draw_risks(ax: Axes, risks: Floats, names: Sequence[str]) -> Axes:
    """The distribution of people's risk under each strategy, as boxes; the first strategy on top."""
    ax.boxplot(risks[::-1].T, orientation="horizontal", tick_labels=names[::-1], showfliers=False)
    ax.set_xlabel("re-identification risk of each person")
    ax.set_title(f"Risk of {risks.shape[1]:,} people", loc="left")
    return ax


def draw_changes(ax: Axes, worth: Floats, changes: Floats, names: Sequence[str]) -> Axes:
    """How each strategy changes people's risk, by fifths of their value."""
    fifth = np.searchsorted(np.nanquantile(worth, [0.2, 0.4, 0.6, 0.8]), worth)
    for change, name in zip(changes, names, strict=True):
        means = [float(change[fifth == f].mean()) if (fifth == f).any() else np.nan for f in range(5)]
        ax.plot(range(5), means, "o-", label=legend_name(name))
    ax.set_xticks(range(5), ["least", "", "middle", "", "most"])
    ax.set_xlabel("people by their value in the first strategy, in fifths")
    ax.set_ylabel("change of risk")
    ax.set_title("Who gains safety", loc="left")
    ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return ax
