"""Figures of the page: matplotlib's SVG, small enough for a phone, in the colours of the page by day and by night.

Colours become the page's own variables, text stays text, and nothing in a drawing is markup of the user's: names are
escaped by matplotlib and never read as mathematics.
"""

import io
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What results draw with, and the page's name for it: the stylesheet has a light and a dark shade of each.
_COLOURS = {
    "#000000": "currentColor",
    "#4477aa": "var(--blue)",
    "#ee7733": "var(--orange)",
    "#cc3311": "var(--red)",
    "#228833": "var(--green)",
    "#aa3377": "var(--purple)",
    "#66ccee": "var(--cyan)",
    "#ccbb44": "var(--yellow)",
    "#bbbbbb": "var(--grey)",
    "#dddddd": "var(--band)",
    "#888888": "var(--soft)",
    "#808080": "var(--soft)",
}
_CYCLE = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#66ccee", "#ccbb44", "#cc3311", "#bbbbbb")
WIDTH = 5.2  # inches: text of 10 points stays readable on a phone


def as_svg(draw: "Callable[[Axes], object]", height: float = 3.2, x: str = "", y: str = "") -> str:
    """What ``draw`` draws, as an SVG element to stand in a page; ``x`` and ``y`` are what its axes are called there."""
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "datassay",
        "text.parse_math": False,
        "font.size": 10.0,
        "axes.prop_cycle": cycler(color=_CYCLE),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        for axis, name in ((axes.xaxis, x), (axes.yaxis, y)):
            if name:
                axis.set_label_text(name)
            if axis.get_scale() == "log":  # matplotlib writes powers of ten as mathematics
                axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
                axis.set_minor_formatter(NullFormatter())
        axes.set_title("")  # the finding is said above the figure, where it can wrap
        axes.set_title("", loc="left")
        file = io.StringIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the browser has glyphs that matplotlib has not
            figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _themed(file.getvalue())


def _themed(svg: str) -> str:
    svg = svg[svg.index("<svg") :]
    # A stylesheet in a drawing would hold for the whole page.
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    # Groups are named by their number, which other figures have too; nothing refers to them.
    svg = re.sub(r'(<g) id="[\w.]+_\d+"', r"\1", svg)
    return re.sub(r'(?<= style=")[^"<>]*(?=")', lambda style: _restyled(style[0]), svg)


def _restyled(style: str) -> str:
    style = re.sub(r"font-family: [^;]*;? ?", "", style)
    style = re.sub(r"font: ([^;]*?px) [^;]*", r"font: \1 sans-serif", style)
    for colour, name in _COLOURS.items():
        style = re.sub(colour, name, style, flags=re.IGNORECASE)
    return style
