"""Attacks: each number against the public functions or a definition written out."""

import math

import numpy as np
import pytest

import datassay as da
from datassay.attacks import values as attacked
from datassay.attacks.result import auc, tpr_at


def population(seed=0, n=60, d=2, steps=4):
    """Few distinct places: many records at equal distances, and duplicates."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, steps, (n, d)).astype(float), rng.integers(0, 2, n)


@pytest.fixture
def seen(monkeypatch):
    """What the attack computed on its way: values alone, values with the twin, by data set and target."""
    found = {}
    for name in ("_threshold_values", "_knn_values"):
        honest = getattr(attacked, name)

        def spy(*arguments, honest=honest):
            found["values"] = honest(*arguments)
            return found["values"]

        monkeypatch.setattr(attacked, name, spy)
    return found


def game(X, y, seed, members, shadow, shadow_sets):
    """The draws of a game, done again."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    drawn = 2 * members + shadow
    sets = [order[:members]]
    for _ in range(shadow_sets):
        sets.append(order[2 * members + np.sort(rng.choice(shadow, members, replace=False))])
    return order[: 2 * members], sets, order[drawn : drawn + 200]


@pytest.mark.parametrize("utility", ["soft", "fraction"])
@pytest.mark.parametrize("k", [1, 3, 9, 10, 40])
def test_values_of_copies_are_those_of_the_public_function(seen, k, utility):
    X, y = population(k)
    settings = dict(members=8, shadow=12, shadow_sets=3, seed=4)
    da.value_score_attack(X, y, k=k, utility=utility, **settings)
    targets, sets, rest = game(X, y, 4, 8, 12, 3)
    alone, twin = seen["values"]
    place = np.argsort(game_order(X, 4))  # ties go to the record that comes first in the game's order
    for s, members in enumerate(sets):
        members = members[np.argsort(place[members])]
        for t, z in enumerate(targets):
            for value, rows in ((alone, [*members, z]), (twin, [*members, z, z])):
                if value is twin and z in members:
                    continue
                data = X[rows], y[rows], X[rest], y[rest]
                expected = da.knn_shapley(*data, k=k, utility=utility, n_classes=2).values[-1]
                assert value[s, t] == pytest.approx(expected, abs=1e-12)


def game_order(X, seed):
    return np.random.default_rng(seed).permutation(len(X))


@pytest.mark.parametrize("tau", [-0.99, -0.9, 0.3])
def test_threshold_values_of_copies_too(seen, tau):
    X, y = population(3)
    da.value_score_attack(X, y, scores="tknn_shapley", tau=tau, members=8, shadow=12, shadow_sets=3, seed=4)
    targets, sets, rest = game(X, y, 4, 8, 12, 3)
    alone, twin = seen["values"]
    for s, members in enumerate(sets):
        for t, z in enumerate(targets):
            for value, rows in ((alone, [*members, z]), (twin, [*members, z, z])):
                if value is twin and z in members:
                    continue
                expected = da.tknn_shapley(X[rows], y[rows], X[rest], y[rest], tau=tau, n_classes=2).values[-1]
                assert value[s, t] == pytest.approx(expected, abs=1e-12)


def test_scores_are_log_likelihood_ratios(seen):
    from scipy.stats import norm

    X, y = np.random.default_rng(0).normal(size=(80, 2)), np.random.default_rng(1).integers(0, 2, 80)
    attack = da.value_score_attack(X, y, k=3, members=10, shadow=20, shadow_sets=8, seed=1)
    alone, twin = seen["values"]
    for t in range(20):
        inside, outside = twin[1:, t], alone[1:, t]
        expected = norm.logpdf(alone[0, t], inside.mean(), inside.std()) - norm.logpdf(
            alone[0, t], outside.mean(), outside.std()
        )
        assert attack.values[t] == pytest.approx(expected, rel=1e-6)
    assert attack.members.tolist() == [True] * 10 + [False] * 10
    np.testing.assert_array_equal(attack.ids, game_order(X, 1)[:20])


def test_private_values_hide_what_values_tell():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (X[:, 0] > 0).astype(int)
    settings = dict(members=200, shadow=400, seed=0)
    told = da.value_score_attack(X, y, scores="tknn_shapley", tau=-0.9999, **settings)
    assert told.auc > 0.6
    for scores, sampling in (
        ("private_tknn_shapley", 1.0),
        ("private_tknn_shapley", 0.1),
        ("private_knn_shapley", 1.0),
    ):
        hidden = da.value_score_attack(
            X, y, scores=scores, tau=-0.9999, epsilon=0.5, delta=1e-4, sampling=sampling, **settings
        )
        assert abs(hidden.auc - 0.5) < 5 * math.sqrt(1 / 12 * (1 / 200 + 1 / 200))


