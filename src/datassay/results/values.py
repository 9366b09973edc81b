"""What each record is worth, keyed by row id."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from datassay._version import __version__
from datassay.results.facts import MOST_CLASSES, Fact, Parameter, as_facts
from datassay.results.result import PerRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Values(PerRecord):
    """What each record is worth, by one method, keyed by row id.

    Attributes
    ----------
    values, ids, labels
        One entry per record, in the order of the training data; ``labels`` is None where there are none.
    method, parameters, seed, version
        How the values were obtained.
    notes
        What was done to the data on the way (an imputed column, an unseen category), one line each.
    lower, upper
        An interval per record, where the method is an estimate; None where it is exact.

    Examples
    --------
    >>> import datassay as da
    >>> values = da.knn_shapley([[0.0], [1.0], [9.0]], ["a", "a", "b"], [[0.5]], ["a"], k=1)
    >>> values.values.round(3).tolist()
    [0.333, 0.333, -0.167]
    >>> values.to_frame("pyarrow").column_names
    ['id', 'value', 'label']
    """

    COLUMNS: ClassVar = {"id": "ids", "value": "values", "label": "labels", "lower": "lower", "upper": "upper"}

    values: NDArray[np.float64]
    ids: NDArray[np.generic]
    method: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    labels: NDArray[np.generic] | None = None
    seed: int | None = None
    version: str = __version__
    notes: tuple[str, ...] = ()
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items() if value is not None)
        return f"Values({len(self)} records by {self.method}({settings}), total {self.values.sum():.4g})"

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``records``; ``total_value``, ``mean_value``, ``median_value``, ``lowest_value``, ``highest_value``;
        ``negative`` and ``share_negative``, records of negative value; where there are intervals ``surely_negative``
        and ``share_surely_negative``, those whose whole interval is below 0; and where there are at most 20 classes
        ``records.CLASS``, ``mean_value.CLASS`` and ``share_negative.CLASS``.
        """
        values, negative = self.values, self.values < 0
        found: dict[str, object] = {
            "records": len(self), "total_value": values.sum(), "mean_value": values.mean(),
            "median_value": np.median(values), "lowest_value": values.min(), "highest_value": values.max(),
            "negative": negative.sum(), "share_negative": negative.mean(),
        }  # fmt: skip
        if self.upper is not None:
            found |= {"surely_negative": (self.upper < 0).sum(), "share_surely_negative": (self.upper < 0).mean()}
        classes = () if self.labels is None else np.unique(self.labels)
        for name in classes if len(classes) <= MOST_CLASSES else ():
            inside = self.labels == name
            found |= {
                f"records.{name}": inside.sum(), f"mean_value.{name}": values[inside].mean(),
                f"share_negative.{name}": negative[inside].mean(),
            }  # fmt: skip
        return as_facts(found)

    def summary(self, count: int = 5) -> str:
        """What the values say, in words: the total, who helps, who hurts, and each class."""
        reading = reading_of(self.method)
        n = len(self)
        settings = ", ".join(f"{name}={value}" for name, value in self.parameters.items() if value is not None)
        lines = [f"{n:,} {self._who()} valued by {self.method} ({settings})."]
        lines += self._in_total(reading)
        lines.append(
            f"Values run from {self.values.min():.3g} to {self.values.max():.3g}, {self.values.mean():.3g} on average."
        )
        lines += self._negatives(reading) if reading.sign else []
        lines += self._by_class(reading.sign)
        if count > 0:
            for title, rows in ((reading.high, self.highest(count)), (reading.low, self.lowest(count))):
                lines.append(f"{title}: " + ", ".join(f"{self.ids[i]!s} ({self.values[i]:.3g})" for i in rows))
        return self._in_words(lines)

    def _in_total(self, reading: "Reading") -> list[str]:
        if not reading.adds_up or self.lower is not None:
            return []
        n_classes = self.parameters.get("n_classes")
        guess = 0.0 if self.parameters.get("utility") == "fraction" or n_classes is None else 1 / float(n_classes)
        start = f"{guess:.3f} ({'guessing' if guess else 'nothing'})"
        return [
            f"Together they bring the score of the nearest neighbours on the validation points from {start} "
            f"to {guess + self.values.sum():.3f}."
        ]

    def _negatives(self, reading: "Reading") -> list[str]:
        negative = self.values < 0
        text = f"{negative.sum():,} of them ({negative.mean():.1%}) have a negative value: {reading.negative}."
        if self.upper is not None:
            sure = self.upper < 0
            text += f" Given the tolerance, that is sure of {sure.sum():,} ({sure.mean():.1%})."
        return [text]

    def _by_class(self, signed: bool) -> list[str]:
        if self.labels is None:
            return []
        names, codes, sizes = np.unique(self.labels, return_inverse=True, return_counts=True)
        means = np.bincount(codes, self.values) / sizes
        shares = np.bincount(codes, self.values < 0) / sizes
        lines = ["By class:"]
        for c in np.argsort(-sizes, kind="stable")[:10]:
            signs = f", {shares[c]:.1%} negative" if signed else ""
            lines.append(f"  {names[c]!s}: {sizes[c]:,} records, mean {means[c]:.3g}{signs}")
        if len(names) > 10:
            lines.append(f"  and {len(names) - 10:,} more classes")
        worst = int(shares.argmax())
        small = sizes[worst] < sizes.max() and self.parameters.get("weights") is None
        if signed and small and shares[worst] > 0.5 and self.lower is None:
            lines.append(
                f"Do not simply drop what is negative: {shares[worst]:.0%} of class {names[worst]!s} would go. "
                "Weighing the classes of the validation set equally (balance) is fairer to small ones."
            )
        return lines

    def plot(self, ax: "Axes | None" = None, bins: int = 60, *, label: str | None = None) -> "Axes":
        """Draw the distribution of values, class by class, on ``ax`` or a new figure; returns the axes.

        With a ``label`` for the legend all classes are drawn as one, so that several results can share the axes.
        ``values.plot().figure.savefig("values.svg")`` saves it.
        """
        from datassay.results.figures import axes_on, draw_distribution

        ax = axes_on(ax, 7, 4)
        draw_distribution(ax, self.values, self.labels, bins, label)
        share = float((self.values < 0).mean())
        negative = f"{share:.1%} of {len(self):,} records have a negative value"
        ax.set_title(negative if reading_of(self.method).sign else f"{len(self):,} records", loc="left")
        ax.set_xlabel(f"value by {self.method}")
        return ax


