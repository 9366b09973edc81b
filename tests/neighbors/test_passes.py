"""Distances, rankings and passes: exact, tied by index, the same bits however they are run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.spatial.distance import cdist

import datassay as da
from datassay._run import Schedule
from datassay.neighbors import (
    FullRanking,
    NearestRanking,
    NeighbourGraph,
    WithinThreshold,
    collect,
    make_space,
    nearest_neighbours,
)
from datassay.neighbors.views import Scratch, group_size


def ranking(distances):
    """Full ranking of the rows of a distance matrix, through the whole machinery."""
    space = make_space(None, distances, "precomputed")
    return collect(space, FullRanking(), lambda block: (block.order.copy(),), Schedule(n_jobs=1))[0]


FINITE = {np.float32: 2.0**100, np.float64: 2.0**1000}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=150)
@given(data=st.data())
def test_ranking_is_the_stable_sort(dtype, data):
    width = 32 if dtype == np.float32 else 64
    biggest = FINITE[dtype]
    number = st.one_of(
        st.floats(-biggest, biggest, width=width),
        st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2.0**-20, -1.0]),
    )
    distances = data.draw(arrays(dtype, (2, data.draw(st.integers(1, 60))), elements=number))
    # −0 and 0 are equal, and np.argsort agrees.
    np.testing.assert_array_equal(ranking(distances), np.argsort(distances, axis=1, kind="stable"))


@pytest.mark.parametrize("crowd", [2, 17, 5000])
def test_distances_that_differ_only_in_their_last_bits_are_ranked(crowd):
    """One far and one zero distance stretch the keys, so that a crowd shares its 32 leading bits."""
    rng = np.random.default_rng(0)
    distances = 1.0 + rng.integers(0, 4 * crowd, (3, crowd)) * np.finfo(float).eps
    distances = np.hstack([np.full((3, 1), 1e300), distances, np.zeros((3, 1)), np.full((3, 1), 1e-300)])
    np.testing.assert_array_equal(ranking(distances), np.argsort(distances, axis=1, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bits", [0, 1, 7, 10, 11, 12, 20, 22, 23, 29])
def test_distances_that_differ_in_any_number_of_bits_are_ranked(bits, dtype):
    """Few bits are sorted in one pass, more in two or three."""
    whole = np.dtype(f"i{np.dtype(dtype).itemsize}")
    steps = np.random.default_rng(bits).integers(0, 2**bits, (3, 300)).astype(whole)
    distances = (dtype(1.0).view(whole) + steps).view(dtype)
    np.testing.assert_array_equal(ranking(distances), np.argsort(distances, axis=1, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 3000])
def test_nearest_is_the_start_of_the_ranking(n, dtype):
    rng = np.random.default_rng(n)
    for distances in (rng.normal(size=(4, n)), rng.integers(0, 9, (4, n)), np.sort(rng.random((4, n)))[:, ::-1]):
        distances = np.ascontiguousarray(distances, dtype)
        order = np.argsort(distances, axis=1, kind="stable")
        for limit in {1, 2, n // 3 + 1, n, n + 5}:
            found, at = nearest_neighbours(None, distances, limit=limit, metric="precomputed")
            np.testing.assert_array_equal(found, order[:, :limit])
            np.testing.assert_array_equal(at, np.take_along_axis(distances, order[:, :limit], axis=1))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8, 11])
def test_distances_agree_with_scipy(metric, d):
    rng = np.random.default_rng(d)
    X, X_val = rng.normal(size=(300, d)), rng.normal(size=(9, d))
    found, distances = nearest_neighbours(X, X_val, limit=300, metric=metric)
    theirs = cdist(X_val, X, {"manhattan": "cityblock"}.get(metric, metric)) - (metric == "cosine")
    np.testing.assert_allclose(distances, np.take_along_axis(theirs, found.astype(int), axis=1), atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_duplicates_are_at_exactly_the_same_distance_wherever_they_lie(metric, dtype):
    rng = np.random.default_rng(3)
    point = rng.normal(size=(1, 13)).astype(dtype)
    X = rng.normal(size=(600, 13)).astype(dtype)
    places = [0, 5, 255, 256, 300, 511, 599]  # starts, ends and middles of tiles
    X[places] = point
    X_val = rng.normal(size=(3, 13)).astype(dtype)
    found, distances = nearest_neighbours(X, X_val, limit=600, metric=metric)
    for order, at in zip(found, distances, strict=True):
        ranks = np.flatnonzero(np.isin(order, places))
        assert len(set(at[ranks])) == 1
        assert order[ranks].tolist() == places


def test_a_float32_input_is_ranked_in_float32_and_a_mixed_one_in_float64():
    X = np.array([[1.0], [1.0 + 1e-9]])
    query = np.array([[2.0]])
    assert nearest_neighbours(X, query, limit=2)[0].tolist() == [[1, 0]]
    # In float32 the two are equal and tie by index.
    assert nearest_neighbours(X.astype(np.float32), query.astype(np.float32), limit=2)[0].tolist() == [[0, 1]]
    assert make_space(X.astype(np.float32), query, "euclidean").dtype == np.float64
    assert make_space(X.astype(np.float32), query.astype(np.float32), "euclidean").dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(tau=st.floats(0, 100), data=st.data())
def test_within_tau_means_that_the_rounded_distance_is_at_most_tau(dtype, tau, data):
    X = np.array(
        [[data.draw(st.floats(0, 100, width=32))], [tau], [np.nextafter(tau, 0)], [np.nextafter(tau, 200)], [99]]
    )
    space = make_space(X.astype(dtype), np.zeros((1, 1), dtype), "euclidean")
    inside = WithinThreshold(tau).block(space, 0, 1, Scratch()).inside[0]
    squares = (X.astype(dtype) ** 2)[:, 0]
    # The distance is rounded to its own precision, and compared with τ as it is given.
    np.testing.assert_array_equal(inside, np.sqrt(squares).astype(np.float64) <= tau)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tau", [1e39, 1e200, 1.7e308])
def test_a_huge_tau_takes_everybody_in(dtype, tau):
    X, X_val = np.array([[0.0], [1e5]], dtype), np.zeros((1, 1), dtype)
    values = da.tknn_shapley(X, [0, 1], X_val, [0], tau=tau, metric="euclidean")
    assert (values.values != 0).all()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "precomputed"])
def test_tau_means_the_same_to_every_metric_in_float32(metric):
    distance = np.array([[0.1]], np.float32)  # a little more than 0.1
    X, X_val = (None, distance) if metric == "precomputed" else (distance, np.zeros((1, 1), np.float32))
    assert da.tknn_shapley(X, [1], X_val, [1], tau=0.1, metric=metric, n_classes=2).values[0] == 0
    assert da.tknn_shapley(X, [1], X_val, [1], tau=0.1000001, metric=metric, n_classes=2).values[0] == 0.5


def test_nobody_is_within_a_negative_euclidean_distance():
    values = da.tknn_shapley([[0.0]], [1], [[0.0]], [1], tau=-1, metric="euclidean").values
    assert values.tolist() == [0.0]


def test_training_points_looking_at_each_other_do_not_see_themselves():
    X = np.array([[0.0], [0.0], [1.0]])
    assert nearest_neighbours(X, limit=5)[0].tolist() == [[1, 2], [0, 2], [0, 1]]


@pytest.mark.parametrize("n_validation", [1, 2, 63, 64, 65, 1000, 10**6])
@pytest.mark.parametrize("n_features", [1, 16, 784])
def test_groups_cover_the_validation_points_and_stay_small(n_validation, n_features):
    size = group_size(n_validation, n_features)
    assert 1 <= size <= min(32, n_validation)


METHODS = {
    "knn_shapley": lambda *a, **o: da.knn_shapley(*a, **o),
    "knn_shapley truncated": lambda *a, **o: da.knn_shapley(*a, tolerance=0.02, **o),
    "knn_banzhaf": lambda *a, **o: da.knn_banzhaf(*a, **o),
    "knn_loo": lambda *a, **o: da.knn_loo(*a, **o),
    "tknn_shapley": lambda *a, **o: da.tknn_shapley(*a, tau=2.0, metric="euclidean", **o),
    "self_shapley": lambda X, y, *_, **o: da.self_shapley(X, y, **o),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", METHODS)
def test_same_bits_for_any_number_of_threads_and_any_memory(name, dtype):
    rng = np.random.default_rng(7)
    X, X_val = rng.normal(size=(1500, 21)).astype(dtype), rng.normal(size=(203, 21)).astype(dtype)
    X[::7] = X[0]
    y, y_val = rng.integers(0, 4, 1500), rng.integers(0, 4, 203)
    weights = {} if name == "self_shapley" else {"weights": rng.random(203)}
    data = (X, y, X_val, y_val)
    least = 200_000  # little more than one row at a time
    reference = METHODS[name](*data, n_jobs=1, **weights).values
    for n_jobs in (1, 2, 7):
        for memory in (least, 10**6, 2**29):
            again = METHODS[name](*data, n_jobs=n_jobs, memory=memory, **weights).values
            assert again.tobytes() == reference.tobytes(), (n_jobs, memory)


@pytest.mark.parametrize("memory", [2**13, 2**14, 2**16])
def test_the_nearest_are_the_same_in_blocks_of_any_size(memory):
    rng = np.random.default_rng(8)
    X, X_val = rng.integers(0, 5, (50, 2)).astype(float), rng.integers(0, 5, (700, 2)).astype(float)
    whole, some = (da.nearest_neighbours(X, X_val, limit=3, memory=given) for given in (2**29, memory))
    for expected, found in zip(whole, some, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_memory_too_small_for_one_row_says_how_much_is_needed():
    with pytest.raises(da.InputError, match=r"memory=1000 bytes is too little.*needs \d+"):
        da.knn_shapley(np.zeros((500, 1)), np.zeros(500, int), [[0.0]], [0], memory=1000)


def test_progress_counts_every_validation_point():
    seen = []
    rng = np.random.default_rng(0)
    da.knn_shapley(
        rng.normal(size=(20, 2)), np.arange(20) % 2, rng.normal(size=(150, 2)), np.arange(150) % 2,
        progress=lambda done, total: seen.append((done, total)), n_jobs=2,
    )  # fmt: skip
    assert seen[-1] == (150, 150)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_an_error_in_a_worker_reaches_the_caller():
    space = make_space(np.zeros((4, 1)), np.zeros((300, 1)), "euclidean")

    def compute(block):
        raise RuntimeError("from the worker")

    with pytest.raises(RuntimeError, match="from the worker"):
        collect(space, NearestRanking(1), compute, Schedule(n_jobs=3))


class TestPrecomputed:
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(80, 4)), rng.integers(0, 3, 80)
    X_val, y_val = rng.normal(size=(25, 4)), rng.integers(0, 3, 25)
    matrix = cdist(X_val, X)
    square = cdist(X, X)

    def test_a_distance_matrix_gives_the_values_of_its_features(self):
        given_matrix = da.knn_shapley(None, self.y, self.matrix, self.y_val, metric="precomputed").values
        np.testing.assert_allclose(
            given_matrix, da.knn_shapley(self.X, self.y, self.X_val, self.y_val).values, atol=1e-14
        )

    def test_a_square_matrix_alone_lets_records_value_each_other(self):
        mutual = da.knn_shapley(self.square, self.y, metric="precomputed").values
        np.testing.assert_allclose(mutual, da.knn_shapley(self.X, self.y).values, atol=1e-14)

    def test_a_graph_of_all_neighbours_gives_exact_values(self):
        graph = sparse.csr_array(self.matrix)
        ours = da.knn_shapley(None, self.y, graph, self.y_val, metric="precomputed").values
        np.testing.assert_allclose(ours, da.knn_shapley(self.X, self.y, self.X_val, self.y_val).values, atol=1e-14)

    def test_a_graph_of_the_nearest_gives_truncated_values(self):
        from sklearn.neighbors import NearestNeighbors

        graph = NearestNeighbors(n_neighbors=20).fit(self.X).kneighbors_graph(self.X_val, mode="distance")
        ours = da.knn_shapley(None, self.y, graph, self.y_val, metric="precomputed", tolerance=0.05).values
        same = da.knn_shapley(self.X, self.y, self.X_val, self.y_val, tolerance=0.05).values
        np.testing.assert_allclose(ours, same, atol=1e-14)
        with pytest.raises(da.InputError, match="holds 20 neighbours in row 0, and this needs 80"):
            da.knn_shapley(None, self.y, graph, self.y_val, metric="precomputed")

    def test_a_radius_graph_gives_threshold_values(self):
        from sklearn.neighbors import NearestNeighbors

        radius = 2.0
        csr = NearestNeighbors(radius=radius).fit(self.X).radius_neighbors_graph(self.X_val, mode="distance")
        graph = NeighbourGraph.from_csr(csr, radius=radius)
        ours = da.tknn_shapley(None, self.y, graph, self.y_val, tau=radius, metric="precomputed").values
        same = da.tknn_shapley(self.X, self.y, self.X_val, self.y_val, tau=radius, metric="euclidean").values
        np.testing.assert_allclose(ours, same, atol=1e-14)
        with pytest.raises(da.InputError, match="has only neighbours within tau=2"):
            da.tknn_shapley(None, self.y, csr, self.y_val, tau=radius, metric="precomputed")

    def test_a_radius_graph_of_many_gives_threshold_values_although_they_are_looked_at_some_at_a_time(self):
        X_val, y_val = np.random.default_rng(12).normal(size=(200, 4)), np.arange(200) % 3
        distances = cdist(X_val, self.X)
        graph = NeighbourGraph.from_csr(sparse.csr_array(np.where(distances <= 2.0, distances, 0.0)), radius=2.0)
        ours = da.tknn_shapley(None, self.y, graph, y_val, tau=2.0, metric="precomputed").values
        same = da.tknn_shapley(self.X, self.y, X_val, y_val, tau=2.0, metric="euclidean").values
        np.testing.assert_allclose(ours, same, atol=1e-14)

    @pytest.mark.parametrize(
        ("indptr", "indices", "distances", "message"),
        [
            ([0, 3], [0, 1, 4_000_000_000], [1.0, 5.0, 9.0], "names record 4000000000 of 3"),
            ([0, 2], [0, 1], [5.0, 1.0], "sorted by distance"),
            ([0, 2], [1, 1], [1.0, 2.0], "row 0 of the neighbour graph has a neighbour twice"),
            ([0, 2], [1], [1.0], "do not fit together"),
        ],
    )
    def test_a_graph_made_by_hand_is_checked(self, indptr, indices, distances, message):
        with pytest.raises(da.InputError, match=message):
            NeighbourGraph(np.array(indptr), np.array(indices, np.uint32), np.array(distances), 3)

    def test_a_sparse_matrix_with_an_entry_twice_is_refused(self):
        twice = sparse.csr_array((np.array([0.5, 0.5]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
        with pytest.raises(da.InputError, match="a neighbour twice"):
            NeighbourGraph.from_csr(twice)

    def test_a_stored_zero_is_a_distance(self):
        graph = NeighbourGraph.from_csr(sparse.csr_array(([0.0, 1.0], [1, 0], [0, 2]), shape=(1, 2)))
        assert graph.indices.tolist() == [1, 0]

    @pytest.mark.parametrize(
        ("X", "X_val", "message"),
        [
            (None, None, "needs the distances"),
            (np.zeros((2, 2)), np.zeros((1, 2)), "X must be None"),
            (np.zeros((2, 3)), None, "square distance matrix"),
            (None, [[0.0, np.nan]], "row 0, column 1"),
            (None, sparse.csr_array(([np.inf], [1], [0, 1]), shape=(1, 2)), "distance inf at row 0, column 1"),
        ],
    )
    def test_bad_distances_are_refused(self, X, X_val, message):
        with pytest.raises(da.InputError, match=message):
            make_space(X, X_val, "precomputed")


@given(st.integers(0, 40), st.integers(1, 12))
def test_parts_are_even_and_none_is_empty(n, parts):
    from datassay.neighbors.records import _even

    found = _even(n, parts)
    assert [i for part in found for i in part] == list(range(n))
    assert len(found) == min(n, parts)
    assert all(abs(len(a) - len(b)) <= 1 and len(a) > 0 for a in found for b in found)
