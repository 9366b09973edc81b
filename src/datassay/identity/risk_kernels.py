"""Singling-out attacks on one person after another: distances grow by one attribute at a time (Mathematics §8).

A person is a point, the release a matrix (attributes × distinct records) with a count for each record. Scenarios are
sets of attributes, as bit masks, in runs: from one to the next only the attributes that change are added or taken away,
and each run starts anew, so that rounding does not add up.
"""

import math

import numpy as np

from datassay._jit import kernel

TIE = 1e-12  # distances closer than this are equal: sums in another order differ by rounding
BLOCK = 1024  # records that are looked at one block after another, so that their numbers stay in the cache


@kernel
def contributions(person, points, categorical, out):
    """What each attribute adds to the distance from each point: |o − t|, at most 1, or 0/1 (attributes × points)."""
    for a in range(len(person)):
        o = person[a]
        if categorical[a]:
            for t in range(points.shape[1]):
                out[a, t] = 0.0 if points[a, t] == o else 1.0
        else:
            for t in range(points.shape[1]):
                out[a, t] = min(1.0, abs(points[a, t] - o))


@kernel
def neighbourhoods(people, own, points, categorical, k, mean, deviation):
    """Mean and deviation of the distances of each person to the k nearest points, over all attributes.

    ``own`` is the point that is the person, which does not count; −1 if none is.
    """
    d, n = points.shape
    distance = np.empty(n)
    for i in range(len(own)):
        distance[:] = 0.0
        for a in range(d):
            o = people[a, i]
            if categorical[a]:
                for t in range(n):
                    distance[t] += 0.0 if points[a, t] == o else 1.0
            else:
                for t in range(n):
                    distance[t] += min(1.0, abs(points[a, t] - o))
        if own[i] >= 0:
            distance[own[i]] = np.inf
        _moments(distance, k, mean, deviation, i)


@kernel
def _moments(distance, k, mean, deviation, i):
    nearest = np.sort(np.partition(distance, k - 1)[:k])
    total = 0.0
    for t in range(k):
        total += nearest[t]
    centre = total / k
    spread = 0.0
    for t in range(k):
        spread += (nearest[t] - centre) ** 2
    mean[i] = centre
    deviation[i] = math.sqrt(spread / k)


@kernel
def _linkable(distance, mean, deviation):
    """L(t) = 1 − 2Φ((d − μ)/s) for d ≤ μ, else 0; 0 if μ is 0 (Mathematics §8, Erratum 9)."""
    if distance > mean or mean == 0.0:
        return 0.0
    if deviation <= TIE:
        return 1.0 if distance < mean - TIE else 0.0
    return math.erf((mean - distance) / (deviation * math.sqrt(2.0)))


@kernel
def _move(distance, part, sign):
    """Add an attribute to the distances, or take it away (``sign`` −1); the least of them is returned."""
    for t in range(len(distance)):
        distance[t] += sign * part[t]
    a = b = c = d = np.inf  # minima side by side: one after another would wait for each other
    whole = len(distance) // 4 * 4
    for t in range(0, whole, 4):
        a = distance[t] if distance[t] < a else a
        b = distance[t + 1] if distance[t + 1] < b else b
        c = distance[t + 2] if distance[t + 2] < c else c
        d = distance[t + 3] if distance[t + 3] < d else d
    for t in range(whole, len(distance)):
        a = min(a, distance[t])
    return min(min(a, b), min(c, d))


@kernel
def _single_out(parts, full_gain, link, counts, zeta, alike, masks, hint, best, sums):
    """Of the records at minimal distance, for each scenario of a run: their number, and sums of L(t) and of E(t).

    E(t) is the reconstruction error weighted by ζ. Blocks of records are looked at one after another, those at the
    least distance so far are added up, and the sums begin anew where a nearer one is found. ``hint`` is a record that
    may be near. False if distances that differ by rounding alone were found in between: then ``best`` is final, and
    the sums are right if it is called again with ``hint`` −1.
    """
    distance, known = np.empty(BLOCK), np.empty(BLOCK)
    n, sure, before = parts.shape[1], True, 0
    if hint >= 0:
        gap = 0.0
        for s in range(len(masks)):
            for a in range(len(parts)):
                now = (masks[s] >> a) & 1
                if now != (before >> a) & 1:
                    gap += (1.0 if now else -1.0) * parts[a, hint]
            before = masks[s]
            best[s] = gap
    sums[:] = 0.0
    for first in range(0, n, BLOCK):
        here = distance[: min(BLOCK, n - first)]
        here[:] = 0.0
        known[:] = 0.0
        before, least = 0, 0.0
        for s in range(len(masks)):
            for a in range(len(parts)):
                now = (masks[s] >> a) & 1
                if now != (before >> a) & 1:
                    sign, part = 1.0 if now else -1.0, parts[a][first : first + BLOCK]
                    least = _move(here, part, sign)
                    if not alike:
                        for t in range(len(here)):
                            known[t] += sign * zeta[a] * part[t]
            before = masks[s]
            if least > best[s] + TIE:
                continue
            if least < best[s]:
                if sums[s, 0] > 0.0:
                    sure = sure and best[s] - least > TIE
                    sums[s] = 0.0
                best[s] = least
            for t in range(len(here)):
                if here[t] <= best[s] + TIE:
                    count = counts[first + t]
                    sums[s, 0] += count
                    sums[s, 1] += count * link[first + t]
                    sums[s, 2] += count * (full_gain[first + t] - (here[t] if alike else known[t]))
    return sure


