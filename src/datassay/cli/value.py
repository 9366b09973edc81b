"""``datassay value``: what every record of a table is worth."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from datassay._choices import Bound, Distance, KnnUtility, Missing, Sampling, Scaling, Variant
from datassay._errors import InputError, UsageError
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
    Model,
    QuietOption,
    TextOption,
    as_number,
    bytes_for_blocks,
    check_applies,
    check_conditions,
    check_jobs,
    check_written,
    column_list,
    conclude,
    draw,
    load_table,
    make_model,
    names_many,
    on_cluster,
    reading_options,
    shows_progress,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from datassay.data import Table
    from datassay.results import Values
    from datassay.value import Estimate, Tuning

Method = Literal[
    "knn-shapley",
    "knn-banzhaf",
    "knn-loo",
    "tknn-shapley",
    "self-shapley",
    "waka",
    "self-waka",
    "data-shapley",
    "data-banzhaf",
    "beta-shapley",
    "leave-one-out",
    "data-oob",
    "layered-shapley",
]


FITS = "Methods that fit a model (data-shapley and those after it)"


def value(
    data: DataArgument,
    label: LabelOption = None,
    validation: Annotated[Path | None, typer.Option(help="File of validation records, with the same columns.")] = None,
    split: Annotated[
        float | None,
        typer.Option(
            help="Share of DATA to value; the rest validates. Without --validation and --split, every record "
            "is valued by all the others."
        ),
    ] = None,
    method: Annotated[Method, typer.Option("--method", "-m", help="How records are valued.")] = "knn-shapley",
    k: Annotated[
        str | None,
        typer.Option("--k", "-k", help="Number of neighbours (5), or 'auto' for the most accurate."),
    ] = None,
    tau: Annotated[
        str | None,
        typer.Option(
            help="For tknn-shapley: largest distance of a neighbour; 'auto' (default): the most accurate. For waka: "
            "the threshold of removal and addition (0.5)."
        ),
    ] = None,
    variant: Annotated[Variant | None, typer.Option(help="For waka: signed, or for removal or addition.")] = None,
    metric: Annotated[
        Distance | None,
        typer.Option(help="Distance; cosine for tknn-shapley and euclidean otherwise, if left out."),
    ] = None,
    utility: Annotated[
        KnnUtility | None,
        typer.Option(help="Utility for knn-shapley, knn-loo and self-shapley; soft if left out."),
    ] = None,
    balance: Annotated[
        float | None,
        typer.Option(help="Weigh validation classes: others count this many times the smallest."),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Allow values to be off by as much, for speed; exact without.")
    ] = None,
    model: Annotated[
        Model | None,
        typer.Option(rich_help_panel=FITS, help="Which model is fitted (logistic-regression)."),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=FITS, help="A score of scikit-learn's, such as neg_log_loss; or clipped_log_loss."
        ),
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=FITS, help="Column that names the owner of a record: value owners instead of records."
        ),
    ] = None,
    max_coalitions: Annotated[
        int | None,
        typer.Option(rich_help_panel=FITS, help="Stop after so many model fits (10,000 if no other limit is given)."),
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(rich_help_panel=FITS, help="Stop after so much time.")] = None,
    max_width: Annotated[
        float | None, typer.Option(rich_help_panel=FITS, help="Stop when every interval is narrower than this.")
    ] = None,
    sampling: Annotated[
        Sampling | None,
        typer.Option(rich_help_panel=FITS, help="How orders are drawn; exact visits every coalition of a few owners."),
    ] = None,
    truncation: Annotated[
        float | None,
        typer.Option(rich_help_panel=FITS, help="Follow an order only until the score is within this of everybody's."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=FITS, help="For layered-shapley: the error allowed (0.1). For beta-shapley: its alpha (16)."
        ),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=FITS,
            help="For layered-shapley: the chance of a larger error (0.05). For beta-shapley: its beta (1).",
        ),
    ] = None,
    c: Annotated[
        float | None,
        typer.Option("--c", rich_help_panel=FITS, help="For layered-shapley: a record adds at most c/k to k others."),
    ] = None,
    bound: Annotated[
        Bound | None,
        typer.Option(
            rich_help_panel=FITS, help="For layered-shapley: coalitions as published, or fewer for the same promise."
        ),
    ] = None,
    design: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=FITS,
            help="For layered-shapley: file of the drawn coalitions; read if it exists, else written.",
        ),
    ] = None,
    kappa: Annotated[
        float | None,
        typer.Option(rich_help_panel=FITS, help="For stable-logistic-regression: bound on a record's length (1)."),
    ] = None,
    lam: Annotated[
        float | None,
        typer.Option(rich_help_panel=FITS, help="For stable-logistic-regression: strength of the penalty (1)."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=FITS, help="File that keeps scores by coalition; a run cut short goes on from it."
        ),
    ] = None,
    convergence: Annotated[
        Path | None, typer.Option(rich_help_panel=FITS, help="Draw how estimates converged: .svg, .png or .pdf.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Column that identifies a row.")] = None,
    ignore: IgnoreOption = "",
    categorical: CategoricalOption = "",
    text: TextOption = "refuse",
    missing: Annotated[
        Missing, typer.Option(help="Missing values: fill in the training median or a category, or refuse.")
    ] = "impute",
    scale: Annotated[Scaling, typer.Option(help="How numbers are scaled, fitted on training data.")] = "standard",
    truth: Annotated[
        str | None,
        typer.Option(help="A true/false column, not used as a feature: how well do low values find it?"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of --split, and of coalitions that are drawn.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write values here: .parquet, .csv or .json.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the distribution of values: .svg, .png or .pdf.")] = None,
    top: Annotated[int, typer.Option(help="How many of the best and worst records to list.", min=0)] = 5,
    streamed: Annotated[
        bool,
        typer.Option(
            "--streamed",
            help="Read DATA, a Parquet file, in blocks: it need not fit into memory. A folder or pattern always is.",
        ),
    ] = False,
    jobs: JobsOption = -1,
    memory: BlocksOption = None,
    dask: DaskOption = None,
    device: DeviceOption = None,
    checkpoint: CheckpointOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """Tell what every record is worth: read a table, value its records, write and summarise the values.

    A record is worth what it adds to the score of a model on validation records: by k-NN Shapley values, or as --method
    says.

    Examples:
      datassay value train.csv --validation val.csv --label y -o values.parquet

      datassay value people.csv --label income --id person --split 0.8 --method tknn-shapley --tau auto

      datassay value census --truth label_error

      datassay value large.parquet --label y --dask tcp://scheduler:8786 --checkpoint large.kept -o values.parquet

      datassay value large.parquet --label y --device cuda -o values.parquet

      datassay value train.csv --validation val.csv --label y --method data-shapley --model logistic-regression

      datassay value sales.csv --label churn --split 0.7 --method data-shapley --model random-forest --group-by \
