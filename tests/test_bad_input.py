"""Bad input is an error that names the culprit; it never yields a number."""

import numpy as np
import pandas as pd
import pytest

import datassay as da

X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.5]])
Y = ["a", "b", "a"]
X_VAL, Y_VAL = [[0.5, 0.5]], ["a"]


def with_cell(value):
    bad = X.copy()
    bad[1, 0] = value
    return bad


BAD = {
    "no rows": (dict(X=np.empty((0, 2)), y=[]), "X has no rows"),
    "no validation rows": (dict(X_val=np.empty((0, 2)), y_val=[]), "X_val has no rows"),
    "no features": (dict(X=np.empty((3, 0)), X_val=np.empty((1, 0))), "X has no features"),
    "NaN": (dict(X=with_cell(np.nan)), "X has the value nan at row 1, column 0"),
    "infinite": (dict(X=with_cell(-np.inf)), "X has the value -inf at row 1, column 0"),
    "NaN in validation": (dict(X_val=[[np.nan, 0]]), "X_val has the value nan at row 0, column 0"),
    "text": (dict(X=[["a", "b"]] * 3), "X must hold numbers"),
    "one-dimensional": (dict(X=[0.0, 1.0, 2.0]), "X must be 2-D"),
    "different features": (dict(X_val=[[0.5]]), "X has 2 features and X_val has 1"),
    "too few labels": (dict(y=["a", "b"]), "y has 2 labels for 3 rows"),
    "too many validation labels": (dict(y_val=["a", "a"]), "y_val has 2 labels for 1 rows"),
    "no labels": (dict(y=None), "y must be given"),
    "no validation labels": (dict(y_val=None), "y_val must be given"),
    "labels without rows": (dict(X_val=None), "y_val is given without X_val"),
    "missing label": (dict(y=["a", None, "b"]), "y has no label at row 1"),
    "NaN label": (dict(y=[1.0, np.nan, 2.0], y_val=[1]), "y has no label at row 1"),
    "regression": (dict(y=[0.5, 1.0, 2.0], y_val=[1]), r"y has the label 0.5 at row 0; labels are classes"),
    "label types": (dict(y_val=[1]), "labels of different types"),
    "mixed labels": (dict(y=["a", 1, "b"]), "mixes labels|labels of different types"),
    "k of zero": (dict(k=0), "k must be a whole number at least 1, got 0"),
    "k of a half": (dict(k=2.5), "k must be a whole number at least 1, got 2.5"),
    "k of True": (dict(k=True), "k must be a whole number"),
    "utility": (dict(utility="hard"), "utility must be one of 'soft', 'fraction', got 'hard'"),
    "metric": (dict(metric="hamming"), "metric must be one of"),
    "weights of the wrong length": (dict(weights=[1, 2]), "weights must have one entry for each of the 1"),
    "negative weight": (dict(weights=[-1]), "weights must be finite and not negative; row 0"),
    "NaN weight": (dict(weights=[np.nan]), "weights must be finite"),
    "all weights zero": (dict(weights=[0]), "weights are all zero"),
    "unknown weights": (dict(weights="even"), "weights must be one of 'balanced'"),
    "words as weights": (dict(weights=["much"]), "weights must be numbers"),
    "tolerance of zero": (dict(tolerance=0), "tolerance must be a finite number above 0"),
    "tolerance NaN": (dict(tolerance=np.nan), "tolerance must be a finite number"),
    "too few classes": (dict(n_classes=1), "n_classes must be a whole number at least 2"),
    "duplicate ids": (dict(ids=["p", "q", "p"]), r"ids has duplicates: 'p' \(the first at rows 0 and 2"),
    "too few ids": (dict(ids=["p"]), "ids has 1 entries for 3 records"),
    "missing id": (dict(ids=["p", None, "q"]), "ids is missing at row 1"),
    "no threads": (dict(n_jobs=0), r"n_jobs\) must be at least 1, or -1 for all cores; got 0"),
    "zero vector": (dict(X=np.vstack([X[:2], [[0, 0]]]), metric="cosine"), "X has a row of length zero at row 2"),
    "zero query": (dict(X_val=[[0, 0]], metric="cosine"), "X_val has a row of length zero at row 0"),
    "overflow": (dict(X=with_cell(1e200)), "overflow float64 distances; scale the features"),
    "underflow": (dict(X=X * 1e-170, X_val=[[0.0, 1e-170]]), "underflow float64 distances; scale the features"),
    "no X": (dict(X=None), "X must be given"),
    "complex": (dict(X=X + 1j), "X must hold numbers, not complex128"),
    "dates": (dict(X=X.astype("datetime64[D]")), "X must hold numbers, not datetime64"),
    "numbers as strings": (dict(X=X.astype(str)), "X must hold numbers, not <U"),
    "strings among objects": (dict(X=np.array([["1", 2]] * 3, dtype=object)), "X must hold numbers, not object"),
    "ragged rows": (dict(X=[[1.0], [1.0, 2.0], [3.0]]), "every row of the same length"),
    "masked": (dict(X=np.ma.masked_equal(X, 2.0)), "X has masked entries"),
    "inexact whole numbers": (dict(X=np.array([[2**60, 1]] * 3)), "X has whole numbers beyond 2"),
    "huge labels": (dict(y=[2**70, 1, 2], y_val=[1]), "too large; use strings"),
    "huge unsigned labels": (dict(y=np.array([2**63 + 1, 1, 2], np.uint64), y_val=[1]), "too large; use strings"),
    "huge float labels": (dict(y=[1e300, 2e300, 1.0], y_val=[1]), "too large; use strings"),
    "progress": (dict(progress="yes"), "progress must be True, False, None or a function"),
    "tiny tolerance is no crash but": (dict(tolerance=-1e-310), "tolerance must be a finite number above 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_knn_shapley_refuses(name):
    given, message = BAD[name]
    arguments = dict(X=X, y=Y, X_val=X_VAL, y_val=Y_VAL) | given
    with pytest.raises(da.InputError, match=message):
        da.knn_shapley(**arguments)


@pytest.mark.parametrize("method", [da.knn_banzhaf, da.knn_loo, da.self_shapley])
def test_other_methods_refuse_k_of_zero(method):
    with pytest.raises(da.InputError, match="k must be"):
        method(X, Y, k=0)


@pytest.mark.parametrize("tau", [np.nan, np.inf, "near", None, 10**400])
def test_tau_must_be_a_number(tau):
    with pytest.raises(da.InputError, match="tau must be a finite number"):
        da.tknn_shapley(X, Y, X_VAL, Y_VAL, tau=tau)


def test_a_single_record_cannot_value_itself():
    for method in (da.knn_shapley, da.knn_loo, da.knn_banzhaf, da.self_shapley):
        with pytest.raises(da.InputError, match="one row"):
            method(X[:1], Y[:1])


def test_a_tolerance_below_every_float_means_exact():
    exact = da.knn_shapley(X, Y, X_VAL, Y_VAL)
    assert da.knn_shapley(X, Y, X_VAL, Y_VAL, tolerance=1e-310).values.tolist() == exact.values.tolist()


def test_large_whole_labels_stay_apart():
    y, y_val = np.array([2**53, 2**53 + 1, 7], np.uint64), np.array([2**53])
    same = da.knn_shapley(X, ["a", "b", "c"], X_VAL, ["a"]).values
    assert da.knn_shapley(X, y, X_VAL, y_val).values.tolist() == same.tolist()


@pytest.mark.parametrize(
    "y", [list(np.array([0, 1, 0])), list(np.array([True, False, True])), np.array([0.0, 1.0, 0.0])]
)
def test_labels_may_be_lists_of_numpy_numbers(y):
    same = da.knn_shapley(X, ["a" if v == y[0] else "b" for v in y], X_VAL, ["a"]).values
    assert da.knn_shapley(X, y, X_VAL, [y[0]]).values.tolist() == same.tolist()


@pytest.mark.parametrize("scale", [1e308, 5e-324])
def test_only_the_proportions_of_weights_matter(scale):
    two = ([[0.5, 0.5], [2.0, 0.0]], ["a", "c"])
    plain = da.knn_shapley(X, Y, *two, weights=[1, 1]).values
    np.testing.assert_allclose(da.knn_shapley(X, Y, *two, weights=[scale, scale]).values, plain, atol=1e-15)


def test_float32_overflow_points_to_float64():
    with pytest.raises(da.InputError, match="give float64"):
        da.knn_shapley(with_cell(1e25).astype(np.float32), Y, np.array(X_VAL, np.float32), Y_VAL)
    assert np.isfinite(da.knn_shapley(with_cell(1e25), Y, X_VAL, Y_VAL).values).all()


class TestFrames:
    frame = pd.DataFrame(X, columns=["width", "height"])
    validation = pd.DataFrame(X_VAL, columns=["width", "height"])

    def test_columns_are_matched_by_name(self):
        swapped = self.validation[["height", "width"]]
        a = da.knn_shapley(self.frame, Y, self.validation, Y_VAL).values
        np.testing.assert_array_equal(a, da.knn_shapley(self.frame, Y, swapped, Y_VAL).values)

    @pytest.mark.parametrize(
        ("train", "validation", "message"),
        [
            (frame, validation[["width"]], "X_val lacks the column 'height'"),
            (frame, validation.assign(depth=1.0), "X_val has the column 'depth'"),
            (frame.assign(width=["x", "y", "z"]), validation, "column 'width' of X is not numeric"),
            (frame.assign(width=[0, np.nan, 1]), validation, "column 'width' of X has the value nan at row 1"),
            (frame.set_axis([1, 1, 2]), validation, "ids has duplicates"),
        ],
    )
    def test_a_bad_frame_names_its_column(self, train, validation, message):
        with pytest.raises(da.InputError, match=message):
            da.knn_shapley(train, Y, validation, Y_VAL)

    def test_columns_may_have_numbers_for_names(self):
        a = da.knn_shapley(pd.DataFrame(X), Y, pd.DataFrame(X_VAL), Y_VAL).values
        np.testing.assert_array_equal(a, da.knn_shapley(X, Y, X_VAL, Y_VAL).values)

    def test_labels_in_another_order_than_their_rows_are_refused(self):
        frame = self.frame.set_axis(["r", "s", "t"])
        with pytest.raises(da.InputError, match=r"y has another index than X; align them first"):
            da.knn_shapley(frame, pd.Series(Y, ["t", "s", "r"]), self.validation, Y_VAL)
        da.knn_shapley(frame, pd.Series(Y, ["r", "s", "t"]), self.validation, Y_VAL)
        with pytest.raises(da.InputError, match=r"y.to_numpy\(\) to match them by position"):
            da.knn_shapley(self.frame, pd.Series(Y, [1, 2, 3]), self.validation, Y_VAL)

    def test_missing_values_of_pandas_are_missing(self):
        with pytest.raises(da.InputError, match="y has no label at row 1"):
            da.knn_shapley(self.frame, pd.Series(["a", None, "b"], dtype="string"), self.validation, Y_VAL)
        with pytest.raises(da.InputError, match="ids is missing at row 0"):
            da.knn_shapley(self.frame, Y, self.validation, Y_VAL, ids=pd.Series([None, "b", "c"], dtype="string"))

    def test_whole_numbers_that_floats_cannot_hold_are_refused(self):
        with pytest.raises(da.InputError, match="column 'width' of X has whole numbers beyond 2"):
            da.knn_shapley(self.frame.assign(width=[2**60, 2**60 + 1, 2**60 + 2]), Y, self.validation, Y_VAL)

    def test_a_slice_keeps_its_place_in_the_index(self):
        values = da.knn_shapley(pd.concat([self.frame] * 3, ignore_index=True).iloc[4:7], Y, self.validation, Y_VAL)
        assert values.ids.tolist() == [4, 5, 6]

    def test_a_pandas_index_is_the_id(self):
        values = da.knn_shapley(self.frame.set_axis(["r", "s", "t"]), Y, self.validation, Y_VAL)
        assert values.ids.tolist() == ["r", "s", "t"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: da.tune_k(X, Y, candidates=[]), "candidates is empty"),
        (lambda: da.tune_k(X, Y, candidates=[0]), "candidates must be a whole number at least 1"),
        (lambda: da.tune_tau(X, Y, candidates=[]), "candidates is empty"),
        (lambda: da.tune_tau(X, Y, candidates=[np.nan]), "candidates must be a finite number"),
        (lambda: da.balance_weights([]), "y_val has no rows"),
        (lambda: da.balance_weights(["a"], ratio=0), "ratio must be a finite number above 0"),
        (lambda: da.detect_errors([1.0, 2.0], [True]), "is_error has shape"),
        (lambda: da.detect_errors([1.0, 2.0], [False, False]), "needs both errors and clean"),
        (lambda: da.detect_errors([1.0, np.nan], [True, False]), "values holds nan at row 1"),
        (lambda: da.detect_errors([1.0, 2.0], [2, 1]), "is_error must be Boolean"),
        (lambda: da.corrupt_labels(["a", "a"]), "one class only"),
        (lambda: da.corrupt_labels(["a", "b"], rate=0), "rate must be"),
        (lambda: da.corrupt_features([[np.nan]]), "X has the value nan"),
        (lambda: da.corrupt_features([[1.0]], scale="big"), "scale must be one of"),
        (lambda: da.removal_curve([1, 2, 3], X, Y), "X_test must be given"),
        (lambda: da.removal_curve([1, 2], X, Y, X_VAL, Y_VAL), "there are 2 values for 3 records"),
        (lambda: da.removal_curve([1, 2, np.inf], X, Y, X_VAL, Y_VAL), "not finite at row 2"),
        (lambda: da.removal_curve([1, 2, 3], X, Y, X_VAL, Y_VAL, fractions=[1.0]), "at least one of the 3 records"),
        (lambda: da.addition_curve([1, 2, 3], X, Y, X_VAL, Y_VAL, fractions=[0.0]), "at least one of the 3 records"),
        (lambda: da.load_dataset("nothing"), "there is no data set 'nothing'; there are census"),
        (lambda: da.load_dataset("iris", n=5), "takes no n or seed"),
        (lambda: da.load_dataset("census", id="age"), "is built in"),
        (lambda: da.census(3), "n must be a whole number at least 20"),
        (lambda: da.voters(0), "n must be a whole number at least 1"),
        (lambda: da.load_result("nowhere.parquet"), "there is no file 'nowhere.parquet'"),
    ],
)
def test_other_functions_refuse(call, message):
    with pytest.raises(da.InputError, match=message):
        call()
