"""``datassay private-value``: tell every owner what their record is worth, under differential privacy."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from datassay._choices import Bound, Constants, Distance, Missing, NoiseKind, Relation, ReleaseKind, Scaling
from datassay._errors import InputError, UsageError
from datassay.cli.options import (
    CategoricalOption,
    FailIfOption,
    IgnoreOption,
    JobsOption,
    JsonOption,
    LabelOption,
    MemoryOption,
    QuietOption,
    TextOption,
    as_number,
    check_applies,
    check_conditions,
    check_jobs,
    check_written,
    complete_data,
    conclude,
    draw,
    make_model,
    open_ledger,
    public_tables,
    reading_options,
    shows_progress,
)

if TYPE_CHECKING:
    from datassay.data import Table
    from datassay.privacy import PrivateValues

Method = Literal["tknn-shapley", "knn-shapley", "layered-shapley"]


LAYERED = "For layered-shapley"


def private_value(
    data: Annotated[
        str,
        typer.Argument(
            help="The private records: a CSV or Parquet file, or the name of a data set.", autocompletion=complete_data
        ),
    ],
    label: LabelOption = None,
    validation: Annotated[
        Path | None, typer.Option(help="PUBLIC file of validation records, no part of DATA, with the same columns.")
    ] = None,
    split: Annotated[
        float | None,
        typer.Option(help="Share of DATA that is private; the rest is taken to be public. For trying out."),
    ] = None,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Promise ε: smaller is more private.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", "-d", help="Promise δ: keep it well below 1/N.")] = 1e-5,
    relation: Annotated[
        Relation | None,
        typer.Option(
            "--relation",
            "--neighbours",
            help="What ε is about: one record added or removed (if left out), or one replaced (for layered-shapley). "
            "--neighbours is its earlier name.",
        ),
    ] = None,
    sampling: Annotated[
        float, typer.Option(help="Chance with which a record is counted at a validation point; less needs less noise.")
    ] = 1.0,
    method: Annotated[Method, typer.Option("--method", "-m", help="How records are valued.")] = "tknn-shapley",
    tau: Annotated[
        str | None,
        typer.Option(
            help="Largest distance of a neighbour; 'auto' (default): the most accurate on the public records."
        ),
    ] = None,
    release: Annotated[
        ReleaseKind | None, typer.Option(help="What is published: the disjoint histogram, or the paper's three counts.")
    ] = None,
    geometry: Annotated[
        bool, typer.Option("--geometry", help="Use that a record can be near only so many validation points.")
    ] = False,
    k: Annotated[int | None, typer.Option("--k", "-k", help="For knn-shapley: number of neighbours (5).")] = None,
    metric: Annotated[
        Distance | None, typer.Option(help="Distance; cosine for tknn-shapley and euclidean otherwise, if left out.")
    ] = None,
    classes: Annotated[
        int | None, typer.Option(help="Number of classes, if the public records do not have all of them.")
    ] = None,
    kappa: Annotated[
        float | None,
        typer.Option(rich_help_panel=LAYERED, help="PUBLIC bound on the length of a record's features (1)."),
    ] = None,
    lam: Annotated[float | None, typer.Option(rich_help_panel=LAYERED, help="Strength of the penalty (1).")] = None,
    alpha: Annotated[float | None, typer.Option(rich_help_panel=LAYERED, help="Sampling error allowed (0.1).")] = None,
    beta: Annotated[
        float | None, typer.Option(rich_help_panel=LAYERED, help="Chance of a larger sampling error (0.05).")
    ] = None,
    bound: Annotated[
        Bound | None,
        typer.Option(rich_help_panel=LAYERED, help="Coalitions as published, or fewer for the same promise."),
    ] = None,
    design: Annotated[
        Path | None, typer.Option(rich_help_panel=LAYERED, help="File of coalitions drawn before; it may be public.")
    ] = None,
    noise: Annotated[
        NoiseKind | None,
        typer.Option(rich_help_panel=LAYERED, help="Certified, or as published (which no proof supports)."),
    ] = None,
    constants: Annotated[
        Constants | None,
        typer.Option(rich_help_panel=LAYERED, help="Stability on this validation set, or textbook."),
    ] = None,
    recipients: Annotated[
        int | None, typer.Option(rich_help_panel=LAYERED, help="Say what so many colluding recipients face (10).")
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=LAYERED, help="Refuse, with nothing spent, below this predicted rank correlation."
        ),
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option(rich_help_panel=LAYERED, help="PUBLIC file of records to predict the quality from.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger to ask before noise is drawn; made if new, with --budget-epsilon.")
    ] = None,
    budget_epsilon: Annotated[float | None, typer.Option(help="Budget ε of a new ledger.")] = None,
    budget_delta: Annotated[float | None, typer.Option(help="Budget δ of a new ledger; --delta if left out.")] = None,
    id: Annotated[str | None, typer.Option("--id", help="Column that identifies an owner.")] = None,
    ignore: IgnoreOption = "",
    categorical: CategoricalOption = "",
    text: TextOption = "refuse",
    missing: Annotated[
        Missing, typer.Option(help="Missing values: fill in the public median or a category, or refuse.")
    ] = "impute",
    scale: Annotated[Scaling, typer.Option(help="How numbers are scaled, by the public records.")] = "standard",
    seed: Annotated[int, typer.Option(help="Seed of --split. Noise has no seed.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The operator's file: .parquet, .json or .csv.")
    ] = None,
    owners: Annotated[
        Path | None, typer.Option(help="New folder for one small JSON file an owner: their value and the guarantee.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the distribution of values: .svg, .png or .pdf.")] = None,
    jobs: JobsOption = -1,
    memory: MemoryOption = 512,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
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

    conditions = check_conditions(fail_if)
    if owners is not None:
        results.check_new_folder(owners)
    public_files = [None if path is None else str(path) for path in (validation, pilot)]
    check_written([output], [plot], [owners, ledger], [data, *public_files])
    check_jobs(jobs)
    kind = relation or ("replace" if method == "layered-shapley" else "add-remove")
    reading = reading_options(ignore, categorical, text, missing, scale)
    private, public = public_tables(data, validation, split, seed, label, id, reading)
    run = {"n_jobs": jobs, "memory": memory * 2**20, "progress": shows_progress(quiet)}
    given = {
        "tau": tau, "release": release, "geometry": geometry or None, "classes": classes, "k": k, "kappa": kappa,
        "lam": lam, "alpha": alpha, "beta": beta, "bound": bound, "design": design, "noise": noise,
        "constants": constants, "recipients": recipients,
        "at_least": at_least, "pilot": pilot,
    }  # fmt: skip
    promise: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "relation": kind, "sampling": sampling}
    book = open_ledger(ledger, budget_epsilon, budget_delta, delta, kind)
    if method == "layered-shapley":
        values = _run_layered(private, public, given, metric, promise | {"ledger": book}, run | {"seed": seed}, quiet)
    else:
        values = _run(method, private, public, given, metric, promise | {"ledger": book}, run)
    if output is not None:
        values.save(output)
    if owners is not None:
        values.save_owners(owners, progress=bool(run["progress"]))
    draw(values.plot, plot)
    facts, said = values.facts(), [f"Public: {len(public):,} validation records of {public.name}.", values.summary()]
    if book is not None:
        facts |= book.facts()
        said.append(
            f"Ledger {book.path}: ε = {book.spent():.4g} of {book.epsilon:g} spent at δ = {book.delta:g} "
            f"({book.relation})."
        )
    else:
        said.append("No ledger was asked (--ledger): whoever releases again must add up the costs by themselves.")
    conclude(
        "private-value",
        facts,
        said,
        values.notes,
        [output, owners, plot],
        quiet=quiet,
        as_json=as_json,
        conditions=conditions,
    )


APPLIES = {
    "tknn-shapley": {"tau", "release", "geometry", "classes"},
    "knn-shapley": {"k"},
    "layered-shapley": {
        *("kappa", "lam", "alpha", "beta", "bound", "design"),
        *("noise", "constants", "recipients", "at_least", "pilot"),
    },
}


def _run(
    method: Method,
    private: "Table",
    public: "Table",
    given: dict[str, Any],
    metric: Distance | None,
    promise: dict[str, Any],
    run: dict[str, Any],
) -> "PrivateValues":
    import datassay as da

    check_applies(method, given, APPLIES[method])
    arguments: dict[str, Any] = {**promise, **run}
    if method == "knn-shapley":
        arguments |= {"metric": metric or "euclidean", "k": 5 if given["k"] is None else given["k"]}
        return da.private_knn_shapley(private, X_val=public, **arguments)
    arguments["metric"] = metric or "cosine"
    if given["tau"] in (None, "auto"):  # public records among themselves: the private ones have no say
        if len(public) < 2:
            raise InputError(f"{public.name} has one row, too few to choose --tau by; name it")
        arguments["tau"] = da.tune_tau(public, metric=arguments["metric"], **(run | {"progress": None})).best
    else:
        arguments["tau"] = as_number("--tau", given["tau"], float)
    if given["release"] is not None:
        arguments["release"] = given["release"]
    arguments |= {"geometry": bool(given["geometry"]), "n_classes": given["classes"]}
    return da.private_tknn_shapley(private, X_val=public, **arguments)


def _run_layered(
    private: "Table",
    public: "Table",
    given: dict[str, Any],
    metric: Distance | None,
    promise: dict[str, Any],
    run: dict[str, Any],
    quiet: bool,
) -> "PrivateValues":
    """Say what to expect, from public records alone; then release."""
    import warnings

    import datassay as da
    from datassay.data import read_table

    check_applies("layered-shapley", given, APPLIES["layered-shapley"])
    if metric is not None:
        raise UsageError("--metric does not apply to layered-shapley")
    if promise["relation"] != "replace":
        raise UsageError("layered-shapley promises its ε for one record replaced: --relation replace")
    if promise["sampling"] != 1:
        raise UsageError("--sampling does not apply to layered-shapley")
    model = make_model(None, given["kappa"], given["lam"], stable_by_default=True)
    arguments: dict[str, Any] = {"epsilon": promise["epsilon"], "n_jobs": run["n_jobs"], "seed": run["seed"]}
    for name in ("alpha", "beta", "bound", "noise", "constants"):
        if given[name] is not None:
            arguments[name] = given[name]
    if given["design"] is not None:
        arguments["design"] = da.load_design(given["design"])
    if given["pilot"] is not None:
        arguments["pilot"] = read_table(given["pilot"], like=public)
    plan = da.plan_private_layered(model, len(private), public, **arguments)
    if not quiet:
        typer.echo(f"Before anything is spent: {plan}.", err=True)
        if plan.is_low:
            typer.echo(f"Warning: {plan.warning()}.", err=True)
    for name in ("recipients", "at_least"):
        if given[name] is not None:
            arguments[name] = given[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", da.LowUtilityWarning)  # it was said above
        return da.private_layered_shapley(
            model, private, X_val=public, delta=promise["delta"], ledger=promise["ledger"], progress=run["progress"],
            **arguments,
        )  # fmt: skip
