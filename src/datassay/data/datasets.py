"""Data sets by name: simulated, carried by scikit-learn, in a folder of yours, or from OpenML."""

import os
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from datassay._errors import InputError, UnavailableError, UsageError
from datassay._run import documented
from datassay.data.reading import Reading, read_table
from datassay.data.table import Column, Table, categorical

FOLDER_VARIABLE = "DATASSAY_DATA"
"""Environment variable that names a folder of Parquet files to load by name."""

_FROM_SKLEARN = {
    "breast_cancer": "cell measurements of tumours, malignant or benign",
    "diabetes": "patients and the progression of their disease (a number, so no class label)",
    "digits": "8×8 images of handwritten digits",
    "iris": "flower measurements of three species",
    "wine": "chemical analysis of wines of three growers",
}
_SIMULATED = {
    "census": "simulated people with planted label errors, duplicates and rare individuals",
    "voters": "a simulated voter registry: zip code, race, party, gender, age",
}
_USUAL_LABELS = ("y", "label", "target", "class")


@dataclass(frozen=True)
class DatasetInfo:
    """A data set that :func:`load_dataset` can load."""

    name: str
    source: str
    description: str


def list_datasets() -> list[DatasetInfo]:
    """The data sets that can be loaded by name on this machine: name, source and description of each.

    Examples
    --------
    >>> [info.name for info in list_datasets() if info.source == "simulated"]
    ['census', 'voters']
    """
    found = [DatasetInfo(name, "simulated", text) for name, text in _SIMULATED.items()]
    found += [DatasetInfo(name, "scikit-learn", text) for name, text in _FROM_SKLEARN.items()]
    folder = _folder()
    for file in sorted(folder.glob("*.parquet")) if folder else ():
        found.append(DatasetInfo(file.stem, FOLDER_VARIABLE, f"Parquet file, {file.stat().st_size:,} bytes"))
    return found


@documented(read_table)
def load_dataset(
    name: str,
    label: str | None = None,
    id: str | None = None,
    *,
    n: int | None = None,
    seed: int | None = None,
    **how: Unpack[Reading],
) -> Table:
    """The data set of this name, as a table: simulated, of scikit-learn, in a folder of yours, or from OpenML.

    Parameters
    ----------
    name
        A name from :func:`list_datasets`, or ``openml:NAME`` or ``openml:NUMBER`` where there is a network.
    label
        The label column. Left out, it is the data set's own; for Parquet files in the folder named by the environment
        variable ``DATASSAY_DATA``, the first of the columns y, label, target and class that exists, or none.
    n, seed
        Number of records and seed, for simulated data sets.

    Examples
    --------
    >>> import datassay as da
    >>> da.load_dataset("census", n=200, seed=7)
    Table('census': 200 rows, 8 features, label 'income')
    """
    if name in _SIMULATED or name in _FROM_SKLEARN:
        if id is not None or how.get("categorical"):
            raise UsageError(f"{name} is built in: its ids and column types are fixed")
        table = _built_in(name, n, seed)
        if label is not None:
            table = replace(table, label=label, carried=tuple(c for c in table.carried if c != label))
        scale, missing = how.get("scale", table.scale), how.get("missing", table.missing)
        return replace(table.set_aside(how.get("ignore", ())), missing=missing, scale=scale)
    _refuse_size(name, n, seed)
    read = partial(read_table, id=id, name=name, **how)
    if name.startswith("openml:"):
        frame, target = _from_openml(name.removeprefix("openml:"))
        return read(frame, label or target)
    file = dataset_file(name)
    if file is not None:
        table = read(file, label)
        usual = next((c for c in _USUAL_LABELS if c in table.columns), None)
        if label is None and usual is not None:
            note = f"column {usual!r} of {name} is taken as the label"
            table = replace(table, label=usual, notes=(*table.notes, note))
        return table
    known = ", ".join(info.name for info in list_datasets())
    hint = "" if _folder() else f" Set {FOLDER_VARIABLE} to a folder of Parquet files to load those by name."
    raise InputError(f"there is no data set {name!r}; there are {known}, and openml:NAME.{hint}")


def _refuse_size(name: str, n: int | None, seed: int | None) -> None:
    if n is not None or seed is not None:
        raise UsageError(f"{name!r} is not simulated and takes no n or seed")


def _built_in(name: str, n: int | None, seed: int | None) -> Table:
    if name in _FROM_SKLEARN:
        _refuse_size(name, n, seed)
        return _from_sklearn(name)
    from datassay.data.simulate import census, voters

    given = {key: number for key, number in (("n", n), ("seed", seed)) if number is not None}
    return census(**given) if name == "census" else voters(**given)


def dataset_file(name: str) -> Path | None:
    """The Parquet file behind a name in the folder of data sets, if there is one."""
    folder = _folder()
    file = Path() if folder is None else folder / f"{name}.parquet"
    return file if file.is_file() else None


def _folder() -> Path | None:
    given = os.environ.get(FOLDER_VARIABLE)
    if given and not Path(given).is_dir():
        raise UsageError(f"{FOLDER_VARIABLE} names {given!r}, which is not a folder")
    return Path(given) if given else None


def _from_sklearn(name: str) -> Table:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    columns: dict[str, Column] = {
        str(feature): Column("numeric", np.ascontiguousarray(bunch.data[:, j]))
        for j, feature in enumerate(bunch.feature_names)
    }
    if name == "diabetes":
        columns["progression"] = Column("numeric", bunch.target)
        return Table(columns, np.arange(len(bunch.target)), carried=("progression",), name=name)
    columns["target"] = categorical([str(bunch.target_names[code]) for code in bunch.target])
    return Table(columns, np.arange(len(bunch.target)), "target", name=name)


def _from_openml(wanted: str) -> tuple[Any, str | None]:
    from urllib.error import URLError

    from sklearn.datasets import fetch_openml

    which = {"data_id": int(wanted)} if wanted.isdigit() else {"name": wanted}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of each try at reaching it
            bunch = fetch_openml(**which, as_frame=True, parser="auto")
    except (URLError, TimeoutError, ConnectionError) as error:
        raise UnavailableError(f"OpenML cannot be reached for {wanted!r}: {error}") from None
    except ImportError as error:
        raise UnavailableError(f"reading OpenML needs pandas: pip install pandas ({error})") from None
    except ValueError as error:
        raise InputError(f"OpenML has no data set {wanted!r}: {error}") from None
    return bunch.frame, (bunch.target_names[0] if bunch.target_names else None)
