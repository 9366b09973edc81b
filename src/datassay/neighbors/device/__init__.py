"""The second adapter: neighbours found by torch, on a graphics card or on the processor.

The same views of the same points, in blocks that fit into the card. Features that do not fit stay where they are and
pass by in pieces. Distances have the bits of ``kernels.distances``: every pair is summed feature by feature, and no
multiplication is fused with an addition (a matrix product would promise neither). So whoever is nearest is the same
everywhere, ties included.

Sums are taken of whole numbers, multiples of 2⁻⁶⁰ along a ranking and of 2⁻⁵² over validation points, whose sum does
not depend on its order: the same bits for any block, on any device, however many threads of a card add at once. From
the sums of ``kernels`` they differ by rounding alone.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
