"""Distances on a card, compiled by Triton, with the bits of ``kernels.distances``.

Every program takes a tile of validation × training points through the features one after the other. Multiplications
are not fused with additions (``enable_fp_fusion=False``): that costs half of the card's peak rate and nothing else,
since what waits for the distances is the sort.
"""

import torch
import triton
import triton.language as tl

from datassay.neighbors import kernels


@triton.jit
def _distances(
    points, queries, limit, found, n, m, d, points_stride, queries_stride, found_stride,
    METRIC: tl.constexpr, WITHIN: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    training = tl.program_id(0) * N + tl.arange(0, N)
    validation = tl.program_id(1) * M + tl.arange(0, M)
    some_training, some_validation = training < n, validation < m
    total = tl.zeros((M, N), dtype=points.dtype.element_ty)
    x_at, q_at = points + training, queries + validation
    for _ in range(d):
        x = tl.load(x_at, mask=some_training, other=0.0)
        q = tl.load(q_at, mask=some_validation, other=0.0)
        if METRIC == 0:
            apart = x[None, :] - q[:, None]
            total += apart * apart
        elif METRIC == 1:
            total += tl.abs(x[None, :] - q[:, None])
        else:
            total += x[None, :] * q[:, None]
        x_at += points_stride
        q_at += queries_stride
    if METRIC == 2:
        total = tl.minimum(tl.maximum(0.0 - total, -1.0), 1.0)
    at = found + validation[:, None].to(tl.int64) * found_stride + training[None, :]
    there = some_validation[:, None] & some_training[None, :]
    if WITHIN:
        tl.store(at, (total <= tl.load(limit)).to(tl.uint8), mask=there)
    else:
        tl.store(at, total, mask=there)


def distances(metric: int, points: torch.Tensor, queries: torch.Tensor, limit: float | None = None) -> torch.Tensor:
    """What ranks the points (features, n) as seen from the queries (features, m): a tensor (m, n).

    With a limit, whether that is at most the limit: the distances themselves are never written.
    """
    assert (kernels.EUCLIDEAN, kernels.MANHATTAN, kernels.COSINE) == (0, 1, 2)
    (d, n), m = points.shape, queries.shape[1]
    within = limit is not None
    found = torch.empty((m, n), dtype=torch.uint8 if within else points.dtype, device=points.device)
    bound = torch.tensor(limit if within else 0.0, dtype=points.dtype, device=points.device)
    wide = points.dtype == torch.float64
    rows, columns = (32, 128) if wide or m <= 64 else (128, 64)
    rows = min(rows, max(16, triton.next_power_of_2(m)))
    with torch.cuda.device(points.device):
        _distances[(triton.cdiv(n, columns), triton.cdiv(m, rows))](
            points, queries, bound, found, n, m, d, points.stride(0), queries.stride(0), found.stride(0),
            METRIC=metric, WITHIN=within, M=rows, N=columns, num_warps=4, enable_fp_fusion=False,
        )  # fmt: skip
    return found.view(torch.bool) if within else found


def try_out(device: torch.device) -> None:
    """Compile one and run it; whatever is wrong is raised."""
    one = torch.ones((1, 1), device=device)
    if distances(kernels.EUCLIDEAN, one, one).item() != 0.0:
        raise RuntimeError("the distance of a point from itself is not 0")
