"""Full disclosure: records for sale at p = φ + γ φ^θ, the cheapest cover of a target, the owner's choice of θ and γ.

Only records of positive value are for sale. What a consumer pays for a unit of value is p/φ = 1 + γ φ^(θ−1): for θ < 1
the dear records are the best bargain and the relaxation buys in the order of value, for θ > 1 it buys in the reverse
order, and at θ = 1 (or γ = 0) every record costs the same for what it gives, so that every cover without surplus costs
the same (Mathematics §9, erratum 11).
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._version import __version__
from datassay._work import Bar, Progress
from datassay.data import as_ids
from datassay.market.cover import cheapest_cover
from datassay.privacy import PrivateValues
from datassay.results import (
    Fact,
    FrameKind,
    Parameter,
    Values,
    as_facts,
    check_axes,
    freeze,
    frozen,
    make_frame,
    new_axes,
    save_columns,
    value_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


def gini(amounts: ArrayLike) -> float:
    """Gini coefficient: 0 where all get the same, towards 1 where one gets everything; 0 where nobody gets anything.

    G = ``Σ_i Σ_j |x_i − x_j| / (2 n Σ x)``, from the sorted amounts.

    >>> gini([1, 1, 1, 1]), gini([0, 0, 0, 8])
    (0.0, 0.75)
    """
    given = _checks.real_numbers(amounts)
    given = None if given is None else np.sort(given.ravel())
    if given is None or len(given) == 0 or not np.isfinite(given).all() or given[0] < 0:
        raise InputError("amounts must be one or more finite numbers, none of them negative")
    if given[-1] == 0:
        return 0.0
    given = np.ldexp(given, -np.frexp(given[-1])[1])  # exact, and sums of the largest numbers can be written down
    n, total = len(given), given.sum()
    return float(((2 * np.arange(1, n + 1) - n - 1) * given).sum() / (n * total))


@dataclass(frozen=True, eq=False)
class Prices:
    """What every record costs, and what the consumer would do.

    Attributes
    ----------
    values, ids
        The price of each record, not a number where it is not for sale.
    worth
        The value φ that the price is made of.
    theta, gamma
        Of p = φ + γ φ^θ.
    method, parameters, notes
        How φ was obtained.
    """

    values: Floats
    ids: NDArray[np.generic]
    worth: Floats
    theta: float
    gamma: float
    method: str
    parameters: Mapping[str, Parameter]
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __post_init__(self) -> None:
        freeze(self, "values", "ids", "worth")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Prices({self.for_sale.sum():,} of {len(self):,} records for sale, θ={self.theta:g}, γ={self.gamma:g})"

    @property
    def for_sale(self) -> NDArray[np.bool_]:
        """Records of positive value."""
        return self.worth > 0

    @property
    def order(self) -> NDArray[np.intp]:
        """Positions of the records for sale, the best bargain first: the order in which the relaxation buys.

        What the privacy cost adds to a unit of value is γ φ^(θ−1). Among equal bargains the more valuable goes first.
        """
        rows = np.flatnonzero(self.for_sale)
        return rows[np.lexsort((rows, -self.worth[rows], self._dearness(rows)))]

    def _dearness(self, rows: NDArray[np.intp]) -> Floats:
        """What grows with the price of a unit of value, exactly: log of γ φ^(θ−1), less what all have in common."""
        if self.gamma == 0 or self.theta == 1:
            return np.zeros(len(rows))
        return math.copysign(1.0, self.theta - 1) * self.worth[rows]

    def of(self, id: object) -> float:
        """The price of the record with this id."""
        return value_of(id, self.ids, self.values)

    def buy(self, target: float | None = None, *, share: float | None = None) -> "Purchase":
        """The consumer's best response: the cheapest records whose values add up to ``target`` at least.

        min Σ p x subject to Σ φ x ≥ target, x ∈ {0, 1}: a knapsack of what is left out, searched around where the
        relaxation stops (Pisinger 1997), by the number of records, and through all subsets of those in doubt. Where
        that is too much to look at, the best cover found comes back with ``proven`` False, and ``bound`` says how much
        cheaper one could be.

        ``target`` is in units of value; ``share`` names it as a part of all value for sale instead.

        >>> import datassay as da
        >>> prices = da.price([0.5, 0.3, 0.2, -0.1], theta=2.0, gamma=1.0)
        >>> bought = prices.buy(0.5)
        >>> prices.ids[bought.chosen].tolist(), round(bought.cost, 2)
        ([1, 2], 0.63)
        """
        worth, cost, rows = self.worth, self.values, self.order
        if len(rows) == 0:
            raise InputError("no record has a positive value: nothing is for sale")
        whole = math.fsum(worth[rows])
        target = _target(target, share, whole)
        if target > whole * (1 + 1e-12):  # a sum that was added up in another order is no other sum
            raise UsageError(
                f"a target of {target:.6g} is out of reach: the {len(rows):,} records for sale are worth {whole:.6g} "
                "together"
            )
        target = min(target, whole)
        found = cheapest_cover(rows, worth, cost, target)
        chosen, greedy = found.chosen, found.greedy
        return Purchase(
            np.sort(chosen), np.sort(greedy), math.fsum(cost[chosen]), math.fsum(cost[greedy]), found.relaxed,
            found.bound, target, math.fsum(worth[chosen]), _payments(chosen, cost, len(self)), self.ids, worth,
        )  # fmt: skip

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``records``, ``for_sale`` and ``share_for_sale``; ``theta``, ``gamma``; of the records for sale ``total_price``,
        ``total_value``, ``lowest_price``, ``median_price`` and ``highest_price``, which are None where there are none.
        """
        some = self.for_sale
        sold = self.values[some]
        low, middle, high = np.quantile(sold, [0.0, 0.5, 1.0]) if some.any() else (None, None, None)
        return as_facts(
            {
                "records": len(self), "for_sale": some.sum(), "share_for_sale": some.mean(), "theta": self.theta,
                "gamma": self.gamma, "total_price": sold.sum(), "total_value": self.worth[some].sum(),
                "lowest_price": low, "median_price": middle, "highest_price": high,
            }
        )  # fmt: skip

    def summary(self) -> str:
        """What is for sale, in words."""
        some = self.for_sale
        lines = [
            f"{some.sum():,} of {len(self):,} records are for sale at φ + {self.gamma:g} φ^{self.theta:g} (φ by "
            f"{self.method}); the others have no positive value."
        ]
        if some.any():
            low, middle, high = np.quantile(self.values[some], [0.0, 0.5, 1.0])
            how = "the same for every record"
            if self.gamma > 0 and self.theta != 1:
                how = f"lowest for the {'most' if self.theta < 1 else 'least'} valuable"
            lines += [
                f"Prices from {low:.4g} to {high:.4g}, median {middle:.4g}; {self.values[some].sum():.4g} for all, "
                f"which are worth {self.worth[some].sum():.4g}.",
                f"What a unit of value costs is {how}.",
            ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw price against value; returns the axes."""
        if ax is None:
            ax = new_axes(6, 4)
        check_axes(ax)
        some = self.for_sale
        ax.scatter(self.worth[some], self.values[some], s=6, color="#4477aa", linewidths=0)
        if some.any():
            ends = [0.0, float(self.worth[some].max())]
            ax.plot(ends, ends, color="black", linewidth=0.8, linestyle="dashed", label="value alone")
            ax.legend(frameon=False)
        ax.set_xlabel(f"value: {self.method}")
        ax.set_ylabel("price")
        ax.set_title(f"Price = φ + {self.gamma:g} φ^{self.theta:g}", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        return {"id": self.ids, "price": self.values, "value": self.worth}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """The price list as a data frame: id, price, value."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to Parquet or JSON (:func:`datassay.load_result` reads it) or CSV (the table alone)."""
        header = {
            "kind": "prices",
            "theta": self.theta,
            "gamma": self.gamma,
            "method": self.method,
            "parameters": dict(self.parameters),
            "notes": list(self.notes),
            "version": self.version,
        }
        return save_columns(path, header, self._columns())


def load_prices(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> Prices:
    """The prices that :meth:`Prices.save` wrote."""
    return Prices(
        columns["price"].astype(np.float64),
        columns["id"],
        columns["value"].astype(np.float64),
        float(header["theta"]),
        float(header["gamma"]),
        str(header["method"]),
        header["parameters"],
        tuple(map(str, header["notes"])),
        str(header["version"]),
    )


@dataclass(frozen=True, eq=False)
class Purchase:
    """What a consumer buys to reach a target, and what that does to the owners.

    Attributes
    ----------
    chosen, cost, value
        Positions of the records bought, what they cost, and what they are worth together.
    greedy, greedy_cost
        The cover made of the best bargains in order, less what turns out superfluous: never cheaper than ``chosen``.
    relaxed_cost
        What the last record would cost if a part of it could be bought: no cover is cheaper.
    bound
        What no cover is cheaper than, as far as was proven.
    target
        The value to reach.
    payments, ids, worth
        What every owner is paid, 0 for those whose record is not bought; ids and values of all records.
    """

    chosen: NDArray[np.intp]
    greedy: NDArray[np.intp]
    cost: float
    greedy_cost: float
    relaxed_cost: float
    bound: float
    target: float
    value: float
    payments: Floats
    ids: NDArray[np.generic]
    worth: Floats
    version: str = __version__

    def __post_init__(self) -> None:
        for name in ("chosen", "greedy", "payments", "ids", "worth"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def n_owners(self) -> int:
        """Owners, whether their record is bought or not."""
        return len(self.payments)

    def __len__(self) -> int:
        return len(self.chosen)

    def __repr__(self) -> str:
        return f"Purchase({len(self):,} of {self.n_owners:,} records for {self.cost:.4g}, worth {self.value:.4g})"

    @property
    def proven(self) -> bool:
        """Whether nothing cheaper exists, to nine digits: no cover costs less than this one by more than 1e-9 of it."""
        return self.cost - self.bound <= 1e-9 * self.cost

    @property
    def inclusiveness(self) -> float:
        """The share of owners who are paid at all."""
        return len(self.chosen) / self.n_owners

    @property
    def gini(self) -> float:
        """Gini coefficient of payments over all owners, paid or not."""
        return gini(self.payments)

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``owners``, and ``bought``, whose record is; ``target`` and ``bought_value``; ``cost``, ``greedy_cost``,
        ``bound``, ``proven``; ``inclusiveness``, the share of owners who are paid, and ``gini`` of payments.
        """
        return as_facts(
            {
                "owners": self.n_owners, "bought": len(self), "target": self.target, "bought_value": self.value,
                "cost": self.cost, "greedy_cost": self.greedy_cost, "bound": self.bound, "proven": self.proven,
                "inclusiveness": self.inclusiveness, "gini": self.gini,
            }
        )  # fmt: skip

    def summary(self) -> str:
        """What is bought, in words."""
        sure = "the cheapest cover" if self.proven else f"no cover is cheaper than {self.bound:.6g}, the best found"
        return (
            f"{len(self):,} of {self.n_owners:,} records reach {self.target:.4g} (worth {self.value:.6g}) for "
            f"{self.cost:.6g}: {sure}; the greedy cover costs {self.greedy_cost:.6g}.\n"
            f"{self.inclusiveness:.1%} of the owners are paid; Gini of payments {self.gini:.3f}."
        )

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        bought = np.isin(np.arange(self.n_owners), self.chosen)
        greedy = np.isin(np.arange(self.n_owners), self.greedy)
        return {"id": self.ids, "payment": self.payments, "value": self.worth, "bought": bought, "greedy": greedy}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """What every owner is paid, as a data frame: id, payment, value, bought, greedy (in the greedy cover)."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to Parquet or JSON (:func:`datassay.load_result` reads it) or CSV (the table alone)."""
        names = ("cost", "greedy_cost", "relaxed_cost", "bound", "target", "value", "version")
        header = {"kind": "purchase"} | {name: getattr(self, name) for name in names}
        return save_columns(path, header, self._columns())


def load_purchase(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> Purchase:
    """The purchase that :meth:`Purchase.save` wrote."""
    numbers = {
        name: float(header[name]) for name in ("cost", "greedy_cost", "relaxed_cost", "bound", "target", "value")
    }
    return Purchase(
        **numbers,
        chosen=np.flatnonzero(columns["bought"]),
        greedy=np.flatnonzero(columns["greedy"]),
        payments=columns["payment"].astype(np.float64),
        ids=columns["id"],
        worth=columns["value"].astype(np.float64),
        version=str(header["version"]),
    )


def price(values: Values | ArrayLike, theta: float = 2.0, gamma: float = 1.0, *, ids: object | None = None) -> Prices:
    """Price every record at its value and a privacy cost that grows with it: p = φ + γ φ^θ.

    Parameters
    ----------
    values
        What records are worth: a result of any value method, or plain numbers. Records of no positive value are not
        for sale.
    theta
        How the privacy cost grows, at least 0. Below 1 it favours buying the most valuable records, above 1 the least
        valuable; at 1 it favours nobody.
    gamma
        How large the privacy cost is, at least 0.
    ids
        Ids of the records, where ``values`` are plain numbers.

    Returns
    -------
    Prices
        ``prices.buy(target)`` is the consumer's best response; :func:`search_prices` the owner's choice of θ and γ.

    References
    ----------
    Mesana, thesis, §3.3 (full disclosure). Mathematics §9, with erratum 11.

    Examples
    --------
    >>> import datassay as da
    >>> prices = da.price([0.5, 0.2, -0.1], theta=2.0, gamma=1.0)
    >>> prices.values.tolist()
    [0.75, 0.24000000000000002, nan]
    """
    theta = _checks.number("theta", theta, at_least=0)
    gamma = _checks.number("gamma", gamma, at_least=0)
    worth, names, method, parameters, notes = _worth(values, ids)
    some = worth > 0
    with np.errstate(over="ignore"):
        added = gamma * np.where(some, worth, 1.0) ** theta
        asked = np.where(some, worth + added, math.nan)
        whole = asked[some].sum()
    if not np.isfinite(whole):
        raise UsageError(f"theta={theta:g} and gamma={gamma:g} make prices that are not finite; scale the values")
    if not some.any():
        notes = (*notes, "no record has a positive value: nothing is for sale")
    return Prices(asked, names, worth, theta, gamma, method, parameters, notes)


def _worth(
    values: object, ids: object | None
) -> tuple[Floats, NDArray[np.generic], str, Mapping[str, Parameter], tuple[str, ...]]:
    if isinstance(values, PrivateValues):
        raise InputError(
            "private values are each for its owner alone, and a price list would publish them; price public values"
        )
    if isinstance(values, Values):
        if ids is not None:
            raise UsageError("ids are those of the values; leave ids out")
        worth, names = values.values, values.ids
        method, parameters, notes = values.method, values.parameters, values.notes
    else:
        found = _checks.real_numbers(values)
        if found is None:
            raise InputError("values must be a result of a value method, or one number a record")
        worth = found
        method, parameters, notes = "given", {}, ()
        if worth.ndim != 1:
            raise InputError(f"values must be one number a record; got shape {worth.shape}")
        names = np.arange(len(worth)) if ids is None else as_ids(np.asarray(ids), "ids")
        if len(names) != len(worth):
            raise InputError(f"ids has {len(names)} entries for {len(worth)} records")
    if len(worth) == 0:
        raise InputError("values are empty: there is nothing to price")
    if not np.isfinite(worth).all():
        row = int((~np.isfinite(worth)).argmax())
        raise InputError(f"the value of record {names[row]!s} is {worth[row]}; values must be finite")
    return worth, names, method, parameters, notes


def _target(target: float | None, share: float | None, whole: float) -> float:
    if (target is None) == (share is None):
        raise UsageError("name one of target (in units of value) and share (of all value for sale)")
    if share is not None:
        part = _checks.number("share", share, above=0, at_most=1) * whole
        if part == 0:
            raise UsageError(f"share={share!r} is too small: of {whole:.6g}, it is nothing")
        return part
    return _checks.number("target", target, above=0)


def _gamma(sold: Floats, theta: float, markup: float) -> float:
    """γ of a privacy cost that is so large a part of the value of what is for sale: markup · Σ φ / Σ φ^θ."""
    if markup == 0:
        return 0.0
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        gamma = float(markup * sold.sum() / (sold**theta).sum())
    if not (math.isfinite(gamma) and gamma > 0):
        raise UsageError(
            f"each of thetas must be such that φ^θ can be written down; with θ = {theta:g} it cannot for values up to "
            f"{sold.max():.3g}"
        )
    return gamma


def _markup(worth: Floats, theta: float, gamma: float) -> float:
    """The privacy cost of all records for sale, as a part of their value."""
    sold = worth[worth > 0]
    with np.errstate(under="ignore"):
        return float(gamma * (sold**theta).sum() / sold.sum())


def _payments(chosen: NDArray[np.intp], cost: Floats, n: int) -> Floats:
    paid = np.zeros(n)
    paid[chosen] = cost[chosen]
    return paid


@dataclass(frozen=True, eq=False)
class PriceSearch:
    """What the consumer pays, and whom, at every θ and γ: one row each, in the order of ``theta`` then ``gamma``.

    Attributes
    ----------
    theta, gamma, markup, cost, greedy_cost, bought, inclusiveness, gini, proven
        One entry for every pair: the privacy cost of all records for sale as a part of their value (``markup``), what
        the best response costs and what the greedy cover would, how many records it buys, the share of owners paid, the
        Gini coefficient of payments, and whether the optimum was proven.
    sold
        Whether the consumer buys at all: the best response is within ``budget``.
    target, budget
        The value that the consumer wants, and the most they would pay (None: anything).
    """

    theta: Floats
    gamma: Floats
    markup: Floats
    cost: Floats
    greedy_cost: Floats
    bought: NDArray[np.int64]
    inclusiveness: Floats
    gini: Floats
    proven: NDArray[np.bool_]
    target: float
    budget: float | None
    method: str

    def __len__(self) -> int:
        return len(self.cost)

    def __repr__(self) -> str:
        return f"PriceSearch({len(self)} pairs of θ and γ, {self.sold.sum()} of them sell)"

    @property
    def sold(self) -> NDArray[np.bool_]:
        """Where the consumer buys: the best response is within the budget."""
        return np.ones(len(self), bool) if self.budget is None else self.cost <= self.budget

    @property
    def best(self) -> int:
        """The row with the highest revenue among those that sell; of equals the one that pays the most owners."""
        return self._first(self.cost, self.inclusiveness)

    @property
    def most_inclusive(self) -> int:
        """The row that pays the most owners among those that sell; of equals the one with the highest revenue."""
        return self._first(self.inclusiveness, self.cost)

    def _first(self, wanted: Floats, then: Floats) -> int:
        if not self.sold.any():
            raise InputError(f"nothing is sold at any θ and γ: the cheapest costs {self.cost.min():.6g}")
        return int(np.lexsort((-then, -np.where(self.sold, wanted, -math.inf)))[0])

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``pairs`` of θ and γ, those that ``sold``, and ``proven`` ones; ``target``, ``lowest_cost``; ``best_theta``,
        ``best_gamma``, ``best_cost``, ``best_inclusiveness`` and ``best_gini``, where revenue is highest, and
        ``inclusive_theta`` and so on, where most owners are paid: None if nothing is sold.
        """
        found: dict[str, object] = {
            "pairs": len(self), "sold": self.sold.sum(), "proven": self.proven.sum(), "target": self.target,
            "lowest_cost": self.cost.min(),
        }  # fmt: skip
        sells = bool(self.sold.any())
        rows = {"best": self.best, "inclusive": self.most_inclusive} if sells else {"best": None, "inclusive": None}
        for word, row in rows.items():
            for name in ("theta", "gamma", "cost", "inclusiveness", "gini"):
                found[f"{word}_{name}"] = None if row is None else getattr(self, name)[row]
        return as_facts(found)

    def summary(self) -> str:
        """The best choices, in words."""
        limit = "" if self.budget is None else f", at most {self.budget:.6g}"
        lines = [f"{len(self)} pairs of θ and γ for a consumer who wants {self.target:.4g}{limit}; φ by {self.method}."]
        if not self.sold.any():
            return f"{lines[0]}\nNothing is sold: the cheapest cover costs {self.cost.min():.6g}."
        for name, row in (("Highest revenue", self.best), ("Most owners paid", self.most_inclusive)):
            lines.append(
                f"{name}: θ = {self.theta[row]:g}, γ = {self.gamma[row]:.6g}: {self.cost[row]:.6g} for "
                f"{self.bought[row]:,} records, {self.inclusiveness[row]:.1%} of the owners, Gini {self.gini[row]:.3f}."
            )
        if not self.proven.all():
            lines.append(
                f"The cheapest cover is proven at {self.proven.sum()} of {len(self)}; elsewhere it is the best found."
            )
        return "\n".join(lines)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the share of owners paid against θ, a line for each markup; returns the axes."""
        if ax is None:
            ax = new_axes(6, 4)
        check_axes(ax)
        every = len(self) // len(np.unique(self.theta))
        for at in range(every):
            rows = np.arange(at, len(self), every)
            rows = rows[np.argsort(self.theta[rows])]
            name = (
                f"markup {self.markup[rows[0]]:.3g}" if np.ptp(self.markup[rows]) < 1e-9 else f"γ = {self.gamma[at]:g}"
            )
            ax.plot(self.theta[rows], self.inclusiveness[rows], marker="o", markersize=3, label=name)
        ax.axvline(1, color="black", linewidth=0.8, linestyle="dashed")
        ax.set_xlabel("θ")
        ax.set_ylabel("share of owners paid")
        ax.set_title(f"Who is paid by a consumer who wants {self.target:.3g}", loc="left")
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        names = ("theta", "gamma", "markup", "cost", "greedy_cost", "bought", "inclusiveness", "gini", "proven", "sold")
        return {name: getattr(self, name) for name in names}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """The search as a data frame, one row for each pair."""
        return make_frame(self._columns(), kind)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the table to Parquet, JSON or CSV."""
        header = {"kind": "price search", "target": self.target, "budget": self.budget, "method": self.method}
        return save_columns(path, header, self._columns())


def load_price_search(header: Mapping[str, Any], columns: Mapping[str, NDArray[np.generic]]) -> PriceSearch:
    """The search that :meth:`PriceSearch.save` wrote."""
    budget = header["budget"]
    rest = {name: column for name, column in columns.items() if name != "sold"}
    return PriceSearch(
        **rest,  # type: ignore[arg-type]
        target=float(header["target"]),
        budget=None if budget is None else float(budget),
        method=str(header["method"]),
    )


def search_prices(
    values: Values | ArrayLike,
    target: float | None = None,
    *,
    share: float | None = None,
    thetas: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0),
    markups: Sequence[float] | None = None,
    gammas: Sequence[float] | None = None,
    budget: float | None = None,
    ids: object | None = None,
    progress: Progress = None,
) -> PriceSearch:
    """The owner's side: what the consumer's best response costs, and whom it pays, at every θ and γ.

    The owner leads and the consumer follows (a Stackelberg game): max over θ, γ of min Σ p x. Dearer is always better
    for the owner until the consumer walks away, so ``budget`` says where that is.

    Parameters
    ----------
    values, ids
        As in :func:`price`.
    target, share
        The value that the consumer wants, or its share of all value for sale.
    thetas
        What to try.
    markups, gammas
        How large the privacy cost is: as a part of the value of everything for sale, Σ γ φ^θ = markup · Σ φ, which
        means the same at every θ; or γ itself. Values are small numbers: for θ > 1, γ = 1 adds next to nothing to them.
    budget
        The most that the consumer would pay; None for anything.
    progress
        A callback or True for a bar.

    Examples
    --------
    >>> import datassay as da
    >>> search = da.search_prices([0.5, 0.3, 0.2, -0.1], 0.5, thetas=[0.5, 2.0], markups=[1.0])
    >>> search.bought.tolist()
    [1, 2]
    """
    _checks.not_one_string("thetas", thetas, "numbers")
    if markups is not None and gammas is not None:
        raise UsageError("name markups or gammas, not both: each says how large the privacy cost is")
    sizes = (0.0, 0.5, 1.0, 2.0) if markups is None and gammas is None else gammas if markups is None else markups
    for name, given in (("thetas", thetas), ("markups" if gammas is None else "gammas", sizes)):
        _checks.not_one_string(name, given, "numbers")
        if not _checks.is_list_of_numbers(given):
            raise UsageError(f"{name} must be a list of numbers, got {given!r}")
    if budget is not None:
        budget = _checks.number("budget", budget, above=0)
    worth, names, method, _, _ = _worth(values, ids)
    if not (worth > 0).any():
        raise InputError("no record has a positive value: nothing is for sale")
    wanted = _target(target, share, math.fsum(worth[worth > 0]))
    thetas = [_checks.number("each of thetas", theta, at_least=0) for theta in thetas]
    if gammas is None:
        sold = worth[worth > 0]
        each = [_checks.number("each of markups", markup, at_least=0) for markup in sizes]  # type: ignore[union-attr]
        pairs = [(theta, _gamma(sold, theta, part)) for theta in thetas for part in each]
    else:
        pairs = [(theta, _checks.number("each of gammas", gamma, at_least=0)) for theta in thetas for gamma in gammas]
    found = []
    with Bar(progress, len(pairs), "prices") as report:
        for theta, gamma in pairs:
            found.append(price(worth, theta, gamma, ids=names).buy(wanted))
            report(1)
    return PriceSearch(
        theta=np.array([theta for theta, _ in pairs], np.float64),
        gamma=np.array([gamma for _, gamma in pairs], np.float64),
        markup=np.array([_markup(worth, *pair) for pair in pairs]),
        cost=np.array([bought.cost for bought in found]),
        greedy_cost=np.array([bought.greedy_cost for bought in found]),
        bought=np.array([len(bought) for bought in found], np.int64),
        inclusiveness=np.array([bought.inclusiveness for bought in found]),
        gini=np.array([bought.gini for bought in found]),
        proven=np.array([bought.proven for bought in found]),
        target=wanted,
        budget=budget,
        method=method,
    )
