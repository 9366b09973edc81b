"""Very many people: counted by one way after another to know their attributes, and valued by some of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from datassay._run import Schedule, Threads
from datassay.data import Table
from datassay.identity import engine
from datassay.identity.counting import AS_IT_IS, Coarsening, Coded, code
from datassay.identity.question import MEMORY, ask, count
from datassay.identity.results import AttributeMeans
from datassay.results import Floats, Parameter

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, eq=False)
class Crowd:
    """People in groups who are alike in the attributes looked at so far. Who is alone stays so, and is left out."""

    people: int
    rows: NDArray[np.int32]
    groups: NDArray[np.int32]
    n_groups: int

    @classmethod
    def of(cls, people: int) -> "Crowd":
        """Everybody alike."""
        alone = people == 1
        return cls(people, np.arange(people - alone, dtype=np.int32), np.zeros(people - alone, np.int32), 1 - alone)

    def split(self, by: Coded) -> "Crowd":
        """The groups of those who are alike in one more attribute, too."""
        from datassay.identity import kernels

        if len(by.names) < 2 or not len(self.rows):
            return self
        rows, groups = self.rows.copy(), self.groups.copy()
        stay, kept = kernels.refine(by.codes, len(by.names), rows, groups, self.n_groups)
        return Crowd(self.people, rows[:stay].copy(), groups[:stay].copy(), kept)

    @property
    def distinct(self) -> int:
        """How many different groups there are, people alone counted as one each."""
        return self.people - len(self.rows) + self.n_groups

    def sizes(self) -> Floats:
        """For each person, how many are alike."""
        found = np.ones(self.people)
        found[self.rows] = np.bincount(self.groups, minlength=self.n_groups)[self.groups]
        return found

    @property
    def unique(self) -> float:
        """The share of people who are alone."""
        return (self.people - len(self.rows)) / self.people

    def share_below(self, size: float) -> float:
        """The share of people in groups smaller than this."""
        return int((self.sizes() < size).sum()) / self.people


@dataclass(frozen=True, eq=False)
class Crowds:
    """Counts the people of a table by one way after another to know its attributes, each of which is coded once."""

    table: Table
    columns: tuple[str, ...]
    coded: dict[tuple[str, str], Coded] = field(default_factory=dict)

    def code(self, name: str, how: Coarsening) -> Coded:
        """An attribute, made coarser."""
        asked = name, repr(how)
        if asked not in self.coded:
            self.coded[asked] = code(self.table, name, how, [])
        return self.coded[asked]

    def _codes(self, coarsen: Mapping[str, Any]) -> list[tuple[str, Coded]]:
        """The attributes, those of most values first: then few people are left to be told apart."""
        coded = [(name, self.code(name, coarsen.get(name, AS_IT_IS))) for name in self.columns]
        return sorted(coded, key=lambda one: -len(one[1].names))

    def varying(self, coarsen: Mapping[str, Any]) -> int:
        """How many attributes are not the same for everybody."""
        return sum(len(coded.names) > 1 for _, coded in self._codes(coarsen))

    def alike(self, coarsen: Mapping[str, Any]) -> Crowd:
        """The groups alike in all attributes."""
        crowd = Crowd.of(len(self.table))
        for _, coded in self._codes(coarsen):
            crowd = crowd.split(coded)
        return crowd

    def without(self, coarsen: Mapping[str, Any]) -> dict[str, Crowd]:
        """For each attribute, the groups alike in all the others."""
        found, before, coded = {}, Crowd.of(len(self.table)), self._codes(coarsen)
        for at, (name, own) in enumerate(coded):
            found[name] = before
            for _, other in coded[at + 1 :]:
                found[name] = found[name].split(other)
            before = before.split(own)
        return {name: found[name] for name in self.columns}


def count_crowds(table: Table, columns: Sequence[str], coarsen: Mapping[str, Coarsening]) -> Crowds:
    """Counts of the people who are alike, by one way after another to make attributes coarser."""
    question = ask(table, columns, coarsen, "value", None, None)
    return Crowds(question.table, question.columns)


def mean_bits(
    table: Table,
    columns: Sequence[str],
    *,
    coarsen: Mapping[str, Coarsening],
    people: int,
    permutations: int | None = None,
    seed: int = 0,
    **run: Unpack[Threads],
) -> AttributeMeans:
    """How many bits each attribute contributes on average, with intervals, from people drawn at random.

    Each of them is counted among everybody (Mathematics §8); groups in which none of them is left are split no further,
    which saves the time. Values of more than 20 attributes that vary are estimated, from random orders. Intervals are
    95% ones, for each attribute by itself.
    """
    schedule = replace(Schedule.of(run), memory=MEMORY)
    counted = count(ask(table, columns, coarsen, "value", None, schedule.n_jobs))
    cells, n = counted.cells, len(counted.cell)
    drawn = np.sort(np.random.default_rng([seed, 3]).permutation(n)[:people])
    mass = np.bincount(counted.cell[drawn], minlength=len(cells.weights)).astype(np.float64)
    first, mass, cell, wanted = engine.bring_forward(cells, mass, counted.cell[drawn])
    parameters: dict[str, Parameter] = {"people": len(drawn), "confidence": CONFIDENCE}
    rest = 1 - len(drawn) / n  # those not drawn: without them the mean is known
    if int((cells.levels > 1).sum()) <= engine.MOST_EXACT:
        values, _ = engine.exact(first, mass, schedule, wanted=wanted)
        by_order: Floats | float = 0.0
    else:
        orders = engine.RandomOrders(permutations or 1, confidence=CONFIDENCE, seed=seed)
        sampled = engine.sample(first, orders, schedule, mass=mass, wanted=wanted)
        values, by_order = sampled.values, sampled.mean_half
        parameters["permutations"] = sampled.permutations
    each = values[cell]
    mean = each.mean(axis=0)
    half = np.hypot(engine.half_width(each.var(axis=0, ddof=1) * rest, len(each), CONFIDENCE), by_order)
    return AttributeMeans(
        mean, np.array(cells.columns), cells.entropies, float(n), np.maximum(mean - half, 0.0), mean + half,
        counted.notes, {"method": "mean_bits", **parameters, "seed": seed},
    )  # fmt: skip
