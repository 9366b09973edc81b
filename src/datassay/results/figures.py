"""What all figures share: axes to draw on, colours, legends, and files that appear whole or not at all."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from datassay._errors import UsageError
from datassay.results.files import check_file, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes as MatplotlibAxes

Axes = TypeAliasType("Axes", "MatplotlibAxes")
"""Axes of matplotlib, which is imported when something is drawn."""

BLUE: Final = "#4477aa"
ORANGE: Final = "#ee7733"
GREEN: Final = "#228833"
PURPLE: Final = "#aa3377"
RED: Final = "#cc3311"
SILVER: Final = "#bbbbbb"
GREY: Final = "#888888"
PALE: Final = "#dddddd"
PALETTE: Final = (
    BLUE, "#ee6677", GREEN, "#ccbb44", "#66ccee", PURPLE, ORANGE, "#009988", "#882255",
)  # fmt: skip
"""Colours for up to nine things drawn side by side."""


def axes_on(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes given, or those of a new figure, which notebooks and plt.show() display; without a frame."""
    from matplotlib import axes

    if ax is None:
        from matplotlib import pyplot as plt

        ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    elif not isinstance(ax, axes.Axes):
        raise UsageError(
            f"ax must be matplotlib axes, got {type(ax).__name__}; to save a plot: plot().figure.savefig('plot.svg')"
        )
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend_name(name: object) -> str:
    """A name for a legend: matplotlib leaves out what begins with an underscore."""
    return f"\u200b{name}" if str(name).startswith("_") else str(name)


def check_figure(path: str | os.PathLike[str]) -> None:
    """Raise at once, before any work, if a figure could not be written to ``path``."""
    check_file(path, "draw", ".svg", ".png", ".pdf")


def save_figure(axes: Axes, path: str | os.PathLike[str]) -> Path:
    """Write the figure that holds ``axes``, whole or not at all."""
    check_figure(path)
    figure = axes.get_figure(root=True)
    assert figure is not None
    kind = Path(path).suffix.lower().removeprefix(".")
    return write_whole(path, lambda file: figure.savefig(file, format=kind))


def draw_distribution(
    ax: Axes, values: NDArray[np.float64], labels: NDArray[np.generic] | None, bins: int, label: str | None = None
) -> None:
    """A histogram of values, stacked class by class unless it has a label of its own; a line at 0."""
    edges = np.histogram_bin_edges(values, bins=bins).tolist()
    if label is not None:
        ax.hist(values, edges, alpha=0.6, label=legend_name(label))
        ax.legend(frameon=False)
    elif labels is None:
        ax.hist(values, edges, color=BLUE)
    else:
        classes = np.unique(labels)
        each = [values[labels == name] for name in classes]
        ax.hist(each, edges, stacked=True, label=[legend_name(name) for name in classes])
        ax.legend(title="class", frameon=False)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_ylabel("records")
