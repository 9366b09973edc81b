"""Published tables, done again: each reproduction puts our number beside the published one.

Register one with ``@reproduction``; ``datassay reproduce`` lists and runs them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay.data import load_dataset
from datassay.evaluate.detection import detect_errors
from datassay.results import Values
from datassay.value import knn_shapley, tknn_shapley


@dataclass(frozen=True)
class Cell:
    """One number of a published table and ours; ``published`` is None where there is none to compare with."""

    row: str
    column: str
    ours: float
    published: float | None = None

    def agrees(self, digits: int = 3) -> bool:
        """Whether the two are equal when rounded."""
        return self.published is not None and round(self.ours, digits) == round(self.published, digits)


@dataclass(frozen=True)
class Reproduction:
    """A published result, redone."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    finding: str
    holds: bool


@dataclass(frozen=True)
class _Entry:
    title: str
    run: Callable[[], Reproduction]


REPRODUCTIONS: dict[str, _Entry] = {}


def _reproduction(name: str, title: str) -> Callable[[Callable[[], Reproduction]], Callable[[], Reproduction]]:
    def register(run: Callable[[], Reproduction]) -> Callable[[], Reproduction]:
        REPRODUCTIONS[name] = _Entry(title, run)
        return run

    return register


def list_reproductions() -> dict[str, str]:
    """Names and titles of what can be reproduced.

    >>> "tknn-detection" in list_reproductions()
    True
    """
    return {name: entry.title for name, entry in REPRODUCTIONS.items()}


def reproduce(name: str) -> Reproduction:
    """Redo a published result by name; see :func:`list_reproductions`."""
    if name not in REPRODUCTIONS:
        raise InputError(f"there is no reproduction {name!r}; there are {', '.join(REPRODUCTIONS)}")
    return REPRODUCTIONS[name].run()


# SPEC §10, from Tables 9 to 14 of the TKNN paper: AUROC for (mislabelled, noisy) × (TKNN, soft KNN with K = 5).
DETECTION_TABLE = {
    "2dplanes": (0.920, 0.705, 0.914, 0.712),
    "phoneme": (0.825, 0.710, 0.871, 0.739),
    "cpu": (0.950, 0.751, 0.932, 0.730),
    "fraud": (0.959, 0.818, 0.970, 0.803),
}


@dataclass(frozen=True, eq=False)
class DetectionProblem:
    """One data set of the detection experiments, prepared as in SPEC §10; the first 10% are faulty."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_val: NDArray[np.float64]
    y_val: NDArray[np.int64]
    is_error: NDArray[np.bool_]


def detection_problem(name: str, fault: str) -> DetectionProblem:
    """Prepare ``name`` (from the folder ``DATASSAY_DATA``) with "mislabelled" or "noisy" records, as SPEC §10 says."""
    table = load_dataset(name)
    points = np.column_stack([table.columns[c].data.astype(np.float64) for c in table.features])
    labels = table.labels.astype(np.int64)
    rng = np.random.RandomState(999)  # the published experiments' generator

    minority = 1 if labels.mean() < 0.5 else 0
    small = np.flatnonzero(labels == minority)
    extra = rng.choice(small, size=len(labels) - 2 * len(small), replace=True)
    points, labels = np.concatenate([points, points[extra]]), np.concatenate([labels, labels[extra]])
    order = rng.permutation(len(points))
    points, labels = points[order], labels[order]
    X_val, y_val = points[:200], labels[:200]
    points, labels = points[200:], labels[200:]

    minority = 1 if labels.mean() < 0.5 else 0
    drawn = [
        rng.choice(np.flatnonzero(labels == minority), size=1000, replace=False),
        rng.choice(np.flatnonzero(labels != minority), size=1000, replace=False),
    ]
    chosen = np.concatenate(drawn)
    chosen = chosen[rng.permutation(len(chosen))]
    X, y = points[chosen], labels[chosen]

    faulty = len(X) // 10
    if fault == "noisy":
        X[:faulty] += rng.normal(loc=0, scale=np.linalg.norm(X, axis=0), size=(faulty, X.shape[1]))
    centre, width = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    X, X_val = (X - centre) / width, (X_val - centre) / width
    X, X_val = (points / np.linalg.norm(points, axis=1, keepdims=True) for points in (X, X_val))
    if fault == "mislabelled":
        y[:faulty] = 1 - y[:faulty]
    return DetectionProblem(X, y, X_val, y_val, np.arange(len(X)) < faulty)


@_reproduction("tknn-detection", "AUROC of finding faulty records, not private (TKNN paper, Tables 9–14)")
def _tknn_detection() -> Reproduction:
    below = np.nextafter(-0.5, -1.0)  # neighbours are strictly nearer than τ there
    cells = []
    for name, published in DETECTION_TABLE.items():
        for fault in ("mislabelled", "noisy"):
            problem = detection_problem(name, fault)
            data = (problem.X, problem.y, problem.X_val, problem.y_val)
            for method, values in (
                ("TKNN", tknn_shapley(*data, tau=float(below))),
                ("soft KNN K=5", knn_shapley(*data, k=5, metric="cosine")),
            ):
                at = ("TKNN", "soft KNN K=5").index(method) * 2 + ("mislabelled", "noisy").index(fault)
                ours = detect_errors(values, problem.is_error).auroc
                cells.append(Cell(name, f"{fault}, {method}", ours, published[at]))
    agreeing = sum(cell.agrees() for cell in cells)
    return Reproduction(
        "tknn-detection",
        REPRODUCTIONS["tknn-detection"].title,
        tuple(cells),
        f"{agreeing} of {len(cells)} published numbers come out, to all three digits",
        agreeing == len(cells),
    )


@_reproduction(
    "tknn-speed",
    "Seconds of TKNN- and KNN-Shapley by training size (TKNN paper, Figure 2: TKNN is faster at every size)",
)
def _tknn_speed() -> Reproduction:
    rng = np.random.default_rng(0)
    cells = []
    faster = True
    for n in (1_000, 10_000, 100_000, 1_000_000):
        X, X_val = rng.normal(size=(n, 10)), rng.normal(size=(100, 10))
        y, y_val = X[:, :2].sum(axis=1) > 0, X_val[:, :2].sum(axis=1) > 0
        seconds = {}
        values: dict[str, Callable[[], Values]] = {
            "KNN": partial(knn_shapley, X, y, X_val, y_val, metric="cosine"),
            "TKNN": partial(tknn_shapley, X, y, X_val, y_val),
        }
        for name, value in values.items():
            value()
            runs = []
            for _ in range(30 if n <= 10_000 else 3):
                start = time.perf_counter()
                value()
                runs.append(time.perf_counter() - start)
            seconds[name] = min(runs)
            cells.append(Cell(f"N = {n:,}", f"{name} seconds", seconds[name]))
        cells.append(Cell(f"N = {n:,}", "KNN / TKNN", seconds["KNN"] / seconds["TKNN"]))
        faster = faster and seconds["TKNN"] < seconds["KNN"]
    return Reproduction(
        "tknn-speed",
        REPRODUCTIONS["tknn-speed"].title,
        tuple(cells),
        "TKNN-Shapley was faster at every size" if faster else "TKNN-Shapley was not faster at every size in this run",
        faster,
    )
