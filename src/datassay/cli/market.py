"""``datassay market``: price records, play the disclosure game, and search for its equilibrium."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument

from datassay._choices import Attacker, Distance, Measure, StrategyName, Trajectory, Unseen, Utility
from datassay._errors import InputError, UsageError
from datassay.cli.command import Ending, Options, Outcome, check_files, check_given, command, default, option, save
from datassay.cli.inputs import Blocks, Label, ReadingApart, complete_data, nothing_printed, number_list
from datassay.cli.ledger import Budget

if TYPE_CHECKING:
    from datassay.market import Disclosure
    from datassay.results import Result, Values

app = typer.Typer(
    help="""Trade records: price them, play the disclosure game, search for its equilibrium.

    Examples:
      datassay market price values.parquet --theta 2 --gamma 3000 --share 0.8

      datassay market play census --split 0.8 --strategy shapley --epsilon 2
    """,
    no_args_is_help=True,
)


Records = Annotated[
    str,
    Argument(
        help="The owner's records: a CSV or Parquet file, or the name of a data set.", autocompletion=complete_data
    ),
]


class TwoSides(ReadingApart):
    """How the owner's and the consumer's records are read."""

    validation: Path | None = option("File of the consumer's validation records, with the same columns.")
    split: float | None = option("Share of DATA that is the owner's; the rest validates (to try it out).")


class Consumer(Options):
    """What the consumer learns from, and until when."""

    target: float | None = option("Utility at which the consumer stops; that of the records as they are if left out.")
    k: int | None = option("Neighbours of the consumer's classifier ({disclosure_game.k}).", "--k", "-k", min=1)
    metric: Distance | None = option("Distance ({disclosure_game.metric}).")
    utility: Utility | None = option(
        "Mean share of right votes, or accuracy of the majority ({disclosure_game.utility})."
    )
    bounds: str | None = option(
        "Bounds of features, after scaling: 'validation' (range of the validation records), LOW,HIGH, or "
        "'data' (range of the records, as published: it leaks) ({disclosure_game.bounds})."
    )

    def arguments(self) -> dict[str, Any]:
        """The same, as the library takes it."""
        if self.bounds in (None, "validation", "data"):
            return self.given()
        try:
            low, high = number_list("--bounds", self.bounds)
        except ValueError:  # of the numbers, or of how many there are
            raise UsageError(
                f"--bounds must be validation, data, or two numbers LOW,HIGH; got {self.bounds!r}"
            ) from None
        return self.given() | {"bounds": (low, high)}


class Choosing(Options):
    """How the consumer chooses; not every strategy has all of it."""

    share: float | None = option("For random, shapley, shapley-commit: share of the records to use ({DEFAULT_SHARE}).")
    bootstrap: int | None = option("For shapley-commit: rounds before committing ({DEFAULT_BOOTSTRAP}).", min=1)
    exploration: float | None = option("For ucb: how much to explore, c ({DEFAULT_EXPLORATION}).")
    learning_rate: float | None = option("For ucb: how fast Q follows rewards, α ({DEFAULT_LEARNING_RATE}).")
    unseen: Unseen | None = option("For ucb: records never queried are at the origin (as published), or absent.")


class Cost(Options):
    """How the privacy cost of a record grows with its value."""

    theta: float | None = option("How the privacy cost grows with value ({price.theta}).")
    gamma: float | None = option("How large the privacy cost is ({price.gamma}).")


class Trial(Options):
    """What --search tries."""

    thetas: str | None = option("For --search: θ to try ({search_prices.thetas}).")
    markups: str | None = option(
        "For --search: privacy costs to try, as parts of the value of all for sale ({DEFAULT_MARKUPS})."
    )
    budget: float | None = option("For --search: the most that the consumer would pay.")


@command("market price", app)
def price(
    values: Annotated[Path, Argument(help="Values of records, as `datassay value -o` writes them: .parquet or .json.")],
    *,
    cost: Cost,
    target: float | None = option("Value that a consumer wants: show what they would buy."),
    share: float | None = option("The same, as a share of all value for sale."),
    search: bool = option("Try many θ and γ: what would the consumer pay, and whom?"),
    trial: Trial,
    output: Path | None = option("Write prices (or the search): .parquet, .csv or .json.", "--output", "-o"),
    bought: Path | None = option("Write what is bought and what each owner is paid: .parquet, .csv or .json."),
    plot: Path | None = option("Draw price against value (or whom the search pays): .svg, .png or .pdf."),
    ending: Ending,
) -> Outcome:
    """Price records at p = φ + γ φ^θ, and tell what a consumer would buy to reach a target.

    Only records of positive value are for sale. The cover is the cheapest there is; a greedy one stands beside it.

    Examples:
      datassay value people.csv --label income -o values.parquet

      datassay market price values.parquet --theta 2 --share 0.8 -o prices.parquet

      datassay market price values.parquet --search --share 0.8
    """
    import datassay as da
    from datassay import _checks

    check_files([values], [output, bought], [plot])
    if (target is None) == (share is None) and (search or target is not None):
        raise UsageError("name one of --target (in units of value) and --share (of all value for sale)")
    for name in trial.given():
        if not search:
            raise UsageError(f"--{name} belongs to --search")
    if search and (cost.given() or bought is not None):
        raise UsageError("--search tries --thetas and --markups: leave out --theta, --gamma and --bought")
    if bought is not None and target is None and share is None:
        raise UsageError("--bought needs what the consumer wants: --target or --share")
    lists = trial.given("thetas", "markups").items()
    tried = {name: number_list(f"--{name}", text, at_least=0) for name, text in lists}
    budget = None if trial.budget is None else _checks.number("--budget", trial.budget, above=0)
    worth = _values_in(values)
    result: Any
    found: list[Result]
    with nothing_printed():
        if search:
            result = da.search_prices(worth, target, share=share, budget=budget, progress=ending.progress, **tried)
            found = [result]
        else:
            result = da.price(worth, **cost.given())
            found = [result] if target is None and share is None else [result, result.buy(target, share=share)]
            save(found[-1], bought)
    save(result, output, plot, 6, 4)
    facts = {name: fact for one in found for name, fact in one.facts().items()}
    return Outcome(facts, [one.summary() for one in found], getattr(result, "notes", ()), [output, bought, plot])


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


class Selling(Options):
    """What the owner gives out."""

    epsilon: float | None = option(
        "ε a feature and query; a query costs it for every feature ({disclosure_game.epsilon})."
    )
    t_max: int | None = option("Queries that each record can be asked ({disclosure_game.t_max}).", min=0)


@command("market play", app)
def play(
    data: Records,
    label: Label = None,
    *,
    reading: TwoSides,
    seed: int | None = option("Seed of a rehearsal, of --split and of --leakage (0)."),
    strategy: StrategyName | None = option(
        "How the consumer chooses ({disclosure_game.strategy}).", "--strategy", "-s"
    ),
    selling: Selling,
    buying: Consumer,
    choosing: Choosing,
    max_queries: int | None = option("End the game after so many queries.", min=0),
    for_real: bool = option("Noise that may be released, from OpenDP. Without it the game is a rehearsal (--seed)."),
    ledger: Path | None = option("With --for-real: file that records every query and refuses to overspend."),
    budget_epsilon: float | None = option("ε of a new ledger; a record can cost t_max × features × ε."),
    leakage: Attacker | None = option(
        "LiRA on a 1-NN of the records and on one of the centres, which an insider knows."
    ),
    output: Path | None = option("Write the owner's view of the game: .parquet, .json or .csv.", "--output", "-o"),
    consumer: Path | None = option("Write what the consumer may see, centres included: .parquet, .json or .csv."),
    plot: Path | None = option("Draw the game: .svg, .png or .pdf."),
    what: Trajectory | None = option("For --plot: what to draw ({Disclosure.plot.what})."),
    run: Blocks,
) -> Outcome:
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

    check_files([data, reading.validation], [output, consumer], [plot], [ledger])
    chosen = strategy or default("disclosure_game", "strategy")
    check_given(chosen, choosing.given(), STRATEGY_OPTIONS[chosen].__contains__)
    if ledger is not None and not for_real:
        raise UsageError("a rehearsal has no place in a ledger: add --for-real, or leave out --ledger")
    if consumer is not None and not for_real:
        raise UsageError("a rehearsal protects nobody, and is not for the consumer's eyes: --consumer needs --for-real")
    if for_real and reading.split is not None:
        raise UsageError("--split is to try it out: a game for real needs --validation, the consumer's own records")
    if for_real and seed is not None and leakage is None:
        raise UsageError("the noise of a game for real has no seed: leave out --seed, or --for-real to rehearse")
    if what is not None and plot is None:
        raise UsageError("--what says what to draw: add --plot FILE, or leave it out")
    seed = 0 if seed is None else seed
    if for_real and buying.bounds == "data":
        raise UsageError(
            "a game for real needs public bounds, and --bounds data are the records' own: give --bounds=LOW,HIGH that "
            "you know without looking, or --bounds validation"
        )
    if for_real and buying.target is None:
        raise UsageError("a game for real needs --target: the one computed from the records would tell about them")
    records, ours = reading.tables(data, label, seed)
    how = run.arguments()
    book = Budget(ledger, budget_epsilon, None).open(1e-9, "replace-features")
    game: Disclosure = da.disclosure_game(
        records, X_val=ours, strategy=chosen, max_queries=max_queries, ledger=book, seed=None if for_real else seed,
        **selling.given(), **buying.arguments(), **choosing.given(), **how,
    )  # fmt: skip
    said, facts = [f"Validated on {len(ours):,} records of {ours.name}.", game.summary()], game.facts()
    if book is not None:
        facts |= book.facts()
        said.append(f"Ledger {book.path}: ε = {book.spent():.6g} of {book.epsilon:g} spent ({book.relation}).")
    save(game, output, plot, 6.5, 4, what=what)
    code = CUT_SHORT.get(game.outcome)
    ended: BaseException | None = None if code is None else typer.Exit(code)
    if consumer is not None:
        try:
            game.for_consumer().save(consumer)
        except InputError as error:
            consumer, ended = None, error  # the game was played for real: first what came out
    if leakage is not None and ended is None:
        try:
            found = da.disclosure_leakage(records, None, game, attacker=leakage, seed=seed, **how)
        except (InputError, KeyboardInterrupt) as error:
            ended = error  # the game was played, perhaps for real: first what came out
        else:
            said.append(found.summary())
            facts |= found.facts()
    return Outcome(facts, said, game.notes, [output, consumer, plot], ended)


CUT_SHORT = {"interrupted": 130, "ledger unavailable": 4, "stopped by an error": 4}  # with which exit code


class Tried(Options):
    """What the owner and the consumer try."""

    epsilons: str | None = option("ε a feature and query to try, separated by commas ({search_equilibrium.epsilons}).")
    t_maxes: str | None = option("Queries a record to try ({search_equilibrium.t_maxes}).")
    explorations: str | None = option("Explorations c of the bandit to try ({search_equilibrium.explorations}).")

    def arguments(self) -> dict[str, Sequence[float]]:
        """The numbers of each that is given."""
        from datassay import _checks
        from datassay.market import MOST_QUERIES

        found: dict[str, Sequence[float]] = {}
        if self.t_maxes is not None:
            queries = number_list("--t-maxes", self.t_maxes, different=True)
            if any(not number.is_integer() for number in queries):  # nor are infinity and what is no number
                raise UsageError(f"--t-maxes must be whole numbers, got {self.t_maxes!r}")
            limits: dict[str, Any] = {"at_least": 1, "at_most": MOST_QUERIES}
            found["t_maxes"] = [_checks.integer("each of --t-maxes", int(one), **limits) for one in queries]
        if self.epsilons is not None:
            found["epsilons"] = number_list("--epsilons", self.epsilons, above=0, different=True)
        if self.explorations is not None:
            found["explorations"] = number_list("--explorations", self.explorations, at_least=0, different=True)
        return found


class Games(Options):
    """How the games are played."""

    repeats: int | None = option("Games at each setting ({search_equilibrium.repeats}).", min=1)
    learning_rate: float | None = option("How fast Q follows rewards, α ({search_equilibrium.learning_rate}).")
    unseen: Unseen | None = option("Where records are that were never queried ({search_equilibrium.unseen}).")


@command("market search", app)
def search(
    data: Records,
    label: Label = None,
    *,
    reading: TwoSides,
    seed: int = option("Seed of the games, and of --split.", default=0),
    tried: Tried,
    games: Games,
    buying: Consumer,
    resume: Path | None = option("File that keeps every game; a search cut short goes on from it."),
    output: Path | None = option("Write every game: .parquet, .json or .csv.", "--output", "-o"),
    plot: Path | None = option("Draw a map: .svg, .png or .pdf."),
    what: Measure | None = option("For --plot: what to draw ({Equilibrium.plot.what})."),
    plot_epsilon: float | None = option("For --plot: which ε to draw, if there are several."),
    run: Blocks,
) -> Outcome:
    """Rehearse the disclosure game at every ε and T_max of the owner and every exploration of the consumer.

    The owner leads with ε and T_max; the consumer follows with the exploration that reaches the target for least.

    Examples:
      datassay market search people.csv --validation ours.csv --label income --resume games.jsonl --plot success.svg

      datassay market search census --split 0.9 --epsilons 4 --t-maxes 2,10,20 --target 0.7 --repeats 2
    """
    import datassay as da

    check_files([data, reading.validation], [output], [plot], [resume])
    if plot is None and (what is not None or plot_epsilon is not None):
        name = "what" if what is not None else "plot-epsilon"
        raise UsageError(f"--{name} says what to draw: add --plot FILE, or leave it out")
    numbers = tried.arguments()
    epsilons = numbers.get("epsilons", default("search_equilibrium", "epsilons"))
    if plot is not None and len(epsilons) > 1 and plot_epsilon is None:
        raise UsageError("a map is of one ε: choose it with --plot-epsilon")
    if plot_epsilon is not None and plot_epsilon not in epsilons:
        raise UsageError(f"--plot-epsilon must be one of --epsilons {','.join(f'{one:g}' for one in epsilons)}")
    records, ours = reading.tables(data, label, seed)
    options = numbers | games.given() | buying.arguments()
    try:
        found = da.search_equilibrium(records, X_val=ours, resume=resume, seed=seed, **options, **run.arguments())
    except KeyboardInterrupt:
        if resume is None:
            raise
        raise KeyboardInterrupt(
            f"interrupted; the games that ended are kept in {resume}: the same command goes on from there"
        ) from None
    save(found, output, plot, 6, 4.5, epsilon=plot_epsilon, what=what)
    said = [f"Validated on {len(ours):,} records of {ours.name}.", found.summary()]
    return Outcome(found.facts(), said, found.notes, [output, plot])
