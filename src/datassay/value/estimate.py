"""Values that were estimated: beside each its interval, and how the estimate came about."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay.results import Axes, Fact, Floats, Values, as_facts, axes_on
from datassay.value.figures import draw_convergence

STOPS = {
    "exact": "every coalition was visited",
    "coalitions": "as many as allowed were done",
    "seconds": "the time allowed was over",
    "width": "every interval was as narrow as asked",
    "design": "the design was done",
    "interrupted": "it was interrupted",
    "workers": "workers died again and again",
}


@dataclass(frozen=True, eq=False)
class Estimate(Values):
    """Values by a model: what they are, how sure that is, and what it took.

    A kind of :class:`datassay.Values`, with all of its attributes, and:

    Attributes
    ----------
    errors
        Standard error of each value; None where values are exact.
    confidence
        Chance with which the interval ``lower`` … ``upper`` of one record holds its value.
    sizes
        Records of each owner, where owners are the players; else None.
    coalitions, fits, failures
        How many coalitions were used, how many models were fitted for it (others were in the cache), and to how many
        coalitions no model could be fitted.
    stopped
        Why it ended: ``exact``, ``coalitions``, ``seconds``, ``width``, ``design``, ``interrupted`` or ``workers``.
    history
        How it converged: ``coalitions`` so far, the ``widest`` and the ``median`` half-width of the intervals, and the
        rank ``agreement`` (Spearman) with the final values.

    Examples
    --------
    >>> import datassay as da
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> train, validation = da.census(60, seed=1).split(0.5)
    >>> values = da.data_shapley(
    ...     DecisionTreeClassifier(max_depth=2), train, X_val=validation, max_coalitions=600, n_jobs=1
    ... )
    >>> values.stopped, bool((values.lower <= values.values).all())
    ('coalitions', True)
    """

    COLUMNS: ClassVar = {**Values.COLUMNS, "error": "errors", "records": "sizes"}

    errors: Floats | None = None
    confidence: float = 0.95
    sizes: NDArray[np.int64] | None = None
    coalitions: int = 0
    fits: int = 0
    failures: int = 0
    stopped: str = "exact"
    history: Mapping[str, tuple[float, ...]] | None = None

    def __repr__(self) -> str:
        return (
            f"Estimate({len(self)} {self._who()} by {self.method}, {self.coalitions:,} coalitions, total "
            f"{self.values.sum():.4g})"
        )

    def _who(self) -> str:
        return "records" if self.sizes is None else "owners"

    def _in_total(self, reading: object) -> list[str]:
        empty, full = self.parameters.get("empty"), self.parameters.get("full")
        lines = []
        if empty is not None and full is not None:
            lines.append(
                f"All {self._who()} together bring the {self.parameters.get('scoring', 'score')} from {empty:.4g} (no "
                f"data) to {full:.4g}; the values add up to {self.values.sum():.4g}."
            )
        cached = self.coalitions - self.fits
        kept = f" ({cached:,} of them kept from before)" if cached > 0 else ""
        what = "bags" if self.method == "data_oob" else "coalitions"
        lines.append(f"{self.coalitions:,} {what}{kept}; it ended because {STOPS[self.stopped]}.")
        if self.lower is not None and self.upper is not None:
            half = (self.upper - self.lower) / 2
            sure = (self.lower > 0) | (self.upper < 0)
            lines.append(
                f"{self.confidence:.0%} intervals reach ±{np.median(half):.3g} (median), ±{half.max():.3g} at most; "
                f"the sign is sure of {sure.sum():,} ({sure.mean():.1%}) {self._who()}."
            )
        return lines

    def _negatives(self, reading: Any) -> list[str]:
        negative = self.values < 0
        meaning = reading.negative if self.sizes is None else reading.negative.replace("a record", "an owner")
        if self.upper is None:
            return [f"{negative.sum():,} of them ({negative.mean():.1%}) have a negative value: {meaning}."]
        return [
            f"{negative.sum():,} of them ({negative.mean():.1%}) have a negative value by estimate, "
            f"{(self.upper < 0).sum():,} for sure: {meaning}."
        ]

    def facts(self) -> dict[str, Fact]:
        """The headline numbers of :meth:`datassay.Values.facts`, and what the estimate took.

        ``coalitions``, ``fits``, ``failures``, ``stopped``; where there are intervals ``median_half_width`` and
        ``widest_half_width`` of these, and ``share_sure``, whose sign is sure. Where owners are valued there are
        ``owners``, and ``records`` are those of all owners; ``negative`` and the rest are about owners.
        """
        found = super().facts()
        if self.sizes is not None:
            found = {"owners": len(self), **found, "records": int(self.sizes.sum())}
        more: dict[str, object] = {
            "coalitions": self.coalitions, "fits": self.fits, "failures": self.failures, "stopped": self.stopped,
        }  # fmt: skip
        if self.lower is not None and self.upper is not None:
            half = (self.upper - self.lower) / 2
            more |= {"median_half_width": np.median(half), "widest_half_width": half.max()}
            more["share_sure"] = ((self.lower > 0) | (self.upper < 0)).mean()
        return found | as_facts(more)

    def plot_convergence(self, ax: Axes | None = None) -> Axes:
        """Draw how the intervals narrowed and the ranking settled as coalitions were added; returns the axes."""
        if self.history is None:
            raise InputError(f"there is no convergence to draw: {STOPS[self.stopped]}")
        return draw_convergence(axes_on(ax, 7, 4), self.history, f"{self.method}: {STOPS[self.stopped]}")
