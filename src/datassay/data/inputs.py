"""Arguments of the value functions, brought to one form: points, label codes, ids, and notes.

Features may be arrays, data frames of numbers, or Tables (then encoded, fitted on the training table alone, or on the
validation table alone where the training data must not show); labels may be strings, whole numbers or Booleans.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import InputError, UsageError
from datassay.data.encoding import Encoder, fit_encoder
from datassay.data.labels import Codes, as_labels, as_targets, coded, ids_of
from datassay.data.reading import frame_index
from datassay.data.records import ACCEPTED, Records, scaled
from datassay.data.table import Table

FittedOn = Literal["training", "validation"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Training and validation data in one form; ``points_val`` is None when records value each other."""

    points: object
    points_val: object
    labels: NDArray[np.generic]
    labels_val: NDArray[np.generic]
    codes: Codes
    codes_val: Codes
    classes: NDArray[np.generic]
    ids: NDArray[np.generic]
    ids_given: bool
    notes: tuple[str, ...]
    encoder: Encoder | None = None

    @property
    def n_classes(self) -> int:
        """Distinct labels in training and validation together (Mathematics §0)."""
        return len(self.classes)


def prepare(
    X: object,
    y: object,
    X_val: object = None,
    y_val: object = None,
    *,
    ids: object = None,
    fitted_on: FittedOn = "training",
    numeric: bool = False,
) -> Inputs:
    """Bring the arguments of a value function to one form, or say what is wrong with them.

    ``fitted_on`` names the table whose means, deviations and categories encode both. With ``numeric``, y holds numbers
    to predict instead of classes.
    """
    read = as_targets if numeric else as_labels
    if isinstance(X, Records) or isinstance(X_val, Records):
        raise UsageError(f"{ACCEPTED}, as X; Records.read() brings them into memory")
    if isinstance(X, Table) != isinstance(X_val, Table) and X_val is not None:
        raise UsageError("X and X_val must both be Tables, or neither")
    if isinstance(X, Table):
        assert X_val is None or isinstance(X_val, Table)
        return _from_tables(X, y, X_val, y_val, ids, fitted_on, numeric)
    points, names, found_ids = _from_frame("X", X, None)
    points_val = _from_frame("X_val", X_val, names)[0]
    if y is None:
        raise UsageError("y must be given: one label for each row of X")
    _same_index("y", y, "X", X)
    _same_index("y_val", y_val, "X_val", X_val)
    labels = labels_val = read("y", y)
    if X_val is not None:
        labels_val = read("y_val", _given(y_val))
    elif y_val is not None:
        raise UsageError(
            'y_val is given without X_val (with metric="precomputed" the distances to the validation points are '
            "X_val, and X is None)"
        )
    return _join(points, points_val, labels, labels_val, found_ids if ids is None else ids, (), None, numeric)


def _given(y_val: object) -> object:
    if y_val is None:
        raise UsageError("y_val must be given: one label for each row of X_val")
    return y_val


def _from_tables(
    train: Table, y: object, validation: Table | None, y_val: object, ids: object, fitted_on: FittedOn, numeric: bool
) -> Inputs:
    read = as_targets if numeric else as_labels
    if not len(train) or (validation is not None and not len(validation)):
        raise InputError(f"{train.name if not len(train) else 'the validation table'} has no rows")
    public = validation if fitted_on == "validation" else None
    encoder = fit_encoder(train) if public is None else fit_encoder(public, source="validation")
    points, notes = encoder.transform(train)
    notes = (*train.notes, *notes)
    labels = read("y", train.labels if y is None else y)
    if len(labels) != len(train):
        raise InputError(f"y has {len(labels)} labels for the {len(train)} rows of {train.name}")
    points_val, labels_val = None, labels
    if validation is not None:
        points_val, more = encoder.transform(validation)
        notes = (*notes, *(n for n in validation.notes if n not in notes), *more)
        labels_val = read("y_val", validation.labels if y_val is None else y_val)
        alike = not numeric and (labels.dtype.kind == "U") == (labels_val.dtype.kind == "U")
        if alike and not np.isin(labels_val, labels).any():
            raise InputError(
                f"no label of {validation.name} ({_checks.listed(np.unique(labels_val))}) occurs in {train.name} "
                f"({_checks.listed(np.unique(labels))}); are they written differently?"
            )
    elif y_val is not None:
        raise UsageError("y_val is given without X_val")
    return _join(points, points_val, labels, labels_val, train.ids if ids is None else ids, notes, encoder, numeric)


