"""Records read in blocks from Parquet files: the values of all in one array, bit for bit, in bounded memory."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

import datassay as da
from datassay import _checkpoint, oracle
from datassay.cli import app
from datassay.neighbors import records as streaming

CALLS = {
    "knn_banzhaf": {"k": 3},
    "knn_loo": {"k": 3},
    "knn_shapley": {"k": 3, "tolerance": 0.04},
    "waka": {"k": 3},
    "tknn_shapley": {},
}


def frame_of(X, y, **more):
    return pd.DataFrame({**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "y": y, **more})


def write(folder, frame, sizes, group=None):
    """Shards of these sizes, each cut into row groups; names sort in the order of the rows."""
    ends = np.cumsum([0, *sizes])
    for part, (a, b) in enumerate(pairwise(ends)):
        frame.iloc[a:b].to_parquet(
            folder / f"part-{part:03d}.parquet", row_group_size=group or max(1, b - a), index=False
        )
    assert ends[-1] == len(frame)
    return folder


def cut(rng, n, parts):
    """Random sizes that add up to n, some of them 0."""
    return np.diff([0, *np.sort(rng.integers(0, n + 1, parts - 1)), n]).tolist()


def arguments(name, metric):
    tau = {"cosine": -0.5, "euclidean": 1.5, "manhattan": 2.0}[metric]
    return CALLS[name] | ({"tau": tau} if name == "tknn_shapley" else {})


def same(streamed, at_once):
    """Every field of the two results is the same, to the bit."""
    assert streamed.values.tobytes() == at_once.values.tobytes()
    for field in ("ids", "labels", "lower", "upper"):
        ours, theirs = getattr(streamed, field), getattr(at_once, field)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    assert dict(streamed.parameters) == dict(at_once.parameters)
    assert streamed.notes == at_once.notes
    assert streamed.method == at_once.method


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of one tile, so that small data has many of them."""
    monkeypatch.setattr(streaming, "MOST_ROWS", 256)


# ---------------------------------------------------------------------------------------------- the same bits


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CALLS)
def test_values_have_the_bits_of_all_records_in_one_array(name, dtype, metric, tmp_path, small_blocks):
    rng = np.random.default_rng(len(name))
    n, m = 1500, 37
    # A coarse grid: ties and exact duplicates lie in every shard.
    X, X_val = (rng.integers(-2, 3, (size, 3)).astype(dtype) + dtype(0.3) for size in (n, m))
    y, y_val = rng.choice(["no", "yes"], n), rng.choice(["no", "yes", "unseen"], m)
    weights = rng.random(m)
    records = da.open_records(write(tmp_path, frame_of(X, y), cut(rng, n, 7), 100), "y")
    assert records.dtype == dtype
    given = arguments(name, metric) | {"metric": metric, "weights": weights}
    at_once = getattr(da, name)(X, y, X_val, y_val, **given)
    for run in ({}, {"n_jobs": 1}, {"n_jobs": 3, "memory": 2**18}):
        same(getattr(da, name)(records, X_val=X_val, y_val=y_val, **given, **run), at_once)


