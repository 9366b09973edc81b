"""Release strategies: what they promise, counted by pandas; utility by its definitions; comparisons."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

import datassay as da
from datassay.release import kernels


def frame_of(table):
    return table.to_frame("pandas").drop(columns=["id"])


@st.composite
def mixed(draw):
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    few = draw(st.integers(1, 6))
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, few, n) * 7,
            "pay": rng.normal(0, 1, n).round(draw(st.integers(0, 2))),
            "job": rng.choice(list("abcdef")[:few], n),
            "ill": rng.choice(list("xyz"), n),
        }
    )
    if draw(st.booleans()):
        frame.loc[rng.random(n) < 0.2, "pay"] = np.nan
        frame.loc[rng.random(n) < 0.2, "job"] = None
    return frame, draw(st.integers(1, n))


@settings(max_examples=80, deadline=None)
@given(mixed(), st.booleans())
def test_no_group_is_ever_smaller_than_k(made, strict):
    frame, k = made
    released = da.release.mondrian(frame, k, strict=strict)
    out = frame_of(released.table)
    assert out.groupby(list(out), dropna=False).size().min() >= k
    assert len(out) == len(frame)
    assert released.table.ids.tolist() == list(range(len(frame)))
    for name in frame:  # values are the table's own
        assert set(out[name].dropna()) <= set(frame[name].dropna())
        assert out[name].isna().sum() == 0 or frame[name].isna().any()


@settings(max_examples=60, deadline=None)
@given(mixed(), st.integers(1, 3), st.floats(0.05, 1.0), st.booleans())
def test_groups_are_diverse_and_close_where_asked(made, least, farthest, strict):
    frame, k = made
    least = min(least, frame["ill"].nunique())
    released = da.release.mondrian(frame, k, strict=strict, sensitive="ill", l=least, t=farthest)
    out = frame_of(released.table)
    assert (out["ill"] == frame["ill"]).all()
    everyone = frame["ill"].value_counts(normalize=True)
    for _, group in out.groupby(["age", "pay", "job"], dropna=False):
        assert len(group) >= k
        assert group["ill"].nunique() >= least
        share = group["ill"].value_counts(normalize=True).reindex(everyone.index).fillna(0)
        assert 0.5 * (share - everyone).abs().sum() <= farthest + 1e-9


@settings(max_examples=40, deadline=None)
@given(mixed(), st.floats(0.05, 0.5))
def test_closeness_of_numbers_is_ordered(made, farthest):
    frame, k = made
    frame["pay"] = frame["pay"].fillna(0)
    released = da.release.mondrian(frame, k, columns=["age", "job"], sensitive="pay", t=farthest)
    out = frame_of(released.table)
    levels = np.sort(frame["pay"].unique())
    if len(levels) == 1:
        return
    rank = {value: i / (len(levels) - 1) for i, value in enumerate(levels)}
    for _, group in out.groupby(["age", "job"], dropna=False):
        distance = wasserstein_distance(group["pay"].map(rank), frame["pay"].map(rank))
        assert distance <= farthest + 1e-9


def test_groups_are_cut_as_far_as_can_be():
    people = da.census(1000, seed=1)
    out = frame_of(da.release.mondrian(people, 5, strict=False).table).drop(
        columns=["label_error", "duplicate_of", "rare"]
    )
    assert len(out.drop_duplicates()) > 1000 / 10 * 0.8
    line = pd.DataFrame({"x": range(16)})
    assert da.release.mondrian(line, 4).table["x"].tolist() == [1] * 4 + [5] * 4 + [9] * 4 + [13] * 4
    assert da.release.mondrian(line, 5).table["x"].tolist() == [3] * 8 + [11] * 8
    same = pd.DataFrame({"x": [1] * 9, "y": ["a"] * 9})
    for strict in (True, False):
        assert len(frame_of(da.release.mondrian(same, 2, strict=strict).table).drop_duplicates()) == 1
    halves = pd.DataFrame({"x": [1] * 5 + [2]})
    assert set(da.release.mondrian(halves, 2).table["x"]) == {1}
    assert _groups(halves, 2, strict=False).tolist() == [0, 0, 0, 1, 1, 1]
    assert _groups(halves, 2, strict=True).tolist() == [0] * 6


def _groups(frame, k, strict):
    codes = np.unique(frame["x"], return_inverse=True)[1][None].astype(np.int64)
    levels = np.array([codes.max() + 1])
    group = np.empty(len(frame), np.int64)
    kernels.mondrian(
        codes, levels, np.linspace(0, 1, levels[0] + 1)[None], np.array([True]), k, strict,
        np.zeros(len(frame), np.int64), np.ones(1), False, 1, 1.0, -1, group,
    )  # fmt: skip
    return group


def test_chosen_columns_only_are_made_alike():
    people = da.census(300, seed=2)
    released = da.release.mondrian(people, 10, columns=["age", "sex"])
    out, before = frame_of(released.table), frame_of(people)
    assert out.groupby(["age", "sex"]).size().min() >= 10
    assert (out["capital"] == before["capital"]).all()
    assert released.table.label == "income"


def test_people_are_removed_at_random_or_by_value():
    people = da.census(200, seed=3)
    values = da.knn_shapley(people)
    kept = da.release.remove(people, 0.3, values=values)
    assert len(kept) == 140
    gone = ~np.isin(values.ids, kept.table.ids)
    assert values.values[gone].max() <= values.values[~gone].min()
    first, again, other = (da.release.remove(people, 0.3, seed=s).table.ids.tolist() for s in (1, 1, 2))
    assert first == again != other
    assert len(da.release.remove(people, 0.0)) == len(da.release.keep(people)) == 200


@pytest.mark.parametrize(
    ("named", "made"),
    [
        ("keep", lambda table, _: da.release.keep(table)),
        ("k=4", lambda table, _: da.release.mondrian(table, 4)),
        ("remove=0.3", lambda table, _: da.release.remove(table, 0.3, seed=5)),
        (
            "shapley=0.3",
            lambda table, by: da.release.remove(
                table,
                0.3,
                values=da.knn_shapley(
                    table, X_val=by, k=3, utility="fraction", weights=da.balance_weights(by.labels, 2.0)
                ),
            ),
        ),
        (
            "waka=0.3",
            lambda table, by: da.release.remove(
                table, 0.3, values=da.waka(table, X_val=by, k=3, weights=da.balance_weights(by.labels, 2.0))
            ),
        ),
        ("copula", lambda table, _: da.release.synthesize(table, "copula", seed=5)),
    ],
)
def test_a_strategy_s_name_stands_for_its_function(named, made):
    table, looked_at = da.census(200, seed=3).split(0.6)
    given = da.release.make_release(named, table, looked_at, k=3, balance=2.0, seed=5)
    expected = made(table, looked_at)
    assert (given.strategy, given.synthetic) == (expected.strategy, expected.synthetic)
    pd.testing.assert_frame_equal(given.table.to_frame("pandas"), expected.table.to_frame("pandas"))


def test_the_copula_keeps_margins_and_correlations():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, 4000)
    frame = pd.DataFrame({"x": x, "y": (x + 0.5 * rng.normal(0, 1, 4000)).round(1), "n": rng.poisson(3, 4000)})
    frame["c"] = np.where(x > 0.5, "high", np.where(rng.random(4000) < 0.5, "low", "mid"))
    frame.loc[rng.random(4000) < 0.1, "y"] = np.nan
    frame.loc[rng.random(4000) < 0.2, "c"] = None
    made = da.release.synthesize(frame, seed=1)
    out = frame_of(made.table)
    assert made.synthetic
    assert made.table.columns["n"].data.dtype.kind == "i"
    for name in ("x", "y", "n"):
        assert wasserstein_distance(out[name].dropna(), frame[name].dropna()) < 0.1
        assert abs(out[name].isna().mean() - frame[name].isna().mean()) < 0.03
    shares = frame["c"].value_counts(normalize=True, dropna=False)
    assert (out["c"].value_counts(normalize=True, dropna=False) - shares).abs().max() < 0.04
    both = frame.dropna(subset=["y"])
    assert abs(out[["x", "y"]].dropna().corr().iloc[0, 1] - both[["x", "y"]].corr().iloc[0, 1]) < 0.08
    same = da.release.synthesize(frame, seed=1)
    pd.testing.assert_frame_equal(frame_of(same.table), out)
    assert len(da.release.synthesize(frame, n=7)) == 7


def test_what_is_written_has_no_ids_and_dates_are_dates(tmp_path):
    frame = pd.DataFrame(
        {
            "name": [f"n{i}" for i in range(12)],
            "born": ["1970-01-31", "1971-02-01", None] * 4,
            "sex": list("fm") * 6,
            "y": [0, 1] * 6,
        }
    )
    frame.to_csv(tmp_path / "p.csv", index=False)
    table = da.read_table(tmp_path / "p.csv", label="y", ignore=["name"])
    released = da.release.mondrian(table, 3)
    out = pd.read_csv(released.save(tmp_path / "out.csv"))
    assert list(out.columns) == ["born", "sex", "y"]
    assert set(out["born"].dropna()) <= set(frame["born"].dropna())
    assert out.groupby(list(out), dropna=False).size().min() >= 3
    own = pd.read_csv(released.save(tmp_path / "own.csv", ids=True))
    assert own["name"].tolist() == frame["name"].tolist()
    assert da.read_table(tmp_path / "out.csv", like=table).columns["born"].is_date


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_order_of_what_is_written_says_nothing_of_whose_row_it_is(tmp_path, ending):
    """Whoever knew the order of the original, an alphabetical list say, would find everybody in k=8 by counting."""
    people = da.census(200, seed=3)
    mixed = people.select(np.random.default_rng(0).permutation(200))
    for number, release in enumerate((da.release.keep, lambda t: da.release.mondrian(t, 8))):
        files = [release(t).save(tmp_path / f"{number}{t is mixed}.{ending}") for t in (people, mixed)]
        if number == 0:  # groups, and with them what stands for each, depend on the order where people tie
            assert files[0].read_bytes() == files[1].read_bytes()
        out = pd.read_csv(files[0]) if ending == "csv" else pd.read_parquet(files[0])
        kept = frame_of(release(people).table)[list(out)].astype(out.dtypes)
        assert not out.equals(kept)
        assert out.value_counts().to_dict() == kept.value_counts().to_dict()


def test_missing_is_no_sensitive_value():
    frame = pd.DataFrame({"x": [1, 1, 2, 2], "ill": ["a", None, "a", None], "z": [1, 2, 3, 4]})
    with pytest.raises(da.InputError, match="has 1 different values"):
        da.release.mondrian(frame, 1, columns=["x"], sensitive="ill", l=2)


def test_labels_of_another_type_are_the_same_classes():
    frame = pd.DataFrame({"x": range(40), "y": [0] * 20 + [1] * 20})
    train = da.read_table(frame, label="y")
    test = da.read_table(frame.assign(y=frame["y"].astype(float)), label="y")
    assert da.release.predictive_utility(train, test, k=1).accuracy == 1
    with pytest.raises(da.InputError, match="no label of"):
        da.release.predictive_utility(train, da.read_table(frame.assign(y="z"), label="y"))
    with pytest.raises(da.InputError, match="holds fractions"):
        da.release.predictive_utility(da.read_table(frame.assign(y=frame["x"] / 7), label="y"), test)


class Repeats:
    """A model that returns what it saw."""

    def fit(self, frame):
        self.frame = frame

    def sample(self, n):
        return self.frame.sample(n, replace=True, random_state=0)


def test_any_model_with_fit_and_sample_will_do():
    people = da.census(100, seed=4)
    made = da.release.synthesize(people, Repeats(), n=40)
    assert len(made) == 40
    assert made.parameters["method"] == "Repeats"
    assert made.table.label == "income"
    risk = da.reidentification_risk(people, made, permutations=5)
    assert risk.present.all()
    with pytest.raises(da.InputError, match="fit and sample"):
        da.release.synthesize(people, 3)


def test_a_model_is_held_to_the_columns_and_rows_asked_for():
    people = da.census(30, seed=4)
    assert "epochs" not in da.release.synthesize(people, Repeats(), n=5).parameters
    assert "epochs" not in da.release.synthesize(people, n=5).parameters
    forgetful, lazy = Repeats(), Repeats()
    forgetful.sample = lambda n: forgetful.frame.drop(columns="age").head(n)
    lazy.sample = lambda n: lazy.frame.head(n - 1)
    with pytest.raises(da.InputError, match="fit and sample"):
        da.release.synthesize(people, SimpleNamespace(fit=print))
    with pytest.raises(da.InputError, match="made no column 'age'"):
        da.release.synthesize(people, forgetful, n=5)
    with pytest.raises(da.InputError, match="made 4 rows where 5"):
        da.release.synthesize(people, lazy, n=5)


def test_one_person_with_a_sensitive_value_makes_it_one_of_those_in_the_group():
    frame = pd.DataFrame({"x": [0, 0, 9, 9], "s": ["a", "b", "a", "b"]})
    assert set(da.release.mondrian(frame, 2, columns=["x"], sensitive="s", l=2).table.columns["x"].data) == {0, 9}


def test_a_release_that_has_lost_every_column_is_refused_by_name():
    table = da.read_table(pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": list("aabb")}), "y")
    lost = replace(table, columns={**table.columns, "x": replace(table.columns["x"], data=np.full(4, np.nan))})
    with pytest.raises(da.InputError, match="column 'x' of .* has no values"):
        da.release.predictive_utility(lost, table, k=1)


def test_the_deep_models_say_what_they_need():
    try:
        import ctgan  # noqa: F401
    except ImportError:
        with pytest.raises(da.MissingDependencyError, match="Business Source License"):
            da.release.synthesize(da.census(50), "ctgan")


def test_fidelity_is_one_minus_the_share_of_the_random_distance():
    rng = np.random.default_rng(1)
    a = pd.DataFrame({"x": rng.normal(0, 1, 300), "c": rng.choice(list("aab"), 300)})
    b = pd.DataFrame({"x": rng.normal(0.5, 1, 200), "c": rng.choice(list("ab"), 200)})
    low, spread = a["x"].min(), np.ptp(a["x"])
    scaled, other = (a["x"] - low) / spread, (b["x"] - low) / spread
    fine = (np.arange(200_000) + 0.5) / 200_000
    w = [wasserstein_distance(scaled, other), abs((a["c"] == "a").mean() - (b["c"] == "a").mean())]
    w_random = [wasserstein_distance(scaled, fine), abs((a["c"] == "a").mean() - 0.5)]
    expected = (np.mean(w_random) - np.mean(w)) / np.mean(w_random)
    assert da.release.fidelity(a, b) == pytest.approx(expected, abs=1e-5)
    assert da.release.fidelity(a, a) == 1
    far = pd.DataFrame({"a": [-1e9] * 50 + [1e9] * 50})
    assert da.release.fidelity(pd.DataFrame({"a": [0] * 50 + [1] * 50}), far) < -1e6
    with pytest.raises(da.InputError, match="lacks the column 'c'"):
        da.release.fidelity(a, b[["x"]])


def test_many_classes_are_no_warning():
    frame = pd.DataFrame({"x": range(40), "y": [f"c{i}" for i in range(40)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = da.release.predictive_utility(da.read_table(frame, "y"), da.read_table(frame, "y"), k=1)
    assert found.accuracy == 1


def test_a_column_that_a_release_has_lost_ends_no_comparison():
    """Of a column that two in three do not have, groups of 32 share nothing: they are compared by the others."""
    frame = da.census(120, seed=1).to_frame("pandas").drop(columns=["id", "label_error", "duplicate_of", "rare"])
    without = da.read_table(frame, "income")
    frame["salary"] = np.where(np.arange(120) % 3 == 1, 912837.0, np.nan)
    table = da.read_table(frame, "income")
    lost = da.read_table(frame.assign(salary=frame["salary"].where(frame.index < 2)), "income").select(
        np.arange(2, 120)
    )
    assert lost.columns["salary"].missing.all()
    found, expected = (
        da.release.predictive_utility(one, of, k=3)
        for one, of in ((lost, table), (without.select(np.arange(2, 120)), without))
    )
    assert found == expected
    compared = da.compare_releases(table, strategies=["keep", "k=32"], people=20)
    assert np.isfinite(compared.mcc).all()


def test_predictive_utility_is_that_of_scikit_learn():
    from sklearn.metrics import f1_score, matthews_corrcoef
    from sklearn.neighbors import KNeighborsClassifier

    train, test = da.census(600, seed=5).split(0.6)
    encoder = da.fit_encoder(train)
    model = KNeighborsClassifier(7).fit(encoder.transform(train)[0], train.labels)
    predicted = model.predict(encoder.transform(test)[0])
    found = da.release.predictive_utility(train, test, k=7)
    assert found.mcc == pytest.approx(matthews_corrcoef(test.labels, predicted))
    assert found.accuracy == pytest.approx((predicted == test.labels).mean())
    names, sizes = np.unique(test.labels, return_counts=True)
    assert found.f1 == pytest.approx(f1_score(test.labels, predicted, pos_label=names[sizes.argmin()]))
    shares = model.predict_proba(encoder.transform(test)[0])
    right = shares[np.arange(len(shares)), np.searchsorted(model.classes_, test.labels)]
    assert found.loss == pytest.approx(1 - right.mean())


def test_single_people_are_compared_with_the_first_strategy_by_hand():
    """Eleven people are worth 0 … 10 in the first strategy, and a twelfth is not in it: fifths end at 2 and at 8."""
    nan, n = np.nan, 12
    first = np.array([4, 9, 2, 7, 0, 10, 1, 6, 3, 8, 5, nan])
    worth = {
        "first": first,
        "turned round": 20 - 3 * first,
        "twelfth too": np.where(np.isnan(first), 100.0, np.where(first == 4, nan, first**2)),
        "three left": np.where(np.isin(first, [1, 5, 9]), -(first % 5), nan),
        "two left": np.where(np.isin(first, [2, 3]), first, nan),
        "nobody left": np.full(n, nan),
    }
    risks = np.random.default_rng(4).random((len(worth), n))
    empty = np.zeros(len(worth))
    ids = np.array(list(worth))
    found = da.Comparison(
        ids, risks.mean(axis=1), *[empty] * 6, risks=risks, people=np.arange(n), worth=np.array(list(worth.values()))
    )
    single = found.individuals()
    assert list(single) == list(worth)
    for row, (name, values) in enumerate(worth.items()):
        frame = pd.DataFrame({"first": first, "then": values, "risk": risks[row]}).dropna()
        ranks = frame.rank().corr()
        said = single[name]
        assert said["people"] == len(frame)
        known = len(frame) > 2
        assert said["rank correlation with the first"] == pytest.approx(
            ranks.loc["first", "then"] if known else nan, nan_ok=True
        )
        assert said["rank correlation of value and risk"] == pytest.approx(
            ranks.loc["then", "risk"] if known else nan, nan_ok=True
        )
        spread = frame["then"].max() - frame["then"].min()
        assert said["range of values"] == pytest.approx(spread, nan_ok=True)
        for which, fifth in (("least", [0, 1, 2]), ("most", [8, 9, 10])):
            gained = [risks[row, person] - risks[0, person] for person in range(n) if first[person] in fifth]
            assert said[f"change of risk, {which} valuable fifth"] == pytest.approx(sum(gained) / 3, abs=1e-12)
    assert [single[name]["people"] for name in worth] == [11, 11, 10, 3, 2, 0]
    assert single["turned round"]["rank correlation with the first"] == pytest.approx(-1)
    with pytest.raises(ValueError, match="zip"):  # no strategy is passed over in silence
        replace(found, worth=found.worth[:2]).individuals()
    unknown = da.Comparison(ids, empty, *[empty] * 6, risks=risks, people=np.arange(n))
    with pytest.raises(da.UsageError, match="individuals=True"):
        unknown.individuals()
    with pytest.raises(da.InputError, match="must keep people as they are"):
        da.Comparison(
            ids[:1], empty[:1], *[empty[:1]] * 6, risks=risks[:1], people=np.arange(n), worth=np.full((1, n), nan)
        ).individuals()


def test_strategies_side_by_side(tmp_path):
    people = da.census(700, seed=6)
    strategies = ["keep", "k=4", "k=32", "remove=0.5", "shapley=0.25", "waka=0.25", "copula"]
    found = da.compare_releases(people, strategies=strategies, people=80, permutations=8, individuals=True)
    assert found.ids.tolist() == strategies
    assert found.of("k=32")["risk"] < found.of("k=4")["risk"] < found.of("keep")["risk"]
    assert found.of("keep")["fidelity"] == 1
    safe, useful = 1 - found.values, found.mcc
    for i, on_front in enumerate(found.pareto()):
        beaten = any(
            safe[j] >= safe[i] and useful[j] >= useful[i] and (safe[j] > safe[i] or useful[j] > useful[i])
            for j in range(len(found))
        )
        assert on_front == (not beaten)
    single = found.individuals()
    assert single["keep"]["rank correlation with the first"] == pytest.approx(1)
    assert single["k=32"]["rank correlation with the first"] < single["k=4"]["rank correlation with the first"]
    back = da.load_result(found.save(tmp_path / "c.json"))
    assert back.summary() == found.summary()
    assert back.individuals()["k=4"] == pytest.approx(single["k=4"])
    from matplotlib.figure import Figure

    assert len(found.plot(Figure().add_subplot()).texts) == 7
    assert found.plot_risks(Figure().add_subplot()).lines
    drawn = found.plot_individuals(Figure().add_subplot()).lines
    low = found.worth[0] <= np.quantile(found.worth[0], 0.2)
    assert drawn[2].get_ydata()[0] == pytest.approx((found.risks[2] - found.risks[0])[low].mean())
    own = da.compare_releases(
        people, strategies={"halved": lambda t: da.release.remove(t, 0.5)}, people=20, permutations=4
    )
    assert own.ids.tolist() == ["halved"]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: da.release.mondrian(p, 0), "k must be"),
        (lambda p: da.release.mondrian(p, 51), "no group can be that large"),
        (lambda p: da.release.mondrian(p, 2, columns="age"), "must be a list"),
        (lambda p: da.release.mondrian(p, 2, columns=["agee"]), "did you mean 'age'"),
        (lambda p: da.release.mondrian(p, 2, columns=[]), "no attribute"),
        (lambda p: da.release.mondrian(p, 2, l=2), "name it"),
        (lambda p: da.release.mondrian(p, 2, sensitive="sex"), "needs l, t or both"),
        (lambda p: da.release.mondrian(p, 2, sensitive="sex", l=3), "has 2 different values"),
        (lambda p: da.release.mondrian(p, 2, columns=["sex"], sensitive="sex", l=2), "cannot be one of"),
        (lambda p: da.release.mondrian(p, 2, sensitive="sex", t=2), "at most 1"),
        (lambda p: da.release.remove(p, 1.0), "below 1"),
        (lambda p: da.release.remove(p, 0.99), "leaves nobody"),
        (lambda p: da.release.remove(p, 0.5, values=[1]), "must be Values"),
        (
            lambda p: da.release.remove(p, 0.5, values=da.knn_shapley(p.select(np.arange(9)))),
            "no value for the records",
        ),
        (lambda p: da.release.synthesize(p, "gan"), "method must be one of"),
        (lambda p: da.compare_releases(p, strategies=["magic"]), "'magic' is not known"),
        (lambda p: da.compare_releases(p, strategies=["k=x"]), "not a number"),
        (lambda p: da.compare_releases(p, strategies=[]), "names none"),
        (lambda p: da.compare_releases(p, strategies="keep"), "must be a list"),
        (lambda p: da.compare_releases(p, strategies=["keep", "keep"]), "same name"),
        (lambda p: da.compare_releases(p, strategies=["k=8.5"]), "k must be a whole number"),
        (lambda p: da.compare_releases(p, test=p), "not in the table"),
        (lambda p: da.compare_releases(p, "incomee"), "did you mean 'income'"),
        (lambda p: da.compare_releases(p, strategies={"x": lambda t: 3}, people=5), "must return a Release"),
        (lambda p: da.compare_releases(frame_of(p)), "name the column to predict"),
    ],
)
def test_bad_input_is_named(ask, message):
    with pytest.raises(da.InputError, match=message):
        ask(da.census(50))


def test_a_draw_without_a_seed_is_that_of_seed_0():
    people = da.census(50)
    for way in (
        lambda **seed: da.release.remove(people, 0.3, **seed),
        lambda **seed: da.release.synthesize(people, **seed),
    ):
        assert frame_of(way().table).equals(frame_of(way(seed=0).table))


@settings(max_examples=60, deadline=None)
@given(mixed())
def test_a_group_is_represented_by_its_lower_median_or_what_most_of_it_have(made):
    """Or by nothing, where more than half of it is missing; of values as frequent the first."""
    frame, k = made
    frame = frame.assign(place=range(len(frame)))
    out = frame_of(da.release.mondrian(frame, k, strict=False).table)
    group = out["place"]  # the median of distinct numbers differs from group to group
    for name in ("place", "age", "pay"):
        for which, members in frame.groupby(group)[name]:
            present = np.sort(members.dropna())
            median = present[(len(present) - 1) // 2] if 2 * len(present) >= len(members) else np.nan
            np.testing.assert_equal(out.loc[group == which, name].unique(), [median])
    for which, members in frame["ill"].groupby(group):
        counts = members.value_counts()
        assert set(out.loc[group == which, "ill"]) == {min(counts[counts == counts.max()].index)}


def test_diversity_alone_cuts_wherever_it_may():
    """Each quarter has both values of what is sensitive, so that asking for two changes nothing; for one value it does."""
    frame = pd.DataFrame({"x": range(16), "ill": ["a", "b"] * 8})
    plain = da.release.mondrian(frame, 4, columns=["x"]).table["x"]
    for strict in (True, False):
        diverse = da.release.mondrian(frame, 4, columns=["x"], sensitive="ill", l=2, strict=strict).table["x"]
        assert diverse.tolist() == plain.tolist() == [1] * 4 + [5] * 4 + [9] * 4 + [13] * 4
    frame["ill"] = ["a"] * 8 + ["b"] * 8
    for strict in (True, False):
        assert len(set(da.release.mondrian(frame, 4, sensitive="ill", l=2, strict=strict).table["x"])) == 1


def test_a_group_is_cut_below_its_lowest_value_too():
    frame = pd.DataFrame({"x": [1] * 4 + [2] * 4})
    assert da.release.mondrian(frame, 4).table["x"].tolist() == frame["x"].tolist()


def test_groups_are_cut_where_numbers_are_farthest_apart_and_categories_are_most():
    """A number's spread is its range as a part of the whole; a category's is how many of its values there are."""
    frame = pd.DataFrame({"x": [0, 0, 1, 1, 2, 2, 100, 100], "c": list("acbdegfh")})
    out = frame_of(da.release.mondrian(frame, 2).table)
    # First x is cut. Then one half spreads over 1 % of x and 3/7 of c, and is cut by c; the other over 98 % of x.
    assert out["x"].tolist() == [0] * 4 + [2, 2, 100, 100]


def test_a_column_without_variety_is_one_column_among_others():
    """It tells nothing at random, and what it has lost counts: (W_rand − W)/W_rand over all columns."""
    frame = pd.DataFrame({"same": [3.0] * 8, "c": list("aaaaaabb")})
    other = pd.DataFrame({"same": [3.0] * 6 + [4.0] * 2, "c": list("aaaaabbb")})
    assert da.release.fidelity(frame, other) == pytest.approx((0.25 - (0.25 + 0.125)) / 0.25)
    nothing = pd.DataFrame({"none": [np.nan] * 8, "c": list("aaaaaabb")})
    assert da.release.fidelity(nothing, nothing) == 1


def test_correlations_that_contradict_each_other_leave_the_margins_as_they_are():
    """x goes with y, y with z, and x against z: never seen all three, so no three numbers are correlated like that."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(3, 1500))
    frame = pd.DataFrame(
        {
            "x": np.concatenate([x[0], np.full(1500, np.nan), x[2]]),
            "y": np.concatenate([x[0], x[1], np.full(1500, np.nan)]),
            "z": np.concatenate([np.full(1500, np.nan), x[1], -x[2]]),
        }
    )
    out = frame_of(da.release.synthesize(frame, n=6000, seed=2).table)
    for name in frame:
        assert wasserstein_distance(out[name].dropna(), frame[name].dropna()) < 0.12


@given(st.integers(0, 10_000), st.integers(1, 30))
def test_places_drawn_for_values_lead_back_to_them(seed, n):
    from datassay.release.strategies import _spread_codes, _spread_numbers

    rng = np.random.default_rng(seed)
    numbers, absent = rng.integers(0, 5, n).astype(float), rng.random(n) < 0.3
    places, back = _spread_numbers(numbers, absent, rng)
    np.testing.assert_array_equal(back(places[~absent]), numbers[~absent])
    codes = rng.integers(0, 4, n)
    places, back = _spread_codes(codes, 5, rng)
    np.testing.assert_array_equal(back(places), codes)
    assert back(np.ones(1))[0] in codes  # whose end is 1 by name, and by rounding a little less
    assert ((places >= 0) & (places <= 1)).all()


def test_confidence_in_a_label_that_a_release_has_lost_is_none():
    train = da.read_table(pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": ["a", "a", "b", "b"]}), "y")
    test = da.read_table(pd.DataFrame({"x": [0.0, 3.0, 3.0, 0.0], "y": ["a", "b", "c", "c"]}), "y")
    found = da.release.predictive_utility(train, test, k=1)
    assert (found.accuracy, found.loss) == (0.5, 0.5)
