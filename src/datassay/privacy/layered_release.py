"""Private Layered Shapley values: Laplace noise as large as the drawn coalitions make necessary, and no larger.

Coalitions are drawn by index, without a look at the data. For the drawn design, replacing the record of j changes the
value of i by at most Δ_ij = Σ over coalitions C with j and without i of (γ_k + γ_{k+1}) / (n m_k), where γ_m is how far
replacing one of m records can move the utility of the learner. Laplace noise of scale max_j Δ_ij/ε makes the value of i
ε-differentially private for every design, even a published one, without amplification by sampling (Mathematics §6).

Values are of the order U/n, and so is the noise of κ²/(λnε), for every n. So the rank correlation to expect is
predicted, from public data, before anything is spent.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Bound, Constants, NoiseKind
from datassay._errors import InputError, UnavailableError, UsageError
from datassay._run import Threads, documented
from datassay._version import __version__
from datassay.data import Ids, Inputs, Labels, Points, prepare
from datassay.neighbors import as_floats
from datassay.privacy.accounting import Cost, check_delta, check_epsilon, total_epsilon
from datassay.privacy.guarantee import Guarantee
from datassay.privacy.ledger import Ledger
from datassay.privacy.mechanisms import add_noise
from datassay.privacy.promise import PlannedRelease, check_ledger
from datassay.privacy.public import check_public
from datassay.privacy.releases import private_tknn_shapley
from datassay.privacy.values import PrivateValues
from datassay.results import Fact, Floats, Parameter, Result, as_facts
from datassay.value import Design, data_shapley, is_stable, layered_design, layered_shapley, model_name

if TYPE_CHECKING:
    from datassay.value import StableLogisticRegression

LOW_CORRELATION = 0.5


class LowUtilityWarning(UserWarning):
    """The values about to be released will say little, for the noise that they need."""


def sensitivities(design: Design, stability: Any) -> Floats:
    """Δ_ij: the most by which the value of i moves when the record of j is replaced, i by j.

    ``stability.replace_one(m)`` is γ_m. A little is added for rounding.

    >>> import datassay as da
    >>> model = da.StableLogisticRegression(fit_intercept=False)
    >>> design = da.layered_design(2, alpha=0.1, c=model.c)  # both coalitions: the empty one, and the other player
    >>> sensitivities(design, model).round(6).tolist()  # (γ₁ + γ₂)/2 = (2 + 1)/2
    [[0.0, 1.5], [1.5, 0.0]]
    """
    n = design.n
    total = np.zeros((n, n))
    gamma = [0.0, *(stability.replace_one(m) for m in range(1, n + 1))]
    both = np.array([gamma[k] + gamma[k + 1] for k in range(n)])
    weight = np.abs(design.weights) * both[design.sizes]
    at_once = max(1, 2**24 // n)
    for start in range(0, len(design.members), at_once):
        part = design.members[start : start + at_once]
        inside = np.zeros((len(part), n))
        inside[np.repeat(np.arange(len(part)), [len(m) for m in part]), np.concatenate(part)] = 1.0
        total += (weight[start : start + at_once, None] * (1 - inside)).T @ inside
    return np.asarray(total * (1 + 1e-9))


def paper_scale(design: Design, model: Any, epsilon: float) -> float:
    """The published scale of noise, κ²H/(nλ ln((e^ε − 1)/p + 1)), with p, which exceeds 1 for most settings, capped.

    Not certified: the amplification by sampling that it claims is not there (Mathematics §6, erratum 8).
    """
    n = design.n
    harmonic = sum(1 / k for k in range(1, n))
    chance = (design.c / design.alpha) ** 2 * math.log(max(n, 2)) / (2 * n) * math.log(2 * n / design.beta)
    if chance == 0 or epsilon > 100:
        raise UsageError("the published scale of noise has no use for so large an alpha or epsilon")
    return float(model.c) * max(harmonic, 1.0) / n / math.log(math.expm1(epsilon) / min(1.0, chance) + 1)


@dataclass(frozen=True, eq=False)
class LayeredPlan(Result):
    """Noise, cost and expected quality of a private layered release, from public data alone, before it is made.

    Attributes
    ----------
    design
        The coalitions, and through ``design.fits`` the number of model fits.
    sensitivity, scale
        Of each value: the most by which another's record moves it, and the scale of its noise.
    epsilon, noise, constants
        The promise to one recipient, and how the noise follows from it.
    correlation, pilot
        The rank correlation (Spearman) of private with true values to expect, None where it could not be predicted; and
        what the prediction rests on, in words.
    """

    COLUMNS: ClassVar = {"sensitivity": "sensitivity", "scale": "scale"}

    design: Design
    sensitivity: Floats
    scale: Floats
    epsilon: float
    noise: NoiseKind
    constants: Constants
    correlation: float | None
    pilot: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def _who(self) -> str:
        return "players"

    def __repr__(self) -> str:
        return f"LayeredPlan({self})"

    def __str__(self) -> str:
        expected = "not predicted" if self.correlation is None else f"about {self.correlation:.2f}"
        proof = "" if self.noise == "certified" else " (AS PUBLISHED, NOT CERTIFIED)"
        return (
            f"{self.design.fits:,} model fits; Laplace noise of scale {self.scale.max():.3g}{proof} for ε = "
            f"{self.epsilon:g}; rank correlation with the true values to expect: {expected} ({self.pilot})"
        )

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``players`` and model ``fits``; ``epsilon``, the largest ``sensitivity`` and the largest ``scale`` of noise of a
        value; ``certified``; and the rank ``correlation`` with true values to expect, None where it was not predicted.
        """
        return as_facts(
            {
                "players": self.design.n, "fits": self.design.fits, "epsilon": self.epsilon,
                "sensitivity": self.sensitivity.max(), "scale": self.scale.max(),
                "certified": self.noise == "certified", "correlation": self.correlation,
            }
        )  # fmt: skip

    @property
    def is_low(self) -> bool:
        """Whether the values would say little."""
        return self.correlation is not None and self.correlation < LOW_CORRELATION

    def warning(self) -> str:
        """Advice where the correlation is low."""
        return (
            f"these values will say little: their rank correlation with the true ones is expected to be about "
            f"{self.correlation:.2f} ({self.pilot}). Noise that keeps the promise is as large as the values here, "
            "however many records there are; private_tknn_shapley keeps its quality at a tenth of this ε"
        )


