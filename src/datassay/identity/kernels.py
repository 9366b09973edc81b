"""Counting kernels: equal rows found once, then every set of attributes walked over the distinct rows.

Adding an attribute to a set splits its groups further. A row that is alone stays alone: its share of all the sets still
to come is known at once, and it is left out of the walk.
"""

import math

import numpy as np

from datassay._jit import kernel


@kernel
def pack(keys, codes, levels):
    """Append one attribute to mixed-radix keys."""
    for i in range(len(keys)):
        keys[i] = keys[i] * levels + codes[i]


@kernel
def mark_levels(codes, seen):
    """Mark the levels that occur; True if a code is negative, which stands for a missing value."""
    missing = False
    for i in range(len(codes)):
        if codes[i] < 0:
            missing = True
        else:
            seen[codes[i]] = True
    return missing


@kernel
def subtract(numbers, low, codes, seen):
    """Codes of whole numbers in a narrow range: their distance from the lowest."""
    for i in range(len(numbers)):
        codes[i] = numbers[i] - low
        seen[codes[i]] = True


@kernel
def count_by_address(keys, counts):
    """Count equal keys that are small enough to be addresses."""
    for i in range(len(keys)):
        counts[keys[i]] += 1


@kernel
def look_up(table, keys, out):
    """Take the entry of each key."""
    for i in range(len(keys)):
        out[i] = table[keys[i]]


@kernel
def spread(values, where, out):
    """Give every row what was found for the row it became when attributes were left out."""
    for r in range(len(where)):
        out[r] += values[where[r]]


@kernel
def _home(key, mask):
    """Where a key belongs in a table of 2^m places; all bits are mixed (as MurmurHash3 ends): keys may be regular."""
    x = np.uint64(key)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    x ^= x >> np.uint64(33)
    return np.int64(x & np.uint64(mask))


