"""Neighbours that move, compiled: what one moved centre changes, and the bandit's steps.

Every validation point keeps a sorted list of its nearest centres, somewhat longer than k. A moved centre leaves the
list and enters it again where it belongs; a list that has become too short is made anew. Points that were never queried
are all at the origin, in no list, and are merged in when votes are counted. Nothing the size of (points × validation
points) is kept. Distances have the bits of the neighbours' room, and ties go to the smaller index.
"""

from collections import namedtuple

import numpy as np

from datassay._jit import kernel

EUCLIDEAN, MANHATTAN, COSINE = 0, 1, 2
VOTES, ACCURACY = 0, 1

# Where the points are. tally: [centres in play, sum of counts, points at the origin, of these at hand in ``waiting``].
State = namedtuple(
    "State",
    "metric utility k n_classes tiles queries centres placed codes codes_val home near_d near_i size count waiting "
    "tally",
)
# The bandit: queries of each point, what it has learned of it and its score; and how it learns.
Arms = namedtuple("Arms", "queries learned scores rate exploration t_max")


@kernel
def distances_to(metric, tiles, centre, out):
    """out[v] = what ranks ``centre`` as seen from validation point v; for COSINE it has unit length or is zero."""
    n_tiles, d, width = tiles.shape
    m = out.shape[0]
    sums = np.empty(width)
    for tile in range(n_tiles):
        points = tiles[tile]
        sums[:] = 0.0
        for j in range(0, d - 3, 4):
            x0, x1, x2, x3 = points[j], points[j + 1], points[j + 2], points[j + 3]
            c0, c1, c2, c3 = centre[j], centre[j + 1], centre[j + 2], centre[j + 3]
            if metric == EUCLIDEAN:
                for i in range(width):
                    e0, e1, e2, e3 = x0[i] - c0, x1[i] - c1, x2[i] - c2, x3[i] - c3
                    sums[i] = (((sums[i] + e0 * e0) + e1 * e1) + e2 * e2) + e3 * e3
            elif metric == MANHATTAN:
                for i in range(width):
                    e0, e1, e2, e3 = abs(x0[i] - c0), abs(x1[i] - c1), abs(x2[i] - c2), abs(x3[i] - c3)
                    sums[i] = (((sums[i] + e0) + e1) + e2) + e3
            else:
                for i in range(width):
                    sums[i] = (((sums[i] + x0[i] * c0) + x1[i] * c1) + x2[i] * c2) + x3[i] * c3
        for j in range(d - d % 4, d):
            x0, c0 = points[j], centre[j]
            if metric == EUCLIDEAN:
                for i in range(width):
                    e0 = x0[i] - c0
                    sums[i] += e0 * e0
            elif metric == MANHATTAN:
                for i in range(width):
                    sums[i] += abs(x0[i] - c0)
            else:
                for i in range(width):
                    sums[i] += x0[i] * c0
        start = tile * width
        for i in range(min(width, m - start)):
            out[start + i] = min(max(0.0 - sums[i], -1.0), 1.0) if metric == COSINE else sums[i]


@kernel
def distance(metric, query, centre):
    """The same for one pair."""
    total = 0.0
    for j in range(query.shape[0]):
        if metric == EUCLIDEAN:
            e = query[j] - centre[j]
            total += e * e
        elif metric == MANHATTAN:
            total += abs(query[j] - centre[j])
        else:
            total += query[j] * centre[j]
    return min(max(0.0 - total, -1.0), 1.0) if metric == COSINE else total


@kernel
def to_unit(point, out):
    """The point at length 1, with the bits of the neighbours' room; zero stays zero."""
    largest = 0.0
    for j in range(point.shape[0]):
        largest = max(largest, abs(point[j]))
    if largest == 0.0:
        out[:] = 0.0
        return
    squares = 0.0
    for j in range(point.shape[0]):
        out[j] = point[j] / largest
        squares += out[j] * out[j]
    length = np.sqrt(squares)
    for j in range(point.shape[0]):
        out[j] = out[j] / length


