"""Private threshold values: the right release, evaluated rightly, paid for before it is drawn."""

import math

import numpy as np
import pytest

import datassay as da
from datassay.privacy import BudgetExceededError, Ledger, private_tknn_shapley, releases, total_epsilon


def problem(seed=0, n=60, m=8):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.integers(0, 3, n), rng.normal(size=(m, 3)), rng.integers(0, 3, m)


@pytest.fixture
def silent(monkeypatch):
    """No noise: what is released are the counts themselves."""
    monkeypatch.setattr(releases, "add_noise", lambda values, *_: np.array(values))


def test_without_noise_private_values_are_the_values(silent):
    for seed in range(10):
        data = problem(seed)
        for tau in (-0.9, -0.2, 0.5):
            private = private_tknn_shapley(*data, tau=tau, delta=1e-3)
            np.testing.assert_allclose(private.values, da.tknn_shapley(*data, tau=tau).values, rtol=0, atol=1e-13)


def test_released_are_matching_and_other_neighbours(silent):
    X, y, X_val, y_val = problem(3)
    counts = private_tknn_shapley(X, y, X_val, y_val, delta=1e-3).statistics.counts
    unit = [points / np.linalg.norm(points, axis=1, keepdims=True) for points in (X, X_val)]
    near = -(unit[1] @ unit[0].T) <= -0.5
    match = y[None, :] == y_val[:, None]
    np.testing.assert_array_equal(counts, np.stack([(near & match).sum(1), (near & ~match).sum(1)], axis=1))


def by_hand(match, matching, others, classes):
    """SPEC §3 for a record that joins these neighbours, in plain Python."""
    p, c = max(matching, 0), 1 + max(matching, 0) + max(others, 0)
    value = (match - 1 / classes) / c
    if c >= 2:
        value += (match / c - p / (c * (c - 1))) * (sum(1 / j for j in range(1, c + 1)) - 1)
    return value


@pytest.mark.parametrize("sampling", [1.0, 0.3])
def test_every_value_is_a_function_of_the_release_and_the_owners_own_record(sampling, monkeypatch):
    """Joint differential privacy: recomputed here from the released counts, the record, and whether it was sampled."""
    keys = []
    monkeypatch.setattr(releases.secrets, "randbits", lambda bits: keys.append(12345) or 12345)
    X, y, X_val, y_val = problem(5)
    private = private_tknn_shapley(X, y, X_val, y_val, epsilon=2.0, delta=1e-3, sampling=sampling)
    counts, classes = private.statistics.counts, private.statistics.n_classes
    assert len(keys) == 1
    for i in range(len(X)):
        total = 0.0
        for t in range(len(X_val)):
            cosine = X[i] @ X_val[t] / np.linalg.norm(X[i]) / np.linalg.norm(X_val[t])
            if -cosine > -0.5:
                continue
            match = int(y[i] == y_val[t])
            mine = 1 if sampling == 1 else int(releases._sample(12345, t, len(X), sampling)[i])
            total += by_hand(match, counts[t, 0] - mine * match, counts[t, 1] - mine * (1 - match), classes)
        assert private.values[i] == pytest.approx(total / len(X_val), abs=1e-12)


def test_samples_are_poisson_samples():
    n, q = 2000, 0.05
    samples = np.stack([releases._sample(99, row, n, q) for row in range(400)])
    share = samples.mean()
    assert abs(share - q) < 6 * math.sqrt(q * (1 - q) / samples.size)
    # Sizes are binomial, members are independent of each other, and rows of each other.
    assert samples.sum(axis=1).var() == pytest.approx(n * q * (1 - q), rel=0.35)
    assert abs(np.corrcoef(samples[:, 0], samples[:, 1])[0, 1]) < 0.25
    assert len({row.tobytes() for row in samples}) == 400
    assert (samples[:, [0, -1]].sum(axis=0) > 0).all()
    assert releases._sample(1, 0, 50, 1e-9).sum() == 0


def test_a_new_record_is_valued_from_the_release_alone(silent):
    X, y, X_val, y_val = problem(7)
    private = private_tknn_shapley(X, y, X_val, y_val, delta=1e-3)
    rng = np.random.default_rng(1)
    for label in (0, 1, 2):
        x = rng.normal(size=3)
        joined = da.tknn_shapley(np.vstack([X, x]), np.append(y, label), X_val, y_val).values[-1]
        assert private.value_record(x, label) == pytest.approx(joined, abs=1e-13)


def test_noise_is_drawn_once_and_differs_between_releases():
    data = problem()
    first, second = (private_tknn_shapley(*data, delta=1e-3).statistics.counts for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("neighbours", "sampling", "expected"),
    [
        # μ² = (number of counts that move by one) / σ²: 8 validation points, twice as many when a record is replaced.
        ("add-remove", 1.0, 8),
        ("replace", 1.0, 16),
    ],
)
def test_the_noise_fits_what_one_record_can_change(neighbours, sampling, expected):
    from scipy.optimize import brentq

    from datassay.privacy.accounting import gaussian_delta

    private = private_tknn_shapley(*problem(), epsilon=0.7, delta=1e-4, neighbours=neighbours, sampling=sampling)
    mu = brentq(lambda mu: gaussian_delta(mu, 0.7) - 1e-4, 1e-3, 5)
    assert private.parameters["sigma"] == pytest.approx(math.sqrt(expected) / mu, rel=2e-3)
    assert private.guarantee.epsilon <= 0.7
    assert private.guarantee.neighbours == neighbours
    assert private.guarantee.audience == "owner"


