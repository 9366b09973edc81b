"""``datassay attack``: who is exposed, how much, and what their record is worth."""

from pathlib import Path
from typing import Annotated, Any

import typer

from datassay._choices import AttackName, Distance, Missing, Scaling
from datassay._errors import UsageError
from datassay.cli.options import (
    BlocksOption,
    CategoricalOption,
    CheckpointOption,
    DaskOption,
    DataArgument,
    DeviceOption,
    FailIfOption,
    IgnoreOption,
    JobsOption,
    JsonOption,
    LabelOption,
    QuietOption,
    TextOption,
    bytes_for_blocks,
    check_conditions,
    check_jobs,
    check_written,
    conclude,
    draw,
    folder_for,
    load_table,
    on_cluster,
    reading_options,
    shows_progress,
)


def attack(
    data: DataArgument,
    label: LabelOption = None,
    method: Annotated[AttackName, typer.Option("--method", "-m", help="How membership is told.")] = "t-waka",
    k: Annotated[int, typer.Option("--k", "-k", help="Neighbours of the k-NN model under attack.")] = 5,
    metric: Annotated[Distance, typer.Option(help="Distance.")] = "euclidean",
    games: Annotated[int, typer.Option(help="Games to play; in each, half of the records are the model's.")] = 48,
    targets: Annotated[int | None, typer.Option(help="Records attacked in each game (100, or all there are).")] = None,
    everyone: Annotated[
        bool, typer.Option("--everyone", help="Attack every record in every game: exposure is then its success rate.")
    ] = False,
    shadows: Annotated[int, typer.Option(help="Models of the attacker's own, at most 63.")] = 16,
    id: Annotated[str | None, typer.Option("--id", help="Column that identifies a row.")] = None,
    ignore: IgnoreOption = "",
    categorical: CategoricalOption = "",
    text: TextOption = "refuse",
    missing: Annotated[
        Missing, typer.Option(help="Missing values: fill in the median or a category, or refuse.")
    ] = "impute",
    scale: Annotated[Scaling, typer.Option(help="How numbers are scaled.")] = "standard",
    seed: Annotated[int, typer.Option(help="Seed of the games.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write value, exposure and quadrant of each record: .parquet, .csv, .json."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the ROC curve, log-log: .svg, .png or .pdf.")] = None,
    quadrants: Annotated[
        Path | None, typer.Option(help="Draw value against exposure, the quadrants named: .svg, .png or .pdf.")
    ] = None,
    top: Annotated[int, typer.Option(help="How many candidates for deletion to list.", min=0)] = 10,
    jobs: JobsOption = -1,
    memory: BlocksOption = None,
    dask: DaskOption = None,
    device: DeviceOption = None,
    checkpoint: CheckpointOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """Play membership games: who is exposed, how much, and is their record worth it?

    Exposure of a record is its self-WaKA, or with --everyone the share of games in which the attack is right about it;
    value is its k-NN Shapley value for predicting the others.

    Examples:
      datassay attack people.csv --label income --id person -o exposure.parquet

      datassay attack census --method lira --k 1 --everyone --quadrants quadrants.svg
    """
    import datassay as da
    from datassay.value import rank_chances

    conditions = check_conditions(fail_if)
    check_written([output], [plot, quadrants], [], [data])
    check_jobs(jobs)
    if everyone and targets is not None:
        raise UsageError("--everyone attacks all records in every game: leave out --targets")
    if dask is not None and device is not None:
        raise UsageError("--dask and --device are two answers to who does the work; give one of them")
    table = load_table(data, label, id, reading_options(ignore, categorical, text, missing, scale))
    run: dict[str, Any] = {
        "k": k, "n_jobs": jobs, "memory": bytes_for_blocks(memory), "progress": shows_progress(quiet),
    }  # fmt: skip
    near = da.Neighbours(table, metric=metric, device=device, memory=run["memory"])
    if device is None:  # values are kept no deeper than exposure looks
        near.keep(len(rank_chances(k, len(table), None)[0]), run["memory"])
    with on_cluster(dask):
        found = da.membership_attack(
            near,
            method=method,
            games=games,
            targets=None if everyone else 100 if targets is None else targets,
            shadows=shadows,
            seed=seed,
            checkpoint=folder_for(checkpoint, "attack"),
            **run,
        )
        values = da.knn_shapley(near, checkpoint=folder_for(checkpoint, "values"), **run)
        exposure = found if everyone else da.self_waka(near, checkpoint=folder_for(checkpoint, "exposure"), **run)
    joined = da.value_and_exposure(values, exposure)
    if output is not None:
        joined.save(output)
    draw(found.plot, plot, 6, 5)
    draw(joined.plot, quadrants, 6, 5)
    conclude(
        "attack",
        found.facts() | joined.facts(),
        [found.summary(), joined.summary(top)],
        [*found.notes, *joined.notes],
        [output, plot, quadrants],
        quiet=quiet,
        as_json=as_json,
        conditions=conditions,
    )
