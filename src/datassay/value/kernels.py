"""The formulas, compiled: each takes a block of neighbours and adds what its validation points say.

``order[v, r]`` is the training point at rank r+1; ``codes`` are label codes; ``targets[v]`` and ``weights[v]`` are
the label and weight of validation point v. b is 1 where a training label equals the target.
"""

import numpy as np

from datassay._jit import kernel


@kernel
def add_shapley(order, codes, targets, weights, step, total):
    """Mathematics §1 ``fraction``, from the farthest rank N: φ_r = φ_{r+1} + (b_r − b_{r+1}) · step_r, b_{N+1} = 0."""
    n = order.shape[1]
    phis = np.empty(n)
    bit = np.array([0.0, 1.0])  # looked up, not branched on: nobody can predict the next label
    for v in range(order.shape[0]):
        row = order[v]
        phi = 0.0
        beyond = 0.0
        for r in range(n - 1, -1, -1):
            b = bit[np.uint8(codes[row[r]] == targets[v])]
            phi += (b - beyond) * step[r]
            beyond = b
            phis[r] = weights[v] * phi
        for r in range(n):  # apart from the sum, so that its stores do not hold up the loads above
            total[row[r]] += phis[r]


@kernel
def add_banzhaf(order, codes, targets, weights, chance, k, total):
    """Mathematics §2: (1/k) Σ_{j>i} (b_i − b_j) · chance_j, as one suffix sum for each label-match."""
    for v in range(order.shape[0]):
        row = order[v]
        weight = weights[v] / k
        matching = 0.0  # Σ chance_j over farther ranks with b_j = 1
        other = 0.0  # … and with b_j = 0
        for r in range(order.shape[1] - 1, -1, -1):
            i = row[r]
            if codes[i] == targets[v]:
                total[i] += weight * other
                matching += chance[r]
            else:
                total[i] -= weight * matching
                other += chance[r]


@kernel
def add_leave_one_out(order, codes, targets, weights, total):
    """Without one of the k nearest, rank k+1 moves up: (b_i − b_{k+1}) / k. ``order`` has k+1 columns."""
    k = order.shape[1] - 1
    for v in range(order.shape[0]):
        row = order[v]
        next_in = 1.0 if codes[row[k]] == targets[v] else 0.0
        for r in range(k):
            b = 1.0 if codes[row[r]] == targets[v] else 0.0
            total[row[r]] += weights[v] * (b - next_in) / k


@kernel
def threshold_worth(c, p, harmonic_c, n_classes):
    """Mathematics §3: what a neighbour with another label is worth, and one that matches, of c of whom p match."""
    spread = (harmonic_c - 1.0) / (c * (c - 1.0)) if c >= 2 else 0.0
    return -1.0 / n_classes / c - p * spread, (1.0 - 1.0 / n_classes) / c + (c - p) * spread


@kernel
def add_threshold_shapley(inside, codes, targets, weights, harmonic, n_classes, total):
    """Mathematics §3: with c neighbours, p of them matching, there are two values: for a match and for the others."""
    n = inside.shape[1]
    worth = np.zeros(3)  # of one who is no neighbour, a neighbour with another label, and one that matches
    for v in range(inside.shape[0]):
        near = inside[v]
        target = targets[v]
        c = 0
        p = 0
        for i in range(n):
            c += near[i]
            p += near[i] & (codes[i] == target)
        if c == 0:
            continue
        other, matching = threshold_worth(c, p, harmonic[c], n_classes)
        worth[1] = weights[v] * other
        worth[2] = weights[v] * matching
        for i in range(n):
            total[i] += worth[near[i] * (1 + (codes[i] == target))]


