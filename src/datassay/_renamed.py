"""Earlier names of parameters, which calls may go on using."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from datassay._errors import UsageError

T = TypeVar("T", bound=Callable[..., Any])


def renamed(**earlier: str) -> Callable[[T], T]:
    """Let a function, or a class when it is made, take keywords by their earlier names as well.

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
            return made
        return taken  # type: ignore[return-value]

    return accepting
