"""Partial disclosure: an owner gives out noisy copies of records, and a consumer averages them until it has enough.

Each query of a record returns x + Laplace(Δ_j/ε_j) in every feature and costs ε a feature, for at most T_max queries.
The consumer, who does not know what records are worth, chooses what to query (thesis, chapter 3; Mathematics §9).
"""

import math
from contextlib import suppress
from typing import Any, Literal, Unpack, get_args

import numpy as np

from datassay import _checks
from datassay._choices import Metric, StrategyName, Unseen, Utility
from datassay._errors import UsageError
from datassay._run import Blocks, documented
from datassay._work import check_progress
from datassay.data import ArrayLike, Ids, Labels, Points
from datassay.market.game import UNCERTIFIED, Bounds, Disclosure, GameRules, GameSetup, error_in_words, inputs_of, play
from datassay.market.strategies import USUAL, NoisyShapley, RandomSubset, Strategy, check_options
from datassay.privacy import Guarantee, Ledger, check_apart, check_ledger
from datassay.results import Parameter
from datassay.value import knn_shapley


@documented(knn_shapley)
def disclosure_game(
    X: Points,
    y: Labels | None = None,
    X_val: Points | None = None,
    y_val: Labels | None = None,
    strategy: StrategyName | Strategy = "ucb",
    epsilon: ArrayLike = 1.0,
    t_max: int = 50,
    target: float | None = None,
    *,
    k: int = 5,
    metric: Metric = "euclidean",
    utility: Utility = "votes",
    bounds: Bounds = "validation",
    share: float | None = None,
    bootstrap: int | None = None,
    exploration: float | None = None,
    learning_rate: float | None = None,
    unseen: Unseen | None = None,
    max_queries: int | None = None,
    every: int | None = None,
    diagnostics: bool = True,
    ledger: Ledger | None = None,
    seed: int | None = None,
    ids: Ids | None = None,
    **run: Unpack[Blocks],
) -> Disclosure:
    """Play the information disclosure game: what is data worth when it is revealed bit by bit?

    The owner answers each query of a record with a noisy copy, x + Laplace(Δ_j/ε_j) in every feature, at most ``t_max``
    times a record. The consumer averages the copies it gets of a record into a centre, trains a k-NN classifier on the
    centres, and chooses what to query next until the classifier is good enough on its validation points. The result
    has a ``summary()``, a ``plot()``, the ``trajectory``, and ``score(X_test, y_test)``.

    Parameters
    ----------
    X, y, X_val, y_val
        The owner's records and the consumer's validation points: arrays, data frames of numbers, or tables (encoded by
        the validation table alone, which is no secret to the consumer).
    strategy
        ``"random"``: commit to a random ``share`` of the records, query all of these in every round. ``"shapley"``:
        query everybody in every round and use the best ``share`` by k-NN Shapley values of the centres.
        ``"shapley-commit"``: the same for ``bootstrap`` rounds, then query the best alone. ``"ucb"``: a bandit that
        queries one record at a time (thesis, Algorithm 2): the highest Q + c·√(1/N)·(share of its budget left), where Q
        follows what queries of the record added to the utility. Or a function of yours from
        :class:`datassay.market.ConsumerView` to positions, or to a :class:`datassay.market.Move`; an empty list ends
        the game.
    epsilon
        ε a feature and query, one number or one for each feature; a query as a whole costs their sum.
    t_max
        Queries that each record can be asked: B_max = t_max · ε.
    target
        Utility at which the consumer stops. Left out, it is that of the records themselves, which tells about them: a
        game for real names one.
    k, metric, utility
        The classifier, and what it is judged by: ``"votes"``, the mean share of right labels among the k nearest, or
        ``"accuracy"`` of their majority.
    bounds
        Within which features lie; Δ_j is their width, and what is outside is cut off. ``"validation"``: the range of
        the validation points, which is public; where some of these are the owner's records it is not, and the guarantee
        is not certified. ``(low, high)``: numbers, or one a feature, that you know without looking at the records.
        ``"data"``: the range of the records, as published; it leaks, and the guarantee is not certified.
    share, bootstrap
        Of ``"random"``, ``"shapley"`` and ``"shapley-commit"``: the share of the records to use (0.6 if left out); of
        the last, the rounds before committing (10).
    exploration, learning_rate, unseen
        Of ``"ucb"``: c (0.1 if left out) and α (0.1); and where its model has records that were never queried, all at
        the ``"origin"`` (as in Algorithm 2; if left out) or ``"absent"``. An option that is not the strategy's is
        refused.
    max_queries
        An end to the game, beside the target and the budgets.
    every
        Steps from one row of the trajectory to the next: a query of the bandit, else a move. Left out, some hundred
        rows for the bandit, else every move.
    diagnostics
        Whether to compute what only the owner can: true values, and how far off centres are.
    ledger
        Records every query, and refuses those beyond its budget; kept for ``replace-features``, with public bounds and
        a target.
    seed
        None: noise from OpenDP, for real, at some 20 µs a number. A number makes it a *rehearsal*: the noise is
        repeatable, fast, and protects nobody; nothing of it may be given away.

    References
    ----------
    Mesana, thesis, chapter 3: Data valuation via an information disclosure game. Mathematics §9.

    Examples
    --------
    >>> import datassay as da
    >>> train, validation = da.census(80, seed=4).split(0.5)
    >>> rules = dict(strategy="shapley", epsilon=2.0, target=0.7, bounds=(-3, 3))
    >>> game = da.disclosure_game(train, X_val=validation, seed=0, **rules)
    >>> game.outcome, game.n_queries % 40
    ('target reached', 0)
    """
    bounds = tuple(bounds) if isinstance(bounds, np.ndarray) else bounds
    if isinstance(strategy, str):
        _checks.choice("strategy", strategy, get_args(StrategyName))
    elif not callable(strategy):
        raise UsageError(
            f"strategy must be one of {', '.join(get_args(StrategyName))}, or a function; got {strategy!r}"
        )
    given: dict[str, Any] = dict(zip(USUAL, (share, bootstrap, exploration, learning_rate, unseen), strict=True))
    options = check_options(strategy, given)
    chosen = {name: USUAL[name] if option is None else option for name, option in given.items()}
    rules = GameRules(
        t_max, target, k, metric, utility, chosen["unseen"], max_queries, every, chosen["exploration"],
        chosen["learning_rate"],
    )  # fmt: skip
    share = chosen["share"] = _checks.number("share", chosen["share"], above=0, at_most=1)
    bootstrap = chosen["bootstrap"] = _checks.integer("bootstrap", chosen["bootstrap"], at_least=1)
    chosen |= {name: getattr(rules, name) for name in ("exploration", "learning_rate")}
    seed = None if seed is None else _checks.integer("seed", seed, at_least=0)
    _checks.boolean("diagnostics", diagnostics)
    check_ledger(ledger)
    if ledger is not None and seed is not None:
        raise UsageError("a game with a seed is a rehearsal and has no place in a ledger; leave out seed, or ledger")
    check_progress(run.get("progress"))
    setup = GameSetup.of(inputs_of(X, y, X_val, y_val, ids), epsilon, bounds, rules.metric, run)
    if not math.isfinite(rules.t_max * setup.mechanism.cost):
        raise UsageError(f"epsilon is too large: t_max={rules.t_max} queries would cost more than can be written down")
    notes = list(setup.inputs.notes)
    # Bounds and encoding come from validation records: these are the consumer's, and must not be the owner's.
    shared = check_apart(setup.inputs, notes, features_alone=True) if seed is None else 0.0
    why = []
    if seed is not None:
        why.append("noise comes from a seed: this is a rehearsal, and nothing of it may be given away")
    if isinstance(bounds, str) and (bounds == "data" or shared > 0):
        whose = "records" if bounds == "data" else "validation points, some of which are among the records"
        why.append(f"bounds were taken from the {whose}, which leaks: give public ones, bounds=(low, high)")
    if target is None:
        why.append("the target was computed from the records: name one")
    if ledger is not None and why:
        raise UsageError(f"a ledger is for games that are certified, and this one is not: {'; '.join(why)}")
    full, worth = setup.secrets(rules) if diagnostics or target is None else (math.nan, np.full(setup.n, math.nan))
    rng = np.random.default_rng(seed)
    goal = full if rules.target is None else rules.target
    chooser: Strategy | None = None
    if strategy == "random":
        chooser = RandomSubset(setup.n, share, rng)
    elif not isinstance(strategy, str):
        chooser = strategy
    elif strategy != "ucb":
        chooser = NoisyShapley(setup.n, share, bootstrap if strategy == "shapley-commit" else None, setup.run)
    setup.try_out(rules, chooser)
    owner = setup.owner(rules.t_max, None if seed is None else rng, ledger)  # the ledger is asked from here on
    try:
        played = play(setup, rules, owner, goal, chooser, worth if diagnostics else None, run.get("progress"))
    except BaseException:
        with suppress(Exception):  # what went wrong before counts
            owner.close()
        raise
    try:
        owner.close()
    except (Exception, KeyboardInterrupt) as error:  # the game is over, and what was received is paid for
        notes.append(f"the disclosure could not be closed in the ledger, and stays open there: {error_in_words(error)}")
    name = strategy if isinstance(strategy, str) else getattr(strategy, "__name__", type(strategy).__name__)
    settings: dict[str, Parameter] = {
        "k": rules.k, "metric": metric, "utility": utility, "epsilon": setup.epsilon, "t_max": rules.t_max,
        "bounds": setup.bounds, "max_queries": rules.max_queries,
        "n_validation": len(setup.points_val), "features": setup.points.shape[1],
    }  # fmt: skip
    settings |= {option: chosen[option] for option in options}
    notes += played.notes
    if owner.clipped:
        notes.append(
            f"{owner.clipped:,} of {setup.points.size:,} entries were outside the bounds and were cut off there"
        )
    notes += [f"{UNCERTIFIED} {reason}" for reason in why]
    return Disclosure(
        values=np.asarray(setup.epsilon * owner.queries, np.float64),
        ids=setup.inputs.ids,
        labels=setup.inputs.labels,
        queries=owner.queries,
        received=played.received,
        centres=played.table.model.centres,
        used=played.used,
        scores=played.scores,
        worth=worth if diagnostics else np.full(setup.n, math.nan),
        trajectory=played.table.trajectory(),
        outcome=played.outcome,
        target=goal,
        utility=played.utility,
        full_utility=full,
        epsilon=setup.epsilon,
        t_max=rules.t_max,
        query_cost=setup.mechanism.cost,
        mechanism=setup.mechanism,
        guarantee=_promise(setup, rules, not why, "public" if seed is None else "nobody"),
        strategy=name,
        parameters=settings,
        seed=seed,
        notes=tuple(notes),
        encoder=setup.inputs.encoder,
    )


def _promise(setup: GameSetup, rules: GameRules, certified: bool, audience: Literal["public", "nobody"]) -> Guarantee:
    t_max = rules.t_max if rules.max_queries is None else min(rules.t_max, rules.max_queries)
    d, epsilons = setup.points.shape[1], setup.mechanism.epsilon
    each = f"{epsilons[0]:g}" if np.ptp(epsilons) == 0 else f"{epsilons.min():g} to {epsilons.max():g}"
    what = (
        f"at most {t_max} noisy copies a record, Laplace noise on each of {d:,} features, ε = {each} a feature, "
        f"ε = {setup.mechanism.cost:g} a copy"
    )
    total, accountant = t_max * setup.mechanism.cost, "sums over features and queries (pure differential privacy)"
    return Guarantee(what, total, 0.0, "replace-features", accountant, audience=audience, certified=certified)
