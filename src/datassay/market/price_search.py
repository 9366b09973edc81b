"""The owner's choice of θ and γ: what a consumer would buy at each of them, and what that brings to whom."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay import _checks
from datassay._choices import DEFAULT_MARKUPS
from datassay._errors import InputError, UsageError
from datassay._run import Threads, documented
from datassay._version import __version__
from datassay._work import Bar, Progress
from datassay.data import Ids
from datassay.market.figures import draw_lines
from datassay.market.pricing import price, target_of, worth_of
from datassay.results import Axes, Fact, Floats, Parameter, Result, Values, as_facts, axes_on

_BOUGHT = ("cost", "greedy_cost", "bought", "inclusiveness", "gini", "proven")  # facts of a purchase


@dataclass(frozen=True, eq=False)
class PriceSearch(Result):
    """What the consumer pays, and whom, at every θ and γ: one row each, in the order of ``theta`` then ``gamma``.

    Attributes
    ----------
    theta, gamma, markup, cost, greedy_cost, bought, inclusiveness, gini, proven
        One entry for every pair: the privacy cost of all records for sale as a part of their value (``markup``), what
        the best response costs and what the greedy cover would, how many records it buys, the share of owners paid, the
        Gini coefficient of payments, and whether the optimum was proven.
    sold, target, budget
        Whether the best response is within the budget, so that the consumer buys; the value that the consumer wants;
        and the most they would pay (None: anything).
    """

    COLUMNS: ClassVar = {name: name for name in ("theta", "gamma", "markup", *_BOUGHT, "sold")}

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
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __len__(self) -> int:
        return len(self.cost)

    def _who(self) -> str:
        return "pairs"

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

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the share of owners paid against θ, a line for each markup; returns the axes.

        ``label`` stands before the names of the lines in the legend.
        """
        ax = axes_on(ax, 6, 4)
        every = len(self) // len(np.unique(self.theta))
        lines = []
        for at in range(every):
            rows = np.arange(at, len(self), every)
            rows = rows[np.argsort(self.theta[rows])]
            one = np.ptp(self.markup[rows]) < 1e-9
            name = f"markup {self.markup[rows[0]]:.3g}" if one else f"γ = {self.gamma[at]:g}"
            name = name if label is None else f"{label}, {name}"
            lines.append((name, self.theta[rows], self.inclusiveness[rows]))
        draw_lines(ax, lines, "θ", 3)
        ax.axvline(1, color="black", linewidth=0.8, linestyle="dashed")
        ax.set_ylabel("share of owners paid")
        ax.set_title(f"Who is paid by a consumer who wants {self.target:.3g}", loc="left")
        return ax


@documented(price, Threads)
def search_prices(
    values: Values | ArrayLike,
    target: float | None = None,
    *,
    share: float | None = None,
    thetas: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0),
    markups: Sequence[float] | None = None,
    gammas: Sequence[float] | None = None,
    budget: float | None = None,
    ids: Ids | None = None,
    progress: Progress = None,
) -> PriceSearch:
    """The owner's side: what the consumer's best response costs, and whom it pays, at every θ and γ.

    The owner leads and the consumer follows (a Stackelberg game): max over θ, γ of min Σ p x. Higher prices are better
    for the owner until the consumer walks away: ``budget`` says where that is.

    Parameters
    ----------
    target, share
        The value that the consumer wants, or its share of all value for sale.
    thetas
        What to try.
    markups, gammas
        How large the privacy cost is: as a part of the value of everything for sale, Σ γ φ^θ = markup · Σ φ, which
        means the same at every θ; or γ itself. Values are small numbers: for θ > 1, γ = 1 adds next to nothing to them.
    budget
        The most that the consumer would pay; None for anything.

    Examples
    --------
    >>> import datassay as da
    >>> search = da.search_prices([0.5, 0.3, 0.2, -0.1], 0.5, thetas=[0.5, 2.0], markups=[1.0])
    >>> search.bought.tolist()
    [1, 2]
    """
    if markups is not None and gammas is not None:
        raise UsageError("name markups or gammas, not both: each says how large the privacy cost is")
    sizes = DEFAULT_MARKUPS if markups is None and gammas is None else gammas if markups is None else markups
    for name, given in (("thetas", thetas), ("markups" if gammas is None else "gammas", sizes)):
        _checks.not_one_string(name, given, "numbers")
        if not _checks.is_list_of_numbers(given):
            raise UsageError(f"{name} must be a list of numbers, got {given!r}")
    if budget is not None:
        budget = _checks.number("budget", budget, above=0)
    known = worth_of(values, ids)
    sold = known.values[known.values > 0]
    if not len(sold):
        raise InputError("no record has a positive value: nothing is for sale")
    wanted = target_of(target, share, math.fsum(sold))
    thetas = [_checks.number("each of thetas", theta, at_least=0) for theta in thetas]
    if gammas is None:
        each = [_checks.number("each of markups", markup, at_least=0) for markup in sizes]  # type: ignore[union-attr]
        pairs = [(theta, _gamma(sold, theta, part)) for theta in thetas for part in each]
    else:
        pairs = [(theta, _checks.number("each of gammas", gamma, at_least=0)) for theta in thetas for gamma in gammas]
    found = []
    with Bar(progress, len(pairs), "prices") as report:
        for theta, gamma in pairs:
            found.append(price(known, theta, gamma).buy(wanted).facts())
            report(1)
    measured: dict[str, Any] = {name: np.array([one[name] for one in found]) for name in _BOUGHT}
    with np.errstate(under="ignore"):  # the privacy cost of all records for sale, as a part of their value
        markup = np.array([float(gamma * (sold**theta).sum() / sold.sum()) for theta, gamma in pairs])
    tried, sizes_tried = np.array(pairs, np.float64).T
    return PriceSearch(tried, sizes_tried, markup, **measured, target=wanted, budget=budget, method=known.method)


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
