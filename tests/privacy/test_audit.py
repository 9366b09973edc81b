"""Audits: they leave honest mechanisms alone, and catch each sabotage."""

import math

import numpy as np
import pytest

import datassay as da
from datassay.privacy import Cost, accounting, add_noise, auditing, calibrate, records, releases, sampling
from datassay.privacy.evidence import lower_rate, one_run_bound, upper_rate

DELTA, SURE = 1e-5, 0.99999  # an honest mechanism is refuted once in 100,000 audits


@pytest.fixture(scope="module", autouse=True)
def _coarse_accounting():
    """Noise is calibrated on a grid ten times as coarse, ten times as fast.

    It then is at most one part in 10,000 off, and never too little. No audit of fewer than 10⁸ releases could tell: one
    of 20,000, the largest here, sees noise that is wrong by 10%, and what is to be caught is wrong by 30% or more. That
    the grid as it is gives the right noise is held by test_accounting.
    """
    caches = (accounting._calibrated, accounting._composed_epsilon)
    with pytest.MonkeyPatch.context() as patched:
        compose = accounting._compose

        def coarse(costs, step=None):
            finest = min([1e-3, *(cost.sensitivity / cost.scale / 10 for cost in costs)])
            return compose(costs, max(1e-5, finest) if step is None else step)

        patched.setattr(accounting, "_compose", coarse)
        for cache in caches:
            cache.cache_clear()
        yield
    for cache in caches:
        cache.cache_clear()


HONEST = [
    dict(mechanism="gaussian", trials=2000),
    dict(mechanism="discrete gaussian", trials=2000),
    dict(mechanism="laplace", trials=2000),
    dict(mechanism="discrete laplace", trials=2000),
    dict(mechanism="private_tknn_shapley", trials=6000),
    dict(mechanism="private_tknn_shapley", neighbours="replace", trials=6000),
    dict(mechanism="private_tknn_shapley", sampling=0.5, trials=6000),
    dict(mechanism="private_tknn_shapley", sampling=0.3, neighbours="replace", trials=4000),
    dict(mechanism="private_tknn_shapley", sampling=0.3, release="paper", trials=800),
    dict(mechanism="private_tknn_shapley", release="paper", trials=2000),
    dict(mechanism="private_knn_shapley", k=3, trials=2000),
    dict(mechanism="private_knn_shapley", k=1, sampling=0.5, trials=800),
    dict(mechanism="noisy_records", trials=4000),
]


@pytest.mark.parametrize("settings", HONEST, ids=lambda s: "-".join(str(v) for v in s.values()))
def test_honest_mechanisms_are_not_refuted(settings):
    claims = (2.0,) if settings.get("sampling") == 0.3 else (1.0, 4.0) if "sampling" in settings else (0.5, 1.0, 4.0)
    for epsilon in claims:
        # At ε ≤ 1 neither 2000 releases nor 500 tell a mechanism from one of half the noise (it would take 10,000): both
        # see one that gives the data away, so that 500 will do.
        few = 4 if epsilon <= 1 and "sampling" not in settings else 1
        trials = settings["trials"] // few
        found = da.audit(**settings | {"trials": trials}, epsilon=epsilon, delta=DELTA, confidence=SURE)
        assert not found.refuted, found
        assert found.lower_bound <= epsilon
        assert found.noise_bound <= epsilon * 1.01
        if "sampling" not in settings and epsilon == 4:
            assert found.noise_bound > 0.3  # and the audit is no formality


def spoiled(monkeypatch, factor):
    honest = releases.add_noise
    monkeypatch.setattr(releases, "add_noise", lambda values, noise, scale: honest(values, noise, scale * factor))


