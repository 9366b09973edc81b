"""Figures of the market: prices, payments, and how games went."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from datassay.results import BLUE, Axes, Floats, legend_name


def draw_prices(ax: Axes, worth: Floats, prices: Floats, label: str | None) -> None:
    """Price against value; without a label of their own, beside the value alone."""
    if label is not None:
        ax.scatter(worth, prices, s=6, linewidths=0, label=legend_name(label))
    else:
        ax.scatter(worth, prices, s=6, color=BLUE, linewidths=0)
        if len(worth):
            ends = [0.0, float(worth.max())]
            ax.plot(ends, ends, color="black", linewidth=0.8, linestyle="dashed", label="value alone")
    if len(worth):
        ax.legend(frameon=False)
    ax.set_ylabel("price")


def draw_lines(ax: Axes, lines: Iterable[tuple[str, Floats, Floats]], xlabel: str, size: int) -> None:
    """A line for each name, with a mark of this size at every point."""
    for name, x, y in lines:
        ax.plot(x, y, marker="o", markersize=size, label=name)
    ax.set_xlabel(xlabel)
    ax.legend(frameon=False)


def draw_spending(ax: Axes, spent: Floats, label: str | None) -> None:
    """The Lorenz curve: the share of all spending that goes to the least-queried share of records."""
    whole = np.concatenate([[0.0], np.cumsum(np.sort(spent))])
    ax.plot(np.linspace(0, 1, len(whole)), whole / max(whole[-1], 1e-300), **_style(label))
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle="dashed")
    ax.set_xlabel("share of records, the least queried first")
    ax.set_ylabel("share of spending")
    if label is not None:
        ax.legend(frameon=False)


def draw_trajectory(ax: Axes, budget: Floats, track: Floats, target: float | None, label: str | None) -> None:
    """What a game came to as the budget was spent, and the target if there is one."""
    ax.plot(budget, track, **_style(label))
    if target is not None:
        name = "target" if label is None else None
        ax.axhline(target, color="black", linewidth=0.8, linestyle="dashed", label=name)
    if label is not None or target is not None:
        ax.legend(frameon=False)
    ax.set_xlabel("budget spent (ε a feature × queries)")


def _style(label: str | None) -> dict[str, Any]:
    return {"color": BLUE} if label is None else {"label": legend_name(label)}


def draw_map(ax: Axes, rows: Sequence[float], columns: Sequence[float], found: Floats, lowest: float) -> None:
    """A map of T_max against exploration, with its numbers; colours run from ``lowest`` to 1."""
    image = ax.imshow(found, aspect="auto", origin="lower", cmap="viridis", vmin=lowest, vmax=1.0)
    for (i, j), number in np.ndenumerate(found):
        text = "–" if math.isnan(number) else f"{number:.2f}"
        ax.text(j, i, text, ha="center", va="center", color="white" if number < 0.6 else "black", fontsize=8)
    ax.set_xticks(range(len(columns)), [f"{c:g}" for c in columns])
    ax.set_yticks(range(len(rows)), [f"{t:g}" for t in rows])
    ax.set_xlabel("exploration c")
    ax.set_ylabel("T_max")
    ax.spines[["top", "right"]].set_visible(True)
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.colorbar(image, ax=ax)
