"""Read the file or frame the user has: CSV, Parquet, pandas, polars, Arrow.

Everything becomes one Arrow table (DuckDB reads files, narwhals reads frames), whose columns are then typed:

- numbers stay numbers; dates become days since 1970-01-01 (noted);
- strings and Booleans are categories, unless a string column has more than 20 distinct values and more than one
  for every ten rows: that is text, refused unless the caller says what to do with it;
- empty cells and NA, N/A, NaN, null and ? (in CSV) are missing; a column with nothing in it is set aside (noted).
"""

import csv
import gzip
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Missing, Scaling, TextColumns
from datassay._errors import InputError, UnavailableError, UsageError
from datassay.data.files import ParquetFile, describe, find_parquet, is_many, unreadable
from datassay.data.table import Column, Table, check_encoding, missing_column

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

MISSING_IN_CSV: Final = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
CSV_ENDINGS: Final = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS: Final = (".parquet", ".pq")
STORED_INDEX: Final = re.compile(r"__index_level_\d+__")


def read_table(
    path_or_frame: object,
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
    """Read a CSV or Parquet file, or a pandas, polars or Arrow table, into typed columns.

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
    known: set[str] = set()
    if like is not None:
        known = {c for c, column in like.columns.items() if column.kind == "categorical"}
    if isinstance(path_or_frame, str | os.PathLike):
        path = Path(path_or_frame)
        source = name or path.name
        as_text = (id or (like.id if like else None), *categorical, *known)
        arrow = _read_file(
            path, [c for c in as_text if c is not None], _wanted(path, source, columns, (label, id, *ignore))
        )
    else:
        source = name or "table"
        arrow, index = _read_frame(path_or_frame)
        wanted = _chosen(arrow.column_names, source, columns, (label, id, *ignore))
        arrow = arrow if wanted is None else arrow.select(wanted)
    notes: list[str] = []
    arrow, index = _without_stored_index(arrow, index, id, source, notes)
    present = arrow.column_names
    if like is not None:
        label = label or like.label
        id = id or (like.id if like.id in present else None)
        categorical = [*categorical, *(c for c in present if c in known)]
        ignore = [*ignore, *(c for c in present if c in like.carried)]
    twice = [c for c in present if present.count(c) > 1]
    if twice:
        raise InputError(f"{source} has more than one column named {twice[0]!r}")
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
        if column in ignore and not _usable(arrow[column].type):
            notes.append(f"column {column!r} of {source} is left out: its type is {arrow[column].type}")
            carried.remove(column)
            continue
        found = _type_column(
            arrow[column],
            column,
            source,
            categorical=column in categorical,
            aside=aside,
            text=text,
            notes=notes,
            expected=None if like is None or column in carried else like.columns.get(column),
        )
        typed[column] = found[0]
        if found[1] and not aside:
            carried.append(column)
        elif not aside and _looks_like_an_id(typed[column]):
            notes.append(
                f"column {column!r} of {source} holds a different whole number in every row and is used as a feature; "
                "if it identifies rows, name it as id"
            )
    return Table(typed, ids, label, tuple(carried), source, tuple(notes), scale, missing, id)


def _chosen(
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
    present = column_names(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        stored = (_parquet_schema(path).pandas_metadata or {}).get("index_columns", [])
        more = (*more, *(name for name in stored if isinstance(name, str)))
    return _chosen(present, source, columns, more)


def read_distinct(
    path: object,
    columns: Sequence[str] | None = None,
    *,
    count: str = "count",
    weight: str | None = None,
    categorical: Sequence[str] = (),
    memory: int = 2**31,
) -> Table:
    """The distinct rows of data of any size, and how often each occurs.

    ``path`` is a CSV or Parquet file, a folder of Parquet files, a pattern of them such as ``people/*.parquet``, or a
    Dask data frame. Of files DuckDB counts the rows, and keeps on disk what does not fit into ``memory`` (bytes); of a
    Dask frame every partition is counted where it is, and the counts are added up. What comes back is one row for each
    distinct one as it is written, in the order of their values, with the count (or the sum of ``weight``) carried along
    in the column ``count``. Ask of its people with that as weight: ``uniqueness_shapley(table, weights="count")``.

    >>> import datassay as da, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("town,age\\nYork,30\\nYork,30\\nHull,41\\n")
    >>> table = da.read_distinct(file, ["town", "age"])
    >>> table["town"].tolist(), table["count"].tolist()
    (['Hull', 'York'], [1, 2])
    """
    if not (isinstance(path, str | os.PathLike) or is_dask(path)):
        raise UsageError(f"read_distinct takes the path of a file, got {type(path).__name__}")
    _checks.not_one_string("columns", columns)
    memory = _checks.integer("memory", memory, at_least=2**26)
    source = _counted_source(path)
    chosen = _chosen(source.columns, source.name, columns, ())
    chosen = [name for name in source.columns if name != weight] if chosen is None else chosen
    if not chosen:
        raise UsageError("columns names no column to count by")
    if weight is not None and weight not in source.columns:
        raise InputError(f"{source.name}: {missing_column(weight, source.columns)}")
    if weight in chosen:
        raise UsageError(f"{weight!r} is the weight and cannot be one of the columns as well")
    if count in chosen:
        raise InputError(f"there is a column {count!r} already; give the count another name")
    categories = [name for name in chosen if name in {*categorical, *source.categories}]
    source.check(chosen, everything=columns is None)
    found: object
    if is_dask(path):
        from datassay.data.partitions import count_partitions

        found = count_partitions(path, chosen, weight, count)
    else:
        found = _count_files(source, chosen, categories, weight, count, memory)
    counted = read_table(found, ignore=[count], categorical=categories, text="categorical", name=source.name)
    note = (
        f"each row of {source.name} is one of {len(counted):,} distinct ones, and stands for as many as {count!r} says"
    )
    return replace(counted, notes=(*counted.notes, note))


def _count_files(
    source: "_Counted", chosen: Sequence[str], categories: Sequence[str], weight: str | None, count: str, memory: int
) -> "pa.Table":
    """The distinct rows of files, counted by DuckDB."""
    import tempfile

    import duckdb

    quoted = ", ".join(_identifier(name) for name in chosen)
    weighed = "1.0" if weight is None else f"{_identifier(weight)}::DOUBLE"
    total = "count(*)" if weight is None else f"sum({weighed})"
    usable = _unused("usable", [*chosen, count])
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory // 2**20}MiB'")
        connection.execute("SET temp_directory = $folder", {"folder": folder})
        connection.execute("SET preserve_insertion_order = false")
        if weight is not None:  # sums of fractions depend on their order
            connection.execute("SET threads = 1")
        relation, parameters = source.relation(categories)
        query = (
            f"SELECT {quoted}, {total} AS {_identifier(count)}, "
            f"bool_and(coalesce(isfinite({weighed}) AND {weighed} > 0, false)) AS {_identifier(usable)} "
            f"FROM {relation} GROUP BY {quoted} ORDER BY {quoted}"
        )
        try:
            arrow = connection.sql(query, params=parameters).to_arrow_table()
        except duckdb.OutOfMemoryException:
            raise UnavailableError(
                f"the distinct rows of {source.name} do not fit into {memory // 2**20:,} MiB; allow more memory, or "
                "choose fewer columns"
            ) from None
        except duckdb.ConversionException:
            raise InputError(f"weight: column {weight!r} of {source.name} does not hold numbers throughout") from None
        except duckdb.Error as error:
            raise source.unreadable(error) from None
    if not all(arrow[usable].to_pylist()):
        raise InputError(f"weight: column {weight!r} of {source.name} must hold positive numbers in every row")
    return arrow.drop_columns([usable])


@dataclass(frozen=True)
class _Counted:
    """What is counted: a file, many Parquet files, or a Dask data frame; its columns, and those that are categories."""

    name: str
    columns: Sequence[str]
    categories: Sequence[str]
    file: Path | None = None
    files: Sequence[ParquetFile] = ()

    def relation(self, categories: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """How DuckDB reads it."""
        if self.file is not None:
            return _relation(self.file, categories)
        plain = [_plain_pattern(file.path) for file in self.files]
        return "read_parquet($paths, union_by_name = true, hive_partitioning = false)", {"paths": plain}

    def unreadable(self, error: Exception) -> InputError:
        """The error of a file that could not be read."""
        return _unreadable(self.file, error) if self.file is not None else unreadable(self.name, error)

    def check(self, columns: Sequence[str], *, everything: bool) -> None:
        """Refuse files that lack a column, have others than the first one, or hold something else in one."""
        for file in self.files:
            first = self.files[0]
            lacking = [name for name in columns if name not in file.schema.names]
            more = [name for name in _own_columns(file.schema) if name not in self.columns]
            if lacking:
                raise InputError(f"{file.name} lacks the column {_checks.listed(lacking)} that {first.name} has")
            if more and everything:
                raise InputError(
                    f"{file.name} has the column {_checks.listed(more)} that {first.name} lacks; name the columns"
                )
        for name in columns:
            kinds: dict[str, str] = {}
            for file in self.files:
                kind = _rough_kind(file.schema.field(name).type)
                if kind:
                    kinds.setdefault(kind, file.name)
            if len(kinds) > 1:
                told = " and ".join(f"{kind} in {file}" for kind, file in kinds.items())
                raise InputError(f"column {name!r} of {self.name} holds {told}; make them alike")


def _rough_kind(kind: "pa.DataType") -> str:
    """What a column holds, in a word; nothing if it has no values at all."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return ""
    if _is_text(kind):
        return "text"
    if any(getattr(pa.types, f"is_{name}")(kind) for name in ("integer", "floating", "decimal")):
        return "numbers"
    return "dates" if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else str(kind)


def _own_columns(schema: "pa.Schema") -> list[str]:
    """The columns but for an index that pandas stored."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name and name not in stored and not STORED_INDEX.fullmatch(name)]


def is_dask(given: object) -> bool:
    """Whether this is a Dask data frame; says so without importing Dask."""
    return type(given).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(given, "to_delayed")


def _counted_source(given: Any) -> _Counted:
    if is_dask(given):
        names = list(given.columns)
        for name in names:
            if not isinstance(name, str):
                raise InputError(f"column names must be strings, got {name!r} ({type(name).__name__})")
        held = [name for name in names if str(given.dtypes[name]) == "category"]
        return _Counted("the data frame", names, held)
    if not is_many(given):
        file = Path(given)
        _check_file(file)
        return _Counted(file.name, *_columns_to_count(file), file)
    import pyarrow as pa

    name = str(given)
    files = [file for file in describe(find_parquet(given)) if file.rows]
    if not files:
        raise InputError(f"{name!r} holds no rows")
    columns = _own_columns(files[0].schema)
    _refuse_alike(columns, files[0].name)
    held = [
        c for c in columns if any(_has(file, c) and pa.types.is_dictionary(file.schema.field(c).type) for file in files)
    ]
    return _Counted(name, columns, held, None, files)


def _has(file: ParquetFile, column: str) -> bool:
    return column in file.schema.names


def _refuse_alike(columns: Sequence[str], source: str) -> None:
    """Refuse columns that DuckDB would take for one."""
    alike = {name.casefold(): name for name in columns}
    for name in columns:
        other = alike[name.casefold()]
        if other != name:
            raise InputError(f"the columns {name!r} and {other!r} of {source} differ only in case; rename one")


def _unused(name: str, taken: Sequence[str]) -> str:
    """A name like this one that is not taken, whatever the case of its letters."""
    while name.casefold() in {other.casefold() for other in taken}:
        name = f"{name}_"
    return name


def _columns_to_count(path: Path) -> tuple[list[str], list[str]]:
    """The columns of a file but for a stored index, and those that the file itself says are categories."""
    present, categories = column_names(path), list[str]()
    if path.name.lower().endswith(PARQUET_ENDINGS):
        import pyarrow as pa

        schema = _parquet_schema(path)
        stored = (schema.pandas_metadata or {}).get("index_columns", [])
        present = [name for name in present if name not in stored and not STORED_INDEX.fullmatch(name)]
        categories = [name for name in present if pa.types.is_dictionary(schema.field(name).type)]
        _refuse_alike(present, path.name)
    return [name for name in present if name], categories


def bytes_in_memory(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> int:
    """About how much memory a file would take when read: an estimate from its size and shape."""
    file = Path(path)
    _check_file(file)
    if file.name.lower().endswith(PARQUET_ENDINGS):
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            described = pq.ParquetFile(file).metadata
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(file, error) from None
        chosen = len(described.schema) if columns is None else len(columns)
        return int(described.num_rows * 24 * chosen)
    return file.stat().st_size * (12 if file.name.lower().endswith(".gz") else 2)


def _without_stored_index(
    arrow: "pa.Table", index: NDArray[np.generic] | None, id: str | None, source: str, notes: list[str]
) -> tuple["pa.Table", NDArray[np.generic] | None]:
    """Take out the index that pandas stores as columns, and use it as ids if it is one column and there are no others.

    A range that pandas keeps as mere metadata is not believed: it outlives a sort or a filter of the file.
    """
    named = (arrow.schema.pandas_metadata or {}).get("index_columns", [])
    stored = [c for c in arrow.column_names if (c in named or STORED_INDEX.fullmatch(c)) and c != id]
    if index is None and id is None and len(stored) == 1:
        index = np.array(arrow[stored[0]].to_pylist())
    elif stored:
        notes.append(f"the index of {source} ({_checks.listed(stored)}) is set aside")
    return arrow.drop_columns(stored) if stored else arrow, index


def _looks_like_an_id(column: Column) -> bool:
    whole = column.kind == "numeric" and column.data.dtype.kind in "iu"
    return whole and len(column.data) > 20 and len(np.unique(column.data)) == len(column.data)


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a CSV or Parquet file (of many: of the first one that has rows), without reading its rows."""
    if is_many(path):
        return list(_counted_source(path).columns)
    file = Path(path)
    _check_file(file)
    if file.name.lower().endswith(PARQUET_ENDINGS):
        return list(_parquet_schema(file).names)
    return _csv_header(file)[1]


def _parquet_schema(path: Path) -> "pa.Schema":
    """The columns of a Parquet file and their types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None


def _check_file(path: Path) -> None:
    """Refuse what is no file, or is an empty one."""
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file")
    if not os.access(path, os.R_OK):
        raise InputError(f"{str(path)!r} cannot be read: permission denied")
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty: it has no header and no rows")


def _read_file(path: Path, as_text: Sequence[str], columns: Sequence[str] | None = None) -> "pa.Table":
    _check_file(path)
    lower = path.name.lower()
    if lower.endswith(PARQUET_ENDINGS):
        return _read_parquet(path, columns)
    if lower.endswith(CSV_ENDINGS):
        return _read_csv(path, as_text, columns)
    raise InputError(
        f"cannot tell how to read {path.name!r}: its name must end in {', '.join(CSV_ENDINGS)} or .parquet"
    )


def _unreadable(path: Path, error: Exception) -> InputError:
    """The error for a file that could not be read, with the line at fault where there is one."""
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return InputError(f"cannot read {path.name}: {str(error).splitlines()[0]}")
    delimiter, names = _csv_header(path)
    reason = _csv_fault(path, delimiter, len(names))
    vague = "its lines cannot be split into columns; look for an unclosed quote or mixed line ends"
    return InputError(f"cannot read {path.name}: {reason or vague}")


def _read_parquet(path: Path, columns: Sequence[str] | None = None) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, partitioning=None, columns=None if columns is None else list(columns))
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _plain_pattern(path: Path) -> str:
    """A path in which DuckDB takes nothing for a wildcard."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def _relation(path: Path, as_text: Sequence[str]) -> tuple[str, dict[str, str]]:
    """A file as DuckDB reads it: the table function, and its parameters.

    The dialect of a CSV file is fixed beforehand: no line is skipped, and yes and no stay words.
    """
    plain = _plain_pattern(path)
    if path.name.lower().endswith(PARQUET_ENDINGS):
        return "read_parquet($path, hive_partitioning = false)", {"path": plain}
    delimiter, names = _csv_header(path)
    for at, name in enumerate(names):
        for other in names[:at]:
            if name == other and name:
                raise InputError(f"{path.name} has more than one column named {name!r}")
            if name and name.casefold() == other.casefold():
                raise InputError(f"the columns {other!r} and {name!r} of {path.name} differ only in case; rename one")
    options = {
        "header": "true",
        "sample_size": "-1",
        "delim": _quoted(delimiter),
        "quote": "'\"'",
        "escape": "'\"'",
        "comment": "''",
        "skip": "0",
        "hive_partitioning": "false",
        "nullstr": f"[{', '.join(_quoted(blank + word) for word in MISSING_IN_CSV for blank in ('', ' '))}]",
        "auto_type_candidates": "['BIGINT', 'DOUBLE', 'VARCHAR']",
    }
    forced = [name for name in names if name in as_text]
    if forced:
        options["types"] = "{" + ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in forced) + "}"
    listed = ", ".join(f"{name} = {value}" for name, value in options.items())
    return f"read_csv($path, {listed})", {"path": plain}


def _read_csv(path: Path, as_text: Sequence[str], columns: Sequence[str] | None = None) -> "pa.Table":
    import duckdb

    source, parameters = _relation(path, as_text)
    names = _csv_header(path)[1]
    stored_index = not names[0]  # as pandas writes an index into a CSV file
    chosen = "*" if columns is None or stored_index else ", ".join(_identifier(name) for name in columns)
    with duckdb.connect() as connection:
        try:
            arrow = connection.sql(f"SELECT {chosen} FROM {source}", params=parameters).to_arrow_table()
        except duckdb.Error as error:
            raise _unreadable(path, error) from None
    if stored_index:
        arrow = arrow.rename_columns(["__index_level_0__", *arrow.column_names[1:]])
        arrow = arrow if columns is None else arrow.select(["__index_level_0__", *columns])
    return arrow


def _open_text(path: Path) -> IO[str]:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _csv_header(path: Path) -> tuple[str, list[str]]:
    """The delimiter (of , ; tab and | the one that splits the header into most names) and the column names."""
    try:
        with _open_text(path) as file:
            headers: dict[str, list[str]] = {}
            for delimiter in "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ",;\t|":
                file.seek(0)
                headers[delimiter] = next(csv.reader(file, delimiter=delimiter, skipinitialspace=True))
    except (UnicodeDecodeError, OSError, EOFError, csv.Error, StopIteration):
        raise InputError(f"cannot read {path.name}: {_csv_fault(path, ',', None) or 'it is no text file'}") from None
    best = max(headers, key=lambda delimiter: len(headers[delimiter]))
    if not headers[best]:
        raise InputError(f"cannot read {path.name}: its first line is empty, and must name the columns")
    return best, [name.strip() for name in headers[best]]


def _csv_fault(path: Path, delimiter: str, width: int | None) -> str | None:
    """What is wrong with a CSV file that could not be read: its encoding, or a line of another length."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as raw:
            if raw.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                return "it is UTF-16; save it as UTF-8"
            raw.seek(0)
            for number, line in enumerate(raw, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    return f"line {number} is not UTF-8; save the file as UTF-8"
        if width is not None:
            with _open_text(path) as file:
                reader = csv.reader(file, delimiter=delimiter)
                for row in reader:
                    if row and len(row) != width:
                        cells = _checks.counted(len(row), "cell")
                        return f"line {reader.line_num} has {cells} where the header has {width}"
    except (OSError, EOFError, csv.Error) as error:
        return str(error)
    return None


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _read_frame(frame: object) -> tuple["pa.Table", NDArray[np.generic] | None]:
    import narwhals as nw
    import pyarrow as pa
    from narwhals.exceptions import NarwhalsError

    try:
        data = nw.from_native(frame, eager_only=True)  # type: ignore[call-overload]
        for column in data.columns:
            if not isinstance(column, str):
                raise InputError(f"column names must be strings, got {column!r} ({type(column).__name__})")
        return nw.maybe_reset_index(data).to_arrow(), frame_index(data)
    except (NarwhalsError, pa.ArrowException) as error:
        raise InputError(f"cannot read the table: {' '.join(' '.join(map(str, error.args)).split())}") from None
    except TypeError:
        raise UsageError(
            f"read_table takes a path or a pandas, polars or Arrow table, got {type(frame).__name__}"
        ) from None


def as_table(given: object, *, like: Table | None = None, text: TextColumns = "refuse") -> Table:
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


def is_missing(value: object) -> bool:
    """Whether a single value stands for no value: None, NaN, or pandas' NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def as_ids(given: NDArray[np.generic], name: str) -> NDArray[np.generic]:
    """Ids as a plain array of whole numbers or strings, all present and distinct."""
    ids = np.asarray(given)
    if ids.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, one entry a row")
    if ids.dtype.kind == "f" and np.isfinite(ids.astype(float)).all() and (ids == np.floor(ids.astype(float))).all():
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iuU":
        missing = [i for i, value in enumerate(ids.tolist()) if is_missing(value)]
        if missing:
            raise InputError(f"{name} is missing at row {missing[0]} (counting from 0); every row needs an id")
        ids = np.array([str(value) for value in ids.tolist()])
    unique, count = np.unique(ids, return_counts=True)
    if len(unique) < len(ids):
        twice = unique[count > 1]
        rows = np.flatnonzero(ids == twice[0])
        raise InputError(
            f"{name} has duplicates: {_checks.listed(twice)} (the first at rows {rows[0]} and {rows[1]}, counting "
            "from 0); ids must be distinct"
        )
    return ids


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


def _type_column(
    column: "pa.ChunkedArray",
    name: str,
    source: str,
    *,
    categorical: bool,
    aside: bool,
    text: str,
    notes: list[str],
    expected: Column | None,
) -> tuple[Column, bool]:
    """The typed column, and whether it must be set aside."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if expected is not None and not aside and column.null_count == len(column):  # nothing here, but training has it
        if expected.kind == "numeric":
            return Column("numeric", np.full(len(column), np.nan)), False
        return Column("categorical", np.full(len(column), -1, np.int32), expected.categories), False
    if pa.types.is_null(kind) or column.null_count == len(column):
        notes.append(f"column {name!r} of {source} has no values and is set aside")
        return Column("numeric", np.full(len(column), np.nan)), True
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
        categorical = categorical or not aside  # the frame itself says so
    if categorical and pa.types.is_floating(kind):
        # Whole numbers are written as such: 7.0 is 7, however many cells of the column are missing or have decimals.
        column = pc.if_else(pc.equal(column, pc.floor(column)), _whole(column), column.cast(pa.string()))
        kind = pa.string()
    if categorical and not (pa.types.is_boolean(kind) or _is_text(kind)):
        column = column.cast(pa.string())
        kind = column.type
    if pa.types.is_boolean(kind):
        codes = pc.fill_null(column.cast(pa.int8()), -1).to_numpy().astype(np.int32)
        return Column("categorical", codes, np.array(["False", "True"])), False
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        notes.append(f"column {name!r} of {source} holds dates, taken as days since 1970-01-01")
        micros = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
        return Column("numeric", micros.to_numpy() / 86_400e6, is_date=True), False
    if pa.types.is_integer(kind):
        if column.null_count:  # numbers with gaps are floats
            what = f"column {name!r} of {source} (some of it missing; read it as a category instead)"
            _checks.exact_as_float(what, pc.drop_null(column).to_numpy())
        return Column("numeric", column.to_numpy()), False
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Column("numeric", column.cast(pa.float64()).to_numpy()), False
    if _is_text(kind):
        found = _encode_strings(column)
        assert found.categories is not None
        # True and false have one spelling, so that the same column read from another format is the same column. If
        # there is a table to go by, it alone decides, for every cell by itself.
        told = found if expected is None else expected
        if told.categories is not None and {c.casefold() for c in told.categories.tolist()} <= {"true", "false"}:
            found = _spell_truth(found)
            if found.categories is not None and len(found.categories) == 2:
                return found, False
        assert found.categories is not None
        if categorical or aside:
            return found, False
        days = _dates(found, name, source)
        if days is not None:
            notes.append(f"column {name!r} of {source} holds dates, taken as days since 1970-01-01")
            return Column("numeric", days, is_date=True), False
        _refuse_spoilt_numbers(found, name, source)
        if len(found.categories) <= max(20, len(column) // 10) or text == "categorical":
            return found, False
        if text == "ignore":
            notes.append(f"column {name!r} of {source} holds text and is set aside")
            return found, True
        raise InputError(
            f"column {name!r} of {source} is text ({len(found.categories):,} distinct values in {len(column):,} rows, "
            f"such as {_checks.listed(found.categories[:3])}); put it among the columns to ignore or the categorical "
            "ones, or set text to 'ignore' or 'categorical' for all text columns"
        )
    raise InputError(f"column {name!r} of {source} has the type {kind}, which datassay cannot use; ignore or drop it")


def _whole(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Floats as text without decimals; numbers too large for that stay as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    small = pc.less(pc.abs(column), 2.0**53)
    return pc.if_else(
        small, pc.if_else(small, column, 0.0).cast(pa.int64(), safe=False).cast(pa.string()), column.cast(pa.string())
    )


def _spell_truth(found: Column) -> Column:
    """Categories with true and false (in any case) spelled True and False, and the others as they are."""
    assert found.categories is not None
    spelled = [c.capitalize() if c.casefold() in ("true", "false") else c for c in found.categories.tolist()]
    names, at = np.unique([*spelled, "False", "True"], return_inverse=True)
    codes = np.append(at[: len(spelled)], -1)[found.data.astype(np.intp)]
    return Column("categorical", codes.astype(np.int32), names)


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


ISO_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")


def _dates(found: Column, name: str, source: str) -> NDArray[np.float64] | None:
    """Days since 1970 if the strings are ISO dates; other ways to write a date are ambiguous and stay text."""
    assert found.categories is not None
    texts = found.categories.tolist()
    odd = [text for text in texts if not ISO_DATE.fullmatch(text)]
    if 4 * len(odd) >= len(texts):
        return None
    if odd:
        raise _spoilt(found, odd, "dates", name, source)
    try:
        moments = np.array([text.replace(" ", "T") for text in texts], dtype="datetime64[us]")
    except ValueError as error:
        raise InputError(f"column {name!r} of {source} holds a date that does not exist: {error}") from None
    return np.append(moments.astype(np.int64) / 86_400e6, np.nan)[found.data.astype(np.intp)]


def _spoilt(found: Column, odd: list[str], what: str, name: str, source: str) -> InputError:
    """The error for a column of numbers or dates with other things (``odd``, as categories) among them."""
    assert found.categories is not None
    row = int((found.data == np.searchsorted(found.categories, odd[0])).argmax())
    return InputError(
        f"column {name!r} of {source} holds {what} but for {_checks.listed(odd)} (first at row {row}, counting from "
        "0); mend those cells or leave them empty, or put the column among the categorical ones"
    )


def _usable(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    tests = ("null", "dictionary", "boolean", "date", "timestamp", "integer", "floating", "decimal", "string",
             "large_string", "string_view")  # fmt: skip
    return any(getattr(pa.types, f"is_{name}")(kind) for name in tests)


def _encode_strings(column: "pa.ChunkedArray") -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    trimmed = pc.if_else(pc.is_in(trimmed, pa.array([""], pa.large_string())), None, trimmed)
    encoded = pc.dictionary_encode(trimmed).combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    names = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    order = np.argsort(names)
    rank = np.empty(len(names) + 1, np.int32)
    rank[order] = np.arange(len(names))
    rank[-1] = -1
    return Column("categorical", rank[codes], names[order])


def _refuse_spoilt_numbers(found: Column, name: str, source: str) -> None:
    """Strings that are nearly all numbers are a number column with a fault in it, and not categories."""
    assert found.categories is not None
    texts = found.categories.tolist()
    odd = [text for text in texts if not NUMBER.fullmatch(text)]
    if odd and len(texts) >= 5 * len(odd):  # at least four numbers to each thing that is none
        raise _spoilt(found, odd, "numbers", name, source)
    commas = [text for text in odd if re.fullmatch(r"[-+]?[\d.\s]*,\d+", text)]
    if len(commas) >= 3 and len(commas) == len(odd):
        raise InputError(
            f"column {name!r} of {source} holds numbers with commas, such as {_checks.listed(commas[:2])}; write them "
            "with a decimal point and without separators of thousands, or put the column among the categorical ones"
        )


NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
