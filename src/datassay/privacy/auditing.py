"""Audits: does a mechanism leak more than it claims? Play the distinguishing game and count.

There are two neighbouring data sets, and many releases from each; :mod:`datassay.privacy.evidence` says what they
prove. A refuted claim is proof of a leak, but for the stated chance of error; a claim that this attacker did not refute
is not proven.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._choices import AnyRelation, Relation, ReleaseKind
from datassay._errors import InputError, UsageError
from datassay._renamed import renamed
from datassay._version import __version__
from datassay.privacy.accounting import Cost, Noise
from datassay.privacy.evidence import Outputs, delta_of, evaluate, in_turns, most_true_positives
from datassay.privacy.games import GAMES, Claim, Rounds
from datassay.privacy.promise import Promise
from datassay.results import GREY, PURPLE, Axes, Columns, Fact, Parameter, Result, as_facts, axes_on, legend_name

Data = TypeVar("Data")
MechanismName = Literal[
    "private_tknn_shapley", "private_knn_shapley", "private_layered_shapley", "noisy_records", Noise
]


@renamed(neighbours="relation")
@dataclass(frozen=True, eq=False)
class Audit(Result):
    """What an audit found.

    Attributes
    ----------
    mechanism, epsilon, delta, relation
        The claim.
    lower_bound, noise_bound
        The true ε is at least this, with the stated confidence: for any mechanism, and if the noise is of the kind
        claimed (None if it is not known).
    faults, bounds
        What is proven wrong with the mechanism, one line each; and by name the bounds of which ``lower_bound`` is the
        highest.
    confidence, trials
        Chance that no honest mechanism is refuted and all bounds hold; releases from the two data sets together.
    false_positives, true_positives
        Rates of the best guesser by threshold, on releases it was not fitted to.
    """

    COLUMNS: ClassVar = {"false_positive_rate": "false_positives", "true_positive_rate": "true_positives"}

    mechanism: str
    epsilon: float
    delta: float
    relation: AnyRelation | None
    lower_bound: float
    noise_bound: float | None
    faults: tuple[str, ...]
    bounds: Mapping[str, float]
    confidence: float
    trials: int
    false_positives: NDArray[np.float64]
    true_positives: NDArray[np.float64]
    costs: tuple[Cost, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        return super()._fields({"relation": header.get("neighbours"), **header}, columns)

    def _who(self) -> str:
        return "thresholds"

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``epsilon`` and ``delta`` as claimed; ``lower_bound`` and ``noise_bound``; ``refuted`` and the number of
        ``faults``; ``trials`` and ``confidence``; ``bound.WAY`` for each way of looking.
        """
        names = ("epsilon", "delta", "lower_bound", "noise_bound", "refuted", "faults", "trials", "confidence")
        bounds = {f"bound.{way}": bound for way, bound in self.bounds.items()}
        return as_facts({**{name: getattr(self, name) for name in names}, "faults": len(self.faults), **bounds})

    @property
    def refuted(self) -> bool:
        """Whether the claim is proven false."""
        return bool(self.faults)

    def __repr__(self) -> str:
        return f"Audit({self.mechanism!r}: {self})"

    def __str__(self) -> str:
        verdict = "REFUTED" if self.refuted else "not refuted"
        relation = "" if self.relation is None else f" ({self.relation})"
        noise = "" if self.noise_bound is None else f" (≥ {self.noise_bound:.4g} if the noise is of the kind claimed)"
        faults = "".join(f"; {fault}" for fault in self.faults)
        return (
            f"{self.mechanism}: claimed ε = {self.epsilon:.4g} at δ = {self.delta:g}{relation}: {verdict}{faults}. "
            f"{self.trials:,} trials show ε ≥ {self.lower_bound:.4g}{noise} with confidence {self.confidence:.2%}"
        )

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw how well the best guesser did, and what the claim allows at most; returns the axes.

        With a ``label`` for the legend the guesser's rates are drawn alone, so that several audits can share the axes.
        """
        ax = axes_on(ax, 5, 5)
        if label is None:
            ax.plot(self.false_positives, self.true_positives, color=PURPLE, label="best guesser")
            ax.plot(*self._allowed(), color="black", label="most that the claim allows")
            ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="guessing blindly")
        else:
            ax.plot(self.false_positives, self.true_positives, label=legend_name(label))
        ax.set_xlabel("false-positive rate")
        ax.set_ylabel("true-positive rate")
        ax.legend(frameon=False, loc="lower right")
        ax.set_title("The claim is refuted" if self.refuted else "The claim is not refuted", loc="left")
        return ax

    def _allowed(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """False-positive rates, and the highest true-positive rates that the claim allows there."""
        rates = np.linspace(0, 1, 201)
        if self.costs:
            deltas = delta_of(self.costs)
            return rates, np.array([most_true_positives(rate, deltas) for rate in rates])
        grow = math.exp(self.epsilon)
        return rates, np.minimum(grow * rates + self.delta, 1 - (1 - rates - self.delta).clip(0) / grow).clip(0, 1)


@renamed(neighbours="relation")
def audit(
    mechanism: MechanismName | Callable[[Data, int], ArrayLike],
    first: Data | None = None,
    second: Data | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    relation: Relation = "add-remove",
    sampling: float = 1.0,
    release: ReleaseKind = "histogram",
    k: int = 5,
    costs: Sequence[Cost] = (),
    trials: int | None = None,
    confidence: float = 0.999,
) -> Audit:
    """An empirical lower bound on the ε of a mechanism, to be compared with the ε it claims.

    Parameters
    ----------
    mechanism
        One of datassay's own: ``"private_tknn_shapley"``, ``"private_knn_shapley"``, ``"private_layered_shapley"``
        (for which ``relation`` is ``replace``), ``"noisy_records"`` (what :func:`datassay.disclosure_game` gives out:
        a copy of a record, here with four features), or a kind of noise (``"gaussian"``, ``"discrete gaussian"``,
        ``"laplace"``, ``"discrete laplace"``), played on its worst pair of data sets through the public function.
        Or a function ``mechanism(data, trials)`` of yours that returns that many independent releases, one row each.
    first, second
        For a function of yours: the neighbouring data sets that it is played on.
    epsilon, delta
        The claim.
    relation
        How the two data sets of datassay's own mechanisms differ: by a record more (``add-remove``), or by what one
        record is (``replace``). Its earlier name, ``neighbours=``, is taken as well.
    sampling, release, k
        Settings of datassay's own mechanisms.
    costs
        For a function of yours: what it claims to do, as a list of :class:`datassay.privacy.Cost`. Then the amount of
        noise is audited, which sees more; without it, only (ε, δ) is.
    trials
        Releases in all, half of them from each data set.
    confidence
        Chance that the bound holds.

    Examples
    --------
    >>> import datassay as da, numpy as np
    >>> from datassay.privacy import Cost, add_noise
    >>> da.audit("discrete gaussian", epsilon=1.0, delta=1e-5, trials=2000).refuted
    False
    >>> def too_little_noise(count, trials):
    ...     return add_noise(np.full(trials, count), "discrete gaussian", 0.25)
    >>> da.audit(too_little_noise, 10, 11, epsilon=1.0, delta=1e-5, trials=2000).refuted
    True
    """
    promise = Promise(epsilon, delta, relation, sampling)
    epsilon, delta = promise.epsilon, promise.delta
    confidence = _checks.number("confidence", confidence, above=0, below=1)
    if trials is not None:
        trials = _checks.integer("trials", trials, at_least=100)
    parts = 1
    if callable(mechanism):
        if first is None and second is None:
            raise UsageError("give the two neighbouring data sets that the mechanism is to be played on")
        name = getattr(mechanism, "__name__", type(mechanism).__name__)
        half = (trials or 10_000) // 2
        outputs = [_outputs(mechanism(data, half), half) for data in (first, second)]  # type: ignore[arg-type]
        if outputs[0].shape != outputs[1].shape:
            raise InputError(f"the two data sets led to releases of shapes {outputs[0].shape} and {outputs[1].shape}")
        rounds = Rounds({"the pair given": in_turns(outputs[0], outputs[1])}, list(costs))
    else:
        name = mechanism
        _checks.choice("mechanism", mechanism, tuple(GAMES))
        if mechanism == "private_tknn_shapley":
            _checks.choice("release", release, get_args(ReleaseKind))
            name = f"{name} ({release})"
        if mechanism in ("private_layered_shapley", "noisy_records") and sampling < 1:
            raise UsageError(f"{mechanism} claims nothing from sampling: leave it at 1")
        if mechanism == "private_layered_shapley" or (mechanism == "private_tknn_shapley" and sampling < 1):
            parts = 2  # the design, or the samples, are put to the test as well
        if mechanism == "private_knn_shapley":
            k = _checks.integer("k", k, at_least=1)
        error = (1 - confidence) / parts
        rounds = GAMES[mechanism](Claim(**promise.settings, release=release, k=k, wanted=trials, error=error))
    found = evaluate(rounds.games, delta, rounds.costs, (1 - confidence) / parts)
    bound = max(found.bounds.values())
    faults = list(rounds.faults)
    if bound > epsilon:
        faults.append(f"ε is at least {bound:.4g}")
    if not found.noise_allowed:
        faults.append("the claimed noise does not allow guesses as good as these")
    return Audit(
        mechanism=name,
        epsilon=epsilon,
        delta=delta,
        relation=rounds.relation,
        lower_bound=bound,
        noise_bound=found.noise_bound,
        faults=tuple(faults),
        bounds=found.bounds,
        confidence=confidence,
        trials=sum(len(game.outputs) for game in rounds.games.values()),
        false_positives=found.false_positives,
        true_positives=found.true_positives,
        costs=tuple(rounds.costs),
    )


def _outputs(given: ArrayLike, trials: int) -> Outputs:
    """Releases that a function of the caller's returned, one a row, checked."""
    outputs = np.asarray(given, np.float64)
    outputs = outputs[:, None] if outputs.ndim == 1 else outputs
    if outputs.ndim != 2 or len(outputs) != trials:
        raise InputError(f"the mechanism must return {trials} releases, one row each; got shape {outputs.shape}")
    if not np.isfinite(outputs).all():
        raise InputError("the mechanism returned a release that is not finite")
    return outputs