@kernel
def _score(found, near, total, unknown, everything, epsilon1, epsilon2, out):
    """Score a scenario: linkability, information gain and score of the records singled out; then guessing.

    ``found`` are their number and their sums of L(t) and E(t); ``unknown`` and ``everything`` are Σζ of the attributes
    to reconstruct and of all. Who picks one of ``total`` records at random scores the mean of L(t) · max(I(t), ε₂), to
    which only linkable ones add: ``near`` are their numbers times L(t), their errors if nothing is known, and how much
    less they are.
    """
    linked = found[1] / found[0]
    gain, gamma = 0.0, 0.0
    if unknown > 0.0:
        gamma = math.log(1.0 + epsilon1 * unknown / everything) / math.log(1.0 + epsilon1)
        gain = gamma * min(1.0, max(0.0, 1.0 - found[2] / found[0] / unknown))
    guess = 0.0
    for t in range(near.shape[1]):
        learned = 0.0
        if unknown > 0.0:
            learned = gamma * min(1.0, max(0.0, 1.0 - (near[1, t] - near[2, t]) / unknown))
        guess += near[0, t] * max(learned, epsilon2)
    out[0] = linked
    out[1] = gain
    out[2] = linked * max(gain, epsilon2)
    out[3] = guess / total


@kernel
def _near(linkable, counts, link, full_gain):
    """The scores of the linkable records (see ``_score``), nothing being known."""
    found = np.zeros((3, len(linkable)))
    for i in range(len(linkable)):
        t = linkable[i]
        found[0, i] = counts[t] * link[t]
        found[1, i] = full_gain[t]
    return found


@kernel
def _prepare(person, released, categorical, zeta, mean, deviation, parts, full, full_gain, link):
    """The person's contributions, whole distances, weighted whole distances, and linkability of every record."""
    contributions(person, released, categorical, parts)
    full[:] = 0.0
    full_gain[:] = 0.0
    for a in range(len(person)):
        for t in range(released.shape[1]):
            full[t] += parts[a, t]
            full_gain[t] += zeta[a] * parts[a, t]
    for t in range(released.shape[1]):
        link[t] = _linkable(full[t], mean, deviation)


@kernel
def attack(
    people, released, counts, categorical, zeta, mean, deviation, masks, unknown, length, epsilon1, epsilon2, out
):
    """Attack each person with all scenarios, in runs of this length: out[person, scenario, 4].

    ``masks``: a row for each person, or one for all; ``unknown``: Σζ of the attributes that are not known.
    """
    d, m = released.shape
    parts, full, full_gain, link = np.empty((d, m)), np.empty(m), np.empty(m), np.empty(m)
    best, sums = np.empty(length), np.empty((length, 3))
    everything, total = zeta.sum(), counts.sum()
    alike = (zeta == 1.0).all()  # the weighted error is then the distance itself
    for i in range(people.shape[1]):
        _prepare(people[:, i], released, categorical, zeta, mean[i], deviation[i], parts, full, full_gain, link)
        linkable = np.flatnonzero(link)
        near, near_parts = _near(linkable, counts, link, full_gain), parts[:, linkable]
        own, nearest = min(i, len(masks) - 1), full.argmin()
        for start in range(0, masks.shape[1], length):
            run = masks[own, start : start + length]
            if not _single_out(parts, full_gain, link, counts, zeta, alike, run, nearest, best, sums):
                _single_out(parts, full_gain, link, counts, zeta, alike, run, -1, best, sums)
            near[2] = 0.0
            before = 0
            for s in range(len(run)):
                for a in range(d):
                    now = (run[s] >> a) & 1
                    if now != (before >> a) & 1:
                        weight = zeta[a] if now else -zeta[a]
                        for t in range(len(linkable)):
                            near[2, t] += weight * near_parts[a, t]
                before = run[s]
                at = start + s
                _score(sums[s], near, total, unknown[own, at], everything, epsilon1, epsilon2, out[i, at])


@kernel
def score_chosen(people, chosen, counts, categorical, zeta, mean, deviation, known, epsilon1, epsilon2, out):
    """Score the same chosen records against each person, whose attributes ``known`` were known: out[person, 4]."""
    d, m = chosen.shape
    parts, full, full_gain, link = np.empty((d, m)), np.empty(m), np.empty(m), np.empty(m)
    everything, unknown, total = zeta.sum(), 0.0, counts.sum()
    for a in range(d):
        if not known[a]:
            unknown += zeta[a]
    for i in range(people.shape[1]):
        _prepare(people[:, i], chosen, categorical, zeta, mean[i], deviation[i], parts, full, full_gain, link)
        known_gain, found = np.zeros(m), np.zeros(3)
        for a in range(d):
            if known[a]:
                for t in range(m):
                    known_gain[t] += zeta[a] * parts[a, t]
        for t in range(m):
            found[0] += counts[t]
            found[1] += counts[t] * link[t]
            found[2] += counts[t] * (full_gain[t] - known_gain[t])
        linkable = np.flatnonzero(link)
        near = _near(linkable, counts, link, full_gain)
        near[2] = known_gain[linkable]
        _score(found, near, total, unknown, everything, epsilon1, epsilon2, out[i])
