"""k-NN values: against pyDVL and cleanlab, and on their own at a million records."""

import subprocess
import sys

import numpy as np

import datassay as da
from common import Report, ask_peer, stopwatch
from datassay.neighbors import make_space

# VmHWM is this process's own peak; ru_maxrss would be at least that of the process that started it.
MEMORY = """
import re, numpy as np, datassay as da
def kilobytes(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
rng = np.random.default_rng(0)
small = rng.normal(size=(300, 10)), rng.integers(0, 2, 300), rng.normal(size=(3, 10)), rng.integers(0, 2, 3)
da.knn_shapley(*small)
X, X_val = rng.random((1_000_000, 10)), rng.random((100, 10))
y, y_val = rng.integers(0, 2, 1_000_000), rng.integers(0, 2, 100)
before = kilobytes("VmRSS")
da.knn_shapley(X, y, X_val, y_val)
print((kilobytes("VmHWM") - before) / 1024)
"""


def gaussian(n: int, m: int, d: int, dtype: type = np.float64) -> tuple[np.ndarray, ...]:
    """The data of the published timings: Gaussian features, the label the sign of the first two's sum."""
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    return X, (X[:, :2].sum(axis=1) > 0).astype(int), X_val, (X_val[:, :2].sum(axis=1) > 0).astype(int)


def plain_numpy(X: np.ndarray, y: np.ndarray, X_val: np.ndarray, y_val: np.ndarray, k: int) -> np.ndarray:
    """The vectorised formula with numpy's own sort, as anybody would write it first."""
    total = np.zeros(len(X))
    step = 1.0 / np.maximum(k, np.arange(1, len(X) + 1))
    for x, label in zip(X_val, y_val, strict=True):
        order = np.argsort(((X - x) ** 2).sum(axis=1), kind="stable")
        match = (y[order] == label).astype(float)
        phi = np.cumsum(((match - np.append(match[1:], 0.0)) * step)[::-1])[::-1]
        total[order] += phi
    return total / len(X_val)


def import_seconds() -> float:
    """Import of datassay, less an interpreter that imports nothing; best of several."""

    def spent(code: str) -> float:
        return stopwatch(lambda: subprocess.run([sys.executable, "-c", code], check=True), repeats=7)

    return spent("import datassay") - spent("pass")


def run(report: Report) -> None:
    """All measurements of this suite, printed as they come."""
    X, y, X_val, y_val = data = gaussian(50_000, 100, 10)
    k = 5
    ours = stopwatch(lambda: da.knn_shapley(*data, k=k, utility="fraction"), repeats=20)
    values = da.knn_shapley(*data, k=k, utility="fraction").values
    naive = stopwatch(lambda: plain_numpy(*data, k), repeats=1)
    np.testing.assert_allclose(values, plain_numpy(*data, k), atol=1e-12)
    theirs, their_values = ask_peer(
        "pydvl_knn_shapley", {"X": X, "y": y, "X_val": X_val, "y_val": y_val}, k=k, n_jobs=2
    )
    np.testing.assert_allclose(values, their_values, atol=1e-9)
    report("knn_seconds", "knn_shapley, 50,000 × 100 × 10, float64", ours, "s")
    report("pydvl_seconds", "  pyDVL 0.10, 2 jobs, same values", theirs, "s")
    report("pydvl_ratio", "  pyDVL / datassay", theirs / ours, "×", 100)
    report("numpy_ratio", "  plain NumPy / datassay", naive / ours, "×")

    X, y, *_ = gaussian(10_000, 1, 10)
    theirs, their_values = ask_peer("cleanlab_self", {"X": X, "y": y}, k=10)
    same = da.knn_shapley(X, y, k=10, utility="fraction", tolerance=0.1).values
    np.testing.assert_allclose(same, their_values, atol=1e-9)
    ours = stopwatch(lambda: da.knn_shapley(X, y, k=10, utility="fraction", tolerance=0.1))
    exact = stopwatch(lambda: da.knn_shapley(X, y, k=10, utility="fraction"))
    report("cleanlab_seconds", "records valuing each other, 10,000 × 10: cleanlab's data_shapley_knn", theirs, "s")
    report("approximate_seconds", "  datassay, the same approximation (tolerance 0.1), same values", ours, "s")
    report("cleanlab_ratio", "  cleanlab / datassay, same approximation", theirs / ours, "×")
    report("exact_seconds", "  datassay, exact", exact, "s")
    report("cleanlab_exact_ratio", "  cleanlab (approximate) / datassay (exact)", theirs / exact, "×")

    for dtype in (np.float32, np.float64):
        data = gaussian(1_000_000, 100, 10, dtype)
        name = np.dtype(dtype).name
        one = stopwatch(lambda: da.knn_shapley(*data, n_jobs=1), repeats=1)  # noqa: B023
        both = stopwatch(lambda: da.knn_shapley(*data), repeats=2)  # noqa: B023
        cosine = stopwatch(lambda: da.knn_shapley(*data, metric="cosine"), repeats=2)  # noqa: B023
        within = stopwatch(lambda: da.tknn_shapley(*data), repeats=2)  # noqa: B023
        report(f"knn_{name}_seconds", f"knn_shapley, 1,000,000 × 100 × 10, {name}, all cores", both, "s")
        report(f"knn_{name}_rate", "  pairs per second on one core", 1e8 / one, "/s")
        report(f"knn_{name}_speedup", "  speed-up from all cores", one / both, "×")
        report(f"tknn_{name}_seconds", f"tknn_shapley, 1,000,000 × 100 × 10, {name}", within, "s")
        report(f"tknn_{name}_ratio", "  knn_shapley / tknn_shapley, both cosine", cosine / within, "×", 1.5)

    from threadpoolctl import threadpool_limits

    for d in (10, 128, 784):
        X, _, X_val, _ = gaussian(50_000, 32, d, np.float32)
        out = np.empty((32, 50_000), np.float32)
        product = np.empty((50_000, 32), np.float32)
        with threadpool_limits(1):
            blas = stopwatch(lambda: np.matmul(X, X_val.T, out=product))  # noqa: B023
        for metric in ("euclidean", "cosine"):
            space = make_space(X, X_val, metric)
            ours = stopwatch(lambda: space.fill(0, out))  # noqa: B023
            report(
                f"{metric}_{d}_ratio",
                f"{metric} distances, 50,000 × 32 × {d}, float32, one core: time / BLAS product's",
                ours / blas,
                "×",
            )

    peak = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True).stdout
    report(
        "knn_peak", "peak memory above the data, exact, 1,000,000 × 100 × 10, float64", float(peak), "MiB", 1024, False
    )
    report("import_seconds", "import datassay", import_seconds(), "s", 0.5, False)
