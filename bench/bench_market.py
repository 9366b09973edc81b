"""The disclosure game: a bandit's steps against a new scikit-learn evaluation at each of them."""

import time

import numpy as np

import datassay as da
from common import Report, stopwatch
from datassay.privacy import NoisyRecords

STEPS, K = 100_000, 67  # k as in the thesis


def embeddings(n: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Unit-length points of two overlapping classes, as text embeddings are."""
    y = rng.integers(0, 2, n)
    middles = np.random.default_rng(7).normal(size=(2, d))
    X = rng.normal(size=(n, d)) + 0.15 * middles[y]
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def anew(game: da.Disclosure, X_val: np.ndarray, y_val: np.ndarray) -> float:
    """The utility of the centres as scikit-learn computes it."""
    from sklearn.neighbors import KNeighborsClassifier

    fitted = KNeighborsClassifier(K, algorithm="brute", n_jobs=-1).fit(game.centres, game.labels)
    votes = fitted.predict_proba(X_val)
    return float(votes[np.arange(len(y_val)), np.searchsorted(fitted.classes_, y_val)].mean())


def run(report: Report) -> None:
    """Time and print."""
    rng = np.random.default_rng(0)
    (X, y), (X_val, y_val) = embeddings(8000, 1024, rng), embeddings(1000, 1024, rng)

    def play(steps: int, **how: object) -> da.Disclosure:
        return da.disclosure_game(
            X, y, X_val, y_val, "ucb", 1.0, 50, 1.0, k=K, max_queries=steps, seed=0, diagnostics=False, **how
        )

    play(10)
    start = time.perf_counter()
    game = play(STEPS)
    each = (time.perf_counter() - start) / STEPS
    theirs = stopwatch(lambda: anew(game, X_val, y_val), 3)
    assert game.n_queries == STEPS
    what = f"disclosure game, {len(X):,} × {X.shape[1]:,}, {len(X_val):,} points: scikit-learn, one evaluation"
    report("evaluation", what, theirs * 1e3, "ms")
    report("step", "  datassay, one step, noise and choice included", each * 1e3, "ms")
    report("step_ratio", "  scikit-learn / datassay, a step", theirs / each, "×", 200)
    report(
        "apart_at_end",
        "  largest difference of the two utilities at the end",
        abs(anew(game, X_val, y_val) - game.utility),
        "",
        1e-9,
        False,
    )
    early = play(12_000)
    report("apart_early", "  and after 12,000 steps", abs(anew(early, X_val, y_val) - early.utility), "", 1e-9, False)
    mechanism = NoisyRecords(np.full(1024, -1.0), np.full(1024, 1.0), 1.0)
    unit = mechanism.to_unit(X[:64])
    report(
        "noisy_copy",
        "  a noisy copy for real (OpenDP, one thread)",
        stopwatch(lambda: mechanism.release(unit), 2) / 64 * 1e3,
        "ms",
    )
    (X, y), (X_val, y_val) = embeddings(1400, 384, rng), embeddings(300, 384, rng)
    play(10)
    seconds = stopwatch(
        lambda: da.disclosure_game(X, y, X_val, y_val, "ucb", 1.0, 200, 1.0, k=9, seed=0, diagnostics=False), 1
    )
    report("million_steps_seconds", "a million steps, 1,400 × 384, 300 validation points, k = 9", seconds / 0.28, "s")
    worth = rng.gamma(2.0, size=500) / 500
    price = da.price(worth, 2.0, 250.0)
    report("cover", "cheapest cover, 500 records", stopwatch(lambda: price.buy(share=0.8), 3) * 1e3, "ms")
    report("cover_proven", "  proven optimal (1: yes)", float(price.buy(share=0.8).proven), "", 1.0)
