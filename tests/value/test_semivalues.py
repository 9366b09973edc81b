"""Values by any model equal their definitions where all coalitions can be visited, and hold what they promise."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from fractions import Fraction
from hashlib import sha256
from itertools import combinations, pairwise
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import datassay as da
from datassay import oracle
from datassay.value.models import tally
from datassay.value.models.orders import orders_of

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import a test

EXACT = 1e-12


# Games whose values are known: a row of X is a player, and the model remembers who is in.


class Players(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.members_ = frozenset(X[:, 0].astype(int).tolist())
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


class Slow(Players):
    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def fit(self, X, y):
        time.sleep(self.seconds)
        return super().fit(X, y)


class Interrupts(Players):
    """Raises KeyboardInterrupt at one fit, counted over all copies."""

    left = math.inf

    def fit(self, X, y):
        Interrupts.left -= 1
        if Interrupts.left == 0:
            raise KeyboardInterrupt
        return super().fit(X, y)


class Dies(Players):
    """Takes its process down, unless that is the one with the tests: once, always, or with certain members."""

    def __init__(self, home=0, flag=None, members=None):
        self.home, self.flag, self.members = home, flag, members

    def fit(self, X, y):
        super().fit(X, y)
        chosen = self.members is None or self.members_ == frozenset(self.members)
        if os.getpid() != self.home and chosen and not (self.flag and os.path.exists(self.flag)):
            if self.flag:
                Path(self.flag).touch()
            os._exit(1)
        return self


class Middles(ClassifierMixin, BaseEstimator):
    """The class whose mean is nearer: quick to fit many times; of one class, that class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.middles_ = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((X[:, None] - self.middles_) ** 2).sum(axis=2).argmin(axis=1)]


class Breaks(Players):
    def fit(self, X, y):
        raise RuntimeError("the oven is cold\nand so on")


def additive(*weights):
    return lambda S: sum((Fraction(weights[i]) for i in S), Fraction(0))


def airport(*costs):
    return lambda S: max((Fraction(costs[i]) for i in S), default=Fraction(0))


def majority(n):
    return lambda S: Fraction(2 * len(S) > n)


def weighted_votes(quota, *weights):
    return lambda S: Fraction(sum(weights[i] for i in S) >= quota)


def gloves(left, right):
    return lambda S: Fraction(min(sum(i < left for i in S), sum(i >= left for i in S)))


# Players and worth.
GAMES = {
    "gloves": (5, gloves(2, 3)),
    "airport": (6, airport(1, 1, 3, 4, 7, 9)),
    "majority": (7, majority(7)),
    "votes": (6, weighted_votes(9, 5, 4, 3, 2, 1, 1)),
    "additive": (5, additive(3, -1, 0, Fraction(1, 2), 8)),
}


def scorer_of(utility, n):
    worth = {}
    for size in range(n + 1):
        for S in combinations(range(n), size):
            worth[frozenset(S)] = float(utility(frozenset(S)))
    return lambda model, X, y: worth[model.members_]


def play(method, n, utility, *, model=None, scoring=None, **options):
    """Value the players of a game; nobody is worth 0."""
    X = np.arange(float(n))[:, None]
    options = {"empty": 0.0, "n_jobs": 1} | options
    return method(
        model or Players(), X, np.arange(n) % 2, X[:1], [0], scoring=scoring or scorer_of(utility, n), **options
    )


def beta(a, b):
    """Euler's beta function of whole numbers."""
    return Fraction(math.factorial(a - 1) * math.factorial(b - 1), math.factorial(a + b - 1))


def beta_values(n, utility, a, b):
    """(1/n) Σ_j C(n−1, j−1) w(j) Δ_j, w(j) = n B(j+β−1, n−j+α) / B(α, β): Kwon & Zou 2022, equations 3 and 5."""
    values = []
    for i in range(n):
        others = [p for p in range(n) if p != i]
        total = Fraction(0)
        for j in range(1, n + 1):
            sets = [frozenset(S) for S in combinations(others, j - 1)]
            added = sum((utility(S | {i}) - utility(S) for S in sets), Fraction(0)) / len(sets)
            total += math.comb(n - 1, j - 1) * n * beta(j + b - 1, n - j + a) / beta(a, b) * added
        values.append(total / n)
    return values


def floats(fractions):
    return np.array([float(value) for value in fractions])


# Real models.


def records(n=8, m=40, d=3, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    tilt = rng.normal(size=d)
    y, y_val = ((A @ tilt + noise * rng.normal(size=len(A)) > 0).astype(int) for A in (X, X_val))
    y[:2] = 0, 1
    y_val[:2] = 0, 1
    return X, y, X_val, y_val


def by_fits(model, X, y, X_val, y_val, score, empty, groups=None):
    """The worth of a coalition, by fitting a fresh model to it; one class alone is worth as much as nobody."""
    owners = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    known = {}

    def utility(S):
        if S not in known:
            rows = np.isin(owners, list(S))
            none = not rows.any() or (isinstance(y[0], np.integer) and len(set(y[rows])) < 2)
            known[S] = Fraction(empty if none else float(score(clone(model).fit(X[rows], y[rows]), X_val, y_val)))
        return known[S]

    return utility


def accuracy(model, X, y):
    return accuracy_score(y, model.predict(X))


def negative_log_loss(model, X, y):
    return -log_loss(y, model.predict_proba(X))


STUMP = DecisionTreeClassifier(max_depth=2, random_state=0)


def same_bits(a, b):
    for name in ("values", "errors", "lower", "upper"):
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None)
        assert one is None or one.tobytes() == other.tobytes()
    assert (a.coalitions, a.failures, a.stopped) == (b.coalitions, b.failures, b.stopped)


class TestExact:
    @pytest.mark.parametrize("name", GAMES)
    def test_shapley_values_are_those_of_enumeration(self, name):
        values = play(da.data_shapley, *GAMES[name], sampling="exact")
        np.testing.assert_allclose(values.values, floats(oracle.shapley(*GAMES[name])), atol=EXACT)
        assert (values.stopped, values.errors, values.lower, values.upper) == ("exact", None, None, None)
        assert values.coalitions == values.fits == 2 ** GAMES[name][0]

    @pytest.mark.parametrize("name", GAMES)
    def test_banzhaf_values_are_those_of_enumeration(self, name):
        values = play(da.data_banzhaf, *GAMES[name], sampling="exact")
        np.testing.assert_allclose(values.values, floats(oracle.banzhaf(*GAMES[name])), atol=EXACT)

    @pytest.mark.parametrize(("a", "b"), [(16, 1), (4, 1), (1, 1), (1, 4), (2, 3)])
    @pytest.mark.parametrize("name", GAMES)
    def test_beta_values_are_those_of_the_formula(self, name, a, b):
        values = play(da.beta_shapley, *GAMES[name], sampling="exact", alpha=a, beta=b)
        np.testing.assert_allclose(values.values, floats(beta_values(*GAMES[name], a, b)), atol=EXACT)

    def test_beta_1_1_is_shapley(self):
        one = play(da.beta_shapley, *GAMES["votes"], sampling="exact", alpha=1, beta=1)
        other = play(da.data_shapley, *GAMES["votes"], sampling="exact")
        np.testing.assert_allclose(one.values, other.values, atol=EXACT)

    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf, da.beta_shapley, da.leave_one_out])
    def test_where_worth_adds_up_everybody_gets_their_own(self, method):
        weights = 3, -1, 0, 0.5, 8
        values = play(method, 5, additive(*weights))
        np.testing.assert_allclose(values.values, weights, atol=EXACT)

    def test_a_runway_is_shared_by_those_who_need_each_piece(self):
        costs = 1, 1, 3, 4, 7, 9
        shares, before, paid = [], 0, Fraction(0)
        for i, cost in enumerate(costs):
            paid += Fraction(cost - before, len(costs) - i)
            before = cost
            shares.append(paid)
        values = play(da.data_shapley, 6, airport(*costs))
        np.testing.assert_allclose(values.values, floats(shares), atol=EXACT)

    def test_equal_votes_share_alike(self):
        values = play(da.data_shapley, 7, majority(7))
        np.testing.assert_allclose(values.values, 1 / 7, atol=EXACT)

    def test_the_only_left_glove_is_worth_four_right_ones(self):
        values = play(da.data_shapley, 3, gloves(1, 2))
        np.testing.assert_allclose(values.values, [2 / 3, 1 / 6, 1 / 6], atol=EXACT)

    @pytest.mark.parametrize("sampling", ["plain", "antithetic", "stratified", "exact"])
    def test_a_single_player_gets_everything(self, sampling):
        values = play(da.data_shapley, 1, lambda S: Fraction(5), empty=2.0, sampling=sampling, max_coalitions=20)
        assert values.values.tolist() == [3.0]

    def test_empty_sets_the_worth_of_nobody(self):
        def utility(S):
            return Fraction(len(S) ** 2) if S else Fraction(-7)

        values = play(da.data_shapley, 4, utility, empty=-7)
        np.testing.assert_allclose(values.values, floats(oracle.shapley(4, utility)), atol=EXACT)
        np.testing.assert_allclose(values.values.sum(), 16 + 7, atol=EXACT)
        assert values.parameters["empty"] == -7

    def test_auto_is_exact_just_where_all_coalitions_are_allowed(self):
        for method in (da.data_shapley, da.data_banzhaf, da.beta_shapley):
            assert play(method, 6, majority(6), max_coalitions=64).stopped == "exact"
            assert play(method, 6, majority(6), max_coalitions=63).stopped == "coalitions"

    def test_all_coalitions_are_refused_just_where_they_are_more_than_allowed(self):
        with pytest.raises(da.UsageError, match="max_coalitions=31 is not enough for sampling='exact'.* 32 coalitions"):
            play(da.data_shapley, 5, majority(5), sampling="exact", max_coalitions=31)
        for enough in ({"max_coalitions": 32}, {"max_seconds": 60.0}, {}):
            assert play(da.data_shapley, 5, majority(5), sampling="exact", **enough).stopped == "exact"

    def test_too_many_players_for_all_coalitions_are_told(self):
        with pytest.raises(da.InputError, match="at most 24 players"):
            play(da.data_shapley, 25, None, scoring=lambda model, X, y: 1.0, sampling="exact")

    def test_a_classifier_s_values_are_those_of_direct_fits(self):
        X, y, X_val, y_val = records(n=7)
        values = da.data_shapley(
            DecisionTreeClassifier(max_depth=2), X, y, X_val, y_val, seed=0, on_failure="raise", n_jobs=1
        )

        def alone(S):  # a tree can be fitted to one class
            rows = sorted(S)
            return Fraction(accuracy(clone(STUMP).fit(X[rows], y[rows]), X_val, y_val)) if S else Fraction(1, 2)

        np.testing.assert_allclose(values.values, floats(oracle.shapley(7, alone)), atol=EXACT)


