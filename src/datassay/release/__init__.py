"""Release: what to publish; strategies that keep the format, and what each costs and saves."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
