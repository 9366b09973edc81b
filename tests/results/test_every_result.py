"""Every public result is saved, loaded, copied and compared.

The classes are found by walking the public names: one that has no example here, and is not named among those that are
no results, fails the first test.
"""

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import fields
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure

import datassay as da
from datassay.results import Result

TRAIN, VALIDATION = da.census(60, seed=1).split(0.7)
VALUES = da.knn_shapley(TRAIN, X_val=VALIDATION)

PEOPLE = da.voters(40, seed=2)
ASKED = ["zip", "race", "age"]

# A small real result of every kind, as the public functions make it.
EXAMPLES: dict[str, Callable[[], Result]] = {
    "Attack": lambda: da.membership_attack(TRAIN, method="t-waka", k=3, games=2),
    "AttributeMeans": lambda: example("Uniqueness").mean(),
    "AttributeSets": lambda: example("Uniqueness").sets(),
    "AttributeTable": lambda: example("Uniqueness").by("county"),
    "Audit": lambda: da.audit("gaussian", epsilon=1.0, delta=1e-5, trials=400),
    "CoarseningPlan": lambda: da.suggest_coarsening(PEOPLE, ASKED, target=0, steps=2, coarsen={"age": [30, 50]}),
    "Comparison": lambda: da.compare_releases(
        da.census(80, seed=1), strategies=["keep", "k=4"], people=10, permutations=2, individuals=True
    ),
    "Curve": lambda: da.removal_curve(
        VALUES, TRAIN, X_test=VALIDATION, fractions=[0, 0.2], n_random=3, first="highest"
    ),
    "Design": lambda: da.layered_design(12, alpha=0.5, c=1.0),
    "Detection": lambda: da.detect_errors(VALUES, np.arange(len(TRAIN)) < 5),
    "Disclosure": lambda: da.disclosure_game(
        TRAIN, X_val=VALIDATION, strategy="shapley", epsilon=2.0, t_max=3, target=0.95, seed=0
    ),
    "Equilibrium": lambda: da.search_equilibrium(
        TRAIN, X_val=VALIDATION, epsilons=[2.0], t_maxes=[1, 3], explorations=[0.1], target=0.8, repeats=2
    ),
    "Estimate": lambda: da.data_shapley(
        da.StableLogisticRegression(), TRAIN.select(range(8)), X_val=VALIDATION, n_jobs=1
    ),
    "Exposure": lambda: da.value_and_exposure(VALUES, da.self_waka(TRAIN, k=3)),
    "Groups": lambda: da.group_sizes(PEOPLE, ["zip", "race"]),
    "Leakage": lambda: da.disclosure_leakage(TRAIN, None, example("Disclosure"), games=4, targets=20),
    "LayeredPlan": lambda: da.plan_private_layered(
        da.StableLogisticRegression(), 20, VALIDATION, alpha=2.0, pilot=TRAIN, n_jobs=1
    ),
    "LayeredValues": lambda: da.layered_shapley(
        da.StableLogisticRegression(), TRAIN, X_val=VALIDATION, alpha=2.0, n_jobs=1
    ),
    "NoisyCounts": lambda: example("PrivateValues").statistics,
    "Onion": lambda: da.onion(TRAIN, k=3, games=4, shadows=4),
    "PriceSearch": lambda: da.search_prices(VALUES, share=0.5, thetas=[0.5, 1.5], markups=[0.2]),
    "Prices": lambda: da.price(VALUES, gamma=0.5),
    "Purchase": lambda: example("Prices").buy(share=0.5),
    "PrivateValues": lambda: da.private_tknn_shapley(TRAIN, X_val=VALIDATION, delta=1e-3),
    "QueryScores": lambda: da.score_queries(TRAIN, TRAIN, ["age > 60", "age > 1000"]),
    "Report": lambda: da.report(da.census(60, seed=1), quick=True, progress=False),
    "Risk": lambda: da.reidentification_risk(TRAIN, TRAIN.select(range(30)), columns=["age", "sex"]),
    "RiskShapley": lambda: da.reidentification_shapley(TRAIN, TRAIN, columns=["age", "sex"]),
    "Suspects": lambda: da.likely_errors(TRAIN, k=3),
    "Tuning": lambda: da.tune_k(TRAIN, X_val=VALIDATION, candidates=range(1, 9)),
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
    "Neighbours": "points, opened once",
    "Records": "data",
    "Release": "a table to hand out: its file leaves out whose record is whose",
    "StableLogisticRegression": "a learner",
    "Table": "data",
    "UnavailableError": "an error",
    "UsageError": "an error",
}

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
    assert PUBLIC.keys() - results == OTHERS.keys()


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
    names = file.read_text().splitlines()[0].replace('"', "").split(",")
    shown = example(name).to_frame("pandas").columns.tolist()
    assert names[: len(shown)] == shown
    assert all(more.startswith("centre ") for more in names[len(shown) :])  # of a game, as 0.1.0 wrote them


@pytest.mark.parametrize("name", EXAMPLES)
def test_copies_are_equal_and_nothing_can_be_written_to(name):
    for other in (copy.deepcopy(example(name)), pickle.loads(pickle.dumps(example(name)))):
        alike(other, example(name))
        held = [getattr(other, one.name) for one in fields(other)]
        assert not any(array.flags.writeable for array in held if isinstance(array, np.ndarray))


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_result_says_how_it_was_made_and_shows_itself(name):
    one = example(name)
    assert dict(one.parameters) is not None
    assert isinstance(one.notes, tuple)
    assert all(f"Note: {note}" in one.summary() for note in one.notes)
    assert one._repr_html_().startswith("<p>")


@pytest.mark.parametrize("name", [name for name in EXAMPLES if hasattr(PUBLIC[name], "plot")])
def test_several_results_share_axes_and_are_told_apart_by_the_legend(name):
    axes = Figure().add_subplot()
    for label in ("one", "other"):
        assert example(name).plot(ax=axes, label=label) is axes
    named = " ".join(text.get_text() for text in axes.get_legend().get_texts())
    assert "one" in named
    assert "other" in named


def test_columns_stand_where_0_1_0_had_them():
    """Files are read by the place of a column as well as by its name."""
    risk = da.reidentification_risk(TRAIN, TRAIN, columns=["age", "sex"], method="sampled", permutations=3)
    assert risk.to_frame("pandas").columns.tolist()[-5:] == [
        "attacked_linkability", "attacked_gain", "attacked_risk", "lower", "upper",
    ]  # fmt: skip
    assert example("Leakage").to_frame("pandas").columns.tolist() == ["score", "id", "member", "game", "model"]
