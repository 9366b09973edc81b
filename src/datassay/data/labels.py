"""Labels as arrays: classes of strings, whole numbers or Booleans, or numbers to predict; their codes; and ids."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay._tensors import without_tensors
from datassay.data.table import Table

Codes = NDArray[np.uint8] | NDArray[np.int32]


def as_labels(name: str, given: object) -> NDArray[np.generic]:
    """Labels as a plain array of strings, whole numbers or Booleans."""
    if isinstance(given, Table):
        given = given.labels
    given = without_tensors(given)
    # A list goes through object: numpy would turn a stray number among strings into a string.
    labels = np.array(given, dtype=object) if isinstance(given, list | tuple) else np.asarray(given)
    if labels.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, one label a row; got shape {labels.shape}")
    if labels.dtype.kind in "bU":
        return labels
    if labels.dtype.kind in "iu" and (labels.dtype != np.uint64 or not (labels > np.iinfo(np.int64).max).any()):
        return labels.astype(np.int64)
    plain = [value.item() if isinstance(value, np.generic) else value for value in labels.tolist()]
    missing = [i for i, value in enumerate(plain) if is_missing(value)]
    if missing:
        raise InputError(f"{name} has no label at row {missing[0]} (counting from 0)")
    for kind in (str, bool):
        if all(isinstance(value, kind) for value in plain):
            return np.array(plain, dtype=kind)
    if all(isinstance(value, int | float) for value in plain):
        for row, value in enumerate(plain):
            if isinstance(value, float) and not value.is_integer():
                raise InputError(
                    f"{name} has the label {value!r} at row {row}; labels are classes (strings or whole numbers). For "
                    "numbers, value records by a model that predicts them: data_shapley with a regressor"
                )
            if abs(value) > (2**53 if isinstance(value, float) else np.iinfo(np.int64).max):
                raise InputError(f"{name} has the label {value!r} at row {row}, which is too large; use strings")
        return np.array([int(value) for value in plain], np.int64)
    raise InputError(f"{name} mixes labels of different types; make them all strings or all whole numbers")


def as_targets(name: str, given: object) -> NDArray[np.float64]:
    """Numbers to predict, one a row, all of them finite."""
    try:
        targets = np.asarray(without_tensors(given), np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold numbers for a model that predicts numbers") from None
    if targets.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, one number a row; got shape {targets.shape}")
    if not np.isfinite(targets).all():
        row = int((~np.isfinite(targets)).argmax())
        raise InputError(f"{name} has the value {targets[row]} at row {row} (counting from 0)")
    return targets


def coded(labels: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.integer[Any]]]:
    """The distinct labels in order, and which of them each label is; whole numbers close together need no sort."""
    if labels.dtype.kind == "i" and len(labels):
        first, last = int(labels.min()), int(labels.max())
        if last - first < 256:
            places = (labels - first).astype(np.uint8)
            known = np.bincount(places, minlength=last - first + 1) > 0
            return np.flatnonzero(known) + first, (np.cumsum(known) - 1).astype(np.uint8)[places]
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes


def is_missing(value: object) -> bool:
    """Whether a single value stands for no value: None, NaN, or pandas' NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def ids_of(given: object | None, n: int) -> NDArray[np.generic]:
    """Ids of n records as :func:`as_ids` has them; their positions if none are given."""
    ids = np.arange(n) if given is None else as_ids(np.asarray(without_tensors(given)), "ids")
    if len(ids) != n:
        raise InputError(f"ids has {len(ids)} entries for {n} records")
    return ids


def as_ids(given: NDArray[np.generic], name: str) -> NDArray[np.generic]:
    """Ids as a plain array of whole numbers or strings, all present and distinct."""
    ids = np.asarray(given)
    if ids.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, one entry a row")
    if ids.dtype.kind == "f" and np.isfinite(ids.astype(float)).all() and (ids == np.floor(ids.astype(float))).all():
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iuU":
        missing = [i for i, value in enumerate(ids.tolist()) if is_missing(value)]
        if missing:
            raise InputError(f"{name} is missing at row {missing[0]} (counting from 0); every row needs an id")
        ids = np.array([str(value) for value in ids.tolist()])
    unique, count = np.unique(ids, return_counts=True)
    if len(unique) < len(ids):
        twice = unique[count > 1]
        rows = np.flatnonzero(ids == twice[0])
        raise InputError(
            f"{name} has duplicates: {_checks.listed(twice)} (the first at rows {rows[0]} and {rows[1]}, counting "
            "from 0); ids must be distinct"
        )
    return ids
