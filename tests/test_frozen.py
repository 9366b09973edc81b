"""Every number is what it was in 0.1.0, bit for bit (see tests/frozen/cases.py)."""

import json

import pytest

import datassay as da
from frozen import cases

OLD = json.loads(cases.VALUES.read_text(encoding="utf-8"))
# What computes nothing that could be frozen: it loads, lists, opens what a case opens, or draws noise without a seed.
WITHOUT_NUMBERS = {"list_datasets", "load_dataset", "load_design", "load_result", "oracle", "private_layered_shapley"}


@pytest.fixture(scope="module")
def same_platform() -> bool:
    """Whether library functions round here as they did where the values were made."""
    return cases.platform() == OLD["platform"]


@pytest.mark.parametrize("name", cases.CASES)
def test_numbers_are_those_of_0_1_0(name: str, same_platform: bool) -> None:
    case = cases.CASES[name]
    new, old = case.numbers(), OLD[name]
    assert set(old) <= set(new)
    alike = cases.agree if case.close and not same_platform else (lambda one, other: one == other)
    assert not {number: (new[number], old[number]) for number in old if not alike(new[number], old[number])}


def test_every_case_has_its_old_numbers() -> None:
    assert OLD.keys() == cases.CASES.keys() | {"platform"}


def test_every_public_function_has_a_case() -> None:
    text = (cases.VALUES.parent / "cases.py").read_text(encoding="utf-8")
    functions = {name for name in da.__all__ if name[0].islower()} - WITHOUT_NUMBERS
    assert not {name for name in functions if f"da.{name}(" not in text and f"da.{name}." not in text}
