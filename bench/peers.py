"""Runs in the peers' environment, not in ours: NAME GIVEN.npz ANSWER.npz OPTIONS."""

import json
import sys
import time

import numpy as np


def pydvl_knn_shapley(X, y, X_val, y_val, k, n_jobs):
    from joblib import parallel_config
    from pydvl.valuation import Dataset, KNNShapleyValuation
    from sklearn.neighbors import KNeighborsClassifier

    def value(train, validation):
        method = KNNShapleyValuation(KNeighborsClassifier(k), validation, progress=False)
        with parallel_config(n_jobs=n_jobs):
            method.fit(train)
        return method

    warm = Dataset(X[:50], y[:50]), Dataset(X_val[:4], y_val[:4])
    value(*warm)  # starts the workers
    train, validation = Dataset(X, y), Dataset(X_val, y_val)
    start = time.perf_counter()
    method = value(train, validation)
    return time.perf_counter() - start, np.asarray(method.result.values)


def cleanlab_self(X, y, k):
    from cleanlab.data_valuation import data_shapley_knn

    data_shapley_knn(y[:100], features=X[:100], k=k, metric="euclidean")
    start = time.perf_counter()
    scores = data_shapley_knn(y, features=X, k=k, metric="euclidean")
    return time.perf_counter() - start, 2 * scores - 1


if __name__ == "__main__":
    name, given, answer, options = sys.argv[1:]
    with np.load(given) as arrays:
        seconds, values = globals()[name](**arrays, **json.loads(options))
    np.savez(answer, seconds=seconds, values=values)
