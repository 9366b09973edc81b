"""Results: small frozen records keyed by row id, that join, save and explain themselves.

A result is not a mutable container: sort it, filter it or join it as a data frame (:meth:`Values.to_frame`).
Files hold plain Parquet or JSON, never pickles.
"""

import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, MissingDependencyError, UnavailableError, UsageError
from datassay._frozen import FrozenMapping
from datassay._version import __version__

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

Parameter = str | int | float | bool | None
Fact = str | int | float | bool | None
FrameKind = Literal["pandas", "polars", "pyarrow"]
MOST_CLASSES: Final = 20  # facts are headlines: beyond so many classes, not one for each


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def as_fact(value: object) -> Fact:
    """A plain value for :meth:`Values.facts`: numbers as numbers, and None for what is not a finite one."""
    plain = _plain(value)
    if isinstance(plain, float):
        return plain if math.isfinite(plain) else None
    return plain if plain is None or isinstance(plain, str | int) else str(plain)


def as_facts(given: Mapping[str, object]) -> dict[str, Fact]:
    """Headline numbers by name, each as plain as JSON is.

    A name says what is measured, in words joined by underscores; a number for one attribute, class, strategy or group
    of several has a dot and the name of that one after it: ``bits.zip``, ``risk.k=8``, ``share_unique.county=Wake``.

    >>> import numpy as np
    >>> as_facts({"records": np.int64(3), "mean_value": np.float64(0.5), "auc": float("nan")})
    {'records': 3, 'mean_value': 0.5, 'auc': None}
    """
    return {name: as_fact(value) for name, value in given.items()}


