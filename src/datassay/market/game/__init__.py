"""The disclosure game: rules and sides, the bandit, other strategies' moves, and how it went."""

from dataclasses import replace

from datassay._work import Bar, Progress
from datassay.market.game.bandit import play_bandit
from datassay.market.game.moves import play_moves
from datassay.market.game.result import UNCERTIFIED, Disclosure
from datassay.market.game.stage import MOST_QUERIES, Bounds, Floats, GameRules, GameSetup, Track, bounds_in_words
from datassay.market.game.table import INTERRUPTED, GameEnd, Table, error_in_words
from datassay.market.owner import DataOwner
from datassay.market.strategies import Strategy

__all__ = [
    "INTERRUPTED",
    "MOST_QUERIES",
    "UNCERTIFIED",
    "Bounds",
    "Disclosure",
    "GameRules",
    "GameSetup",
    "bounds_in_words",
    "error_in_words",
    "play",
]


def play(
    stage: GameSetup,
    rules: GameRules,
    owner: DataOwner,
    target: float,
    strategy: Strategy | None,
    worth: Floats | None,
    progress: Progress,
) -> GameEnd:
    """One game: by the bandit, or by any other strategy."""
    whole = stage.n * rules.t_max if rules.max_queries is None else min(rules.max_queries, stage.n * rules.t_max)
    if strategy is not None:  # others hold what was queried, or what they say they use
        rules = replace(rules, unseen="absent")
    model = stage.model(rules)
    track = Track(stage, model, worth)
    table = Table(stage, rules, owner, target, model, track, whole)
    with Bar(progress, whole, "queries") as report:
        if strategy is None:
            return play_bandit(table, report)
        return play_moves(table, strategy, report)
