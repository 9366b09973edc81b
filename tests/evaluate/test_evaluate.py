"""Detection, corruption, curves and tuning, against scikit-learn and by construction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

import datassay as da
from datassay.evaluate.curves import _measure


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2).filter(lambda r: len({e for _, e in r}) == 2))
def test_auroc_agrees_with_scikit_learn_with_ties(records):
    values, wrong = map(np.array, zip(*records, strict=True))
    assert da.detect_errors(values, wrong).auroc == pytest.approx(roc_auc_score(wrong, -values), abs=1e-12)


def test_precision_looks_at_as_many_records_as_there_are_errors():
    assert da.detect_errors([-3, -2, -1, 0, 1], [1, 0, 1, 0, 0]).precision == 0.5
    # Two errors; one record is below the cut, and of the three tied at it one is an error: (1 + 1/3) / 2.
    assert da.detect_errors([-3, -1, -1, -1, 1], [1, 0, 1, 0, 0]).precision == pytest.approx((1 + 1 / 3) / 2)


@given(st.integers(0, 10_000), st.integers(2, 60), st.integers(1, 40))
def test_precision_is_that_of_the_sorted_values_with_ties_in_any_order(seed, n, levels):
    """Each record counts with its chance of being among as many of the lowest as there are errors."""
    rng = np.random.default_rng(seed)
    errors = int(rng.integers(1, n))
    values, wrong = rng.integers(0, levels, n).astype(float), rng.permutation(n) < errors
    lower, equal = (values[None, :] < values[:, None]).sum(axis=1), (values[None, :] == values[:, None]).sum(axis=1)
    chance = np.clip((errors - lower) / equal, 0, 1)
    assert da.detect_errors(values, wrong).precision == pytest.approx(chance[wrong].sum() / errors, abs=1e-12)


def test_corrupted_labels_differ_exactly_where_marked():
    y = np.random.default_rng(0).choice(["a", "b", "c"], 500)
    labels, wrong = da.corrupt_labels(y, rate=0.2, seed=3)
    np.testing.assert_array_equal(labels != y, wrong)
    assert wrong.sum() == 100
    # Flips go to every other class.
    assert {(a, b) for a, b in zip(y[wrong], labels[wrong], strict=True)} == {
        (a, b) for a in "abc" for b in "abc" if a != b
    }


@pytest.mark.parametrize("scale", ["norm", "mean-abs"])
def test_noise_has_the_stated_deviation(scale):
    X = np.random.default_rng(0).normal(size=(4000, 2)) * [1.0, 5.0]
    noisy, wrong = da.corrupt_features(X, rate=0.5, seed=1, scale=scale)
    np.testing.assert_array_equal((noisy != X).all(axis=1), wrong)
    size = np.linalg.norm(X, axis=0) if scale == "norm" else np.abs(X).mean(axis=0)
    np.testing.assert_allclose((noisy - X)[wrong].std(axis=0), size, rtol=0.1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_scores_agree_with_scikit_learn(pairs):
    truth, predicted = map(np.array, zip(*pairs, strict=True))
    ours = _measure(truth, predicted, 4)
    assert ours["accuracy"] == pytest.approx(accuracy_score(truth, predicted))
    assert ours["macro_f1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    if len(set(truth)) > 1 and len(set(predicted)) > 1:
        assert ours["mcc"] == pytest.approx(matthews_corrcoef(truth, predicted))
    else:
        assert ours["mcc"] == 0


class TestCurves:
    rng = np.random.default_rng(9)
    X, X_test = rng.normal(size=(120, 3)), rng.normal(size=(60, 3))
    y, y_test = (X[:, 0] > 0.4).astype(int), (X_test[:, 0] > 0.4).astype(int)
    values = da.knn_shapley(X, y, rng.normal(size=(40, 3)), rng.integers(0, 2, 40), k=3)

    def refitted(self, kept, k=3):
        model = KNeighborsClassifier(min(k, len(kept))).fit(self.X[kept], self.y[kept])
        return (model.predict(self.X_test) == self.y_test).mean()

    def test_removal_equals_refitting_at_every_step(self):
        curve = da.removal_curve(self.values, self.X, self.y, self.X_test, self.y_test, k=3)
        order = np.argsort(self.values.values, kind="stable")
        for fraction, score in zip(curve.fractions, curve.scores["accuracy"], strict=True):
            assert score == pytest.approx(self.refitted(np.sort(order[round(fraction * 120) :])))

    def test_addition_equals_refitting_at_every_step(self):
        curve = da.addition_curve(self.values, self.X, self.y, self.X_test, self.y_test, k=3)
        order = np.argsort(-self.values.values, kind="stable")
        for fraction, score in zip(curve.fractions, curve.scores["accuracy"], strict=True):
            assert score == pytest.approx(self.refitted(np.sort(order[: round(fraction * 120)])))

    @given(st.integers(0, 10_000), st.integers(1, 6), st.booleans())
    def test_votes_that_are_tied_go_to_the_class_that_sorts_first(self, seed, k, removal):
        """Each prediction is that of the k nearest records present, by plain counting; neighbours by distance and index."""
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 4, (15, 2)).astype(float), rng.integers(0, 3, 15)
        X_test, y_test = rng.integers(0, 4, (6, 2)).astype(float), rng.integers(0, 3, 6)
        values = rng.integers(-3, 4, 15).astype(float)
        fractions = [0.2, 0.4, 0.8]
        curve = (da.removal_curve if removal else da.addition_curve)(
            values, X, y, X_test, y_test, k=k, fractions=fractions, n_random=1, first="lowest"
        )
        for step, fraction in enumerate(curve.fractions):
            first = np.argsort(values, kind="stable")[: round(fraction * 15)]
            present = np.setdiff1d(np.arange(15), first) if removal else np.sort(first)
            if len(present) == 0:
                continue
            near = np.argsort(cdist(X_test, X[present], "sqeuclidean"), axis=1, kind="stable")[:, :k]
            counts = np.array([np.bincount(y[present][row], minlength=3) for row in near])
            assert curve.scores["accuracy"][step] == pytest.approx((counts.argmax(axis=1) == y_test).mean())

    def test_a_model_of_ones_own_is_refitted(self):
        knn = da.removal_curve(
            self.values, self.X, self.y, self.X_test, self.y_test, k=3, n_random=2, fractions=[0, 0.5]
        )
        same = da.removal_curve(
            self.values, self.X, self.y, self.X_test, self.y_test, model=KNeighborsClassifier(3), n_random=2,
            fractions=[0, 0.5],
        )  # fmt: skip
        np.testing.assert_allclose(knn.scores["mcc"], same.scores["mcc"])
        np.testing.assert_allclose(knn.random["accuracy"], same.random["accuracy"])
        other = da.addition_curve(
            self.values, self.X, self.y, self.X_test, self.y_test, model=LogisticRegression(), fractions=[0.01, 1.0],
            n_random=2,
        )  # fmt: skip
        assert other.scores["accuracy"][1] == LogisticRegression().fit(self.X, self.y).score(self.X_test, self.y_test)

    def test_a_model_needs_only_fit_and_predict(self):
        class Constant:
            def fit(self, X, y):
                self.answer = int(np.median(y))

            def predict(self, X):
                return np.full(len(X), self.answer)

        seen = []
        curve = da.removal_curve(
            self.values, self.X, self.y, self.X_test, self.y_test, model=Constant(), fractions=[0], n_random=1,
            progress=lambda done, total: seen.append((done, total)),
        )  # fmt: skip
        assert curve.scores["accuracy"][0] == (self.y_test == int(np.median(self.y))).mean()
        assert seen == [(1, 2), (2, 2)]
        with pytest.raises(da.InputError, match="y has 119 labels for 120 rows"):
            da.removal_curve(self.values.values[1:], self.X, self.y[1:], self.X_test, self.y_test, model=Constant())

    def test_curves_are_frozen_and_saved(self, tmp_path):
        curve = da.removal_curve(self.values, self.X, self.y, self.X_test, self.y_test)
        with pytest.raises(ValueError, match="read-only"):
            curve.scores["mcc"][0] = 1
        table = da.read_table(curve.save(tmp_path / "c.csv"))
        np.testing.assert_allclose(table["mcc"], curve.scores["mcc"])
        assert "against random order" in repr(curve)

    @pytest.mark.parametrize("fractions", [[], [1.0], [0.2, 0.999]])
    def test_a_step_that_leaves_nobody_is_refused(self, fractions):
        with pytest.raises(da.UsageError, match="at least one of the 120 records"):
            da.removal_curve(self.values, self.X, self.y, self.X_test, self.y_test, fractions=fractions)

    def test_class_ratio_counts_the_records_present(self):
        curve = da.removal_curve(
            np.where(self.y == 1, -1.0, 1.0), self.X, self.y, self.X_test, self.y_test, fractions=[0, 0.2]
        )
        ones = self.y.sum()
        np.testing.assert_allclose(curve.scores["class_ratio"], [ones / (120 - ones), (ones - 24) / (120 - ones)])

    def test_the_random_band_holds_the_random_mean(self):
        curve = da.removal_curve(self.values, self.X, self.y, self.X_test, self.y_test)
        for metric in curve.random:
            assert (curve.random_low[metric] <= curve.random[metric] + 1e-12).all()
            assert (curve.random[metric] <= curve.random_high[metric] + 1e-12).all()
        # Nothing removed: no randomness.
        assert curve.random_low["accuracy"][0] == curve.random_high["accuracy"][0] == curve.scores["accuracy"][0]

    def test_values_join_the_records_by_id(self):
        ids = np.array([f"r{i}" for i in range(120)])
        values = da.Values(self.values.values, ids, "m")
        import pandas as pd

        frame = pd.DataFrame(self.X, index=ids, columns=list("abc"))
        test = pd.DataFrame(self.X_test, columns=list("abc"))
        shuffled = np.random.default_rng(1).permutation(120)
        a = da.removal_curve(values, frame, self.y, test, self.y_test).scores["accuracy"]
        turned = da.Values(values.values[shuffled], ids[shuffled], "m")
        np.testing.assert_array_equal(a, da.removal_curve(turned, frame, self.y, test, self.y_test).scores["accuracy"])
        # Plain arrays have no ids: then the values are taken in the order they come.
        plain = da.removal_curve(turned, self.X[shuffled], self.y[shuffled], self.X_test, self.y_test)
        by_position = da.removal_curve(turned.values, self.X[shuffled], self.y[shuffled], self.X_test, self.y_test)
        np.testing.assert_array_equal(plain.scores["accuracy"], by_position.scores["accuracy"])
        stranger = da.Values(values.values, np.array([f"s{i}" for i in range(120)]), "m")
        with pytest.raises(da.InputError, match="different ids"):
            da.removal_curve(stranger, frame, self.y, test, self.y_test)

    def test_removing_planted_errors_first_beats_random(self):
        train, validation, test = da.census(2000, seed=8).split(0.5, 0.25, 0.25)
        values = da.knn_shapley(train, X_val=validation)
        # Only the tenth that holds the planted errors: beyond it the minority class is worn away (thesis, Figure 2.5).
        low = da.removal_curve(values, train, X_test=test, fractions=[0.1])
        high = da.removal_curve(values, train, X_test=test, fractions=[0.1], first="highest")
        assert low.gain() > 0 > high.gain()

    def test_plot_and_frame(self):
        curve = da.addition_curve(self.values, self.X, self.y, self.X_test, self.y_test)
        axes = curve.plot("macro_f1")
        np.testing.assert_array_equal(axes.lines[1].get_ydata(), curve.scores["macro_f1"])
        assert axes.get_xlabel() == "fraction of records added"
        assert "mcc_random_low" in curve.to_frame("polars").columns


class TestTuning:
    rng = np.random.default_rng(4)
    X, X_val = rng.normal(size=(300, 3)), rng.normal(size=(80, 3))
    y, y_val = rng.integers(0, 3, 300), rng.integers(0, 3, 80)

    def test_k_is_scored_as_scikit_learn_scores_it(self):
        tuning = da.tune_k(self.X, self.y, self.X_val, self.y_val, candidates=[1, 2, 5, 17, 300])
        theirs = [KNeighborsClassifier(k).fit(self.X, self.y).score(self.X_val, self.y_val) for k in tuning.candidates]
        np.testing.assert_allclose(tuning.scores, theirs)
        assert tuning.best == tuning.candidates[np.argmax(theirs)]

    def test_k_beyond_the_records_means_all_of_them(self):
        few = da.tune_k(self.X[:4], self.y[:4], self.X_val, self.y_val, candidates=[4, 100])
        assert few.scores[0] == few.scores[1]

    @pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
    def test_tau_is_scored_by_the_vote_of_everybody_within(self, metric):
        ours = {"cityblock": "manhattan"}.get(metric, metric)
        tuning = da.tune_tau(self.X, self.y, self.X_val, self.y_val, candidates=[0.3, 1.5, 3.0, 9.0], metric=ours)
        for tau, score in zip(tuning.candidates, tuning.scores, strict=True):
            within = cdist(self.X_val, self.X, metric) <= tau
            votes = np.stack([(within & (self.y == c)).sum(axis=1) for c in range(3)], axis=1)
            hits = np.where(votes.sum(axis=1) == 0, 1 / 3, votes.argmax(axis=1) == self.y_val)
            assert score == pytest.approx(hits.mean())

    def test_nobody_within_is_a_guess(self):
        tuning = da.tune_tau(self.X, self.y, self.X_val, self.y_val, candidates=[-1.0], metric="euclidean")
        assert tuning.scores[0] == pytest.approx(1 / 3)

    def test_default_candidates_suit_the_metric(self):
        cosine = da.tune_tau(self.X, self.y, self.X_val, self.y_val)
        np.testing.assert_allclose(cosine.candidates, np.arange(-0.9, -0.05, 0.1))
        euclidean = da.tune_tau(self.X, self.y, self.X_val, self.y_val, metric="euclidean")
        assert len(euclidean.candidates) == 20
        near = da.nearest_neighbours(self.X, self.X_val, limit=150)[1]
        assert near[:, 0].min() <= euclidean.candidates[0] <= euclidean.candidates[-1] <= near.max() * 1.1

    def test_leave_one_out_accuracy_without_validation_data(self):
        tuning = da.tune_k(self.X, self.y, candidates=[1])
        near = da.nearest_neighbours(self.X, limit=1)[0][:, 0]
        assert tuning.scores[0] == pytest.approx((self.y[near] == self.y).mean())

    def test_weights_count(self):
        weights = np.random.default_rng(0).random(80)
        tuning = da.tune_k(self.X, self.y, self.X_val, self.y_val, candidates=[1], weights=weights)
        hits = KNeighborsClassifier(1).fit(self.X, self.y).predict(self.X_val) == self.y_val
        assert tuning.scores[0] == pytest.approx(np.average(hits, weights=weights))

    def test_the_best_k_can_be_used_as_it_is(self):
        best = da.tune_k(self.X, self.y, self.X_val, self.y_val).best
        assert len(da.knn_shapley(self.X, self.y, self.X_val, self.y_val, k=best)) == 300

    def test_plot_marks_the_best(self):
        tuning = da.tune_k(self.X, self.y, self.X_val, self.y_val)
        assert f"k = {tuning.best:g} predicts best" in tuning.plot().get_title(loc="left")
        assert tuning.to_frame("pandas").columns.tolist() == ["k", "accuracy"]

    def test_a_tuning_is_saved(self, tmp_path):
        tuning = da.tune_k(self.X, self.y, candidates=[1, 3])
        np.testing.assert_array_equal(da.read_table(tuning.save(tmp_path / "t.parquet"))["accuracy"], tuning.scores)


@given(st.integers(0, 10_000), st.integers(2, 14), st.integers(1, 6))
def test_a_label_is_suspect_by_the_definition(seed, n, k):
    """A record of negative value whose neighbours vote for another class, as confidently as that class is voted for."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (n, 2)).astype(float), np.array(list("abc"))[rng.integers(0, 3, n)]
    worth = da.Values(rng.integers(-2, 3, n).astype(float), np.arange(n), "mine")
    found = da.likely_errors(X, y, worth, k=k)
    shares = np.zeros((n, 3))
    for i in range(n):
        others = [j for j in np.argsort(((X - X[i]) ** 2).sum(axis=1), kind="stable") if j != i][:k]
        shares[i] = [np.mean([y[j] == c for j in others]) for c in "abc"]
    own = shares[np.arange(n), np.searchsorted(["a", "b", "c"], y)]
    usual = {c: own[y == c].mean() if (y == c).any() else 0.0 for c in "abc"}
    for i in range(n):
        most = "abc"[shares[i].argmax()]
        assert (found.suggested[i], found.votes[i], found.own[i]) == (most, shares[i].max(), own[i])
        confident = shares[i].max() >= usual[most] - 1e-12
        assert found.likely[i] == (confident and shares[i].max() > own[i] and worth.values[i] < 0)
    assert found.first(99).tolist() == sorted(np.flatnonzero(found.likely), key=lambda i: (worth.values[i], i))


def test_suspects_are_judged_by_their_own_values():
    X, y = np.arange(4.0)[:, None], ["a", "a", "b", "b"]
    with pytest.raises(da.InputError, match="at least 2 records"):
        da.likely_errors(X[:1], y[:1])
    with pytest.raises(da.UsageError, match="those of these records, in their order"):
        da.likely_errors(X, y, da.Values(np.zeros(4), np.arange(4)[::-1], "mine"))
    left_out = da.likely_errors(X, y, k=3)
    np.testing.assert_array_equal(left_out.values, da.knn_shapley(X, y).values)
    assert left_out.parameters["k"] == 3
