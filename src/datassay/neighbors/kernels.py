"""Distances and rankings, compiled.

Distances: training points lie in tiles of ``TILE``, feature by feature, so that one instruction serves many
points and every pair is summed over features in the same order: exact duplicates get equal distances, and the
bits do not depend on tiling, threads or machine. (A BLAS product would be half again as fast, and promises neither.)

Ranking: a distance's bits, read as an integer, sort like the distance. The key, shortened to 32 bits or fewer, is
packed with the index into one word and sorted by a stable radix sort; what the shortening made equal is put in
order afterwards. Ties go to the smaller index (Mathematics §0).
"""

import numpy as np

from datassay._jit import kernel

EUCLIDEAN, MANHATTAN, COSINE = 0, 1, 2
TILE = 256  # training points side by side: wide enough for the vector units, small enough for the cache
DIGIT = 11  # bits a radix pass, at most: 2,048 counters stay in the first-level cache


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
    −Σ_j x_ij q_vj kept within [−1, 1] and never −0. Four features and two queries a sweep keep
    the arithmetic, and not the loads and stores, the thing to wait for.
    """
    n_tiles, d, width = tiles.shape
    m, n = out.shape
    sums = np.empty((m + 1, width), tiles.dtype)  # a spare row, for the last of an odd number of queries
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
            for v in range(0, m, 2):
                w = min(v + 1, m - 1)
                row = sums[v]
                next_row = sums[v + 1]
                p0, p1, p2, p3 = queries[v, j], queries[v, j + 1], queries[v, j + 2], queries[v, j + 3]
                q0, q1, q2, q3 = queries[w, j], queries[w, j + 1], queries[w, j + 2], queries[w, j + 3]
                if metric == EUCLIDEAN:
                    for i in range(width):
                        d0, d1, d2, d3 = x0[i] - p0, x1[i] - p1, x2[i] - p2, x3[i] - p3
                        e0, e1, e2, e3 = x0[i] - q0, x1[i] - q1, x2[i] - q2, x3[i] - q3
                        row[i] = (((row[i] + d0 * d0) + d1 * d1) + d2 * d2) + d3 * d3
                        next_row[i] = (((next_row[i] + e0 * e0) + e1 * e1) + e2 * e2) + e3 * e3
                elif metric == MANHATTAN:
                    for i in range(width):
                        d0, d1, d2, d3 = abs(x0[i] - p0), abs(x1[i] - p1), abs(x2[i] - p2), abs(x3[i] - p3)
                        e0, e1, e2, e3 = abs(x0[i] - q0), abs(x1[i] - q1), abs(x2[i] - q2), abs(x3[i] - q3)
                        row[i] = (((row[i] + d0) + d1) + d2) + d3
                        next_row[i] = (((next_row[i] + e0) + e1) + e2) + e3
                else:
                    for i in range(width):
                        y0, y1, y2, y3 = x0[i], x1[i], x2[i], x3[i]
                        row[i] = (((row[i] + y0 * p0) + y1 * p1) + y2 * p2) + y3 * p3
                        next_row[i] = (((next_row[i] + y0 * q0) + y1 * q1) + y2 * q2) + y3 * q3
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
def _between(metric, tiles, query, i):
    """What ranks training point i as seen from a query, with the bits of ``distances``."""
    points = tiles[i // tiles.shape[2]]
    at = i % tiles.shape[2]
    s = tiles.dtype.type(0)
    for j in range(query.size):
        if metric == EUCLIDEAN:
            e = points[j, at] - query[j]
            s += e * e
        elif metric == MANHATTAN:
            s += abs(points[j, at] - query[j])
        else:
            s += points[j, at] * query[j]
    one = tiles.dtype.type(1)
    return min(max(tiles.dtype.type(0) - s, -one), one) if metric == COSINE else s


@kernel
def count_before_self(metric, tiles, queries, rows, order, found):
    """How many of the others come before the record itself: nearer, or as near and of smaller index."""
    for a in range(rows.size):
        i = rows[a]
        own = _between(metric, tiles, queries[i], i)
        r = 0
        while r < order.shape[1]:
            j = np.int64(order[a, r])
            far = _between(metric, tiles, queries[i], j)
            if far > own or (far == own and j > i):
                break
            r += 1
        found[a] = r


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
def _key(u, half):
    """An integer that sorts like the float whose bits ``u`` are; ``half`` has all its bits but the sign's."""
    wide = np.int64(u)
    return wide ^ ((wide >> 63) & half)