# Methods with an interval: (method, options, draws that the options allow).
SAMPLED = {
    "plain": (da.data_shapley, {"sampling": "plain"}, lambda n: 60 * n),
    "antithetic": (da.data_shapley, {"sampling": "antithetic"}, lambda n: 2 * 60 * n),
    "stratified": (da.data_shapley, {"sampling": "stratified"}, lambda n: 4 * 25 * n),
    "banzhaf": (da.data_banzhaf, {"sampling": "plain"}, lambda n: 96),
    "beta(16, 1)": (da.beta_shapley, {"sampling": "plain"}, lambda n: 120 * n),
    "beta(4, 2)": (da.beta_shapley, {"sampling": "antithetic", "alpha": 4, "beta": 2}, lambda n: 2 * 60 * n),
}
TRUTH = {
    "banzhaf": oracle.banzhaf,
    "beta(16, 1)": lambda n, utility: beta_values(n, utility, 16, 1),
    "beta(4, 2)": lambda n, utility: beta_values(n, utility, 4, 2),
}


def held(results, exact):
    """Whether estimates hold the exact values as often as they say, and are right on average."""
    estimates = np.array([result.values for result in results])
    inside = [(result.lower <= exact + EXACT) & (exact - EXACT <= result.upper) for result in results]
    error = estimates.std(axis=0, ddof=1) / math.sqrt(len(results))
    np.testing.assert_array_less(np.abs(estimates.mean(axis=0) - exact), 4 * error + EXACT)
    return np.mean(inside)


class TestIntervals:
    @pytest.mark.parametrize(
        ("name", "game"),
        [
            ("plain", "gloves"),
            ("plain", "airport"),
            ("plain", "majority"),
            ("antithetic", "gloves"),
            ("antithetic", "airport"),
            ("stratified", "gloves"),
            ("stratified", "airport"),
            ("banzhaf", "gloves"),
            ("banzhaf", "airport"),
            ("banzhaf", "votes"),
            ("beta(4, 2)", "gloves"),
        ],
    )
    def test_intervals_hold_the_exact_value_at_their_rate(self, name, game):
        method, options, limit = SAMPLED[name]
        n, utility = GAMES[game]
        exact = floats(TRUTH.get(name, oracle.shapley)(n, utility))
        scoring = scorer_of(utility, n)
        found = [
            play(method, n, utility, scoring=scoring, max_coalitions=limit(n), seed=seed, **options)
            for seed in range(60)
        ]
        assert {result.stopped for result in found} == {"coalitions"}
        assert 0.90 <= held(found, exact) <= 0.995

    @pytest.mark.parametrize("name", SAMPLED)
    @pytest.mark.parametrize("stable", [False, True], ids=["logistic", "stable"])
    def test_intervals_of_a_real_model_hold_the_exact_value_at_their_rate(self, name, stable, tmp_path):
        method, options, limit = SAMPLED[name]
        data = records(n=9, m=50, seed=4)
        model = da.StableLogisticRegression(kappa=2.0, lam=0.05) if stable else LogisticRegression(random_state=0)
        kind = {k: v for k, v in options.items() if k != "sampling"}
        once = {"n_jobs": 1, "cache": tmp_path / "c"}  # there are 512 coalitions, and each is fitted once
        exact = method(model, *data, sampling="exact", **once, **kind).values
        found = [method(model, *data, max_coalitions=limit(9), seed=seed, **once, **options) for seed in range(60)]
        assert sum(result.fits for result in found) == 0
        assert 0.90 <= held(found, exact) <= 0.995

    @pytest.mark.parametrize("sampling", ["plain", "antithetic", "stratified"])
    def test_where_worth_adds_up_every_draw_is_exact(self, sampling):
        values = play(da.data_shapley, *GAMES["additive"], sampling=sampling, max_coalitions=100)
        np.testing.assert_allclose(values.values, [3, -1, 0, 0.5, 8], atol=EXACT)
        assert np.abs(values.upper - values.lower).max() < EXACT

    @pytest.mark.parametrize("sampling", ["plain", "antithetic", "stratified"])
    def test_intervals_reach_as_far_as_student_s_t_says(self, sampling):
        orders = {"plain": 1, "antithetic": 2, "stratified": 4}[sampling]
        for confidence in (0.5, 0.95, 0.99):
            values = play(
                da.data_shapley, *GAMES["votes"], sampling=sampling, max_coalitions=240, confidence=confidence
            )
            draws = 240 // (6 * orders)
            reach = student.ppf((1 + confidence) / 2, draws - 1) * values.errors
            np.testing.assert_allclose(values.upper - values.values, reach)
            np.testing.assert_allclose(values.values - values.lower, reach)
            assert values.confidence == confidence

    def test_an_order_and_its_reverse_are_exact_for_two_players(self):
        values = play(da.data_shapley, 2, weighted_votes(3, 3, 1), sampling="antithetic", max_coalitions=40)
        np.testing.assert_allclose(values.values, [1, 0], atol=EXACT)
        both = play(da.data_shapley, 2, majority(2), sampling="antithetic", max_coalitions=40)
        np.testing.assert_allclose(both.values, [0.5, 0.5], atol=EXACT)


class TestEfficiency:
    @pytest.mark.parametrize("sampling", ["plain", "antithetic", "stratified", "exact"])
    def test_values_add_up_to_what_everybody_adds(self, sampling):
        X, y, X_val, y_val = records(n=8, seed=2)
        for seed in range(3):
            options = {"sampling": sampling, "max_coalitions": 256, "seed": seed, "n_jobs": 1}
            for model in (LogisticRegression(), STUMP):
                values = da.data_shapley(model, X, y, X_val, y_val, **options)
                full = accuracy(clone(model).fit(X, y), X_val, y_val)
                np.testing.assert_allclose(values.values.sum(), full - 0.5, atol=EXACT)
            values = play(da.data_shapley, *GAMES["votes"], empty=0.25, **options)
            np.testing.assert_allclose(values.values.sum(), 1 - 0.25, atol=EXACT)

    def test_truncation_leaves_coalitions_out(self):
        every = play(da.data_shapley, 8, majority(8), sampling="plain", max_coalitions=800)
        cut = play(da.data_shapley, 8, majority(8), sampling="plain", truncation=0.0, max_coalitions=500)
        # An order is followed until it has a majority, which five of eight are.
        assert every.coalitions == 800
        assert cut.coalitions == 500
        np.testing.assert_allclose(cut.values, every.values, atol=EXACT)
        assert any("cut short" in note for note in cut.notes)

    def test_the_nearer_everybody_s_score_is_enough_the_fewer_coalitions(self):
        n, utility = 8, lambda S: Fraction(len(S), 8)
        # In every order, the coalition of k players is worth k/8.
        for truncation, length in ((0.01, 8), (0.13, 7), (0.5, 4), (0.9, 1)):
            values = play(
                da.data_shapley, n, utility, sampling="plain", truncation=truncation, max_coalitions=10 * length
            )
            assert values.coalitions == 10 * length
            np.testing.assert_allclose(values.values.sum(), length / 8, atol=EXACT)

    def test_our_solver_follows_an_order_until_the_score_is_that_of_everybody(self):
        X, y, X_val, y_val = records(n=8, m=60, seed=7)
        model = LogisticRegression(tol=1e-8, max_iter=1000)
        asked = {"sampling": "plain", "truncation": 0.0, "max_coalitions": 30, "n_jobs": 1}
        values = da.data_shapley(model, X, y, X_val, y_val, **asked)
        utility = by_fits(model, X, y, X_val, y_val, accuracy, 0.5)
        everybody, followed, total = utility(frozenset(range(8))), 0, np.zeros(8)
        for draw in range(30):
            order = orders_of(8, "plain", 0, draw)[0].tolist()
            before = Fraction(1, 2)
            for at, player in enumerate(order):
                now = utility(frozenset(order[: at + 1]))
                total[player] += float(now - before)
                before, followed = now, followed + 1
                if now == everybody:
                    break
            if followed == values.coalitions:
                break
        assert 20 < followed == values.coalitions < 8 * (draw + 1)
        np.testing.assert_allclose(values.values, total / (draw + 1), atol=EXACT)

    def test_one_draw_has_no_interval_and_two_have(self):
        # An order of eight is followed until it has a majority, which five are.
        for limit, draws in ((5, 1), (10, 2)):
            values = play(da.data_shapley, 8, majority(8), sampling="plain", truncation=0.0, max_coalitions=limit)
            assert values.coalitions == 5 * draws
            assert (values.lower is None) == (values.errors is None) == (draws == 1)
            assert any("one draw only" in note for note in values.notes) == (draws == 1)

    def test_orders_come_in_pairs_where_two_pairs_are_allowed_or_they_are_cut_short(self):
        for limit, more, expected in (
            (12, {}, "plain"), (23, {}, "plain"), (24, {}, "antithetic"), (12, {"truncation": 0.0}, "antithetic"),
        ):  # fmt: skip
            values = play(da.data_shapley, *GAMES["votes"], max_coalitions=limit, **more)
            assert values.parameters["sampling"] == expected

    @pytest.mark.parametrize(("sampling", "orders"), [("plain", 1), ("antithetic", 2), ("stratified", 4)])
    def test_with_any_score_near_enough_an_order_is_one_coalition(self, sampling, orders):
        n, utility = GAMES["airport"]
        values = play(da.data_shapley, n, utility, sampling=sampling, truncation=1e6, max_coalitions=40)
        assert values.coalitions == 40
        first = [order[0] for draw in range(40 // orders) for order in orders_of(n, sampling, 0, draw)]
        alone = [sum(float(utility({i})) for j in first if j == i) / 40 for i in range(n)]
        np.testing.assert_allclose(values.values, alone, atol=EXACT)


class TestSameBits:
    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf, da.beta_shapley])
    @pytest.mark.parametrize("model", [LogisticRegression(), STUMP], ids=["fast", "scikit-learn"])
    @pytest.mark.parametrize("sampling", ["plain", "exact"])
    def test_any_number_of_workers_and_any_cache_give_the_same_bits(self, method, model, sampling, tmp_path):
        data = records(n=7, seed=5)
        options = {"sampling": sampling, "max_coalitions": 150, "seed": 3}
        one = method(model, *data, n_jobs=1, **options)
        cache = tmp_path / "utilities.db"
        same_bits(one, method(model, *data, n_jobs=2, **options))
        fresh = method(model, *data, n_jobs=1, cache=cache, **options)
        same_bits(one, fresh)
        for jobs in (1, 2):
            again = method(model, *data, n_jobs=jobs, cache=str(cache), **options)
            same_bits(one, again)
            assert again.fits == 0
        assert one.fits == one.coalitions
        assert fresh.fits > 0

    @pytest.mark.parametrize("model", [LogisticRegression(), STUMP], ids=["fast", "scikit-learn"])
    @pytest.mark.parametrize("sampling", ["antithetic", "stratified"])
    def test_truncated_orders_have_the_same_bits_too(self, model, sampling, tmp_path):
        data = records(n=12, seed=6)
        options = {"sampling": sampling, "truncation": 0.05, "max_coalitions": 300, "seed": 3}
        one = da.data_shapley(model, *data, n_jobs=1, **options)
        same_bits(one, da.data_shapley(model, *data, n_jobs=2, **options))
        same_bits(one, da.data_shapley(model, *data, n_jobs=2, cache=tmp_path / "c", **options))
        again = da.data_shapley(model, *data, n_jobs=1, cache=tmp_path / "c", **options)
        same_bits(one, again)
        assert again.fits == 0

    def test_leaving_one_out_and_bags_have_the_same_bits_with_workers(self):
        X, y, X_val, y_val = records(n=40, seed=5)
        for model in (LogisticRegression(), STUMP):
            one, two = (da.leave_one_out(model, X, y, X_val, y_val, n_jobs=jobs) for jobs in (1, 2))
            same_bits(one, two)
            one, two = (da.data_oob(model, X, y, max_bags=60, n_jobs=jobs) for jobs in (1, 2))
            same_bits(one, two)

    def test_a_seed_decides_and_another_seed_draws_others(self):
        runs = [
            play(da.data_shapley, *GAMES["votes"], sampling="plain", max_coalitions=120, seed=seed)
            for seed in (1, 1, 2)
        ]
        same_bits(runs[0], runs[1])
        assert runs[0].values.tobytes() != runs[2].values.tobytes()


