"""Read the file or frame the user has: CSV, Parquet, pandas, polars, Arrow.

Everything becomes one Arrow table (DuckDB reads files, narwhals reads frames), whose columns are then typed. Empty
cells and NA, N/A, NaN, null and ? (in CSV) are missing; a column with nothing in it is set aside (noted).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Missing, Scaling, TextColumns
from datassay._errors import InputError, UsageError
from datassay._run import documented
from datassay.data.aliases import TableLike
from datassay.data.files import file_columns, is_parquet, parquet_schema, read_file, refuse_twice, stored_index
from datassay.data.kinds import is_usable, typed_column
from datassay.data.labels import as_ids
from datassay.data.table import Column, Table, check_encoding, missing_column

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa


class Reading(TypedDict, total=False):
    """How a table is read."""

    ignore: Sequence[str]
    categorical: Sequence[str]
    text: TextColumns
    missing: Missing
    scale: Scaling


@documented()
def read_table(
    path_or_frame: TableLike,
    label: str | None = None,
    id: str | None = None,
    *,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    text: TextColumns = "refuse",
    missing: Missing = "impute",
    scale: Scaling = "standard",
    like: Table | None = None,
    name: str | None = None,
    columns: Sequence[str] | None = None,
) -> Table:
    """The table in a CSV or Parquet file, or of a pandas, polars or Arrow data frame, with typed columns.

    Parameters
    ----------
    path_or_frame
        A path ending in .csv, .tsv, .txt (these also as .gz) or .parquet, or a data frame.
    label
        The column to predict: strings, whole numbers or Booleans.
    id
        The column that identifies a row; its values must be distinct. Without it, rows are numbered from 0; a
        pandas index that is not the default one is used.
    ignore
        Columns to keep beside the features without using them.
    categorical
        Columns to read as categories although they look like numbers or text (zip codes, say).
    text
        What to do with text columns: refuse them with an error (default), treat each as categories, or ignore them.
    missing, scale
        How columns become numbers when the table is used for training (see :func:`fit_encoder`): missing values are
        filled in (``"impute"``: the training median, or a category of their own) or refused (``"error"``); numbers are
        scaled by ``"standard"``, ``"minmax"`` or ``"none"``.
    like
        A table read before, whose columns decide: its label, id, categories and set-aside columns are taken over
        where this one has them, and each cell is read by itself. Read validation data like its training data; for
        private values, read the private data like the public one.
    name
        What to call the table in messages; the file's name if left out.
    columns
        Read these columns alone, with the label, the id and those to ignore.

    Returns
    -------
    Table
        Columns of numbers and categories, ids, and notes on what was noticed on the way.

    Examples
    --------
    >>> import datassay as da, pandas as pd
    >>> frame = pd.DataFrame({"age": [34, 51, None], "job": ["nurse", "cook", "nurse"], "y": ["a", "b", "a"]})
    >>> table = da.read_table(frame, label="y")
    >>> table.features, table.labels.tolist()
    (('age', 'job'), ['a', 'b', 'a'])
    """
    _checks.choice("text", text, get_args(TextColumns))
    check_encoding(scale, missing)
    for parameter, given in (("ignore", ignore), ("categorical", categorical), ("columns", columns)):
        _checks.not_one_string(parameter, given)
    index: NDArray[np.generic] | None = None
    known = set() if like is None else {c for c, column in like.columns.items() if column.kind == "categorical"}
    if isinstance(path_or_frame, str | os.PathLike):
        path = Path(path_or_frame)
        source = name or path.name
        own_id = id or (like.id if like else None)
        as_text = [*([own_id] if own_id else []), *categorical, *known]
        arrow = read_file(path, as_text, _wanted(path, source, columns, (label, id, *ignore)))
    else:
        source = name or "table"
        arrow, index = _read_frame(path_or_frame)
        wanted = chosen_columns(arrow.column_names, source, columns, (label, id, *ignore))
        arrow = arrow if wanted is None else arrow.select(wanted)
    notes: list[str] = []
    arrow, index = _without_stored_index(arrow, index, id, source, notes)
    present = arrow.column_names
    if like is not None:
        label = label or like.label
        id = id or (like.id if like.id in present else None)
        categorical = [*categorical, *(c for c in present if c in known)]
        ignore = [*ignore, *(c for c in present if c in like.carried)]
    refuse_twice(present, source)
    for column in (label, id, *ignore, *categorical):
        if column is not None and column not in present:
            raise InputError(f"{source}: {missing_column(column, present)}")
    if label is not None and label == id:
        raise UsageError(f"label and id are both {label!r}; they must be different columns")
    if arrow.num_rows == 0:
        raise InputError(f"{source} has no rows")
    ids = _ids(arrow, id, index, source)
    typed: dict[str, Column] = {}
    carried = [c for c in present if c in set(ignore) and c != id]
    for column in present:
        if column == id:
            continue
        aside = column == label or column in carried
        if column in ignore and not is_usable(arrow[column].type):
            notes.append(f"column {column!r} of {source} is left out: its type is {arrow[column].type}")
            carried.remove(column)
            continue
        expected = None if like is None or column in carried else like.columns.get(column)
        typed[column], useless = typed_column(
            arrow[column], f"column {column!r} of {source}", column in categorical, aside, text, notes, expected
        )
        if useless and not aside:
            carried.append(column)
        elif not aside and _looks_like_an_id(typed[column]):
            notes.append(
                f"column {column!r} of {source} holds a different whole number in every row and is used as a feature; "
                "if it identifies rows, name it as id"
            )
    return Table(typed, ids, label, tuple(carried), source, tuple(notes), scale, missing, id)


def chosen_columns(
    present: Sequence[str], source: str, columns: Sequence[str] | None, more: Sequence[str | None]
) -> list[str] | None:
    """The columns asked for, in the order of the data; None if all are."""
    if columns is None:
        return None
    wanted = {*columns, *(name for name in more if name is not None)}
    for name in columns:
        if name not in present:
            raise InputError(f"{source}: {missing_column(name, present)}")
    return [name for name in present if name in wanted]


def _wanted(path: Path, source: str, columns: Sequence[str] | None, more: Sequence[str | None]) -> list[str] | None:
    """The columns of a file to read; None for all. An index that pandas stored is read with them."""
    if columns is None:
        return None
    present = file_columns(path)
    if is_parquet(path):
        stored = (parquet_schema(path).pandas_metadata or {}).get("index_columns", [])
        more = (*more, *(name for name in stored if isinstance(name, str)))
    return chosen_columns(present, source, columns, more)


def _without_stored_index(
    arrow: "pa.Table", index: NDArray[np.generic] | None, id: str | None, source: str, notes: list[str]
) -> tuple["pa.Table", NDArray[np.generic] | None]:
    """Take out the index that pandas stores as columns, and use it as ids if it is one column and there are no others.

    A range that pandas keeps as mere metadata is not believed: it outlives a sort or a filter of the file.
    """
    stored = [name for name in stored_index(arrow.schema) if name != id]
    if index is None and id is None and len(stored) == 1:
        index = np.array(arrow[stored[0]].to_pylist())
    elif stored:
        notes.append(f"the index of {source} ({_checks.listed(stored)}) is set aside")
    return arrow.drop_columns(stored) if stored else arrow, index


def _looks_like_an_id(column: Column) -> bool:
    whole = column.kind == "numeric" and column.data.dtype.kind in "iu"
    return whole and len(column.data) > 20 and len(np.unique(column.data)) == len(column.data)


def _read_frame(frame: object) -> tuple["pa.Table", NDArray[np.generic] | None]:
    import narwhals as nw
    import pyarrow as pa
    from narwhals.exceptions import NarwhalsError

    try:
        data = nw.from_native(frame, eager_only=True)  # type: ignore[call-overload]
        names_of(data)
        return nw.maybe_reset_index(data).to_arrow(), frame_index(data)
    except (NarwhalsError, pa.ArrowException) as error:
        raise InputError(f"cannot read the table: {' '.join(' '.join(map(str, error.args)).split())}") from None
    except TypeError:
        raise UsageError(
            f"read_table takes a path or a pandas, polars or Arrow table, got {type(frame).__name__}"
        ) from None


def names_of(frame: Any) -> list[str]:
    """The names of a frame's columns, which must be strings."""
    for column in frame.columns:
        if not isinstance(column, str):
            raise InputError(f"column names must be strings, got {column!r} ({type(column).__name__})")
    return list(frame.columns)


