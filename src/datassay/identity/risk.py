"""How likely it is that someone is found in what was released, and which attributes give them away.

An attacker who knows some attributes R of a person singles out the released records nearest to them on R; an evaluator
with the original data scores how linkable these are to the person (L) and how much they tell of the rest (I). The risk
is the mean of L · max(I, ε₂) over scenarios R. Reference: Mathematics §8 (the thesis, chapter 1, corrected).
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._checkpoint import Checkpoint, digest
from datassay._choices import Weighing
from datassay._errors import InputError, UsageError
from datassay._work import Bar, Progress, chunks, gather
from datassay.data import Table, as_table, missing_column
from datassay.identity.engine import half_width, semivalues, set_weights
from datassay.identity.results import Risk, RiskShapley
from datassay.neighbors import Schedule
from datassay.results import Parameter

Floats = NDArray[np.float64]
MISSING_NUMBER: Final = 1e9  # farther from any number than 1, and 0 from itself
MOST_EXACT_SETS: Final = 2**16
CHUNK: Final = 16
FRESH: Final = 64  # sets, after which distances are summed up anew


@dataclass(frozen=True, eq=False)
class Gower:
    """Attributes as the unnormalised Gower distance sees them: numbers over the original's range, and codes."""

    columns: tuple[str, ...]
    categorical: NDArray[np.bool_]
    low: Floats
    width: Floats
    names: tuple[dict[str, int] | None, ...]  # grows by names that only other tables have

    def points(self, table: Table) -> Floats:
        """The rows of a table, as attributes × rows; a category of its own for each name not seen before."""
        rows = np.empty((len(self.columns), len(table)))
        for a, name in enumerate(self.columns):
            column = table.columns[name]
            known = self.names[a]
            if known is not None:
                assert column.categories is not None
                told = [known.setdefault(str(c), len(known)) for c in column.categories.tolist()]
                codes = np.array([*told, -1], np.float64)
                rows[a] = codes[column.data.astype(np.intp)]
            else:
                numbers = (column.data.astype(np.float64) - self.low[a]) / self.width[a]
                rows[a] = np.where(column.missing, MISSING_NUMBER, numbers)
        return rows


