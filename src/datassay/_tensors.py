"""Tensors of torch, where somebody uses them: recognised without loading torch, and brought into memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from datassay._errors import MissingDependencyError


def the_torch() -> Any:
    """The module torch, which is an optional dependency."""
    try:
        import torch
    except ImportError:
        raise MissingDependencyError(
            'a device needs torch, which is not installed: pip install "datassay[gpu]"'
        ) from None
    return torch


def is_tensor(given: object) -> bool:
    """Whether this is a tensor of torch."""
    return hasattr(given, "detach") and any(
        kind.__module__.partition(".")[0] == "torch" for kind in type(given).__mro__
    )


def in_memory(tensor: Any) -> NDArray[Any]:
    """A tensor as an array in memory; bfloat16, which NumPy lacks, as float64."""
    tensor = tensor.detach().cpu()
    if tensor.dtype == the_torch().bfloat16:
        tensor = tensor.double()
    return np.asarray(tensor.numpy())


def without_tensors(given: object) -> object:
    """A tensor as an array in memory; anything else as it is."""
    return in_memory(given) if is_tensor(given) else given
