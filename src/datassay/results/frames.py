"""Columns as a data frame of the kind that the caller uses."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from datassay import _checks
from datassay._errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Frame = TypeAliasType("Frame", "pd.DataFrame | pl.DataFrame | pa.Table")
FrameKind = Literal["pandas", "polars", "pyarrow"]
Columns = dict[str, NDArray[np.generic]]
Floats = NDArray[np.float64]


class Framed:
    """Anything made of columns of one length: it can be had as a data frame, and shows itself in a notebook."""

    def _columns(self) -> Columns:
        raise NotImplementedError

    @overload
    def to_frame(self, kind: Literal["pandas"]) -> "pd.DataFrame": ...
    @overload
    def to_frame(self, kind: Literal["polars"]) -> "pl.DataFrame": ...
    @overload
    def to_frame(self, kind: Literal["pyarrow"]) -> "pa.Table": ...
    @overload
    def to_frame(self, kind: FrameKind | None = None) -> "Frame": ...
    def to_frame(self, kind: FrameKind | None = None) -> "Frame":
        """A data frame of the columns, one row each as in the file that ``save`` writes.

        ``kind`` is "pandas", "polars" or "pyarrow"; left out, the first of these that is installed.
        """
        return make_frame(self._columns(), kind)

    def _top(self, most: int) -> tuple[Columns, int]:
        """Its first rows, and how many there are."""
        columns = self._columns()
        return {name: column[:most] for name, column in columns.items()}, max(map(len, columns.values()), default=0)

    def _repr_html_(self, most: int = 10) -> str:
        """The object in one line and its first rows as a table, for notebooks."""
        from html import escape

        columns, rows = self._top(most)
        head = "".join(f"<th>{escape(_checks.visible(str(name)))}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_cell(column[i]))}</td>" for column in columns.values()) + "</tr>"
            for i in range(min(rows, most))
        )
        more = f"<p>… and {rows - most:,} more rows</p>" if rows > most else ""
        title = f"<p>{escape(_checks.visible(repr(self)))}</p>"
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else _checks.visible(str(value))


def make_frame(columns: Mapping[str, NDArray[np.generic]], kind: FrameKind | None = None) -> "Frame":
    """A data frame of the kind asked for, or of the first kind installed."""
    import narwhals as nw

    kinds: tuple[FrameKind, ...] = ("pandas", "polars", "pyarrow")
    if kind is not None:
        _checks.choice("kind", kind, kinds)
    for backend in kinds if kind is None else (kind,):
        try:
            __import__(backend)
        except ImportError:
            continue
        data = {name: column.tolist() if column.dtype.kind == "U" else column for name, column in columns.items()}
        frame: Frame = nw.from_dict(data, backend=backend).to_native()
        return frame
    raise MissingDependencyError(f"{kind} is not installed; install it with: pip install {kind}")
