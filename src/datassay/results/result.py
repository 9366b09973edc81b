"""What every answer is: columns, a header, and all that follows from them.

A result class declares its fields, and in ``COLUMNS`` which of them are the columns of its table; all the others make
up the header of its file. Saving, loading, data frames, equality, notebooks and the name of its kind follow from that.
A result is not a mutable container: sort it, filter it or join it as a data frame.
"""

import math
import os
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import DTypeLike, NDArray

from datassay import _checks
from datassay._errors import InputError
from datassay._frozen import FrozenMapping
from datassay._version import __version__
from datassay.results.facts import Fact, Parameter, as_facts, plain, row_of
from datassay.results.files import load_columns, save_columns
from datassay.results.frames import Columns, Framed


@dataclass(frozen=True, eq=False, repr=False)
class Result(Framed):
    """An answer that can be saved, loaded, compared, read as a data frame and shown in a notebook.

    A kind of result is a frozen dataclass (``eq=False``) that inherits from this. A field with ``compare=False`` is no
    part of the answer, and not saved.

    Attributes
    ----------
    parameters, notes, version
        How it was obtained: settings by name, what was done to the data on the way (one line each), and the version.
    """

    COLUMNS: ClassVar[Mapping[str, str]] = {}
    """Columns of files and frames, and the attribute that each of them holds; those that are None are left out.

    A column with a star in its name stands for several: the columns of a matrix, one for each name in ``columns``.
    """

    ASIDE: ClassVar[tuple[str, ...]] = ()
    """Fields that become columns in a way of their own: ``_columns`` adds them, and ``_fields`` reads them back."""

    ROWS: ClassVar[str] = "records"
    """What the rows of the table are."""

    # A kind declares those of these that it has, in an order of its own; none of them is a default for its fields.
    if TYPE_CHECKING:
        parameters = cast(Mapping[str, Parameter], {})
        notes = cast(tuple[str, ...], ())
        version = __version__
    else:

        def __getattr__(self, name: str) -> object:
            if name in _USUAL:
                return _USUAL[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __post_init__(self) -> None:
        inside = set(self.COLUMNS.values())
        for one in fields(self):
            value = getattr(self, one.name)
            given_as_list = one.name in inside and isinstance(value, list | tuple)
            object.__setattr__(self, one.name, _frozen(np.array(value) if given_as_list else value))
        for column, name in self.COLUMNS.items():
            array = getattr(self, name)
            if array is not None and (np.ndim(array) != 1 + ("*" in column) or len(array) != len(self)):
                raise InputError(f"{name} must hold one entry for each of the {len(self)} {self._who()}")

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update({one.name: state[one.name] for one in fields(self)})  # without what was only cached
        Result.__post_init__(self)  # arrays come back from a copy writeable

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, one.name), getattr(other, one.name)) for one in self._answer())

    def __hash__(self) -> int:
        return hash((type(self), len(self)))

    def __len__(self) -> int:
        return len(next(iter(self._declared().values()), ()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self):,} {self._who()})"

    def _who(self) -> str:
        return self.ROWS

    @classmethod
    def _answer(cls) -> list[Field[Any]]:
        return [one for one in fields(cls) if one.compare]

    @classmethod
    def _kind(cls) -> str:
        """The name of its kind, which files carry: ``PriceSearch`` is a "price search"."""
        return re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()

    def _declared(self) -> Columns:
        found = {column: getattr(self, name) for column, name in self.COLUMNS.items()}
        found = {column: array for column, array in found.items() if array is not None}
        starred = [column for column in found if "*" in column]
        matrices = {column: found.pop(column) for column in starred}
        for j, name in enumerate(getattr(self, "columns") if starred else ()):  # noqa: B009  # a field of some kinds
            found |= {column.replace("*", name): matrix[:, j] for column, matrix in matrices.items()}
        return found

    def _columns(self) -> Columns:
        """Columns of the file and the frame: those declared; a class with more of them adds its own."""
        return self._declared()

    def _saved(self) -> Columns:
        """Columns of the file, where these are more than those of the frame."""
        return self._columns()

    def _header(self) -> dict[str, object]:
        """Everything that is no column, as plain as JSON is."""
        inside = {*self.COLUMNS.values(), *self.ASIDE}
        rest = {one.name: _to_plain(getattr(self, one.name)) for one in self._answer() if one.name not in inside}
        return {"kind": self._kind(), **rest}

    @classmethod
    def _fields(cls, header: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
        """What :meth:`_header` and :meth:`_columns` hold, by field; a class that adds columns reads them back here."""
        hints = _hints(cls)  # type: ignore[arg-type]  # a class can be hashed, whatever its instances do
        places = {name: column for column, name in cls.COLUMNS.items()}
        found = {}
        for one in (one for one in cls._answer() if one.name not in cls.ASIDE):
            column = _column(places.get(one.name, ""), header, columns)
            if column is not None:
                found[one.name] = _from_plain(column, hints[one.name])
            elif one.name in header:
                found[one.name] = _from_plain(header[one.name], hints[one.name])
            elif one.default is MISSING and one.default_factory is MISSING and _is_optional(hints[one.name]):
                found[one.name] = None
        return found

    @classmethod
    def _load(cls, header: Mapping[str, Any], columns: Columns) -> Self:
        return cls(**cls._fields(header, columns))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to ``.parquet`` or ``.json`` (complete, :func:`load_result` reads it) or ``.csv`` (the table alone).

        The file appears whole or not at all.
        """
        return save_columns(path, self._header(), self._saved())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a result of this kind that was saved as Parquet or JSON."""
        found = load_result(path)
        if not isinstance(found, cls):
            raise InputError(f"{str(path)!r} holds {found!r}, which is no {cls.__name__}")
        return found

    def facts(self) -> dict[str, Fact]:
        """The headline numbers, by name."""
        return as_facts({name: value for name, value in self._header().items() if isinstance(value, int | float)})

    def summary(self) -> str:
        """What was found, in words."""
        return self._in_words([str(self)])

    def _in_words(self, lines: list[str]) -> str:
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def as_named(*names: str) -> dict[str, str]:
    """Columns called like the fields that they hold."""
    return {name: name for name in names}


class PerRecord(Result):
    """A result with one number for each record, which behaves as an array of them where one is expected."""

    values: NDArray[np.float64]
    ids: NDArray[np.generic]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[float]:
        return iter(self.values.tolist())

    def __getitem__(self, rows: Any) -> Any:
        return self.values[rows]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype, copy=copy)

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        import pyarrow as pa

        return pa.array(self.values).__arrow_c_array__(requested_schema)  # what polars takes as a column

    def of(self, id: object) -> float:
        """The number of the record with this id."""
        return float(self.values[row_of(id, self.ids)])

    def lowest(self, count: int = 10) -> NDArray[np.intp]:
        """Positions of the ``count`` records with the lowest numbers, the lowest first; ties by position."""
        return np.argsort(self.values, kind="stable")[: _checks.integer("count", count, at_least=0)]

    def highest(self, count: int = 10) -> NDArray[np.intp]:
        """Positions of the ``count`` records with the highest numbers, the highest first; ties by position."""
        return np.argsort(-self.values, kind="stable")[: _checks.integer("count", count, at_least=0)]