owner --max-seconds 600 --cache sales.utilities -o owners.parquet

      datassay value "people/*.parquet" --validation val.parquet --label y --method tknn-shapley --tau -0.5
    """
    from dataclasses import replace

    import datassay as da
    from datassay import _checks, results

    conditions = check_conditions(fail_if)
    check_written(
        [output], [plot, convergence], [design, cache], [data, None if validation is None else str(validation)]
    )
    if validation is not None and split is not None:
        raise UsageError("--validation and --split cannot go together: one of them holds the validation records")
    check_jobs(jobs)
    if balance is not None:
        _checks.number("--balance", balance, above=0)
    given: dict[str, Any] = {
        "k": k, "tau": tau, "metric": metric, "utility": utility, "balance": balance, "variant": variant,
        "tolerance": tolerance, "model": model, "scoring": scoring, "group_by": group_by,
        "max_coalitions": max_coalitions, "max_seconds": max_seconds, "max_width": max_width, "sampling": sampling,
        "truncation": truncation, "alpha": alpha, "beta": beta, "c": c, "bound": bound, "design": design,
        "kappa": kappa, "lam": lam, "cache": cache, "convergence": convergence,
        "checkpoint": checkpoint, "device": device,
    }  # fmt: skip
    check_applies(
        method, given, BY_MODEL[method] if method in BY_MODEL else APPLIES[method] | {"metric", "checkpoint", "device"}
    )
    if dask is not None and device is not None:
        raise UsageError("--dask and --device are two answers to who does the work; give one of them")
    if truth is not None and group_by is not None:
        raise UsageError("--truth is about records, and --group-by values owners: leave one of them out")
    run: dict[str, Any] = {"n_jobs": jobs, "progress": shows_progress(quiet)}
    if streamed or names_many(data):
        from datassay.cli.streamed import check_streamed, value_streamed

        unusable: dict[str, object] = {
            "--split": split, "--truth": truth, "--categorical": categorical, "--text": text != "refuse",
            "--scale minmax": scale == "minmax",
            "--dask": dask, "--device": device,
        }  # fmt: skip
        check_streamed(data, method, label, validation, given, unusable)
        assert label is not None
        assert validation is not None
        values, how = value_streamed(
            method, data, label, id, validation, column_list(ignore), scale, given,
            run | {"memory": bytes_for_blocks(memory)},
        )  # fmt: skip
        tuned: Tuning | None = None
        marked = None
    else:
        with on_cluster(dask):
            values, how, tuned, marked = _in_memory(
                data, label, validation, split, method, given, run, id, truth, group_by, seed, memory, quiet,
                reading_options(ignore, categorical, text, missing, scale),
            )  # fmt: skip
    if split is not None:
        values = replace(values, seed=seed)
    if output is not None:
        values.save(output)
    draw(values.plot, plot)
    notes = list(values.notes)
    if convergence is not None and getattr(values, "history", None) is None:
        notes.append(f"{convergence} was not written: exact values do not converge, and there is nothing to draw")
        convergence = None
    elif convergence is not None:
        draw(values.plot_convergence, convergence)  # type: ignore[attr-defined]
    facts, said = values.facts(), [how, values.summary(top)]
    if tuned is not None:
        facts |= tuned.facts()
        said.insert(0, f"{tuned.parameter} = {tuned.best:g} predicts best: accuracy {tuned.scores.max():.1%}.")
    if marked is not None:
        inverted = results.high_is_suspicious(values)
        found = da.detect_errors(-values.values if inverted else values, marked)
        facts |= found.facts()
        said.append(f"Finding {truth!r} by {'high' if inverted else 'low'} values: {found}.")
    try:
        conclude(
            "value",
            facts,
            said,
            notes,
            [output, plot, convergence, design],
            quiet=quiet,
            as_json=as_json,
            conditions=conditions,
        )
    finally:
        if getattr(values, "stopped", None) == "interrupted":  # whatever was found in what there is
            raise typer.Exit(130)


def _in_memory(
    data: str,
    label: str | None,
    validation: Path | None,
    split: float | None,
    method: Method,
    given: dict[str, Any],
    run: dict[str, Any],
    id: str | None,
    truth: str | None,
    group_by: str | None,
    seed: int,
    memory: int | None,
    quiet: bool,
    reading: dict[str, Any],
) -> "tuple[Values, str, Tuning | None, NDArray[np.bool_] | None]":
    """The values of a table that is read as a whole, how they were obtained, what was tuned, and what is marked."""
    from datassay import _checks
    from datassay.data import column_names, read_table

    aside: list[str] = reading["ignore"]
    beside: list[str] = []
    if validation is not None and validation.is_file() and Path(data).is_file():
        # A column to ignore may be in one of the two files only.
        known, beside = column_names(data), [name for name in aside if name in column_names(validation)]
        aside = [name for name in aside if name in known or name not in beside]
    reading["ignore"] = [*aside, *(name for name in (truth, group_by) if name is not None and name not in aside)]
    train = load_table(data, label, id, reading)
    held_out: Table | None = None
    if validation is not None:
        held_out = read_table(validation, like=train, text=reading["text"], ignore=beside)
        how = f"Validated on {len(held_out):,} records of {held_out.name}."
    elif split is not None:
        _checks.number("--split", split, above=0, below=1)
        train, held_out = train.split(split, seed=seed)
        how = f"Validated on {len(held_out):,} records held out of {train.name} (split {split:g}, seed {seed})."
    elif method in SELF:
        how = f"Every record of {train.name} valued for predicting itself."
    else:
        how = f"Validated on the other records of {train.name}, each in turn."
    marked = None if truth is None else _marked(train, truth)
    tuned: Tuning | None = None
    if method in BY_MODEL:
        values: Values = _run_model(method, train, held_out, given, run | {"seed": seed}, quiet)
    else:
        values, tuned = _run(method, train, held_out, given, run | {"memory": bytes_for_blocks(memory)})
    return values, how, tuned, marked


def _marked(table: "Table", name: str) -> "NDArray[np.bool_]":
    from datassay.data import truth

    marked = truth(table, name)
    if marked.all() or not marked.any():
        raise InputError(f"--truth {name!r} is {marked[0].item()} in every record; there is nothing to find")
    return marked


# The options that mean something to each method, beside those of the data and of the run.
APPLIES = {
    "knn-shapley": {"k", "utility", "tolerance", "balance", "validation"},
    "knn-banzhaf": {"k", "tolerance", "balance", "validation"},
    "knn-loo": {"k", "utility", "balance", "validation"},
    "tknn-shapley": {"tau", "balance", "validation"},
    "self-shapley": {"k", "utility", "tolerance"},
    "waka": {"k", "tau", "variant", "tolerance", "balance", "validation"},
    "self-waka": {"k", "tolerance"},
}
_FITS = {"model", "scoring", "group_by", "kappa", "lam", "cache", "checkpoint"}
_STOPS = {"max_coalitions", "max_seconds", "max_width", "convergence"}
BY_MODEL = {
    "data-shapley": {*_FITS, *_STOPS, "sampling", "truncation"},
    "data-banzhaf": {*_FITS, *_STOPS, "sampling"},
    "beta-shapley": {*_FITS, *_STOPS, "sampling", "truncation", "alpha", "beta"},
    "leave-one-out": _FITS,
    "data-oob": {*_STOPS, "model", "group_by", "kappa", "lam"},
    "layered-shapley": {*_FITS, "alpha", "beta", "c", "bound", "design"},
}
SELF = ("self-shapley", "self-waka")


def _run(
    method: Method, train: "Table", held_out: "Table | None", given: dict[str, Any], run: dict[str, Any]
) -> "tuple[Values, Tuning | None]":
    """Call the method with the options given, tuning k or tau where asked."""
    import datassay as da

    if held_out is not None and method in SELF:
        raise UsageError(f"{method} values records for themselves: leave out --validation and --split")
    metric: Distance = given["metric"] or ("cosine" if method == "tknn-shapley" else "euclidean")
    arguments: dict[str, Any] = dict(run)
    data: Table | da.Neighbours = train
    is_tuned = given["tau"] in (None, "auto") if method == "tknn-shapley" else given["k"] == "auto"
    if is_tuned and given["device"] is None:  # tuning and the method look at the same neighbours
        data = da.Neighbours(train, held_out, metric=metric, memory=run["memory"])
    else:
        arguments["metric"] = metric
        if "validation" in APPLIES[method]:
            arguments["X_val"] = held_out
    if "validation" in APPLIES[method] and given["balance"] is not None:
        labels = (train if held_out is None else held_out).labels
        arguments["weights"] = da.balance_weights(labels, given["balance"])
    tuned: Tuning | None = None
    if method == "waka" and given["tau"] is not None:
        if given["variant"] in (None, "signed"):
            raise UsageError("--tau is the threshold of --variant removal and addition")
        arguments["tau"] = as_number("--tau", given["tau"], float)
    if method == "tknn-shapley":
        if is_tuned:
            tuned = da.tune_tau(data, **arguments)
            arguments["tau"] = tuned.best
        else:
            arguments["tau"] = as_number("--tau", given["tau"], float)
    else:
        if is_tuned:
            tuned = da.tune_k(data, **arguments)
            arguments["k"] = int(tuned.best)
        else:
            arguments["k"] = 5 if given["k"] is None else as_number("--k", given["k"], int)
    for name in ("utility", "tolerance", "variant", "checkpoint", "device"):
        if given[name] is not None:
            arguments[name] = given[name]
    values: Values = getattr(da, method.replace("-", "_"))(data, **arguments)
    return values, tuned


def _run_model(
    method: Method,
    train: "Table",
    held_out: "Table | None",
    given: dict[str, Any],
    run: dict[str, Any],
    quiet: bool,
) -> "Estimate":
    """Call a method that fits a model, with the options given."""
    import datassay as da

    if method == "data-oob":
        if held_out is not None:
            raise UsageError("data-oob needs no validation records: leave out --validation and --split")
    elif held_out is None:
        raise UsageError(f"{method} scores a model: name validation records with --validation, or use --split 0.8")
    estimator = make_model(given["model"], given["kappa"], given["lam"], given["c"], method == "layered-shapley")
    arguments: dict[str, Any] = dict(run)
    for name in ("scoring", "max_seconds", "max_width", "truncation", "alpha", "beta", "cache", "checkpoint"):
        if given[name] is not None:
            arguments[name] = given[name]
    for name in ("sampling", "bound"):
        if given[name] is not None:
            arguments[name] = given[name]
    if given["max_coalitions"] is not None:
        arguments["max_bags" if method == "data-oob" else "max_coalitions"] = given["max_coalitions"]
    if given["group_by"] is not None:
        arguments["groups"] = given["group_by"]
    if method != "data-oob":
        arguments["X_val"] = held_out
    if method == "layered-shapley":
        _layered_arguments(arguments, estimator, train, given, quiet)
    values: Estimate = getattr(da, method.replace("-", "_"))(estimator, train, **arguments)
    return values


def _layered_arguments(
    arguments: dict[str, Any], estimator: Any, train: "Table", given: dict[str, Any], quiet: bool
) -> None:
    """Draw or read the design, and say what it takes before it starts."""
    import numpy as np

    import datassay as da
    from datassay.value import assumed_c

    n = len(train) if given["group_by"] is None else len(np.unique(train[given["group_by"]]))
    promise = {name: arguments.pop(name) for name in ("alpha", "beta", "bound") if name in arguments}
    path = given["design"]
    if path is not None and path.exists():
        if promise or given["c"] is not None:
            raise UsageError(f"{path} holds a design already, with its own --alpha, --beta, --c and --bound")
        arguments["design"] = da.load_design(path)
    else:
        drawn = da.layered_design(n, c=assumed_c(estimator, given["c"]), seed=arguments["seed"], **promise)
        arguments["design"] = drawn
        if path is not None:
            drawn.save(path)
    if not quiet:
        typer.echo(arguments["design"].summary(), err=True)
