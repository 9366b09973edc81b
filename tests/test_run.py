"""Options for running are written once: signatures show them, docstrings tell them, and no other keyword is taken."""

import inspect
from typing import Unpack

import pytest

from datassay._run import DEFAULT_MEMORY, Blocks, described, documented


def first(X, k=5, **run):
    """Something of X.

    Parameters
    ----------
    X, y
        Features and labels,
        in order.
    k
        Neighbours.
    """


@documented(first)
def second(X, k: int = 3, tau: float = 1.0, **run: Unpack[Blocks]):
    """Something else of X.

    Parameters
    ----------
    tau
        How near.

    Returns
    -------
    dict
        What was given.

    >>> 1
    1
    """
    return run


@documented(first)
def third(X, k: int = 3):
    """One line.

    >>> 1
    1
    """
    return k


def test_the_signature_shows_what_a_call_may_say():
    parameters = inspect.signature(second).parameters
    assert list(parameters) == ["X", "k", "tau", "n_jobs", "progress", "memory"]
    assert parameters["memory"].default == DEFAULT_MEMORY
    assert parameters["n_jobs"].kind is inspect.Parameter.KEYWORD_ONLY


def test_the_docstring_describes_every_parameter_in_the_order_of_the_signature():
    assert list(described(second.__doc__)) == list(inspect.signature(second).parameters)
    assert described(second.__doc__)["X"] == ["    Features and labels,", "    in order."]
    assert described(second.__doc__)["tau"] == ["    How near."]
    assert (
        second.__doc__.index("Parameters\n---") < second.__doc__.index("Returns\n---") < second.__doc__.index(">>> 1")
    )
    assert list(described(third.__doc__)) == ["X", "k"]
    assert "Examples\n--------\n>>> 1" in third.__doc__


def test_options_are_passed_on_as_given_and_others_refused_as_python_would():
    assert second([1], memory=5) == {"memory": 5}
    with pytest.raises(TypeError, match=r"second\(\) got an unexpected keyword argument 'device'"):
        second([1], device="cpu")
