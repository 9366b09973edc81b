"""Sums on a device: of whole numbers, so that they do not depend on who adds first."""

import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from datassay._tensors import Tensor, TorchDevice, in_memory, the_torch
from datassay.neighbors.device.space import as_tensor

ALONG: Final = 60  # bits after the point of sums along a ranking: numbers between −1 and 1, twice that on the way
OVER: Final = 52  # bits after the point of sums over validation points …


def whole(numbers: Tensor, bits: int) -> Tensor:
    """Numbers as the nearest whole multiples of 2⁻ᵇⁱᵗˢ."""
    torch = the_torch()
    return (numbers * 2.0**bits + 0.5).floor_().to(torch.int64)


class Total:
    """One sum for each training point, of numbers between −1 and 1, at most ``MOST_ROWS`` of them."""

    def __init__(self, n: int, device: TorchDevice) -> None:
        torch = the_torch()
        self.whole = torch.zeros(n, dtype=torch.int64, device=device)

    def add_at(self, order: Tensor, numbers: Tensor) -> None:
        """Add what each validation point (a row) says of the training points in ``order``."""
        self.whole.scatter_add_(0, order.reshape(-1), whole(numbers, OVER).reshape(-1))

    def add(self, wholes: Tensor) -> None:
        """Add whole multiples of 2⁻⁵², one for each training point."""
        self.whole += wholes

    def sums(self) -> NDArray[np.float64]:
        """The sums, in memory."""
        torch = the_torch()
        return in_memory(self.whole.to(torch.float64) * 2.0**-OVER)


_constants: dict[tuple[int, str, object], tuple[weakref.ref[Any], Any]] = {}


def constant(array: NDArray[Any], like: Tensor, make: Callable[[Tensor], Tensor] | None = None) -> Tensor:
    """An array as a tensor where ``like`` is (or what ``make`` makes of it), sent there once while the array lives."""
    key = (id(array), str(like.device), make)
    there = _constants.get(key)
    if there is not None and there[0]() is array:
        return there[1]
    tensor = as_tensor(np.ascontiguousarray(array)).to(like.device)
    tensor = tensor.clone() if tensor.device.type == "cpu" else tensor
    tensor = tensor if make is None else make(tensor)
    _constants[key] = (weakref.ref(array, lambda _: _constants.pop(key, None)), tensor)
    return tensor
