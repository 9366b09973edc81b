"""Risk and release: against a BallTree for every query, and what pycanon and anonymeter say of the same releases."""

import json
import os
import subprocess
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

import datassay as da
from common import Report, environment, stopwatch
from datassay.identity.gower import fit_gower

HERE = Path(__file__).resolve().parent
PEOPLE, ORDERS = 1000, 50


def adult() -> da.Table:
    """10,977 people of Adult with 13 attributes as in the thesis, or a simulated census of that size."""
    if os.environ.get("DATASSAY_DATA"):
        from datassay.reproduce.release import release_tables

        return release_tables("release-adult")[0]
    return da.census(10_977)


def ball_tree_seconds(table: da.Table, people: int, orders: int) -> tuple[float, np.ndarray]:
    """Seconds for one person and one scenario as in the thesis: a BallTree on what is known, queried for the nearest.

    Trees are built beforehand, one for each set of attributes, and shared by all people: their making is not counted.
    """
    from scipy.stats import norm
    from sklearn.neighbors import BallTree

    names = [name for name in table.columns if name not in table.carried]
    space = fit_gower(table, names)
    points = space.points(table)
    encoded = []  # one-hot at half height, so that the Manhattan distance of two categories is 1
    for a, categorical in enumerate(space.categorical):
        if categorical:
            levels = np.unique(points[a])
            encoded.append((points[a][:, None] == levels) * 0.5)
        else:
            encoded.append(points[a][:, None])
    d, n = points.shape
    k = round(0.02 * n)
    whole = BallTree(np.hstack(encoded), metric="manhattan")
    rng = np.random.default_rng(0)
    chosen = [rng.permutation(d) for _ in range(orders)]
    trees = {}
    for order in chosen:
        for r in range(1, d + 1):
            trees[tuple(sorted(order[:r]))] = None
    for known in trees:
        trees[known] = BallTree(np.hstack([encoded[a] for a in known]), metric="manhattan")
    scores = np.empty((people, orders, d))
    start = time.perf_counter()
    for i in range(people):
        near, _ = whole.query(np.hstack([e[i] for e in encoded])[None], k + 1)
        mu, s = near[0, 1:].mean(), near[0, 1:].std()
        for o, order in enumerate(chosen):
            for r in range(1, d + 1):
                known = tuple(sorted(order[:r]))
                tree, row = trees[known], np.hstack([encoded[a][i] for a in known])[None]
                best, _ = tree.query(row, 1)
                found = tree.query_radius(row, best[0, 0] + 1e-9)[0]
                parts = np.where(
                    space.categorical[:, None],
                    points[:, found] != points[:, [i]],
                    np.minimum(1, np.abs(points[:, found] - points[:, [i]])),
                )
                full = parts.sum(axis=0)
                link = np.where(full <= mu, 1 - 2 * norm.cdf((full - mu) / s), 0.0).mean() if s > 0 else 0.0
                rest = [a for a in range(d) if a not in known]
                gain = 0.0
                if rest:
                    gamma = np.log(1 + 100 * len(rest) / d) / np.log(101)
                    gain = gamma * (1 - parts[rest].sum(axis=0) / len(rest)).mean()
                scores[i, o, r - 1] = link * max(gain, 0.5)
    return (time.perf_counter() - start) / (people * orders * d), scores


def ask(python: Path, script: str, *arguments: str) -> dict[str, float]:
    run = subprocess.run(
        [str(python), "-W", "ignore", str(HERE / script), *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout.splitlines()[-1])


def run(report: Report) -> None:
    """Time and print."""
    table = adult()
    people = np.arange(len(table))[:PEOPLE]
    ids = table.ids[people]
    da.reidentification_risk(table, table, people=ids[:20].tolist(), permutations=2)
    risk = stopwatch(lambda: da.reidentification_risk(table, table, people=ids, permutations=ORDERS), 1)
    shapley = stopwatch(lambda: da.reidentification_shapley(table, table, people=ids, permutations=ORDERS), 1)
    d = len([name for name in table.columns if name not in table.carried])
    each, _ = ball_tree_seconds(table, 5, 3)
    peer = each * PEOPLE * ORDERS * d
    what = f"{PEOPLE:,} people × {ORDERS} orders, {len(table):,} records of {table.name}: BallTree, 15 orders scaled"
    report("ball_tree_seconds", what, peer, "s")
    for key, what, ours in (("risk", "risk", risk), ("shapley", "Shapley values", shapley)):
        report(f"{key}_seconds", f"  datassay, {what}", ours, "s")
        report(f"{key}_ratio", f"  BallTree / datassay, {what}", peer / ours, "×", 50)
    large = da.census(48_842)
    if os.environ.get("DATASSAY_DATA"):
        large = da.load_dataset("adult", label="income", ignore=["fnlwgt", "education", "split"])
    report(
        "mondrian_seconds",
        "mondrian, k = 8, 48,842 × 13",
        stopwatch(lambda: da.release.mondrian(large, 8), 3),
        "s",
        3.0,
        False,
    )
    with tempfile.TemporaryDirectory() as folder:
        held = da.census(3000, seed=1).set_aside(["capital"])
        held = held.set_aside(["label_error"]) if "label_error" not in held.carried else held
        train, control = held.split(0.7, seed=0)

        def save(table: da.Table, name: str) -> str:
            frame = table.to_frame("pandas")[[*table.features, "income"]]
            frame.to_csv(Path(folder, name), index=False)
            return str(Path(folder, name))

        original, outside = save(train, "original.csv"), save(control, "control.csv")
        canon = environment("canon")
        anonymeter = environment("anonymeter")
        ours, theirs = [], []
        for k in (2, 8, 32):
            released = da.release.mondrian(train, k)
            diverse = da.release.mondrian(train, k, sensitive="income", l=2, t=0.3)
            plain, strict = save(released.table, f"k{k}.csv"), save(diverse.table, f"d{k}.csv")
            said = ask(canon, "canon.py", plain, strict, "income")
            report(f"k_{k}", f"pycanon: k of mondrian(k={k})", said["k"], "", float(k))
            report(f"k_diverse_{k}", f"pycanon: k of mondrian(k={k}, l=2, t=0.3)", said["k_diverse"], "", float(k))
            report(f"l_diverse_{k}", "  its l", said["l"], "", 2.0)
            report(f"t_diverse_{k}", "  its t", said["t"], "", 0.3, False)
            ours.append(da.reidentification_risk(train, released, people=300, permutations=20).mean())
            theirs.append(ask(anonymeter, "single_out.py", original, plain, outside)["risk"])
            report(f"anonymeter_{k}", f"k = {k}: anonymeter's singling-out risk (multivariate)", theirs[-1], "")
            report(f"risk_{k}", f"k = {k}: mean re-identification risk", ours[-1], "")
    falls = all(a >= b for values in (ours, theirs) for a, b in pairwise(values))
    report("same_order", "both rank k = 2, 8, 32 from more to less risk (1: yes)", float(falls), "", 1.0)
