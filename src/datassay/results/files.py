"""Files of results: plain Parquet or JSON, never pickles, and each whole or not at all."""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError, UnavailableError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise at once, before any work, if a result could not be written to ``path``."""
    check_file(path, "write", ".parquet", ".json", ".csv")


def check_file(path: str | os.PathLike[str], do: str, *endings: str) -> None:
    """Raise if a file of another ending is named, or the file could not be written."""
    if Path(path).suffix.lower() not in endings:
        named = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise UsageError(f"cannot {do} {str(path)!r}: the name must end in {named}")
    check_folder(Path(path))


def check_folder(target: Path) -> None:
    """Raise if there is no folder to write ``target`` in, or if it is a folder itself."""
    if not target.parent.is_dir():
        raise UsageError(f"the folder {str(target.parent)!r} does not exist; nothing was written")
    if target.is_dir():
        raise UsageError(f"{str(target)!r} is a folder; name a file to write")
    if not os.access(target.parent, os.W_OK):
        raise UnavailableError(f"the folder {str(target.parent)!r} cannot be written to")


def check_new_folder(path: str | os.PathLike[str]) -> None:
    """Raise at once, before any work, if a new folder of files could not be made at ``path``."""
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{str(path)!r} is not an empty folder; nothing was written")
    parent = target.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"the folder {str(target.parent)!r} does not exist; nothing was written")
    if not os.access(parent, os.W_OK):
        raise UnavailableError(f"the folder {str(parent)!r} cannot be written to")


def usual_mode(path: Path, mode: int) -> None:
    """Give what was made as a private temporary the permissions that it would have had without the detour."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(mode & ~mask)


def write_whole(path: str | os.PathLike[str], write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it there: whole, or not at all."""
    return write_together({Path(path): write})[0]


def write_together(writers: Mapping[Path, Callable[[Path], object]]) -> list[Path]:
    """Write several files that belong together: each whole, and none of them before all are written."""
    temporaries: list[Path] = []
    try:
        for target, write in writers.items():
            check_folder(target)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            temporaries.append(Path(name))
            os.close(handle)
            write(temporaries[-1])
            usual_mode(temporaries[-1], 0o666)
        for temporary, target in zip(temporaries, writers, strict=True):
            temporary.replace(target)
    finally:
        for temporary in temporaries:
            temporary.unlink(missing_ok=True)
    return list(writers)


def write_folder(path: str | os.PathLike[str], write: Callable[[Path], None]) -> Path:
    """Let ``write`` fill a temporary folder beside ``path``, then move it there: whole, or not at all."""
    target = Path(path)
    check_new_folder(target)
    above, prefix = target.absolute().parent, f".{target.name}."
    with tempfile.TemporaryDirectory(dir=above, prefix=prefix, ignore_cleanup_errors=True) as temporary:
        write(Path(temporary))
        usual_mode(Path(temporary), 0o777)
        Path(temporary).replace(target)
    return target


def _plain_list(column: NDArray[np.generic]) -> list[object]:
    """A list that JSON can hold: what is not a number becomes null."""
    return [None if value != value else value for value in column.tolist()]


def _arrow(columns: Mapping[str, NDArray[np.generic]]) -> "pa.Table":
    import pyarrow as pa

    return pa.table({n: pa.array(c.tolist() if c.dtype.kind in "UO" else c) for n, c in columns.items()})


def save_columns(
    path: str | os.PathLike[str], header: Mapping[str, object], columns: Mapping[str, NDArray[np.generic]]
) -> Path:
    """Write a result's header and columns as Parquet, JSON or (columns alone) CSV."""
    check_output(path)
    return write_whole(path, columns_writer(Path(path).suffix.lower(), header, columns))


def columns_writer(
    suffix: str, header: Mapping[str, object], columns: Mapping[str, NDArray[np.generic]]
) -> Callable[[Path], None]:
    """What writes a result to a file, in the form that the ending stands for."""
    text = json.dumps(dict(header), allow_nan=False)

    def write(file: Path) -> None:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            table = _arrow(columns).replace_schema_metadata({b"datassay": text.encode()})
            pq.write_table(table, file, compression="zstd")
        elif suffix == ".json":
            kinds = {name: column.dtype.kind for name, column in columns.items()}
            body = {name: _plain_list(column) for name, column in columns.items()}
            content = {"datassay": dict(header), "kinds": kinds, "columns": body}
            file.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        else:
            import pyarrow.csv as pc

            pc.write_csv(_arrow(columns), file)

    return write


_JSON_TYPES = {"f": np.float64, "i": np.int64, "u": np.uint64, "b": np.bool_}


def load_columns(path: str | os.PathLike[str]) -> tuple[dict[str, object], dict[str, NDArray[np.generic]]]:
    """The header and the columns of a saved result."""
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    if not os.access(file, os.R_OK):
        raise InputError(f"{str(path)!r} cannot be read: permission denied")
    foreign = InputError(f"{str(path)!r} is not a result saved by datassay")
    if file.suffix.lower() == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(file)
        except pa.ArrowInvalid:
            raise foreign from None
        metadata = table.schema.metadata or {}
        if b"datassay" not in metadata:
            raise foreign
        columns = {
            name: np.array(table[name].to_pylist()) if pa.types.is_string(table[name].type) else table[name].to_numpy()
            for name in table.column_names
        }
        return json.loads(metadata[b"datassay"]), columns
    if file.suffix.lower() == ".json":
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            head, kinds, saved = content.pop("datassay"), content.pop("kinds", {}), content.pop("columns", {})
            columns = {name: np.array(one, dtype=_JSON_TYPES.get(kinds[name])) for name, one in saved.items()}
            header = content | head  # designs of 0.1.0 are kept beside their head
        except (ValueError, KeyError, TypeError, AttributeError):
            raise foreign from None
        return header, columns
    raise InputError(f"cannot read {str(path)!r}: results are kept in .parquet or .json files")
