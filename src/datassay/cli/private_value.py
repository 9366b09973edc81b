"""``datassay private-value``: tell every owner what their record is worth, under differential privacy."""

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument

from datassay._choices import Constants, Distance, NoiseKind, Relation, ReleaseKind
from datassay._errors import InputError, UsageError
from datassay.cli.command import (
    Options,
    Outcome,
    check_files,
    check_given,
    command,
    default,
    option,
    parameter_of,
    save,
)
from datassay.cli.inputs import Blocks, Label, ReadingApart, Stable, as_number, complete_data
from datassay.cli.ledger import Budget
from datassay.cli.models import make_model

if TYPE_CHECKING:
    from datassay.data import Table
    from datassay.privacy import PrivateValues

Method = Literal["tknn-shapley", "knn-shapley", "layered-shapley"]
LAYERED: Method = "layered-shapley"


class Promise(Options):
    """What is promised to every owner."""

    epsilon: float | None = option(
        "Promise ε: smaller is more private ({private_tknn_shapley.epsilon}).", "--epsilon", "-e"
    )
    delta: float | None = option("Promise δ: keep it well below 1/N ({private_tknn_shapley.delta}).", "--delta", "-d")
    relation: Relation | None = option(
        "What ε is about: one record added or removed (if left out), or one replaced (for layered-shapley). "
        "--neighbours is its earlier name."
    )
    neighbours: Relation | None = option("The earlier name of --relation.", hidden=True)
    sampling: float | None = option(
        "Chance with which a record is counted at a validation point; less needs less noise "
        "({private_tknn_shapley.sampling})."
    )


class Details(Options):
    """Options that not every method has."""

    tau: str | None = option(
        "Largest distance of a neighbour; 'auto' (default): the most accurate on the public records."
    )
    release: ReleaseKind | None = option(
        "What is published: the disjoint histogram, or the paper's three counts ({private_tknn_shapley.release})."
    )
    geometry: bool = option("Use that a record can be near only so many validation points.")
    k: int | None = option("For knn-shapley: number of neighbours ({private_knn_shapley.k}).", "--k", "-k")
    metric: Distance | None = option(
        "Distance ({private_knn_shapley.metric}; for tknn-shapley {private_tknn_shapley.metric})."
    )
    classes: int | None = option("Number of classes, if the public records do not have all of them.")


class Layered(Stable):
    """Options of layered-shapley alone."""

    panel = "For layered-shapley"
    alpha: float | None = option("Sampling error allowed ({layered_design.alpha}).")
    beta: float | None = option("Chance of a larger sampling error ({layered_design.beta}).")
    design: Path | None = option("File of coalitions drawn before; it may be public.")
    noise: NoiseKind | None = option("Certified, or as published (which no proof supports).")
    constants: Constants | None = option("Stability on this validation set, or textbook.")
    recipients: int | None = option(
        "Say what so many colluding recipients face ({private_layered_shapley.recipients})."
    )
    at_least: float | None = option("Refuse, with nothing spent, below this predicted rank correlation.")
    pilot: Path | None = option("PUBLIC file of records to predict the quality from.")


