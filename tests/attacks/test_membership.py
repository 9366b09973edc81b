"""Membership games: the harness is tested, not only used."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import datassay as da
from datassay import oracle
from datassay.attacks import View, kernels
from datassay.attacks import membership as games_room
from datassay.neighbors import Given


def population(n=300, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.integers(0, classes, n)


class TestHarness:
    def test_a_random_attack_scores_a_half(self):
        rng = np.random.default_rng(0)
        attack = da.membership_attack(*population(), lambda view: rng.random(len(view.loss)), games=60)
        low, high = attack.interval()
        assert low < 0.5 < high
        assert high - low < 0.1
        assert attack.tpr(0.05) == pytest.approx(0.05, abs=0.03)

    def test_an_attack_that_knows_scores_one(self, monkeypatch):
        """The membership bits, leaked: every measure must say so."""
        leaked = {}
        honest = games_room._KnnModels.play

        def leaking(self, rng, targets):
            inside, view = honest(self, rng, targets)
            leaked["inside"] = inside
            return inside, view

        monkeypatch.setattr(games_room._KnnModels, "play", leaking)
        attack = da.membership_attack(
            *population(), lambda view: leaked["inside"].astype(float), games=30, targets=None
        )
        assert attack.auc == 1.0
        assert attack.tpr(0.001) == 1.0
        assert attack.success_rates(0.5)[1].min() == 1.0

    def test_half_of_the_records_are_the_models(self):
        seen = []
        attack = da.membership_attack(
            *population(101), lambda view: seen.append(view) or np.zeros(101), games=3, targets=None, shadows=5
        )
        assert [int(attack.members[attack.games == g].sum()) for g in range(3)] == [50] * 3
        for view in seen:
            assert isinstance(view, View)
            assert view.shadow_in.sum(axis=0).tolist() == [50] * 5
            assert view.shadow_loss.shape == (101, 5)
        # Different games have different models, and models differ from their shadows, and these from each other.
        for g, view in enumerate(seen):
            models = [attack.members[attack.games == g], *view.shadow_in.T]
            assert len({model.tobytes() for model in models}) == 6
        assert len({attack.members[attack.games == g].tobytes() for g in range(3)}) == 3
        assert len({view.shadow_in.tobytes() for view in seen}) == 3

    @pytest.mark.parametrize("k", [1, 3, 8])
    def test_losses_are_those_of_scikit_learns_models(self, k):
        """Refit every model, on data without ties."""
        from sklearn.neighbors import KNeighborsClassifier

        X, y = population(80, classes=3)
        seen = []
        attack = da.membership_attack(
            X, y, lambda view: seen.append(view) or np.zeros(80), k=k, games=2, targets=None, shadows=4
        )
        for g, view in enumerate(seen):
            for inside, loss in (
                (attack.members[attack.games == g], view.loss),
                *((view.shadow_in[:, m], view.shadow_loss[:, m]) for m in range(4)),
            ):
                model = KNeighborsClassifier(k).fit(X[inside], y[inside])
                near = model.kneighbors(X, return_distance=False)
                expected = (y[inside][near] != y[:, None]).mean(axis=1)
                np.testing.assert_allclose(loss, expected, atol=1e-12)

    def test_duplicates_hide_a_member(self):
        """Ties go to the smaller index, whoever is asked about: among identical records nothing can be told."""
        X, y = np.zeros((200, 1)), np.random.default_rng(0).integers(0, 2, 200)
        attack = da.membership_attack(X, y, lambda view: -view.loss, k=5, games=20, targets=None)
        assert abs(attack.auc - 0.5) < 0.03

    def test_losses_with_ties_are_those_of_a_stable_sort(self):
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 3, (40, 2)).astype(float), rng.integers(0, 3, 40)
        seen = []
        attack = da.membership_attack(X, y, lambda view: seen.append(view) or np.zeros(40), k=3, games=3, targets=None)
        for g, view in enumerate(seen):
            inside = np.flatnonzero(attack.members[attack.games == g])
            for t in range(40):
                order = inside[np.argsort(((X[inside] - X[t]) ** 2).sum(axis=1), kind="stable")]
                assert view.loss[t] == pytest.approx(np.mean(y[order[:3]] != y[t]))

    def test_targets_alone_see_what_everybody_sees(self):
        """Neighbour lists of a few targets are those of the whole population, duplicates included."""
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 3, (60, 2)).astype(float), rng.integers(0, 2, 60)
        square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        for points, metric in ((X, "euclidean"), (square, "precomputed")):
            game = games_room.make_game(Given(points, y, metric=metric))
            lists = {
                len(asked): games_room.nearest_others(game, asked, 12)[0]
                for asked in (np.array([3, 10, 59]), np.arange(60))
            }
            np.testing.assert_array_equal(lists[3], lists[60][[3, 10, 59]])
            assert (lists[60] != np.arange(60)[:, None]).all()

    def test_the_same_seed_plays_the_same_games(self):
        X, y = population()
        first = da.membership_attack(X, y, games=5, seed=3)
        again = da.membership_attack(X, y, games=5, seed=3, n_jobs=2, memory=2**20)
        assert first.values.tobytes() == again.values.tobytes()
        assert first.members.tobytes() == again.members.tobytes()
        other = da.membership_attack(X, y, games=5, seed=4)
        assert first.members.tobytes() != other.members.tobytes()
        # More games are the same games and more.
        more = da.membership_attack(X, y, games=6, seed=3)
        assert more.members[: len(first)].tobytes() == first.members.tobytes()

    def test_lists_that_run_out_are_mended(self, monkeypatch):
        X, y = population(60)
        expected = da.membership_attack(X, y, games=3, targets=None).values
        monkeypatch.setattr(games_room, "_ranks_for_half", lambda k, n: k)
        assert da.membership_attack(X, y, games=3, targets=None).values.tobytes() == expected.tobytes()


class TestScores:
    @pytest.mark.parametrize("k", [1, 2, 4])
    def test_t_waka_equals_enumeration(self, k):
        rng = np.random.default_rng(k)
        X, y = rng.integers(0, 4, (10, 2)).astype(float), rng.integers(0, 3, 10)
        seen = []
        honest = games_room._KnnModels.play

        def spy(self, rng, targets):
            inside, view = honest(self, rng, targets)
            seen.append(view)
            return inside, view

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(games_room._KnnModels, "play", spy)
            attack = da.membership_attack(X, y, "t-waka", k=k, games=4, targets=None)
        for g, view in enumerate(seen):
            for t in range(10):
                distances = ((X - X[t]) ** 2).sum(axis=1)
                order = [t, *(j for j in sorted(range(10), key=lambda j: (distances[j], j)) if j != t)]
                match = [y[j] == y[t] for j in order]
                loss = Fraction(round(view.loss[t] * k), k)
                expected = oracle.target_waka(range(10), match, 0, k, loss)
                assert attack.values[attack.games == g][t] == pytest.approx(float(expected), abs=1e-12)

    @pytest.mark.parametrize("k", [1, 2, 4])
    def test_t_waka_stays_within_its_arrays(self, k, monkeypatch):
        """Compiled, it would not notice; not compiled, NumPy does."""
        X, y = population(30)
        expected = da.membership_attack(X, y, "t-waka", k=k, games=2).values
        monkeypatch.setattr(kernels, "write_target_waka", kernels.write_target_waka.py_func)
        np.testing.assert_allclose(da.membership_attack(X, y, "t-waka", k=k, games=2).values, expected, atol=1e-12)

    def test_attacks_find_members_and_k_hides_them(self):
        table = da.load_dataset("census")
        for method in ("lira", "lira-offline", "t-waka", "confidence", "calibrated-confidence"):
            near, far = (da.membership_attack(table, method=method, k=k, games=16).auc for k in (1, 15))
            assert near > 0.55
            assert near > far

    def test_any_classifier_can_be_attacked(self):
        from sklearn.linear_model import LogisticRegression
        from sklearn.tree import DecisionTreeClassifier

        X, y = population(200)
        tree = da.membership_attack(X, y, model=DecisionTreeClassifier(random_state=0), games=6, shadows=12)
        assert tree.auc > 0.7  # random labels are learned by heart
        line = da.membership_attack(X, y, model=LogisticRegression(), games=6, shadows=12)
        assert abs(line.auc - 0.5) < 0.15  # three numbers remember little
        assert line.parameters["model"] == "LogisticRegression"
        assert "k" not in line.parameters


def made_view(loss, inside, outside, grid=0.5):
    """A view of targets with these shadow losses, written out."""
    shadow = np.array([[*a, *b] for a, b in zip(inside, outside, strict=True)], float)
    held = np.array([[True] * len(a) + [False] * len(b) for a, b in zip(inside, outside, strict=True)])
    return View(np.array(loss, float), shadow, held, np.arange(len(loss)), grid)


def test_each_attack_by_hand():
    view = made_view([0.0, 1.0], [[0.0, 0.0], [0.0, 0.5]], [[0.5, 1.0], [0.5, 0.5]])
    # Without the target: means 0.75 and 0.5, variances 0.0625 and 0; with it: 0 and 0.25, 0 and 0.0625.
    np.testing.assert_allclose(games_room._calibrated(view), [0.75, -0.5])
    typical = (0.0625 / 2 + 0.0625 / 2) / 2
    rounding = 0.25 / 12
    outside = [(2 * 0.0625 + 8 * typical) / 10 + rounding, 8 * typical / 10 + rounding]
    inside = outside[::-1]
    np.testing.assert_allclose(
        games_room._lira_offline(view), [0.75 / outside[0] ** 0.5, -0.5 / outside[1] ** 0.5], rtol=1e-9
    )
    from scipy.stats import norm

    expected = [
        norm.logpdf(loss, mean_in, inside[t] ** 0.5) - norm.logpdf(loss, mean_out, outside[t] ** 0.5)
        for t, (loss, mean_in, mean_out) in enumerate([(0.0, 0.0, 0.75), (1.0, 0.25, 0.5)])
    ]
    np.testing.assert_allclose(games_room._lira(view), expected, rtol=1e-9)


def test_a_single_shadow_model_has_its_own_loss_for_a_mean_and_no_spread():
    from scipy.stats import norm

    view = made_view([0.5], [[1.0]], [[0.0, 0.5]])
    typical, rounding = 0.0625 / 2, 0.25 / 12
    inside, outside = 8 * typical / 9 + rounding, (2 * 0.0625 + 8 * typical) / 10 + rounding
    expected = norm.logpdf(0.5, 1.0, inside**0.5) - norm.logpdf(0.5, 0.25, outside**0.5)
    assert games_room._lira(view).tolist() == [pytest.approx(expected, rel=1e-9)]


def test_a_checkpoint_of_other_copies_is_refused(tmp_path):
    X, y = population(60)
    given = {"games": 2, "checkpoint": tmp_path / "kept"}
    first = da.membership_attack(X, y, held=X + 0.1, **given)
    assert da.membership_attack(X, y, held=X + 0.1, **given).values.tolist() == first.values.tolist()
    for other in ({"held": X - 0.1}, {}):
        with pytest.raises(da.InputError, match="held was"):
            da.membership_attack(X, y, **other, **given)


@pytest.mark.parametrize("outside", [19, 20, 99, 100, 999, 1000])
def test_rates_are_told_where_one_non_member_is_no_more_than_they_allow(outside):
    members = np.arange(outside + 10) < 10
    attack = da.Attack(np.arange(outside + 10) % 7.0, np.arange(outside + 10), members, "mine")
    facts = attack.facts()
    for rate, least in ((0.05, 20), (0.01, 100), (0.001, 1000)):
        assert facts[f"tpr.{rate:g}"] == (attack.tpr(rate) if outside >= least else None)


def test_who_looks_the_same_in_and_out_is_told_nothing():
    view = made_view([0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]])
    assert games_room._lira(view)[0] == pytest.approx(0.0)
    assert games_room._lira(view)[1] > 0


def test_confidence_compares_with_everybody_else():
    X, y = population(60)
    seen = []
    honest = games_room._KnnModels.play

    def spy(self, rng, targets):
        inside, view = honest(self, rng, targets)
        seen.append(view)
        return inside, view

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(games_room._KnnModels, "play", spy)
        attack = da.membership_attack(X, y, "confidence", k=4, games=1, targets=None)
    near, _ = da.nearest_neighbours(X, limit=4)
    np.testing.assert_allclose(attack.values, (y[near] != y[:, None]).mean(axis=1) - seen[0].loss)
    assert "shadows" not in attack.parameters


def test_hidden_by_duplicates_beyond_the_list():
    """Forty identical records and lists of five: the target itself is not among its nearest, and nobody else is lost."""
    game = games_room.make_game(Given(np.zeros((40, 1)), np.arange(40) % 2))
    lists, ahead = games_room.nearest_others(game, np.array([2, 30]), 5)
    assert lists.tolist() == [[0, 1, 3, 4, 5], [0, 1, 2, 3, 4]]
    assert ahead.tolist() == [2, 6]  # more than five: how many is not told, and a game that needs it makes longer lists


def test_a_class_that_a_half_lacks():
    from sklearn.naive_bayes import GaussianNB

    X, y = population(60)
    y = y.copy()
    y[:2] = 2  # two records: often in no half
    attack = da.membership_attack(X, y, model=GaussianNB(), games=3, shadows=6, targets=None)
    assert np.isfinite(attack.values).all()


def test_success_is_balanced_over_in_and_out():
    """Right when in, wrong when out: however often it was in, that is guessing."""
    attack = da.Attack(
        np.array([1.0, 1.0, 1.0, 1.0, -1.0, 0.0]), np.array(["a", "a", "a", "a", "b", "c"]),
        np.array([True, True, True, False, False, True]), "x", games=np.arange(6),
    )  # fmt: skip
    names, rates = attack.success_rates(0.0)
    # b was only ever out, and c only in: half of what they have is unknown.
    assert dict(zip(names.tolist(), rates.tolist(), strict=True)) == {"a": 0.5, "b": 0.75, "c": 0.5}
    again = da.Attack(np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4), np.array([False, False, True, True]), "x")
    assert again.success_rates()[1].tolist() == [0.75] * 4


def test_intervals_over_games_cover_at_their_rate():
    """Games whose scores have a known AUC: the interval holds it nearly as often as it says."""
    from scipy.stats import norm

    true = norm.cdf(0.5 / 2**0.5)
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(120):
        members = np.tile(np.arange(40) % 2 == 0, 30)
        scores = rng.normal(size=1200) + 0.5 * members
        attack = da.Attack(scores, np.arange(1200), members, "x", games=np.repeat(np.arange(30), 40))
        low, high = attack.interval(repeats=200)
        hits += low <= true <= high
    assert 0.86 <= hits / 120 <= 1.0
    assert high - low < 0.08
    each = [auc_of(scores[members_of], members[members_of]) for members_of in np.arange(1200).reshape(30, 40)]
    assert attack.spread() == pytest.approx(np.std(each))


def auc_of(scores, members):
    from sklearn.metrics import roc_auc_score

    return roc_auc_score(members, scores)


def test_games_that_tell_nothing_are_left_out():
    attack = da.Attack(
        np.array([2.0, 1.0, 5.0]), np.arange(3), np.array([True, False, True]), "x", games=np.array([0, 0, 1])
    )
    assert attack.auc == 1.0
    one_sided = da.Attack(np.array([2.0, 1.0]), np.arange(2), np.array([True, True]), "x")
    assert "2 targets" in repr(one_sided)
    with pytest.raises(da.InputError, match="needs members and non-members"):
        one_sided.tpr(0.1)


def test_rates_pool_games_and_never_fall():
    """Two games of two non-members each cannot show 30% false positives alone; together they can."""
    scores = np.array([5.0, 1.0, 4.0, 0.0, 3.0, 2.5, 2.0, -1.0])
    members = np.array([True, True, False, False] * 2)
    attack = da.Attack(scores, np.arange(8), members, "x", games=np.repeat([0, 1], 4))
    assert attack.tpr(0.3) == np.mean(scores[members] > 2.0)
    found = [attack.tpr(rate) for rate in np.linspace(0, 1, 21)]
    assert found == sorted(found)
    for wrong in (-1, 1.1, "x", np.nan):
        for ask in (attack.tpr, attack.spread, attack.interval):
            with pytest.raises(da.InputError, match="fpr must be"):
                ask(wrong)


def test_a_model_that_draws_does_so_by_the_seed():
    from sklearn.ensemble import RandomForestClassifier

    X, y = population(80)
    first, again = (
        da.membership_attack(X, y, model=RandomForestClassifier(3), games=2, shadows=4, seed=5).values for _ in range(2)
    )
    assert first.tobytes() == again.tobytes()


class TestOnion:
    def test_removing_the_exposed_is_scored_again(self, tmp_path):
        table = da.load_dataset("census", n=500)
        peeled = da.onion(table, k=1, games=10)
        exposed = da.self_waka(table, k=1)
        top = exposed.ids[np.argsort(-exposed.values, kind="stable")[:50]]
        assert set(peeled.removed) == set(top)
        assert len(peeled) == 450
        assert not set(peeled.ids) & set(peeled.removed)
        np.testing.assert_allclose(peeled.values, peeled.after - peeled.before)
        gone = np.isin(table.ids, peeled.removed)
        np.testing.assert_allclose(peeled.influence, da.waka_influence(table, removed=gone, k=1).values)
        assert peeled.auc[1] < peeled.auc[0]
        assert "AUC of the attack" in peeled.summary()
        assert peeled.plot().get_xlabel() == "WaKA influence of the removal"
        again = da.load_result(peeled.save(tmp_path / "o.json"))
        assert isinstance(again, da.Onion)
        assert again.values.tobytes() == peeled.values.tobytes()
        assert again.removed.tolist() == peeled.removed.tolist()
        assert again.auc == peeled.auc

    @pytest.mark.parametrize("by", ["self_shapley", "success", "random"])
    def test_every_way_to_choose(self, by):
        peeled = da.onion(*population(120), by=by, share=0.2, k=1, games=4)
        assert len(peeled.removed) == 24
        assert peeled.by == by

    def test_who_is_no_more_exposed_is_not_less_exposed_either(self):
        moved = np.array([0.5, 0.25, 0.0, 0.0, -0.5])
        peeled = replace(
            da.onion(*population(20), by="random", share=0.2, k=1, games=2),
            values=moved, ids=np.arange(5), before=np.zeros(5), after=moved, influence=moved,
        )  # fmt: skip
        facts = peeled.facts()
        assert (facts["share_more_exposed"], facts["share_less_exposed"], facts["remaining"]) == (0.4, 0.2, 5)

    def test_values_of_ones_own(self):
        X, y = population(120)
        peeled = da.onion(X, y, by=da.knn_shapley(X, y), k=1, games=3)
        assert peeled.by == "knn_shapley"
        with pytest.raises(da.InputError, match="by must hold a value for every record"):
            da.onion(X, y, by=da.knn_shapley(X[:50], y[:50]), k=1, games=3)

    def test_bad_arguments_are_named(self):
        with pytest.raises(da.InputError, match="share must be"):
            da.onion(*population(50), share=0)
        with pytest.raises(da.InputError, match="by must be one of"):
            da.onion(*population(50), by="age")
        with pytest.raises(da.InputError, match="by must be Values, or one of"):
            da.onion(*population(50), by=np.zeros(50))
        with pytest.raises(da.InputError, match="share=0.99 removes"):
            da.onion(*population(50), share=0.99)


class TestExposure:
    values = da.Values(np.array([-1.0, -0.5, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array(list("abcdefgh")), "worth")
    shown = da.Values(np.array([8.0, 0.0, 7.0, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array(list("abcdefgh")), "shown")

    def test_four_quadrants(self, tmp_path):
        joined = da.value_and_exposure(self.values, self.shown, low=0.25, high=0.75)
        quadrants = dict(zip(joined.ids.tolist(), joined.quadrants.tolist(), strict=True))
        assert quadrants["a"] == "delete first"
        assert quadrants["b"] == "of little use"
        assert quadrants["c"] == "protect"
        assert set("defgh") == {name for name, q in quadrants.items() if q == "keep"}
        assert joined.ids[joined.candidates()].tolist() == ["a"]
        assert joined.candidates(0).tolist() == []
        assert "delete first: 1 (12.5%)" in joined.summary()
        again = da.load_result(joined.save(tmp_path / "e.parquet"))
        assert isinstance(again, da.Exposure)
        assert again.quadrants.tolist() == joined.quadrants.tolist()
        assert len(joined.plot().get_legend().get_texts()) == 4

    def test_records_are_joined_by_id(self):
        rng = np.random.default_rng(0)
        order = rng.permutation(8)[:6]
        some = da.Values(self.shown.values[order], self.shown.ids[order], "shown")
        joined = da.value_and_exposure(self.values, some)
        assert joined.ids.tolist() == sorted(self.shown.ids[order].tolist())
        for name, worth, shown in zip(joined.ids, joined.values, joined.exposure, strict=True):
            assert (worth, shown) == (self.values.of(name), self.shown.of(name))
        assert joined.notes[0].startswith("6 records are in both; 2 have a value only")

    def test_an_attack_is_exposure_too(self):
        X, y = population(100)
        attack = da.membership_attack(X, y, k=1, games=6, targets=None)
        joined = da.value_and_exposure(da.knn_shapley(X, y), attack)
        np.testing.assert_array_equal(joined.exposure, attack.success_rates()[1])
        assert joined.measure == "success rate of lira"

    def test_where_all_are_alike_nobody_is_deleted(self):
        flat = da.Values(np.zeros(8), self.values.ids, "flat")
        for joined in (da.value_and_exposure(flat, self.shown), da.value_and_exposure(self.values, flat)):
            assert len(joined.candidates()) == 0
            assert joined.correlation() == 0.0

    def test_how_they_were_obtained_is_kept(self, tmp_path):
        X, y = population(60)
        attack = da.membership_attack(X, y, k=1, games=2, targets=None, seed=4)
        joined = da.value_and_exposure(da.knn_shapley(X, y, k=3), attack)
        again = da.load_result(joined.save(tmp_path / "e.json"))
        told = again.parameters
        assert (told["value k"], told["exposure k"], told["exposure seed"]) == (3, 1, 4)
        assert "a record was attacked in 2 games" in again.notes[-1]

    def test_strangers_are_refused(self):
        other = da.Values(np.zeros(2), np.array(["x", "y"]), "other")
        with pytest.raises(da.InputError, match="no record in common"):
            da.value_and_exposure(self.values, other)
        with pytest.raises(da.InputError, match="ids of different types"):
            da.value_and_exposure(self.values, da.Values(np.zeros(2), np.arange(2), "other"))
        with pytest.raises(da.InputError, match="exposure must be Values or an Attack"):
            da.value_and_exposure(self.values, np.zeros(8))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "guess"}, "method must be one of"),
        ({"method": 3}, "method must be a name or a function"),
        ({"k": 0}, "k must be"),
        ({"k": 26}, "k=26 is more than half of the 50 records"),
        ({"games": 0}, "games must be"),
        ({"targets": 51}, "targets must be"),
        ({"shadows": 64}, "shadows must be"),
        ({"X": np.zeros((1, 2)), "y": [0]}, "one row|at least 4"),
        ({"y": np.zeros(50, int)}, "one class only"),
        ({"X": np.full((50, 50), np.nan), "metric": "precomputed"}, "finite"),
        ({"method": lambda view: np.zeros(3)}, "scores of shape"),
        ({"method": lambda view: np.full(len(view.loss), np.nan)}, "not a number in game 0"),
        ({"method": "t-waka", "model": object()}, "is about k-NN"),
        ({"model": object()}, "must have fit and predict_proba"),
        ({"model": dict}, "must have fit and predict_proba"),
        ({"model": 3, "metric": "precomputed", "X": np.ones((50, 50))}, "model needs features"),
        ({"method": lambda view: ["a"] * 20}, "must return one number for each target"),
    ],
)
def test_bad_arguments_are_named(given, message):
    X, y = population(50)
    with pytest.raises(da.InputError, match=message):
        da.membership_attack(**{"X": X, "y": y, "targets": 20} | given)


def test_the_smallest_and_the_largest_game_that_can_be():
    """One game, two targets, and half of the records as neighbours; neither less nor more."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(9, 2)), np.arange(9) % 2
    attack = da.membership_attack(X, y, "confidence", k=4, games=1, targets=2)
    assert len(attack) == 2
    assert attack.facts()["games"] == 1
    for wrong in ({"k": 5}, {"k": 4, "games": 0}, {"k": 4, "targets": 1}, {"k": 4, "targets": 10}):
        with pytest.raises(da.UsageError):
            da.membership_attack(X, y, "confidence", **wrong)


def test_one_outsider_is_enough_to_say_how_well_members_are_told_from_others():
    scores, members = np.array([3.0, 2.0, 1.0]), np.array([True, True, False])
    attack = da.Attack(scores, np.arange(3), members, "mine")
    assert attack.facts()["auc"] == 1.0
    alone = da.Attack(scores, np.arange(3), np.ones(3, bool), "mine")
    assert alone.facts()["auc"] is None


def test_records_in_both_need_no_word_and_others_do():
    ids = np.arange(6)
    worth = da.Values(np.arange(6.0), ids, "worth")
    assert da.value_and_exposure(worth, da.Values(np.ones(6), ids[::-1], "open")).notes == ()
    joined = da.value_and_exposure(worth, da.Values(np.ones(5), ids[1:], "open"))
    assert joined.notes == ("5 records are in both; 1 have a value only and 0 an exposure only",)