@settings(max_examples=25)
@given(data=st.data())
def test_however_the_records_are_cut_into_files_and_row_groups(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    n = data.draw(st.integers(1, 60), "records")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    X, X_val = rng.integers(0, 3, (n, 2)).astype(float) + 1, rng.integers(0, 3, (9, 2)).astype(float) + 1
    y, y_val = rng.integers(0, 3, n), rng.integers(0, 3, 9)
    sizes = cut(rng, n, data.draw(st.integers(1, 8), "files"))
    write(folder, frame_of(X, y), sizes, data.draw(st.integers(1, 20), "rows of a group"))
    records = da.open_records(folder, "y")
    for name in CALLS:
        given = arguments(name, "euclidean") | {"metric": "euclidean"}
        if "k" in given:
            given["k"] = data.draw(st.integers(1, 80), "k")  # k ≥ N among them
        same(
            getattr(da, name)(records, X_val=X_val, y_val=y_val, **given),
            getattr(da, name)(X, y, X_val, y_val, **given),
        )


def test_duplicates_across_shards_tie_by_their_place_in_the_whole(tmp_path):
    X = np.zeros((40, 2))
    X[::4] = 1.0  # all others are the same point, at the same distance
    y = np.arange(40) % 2
    records = da.open_records(write(tmp_path, frame_of(X, y), [7, 13, 0, 20], 3), "y")
    same(
        da.knn_loo(records, X_val=[[0.0, 0.0]], y_val=[1], k=5),
        da.knn_loo(X, y, [[0.0, 0.0]], [1], k=5),
    )
    assert np.flatnonzero(da.knn_loo(records, X_val=[[0.0, 0.0]], y_val=[1], k=4).values).tolist() == [1, 3, 5]


def test_lists_of_the_nearest_larger_than_memory_take_more_passes_and_give_the_same_bits(tmp_path, small_blocks):
    rng = np.random.default_rng(5)
    X, y, X_val, y_val = (
        rng.normal(size=(3000, 4)),
        rng.integers(0, 2, 3000),
        rng.normal(size=(70, 4)),
        rng.integers(0, 2, 70),
    )
    records = da.open_records(write(tmp_path, frame_of(X, y), [3000], 500), "y")
    at_once = da.knn_shapley(X, y, X_val, y_val, tolerance=0.001)
    seen = []
    values = da.knn_shapley(
        records,
        X_val=X_val,
        y_val=y_val,
        tolerance=0.001,
        memory=2**20,
        progress=lambda done, of: seen.append((done, of)),
    )
    same(values, at_once)
    assert seen[-1][0] == seen[-1][1] > 3000  # several passes
    with pytest.raises(da.UnavailableError, match="memory"):
        da.knn_shapley(records, X_val=X_val, y_val=y_val, tolerance=0.001, memory=2**14)


def test_tknn_reads_the_files_once_where_marks_fit_and_twice_where_not(tmp_path, small_blocks):
    rng = np.random.default_rng(6)
    n, m = 20_000, 203
    X, y, X_val, y_val = rng.normal(size=(n, 3)), rng.integers(0, 2, n), rng.normal(size=(m, 3)), rng.integers(0, 2, m)
    records = da.open_records(write(tmp_path, frame_of(X, y), [9000, 11_000]), "y")
    at_once = da.tknn_shapley(X, y, X_val, y_val)
    seen = []
    for memory, passes in ((2**29, 1), (2**19, 2)):
        values = da.tknn_shapley(
            records, X_val=X_val, y_val=y_val, memory=memory, n_jobs=2, progress=lambda *at: seen.append(at)
        )
        same(values, at_once)
        assert seen[-1] == (passes * n, passes * n)
    with pytest.raises(da.UnavailableError, match="memory"):
        da.tknn_shapley(records, X_val=X_val, y_val=y_val, memory=2**14)


def test_scaled_records_are_the_scaled_array(tmp_path):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40_000, 3)) * [1.0, 1e4, 1e-6] + [5.0, 1e6, 0.0]
    X = np.column_stack([X, np.full(len(X), 3.25)])
    y, X_val, y_val = rng.integers(0, 2, len(X)), X[:20] + 1e-7, rng.integers(0, 2, 20)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    records = da.open_records(write(tmp_path / "a", frame_of(X, y), [10, 39_990], 999), "y", scale="standard")
    other = da.open_records(write(tmp_path / "b", frame_of(X, y), [40_000]), "y", scale="standard")
    assert records.centres.tobytes() == other.centres.tobytes()
    assert records.widths.tobytes() == other.widths.tobytes()
    np.testing.assert_allclose(records.centres, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(records.widths[:3], X.std(axis=0)[:3], rtol=1e-11)
    assert (records.centres[3], records.widths[3]) == (3.25, 1.0)  # a constant becomes 0
    values = da.knn_banzhaf(records, X_val=X_val, y_val=y_val)
    there, here = ((one - records.centres) / records.widths for one in (X, X_val))
    assert values.values.tobytes() == da.knn_banzhaf(there, y, here, y_val).values.tobytes()
    assert "mean 0 and deviation 1" in values.notes[0]


# -------------------------------------------------------------------------------------------- enumeration, and corners


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("k", [1, 3, 9])
def test_values_agree_with_enumeration(n, k, tmp_path):
    rng = np.random.default_rng(10 * n + k)
    X, X_val = rng.integers(-1, 2, (n, 2)).astype(float), rng.integers(-1, 2, (3, 2)).astype(float)
    y, y_val = rng.choice(["a", "b"], n), rng.choice(["a", "b", "c"], 3)
    classes = len({*y, *y_val})
    records = da.open_records(write(tmp_path, frame_of(X, y), cut(rng, n, 3)), "y")

    def enumerated(value, utility):
        each = []
        for x, label in zip(X_val, y_val, strict=True):
            distances = np.sqrt(((X - x) ** 2).sum(axis=1)).tolist()
            each.append([float(v) for v in value(n, utility(distances, (y == label).tolist()))])
        return np.mean(each, axis=0)

    def fraction(distances, match):
        return oracle.fraction_utility(distances, match, k)

    def soft(distances, match):
        return oracle.soft_utility(distances, match, k, classes)

    def threshold(distances, match):
        return oracle.threshold_utility(distances, match, 1.2, classes)

    run = {"X_val": X_val, "y_val": y_val}
    for found, expected in (
        (da.knn_banzhaf(records, **run, k=k), enumerated(oracle.banzhaf, fraction)),
        (da.knn_loo(records, **run, k=k), enumerated(oracle.leave_one_out, soft)),
        (da.knn_loo(records, **run, k=k, utility="fraction"), enumerated(oracle.leave_one_out, fraction)),
        (da.knn_shapley(records, **run, k=k, tolerance=1e-9), enumerated(oracle.shapley, soft)),
        (da.tknn_shapley(records, **run, tau=1.2, metric="euclidean"), enumerated(oracle.shapley, threshold)),
    ):
        np.testing.assert_allclose(found.values, expected, atol=1e-12)


def test_truncated_shapley_is_within_its_bound_of_the_exact_one(tmp_path):
    rng = np.random.default_rng(8)
    X, y, X_val, y_val = (
        rng.normal(size=(800, 3)),
        rng.integers(0, 2, 800),
        rng.normal(size=(9, 3)),
        rng.integers(0, 2, 9),
    )
    records = da.open_records(write(tmp_path, frame_of(X, y), [300, 500]), "y")
    values = da.knn_shapley(records, X_val=X_val, y_val=y_val, tolerance=0.01)
    exact = da.knn_shapley(X, y, X_val, y_val).values
    assert (values.lower <= exact).all()
    assert (exact <= values.upper).all()


@pytest.mark.parametrize("utility", ["soft", "fraction"])
def test_values_that_are_all_smaller_than_what_they_may_be_off_by_say_so(utility, tmp_path):
    rng = np.random.default_rng(8)
    X, X_val = rng.normal(size=(900, 2)), rng.normal(size=(60, 2))
    y, y_val = rng.integers(0, 2, 900), rng.integers(0, 2, 60)
    records = da.open_records(write(tmp_path, frame_of(X, y), [900]), "y")
    for tolerance, drowned in ((2.0, True), (0.05, True), (0.002, False)):
        options = {"k": 5, "utility": utility, "tolerance": tolerance}
        found = da.knn_shapley(X, y, X_val, y_val, **options)
        same(da.knn_shapley(records, X_val=X_val, y_val=y_val, **options), found)
        assert found.parameters["utility"] == utility
        nothing_known = bool((found.lower <= 0).all() and (found.upper >= 0).all())
        assert nothing_known == drowned
        told = [note for note in found.notes if "no value is known to differ from 0" in note]
        assert len(told) == drowned
        if drowned:
            assert found.lower.max() <= found.upper.min()  # nor is any order
            assert "give a smaller tolerance, or use knn_banzhaf" in told[0]
            assert told[0] in found.summary()


def test_exact_shapley_says_that_it_cannot_and_what_can(tmp_path):
    records = da.open_records(write(tmp_path, frame_of(np.eye(2), ["a", "b"]), [2]), "y")
    with pytest.raises(da.UsageError, match=r"full ranking .* knn_banzhaf, .* are exact.* tolerance well below what"):
        da.knn_shapley(records, X_val=np.eye(2), y_val=["a", "b"])


def test_a_feature_that_may_identify_rows_is_noted_from_the_footers_alone(tmp_path, monkeypatch):
    n, rng = 300, np.random.default_rng(3)
    columns = {
        "counted": np.arange(1, n + 1),
        "shuffled": rng.permutation(n),
        "sparse": np.cumsum(rng.integers(1, 50, n)),
        "grouped": np.arange(n) // 30,  # rises, and has no room for so many
        "wide": rng.integers(0, 10**6, n),
        "halves": np.arange(n) / 2,
        "age": rng.integers(18, 90, n),
    }
    frame = pd.DataFrame({**columns, "y": rng.integers(0, 2, n)})
    folder = write(tmp_path, frame, [100, 0, 120, 80], 30)
    read = pq.ParquetFile.iter_batches
    asked = []
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda self, rows, groups, names, **how: asked.extend(names) or read(
            self, rows, groups, names, **how)
    )  # fmt: skip
    end = "and is used as a feature; if it identifies rows, name it as id"
    assert da.open_records(folder, "y").notes == (
        f"column 'counted' runs from 1 to 300, as many whole numbers as there are records, {end}",
        f"column 'shuffled' runs from 0 to 299, as many whole numbers as there are records, {end}",
        f"column 'sparse' rises from each row group to the next, and may hold a different whole number in every row, {end}",
    )
    assert set(asked) == {"y"}
    assert da.open_records(folder, "y", ["age", "wide"], "counted").notes == ()
    for file in folder.iterdir():  # nothing is told of them
        pq.write_table(pq.read_table(file), file, write_statistics=False)
    assert da.open_records(folder, "y").notes == ()


