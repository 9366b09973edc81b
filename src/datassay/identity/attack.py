"""An attack on a release, laid out: people and released records as points, neighbourhoods, and what attackers know."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypedDict, cast, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._checkpoint import Checkpoint, digest
from datassay._choices import Calculation
from datassay._errors import InputError, UsageError
from datassay._run import DEFAULTS, Schedule, Tasks
from datassay._work import Bar, chunks, gather
from datassay.data import Ids, Table, TableLike, as_table, missing_column
from datassay.identity.engine import half_width
from datassay.identity.gower import Gower, fit_gower
from datassay.results import Floats, Parameter

People = int | Ids | Set[int] | Set[str]
MOST_EXACT_SETS: Final = 2**16
CHUNK: Final = 16
FRESH: Final = 64  # sets, after which distances are summed up anew


class Released(Protocol):
    """A release that holds its table and whether it is synthetic, such as a :class:`datassay.Release`."""

    @property
    def table(self) -> Table:
        """The released records."""

    @property
    def synthetic(self) -> bool:
        """Whether none of them is the record of a person."""


@dataclass(frozen=True, eq=False)
class Tables:
    """The original, the release, the people who are in neither, and whether the release says that it is synthetic."""

    original: Table
    released: Table
    control: Table | None
    synthetic: bool | None


class Linking(TypedDict, total=False):
    """What is attacked, what is near, and what a link counts.

    Parameters
    ----------
    columns
        The attributes; all columns of the original that are not carried along, the label among them, if left out.
    weights
        ζ: what knowing an attribute is worth, by name; 1 if not named.
    neighbours
        How many neighbours say what is near; 2% of the people, at least 5, if left out.
    epsilon1, epsilon2
        How fast the gain falls with fewer attributes to learn, and the least weight of a link.
    synthetic
        True if no released record is anybody's own, so that everyone is at risk. Otherwise who is not in the release,
        by id, has risk 0.
    """

    columns: Sequence[str] | None
    weights: Mapping[str, float] | None
    neighbours: int | None
    epsilon1: float
    epsilon2: float
    synthetic: bool | None


class Attacking(Linking, total=False):
    """Whom to attack, and what of the scenarios to play.

    Parameters
    ----------
    people
        Whose risk: ids, or how many drawn at random; everyone if left out.
    method, permutations
        ``"exact"``: all sets of attributes; ``"sampled"``: the beginnings of so many random orders for each person,
        with intervals. Left out: whichever is less work.
    confidence, seed
        Of the intervals; of the orders, and of the people drawn.
    """

    people: People | None
    method: Calculation | None
    permutations: int
    confidence: float
    seed: int


class AttackRun(Attacking, Tasks, total=False):
    """An attack, and how it is run."""


def with_defaults(given: Linking) -> AttackRun:
    """The options of an attack, all of them."""
    return cast(AttackRun, {name: given.get(name, DEFAULTS.get(name)) for name in AttackRun.__annotations__})


@dataclass(frozen=True)
class Orders:
    """The scenarios that are played: all of them, or the beginnings of random orders of the attributes."""

    method: Calculation | None
    permutations: int
    confidence: float
    seed: int

    @classmethod
    def of(cls, given: Attacking) -> "Orders":
        """Those of the options that are about this, within their bounds."""
        permutations = _checks.integer("permutations", given["permutations"], at_least=2)
        confidence = _checks.number("confidence", given["confidence"], above=0, below=1)
        return cls(given["method"], permutations, confidence, _checks.integer("seed", given["seed"], at_least=0))

    def masks(self, d: int) -> NDArray[np.int64] | None:
        """All sets of d attributes but the empty one, each one attribute from the last; None if not all are played."""
        if self.method is not None:
            _checks.choice("method", self.method, get_args(Calculation))
        if self.method == "exact" and 2**d > MOST_EXACT_SETS:
            raise UsageError(
                f"{d} attributes have 2^{d} scenarios; at most 2^16 are played: sample, or name fewer columns"
            )
        few = 2**d - 1 <= min(self.permutations * d, MOST_EXACT_SETS)
        numbers = np.arange(1, 2**d) if self.method == "exact" or (self.method is None and few) else None
        return None if numbers is None else np.asarray(numbers ^ (numbers >> 1))

    def half_widths(self, draws: Floats) -> Floats:
        """Half-widths of Student's intervals of the means over draws (the second axis)."""
        return half_width(draws.var(axis=1, ddof=1), draws.shape[1], self.confidence)


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything an attack needs: people and release as points, neighbourhoods, weights."""

    space: Gower
    assumed: Linking
    epsilons: tuple[float, float]
    people: Floats
    ids: NDArray[np.generic]
    places: NDArray[np.intp]
    present: NDArray[np.bool_]
    near: tuple[Floats, Floats]
    released: Floats
    counts: Floats
    zeta: Floats
    k: int
    notes: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes."""
        return self.space.columns

    def arguments(self, rows: slice | NDArray[np.intp]) -> tuple[Any, ...]:
        """The arguments of a kernel, for some of the people."""
        mean, deviation = self.near
        whom = np.ascontiguousarray(self.people[:, rows])
        return whom, self.released, self.counts, self.space.categorical, self.zeta, mean[rows], deviation[rows]

    def parameters(self, orders: Orders | None) -> dict[str, Parameter]:
        """Parameters of a result; ``orders`` are None where all sets were played."""
        weights = self.assumed["weights"]
        return {
            "permutations": None if orders is None else orders.permutations,
            "neighbours": self.k,
            "attributes": ", ".join(self.columns),
            "weights": None if not weights else ", ".join(f"{name}: {weight:g}" for name, weight in weights.items()),
            "synthetic": self.assumed["synthetic"],
            "epsilon1": self.epsilons[0],
            "epsilon2": self.epsilons[1],
            "confidence": None if orders is None else orders.confidence,
        }


