"""Re-identification risk and Shapley values against a plain reference: per person, per set, NumPy only."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

import datassay as da
from datassay.identity import risk_kernels
from datassay.identity.results import Risk


def gower(one, other, frame):
    """Contribution of every attribute to the distance of two rows, from the definition."""
    parts = []
    for name in frame.columns:
        a, b = one[name], other[name]
        if pd.isna(a) or pd.isna(b):
            parts.append(float(pd.isna(a) != pd.isna(b)))
        elif pd.api.types.is_numeric_dtype(frame[name]):
            spread = frame[name].max() - frame[name].min()
            parts.append(min(1.0, abs(a - b) / spread) if spread > 0 else float(a != b))
        else:
            parts.append(float(a != b))
    return np.array(parts)


class Reference:
    """The formulas of the thesis, corrected, one person and one set at a time."""

    def __init__(self, original, released, k, zeta=None, epsilon1=100.0, epsilon2=0.5):
        self.original, self.released, self.k = original, released, k
        self.zeta = np.ones(original.shape[1]) if zeta is None else np.array(zeta)
        self.epsilon1, self.epsilon2 = epsilon1, epsilon2

    def person(self, i):
        one = self.original.iloc[i]
        others = [gower(one, self.original.iloc[j], self.original).sum() for j in range(len(self.original)) if j != i]
        near = np.sort(others)[: self.k]
        mu, s = near.mean(), near.std()
        parts = np.array([gower(one, self.released.iloc[t], self.original) for t in range(len(self.released))])
        full = parts.sum(axis=1)
        if mu == 0:
            link = np.zeros(len(full))
        elif s == 0:
            link = (full < mu - 1e-12).astype(float)
        else:
            link = np.where(full <= mu, 1 - 2 * norm.cdf((full - mu) / s), 0.0)
        return parts, link

    def scenario(self, parts, link, known):
        d = parts.shape[1]
        distance = parts[:, list(known)].sum(axis=1)
        chosen = distance <= distance.min() + 1e-12
        rest = [a for a in range(d) if a not in known]
        gain = 0.0
        if rest:
            total = self.zeta[rest].sum()
            x = total / self.zeta.sum()
            gamma = math.log(1 + self.epsilon1 * x) / math.log(1 + self.epsilon1)
            error = parts[np.ix_(chosen, rest)] @ self.zeta[rest]
            gain = float((gamma * (1 - error / total)).mean())
        linked = float(link[chosen].mean())
        return linked, gain, linked * max(gain, self.epsilon2)

    def all_sets(self, i):
        parts, link = self.person(i)
        d = parts.shape[1]
        return {u: self.scenario(parts, link, u) for r in range(1, d + 1) for u in combinations(range(d), r)}


def frames(seed, n=14, m=11, missing=True):
    rng = np.random.default_rng(seed)

    def make(size):
        frame = pd.DataFrame(
            {
                "age": rng.integers(20, 60, size).astype(float),
                "pay": rng.normal(0, 1, size).round(1),
                "job": rng.choice(["cook", "nurse", "judge"], size),
                "sex": rng.choice(["f", "m"], size),
            }
        )
        if missing:
            frame.loc[rng.random(size) < 0.15, "age"] = np.nan
            frame.loc[rng.random(size) < 0.15, "job"] = None
        return frame

    return make(n), make(m)


def run(original, released, **options):
    return da.reidentification_risk(original, released, synthetic=True, neighbours=5, **options)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from(["uniform", "binomial"]))
def test_risk_is_that_of_the_reference(seed, weighted, scenarios):
    original, released = frames(seed)
    zeta = [1.0, 2.5, 0.5, 1.0] if weighted else None
    weights = dict(zip(original.columns, zeta, strict=True)) if weighted else None
    found = run(original, released, scenarios=scenarios, weights=weights, epsilon2=0.4, epsilon1=20.0, method="exact")
    reference = Reference(original, released, 5, zeta, 20.0, 0.4)
    share = np.ones(4) / 4 if scenarios == "uniform" else np.array([4, 6, 4, 1]) / 15
    for i in range(len(original)):
        sets = reference.all_sets(i)
        by_size = [np.mean([v for u, v in sets.items() if len(u) == r], axis=0) for r in range(1, 5)]
        link, gain, risk = share @ np.array(by_size)
        assert found.values[i] == pytest.approx(risk, abs=1e-12)
        assert found.linkability[i] == pytest.approx(link, abs=1e-12)
        assert found.gain[i] == pytest.approx(gain, abs=1e-12)
    assert ((found.values >= 0) & (found.values <= 1)).all()
    assert ((found.linkability >= 0) & (found.linkability <= 1)).all()
    assert ((found.gain >= 0) & (found.gain <= 1)).all()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_shapley_values_are_those_of_the_reference_and_add_up(seed):
    original, released = frames(seed)
    found = da.reidentification_shapley(original, released, synthetic=True, neighbours=5, method="exact")
    reference = Reference(original, released, 5)
    for i in range(len(original)):
        worth = {(): 0.0} | {u: v[2] for u, v in reference.all_sets(i).items()}
        for j in range(4):
            expected = sum(
                (worth[tuple(sorted((*u, j)))] - worth[u]) / (4 * math.comb(3, len(u))) for u in worth if j not in u
            )
            assert found.values[i, j] == pytest.approx(expected, abs=1e-12)
        assert found.values[i].sum() == pytest.approx(worth[(0, 1, 2, 3)], abs=1e-12)


def test_sampled_orders_estimate_the_exact_numbers_within_their_intervals():
    people = da.census(250, seed=1)
    columns = ["age", "sex", "marital", "occupation", "region", "income"]
    exact = da.reidentification_risk(people, people, columns=columns, method="exact")
    values = da.reidentification_shapley(people, people, columns=columns, method="exact")
    inside, shapley_inside = [], []
    for seed in range(20):
        found = da.reidentification_risk(people, people, columns=columns, method="sampled", permutations=40, seed=seed)
        inside.append((found.lower - 1e-12 <= exact.values) & (exact.values <= found.upper + 1e-12))
        assert abs(found.mean() - exact.mean()) < 3 * found.mean_half()
        estimated = da.reidentification_shapley(
            people, people, columns=columns, method="sampled", permutations=40, seed=seed, people=60
        )
        rows = np.isin(values.ids, estimated.ids)
        within = (estimated.lower - 1e-12 <= values.values[rows]) & (values.values[rows] <= estimated.upper + 1e-12)
        shapley_inside.append(within)
        np.testing.assert_allclose(estimated.values.sum(axis=1), values.values[rows].sum(axis=1), atol=1e-12)
    assert 0.92 < np.mean(inside) < 0.98
    assert 0.92 < np.mean(np.concatenate(shapley_inside)) < 0.98


def test_guessing_is_a_scenario_in_which_everyone_is_singled_out():
    original, released = frames(3, missing=False)
    found = run(original, released, scenarios={"all": ["sex"], "pair": ["age", "job"]})
    reference = Reference(original, released, 5)
    for i in range(len(original)):
        parts, link = reference.person(i)
        expected = []
        for known in ([3], [0, 2]):
            rest = [a for a in range(4) if a not in known]
            gamma = math.log(1 + 100 * len(rest) / 4) / math.log(101)
            gain = gamma * (1 - parts[:, rest].sum(axis=1) / len(rest))
            expected.append((link * np.maximum(gain, 0.5)).mean())
        assert found.guesses[i] == pytest.approx(np.mean(expected), abs=1e-12)


def test_neighbours_all_at_one_distance_link_only_what_is_nearer():
    original = pd.DataFrame({"a": [0, 0.1, 0.1, 0.1, 1]})
    for released, link in ((0.1, 0.0), (0.05, 1.0)):
        found = da.reidentification_risk(original, pd.DataFrame({"a": [released] * 3}), neighbours=3, synthetic=True)
        assert found.linkability[0] == link


def test_one_far_away_does_not_hide_the_others():
    rng = np.random.default_rng(0)
    near = [da.reidentification_risk(f, f).values[:30].mean() for f in (
        pd.DataFrame({"a": [*range(30), top], "b": rng.permutation(31)}) for top in (31, 10**8)
    )]  # fmt: skip
    assert near[1] > 0.3


def test_names_that_only_the_release_or_the_control_has_are_different_names():
    original = pd.DataFrame({"c": list("ab") * 10, "x": range(20)})
    released = original.assign(c="X")
    scores = [
        da.reidentification_risk(
            original, released, control=pd.DataFrame({"c": [c], "x": [5]}), synthetic=True
        ).control[0]
        for c in ("X", "Y")
    ]
    assert scores[0] > scores[1]


def test_the_score_of_a_person_does_not_depend_on_who_else_is_attacked():
    people = da.census(100, seed=5)
    everyone = da.reidentification_risk(people, people, permutations=6)
    for chosen in ([7], {3, 7}, np.array([7, 50])):
        assert da.reidentification_risk(people, people, permutations=6, people=chosen).of(7) == everyone.of(7)
    assert everyone.parameters["neighbours"] == 5
    assert "age" in everyone.parameters["attributes"]


def test_named_scenarios_and_their_weights():
    original, released = frames(4)
    known = {"neighbour": ["age", "sex"], "colleague": ["job"], "bank": ["pay", "job", "age"]}
    found = run(original, released, scenarios=known, scenario_weights={"bank": 2})
    reference = Reference(original, released, 5)
    columns = list(original.columns)
    for i in range(len(original)):
        parts, link = reference.person(i)
        each = [reference.scenario(parts, link, [columns.index(c) for c in u])[2] for u in known.values()]
        assert found.values[i] == pytest.approx(np.array([1, 1, 2]) @ each / 4, abs=1e-12)
    assert found.scenarios == ("neighbour", "colleague", "bank")
    assert found.lower is None


def test_who_is_removed_has_no_risk_and_is_a_control():
    people = da.census(200, seed=2)
    kept = people.select(np.arange(0, 200, 2))
    found = da.reidentification_risk(people, kept, permutations=10)
    assert (found.values[1::2] == 0).all()
    assert found.values[0::2].mean() > 0
    assert len(found.control) == 100
    assert found.control.mean() < found.values[found.present].mean()
    assert "more than people who are not in it" in found.verdict()
    shapley = da.reidentification_shapley(people, kept, permutations=10, people=50)
    assert (shapley.values[~shapley.present] == 0).all()
    strangers = da.census(300, seed=9).select(np.arange(250, 300))
    with pytest.raises(da.InputError, match="in neither table"):
        da.reidentification_risk(people, kept, control=people)
    more = da.reidentification_risk(people, kept, permutations=10, control=strangers)
    assert len(more.control) == 150
    assert (more.values == found.values).all()


def test_order_of_rows_names_of_categories_and_threads_change_nothing():
    original, released = frames(5, 30, 25)
    original.index = [f"p{i}" for i in range(30)]
    found = run(original, released)
    turned = run(original, released.sample(frac=1, random_state=0))
    np.testing.assert_allclose(turned.values, found.values, atol=1e-12)
    renamed = {"cook": "z", "nurse": "a", "judge": "m"}
    other = run(original.replace({"job": renamed}), released.replace({"job": renamed}))
    np.testing.assert_allclose(other.values, found.values, atol=1e-12)
    mixed = original.sample(frac=1, random_state=1)
    again = run(mixed, released)
    np.testing.assert_allclose(again.values, [found.of(i) for i in again.ids], atol=1e-12)
    people = da.census(60, seed=3)
    one, two = (da.reidentification_risk(people, people, permutations=8, n_jobs=j) for j in (1, 3))
    assert (one.values == two.values).all()
    assert (one.upper == two.upper).all()


def test_awkward_tables_are_scored():
    constant = pd.DataFrame({"a": [1] * 6, "b": list("xyxyxz"), "c": [None] * 6})
    assert run(constant, constant, columns=["a", "b"]).mean() >= 0
    shifted = run(constant, constant.assign(a=2), columns=["a", "b"], scenarios={"b": ["b"]})
    reference = Reference(constant[["a", "b"]], constant[["a", "b"]].assign(a=2), 5)
    for i in range(6):
        assert shifted.values[i] == pytest.approx(reference.all_sets(i)[(1,)][2], abs=1e-12)
    same = pd.DataFrame({"a": [3] * 6, "b": ["x"] * 6})
    assert (run(same, same).values == 0).all()  # μ is 0: nobody is closer than the others
    wide = pd.DataFrame({"a": [0.0, 1.0, 2.0, 10.0, 4.0, 5.0]})
    out = run(wide, pd.DataFrame({"a": [-100.0, 300.0]}))
    assert (out.values == 0).all()


def test_results_come_back_from_files(tmp_path):
    people = da.census(80, seed=4)
    risk = da.reidentification_risk(people, people.select(np.arange(20, 80)), permutations=5)
    shapley = da.reidentification_shapley(people, people, permutations=5)
    for ending in ("parquet", "json"):
        back = da.load_result(risk.save(tmp_path / f"r.{ending}"))
        assert back.summary() == risk.summary()
        assert (back.values == risk.values).all()
        other = da.load_result(shapley.save(tmp_path / f"s.{ending}"))
        assert other.summary() == shapley.summary()
        assert (other.values == shapley.values).all()
    assert len(risk.to_frame("pandas")) == 80
    assert next(iter(shapley.mean())) == max(shapley.mean(), key=shapley.mean().get)
    from matplotlib.figure import Figure

    assert risk.plot(Figure().add_subplot()).patches
    assert len(shapley.plot(Figure().add_subplot()).patches) == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "age"}, "must be a list"),
        ({"columns": ["agee"]}, "did you mean 'age'"),
        ({"weights": {"agee": 1}}, "not among the attributes"),
        ({"weights": {"age": 0}}, "above 0"),
        ({"neighbours": 40}, "between 1 and 39"),
        ({"epsilon1": 0}, "above 0"),
        ({"epsilon2": 2}, "at most 1"),
        ({"scenarios": "some"}, "scenarios must be one of"),
        ({"scenarios": 3}, "scenarios must be"),
        ({"scenarios": {"x": "age"}}, "list of at least one"),
        ({"scenarios": {"x": ["agee"]}}, "which is no attribute"),
        ({"scenarios": {"x": ["age"]}, "scenario_weights": {"y": 1}}, "no scenario 'y'"),
        ({"scenarios": {"x": ["age"]}, "scenario_weights": {"x": 0}}, "all are 0"),
        ({"scenario_weights": {"x": 1}}, "named scenarios"),
        ({"people": [77]}, "no record with id 77"),
        ({"people": []}, "names nobody"),
        ({"people": True}, "people must be a list"),
        ({"people": 10.0}, "people must be a list"),
        ({"people": "p1"}, "people must be a list"),
        ({"method": "guess"}, "method must be one of"),
        ({"permutations": 1}, "at least 2"),
        ({"confidence": 0}, "above 0"),
    ],
)
def test_bad_input_is_named(options, message):
    people = da.census(40)
    with pytest.raises(da.InputError, match=message):
        da.reidentification_risk(people, people, **options)


def test_tables_that_do_not_fit_are_named():
    people = da.census(40)
    frame = people.to_frame("pandas").drop(columns=["id"])
    for released, message in (
        (frame.drop(columns=["age"]), "lacks the column 'age'"),
        (frame.assign(age="old"), "is numeric in census and categorical"),
        (people.select(np.arange(20)).to_frame("pandas").drop(columns=["id"]), "neither has ids"),
        (frame.set_index(pd.Index([f"q{i}" for i in range(40)])), "different types"),
        (frame.set_index(pd.Index(range(100, 140))), "no id of census"),
    ):
        with pytest.raises(da.InputError, match=message):
            da.reidentification_risk(people, released)
    with pytest.raises(da.InputError, match="neither has ids"):
        da.reidentification_risk(da.read_table(frame), da.read_table(frame.iloc[10:].reset_index(drop=True)))
    same = da.reidentification_risk(da.read_table(frame), da.read_table(frame), permutations=3)
    assert any("the same people, in any order" in note for note in same.notes)
    mixed = da.reidentification_risk(
        da.read_table(frame), da.read_table(frame.sample(frac=1, random_state=1)), permutations=3
    )
    np.testing.assert_array_equal(mixed.values, same.values)
    large = pd.DataFrame({"b": [2**60 + i * 7 for i in range(40)]})
    with pytest.raises(da.InputError, match="float64 cannot tell apart"):
        da.reidentification_risk(large, large)
    with pytest.raises(da.InputError, match="2\\^17 scenarios"):
        wide = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (30, 17)), columns=[f"c{i}" for i in range(17)])
        da.reidentification_risk(wide, wide, method="exact")


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_many_records_are_singled_out_as_by_the_reference_though_distances_differ_by_rounding(seed, weighted):
    """Tenths: sums in one order or another are equal but for rounding; records fill several blocks of the kernel."""
    rng = np.random.default_rng(seed)
    d, zeta = 5, rng.random(5) + 0.5 if weighted else np.ones(5)
    people, released = rng.integers(0, 11, (d, 3)) / 10 + 0.05, rng.integers(0, 11, (d, 2500)) / 10
    orders = np.array([rng.permutation(d) for _ in range(3)])
    masks = np.bitwise_or.accumulate(1 << orders, axis=1)
    unknown = np.where((masks[..., None] >> np.arange(d)) & 1, 0.0, zeta).sum(axis=2)
    found = np.empty((3, 3 * d, 4))
    everyone = people, released, np.ones(2500), np.zeros(d, bool), zeta, np.full(3, 2.0), np.full(3, 0.7)
    risk_kernels.attack(*everyone, masks.reshape(1, -1), unknown.reshape(1, -1), d, 100.0, 0.5, found)
    reference = Reference(pd.DataFrame(released.T), pd.DataFrame(released.T), 5, zeta)
    for i in range(3):
        parts = np.minimum(np.abs(released - people[:, [i]]), 1.0).T
        full = parts.sum(axis=1)
        link = np.where(full <= 2.0, 1 - 2 * norm.cdf((full - 2.0) / 0.7), 0.0)
        expected = [reference.scenario(parts, link, order[: r + 1].tolist()) for order in orders for r in range(d)]
        np.testing.assert_allclose(found[i, :, :3], expected, atol=1e-9)


@pytest.mark.parametrize("method", ["exact", "sampled"])
def test_weights_that_are_all_alike_change_nothing(method):
    original, released = frames(5)
    plain = run(original, released, method=method, permutations=6)
    twice = run(original, released, method=method, permutations=6, weights=dict.fromkeys(original.columns, 2.0))
    for part in ("values", "linkability", "gain", "guesses"):
        np.testing.assert_allclose(getattr(twice, part), getattr(plain, part), rtol=0, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_queries_are_scored_as_the_reference_scores_whom_they_match(seed, weighted):
    original, released = frames(seed, missing=False)
    zeta = [1.0, 2.5, 0.5, 1.0] if weighted else None
    weights = dict(zip(original.columns, zeta, strict=True)) if weighted else None
    asked = {"sex = 'f'": [3], "age > 30 AND job <> 'cook'": [0, 2], "pay < 0 OR sex = 'm'": [1, 3], "age > 99": [0]}
    found = da.score_queries(original, released, list(asked), weights=weights, neighbours=5, synthetic=True)
    reference = Reference(original, released, 5, zeta)
    for q, (query, known) in enumerate(asked.items()):
        condition = query.replace("AND", "and").replace("OR", "or").replace("<>", "!=").replace(" = ", " == ")
        people, matches = original.query(condition), np.flatnonzero(released.eval(condition))
        assert (found.people[q], found.matches[q]) == (len(people), len(matches))
        best = (0.0, 0.0, 0.0)
        for i in people.index if len(matches) else ():
            parts, link = reference.person(i)
            linked, gain, _ = reference.scenario(parts[matches], link[matches], ())
            rest = [a for a in range(4) if a not in known]
            total = reference.zeta[rest].sum()
            gamma = math.log(1 + 100 * total / reference.zeta.sum()) / math.log(101)
            error = float((parts[np.ix_(matches, rest)] @ reference.zeta[rest]).mean())
            gain = gamma * (1 - error / total)
            best = max(best, (linked * max(gain, 0.5), linked, gain))
        assert found.values[q] == pytest.approx(best[0], abs=1e-12)
        if best[0] > 0:
            assert (found.linkability[q], found.gain[q]) == pytest.approx(best[1:], abs=1e-12)


def test_intervals_are_those_of_students_t():
    people = da.census(40, seed=6)
    half = [
        np.subtract(found.upper, found.values)
        for found in (
            da.reidentification_shapley(
                people, people, people=8, method="sampled", permutations=3, confidence=confidence
            )
            for confidence in (0.5, 0.95)
        )
    ]
    np.testing.assert_allclose(half[1], half[0] * student.ppf(0.975, 2) / student.ppf(0.75, 2), atol=1e-12)
    assert half[0].max() > 0


def test_who_is_not_in_the_release_has_nothing_and_headline_numbers_are_of_those_who_are():
    people = da.census(60, seed=7)
    found = da.reidentification_risk(people, people.select(np.arange(20, 60)), permutations=3)
    frame, facts = found.to_frame("pandas"), found.facts()
    parts = ["risk", "linkability", "gain", "guess"]
    assert (frame.loc[~frame.present, parts] == 0).all(axis=None)
    for name, mean in zip(
        ("mean_risk_present", "linkability", "gain", "guess_risk"), frame[frame.present][parts].mean(), strict=True
    ):
        assert facts[name] == pytest.approx(mean)
    assert (facts["people"], facts["present"], facts["highest_risk"]) == (60, 40, frame.risk.max())
    assert facts["control_risk"] == pytest.approx(found.attacked[~found.present, 2].mean())
    assert facts["mean_risk"] == pytest.approx(frame.risk.mean())
    assert da.reidentification_risk(people, people, permutations=3).facts()["control_risk"] is None


def judged(values, guess=0.0, control=(), half=None):
    n = len(values)
    nothing, values = np.zeros(n), np.array(values, float)
    return Risk(
        values, np.arange(n), np.ones(n, bool), nothing, nothing, np.full(n, guess), np.array(control), np.zeros((n, 3)),
        ("all",), np.ones(1), np.zeros((1, 3)), *(() if half is None else (values - half, values + half)),
    ).verdict()  # fmt: skip


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"values": [0.5] * 19}, "19 people in the release are too few"),
        ({"values": [0.5] * 20, "guess": 0.4}, "0.100 more than picking a record"),
        ({"values": [0.5] * 20, "guess": 0.5}, "no better than picking"),
        # The mean of 100 risks of 0 and 1 has the standard error 0.05, that of controls of 0 and 2c the error c/10.
        ({"values": [0, 1] * 50, "guess": 0.39}, "0.110 more than picking a record"),
        ({"values": [0, 1] * 50, "guess": 0.41}, "no better than picking"),
        ({"values": [0, 1] * 50, "control": [0.4] * 9}, "a control of 9 people is too small"),
        ({"values": [0, 1] * 50, "control": [0.35] * 10}, "score 0.150 more than people who are not in it"),
        ({"values": [0, 1] * 50, "control": [0, 0.72] * 50}, "score 0.140 more than people who are not in it"),
        ({"values": [0, 1] * 50, "control": [0, 0.76] * 50}, "at no more risk than people who are not in it"),
        ({"values": [0.5] * 20, "control": [0.5] * 10}, "at no more risk than people who are not in it"),
        # Half-widths of 0.1 for each of 100 people are 0.01 for their mean.
        ({"values": [0.5] * 100, "half": 0.1, "guess": 0.479}, "0.021 more than picking a record"),
        ({"values": [0.5] * 100, "half": 0.1, "guess": 0.481}, "no better than picking"),
    ],
)  # fmt: skip
def test_a_verdict_wants_a_difference_of_two_standard_errors(given, said):
    assert said in judged(**given)


@pytest.mark.parametrize("more", ["LIMIT 1", "ORDER BY age", "GROUP BY age", "UNION ALL SELECT 1", "QUALIFY age > 4"])
def test_a_query_is_one_condition_and_nothing_else(more):
    people = da.census(20)
    with pytest.raises(da.InputError, match="one condition on the columns and nothing else"):
        da.score_queries(people, people, [f"age > 3 {more}"])


@pytest.mark.parametrize("epsilon2", [0.0, 0.4, 1.0])
def test_the_score_of_a_query_is_its_link_times_its_gain_or_the_least_weight(epsilon2):
    people = da.census(80, seed=8)
    queries = ["age > 60", "sex = 'male' AND age < 30", "age > 50 AND sex = 'female' AND hours > 30", "age > 200"]
    found = da.score_queries(people, people, queries, epsilon2=epsilon2)
    np.testing.assert_allclose(found.values, found.linkability * np.maximum(found.gain, epsilon2), atol=1e-15)
    assert (found.values[:3] > 0).all()
    assert (found.gain[:3] > found.values[:3]).all() or epsilon2 == 1
    assert (found.values[3], found.person[3]) == (0.0, "")


def test_weights_of_attributes_are_named():
    people = da.census(30)
    with pytest.raises(da.UsageError, match="weights must be a mapping"):
        da.reidentification_risk(people, people, columns=["age", "sex"], weights=[1.0, 2.0])