def test_ids_labels_and_columns_come_from_the_files(tmp_path):
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(30, 2)), rng.choice(["a", "b", "c"], 30)
    y[:10] = "a"  # the first shard lacks two classes
    frame = frame_of(X, y, person=[f"p{i}" for i in range(30)], extra="never read")
    frame.iloc[:10].to_parquet(tmp_path / "1.parquet")
    frame.iloc[10:].assign(more=1)[["more", "person", "y", "x1", "x0"]].to_parquet(tmp_path / "2.parquet")
    frame.iloc[:0].to_parquet(tmp_path / "0-nobody.parquet")
    (tmp_path / "_metadata.parquet").write_text("what other tools keep beside the data")
    records = da.open_records(tmp_path, "y", ["x0", "x1"], id="person")
    assert len(records) == 30
    assert records.classes.tolist() == ["a", "b", "c"]
    assert records.class_sizes.tolist() == [(y == c).sum() for c in "abc"]
    assert records.where(12) == ("2.parquet", 2)
    assert repr(records) == "Records(3 files: 30 rows, 2 features, label 'y')"
    values = da.knn_banzhaf(records, X_val=X[:3], y_val=y[:3])
    same(values, da.knn_banzhaf(X, y, X[:3], y[:3], ids=frame["person"].to_numpy(str)))
    points, labels = records.read()
    np.testing.assert_array_equal(points, X)
    np.testing.assert_array_equal(labels, y)
    blocks = list(records.blocks(7))
    assert [block.start for block in blocks] == [0, 7, 14, 21, 28]
    np.testing.assert_array_equal(np.vstack([block.points for block in blocks]), X)
    np.testing.assert_array_equal(records.classes[np.concatenate([block.codes for block in blocks])], y)


@pytest.mark.parametrize("labels", [[True, False] * 6, list(range(12)), [1.0, 2.0] * 6, pd.Categorical(["u", "v"] * 6)])
def test_labels_may_be_of_any_kind(labels, tmp_path):
    X = np.arange(12.0)[:, None]
    records = da.open_records(write(tmp_path, frame_of(X, labels), [5, 7]), "y")
    plain = list(labels)
    same(
        da.knn_banzhaf(records, X_val=X[:4] + 0.1, y_val=plain[:4], k=2),
        da.knn_banzhaf(X, plain, X[:4] + 0.1, plain[:4], k=2),
    )


def test_more_than_256_classes_and_numbers_of_every_kind(tmp_path):
    rng = np.random.default_rng(11)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 9, 600).astype(np.int8),
            "b": rng.random(600) < 0.5,
            "c": rng.random(600),
            "y": np.arange(600) % 300,
        }
    )
    records = da.open_records(write(tmp_path, frame, [200, 400]), "y")
    X, y = frame[["a", "b", "c"]].astype(float).to_numpy(), frame["y"].to_numpy()
    same(da.waka(records, X_val=X[:9], y_val=y[:9]), da.waka(X, y, X[:9], y[:9]))


def test_validation_data_may_be_records_or_a_frame(tmp_path):
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    frame = frame_of(X, y)
    write(tmp_path, frame[:40], [10, 30])
    frame[40:][["y", "x2", "x0", "x1"]].to_parquet(tmp_path / "held-out.pq")
    for scale in ("none", "standard"):
        records = da.open_records(tmp_path / "part-*.parquet", "y", scale=scale)
        by_array = da.knn_banzhaf(records, X_val=X[40:], y_val=y[40:])
        by_frame = da.knn_banzhaf(records, X_val=frame[40:][["x1", "x2", "x0"]], y_val=y[40:])
        by_records = da.knn_banzhaf(records, X_val=da.open_records(tmp_path / "held-out.pq", "y"))
        same(by_frame, by_array)
        same(by_records, by_array)


# ------------------------------------------------------------------------------------------------------- what is refused


def bad(tmp_path, frame, **options):
    good = frame_of(np.arange(6.0).reshape(3, 2), ["a", "b", "a"])
    good.to_parquet(tmp_path / "a-good.parquet")
    frame.to_parquet(tmp_path / "b-bad.parquet", row_group_size=2)
    return da.open_records(tmp_path, "y", **options)


