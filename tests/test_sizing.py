"""The model behind docs/sizing.md: its arithmetic, and what the library itself says of its memory."""

import math
from pathlib import Path

import numpy as np
import pytest

from datassay.neighbors import FullRanking, NearestRanking, WithinThreshold, make_space

ROOT = Path(__file__).resolve().parents[1]
VIEWS = {"knn_shapley": FullRanking(), "knn_banzhaf": NearestRanking(60), "tknn_shapley": WithinThreshold(-0.5)}


@pytest.fixture
def sizing(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return pytest.importorskip("sizing")


@pytest.mark.parametrize("method", VIEWS)
def test_bytes_are_what_the_library_reckons_with(method, sizing):
    n, m, d = 256 * 200, 30, 5
    rng = np.random.default_rng(0)
    space = make_space(rng.random((n, d), np.float32), rng.random((m, d), np.float32), "euclidean")
    job = sizing.Job(method, n, m, d)
    assert sizing.features_bytes(job) == space.tiles.nbytes + n
    # accumulate adds three sums; what depends on the number of neighbours is left out
    assert sizing.fixed_bytes(job) == pytest.approx(VIEWS[method].bytes_fixed(space) + 24 * n, rel=0.01)
    assert sizing.row_bytes(job) == pytest.approx(VIEWS[method].bytes_per_row(space), rel=0.01)


def test_seconds_are_counts_times_constants(sizing):
    cost = sizing.Cost(record=10, record_feature=2, pair=5, pair_feature=0.25, doubling=1, reading=0.5)
    job = sizing.Job("knn_shapley", 4_000_000, 100, 8)
    assert (job.group, job.groups) == (4, 25)
    fixed, row = 44 * job.n, 8 * job.n
    assert sizing.plan(job, 2, fixed + row - 1) == (0, 0)
    assert sizing.plan(job, 2, fixed + 3 * row) == (1, 3)
    assert sizing.plan(job, 2, 2 * (fixed + 9 * row)) == (2, 4)  # no more rows than there are in a group
    once = job.n * (10 + 2 * 8) * 1e-9
    work = job.n * 100 * (5 + 0.25 * 8 + 2 * 1) * 1e-9  # 4 million are two doublings of a million
    reading = 25 * job.n * 8 * 0.5e-9  # four points in one block
    assert sizing.seconds(job, cost, 1, 1e12) == pytest.approx(once + work + reading)
    assert sizing.seconds(job, cost, 1, fixed + 2 * row) == pytest.approx(once + work + 2 * reading)  # two blocks each
    assert math.isinf(sizing.seconds(job, cost, 1, row))
    # 25 groups by 10 threads are three rounds, of which the last is half empty
    assert sizing.seconds(job, cost, 10, 1e12, 0.9) == pytest.approx(once + (work + reading) * 3 / 25 / 0.9)
    fast, slow = sizing.Network(1e9, 1e12), sizing.Network(1e9, 1e6)
    sent = (
        8 * job.n * 33 / 1e9
    )  # to the scheduler, to one worker, from one to 3, 9 and 10 of them: two copies each time
    assert sizing.cluster_seconds(job, cost, 10, 1e12, fast) == pytest.approx(once + sent + (work + reading) * 3 / 25)
    assert sizing.cluster_seconds(job, cost, 10, 1e12, slow) == pytest.approx(once + sent + 25 * 8 * job.n / 1e6)
    both = (work + reading) * 3 / 25 + 25 * 8 * job.n / 1e6
    assert sizing.cluster_seconds(job, cost, 10, 1e12, slow, apart=False) == pytest.approx(once + sent + both)
    assert sizing.transferred_bytes(job, 10) == 11 * job.n * 33 + 2 * 25 * 8 * job.n


def test_copies_are_passed_on_by_all_who_have_one(sizing):
    assert [sizing.copies_in_turn(workers) for workers in (1, 2, 3, 4, 9, 10, 27, 100)] == [2, 3, 4, 5, 6, 8, 8, 12]


def test_constants_are_found_again_from_seconds(sizing):
    cost = sizing.Cost(record=40, record_feature=2, pair=7, pair_feature=0.1, doubling=1.5, reading=0.4)
    jobs = [
        sizing.Job("knn_shapley", n, m, d) for n in (10**6, 10**7, 3 * 10**7) for m in (8, 50, 300) for d in (4, 64)
    ]
    measured = [(counts, cost.of(counts)) for rows in (1, 2) for counts in (sizing.counts(job, rows) for job in jobs)]
    found = sizing.fitted(measured)
    for counts, seconds in measured:
        assert found.of(counts) == pytest.approx(seconds, rel=1e-6)
    assert found.pair == pytest.approx(7, rel=1e-3)


def test_files_are_read_twice_where_a_bit_for_every_pair_does_not_fit(sizing):
    assert sizing.passes(sizing.Job("tknn_shapley", 10**6)) == 1
    assert sizing.passes(sizing.Job("tknn_shapley", 10**8)) == 2
    assert sizing.passes(sizing.Job("knn_banzhaf", 10**8)) == 1
    assert sizing.counts_in_files(sizing.Job("tknn_shapley", 100, 10, 4), 2) == (100, 800, 2000, 8000, 0, 0)