def load_result(path: str | os.PathLike[str]) -> Result:
    """The result that was saved as Parquet or JSON, of whatever kind it is (``Values.load`` reads values alone).

    Parameters
    ----------
    path
        A file that the ``save`` of a result wrote, in this or an earlier version.

    Examples
    --------
    >>> import datassay as da, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "values.json"
    >>> values = da.knn_shapley([[0.0], [1.0]], [0, 1], [[0.2]], [0])
    >>> _ = values.save(file)
    >>> da.load_result(file) == values
    True
    """
    import datassay  # every public class is found by its name, through the one door of all rooms

    header, columns = load_columns(path)
    kind = header.get("kind")
    made = getattr(datassay, kind.title().replace(" ", ""), None) if isinstance(kind, str) else None
    if not (isinstance(made, type) and issubclass(made, Result)):
        raise InputError(f"{str(path)!r} holds something of kind {kind!r}, which is no result")
    try:
        return made._load(header, columns)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{str(path)!r} is not a result saved by datassay") from None


_USUAL: Final = {"parameters": FrozenMapping({}), "notes": (), "version": __version__}


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _column(place: str, header: Mapping[str, Any], columns: Columns) -> NDArray[Any] | None:
    """The column of this name, or with a star in it the matrix whose columns have the names of the header."""
    if "*" not in place:
        return columns.get(place)
    parts = [columns.get(place.replace("*", name)) for name in header["columns"]]
    return np.column_stack([part for part in parts if part is not None]) if parts and parts[0] is not None else None


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)


def _frozen(value: Any) -> Any:
    """The value as unchangeable as the result that holds it: a copy of an array that somebody else could write to."""
    if isinstance(value, np.ndarray):
        if value.base is not None or value.flags.writeable:
            value = np.array(value)
            value.setflags(write=False)
        return value
    if isinstance(value, Mapping):
        return FrozenMapping({name: _frozen(one) for name, one in value.items()})
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return tuple(map(_frozen, value))
    return plain(value)


def _same(one: Any, other: Any) -> bool:
    """Whether two values of a field are equal, what is not a number being equal to itself."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc" and other.dtype.kind in "fc")
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other or (one != one and other != other))


def _to_plain(value: Any) -> Any:
    """A value as JSON holds it; null stands for what is not a number."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Result):
        return {"header": value._header(), "columns": _to_plain(value._saved())}
    if isinstance(value, np.ndarray):
        return _to_plain(value.tolist())
    if isinstance(value, Mapping):
        return {name: _to_plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_to_plain, value))
    value = plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _from_plain(value: Any, hint: Any) -> Any:
    """A value of a header or a column as the type that its field declares."""
    if _is_optional(hint):
        if value is None:
            return None
        hint = Union[tuple(one for one in get_args(hint) if one is not type(None))]  # noqa: UP007
    origin, inner = get_origin(hint), get_args(hint)
    if hasattr(origin, "__value__"):  # an alias, as NDArray is from NumPy 2.5 on
        return _from_plain(value, origin.__value__[inner])
    if origin in (Union, types.UnionType):
        return _from_plain(value, inner[0]) if get_origin(inner[0]) in (np.ndarray, NDArray) else value
    if origin is np.ndarray:
        kind = get_args(inner[1])[0]
        return np.asarray(value) if kind is np.generic else np.asarray(value).astype(kind)
    if origin is tuple:
        return tuple(_from_plain(one, inner[0] if inner[-1] is Ellipsis else inner[i]) for i, one in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: _from_plain(one, inner[1]) for name, one in value.items()}
    if hint is float:
        return math.nan if value is None else float(value)
    if hint in (int, str, bool):
        return hint(value)
    if hasattr(hint, "from_dict"):
        return hint.from_dict(value)
    if isinstance(hint, type) and issubclass(hint, Result):
        columns = {name: np.array(column) for name, column in value["columns"].items()}
        return hint._load(value["header"], columns)
    return hint(**value) if isinstance(value, dict) and isinstance(hint, type) else value
