"""Every public result is saved, loaded, copied and compared.

The classes are found by walking the public names: one that has no example here, and is not named among those that are
no results, fails the first test.
"""

import copy
import inspect
import pickle
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import datassay as da
from datassay.results import Result

TRAIN, VALIDATION = da.census(60, seed=1).split(0.7)
VALUES = da.knn_shapley(TRAIN, X_val=VALIDATION)

PEOPLE = da.voters(40, seed=2)
ASKED = ["zip", "race", "age"]

# A small real result of every kind, as the public functions make it.
EXAMPLES: dict[str, Callable[[], Result]] = {
    "AttributeMeans": lambda: example("Uniqueness").mean(),
    "AttributeSets": lambda: example("Uniqueness").sets(),
    "AttributeTable": lambda: example("Uniqueness").by("county"),
    "Audit": lambda: da.audit("gaussian", epsilon=1.0, delta=1e-5, trials=400),
    "CoarseningPlan": lambda: da.suggest_coarsening(PEOPLE, ASKED, target=0, steps=2, coarsen={"age": [30, 50]}),
    "Estimate": lambda: da.data_shapley(
        da.StableLogisticRegression(), TRAIN.select(range(8)), X_val=VALIDATION, n_jobs=1
    ),
    "Groups": lambda: da.group_sizes(PEOPLE, ["zip", "race"]),
    "LayeredValues": lambda: da.layered_shapley(
        da.StableLogisticRegression(), TRAIN, X_val=VALIDATION, alpha=2.0, n_jobs=1
    ),
    "NoisyCounts": lambda: example("PrivateValues").statistics,
    "PrivateValues": lambda: da.private_tknn_shapley(TRAIN, X_val=VALIDATION, delta=1e-3),
    "QueryScores": lambda: da.score_queries(TRAIN, TRAIN, ["age > 60", "age > 1000"]),
    "Risk": lambda: da.reidentification_risk(TRAIN, TRAIN.select(range(30)), columns=["age", "sex"]),
    "RiskShapley": lambda: da.reidentification_shapley(TRAIN, TRAIN, columns=["age", "sex"]),
    "Uniqueness": lambda: da.uniqueness_shapley(PEOPLE, ASKED, weights=np.arange(40) % 3 + 1, coarsen={"age": 10}),
    "Values": lambda: VALUES,
}

# Public classes that are no results, and why.
OTHERS = {
    "BudgetExceededError": "an error",
    "Column": "data",
    "DatasetInfo": "a line of a list",
    "Encoder": "a way to read data",
    "Guarantee": "a part of results",
    "InputError": "an error",
    "Ledger": "a file that goes on",
    "LowUtilityWarning": "a warning",
    "MissingDependencyError": "an error",
    "NeighbourGraph": "data",
    "Records": "data",
    "Release": "a table to hand out: its file leaves out whose record is whose",
    "StableLogisticRegression": "a learner",
    "Table": "data",
    "UnavailableError": "an error",
    "UsageError": "an error",
}

# Classes that are to become results.
NOT_YET = {
    "Attack", "Comparison", "Curve",
    "Design", "Detection", "Disclosure", "Equilibrium", "Exposure", "LayeredPlan", "Leakage",
    "Onion", "PriceSearch", "Prices", "Purchase", "Report",
    "Suspects", "Tuning",
}  # fmt: skip

PUBLIC = {name: getattr(da, name) for name in da.__all__ if inspect.isclass(getattr(da, name))}


@cache
def example(name: str) -> Result:
    return EXAMPLES[name]()


def alike(one: Result, other: Result) -> None:
    """Equal, and equal in all that they say of themselves."""
    assert type(one) is type(other)
    assert one == other
    assert hash(one) == hash(other)
    assert one.facts() == other.facts()
    assert one.summary() == other.summary()
    assert repr(one) == repr(other)
    assert one.version == other.version
    frame, again = one.to_frame("pyarrow"), other.to_frame("pyarrow")
    assert frame.column_names == again.column_names
    assert len(frame) == len(again)


def test_every_public_class_is_a_result_or_has_a_reason_to_be_none():
    results = {name for name, kind in PUBLIC.items() if issubclass(kind, Result)}
    assert results == EXAMPLES.keys()
    assert PUBLIC.keys() - results == OTHERS.keys() | NOT_YET


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_of_its_kind(name):
    assert type(example(name)) is PUBLIC[name]
    assert example(name) != object()


@pytest.mark.parametrize("suffix", ["json", "parquet"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_saved_is_loaded_again(name, suffix, tmp_path):
    file = example(name).save(tmp_path / f"result.{suffix}")
    alike(da.load_result(file), example(name))
    alike(PUBLIC[name].load(file), example(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_csv_file_holds_the_table_alone(name, tmp_path):
    file = example(name).save(tmp_path / "result.csv")
    assert (
        file.read_text().splitlines()[0].replace('"', "").split(",")
        == example(name).to_frame("pandas").columns.tolist()
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_copies_are_equal_and_nothing_can_be_written_to(name):
    for other in (copy.deepcopy(example(name)), pickle.loads(pickle.dumps(example(name)))):
        alike(other, example(name))
        arrays = [value for value in vars(other).values() if isinstance(value, np.ndarray)]
        assert not any(array.flags.writeable for array in arrays)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_result_says_how_it_was_made_and_shows_itself(name):
    one = example(name)
    assert dict(one.parameters) is not None
    assert isinstance(one.notes, tuple)
    assert all(f"Note: {note}" in one.summary() for note in one.notes)
    assert one._repr_html_().startswith("<p>")
