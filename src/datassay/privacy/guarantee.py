"""The promise of a private release, in one small record that an auditor can check."""

from dataclasses import asdict, dataclass
from typing import Literal, get_args

from datassay import _checks
from datassay._choices import AnyRelation
from datassay._renamed import renamed

Audience = Literal["public", "owner", "owner, no collusion", "nobody"]
_CHANGES = {
    "add-remove": "one record added or removed",
    "replace": "one record replaced",
    "replace-features": "the features of one record replaced (its label, and that it exists, are not protected)",
}


@renamed(neighbours="relation")
@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy of a release, with all that gives the two numbers their meaning.

    Attributes
    ----------
    mechanism
        What was released and with which noise.
    epsilon, delta, relation
        The promise: data sets that differ by one record added or removed (``add-remove``), replaced (``replace``), or
        replaced but for its label (``replace-features``) lead to any set of outputs with probabilities within e^ε of
        each other, up to δ.
    accountant, sampling
        How ε was computed, and the chance with which each record took part (Poisson subsampling); 1 for all of them.
    audience
        Who may see it: ``public``; ``owner`` (each owner sees what concerns their own record, and any number of
        owners may put their heads together: joint differential privacy); ``owner, no collusion``; or ``nobody`` (a
        rehearsal, whose noise can be repeated: nothing is promised, and the numbers are what it would be for real).
    certified
        True if the promise is proven for what was done; False for noise "as published".
    """

    mechanism: str
    epsilon: float
    delta: float
    relation: AnyRelation
    accountant: str
    sampling: float = 1.0
    audience: Audience = "public"
    certified: bool = True

    def __post_init__(self) -> None:
        _checks.choice("relation", self.relation, get_args(AnyRelation))
        _checks.choice("audience", self.audience, get_args(Audience))

    def __str__(self) -> str:
        sampled = f", each record sampled with chance {self.sampling:g}" if self.sampling < 1 else ""
        change = _CHANGES[self.relation]
        promise = f"(ε = {self.epsilon:.4g}, δ = {self.delta:.3g})-differential privacy for {change}"
        how = f"{self.mechanism}{sampled}; accounted by {self.accountant}"
        if self.audience == "nobody":
            return f"none: a rehearsal, whose noise can be repeated; for real it would be at best {promise}; {how}"
        proof = "" if self.certified else " AS PUBLISHED, NOT CERTIFIED"
        return f"{promise}{proof}; {how}; for: {self.audience}"

    def to_dict(self) -> dict[str, str | float | bool]:
        """The guarantee as plain values."""
        return asdict(self)
