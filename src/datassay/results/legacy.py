"""Names of the results before there was a base class; each goes as the last room that uses it is moved."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datassay._frozen import FrozenMapping
from datassay.results.facts import row_of
from datassay.results.figures import axes_on


def frozen(array: Any) -> Any:
    """An array that cannot be written to."""
    if getattr(array, "base", array) is None and not array.flags.writeable:
        return array
    array = np.array(array)
    array.setflags(write=False)
    return array


def freeze(result: object, *arrays: str) -> None:
    """Make the arrays of a result unchangeable."""
    for name in arrays:
        if getattr(result, name) is not None:
            object.__setattr__(result, name, frozen(getattr(result, name)))
    object.__setattr__(result, "parameters", FrozenMapping(getattr(result, "parameters")))  # noqa: B009


def new_axes(width: float, height: float) -> Any:
    """New axes."""
    return axes_on(None, width, height)


def check_axes(ax: Any) -> None:
    """Refuse what is no axes."""
    axes_on(ax, 1, 1)


def value_of(id: object, ids: NDArray[np.generic], values: NDArray[np.float64]) -> float:
    """The value of the record with this id."""
    return float(values[row_of(id, ids)])


LOADERS: Mapping[str, tuple[str, str]] = {
    "disclosure": ("datassay.market.disclosure", "load_disclosure"),
    "equilibrium": ("datassay.market.equilibrium", "load_equilibrium"),
    "leakage": ("datassay.market.leakage", "load_leakage"),
    "price search": ("datassay.market.pricing", "load_price_search"),
    "prices": ("datassay.market.pricing", "load_prices"),
    "purchase": ("datassay.market.pricing", "load_purchase"),
}


def load_the_old_way(kind: str, header: Mapping[str, object], columns: Mapping[str, NDArray[np.generic]]) -> Any:
    """A result of a kind that has not been moved to the base class yet."""
    from importlib import import_module

    module, name = LOADERS[kind]
    return getattr(import_module(module), name)(header, columns)
