"""Every fast formula equals enumeration from the definition, over the whole awkward domain."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import datassay as da
from datassay import oracle

EXACT = 1e-12


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    y: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray
    k: int
    weights: np.ndarray

    @property
    def n_classes(self):
        return len(set(self.y) | set(self.y_val))

    def arguments(self):
        return self.X, self.y, self.X_val, self.y_val


def make(X, y, X_val, y_val, k=5, weights=None):
    X, X_val = np.asarray(X, float), np.asarray(X_val, float)
    weights = np.ones(len(y_val)) if weights is None else np.asarray(weights, float)
    return Problem(X, np.asarray(y), X_val, np.asarray(y_val), k, weights)


@st.composite
def problems(draw, smallest=1):
    """Small grids (so ties and exact duplicates abound), string labels, few classes, K up to 12, weights of 0."""
    n = draw(st.integers(smallest, 10))
    m = draw(st.integers(1, 3))
    d = draw(st.integers(1, 6))
    point = st.lists(st.integers(-1, 1), min_size=d, max_size=d)
    label = st.sampled_from(["no", "yes", "who knows"][: draw(st.integers(1, 3))])
    weights = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=m, max_size=m).filter(any))
    return make(
        draw(st.lists(point, min_size=n, max_size=n)),
        draw(st.lists(label, min_size=n, max_size=n)),
        draw(st.lists(point, min_size=m, max_size=m)),
        draw(st.lists(st.sampled_from(["no", "yes", "who knows", "unseen"]), min_size=m, max_size=m)),
        draw(st.integers(1, 12)),
        weights,
    )


def enumerated(problem, value, utility, excluded=None):
    """The weighted mean over validation points of an enumerated value; ``excluded`` leaves point t out of game t."""
    n = len(problem.y)
    total = [Fraction(0)] * n
    for t, (x, label) in enumerate(zip(problem.X_val, problem.y_val, strict=True)):
        players = [i for i in range(n) if not (excluded and i == t)]
        distances = [int(((problem.X[i] - x) ** 2).sum()) for i in players]
        match = [problem.y[i] == label for i in players]
        for i, phi in zip(players, value(len(players), utility(distances, match)), strict=True):
            total[i] += Fraction(problem.weights[t]) * phi
    weight = Fraction(problem.weights.sum())
    return np.array([float(phi / weight) for phi in total])


# A problem → (fast, enumerated) for every k-NN method.
METHODS = {
    "shapley, fraction": (
        lambda p, *data, **o: da.knn_shapley(*data, k=p.k, utility="fraction", **o),
        oracle.shapley,
        lambda p: lambda d, b: oracle.fraction_utility(d, b, p.k),
    ),
    "shapley, soft": (
        lambda p, *data, **o: da.knn_shapley(*data, k=p.k, **o),
        oracle.shapley,
        lambda p: lambda d, b: oracle.soft_utility(d, b, p.k, p.n_classes),
    ),
    "banzhaf": (
        lambda p, *data, **o: da.knn_banzhaf(*data, k=p.k, **o),
        oracle.banzhaf,
        lambda p: lambda d, b: oracle.fraction_utility(d, b, p.k),
    ),
    "leave one out, fraction": (
        lambda p, *data, **o: da.knn_loo(*data, k=p.k, utility="fraction", **o),
        oracle.leave_one_out,
        lambda p: lambda d, b: oracle.fraction_utility(d, b, p.k),
    ),
    "leave one out, soft": (
        lambda p, *data, **o: da.knn_loo(*data, k=p.k, **o),
        oracle.leave_one_out,
        lambda p: lambda d, b: oracle.soft_utility(d, b, p.k, p.n_classes),
    ),
    "threshold shapley": (
        lambda p, *data, **o: da.tknn_shapley(*data, tau=float(np.sqrt(2)), metric="euclidean", **o),
        oracle.shapley,
        lambda p: lambda d, b: oracle.threshold_utility(d, b, 2, p.n_classes),
    ),
}
each_method = pytest.mark.parametrize("name", METHODS)

ONE_RECORD = make([[0]], ["yes"], [[0]], ["yes"], k=3)
ONE_WRONG_RECORD = make([[0]], ["no"], [[0]], ["yes"], k=1)
ALL_TIED = make([[1]] * 5, ["yes", "no", "yes", "no", "yes"], [[0]], ["yes"], k=2)
CLASS_ABSENT = make([[0], [1], [2]], ["no"] * 3, [[0]], ["unseen"], k=2)


@each_method
@settings(max_examples=80)
@given(problem=problems())
@example(problem=ONE_RECORD)
@example(problem=ONE_WRONG_RECORD)
@example(problem=ALL_TIED)
@example(problem=CLASS_ABSENT)
def test_fast_value_equals_enumeration(name, problem):
    fast, value, utility = METHODS[name]
    ours = fast(problem, *problem.arguments(), weights=problem.weights).values
    np.testing.assert_allclose(ours, enumerated(problem, value, utility(problem)), rtol=0, atol=EXACT)


@each_method
@settings(max_examples=60)
@given(problem=problems(smallest=2))
def test_records_valuing_each_other_leave_their_own_game(name, problem):
    weights = np.resize([1.0, 0.0, 2.5], len(problem.y))
    mutual = make(problem.X, problem.y, problem.X, problem.y, problem.k, weights)
    fast, value, utility = METHODS[name]
    ours = fast(mutual, mutual.X, mutual.y, weights=weights).values
    np.testing.assert_allclose(ours, enumerated(mutual, value, utility(mutual), excluded=True), rtol=0, atol=EXACT)


@pytest.mark.parametrize("utility", ["soft", "fraction"])
@settings(max_examples=60)
@given(problem=problems(smallest=2))
def test_self_shapley_puts_the_record_first_whatever_its_duplicates(utility, problem):
    n, classes = len(problem.y), len(set(problem.y))
    expected = []
    for i in range(n):
        distances = [int(((problem.X[j] - problem.X[i]) ** 2).sum()) if j != i else -1 for j in range(n)]
        match = [problem.y[j] == problem.y[i] for j in range(n)]
        game = (
            oracle.soft_utility(distances, match, problem.k, classes)
            if utility == "soft"
            else oracle.fraction_utility(distances, match, problem.k)
        )
        expected.append(float(oracle.shapley(n, game)[i]))
    ours = da.self_shapley(problem.X, problem.y, k=problem.k, utility=utility).values
    np.testing.assert_allclose(ours, expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 9])
def test_seven_records_valued_for_themselves_equal_enumeration(k):
    X, y = np.array([0.0, 1.0, 3.0, 3.0, 4.0, 7.0, 7.0])[:, None], np.array([0, 1, 1, 0, 2, 1, 1])
    soft, fraction = [], []
    for i in range(7):
        distances = [abs(int(X[j, 0] - X[i, 0])) if j != i else -1 for j in range(7)]
        match = list(y == y[i])
        soft.append(float(oracle.shapley(7, oracle.soft_utility(distances, match, k, 3))[i]))
        fraction.append(float(oracle.shapley(7, oracle.fraction_utility(distances, match, k))[i]))
    np.testing.assert_allclose(da.self_shapley(X, y, k=k).values, soft, rtol=0, atol=EXACT)
    np.testing.assert_allclose(da.self_shapley(X, y, k=k, utility="fraction").values, fraction, rtol=0, atol=EXACT)


@settings(max_examples=80)
@given(problem=problems())
def test_shapley_values_add_up_to_what_the_whole_set_scores(problem):
    everyone = frozenset(range(len(problem.y)))
    for name in ("shapley, fraction", "shapley, soft", "threshold shapley"):
        fast, _, utility = METHODS[name]
        total = 0.0
        for x, label, weight in zip(problem.X_val, problem.y_val, problem.weights, strict=True):
            game = utility(problem)(
                [int(((point - x) ** 2).sum()) for point in problem.X], [label == other for other in problem.y]
            )
            total += weight * float(game(everyone) - game(frozenset()))
        ours = fast(problem, *problem.arguments(), weights=problem.weights).values
        assert ours.sum() == pytest.approx(total / problem.weights.sum(), abs=EXACT)


# Leave-one-out is left out: the later of two duplicates may be the (k+1)-th neighbour, and so stand outside.
@pytest.mark.parametrize("name", [name for name in METHODS if "leave" not in name])
@given(problem=problems(smallest=2), data=st.data())
def test_neighbouring_duplicates_with_equal_labels_are_worth_the_same(name, problem, data):
    i = data.draw(st.integers(0, len(problem.y) - 1))
    X, y = np.insert(problem.X, i, problem.X[i], axis=0), np.insert(problem.y, i, problem.y[i])
    values = METHODS[name][0](problem, X, y, problem.X_val, problem.y_val).values
    assert values[i] == values[i + 1]


@given(problem=problems(smallest=2))
def test_a_record_beyond_the_threshold_is_a_null_player(problem):
    X = np.vstack([problem.X, np.full((1, problem.X.shape[1]), 50.0)])
    y = np.append(problem.y, problem.y[0])
    with_null = da.tknn_shapley(X, y, problem.X_val, problem.y_val, tau=3.0, metric="euclidean").values
    without = da.tknn_shapley(problem.X, problem.y, problem.X_val, problem.y_val, tau=3.0, metric="euclidean").values
    assert with_null[-1] == 0
    np.testing.assert_allclose(with_null[:-1], without, rtol=0, atol=EXACT)


@each_method
@given(problem=problems(), other=problems())
def test_values_are_linear_in_the_validation_points(name, problem, other):
    n_classes = 4
    fast = METHODS[name][0]
    given_classes = {} if name == "banzhaf" else {"n_classes": n_classes}
    d = min(problem.X.shape[1], other.X_val.shape[1])
    X, y = problem.X[:, :d], problem.y
    parts = [
        (problem.X_val[:, :d], problem.y_val, problem.weights),
        (other.X_val[:, :d], other.y_val, other.weights),
    ]
    separate = [fast(problem, X, y, P, q, weights=w, **given_classes).values * w.sum() for P, q, w in parts]
    joint = fast(
        problem, X, y, np.vstack([P for P, _, _ in parts]), np.concatenate([q for _, q, _ in parts]),
        weights=np.concatenate([w for _, _, w in parts]), **given_classes,
    ).values  # fmt: skip
    total = sum(w.sum() for _, _, w in parts)
    np.testing.assert_allclose(joint * total, sum(separate), rtol=0, atol=1e-11)


@pytest.mark.parametrize("tolerance", [3.0, 1.0, 0.5, 0.2, 0.05, 0.01])
@pytest.mark.parametrize("k", [1, 5, 30])
@pytest.mark.parametrize("utility", ["soft", "fraction"])
def test_truncated_shapley_stays_within_its_tolerance(tolerance, k, utility):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    X_val, y_val = rng.normal(size=(7, 3)), rng.integers(0, 2, 7)
    for data in ((X, y, X_val, y_val), (X, y)):
        exact = da.knn_shapley(*data, k=k, utility=utility)
        near = da.knn_shapley(*data, k=k, utility=utility, tolerance=tolerance)
        assert np.abs(near.values - exact.values).max() <= tolerance
        assert any("approximate, as asked" in note for note in near.notes)
        assert (near.lower <= exact.values).all()
        assert (exact.values <= near.upper).all()
        assert exact.lower is None
    exact, near = (da.self_shapley(X, y, k=k, utility=utility, tolerance=t).values for t in (None, tolerance))
    assert np.abs(near - exact).max() <= tolerance


@pytest.mark.parametrize("k", [1, 5, 67, 200])
@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6])
def test_truncated_banzhaf_stays_within_its_tolerance(tolerance, k):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(700, 2)), rng.integers(0, 3, 700)
    X_val, y_val = rng.normal(size=(5, 2)), rng.integers(0, 3, 5)
    exact = da.knn_banzhaf(X, y, X_val, y_val, k=k).values
    near = da.knn_banzhaf(X, y, X_val, y_val, k=k, tolerance=tolerance).values
    assert np.abs(near - exact).max() <= tolerance


@pytest.mark.parametrize("k", [1, 5, 67])
@pytest.mark.parametrize("tolerance", [0.11, 1e-3, 1e-6])
def test_truncated_banzhaf_looks_at_no_more_neighbours_than_its_bound_asks_for(tolerance, k):
    """P(Bin(J−1, ½) < k)/k with J neighbours (Mathematics §2); where there are no more than J, values are exact."""
    from scipy.stats import binom

    enough = next(J for J in range(1, 700) if binom.cdf(k - 1, J - 1, 0.5) / k <= tolerance)
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(enough + 1, 2)), rng.integers(0, 3, enough + 1)
    near = da.knn_banzhaf(X, y, X[:5], y[:5], k=k, tolerance=tolerance)
    assert any(f"only the {enough} nearest neighbours were looked at" in note for note in near.notes)
    np.testing.assert_allclose((near.upper - near.lower) / 2, binom.cdf(k - 1, enough - 1, 0.5) / k, rtol=1e-9)
    exact = da.knn_banzhaf(X[:-1], y[:-1], X[:5], y[:5], k=k, tolerance=tolerance)
    assert exact.values.tobytes() == da.knn_banzhaf(X[:-1], y[:-1], X[:5], y[:5], k=k).values.tobytes()
    assert exact.lower is None
    assert not any("nearest neighbours" in note for note in exact.notes)


@pytest.mark.parametrize("k", [1, 2, 7, 67, 400, 1500])
def test_banzhaf_chances_are_the_negative_binomial_distribution(k):
    from scipy.stats import nbinom

    from datassay.value.knn import banzhaf_chances

    chances = banzhaf_chances(k, 6000)
    trials = np.arange(1, len(chances) + 1) - 1  # rank j is the (j−1)-th coin
    expected = nbinom.pmf(trials - k, k, 0.5)
    np.testing.assert_allclose(chances, expected, rtol=1e-9, atol=1e-300)
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    if len(chances) < 6000:  # cut only where doubles are zero
        assert expected[-1] < 1e-300


def test_banzhaf_beyond_a_thousand_neighbours_equals_the_formula_in_fractions():
    from math import comb

    n, k = 1500, 3
    rng = np.random.default_rng(5)
    b = rng.random(n) < 0.5
    X = np.arange(n, dtype=float)[:, None]
    ours = da.knn_banzhaf(X, b.astype(int), [[-1.0]], [1], k=k).values
    chance = [Fraction(0)] + [
        Fraction(comb(j - 2, k - 1), 2 ** (j - 1)) if j >= 2 else Fraction(0) for j in range(1, n + 1)
    ]
    fewer = Fraction(sum(comb(n - 1, c) for c in range(k)), 2 ** (n - 1))
    for i in (1, 2, 3, 10, 700, 1499, 1500):
        tail = sum((int(b[i - 1]) - int(b[j - 1])) * chance[j] for j in range(i + 1, n + 1))
        exact = float((int(b[i - 1]) * fewer + tail) / k)
        assert ours[i - 1] == pytest.approx(exact, rel=1e-12, abs=1e-300)


def test_more_classes_than_labels_lower_the_guess():
    two = da.knn_shapley([[0.0]], ["a"], [[0.0]], ["a"], n_classes=2).values
    ten = da.knn_shapley([[0.0]], ["a"], [[0.0]], ["a"], n_classes=10).values
    np.testing.assert_allclose([two[0], ten[0]], [0.5, 0.9], atol=EXACT)


def test_balance_weights_follow_the_thesis():
    weights = da.balance_weights([1, 0, 0, 0, 0], ratio=2.0)
    np.testing.assert_allclose(weights, [1, 0.5, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(da.balance_weights(["a", "b"]), [1, 1])
    np.testing.assert_allclose(da.balance_weights(["a", "b", "c", "c"], ratio=3.0), [1, 1, 1.5, 1.5])
    balanced = da.knn_shapley([[0.0], [1.0]], [0, 1], [[0.0], [0.2], [0.9]], [0, 0, 1], weights="balanced").values
    by_hand = da.knn_shapley([[0.0], [1.0]], [0, 1], [[0.0], [0.2], [0.9]], [0, 0, 1], weights=[0.5, 0.5, 1]).values
    np.testing.assert_array_equal(balanced, by_hand)


def test_weighting_averages_over_downsampled_validation_sets():
    """Thesis §1.10: the weights are equivalent to averaging over all validation sets with the majority downsampled."""
    from itertools import combinations

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    X_val, y_val = rng.normal(size=(8, 2)), np.array([1, 1, 0, 0, 0, 0, 0, 0])
    majority = np.flatnonzero(y_val == 0)
    for ratio in (1.0, 2.0):
        samples = [[0, 1, *s] for s in combinations(majority, int(2 * ratio))]
        downsampled = np.mean([da.knn_shapley(X, y, X_val[s], y_val[s]).values for s in samples], axis=0)
        weighted = da.knn_shapley(X, y, X_val, y_val, weights=da.balance_weights(y_val, ratio)).values
        np.testing.assert_allclose(weighted, downsampled, rtol=0, atol=EXACT)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 9))
def test_what_validation_points_say_of_marked_records_is_summed_bit_by_bit(seed, points, n):
    from datassay.value import kernels

    rng = np.random.default_rng(seed)
    near = rng.random((points, n)) < 0.4
    codes, targets = rng.integers(0, 3, n).astype(np.int32), rng.integers(0, 3, points).astype(np.int32)
    worth, group = rng.normal(size=(points, 2)), np.arange(points) // 3
    total = np.empty(n)
    kernels.add_marked(np.packbits(near, axis=0, bitorder="little"), codes, targets, worth, group, total)
    expected = [sum(worth[v, int(codes[i] == targets[v])] for v in range(points) if near[v, i]) for i in range(n)]
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("memory", [2**29, 2**18])
def test_threshold_values_of_records_in_files_have_the_bits_of_those_in_memory(memory, tmp_path):
    """Whether files are read once or twice; many validation points, so that there are many groups of them to sum."""
    import pandas as pd

    rng = np.random.default_rng(7)
    n, m = 6000, 200
    X, y, X_val, y_val = rng.normal(size=(n, 3)), rng.integers(0, 3, n), rng.normal(size=(m, 3)), rng.integers(0, 4, m)
    pd.DataFrame(X, columns=list("abc")).assign(y=y).to_parquet(tmp_path / "records.parquet", index=False)
    weights = rng.random(m)
    given = {"X_val": X_val, "y_val": y_val, "tau": 1.0, "metric": "euclidean", "weights": weights, "n_jobs": 1}
    streamed = da.tknn_shapley(da.open_records(tmp_path, "y"), memory=memory, **given)
    at_once = da.tknn_shapley(X, y, **given)
    assert streamed.values.tobytes() == at_once.values.tobytes()
    assert len(np.unique(at_once.values)) > 100


@pytest.mark.parametrize("method", [da.self_shapley, da.self_waka, da.waka_influence])
def test_a_record_is_valued_for_itself_among_the_records_alone(method):
    X, y = np.arange(6.0)[:, None], [0, 1, 0, 1, 0, 1]
    with pytest.raises(da.UsageError, match="among the records themselves"):
        method(da.Neighbours(X, y, [[2.5]], [1]))


AT_THE_EDGE = {
    "shapley": lambda X, y, V, v, k, t: da.knn_shapley(X, y, V, v, k=k, tolerance=t),
    "leave one out": lambda X, y, V, v, k, t: da.knn_loo(X, y, V, v, k=k),
    "banzhaf": lambda X, y, V, v, k, t: da.knn_banzhaf(X, y, V, v, k=k, tolerance=t),
    "threshold": lambda X, y, V, v, k, t: da.tknn_shapley(X, y, V, v, tau=float(k), metric="euclidean"),
    "waka": lambda X, y, V, v, k, t: da.waka(X, y, V, v, k=k, tolerance=t),
    "waka, removal": lambda X, y, V, v, k, t: da.waka(X, y, V, v, k=k, variant="removal", tau=0.7, tolerance=t),
    "itself": lambda X, y, V, v, k, t: da.self_shapley(X, y, k=k, tolerance=t),
    "itself, waka": lambda X, y, V, v, k, t: da.self_waka(X, y, k=k, tolerance=t),
    "influence": lambda X, y, V, v, k, t: da.waka_influence(X, y, [0, 2], k=k, tolerance=t),
    "influence of each": lambda X, y, V, v, k, t: da.waka_influence(X, y, [0, 2], k=k, exact=False, tolerance=t),
}


@pytest.mark.parametrize("name", AT_THE_EDGE)
def test_no_formula_looks_beyond_its_arrays(name, monkeypatch):
    """What is compiled does not check where it reads; the same lines in plain Python do."""
    from datassay.value import kernels

    X, V = np.array([[0.0], [1.0], [2.0], [2.0], [5.0], [9.0]]), np.array([[1.4], [8.0]])
    y, v = np.array([0, 1, 1, 0, 1, 0]), np.array([1, 0])
    asked = [(k, tolerance) for k in (1, 2, 5, 6, 9) for tolerance in (None, 2.0, 0.5, 0.3, 0.01)]
    compiled = [AT_THE_EDGE[name](X, y, V, v, *one).values for one in asked]
    for kernel, function in vars(kernels).items():
        if hasattr(function, "py_func"):
            monkeypatch.setattr(kernels, kernel, function.py_func)
    plain = [AT_THE_EDGE[name](X, y, V, v, *one).values for one in asked]
    np.testing.assert_allclose(plain, compiled, rtol=0, atol=EXACT)
