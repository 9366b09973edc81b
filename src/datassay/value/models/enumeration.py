"""All coalitions of a small game, once each: exact values."""

import math

import numpy as np

from datassay._choices import DEFAULT_COALITIONS
from datassay._errors import UsageError
from datassay._work import chunks
from datassay.results import Floats, Parameter
from datassay.value.estimate import Estimate
from datassay.value.models.coalitions import ModelGame, Task
from datassay.value.models.tally import Tally

LARGEST_ENUMERATION = 24


def is_small(game: ModelGame) -> bool:
    """Whether all coalitions are no more than what is allowed."""
    n = game.n_players
    return n <= LARGEST_ENUMERATION and 2**n <= (game.rules.max_coalitions or DEFAULT_COALITIONS)


def enumerated(game: ModelGame, method: str, chance: Floats, parameters: dict[str, Parameter]) -> Estimate:
    """All coalitions, once each: exact values."""
    n, rules = game.n_players, game.rules
    if rules.max_coalitions is not None and not rules.by_default and 2**n > rules.max_coalitions:
        raise UsageError(
            f"max_coalitions={rules.max_coalitions:,} is not enough for sampling='exact': {n:,} players have "
            f"{f'{2**n:,}' if n <= LARGEST_ENUMERATION else f'2^{n}'} coalitions"
        )
    if n > LARGEST_ENUMERATION:
        raise UsageError(
            f"{n:,} players have too many coalitions to visit all of them: sampling='exact' is for at most "
            f"{LARGEST_ENUMERATION} players"
        )
    run = Tally(game, method)
    codes = np.arange(2**n)
    players = np.arange(n)
    parts = [codes[part.start : part.stop, None] for part in chunks(2**n, min(64, game.at_once))]
    tasks = (Task("sets", (part >> players & 1).astype(np.bool_)) for part in parts)
    worth = np.empty(2**n)
    at = 0
    with run.answering(tasks, 2**n) as stream:
        for answer in stream:
            worth[at : at + len(answer.utilities)] = game.filled(answer.utilities)
            at += len(answer.utilities)
    if at < 2**n:
        run.give_up(f"all {2**n:,}")
    run.stopped = "exact"
    size = np.array([bits.bit_count() for bits in range(2**n)])
    by_size = np.array([chance[k] / math.comb(n - 1, k) for k in range(n)])  # of one coalition
    values = np.empty(n)
    for i in range(n):
        without = codes[(codes >> i & 1) == 0]
        values[i] = (by_size[size[without]] * (worth[without | (1 << i)] - worth[without])).sum()
    return run.result(values, method, parameters | {"sampling": "exact"})
