"""What the commands share: choices, reading the user's data, refusing to write over it, and how each one ends.

Every command begins with :func:`check_conditions` and ends with :func:`conclude`, so that ``--json``, ``--fail-if`` and
``--quiet`` mean the same everywhere.
"""

import csv
import json
import math
import operator
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from datassay._choices import Missing, Scaling, TextColumns
from datassay._errors import InputError, UsageError
from datassay._version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from datassay.data import Table
    from datassay.privacy import Ledger
    from datassay.results import Fact

Model = Literal[
    "logistic-regression",
    "stable-logistic-regression",
    "decision-tree",
    "random-forest",
    "gradient-boosting",
    "naive-bayes",
    "nearest-neighbours",
    "support-vectors",
    "ridge-regression",
    "forest-regression",
]


def make_model(
    name: Model | None, kappa: float | None, lam: float | None, c: float | None = None, stable_by_default: bool = False
) -> Any:
    """The estimator of that name; without one, logistic regression (the stable one where its constants are needed)."""
    if name is None:
        plain = not stable_by_default or c is not None
        name = "logistic-regression" if plain and kappa is None and lam is None else "stable-logistic-regression"
    if name == "stable-logistic-regression":
        from datassay.value import StableLogisticRegression

        return StableLogisticRegression(1.0 if kappa is None else kappa, 1.0 if lam is None else lam)
    if kappa is not None or lam is not None:
        raise UsageError(f"--kappa and --lam are those of stable-logistic-regression, not of {name}")
    if name == "logistic-regression":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)
    if name == "decision-tree":
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier()
    if name == "naive-bayes":
        from sklearn.naive_bayes import GaussianNB

        return GaussianNB()
    if name == "nearest-neighbours":
        from sklearn.neighbors import KNeighborsClassifier

        return KNeighborsClassifier()
    if name == "support-vectors":
        from sklearn.svm import SVC

        return SVC()
    if name == "ridge-regression":
        from sklearn.linear_model import Ridge

        return Ridge()
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

    if name == "forest-regression":
        return RandomForestRegressor()
    return RandomForestClassifier() if name == "random-forest" else HistGradientBoostingClassifier()


def complete_dataset(incomplete: str) -> list[str]:
    """What an argument may become that is a data set by name."""
    from datassay.data import list_datasets

    return [info.name for info in list_datasets() if info.name.startswith(incomplete)]


def complete_data(incomplete: str) -> list[str]:
    """What an argument may become that is a data set by name, or a file that can be read."""
    return [*complete_dataset(incomplete), *complete_file(incomplete)]


def complete_file(incomplete: str) -> list[str]:
    """What an argument may become that is a file to read: such files, and folders on the way there."""
    begun = incomplete.rpartition("/")[2]
    before = incomplete.removesuffix(begun)
    try:
        here = sorted(Path(before or ".").iterdir())
    except OSError:  # a folder that is not there, or not ours to look into
        return []
    found = []
    for file in here:
        if file.name.startswith(begun) and (begun or not file.name.startswith(".")):
            if file.is_dir():
                found.append(f"{before}{file.name}/")
            elif file.name.lower().endswith(COMPLETED):
                found.append(f"{before}{file.name}")
    return found


COMPLETED: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", ".parquet", ".pq")

# Arguments and options that mean the same in every command.
DataArgument = Annotated[
    str,
    typer.Argument(
        help="A CSV or Parquet file, or the name of a data set (datassay datasets). For value and unique also a folder "
        'of Parquet files, or a pattern such as "people/*.parquet".',
        autocompletion=complete_data,
    ),
]
LabelOption = Annotated[str | None, typer.Option("--label", "-l", help="Column to predict.")]
IgnoreOption = Annotated[
    str, typer.Option(help="Columns not to use, separated by commas (a name with a comma in double quotes).")
]
CategoricalOption = Annotated[
    str, typer.Option(help="Columns to read as categories, such as zip codes, separated by commas.")
]
TextOption = Annotated[TextColumns, typer.Option(help="What to do with text columns.")]
JobsOption = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")]
MemoryOption = Annotated[int, typer.Option(help="MiB to use for blocks of distances.", min=1)]
BlocksOption = Annotated[
    int | None,
    typer.Option(
        "--memory", help="MiB to use for blocks of distances: 512, or with --device what is free there.", min=1
    ),
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="Run on the Dask cluster with its scheduler here, such as tcp://HOST:8786."
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device", help="Where the neighbours are found: cuda (a graphics card) or cpu, by torch; without it, here."
    ),
]
CheckpointOption = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FOLDER",
        help="Keep what is done in this folder; a run that was stopped goes on from it.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object (facts, notes, files written) in place of the summary.")
]
FailIfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help='Exit with status 1 if a fact of --json is so: NAME OP NUMBER, such as "records < 100". May be repeated.',
    ),
]

