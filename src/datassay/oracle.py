"""The definitions, by enumeration: slow, obvious, sharing no code with the fast path.

A game has n players and a utility v(S) of a set of players. Its values are averages of what a player adds to a
coalition; here every coalition is visited, so n is at most ``LARGEST_GAME``. The k-NN utilities are written
from their definitions (Mathematics §1, §3), with neighbours sorted by distance and ties going to the smaller index.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, compress
from math import comb, fsum, log2

Utility = Callable[[frozenset[int]], Fraction]
LARGEST_GAME = 16


def _coalitions(players: Sequence[int]) -> Iterator[frozenset[int]]:
    return (frozenset(members) for size in range(len(players) + 1) for members in combinations(players, size))


def _semivalue(n: int, utility: Utility, weight: Callable[[int], Fraction]) -> list[Fraction]:
    if not 1 <= n <= LARGEST_GAME:
        raise ValueError(f"n must be between 1 and {LARGEST_GAME} for enumeration, got {n}")
    worth = {coalition: utility(coalition) for coalition in _coalitions(range(n))}
    values = []
    for i in range(n):
        without = [S for S in worth if i not in S]
        values.append(sum((weight(len(S)) * (worth[S | {i}] - worth[S]) for S in without), Fraction(0)))
    return values


def shapley(n: int, utility: Utility) -> list[Fraction]:
    """Shapley values: the mean, over coalition sizes and then coalitions of that size, of what i adds.

    >>> [str(value) for value in shapley(3, lambda S: Fraction(len(S) >= 2))]
    ['1/3', '1/3', '1/3']
    """
    return _semivalue(n, utility, lambda size: Fraction(1, n * comb(n - 1, size)))


def banzhaf(n: int, utility: Utility) -> list[Fraction]:
    """Banzhaf values: the mean, over all coalitions of the others, of what i adds.

    >>> [str(value) for value in banzhaf(3, lambda S: Fraction(len(S) >= 2))]
    ['1/2', '1/2', '1/2']
    """
    return _semivalue(n, utility, lambda size: Fraction(1, 2 ** (n - 1)))


def leave_one_out(n: int, utility: Utility) -> list[Fraction]:
    """What the whole set loses without i.

    >>> [str(value) for value in leave_one_out(2, lambda S: Fraction(len(S)))]
    ['1', '1']
    """
    everyone = frozenset(range(n))
    return [utility(everyone) - utility(everyone - {i}) for i in range(n)]


def _nearest(distances: Sequence[float], members: frozenset[int], k: int) -> list[int]:
    return sorted(members, key=lambda i: (distances[i], i))[:k]


def fraction_utility(distances: Sequence[float], match: Sequence[bool], k: int) -> Utility:
    """Mathematics §1 ``fraction``: the matching among the k nearest in S, divided by k."""
    return lambda S: Fraction(sum(bool(match[i]) for i in _nearest(distances, S, k)), k)


def _share(match: Sequence[bool], near: Sequence[int], n_classes: int) -> Fraction:
    return Fraction(sum(bool(match[i]) for i in near), len(near)) if near else Fraction(1, n_classes)


def soft_utility(distances: Sequence[float], match: Sequence[bool], k: int, n_classes: int) -> Utility:
    """Mathematics §1 ``soft``: the share of matching labels among the k nearest in S; 1/C if S is empty."""
    return lambda S: _share(match, _nearest(distances, S, k), n_classes)


def threshold_utility(distances: Sequence[float], match: Sequence[bool], tau: float, n_classes: int) -> Utility:
    """Mathematics §3: the share of matching labels among those of S within tau; 1/C when there are none."""
    return lambda S: _share(match, [i for i in S if distances[i] <= tau], n_classes)


def loss_change(distances: Sequence[float], match: Sequence[bool], i: int, k: int) -> list[Fraction]:
    """Mathematics §4: F_L(l) − F_{L−i}(l) at l = 0, 1/k, …, 1; the loss is the share of wrong labels of the k nearest.

    L is the loss over all subsets of the records, L−i over those without i. A subset of fewer than k others has no
    k nearest yet, and is left out of both.

    >>> [str(change) for change in loss_change([1, 2], [True, False], 0, 1)]
    ['1/4', '0']
    """
    n = len(distances)
    if not 1 <= n <= LARGEST_GAME:
        raise ValueError(f"there must be between 1 and {LARGEST_GAME} records for enumeration, got {n}")
    change = [Fraction(0)] * (k + 1)
    for S in _coalitions([j for j in range(n) if j != i]):
        if len(S) < k:
            continue
        for members, sign in ((S | {i}, 1), (S, -1)):
            wrong = sum(not match[j] for j in _nearest(distances, members, k))
            for v in range(wrong, k + 1):
                change[v] += Fraction(sign, 2**n)
    return change


def waka(
    distances: Sequence[float],
    match: Sequence[bool],
    i: int,
    k: int,
    variant: str = "full",
    tau: Fraction = Fraction(1, 2),
) -> Fraction:
    """Mathematics §4, from the distribution functions: ``full``, ``signed``, ``removal`` or ``addition``.

    >>> str(waka([1, 2], [True, False], 0, 1))
    '1/4'
    """
    change = loss_change(distances, match, i, k)
    losses = [Fraction(v, k) for v in range(k + 1)]
    full = sum((abs(c) for c in change), Fraction(0)) / k
    if variant == "full":
        return full
    if variant == "signed":
        return full if match[i] else -full
    # The distribution function of the utility 1 − ℓ at u counts losses of at least 1 − u: its change at u is minus that
    # of the loss just below 1 − u.
    below = [Fraction(0), *change[:-1]]
    utility = {1 - loss: -below[v] for v, loss in enumerate(losses)}
    if variant == "removal":
        return sum((abs(c) for u, c in utility.items() if u > 1 - tau), Fraction(0)) / k if match[i] else -full
    if variant == "addition":
        if match[i]:
            return sum((abs(c) for c in utility.values()), Fraction(0)) / k
        return -sum((abs(c) for c, loss in zip(change, losses, strict=True) if loss <= tau), Fraction(0)) / k
    raise ValueError(f"there is no variant {variant!r}")


def target_waka(distances: Sequence[float], match: Sequence[bool], i: int, k: int, loss: Fraction) -> Fraction:
    """Mathematics §4, t-WaKA: what moves at or above the observed loss, less what moves below it.

    >>> str(target_waka([1, 2], [True, False], 0, 1, Fraction(0)))
    '1/4'
    """
    change = loss_change(distances, match, i, k)
    signs = [1 if Fraction(v, k) >= loss else -1 for v in range(k + 1)]
    return sum((sign * abs(c) for sign, c in zip(signs, change, strict=True)), Fraction(0)) / k


def matching_utility(rows: Sequence[Sequence[object]], person: int, weights: Sequence[float] | None = None) -> Utility:
    """Mathematics §8: the bits that some attributes of one person tell, −log₂ of the share of people who match in them.

    >>> utility = matching_utility([("York", 30), ("York", 41), ("Hull", 41), ("Hull", 30)], 0)
    >>> float(utility(frozenset({0}))), float(utility(frozenset({0, 1})))
    (1.0, 2.0)
    """
    counts = [1.0] * len(rows) if weights is None else list(weights)

    def utility(S: frozenset[int]) -> Fraction:
        alike = [all(row[attribute] == rows[person][attribute] for attribute in S) for row in rows]
        return Fraction(log2(fsum(counts)) - log2(fsum(compress(counts, alike))))

    return utility


def interaction(n: int, utility: Utility, i: int, j: int) -> Fraction:
    """Shapley interaction index: what i and j add together beyond what each adds, averaged over coalitions.

    Coalitions of a size count alike, and so do sizes (Grabisch & Roubens 1999).

    >>> str(interaction(2, lambda S: Fraction(len(S) == 2), 0, 1))
    '1'
    """
    others = [p for p in range(n) if p not in (i, j)]
    total = Fraction(0)
    for S in _coalitions(others):
        more = utility(S | {i, j}) - utility(S | {i}) - utility(S | {j}) + utility(S)
        total += more * Fraction(1, (n - 1) * comb(n - 2, len(S)))
    return total


def gini(amounts: Sequence[float]) -> Fraction:
    """Half the mean absolute difference of all pairs, as a part of the mean; 0 if all amounts are 0.

    >>> str(gini([0, 1]))
    '1/2'
    """
    exact = [Fraction(amount) for amount in amounts]
    differences = sum((abs(a - b) for a in exact for b in exact), Fraction(0))
    return differences / (2 * len(exact) * sum(exact)) if any(exact) else Fraction(0)


def cheapest_cover(worth: Sequence[float], price: Sequence[float], target: float) -> frozenset[int] | None:
    """Mathematics §9: the cheapest of all sets of records of positive worth that add up to the target; None if none.

    >>> sorted(cheapest_cover([0.5, 0.25, 0.25], [3.0, 1.0, 1.0], 0.5))
    [1, 2]
    """
    sold = [i for i in range(len(worth)) if worth[i] > 0]
    if len(sold) > LARGEST_GAME:
        raise ValueError(f"at most {LARGEST_GAME} records can be enumerated, got {len(sold)}")
    covers = [S for S in _coalitions(sold) if fsum(worth[i] for i in S) >= target]
    return min(covers, key=lambda S: sum((Fraction(price[i]) for i in S), Fraction(0)), default=None)


def bandit(
    records: Sequence[Sequence[float]],
    labels: Sequence[object],
    validation: Sequence[tuple[Sequence[float], object]],
    noise: Sequence[Sequence[float]],
    k: int,
    t_max: int,
    target: float,
    exploration: float,
    rate: float,
    small: float = 1e-6,
) -> tuple[list[int], list[float], list[float]]:
    """Thesis, Algorithm 2, line by line: who is queried, the utility after each query, and Q in the end.

    ``noise[t]`` is what the owner adds to the record queried in step t. All centres begin at the origin, and the
    utility is the mean share of right labels among the k nearest centres.

    >>> bandit([[1.0]], ["a"], [([1.0], "a")], [[0.5]], k=1, t_max=1, target=2.0, exploration=1.0, rate=0.5)
    ([0], [1.0], [0.0])
    """
    n = len(records)
    q, count, centre = [0.0] * n, [0] * n, [[0.0] * len(records[0]) for _ in range(n)]

    def utility() -> float:
        right = 0
        for point, label in validation:
            far = [sum((a - b) ** 2 for a, b in zip(point, c, strict=True)) for c in centre]
            right += sum(labels[i] == label for i in sorted(range(n), key=lambda i: (far[i], i))[:k])
        return right / (len(validation) * min(k, n))

    now, asked, utilities = utility(), [], []
    for added in noise:
        if now >= target or min(count) == t_max:
            break
        score = [q[a] + exploration * (1 / (count[a] + small)) ** 0.5 * (t_max - count[a]) / t_max for a in range(n)]
        a = max((a for a in range(n) if count[a] < t_max), key=score.__getitem__)
        seen = [x + z for x, z in zip(records[a], added, strict=True)]
        centre[a] = [(c * count[a] + x) / (count[a] + 1) for c, x in zip(centre[a], seen, strict=True)]
        before, now = now, utility()
        q[a] += rate * (now - before - q[a])
        count[a] += 1
        asked.append(a)
        utilities.append(now)
    return asked, utilities, q
