"""Uniqueness Shapley against its definition, the paper's propositions, independent counting, and awkward data."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import datassay as da
from datassay import oracle
from datassay._run import Schedule
from datassay.data import Column, Table
from datassay.identity import engine
from datassay.identity.counting import Cells


def table_of(rows, names="abcdefgh"):
    columns = {
        names[j]: Column("categorical", np.unique(column, return_inverse=True)[1].astype(np.int32), np.unique(column))
        for j, column in enumerate(np.asarray(rows).astype(str).T)
    }
    return Table(columns, np.arange(len(rows)))


@st.composite
def small_tables(draw, most_columns=6, most_rows=14):
    d = draw(st.integers(1, most_columns))
    n = draw(st.integers(1, most_rows))
    levels = [draw(st.integers(1, 4)) for _ in range(d)]
    rows = [[draw(st.integers(0, levels[j] - 1)) for j in range(d)] for _ in range(n)]
    weights = draw(st.one_of(st.none(), st.lists(st.floats(0.25, 8.0), min_size=n, max_size=n)))
    return rows, weights


def by_enumeration(rows, weights=None):
    d = len(rows[0])
    return np.array(
        [[float(v) for v in oracle.shapley(d, oracle.matching_utility(rows, t, weights))] for t in range(len(rows))]
    )


@settings(max_examples=60, deadline=None)
@given(small_tables())
def test_values_are_those_of_the_definition(given_table):
    rows, weights = given_table
    found = da.uniqueness_shapley(table_of(rows), weights=weights)
    expected = by_enumeration(rows, weights)
    np.testing.assert_allclose(found.values, expected, atol=1e-10)
    people = np.ones(len(rows)) if weights is None else np.array(weights)
    np.testing.assert_allclose(found.mean().values, people @ expected / people.sum(), atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(small_tables())
def test_proposition_1_and_efficiency(given_table):
    rows, weights = given_table
    found = da.uniqueness_shapley(table_of(rows), weights=weights)
    constant = np.array([len(set(column)) == 1 for column in zip(*rows, strict=True)])
    assert (found.values >= 0).all()
    assert (found.values[:, constant] == 0).all()
    assert (found.values[:, ~constant] > 0).all()
    total = len(rows) if weights is None else math.fsum(weights)
    np.testing.assert_allclose(found.totals, np.log2(total / found.group_sizes), atol=1e-10)


def test_proposition_2_an_independent_attribute_has_its_entropy():
    rng = np.random.default_rng(0)
    others = rng.integers(0, 3, (40, 3))
    rows = np.array([[level, *other] for other in others for level in (0, 0, 0, 1, 2)])
    found = da.uniqueness_shapley(table_of(rows)).mean()
    entropy = -(0.6 * math.log2(0.6) + 2 * 0.2 * math.log2(0.2))
    assert found.values[0] == pytest.approx(entropy, abs=1e-10)
    assert found.entropies[0] == pytest.approx(entropy, abs=1e-12)


def entropy(frame, columns, of=None):
    """Cross entropy of everyone relative to some of them, by pandas; entropy where they are everyone."""
    if not columns:
        return 0.0
    share = frame.groupby(columns)[columns[0]].transform("size") / len(frame)
    return float(-np.log2(share[slice(None) if of is None else of]).mean())


@pytest.mark.parametrize("some", [None, slice(0, 25)], ids=["everyone: Prop. 3", "some: Prop. 4"])
def test_means_are_weighted_conditional_or_cross_entropies(some):
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, k, 120) for k in (2, 3, 4, 5)])
    frame = pd.DataFrame(rows, columns=list("abcd"))
    found = da.uniqueness_shapley(table_of(rows))
    mean = found.mean(None if some is None else np.arange(25)).values
    for j, name in enumerate("abcd"):
        others = [c for c in "abcd" if c != name]
        expected = 0.0
        for mask in range(8):
            u = [c for bit, c in enumerate(others) if (mask >> bit) & 1]
            expected += (entropy(frame, [*u, name], some) - entropy(frame, u, some)) / (4 * math.comb(3, len(u)))
        assert mean[j] == pytest.approx(expected, abs=1e-10)
    everyone = found.mean()  # the bracketing inequality (8)
    assert (everyone.entropies / 4 - 1e-12 <= everyone.values).all()
    assert (everyone.values <= everyone.total + 1e-12).all()


@settings(max_examples=30, deadline=None)
@given(small_tables(most_columns=5))
def test_formula_11_is_what_a_key_column_does(given_table):
    rows, _ = given_table
    by_formula = da.uniqueness_shapley(table_of(rows), key=True)
    with_column = by_enumeration([[*row, i] for i, row in enumerate(rows)])
    assert by_formula.columns[-1] == "(key)"
    np.testing.assert_allclose(by_formula.values, with_column, atol=1e-10)
    compared = da.uniqueness_shapley(table_of(rows)).compare(key=True)
    np.testing.assert_allclose(compared.values[-1], with_column[:, :-1].mean(axis=0), atol=1e-10)
    assert compared.beside["key"][-1] == pytest.approx(with_column[:, -1].mean(), abs=1e-10)


def test_duplicate_attributes_share_as_section_3_3_says():
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 4, 200), rng.integers(0, 3, 200)
    frame = pd.DataFrame({"a": a, "b": b})
    h1, h2, h12 = entropy(frame, ["a"]), entropy(frame, ["b"]), entropy(frame, ["a", "b"])
    mean = da.uniqueness_shapley(table_of(np.column_stack([a, b, a]))).mean().values
    assert mean[0] == mean[2]
    assert mean[0] == pytest.approx(h1 / 3 + (h12 - h2) / 6, abs=1e-10)
    assert mean[1] == pytest.approx(h2 / 3 + 2 * (h12 - h1) / 3, abs=1e-10)


@settings(max_examples=30, deadline=None)
@given(small_tables(most_columns=4, most_rows=8), st.data())
def test_interactions_are_those_of_the_definition(given_table, data):
    rows, weights = given_table
    d = len(rows[0])
    found = da.uniqueness_shapley(table_of(rows), weights=weights)
    some = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True))
    people = np.ones(len(rows)) if weights is None else np.array(weights)
    for records, chosen in ((None, range(len(rows))), (np.array(some), some)):
        matrix = found.interactions(records).values
        for i in range(d):
            for j in range(i):
                each = [float(oracle.interaction(d, oracle.matching_utility(rows, t, weights), i, j)) for t in chosen]
                expected = people[list(chosen)] @ each / people[list(chosen)].sum()
                assert matrix[i, j] == matrix[j, i] == pytest.approx(expected, abs=1e-10)
        if records is None:
            assert (matrix <= 1e-12).all()  # minus a mean of conditional mutual informations


def test_an_unusual_combination_identifies_more_than_its_parts():
    rows = [[0, 0]] * 50 + [[1, 1]] * 49 + [[0, 1]]
    found = da.uniqueness_shapley(table_of(rows))
    assert found.interactions([99]).values[0, 1] > 4 > 0 > found.interactions().values[0, 1]


def test_whole_weights_are_repeated_rows():
    rng = np.random.default_rng(3)
    rows, weights = rng.integers(0, 3, (30, 4)), rng.integers(1, 6, 30)
    weighted = da.uniqueness_shapley(table_of(rows), weights=weights)
    repeated = da.uniqueness_shapley(table_of(np.repeat(rows, weights, axis=0)))
    np.testing.assert_allclose(weighted.mean().values, repeated.mean().values, atol=1e-12)
    np.testing.assert_allclose(np.repeat(weighted.values, weights, axis=0), repeated.values, atol=1e-12)
    assert weighted.groups().unique == repeated.groups().unique
    assert (weighted.groups(["a", "b"]).sizes == repeated.groups(["a", "b"]).sizes).all()
    heavy = da.uniqueness_shapley(table_of(rows), weights=weights, key=True).mean()
    plain = da.uniqueness_shapley(table_of(np.repeat(rows, weights, axis=0)), key=True).mean()
    np.testing.assert_allclose(heavy.values, plain.values, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 5, 9, 11, 13])
def test_threads_and_memory_do_not_change_a_bit(d):
    rng = np.random.default_rng(4)
    table = table_of(rng.integers(0, 3, (300, d)), [f"c{j}" for j in range(d)])
    one, many = da.uniqueness_shapley(table, n_jobs=1), da.uniqueness_shapley(table, n_jobs=7)
    assert (one.values == many.values).all()
    sampled = [da.uniqueness_shapley(table, method="sampled", permutations=3 * d, n_jobs=j, seed=5) for j in (1, 3)]
    assert (sampled[0].values == sampled[1].values).all()
    assert (sampled[0].upper == sampled[1].upper).all()
    assert (sampled[0].mean().values == sampled[1].mean().values).all()


@pytest.mark.parametrize("d", [10, 12])
def test_many_attributes_agree_with_counting_one_by_one(d):
    """Beyond the oracle's reach: N(u) of one person for all sets, from who matches in what, then formula (2)."""
    rng = np.random.default_rng(5)
    rows = np.minimum(rng.integers(0, 3, (80, d)), rng.integers(0, 3, (80, d)))
    found = da.uniqueness_shapley(table_of(rows, "abcdefghijkl"))
    for person in (0, 41):
        matches = ((rows == rows[person]) << np.arange(d)).sum(axis=1)
        worth = [-math.log2(sum((match & mask) == mask for match in matches.tolist()) / 80) for mask in range(2**d)]
        for j in (0, 4, d - 1):
            expected = math.fsum(
                (worth[mask | 1 << j] - worth[mask]) / (d * math.comb(d - 1, mask.bit_count()))
                for mask in range(2**d)
                if not (mask >> j) & 1
            )
            assert found.values[person, j] == pytest.approx(expected, abs=1e-10)


