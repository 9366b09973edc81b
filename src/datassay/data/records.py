"""Training records that do not fit into memory: Parquet files read in blocks, in a fixed order.

What is known of them without reading the features is kept (files, columns, classes); the features pass by, a block at a
time, the next one being read while one is worked on. Blocks do not depend on how files are cut into row groups.
"""

import hashlib
import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import RecordScaling
from datassay._errors import InputError, UsageError
from datassay.data.files import (
    ParquetFile,
    describe,
    find_parquet,
    reading,
    refuse_different,
    refuse_other_columns,
    stored_index,
    unreadable,
)
from datassay.data.kinds import TEXT, is_one_of, is_text, value_type
from datassay.data.labels import Codes, as_ids, as_labels
from datassay.data.table import missing_column, usable_scale

if TYPE_CHECKING:
    import pyarrow as pa

Points = NDArray[np.float32] | NDArray[np.float64]

BATCH: Final = 2**16  # rows read at a time where only a column or two are read
FITTED: Final = 2**14  # rows whose mean is taken before it joins the others': fixes the order of summation
FEW: Final = 20  # rows, of which nothing is concluded from numbers that differ
BUFFER: Final = 2**20  # bytes of a column fetched at a time, so that even one huge row group passes by in pieces
LABELS: Final = {"strings": TEXT, "Booleans": ("boolean",), "whole numbers": ("integer", "floating")}
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive records: the first one's number, their features (by column) and their labels' codes."""

    start: int
    points: Points
    codes: Codes


@dataclass(frozen=True, eq=False)
class Records:
    """Labelled records in Parquet files, to be read in blocks; make one with :func:`open_records`.

    Attributes
    ----------
    files
        The files, in order, with their rows and schemas.
    label, features, id
        The column to predict, those that describe a record, and the one that identifies it (None: their numbers do).
    classes, class_sizes
        The distinct labels, sorted, and how many records have each.
    dtype
        float32 if every feature is float32 in every file, else float64.
    scale, centres, widths
        How features are scaled: ``(x − centre) / width``, or as they are.
    notes
        What was noticed, one line each.
    """

    files: tuple[ParquetFile, ...]
    label: str
    features: tuple[str, ...]
    id: str | None
    classes: NDArray[np.generic]
    class_sizes: NDArray[np.int64]
    dtype: np.dtype[np.float32] | np.dtype[np.float64]
    scale: RecordScaling = "none"
    centres: NDArray[np.float64] | None = None
    widths: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(file.rows for file in self.files)

    def __repr__(self) -> str:
        many = f"{len(self.files):,} files" if len(self.files) > 1 else self.files[0].name
        return f"Records({many}: {len(self):,} rows, {len(self.features)} features, label {self.label!r})"

    def where(self, row: int) -> tuple[str, int]:
        """The file that holds this record, and its row there, counting from 0."""
        for file in self.files:
            if row < file.rows:
                return file.name, row
            row -= file.rows
        raise UsageError(f"there is no record {row + len(self)} of {len(self)}, counting from 0")

    def blocks(self, rows: int = BATCH) -> Iterator[Block]:
        """All records in order, ``rows`` at a time, scaled as asked for; codes are those of ``classes``."""
        rows = _checks.integer("rows", rows, at_least=1)
        labels = self._codes_by_batch(self.classes)
        held: Codes = np.empty(0, np.uint8)
        for start, points in self.features_by_block(rows):
            while len(held) < len(points):
                more = next(labels)
                held = np.concatenate([held.astype(more.dtype), more])
            yield Block(start, points, held[: len(points)])
            held = held[len(points) :]

    def features_by_block(self, rows: int, first: int = 0) -> Iterator[tuple[int, Points]]:
        """The features alone, ``rows`` records at a time from ``first`` on, with the number of the first of each.

        The next block is read while one is used.
        """
        return read_ahead(self._in_blocks(rows, first))

    def content(self) -> str:
        """A digest of all that the files hold, in their order, and of how it is used: as long as it takes to read."""
        found = hashlib.sha256(repr((self.features, self.label, self.dtype.str, self.scale)).encode())
        for file in self.files:
            try:
                with file.path.open("rb") as opened:
                    found.update(hashlib.file_digest(opened, "sha256").digest())
            except OSError as error:
                raise unreadable(file.name, error) from None
        return found.hexdigest()

    def read(self) -> tuple[Points, NDArray[np.generic]]:
        """All features and labels at once, in memory."""
        points: Points = np.empty((len(self), len(self.features)), self.dtype)
        for start, block in self.features_by_block(BATCH):
            points[start : start + len(block)] = block
        return points, self.classes[self.codes(self.classes)]

    def codes(self, classes: NDArray[np.generic]) -> Codes:
        """The label of every record as its place among ``classes``."""
        kind = np.uint8 if len(classes) <= 256 else np.int32
        found: Codes = np.empty(len(self), kind)  # type: ignore[assignment]
        at = 0
        for batch in self._codes_by_batch(classes):
            found[at : at + len(batch)] = batch
            at += len(batch)
        return found

    def ids(self) -> NDArray[np.generic]:
        """The id of every record: the id column, or 0, 1, 2, …"""
        if self.id is None:
            return np.arange(len(self))
        parts: list[NDArray[np.generic]] = []
        for file, row, batch in _batches(self.files, (self.id,), BATCH):
            column = batch.column(0)
            if is_one_of(column.type, "nested"):
                raise InputError(
                    f"the id {self.id!r} of {file.name} holds the type {column.type}; ids are one value each"
                )
            _refuse_missing(column, f"the id {self.id!r}", file, row)
            parts.append(np.asarray(column.to_numpy(zero_copy_only=False)))
        kinds = {part.dtype.kind for part in parts}
        if len(kinds) > 1:
            if kinds != {"i", "u"}:
                raise InputError(f"the id {self.id!r} is not of the same type in all files")
            if max(int(part.max()) for part in parts) > np.iinfo(np.int64).max:
                raise InputError(f"the id {self.id!r} holds signed numbers in some files and larger ones in others")
            parts = [part.astype(np.int64) for part in parts]  # together they would become floats
        whole = np.concatenate(parts)
        return as_ids(whole.astype(np.str_) if whole.dtype.kind == "O" else whole, f"the id {self.id!r}")

    def _codes_by_batch(self, classes: NDArray[np.generic]) -> Iterator[Codes]:
        place = {name: at for at, name in enumerate(classes.tolist())}
        for file, row, batch in _batches(self.files, (self.label,), BATCH):
            names, codes = _label_values(batch.column(0), self.label, file, row)
            if not set(names) <= set(place):
                raise _changed(file)
            table = np.array([place[name] for name in names], np.uint8 if len(classes) <= 256 else np.int32)
            yield table[codes]

    def _in_blocks(self, rows: int, first: int) -> Iterator[tuple[int, Points]]:
        """Blocks of exactly ``rows`` records (the last: what is left), over row groups and files; scaled."""
        n = len(self)
        start, at = first, 0
        points: Points = np.empty((len(self.features), min(rows, n - first)), self.dtype)
        for file, row, batch in _batches(self.files, self.features, min(rows, BATCH), first):
            taken = 0
            while taken < batch.num_rows:
                more = min(points.shape[1] - at, batch.num_rows - taken)
                part = batch.slice(taken, more)
                for j, name in enumerate(self.features):
                    _fill(part.column(j), points[j, at : at + more], name, file, row + taken)
                taken += more
                at += more
                if at == points.shape[1]:
                    if self.centres is not None and self.widths is not None:
                        for j, numbers in enumerate(points):
                            numbers[:] = scaled(numbers, self.centres[j], self.widths[j])
                    yield start, points.T
                    start, at = start + at, 0
                    points = np.empty((len(self.features), min(rows, n - start)), self.dtype)


def scaled(numbers: NDArray[np.generic], centre: object, width: object) -> NDArray[np.float64]:
    """(x − centre) / width, in double precision."""
    return np.asarray((numbers.astype(np.float64) - centre) / width)  # type: ignore[operator]


def read_ahead(source: Iterator[T]) -> Iterator[T]:
    """The items of ``source``, the next one being made in a thread while one is used."""
    end = object()
    pool = ThreadPoolExecutor(1, thread_name_prefix="datassay-read")
    try:
        coming = pool.submit(next, source, end)
        while True:
            item = coming.result()
            if item is end:
                return
            coming = pool.submit(next, source, end)
            yield item  # type: ignore[misc]
            del item
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if isinstance(source, Generator):
            source.close()


def _batches(
    files: Sequence[ParquetFile], columns: Sequence[str], rows: int, first: int = 0
) -> Iterator[tuple[ParquetFile, int, "pa.RecordBatch"]]:
    """The rows of all files in order, from ``first`` on: the file, the row that a batch begins with, and the batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in files:
        if file.rows <= first:  # also one without rows
            first -= file.rows
            continue
        row = 0
        try:
            if not file.is_as_it_was():
                raise _changed(file)
            with pq.ParquetFile(file.path, pre_buffer=False, buffer_size=BUFFER) as opened:
                groups = range(opened.num_row_groups)
                while groups and row + opened.metadata.row_group(groups[0]).num_rows <= first:
                    row += opened.metadata.row_group(groups[0]).num_rows
                    groups = groups[1:]
                for batch in opened.iter_batches(rows, list(groups), list(columns), use_threads=False):
                    past = min(max(0, first - row), batch.num_rows)
                    if past < batch.num_rows:  # in this file the columns may stand in another order
                        yield file, row + past, batch.slice(past).select(list(columns))
                    row += batch.num_rows
                first = 0
            if not file.is_as_it_was():  # written to while it was read
                raise _changed(file)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise unreadable(file.name, error) from None


