"""Report: what a person sees. One page that says what a data set is worth, leaks and reveals, and what to do about it.

The room is called as it is: ``da.report("people.csv", label="income").save("report.html")``.
"""

import sys
from types import ModuleType

from datassay.report.content import Card, Figure, Grid, Number, Paragraph, Section
from datassay.report.making import report
from datassay.report.methods import METHODS, Method
from datassay.report.result import Report, check_page

__all__ = [
    "METHODS",
    "Card",
    "Figure",
    "Grid",
    "Method",
    "Number",
    "Paragraph",
    "Report",
    "Section",
    "check_page",
    "report",
]


class _Room(ModuleType):
    """A module that can be called: ``da.report`` is the room and its one function, however it was imported."""

    __call__ = staticmethod(report)


sys.modules[__name__].__class__ = _Room
