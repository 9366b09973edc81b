"""Privacy: what may be published: mechanisms, accounting and the ledger."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
