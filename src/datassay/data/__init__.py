"""Data: a table comes in; typed columns, row ids, encoding, named data sets and splits."""

from datassay.data.aliases import ArrayLike, Ids, Labels, PathLike, Points, TableLike
from datassay.data.datasets import FOLDER_VARIABLE, DatasetInfo, dataset_file, list_datasets, load_dataset
from datassay.data.encoding import Encoder, fit_encoder
from datassay.data.files import find_parquet, is_many, would_be_read
from datassay.data.inputs import FittedOn, Inputs, as_labels, prepare
from datassay.data.partitions import is_dask
from datassay.data.reading import (
    as_ids,
    as_table,
    bytes_in_memory,
    column_names,
    frame_columns,
    is_missing,
    read_distinct,
    read_table,
)
from datassay.data.records import ACCEPTED, Records, open_records, prepare_records, read_ahead
from datassay.data.simulate import census, truth, voters
from datassay.data.table import Column, Table, missing_column

__all__ = [
    "ACCEPTED",
    "ArrayLike",
    "Ids",
    "Labels",
    "PathLike",
    "Points",
    "TableLike",
    "FOLDER_VARIABLE",
    "Column",
    "DatasetInfo",
    "Encoder",
    "FittedOn",
    "Inputs",
    "Records",
    "Table",
    "as_ids",
    "as_labels",
    "as_table",
    "bytes_in_memory",
    "census",
    "dataset_file",
    "column_names",
    "find_parquet",
    "fit_encoder",
    "frame_columns",
    "is_dask",
    "is_many",
    "is_missing",
    "list_datasets",
    "load_dataset",
    "missing_column",
    "open_records",
    "prepare",
    "prepare_records",
    "read_ahead",
    "read_distinct",
    "read_table",
    "truth",
    "voters",
    "would_be_read",
]
