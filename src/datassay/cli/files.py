"""The user's files: how a command reads the data, and what it refuses to write."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option

from datassay._choices import Missing, Scaling, TextColumns
from datassay._errors import InputError, UsageError
from datassay.cli.command import Options, option

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


@dataclass(frozen=True)
class Columns(Options):
    """What the columns of a table are."""

    id: Id = None
    ignore: Ignore = ""
    categorical: Categorical = ""

    def arguments(self) -> dict[str, Any]:
        """How the table is to be read, as :func:`datassay.read_table` takes it."""
        return {"ignore": column_list(self.ignore), "categorical": column_list(self.categorical)}


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class ReadingApart(Reading):
    """The same for records that have no say in it: the columns are what they are among the validation records."""

    missing: Missing | None = option(
        "Missing values: fill in the validation median or a category, or refuse ({read_table.missing})."
    )
    scale: Scaling | None = option("How numbers are scaled, fitted on validation records ({read_table.scale}).")

    def tables(
        self, data: str, label: str | None, validation: Path | None, split: float | None, seed: int
    ) -> "tuple[Table, Table]":
        """The private and the public table."""
        from datassay import _checks
        from datassay.data import column_names, missing_column, read_table

        if validation is not None and split is not None:
            raise UsageError("--validation and --split cannot go together: one of them holds the public records")
        reading = self.arguments()
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


Files = Sequence[Path | None]


def refuse_inputs(written: Files, read: "Sequence[str | Path | None]") -> None:
    """Refuse to write over what is read (a file, or a data set in the folder of data sets), or twice to one place."""
    from datassay.data import dataset_file, is_many, would_be_read

    sources = [str(source) for source in read if source is not None]
    inputs = {Path(source).resolve() for source in sources}
    inputs |= {file.resolve() for source in sources if (file := dataset_file(source)) is not None}
    places: set[Path] = set()
    for path in written:
        if path is None:
            continue
        for source in sources:
            if is_many(source) and would_be_read(path, source):
                raise UsageError(f"{path} would become a part of {source!r}, which is read; write it elsewhere")
        if path.resolve() in inputs:
            raise UsageError(f"{path} is an input; writing there would overwrite your data")
        if path.resolve() in places:
            raise UsageError(f"{path} is named twice; every file to write needs a name of its own")
        places.add(path.resolve())


def check_written(
    read: "Sequence[str | Path | None]", tables: Files = (), figures: Files = (), also: Files = ()
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


def draw(plot: "Callable[[Axes], Axes]", path: Path | None, width: float = 7, height: float = 4) -> None:
    """Let ``plot`` draw on a figure of its own (no window, no pyplot) and save it, if it is asked for."""
    if path is None:
        return
    from matplotlib.figure import Figure

    from datassay.results import save_figure

    save_figure(plot(Figure(figsize=(width, height), layout="constrained").add_subplot()), path)
