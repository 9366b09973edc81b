"""Report: what a person sees. One page that says what a data set is worth, leaks and reveals, and what to do about it.

The room is called as it is: ``da.report("people.csv", label="income").save("report.html")``.
"""

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import Any

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)


class _Room(ModuleType):
    """A module that can be called: ``da.report`` is the room and its one function, however it was imported."""

    @property
    def __call__(self) -> Any:
        return self.report

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.report.__doc__

    @property
    def __signature__(self) -> Signature:
        return signature(self.report)


sys.modules[__name__].__class__ = _Room
