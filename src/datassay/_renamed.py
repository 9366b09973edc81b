"""Earlier names of parameters, which calls may go on using."""

from collections.abc import Callable
from functools import wraps
from operator import attrgetter
from typing import Any, TypeVar

from datassay._errors import UsageError

T = TypeVar("T", bound=Callable[..., Any])


def renamed(**earlier: str) -> Callable[[T], T]:
    """Let a function, or a class, take keywords by their earlier names; instances have the attributes as well.

    >>> @renamed(neighbours="relation")
    ... def promise(relation="add-remove"):
    ...     return relation
    >>> promise(neighbours="replace")
    'replace'
    """

    def accepting(made: T) -> T:
        called: Any = made.__init__ if isinstance(made, type) else made  # type: ignore[misc]

        @wraps(called)
        def taken(*args: Any, **kwargs: Any) -> Any:
            for old in earlier.keys() & kwargs.keys():
                if earlier[old] in kwargs:
                    raise UsageError(f"{old} is the earlier name of {earlier[old]}; give one of them")
                kwargs[earlier[old]] = kwargs.pop(old)
            return called(*args, **kwargs)

        if isinstance(made, type):
            made.__init__ = taken  # type: ignore[misc]
            for old, new in earlier.items():
                setattr(made, old, property(attrgetter(new), doc=f"``{new}``, by its earlier name."))
            return made
        return taken  # type: ignore[return-value]

    return accepting