def _changed(file: ParquetFile) -> InputError:
    return InputError(f"{file.name} is not what it was when it was opened; open the records again")


def _refuse_missing(column: "pa.Array", what: str, file: ParquetFile, row: int) -> None:
    if column.null_count:
        first = column.is_null().to_numpy(zero_copy_only=False).argmax()
        raise InputError(f"{what} of {file.name} is missing at row {row + int(first)} (counting from 0)")


def _fill(column: "pa.Array", out: Points, name: str, file: ParquetFile, row: int) -> None:
    """Write a column's numbers, all present and finite."""
    _refuse_missing(column, f"column {name!r}", file, row)
    if is_one_of(column.type, "boolean", "decimal"):
        column = column.cast("float64" if is_one_of(column.type, "decimal") else "uint8")
    numbers = column.to_numpy()
    if numbers.dtype.itemsize == 8:
        _checks.exact_as_float(f"column {name!r} of {file.name}", numbers)
    out[:] = numbers
    if not (np.isfinite(out.min()) and np.isfinite(out.max())):
        first = int((~np.isfinite(out)).argmax())
        raise InputError(
            f"column {name!r} of {file.name} has the value {out[first]} at row {row + first} (counting from 0); every "
            "feature must be finite"
        )


def _label_values(
    column: "pa.Array", label: str, file: ParquetFile, row: int
) -> tuple[list[object], NDArray[np.integer]]:
    """The distinct labels of a batch as plain values, and which of them each row has."""
    _refuse_missing(column, f"the label {label!r}", file, row)
    encoded = column.dictionary_encode()
    codes: NDArray[np.integer] = encoded.indices.to_numpy()
    has = np.bincount(codes, minlength=len(encoded.dictionary)) > 0  # categories bring some that no row has
    values = encoded.dictionary.filter(has).to_pylist()
    codes = (np.cumsum(has) - 1)[codes]
    for at, value in enumerate(values):
        fault = ""
        if isinstance(value, str) and value.endswith("\0"):
            fault = "a label must not end in a null character"
        elif isinstance(value, float) and not (value.is_integer() and abs(value) <= 2**53):
            fault = "labels are classes: strings or whole numbers"
        elif isinstance(value, float):
            values[at] = int(value)
        if fault:
            place = f"at row {row + int((codes == at).argmax())} (counting from 0)"
            what = f"missing {place}" if value != value else f"{value!r} {place}; {fault}"
            raise InputError(f"the label {label!r} of {file.name} is {what}")
    return values, codes


