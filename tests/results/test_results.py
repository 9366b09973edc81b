"""Results are frozen records keyed by id, that save, load, join and explain themselves."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import datassay as da


@pytest.fixture(params=[None, ["x7", 'é, "quoted"', "<b>"], [30, 10, 20]])
def values(request):
    X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    return da.knn_shapley(X, y, [[0.2], [1.9]], ["a", "c"], k=2, ids=request.param, tolerance=0.4)


@pytest.mark.parametrize("ending", ["parquet", "json"])
def test_a_saved_result_comes_back_whole(values, tmp_path, ending):
    again = da.load_result(values.save(tmp_path / f"v.{ending}"))
    assert again.values.tobytes() == values.values.tobytes()
    assert again.ids.tolist() == values.ids.tolist()
    assert again.ids.dtype.kind == values.ids.dtype.kind
    assert again.labels.tolist() == values.labels.tolist()
    for name in ("method", "parameters", "seed", "version", "notes"):
        assert getattr(again, name) == getattr(values, name)


def test_an_interval_is_kept(tmp_path):
    estimate = da.Values(np.array([1.0]), np.array([7]), "m", lower=np.array([0.5]), upper=np.array([2.0]))
    for ending in ("parquet", "json"):
        again = da.load_result(estimate.save(tmp_path / f"v.{ending}"))
        assert (again.lower[0], again.upper[0]) == (0.5, 2.0)


def test_csv_holds_the_table(values, tmp_path):
    frame = csv.read_csv(values.save(tmp_path / "v.csv")).to_pandas()
    assert frame.columns.tolist() == ["id", "value", "label"]
    np.testing.assert_array_equal(frame["value"], values.values)
    assert frame["id"].tolist() == values.ids.tolist()


def test_parquet_metadata_is_plain_json(values, tmp_path):
    header = json.loads(pq.read_schema(values.save(tmp_path / "v.parquet")).metadata[b"datassay"])
    assert header["method"] == "knn_shapley"
    assert header["parameters"]["k"] == 2
    assert header["version"] == da.__version__


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_values_become_any_frame(values, kind):
    frame = values.to_frame(kind)
    assert type(frame).__module__.split(".")[0] == kind
    names = frame.column_names if kind == "pyarrow" else list(frame.columns)
    assert names == ["id", "value", "label"]
    np.testing.assert_array_equal(np.asarray(frame["value"]), values.values)


def test_results_join_by_id():
    X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    shapley = da.knn_shapley(X, y, [[0.0]], ["a"], ids=["p", "q", "r"]).to_frame("pandas")
    exposure = da.self_shapley(X[::-1], y[::-1], ids=["r", "q", "p"]).to_frame("pandas")
    joined = shapley.merge(exposure, on="id")
    assert joined["label_x"].tolist() == joined["label_y"].tolist() == y


def test_a_result_cannot_be_changed(values):
    with pytest.raises(AttributeError):
        values.method = "other"
    with pytest.raises(ValueError, match="read-only"):
        values.values[0] = 1
    with pytest.raises(TypeError):
        values.parameters["k"] = 3


def test_the_callers_arrays_stay_writable():
    ids = np.array([4, 5])
    da.knn_shapley([[0.0], [1.0]], [0, 1], [[0.0]], [0], ids=ids)
    ids[0] = 9


def test_columns_of_different_length_are_refused():
    with pytest.raises(da.InputError, match="ids must hold one entry for each of the 2 records"):
        da.Values(np.zeros(2), np.array([1]), "m")


def test_lookup_by_id(values):
    assert values.of(values.ids[1]) == values.values[1]
    with pytest.raises(da.InputError, match="no record with id 'nobody'"):
        values.of("nobody")


def test_highest_and_lowest_are_ordered():
    values = da.Values(np.array([0.1, -0.3, 0.5, -0.3]), np.arange(4), "m")
    assert values.highest(2).tolist() == [2, 0]
    assert values.lowest(2).tolist() == [1, 3]


def test_the_summary_says_what_matters():
    values = da.Values(
        np.array([0.5, -0.25, 0.25]), np.array(["p", "q", "r"]), "m", {"k": 3}, np.array(["a", "a", "b"]), notes=("n1",)
    )
    text = values.summary(count=1)
    for part in (
        "3 records valued by m (k=3)",
        "1 of them (33.3%) have a negative value",
        "a: 2 records, mean 0.125, 50.0% negative",
        "Most valuable: p (0.5)",
        "Least valuable: q (-0.25)",
        "Note: n1",
    ):
        assert part in text
    assert "Together" not in text  # nobody said that this method's values add up
    assert "valuable" not in values.summary(count=0)


def test_the_total_is_told_as_what_it_means():
    X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    # Of the three nearest of 0.1 two match, of 2.9 likewise: two thirds, by guessing one half.
    soft = da.knn_shapley(X, y, [[0.1], [2.9]], ["a", "b"], k=3)
    assert "from 0.500 (guessing) to 0.667" in soft.summary()
    fraction = da.knn_shapley(X, y, [[0.1], [2.9]], ["a", "b"], k=3, utility="fraction")
    assert "from 0.000 (nothing) to 0.667" in fraction.summary()
    for other in (da.knn_banzhaf(X, y, k=3), da.knn_loo(X, y), da.self_shapley(X, y)):
        assert "Together" not in other.summary()


def test_a_class_that_would_vanish_is_pointed_out():
    values = da.Values(np.array([1.0, 1, 1, -1, -1]), np.arange(5), "m", labels=np.array(list("aaabb")))
    assert "Do not simply drop what is negative: 100% of class b would go" in values.summary()


def test_an_approximation_says_whose_sign_is_sure():
    rough = da.Values(
        np.array([-0.5, -0.1, 0.2]),
        np.arange(3),
        "knn_shapley",
        lower=np.array([-0.7, -0.3, 0.0]),
        upper=np.array([-0.3, 0.1, 0.4]),
    )
    assert "2 of them (66.7%)" in rough.summary()
    assert "sure of 1 (33.3%)" in rough.summary()
    assert "Together" not in rough.summary()


def test_self_values_are_read_the_other_way():
    text = da.self_shapley([[0.0], [1.0], [9.0]], ["a", "a", "b"], k=1).summary()
    assert "Most on their own (nobody else vouches for their label): 2" in text
    assert "negative" not in text


def test_many_classes_are_not_all_listed():
    values = da.Values(np.arange(30.0), np.arange(30), "m", labels=np.arange(30))
    assert "and 20 more classes" in values.summary()
    assert len(values.summary().splitlines()) < 20


def test_results_can_be_copied_and_sent(values):
    import copy
    import pickle

    for again in (copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
        assert again.parameters == values.parameters
        assert again.values.tobytes() == values.values.tobytes()
        assert not again.values.flags.writeable


def test_a_fall_is_not_called_a_rise():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    text = da.knn_shapley(X, 1 - y, X[:20], y[:20]).summary()
    assert "bring the score of the nearest neighbours on the validation points from 0.500 (guessing) to 0." in text
    assert "lift" not in text


def test_each_method_says_what_negative_means():
    X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    assert "to a random group of the others" in da.knn_shapley(X, y, k=1).summary()
    assert "if all records but such a one are kept" in da.knn_loo(X, y, k=1).summary()


def test_balancing_is_not_advised_to_those_who_did():
    values = da.Values(np.array([1.0, 1, 1, -1, -1]), np.arange(5), "m", {"weights": "given"}, np.array(list("aaabb")))
    assert "Do not simply drop" not in values.summary()


def test_numpy_parameters_are_saved(tmp_path):
    values = da.knn_shapley([[0.0], [1.0]], [0, 1], [[0.0]], [0], k=np.int64(1), tolerance=np.float32(0.5))
    assert da.load_result(values.save(tmp_path / "v.json")).parameters["tolerance"] == 0.5


def test_large_unsigned_ids_survive_json(tmp_path):
    ids = np.array([2**63 + 1, 5], np.uint64)
    values = da.Values(np.zeros(2), ids, "m")
    assert da.load_result(values.save(tmp_path / "v.json")).ids.tolist() == ids.tolist()


def test_a_plot_on_a_file_name_says_how_to_save():
    with pytest.raises(da.InputError, match=r"to save a plot: plot\(\).figure.savefig"):
        da.Values(np.zeros(2), np.arange(2), "m").plot("v.svg")


def test_the_plot_shows_every_record_and_states_the_finding():
    values = da.Values(np.array([0.5, -0.25, 0.25]), np.arange(3), "m", labels=np.array(["a", "a", "b"]))
    axes = values.plot()
    # Stacked bars: the tallest stack of each bin adds up to all records.
    heights = [patch.get_height() for patch in axes.patches]
    assert sum(heights) == 3
    assert axes.get_title(loc="left") == "33.3% of 3 records have a negative value"


class TestFiles:
    values = da.Values(np.array([1.0]), np.array([0]), "m")

    @pytest.mark.parametrize("name", ["v.txt", "v", "v.pkl"])
    def test_an_unknown_ending_is_refused(self, tmp_path, name):
        with pytest.raises(da.InputError, match=r"must end in \.parquet, \.json or \.csv"):
            self.values.save(tmp_path / name)
        assert list(tmp_path.iterdir()) == []

    def test_a_missing_folder_is_named(self, tmp_path):
        with pytest.raises(da.InputError, match="does not exist; nothing was written"):
            self.values.save(tmp_path / "gone" / "v.json")

    def test_a_failed_write_leaves_the_old_file_and_nothing_else(self, tmp_path, monkeypatch):
        file = self.values.save(tmp_path / "v.parquet")
        before = file.read_bytes()

        def fail(table, path, **_):
            path.write_bytes(b"half")
            raise OSError("disk full")

        monkeypatch.setattr(pq, "write_table", fail)
        with pytest.raises(OSError, match="disk full"):
            self.values.save(file)
        assert file.read_bytes() == before
        assert list(tmp_path.iterdir()) == [file]

    def test_foreign_files_are_refused(self, tmp_path):
        pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
        (tmp_path / "b.parquet").write_text("no parquet")
        (tmp_path / "c.json").write_text('{"columns": {}}')
        (tmp_path / "d.json").write_text("{")
        (tmp_path / "g.json").write_text('{"datassay": {}, "columns": {"a": [1]}}')
        (tmp_path / "h.json").write_text('{"datassay": {"kind": "values"}, "kinds": {}, "columns": {}}')
        (tmp_path / "i.json").write_text('{"datassay": {"kind": "private values"}, "kinds": {}, "columns": {}}')
        for name in ("a.parquet", "b.parquet", "c.json", "d.json", "g.json", "h.json", "i.json"):
            with pytest.raises(da.InputError, match="is not a result saved by datassay"):
                da.load_result(tmp_path / name)
        self.values.save(tmp_path / "e.csv")
        with pytest.raises(da.InputError, match="kept in .parquet or .json"):
            da.load_result(tmp_path / "e.csv")
        da.census(20).save(tmp_path / "f.parquet")
        with pytest.raises(da.InputError, match="of kind 'table'"):
            da.load_result(tmp_path / "f.parquet")
