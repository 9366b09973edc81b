"""The disclosure game: rules and sides, the bandit, other strategies' moves, and how it went."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
