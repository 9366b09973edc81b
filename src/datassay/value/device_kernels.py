"""The formulas once more, in torch, for blocks that lie on a device: each is the twin of the kernel of its name.

They add whole numbers, as ``neighbors.device`` says. Arguments are those of ``kernels``, with ``order`` a tensor and
``total`` a :class:`datassay.neighbors.Total`; arrays are sent to the device once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from datassay._tensors import Tensor, in_memory, the_torch
from datassay.neighbors import ALONG, OVER, Total, compiled, constant, whole

Codes = NDArray[Any]
Floats = NDArray[np.float64]


def _along(numbers: Tensor) -> Tensor:
    """Numbers as whole multiples of 2⁻⁶⁰."""
    return whole(numbers, ALONG)


def _number(wholes: Tensor) -> Tensor:
    """Whole multiples of 2⁻⁶⁰ as numbers."""
    return wholes.to(the_torch().float64) * 2.0**-ALONG


def _drops(steps: Tensor) -> Tensor:
    """step_{r−1} − step_r, as whole numbers: what rank r takes from those before it, if it matches."""
    torch, wholes = the_torch(), _along(steps)
    return torch.cat([wholes[:1] * 0, wholes[:-1] - wholes[1:]])


def _scaled(weights: Floats, by: float, like: Tensor) -> Tensor:
    """What to multiply sums along a ranking by, one number for each row."""
    return (constant(weights, like) * (by * 2.0**-ALONG)).unsqueeze(1)


def _matches(order: Tensor, codes: Codes, targets: Codes) -> Tensor:
    """b: whether the label of the training point at each rank is that of the validation point."""
    return constant(codes, order)[order] == constant(targets, order).unsqueeze(1)


def _behind(terms: Tensor) -> Tensor:
    """The sum of the terms at farther ranks, for each rank."""
    so_far = terms.cumsum(1)
    return so_far[:, -1:] - so_far


def add_shapley(order: Tensor, codes: Codes, targets: Codes, weights: Floats, step: Floats, total: Total) -> None:
    """Mathematics §1 ``fraction``: φ_r = b_r · step_r − Σ_{s>r} b_s · (step_{s−1} − step_s)."""
    steps, drops = constant(step, order, _along), constant(step, order, _drops)
    scale = _scaled(weights, 1.0, order)
    if compiled(order.device):
        from datassay.value import triton_kernels

        there = constant(codes, order), constant(targets, order)
        triton_kernels.add_shapley(order, *there, scale * 2.0**OVER, steps, drops, total.whole)
        return
    torch, match = the_torch(), _matches(order, codes, targets)
    worth = torch.where(match, steps, 0) - _behind(torch.where(match, drops, 0))
    total.add_at(order, worth * scale)


def add_banzhaf(
    order: Tensor, codes: Codes, targets: Codes, weights: Floats, chance: Floats, k: int, total: Total
) -> None:
    """Mathematics §2: (1/k) Σ_{j>i} (b_i − b_j) · chance_j."""
    torch, match = the_torch(), _matches(order, codes, targets)
    chances = constant(chance, order, _along)
    matching, other = _behind(torch.where(match, chances, 0)), _behind(torch.where(match, 0, chances))
    total.add_at(order, torch.where(match, other, -matching) * _scaled(weights, 1.0 / k, order))


def add_leave_one_out(order: Tensor, codes: Codes, targets: Codes, weights: Floats, total: Total) -> None:
    """Without one of the k nearest, rank k+1 moves up: (b_i − b_{k+1}) / k."""
    torch, k = the_torch(), order.shape[1] - 1
    match = _matches(order, codes, targets).to(torch.float64)
    shares = constant(weights, order).unsqueeze(1) * (1.0 / k)  # a card does not divide: it multiplies like this
    total.add_at(order[:, :k], (match[:, :k] - match[:, k:]) * shares)


def add_threshold_shapley(
    inside: Tensor, codes: Codes, targets: Codes, weights: Floats, harmonic: Floats, n_classes: int, total: Total
) -> None:
    """Mathematics §3: with c neighbours, p of them matching, there are two values: for a match and for the others."""
    from datassay.value import kernels

    if compiled(inside.device):
        from datassay.value import triton_kernels as how
    else:
        how = _Plain  # type: ignore[assignment]
    there = inside, constant(codes, inside), constant(targets, inside)
    c, p = (in_memory(counts) for counts in how.count_within(*there))
    worth = np.empty((len(c), 2))
    kernels.write_threshold_worth(c, p, weights, harmonic[c], n_classes, worth)
    total.add(how.sum_within(*there, whole(constant(worth, inside), OVER)))


class _Plain:
    """What ``triton_kernels`` does for neighbourhoods, in torch."""

    @staticmethod
    def count_within(inside: Tensor, codes: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """How many neighbours each validation point has, and how many of them match."""
        return inside.sum(1), (inside & (codes == targets.unsqueeze(1))).sum(1)

    @staticmethod
    def sum_within(inside: Tensor, codes: Tensor, targets: Tensor, worth: Tensor) -> Tensor:
        """The sum of worth[v, b] over the validation points v that each training point is a neighbour of."""
        torch = the_torch()
        other, matching = worth.T.unsqueeze(2)
        return torch.where(inside, torch.where(codes == targets.unsqueeze(1), matching, other), 0).sum(0)


def add_waka(
    order: Tensor, codes: Codes, targets: Codes, weights: Floats, chances: Floats, k: int, most_match: int,
    most_wrong: int, total: Total,
) -> None:  # fmt: skip
    """Mathematics §4: half Σ of chance_j over displaced ranks j > i with another bit, over k, of some losses."""
    torch = the_torch()
    n = min(order.shape[1], len(chances))
    order = order[:, :n]
    match = _matches(order, codes, targets)
    if min(most_match, most_wrong) >= k - 1:
        to_match = to_wrong = constant(chances, order, _along)[:n]
    else:
        to_match, to_wrong = (
            _along(torch.from_numpy(terms).to(order.device))
            for terms in _terms(in_memory(match), chances, k, most_match, most_wrong)
        )
    gains, losses = _behind(torch.where(match, 0, to_match)), _behind(torch.where(match, to_wrong, 0))
    total.add_at(order, torch.where(match, gains, -losses) * _scaled(weights, 0.5 / k, order))


def _terms(
    match: NDArray[np.bool_], chances: Floats, k: int, most_match: int, most_wrong: int
) -> tuple[Floats, Floats]:
    """What each rank of a block adds to matches before it, and to wrong labels: found in memory, rank after rank."""
    from datassay.value import kernels

    to_match, to_wrong = np.empty((2, *match.shape))
    for bits, *terms in zip(match, to_match, to_wrong, strict=True):
        kernels.write_waka_terms(bits, chances, k, most_match, most_wrong, *terms)
    return to_match, to_wrong


def write_self_waka(order: Tensor, codes: Codes, targets: Codes, chances: Floats, k: int, values: Tensor) -> None:
    """Self-attribution (Mathematics §4): (1/2k) Σ of chances over ranks with another label, the record at rank 1."""
    n = min(order.shape[1], len(chances) - 1)
    terms = constant(chances, order, _along)[1 : n + 1]
    moved = the_torch().where(_matches(order[:, :n], codes, targets), 0, terms).sum(1)
    values[:] = _number(moved) * (0.5 / k)


def write_self_shapley(order: Tensor, codes: Codes, targets: Codes, k: int, drop: Floats, out: Tensor) -> None:
    """Value of a record for itself, at rank 1: φ_1 = 1/k − Σ_{j>k} b_j/(j(j−1)); ``order`` starts at rank 2."""
    first = max(k - 1, 0)
    terms = constant(drop, order, _along)[first : order.shape[1]]
    lost = the_torch().where(_matches(order[:, first:], codes, targets), terms, 0).sum(1)
    out[:] = 1.0 / k - _number(lost)
