"""Re-identification: how likely people are found in what was released, and which attributes give them away.

Reference: Mathematics §8 (the thesis, chapter 1, corrected).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import Weighing
from datassay._errors import UsageError
from datassay._run import documented
from datassay.data import TableLike
from datassay.identity.attack import (
    Attacking,
    AttackRun,
    Linking,
    Orders,
    Released,
    Scored,
    lay_out,
    on_control,
    play,
    read_tables,
    schedule_of,
    with_defaults,
)
from datassay.identity.engine import semivalues, set_weights
from datassay.identity.results import Risk, RiskShapley
from datassay.results import Floats

Scenarios = Weighing | Mapping[str, Sequence[str]]


@documented(Linking, Attacking)
def reidentification_risk(
    original: TableLike,
    released: TableLike | Released,
    *,
    scenarios: Scenarios = "uniform",
    scenario_weights: Mapping[str, float] | None = None,
    control: TableLike | None = None,
    **attack: Unpack[AttackRun],
) -> Risk:
    """Re-identification risk score (RRS) of each person: how likely an attacker finds them in a release.

    An attacker who knows the attributes R of a person singles out the released records nearest on R, all ties. With μ
    and s the mean and deviation of the person's distances to their neighbours in the original, a record at distance
    d ≤ μ is linkable to the degree L = 1 − 2Φ((d − μ)/s); it tells the rest to the degree I = γ · (1 − error). The
    score of a scenario is L · max(I, ε₂), and the risk its mean over scenarios (the thesis, chapter 1, corrected).

    Parameters
    ----------
    original, released
        Tables, data frames or files with the same columns. A :class:`datassay.Release` knows whether it is synthetic.
    scenarios
        What attackers know: ``"uniform"`` (1, 2, … attributes, each number as likely), ``"binomial"`` (each set of
        attributes as likely), or named sets such as ``{"neighbour": ["age", "sex"], "marketer": ["zip", "income"]}``.
    scenario_weights
        How much each named set counts; alike if left out.
    control
        People who are in neither table: what the attack scores on them is what it scores by chance. People removed
        from the release are a control as well.

    Returns
    -------
    Risk
        ``.values`` (one risk a person), ``.mean()``, ``.of(id)``, ``.verdict()``, ``.plot()``.

    References
    ----------
    Mathematics §8, with the errata to the thesis, chapter 1.

    Examples
    --------
    >>> import datassay as da
    >>> people = da.census(300)
    >>> risk = da.reidentification_risk(people, people, people=50)
    >>> bool(0 < risk.mean() < 1)
    True
    """
    assumed = with_defaults(attack)
    orders = Orders.of(assumed)
    tables = read_tables(original, released, control)
    asked = {**assumed, **vars(orders), "scenarios": scenarios, "scenario_weights": scenario_weights}
    schedule = schedule_of(assumed, "reidentification_risk", tables, asked)
    setting = lay_out(tables, assumed, schedule, orders.seed)
    outside = on_control(setting, tables, schedule)
    d = len(setting.columns)
    if isinstance(scenarios, str):
        _checks.choice("scenarios", scenarios, get_args(Weighing))
        if scenario_weights is not None:
            raise UsageError("scenario_weights is for named scenarios")
        names = tuple(f"{r} attribute{'s' if r > 1 else ''} known" for r in range(1, d + 1))
        sets = np.array([1.0 if scenarios == "uniform" else float(math.comb(d, r)) for r in range(1, d + 1)])
        share = sets / sets.sum()
        masks = orders.masks(d)
    elif not isinstance(scenarios, Mapping):
        raise UsageError("scenarios must be 'uniform', 'binomial', or map names to lists of attributes")
    else:
        names, masks, share = _named_sets(scenarios, scenario_weights, setting.columns)
    exact = masks is not None

    def reduce(scored: Scored) -> tuple[Floats, ...]:
        scores = scored.scores
        if scored.masks is not None and isinstance(scenarios, str):  # sets of one size are averaged
            sizes = np.bitwise_count(scored.masks) - 1
            average = (np.arange(len(names))[:, None] == sizes) / np.bincount(sizes)[:, None]
            scores = np.asarray(np.einsum("rs,ndsx->ndrx", average, scores))
        draws = np.einsum("ndsx,s->ndx", scores, share)
        half = np.zeros(len(draws)) if exact else orders.half_widths(draws[..., 2])
        return draws.mean(axis=1), half, scores.mean(axis=1)

    means, half, each = play(setting, masks, orders, schedule, reduce)
    by_chance = np.empty(0) if outside is None else play(outside, masks, orders, schedule, reduce)[0][:, 2]
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
            **setting.parameters(None if exact else orders),
        },
        seed=None if exact and not isinstance(assumed["people"], int | np.integer) else orders.seed,
        notes=setting.notes,
    )


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


@documented(reidentification_risk)
def reidentification_shapley(
    original: TableLike,
    released: TableLike | Released,
    **attack: Unpack[AttackRun],
) -> RiskShapley:
    """Re-identification Shapley value of each attribute (RSV): how much it gives each person away in a release.

    The score of :func:`reidentification_risk` for what an attacker knows is a game among the attributes; an
    attribute's value is what it adds, averaged over all orders of learning them. Values of a person add up to the
    score of an attacker who knows everything; people who are not in the release have none. Knowing nothing scores 0
    (Mathematics §8).

    Returns
    -------
    RiskShapley
        ``.values`` (people × attributes), ``.mean()``, ``.of(id)``, ``.plot()``.

    Examples
    --------
    >>> import datassay as da
    >>> people = da.census(300)
    >>> found = da.reidentification_shapley(people, people, people=50)
    >>> found.values.shape
    (50, 9)
    """
    assumed = with_defaults(attack)
    orders = Orders.of(assumed)
    tables = read_tables(original, released)
    schedule = schedule_of(assumed, "reidentification_shapley", tables, {**assumed, **vars(orders)})
    setting = lay_out(tables, assumed, schedule, orders.seed)
    d = len(setting.columns)
    masks = orders.masks(d)
    exact = masks is not None

    def reduce(scored: Scored) -> tuple[Floats, ...]:
        if scored.orders is None:
            assert scored.masks is not None
            worth = np.zeros((len(scored.scores), 2**d))
            worth[:, scored.masks] = scored.scores[:, 0, :, 2]
            values = semivalues(worth, set_weights(d))
            return values, np.zeros_like(values)
        steps = np.diff(scored.scores[..., 2], axis=2, prepend=0.0)
        each = np.empty_like(steps)
        np.put_along_axis(each, scored.orders, steps, axis=2)
        return each.mean(axis=1), orders.half_widths(each)

    values, half = play(setting, masks, orders, schedule, reduce)
    half[~setting.present] = 0.0
    values[~setting.present] = 0.0
    return RiskShapley(
        values=values,
        ids=setting.ids,
        columns=setting.columns,
        present=setting.present,
        lower=None if exact else values - half,
        upper=None if exact else values + half,
        parameters=setting.parameters(None if exact else orders),
        seed=None if exact and not isinstance(assumed["people"], int | np.integer) else orders.seed,
        notes=setting.notes,
    )
