"""Private values, each for the owner of its record, and the guarantee under which they may be handed out."""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay._version import __version__
from datassay._work import Bar, Progress
from datassay.privacy.accounting import Cost, check_delta, total_epsilon
from datassay.privacy.guarantee import Guarantee
from datassay.privacy.statistics import NoisyCounts
from datassay.results import Axes, Fact, Parameter, PerRecord, as_facts, axes_on, draw_distribution, write_folder


@dataclass(frozen=True, eq=False)
class PrivateValues(PerRecord):
    """Private values, each for the owner of its record, and the guarantee under which they may be handed out.

    Not a kind of :class:`datassay.Values`: code that expects the one cannot be handed the other by accident.

    Attributes
    ----------
    values, ids, labels
        One entry per record, for the operator's eyes: a value depends on its own record openly, so it is for that
        record's owner alone.
    guarantee
        What is promised, and to whom.
    statistics
        The released noisy counts, which are public; None where every owner's value has noise of its own.
    costs
        What the release costs, for an accountant: kind and scale of noise, sensitivity, and how many times.
    method, parameters, notes, version
        How the values were obtained.
    """

    COLUMNS: ClassVar = {"id": "ids", "private_value": "values", "label": "labels"}

    values: NDArray[np.float64]
    ids: NDArray[np.generic]
    method: str
    guarantee: Guarantee
    statistics: NoisyCounts | None
    parameters: Mapping[str, Parameter]
    labels: NDArray[np.generic] | None = None
    notes: tuple[str, ...] = ()
    costs: tuple[Cost, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"PrivateValues({len(self)} records by {self.method}; {self.guarantee})"

    def value_record(self, x: ArrayLike | Mapping[str, ArrayLike | None], y: ArrayLike) -> float:
        """Value of a new record, from the released statistics alone: it costs nothing, however often.

        ``x`` are its features, or a mapping from column to value if the values were made from a table.
        """
        if self.statistics is None:
            raise InputError(
                f"{self.method} releases no statistics: every owner's value has noise of its own, and a new record "
                "needs a new release; private_tknn_shapley can answer new records for ever"
            )
        return self.statistics.value(x, y)

    def epsilon_for(self, recipients: int, delta: float | None = None) -> float:
        """ε when so many recipients put their values together.

        Where the guarantee allows for collusion, its own ε, for any number. Where every recipient has noise of their
        own it composes: at ``delta`` by the accountant, or at the guarantee's δ if left out (recipients × ε if 0).
        """
        recipients = _checks.integer("recipients", recipients, at_least=1)
        if self.guarantee.audience != "owner, no collusion":
            return self.guarantee.epsilon
        simple = recipients * self.guarantee.epsilon if self.guarantee.delta == 0 else math.inf
        if delta is None and self.guarantee.delta == 0:
            return simple
        at = self.guarantee.delta if delta is None else check_delta(delta)
        return min(simple, total_epsilon([replace(cost, count=recipients * cost.count) for cost in self.costs], at))

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name; for the operator, as the values are.

        ``records``; ``epsilon``, ``delta``, ``neighbours``, ``sampling``, ``audience`` and ``certified`` of the
        guarantee; ``median_value``, and ``low_value`` and ``high_value`` with nine in ten between them.
        """
        low, middle, high = np.quantile(self.values, [0.05, 0.5, 0.95])
        promise = self.guarantee
        return as_facts(
            {
                "records": len(self), "epsilon": promise.epsilon, "delta": promise.delta,
                "neighbours": promise.relation, "sampling": promise.sampling, "audience": promise.audience,
                "certified": promise.certified,
                "median_value": middle, "low_value": low, "high_value": high,
            }
        )  # fmt: skip

    def summary(self) -> str:
        """The release in words: under which guarantee, and how the values are spread, in words."""
        low, middle, high = np.quantile(self.values, [0.05, 0.5, 0.95])
        given = {n: f"{v:.6g}" if isinstance(v, float) else v for n, v in self.parameters.items() if v is not None}
        settings = ", ".join(f"{name}={value}" for name, value in given.items())
        lines = [
            f"{len(self):,} records valued privately by {self.method} ({settings}).",
            f"Guarantee: {self.guarantee}.",
            f"Values: median {middle:.3g}, nine in ten between {low:.3g} and {high:.3g}; noise included.",
        ]
        if self.guarantee.audience == "owner":
            lines.append(
                "Tell each owner their own value; the noisy counts may be published, the list of values may not."
            )
        else:
            lines.append("Tell each owner their own value and no other: owners who share theirs weaken the guarantee.")
        return self._in_words(lines)

    def plot(self, ax: Axes | None = None, bins: int = 60, *, label: str | None = None) -> Axes:
        """Draw the distribution of values (for the operator), named ``label`` in the legend; returns the axes."""
        ax = axes_on(ax, 7, 4)
        draw_distribution(ax, self.values, None, bins, label)
        ax.set_title(f"Private values of {len(self):,} records, ε = {self.guarantee.epsilon:.3g}", loc="left")
        ax.set_xlabel(f"value by {self.method}, noise included")
        return ax

    def save_owners(self, folder: str | os.PathLike[str], progress: Progress = None) -> Path:
        """Write one small JSON file for each owner into ``folder``: their id, their value, and the guarantee.

        A file depends on other records only as the guarantee allows. The folder must be new or empty; it appears whole
        or not at all. Files are named by id, with characters that a file name cannot hold escaped.
        """
        promise = {"method": self.method, "guarantee": self.guarantee.to_dict(), "version": self.version}

        def write(temporary: Path) -> None:
            with Bar(progress, len(self), "owners") as report:
                for id, value in zip(self.ids.tolist(), self.values.tolist(), strict=True):
                    # The id as text: whether ids are numbers depends on everybody's.
                    text = json.dumps({"id": str(id), "private_value": value, **promise}, allow_nan=False, indent=1)
                    with (temporary / _file_name(id)).open("x", encoding="utf-8") as file:
                        file.write(text)
                    report(1)

        return write_folder(folder, write)


def _file_name(id: object) -> str:
    """A file name for an id: escaped where it must be, and cut (with a digest in place of the rest) where too long."""
    name = quote(str(id), safe=" ,;=@()+").replace("~", "%7E")
    name = name.replace(".", "%2E") if name.strip(".") == "" or name.startswith(".") else name
    if len(name) > 200:
        name = f"{name[:150]}~{hashlib.sha256(str(id).encode()).hexdigest()[:32]}"
    return f"{name}.json"