class TestCache:
    options = {"sampling": "plain", "max_coalitions": 80, "n_jobs": 1}

    def test_a_cache_of_other_data_or_another_model_is_not_used(self, tmp_path):
        X, y, X_val, y_val = records(n=7, seed=5)
        cache = tmp_path / "c.db"
        turned, shifted = 1 - y, X + 1
        others = [
            (STUMP, X, y, X_val, y_val, {}),
            (STUMP, X, turned, X_val, y_val, {}),
            (STUMP, shifted, y, X_val, y_val, {}),
            (STUMP, X, y, X_val[::-1], y_val, {}),
            (STUMP, X, y, X_val, 1 - y_val, {}),
            (DecisionTreeClassifier(max_depth=1, random_state=0), X, y, X_val, y_val, {}),
            (STUMP, X, y, X_val, y_val, {"scoring": "balanced_accuracy"}),
            (STUMP, X, y, X_val, y_val, {"groups": [0, 0, 1, 1, 2, 2, 3]}),
            (STUMP, X, y, X_val, y_val, {"groups": [0, 1, 1, 2, 2, 3, 3]}),
            (LogisticRegression(C=0.01), X, y, X_val, y_val, {}),
            (LogisticRegression(C=100), X, y, X_val, y_val, {}),
            (LogisticRegression(C=100), X, y, X_val, y_val, {"fast": False}),
        ]
        plain = [da.data_shapley(*data, **self.options | more) for *data, more in others]
        for again in (False, True):
            for (*data, more), expected in zip(others, plain, strict=True):
                found = da.data_shapley(*data, **self.options | more, cache=cache)
                same_bits(found, expected)
                assert (found.fits == 0) == again

    def test_a_cache_of_another_score_is_not_used(self, tmp_path):
        def power(exponent):
            def score(model, X, y):
                return float(len(model.members_)) ** exponent

            return score

        for exponent in (1, 2):  # functions that read alike, and differ in what they remember
            values = play(da.data_shapley, 5, None, scoring=power(exponent), cache=tmp_path / "c", sampling="exact")
            np.testing.assert_allclose(values.values.sum(), 5**exponent, atol=EXACT)
            np.testing.assert_allclose(values.values, 5 ** (exponent - 1), atol=EXACT)

    def test_failures_come_out_of_a_cache_as_they_went_in(self, tmp_path):
        data = records(n=7, seed=5)
        for model in (LogisticRegression(), LogisticRegression(solver="liblinear")):
            runs = [da.data_shapley(model, *data, cache=tmp_path / "c", **self.options) for _ in range(2)]
            same_bits(*runs)
            assert runs[0].failures > 0
            assert runs[1].fits == 0
            assert runs[0].notes == runs[1].notes

    def test_a_shorter_run_is_the_beginning_of_a_longer_one(self, tmp_path):
        data = records(n=8, seed=5)
        da.data_shapley(STUMP, *data, sampling="plain", max_coalitions=200, n_jobs=1, cache=tmp_path / "c")
        longer = da.data_shapley(STUMP, *data, sampling="plain", max_coalitions=400, n_jobs=1, cache=tmp_path / "c")
        assert 0 < longer.fits <= 200
        same_bits(longer, da.data_shapley(STUMP, *data, sampling="plain", max_coalitions=400, n_jobs=1))

    def test_a_checkpoint_has_its_own_cache(self, tmp_path):
        n, utility = GAMES["votes"]
        asked = {"scoring": scorer_of(utility, n), "sampling": "exact", "checkpoint": tmp_path / "k"}
        first, again = (play(da.data_shapley, n, utility, **asked) for _ in range(2))
        same_bits(first, again)
        assert (first.fits, again.fits) == (63, 0)  # nobody is no fit
        with pytest.raises(da.UsageError, match="leave out one of cache and checkpoint"):
            play(da.data_shapley, n, utility, cache=tmp_path / "c", **asked)

    def test_a_file_that_is_no_database_is_refused_and_left_alone(self, tmp_path):
        notes = tmp_path / "notes.txt"
        notes.write_text("Dear diary, " * 500)
        with pytest.raises(da.InputError, match="cannot be used as a cache"):
            play(da.data_shapley, *GAMES["votes"], cache=notes)
        assert notes.read_text() == "Dear diary, " * 500

    @pytest.mark.parametrize("where", [".", "nowhere/c.db"])
    def test_a_cache_that_cannot_be_there_is_refused(self, tmp_path, where):
        with pytest.raises(da.InputError, match="cache"):
            play(da.data_shapley, *GAMES["votes"], cache=tmp_path / where)


class TestFast:
    @pytest.mark.parametrize("intercept", [True, False])
    @pytest.mark.parametrize("C", [0.1, 10])
    @pytest.mark.parametrize("names", [(0, 1), ("no", "yes")])
    def test_our_solver_gives_scikit_learn_s_values(self, intercept, C, names):
        X, y, X_val, y_val = records(n=7, m=60, seed=7)
        y, y_val = np.array(names)[y], np.array(names)[y_val]
        model = LogisticRegression(C=C, fit_intercept=intercept, tol=1e-8, max_iter=1000)
        for scoring, atol in (("accuracy", EXACT), ("neg_log_loss", 1e-5)):
            fast, slow = (
                da.data_shapley(model, X, y, X_val, y_val, scoring=scoring, fast=fast, sampling="exact", n_jobs=1)
                for fast in (True, False)
            )
            np.testing.assert_allclose(fast.values, slow.values, atol=atol)
            assert fast.failures == slow.failures
            assert fast.parameters["full"] == pytest.approx(slow.parameters["full"], abs=atol)
            assert any("Newton" in note for note in fast.notes)
            assert not any("Newton" in note for note in slow.notes)

    def test_our_solver_gives_the_values_of_direct_fits(self):
        X, y, X_val, y_val = records(n=6, m=30, seed=8)
        model = LogisticRegression(tol=1e-10, max_iter=10_000)
        utility = by_fits(model, X, y, X_val, y_val, negative_log_loss, -math.log(2))
        values = da.data_banzhaf(model, X, y, X_val, y_val, scoring="neg_log_loss", n_jobs=1)
        np.testing.assert_allclose(values.values, floats(oracle.banzhaf(6, utility)), atol=1e-6)

    def test_separable_records_and_many_features_do_not_trouble_our_solver(self):
        rng = np.random.default_rng(0)
        X, X_val = rng.normal(size=(6, 20)) * 30, rng.normal(size=(20, 20)) * 30
        y, y_val = (X[:, 0] > 0).astype(int), (X_val[:, 0] > 0).astype(int)
        y[0], y[1] = 0, 1
        model = LogisticRegression(C=10, tol=1e-10, max_iter=100_000)
        fast, slow = (
            da.data_shapley(model, X, y, X_val, y_val, scoring="neg_log_loss", fast=fast, n_jobs=1)
            for fast in (True, False)
        )
        assert fast.failures == slow.failures
        np.testing.assert_allclose(fast.values, slow.values, rtol=1e-3, atol=1e-3)

    @pytest.mark.parametrize(
        "model",
        [
            LogisticRegression(class_weight="balanced"),
            LogisticRegression(solver="liblinear"),
            LogisticRegression(C=np.inf),
        ],
        ids=["class weights", "liblinear", "no penalty"],
    )
    def test_what_our_solver_does_not_minimise_is_left_to_scikit_learn(self, model):
        X, y, X_val, y_val = records(n=6, seed=9, noise=4.0)
        fast, slow = (da.leave_one_out(model, X, y, X_val, y_val, fast=fast, n_jobs=1) for fast in (True, False))
        assert not any("Newton" in note for note in fast.notes)
        same_bits(fast, slow)

    def test_more_classes_are_left_to_scikit_learn(self):
        X, y, X_val, y_val = records(n=8, seed=9)
        y, y_val = y + (X[:, 0] > 0.5), y_val + (X_val[:, 0] > 0.5)
        values = da.leave_one_out(LogisticRegression(), X, y, X_val, y_val, n_jobs=1)
        assert values.parameters["empty"] == pytest.approx(1 / 3)
        assert not any("Newton" in note for note in values.notes)

    def test_scikit_learn_s_solver_starts_from_the_model_of_all_records(self):
        """So a coalition of nearly all takes fewer steps than from nothing; worth here is how many."""
        X, y, X_val, y_val = records(n=14, seed=9)
        model = LogisticRegression(tol=1e-8)
        values = da.leave_one_out(
            model, X, y, X_val, y_val, scoring=lambda model, X, y: float(model.n_iter_[0]), empty=0.0, n_jobs=1
        )
        taken = values.parameters["full"] - values.values
        from_nothing = [clone(model).fit(np.delete(X, i, 0), np.delete(y, i)).n_iter_[0] for i in range(14)]
        assert values.parameters["full"] == clone(model).fit(X, y).n_iter_[0]
        assert np.mean(taken) < np.mean(from_nothing)


