"""``datassay value``: what every record of a table is worth."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datassay._errors import InputError
from datassay.cli.options import (
    CategoricalOption,
    IgnoreOption,
    JobsOption,
    LabelOption,
    MemoryOption,
    Metric,
    Missing,
    QuietOption,
    Scale,
    Text,
    TextOption,
    as_number,
    check_jobs,
    column_list,
    draw,
    load_table,
    reading_options,
    refuse_inputs,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from datassay.data import Table
    from datassay.results import Values
    from datassay.value import Tuning

EXAMPLES = """
Examples:

  datassay value train.csv --validation val.csv --label y -o values.parquet

  datassay value people.csv --label income --id person --split 0.8 --method tknn-shapley --tau auto

  datassay value census --truth label_error
"""


class Method(StrEnum):
    """Methods by the names of the command line."""

    KNN_SHAPLEY = "knn-shapley"
    KNN_BANZHAF = "knn-banzhaf"
    KNN_LOO = "knn-loo"
    TKNN_SHAPLEY = "tknn-shapley"
    SELF_SHAPLEY = "self-shapley"
    WAKA = "waka"
    SELF_WAKA = "self-waka"


class Utility(StrEnum):
    """What a coalition of records is worth."""

    SOFT = "soft"
    FRACTION = "fraction"


class Variant(StrEnum):
    """What of a record's influence on the loss counts."""

    SIGNED = "signed"
    REMOVAL = "removal"
    ADDITION = "addition"


