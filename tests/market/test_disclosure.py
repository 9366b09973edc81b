"""The disclosure game: the moving neighbours, the bandit against Algorithm 2, budgets, strategies, guarantees."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import datassay as da
from datassay import InputError, oracle
from datassay._errors import UnavailableError, UsageError
from datassay._run import Schedule
from datassay.market import ConsumerView, DataOwner, Move, MovingNeighbours, gini, knn_utility
from datassay.market.owner import RehearsingOwner
from datassay.privacy import BudgetExceededError, Ledger, NoisyRecords

ONE = Schedule(1, 2**26, None)


def made(n=60, m=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X, X_val = rng.uniform(size=(n, d)), rng.uniform(size=(m, d))
    return X, (X[:, 0] > 0.5).astype(int), X_val, (X_val[:, 0] > 0.5).astype(int)


class TestMovingNeighbours:
    """A moved point changes the utility to exactly what a new evaluation says, bit for bit."""

    @settings(max_examples=60, deadline=None)
    @given(
        seed=st.integers(0, 2**32),
        metric=st.sampled_from(["euclidean", "manhattan", "cosine"]),
        utility=st.sampled_from(["votes", "accuracy"]),
        unseen=st.sampled_from(["origin", "absent"]),
        grid=st.booleans(),
        large=st.booleans(),
    )
    def test_equal_to_a_new_evaluation(self, seed, metric, utility, unseen, grid, large):
        rng = np.random.default_rng(seed)
        n, m, d = int(rng.integers(40, 90) if large else rng.integers(1, 20)), int(rng.integers(1, 20)), 3
        k, classes = int(rng.integers(1, 3) if large else rng.integers(1, 12)), int(rng.integers(2, 4))

        def draw(*shape):  # on a grid, ties and duplicates abound
            return rng.integers(-2, 3, shape).astype(float) if grid else rng.normal(size=shape)

        codes, codes_val, X_val = rng.integers(0, classes, n), rng.integers(0, classes, m), draw(m, d)
        X_val[:, 0] += np.abs(X_val).sum(axis=1) == 0
        model = MovingNeighbours(
            n, codes, X_val, codes_val, classes, k=k, metric=metric, utility=utility, unseen=unseen
        )
        centres, placed = np.zeros((n, d)), np.zeros(n, bool)
        for step in range(120):
            i = int(rng.integers(n)) if rng.random() < 0.7 else min(step, n - 1)
            centres[i], placed[i] = draw(d), True
            use = np.ones(n, bool) if unseen == "origin" else placed
            anew = knn_utility(
                centres[use], codes[use], X_val, codes_val, classes, k=k, metric=metric, utility=utility, run=ONE
            )
            assert model.move(i, centres[i]) == anew == model.utility

    @pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
    @pytest.mark.parametrize("d", [1, 4, 5, 7, 8])
    def test_any_number_of_features_and_points_at_the_origin(self, metric, d):
        rng = np.random.default_rng(d)
        n, codes, codes_val, X_val = 15, rng.integers(0, 3, 15), rng.integers(0, 3, 20), rng.normal(size=(20, d))
        model = MovingNeighbours(n, codes, X_val, codes_val, 3, k=4, metric=metric)
        centres = np.zeros((n, d))
        for step in range(40):
            i = int(rng.integers(n))
            centres[i] = rng.normal(size=d) * (step % 4 > 0)
            anew = knn_utility(centres, codes, X_val, codes_val, 3, k=4, metric=metric, utility="votes", run=ONE)
            assert model.move(i, centres[i]) == anew

    @pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
    @pytest.mark.parametrize("n", [59, 60, 61])
    def test_lists_that_run_short_are_made_anew(self, metric, n):
        """One point after another leaves for where the others have gone before, until all have."""
        rng = np.random.default_rng(n)
        centres, X_val = rng.uniform(0.1, 0.9, (n, 5)), rng.uniform(0.1, 0.9, (6, 5))
        codes, codes_val = rng.integers(0, 3, n), rng.integers(0, 3, 6)
        model = MovingNeighbours(n, codes, X_val, codes_val, 3, k=2, metric=metric, unseen="absent")
        for i in range(n):
            model.move(i, centres[i])
        for i in [*range(n), *range(0, n, 3)]:
            centres[i] = -rng.uniform(0.1, 0.9, 5)
            anew = knn_utility(centres, codes, X_val, codes_val, 3, k=2, metric=metric, utility="votes", run=ONE)
            assert model.move(i, centres[i]) == anew

    def test_thousands_of_small_moves(self):
        """Points drift as centres do, so that lists shrink, are made anew and fill again."""
        rng = np.random.default_rng(1)
        n, m = 300, 50
        codes, codes_val, X_val = rng.integers(0, 2, n), rng.integers(0, 2, m), rng.normal(size=(m, 4))
        model = MovingNeighbours(n, codes, X_val, codes_val, 2, k=5, unseen="absent")
        centres = rng.normal(size=(n, 4))
        for i in range(n):
            model.move(i, centres[i])
        anew_ranked = 0
        for _ in range(4000):
            i = int(rng.integers(n))
            centres[i] = centres[i] * 1.05 if rng.random() < 0.8 else rng.normal(size=4)
            before = model.state.size.copy()
            now = model.move(i, centres[i])
            anew_ranked += int((model.state.size > before + 1).sum())  # filled at once: it was ranked anew
            anew = knn_utility(centres, codes, X_val, codes_val, 2, k=5, metric="euclidean", utility="votes", run=ONE)
            assert now == anew
        assert anew_ranked > 2

    def test_against_scikit_learn(self):
        from sklearn.neighbors import KNeighborsClassifier

        X, y, X_val, y_val = made(200, 80)
        votes, accuracy = (
            knn_utility(X, y, X_val, y_val, 2, k=7, metric="euclidean", utility=kind, run=ONE)
            for kind in ("votes", "accuracy")
        )
        fitted = KNeighborsClassifier(7).fit(X, y)
        assert votes == pytest.approx(fitted.predict_proba(X_val)[np.arange(80), y_val].mean())
        assert accuracy == pytest.approx(fitted.score(X_val, y_val))

    def test_bad_points_are_refused(self):
        model = MovingNeighbours(2, np.array([0, 1]), np.ones((3, 1)), np.array([0, 1, 0]), 2, k=1)
        for i, point in ((2, [1.0]), (-1, [1.0]), (0, [math.nan]), (0, [1.0, 2.0])):
            with pytest.raises(InputError, match="i must be|finite numbers"):
                model.move(i, np.array(point))
            with pytest.raises(InputError, match="i must be|finite numbers"):
                model.receive(i, np.array(point), 1)
        for text in (["1"], ["a"], [1j]):
            with pytest.raises(InputError, match="a point must be 1 finite numbers"):
                model.move(0, text)
        for codes in ([0], [0, 2], [0.5, 1.0]):
            with pytest.raises(InputError, match="codes must"):
                MovingNeighbours(2, np.array(codes), np.ones((3, 1)), np.array([0, 1, 0]), 2, k=1)

    def test_nobody_is_a_guess(self):
        model = MovingNeighbours(2, np.array([0, 1]), np.ones((3, 1)), np.array([0, 1, 2]), 3, k=1, unseen="absent")
        assert model.utility == 1 / 3
        assert knn_utility(np.empty((0, 1)), np.empty(0, int), np.ones((3, 1)), np.zeros(3, int), 3, k=1,
                           metric="euclidean", utility="votes", run=ONE) == 1 / 3  # fmt: skip


class TestBandit:
    """Algorithm 2 of the thesis, against its literal transcription."""

    @pytest.mark.parametrize("exploration", [0.0, 0.001, 0.05, 1.0])
    @pytest.mark.parametrize("k", [1, 3])
    def test_same_arms_same_utilities_same_q(self, exploration, k):
        X, y, X_val, y_val = made(12, 15, 2, seed=k)
        steps, t_max, epsilon = 80, 8, 4.0
        rng = np.random.default_rng(7)
        noise = rng.laplace(size=(steps, 2)) * (1.0 / epsilon)
        asked, utilities, q = oracle.bandit(
            X.tolist(), y.tolist(), list(zip(X_val.tolist(), y_val.tolist(), strict=True)), noise.tolist(), k, t_max, 2.0,
            exploration, 0.3,
        )  # fmt: skip
        game = da.disclosure_game(
            X, y, X_val, y_val, "ucb", epsilon, t_max, 1.0, k=k, bounds=(0, 1), exploration=exploration,
            learning_rate=0.3, max_queries=steps, every=1, seed=7,
        )  # fmt: skip
        made_steps = game.n_queries
        assert made_steps == steps or game.reached
        assert np.bincount(asked[:made_steps], minlength=12).tolist() == game.queries.tolist()
        assert game.trajectory["utility"][1:] == pytest.approx(utilities[:made_steps], abs=0)
        if made_steps == steps:
            assert game.scores == pytest.approx(q, abs=1e-12)

    @pytest.mark.parametrize(
        ("n", "k", "classes", "grid"),
        [(5, 9, 2, False), (6, 2, 2, True), (1, 1, 2, False), (1, 3, 2, True), (4, 2, 1, True)],
    )
    def test_at_the_edges(self, n, k, classes, grid):
        """k ≥ n, duplicates and ties, one record, one class: where the origin and the centres are hard to tell apart."""
        rng = np.random.default_rng(n + k)
        X, X_val = (rng.integers(0, 2, (m, 2)) / 2 if grid else rng.uniform(size=(m, 2)) for m in (n, 6))
        y, y_val = rng.integers(0, classes, n), rng.integers(0, classes, 6)
        noise = np.random.default_rng(7).laplace(size=(4 * n, 2))
        asked, utilities, q = oracle.bandit(
            X.tolist(), y.tolist(), list(zip(X_val.tolist(), y_val.tolist(), strict=True)), noise.tolist(), k, 4, 2.0, 0.1,
            0.3,
        )  # fmt: skip
        game = da.disclosure_game(
            X, y, X_val, y_val, "ucb", 1.0, 4, 1.0, k=k, bounds=(0, 1), learning_rate=0.3, every=1, seed=7
        )
        steps = game.n_queries
        assert steps == 4 * n or game.reached
        assert np.bincount(asked[:steps], minlength=n).tolist() == game.queries.tolist()
        assert game.trajectory["utility"][1:].tolist() == utilities[:steps]
        if steps == 4 * n:
            assert game.scores == pytest.approx(q, abs=1e-12)

    @pytest.mark.parametrize("utility", ["votes", "accuracy"])
    @pytest.mark.parametrize("unseen", ["origin", "absent"])
    def test_more_neighbours_than_anything_can_hold(self, utility, unseen):
        how = {"bounds": (0, 1), "utility": utility, "unseen": unseen, "every": 1, "seed": 0}
        most, all_of_them = (da.disclosure_game(*made(8, 9), "ucb", 1.0, 3, 1.0, k=k, **how) for k in (10**40, 8))
        assert most.trajectory["utility"].tolist() == all_of_them.trajectory["utility"].tolist()
        assert most.queries.tolist() == all_of_them.queries.tolist()

    def test_the_same_bits_however_it_is_run(self):
        data = made(80, 50)
        games = [
            da.disclosure_game(*data, "ucb", 1.0, 10, 0.99, bounds=(0, 1), seed=3, **how)
            for how in ({}, {"n_jobs": 1}, {"memory": 2**15}, {"every": 7}, {"diagnostics": False})
        ]
        for game in games[1:]:
            assert game.centres.tobytes() == games[0].centres.tobytes()
            assert game.scores.tobytes() == games[0].scores.tobytes()
            assert game.queries.tolist() == games[0].queries.tolist()
        other = da.disclosure_game(*data, "ucb", 1.0, 10, 0.99, bounds=(0, 1), seed=4)
        assert other.centres.tobytes() != games[0].centres.tobytes()

    def test_exploration_spreads_spending(self):
        data = made(60, 60, 8)
        spread = [
            np.mean([
                da.disclosure_game(*data, "ucb", 1.0, 50, 1.0, bounds=(0, 1), exploration=c, max_queries=900, seed=s).gini
                for s in range(5)
            ])
            for c in (0.0, 0.001, 0.1)
        ]  # fmt: skip
        assert spread[0] > spread[1] > spread[2]

    def test_absent_or_at_the_origin(self):
        data = made(30, 20)
        absent = da.disclosure_game(*data, "ucb", 5.0, 5, 1.0, bounds=(0, 1), unseen="absent", max_queries=10, seed=0)
        origin = da.disclosure_game(*data, "ucb", 5.0, 5, 1.0, bounds=(0, 1), max_queries=10, seed=0)
        assert absent.used.sum() == 10
        assert origin.used.all()
        assert absent.trajectory["utility"][0] == 0.5  # nobody: a guess
        assert (origin.centres[~absent.used] == 0).all()


class TestBudgets:
    @pytest.mark.parametrize("strategy", ["random", "shapley", "shapley-commit", "ucb"])
    def test_no_record_is_queried_beyond_its_budget(self, strategy):
        how = {"bootstrap": 2} if strategy == "shapley-commit" else {}
        game = da.disclosure_game(*made(), strategy, 0.5, 4, 1.0, bounds=(0, 1), seed=0, **how)
        assert game.queries.max() == 4
        assert game.outcome == "budget spent"
        assert not game.reached
        assert game.budget == 0.5 * game.queries.sum()
        assert game.values.tolist() == (0.5 * game.queries).tolist()
        assert game.values.max() <= 0.5 * 4  # B_max = T_max ε

    def test_a_query_costs_epsilon_for_every_feature(self):
        game = da.disclosure_game(*made(d=5), "random", 0.5, 4, 1.0, bounds=(0, 1), seed=0)
        assert game.query_cost == 2.5
        assert game.guarantee.epsilon == 10.0
        assert game.guarantee.delta == 0
        assert game.guarantee.neighbours == "replace-features"
        own = da.disclosure_game(*made(d=2), "random", [0.5, 1.5], 4, 1.0, bounds=(0, 1), seed=0)
        assert (own.epsilon, own.query_cost) == (1.0, 2.0)

    def test_no_budget_at_all(self):
        for strategy in ("ucb", "random"):
            game = da.disclosure_game(*made(), strategy, 1.0, 0, 0.9, bounds=(0, 1), seed=0)
            assert game.outcome == "no budget"
            assert game.n_queries == 0
            assert game.gini == 0
            assert "no budget" in game.summary()

    def test_a_target_out_of_reach_ends_with_the_budget(self):
        X, _, X_val, y_val = made()
        game = da.disclosure_game(X, np.zeros(60, int), X_val, 1 - y_val * 0, "ucb", 1.0, 3, 0.9, bounds=(0, 1), seed=0)
        assert (game.outcome, game.n_queries, game.utility) == ("budget spent", 180, 0.0)

    def test_a_target_that_is_there_from_the_start(self):
        game = da.disclosure_game(*made(), "ucb", 1.0, 3, 1e-9, bounds=(0, 1), seed=0)
        assert (game.outcome, game.n_queries) == ("target reached", 0)

    @pytest.mark.parametrize("strategy", ["random", "shapley", "ucb"])
    def test_cosine_with_rounds_cut_short(self, strategy):
        game = da.disclosure_game(
            *made(), strategy, 1.0, 9, 1.0, bounds=(0, 1), max_queries=20, metric="cosine", seed=0
        )
        assert game.n_queries == 20
        X, y, X_val, y_val = made()
        X_val[4] = 0
        with pytest.raises(InputError, match="X_val has a row of length zero at row 4"):
            da.disclosure_game(X, y, X_val, y_val, strategy, 1.0, 9, 1.0, bounds=(0, 1), metric="cosine", seed=0)

    def test_the_promise_counts_no_more_queries_than_there_can_be(self):
        game = da.disclosure_game(*made(), "random", 1.0, 9, 1.0, bounds=(0, 1), max_queries=2, seed=0)
        assert game.guarantee.epsilon == 2 * game.query_cost
        none = da.disclosure_game(*made(), "random", 1.0, 9, 1.0, bounds=(0, 1), max_queries=0, seed=0)
        assert (none.guarantee.epsilon, none.n_queries) == (0, 0)
        bounds = np.array([[0.0, 0.0], [1.0, 1.0]])
        own = da.disclosure_game(*made(d=2), "random", [0.5, 1.5], 4, 1.0, bounds=bounds, seed=0)
        assert "ε = 0.5 to 1.5 a feature" in own.guarantee.mechanism

    def test_the_summary_says_why_more_is_promised_than_was_spent(self):
        def chooser(view):
            return [0] if view.step < 2 else []

        game = da.disclosure_game(*made(d=2), chooser, 1.0, 9, 1.0, bounds=(0, 1), seed=0)
        assert "spent 4 in 2 queries; the ε below is for all 9 it may be asked, whatever the" in game.summary()
        assert "(ε = 18, δ = 0)" in game.summary()
        fewer = da.disclosure_game(*made(d=2), chooser, 1.0, 9, 1.0, bounds=(0, 1), max_queries=3, seed=0)
        assert "is for all 3 it may" in fewer.summary()
        none = da.disclosure_game(*made(d=2), chooser, 1.0, 9, 1.0, bounds=(0, 1), max_queries=0, seed=0)
        assert "spent 0 in 0 queries." in none.summary()
        whole = da.disclosure_game(*made(d=2), "random", 1.0, 9, 1.0, bounds=(0, 1), seed=0)
        assert "spent 18 in 9 queries." in whole.summary()  # the two are the same

    def test_an_end_to_queries(self):
        for strategy in ("random", "shapley", "ucb"):
            game = da.disclosure_game(*made(), strategy, 1.0, 9, 1.0, bounds=(0, 1), max_queries=50, seed=0)
            assert (game.outcome, game.n_queries) == ("query limit reached", 50)


class TestStrategies:
    @pytest.mark.parametrize(
        ("strategy", "how", "message"),
        [
            ("ucb", {"share": 0.5}, "share does not apply to strategy 'ucb', but to 'random', 'shapley', 'shapley-com"),
            ("random", {"exploration": 5}, "exploration does not apply to strategy 'random', but to 'ucb'"),
            ("shapley", {"bootstrap": 3}, "bootstrap does not apply to strategy 'shapley', but to 'shapley-commit'"),
            ("shapley", {"learning_rate": 0.5}, "learning_rate does not apply to strategy 'shapley', but to 'ucb'"),
            (lambda view: [0], {"share": 0.5}, "share does not apply to a strategy of your own, but to 'random'"),
            (lambda view: [0], {"unseen": "absent"}, "unseen does not apply to a strategy of your own, but to 'ucb'"),
        ],
    )
    def test_an_option_of_another_strategy_is_refused(self, strategy, how, message):
        with pytest.raises(UsageError, match=message):
            da.disclosure_game(*made(), strategy, 1.0, 2, 0.9, bounds=(0, 1), seed=0, **how)

    def test_options_left_out_are_told(self):
        def random(view):
            return []

        for strategy, told in (
            ("shapley-commit", {"share": 0.6, "bootstrap": 10}),
            ("ucb", {"exploration": 0.1, "learning_rate": 0.1, "unseen": "origin"}),
            (random, {}),  # whatever it is called
        ):
            game = da.disclosure_game(*made(), strategy, 1.0, 1, 0.9, bounds=(0, 1), max_queries=1, seed=0)
            ours = {"share", "bootstrap", "exploration", "learning_rate", "unseen"} & set(game.parameters)
            assert {name: game.parameters[name] for name in ours} == told

    def test_random_commits_to_a_share(self):
        game = da.disclosure_game(*made(), "random", 1.0, 7, 1.0, bounds=(0, 1), share=0.25, seed=1)
        assert sorted(set(game.queries.tolist())) == [0, 7]
        assert (game.queries > 0).sum() == 15 == game.used.sum()
        assert len(game.trajectory["step"]) == 8

    def test_shapley_uses_the_best_centres(self):
        X, y, X_val, y_val = made()
        game = da.disclosure_game(X, y, X_val, y_val, "shapley", 1.0, 5, 1.0, bounds=(0, 1), share=0.5, k=3, seed=1)
        values = da.knn_shapley(game.centres, y, X_val, y_val, k=3).values
        assert game.scores == pytest.approx(values, abs=0)
        assert set(np.flatnonzero(game.used)) == set(np.argsort(-values, kind="stable")[:30])
        assert game.utility == knn_utility(
            game.centres[game.used], y[game.used], X_val, y_val, 2, k=3, metric="euclidean", utility="votes", run=ONE
        )
        assert (game.queries == 5).all()

    def test_commit_queries_the_chosen_alone(self):
        game = da.disclosure_game(*made(), "shapley-commit", 1.0, 6, 1.0, bounds=(0, 1), share=0.5, bootstrap=2, seed=1)
        assert sorted(set(game.queries.tolist())) == [2, 6]
        assert game.queries[game.used].tolist() == [6] * 30

    def test_centres_are_means_of_noisy_copies(self):
        """By the law of large numbers: the error of a mean of t copies falls like 1/√t, as Laplace noise says."""
        X, y, X_val, y_val = made(300, 20, 4)
        game = da.disclosure_game(X, y, X_val, y_val, "random", 2.0, 64, 1.0, bounds=(0, 1), share=1.0, seed=5)
        off = (game.centres - X) * math.sqrt(64) * 2.0 / math.sqrt(2)  # a Laplace(1/ε) has deviation √2/ε
        assert abs(off.mean()) < 4 / math.sqrt(off.size)
        assert off.std() == pytest.approx(1.0, abs=0.1)
        error = game.trajectory["error"]
        assert error[64] == pytest.approx(error[4] / 4, rel=0.1)
        assert error[64] == pytest.approx(np.linalg.norm(game.centres - X, axis=1).mean())

    def test_values_of_centres_come_to_agree_with_the_true_ones(self):
        game = da.disclosure_game(*made(100, 60), "shapley", 3.0, 60, 1.0, bounds=(0, 1), share=0.9, seed=0)
        agree = game.trajectory["spearman"]
        assert agree[60] > agree[20] > agree[2]
        truth = da.knn_shapley(*made(100, 60)).values
        np.testing.assert_array_equal(game.worth, truth)

    def test_a_strategy_of_ones_own(self):
        seen: list[ConsumerView] = []

        def in_turns(view):
            seen.append(view)
            return [view.step % 60, (view.step + 1) % 60] if view.step < 30 else []

        X, y, X_val, y_val = made()
        game = da.disclosure_game(X, y, X_val, y_val, in_turns, 2.0, 50, 1.0, bounds=(0, 1), seed=0)
        assert game.outcome == "strategy stopped"
        everybody = da.disclosure_game(
            X, y, X_val, y_val, lambda view: np.flatnonzero(view.remaining), 2.0, 3, 1.0, bounds=(0, 1), seed=0
        )
        assert everybody.outcome == "budget spent"
        assert game.strategy == "in_turns"
        assert game.queries[:31].tolist() == [1, *[2] * 29, 1]
        assert not seen[0].queries.any()
        assert not seen[0].centres.flags.writeable
        assert game.used.sum() == 31  # uses whatever was queried
        assert game.utility == knn_utility(
            game.centres[:31], y[:31], X_val, y_val, 2, k=5, metric="euclidean", utility="votes", run=ONE
        )

    def test_scores_of_a_strategy(self):
        class Scores:
            def __init__(self, scores):
                self.scores = scores

            def __call__(self, view):
                return []

        game = da.disclosure_game(*made(), Scores(np.arange(60)), 2.0, 3, 1.0, bounds=(0, 1), seed=0)
        assert game.scores.tolist() == list(range(60))
        for wrong in ([1, 2, 3], "high"):
            with pytest.raises(InputError, match="must be 60 numbers"):
                da.disclosure_game(*made(), Scores(wrong), 2.0, 3, 1.0, bounds=(0, 1), seed=0)

    def test_a_strategy_that_says_what_it_uses(self):
        def one(view):
            return Move(np.flatnonzero(view.remaining[:10] > 0), use=[0, 1, 2])

        game = da.disclosure_game(*made(), one, 2.0, 3, 1.0, bounds=(0, 1), seed=0)
        assert game.used.tolist() == [True] * 3 + [False] * 57

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (60, "strategy asks, move 0: there is no record at position 60: positions go from 0 to 59"),
            (-1, "no record at position -1"),
            ([3, 3], "names a record twice"),
            ("first", "by position"),
            ([0.5], "by position"),
            ([[1]], "by position"),
            (Move([1], use=[2]), "strategy asks, move 0: the record at position 2 was never queried"),
            (Move([1], use=[99]), "no record at position 99"),
            (Move([1], use=["x"]), "named by position"),
        ],
    )
    def test_an_unknown_record_is_a_clear_error(self, answer, message):
        def asks(view):
            return answer

        with pytest.raises(InputError, match=message):
            da.disclosure_game(*made(), asks, 1.0, 5, 1.0, bounds=(0, 1), seed=0)

    def test_a_spent_record_is_a_clear_error(self):
        def greedy(view):
            return 4

        with pytest.raises(InputError, match="move 5: the budget of record r4 is spent: it was queried 5 times"):
            da.disclosure_game(*made(), greedy, 1.0, 5, 1.0, bounds=(0, 1), seed=0, ids=[f"r{i}" for i in range(60)])


class TestForReal:
    """Without a seed: noise from OpenDP, a certified guarantee, every query in the ledger."""

    def test_the_ledger_has_every_query(self, tmp_path):
        ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-9, neighbours="replace-features")
        X, y, X_val, y_val = made(20, 15, 2)
        game = da.disclosure_game(
            X, y, X_val, y_val, "ucb", 1.5, 4, 0.999, bounds=(0, 1), ledger=ledger, max_queries=50
        )
        assert game.guarantee.certified
        assert game.seed is None
        told = ledger.disclosures()[1]
        assert told.queries == game.n_queries == 50
        assert told.total == game.query_cost * 50 == 2 * game.budget  # ε × queries, for both features
        assert told.records == (game.queries > 0).sum()
        assert told.most == game.query_cost * game.queries.max() == ledger.spent()
        assert ledger.releases()[0].released is not None
        again = da.disclosure_game(X, y, X_val, y_val, "random", 1.5, 4, 0.999, bounds=(0, 1), ledger=ledger, share=1.0)
        assert ledger.spent() == pytest.approx(3.0 * (game.queries + again.queries).max())  # the same people

    def test_it_never_repeats_itself(self):
        games = [da.disclosure_game(*made(10, 10, 2), "random", 1.0, 1, 0.999, bounds=(0, 1)) for _ in range(2)]
        assert not np.isin(games[0].centres[games[0].used], games[1].centres).any()

    def test_the_bandit_for_real_is_algorithm_2_too(self, monkeypatch):
        """With the rehearsal's noise in place of OpenDP's, both ways of playing make the same moves."""
        data, rng = made(15, 20, 2), np.random.default_rng(3)
        rehearsed = da.disclosure_game(*data, "ucb", 2.0, 5, 0.97, bounds=(0, 1), seed=3, every=1)

        def draw(self, asked):
            noisy = self.unit[asked] + rng.laplace(size=(len(asked), 2)) * (1.0 / self.mechanism.epsilon)
            return self.mechanism.from_unit(noisy)

        monkeypatch.setattr(DataOwner, "_draw", draw)
        real = da.disclosure_game(*data, "ucb", 2.0, 5, 0.97, bounds=(0, 1), every=1)
        assert real.queries.tolist() == rehearsed.queries.tolist()
        assert real.trajectory["utility"].tolist() == rehearsed.trajectory["utility"].tolist()
        assert real.outcome == rehearsed.outcome

    def test_the_ledger_is_asked_before_noise_is_drawn_and_can_refuse(self, tmp_path, monkeypatch):
        ledger = Ledger(tmp_path / "l", epsilon=7.0, delta=1e-9, neighbours="replace-features")
        drawn = []
        honest = NoisyRecords.release
        monkeypatch.setattr(
            NoisyRecords, "release", lambda self, unit, n_jobs: drawn.append(len(unit)) or honest(self, unit, n_jobs)
        )
        game = da.disclosure_game(*made(10, 10, 2), "random", 1.0, 9, 0.999, bounds=(0, 1), ledger=ledger, share=1.0)
        assert drawn == [10, 10, 10]
        assert game.outcome == "ledger refused"  # and what was paid for is there
        assert game.queries.tolist() == [3] * 10
        assert any("refuses this query: it would bring ε from 6 to 8" in note for note in game.notes)
        assert game.utility == game.score(*made(10, 10, 2)[2:])
        assert ledger.disclosures()[1].queries == 30
        assert ledger.spent() == 6.0
        assert ledger.releases()[0].released is not None
        bandit = Ledger(tmp_path / "b", epsilon=7.0, delta=1e-9, neighbours="replace-features")
        game = da.disclosure_game(*made(3, 10, 2), "ucb", 1.0, 9, 0.999, bounds=(0, 1), ledger=bandit)
        assert (game.outcome, game.n_queries) == ("ledger refused", bandit.disclosures()[1].queries)
        assert game.queries.max() == 3
        with pytest.raises(BudgetExceededError):  # nothing was given out: there is nothing to keep
            da.disclosure_game(*made(3, 10, 2), "ucb", 9.0, 9, 0.999, bounds=(0, 1), ledger=bandit)

    def test_what_is_not_certified_says_why(self):
        data = made(10, 10, 2)
        for how, reason in (
            ({"seed": 0, "bounds": (0, 1), "target": 0.9}, "noise comes from a seed"),
            ({"bounds": "data", "target": 0.9}, "bounds were taken from the records"),
            ({"bounds": (0, 1)}, "target was computed from the records"),
        ):
            game = da.disclosure_game(*data, "random", 1.0, 1, **how)
            assert not game.guarantee.certified
            assert any(reason in note for note in game.notes)
            said = "Guarantee: none: a rehearsal" if "seed" in how else "AS PUBLISHED, NOT CERTIFIED"
            assert said in game.summary()
            assert game.guarantee.audience == ("nobody" if "seed" in how else "public")
        assert da.disclosure_game(*data, "random", 1.0, 1, 0.9).guarantee.certified  # the range of validation points

    def test_a_ledger_takes_certified_games_only(self, tmp_path):
        ledger = Ledger(tmp_path / "l", epsilon=7.0, delta=1e-9, neighbours="replace-features")
        data = made(10, 10, 2)
        with pytest.raises(InputError, match="a rehearsal and has no place in a ledger"):
            da.disclosure_game(*data, ledger=ledger, seed=0, target=0.9)
        with pytest.raises(InputError, match="this one is not: the target was computed from the records: name one"):
            da.disclosure_game(*data, ledger=ledger)
        with pytest.raises(InputError, match="this one is not: bounds were taken from the records.* bounds=.low, high"):
            da.disclosure_game(*data, ledger=ledger, target=0.9, bounds="data")
        assert ledger.releases() == []
        other = Ledger(tmp_path / "other", epsilon=7.0, delta=1e-9)
        with pytest.raises(InputError, match="made with relation='replace-features'"):
            da.disclosure_game(*data, ledger=other, target=0.9)

    def test_the_consumer_does_not_see_what_the_owner_knows(self, tmp_path):
        X, y, X_val, y_val = made()
        X[3] = 7.0  # outside the bounds
        game = da.disclosure_game(X, y, X_val, y_val, "shapley", 1.0, 3, 0.99, bounds=(0, 1))
        assert any("3 of 180 entries were outside the bounds" in note for note in game.notes)
        shared = game.for_consumer()
        assert np.isnan(shared.worth).all()
        assert math.isnan(shared.full_utility)
        assert np.isnan(shared.trajectory["spearman"]).all()
        assert np.isnan(shared.trajectory["error"]).all()
        np.testing.assert_array_equal(shared.centres, game.centres)
        assert shared.notes == ()
        for how in ({"seed": 0, "target": 0.9}, {"target": 0.9, "bounds": "data"}, {}):
            uncertified = da.disclosure_game(X, y, X_val, y_val, "random", 1.0, 1, **({"bounds": (0, 1)} | how))
            with pytest.raises(
                InputError, match="nothing in this game that the consumer may see: (noise|bounds|the tar)"
            ):
                uncertified.for_consumer()
        shared.save(tmp_path / "c.json")
        text = (tmp_path / "c.json").read_text()
        assert '"full_utility": null' in text
        for secret in (game.worth[0], game.trajectory["error"][-1], game.trajectory["spearman"][-1]):
            assert repr(float(secret)) not in text

    def test_the_owner_keeps_its_own_budget(self):
        owner = DataOwner(np.array([[0.2], [2.0]]), NoisyRecords([0.0], [1.0], 1.0), 2)
        assert owner.clipped == 1
        assert owner.unit.tolist() == [[0.2], [1.0]]
        owner.query([0, 1])
        owner.query([0])
        with pytest.raises(InputError, match="budget of record 0 is spent"):
            owner.query([1, 0])
        assert owner.queries.tolist() == [2, 1]  # nothing of a refused query is answered
        with pytest.raises(InputError, match="there is no record"):
            owner.query([5])
        owner.close()
        with pytest.raises(InputError, match="has closed"):
            owner.query([1])
        for points, ids, message in (
            ([[math.nan]], None, "points has the value nan at row 0"),
            ([[0.1]], np.arange(2), "ids has 2 entries for 1 records"),
            ([[0.1, 0.2]], None, "points must have 1 features"),
            ([["0.1"]], None, "points must hold numbers"),
            ([[0.1], [0.2]], [7, 7], "ids has duplicates: 7"),
        ):
            with pytest.raises(InputError, match=message):
                DataOwner(points, NoisyRecords([0.0], [1.0], 1.0), 2, ids=ids)
        with pytest.raises(UsageError, match=r"mechanism must be a datassay.privacy.NoisyRecords .*, got 'x'"):
            DataOwner([[0.1]], "x", 2)

    def test_many_who_ask_at_once_get_no_more_than_the_budget(self, tmp_path):
        from concurrent.futures import ThreadPoolExecutor

        ledger = Ledger(tmp_path / "l", epsilon=50.0, delta=1e-9, neighbours="replace-features")
        owner = DataOwner(np.full((1, 1), 0.5), NoisyRecords([0.0], [1.0], 1.0), 3, ledger=ledger)

        def ask(_):
            try:
                return len(owner.query([0]))
            except InputError:
                return 0

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(ask, range(24))) == 3
        assert ledger.spent() == 3.0

    def test_a_strategy_cannot_rename_the_accounts(self, tmp_path):
        ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-9, neighbours="replace-features")
        X, y, X_val, y_val = made(10, 10, 2)
        ids, kept = np.arange(10), X_val.copy()

        def renames(view):
            for array in (view.ids, view.labels, view.X_val, view.y_val):
                if view.step == 0:
                    with pytest.raises(ValueError, match="read-only"):
                        array[0] = 99
                array.setflags(write=True)  # it is the strategy's own copy
                array[:] = 1
            return [0, 1] if view.step < 5 else []

        game = da.disclosure_game(X, y, X_val, y_val, renames, 1.0, 9, 0.9999, bounds=(0, 1), ledger=ledger, ids=ids)
        assert ledger.spent() == game.query_cost * 5
        assert ledger.disclosures()[1].records == 2
        assert game.ids.tolist() == ids.tolist() == list(range(10))
        np.testing.assert_array_equal(X_val, kept)
        np.testing.assert_array_equal(game.labels, y)

    def test_what_was_paid_for_is_kept_when_a_strategy_fails(self, tmp_path):
        ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-9, neighbours="replace-features")

        def fails(view):
            if view.step == 3:
                raise RuntimeError("no idea")
            return [view.step]

        data = made(6, 10, 2)
        game = da.disclosure_game(*data, fails, 1.0, 9, 0.9999, bounds=(0, 1), ledger=ledger)
        assert game.outcome == "strategy failed"
        assert "strategy fails failed at move 3: RuntimeError no idea" in game.notes
        assert game.used.tolist() == [True] * 3 + [False] * 3
        assert game.utility == game.score(*data[2:])
        greedy = da.disclosure_game(*data, lambda view: 0, 1.0, 2, 0.9999, bounds=(0, 1))
        assert (greedy.outcome, greedy.n_queries) == ("strategy failed", 2)
        assert (
            "strategy <lambda> failed at move 2: the budget of record 0 is spent: it was queried 2 times"
            in greedy.notes
        )
        with pytest.raises(RuntimeError):
            da.disclosure_game(*data, fails, 1.0, 9, 0.9999, bounds=(0, 1), seed=0)  # a rehearsal has nothing to lose

    @pytest.mark.parametrize("strategy", ["ucb", "random", "shapley", "function"])
    @pytest.mark.parametrize(
        "error", [UnavailableError("the ledger stayed busy"), InputError("cannot open the ledger")]
    )
    def test_what_was_paid_for_is_kept_when_the_ledger_fails(self, tmp_path, monkeypatch, strategy, error):
        """And nobody else is blamed for it."""
        ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-9, neighbours="replace-features")
        honest, calls = Ledger.charge, []

        def charge(self, *arguments):
            calls.append(arguments)
            if len(calls) == 3:
                raise error
            honest(self, *arguments)

        monkeypatch.setattr(Ledger, "charge", charge)
        data = made(6, 10, 2)
        chooser = (lambda view: [view.step]) if strategy == "function" else strategy
        how = {"unseen": "absent"} if strategy == "ucb" else {}
        game = da.disclosure_game(*data, chooser, 1.0, 9, 0.9999, bounds=(0, 1), ledger=ledger, **how)
        assert game.outcome == "ledger unavailable"
        assert game.notes == (str(error),)
        assert game.n_queries == ledger.disclosures()[1].queries == game.received.sum() > 0
        assert game.used.any()
        assert game.utility == game.score(*data[2:])
        calls.clear()
        calls.extend([None] * 2)
        with pytest.raises(InputError, match=str(error)):  # nothing was given out: there is nothing to keep
            da.disclosure_game(*data, chooser, 1.0, 9, 0.9999, bounds=(0, 1), ledger=ledger)

    @pytest.mark.parametrize("strategy", ["ucb", "random"])
    @pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("the disk is full")])
    def test_a_payment_that_was_written_down_counts_whatever_cut_it_short(self, tmp_path, monkeypatch, strategy, error):
        """^C is most likely to strike while the ledger waits for its disk, and is heard when the payment is there."""
        ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-9, neighbours="replace-features")
        honest, calls = Ledger.charge, []

        def charge(self, *arguments):
            honest(self, *arguments)
            calls.append(arguments)
            if len(calls) == 3:
                raise error

        monkeypatch.setattr(Ledger, "charge", charge)
        data = made(6, 10, 2)
        how = {} if strategy == "ucb" else {"share": 0.5}
        game = da.disclosure_game(*data, strategy, 1.0, 9, 0.9999, bounds=(0, 1), ledger=ledger, **how)
        each = 1 if strategy == "ucb" else 3
        assert game.n_queries == ledger.disclosures()[1].queries == 3 * each
        assert ledger.disclosures()[1].total == 2.0 * game.n_queries  # ε × queries, of two features
        assert game.queries.max() * 2.0 == ledger.spent()
        assert game.received.sum() == 2 * each
        assert any("paid for and lost" in note for note in game.notes)
        assert game.outcome == ("interrupted" if isinstance(error, KeyboardInterrupt) else "ledger unavailable")
        calls[1:] = []
        owner = DataOwner(data[0], NoisyRecords([0, 0], [1, 1], 1.0), 2, ledger=ledger)
        owner.query([0])
        with pytest.raises(type(error)):
            owner.query([0, 1])
        assert owner.queries.tolist() == [2, 1, 0, 0, 0, 0]
        assert ledger.disclosures()[2].queries == 3

    def test_a_game_that_cannot_be_closed_is_kept(self, tmp_path, monkeypatch):
        ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-9, neighbours="replace-features")

        def complete(self, *arguments):
            raise UnavailableError("the ledger stayed busy")

        monkeypatch.setattr(Ledger, "complete", complete)
        game = da.disclosure_game(*made(6, 10, 2), "ucb", 1.0, 9, 0.9999, bounds=(0, 1), ledger=ledger, max_queries=7)
        assert (game.outcome, game.n_queries) == ("query limit reached", 7)
        assert any("could not be closed in the ledger, and stays open there: the ledger st" in n for n in game.notes)
        with pytest.raises(RuntimeError, match="mine"):  # what went wrong first is what is told

            def fails(view):
                raise RuntimeError("mine")

            da.disclosure_game(*made(6, 10, 2), fails, 1.0, 9, 0.9999, bounds=(0, 1), ledger=ledger)

    @pytest.mark.parametrize("strategy", ["random", "shapley", "shapley-commit", lambda view: Move([view.step], [0])])
    def test_too_little_memory_is_told_before_anything_is_paid(self, tmp_path, strategy):
        ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-9, neighbours="replace-features")
        for memory in (10, 1000) if callable(strategy) or strategy == "random" else (10, 1000, 4000):
            with pytest.raises(UnavailableError, match=f"memory={memory} bytes is too little"):
                da.disclosure_game(
                    *made(150, 90, 6), strategy, 0.1, 2, 0.99, bounds=(0, 1), ledger=ledger, memory=memory,
                    diagnostics=False,
                )  # fmt: skip
        assert ledger.releases() == []

    @pytest.mark.parametrize("strategy", ["ucb", "random", "shapley"])
    def test_noise_beyond_all_distances_is_told_before_anything_is_paid(self, tmp_path, strategy):
        ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-9, neighbours="replace-features")
        with pytest.raises(UsageError, match="epsilon is too small for such bounds: noise can reach 5e"):
            da.disclosure_game(*made(), strategy, 1e-90, 2, 0.99, bounds=(0, 1e80), ledger=ledger)
        assert ledger.releases() == []

    @pytest.mark.parametrize("strategy", ["random", "shapley"])
    def test_what_was_paid_for_is_kept_when_it_cannot_be_evaluated(self, tmp_path, monkeypatch, strategy):
        """By somebody else's error, once or again and again: the strategy is not to blame."""
        from datassay.market.game import GameSetup

        honest = GameSetup.evaluate
        data = made(6, 10, 2)
        for fails in (1, 10**9):
            calls = []

            def evaluate(self, points, use, rules, calls=calls, fails=fails):
                if use is not None:
                    calls.append(use)
                    if 2 <= len(calls) < 2 + fails:
                        raise MemoryError("no room")
                return honest(self, points, use, rules)

            monkeypatch.setattr(GameSetup, "evaluate", evaluate)
            game = da.disclosure_game(*data, strategy, 1.0, 9, 0.9999, bounds=(0, 1), share=1.0)
            assert game.outcome == "stopped by an error"
            assert game.notes[0] == "after 12 queries: MemoryError no room"
            assert game.received.tolist() == game.queries.tolist() == [2] * 6
            if fails == 1:
                assert game.utility == game.score(*data[2:])
            else:
                assert math.isnan(game.utility)
                assert "the utility of what was received is not known: MemoryError no room" in game.notes
                game.save(tmp_path / "g.json")
                again = da.load_result(tmp_path / "g.json")
                assert math.isnan(again.utility)
                assert again.received.tolist() == game.received.tolist()

    def test_validation_records_are_the_owners_whatever_their_labels(self):
        """Features are what is protected here, so that features alone tell whether a record is in both."""
        X, y, _, _ = made()
        for labels in (1 - y, np.zeros_like(y)):
            with pytest.raises(InputError, match="every validation record is also in the training data, whatever"):
                da.disclosure_game(X, y, X, labels, "random", 1.0, 1, 0.99)

    def test_bounds_that_some_of_the_records_make_are_not_certified(self, tmp_path):
        X, y, X_val, y_val = made()
        ends = np.unique([X.argmin(axis=0), X.argmax(axis=0)])
        ours, labels = np.concatenate([X_val, X[ends]]), np.concatenate([y_val, 1 - y[ends]])
        game = da.disclosure_game(X, y, ours, labels, "random", 1.0, 1, 0.99)
        assert not game.guarantee.certified
        assert any(
            "not certified: bounds were taken from the validation points, some of which" in n for n in game.notes
        )
        with pytest.raises(InputError, match="nothing in this game that the consumer may see: bounds were taken"):
            game.for_consumer()
        given = da.disclosure_game(X, y, ours, labels, "random", 1.0, 1, 0.99, bounds=(0, 1))
        assert given.guarantee.certified
        assert any("of the validation records occur in the training data too" in note for note in given.notes)
        ledger = Ledger(tmp_path / "l", epsilon=100.0, delta=1e-9, neighbours="replace-features")
        with pytest.raises(UsageError, match="this one is not: bounds were taken from the validation points"):
            da.disclosure_game(X, y, ours, labels, "random", 1.0, 1, 0.99, ledger=ledger)
        assert ledger.releases() == []

    def test_a_query_beyond_the_whole_budget_makes_no_ledger(self, tmp_path):
        ledger = Ledger.planned(tmp_path / "l", epsilon=2.0, delta=1e-9, neighbours="replace-features")
        with pytest.raises(BudgetExceededError, match="refuses this query: it would bring ε from 0 to 3"):
            da.disclosure_game(*made(), "random", 1.0, 9, 0.99, bounds=(0, 1), ledger=ledger)
        with pytest.raises(UsageError, match="k must be"):
            da.disclosure_game(*made(), "random", 0.1, 9, 0.99, bounds=(0, 1), ledger=ledger, k=0)
        assert not ledger.path.exists()
        game = da.disclosure_game(*made(), "random", 0.1, 2, 0.999, bounds=(0, 1), ledger=ledger)
        assert Ledger(tmp_path / "l").disclosures()[1].queries == game.n_queries > 0

    def test_a_move_is_paid_for_as_a_whole(self, tmp_path):
        """How much memory there is does not change where the ledger refuses."""
        games = []
        for memory in (2**20, 800):
            ledger = Ledger(tmp_path / f"l{memory}", epsilon=9.0, delta=1e-9, neighbours="replace-features")
            games.append(
                da.disclosure_game(
                    *made(9, 10, 40), "shapley", 0.1, 9, 0.9999, bounds=(0, 1), ledger=ledger, memory=memory
                )
            )
        assert [(game.outcome, game.n_queries, int(game.used.sum())) for game in games] == [
            ("ledger refused", 18, 5)
        ] * 2

    def test_validation_records_that_are_the_owners_are_refused(self):
        X, y, _, _ = made()
        with pytest.raises(InputError, match="every validation record is also in the training data"):
            da.disclosure_game(X, y, X, y, "random", 1.0, 1, 0.99)
        assert da.disclosure_game(X, y, X, y, "random", 1.0, 1, 0.99, seed=0).n_queries  # a rehearsal may

    def test_interrupted_it_keeps_what_it_has(self, monkeypatch):
        asked = []
        honest = DataOwner._draw

        def draw(self, rows):
            asked.append(len(rows))
            if len(asked) == 4:
                raise KeyboardInterrupt
            return honest(self, rows)

        monkeypatch.setattr(DataOwner, "_draw", draw)
        _, _, X_val, y_val = made(6, 10, 32)
        for strategy in ("random", "shapley", "ucb", lambda view: np.flatnonzero(view.remaining)):
            asked.clear()
            how = {"unseen": "absent"} if strategy == "ucb" else {} if callable(strategy) else {"share": 1.0}
            game = da.disclosure_game(
                *made(6, 10, 32), strategy, 1.0, 9, 0.9999, bounds=(0, 1), memory=600, **how
            )  # parts of two records, the fourth of which is lost: one query of the bandit's, else two
            assert game.outcome == "interrupted"
            held = game.centres.any(axis=1)
            assert held.sum() == (3 if strategy == "ucb" else 6)
            assert game.used.tolist() == held.tolist()
            assert game.utility == game.score(X_val, y_val) == game.trajectory["utility"][-1]
            assert game.n_queries == (4 if strategy == "ucb" else 12)  # paid for
            lost = "1 copy was paid for and lost" if strategy == "ucb" else "6 copies were paid for and lost"
            assert any(lost in note for note in game.notes)
            assert (game.received > 0).tolist() == held.tolist()
            assert game.received.sum() == game.n_queries - (1 if strategy == "ucb" else 6)
            points = made(6, 10, 32)[0]
            error = np.linalg.norm(game.centres - points, axis=1)[held].mean()
            assert game.trajectory["error"][-1] == pytest.approx(error)  # of the centres that there are
        monkeypatch.setattr(DataOwner, "_draw", lambda self, rows: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            da.disclosure_game(*made(6, 10, 2), "random", 1.0, 9, 0.9999, bounds=(0, 1))


class TestMechanism:
    def test_scale_of_the_noise(self):
        """OpenDP's noise on a feature of width Δ has the deviation √2 Δ/ε, feature by feature."""
        mechanism = NoisyRecords([0.0, -5.0, 3.0], [1.0, 5.0, 3.0], [1.0, 2.0, 1.0])
        points = np.tile([0.3, 1.0, 3.0], (4000, 1))
        off = mechanism.release(mechanism.to_unit(points), n_jobs=2) - points
        assert off[:, 0].std() == pytest.approx(math.sqrt(2), rel=0.1)
        assert off[:, 1].std() == pytest.approx(math.sqrt(2) * 10 / 2, rel=0.1)
        assert (off[:, 2] == 0).all()  # a feature that cannot move tells nothing
        assert np.abs(off[:, :2].mean(axis=0) / off[:, :2].std(axis=0)).max() < 4 / math.sqrt(4000)
        assert abs(np.corrcoef(off[:, 0], off[:, 1])[0, 1]) < 4 / math.sqrt(4000)
        assert mechanism.cost == 4.0

    def test_a_record_outside_the_bounds_is_cut_off(self):
        mechanism = NoisyRecords([0.0], [2.0], 1e9)
        copies = mechanism.release(mechanism.to_unit(np.array([[-3.0], [9.0]])))
        assert copies == pytest.approx(np.array([[0.0], [2.0]]), abs=1e-6)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([0.0], [-1.0], 1.0), "bounds of feature 0 are 0 and -1"),
            (([0.0], [math.inf], 1.0), "must be finite"),
            (([-1e308], [1e308], 1.0), "too far apart"),
            (([0.0], [0.0], 1.0), "no feature room to move"),
            (([0.0], [1.0], 1e-320), "epsilon is too small"),
            (([0.0, 0.0], [1.0], 1.0), "one low and one high"),
            (([0.0], [math.nan], 1.0), "bounds of feature 0"),
            (([0.0], [1.0], 0.0), "epsilon must be a finite number above 0"),
            (([0.0], [1.0], [1.0, 1.0]), "one for each of 1 features"),
            (([0.0, 0.0], [1.0, 1.0], [1.0, -1.0]), "that of feature 1 is -1"),
            ((["0"], [1.0], 1.0), "bounds must be numbers"),
            (([[0.0], [1.0, 2.0]], [1.0], 1.0), "bounds must be numbers"),
            (([0.0], [1.0], ["1"]), "epsilon must be one number, or one for each feature"),
            (([0.0], [1.0], np.array([1], "m8[D]")), "epsilon must be one number, or one for each feature"),
            (([0.0], [1.0], [10**400]), "epsilon must be one number, or one for each feature"),
        ],
    )
    def test_bad_bounds(self, arguments, message):
        with pytest.raises(InputError, match=message):
            NoisyRecords(*arguments)


