"""What to make coarser first: the changes of attributes after which the fewest people are unique, one at a time.

Such a greedy plan need not be the shortest there is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay._run import documented
from datassay._version import __version__
from datassay._work import Bar, Progress
from datassay.data import Column, TableLike, as_table, missing_column
from datassay.identity.counting import MANY_FRACTIONS, Coarsening
from datassay.identity.crowds import Crowd, count_crowds
from datassay.results import Fact, Floats, Parameter, Result, as_facts

RARE = (0.01, 0.05)  # categories of fewer people than this share are put together
BINS = (20, 10, 5)  # about so many bins over the range of a number
WORTH_WHILE = 0.01  # if no coarser attribute makes so many fewer people unique, one is left out
OTHER = "(other)"
Change = tuple[float, float, str, str, Any]  # shares unique and in small groups after it; in words; of what, and how


@dataclass(frozen=True, eq=False)
class CoarseningPlan(Result):
    """Changes of attributes, the first being none, and how many people are unique after each and those before it.

    Attributes
    ----------
    ids
        What is changed, in words; the first entry is the data as they are.
    values, below
        The share of people who are unique after it, and who are in groups of fewer than ``size``.
    attributes
        The attribute that is changed; "" for the first.
    coarsen
        All changes together, as :func:`datassay.uniqueness_shapley` and :func:`datassay.group_sizes` take them.
    tried
        Every change of the first step by itself: what it is, and the shares of people unique and in small groups then.
    """

    ROWS: ClassVar = "steps"
    COLUMNS: ClassVar = {"change": "ids", "attribute": "attributes", "unique": "values", "below": "below"}

    ids: NDArray[np.str_]
    values: Floats
    below: Floats
    attributes: NDArray[np.str_]
    coarsen: Mapping[str, Any]
    tried: Mapping[str, tuple[float, float]]
    size: int = 5
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"CoarseningPlan({len(self) - 1} changes: {self.values[0]:.1%} → {self.values[-1]:.1%} unique)"

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``steps``, ``share_unique``, ``share_unique_after``, ``share_below_after``."""
        after = {"share_unique_after": self.values[-1], "share_below_after": self.below[-1]}
        return as_facts({"steps": len(self) - 1, "share_unique": self.values[0], **after})

    def summary(self) -> str:
        """The plan, step by step, in words."""
        lines = [f"{self.values[0]:.1%} of the people are unique, {self.below[0]:.1%} in groups under {self.size}."]
        for name, unique, below in zip(self.ids[1:], self.values[1:], self.below[1:], strict=True):
            lines.append(f"  {name}: {unique:.1%} unique, {below:.1%} in groups under {self.size}")
        if len(self) == 1:
            enough = self.values[0] <= float(str(self.parameters.get("target", 1.0)))
            why = "That is few enough" if enough else "No change that was tried makes fewer people unique"
            lines.append(f"{why}: nothing is made coarser.")
        return self._in_words(lines)


def round_width(width: float) -> float:
    """The nearest of …, 1, 2, 5, 10, 20, 50, … by ratio.

    >>> round_width(4.4), round_width(0.13), round_width(37)
    (5, 0.1, 50)
    """
    power = 10.0 ** math.floor(math.log10(width))
    best = min((1, 2, 5, 10), key=lambda step: abs(math.log(step * power / width)))
    found = float(f"{best * power:.6g}")
    return int(found) if found.is_integer() else found


def _numbers(column: Column) -> Floats:
    numbers = column.data.astype(np.float64)
    return np.asarray(numbers[np.isfinite(numbers)])


def _is_measured(column: Column) -> bool:
    """Whether a column holds measurements, which hardly anyone has in common."""
    if column.kind != "numeric" or column.is_date:
        return False
    numbers = _numbers(column)
    if not (numbers != np.floor(numbers)).any():
        return False
    few = numbers[: 50 * MANY_FRACTIONS]  # these have many values, mostly: then all need not be looked through
    return len(np.unique(few)) > MANY_FRACTIONS or len(np.unique(numbers)) > MANY_FRACTIONS


@documented()
def measured_bins(table: TableLike, columns: Sequence[str] | None = None) -> dict[str, float]:
    """Bins for measurements (numbers with decimals), of about a tenth of the range of their middle 98%.

    Equality is no question to ask of a measurement; an attacker knows it to some precision.

    Parameters
    ----------
    table, columns
        The table, and its columns to look at; all features if left out.

    Returns
    -------
    dict
        Widths by column, as ``coarsen`` of :func:`datassay.uniqueness_shapley` and :func:`datassay.group_sizes` takes
        them.

    Examples
    --------
    >>> import datassay as da
    >>> measured_bins(da.load_dataset("iris"))
    {'sepal length (cm)': 0.5, 'sepal width (cm)': 0.2, 'petal length (cm)': 0.5, 'petal width (cm)': 0.2}
    """
    given = as_table(table, text="categorical")
    found: dict[str, float] = {}
    for name in given.features if columns is None else columns:
        if name not in given.columns:
            raise InputError(missing_column(name, given.columns))
        if _is_measured(given.columns[name]):
            numbers = _numbers(given.columns[name])
            low, high = np.quantile(numbers, [0.01, 0.99])
            found[name] = round_width(float(high - low or np.ptp(numbers)) / 10)
    return found