@pytest.mark.parametrize("factor", [0.5, 1 / math.sqrt(2)], ids=["halved", "without the root of 2"])
@pytest.mark.parametrize(
    "settings",
    [
        dict(mechanism="private_tknn_shapley", trials=20_000),
        dict(mechanism="private_tknn_shapley", release="paper", trials=4000),
        dict(mechanism="private_knn_shapley", trials=4000),
    ],
    ids=lambda s: "-".join(map(str, s.values())),
)
def test_too_little_noise_is_caught(settings, factor, monkeypatch):
    spoiled(monkeypatch, factor)
    if factor == 0.5:  # seen by a quarter of the trials: at 1000 its rates are 13 deviations beyond what is allowed
        settings = settings | {"trials": settings["trials"] // 4}
    found = da.audit(**settings, epsilon=6.0, delta=DELTA)
    assert found.refuted, found


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_a_value_told_with_next_to_no_noise_is_caught(relation, monkeypatch):
    """Whichever way the pair of data sets differs, it moves the value that is looked at."""
    spoiled(monkeypatch, 0.01)
    assert da.audit("private_knn_shapley", epsilon=6.0, delta=DELTA, relation=relation, k=3, trials=200).refuted


def test_the_papers_formula_is_caught():
    """Erratum 5: σ = √3 · √log(1.25/δ) / ε for three counts that all move by one."""
    epsilon = 6.0
    sigma = math.sqrt(3) * math.sqrt(math.log(1.25 / DELTA)) / epsilon

    def published(count, trials):
        return add_noise(np.full((trials, 3), float(count)), "gaussian", sigma)

    claimed = [calibrate("gaussian", epsilon, DELTA, sensitivity=math.sqrt(3))]
    found = da.audit(published, 4, 5, epsilon=epsilon, delta=DELTA, costs=claimed, trials=6000)
    assert found.refuted, found

    def corrected(count, trials):
        return add_noise(np.full((trials, 3), float(count)), "gaussian", sigma * math.sqrt(2))

    found = da.audit(corrected, 4, 5, epsilon=epsilon, delta=DELTA, costs=claimed, trials=2000, confidence=SURE)
    assert not found.refuted, found


def test_a_sensitivity_too_small_for_replaced_records_is_caught(monkeypatch):
    def forgetful(release, setting, points):
        return calibrate("discrete gaussian", setting.epsilon, setting.delta, count=points, neighbours="replace")

    monkeypatch.setattr(releases, "_threshold_cost", forgetful)
    found = da.audit("private_tknn_shapley", epsilon=6.0, delta=DELTA, neighbours="replace", trials=20_000)
    assert found.refuted, found
    # Records that are only added or removed have the sensitivity that was used: nothing wrong there.
    monkeypatch.setattr(
        releases,
        "_threshold_cost",
        lambda r, s, points: calibrate("discrete gaussian", s.epsilon, s.delta, count=points),
    )
    assert not da.audit("private_tknn_shapley", epsilon=6.0, delta=DELTA, trials=4000, confidence=SURE).refuted


def test_noise_used_twice_is_caught(monkeypatch):
    honest = releases.add_noise

    def reused(values, noise, scale):
        return np.broadcast_to(honest(values[:1], noise, scale), np.shape(values))

    monkeypatch.setattr(releases, "add_noise", reused)
    found = da.audit("private_tknn_shapley", epsilon=1.0, delta=DELTA, trials=4000)
    assert found.refuted, found
    assert found.bounds["near one of two, learned guess"] > 1.0
    assert found.lower_bound > 1.0


def test_a_record_counted_twice_is_caught(monkeypatch):
    from datassay.privacy import kernels

    honest = kernels.count_neighbours

    def twice(inside, codes, targets, counts):
        honest(inside, codes, targets, counts)
        counts *= 2

    monkeypatch.setattr(kernels, "count_neighbours", twice)
    found = da.audit("private_tknn_shapley", epsilon=6.0, delta=DELTA, trials=6000)
    assert found.refuted, found


@pytest.mark.parametrize("leaks", [False, True])
def test_samples_that_are_not_secret_are_caught(leaks, monkeypatch):
    """Amplification by sampling is worth nothing to somebody who knows the sample."""
    chance, points, runs = 0.1, 20, []
    monkeypatch.setattr(sampling, "new_key", lambda: runs.append(len(runs).to_bytes(32, "little")) or runs[-1])
    costs = []

    def release(records, trials):
        views = []
        for _ in range(trials):
            result = da.private_tknn_shapley(
                records, [1] * len(records), [[0.1]] * points, [1] * points, 1.0, "euclidean", n_classes=2,
                epsilon=2.0, delta=DELTA, sampling=chance, n_jobs=1,
            )  # fmt: skip
            costs[:] = result.costs
            view = [result.statistics.counts[:, 0].sum()]
            if leaks:  # who was in which sample is published too
                view.append(sum(2 in sampling.members(runs[-1], (t,), len(records), chance) for t in range(points)))
            views.append(view)
        return views

    first, second = [[0.0]] * 3, [[0.0]] * 2
    release(first, 1)
    found = da.audit(release, first, second, epsilon=2.0, delta=DELTA, costs=list(costs), trials=600, confidence=0.9999)
    assert found.refuted == leaks, found


@pytest.mark.parametrize(("sampling", "parts"), [(1.0, 1), (0.5, 2)])
def test_the_chance_of_error_is_shared_by_what_is_put_to_the_test(sampling, parts, monkeypatch):
    """Bounds and samples may each be wrong with half of the chance that the audit as a whole may be wrong with."""
    asked = []
    play, bounds = auditing.GAMES["private_tknn_shapley"], auditing.evaluate
    monkeypatch.setitem(
        auditing.GAMES, "private_tknn_shapley", lambda claim: [asked.append(claim.error), play(claim)][1]
    )
    monkeypatch.setattr(auditing, "evaluate", lambda *given: [asked.append(given[-1]), bounds(*given)][1])
    da.audit("private_tknn_shapley", 1.0, 1e-5, sampling=sampling, trials=100, confidence=0.9)
    assert asked == pytest.approx([0.1 / parts] * 2)


def test_rates_are_bounded_as_clopper_and_pearson_do():
    from scipy.stats import binomtest

    for k, n in ((0, 10), (3, 10), (10, 10), (250, 1000)):
        exact = binomtest(k, n).proportion_ci(0.98, method="exact")
        assert lower_rate(k, n, 0.01) == pytest.approx(exact.low, abs=1e-12)
        assert upper_rate(k, n, 0.01) == pytest.approx(exact.high, abs=1e-12)


def test_the_bound_without_known_noise_is_tight_for_randomised_response():
    """A coin told truthfully with chance e^ε/(1+e^ε) is exactly ε-differentially private."""
    rng = np.random.default_rng(0)

    def told(bit, trials, epsilon=2.0):
        true = rng.random(trials) < 1 / (1 + math.exp(-epsilon))
        return np.where(true, bit, 1 - bit)

    found = da.audit(told, 0, 1, epsilon=2.0, delta=1e-9, trials=40_000, confidence=SURE)
    assert 1.8 < found.lower_bound < 2.0
    assert da.audit(told, 0, 1, epsilon=1.5, delta=1e-9, trials=40_000).refuted


def test_one_run_bounds():
    from scipy.optimize import brentq
    from scipy.stats import binom

    # Without δ the number of correct guesses is at most binomial.
    exact = brentq(lambda e: binom.sf(79, 100, 1 / (1 + math.exp(-e))) - 0.01, 0, 5)
    assert one_run_bound(80, 100, 1000, 1e-300, 0.01) == pytest.approx(exact, abs=1e-6)
    assert one_run_bound(80, 100, 1000, 1e-4, 0.01) < exact
    assert one_run_bound(0, 100, 1000, 1e-5, 0.01) == 0.0


def test_plots_and_words():
    found = da.audit("gaussian", epsilon=2.0, delta=DELTA, trials=400)
    ax = found.plot()
    assert ax.get_title(loc="left") == "The claim is not refuted"
    assert "not refuted. 400 trials show ε ≥" in str(found)

    def nothing_hidden(value, trials):
        return np.full(trials, value)

    found = da.audit(nothing_hidden, 0, 1, epsilon=2.0, delta=DELTA, trials=400)
    assert found.plot().get_title(loc="left") == "The claim is refuted"
    assert "REFUTED" in repr(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(mechanism="nothing"), "mechanism must be one of"),
        (dict(mechanism="gaussian", epsilon=0), "epsilon must be"),
        (dict(mechanism="gaussian", delta=2), "delta must be"),
        (dict(mechanism="gaussian", trials=3), "trials must be"),
        (dict(mechanism="gaussian", confidence=1), "confidence must be"),
        (dict(mechanism="private_tknn_shapley", release="other"), "release must be one of"),
        (dict(mechanism="private_knn_shapley", k=0), "k must be"),
        (dict(mechanism=lambda data, trials: np.zeros(3), first=0, second=1), "must return 5000 releases"),
        (dict(mechanism=lambda data, trials: np.full(trials, np.nan), first=0, second=1), "not finite"),
        (dict(mechanism=lambda d, n: np.zeros((n, d)), first=1, second=2), "of shapes"),
    ],
)
def test_bad_arguments_are_named(given, message):
    with pytest.raises(da.InputError, match=message):
        da.audit(**given)