def read_tables(original: TableLike, released: TableLike | Released, control: TableLike | None = None) -> Tables:
    """The tables of an attack, the others read like the original."""
    here = as_table(original, text="categorical")
    release: Any = released
    there = as_table(getattr(release, "table", release), text="categorical", like=here)
    others = None if control is None else as_table(control, text="categorical", like=here)
    return Tables(here, there, others, getattr(release, "synthetic", None))


def schedule_of(run: AttackRun, name: str, tables: Tables, parameters: Mapping[str, object]) -> Schedule:
    """The schedule of an attack, which a checkpoint knows by its name, tables and parameters."""
    schedule = Schedule.of(run)
    if run["checkpoint"] is None:
        return schedule
    kept = {name: _short(given) for name, given in parameters.items() if name not in Tasks.__annotations__}
    given = [table for table in (tables.original, tables.released, tables.control) if table is not None]
    data = digest(*((table.columns, table.ids) for table in given))
    return replace(schedule, checkpoint=Checkpoint(run["checkpoint"], name, kept, data))


def _short(given: object) -> str | int | float | None:
    """A parameter as the checkpoint keeps it: itself, or its digest; a set has no order."""
    if given is None or isinstance(given, str | int | float):
        return given
    return f"#{digest(sorted(map(repr, given)) if isinstance(given, set | frozenset) else given)[:12]}"


