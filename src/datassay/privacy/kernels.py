"""Private values, compiled: counts of a block of validation points, and values from released counts."""

import math

import numpy as np

from datassay._jit import kernel


@kernel
def count_neighbours(inside, codes, targets, counts):
    """counts[v] = (records, neighbours, matching neighbours) of validation point v among all records."""
    n = inside.shape[1]
    for v in range(inside.shape[0]):
        near = inside[v]
        target = targets[v]
        neighbours = 0
        matching = 0
        for i in range(n):
            neighbours += near[i]
            matching += near[i] & (codes[i] == target)
        counts[v, 0] = n
        counts[v, 1] = neighbours
        counts[v, 2] = matching


@kernel
def count_members(inside, codes, targets, members, counts):
    """The same of a sample."""
    for v in range(inside.shape[0]):
        neighbours = 0
        matching = 0
        for i in members:
            neighbours += inside[v, i]
            matching += inside[v, i] & (codes[i] == targets[v])
        counts[v, 0] = members.shape[0]
        counts[v, 1] = neighbours
        counts[v, 2] = matching


@kernel
def add_worths(inside, codes, targets, worths, total):
    """Add, of validation point v, worths[v, 0] to a neighbour with another label and worths[v, 1] to a match."""
    n = inside.shape[1]
    worth = np.zeros(3)
    for v in range(inside.shape[0]):
        near = inside[v]
        target = targets[v]
        worth[1:] = worths[v]
        for i in range(n):
            total[i] += worth[near[i] * (1 + (codes[i] == target))]


@kernel
def add_members(inside, codes, targets, members, more, total):
    """The same of a sample alone."""
    for v in range(inside.shape[0]):
        for i in members:
            if inside[v, i]:
                total[i] += more[v, int(codes[i] == targets[v])]


@kernel
def add_sampled_shapley(order, start, stop, codes, target, weight, k, log_skip, drawn, total):
    """``fraction`` Shapley values of the records at ranks start … stop−1, each among a fresh sample of the others.

    With r−1 of the sample before it, a record is worth b/max(k, r) − Σ b_j/(j (j−1)) over the sample's ranks
    j > max(k, r) behind it. The words ``drawn`` say how many to skip; ``log_skip`` is log(1 − chance). Returns how many
    words were used, or −1 if there were too few (then ``total`` is not touched).
    """
    n = order.shape[0]
    values = np.empty(stop - start)
    used = 0
    for own in range(start, stop):
        rank = 1
        behind = 0.0
        last = 0
        at = -1
        while True:
            if used == drawn.shape[0]:
                return -1
            uniform = (np.float64(drawn[used] >> np.uint64(11)) + 1.0) * 2.0**-53
            used += 1
            at += 1 + int(min(math.floor(math.log(uniform) / log_skip), float(n)))
            if at >= n - 1:
                break
            if at < own:
                rank += 1
                continue
            last = max(last, rank) + 1
            if last > k and codes[order[at + 1]] == target:
                behind += 1.0 / (last * (last - 1.0))
        match = 1.0 if codes[order[own]] == target else 0.0
        values[own - start] = match / max(k, rank) - behind
    for own in range(start, stop):
        total[order[own]] += weight * values[own - start]
    return used
