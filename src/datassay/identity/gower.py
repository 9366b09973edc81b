"""Tables as points under Gower's distance, not normalised (Mathematics §8).

Numbers are divided by the range of the original table and differ by at most 1; categories differ by 0 or 1.
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
    found: list[tuple[bool, float, float, dict[str, int] | None]] = []
    for name in columns:
        column = table.columns[name]
        if column.kind == "categorical":
            assert column.categories is not None
            found.append((True, 0.0, 1.0, {str(c): i for i, c in enumerate(column.categories.tolist())}))
            continue
        _checks.exact_as_float(f"column {name!r} of {table.name}", column.data)
        present = column.data[~column.missing].astype(np.float64)
        if len(present) and not np.isfinite(present).all():
            raise InputError(f"column {name!r} of {table.name} holds infinite numbers; mend those cells")
        spread = float(np.ptp(present)) if len(present) else 0.0
        # A constant is there or is not.
        found.append((spread == 0.0, float(present.min()) if len(present) else 0.0, spread or 1.0, None))
    categorical, low, width, names = zip(*found, strict=True)
    return Gower(tuple(columns), np.array(categorical), np.array(low), np.array(width), names)
