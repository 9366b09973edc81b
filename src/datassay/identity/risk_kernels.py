"""Singling-out attacks on one person after another: distances grow by one attribute at a time (Mathematics §8).

A person is a point, the release a matrix (attributes × distinct records) with a count for each record. An attribute
contributes |o − t| (numbers, scaled to 0…1; at most 1) or 0/1 (categories) to a distance.
"""

import math

import numpy as np

from datassay._jit import kernel

TIE = 1e-12  # distances closer than this are equal: sums in another order differ by rounding


@kernel
def contributions(person, points, categorical, out):
    """What each attribute contributes to the distance of the person from each point: attributes × points."""
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
def _judge(distance, full_gain, known_gain, link, linkable, counts, unknown, everything, epsilon1, epsilon2, out):
    """Score a scenario: linkability, information gain and score of the records at minimal distance; then guessing.

    ``full_gain − known_gain`` is E(t), the reconstruction error weighted by ζ; ``unknown`` and ``everything`` are Σζ of
    the attributes to reconstruct and of all. Who picks a record at random scores the mean of L(t) · max(I(t), ε₂), to
    which only ``linkable`` records add.
    """
    best = distance[0]
    for t in range(1, len(distance)):
        best = min(best, distance[t])
    size, linked, error = 0.0, 0.0, 0.0
    for t in range(len(distance)):
        if distance[t] <= best + TIE:
            size += counts[t]
            linked += counts[t] * link[t]
            error += counts[t] * (full_gain[t] - known_gain[t])
    linked /= size
    gain, gamma = 0.0, 0.0
    if unknown > 0.0:
        gamma = math.log(1.0 + epsilon1 * unknown / everything) / math.log(1.0 + epsilon1)
        gain = gamma * min(1.0, max(0.0, 1.0 - error / size / unknown))
    out[0] = linked
    out[1] = gain
    out[2] = linked * max(gain, epsilon2)
    guess = 0.0
    for t in linkable:
        told = 0.0
        if unknown > 0.0:
            told = gamma * min(1.0, max(0.0, 1.0 - (full_gain[t] - known_gain[t]) / unknown))
        guess += counts[t] * link[t] * max(told, epsilon2)
    out[3] = guess / counts.sum()


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
def attack_in_orders(people, released, counts, categorical, zeta, mean, deviation, orders, epsilon1, epsilon2, out):
    """Attack each person with more and more attributes, in each of their orders: out[person, order, size − 1, 4]."""
    d, m = released.shape
    parts, full, full_gain, link = np.empty((d, m)), np.empty(m), np.empty(m), np.empty(m)
    distance, known_gain = np.empty(m), np.empty(m)
    everything = zeta.sum()
    alike = (zeta == 1.0).all()  # the weighted error is then the distance itself
    known = distance if alike else known_gain
    for i in range(people.shape[1]):
        _prepare(people[:, i], released, categorical, zeta, mean[i], deviation[i], parts, full, full_gain, link)
        linkable = np.flatnonzero(link)
        for o in range(orders.shape[1]):
            distance[:] = 0.0
            known_gain[:] = 0.0
            unknown = everything
            for step in range(d):
                a = orders[i, o, step]
                unknown = 0.0 if step == d - 1 else unknown - zeta[a]
                for t in range(m):
                    distance[t] += parts[a, t]
                if not alike:
                    for t in range(m):
                        known_gain[t] += zeta[a] * parts[a, t]
                _judge(
                    distance, full_gain, known, link, linkable, counts, unknown, everything, epsilon1, epsilon2,
                    out[i, o, step],
                )  # fmt: skip


@kernel
def attack_with_sets(people, released, counts, categorical, zeta, mean, deviation, masks, epsilon1, epsilon2, out):
    """Attack each person with each of these sets of attributes, as bit masks: out[person, set, 4].

    From one set to the next only the attributes that change are added or taken away; masks in the order of a Gray code
    change one at a time. Every 64 sets the sums are made anew, so that rounding does not add up.
    """
    d, m = released.shape
    parts, full, full_gain, link = np.empty((d, m)), np.empty(m), np.empty(m), np.empty(m)
    distance, known_gain = np.empty(m), np.empty(m)
    everything = zeta.sum()
    for i in range(people.shape[1]):
        _prepare(people[:, i], released, categorical, zeta, mean[i], deviation[i], parts, full, full_gain, link)
        linkable = np.flatnonzero(link)
        before = 0
        for s in range(len(masks)):
            if s % 64 == 0:
                distance[:] = 0.0
                known_gain[:] = 0.0
                before = 0
            unknown = 0.0
            for a in range(d):
                now, then = (masks[s] >> a) & 1, (before >> a) & 1
                if not now:
                    unknown += zeta[a]
                if now and not then:
                    for t in range(m):
                        distance[t] += parts[a, t]
                        known_gain[t] += zeta[a] * parts[a, t]
                elif then and not now:
                    for t in range(m):
                        distance[t] -= parts[a, t]
                        known_gain[t] -= zeta[a] * parts[a, t]
            before = masks[s]
            _judge(
                distance,
                full_gain,
                known_gain,
                link,
                linkable,
                counts,
                unknown,
                everything,
                epsilon1,
                epsilon2,
                out[i, s],
            )


@kernel
def score_chosen(people, chosen, counts, categorical, zeta, mean, deviation, known, epsilon1, epsilon2, out):
    """Score the same chosen records against each person, whose attributes ``known`` were known: out[person, 4]."""
    d, m = chosen.shape
    parts, full, full_gain, link = np.empty((d, m)), np.empty(m), np.empty(m), np.empty(m)
    nothing, known_gain = np.zeros(m), np.empty(m)
    everything, unknown = zeta.sum(), 0.0
    for a in range(d):
        if not known[a]:
            unknown += zeta[a]
    for i in range(people.shape[1]):
        _prepare(people[:, i], chosen, categorical, zeta, mean[i], deviation[i], parts, full, full_gain, link)
        linkable = np.flatnonzero(link)
        known_gain[:] = 0.0
        for a in range(d):
            if known[a]:
                for t in range(m):
                    known_gain[t] += zeta[a] * parts[a, t]
        _judge(nothing, full_gain, known_gain, link, linkable, counts, unknown, everything, epsilon1, epsilon2, out[i])
