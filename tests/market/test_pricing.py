"""Prices, the cheapest cover, and the owner's choice: against enumeration, scipy's MILP, and Mathematics §9 with erratum 11."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import datassay as da
from datassay import InputError, oracle
from datassay.market import cover, cover_kernels, gini

WORTH = st.lists(
    st.one_of(st.integers(-2, 12).map(lambda i: i / 8), st.floats(-1, 1).map(lambda x: round(x, 6))),
    min_size=1,
    max_size=11,
)
THETA = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
GAMMA = st.sampled_from([0.0, 0.5, 1.0, 4.0])


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
def test_gini_is_half_the_mean_difference(amounts):
    assert gini(amounts) == pytest.approx(float(oracle.gini(amounts)), abs=1e-12)


def test_gini_of_nothing_and_of_nonsense():
    assert gini([0, 0, 0]) == 0
    assert gini([1e308, 1e308, 1e308, 0]) == 0.25
    for bad in ([], [-1, 2], [math.nan], ["1", "2"], ["a"], [1j], [[1], [1, 2]]):
        with pytest.raises(InputError, match="amounts"):
            gini(bad)


def test_the_price_is_value_and_a_privacy_cost():
    values = da.knn_shapley([[0.0], [1.0], [9.0]], ["a", "a", "b"], [[0.5]], ["a"], k=1, ids=["x", "y", "z"])
    prices = da.price(values, theta=2.0, gamma=3.0)
    assert prices.values[0] == pytest.approx(values.values[0] + 3 * values.values[0] ** 2)
    assert math.isnan(prices.of("z"))
    assert prices.for_sale.tolist() == [True, True, False]
    assert "2 of 3 records are for sale" in prices.summary()
    assert prices.method == "knn_shapley"
    assert prices.notes == values.notes
    assert da.price([-1.0, 0.0]).notes == ("no record has a positive value: nothing is for sale",)


@settings(max_examples=300, deadline=None)
@given(WORTH, THETA, GAMMA, st.floats(0.01, 1), st.booleans())
def test_the_cover_is_the_cheapest_of_all(worth, theta, gamma, part, exactly):
    sold = [x for x in worth if x > 0]
    assume(sold)
    target = sum(sold[: max(1, round(part * len(sold)))]) if exactly else part * math.fsum(sold)
    target = min(target, math.fsum(sold))
    prices = da.price(worth, theta, gamma)
    bought = prices.buy(target)
    best = oracle.cheapest_cover(worth, prices.values.tolist(), target)
    assert bought.proven
    assert math.fsum(np.asarray(worth)[bought.chosen]) >= target
    assert bought.cost == pytest.approx(math.fsum(prices.values[list(best)]), rel=1e-9)
    assert bought.relaxed_cost <= bought.cost * (1 + 1e-12)
    assert bought.cost <= bought.greedy_cost
    assert math.fsum(np.asarray(worth)[bought.greedy]) >= target
    assert (np.asarray(worth)[bought.chosen] > 0).all()
    assert (np.asarray(worth)[bought.greedy] > 0).all()
    assert bought.payments.sum() == pytest.approx(bought.cost)


@settings(deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=20), THETA, st.floats(0.01, 1))
def test_the_greedy_cover_does_without_none_of_its_records(worth, theta, part):
    target = part * sum(worth)
    bought = da.price(worth, theta, 1.0).buy(target)
    given = np.array(worth)[bought.greedy]
    assert (given.sum() - given < target).all()


@pytest.mark.parametrize("theta", [0.5, 2.0, 3.0])
def test_scipys_milp_finds_the_same_cover(theta):
    from scipy.optimize import Bounds, LinearConstraint, milp

    worth = np.random.default_rng(3).gamma(2.0, size=60) / 60
    prices = da.price(worth, theta, 40.0 ** (theta - 1))
    bought = prices.buy(share=0.7)
    assert bought.proven
    theirs = milp(
        prices.values * 1e3,
        constraints=LinearConstraint(worth[None] / bought.target * 1e3, lb=1e3),
        integrality=np.ones(60),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    assert theirs.status == 0
    assert bought.cost == pytest.approx(theirs.fun / 1e3, rel=1e-8)


class TestErratum11:
    """The relaxation buys in the order of value for θ < 1, in the reverse for θ > 1; at θ = 1 all covers cost the same."""

    worth = np.random.default_rng(0).exponential(size=200) / 200

    def fractional_order(self, theta, gamma):
        """Who the linear relaxation buys, by scipy, at growing targets."""
        from scipy.optimize import linprog

        prices = da.price(self.worth, theta, gamma)
        bought = []
        for share in np.linspace(0.05, 0.95, 10):
            found = linprog(
                prices.values * 1e3, A_ub=-self.worth[None] * 1e3, b_ub=[-share * self.worth.sum() * 1e3], bounds=(0, 1)
            )
            bought.append(np.flatnonzero(found.x > 1e-6))
        return prices, bought

    @pytest.mark.parametrize(
        ("theta", "gamma", "sign"), [(0.0, 1.0, -1), (0.5, 1.0, -1), (2.0, 200.0, 1), (3.0, 4e4, 1)]
    )
    def test_the_order_of_the_relaxation(self, theta, gamma, sign):
        prices, bought = self.fractional_order(theta, gamma)
        assert prices.order.tolist() == np.argsort(sign * self.worth, kind="stable").tolist()
        for rows in bought:
            assert set(rows) == set(prices.order[: len(rows)])

    @pytest.mark.parametrize(("theta", "gamma"), [(1.0, 2.0), (2.0, 0.0), (0.0, 0.0)])
    def test_where_every_unit_of_value_costs_the_same(self, theta, gamma):
        worth = np.array([4, 3, 2, 2, 1, 1, 1, 0, -3]) / 8
        prices = da.price(worth, theta, gamma)
        covers = [rows for rows in ([0], [1, 4], [2, 3], [2, 4, 5], [3, 5, 6]) if worth[rows].sum() == 0.5]
        assert len(covers) >= 4
        costs = {round(float(prices.values[rows].sum()), 12) for rows in covers}
        assert costs == {round(prices.buy(0.5).cost, 12)}

    def test_high_prices_for_high_values_pay_more_owners(self):
        search = da.search_prices(self.worth, share=0.5, thetas=[0.0, 0.5, 2.0, 3.0], markups=[1.0])
        assert (np.diff(search.bought) >= 0).all()
        assert search.bought[-1] > 2 * search.bought[0]
        assert search.proven.all()


def the_core_finds_the_cheapest(seed, most, states):
    rng = np.random.default_rng(seed)
    worth = rng.integers(1, 40, int(rng.integers(2, most + 1))) / 8
    prices = da.price(worth, float(rng.choice([0.5, 1.5])), 2.0)
    target = float(rng.uniform(0.1, 0.9)) * math.fsum(worth)
    market = cover.Market(prices.order, worth, prices.values, target)
    found, _ = cover._search_core(market, market.rows, states)
    best = oracle.cheapest_cover(worth.tolist(), prices.values.tolist(), target)
    assert market.covers(found)
    assert market.price(found) == pytest.approx(math.fsum(prices.values[list(best)]), rel=1e-9)


class TestNumberOfRecords:
    """What the relaxation does not see: whole records are bought, so many or one more."""

    @settings(max_examples=300, deadline=None)
    @given(WORTH, THETA, GAMMA, st.floats(0.01, 1), st.sampled_from([1, 2, 8]))
    def test_exact_by_bounds_and_subsets_where_the_core_is_too_large(self, worth, theta, gamma, part, states):
        """With next to no states allowed, what the other ways of searching find is the cheapest all the same."""
        sold = [x for x in worth if x > 0]
        assume(sold)
        target = min(part * math.fsum(sold), math.fsum(sold))
        prices = da.price(worth, theta, gamma)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cover, "FEW_STATES", states)
            patch.setattr(cover, "MOST_STATES", states)
            bought = prices.buy(target)
        best = oracle.cheapest_cover(worth, prices.values.tolist(), target)
        assert bought.proven
        assert bought.value >= target
        assert bought.cost == pytest.approx(math.fsum(prices.values[list(best)]), rel=1e-9)

    @pytest.mark.parametrize("states", [1, 2, 3, 5, 9])
    def test_however_few_states_the_core_may_have_it_finds_the_cheapest_of_sixteen(self, states):
        """All subsets of the sixteen records that come next are combined with what states there are."""
        for seed in range(20):
            the_core_finds_the_cheapest(seed, 12, states)

    @pytest.mark.parametrize("states", [2, 4, 8])
    def test_the_core_stays_within_its_arrays(self, states, monkeypatch):
        """Compiled, it would not notice; not compiled, NumPy does."""
        for name in ("search_core", "_grow", "_last_within", "_plus"):
            monkeypatch.setattr(cover_kernels, name, getattr(cover_kernels, name).py_func)
        for seed in range(20):
            the_core_finds_the_cheapest(seed, 7, states)

    def test_what_the_core_proves_is_the_cheapest_within_its_slack(self):
        """Where the relaxation buys nearly twice what is known: the slack is a part of the cost known, not of its own."""
        worth, cost = np.array([9.0, 10.0, 10.0]), np.array([0.89, 1 - 1.2 * cover.SURE, 1.0])
        market = cover.Market(np.arange(3), worth, cost, 10.0)
        assert cover._search_core(market, np.array([2]), 2**12)[0].tolist() == [1]
        assert cover._search_core(market, np.array([2]), 2**12)[1]

    @given(st.lists(st.integers(1, 9).map(lambda i: i / 10), min_size=1, max_size=30), st.data())
    def test_the_first_that_reach_a_target_are_as_few_as_can_be_although_running_sums_are_rounded(self, worth, data):
        values, n = np.array(worth), len(worth)
        target = math.fsum(worth[: data.draw(st.integers(1, n))])
        market = cover.Market(np.arange(n), values, values, target)
        fewest = next(i for i in range(1, n + 1) if math.fsum(worth[:i]) >= target)
        assert market.first(np.arange(n)).tolist() == list(range(fewest))

    @settings(max_examples=60, deadline=None)
    @given(WORTH, THETA, GAMMA, st.floats(0.01, 1))
    def test_what_scipys_solver_says_is_checked_and_exact(self, worth, theta, gamma, part):
        sold = [x for x in worth if x > 0]
        assume(sold)
        target = min(part * math.fsum(sold), math.fsum(sold))
        prices = da.price(worth, theta, gamma)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (("FEW_STATES", 1), ("MOST_STATES", 1), ("HALVED", 0), ("NEAR", 1), ("COARSE", 0.0)):
                patch.setattr(cover, name, value)
            bought = prices.buy(target)
        best = oracle.cheapest_cover(worth, prices.values.tolist(), target)
        assert bought.value >= target
        assert bought.bound <= math.fsum(prices.values[list(best)]) * (1 + 1e-9)
        if bought.proven:
            assert bought.cost == pytest.approx(math.fsum(prices.values[list(best)]), rel=1e-9)

    @pytest.mark.parametrize("seed", range(1, 6))
    def test_scipys_solver_alone_finds_the_cheapest_and_proves_it(self, seed, monkeypatch):
        rng = np.random.default_rng(seed)
        prices = da.price(rng.uniform(0.1, 1, 25), float(rng.choice([0.5, 1.5])), 1.0)
        cheapest = prices.buy(share=0.5)
        for name, value in (("FEW_STATES", 1), ("MOST_STATES", 1), ("HALVED", 0), ("NEAR", 1), ("COARSE", 0.0)):
            monkeypatch.setattr(cover, name, value)
        bought = prices.buy(share=0.5)
        assert cheapest.proven
        assert bought.proven
        assert bought.cost == pytest.approx(cheapest.cost, rel=1e-9)

    def test_scipys_solver_settles_what_was_in_doubt_and_keeps_quiet(self, capfd):
        asked = []
        honest = cover._ask_scipy
        rng = np.random.default_rng(5)
        worth = 2 * rng.integers(10**6, 2 * 10**6, size=300) / 1e9
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cover, "_ask_scipy", lambda *given: asked.append(honest(*given)) or asked[-1])
            for theta in (0.5, 1.5):
                for share in (0.1, 0.5, 0.8):
                    bought = da.price(worth, theta, worth.sum() / (worth**theta).sum()).buy(share=share)
                    assert bought.cost * (1 - 1e-3) <= bought.bound <= bought.cost
        assert asked
        assert capfd.readouterr().out == ""

    @settings(max_examples=200, deadline=None)
    @given(WORTH, THETA, GAMMA, st.floats(0.01, 1), st.integers(1, 11))
    def test_no_cover_of_its_side_is_cheaper_than_a_bound(self, worth, theta, gamma, part, size):
        prices = da.price(worth, theta, gamma)
        rows = prices.order
        assume(len(rows))
        target = part * math.fsum(prices.worth[rows])
        market = cover.Market(rows, prices.worth, prices.values, target)
        sides = [cover._CoverSide.of(market, size, at_most) for at_most in (True, False)]
        everything = itertools.chain.from_iterable(itertools.combinations(rows, r) for r in range(1, len(rows) + 1))
        for some in map(list, everything):
            if math.fsum(prices.worth[some]) < target:
                continue
            cost = math.fsum(prices.values[some])
            inside = np.isin(rows, some)
            for side in sides:
                if len(some) == size or (len(some) < size) == side.at_most:
                    assert side.bound <= cost * (1 + 1e-12)
                    otherwise = inside != (side.reduced < 0)  # each of these costs its reduced price more
                    assert side.bound + np.abs(side.reduced[otherwise]).max(initial=0.0) <= cost * (1 + 1e-9)

    @pytest.mark.parametrize("n", [30, 40, 60, 100, 200])
    @pytest.mark.parametrize("theta", [0.0, 0.5, 1.0, 1.5, 2.0])
    def test_values_that_hardly_differ(self, n, theta):
        """Half of the records are worth half of everything, and one record more costs a record more."""
        worth = (1 + 1e-3 * np.random.default_rng(0).uniform(size=n)) / n
        prices = da.price(worth, theta, worth.sum() / (worth**theta).sum())
        bought = prices.buy(share=0.5)
        most = np.argsort(-worth)[: n // 2]
        assert math.fsum(worth[most]) >= bought.target
        assert len(bought) == n // 2
        assert bought.cost < math.fsum(prices.values[most])
        assert bought.cost - bought.bound <= 2e-8 * bought.cost
        assert bought.proven or n in (60, 100)

    def test_a_fixed_cost_a_record_buys_as_few_as_can_be(self):
        """At θ = 0 a cover of m records costs its worth and γ m: with as few as reach it, without surplus, it is optimal."""
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X, X_val = rng.normal(size=(300, 3)), rng.normal(size=(200, 3))
            y, y_val = X[:, 0] + 0.3 * rng.normal(size=300) > 0, X_val[:, 0] > 0
            worth = da.knn_shapley(X, y, X_val, y_val)
            sold = np.sort(worth.values[worth.values > 0])[::-1]
            gamma = sold.sum() / len(sold)
            for share in (0.3, 0.5, 0.8):
                bought = da.price(worth, 0.0, gamma).buy(share=share)
                fewest = int(np.searchsorted(np.cumsum(sold), bought.target)) + 1
                least = bought.target + gamma * fewest
                assert len(bought) == fewest
                assert least * (1 - 1e-12) <= bought.cost <= least * (1 + 1e-6)
                assert bought.bound >= max(least, bought.cost * (1 - 1e-8)) * (1 - 1e-12)

    def test_a_bound_is_below_every_cover(self):
        """Costs that differ in the eleventh digit: the search may stop at any of them, and its bound says so."""
        for seed in range(40):
            rng = np.random.default_rng(seed)
            n = int(rng.integers(6, 11))
            worth = 1 + rng.uniform(size=n) * 1e-9
            target = math.fsum(worth[rng.random(n) < 0.5]) or 1.0
            prices = da.price(worth, float(rng.choice([0.5, 1.1, 3.0])), 0.5)
            bought = prices.buy(target)
            best = oracle.cheapest_cover(worth.tolist(), prices.values.tolist(), target)
            assert bought.proven
            assert bought.bound <= math.fsum(prices.values[list(best)])

    @pytest.mark.parametrize(
        ("worth", "theta", "gamma", "target"),
        [
            ([1 + units * 2.0**-50 for units in (0, 0, 2, 3, 3, 2, 0, 0, 2)], 1.000001, 1e9, 6 + 2.0**-47),
            ([units / 7 for units in (4, 5, 9, 14, 5, 9)], 1.0, 0.5, 18 / 7),
            ([units / 7 for units in (1, 2, 5, 2, 18, 2, 4, 4, 11)], 1.0, 1e9, 23 / 7),
            ([1e12, 1e-6, 2e-6, 3.0], 0.5, 1.0, 1e12 + 3e-6),
        ],
    )
    def test_a_bound_is_below_every_cover_where_all_but_rounding_is_equal(self, worth, theta, gamma, target):
        prices = da.price(worth, theta, gamma)
        bought = prices.buy(target)
        best = math.fsum(prices.values[list(oracle.cheapest_cover(worth, prices.values.tolist(), target))])
        assert best * (1 - 1e-9) <= bought.relaxed_cost <= bought.bound <= best
        assert bought.proven

    def test_the_cover_is_no_dearer_than_the_greedy_one_to_the_last_digit(self):
        worth = [units / 1000 for units in (3, 6, 14, 1, 7, 1, 15, 10, 12)]
        bought = da.price(worth, 2.0, 0.0).buy(0.0285)
        assert bought.cost <= bought.greedy_cost

    @settings(max_examples=100, deadline=None)
    @given(
        st.lists(st.integers(1, 40), min_size=1, max_size=9),
        st.floats(0.01, 1),
        st.sampled_from([0.1, 1 / 3, 7e-5, 3.0]),
    )
    def test_multiples_of_a_unit_add_up_to_multiples_of_it(self, counts, part, unit):
        values = np.array(counts) * unit
        target = part * math.fsum(values)
        sums = [math.fsum(some) for r in range(1, len(counts) + 1) for some in itertools.combinations(values, r)]
        reached = min(x for x in sums if x >= target)
        found = cover._next_multiple(values, target)
        assert target <= found <= reached * (1 + 1e-12)
        step = unit * math.gcd(*counts)
        assert found == pytest.approx(max(target, math.ceil(target / step - 1e-9) * step), rel=1e-9)

    def test_values_that_were_rounded_are_settled(self):
        """No cover of values with four digits meets a target with more: the bound is of what can be met."""
        rng = np.random.default_rng(2)
        worth = np.round(rng.uniform(0.0005, 0.005, size=300), 4)
        for theta in (0.0, 1.0):
            bought = da.price(worth, theta, 1.0).buy(0.31234567)
            assert bought.value == pytest.approx(0.3124)
            assert bought.proven


def test_a_large_market_is_settled_or_says_how_far_it_is():
    worth = np.random.default_rng(1).gamma(2.0, size=3000) / 3000
    for theta in (0.5, 1.0, 2.0):
        bought = da.price(worth, theta, 1500.0 ** (theta - 1)).buy(share=0.8)
        assert bought.relaxed_cost * (1 - 1e-12) <= bought.bound <= bought.cost <= bought.greedy_cost
        assert bought.cost <= bought.bound * 1.001
        assert ("cheapest cover" in bought.summary()) == bought.proven


def test_values_next_to_nothing_are_bought_without_a_warning():
    for worth, theta in (([1e-310, 3e-310], 0.0), ([1e-300, 3e-300, 2e-300] * 20, 0.0), ([1e-200] * 60, 1.5)):
        bought = da.price(worth, theta, 1.0).buy(share=0.5)
        assert bought.proven
        assert bought.value >= bought.target


def test_one_dear_record_hides_no_cheaper_cover():
    """Beside a record of a million million, what the others cost is lost in rounding: it is taken out of the way."""
    bought = da.price([1e12, 3.0, 2.0, 2.0, 1.5], 0.5, 1.0).buy(4.0)
    assert bought.chosen.tolist() == [2, 3]
    assert bought.proven
    rng = np.random.default_rng(5)
    for _ in range(200):
        worth = [*rng.uniform(0.1, 1, 7).tolist(), 10.0 ** rng.integers(6, 14)]
        target = float(rng.uniform(0.2, sum(worth[:-1])))
        prices = da.price(worth, 0.5, 1.0)
        best = oracle.cheapest_cover(worth, prices.values.tolist(), target)
        bought = prices.buy(target)
        assert bought.proven
        assert bought.cost == pytest.approx(math.fsum(prices.values[list(best)]), rel=1e-9)


@pytest.mark.parametrize(
    ("worth", "theta", "gamma", "target", "cost"),
    [
        ([16, 9, 3, 20 / 3, 7 / 3, 6, 28 / 3, 16, 16, 3, 34 / 3, 31 / 3], 1.0, 0.0, 47.0, 47.0),
        ([94765271945835.1, 6.175697470540629e-08], 3.0, 0.0, 6.175697470540629e-08, 6.175697470540629e-08),
        ([1.0, 3.3e-17], 2.0, 0.0, 3.3e-17, 3.3e-17),
    ],
)
def test_a_cover_that_meets_the_target_exactly_is_not_lost_to_rounding(worth, theta, gamma, target, cost):
    for scale in (1.0, 0.01, 1 / 3):
        scaled = [x * scale for x in worth]
        prices = da.price(scaled, theta, gamma)
        best = oracle.cheapest_cover(scaled, prices.values.tolist(), target * scale)
        bought = prices.buy(target * scale)
        assert bought.proven
        assert bought.cost == pytest.approx(math.fsum(prices.values[list(best)]), rel=1e-12)
        assert bought.cost == pytest.approx(cost * scale, rel=1e-9)


def test_a_sum_is_a_sum_in_any_order():
    assert len(da.price([0.1, 0.2, 0.3]).buy(0.1 + 0.2 + 0.3)) == 3
    rng = np.random.default_rng(0)
    for _ in range(50):
        worth = rng.random(30)
        assert len(da.price(worth).buy(float(worth.sum()))) == 30


def test_the_owners_search():
    worth = [0.4, 0.3, 0.2, 0.1, -0.2]
    search = da.search_prices(worth, 0.5, thetas=[0.5, 2.0], gammas=[0.0, 1.0, 2.0])
    assert search.theta.tolist() == [0.5] * 3 + [2.0] * 3
    for row in range(6):
        bought = da.price(worth, search.theta[row], search.gamma[row]).buy(0.5)
        assert search.cost[row] == bought.cost
        assert search.inclusiveness[row] == len(bought) / 5
        assert search.gini[row] == gini(bought.payments)
    assert search.cost[search.best] == search.cost.max()
    assert search.inclusiveness[search.most_inclusive] == search.inclusiveness.max()
    tight = da.search_prices(
        worth, 0.5, thetas=[0.5, 2.0], gammas=[0.0, 1.0, 2.0], budget=float(np.median(search.cost))
    )
    assert tight.cost[tight.best] <= np.median(search.cost)
    never = da.search_prices(worth, 0.5, thetas=[1.0], gammas=[1.0], budget=0.01)
    assert "Nothing is sold" in never.summary()
    with pytest.raises(InputError, match="nothing is sold"):
        _ = never.best


def test_a_markup_means_the_same_at_every_theta():
    worth = np.array([0.4, 0.3, 0.2, 0.1, -0.2])
    search = da.search_prices(worth, 0.5, thetas=[0.0, 0.5, 2.0], markups=[0.5])
    for theta, gamma in zip(search.theta, search.gamma, strict=True):
        assert np.nansum(da.price(worth, theta, gamma).values) == pytest.approx(1.5)
    assert search.markup == pytest.approx([0.5] * 3)


def test_saved_and_loaded(tmp_path):
    prices = da.price([0.5, 0.2, -0.1], 2.0, 1.0, ids=["a", "b", "c"])
    search = da.search_prices([0.5, 0.2, -0.1], 0.3, budget=2.0)
    for kind in ("parquet", "json"):
        prices.save(tmp_path / f"p.{kind}")
        again = da.load_result(tmp_path / f"p.{kind}")
        assert again.ids.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(again.values, prices.values)
        assert again.buy(0.6).cost == prices.buy(0.6).cost
        search.save(tmp_path / f"s.{kind}")
        same = da.load_result(tmp_path / f"s.{kind}")
        np.testing.assert_array_equal(same.cost, search.cost)
        assert same.best == search.best
    assert prices.to_frame("pyarrow").column_names == ["id", "price", "value"]
    bought = prices.buy(0.6)
    bought.save(tmp_path / "b.parquet")
    assert da.load_result(tmp_path / "b.parquet").summary() == bought.summary()
    assert bought.to_frame("pyarrow").column_names == ["id", "payment", "value", "bought", "greedy"]


def test_plots():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert da.price([0.5, 0.2, -0.1]).plot(axes) is axes
    assert da.search_prices([0.5, 0.2], 0.3).plot(axes) is axes
    with pytest.raises(InputError, match="matplotlib axes"):
        da.price([0.5]).plot("file.svg")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: da.price([0.1], theta=-1), "theta must be a finite number at least 0"),
        (lambda: da.price([0.1], gamma=-1), "gamma must be a finite number at least 0"),
        (lambda: da.price([]), "nothing to price"),
        (lambda: da.price([0.1, math.nan], ids=["x", "y"]), "value of record y is nan"),
        (lambda: da.price([[0.1]]), "one number a record"),
        (lambda: da.price(["a"]), "one number a record"),
        (lambda: da.price(["0.5", "0.3"]), "one number a record"),
        (lambda: da.price(np.array(["2026-01-01"], "M8[D]")), "one number a record"),
        (lambda: da.price([0.5, 1j]), "one number a record"),
        (lambda: da.price([10**400]), "one number a record"),
        (lambda: da.price([0.1, None], ids=["x", "y"]), "value of record y is nan"),
        (lambda: da.price(np.ma.masked_array([0.5, 0.3], [False, True])), "one number a record"),
        (lambda: da.price([0.1], ids=[1, 2]), "ids has 2 entries for 1"),
        (lambda: da.price([1e300], theta=3), "not finite"),
        (lambda: da.price([1e308], theta=1), "not finite"),
        (lambda: da.price([-1.0]).buy(share=0.5), "nothing is for sale"),
        (lambda: da.search_prices([-1.0], share=0.5), "nothing is for sale"),
        (lambda: da.search_prices([1.0], share=0.5, markups=[1.0], gammas=[1.0]), "not both"),
        (lambda: da.search_prices([1.0], share=0.5, thetas=2.0), "thetas must be a list"),
        (lambda: da.search_prices([1.0], share=0.5, thetas=[[1.0], 2.0]), "thetas must be a list"),
        (lambda: da.price([0.5, 0.2]).buy(0.8), "out of reach: the 2 records for sale are worth 0.7 together"),
        (lambda: da.price([-0.5]).buy(0.8), "nothing is for sale"),
        (lambda: da.price([0.5]).buy(), "name one of target"),
        (lambda: da.price([0.5]).buy(0.2, share=0.5), "name one of target"),
        (lambda: da.price([0.5]).buy(0), "target must be"),
        (lambda: da.price([0.5]).buy(share=1.2), "share must be"),
        (lambda: da.price([1e-10, 1e-11]).buy(share=1e-320), "share=1e-320 is too small"),
        (lambda: da.search_prices([0.5, 0.1], 0.2, thetas=[2000.0]), "each of thetas must be such that .* θ = 2000"),
        (lambda: da.search_prices([50.0, 0.1], 0.2, thetas=[2000.0]), "each of thetas must be such that .* θ = 2000"),
        (lambda: da.search_prices([0.5], 0.2, thetas=[]), "thetas must be a list"),
        (lambda: da.search_prices([0.5], 0.2, thetas="2"), "thetas must be a list"),
        (lambda: da.search_prices([0.5], 0.2, budget=0), "budget must be"),
        (lambda: da.search_prices([0.5], 0.2, markups=[-1]), "markups must be"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_private_values_are_not_for_a_price_list():
    rng = np.random.default_rng(0)
    private = da.private_tknn_shapley(
        rng.normal(size=(50, 2)), np.arange(50) % 2, rng.normal(size=(5, 2)), [0, 1, 0, 1, 0]
    )
    with pytest.raises(InputError, match="each for its owner alone"):
        da.price(private)


def test_powers_of_what_is_not_for_sale_are_not_taken():
    prices = da.price([0.5, -2.0], theta=5000.0, gamma=0.0)  # a warning would be an error
    assert prices.values[0] == 0.5
    assert math.isnan(prices.values[1])


def test_a_search_among_records_worth_nothing_is_refused():
    with pytest.raises(InputError, match="nothing is for sale"):
        da.search_prices([0.0, -1.0], 1.0)


def test_a_search_looks_on_both_sides_of_theta_one():
    """Below 1 the valuable records are the cheaper ones by value, above 1 the others (Mathematics §9)."""
    tried = sorted(set(da.search_prices([0.5, 0.2, 0.1], share=0.5).theta.tolist()))
    assert tried == [0.0, 0.5, 1.0, 1.5, 2.0, 3.0]


def test_a_budget_and_a_cost_may_be_parts_of_one():
    search = da.search_prices([0.5, 0.2, 0.1], share=0.5, thetas=[1.0], markups=[0.25, 0.75], budget=0.5)
    np.testing.assert_allclose(search.markup, [0.25, 0.75])
    np.testing.assert_allclose(search.gamma, [0.25, 0.75])  # at θ = 1 the cost is γ times the value
    assert search.budget == 0.5


def test_the_gini_of_one_owner_who_has_it_all_is_one_but_for_her_own_share():
    for n in (2, 5, 40):
        assert gini([0.0] * (n - 1) + [7.0]) == pytest.approx(1 - 1 / n)