def test_scattered_validation_points_need_less_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    X_val, y_val = np.array([[0.0, 0], [100, 0], [0, 100], [100, 100]]), np.array([0, 1, 0, 1])
    plain, spread = (
        private_tknn_shapley(X, y, X_val, y_val, tau=5.0, metric="euclidean", geometry=g, delta=1e-4)
        for g in (False, True)
    )
    assert spread.parameters["sigma"] == pytest.approx(plain.parameters["sigma"] / 2, rel=0.02)


class TestLedger:
    def test_a_release_is_paid_for_and_served_again_at_no_cost(self, tmp_path, monkeypatch):
        ledger = Ledger(tmp_path / "l", epsilon=1.0, delta=1e-4)
        for sampling in (1.0, 0.5):
            first = private_tknn_shapley(*problem(), epsilon=0.3, delta=1e-4, sampling=sampling, ledger=ledger)
            spent = ledger.spent()

            def never(*_):
                raise AssertionError("noise drawn for a release that was already made")

            with monkeypatch.context() as patch:
                patch.setattr(releases, "add_noise", never)
                again = private_tknn_shapley(*problem(), epsilon=0.3, delta=1e-4, sampling=sampling, ledger=ledger)
            assert again.values.tobytes() == first.values.tobytes()
            assert ledger.spent() == spent
            assert "served again" in again.notes[-1]
        assert ledger.spent() == total_epsilon([c for line in ledger.releases() for c in line.costs], 1e-4)

    def test_nothing_is_drawn_when_the_budget_is_spent(self, tmp_path, monkeypatch):
        ledger = Ledger(tmp_path / "l", epsilon=0.5, delta=1e-4)

        def never(*_):
            raise AssertionError("noise drawn before the ledger was asked")

        monkeypatch.setattr(releases, "add_noise", never)
        with pytest.raises(BudgetExceededError, match="Nothing was drawn"):
            private_tknn_shapley(*problem(), epsilon=1.0, delta=1e-4, ledger=ledger)
        assert ledger.releases() == []

    def test_the_export_holds_neither_the_sample_nor_the_noise(self, tmp_path):
        ledger = Ledger(tmp_path / "l", epsilon=1.0, delta=1e-4)
        private = private_tknn_shapley(*problem(), epsilon=0.5, delta=1e-4, sampling=0.5, ledger=ledger)
        told = ledger.to_dict()["releases"][0]
        assert "secret" not in told
        assert told["result"] == str(private.statistics.counts.tolist())
        assert ledger.releases()[0].secret not in str(told)

    def test_other_data_or_another_question_is_another_release(self, tmp_path):
        ledger = Ledger(tmp_path / "l", epsilon=3.0, delta=1e-4)
        X, y, X_val, y_val = problem()
        private_tknn_shapley(X, y, X_val, y_val, epsilon=0.3, delta=1e-4, ledger=ledger)
        private_tknn_shapley(X[1:], y[1:], X_val, y_val, epsilon=0.3, delta=1e-4, ledger=ledger)
        private_tknn_shapley(X, y, X_val, y_val, tau=-0.4, epsilon=0.3, delta=1e-4, ledger=ledger)
        assert len(ledger.releases()) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0}, "epsilon must be"),
        ({"delta": 0}, "delta must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"sampling": 0}, "sampling must be"),
        ({"sampling": 1.1}, "sampling must be"),
        ({"neighbours": "near"}, "neighbours must be one of"),
        ({"tau": math.nan}, "tau must be"),
        ({"X_val": None, "y_val": None}, "X_val must be given: a public validation set"),
        ({"metric": "precomputed", "X": None, "X_val": np.zeros((8, 60))}, "private values need features"),
    ],
)
def test_bad_arguments_are_named(given, message):
    data = dict(zip(("X", "y", "X_val", "y_val"), problem(), strict=True)) | given
    with pytest.raises(da.InputError, match=message):
        private_tknn_shapley(**data)


def test_a_validation_set_out_of_the_training_data_is_refused():
    X, y, *_ = problem()
    with pytest.raises(da.InputError, match="every validation record is also a training record"):
        private_tknn_shapley(X, y, X[:5], y[:5])


def test_a_delta_too_large_for_the_data_is_noted():
    assert "is not below 1/N" in private_tknn_shapley(*problem(), delta=0.05).notes[-1]


def test_private_values_are_another_type_and_frozen(tmp_path):
    private = private_tknn_shapley(*problem(), delta=1e-3)
    assert not isinstance(private, da.Values)
    with pytest.raises(ValueError, match="read-only"):
        private.values[0] = 1
    assert list(private.to_frame("pandas").columns) == ["id", "private_value", "label"]
    with pytest.raises(da.InputError, match="of kind 'private values', not values"):
        da.load_result(private.save(tmp_path / "p.parquet"))


def test_the_disjoint_histogram_keeps_its_quality_at_a_small_epsilon(shared_data):
    """SPEC §10: at ε = 0.1, δ = 1e-4, q = 0.01 at least 0.910, 0.822, 0.945, 0.945 (mean of several runs)."""
    from datassay.evaluate.reproductions import detection_problem

    tau = float(np.nextafter(-0.5, -1))
    for name, least in (("2dplanes", 0.910), ("phoneme", 0.822), ("cpu", 0.945), ("fraud", 0.945)):
        p = detection_problem(name, "mislabelled")
        found = [
            da.detect_errors(
                private_tknn_shapley(p.X, p.y, p.X_val, p.y_val, tau, epsilon=0.1, delta=1e-4, sampling=0.01).values,
                p.is_error,
            ).auroc
            for _ in range(20)
        ]
        # Four standard errors below the mark: noise is never the same twice, and a test must not fail by chance. The
        # published release (0.883, 0.819, 0.932, 0.941) would fail here for 2dplanes and cpu.
        assert np.mean(found) > least - 4 * 0.006 / math.sqrt(20), (name, found)
