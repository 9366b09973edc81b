"""Which version of a table may leave, and what does it cost? Strategies side by side: risk, fidelity, utility."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay._run import Threads, documented
from datassay._version import __version__
from datassay._work import Bar
from datassay.data import Table, TableLike, as_table, missing_column
from datassay.identity import People, Risk, Scenarios, reidentification_risk
from datassay.release import strategies as ways
from datassay.release.figures import draw_changes, draw_risks, draw_trade_off
from datassay.release.strategies import Release
from datassay.release.utility import Utility, fidelity, predictive_utility
from datassay.results import Axes, Columns, Fact, Floats, Parameter, Result, as_facts, as_named, axes_on
from datassay.value import balance_weights, knn_shapley, waka

Strategy = str | Callable[[Table], Release]


def pareto_front(safe: Floats, useful: Floats) -> NDArray[np.bool_]:
    """Which of several choices no other one beats: none is as good in both, and better in one.

    >>> pareto_front(np.array([0.2, 0.5, 0.5]), np.array([0.9, 0.7, 0.6])).tolist()
    [True, True, False]
    """
    as_good = (safe[:, None] >= safe) & (useful[:, None] >= useful)
    better = as_good & ((safe[:, None] > safe) | (useful[:, None] > useful))
    return np.asarray(~better.any(axis=0))


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Strategies side by side; made by :func:`datassay.compare_releases`.

    Attributes
    ----------
    ids
        The strategies.
    values
        Mean risk of each.
    linkability, gain, fidelity, mcc, f1, loss
        What the risk is made of, and what the release is good for.
    risks, people
        The risk of each person under each strategy (strategies × people), and the people.
    worth
        The k-NN Shapley value of each person in each release (NaN where they are not in it), if asked for.

    Its data frames have a row for each strategy: its name, the numbers above, and ``pareto_mcc`` and
    ``pareto_fidelity`` (see :meth:`pareto`).
    """

    ROWS: ClassVar = "strategies"
    NUMBERS: ClassVar = {"risk": "values"} | as_named("linkability", "gain", "fidelity", "mcc", "f1", "loss")
    COLUMNS: ClassVar = {"strategy": "ids"} | NUMBERS

    ids: NDArray[np.str_]
    values: Floats
    linkability: Floats
    gain: Floats
    fidelity: Floats
    mcc: Floats
    f1: Floats
    loss: Floats
    risks: Floats
    people: NDArray[np.generic]
    worth: Floats | None = None
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    seed: int | None = None
    notes: tuple[str, ...] = ()
    version: str = __version__

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.ids.tolist())})"

    def of(self, strategy: str) -> dict[str, float]:
        """The numbers of one strategy."""
        found = np.flatnonzero(self.ids == strategy)
        if len(found) == 0:
            raise InputError(f"there is no strategy {strategy!r}; there are {_checks.listed(self.ids, 20)}")
        return {name: float(column[found[0]]) for name, column in self._numbers().items()}

    def _numbers(self) -> dict[str, Floats]:
        return {column: getattr(self, name) for column, name in self.NUMBERS.items()}

    def _columns(self) -> Columns:
        return super()._columns() | {f"pareto_{utility}": self.pareto(utility) for utility in ("mcc", "fidelity")}

    def pareto(self, utility: str = "mcc") -> NDArray[np.bool_]:
        """The strategies that no other beats: none is as good in risk and ``utility``, and better in one.

        ``utility`` is mcc, f1 or fidelity.
        """
        _checks.choice("utility", utility, ("mcc", "f1", "fidelity"))
        return pareto_front(1 - self.values, self._numbers()[utility])

    def individuals(self) -> dict[str, dict[str, float]]:
        """What each strategy does to single people who were in the first one: risk, value, and their order.

        For every strategy: the rank correlation of values with those of the first strategy, the range of values, the
        mean change of risk for the fifth of people of least value and for the fifth of most value, and the rank
        correlation of value and risk.
        """
        from scipy.stats import spearmanr

        if self.worth is None:
            raise UsageError("values were not asked for: compare_releases(…, individuals=True)")
        first = self.worth[0]
        if not np.isfinite(first).any():
            raise InputError("the first strategy must keep people as they are: others are compared with it")
        low, high = np.nanquantile(first, [0.2, 0.8])

        def correlation(one: Floats, other: Floats) -> float:
            return float(spearmanr(one, other).statistic) if len(one) > 2 else float("nan")

        found = {}
        for worth, risk, name in zip(self.worth, self.risks, self.ids.tolist(), strict=True):
            both = np.isfinite(worth) & np.isfinite(first)
            change = risk - self.risks[0]
            found[name] = {
                "people": float(both.sum()),
                "rank correlation with the first": correlation(first[both], worth[both]),
                "range of values": float(np.ptp(worth[both])) if both.any() else float("nan"),
                "change of risk, least valuable fifth": float(change[first <= low].mean()),
                "change of risk, most valuable fifth": float(change[first >= high].mean()),
                "rank correlation of value and risk": correlation(worth[both], risk[both]),
            }
        return found

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``people``, ``strategies``, ``lowest_risk``; and of each strategy ``risk.STRATEGY``, ``linkability``, ``gain``,
        ``fidelity``, ``mcc``, ``f1``, ``loss``, ``pareto_mcc`` and ``pareto_fidelity`` in the same way (the last two
        say that no other strategy has both less risk and more of that utility).
        """
        columns = self._columns()
        del columns["strategy"]
        found: dict[str, object] = {"people": len(self.people), "strategies": len(self)}
        found["lowest_risk"] = self.values.min()
        for i, strategy in enumerate(self.ids.tolist()):
            found |= {f"{name}.{strategy}": column[i] for name, column in columns.items()}
        return as_facts(found)

    def summary(self) -> str:
        """The strategies as a table, and which of them are worth considering."""
        width = max(8, *(len(name) for name in self.ids.tolist()))
        names = list(self._numbers())
        lines = [f"{'strategy':<{width}}" + "".join(f"{name:>13}" for name in names) + "  best trade-off"]
        front, faithful = self.pareto("mcc"), self.pareto("fidelity")
        for i, name in enumerate(self.ids.tolist()):
            marks = [word for word, mark in (("prediction", front[i]), ("fidelity", faithful[i])) if mark]
            numbers = "".join(f"{column[i]:>13.3f}" for column in self._numbers().values())
            lines.append(f"{name:<{width}}{numbers}  {', '.join(marks)}")
        lines.append(
            "Best trade-off: no other strategy is as good in risk and that utility, and better in one of them."
        )
        return self._in_words(lines)

    def plot(self, ax: Axes | None = None, utility: str = "mcc", *, label: str | None = None) -> Axes:
        """Draw utility against safety and the Pareto front; returns the axes. ``label`` is for the legend."""
        front = self.pareto(utility)
        useful, safe = self._numbers()[utility], 1 - self.values
        ax = draw_trade_off(axes_on(ax, 7, 5), useful, safe, front, self.ids.tolist(), label)
        ax.set_xlabel({"mcc": "Matthews' correlation", "f1": "F1", "fidelity": "fidelity"}[utility])
        return ax

    def plot_risks(self, ax: Axes | None = None) -> Axes:
        """Draw the distribution of people's risk under each strategy as boxes; returns the axes."""
        return draw_risks(axes_on(ax, 7, 0.4 * len(self) + 1.2), self.risks, self.ids.tolist())

    def plot_individuals(self, ax: Axes | None = None) -> Axes:
        """Draw how each strategy changes people's risk, by fifths of their value; returns the axes."""
        if self.worth is None:
            raise UsageError("values were not asked for: compare_releases(…, individuals=True)")
        return draw_changes(axes_on(ax, 7, 4.5), self.worth[0], self.risks - self.risks[0], self.ids.tolist())