def _attributes(original: Table, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The attributes: all columns that are not carried along, the label among them, unless named."""
    _checks.not_one_string("columns", columns)
    if columns is None:
        chosen = tuple(name for name in original.columns if name not in original.carried)
    else:
        chosen = tuple(dict.fromkeys(columns))
    for name in chosen:
        if name not in original.columns:
            raise InputError(f"{original.name}: {missing_column(name, original.columns)}")
    if not chosen:
        raise InputError(f"{original.name} has no attributes to look at; name them with columns")
    if len(chosen) > 62:
        raise UsageError(f"there are {len(chosen)} attributes; name at most 62 with columns")
    return chosen


def _same_attributes(original: Table, released: Table, columns: Sequence[str]) -> None:
    for name in columns:
        if name not in released.columns:
            raise InputError(
                f"{released.name} lacks the column {name!r} of {original.name}: name the columns both have"
            )
        here, there = original.columns[name].kind, released.columns[name].kind
        if here != there:
            raise InputError(
                f"column {name!r} is {here} in {original.name} and {there} in {released.name}; read the release like "
                "the original (read_table(…, like=original))"
            )


def _present(
    original: Table, released: Table, synthetic: bool | None, numbered: bool, notes: list[str]
) -> NDArray[np.bool_]:
    """The people of the original who are still there, by id. ``numbered``: ids may be mere numbers of rows."""
    if synthetic:
        return np.ones(len(original), bool)
    if (original.ids.dtype.kind in "US") != (released.ids.dtype.kind in "US"):
        raise InputError(
            f"the ids of {original.name} and {released.name} are of different types; give both the same id, or say "
            "synthetic=True if the release holds nobody's own record"
        )
    numbered = numbered and original.id is None and released.id is None and _counted(original) and _counted(released)
    if numbered and len(original) != len(released):
        raise InputError(
            f"{original.name} has {len(original):,} rows and {released.name} {len(released):,}, and neither has ids: "
            "who is still there cannot be told. Name both ids, or say synthetic=True if no record is anybody's own"
        )
    found = np.isin(original.ids, released.ids)
    if not found.any():
        raise InputError(
            f"no id of {original.name} is in {released.name}; ids must match, or say synthetic=True if no record "
            "is anybody's own"
        )
    if numbered:
        notes.append("neither table has ids: the released rows are taken to be those of the same people, in any order")
    strangers = int((~np.isin(released.ids, original.ids)).sum())
    if strangers:
        notes.append(f"{strangers:,} released records belong to nobody in {original.name}")
    return found


def _counted(table: Table) -> bool:
    return table.ids.dtype.kind in "iu" and bool(np.array_equal(table.ids, np.arange(len(table))))


def lay_out(tables: Tables, assumed: Attacking, schedule: Schedule | None = None, seed: int = 0) -> Setting:
    """An attack on a release, checked and laid out."""
    here, there = tables.original, tables.released
    chosen = _attributes(here, assumed["columns"])
    _same_attributes(here, there, chosen)
    if len(here) < 2:
        raise InputError(f"{here.name} has one row; a neighbourhood needs others")
    notes: list[str] = []
    synthetic = tables.synthetic if assumed["synthetic"] is None else assumed["synthetic"]
    present = _present(here, there, synthetic, tables.synthetic is None, notes)
    for name in chosen:
        column = here.columns[name]
        if column.kind == "categorical" and len(here) > 20 and len(np.unique(column.data)) == len(here):
            notes.append(
                f"{name!r} differs from row to row and is attacked as an attribute; if it is the id, name it so"
            )
    extra = [name for name in there.columns if name not in here.columns and name not in there.carried]
    if extra:
        notes.append(f"{_checks.listed(extra)} of the release are not in the original, and were not attacked")
    zeta = np.ones(len(chosen))
    weights = assumed["weights"] or {}
    if not isinstance(weights, Mapping):
        raise UsageError("weights must be a mapping: an attribute's name and its weight")
    for name, weight in weights.items():
        if name not in chosen:
            raise UsageError(f"weights: {name!r} is not among the attributes {_checks.listed(chosen, 12)}")
        zeta[chosen.index(name)] = _checks.number(f"the weight of {name!r}", weight, above=0)
    epsilon1 = _checks.number("epsilon1", assumed["epsilon1"], above=0)
    epsilon2 = _checks.number("epsilon2", assumed["epsilon2"], at_least=0, at_most=1)
    nearest = assumed["neighbours"]
    if nearest is None:
        k = min(len(here) - 1, max(5, round(0.02 * len(here))))
    else:
        k = _checks.integer("neighbours", nearest, at_least=1, at_most=len(here) - 1)
    rows = _chosen_people(here, assumed["people"], seed)
    space = fit_gower(here, chosen)
    points = space.points(here)
    distinct, counts = np.unique(space.points(there), axis=1, return_counts=True)
    return Setting(
        space=space,
        # Without how it is run: what a task holds is sent to workers, and a client cannot be.
        assumed={"weights": weights, "synthetic": assumed["synthetic"]},
        epsilons=(epsilon1, epsilon2),
        people=np.ascontiguousarray(points[:, rows]),
        ids=here.ids[rows],
        places=rows,
        present=present[rows],
        near=_nearness(points[:, rows], rows, points, space.categorical, k, schedule or Schedule()),
        released=np.ascontiguousarray(distinct),
        counts=counts.astype(np.float64),
        zeta=zeta,
        k=k,
        notes=tuple(notes),
    )


def on_control(setting: Setting, tables: Tables, schedule: Schedule) -> Setting | None:
    """The same attack on people who are in neither table; None if there are none."""
    here, others = tables.original, tables.control
    if others is None:
        return None
    _same_attributes(here, others, setting.columns)
    named = here.id is not None and others.id is not None
    if others is here or (named and bool(np.isin(others.ids, here.ids).any())):
        raise InputError("control must be people who are in neither table, and some of them are in the original")
    space = setting.space
    people, not_there = space.points(others), np.full(len(others), -1)
    return replace(
        setting,
        people=people,
        ids=others.ids,
        places=np.arange(len(others)),
        present=np.zeros(len(others), bool),
        near=_nearness(people, not_there, space.points(here), space.categorical, setting.k, schedule),
        notes=(),
    )


def _nearness(
    people: Floats, own: NDArray[np.intp], points: Floats, categorical: NDArray[np.bool_], k: int, schedule: Schedule
) -> tuple[Floats, Floats]:
    """Mean and deviation of each person's distances to the k nearest points but ``own`` (−1: none of them)."""
    if not len(own):
        return np.empty(0), np.empty(0)

    def task(part: range) -> tuple[Floats, Floats]:
        from datassay.identity import risk_kernels

        at = slice(part.start, part.stop)
        mean, deviation = np.empty(len(part)), np.empty(len(part))
        risk_kernels.neighbourhoods(people[:, at], own[at], points, categorical, k, mean, deviation)
        return mean, deviation

    mean, deviation = gather(task, chunks(len(own), CHUNK), schedule.workers(), lambda _: None, schedule.checkpoint)
    return mean, deviation


def _chosen_people(table: Table, people: People | None, seed: int) -> NDArray[np.intp]:
    """The rows of the people asked for: by id, so many drawn at random, or all."""
    if people is None:
        return np.arange(len(table))
    if isinstance(people, int | np.integer) and not isinstance(people, bool):
        count = _checks.integer("people", people, at_least=1)
        if count >= len(table):
            return np.arange(len(table))
        return np.sort(np.random.default_rng([seed, 1]).permutation(len(table))[:count])
    if not isinstance(people, Sequence | np.ndarray | set | frozenset) or isinstance(people, str):
        raise UsageError(f"people must be a list of ids, or how many to draw, got {people!r}")
    wanted = np.array(list(people))
    if len(wanted) == 0:
        raise UsageError("people names nobody")
    rows = np.flatnonzero(np.isin(table.ids, wanted))
    lacking = set(wanted.tolist()) - set(table.ids[rows].tolist())
    if lacking:
        named = _checks.listed(sorted(lacking, key=str))
        raise InputError(f"people: there is no record with id {named} in {table.name}")
    return rows


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores: people × draws (one if exact) × scenarios × (linkability, gain, score, that of picking at random).

    Scenarios are the ``masks``, or the beginnings of ``orders``.
    """

    scores: Floats
    orders: NDArray[np.int64] | None
    masks: NDArray[np.int64] | None


def play(
    setting: Setting,
    masks: NDArray[np.int64] | None,
    orders: Orders,
    schedule: Schedule,
    reduce: Callable[[Scored], tuple[Floats, ...]],
) -> tuple[Floats, ...]:
    """Play all scenarios (the sets ``masks``, or the beginnings of random orders); ``reduce`` says what is kept."""
    d, n = setting.people.shape
    everything = np.add.accumulate(setting.zeta)[-1]  # sums as the kernels make them: one after another

    def task(part: range) -> tuple[Floats, ...]:
        from datassay.identity import risk_kernels

        given = setting.arguments(slice(part.start, part.stop))
        if masks is None:
            one = np.tile(np.arange(d), (orders.permutations, 1))
            drawn = np.array(
                [np.random.default_rng([orders.seed, 2, place]).permuted(one, axis=1) for place in setting.places[part]]
            )
            known = np.bitwise_or.accumulate(1 << drawn, axis=2)
            unknown = np.subtract.accumulate(np.insert(setting.zeta[drawn], 0, everything, axis=2), axis=2)[..., 1:]
            unknown[..., -1] = 0.0
            length = d
        else:
            drawn, known, length = None, masks[None, None], FRESH
            outside = (masks[:, None] >> np.arange(d)) & 1 == 0
            unknown = np.add.accumulate(np.where(outside, setting.zeta, 0.0), axis=1)[None, None, :, -1]
        scores = np.empty((len(part), *known.shape[1:], 4))
        flat = (known.reshape(len(known), -1), unknown.reshape(len(known), -1))
        risk_kernels.attack(*given, *flat, length, *setting.epsilons, scores.reshape(len(part), -1, 4))
        return reduce(Scored(scores, drawn, masks))

    with Bar(schedule.progress, n, "people") as report:
        return gather(task, chunks(n, CHUNK), schedule.workers(), report, schedule.checkpoint)
