"""The oracle is checked against games whose values are known in closed form, and against the other definition."""

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datassay import oracle


def test_shapley_of_the_airport_game_shares_each_stretch_among_those_who_need_it():
    costs = [Fraction(1), Fraction(3), Fraction(7)]

    def utility(S):
        return max((costs[i] for i in S), default=Fraction(0))

    expected = [Fraction(1, 3), Fraction(1, 3) + 1, Fraction(1, 3) + 1 + 4]
    assert oracle.shapley(3, utility) == expected


def test_banzhaf_of_a_weighted_majority_counts_swings():
    # Weights 4, 2, 1, 1 with quota 5: the well-known swing counts are 7, 1, 1, 1 of 8 (and sum to 10).
    weights = [4, 2, 1, 1]

    def utility(S):
        return Fraction(sum(weights[i] for i in S) >= 5)

    assert oracle.banzhaf(4, utility) == [Fraction(7, 8), Fraction(1, 8), Fraction(1, 8), Fraction(1, 8)]


@given(st.integers(1, 5), st.data())
def test_shapley_is_the_mean_marginal_contribution_over_all_orders(n, data):
    worth = {}

    def utility(S):
        if S not in worth:
            worth[S] = Fraction(data.draw(st.integers(-5, 5)))
        return worth[S]

    expected = [Fraction(0)] * n
    orders = list(permutations(range(n)))
    for order in orders:
        before = frozenset()
        for i in order:
            expected[i] += (utility(before | {i}) - utility(before)) / len(orders)
            before |= {i}
    assert oracle.shapley(n, utility) == expected


def test_leave_one_out_is_the_loss_of_the_whole_set():
    assert oracle.leave_one_out(3, lambda S: Fraction(len(S) ** 2)) == [5, 5, 5]


def test_utilities_follow_their_definitions():
    distances, match = [0.5, 0.5, 2.0], [False, True, True]
    fraction = oracle.fraction_utility(distances, match, k=2)
    soft = oracle.soft_utility(distances, match, k=2, n_classes=4)
    within = oracle.threshold_utility(distances, match, tau=0.5, n_classes=4)
    assert fraction(frozenset()) == 0
    assert soft(frozenset()) == within(frozenset()) == within(frozenset({2})) == Fraction(1, 4)
    assert fraction(frozenset({1})) == Fraction(1, 2)
    assert soft(frozenset({1})) == 1
    assert soft(frozenset({0, 1, 2})) == Fraction(1, 2)
    assert within(frozenset({0, 1, 2})) == Fraction(1, 2)
    # Ties go to the smaller index: at k = 1 record 0 is nearer than record 1.
    assert oracle.fraction_utility(distances, match, k=1)(frozenset({0, 1})) == 0


@pytest.mark.parametrize("n", [0, oracle.LARGEST_GAME + 1])
def test_enumeration_refuses_games_it_cannot_finish(n):
    with pytest.raises(ValueError, match="between 1 and"):
        oracle.shapley(n, lambda S: Fraction(0))
