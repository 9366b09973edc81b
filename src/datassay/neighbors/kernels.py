"""Distances and rankings, compiled.

Distances: training points lie in tiles of ``TILE``, feature by feature, so that one instruction serves many
points and every pair is summed over features in the same order: exact duplicates get equal distances, and the
bits do not depend on tiling, threads or machine. (A BLAS product is no faster here and promises neither.)

Ranking: a distance's bits, read as an integer, sort like the distance. The key, shortened to 32 bits, is packed
with the index into one word and sorted by a stable radix sort; what the shortening made equal is put in order
afterwards. Ties go to the smaller index (SPEC §0).
"""

import numpy as np

from datassay._jit import kernel

EUCLIDEAN, MANHATTAN, COSINE = 0, 1, 2
TILE = 256  # training points side by side: wide enough for the vector units, small enough for the cache
DIGIT = 11  # bits a radix pass: 2,048 counters stay in the first-level cache


@kernel
def fill_tiles(points, tiles):
    """Lay out ``points`` (n, d) as tiles (⌈n/TILE⌉, d, TILE); the last one is padded with zeros."""
    n, d = points.shape
    width = tiles.shape[2]
    for tile in range(tiles.shape[0]):
        start = tile * width
        rows = min(width, n - start)
        for j in range(d):
            for i in range(rows):
                tiles[tile, j, i] = points[start + i, j]
            for i in range(rows, width):
                tiles[tile, j, i] = 0


@kernel
def distances(metric, tiles, queries, out):
    """Fill out[v, i] with what ranks training point i as seen from query v, summed in feature order.

    EUCLIDEAN: Σ_j (x_ij − q_vj)², the square; MANHATTAN: Σ_j |x_ij − q_vj|; COSINE, for rows of unit length:
    −Σ_j x_ij q_vj kept within [−1, 1] and never −0. Four features a sweep keep the running sums in registers.
    """
    n_tiles, d, width = tiles.shape
    m, n = out.shape
    sums = np.empty((m, width), tiles.dtype)
    zero = tiles.dtype.type(0)
    one = tiles.dtype.type(1)
    for tile in range(n_tiles):
        points = tiles[tile]
        sums[:] = 0
        for j in range(0, d - 3, 4):
            x0 = points[j]
            x1 = points[j + 1]
            x2 = points[j + 2]
            x3 = points[j + 3]
            for v in range(m):
                row = sums[v]
                q0 = queries[v, j]
                q1 = queries[v, j + 1]
                q2 = queries[v, j + 2]
                q3 = queries[v, j + 3]
                if metric == EUCLIDEAN:
                    for i in range(width):
                        e0 = x0[i] - q0
                        e1 = x1[i] - q1
                        e2 = x2[i] - q2
                        e3 = x3[i] - q3
                        row[i] = (((row[i] + e0 * e0) + e1 * e1) + e2 * e2) + e3 * e3
                elif metric == MANHATTAN:
                    for i in range(width):
                        e0 = abs(x0[i] - q0)
                        e1 = abs(x1[i] - q1)
                        e2 = abs(x2[i] - q2)
                        e3 = abs(x3[i] - q3)
                        row[i] = (((row[i] + e0) + e1) + e2) + e3
                else:
                    for i in range(width):
                        row[i] = (((row[i] + x0[i] * q0) + x1[i] * q1) + x2[i] * q2) + x3[i] * q3
        for j in range(d - d % 4, d):
            x0 = points[j]
            for v in range(m):
                row = sums[v]
                q0 = queries[v, j]
                if metric == EUCLIDEAN:
                    for i in range(width):
                        e0 = x0[i] - q0
                        row[i] += e0 * e0
                elif metric == MANHATTAN:
                    for i in range(width):
                        row[i] += abs(x0[i] - q0)
                else:
                    for i in range(width):
                        row[i] += x0[i] * q0
        start = tile * width
        rows = min(width, n - start)
        for v in range(m):
            if metric == COSINE:
                for i in range(rows):
                    out[v, start + i] = min(max(zero - sums[v, i], -one), one)
            else:
                for i in range(rows):
                    out[v, start + i] = sums[v, i]


