"""What a re-identification attack found: person by person, scenario by scenario, beside what guessing finds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from datassay._version import __version__
from datassay.identity.figures import draw_risks, draw_shares
from datassay.results import Axes, Columns, Fact, Floats, Parameter, PerRecord, Result, as_facts, axes_on, row_of


@dataclass(frozen=True, eq=False)
class Risk(PerRecord):
    """The re-identification risk of each person; made by :func:`datassay.reidentification_risk`.

    Attributes
    ----------
    values, ids, present
        The risk of each person (0 … 1), and who is in the release; who is not has risk 0.
    linkability, gain
        Mean linkability L and information gain I of each person, over the scenarios.
    lower, upper
        Confidence limits over sampled scenarios, for each person; None if all scenarios were played.
    guesses
        What an attacker who picks a released record at random would score on each person.
    control
        What the attack scores on people who are not in the release: those removed, and those given as control.
    attacked
        (linkability, gain, score) of each person as the attack has them, in the release or not.
    scenarios, scenario_weights, scenario_means
        The scenarios, what they count for, and (linkability, gain, score) in each, over people in the release.
    """

    ROWS: ClassVar = "people"
    COLUMNS: ClassVar = {
        "id": "ids",
        "risk": "values",
        "present": "present",
        "linkability": "linkability",
        "gain": "gain",
        "guess": "guesses",
        "lower": "lower",
        "upper": "upper",
    }
    ASIDE: ClassVar = ("attacked",)

    values: Floats
    ids: NDArray[np.generic]
    present: NDArray[np.bool_]
    linkability: Floats
    gain: Floats
    guesses: Floats
    control: Floats
    attacked: Floats
    scenarios: tuple[str, ...]
    scenario_weights: Floats
    scenario_means: Floats
    lower: Floats | None = None
    upper: Floats | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    seed: int | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"Risk({len(self):,} people, mean {self.mean():.3f})"

    def mean(self) -> float:
        """The mean risk of everyone, those not in the release at 0."""
        return float(self.values.mean())

    def mean_half(self) -> float:
        """Half-width of the interval of the mean that is due to sampling scenarios (people are taken as they are)."""
        if self.lower is None or self.upper is None:
            return 0.0
        halves = np.maximum(self.upper - self.values, self.values - self.lower)
        return float(math.sqrt((halves**2).sum()) / len(halves))

    def verdict(self) -> str:
        """A sentence on what the attack says: whether it beats guessing, and what it scores on people not there."""
        there = self.present
        if not there.any():
            return "nobody is in the release"
        risk = self.values[there]
        if len(risk) < 20:
            return f"{len(risk)} people in the release are too few to tell"
        error = risk.std() / math.sqrt(len(risk)) + self.mean_half()
        by_guess = float(self.guesses[there].mean())
        if risk.mean() <= by_guess + 2 * error:
            return "the attack is no better than picking a record at random: too weak to say that there is no risk"
        if len(self.control) >= 10:
            other = float(self.control.mean())
            spread = 2 * math.hypot(error, self.control.std() / math.sqrt(len(self.control)))
            if risk.mean() <= other + spread:
                return "people in the release are at no more risk than people who are not in it"
            return f"people in the release score {risk.mean() - other:.3f} more than people who are not in it"
        if len(self.control):
            few = len(self.control)
            return f"better than picking a record at random; a control of {few} people is too small to say more"
        return f"the attack scores {risk.mean() - by_guess:.3f} more than picking a record at random"

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``people``, and ``present``, those of them in the release; ``mean_risk`` of everyone with ``mean_risk_half``,
        the half-width of its interval, ``highest_risk``; of those in the release (of everyone, if nobody is)
        ``mean_risk_present``, ``linkability``, ``gain`` and ``guess_risk``, what picking a record at random scores;
        ``control_risk``, what people score who are not in the release, None without any; and ``risk.SCENARIO``, the
        mean score in each scenario.
        """
        inside = self.present if self.present.any() else np.ones(len(self), bool)
        found: dict[str, object] = {"people": len(self), "present": self.present.sum(), "mean_risk": self.mean()}
        found |= {"mean_risk_half": self.mean_half(), "highest_risk": self.values.max()}
        found |= {"mean_risk_present": self.values[inside].mean(), "linkability": self.linkability[inside].mean()}
        found |= {"gain": self.gain[inside].mean(), "guess_risk": self.guesses[inside].mean()}
        found |= {"control_risk": self.control.mean() if len(self.control) else None}
        found |= {f"risk.{name}": row[2] for name, row in zip(self.scenarios, self.scenario_means, strict=True)}
        return as_facts(found)

    def summary(self, count: int = 5) -> str:
        """The risks, scenario by scenario, and the people most at risk, in words."""
        there = int(self.present.sum())
        half = self.mean_half()
        inside = self.present if there else np.ones(len(self), bool)
        all_there = there == len(self)
        lines = [
            f"{len(self):,} people, {there:,} of them in the release: mean risk {self.mean():.3f}"
            + (f" ± {half:.4f} (sampled scenarios)" if half else "")
            + f", highest {self.values.max():.3f}."
            + ("" if all_there else f" Of those in the release: {self.values[inside].mean():.3f}."),
            f"{'L' if all_there else 'For these, l'}inkability {self.linkability[inside].mean():.3f}, information gain "
            f"{self.gain[inside].mean():.3f}. A record picked at random scores {self.guesses[inside].mean():.3f}"
            + (f"; people not in the release {self.control.mean():.3f}." if len(self.control) else "."),
            f"Verdict: {self.verdict()}.",
            f"{'What is known':<24}{'counts':>8}{'link':>8}{'gain':>8}{'score':>8}",
        ]
        for name, share, row in zip(self.scenarios, self.scenario_weights, self.scenario_means, strict=True):
            lines.append(f"{name:<24}{share:>8.1%}{row[0]:>8.3f}{row[1]:>8.3f}{row[2]:>8.3f}")
        if count > 0:
            listed = ", ".join(f"{self.ids[i]!s} ({self.values[i]:.3f})" for i in self.highest(count))
            lines.append(f"Most at risk: {listed}")
        return self._in_words(lines)

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the risks, their mean, guessing and the control (the risks alone with a ``label``); returns the axes."""
        ax = axes_on(ax, 7, 4)
        guess = float(self.guesses[self.present].mean()) if self.present.any() else 0.0
        draw_risks(ax, self.values, guess, float(self.control.mean()) if len(self.control) else None, label)
        ax.set_title(f"Risk of {len(self):,} people", loc="left")
        return ax

    def _columns(self) -> Columns:
        columns = {**super()._columns(), **dict(zip(_ATTACKED, self.attacked.T, strict=True))}
        return {name: columns[name] for name in sorted(columns, key=lambda name: name in ("lower", "upper"))}

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        attacked = np.column_stack([columns[name].astype(np.float64) for name in _ATTACKED])
        return {**super()._fields(header, columns), "attacked": attacked}


_ATTACKED = ("attacked_linkability", "attacked_gain", "attacked_risk")


@dataclass(frozen=True, eq=False)
class RiskShapley(Result):
    """The attributes that give each person away; made by :func:`datassay.reidentification_shapley`.

    Its frame has a row for each person: id, present, and ``value_NAME`` for each attribute.

    Attributes
    ----------
    values, ids, columns
        Re-identification Shapley values (people × attributes), the people, the attributes.
    present
        Who is in the release; the others have none.
    lower, upper
        Confidence limits where orders were sampled; None if values are exact.
    """

    ROWS: ClassVar = "people"
    COLUMNS: ClassVar = {"id": "ids", "present": "present", "value_*": "values", "lower_*": "lower", "upper_*": "upper"}

    values: Floats
    ids: NDArray[np.generic]
    columns: tuple[str, ...]
    present: NDArray[np.bool_]
    lower: Floats | None = None
    upper: Floats | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    seed: int | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"RiskShapley({len(self):,} people × {len(self.columns)} attributes)"

    def of(self, id: object) -> dict[str, float]:
        """The values of each attribute for the person with this id."""
        return dict(zip(self.columns, map(float, self.values[row_of(id, self.ids)]), strict=True))

    def mean(self) -> dict[str, float]:
        """The mean of each attribute over everyone, the most telling first."""
        means = self.values.mean(axis=0)
        return {self.columns[j]: float(means[j]) for j in np.argsort(-means, kind="stable")}

    def mean_half(self) -> Floats:
        """Half-widths of the intervals of the means, due to sampling orders."""
        if self.upper is None:
            return np.zeros(len(self.columns))
        return np.asarray(np.sqrt(((self.upper - self.values) ** 2).sum(axis=0)) / len(self))

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``people``, ``shapley_total`` and ``shapley.ATTRIBUTE``, on average over everyone."""
        means = self.mean()
        each = {f"shapley.{name}": value for name, value in means.items()}
        return as_facts({"people": len(self), "shapley_total": sum(means.values()), **each})

    def summary(self) -> str:
        """The attributes in order of what they give away."""
        means, half = self.mean(), dict(zip(self.columns, self.mean_half(), strict=True))
        width = max(map(len, self.columns))
        lines = [f"What gives {len(self):,} people away, on average (they add up to {sum(means.values()):.3f}):"]
        for name, value in means.items():
            interval = f" ± {half[name]:.4f}" if half[name] else ""
            lines.append(f"  {name:<{width}}  {value:7.4f}{interval}")
        return self._in_words(lines)

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the mean of each attribute; returns the axes. ``label`` is for the legend."""
        ax = axes_on(ax, 7, 0.35 * len(self.columns) + 1.2)
        draw_shares(ax, self.mean(), dict(zip(self.columns, self.mean_half(), strict=True)), label)
        ax.set_title(f"What gives {len(self):,} people away", loc="left")
        return ax