def test_every_set_of_attributes_is_counted_right(tmp_path):
    rng = np.random.default_rng(6)
    rows = rng.integers(0, 5, (200, 5))
    rows[:, 3] = 2
    frame = pd.DataFrame(rows, columns=list("abcde"))
    table = table_of(rows)
    found = da.uniqueness_shapley(table)
    sets = found.sets()
    assert len(sets) == 31
    for mask in range(1, 2**5):
        u = [c for bit, c in enumerate("abcde") if (mask >> bit) & 1]
        sizes = frame.groupby(u).size()
        told = sets.of(u)
        assert told["groups"] == len(sizes)
        assert told["unique"] == pytest.approx((sizes == 1).sum() / 200)
        assert told["smallest"] == sizes.min()
        assert told["entropy"] == pytest.approx(entropy(frame, u), abs=1e-12)
        groups = found.groups(u)
        assert (groups.sizes == np.sort(sizes)).all()
        assert groups.share_below(4) == pytest.approx(sizes[sizes < 4].sum() / 200)
        assert found.entropy(u) == pytest.approx(entropy(frame, u), abs=1e-12)
        assert da.group_sizes(table, u).unique == groups.unique
    back = da.load_result(sets.save(tmp_path / "sets.parquet"))
    assert back.summary() == sets.summary()
    assert (back.inside == sets.inside).all()
    most = max(range(31), key=lambda i: (sets.inside[i].sum() == 2) * (1 + sets.unique[i]))
    assert sets.ids[most] in sets.summary().split("2 attributes:")[1].splitlines()[1]
    with pytest.raises(da.InputError, match="list of attributes"):
        sets.of("a")
    with pytest.raises(da.InputError, match="names no attribute"):
        sets.of([])


def coverage(table, columns, exact, seeds, **sampling):
    """How often the intervals of means and of single values cover, over seeds."""
    means, singles = [], []
    for seed in range(seeds):
        found = da.uniqueness_shapley(table, columns, method="sampled", seed=seed, **sampling)
        mean = found.mean()
        means.append((mean.lower <= exact.mean().values) & (exact.mean().values <= mean.upper))
        low, high = found.lower[found.cell], found.upper[found.cell]
        singles.append((low - 1e-12 <= exact.values) & (exact.values <= high + 1e-12))
    return np.array(means), np.array(singles)


@pytest.mark.parametrize("sampling", [{"permutations": 70}, {"tolerance": 0.05}], ids=["as many", "until it is known"])
def test_intervals_cover_at_their_nominal_rate(sampling):
    table = da.load_dataset("census").select(np.arange(250))
    columns = ["education", "hours", "sex", "marital", "occupation", "region", "income"]
    exact = da.uniqueness_shapley(table, columns)
    seeds = 150
    means, singles = coverage(table, columns, exact, seeds, confidence=0.9, **sampling)
    # Attributes of one run go together: the rate over runs has at most the standard error of one attribute's.
    error = 3 * math.sqrt(0.9 * 0.1 / seeds)
    assert 0.9 - error < means.mean() < 0.9 + error
    assert 0.9 - error < singles.mean() < 0.9 + error


def test_few_attributes_and_few_orders_still_have_honest_intervals():
    rng = np.random.default_rng(10)
    a, b = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    table = table_of(np.column_stack([a, b, (a + b) % 4]))
    exact = da.uniqueness_shapley(table)
    means, _ = coverage(table, None, exact, 200, permutations=3)
    assert means.mean() > 0.9
    few = da.uniqueness_shapley(table, permutations=3)
    assert few.parameters["permutations"] == 16 * 3
    assert (few.mean_half > 0).all()
    nothing = da.uniqueness_shapley(pd.DataFrame({"a": [1, 1, 1]}), method="sampled")
    assert (nothing.values == 0).all()
    assert (nothing.mean().upper == 0).all()


