"""What is public kept apart from what is private: a validation set must be no part of the training data."""

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay._tensors import as_array
from datassay.data import Inputs


def check_public(inputs: Inputs, notes: list[str], shared: tuple[float, float] | None = None) -> NDArray[np.generic]:
    """The classes that only the private data have; a validation set that is part of the private data is refused."""
    check_apart(inputs, notes, shared=shared)
    unseen = np.bincount(inputs.codes_val, minlength=inputs.n_classes) == 0
    return np.asarray(inputs.classes[unseen])


def check_apart(
    inputs: Inputs, notes: list[str], features_alone: bool = False, shared: tuple[float, float] | None = None
) -> float:
    """The share of validation records that are private records too; from one half on the validation set is refused.

    With ``features_alone`` labels are not compared. ``shared`` is the answer of :func:`shared_records`, if known.
    """
    share, usual = shared or shared_records(inputs, features_alone)
    but = ", whatever their labels" if features_alone else ""
    if share >= 0.5 and usual < 0.5:
        most = "every validation record is" if share == 1 else f"{share:.1%} of the validation records are"
        raise InputError(
            f"{most} also in the training data{but}; the validation set is public and must be no part of the private "
            "data"
        )
    if share > 0:
        notes.append(
            f"{share:.1%} of the validation records occur in the training data too{but}; the validation set is taken "
            "to be public"
        )
    return share


def _row_hashes(points: NDArray[np.generic], codes: NDArray[np.generic]) -> NDArray[np.uint64]:
    """A 64-bit hash of every row and its label; equal rows have equal hashes."""
    odd = np.random.default_rng(0x5EED).integers(0, 2**63, points.shape[1] + 1, dtype=np.uint64) * 2 + 1
    total = codes.astype(np.uint64) * odd[-1]
    for column, factor in zip(points.T, odd[:-1], strict=True):
        words = (column.astype(np.float64) + 0.0).view(np.uint64)  # −0 becomes 0
        total += (words ^ (words >> np.uint64(29))) * factor
    return np.asarray(total)


def shared_records(inputs: Inputs, features_alone: bool) -> tuple[float, float]:
    """The share of distinct validation records that are training records too, and of training records with a twin.

    A validation set taken out of the training data would publish them. Records of few values coincide by chance, among
    the training records as well.
    """
    points, points_val = as_array(inputs.points), as_array(inputs.points_val)
    codes, codes_val = (np.zeros_like(some) if features_alone else some for some in (inputs.codes, inputs.codes_val))
    known = np.unique(points_val[:, 0])  # few records agree in one column: the rest need no second look
    at = np.minimum(np.searchsorted(known, points[:, 0]), len(known) - 1)
    alike = np.flatnonzero(known[at] == points[:, 0])
    validation = np.unique(_row_hashes(points_val, codes_val))
    shared = float(np.isin(validation, _row_hashes(points[alike], codes[alike])).mean())
    if shared == 0:
        return 0.0, 0.0
    count = np.unique(_row_hashes(points, codes), return_counts=True)[1]
    return shared, float(count[count > 1].sum() / count.sum())
