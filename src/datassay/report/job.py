"""What the sections of a report work on: the table, a sample where pairs of records are looked at, what was asked for.

A section is a function from a job to a :class:`~datassay.report.content.Section`. What it finds out about single
records it leaves in ``records``, by name, so that all numbers of one record join.
"""

import csv
import io
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError
from datassay._work import Pace, Progress
from datassay.attacks import Attack, membership_attack
from datassay.data import Table
from datassay.identity import measured_bins
from datassay.neighbors import Neighbours
from datassay.report.content import Grid, Kind
from datassay.results import Values
from datassay.value import balance_weights, knn_shapley, rank_chances, self_waka

# Seconds a pair of records and a feature take in a neighbour pass, and a person, record, attribute and order in the
# search for people, measured on one machine: they steer the size of samples and the progress bar, and no number.
FEWEST = 30  # records: with fewer no label is called a mistake, and nobody is to be deleted for what is found
MOST_ATTRIBUTES = 40  # more are not looked at together unless they are named
MOST_SEARCHED = 60
PAIR = 1e-10
LOOK = 6e-10


@dataclass(eq=False)
class Job:
    """A report in the making."""

    table: Table
    sample: Table  # the table itself, or records drawn from it
    rows: NDArray[np.intp]  # which these are
    validation: Table | None
    quasi_identifiers: tuple[str, ...] | None
    truth: NDArray[np.bool_] | None
    truth_name: str
    strategies: tuple[str, ...] | None
    epsilon: float
    delta: float
    k: int
    balance: float | None
    show_rows: bool
    quick: bool
    seed: int
    run: dict[str, Any]  # how neighbour passes are run
    stages: "Stages"
    wanted: Sequence[str] = ()  # sections
    values: Values | None = None
    records: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    aside: tuple[str, ...] = ()  # columns taken for numbers of rows
    categorical: tuple[str, ...] = ()  # columns that were to be read as categories
    notes: list[str] = field(default_factory=list)
    telling: bool = True  # whether values say anything of single records: not of few, nor where labels are noise

    @property
    def sampled(self) -> bool:
        """Whether the sample is not everybody."""
        return len(self.sample) < len(self.table)

    @cached_property
    def attributes(self) -> tuple[list[str], list[str]]:
        """What an attacker may know (what was named, or could be known of a person), and what is not looked at."""
        table = self.table
        if self.quasi_identifiers is not None:
            return list(self.quasi_identifiers), []
        bins = measured_bins(table)
        features = [name for name in table.features if not np.all(table.columns[name].missing)]
        known = [name for name in features if name not in bins]
        if not known:
            return [], list(table.features)
        chosen = features if len(features) <= MOST_ATTRIBUTES else known
        if len(chosen) > MOST_ATTRIBUTES:
            spread = {name: len(np.unique(table.columns[name].data)) for name in chosen}
            kept = set(sorted(chosen, key=lambda name: -spread[name])[:MOST_ATTRIBUTES])
            chosen = [name for name in chosen if name in kept]
        return chosen, [name for name in table.features if name not in chosen]

    @property
    def attacked(self) -> list[str] | None:
        """Attributes by which people are searched for in a release; None for all of them, the label among them."""
        if self.quasi_identifiers is not None:  # text that was set aside is in no release
            inside = {*self.table.features, self.table.label}
            return [name for name in self.quasi_identifiers if name in inside] or None
        if len(self.table.features) < MOST_SEARCHED:
            return None
        known = self.attributes[0] or list(self.table.features)
        return known[:MOST_ATTRIBUTES]

    def attacked_count(self, labelled: bool) -> int:
        """How many attributes these are; in a table ``labelled`` the label is one of them."""
        return len(self.sample.features) + labelled if self.attacked is None else len(self.attacked)

    @property
    def reading(self) -> str:
        """Options with which any command reads the table as this report did: what was set aside stays aside."""
        table = self.table
        said = "" if table.label is None else f" --label {shlex.quote(table.label)}"
        said += "" if table.id is None else f" --id {shlex.quote(table.id)}"
        for option, names in (("ignore", table.carried), ("categorical", self.categorical)):
            said += f" --{option} {shlex.quote(in_commas(names))}" if names else ""
        return said

    def valued(self, share: float = 0.0) -> Values:
        """What the records of the sample are worth; computed once, whoever asks first."""
        if self.values is None:
            self.check_classes()
            show = self.stages.part("values", share) if share else None
            weights = None if self.balance is None else balance_weights(self.judges.labels, self.balance)
            self.values = knn_shapley(
                self.near if self.validation is None else Neighbours(self.sample, self.validation, memory=0),
                k=self.k, weights=weights, progress=show, **self.run,
            )  # fmt: skip
        return self.values

    @cached_property
    def near(self) -> Neighbours:
        """The records of the sample as each other's neighbours: values, votes, exposure and attack look at the same."""
        exposed = len(rank_chances(self.k, len(self.sample), None)[0]) if "leaks" in self.wanted else 0
        return Neighbours(self.sample).keep(max(2 * self.k, exposed), self.run["memory"])

    @property
    def attacked_k(self) -> int:
        """Neighbours of the model that is attacked: of half of the records."""
        return min(self.k, max(1, len(self.sample) // 2))

    @cached_property
    def exposed(self) -> tuple[Values, Attack]:
        """How exposed records are, and an attack on them; afterwards nobody looks at these neighbours again."""
        k = self.attacked_k
        exposure = self_waka(self.near, k=k, **self.run)
        games = 16 if self.quick else 48
        attack = membership_attack(self.near, method="t-waka", k=k, games=games, seed=self.seed, **self.run)
        del self.near
        return exposure, attack

    @property
    def judges(self) -> Table:
        """The records that others are valued by."""
        return self.sample if self.validation is None else self.validation

    def check_label(self) -> None:
        """Refuse a table without a label."""
        if self.sample.label is None:
            raise InputError("the table has no label: name the column to predict with --label")

    def check_classes(self) -> None:
        """Refuse a table without a label, and labels that are all the same, here and among the records to value by."""
        self.check_label()
        if len(np.unique(np.concatenate([self.sample.labels.astype(str), self.judges.labels.astype(str)]))) < 2:
            raise InputError(
                "there is one class only: every prediction is right, and no record is worth more than another"
            )

    def record(self, name: str, column: NDArray[np.generic]) -> None:
        """Keep a column about the records of the sample; the others have none."""
        if not self.sampled:
            self.records[name] = column
            return
        if column.dtype.kind in "US":
            whole: NDArray[np.generic] = np.full(len(self.table), "", column.dtype)
        else:  # of whom nothing is known, nothing is said: neither true nor false
            whole = np.full(len(self.table), np.nan)
        whole[self.rows] = column
        self.records[name] = whole

    def discreet(self, note: str) -> str:
        """A note or an error as it may be shown: it names values of the table only if rows may be."""
        if self.show_rows:
            return note
        note = re.sub(r"( never occur in .*?) \(.*\)( and match none)", r"\1\2", note)
        note = re.sub(r"( missing values of .* taken as the \w+ median) \S+$", r"\1", note)
        return re.sub(r"( different numbers with decimals) between \S+ and \S+(: )", r"\1\2", note)

    def people(self, seconds: float, least: int, most: int, attributes: int, orders: int = 50) -> int:
        """How many people can be searched for in about this time, within limits."""
        each = LOOK * len(self.sample) * attributes * orders
        return int(min(len(self.sample), most, max(least, seconds / each)))

    @property
    def row_numbers(self) -> bool:
        """Whether records go by their rows, counted from 0, having no ids."""
        ids = self.table.ids
        return self.table.id is None and ids.dtype.kind in "iu" and bool(np.array_equal(ids, np.arange(len(ids))))

    def these(self, ids: NDArray[np.generic]) -> str:
        """Some records, in a sentence."""
        return f"rows {named(ids)} (counted from 0)" if self.row_numbers else named(ids)

    def listed(
        self, title: str, rows: NDArray[np.intp], columns: dict[str, list[str]], method: str, note: str = ""
    ) -> Grid:
        """A table of records of the sample, by id, with these columns; with their rows, if these are to be shown."""
        shown: dict[str, tuple[Kind, list[str]]] = {"record": ("text", [str(one) for one in self.sample.ids[rows]])}
        for name, column in columns.items():
            digits = (one.lstrip("−-+").replace(",", "").rstrip("%").replace(".", "", 1) for one in column)
            shown[name] = ("number" if all(map(str.isdecimal, digits)) else "text", column)
        if self.show_rows:
            for name in self.sample.features:
                cells = self.sample.columns[name].take(rows).written().tolist()
                shown[name if name not in shown else f"{name} (column)"] = ("text", [cell(one) for one in cells])
        return Grid(
            title,
            tuple(shown),
            tuple(zip(*(column for _, column in shown.values()), strict=True)),
            tuple(kind for kind, _ in shown.values()),
            method,
            note,
        )


def in_commas(names: Sequence[str]) -> str:
    """Names as the options of the command line read them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def cell(value: object) -> str:
    """A cell as a person would write it; "" where nothing is known."""
    if value is None or value != value:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def percent(share: float) -> str:
    """A share, with as many digits as it deserves.

    >>> percent(0.2696), percent(0.0012), percent(0.0), percent(1.0), percent(0.99999)
    ('27.0%', '0.12%', '0%', '100%', '>99.9%')
    """
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share > 0.9995:
        return ">99.9%"
    if share < 0.00005:
        return "<0.01%"
    return f"{share:.1%}" if share >= 0.0095 else f"{share:.2%}"


def named(ids: "NDArray[np.generic] | Sequence[object]", last: str = "and") -> str:
    """Some names in a row, the last after «and».

    >>> named(["a", "b", "c"])
    'a, b and c'
    """
    texts = [str(one) for one in ids]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {last} {texts[-1]}"


class Stages(AbstractContextManager["Stages"]):
    """One bar for the whole report: every stage has a share of it, by the time it is expected to take."""

    def __init__(self, progress: Progress, planned: dict[str, float]) -> None:
        total = sum(planned.values())
        self._shares = {name: seconds / total for name, seconds in planned.items()}
        self._done = self._over = 0.0
        self._display: AbstractContextManager[object] = nullcontext()
        self._show: Callable[[float, str], None] = lambda done, what: None
        if isinstance(progress, Pace):
            progress.plan(planned)
            self._show, self._display = _bar() if progress.bar else (progress.show, progress)
        elif callable(progress):
            self._show = lambda done, what: progress(round(1000 * done), 1000)
        elif progress:
            self._show, self._display = _bar()

    def __enter__(self) -> "Stages":
        self._display.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._display.__exit__(*exception)  # type: ignore[arg-type]

    def part(self, stage: str, share: float = 1.0) -> Callable[[int, int], None]:
        """The progress of one calculation, which is this share of its stage; its end is where the next one begins."""
        start, length = self._done, share * self._shares[stage]
        self._done = start + length
        self._show(start, stage)
        return lambda done, of: self._show(start + length * min(1.0, done / max(of, 1)), stage)

    def finish(self, stages: tuple[str, ...]) -> None:
        """These stages are over, whether or not they came to all of their parts."""
        self._over += sum(self._shares[name] for name in stages)
        self._done = self._over
        self._show(self._done, stages[-1])


def _bar() -> tuple[Callable[[float, str], None], AbstractContextManager[object]]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    columns = ("{task.description}", BarColumn(), TaskProgressColumn(), "left:", TimeRemainingColumn())
    display = Display(*columns, console=Console(stderr=True), transient=True)
    bar = display.add_task("reading", total=1.0)
    return (lambda done, what: display.update(bar, completed=done, description=what)), display
