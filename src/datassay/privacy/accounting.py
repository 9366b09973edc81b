"""How much privacy a release costs, and how much noise a budget allows.

A :class:`Cost` is noise of some kind and scale, on a statistic that one record can move by so much, so many times over,
on a sample or on all records. Costs compose: privacy-loss distributions (the vetted dp-accounting library) are
convolved; for plain Gaussian noise alone the closed form of Gaussian differential privacy, which is exact, is used.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Relation
from datassay._errors import UsageError
from datassay._renamed import renamed

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

Noise = Literal["gaussian", "discrete gaussian", "laplace", "discrete laplace"]
NOISES: tuple[Noise, ...] = get_args(Noise)


@renamed(neighbours="relation")
@dataclass(frozen=True)
class Cost:
    """Noise of one kind, added ``count`` times to a statistic that one record moves by at most ``sensitivity``.

    ``scale`` is the deviation of Gaussian noise or the scale of Laplace noise. ``sampling`` is the chance with which a
    record takes part each time, freshly drawn.
    """

    noise: Noise
    scale: float
    sensitivity: float = 1.0
    count: int = 1
    sampling: float = 1.0
    relation: Relation = "add-remove"

    def __post_init__(self) -> None:
        _checks.choice("noise", self.noise, NOISES)
        _checks.choice("relation", self.relation, get_args(Relation))
        _checks.number("scale", self.scale, above=0)
        _checks.number("sensitivity", self.sensitivity, above=0)
        _checks.integer("count", self.count, at_least=1)
        _checks.number("sampling", self.sampling, above=0, at_most=1)
        if self.noise.startswith("discrete") and self.sensitivity != int(self.sensitivity):
            raise UsageError(f"sensitivity must be a whole number for {self.noise} noise, got {self.sensitivity}")
        if self.relation == "replace" and self.sampling < 1 and self.noise != "gaussian":
            raise UsageError("with sampling, replaced records are accounted for Gaussian noise only")

    def to_dict(self) -> dict[str, str | float | int]:
        """The cost as plain values."""
        return asdict(self)


def check_delta(delta: object) -> float:
    """δ strictly between 0 and 1."""
    return _checks.number("delta", delta, above=0, below=1)


def check_epsilon(epsilon: object) -> float:
    """ε above 0."""
    return _checks.number("epsilon", epsilon, above=0)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) of Gaussian differential privacy with parameter μ: Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2).

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    from scipy.special import log_ndtr, ndtr

    # The second term is computed in logarithms: e^ε alone may overflow.
    return max(0.0, float(ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))))


def _gaussian_mu(costs: Sequence[Cost]) -> float | None:
    """μ of the composition if it is exactly Gaussian, else None."""
    if not costs or any(cost.noise != "gaussian" or cost.sampling < 1 for cost in costs):
        return None
    return math.sqrt(sum(cost.count * (cost.sensitivity / cost.scale) ** 2 for cost in costs))


def _distribution(cost: Cost, step: float) -> "PrivacyLossDistribution":
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    settings = {"value_discretization_interval": step, "sampling_prob": cost.sampling}
    if cost.noise == "gaussian":
        # Where a replaced record is sampled, the worst case moves from one side of zero to the other.
        replaced = cost.relation == "replace" and cost.sampling < 1
        settings["neighboring_relation"] = NeighboringRelation["REPLACE_ONE" if replaced else "ADD_OR_REMOVE_ONE"]
        one = pld.from_gaussian_mechanism(cost.scale, cost.sensitivity, **settings)
    elif cost.noise == "laplace":
        one = pld.from_laplace_mechanism(cost.scale, cost.sensitivity, **settings)
    elif cost.noise == "discrete gaussian":
        one = pld.from_discrete_gaussian_mechanism(cost.scale, int(cost.sensitivity), use_connect_dots=True, **settings)
    else:
        settings["use_connect_dots"] = True
        one = pld.from_discrete_laplace_mechanism(1.0 / cost.scale, int(cost.sensitivity), **settings)
    return one.self_compose(cost.count) if cost.count > 1 else one


def _compose(costs: Sequence[Cost], step: float | None = None) -> "PrivacyLossDistribution":
    # All must be rounded to the same grid: fine enough that rounding up, each time, adds next to nothing.
    if step is None:
        step = max(1e-6, min([1e-4, *(cost.sensitivity / cost.scale / 100 for cost in costs)]))
    total = _distribution(costs[0], step)
    for cost in costs[1:]:
        total = total.compose(_distribution(cost, step))
    return total


def accountant_of(costs: Sequence[Cost]) -> str:
    """The name of the accountant used for these costs."""
    return "Gaussian differential privacy (closed form)" if _gaussian_mu(costs) else "privacy-loss distributions"


def total_delta(costs: Sequence[Cost], epsilon: float) -> float:
    """The smallest δ for which all these costs together are (ε, δ)-differentially private."""
    if not costs:
        return 0.0
    mu = _gaussian_mu(costs)
    if mu is not None:
        return gaussian_delta(mu, epsilon)
    return float(_compose(costs).get_delta_for_epsilon(epsilon))


def delta_curve(costs: Sequence[Cost], epsilons: NDArray[np.float64], step: float | None = None) -> NDArray[np.float64]:
    """δ(ε) of all these costs together, at many ε; a coarser ``step`` is faster, and errs upwards."""
    mu = _gaussian_mu(costs)
    if mu is not None:
        return np.array([gaussian_delta(mu, float(epsilon)) for epsilon in epsilons])
    return np.asarray(_compose(costs, step).get_delta_for_epsilon(epsilons), np.float64)


def total_epsilon(costs: Sequence[Cost], delta: float) -> float:
    """The smallest ε for which all these costs together are (ε, δ)-differentially private.

    >>> one = Cost("gaussian", scale=10.0)
    >>> four = Cost("gaussian", scale=10.0, count=4)
    >>> total_epsilon([four], 1e-5) == total_epsilon([one] * 4, 1e-5)
    True
    """
    delta = check_delta(delta)
    if not costs:
        return 0.0
    mu = _gaussian_mu(costs)
    if mu is None:
        return _composed_epsilon(tuple(costs), delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(mu, middle) <= delta else (middle, high)
    return high


@lru_cache(maxsize=256)
def _composed_epsilon(costs: tuple[Cost, ...], delta: float) -> float:
    return float(_compose(costs).get_epsilon_for_delta(delta))


@renamed(neighbours="relation")
def calibrate(
    noise: Noise,
    epsilon: float,
    delta: float,
    *,
    sensitivity: float = 1.0,
    count: int = 1,
    sampling: float = 1.0,
    relation: Relation = "add-remove",
) -> Cost:
    """The least noise that keeps ``count`` releases (ε, δ)-differentially private, to 0.01% and never too little.

    >>> cost = calibrate("discrete gaussian", 0.1, 1e-4, count=200, sampling=0.01)
    >>> round(cost.scale, 2)
    3.62
    """
    least = Cost(noise, 1.0, sensitivity, count, sampling, relation)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if _gaussian_mu([least]) is None:  # distributions are summed on a grid, which must be neither too wide nor too fine
        known = {"epsilon": (epsilon, 1e-3, 200.0), "delta": (delta, 1e-15, 1.0), "sampling": (sampling, 1e-5, 1.0)}
        for name, (number, low, high) in known.items():
            if not low <= number <= high:
                raise UsageError(
                    f"{name}={number:g} is beyond what the accountant can do here: it must be from {low:g} to {high:g}"
                )
    return _calibrated(least, epsilon, delta)


@lru_cache(maxsize=256)
def _calibrated(what: Cost, epsilon: float, delta: float) -> Cost:
    from scipy.optimize import brentq

    def cost(log_scale: float) -> Cost:
        return replace(what, scale=math.exp(log_scale))

    @cache
    def excess(log_scale: float) -> float:
        """How far δ is from what is allowed; at most 0 where there is noise enough."""
        return math.log(max(total_delta([cost(log_scale)], epsilon), 1e-300)) - math.log(delta)

    step = math.log(2)
    # Plain Gaussian noise for everybody needs about as much, or more where there are samples.
    plain = replace(what, noise="gaussian", sampling=1.0)
    if what == plain:
        high = math.log(what.sensitivity * max(1.0, math.sqrt(what.count)) / min(1.0, epsilon))
    else:
        high = math.log(_calibrated(plain, epsilon, delta).scale)
    while excess(high) > 0:
        high += step
    low = high - step
    while low > math.log(1e-6) and excess(low) <= 0:
        high, low = low, low - step
    if excess(low) <= 0:
        return cost(low)
    found = float(brentq(excess, low, high, xtol=2e-5))
    while excess(found) > 0:  # never too little
        found += 3e-5
    return cost(found)