def frozen(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """A copy that cannot be written to; the array itself, if it is nobody's view and cannot be written to already."""
    owned: object = getattr(array, "base", array)  # a list, where callers are not type-checked, is copied
    if owned is None and not array.flags.writeable:
        return array
    array = np.array(array)
    array.setflags(write=False)
    return array


def freeze(result: object, *arrays: str) -> None:
    """Make the arrays of a frozen result, and its parameters, as unchangeable as itself."""
    for name in arrays:
        array = getattr(result, name)
        if array is not None:
            object.__setattr__(result, name, frozen(array))
    object.__setattr__(result, "parameters", FrozenMapping(getattr(result, "parameters")))  # noqa: B009


@dataclass(frozen=True, eq=False)
class Values:
    """What each record is worth, by one method, keyed by row id.

    Attributes
    ----------
    values, ids, labels
        One entry per record, in the order of the training data; ``labels`` is None where there are none.
    method, parameters, seed, version
        How the values were obtained.
    notes
        Whatever was done to the data on the way (an imputed column, an unseen category), one line each.
    lower, upper
        An interval per record, where the method is an estimate; None where it is exact.

    Examples
    --------
    >>> import datassay as da
    >>> values = da.knn_shapley([[0.0], [1.0], [9.0]], ["a", "a", "b"], [[0.5]], ["a"], k=1)
    >>> values.values.round(3).tolist()
    [0.333, 0.333, -0.167]
    >>> values.to_frame("pyarrow").column_names
    ['id', 'value', 'label']
    """

    values: NDArray[np.float64]
    ids: NDArray[np.generic]
    method: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    labels: NDArray[np.generic] | None = None
    seed: int | None = None
    version: str = __version__
    notes: tuple[str, ...] = ()
    lower: NDArray[np.float64] | None = None
    upper: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        n = len(self.values)
        for name in ("values", "ids", "labels", "lower", "upper"):
            column = getattr(self, name)
            if column is None:
                continue
            if np.ndim(column) != 1 or len(column) != n:
                raise InputError(f"{name} must hold one entry for each of the {n} records")
            object.__setattr__(self, name, frozen(column))
        plain = {name: _plain(parameter) for name, parameter in self.parameters.items()}
        object.__setattr__(self, "parameters", FrozenMapping(plain))
        object.__setattr__(self, "notes", tuple(self.notes))

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # arrays come back from a copy writeable

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items() if value is not None)
        return f"Values({len(self)} records by {self.method}({settings}), total {self.values.sum():.4g})"

    def _who(self) -> str:
        """What has a value."""
        return "records"

    def _columns(self) -> dict[str, NDArray[np.generic]]:
        columns = {
            "id": self.ids,
            "value": self.values,
            "label": self.labels,
            "lower": self.lower,
            "upper": self.upper,
        }
        return {name: column for name, column in columns.items() if column is not None}

    def to_frame(self, kind: FrameKind | None = None) -> object:
        """The values as a data frame with columns id, value and (where known) label, lower, upper.

        ``kind`` is "pandas", "polars" or "pyarrow"; left out, the first of these that is installed.
        """
        return make_frame(self._columns(), kind)

    def of(self, id: object) -> float:
        """The value of the record with this id."""
        return value_of(id, self.ids, self.values)

    def lowest(self, count: int = 10) -> NDArray[np.intp]:
        """Positions of the ``count`` least valuable records, the worst first; ties by position."""
        return np.argsort(self.values, kind="stable")[: _checks.integer("count", count, at_least=0)]

    def highest(self, count: int = 10) -> NDArray[np.intp]:
        """Positions of the ``count`` most valuable records, the best first; ties by position."""
        return np.argsort(-self.values, kind="stable")[: _checks.integer("count", count, at_least=0)]

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name.

        ``records``; ``total_value``, ``mean_value``, ``median_value``, ``lowest_value``, ``highest_value``;
        ``negative`` and ``share_negative``, records of negative value; where there are intervals ``surely_negative``
        and ``share_surely_negative``, those whose whole interval is below 0; and where there are at most 20 classes
        ``records.CLASS``, ``mean_value.CLASS`` and ``share_negative.CLASS``.
        """
        values, negative = self.values, self.values < 0
        found: dict[str, object] = {
            "records": len(self), "total_value": values.sum(), "mean_value": values.mean(),
            "median_value": np.median(values), "lowest_value": values.min(), "highest_value": values.max(),
            "negative": negative.sum(), "share_negative": negative.mean(),
        }  # fmt: skip
        if self.upper is not None:
            found |= {"surely_negative": (self.upper < 0).sum(), "share_surely_negative": (self.upper < 0).mean()}
        classes = () if self.labels is None else np.unique(self.labels)
        for name in classes if len(classes) <= MOST_CLASSES else ():
            inside = self.labels == name
            found |= {
                f"records.{name}": inside.sum(), f"mean_value.{name}": values[inside].mean(),
                f"share_negative.{name}": negative[inside].mean(),
            }  # fmt: skip
        return as_facts(found)

    def summary(self, count: int = 5) -> str:
        """What the values say, in words: the total, who helps, who hurts, and each class."""
        reading = _READINGS.get(self.method, _Reading())
        n = len(self)
        settings = ", ".join(f"{name}={value}" for name, value in self.parameters.items() if value is not None)
        lines = [f"{n:,} {self._who()} valued by {self.method} ({settings})."]
        lines += self._in_total(reading)
        lines.append(
            f"Values run from {self.values.min():.3g} to {self.values.max():.3g}, {self.values.mean():.3g} on average."
        )
        lines += self._negatives(reading) if reading.sign else []
        lines += self._by_class(reading)
        if count > 0:
            for title, rows in ((reading.high, self.highest(count)), (reading.low, self.lowest(count))):
                lines.append(f"{title}: " + ", ".join(f"{self.ids[i]!s} ({self.values[i]:.3g})" for i in rows))
        lines.extend(f"Note: {note}" for note in self.notes)
        return "\n".join(lines)

    def _in_total(self, reading: "_Reading") -> list[str]:
        if not reading.adds_up or self.lower is not None:
            return []
        n_classes = self.parameters.get("n_classes")
        guess = 0.0 if self.parameters.get("utility") == "fraction" or n_classes is None else 1 / float(n_classes)
        start = f"{guess:.3f} ({'guessing' if guess else 'nothing'})"
        return [
            f"Together they bring the score of the nearest neighbours on the validation points from {start} "
            f"to {guess + self.values.sum():.3f}."
        ]

    def _negatives(self, reading: "_Reading") -> list[str]:
        n, negative = len(self), self.values < 0
        text = f"{negative.sum():,} of them ({negative.mean():.1%}) have a negative value: {reading.negative}."
        if self.upper is not None:
            sure = self.upper < 0
            text += f" Given the tolerance, that is sure of {sure.sum():,} ({sure.sum() / n:.1%})."
        return [text]

    def _by_class(self, reading: "_Reading") -> list[str]:
        if self.labels is None:
            return []
        names, codes, sizes = np.unique(self.labels, return_inverse=True, return_counts=True)
        means = np.bincount(codes, self.values) / sizes
        shares = np.bincount(codes, self.values < 0) / sizes
        lines = ["By class:"]
        for c in np.argsort(-sizes, kind="stable")[:10]:
            signs = f", {shares[c]:.1%} negative" if reading.sign else ""
            lines.append(f"  {names[c]!s}: {sizes[c]:,} records, mean {means[c]:.3g}{signs}")
        if len(names) > 10:
            lines.append(f"  and {len(names) - 10:,} more classes")
        worst = int(shares.argmax())
        small = sizes[worst] < sizes.max() and self.parameters.get("weights") is None
        if reading.sign and small and shares[worst] > 0.5 and self.lower is None:
            lines.append(
                f"Do not simply drop what is negative: {shares[worst]:.0%} of class {names[worst]!s} would go. "
                "Weighing the classes of the validation set equally (balance) is fairer to small ones."
            )
        return lines

    def plot(self, ax: "Axes | None" = None, bins: int = 60) -> "Axes":
        """Draw the distribution of values, class by class, on ``ax`` or a new figure; returns the axes.

        ``values.plot().figure.savefig("values.svg")`` saves it.
        """
        if ax is None:
            ax = new_axes(7, 4)
        check_axes(ax)
        edges = np.histogram_bin_edges(self.values, bins=bins)
        if self.labels is None:
            ax.hist(self.values, edges.tolist(), color="#4477aa")
        else:
            classes = np.unique(self.labels)
            ax.hist(
                [self.values[self.labels == name] for name in classes],
                edges.tolist(),
                stacked=True,
                label=[legend_name(name) for name in classes],
            )
            ax.legend(title="class", frameon=False)
        ax.axvline(0, color="black", linewidth=0.8)
        share = float((self.values < 0).mean())
        signed = _READINGS.get(self.method, _Reading()).sign
        negative = f"{share:.1%} of {len(self):,} records have a negative value"
        ax.set_title(negative if signed else f"{len(self):,} records", loc="left")
        ax.set_xlabel(f"value by {self.method}")
        ax.set_ylabel("records")
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to ``.parquet`` or ``.json`` (complete, :func:`load_result` reads it) or ``.csv`` (the table alone).

        The file appears whole or not at all.
        """
        header: dict[str, object] = {
            "kind": "values",
            "method": self.method,
            "parameters": dict(self.parameters),
            "seed": self.seed,
            "version": self.version,
            "notes": list(self.notes),
        }
        return save_columns(path, header, self._columns())