class TestOwners:
    names = np.array(["Zoe", "Ann", "Bob", "Zoe", "Ann", "Zoe", "Eve", "Bob", "Zoe", "Eve"])

    @pytest.mark.parametrize("model", [LogisticRegression(tol=1e-8, max_iter=1000), STUMP], ids=["fast", "tree"])
    @pytest.mark.parametrize(
        ("method", "truth"), [(da.data_shapley, oracle.shapley), (da.data_banzhaf, oracle.banzhaf)]
    )
    def test_an_owner_s_value_is_that_of_the_game_of_owners(self, model, method, truth):
        X, y, X_val, y_val = records(n=10, seed=11)
        y[self.names == "Bob"] = 0, 1
        y[self.names == "Ann"] = 1, 0
        y[self.names == "Eve"] = 0, 1
        y[self.names == "Zoe"] = 0, 1, 1, 0
        utility = by_fits(model, X, y, X_val, y_val, accuracy, 0.5, self.names)
        values = method(model, X, y, X_val, y_val, groups=self.names, n_jobs=1)
        np.testing.assert_allclose(values.values, floats(truth(4, utility)), atol=EXACT)
        assert values.ids.tolist() == ["Ann", "Bob", "Eve", "Zoe"]
        assert values.sizes.tolist() == [2, 2, 2, 4]
        assert values.labels is None
        assert values.parameters["n_records"] == 10
        assert values.of("Eve") == values.values[2]
        assert values.failures == 0

    def test_an_owner_s_sampled_values_add_up(self):
        X, y, X_val, y_val = records(n=10, seed=11)
        values = da.data_shapley(
            STUMP, X, y, X_val, y_val, groups=self.names.tolist(), sampling="stratified", max_coalitions=100, n_jobs=1
        )
        full = accuracy(clone(STUMP).fit(X, y), X_val, y_val)
        np.testing.assert_allclose(values.values.sum(), full - 0.5, atol=EXACT)

    def test_an_owner_of_one_record_each_is_that_record(self):
        data = records(n=6, seed=12)
        one = da.data_shapley(STUMP, *data, n_jobs=1)
        other = da.data_shapley(STUMP, *data, groups=[10, 11, 12, 13, 14, 15], n_jobs=1)
        assert one.values.tobytes() == other.values.tobytes()
        assert other.ids.tolist() == [10, 11, 12, 13, 14, 15]
        assert other.sizes.tolist() == [1] * 6
        assert one.sizes is None

    def test_the_summary_speaks_of_owners(self):
        values = da.data_shapley(STUMP, *records(n=6, seed=12), groups=[0, 0, 1, 1, 2, 2], n_jobs=1)
        assert "such an owner does more harm than good" in values.summary()

    def test_owners_may_be_a_column_set_aside(self):
        X, y, X_val, y_val = records(n=10, seed=11)
        frame, frame_val = (
            pd.DataFrame(A, columns=["a", "b", "c"]).assign(y=np.array(["no", "yes"])[labels])
            for A, labels in ((X, y), (X_val, y_val))
        )
        train = da.read_table(frame.assign(owner=self.names), label="y", ignore=["owner"], scale="none")
        validation = da.read_table(frame_val, label="y", scale="none")
        values = da.data_shapley(STUMP, train, X_val=validation, groups="owner", n_jobs=1)
        expected = da.data_shapley(STUMP, X, y, X_val, y_val, groups=self.names, n_jobs=1)
        np.testing.assert_allclose(values.values, expected.values, atol=EXACT)
        assert values.ids.tolist() == ["Ann", "Bob", "Eve", "Zoe"]
        assert values.sizes.tolist() == [2, 2, 2, 4]

    def test_a_column_that_is_a_feature_or_is_not_there_cannot_name_owners(self):
        X, y, _, _ = records(n=10, seed=11)
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, owner=self.names)
        table = da.read_table(frame, label="y", ignore=["owner"])
        with pytest.raises(da.InputError, match="'a' is a feature"):
            da.data_shapley(STUMP, table, X_val=table, groups="a", n_jobs=1)
        with pytest.raises(da.InputError, match="'ownr'"):
            da.data_shapley(STUMP, table, X_val=table, groups="ownr", n_jobs=1)
        with pytest.raises(da.InputError, match="X is no Table"):
            da.data_shapley(STUMP, X, y, X, y, groups="owner", n_jobs=1)

    @pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT], ids=str)
    def test_a_record_without_an_owner_is_named(self, missing):
        X, y, X_val, y_val = records(n=4)
        for groups in (["a", "b", missing, "a"], pd.Series(["a", "b", missing, "a"], dtype=object)):
            with pytest.raises(da.InputError, match="no owner in 1 of 4 records, first at row 2"):
                da.data_shapley(STUMP, X, y, X_val, y_val, groups=groups, n_jobs=1)

    def test_a_number_that_is_none_is_no_owner(self):
        X, y, X_val, y_val = records(n=4)
        with pytest.raises(da.InputError, match="no owner in 1 of . records, first at row 1"):
            da.data_shapley(STUMP, X, y, X_val, y_val, groups=np.array([1.0, math.nan, 2.0, 2.0]), n_jobs=1)

    @pytest.mark.parametrize("groups", [["a", "b"], [["a"], ["b"], ["c"], ["d"]], []])
    def test_every_record_needs_an_owner(self, groups):
        X, y, X_val, y_val = records(n=4)
        with pytest.raises(da.InputError, match="one owner for each of the 4 records"):
            da.data_shapley(STUMP, X, y, X_val, y_val, groups=groups, n_jobs=1)


class TestFailures:
    @pytest.mark.parametrize("fast", [True, False])
    def test_one_class_alone_is_worth_as_much_as_nobody_and_is_counted(self, fast):
        X, y, X_val, y_val = records(n=6, seed=13)
        model = LogisticRegression(tol=1e-8, max_iter=1000)
        utility = by_fits(model, X, y, X_val, y_val, accuracy, 0.5)
        values = da.data_shapley(model, X, y, X_val, y_val, sampling="exact", fast=fast, n_jobs=1)
        np.testing.assert_allclose(values.values, floats(oracle.shapley(6, utility)), atol=EXACT)
        ones = int(y.sum())
        assert values.failures == 2**ones - 1 + 2 ** (6 - ones) - 1  # nobody at all is no failure
        assert any(f"{values.failures} of 64 coalitions had no model" in note for note in values.notes)
        assert any("class" in note for note in values.notes)

    @pytest.mark.parametrize("fast", [True, False])
    @pytest.mark.parametrize("jobs", [1, 2])
    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf])
    def test_it_is_an_error_if_failures_are_to_be(self, method, fast, jobs):
        data = records(n=6, seed=13)
        with pytest.raises(da.InputError, match="cannot be fitted to a coalition"):
            method(LogisticRegression(), *data, on_failure="raise", sampling="exact", fast=fast, n_jobs=jobs)

    @pytest.mark.parametrize("fast", [True, False])
    def test_nobody_at_all_is_no_failure_even_where_failures_are_errors(self, fast):
        X, y, X_val, y_val = records(n=8, seed=13)
        y[:] = 0, 1, 0, 1, 0, 1, 0, 1
        owners = [0, 0, 1, 1, 2, 2, 3, 3]  # each of them has both classes
        options = {"groups": owners, "sampling": "exact", "fast": fast, "n_jobs": 1}
        expected = da.data_shapley(LogisticRegression(), X, y, X_val, y_val, **options)
        values = da.data_shapley(LogisticRegression(), X, y, X_val, y_val, on_failure="raise", **options)
        same_bits(values, expected)
        assert values.failures == 0

    def test_a_sampled_coalition_of_nobody_is_no_failure(self):
        # Of 320 coalitions of three players, some are empty.
        values = play(da.data_banzhaf, 3, majority(3), sampling="plain", max_coalitions=320)
        assert values.failures == 0
        assert values.notes == ()

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_a_score_that_is_no_number_is_worth_as_much_as_nobody(self, bad):
        def utility(S):
            return Fraction(3) if len(S) in (0, 2) else Fraction(sum(S))

        def score(model, X, y):
            return bad if len(model.members_) == 2 else float(sum(model.members_))

        values = play(da.data_shapley, 5, None, scoring=score, empty=3.0, sampling="exact")
        np.testing.assert_allclose(values.values, floats(oracle.shapley(5, utility)), atol=EXACT)
        assert values.failures == math.comb(5, 2)
        assert any("10 of 32 coalitions had no model" in note and str(bad) in note for note in values.notes)
        sampled = play(da.data_shapley, 5, None, scoring=score, empty=3.0, sampling="plain", max_coalitions=50)
        assert sampled.failures == 10  # one an order
        with pytest.raises(da.InputError, match="not a number"):
            play(da.data_shapley, 5, None, scoring=score, on_failure="raise")

    def test_a_score_that_raises_is_a_failure_with_its_reason(self):
        def score(model, X, y):
            if model.members_ == {0}:
                raise ZeroDivisionError("nothing to divide by")
            return float(len(model.members_))

        values = play(da.data_shapley, 3, None, scoring=score)
        assert values.failures == 1
        assert any("nothing to divide by" in note for note in values.notes)
        with pytest.raises(da.InputError, match="nothing to divide by"):
            play(da.data_shapley, 3, None, scoring=score, on_failure="raise")

    def test_a_model_that_fits_nothing_is_told_with_its_reason(self):
        with pytest.raises(da.InputError, match="cannot be fitted to all 4 records: the oven is cold$"):
            play(da.data_shapley, 4, majority(4), model=Breaks())

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_a_score_that_is_never_a_number_is_told(self, bad):
        with pytest.raises(da.InputError, match=f"the score of the model of all 4 records is {bad}"):
            play(da.data_shapley, 4, None, scoring=lambda model, X, y: bad)

    def test_one_class_in_all_of_the_data_is_told(self):
        X, _, X_val, y_val = records(n=6)
        for fast in (True, False):
            with pytest.raises(da.InputError, match="class"):
                da.data_shapley(LogisticRegression(), X, np.zeros(6, int), X_val, y_val, fast=fast, n_jobs=1)

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (LogisticRegression, r"the class LogisticRegression; write LogisticRegression\(\)"),
            (object(), "fit and predict, got object"),
            (None, "fit and predict, got NoneType$"),
            (
                np.eye(3),
                r"got ndarray; the model comes first, as in data_shapley\(model, X, y, X_val=X_val, y_val=y_val\)",
            ),
            ([[1.0, 2.0]], "got list; the model comes first"),
            (pd.DataFrame({"a": [1.0]}), "got DataFrame; the model comes first"),
            (type("Bare", (), {"fit": None, "predict": None})(), "can be cloned"),
        ],
    )
    def test_what_is_no_model_is_told(self, model, message):
        for method in (da.data_shapley, da.data_banzhaf, da.beta_shapley, da.leave_one_out):
            with pytest.raises(da.InputError, match=message):
                method(model, *records(), n_jobs=1)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"scoring": "acuracy"}, "no scoring 'acuracy'; did you mean 'accuracy'"),
            ({"scoring": "xyzzy"}, "no scoring 'xyzzy'; see sklearn.metrics.get_scorer_names"),
            ({"scoring": 3}, "scoring must be"),
            ({"sampling": "exactly"}, "sampling must be one of"),
            ({"on_failure": "ignore"}, "on_failure must be one of"),
            ({"max_coalitions": 0}, "max_coalitions must be"),
            ({"max_seconds": 0}, "max_seconds must be"),
            ({"max_width": -1}, "max_width must be"),
            ({"truncation": -0.1}, "truncation must be"),
            ({"confidence": 1.0}, "confidence must be"),
            ({"empty": math.nan}, "empty must be"),
            ({"seed": -1}, "seed must be"),
            ({"fast": "yes"}, "fast must be"),
            ({"n_jobs": 0}, "n_jobs"),
            ({"progress": "bar"}, "progress must be"),
            ({"cache": 3}, "cache"),
        ],
    )
    def test_a_parameter_that_is_wrong_is_named(self, options, message):
        with pytest.raises(da.InputError, match=message):
            da.data_shapley(STUMP, *records(), **{"n_jobs": 1} | options)

    def test_what_does_not_fit_together_is_told(self):
        X, y, X_val, y_val = records()
        with pytest.raises(da.InputError, match="X_val must be given"):
            da.data_shapley(STUMP, X, y, n_jobs=1)
        with pytest.raises(da.InputError, match="columns"):
            da.data_shapley(STUMP, X, y, X_val[:, :2], y_val, n_jobs=1)
        with pytest.raises(da.InputError, match="y"):
            da.data_shapley(STUMP, X, y[:-1], X_val, y_val, n_jobs=1)

    @pytest.mark.parametrize(("a", "b"), [(0, 1), (1, -1), ("x", 1)])
    def test_a_beta_distribution_needs_positive_parameters(self, a, b):
        with pytest.raises(da.InputError, match="must be a finite number above 0"):
            play(da.beta_shapley, *GAMES["votes"], alpha=a, beta=b)


