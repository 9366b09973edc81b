"""Recorded queries as singling-out attempts: what a filter finds in a release, and whom it gives away.

The records that a filter matches are those singled out, and anybody in the original whom it describes may have been
meant (Mathematics §8).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._run import documented
from datassay._version import __version__
from datassay.data import Table, TableLike
from datassay.identity.attack import Linking, Released, lay_out, read_tables, with_defaults
from datassay.identity.risk import reidentification_risk
from datassay.results import Fact, Floats, Parameter, Result, as_facts, as_named


@dataclass(frozen=True, eq=False)
class QueryScores(Result):
    """Recorded queries, scored; made by :func:`datassay.score_queries`.

    Attributes
    ----------
    ids
        The queries.
    values
        The highest score of each, over the people it describes: 0 if it describes nobody who is in the release.
    matches, people
        How many released records it matches, and how many people of the original it describes.
    person, linkability, gain
        Who has that score (empty if nobody), and what it is made of.
    """

    ROWS: ClassVar = "queries"
    COLUMNS: ClassVar = {"query": "ids", "score": "values"} | as_named(
        "matches", "people", "person", "linkability", "gain"
    )

    ids: NDArray[np.str_]
    values: Floats
    matches: NDArray[np.int64]
    people: NDArray[np.int64]
    person: NDArray[np.str_]
    linkability: Floats
    gain: Floats
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"QueryScores({len(self)} queries, highest {self.values.max():.3f})"

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: how many ``queries``, the ``highest_score``, and ``score.QUERY`` of each."""
        scores = {f"score.{query}": score for query, score in zip(self.ids.tolist(), self.values, strict=True)}
        return as_facts({"queries": len(self), "highest_score": self.values.max(), **scores})

    def summary(self) -> str:
        """Each query in a line, the most dangerous first."""
        lines = []
        for i in np.argsort(-self.values, kind="stable"):
            whom = f"; most of all {self.person[i]}" if self.person[i] else ""
            lines.append(
                f"{self.values[i]:.3f}  {self.ids[i]}: {self.matches[i]:,} records of {self.people[i]:,} people"
                f" (link {self.linkability[i]:.2f}, gain {self.gain[i]:.2f}){whom}"
            )
        return self._in_words(lines)


@documented(reidentification_risk)
def score_queries(
    original: TableLike,
    released: TableLike | Released,
    queries: Sequence[str],
    **linking: Unpack[Linking],
) -> QueryScores:
    """Scores of recorded filters as singling-out attempts on the people they describe.

    A filter's matches in the release take the place of the records that :func:`reidentification_risk` singles out by
    distance; the attributes that it mentions are what the attacker knew. Everyone in the original whom it describes
    and who is in the release is a possible target, and the query's score is the highest of theirs (Mathematics §8).

    Parameters
    ----------
    queries
        Conditions as in SQL, on the columns of the tables: ``"age = 34 AND zip = '27601'"``.

    Returns
    -------
    QueryScores
        A row for each query: its score, how many records and people it matches, and who has that score.

    Examples
    --------
    >>> import datassay as da
    >>> people = da.census(300)
    >>> scored = da.score_queries(people, people, ["age > 100", "sex = 'male'"])
    >>> bool(scored.values[0] > scored.values[1])
    True
    """
    from datassay.identity import risk_kernels

    if isinstance(queries, str) or not queries:
        raise UsageError("queries must be a list of at least one condition, such as [\"age = 34 AND zip = '27601'\"]")
    tables = read_tables(original, released)
    assumed = with_defaults(linking)
    setting = lay_out(tables, assumed)
    released_points = setting.space.points(tables.released)
    rows = []
    known_by = [mentioned(query, setting.columns) for query in queries]
    with closing(_Searchable(tables.original)) as originals, closing(_Searchable(tables.released)) as releases:
        found = [(originals.matching(query), releases.matching(query)) for query in queries]
    for query, known, (described_by, matched) in zip(queries, known_by, found, strict=True):
        targets, hits = np.flatnonzero(described_by & setting.present), np.flatnonzero(matched)
        best = (0.0, "", 0.0, 0.0)
        if len(targets) and len(hits):
            scores, is_known = np.empty((len(targets), 4)), np.isin(np.array(setting.columns), known)
            chosen = np.ascontiguousarray(released_points[:, hits])
            given = replace(setting, released=chosen, counts=np.ones(len(hits))).arguments(targets)
            risk_kernels.score_chosen(*given, is_known, *setting.epsilons, scores)
            top = int(scores[:, 2].argmax())
            best = (float(scores[top, 2]), str(setting.ids[targets[top]]), float(scores[top, 0]), float(scores[top, 1]))
        rows.append((query, best[0], len(hits), int(described_by.sum()), *best[1:]))
    ids, values, matches, people, person, linkability, gain = map(np.array, zip(*rows, strict=True))
    parameters: dict[str, Parameter] = {
        "neighbours": assumed["neighbours"], "epsilon1": assumed["epsilon1"], "epsilon2": assumed["epsilon2"],
    }  # fmt: skip
    return QueryScores(ids, values, matches, people, person, linkability, gain, parameters, setting.notes)


