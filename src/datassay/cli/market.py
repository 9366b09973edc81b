"""``datassay market``: price records, play the disclosure game, and search for its equilibrium."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from datassay._choices import Attacker, Distance, Measure, Missing, Scaling, StrategyName, Trajectory, Unseen, Utility
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
    check_applies,
    check_conditions,
    check_jobs,
    check_written,
    complete_data,
    conclude,
    draw,
    nothing_printed,
    number_list,
    open_ledger,
    public_tables,
    reading_options,
    shows_progress,
)

if TYPE_CHECKING:
    from datassay.market import Disclosure
    from datassay.results import Values

app = typer.Typer(
    help="""Trade records: price them, play the disclosure game, search for its equilibrium.

    Examples:
      datassay market price values.parquet --theta 2 --gamma 3000 --share 0.8

      datassay market play census --split 0.8 --strategy shapley --epsilon 2
    """,
    no_args_is_help=True,
)


RecordsArgument = Annotated[
    str,
    typer.Argument(
        help="The owner's records: a CSV or Parquet file, or the name of a data set.", autocompletion=complete_data
    ),
]
ValidationOption = Annotated[
    Path | None, typer.Option(help="File of the consumer's validation records, with the same columns.")
]
SplitOption = Annotated[
    float | None, typer.Option(help="Share of DATA that is the owner's; the rest validates (to try it out).")
]
KOption = Annotated[int, typer.Option("--k", "-k", help="Neighbours of the consumer's classifier.", min=1)]
MetricOption = Annotated[Distance, typer.Option(help="Distance.")]
UtilityOption = Annotated[Utility, typer.Option(help="Mean share of right votes, or accuracy of the majority.")]
TargetOption = Annotated[
    float | None, typer.Option(help="Utility at which the consumer stops; that of the records as they are if left out.")
]
BoundsOption = Annotated[
    str,
    typer.Option(
        help="Bounds of features, after scaling: 'validation' (range of the validation records), LOW,HIGH, or 'data' "
        "(range of the records, as published: it leaks)."
    ),
]
IdOption = Annotated[str | None, typer.Option("--id", help="Column that identifies a row.")]
MissingOption = Annotated[
    Missing, typer.Option(help="Missing values: fill in the validation median or a category, or refuse.")
]
ScaleOption = Annotated[Scaling, typer.Option(help="How numbers are scaled, fitted on validation records.")]


@app.command()
def price(
    values: Annotated[
        Path, typer.Argument(help="Values of records, as `datassay value -o` writes them: .parquet or .json.")
    ],
    theta: Annotated[float | None, typer.Option(help="How the privacy cost grows with value (2).")] = None,
    gamma: Annotated[float | None, typer.Option(help="How large the privacy cost is (1).")] = None,
    target: Annotated[float | None, typer.Option(help="Value that a consumer wants: show what they would buy.")] = None,
    share: Annotated[float | None, typer.Option(help="The same, as a share of all value for sale.")] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Try many θ and γ: what would the consumer pay, and whom?")
    ] = False,
    thetas: Annotated[str | None, typer.Option(help="For --search: θ to try (0,0.5,1,1.5,2,3).")] = None,
    markups: Annotated[
        str | None,
        typer.Option(
            help="For --search: privacy costs to try, as parts of the value of all records for sale (0,0.5,1,2)."
        ),
    ] = None,
    budget: Annotated[float | None, typer.Option(help="For --search: the most that the consumer would pay.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write prices (or the search): .parquet, .csv or .json.")
    ] = None,
    bought: Annotated[
        Path | None, typer.Option(help="Write what is bought and what each owner is paid: .parquet, .csv or .json.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw price against value (or whom the search pays): .svg, .png or .pdf.")
    ] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """Price records at p = φ + γ φ^θ, and tell what a consumer would buy to reach a target.

    Only records of positive value are for sale. The cover is the cheapest there is; a greedy one stands beside it.

    Examples:
      datassay value people.csv --label income -o values.parquet

      datassay market price values.parquet --theta 2 --share 0.8 -o prices.parquet

      datassay market price values.parquet --search --share 0.8
    """
    import datassay as da
    from datassay import _checks

    conditions = check_conditions(fail_if)
    check_written([output, bought], [plot], [], [str(values)])
    if (target is None) == (share is None) and (search or target is not None):
        raise UsageError("name one of --target (in units of value) and --share (of all value for sale)")
    for name, option in (("budget", budget), ("thetas", thetas), ("markups", markups)):
        if option is not None and not search:
            raise UsageError(f"--{name} belongs to --search")
    if search and (theta is not None or gamma is not None or bought is not None):
        raise UsageError("--search tries --thetas and --markups: leave out --theta, --gamma and --bought")
    if bought is not None and target is None and share is None:
        raise UsageError("--bought needs what the consumer wants: --target or --share")
    tried = [
        number_list("--thetas", "0,0.5,1,1.5,2,3" if thetas is None else thetas, at_least=0),
        number_list("--markups", "0,0.5,1,2" if markups is None else markups, at_least=0),
    ]
    budget = None if budget is None else _checks.number("--budget", budget, above=0)
    worth = _values_in(values)
    result: Any
    if search:
        with nothing_printed():
            result = da.search_prices(
                worth, target, share=share, thetas=tried[0], markups=tried[1], budget=budget,
                progress=shows_progress(quiet),
            )  # fmt: skip
        told, facts = [result.summary()], result.facts()
    else:
        result = da.price(worth, 2.0 if theta is None else theta, 1.0 if gamma is None else gamma)
        told, facts = [result.summary()], result.facts()
        if target is not None or share is not None:
            with nothing_printed():
                purchase = result.buy(target, share=share)
            told.append(purchase.summary())
            facts |= purchase.facts()
            if bought is not None:
                purchase.save(bought)
    if output is not None:
        result.save(output)
    draw(result.plot, plot, 6, 4)
    conclude(
        "market price",
        facts,
        told,
        getattr(result, "notes", ()),
        [output, bought, plot],
        quiet=quiet,
        as_json=as_json,
        conditions=conditions,
    )


def _values_in(path: Path) -> "Values":
    """The values of a file that can be priced."""
    from datassay.privacy import PrivateValues
    from datassay.results import Values, load_result

    found = load_result(path)
    if isinstance(found, PrivateValues):
        raise InputError(
            f"{str(path)!r} holds private values: each is for its owner alone, and a price list would publish them; "
            "price public values"
        )
    if not isinstance(found, Values):
        raise InputError(
            f"{str(path)!r} holds {type(found).__name__} and no values of records: name a file that datassay value "
            "wrote"
        )
    return found


@app.command()
def play(
    data: RecordsArgument,
    label: LabelOption = None,
    validation: ValidationOption = None,
    split: SplitOption = None,
    strategy: Annotated[StrategyName, typer.Option("--strategy", "-s", help="How the consumer chooses.")] = "ucb",
    epsilon: Annotated[float, typer.Option(help="ε a feature and query; a query costs it for every feature.")] = 1.0,
    t_max: Annotated[int, typer.Option(help="Queries that each record can be asked.", min=0)] = 50,
    target: TargetOption = None,
    k: KOption = 5,
    metric: MetricOption = "euclidean",
    utility: UtilityOption = "votes",
    bounds: BoundsOption = "validation",
    share: Annotated[
        float | None, typer.Option(help="For random, shapley, shapley-commit: share of the records to use (0.6).")
    ] = None,
    bootstrap: Annotated[
        int | None, typer.Option(help="For shapley-commit: rounds before committing (10).", min=1)
    ] = None,
    exploration: Annotated[float | None, typer.Option(help="For ucb: how much to explore, c (0.1).")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="For ucb: how fast Q follows rewards, α (0.1).")] = None,
    unseen: Annotated[
        Unseen | None, typer.Option(help="For ucb: records never queried are at the origin (as published), or absent.")
    ] = None,
    max_queries: Annotated[int | None, typer.Option(help="End the game after so many queries.", min=0)] = None,
    for_real: Annotated[
        bool,
        typer.Option(
            "--for-real", help="Noise that may be released, from OpenDP. Without it the game is a rehearsal (--seed)."
        ),
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option(help="With --for-real: file that records every query and refuses to overspend.")
    ] = None,
    budget_epsilon: Annotated[
        float | None, typer.Option(help="ε of a new ledger; a record can cost t_max × features × ε.")
    ] = None,
    leakage: Annotated[
        Attacker | None,
        typer.Option(help="LiRA on a 1-NN of the records and on one of the centres, which an insider knows."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a rehearsal, of --split and of --leakage (0).")] = None,
    id: IdOption = None,
    ignore: IgnoreOption = "",
    categorical: CategoricalOption = "",
    text: TextOption = "refuse",
    missing: MissingOption = "impute",
    scale: ScaleOption = "standard",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the owner's view of the game: .parquet, .json or .csv."),
    ] = None,
    consumer: Annotated[
        Path | None, typer.Option(help="Write what the consumer may see, centres included: .parquet, .json or .csv.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the game: .svg, .png or .pdf.")] = None,
    what: Annotated[Trajectory | None, typer.Option(help="For --plot: what to draw (utility).")] = None,
    jobs: JobsOption = -1,
    memory: MemoryOption = 512,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """Play the disclosure game: an owner gives out noisy copies of records, a consumer averages them.

    Each query of a record returns it with Laplace noise on every feature, at most --t-max times. The consumer trains
    nearest neighbours on the averages until they are good enough on its validation records.

    Examples:
      datassay market play people.csv --validation ours.csv --label income --strategy shapley --target 0.7

      datassay market play census --split 0.8 --strategy shapley --epsilon 2 --plot game.svg

      datassay market play people.csv --validation ours.csv --label income --target 0.7 --bounds=-3,3 --for-real \
