"""Values on a device are those of the compiled kernels, and the same bits whatever the blocks. CUDA too, where there is a card."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LogisticRegression

import datassay as da
from datassay import oracle
from datassay._errors import InputError, UnavailableError, UsageError
from datassay._run import Schedule
from datassay.cli import main
from datassay.neighbors import FullRanking, kernels, make_space
from datassay.neighbors.device import distances as distances_there
from datassay.neighbors.device import memory as memory_there
from datassay.neighbors.device import passes as passes_there
from datassay.neighbors.device import space as space_there
from datassay.neighbors.device import sums as sums_there

torch = pytest.importorskip("torch")

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
pytestmark = pytest.mark.parametrize("device", DEVICES)
CLOSE = {"rtol": 0, "atol": 1e-13}  # far below the 1e-9 that is promised


def awkward(n=500, m=40, d=5, dtype=np.float64, seed=0):
    """Points on a grid, so that many are equally far, with duplicates; a class that only one side has."""
    rng = np.random.default_rng(seed)
    X, V = rng.integers(0, 4, (n, d)).astype(dtype) + dtype(0.5), rng.integers(0, 4, (m, d)).astype(dtype) + dtype(0.25)
    X[::7] += rng.random()
    X[::9] = X[0]
    return X, rng.integers(0, 3, n), V, rng.integers(0, 4, m)


METHODS = {
    "knn_shapley": lambda X, y, V, w, **o: da.knn_shapley(X, y, V, w, k=7, **o),
    "knn_shapley, weights": lambda X, y, V, w, **o: da.knn_shapley(X, y, V, w, weights=np.arange(1.0, len(V) + 1), **o),
    "knn_shapley, fraction, k > N": lambda X, y, V, w, **o: da.knn_shapley(X, y, V, w, k=5000, utility="fraction", **o),
    "knn_shapley, soft, k > N": lambda X, y, V, w, **o: da.knn_shapley(X, y, V, w, k=5000, **o),
    "knn_shapley, each other": lambda X, y, V, w, **o: da.knn_shapley(X, y, metric="cosine", **o),
    "knn_shapley, truncated": lambda X, y, V, w, **o: da.knn_shapley(X, y, V, w, tolerance=0.03, **o),
    "knn_shapley, distances": lambda X, y, V, w, **o: da.knn_shapley(
        None, y, X[: len(V), :1] @ X.T[:1] - 3, w, metric="precomputed", **o
    ),
    "knn_banzhaf": lambda X, y, V, w, **o: da.knn_banzhaf(X, y, V, w, k=3, metric="manhattan", **o),
    "knn_banzhaf, each other": lambda X, y, V, w, **o: da.knn_banzhaf(X, y, k=3, **o),
    "knn_loo": lambda X, y, V, w, **o: da.knn_loo(X, y, V, w, weights="balanced", **o),
    "tknn_shapley": lambda X, y, V, w, **o: da.tknn_shapley(X, y, V, w, tau=-0.8, **o),
    "tknn_shapley, each other": lambda X, y, V, w, **o: da.tknn_shapley(X, y, tau=2.0, metric="euclidean", **o),
    "self_shapley": lambda X, y, V, w, **o: da.self_shapley(X, y, **o),
    "self_shapley, truncated": lambda X, y, V, w, **o: da.self_shapley(X, y, tolerance=0.03, **o),
    "waka": lambda X, y, V, w, **o: da.waka(X, y, V, w, k=4, **o),
    "waka, removal": lambda X, y, V, w, **o: da.waka(X, y, V, w, k=4, variant="removal", **o),
    "waka, addition": lambda X, y, V, w, **o: da.waka(X, y, V, w, k=5, variant="addition", tau=0.3, **o),
    "self_waka": lambda X, y, V, w, **o: da.self_waka(X, y, metric="manhattan", **o),
    "self_waka, k > N": lambda X, y, V, w, **o: da.self_waka(X, y, k=5000, **o),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", METHODS)
def test_values_are_those_of_the_compiled_kernels(name, dtype, device):
    given = awkward(dtype=dtype)
    there, here = METHODS[name](*given, device=device), METHODS[name](*given)
    np.testing.assert_allclose(there.values, here.values, **CLOSE)
    assert there.ids.tolist() == here.ids.tolist()
    assert there.notes == here.notes
    assert dict(there.parameters) == dict(here.parameters) | {"device": device}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card, for which they are compiled")
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not there")
def test_what_is_compiled_for_a_card_finds_the_bits_of_torch_when_it_is_interpreted(device):
    program = Path(__file__).with_name("interpreted.py")
    run = subprocess.run(
        [sys.executable, program],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert {f"{name}, float32" for name in METHODS} | {"knn_shapley, float64", "tknn_shapley, float64"} < told.keys()
    for name, found in told.items():
        assert found["off"] <= CLOSE["atol"], name
        assert found["same"], name
        if "distances" not in name:  # they are given
            assert "distances" in found["called"], name
        if name.startswith("knn_shapley"):
            assert "add_shapley" in found["called"], name
        if name.startswith("tknn_shapley"):
            assert {"count_within", "sum_within"} <= set(found["called"]), name


@pytest.mark.parametrize("name", METHODS)
def test_bits_are_the_same_in_small_blocks_and_when_features_pass_by(name, device, monkeypatch):
    X, y, V, w = awkward(dtype=np.float32)
    given = np.repeat(X, 16, axis=1), y, np.repeat(V, 16, axis=1), w
    whole = METHODS[name](*given, device=device).values
    small = METHODS[name](*given, device=device, memory=450_000).values  # a few rows at a time
    monkeypatch.setattr(passes_there, "FIRST", 16)
    monkeypatch.setattr(passes_there, "BLOCK", 16 * passes_there.MOST_ROWS)
    pieces = METHODS[name](*given, device=device, memory=200_000).values
    assert not space_there.device_space(given[0], None, "euclidean", space_there.device_of(device), 200_000).resident
    assert small.tobytes() == whole.tobytes()
    assert pieces.tobytes() == whole.tobytes()


def test_features_that_do_not_fit_stay_where_they_are_those_that_are_looked_from_too(device):
    X, y, V, _ = awkward(dtype=np.float32)
    on = space_there.device_of(device)
    for queries, memory in ((None, 15_000), (V, 15_000), (np.repeat(V, 30, 0), 30_000)):
        space = space_there.device_space(X, queries, "euclidean", on, memory)
        assert not space.resident
        assert space.points.device.type == space.queries.device.type == "cpu"
        few, everybody = space.seen_from(np.array([7, 3])), replace(space, excludes_self=False)
        assert few.between(0, 2, 0, 500).equal(everybody.between(0, 8, 0, 500)[[7, 3]])
    wide = np.repeat(X, 16, axis=1)
    here = da.membership_attack(wide, y, games=2, device=device)
    assert (
        da.membership_attack(wide, y, games=2, device=device, memory=200_000).values.tobytes() == here.values.tobytes()
    )


def test_features_that_are_looked_from_pass_by_within_the_memory_that_was_asked_for(device, monkeypatch):
    rng, memory = np.random.default_rng(0), 300_000
    X, V = rng.normal(size=(30, 2000)).astype(np.float32), rng.normal(size=(200, 2000)).astype(np.float32)
    y, w, moved, turned = rng.integers(0, 2, 30), rng.integers(0, 2, 200), [], space_there.turned

    def watched(points, where):
        moved.append(points.nelement() * points.element_size())
        return turned(points, where)

    monkeypatch.setattr(space_there, "turned", watched)
    for method in (da.knn_shapley, da.knn_banzhaf, da.tknn_shapley):
        there = method(X, y, V, w, device=device, memory=memory)
        assert max(moved) <= memory / 2
        np.testing.assert_allclose(there.values, method(X, y, V, w).values, **CLOSE)


@pytest.mark.parametrize("variant", ["signed", "removal", "addition"])
def test_waka_of_many_ranks(variant, device):
    given = awkward(n=3000, m=6, dtype=np.float32)
    there, here = (da.waka(*given, k=500, variant=variant, **on) for on in ({"device": device}, {}))
    np.testing.assert_allclose(there.values, here.values, **CLOSE)
    assert np.abs(here.values).max() > 1e-6


@pytest.mark.parametrize("name", METHODS)
def test_every_run_says_the_same_to_the_last_bit_and_a_card_what_the_processor_says(name, device):
    given = awkward(n=500 if device == "cpu" else 5000, dtype=np.float32)
    assert METHODS[name](*given, device=device).values.tobytes() == METHODS[name](*given, device="cpu").values.tobytes()


@settings(max_examples=30)
@given(data=st.data(), n=st.integers(1, 6), k=st.integers(1, 8))
def test_values_are_those_of_the_definition(data, n, k, device):
    """By enumeration: k ≥ N, ties, duplicates, absent classes, one record, one class."""
    X = data.draw(arrays(np.float64, (n, 1), elements=st.sampled_from([0.0, 1.0, 2.5])))
    y = data.draw(arrays(np.int64, n, elements=st.integers(0, 2)))
    query, label = data.draw(st.sampled_from([0.0, 0.4, 3.0])), data.draw(st.integers(0, 2))
    far, match = np.abs(X[:, 0] - query).tolist(), (y == label).tolist()
    asked = (X, y, [[query]], [label])
    here = {"k": k, "device": device}
    expected = {
        "soft": oracle.shapley(n, oracle.soft_utility(far, match, k, 3)),
        "fraction": oracle.shapley(n, oracle.fraction_utility(far, match, k)),
        "banzhaf": oracle.banzhaf(n, oracle.fraction_utility(far, match, k)),
        "loo": oracle.leave_one_out(n, oracle.fraction_utility(far, match, k)),
        "tknn": oracle.shapley(n, oracle.threshold_utility(far, match, 1.0, 3)),
        "waka": [oracle.waka(far, match, i, k, "signed") for i in range(n)],
        "removal": [oracle.waka(far, match, i, k, "removal") for i in range(n)],
    }
    found = {
        "soft": da.knn_shapley(*asked, n_classes=3, **here),
        "fraction": da.knn_shapley(*asked, utility="fraction", n_classes=3, **here),
        "banzhaf": da.knn_banzhaf(*asked, **here),
        "loo": da.knn_loo(*asked, utility="fraction", n_classes=3, **here),
        "tknn": da.tknn_shapley(*asked, tau=1.0, metric="euclidean", n_classes=3, device=device),
        "waka": da.waka(*asked, **here),
        "removal": da.waka(*asked, variant="removal", **here),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found[name].values, np.array(values, float), err_msg=name, **CLOSE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@settings(max_examples=25)
@given(data=st.data())
def test_distances_have_the_bits_of_the_compiled_kernel(metric, dtype, device, data):
    d, rng = data.draw(st.integers(1, 9)), np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scale = dtype(10.0) ** data.draw(st.integers(-6, 6))
    X, V = (rng.normal(size=(40, d)) * scale).astype(dtype), (rng.normal(size=(9, d)) * scale).astype(dtype)
    space = make_space(X, V, metric)
    filled = np.empty((9, 40), dtype)
    space.fill(0, filled)
    on = space_there.device_space(X, V, metric, space_there.device_of(device))
    assert space_there.in_memory(on.between(0, 9, 0, 40)).tobytes() == filled.tobytes()
    kind = {"euclidean": kernels.EUCLIDEAN, "manhattan": kernels.MANHATTAN, "cosine": kernels.COSINE}[metric]
    assert on.metric == kind


@pytest.mark.parametrize("limit", [1, 30, 250, 499, 900])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_the_nearest_are_the_same_and_as_far(metric, limit, device, monkeypatch):
    monkeypatch.setattr(passes_there, "FIRST", 8)
    monkeypatch.setattr(passes_there, "BLOCK", 64 * passes_there.MOST_ROWS)
    X, _, V, _ = awkward()
    for points in ((X, V), (X, None), (np.sort(X, axis=0)[::-1], np.zeros((3, 5)) + 0.1)):
        here = da.nearest_neighbours(*points, limit=limit, metric=metric)
        there = da.nearest_neighbours(*points, limit=limit, metric=metric, device=device)
        assert there[0].tobytes() == here[0].tobytes()
        assert there[1].tobytes() == here[1].tobytes()


@pytest.mark.parametrize("method", ["lira", "t-waka", "confidence"])
def test_membership_games_end_the_same(method, device):
    X, y, _, _ = awkward()
    here = da.membership_attack(X, y, method=method, games=4)
    there = da.membership_attack(X, y, method=method, games=4, device=device)
    assert there.values.tobytes() == here.values.tobytes()
    rng = np.random.default_rng(1)
    copies = {"held": X + rng.normal(size=X.shape)} if method == "lira" else {}
    here = da.membership_attack(X, y, method=method, games=2, **copies)
    assert (
        da.membership_attack(X, y, method=method, games=2, device=device, **copies).values.tobytes()
        == here.values.tobytes()
    )
    assert there.parameters["device"] == device


def test_tensors_are_as_good_as_arrays(device):
    X, y, V, w = awkward(dtype=np.float32)
    tensors = [torch.from_numpy(one.copy()).to(device) for one in (X, y, V, w)]
    here = da.knn_shapley(X, y, V, w)
    there = da.knn_shapley(*tensors)
    np.testing.assert_allclose(there.values, here.values, **CLOSE)
    assert dict(there.parameters).get("device") == (None if device == "cpu" else device)
    assert there.labels.tolist() == here.labels.tolist()
    np.testing.assert_allclose(da.tknn_shapley(*tensors).values, da.tknn_shapley(X, y, V, w).values, **CLOSE)
    for other in (torch.int64, torch.bool, torch.float16):
        seen, looked = tensors[0].to(other), tensors[2].to(other)
        expected = da.knn_shapley(seen.cpu().numpy(), y, looked.cpu().numpy(), w).values
        np.testing.assert_allclose(da.knn_shapley(seen, y, looked, w, device=device).values, expected, **CLOSE)
    wide = [one.to(torch.bfloat16) for one in (tensors[0], tensors[2])]  # NumPy has no such numbers
    expected = da.knn_shapley(wide[0].cpu().double().numpy(), y, wide[1].cpu().double().numpy(), w)
    for on in ({}, {"device": device}):
        np.testing.assert_allclose(da.knn_shapley(wide[0], y, wide[1], w, **on).values, expected.values, **CLOSE)
    counted = torch.ones(len(w), device=device, requires_grad=True)
    np.testing.assert_allclose(da.knn_shapley(*tensors, weights=counted).values, here.values, **CLOSE)
    # What knows nothing of devices takes tensors into memory.
    assert da.tune_k(*tensors, candidates=[1, 3]).best == da.tune_k(X, y, V, w, candidates=[1, 3]).best


def test_tensors_that_numpy_does_not_know_are_turned_into_what_it_does_or_refused(device):
    X, y, V, w = awkward()
    here, points = da.knn_shapley(X, y, V, w), torch.from_numpy(X).to(device)
    negated = torch.imag(torch.complex(torch.zeros_like(points), -points).conj())
    assert negated.is_neg()
    short = points.float().to(torch.float8_e5m2)
    shorter = da.knn_shapley(short.double().cpu().numpy(), y, V, w)
    for on in ({}, {"device": device}):
        np.testing.assert_allclose(da.knn_shapley(negated, y, V, w, **on).values, here.values, **CLOSE)
        np.testing.assert_allclose(da.knn_shapley(short, y, V, w, **on).values, shorter.values, **CLOSE)
        with pytest.raises(InputError, match=r"sparse tensor.*to_dense\(\)"):
            da.knn_shapley(points.to_sparse(), y, V, w, **on)
        with pytest.raises(InputError, match=r"sparse tensor.*to_dense\(\)"):
            da.knn_loo(None, y[:40], points[:40].T.to_sparse(), w[:5], metric="precomputed", **on)


class OnACard(torch.Tensor):
    """A tensor that says it is on a card: what is done with those is done here, and NumPy does not get at it."""

    device = torch.device("cuda", 0)

    def numpy(self, *_):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    __array__ = numpy

    def cpu(self):
        return self.as_subclass(torch.Tensor)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tensors_on_a_card_are_brought_to_unit_length_and_stay_as_they_were_given(dtype, device):
    X, _, V, _ = awkward(dtype=dtype)
    large = dtype(2.0 ** (np.finfo(dtype).maxexp // 4 * 3))  # its square is more than can be written down
    for points, queries in (
        (X, V), (X[:, :1], V[:, :1]), (np.asfortranarray(X), V), (X[:1], np.asfortranarray(V)), (X * large, V / large),
    ):  # fmt: skip
        given = [torch.from_numpy(one.copy(order="K")).as_subclass(OnACard) for one in (points, queries)]
        before = [one.clone() for one in given]
        space = space_there.device_space(*given, "cosine", torch.device("cpu"))
        assert all(one.equal(other) for one, other in zip(given, before, strict=True))
        filled = np.empty((space.n_validation, space.n_train), dtype)
        make_space(points, queries, "cosine").fill(0, filled)
        found = space_there.in_memory(space.between(0, len(queries), 0, len(points)))
        np.testing.assert_allclose(found, filled, rtol=0, atol=8 * np.finfo(dtype).eps)  # roots


def test_tensors_without_data_are_refused_whatever_the_device(device):
    X, y, V, w = awkward()
    nothing = torch.empty(X.shape, device="meta")
    for method in (da.knn_shapley, da.waka, da.private_tknn_shapley):
        with pytest.raises(InputError, match="without data|device must be"):
            method(nothing, y, V, w)
    for asked in ((nothing, y, V, w), (X, y, nothing, y), (X, nothing[:, 0], V, w)):
        with pytest.raises(InputError, match="a tensor without data was given"):
            da.knn_shapley(*asked, device=device)


@pytest.mark.parametrize(
    "method",
    [
        lambda *given: da.private_knn_shapley(*given, epsilon=1.0, delta=1e-5),
        lambda *given: da.private_tknn_shapley(*given, epsilon=1.0, delta=1e-5),
        lambda *given: da.value_score_attack(*given, members=50, shadow=100, shadow_sets=2),
        lambda *given: da.waka_influence(*given[:2], [1]),
    ],
)
def test_what_knows_nothing_of_devices_takes_tensors_from_wherever_they_are(method, device):
    X, y, V, w = awkward(dtype=np.float32)
    there = [torch.from_numpy(one).as_subclass(OnACard) for one in (X, y, V, w)]
    followed = [torch.from_numpy(one.copy()).requires_grad_(one.dtype == np.float32) for one in (X, y, V, w)]
    short = [torch.from_numpy(X).bfloat16(), y, torch.from_numpy(V).bfloat16(), w]
    shape = method(X, y, V, w).values.shape
    assert all(method(*given).values.shape == shape for given in (there, followed, short))


def test_one_row_or_column_turned_round_is_as_good_as_any(device):
    X, y, V, w = awkward()
    for asked in ((X, y, V[:1][::-1], w[:1]), (X[:1][::-1], y[:1], V, w), (X[:, :1][:, ::-1], y, V[:, :1], w)):
        here, there = da.knn_shapley(*asked), da.knn_shapley(*asked, device=device)
        np.testing.assert_allclose(there.values, here.values, **CLOSE)
    far = np.abs(X[:, :1].T)[::-1]
    here = da.knn_loo(None, y, far, w[:1], metric="precomputed")
    there = da.knn_loo(None, y, far, w[:1], metric="precomputed", device=device)
    np.testing.assert_allclose(there.values, here.values, **CLOSE)


def test_sums_hold_what_thousands_of_points_say_alike_and_round_to_the_nearest(device):
    m = 5000
    V, w = np.zeros((m, 1)), np.zeros(m, int)
    assert da.knn_banzhaf([[0.0]], [0], V, w, k=1, device=device).values.tolist() == [1.0]
    assert da.knn_shapley([[0.0]], [0], V, w, k=1, utility="fraction", device=device).values.tolist() == [1.0]
    alone = da.knn_loo([[0.0], [1.0]], [1, 0], V, w, k=1, utility="fraction", device=device)
    assert alone.values.tolist() == [-1.0, 0.0]  # without it, the one that is right would be asked
    numbers = np.append(np.random.default_rng(0).uniform(-1, 1, (1000, 2)).prod(1), [-1.0, 0.0, 1.0])
    for bits, most in ((sums_there.ALONG, Fraction(1, 2**60)), (sums_there.OVER, Fraction(1, 2**53))):
        wholes = space_there.in_memory(sums_there.whole(torch.from_numpy(numbers).to(device), bits)).tolist()
        off = [abs(Fraction(one, 2**bits) - Fraction(number)) for one, number in zip(wholes, numbers, strict=True)]
        assert max(off) <= most


def test_values_that_all_cancel_out_are_said_to_wherever_they_are_found(device):
    m = 300  # each class of three is right for a third of the points, which see everybody
    X, y, V, w = np.zeros((30, 1)), np.arange(30) % 3, np.zeros((m, 1)), np.arange(m) % 3
    for weights in (None, np.full(m, 0.7)):
        asked = {"tau": 1.0, "metric": "euclidean", "weights": weights}
        here, there = da.tknn_shapley(X, y, V, w, **asked), da.tknn_shapley(X, y, V, w, device=device, **asked)
        assert np.abs(there.values).max() < 1e-15
        assert here.notes == there.notes
        assert "cancel out" in here.notes[0]


@pytest.mark.parametrize("tau", [0.1, float(np.float32(0.1)), 0.3, float(np.float32(0.3)), -0.1, 1e300, -1e300])
def test_who_is_exactly_at_the_threshold_is_within_it_and_who_is_rounded_to_it_is_not(tau, device):
    """As numbers of float32, 0.1 and 0.3 are a little more than in float64, and −0.1 is a little less."""
    far, y = np.array([[0.1, 0.3, -0.1, 0.0]], np.float32), [0, 1, 2, 3]
    values = da.tknn_shapley(None, y, far, [4], tau=tau, metric="precomputed", device=device).values
    assert (values < 0).tolist() == (far[0].astype(np.float64) <= tau).tolist()
    X, origin = np.abs(far.T), np.zeros((1, 1), np.float32)
    values = da.tknn_shapley(X, y, origin, [4], tau=tau, metric="manhattan", device=device).values
    assert (values < 0).tolist() == (X[:, 0].astype(np.float64) <= tau).tolist()


def test_tables_and_words_go_there_too(device):
    train, validation = da.census(300, seed=4).split(0.7)
    here, there = da.knn_shapley(train, X_val=validation), da.knn_shapley(train, X_val=validation, device=device)
    np.testing.assert_allclose(there.values, here.values, **CLOSE)
    assert there.ids.tolist() == here.ids.tolist()


def test_where_memory_runs_out_blocks_become_smaller_and_nothing_is_lost(device, monkeypatch):
    given, fits = awkward(), passes_there.DeviceBlocks._block
    whole, tried = METHODS["knn_shapley"](*given, device=device).values, []

    def block(self, start, rows):
        tried.append(rows)
        if rows > 3:
            raise torch.OutOfMemoryError("tried to allocate 7 TiB")
        return fits(self, start, rows)

    monkeypatch.setattr(passes_there.DeviceBlocks, "_block", block)
    assert METHODS["knn_shapley"](*given, device=device).values.tobytes() == whole.tobytes()
    assert tried[0] == 40
    assert max(tried[5:]) <= 3  # smaller once and for all
    assert METHODS["self_waka"](*given, device=device).values.shape == (500,)


def test_a_formula_that_needs_more_memory_than_is_left_is_run_again_and_adds_nothing_twice(device, monkeypatch):
    given, add = awkward(), sums_there.Total.add_at
    whole = METHODS["knn_banzhaf"](*given, device=device).values

    def add_at(self, order, numbers):
        if len(order) > 5:
            raise torch.OutOfMemoryError("tried to allocate 7 TiB")
        add(self, order, numbers)

    monkeypatch.setattr(sums_there.Total, "add_at", add_at)
    assert METHODS["knn_banzhaf"](*given, device=device).values.tobytes() == whole.tobytes()


def test_memory_that_is_too_little_is_refused_and_memory_that_was_asked_for_is_kept_to(device):
    given = awkward()
    for name in ("knn_shapley", "knn_banzhaf", "tknn_shapley", "self_waka"):
        with pytest.raises(UnavailableError, match=r"memory=5000 bytes is too little for one validation point") as said:
            METHODS[name](*given, device=device, memory=5000)
        METHODS[name](*given, device=device, memory=int(str(said.value).split("allow ")[1].split()[0]))
    few = passes_there.DeviceBlocks(
        space_there.device_space(*given[::2], "euclidean", space_there.device_of(device)), FullRanking(), 2**18
    )
    assert few.rows * 500 * (3 * 8 + 56) <= 2**18
    # The default is no limit that somebody asked for; the same number, asked for, is.
    assert Schedule().device_memory is None
    assert Schedule(memory=512 * 2**20).device_memory == 2**29


def test_more_memory_is_never_too_little_where_less_was_enough(device):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 12)).astype(np.float32), rng.integers(0, 2, 20_000)
    asked, features = (X, y, X[:20], y[:20]), X.nbytes
    here = da.knn_loo(*asked).values
    # Where features stay where they are, and where they just fit: then there is less left for blocks.
    for memory in (1.8 * features, 2.05 * features, 3 * features):
        there = da.knn_loo(*asked, device=device, memory=int(memory)).values
        np.testing.assert_allclose(there, here, **CLOSE)


def test_memory_of_this_machine_that_runs_out_is_told_like_a_cards(device, monkeypatch):
    def block(self, start, rows):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried")

    monkeypatch.setattr(passes_there.DeviceBlocks, "_block", block)
    with pytest.raises(UnavailableError, match="too little for one validation point"):
        da.knn_shapley(*awkward(), device=device)
    monkeypatch.setattr(passes_there.DeviceBlocks, "_block", lambda *_: torch.zeros(2) @ torch.zeros(3))
    with pytest.raises(RuntimeError, match="size"):  # what is wrong for another reason is not hidden
        da.knn_shapley(*awkward(), device=device)


@pytest.mark.parametrize("told", ["CUDA error: out of memory", "Triton Error [CUDA]: out of memory"])
def test_memory_that_runs_out_elsewhere_than_in_torchs_allocator_is_told_alike(told, device, monkeypatch):
    given, fits = awkward(), passes_there.DeviceBlocks._block
    whole = METHODS["knn_shapley"](*given, device=device).values

    def block(self, start, rows):
        if rows > 3:
            raise RuntimeError(told)
        return fits(self, start, rows)

    monkeypatch.setattr(passes_there.DeviceBlocks, "_block", block)
    assert METHODS["knn_shapley"](*given, device=device).values.tobytes() == whole.tobytes()

    def full(_):
        raise RuntimeError(told)

    monkeypatch.setattr(torch.cuda, "mem_get_info", full)
    with pytest.raises(UnavailableError, match="the memory of cuda:0 is too little for anything at all"):
        memory_there.allowed_bytes(torch.device("cuda", 0), None)


def test_a_card_that_is_full_is_no_reason_to_do_without_triton_ever_after(device, monkeypatch):
    def says(what):
        def try_out(_):
            raise RuntimeError(what)

        monkeypatch.setitem(sys.modules, "datassay.neighbors.device.triton_kernels", SimpleNamespace(try_out=try_out))
        monkeypatch.delattr("datassay.neighbors.device.triton_kernels", raising=False)
        return distances_there.compiled.__wrapped__(torch.device("cuda", 0))

    with pytest.raises(RuntimeError, match="out of memory"):
        says("Triton Error [CUDA]: out of memory")
    with pytest.warns(
        UserWarning, match=r"Triton cannot be used \(no kernel image\); torch does the same, more slowly"
    ):
        assert not says("no kernel image")


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ((sums_there.Total, "__init__"), "one sum for each of 500 records"),
        ((sums_there.Total, "sums"), "one sum for each of 500 records"),
        ((space_there, "turned"), "the features"),
    ],
)
def test_where_memory_runs_out_apart_from_blocks_it_is_said(where, what, device, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("tried to allocate 7 TiB")

    monkeypatch.setattr(*where, full)
    with pytest.raises(UnavailableError, match=rf"too little for {what} \(tried to allocate 7 TiB\)"):
        da.knn_shapley(*awkward(), device=device)


def test_where_not_one_row_fits_it_is_said(device, monkeypatch):
    def block(self, start, rows):
        raise torch.OutOfMemoryError("tried to allocate 7 TiB")

    monkeypatch.setattr(passes_there.DeviceBlocks, "_block", block)
    with pytest.raises(UnavailableError, match=r"too little for one validation point beside 500 records \(tried to"):
        da.knn_shapley(*awkward(), device=device)


def test_rows_that_a_card_sorts_two_at_a_time_are_in_the_order_of_all_at_once(device, monkeypatch):
    monkeypatch.setattr(passes_there, "ALONE", 1)
    far = torch.from_numpy(np.random.default_rng(0).integers(0, 9, (5, 200)).astype(np.float64)).to(device)
    expected = np.argsort(far.cpu().numpy(), axis=1, kind="stable")
    np.testing.assert_array_equal(passes_there.ranked(far).cpu().numpy(), expected)


def test_a_checkpoint_of_distances_is_of_these_distances_alone(device, tmp_path):
    rng = np.random.default_rng(0)
    y, far, w = rng.integers(0, 2, 30), rng.random((9, 30)), rng.integers(0, 2, 9)
    how = {"metric": "precomputed", "device": device, "checkpoint": tmp_path / "kept"}
    first, again = (da.knn_shapley(None, y, far, w, **how).values for _ in range(2))
    assert again.tobytes() == first.tobytes()
    with pytest.raises(InputError, match="other data"):
        da.knn_shapley(None, y, far + 1, w, **how)


def test_a_run_goes_on_from_its_checkpoint(device, tmp_path, monkeypatch):
    monkeypatch.setattr(passes_there, "MOST_ROWS", 8)
    monkeypatch.setattr(passes_there, "FEWEST_ROWS", 8)
    given, kept = awkward(), tmp_path / "kept"
    whole = METHODS["knn_shapley"](*given, device=device).values

    def impatient(done, total):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        METHODS["knn_shapley"](*given, device=device, checkpoint=kept, progress=impatient)
    seen = []
    after = METHODS["knn_shapley"](
        *given, device=device, checkpoint=kept, progress=lambda done, total: seen.append(done)
    )
    assert after.values.tobytes() == whole.tobytes()
    assert seen[0] >= 20
    # Whether features fit into the card is not what tells data from others.
    again = METHODS["knn_shapley"](*given, device=device, checkpoint=kept, memory=80_000)
    assert again.values.tobytes() == whole.tobytes()
    with pytest.raises(UsageError, match="device was '.*' and is None"):
        METHODS["knn_shapley"](*given, checkpoint=kept)
    X, *others = given
    with pytest.raises(UsageError, match="other data"):
        METHODS["knn_shapley"](X + 1, *others, device=device, checkpoint=kept)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.array([[1.0], [np.nan]])}, r"X has the value nan at row 1, column 0"),
        ({"X_val": np.array([[np.inf]])}, r"X_val has the value inf at row 0, column 0"),
        ({"X": np.zeros((0, 1)), "y": []}, "X has no rows"),
        ({"X_val": np.zeros((1, 2))}, "X has 1 features and X_val has 2"),
        ({"y": [0, 1, 1]}, "y has 3 labels for 2 rows"),
        ({"X": np.array([[1e200], [1.0]])}, "overflow float64 distances"),
        ({"X": np.array([[0.0], [1.0]]), "metric": "cosine"}, "X has a row of length zero at row 0"),
        ({"X": np.array([1.0, 2.0])}, "X must be 2-D"),
        ({"metric": "hamming"}, "metric must be one of"),
        ({"memory": 0}, "memory must be a whole number at least 1"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"client": object()}, "device and client are two answers"),
    ],
)
def test_bad_input_is_refused_by_name(change, message, device):
    given = {"X": np.array([[0.5], [1.0]]), "y": [0, 1], "X_val": np.array([[0.3]]), "y_val": [1]} | change
    with pytest.raises(InputError, match=message):
        da.knn_shapley(**given, device=device)
    if isinstance(given["X"], np.ndarray) and not {"memory", "client", "metric"} & set(change):
        tensors = {name: torch.from_numpy(given[name]).to(device) for name in ("X", "X_val")}
        with pytest.raises(InputError, match=message):
            da.knn_shapley(**(given | tensors), device=device)


def test_wrong_devices_are_refused_by_name(device):
    for wrong in ("gpu", "mps", 7.5, "cuda:x", "cuda:256", 10**30):  # torch takes 256 for 0
        with pytest.raises(UsageError, match='device must be "cuda"'):
            da.knn_shapley(*awkward(), device=wrong)
    if device == "cuda":
        with pytest.raises(UnavailableError, match='there is no device "cuda:99"'):
            da.knn_shapley(*awkward(), device="cuda:99")
    elif not torch.cuda.is_available():
        for given in ("cuda", "cuda:1"):
            with pytest.raises(UnavailableError, match=f'device="{given}" needs a card'):
                da.knn_shapley(*awkward(), device=given)
    with pytest.raises(UsageError, match="leave it out with model"):
        da.membership_attack(*awkward()[:2], method="lira", model=LogisticRegression(), device=device)
    from scipy.sparse import csr_array

    with pytest.raises(UsageError, match="leave device out"):
        da.knn_loo(None, [0, 1], csr_array([[0.5, 0.2]]), [1], k=1, metric="precomputed", device=device)


def test_more_records_than_are_numbered_on_a_device_are_refused(device, monkeypatch):
    assert space_there.MOST_RECORDS + 1024 * 1024 <= 2**31  # what the kernels of Triton count in
    monkeypatch.setattr(space_there, "MOST_RECORDS", 499)
    given = awkward()
    for method in ("knn_shapley", "tknn_shapley", "knn_shapley, distances"):
        with pytest.raises(UnavailableError, match="at most 499 records and there are 500; leave device out"):
            METHODS[method](*given, device=device)


def test_without_torch_the_error_says_how_to_install_it_and_nothing_else_changes(device, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError")
    code = (
        "import datassay as da\n"
        "assert da.knn_shapley([[0.0], [1.0]], [0, 1], [[0.1]], [0], k=1).values.shape == (2,)\n"
        "try:\n    da.knn_shapley([[0.0], [1.0]], [0, 1], [[0.1]], [0], device='cpu')\n"
        "except ImportError as error:\n    print(error)\n"
    )
    where = os.pathsep.join([str(tmp_path), *sys.path])
    said = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": where}, capture_output=True, text=True, check=True
    )
    assert 'pip install "datassay[gpu]"' in said.stdout


def test_the_command_line_takes_a_device(device, tmp_path, capsys, monkeypatch):
    table, out = str(tmp_path / "people.csv"), str(tmp_path / "values.json")
    da.census(200, seed=1).to_frame("pandas").to_csv(table, index=False)
    about = [table, "--label", "income", "--id", "id", "--ignore", "label_error,duplicate_of,rare"]

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["datassay", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code or 0

    assert run("value", *about, "-o", out, "--device", device) == 0
    there = da.load_result(out)
    assert run("value", *about, "-o", out) == 0
    np.testing.assert_allclose(there.values, da.load_result(out).values, **CLOSE)
    assert run("attack", *about, "--games", "2", "--device", device) == 0
    assert run("value", *about, "--device", "gpu") == 2
    assert 'device must be "cuda"' in capsys.readouterr().err
    assert run("value", *about, "--device", device, "--dask", "tcp://nowhere:1") == 2
    assert run("value", *about, "--method", "data-shapley", "--device", device) == 2
    assert "--device" in capsys.readouterr().err


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no card here")
def test_a_card_that_is_nearly_full_takes_smaller_blocks(device):
    rng = np.random.default_rng(0)
    X, y, V, w = (
        rng.random((200_000, 8), np.float32),
        rng.integers(0, 2, 200_000),
        rng.random((300, 8), np.float32),
        [1] * 300,
    )
    whole = da.knn_shapley(X, y, V, w, device=device).values
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.005)
    try:
        assert da.knn_shapley(X, y, V, w, device=device).values.tobytes() == whole.tobytes()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