def _from_frame(
    name: str, given: object, expected: tuple[str, ...] | None
) -> tuple[object, tuple[str, ...] | None, NDArray[np.generic] | None]:
    """Features of a data frame as an array, with its column names and index; anything else as it is."""
    if given is None or isinstance(given, np.ndarray | list | tuple):
        return given, None, None
    import narwhals as nw

    frame = nw.from_native(given, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return given, None, None
    names = tuple(frame.columns)
    if expected is not None:
        lacking, extra = [c for c in expected if c not in names], [c for c in names if c not in expected]
        if lacking:
            raise InputError(f"{name} lacks the column {_checks.listed(lacking)} that X has")
        if extra:
            raise InputError(f"{name} has the column {_checks.listed(extra)} that X lacks")
        frame = frame.select([nw.col(column) for column in expected])
        names = expected
    for column, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise InputError(
                f"column {column!r} of {name} is not numeric ({dtype}); read_table encodes such columns: "
                "da.read_table(frame, label=...)"
            )
    if not names:
        raise InputError(f"{name} has no columns")
    columns = [series.to_numpy() for series in frame.iter_columns()]
    for column, numbers in zip(names, columns, strict=True):
        _checks.exact_as_float(f"column {column!r} of {name}", numbers)
    points = np.column_stack([numbers.astype(np.float64) for numbers in columns])
    if all(dtype == nw.Float32 for dtype in frame.schema.values()):
        points = points.astype(np.float32)
    if not np.isfinite(points).all():
        row, at = np.argwhere(~np.isfinite(points))[0]
        raise InputError(
            f"column {names[at]!r} of {name} has the value {points[row, at]} at row {row} (counting from 0); every "
            "feature must be finite. read_table handles missing values"
        )
    return points, names, frame_index(frame)


def _same_index(name: str, labels: object, of: str, rows: object) -> None:
    """Labels with an index of their own must be in the order of their rows."""
    labels_index, rows_index = getattr(labels, "index", None), getattr(rows, "index", None)
    if not hasattr(labels_index, "equals") or not hasattr(rows_index, "equals"):
        return
    if not labels_index.equals(rows_index):  # type: ignore[union-attr]
        raise InputError(
            f"{name} has another index than {of}; align them first, or pass {name}.to_numpy() to match them by position"
        )


def _join(
    points: object,
    points_val: object,
    labels: NDArray[np.generic],
    labels_val: NDArray[np.generic],
    ids: object,
    notes: tuple[str, ...],
    encoder: Encoder | None,
    numeric: bool,
) -> Inputs:
    if len(labels) and len(labels_val) and (labels.dtype.kind == "U") != (labels_val.dtype.kind == "U"):
        raise InputError(
            "y and y_val hold labels of different types: "
            f"{labels[0].item()!r} and {labels_val[0].item()!r}; make them both strings or both whole numbers"
        )
    n = len(labels)
    both = np.concatenate([labels, labels_val])
    classes, codes = (both[:0], np.zeros(len(both), np.intp)) if numeric else coded(both)
    small: Codes = codes.astype(np.uint8, copy=False) if len(classes) <= 256 else codes.astype(np.int32)
    unseen = classes[np.bincount(codes[:n], minlength=len(classes))[: len(classes)] == 0]
    notes = (*notes, *_notes_on(classes, unseen))
    chosen = ids_of(ids, n)
    return Inputs(
        points, points_val, labels, labels_val, small[:n], small[n:], classes, chosen, ids is not None, notes, encoder
    )


def _notes_on(classes: NDArray[np.generic], unseen: NDArray[np.generic]) -> list[str]:
    notes = [f"validation has labels that training lacks: {_checks.listed(unseen)}"] if len(unseen) else []
    if len(classes) == 1:
        notes.append(f"there is one class only ({classes[0]!s}), so labels tell records apart no more")
    return notes


def prepare_records(records: Records, y: object, X_val: object, y_val: object, ids: object) -> Inputs:
    """Records and validation data in one form, as :func:`prepare` gives it; the points stay in their files."""
    if y is not None:
        raise UsageError(f"y must be left out: the labels of the records are in their column {records.label!r}")
    if X_val is None:
        raise UsageError("X_val must be given, with y_val: records read in blocks do not value each other")
    points_val, labels_val = _validation_of(records, X_val, y_val)
    if (records.classes.dtype.kind == "U") != (labels_val.dtype.kind == "U"):
        raise InputError(
            f"the label {records.label!r} and y_val are of different types: {records.classes[0].item()!r} and "
            f"{labels_val[0].item()!r}; make them both strings or both whole numbers"
        )
    classes = np.unique(np.concatenate([records.classes, labels_val]))
    codes = records.codes(classes)
    notes = (*records.notes, *_notes_on(classes, classes[~np.isin(classes, records.classes)]))
    found = records.ids() if ids is None else ids_of(ids, len(records))
    found.setflags(write=False)  # a result need not copy what cannot change
    codes_val: Codes = np.searchsorted(classes, labels_val).astype(codes.dtype)  # type: ignore[assignment]
    given = ids is not None or records.id is not None
    later = records.classes[:0]  # the labels take memory: they are made of the codes when the result is
    return Inputs(records, points_val, later, labels_val, codes, codes_val, classes, found, given, notes)


def _validation_of(records: Records, X_val: object, y_val: object) -> tuple[object, NDArray[np.generic]]:
    """Validation points, scaled as the records are, and their labels."""
    if isinstance(X_val, Table):
        raise UsageError(
            "X_val must be an array, a data frame of numbers or records: a Table is encoded as a whole, and records "
            "read in blocks are not"
        )
    if isinstance(X_val, Records):
        if X_val.scale != "none":
            raise UsageError("open the validation records without scale: they are scaled as the training records are")
        if set(X_val.features) != set(records.features):
            raise InputError(
                f"X_val has the features {_checks.listed(X_val.features)} and X has {_checks.listed(records.features)}"
            )
        points, labels = X_val.read()
        points = points[:, [X_val.features.index(name) for name in records.features]]
        labels = labels if y_val is None else as_labels("y_val", y_val)
    else:
        labels = as_labels("y_val", _given(y_val))
        found = _from_frame("X_val", X_val, records.features)[0]
        if records.centres is None:
            return found, labels
        points = np.asarray(found)
        if points.ndim != 2 or points.shape[1] != len(records.features) or points.dtype.kind not in "biuf":
            return found, labels  # what is wrong is said where it is used
    if records.centres is None:
        return points, labels
    kind = np.float32 if points.dtype == np.float32 else np.float64
    return scaled(points, records.centres, records.widths).astype(kind), labels
