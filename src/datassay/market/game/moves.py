"""One game, by the bandit or in moves: a strategy says what to query and what to use, and the game answers."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datassay._errors import InputError
from datassay._work import Bar, Progress
from datassay.market.game.bandit import play_bandit
from datassay.market.game.result import REACHED
from datassay.market.game.setup import GameRules, GameSetup
from datassay.market.game.table import LIMIT, SPENT, STOPPED, GameEnd, GameTable, blame_on, error_in_words
from datassay.market.owner import DataOwner, Floats, Ints, positions
from datassay.market.strategies import ConsumerView, Move, NoisyShapley, RandomSubset, Strategy


def play(
    setup: GameSetup,
    rules: GameRules,
    owner: DataOwner,
    target: float,
    strategy: Strategy | None,
    worth: Floats | None,
    progress: Progress,
) -> GameEnd:
    """One game: by the bandit, or by any other strategy."""
    whole = setup.n * rules.t_max if rules.max_queries is None else min(rules.max_queries, setup.n * rules.t_max)
    if strategy is not None:  # others hold what was queried, or what they say they use
        rules = replace(rules, unseen="absent")
    table = GameTable(setup, rules, owner, target, worth, setup.model(rules), whole)
    with Bar(progress, whole, "queries") as report:
        return play_bandit(table, report) if strategy is None else _play_moves(table, strategy, report)


def _play_moves(table: GameTable, strategy: Strategy, report: Callable[[int], None]) -> GameEnd:
    """One game by any other strategy, which names at every move what to query and what to use."""
    setup, rules, owner, model = table.setup, table.rules, table.owner, table.model
    name = getattr(strategy, "__name__", type(strategy).__name__)
    inputs, queries = setup.inputs, owner.queries
    utility, step, at, moving = model.utility, 0, 0, True  # moves made, and the number of the one being made
    used = np.zeros(setup.n, np.bool_)
    every = rules.every or 1
    # A strategy is the consumer's: it gets copies, so that it cannot change whose record is charged.
    seen = {"labels": inputs.labels, "ids": inputs.ids, "X_val": setup.points_val, "y_val": inputs.labels_val}
    copies: dict[str, Any] = {name: _read_only(array.copy()) for name, array in seen.items()}
    view = partial(ConsumerView, centres=_read_only(model.centres), **copies, k=rules.k, metric=rules.metric)
    idea = _idea(strategy, setup.n)
    held = np.zeros(setup.n, np.int64)  # copies that are in the centres
    table.track(0, held, utility, idea)
    outcome = table.opening()
    notes: tuple[str, ...] = ()
    ours = isinstance(strategy, RandomSubset | NoisyShapley)
    blame: tuple[str, int] | None = None

    @contextmanager
    def their_turn() -> Iterator[None]:
        """What fails here is the strategy's fault, unless the strategy is one of ours."""
        nonlocal blame
        try:
            yield
        except BaseException:
            blame = None if ours else (name, at)
            raise

    at_once = max(1, setup.run.memory // (8 * setup.points.shape[1]))
    try:
        while not outcome:
            left = table.whole - int(queries.sum())
            if left == 0:
                outcome = LIMIT if (owner.remaining > 0).any() else SPENT
                break
            at = step
            with their_turn():
                move = strategy(view(step=step, queries=queries.copy(), remaining=owner.remaining, utility=utility))
                move = move if isinstance(move, Move) else Move(move)
                with _blaming(name, at):
                    asked = owner.check(move.query)
            if len(asked) == 0:
                outcome = SPENT if ours else STOPPED
                break
            moving = moving and move.use is None
            for part, noisy in owner.answer(asked[:left], at_once):
                held[part] += 1
                if moving:
                    for i, copy in zip(part.tolist(), noisy, strict=True):
                        utility = model.receive(i, copy, held[i])
                else:
                    model.centres[part] += (noisy - model.centres[part]) / held[part, None]
                report(len(part))
            step += 1
            used = held > 0
            if not moving:
                with their_turn():
                    use = move.use
                    if callable(use):
                        use = use(view(step=step, queries=queries.copy(), remaining=owner.remaining, utility=utility))
                    if use is not None:
                        used = _as_used(use, queries, name, at, cut_short=len(asked) > left)
                utility = setup.evaluate(model.centres, np.flatnonzero(used), rules)
            with their_turn():
                idea = _idea(strategy, setup.n)
            outcome = REACHED if utility >= table.target else ""
            if outcome or step % every == 0:
                table.track(step, held, utility, idea)
    except (Exception, KeyboardInterrupt) as error:
        outcome, notes = table.cut(error, held, blame)
        used = used & (held > 0) if used.any() and not moving else held > 0
        try:
            utility = setup.evaluate(model.centres, np.flatnonzero(used), rules)
        except (Exception, KeyboardInterrupt) as again:
            utility = math.nan
            notes += (f"the utility of what was received is not known: {error_in_words(again)}",)
        step += int(table.rows[-1][1] < queries.sum())
    table.track(step, held, utility, idea)
    scores = np.full(setup.n, math.nan) if idea is None else idea
    return GameEnd(table, held, used, scores, utility, outcome, notes)


def _idea(strategy: Strategy, n: int) -> Floats | None:
    """What a strategy thinks of the records, if it says so in ``scores``."""
    given = getattr(strategy, "scores", None)
    if given is None:
        return None
    try:
        scores = np.array(given, np.float64)
    except (TypeError, ValueError):
        scores = np.empty(0)
    if scores.shape != (n,):
        raise InputError(f"scores of a strategy must be {n} numbers, one a record")
    return scores


@contextmanager
def _blaming(name: str, step: int) -> Iterator[None]:
    """Say which strategy was wrong, and when."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{blame_on(name, step)}{error}") from None


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    seen = array.view()
    seen.setflags(write=False)
    return seen


def _as_used(use: ArrayLike, queries: Ints, name: str, step: int, cut_short: bool) -> NDArray[np.bool_]:
    """Who is in the model. A move that the query limit cut short goes without those it did not come to."""
    used = np.zeros(len(queries), np.bool_)
    with _blaming(name, step):
        used[positions(use, len(queries))] = True
    if cut_short:
        return np.asarray(used & (queries > 0))
    if (used & (queries == 0)).any():
        first = int((used & (queries == 0)).argmax())
        raise InputError(f"{blame_on(name, step)}the record at position {first} was never queried")
    return used