def open_records(
    path: str | os.PathLike[str],
    label: str,
    features: Sequence[str] | None = None,
    id: str | None = None,
    *,
    scale: RecordScaling = "none",
) -> Records:
    """Training records that need not fit into memory: a Parquet file, a folder, or a pattern like ``*.parquet``.

    Give what comes back as ``X`` (and no ``y``) to :func:`tknn_shapley`, :func:`knn_banzhaf`, :func:`knn_loo`,
    :func:`waka`, or :func:`knn_shapley` with a ``tolerance``, with validation data in memory. The values have the same
    bits as if all records were in one array.

    Parameters
    ----------
    path
        Files are taken in the order of their names, a folder's with those below it. They must have the same columns,
        in any order; files without rows are allowed.
    label
        The column to predict: strings, whole numbers or Booleans, none missing.
    features
        The columns that describe a record: numbers, none missing or infinite. All others, if left out.
    id
        The column that identifies a record, distinct in all files together. Without it records are numbered from 0.
    scale
        ``"none"`` takes numbers as they are. ``"standard"`` brings every feature to mean 0 and deviation 1, and
        validation data likewise: one more pass over the files, at once.

    Examples
    --------
    >>> import datassay as da, pandas as pd, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for part in range(3):
    ...     frame = pd.DataFrame({"x": [part, part + 0.5], "y": ["a", "b"]})
    ...     frame.to_parquet(folder / f"part-{part}.parquet")
    >>> records = da.open_records(folder, "y")
    >>> len(records), records.features, records.classes.tolist()
    (6, ('x',), ['a', 'b'])
    >>> da.knn_banzhaf(records, X_val=[[0.1]], y_val=["a"], k=1).values.tolist()
    [0.6875, -0.3125, 0.1875, -0.0625, 0.0625, 0.0]
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"open_records takes the path of Parquet files, got {type(path).__name__}")
    _checks.choice("scale", scale, get_args(RecordScaling))
    _checks.not_one_string("features", features)
    if label == id:
        raise UsageError(f"label and id are both {label!r}; they must be different columns")
    files = describe(find_parquet(path))
    filled = [file for file in files if file.rows]
    if not filled:
        raise InputError(f"{str(path)!r} holds no rows; there is nothing to value")
    notes: list[str] = []
    chosen = _features(filled[0], label, id, features, notes)
    for file in filled:
        _same_columns(file, filled[0], chosen, label, id, given=features is not None)
    classes, sizes = _classes(filled, label)
    notes += _notes_on_ids(filled, chosen)
    types = [file.schema.field(name).type for file in filled for name in chosen]
    dtype = np.dtype(np.float32) if all(is_one_of(kind, "float32") for kind in types) else np.dtype(np.float64)
    found = Records(files, label, chosen, id, classes, sizes, dtype, notes=tuple(notes))
    return found if scale == "none" else _standardised(found)


def _notes_on_ids(files: Sequence[ParquetFile], features: Sequence[str]) -> list[str]:
    """Features that may identify rows, by what the files' footers say of row groups: no row is read for it."""
    import pyarrow.parquet as pq

    whole = [name for name in features if all(is_one_of(f.schema.field(name).type, "integer") for f in files)]
    ranges: dict[str, list[tuple[int, int, int]]] = {name: [] for name in whole}  # smallest, largest, rows
    for file in files if sum(file.rows for file in files) > FEW and ranges else ():
        with reading(file.name):
            footer = pq.read_metadata(file.path)
        at = {footer.schema.column(j).path: j for j in range(footer.num_columns)}
        for group in map(footer.row_group, range(footer.num_row_groups)):
            for name in list(ranges) if group.num_rows else ():
                known = group.column(at[name]).statistics if name in at else None
                if known is None or not known.has_min_max or not isinstance(known.min, int):
                    del ranges[name]
                else:
                    ranges[name].append((known.min, known.max, group.num_rows))
    notes = []
    for name, found in ranges.items():
        low, high = min((one[0] for one in found), default=0), max((one[1] for one in found), default=0)
        rises = len(found) > 1 and all(a[1] < b[0] for a, b in pairwise(found))
        if found and high - low + 1 == sum(rows for *_, rows in found):
            description = f"runs from {low} to {high}, as many whole numbers as there are records,"
        elif rises and all(end - start + 1 >= rows for start, end, rows in found):
            description = "rises from each row group to the next, and may hold a different whole number in every row,"
        else:
            continue
        notes.append(f"column {name!r} {description} and is used as a feature; if it identifies rows, name it as id")
    return notes