@dataclass(frozen=True)
class _Reading:
    """How a method's numbers are to be read."""

    adds_up: bool = False
    sign: bool = True
    negative: str = "to a random group of the others, such a record does more harm than good"
    high: str = "Most valuable"
    low: str = "Least valuable"
    high_is_suspicious: bool = False


_READINGS: Mapping[str, _Reading] = {
    "leave_one_out": _Reading(negative="the model does better if all records but such a one are kept"),
    "data_oob": _Reading(sign=False, high="Best predicted by the others", low="Worst predicted by the others"),
    "knn_shapley": _Reading(adds_up=True),
    "tknn_shapley": _Reading(adds_up=True),
    "knn_loo": _Reading(negative="the nearest neighbours do better if all records but such a one are kept"),
    "waka": _Reading(negative="over all subsets of the others, such a record moves the loss up"),
    "self_waka": _Reading(
        sign=False,
        high="Most exposed (their presence shows the most)",
        low="Least exposed",
        high_is_suspicious=True,
    ),
    "waka_influence": _Reading(sign=False, high="More exposed than before", low="Less exposed than before"),
    "self_shapley": _Reading(
        sign=False,
        high="Most on their own (nobody else vouches for their label)",
        low="Best vouched for by others",
        high_is_suspicious=True,
    ),
}