@dataclass(frozen=True)
class Reading:
    """How a method's numbers are to be read."""

    adds_up: bool = False
    sign: bool = True
    negative: str = "to a random group of the others, such a record does more harm than good"
    high: str = "Most valuable"
    low: str = "Least valuable"
    high_is_suspicious: bool = False  # faulty records are among the highest values rather than the lowest


_READINGS: Mapping[str, Reading] = {
    "leave_one_out": Reading(negative="the model does better if all records but such a one are kept"),
    "data_oob": Reading(sign=False, high="Best predicted by the others", low="Worst predicted by the others"),
    "knn_shapley": Reading(adds_up=True),
    "tknn_shapley": Reading(adds_up=True),
    "knn_loo": Reading(negative="the nearest neighbours do better if all records but such a one are kept"),
    "waka": Reading(negative="over all subsets of the others, such a record moves the loss up"),
    "self_waka": Reading(
        sign=False, high="Most exposed (their presence shows the most)", low="Least exposed", high_is_suspicious=True
    ),
    "waka_influence": Reading(sign=False, high="More exposed than before", low="Less exposed than before"),
    "self_shapley": Reading(
        sign=False,
        high="Most on their own (nobody else vouches for their label)",
        low="Best vouched for by others",
        high_is_suspicious=True,
    ),
}


def reading_of(method: str) -> Reading:
    """How the numbers of this method are to be read."""
    return _READINGS.get(method, Reading())