_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
# A name may hold anything, operators too: what counts is the last operator, which a number must follow. One that is the
# end of something else (>>, =<, <>) is none.
_CONDITION: Final = re.compile(rf"(.*\S)\s*(?<![<>=!])({'|'.join(_COMPARISONS)})\s*([^\s<>=!]+)", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """What must not be so: the fact of this name compared with a number."""

    text: str
    name: str
    comparison: str
    number: float

    def holds(self, found: float) -> bool:
        """Whether it is so of this number."""
        return _COMPARISONS[self.comparison](found, self.number)


def check_conditions(fail_if: list[str] | None) -> list[Condition]:
    """The conditions of ``--fail-if``; one that cannot be read is refused, before any work."""
    found = []
    for given in fail_if or []:
        text = given.strip()
        parts = _CONDITION.fullmatch(text)
        try:
            number = float(parts[3]) if parts else math.nan
        except ValueError:
            number = math.nan
        if parts is None or not math.isfinite(number):
            raise UsageError(
                f"--fail-if takes NAME OP NUMBER with an OP of >, >=, <, <=, == and !=, such as 'records < 100'; got "
                f"{given!r}"
            )
        found.append(Condition(text, parts[1], parts[2], number))
    return found


def conclude(
    command: str,
    facts: "Mapping[str, Fact]",
    told: Sequence[str],
    notes: Sequence[str],
    written: Sequence[Path | None],
    *,
    quiet: bool,
    as_json: bool,
    conditions: Sequence[Condition],
) -> None:
    """Say what came out, in words or as JSON, and end with status 1 if a condition of ``--fail-if`` holds.

    ``told`` are texts for a person. A note that one of them tells already is not repeated; in JSON all are listed.
    """
    from datassay._checks import visible
    from datassay.results import as_facts

    plain, notes = as_facts(facts), list(dict.fromkeys(notes))
    files = [str(path) for path in written if path is not None]
    if as_json:
        shown = {"command": command, "version": __version__, "facts": plain, "notes": notes, "written": files}
        text = json.dumps(shown, ensure_ascii=False, allow_nan=False, indent=1)
        # Bytes, so that it is UTF-8 whatever the terminal's encoding is. A file name that is no text is escaped.
        typer.echo(text.encode("utf-8", "backslashreplace"))
    elif not quiet:
        for text in told:
            typer.echo(visible(text))
        for note in notes:
            if not any(f"Note: {note}" in text for text in told):
                typer.echo(visible(f"Note: {note}"))
        for file in files:
            typer.echo(visible(f"Written: {file}"))
    _judge(plain, conditions)


def _judge(facts: "Mapping[str, Fact]", conditions: Sequence[Condition]) -> None:
    """Say which conditions hold, and end with status 1 if any does; a name that is no fact is a mistake of the call."""
    from datassay import _checks

    known = {name.strip(): fact for name, fact in facts.items()}
    for condition in conditions:
        if condition.name not in known:
            close = _checks.closest(condition.name, known)
            hint = f"did you mean {close!r}? There" if close else "there"
            raise UsageError(
                f"--fail-if {condition.text!r}: there is no fact {condition.name!r} here; {hint} are "
                f"{_checks.listed(known, 60)}"
            )
        if isinstance(known[condition.name], str):
            raise UsageError(
                f"--fail-if {condition.text!r}: {condition.name} is {known[condition.name]!r}, which is no number"
            )
    failed = False
    for condition in conditions:
        fact = known[condition.name]
        assert not isinstance(fact, str)
        if fact is None:
            complain(f"--fail-if {condition.text!r}: {condition.name} is not known, so it cannot be ruled out")
        elif condition.holds(fact):
            complain(f"--fail-if {condition.text!r} holds: {condition.name} is {str(fact).lower()}")
        else:
            continue
        failed = True
    if failed:
        raise typer.Exit(1)


def complain(message: str) -> None:
    """One line on standard error, red where that is wanted."""
    from datassay._checks import visible

    # typer leaves NO_COLOR (https://no-color.org) to whoever calls it.
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    line = visible(" ".join(f"datassay: {message}".split()))
    typer.echo(typer.style(line, fg="red") if coloured else line, err=True)


def shows_progress(quiet: bool) -> bool:
    """Whether somebody is there to look at a progress bar."""
    return not quiet and sys.stderr.isatty()


def as_text(*shown: object) -> str:
    """Tables of rich as plain text: as wide as the terminal, or, where it goes to a file or a pipe, as they are."""
    import io

    from rich.console import Console

    width = None if sys.stdout.isatty() else 10_000
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False, markup=False)
    for part in shown:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def check_applies(method: str, given: dict[str, Any], allowed: set[str]) -> None:
    """Refuse an option that was given and means nothing to the method."""
    for name, option in given.items():
        if option is not None and name not in allowed:
            raise UsageError(f"--{name.replace('_', '-')} does not apply to {method}")