class TestStopping:
    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf, da.beta_shapley])
    @pytest.mark.parametrize("jobs", [1, 2])
    def test_it_ends_when_every_interval_is_narrow_enough(self, method, jobs):
        data = records(n=9, m=50, seed=4)
        values = method(LogisticRegression(), *data, sampling="plain", max_width=0.05, n_jobs=jobs)
        assert values.stopped == "width"
        assert (values.upper - values.lower).max() <= 0.05
        # A tenth of the coalitions would not have been enough.
        fewer = method(LogisticRegression(), *data, sampling="plain", max_coalitions=values.coalitions // 10, n_jobs=1)
        assert (fewer.upper - fewer.lower).max() > 0.05

    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf])
    def test_the_first_rule_that_is_met_ends_it(self, method):
        data = records(n=9, m=50, seed=4)
        values = method(LogisticRegression(), *data, sampling="plain", max_width=1e-4, max_coalitions=900, n_jobs=1)
        assert values.stopped == "coalitions"
        assert (values.upper - values.lower).max() > 1e-4
        assert 800 < values.coalitions <= 900

    @pytest.mark.parametrize("jobs", [1, 2])
    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf])
    def test_it_ends_when_time_is_over_with_the_values_so_far(self, method, jobs):
        if jobs == 2:  # that the workers are there
            play(method, *GAMES["votes"], model=Slow(0.0), sampling="plain", max_coalitions=64, n_jobs=2)
        began = time.monotonic()
        values = play(
            method,
            *GAMES["votes"],
            model=Slow(0.002),
            sampling="plain",
            max_seconds=1.0,
            n_jobs=jobs,
            on_failure="raise",
        )
        assert 0.9 <= time.monotonic() - began < 3.0
        assert values.stopped == "seconds"
        assert values.coalitions > 20
        assert np.isfinite(values.upper - values.lower).all()
        if method is da.data_shapley:
            np.testing.assert_allclose(values.values.sum(), 1, atol=EXACT)

    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf])
    def test_too_little_time_for_one_draw_is_told(self, method):
        for sampling in ("plain", "exact"):
            with pytest.raises(da.InputError, match="max_seconds=0.05 was over"):
                play(method, *GAMES["votes"], model=Slow(0.03), sampling=sampling, max_seconds=0.05)

    @pytest.mark.parametrize("sampling", ["plain", "antithetic", "stratified"])
    @pytest.mark.parametrize("limit", [100, 123, 500])
    @pytest.mark.parametrize("truncation", [None, 0.0])
    def test_there_are_no_more_coalitions_than_allowed(self, sampling, limit, truncation):
        n, utility = GAMES["votes"]
        for seed in range(10):
            values = play(
                da.data_shapley, n, utility, sampling=sampling, max_coalitions=limit, seed=seed, truncation=truncation
            )
            assert limit - 4 * n <= values.coalitions <= limit
            assert values.stopped == "coalitions"

    def test_banzhaf_values_use_every_coalition_allowed(self):
        for limit in (33, 100, 123):
            assert play(da.data_banzhaf, *GAMES["votes"], sampling="plain", max_coalitions=limit).coalitions == limit
        with pytest.raises(da.InputError, match="max_coalitions=3 is too few"):
            play(da.data_banzhaf, *GAMES["votes"], sampling="plain", max_coalitions=3)

    def test_progress_is_reported_to_the_end(self):
        seen = []
        values = play(
            da.data_shapley,
            *GAMES["votes"],
            sampling="plain",
            max_coalitions=60,
            progress=lambda *done: seen.append(done),
        )
        assert seen == [(6 * k, 60) for k in range(1, 11)]
        assert values.coalitions == 60


@pytest.fixture
def interrupted():
    """Lets the model be interrupted at a fit, the one of all records counted."""

    def at(fit):
        Interrupts.left = fit

    yield at
    Interrupts.left = math.inf