@dataclass(frozen=True, eq=False)
class _Public:
    """Public data: validation points and labels, and those of a pilot, if there is one."""

    points: Floats
    labels: NDArray[np.generic]
    pilot: tuple[Floats, NDArray[np.generic]] | None

    @classmethod
    def of(cls, inputs: Inputs, X_val: Any, y_val: Any, pilot: Any, pilot_labels: Any) -> "_Public":
        """The validation set as it was encoded, and the pilot encoded by it."""
        points, labels = as_floats("X_val", inputs.points_val).astype(np.float64), inputs.labels_val
        if pilot is None:
            return cls(points, labels, None)
        extra = prepare(pilot, pilot_labels, X_val, y_val, fitted_on="validation")
        return cls(points, labels, (as_floats("pilot", extra.points).astype(np.float64), extra.labels))


@documented()
def plan_private_layered(
    model: "StableLogisticRegression",
    n: int,
    X_val: Points,
    y_val: Labels | None = None,
    *,
    epsilon: float = 1.0,
    alpha: float | None = None,
    beta: float | None = None,
    bound: Bound | None = None,
    design: Design | None = None,
    noise: NoiseKind = "certified",
    constants: Constants = "sharp",
    pilot: Points | None = None,
    pilot_labels: Labels | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> LayeredPlan:
    """What :func:`private_layered_shapley` would release for n private records: noise, fits, and quality to expect.

    No private data are used and nothing is spent. The quality is that of a pilot: public records in the place of the
    private ones (``pilot``, or half of the validation set) are valued, scaled to n records, and given the noise.

    Parameters
    ----------
    model
        A :class:`datassay.StableLogisticRegression`; its ``kappa`` and ``lam`` are public and yours to choose.
    n
        Number of private records.
    X_val, y_val
        Validation features and labels of two classes. They are public, and must be no part of the private data.
    epsilon
        What is promised to one recipient. δ is 0.
    alpha, beta, bound
        Of the design, if none is given: the sampling error allowed (0.1), the chance of a larger one (0.05), and the
        bound by which coalitions are counted; see :func:`layered_design`.
    design
        Coalitions drawn before. The design may be published; it must not have been chosen by the private data.
    noise
        ``"certified"``, or ``"paper"``: the published scale, which no proof supports; the result says so.
    constants
        How far a record can move the learner: ``"sharp"`` (for this public validation set), or ``"textbook"``
        (2κ²/(λm)), which needs several times the noise.
    pilot, pilot_labels
        Public records like the private ones, for the prediction; half of the validation set if left out.
    seed
        Seed of the design, and of the pilot.

    References
    ----------
    Mathematics §6; see :func:`private_layered_shapley`.

    Examples
    --------
    >>> import datassay as da
    >>> public = da.census(200, seed=1)
    >>> plan = da.plan_private_layered(da.StableLogisticRegression(kappa=2.0), 100, public, alpha=1.0, n_jobs=1)
    >>> plan.is_low  # it usually is
    True
    """
    inputs = prepare(X_val, y_val, X_val, y_val)
    _check_learner(model)
    public = _Public.of(inputs, X_val, y_val, pilot, pilot_labels)
    epsilon = check_epsilon(epsilon)
    drawn = _design_of(model, n, design, seed, alpha=alpha, beta=beta, bound=bound)
    plan = _plan(model, public, drawn, epsilon, noise, constants)
    return _with_prediction(plan, model, public, seed, n_jobs)


def _check_learner(model: Any) -> None:
    if not is_stable(model):
        raise UsageError(
            "model must be a StableLogisticRegression: the guarantee rests on how far one record can move the learner, "
            f"which is not known for {type(model).__name__} (at a fixed C, scikit-learn's does not even settle down)"
        )
    model.check_parameters()


def _design_of(model: Any, n: int, design: Design | None, seed: int, **drawn_by: Any) -> Design:
    """The design given, or one drawn for this learner with what was given of alpha, beta and bound."""
    n = _checks.integer("n", n, at_least=2)
    drawn_by = {name: value for name, value in drawn_by.items() if value is not None}
    if design is None:
        return layered_design(n, c=model.c, seed=seed, **drawn_by)
    if drawn_by:
        raise UsageError(f"the design has its own alpha, beta and bound: leave out {', '.join(drawn_by)}")
    if design.n != n:
        raise InputError(f"the design is for {design.n:,} players, and there are {n:,}")
    return design


def _plan(
    model: Any, public: _Public, design: Design, epsilon: float, noise: NoiseKind, constants: Constants
) -> LayeredPlan:
    """The noise that this design needs; nothing is predicted yet."""
    _checks.choice("noise", noise, get_args(NoiseKind))
    _checks.choice("constants", constants, get_args(Constants))
    classes = len(np.unique(public.labels))
    if classes != 2:
        raise InputError(f"the public validation set must have two classes, and has {classes}")
    stability = model.stability_on(public.points, public.labels) if constants == "sharp" else model
    moved = sensitivities(design, stability).max(axis=1)
    moved = np.where(moved > 0, moved + _rounding(design, len(public.points)), 0.0)
    scale = moved / epsilon if noise == "certified" else np.full(design.n, paper_scale(design, model, epsilon))
    return LayeredPlan(design, moved, scale, epsilon, noise, constants, None, "not asked for")


def _rounding(design: Design, validation: int) -> Floats:
    """The most that rounding adds to the difference of two values; utilities, clipped at guessing, are at most ln 2."""
    outside = np.full(design.n, design.weights.sum())
    for members, weight in zip(design.members, design.weights, strict=True):
        outside[members] -= weight
    eps = float(np.finfo(np.float64).eps)
    return np.asarray(8 * math.log(2) * eps * (validation + len(design.members)) * np.maximum(outside, 0.0))


FEWEST_PILOTS = 20
MOST_PILOTS = 100


def _with_prediction(
    plan: LayeredPlan, model: "StableLogisticRegression", public: _Public, seed: int, n_jobs: int | None
) -> LayeredPlan:
    """The plan with Spearman's ρ between values as they are among public records and the same with noise."""
    from scipy.stats import rankdata

    scale, points, labels, pilot = plan.scale, public.points, public.labels, public.pilot
    n = len(scale)
    rng = np.random.default_rng([seed, 77])
    if pilot is None:
        order = rng.permutation(len(points))
        half = min(len(points) // 2, MOST_PILOTS, n)
        pilot, rest = (points[order[:half]], labels[order[:half]]), order[half:]
        points, labels = points[rest], labels[rest]
        basis = f"a pilot on {half} of the validation records"
    else:
        chosen = rng.permutation(len(pilot[0]))[: min(MOST_PILOTS, n)]
        pilot = pilot[0][chosen], pilot[1][chosen]
        basis = f"a pilot on {len(chosen)} public records"
    few = len(pilot[0]) < FEWEST_PILOTS
    if few or len(np.unique(labels)) < 2 or not np.isin(pilot[1], labels).all() or len(np.unique(pilot[1])) < 2:
        lacking = f"too few public records for a pilot: at least {FEWEST_PILOTS}, of both classes"
        return replace(plan, correlation=None, pilot=lacking)
    found = data_shapley(model, *pilot, points, labels, max_coalitions=200 * len(pilot[0]), seed=seed, n_jobs=n_jobs)
    values = found.values * (len(found) / n)  # values go down as 1/n
    if found.errors is not None and values.std() > 0:  # what is sampling error of the pilot is no spread of values
        error2 = float((found.errors**2).mean()) * (len(found) / n) ** 2
        values = values.mean() + (values - values.mean()) * math.sqrt(max(0.0, 1 - error2 / float(values.var())))
    if values.std() == 0:
        return replace(plan, correlation=0.0, pilot=basis)
    seen = []
    for _ in range(200):  # noise of a simulation on public data, not of a release
        truth = rng.choice(values, n) + rng.normal(0, 1e-9 * float(values.std()), n)
        noisy = truth + scale * rng.laplace(size=n)
        seen.append(np.corrcoef(rankdata(truth), rankdata(noisy))[0, 1])
    return replace(plan, correlation=float(np.mean(seen)), pilot=basis)


@documented(plan_private_layered, private_tknn_shapley)
def private_layered_shapley(
    model: "StableLogisticRegression",
    X: Points,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    *,
    epsilon: float = 1.0,
    alpha: float | None = None,
    beta: float | None = None,
    bound: Bound | None = None,
    design: Design | None = None,
    noise: NoiseKind = "certified",
    constants: Constants = "sharp",
    recipients: int = 10,
    delta: float = 1e-5,
    pilot: Points | None = None,
    pilot_labels: Labels | None = None,
    predict: bool = True,
    at_least: float | None = None,
    ledger: Ledger | None = None,
    ids: Ids | None = None,
    seed: int = 0,
    **run: Unpack[Threads],
) -> PrivateValues:
    """Layered Shapley values, each with Laplace noise: ε-differential privacy when another's record is replaced.

    The guarantee is for an owner who sees no other value. The noise is what the drawn coalitions and the stability of
    the learner make necessary, for every design (Mathematics §6). It is large: before the budget is spent, the rank
    correlation to expect is predicted from public records, with a :class:`LowUtilityWarning` if it is low;
    :func:`plan_private_layered` does so alone.

    Parameters
    ----------
    X, y
        Private features and labels of two classes: arrays, a data frame of numbers, or a :class:`Table` (then y may be
        left out). Tables are encoded by the validation table alone; features given as numbers must not have been scaled
        by private statistics.
    recipients, delta
        The note on collusion is for so many recipients, and for the accountant's ε at this δ.
    predict
        False: predict nothing (and warn of nothing).
    at_least
        Refuse, with nothing spent, if the correlation predicted is below this.
    ledger
        Asked before noise is drawn; it must be kept for ``replace``. A release made before is served again from it, at
        no cost.

    References
    ----------
    Watson et al., Differentially Private Shapley Values for Data Evaluation, 2022. Mathematics §6.

    Examples
    --------
    >>> import datassay as da, warnings
    >>> private, public = da.census(200, seed=1).split(0.2)
    >>> model = da.StableLogisticRegression(kappa=2.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", da.LowUtilityWarning)
    ...     values = da.private_layered_shapley(model, private, X_val=public, alpha=1.0, n_jobs=1)
    >>> values.guarantee.epsilon, values.guarantee.delta, values.guarantee.relation
    (1.0, 0.0, 'replace')
    >>> values.epsilon_for(3)  # three recipients who put their heads together
    3.0
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    recipients = _checks.integer("recipients", recipients, at_least=1)
    if at_least is not None:
        at_least = _checks.number("at_least", at_least, at_least=-1, at_most=1)
    _check_learner(model)
    check_ledger(ledger)
    if X_val is None:
        raise UsageError("X_val must be given: a public validation set that is no part of the training data")
    inputs = prepare(X, y, X_val, y_val, ids=ids, fitted_on="validation")
    notes = list(inputs.notes)
    only_private = check_public(inputs, notes)
    if len(only_private):
        raise InputError(
            f"training has labels that the public validation set lacks ({_checks.listed(only_private)}); there must be "
            "two classes, both of them public"
        )
    points = as_floats("X", inputs.points).astype(np.float64)
    public = _Public.of(inputs, X_val, y_val, pilot, pilot_labels)
    drawn = _design_of(model, len(points), design, seed, alpha=alpha, beta=beta, bound=bound)
    plan = _plan(model, public, drawn, epsilon, noise, constants)
    if predict or at_least is not None:
        plan = _with_prediction(plan, model, public, seed, run.get("n_jobs"))
    if at_least is not None and (plan.correlation is None or plan.correlation < at_least):
        raise UnavailableError(
            f"refused, and nothing was spent: at_least={at_least:g} is asked of the rank correlation, and the plan is: "
            f"{plan}"
        )
    if plan.is_low:
        warnings.warn(plan.warning(), LowUtilityWarning, stacklevel=3)
    # What the published noise is really worth goes to the ledger, not the ε that it is named after.
    proven = epsilon
    if noise == "paper" and plan.sensitivity.any():
        proven = float((plan.sensitivity / plan.scale).max())
    cost = Cost("laplace", 1 / proven, 1.0, relation="replace")
    what = f"one Layered Shapley value an owner, Laplace noise of scale {plan.scale.max():.4g} on each"
    settings: dict[str, Parameter] = {
        "model": model_name(model), "length": model.length, "lam": float(model.lam), "alpha": drawn.alpha,
        "beta": drawn.beta, "c": drawn.c, "bound": drawn.bound, "epsilon": epsilon, "relation": "replace",
        "noise": noise, "constants": constants, "design_seed": drawn.seed,
    }  # fmt: skip
    planned = PlannedRelease("private_layered_shapley", settings, what, cost, "owner, no collusion")
    coalitions = [members.tolist() for members in drawn.members]
    question = [coalitions, drawn.repeats, drawn.expected, public.points, public.labels, plan.scale]
    paid = planned.pay(ledger, inputs, question, notes)

    def draw() -> Floats:
        found = layered_shapley(
            model, points, inputs.labels, public.points, public.labels, design=drawn, on_failure="raise", **run
        )
        if len(found.values) != drawn.n or found.stopped != "design":
            raise UnavailableError("the design could not be evaluated to its end; nothing is released")
        # In units of each value's own scale, so that one mechanism of scale 1 serves all. A value that no coalition
        # with others enters depends on its own record alone.
        unit = np.where(plan.scale > 0, plan.scale, 1.0)
        noisy = np.asarray(add_noise(found.values / unit, "laplace", 1.0), np.float64) * unit
        return np.where(plan.scale > 0, noisy, found.values)

    values = paid.values(draw)
    notes.append(
        f"noise is independent from recipient to recipient: one faces ε = {proven:.3g}, {recipients} who share their "
        f"values ε = {recipients * proven:.3g}{_accounted(cost, recipients, delta)}"
    )
    if plan.is_low:
        notes.append(plan.warning())
    if noise == "paper":
        notes.append(
            f"the scale of noise is the published one, and the published proof does not hold; what can be proven of it "
            f"here is ε = {proven:.3g}"
        )
    settings |= {"scale": float(plan.scale.max()), "fits": drawn.fits, "correlation_predicted": plan.correlation}
    guarantee = Guarantee(
        what, epsilon, 0.0, "replace", "Laplace mechanism", audience=planned.audience, certified=noise == "certified"
    )
    return planned.result(inputs, values, guarantee, notes)


def _accounted(cost: Cost, recipients: int, delta: float) -> str:
    """ε by the accountant for several recipients, where that is less than the sum."""
    simple = recipients / cost.scale
    if recipients == 1 or simple > 100:  # far beyond any use
        return ""
    together = total_epsilon([replace(cost, count=recipients)], delta)
    return f" (or {together:.3g} at δ = {delta:g})" if together < 0.95 * simple else ""
