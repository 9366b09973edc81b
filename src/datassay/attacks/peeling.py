"""The onion: remove the most exposed records, and others are exposed in their place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Metric
from datassay._errors import InputError, UsageError
from datassay._run import Blocks, documented
from datassay._tensors import as_array
from datassay._version import __version__
from datassay.attacks.figures import draw_change
from datassay.attacks.membership import membership_attack
from datassay.attacks.result import Attack
from datassay.neighbors import EUCLIDEAN, Given, Ids, Labels, Neighbours, Points, neighbours_of
from datassay.results import (
    Axes,
    Fact,
    Floats,
    Parameter,
    PerRecord,
    Values,
    as_facts,
    as_named,
    axes_on,
    rank_correlation,
)
from datassay.value import self_shapley, self_waka, waka_influence

PeelBy = Literal["self_waka", "self_shapley", "success", "random"]


@dataclass(frozen=True, eq=False)
class Onion(PerRecord):
    """What became of the remaining records when the most exposed ones were removed.

    Attributes
    ----------
    values
        Change of each remaining record's success rate of the attack, after less before; ``ids`` says whose.
    before, after
        Success rates before and after.
    influence
        Change of their self-WaKA (:func:`datassay.waka_influence`), which needs no attack.
    auc, tpr
        Of the attack, (before, after): AUC, and true-positive rate at 5% false positives.
    removed
        Ids of the removed records.
    by, k, parameters, notes, version
        How they were chosen, and attacked.
    """

    COLUMNS: ClassVar = {"id": "ids", **as_named("before", "after"), "change": "values", "influence": "influence"}

    values: Floats
    ids: NDArray[np.generic]
    before: Floats
    after: Floats
    influence: Floats
    removed: NDArray[np.generic]
    auc: tuple[float, float]
    tpr: tuple[float, float]
    by: str
    k: int
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"Onion({len(self.removed):,} removed by {self.by}: AUC {self.auc[0]:.3f} → {self.auc[1]:.3f})"

    def correlation(self) -> float:
        """Spearman's rank correlation of the change in success rates with the WaKA influence."""
        return rank_correlation(self.values, self.influence)

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``removed`` records, and ``remaining`` ones; ``auc_before`` and ``auc_after``, ``tpr_before`` and ``tpr_after``
        (at 5% false positives); ``share_more_exposed`` and ``share_less_exposed`` of those who remain; the rank
        ``correlation`` of the change with the WaKA influence.
        """
        found = {"removed": len(self.removed), "remaining": len(self)}
        rates = dict(zip(("auc_before", "auc_after", "tpr_before", "tpr_after"), (*self.auc, *self.tpr), strict=True))
        moved = {"share_more_exposed": (self.values > 0).mean(), "share_less_exposed": (self.values < 0).mean()}
        return as_facts({**found, **rates, **moved, "correlation": self.correlation()})

    def summary(self) -> str:
        """What the removal did, in words."""
        lines = [
            f"{len(self.removed):,} of {len(self.removed) + len(self):,} records removed by {self.by}, k={self.k}.",
            f"AUC of the attack {self.auc[0]:.3f} → {self.auc[1]:.3f}; members found at 5% false positives "
            f"{self.tpr[0]:.1%} → {self.tpr[1]:.1%}.",
            f"Of those who remain, {np.mean(self.values > 0):.1%} are found more often than before and "
            f"{np.mean(self.values < 0):.1%} less often (mean {self.before.mean():.3f} → {self.after.mean():.3f}).",
            f"Rank correlation of the change with the WaKA influence: {self.correlation():.2f}.",
        ]
        return self._in_words(lines)

    def plot(self, ax: Axes | None = None, bins: int = 20, *, label: str | None = None) -> Axes:
        """Draw the mean change of success rates by WaKA influence; returns the axes. ``label`` is for the legend."""
        edges = np.unique(np.quantile(self.influence, np.linspace(0, 1, bins + 1)))
        at = np.clip(np.searchsorted(edges, self.influence, side="right") - 1, 0, max(len(edges) - 2, 0))
        used = np.unique(at)
        influence, change = ([float(x[at == b].mean()) for b in used] for x in (self.influence, self.values))
        ax = draw_change(axes_on(ax, 6, 4), influence, change, label)
        ax.set_title(f"The onion, k = {self.k}: AUC {self.auc[0]:.3f} → {self.auc[1]:.3f}", loc="left")
        return ax


@documented(membership_attack)
def onion(
    X: Points | Neighbours,
    y: Labels | None = None,
    by: PeelBy | Values = "self_waka",
    share: float = 0.1,
    k: int = 5,
    metric: Metric = EUCLIDEAN,
    *,
    games: int = 48,
    shadows: int = 16,
    seed: int = 0,
    ids: Ids | None = None,
    **run: Unpack[Blocks],
) -> Onion:
    """The onion effect: remove the most exposed records, attack the rest again, and see who is exposed instead.

    LiRA attacks every record in ``games`` games, the records that rank highest are removed, and LiRA attacks the
    remaining population (Carlini et al. 2022). Who is more exposed then is known without any attack, by
    :func:`datassay.waka_influence`, which is in the result.

    Parameters
    ----------
    by
        What records are ranked by: ``"self_waka"``, ``"self_shapley"``, ``"success"`` (of the attack itself; those who
        remain were then lucky in the first games: some of their change is chance), ``"random"``, or Values of your own.
    share
        The share of records to remove.
    games
        Games before the removal, and as many after it; every record is a target in each.

    Returns
    -------
    Onion
        Success rates of the attack before and after, by record.

    References
    ----------
    Carlini et al., The Privacy Onion Effect: Memorization is Relative, 2022. Mathematics §7.

    Examples
    --------
    >>> import datassay as da
    >>> peeled = da.onion(da.load_dataset("census", n=400), k=1, games=4)
    >>> len(peeled.removed)
    40
    """
    share = _checks.number("share", share, above=0, below=1)
    if isinstance(by, str):
        _checks.choice("by", by, get_args(PeelBy))
    elif not isinstance(by, Values):
        raise UsageError(f"by must be Values, or one of {_checks.listed(get_args(PeelBy))}; got {type(by).__name__}")
    settings: dict[str, Any] = {"k": k, "games": games, "targets": None, "shadows": shadows, "seed": seed, **run}
    searching: Blocks = {**run, "progress": None}  # the bars are of games
    near = neighbours_of(Given(X, y, metric=metric, ids=ids, among=True))
    inputs = near.inputs
    n = len(inputs.labels)
    out = max(1, round(share * n))
    if n - out < 4:
        raise UsageError(f"share={share:g} removes {out} of {n} records, and the games need 4 of those that remain")
    first = membership_attack(near, None, "lira", **settings)
    before = _by_record(first, inputs.ids)
    if isinstance(by, Values):
        if len(by) != n or not (by.ids == inputs.ids).all():
            raise InputError("by must hold a value for every record, in their order")
        score = by.values
    elif by == "self_waka":
        score = self_waka(near, k=k, **searching).values
    elif by == "self_shapley":
        score = self_shapley(near, k=k, **searching).values
    else:
        score = before if by == "success" else np.random.default_rng([seed, 2**33]).random(n)
    name = by.method if isinstance(by, Values) else by
    gone = np.zeros(n, bool)
    gone[np.argsort(-score, kind="stable")[:out]] = True
    if len(np.unique(inputs.codes[~gone])) < 2:
        raise InputError(f"removing the top {share:.0%} by {name} leaves one class only; give a smaller share")
    influence = waka_influence(near, None, gone, k=k, **searching).values
    kept = np.flatnonzero(~gone)
    points = as_array(inputs.points)
    remaining = points[np.ix_(kept, kept)] if near.metric == "precomputed" else points[kept]
    labels, ids = inputs.labels[kept], inputs.ids[kept]
    second = membership_attack(remaining, labels, "lira", metric=near.metric, ids=ids, **settings)
    after = _by_record(second, inputs.ids[kept])
    return Onion(
        values=after - before[kept],
        ids=inputs.ids[kept],
        before=before[kept],
        after=after,
        influence=influence,
        removed=inputs.ids[gone],
        auc=(first.auc, second.auc),
        tpr=(first.tpr(0.05), second.tpr(0.05)),
        by=name,
        k=k,
        parameters={**first.parameters, "share": share, "seed": seed},
        notes=first.notes,
    )


def _by_record(attack: Attack, ids: NDArray[np.generic]) -> Floats:
    """Success rates in the order of the records."""
    names, rates = attack.success_rates()
    return rates[np.searchsorted(names, ids)]
