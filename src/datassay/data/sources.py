"""One CSV or Parquet file: its dialect, its columns, its rows as an Arrow table, and what is wrong with it."""

import csv
import gzip
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from datassay import _checks
from datassay._errors import InputError
from datassay.data.files import is_parquet, reading, unreadable

if TYPE_CHECKING:
    import pyarrow as pa

MISSING_IN_CSV: Final = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
CSV_ENDINGS: Final = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
STORED_INDEX: Final = re.compile(r"__index_level_\d+__")


def check_file(path: Path) -> None:
    """Refuse what is no file, or is an empty one."""
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file")
    if not os.access(path, os.R_OK):
        raise InputError(f"{str(path)!r} cannot be read: permission denied")
    if path.stat().st_size == 0:
        raise InputError(f"{path.name} is empty: it has no header and no rows")


def read_file(path: Path, as_text: Sequence[str], columns: Sequence[str] | None = None) -> "pa.Table":
    """The rows of a file; the columns named in ``as_text`` are read as text."""
    check_file(path)
    if is_parquet(path):
        import pyarrow.parquet as pq

        with reading(path.name):
            return pq.read_table(path, partitioning=None, columns=None if columns is None else list(columns))
    if path.name.lower().endswith(CSV_ENDINGS):
        return _read_csv(path, as_text, columns)
    raise InputError(
        f"cannot tell how to read {path.name!r}: its name must end in {', '.join(CSV_ENDINGS)} or .parquet"
    )


def parquet_schema(path: Path) -> "pa.Schema":
    """The columns of a Parquet file and their types."""
    import pyarrow.parquet as pq

    with reading(path.name):
        return pq.read_schema(path)


def unreadable_file(path: Path, error: Exception) -> InputError:
    """The error for a file that could not be read, with the line at fault where there is one."""
    if is_parquet(path):
        return unreadable(path.name, error)
    delimiter, names = _csv_header(path)
    reason = _csv_fault(path, delimiter, len(names))
    vague = "its lines cannot be split into columns; look for an unclosed quote or mixed line ends"
    return InputError(f"cannot read {path.name}: {reason or vague}")


def identifier(name: str) -> str:
    """A column's name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def plain_pattern(path: Path) -> str:
    """A path in which DuckDB takes nothing for a wildcard."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def relation(path: Path, as_text: Sequence[str]) -> tuple[str, dict[str, str]]:
    """A file as DuckDB reads it: the table function, and its parameters.

    The dialect of a CSV file is fixed beforehand: no line is skipped, and yes and no stay words.
    """
    plain = plain_pattern(path)
    if is_parquet(path):
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

    source, parameters = relation(path, as_text)
    names = _csv_header(path)[1]
    stored_index = not names[0]  # as pandas writes an index into a CSV file
    chosen = "*" if columns is None or stored_index else ", ".join(identifier(name) for name in columns)
    with duckdb.connect() as connection:
        try:
            arrow = connection.sql(f"SELECT {chosen} FROM {source}", params=parameters).to_arrow_table()
        except duckdb.Error as error:
            raise unreadable_file(path, error) from None
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


def file_columns(path: Path) -> list[str]:
    """The columns of a CSV or Parquet file, without reading its rows."""
    check_file(path)
    if is_parquet(path):
        return list(parquet_schema(path).names)
    return _csv_header(path)[1]


def stored_index(schema: "pa.Schema") -> list[str]:
    """The columns in which pandas stored an index."""
    named = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name in named or STORED_INDEX.fullmatch(name)]
