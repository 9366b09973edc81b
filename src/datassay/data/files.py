"""Many Parquet files as one data set: which they are, in which order, and what each one holds.

A folder stands for all Parquet files in it and below, a pattern for those that it matches; files are taken in the order
of their names, so that the same data set is always the same sequence of rows.
"""

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from datassay._checks import listed
from datassay._errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


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
    if place.is_dir():
        named = [file for file in place.rglob("*") if _counts(file, place)]
        _refuse_dangling(named, place)
        found = sorted(file for file in named if file.is_file())
        if not found:
            raise InputError(f"the folder {str(path)!r} holds no Parquet files (named *.parquet or *.pq)")
        return found
    if place.exists():
        if not is_parquet(place):
            raise InputError(f"{place.name} is no Parquet file by its name, which must end in .parquet or .pq")
        return [place]
    if glob.has_magic(str(path)):
        matched = [Path(one) for one in glob.glob(str(path), recursive=True)]
        _refuse_dangling(matched, None)
        found = sorted(file for file in matched if file.is_file())
        if not found:
            raise InputError(f"no file matches {str(path)!r}")
        other = [file for file in found if not is_parquet(file)]
        if other:
            raise InputError(f"{str(path)!r} matches {other[0].name}, which is no Parquet file; narrow the pattern")
        return found
    raise InputError(f"there is no file or folder {str(path)!r}")


def _counts(file: Path, folder: Path) -> bool:
    """Whether a file in a folder has the name of its data files: not what other tools keep there beside them."""
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
        twice = [column for column in schema.names if schema.names.count(column) > 1]
        if twice:
            raise InputError(f"{name} has more than one column named {twice[0]!r}")
        found.append(ParquetFile(file, name, rows, schema, state))
    return tuple(found)


def refuse_other_columns(
    file: ParquetFile, first: ParquetFile, wanted: Sequence[str], more: Sequence[str], what: str
) -> None:
    """Refuse a file that lacks a column of the first one, or has more than that."""
    lacking = [name for name in wanted if name not in file.schema.names]
    if lacking:
        raise InputError(f"{file.name} lacks the column {listed(lacking)} that {first.name} has")
    if more:
        raise InputError(f"{file.name} has the column {listed(more)} that {first.name} lacks; name the {what}")


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
    said = str(error).splitlines()
    return InputError(f"cannot read {name}: {said[0] if said else type(error).__name__}")
