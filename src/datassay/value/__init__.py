"""Value: what a record is worth.

Beside the values themselves, what other rooms build on: the game behind them, and the numbers they share.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
