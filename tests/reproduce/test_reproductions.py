"""The published numbers come out (Mathematics §10)."""

import numpy as np
import pytest

from datassay.reproduce import list_reproductions, reproduce
from datassay.reproduce.engine import Cell


def test_the_detection_table_comes_out_to_all_digits(shared_data):
    result = reproduce("tknn-detection")
    assert len(result.cells) == 16
    assert [(c.row, c.column, round(c.ours, 3)) for c in result.cells] == [
        (c.row, c.column, c.published) for c in result.cells
    ]
    assert result.holds


def test_agreement_is_judged_to_three_digits():
    assert Cell("r", "c", 0.9204, 0.920).agrees()
    assert not Cell("r", "c", 0.9206, 0.920).agrees()
    assert not Cell("r", "c", 0.9206).agrees()
    assert Cell("r", "c", 0.90, 0.92, spread=0.01).agrees()
    assert not Cell("r", "c", 0.89, 0.92, spread=0.01).agrees()


def test_an_unknown_reproduction_lists_the_known():
    from datassay import InputError

    with pytest.raises(InputError, match="tknn-detection"):
        reproduce("nothing")
    assert set(list_reproductions()) == {"tknn-detection", "tknn-speed", "tknn-private", "tknn-attack"} | {
        f"waka-{name}" for name in ("correlation", "attack", "success", "onion", "removal")
    } | {"uniqueness-flare", "uniqueness-voters", "release-adult", "release-bank", "release-credit"} | {
        *(f"disclosure-{name}" for name in ("acquisition", "noise", "strategies", "bandit", "leakage")),
        "model-baselines",
        "layered-adult",
        "layered-breast-cancer",
        "layered-gaussian",
        "layered-growth",
    }


def test_the_flare_table_comes_out(shared_data):
    result = reproduce("uniqueness-flare")
    assert len(result.cells) == 45
    assert max(abs(cell.ours - cell.published) for cell in result.cells) <= 0.01
    assert result.holds


def test_the_patterns_of_the_voter_tables_come_out_of_a_simulated_population():
    result = reproduce("uniqueness-voters")
    assert len(result.cells) == 10 + 5 * 16 + 5 * 6
    assert "simulated" in result.finding
    assert result.finding.count(": yes") == 4
    assert result.holds
    # What is simulated to the published shares comes out as published: the entropies.
    told = [cell for cell in result.cells if "nats" in cell.row and cell.column != "gender"]
    assert max(abs(cell.ours - cell.published) for cell in told) < 0.02


def test_reviews_acquired_by_value(shared_data):
    result = reproduce("disclosure-acquisition")
    assert result.holds
    ours = {(cell.row, cell.column): cell.ours for cell in result.cells}
    assert ours["40% of the reviews", "by value"] > ours["40% of the reviews", "at random"] + 0.02
    assert ours["100% of the reviews", "by value"] == pytest.approx(ours["100% of the reviews", "at random"])


def test_noisy_centres_hide_members_from_outsiders(shared_data):
    result = reproduce("disclosure-leakage")
    assert result.holds
    ours = {(cell.row, cell.column): cell.ours for cell in result.cells}
    assert ours["centres after 25 rounds", "AUC"] < ours["records", "AUC"] - 0.02
    low = "found at 5% false positives"
    assert ours["centres after 25 rounds", low] < ours["records", low] / 1.5


def test_noisy_values_reach_the_target_and_random_ones_do_not(shared_data):
    """Figure 3.6, one share: noisy Shapley after some rounds, and the correlation of values rising with rounds."""
    from datassay.reproduce.market import _reviews

    data = _reviews()
    assert (len(data.y), data.X.shape[1], len(data.y_val), len(data.y_test)) == (1400, 384, 300, 300)
    shapley = data.play("shapley", target=data.target, t_max=50)
    assert shapley.reached
    assert 5 <= shapley.trajectory["step"][-1] <= 30
    agree = shapley.trajectory["spearman"]
    assert agree[-1] > agree[5] > agree[1]
    assert not data.play("random", target=data.target, t_max=50, diagnostics=False).reached


@pytest.mark.parametrize("strategy", ["shapley", "ucb"])
def test_half_a_game_shows_nothing(strategy, monkeypatch):
    """^C in the middle of a game ends the reproduction: no figure is made of what there was."""
    from datassay.market.owner import RehearsingOwner
    from datassay.reproduce.market import _Reviews

    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(20, 2)), rng.integers(0, 2, 20)
    data = _Reviews(X, y, X[:5], y[:5], X[5:9], y[5:9], 3, 0.99, np.zeros(20))
    drawn, honest = [], RehearsingOwner.noise

    def noise(self, copies):
        drawn.append(copies)
        if len(drawn) == 3:
            raise KeyboardInterrupt
        return honest(self, copies)

    monkeypatch.setattr(RehearsingOwner, "noise", noise)
    with pytest.raises(KeyboardInterrupt):
        data.play(strategy)
