"""Predictions of a k-NN classifier while its training set shrinks or grows, without refitting anything."""

import numpy as np

from datassay._jit import kernel


@kernel
def write_predictions(order, codes, arrives, leaves, k, n_classes, predicted):
    """predicted[run, step, v]: majority among the k nearest present; ties go to the smaller code.

    Record i is present at a step if arrives[run, i] ≤ step < leaves[run, i].
    """
    runs, steps = predicted.shape[:2]
    votes = np.zeros(n_classes, np.int64)
    for v in range(order.shape[0]):
        row = order[v]
        for run in range(runs):
            comes = arrives[run]
            goes = leaves[run]
            for step in range(steps):
                votes[:] = 0
                voters = 0
                for r in range(row.size):
                    i = row[r]
                    if comes[i] <= step < goes[i]:
                        votes[codes[i]] += 1
                        voters += 1
                        if voters == k:
                            break
                winner = 0
                for c in range(n_classes):
                    if votes[c] > votes[winner]:
                        winner = c
                predicted[run, step, v] = winner


@kernel
def vote(order, codes, own_codes, n_classes, top, votes, own):
    """For each row the class of most neighbours (of equals the smaller code), its share, and that of the own label."""
    counts = np.zeros(n_classes, np.int64)
    depth = order.shape[1]
    for v in range(order.shape[0]):
        best = codes[order[v, 0]]
        for r in range(depth):
            c = codes[order[v, r]]
            counts[c] += 1
            if counts[c] > counts[best] or (counts[c] == counts[best] and c < best):
                best = c
        top[v] = best
        votes[v] = counts[best] / depth
        own[v] = counts[own_codes[v]] / depth
        for r in range(depth):
            counts[codes[order[v, r]]] = 0
