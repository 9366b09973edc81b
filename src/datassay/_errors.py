"""The errors datassay raises on purpose: which of them it is says what has to be mended.

The command line turns them into exit codes: the call (2), the data (3), or the circumstances (4).
"""

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Something the caller gave is not usable; the message names it and says what would be right.

    As such it is about the data: a file, a table, a record.
    """


class UsageError(InputError):
    """The call itself is wrong, whatever the data: a parameter out of range, a name unknown, two that contradict."""


class UnavailableError(InputError):
    """Call and data are right, and still it cannot be done: no budget, memory, network or permission is left for it."""


class CheckpointError(UnavailableError):
    """What was done cannot be kept: the disk is full, say. What was kept before is whole."""


class LostError(UnavailableError):
    """Those who did the work are gone."""


class MissingDependencyError(ImportError):
    """An optional package is needed; the message says how to install it."""


@contextmanager
def needed(sentence: str, extra: str) -> Iterator[None]:
    """Import an optional package, or say what needs it and how to install it."""
    try:
        yield
    except ImportError:
        raise MissingDependencyError(f'{sentence}, which is not installed: pip install "datassay[{extra}]"') from None


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