@kernel
def to_unit_length(points):
    """Scale each row to length 1 in place; return the index of the first row of length zero, or −1."""
    n, d = points.shape
    first_zero = -1
    for i in range(n):
        largest = points.dtype.type(0)
        for j in range(d):
            largest = max(largest, abs(points[i, j]))
        if largest == 0:
            if first_zero < 0:
                first_zero = i
            continue
        s = points.dtype.type(0)
        for j in range(d):  # by the largest entry first, so that no square over- or underflows
            points[i, j] /= largest
            s += points[i, j] * points[i, j]
        length = np.sqrt(s)
        for j in range(d):
            points[i, j] /= length
    return first_zero


@kernel
def _key(bits, i):
    """An integer that sorts like the float whose bits these are."""
    top = np.uint64(1) << np.uint64(8 * bits.itemsize - 1)
    u = np.uint64(bits[i])
    return (top - np.uint64(1)) ^ (u ^ top) if u & top else u | top


@kernel
def _shorten(bits, short):
    """Fill ``short`` with keys of at most 32 bits in the same order; return (bits used, bits dropped).

    Where bits must be dropped (float64), the smallest key becomes 0 and the others start at 1: zero distances
    (duplicates) then do not stretch the range over all the exponents up to the first real distance.
    """
    n = bits.size
    lowest = ~np.uint64(0)
    second = lowest
    highest = np.uint64(0)
    for i in range(n):
        u = _key(bits, i)
        if u < lowest:
            second = lowest
            lowest = u
        elif u > lowest and u < second:
            second = u
        highest = max(highest, u)
    width = _width(highest - lowest)
    if width <= 32:
        for i in range(n):
            short[i] = np.uint32(_key(bits, i) - lowest)
        return width, 0
    width = _width(highest - second)
    dropped = max(0, width - 31)  # 31 bits, since the 1 added may carry into one more
    for i in range(n):
        u = _key(bits, i)
        if u == lowest:
            short[i] = np.uint32(0)
        else:
            short[i] = np.uint32(((u - second) >> np.uint64(dropped)) + np.uint64(1))
    return width - dropped + 1, dropped


@kernel
def _width(u):
    width = 0
    while u > 0:
        width += 1
        u >>= np.uint64(1)
    return width


@kernel
def _order_run(bits, words, start, stop, spare):
    """Stable sort of words[start:stop], alike in their short keys, by their whole keys."""
    low_half = np.uint64(0xFFFFFFFF)
    if stop - start <= 16:
        for i in range(start + 1, stop):
            word = words[i]
            key = _key(bits, word & low_half)
            j = i
            while j > start and _key(bits, words[j - 1] & low_half) > key:
                words[j] = words[j - 1]
                j -= 1
            words[j] = word
        return
    step = 1
    while step < stop - start:  # bottom-up merge sort: a crowded run costs n log n, never n²
        for low in range(start, stop, 2 * step):
            middle = min(low + step, stop)
            high = min(low + 2 * step, stop)
            left = low
            right = middle
            for at in range(low, high):
                if right >= high:
                    take_left = True
                elif left >= middle:
                    take_left = False
                else:
                    take_left = _key(bits, words[left] & low_half) <= _key(bits, words[right] & low_half)
                if take_left:
                    spare[at] = words[left]
                    left += 1
                else:
                    spare[at] = words[right]
                    right += 1
        for i in range(start, stop):
            words[i] = spare[i]
        step *= 2


@kernel
def _finish(bits, words, spare):
    """Put runs of equal short keys in the order of their whole keys."""
    n = bits.size
    start = 0
    half = np.uint64(32)
    while start < n:
        stop = start + 1
        high = words[start] >> half
        while stop < n and words[stop] >> half == high:
            stop += 1
        if stop - start > 1:
            _order_run(bits, words, start, stop, spare)
        start = stop


