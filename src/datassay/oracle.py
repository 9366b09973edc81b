"""The definitions, by enumeration: slow, obvious, sharing no code with the fast path.

A game has n players and a utility v(S) of a set of players. Its values are averages of what a player adds to a
coalition; here every coalition is visited, so n is at most ``LARGEST_GAME``. The k-NN utilities are written
from their definitions (SPEC §1, §3), with neighbours sorted by distance and ties going to the smaller index.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb

Utility = Callable[[frozenset[int]], Fraction]
LARGEST_GAME = 16


def _coalitions(players: Sequence[int]) -> Iterator[frozenset[int]]:
    for size in range(len(players) + 1):
        for members in combinations(players, size):
            yield frozenset(members)


def _semivalue(n: int, utility: Utility, weight: Callable[[int], Fraction]) -> list[Fraction]:
    if not 1 <= n <= LARGEST_GAME:
        raise ValueError(f"n must be between 1 and {LARGEST_GAME} for enumeration, got {n}")
    worth = {coalition: utility(coalition) for coalition in _coalitions(range(n))}
    values = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        values.append(sum((weight(len(S)) * (worth[S | {i}] - worth[S]) for S in _coalitions(others)), Fraction(0)))
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
    """SPEC §1 ``fraction``: the matching among the k nearest in S, divided by k."""

    def utility(S: frozenset[int]) -> Fraction:
        return Fraction(sum(bool(match[i]) for i in _nearest(distances, S, k)), k)

    return utility


def soft_utility(distances: Sequence[float], match: Sequence[bool], k: int, n_classes: int) -> Utility:
    """SPEC §1 ``soft``: the share of matching labels among the k nearest in S; 1/C for nobody."""

    def utility(S: frozenset[int]) -> Fraction:
        near = _nearest(distances, S, k)
        if not near:
            return Fraction(1, n_classes)
        return Fraction(sum(bool(match[i]) for i in near), len(near))

    return utility


def threshold_utility(distances: Sequence[float], match: Sequence[bool], tau: float, n_classes: int) -> Utility:
    """SPEC §3: the share of matching labels among those of S within tau; 1/C when there are none."""

    def utility(S: frozenset[int]) -> Fraction:
        near = [i for i in S if distances[i] <= tau]
        if not near:
            return Fraction(1, n_classes)
        return Fraction(sum(bool(match[i]) for i in near), len(near))

    return utility
