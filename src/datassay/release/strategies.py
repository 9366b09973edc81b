"""Ways to release a table with the columns it has: as it is, fewer people, k-anonymous, synthetic (Mathematics §9)."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, MissingDependencyError, UsageError
from datassay._frozen import FrozenMapping
from datassay._version import __version__
from datassay.data import Column, Table, TableLike, as_table, missing_column, read_table
from datassay.results import Columns, Fact, Floats, Framed, Parameter, Values, as_facts, save_columns


@dataclass(frozen=True, eq=False)
class Release(Framed):
    """A table to be released, and how it was made.

    It is data rather than a result: what :meth:`save` writes is to be handed out, without whose record is whose, and
    is read as any other table.

    Attributes
    ----------
    table
        What is released, in the format of the original.
    strategy
        keep, remove, mondrian or synthesize.
    synthetic
        Whether no record is anybody's own; otherwise ids say whose it is.
    parameters, seed, notes, version
        How it was made.
    """

    table: Table
    strategy: str
    synthetic: bool = False
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    seed: int | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", FrozenMapping(self.parameters))

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.parameters.items() if value is not None)
        return f"Release({len(self):,} records, {self.strategy}({settings}))"

    def facts(self) -> dict[str, Fact]:
        """The headline numbers: ``records`` released, the ``strategy``, and whether they are ``synthetic``."""
        return as_facts({"records": len(self), "strategy": self.strategy, "synthetic": self.synthetic})

    def _columns(self) -> Columns:
        return self.table._columns()

    def _top(self, most: int) -> tuple[Columns, int]:
        return self.table._top(most)

    def save(self, path: str | os.PathLike[str], *, ids: bool = False) -> Path:
        """Write what may leave to .parquet, .csv or .json: without ids and columns that are only carried along.

        Rows are sorted by what is in them: in the order of the original, each would still be its person's.
        ``ids=True`` writes all of it in that order: a copy to keep, by which :func:`datassay.reidentification_risk`
        knows whose record is whose. Do not hand it out.
        """
        if ids:
            return self.table.save(path)
        shown = {name: c for name, c in self.table.columns.items() if name not in self.table.carried}
        order = np.lexsort([c.data for c in reversed(shown.values())])
        columns = {name: c.take(order).written() for name, c in shown.items()}
        return save_columns(path, {"kind": "table", "name": self.table.name}, columns)


def keep(table: TableLike) -> Release:
    """The table as it is: what every other strategy is to be compared with.

    Parameters
    ----------
    table
        What is released.

    Examples
    --------
    >>> import datassay as da
    >>> len(da.release.keep(da.census(100)))
    100
    """
    return Release(as_table(table, text="categorical"), "keep")


def remove(table: TableLike, share: float, *, values: Values | None = None, seed: int = 0) -> Release:
    """The table without a share of the people: drawn at random, or those of least value.

    Parameters
    ----------
    table, share
        The table, and the share of people to remove (0 … 1).
    values
        What each person is worth, by id: those worth least go first. Any values will do: :func:`datassay.knn_shapley`
        (with ``weights`` that balance the classes), :func:`datassay.waka`, … Left out, people are drawn at random.
    seed
        Seed of the draw.

    Examples
    --------
    >>> import datassay as da
    >>> people = da.census(100)
    >>> len(da.release.remove(people, 0.25)), len(da.release.remove(people, 0.25, values=da.knn_shapley(people)))
    (75, 75)
    """
    given = as_table(table, text="categorical")
    share = _checks.number("share", share, at_least=0, below=1)
    count = round(share * len(given))
    if count >= len(given):
        raise UsageError(f"removing {share:g} of {len(given)} people leaves nobody")
    if values is None:
        seed = _checks.integer("seed", seed, at_least=0)
        gone = np.random.default_rng(seed).permutation(len(given))[:count]
        how: dict[str, Parameter] = {"share": share, "by": "random"}
    else:
        if not isinstance(values, Values):
            raise UsageError(f"values must be Values, got {type(values).__name__}")
        places = {id: i for i, id in enumerate(values.ids.tolist())}
        lacking = [id for id in given.ids.tolist() if id not in places]
        if lacking:
            raise InputError(f"values has no value for the records {_checks.listed(lacking)}")
        worth = values.values[[places[id] for id in given.ids.tolist()]]
        gone = np.argsort(worth, kind="stable")[:count]
        how = {"share": share, "by": values.method}
    stays = np.ones(len(given), bool)
    stays[gone] = False
    return Release(given.select(stays), "remove", parameters=how, seed=seed if values is None else None)


def _ranks(column: Column) -> tuple[NDArray[np.int64], int, Floats, bool]:
    """Codes by rank (missing last), how many, where each number lies in 0 … 1, and whether they are numbers."""
    absent = column.missing
    if column.kind == "categorical":
        assert column.categories is not None
        codes = column.data.astype(np.int64)
        levels = len(column.categories)
        codes = np.where(absent, levels, codes)
        return codes, levels + int(absent.any()), np.zeros(levels + 1), False
    values, codes = np.unique(column.data[~absent].astype(np.float64), return_inverse=True)
    found = np.full(len(absent), len(values), np.int64)
    found[~absent] = codes
    spread = float(np.ptp(values)) if len(values) else 0.0
    places = (values - values[0]) / spread if spread > 0 else np.zeros(len(values))
    return found, len(values) + int(absent.any()), np.append(places, 2.0), True


def mondrian(
    table: TableLike,
    k: int,
    *,
    columns: Sequence[str] | None = None,
    strict: bool = True,
    sensitive: str | None = None,
    l: int | None = None,  # noqa: E741
    t: float | None = None,
) -> Release:
    """The table made k-anonymous: people in groups of at least k that are alike, the format preserved.

    Groups are cut in two along the attribute in which they differ most, as nearly in half as can be, as long as both
    halves have k people (Mondrian; LeFevre, DeWitt & Ramakrishnan 2006). Each attribute of a group then becomes a
    value of the group: the (lower) median number, the most frequent category.

    Parameters
    ----------
    table, k
        The table, and the size of the smallest group.
    columns
        The attributes to make alike (quasi-identifiers); all columns that are not carried along, the label among them,
        if left out.
    strict
        Cut between two values only. False: people with the same value may end up in different groups, which are then
        smaller.
    sensitive, l, t
        Stop cutting, too, where a group would have fewer than ``l`` different values of the column ``sensitive``
        (l-diversity), or a distribution of them farther than ``t`` from that of all (t-closeness, by the earth mover's
        distance: ordered for numbers, 0/1 for categories). That column is left as it is; a missing value of it does not
        count for l, and for t is one more value, above all numbers.

    Examples
    --------
    >>> import datassay as da
    >>> released = da.release.mondrian(da.census(200), k=5)
    >>> da.group_sizes(released.table, released.table.features).smallest >= 5
    True
    """
    from datassay.release import kernels

    given = as_table(table, text="categorical")
    k = _checks.integer("k", k, at_least=1)
    if k > len(given):
        raise UsageError(f"k is {k}, and {given.name} has {len(given)} people: no group can be that large")
    _checks.not_one_string("columns", columns)
    for name in (*(columns or ()), *([] if sensitive is None else [sensitive])):
        if name not in given.columns:
            raise InputError(f"{given.name}: {missing_column(name, given.columns)}")
    if sensitive is None and (l is not None or t is not None):
        raise UsageError("l and t are about the column named sensitive; name it")
    if sensitive is not None and l is None and t is None:
        raise UsageError(f"sensitive={sensitive!r} needs l, t or both")
    if columns is not None and sensitive in columns:
        raise UsageError(f"{sensitive!r} is sensitive and cannot be one of the columns to make alike")
    chosen = [name for name in given.columns if name not in given.carried] if columns is None else list(columns)
    chosen = [name for name in dict.fromkeys(chosen) if name != sensitive]
    if not chosen:
        raise UsageError("columns names no attribute to make alike")
    least = 1 if l is None else _checks.integer("l", l, at_least=1)
    farthest = 1.0 if t is None else _checks.number("t", t, at_least=0, at_most=1)
    ranked = [_ranks(given.columns[name]) for name in chosen]
    most = max(levels for _, levels, _, _ in ranked)
    places = np.zeros((len(ranked), most + 1))
    for a, (_, _, where, _) in enumerate(ranked):
        places[a, : len(where)] = where
    secret, n_secret, ordered, absent = np.zeros(len(given), np.int64), 1, False, -1
    if sensitive is not None:
        secret, n_secret, _, ordered = _ranks(given.columns[sensitive])
        absent = n_secret - 1 if given.columns[sensitive].missing.any() else -1
    share = np.bincount(secret, minlength=n_secret) / len(given)
    different = int((share > 0).sum()) - (absent >= 0)
    if least > different:
        raise UsageError(f"l is {least}, and {sensitive!r} has {different} different values")
    group = np.empty(len(given), np.int64)
    count = kernels.mondrian(
        np.array([codes for codes, _, _, _ in ranked]), np.array([levels for _, levels, _, _ in ranked]), places,
        np.array([numbers for _, _, _, numbers in ranked]), k, bool(strict), secret, share, ordered, least, farthest,
        absent, group,
    )  # fmt: skip
    made = dict(given.columns)
    for name, (codes, levels, _, numbers) in zip(chosen, ranked, strict=True):
        made[name] = _represented(given.columns[name], codes, levels, numbers, group, int(count))
    parameters: dict[str, Parameter] = {"k": k, "strict": bool(strict), "sensitive": sensitive, "l": l, "t": t}
    if columns is not None:
        parameters["columns"] = ", ".join(chosen)
    return Release(replace(given, columns=made), "mondrian", parameters=parameters)


def _represented(
    column: Column, codes: NDArray[np.int64], levels: int, numbers: bool, group: NDArray[np.int64], count: int
) -> Column:
    """The column with every value replaced by its group's: the lower median, or the most frequent (ties: the first)."""
    order = np.lexsort((codes, group))
    sizes = np.bincount(group, minlength=count)
    starts = np.cumsum(sizes) - sizes
    if numbers:
        absent = column.missing
        present = sizes - np.bincount(group[absent], minlength=count)
        # Missing values come last in a group; they represent it if they are more than half of it.
        at = np.where(2 * present >= sizes, starts + np.maximum(present - 1, 0) // 2, starts + sizes - 1)
        chosen = order[at]
    else:
        pairs = group * levels + codes
        kinds, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        best = np.lexsort((kinds, -counts, kinds // levels))
        chosen = first[best[np.unique(kinds[best] // levels, return_index=True)[1]]]
    return replace(column, data=column.data[chosen[group]])


class Synthesizer(Protocol):
    """Anything that learns from a data frame and makes another like it."""

    def fit(self, frame: object) -> object:
        """Learn."""

    def sample(self, n: int) -> object:
        """Make n rows."""


def synthesize(
    table: TableLike, method: str | Synthesizer = "copula", *, n: int | None = None, epochs: int = 300, seed: int = 0
) -> Release:
    """Synthetic people who are like the real ones: no record is anybody's own.

    Parameters
    ----------
    table
        What to imitate.
    method
        ``"copula"``: a Gaussian copula over the empirical distribution of each attribute, built in. ``"ctgan"`` and
        ``"tvae"``: the deep models of the package ``ctgan`` (``pip install datassay[synthesis]``; its licence is the
        Business Source License). Or any object with ``fit(frame)`` and ``sample(n)``.
    n
        How many people to make; as many as there are if left out.
    epochs
        Of training, for the deep models.
    seed
        Seed of the copula, and of the deep models as far as they use it.

    Notes
    -----
    Synthetic is not anonymous: measure it with :func:`datassay.reidentification_risk`.

    Examples
    --------
    >>> import datassay as da
    >>> made = da.release.synthesize(da.census(200), n=50)
    >>> len(made), made.synthetic
    (50, True)
    """
    given = as_table(table, text="categorical")
    count = len(given) if n is None else _checks.integer("n", n, at_least=1)
    seed = _checks.integer("seed", seed, at_least=0)
    names = [name for name in given.columns if name not in given.carried]
    if not names:
        raise InputError(f"{given.name} has no columns to imitate")
    if isinstance(method, str):
        _checks.choice("method", method, ("copula", "ctgan", "tvae"))
    if method == "copula":
        columns, label = _copula(given, names, count, np.random.default_rng(seed)), "copula"
    else:
        columns, label = _by_model(given, names, method, count, _checks.integer("epochs", epochs, at_least=1), seed)
    made = Table(columns, np.arange(count), given.label, (), f"synthetic {given.name}", (), given.scale, given.missing)
    parameters: dict[str, Parameter] = {"method": label, "n": count}
    if label in ("ctgan", "tvae"):
        parameters["epochs"] = epochs
    return Release(made, "synthesize", True, parameters, seed)


Backwards = Callable[[Floats], NDArray[np.generic]]


def _copula(table: Table, names: Sequence[str], n: int, rng: np.random.Generator) -> dict[str, Column]:
    """Normal scores of every attribute, their correlations, new normal scores, and back again.

    Whether a number is missing is an attribute of its own; correlations of the number are over people who have it.
    """
    from scipy.special import ndtr, ndtri

    spread: list[tuple[Floats, Backwards]] = []
    for name in names:
        column = table.columns[name]
        absent = column.missing
        if column.kind == "categorical":
            assert column.categories is not None
            codes = np.where(absent, len(column.categories), column.data.astype(np.int64))
            spread.append(_spread_codes(codes, len(column.categories) + 1, rng))
            continue
        spread.append(_spread_numbers(column.data, absent, rng))
        if absent.any():
            spread.append(_spread_codes(absent.astype(np.int64), 2, rng))
    scores = [ndtri(np.clip(uniform, 1e-9, 1 - 1e-9)) for uniform, _ in spread]
    size = len(scores)
    correlation = np.eye(size)
    if len(table) > 2 and size > 1:
        masked: Any = np.ma  # typed by some versions of NumPy and not by others
        correlation = masked.corrcoef(masked.masked_invalid(np.array(scores))).filled(0.0)
        correlation = np.where(np.isfinite(correlation), correlation, 0.0)
        np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    length = np.sqrt((root**2).sum(axis=1, keepdims=True))
    root /= np.where(length > 0, length, 1.0)
    drawn = ndtr(root @ rng.standard_normal((size, n)))
    fresh = (back(uniform) for uniform, (_, back) in zip(drawn, spread, strict=True))
    made: dict[str, Column] = {}
    for name in names:
        column = table.columns[name]
        data = next(fresh)
        if column.kind == "categorical":
            assert column.categories is not None
            data = np.where(data == len(column.categories), -1, data).astype(column.data.dtype)
        elif column.missing.any():
            gone = next(fresh).astype(bool)
            data = np.where(gone, np.nan, data.astype(np.float64))
        made[name] = replace(column, data=data)
    return made


def _spread_codes(codes: NDArray[np.int64], levels: int, rng: np.random.Generator) -> tuple[Floats, Backwards]:
    """Codes spread over 0 … 1, each over as much as its share, and the way back."""
    sizes = np.bincount(codes, minlength=levels)
    order = np.argsort(-sizes, kind="stable")
    ends = np.cumsum(sizes[order]) / len(codes)
    rank = np.empty(levels, np.int64)
    rank[order] = np.arange(levels)
    uniform = ends[rank[codes]] - sizes[codes] / len(codes) * rng.random(len(codes))
    last = int((sizes > 0).sum()) - 1
    return uniform, lambda u: order[np.minimum(np.searchsorted(ends, u, side="right"), last)]


def _spread_numbers(
    numbers: NDArray[np.generic], absent: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Floats, Backwards]:
    """Numbers by rank over 0 … 1, equal ones in any order (NaN where missing), and the way back."""
    present = numbers[~absent]
    if len(present) == 0:
        return np.full(len(absent), np.nan), lambda u: np.full(len(u), np.nan)
    place = np.empty(len(present))
    place[np.lexsort((rng.random(len(present)), present))] = np.arange(len(present))
    uniform = np.full(len(absent), np.nan)
    uniform[~absent] = (place + rng.random(len(place))) / len(place)
    known = np.sort(present)
    return uniform, lambda u: known[np.minimum((u * len(known)).astype(np.int64), len(known) - 1)]


def _by_model(
    table: Table, names: Sequence[str], method: str | Synthesizer, n: int, epochs: int, seed: int
) -> tuple[dict[str, Column], str]:
    """Let a model imitate the table as a pandas frame, and read what it makes like the table."""
    chosen = replace(table, columns={name: table.columns[name] for name in names}, carried=(), id=None)
    frame = chosen.to_frame("pandas").drop(columns=[chosen.id_column])
    if isinstance(method, str):
        try:
            import ctgan
            import torch
        except ImportError:
            raise MissingDependencyError(
                f"{method} needs the package ctgan; install it with: pip install datassay[synthesis] (its licence is "
                "the Business Source License)"
            ) from None
        torch.manual_seed(seed)
        before = np.random.get_state()  # noqa: NPY002  ctgan draws from NumPy's global generator
        np.random.seed(seed)  # noqa: NPY002
        discrete = [name for name in names if table.columns[name].kind == "categorical"]
        model = (ctgan.CTGAN if method == "ctgan" else ctgan.TVAE)(epochs=epochs)
        model.fit(frame, discrete)
        made, label = model.sample(n), method
        np.random.set_state(before)  # noqa: NPY002
    else:
        if not (hasattr(method, "fit") and hasattr(method, "sample")):
            raise UsageError(f"method must be 'copula', 'ctgan', 'tvae' or have fit and sample, got {method!r}")
        method.fit(frame)
        made, label = method.sample(n), type(method).__name__
    import narwhals as nw

    rows = nw.maybe_reset_index(nw.from_native(made, eager_only=True)).to_native()  # its index says nothing
    read = read_table(rows, table.label, like=chosen, text="categorical", name=f"what {label} made")
    lacking = [name for name in names if name not in read.columns]
    if lacking:
        raise InputError(f"{label} made no column {_checks.listed(lacking)}")
    if len(read) != n:
        raise InputError(f"{label} made {len(read)} rows where {n} were asked for")
    return {name: read.columns[name] for name in names}, label