@kernel
def _sort_short(short, width, words, spare, counts):
    """Stable radix sort of ``short`` with its indices, as words: key above, index below.

    Returns True if the sorted words lie in ``words``, False if in ``spare``.
    """
    n = short.size
    passes = max(1, (width + DIGIT - 1) // DIGIT)
    digit = (width + passes - 1) // passes
    size = 1 << digit
    mask = np.uint32(size - 1)
    counts[:passes, :size] = 0
    shift_1 = np.uint32(digit)
    shift_2 = np.uint32(2 * digit)
    if passes == 3:
        for i in range(n):
            u = short[i]
            counts[0, u & mask] += np.uint32(1)
            counts[1, (u >> shift_1) & mask] += np.uint32(1)
            counts[2, (u >> shift_2) & mask] += np.uint32(1)
    else:
        for i in range(n):
            u = short[i]
            counts[0, u & mask] += np.uint32(1)
            if passes == 2:
                counts[1, (u >> shift_1) & mask] += np.uint32(1)
    for p in range(passes):
        before = np.uint32(0)
        for q in range(size):
            here = counts[p, q]
            counts[p, q] = before
            before += here
    place_of = counts[0]
    for i in range(n):
        u = short[i]
        place = place_of[u & mask]
        place_of[u & mask] = place + np.uint32(1)
        words[place] = (np.uint64(u) << np.uint64(32)) | np.uint64(i)
    source = words
    target = spare
    for p in range(1, passes):
        place_of = counts[p]
        shift = np.uint64(32 + p * digit)
        wide = np.uint64(mask)
        for i in range(n):
            word = source[i]
            g = (word >> shift) & wide
            place = place_of[g]
            place_of[g] = place + np.uint32(1)
            target[place] = word
        source, target = target, source
    return passes % 2 == 1


@kernel
def _rank_row(bits, order, short, words, spare, counts):
    """Write the nearest ``order.size`` indices of one row of float bits, nearest first."""
    short = short[: bits.size]
    width, dropped = _shorten(bits, short)
    if _sort_short(short, width, words, spare, counts):
        found, other = words, spare
    else:
        found, other = spare, words
    if dropped > 0:
        _finish(bits, found, other)
    for r in range(order.size):
        order[r] = np.uint32(found[r])


@kernel
def rank(bits, order, short, words, spare, counts):
    """For each row of float bits (V, n), write the nearest ``order.shape[1]`` indices, nearest first."""
    for v in range(bits.shape[0]):
        _rank_row(bits[v], order[v], short, words, spare, counts)


@kernel
def nearest(bits, order, chosen, gathered, place, short, words, spare, counts):
    """For each row, write the nearest ``order.shape[1]`` indices, nearest first, without sorting the rest.

    Points nearer than a running threshold are set aside; when the buffer is full it is ranked, cut to what is
    wanted, and the threshold lowered. Later points have larger indices, so among equals they lose: one
    comparison refuses them, and the result is the one a full ranking gives.
    """
    n = bits.shape[1]
    wanted = order.shape[1]
    room = chosen.size
    for v in range(bits.shape[0]):
        row = bits[v]
        held = 0
        threshold = ~np.uint64(0)
        for i in range(n):
            u = _key(row, i)
            if u < threshold:
                if held == room:
                    held = _cut(row, wanted, held, chosen, gathered, place, short, words, spare, counts)
                    threshold = _key(row, chosen[held - 1])
                    if u >= threshold:
                        continue
                chosen[held] = np.uint32(i)
                held += 1
        _cut(row, wanted, held, chosen, gathered, place, short, words, spare, counts)
        for r in range(wanted):
            order[v, r] = chosen[r]


@kernel
def _cut(row, wanted, held, chosen, gathered, place, short, words, spare, counts):
    """Rank the candidates in chosen[:held] and keep the ``wanted`` nearest, nearest first."""
    for c in range(held):
        gathered[c] = row[chosen[c]]
    kept = min(wanted, held)
    _rank_row(gathered[:held], place[:kept], short, words, spare, counts)
    for r in range(kept):
        place[r] = chosen[place[r]]
    for r in range(kept):
        chosen[r] = place[r]
    return kept


@kernel
def mark_within(distances, threshold, inside):
    """inside[v, i] = 1 where the distance is at most the threshold, else 0."""
    for v in range(distances.shape[0]):
        near = distances[v]
        row = inside[v]
        for i in range(near.size):
            row[i] = np.uint8(1) if near[i] <= threshold else np.uint8(0)
