"""The promise of a private release, and how it is paid for: once, before any noise is drawn."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from datassay import _checks
from datassay._choices import Relation
from datassay._errors import UsageError
from datassay._tensors import as_array
from datassay.data import Inputs
from datassay.privacy.accounting import Cost, Noise, accountant_of, calibrate, check_delta, check_epsilon, total_epsilon
from datassay.privacy.guarantee import Audience, Guarantee
from datassay.privacy.ledger import Ledger, LedgerLine
from datassay.privacy.statistics import NoisyCounts
from datassay.privacy.values import PrivateValues
from datassay.results import Floats, Parameter


def fingerprint(*parts: object) -> str:
    """A digest of arrays and plain values, by content."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            plain = np.ascontiguousarray(part if part.dtype != object else part.astype(np.str_))
            digest.update(f"{plain.dtype.str}{plain.shape}".encode())
            digest.update(plain.tobytes())
        else:
            digest.update(json.dumps(part, sort_keys=True, default=str).encode())
        digest.update(b"|")
    return digest.hexdigest()


def check_ledger(ledger: object) -> None:
    """Raise if this is neither a ledger nor None."""
    if ledger is not None and not isinstance(ledger, Ledger):
        raise UsageError(f"ledger must be a datassay.Ledger, got {type(ledger).__name__}")


@dataclass(frozen=True)
class Promise:
    """(ε, δ) for one change of the data, the chance with which a record takes part, and the ledger that pays."""

    epsilon: float
    delta: float
    relation: Relation
    sampling: float = 1.0
    ledger: Ledger | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        _checks.choice("relation", self.relation, get_args(Relation))
        object.__setattr__(self, "sampling", _checks.number("sampling", self.sampling, above=0, at_most=1))
        check_ledger(self.ledger)

    @property
    def settings(self) -> dict[str, Any]:
        """The promise as parameters, of a private function or of its result."""
        return {name: getattr(self, name) for name in ("epsilon", "delta", "relation", "sampling")}

    def least(self, noise: Noise, sensitivity: float, count: int) -> Cost:
        """The least noise that keeps it when the statistic is released ``count`` times."""
        options: Any = {"count": count, "sampling": self.sampling, "relation": self.relation}
        return calibrate(noise, self.epsilon, self.delta, sensitivity=sensitivity, **options)

    def kept(self, release: "PlannedRelease") -> Guarantee:
        """The guarantee that this release gives."""
        epsilon, accountant = total_epsilon([release.cost], self.delta), accountant_of([release.cost])
        return Guarantee(
            release.mechanism, epsilon, self.delta, self.relation, accountant, self.sampling, release.audience
        )


@dataclass(frozen=True)
class PlannedRelease:
    """A release before it is made: the function, its settings, what is drawn at which cost, and who may see it."""

    method: str
    parameters: dict[str, Parameter]
    mechanism: str
    cost: Cost
    audience: Audience

    def pay(self, ledger: Ledger | None, inputs: Inputs, public: Sequence[object], notes: list[str]) -> "Paid":
        """Pay for it, or find out that it was made before. No noise has been drawn when this is called.

        ``public`` is all that the question is about beside the settings and the private data.
        """
        if ledger is None:
            return Paid(None, None, None)
        # The scale of noise follows from the rest, to the last bits of a root finder: it is no part of the question.
        # Ledgers know the relation by its earlier name.
        asked = {"neighbours" if name == "relation" else name: value for name, value in self.parameters.items()}
        asked.pop("sigma", None)
        request = fingerprint(self.method, asked, *public)
        dataset = fingerprint(as_array(inputs.points), inputs.labels, inputs.ids)
        earlier = ledger.find(dataset, request)
        if earlier is not None:
            notes.append(f"served again from the ledger (release number {earlier.number}), at no cost")
            return Paid(ledger, earlier.number, earlier)
        chance = self.cost.sampling
        mechanism = self.mechanism + (f", each record sampled with chance {chance:g}" if chance < 1 else "")
        return Paid(ledger, ledger.spend(dataset, request, [self.cost], mechanism, self.audience), None)

    def result(
        self, inputs: Inputs, values: Floats, guarantee: Guarantee, notes: list[str], counts: NoisyCounts | None = None
    ) -> PrivateValues:
        """What was released: the values, and the guarantee they are under."""
        how = guarantee, counts, self.parameters, inputs.labels, tuple(notes), (self.cost,)
        return PrivateValues(values, inputs.ids, self.method, *how)


@dataclass(frozen=True)
class Paid:
    """A line of the ledger, or None without one; ``earlier`` is the release if it was made before."""

    ledger: Ledger | None
    number: int | None
    earlier: LedgerLine | None

    def complete(self, result: object, secret: str | None = None) -> None:
        """Keep what was released, if there is a ledger and it was not made before."""
        if self.ledger is not None and self.number is not None and self.earlier is None:
            self.ledger.complete(self.number, json.dumps(result), secret)

    def values(self, draw: Callable[[], Floats]) -> Floats:
        """Values that are each for its owner alone: drawn and kept as a secret, or those that were kept before."""
        if self.earlier is not None:
            assert self.earlier.secret is not None
            return np.array(json.loads(self.earlier.secret), np.float64)
        values = draw()
        self.complete(None, secret=json.dumps(values.tolist()))
        return values
