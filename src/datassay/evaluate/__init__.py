"""Evaluate: how good a value is: curves, the detection of errors, labels that are likely wrong."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