def as_table(given: Any, *, like: Table | None = None, text: TextColumns = "refuse") -> Table:
    """A table as it is; a file or frame read, like another table if that is given."""
    return given if isinstance(given, Table) else read_table(given, like=like, text=text)


def frame_columns(frame: object) -> list[str]:
    """The columns of a data frame; none if it is no frame."""
    import narwhals as nw

    try:
        return list(nw.from_native(frame, eager_only=True).columns)  # type: ignore[call-overload]
    except TypeError:
        return []


def frame_index(data: "nw.DataFrame[Any] | nw.Series[Any]") -> NDArray[np.generic] | None:
    """The index of a pandas-like frame, unless it is the default 0, 1, 2, …"""
    import narwhals as nw

    index = nw.maybe_get_index(data)
    if index is None:
        return None
    found = np.asarray(index)
    if type(index).__name__ == "RangeIndex" and np.array_equal(found, np.arange(len(found))):
        return None
    return found


def _ids(arrow: "pa.Table", id: str | None, index: NDArray[np.generic] | None, source: str) -> NDArray[np.generic]:
    if id is None:
        if index is None:
            return np.arange(arrow.num_rows)
        return as_ids(index, f"the index of {source}")
    column = arrow[id]
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(f"the id {id!r} of {source} is missing at row {row} (counting from 0)")
    values = column.to_pylist()
    # A CSV id was read as text, so that 007 stays 007; whole numbers written plainly become numbers.
    plain = isinstance(values[0], str) and all(
        v.isascii() and v.isdigit() and len(v) < 19 and (v == "0" or v[0] != "0") for v in values
    )
    return as_ids(np.array(values, np.int64 if plain else None), f"the id {id!r} of {source}")
