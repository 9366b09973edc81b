"""The onion: remove the most exposed records, and others are exposed in their place."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._run import DEFAULT_MEMORY
from datassay._tensors import as_array
from datassay._version import __version__
from datassay._work import Progress
from datassay.attacks.membership import membership_attack
from datassay.attacks.result import Attack
from datassay.neighbors import EUCLIDEAN, neighbours_of
from datassay.results import (
    Fact,
    FrameKind,
    Parameter,
    Values,
    as_facts,
    check_axes,
    freeze,
    make_frame,
    new_axes,
    save_columns,
)
from datassay.value import self_shapley, self_waka, waka_influence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PeelBy = Literal["self_waka", "self_shapley", "success", "random"]


@dataclass(frozen=True, eq=False)
class Onion:
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
    """

    values: NDArray[np.float64]
    ids: NDArray[np.generic]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    influence: NDArray[np.float64]
    removed: NDArray[np.generic]
    auc: tuple[float, float]
    tpr: tuple[float, float]
    by: str
    k: int
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __post_init__(self) -> None:
        freeze(self, "values", "ids", "before", "after", "influence", "removed")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Onion({len(self.removed):,} removed by {self.by}: AUC {self.auc[0]:.3f} → {self.auc[1]:.3f})"

    def correlation(self) -> float:
        """Spearman's rank correlation of the change in success rates with the WaKA influence."""
        from scipy.stats import spearmanr

        if np.ptp(self.influence) == 0 or np.ptp(self.values) == 0:
            return 0.0
        return float(spearmanr(self.values, self.influence).statistic)

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``removed`` records, and ``remaining`` ones; ``auc_before`` and ``auc_after``, ``tpr_before`` and ``tpr_after``
        (at 5% false positives); ``share_more_exposed`` and ``share_less_exposed`` of those who remain; the rank
        ``correlation`` of the change with the WaKA influence.
        """
        return as_facts(
            {
                "removed": len(self.removed), "remaining": len(self), "auc_before": self.auc[0],
                "auc_after": self.auc[1], "tpr_before": self.tpr[0], "tpr_after": self.tpr[1],
                "share_more_exposed": (self.values > 0).mean(), "share_less_exposed": (self.values < 0).mean(),
                "correlation": self.correlation(),
            }
        )  # fmt: skip

    def summary(self) -> str:
        """What the removal did, in words."""
        return "\n".join(
            [
                f"{len(self.removed):,} of {len(self.removed) + len(self):,} records removed by {self.by}, k={self.k}.",
                f"AUC of the attack {self.auc[0]:.3f} → {self.auc[1]:.3f}; members found at 5% false positives "
                f"{self.tpr[0]:.1%} → {self.tpr[1]:.1%}.",
                f"Of those who remain, {np.mean(self.values > 0):.1%} are found more often than before and "
                f"{np.mean(self.values < 0):.1%} less often (mean {self.before.mean():.3f} → {self.after.mean():.3f}).",
                f"Rank correlation of the change with the WaKA influence: {self.correlation():.2f}.",
            ]
        )

    def plot(self, ax: "Axes | None" = None, bins: int = 20) -> "Axes":
        """Draw the mean change of success rates by WaKA influence; returns the axes."""
        if ax is None:
            ax = new_axes(6, 4)
        check_axes(ax)
        edges = np.unique(np.quantile(self.influence, np.linspace(0, 1, bins + 1)))
        at = np.clip(np.searchsorted(edges, self.influence, side="right") - 1, 0, max(len(edges) - 2, 0))
        used = np.unique(at)
        ax.plot([self.influence[at == b].mean() for b in used], [self.values[at == b].mean() for b in used], marker=".")
        ax.axhline(0, color="grey", linewidth=0.8)
        ax.set_xlabel("WaKA influence of the removal")
        ax.set_ylabel("mean change of success rate")
        ax.set_title(f"The onion, k = {self.k}: AUC {self.auc[0]:.3f} → {self.auc[1]:.3f}", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        return {
            "id": self.ids, "before": self.before, "after": self.after, "change": self.values,
            "influence": self.influence,
        }  # fmt: skip

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """Remaining records as a data frame: id, before, after, change, influence."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to Parquet or JSON (:func:`datassay.load_result` reads it) or CSV (the table alone)."""
        header = {
            "kind": "onion", "by": self.by, "k": self.k, "auc": list(self.auc), "tpr": list(self.tpr),
            "removed": self.removed.tolist(), "parameters": dict(self.parameters), "notes": list(self.notes),
            "version": self.version,
        }  # fmt: skip
        return save_columns(path, header, self._columns())


