"""Full disclosure: records for sale at p = φ + γ φ^θ, the cheapest cover of a target, the owner's choice of θ and γ.

Only records of positive value are for sale. A unit of value costs p/φ = 1 + γ φ^(θ−1): for θ < 1 the relaxation buys
the most valuable records first, for θ > 1 the least valuable, and at θ = 1 (or γ = 0) a unit of value costs the same
everywhere, as do all covers without surplus (Mathematics §9, erratum 11).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._version import __version__
from datassay.data import Ids, ids_of
from datassay.market.cover import cheapest_cover
from datassay.market.figures import draw_prices
from datassay.privacy import PrivateValues
from datassay.results import Axes, Columns, Fact, Floats, Parameter, PerRecord, Result, Values, as_facts, axes_on


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
class Prices(PerRecord):
    """What every record costs, and what the consumer would do.

    Attributes
    ----------
    values, ids
        The price of each record, not a number where it is not for sale.
    worth, theta, gamma
        The value φ of each record, θ and γ of its price φ + γ φ^θ.
    method, parameters, notes
        How φ was obtained.
    """

    COLUMNS: ClassVar = {"id": "ids", "price": "values", "value": "worth"}

    values: Floats
    ids: NDArray[np.generic]
    worth: Floats
    theta: float
    gamma: float
    method: str
    parameters: Mapping[str, Parameter]
    notes: tuple[str, ...] = ()
    version: str = __version__

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
        # What grows with the price of a unit of value, exactly: log of γ φ^(θ−1), less what all have in common.
        growth = 0.0 if self.gamma == 0 or self.theta == 1 else math.copysign(1.0, self.theta - 1)
        return rows[np.lexsort((rows, -self.worth[rows], growth * self.worth[rows]))]

    def buy(self, target: float | None = None, *, share: float | None = None) -> "Purchase":
        """The consumer's best response: the cheapest records whose values add up to ``target`` at least.

        min Σ p x subject to Σ φ x ≥ target, x ∈ {0, 1}: a knapsack of what is left out, searched around where the
        relaxation stops (Pisinger 1997), by the number of records, and through all subsets of those in doubt. If that
        is too much, the best cover found comes back with ``proven`` False, and ``bound`` says how cheap one could be.
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
        target = target_of(target, share, whole)
        if target > whole * (1 + 1e-12):  # a sum that was added up in another order is no other sum
            raise UsageError(
                f"a target of {target:.6g} is out of reach: the {len(rows):,} records for sale are worth {whole:.6g} "
                "together"
            )
        target = min(target, whole)
        found = cheapest_cover(rows, worth, cost, target)
        chosen, greedy = found.chosen, found.greedy
        payments = np.zeros(len(self))
        payments[chosen] = cost[chosen]
        return Purchase(
            np.sort(chosen), np.sort(greedy), math.fsum(cost[chosen]), math.fsum(cost[greedy]), found.relaxed,
            found.bound, target, math.fsum(worth[chosen]), payments, self.ids, worth,
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
        return self._in_words(lines)

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw price against value, named ``label`` in the legend; returns the axes."""
        ax = axes_on(ax, 6, 4)
        draw_prices(ax, self.worth[self.for_sale], self.values[self.for_sale], label)
        ax.set_xlabel(f"value: {self.method}")
        ax.set_title(f"Price = φ + {self.gamma:g} φ^{self.theta:g}", loc="left")
        return ax


@dataclass(frozen=True, eq=False)
class Purchase(Result):
    """What a consumer buys to reach a target, and what that does to the owners.

    Its frame has a row for each owner: id, payment, value, bought, greedy (in the greedy cover).

    Attributes
    ----------
    chosen, cost, value
        Positions of the records bought, what they cost, and what they are worth together.
    greedy, greedy_cost
        The cover made of the best bargains in order, less what turns out superfluous: never cheaper than ``chosen``.
    relaxed_cost, bound
        The cost if a part of the last record could be bought, and the highest bound proven: no cover is cheaper.
    target
        The value to reach.
    payments, ids, worth
        What every owner is paid, 0 for those whose record is not bought; ids and values of all records.
    """

    ASIDE: ClassVar = ("chosen", "greedy", "payments", "ids", "worth")

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

    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

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

    def _columns(self) -> Columns:
        places = np.arange(self.n_owners)
        taken = {"bought": np.isin(places, self.chosen), "greedy": np.isin(places, self.greedy)}
        return {"id": self.ids, "payment": self.payments, "value": self.worth, **taken}

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        return {
            **super()._fields(header, {}),
            "chosen": np.flatnonzero(columns["bought"]),
            "greedy": np.flatnonzero(columns["greedy"]),
            "payments": columns["payment"].astype(np.float64),
            "ids": columns["id"],
            "worth": columns["value"].astype(np.float64),
        }


def price(values: Values | ArrayLike, theta: float = 2.0, gamma: float = 1.0, *, ids: Ids | None = None) -> Prices:
    """Price every record at its value and a privacy cost that grows with it: p = φ + γ φ^θ.

    ``prices.buy(target)`` is the consumer's best response, and :func:`search_prices` the owner's choice of θ and γ.

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
    found = worth_of(values, ids)
    worth, notes = found.values, found.notes
    some = worth > 0
    with np.errstate(over="ignore"):
        added = gamma * np.where(some, worth, 1.0) ** theta
        asked = np.where(some, worth + added, math.nan)
        whole = asked[some].sum()
    if not np.isfinite(whole):
        raise UsageError(f"theta={theta:g} and gamma={gamma:g} make prices that are not finite; scale the values")
    if not some.any():
        notes = (*notes, "no record has a positive value: nothing is for sale")
    return Prices(asked, found.ids, worth, theta, gamma, found.method, found.parameters, notes)


def worth_of(values: Values | PrivateValues | ArrayLike, ids: Ids | None) -> Values:
    """What records are worth: values as they are, or made of plain numbers."""
    if isinstance(values, PrivateValues):
        raise InputError(
            "private values are each for its owner alone, and a price list would publish them; price public values"
        )
    if isinstance(values, Values):
        if ids is not None:
            raise UsageError("ids are those of the values; leave ids out")
        found = values
    else:
        worth = _checks.real_numbers(values)
        if worth is None:
            raise InputError("values must be a result of a value method, or one number a record")
        if worth.ndim != 1:
            raise InputError(f"values must be one number a record; got shape {worth.shape}")
        found = Values(worth, ids_of(ids, len(worth)), "given")
    if len(found) == 0:
        raise InputError("values are empty: there is nothing to price")
    for row in np.flatnonzero(~np.isfinite(found.values)):
        raise InputError(f"the value of record {found.ids[row]!s} is {found[row]}; values must be finite")
    return found


def target_of(target: float | None, share: float | None, whole: float) -> float:
    """The value that is wanted, in units of value."""
    if (target is None) == (share is None):
        raise UsageError("name one of target (in units of value) and share (of all value for sale)")
    if share is not None:
        part = _checks.number("share", share, above=0, at_most=1) * whole
        if part == 0:
            raise UsageError(f"share={share!r} is too small: of {whole:.6g}, it is nothing")
        return part
    return _checks.number("target", target, above=0)
