"""datassay: what every record and attribute of a data set is worth, leaks and reveals, and what to release.

Start with ``da.knn_shapley``; ``da.read_table`` reads your file. The public names stand in ``__init__.pyi``, for type
checkers and for Python: each is loaded on first use, so that importing the package costs next to nothing.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