def load_onion(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> Onion:
    """The onion that :meth:`Onion.save` wrote."""
    return Onion(
        values=columns["change"].astype(np.float64),
        ids=columns["id"],
        before=columns["before"].astype(np.float64),
        after=columns["after"].astype(np.float64),
        influence=columns["influence"].astype(np.float64),
        removed=np.array(header["removed"]),
        auc=(float(header["auc"][0]), float(header["auc"][1])),
        tpr=(float(header["tpr"][0]), float(header["tpr"][1])),
        by=str(header["by"]),
        k=int(header["k"]),
        parameters=header["parameters"],
        notes=tuple(map(str, header["notes"])),
        version=str(header["version"]),
    )


def onion(
    X: object,
    y: object = None,
    by: PeelBy | Values = "self_waka",
    share: float = 0.1,
    k: int = 5,
    metric: str = EUCLIDEAN,
    *,
    games: int = 48,
    shadows: int = 16,
    seed: int = 0,
    ids: object | None = None,
    n_jobs: int | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Progress = None,
) -> Onion:
    """Remove the most exposed records and attack the rest again (the «onion effect», Carlini et al. 2022).

    LiRA attacks every record in ``games`` games, the ``share`` of records that rank highest ``by`` self-WaKA,
    self-Shapley, the attack's own success rates or at random is removed, and LiRA attacks the remaining population. Who
    is more exposed then can be told without any attack by :func:`datassay.waka_influence`, which is in the result.
    ``by`` may also be Values of your own. (Chosen by success, those who remain were lucky in the first games: some of
    their change is chance.) Other parameters as in :func:`datassay.membership_attack`.

    >>> import datassay as da
    >>> peeled = da.onion(da.load_dataset("census", n=400), k=1, games=4)
    >>> len(peeled.removed)
    40
    """
    share = _checks.number("share", share, above=0, below=1)
    if not isinstance(by, Values | str):
        raise UsageError(f"by must be Values, or one of {_checks.listed(get_args(PeelBy))}; got {type(by).__name__}")
    if not isinstance(by, Values):
        _checks.choice("by", by, get_args(PeelBy))
    settings: dict[str, Any] = {
        "k": k, "games": games, "targets": None, "shadows": shadows, "seed": seed, "n_jobs": n_jobs, "memory": memory,
        "progress": progress,
    }  # fmt: skip
    near = neighbours_of(X, y, metric=metric, ids=ids, among=True)
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
        score, name = by.values, by.method
    elif by == "self_waka":
        score, name = self_waka(near, k=k, n_jobs=n_jobs, memory=memory).values, by
    elif by == "self_shapley":
        score, name = self_shapley(near, k=k, n_jobs=n_jobs, memory=memory).values, by
    elif by == "success":
        score, name = before, by
    else:
        score, name = np.random.default_rng([seed, 2**33]).random(n), by
    gone = np.zeros(n, bool)
    gone[np.argsort(-score, kind="stable")[:out]] = True
    if len(np.unique(inputs.codes[~gone])) < 2:
        raise InputError(f"removing the top {share:.0%} by {name} leaves one class only; give a smaller share")
    influence = waka_influence(near, None, gone, k=k, n_jobs=n_jobs, memory=memory).values
    kept = np.flatnonzero(~gone)
    points = as_array(inputs.points)
    remaining = points[np.ix_(kept, kept)] if near.metric == "precomputed" else points[kept]
    labels, ids = inputs.labels[kept], inputs.ids[kept]
    second = membership_attack(remaining, labels, "lira", metric=near.metric, ids=ids, **settings)
    after = _by_record(second, inputs.ids[kept])
    return Onion(
        after - before[kept],
        inputs.ids[kept],
        before[kept],
        after,
        influence,
        inputs.ids[gone],
        (first.auc, second.auc),
        (first.tpr(0.05), second.tpr(0.05)),
        name,
        k,
        {**(first.parameters or {}), "share": share, "seed": seed},
        first.notes,
    )


def _by_record(attack: Attack, ids: NDArray[np.generic]) -> NDArray[np.float64]:
    """Success rates in the order of the records."""
    names, rates = attack.success_rates()
    return rates[np.searchsorted(names, ids)]
