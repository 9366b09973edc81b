"""Tables as points whose distances are Gower's, not normalised (Mathematics §8).

Numbers are divided by the range of the original table and differ by at most 1 within it; categories differ by 0 or 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay.data import Table
from datassay.results import Floats

MISSING_NUMBER: Final = 1e9  # farther from any number than 1, and 0 from itself


@dataclass(frozen=True, eq=False)
class Gower:
    """Attributes as the unnormalised Gower distance sees them: numbers over the original's range, and codes."""

    columns: tuple[str, ...]
    categorical: NDArray[np.bool_]
    low: Floats
    width: Floats
    names: tuple[dict[str, int] | None, ...]  # grows by names that only other tables have

    def points(self, table: Table) -> Floats:
        """The rows of a table, as attributes × rows; a category of its own for each name not seen before."""
        rows = np.empty((len(self.columns), len(table)))
        for a, name in enumerate(self.columns):
            column = table.columns[name]
            known = self.names[a]
            if known is not None:
                assert column.categories is not None
                codes = [known.setdefault(str(c), len(known)) for c in column.categories.tolist()]
                rows[a] = np.array([*codes, -1], np.float64)[column.data.astype(np.intp)]
            else:
                numbers = (column.data.astype(np.float64) - self.low[a]) / self.width[a]
                rows[a] = np.where(column.missing, MISSING_NUMBER, numbers)
        return rows


def fit_gower(table: Table, columns: Sequence[str]) -> Gower:
    """Learn ranges and categories from the original table."""
    categorical, low, width, names = [], [], [], list[dict[str, int] | None]()
    for name in columns:
        column = table.columns[name]
        if column.kind == "categorical":
            assert column.categories is not None
            names.append({str(c): i for i, c in enumerate(column.categories.tolist())})
            categorical.append(True)
            low.append(0.0)
            width.append(1.0)
            continue
        _checks.exact_as_float(f"column {name!r} of {table.name}", column.data)
        present = column.data[~column.missing].astype(np.float64)
        if len(present) and not np.isfinite(present).all():
            raise InputError(f"column {name!r} of {table.name} holds infinite numbers; mend those cells")
        spread = float(np.ptp(present)) if len(present) else 0.0
        names.append(None)
        categorical.append(spread == 0.0)  # a constant is there or is not
        low.append(float(present.min()) if len(present) else 0.0)
        width.append(spread or 1.0)
    return Gower(tuple(columns), np.array(categorical), np.array(low), np.array(width), tuple(names))
