"""The scores of k and τ are the accuracy of their votes, counted one by one."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import datassay as da


def problem(n=30, m=12, seed=0):
    """A coarse grid, so that distances and votes tie, and a label that no training record has."""
    rng = np.random.default_rng(seed)
    X, X_val = rng.integers(-2, 3, (n, 2)) + 0.5, rng.integers(-2, 3, (m, 2)) + 0.5
    return X, rng.choice(["a", "b", "c"], n), X_val, rng.choice(["a", "b", "c", "unseen"], m)


def winner(labels):
    """The label most of them have, of several the one that sorts first."""
    names, counts = np.unique(labels, return_counts=True)
    return names[counts.argmax()]


def test_a_score_of_k_is_the_accuracy_of_the_vote_of_the_k_nearest():
    X, y, X_val, y_val = problem()
    weights = np.arange(1.0, 13.0)
    order = np.argsort(cdist(X_val, X, "sqeuclidean"), axis=1, kind="stable")
    found = da.tune_k(X, y, X_val, y_val, candidates=[1, 2, 5, 30, 99], weights=weights)
    expected = [
        np.average([winner(y[row[:k]]) == own for row, own in zip(order, y_val, strict=True)], weights=weights)
        for k in (1, 2, 5, 30, 30)
    ]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-12)
    assert found.best == found.candidates[np.argmax(expected)]


def test_a_score_of_tau_is_the_accuracy_of_the_vote_within_it_and_nobody_is_a_guess():
    X, y, X_val, y_val = problem()
    distances, classes = cdist(X_val, X), len({*y, *y_val})
    taus = [-1.0, 0.0, 1.0, 1.5, 9.0]
    expected = [
        np.mean(
            [
                winner(y[row <= tau]) == own if (row <= tau).any() else 1 / classes
                for row, own in zip(distances, y_val, strict=True)
            ]
        )
        for tau in taus
    ]
    found = da.tune_tau(X, y, X_val, y_val, candidates=taus, metric="euclidean")
    np.testing.assert_allclose(found.scores, expected, rtol=1e-12)
    assert found.scores[0] == 1 / classes  # nobody is nearer than 0
    assert found.best == max(tau for tau, score in zip(taus, expected, strict=True) if score == max(expected))


def test_left_out_every_k_up_to_50_is_tried_as_far_as_there_are_neighbours():
    X, y, X_val, y_val = problem(60)
    assert da.tune_k(X, y, X_val, y_val).candidates.tolist() == list(range(1, 51))
    assert da.tune_k(X[:7], y[:7], X_val, y_val).candidates.tolist() == list(range(1, 8))
    assert da.tune_k(X[:7], y[:7]).candidates.tolist() == list(range(1, 7))  # of the others


def test_left_out_tau_is_of_cosine_or_of_the_distances_seen():
    X, y, X_val, y_val = problem()
    assert da.tune_tau(X, y, X_val, y_val).candidates.tolist() == [-0.9, -0.8, -0.7, -0.6, -0.5, -0.4, -0.3, -0.2, -0.1]
    shares = np.geomspace(0.001, 0.5, 20)  # 0.1% to half of the training records
    for metric, name in (("euclidean", "euclidean"), ("manhattan", "cityblock")):
        seen = np.median(np.quantile(cdist(X_val, X, name), shares, axis=1), axis=1)
        found = da.tune_tau(X, y, X_val, y_val, metric=metric).candidates
        np.testing.assert_allclose(found, np.unique(seen), rtol=1e-12)


@pytest.mark.parametrize(("tune", "one"), [(da.tune_k, 3), (da.tune_tau, -0.5)])
def test_one_candidate_is_enough_and_none_is_refused(tune, one):
    data = problem()
    assert tune(*data, candidates=[one]).best == one
    with pytest.raises(da.UsageError, match="candidates is empty"):
        tune(*data, candidates=[])
