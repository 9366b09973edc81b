"""Small deterministic uses of every public function, whose numbers must stay what they were in 0.1.0.

``values.json`` beside this file was made by 0.1.0 (``python tests/frozen/cases.py``), before the package was rebuilt,
and is not to be made again: tests/test_frozen.py compares today's numbers with it. A number that changes on purpose
takes its case with it, by hand, and the changelog says why.

What the package computes itself is compared bit for bit. Cases marked ``close`` go through a linear-algebra library,
special functions or models of other packages, which another processor or version may round differently: where it does
(:func:`platform` says so), they are compared to a relative 1e-9. Results are read as a user reads them, by ``to_frame``
and ``facts``; prose is not compared.
"""

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import datassay as da

VALUES = Path(__file__).with_name("values.json")
SHOWN = 16  # numbers of an array that are written out; of a longer one the first few and a digest
SAMPLED = 40  # numbers of a longer array of a close case, evenly spread


@dataclass(frozen=True)
class Case:
    """What is computed, and whether bit for bit."""

    compute: Callable[[], Any]
    close: bool

    def numbers(self) -> dict[str, Any]:
        """The case's numbers by name, as JSON holds them."""
        found: dict[str, Any] = {}
        _collect("", self.compute(), found, self.close)
        return found


CASES: dict[str, Case] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """Compare what the function returns bit for bit."""
    CASES[function.__name__] = Case(function, False)
    return function


def close(function: Callable[[], Any]) -> Callable[[], Any]:
    """Compare what the function returns to a relative 1e-9."""
    CASES[function.__name__] = Case(function, True)
    return function


def _collect(name: str, what: Any, found: dict[str, Any], near: bool) -> None:
    """Take a result apart, down to numbers and text."""
    if hasattr(what, "to_frame"):
        table = what.to_frame("pyarrow")
        what = {column: table[column].to_numpy() for column in table.column_names} | {"facts": what.facts()}
    elif hasattr(what, "facts"):
        what = {"facts": what.facts()}
    if isinstance(what, Mapping):
        for key, one in what.items():
            _collect(f"{name}/{key}" if name else str(key), one, found, near)
    elif isinstance(what, list | tuple) and any(
        isinstance(one, Mapping | list | tuple | np.ndarray) or hasattr(one, "facts") for one in what
    ):
        for i, one in enumerate(what):
            _collect(f"{name}/{i}" if name else str(i), one, found, near)
    elif isinstance(what, list | tuple | np.ndarray):
        found[name] = _array(np.asarray(what), near)
    else:
        found[name] = _number(what)


def _number(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value.hex()
    return value if value is None or isinstance(value, int | str) else str(value)


def _array(array: np.ndarray, near: bool) -> object:
    if array.dtype.kind in "OM":
        array = np.array(["" if one is None else str(one) for one in array.ravel()]).reshape(array.shape)
    wide = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.uint8}.get(array.dtype.kind)
    flat = array.ravel().astype(wide) if wide else array.ravel()
    shown = SAMPLED if near and array.dtype.kind == "f" else SHOWN
    if flat.size <= shown:
        return {"shape": list(array.shape), "all": [_number(one) for one in flat]}
    spread = flat[np.linspace(0, flat.size - 1, shown if near else 4).astype(int)]
    content = flat.tobytes() if wide else "\0".join(flat.tolist()).encode()
    digest = hashlib.sha256(content).hexdigest()[:32]
    return {"shape": list(array.shape), "some": [_number(one) for one in spread], "digest": digest}


def agree(new: Any, old: Any) -> bool:
    """Whether two numbers, texts or lists of either are the same to a relative 1e-9."""
    if isinstance(new, dict) and isinstance(old, dict):
        return new.keys() == old.keys() and all(key == "digest" or agree(new[key], old[key]) for key in new)
    if isinstance(new, list) and isinstance(old, list):
        return len(new) == len(old) and all(map(agree, new, old))
    try:
        one, other = float.fromhex(new), float.fromhex(old)
    except (TypeError, ValueError):
        return new == old
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))