--ledger market.ledger --budget-epsilon 500
    """
    import datassay as da
    from datassay.market import STRATEGY_OPTIONS

    conditions = check_conditions(fail_if)
    check_jobs(jobs)
    check_written([output, consumer], [plot], [ledger], [data, None if validation is None else str(validation)])
    given: dict[str, Any] = {
        "share": share, "bootstrap": bootstrap, "exploration": exploration, "learning_rate": learning_rate,
        "unseen": unseen,
    }  # fmt: skip
    check_applies(strategy, given, set(STRATEGY_OPTIONS[strategy]))
    if ledger is not None and not for_real:
        raise UsageError("a rehearsal has no place in a ledger: add --for-real, or leave out --ledger")
    if consumer is not None and not for_real:
        raise UsageError("a rehearsal protects nobody, and is not for the consumer's eyes: --consumer needs --for-real")
    if for_real and split is not None:
        raise UsageError("--split is to try it out: a game for real needs --validation, the consumer's own records")
    if for_real and seed is not None and leakage is None:
        raise UsageError("the noise of a game for real has no seed: leave out --seed, or --for-real to rehearse")
    if what is not None and plot is None:
        raise UsageError("--what says what to draw: add --plot FILE, or leave it out")
    seed = 0 if seed is None else seed
    if for_real and bounds == "data":
        raise UsageError(
            "a game for real needs public bounds, and --bounds data are the records' own: give --bounds=LOW,HIGH that "
            "you know without looking, or --bounds validation"
        )
    if for_real and target is None:
        raise UsageError("a game for real needs --target: the one computed from the records would tell about them")
    reading = reading_options(ignore, categorical, text, missing, scale)
    records, ours = public_tables(data, validation, split, seed, label, id, reading)
    progress = shows_progress(quiet)
    run: dict[str, Any] = {"n_jobs": jobs, "memory": memory * 2**20, "progress": progress}
    book = open_ledger(ledger, budget_epsilon, None, 1e-9, "replace-features")
    game: Disclosure = da.disclosure_game(
        records, None, ours, None, strategy, epsilon, t_max, target, k=k, metric=metric,
        utility=utility, bounds=_bounds(bounds), max_queries=max_queries, ledger=book,
        seed=None if for_real else seed, **{name: option for name, option in given.items() if option is not None},
        **run,
    )  # fmt: skip
    told, facts = [f"Validated on {len(ours):,} records of {ours.name}.", game.summary()], game.facts()
    if book is not None:
        facts |= book.facts()
        told.append(f"Ledger {book.path}: ε = {book.spent():.6g} of {book.epsilon:g} spent ({book.relation}).")
    if output is not None:
        game.save(output)
    code = CUT_SHORT.get(game.outcome)
    ended: BaseException | None = None if code is None else typer.Exit(code)
    if consumer is not None:
        try:
            game.for_consumer().save(consumer)
        except InputError as error:
            consumer, ended = None, error  # the game was played for real: first what came out
    draw(lambda axes: game.plot(what or "utility", axes), plot, 6.5, 4)
    if leakage is not None and ended is None:
        try:
            found = da.disclosure_leakage(records, None, game, attacker=leakage, seed=seed, **run)
        except (InputError, KeyboardInterrupt) as error:
            ended = error  # the game was played, perhaps for real: first what came out
        else:
            told.append(found.summary())
            facts |= found.facts()
    try:
        conclude(
            "market play",
            facts,
            told,
            game.notes,
            [output, consumer, plot],
            quiet=quiet,
            as_json=as_json,
            conditions=conditions,
        )
    finally:
        if ended is not None:
            raise ended


CUT_SHORT = {"interrupted": 130, "ledger unavailable": 4, "stopped by an error": 4}  # with which exit code


@app.command()
def search(
    data: RecordsArgument,
    label: LabelOption = None,
    validation: ValidationOption = None,
    split: SplitOption = None,
    epsilons: Annotated[str, typer.Option(help="ε a feature and query to try, separated by commas.")] = "1",
    t_maxes: Annotated[str, typer.Option(help="Queries a record to try.")] = "10,20,50",
    explorations: Annotated[str, typer.Option(help="Explorations c of the bandit to try.")] = "0,0.001,0.01,0.1",
    repeats: Annotated[int, typer.Option(help="Games at each setting.", min=1)] = 3,
    target: TargetOption = None,
    k: KOption = 5,
    metric: MetricOption = "euclidean",
    utility: UtilityOption = "votes",
    bounds: BoundsOption = "validation",
    learning_rate: Annotated[float, typer.Option(help="How fast Q follows rewards, α.")] = 0.1,
    unseen: Annotated[Unseen, typer.Option(help="Where records are that were never queried.")] = "origin",
    resume: Annotated[
        Path | None, typer.Option(help="File that keeps every game; a search cut short goes on from it.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the games, and of --split.")] = 0,
    id: IdOption = None,
    ignore: IgnoreOption = "",
    categorical: CategoricalOption = "",
    text: TextOption = "refuse",
    missing: MissingOption = "impute",
    scale: ScaleOption = "standard",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write every game: .parquet, .json or .csv.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a map: .svg, .png or .pdf.")] = None,
    what: Annotated[Measure | None, typer.Option(help="For --plot: what to draw (reached).")] = None,
    plot_epsilon: Annotated[
        float | None, typer.Option(help="For --plot: which ε to draw, if there are several.")
    ] = None,
    jobs: JobsOption = -1,
    memory: MemoryOption = 512,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    fail_if: FailIfOption = None,
) -> None:
    """Rehearse the disclosure game at every ε and T_max of the owner and every exploration of the consumer.

    The owner leads with ε and T_max; the consumer follows with the exploration that reaches the target for least.

    Examples:
      datassay market search people.csv --validation ours.csv --label income --resume games.jsonl --plot success.svg

      datassay market search census --split 0.9 --epsilons 4 --t-maxes 2,10,20 --target 0.7 --repeats 2
    """
    import datassay as da
    from datassay import _checks
    from datassay.market import MOST_QUERIES

    conditions = check_conditions(fail_if)
    check_jobs(jobs)
    check_written([output], [plot], [resume], [data, None if validation is None else str(validation)])
    for name, option in (("what", what), ("plot-epsilon", plot_epsilon)):
        if option is not None and plot is None:
            raise UsageError(f"--{name} says what to draw: add --plot FILE, or leave it out")
    tried = number_list("--t-maxes", t_maxes, different=True)
    if any(not number.is_integer() for number in tried):  # nor are infinity and what is no number
        raise UsageError(f"--t-maxes must be whole numbers, got {t_maxes!r}")
    budgets = [_checks.integer("each of --t-maxes", int(one), at_least=1, at_most=MOST_QUERIES) for one in tried]
    each = number_list("--epsilons", epsilons, above=0, different=True)
    follows = number_list("--explorations", explorations, at_least=0, different=True)
    if plot is not None and len(each) > 1 and plot_epsilon is None:
        raise UsageError("a map is of one ε: choose it with --plot-epsilon")
    if plot_epsilon is not None and plot_epsilon not in each:
        raise UsageError(f"--plot-epsilon must be one of --epsilons {epsilons}")
    reading = reading_options(ignore, categorical, text, missing, scale)
    records, ours = public_tables(data, validation, split, seed, label, id, reading)
    try:
        found = da.search_equilibrium(
            records, None, ours, None, each, budgets, follows, target,
            repeats=repeats, k=k, metric=metric, utility=utility, bounds=_bounds(bounds),
            learning_rate=learning_rate, unseen=unseen, resume=resume, seed=seed, n_jobs=jobs,
            memory=memory * 2**20, progress=shows_progress(quiet),
        )  # fmt: skip
    except KeyboardInterrupt:
        if resume is None:
            raise
        raise KeyboardInterrupt(
            f"interrupted; the games that ended are kept in {resume}: the same command goes on from there"
        ) from None
    if output is not None:
        found.save(output)
    draw(lambda axes: found.plot(what or "reached", plot_epsilon, axes), plot, 6, 4.5)
    conclude(
        "market search",
        found.facts(),
        [f"Validated on {len(ours):,} records of {ours.name}.", found.summary()],
        found.notes,
        [output, plot],
        quiet=quiet,
        as_json=as_json,
        conditions=conditions,
    )


def _bounds(text: str) -> Any:
    if text in ("validation", "data"):
        return text
    try:
        low, high = number_list("--bounds", text)
    except ValueError:  # of the numbers, or of how many there are
        raise UsageError(f"--bounds must be validation, data, or two numbers LOW,HIGH; got {text!r}") from None
    return low, high