def test_sampled_values_add_up_and_stop_where_asked():
    table = da.load_dataset("census")
    columns = ["age", "education", "sex", "marital", "occupation", "region"]
    exact = da.uniqueness_shapley(table, columns)
    found = da.uniqueness_shapley(table, columns, tolerance=0.03)
    assert found.mean_half.max() <= 0.03
    np.testing.assert_allclose(found.totals, exact.totals, atol=1e-9)
    again = da.uniqueness_shapley(table, columns, method="sampled", permutations=found.parameters["permutations"])
    assert (again.values == found.values).all()
    assert da.uniqueness_shapley(table, columns, seconds=1e-6).parameters["permutations"] == 16 * 6
    assert "random orders" in found.notes[-1]
    assert found.method != exact.method


def test_forty_columns_are_sampled_and_say_so():
    rng = np.random.default_rng(7)
    names = [f"c{j}" for j in range(40)]
    table = table_of(rng.integers(0, 2, (120, 40)), names)
    found = da.uniqueness_shapley(table)
    assert found.lower is not None
    assert any("40 attributes vary; at most 20 are done exactly" in note for note in found.notes)
    with pytest.raises(da.InputError, match="at most 20 attributes that vary"):
        found.interactions()
    with pytest.raises(da.InputError, match="2\\^40 sets"):
        da.uniqueness_shapley(table, method="exact")
    with pytest.raises(da.InputError, match="at most 20"):
        da.uniqueness_shapley(table, key=True)
    # Constant columns are no burden: the other nine are done exactly.
    rows = rng.integers(0, 2, (120, 40))
    rows[:, 9:] = 1
    few = da.uniqueness_shapley(table_of(rows, names))
    assert few.lower is None
    np.testing.assert_allclose(
        few.values[:, :9], da.uniqueness_shapley(table_of(rows[:, :9], names)).values, atol=1e-12
    )


def test_extremes():
    one = da.uniqueness_shapley(table_of([[1, 2]]))
    assert one.values.tolist() == [[0.0, 0.0]]
    assert one.groups().unique == 1
    assert one.summary().startswith("1 record, 1 different")
    equal = da.uniqueness_shapley(table_of([[1, 2, 3]] * 9))
    assert (equal.values == 0).all()
    assert equal.groups().smallest == 9
    distinct = da.uniqueness_shapley(table_of([[i, i, 0] for i in range(8)]))
    np.testing.assert_allclose(distinct.values, [[1.5, 1.5, 0]] * 8, atol=1e-12)
    rng = np.random.default_rng(8)
    many = pd.DataFrame({"name": [f"n{i}" for i in range(100_000)], "sex": rng.integers(0, 2, 100_000)})
    found = da.uniqueness_shapley(many)
    assert found.mean().total == pytest.approx(math.log2(100_000))
    assert found.mean().of("sex") == pytest.approx(entropy(many, ["sex"]) / 2, abs=1e-9)


def test_an_unbinned_number_is_refused_with_advice():
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"income": rng.normal(3000, 900, 500), "sex": rng.integers(0, 2, 500)})
    with pytest.raises(da.InputError, match=r"'income'.*500 different numbers with decimals.*bins of 100"):
        da.uniqueness_shapley(frame)
    assert da.uniqueness_shapley(frame, coarsen={"income": 500}).mean().total > 1
    ratings = pd.DataFrame({"stars": np.tile([0.5, 1.0, 1.5, 2.5], 10)})
    assert da.uniqueness_shapley(ratings).mean().total == pytest.approx(2)


def test_missing_values_are_a_value_or_left_out():
    frame = pd.DataFrame({"age": [30, None, 30, None, 41], "town": ["York", "York", None, "Hull", "Hull"]})
    own = da.uniqueness_shapley(frame)
    told = [["30", "York"], ["?", "York"], ["30", "?"], ["?", "Hull"], ["41", "Hull"]]
    np.testing.assert_allclose(own.values, by_enumeration(told), atol=1e-12)
    assert any("'age', 'town' are a value of their own" in note for note in own.notes)
    out = da.uniqueness_shapley(frame, missing="exclude")
    assert out.ids.tolist() == [0, 4]
    np.testing.assert_allclose(out.values, by_enumeration([told[0], told[4]]), atol=1e-12)
    assert any("3 of 5 rows are left out" in note for note in out.notes)
    assert out.by("town").ids.tolist() == ["Hull", "York"]
    with pytest.raises(da.InputError, match="nobody is left"):
        da.uniqueness_shapley(pd.DataFrame({"a": [1, None], "b": [None, 2]}), missing="exclude")
    assert (out.by("town").beside["people"] == 1).all()


def test_coarsening_is_the_same_as_coarser_data():
    table = da.voters(3000, seed=1)
    frame = table.to_frame("pandas")
    frame["age5"] = frame["age"] // 5
    frame["zip3"] = frame["zip"].str[:3]
    frame["band"] = np.digitize(frame["age"], [32, 48, 64])
    frame["other"] = np.where(frame["race"] == "White", "White", "not")
    names = dict.fromkeys(set(frame["race"]) - {"White"}, "not")
    for coarsen, instead in (
        ({"age": 5}, {"age": "age5"}),
        ({"zip": 3}, {"zip": "zip3"}),
        ({"age": [32, 48, 64]}, {"age": "band"}),
        ({"zip": "county"}, {"zip": "county"}),
        ({"race": names}, {"race": "other"}),
        ({"age": 5, "zip": 3}, {"age": "age5", "zip": "zip3"}),
    ):
        columns = ["zip", "race", "age"]
        found = da.uniqueness_shapley(table, columns, coarsen=coarsen)
        expected = da.uniqueness_shapley(frame[[instead.get(c, c) for c in columns]].copy())
        np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
    gone = da.uniqueness_shapley(table, ["zip", "race", "age"], coarsen={"age": None})
    without = da.uniqueness_shapley(table, ["zip", "race"])
    np.testing.assert_allclose(gone.values, np.insert(without.values, 2, 0, axis=1), atol=1e-12)
    compared = da.uniqueness_shapley(table, ["zip", "race", "age"]).compare(coarsen={"age": (5, None)}, drop=["zip"])
    assert compared.ids.tolist() == ["as it is", "age: 5", "age: one bucket", "zip: dropped"]
    np.testing.assert_allclose(
        compared.values[1], da.uniqueness_shapley(table, ["zip", "race", "age"], coarsen={"age": 5}).mean().values
    )
    np.testing.assert_allclose(compared.values[2, :2], without.mean().values, atol=1e-12)
    assert compared.values[3, 0] == 0


