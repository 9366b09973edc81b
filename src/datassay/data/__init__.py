"""Data: a table comes in; typed columns, row ids, encoding, named data sets and splits."""

from datassay.data.datasets import DatasetInfo, list_datasets, load_dataset
from datassay.data.encoding import Encoder, fit_encoder
from datassay.data.inputs import FittedOn, Inputs, as_labels, prepare
from datassay.data.reading import column_names, read_table
from datassay.data.simulate import census, truth, voters
from datassay.data.table import Column, Table

__all__ = [
    "Column",
    "DatasetInfo",
    "Encoder",
    "FittedOn",
    "Inputs",
    "Table",
    "as_labels",
    "census",
    "column_names",
    "fit_encoder",
    "list_datasets",
    "load_dataset",
    "prepare",
    "read_table",
    "truth",
    "voters",
]
