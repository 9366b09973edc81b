"""A graphics card: against plain torch on the same card, and against its copy bandwidth and matrix rate.

The peer is what one would write in torch: a matrix product for the distances, a sort, the formula, a scatter. Sizes are
those of an H200; a smaller card takes ``DATASSAY_GPU_SCALE=0.1``, which divides the records by ten.
"""

import os
import time

import numpy as np

import datassay as da
from common import Report

FEATURES = 128


def plain_shapley(torch, X, y, V, w, k=5, rows=128):
    """Fraction Shapley values the plain way, in float32."""
    n = len(X)
    step = 1.0 / torch.clamp(torch.arange(1, n + 1, device=X.device, dtype=torch.float32), min=k)
    total, lengths = torch.zeros(n, device=X.device), (X * X).sum(1)
    for start in range(0, len(V), rows):
        Q = V[start : start + rows]
        order = torch.sort(lengths - 2 * Q @ X.T, dim=1)[1]
        b = (y[order] == w[start : start + rows, None]).float()
        d = b.clone()
        d[:, :-1] -= b[:, 1:]
        phi = (d * step).flip(1).cumsum(1).flip(1)
        total.index_add_(0, order.reshape(-1), phi.reshape(-1))
    return total / len(V)


def run(say: Report) -> None:
    """Measure and print."""
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("bench_gpu: there is no card that torch can use; nothing was measured")
        return
    scale = float(os.environ.get("DATASSAY_GPU_SCALE", "1"))

    def seconds(call, repeats=3):
        call()
        best = float("inf")
        for _ in range(repeats):
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            best = min(best, time.perf_counter() - start)
        return best

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {da.__version__}")

    def copy_rate():
        source = torch.empty(2**28, device="cuda").normal_()
        target = torch.empty_like(source)
        return 8 * source.numel() / seconds(lambda: target.copy_(source), 10)

    def matrix_rate(X, V):
        product = torch.empty(len(V), len(X), device="cuda")
        return 2.0 * product.numel() * X.shape[1] / seconds(lambda: torch.mm(V, X.T, out=product))

    copied = copy_rate()
    say("copied", "copy within the card, bytes read and written", copied / 1e9, "GB/s")
    n, m = int(10**6 * scale), 10**4
    generator = torch.Generator("cuda").manual_seed(0)
    X, V = (torch.randn(size, FEATURES, device="cuda", generator=generator) for size in (n, m))
    y, w = (torch.randint(0, 2, (size,), device="cuda", generator=generator) for size in (n, m))
    multiplied = matrix_rate(X, V[:1000])
    say("multiplied", "matrix product, float32", multiplied / 1e12, "TFLOP/s")

    def report(name, what, time_taken, pairs, target=None, bytes_a_pair=0.0):
        say(f"{name}_seconds", what, time_taken, "s")
        say(f"{name}_rate", "  pairs per second", pairs / time_taken, "/s", target)
        arithmetic = 2 * FEATURES * pairs / time_taken / multiplied
        say(f"{name}_arithmetic", "  arithmetic of the distances / matrix rate", arithmetic, "×")
        if bytes_a_pair:
            moved = bytes_a_pair * pairs / time_taken / copied
            say(f"{name}_moved", "  bytes that must move / copy bandwidth", moved, "×")

    few = V[:1000], w[:1000]
    plain = seconds(lambda: plain_shapley(torch, X, y, *few))
    say("plain_seconds", f"plain torch, Shapley values of {n:,} × 1,000 × {FEATURES}", plain, "s")
    say("plain_rate", "  pairs per second", n * 1000 / plain, "/s")
    ours = seconds(lambda: da.knn_shapley(X, y, *few, utility="fraction"))
    say("few_seconds", "  datassay, exact, tensors on the card", ours, "s")
    say("few_rate", "  pairs per second", n * 1000 / ours, "/s")
    say("plain_ratio", "  plain torch / datassay", plain / ours, "×")
    found, theirs = da.knn_shapley(X, y, *few, utility="fraction").values, plain_shapley(torch, X, y, *few)
    say("correlation", "  correlation of the values", np.corrcoef(found, theirs.cpu().numpy())[0, 1], "", 0.999)
    # Distances are written and read; a sort of four-byte keys with eight-byte numbers goes over them four times.
    sorted_bytes = 4 + 4 + 4 * 2 * 12 + 2 * 8 + 8
    report(
        "knn", f"knn_shapley, {n:,} × {m:,} × {FEATURES}, float32, tensors on the card",
        seconds(lambda: da.knn_shapley(X, y, V, w)), n * m, 6e9 if scale == 1 else None, sorted_bytes,
    )  # fmt: skip
    arrays = [one.cpu().numpy() for one in (X, y, V, w)]
    report(
        "arrays", "  the same, arrays in memory",
        seconds(lambda: da.knn_shapley(*arrays, device="cuda"), 1), n * m,
    )  # fmt: skip
    first, second = (da.knn_shapley(X, y, *few).values for _ in range(2))
    say("differing", "  bits of two runs differ in", float((first != second).sum()), "", 0.0, False)
    report(
        "tknn", f"tknn_shapley, {n:,} × {m:,} × {FEATURES}, float32, tau = −0.1",
        seconds(lambda: da.tknn_shapley(X, y, V, w, tau=-0.1)), n * m, 1.8e10 if scale == 1 else None, 4 + 4 + 2 + 16,
    )  # fmt: skip
    report(
        "banzhaf", f"knn_banzhaf, {n:,} × {m:,} × {FEATURES}, float32",
        seconds(lambda: da.knn_banzhaf(X, y, V, w), 1), n * m, None, 4 + 4 + 1 + 1,
    )  # fmt: skip

    def double(X, V):
        return seconds(lambda: da.knn_shapley(X, y, V, w[:1000]), 1)

    took = double(X.double(), V[:1000].double())
    report("float64", f"knn_shapley, {n:,} × 1,000 × {FEATURES}, float64", took, n * 1000)
    start = time.perf_counter()
    exposed = da.self_waka(X, y)
    took = time.perf_counter() - start
    report(
        "self_waka", f"self_waka, {n:,} records, {FEATURES} features, float32", took, float(n) * n, None, 4 + 4 + 1 + 1
    )
    say("self_waka_mean", "  its mean", exposed.values.mean())
    small = [one[:20_000] if len(one) == n else one[:200] for one in arrays]
    for kind in (np.float32, np.float64):
        given = [small[0].astype(kind), small[1], small[2].astype(kind), small[3]]
        for name in ("knn_shapley", "knn_banzhaf", "tknn_shapley", "waka"):
            call = getattr(da, name)
            off = np.abs(call(*given, device="cuda").values - call(*given).values).max()
            what = f"{name}, 20,000 × 200, {kind.__name__}: card − processor, at most"
            say(f"{name}_{kind.__name__}_off", what, off, "", 1e-9, False)

    def sized(name, records, points, features, **run):
        """Seconds of a method for standard normal features on the card."""
        points_of = [torch.randn(size, features, device="cuda", generator=generator) for size in (records, points)]
        labels_of = [torch.randint(0, 2, (size,), device="cuda", generator=generator) for size in (records, points)]
        given = points_of[0], labels_of[0], points_of[1], labels_of[1]
        how = {"tau": -0.5} if name == "tknn_shapley" else {"k": 5}
        return seconds(lambda: getattr(da, name)(*given, **how, **run), 1)

    for records in (10**6, 10**7, 10**8):
        for name in ("knn_shapley", "knn_banzhaf", "tknn_shapley"):
            took = sized(name, int(records * scale), 1000, 16)
            say(f"{name}_{records}", f"{name}, {int(records * scale):,} × 1,000 × 16, float32", took, "s")
    for name, points in (("knn_banzhaf", 500), ("knn_shapley", 100)):
        what = f"{name}, {int(5e6 * scale):,} × {points} × 64, float32"
        say(f"{name}_whole", what, sized(name, int(5e6 * scale), points, 64), "s")
        within = sized(name, int(5e6 * scale), points, 64, memory=2**31)
        say(f"{name}_within", "  with memory= 2 GiB", within, "s")
