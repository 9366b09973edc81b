"""Accounting: against closed forms, against itself, and against another accountant's published number."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from datassay import InputError
from datassay.privacy import Cost, Guarantee, add_noise, calibrate, total_delta, total_epsilon
from datassay.privacy.accounting import accountant_of, gaussian_delta


def hockey_stick(p, q, epsilon, low, high):
    """δ(ε) = ∫ (p − e^ε q)₊ by numerical integration, straight from the definition."""
    return integrate.quad(lambda x: max(0.0, p(x) - math.exp(epsilon) * q(x)), low, high, limit=500)[0]


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_gaussian_delta_is_the_hockey_stick_divergence(mu, epsilon):
    one, other = stats.norm(mu).pdf, stats.norm(0).pdf
    assert gaussian_delta(mu, epsilon) == pytest.approx(hockey_stick(one, other, epsilon, -12, 12 + mu), abs=1e-8)


def test_a_huge_epsilon_does_not_overflow():
    assert gaussian_delta(50.0, 2000.0) < 1.0
    assert gaussian_delta(0.01, 5000.0) == 0.0


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_sampled_gaussian_noise_is_the_divergence_of_its_mixture(epsilon):
    q, sigma = 0.1, 1.5

    def mixture(x):
        return (1 - q) * stats.norm(0, sigma).pdf(x) + q * stats.norm(1, sigma).pdf(x)

    plain = stats.norm(0, sigma).pdf
    expected = max(hockey_stick(mixture, plain, epsilon, -20, 20), hockey_stick(plain, mixture, epsilon, -20, 20))
    ours = total_delta([Cost("gaussian", sigma, sampling=q)], epsilon)
    assert expected <= ours + 1e-8  # never too optimistic, up to the error of the integral
    assert ours == pytest.approx(expected, rel=1e-2, abs=1e-7)


@pytest.mark.parametrize("scale", [0.7, 2.0, 5.0])
@pytest.mark.parametrize("q", [1.0, 0.2])
def test_discrete_gaussian_noise_is_summed_from_the_definition(scale, q):
    x = np.arange(-400, 401)
    weight = np.exp(-(x**2) / (2 * scale**2))
    base = weight / weight.sum()
    moved = (1 - q) * base + q * np.roll(base, 1)
    for epsilon in (0.1, 0.5):
        expected = max(
            np.maximum(moved - math.exp(epsilon) * base, 0).sum(), np.maximum(base - math.exp(epsilon) * moved, 0).sum()
        )
        ours = total_delta([Cost("discrete gaussian", scale, sampling=q)], epsilon)
        assert expected <= ours * (1 + 1e-9) + 1e-12
        assert ours == pytest.approx(expected, rel=2e-2, abs=1e-7)


@pytest.mark.parametrize("noise", ["laplace", "discrete laplace"])
@pytest.mark.parametrize("scale", [0.5, 2.0, 10.0])
def test_laplace_noise_costs_its_sensitivity_over_its_scale(noise, scale):
    assert total_epsilon([Cost(noise, scale)], 1e-12) == pytest.approx(1 / scale, rel=1e-3)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.floats(2, 50), st.integers(1, 30)), min_size=1, max_size=4), st.sampled_from([1e-3, 1e-6]))
def test_gaussian_costs_compose_like_their_squares(parts, delta):
    costs = [Cost("gaussian", scale, count=count) for scale, count in parts]
    mu = math.sqrt(sum(count / scale**2 for scale, count in parts))
    epsilon = total_epsilon(costs, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert epsilon == 0 or gaussian_delta(mu, epsilon * (1 - 1e-6)) > delta


def test_closed_form_and_distributions_agree():
    gaussian = Cost("gaussian", 20.0, count=50)
    nearly_all = Cost("gaussian", 20.0, count=50, sampling=1 - 1e-12)
    assert accountant_of([gaussian]) != accountant_of([nearly_all])
    assert total_epsilon([gaussian], 1e-5) == pytest.approx(total_epsilon([nearly_all], 1e-5), rel=1e-3)


def test_different_kinds_of_noise_compose():
    both = [Cost("laplace", 10.0), Cost("discrete gaussian", 20.0, count=3)]
    apart = [total_epsilon([cost], 1e-6) for cost in both]
    together = total_epsilon(both, 1e-6)
    assert max(apart) < together < sum(apart) * 1.001


def test_the_published_setting_needs_the_published_noise():
    """Mathematics §10: ε = 0.1, δ = 1e-4, 200 validation points, q = 0.01 needs σ = 3.62."""
    for noise in ("gaussian", "discrete gaussian"):
        assert calibrate(noise, 0.1, 1e-4, count=200, sampling=0.01).scale == pytest.approx(3.62, abs=0.005)


@pytest.mark.parametrize("noise", ["gaussian", "discrete gaussian", "laplace"])
@pytest.mark.parametrize(("epsilon", "count", "sampling"), [(0.2, 1, 1.0), (2.0, 40, 1.0), (0.2, 40, 0.05)])
def test_calibration_is_just_enough(noise, epsilon, count, sampling):
    cost = calibrate(noise, epsilon, 1e-5, count=count, sampling=sampling)
    assert total_epsilon([cost], 1e-5) <= epsilon * (1 + 1e-9)
    less = Cost(noise, cost.scale * 0.99, count=count, sampling=sampling)
    assert total_epsilon([less], 1e-5) > epsilon


@pytest.mark.parametrize("epsilon", [5.0, 20.0, 150.0])
def test_a_large_epsilon_needs_less_noise_than_the_sensitivity(epsilon):
    """Down to where δ(ε) of the closed form is δ, by another search."""
    from scipy.optimize import brentq

    mu = brentq(lambda mu: gaussian_delta(mu, epsilon) - 1e-5, 1e-3, 50)
    assert mu > 1
    assert calibrate("gaussian", epsilon, 1e-5).scale == pytest.approx(1 / mu, rel=2e-4)


BASE = {"epsilon": 0.5, "delta": 1e-5, "count": 20, "sampling": 0.1}


@pytest.mark.parametrize(
    ("name", "values", "more_noise"),
    [
        ("epsilon", [0.1, 0.5, 1.0], False),
        ("delta", [1e-7, 1e-5, 1e-3], False),
        ("count", [1, 20, 100], True),
        ("sampling", [0.01, 0.1, 0.5], True),
        ("sensitivity", [1, 2, 5], True),
    ],
)
def test_calibration_is_monotone_in_every_argument(name, values, more_noise):
    scales = [calibrate("discrete gaussian", **(BASE | {name: value})).scale for value in values]
    assert scales == sorted(scales, reverse=not more_noise)
    assert len(set(scales)) == len(scales)


def test_replacing_a_sampled_record_costs_more_than_removing_it():
    removed, replaced = (
        total_epsilon([Cost("gaussian", 4.0, count=50, sampling=0.1, neighbours=n)], 1e-5)
        for n in ("add-remove", "replace")
    )
    assert removed < replaced < 3 * removed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibrate("gaussian", 0, 1e-5), "epsilon must be a finite number above 0"),
        (lambda: calibrate("gaussian", 1, 0), "delta must be a finite number above 0 and below 1"),
        (lambda: calibrate("gaussian", 1, 1.0), "delta must be a finite number above 0 and below 1"),
        (lambda: calibrate("gaussian", 1, 1e-5, sampling=0), "sampling must be a finite number above 0 and at most 1"),
        (lambda: calibrate("gaussian", 1, 1e-5, sampling=1.5), "sampling must be a finite number"),
        (lambda: calibrate("gaussian", 1, 1e-5, relation="near"), "relation must be one of 'add-remove', 'replace'"),
        (lambda: calibrate("pink", 1, 1e-5), "noise must be one of"),
        (lambda: Cost("discrete gaussian", 1.0, sensitivity=1.5), "sensitivity must be a whole number"),
        (lambda: Cost("laplace", 1.0, sampling=0.5, neighbours="replace"), "Gaussian noise only"),
        (lambda: Cost("laplace", -1.0), "scale must be"),
        (lambda: add_noise([0.5], "discrete laplace", 1.0), "for whole numbers"),
        (lambda: add_noise([1], "discrete laplace", 0.0), "scale must be"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_nothing_released_costs_nothing():
    assert total_epsilon([], 1e-5) == total_delta([], 1.0) == 0.0


@pytest.mark.parametrize("noise", ["gaussian", "discrete gaussian", "laplace", "discrete laplace"])
def test_noise_has_its_distribution_and_is_never_the_same_twice(noise):
    n, scale = 2000, 3.0
    drawn = add_noise(np.full(n, 10), noise, scale) - 10
    again = add_noise(np.full(n, 10), noise, scale) - 10
    assert not np.array_equal(drawn, again)
    if "gaussian" in noise:
        variance = scale**2
    elif noise == "laplace":
        variance = 2 * scale**2
    else:
        a = math.exp(-1 / scale)
        variance = 2 * a / (1 - a) ** 2
    # Six standard errors: the fourth moment is 3 (Gaussian) to 6 (Laplace) times the squared variance.
    assert abs(drawn.mean()) < 6 * math.sqrt(variance / n)
    assert abs(drawn.var() - variance) < 6 * variance * math.sqrt(5 / n)
    assert (drawn.dtype == np.int64) == noise.startswith("discrete")


def test_a_guarantee_says_everything():
    promise = Guarantee("noisy counts", 0.1, 1e-4, "add-remove", "privacy-loss distributions", 0.01, "owner")
    for part in ("ε = 0.1", "δ = 0.0001", "added or removed", "noisy counts", "chance 0.01", "for: owner"):
        assert part in str(promise)
    published = Guarantee("m", 1.0, 1e-5, "replace", "a", certified=False)
    assert "NOT CERTIFIED" in str(published)
    assert published.to_dict()["relation"] == "replace"


def test_the_guarantee_of_a_rehearsal_promises_nothing():
    """Its noise can be repeated, whatever ε would be: the number does not stand where a promise does."""
    told = str(Guarantee("m", 220.0, 0.0, "replace", "a", audience="nobody", certified=False))
    assert told.startswith("none: a rehearsal, whose noise can be repeated; for real it would be at best (ε = 220, δ")
    assert "NOT CERTIFIED" not in told


@pytest.mark.parametrize(
    ("epsilon", "delta", "count", "chance"),
    [
        (0.1, 1e-4, 200, 0.01),
        (0.5, 1e-5, 200, 0.01),
        (1.0, 1e-5, 50, 0.1),
        (2.0, 1e-6, 1000, 0.02),
        (1.0, 1e-5, 20, 1.0),
    ],
)
def test_calibration_agrees_with_the_prv_accountant(epsilon, delta, count, chance):
    """An independent accountant (Gopi, Lee and Wutschitz 2021): at our noise, its ε is ours to 1%."""
    from prv_accountant import GaussianMechanism, PoissonSubsampledGaussianMechanism, PRVAccountant

    def peer(scale):
        if chance == 1:
            mechanism = GaussianMechanism(noise_multiplier=scale)
        else:
            mechanism = PoissonSubsampledGaussianMechanism(noise_multiplier=scale, sampling_probability=chance)
        accountant = PRVAccountant(
            prvs=[mechanism], max_self_compositions=[count], eps_error=epsilon / 100, delta_error=delta / 1000
        )
        return accountant.compute_epsilon(delta=delta, num_self_compositions=[count])[1]

    scale = calibrate("gaussian", epsilon, delta, count=count, sampling=chance).scale
    assert peer(scale) == pytest.approx(epsilon, rel=0.01)
    # The scale at which the peer finds ε is ours to 1% too.
    assert peer(1.01 * scale) < epsilon < peer(0.99 * scale)
    # Counts get discrete noise, of nearly the same scale.
    assert calibrate("discrete gaussian", epsilon, delta, count=count, sampling=chance).scale == pytest.approx(
        scale, rel=0.01
    )


def test_without_sampling_a_replaced_record_is_in_the_sensitivity_alone():
    """The distance of replaced records is given as the sensitivity: together with other noise nothing is added to it."""
    other = Cost("laplace", 50.0)
    alike = [Cost("gaussian", 3.0, 2.0, count=2, neighbours=relation) for relation in ("add-remove", "replace")]
    assert total_epsilon([alike[0], other], 1e-5) == total_epsilon([alike[1], other], 1e-5)
