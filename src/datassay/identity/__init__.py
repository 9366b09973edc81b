"""Identity: who can be found in a table, and which attributes give them away."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
