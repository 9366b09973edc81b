"""``datassay attack``: who is exposed, how much, and what their record is worth."""

from pathlib import Path
from typing import Any

from datassay._choices import AttackName, Distance
from datassay._errors import UsageError
from datassay.cli.command import Options, Outcome, check_files, command, default, option, save
from datassay.cli.inputs import Data, Devices, Label, Reading, load_table


class Games(Options):
    """The k-NN model under attack, and how the games are played."""

    k: int | None = option("Neighbours of the k-NN model under attack ({membership_attack.k}).", "--k", "-k")
    metric: Distance | None = option("Distance ({membership_attack.metric}).")
    games: int | None = option("Games to play; the model has half of the records in each ({membership_attack.games}).")
    targets: int | None = option("Records attacked in each game ({membership_attack.targets}, or all there are).")
    shadows: int | None = option("Models of the attacker's own, at most 63 ({membership_attack.shadows}).")


@command("attack")
def attack(
    data: Data,
    label: Label = None,
    method: AttackName = option("How membership is told.", "--method", "-m", default="t-waka"),
    *,
    play: Games,
    everyone: bool = option("Attack every record in every game: exposure is then its success rate."),
    reading: Reading,
    seed: int = option("Seed of the games.", default=0),
    output: Path | None = option("Write value, exposure and quadrant: .parquet, .csv, .json.", "--output", "-o"),
    plot: Path | None = option("Draw the ROC curve, log-log: .svg, .png or .pdf."),
    quadrants: Path | None = option("Draw value against exposure, the quadrants named: .svg, .png or .pdf."),
    top: int = option("How many candidates for deletion to list.", default=10, min=0),
    run: Devices,
) -> Outcome:
    """Play membership games: who is exposed, how much, and is their record worth it?

    Exposure of a record is its self-WaKA, or with --everyone the share of games in which the attack is right about it;
    value is its k-NN Shapley value for predicting the others.

    Examples:
      datassay attack people.csv --label income --id person -o exposure.parquet

      datassay attack census --method lira --k 1 --everyone --quadrants quadrants.svg
    """
    import datassay as da
    from datassay.value import rank_chances

    check_files([data], [output], [plot, quadrants])
    if everyone and play.targets is not None:
        raise UsageError("--everyone attacks all records in every game: leave out --targets")
    table = load_table(data, label, reading.id, reading.arguments())
    games = play.given("games", "targets", "shadows") | ({"targets": None} if everyone else {})
    k = default("membership_attack", "k") if play.k is None else play.k
    near = da.Neighbours(table, **play.given("metric"), **run.given("device", "memory"))
    if run.device is None:  # values are kept no deeper than exposure looks
        near.keep(len(rank_chances(k, len(table), None)[0]), **run.given("memory"))
    how: dict[str, Any] = {"k": k} | run.arguments()
    with run.at_work():
        found = da.membership_attack(near, method=method, seed=seed, checkpoint=run.folder("attack"), **games, **how)
        values = da.knn_shapley(near, checkpoint=run.folder("values"), **how)
        exposure = found if everyone else da.self_waka(near, checkpoint=run.folder("exposure"), **how)
    joined = da.value_and_exposure(values, exposure)
    save(joined, output, quadrants, 6, 5)
    save(found, None, plot, 6, 5)
    facts, notes = found.facts() | joined.facts(), [*found.notes, *joined.notes]
    return Outcome(facts, [found.summary(), joined.summary(top)], notes, [output, plot, quadrants])
