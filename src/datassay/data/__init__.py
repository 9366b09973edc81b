"""Data: a table comes in; typed columns, row ids, encoding, named data sets and splits."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