@kernel
def insert(near_d, near_i, size, d, i):
    """Put (d, i) where it belongs among the first ``size`` of a sorted list, whose last may drop off; where that is."""
    room = near_d.shape[0]
    at = min(size, room - 1)
    while at > 0 and (near_d[at - 1] > d or (near_d[at - 1] == d and near_i[at - 1] > i)):
        near_d[at] = near_d[at - 1]
        near_i[at] = near_i[at - 1]
        at -= 1
    near_d[at] = d
    near_i[at] = i
    return at


@kernel
def rank_anew(state, v):
    """The nearest of all centres to validation point v; distances are summed for four centres at a time."""
    centres = state.centres
    n, d = centres.shape
    room = state.near_d.shape[1]
    near_d, near_i, query = state.near_d[v], state.near_i[v], state.queries[v]
    scaled = np.empty(d)
    size = 0
    four = np.empty(4, np.int64)
    held = 0
    for i in range(n):
        if state.placed[i]:
            four[held] = i
            held += 1
        if held == 4 or (i == n - 1 and held > 0):
            far = np.zeros(4)
            if state.metric == EUCLIDEAN and held == 4:
                a, b, c, e = centres[four[0]], centres[four[1]], centres[four[2]], centres[four[3]]
                s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
                for j in range(d):
                    q = query[j]
                    f0, f1, f2, f3 = q - a[j], q - b[j], q - c[j], q - e[j]
                    s0 += f0 * f0
                    s1 += f1 * f1
                    s2 += f2 * f2
                    s3 += f3 * f3
                far[0], far[1], far[2], far[3] = s0, s1, s2, s3
            else:
                for h in range(held):
                    centre = centres[four[h]]
                    if state.metric == COSINE:
                        to_unit(centre, scaled)
                        centre = scaled
                    far[h] = distance(state.metric, query, centre)
            for h in range(held):
                if size < room or far[h] < near_d[room - 1]:  # of equals the earlier, with the smaller index, stays
                    insert(near_d, near_i, size, far[h], four[h])
                    size = min(size + 1, room)
            held = 0
    state.size[v] = size


@kernel
def count_votes(state, v, votes):
    """Right labels among the k nearest of v, or whether their majority is right; −1 if its list is too short.

    ``votes`` is room for the classes; of equal classes the first wins.
    """
    in_play, at_hand = state.tally[0], state.tally[3]
    wanted = min(state.k, in_play + state.tally[2])
    near_d, near_i, size, home = state.near_d[v], state.near_i[v], state.size[v], state.home[v]
    label = state.codes_val[v]
    right = 0
    i = 0
    w = 0
    if state.utility == ACCURACY:
        votes[:] = 0
    for _ in range(wanted):
        if w == at_hand:
            from_list = True
        elif i < size:
            from_list = near_d[i] < home or (near_d[i] == home and near_i[i] < state.waiting[w])
        elif size == in_play:
            from_list = False
        else:  # whoever comes next is beyond the end of the list
            end = size - 1
            beyond = size > 0 and (near_d[end] > home or (near_d[end] == home and near_i[end] > state.waiting[w]))
            if not beyond:
                return -1
            from_list = False
        if from_list:
            if i >= size:
                return -1
            code = state.codes[near_i[i]]
            i += 1
        else:
            code = state.codes[state.waiting[w]]
            w += 1
        if code == label:
            right += 1
        if state.utility == ACCURACY:
            votes[code] += 1
    if state.utility == VOTES:
        return right
    best = 0
    for c in range(1, state.n_classes):
        if votes[c] > votes[best]:
            best = c
    return 1 if wanted > 0 and best == label else 0


@kernel
def call_waiting(state):
    """The first k points at the origin, in the order of their indices."""
    held = 0
    wanted = min(state.k, state.tally[2])
    i = state.waiting[0] if state.tally[3] > 0 else 0
    while held < wanted:
        if not state.placed[i]:
            state.waiting[held] = i
            held += 1
        i += 1
    state.tally[3] = held