@kernel
def first_rows_by_hash(keys):
    """A number for each distinct key in order of appearance: (number of each row, first row of each number)."""
    n = len(keys)
    room = 1 << 12
    place = np.full(room, -1, np.int32)
    first = np.empty(room // 2, np.int64)
    number = np.empty(n, np.int32)
    count = 0
    for i in range(n):
        at = _home(keys[i], room - 1)
        while place[at] >= 0 and keys[first[place[at]]] != keys[i]:
            at = (at + 1) & (room - 1)
        if place[at] < 0:
            if 2 * (count + 1) > room:
                room *= 4
                place = np.full(room, -1, np.int32)
                more = np.empty(room // 2, np.int64)
                more[:count] = first[:count]
                first = more
                for g in range(count):
                    at = _home(keys[first[g]], room - 1)
                    while place[at] >= 0:
                        at = (at + 1) & (room - 1)
                    place[at] = g
                at = _home(keys[i], room - 1)
                while place[at] >= 0:
                    at = (at + 1) & (room - 1)
            place[at] = count
            first[count] = i
            count += 1
        number[i] = place[at]
    return number, first[:count].copy()


@kernel
def _split(codes, levels, rows, groups, n_rows, n_groups, place, keys, into):
    """Split groups of rows by one more attribute; ``into`` receives the new numbers, their count is returned.

    The table of new groups is addressed directly where it is small for the rows at hand, and hashed otherwise.
    """
    count = 0
    if n_groups * levels <= 4 * n_rows + 64:
        for p in range(n_groups * levels):
            place[p] = -1
        for i in range(n_rows):
            at = np.int64(groups[i]) * levels + codes[rows[i]]
            if place[at] < 0:
                place[at] = count
                count += 1
            into[i] = place[at]
        return count
    room = 64
    while room < 2 * n_rows:
        room *= 2
    for p in range(room):
        place[p] = -1
    for i in range(n_rows):
        key = np.int64(groups[i]) * levels + codes[rows[i]]
        at = _home(key, room - 1)
        while place[at] >= 0 and keys[place[at]] != key:
            at = (at + 1) & (room - 1)
        if place[at] < 0:
            place[at] = count
            keys[count] = key
            count += 1
        into[i] = place[at]
    return count


@kernel
def _places(n_rows):
    """Places that ``_split`` needs for this many rows: whichever table it takes."""
    room = 64
    while room < 2 * n_rows:
        room *= 2
    return max(room, 4 * n_rows + 64)


@kernel
def logarithms(n):
    """log₂ of 1 … n−1, looked up where groups are counted and not weighed; the first entry is not used."""
    table = np.zeros(n)
    for i in range(1, n):
        table[i] = math.log2(i)
    return table


@kernel
def _log2(size, table):
    whole = np.int64(size)
    return table[whole] if whole < len(table) and whole == size else math.log2(size)


@kernel
def _settle(
    u, s, left, source, n_rows, into, n_groups, weights, mass, top, logs, own, later, before,
    base, column, late, parent, here, alone, tally, rows, groups, origin, share,
):  # fmt: skip
    """Add up what a set of s attributes says of the rows, whose groups are ``into``; u is its place in the statistics.

    Rows that are not alone go on to ``rows`` and ``groups``, with their place among the parent's rows in ``origin`` and
    what their branch adds for the members of the set so far in ``share``; how many rows and groups is returned. Where a
    row is alone, or no attribute is ``left``, the whole branch is added up here (see ``walk``). A group without mass
    is of no interest and goes no further.
    """
    tally[:n_groups] = 0.0
    if len(mass) == 0:
        for i in range(n_rows):
            at = tally[into[i]]
            at[0] += weights[source[i]]
            at[1] += 1
    else:
        for i in range(n_rows):
            at = tally[into[i]]
            at[0] += weights[source[i]]
            at[1] += 1
            at[2] += mass[source[i]]
    kept = 0
    for g in range(n_groups):
        size = tally[g, 0]
        value = top - _log2(size, logs)
        statistics = alone[u] if tally[g, 1] == 1 else here[u]
        statistics[0] += (size if len(mass) == 0 else tally[g, 2]) * value
        statistics[1] += 1
        if size <= 1.0:
            statistics[2] += size
        statistics[3] = min(statistics[3], size)
        tally[g, 0] = value
        if tally[g, 1] > 1 and (len(mass) == 0 or tally[g, 2] > 0.0):
            tally[g, 1] = kept
            kept += 1
        else:
            tally[g, 1] = -1
    stay = 0
    wanted = len(base)
    for i in range(n_rows):
        at, r = tally[into[i]], source[i]
        v = at[0]
        if left > 0 and at[1] >= 0:
            rows[stay] = r
            groups[stay] = np.int32(at[1])
            if r < wanted:
                base[r] += v * before[s, 0]
                share[stay] = v * own[s, 0]
                origin[stay] = i
            stay += 1
        elif r < wanted:
            branch = left if at[1] < 0 else 0
            base[r] += v * before[s, branch]
            mine = v * own[s, branch]
            column[r] += mine
            parent[i] += mine
            if branch > 0:
                late[r] += v * later[s, branch]
    return stay, kept


@kernel
def walk(codes, levels, weights, mass, logs, n_fixed, own, later, before, phi, base, here, alone):
    """Visit every set of attributes that has the first ``n_fixed`` among its members (Mathematics §8).

    For each distinct row r and set u of s attributes, with val = log₂(W / N_r(u)), add val · own[s, 0] to ``phi[j, r]``
    for j in u, and val · before[s, 0] to ``base[r]``; then φ_j = phi_j − base. ``here[u]``, by the bits of u's members
    after the first, says of u: the sum of val by ``mass`` (by ``weights``, if that is empty); the number of groups; the
    weight of groups of size at most 1; the smallest size.

    A row that is alone has the same val in all sets of its branch: with R attributes to come, own[s, R], later[s, R]
    and before[s, R] are the sums over the branch for the members of u, the attributes to come, and base. What it adds
    to the statistics of the whole branch is put down once, in ``alone[u]``.

    What a branch adds for the members it has in common is summed up on the way back and added to ``phi`` once, where
    the last of them was decided on. As many rows as ``base`` has, the first ones, are wanted in ``phi``; none asks for
    the statistics alone. If ``mass`` is given, groups that have none are not walked further, and the other statistics
    are those of groups that have some; all wanted rows must have it.
    """
    d, n = codes.shape
    wanted = len(base)
    top = math.log2(weights.sum())
    place, keys, into = np.empty(_places(n), np.int32), np.empty(n, np.int64), np.zeros(n, np.int32)
    tally = np.empty((n, 4))
    depth = d - n_fixed + 1
    rows, groups = np.empty((depth, n), np.int32), np.empty((depth, n), np.int32)
    origin, share = np.empty((depth, wanted), np.int32), np.empty((depth, wanted))
    n_rows, n_groups, upcoming = np.empty(depth, np.int64), np.empty(depth, np.int64), np.empty(depth, np.int64)
    late = np.zeros((d + 1, wanted))  # late[j]: for each attribute from j on
    fixed, unused = np.zeros(wanted), np.zeros(wanted)
    path = np.empty(depth, np.int64)
    u, count = 0, 1
    everyone, start = np.arange(n).astype(np.int32), np.zeros(n, np.int32)
    for j in range(n_fixed):
        count = _split(codes[j], levels[j], everyone, start, n, count, place, keys, into)
        start[:] = into
    n_rows[0], n_groups[0] = _settle(
        u, n_fixed, d - n_fixed, everyone, n, into, count, weights, mass, top, logs, own, later, before,
        base, unused, late[n_fixed], fixed, here, alone, tally, rows[0], groups[0], origin[0], share[0],
    )  # fmt: skip
    upcoming[0] = n_fixed
    level = 0
    while level >= 0:
        j = upcoming[level]
        if j == d or n_rows[level] == 0:  # the branch is done: hand on what it adds
            last = path[level] if level > 0 else 0
            if wanted > 0:
                column = phi[last] if level > 0 else fixed
                parent = share[level - 1] if level > 0 else unused
                for i in range(n_rows[level]):
                    if rows[level, i] >= wanted:  # rows are in order: so are those that follow
                        break
                    column[rows[level, i]] += share[level, i]
                    parent[origin[level, i]] += share[level, i]
            if level > 0:
                u ^= 1 << (last - n_fixed)
            level -= 1
            continue
        upcoming[level] = j + 1
        count = _split(
            codes[j], levels[j], rows[level], groups[level], n_rows[level], n_groups[level], place, keys, into
        )
        u |= 1 << (j - n_fixed)
        level += 1
        path[level] = j
        upcoming[level] = j + 1
        n_rows[level], n_groups[level] = _settle(
            u, n_fixed + level, d - 1 - j, rows[level - 1], n_rows[level - 1], into, count, weights, mass, top, logs,
            own, later, before, base, phi[j], late[j + 1], share[level - 1], here, alone, tally, rows[level],
            groups[level], origin[level], share[level],
        )  # fmt: skip
    if wanted > 0:
        for j in range(d):
            for r in range(wanted):
                if j > 0:
                    late[j, r] += late[j - 1, r]
                phi[j, r] += late[j, r]
                if j < n_fixed:
                    phi[j, r] += fixed[r]


@kernel
def reveal(codes, levels, weights, logs, orders, phi):
    """Reveal the attributes in each of these orders: ``phi[r, j]`` gains what j adds for row r when its turn comes.

    As many rows as ``phi`` has, the first ones, are wanted; groups of others are not looked at further.
    """
    n, wanted = codes.shape[1], len(phi)
    place, keys = np.empty(_places(n), np.int32), np.empty(n, np.int64)
    into, members = np.empty(n, np.int32), np.empty(n, np.int32)
    rows, groups = np.empty(n, np.int32), np.empty(n, np.int32)
    size, value, theirs = np.empty(n), np.empty(wanted), np.empty(n, np.bool_)
    total = weights.sum()
    for o in range(len(orders)):
        value[:] = math.log2(total)
        for r in range(n):
            rows[r] = r
            groups[r] = 0
        n_rows, n_groups = n, 1
        for j in orders[o]:
            if n_rows == 0:
                break
            count = _split(codes[j], levels[j], rows, groups, n_rows, n_groups, place, keys, into)
            size[:count] = 0.0
            members[:count] = 0
            for i in range(n_rows):
                size[into[i]] += weights[rows[i]]
                members[into[i]] += 1
            theirs[:count] = False
            for i in range(n_rows):
                if rows[i] >= wanted:  # rows are in order: those that are wanted come first
                    break
                theirs[into[i]] = True
            n_groups = 0
            for g in range(count):
                size[g] = _log2(size[g], logs)
                if members[g] > 1 and theirs[g]:
                    members[g] = n_groups + 2
                    n_groups += 1
                else:
                    members[g] = 1
            stay = 0
            for i in range(n_rows):
                g, r = into[i], rows[i]
                if r < wanted:
                    phi[r, j] += value[r] - size[g]
                    value[r] = size[g]
                if members[g] > 1:
                    rows[stay] = r
                    groups[stay] = members[g] - 2
                    stay += 1
            n_rows = stay


@kernel
def refine(codes, levels, rows, groups, n_groups):
    """Split groups of rows by one more attribute, in place, leaving out who is alone: how many rows and groups stay."""
    n = len(rows)
    place, keys, into = np.empty(_places(n), np.int32), np.empty(n, np.int64), np.empty(n, np.int32)
    count = _split(codes, levels, rows, groups, n, n_groups, place, keys, into)
    number = np.zeros(count, np.int32)
    for i in range(n):
        number[into[i]] += 1
    kept, stay = 0, 0
    for g in range(count):
        if number[g] > 1:
            number[g] = kept
            kept += 1
        else:
            number[g] = -1
    for i in range(n):
        g = number[into[i]]
        if g >= 0:
            rows[stay] = rows[i]
            groups[stay] = g
            stay += 1
    return stay, kept