def platform() -> str:
    """A digest of how functions are rounded here that the package takes from elsewhere."""
    from numba import njit
    from scipy import special

    rng = np.random.default_rng(0)
    x = rng.random(999)
    square = x[:900].reshape(30, 30)
    parts = [
        np.exp(x),
        np.log(x),
        np.log1p(x),
        np.log2(x),
        x**1.7,
        special.ndtr(x - 0.5),
        special.ndtri(x),
        special.digamma(x),
    ]
    parts += [special.betaincinv(2.0, 3.0, x), square @ square.T, np.linalg.eigh(square @ square.T)[1]]
    parts += [np.linalg.norm(square, axis=1)]
    for function in (math.exp, math.log, math.log2, math.log1p):
        compiled = njit(_each(function))
        parts.append(compiled(x))
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()[:32]


def _each(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    def all_of(x: np.ndarray) -> np.ndarray:
        found = np.empty_like(x)
        for i in range(len(x)):
            found[i] = function(x[i])
        return found

    return all_of


# --- data -----------------------------------------------------------------------------------------------------------


@cache
def _points() -> dict[str, Any]:
    """Points on a coarse grid, so that many are tied and some twice; others in general position; labels of 3 classes."""
    rng = np.random.default_rng(18)
    return {
        "X": rng.integers(-4, 5, (40, 3)) / 4.0,
        "V": rng.integers(-4, 5, (12, 3)) / 4.0,
        "R": rng.integers(-1000, 1001, (60, 4)) / 256.0,
        "RV": rng.integers(-1000, 1001, (15, 4)) / 256.0,
        "y": rng.integers(0, 3, 40),
        "yv": rng.integers(0, 3, 12),
        "w": rng.integers(1, 9, 12) / 4.0,
        "s": np.array(["no", "yes"])[rng.integers(0, 2, 60)],
        "sv": np.array(["no", "yes"])[rng.integers(0, 2, 15)],
        "D": rng.integers(0, 64, (40, 12)) / 16.0,
    }


def _grid() -> tuple[Any, ...]:
    p = _points()
    return p["X"], p["y"], p["V"], p["yv"]


def _real() -> tuple[Any, ...]:
    p = _points()
    return p["R"], p["s"], p["RV"], p["sv"]


@cache
def _people() -> da.Table:
    return da.census(120, seed=3)


@cache
def _group() -> da.Table:
    return da.voters(800, seed=1)


def _file(folder: str, text: str, name: str = "people.csv") -> Path:
    path = Path(folder) / name
    path.write_text(text, encoding="utf-8")
    return path


@cache
def _model() -> Any:
    """A model whose scores are whole counts: the class of the nearest mean of points on a grid."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Nearest(ClassifierMixin, BaseEstimator):
        def fit(self, X: Any, y: Any) -> "Nearest":
            self.classes_ = np.unique(y)
            self.means_ = np.array([np.asarray(X)[y == c].sum(axis=0) / (y == c).sum() for c in self.classes_])
            return self

        def predict(self, X: Any) -> np.ndarray:
            return self.classes_[((np.asarray(X)[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)]

    return Nearest()


# --- value ----------------------------------------------------------------------------------------------------------


@case
def knn_shapley() -> Any:
    X, y, V, yv = _grid()
    p = _points()
    found = {
        f"{utility}.{metric}.k={k}": da.knn_shapley(X, y, V, yv, k=k, utility=utility, metric=metric)
        for utility in ("soft", "fraction")
        for metric in ("euclidean", "manhattan", "cosine")
        for k in (1, 5, 60)
        if metric == "euclidean" or k == 5
    }
    found["float32"] = da.knn_shapley(X.astype(np.float32), y, V.astype(np.float32), yv, k=3)
    found["weights"] = da.knn_shapley(X, y, V, yv, weights=p["w"])
    found["balanced"] = da.knn_shapley(X, y, V, yv, weights="balanced")
    found["tolerance"] = da.knn_shapley(X, y, V, yv, k=2, utility="fraction", tolerance=0.1)
    found["precomputed"] = da.knn_shapley(None, y, p["D"].T, yv, k=3, metric="precomputed")
    found["n_classes"] = da.knn_shapley(X, y, V, yv, n_classes=5)
    found["blocks"] = da.knn_shapley(*_real(), k=4, memory=1 << 16, n_jobs=2)
    found["table"] = da.knn_shapley(_people(), k=5)
    return found


@case
def knn_banzhaf() -> Any:
    return {
        f"k={k}.tolerance={tolerance}": da.knn_banzhaf(*_grid(), k=k, tolerance=tolerance)
        for k in (1, 5, 50)
        for tolerance in (None, 1e-3)
    } | {"weights": da.knn_banzhaf(*_real(), k=3, weights=np.arange(1, 16) / 8)}


@case
def knn_loo() -> Any:
    return {
        f"{utility}.k={k}": da.knn_loo(*_grid(), k=k, utility=utility)
        for utility in ("soft", "fraction")
        for k in (1, 4, 60)
    }


@case
def self_shapley() -> Any:
    X, y = _grid()[:2]
    found = {
        f"{utility}.k={k}": da.self_shapley(X, y, k=k, utility=utility)
        for utility in ("soft", "fraction")
        for k in (1, 5)
    }
    return found | {"tolerance": da.self_shapley(X, y, k=2, utility="fraction", tolerance=0.2)}


@close
def tknn_shapley() -> Any:
    p = _points()
    found = {f"tau={tau}": da.tknn_shapley(*_real(), tau=tau) for tau in (-0.9, -0.5, 0.3)}
    found["euclidean"] = da.tknn_shapley(*_grid(), tau=1.0, metric="euclidean", weights=p["w"])
    found["classes"] = da.tknn_shapley(*_grid(), tau=1.0, metric="manhattan", n_classes=7)
    return found


@case
def waka() -> Any:
    found = {
        f"{variant}.k={k}": da.waka(*_grid(), k=k, variant=variant)
        for variant in ("signed", "removal", "addition")
        for k in (1, 5)
    }
    found["tau"] = da.waka(*_grid(), k=4, variant="removal", tau=0.25)
    found["tolerance"] = da.waka(*_real(), k=3, tolerance=1e-4, weights="balanced")
    return found


@case
def self_waka() -> Any:
    X, y = _grid()[:2]
    return {f"k={k}": da.self_waka(X, y, k=k) for k in (1, 3, 5)} | {
        "tolerance": da.self_waka(X, y, k=2, tolerance=1e-3)
    }


@case
def waka_influence() -> Any:
    X, y = _grid()[:2]
    return {f"exact={exact}": da.waka_influence(X, y, [0, 7, 20], k=3, exact=exact) for exact in (True, False)}


@case
def balance_weights() -> Any:
    return [da.balance_weights(_points()["yv"], ratio) for ratio in (1.0, 2.5)]


@case
def tuning() -> Any:
    return {
        "k": da.tune_k(*_grid()),
        "k given": da.tune_k(*_real(), [1, 3, 9], "manhattan", "balanced"),
        "tau": da.tune_tau(*_real(), [-0.9, -0.6, -0.2, 0.1]),
    }


@case
def nearest_neighbours() -> Any:
    X, _, V, _ = _grid()
    return {
        metric: da.nearest_neighbours(X, V, limit=7, metric=metric) for metric in ("euclidean", "manhattan", "cosine")
    } | {"each other": da.nearest_neighbours(X, limit=5)}


@case
def neighbour_graph() -> Any:
    X, y, V, yv = _grid()
    near, distances = da.nearest_neighbours(X, V, limit=20)
    graph = da.NeighbourGraph(20 * np.arange(13), near.ravel(), distances.ravel(), 40)
    return da.knn_banzhaf(None, y, graph, yv, k=3, metric="precomputed", tolerance=0.01)


# --- models ---------------------------------------------------------------------------------------------------------


def _few() -> tuple[Any, ...]:
    X, y, V, yv = _grid()
    return X[:9], y[:9] % 2, V, yv % 2


def _many() -> tuple[Any, ...]:
    X, y, V, yv = _grid()
    return X[:24], y[:24] % 2, V, yv % 2


def _semivalues(**options: Any) -> dict[str, Any]:
    return {
        "shapley": da.data_shapley(*options["data"], **options["how"]),
        "banzhaf": da.data_banzhaf(*options["data"], **options["how"]),
        "beta": da.beta_shapley(*options["data"], alpha=4.0, **options["how"]),
    }


@close
def semivalues_exact() -> Any:
    return _semivalues(data=(_model(), *_few()), how={"sampling": "exact"}) | {
        "leave one out": da.leave_one_out(_model(), *_few())
    }


@close
def semivalues_sampled() -> Any:
    how = {"max_coalitions": 300, "seed": 4}
    found = _semivalues(data=(_model(), *_many()), how=how)
    for sampling in ("plain", "antithetic", "stratified"):
        found[sampling] = da.data_shapley(_model(), *_many(), sampling=sampling, **how)
    found["truncated"] = da.data_shapley(_model(), *_many(), truncation=0.05, **how)
    groups = np.arange(24) // 3
    return found | {"groups": da.data_shapley(_model(), *_many(), groups=groups, max_coalitions=200, seed=1)}


@close
def semivalues_knn() -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(3)
    return da.data_shapley(model, *_many(), max_coalitions=200, seed=2)


@close
def data_oob() -> Any:
    X, y = _many()[:2]
    return da.data_oob(_model(), X, y, max_bags=300, seed=5)


@case
def layered_design() -> Any:
    found = {}
    for bound in ("hoeffding", "bernstein"):
        design = da.layered_design(30, alpha=0.3, beta=0.1, c=1.0, bound=bound, seed=2)
        found[bound] = {
            "facts": design.facts(),
            "sizes": design.sizes,
            "members": np.concatenate(design.members),
            "n": design.n,
        }
    return found


@close
def layered_shapley() -> Any:
    design = da.layered_design(24, alpha=0.6, beta=0.1, c=1.0, seed=2)
    found: dict[str, Any] = {"plain": da.layered_shapley(_model(), *_many(), design=design)}
    X, y, V, yv = _many()
    stable = da.StableLogisticRegression(lam=1.0, kappa=2.0)
    found["stable"] = da.layered_shapley(stable, X, y, V, yv, alpha=1.0, beta=0.1, seed=3)
    return found


@close
def stable_logistic_regression() -> Any:
    R, s, RV, _ = _real()
    model = da.StableLogisticRegression(lam=0.5, kappa=3.0).fit(R, s)
    return {
        "probability": model.predict_proba(RV),
        "c": model.c,
        "replace one": model.replace_one(60),
        "remove one": model.remove_one(60),
    }


# --- evaluate -------------------------------------------------------------------------------------------------------


@case
def detection() -> Any:
    X, y, V, yv = _grid()
    flipped, wrong = da.corrupt_labels(y, rate=0.2, seed=6)
    values = da.knn_shapley(X, flipped, V, yv)
    return {"labels": flipped, "wrong": wrong, "detection": da.detect_errors(values, wrong)}


@close
def corrupt_features() -> Any:
    return [da.corrupt_features(_points()["R"], 0.2, seed=1, scale=scale) for scale in ("norm", "mean-abs")]


@case
def likely_errors() -> Any:
    X, y = _grid()[:2]
    return {"plain": da.likely_errors(X, y, k=5), "table": da.likely_errors(_people())}


@close
def curves() -> Any:
    X, y, V, yv = _grid()
    values = da.knn_shapley(X, y, V, yv)
    return {
        "removal": da.removal_curve(values, X, y, V, yv, n_random=4, seed=1),
        "addition": da.addition_curve(values, X, y, V, yv, n_random=3, fractions=(0.1, 0.5, 0.9)),
    }


# --- privacy --------------------------------------------------------------------------------------------------------


@close
def accounting() -> Any:
    from datassay.privacy import Cost, calibrate, total_delta, total_epsilon

    made = {
        "gaussian": Cost("gaussian", 4.0, count=10),
        "sampled": Cost("gaussian", 1.5, count=20, sampling=0.02),
        "replaced": Cost("gaussian", 1.5, count=5, sampling=0.05, neighbours="replace"),
        "discrete": Cost("discrete gaussian", 3.0, count=4),
        "laplace": Cost("laplace", 2.0, 0.5, count=3),
        "discrete laplace": Cost("discrete laplace", 4.0, 2.0),
    }
    found: dict[str, Any] = {
        name: [total_epsilon([cost], 1e-5), total_delta([cost], 0.7)] for name, cost in made.items()
    }
    found["together"] = [total_epsilon(list(made.values())[:2], 1e-5), total_delta(list(made.values())[3:], 2.0)]
    found["calibrated"] = [
        calibrate("gaussian", 0.5, 1e-5, sensitivity=2.0, count=7).scale,
        calibrate("discrete gaussian", 0.1, 1e-4, count=200, sampling=0.01).scale,
    ]
    return found


@close
def private_counts() -> Any:
    """At so large an ε noise on counts is 0, but for a chance of one in many millions: the rest is deterministic."""
    R, s, RV, sv = _real()
    found: dict[str, Any] = {}
    ways = (("histogram", "add-remove", 40.0), ("histogram", "replace", 40.0), ("paper", "add-remove", 200.0))
    for release, relation, epsilon in ways:
        made = da.private_tknn_shapley(
            R, s, RV[:1], sv[:1], tau=0.1, epsilon=epsilon, delta=0.1, neighbours=relation, release=release, n_classes=2
        )
        found[f"{release}.{relation}"] = {
            "values": made.values,
            "counts": made.statistics.counts,
            "guarantee": _promise(made),
            "newcomer": made.value_record(RV[5], "yes"),
        }
    return found


def _promise(made: Any) -> dict[str, Any]:
    cost = made.costs[0]
    return {
        "epsilon": made.guarantee.epsilon,
        "delta": made.guarantee.delta,
        "sampling": made.guarantee.sampling,
        "audience": made.guarantee.audience,
        "certified": made.guarantee.certified,
        "noise": cost.noise,
        "scale": cost.scale,
        "sensitivity": cost.sensitivity,
        "count": cost.count,
        "for 7": made.epsilon_for(7),
    }


@close
def private_guarantees() -> Any:
    R, s, RV, sv = _real()
    found = {}
    for relation in ("add-remove", "replace"):
        found[f"knn.{relation}"] = _promise(da.private_knn_shapley(R, s, RV, sv, k=3, neighbours=relation))
        found[f"tknn.{relation}"] = _promise(da.private_tknn_shapley(R, s, RV, sv, neighbours=relation, epsilon=0.5))
    found["knn.sampled"] = _promise(da.private_knn_shapley(R, s, RV, sv, sampling=0.2))
    found["tknn.sampled"] = _promise(da.private_tknn_shapley(R, s, RV, sv, sampling=0.05, delta=1e-4))
    found["tknn.geometry"] = _promise(da.private_tknn_shapley(R, s, RV, sv, tau=-0.9, geometry=True))
    return found


@close
def plan_private_layered() -> Any:
    public = da.census(80, seed=1)
    found = {}
    for noise in ("certified", "paper"):
        for constants in ("sharp", "textbook"):
            plan = da.plan_private_layered(
                da.StableLogisticRegression(kappa=2.0),
                60,
                public,
                alpha=1.0,
                beta=0.1,
                n_jobs=1,
                noise=noise,
                constants=constants,
            )
            found[f"{noise}.{constants}"] = {
                "facts": plan.facts(),
                "sensitivity": plan.sensitivity,
                "scale": plan.scale,
            }
    return found


@close
def ledger() -> Any:
    from datassay.privacy import Cost

    with tempfile.TemporaryDirectory() as folder:
        book = da.Ledger(Path(folder) / "market.ledger", epsilon=3.0, delta=1e-5)
        for i in range(3):
            book.complete(book.spend("d", f"q{i}", [Cost("gaussian", 5.0, count=2)], "counts", "public"), "[1]")
        return {"spent": book.spent(), "remaining": book.remaining(), "facts": book.facts()}


@close
def audit() -> Any:
    def mechanism(data: object, trials: int) -> np.ndarray:
        rng = np.random.default_rng(len(str(data)) + trials)
        return rng.integers(-6, 7, (trials, 1)) + float(np.sum(data))

    made = da.audit(mechanism, [0.0, 1.0], [0.0], epsilon=0.5, trials=4000)
    return {"facts": made.facts(), "true": made.true_positives, "false": made.false_positives}


# --- attacks --------------------------------------------------------------------------------------------------------


@close
def membership_attack() -> Any:
    R, s = _real()[:2]
    return {
        method: da.membership_attack(R, s, method, k=3, games=6, targets=20, shadows=8, seed=2)
        for method in ("lira", "lira-offline", "t-waka", "confidence", "calibrated-confidence")
    } | {"manhattan": da.membership_attack(R, s, "t-waka", k=2, metric="manhattan", games=4, targets=15)}


@close
def onion() -> Any:
    R, s = _real()[:2]
    return {
        by: da.onion(R, s, by, 0.1, k=3, games=6, shadows=4, seed=1)
        for by in ("self_waka", "self_shapley", "success", "random")
    }


@close
def value_and_exposure() -> Any:
    R, s, RV, sv = _real()
    return da.value_and_exposure(da.knn_shapley(R, s, RV, sv), da.self_waka(R, s))


@close
def value_score_attack() -> Any:
    R, s, RV, sv = _real()
    return {
        scores: da.value_score_attack(R, s, RV, sv, scores=scores, members=12, shadow=20, shadow_sets=6, seed=1)
        for scores in ("knn_shapley", "tknn_shapley")
    }


# --- identity -------------------------------------------------------------------------------------------------------


@close
def uniqueness_exact() -> Any:
    table = _group()
    made = da.uniqueness_shapley(table, method="exact")
    names = list(made.columns)
    return {
        "plain": made,
        "mean": made.mean(),
        "groups": made.groups(),
        "group sizes": made.group_sizes,
        "sets": made.sets(),
        "interactions": made.interactions(),
        "by": made.by(min(names, key=lambda name: len(np.unique(table.columns[name].data)))),
        "totals": made.totals,
        "of 3": made.of(made.ids[3]),
        "entropy": made.entropy,
        "few": da.uniqueness_shapley(_people(), ["sex", "marital", "region"]),
    }


@close
def uniqueness_otherwise() -> Any:
    table, people = _group(), _people()
    return {
        "sampled": da.uniqueness_shapley(table, method="sampled", permutations=20, seed=3),
        "weights": da.uniqueness_shapley(table, weights=np.arange(1, 801) / 64),
        "key": da.uniqueness_shapley(people, ["age", "sex"], key=True),
        "coarsened": da.uniqueness_shapley(people, ["age", "hours", "sex"], coarsen={"age": 10, "hours": 20}),
        "compared": da.uniqueness_shapley(people, ["age", "hours", "sex"]).compare({"age": 10}, drop=["sex"]),
    }


@close
def group_sizes() -> Any:
    people = _people()
    return {
        "plain": da.group_sizes(people, ["sex", "marital"]),
        "coarsened": da.group_sizes(people, ["age"], coarsen={"age": 5}),
        "weights": da.group_sizes(people, ["region"], weights=np.arange(1, 121) / 8),
        "bins": da.measured_bins(people),
    }


@close
def coarsening() -> Any:
    return da.suggest_coarsening(_people(), ["age", "hours", "region"], target=0.2)


def _released() -> Any:
    return da.release.mondrian(_people(), 4).table


NAMES = ["age", "education", "sex", "region"]


@close
def risk() -> Any:
    people, released = _people(), _released()
    how: dict[str, Any] = {"columns": NAMES}
    return {
        "exact": da.reidentification_risk(people, released, method="exact", **how),
        "sampled": da.reidentification_risk(people, released, method="sampled", permutations=12, seed=2, **how),
        "binomial": da.reidentification_risk(people, released, scenarios="binomial", **how),
        "weights": da.reidentification_risk(people, released, weights={"age": 2.0, "sex": 0.5}, neighbours=8, **how),
        "named": da.reidentification_risk(
            people,
            released,
            scenarios={"a": ["age"], "b": ["age", "sex"]},
            scenario_weights={"a": 1.0, "b": 3.0},
            **how,
        ),
        "synthetic": da.reidentification_risk(
            people, da.release.synthesize(people, seed=3).table, synthetic=True, **how
        ),
    }


@close
def risk_shapley() -> Any:
    people, released = _people(), _released()
    return {
        "exact": da.reidentification_shapley(people, released, columns=NAMES, method="exact"),
        "sampled": da.reidentification_shapley(
            people, released, columns=NAMES, method="sampled", permutations=9, seed=1
        ),
    }


@close
def queries() -> Any:
    return da.score_queries(
        _people(), _released(), ["age == 40", "sex == 'female' and region == 'north'", "hours > 50"]
    )


# --- release --------------------------------------------------------------------------------------------------------


@case
def releases() -> Any:
    people = _people()
    values = da.knn_shapley(people)
    return {
        "keep": da.release.keep(people),
        "remove": da.release.remove(people, 0.25, seed=2),
        "by value": da.release.remove(people, 0.25, values=values),
        "mondrian": da.release.mondrian(people, 5),
        "relaxed": da.release.mondrian(people, 5, strict=False),
        "diverse": da.release.mondrian(people, 4, sensitive="income", l=2),
        "close": da.release.mondrian(people, 4, sensitive="income", t=0.3),
    }


@close
def copula() -> Any:
    return da.release.synthesize(_people(), "copula", n=50, seed=1)


@close
def comparison() -> Any:
    made = da.compare_releases(
        da.census(150, seed=2),
        strategies=("keep", "k=2", "k=8", "remove=0.25"),
        individuals=True,
        columns=NAMES,
        permutations=5,
    )
    return {"made": made, "pareto": made.pareto(), "individuals": made.individuals()}


# --- market ---------------------------------------------------------------------------------------------------------


@close
def prices() -> Any:
    values = da.knn_shapley(*_real())
    made = da.price(values, theta=1.5, gamma=2.0)
    bought = made.buy(share=0.5)
    return {"made": made, "bought": bought, "proven": bought.proven, "theta 0": da.price(values, theta=0.0)}


@close
def price_search() -> Any:
    values = da.knn_shapley(*_real())
    return {
        "share": da.search_prices(values, share=0.4),
        "gammas": da.search_prices(values, share=0.4, gammas=(0.5, 2.0)),
    }


@close
def disclosure() -> Any:
    R, s, RV, sv = _real()
    how: dict[str, Any] = {"epsilon": 2.0, "t_max": 6, "k": 3, "seed": 5}
    found: dict[str, Any] = {}
    for strategy in ("random", "shapley", "shapley-commit", "ucb"):
        made = da.disclosure_game(R, s, RV, sv, strategy, **how)
        found[strategy] = {"made": made, "trajectory": dict(made.trajectory), "centres": made.centres}
    found["accuracy"] = da.disclosure_game(R, s, RV, sv, utility="accuracy", unseen="absent", **how)
    played = da.disclosure_game(R, s, RV, sv, **how)
    found["leakage"] = da.disclosure_leakage(R, s, played, games=4, targets=15, shadows=4)
    found["insider"] = da.disclosure_leakage(R, s, played, attacker="insider", games=4, targets=15, shadows=4)
    return found


@close
def equilibrium() -> Any:
    R, s, RV, sv = _real()
    made = da.search_equilibrium(R, s, RV, sv, (1.0, 3.0), (3, 6), (0.0, 0.1), repeats=2, k=3, seed=1)
    return {"made": made, "table": made.table("reached", 3.0), "best": made.best_response(3.0, 6)}


# --- data -----------------------------------------------------------------------------------------------------------

PEOPLE = "name,age,sex,zip,hired,income\n" + "\n".join(
    ",".join(
        [
            f"p{i}",
            "" if i == 4 else str(20 + i * 7 % 31),
            "fm"[i % 2],
            f"{0 if i % 3 else 1}12{i % 4}",
            f"2024-0{1 + i % 9}-1{i % 10}",
            ["low", "high"][i * 5 % 3 // 2],
        ]
    )
    for i in range(24)
)


@case
def files() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = _file(folder, PEOPLE)
        table = da.read_table(file, label="income", id="name", categorical=["zip"])
        counted = _file(folder, "a,b,people\nx,1,3\ny,2,2\nx,2,1\n", "counted.csv")
        distinct = da.read_distinct(file, ["sex", "zip", "income"], categorical=["zip"])
        return {
            "table": table,
            "distinct": distinct,
            "counted": da.read_distinct(counted, weight="people"),
            "values": da.knn_shapley(table, k=3),
            "part": da.read_table(file, columns=["age", "sex"]),
        }


@case
def encoders() -> Any:
    people = _people()
    return {
        f"{scale}.{dtype}": da.fit_encoder(people, scale=scale, dtype=dtype).transform(people)
        for scale in ("standard", "minmax", "none")
        for dtype in ("float64", "float32")
    }


@case
def records() -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    R, s, RV, sv = _real()
    with tempfile.TemporaryDirectory() as folder:
        train, valid = Path(folder) / "train.parquet", Path(folder) / "valid.parquet"
        for path, points, labels in ((train, R, s), (valid, RV, sv)):
            columns = {f"x{j}": points[:, j] for j in range(4)} | {
                "y": labels,
                "name": [f"r{i}" for i in range(len(s))][: len(labels)],
            }
            pq.write_table(pa.table(columns), path)
        opened = da.open_records(train, "y", id="name"), da.open_records(valid, "y", id="name")
        scaled = da.open_records(train, "y", id="name", scale="standard")
        return {
            "values": da.knn_shapley(opened[0], None, opened[1], k=3, utility="fraction", tolerance=0.005),
            "banzhaf": da.knn_banzhaf(scaled, None, opened[1], k=3),
            "tknn": da.tknn_shapley(opened[0], None, opened[1], tau=6.0, metric="euclidean"),
        }


@case
def simulated() -> Any:
    return {"census": da.census(50, seed=7), "voters": da.voters(60, seed=7)}


# --- report ---------------------------------------------------------------------------------------------------------


@close
def report() -> Any:
    made = da.report(_people(), quick=True, n_jobs=1, truth="label_error")
    facts = {name: fact for name, fact in made.facts().items() if not name.startswith("private_")}  # noise
    return {"facts": facts, "records": dict(made.records), "sections": [section.key for section in made.sections]}


def main() -> None:
    """Write the numbers of all cases; each is computed twice, since what differs cannot be frozen."""
    found = {}
    for name, one in CASES.items():
        found[name] = one.numbers()
        again = one.numbers()
        differing = [key for key in found[name] if found[name][key] != again[key]]
        if differing:
            raise SystemExit(f"{name} gives different numbers twice: {differing}")
    lines = [f'"platform": {json.dumps(platform())}']
    lines += [f"{json.dumps(name)}: {json.dumps(numbers, separators=(',', ':'))}" for name, numbers in found.items()]
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
