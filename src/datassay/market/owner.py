"""The owner's agent: gives out noisy copies of records, one query at a time, within the budget of each record."""

from collections.abc import Iterator
from contextlib import suppress
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay.data import Ids, ids_of
from datassay.neighbors import as_floats
from datassay.privacy import Ledger, NoisyRecords, check_ledger, fingerprint, rehearsal_noise

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def positions(points: ArrayLike, n: int) -> Ints:
    """Positions among n records, none or some of them, or what is wrong with them."""
    try:
        asked = np.atleast_1d(np.asarray(points))
    except ValueError:
        asked = np.empty((0, 0))
    if asked.size == 0 and asked.ndim == 1:
        return np.empty(0, np.int64)
    if asked.ndim != 1 or asked.dtype.kind not in "iu":
        given = f"an array of {asked.dtype} {asked.shape}" if isinstance(points, np.ndarray) else repr(points)
        raise InputError(f"records are named by position (not by id), 0 to {n - 1}; got {given}")
    unknown = (asked < 0) | (asked >= n)
    if unknown.any():
        raise InputError(f"there is no record at position {asked[unknown][0]}: positions go from 0 to {n - 1}")
    return asked.astype(np.int64)


class DataOwner:
    """Holds records and answers queries about them with noisy copies: x + Laplace(Δ_j/ε_j) in every feature.

    Every record may be queried ``t_max`` times. Noise is OpenDP's, and no seed repeats it. With a ledger, every query
    is paid for there before its noise is drawn.

    Parameters
    ----------
    points, ids
        The records' features, and their ids.
    mechanism
        Bounds and ε of every feature (:class:`datassay.privacy.NoisyRecords`). The bounds must not come from the
        records themselves: what is outside is cut off.
    t_max
        Queries that each record can be asked.
    ledger
        Kept for ``replace-features``; a query costs Σ ε_j there.
    n_jobs
        Threads that draw noise.

    Examples
    --------
    >>> import numpy as np
    >>> from datassay.market import DataOwner
    >>> from datassay.privacy import NoisyRecords
    >>> owner = DataOwner(np.array([[0.2], [0.9]]), NoisyRecords([0.0], [1.0], 2.0), t_max=3)
    >>> copies = owner.query([1])
    >>> owner.queries.tolist(), owner.remaining.tolist()
    ([0, 1], [3, 2])
    """

    def __init__(
        self,
        points: ArrayLike,
        mechanism: NoisyRecords,
        t_max: int,
        *,
        ids: Ids | None = None,
        ledger: Ledger | None = None,
        n_jobs: int | None = None,
    ) -> None:
        check_ledger(ledger)
        if not isinstance(mechanism, NoisyRecords):
            raise UsageError(f"mechanism must be a datassay.privacy.NoisyRecords (bounds and ε), got {mechanism!r}")
        self.mechanism = mechanism
        self.t_max = _checks.integer("t_max", t_max, at_least=0)
        given = np.asarray(as_floats("points", points), np.float64)
        if given.shape[1] != len(mechanism.low):
            raise InputError(f"points must have {len(mechanism.low)} features, as the bounds have; got {given.shape}")
        self.unit = mechanism.to_unit(given)
        self.clipped = int(((given < mechanism.low) | (given > mechanism.high)).sum())
        self.ids = np.array(ids_of(ids, len(given)))  # a copy: accounts are kept by it
        self.ids.setflags(write=False)
        self._lock, self._closed = Lock(), False
        self.queries = np.zeros(len(given), np.int64)
        self._ledger, self._n_jobs = ledger, n_jobs
        self.trouble: Exception | None = None  # what the ledger said when it did not take a payment
        self.number: int | None = None
        if ledger is not None and self.t_max > 0:
            what = (
                f"noisy copies of records, Laplace noise on each of {given.shape[1]} features, at most {t_max} copies "
                "a record; labels are given as they are"
            )
            self.number = ledger.open_disclosure(fingerprint(given, self.ids), what, mechanism.cost)

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def remaining(self) -> Ints:
        """Queries that are left of every record's budget."""
        return np.asarray(self.t_max - self.queries)

    def check(self, points: ArrayLike) -> Ints:
        """Positions of records that may be queried now, or what is wrong with them."""
        if self._closed:
            raise InputError("this owner has closed, and answers no more queries")
        asked = positions(points, len(self))
        if len(np.unique(asked)) < len(asked):
            raise InputError("a query names a record twice; ask for it again in the next one")
        spent = self.queries[asked] >= self.t_max
        if spent.any():
            raise InputError(
                f"the budget of record {self.ids[asked[spent][0]]!s} is spent: it was queried {self.t_max} times"
            )
        return asked

    def query(self, points: ArrayLike) -> Floats:
        """A noisy copy of each of these records, by position; each costs its record one query."""
        return self._draw(self._pay(points))

    def answer(self, points: ArrayLike, at_once: int) -> Iterator[tuple[Ints, Floats]]:
        """The same, some records at a time: positions, and a noisy copy of each. All are paid for before the first."""
        asked = self._pay(points)
        for start in range(0, len(asked), at_once):
            part = asked[start : start + at_once]
            yield part, self._draw(part)

    def _pay(self, points: ArrayLike) -> Ints:
        with self._lock:  # checked, paid for and counted in one go, as several threads may ask
            asked = self.check(points)
            if self._ledger is not None and self.number is not None and len(asked):
                try:
                    self._ledger.charge(self.number, self.ids[asked].tolist(), self.mechanism.cost)
                    self.queries[asked] += 1
                except BaseException as error:
                    if isinstance(error, Exception):
                        self.trouble = error
                    self._settle(asked, self._ledger, self.number)
                    raise
            else:
                self.queries[asked] += 1
        return asked

    def _settle(self, asked: Ints, ledger: Ledger, number: int) -> None:
        """Count a query that was cut short, by ^C say, if the ledger had written it down: it is paid for."""
        with suppress(Exception):  # a ledger that cannot be read says nothing of it
            kept = ledger.disclosures().get(number)
            if kept is not None and kept.queries > self.queries.sum():
                self.queries[asked] += 1

    def _draw(self, asked: Ints) -> Floats:
        return self.mechanism.release(self.unit[asked], self._n_jobs)

    def close(self) -> None:
        """Answer no more queries, and close the disclosure in the ledger."""
        with self._lock:
            self._closed = True
            if self._ledger is not None and self.number is not None:
                kept = self._ledger.disclosures().get(self.number)
                queries = 0 if kept is None else kept.queries
                self._ledger.complete(self.number, f'{{"queries": {queries}}}')
                self.number = None


class RehearsingOwner(DataOwner):
    """An owner whose noise comes from a seed: for the owner's simulations alone."""

    def __init__(
        self, points: ArrayLike, mechanism: NoisyRecords, t_max: int, rng: np.random.Generator, ids: NDArray[np.generic]
    ) -> None:
        super().__init__(points, mechanism, t_max, ids=ids)
        self.rng = rng

    def noise(self, copies: int) -> Floats:
        """Standard Laplace noise for so many copies."""
        return rehearsal_noise(self.rng, (copies, self.unit.shape[1]))

    def _draw(self, asked: Ints) -> Floats:
        noisy = self.unit[asked] + self.noise(len(asked)) * (1.0 / self.mechanism.epsilon)
        return self.mechanism.from_unit(noisy)
