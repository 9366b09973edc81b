"""Noisy counts that a private release publishes, and values of any record, old or new, from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._choices import ReleaseKind
from datassay._errors import InputError
from datassay._run import Schedule
from datassay.data import Encoder, Labels, as_labels
from datassay.neighbors import NeighbourGraph, Within, WithinThreshold, accumulate, make_space
from datassay.results import Columns, Fact, Floats, Result, as_facts

COUNTS: Mapping[ReleaseKind, tuple[str, ...]] = {
    "histogram": ("matching", "others"),
    "paper": ("records", "neighbours", "matching"),
}
COUNTED: Mapping[ReleaseKind, str] = {
    "histogram": "matching and other neighbours",
    "paper": "records, neighbours and matching neighbours",
}


@dataclass(frozen=True, eq=False)
class NoisyCounts(Result):
    """Noisy numbers of matching and other neighbours of each validation point: public, and enough to value any record.

    Attributes
    ----------
    counts, columns
        One row of noisy counts for each validation point, and what the columns count.
    points, labels, weights, tau, metric, n_classes, encoder
        The public setting: validation points as encoded, their labels and weights, the threshold, the metric, the
        number of classes, and how a table's columns became numbers (None if features were given as numbers).
    """

    COLUMNS: ClassVar = {"label": "labels", "weight": "weights", "*": "counts"}

    counts: NDArray[np.int64]
    points: NDArray[np.float32] | NDArray[np.float64]
    labels: NDArray[np.generic]
    weights: Floats
    tau: float
    metric: str
    n_classes: int
    columns: tuple[str, ...] = COUNTS["histogram"]
    encoder: Encoder | None = None

    def __repr__(self) -> str:
        return f"NoisyCounts({', '.join(self.columns)} of {len(self):,} validation points, tau={self.tau:g})"

    def _who(self) -> str:
        return "validation points"

    def _header(self) -> dict[str, object]:
        return {"kind": self._kind(), "statistics": self.to_dict()}

    @classmethod
    def _load(cls, header: Mapping[str, Any], columns: Columns) -> "NoisyCounts":
        return cls.from_dict(header["statistics"])

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: validation ``points``, ``classes``, ``tau``, and ``total.COLUMN`` of noisy counts."""
        totals = {f"total.{name}": self.counts[:, j].sum() for j, name in enumerate(self.columns)}
        return as_facts({"points": len(self.counts), "classes": self.n_classes, "tau": self.tau, **totals})

    def value(self, x: ArrayLike | Mapping[str, ArrayLike | None], y: ArrayLike) -> float:
        """Value of a record that is not among those counted, from the released numbers alone.

        ``x`` are its features; or, if the release was made from a table, a mapping from column to value (or a row of a
        pandas frame).
        """
        if hasattr(x, "to_dict"):
            x = x.to_dict()
        if isinstance(x, Mapping):
            if self.encoder is None:
                raise InputError("this release was made from numbers, not from a table: give the features in order")
            x = self.encoder.transform_record(x)[0]
        elif self.encoder is not None and np.asarray(x).size != self.points.shape[1]:
            raise InputError("this release was made from a table: give the record as a mapping from column to value")
        return float(self.values(np.asarray(x)[None, :], [y])[0])  # type: ignore[arg-type]  # a list of one label

    def values(self, X: ArrayLike, y: Labels) -> Floats:
        """Values of records that are not among those counted, each as if it joined alone."""
        from datassay.privacy import kernels

        given = np.asarray(X)
        if given.ndim != 2 or given.shape[1] != self.points.shape[1]:
            raise InputError(f"a record has {self.points.shape[1]} features here, got shape {given.shape[1:]}")
        space = make_space(given.astype(self.points.dtype), self.points, self.metric, zero_rows=True)
        assert not isinstance(space, NeighbourGraph)
        labels = as_labels("y", y)
        if len(labels) != len(given):
            raise InputError(f"y has {len(labels)} labels for {len(given)} records")
        if (labels.dtype.kind == "U") != (self.labels.dtype.kind == "U"):
            raise InputError(f"labels here are like {self.labels[0].item()!r}, got {labels[0].item()!r}")
        unknown = np.setdiff1d(labels, self.labels)
        known = np.unique(self.labels)
        if len(unknown) and len(known) + len(unknown) > self.n_classes:
            raise InputError(f"there is no label {unknown[0].item()!r}; there are {_checks.listed(known)}")
        codes = np.unique(np.concatenate([labels, self.labels]), return_inverse=True)[1].astype(np.int32)
        worth = worths(self.counts, self.weights, self.n_classes)[0]

        def add(block: Within, total: Floats) -> None:
            targets = codes[len(labels) :][block.rows]
            kernels.add_worths(block.inside, codes[: len(labels)], targets, worth[block.rows], total)

        total = accumulate(space, WithinThreshold(self.tau), add, Schedule(1, here=True))
        return np.asarray(total / self.weights.sum())

    def to_dict(self) -> dict[str, object]:
        """The release as plain values, for JSON."""
        return {
            "counts": self.counts.tolist(), "points": self.points.tolist(), "dtype": self.points.dtype.name,
            "labels": self.labels.tolist(), "weights": self.weights.tolist(), "tau": self.tau, "metric": self.metric,
            "n_classes": self.n_classes, "columns": list(self.columns),
            "encoder": None if self.encoder is None else self.encoder.to_dict(),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "NoisyCounts":
        """The release that :meth:`to_dict` wrote down."""
        points = np.array(plain["points"], plain["dtype"])
        return cls(**{**cls._fields(plain, {}), "points": points, "labels": as_labels("labels", plain["labels"])})


def worths(counts: NDArray[np.int64], weights: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """The worth of a neighbour to each validation point, weighted, from released counts alone (Mathematics §3, §5).

    First for one that joins those counted, then for one that is among them and is taken out of the counts first; each
    (validation points × 2): with another label, and with a matching one. Negative counts are clipped. The paper's are
    clipped each by itself, as published: matching neighbours may then exceed neighbours, which costs most of its
    quality.
    """
    from scipy.special import digamma

    found = np.empty((2, len(counts), 2))
    for own in (0, 1):
        for match in (0, 1):
            if counts.shape[1] == 2:
                p = np.maximum(counts[:, 0] - own * match, 0)
                c = 1 + p + np.maximum(counts[:, 1] - own * (1 - match), 0)
            else:
                p = np.maximum(counts[:, 2] - own * match, 0)
                c = 1 + np.maximum(counts[:, 1] - own, 0)
            beyond_one = np.where(c > 1, digamma(c + 1.0) + np.euler_gamma - 1.0, 0.0)  # H_c − 1
            spread = beyond_one / c
            found[own, :, match] = (match - 1 / n_classes) / c + (match - p / np.maximum(c - 1, 1)) * spread
    found *= weights[:, None]
    return found[0], found[1]