def spoilt(column, row, value):
    frame = frame_of(np.arange(12.0).reshape(6, 2), ["a", "b", "a", "b", "a", "b"])
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("value", "said"),
    [(np.nan, "is missing|value nan"), (np.inf, "value inf"), (-np.inf, "value -inf"), (None, "is missing")],
)
def test_a_number_that_is_none_is_named_by_file_column_and_row(value, said, tmp_path):
    frame = spoilt("x1", 4, 1.0)
    if value is None:
        frame["x1"] = pd.array([0, 1, 2, 3, None, 5], "Float64")
    else:
        frame = spoilt("x1", 4, value)
    records = bad(tmp_path, frame)
    for name in CALLS:
        with pytest.raises(da.InputError, match=rf"(?s)column 'x1' of b-bad.parquet.*({said}).*row 4"):
            getattr(da, name)(records, X_val=np.ones((2, 2)), y_val=["a", "b"], **CALLS[name])


def test_a_wrong_value_is_found_even_where_no_neighbour_is_needed(tmp_path):
    records = bad(tmp_path, spoilt("x0", 1, np.inf))
    with pytest.raises(da.InputError, match="b-bad.parquet"):
        da.knn_loo(records, X_val=np.ones((2, 2)), y_val=["a", "b"], k=100)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (frame_of(np.ones((3, 2)), ["a", None, "b"]), r"label 'y' of b-bad.parquet is missing at row 1"),
        (frame_of(np.ones((3, 2)), [1, 2, 3]), r"strings in a-good.parquet and whole numbers in b-bad.parquet"),
        (frame_of(np.ones((3, 2)), [0.5, 1.5, 2.0]), r"whole numbers in b-bad"),
        (frame_of(np.ones((3, 2)), "a").assign(x1=["p", "q", "r"]), r"column 'x1' of b-bad.parquet holds text"),
        (
            frame_of(np.ones((3, 2)), "a").assign(x1=pd.Timestamp("2020-01-01")),
            r"column 'x1' of b-bad.parquet holds the type",
        ),
        (frame_of(np.ones((3, 1)), "a"), r"b-bad.parquet lacks the column 'x1' that a-good.parquet has"),
        (frame_of(np.ones((3, 3)), "a"), r"b-bad.parquet has the column 'x2' that a-good.parquet lacks"),
        (frame_of(np.ones((3, 2)), "a").drop(columns="y"), r"b-bad.parquet lacks the column 'y'"),
    ],
)
def test_a_file_unlike_the_others_is_named(frame, said, tmp_path):
    with pytest.raises(da.InputError, match=said):
        bad(tmp_path, frame)


def test_a_label_that_is_no_class_is_named(tmp_path):
    write(tmp_path, frame_of(np.ones((3, 1)), [1.0, 2.0, 0.5]), [1, 2])
    with pytest.raises(da.InputError, match=r"label 'y' of part-001.parquet is 0.5 at row 1"):
        da.open_records(tmp_path, "y")


def test_a_label_that_arrays_would_cut_short_is_named(tmp_path):
    write(tmp_path, frame_of(np.ones((3, 1)), ["a", "b", "b\0"]), [1, 2])
    with pytest.raises(da.InputError, match=r"label 'y' of part-001.parquet is 'b\\x00' at row 1"):
        da.open_records(tmp_path, "y")


def test_row_groups_without_rows_and_labels_encoded_in_several_ways_do_no_harm(tmp_path):
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(90, 2)), rng.choice(["a", "b", "c"], 90)
    table = pa.table({"x0": X[:, 0], "x1": X[:, 1], "y": y.tolist()})
    kinds = (lambda text: text, lambda text: text.dictionary_encode(), lambda text: text.cast(pa.large_string()))
    for part, kind in enumerate(kinds):
        own = table[30 * part : 30 * part + 30]
        own = own.set_column(2, "y", kind(own["y"]))
        with pq.ParquetWriter(tmp_path / f"{part}.parquet", own.schema) as writer:
            for piece in (own[:0], own[:11], own[11:11], own[11:], own[:0]):
                writer.write_table(piece)
    run = {"X_val": X[:5] + 0.1, "y_val": y[:5]}
    for name in CALLS:
        given = arguments(name, "euclidean") | {"metric": "euclidean"}
        same(getattr(da, name)(da.open_records(tmp_path, "y"), **run, **given), getattr(da, name)(X, y, **run, **given))


def test_categories_that_no_row_has_do_no_harm(tmp_path):
    rng = np.random.default_rng(14)
    X, y = rng.normal(size=(60, 2)), rng.choice(["a", "b", "c"], 60)
    for part, categories in enumerate((["unused", "c", "a", "b"], ["b", "a", "c"], ["a", "b", "none", "c"])):
        own = frame_of(X[20 * part : 20 * part + 20], pd.Categorical(y[20 * part : 20 * part + 20], categories))
        own.to_parquet(tmp_path / f"{part}.parquet", index=False)
    records = da.open_records(tmp_path, "y")
    assert records.classes.tolist() == ["a", "b", "c"]
    assert records.class_sizes.tolist() == np.unique(y, return_counts=True)[1].tolist()
    run = {"X_val": X[:5] + 0.1, "y_val": y[:5]}
    same(da.knn_banzhaf(records, **run), da.knn_banzhaf(X, y, **run))


def test_ids_of_other_types_are_put_together_exactly_or_refused(tmp_path):
    def write_ids(*columns):
        for part, ids in enumerate(columns):
            table = pa.table({"x0": [1.0, 2.0], "y": ["a", "b"], "id": ids})
            pq.write_table(table, tmp_path / f"{part}.parquet")
        return da.open_records(tmp_path, "y", id="id").ids()

    large = 2**60 + 1
    assert write_ids(pa.array([1, large]), pa.array([5, large + 1], pa.uint64())).tolist() == [1, large, 5, large + 1]
    with pytest.raises(da.InputError, match="signed numbers in some files and larger ones in others"):
        write_ids(pa.array([1, 2]), pa.array([5, 2**63], pa.uint64()))
    with pytest.raises(da.InputError, match="not of the same type"):
        write_ids(pa.array([1, 2]), pa.array(["3", "4"]))
    with pytest.raises(da.InputError, match=r"the id 'id' of 0\.parquet holds the type list"):
        write_ids(pa.array([[1], [2]]), pa.array([[3], [4]]))


def test_whole_numbers_that_floats_cannot_tell_apart_are_refused(tmp_path):
    write(tmp_path, pd.DataFrame({"x0": [2**60, 2**60 + 1], "y": [0, 1]}), [2])
    records = da.open_records(tmp_path, "y")
    with pytest.raises(da.InputError, match=r"column 'x0' of part-000.parquet has whole numbers beyond"):
        da.knn_banzhaf(records, X_val=[[1.0]], y_val=[0])


