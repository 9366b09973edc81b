"""What a command is given: the user's data, and who does the work."""

import csv
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option

from datassay._choices import Bound, Missing, Scaling, TextColumns
from datassay._errors import InputError, UsageError
from datassay.cli.command import Ending, Options, given, option

if TYPE_CHECKING:
    from datassay.data import Table

COMPLETED: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", ".parquet", ".pq")


def complete_dataset(incomplete: str) -> list[str]:
    """What an argument may become that is a data set by name."""
    from datassay.data import list_datasets

    return [info.name for info in list_datasets() if info.name.startswith(incomplete)]


def complete_data(incomplete: str) -> list[str]:
    """What an argument may become that is a data set by name, or a file that can be read."""
    return [*complete_dataset(incomplete), *complete_file(incomplete)]


def complete_file(incomplete: str) -> list[str]:
    """What an argument may become that is a file that can be read, or a folder on the way there."""
    begun = incomplete.rpartition("/")[2]
    before = incomplete.removesuffix(begun)
    try:
        here = sorted(Path(before or ".").iterdir())
    except OSError:  # a folder that is not there, or not ours to look into
        return []
    found = []
    for file in here:
        named_so = file.name.startswith(begun) and (begun or not file.name.startswith("."))
        if named_so and (file.is_dir() or file.name.lower().endswith(COMPLETED)):
            found.append(f"{before}{file.name}{'/' if file.is_dir() else ''}")
    return found


Data = Annotated[
    str,
    Argument(
        help="A CSV or Parquet file, or the name of a data set (datassay datasets). For value and unique also a folder "
        'of Parquet files, or a pattern such as "people/*.parquet".',
        autocompletion=complete_data,
    ),
]
Label = Annotated[str | None, Option("--label", "-l", help="Column to predict.")]
Id = Annotated[str | None, Option("--id", help="Column that identifies a row.")]
Ignore = Annotated[str, Option(help="Columns not to use, separated by commas (a name with a comma in double quotes).")]
Categorical = Annotated[str, Option(help="Columns to read as categories, such as zip codes, separated by commas.")]


class Columns(Options):
    """What the columns of a table are."""

    id: Id = None
    ignore: Ignore = ""
    categorical: Categorical = ""

    def arguments(self) -> dict[str, Any]:
        """How the table is to be read, as :func:`datassay.read_table` takes it."""
        return {"ignore": column_list(self.ignore), "categorical": column_list(self.categorical)}


class Reading(Columns):
    """What the columns of a table are, and what becomes of what is no number."""

    text: TextColumns | None = option("What to do with text columns ({read_table.text}).")
    missing: Missing | None = option(
        "Missing values: fill in the training median or a category, or refuse ({read_table.missing})."
    )
    scale: Scaling | None = option("How numbers are scaled, fitted on training data ({read_table.scale}).")

    def arguments(self) -> dict[str, Any]:
        """How the table is to be read, as :func:`datassay.read_table` takes it."""
        return super().arguments() | self.given("text", "missing", "scale")


class ReadingApart(Reading):
    """The same for records that have no say in it: the columns are what they are among the validation records."""

    validation: Path | None = option("PUBLIC file of validation records, no part of DATA, with the same columns.")
    split: float | None = option("Share of DATA that is private; the rest is taken to be public. For trying out.")
    missing: Missing | None = option(
        "Missing values: fill in the validation median or a category, or refuse ({read_table.missing})."
    )
    scale: Scaling | None = option("How numbers are scaled, fitted on validation records ({read_table.scale}).")

    def tables(self, data: str, label: str | None, seed: int) -> "tuple[Table, Table]":
        """The private and the public table."""
        from datassay import _checks
        from datassay.data import column_names, missing_column, read_table

        validation, split, reading = self.validation, self.split, self.arguments()
        if validation is not None and split is not None:
            raise UsageError("--validation and --split cannot go together: one of them holds the public records")
        if validation is None:
            if split is None:
                raise UsageError(
                    "name the public validation records with --validation FILE, or try it with --split 0.9"
                )
            _checks.number("--split", split, above=0, below=1)
            private, public = load_table(data, label, self.id, reading).split(split, seed=seed)
            return private, public
        private_names, public_names = column_names(data), column_names(validation)
        if self.id is not None and self.id not in private_names:
            raise InputError(f"{Path(data).name}: {missing_column(self.id, private_names)}")
        ignored: list[str] = reading.pop("ignore")
        here = [name for name in ignored if name in public_names]
        own_id = self.id if self.id in public_names else None
        public = load_table(str(validation), label, own_id, reading | {"ignore": here})
        beside = [name for name in ignored if name not in here]
        private = read_table(data, id=self.id, like=public, ignore=beside, **self.given("text"))
        return private, public


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