def _features(
    file: ParquetFile, label: str, id: str | None, features: Sequence[str] | None, notes: list[str]
) -> tuple[str, ...]:
    present = file.schema.names
    for name in (label, *([] if id is None else [id]), *(features or ())):
        if name not in present:
            raise InputError(f"{file.name}: {missing_column(name, present)}")
    index = stored_index(file.schema) if features is None else []
    if index:
        notes.append(f"the index that pandas stored ({_checks.listed(index)}) is set aside")
    chosen = tuple(name for name in present if name not in {label, id, *index}) if features is None else tuple(features)
    for name in chosen:
        if chosen.count(name) > 1:
            raise UsageError(f"features names {name!r} more than once")
        if name in (label, id):
            what = "label" if name == label else "id"
            raise UsageError(f"{name!r} is the {what} and cannot be a feature as well")
    if not chosen:
        raise InputError(f"{file.name} has no features beside the label; distances need at least one")
    return chosen


def _same_columns(
    file: ParquetFile, first: ParquetFile, features: Sequence[str], label: str, id: str | None, *, given: bool
) -> None:
    """Refuse a file that lacks a column, has one that the others lack, or holds in one what is no number."""
    wanted = (*features, label, *([] if id is None else [id]))
    more = [name for name in file.schema.names if name not in {*wanted, *stored_index(file.schema)}]
    refuse_other_columns(file, first, wanted, [] if given else more, "features to use")
    for name in features:
        kind = file.schema.field(name).type
        if not is_one_of(kind, "integer", "floating", "boolean", "decimal"):
            held = "text" if is_text(kind) else f"the type {kind}"
            raise InputError(
                f"column {name!r} of {file.name} holds {held}, and records read in blocks must be numbers: encode it "
                "in the files, or name the features to use without it"
            )