def test_places_without_data_are_refused(tmp_path):
    for path, said in (
        (tmp_path / "nowhere", "there is no file or folder"),
        (tmp_path, "holds no Parquet files"),
        (tmp_path / "*.parquet", "no file matches"),
    ):
        with pytest.raises(da.InputError, match=said):
            da.open_records(path, "y")
    (tmp_path / "table.csv").write_text("x,y\n1,2\n")
    for path in (tmp_path / "table.csv", tmp_path / "*.csv"):
        with pytest.raises(da.InputError, match="no Parquet file"):
            da.open_records(path, "y")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(da.InputError, match="cannot read broken.parquet"):
        da.open_records(tmp_path, "y")
    (tmp_path / "broken.parquet").unlink()
    frame_of(np.ones((0, 2)), []).to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(da.InputError, match="holds no rows"):
        da.open_records(tmp_path, "y")


def test_a_link_whose_file_has_gone_is_refused_and_not_passed_over(tmp_path):
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    write(folder, frame_of(np.eye(3), list("abb")), [1, 2])
    (folder / "table.parquet").mkdir()  # no file, and none of the data
    (folder / "_part.parquet").symlink_to("nowhere")  # what begins so is somebody else's
    outside = write(tmp_path, frame_of(np.ones((2, 3)), list("ab")), [2]) / "part-000.parquet"
    link = folder / "deep" / "part-007.parquet"
    link.symlink_to(outside)
    assert len(da.open_records(folder, "y")) == 5
    outside.unlink()
    for path in (folder, folder / "**" / "part-*.parquet"):
        for read in (lambda path: da.open_records(path, "y"), lambda path: da.uniqueness_shapley(path)):
            with pytest.raises(da.InputError, match=r"deep/part-007.parquet is a link to a file that is not there"):
                read(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"label": "z"}, "no column 'z'"),
        ({"label": "y", "id": "y"}, "both 'y'"),
        ({"label": "y", "id": "who"}, "no column 'who'"),
        ({"label": "y", "features": "x0"}, "must be a list"),
        ({"label": "y", "features": ["x0", "x0"]}, "more than once"),
        ({"label": "y", "features": ["x0", "y"]}, "'y' is the label"),
        ({"label": "y", "features": []}, "no features"),
        ({"label": "y", "scale": "minmax"}, "scale must be one of"),
    ],
)
def test_columns_that_cannot_be_are_refused(options, said, tmp_path):
    write(tmp_path, frame_of(np.ones((3, 2)), "a"), [3])
    with pytest.raises(da.InputError, match=said):
        da.open_records(tmp_path, **options)


def test_calls_that_cannot_be_are_refused(tmp_path):
    records = da.open_records(write(tmp_path, frame_of(np.eye(3), ["a", "b", "a"]), [1, 2]), "y")
    X_val, y_val = np.eye(3)[:1], ["a"]
    for call, said in (
        (lambda: da.knn_banzhaf(records), "X_val must be given"),
        (lambda: da.self_shapley(records), "X_val must be given"),
        (lambda: da.knn_banzhaf(records, ["a", "b", "a"], X_val, y_val), "y must be left out"),
        (lambda: da.knn_banzhaf(records, X_val=X_val), "y_val must be given"),
        (lambda: da.knn_banzhaf(records, X_val=X_val, y_val=["a", "b"]), "2 labels for 1 rows"),
        (lambda: da.knn_banzhaf(records, X_val=X_val, y_val=[1]), "different types"),
        (lambda: da.knn_banzhaf(records, X_val=np.ones((1, 2)), y_val=y_val), "X_val has 2"),
        (lambda: da.knn_banzhaf(records, X_val=X_val, y_val=y_val, metric="precomputed"), "precomputed"),
        (lambda: da.knn_banzhaf(records, X_val=X_val, y_val=y_val, ids=[1, 2]), "2 entries for 3"),
        (lambda: da.knn_banzhaf(records, X_val=da.load_dataset("iris")), "Table"),
        (lambda: da.tune_k(records, X_val=X_val, y_val=y_val), "in memory"),
        (lambda: da.tune_tau(records, X_val=X_val, y_val=y_val), "in memory"),
        (lambda: da.private_tknn_shapley(records, None, X_val, y_val, epsilon=1.0), "in memory"),
        (lambda: da.data_shapley(GaussianNB(), records, None, X_val, y_val), "open_records"),
    ):
        with pytest.raises(da.InputError, match=said):
            call()


def test_rows_without_direction_and_numbers_too_large_are_named(tmp_path):
    X = np.ones((6, 2))
    X[4] = 0.0
    records = da.open_records(write(tmp_path, frame_of(X, [0, 1] * 3), [3, 3]), "y")
    with pytest.raises(da.InputError, match=r"part-001.parquet has a row of length zero at row 1"):
        da.tknn_shapley(records, X_val=[[1.0, 1.0]], y_val=[0])
    for number, said in ((1e200, "overflow"), (1e-200, "underflow")):
        write(tmp_path, frame_of(X * number, [0, 1] * 3), [3, 3])
        records = da.open_records(tmp_path, "y")
        with pytest.raises(da.InputError, match=said):
            da.knn_banzhaf(records, X_val=[[number, 0.0]], y_val=[0])


def test_a_file_that_changed_is_noticed(tmp_path):
    records = da.open_records(write(tmp_path, frame_of(np.ones((6, 2)), [0, 1] * 3), [3, 3]), "y")
    frame_of(np.ones((2, 2)), [0, 1]).to_parquet(tmp_path / "part-001.parquet")
    with pytest.raises(da.InputError, match=r"part-001.parquet is not what it was"):
        da.knn_banzhaf(records, X_val=np.ones((1, 2)), y_val=[0])
    (tmp_path / "part-001.parquet").unlink()
    with pytest.raises(da.InputError, match=r"cannot read part-001.parquet"):
        da.knn_banzhaf(records, X_val=np.ones((1, 2)), y_val=[0])


