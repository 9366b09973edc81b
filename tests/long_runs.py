"""Every function that runs for long, on data small enough for a test: what must hold of all of them is tested of each."""

from functools import cache

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import datassay as da


@cache
def data(n=900, n_validation=150, d=7, dtype="float64"):
    rng = np.random.default_rng(5)
    X, X_val = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(n_validation, d)).astype(dtype)
    X[::9] = X[0]  # duplicates, which tie
    return X, rng.integers(0, 3, n), X_val, rng.integers(0, 3, n_validation)


@cache
def people(n=90, seed=1):
    return da.census(n, seed=seed)


@cache
def halves():
    return da.census(40, seed=2).split(0.5)


def _models(function, model, **options):
    def run(**more):
        train, validation = halves()
        return function(model, train, X_val=validation, **options, **more)

    return run


PASSES = {
    "knn_shapley": lambda **o: da.knn_shapley(*data(), **o),
    "knn_shapley of float32": lambda **o: da.knn_shapley(*data(dtype="float32"), **o),
    "knn_shapley truncated": lambda **o: da.knn_shapley(*data(), tolerance=0.02, weights="balanced", **o),
    "knn_banzhaf": lambda **o: da.knn_banzhaf(*data(), **o),
    "knn_loo": lambda **o: da.knn_loo(*data(), **o),
    "tknn_shapley": lambda **o: da.tknn_shapley(*data(), tau=2.0, metric="euclidean", **o),
    "self_shapley": lambda **o: da.self_shapley(*data()[:2], **o),
    "waka": lambda **o: da.waka(*data(), variant="removal", **o),
    "self_waka": lambda **o: da.self_waka(*data()[:2], metric="cosine", **o),
    "membership_attack": lambda **o: da.membership_attack(*data()[:2], games=4, targets=None, **o),
    "reidentification_risk": lambda **o: da.reidentification_risk(people(), people(), control=people(50, 9), **o),
    "reidentification_shapley": lambda **o: da.reidentification_shapley(people(), people(), method="sampled", **o),
}

COALITIONS = {
    "data_shapley": _models(da.data_shapley, LogisticRegression(), max_coalitions=400),
    "data_shapley of a tree": _models(da.data_shapley, DecisionTreeClassifier(max_depth=3), max_coalitions=200),
    "beta_shapley": _models(da.beta_shapley, LogisticRegression(), max_coalitions=400),
    "data_banzhaf": _models(da.data_banzhaf, DecisionTreeClassifier(max_depth=2), max_coalitions=200),
    "leave_one_out": _models(da.leave_one_out, LogisticRegression()),
    "layered_shapley": _models(da.layered_shapley, da.StableLogisticRegression(kappa=3.0), alpha=3.0),
}

ALL = PASSES | COALITIONS


@cache
def reference(name):
    """What it gives when it is run here, in one piece."""
    return bits(ALL[name](n_jobs=1))


def bits(result):
    parts = [result.values, *(getattr(result, part, None) for part in ("lower", "upper", "control", "attacked"))]
    return b"|".join(np.ascontiguousarray(part).tobytes() for part in parts if part is not None)