def test_the_same_seed_plays_the_same_game():
    X, y = population(1, n=200)
    first, second = (da.value_score_attack(X, y, members=30, shadow=60, seed=7).values for _ in range(2))
    assert first.tobytes() == second.tobytes()
    jobs = da.value_score_attack(X, y, members=30, shadow=60, seed=7, n_jobs=2, memory=2**20).values
    assert first.tobytes() == jobs.tobytes()


def test_tables_and_validation_sets_can_be_given():
    table = da.load_dataset("census")
    train, validation = table.split(0.8)
    attack = da.value_score_attack(train, X_val=validation, members=50, shadow=100, k=1)
    assert attack.parameters["n_validation"] == len(validation)
    assert set(attack.ids) <= set(train.ids)


class TestAttack:
    rng = np.random.default_rng(0)
    members = rng.random(300) < 0.5
    scores = np.round(rng.normal(size=300) + members, 1)

    def attack(self, **given):
        return da.Attack(self.scores, np.arange(300), self.members, "test", **given)

    def test_auc_and_rates_are_those_of_scikit_learn(self):
        from sklearn.metrics import roc_auc_score, roc_curve

        assert auc(self.scores, self.members) == pytest.approx(roc_auc_score(self.members, self.scores), abs=1e-12)
        fpr, tpr, _ = roc_curve(self.members, self.scores, drop_intermediate=False)
        for wanted in (0.0, 0.01, 0.05, 0.5, 1.0):
            assert tpr_at(self.scores, self.members, wanted) == pytest.approx(tpr[fpr <= wanted].max(), abs=1e-12)

    def test_games_are_averaged(self):
        games = np.arange(300) % 3
        attack = self.attack(games=games)
        each = [auc(self.scores[games == g], self.members[games == g]) for g in range(3)]
        assert attack.auc == pytest.approx(np.mean(each))
        low, high = attack.interval()
        assert min(each) <= low <= attack.auc <= high <= max(each)

    def test_intervals_cover(self):
        low, high = self.attack().interval()
        # The standard error of Hanley and McNeil, to a fifth.
        a, n = self.attack().auc, self.members.sum()
        q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
        m = 300 - n
        error = math.sqrt((a * (1 - a) + (n - 1) * (q1 - a * a) + (m - 1) * (q2 - a * a)) / (n * m))
        assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.2)
        assert self.attack().interval(0.05)[0] <= self.attack().tpr(0.05) <= self.attack().interval(0.05)[1]

    def test_it_saves_tells_and_draws(self, tmp_path):
        attack = self.attack(games=np.arange(300) % 2, parameters={"k": 3}, seed=2)
        for name in ("a.parquet", "a.json"):
            again = da.load_result(attack.save(tmp_path / name))
            assert isinstance(again, da.Attack)
            assert again.values.tobytes() == attack.values.tobytes()
            assert again.members.tolist() == attack.members.tolist()
            assert again.auc == attack.auc
            assert (again.seed, dict(again.parameters)) == (2, {"k": 3})
        assert list(attack.to_frame("pandas").columns) == ["id", "score", "member", "game"]
        assert "AUC 0." in attack.summary()
        assert "Members found at 1.0% false positives" in attack.summary()
        assert "There are too few non-members to show 0.1% false positives" in attack.summary()
        ax = attack.plot()
        assert ax.get_xscale() == ax.get_yscale() == "log"
        assert len(attack.plot(ax).get_lines()) == 3
        with pytest.raises(ValueError, match="read-only"):
            attack.values[0] = 1

    def test_it_needs_both_kinds(self):
        with pytest.raises(da.InputError, match="needs members and non-members"):
            da.Attack(self.scores, np.arange(300), np.ones(300, bool), "test").auc
        with pytest.raises(da.InputError, match="ids must hold one entry"):
            da.Attack(self.scores, np.arange(3), self.members, "test")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scores": "knn"}, "scores must be one of"),
        ({"k": 0}, "k must be"),
        ({"members": 1}, "members must be"),
        ({"members": 20, "shadow": 10}, "shadow must be"),
        ({"shadow_sets": 1}, "shadow_sets must be"),
        ({"members": 20, "shadow": 20}, "the game needs 60 records .* and some to validate with, and there are 60"),
        ({"members": 5, "shadow": 5, "scores": "private_tknn_shapley", "epsilon": -1}, "epsilon must be"),
        (
            {"members": 5, "shadow": 5, "scores": "private_knn_shapley", "sampling": 0.5},
            "sampling applies to threshold",
        ),
        ({"members": 5, "shadow": 5, "utility": "loud"}, "utility must be one of"),
    ],
)
def test_bad_arguments_are_named(given, message):
    with pytest.raises(da.InputError, match=message):
        da.value_score_attack(*population(), **given)


def test_distances_are_no_data_for_an_attack_on_values():
    near = np.random.default_rng(0).random((60, 60))
    with pytest.raises(da.UsageError, match="needs features, not distances"):
        da.value_score_attack(
            None, np.arange(60) % 2, near, np.arange(60) % 2, metric="precomputed", members=10, shadow=20
        )