@kernel
def count_marked(marks, codes, targets, near, matching):
    """Count each validation point's neighbours, and those that match: bit s of marks[b, i] is about point 8b + s."""
    for v in range(targets.size):
        row = marks[v // 8]
        shift = np.uint8(v % 8)
        c = 0
        p = 0
        for i in range(row.size):
            bit = (row[i] >> shift) & np.uint8(1)
            c += bit
            p += bit & (codes[i] == targets[v])
        near[v] += c
        matching[v] += p


@kernel
def write_threshold_worth(near, matching, weights, harmonic, n_classes, worth):
    """worth[v, b]: what validation point v says of a neighbour with match bit b; ``harmonic[v]`` is H of its count."""
    for v in range(near.size):
        worth[v, :] = 0.0
        if near[v] > 0:
            other, match = threshold_worth(near[v], matching[v], harmonic[v], n_classes)
            worth[v, 0] = weights[v] * other
            worth[v, 1] = weights[v] * match


@kernel
def add_marked(marks, codes, targets, worth, group, total):
    """Sum what the validation points say of their neighbours, each group of points by itself and then the groups.

    That is the order in which all values are summed; adding the nothing of those who are no neighbours changes no bit.
    """
    for i in range(marks.shape[1]):
        whole = 0.0
        part = 0.0
        here = 0
        for b in range(marks.shape[0]):
            bits = marks[b, i]
            v = 8 * b
            while bits > 0:
                if bits & 1:
                    if group[v] != here:
                        whole += part
                        part = 0.0
                        here = group[v]
                    part += worth[v, np.int64(codes[i] == targets[v])]
                bits >>= np.uint8(1)
                v += 1
        total[i] = whole + part


@kernel
def write_self_shapley(order, codes, targets, k, drop, out):
    """Value of a record for itself, at rank 1: φ_1 = 1/k − Σ_{j>k} b_j/(j(j−1)); ``order`` starts at rank 2.

    ``drop[r]`` is 1/(j(j−1)) at rank j = r+2. Far ranks come first: small terms are added before large ones.
    """
    for v in range(order.shape[0]):
        lost = 0.0
        for r in range(order.shape[1] - 1, max(k - 2, -1), -1):
            if codes[order[v, r]] == targets[v]:
                lost += drop[r]
        out[v] = 1.0 / k - lost


@kernel
def write_votes(order, codes, targets, n_classes, correct):
    """correct[v, r]: whether the majority of the r+1 nearest (ties to the smaller code) has the target label."""
    votes = np.zeros(n_classes, np.int64)
    for v in range(order.shape[0]):
        votes[:] = 0
        winner = 0
        for r in range(order.shape[1]):
            c = codes[order[v, r]]
            votes[c] += 1
            if votes[c] > votes[winner] or (votes[c] == votes[winner] and c < winner):
                winner = c
            correct[v, r] = winner == targets[v]


@kernel
def write_threshold_votes(distances, codes, targets, thresholds, n_classes, score):
    """score[v, q]: 1 if the majority within thresholds[q] has the target label; 1/C where nobody is within."""
    n_thresholds = thresholds.size
    votes = np.zeros((n_thresholds + 1, n_classes), np.int64)
    for v in range(distances.shape[0]):
        votes[:] = 0
        for i in range(distances.shape[1]):
            votes[np.searchsorted(thresholds, distances[v, i]), codes[i]] += 1
        for q in range(n_thresholds):
            if q > 0:
                for c in range(n_classes):
                    votes[q, c] += votes[q - 1, c]
            winner = 0
            count = 0
            for c in range(n_classes):
                count += votes[q, c]
                if votes[q, c] > votes[q, winner]:
                    winner = c
            score[v, q] = 1.0 / n_classes if count == 0 else (1.0 if winner == targets[v] else 0.0)


@kernel
def wrong_at_most(right, wrong, drawn, most):
    """Chance of at most ``most`` wrong ones among ``drawn`` out of ``right`` + ``wrong``: hypergeometric, by terms."""
    if drawn <= most or wrong <= most:
        return 1.0
    first = max(0, drawn - right)
    if most < first:
        return 0.0
    term = 1.0
    inside = 0.0
    everything = 0.0
    for v in range(first, min(drawn, wrong) + 1):
        everything += term
        if v <= most:
            inside += term
        term *= (drawn - v) * (wrong - v) / ((v + 1.0) * (right - drawn + v + 1.0))
        if everything > 1e200:  # only ratios matter
            term *= 1e-200
            inside *= 1e-200
            everything *= 1e-200
    return inside / everything


@kernel
def write_waka_terms(match, chances, k, most_match, most_wrong, to_match, to_wrong):
    """What each rank adds to the matches before it, and to the wrong labels before it: chance_j, of what counts."""
    right = 0
    wrong = 0
    for r in range(to_match.size):
        to_match[r] = 0.0
        to_wrong[r] = 0.0
        if match[r]:
            if wrong > 0 and chances[r] > 0:
                to_wrong[r] = chances[r] * wrong_at_most(right, wrong - 1, k - 1, most_wrong)
            right += 1
        else:
            if right > 0 and chances[r] > 0:
                to_match[r] = chances[r] * wrong_at_most(right - 1, wrong, k - 1, most_match)
            wrong += 1


@kernel
def add_waka(order, codes, targets, weights, chances, k, most_match, most_wrong, total):
    """Mathematics §4 for all records at once: half Σ of chance_j over displaced ranks j > i with another bit, over k.

    ``most_match`` and ``most_wrong`` are the most wrong labels among the k−1 others for which a move counts, for
    records that match and for those that do not; k−1 for all of them.
    """
    n = min(order.shape[1], chances.shape[0])
    match = np.empty(n, np.bool_)
    to_match = np.empty(n)  # what rank j adds to matches before it, and to wrong labels before it
    to_wrong = np.empty(n)
    for v in range(order.shape[0]):
        for r in range(n):
            match[r] = codes[order[v, r]] == targets[v]
        write_waka_terms(match, chances, k, most_match, most_wrong, to_match, to_wrong)
        scale = weights[v] / (2.0 * k)
        match_sum = 0.0
        wrong_sum = 0.0
        for r in range(n - 1, -1, -1):
            i = order[v, r]
            if match[r]:
                total[i] += scale * match_sum
            else:
                total[i] -= scale * wrong_sum
            match_sum += to_match[r]
            wrong_sum += to_wrong[r]


@kernel
def write_self_waka(order, codes, targets, chances, k, values):
    """Self-attribution (Mathematics §4): (1/2k) Σ of chances over ranks with another label, the record at rank 1."""
    n = min(order.shape[1], chances.shape[0] - 1)
    for v in range(order.shape[0]):
        moved = 0.0
        for r in range(n - 1, -1, -1):  # the smallest first
            if codes[order[v, r]] != targets[v]:
                moved += chances[r + 1]
        values[v] = moved / (2.0 * k)


@kernel
def write_waka_influence(order, codes, targets, gone, chances, k, exact, values):
    """Change of self-WaKA when the records marked ``gone`` are removed: all at once, or each alone and added up."""
    ranks = chances.shape[0]
    for v in range(order.shape[0]):
        before = 0.0
        after = 0.0
        if exact:
            kept = 0
            for r in range(order.shape[1]):
                i = order[v, r]
                other = codes[i] != targets[v]
                if other and r + 1 < ranks:
                    before += chances[r + 1]
                if not gone[i]:
                    kept += 1
                    if other and kept < ranks:
                        after += chances[kept]
        else:
            nearer = 0.0  # what all later ranks gain by coming one nearer
            for r in range(order.shape[1] - 1, -1, -1):
                i = order[v, r]
                other = codes[i] != targets[v]
                here = chances[r + 1] if r + 1 < ranks else 0.0
                if gone[i]:
                    after += nearer - (here if other else 0.0)
                if other:
                    nearer += (chances[r] if r < ranks else 0.0) - here
        values[v] = (after - before) / (2.0 * k)
