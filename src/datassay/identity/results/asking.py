"""Questions about a table's people while the table is at hand: groups, sets, interactions, changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay.data import missing_column
from datassay.identity import engine
from datassay.identity.counting import AS_IT_IS, code, entropy, in_words, share_unique
from datassay.identity.question import Counted, Question, Way, count, must_be_among
from datassay.identity.results.attributes import AttributeSets, AttributeTable
from datassay.identity.results.groups import Groups
from datassay.identity.results.records import people_among
from datassay.results import Parameter

KEY: Final = "(key)"


@dataclass(frozen=True, eq=False)
class UniquenessQueries:
    """Questions about the people behind a :class:`.Uniqueness`, while their table is at hand.

    ``result.queries`` has it. ``parameters`` and ``notes`` are the result's own, for those that are made here.
    """

    question: Question
    counted: Counted
    way: Way
    parameters: Mapping[str, Parameter]
    notes: tuple[str, ...]

    def by(self, column: str, coarsen: object) -> tuple[NDArray[np.int32], NDArray[np.str_]]:
        """The group of each record by a column of the table, and the groups' names."""
        table = self.question.table
        if column not in table.columns:
            raise InputError(f"by: {missing_column(column, table.columns)}")
        found = code(table, column, coarsen, [])  # type: ignore[arg-type]
        if self.counted.kept is not None:
            found = found.of_rows(self.counted.kept)
        return found.codes, found.names

    def entropy(self, columns: Sequence[str]) -> float:
        """Joint entropy of these attributes, in bits: how much they tell together, on average."""
        return entropy(self.groups(columns).sizes)

    def groups(self, columns: Sequence[str] | None = None) -> Groups:
        """The groups of people alike in these attributes (all, if left out): who is unique, how small groups are."""
        return alike(self.counted, self.question.columns if columns is None else columns)

    def sets(self) -> AttributeSets:
        """Every set of attributes with its entropy, groups, share of people who are unique, and smallest group.

        There are 2^d of them. ``sets().summary()`` names the sets of one, two, three, … attributes that make most
        people unique.
        """
        columns = self.question.columns
        if len(columns) > engine.MOST_EXACT:
            raise UsageError(f"there are 2^{len(columns)} sets of {len(columns)} attributes; 2^20 is the most")
        found = self.way.sets(self.counted.cells)
        masks = np.arange(1, 2 ** len(columns))
        at = np.zeros(len(masks), np.int64)
        for bit, j in enumerate(found.members):
            at |= ((masks >> j) & 1) << bit
        inside = (masks[:, None] >> np.arange(len(columns)) & 1).astype(bool)
        return AttributeSets(
            columns, inside, found.entropy[at], found.groups[at], found.unique[at], found.smallest[at],
            self.counted.notes, self.parameters,
        )  # fmt: skip

    def interactions(self, records: object = None) -> AttributeTable:
        """Shapley interaction index of each pair of attributes: bits they tell together beyond apart.

        Over everyone it is never positive, being minus a mean of conditional mutual informations: attributes that go
        together repeat each other. For ``records`` (a mask, or positions) whose combinations are unusual it can be.
        """
        columns, counted, ids = self.question.columns, self.counted, self.question.table.ids
        ids = ids if counted.kept is None else ids[counted.kept]
        people = people_among(records, ids, counted.cell, counted.weights, len(counted.cells.weights))
        if not self.way.exact and int((counted.cells.levels > 1).sum()) > engine.MOST_EXACT:
            raise UsageError(f"interactions are exact, and for at most {engine.MOST_EXACT} attributes that vary")
        found = self.way.sets(counted.cells, people).interactions(len(columns))
        notes, names = self.notes, np.array(columns)
        if records is None:
            never = "over everyone never more than 0, for they can only repeat each other"
            notes = (*notes, f"bits that two attributes tell together beyond apart; {never}")
        return AttributeTable(found, names, columns, "attribute", "pairs", notes=notes, parameters=self.parameters)

    def compare(
        self, coarsen: Mapping[str, object] | None = None, drop: Sequence[str] = (), key: bool = False
    ) -> AttributeTable:
        """Means after changes of the data, one row a change: attributes made coarser, dropped, or a key added.

        ``coarsen`` names for each attribute one way to make it coarser or a tuple of several, tried one at a time:
        ``compare(coarsen={"age": (5, 10, 25), "zip": "county"}, drop=["race"], key=True)``. A dropped attribute tells
        nothing; with a database key (a row number, say, formula 11) everyone is unique, and other attributes lose what
        the key tells before them. In a result that is coarsened already, the others stay so.
        """
        coarsen = coarsen or {}
        if not isinstance(coarsen, Mapping):
            raise UsageError(f"coarsen must map attributes to how they are made coarser, got {type(coarsen).__name__}")
        here = self.question.coarsen
        changes: dict[str, Mapping[str, Any]] = {"as coarsened" if here else AS_IT_IS: here}
        for name, ways in coarsen.items():
            for how in ways if isinstance(ways, tuple) else (ways,):
                changes[f"{name}: {in_words(how)}"] = {**here, name: how}
        changes |= self._dropped(drop)
        return self._table(changes, [*coarsen, *drop], key)

    def changes(self, drop: Sequence[str] = (), key: bool = False) -> AttributeTable:
        """Means without the coarsening of this result, with each part of it, and with all.

        Then what dropping attributes, and a key, would change beside it. (A measurement, which cannot be taken as it
        is, stays coarse in all rows.)
        """
        here = self.question.coarsen
        needed = {name: how for name, how in here.items() if not self._can_be_as_it_is(name)}
        rows: dict[str, Mapping[str, Any]] = {}
        if len(needed) < len(here):
            rows[", ".join([AS_IT_IS, *(f"{name}: {in_words(how)}" for name, how in needed.items())])] = needed
            if len(here) - len(needed) > 1:
                for name, how in here.items():
                    if name not in needed:
                        rows[f"{name}: {in_words(how)}"] = {**needed, name: how}
        rows[", ".join(f"{name}: {in_words(how)}" for name, how in here.items()) or AS_IT_IS] = here
        return self._table(rows | self._dropped(drop), drop, key)

    def _can_be_as_it_is(self, name: str) -> bool:
        """Whether an attribute can be taken as it is: a measurement cannot."""
        try:
            code(self.question.table, name, AS_IT_IS, [])
        except InputError:
            return False
        return True

    def _dropped(self, drop: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        _checks.not_one_string("drop", drop, "attributes")
        return {f"{name}: dropped": {**self.question.coarsen, name: None} for name in drop}

    def _table(self, changes: Mapping[str, Mapping[str, Any]], named: Sequence[str], key: bool) -> AttributeTable:
        """Means for each way to coarsen, and for the question as it stands with a key."""
        columns = self.question.columns
        must_be_among(named, columns)
        if key:
            check_key(self.counted, self.way.exact)
        notes: list[str] = list(self.counted.notes)
        values, totals, unique = [], [], []
        for coarsen in changes.values():
            same = coarsen == self.question.coarsen
            counted = self.counted if same else count(replace(self.question, coarsen=coarsen))
            notes += counted.notes
            values.append(self.way.means(counted.cells))
            totals.append(float(values[-1].sum()))
            unique.append(share_unique(counted.cells.weights))
        beside = {"total": totals, "unique": unique}
        rows = list(changes)
        if key:
            cells = self.counted.cells
            rows.append("with a database key")
            values.append(self.way.sets(cells).means(len(columns), key=True))
            totals.append(float(np.log2(cells.weights.sum())))
            unique.append(1.0)
            beside["key"] = [0.0] * (len(rows) - 1) + [totals[-1] - float(values[-1].sum())]
        if not self.way.exact:
            notes.append("the rows are estimates from random orders of the attributes")
        return AttributeTable(
            np.array(values), np.array(rows), columns, "change", "changes",
            {name: np.array(column) for name, column in beside.items()}, tuple(dict.fromkeys(notes)), self.parameters,
        )  # fmt: skip


def alike(counted: Counted, columns: Sequence[str]) -> Groups:
    """The groups alike in these attributes."""
    _checks.not_one_string("columns", columns, "attributes")
    cells = counted.cells
    must_be_among(columns, cells.columns)
    if not columns:
        raise UsageError("columns names no attribute; without any, everyone is alike")
    some, _ = cells.project([cells.columns.index(name) for name in dict.fromkeys(columns)])
    order = np.argsort(some.weights, kind="stable")
    shared = {name: some.names[j][some.codes[j, order]] for j, name in enumerate(some.columns)}
    return Groups(some.weights[order], shared, counted.notes)


def check_key(counted: Counted, exact: bool) -> None:
    """Refuse a database key where it has no meaning."""
    if not exact:
        raise UsageError(
            f"key: what a key changes is told exactly, for at most {engine.MOST_EXACT} attributes, and not from samples"
        )
    if KEY in counted.cells.columns:
        raise InputError(f"key: there is an attribute {KEY!r} already; rename it")
    if counted.weights is not None and counted.weights.min() < 1:
        raise InputError("key: a key tells single people apart, and a weight below 1 is less than one person")