class TestResult:
    game = da.disclosure_game(*made(), "ucb", 1.0, 6, 0.9, bounds=(0, 1), seed=0, ids=[f"r{i}" for i in range(60)])

    @pytest.mark.parametrize("kind", ["parquet", "json"])
    def test_saved_and_loaded(self, tmp_path, kind):
        self.game.save(tmp_path / f"g.{kind}")
        again = da.load_result(tmp_path / f"g.{kind}")
        for name in ("values", "ids", "labels", "queries", "centres", "used", "scores", "worth"):
            np.testing.assert_array_equal(getattr(again, name), getattr(self.game, name))
        for name, track in self.game.trajectory.items():
            np.testing.assert_array_equal(again.trajectory[name], track)
        assert again.guarantee == self.game.guarantee
        assert again.summary() == self.game.summary()
        assert again.score(*made(seed=9)[2:]) == self.game.score(*made(seed=9)[2:])

    def test_what_it_tells(self):
        game = self.game
        assert game.of("r3") == game.epsilon * game.queries[3]
        assert game.gini == gini(game.queries) == game.trajectory["gini"][-1]
        assert game.trajectory["budget"][-1] == game.budget
        assert game.trajectory["queries"][-1] == game.n_queries
        assert game.trajectory["utility"][-1] == game.utility
        assert game.to_frame("pyarrow").num_rows == 60
        assert game.trajectory_frame("pyarrow").column_names[0] == "step"
        with pytest.raises(ValueError, match="read-only"):
            game.centres[0] = 0

    def test_score_on_other_points(self):
        X, y, _, _ = made(seed=5)
        expected = knn_utility(
            self.game.centres, self.game.labels, X, y, 2, k=5, metric="euclidean", utility="votes", run=ONE
        )
        assert self.game.score(X, y) == expected
        with pytest.raises(InputError, match="5 labels for the 60 rows"):
            self.game.score(X, y[:5])
        with pytest.raises(InputError, match="X has 2 features"):
            self.game.score(X[:, :2], y)
        with pytest.raises(InputError, match="labels of the game and y are of different types: 1 and '1.0'"):
            self.game.score(X, [f"{label}.0" for label in np.ones_like(y)])
        with pytest.raises(InputError, match="plain numbers"):
            self.game.score(da.load_dataset("census"))

    def test_plots(self):
        from matplotlib.figure import Figure

        for what in ("utility", "gini", "spearman", "error", "spending"):
            axes = Figure().add_subplot()
            assert self.game.plot(what, axes) is axes
        with pytest.raises(InputError, match="what must be one of"):
            self.game.plot("everything")

    def test_progress_counts_queries(self):
        seen = []
        da.disclosure_game(*made(), "random", 1.0, 3, 1.0, bounds=(0, 1), seed=0, progress=lambda *a: seen.append(a))
        assert seen[-1] == (108, 180)

    def test_tables_are_encoded_by_what_the_consumer_has(self):
        table = da.load_dataset("census")
        records, ours = table.split(0.9, seed=1)
        game = da.disclosure_game(records, None, ours, None, "random", 2.0, 2, 0.99, share=0.1, seed=0)
        assert game.ids.tolist() == records.ids.tolist()
        assert 0 < game.score(ours) < 1
        fewer = records.split(0.1, seed=2)[0]
        part = da.disclosure_game(fewer, None, ours, None, "random", 2.0, 2, 0.99, share=0.1, seed=0)
        np.testing.assert_array_equal(part.mechanism.low, game.mechanism.low)
        np.testing.assert_array_equal(part.mechanism.high, game.mechanism.high)
        assert part.encoder.to_dict() == game.encoder.to_dict()

    def test_a_loaded_game_scores_tables_too(self, tmp_path):
        records, ours, test, _ = da.load_dataset("census").split(0.2, 0.1, 0.1, seed=1)
        game = da.disclosure_game(records, None, ours, None, "random", 2.0, 2, 0.99, share=0.5, seed=0)
        game.save(tmp_path / "g.parquet")
        assert da.load_result(tmp_path / "g.parquet").score(test) == game.score(test)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number above 0"),
        ({"epsilon": -1.0}, "epsilon must be a finite number above 0"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"epsilon": [1.0, 2.0]}, "one for each of 3 features"),
        ({"epsilon": ["a", "b", "c"]}, "epsilon must be one number, or one for each feature; got"),
        ({"epsilon": ["1", "2", "3"]}, "epsilon must be one number, or one for each feature; got"),
        ({"bounds": ("0", "1")}, "each a number or 3 numbers; got"),
        ({"bounds": (0, 10**400)}, "each a number or 3 numbers; got"),
        ({"epsilon": 1e308}, "epsilon is too large: over 3 features it adds up to more than can be written down"),
        ({"epsilon": 5e307}, "epsilon is too large: t_max=50 queries would cost more than can be written down"),
        ({"t_max": 10**300}, "t_max must be a whole number at most 1,000,000,000,000"),
        ({"t_max": -1}, "t_max must be a whole number at least 0"),
        ({"target": 1.5}, "target must be a finite number above 0 and at most 1"),
        ({"target": 0}, "target must be"),
        ({"strategy": "best"}, "strategy must be one of 'random'"),
        ({"strategy": 3}, "or a function; got 3"),
        ({"k": 0}, "k must be"),
        ({"metric": "precomputed"}, "metric must be one of"),
        ({"utility": "soft"}, "utility must be one of 'votes', 'accuracy'"),
        ({"unseen": "there"}, "unseen must be"),
        ({"bounds": "public"}, "bounds must be one of"),
        ({"bounds": (0, 1, 2)}, "bounds must be"),
        ({"bounds": (1, 0)}, "bounds of feature 0 are 1 and 0"),
        ({"bounds": ([0, 0], 1)}, "each a number or 3 numbers"),
        ({"strategy": "random", "share": 0}, "share must be"),
        ({"strategy": "shapley-commit", "bootstrap": 0}, "bootstrap must be"),
        ({"exploration": -0.1}, "exploration must be"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"max_queries": -1}, "max_queries must be"),
        ({"every": 0}, "every must be"),
        ({"seed": -1}, "seed must be"),
        ({"ledger": "file"}, "ledger must be a datassay.Ledger"),
        ({"progress": 3}, "progress must be"),
        ({"diagnostics": "no"}, "diagnostics must be True or False"),
    ],
)
def test_bad_input_is_named(how, message):
    with pytest.raises(InputError, match=message):
        da.disclosure_game(*made(), **({"seed": 0} | how if "ledger" not in how else how))


