"""What every result can do because it is one: behave as an array, be equal, be saved and loaded, show itself."""

import copy
import pickle
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

import datassay as da
from datassay.results import Result


@pytest.fixture
def values():
    return da.Values(np.array([3.0, -1.0, 2.0]), np.array(["a", "b", "c"]), "knn_shapley", {"k": 5})


def test_one_number_a_record_behaves_as_an_array(values):
    assert np.asarray(values).tolist() == [3.0, -1.0, 2.0]
    assert np.argsort(values).tolist() == [1, 2, 0]
    assert len(values) == 3
    assert list(values) == [3.0, -1.0, 2.0]
    assert values[1] == -1.0
    assert values[np.array([True, False, True])].tolist() == [3.0, 2.0]
    assert np.array(values, dtype=np.float32).dtype == np.float32


def test_values_fill_a_column_of_a_frame(values):
    frame = pd.DataFrame({"x": [1, 2, 3]})
    frame["value"] = values
    assert frame["value"].tolist() == [3.0, -1.0, 2.0]
    assert pl.Series("value", values).to_list() == [3.0, -1.0, 2.0]


def test_what_is_seen_as_an_array_cannot_be_written_to(values):
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(values)[0] = 1
    np.array(values)[0] = 1  # a copy can
    assert values[0] == 3.0


def test_results_are_equal_if_all_of_their_fields_are(values):
    again = da.Values(np.array([3.0, -1.0, 2.0]), np.array(["a", "b", "c"]), "knn_shapley", {"k": 5})
    assert values == again
    assert hash(values) == hash(again)
    assert values != da.Values(values.values, values.ids, "knn_shapley", {"k": 4})
    assert values != da.Values(values.values + 1, values.ids, "knn_shapley", {"k": 5})
    assert values != "values"
    holes = da.Values(np.array([np.nan]), np.array([0]), "knn_shapley")
    assert holes == da.Values(np.array([np.nan]), np.array([0]), "knn_shapley")


def test_copies_are_equal_and_as_unchangeable(values):
    for other in (copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
        assert other == values
        assert not other.values.flags.writeable


def test_columns_of_another_length_are_refused(values):
    with pytest.raises(da.InputError, match="labels must hold one entry for each of the 3 records"):
        da.Values(values.values, values.ids, "m", labels=np.array(["x"]))


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_a_kind_is_loaded_as_itself_and_refused_as_another(values, tmp_path, suffix):
    file = values.save(tmp_path / f"values.{suffix}")
    assert da.load_result(file) == values
    assert da.Values.load(file) == values
    with pytest.raises(da.InputError, match="which is no Estimate"):
        da.Estimate.load(file)


def test_a_notebook_shows_the_first_rows_as_a_table_and_nothing_as_markup():
    ids = np.array(["<b>", *map(str, range(20))])
    page = da.Values(np.arange(21.0), ids, "m")._repr_html_()
    assert page.count("<tr>") == 11
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "11 more rows" in page


@dataclass(frozen=True, eq=False)
class Everything(Result):
    """A kind with a field of every type that a header can hold."""

    COLUMNS: ClassVar = {"id": "ids", "score": "scores"}

    ids: NDArray[np.generic]
    number: float
    count: int
    word: str
    pairs: tuple[tuple[str, int], ...]
    matrix: NDArray[np.float64]
    tracks: dict[str, NDArray[np.float64]]
    guarantee: da.Guarantee | None = None
    scores: NDArray[np.int64] | None = None
    live: object = field(default=None, compare=False)


@pytest.mark.parametrize("scores", [None, np.array([1, 2])])
def test_what_a_header_and_columns_hold_comes_back_as_declared(scores):
    one = Everything(
        np.array(["x", "y"]), float("nan"), 3, "w", (("a", 1), ("b", 2)), np.array([[1.0, np.nan]]),
        {"t": np.array([0.5, np.inf])}, scores=scores, live=object(),
    )  # fmt: skip
    header, columns = one._header(), one._columns()
    assert header["kind"] == "everything"
    assert "live" not in header
    again = Everything._load(header, columns)
    assert again == one
    assert isinstance(again.pairs[0], tuple)
    assert again.live is None
    with pytest.raises(ValueError, match="read-only"):
        again.matrix[0, 0] = 2