def test_a_dropped_attribute_is_gone_with_its_missing_values():
    frame = pd.DataFrame({"a": [1, 2, None, 4, 1, 2], "b": list("xyxyxx"), "c": [1, 1, 1, 2, 2, 2]})
    for missing in ("value", "exclude"):
        found = da.uniqueness_shapley(frame, missing=missing)
        without = da.uniqueness_shapley(frame[["b", "c"]])
        row = found.compare(drop=["a"]).values[1]
        np.testing.assert_allclose(row, [0, *without.mean().values], atol=1e-12)
        gone = da.uniqueness_shapley(frame, coarsen={"a": None}, missing=missing)
        np.testing.assert_allclose(gone.values[:, 1:], without.values, atol=1e-12)


def test_bins_of_any_width_hold_what_they_should():
    tenths = pd.DataFrame({"a": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]})
    assert len(da.uniqueness_shapley(tenths, coarsen={"a": 0.1}).groups()) == 8
    assert len(da.uniqueness_shapley(tenths, coarsen={"a": 0.2}).groups()) == 5
    large = pd.DataFrame({"a": [2**60, 2**60 + 1, 2**60 + 2]})
    assert len(da.uniqueness_shapley(large, coarsen={"a": 1}).groups()) == 3
    assert len(da.uniqueness_shapley(large, coarsen={"a": 2}).groups()) == 2
    with pytest.raises(da.InputError, match="float64 cannot tell apart"):
        da.uniqueness_shapley(large, coarsen={"a": [2**60 + 1]})
    near = da.uniqueness_shapley(pd.DataFrame({"a": range(5)})).by("a", [1, 2, 3]).ids
    assert len(set(near)) == 4
    close = da.uniqueness_shapley(pd.DataFrame({"a": [1, 2]})).by(np.array([1000001, 1000002]).astype(str))
    assert close.ids.tolist() == ["1000001", "1000002"]
    cuts = da.uniqueness_shapley(pd.DataFrame({"a": range(1000000, 1000005)})).by("a", [1000001, 1000002, 1000003])
    assert len(set(cuts.ids)) == 4


def test_dates_are_told_as_dates_and_by_year_and_month():
    frame = pd.DataFrame({"born": ["1970-01-31", "1970-02-01", "1971-02-01", "1970-01-01", None], "x": list("aabbb")})
    found = da.uniqueness_shapley(frame)
    assert set(found.groups(["born"]).attributes["born"]) == {
        "1970-01-31",
        "1970-02-01",
        "1971-02-01",
        "1970-01-01",
        "(missing)",
    }
    years = da.uniqueness_shapley(frame, coarsen={"born": "year"})
    assert sorted(years.groups(["born"]).sizes) == [1, 1, 3]
    assert set(years.groups(["born"]).attributes["born"]) == {"1970", "1971", "(missing)"}
    assert len(da.uniqueness_shapley(frame, coarsen={"born": "month"}).groups(["born"])) == 4
    instead = da.uniqueness_shapley(frame.assign(year=[1, 2, 3, 4, 5]), ["born", "x"], coarsen={"born": "year"})
    assert len(instead.groups(["born"])) == 5  # a column of that name goes first
    assert any("no coarser 'born'" in note for note in instead.notes) is False
    other = da.uniqueness_shapley(frame.assign(year=[1, 2, 3, 4, 5]), ["x"], coarsen={"x": "year"})
    assert any("'year' is no coarser 'x'" in note for note in other.notes)


def test_whole_numbers_of_all_sizes_stay_apart():
    for numbers in (
        np.array([2**63 + i for i in range(4)], np.uint64),
        np.array([2**64 - 1, 0, 5, 2**63], np.uint64),
        np.array([-(2**63), 2**63 - 1, 0, -1]),
        np.arange(4) * 2**55,
        np.array([-1.5, -0.5, 0.5, 1e300]),
    ):
        assert len(da.uniqueness_shapley(pd.DataFrame({"a": numbers})).groups()) == 4
    zeros = pd.DataFrame({"a": np.array([0.0, -0.0, 0.5, 0.5])})
    assert da.uniqueness_shapley(zeros).groups().sizes.tolist() == [2, 2]
    gaps = pd.DataFrame({"a": pd.array([2**53, 2**53 + 1, None, None], "Int64")})
    with pytest.raises(da.InputError, match="some of it missing; read it as a category"):
        da.uniqueness_shapley(gaps)
    assert len(da.uniqueness_shapley(gaps, categorical=["a"]).groups()) == 3
    with pytest.raises(da.InputError, match="infinite at row 1"):
        da.uniqueness_shapley(pd.DataFrame({"a": [1.0, np.inf]}))


def test_keys_beyond_64_bits_and_regular_keys_are_told_apart():
    rng = np.random.default_rng(11)
    wide = rng.integers(0, 3000, (4000, 8))
    wide[1000:2000] = wide[:1000]
    found = da.uniqueness_shapley(table_of(wide))
    frame = pd.DataFrame(wide)
    assert len(found.groups()) == len(frame.drop_duplicates()) == 3000
    assert (found.group_sizes == frame.groupby(list(frame))[0].transform("size")).all()
    regular = rng.choice(np.arange(16_000) << 49, 200_000)
    assert len(da.group_sizes(pd.DataFrame({"a": regular}))) == len(np.unique(regular))


def test_a_key_makes_everyone_unique_in_all_that_is_said():
    table = da.voters(300, seed=9)
    found = da.uniqueness_shapley(table, ["zip", "age"], key=True)
    assert (found.group_sizes == 1).all()
    assert "100.0% are unique" in found.summary()
    assert "300 different by zip, age, (key)" in found.summary()
    assert (found.by("race").beside["unique"] == 1).all()
    assert found.groups().unique == da.group_sizes(table, ["zip", "age"]).unique
    assert found.interactions().columns == ("zip", "age")
    with pytest.raises(da.InputError, match="already; rename"):
        da.uniqueness_shapley(pd.DataFrame({"(key)": [1, 2]}), key=True)


def test_series_are_matched_by_their_index():
    frame = da.voters(200, seed=8).to_frame("pandas").set_index("id")
    some = frame[frame["age"] > 40]
    found = da.uniqueness_shapley(some, ["zip", "age"])
    mask = some["race"] == "White"
    np.testing.assert_allclose(found.mean(mask).values, found.mean(mask.to_numpy()).values)
    for ask in (lambda: found.mean(mask.sort_values()), lambda: found.by(some["race"].sort_values())):
        with pytest.raises(da.InputError, match="another index than the records"):
            ask()
    assert found.by(some["race"]).rows == "race"
    with pytest.raises(da.InputError, match="is an index"):
        found.mean(some.index[:3])


def test_what_coarsening_has_changed():
    table = da.voters(2000, seed=7)
    columns = ["zip", "race", "age"]
    found = da.uniqueness_shapley(table, columns, coarsen={"age": 5, "zip": "county"})
    changes = found.changes(drop=["race"])
    assert changes.ids.tolist() == ["as it is", "age: 5", "zip: county", "age: 5, zip: county", "race: dropped"]
    for row, coarsen in enumerate(
        ({}, {"age": 5}, {"zip": "county"}, {"age": 5, "zip": "county"}, {"age": 5, "zip": "county", "race": None})
    ):
        expected = da.uniqueness_shapley(table, columns, coarsen=coarsen)
        np.testing.assert_allclose(changes.values[row], expected.mean().values, atol=1e-12)
        assert changes.beside["unique"][row] == pytest.approx(expected.groups().unique)


