"""WaKA and membership attacks: against LiRA with scikit-learn models that are fitted again for every shadow."""

import os
import time

import numpy as np

import datassay as da
from common import Report, stopwatch
from datassay.data import prepare
from datassay.neighbors import NearestRanking, Run, collect, make_space
from datassay.value import rank_chances

GAMES, SHADOWS, K = 48, 16, 5


def refitted_lira(X: np.ndarray, y: np.ndarray, games: range) -> tuple[np.ndarray, np.ndarray]:
    """The attack as it is usually written: a scikit-learn k-NN for the model and every shadow, all are targets."""
    from sklearn.neighbors import KNeighborsClassifier

    n = len(X)
    scores, members = [], []
    for game in games:
        rng = np.random.default_rng([0, game])
        losses, inside = np.empty((n, 1 + SHADOWS)), np.zeros((n, 1 + SHADOWS), bool)
        for m in range(1 + SHADOWS):
            inside[rng.permutation(n)[: n // 2], m] = True
            model = KNeighborsClassifier(K, n_jobs=-1).fit(X[inside[:, m]], y[inside[:, m]])
            losses[:, m] = 1 - model.predict_proba(X)[np.arange(n), y]
        shadow, held = losses[:, 1:], inside[:, 1:]
        both = []
        for chosen in (held, ~held):
            count = np.maximum(chosen.sum(axis=1), 1)
            mean = np.where(chosen, shadow, 0).sum(axis=1) / count
            variance = np.where(chosen, (shadow - mean[:, None]) ** 2, 0).sum(axis=1) / count + 1e-3
            both.append(-0.5 * np.log(variance) - 0.5 * (losses[:, 0] - mean) ** 2 / variance)
        scores.append(both[0] - both[1])
        members.append(inside[:, 0])
    return np.concatenate(scores), np.concatenate(members)


def adult() -> da.Table:
    """Adult, or a simulated census of the same size where it is not at hand."""
    if os.environ.get("DATASSAY_DATA"):
        return da.load_dataset("adult", label="income", ignore=["split", "fnlwgt"])
    return da.census(48_842, seed=0)


def run(report: Report) -> None:
    """Time and print."""
    table = adult()
    name = table.name
    X = np.asarray(prepare(table, None).points)
    y = np.unique(table.labels, return_inverse=True)[1]
    da.self_waka(X[:500], y[:500])
    seconds = stopwatch(lambda: da.self_waka(X, y, k=K, tolerance=1e-12), repeats=1)
    space = make_space(X, None, "euclidean")
    limit = len(rank_chances(K, len(X), 1e-12)[0]) - 1
    search = stopwatch(lambda: collect(space, NearestRanking(limit), lambda block: (), Run(None, 2**29, None)), 1)
    report(
        "self_waka_seconds",
        f"self-WaKA of all {len(X):,} records of {name}, {X.shape[1]} features, to 1e-12",
        seconds,
        "s",
    )
    report("search_share", "  share of it spent in the neighbour search", search / seconds, "")

    n = 10_000
    rng = np.random.default_rng(0)
    some = np.sort(rng.permutation(len(X))[:n])
    X, y = np.ascontiguousarray(X[some]), y[some]
    start = time.perf_counter()
    few = 2
    theirs, members = refitted_lira(X, y, range(few))
    peer = (time.perf_counter() - start) / few * GAMES
    what = f"{GAMES} games, {n:,} records of {name}, k = {K}: LiRA refitted ({few} games, scaled)"
    report("refitted_seconds", what, peer, "s")
    same = da.membership_attack(X, y, "lira", k=K, games=few, targets=None)
    assert (same.members == members).all(), "the games are not the same"
    report(
        "refitted_auc",
        "  AUC of refitted LiRA, in these games",
        da.Attack(theirs, same.ids, members, "refitted").auc,
        "",
    )
    report("lira_auc", "  AUC of datassay's LiRA, in the same games", same.auc, "")
    for method, wanted in (("t-waka", 100), ("lira", 20)):
        ours = stopwatch(lambda: da.membership_attack(X, y, method, k=K, games=GAMES, targets=None), repeats=1)  # noqa: B023
        report(f"{method.replace('-', '_')}_seconds", f"  datassay, {method}", ours, "s")
        report(f"{method.replace('-', '_')}_ratio", f"  refitted LiRA / datassay's {method}", peer / ours, "×", wanted)
