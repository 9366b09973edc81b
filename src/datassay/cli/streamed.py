"""Values of records that are read in blocks: which options of ``datassay value`` that leaves, and the call."""

from pathlib import Path
from typing import Any

from datassay._choices import RecordScaling
from datassay._errors import InputError, UsageError
from datassay.cli.files import as_number
from datassay.cli.value import Request, Valued, check_threshold

METHODS = ("knn-shapley", "knn-banzhaf", "knn-loo", "tknn-shapley", "waka")


def _check(asked: Request, run: dict[str, object]) -> None:
    """Refuse, before any work, what cannot be done with records that are read in blocks."""
    from datassay.data import find_parquet

    find_parquet(asked.data)
    method, options, reading = asked.method, asked.options, asked.reading
    if method not in METHODS:
        raise UsageError(
            f"{method} needs all records in memory; records read in blocks (a folder, a pattern or --streamed) are "
            f"valued by {', '.join(METHODS)}"
        )
    unusable = {
        "--split": asked.split,
        "--truth": asked.truth,
        "--categorical": reading.categorical,
        "--text": reading.text not in (None, "refuse"),
        "--scale minmax": reading.scale == "minmax",
        **run,
    }
    for option, value in unusable.items():
        if value:
            raise UsageError(f"{option} is for records in memory, and these are read in blocks")
    if asked.validation is None:
        raise UsageError("records read in blocks need validation records of their own: name them with --validation")
    if asked.label is None:
        raise UsageError("name the column to predict with --label")
    if method == "tknn-shapley" and options.get("tau") in (None, "auto"):
        raise UsageError(
            "--tau must be a number here: to choose one takes all records in memory. Choose it on a sample of them"
        )
    if options.get("k") == "auto":
        raise UsageError("--k must be a number here: to choose one takes all records in memory. Choose it on a sample")
    if method == "knn-shapley" and "tolerance" not in options:
        raise UsageError(
            "exact knn-shapley needs the full ranking of all records, which cannot be put together from blocks; use "
            "knn-banzhaf, knn-loo, waka or tknn-shapley, which are exact, or give a --tolerance well below what a "
            "record is worth (all of them together: at most 1)"
        )
    if method == "waka":
        check_threshold(options)


def value_streamed(asked: Request, run: dict[str, object]) -> Valued:
    """The values of records that are read in blocks, all of them together larger than memory if need be."""
    import datassay as da
    from datassay.data import column_names, missing_column

    _check(asked, run)
    label, validation, reading = asked.label, asked.validation, asked.reading
    assert label is not None
    assert validation is not None
    features = None
    if ignored := reading.arguments()["ignore"]:
        present = column_names(asked.data)
        for name in ignored:
            if name not in present:
                raise InputError(f"{asked.data}: {missing_column(name, present)}")
        features = [name for name in present if name not in {label, reading.id, *ignored}]
    scale: RecordScaling = "none" if reading.scale == "none" else "standard"
    records = da.open_records(asked.data, label, features, reading.id, scale=scale)
    if validation.exists() and validation.resolve() in {file.path.resolve() for file in records.files}:
        raise UsageError(
            f"{validation} is one of the files of {asked.data!r}: records cannot be validated on themselves"
        )
    X_val, y_val = _validation(validation, label, list(records.features))
    options: dict[str, Any] = asked.options | asked.run
    if "balance" in options:
        options["weights"] = da.balance_weights(y_val, options.pop("balance"))
    if "tau" in options:
        options["tau"] = as_number("--tau", options["tau"], float)
    if "k" in options:
        options["k"] = as_number("--k", options["k"], int)
    values = asked.call(records, X_val=X_val, y_val=y_val, **options)
    many = f"{len(records.files):,} files" if len(records.files) > 1 else records.files[0].name
    return Valued(values, f"{many} read in blocks. Validated on {len(y_val):,} records of {validation.name}.")


def _validation(file: Path, label: str, features: list[str]) -> Any:
    """Features and labels of the validation records, in the order of the features."""
    import numpy as np

    import datassay as da

    if file.name.lower().endswith((".parquet", ".pq")):
        return da.open_records(file, label, features).read()
    table = da.read_table(file, label=label, columns=features)
    for name in features:
        if table.columns[name].kind != "numeric":
            raise InputError(f"column {name!r} of {table.name} holds no numbers, and the training records do")
    return np.column_stack([table.columns[name].data.astype(np.float64) for name in features]), table.labels