def test_only_what_is_asked_for_is_noted_and_needed():
    frame = pd.DataFrame(
        {"a": [1, 2, 2], "lists": [[1], [2], [3]], "free": [f"text {i}" for i in range(3)], "code": [7, 8, 9]}
    )
    found = da.uniqueness_shapley(frame, ["a"])
    assert found.notes == ()
    assert found.by("free").beside["people"].tolist() == [1, 1, 1]
    assert da.uniqueness_shapley(frame, ["code"]).notes == (
        "'code' differs from row to row, and by itself tells everyone apart",
    )
    assert da.uniqueness_shapley(frame.assign(number=[4, 5, 6]), ["code", "number"]).notes == (
        "'code', 'number' differ from row to row, and each by itself tells everyone apart",
    )
    empty = da.uniqueness_shapley(pd.DataFrame({"a": [None, None], "b": [1, 2]}), ["a", "b"])
    assert empty.mean().of("a") == 0


def test_means_and_tables_say_how_they_came_about():
    frame = pd.DataFrame({"a": [1, None, 2], "b": [1, 1, 2]})
    found = da.uniqueness_shapley(frame, missing="exclude")
    for result in (found.mean(), found.by("b"), found.compare(key=True), found.interactions(), found.sets()):
        assert any("left out" in note for note in result.notes)
        assert result.parameters["missing"] == "exclude"
    sampled = da.uniqueness_shapley(da.voters(300), permutations=10, seed=4)
    assert sampled.mean().parameters["seed"] == 4
    assert any("estimates" in note for note in sampled.compare(drop=["zip"]).notes)
    assert any("not here" in note for note in sampled.by("race").notes)