@pytest.mark.parametrize(
    "other",
    [
        frame_of(np.full((1000, 2), 2.0), [0, 1] * 500),
        frame_of(np.ones((1500, 2)), [0, 1] * 750),
        frame_of(np.ones((1000, 2)), [0, 1] * 500).assign(x1="text"),
    ],
    ids=["numbers", "rows", "types"],
)
@pytest.mark.parametrize("during", [False, True])
def test_a_file_that_is_written_again_is_noticed_whatever_it_holds_now(other, during, tmp_path, small_blocks):
    """Before the first pass, or between two: they would not be of the same records."""
    write(tmp_path, frame_of(np.ones((2000, 2)), [0, 1] * 1000), [1000, 1000])
    records = da.open_records(tmp_path, "y")
    rewritten = []

    def progress(done, total):
        if done >= 2000 and not rewritten:
            rewritten.append(other.to_parquet(tmp_path / "part-001.parquet"))

    if not during:
        progress(2000, 2000)
    with pytest.raises(da.InputError, match=r"part-001.parquet is not what it was"):
        da.tknn_shapley(
            records, X_val=np.ones((1600, 2)), y_val=[0] * 1600, tau=-0.5, memory=700_000, n_jobs=1, progress=progress
        )
    assert rewritten


# ------------------------------------------------------------------------------------------------------- stop and resume


