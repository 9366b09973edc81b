"""Distances on a device, with the bits of those in memory: by a kernel that Triton compiles, or else by torch."""

import warnings
from functools import cache

from datassay._errors import first_line
from datassay._tensors import Tensor, TorchDevice, the_torch
from datassay.neighbors.device.memory import is_of_memory


def distances(metric: int, points: Tensor, queries: Tensor, limit: float | None = None) -> Tensor:
    """What ranks the points (features, n) as seen from the queries (features, m), with the bits of the CPU's kernel.

    With a limit, whether that is at most the limit.
    """
    from datassay.neighbors import kernels

    torch = the_torch()
    n, m = points.shape[1], queries.shape[1]
    if compiled(points.device):
        from datassay.neighbors.device import triton_kernels

        return triton_kernels.distances(metric, points, queries, limit)
    found = torch.zeros((m, n), dtype=points.dtype, device=points.device)
    for there, here in zip(points, queries.unsqueeze(2), strict=True):
        if metric == kernels.COSINE:
            found += there * here
            continue
        apart = there - here
        found += apart.abs_() if metric == kernels.MANHATTAN else apart.square_()
    if metric == kernels.COSINE:
        found = (0.0 - found).clamp_(-1.0, 1.0)
    return found if limit is None else found <= limit


@cache
def compiled(device: TorchDevice) -> bool:
    """Whether kernels of our own can be compiled for this device; without them torch's do, more slowly."""
    if device.type != "cuda":
        return False
    try:
        from datassay.neighbors.device import triton_kernels

        triton_kernels.try_out(device)
    except Exception as error:  # no Triton, no C compiler, a card it does not know: all of them only cost time
        if isinstance(error, RuntimeError) and is_of_memory(error):  # that is no answer: the next block may fit
            raise
        warnings.warn(f"Triton cannot be used ({first_line(error)}); torch does the same, more slowly", stacklevel=2)
        return False
    return True
