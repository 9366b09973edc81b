"""A Dask data frame counted where it is: the distinct rows of every partition, put together on the way home."""

from collections.abc import Sequence
from typing import Any, Final

from datassay._errors import InputError

Frame = Any  # a pandas data frame: it has no types of its own, and is not needed before it is there
AT_ONCE: Final = 8  # counts of partitions that are put together at a time


def is_dask(given: object) -> bool:
    """Whether this is a Dask data frame; says so without importing Dask."""
    return type(given).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(given, "to_delayed")


def count_partitions(frame: Any, columns: Sequence[str], weight: str | None, count: str) -> Frame:
    """The distinct rows, in the order of their values, and in ``count`` how often each occurs or what it weighs.

    Every partition is counted by the worker that has it, and counts are added up a few at a time in the order of the
    partitions: what comes home are distinct rows, and the sums of weights do not depend on who was first.
    """
    import dask

    names, of = list(columns), [*columns, *([] if weight is None else [weight])]
    counting, adding = dask.delayed(_count, pure=True), dask.delayed(_add_up, pure=True)
    parts = [counting(part, names, weight, count) for part in frame[of].to_delayed()]
    while len(parts) > 1:
        parts = [adding(parts[at : at + AT_ONCE], names, count) for at in range(0, len(parts), AT_ONCE)]
    (found,) = dask.compute(parts[0])
    return found.sort_values(names, ignore_index=True)


def _count(part: Frame, columns: list[str], weight: str | None, count: str) -> Frame:
    import numpy as np
    import pandas as pd

    rows = part[columns].copy()
    for name in columns:
        if isinstance(rows[name].dtype, pd.CategoricalDtype):  # partitions may have other categories
            rows[name] = rows[name].astype(rows[name].dtype.categories.dtype)
    if weight is None:
        rows[count] = 1
    else:
        try:
            rows[count] = part[weight].to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            raise InputError(f"weight: column {weight!r} of the data frame does not hold numbers throughout") from None
        if not (np.isfinite(rows[count]) & (rows[count] > 0)).all():
            raise InputError(f"weight: column {weight!r} of the data frame must hold positive numbers in every row")
    return _add_up([rows], columns, count)


def _add_up(parts: list[Frame], columns: list[str], count: str) -> Frame:
    import pandas as pd

    filled = [part for part in parts if len(part)] or parts[:1]  # an empty one may have lost its types
    together = pd.concat(filled, ignore_index=True)
    return together.groupby(columns, dropna=False, sort=False, as_index=False)[[count]].sum()