def mentioned(query: str, columns: Sequence[str]) -> list[str]:
    """The attributes that a condition mentions; an error if it is more than a condition."""
    import duckdb

    if not isinstance(query, str):
        raise UsageError(f"a query must be a condition in words, got {query!r}")
    with duckdb.connect() as connection:
        asked = connection.execute(
            "SELECT json_serialize_sql(?::VARCHAR)", [f"SELECT 1 FROM people WHERE {query}"]
        ).fetchone()
    parsed: dict[str, Any] = json.loads(asked[0]) if asked else {"error": True}
    if parsed.get("error"):
        raise UsageError(f"query {query!r} cannot be read: {parsed.get('error_message', 'it is no condition')}")
    only = UsageError(f"query {query!r} must be one condition on the columns and nothing else")
    node = parsed["statements"][0]["node"] if len(parsed["statements"]) == 1 else {}
    more = ("modifiers", "group_expressions", "having", "sample", "qualify", "cte_map")
    if node.get("type") != "SELECT_NODE" or any(node.get(part) not in (None, [], {"map": []}) for part in more):
        raise only
    names = {name.casefold(): name for name in columns}
    found = []
    for kind, name in _parts(node.get("where_clause")):
        if kind in ("SUBQUERY", "STAR", "WINDOW", "PARAMETER") or name.casefold() in _UNSTEADY:
            raise only
        if kind != "COLUMN_REF":
            continue
        if name.casefold() not in names:
            raise InputError(f"query {query!r} mentions {name!r}, which is none of {_checks.listed(columns, 12)}")
        found.append(names[name.casefold()])
    if not found:
        raise UsageError(f"query {query!r} mentions no attribute")
    return list(dict.fromkeys(found))


_UNSTEADY = ("random", "uuid", "gen_random_uuid", "now", "today", "current_date", "current_timestamp", "nextval")


def _parts(node: object) -> Iterator[tuple[str, str]]:
    """The kind of every part of a parsed condition, and its name if it is a column or a function."""
    if isinstance(node, dict):
        if "class" in node:
            name = node["column_names"][-1] if node.get("column_names") else node.get("function_name") or ""
            yield str(node["class"]), str(name)
        for value in node.values():
            yield from _parts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _parts(value)


class _Searchable:
    """A table that conditions can be asked of, by a DuckDB that can reach neither files nor the network."""

    def __init__(self, table: Table) -> None:
        import duckdb
        import pyarrow as pa

        alike = {name.casefold() for name in table.columns}
        if len(alike) < len(table.columns):
            raise InputError(f"{table.name} has columns that differ only in case, which queries cannot tell apart")
        self._row = "row"
        while self._row.casefold() in alike:
            self._row += "_"
        self._size = len(table)
        arrays: dict[str, Any] = {self._row: np.arange(len(table))}
        for name, column in table.columns.items():
            data = column.written()
            arrays[name] = pa.array(data.tolist() if data.dtype.kind in "UO" else data, from_pandas=True)
        self._connection = duckdb.connect()
        self._connection.register("people", pa.table(arrays))
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def close(self) -> None:
        """Let go of the table."""
        self._connection.close()

    def matching(self, query: str) -> NDArray[np.bool_]:
        """Which rows satisfy a condition."""
        import duckdb

        try:
            asked = self._connection.execute(f'SELECT "{self._row}" FROM people WHERE ({query})')
            found = asked.fetchnumpy()[self._row]
        except duckdb.Error as error:
            raise UsageError(f"query {query!r} cannot be run: {str(error).splitlines()[0]}") from None
        matches = np.zeros(self._size, bool)
        matches[np.asarray(found, np.intp)] = True
        return matches