def high_is_suspicious(values: Values) -> bool:
    """Whether faulty records are to be looked for among the highest values rather than the lowest."""
    return _READINGS.get(values.method, _Reading()).high_is_suspicious


def legend_name(name: object) -> str:
    """A name for a legend: matplotlib leaves out what begins with an underscore."""
    return f"\u200b{name}" if str(name).startswith("_") else str(name)


def new_axes(width: float, height: float) -> "Axes":
    """Axes on a new pyplot figure, so that notebooks and plt.show() display it."""
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def check_axes(ax: object) -> None:
    """Say what is wrong if ``ax`` is no matplotlib axes (a file name, say)."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise UsageError(
            f"ax must be matplotlib axes, got {type(ax).__name__}; to save a plot: plot().figure.savefig('plot.svg')"
        )


def make_frame(columns: Mapping[str, NDArray[np.generic]], kind: FrameKind | None = None) -> object:
    """A data frame of the kind asked for, or of the first kind installed."""
    import narwhals as nw

    kinds: tuple[FrameKind, ...] = ("pandas", "polars", "pyarrow")
    if kind is not None:
        _checks.choice("kind", kind, kinds)
    for backend in kinds if kind is None else (kind,):
        try:
            __import__(backend)
        except ImportError:
            continue
        data = {name: column.tolist() if column.dtype.kind == "U" else column for name, column in columns.items()}
        return nw.from_dict(data, backend=backend).to_native()
    raise MissingDependencyError(f"{kind} is not installed; install it with: pip install {kind}")


def check_output(path: str | os.PathLike[str]) -> None:
    """Say at once, before any work, that a result could not be written to ``path``."""
    target = Path(path)
    if target.suffix.lower() not in (".parquet", ".json", ".csv"):
        raise UsageError(f"cannot write {str(path)!r}: the name must end in .parquet, .json or .csv")
    _check_folder(target)


def check_figure(path: str | os.PathLike[str]) -> None:
    """Say at once, before any work, that a figure could not be written to ``path``."""
    target = Path(path)
    if target.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise UsageError(f"cannot draw {str(path)!r}: the name must end in .svg, .png or .pdf")
    _check_folder(target)


def save_figure(axes: "Axes", path: str | os.PathLike[str]) -> Path:
    """Write the figure that holds ``axes``, whole or not at all."""
    check_figure(path)
    figure = axes.get_figure(root=True)
    assert figure is not None
    kind = Path(path).suffix.lower().removeprefix(".")
    return write_whole(path, lambda file: figure.savefig(file, format=kind))


def _check_folder(target: Path) -> None:
    if not target.parent.is_dir():
        raise UsageError(f"the folder {str(target.parent)!r} does not exist; nothing was written")
    if target.is_dir():
        raise UsageError(f"{str(target)!r} is a folder; name a file to write")
    if not os.access(target.parent, os.W_OK):
        raise UnavailableError(f"the folder {str(target.parent)!r} cannot be written to")


def check_new_folder(path: str | os.PathLike[str]) -> None:
    """Say at once, before any work, that a new folder of files could not be made at ``path``."""
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{str(path)!r} is not an empty folder; nothing was written")
    parent = target.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"the folder {str(target.parent)!r} does not exist; nothing was written")
    if not os.access(parent, os.W_OK):
        raise UnavailableError(f"the folder {str(parent)!r} cannot be written to")


def usual_mode(path: Path, mode: int) -> None:
    """Give what was made as a private temporary the permissions that it would have had without the detour."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(mode & ~mask)


def value_of(id: object, ids: NDArray[np.generic], values: NDArray[np.float64]) -> float:
    """The value of the record with this id."""
    return float(values[row_of(id, ids)])