def _label_kind(file: ParquetFile, label: str) -> str:
    kind = value_type(file.schema.field(label).type)
    for what, types in LABELS.items():
        if is_one_of(kind, *types):
            return what
    raise InputError(
        f"the label {label!r} of {file.name} has the type {kind}; labels are strings, whole numbers or Booleans"
    )


def _classes(files: Sequence[ParquetFile], label: str) -> tuple[NDArray[np.generic], NDArray[np.int64]]:
    """The distinct labels, sorted, and how many records have each: one pass over the label column."""
    kinds = [(_label_kind(file, label), file.name) for file in files]
    refuse_different(kinds, f"the label {label!r}", "make them all alike")
    counts: dict[object, int] = {}
    for file, row, batch in _batches(files, (label,), BATCH):
        names, codes = _label_values(batch.column(0), label, file, row)
        for name, count in zip(names, np.bincount(codes, minlength=len(names)).tolist(), strict=True):
            counts[name] = counts.get(name, 0) + count
    classes = np.unique(as_labels(f"the label {label!r}", list(counts)))
    return classes, np.array([counts[name] for name in classes.tolist()], np.int64)


def _standardised(records: Records) -> Records:
    """The records, to be scaled by means and deviations found in one pass.

    The mean and the squared deviations of every ``FITTED`` consecutive records join those of all before (Chan, Golub &
    LeVeque 1983): stable, and the same however the files are cut.
    """
    d = len(records.features)
    n, mean, squares = 0, np.zeros(d), np.zeros(d)
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    for _, points in records.features_by_block(FITTED):
        some = np.ascontiguousarray(points.T, np.float64)
        m = some.shape[1]
        here = some.mean(axis=1)
        apart = here - mean
        squares += np.square(some - here[:, None]).sum(axis=1) + apart * apart * (n * m / (n + m))
        mean += apart * (m / (n + m))
        n += m
        low, high = np.minimum(low, some.min(axis=1)), np.maximum(high, some.max(axis=1))
    width = np.sqrt(squares / n)
    for j, name in enumerate(records.features):
        mean[j], width[j] = usable_scale(f"column {name!r}", mean[j], width[j], low[j], high[j])
    for array in (mean, width):
        array.setflags(write=False)
    note = f"features are scaled to mean 0 and deviation 1, both of all {n:,} training records"
    return replace(records, scale="standard", centres=mean, widths=width, notes=(*records.notes, note))


ACCEPTED: Final = (
    "records read in blocks (open_records) are taken by tknn_shapley, knn_banzhaf, knn_loo, waka, and knn_shapley with "
    "a tolerance"
)