@kernel
def place(state, i, far, votes):
    """Bring everything up to date after centre i has moved, or has been placed for the first time.

    ``far`` is room for a distance from every validation point.
    """
    centre = state.centres[i].copy()
    if state.metric == COSINE:
        to_unit(state.centres[i], centre)
    distances_to(state.metric, state.tiles, centre, far)
    fresh = not state.placed[i]
    everybody = False
    if fresh:
        everybody = state.tally[0] + state.tally[2] < state.k or state.tally[0] == 0
        state.placed[i] = True
        state.tally[0] += 1
        if state.tally[2] > 0:
            state.tally[2] -= 1
            if state.tally[3] > 0 and i <= state.waiting[state.tally[3] - 1]:
                everybody = True  # one of those at hand has left
                call_waiting(state)
    others = state.tally[0] - 1
    room = state.near_d.shape[1]
    for v in range(far.shape[0]):
        near_d, near_i = state.near_d[v], state.near_i[v]
        size = state.size[v]
        changed = everybody
        if not fresh:
            was = -1
            for at in range(size):
                if near_i[at] == i:
                    was = at
                    break
            if was >= 0:
                for at in range(was, size - 1):
                    near_d[at] = near_d[at + 1]
                    near_i[at] = near_i[at + 1]
                size -= 1
                changed = changed or was < state.k
        end = size - 1
        before_end = size > 0 and (far[v] < near_d[end] or (far[v] == near_d[end] and i < near_i[end]))
        if before_end or (size == others and size < room):
            at = insert(near_d, near_i, size, far[v], i)
            size = min(size + 1, room)
            changed = changed or at < state.k
        state.size[v] = size
        if changed:
            count = count_votes(state, v, votes)
            if count < 0:
                rank_anew(state, v)
                count = count_votes(state, v, votes)
            state.tally[1] += count - state.count[v]
            state.count[v] = count


@kernel
def utility_of(state):
    """The utility of the points as they are: 1/C where there are none."""
    total, points = state.tally[1], state.codes_val.shape[0]
    in_model = state.tally[0] + state.tally[2]
    if in_model == 0:
        return 1.0 / state.n_classes
    if state.utility == ACCURACY:
        return total / points
    return total / (points * min(state.k, in_model))


@kernel
def bonus(exploration, queries, t_max):
    """C · sqrt(1/(N + 1e-6)) · (what is left of the budget): thesis, Algorithm 2, line 11."""
    return exploration * np.sqrt(1.0 / (queries + 1e-6)) * ((t_max - queries) / t_max)


@kernel
def receive(state, i, sample, copies, far, votes):
    """Average the latest of ``copies`` noisy copies of point i into its centre, and bring the neighbours up to date."""
    centre = state.centres[i]
    for j in range(centre.shape[0]):
        centre[j] += (sample[j] - centre[j]) / copies
    place(state, i, far, votes)
    return utility_of(state)


@kernel
def learn(arms, i, reward):
    """Move the estimate of point i towards its reward, and set its score (Algorithm 2, lines 22 and 11)."""
    learned, count = arms.learned, arms.queries[i]
    learned[i] += arms.rate * (reward - learned[i])
    arms.scores[i] = learned[i] + bonus(arms.exploration, count, arms.t_max) if count < arms.t_max else -np.inf


@kernel
def best_arm(scores):
    """The first of the highest scores; −1 if no point has budget left."""
    best = -1
    top = -np.inf
    for i in range(scores.shape[0]):
        if scores[i] > top:
            top = scores[i]
            best = i
    return best


@kernel
def play_bandit(state, arms, unit, low, width, per_epsilon, noise, target, utility, far):
    """Steps of the bandit, one for each row of ``noise`` (standard Laplace), until the target or the end of the budget.

    Some point must have budget left for each of the steps. Returns the steps made, and the utility after the last.
    """
    d = unit.shape[1]
    sample = np.empty(d)
    votes = np.empty(state.n_classes, np.int64)
    for step in range(noise.shape[0]):
        i = best_arm(arms.scores)
        for j in range(d):
            sample[j] = low[j] + width[j] * (unit[i, j] + noise[step, j] * per_epsilon[j])
        before = utility
        arms.queries[i] += 1
        utility = receive(state, i, sample, arms.queries[i], far, votes)
        learn(arms, i, utility - before)
        if utility >= target:
            return step + 1, utility
    return noise.shape[0], utility