@command("private-value")
def private_value(
    data: Annotated[
        str,
        Argument(
            help="The private records: a CSV or Parquet file, or the name of a data set.", autocompletion=complete_data
        ),
    ],
    label: Label = None,
    *,
    reading: ReadingApart,
    seed: int = option("Seed of --split. Noise has no seed.", default=0),
    promise: Promise,
    method: Method = option("How records are valued.", "--method", "-m", default="tknn-shapley"),
    details: Details,
    layered: Layered,
    budget: Budget,
    output: Path | None = option("The operator's file: .parquet, .json or .csv.", "--output", "-o"),
    owners: Path | None = option("New folder for one small JSON file an owner: their value and the guarantee."),
    plot: Path | None = option("Draw the distribution of values: .svg, .png or .pdf."),
    run: Blocks,
) -> Outcome:
    """Tell every owner what their record is worth without leaking anybody else's: values under differential privacy.

    The validation records must be public. What is told to one owner says next to nothing of any other; --ledger keeps
    account of what all releases together give away.

    Examples:
      datassay private-value people.csv --validation public.csv --label income --id person --epsilon 0.5 -o \
operator.parquet

      datassay private-value people.csv --validation public.csv --label income --id person --ledger market.ledger \
--budget-epsilon 2 --budget-delta 1e-5 --owners owners/

      datassay private-value census --split 0.9

      datassay private-value people.csv --validation public.csv --label income --method layered-shapley --at-least 0.5
    """
    from datassay import results

    if owners is not None:
        results.check_new_folder(owners)
    check_files([data, reading.validation, layered.pilot], [output], [plot], [owners, budget.ledger])
    if promise.neighbours is not None:
        if promise.relation is not None:
            raise UsageError("--neighbours is the earlier name of --relation: give one of them")
        promise = replace(promise, relation=promise.neighbours, neighbours=None)
    private, public = reading.tables(data, label, seed)
    relation = promise.relation or ("replace" if method == LAYERED else default("private_tknn_shapley", "relation"))
    delta = default("private_tknn_shapley", "delta") if promise.delta is None else promise.delta
    ledger = budget.open(delta, relation)
    options = details.given() | layered.given()
    check_given(method, options, partial(parameter_of, f"private_{method.replace('-', '_')}"))
    arguments = run.arguments() | {"ledger": ledger}
    if method == LAYERED:
        arguments["seed"] = seed
        values = _layered(private, public, promise, options, arguments, run.quiet)
    else:
        values = _by_neighbours(method, private, public, promise.given() | options, arguments)
    save(values, output, plot)
    if owners is not None:
        values.save_owners(owners, progress=run.progress)
    facts, said = values.facts(), [f"Public: {len(public):,} validation records of {public.name}.", values.summary()]
    if ledger is not None:
        facts |= ledger.facts()
        said.append(
            f"Ledger {ledger.path}: ε = {ledger.spent():.4g} of {ledger.epsilon:g} spent at δ = {ledger.delta:g} "
            f"({ledger.relation})."
        )
    else:
        said.append("No ledger was asked (--ledger): whoever releases again must add up the costs by themselves.")
    return Outcome(facts, said, values.notes, [output, owners, plot])


def _by_neighbours(
    method: Method, private: "Table", public: "Table", options: dict[str, Any], run: dict[str, Any]
) -> "PrivateValues":
    import datassay as da

    if method == "knn-shapley":
        return da.private_knn_shapley(private, X_val=public, **options, **run)
    tau = options.pop("tau", "auto")
    if tau == "auto":  # public records among themselves: the private ones have no say
        if len(public) < 2:
            raise InputError(f"{public.name} has one row, too few to choose --tau by; name it")
        how = {name: value for name, value in (options | run).items() if name in ("metric", "n_jobs", "memory")}
        options["tau"] = da.tune_tau(public, **how).best
    else:
        options["tau"] = as_number("--tau", tau, float)
    if "classes" in options:
        options["n_classes"] = options.pop("classes")
    return da.private_tknn_shapley(private, X_val=public, **options, **run)


def _layered(
    private: "Table", public: "Table", promise: Promise, options: dict[str, Any], run: dict[str, Any], quiet: bool
) -> "PrivateValues":
    """Say what to expect, from public records alone; then release."""
    import datassay as da
    from datassay.data import read_table

    if promise.relation == "add-remove":
        raise UsageError("layered-shapley promises its ε for one record replaced: --relation replace")
    if promise.sampling not in (None, 1):
        raise UsageError("--sampling does not apply to layered-shapley")
    constants = {name: options.pop(name) for name in ("kappa", "lam") if name in options}
    model = make_model(stable=True, **constants)
    later = {name: options.pop(name) for name in ("recipients", "at_least") if name in options}
    options |= promise.given("epsilon") | {"n_jobs": run["n_jobs"], "seed": run["seed"]}
    if "design" in options:
        options["design"] = da.load_design(options["design"])
    if "pilot" in options:
        options["pilot"] = read_table(options["pilot"], like=public)
    plan = da.plan_private_layered(model, len(private), public, **options)
    if not quiet:
        typer.echo(f"Before anything is spent: {plan}.", err=True)
        if plan.is_low:
            typer.echo(f"Warning: {plan.warning()}.", err=True)
    options |= later | promise.given("delta") | {"ledger": run["ledger"], "progress": run["progress"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", da.LowUtilityWarning)  # it was said above
        return da.private_layered_shapley(model, private, X_val=public, **options)
