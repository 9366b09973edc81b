"""Logistic regression whose answer no single record can move far: the learner behind certified private values.

Minimised is (1/m) Σ log(1 + exp(−y w·x)) + (λ/2)‖w‖² over m records of length at most κ. It is λ-strongly convex, so
replacing one record moves w by at most 2κ/(λm) and the loss of any record by at most 2κ²/(λm): less and less as m
grows (Bousquet & Elisseeff, Stability and Generalization, 2002; Mathematics §6). Two things spoil that, and are ruled
out here: an intercept without penalty (here it is the weight of a constant feature, penalised like the others and
counted in κ), and a penalty that does not grow with m (scikit-learn's at a fixed C).
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y

from datassay import _checks
from datassay._errors import InputError, UsageError

Floats = NDArray[np.float64]

# What a fit can reach whatever the data are: whether it is reached must not depend on them.
SMALLEST_TOLERANCE = 1e-10
LARGEST_C = 1e6


@dataclass(frozen=True)
class Stability:
    """How far replacing one record can move the mean logistic loss on a public validation set.

    Textbook constants take the gradient of a loss to be anything of length κ. It is not: with a = yx, it is −a σ(−a·w),
    and a minimiser is short, since λ‖w‖ = |mean of a·u σ(−a·w)| ≤ max_{s ≤ κ} s σ(−s‖w‖) for u = w/‖w‖. Hence

    * ``weights``: ‖w‖ ≤ W, the root of that inequality (and what the solver leaves);
    * ``diameter``: two such gradients at one w of length at most W are at most this far apart, so replacing one of m
      records moves w by at most ``diameter``/(λm);
    * ``slope``: the gradient of the mean validation loss, ‖mean of a σ(−a·w)‖ ≤ ‖ā‖/2 + ‖mean of a τ(a·w)‖ with
      τ(s) = tanh(s/2)/2, is no longer than this anywhere within W: the validation set is public, so ā is known.

    Replacing one of m records moves the mean loss by at most slope · (diameter/(λm) + 2t/λ), t the solver's tolerance.
    """

    weights: float
    diameter: float
    slope: float
    lam: float
    tolerance: float

    @classmethod
    def of(cls, model: "StableLogisticRegression", points_val: Floats, sign_val: Floats) -> "Stability":
        """The constants of a model on validation points as it prepares them."""
        longest = _longest_weights(model.length, float(model.lam)) + model.tolerance / model.lam
        signed = points_val * sign_val[:, None]
        lengths = np.linalg.norm(signed, axis=1)
        bend = np.tanh(lengths * longest / 2) / 2
        covariance = signed.T @ signed / len(signed)
        largest = float(np.linalg.eigvalsh(covariance)[-1]) * (1 + 1e-9)
        bent = min(
            float((lengths * bend).mean()),
            math.sqrt(max(largest, 0.0) * float((bend**2).mean())),
            largest * longest / 4,
        )
        slope = (float(np.linalg.norm(signed.mean(axis=0))) / 2 + bent) * (1 + 1e-9)
        diameter = model.length * _gradient_diameter(model.length * longest)
        return cls(longest, diameter, min(slope, model.length), float(model.lam), float(model.tolerance))

    def replace_one(self, m: int) -> float:
        """The mean validation loss moves by no more when one of m records is replaced."""
        return self.slope * (self.diameter / _checks.integer("m", m, at_least=1) + 2 * self.tolerance) / self.lam


def _longest_weights(length: float, lam: float) -> float:
    """The largest W with λW ≤ max over 0 ≤ s ≤ κ of s σ(−sW)."""

    def pull(W: float) -> float:
        s = min(length, _PEAK / W) if W > 0 else length
        return s / (1 + math.exp(s * W))

    low, high = 0.0, length / (2 * lam)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if lam * middle <= pull(middle) else (low, middle)
    return high


_PEAK = 1.2784645427610738  # where s σ(−s) is largest


@lru_cache(maxsize=64)
def _gradient_diameter(reach: float) -> float:
    """The most by which a σ(−a·w) of two vectors a of length at most 1 can differ, for ‖w‖ ≤ ``reach``.

    Along w, b = a·u gives p(b) = b σ(−b t) and at most q(b) = σ(−b t) √(1 − b²) across it. The largest distance is
    bounded over cells of b, where |p′| ≤ 1.2, and over steps of t, along which it changes by at most half a step.
    """
    if reach > 12:
        return 2.0
    cells, steps = 800, max(1, math.ceil(reach / 0.02))
    edges = np.linspace(-1, 1, cells + 1)
    low, high = edges[:-1], edges[1:]
    nearest = np.where(low * high <= 0, 0.0, np.minimum(np.abs(low), np.abs(high)))
    slack = 2 * 1.2 * (2 / cells)
    best = 0.0
    for t in np.linspace(0, reach, steps + 1):
        p = low / (1 + np.exp(low * t))
        q = np.sqrt(1 - nearest**2) / (1 + np.exp(low * t))
        along = np.abs(p[:, None] - p) + slack
        best = max(best, float(np.sqrt((along**2 + (q[:, None] + q) ** 2).max())))
    return min(2.0, best + 0.5 * reach / steps)


def _two_classes(X: ArrayLike, y: ArrayLike, name: str) -> tuple[Floats, NDArray[Any], Floats]:
    """Features, the classes, and 1 for each record of the last one and −1 for the others."""
    points, labels = check_X_y(X, y, dtype=np.float64)
    classes = np.unique(labels)
    if len(classes) > 2:
        raise InputError(f"StableLogisticRegression tells two classes apart, and {name} has {len(classes)}")
    return points, classes, np.where(labels == classes[-1], 1.0, -1.0)


class StableLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression of two classes with known stability, as a scikit-learn classifier.

    Parameters
    ----------
    kappa
        A public bound on the length of a record's features. It is yours to give and never taken from the data; longer
        records are shortened to it, each by itself.
    lam
        λ, the strength of the penalty on the mean loss.
    fit_intercept
        Append a constant feature of size ``intercept_scaling``, penalised like the others.
    intercept_scaling
        Size of that feature; it counts in the length of a record.
    tol
        The gradient of the objective is brought below this, in parts of κ; what is left of it counts in the stability.

    Examples
    --------
    >>> from datassay import StableLogisticRegression
    >>> model = StableLogisticRegression(kappa=1.0, lam=0.5, fit_intercept=False)
    >>> model.fit([[0.5], [-0.5], [0.8]], ["yes", "no", "yes"]).predict([[0.3], [-0.2]]).tolist()
    ['yes', 'no']
    >>> round(model.replace_one(100), 6)  # no loss moves by more when one of 100 records is replaced: 2κ²/(λm)
    0.04
    """

    def __init__(
        self,
        kappa: float = 1.0,
        lam: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-9,
    ) -> None:
        self.kappa = kappa
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol

    def check_parameters(self) -> None:
        """Say what is wrong with a parameter, if anything is."""
        _checks.number("kappa", self.kappa, above=0)
        _checks.number("lam", self.lam, above=0)
        _checks.number("tol", self.tol, at_least=SMALLEST_TOLERANCE, at_most=1e-3)
        _checks.number("intercept_scaling", self.intercept_scaling, above=0)
        if self.c > LARGEST_C:
            raise UsageError(f"κ²/λ is {self.c:.2g}, too large for a stable fit: give a smaller kappa or a larger lam")

    @property
    def length(self) -> float:
        """κ of the formulas: no record is longer, the constant feature included."""
        return math.sqrt(self._length2)

    @property
    def _length2(self) -> float:
        kappa = _checks.number("kappa", self.kappa, above=0)
        return kappa**2 + (self.intercept_scaling**2 if self.fit_intercept else 0.0)

    @property
    def c(self) -> float:
        """The constant of Layered Shapley, κ²/λ with the constant feature's square in κ² (Mathematics §6).

        A record adds at most c/k to the utility of k others.
        """
        return float(self._length2 / _checks.number("lam", self.lam, above=0))

    @property
    def tolerance(self) -> float:
        """T of the formulas: the gradient of the objective is no longer than this where a fit ends."""
        return self.tol * self.length

    @property
    def solver_error(self) -> float:
        """What an unfinished fit may add to a loss: κt/λ."""
        return self.length * self.tolerance / self.lam

    def replace_one(self, m: int) -> float:
        """No loss moves by more when one of m records is replaced: 2κ²/(λm), and the solver's error on both sides."""
        return 2 * self.c / _checks.integer("m", m, at_least=1) + 2 * self.solver_error

    def remove_one(self, m: int) -> float:
        """No loss moves by more when one of m records is removed: κ²/(λm), and the solver's error on both sides."""
        return self.c / _checks.integer("m", m, at_least=1) + 2 * self.solver_error

    def stability_on(self, X_val: ArrayLike, y_val: ArrayLike) -> "Stability":
        """The same constants for the mean loss on a public validation set: sharper, and proven (``Stability``)."""
        self.check_parameters()
        points, _, sign = _two_classes(X_val, y_val, "y_val")
        return Stability.of(self, self.prepare(points), sign)

    def prepare(self, X: Floats) -> Floats:
        """Features as the solver sees them: each row shortened to κ where it is longer, the constant appended."""
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(X, axis=1, keepdims=True)
        # A little inside, so that rounding cannot bring a row beyond the bound.
        most = self.kappa * (1 - 1e-12)
        bounded = X * np.where(lengths > most, most / np.where(lengths > 0, lengths, 1.0), 1.0)
        if not self.fit_intercept:
            return np.ascontiguousarray(bounded)
        return np.hstack([bounded, np.full((len(X), 1), float(self.intercept_scaling))])

    def fit(self, X: ArrayLike, y: ArrayLike) -> "StableLogisticRegression":
        """Find the minimum; records of one class alone are allowed."""
        from datassay.value.models import kernels

        self.check_parameters()
        points, self.classes_, sign = _two_classes(X, y, "y")
        self.n_features_in_ = points.shape[1]
        prepared = self.prepare(points)
        w = np.empty(prepared.shape[1])
        ridge, start = np.full(len(w), float(self.lam)), np.zeros(len(w))
        self.gradient_norm_ = float(
            kernels.logistic_fit(prepared, sign, np.arange(len(sign)), ridge, True, start, self.tolerance, w)
        )
        if not self.gradient_norm_ <= self.tolerance:
            raise InputError(f"the gradient could not be brought below {self.tolerance:g}: {self.gradient_norm_:.3g}")
        self.coef_ = w[None, : self.n_features_in_]
        self.intercept_ = w[self.n_features_in_ :] * self.intercept_scaling if self.fit_intercept else np.zeros(1)
        self._weights = w
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """w·x: above 0 for the second class."""
        check_is_fitted(self)
        points = check_array(X, dtype=np.float64)
        if points.shape[1] != self.n_features_in_:
            raise InputError(f"X has {points.shape[1]} features, and the model was fitted to {self.n_features_in_}")
        return np.asarray(self.prepare(points) @ self._weights)

    def predict_proba(self, X: ArrayLike) -> Floats:
        """The chance of each class."""
        from scipy.special import expit

        second = expit(self.decision_function(X))
        if len(self.classes_) == 1:
            return np.ones((len(second), 1))
        return np.stack([1 - second, second], axis=1)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likelier class."""
        decision = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.full(len(decision), self.classes_[0])
        return np.asarray(self.classes_[(decision > 0).astype(int)])
