"""What a public function says of itself: named types in its signature, and every parameter in its docstring."""

import inspect
import typing

import pytest

import datassay as da
from datassay._run import described

FUNCTIONS = sorted(name for name in da.__all__ if inspect.isfunction(getattr(da, name)) or name == "report")
# To be written still: these say «object», or leave a parameter out.
UNTYPED: set[str] = set()
UNTOLD = {"layered_design", "load_design"}


def function(name):
    found = getattr(da, name)
    return getattr(found, name, found)  # the report is a room, and the function in it


def told(name):
    signature = inspect.signature(function(name))
    return list(described(inspect.getdoc(function(name)))) == list(signature.parameters)


def vague(hint):
    """Whether a type says nothing, anywhere but inside NumPy's own names for its arrays."""
    if hint in (object, typing.Any, inspect.Parameter.empty) and hint is not inspect.Signature.empty:
        return True
    if "numpy" in str(getattr(typing.get_origin(hint) or hint, "__module__", "")):
        return False
    inner = [one for args in typing.get_args(hint) for one in (args if isinstance(args, list) else [args])]
    return any(vague(one) for one in inner)


def typed(name):
    signature = inspect.signature(getattr(da, name))
    return not any(
        map(vague, [*(one.annotation for one in signature.parameters.values()), signature.return_annotation])
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_described_and_nothing_else(name):
    assert told(name) == (name not in UNTOLD)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_types_are_named(name):
    assert typed(name) == (name not in UNTYPED)