def _valued_by(validation: Table | None, k: int, balance: float) -> dict[str, Any]:
    """How people are valued: for predicting the validation data if there is any, or else the others."""
    if validation is None:
        return {"k": k}
    return {"k": k, "X_val": validation, "weights": balance_weights(validation.labels, balance)}


def make_release(
    strategy: Strategy,
    table: Table,
    validation: Table | None = None,
    *,
    k: int = 5,
    balance: float = 1.0,
    seed: int = 0,
) -> Release:
    """The release that a strategy makes of a table.

    Parameters
    ----------
    strategy
        By name: ``keep``; ``k=8`` (Mondrian on all attributes); ``remove=0.25`` (at random), ``shapley=0.25`` and
        ``waka=0.25`` (those of least value for predicting the validation data); ``copula``, ``ctgan``, ``tvae``. Or a
        function of the table that returns a :class:`datassay.Release`.
    table, validation
        What is released, and whom values are to predict (the others in the table, if left out).
    k, balance
        Of values: neighbours, and how much the larger class counts, the smaller being 1.
    seed
        Seed of draws.

    Examples
    --------
    >>> import datassay as da
    >>> da.release.make_release("k=4", da.census(100))
    Release(100 records, mondrian(k=4, strict=True))
    """
    if not isinstance(strategy, str):
        made = strategy(table)
        if not isinstance(made, Release):
            raise UsageError(f"a strategy must return a Release, got {type(made).__name__}")
        return made
    name, equals, text = strategy.partition("=")
    name = name.strip()
    if not equals:
        if name == "keep":
            return ways.keep(table)
        if name in ("copula", "ctgan", "tvae"):
            return ways.synthesize(table, name, seed=seed)
    else:
        try:
            number = float(text)
        except ValueError:
            raise UsageError(f"strategy {strategy!r}: {text.strip()!r} is not a number") from None
        if name == "k":
            return ways.mondrian(table, int(number) if number.is_integer() else number)  # type: ignore[arg-type]
        if name == "remove":
            return ways.remove(table, number, seed=seed)
        if name in ("shapley", "waka"):
            value = _valued_by(validation, k, balance)
            # The utility of the thesis: it suffers less than "soft" from classes of unequal size.
            worth = knn_shapley(table, utility="fraction", **value) if name == "shapley" else waka(table, **value)
            return ways.remove(table, number, values=worth)
    raise UsageError(
        f"strategy {strategy!r} is not known; there are keep, k=8, remove=0.25, shapley=0.25, waka=0.25, copula, ctgan "
        "and tvae"
    )