def fit_gower(table: Table, columns: Sequence[str]) -> Gower:
    """Learn ranges and categories from the original table."""
    categorical, low, width, names = [], [], [], list[dict[str, int] | None]()
    for name in columns:
        column = table.columns[name]
        if column.kind == "categorical":
            assert column.categories is not None
            names.append({str(c): i for i, c in enumerate(column.categories.tolist())})
            categorical.append(True)
            low.append(0.0)
            width.append(1.0)
            continue
        _checks.exact_as_float(f"column {name!r} of {table.name}", column.data)
        present = column.data[~column.missing].astype(np.float64)
        if len(present) and not np.isfinite(present).all():
            raise InputError(f"column {name!r} of {table.name} holds infinite numbers; mend those cells")
        spread = float(np.ptp(present)) if len(present) else 0.0
        names.append(None)
        categorical.append(spread == 0.0)  # a constant is there or is not
        low.append(float(present.min()) if len(present) else 0.0)
        width.append(spread or 1.0)
    return Gower(tuple(columns), np.array(categorical), np.array(low), np.array(width), tuple(names))


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
    """Who of the original is still in the release: by id, or everyone if it is synthetic.

    ``numbered``: ids may be nothing but the numbers of rows, which say nothing of a release with other rows.
    """
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


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything an attack needs: people and release as points, neighbourhoods, weights."""

    columns: tuple[str, ...]
    people: Floats
    ids: NDArray[np.generic]
    places: NDArray[np.intp]
    present: NDArray[np.bool_]
    released: Floats
    counts: Floats
    categorical: NDArray[np.bool_]
    zeta: Floats
    mean: Floats
    deviation: Floats
    epsilon1: float
    epsilon2: float
    notes: tuple[str, ...]

    def arguments(self, rows: slice) -> tuple[Any, ...]:
        """What the kernels take, for some of the people."""
        return (
            np.ascontiguousarray(self.people[:, rows]), self.released, self.counts, self.categorical, self.zeta,
            self.mean[rows], self.deviation[rows],
        )  # fmt: skip


def lay_out(
    original: object,
    released: object,
    *,
    columns: Sequence[str] | None,
    weights: Mapping[str, float] | None,
    neighbours: int | None,
    synthetic: bool | None,
    epsilon1: float,
    epsilon2: float,
    people: object = None,
    seed: int = 0,
    run: Schedule | None = None,
) -> tuple[Table, Table, Gower, Setting]:
    """Check what was given and lay it out: the tables, the space, and what an attack needs."""
    here = as_table(original, text="categorical")
    made = getattr(released, "synthetic", None)
    given = getattr(released, "table", released)
    there = as_table(given, text="categorical", like=here)
    synthetic = made if synthetic is None else synthetic
    chosen = _attributes(here, columns)
    _same_attributes(here, there, chosen)
    if len(here) < 2:
        raise InputError(f"{here.name} has one row; a neighbourhood needs others")
    notes: list[str] = []
    present = _present(here, there, synthetic, made is None, notes)
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
    for name, weight in (weights or {}).items():
        if name not in chosen:
            raise UsageError(f"weights: {name!r} is not among the attributes {_checks.listed(chosen, 12)}")
        zeta[chosen.index(name)] = _checks.number(f"the weight of {name!r}", weight, above=0)
    epsilon1 = _checks.number("epsilon1", epsilon1, above=0)
    epsilon2 = _checks.number("epsilon2", epsilon2, at_least=0, at_most=1)
    k = _neighbours(here, neighbours)
    rows = _chosen_people(here, people, seed)
    space = fit_gower(here, chosen)
    points = space.points(here)
    mean, deviation = _nearness(points[:, rows], rows, points, space, k, run or Schedule())
    distinct, counts = np.unique(space.points(there), axis=1, return_counts=True)
    setting = Setting(
        columns=chosen,
        people=np.ascontiguousarray(points[:, rows]),
        ids=here.ids[rows],
        places=rows,
        present=present[rows],
        released=np.ascontiguousarray(distinct),
        counts=counts.astype(np.float64),
        categorical=space.categorical,
        zeta=zeta,
        mean=mean,
        deviation=deviation,
        epsilon1=epsilon1,
        epsilon2=epsilon2,
        notes=tuple(notes),
    )
    return here, there, space, setting


def _keeping(
    run: Schedule, folder: object, method: str, asked: Mapping[str, object], original: object, *others: object
) -> Schedule:
    """The same run, kept in the folder of a checkpoint of these tables."""
    here = as_table(original, text="categorical")
    there = [getattr(other, "table", other) for other in others]
    tables = [here, *(as_table(one, text="categorical", like=here) for one in there if one is not None)]
    parameters = {name: _short(given) for name, given in asked.items()}
    data = digest(*((table.columns, table.ids) for table in tables))
    return replace(run, checkpoint=Checkpoint(folder, method, parameters, data))


def _short(given: object) -> str | int | float | None:
    """A parameter as the checkpoint tells it: itself, or its digest; a set has no order."""
    if given is None or isinstance(given, str | int | float):
        return given
    return f"#{digest(sorted(map(repr, given)) if isinstance(given, set | frozenset) else given)[:12]}"


def _neighbours(table: Table, neighbours: int | None) -> int:
    """How many neighbours say what is near: 2% of the people, at least 5."""
    if neighbours is None:
        return min(len(table) - 1, max(5, round(0.02 * len(table))))
    return _checks.integer("neighbours", neighbours, at_least=1, at_most=len(table) - 1)


def _nearness(
    people: Floats, own: NDArray[np.intp], points: Floats, space: Gower, k: int, run: Schedule
) -> tuple[Floats, Floats]:
    """Mean and deviation of each person's distances to the k nearest points but ``own`` (−1: none of them)."""
    if not len(own):
        return np.empty(0), np.empty(0)
    categorical = space.categorical

    def task(part: range) -> tuple[Floats, Floats]:
        from datassay.identity import risk_kernels

        at = slice(part.start, part.stop)
        mean, deviation = np.empty(len(part)), np.empty(len(part))
        risk_kernels.neighbourhoods(people[:, at], own[at], points, categorical, k, mean, deviation)
        return mean, deviation

    mean, deviation = gather(task, chunks(len(own), CHUNK), run.workers(), lambda _: None, run.checkpoint)
    return mean, deviation


