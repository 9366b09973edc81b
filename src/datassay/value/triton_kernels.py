"""Shapley values on a card, compiled by Triton: what ``device_kernels`` does in many passes over a block, in two.

All sums are of whole numbers, so the bits are those of ``device_kernels``.
"""

import torch
import triton
import triton.language as tl

PIECE = 1024  # ranks a program goes through
WIDE = 4096  # neighbours it counts
COLUMNS = 512  # training points it adds up


@triton.jit
def _sum_pieces(order, codes, targets, drops, sums, n, order_stride, PIECE: tl.constexpr) -> None:
    row, piece = tl.program_id(1), tl.program_id(0)
    rank = piece * PIECE + tl.arange(0, PIECE)
    there = rank < n
    who = tl.load(order + row.to(tl.int64) * order_stride + rank, mask=there, other=0)
    match = (tl.load(codes + who, mask=there, other=0) == tl.load(targets + row)) & there
    drop = tl.load(drops + rank, mask=there, other=0)
    tl.store(sums + row * tl.num_programs(0) + piece, tl.sum(tl.where(match, drop, 0)))


@triton.jit
def _add(order, codes, targets, scales, steps, drops, behind, total, n, order_stride, PIECE: tl.constexpr):
    row, piece = tl.program_id(1), tl.program_id(0)
    rank = piece * PIECE + tl.arange(0, PIECE)
    there = rank < n
    who = tl.load(order + row.to(tl.int64) * order_stride + rank, mask=there, other=0)
    match = (tl.load(codes + who, mask=there, other=0) == tl.load(targets + row)) & there
    drop = tl.where(match, tl.load(drops + rank, mask=there, other=0), 0)
    farther = tl.load(behind + row * tl.num_programs(0) + piece) - tl.cumsum(drop, 0)
    worth = tl.where(match, tl.load(steps + rank, mask=there, other=0), 0) - farther
    scaled = worth.to(tl.float64) * tl.load(scales + row)
    tl.atomic_add(total + who, tl.floor(scaled + 0.5).to(tl.int64), mask=there, sem="relaxed")


def add_shapley(
    order: torch.Tensor, codes: torch.Tensor, targets: torch.Tensor, scales: torch.Tensor, steps: torch.Tensor,
    drops: torch.Tensor, total: torch.Tensor,
) -> None:  # fmt: skip
    """Add b_r · step_r − Σ_{s>r} b_s · drop_s, times the row's scale, to the total of the point at rank r."""
    rows, n = order.shape
    grid, seen, shape = (triton.cdiv(n, PIECE), rows), (order, codes, targets), (n, order.stride(0))
    with torch.cuda.device(order.device):
        sums = torch.empty(grid[::-1], dtype=torch.int64, device=order.device)
        _sum_pieces[grid](*seen, drops, sums, *shape, PIECE=PIECE, num_warps=4)
        behind = sums.flip(1).cumsum(1).flip(1).contiguous()  # of this piece and all farther ones
        _add[grid](*seen, scales, steps, drops, behind, total, *shape, PIECE=PIECE, num_warps=4, enable_fp_fusion=False)


@triton.jit
def _count_within(inside, codes, targets, near, matching, n, stride, PIECE: tl.constexpr):
    row, piece = tl.program_id(1), tl.program_id(0)
    training = piece * PIECE + tl.arange(0, PIECE)
    there = training < n
    close = tl.load(inside + row.to(tl.int64) * stride + training, mask=there, other=0) != 0
    match = tl.load(codes + training, mask=there, other=0) == tl.load(targets + row)
    tl.atomic_add(near + row, tl.sum(close.to(tl.int64)), sem="relaxed")
    tl.atomic_add(matching + row, tl.sum((close & match).to(tl.int64)), sem="relaxed")


@triton.jit
def _sum_within(inside, codes, targets, worth, total, m, n, stride, COLUMNS: tl.constexpr):
    training = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    there = training < n
    code = tl.load(codes + training, mask=there, other=0)
    found = tl.zeros((COLUMNS,), dtype=tl.int64)
    at = inside + training
    for row in range(m):
        close = tl.load(at, mask=there, other=0) != 0
        match = code == tl.load(targets + row)
        found += tl.where(close, tl.where(match, tl.load(worth + 2 * row + 1), tl.load(worth + 2 * row)), 0)
        at += stride
    tl.store(total + training, found, mask=there)


def count_within(inside: torch.Tensor, codes: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How many neighbours each validation point has, and how many of them match."""
    rows, n = inside.shape
    near, matching = torch.zeros((2, rows), dtype=torch.int64, device=inside.device)
    with torch.cuda.device(inside.device):
        _count_within[(triton.cdiv(n, WIDE), rows)](
            inside.view(torch.uint8), codes, targets, near, matching, n, inside.stride(0), PIECE=WIDE, num_warps=4
        )
    return near, matching


def sum_within(inside: torch.Tensor, codes: torch.Tensor, targets: torch.Tensor, worth: torch.Tensor) -> torch.Tensor:
    """The sum of worth[v, b] over the validation points v that each training point is a neighbour of."""
    rows, n = inside.shape
    total = torch.empty(n, dtype=torch.int64, device=inside.device)
    with torch.cuda.device(inside.device):
        _sum_within[(triton.cdiv(n, COLUMNS),)](
            inside.view(torch.uint8), codes, targets, worth.contiguous(), total, rows, n, inside.stride(0),
            COLUMNS=COLUMNS, num_warps=4,
        )  # fmt: skip
    return total
