"""The cheapest cover, compiled: an exact search of the core (Pisinger, A Minimal Algorithm for the 0-1 Knapsack, 1997).

A cheapest cover leaves out the records that save the most within what may be left out: a knapsack. Records are sorted
by what leaving them out saves for a unit of value, and the relaxation leaves out the first ``b``. Undominated states
grow from there, by one record on either side at a time; a state whose bound cannot beat the best is dropped. When none
is left, the best is optimal.

What a state gives up is kept in two doubles, to some thirty digits, so that rounding cannot hide whether a cover meets
the target.
"""

import numpy as np

from datassay._jit import kernel


@kernel
def _plus(high, low, x):
    """(high, low) + x, to twice the digits of one double."""
    s = high + x
    part = s - high
    rest = (high - (s - part)) + (x - part) + low
    total = s + rest
    return total, rest - (total - s)


@kernel
def _grow(saved, given, rest, node, size, by_saved, by_given, item, parents, items, nodes, to):
    """States with and without one more change, merged by what they give up; only undominated ones.

    Returns how many states there are, and how many nodes.
    """
    new_saved, new_given, new_rest, new_node = to
    i = 0
    j = 0
    out = 0
    while i < size or j < size:
        if j < size:
            high, low = _plus(given[j], rest[j], by_given)
        if j >= size or (i < size and (given[i] < high or (given[i] == high and rest[i] <= low))):
            s, g, r, at, fresh = saved[i], given[i], rest[i], node[i], False
            i += 1
        else:
            s, g, r, at, fresh = saved[j] + by_saved, high, low, node[j], True
            j += 1
        if out > 0 and s <= new_saved[out - 1]:
            continue
        if out > 0 and g == new_given[out - 1] and r == new_rest[out - 1]:
            out -= 1
        if fresh:
            parents[nodes] = at
            items[nodes] = item
            at = nodes
            nodes += 1
        new_saved[out], new_given[out], new_rest[out], new_node[out] = s, g, r, at
        out += 1
    return out, nodes


@kernel
def _last_within(given, rest, size, room, room_rest):
    """The last state that gives up no more than ``room``; −1 if none does."""
    low = -1
    high = size
    while high - low > 1:
        middle = (low + high) // 2
        if given[middle] < room or (given[middle] == room and rest[middle] <= room_rest):
            low = middle
        else:
            high = middle
    return low


@kernel
def search_core(price, worth, b, room, room_rest, known, slack, cap, max_nodes, flips):
    """Change which records are left out until nothing better can exist, or there are more than ``cap`` states.

    ``price`` and ``worth`` are sorted by price/worth, the highest first; the first ``b`` are left out to begin with,
    which leaves ``room``. A solution that saves ``known`` more is known already; one within ``slack`` of the bound is
    good enough. Sets ``flips`` where the result differs from the start; returns whether it is better than what is
    known, and whether it is proven optimal.
    """
    n = price.shape[0]
    saved, given, rest, node = np.zeros(cap + 1), np.zeros(cap + 1), np.zeros(cap + 1), np.zeros(cap + 1, np.int64)
    to = saved.copy(), given.copy(), rest.copy(), node.copy()
    next_saved, next_given, next_rest, next_node = to
    parents, items = np.empty(max_nodes, np.int32), np.empty(max_nodes, np.int32)
    nodes = 1
    size = 1
    best = known
    best_node = -1
    bound = room * (price[b] / worth[b]) if b < n else 0.0
    s = b - 1
    t = b
    if known < 0 <= room:
        best, best_node = 0.0, 0
    other = -1  # of a second set of states, combined with the first at the end
    other_best = 0
    proven = False
    while True:
        if size == 0 or (s < 0 and t >= n) or bound - best <= slack:
            proven = True
            break
        if 2 * size > cap or nodes + 2 * size > max_nodes:
            break
        adding = t < n and (s < 0 or t - b <= b - 1 - s)
        item = t if adding else s
        sign = 1.0 if adding else -1.0
        size, nodes = _grow(
            saved, given, rest, node, size, sign * price[item], sign * worth[item], item, parents, items, nodes, to
        )
        if adding:
            t += 1
        else:
            s -= 1
        at = _last_within(next_given, next_rest, size, room, room_rest)
        if at >= 0 and next_saved[at] > best:
            best = next_saved[at]
            best_node = next_node[at]
        after = price[t] / worth[t] if t < n else 0.0
        kept = 0
        for i in range(size):
            left = (room - next_given[i]) + (room_rest - next_rest[i])
            if left >= 0:
                reach = next_saved[i] + left * after
            elif s >= 0:
                reach = next_saved[i] + left * (price[s] / worth[s])
            else:
                reach = -np.inf
            if reach > best + 0.5 * slack:
                saved[kept], given[kept] = next_saved[i], next_given[i]
                rest[kept], node[kept] = next_rest[i], next_node[i]
                kept += 1
        size = kept
    if not proven and size > 0:
        # Too many states: combine them with all subsets of the records that come next, best pair by best pair.
        some = 0
        chosen = np.empty(16, np.int64)
        while some < 16 and (s >= 0 or t < n):
            if t < n and (some % 2 == 0 or s < 0):
                chosen[some] = t
                t += 1
            else:
                chosen[some] = s
                s -= 1
            some += 1
        count = 1 << some
        sums = np.zeros((count, 3))
        for mask in range(1, count):
            first = 0
            while not (mask >> first) & 1:
                first += 1
            item = chosen[first]
            one = mask & (mask - 1)  # all but the first
            sign = 1.0 if item >= b else -1.0
            sums[mask, 0] = sums[one, 0] + sign * price[item]
            sums[mask, 1], sums[mask, 2] = _plus(sums[one, 1], sums[one, 2], sign * worth[item])
        order = np.argsort(sums[:, 1])
        i = size - 1
        for at in range(count):
            mask = order[at]
            while i >= 0:
                high, low = _plus(given[i], rest[i] + sums[mask, 2], sums[mask, 1])
                if high < room or (high == room and low <= room_rest):
                    break
                i -= 1
            if i < 0:
                break
            if saved[i] + sums[mask, 0] > best:
                best = saved[i] + sums[mask, 0]
                other, other_best = mask, node[i]
        proven = bound - best <= slack
        if other >= 0:
            best_node = other_best
            for bit in range(some):
                if (other >> bit) & 1:
                    flips[chosen[bit]] = True
    better = best_node >= 0
    while best_node > 0:
        flips[items[best_node]] = True
        best_node = parents[best_node]
    return better, proven
