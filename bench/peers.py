"""Runs in the peers' environment, not in ours: NAME GIVEN.npz ANSWER.npz OPTIONS."""

import json
import os
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


def pydvl_data_shapley(model, X, y, X_val, y_val, orders, rtol, n_jobs):
    """Values from exactly these orders, each of them cut short within rtol of everybody's score."""
    os.environ["PYTHONWARNINGS"] = "ignore"  # for the workers
    from joblib import parallel_config
    from pydvl.valuation import Dataset, MaxUpdates, ModelUtility, ShapleyValuation, SupervisedScorer
    from pydvl.valuation.samplers import PermutationSampler
    from pydvl.valuation.samplers.truncation import RelativeTruncation
    from pydvl.valuation.types import Sample

    class Given(PermutationSampler):
        def __init__(self, orders):
            super().__init__(truncation=RelativeTruncation(rtol))
            self.orders = orders

        def generate(self, indices):
            for order in self.orders:
                yield Sample(None, order)

    train, validation = Dataset(X, y), Dataset(X_val, y_val)

    def value(orders):
        scorer = SupervisedScorer("accuracy", validation, default=0.0)
        utility = ModelUtility(model, scorer, show_warnings=False)
        method = ShapleyValuation(utility, Given(orders), MaxUpdates(len(orders)), show_warnings=False, progress=False)
        with parallel_config(n_jobs=n_jobs):
            method.fit(train)
        assert (method.result.counts == len(orders)).all()
        return method

    value(orders[:n_jobs])  # starts the workers
    start = time.perf_counter()
    method = value(orders)
    return time.perf_counter() - start, np.asarray(method.result.values)


def pydvl_shapley_logistic(**given):
    from sklearn.linear_model import LogisticRegression

    return pydvl_data_shapley(LogisticRegression(), **given)


def pydvl_shapley_tree(**given):
    from sklearn.tree import DecisionTreeClassifier

    return pydvl_data_shapley(DecisionTreeClassifier(max_depth=3, random_state=0), **given)


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
