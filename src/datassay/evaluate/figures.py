"""Figures of removal and addition curves."""

from datassay.results import BLUE, GREY, PALE, Axes, Floats, legend_name


def draw_curve(
    ax: Axes, fractions: Floats, scores: Floats, band: tuple[Floats, Floats, Floats], label: str | None
) -> Axes:
    """One metric by fraction of records; the band of random orders (low, mean, high) unless the curve has a label."""
    if label is None:
        low, middle, high = band
        ax.fill_between(fractions, low, high, color=PALE, lw=0)
        ax.plot(fractions, middle, color=GREY, label="random order (5–95% band)")
    colour, name = (BLUE, "by value") if label is None else (None, legend_name(label))
    ax.plot(fractions, scores, color=colour, marker=".", label=name)
    ax.legend(frameon=False)
    return ax