def _ways(name: str, column: Column, now: object) -> list[tuple[str, Any]]:
    """Ways to make an attribute coarser than it is ``now``, in words and as ``coarsen`` takes them."""
    if column.is_date:
        return [(f"{name} known by its {period}", period) for period in ("month", "year") if now != "year"]
    if column.kind == "numeric":
        numbers = _numbers(column)
        if len(numbers) == 0 or np.ptp(numbers) == 0:
            return []
        low, high = np.quantile(numbers, [0.01, 0.99])
        widths = sorted({round_width(float(high - low or np.ptp(numbers)) / bins) for bins in BINS})
        finest = float(now) if isinstance(now, int | float) else 0.0
        if not _is_measured(column):
            finest = max(finest, 1.0)
        return [(f"{name} in steps of {width:g}", width) for width in widths if width > finest]
    assert column.categories is not None
    counts = np.bincount(column.data[column.data >= np.int64(0)].astype(np.intp), minlength=len(column.categories))
    names = [str(name) for name in column.categories[counts > 0]]
    length = len(names[0]) if names else 0
    if len(names) > MANY_FRACTIONS and all(len(code) == length and code.isdecimal() for code in names):
        known = now if isinstance(now, int) else length  # a zip code, say
        return [(f"{name} by its first {left} digits", left) for left in range(known - 1, max(0, known - 3), -1)]
    ways: list[tuple[str, Any]] = []
    for share in RARE:
        rare = np.flatnonzero((counts > 0) & (counts < share * counts.sum()))
        merged = {str(column.categories[c]): OTHER for c in rare}
        # Put together the few, not the many: that would be to leave the attribute out by another name.
        if len(rare) > 1 and 2 * counts[rare].sum() <= counts.sum() and merged != now:
            ways.append((f"{name}: {len(rare)} values of fewer than {share:.0%} of the people as one", merged))
    return ways


@documented()
def suggest_coarsening(
    table: TableLike,
    columns: Sequence[str] | None = None,
    *,
    target: float = 0.05,
    steps: int = 6,
    attributes: int = 6,
    size: int = 5,
    coarsen: Mapping[str, Coarsening] | None = None,
    progress: Progress = None,
) -> CoarseningPlan:
    """A plan to make attributes coarser until few people are unique: the change that helps most first.

    Tried are, for each attribute, steps of about a twentieth, a tenth and a fifth of the range of a number, the month
    and the year of a date, one or two digits less of a code, and categories of fewer than 1% or 5% of the people put
    together. If none of that makes at least 1% of the people less unique, an attribute is left out. Everybody is
    counted after every change, exactly; the plan is greedy.

    Parameters
    ----------
    table, columns
        The table and the attributes an attacker may know; all features if left out.
    target, steps
        Stop when no more than this share of the people is unique, or after so many changes.
    attributes
        In each step, try so many attributes: those without which the fewest people would be unique.
    size
        Groups of fewer people than this are counted as well.
    coarsen
        How finely attributes are known to begin with; measurements by :func:`measured_bins` if not named.

    Returns
    -------
    CoarseningPlan
        The changes, and how many people are unique after each; ``.coarsen`` has all of them.

    Examples
    --------
    >>> import datassay as da
    >>> plan = da.suggest_coarsening(da.voters(20_000), ["zip", "race", "age"], target=0, steps=2)
    >>> bool(plan.values[-1] < plan.values[0]), len(plan.coarsen)
    (True, 2)
    """
    given = as_table(table, text="categorical")
    target = _checks.number("target", target, at_least=0, at_most=1)
    steps = _checks.integer("steps", steps, at_least=0)
    attributes = _checks.integer("attributes", attributes, at_least=1)
    size = _checks.integer("size", size, at_least=2)
    names = list(given.features if columns is None else columns)
    bins = measured_bins(given, names)
    now: dict[str, Any] = {**bins, **(coarsen or {})}
    notes = tuple(f"{name} is taken to be known in steps of {now[name]:g}" for name in bins)

    def after(crowd: Crowd, words: str, name: str, how: Any) -> Change:
        return crowd.unique, crowd.share_below(size), words, name, how

    crowds = count_crowds(given, names, now)
    done = [after(crowds.alike(now), "as it is", "", None)]
    tried: dict[str, tuple[float, float]] = {}
    with Bar(progress, max(1, steps), "steps") as report:
        for step in range(steps):
            unique = done[-1][0]
            if unique <= target:
                break
            left = [name for name in names if name not in now or now[name] is not None]
            others = crowds.without(now)
            asked = sorted(left, key=lambda name: others[name].unique)[:attributes]
            choices: list[Change] = []
            for name in asked:
                for words, how in _ways(name, given.columns[name], now.get(name)):
                    choices.append(after(others[name].split(crowds.code(name, how)), words, name, how))
            choices.sort(key=lambda change: change[:3])
            if step == 0:
                tried = {words: (alone, few) for alone, few, words, _, _ in choices}
            best = choices[0] if choices else None
            if (best is None or best[0] > unique - WORTH_WHILE) and len(left) > 1:
                # Where leaving out any attribute helps nobody, the one of most values stands in the way.
                name = asked[0]
                if others[name].unique >= unique:
                    name = max(left, key=lambda name: len(np.unique(given.columns[name].data)))
                best = after(others[name], f"{name} left out", name, None)
            if best is None or (best[0] >= unique and len(left) < 2):  # nothing is left to be changed
                break
            report(1)
            done.append(best)
            now[best[3]] = best[4]
        if len(done) <= steps:
            report(steps + 1 - len(done))
    shares, below, ids, changed = (np.array(part) for part in zip(*(change[:4] for change in done), strict=True))
    settings: dict[str, Parameter] = {"target": target, "steps": steps, "attributes": attributes}
    return CoarseningPlan(ids, shares, below, changed, now, tried, size, settings, notes)