def test_progress_ends_where_it_said():
    seen = []
    da.uniqueness_shapley(da.voters(300), tolerance=0.05, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert all(done <= total for done, total in seen)


def test_memory_is_told_beforehand():
    """The estimate is never below what the walk and the samples use, as far as NumPy and numba allocate it."""
    import tracemalloc

    from datassay.identity import counting

    rng = np.random.default_rng(12)
    table = table_of(rng.integers(0, 6, (30_000, 8)))
    coded = [counting.code(table, name, "as it is", []) for name in table.columns]
    cells, _ = counting.distinct(tuple(table.columns), coded, len(table), None)
    schedule = Schedule(n_jobs=2, memory=2**32)

    def sampled():
        engine.sample(cells, engine.RandomOrders(permutations=100, confidence=0.9), schedule)

    def exact():
        engine.exact(cells, cells.weights, schedule, wanted=len(cells.weights))

    for work, promised in ((exact, engine.exact_bytes), (sampled, engine.sampled_bytes)):
        work()
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 0.1 * promised(30_000, 8, 2) < peak < promised(30_000, 8, 2)


def test_bins_have_names_and_codes_are_suspected():
    frame = pd.DataFrame(
        {"age": [-3, 4, 5, 9, 10], "size": [0.5, 1.25, 1.3, 2.0, 0.1], "zip": [10001, 10002, 20001, 20002, 30001]}
    )
    found = da.uniqueness_shapley(frame, coarsen={"age": 5, "size": 0.5, "zip": 3})
    assert set(found.groups(["age"]).attributes["age"]) == {"-5–-1", "0–4", "5–9", "10–14"}
    assert set(found.groups(["size"]).attributes["size"]) == {"0 to < 0.5", "0.5 to < 1", "1 to < 1.5", "2 to < 2.5"}
    assert any(
        "'zip' is cut into bins of width 3; if its numbers of 5 digits are codes" in note for note in found.notes
    )


def test_groups_of_people():
    table = da.voters(4000, seed=2)
    found = da.uniqueness_shapley(table)
    frame = table.to_frame("pandas")
    by = found.by("county")
    expected = pd.DataFrame(found.values, columns=found.columns).groupby(frame["county"]).mean()
    assert by.ids.tolist() == expected.index.tolist()
    np.testing.assert_allclose(by.values, expected.to_numpy(), atol=1e-12)
    np.testing.assert_allclose(by.beside["share"].sum(), 1)
    alone = frame.groupby(["zip", "race", "party", "gender", "age"])["id"].transform("size") == 1
    np.testing.assert_allclose(by.beside["unique"], alone.groupby(frame["county"]).mean(), atol=1e-12)
    same = found.by(frame["county"].to_numpy())
    np.testing.assert_array_equal(same.values, by.values)
    bands = found.by("age", coarsen=[32, 48, 64])
    assert bands.ids.tolist() == ["< 32", "32 to < 48", "48 to < 64", "≥ 64"]
    one = frame["race"] == "Asian"
    np.testing.assert_allclose(found.mean(one.to_numpy()).values, found.by("race").values[0], atol=1e-12)
    assert found.of(17) == pytest.approx(dict(zip(found.columns, found.values[17], strict=True)))


def test_a_file_counted_on_disk_gives_the_same_numbers(tmp_path):
    table = da.voters(5000, seed=3)
    for name in ("people.csv", "people.parquet"):
        table.save(tmp_path / name)
        columns = ["zip", "race", "age"]
        memory = da.uniqueness_shapley(tmp_path / name, columns, carry=["county"], categorical=["zip"])
        counted = da.read_distinct(tmp_path / name, [*columns, "county"], categorical=["zip"])
        found = da.uniqueness_shapley(counted, columns, weights="count")
        np.testing.assert_allclose(found.mean().values, memory.mean().values, atol=1e-12)
        np.testing.assert_allclose(found.by("county").values, memory.by("county").values, atol=1e-12)
        assert found.groups().unique == memory.groups().unique
        assert len(found) < len(memory)
        assert memory.mean().people == found.mean().people == 5000


def test_on_disk_and_in_memory_a_file_says_the_same(tmp_path, monkeypatch):
    from datassay.identity import question

    frame = pd.DataFrame(
        {
            "a": list("xyxyz"),
            "grade": pd.Categorical(["1", "2", "?", "2", "1"]),
            "usable": [1, 1, 2, 2, 2],
            "(count)": [3, 3, 4, 4, 4],
            "born": pd.to_datetime(["2000-01-01", None, "2000-01-01", "2001-05-05", "2001-05-05"]),
            "member": [True, False, None, True, True],
        },
        index=pd.Index([11, 12, 13, 14, 15], name="pid"),
    )
    frame.to_parquet(tmp_path / "p.parquet")
    frame.reset_index(drop=True).to_csv(tmp_path / "c.csv")
    for file in (tmp_path / "p.parquet", tmp_path / "c.csv"):
        memory = da.uniqueness_shapley(file)
        with monkeypatch.context() as patch:
            patch.setattr(question, "bytes_in_memory", lambda *_: 2**60)
            disk = da.uniqueness_shapley(file)
        assert memory.columns == disk.columns
        np.testing.assert_allclose(disk.mean().values, memory.mean().values, atol=1e-12)
        assert disk.groups().sizes.tolist() == memory.groups().sizes.tolist()
        for name in memory.columns:
            assert sorted(disk.groups([name]).attributes[name]) == sorted(memory.groups([name]).attributes[name])
    frame.to_csv(tmp_path / "i.csv")
    frame.rename_axis(None).to_csv(tmp_path / "n.csv")
    assert da.uniqueness_shapley(tmp_path / "n.csv", ["a"]).ids.tolist() == [11, 12, 13, 14, 15]
    pd.DataFrame({"a": [1], "A": [2]}).to_parquet(tmp_path / "case.parquet")
    with pytest.raises(da.InputError, match="differ only in case"):
        da.read_distinct(tmp_path / "case.parquet")
    pd.DataFrame({"a": [1, 1, 2, 2], "w": [1, 2, np.nan, np.inf]}).to_parquet(tmp_path / "w.parquet")
    with pytest.raises(da.InputError, match="positive numbers in every row"):
        da.read_distinct(tmp_path / "w.parquet", ["a"], weight="w")


def test_a_large_file_goes_to_disk_by_itself(tmp_path, monkeypatch):
    from datassay.identity import question

    table = da.voters(5000, seed=4)
    table.save(tmp_path / "people.parquet")
    plain = da.uniqueness_shapley(tmp_path / "people.parquet", ["zip", "race", "age"])
    monkeypatch.setattr(question, "bytes_in_memory", lambda *_: 2**60)
    found = da.uniqueness_shapley(tmp_path / "people.parquet", ["zip", "race", "age"], carry=["county"])
    assert any("counted on disk: its 5,000 people" in note for note in found.notes)
    np.testing.assert_allclose(found.mean().values, plain.mean().values, atol=1e-12)
    assert found.by("county").beside["people"].sum() == 5000
    weighted = table.to_frame("pandas").assign(w=np.arange(5000) % 3 + 0.5)
    weighted.to_csv(tmp_path / "weighted.csv", index=False)
    disk = da.uniqueness_shapley(tmp_path / "weighted.csv", ["zip", "age"], weights="w", id="id")
    monkeypatch.undo()
    here = da.uniqueness_shapley(tmp_path / "weighted.csv", ["zip", "age"], weights="w", id="id")
    np.testing.assert_allclose(disk.mean().values, here.mean().values, atol=1e-12)


def test_results_come_back_from_files(tmp_path):
    table = da.voters(300, seed=5)
    weights = np.arange(300) % 4 + 1
    found = da.uniqueness_shapley(table, weights=weights)
    sampled = da.uniqueness_shapley(table, tolerance=0.2)
    for result in (found, sampled):
        for ending in ("parquet", "json"):
            back = da.load_result(result.save(tmp_path / f"unique.{ending}"))
            assert (back.values == result.values).all()
            assert (back.ids == result.ids).all()
            np.testing.assert_allclose(back.mean().values, result.mean().values, atol=1e-12)
            assert (back.mean().entropies == result.mean().entropies).all()
            assert back.parameters == result.parameters
            assert back.notes == result.notes
            assert (back.lower is None) == (result.lower is None)
            assert back.summary() == result.summary()
            np.testing.assert_allclose(back.by(table["race"]).values, result.by("race").values, atol=1e-12)
            with pytest.raises(da.InputError, match="does not hold"):
                back.by("race")
            for ask in (back.interactions, back.sets, back.compare, back.changes, back.groups):
                with pytest.raises(da.InputError, match=r"needs the data.*compute it anew"):
                    ask()
            assert result.groups(["zip"]) == result.queries.groups(["zip"])
    for small in (
        found.mean(),
        sampled.mean(),
        found.by("race"),
        found.compare(key=True),
        found.groups(["zip", "age"]),
    ):
        for ending in ("parquet", "json"):
            back = da.load_result(small.save(tmp_path / f"small.{ending}"))
            assert back.summary() == small.summary()
            assert (back.values == small.values).all()
        small.save(tmp_path / "small.csv")
        assert len(pd.read_csv(tmp_path / "small.csv")) == len(small.to_frame())


def test_figures_are_drawn(tmp_path):
    from matplotlib.figure import Figure

    found = da.uniqueness_shapley(da.voters(2000, seed=6))
    sampled = da.uniqueness_shapley(da.voters(500, seed=6), tolerance=0.3)

    def axes():
        return Figure().add_subplot()

    bars = found.plot(axes(), most=100)
    assert len(bars.patches) == 5
    assert bars.get_xlim() == (0, 100)
    tops = found.totals[np.argsort(found.totals, kind="stable")[::20]]
    highest = max(patch.get_data().values.max() for patch in bars.patches)
    assert highest == pytest.approx(tops.max())
    means = found.mean().plot(axes())
    assert sorted(bar.get_width() for bar in means.containers[0]) == pytest.approx(sorted(found.mean().values))
    (error,) = [c for c in sampled.mean().plot(axes()).containers if type(c).__name__ == "ErrorbarContainer"]
    assert error.has_xerr
    ends = np.sort([segment[:, 0] for segment in error.lines[2][0].get_segments()])
    np.testing.assert_allclose(np.sort(ends[:, 1]), np.sort(sampled.mean().upper))
    groups = found.by("race").plot(axes())
    assert [text.get_text() for text in groups.get_yticklabels()][::-1] == found.by("race").ids.tolist()
    pairs = found.interactions().plot(axes())
    assert len(pairs.texts) == 20
    keyed = found.compare(coarsen={"age": 5}, key=True)
    drawn = keyed.plot(axes())
    ends = [max(bar.get_x() + bar.get_width() for bar in bars) for bars in zip(*drawn.containers, strict=True)]
    np.testing.assert_allclose(ends[::-1], keyed.beside["total"])
    wide = da.uniqueness_shapley(table_of(np.random.default_rng(0).integers(0, 3, (200, 12)), "abcdefghijkl"))
    stacked = wide.plot(axes())
    assert [text.get_text() for text in stacked.get_legend().get_texts()][-1] == "4 others"
    assert max(patch.get_data().values.max() for patch in stacked.patches) == pytest.approx(wide.totals.max())
    assert found.groups(["zip"]).plot(axes()).lines
    with pytest.raises(da.InputError, match="ax must be"):
        found.plot("p.svg")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "zip"}, "must be a list"),
        ({"columns": ["zap"]}, "did you mean 'zip'"),
        ({"columns": []}, "has no attributes"),
        ({"columns": ["zip", "zip"]}, "more than once"),
        ({"coarsen": {"zap": 3}}, "'zap' is not among the attributes"),
        ({"coarsen": {"county": 3}}, "not among the attributes"),
        ({"coarsen": {"zip": 0}}, "leading characters"),
        ({"coarsen": {"zip": 2.5}}, "leading characters"),
        ({"coarsen": {"zip": [1, 2]}}, "cut points are for numbers"),
        ({"coarsen": {"age": 0}}, "above 0"),
        ({"coarsen": {"age": [5, 3]}}, "must increase"),
        ({"coarsen": {"zip": "country"}}, "did you mean 'county'"),
        ({"coarsen": {"race": {"Purple": "x"}}}, "no value 'Purple'"),
        ({"coarsen": ["age"]}, "must map columns"),
        ({"missing": "drop"}, "missing must be one of"),
        ({"weights": [1, 2]}, "one number for each"),
        ({"weights": "race"}, "holds no numbers"),
        ({"weights": "nothing"}, "no column 'nothing'"),
        ({"weights": np.zeros(50)}, "row 0 .* has 0"),
        ({"weights": np.full(50, 0.5), "key": True}, "less than one person"),
        ({"weights": np.full(50, 1e308)}, "weights are too large"),
        ({"permutations": 5, "key": True}, "not from samples"),
        ({"method": "guess"}, "method must be one of"),
        ({"method": "exact", "tolerance": 0.1}, "tolerance is for"),
        ({"permutations": 10, "seconds": 1}, "leave out seconds"),
        ({"permutations": 0}, "at least 1"),
        ({"tolerance": 0}, "above 0"),
        ({"confidence": 1}, "below 1"),
        ({"memory": 1000}, "needs about"),
        ({"n_jobs": 0}, "number of threads"),
        ({"id": "age"}, "read already"),
        ({"carry": "age"}, "must be a list"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(da.InputError, match=message):
        da.uniqueness_shapley(da.voters(50), **options)


def test_bad_questions_are_named():
    found = da.uniqueness_shapley(da.voters(50))
    for ask, message in (
        (lambda: found.of(51), "no record with id 51"),
        (lambda: found.by("planet"), "no column 'planet'"),
        (lambda: found.by([1, 2]), "one entry for each of the 50"),
        (lambda: found.mean(np.zeros(50, bool)), "nobody is chosen"),
        (lambda: found.mean([99]), "positions from 0 to 49"),
        (lambda: found.mean(["a"]), "mask or positions"),
        (lambda: found.mean(np.ones(3, bool)), "shape"),
        (lambda: found.groups("zip"), "must be a list"),
        (lambda: found.groups(["county"]), "not among"),
        (lambda: found.compare(drop="zip"), "must be a list"),
        (lambda: found.compare(coarsen=["zip"]), "must map"),
        (lambda: found.compare(coarsen={"age": ["p", "q"]}), "cut point of 'age'"),
        (lambda: found.mean([]), "nobody is chosen"),
        (lambda: found.groups([]), "names no attribute"),
        (lambda: found.compare(coarsen={"county": 3}), "not among"),
        (lambda: found.mean().of("county"), "no attribute 'county'"),
        (lambda: found.by("race").of("Purple"), "no row 'Purple'"),
        (lambda: da.uniqueness_shapley(3), "read_table takes"),
        (lambda: da.uniqueness_shapley("nowhere.csv"), "there is no file"),
        (lambda: found.groups().share_below(0), "above 0"),
    ):
        with pytest.raises(da.InputError, match=message):
            ask()


def test_distinct_rows_name_what_is_wrong(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("town,age,w\nYork,30,1\n York ,30,2\nHull,,0\n")
    for options, message in (
        ({"columns": ["tow"]}, "did you mean 'town'"),
        ({"columns": ["town"], "weight": "w"}, "positive numbers"),
        ({"columns": ["town"], "weight": "v"}, "no column 'v'"),
        ({"columns": ["town", "w"], "weight": "w"}, "cannot be one of the columns"),
        ({"columns": ["town"], "count": "town"}, "another name"),
        ({"columns": ["town"], "memory": 5}, "memory must be"),
        ({"columns": []}, "no column to count"),
        ({"columns": "town"}, "must be a list"),
        ({"columns": ["age"], "weight": "town"}, "does not hold numbers"),
    ):
        with pytest.raises(da.InputError, match=message):
            da.read_distinct(file, **options)
    with pytest.raises(da.InputError, match="takes the path of a file"):
        da.read_distinct(pd.DataFrame({"a": [1]}))
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(da.InputError, match="line 3 has 3 cells"):
        da.read_distinct(bad)


def test_spaces_around_a_word_do_not_make_it_another(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("town,age\nYork,30\n York ,30\nHull,30\n")
    counted = da.uniqueness_shapley(da.read_distinct(file), ["town", "age"], weights="count")
    assert counted.mean().values.tolist() == da.uniqueness_shapley(file).mean().values.tolist()
    assert sorted(counted.groups().sizes) == [1, 2]


def test_a_summary_of_coarser_attributes_says_that_they_are(tmp_path):
    people = da.census(120)
    assert "made coarser" not in da.uniqueness_shapley(people, ["age", "sex"]).summary()
    found = da.uniqueness_shapley(people, ["age", "sex", "education"], coarsen={"age": 10, "sex": None})
    back = da.load_result(found.save(tmp_path / "found.json"))
    for told in (found, back):
        assert "by age, sex, education, made coarser (age: 10, sex: one bucket).\n" in told.summary()


def test_sampled_values_have_the_interactions_of_exact_ones():
    people = da.census(200, seed=1)
    columns = ["age", "sex", "marital", "region"]
    exact = da.uniqueness_shapley(people, columns, method="exact").interactions()
    sampled = da.uniqueness_shapley(people, columns, method="sampled", permutations=4).interactions()
    np.testing.assert_array_equal(sampled.values, exact.values)


@pytest.mark.parametrize("options", [{}, {"id": "id"}])
def test_files_counted_on_disk_are_counted_by_the_columns_wanted(tmp_path, options):
    frame = pd.DataFrame({"id": range(90), "a": [1, 2, 3] * 30, "b": [1, 2] * 45, "c": range(90)})
    frame[:40].to_parquet(tmp_path / "part-1.parquet")
    frame[40:].to_parquet(tmp_path / "part-2.parquet")
    for columns, distinct in ((["a", "b"], 6), (None, 90)):
        found = da.uniqueness_shapley(tmp_path, columns, **options)
        assert any(f"are {distinct} distinct rows" in note for note in found.notes)
        assert list(found.columns) == (columns or [n for n in frame if n not in options.values()])


@given(st.floats(1e-6, 1e9))
def test_a_round_width_is_the_nearest_by_ratio(width):
    from datassay.identity.coarsening import round_width

    rounds = [step * 10.0**power for power in range(-8, 12) for step in (1, 2, 5)]
    off = min(max(width, one) / min(width, one) for one in rounds)
    found = round_width(width)
    assert max(width, found) / min(width, found) == pytest.approx(off, rel=1e-6)


def offered(values, now=None):
    from datassay.identity.coarsening import _ways

    table = da.read_table(pd.DataFrame({"a": values}), text="categorical")
    return [how for _, how in _ways("a", table.columns["a"], now)]


def test_what_may_be_made_coarser_is_made_so_in_steps():
    """About 20, 10 or 5 steps over a number; fewer digits of a code; rare values as one, if most people have others."""
    assert offered(range(100)) == [5, 10, 20]
    assert offered(range(100), 5) == [10, 20]
    assert offered(np.arange(1000) / 1000) == [0.05, 0.1, 0.2]
    assert offered(range(10)) == [2]  # halves of whole numbers are no steps
    assert offered([7] * 30) == []
    assert offered([np.nan] * 30) == []
    codes = [f"z{i:04d}"[1:] + "5" for i in range(30)]
    categorical = da.read_table(pd.DataFrame({"a": codes}), categorical=["a"]).columns["a"]
    from datassay.identity.coarsening import _ways

    assert [how for _, how in _ways("a", categorical, None)] == [4, 3]
    assert [how for _, how in _ways("a", categorical, 4)] == [3, 2]
    assert [how for _, how in _ways("a", categorical, 2)] == [1]
    assert [how for _, how in _ways("a", categorical, 1)] == []
    rare = {"c": "(other)", "d": "(other)"}
    assert offered(["a"] * 500 + ["b"] * 490 + ["c"] * 6 + ["d"] * 4) == [rare, rare]
    assert offered(["a"] * 500 + ["b"] * 440 + ["c"] * 40 + ["d"] * 20) == [rare]  # below 5 %, not below 1 %
    assert offered(["a"] * 500 + ["b"] * 440 + ["c"] * 40 + ["d"] * 20, rare) == []
    assert offered(["a"] * 990 + ["c"] * 10) == []  # one alone
    assert offered([f"v{i % 40}" for i in range(400)]) == []  # that would be all of them
    assert offered([*["a"] * 900, *["c"] * 40, *["d"] * 20, *[None] * 40]) == [rare]


@pytest.mark.parametrize("weighted", [False, True])
def test_sampled_means_are_shares_of_sampled_people(weighted):
    people = da.census(150, seed=2)
    bins = da.measured_bins(people)
    weights = np.arange(1.0, 151.0) if weighted else None
    sampled = da.uniqueness_shapley(people, method="sampled", permutations=300, weights=weights, seed=1, coarsen=bins)
    exact = da.uniqueness_shapley(people, method="exact", weights=weights, coarsen=bins)
    shares = np.ones(150) / 150 if weights is None else weights / weights.sum()
    mean = sampled.mean()
    np.testing.assert_allclose(mean.values, shares @ sampled.values, atol=1e-9)
    assert mean.total == pytest.approx(exact.mean().total)
    np.testing.assert_allclose(mean.values, exact.mean().values, atol=0.2)
    inside = (mean.lower <= exact.mean().values) & (exact.mean().values <= mean.upper)
    assert inside.mean() >= 0.75


@pytest.mark.parametrize("seed", range(4))
def test_attributes_of_many_values_are_counted_as_pandas_counts(seed):
    """Groups times levels are more than the rows: groups are found in a table in which they get in each other's way."""
    frame = pd.DataFrame(np.random.default_rng(seed).integers(0, 300, (1500, 3)), columns=list("abc"))
    sets = da.uniqueness_shapley(frame).sets()
    for chosen in (["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]):
        sizes, told = frame.groupby(chosen).size(), sets.of(chosen)
        assert told["groups"] == len(sizes)
        assert told["unique"] == pytest.approx((sizes == 1).sum() / 1500)
        assert told["entropy"] == pytest.approx(entropy(frame, chosen), abs=1e-12)
    orders = da.uniqueness_shapley(frame, method="sampled", permutations=3)
    np.testing.assert_allclose(orders.mean().total, entropy(frame, ["a", "b", "c"]), atol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_memory_that_many_sets_of_attributes_need_is_told_beforehand(n_jobs):
    """Of few rows it is the table of all sets that needs the memory."""
    import tracemalloc

    rows = np.random.default_rng(0).integers(0, 2, (6, 15)).astype(np.int32)
    names = tuple(np.array(["0", "1"]) for _ in range(15))
    cells = Cells(tuple("abcdefghijklmno"), np.ascontiguousarray(rows.T), names, np.ones(6))
    schedule = Schedule(n_jobs=n_jobs, memory=2**32)
    engine.exact(cells, cells.weights, schedule, wanted=6)
    tracemalloc.start()
    engine.exact(cells, cells.weights, schedule, wanted=6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < engine.exact_bytes(6, 15, n_jobs) < 10 * peak


@pytest.mark.parametrize(
    ("told", "of"),
    [
        (engine.exact_bytes, (100, 6, 2, 10)),
        (engine.sampled_bytes, (100, 6, 2, 10)),
        (engine.exact_seconds, (100, 6)),
        (engine.order_seconds, (100, 10)),
    ],
)
def test_more_rows_attributes_threads_or_people_take_more(told, of):
    for i in range(len(of)):
        assert told(*of[:i], 2 * of[i], *of[i + 1 :]) > told(*of) > 0


def test_large_numbers_without_a_sign_stay_apart():
    numbers = np.array([2**62 + i for i in range(4)], np.uint64)
    assert da.uniqueness_shapley(pd.DataFrame({"a": numbers})).groups().sizes.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("numbers", "width", "suspected"),
    [
        ([1001, 1002, 2001], 4, True),
        ([1001, 1002, 2001], 5, False),
        ([101, 102, 201], 3, False),
        ([999, 1002], 3, False),
    ],
)
def test_codes_are_suspected_from_four_digits_on_in_bins_no_wider_than_digits(numbers, width, suspected):
    found = da.uniqueness_shapley(pd.DataFrame({"zip": numbers}), coarsen={"zip": width})
    assert any("are codes" in note for note in found.notes) == suspected


def test_an_attribute_is_left_out_where_nothing_coarser_helps():
    frame = pd.DataFrame({"name": [f"n{i}" for i in range(60)], "age": np.arange(60) // 2, "sex": ["f", "m"] * 30})
    for columns in (["name", "age"], ["name", "sex"], ["sex", "name", "age"]):
        plan = da.suggest_coarsening(frame, columns, target=0.0, steps=1)
        assert plan.ids.tolist() == ["as it is", "name left out"]
        assert plan.coarsen == {"name": None}
        sizes = frame.groupby([name for name in columns if name != "name"]).name.transform("size")
        assert plan.values.tolist() == [1.0, (sizes == 1).mean()]