def bytes_for_blocks(memory: int | None) -> int:
    """Bytes for blocks of distances, from MiB; what a device has free, or 512 MiB, if nothing was said."""
    from datassay._run import DEFAULT_MEMORY

    return DEFAULT_MEMORY if memory is None else memory * 2**20


def check_jobs(jobs: int) -> None:
    """Refuse a number of threads that is none."""
    if jobs != -1 and jobs < 1:
        raise UsageError(f"--jobs must be at least 1, or -1 for all cores; got {jobs}")


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Let a Dask cluster do what is done meanwhile, if there is an address."""
    if address is None:
        yield
        return
    import joblib

    from datassay._cluster import connect

    with connect(address) as client, joblib.parallel_config(backend="dask", client=client):
        yield


def folder_for(checkpoint: Path | None, part: str) -> Path | None:
    """Where a command that calculates several things keeps one of them."""
    if checkpoint is None:
        return None
    try:
        checkpoint.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"no checkpoint can be kept in {str(checkpoint)!r}: {error.strerror}") from None
    return checkpoint / part


def reading_options(
    ignore: str, categorical: str, text: TextColumns, missing: Missing, scale: Scaling
) -> dict[str, Any]:
    """How a table is to be read, as :func:`datassay.read_table` takes it."""
    return {
        "ignore": column_list(ignore),
        "categorical": column_list(categorical),
        "text": text,
        "missing": missing,
        "scale": scale,
    }


@contextmanager
def nothing_printed() -> Iterator[None]:
    """Keep standard output for what the command says: scipy's solver (HiGHS) prints there whatever it was told.

    It does so beneath Python, hence the file descriptors.
    """
    import ctypes

    try:
        sys.stdout.flush()
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    except (OSError, ValueError):  # it is closed
        yield
        return
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        with suppress(Exception):  # what C still holds back would come out later
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def draw(plot: "Callable[[Axes], Axes]", path: Path | None, width: float = 7, height: float = 4) -> None:
    """Let ``plot`` draw on a figure of its own (no window, no pyplot) and save it, if it is asked for."""
    if path is None:
        return
    from matplotlib.figure import Figure

    from datassay.results import save_figure

    save_figure(plot(Figure(figsize=(width, height), layout="constrained").add_subplot()), path)


def column_list(listed: str) -> list[str]:
    """Names separated by commas; a name that holds a comma is put in double quotes, as in CSV."""
    return [name.strip() for row in csv.reader([listed], skipinitialspace=True) for name in row if name.strip()]


def refuse_inputs(written: "list[Path | None]", read: "list[str | None]") -> None:
    """Refuse to write over what is read (a file, or a data set in the folder of data sets), or twice to one place."""
    from datassay.data import dataset_file, is_many, would_be_read

    inputs = {Path(source).resolve() for source in read if source is not None}
    inputs |= {file.resolve() for source in read if source is not None and (file := dataset_file(source)) is not None}
    places: set[Path] = set()
    for path in written:
        if path is None:
            continue
        for source in read:
            if source is not None and is_many(source) and would_be_read(path, source):
                raise UsageError(f"{path} would become a part of {source!r}, which is read; write it elsewhere")
        if path.resolve() in inputs:
            raise UsageError(f"{path} is an input; writing there would overwrite your data")
        if path.resolve() in places:
            raise UsageError(f"{path} is named twice; every file to write needs a name of its own")
        places.add(path.resolve())


def check_written(
    tables: "list[Path | None]", figures: "list[Path | None]", also: "list[Path | None]", read: "list[str | None]"
) -> None:
    """Refuse, before any work, what could not be written, would overwrite what is read, or is named twice."""
    from datassay import results

    for table in tables:
        if table is not None:
            results.check_output(table)
    for figure in figures:
        if figure is not None:
            results.check_figure(figure)
    refuse_inputs([*tables, *figures, *also], read)


def names_many(data: str) -> bool:
    """Whether this is a folder or a pattern, and no data set by name."""
    from datassay.data import is_many, list_datasets

    return is_many(data) and data not in {info.name for info in list_datasets()}


def load_table(source: str, label: str | None, id: str | None, reading: dict[str, Any]) -> "Table":
    """Read a file, or a data set by name; it must have a label."""
    from datassay.data import list_datasets, load_dataset, read_table

    path = Path(source)
    by_name = source in {info.name for info in list_datasets()}
    if path.is_file() or path.suffix or (path.is_dir() and not by_name):
        # Without a label there is nothing to value: say so before anything else that may be wrong with the file.
        table = read_table(source, label, id, **(reading if label else {"text": "ignore"}))
    else:
        table = load_dataset(source, label, id, **reading)
    if table.label is None:
        raise UsageError(f"name the column to predict with --label; {table.name} has {', '.join(table.columns)}")
    return table


def public_tables(
    data: str,
    validation: Path | None,
    split: float | None,
    seed: int,
    label: str | None,
    id: str | None,
    reading: dict[str, Any],
) -> "tuple[Table, Table]":
    """The private and the public table. What the columns are is read off the public one alone."""
    from datassay import _checks
    from datassay.data import column_names, missing_column, read_table

    if validation is not None and split is not None:
        raise UsageError("--validation and --split cannot go together: one of them holds the public records")
    if validation is None:
        if split is None:
            raise UsageError("name the public validation records with --validation FILE, or try it with --split 0.9")
        _checks.number("--split", split, above=0, below=1)
        private, public = load_table(data, label, id, reading).split(split, seed=seed)
        return private, public
    private_names, public_names = column_names(data), column_names(validation)
    if id is not None and id not in private_names:
        raise InputError(f"{Path(data).name}: {missing_column(id, private_names)}")
    here = [name for name in reading["ignore"] if name in public_names]
    beside = [name for name in reading["ignore"] if name not in here]
    own_id = id if id in public_names else None
    public = load_table(str(validation), label, own_id, reading | {"ignore": here})
    private = read_table(data, id=id, like=public, text=reading["text"], ignore=beside)
    return private, public


def open_ledger(
    path: Path | None, epsilon: float | None, delta: float | None, promised: float, relation: Any
) -> "Ledger | None":
    """The ledger of that name, if there is one to be: opened, or with its budget to be made when it is first paid from.

    A command that fails before that leaves no ledger behind. One that fails after it leaves it there: others may be
    spending from it.
    """
    from datassay import _checks
    from datassay.privacy import Ledger

    if path is None:
        if epsilon is not None or delta is not None:
            raise UsageError("a budget is that of a ledger: name it with --ledger")
        return None
    if epsilon is not None:
        epsilon = _checks.number("--budget-epsilon", epsilon, above=0)
    if delta is not None:
        delta = _checks.number("--budget-delta", delta, above=0, below=1)
    if not path.exists():
        if epsilon is None:
            raise UsageError(f"there is no ledger {str(path)!r}; to make one, give its budget with --budget-epsilon")
        return Ledger.planned(path, epsilon, promised if delta is None else delta, relation)
    ledger = Ledger(path, relation=relation)
    for name, given, kept in (("epsilon", epsilon, ledger.epsilon), ("delta", delta, ledger.delta)):
        if given is not None and given != kept:
            raise UsageError(
                f"--budget-{name} {given:g}: the ledger {str(path)!r} has a budget of {name}={kept!r}, and a budget is "
                "never changed"
            )
    return ledger


def as_number(option: str, text: str, kind: type[int] | type[float]) -> float:
    """The number given to an option that also takes 'auto'."""
    try:
        return kind(text)
    except ValueError:
        whole = "a whole number" if kind is int else "a number"
        raise UsageError(f"{option} must be {whole} or 'auto', got {text!r}") from None


def number_list(
    option: str, text: str, *, at_least: float | None = None, above: float | None = None, different: bool = False
) -> list[float]:
    """Numbers separated by commas, one at least, each within bounds if there are any."""
    from datassay import _checks

    try:
        numbers = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if not numbers:
        raise UsageError(f"{option} must be numbers separated by commas, got {text!r}")
    if different and len(set(numbers)) < len(numbers):
        raise UsageError(f"{option} must be different numbers, got {text!r}")
    if at_least is not None or above is not None:
        numbers = [_checks.number(f"each of {option}", one, at_least=at_least, above=above) for one in numbers]
    return numbers
