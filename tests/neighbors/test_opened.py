"""Neighbours opened once: the same results as from separate calls, and no second search."""

import dataclasses

import numpy as np
import pytest

import datassay as da
from datassay._run import Schedule
from datassay.neighbors import FeatureSpace
from datassay.neighbors.views import NearestDistances, WithinThreshold

AMONG = {
    "knn_shapley": lambda *a, **o: da.knn_shapley(*a, k=3, **o),
    "knn_banzhaf": lambda *a, **o: da.knn_banzhaf(*a, k=3, **o),
    "knn_loo": lambda *a, **o: da.knn_loo(*a, k=3, **o),
    "waka": lambda *a, **o: da.waka(*a, k=3, variant="removal", **o),
    "tknn_shapley": lambda *a, **o: da.tknn_shapley(*a, tau=2.0, **o),
    "tune_k": lambda *a, **o: da.tune_k(*a, **o),
    "tune_tau": lambda *a, **o: da.tune_tau(*a, candidates=[1.0, 2.0], **o),
    "approximate": lambda *a, **o: da.knn_shapley(*a, tolerance=0.2, **o),
}
ALONE = {
    "self_shapley": lambda *a, **o: da.self_shapley(*a, k=3, **o),
    "self_waka": lambda *a, **o: da.self_waka(*a, k=3, **o),
    "waka_influence": lambda *a, **o: da.waka_influence(*a, removed=[1, 4], k=3, **o),
    "likely_errors": lambda *a, **o: da.likely_errors(*a, k=4, **o),
    "membership_attack": lambda *a, **o: da.membership_attack(*a, k=3, games=2, targets=20, shadows=4, **o),
    "onion": lambda *a, **o: da.onion(*a, k=3, games=2, shadows=4, **o),
}
WEIGHED = ("knn_shapley", "knn_banzhaf", "knn_loo", "waka", "tknn_shapley", "tune_k", "tune_tau", "approximate")


def plain(result):
    """Everything a result holds, bit by bit."""
    found = {}
    for field in dataclasses.fields(result):
        part = getattr(result, field.name)
        found[field.name] = (part.dtype.str, part.tobytes()) if isinstance(part, np.ndarray) else part
    return found


def same(one, other):
    return plain(one) == plain(other)


def points(seed=0, n=60, m=17):
    rng = np.random.default_rng(seed)
    X, X_val = np.round(rng.normal(size=(n + m, 3)), 1)[:n], np.round(rng.normal(size=(m, 3)), 1)
    return X, rng.choice(["a", "b", "c"], n), X_val, rng.choice(["a", "b", "c"], m)


@pytest.fixture(params=["everything", "little", "nothing"])
def memory(request):
    return {"everything": 2**20, "little": 17 * 5 * 4, "nothing": 0}[request.param]


@pytest.mark.parametrize("name", AMONG)
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_values_of_opened_neighbours_are_those_of_the_arrays(name, metric, memory):
    given = points()
    near = da.Neighbours(*given, metric=metric, memory=memory)
    da.knn_banzhaf(near, k=1)  # leaves a shorter list than others need
    for threads in (1, 3):
        assert same(AMONG[name](near, n_jobs=threads), AMONG[name](*given, metric=metric))


@pytest.mark.parametrize("name", [*AMONG, *ALONE])
def test_values_of_records_among_themselves_are_the_same(name, memory):
    X, y = points()[:2]
    near = da.Neighbours(X, y, ids=np.arange(60) + 7, memory=memory)
    call = {**AMONG, **ALONE}[name]
    given = {} if name.startswith("tune") else {"ids": np.arange(60) + 7}
    again = call(X, y, **({"X_val": None, "metric": "euclidean"} if name in AMONG else {}), **given)
    da.knn_loo(near, k=2)
    for _ in range(2):
        assert same(call(near), again)


@pytest.mark.parametrize("name", AMONG)
def test_tables_keep_their_encoding_ids_and_notes(name):
    train, validation = da.census(150).split(0.8, 0.2)
    near = da.Neighbours(train, validation, metric="manhattan")
    assert same(AMONG[name](near), AMONG[name](train, X_val=validation, metric="manhattan"))
    assert same(AMONG[name](near), AMONG[name](da.Neighbours(train, X_val=validation, metric="manhattan")))


@pytest.mark.parametrize("name", WEIGHED)
def test_each_call_may_weigh_validation_points_in_its_own_way(name):
    given = points()
    near = da.Neighbours(*given, metric="cosine")
    for weights in (None, "balanced", np.arange(17.0)):
        assert same(AMONG[name](near, weights=weights), AMONG[name](*given, metric="cosine", weights=weights))


