"""The distinct rows of data of any size, counted where they are: by DuckDB on disk, or partition by partition."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datassay import _checks
from datassay._errors import InputError, UnavailableError, UsageError
from datassay._run import documented
from datassay.data import files
from datassay.data.aliases import DaskFrame, PathLike, TableLike
from datassay.data.kinds import is_one_of, rough_kind
from datassay.data.partitions import count_partitions, is_dask
from datassay.data.reading import chosen_columns, names_of, read_table
from datassay.data.table import Table, missing_column

if TYPE_CHECKING:
    import pyarrow as pa


@documented(read_table)
def read_distinct(
    path: PathLike | DaskFrame,
    columns: Sequence[str] | None = None,
    *,
    count: str = "count",
    weight: str | None = None,
    categorical: Sequence[str] = (),
    memory: int = 2**31,
) -> Table:
    """The distinct rows of data of any size, and how often each occurs.

    Ask of its people with that as weight: ``uniqueness_shapley(table, weights="count")``.

    Parameters
    ----------
    path
        A CSV or Parquet file, a folder of Parquet files, a pattern of them such as ``people/*.parquet``, or a Dask data
        frame, each of whose partitions is counted where it is.
    columns
        The columns in which rows differ or not; all if left out.
    count
        What to call the column of counts.
    weight
        A column of positive numbers, to be added up instead of counting rows.
    memory
        Bytes that DuckDB may use to count the rows of files; it keeps on disk what does not fit.

    Returns
    -------
    Table
        One row for each distinct one as it is written, in the order of their values, its count carried along.

    Examples
    --------
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
    chosen = chosen_columns(source.columns, source.name, columns, ())
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
    found: TableLike = (
        count_partitions(path, chosen, weight, count)
        if is_dask(path)
        else _count_files(source, chosen, categories, weight, count, memory)
    )
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

    quoted = ", ".join(files.identifier(name) for name in chosen)
    weighed = "1.0" if weight is None else f"{files.identifier(weight)}::DOUBLE"
    total = "count(*)" if weight is None else f"sum({weighed})"
    usable = "usable"
    while usable in {name.casefold() for name in (*chosen, count)}:
        usable += "_"
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = '{memory // 2**20}MiB'")
        connection.execute("SET temp_directory = $folder", {"folder": folder})
        connection.execute("SET preserve_insertion_order = false")
        if weight is not None:  # sums of fractions depend on their order
            connection.execute("SET threads = 1")
        relation, parameters = source.relation(categories)
        query = (
            f"SELECT {quoted}, {total} AS {files.identifier(count)}, "
            f"bool_and(coalesce(isfinite({weighed}) AND {weighed} > 0, false)) AS {usable} "
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
    """A file, many Parquet files, or a Dask data frame to be counted; its columns, and those that are categories."""

    name: str
    columns: Sequence[str]
    categories: Sequence[str]
    file: Path | None = None
    parts: Sequence[files.ParquetFile] = ()

    def relation(self, categories: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """The table function by which DuckDB reads it, and its parameters."""
        if self.file is not None:
            return files.relation(self.file, categories)
        plain = [files.plain_pattern(file.path) for file in self.parts]
        return "read_parquet($paths, union_by_name = true, hive_partitioning = false)", {"paths": plain}

    def unreadable(self, error: Exception) -> InputError:
        """The error of a file that could not be read."""
        return files.unreadable_file(self.file, error) if self.file is not None else files.unreadable(self.name, error)

    def check(self, columns: Sequence[str], *, everything: bool) -> None:
        """Refuse files that lack a column, have others than the first one, or hold something else in one."""
        for file in self.parts:
            more = [name for name in files.own_columns(file.schema) if name not in self.columns]
            files.refuse_other_columns(file, self.parts[0], columns, more if everything else [], "columns")
        for name in columns:
            kinds = [(rough_kind(file.schema.field(name).type), file.name) for file in self.parts]
            files.refuse_different(kinds, f"column {name!r} of {self.name}", "make them alike")


def _counted_source(given: Any) -> _Counted:
    if is_dask(given):
        names = names_of(given)
        held = [name for name in names if str(given.dtypes[name]) == "category"]
        return _Counted("the data frame", names, held)
    if not files.is_many(given):
        file = Path(given)
        files.check_file(file)
        if files.is_parquet(file):
            return _Counted(file.name, *_columns_of([files.parquet_schema(file)], file.name), file)
        return _Counted(file.name, [name for name in files.file_columns(file) if name], [], file)
    found = files.files_with_rows(given)
    return _Counted(str(given), *_columns_of([file.schema for file in found], found[0].name), None, found)


def _columns_of(schemas: "Sequence[pa.Schema]", name: str) -> tuple[list[str], list[str]]:
    """The columns of the first schema but for a stored index, and those that any of them says are categories."""
    columns = files.own_columns(schemas[0])
    files.refuse_alike(columns, name)
    fields = [field for schema in schemas for field in schema]
    categories = {field.name for field in fields if is_one_of(field.type, "dictionary")}
    return columns, [name for name in columns if name in categories]