class TestInterruption:
    options = {"model": Interrupts(), "sampling": "plain", "max_coalitions": 300}

    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf, da.beta_shapley])
    def test_an_interruption_returns_the_values_so_far(self, method, interrupted):
        interrupted(102)
        values = play(method, *GAMES["votes"], **self.options)
        assert values.stopped == "interrupted"
        assert any("not finished" in note and "cache=FILE" in note for note in values.notes)
        interrupted(math.inf)
        limit = 96
        if method is da.beta_shapley:  # whatever an order takes
            limit = values.coalitions
        shorter = play(method, *GAMES["votes"], **self.options | {"max_coalitions": limit})
        assert values.coalitions == shorter.coalitions
        assert values.values.tobytes() == shorter.values.tobytes()
        assert values.upper.tobytes() == shorter.upper.tobytes()

    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf])
    def test_with_a_cache_the_next_run_goes_on_to_the_same_bits(self, method, interrupted, tmp_path):
        # One game, or the score would be another function, and the cache no use.
        def again(**more):
            return play(method, *GAMES["votes"], **self.options | {"scoring": scoring} | more)

        n, utility = GAMES["votes"]
        scoring = scorer_of(utility, n)
        whole = again(cache=tmp_path / "whole")
        interrupted(40)
        first = again(cache=tmp_path / "c")
        assert first.stopped == "interrupted"
        assert any("same cache" in note for note in first.notes)
        interrupted(math.inf)
        second = again(cache=tmp_path / "c")
        same_bits(second, whole)
        assert second.fits <= whole.fits - first.fits
        assert first.fits > 0

    def test_an_interruption_between_fits_returns_the_values_so_far_too(self, monkeypatch):
        calls, half_width = [], tally.Moments.half_width

        def interrupted_once(moments, confidence):
            calls.append(moments)
            if len(calls) == 10:
                raise KeyboardInterrupt
            return half_width(moments, confidence)

        monkeypatch.setattr(tally.Moments, "half_width", interrupted_once)
        try:
            values = play(da.data_shapley, *GAMES["votes"], sampling="plain", max_coalitions=300)
        except KeyboardInterrupt:  # it would end all tests
            pytest.fail("the values so far are lost")
        assert values.stopped == "interrupted"
        assert 54 <= values.coalitions <= 60
        np.testing.assert_allclose(values.values.sum(), 1, atol=EXACT)

    @pytest.mark.parametrize("sampling", ["plain", "exact"])
    @pytest.mark.parametrize("method", [da.data_shapley, da.data_banzhaf])
    def test_an_interruption_before_there_is_anything_is_just_that(self, method, sampling, interrupted):
        for fit in (1, 3):  # of all records, and of a coalition
            interrupted(fit)
            with pytest.raises(KeyboardInterrupt):
                play(method, *GAMES["votes"], **self.options | {"sampling": sampling})

    def test_bags_can_be_interrupted(self, interrupted):
        X, y = np.arange(6.0)[:, None], np.arange(6) % 2
        interrupted(50)
        values = da.data_oob(Interrupts(), X, y, max_bags=200, n_jobs=1)
        assert (values.stopped, values.coalitions) == ("interrupted", 48)
        interrupted(math.inf)
        assert values.values.tobytes() == da.data_oob(Interrupts(), X, y, max_bags=48, n_jobs=1).values.tobytes()

    def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(self, tmp_path):
        flag = tmp_path / "died"
        model = Dies(os.getpid(), str(flag))
        values = play(da.data_shapley, *GAMES["votes"], model=model, sampling="plain", max_coalitions=120, n_jobs=2)
        assert flag.exists()
        same_bits(values, play(da.data_shapley, *GAMES["votes"], sampling="plain", max_coalitions=120))

    def test_workers_that_always_die_are_given_up(self):
        with pytest.raises(da.InputError, match="workers died 4 times"):
            play(da.data_shapley, *GAMES["votes"], model=Dies(os.getpid()), sampling="plain", n_jobs=2)

    def test_values_so_far_are_returned_where_workers_always_die_at_something(self):
        n, utility = GAMES["votes"]
        orders = [orders_of(n, "plain", 0, draw)[0].tolist() for draw in range(40)]
        firsts = [{frozenset(order[:3])} for order in orders]
        fatal = next(draw for draw in range(10, 40) if not firsts[draw] & set().union(*firsts[:draw]))
        model = Dies(os.getpid(), None, sorted(orders[fatal][:3]))
        values = play(da.data_shapley, n, utility, model=model, sampling="plain", max_coalitions=240, n_jobs=2)
        assert values.stopped == "workers"
        assert any("workers died" in note for note in values.notes)
        shorter = play(da.data_shapley, n, utility, sampling="plain", max_coalitions=fatal * n)
        assert values.coalitions == shorter.coalitions == fatal * n
        assert values.values.tobytes() == shorter.values.tobytes()

    @pytest.mark.skipif(os.name != "posix", reason="^C is sent as a signal")
    @pytest.mark.parametrize("everyone", [False, True], ids=["asker", "terminal"])
    def test_control_c_returns_the_values_so_far(self, everyone, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(CONTROL_C)
        process = subprocess.Popen(
            [sys.executable, str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdout.readline() == "under way\n"
            began = time.monotonic()
            (os.killpg if everyone else os.kill)(process.pid, signal.SIGINT)
            out, errors = process.communicate(timeout=15)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert time.monotonic() - began < 10
        assert (process.returncode, out, errors) == (0, "interrupted True\n", "")


CONTROL_C = """
import time

import numpy as np
import datassay as da
from sklearn.tree import DecisionTreeClassifier


class Slow(DecisionTreeClassifier):
    def fit(self, X, y):
        time.sleep(0.01)
        return super().fit(X, y)


def tell(done, total):
    if done == 60:
        print("under way", flush=True)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6, 2)), np.arange(6) % 2
    values = da.data_shapley(
        Slow(), X, y, X, y, sampling="plain", max_coalitions=60_000, n_jobs=2, progress=tell
    )
    print(values.stopped, any("not finished" in note for note in values.notes))
"""


class TestLeaveOneOut:
    @pytest.mark.parametrize("fast", [True, False])
    def test_it_is_what_the_score_loses(self, fast):
        X, y, X_val, y_val = records(n=30, seed=21)
        model = LogisticRegression(tol=1e-8, max_iter=1000)
        full = accuracy(clone(model).fit(X, y), X_val, y_val)
        expected = [
            full - accuracy(clone(model).fit(np.delete(X, i, 0), np.delete(y, i)), X_val, y_val) for i in range(30)
        ]
        values = da.leave_one_out(model, X, y, X_val, y_val, fast=fast, n_jobs=1)
        np.testing.assert_allclose(values.values, expected, atol=EXACT)
        assert (values.coalitions, values.stopped, values.lower) == (30, "exact", None)
        assert any(expected)

    def test_an_owner_is_left_out_with_all_their_records(self):
        X, y, X_val, y_val = records(n=12, seed=22)
        owners = np.arange(12) % 4
        utility = by_fits(STUMP, X, y, X_val, y_val, accuracy, 0.5, owners)
        values = da.leave_one_out(STUMP, X, y, X_val, y_val, groups=owners, n_jobs=1)
        np.testing.assert_allclose(values.values, floats(oracle.leave_one_out(4, utility)), atol=EXACT)
        assert values.coalitions == 4

    @pytest.mark.parametrize("name", GAMES)
    def test_it_equals_the_definition(self, name):
        values = play(da.leave_one_out, *GAMES[name])
        np.testing.assert_allclose(values.values, floats(oracle.leave_one_out(*GAMES[name])), atol=EXACT)


def out_of_bag(model, X, y, bags, seed, groups=None, right=lambda predicted, y: predicted == y):
    """Kwon & Zou 2023: the mean over bags without a record of how right they are about it."""
    owners, codes = np.unique(np.arange(len(y)) if groups is None else groups, return_inverse=True)
    found = [[] for _ in owners]
    for draw in range(bags):
        drawn = np.random.default_rng([seed, draw]).integers(0, len(owners), len(owners))
        rows = [row for owner in drawn for row in np.flatnonzero(codes == owner)]
        fitted = clone(model).fit(X[rows], y[rows])
        for owner in set(range(len(owners))) - set(drawn.tolist()):
            mine = codes == owner
            found[owner].append(float(np.mean(right(fitted.predict(X[mine]), y[mine]))))
    return np.array([np.mean(of) for of in found])


class TestOutOfBag:
    def test_the_stable_learner_can_be_valued_out_of_bag(self):
        rng = np.random.default_rng(5)
        X = rng.normal(size=(40, 2)) / 4
        y = np.where(X[:, 0] > 0, "up", "down")
        y[:4] = np.where(y[:4] == "up", "down", "up")
        values = da.data_oob(da.StableLogisticRegression(lam=0.01), X, y, max_bags=60, n_jobs=1)
        assert values.values[:4].mean() < 0.5 < values.values[4:].mean()

    def test_values_are_how_often_a_record_is_predicted_right_by_bags_without_it(self):
        X, y, _, _ = records(n=25, seed=31)
        values = da.data_oob(STUMP, X, y, max_bags=60, seed=3, n_jobs=1)
        np.testing.assert_allclose(values.values, out_of_bag(STUMP, X, y, 60, 3), atol=EXACT)
        assert (values.coalitions, values.fits, values.stopped) == (60, 60, "coalitions")
        assert values.parameters["max_bags"] == 60
        assert 0 <= values.values.min() < values.values.max() <= 1
        np.testing.assert_array_less(values.values, values.upper + EXACT)

    def test_an_owner_s_value_is_the_mean_over_their_records(self):
        X, y, _, _ = records(n=24, seed=32)
        owners = np.array(["c", "a", "b", "d", "e", "f"])[np.arange(24) // 3 % 6]
        values = da.data_oob(STUMP, X, y, groups=owners, max_bags=50, seed=1, n_jobs=1)
        np.testing.assert_allclose(values.values, out_of_bag(STUMP, X, y, 50, 1, owners), atol=EXACT)
        assert values.ids.tolist() == list("abcdef")
        assert values.sizes.tolist() == np.unique(owners, return_counts=True)[1].tolist()

    def test_a_regressor_s_value_is_minus_the_squared_error(self):
        X, _, _, _ = records(n=20, seed=33)
        y = X[:, 0] + 0.1 * X[:, 1] ** 2
        model = DecisionTreeRegressor(max_depth=2, random_state=0)
        values = da.data_oob(model, X, y, max_bags=50, n_jobs=1)
        expected = out_of_bag(model, X, y, 50, 0, right=lambda predicted, y: -((predicted - y) ** 2))
        np.testing.assert_allclose(values.values, expected, atol=EXACT)
        assert values.values.max() < 0

    def test_a_wrong_label_stands_out(self):
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(-2, 0.5, (30, 2)), rng.normal(2, 0.5, (30, 2))])
        y = np.repeat(["left", "right"], 30)
        y[[4, 40]] = "right", "left"
        values = da.data_oob(DecisionTreeClassifier(max_depth=2), X, y, max_bags=100, n_jobs=1)
        assert set(values.lowest(2).tolist()) == {4, 40}
        assert values.values[[4, 40]].max() < 0.3
        assert np.median(values.values) > 0.9

    def test_intervals_hold_the_value_of_very_many_bags(self):
        X, y, _, _ = records(n=12, seed=34)
        many = da.data_oob(Middles(), X, y, max_bags=4000, seed=999, n_jobs=1)
        runs = [da.data_oob(Middles(), X, y, max_bags=200, seed=seed, n_jobs=1) for seed in range(30)]
        inside = [(run.lower <= many.values) & (many.values <= run.upper) for run in runs]
        assert 0.90 <= np.mean(inside) <= 0.995
        # Twenty times the bags narrow an interval by the root of twenty.
        ratio = np.median([run.upper - run.lower for run in runs]) / np.median(many.upper - many.lower)
        assert math.sqrt(20) / 1.5 < ratio < math.sqrt(20) * 1.5

    def test_it_ends_when_every_interval_is_narrow_enough(self):
        X, y, _, _ = records(n=12, seed=34)
        values = da.data_oob(STUMP, X, y, max_width=0.4, n_jobs=1)
        assert values.stopped == "width"
        assert (values.upper - values.lower).max() <= 0.4

    def test_a_bag_of_all_records_is_no_failure(self):
        X, y = np.arange(3.0)[:, None], np.array([0, 1, 1])
        whole = [len(set(np.random.default_rng([0, draw]).integers(0, 3, 3))) == 3 for draw in range(40)]
        assert any(whole)
        values = da.data_oob(STUMP, X, y, max_bags=40, n_jobs=1)
        assert values.failures == 0
        assert not any("no model" in note for note in values.notes)

    def test_too_few_bags_are_told(self):
        X, y, _, _ = records(n=25, seed=31)
        with pytest.raises(da.InputError, match="max_bags=1 is too few"):
            da.data_oob(STUMP, X, y, max_bags=1, n_jobs=1)


class TestRegression:
    @pytest.mark.parametrize("scoring", ["r2", None])
    def test_values_are_those_of_direct_fits(self, scoring):
        rng = np.random.default_rng(5)
        X, X_val = rng.normal(size=(6, 2)), rng.normal(size=(15, 2))
        y, y_val = (A @ [1.0, -2.0] + 0.3 * rng.normal(size=len(A)) for A in (X, X_val))
        # Nobody is worth a constant prediction, whose R² is 0.
        utility = by_fits(Ridge(0.5), X, y, X_val, y_val, lambda m, A, b: r2_score(b, m.predict(A)), 0.0)
        values = da.data_shapley(Ridge(0.5), X, y, X_val, y_val, scoring=scoring, n_jobs=1)
        np.testing.assert_allclose(values.values, floats(oracle.shapley(6, utility)), atol=1e-9)
        assert values.parameters["empty"] == pytest.approx(0, abs=EXACT)
        assert values.labels is None
        assert any("constant prediction" in note for note in values.notes)

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    def test_a_target_that_is_no_number_is_named(self, bad):
        X, X_val = np.arange(4.0)[:, None], np.arange(3.0)[:, None]
        with pytest.raises(da.InputError, match="y has the value .* at row 2"):
            da.data_shapley(Ridge(), X, [1.0, 2.0, bad, 4.0], X_val, [1.0, 2.0, 3.0], n_jobs=1)
        with pytest.raises(da.InputError, match="y_val has the value .* at row 0"):
            da.data_shapley(Ridge(), X, [1.0, 2.0, 3.0, 4.0], X_val, [bad, 2.0, 3.0], n_jobs=1)
        with pytest.raises(da.InputError, match="must hold numbers"):
            da.data_shapley(Ridge(), X, list("abcd"), X_val, [1.0, 2.0, 3.0], n_jobs=1)


@pytest.mark.parametrize(
    ("scoring", "classes", "expected"),
    [
        ("accuracy", 2, 1 / 2),
        ("accuracy", 3, 1 / 3),
        ("balanced_accuracy", 3, 1 / 3),
        ("neg_log_loss", 3, -math.log(3)),
        ("clipped_log_loss", 2, -math.log(2)),
        ("roc_auc", 2, 1 / 2),
    ],
)
def test_nobody_is_worth_a_guess(scoring, classes, expected):
    X, _, X_val, _ = records(n=9, m=30)
    y, y_val = np.arange(9) % classes, np.arange(30) % classes
    values = da.leave_one_out(LogisticRegression(), X, y, X_val, y_val, scoring=scoring, n_jobs=1)
    assert values.parameters["empty"] == pytest.approx(expected)
    assert values.parameters["scoring"] == scoring


class TestEstimate:
    @pytest.fixture(params=["sampled", "exact", "owners", "bags"])
    def values(self, request):
        data = records(n=7, seed=41)
        if request.param == "bags":
            return da.data_oob(STUMP, *data[:2], max_bags=40, n_jobs=1)
        options = {
            "sampled": {"sampling": "plain", "max_coalitions": 200, "ids": list("gfedcba"), "confidence": 0.9},
            "exact": {"sampling": "exact"},
            "owners": {"groups": ["é", "é", "b", "b", "c", "c", "c"], "sampling": "plain", "max_coalitions": 100},
        }[request.param]
        return da.data_shapley(LogisticRegression(), *data, n_jobs=1, seed=5, **options)

    @pytest.mark.parametrize("ending", ["parquet", "json"])
    def test_a_saved_estimate_comes_back_whole(self, values, tmp_path, ending):
        again = da.load_result(values.save(tmp_path / f"v.{ending}"))
        assert type(again) is type(values)
        same_bits(again, values)
        for name in ("ids", "labels", "sizes"):
            one, other = getattr(values, name), getattr(again, name)
            assert (one is None) == (other is None)
            assert one is None or (one.tolist() == other.tolist() and one.dtype.kind == other.dtype.kind)
        for name in ("method", "parameters", "seed", "version", "notes", "confidence", "fits", "history"):
            assert getattr(again, name) == getattr(values, name), name
        assert again.summary() == values.summary()

    def test_csv_and_frames_hold_the_table(self, values, tmp_path):
        expected = {"id", "value"}
        expected |= {"error", "lower", "upper"} if values.errors is not None else set()
        expected |= {"records"} if values.sizes is not None else {"label"}
        for frame in (
            pd.read_csv(values.save(tmp_path / "v.csv"), engine="pyarrow"),
            values.to_frame("pandas"),
        ):
            assert set(frame.columns) == expected
            for column, own in (("value", "values"), ("error", "errors"), ("lower", "lower"), ("records", "sizes")):
                if column in expected:
                    np.testing.assert_array_equal(frame[column], getattr(values, own))

    def test_it_says_how_sure_it_is_and_why_it_ended(self, values):
        text = values.summary()
        if values.stopped == "exact":
            assert "every coalition was visited" in text
            assert "intervals" not in text
        else:
            reach = values.upper - values.values
            assert (
                f"{values.confidence:.0%} intervals reach ±{np.median(reach):.3g} (median), ±{reach.max():.3g}" in text
            )
            assert "it ended because as many as allowed were done" in text

    def test_facts_say_how_sure_it_is(self, values):
        facts = values.facts()
        if values.stopped == "exact":
            assert not {"median_half_width", "widest_half_width", "share_sure"} & facts.keys()
            return
        reach = values.upper - values.values
        sure = [not lower <= 0 <= upper for lower, upper in zip(values.lower, values.upper, strict=True)]
        assert facts["median_half_width"] == pytest.approx(np.median(reach))
        assert facts["widest_half_width"] == pytest.approx(reach.max())
        assert facts["share_sure"] == np.mean(sure)

    @pytest.mark.parametrize("sampling", ["exact", "plain"])
    def test_who_adds_nothing_has_no_negative_value(self, sampling):
        values = play(da.data_shapley, *GAMES["additive"], sampling=sampling, max_coalitions=100)
        assert values.values.min() < values.values[2] == 0
        assert "1 of them (20.0%) have a negative value" in values.summary()

    def test_agreement_is_the_rank_correlation_of_a_shorter_run_with_the_whole(self):
        n, utility = GAMES["votes"]
        asked = {"sampling": "plain", "scoring": scorer_of(utility, n)}
        values = play(da.data_shapley, n, utility, max_coalitions=240, **asked)
        at, agreement = values.history["coalitions"], values.history["agreement"]
        assert min(agreement) < 0.99
        for i in (0, 1, 2, len(at) // 2):
            shorter = play(da.data_shapley, n, utility, max_coalitions=int(at[i]), **asked)
            assert agreement[i] == pytest.approx(spearmanr(shorter.values, values.values)[0])

    def test_arrays_are_frozen(self, values):
        for name in ("values", "ids", "errors", "sizes", "lower", "upper"):
            column = getattr(values, name)
            if column is not None:
                with pytest.raises(ValueError, match="read-only"):
                    column[0] = column[1]
        with pytest.raises(AttributeError):
            values.fits = 0

    def test_history_leads_to_the_end(self, values):
        history = values.history
        if values.stopped == "exact":
            assert history is None
            return
        at = history["coalitions"]
        assert len(at) >= 3
        assert all(a < b for a, b in pairwise(at))
        half = (values.upper - values.lower) / 2
        assert at[-1] == values.coalitions
        assert history["widest"][-1] == pytest.approx(half.max())
        assert history["median"][-1] == pytest.approx(np.median(half))
        assert history["agreement"][-1] == pytest.approx(1)
        assert {len(track) for track in history.values()} == {len(at)}

    def test_convergence_is_drawn_where_there_was_any(self, values):
        from matplotlib import pyplot as plt

        if values.stopped == "exact":
            with pytest.raises(da.InputError, match="every coalition was visited"):
                values.plot_convergence()
            return
        ax = values.plot_convergence()
        widest, median = ax.get_lines()
        assert tuple(widest.get_xdata()) == values.history["coalitions"]
        assert tuple(widest.get_ydata()) == values.history["widest"]
        assert tuple(median.get_ydata()) == values.history["median"]
        given = plt.figure().add_subplot()
        assert values.plot_convergence(given) is given
        with pytest.raises(da.InputError, match="ax must be matplotlib axes"):
            values.plot_convergence("plot.svg")
        plt.close("all")

    def test_what_was_not_as_asked_is_a_note(self, tmp_path):
        values = play(da.data_shapley, 6, majority(6), sampling="plain", truncation=0.0, max_coalitions=60)
        saved = json.loads(values.save(tmp_path / "v.json").read_text())
        assert any("cut short" in note for note in values.notes)
        assert "cut short" in json.dumps(saved)
        assert "Note: orders were cut short" in values.summary()

    def test_owners_are_called_owners(self):
        data = records(n=7, seed=41)
        values = da.data_shapley(LogisticRegression(), *data, groups=[0, 0, 1, 1, 2, 2, 2], n_jobs=1)
        assert repr(values).startswith("Estimate(3 owners by data_shapley")
        assert values.summary().startswith("3 owners valued by data_shapley")

    def test_a_cached_run_says_what_was_kept(self, tmp_path):
        for kept in (False, True):
            values = play(da.data_shapley, *GAMES["votes"], sampling="exact", cache=tmp_path / "c")
            assert ("64 of them kept from before" in values.summary()) == kept


@pytest.mark.parametrize("intercept", [True, False])
def test_more_features_than_records_are_no_trouble_for_our_solver(intercept):
    """Then the minimum is looked for in the span of the records; scikit-learn finds the same one."""
    rng = np.random.default_rng(3)
    X, X_val = rng.normal(size=(10, 40)), rng.normal(size=(30, 40))
    X[3] = X[2]
    X[4] = 0.0
    y, y_val = np.tile([0, 1], 5), (X_val[:, 0] > 0).astype(int)
    model = LogisticRegression(C=3.0, fit_intercept=intercept, tol=1e-10, max_iter=2000)
    given = {"scoring": "neg_log_loss", "sampling": "exact", "n_jobs": 1}
    ours = da.data_shapley(model, X[:8], y[:8], X_val, y_val, **given)
    theirs = da.data_shapley(model, X[:8], y[:8], X_val, y_val, fast=False, **given)
    assert ours.values == pytest.approx(theirs.values, abs=1e-6)


def powered_score(model, X, y, power=1):
    return float((model.predict(X) == y).mean() ** power)


def test_a_cache_tells_partial_scorers_apart(tmp_path):
    from functools import partial

    X, y, X_val, y_val = records(n=6, seed=2)
    given = {"sampling": "exact", "n_jobs": 1, "empty": 0.0}
    for power in (1, 3):
        scoring = partial(powered_score, power=power)
        kept = da.data_shapley(STUMP, X, y, X_val, y_val, scoring=scoring, cache=tmp_path / "c", **given)
        fresh = da.data_shapley(STUMP, X, y, X_val, y_val, scoring=scoring, **given)
        assert (kept.values == fresh.values).all()


def test_a_cache_whose_score_of_all_records_has_changed_is_refused(tmp_path):
    """What a scoring reads from elsewhere cannot be seen; that it says something else of all records can."""
    X, y, X_val, y_val = records(n=6, seed=2)
    box = tmp_path / "factor.txt"

    def scoring(model, X, y):
        return float(box.read_text()) * float((model.predict(X) == y).mean())

    for factor in ("1", "2"):
        box.write_text(factor)
        given = {"sampling": "exact", "n_jobs": 1, "empty": 0.0, "cache": tmp_path / "c", "scoring": scoring}
        if factor == "1":
            da.data_shapley(STUMP, X, y, X_val, y_val, **given)
        else:
            with pytest.raises(da.InputError, match="use another cache"):
                da.data_shapley(STUMP, X, y, X_val, y_val, **given)


def test_a_pipeline_is_scored_like_its_model():
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    X, y, X_val, y_val = records(n=6, seed=2)
    plain = da.data_shapley(STUMP, X, y, X_val, y_val, n_jobs=1)
    piped = da.data_shapley(make_pipeline(clone(STUMP)), X, y, X_val, y_val, n_jobs=1)
    assert (plain.values == piped.values).all()
    for model in (make_pipeline(clone(STUMP)), KNeighborsClassifier(1)):
        values = da.data_shapley(model, X, y, X_val, y_val, n_jobs=1)
        assert (values.parameters["scoring"], values.parameters["empty"]) == ("accuracy", 0.5)


def test_a_failing_score_is_told_apart_from_a_failing_model():
    X, y, X_val, y_val = records(n=6, seed=2)
    words, words_val = np.array(["no", "yes"])[y], np.array(["no", "yes"])[y_val]
    with pytest.raises(da.InputError, match="scoring failed.*f1_macro"):
        da.data_shapley(STUMP, X, words, X_val, words_val, scoring="f1", n_jobs=1)
    with pytest.raises(da.InputError, match="function of .model, X, y."):
        da.data_shapley(STUMP, X, y, X_val, y_val, scoring=lambda model, X: 1.0, n_jobs=1)


def test_orders_are_kept_piece_by_piece(tmp_path):
    """A slow model that is interrupted within its first order goes on from the cache."""
    X, y, X_val, y_val = records(n=40, seed=2)

    class Slow(DecisionTreeClassifier):
        fitted = 0

        def fit(self, X, y):
            time.sleep(0.05)
            Slow.fitted += 1
            if Slow.fitted == 34:
                raise KeyboardInterrupt
            return super().fit(X, y)

    given = {"sampling": "plain", "max_coalitions": 80, "n_jobs": 1, "cache": tmp_path / "c"}
    with pytest.raises(KeyboardInterrupt, match="kept in the cache"):
        da.data_shapley(Slow(max_depth=1, random_state=0), X, y, X_val, y_val, **given)
    values = da.data_shapley(Slow(max_depth=1, random_state=0), X, y, X_val, y_val, **given)
    assert 0 < values.fits <= 80 - 16
    plain = da.data_shapley(
        DecisionTreeClassifier(max_depth=1, random_state=0), X, y, X_val, y_val, sampling="plain", max_coalitions=80,
        n_jobs=1,
    )  # fmt: skip
    assert (values.values == plain.values).all()


def test_a_generator_as_random_state_is_fixed_first():
    from sklearn.ensemble import RandomForestClassifier

    X, y, X_val, y_val = records(n=6, seed=2)
    model = RandomForestClassifier(3, random_state=np.random.RandomState(0))
    one, two = (da.data_banzhaf(model, X, y, X_val, y_val, n_jobs=jobs).values for jobs in (1, 2))
    assert (one == two).all()


def test_failures_in_a_cache_are_raised_too(tmp_path):
    X, y, X_val, y_val = records(n=6, seed=2)
    given = {"sampling": "exact", "n_jobs": 1, "cache": tmp_path / "c"}
    da.data_shapley(LogisticRegression(), X, y, X_val, y_val, **given)
    with pytest.raises(da.InputError, match="two classes"):
        da.data_shapley(LogisticRegression(), X, y, X_val, y_val, on_failure="raise", **given)


def test_what_cannot_be_sent_to_workers_is_said_and_leaves_nothing_behind(monkeypatch, tmp_path):
    import tempfile
    import threading

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lock = threading.Lock()

    def scoring(model, X, y):
        with lock:
            return 0.5

    X, y, X_val, y_val = records(n=6, seed=2)
    with pytest.raises(da.InputError, match="n_jobs=1"):
        da.data_shapley(STUMP, X, y, X_val, y_val, scoring=scoring, n_jobs=2)
    assert not list(tmp_path.glob("datassay-*"))


class Marks:
    """Two scores that agree on good models: only what a method does tells them apart."""

    def plain(self, model, X, y):
        return float((model.predict(X) == y).mean())

    def floored(self, model, X, y):
        return max(0.7, float((model.predict(X) == y).mean()))


def test_a_cache_tells_methods_apart(tmp_path):
    X, y, X_val, y_val = records(n=6, seed=2)
    given = {"sampling": "exact", "n_jobs": 1, "empty": 0.0}
    da.data_shapley(STUMP, X, y, X_val, y_val, scoring=Marks().plain, cache=tmp_path / "c", **given)
    kept = da.data_shapley(STUMP, X, y, X_val, y_val, scoring=Marks().floored, cache=tmp_path / "c", **given)
    fresh = da.data_shapley(STUMP, X, y, X_val, y_val, scoring=Marks().floored, **given)
    assert (kept.values == fresh.values).all()


def test_a_cache_tells_what_is_inside_of_functions_apart():
    def scoring_of(body):
        space = {}
        exec(f"def score(model, X, y):\n    return sum({body} for x in (model.predict(X) == y)) / len(y)", space)
        return space["score"]

    from datassay.value.models.fingerprint import content

    digests = {b"".join(content(scoring_of(body))) for body in ("1.0 * x", "2.0 * x", "1.0 * x")}
    assert len(digests) == 2


RESUMED = """
import sys, numpy as np, datassay as da
from sklearn.metrics import f1_score, make_scorer
from sklearn.tree import DecisionTreeClassifier
KINDS = {"a", "b", "c", "spam", "eggs"}
def own(model, X, y):
    return float((model.predict(X) == y).mean()) + 0 * len(KINDS)
rng = np.random.default_rng(0)
X, X_val = rng.normal(size=(8, 2)), rng.normal(size=(20, 2))
y, y_val = np.tile([0, 1], 4), (X_val[:, 0] > 0).astype(int)
for name, scoring in (("scorer", make_scorer(f1_score)), ("own", own), ("default", None)):
    values = da.data_shapley(
        DecisionTreeClassifier(), X, y, X_val, y_val, scoring=scoring, empty=0.0, n_jobs=1, cache=sys.argv[1]
    )
    print(name, values.fits)
"""


def test_another_process_goes_on_from_the_cache(tmp_path):
    told = []
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", RESUMED, str(tmp_path / "c")], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        told.append(run.stdout.split())
    assert told[0][1::2] != ["0", "0", "0"]
    assert told[1] == ["scorer", "0", "own", "0", "default", "0"]


def test_what_cannot_be_told_apart_is_not_cached(tmp_path):
    X, y, X_val, y_val = records(n=6, seed=2)
    rng = np.random.default_rng(0)

    def scoring(model, X, y):
        return float(rng.random())

    with pytest.raises(da.InputError, match="no cache can be kept"):
        da.data_shapley(STUMP, X, y, X_val, y_val, scoring=scoring, cache=tmp_path / "c", n_jobs=1)
    assert not (tmp_path / "c").exists()


def test_a_warm_start_within_a_pipeline_is_left_out():
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, X_val, y_val = records(n=8, seed=2)
    model = make_pipeline(StandardScaler(), SGDClassifier(warm_start=True, max_iter=5, tol=None))
    one, two = (da.data_banzhaf(model, X, y, X_val, y_val, n_jobs=jobs).values for jobs in (1, 2))
    assert (one == two).all()


def test_orders_end_where_what_follows_weighs_next_to_nothing():
    """The chance of each size is that of a beta-binomial distribution, written here by the beta function."""
    from scipy.special import betaln, gammaln

    n, alpha, beta = 200, 16.0, 1.0
    k = np.arange(n)
    chance = np.exp(
        gammaln(n) - gammaln(k + 1) - gammaln(n - k) + betaln(k + beta, n - 1 - k + alpha) - betaln(beta, alpha)
    )
    kept = int(sum(chance[size:].sum() > 1e-12 for size in range(n)))
    assert 20 < kept < n
    X, y = np.arange(float(n))[:, None], np.arange(n) % 2
    with pytest.raises(da.UsageError, match=f"of 200 players, {2 * kept} coalitions"):
        da.beta_shapley(
            DecisionTreeClassifier(), X, y, X, y, alpha=alpha, beta=beta, sampling="plain", max_coalitions=3, n_jobs=1
        )


def test_values_that_are_all_alike_agree_with_nothing():
    """Where every coalition is worth the same there is no order for an earlier one to agree with."""
    from sklearn.dummy import DummyClassifier

    X, y = np.arange(30.0)[:, None], np.array([0, 1, 1] * 10)
    model = DummyClassifier(strategy="constant", constant=1)
    found = da.data_shapley(model, X, y, X, y, max_coalitions=400, empty=2 / 3, sampling="plain", n_jobs=1)
    assert (found.values == 0).all()
    assert set(found.history["agreement"]) == {0.0}


def test_a_share_of_banzhaf_values_is_one_half_the_difference_of_two_means():
    """A coalition with and one without a record: with one record, the value is v({i}) − v(∅), and its error is none."""
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    found = da.data_banzhaf(DecisionTreeClassifier(), X, y, X, y, sampling="exact", empty=0.5, n_jobs=1)
    # v(∅) = 1/2, v({0}) = v({1}) = 1/2, v(both) = 1
    assert found.values.tolist() == [0.25, 0.25]


def test_labels_of_two_classes_are_worth_chance_without_data():
    """Minus the log loss of guessing among C classes is −log C: what the empty coalition is worth under that score."""
    X, y = np.arange(12.0)[:, None], np.arange(12) % 3
    found = da.data_shapley(
        LogisticRegression(), X, y, X, y, scoring="neg_log_loss", sampling="plain", max_coalitions=200, n_jobs=1
    )
    assert found.parameters["empty"] == pytest.approx(-math.log(3))


def test_our_own_learner_counts_as_it_did_where_0_1_0_kept_utilities():
    """Digests made by 0.1.0, where the class lay elsewhere: caches and checkpoints go on to be used."""
    from datassay.value.models.fingerprint import content

    for thing, digest in (
        (da.StableLogisticRegression(kappa=2.0), "5dc2b8152dd994f1bd4438232342fa771f4ac570b840d7e1008c8a030fe314fd"),
        (da.StableLogisticRegression, "25cf3ae1fad05f985031655e7e7ea5049fffd05698b430cea68671965a3fcd7f"),
    ):
        assert sha256(b"".join(content(thing))).hexdigest() == digest