@kernel
def _width(u):
    """Bits it takes to write ``u``."""
    width = 0
    while u > 0:
        width += 1
        u >>= np.uint64(1)
    return width


@kernel
def _order_run(bits, half, words, start, stop, spare):
    """Stable sort of words[start:stop], alike in their short keys, by their whole keys."""
    low = np.uint64(0xFFFFFFFF)
    before = _key(bits[words[start] & low], half)
    in_order = True
    for i in range(start + 1, stop):
        key = _key(bits[words[i] & low], half)
        in_order = in_order and before <= key
        before = key
    if in_order:  # as runs of equal distances always are
        return
    if stop - start <= 16:
        for i in range(start + 1, stop):
            word = words[i]
            key = _key(bits[word & low], half)
            j = i
            while j > start and _key(bits[words[j - 1] & low], half) > key:
                words[j] = words[j - 1]
                j -= 1
            words[j] = word
        return
    step = 1
    while step < stop - start:  # bottom-up merge sort: a crowded run costs n log n, never n²
        for first in range(start, stop, 2 * step):
            middle = min(first + step, stop)
            last = min(first + 2 * step, stop)
            left = first
            right = middle
            for at in range(first, last):
                if right >= last:
                    take_left = True
                elif left >= middle:
                    take_left = False
                else:
                    take_left = _key(bits[words[left] & low], half) <= _key(bits[words[right] & low], half)
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
def _rank_row(bits, half, order, short, words, spare, counts):
    """Write the nearest ``order.size`` indices of one row of float bits, nearest first.

    A stable radix sort of words: the key, shortened to fit, above the index. Keys count from the smallest one;
    if that is the key of zero (duplicates), from the smallest one after it, or the exponents between zero and the
    first real distance would use up the bits. Only float64 keys ever lose bits, and are put in order afterwards.
    """
    n = bits.size
    if n <= 64:  # too few to repay the clearing of the counters
        for i in range(n):
            key = _key(bits[i], half)
            j = i
            while j > 0 and _key(bits[words[j - 1]], half) > key:
                words[j] = words[j - 1]
                j -= 1
            words[j] = np.uint64(i)
        for r in range(order.size):
            order[r] = np.uint32(words[r])
        return
    nothing = np.int64(0x7FFFFFFFFFFFFFFF)
    lowest, highest, positive = nothing, -nothing - 1, nothing
    for i in range(n):
        key = _key(bits[i], half)
        lowest = min(lowest, key)
        highest = max(highest, key)
        positive = min(positive, key if key > 0 else nothing)
    base = positive if lowest == 0 and positive < nothing else lowest
    offset = np.uint64(1) if base > lowest else np.uint64(0)
    spread = np.uint64(highest) - np.uint64(base)
    keep = 32 if bits.itemsize == 4 else 30  # three passes of 10 bits touch half as many places as of 11
    dropped = np.uint64(max(0, _width(spread) - keep + np.int64(offset)))
    width = _width((spread >> dropped) + offset)
    passes = max(1, (width + DIGIT - 1) // DIGIT)
    digit = (width + passes - 1) // passes
    size = 1 << digit
    mask = np.uint32(size - 1)
    counts[:passes, :size] = 0
    for i in range(n):
        key = _key(bits[i], half)
        u = np.uint32(0)
        if key >= base:
            u = np.uint32(((np.uint64(key) - np.uint64(base)) >> dropped) + offset)
        short[i] = u
    if passes == 3:
        middle, top = np.uint32(digit), np.uint32(2 * digit)
        for i in range(n):
            u = short[i]
            counts[0, u & mask] += np.uint32(1)
            counts[1, (u >> middle) & mask] += np.uint32(1)
            counts[2, (u >> top) & mask] += np.uint32(1)
    else:
        for i in range(n):
            for p in range(passes):
                counts[p, (short[i] >> np.uint32(p * digit)) & mask] += np.uint32(1)
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
    for p in range(1, passes):
        place_of = counts[p]
        shift = np.uint64(32 + p * digit)
        for i in range(n):
            word = words[i]
            g = (word >> shift) & np.uint64(mask)
            place = place_of[g]
            place_of[g] = place + np.uint32(1)
            spare[place] = word
        words, spare = spare, words
    if dropped > 0:
        start = 0
        for stop in range(1, n + 1):
            if stop == n or words[stop] >> np.uint64(32) != words[start] >> np.uint64(32):
                if stop - start > 1:
                    _order_run(bits, half, words, start, stop, spare)
                start = stop
    for r in range(order.size):
        order[r] = np.uint32(words[r])


@kernel
def rank(bits, half, order, short, words, spare, counts):
    """For each row of float bits (V, n), write the nearest ``order.shape[1]`` indices, nearest first."""
    for v in range(bits.shape[0]):
        _rank_row(bits[v], half, order[v], short, words, spare, counts)


@kernel
def nearest(bits, half, order, chosen, gathered, place, short, words, spare, counts):
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
        threshold = np.int64(0x7FFFFFFFFFFFFFFF)
        for i in range(n):
            key = _key(row[i], half)
            if key < threshold:
                if held == room:
                    held = _cut(row, half, wanted, held, chosen, gathered, place, short, words, spare, counts)
                    threshold = _key(row[chosen[held - 1]], half)
                    if key >= threshold:
                        continue
                chosen[held] = np.uint32(i)
                held += 1
        _cut(row, half, wanted, held, chosen, gathered, place, short, words, spare, counts)
        for r in range(wanted):
            order[v, r] = chosen[r]


@kernel
def _cut(row, half, wanted, held, chosen, gathered, place, short, words, spare, counts):
    """Rank the candidates in chosen[:held] and keep the ``wanted`` nearest, nearest first."""
    for c in range(held):
        gathered[c] = row[chosen[c]]
    kept = min(wanted, held)
    _rank_row(gathered[:held], half, place[:kept], short, words, spare, counts)
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


@kernel
def offer(distances, first, wanted, half, kept, kept_bits, who, held, farthest, place, short, words, spare, counts):
    """Offer each row the training points first, first + 1, … at these distances; it keeps its ``wanted`` nearest.

    As in ``nearest``, with the buffer kept from one block of training points to the next: ``kept[v, :held[v]]`` (whose
    bits ``kept_bits`` are) are the distances set aside so far and ``who`` the points, in the order of their index but
    for those that were cut already. Later points have larger indices, so among equals they lose.
    """
    n = distances.shape[1]
    room = kept.shape[1]
    for v in range(distances.shape[0]):
        row = distances[v]
        limit = farthest[v]
        count = held[v]
        for start in range(0, n, 64):
            stop = min(start + 64, n)
            near = 0
            for i in range(start, stop):  # without a branch: nearly always nobody is near enough
                near += np.int32(row[i] < limit)
            if near == 0:
                continue
            for i in range(start, stop):
                if row[i] < limit:
                    if count == room:
                        keep_nearest(v, wanted, half, kept, kept_bits, who, held, place, short, words, spare, counts)
                        count = wanted
                        limit = kept[v, wanted - 1]
                        if row[i] >= limit:
                            continue
                    kept[v, count] = row[i]
                    who[v, count] = np.uint32(first + i)
                    count += 1
                    held[v] = count
        farthest[v] = limit


@kernel
def keep_nearest(v, wanted, half, kept, kept_bits, who, held, place, short, words, spare, counts):
    """Rank what row v has set aside and keep the ``wanted`` nearest, nearest first; ties stay in their order."""
    count = held[v]
    stay = min(wanted, count)
    _rank_row(kept_bits[v, :count], half, place[:stay], short, words, spare, counts)
    for r in range(stay):  # the words are done with, and a place to put both in their new order
        words[r] = np.uint64(who[v, place[r]])
        spare[r] = np.uint64(kept_bits[v, place[r]])
    for r in range(stay):
        who[v, r] = np.uint32(words[r])
        kept_bits[v, r] = np.int64(spare[r])
    held[v] = stay


@kernel
def finish_nearest(wanted, half, kept, kept_bits, who, held, order, place, short, words, spare, counts):
    """The ``wanted`` nearest of each row, nearest first."""
    for v in range(order.shape[0]):
        keep_nearest(v, wanted, half, kept, kept_bits, who, held, place, short, words, spare, counts)
        for r in range(wanted):
            order[v, r] = who[v, r]


@kernel
def mark_bits(distances, threshold, marks):
    """Bit s of marks[b, i] is 1 where training point i is within the threshold of validation point 8b + s."""
    for b in range(marks.shape[0]):
        row = marks[b]
        row[:] = 0
        for v in range(8 * b, min(8 * b + 8, distances.shape[0])):
            near = distances[v]
            bit = np.uint8(1 << (v - 8 * b))
            for i in range(near.size):
                row[i] |= bit if near[i] <= threshold else np.uint8(0)
