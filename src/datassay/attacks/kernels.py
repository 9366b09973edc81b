"""Attacks, compiled: what a copy of a record would be worth in many data sets at once."""

import numpy as np

from datassay._jit import kernel


@kernel
def add_joining_shapley(order, distances, codes, label, sets, wanted, k_alone, k_twin, shift, alone, twin):
    """k-NN Shapley values of copies of records that join data sets, seen from one validation point.

    ``order`` ranks a population, ``sets[s, i]`` is 1 where record i is in data set s. A copy of record ``wanted[t]``
    comes after everybody at its distance. Adds its ``fraction`` value in set s to alone[s, t], and its value if the
    record itself (which is in no such set) had joined before it to twin[s, t]. ``shift`` are the terms that make them
    ``soft`` values, for alone and for twin: where labels match, and always; zeros for ``fraction``.
    """
    n = order.shape[0]
    n_sets = sets.shape[0]
    place = np.empty(n, np.int64)  # of each record, the last rank at its distance
    last = n - 1
    for r in range(n - 1, -1, -1):
        if distances[r] != distances[last]:
            last = r
        place[order[r]] = last
    before = np.empty(n + 1, np.int64)
    behind_one = np.empty(n + 1)
    behind_two = np.empty(n + 1)
    for s in range(n_sets):
        members = sets[s]
        before[0] = 0
        for r in range(n):
            before[r + 1] = before[r] + members[order[r]]
        size = before[n]
        behind_one[n] = 0.0
        behind_two[n] = 0.0
        rank = size
        matching = 0
        for r in range(n - 1, -1, -1):
            behind_one[r] = behind_one[r + 1]
            behind_two[r] = behind_two[r + 1]
            if members[order[r]]:
                if codes[order[r]] == label:
                    matching += 1
                    if rank + 1 > k_alone:
                        behind_one[r] += 1.0 / ((rank + 1.0) * rank)
                    if rank + 2 > k_twin:
                        behind_two[r] += 1.0 / ((rank + 2.0) * (rank + 1.0))
                rank -= 1
        for t in range(wanted.shape[0]):
            i = wanted[t]
            b = 1.0 if codes[i] == label else 0.0
            at = place[i] + 1
            r = before[at] + 1
            share_one = (matching + b) / (size + 1.0)
            share_two = (matching + 2.0 * b) / (size + 2.0)
            alone[s, t] += b / max(k_alone, r) - behind_one[at] + shift[0] * (b - share_one) + shift[1]
            twin[s, t] += b / max(k_twin, r + 1) - behind_two[at] + shift[2] * (b - share_two) + shift[3]


@kernel
def count_wrong(order, ahead, rows, codes, targets, bits, k, wrong):
    """wrong[t, m] = wrong labels among the k nearest of target t in model m: bit m of ``bits`` says who is in it.

    ``rows[t]`` is the target's row of neighbours; a target that is in the model comes after ahead[row] of them. Returns
    False if a neighbour list was too short.
    """
    models = wrong.shape[1]
    for t in range(targets.shape[0]):
        i = targets[t]
        for m in range(models):
            place = np.uint64(m)
            votes = 0
            against = 0
            own = ahead[rows[t]] if (bits[i] >> place) & np.uint64(1) else -1
            r = 0
            while votes < k and r < order.shape[1]:
                if r == own:
                    votes += 1
                    own = -1
                    continue
                j = order[rows[t], r]
                if (bits[j] >> place) & np.uint64(1):
                    votes += 1
                    if codes[j] != codes[i]:
                        against += 1
                r += 1
            if votes < k and r == own:
                votes += 1
            if votes < k:
                return False
            wrong[t, m] = against
    return True


@kernel
def write_target_waka(order, codes, targets, chances, k, table):
    """t-WaKA (Mathematics §4): what each record moves of losses from v/k on, less what it moves below, for v = 0 … k.

    The record is at rank 1 of its own ranking. Displacing rank j, with ``wrong`` labels among the k−1 nearer others,
    moves the loss from (wrong + 1)/k to wrong/k: a change of the distribution function at wrong/k.
    """
    n = min(order.shape[1], chances.shape[0] - 1)
    change = np.empty(k + 1)
    terms = np.empty(k)
    for row in range(order.shape[0]):
        change[:] = 0.0
        right = 0
        wrong = 0
        for r in range(n):
            if codes[order[row, r]] == targets[row]:
                right += 1
                continue
            if chances[r + 1] > 0:
                first = max(0, k - 1 - right)
                last = min(k - 1, wrong)
                everything = 0.0
                term = 1.0
                for v in range(first, last + 1):
                    terms[v] = term
                    everything += term
                    term *= (k - 1.0 - v) * (wrong - v) / ((v + 1.0) * (right - (k - 1) + v + 1.0))
                    if everything > 1e200:
                        term *= 1e-200
                        everything *= 1e-200
                        for u in range(first, v + 1):
                            terms[u] *= 1e-200
                for v in range(first, last + 1):
                    change[v] += chances[r + 1] * terms[v] / everything
            wrong += 1
        total = 0.0
        for v in range(k + 1):
            total += change[v]
        below = 0.0
        for v in range(k + 1):
            table[row, v] = (total - 2.0 * below) / (2.0 * k)
            below += change[v]
