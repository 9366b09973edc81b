"""Results: small frozen records keyed by row id, that join, save and explain themselves."""

from datassay.results.facts import MOST_CLASSES, Fact, Parameter, as_facts, row_of
from datassay.results.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    axes_on,
    check_figure,
    draw_distribution,
    legend_name,
    save_figure,
)
from datassay.results.files import (
    check_new_folder,
    check_output,
    columns_writer,
    save_columns,
    usual_mode,
    write_folder,
    write_together,
    write_whole,
)
from datassay.results.frames import Columns, Framed, FrameKind, make_frame
from datassay.results.legacy import check_axes, freeze, frozen, new_axes, value_of
from datassay.results.result import PerRecord, Result, load_result
from datassay.results.values import Reading, Values, high_is_suspicious, reading_of

__all__ = [
    "check_axes",
    "freeze",
    "frozen",
    "new_axes",
    "value_of",
    "BLUE",
    "GREEN",
    "GREY",
    "MOST_CLASSES",
    "ORANGE",
    "PALE",
    "PURPLE",
    "Columns",
    "Fact",
    "FrameKind",
    "Framed",
    "Parameter",
    "PerRecord",
    "Reading",
    "Result",
    "Values",
    "as_facts",
    "axes_on",
    "check_figure",
    "check_new_folder",
    "check_output",
    "draw_distribution",
    "columns_writer",
    "high_is_suspicious",
    "legend_name",
    "load_result",
    "make_frame",
    "reading_of",
    "row_of",
    "save_columns",
    "save_figure",
    "usual_mode",
    "write_folder",
    "write_together",
    "write_whole",
]