def row_of(id: object, ids: NDArray[np.generic]) -> int:
    """Where the record with this id is."""
    found = np.flatnonzero(ids == id)
    if len(found) == 0:
        raise InputError(f"there is no record with id {id!r}")
    return int(found[0])


def write_whole(path: str | os.PathLike[str], write: Callable[[Path], None]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then move it there: whole, or not at all."""
    return write_together({Path(path): write})[0]


def write_together(writers: Mapping[Path, Callable[[Path], None]]) -> list[Path]:
    """Write several files that belong together: each whole, and none of them before all are written."""
    temporaries: list[Path] = []
    try:
        for target, write in writers.items():
            _check_folder(target)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            temporaries.append(Path(name))
            os.close(handle)
            write(temporaries[-1])
            usual_mode(temporaries[-1], 0o666)
        for temporary, target in zip(temporaries, writers, strict=True):
            temporary.replace(target)
    finally:
        for temporary in temporaries:
            temporary.unlink(missing_ok=True)
    return list(writers)


def write_folder(path: str | os.PathLike[str], write: Callable[[Path], None]) -> Path:
    """Let ``write`` fill a temporary folder beside ``path``, then move it there: whole, or not at all."""
    import shutil

    target = Path(path)
    check_new_folder(target)
    temporary = Path(tempfile.mkdtemp(dir=target.absolute().parent, prefix=f".{target.name}."))
    try:
        write(temporary)
        usual_mode(temporary, 0o777)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _plain_list(column: NDArray[np.generic]) -> list[object]:
    """A list that JSON can hold: what is not a number becomes null."""
    return [None if value != value else value for value in column.tolist()]


def _arrow(columns: Mapping[str, NDArray[np.generic]]) -> "pa.Table":
    import pyarrow as pa

    return pa.table({n: pa.array(c.tolist() if c.dtype.kind in "UO" else c) for n, c in columns.items()})


def save_columns(
    path: str | os.PathLike[str], header: Mapping[str, object], columns: Mapping[str, NDArray[np.generic]]
) -> Path:
    """Write a result's header and columns as Parquet, JSON or (columns alone) CSV."""
    check_output(path)
    return write_whole(path, columns_writer(Path(path).suffix.lower(), header, columns))


def columns_writer(
    suffix: str, header: Mapping[str, object], columns: Mapping[str, NDArray[np.generic]]
) -> Callable[[Path], None]:
    """What writes a result to a file, in the form that the ending stands for."""
    text = json.dumps(dict(header), allow_nan=False)

    def write(file: Path) -> None:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            table = _arrow(columns).replace_schema_metadata({b"datassay": text.encode()})
            pq.write_table(table, file, compression="zstd")
        elif suffix == ".json":
            kinds = {name: column.dtype.kind for name, column in columns.items()}
            body = {name: _plain_list(column) for name, column in columns.items()}
            content = {"datassay": dict(header), "kinds": kinds, "columns": body}
            file.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        else:
            import pyarrow.csv as pc

            pc.write_csv(_arrow(columns), file)

    return write


# Results other than values, and who makes them of a header and columns again.
_LOADERS: Mapping[str, tuple[str, str]] = {
    "attack": ("datassay.attacks.result", "load_attack"),
    "attribute means": ("datassay.identity.result", "load_attribute_means"),
    "attribute sets": ("datassay.identity.result", "load_attribute_sets"),
    "attribute table": ("datassay.identity.result", "load_attribute_table"),
    "coarsening plan": ("datassay.identity.coarsening", "load_coarsening_plan"),
    "comparison": ("datassay.release.comparison", "load_comparison"),
    "disclosure": ("datassay.market.disclosure", "load_disclosure"),
    "equilibrium": ("datassay.market.equilibrium", "load_equilibrium"),
    "estimate": ("datassay.value.estimate", "load_estimate"),
    "exposure": ("datassay.attacks.exposure", "load_exposure"),
    "groups": ("datassay.identity.result", "load_groups"),
    "leakage": ("datassay.market.leakage", "load_leakage"),
    "noisy counts": ("datassay.privacy.statistics", "load_noisy_counts"),
    "onion": ("datassay.attacks.peeling", "load_onion"),
    "price search": ("datassay.market.pricing", "load_price_search"),
    "prices": ("datassay.market.pricing", "load_prices"),
    "private values": ("datassay.privacy.releases", "load_private_values"),
    "purchase": ("datassay.market.pricing", "load_purchase"),
    "query scores": ("datassay.identity.queries", "load_query_scores"),
    "report": ("datassay.report.result", "load_report"),
    "risk": ("datassay.identity.risk_result", "load_risk"),
    "risk shapley": ("datassay.identity.risk_result", "load_risk_shapley"),
    "suspects": ("datassay.evaluate.mislabelled", "load_suspects"),
    "uniqueness": ("datassay.identity.result", "load_uniqueness"),
}


def load_result(path: str | os.PathLike[str]) -> Any:
    """Read a result that was saved as Parquet or JSON: values, private values, whatever it is.

    >>> import datassay as da, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "values.json"
    >>> values = da.knn_shapley([[0.0], [1.0]], [0, 1], [[0.2]], [0])
    >>> _ = values.save(file)
    >>> (da.load_result(file).values == values.values).all()
    np.True_
    """
    header, columns = load_columns(path)
    kind = header.get("kind")
    if kind == "values":
        return _load_values(path, header, columns)
    if not isinstance(kind, str) or kind not in _LOADERS:
        raise InputError(f"{str(path)!r} holds something of kind {kind!r}, which is no result")
    module, name = _LOADERS[kind]
    try:
        return getattr(import_module(module), name)(header, columns)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{str(path)!r} is not a result saved by datassay") from None


def _load_values(
    path: str | os.PathLike[str], header: Mapping[str, object], columns: Mapping[str, NDArray[np.generic]]
) -> Values:
    parameters, notes, seed = header.get("parameters"), header.get("notes"), header.get("seed")
    plain = isinstance(parameters, dict) and isinstance(notes, list) and (seed is None or isinstance(seed, int))
    if not plain or not {"value", "id"} <= set(columns) or not {"method", "version"} <= set(header):
        raise InputError(f"{str(path)!r} is not a result saved by datassay")
    assert isinstance(parameters, dict)
    assert isinstance(notes, list)
    assert seed is None or isinstance(seed, int)
    return Values(
        values=columns["value"].astype(np.float64),
        ids=columns["id"],
        method=str(header["method"]),
        parameters=parameters,
        labels=columns.get("label"),
        seed=seed,
        version=str(header["version"]),
        notes=tuple(map(str, notes)),
        lower=columns["lower"].astype(np.float64) if "lower" in columns else None,
        upper=columns["upper"].astype(np.float64) if "upper" in columns else None,
    )


_JSON_TYPES = {"f": np.float64, "i": np.int64, "u": np.uint64, "b": np.bool_}


def load_columns(path: str | os.PathLike[str]) -> tuple[dict[str, object], dict[str, NDArray[np.generic]]]:
    """The header and the columns of a saved result."""
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    if not os.access(file, os.R_OK):
        raise InputError(f"{str(path)!r} cannot be read: permission denied")
    foreign = InputError(f"{str(path)!r} is not a result saved by datassay")
    if file.suffix.lower() == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(file)
        except pa.ArrowInvalid:
            raise foreign from None
        metadata = table.schema.metadata or {}
        if b"datassay" not in metadata:
            raise foreign
        columns = {
            name: np.array(table[name].to_pylist()) if pa.types.is_string(table[name].type) else table[name].to_numpy()
            for name in table.column_names
        }
        return json.loads(metadata[b"datassay"]), columns
    if file.suffix.lower() == ".json":
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            header = content["datassay"]
            columns = {
                name: np.array(column, dtype=_JSON_TYPES.get(content["kinds"][name]))
                for name, column in content["columns"].items()
            }
        except (ValueError, KeyError, TypeError):
            raise foreign from None
        return header, columns
    raise InputError(f"cannot read {str(path)!r}: results are kept in .parquet or .json files")
