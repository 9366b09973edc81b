"""Tensors of torch, where somebody uses them: recognised without loading torch, and brought into memory."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from datassay._errors import InputError, needed

if TYPE_CHECKING:
    import torch

Tensor = TypeAliasType("Tensor", "torch.Tensor")
TorchDevice = TypeAliasType("TorchDevice", "torch.device")


def the_torch() -> Any:
    """The module torch, which is an optional dependency."""
    with needed("a device needs torch", "gpu"):
        import torch
    return torch


def is_tensor(given: object) -> bool:
    """Whether this is a tensor of torch."""
    return hasattr(given, "detach") and any(
        kind.__module__.partition(".")[0] == "torch" for kind in type(given).__mro__
    )


def in_memory(tensor: Any) -> NDArray[Any]:
    """A tensor as an array in memory; what NumPy lacks (bfloat16, or a minus that is put off) as float64, or done."""
    torch = the_torch()
    if tensor.layout != torch.strided:
        raise InputError("a sparse tensor was given; give it with to_dense()")
    if tensor.is_meta:
        raise InputError("a tensor without data was given, on the device meta; give one that holds numbers")
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.is_floating_point() and tensor.dtype not in (torch.float16, torch.float32, torch.float64):
        tensor = tensor.double()
    return np.asarray(tensor.numpy())


def without_tensors(given: object) -> object:
    """A tensor as an array in memory; anything else as it is."""
    return in_memory(given) if is_tensor(given) else given


def as_array(given: object) -> NDArray[Any]:
    """A tensor, wherever it is, or whatever else NumPy takes, as an array in memory."""
    return np.asarray(without_tensors(given))
