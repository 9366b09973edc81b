"""Neighbours: distances → full ranking, nearest J or within τ, in blocks, the same bits however it is run."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
