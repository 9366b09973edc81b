"""The cheapest records whose values reach a target: min Σ p x subject to Σ φ x ≥ target, x ∈ {0, 1}.

A knapsack of what is left out. It is searched in up to four steps, each only if those before it left the question open:
the core around where the relaxation stops (Pisinger 1997); the number of records; all subsets of the records that are
still in doubt; and where these are too many, scipy's mixed-integer solver.

The relaxation does not know that records are whole: it buys 30.01 where 30 or 31 must be bought. A cover of at most m
records costs at least λ T − μ m + Σ min(0, p − λ φ + μ) for all λ, μ ≥ 0, one of m + 1 or more at least
λ T + μ (m + 1) + Σ min(0, p − λ φ − μ), and every cover is one of the two (Martello and Toth 1997, of the knapsack). A
record is bought or not as the best λ and μ say, unless the opposite could cost less than the best cover known.

Limits count states, records and nodes, never time: the same prices give the same cover on any machine.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
SURE = 1e-10  # of the cost: nearer than that to the bound is optimal
FEW_STATES, MOST_STATES = 2**12, 2**20  # of the search of the core
PARTS = 10**7  # of the most valuable record, that all values may be multiples of
SWAPS = 16  # exchanges one after the other
NEAR = 24  # records on each side of the two ends of a set that are exchanged, two by two
IN_DOUBT, BRANCHES, COARSE = 1000, 50, 1e-7  # records and nodes of scipy's solver; gaps below which it is of no use
HALVED = 40  # records in doubt whose subsets are all looked at, half of the records at a time
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Cover:
    """The best cover found, the greedy one, the cost of the relaxation, and what no cover is cheaper than."""

    chosen: Rows
    greedy: Rows
    relaxed: float
    bound: float


@dataclass(frozen=True, eq=False)
class Market:
    """What is for sale, the best bargain first, and the value to reach."""

    rows: Rows
    worth: Floats
    cost: Floats
    target: float

    @cached_property
    def least(self) -> float:
        """What a cover is worth at least: the target, or the next multiple of what all values are multiples of."""
        return _next_multiple(self.worth[self.rows], self.target)

    def price(self, cover: Rows) -> float:
        """What a cover costs."""
        return math.fsum(self.cost[cover])

    def covers(self, some: Rows) -> bool:
        """Whether these reach the target: their worth added up exactly and rounded once."""
        return math.fsum(self.worth[some]) >= self.target

    def cheaper(self, known: Rows, some: Rows) -> Rows:
        """The cheaper of a cover and of what may be one."""
        return some if self.price(some) < self.price(known) and self.covers(some) else known

    def first(self, order: Rows) -> Rows:
        """The first in this order that reach the target: what the relaxation buys, the last of them in part."""
        stop = min(int(np.searchsorted(np.cumsum(self.worth[order]), self.target)), len(order) - 1) + 1
        while stop > 1 and self.covers(order[: stop - 1]):  # running sums are rounded, this is not
            stop -= 1
        while stop < len(order) and not self.covers(order[:stop]):
            stop += 1
        return order[:stop]

    def without_surplus(self, cover: Rows) -> Rows:
        """A cover less the records that it does without, the dearest first."""
        kept = np.ones(len(cover), np.bool_)
        spare = math.fsum(self.worth[cover]) - self.target
        for at in np.argsort(-self.cost[cover], kind="stable").tolist():
            if self.worth[cover[at]] <= spare:
                kept[at] = False
                spare -= self.worth[cover[at]]
        return cover[kept] if self.covers(cover[kept]) else cover


@np.errstate(over="ignore", invalid="ignore")  # a unit of value may cost more than can be written down
def cheapest_cover(rows: Rows, worth: Floats, cost: Floats, target: float) -> Cover:
    """The cheapest cover that can be found, and how cheap one could be; ``rows`` are for sale, the best bargain first.

    >>> import numpy as np
    >>> worth, cost = np.array([0.5, 0.3, 0.2]), np.array([0.75, 0.39, 0.24])
    >>> cheapest_cover(np.array([2, 1, 0]), worth, cost, 0.5).chosen.tolist()
    [2, 1]
    """
    market = Market(rows, worth, cost, target)
    greedy = market.without_surplus(market.first(rows))
    dear = rows[np.argsort(-worth[rows], kind="stable")]  # as few records as can be
    chosen = market.cheaper(greedy, market.without_surplus(market.first(dear)))
    while True:  # what costs more than a cover that is known is in none that is cheaper
        known = market.price(chosen)
        market = Market(market.rows[cost[market.rows] <= known], worth, cost, target)
        chosen, bound = _solve(market, chosen)
        found = market.price(chosen)
        if found > 0.5 * known and (cost[market.rows] <= found).all():
            break
    first = market.first(market.rows)
    part = first[-1]
    rest = max(0.0, target - math.fsum(worth[first[:-1]]))
    relaxed = math.fsum(cost[first[:-1]]) + float(rest / worth[part] * cost[part])
    rounding = 8 * EPS * (relaxed + float(target / worth[part] * cost[part]))  # of this sum, and of what covers reach
    relaxed = max(0.0, min(found, relaxed - rounding))
    return Cover(chosen, greedy, relaxed, min(found, max(bound, relaxed)))


def _solve(market: Market, known: Rows) -> tuple[Rows, float]:
    """The best cover that can be found, and a bound: where it is the cheapest, its own cost but for ``SURE``."""
    known = market.cheaper(_swapped(market, known), _swapped(market, market.first(market.rows)))
    known, proven = _search_core(market, known, FEW_STATES)
    if proven:
        return known, market.price(known) * (1 - 2 * SURE)  # it stops within SURE of the cost it began with
    size = len(market.first(market.rows)) - 1  # the relaxation buys so many, and a part of another
    sides = [_CoverSide.of(market, size, at_most=True), _CoverSide.of(market, size + 1, at_most=False)]
    for side in sides:
        if side.bound < market.price(known) * (1 - SURE):
            for some in _exchanges(market, side.size, known):
                known = market.cheaper(known, some)
                if side.bound >= market.price(known) * (1 - SURE):
                    break
    bound = min(side.bound for side in sides)
    if bound < market.price(known) * (1 - SURE):
        known, proven = _search_core(market, known, MOST_STATES)
        if proven:
            return known, max(bound, market.price(known) * (1 - 2 * SURE))
    if bound < market.price(known) * (1 - SURE):
        bounds = []
        for side in sides:
            known, least = _settle(market, side, known)
            bounds.append(least)
        bound = min(bounds)
    return known, bound


def _next_multiple(values: Floats, target: float) -> float:
    """The least sum of values that reaches the target, if all are (nearly) multiples of one number; else the target."""
    top = float(values.max())
    parts = 1  # of the most valuable record: what they all are multiples of
    for share in (values / top).tolist():
        near = Fraction(share).limit_denominator(PARTS)
        parts = math.lcm(parts, near.denominator)
        if parts > PARTS or abs(float(near) - share) > 4 * EPS:
            return target
    counts = np.rint(values / top * parts)
    unit = float(values.sum() / counts.sum())
    off = float(np.abs(values - counts * unit).sum()) + 4 * EPS * float(values.sum())
    if off > 0.1 * unit:
        return target
    return max(target, math.ceil((target - off) / unit) * unit * (1 - EPS) - off)


def _search_core(market: Market, known: Rows, states: int) -> tuple[Rows, bool]:
    """The best cover near where the relaxation stops, and whether it is proven to be the cheapest.

    The kernel searches what is left out, in the reverse order. As sums are rounded, half a unit in the target's last
    place more may be left out.
    """
    from datassay.market import cover_kernels

    worth, cost, target = market.worth, market.cost, market.target
    bought = market.first(market.rows)
    out = market.rows[::-1]
    b = len(out) - len(bought)  # records left out by the relaxation, but for the one bought in part
    start = market.price(bought)
    terms = [*worth[bought].tolist(), -target, (target - math.nextafter(target, 0.0)) / 2]
    room = math.fsum(terms)
    rest = math.fsum([*terms, -room])
    if int(math.ldexp(math.frexp(target)[0], 53)) % 2:  # half way between two numbers, rounding goes to the even one
        rest = math.nextafter(rest, -math.inf)
    saved = start - market.price(known)
    slack = SURE * (start - saved)
    flips = np.zeros(len(out), np.bool_)
    better, proven = cover_kernels.search_core(
        cost[out], worth[out], b, room, rest, saved, slack, states, 8 * states, flips
    )
    chosen = out[(np.arange(len(out)) >= b) ^ flips] if better else known
    if not market.covers(chosen):  # beyond thirty digits
        return known, False
    return market.cheaper(known, chosen), bool(proven)  # what the kernel saves is rounded, what covers cost is not


def _swapped(market: Market, cover: Rows) -> Rows:
    """A cover after the best exchange, while there is one: a record less, for one of those left out or for none."""
    worth, cost = market.worth, market.cost
    for _ in range(SWAPS):
        out = np.setdiff1d(market.rows, cover)
        room = math.fsum(worth[cover]) - market.target
        order = cover[np.argsort(worth[cover], kind="stable")]
        dearest = np.maximum.accumulate(cost[order])
        taken = np.concatenate([[0.0], worth[out]])  # none, or one of these comes in
        paid = np.concatenate([[0.0], cost[out]])
        upto = np.searchsorted(worth[order], room + taken, side="right")
        saved = np.where(upto > 0, dearest[np.maximum(upto, 1) - 1], 0.0) - paid
        best = int(saved.argmax())
        if saved[best] <= 0:
            break
        goes = order[int(cost[order[: upto[best]]].argmax())]
        kept = cover[cover != goes]
        better = kept if best == 0 else np.append(kept, out[best - 1])
        if market.price(better) >= market.price(cover) or not market.covers(better):
            break
        cover = better
    return cover


@dataclass(frozen=True, eq=False)
class _CoverSide:
    """Covers of at most ``size`` records, or of at least so many: what none of them is cheaper than, and why.

    ``reduced`` is p − λ φ ± μ of every record for sale, in the order of the market: below 0, it is bought. A cover in
    which a record is not as that says costs at least its absolute value more than ``bound``.
    """

    size: int
    at_most: bool
    bound: float
    reduced: Floats

    @classmethod
    def of(cls, market: Market, size: int, at_most: bool) -> "_CoverSide":
        """The side of so many records at most, or at least, with the best multipliers."""
        value, price = market.worth[market.rows], market.cost[market.rows]
        n, target = len(value), market.least
        size = min(size, n) if at_most else size
        valuable = market.rows[np.argsort(-value, kind="stable")[:size]]
        if size > n or (at_most and not market.covers(valuable)):  # not even the most valuable do
            return cls(size, at_most, math.inf, np.zeros(n))

        def at(slope: float) -> tuple[float, float, Floats]:
            """The bound at a λ, less what rounding may have added; what those bought there are worth; reduced costs."""
            plain = price - slope * value
            order = np.argpartition(plain, size - 1)
            edge = float(plain[order[size - 1]])
            shift = max(0.0, -edge) if at_most else -max(0.0, edge)
            reduced = plain + shift
            bought = reduced < 0
            bound = slope * target - shift * size + float(reduced[bought].sum())
            taken = np.zeros(n, np.bool_)
            taken[order[:size]] = True
            taken = taken & (plain <= 0) if at_most else taken | (plain < 0)
            scale = slope * target + abs(shift) * size + float((price + slope * value + abs(shift))[bought].sum())
            return bound - 8 * EPS * scale, float(value[taken].sum()), reduced

        low, high = 0.0, 2 * float((price / value).max())
        for _ in range(64):  # a λ at which enough is bought: any λ gives a bound, the best one is between the two
            if not math.isfinite(high * float(value.max()) * n) or at(high)[1] >= target:
                break
            high *= 4
        best = at(low)
        for _ in range(80):
            middle = 0.5 * (low + high)
            here = at(middle)
            best = here if here[0] > best[0] else best
            low, high = (low, middle) if here[1] >= target else (middle, high)
        return cls(size, at_most, *best[::2])


def _exchanges(market: Market, size: int, known: Rows) -> Iterator[Rows]:
    """What may be covers: the one known, and two of so many records, after exchanges of up to four records for four.

    The two are neighbours in value, which cost least for θ > 1, and the most and the least valuable, which do for
    θ < 1, but for their surplus. Exchanges near the ends of the sets remove it: there are thousands of millions of
    them, and the best of one half of the records is looked up for each of the other.
    """
    order = market.rows[np.argsort(market.worth[market.rows], kind="stable")]
    n = len(order)
    starts = [known]
    if 0 < size < n:
        sums = np.concatenate([[0.0], np.cumsum(market.worth[order])])
        together = sums[size:] - sums[: n - size + 1]  # from the least valuable on
        apart = sums[size::-1] + (sums[n] - sums[n - size :][::-1])  # none of the most valuable, one, …
        at, of = (min(int(np.searchsorted(some, market.target)), len(some) - 1) for some in (together, apart))
        starts += [order[at : at + size], np.concatenate([order[: size - of], order[n - of :]])]
    for start in starts:
        inside = np.isin(order, _swapped(market, start) if market.covers(start) else start)
        ends = np.flatnonzero(inside[1:] != inside[:-1]) + 1
        if len(ends) == 0:
            continue
        near = max(1, 2 * NEAR // len(ends))
        spread = np.linspace(0, n - 1, NEAR).astype(np.intp)  # some from everywhere
        close = np.unique(np.concatenate([(ends[:, None] + np.arange(-near, near)).ravel(), spread]))
        close = close[(close >= 0) & (close < n)]
        yield from _exchanged(market, order, inside, close[inside[close]], close[~inside[close]])


def _exchanged(market: Market, order: Rows, inside: NDArray[np.bool_], goes: Rows, comes: Rows) -> Iterator[Rows]:
    """The best of what may be covers after up to four of those that may go, and up to four of those that may come."""
    room = math.fsum(market.worth[order[inside]]) - market.target
    one, two = (_Swaps(market, order[goes[half::2]], order[comes[half::2]]) for half in (0, 1))
    ranked = np.argsort(two.value, kind="stable")
    value, price = two.value[ranked], two.price[ranked]
    lowest = np.minimum.accumulate(price[::-1])[::-1]
    for margin in (0.0, 16 * EPS * market.target):  # sums are rounded: what just fits may not, and is then left alone
        upto = np.searchsorted(value, margin - room - one.value)
        fits = upto < len(value)
        total = np.where(fits, one.price + lowest[np.minimum(upto, len(value) - 1)], math.inf)
        best = int(total.argmin())
        if not fits[best]:
            continue
        other = int(ranked[upto[best] + int(price[upto[best] :].argmin())])
        out, into = (np.concatenate(pair) for pair in zip(one.of(best), two.of(other), strict=True))
        yield np.concatenate([np.setdiff1d(order[inside], out), into])


class _Swaps:
    """Up to two records less, for up to two others: what each such exchange adds to value and price."""

    def __init__(self, market: Market, goes: Rows, comes: Rows) -> None:
        self.goes, self.comes = (
            [some[[]], *some[:, None], *some[np.stack(np.triu_indices(len(some), 1), axis=1)]] for some in (goes, comes)
        )
        self.value, self.price = (
            np.subtract.outer(_totals(what[comes]), _totals(what[goes])).T.ravel()
            for what in (market.worth, market.cost)
        )

    def of(self, at: int) -> tuple[Rows, Rows]:
        """Who goes and who comes in the exchange at this position."""
        i, j = divmod(at, len(self.comes))
        return self.goes[i], self.comes[j]


def _totals(numbers: Floats) -> Floats:
    """Of none of them, each of them, and every two of them."""
    one, two = np.triu_indices(len(numbers), 1)
    return np.concatenate([[0.0], numbers, numbers[one] + numbers[two]])


def _settle(market: Market, side: _CoverSide, known: Rows) -> tuple[Rows, float]:
    """The best cover after a closer look at one side, and what no cover of that side is cheaper than."""
    best = market.price(known)
    if side.bound >= best * (1 - SURE):
        return known, side.bound
    doubtful = np.abs(side.reduced) <= best - side.bound  # any other, and the cover costs more than the best
    doubt, bought = market.rows[doubtful], market.rows[~doubtful & (side.reduced < 0)]
    if len(doubt) <= HALVED:
        return _try_all(market, bought, doubt, known)
    if len(doubt) <= IN_DOUBT and side.bound < best * (1 - COARSE):
        return _ask_scipy(market, side, bought, doubt, known)
    return known, side.bound


def _try_all(market: Market, bought: Rows, doubt: Rows, known: Rows) -> tuple[Rows, float]:
    """The cheapest with any subset of those in doubt beside those bought: of each half with the best of the other."""
    worth, cost = market.worth, market.cost
    needed = math.fsum([market.target, *(-worth[bought]).tolist()])
    halves = [doubt[half::2] for half in (0, 1)]
    (one, price), (two, other) = ((_sums(worth[half]), _sums(cost[half])) for half in halves)
    ranked = np.argsort(two, kind="stable")
    two, other = two[ranked], other[ranked]
    lowest = np.minimum.accumulate(other[::-1])[::-1]
    rounding = 64 * EPS * (abs(needed) + float(worth[doubt].sum()))
    bound = math.inf
    for margin in (-rounding, rounding):  # first with too many, then with certain ones alone
        upto = np.searchsorted(two, needed + margin - one)
        total = np.where(upto < len(two), price + lowest[np.minimum(upto, len(two) - 1)], math.inf)
        best = int(total.argmin())
        if not math.isfinite(total[best]):
            break
        cheapest = math.fsum([*cost[bought].tolist(), float(total[best])])
        bound = min(bound, cheapest * (1 - 64 * EPS))
        with_it = int(ranked[upto[best] + int(other[upto[best] :].argmin())])
        some = [half[(at >> np.arange(len(half))) & 1 > 0] for half, at in zip(halves, (best, with_it), strict=True)]
        cover = np.concatenate([bought, *some])
        known = market.cheaper(known, cover)
        if market.covers(cover):
            break
    return known, bound


def _sums(numbers: Floats) -> Floats:
    """Of all subsets: the one at position i has the numbers whose bits are set in i."""
    sums = np.zeros(1)
    for number in numbers:
        sums = np.concatenate([sums, sums + number])
    return sums


def _ask_scipy(market: Market, side: _CoverSide, bought: Rows, doubt: Rows, known: Rows) -> tuple[Rows, float]:
    """A cover by scipy's solver (HiGHS) from those in doubt, if it has a cheaper one, and its bound.

    It accepts covers that miss the target by a little, which can only lower its bound; what it finds is added up here.
    Its tolerances are absolute, 1e-6: worth and cost are scaled so that they are a part in 10⁹ of a record's.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    worth, cost = market.worth, market.cost
    needed = math.fsum([market.target, *(-worth[bought]).tolist()])
    by_worth, by_cost = 1e3 / float(worth[doubt].mean()), 1e3 / float(cost[doubt].mean())
    if not (math.isfinite(by_worth * needed) and math.isfinite(by_cost)):
        return known, side.bound
    left = side.size - len(bought)
    found = milp(
        cost[doubt] * by_cost,
        constraints=[
            LinearConstraint(worth[doubt][None] * by_worth, needed * by_worth),
            LinearConstraint(np.ones((1, len(doubt))), *((-np.inf, left) if side.at_most else (left, np.inf))),
        ],
        integrality=np.ones(len(doubt)),
        bounds=Bounds(0, 1),
        # Presolving, it often finds covers that are none, and then says so on standard output; else it does so rarely.
        options={"mip_rel_gap": 0.0, "node_limit": BRANCHES, "presolve": False},
    )
    if found.status == 2:  # those in doubt hold none: the best known is no worse than any of this side
        return known, math.inf
    if found.x is not None:
        cover = np.concatenate([bought, doubt[found.x > 0.5]])
        out = np.setdiff1d(market.rows, cover)
        missing = market.target - math.fsum(worth[cover])
        if missing > 0 and (fits := out[worth[out] > missing]).size:  # it missed the target by a little
            cover = np.append(cover, fits[cost[fits].argmin()])
        if market.covers(cover):
            known = market.cheaper(known, _swapped(market, cover))
    least = found.mip_dual_bound
    if least is None or not math.isfinite(least):
        return known, side.bound
    return known, max(side.bound, market.price(bought) + float(least) / by_cost)