def test_bad_data_is_named():
    X, y, X_val, y_val = made()
    for arguments, message in (
        ((X, y), "X_val must be given"),
        ((X, y, X_val[:, :2], y_val), "X has 3 features and X_val has 2"),
        ((X, y[:-1], X_val, y_val), "y has 59 labels for 60 rows"),
        ((X[:0], y[:0], X_val, y_val), "X has no rows"),
        ((X[:, :0], y, X_val[:, :0], y_val), "X has no features"),
        ((np.full_like(X, np.nan), y, X_val, y_val), "nan"),
    ):
        with pytest.raises(InputError, match=message):
            da.disclosure_game(*arguments, seed=0)


class TestLeakage:
    def test_noise_hides_members(self, tmp_path):
        rng = np.random.default_rng(0)
        X, X_val = rng.uniform(size=(150, 3)), rng.uniform(size=(40, 3))
        y, y_val = rng.integers(0, 2, 150), rng.integers(0, 2, 40)
        game = da.disclosure_game(X, y, X_val, y_val, "random", 1.0, 2, 1.0, share=1.0, bounds=(0, 1), seed=0)
        found = da.disclosure_leakage(X, y, game, games=16)
        assert found.before.auc > 0.7
        assert found.after.auc < found.before.auc - 0.1
        assert "AUC" in found.summary()
        assert found.to_frame("pyarrow").num_rows == 2 * len(found.before)
        found.save(tmp_path / "l.parquet")
        assert da.load_result(tmp_path / "l.parquet").summary() == found.summary()
        assert "noisy centres" in [text.get_text().split(" (")[0] for text in found.plot().get_legend().get_texts()]
        same = da.membership_attack(X, y, "lira", 1, games=16, ids=np.arange(150))
        np.testing.assert_array_equal(same.values, found.before.values)

    def test_without_noise_nothing_changes(self):
        X, y, X_val, y_val = made(100, 20)
        y = np.random.default_rng(2).integers(0, 2, 100)
        game = da.disclosure_game(X, y, X_val, y_val, "random", 1e9, 1, 1.0, share=1.0, bounds=(0, 1), seed=0)
        for attacker in ("insider", "outsider"):
            found = da.disclosure_leakage(X, y, game, games=6, targets=60, attacker=attacker)
            np.testing.assert_array_equal(found.before.values, found.after.values)

    def test_an_outsiders_centres_are_as_noisy_as_the_consumers(self):
        """A mean of n copies with Laplace(Δ/ε) noise has the deviation √2 Δ/(ε √n), whoever draws it."""
        from datassay.market.leakage import _rehearsed

        X, y, X_val, y_val = made(3000, 10, 2)
        game = da.disclosure_game(X, y, X_val, y_val, "random", 2.0, 9, 1.0, bounds=(0, 4), max_queries=1, seed=0)
        for copies in (1, 4, 25):
            drawn = _rehearsed(X, game, np.full((3000, 1), copies), np.random.default_rng(copies))
            assert (drawn - X).std() == pytest.approx(math.sqrt(2) * 4 / 2.0 / math.sqrt(copies), rel=0.06)
            assert abs((drawn - X).mean()) < 4 * (drawn - X).std() / math.sqrt(6000)

    def test_copies_as_the_definition_says(self):
        """LiRA's losses on copies, from scikit-learn models of the copies asked about the records."""
        from sklearn.neighbors import KNeighborsClassifier

        X, y, _, _ = made(60)
        rng = np.random.default_rng(4)
        held = X + rng.normal(size=X.shape) * 0.2
        theirs = [X + rng.normal(size=X.shape) * 0.2 for _ in range(4)]
        seen = []

        def spy(view):
            seen.append(view)
            return view.loss

        for shadow_held in (None, theirs):
            attack = da.membership_attack(
                X, y, spy, 3, held=held, shadow_held=shadow_held, games=2, targets=None, shadows=4, seed=1
            )
            view = seen[-1]
            rng_game = np.random.default_rng([1, 1])
            halves = []
            for _ in range(5):
                inside = np.zeros(60, bool)
                inside[rng_game.permutation(60)[:30]] = True
                halves.append(inside)
            for model, (inside, loss) in enumerate(zip(halves, [view.loss, *view.shadow_loss.T], strict=True)):
                copies = held if model == 0 or shadow_held is None else theirs[model - 1]
                fitted = KNeighborsClassifier(3).fit(copies[inside], y[inside])
                assert loss == pytest.approx(1 - fitted.predict_proba(X)[np.arange(60), y])
            assert attack.members[attack.games == 1].tolist() == halves[0].tolist()

    def test_bad_input(self):
        X, y, X_val, y_val = made()
        game = da.disclosure_game(X, y, X_val, y_val, "random", 1.0, 1, 1.0, share=0.05, bounds=(0, 1), seed=0)
        with pytest.raises(InputError, match="3 records were queried"):
            da.disclosure_leakage(X, y, game)
        with pytest.raises(InputError, match="must be what disclosure_game returns"):
            da.disclosure_leakage(X, y, X)
        with pytest.raises(InputError, match="must be the records of the game"):
            da.disclosure_leakage(X[:5], y[:5], game)
        with pytest.raises(InputError, match="labels of the records in the game"):
            da.disclosure_leakage(X, 1 - y, da.disclosure_game(*made(), "random", 1.0, 1, 1.0, bounds=(0, 1), seed=0))
        with pytest.raises(InputError, match="targets must be a whole number"):
            da.disclosure_leakage(X, y, da.disclosure_game(*made(), "random", 1.0, 1, 1.0, seed=0), targets="all")
        with pytest.raises(InputError, match="attacker must be"):
            da.disclosure_leakage(X, y, game, attacker="anybody")
        with pytest.raises(InputError, match="use lira"):
            da.membership_attack(X, y, "t-waka", held=X)
        with pytest.raises(InputError, match="shape of the records"):
            da.membership_attack(X, y, held=X[:5])
        with pytest.raises(InputError, match="one array for each of 16"):
            da.membership_attack(X, y, held=X, shadow_held=[X])
        with pytest.raises(InputError, match="k-NN models of features"):
            da.membership_attack(X, y, held=X, metric="precomputed")


