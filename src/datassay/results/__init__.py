"""Results: small frozen records keyed by row id, that join, save and explain themselves."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
