"""``datassay value``: what every record of a table is worth."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import typer

from datassay._choices import Distance, KnnUtility, Model, RecordScaling, Sampling, Variant
from datassay._errors import InputError, UsageError
from datassay.cli.command import (
    Options,
    Outcome,
    check_files,
    check_given,
    command,
    default,
    draw,
    given,
    option,
    parameter_of,
    save,
)
from datassay.cli.inputs import Data, Devices, Label, Reading, Stable, as_number, load_table, names_many

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from datassay.data import Table
    from datassay.results import Values
    from datassay.value import Design, Tuning

ByNeighbours = Literal["knn-shapley", "knn-banzhaf", "knn-loo", "tknn-shapley", "self-shapley", "waka", "self-waka"]
ByModel = Literal["data-shapley", "data-banzhaf", "beta-shapley", "leave-one-out", "data-oob", "layered-shapley"]
Method = Literal[ByNeighbours, ByModel]


class Nearest(Options):
    """How records are valued by nearest neighbours."""

    k: str | None = option("Number of neighbours ({knn_shapley.k}), or 'auto' for the most accurate.", "--k", "-k")
    tau: str | None = option(
        "For tknn-shapley: largest distance of a neighbour; 'auto' (default): the most accurate. For waka: "
        "the threshold of removal and addition ({waka.tau})."
    )
    variant: Variant | None = option("For waka: signed, or for removal or addition ({waka.variant}).")
    metric: Distance | None = option("Distance ({knn_shapley.metric}; for tknn-shapley {tknn_shapley.metric}).")
    utility: KnnUtility | None = option("Utility for knn-shapley, knn-loo and self-shapley ({knn_shapley.utility}).")
    balance: float | None = option("Weigh validation classes: others count this many times the smallest.")
    tolerance: float | None = option("Allow values to be off by as much, for speed; exact without.")


class Fits(Stable):
    """How records are valued by models that are fitted to coalitions of them."""

    panel = "Methods that fit a model (data-shapley and those after it)"

    model: Model | None = option("Which model is fitted (logistic-regression).")
    scoring: str | None = option("A score of scikit-learn's, such as neg_log_loss; or clipped_log_loss.")
    group_by: str | None = option("Column that names the owner of a record: value owners instead of records.")
    max_coalitions: int | None = option("Stop after so many fits ({DEFAULT_COALITIONS} if no other limit is given).")
    max_seconds: float | None = option("Stop after so much time.")
    max_width: float | None = option("Stop when every interval is narrower than this.")
    sampling: Sampling | None = option("How orders are drawn; exact visits every coalition of a few owners.")
    truncation: float | None = option("Follow an order only until the score is within this of everybody's.")
    alpha: float | None = option(
        "Of layered-shapley, the error allowed ({layered_design.alpha}); alpha of beta-shapley ({beta_shapley.alpha})."
    )
    beta: float | None = option(
        "Of layered-shapley, the chance of a larger one ({layered_design.beta}); beta of beta-shapley "
        "({beta_shapley.beta})."
    )
    c: float | None = option("For layered-shapley: a record adds at most c/k to k others.")
    design: Path | None = option("For layered-shapley: file of the drawn coalitions; read if it exists, else written.")
    cache: Path | None = option("File that keeps scores by coalition; a run cut short goes on from it.")
    convergence: Path | None = option("Draw how estimates converged: .svg, .png or .pdf.")


@command("value")
def value(
    data: Data,
    label: Label = None,
    validation: Path | None = option("File of validation records, with the same columns."),
    split: float | None = option(
        "Share of DATA to value; the rest validates. Without --validation and --split, every record "
        "is valued by all the others."
    ),
    method: Method = option("How records are valued.", "--method", "-m", default="knn-shapley"),
    *,
    near: Nearest,
    fits: Fits,
    reading: Reading,
    truth: str | None = option("A true/false column, not used as a feature: how well do low values find it?"),
    seed: int = option("Seed of --split, and of coalitions that are drawn.", default=0),
    output: Path | None = option("Write values here: .parquet, .csv or .json.", "--output", "-o"),
    plot: Path | None = option("Draw the distribution of values: .svg, .png or .pdf."),
    top: int = option("How many of the best and worst records to list.", default=5, min=0),
    streamed: bool = option(
        "Read DATA, a Parquet file, in blocks: it need not fit into memory. A folder or pattern always is."
    ),
    run: Devices,
) -> Outcome:
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
    from datassay import _checks

    if near.balance is not None:
        _checks.number("--balance", near.balance, above=0)
    convergence, design = fits.convergence, fits.design
    check_files([data, validation], [output], [plot, convergence], [design, fits.cache])
    if validation is not None and split is not None:
        raise UsageError("--validation and --split cannot go together: one of them holds the validation records")
    asked = Request(
        method, data, label, validation, split, seed, truth, reading,
        near.given() | fits.given() | run.given("checkpoint", "device"), run.arguments(), run.quiet,
    )  # fmt: skip
    check_given(method, asked.options, asked.takes)
    if truth is not None and fits.group_by is not None:
        raise UsageError("--truth is about records, and --group-by values owners: leave one of them out")
    if streamed or names_many(data):
        values, how, tuned, marked = value_streamed(asked, {"--dask": run.dask, "--device": run.device})
    else:
        with run.at_work():
            values, how, tuned, marked = value_in_memory(asked)
    if split is not None:
        values = replace(values, seed=seed)
    save(values, output, plot)
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
        import datassay as da
        from datassay.results import reading_of

        inverted = reading_of(values.method).high_is_suspicious
        found = da.detect_errors(-values.values if inverted else values, marked)
        facts |= found.facts()
        said.append(f"Finding {truth!r} by {'high' if inverted else 'low'} values: {found}.")
    interrupted = getattr(values, "stopped", None) == "interrupted"  # whatever was found in what there is
    return Outcome(facts, said, notes, [output, plot, convergence, design], typer.Exit(130) if interrupted else None)


SELF: Final = ("self-shapley", "self-waka")


@dataclass(frozen=True)
class Request:
    """What is to be valued, by what, and the options given of those that not every method has."""

    method: str
    data: str
    label: str | None
    validation: Path | None
    split: float | None
    seed: int
    truth: str | None
    reading: Reading
    options: dict[str, Any]
    run: dict[str, Any]
    quiet: bool

    @property
    def function(self) -> str:
        """The name of the function to call."""
        return self.method.replace("-", "_")

    def takes(self, option: str) -> bool:
        """Whether an option means something to the method: its function takes it."""
        return parameter_of(self.function, option) is not None

    def call(self, *data: object, **options: Any) -> "Values":
        """The values."""
        import datassay

        values: Values = getattr(datassay, self.function)(*data, **options)
        return values


class Valued(NamedTuple):
    """Values, how they were obtained, what was tuned for them, and which records are marked as faulty."""

    values: "Values"
    how: str
    tuned: "Tuning | None" = None
    marked: "NDArray[np.bool_] | None" = None


def value_in_memory(asked: Request) -> Valued:
    """The values of a table that is read as a whole."""
    from datassay import _checks
    from datassay.data import column_names, read_table

    reading = asked.reading.arguments()
    aside: list[str] = reading["ignore"]
    beside: list[str] = []
    if aside and asked.validation is not None and asked.validation.is_file() and Path(asked.data).is_file():
        # A column to ignore may be in one of the two files only.
        known, there = column_names(asked.data), column_names(asked.validation)
        beside = [name for name in aside if name in there]
        aside = [name for name in aside if name in known or name not in beside]
    apart = [name for name in (asked.truth, asked.options.get("group_by")) if name is not None]
    reading["ignore"] = [*aside, *(name for name in apart if name not in aside)]
    train = load_table(asked.data, asked.label, asked.reading.id, reading)
    held_out: Table | None = None
    if asked.validation is not None:
        held_out = read_table(asked.validation, like=train, ignore=beside, **asked.reading.given("text"))
        how = f"Validated on {len(held_out):,} records of {held_out.name}."
    elif asked.split is not None:
        _checks.number("--split", asked.split, above=0, below=1)
        train, held_out = train.split(asked.split, seed=asked.seed)
        drawn = f"(split {asked.split:g}, seed {asked.seed})"
        how = f"Validated on {len(held_out):,} records held out of {train.name} {drawn}."
    elif asked.method in SELF:
        how = f"Every record of {train.name} valued for predicting itself."
    else:
        how = f"Validated on the other records of {train.name}, each in turn."
    marked = None
    if asked.truth is not None:
        from datassay.data import truth

        marked = truth(train, asked.truth)
        if marked.all() or not marked.any():
            raise InputError(f"--truth {asked.truth!r} is {marked[0].item()} in every record; there is nothing to find")
    if asked.takes("model"):
        return Valued(_by_model(asked, train, held_out), how, None, marked)
    values, tuned = _by_neighbours(asked, train, held_out)
    return Valued(values, how, tuned, marked)


def check_threshold(options: dict[str, Any]) -> None:
    """Refuse a threshold for the variant of WaKA that has none."""
    if "tau" in options and options.get("variant", "signed") == "signed":
        raise UsageError("--tau is the threshold of --variant removal and addition")


def _by_neighbours(asked: Request, train: "Table", held_out: "Table | None") -> "tuple[Values, Tuning | None]":
    """Values by nearest neighbours; k or τ tuned where that is wanted."""
    import datassay as da

    if held_out is not None and asked.method in SELF:
        raise UsageError(f"{asked.method} values records for themselves: leave out --validation and --split")
    options = dict(asked.options)
    if asked.method == "tknn-shapley":
        options.setdefault("tau", "auto")
    k, tau, balance, metric = (options.pop(name, None) for name in ("k", "tau", "balance", "metric"))
    data: Table | da.Neighbours = train
    common = dict(asked.run)
    if "auto" in (k, tau) and "device" not in options:  # tuning and the method look at the same neighbours
        metric = default(asked.function, "metric") if metric is None else metric
        data = da.Neighbours(train, held_out, metric=metric, **given(memory=asked.run.get("memory")))
    else:
        common |= given(metric=metric) | ({"X_val": held_out} if asked.takes("X_val") else {})
    if balance is not None:
        common["weights"] = da.balance_weights((train if held_out is None else held_out).labels, balance)
    if asked.method == "waka":
        check_threshold(asked.options)
    tuned: Tuning | None = None
    if tau == "auto" and asked.method == "tknn-shapley":
        tuned = da.tune_tau(data, **common)
        options["tau"] = tuned.best
    elif tau is not None:
        options["tau"] = as_number("--tau", tau, float)
    if k == "auto":
        tuned = da.tune_k(data, **common)
        options["k"] = int(tuned.best)
    elif k is not None:
        options["k"] = as_number("--k", k, int)
    return asked.call(data, **common, **options), tuned


def _by_model(asked: Request, train: "Table", held_out: "Table | None") -> "Values":
    """Values by a model that is fitted again and again."""
    from datassay.cli.models import make_model

    if not asked.takes("X_val"):
        if held_out is not None:
            raise UsageError(f"{asked.method} needs no validation records: leave out --validation and --split")
    elif held_out is None:
        need = "name validation records with --validation, or use --split 0.8"
        raise UsageError(f"{asked.method} scores a model: {need}")
    options = {name: option for name, option in asked.options.items() if name != "convergence"}
    layered, c = asked.takes("design"), options.pop("c", None)
    constants = {name: options.pop(name) for name in ("kappa", "lam") if name in options}
    estimator = make_model(options.pop("model", None), stable=layered and c is None, **constants)
    options = {str(parameter_of(asked.function, name)): option for name, option in options.items()}
    if asked.takes("X_val"):
        options["X_val"] = held_out
    if layered:
        promise = options.keys() & {"alpha", "beta", "bound"}
        options["design"] = _design(asked, train, estimator, c, {name: options.pop(name) for name in promise})
    run = {name: option for name, option in asked.run.items() if name != "memory"}
    return asked.call(estimator, train, seed=asked.seed, **run, **options)


def _design(asked: Request, train: "Table", model: Any, c: float | None, promise: dict[str, Any]) -> "Design":
    """The design, drawn or read; what it takes is said before it starts."""
    import numpy as np

    import datassay as da
    from datassay.value import assumed_c

    path, owners = asked.options.get("design"), asked.options.get("group_by")
    if path is not None and path.exists():
        if promise or c is not None:
            raise UsageError(f"{path} holds a design already, with its own --alpha, --beta, --c and --bound")
        design = da.load_design(path)
    else:
        n = len(train) if owners is None else len(np.unique(train[owners]))
        design = da.layered_design(n, c=assumed_c(model, c), seed=asked.seed, **promise)
        if path is not None:
            design.save(path)
    if not asked.quiet:
        typer.echo(design.summary(), err=True)
    return design


STREAMED: Final = ("knn-shapley", "knn-banzhaf", "knn-loo", "tknn-shapley", "waka")


def _check_streamed(asked: Request, run: dict[str, object]) -> None:
    """Refuse, before any work, what cannot be done with records that are read in blocks."""
    from datassay.data import find_parquet

    find_parquet(asked.data)
    method, options, reading = asked.method, asked.options, asked.reading
    if method not in STREAMED:
        raise UsageError(
            f"{method} needs all records in memory; records read in blocks (a folder, a pattern or --streamed) are "
            f"valued by {', '.join(STREAMED)}"
        )
    unusable = {
        "--split": asked.split,
        "--truth": asked.truth,
        "--categorical": reading.categorical,
        "--text": reading.text not in (None, "refuse"),
        "--scale minmax": reading.scale == "minmax",
        **run,
    }
    for name, value in unusable.items():
        if value:
            raise UsageError(f"{name} is for records in memory, and these are read in blocks")
    if asked.validation is None:
        raise UsageError("records read in blocks need validation records of their own: name them with --validation")
    if asked.label is None:
        raise UsageError("name the column to predict with --label")
    if method == "tknn-shapley" and options.get("tau") in (None, "auto"):
        raise UsageError(
            "--tau must be a number here: to choose one takes all records in memory. Choose it on a sample of them"
        )
    if options.get("k") == "auto":
        raise UsageError("--k must be a number here: to choose one takes all records in memory. Choose it on a sample")
    if method == "knn-shapley" and "tolerance" not in options:
        raise UsageError(
            "exact knn-shapley needs the full ranking of all records, which cannot be put together from blocks; use "
            "knn-banzhaf, knn-loo, waka or tknn-shapley, which are exact, or give a --tolerance well below what a "
            "record is worth (all of them together: at most 1)"
        )
    if method == "waka":
        check_threshold(options)


def value_streamed(asked: Request, run: dict[str, object]) -> Valued:
    """The values of records that are read in blocks, all of them together larger than memory if need be."""
    import datassay as da
    from datassay.data import column_names, missing_column

    _check_streamed(asked, run)
    label, validation, reading = asked.label, asked.validation, asked.reading
    assert label is not None
    assert validation is not None
    features = None
    if ignored := reading.arguments()["ignore"]:
        present = column_names(asked.data)
        for name in ignored:
            if name not in present:
                raise InputError(f"{asked.data}: {missing_column(name, present)}")
        features = [name for name in present if name not in {label, reading.id, *ignored}]
    scale: RecordScaling = "none" if reading.scale == "none" else "standard"
    records = da.open_records(asked.data, label, features, reading.id, scale=scale)
    if validation.exists() and validation.resolve() in {file.path.resolve() for file in records.files}:
        raise UsageError(
            f"{validation} is one of the files of {asked.data!r}: records cannot be validated on themselves"
        )
    X_val, y_val = _validation(validation, label, list(records.features))
    options: dict[str, Any] = asked.options | asked.run
    if "balance" in options:
        options["weights"] = da.balance_weights(y_val, options.pop("balance"))
    if "tau" in options:
        options["tau"] = as_number("--tau", options["tau"], float)
    if "k" in options:
        options["k"] = as_number("--k", options["k"], int)
    values = asked.call(records, X_val=X_val, y_val=y_val, **options)
    many = f"{len(records.files):,} files" if len(records.files) > 1 else records.files[0].name
    return Valued(values, f"{many} read in blocks. Validated on {len(y_val):,} records of {validation.name}.")


def _validation(file: Path, label: str, features: list[str]) -> Any:
    """Features and labels of the validation records, in the order of the features."""
    import numpy as np

    import datassay as da

    if file.name.lower().endswith((".parquet", ".pq")):
        return da.open_records(file, label, features).read()
    table = da.read_table(file, label=label, columns=features)
    for name in features:
        if table.columns[name].kind != "numeric":
            raise InputError(f"column {name!r} of {table.name} holds no numbers, and the training records do")
    return np.column_stack([table.columns[name].data.astype(np.float64) for name in features]), table.labels