def test_costs_can_be_given_as_they_are():
    assert not da.audit(
        lambda count, n: add_noise(np.full(n, float(count)), "laplace", 1.0),
        0, 1, epsilon=1.0, delta=1e-9, costs=[Cost("laplace", 1.0)], trials=2000, confidence=SURE,
    ).refuted  # fmt: skip


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        (lambda honest, key, place, n, chance: honest(key, (0,), n, chance), "validation points share their samples"),
        (lambda honest, key, place, n, chance: honest(b"known", place, n, chance), "releases share their samples"),
        (
            lambda honest, key, place, n, chance: honest(key, place, n, 1.2 * chance),
            "samples are not of the size claimed",
        ),
    ],
)
def test_samples_that_are_not_fresh_are_caught(members, fault, monkeypatch):
    honest = sampling.members
    monkeypatch.setattr(sampling, "members", lambda *arguments: members(honest, *arguments))
    found = da.audit("private_tknn_shapley", epsilon=2.0, delta=DELTA, sampling=0.1, trials=400)
    assert fault in found.faults
    assert found.refuted


def test_a_bound_on_epsilon_needs_no_belief_in_the_noise():
    """Randomised response is 1-differentially private, and not Gaussian: one is refuted, the other is not."""
    rng = np.random.default_rng(0)

    def told(bit, trials):
        return np.where(rng.random(trials) < 1 / (1 + math.exp(-1.0)), bit, 1 - bit)

    claimed = [calibrate("gaussian", 1.0, DELTA)]
    found = da.audit(told, 0, 1, epsilon=1.0, delta=DELTA, costs=claimed, trials=10_000)
    assert found.lower_bound <= 1.0
    assert found.faults == ("the claimed noise does not allow guesses as good as these",)