@pytest.mark.parametrize("name", ["knn_shapley", "waka", "tknn_shapley", "tune_k"])
def test_distances_and_graphs_can_be_opened(name):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(3)
    y, y_val, far = rng.integers(0, 2, 40), rng.integers(0, 2, 9), rng.random((9, 40)) + 0.1
    for given in (far, csr_array(far)):
        near = da.Neighbours(None, y, given, y_val, metric="precomputed")
        assert same(AMONG[name](near), AMONG[name](None, y, given, y_val, metric="precomputed"))


def test_curves_share_one_ranking():
    train, test = da.census(120).split(0.7, 0.3)
    values = da.self_waka(train)
    near = da.Neighbours(train, test)
    for curve in (da.removal_curve, da.addition_curve):
        one = curve(values, near, fractions=[0.2, 0.5])
        other = curve(values, train, X_test=test, fractions=[0.2, 0.5])
        assert repr(plain(one)) == repr(plain(other))


def test_records_in_files_can_be_opened(tmp_path):
    import polars

    X, y, X_val, y_val = points()
    frame = polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": y})
    frame.write_parquet(tmp_path / "train.parquet")
    records = da.open_records(tmp_path / "train.parquet", label="label")
    near = da.Neighbours(records, None, X_val, y_val)
    assert same(da.knn_banzhaf(near, k=3), da.knn_banzhaf(records, None, X_val, y_val, k=3))
    for view in (NearestDistances(2), WithinThreshold(1.0)):
        with pytest.raises(da.UsageError, match="in memory"):
            near.accumulate(view, lambda block, total: None, Schedule())


@pytest.fixture
def filled(monkeypatch):
    """Rows of distances computed so far."""
    rows, fill = [], FeatureSpace.fill

    def counted(self, start, out):
        rows.append(len(out))
        fill(self, start, out)

    monkeypatch.setattr(FeatureSpace, "fill", counted)
    return rows


def test_what_was_found_is_not_searched_again(filled):
    X, y = points()[:2]
    near = da.Neighbours(X, y)
    da.knn_shapley(near)
    assert sum(filled) == 60
    for call in (da.knn_banzhaf, da.knn_loo, da.waka, da.self_waka, da.self_shapley, da.likely_errors, da.tune_k):
        call(near)
    assert sum(filled) == 60


def test_a_longer_list_is_searched_for_once(filled):
    given = points()
    near = da.Neighbours(*given)
    for k, rows in ((2, 17), (2, 17), (5, 34), (3, 34), (4, 34)):
        da.knn_loo(near, k=k)
        assert sum(filled) == rows


@pytest.mark.parametrize(("memory", "rows"), [(17 * 60, (17, 17, 34)), (17 * 60 - 1, (17, 34, 51))])
def test_who_is_within_a_threshold_is_searched_for_once_if_it_can_be_kept(memory, rows, filled):
    near = da.Neighbours(*points(), memory=memory)
    for tau, found in zip((2.0, 2.0, 1.0), rows, strict=True):
        da.tknn_shapley(near, tau=tau)
        assert sum(filled) == found


def test_a_ranking_that_just_fits_is_kept_whoever_finds_it(filled):
    from joblib import parallel_config, register_parallel_backend
    from joblib._parallel_backends import ThreadingBackend

    register_parallel_backend("others", type("Others", (ThreadingBackend,), {}))
    given = points()
    near = da.Neighbours(*given, memory=17 * 4 * 60)
    with parallel_config(backend="others", n_jobs=2):
        first, again = da.knn_shapley(near), da.knn_shapley(near)
    assert sum(filled) == 17
    assert same(first, again)
    assert same(first, da.knn_shapley(*given))


def test_of_a_ranking_that_does_not_fit_the_nearest_are_kept(filled):
    near = da.Neighbours(*points(), memory=17 * 4 * 10)
    da.knn_shapley(near)
    assert sum(filled) == 17
    da.knn_loo(near, k=9)
    assert sum(filled) == 17
    da.knn_loo(near, k=10)
    assert sum(filled) == 34


@pytest.mark.parametrize(
    ("name", "given"),
    [("y", {"y": [1]}), ("X_val", {"X_val": [[1.0]]}), ("y_val", {"y_val": [1]}), ("ids", {"ids": [1]}),
     ("metric", {"metric": "euclidean"}), ("device", {"device": "cpu"})],
)  # fmt: skip
def test_what_is_known_already_must_not_be_given_again(name, given):
    near = da.Neighbours(*points())
    with pytest.raises(da.UsageError, match=rf"^{name} is known already, as X is Neighbours"):
        da.knn_shapley(near, **given)


