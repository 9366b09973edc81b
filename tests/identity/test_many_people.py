"""Many people: counted once for all changes of attributes, and valued by those drawn at random."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import datassay as da
from datassay._errors import UnavailableError
from datassay._run import Schedule
from datassay.data import Column, Table
from datassay.identity import count_crowds, crowds, engine, mean_bits


def table_of(n=400, levels=(2, 3, 4, 30, 5), seed=0):
    rng = np.random.default_rng(seed)
    return Table(
        {
            f"a{j}": Column(
                "categorical",
                np.minimum(*rng.integers(0, many, (2, n))).astype(np.int32),
                np.array([f"v{v}" for v in range(many)]),
            )
            for j, many in enumerate(levels)
        },
        np.arange(n),
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(0, 10_000))
def test_crowds_are_the_groups_that_pandas_finds(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.integers(0, 40, n), "job": rng.choice(list("abc"), n), "sex": rng.choice(["f"], n)}
    )
    frame.loc[rng.random(n) < 0.2, "job"] = None
    counted = count_crowds(da.read_table(frame), list(frame.columns), {"age": 10})
    coarse = frame.assign(age=frame.age // 10, job=frame.job.fillna("(missing)"))
    found = counted.alike({"age": 10})
    sizes = coarse.groupby(list(coarse.columns)).age.transform("size")
    assert found.sizes().tolist() == sizes.tolist()
    assert found.distinct == len(coarse.drop_duplicates())
    assert found.unique == (sizes == 1).mean()
    assert found.share_below(5) == (sizes < 5).mean()
    for name, others in counted.without({"age": 10}).items():
        rest = [one for one in coarse.columns if one != name]
        assert others.sizes().tolist() == coarse.groupby(rest)[name].transform("size").tolist()


def test_everybody_drawn_has_the_exact_means():
    table = table_of()
    exact, found = da.uniqueness_shapley(table).mean(), mean_bits(table, table.features, coarsen={}, people=len(table))
    np.testing.assert_allclose(found.values, exact.values, atol=1e-12)
    np.testing.assert_allclose(found.upper - found.lower, 0, atol=1e-12)
    assert found.people == exact.people


@pytest.mark.parametrize("d", [5, 11])
def test_people_drawn_have_the_values_they_have_among_all(d):
    """A walk ended early where nobody is wanted gives those who are wanted the same values."""
    table = table_of(700, [*[3] * (d - 1), 40])
    exact = da.uniqueness_shapley(table)
    found = mean_bits(table, table.features, coarsen={}, people=50, seed=4)
    drawn = np.sort(np.random.default_rng([4, 3]).permutation(700)[:50])
    np.testing.assert_allclose(found.values, exact.values[drawn].mean(axis=0), atol=1e-12)


def covered(table, exact, seeds, **how):
    inside = []
    for seed in range(seeds):
        found = mean_bits(table, table.features, coarsen={}, seed=seed, **how)
        inside.append((found.lower - 1e-12 <= exact) & (exact <= found.upper + 1e-12))
    return float(np.mean(inside))


def test_intervals_cover_what_is_exact_at_their_nominal_rate():
    table = table_of(600)
    exact = da.uniqueness_shapley(table).mean().values
    assert covered(table, exact, 150, people=60) == pytest.approx(0.95, abs=0.03)


def test_with_more_attributes_than_are_done_exactly_intervals_cover_as_well(monkeypatch):
    table = table_of(300)
    exact = da.uniqueness_shapley(table).mean().values
    monkeypatch.setattr(engine, "MOST_EXACT", 3)
    assert covered(table, exact, 60, people=80) >= 0.92


def test_threads_do_not_change_a_bit_of_the_means_and_memory_is_bounded(monkeypatch):
    table = table_of(3000, [4] * 10)
    one, two = (mean_bits(table, table.features, coarsen={}, people=200, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.values, two.values)
    monkeypatch.setattr(crowds, "MEMORY", 2**16)
    with pytest.raises(UnavailableError, match="allow more"):
        mean_bits(table, table.features, coarsen={}, people=200)


def test_fewer_people_need_less_memory_as_is_told_beforehand():
    import tracemalloc

    from datassay.identity import counting

    table = table_of(30_000, [6] * 8)
    coded = [counting.code(table, name, "as it is", []) for name in table.columns]
    cells, cell = counting.distinct(tuple(table.columns), coded, len(table), None)
    mass = np.bincount(cell[:1000], minlength=len(cells.weights)).astype(float)
    cells, mass, _, wanted = engine.bring_forward(cells, mass, cell[:1000])

    def work():
        engine.exact(cells, mass, Schedule(n_jobs=2, memory=2**32), wanted=wanted)

    work()
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    n = len(cells.weights)
    assert 0.1 * engine.exact_bytes(n, 8, 2, wanted) < peak < engine.exact_bytes(n, 8, 2, wanted)
    assert engine.exact_bytes(n, 8, 2, wanted) < 0.6 * engine.exact_bytes(n, 8, 2)