def test_noise_far_above_the_claim_gives_no_bound():
    def quiet(count, trials):
        return add_noise(np.full(trials, float(count)), "gaussian", 4.0)

    found = da.audit(quiet, 0, 1, epsilon=700.0, delta=1e-6, costs=[Cost("gaussian", 0.01)], trials=2000)
    assert not found.refuted
    assert found.noise_bound < 2.0


def test_two_data_sets_are_needed():
    with pytest.raises(da.InputError, match="give the two neighbouring data sets"):
        da.audit(lambda data, trials: np.zeros(trials))


class TestNoisyRecords:
    """What the disclosure game gives out."""

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda noise, width: noise / 2,
            lambda noise, width: noise / 4,  # the whole ε for each of the four features
            lambda noise, width: noise / width * width.min(),  # one width for all features
            lambda noise, width: noise[:, :1] / width[0] * width,  # one noise for all features
        ],
        ids=["halved", "not shared among features", "one width", "one noise"],
    )
    def test_sabotage_is_caught(self, spoil, monkeypatch):
        from datassay.privacy import NoisyRecords

        honest = NoisyRecords.release

        def release(self, unit, n_jobs=1):
            record = self.from_unit(unit)
            return record + spoil(honest(self, unit, n_jobs) - record, self.width)

        monkeypatch.setattr(NoisyRecords, "release", release)
        assert da.audit("noisy_records", epsilon=4.0, delta=DELTA, trials=8000).refuted

    def test_records_that_are_not_cut_off_are_caught(self, monkeypatch):
        from datassay.privacy import NoisyRecords

        monkeypatch.setattr(NoisyRecords, "to_unit", lambda self, points: (points - self.low) / self.width)
        assert da.audit("noisy_records", epsilon=1.0, delta=DELTA, trials=2000).refuted

    def test_noise_that_repeats_itself_is_caught(self, monkeypatch):
        from datassay.privacy import NoisyRecords

        def release(self, unit, n_jobs=1):
            return self.from_unit(unit + np.random.default_rng(5).laplace(size=unit.shape[1]) / self.epsilon)

        monkeypatch.setattr(NoisyRecords, "release", release)
        found = da.audit("noisy_records", epsilon=1.0, delta=DELTA, trials=2000)
        assert "noise repeats itself" in found.faults

    def test_copies_of_all_features_show_more_than_one_feature_is_worth(self, monkeypatch):
        """Each feature has a quarter of ε: beyond it goes only who looks at all of them, each in units of its noise."""
        rng = np.random.default_rng(0)  # noise of a simulation, which is quick
        monkeypatch.setattr(records, "add_noise", lambda values, _, scale: values + rng.laplace(0, scale, values.shape))
        bounds = auditing.evaluate  # whether the noise is of the kind claimed takes the accountant longer
        monkeypatch.setattr(auditing, "evaluate", lambda games, delta, _, error: bounds(games, delta, (), error))
        found = da.audit("noisy_records", epsilon=12.0, delta=DELTA, trials=40_000, confidence=SURE)
        assert not found.refuted, found
        assert found.bounds["all features, known guess 1"] > 12.0 / 4 > found.bounds["one feature, known guess 1"]
        assert found.bounds["one feature, known guess 1"] > 1.0

    def test_it_has_no_samples(self):
        with pytest.raises(da.InputError, match="claims nothing from sampling"):
            da.audit("noisy_records", sampling=0.5)