class TestEquilibrium:
    data = made(40, 30, 4)

    def search(self, **how):
        settings = {"epsilons": [1.0, 3.0], "t_maxes": [2, 40], "explorations": [0.0, 0.1], "repeats": 2} | how
        return da.search_equilibrium(*self.data, **{"bounds": (0, 1)} | settings, target=0.75, seed=5)

    def test_every_game_is_the_game(self):
        found = self.search()
        assert len(found) == 16
        for row in range(16):
            repeat = int(found.repeat[row])
            rng = np.random.default_rng([5, repeat])
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(np.random, "default_rng", lambda seed=None, rng=rng: rng)
                game = da.disclosure_game(
                    *self.data, "ucb", found.epsilon[row], int(found.t_max[row]), 0.75, bounds=(0, 1),
                    exploration=found.exploration[row], seed=0,
                )  # fmt: skip
            assert found.reached[row] == game.reached
            assert found.queries[row] == game.n_queries
            assert found.budget[row] == game.budget
            assert found.gini[row] == game.gini
            assert found.utility[row] == game.utility
            assert found.spearman[row] == pytest.approx(game.trajectory["spearman"][-1], nan_ok=True)

    def test_the_same_for_any_number_of_threads(self):
        one, two = self.search(n_jobs=1), self.search(n_jobs=2)
        for name in ("reached", "queries", "gini", "spearman"):
            assert getattr(one, name).tobytes() == getattr(two, name).tobytes()

    def test_who_would_choose_what(self):
        found = self.search()
        best = found.solution()
        options = {}
        for epsilon, t_max in {(e, t) for e, t in zip(found.epsilon, found.t_max, strict=True)}:
            answers = []
            for c in (0.0, 0.1):
                cell = (found.epsilon == epsilon) & (found.t_max == t_max) & (found.exploration == c)
                if found.reached[cell].all():
                    answers.append(found.budget[cell].mean())
            if answers:
                options[epsilon, t_max] = min(answers)
                assert found.best_response(epsilon, int(t_max))[1] == min(answers)
            else:
                assert found.best_response(epsilon, int(t_max)) is None
        assert options[best["epsilon"], best["t_max"]] == max(options.values()) == best["budget"]
        rows, columns, table = found.table("reached", 3.0)
        assert (rows.tolist(), columns.tolist()) == ([2, 40], [0.0, 0.1])
        assert table[0].tolist() == [0.0, 0.0]
        assert "The owner does best with" in found.summary()
        with pytest.raises(InputError, match="name one epsilon of 1, 3"):
            found.table()
        with pytest.raises(InputError, match="there is no epsilon=2"):
            found.table("gini", 2.0)

    def test_what_is_spent_in_vain_counts(self):
        found = self.search(repeats=1)
        two = {name: np.array(values) for name, values in (
            ("epsilon", [1.0] * 4), ("t_max", [9.0] * 4), ("exploration", [0.1, 0.1, 0.2, 0.2]), ("repeat", [0.0, 1.0] * 2),
            ("reached", [1.0, 0.0, 1.0, 1.0]), ("budget", [10.0, 500.0, 60.0, 60.0]),
        )}  # fmt: skip
        rest = {name: np.zeros(4) for name in ("queries", "utility", "gini", "inclusiveness", "spearman")}
        made_up = replace(found, **two, **rest)
        assert made_up.best_response(1.0, 9, chance=0.5) == (0.2, 60.0)
        assert made_up.best_response(1.0, 9) == (0.2, 60.0)
        assert made_up.best_response(1.0, 5) is None

    def test_the_owner_picks_what_costs_most_and_spreads_it_most_evenly(self):
        found = self.search(repeats=1, epsilons=[1.0], t_maxes=[2])
        some = {name: np.zeros(4) for name in ("repeat", "queries", "utility", "inclusiveness", "spearman")}
        some |= {"epsilon": np.array([1.0, 1.0, 2.0, 2.0]), "t_max": np.array([2.0, 3.0, 2.0, 3.0])}
        some |= {"exploration": np.full(4, 0.1), "reached": np.ones(4)}
        for budget, uneven, best in (
            ([30.0, 20.0, 10.0, 0.0], [0.5] * 4, 0),
            ([10.0, 20.0, 30.0, 0.0], [0.5, 0.1, 0.9, 0.0], 2),
            ([30.0] * 4, [0.5, 0.1, 0.2, 0.3], 1),
            ([30.0, 30.0, 30.0, 20.0], [0.5, 0.4, 0.2, 0.1], 2),
        ):
            made_up = replace(found, budget=np.array(budget), gini=np.array(uneven), **some)
            expected = {name: some[name][best] for name in ("epsilon", "t_max", "exploration")}
            assert made_up.solution() == expected | {"budget": budget[best], "gini": uneven[best]}

    def test_nobody_reaches_it(self):
        found = self.search(epsilons=[0.1], t_maxes=[1], repeats=1)
        assert found.solution() is None
        assert "No setting reaches the target" in found.summary()
        assert np.isnan(found.table("budget")[2]).all()
        for chance in (0, -1, 1.5, math.nan, "always"):  # in no part of the games, it would be reached by all
            with pytest.raises(InputError, match="chance must be a finite number above 0 and at most 1"):
                found.solution(chance)
        with pytest.raises(InputError, match="epsilon must be a finite number"):
            found.table("gini", "0.1")

    def test_it_goes_on_where_it_was_stopped(self, tmp_path):
        diary = tmp_path / "games.jsonl"
        whole = self.search()
        done = []

        def stop(at, of):
            done.append(at)
            if at == 5:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.search(resume=diary, n_jobs=1, progress=stop)
        kept = diary.read_text()
        assert len(kept.splitlines()) in (4, 5)
        for killed in ("{", '{"key', '{"key": "cut sho'):  # in the middle of a line
            diary.write_text(kept + killed)
            assert self.search(resume=diary, epsilons=[1.0], t_maxes=[2], explorations=[0.0]).notes
            kept = "".join(line + "\n" for line in diary.read_text().splitlines())
        diary.write_text(kept + kept.splitlines()[-1])  # whole, but for the end of the line
        seen = []
        again = self.search(resume=diary, progress=lambda at, of: seen.append(at))
        assert seen[0] == len(kept.splitlines())
        for name in ("reached", "queries", "budget", "utility", "gini", "spearman"):
            assert getattr(again, name).tobytes() == getattr(whole, name).tobytes()
        assert any("were taken from" in note for note in again.notes)
        assert len(set(diary.read_text().splitlines())) == 16
        diary.write_bytes(diary.read_bytes().replace(b"\n", b"\r\n"))  # an editor was here
        assert any("16 of 16 games" in note for note in self.search(resume=diary).notes)
        assert any("16 of 16 games" in note for note in self.search(resume=diary).notes)
        more = self.search(resume=diary, t_maxes=[2, 40, 5])
        assert any("16 of 24 games" in note for note in more.notes)
        other = da.search_equilibrium(*made(40, 30, 4, seed=1), [1.0], [2], [0.0], 0.75, resume=diary, repeats=1)
        assert not any("were taken" in note for note in other.notes)

    @pytest.mark.parametrize(
        "other",
        [
            {"k": 3}, {"metric": "manhattan"}, {"utility": "accuracy"}, {"unseen": "absent"}, {"learning_rate": 0.5},
            {"bounds": (0, 2)},
        ],
    )  # fmt: skip
    def test_games_by_other_rules_are_other_games(self, tmp_path, other):
        diary = tmp_path / "games.jsonl"
        small = {"epsilons": [1.0], "t_maxes": [2], "explorations": [0.1], "repeats": 1, "resume": diary}
        self.search(**small)
        assert not any("were taken" in note for note in self.search(**small, **other).notes)
        assert any("1 of 1 games" in note for note in self.search(**small, **other).notes)

    def test_half_a_game_is_not_kept(self, tmp_path, monkeypatch):
        """^C in the middle of a game, on one thread: the search ends, and the game is played again later."""
        diary, drawn = tmp_path / "games.jsonl", []
        how = {"memory": 2**13, "n_jobs": 1, "t_maxes": [40], "epsilons": [1.0]}
        whole = self.search(**how)
        honest = RehearsingOwner.noise

        def noise(self, copies):
            drawn.append(copies)
            if sum(drawn) > 1.5 * whole.queries[0]:  # in the second game
                raise KeyboardInterrupt
            return honest(self, copies)

        with monkeypatch.context() as patch:
            patch.setattr(RehearsingOwner, "noise", noise)
            with pytest.raises(KeyboardInterrupt):
                self.search(resume=diary, **how)
        assert len(diary.read_text().splitlines()) == 1
        assert self.search(resume=diary, **how).queries.tolist() == whole.queries.tolist()

    def test_a_file_that_is_something_else_is_left_alone(self, tmp_path):
        for text in (
            "name,age\nann,3\n",
            "hello",
            '{"a": 1}\n',
            "\nmy diary",
            '{"key": "me", "name": "ann"}',
            "a\rb\r",
        ):
            file = tmp_path / "mine"
            file.write_bytes(text.encode())
            with pytest.raises(InputError, match="left as it is"):
                self.search(resume=file)
            assert file.read_bytes() == text.encode()
        with pytest.raises(InputError, match="folder that exists"):
            self.search(resume=tmp_path / "no" / "file")

    def test_saved_loaded_and_drawn(self, tmp_path):
        from matplotlib.figure import Figure

        found = self.search(repeats=1)
        for kind in ("parquet", "json"):
            found.save(tmp_path / f"e.{kind}")
            again = da.load_result(tmp_path / f"e.{kind}")
            assert again.summary() == found.summary()
        for what in ("reached", "gini", "budget", "spearman", "utility", "inclusiveness", "queries"):
            axes = Figure().add_subplot()
            assert found.plot(what, 1.0, axes) is axes
        assert found.to_frame("pyarrow").num_rows == 8

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ({"epsilons": [0.0]}, "epsilons must be"),
            ({"t_maxes": [0]}, "t_maxes must be"),
            ({"explorations": [-1.0]}, "explorations must be"),
            ({"explorations": []}, "explorations must be a list of different"),
            ({"t_maxes": [3, 3]}, "t_maxes must be a list of different"),
            ({"t_maxes": 3}, "t_maxes must be a list of different"),
            ({"repeats": 0}, "repeats must be"),
            ({"epsilons": "1"}, "epsilons must be a list"),
            ({"epsilons": [[1.0], 2.0]}, "epsilons must be a list of different"),
            ({"explorations": [{}]}, "explorations must be a list of different"),
            ({"epsilons": [1e308]}, "epsilon is too large: over 4 features"),
            ({"epsilons": [1.0, 1e-100], "bounds": (0, 1e80)}, "epsilon is too small for such bounds"),
            ({"t_maxes": [10**20]}, "t_maxes must be a whole number between 1 and"),
        ],
    )
    def test_bad_input(self, how, message):
        with pytest.raises(InputError, match=message):
            self.search(**how)


def test_a_frozen_result_can_be_replaced():
    game = da.disclosure_game(*made(), "random", 1.0, 1, 1.0, bounds=(0, 1), seed=0)
    assert replace(game, target=0.5).target == 0.5
