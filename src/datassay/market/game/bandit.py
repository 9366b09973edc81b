"""The bandit of the disclosure game: query the record of the highest upper confidence bound, and learn from it."""

import math
from collections.abc import Callable

import numpy as np

from datassay.market.game.result import REACHED
from datassay.market.game.table import LIMIT, SPENT, GameEnd, GameTable
from datassay.market.owner import RehearsingOwner


def play_bandit(table: GameTable, report: Callable[[int], None]) -> GameEnd:
    """One game by the bandit, which queries a record at a time (thesis, Algorithm 2)."""
    from datassay.market import kernels

    setup, rules, owner, model = table.setup, table.rules, table.owner, table.model
    n, d = owner.unit.shape
    state, queries, utility = model.state, owner.queries, model.utility
    learned, far = np.zeros(n), np.empty(len(setup.points_val))
    scores = np.full(n, kernels.bonus(rules.exploration, 0, rules.t_max) if rules.t_max else -math.inf)
    arms = kernels.Arms(queries, learned, scores, rules.learning_rate, rules.exploration, rules.t_max)
    every = rules.every or max(1, n // 4, table.whole // 400)
    most = max(1, setup.run.memory // 4 // (8 * d))  # rows of noise at a time
    mechanism = owner.mechanism
    # Copies that are in the centres. A rehearsal loses none.
    received = queries if isinstance(owner, RehearsingOwner) else np.zeros(n, np.int64)
    table.track(0, received, utility, learned)
    step, outcome = 0, table.opening()
    notes: tuple[str, ...] = ()
    try:
        while not outcome:
            ahead = min(every - step % every, most, table.whole - step)
            if ahead == 0:
                outcome = SPENT if step == n * rules.t_max else LIMIT
                break
            if isinstance(owner, RehearsingOwner):
                between = owner.unit, mechanism.low, mechanism.width, 1.0 / mechanism.epsilon, owner.noise(ahead)
                made, utility = kernels.play_bandit(state, arms, *between, table.target, utility, far)
            else:
                made = 0
                while made < ahead and utility < table.target:
                    best = kernels.best_arm(scores)
                    sample = owner.query([best])[0]
                    before, utility = utility, model.receive(best, sample, queries[best])
                    received[best] += 1
                    kernels.learn(arms, best, utility - before)
                    made += 1
            step += made
            report(made)
            outcome = REACHED if utility >= table.target else ""
            if outcome or step % every == 0:
                table.track(step, received, utility, learned)
    except (Exception, KeyboardInterrupt) as error:
        outcome, notes = table.cut(error, received)
        step, utility = int(queries.sum()), model.utility
    table.track(step, received, utility, learned)
    used = np.ones(n, np.bool_) if rules.unseen == "origin" else state.placed.copy()
    return GameEnd(table, received, used, learned, float(utility), outcome, notes)
