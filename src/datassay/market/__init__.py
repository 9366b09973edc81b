"""Market: how to trade. Pricing under full disclosure, and the game of partial disclosure."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
