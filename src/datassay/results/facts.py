"""Headline numbers by name, as plain as JSON is."""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError

Parameter = str | int | float | bool | None
Fact = str | int | float | bool | None
MOST_CLASSES: Final = 20  # facts are headlines: beyond so many classes, not one for each


def plain(value: object) -> object:
    """A number of NumPy as one of Python; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def as_facts(given: Mapping[str, object]) -> dict[str, Fact]:
    """Headline numbers by name, each as plain as JSON is: None for what is not a finite number.

    A name says what is measured, in words joined by underscores; a number for one attribute, class, strategy or group
    of several has a dot and the name of that one after it: ``bits.zip``, ``risk.k=8``, ``share_unique.county=Wake``.

    >>> import numpy as np
    >>> as_facts({"records": np.int64(3), "mean_value": np.float64(0.5), "auc": float("nan")})
    {'records': 3, 'mean_value': 0.5, 'auc': None}
    """
    return {name: _as_fact(value) for name, value in given.items()}


def _as_fact(value: object) -> Fact:
    value = plain(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def rank_correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Spearman's rank correlation; 0 where all entries of one of them are alike."""
    from scipy.stats import spearmanr

    return 0.0 if np.ptp(one) == 0 or np.ptp(other) == 0 else float(spearmanr(one, other).statistic)


def row_of(id: object, ids: NDArray[np.generic]) -> int:
    """Where the record with this id is."""
    found = np.flatnonzero(ids == id)
    if len(found) == 0:
        raise InputError(f"there is no record with id {id!r}")
    if len(found) > 1:
        raise InputError(f"{len(found)} rows have the id {id!r}: take them from the data frame")
    return int(found[0])