def _control(
    setting: Setting, here: Table, space: Gower, control: object, neighbours: int | None, run: Schedule
) -> Setting:
    """The same attack on people who are in neither table."""
    others = as_table(control, text="categorical", like=here)
    _same_attributes(here, others, setting.columns)
    named = here.id is not None and others.id is not None
    if others is here or (named and bool(np.isin(others.ids, here.ids).any())):
        raise InputError("control must be people who are in neither table, and some of them are in the original")
    people = space.points(others)
    k, nobody = _neighbours(here, neighbours), np.full(len(others), -1)
    mean, deviation = _nearness(people, nobody, space.points(here), space, k, run)
    absent = np.zeros(len(others), bool)
    return replace(
        setting,
        people=people,
        ids=others.ids,
        places=np.arange(len(others)),
        present=absent,
        mean=mean,
        deviation=deviation,
        notes=(),
    )


def _chosen_people(table: Table, people: object, seed: int) -> NDArray[np.intp]:
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
        raise InputError(
            f"people: there is no record with id {_checks.listed(sorted(lacking, key=str))} in {table.name}"
        )
    return rows


@dataclass(frozen=True, eq=False)
class Played:
    """What was played against some of the people.

    ``scores``: people × draws × scenarios × (linkability, gain, score, score of picking a record at random), one draw
    if they are exact; scenarios are the ``masks``, or the beginnings of ``orders``.
    """

    scores: Floats
    orders: NDArray[np.int64] | None
    masks: NDArray[np.int64] | None


def _attack(
    setting: Setting,
    masks: NDArray[np.int64] | None,
    permutations: int,
    seed: int,
    run: Schedule,
    reduce: Callable[[Played], tuple[Floats, ...]],
) -> tuple[Floats, ...]:
    """Play all scenarios (sets of attributes, or the beginnings of random orders) against everyone, a few at a time.

    ``reduce`` makes of what was played against some people what is kept of it; their rows are put together again.
    """
    d, n = setting.people.shape
    epsilons = (setting.epsilon1, setting.epsilon2)
    everything = np.add.accumulate(setting.zeta)[-1]  # sums as the kernels make them: one after another

    def task(part: range) -> tuple[Floats, ...]:
        from datassay.identity import risk_kernels

        given = setting.arguments(slice(part.start, part.stop))
        if masks is None:
            one = np.tile(np.arange(d), (permutations, 1))
            orders = np.array(
                [np.random.default_rng([seed, 2, place]).permuted(one, axis=1) for place in setting.places[part]]
            )
            known = np.bitwise_or.accumulate(1 << orders, axis=2)
            unknown = np.subtract.accumulate(np.insert(setting.zeta[orders], 0, everything, axis=2), axis=2)[..., 1:]
            unknown[..., -1] = 0.0
            length = d
        else:
            orders, known, length = None, masks[None, None], FRESH
            outside = (masks[:, None] >> np.arange(d)) & 1 == 0
            unknown = np.add.accumulate(np.where(outside, setting.zeta, 0.0), axis=1)[None, None, :, -1]
        scores = np.empty((len(part), *known.shape[1:], 4))
        risk_kernels.attack(
            *given, known.reshape(len(known), -1), unknown.reshape(len(known), -1), length, *epsilons,
            scores.reshape(len(part), -1, 4),
        )  # fmt: skip
        return reduce(Played(scores, orders, masks))

    with Bar(run.progress, n, "people") as report:
        return gather(task, chunks(n, CHUNK), run.workers(), report, run.checkpoint)


def _gray(d: int) -> NDArray[np.int64]:
    """All sets of d attributes but the empty one, each differing from the one before in one attribute."""
    numbers = np.arange(1, 2**d)
    return np.asarray(numbers ^ (numbers >> 1))


def _is_exact(method: str | None, d: int, permutations: int) -> bool:
    if method is not None:
        _checks.choice("method", method, ("exact", "sampled"))
    if method == "exact" and 2**d > MOST_EXACT_SETS:
        raise UsageError(f"{d} attributes have 2^{d} scenarios; at most 2^16 are played: sample, or name fewer columns")
    return method == "exact" or (method is None and 2**d - 1 <= min(permutations * d, MOST_EXACT_SETS))


