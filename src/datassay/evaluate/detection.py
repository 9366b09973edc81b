"""How well values find bad records: faulty ones should be worth least."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._choices import NoiseScale
from datassay._errors import InputError
from datassay._version import __version__
from datassay.data import as_labels
from datassay.results import Columns, Fact, Parameter, Result, Values, as_facts


@dataclass(frozen=True, eq=False)
class Detection(Result):
    """How well low values point to errors.

    Attributes
    ----------
    auroc
        The chance that a random error has a lower value than a random clean record (ties count half).
    precision
        The share of errors among the lowest-valued records, looking at as many as there are errors (records tied at the
        cut count in proportion).
    n_errors, n_records
        How many errors there are, among how many records.
    parameters, notes, version
        Where the values are from.

    Its data frames have one row: auroc, precision, n_errors, n_records.
    """

    auroc: float
    precision: float
    n_errors: int
    n_records: int
    parameters: Mapping[str, Parameter] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    version: str = field(default=__version__, repr=False)

    def __len__(self) -> int:
        return 1

    def _columns(self) -> Columns:
        return {name: np.array([getattr(self, name)]) for name in ("auroc", "precision", "n_errors", "n_records")}

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``errors``, ``share_errors``, ``auroc`` and ``precision``."""
        share = self.n_errors / self.n_records
        return as_facts(
            {"errors": self.n_errors, "share_errors": share, "auroc": self.auroc, "precision": self.precision}
        )

    def __str__(self) -> str:
        return (
            f"AUROC {self.auroc:.3f}; of the {self.n_errors:,} most suspicious records {self.precision:.1%} are marked "
            f"({self.n_errors / self.n_records:.1%} by chance)"
        )


def detect_errors(values: Values | ArrayLike, is_error: ArrayLike) -> Detection:
    """How well low values find known errors, the lowest value being the most suspicious.

    Parameters
    ----------
    values
        The values of the records.
    is_error
        True for each record that is known to be faulty.

    Examples
    --------
    >>> import datassay as da
    >>> da.detect_errors([0.3, -0.2, 0.1, 0.2], [False, True, False, False])
    Detection(auroc=1.0, precision=1.0, n_errors=1, n_records=4)
    """
    from scipy.stats import rankdata

    scores = np.asarray(values, np.float64)
    wrong = np.asarray(is_error)
    if wrong.dtype != bool:
        if not np.isin(wrong, (0, 1)).all():
            raise InputError("is_error must be Boolean, one entry a record")
        wrong = wrong.astype(bool)
    if scores.ndim != 1 or wrong.shape != scores.shape:
        raise InputError(f"is_error has shape {wrong.shape} for {scores.shape[0] if scores.ndim else 0} values")
    if not np.isfinite(scores).all():
        raise InputError(
            f"values holds {scores[~np.isfinite(scores)][0]} at row {int((~np.isfinite(scores)).argmax())}"
        )
    n, errors = len(wrong), int(wrong.sum())
    if errors in (0, n):
        raise InputError(f"is_error marks {errors} of {n} records; detection needs both errors and clean records")
    ranks = rankdata(-scores)
    auroc = (ranks[wrong].sum() - errors * (errors + 1) / 2) / (errors * (n - errors))
    cut = np.partition(scores, errors - 1)[errors - 1]
    below, tied = scores < cut, scores == cut
    found = wrong[below].sum() + wrong[tied].mean() * (errors - below.sum())
    how: dict[str, Parameter] = {"method": values.method} if isinstance(values, Values) else {}
    return Detection(float(auroc), float(found / errors), errors, n, how)


def _chosen(n: int, rate: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    rate = _checks.number("rate", rate, above=0, at_most=1)
    marked = np.zeros(n, bool)
    marked[rng.choice(n, max(1, round(rate * n)), replace=False)] = True
    return marked


def corrupt_labels(y: ArrayLike, rate: float = 0.1, seed: int = 0) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    """Labels of which a share was flipped, each to another class at random, and where.

    Parameters
    ----------
    y
        The labels.
    rate
        Share of the records whose label is flipped.
    seed
        Seed of the draws.

    Examples
    --------
    >>> labels, wrong = corrupt_labels(["a", "b", "a", "b"], rate=0.5, seed=1)
    >>> int(wrong.sum()), bool((labels != ["a", "b", "a", "b"])[wrong].all())
    (2, True)
    """
    labels = as_labels("y", y)
    rng = np.random.default_rng(_checks.integer("seed", seed, at_least=0))
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError("y has one class only; there is no other label to flip to")
    wrong = _chosen(len(labels), rate, rng)
    codes[wrong] = (codes[wrong] + rng.integers(1, len(classes), int(wrong.sum()))) % len(classes)
    return classes[codes], wrong


def corrupt_features(
    X: ArrayLike, rate: float = 0.1, seed: int = 0, scale: NoiseScale = "norm"
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Features with strong Gaussian noise added to a share of the records, and where.

    Parameters
    ----------
    X
        The features.
    rate
        Share of the records that noise is added to.
    seed
        Seed of the draws.
    scale
        The deviation of the noise in each column: the column's L2 norm (``"norm"``, as in the published experiments;
        Mathematics §10), or its mean absolute value (``"mean-abs"``, as their text says).

    Examples
    --------
    >>> X, wrong = corrupt_features([[1.0], [2.0], [3.0], [4.0]], rate=0.25)
    >>> int((X[:, 0] != [1, 2, 3, 4]).sum()), int(wrong.sum())
    (1, 1)
    """
    from datassay.neighbors import as_floats

    _checks.choice("scale", scale, get_args(NoiseScale))
    points = as_floats("X", X).astype(np.float64)
    if len(points) == 0:
        raise InputError("X has no rows")
    rng = np.random.default_rng(_checks.integer("seed", seed, at_least=0))
    noisy = _chosen(len(points), rate, rng)
    size = np.linalg.norm(points, axis=0) if scale == "norm" else np.abs(points).mean(axis=0)
    points[noisy] += rng.normal(size=(int(noisy.sum()), points.shape[1])) * size
    return points, noisy
