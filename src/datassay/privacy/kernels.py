"""Private threshold values, compiled: counts, noise and values of a block of validation points in one go."""

import numpy as np

from datassay._jit import kernel


@kernel
def threshold_value(match, matching, others, harmonic, n_classes):
    """SPEC §3 for a record that joins ``matching`` + ``others`` neighbours (both without it; below 0 counts as 0)."""
    p = max(matching, 0)
    c = 1 + p + max(others, 0)
    value = (match - 1.0 / n_classes) / c
    if c >= 2:
        value += (match / c - p / (c * (c - 1.0))) * (harmonic[c] - 1.0)
    return value


@kernel
def add_private_threshold(inside, sampled, codes, targets, weights, noise, harmonic, n_classes, fresh, released, total):
    """SPEC §5: release (matching, other) neighbours in the sample plus noise, and value every record from that.

    ``sampled[v, i]`` is 1 where record i was in the sample of validation point v (one row of ones serves all points if
    everybody was). The noise was drawn beforehand, once for each validation point: what is released is count + noise,
    and all values follow from it and the record's own data. Unless ``fresh``, ``released`` already holds an earlier
    release, and nothing is counted.
    """
    n = inside.shape[1]
    worth = np.zeros(5)  # not near; near: other or matching label, out of the sample; the same, in it
    for v in range(inside.shape[0]):
        near = inside[v]
        chosen = sampled[min(v, sampled.shape[0] - 1)]
        target = targets[v]
        matching = 0
        others = 0
        if fresh:
            for i in range(n):
                others += near[i] & chosen[i]
                matching += near[i] & chosen[i] & (codes[i] == target)
            released[v, 0] = matching + noise[v, 0]
            released[v, 1] = others - matching + noise[v, 1]
        matching = released[v, 0]
        others = released[v, 1]
        worth[1] = weights[v] * threshold_value(0, matching, others, harmonic, n_classes)
        worth[2] = weights[v] * threshold_value(1, matching, others, harmonic, n_classes)
        # A record that was counted is taken out of the counts before it is valued against them.
        worth[3] = weights[v] * threshold_value(0, matching, others - 1, harmonic, n_classes)
        worth[4] = weights[v] * threshold_value(1, matching - 1, others, harmonic, n_classes)
        for i in range(n):
            total[i] += worth[near[i] * (1 + (codes[i] == target) + 2 * chosen[i])]
