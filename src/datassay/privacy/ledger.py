"""The ledger: one durable record of every private release, that refuses to overspend.

A ledger is an SQLite file. It is asked *before* any noise is drawn: in one transaction it composes the cost of all
releases so far with the new one, and either writes the spending down, durably, or refuses. A crash after that leaves
the budget spent and nothing released. A completed release is served again at no cost instead of being drawn anew.

A *disclosure* gives out noisy copies of single records. Its queries are pure differential privacy, each about one
record, so every record has an account of its own: a data set costs what its record most asked for has spent, and that
is added to the rest.
"""

import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from datassay import _checks
from datassay._choices import AnyRelation
from datassay._errors import InputError, UnavailableError, UsageError
from datassay._renamed import renamed
from datassay.data import PathLike
from datassay.privacy.accounting import Cost, check_delta, check_epsilon, total_epsilon
from datassay.privacy.guarantee import Audience
from datassay.results import Fact, as_facts

APPLICATION_ID = 0x64615373  # «daSs», in the file's header
VERSIONS = (1, 2)  # 2: with disclosures, which a reader of 1 would not count
WAIT_SECONDS = 120

_SCHEMA = """
CREATE TABLE settings (
  epsilon REAL NOT NULL, delta REAL NOT NULL, neighbours TEXT NOT NULL, created TEXT NOT NULL, key TEXT NOT NULL
);
CREATE TABLE releases (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  dataset TEXT NOT NULL,
  request TEXT NOT NULL,
  mechanism TEXT NOT NULL,
  audience TEXT NOT NULL,
  costs TEXT NOT NULL,
  spent TEXT NOT NULL,
  released TEXT,
  result TEXT,
  secret TEXT
);
CREATE INDEX by_request ON releases (dataset, request);
"""

_DISCLOSURE_SCHEMA = """
CREATE TABLE IF NOT EXISTS queries (number INTEGER NOT NULL, point TEXT NOT NULL, epsilon REAL NOT NULL);
CREATE INDEX IF NOT EXISTS by_number ON queries (number, epsilon);
CREATE TABLE IF NOT EXISTS accounts (
  dataset TEXT NOT NULL, point TEXT NOT NULL, spent REAL NOT NULL, PRIMARY KEY (dataset, point)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS peaks (dataset TEXT PRIMARY KEY, most REAL NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO peaks SELECT dataset, MAX(spent) FROM accounts GROUP BY dataset;
PRAGMA user_version = 2;
"""

_COLUMNS = ("number", "dataset", "request", "mechanism", "audience", "costs", "spent", "released", "result", "secret")


class BudgetExceededError(UnavailableError):
    """A release was refused because it would spend more than the ledger allows; nothing was drawn."""


@dataclass(frozen=True)
class LedgerLine:
    """One line of the ledger: ``result`` is public, ``secret`` for the operator or single owners.

    ``released`` is None if the noise was paid for and never delivered.
    """

    number: int
    dataset: str
    request: str
    mechanism: str
    audience: str
    costs: tuple[Cost, ...]
    spent: str
    released: str | None
    result: str | None
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Disclosed:
    """Totals of one disclosure: queries, records asked for, ε of all queries together and of one record."""

    queries: int
    records: int
    total: float
    most: float