@pytest.fixture
def stoppable(tmp_path, monkeypatch, small_blocks):
    """Records in files, validation data and the values of all in one array; every block is kept when it is done."""
    monkeypatch.setattr(_checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(_checkpoint, "SHARE", np.inf)
    rng = np.random.default_rng(21)
    X, X_val = (rng.integers(-2, 3, (size, 3)) + 0.3 for size in (3000, 40))
    y, y_val = rng.integers(0, 3, 3000), rng.integers(0, 3, 40)
    (tmp_path / "data").mkdir()
    write(tmp_path / "data", frame_of(X, y), [700, 0, 1100, 1200], 190)
    return tmp_path, {"X_val": X_val, "y_val": y_val}, (X, y, X_val, y_val)


def stopped(name, folder, run, given, after, **more):
    """A run that is stopped after so many blocks; how many records it had looked at."""
    seen = []

    def progress(done, total):
        seen.append(done)
        if len(seen) == after:
            raise KeyboardInterrupt

    records = da.open_records(folder / "data", "y")
    with pytest.raises(KeyboardInterrupt):
        getattr(da, name)(records, checkpoint=folder / "kept", progress=progress, **run, **given, **more)
    return seen[-1]


@pytest.mark.parametrize("after", [1, 4, 9])
@pytest.mark.parametrize("name", CALLS)
def test_a_run_over_files_that_was_stopped_goes_on_to_the_same_bits(name, after, stoppable):
    folder, run, arrays = stoppable
    given = arguments(name, "euclidean") | {"metric": "euclidean"}
    before = stopped(name, folder, run, given, after, n_jobs=2)
    seen = []
    records = da.open_records(folder / "data", "y")
    values = getattr(da, name)(
        records, checkpoint=folder / "kept", n_jobs=1, progress=lambda *at: seen.append(at), **run, **given
    )
    same(values, getattr(da, name)(*arrays, **given))
    assert seen[0][0] == before
    assert seen[-1][0] == seen[-1][1]
    again = getattr(da, name)(records, checkpoint=folder / "kept", progress=lambda *at: seen.append(at), **run, **given)
    assert again.values.tobytes() == values.values.tobytes()
    assert seen[-1][0] == seen[-1][1]


def test_tknn_goes_on_in_its_second_pass(stoppable):
    folder, run, arrays = stoppable
    given = {"tau": 1.5, "metric": "euclidean"}
    assert stopped("tknn_shapley", folder, run, given, 17, memory=2**19) > 3000
    values = da.tknn_shapley(da.open_records(folder / "data", "y"), checkpoint=folder / "kept", **run, **given)
    same(values, da.tknn_shapley(*arrays, **given))


def test_with_other_memory_lists_of_other_points_are_not_gone_on_from(stoppable):
    folder, run, arrays = stoppable
    given = {"k": 3, "tolerance": 0.002}
    stopped("knn_shapley", folder, run, given, 15, memory=2**18)
    for memory in (2**19, 2**29, 2**18):
        records = da.open_records(folder / "data", "y")
        values = da.knn_shapley(records, checkpoint=folder / "kept", memory=memory, **run, **given)
        same(values, da.knn_shapley(*arrays, **given))


def test_what_is_stopped_within_a_block_is_done_again(stoppable, monkeypatch):
    """Half a block's neighbours must not be offered twice."""
    folder, run, arrays = stoppable
    team, calls = streaming._Team.run, []

    def half(self, tasks):
        calls.append(0)
        if len(calls) == 6:
            team(self, tasks[:1])
            raise KeyboardInterrupt
        team(self, tasks)

    for name, options in (("knn_banzhaf", {"k": 3}), ("tknn_shapley", {"tau": 1.5, "metric": "euclidean"})):
        calls.clear()
        records = da.open_records(folder / "data", "y")
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(streaming._Team, "run", half)
            getattr(da, name)(records, checkpoint=folder / name, n_jobs=2, **run, **options)
        values = getattr(da, name)(records, checkpoint=folder / name, **run, **options)
        same(values, getattr(da, name)(*arrays, **options))


def test_a_checkpoint_of_other_files_is_refused(stoppable):
    folder, run, (X, y, *_) = stoppable
    stopped("knn_banzhaf", folder, run, {}, 3)
    spoilt = X.copy()
    spoilt[2990, 1] += 1
    write(folder / "data", frame_of(spoilt, y), [700, 0, 1100, 1200], 190)
    with pytest.raises(da.InputError, match="one of other data"):
        da.knn_banzhaf(da.open_records(folder / "data", "y"), checkpoint=folder / "kept", **run)
    write(folder / "data", frame_of(X, y), [700, 0, 1100, 1200], 190)
    (folder / "data").rename(folder / "moved")  # the same, elsewhere
    da.knn_banzhaf(da.open_records(folder / "moved", "y"), checkpoint=folder / "kept", **run)
    with pytest.raises(da.InputError, match="one of other data"):
        da.knn_banzhaf(da.open_records(folder / "moved", "y", scale="standard"), checkpoint=folder / "kept", **run)
    with pytest.raises(da.InputError, match="client is for records in memory"):
        da.knn_banzhaf(da.open_records(folder / "moved", "y"), client=object(), **run)


# ------------------------------------------------------------------------- who can be found, in many files or partitions


def people(n=3000):
    return da.voters(n, seed=3).to_frame("pandas").drop(columns="id")


def counted_like(found, whole):
    """Uniqueness from distinct rows tells of all people what it tells from the people themselves."""
    assert found.columns == whole.columns
    np.testing.assert_allclose(found.mean().values, whole.mean().values, rtol=1e-12)
    np.testing.assert_allclose(found.entropies, whole.entropies, rtol=1e-12)
    assert found.weights.sum() == len(whole.ids)
    np.testing.assert_array_equal(np.sort(found.sizes), np.sort(whole.sizes))


def test_uniqueness_over_many_files_is_that_of_all_people(tmp_path):
    frame = people()
    write(tmp_path, frame, [1000, 0, 500, 1500])
    frame.iloc[:10].to_parquet(tmp_path / "part-003 [x].parquet")  # a name with what might be a wildcard
    frame = pd.concat([frame, frame.iloc[:10]], ignore_index=True)
    whole = da.uniqueness_shapley(frame)
    for path in (tmp_path, str(tmp_path / "*.parquet"), tmp_path / "part-*.parquet"):
        found = da.uniqueness_shapley(path)
        counted_like(found, whole)
        assert "was counted on disk: its 3,010 people" in found.notes[0]
    coarse = {"age": 10, "zip": None}
    counted_like(da.uniqueness_shapley(tmp_path, coarsen=coarse), da.uniqueness_shapley(frame, coarsen=coarse))
    groups, alike = da.group_sizes(tmp_path, ["zip", "race"]), da.group_sizes(frame, ["zip", "race"])
    np.testing.assert_array_equal(groups.sizes, alike.sizes)
    by = da.uniqueness_shapley(tmp_path, ["zip", "age"], carry=["party"]).by("party")
    np.testing.assert_allclose(by.values, da.uniqueness_shapley(frame, ["zip", "age"]).by("party").values, rtol=1e-12)


def test_columns_of_many_files_may_stand_in_any_order_and_be_wider_numbers_in_one(tmp_path):
    pd.DataFrame({"a": pd.array([1, 2], "int32"), "b": ["p", "q"]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"b": pd.Categorical(["p", "p"]), "a": [1.0, 2.0]}).to_parquet(tmp_path / "2.parquet")
    table = da.read_distinct(tmp_path)
    assert (table["a"].tolist(), table["b"].tolist(), table["count"].tolist()) == (
        [1, 2, 2],
        ["p", "p", "q"],
        [2, 1, 1],
    )


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"a": [1]}, "2.parquet lacks the column 'b' that 1.parquet has"),
        ({"a": [1], "b": ["p"], "c": [1]}, "2.parquet has the column 'c' that 1.parquet lacks"),
        ({"a": ["x"], "b": ["p"]}, "column 'a' of .* holds numbers in 1.parquet and text in 2.parquet"),
    ],
)
def test_files_of_people_that_do_not_fit_together_are_named(other, said, tmp_path):
    pd.DataFrame({"a": [1, 2], "b": ["p", "q"]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame(other).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(da.InputError, match=said):
        da.uniqueness_shapley(tmp_path)


def test_weights_of_many_files_are_added_up(tmp_path):
    pd.DataFrame({"a": [1, 2], "w": [2.0, 1.0]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"a": [1, 3], "w": [0.5, 4.0]}).to_parquet(tmp_path / "2.parquet")
    assert da.read_distinct(tmp_path, ["a"], weight="w")["count"].tolist() == [2.5, 1.0, 4.0]
    pd.DataFrame({"a": [1, 3], "w": [0.5, -4.0]}).to_parquet(tmp_path / "3.parquet")
    with pytest.raises(da.InputError, match="must hold positive numbers"):
        da.read_distinct(tmp_path, ["a"], weight="w")


@pytest.mark.parametrize("partitions", [1, 11])
def test_uniqueness_over_a_dask_frame_is_that_of_all_people(partitions):
    dd = pytest.importorskip("dask.dataframe")
    dask = pytest.importorskip("dask")
    frame = people()
    frame.loc[5:9, "race"] = None
    frame["gender"] = frame["gender"].astype("category")
    frame["people"] = 1.0 + np.arange(len(frame)) % 3
    whole, weighed = da.uniqueness_shapley(frame.drop(columns="people")), da.uniqueness_shapley(frame, weights="people")
    with dask.config.set(scheduler="synchronous"):
        split = dd.from_pandas(frame, npartitions=partitions)
        counted_like(da.uniqueness_shapley(split.drop(columns="people")), whole)
        np.testing.assert_allclose(
            da.uniqueness_shapley(split, weights="people").mean().values, weighed.mean().values, rtol=1e-12
        )
        groups = da.group_sizes(split, ["zip", "race"])
        np.testing.assert_array_equal(groups.sizes, da.group_sizes(frame, ["zip", "race"]).sizes)
        with pytest.raises(da.InputError, match="no column 'town'"):
            da.group_sizes(split, ["town"])
        with pytest.raises(da.InputError, match="must hold positive numbers"):
            da.read_distinct(split.assign(people=0), ["zip"], weight="people")


# ------------------------------------------------------------------------------------------------------- command line


def cli(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(20)
    X, y = rng.normal(size=(90, 3)) * [1, 10, 100], rng.choice(["no", "yes"], 90)
    frame = frame_of(X, y, who=np.arange(90) + 1000)
    (tmp_path / "train").mkdir()
    write(tmp_path / "train", frame[:80], [30, 50])
    frame[:80].to_parquet(tmp_path / "train.parquet")
    frame[80:].to_parquet(tmp_path / "val.parquet", index=False)
    frame[80:].to_csv(tmp_path / "val.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("method", ["tknn-shapley", "knn-banzhaf", "knn-loo", "waka", "knn-shapley"])
@pytest.mark.parametrize("validation", ["val.parquet", "val.csv"])
def test_a_folder_on_the_command_line_is_valued_like_one_file_in_memory(method, validation, files):
    more = {"tknn-shapley": ["--tau", -0.3], "knn-shapley": ["--tolerance", 0.05]}.get(method, [])
    run = ["--validation", files / validation, "--label", "y", "--id", "who", "--method", method, "--balance", 1, *more]
    for at, data in enumerate((files / "train", files / "train" / "part-*.parquet", "--streamed")):
        what = [files / "train.parquet", "--streamed"] if data == "--streamed" else [data]
        told = cli("value", *what, *run, "-o", files / f"{at}.parquet")
        assert told.exit_code == 0, told.output
        assert "read in blocks" in told.output
    assert cli("value", files / "train.parquet", *run, "-o", files / "memory.parquet").exit_code == 0
    at_once = da.load_result(files / "memory.parquet")
    for at in range(3):
        found = da.load_result(files / f"{at}.parquet")
        np.testing.assert_allclose(found.values, at_once.values, atol=1e-12)
        np.testing.assert_array_equal(found.ids, at_once.ids)
        np.testing.assert_array_equal(found.labels, at_once.labels)


def test_the_command_line_keeps_what_was_done_of_files(files):
    run = ["--validation", files / "val.parquet", "--label", "y", "--id", "who", "-m", "knn-banzhaf"]
    for at in range(2):
        told = cli("value", files / "train", *run, "--checkpoint", files / "kept", "-o", files / f"{at}.csv")
        assert told.exit_code == 0, told.output
    assert (files / "0.csv").read_bytes() == (files / "1.csv").read_bytes()
    assert list((files / "kept").glob("*.npz"))
    told = cli("value", files / "train", *run, "--checkpoint", files / "kept", "-k", 3)
    assert "k was 5 and is 3" in str(told.exception)


def test_the_command_line_refuses_what_blocks_cannot_do(files):
    train, val = files / "train", ["--validation", files / "val.parquet", "--label", "y", "--ignore", "who"]
    for arguments, said in (
        ([train, *val], "--tolerance"),
        ([train, *val, "-m", "tknn-shapley"], "--tau must be a number"),
        ([train, *val, "-m", "knn-banzhaf", "-k", "auto"], "--k must be a number"),
        ([train, *val, "-m", "self-waka"], "needs all records in memory"),
        ([train, *val, "-m", "data-shapley"], "needs all records in memory"),
        ([train, *val, "-m", "knn-banzhaf", "--scale", "minmax"], "--scale minmax"),
        ([train, *val, "-m", "knn-banzhaf", "--truth", "who"], "--truth"),
        ([train, *val, "-m", "knn-banzhaf", "-o", train / "values.parquet"], "would become a part"),
        ([files / "*.parquet", *val, "-m", "knn-banzhaf"], "validated on themselves"),
        ([train, "--label", "y", "-m", "knn-banzhaf"], "--validation"),
        ([train, "--label", "y", "-m", "knn-banzhaf", "--split", 0.5], "--split"),
        ([train, *val[:2], "-m", "knn-banzhaf"], "--label"),
    ):
        told = cli("value", *arguments)
        assert isinstance(told.exception, da.UsageError), (arguments, told.output)
        assert said in str(told.exception)


def test_unique_on_the_command_line_takes_folders_and_patterns(tmp_path):
    (tmp_path / "people").mkdir()
    frame = people(500)
    write(tmp_path / "people", frame, [200, 300])
    frame.to_parquet(tmp_path / "all.parquet", index=False)
    facts = []
    for data in (tmp_path / "people", tmp_path / "people" / "*.parquet", tmp_path / "all.parquet"):
        told = cli("unique", data, "--columns", "zip,race,age", "--by", "party", "--json")
        assert told.exit_code == 0, told.output
        facts.append(json.loads(told.stdout)["facts"])
    for name in ("bits.zip", "bits.race", "bits.age", "share_unique", "smallest_group"):
        if name in facts[2]:
            assert facts[0][name] == pytest.approx(facts[2][name], rel=1e-12)
    assert facts[0] == facts[1]


# ------------------------------------------------------------------------------------------------------- memory


MEASURE = """
import json, sys, threading, time
import joblib
import numpy as np
import datassay as da
folder, many = sys.argv[1:]
X_val, y_val = np.eye(16, dtype=np.float32), np.arange(16) % 2
def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
def value(name):
    records = da.open_records(f"{folder}/{name}.parquet", "y")
    da.tknn_shapley(records, X_val=X_val, y_val=y_val, memory=2**26)
    da.knn_banzhaf(records, X_val=X_val, y_val=y_val, memory=2**26)
value("few")
before = resident()
value(many)
print(json.dumps(resident() - before))
"""


def test_memory_stays_bounded_even_if_the_file_is_one_row_group(tmp_path):
    """3 million × 16: 183 MiB of features, of which only blocks (64 MiB at most) may be in memory at a time."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    n, rng = 3_000_000, np.random.default_rng(0)
    column = rng.standard_normal(n + 16, np.float32)
    for name, rows in (("few", 1000), ("many", n)):
        table = pa.table(
            {**{f"x{j}": column[j : j + rows] for j in range(16)}, "y": np.arange(rows, dtype=np.int8) % 2}
        )
        pq.write_table(
            table, tmp_path / f"{name}.parquet", row_group_size=rows, compression="none", use_dictionary=False
        )
    environment = dict(os.environ, MALLOC_ARENA_MAX="2")
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path), "many"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    beside = n * (8 + 8 + 8 + 1) / 2**20  # values, ids, labels and codes
    assert json.loads(run.stdout) < 64 + beside + 64


def test_a_backend_that_is_not_followed_is_told(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    records = da.open_records(write(tmp_path, frame_of(X, y), [40, 20]), label="y")
    here = da.knn_loo(records, X_val=X[:5] + 0.1, y_val=y[:5])
    with joblib.parallel_config(backend="loky", n_jobs=2):
        there = da.knn_loo(records, X_val=X[:5] + 0.1, y_val=y[:5])
    assert there.values.tobytes() == here.values.tobytes()
    assert not here.notes
    assert there.notes == (
        "records in files are read and valued by threads here: joblib's backend is for records in memory",
    )
