"""Parameter checks, in one place, so that every error names its parameter the same way."""

import math
import operator
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from numbers import Real
from typing import TypedDict, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from datassay._errors import InputError, UsageError

# Characters that steer a terminal, or turn the direction of the text after them.
_STEERING = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


def integer(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """Return ``value`` as an int, or say what is wrong with the parameter ``name``."""
    bound = f"at least {at_least}" if at_most is None else f"between {at_least} and {at_most}"
    with suppress(TypeError):
        number = operator.index(value)  # type: ignore[arg-type]
        if not isinstance(value, bool | np.bool_) and number >= at_least and (at_most is None or number <= at_most):
            return number
    raise UsageError(f"{name} must be a whole number {bound}, got {value!r}")


class Bounds(TypedDict, total=False):
    """Between what numbers another must be."""

    at_least: float | None
    above: float | None
    at_most: float | None
    below: float | None


_WITHIN = {"at_least": operator.ge, "above": operator.gt, "at_most": operator.le, "below": operator.lt}


def number(name: str, value: object, **bounds: Unpack[Bounds]) -> float:
    """Return ``value`` as a finite float within the bounds, or say what is wrong with it."""
    given = {word: bound for word, bound in cast(dict[str, float | None], bounds).items() if bound is not None}
    wanted = " and ".join(f"{word.replace('_', ' ')} {bound:g}" for word, bound in given.items())
    wanted = f"{name} must be a finite number" + (f" {wanted}" if wanted else "")
    try:
        result = math.nan if isinstance(value, str | bytes | bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if not math.isfinite(result) or not all(_WITHIN[word](result, bound) for word, bound in given.items()):
        raise UsageError(f"{wanted}, got {value!r}")
    return result


def choice(name: str, value: object, allowed: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``allowed``; otherwise list what is allowed."""
    if isinstance(value, str) and value in allowed:
        return value
    raise UsageError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def boolean(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, got {value!r}")
    return value


def closest(name: str, known: Iterable[str]) -> str | None:
    """What was probably meant by a name that is not known."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1)), None)


def not_one_string(name: str, value: object, what: str = "column names") -> None:
    """Refuse a single string where a list is meant: it would be taken letter by letter."""
    if isinstance(value, str):
        of = f" of {what}" if what else ""
        raise UsageError(f"{name} must be a list{of}, got the single string {value!r}")


def real_numbers(given: object) -> NDArray[np.float64] | None:
    """Real numbers as they are; None for text, dates, complex numbers, and what numpy cannot make an array of."""
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        return None
    try:
        numbers = np.asarray(given)
        if numbers.dtype == object and not all(value is None or isinstance(value, Real) for value in numbers.flat):
            return None
        return numbers.astype(np.float64) if numbers.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def is_list_of_numbers(given: object) -> bool:
    """Whether these are one or more numbers, one after the other."""
    numbers = real_numbers(given)
    return numbers is not None and numbers.ndim == 1 and len(numbers) > 0


def exact_as_float(what: str, numbers: NDArray[np.generic]) -> None:
    """Refuse whole numbers that float64 would merge."""
    if numbers.dtype.kind in "iu" and numbers.size and max(int(numbers.max()), -int(numbers.min())) > 2**53:
        raise InputError(
            f"{what} has whole numbers beyond 2**53, which float64 cannot tell apart; subtract a constant, or ignore it"
        )


def counted(count: float, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "record"), counted(2500, "record"), counted(2, "person", "people")
    ('1 record', '2,500 records', '2 people')
    """
    return f"{count:,.0f} {one if count == 1 else many or one + 's'}"


def listed(items: Iterable[object], most: int = 5) -> str:
    """Name the first few of ``items``: ``'a', 'b' and 3 more``."""
    everything = [repr(item.item() if isinstance(item, np.generic) else item) for item in items]
    if len(everything) <= most:
        return ", ".join(everything)
    return f"{', '.join(everything[:most])} and {len(everything) - most} more"


def visible(text: str) -> str:
    """Text from data as it can be shown: what would steer a terminal or turn the reading direction is written out.

    >>> print(visible("red \\x1b[31m, 52 \\u202e25"))
    red \\x1b[31m, 52 \\u202e25
    """
    return _STEERING.sub(lambda found: repr(found[0])[1:-1], text)
