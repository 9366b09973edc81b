"""The whole report: the table is read, every section asks its question, the answers make a page."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._choices import MOST_PAIRED, MOST_PAIRED_QUICKLY
from datassay._errors import InputError, UsageError
from datassay._run import DEFAULT_MEMORY, Blocks, documented
from datassay._work import thread_count
from datassay.data import Column, Table, TableLike, as_table, list_datasets, load_dataset, missing_column, read_table
from datassay.data import truth as truth_of
from datassay.report.content import Section
from datassay.report.found import bits_seconds, found
from datassay.report.job import LOOK, PAIR, Job, Stages
from datassay.report.leaks import leaks
from datassay.report.private_values import private_values
from datassay.report.releases import releases
from datassay.report.result import Report
from datassay.report.trade import trade
from datassay.report.worth import worth
from datassay.results import Parameter

# The question of a section, its answer, and the stages that this takes.
SECTIONS: Final[dict[str, tuple[str, Callable[[Job], Section], tuple[str, ...]]]] = {
    "worth": ("What is the data worth?", worth, ("values",)),
    "leaks": ("What does it leak?", leaks, ("exposure",)),
    "found": ("Who can be found?", found, ("uniqueness", "risk")),
    "release": ("What may be released?", releases, ("releases",)),
    "told": ("What can be told?", private_values, ("private values",)),
    "trade": ("How could it be sold?", trade, ("prices",)),
}
ID_NAMES: Final = ("id", "index", "row", "row_id", "rowid", "record", "record_id", "unnamed: 0")


@documented()
def report(
    table: TableLike,
    label: str | None = None,
    *,
    id: str | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    validation: TableLike | None = None,
    quasi_identifiers: Sequence[str] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    strategies: Sequence[str] | None = None,
    truth: str | None = None,
    k: int = 5,
    balance: float | None = None,
    sections: Sequence[str] | None = None,
    show_rows: bool = False,
    quick: bool = False,
    most: int | None = None,
    seed: int = 0,
    **run: Unpack[Blocks],
) -> Report:
    """The whole answer about a data set: what it is worth and leaks, who can be found, what to release and to tell.

    One page for a privacy officer to read and a data scientist to act on, with the numbers of every record joined by
    id. Sections that need something the table lacks (a label, say) are left out and say so.

    Parameters
    ----------
    table, label, id
        A :class:`datassay.Table`, a data frame, the path of a CSV or Parquet file or the name of a data set; the column
        to predict and the column that identifies a row. Text that is no category is set aside.
    ignore, categorical
        Columns not to use, and columns of a file or frame to read as categories although they look like numbers.
    validation
        Records to value the others by, and to stand for the public ones in private values. Left out, records are
        valued by each other, and a fifth of them stands for public ones.
    quasi_identifiers
        The attributes an attacker could know of a person; all features if left out.
    epsilon, delta
        Of private values; δ is 1 in ten times as many as there are records, at most 10⁻⁵, if left out.
    strategies
        Ways to release the data (see :func:`datassay.compare_releases`).
    truth
        A true/false column that marks faulty records, to see how well they were found. It is no feature.
    k
        Number of neighbours; whether a label is likely wrong is a vote of twice as many.
    balance
        How much the larger classes count in values, the smallest being 1 (see :func:`datassay.balance_weights`); as
        they are if left out.
    sections
        Those wanted, of worth, leaks, found, release, told and trade; all if left out.
    show_rows
        Show the rows of the records listed. Without it the page shows no row of the table.
    quick
        Smaller samples and fewer strategies: for a first look.
    most
        Of more records than this, so many are drawn for whatever looks at pairs of records (60,000; quickly 5,000). Who
        is unique is always counted among all.
    seed
        Seed of all draws (private noise has none).

    Returns
    -------
    Report
        ``.save("report.html")`` writes the page, and all of it as JSON beside it; ``.summary()`` is the first screen;
        ``.facts()`` has the numbers by name, ``.to_frame()`` those of every record.

    Examples
    --------
    >>> import datassay as da
    >>> made = da.report(da.census(300), quick=True)
    >>> made.section("worth").facts["records_valued"]
    300
    >>> [section.key for section in made.sections]
    ['worth', 'leaks', 'found', 'release', 'told', 'trade']
    """
    _checks.not_one_string("quasi_identifiers", quasi_identifiers or (), "attributes")
    _checks.not_one_string("strategies", strategies or (), "")
    _checks.not_one_string("sections", sections or (), "")
    epsilon = _checks.number("epsilon", epsilon, above=0)
    k = _checks.integer("k", k, at_least=1)
    seed = _checks.integer("seed", seed, at_least=0)
    if most is None:
        most = MOST_PAIRED_QUICKLY if quick else MOST_PAIRED
    most = _checks.integer("most", most, at_least=20)
    for name in sections or ():
        _checks.choice("sections", name, tuple(SECTIONS))
    wanted = [name for name in SECTIONS if sections is None or name in sections]
    if not wanted:
        raise UsageError(f"sections names none; there are {', '.join(SECTIONS)}")
    if label is not None and not isinstance(label, str):
        raise UsageError(f"label must be the name of a column, got {type(label).__name__}")
    if balance is not None:
        balance = _checks.number("balance", balance, above=0)
    whole = _read(table, label, id, ignore, categorical)
    if truth is not None and truth in whole.features:
        whole = whole.set_aside([truth])
    wanted_too = set(quasi_identifiers or ())
    numbering = tuple(n for n in whole.features if n not in wanted_too and _numbers_rows(n, whole.columns[n]))
    whole = whole.set_aside(numbering)
    marked = None if truth is None else truth_of(whole, truth)
    if whole.label is not None:
        _ = whole.labels  # missing ones are an error now, not in the middle
    for name in quasi_identifiers or ():
        if name not in whole.columns:
            raise InputError(f"quasi_identifiers: {missing_column(name, whole.columns)}")
    delta = _checks.number("delta", min(1e-5, 0.1 / len(whole)) if delta is None else delta, above=0, below=1)
    sample, rows = _drawn(whole, most, seed)
    against = None if validation is None else as_table(validation, like=whole, text="ignore")
    if against is not None:
        lacking = [name for name in (*whole.features, whole.label) if name is not None and name not in against.columns]
        if lacking:
            raise InputError(f"{against.name} lacks the column {lacking[0]!r} of {whole.name}")
    threads = run.get("n_jobs")
    blocks = {
        "n_jobs": None if threads is None else thread_count(threads), "memory": run.get("memory", DEFAULT_MEMORY)
    }  # fmt: skip
    planned = _planned(sample, whole, quick, thread_count(threads))
    stages = {name: SECTIONS[name][2] for name in wanted}
    with Stages(run.get("progress"), {one: planned[one] for name in wanted for one in stages[name]}) as shown:
        job = Job(
            whole, sample, rows, against, None if quasi_identifiers is None else tuple(quasi_identifiers), marked,
            truth or "", None if strategies is None else tuple(strategies), epsilon, delta, k, balance, show_rows,
            quick, seed, blocks, shown, aside=numbering, categorical=tuple(categorical), wanted=wanted,
        )  # fmt: skip
        job.records["id"] = whole.ids
        if whole.label is not None:
            job.records["label"] = whole.labels
        made: list[Section] = []
        for name in wanted:
            made.append(_answer(name, job, given=sections is not None))
            shown.finish(stages[name])
    return Report(whole.name, tuple(made), job.records, _parameters(job), _notes(job), seed)


def _numbers_rows(name: str, column: Column) -> bool:
    """Whether a column counts the rows one by one, or is called an id and differs in every row."""
    if column.kind != "numeric" or column.is_date or column.data.dtype.kind not in "iu" or len(column.data) < 20:
        return False
    if (np.diff(column.data.astype(np.float64)) == 1).all():
        return True
    return name.casefold() in ID_NAMES and len(np.unique(column.data)) == len(column.data)


def _read(
    table: TableLike, label: str | None, id: str | None, ignore: Sequence[str], categorical: Sequence[str]
) -> Table:
    _checks.not_one_string("ignore", ignore)
    _checks.not_one_string("categorical", categorical)
    if isinstance(table, Table):
        if id is not None or categorical:
            raise UsageError("id and categorical are for files and frames: the table is read already")
        if label is not None and label not in table.columns:
            raise InputError(f"label: {missing_column(label, table.columns)}")
        label = label or table.label
        carried = tuple(name for name in table.carried if name != label)
        return replace(table, label=label, carried=carried).set_aside(ignore)
    how: dict[str, Any] = {"id": id, "ignore": ignore, "categorical": categorical, "text": "ignore"}
    by_name = isinstance(table, str | os.PathLike) and str(table) in {info.name for info in list_datasets()}
    if by_name and not Path(str(table)).is_file():
        return load_dataset(str(table), label, **how)
    return read_table(table, label, **how)


def _drawn(table: Table, most: int, seed: int) -> tuple[Table, NDArray[np.intp]]:
    """The table, or so many of its records, each class in proportion."""
    if len(table) <= most:
        return table, np.arange(len(table))
    chosen = np.zeros(len(table), bool)
    part, _ = replace(table, ids=np.arange(len(table))).split(most / len(table), seed=seed)
    chosen[part.ids.astype(np.intp)] = True
    return table.select(chosen, f"a sample of {table.name}"), np.flatnonzero(chosen)


def _planned(sample: Table, whole: Table, quick: bool, threads: int) -> dict[str, float]:
    """Seconds that each stage may take, roughly: those of one core, shared by the threads where they share the work."""
    n, attributes = len(sample), len(sample.features)
    names = (sample.columns[name].categories for name in sample.features)
    width = sum(1 if one is None else len(one) for one in names)
    one_pass = PAIR * n * n * width
    search = LOOK * n * (attributes + 1) * 50
    searched = min(6.0 if quick else 15.0, search * 8000)
    runs, tested = (15, 0.03) if quick else (24, 0.1)  # releases that are made, and pairs that each is used to predict
    return {
        "values": 0.5 + 2.3 * one_pass / threads,
        "exposure": 0.5 + 0.1 * one_pass / threads,
        "uniqueness": 0.2 + 4e-7 * len(whole) * attributes + bits_seconds(len(whole), attributes) / threads,
        "risk": 0.2 + min(6.0 if quick else 25.0, search * 5000) / threads,
        "releases": 1.0 + (searched + runs * (tested * one_pass + 6e-6 * n)) / threads,
        "private values": 3.0,
        "prices": 0.5 + 1.3e-4 * n,
    }


def _answer(name: str, job: Job, given: bool) -> Section:
    """A section; what the data lack for it is said in its place. If it was asked for by name, that is an error."""
    title, answer, _ = SECTIONS[name]
    try:
        return replace(answer(job), key=name, title=title)
    except InputError as error:
        if given or isinstance(error, UsageError):  # what the caller got wrong is no lack of the data
            raise
        return Section(name, title, left_out=f"Not answered: {job.discreet(str(error))}.")


def _parameters(job: Job) -> dict[str, Parameter]:
    table = job.table
    label = "no label" if table.label is None else f"the label {table.label}"
    features = _checks.counted(len(table.features), "attribute")
    what = f"{_checks.counted(len(table), 'record')}, {features} and {label}."
    if job.sampled:
        what += f" Whatever looks at pairs of records looked at {len(job.sample):,} of them, drawn at random."
    how = f"Made with k = {job.k}, ε = {job.epsilon:g}, δ = {job.delta:.2g}, seed {job.seed}"
    how += ", quickly: with smaller samples than usual." if job.quick else "."
    return {
        "what": what,
        "how": how,
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "sections": ", ".join(job.wanted),
        "records": len(table),
        "sample": len(job.sample),
        "k": job.k,
        "epsilon": job.epsilon,
        "delta": job.delta,
        "quick": job.quick,
        "balance": job.balance,
        "show_rows": job.show_rows,
        "named": "their row, counted from 0," if job.row_numbers else "their id",
    }


def _notes(job: Job) -> tuple[str, ...]:
    """What was done to the data on the way; without rows, no note names a value of theirs."""
    found = [note for note in job.table.notes if not any(f"column {name!r}" in note for name in job.aside)]
    found += [
        f"column {name!r} numbers the rows, and was set aside; name it with --id to key the results by it, or among "
        "--quasi-identifiers if somebody could know it"
        for name in job.aside
    ]
    found += [
        f"column {name!r} is taken for numbers; if its {digits} digits are a code, such as a postal code, read it with "
        "--categorical"
        for name, digits in _codes(job.table)
    ]
    found += job.notes
    if job.values is not None:
        found += job.values.notes
    if job.table.carried:
        found.append(f"not used as features: {', '.join(job.table.carried)}")
    return tuple(dict.fromkeys(map(job.discreet, found)))


def _codes(table: Table) -> Iterator[tuple[str, int]]:
    """Columns of whole numbers that have the same number of digits in every row, five or more, and one of them."""
    for name in table.features:
        column = table.columns[name]
        if column.is_date or column.kind != "numeric" or column.data.dtype.kind not in "iu" or not len(column.data):
            continue
        least, largest = int(column.data.min()), int(column.data.max())
        if least >= 10_000 and len(str(least)) == len(str(largest)):
            yield name, len(str(least))
