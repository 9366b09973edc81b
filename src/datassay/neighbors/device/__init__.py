"""The second adapter: neighbours found by torch, on a graphics card or on the processor.

The same views of the same points, in blocks that fit into the card; features that do not fit pass by in pieces.
Distances have the bits of ``kernels.distances``, and so have rankings, ties included: every pair is summed feature by
feature, and no multiplication is fused with an addition (a matrix product would promise neither).

Sums are taken of whole numbers, multiples of 2⁻⁶⁰ along a ranking and of 2⁻⁵² over validation points: the same bits for
any block, on any device, in whatever order threads add. From the sums of ``kernels`` they differ by rounding alone.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