def names_many(data: str) -> bool:
    """Whether data is a folder or a pattern, and no data set by name."""
    from datassay.data import is_many, list_datasets

    return is_many(data) and data not in {info.name for info in list_datasets()}


def column_list(listed: str) -> list[str]:
    """Names separated by commas; a name that holds a comma is put in double quotes, as in CSV."""
    return [name.strip() for row in csv.reader([listed], skipinitialspace=True) for name in row if name.strip()]


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


def to_bytes(mebibytes: int | None) -> int | None:
    """MiB of the command line as the library counts memory."""
    return None if mebibytes is None else mebibytes * 2**20


class Stable(Options):
    """The model of layered-shapley, and how many coalitions it is fitted to."""

    kappa: float | None = option(
        "Of stable-logistic-regression: bound on a record's length, PUBLIC for private values "
        "({StableLogisticRegression.kappa})."
    )
    lam: float | None = option("Of stable-logistic-regression: the penalty ({StableLogisticRegression.lam}).")
    bound: Bound | None = option("Of layered-shapley: coalitions as published, or fewer for the same promise.")


class Threads(Ending):
    """How many threads do the work, and what is said of it."""

    jobs: int = option("Threads; -1 for all cores.", "--jobs", "-j", default=-1)

    def __post_init__(self) -> None:
        if self.jobs != -1 and self.jobs < 1:
            raise UsageError(f"--jobs must be at least 1, or -1 for all cores; got {self.jobs}")

    def arguments(self) -> dict[str, Any]:
        """How to run, as functions take it."""
        return {"n_jobs": self.jobs, "progress": self.progress} | given(memory=getattr(self, "memory", None))


class Blocks(Threads):
    """Threads that do the work in blocks of some size."""

    memory: int | None = option("MiB to use for blocks of distances ({knn_shapley.memory}).", min=1, callback=to_bytes)


class Cluster(Threads):
    """Threads or a Dask cluster, and where what is done is kept."""

    dask: str | None = option(
        "Run on the Dask cluster with its scheduler here, such as tcp://HOST:8786.", metavar="ADDRESS"
    )
    checkpoint: Path | None = option(
        "Keep what is done in this folder; a run that was stopped goes on from it.", metavar="FOLDER"
    )

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let the Dask cluster do what is done meanwhile, if one was named."""
        if self.dask is None:
            yield
            return
        import joblib

        from datassay._cluster import connect

        with connect(self.dask) as client, joblib.parallel_config(backend="dask", client=client):
            yield

    def folder(self, part: str) -> Path | None:
        """Where a command that calculates several things keeps one of them."""
        if self.checkpoint is None:
            return None
        try:
            self.checkpoint.mkdir(exist_ok=True)
        except OSError as error:
            raise UsageError(f"no checkpoint can be kept in {str(self.checkpoint)!r}: {error.strerror}") from None
        return self.checkpoint / part


class Devices(Cluster):
    """Threads, a Dask cluster or a graphics card."""

    device: str | None = option(
        "Where the neighbours are found: cuda (a graphics card) or cpu, by torch; without it, here."
    )
    memory: int | None = option(
        "MiB to use for blocks of distances ({knn_shapley.memory}, or with --device what is free there).",
        min=1,
        callback=to_bytes,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dask is not None and self.device is not None:
            raise UsageError("--dask and --device are two answers to who does the work; give one of them")


@contextmanager
def nothing_printed() -> Iterator[None]:
    """Keep standard output for what the command says: scipy's solver (HiGHS) prints there, whatever it is asked.

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
