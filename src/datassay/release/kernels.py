"""Mondrian: people cut into groups of at least k, along the attribute in which they differ most."""

import numpy as np

from datassay._jit import kernel


@kernel
def _spread(codes, rows, places, numeric, levels, stamp, mark):
    """How far the rows are apart in one attribute, as a share of all: by range, or by the number of categories."""
    low, high, different = codes[rows[0]], codes[rows[0]], 0
    for r in rows:
        c = codes[r]
        low, high = min(low, c), max(high, c)
        if stamp[c] != mark:
            stamp[c] = mark
            different += 1
    if different < 2:
        return 0.0
    if numeric:
        return places[high] - places[low]
    return (different - 1) / (levels - 1)


@kernel
def _allowed(rows, sensitive, share, ordered, least, farthest, absent, counts):
    """Whether a group has enough different sensitive values, and their distribution is near enough to that of all."""
    if least <= 1 and farthest >= 1.0:
        return True
    counts[:] = 0
    for r in rows:
        counts[sensitive[r]] += 1
    different, distance, running = 0, 0.0, 0.0
    for c in range(len(share)):
        if counts[c] > 0 and c != absent:
            different += 1
        gap = counts[c] / len(rows) - share[c]
        if ordered:
            running += gap
            distance += abs(running)
        else:
            distance += 0.5 * abs(gap)
    if ordered and len(share) > 1:
        distance /= len(share) - 1
    return different >= least and distance <= farthest + 1e-12


@kernel
def mondrian(codes, levels, places, numeric, k, strict, sensitive, share, ordered, least, farthest, absent, group):
    """Number each row's group. ``codes``: attributes × rows, by rank; ``places``: where each number lies in 0 … 1.

    A group is cut where the two halves are most nearly equal: between two values (strict), or anywhere in the order of
    values (relaxed: people with the same value may be on both sides).
    """
    d, n = codes.shape
    rows, buffer = np.arange(n), np.empty(n, np.int64)
    starts, ends = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64)
    most = max(1, levels.max())
    stamp, counts = np.full(most, -1, np.int64), np.zeros(most + 1, np.int64)
    tally = np.zeros(len(share), np.int64)
    spread, side = np.empty(d), np.empty(n, np.bool_)
    starts[0], ends[0], waiting, found, mark = 0, n, 1, 0, 0
    while waiting > 0:
        waiting -= 1
        start, end = starts[waiting], ends[waiting]
        here = rows[start:end]
        size = end - start
        cut = False
        if size >= 2 * k:
            for a in range(d):
                spread[a] = _spread(codes[a], here, places[a], numeric[a], levels[a], stamp, mark)
                mark += 1
            for a in np.argsort(-spread, kind="mergesort"):
                if spread[a] <= 0.0:
                    break
                counts[: levels[a] + 1] = 0
                for r in here:
                    counts[codes[a, r]] += 1
                left, nearest, at = 0, size, -1
                for c in range(levels[a]):
                    left += counts[c]
                    if k <= left <= size - k and abs(2 * left - size) < nearest:
                        nearest, at = abs(2 * left - size), c
                if at < 0 and strict:
                    continue
                if strict:
                    for r in here:
                        side[r] = codes[a, r] <= at
                else:  # fill the left half in the order of values
                    half, taken, value = size // 2, 0, 0
                    while taken + counts[value] <= half:
                        taken += counts[value]
                        value += 1
                    for r in here:
                        c = codes[a, r]
                        side[r] = c < value
                        if c == value and taken < half:
                            side[r] = True
                            taken += 1
                middle = start
                for r in here:
                    if side[r]:
                        buffer[middle] = r
                        middle += 1
                last = middle
                for r in here:
                    if not side[r]:
                        buffer[last] = r
                        last += 1
                good = _allowed(buffer[start:middle], sensitive, share, ordered, least, farthest, absent, tally)
                if good and _allowed(buffer[middle:end], sensitive, share, ordered, least, farthest, absent, tally):
                    rows[start:end] = buffer[start:end]
                    starts[waiting], ends[waiting] = middle, end
                    starts[waiting + 1], ends[waiting + 1] = start, middle
                    waiting += 2
                    cut = True
                    break
        if not cut:
            for i in range(start, end):
                group[rows[i]] = found
            found += 1
    return found
