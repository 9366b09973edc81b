"""The worth of a record beside its exposure: whom to keep, whom to protect, and whom to delete first."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._version import __version__
from datassay.attacks.figures import draw_quadrants
from datassay.attacks.result import Attack
from datassay.results import Axes, Fact, Floats, Parameter, PerRecord, Values, as_facts, axes_on, rank_correlation

QUADRANTS: Final = ("delete first", "of little use", "protect", "keep")


@dataclass(frozen=True, eq=False)
class Exposure(PerRecord):
    """Value and exposure of every record, and the quadrant it is in.

    Quadrants: «delete first» (low value, high exposure), «of little use» (low value, not exposed), «protect» (worth
    having, and exposed), «keep» (worth having, not exposed).

    Attributes
    ----------
    values, exposure, ids, quadrants
        One entry per record.
    low_value, high_exposure
        Where the lines are: values up to the one are low, exposures from the other on are high.
    method, measure, parameters, notes, version
        What the value and the exposure are, and how they were obtained.
    """

    COLUMNS: ClassVar = {"id": "ids", "value": "values", "exposure": "exposure", "quadrant": "quadrants"}

    values: Floats
    exposure: Floats
    ids: NDArray[np.generic]
    low_value: float
    high_exposure: float
    method: str
    measure: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"Exposure({len(self):,} records: {self.method} against {self.measure})"

    @property
    def quadrants(self) -> NDArray[np.str_]:
        """The name of each record's quadrant."""
        # Where all are alike none is low, and none is high.
        low = (self.values <= self.low_value) & (self.values < self.values.max())
        exposed = (self.exposure >= self.high_exposure) & (self.exposure > self.exposure.min())
        return np.asarray(np.array(QUADRANTS)[2 * ~low + ~exposed])

    def candidates(self, count: int = 20) -> NDArray[np.intp]:
        """Positions of the records to delete first: of low value and highly exposed, the most exposed first."""
        count = _checks.integer("count", count, at_least=0)
        rows = np.flatnonzero(self.quadrants == QUADRANTS[0])
        exposed = np.round(self.exposure[rows], 12)  # what differs by rounding alone is equal, and value decides
        return rows[np.lexsort((rows, self.values[rows], -exposed))][:count]

    def correlation(self) -> float:
        """Spearman's rank correlation of value and exposure."""
        return rank_correlation(self.values, self.exposure)

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``records``; the rank ``correlation`` of value and exposure; ``low_value`` and ``high_exposure``, where the
        lines are; ``delete_first``, ``of_little_use``, ``protect`` and ``keep``, records in each quadrant, and
        ``share_delete_first`` and so on.
        """
        names = self.quadrants
        found: dict[str, object] = {
            "records": len(self), "correlation": self.correlation(), "low_value": self.low_value,
            "high_exposure": self.high_exposure,
        }  # fmt: skip
        for name in QUADRANTS:
            word = name.replace(" ", "_")
            found |= {word: (names == name).sum(), f"share_{word}": (names == name).mean()}
        return as_facts(found)

    def summary(self, count: int = 10) -> str:
        """Who is where, in words."""
        names = self.quadrants
        lines = [
            f"{len(self):,} records: {self.method} against {self.measure}; rank correlation {self.correlation():.2f}.",
            f"Low value: up to {self.low_value:.3g}. High exposure: from {self.high_exposure:.3g}.",
        ]
        for name in QUADRANTS:
            inside = names == name
            lines.append(f"  {name}: {int(inside.sum()):,} ({inside.mean():.1%})")
        first = self.candidates(count)
        if len(first):
            listed = ", ".join(f"{self.ids[i]!s} ({self.values[i]:.3g}, {self.exposure[i]:.3g})" for i in first)
            lines.append(f"Delete first (value, exposure): {listed}")
        return self._in_words(lines)

    def plot(self, ax: Axes | None = None, most: int | None = None, *, label: str | None = None) -> Axes:
        """Draw value against exposure, the four quadrants named and counted; returns the axes.

        Of more than ``most`` records so many are drawn, chosen at random (the same ones each time). With a ``label``
        for the legend all records have one colour, so that several results can share the axes.
        """
        names = self.quadrants
        drawn = np.ones(len(self), bool)
        if most is not None:
            chosen = np.random.default_rng(0).permutation(len(self))
            drawn[chosen[_checks.integer("most", most, at_least=1) :]] = False
        quadrants = {name: names == name for name in QUADRANTS}
        lines = (self.low_value, self.high_exposure)
        ax = draw_quadrants(axes_on(ax, 6, 5), self.values, self.exposure, quadrants, lines, drawn, label)
        ax.set_xlabel(f"value: {self.method}")
        ax.set_ylabel(f"exposure: {self.measure}")
        return ax


def value_and_exposure(values: Values, exposure: Values | Attack, *, low: float = 0.25, high: float = 0.75) -> Exposure:
    """Value and exposure of every record side by side, joined by id: whom to keep, to protect, and to delete first.

    Parameters
    ----------
    values
        What records are worth, by any method.
    exposure
        How exposed they are: :func:`datassay.self_waka`, or a membership attack on all of them (its success rates).
    low, high
        Which values are low and which exposures are high, as quantiles: the lowest and the highest quarter.

    Returns
    -------
    Exposure
        Both numbers of the records that have both, and the quadrant of each.

    Examples
    --------
    >>> import datassay as da
    >>> table = da.load_dataset("census")
    >>> joined = da.value_and_exposure(da.knn_shapley(table), da.self_waka(table))
    >>> worst = joined.ids[joined.candidates(10)]  # low value, high exposure: the first to delete
    """
    low = _checks.number("low", low, at_least=0, at_most=1)
    high = _checks.number("high", high, at_least=0, at_most=1)
    if not isinstance(values, Values):
        raise UsageError(f"values must be Values, got {type(values).__name__}")
    if isinstance(exposure, Attack):
        ids, exposed = exposure.success_rates()
        measure = f"success rate of {exposure.method}"
    elif isinstance(exposure, Values):
        ids, exposed, measure = exposure.ids, exposure.values, exposure.method
    else:
        raise UsageError(f"exposure must be Values or an Attack, got {type(exposure).__name__}")
    if (ids.dtype.kind in "US") != (values.ids.dtype.kind in "US"):
        raise InputError("values and exposure have ids of different types; they must be about the same records")
    if len(np.unique(values.ids)) < len(values) or len(np.unique(ids)) < len(ids):
        raise InputError("values and exposure are joined by id, and ids must be distinct")
    shared, here, there = np.intersect1d(values.ids, ids, return_indices=True)
    if len(shared) == 0:
        raise InputError("values and exposure have no record in common; they are joined by id")
    order = np.argsort(here)  # in the order of the values
    here, there = here[order], there[order]
    notes = tuple(dict.fromkeys((*values.notes, *exposure.notes)))
    played = len(exposure) / len(ids)
    if isinstance(exposure, Attack) and played < 20:
        notes = (*notes, f"success rates are rough: a record was attacked in {played:.3g} games on average")
    if len(shared) < max(len(values), len(ids)):
        notes = (
            *notes,
            f"{len(shared):,} records are in both; {len(values) - len(shared):,} have a value only and "
            f"{len(ids) - len(shared):,} an exposure only",
        )
    worth, open_to = values.values[here], exposed[there]
    return Exposure(
        values=worth,
        exposure=open_to,
        ids=values.ids[here],
        low_value=float(np.quantile(worth, low)),
        high_exposure=float(np.quantile(open_to, high)),
        method=values.method,
        measure=measure,
        parameters={f"value {name}": setting for name, setting in values.parameters.items()}
        | {f"exposure {name}": setting for name, setting in exposure.parameters.items()}
        | {"exposure seed": exposure.seed},
        notes=notes,
    )
