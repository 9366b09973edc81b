"""One game, from its opening to its end."""

from dataclasses import replace

from datassay._work import Bar, Progress
from datassay.market.game.bandit import play_bandit
from datassay.market.game.moves import play_moves
from datassay.market.game.stage import Floats, GameRules, GameSetup, Track
from datassay.market.game.table import GameEnd, GameTable
from datassay.market.owner import DataOwner
from datassay.market.strategies import Strategy


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
    table = GameTable(stage, rules, owner, target, model, track, whole)
    with Bar(progress, whole, "queries") as report:
        if strategy is None:
            return play_bandit(table, report)
        return play_moves(table, strategy, report)
