"""Names for what public functions accept, so that signatures say it in one word each."""

import os
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike
from typing_extensions import TypeAliasType

if TYPE_CHECKING:
    from dask.dataframe import DataFrame
    from narwhals.typing import IntoDataFrame, IntoSeries

    from datassay.data.records import Records
    from datassay.data.table import Table

PathLike = TypeAliasType("PathLike", str | os.PathLike[str])
"""The path of a file."""

Points = TypeAliasType("Points", "Table | Records | IntoDataFrame | ArrayLike")
"""Features of records: an array, a data frame of numbers, a Table, or Records read in blocks."""

Labels = TypeAliasType("Labels", "IntoSeries | ArrayLike")
"""One label, or number to predict, for every record: words, whole numbers, Booleans."""

Ids = TypeAliasType("Ids", "IntoSeries | ArrayLike")
"""One id for every record."""

RowWeights = TypeAliasType("RowWeights", "str | IntoSeries | ArrayLike")
"""A positive number for every row, or the name of the column that holds it."""

TableLike = TypeAliasType("TableLike", "Table | IntoDataFrame | PathLike")
"""A table: one that was read, a data frame, the path of a file, or the name of a data set."""

DaskFrame = TypeAliasType("DaskFrame", "DataFrame")
"""A data frame in partitions, of Dask."""

__all__ = ["ArrayLike", "DaskFrame", "Ids", "Labels", "PathLike", "Points", "RowWeights", "TableLike"]