def value(
    data: Annotated[str, typer.Argument(help="A CSV or Parquet file, or the name of a data set (datassay datasets).")],
    label: LabelOption = None,
    validation: Annotated[Path | None, typer.Option(help="File of validation records, with the same columns.")] = None,
    split: Annotated[
        float | None,
        typer.Option(
            help="Share of DATA to value; the rest validates. Without --validation and --split, every record "
            "is valued by all the others."
        ),
    ] = None,
    method: Annotated[Method, typer.Option("--method", "-m", help="How records are valued.")] = Method.KNN_SHAPLEY,
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
        Metric | None,
        typer.Option(help="Distance; cosine for tknn-shapley and euclidean otherwise, if left out."),
    ] = None,
    utility: Annotated[
        Utility | None,
        typer.Option(help="Utility for knn-shapley, knn-loo and self-shapley; soft if left out."),
    ] = None,
    balance: Annotated[
        float | None,
        typer.Option(help="Weigh validation classes: others count this many times the smallest."),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Allow values to be off by as much, for speed; exact without.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Column that identifies a row.")] = None,
    ignore: IgnoreOption = "",
    categorical: CategoricalOption = "",
    text: TextOption = Text.REFUSE,
    missing: Annotated[
        Missing, typer.Option(help="Missing values: fill in the training median or a category, or refuse.")
    ] = Missing.IMPUTE,
    scale: Annotated[Scale, typer.Option(help="How numbers are scaled, fitted on training data.")] = Scale.STANDARD,
    truth: Annotated[
        str | None,
        typer.Option(help="A true/false column, not used as a feature: how well do low values find it?"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of --split.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write values here: .parquet, .csv or .json.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the distribution of values: .svg, .png or .pdf.")] = None,
    top: Annotated[int, typer.Option(help="How many of the best and worst records to list.", min=0)] = 5,
    jobs: JobsOption = -1,
    memory: MemoryOption = 512,
    quiet: QuietOption = False,
) -> None:
    """Tell what every record is worth: read a table, value its records, write and summarise the values."""
    from dataclasses import replace

    from datassay import _checks, results
    from datassay.data import column_names, read_table
    from datassay.evaluate import detect_errors

    if output is not None:
        results.check_output(output)
    if plot is not None:
        results.check_figure(plot)
    refuse_inputs([output, plot], [data, None if validation is None else str(validation)])
    if validation is not None and split is not None:
        raise InputError("--validation and --split cannot go together: one of them holds the validation records")
    check_jobs(jobs)
    if balance is not None:
        _checks.number("--balance", balance, above=0)
    aside = column_list(ignore)
    beside: list[str] = []
    if validation is not None and validation.is_file() and Path(data).is_file():
        # A column to ignore may be in one of the two files only.
        known, beside = column_names(data), [name for name in aside if name in column_names(validation)]
        aside = [name for name in aside if name in known or name not in beside]
    reading = reading_options(ignore, categorical, text, missing, scale)
    reading["ignore"] = [*aside, *([] if truth is None else [truth])]
    train = load_table(data, label, id, reading)
    held_out: Table | None = None
    if validation is not None:
        held_out = read_table(validation, like=train, text=text.value, ignore=beside)
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
    given = {"k": k, "tau": tau, "metric": metric, "utility": utility, "balance": balance, "variant": variant}
    given["tolerance"] = tolerance
    values, tuned = _run(
        method,
        train,
        held_out,
        given,
        {"n_jobs": jobs, "memory": memory * 2**20, "progress": not quiet and sys.stderr.isatty()},
    )
    if split is not None:
        values = replace(values, seed=seed)
    if output is not None:
        values.save(output)
    draw(values.plot, plot)
    if quiet:
        return
    if tuned is not None:
        typer.echo(f"{tuned.parameter} = {tuned.best:g} predicts best: accuracy {tuned.scores.max():.1%}.")
    typer.echo(how)
    typer.echo(values.summary(top))
    if marked is not None:
        inverted = results.high_is_suspicious(values)
        found = detect_errors(-values.values if inverted else values, marked)
        typer.echo(f"Finding {truth!r} by {'high' if inverted else 'low'} values: {found}.")
    for written in (output, plot):
        if written is not None:
            typer.echo(f"Written: {written}")


value.__doc__ = f"{value.__doc__}\n{EXAMPLES}"


def _marked(table: "Table", name: str) -> "NDArray[np.bool_]":
    from datassay.data import truth

    marked = truth(table, name)
    if marked.all() or not marked.any():
        raise InputError(f"--truth {name!r} is {marked[0].item()} in every record; there is nothing to find")
    return marked


# The options that mean something to each method, beside those of the data and of the run.
APPLIES = {
    Method.KNN_SHAPLEY: {"k", "utility", "tolerance", "balance", "validation"},
    Method.KNN_BANZHAF: {"k", "tolerance", "balance", "validation"},
    Method.KNN_LOO: {"k", "utility", "balance", "validation"},
    Method.TKNN_SHAPLEY: {"tau", "balance", "validation"},
    Method.SELF_SHAPLEY: {"k", "utility", "tolerance"},
    Method.WAKA: {"k", "tau", "variant", "tolerance", "balance", "validation"},
    Method.SELF_WAKA: {"k", "tolerance"},
}
SELF = (Method.SELF_SHAPLEY, Method.SELF_WAKA)


def _run(
    method: Method, train: "Table", held_out: "Table | None", given: dict[str, Any], run: dict[str, Any]
) -> "tuple[Values, Tuning | None]":
    """Call the method with the options given, tuning k or tau where asked."""
    import datassay as da

    for name, option in given.items():
        if option is not None and name != "metric" and name not in APPLIES[method]:
            raise InputError(f"--{name} does not apply to {method.value}")
    if held_out is not None and method in SELF:
        raise InputError(f"{method.value} values records for themselves: leave out --validation and --split")
    metric = given["metric"] or ("cosine" if method is Method.TKNN_SHAPLEY else "euclidean")
    arguments: dict[str, Any] = {"metric": metric, **run}
    if "validation" in APPLIES[method]:
        arguments["X_val"] = held_out
        if given["balance"] is not None:
            labels = (train if held_out is None else held_out).labels
            arguments["weights"] = da.balance_weights(labels, given["balance"])
    tuned: Tuning | None = None
    if method is Method.WAKA and given["tau"] is not None:
        if given["variant"] in (None, Variant.SIGNED):
            raise InputError("--tau is the threshold of --variant removal and addition")
        arguments["tau"] = as_number("--tau", given["tau"], float)
    if method is Method.TKNN_SHAPLEY:
        if given["tau"] in (None, "auto"):
            tuned = da.tune_tau(train, **arguments)
            arguments["tau"] = tuned.best
        else:
            arguments["tau"] = as_number("--tau", given["tau"], float)
    else:
        if given["k"] == "auto":
            tuned = da.tune_k(train, **arguments)
            arguments["k"] = int(tuned.best)
        else:
            arguments["k"] = 5 if given["k"] is None else as_number("--k", given["k"], int)
    for name in ("utility", "tolerance", "variant"):
        if given[name] is not None:
            arguments[name] = given[name]
    values: Values = getattr(da, method.value.replace("-", "_"))(train, **arguments)
    return values, tuned