def _size_weights(scenarios: str, d: int) -> Floats:
    """The weight of scenarios with 1 … d attributes known: the same for each size, or as there are sets of it."""
    sizes = np.ones(d) if scenarios == "uniform" else np.array([float(math.comb(d, r)) for r in range(1, d + 1)])
    return np.asarray(sizes / sizes.sum())


Scenarios = Weighing | Mapping[str, Sequence[str]]


def reidentification_risk(
    original: object,
    released: object,
    *,
    columns: Sequence[str] | None = None,
    scenarios: Scenarios = "uniform",
    scenario_weights: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    neighbours: int | None = None,
    epsilon1: float = 100.0,
    epsilon2: float = 0.5,
    people: object = None,
    synthetic: bool | None = None,
    control: object = None,
    method: str | None = None,
    permutations: int = 50,
    confidence: float = 0.95,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress = None,
    client: object | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Risk:
    """The risk that each person of the original data is found in what was released (RRS).

    An attacker who knows the attributes R of a person singles out the released records nearest on R, all ties. With μ
    and s the mean and deviation of the person's distances to their neighbours in the original, a record at distance
    d ≤ μ is linkable to the degree L = 1 − 2Φ((d − μ)/s); it tells the rest to the degree I = γ · (1 − error). The
    score of a scenario is L · max(I, ε₂), and the risk its mean over scenarios (the thesis, chapter 1, corrected).

    Parameters
    ----------
    original, released
        Tables, data frames or files with the same columns. A release of :mod:`datassay.release` knows whether it is
        synthetic.
    columns
        The attributes; all columns of the original that are not carried along, the label among them, if left out.
    scenarios
        What attackers know: ``"uniform"`` (1, 2, … attributes, each number as likely), ``"binomial"`` (each set of
        attributes as likely), or named sets such as ``{"neighbour": ["age", "sex"], "marketer": ["zip", "income"]}``.
    scenario_weights
        How much each named set counts; alike if left out.
    weights
        ζ: what knowing an attribute is worth, by name; 1 if not named.
    neighbours
        How many neighbours say what is near; 2% of the people, at least 5, if left out.
    epsilon1, epsilon2
        How fast the gain falls with fewer attributes to learn, and the least weight of a link.
    people
        Whose risk: ids, or how many drawn at random; everyone if left out.
    synthetic
        True if no released record is anybody's own, so that everyone is at risk. Otherwise who is not in the release,
        by id, has risk 0.
    control
        People who are in neither table: what the attack scores on them is what it scores by chance. People removed
        from the release are a control as well.
    method, permutations
        ``"exact"``: all sets of attributes; ``"sampled"``: the beginnings of so many random orders for each person,
        with intervals. Left out: whichever is less work.
    confidence, seed
        Of the intervals; of the orders, and of the people drawn.
    n_jobs, progress
        Threads (all cores if left out), which do not change the numbers; True for a bar on standard error.
    client, checkpoint
        A Dask client whose cluster does the work, and a folder in which what is done is kept, so that a run that was
        stopped goes on from there: see :func:`datassay.knn_shapley`.

    Examples
    --------
    >>> import datassay as da
    >>> people = da.census(300)
    >>> risk = da.reidentification_risk(people, people, people=50)
    >>> bool(0 < risk.mean() < 1)
    True
    """
    permutations = _checks.integer("permutations", permutations, at_least=2)
    confidence = _checks.number("confidence", confidence, above=0, below=1)
    seed = _checks.integer("seed", seed, at_least=0)
    run = Schedule(n_jobs, progress=progress, client=client)
    if checkpoint is not None:
        asked: dict[str, object] = {
            "columns": columns, "weights": weights, "neighbours": neighbours, "epsilon1": epsilon1,
            "epsilon2": epsilon2, "people": people, "synthetic": synthetic, "method": method,
            "permutations": permutations, "confidence": confidence, "seed": seed,
            "scenarios": scenarios, "scenario_weights": scenario_weights,
        }  # fmt: skip
        run = _keeping(run, checkpoint, "reidentification_risk", asked, original, released, control)
    here, _, space, setting = lay_out(
        original, released, columns=columns, weights=weights, neighbours=neighbours, people=people,
        synthetic=synthetic, epsilon1=epsilon1, epsilon2=epsilon2, seed=seed, run=run,
    )  # fmt: skip
    outside = None if control is None else _control(setting, here, space, control, neighbours, run)
    d = len(setting.columns)
    if isinstance(scenarios, str):
        _checks.choice("scenarios", scenarios, get_args(Weighing))
        if scenario_weights is not None:
            raise UsageError("scenario_weights is for named scenarios")
        names = tuple(f"{r} attribute{'s' if r > 1 else ''} known" for r in range(1, d + 1))
        share = _size_weights(scenarios, d)
        exact = _is_exact(method, d, permutations)
        masks = _gray(d) if exact else None
    elif not isinstance(scenarios, Mapping):
        raise UsageError("scenarios must be 'uniform', 'binomial', or map names to lists of attributes")
    else:
        names, masks, share = _named_sets(scenarios, scenario_weights, setting.columns)
        exact = True
    by_size = isinstance(scenarios, str)

    def reduce(played: Played) -> tuple[Floats, ...]:
        scores = _by_scenario(played, len(names), by_size)
        draws = np.einsum("ndsx,s->ndx", scores, share)
        half = np.zeros(len(draws)) if exact else _half(draws[..., 2], confidence)
        return draws.mean(axis=1), half, scores.mean(axis=1)

    means, half, each = _attack(setting, masks, permutations, seed, run, reduce)
    by_chance = np.empty(0)
    if outside is not None:
        by_chance = _attack(outside, masks, permutations, seed, run, reduce)[0][:, 2]
    there = setting.present
    raw = means[:, 2]
    return Risk(
        values=np.where(there, raw, 0.0),
        ids=setting.ids,
        present=there,
        linkability=np.where(there, means[:, 0], 0.0),
        gain=np.where(there, means[:, 1], 0.0),
        guesses=np.where(there, means[:, 3], 0.0),
        control=np.concatenate([raw[~there], by_chance]),
        attacked=means[:, :3],
        scenarios=names,
        scenario_weights=share,
        scenario_means=each[there].mean(axis=0)[:, :3] if there.any() else np.zeros((len(names), 3)),
        lower=None if exact else np.where(there, np.maximum(raw - half, 0.0), 0.0),
        upper=None if exact else np.where(there, np.minimum(raw + half, 1.0), 0.0),
        parameters={
            "scenarios": scenarios if isinstance(scenarios, str) else "named",
            **_recorded(setting, here, neighbours, weights, synthetic, None if exact else (permutations, confidence)),
        },
        seed=None if exact and not isinstance(people, int | np.integer) else seed,
        notes=setting.notes,
    )


def _recorded(
    setting: Setting,
    here: Table,
    neighbours: int | None,
    weights: Mapping[str, float] | None,
    synthetic: bool | None,
    orders: tuple[int, float] | None,
) -> dict[str, Parameter]:
    """What a result says of how it came about; ``orders`` are how many were drawn, and the confidence."""
    return {
        "permutations": None if orders is None else orders[0],
        "neighbours": _neighbours(here, neighbours),
        "attributes": ", ".join(setting.columns),
        "weights": None if not weights else ", ".join(f"{name}: {weight:g}" for name, weight in weights.items()),
        "synthetic": synthetic,
        "epsilon1": setting.epsilon1,
        "epsilon2": setting.epsilon2,
        "confidence": None if orders is None else orders[1],
    }


def _named_sets(
    scenarios: Mapping[str, Sequence[str]], weights: Mapping[str, float] | None, columns: Sequence[str]
) -> tuple[tuple[str, ...], NDArray[np.int64], Floats]:
    if not scenarios:
        raise UsageError("scenarios must be 'uniform', 'binomial', or map names to lists of attributes")
    masks = []
    for name, known in scenarios.items():
        if isinstance(known, str) or not known:
            raise UsageError(f"scenarios: {name!r} must be a list of at least one attribute, got {known!r}")
        for attribute in known:
            if attribute not in columns:
                raise UsageError(f"scenarios: {name!r} knows {attribute!r}, which is no attribute")
        masks.append(sum(1 << columns.index(attribute) for attribute in set(known)))
    share = np.ones(len(masks))
    names = tuple(map(str, scenarios))
    for name, weight in (weights or {}).items():
        if name not in names:
            raise UsageError(f"scenario_weights: there is no scenario {name!r}")
        share[names.index(name)] = _checks.number(f"the weight of scenario {name!r}", weight, at_least=0)
    if share.sum() == 0:
        raise UsageError("scenario_weights: all are 0")
    return names, np.array(masks, np.int64), share / share.sum()


def _by_scenario(played: Played, n_scenarios: int, by_size: bool) -> Floats:
    """Scores: people × draws × (sizes or names) × 4; sets of one size are averaged."""
    if played.masks is None or not by_size:
        return played.scores
    sizes = np.bitwise_count(played.masks) - 1
    average = (np.arange(n_scenarios)[:, None] == sizes) / np.bincount(sizes)[:, None]
    return np.asarray(np.einsum("rs,ndsx->ndrx", average, played.scores))


def _half(draws: Floats, confidence: float) -> Floats:
    """Half-widths of Student's intervals of the means over draws (the second axis)."""
    return half_width(draws.var(axis=1, ddof=1), draws.shape[1], confidence)


def reidentification_shapley(
    original: object,
    released: object,
    *,
    columns: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    neighbours: int | None = None,
    epsilon1: float = 100.0,
    epsilon2: float = 0.5,
    people: object = None,
    synthetic: bool | None = None,
    method: str | None = None,
    permutations: int = 50,
    confidence: float = 0.95,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress = None,
    client: object | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> RiskShapley:
    """Which attributes give each person away in what was released: re-identification Shapley values (RSV).

    The score of :func:`reidentification_risk` for what an attacker knows is a game among the attributes; an
    attribute's value is what it adds, averaged over all orders of learning them. Values of a person add up to the
    score of an attacker who knows everything; who is not in the release has none. Knowing nothing scores 0.

    Parameters are those of :func:`reidentification_risk`; sampled values use ``permutations`` orders for each person.

    Examples
    --------
    >>> import datassay as da
    >>> people = da.census(300)
    >>> found = da.reidentification_shapley(people, people, people=50)
    >>> found.values.shape
    (50, 9)
    """
    permutations = _checks.integer("permutations", permutations, at_least=2)
    confidence = _checks.number("confidence", confidence, above=0, below=1)
    seed = _checks.integer("seed", seed, at_least=0)
    run = Schedule(n_jobs, progress=progress, client=client)
    if checkpoint is not None:
        asked: dict[str, object] = {
            "columns": columns, "weights": weights, "neighbours": neighbours, "epsilon1": epsilon1,
            "epsilon2": epsilon2, "people": people, "synthetic": synthetic, "method": method,
            "permutations": permutations, "confidence": confidence, "seed": seed,
        }  # fmt: skip
        run = _keeping(run, checkpoint, "reidentification_shapley", asked, original, released)
    here, _, _, setting = lay_out(
        original, released, columns=columns, weights=weights, neighbours=neighbours, people=people,
        synthetic=synthetic, epsilon1=epsilon1, epsilon2=epsilon2, seed=seed, run=run,
    )  # fmt: skip
    d = len(setting.columns)
    exact = _is_exact(method, d, permutations)

    def reduce(played: Played) -> tuple[Floats, ...]:
        if played.orders is None:
            assert played.masks is not None
            worth = np.zeros((len(played.scores), 2**d))
            worth[:, played.masks] = played.scores[:, 0, :, 2]
            values = semivalues(worth, set_weights(d))
            return values, np.zeros_like(values)
        steps = np.diff(played.scores[..., 2], axis=2, prepend=0.0)
        each = np.empty_like(steps)
        np.put_along_axis(each, played.orders, steps, axis=2)
        return each.mean(axis=1), _half(each, confidence)

    masks = _gray(d) if exact else None
    values, half = _attack(setting, masks, permutations, seed, run, reduce)
    half[~setting.present] = 0.0
    values[~setting.present] = 0.0
    return RiskShapley(
        values=values,
        ids=setting.ids,
        columns=setting.columns,
        present=setting.present,
        lower=None if exact else values - half,
        upper=None if exact else values + half,
        parameters=_recorded(
            setting, here, neighbours, weights, synthetic, None if exact else (permutations, confidence)
        ),
        seed=None if exact and not isinstance(people, int | np.integer) else seed,
        notes=setting.notes,
    )