@documented(reidentification_risk)
def compare_releases(
    table: TableLike,
    label: str | None = None,
    strategies: Sequence[Strategy] | Mapping[str, Strategy] = ("keep", "k=2", "k=8", "k=32", "remove=0.25", "copula"),
    *,
    test: TableLike | None = None,
    validation: TableLike | None = None,
    k: int = 5,
    balance: float = 1.0,
    people: People | None = 1000,
    individuals: bool = False,
    columns: Sequence[str] | None = None,
    seed: int = 0,
    scenarios: Scenarios = "uniform",
    permutations: int = 50,
    neighbours: int | None = None,
    **run: Unpack[Threads],
) -> Comparison:
    """Strategies of release side by side: how much risk each leaves, and how much utility.

    Each strategy is applied to the table; the release is attacked (:func:`reidentification_risk`), compared with the
    original (fidelity), and used to train a k-NN that predicts people who are in neither (Matthews' correlation, F1,
    loss; Mathematics §9).

    Parameters
    ----------
    table, label
        The table, and the column to predict (its own label if left out).
    strategies
        As :func:`datassay.release.make_release` takes them; a mapping gives them names.
    test, validation
        People to predict, and those that value-guided removal looks at. Left out, the table is split 70 : 15 : 15, and
        the strategies get the 70.
    k, balance
        Neighbours of the classifier, and of the values; how much the larger class counts in these, the smaller being 1.
    people
        Whose risk: ids, how many drawn at random, or None for everyone.
    individuals
        Also value every person in every release, for :meth:`Comparison.individuals`.
    columns
        The attributes that attackers may know and learn; all, the label among them, if left out.
    seed
        Seed of splits, draws and orders.

    Returns
    -------
    Comparison
        Risk, fidelity and utility by strategy; ``.pareto()``, ``.plot()``.

    Examples
    --------
    >>> import datassay as da
    >>> found = da.compare_releases(da.census(300), strategies=["keep", "k=8"], people=40, permutations=5)
    >>> found.of("k=8")["risk"] < found.of("keep")["risk"]
    True
    """
    given = as_table(table, text="categorical")
    if label is not None and label not in given.columns:
        raise InputError(f"label: {missing_column(label, given.columns)}")
    if label is not None:
        given = replace(given, label=label, carried=tuple(name for name in given.carried if name != label))
    if given.label is None:
        raise UsageError("name the column to predict with label")
    seed = _checks.integer("seed", seed, at_least=0)
    if test is None:
        if validation is not None:
            raise UsageError("validation goes with test: give both, or neither")
        given, valued, held_out = given.split(0.7, 0.15, 0.15, seed=seed)
        looked_at: Table | None = valued
    else:
        held_out = as_table(test, like=given, text="categorical")
        if held_out is given or (given.id and held_out.id and bool(np.isin(held_out.ids, given.ids).any())):
            raise InputError("test must be people who are not in the table: utility is measured on those never seen")
        looked_at = None if validation is None else as_table(validation, like=given, text="categorical")
    _checks.not_one_string("strategies", strategies, "")
    if isinstance(strategies, Mapping):
        named = dict(strategies)
    else:
        named = {s if isinstance(s, str) else getattr(s, "__name__", "strategy"): s for s in strategies}
    if len(named) < len(strategies):
        raise UsageError("two strategies have the same name; give them names of their own: {'name': strategy}")
    if not named:
        raise UsageError("strategies names none")
    attack: dict[str, Any] = {
        "people": people, "columns": columns, "scenarios": scenarios, "permutations": permutations,
        "neighbours": neighbours, "seed": seed, "n_jobs": run.get("n_jobs"),
    }  # fmt: skip
    risks: list[Risk] = []
    uses: list[Utility] = []
    alike, worth, notes = [], [], []
    with Bar(run.get("progress"), len(named), "strategies") as report:
        for name, strategy in named.items():
            made = make_release(strategy, given, looked_at, k=k, balance=balance, seed=seed)
            notes += [f"{name}: {note}" for note in made.notes]
            risks.append(reidentification_risk(given, made, **attack))
            uses.append(predictive_utility(made, held_out, k))
            alike.append(fidelity(given, made))
            if individuals:
                worth.append(_worth(made, looked_at, risks[-1].ids, k, balance))
            report(1)
    return Comparison(
        ids=np.array(list(named)),
        values=np.array([risk.mean() for risk in risks]),
        linkability=np.array([risk.linkability.mean() for risk in risks]),
        gain=np.array([risk.gain.mean() for risk in risks]),
        fidelity=np.array(alike),
        mcc=np.array([use.mcc for use in uses]),
        f1=np.array([use.f1 for use in uses]),
        loss=np.array([use.loss for use in uses]),
        risks=np.array([risk.values for risk in risks]),
        people=risks[0].ids,
        worth=np.array(worth) if individuals else None,
        parameters={
            "k": k,
            "balance": balance,
            "records": len(given),
            "columns": None if columns is None else ", ".join(columns),
            "neighbours": neighbours,
            "scenarios": scenarios if isinstance(scenarios, str) else "named",
            "permutations": permutations,
        },
        seed=seed,
        notes=tuple(notes),
    )


def _worth(made: Release, validation: Table | None, people: NDArray[np.generic], k: int, balance: float) -> Floats:
    """The k-NN Shapley value of these people in a release; NaN where they are not in it."""
    if made.synthetic:
        return np.full(len(people), np.nan)
    found = knn_shapley(made.table, utility="fraction", **_valued_by(validation, k, balance))
    places = {id: i for i, id in enumerate(found.ids.tolist())}
    return np.array([found.values[places[id]] if id in places else np.nan for id in people.tolist()])
