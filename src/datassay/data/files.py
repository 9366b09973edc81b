"""Files of data: what is in a CSV or Parquet file, and many Parquet files as one data set.

A folder stands for all Parquet files in it and below, a pattern for those that it matches; files are taken in the order
of their names, so that the same data set is always the same sequence of rows.
"""

import csv
import glob
import gzip
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from datassay import _checks
from datassay._errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

MISSING_IN_CSV: Final = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?")
CSV_ENDINGS: Final = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
DIALECT: Final = (
    "header = true, skip = 0, quote = '\"', escape = '\"', comment = '', sample_size = -1, hive_partitioning = false, "
    "auto_type_candidates = ['BIGINT', 'DOUBLE', 'VARCHAR']"
)
STORED_INDEX: Final = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class ParquetFile:
    """One file: where it is, what it is called in messages, its rows, its schema, and its state when it was opened."""

    path: Path
    name: str
    rows: int
    schema: "pa.Schema"
    state: tuple[int, int]

    def is_as_it_was(self) -> bool:
        """Whether it has not been written to since."""
        return _state(self.path) == self.state


def _state(path: Path) -> tuple[int, int]:
    """The size of a file and when it was written, one of which changes when it is written again."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def is_parquet(path: Path) -> bool:
    """Whether a file is a Parquet file by its name."""
    return path.name.lower().endswith((".parquet", ".pq"))


def is_many(path: object) -> bool:
    """Whether a path means a folder or a pattern of files, and not one file."""
    if not isinstance(path, str | os.PathLike):
        return False
    place = Path(path)
    return place.is_dir() or (glob.has_magic(str(path)) and not place.exists())


def would_be_read(file: Path, path: str | os.PathLike[str]) -> bool:
    """Whether a file that is written there would be one of those that a folder or pattern stands for."""
    place, target = Path(path).absolute(), file.absolute()
    if place.is_dir():
        return is_parquet(file) and target.resolve().is_relative_to(place.resolve())
    return fnmatch(str(target), str(place))


def find_parquet(path: str | os.PathLike[str]) -> list[Path]:
    """The Parquet files that a path, a folder or a pattern stands for, in the order of their names."""
    place = Path(path)
    if is_many(path):
        folder = place if place.is_dir() else None
        if folder is None:
            named = [Path(one) for one in glob.glob(str(path), recursive=True)]
        else:
            named = [file for file in folder.rglob("*") if _counts(file, folder)]
        _refuse_dangling(named, folder)
        found = sorted(file for file in named if file.is_file())
        if not found and folder is None:
            raise InputError(f"no file matches {str(path)!r}")
        if not found:
            raise InputError(f"the folder {str(path)!r} holds no Parquet files (named *.parquet or *.pq)")
        for file in found:
            if not is_parquet(file):
                raise InputError(f"{str(path)!r} matches {file.name}, which is no Parquet file; narrow the pattern")
        return found
    if not place.exists():
        raise InputError(f"there is no file or folder {str(path)!r}")
    if not is_parquet(place):
        raise InputError(f"{place.name} is no Parquet file by its name, which must end in .parquet or .pq")
    return [place]


def _counts(file: Path, folder: Path) -> bool:
    """Whether a file in a folder is named as its data files are: not what other tools keep there beside them."""
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    return is_parquet(file) and not hidden


def _refuse_dangling(files: Sequence[Path], folder: Path | None) -> None:
    """Refuse a link whose file has gone: a part of the data would be missing, and no error would say so."""
    for file in sorted(files):
        if file.is_symlink() and not file.exists():
            name = file if folder is None else file.relative_to(folder)
            raise InputError(f"{name} is a link to a file that is not there; mend the link, or remove it")


def describe(files: Sequence[Path]) -> tuple[ParquetFile, ...]:
    """The files with their rows and schemas, from their footers alone."""
    import pyarrow.parquet as pq

    above = Path(os.path.commonpath([file.absolute().parent for file in files]))
    found = []
    for file in files:
        name = str(file.absolute().relative_to(above))
        if not os.access(file, os.R_OK):
            raise InputError(f"{name} cannot be read: permission denied")
        with reading(name):
            state = _state(file)  # before it is read: what is written meanwhile is noticed later
            with pq.ParquetFile(file) as opened:
                schema, rows = opened.schema_arrow, opened.metadata.num_rows
        refuse_twice(schema.names, name)
        found.append(ParquetFile(file, name, rows, schema, state))
    return tuple(found)


def refuse_other_columns(
    file: ParquetFile, first: ParquetFile, wanted: Sequence[str], more: Sequence[str], what: str
) -> None:
    """Refuse a file that lacks a column of the first one, or has more than that."""
    lacking = [name for name in wanted if name not in file.schema.names]
    if lacking:
        raise InputError(f"{file.name} lacks the column {_checks.listed(lacking)} that {first.name} has")
    if more:
        raise InputError(f"{file.name} has the column {_checks.listed(more)} that {first.name} lacks; name the {what}")


def refuse_different(kinds: Sequence[tuple[str, str]], what: str, advice: str) -> None:
    """Refuse what is of different kinds in several files; of each the kind, or "" where it has no values, and name."""
    first: dict[str, str] = {}
    for kind, name in kinds:
        if kind:
            first.setdefault(kind, name)
    if len(first) > 1:
        held = " and ".join(f"{kind} in {name}" for kind, name in first.items())
        raise InputError(f"{what} holds {held}; {advice}")


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Say which file it is that Arrow cannot read."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise unreadable(name, error) from None


def unreadable(name: str, error: Exception) -> InputError:
    """The error for a file that Arrow cannot read."""
    return InputError(f"cannot read {name}: {next(iter(str(error).splitlines()), type(error).__name__)}")


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
    vague = "its lines cannot be split into columns; look for an unclosed quote or mixed line ends"
    return InputError(f"cannot read {path.name}: {_csv_fault(path, delimiter, len(names)) or vague}")


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
    refuse_twice([name for name in names if name], path.name)
    refuse_alike(names, path.name)
    options = {
        "delim": _quoted(delimiter),
        "nullstr": f"[{', '.join(_quoted(blank + word) for word in MISSING_IN_CSV for blank in ('', ' '))}]",
    }
    forced = [name for name in names if name in as_text]
    if forced:
        options["types"] = "{" + ", ".join(f"{_quoted(name)}: 'VARCHAR'" for name in forced) + "}"
    chosen = ", ".join(f"{name} = {value}" for name, value in options.items())
    return f"read_csv($path, {DIALECT}, {chosen})", {"path": plain}


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
    """The fault of a CSV file that could not be read: its encoding, or a line of another length."""
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
    return list(parquet_schema(path).names) if is_parquet(path) else _csv_header(path)[1]


def stored_index(schema: "pa.Schema") -> list[str]:
    """The columns in which pandas stored an index."""
    named = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name in named or STORED_INDEX.fullmatch(name)]


def own_columns(schema: "pa.Schema") -> list[str]:
    """The columns but for an index that pandas stored."""
    stored = stored_index(schema)
    return [name for name in schema.names if name and name not in stored]


def refuse_twice(columns: Sequence[str], source: str) -> None:
    """Refuse columns of the same name."""
    for name, times in Counter(columns).items():
        if times > 1:
            raise InputError(f"{source} has more than one column named {name!r}")


def refuse_alike(columns: Sequence[str], source: str) -> None:
    """Refuse columns that DuckDB would take for one."""
    alike = {name.casefold(): name for name in columns}
    for name in columns:
        other = alike[name.casefold()]
        if other != name:
            raise InputError(f"the columns {name!r} and {other!r} of {source} differ only in case; rename one")


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The columns of a CSV or Parquet file (of many: of the first one that has rows), without reading its rows."""
    if not is_many(path):
        return file_columns(Path(path))
    first = files_with_rows(path)[0]
    found = own_columns(first.schema)
    refuse_alike(found, first.name)
    return found


def files_with_rows(path: str | os.PathLike[str]) -> list[ParquetFile]:
    """The files of a folder or pattern, without those that hold no rows."""
    found = [file for file in describe(find_parquet(path)) if file.rows]
    if not found:
        raise InputError(f"{str(path)!r} holds no rows")
    return found


def bytes_in_memory(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> int:
    """About how much memory a file would take when read: an estimate from its size and shape."""
    file = Path(path)
    check_file(file)
    if is_parquet(file):
        import pyarrow.parquet as pq

        with reading(file.name):
            described = pq.read_metadata(file)
        return int(described.num_rows * 24 * len(described.schema if columns is None else columns))
    return file.stat().st_size * (12 if file.name.lower().endswith(".gz") else 2)
