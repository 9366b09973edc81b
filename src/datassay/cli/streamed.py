"""Values of records that are read in blocks: which options of ``datassay value`` that leaves, and the call."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from datassay._errors import UsageError
from datassay.cli.options import as_number

if TYPE_CHECKING:
    from datassay.results import Values

METHODS = ("knn-shapley", "knn-banzhaf", "knn-loo", "tknn-shapley", "waka")


def check_streamed(
    data: str,
    method: str,
    label: str | None,
    validation: Path | None,
    given: dict[str, Any],
    unusable: dict[str, object],
) -> None:
    """Refuse, before any work, what cannot be done with records that are read in blocks."""
    from datassay.data import find_parquet

    find_parquet(data)
    if method not in METHODS:
        raise UsageError(
            f"{method} needs all records in memory; records read in blocks (a folder, a pattern or --streamed) are "
            f"valued by {', '.join(METHODS)}"
        )
    for option, value in unusable.items():
        if value:
            raise UsageError(f"{option} is for records in memory, and these are read in blocks")
    if validation is None:
        raise UsageError("records read in blocks need validation records of their own: name them with --validation")
    if label is None:
        raise UsageError("name the column to predict with --label")
    if method == "tknn-shapley" and given["tau"] in (None, "auto"):
        raise UsageError(
            "--tau must be a number here: to choose one takes all records in memory. Choose it on a sample of them"
        )
    if given["k"] == "auto":
        raise UsageError("--k must be a number here: to choose one takes all records in memory. Choose it on a sample")
    if method == "knn-shapley" and given["tolerance"] is None:
        raise UsageError(
            "exact knn-shapley needs the full ranking of all records, which cannot be put together from blocks; use "
            "knn-banzhaf, knn-loo, waka or tknn-shapley, which are exact, or give a --tolerance well below what a "
            "record is worth (all of them together: at most 1)"
        )
    if method == "waka" and given["tau"] is not None and given["variant"] in (None, "signed"):
        raise UsageError("--tau is the threshold of --variant removal and addition")


def value_streamed(
    method: str,
    data: str,
    label: str,
    id: str | None,
    validation: Path,
    ignore: list[str],
    scale: str,
    given: dict[str, Any],
    run: dict[str, Any],
) -> "tuple[Values, str]":
    """The values, and how they were obtained."""
    import datassay as da
    from datassay.data import column_names, missing_column

    features = None
    if ignore:
        present = column_names(data)
        for name in ignore:
            if name not in present:
                raise da.InputError(f"{data}: {missing_column(name, present)}")
        features = [name for name in present if name not in {label, id, *ignore}]
    records = da.open_records(data, label, features, id, scale="standard" if scale == "standard" else "none")
    if validation.exists() and validation.resolve() in {file.path.resolve() for file in records.files}:
        raise UsageError(f"{validation} is one of the files of {data!r}: records cannot be validated on themselves")
    X_val, y_val = _validation(validation, label, list(records.features))
    arguments: dict[str, Any] = {"X_val": X_val, "y_val": y_val, **run}
    for name in ("metric", "utility", "tolerance", "variant", "checkpoint"):
        if given[name] is not None:
            arguments[name] = given[name]
    if given["balance"] is not None:
        arguments["weights"] = da.balance_weights(y_val, given["balance"])
    if given["tau"] is not None:
        arguments["tau"] = as_number("--tau", given["tau"], float)
    if method != "tknn-shapley":
        arguments["k"] = 5 if given["k"] is None else as_number("--k", given["k"], int)
    values: Values = getattr(da, method.replace("-", "_"))(records, **arguments)
    many = f"{len(records.files):,} files" if len(records.files) > 1 else records.files[0].name
    return values, f"{many} read in blocks. Validated on {len(y_val):,} records of {validation.name}."


def _validation(file: Path, label: str, features: list[str]) -> Any:
    """Features and labels of the validation records, in the order of the features."""
    import numpy as np

    import datassay as da

    if file.name.lower().endswith((".parquet", ".pq")):
        return da.open_records(file, label, features).read()
    table = da.read_table(file, label=label, columns=features)
    for name in features:
        if table.columns[name].kind != "numeric":
            raise da.InputError(f"column {name!r} of {table.name} holds no numbers, and the training records do")
    return np.column_stack([table.columns[name].data.astype(np.float64) for name in features]), table.labels
