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
