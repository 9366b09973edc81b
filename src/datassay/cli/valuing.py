"""From the options of ``datassay value`` to the call: what applies to a method, what is tuned, what is fitted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import typer

from datassay._errors import InputError, UsageError
from datassay.cli.models import make_model
from datassay.cli.options import given, parameters
from datassay.cli.reading import Reading, as_number, load_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from datassay.data import Table
    from datassay.results import Values
    from datassay.value import Design, Tuning

SELF: Final = ("self-shapley", "self-waka")
# What a function that has no parameter of an option's name must take for the option to mean something.
_TAKEN_AS: Final = {
    "balance": "weights",
    "group_by": "groups",
    "max_coalitions": "max_bags",
    "kappa": "model",
    "lam": "model",
    "convergence": "max_width",
}


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

    @property
    def taken(self) -> Callable[[str], bool]:
        """Whether an option means something to the method: its function takes it."""
        taken = parameters(self.function)
        return lambda option: option in taken or _TAKEN_AS.get(option) in taken

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
    marked = None if asked.truth is None else _marked(train, asked.truth)
    if asked.taken("model"):
        return Valued(_by_model(asked, train, held_out), how, None, marked)
    values, tuned = _by_neighbours(asked, train, held_out)
    return Valued(values, how, tuned, marked)


def _marked(table: "Table", name: str) -> "NDArray[np.bool_]":
    from datassay.data import truth

    marked = truth(table, name)
    if marked.all() or not marked.any():
        raise InputError(f"--truth {name!r} is {marked[0].item()} in every record; there is nothing to find")
    return marked


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
    k, tau, balance, metric = (options.pop(name, None) for name in ("k", "tau", "balance", "metric"))
    common = asked.run | given(metric=metric)
    if asked.taken("X_val"):
        common["X_val"] = held_out
    if balance is not None:
        common["weights"] = da.balance_weights((train if held_out is None else held_out).labels, balance)
    if asked.method == "waka":
        check_threshold(asked.options)
    tuned: Tuning | None = None
    if asked.method == "tknn-shapley" and tau in (None, "auto"):
        tuned = da.tune_tau(train, **common)
        options["tau"] = tuned.best
    elif tau is not None:
        options["tau"] = as_number("--tau", tau, float)
    if k == "auto":
        tuned = da.tune_k(train, **common)
        options["k"] = int(tuned.best)
    elif k is not None:
        options["k"] = as_number("--k", k, int)
    return asked.call(train, **common, **options), tuned


def _by_model(asked: Request, train: "Table", held_out: "Table | None") -> "Values":
    """Values by a model that is fitted again and again."""
    if not asked.taken("X_val"):
        if held_out is not None:
            raise UsageError(f"{asked.method} needs no validation records: leave out --validation and --split")
    elif held_out is None:
        raise UsageError(
            f"{asked.method} scores a model: name validation records with --validation, or use --split 0.8"
        )
    options = {name: option for name, option in asked.options.items() if name != "convergence"}
    layered, c = asked.taken("design"), options.pop("c", None)
    constants = {name: options.pop(name) for name in ("kappa", "lam") if name in options}
    estimator = make_model(options.pop("model", None), stable=layered and c is None, **constants)
    taken = parameters(asked.function)
    options = {name if name in taken else _TAKEN_AS[name]: option for name, option in options.items()}
    if asked.taken("X_val"):
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
