"""Values by what Triton compiles for a card, interpreted by NumPy on the processor: without a card it would never run.

A program of its own, run with TRITON_INTERPRET=1, which must be set before anybody loads Triton. Prints as JSON how far
the values of every case are from those without a device, whether their bits are those of torch, and who was called.
"""

import json
from contextlib import nullcontext

import numpy as np
import torch
from test_device import METHODS, awkward

import datassay as da
from datassay.neighbors.device import distances
from datassay.neighbors.device import triton_kernels as distances_there
from datassay.value import device_kernels
from datassay.value import triton_kernels as formulas_there

CALLED = set()


def noted(kernels, name):
    """Write down that it was called, and call it."""
    kernel = getattr(kernels, name)

    def call(*given):
        CALLED.add(name)
        return kernel(*given)

    setattr(kernels, name, call)


def choose(triton):
    """By Triton, or by torch."""
    distances.compiled = device_kernels.compiled = lambda _: triton


def of_many(n, metric):
    """More records than one program looks at, or just as many, or one; and more validation points than a tile has."""
    rng = np.random.default_rng(n)
    X, y, V, w = rng.normal(size=(n, 3)), rng.integers(0, 3, n), rng.normal(size=(67, 3)), rng.integers(0, 3, 67)
    tau = {"euclidean": 1.0, "manhattan": 1.5, "cosine": -0.5}[metric]
    return {
        f"knn_shapley, {n} records, {metric}": lambda **on: da.knn_shapley(X, y, V, w, metric=metric, **on),
        f"tknn_shapley, {n} records, {metric}": lambda **on: da.tknn_shapley(X, y, V, w, metric=metric, tau=tau, **on),
    }


def cases():
    """All methods on awkward data; those with kernels of their own in both precisions and at the edges of programs."""
    for dtype in (np.float32, np.float64):
        given = awkward(dtype=dtype)
        for name, method in METHODS.items():
            if dtype is np.float64 and not name.startswith(("knn_shapley", "tknn_shapley")):
                continue
            yield f"{name}, {dtype.__name__}", lambda method=method, given=given, **on: method(*given, **on)
    for metric in ("euclidean", "manhattan", "cosine"):
        for n in (1, 1024, 1025):
            yield from of_many(n, metric).items()
    yield from of_many(2100, "euclidean").items()


def main():
    """Try every case."""
    torch.cuda.device = lambda _: nullcontext()
    noted(distances_there, "distances")
    for name in ("add_shapley", "count_within", "sum_within"):
        noted(formulas_there, name)
    told = {}
    for name, call in cases():
        CALLED.clear()
        choose(triton=True)
        there = call(device="cpu").values
        called = sorted(CALLED)
        choose(triton=False)
        same = there.tobytes() == call(device="cpu").values.tobytes()
        told[name] = {"off": float(np.abs(there - call().values).max()), "same": same, "called": called}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
