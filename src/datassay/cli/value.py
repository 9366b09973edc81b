"""``datassay value``: what every record of a table is worth."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import typer

from datassay._choices import Bound, Distance, KnnUtility, Sampling, Variant
from datassay._errors import UsageError
from datassay.cli.ending import Ending, Outcome, command
from datassay.cli.models import Model
from datassay.cli.options import Options, check_applies, option
from datassay.cli.reading import Data, Label, Reading
from datassay.cli.running import Devices
from datassay.cli.streamed import check_streamed, reads_in_blocks, value_streamed
from datassay.cli.valuing import Request, value_in_memory
from datassay.cli.writing import check_written, draw

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


@dataclass(frozen=True)
class Neighbours(Options):
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

    def __post_init__(self) -> None:
        from datassay import _checks

        if self.balance is not None:
            _checks.number("--balance", self.balance, above=0)


@dataclass(frozen=True)
class Fits(Options):
    """How records are valued by models that are fitted to coalitions of them."""

    panel = "Methods that fit a model (data-shapley and those after it)"

    model: Model | None = option("Which model is fitted (logistic-regression).")
    scoring: str | None = option("A score of scikit-learn's, such as neg_log_loss; or clipped_log_loss.")
    group_by: str | None = option("Column that names the owner of a record: value owners instead of records.")
    max_coalitions: int | None = option("Stop after so many model fits (10,000 if no other limit is given).")
    max_seconds: float | None = option("Stop after so much time.")
    max_width: float | None = option("Stop when every interval is narrower than this.")
    sampling: Sampling | None = option("How orders are drawn; exact visits every coalition of a few owners.")
    truncation: float | None = option("Follow an order only until the score is within this of everybody's.")
    alpha: float | None = option(
        "For layered-shapley: the error allowed ({layered_design.alpha}). For beta-shapley: its alpha "
        "({beta_shapley.alpha})."
    )
    beta: float | None = option(
        "For layered-shapley: the chance of a larger error ({layered_design.beta}). For beta-shapley: its "
        "beta ({beta_shapley.beta})."
    )
    c: float | None = option("For layered-shapley: a record adds at most c/k to k others.")
    bound: Bound | None = option("For layered-shapley: coalitions as published, or fewer for the same promise.")
    design: Path | None = option("For layered-shapley: file of the drawn coalitions; read if it exists, else written.")
    kappa: float | None = option("For stable-logistic-regression: bound on a record's length (1).")
    lam: float | None = option("For stable-logistic-regression: strength of the penalty (1).")
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
    near: Neighbours,
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
    ending: Ending,
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
    convergence, design = fits.convergence, fits.design
    check_written([data, validation], [output], [plot, convergence], [design, fits.cache])
    if validation is not None and split is not None:
        raise UsageError("--validation and --split cannot go together: one of them holds the validation records")
    asked = Request(
        method, data, label, validation, split, seed, truth, reading,
        near.given() | fits.given() | run.given("checkpoint", "device"), run.arguments(ending.progress), ending.quiet,
    )  # fmt: skip
    check_applies(method, asked.options, asked.taken)
    if truth is not None and fits.group_by is not None:
        raise UsageError("--truth is about records, and --group-by values owners: leave one of them out")
    if reads_in_blocks(data, streamed):
        check_streamed(asked, {"--dask": run.dask, "--device": run.device})
        values, how, tuned, marked = value_streamed(asked)
    else:
        with run.at_work():
            values, how, tuned, marked = value_in_memory(asked)
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
        from datassay.evaluate import detect_errors
        from datassay.results import high_is_suspicious

        inverted = high_is_suspicious(values)
        found = detect_errors(-values.values if inverted else values, marked)
        facts |= found.facts()
        said.append(f"Finding {truth!r} by {'high' if inverted else 'low'} values: {found}.")
    interrupted = getattr(values, "stopped", None) == "interrupted"  # whatever was found in what there is
    return Outcome(facts, said, notes, [output, plot, convergence, design], typer.Exit(130) if interrupted else None)
