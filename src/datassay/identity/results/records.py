"""Records as a caller names them: by a mask, by positions, or by one entry a record."""

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay.results import Floats


def _in_our_order(given: object, ids: NDArray[np.generic], what: str) -> NDArray[np.generic]:
    """An array with one entry a record; what has an index of its own must have the ids, in their order."""
    index = getattr(given, "index", None)
    if hasattr(index, "equals"):
        labels = np.asarray(index)
        counted = type(index).__name__ == "RangeIndex" and np.array_equal(labels, np.arange(len(labels)))
        if not counted and not np.array_equal(labels, ids):
            raise InputError(
                f"{what} has another index than the records; align it first, or pass {what}.to_numpy() to match by "
                "position"
            )
    elif hasattr(given, "equals") and hasattr(given, "get_loc"):
        raise InputError(f"{what} is an index; give positions (counting from 0) or a mask")
    return np.asarray(given)


def people_among(
    records: object, ids: NDArray[np.generic], cell: NDArray[np.int32], weights: Floats | None, cells: int
) -> Floats:
    """The number of people of each of so many cells who are among these records (all if None): a mask, or positions."""
    if records is None:
        return np.bincount(cell, weights, minlength=cells).astype(np.float64, copy=False)
    given = _in_our_order(records, ids, "records")
    if given.dtype == bool and given.shape != (len(ids),):
        raise InputError(f"records: the mask has shape {given.shape} for {len(ids)} records")
    if given.shape != (0,) and (given.dtype.kind not in "biu" or given.ndim != 1):
        raise InputError("records must be a Boolean mask or positions of records")
    at = np.flatnonzero(given) if given.dtype == bool else given.astype(np.intp)
    if len(at) == 0:
        raise InputError("records: nobody is chosen")
    if at.min() < 0 or at.max() >= len(ids):
        raise InputError(f"records must be positions from 0 to {len(ids) - 1}")
    weights = None if weights is None else weights[at]
    return np.bincount(cell[at], weights, minlength=cells).astype(np.float64)


def codes_of(group: object, ids: NDArray[np.generic]) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
    """The group of each record, and the groups' names, from one entry a record."""
    given = _in_our_order(group, ids, "group")
    if given.shape != ids.shape:
        raise InputError(f"by: give the name of a column or one entry for each of the {len(ids)} records")
    names, codes = np.unique(given.astype(np.str_), return_inverse=True)
    return codes.astype(np.int32), names