@renamed(neighbours="relation")
class Ledger:
    """A budget of (ε, δ) for the people in a data set, and the record of what was spent of it.

    Parameters
    ----------
    path
        The ledger's file; made if it does not exist.
    epsilon, delta
        The budget of a new ledger. An existing one keeps its own, and it is an error to name another.
    relation
        What one person's contribution is: a record ``add-remove`` d, ``replace`` d, or its features alone
        (``replace-features``, for disclosures, which give labels away). ``neighbours``, its earlier name, is taken too.

    All releases share the budget, whatever the version of the data: a new record gives no new budget for the old ones.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from datassay.privacy import Cost, Ledger
    >>> ledger = Ledger(pathlib.Path(tempfile.mkdtemp()) / "market.ledger", epsilon=1.0, delta=1e-5)
    >>> number = ledger.spend("data-1", "question-1", [Cost("gaussian", 5.0)], "noisy counts", "public")
    >>> ledger.complete(number, "[3, 4]")
    >>> ledger.find("data-1", "question-1").result
    '[3, 4]'
    >>> 0 < ledger.remaining() < 1.0
    True
    """

    def __init__(
        self,
        path: PathLike,
        epsilon: float | None = None,
        delta: float | None = None,
        relation: AnyRelation | None = None,
    ) -> None:
        self._begin(path, epsilon, delta, relation)
        self._make()

    @classmethod
    @renamed(neighbours="relation")
    def planned(cls, path: PathLike, epsilon: float, delta: float, relation: AnyRelation | None = None) -> "Ledger":
        """A ledger whose file is made when it is first paid from: a call that fails before that settles no budget.

        Until then it is empty. If another process makes a ledger there in the meantime, it is that one, and its budget
        must be the same.

        >>> import tempfile, pathlib
        >>> ledger = Ledger.planned(pathlib.Path(tempfile.mkdtemp()) / "market.ledger", epsilon=1.0, delta=1e-5)
        >>> ledger.remaining(), ledger.path.exists()
        (1.0, False)
        """
        ledger = cls.__new__(cls)
        ledger._begin(path, epsilon, delta, relation)
        if ledger.path.exists():
            ledger._make()
        else:
            ledger._check_folder()
        return ledger

    def _begin(self, path: PathLike, epsilon: float | None, delta: float | None, relation: AnyRelation | None) -> None:
        """Set what is known before there is a file."""
        self.path = Path(path)
        if relation is not None:
            _checks.choice("relation", relation, get_args(AnyRelation))
        if epsilon is not None:
            epsilon = check_epsilon(epsilon)
        if delta is not None:
            delta = check_delta(delta)
        self._asked = (epsilon, delta, relation)
        self._made = False
        self.epsilon: float = epsilon or 0.0
        self.delta: float = delta or 0.0
        self.relation: AnyRelation = relation or "add-remove"
        self._key = b""

    def _make(self) -> None:
        """Make the file, if there is none, and open it."""
        if self._made:
            return
        epsilon, delta, relation = self._asked
        if not self.path.exists():
            if epsilon is None or delta is None:
                raise UsageError(f"there is no ledger {str(self.path)!r}; a new one needs a budget: epsilon and delta")
            self._create(epsilon, delta, relation or "add-remove")
        with self._open() as connection:
            row = connection.execute("SELECT epsilon, delta, neighbours, key FROM settings").fetchone()
        for name, given, kept in zip(("epsilon", "delta", "relation"), self._asked, row[:3], strict=True):
            if given is not None and given != kept:
                raise UsageError(
                    f"the ledger {str(self.path)!r} has {name}={kept!r}, not {given!r}; a budget is never changed"
                )
        self.epsilon, self.delta, self.relation = row[:3]
        self._key = bytes.fromhex(row[3])
        self._made = True

    def _is_there(self) -> bool:
        """Whether there is a file: a planned ledger has none before it is first paid from."""
        if not self._made and self.path.exists():
            self._make()
        return self._made

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, epsilon={self.epsilon}, delta={self.delta}, relation={self.relation!r})"

    def _create(self, epsilon: float, delta: float, relation: AnyRelation) -> None:
        """Make the file whole beside its place and link it there: two processes cannot both make it."""
        self._check_folder()
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        try:
            temporary.touch(mode=0o600)  # it will hold secrets: for its owner's eyes alone
            with closing(sqlite3.connect(temporary)) as connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSIONS[0]}")
                connection.executescript(_SCHEMA)
                settings = (epsilon, delta, relation, _now(), secrets.token_hex(32))
                connection.execute("INSERT INTO settings VALUES (?, ?, ?, ?, ?)", settings)
                connection.commit()
            with suppress(FileExistsError):  # another process was quicker: its ledger is opened and its budget compared
                os.link(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def _check_folder(self) -> None:
        if not self.path.parent.is_dir():
            raise UsageError(f"the folder {str(self.path.parent)!r} does not exist; no ledger was made")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection to a file that is certainly a ledger; anything else is refused and left as it is."""
        foreign = InputError(f"{str(self.path)!r} is not a datassay ledger, or is damaged; it was left as it is")
        try:
            with self.path.open("rb") as file:
                head = file.read(100)
        except OSError as error:
            raise InputError(f"cannot open the ledger {str(self.path)!r}: {error}") from None
        if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
            raise foreign
        page = int.from_bytes(head[16:18], "big")
        promised = (65536 if page == 1 else page) * int.from_bytes(head[28:32], "big")
        if head[68:72] != APPLICATION_ID.to_bytes(4, "big") or self.path.stat().st_size < promised:
            raise foreign
        connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
        try:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                if connection.execute("PRAGMA user_version").fetchone()[0] not in VERSIONS:
                    raise InputError(f"the ledger {str(self.path)!r} was made by another version of datassay")
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                    raise UnavailableError(f"the ledger {str(self.path)!r} is busy; try again") from None
                raise foreign from None
            yield connection
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error)):
                raise UnavailableError(
                    f"the ledger {str(self.path)!r} stayed busy for {WAIT_SECONDS} s; try again"
                ) from None
            raise UnavailableError(f"the ledger {str(self.path)!r} cannot be used: {error}") from None
        finally:
            connection.close()

    def spend(self, dataset: str, request: str, costs: Sequence[Cost], mechanism: str, audience: str) -> int:
        """Pay for a release before its noise is drawn; the number of its line, or :class:`BudgetExceededError`."""
        _checks.choice("audience", audience, get_args(Audience))
        for cost in costs:
            # Who may replace a whole record may replace its features.
            if cost.relation not in (self.relation, "replace" if self.relation == "replace-features" else None):
                raise UsageError(
                    f"this release is accounted for relation={cost.relation!r} and the ledger {str(self.path)!r} "
                    f"is kept for {self.relation!r}; use a ledger made with relation={cost.relation!r}"
                )
        if costs and not self._is_there() and (needed := total_epsilon(costs, self.delta)) > self.epsilon:
            raise self._refusal("release", 0.0, needed)  # and no ledger is made
        self._make()
        with self._spending(costs) as connection:
            before, disclosed = self._costs(connection), self._disclosed(connection)
            needed = total_epsilon([*before, *costs], self.delta) + disclosed
            if costs and needed > self.epsilon:
                raise self._refusal("release", total_epsilon(before, self.delta) + disclosed, needed)
            listed = json.dumps([_stored(cost) for cost in costs])
            written = connection.execute(
                "INSERT INTO releases (dataset, request, mechanism, audience, costs, spent) VALUES (?, ?, ?, ?, ?, ?)",
                (self._masked(dataset), request, mechanism, audience, listed, _now()),
            )
        assert written.lastrowid is not None
        return written.lastrowid

    @contextmanager
    def _spending(self, costs: Sequence[Cost] = ()) -> Iterator[sqlite3.Connection]:
        """A transaction in which no other process can spend: what is written in it counts as a whole, or not at all."""
        with self._open() as connection:
            # What will most likely be asked again inside, when others have to wait: by then the answer is at hand.
            total_epsilon([*self._costs(connection), *costs], self.delta)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                _reached("before spending")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        _reached("after spending")

    def _refusal(self, what: str, held: float, needed: float) -> BudgetExceededError:
        return BudgetExceededError(
            f"the ledger {str(self.path)!r} refuses this {what}: it would bring ε from {held:.4g} to {needed:.4g} at "
            f"δ = {self.delta:g}, and the budget is {self.epsilon:g}. Nothing was drawn"
        )

    def open_disclosure(self, dataset: str, mechanism: str, query: float = 0.0) -> int:
        """Begin to give out single records of a data set; the number of its line, for :meth:`charge`.

        It costs nothing yet; if a ``query`` alone costs more than the whole budget, it is refused at once. A disclosure
        reveals labels, so the ledger must be kept for ``replace-features``.
        """
        if self.relation != "replace-features":
            raise UsageError(
                f"a disclosure gives labels away and protects features alone; the ledger {str(self.path)!r} is kept "
                f"for relation={self.relation!r}, so use one made with relation='replace-features'"
            )
        if query > self.epsilon * (1 + 1e-12):
            raise self._refusal("query", self.spent(), self.spent() + query)
        self._make()
        with self._open() as connection:
            connection.executescript(_DISCLOSURE_SCHEMA)
        return self.spend(dataset, f"disclosure {secrets.token_hex(16)}", [], mechanism, "public")

    def charge(self, number: int, records: Sequence[object], epsilon: float) -> None:
        """Pay ε for one query of each of these records, before any noise is drawn: for all of them or for none."""
        epsilon = check_epsilon(epsilon)
        points = [self._masked(f"record {record}") for record in records]
        if len(set(points)) < len(points):
            raise InputError("a record can be charged once at a time")
        with self._spending() as connection:
            row = connection.execute(
                "SELECT dataset FROM releases WHERE number = ? AND released IS NULL AND request LIKE 'disclosure %'",
                (number,),
            ).fetchone()
            if row is None:
                raise InputError(f"the ledger has no open disclosure number {number}")
            fixed = total_epsilon(self._costs(connection), self.delta)
            held = fixed + self._disclosed(connection)
            connection.executemany(
                "INSERT INTO accounts VALUES (?, ?, ?) "
                "ON CONFLICT (dataset, point) DO UPDATE SET spent = spent + excluded.spent",
                [(row[0], point, epsilon) for point in points],
            )
            connection.executemany(
                "INSERT INTO peaks SELECT dataset, spent FROM accounts WHERE dataset = ? AND point = ? "
                "ON CONFLICT (dataset) DO UPDATE SET most = MAX(most, excluded.most)",
                [(row[0], point) for point in points],
            )
            needed = fixed + self._disclosed(connection)
            if needed > self.epsilon * (1 + 1e-12):  # sums of many equal costs are rounded
                raise self._refusal("query", held, needed)
            connection.executemany(
                "INSERT INTO queries VALUES (?, ?, ?)", [(number, point, epsilon) for point in points]
            )

    def _disclosed(self, connection: sqlite3.Connection) -> float:
        """ε of all disclosures: of every data set, what its record most asked for has spent."""
        if not _keeps_accounts(connection):
            return 0.0
        return float(sum(most for (most,) in connection.execute("SELECT most FROM peaks")))

    def disclosures(self) -> dict[int, Disclosed]:
        """Totals of every disclosure, by the number of its line."""
        if not self._is_there():
            return {}
        with self._open() as connection:
            if not _keeps_accounts(connection):
                return {}
            kinds = connection.execute(
                "SELECT number, epsilon, COUNT(*) FROM queries GROUP BY number, epsilon ORDER BY number, epsilon"
            ).fetchall()
            people = connection.execute(
                "SELECT number, COUNT(*), MAX(spent) FROM (SELECT number, SUM(epsilon) AS spent FROM queries "
                "GROUP BY number, point) GROUP BY number"
            ).fetchall()
        found: dict[int, Disclosed] = {}
        for number, records, most in people:
            asked = [(epsilon, count) for of, epsilon, count in kinds if of == number]
            total = sum(epsilon * count for epsilon, count in asked)
            found[number] = Disclosed(sum(count for _, count in asked), records, total, most)
        return found

    def complete(self, number: int, result: str, secret: str | None = None) -> None:
        """Keep the result of a release that was paid for, so that it can be served again.

        ``secret`` is kept beside it and never exported: what it takes to serve the same values again.
        """
        with self._open() as connection:
            done = connection.execute(
                "UPDATE releases SET released = ?, result = ?, secret = ? WHERE number = ? AND released IS NULL",
                (_now(), result, secret, number),
            )
        if done.rowcount != 1:
            raise InputError(f"the ledger has no unfinished release number {number}")

    def find(self, dataset: str, request: str) -> LedgerLine | None:
        """The completed release that answers this request, if there is one."""
        if not self._is_there():
            return None
        where = "WHERE dataset = ? AND request = ? AND released IS NOT NULL"
        found = self._lines(where, (self._masked(dataset), request))
        return found[0] if found else None

    def _masked(self, dataset: str) -> str:
        """A data set's fingerprint under the ledger's key, without which no guess of the data can be checked by it."""
        return hmac.digest(self._key, dataset.encode(), "sha256").hex()

    def releases(self) -> list[LedgerLine]:
        """Every line, in the order of spending."""
        return self._lines()

    def _lines(self, where: str = "", parameters: tuple[str, ...] = ()) -> list[LedgerLine]:
        if not self._is_there():
            return []
        query = f"SELECT {', '.join(_COLUMNS)} FROM releases {where} ORDER BY number"
        with self._open() as connection:
            rows = connection.execute(query, parameters).fetchall()
        lines = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        return [LedgerLine(**{**line, "costs": tuple(Cost(**c) for c in json.loads(line["costs"]))}) for line in lines]

    def _costs(self, connection: sqlite3.Connection) -> list[Cost]:
        rows = connection.execute("SELECT costs FROM releases ORDER BY number").fetchall()
        return [Cost(**cost) for (costs,) in rows for cost in json.loads(costs)]

    def spent(self) -> float:
        """ε of everything released so far, at the ledger's δ."""
        if not self._is_there():
            return 0.0
        with self._open() as connection:
            return total_epsilon(self._costs(connection), self.delta) + self._disclosed(connection)

    def remaining(self) -> float:
        """The ε that is left. Composition is not addition: a release may cost less than its own ε."""
        return max(0.0, self.epsilon - self.spent())

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``budget_epsilon``, ``budget_delta``, ``spent_epsilon``, ``left_epsilon``, ``share_spent``; how many
        ``releases`` there are, ``undelivered`` ones among them (paid for, and never delivered), and ``disclosures``.
        """
        lines, spent = self.releases(), self.spent()
        return as_facts(
            {
                "budget_epsilon": self.epsilon, "budget_delta": self.delta, "spent_epsilon": spent,
                "left_epsilon": max(0.0, self.epsilon - spent), "share_spent": spent / self.epsilon,
                "releases": len(lines),
                "undelivered": sum(line.released is None and bool(line.costs) for line in lines),
                "disclosures": len(self.disclosures()),
            }
        )  # fmt: skip

    def to_dict(self) -> dict[str, object]:
        """The ledger as plain values, for export as JSON: what may be published, and no secret.

        Data sets are numbered in the order in which they came.
        """
        lines, disclosed = self.releases(), self.disclosures()
        numbers: dict[str, int] = {}
        for line in lines:
            numbers.setdefault(line.dataset, len(numbers) + 1)
        return {
            "path": str(self.path),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": self.relation,
            "spent": self.spent(),
            "releases": [_exported(line, numbers[line.dataset]) for line in lines],
            "disclosures": {str(number): asdict(given) for number, given in disclosed.items()},
        }


def _keeps_accounts(connection: sqlite3.Connection) -> bool:
    """Whether anything was ever disclosed: only then does a ledger have accounts."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] >= 2)


def _exported(line: LedgerLine, dataset: int) -> dict[str, object]:
    public = {name: value for name, value in vars(line).items() if name != "secret"}
    return {**public, "dataset": dataset, "costs": [cost.to_dict() for cost in line.costs]}


def _stored(cost: Cost) -> dict[str, str | float | int]:
    """The cost as ledgers keep it, under names that earlier versions, which may open the same ledger, read too."""
    return {"neighbours" if name == "relation" else name: value for name, value in cost.to_dict().items()}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# Tests put a fault here, to kill the process at a chosen moment.
_reached: Callable[[str], None] = lambda moment: None  # noqa: E731