def test_a_threshold_that_no_distance_is_below_is_refused():
    with pytest.raises(da.UsageError, match=r"tau=-0\.5 is below 0, and no distance is"):
        da.tknn_shapley(da.Neighbours(*points()))
    assert da.tknn_shapley(da.Neighbours(*points(), metric="cosine")).values.any()


def test_a_test_set_comes_with_the_neighbours_of_a_curve():
    X, y, X_val, y_val = points()
    with pytest.raises(da.UsageError, match=r"^X_test: neighbours have a test set if they are opened with it"):
        da.removal_curve(y, da.Neighbours(X, y, X_val, y_val), X_test=X_val, y_test=y_val)


def test_what_takes_no_neighbours_says_so():
    X, y, X_val, y_val = points()
    near = da.Neighbours(X, y, X_val, y_val)
    with pytest.raises(da.UsageError, match="no Neighbours are taken here"):
        da.nearest_neighbours(near, X_val, limit=3)
    with pytest.raises(da.UsageError, match="no Neighbours are taken here"):
        da.data_oob(da.StableLogisticRegression(), near, y)


def test_methods_about_the_records_themselves_refuse_validation_data():
    with pytest.raises(da.UsageError, match="without validation"):
        da.self_waka(da.Neighbours(*points()))


def test_private_values_want_what_is_encoded_by_public_records(monkeypatch):
    monkeypatch.setattr("datassay.privacy.releases.add_noise", lambda counts, *noise: counts)
    train, validation = da.census(200).split(0.8, 0.2)
    with pytest.raises(da.UsageError, match='fitted_on="validation"'):
        da.private_tknn_shapley(da.Neighbours(train, validation, metric="cosine"))
    near = da.Neighbours(train, validation, metric="cosine", fitted_on="validation")
    one, other = (da.private_tknn_shapley(*given, epsilon=1.0) for given in ((near,), (train, None, validation)))
    assert one.parameters == other.parameters
    assert one.guarantee == other.guarantee
    assert np.array_equal(one.values, other.values)


def test_counts_for_many_releases_are_made_once_and_noise_is_drawn_for_each(filled):
    train, validation = da.census(200).split(0.8, 0.2)
    near = da.Neighbours(train, validation, metric="cosine", fitted_on="validation")
    drawn = [da.private_tknn_shapley(near, epsilon=epsilon).statistics.counts for epsilon in (1.0, 1.0, 2.0)]
    assert sum(filled) == len(validation)
    assert not np.array_equal(drawn[0], drawn[1])


def test_the_ledger_is_asked_for_each_release(tmp_path):
    train, validation = da.census(200).split(0.8, 0.2)
    near = da.Neighbours(train, validation, metric="cosine", fitted_on="validation")
    ledger = da.Ledger(tmp_path / "ledger", epsilon=1.2, delta=1e-4)
    da.private_tknn_shapley(near, epsilon=1.0, ledger=ledger)
    with pytest.raises(da.BudgetExceededError):
        da.private_tknn_shapley(near, epsilon=1.1, ledger=ledger)


def test_a_checkpoint_is_that_of_the_data_however_they_are_given(tmp_path):
    given = points()
    first = da.knn_shapley(da.Neighbours(*given), checkpoint=tmp_path / "kept")
    assert same(first, da.knn_shapley(*given, checkpoint=tmp_path / "kept"))


def test_a_device_is_chosen_when_neighbours_are_opened():
    pytest.importorskip("torch")
    given = points()
    near = da.Neighbours(*given, device="cpu")
    assert same(da.knn_shapley(near), da.knn_shapley(*given, device="cpu"))
    with pytest.raises(da.UsageError, match="without device"):
        da.tune_k(near)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "precomputed"])
def test_an_attack_finds_kept_neighbours_as_it_would_search_for_them(metric, filled):
    rng = np.random.default_rng(1)
    X, y = np.repeat(rng.integers(1, 4, (30, 2)).astype(float), 2, axis=0), rng.integers(0, 2, 60)
    X = rng.random((60, 60)).round(1) if metric == "precomputed" else X * rng.choice([1.0, 3.0], 60)[:, None]
    near = da.Neighbours(X, y, metric=metric)
    da.knn_shapley(near)
    rows = sum(filled)
    for method in ("lira", "t-waka", "confidence"):
        how = {"method": method, "k": 2, "games": 4, "targets": 30, "shadows": 4}
        found = da.membership_attack(near, **how)
        assert sum(filled) == rows
        assert same(found, da.membership_attack(X, y, metric=metric, **how))
        rows = sum(filled)


def test_so_many_of_the_nearest_are_found_at_once_if_that_is_asked_for(filled):
    near = da.Neighbours(*points()[:2]).keep(20)
    da.likely_errors(near, values=da.knn_shapley(near), k=4)
    da.knn_loo(near, k=19)
    assert sum(filled) == 60
