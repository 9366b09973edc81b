"""The facts of every result agree with its own numbers, computed here in another way."""

import inspect
import json
import math
import re
import statistics

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import datassay as da
from datassay.results import as_facts

# Classes that are told about on the command line, or saved, or summarised: results, in short.
RESULTS = sorted(
    name
    for name in da.__all__
    if inspect.isclass(getattr(da, name))
    and not issubclass(getattr(da, name), BaseException)
    and (hasattr(getattr(da, name), "summary") or hasattr(getattr(da, name), "save"))
)
ALSO = ["Audit", "Detection", "LayeredPlan", "Ledger", "NoisyCounts"]


def test_every_result_class_has_facts_and_says_which():
    assert len(RESULTS) > 20
    for name in [*RESULTS, *ALSO]:
        facts = getattr(getattr(da, name), "facts", None)
        assert facts is not None, name
        assert "``" in inspect.getdoc(facts), name


def told(result):
    """The facts of a result: flat, plain, JSON, and each named where the facts are documented."""
    facts = result.facts()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    documented = " ".join(
        inspect.getdoc(cls.__dict__["facts"]) for cls in type(result).__mro__ if "facts" in cls.__dict__
    )
    words = set(re.findall(r"``([a-z_0-9]+)", documented))
    for name, fact in facts.items():
        assert fact is None or type(fact) in (str, int, float, bool), name
        assert re.fullmatch(r"[a-z][a-z_0-9]*(\..+)?", name), name
        base = name.split(".")[0]
        alike = {base, re.sub("^inclusive_", "best_", base), re.sub("^share_", "", base)}
        assert alike & words or type(result) is da.AttributeTable, f"{name} is not documented"
    return facts


def test_what_is_no_finite_number_is_none():
    given = {"a": np.float32(0.5), "b": np.nan, "c": -math.inf, "d": np.True_, "e": np.int64(3), "f": "word", "g": None}
    assert as_facts(given) == {"a": 0.5, "b": None, "c": None, "d": True, "e": 3, "f": "word", "g": None}


RNG = np.random.default_rng(5)
WORTH = RNG.normal(0.01, 0.2, 41)
CLASSES = np.array(["yes", "no", "may be"])[RNG.integers(0, 3, 41)]


def test_values():
    facts = told(da.Values(WORTH, np.arange(41), "knn_shapley", labels=CLASSES))
    numbers, classes = WORTH.tolist(), CLASSES.tolist()
    assert facts["records"] == 41
    assert facts["total_value"] == pytest.approx(math.fsum(numbers))
    assert facts["mean_value"] == pytest.approx(statistics.fmean(numbers))
    assert facts["median_value"] == pytest.approx(statistics.median(numbers))
    assert (facts["lowest_value"], facts["highest_value"]) == (min(numbers), max(numbers))
    assert facts["negative"] == sum(x < 0 for x in numbers)
    assert facts["share_negative"] == pytest.approx(sum(x < 0 for x in numbers) / 41)
    for name in ("yes", "no", "may be"):
        inside = [x for x, c in zip(numbers, classes, strict=True) if c == name]
        assert facts[f"records.{name}"] == len(inside)
        assert facts[f"mean_value.{name}"] == pytest.approx(statistics.fmean(inside))
        assert facts[f"share_negative.{name}"] == pytest.approx(sum(x < 0 for x in inside) / len(inside))
    assert "share_surely_negative" not in facts


def test_many_classes_have_no_facts_each():
    values = da.Values(WORTH, np.arange(41), "knn_shapley", labels=np.arange(41))
    assert not [name for name in told(values) if "." in name]


def test_estimates():
    half = np.linspace(0.01, 0.3, 41)
    facts = told(
        da.Estimate(
            WORTH, np.arange(41), "data_shapley", lower=WORTH - half, upper=WORTH + half, sizes=np.arange(1, 42),
            coalitions=900, fits=700, failures=2, stopped="seconds",
        )
    )  # fmt: skip
    assert (facts["owners"], facts["records"]) == (41, 41 * 42 // 2)
    assert facts["share_surely_negative"] == pytest.approx(
        sum(x + h < 0 for x, h in zip(WORTH, half, strict=True)) / 41
    )
    assert facts["share_sure"] == pytest.approx(sum(abs(x) > h for x, h in zip(WORTH, half, strict=True)) / 41)
    assert facts["median_half_width"] == pytest.approx(half[20])
    assert facts["widest_half_width"] == pytest.approx(0.3)
    assert [facts[n] for n in ("coalitions", "fits", "failures", "stopped")] == [900, 700, 2, "seconds"]


def test_designs_and_tuning():
    design = da.layered_design(12, alpha=0.5, beta=0.1, c=1.0)
    facts = told(design)
    sizes = [len(members) for members in design.members]
    assert facts["players"] == 12
    assert facts["coalitions"] == len(sizes)
    assert facts["fits"] == sum((size > 0) + 12 - size for size in sizes)
    assert facts["coalitions_per_player"] == pytest.approx(sum(12 - size for size in sizes) / 12)
    assert (facts["alpha"], facts["beta"], facts["c"]) == (0.5, 0.1, 1.0)
    table = da.census(120, seed=3)
    tuning = da.tune_k(table)
    facts = told(tuning)
    best = max(range(len(tuning.candidates)), key=lambda i: (tuning.scores[i], -i))
    assert (facts["best_k"], facts["accuracy"]) == (tuning.candidates[best], tuning.scores[best])
    assert facts["candidates"] == len(tuning.candidates)


def test_private_values_and_their_ledger(tmp_path):
    private, public = da.census(160, seed=1).split(0.6)
    ledger = da.Ledger(tmp_path / "l", epsilon=2.0, delta=1e-5)
    values = da.private_tknn_shapley(private, X_val=public, tau=-0.5, epsilon=0.5, delta=1e-5, ledger=ledger)
    facts = told(values)
    low, *_, high = statistics.quantiles(values.values.tolist(), n=20, method="inclusive")
    assert (facts["low_value"], facts["high_value"]) == pytest.approx((low, high))
    assert facts["median_value"] == pytest.approx(statistics.median(values.values.tolist()))
    assert facts["records"] == 96
    assert facts["epsilon"] <= 0.5 + 1e-9
    assert (facts["delta"], facts["certified"], facts["audience"]) == (1e-5, True, "owner")
    counts = told(values.statistics)
    columns = zip(*values.statistics.counts.tolist(), strict=True)
    assert [counts["total.matching"], counts["total.others"]] == [sum(column) for column in columns]
    assert counts["points"] == len(public)
    spent = told(ledger)
    assert spent["budget_epsilon"] == 2.0
    assert spent["spent_epsilon"] == pytest.approx(facts["epsilon"], rel=1e-6)
    assert spent["left_epsilon"] == pytest.approx(2.0 - spent["spent_epsilon"])
    assert spent["share_spent"] == pytest.approx(spent["spent_epsilon"] / 2)
    assert (spent["releases"], spent["undelivered"], spent["disclosures"]) == (1, 0, 0)
    from datassay.privacy import Cost

    ledger.spend("other data", "question", [Cost("gaussian", 50.0)], "noisy counts", "public")
    assert told(ledger)["undelivered"] == 1


def test_plans_and_audits():
    public = da.census(120, seed=1)
    plan = da.plan_private_layered(da.StableLogisticRegression(kappa=2.0), 60, public, alpha=2.0, n_jobs=1)
    facts = told(plan)
    assert facts["fits"] == plan.design.fits
    assert (facts["scale"], facts["sensitivity"]) == (max(plan.scale.tolist()), max(plan.sensitivity.tolist()))
    assert (facts["epsilon"], facts["certified"], facts["correlation"]) == (1.0, True, plan.correlation)
    audit = da.Audit("m", 1.0, 1e-5, None, 0.4, None, ("too little noise",), {"one way": 0.4}, 0.95, 200, WORTH, WORTH)
    assert told(audit) == {
        "epsilon": 1.0, "delta": 1e-5, "lower_bound": 0.4, "noise_bound": None, "refuted": True, "faults": 1,
        "trials": 200, "confidence": 0.95, "bound.one way": 0.4,
    }  # fmt: skip


def attack_of(seed):
    rng = np.random.default_rng(seed)
    members = np.arange(240) % 2 == 0
    return da.Attack(
        rng.normal(0.6 * members, 1), np.tile(np.arange(60), 4), members, "lira", games=np.repeat(np.arange(4), 60)
    )


def test_attacks():
    attack = attack_of(0)
    facts = told(attack)
    by_game = [roc_auc_score(attack.members[attack.games == g], attack.values[attack.games == g]) for g in range(4)]
    assert facts["auc"] == pytest.approx(statistics.fmean(by_game))
    assert facts["auc_low"] < facts["auc"] < facts["auc_high"]
    assert (facts["targets"], facts["members"], facts["games"]) == (240, 120, 4)
    outside = sorted(attack.values[~attack.members].tolist(), reverse=True)
    for rate, allowed in ((0.05, 6), (0.01, 1)):
        found = sum(score > outside[allowed] for score in attack.values[attack.members].tolist())
        assert facts[f"tpr.{rate}"] == pytest.approx(found / 120)
    assert facts["tpr.0.001"] is None
    alone = da.Attack(WORTH, np.arange(41), np.ones(41, bool), "lira")
    assert told(alone)["auc"] is None


def test_exposure_and_the_onion():
    exposure = np.abs(WORTH) + np.linspace(0, 0.1, 41)
    values, exposed = (
        da.Values(x, np.arange(41), name) for x, name in ((WORTH, "knn_shapley"), (exposure, "self_waka"))
    )
    facts = told(da.value_and_exposure(values, exposed))
    frame = pd.DataFrame({"value": WORTH, "exposure": exposure})
    low, high = frame["value"].quantile(0.25), frame["exposure"].quantile(0.75)
    worst = ((frame["value"] <= low) & (frame["exposure"] >= high)).sum()
    assert facts["delete_first"] == worst > 0
    assert facts["share_delete_first"] == pytest.approx(worst / 41)
    assert facts["keep"] == ((frame["value"] > low) & (frame["exposure"] < high)).sum()
    assert facts["protect"] == ((frame["value"] > low) & (frame["exposure"] >= high)).sum()
    assert sum(facts[name] for name in ("delete_first", "of_little_use", "protect", "keep")) == facts["records"] == 41
    assert facts["correlation"] == pytest.approx(frame.rank().corr().iloc[0, 1])
    assert (facts["low_value"], facts["high_exposure"]) == pytest.approx((low, high))
    onion = da.Onion(WORTH, np.arange(41), exposure, exposure, exposure, np.arange(4), (0.8, 0.6), (0.3, 0.2), "x", 1)
    facts = told(onion)
    assert (facts["removed"], facts["remaining"]) == (4, 41)
    assert (facts["auc_before"], facts["auc_after"], facts["tpr_before"], facts["tpr_after"]) == (0.8, 0.6, 0.3, 0.2)
    assert facts["share_more_exposed"] == pytest.approx(sum(x > 0 for x in WORTH) / 41)
    assert facts["share_less_exposed"] == pytest.approx(sum(x < 0 for x in WORTH) / 41)


def test_uniqueness_and_what_it_makes():
    table = da.voters(400, seed=2)
    frame = table.to_frame("pandas")
    columns = ["zip", "race", "age"]
    found = da.uniqueness_shapley(table, columns)
    facts = told(found)
    sizes = frame.groupby(columns).size()
    assert facts["records"] == facts["people"] == 400
    assert (facts["attributes"], facts["groups"], facts["smallest_group"]) == (3, len(sizes), sizes.min())
    assert facts["share_unique"] == pytest.approx((sizes == 1).sum() / 400)
    # Together they tell the joint entropy; alone, each its own.
    assert facts["total_bits"] == pytest.approx(-(sizes / 400 * np.log2(sizes / 400)).sum())
    assert sum(facts[f"bits.{name}"] for name in columns) == pytest.approx(facts["total_bits"])
    for name in columns:
        shares = frame[name].value_counts() / 400
        assert facts[f"entropy.{name}"] == pytest.approx(-(shares * np.log2(shares)).sum())
    assert told(found.mean()) == {k: v for k, v in facts.items() if k in told(found.mean())}
    groups = told(found.groups())
    for k in (5, 10, 20):
        assert groups[f"share_below.{k}"] == pytest.approx(sizes[sizes < k].sum() / 400)
    assert (groups["groups"], groups["share_unique"]) == (facts["groups"], facts["share_unique"])
    county = frame["county"].iloc[0]
    by = told(found.by("county"))
    there = frame[frame["county"] == county]
    assert by[f"people.county={county}"] == len(there)
    alone = frame.groupby(columns)["id"].transform("size")[there.index] == 1
    assert by[f"share_unique.county={county}"] == pytest.approx(alone.mean())
    mine = found.values[(frame["county"] == county).to_numpy(), 2]
    assert by[f"bits.age.county={county}"] == pytest.approx(mine.mean())
    sets = told(found.sets())
    assert (sets["sets"], sets["attributes"]) == (7, 3)
    one = max((frame.groupby(name).size() == 1).sum() / 400 for name in columns)
    assert sets["share_unique.1"] == pytest.approx(one)
    assert sets["share_unique.3"] == pytest.approx(facts["share_unique"])
    assert sets["entropy.3"] == pytest.approx(facts["total_bits"])


def test_weights_count_people():
    table = da.voters(100, seed=2)
    facts = told(da.uniqueness_shapley(table, ["race", "age"], weights=np.full(100, 2.5)))
    assert (facts["records"], facts["people"]) == (100, 250)
    sizes = table.to_frame("pandas").groupby(["race", "age"]).size() * 2.5
    assert facts["smallest_group"] == sizes.min() == 2.5


def test_risk_and_what_gives_people_away():
    people = da.census(80, seed=4)
    released = da.release.remove(people, 0.25, seed=1)
    risk = da.reidentification_risk(people, released, columns=["age", "sex", "hours"], permutations=4)
    facts = told(risk)
    frame = risk.to_frame("pandas")
    there = frame[frame["present"]]
    assert (facts["people"], facts["present"]) == (80, 60)
    assert facts["mean_risk"] == pytest.approx(frame["risk"].mean())
    assert facts["mean_risk_present"] == pytest.approx(there["risk"].mean())
    assert facts["mean_risk"] == pytest.approx(facts["mean_risk_present"] * 60 / 80)
    assert facts["highest_risk"] == frame["risk"].max()
    assert facts["linkability"] == pytest.approx(there["linkability"].mean())
    assert facts["gain"] == pytest.approx(there["gain"].mean())
    assert facts["guess_risk"] == pytest.approx(there["guess"].mean())
    assert facts["control_risk"] == pytest.approx(statistics.fmean(risk.control.tolist()))
    weighed = sum(w * facts[f"risk.{name}"] for name, w in zip(risk.scenarios, risk.scenario_weights, strict=True))
    assert weighed == pytest.approx(facts["mean_risk_present"])
    kept = da.reidentification_risk(people, da.release.keep(people), columns=["age", "sex"], permutations=4)
    assert told(kept)["control_risk"] is None
    values = da.reidentification_shapley(people, released, columns=["age", "sex", "hours"], permutations=4)
    facts = told(values)
    assert facts["shapley.age"] == pytest.approx(values.to_frame("pandas")["value_age"].mean())
    assert facts["shapley_total"] == pytest.approx(sum(facts[f"shapley.{n}"] for n in ("age", "sex", "hours")))
    asked = da.score_queries(people, released, ["age > 500", "hours > 0"])
    facts = told(asked)
    assert (facts["queries"], facts["score.age > 500"]) == (2, 0)
    assert facts["highest_score"] == facts["score.hours > 0"] == max(asked.values.tolist())


def test_comparisons_and_releases():
    table = da.census(120, seed=1)
    found = da.compare_releases(table, strategies=["keep", "k=4"], people=10, permutations=2)
    facts = told(found)
    rows = found.to_frame("pandas").set_index("strategy")
    for strategy in ("keep", "k=4"):
        for name in ("risk", "linkability", "gain", "fidelity", "mcc", "f1", "loss"):
            assert facts[f"{name}.{strategy}"] == rows.loc[strategy, name]
        other = "k=4" if strategy == "keep" else "keep"
        beaten = (
            rows.loc[other, "risk"] < rows.loc[strategy, "risk"] and rows.loc[other, "mcc"] >= rows.loc[strategy, "mcc"]
        )
        assert not (beaten and facts[f"pareto_mcc.{strategy}"])
    assert facts["lowest_risk"] == rows["risk"].min()
    assert (facts["people"], facts["strategies"]) == (10, 2)
    assert told(da.release.synthesize(table, n=30)) == {"records": 30, "strategy": "synthesize", "synthetic": True}


def test_prices_purchases_and_their_search():
    prices = da.price(WORTH, theta=2.0, gamma=3.0)
    facts = told(prices)
    sold = sorted(x + 3 * x**2 for x in WORTH.tolist() if x > 0)
    assert (facts["records"], facts["for_sale"]) == (41, len(sold))
    assert facts["share_for_sale"] == pytest.approx(len(sold) / 41)
    assert facts["total_price"] == pytest.approx(math.fsum(sold))
    assert facts["total_value"] == pytest.approx(sum(x for x in WORTH if x > 0))
    expected = (sold[0], statistics.median(sold), sold[-1])
    assert (facts["lowest_price"], facts["median_price"], facts["highest_price"]) == pytest.approx(expected)
    assert told(da.price([-1.0, -2.0]))["lowest_price"] is None
    bought = prices.buy(share=0.5)
    facts = told(bought)
    paid = bought.payments.tolist()
    assert facts["owners"] == 41
    assert facts["bought"] == sum(x > 0 for x in paid)
    assert facts["inclusiveness"] == pytest.approx(facts["bought"] / 41)
    assert facts["cost"] == pytest.approx(math.fsum(paid))
    pairs = sum(abs(a - b) for a in paid for b in paid)
    assert facts["gini"] == pytest.approx(pairs / (2 * 41 * sum(paid)))
    assert facts["bound"] - 1e-9 <= facts["cost"] <= facts["greedy_cost"] + 1e-9
    assert facts["bought_value"] >= facts["target"] == pytest.approx(sum(x for x in WORTH if x > 0) / 2)
    search = da.search_prices(WORTH, share=0.5, thetas=[0.5, 2.0], markups=[0.0, 1.0])
    facts, rows = told(search), search.to_frame("pandas")
    assert (facts["pairs"], facts["sold"]) == (4, 4)
    assert facts["lowest_cost"] == rows["cost"].min()
    assert facts["best_cost"] == rows["cost"].max()
    assert facts["inclusive_inclusiveness"] == rows["inclusiveness"].max()
    assert facts["best_theta"] == rows.loc[rows["cost"].idxmax(), "theta"]
    nothing = told(da.search_prices(WORTH, share=0.5, thetas=[2.0], markups=[0.0], budget=1e-9))
    assert (nothing["sold"], nothing["best_cost"], nothing["inclusive_gini"]) == (0, None, None)


def test_games_leakage_and_equilibria():
    owner, ours = da.census(60, seed=1).split(0.6)
    game = da.disclosure_game(owner, None, ours, None, "random", 2.0, 2, 0.999, share=0.5, bounds=(-3, 3), seed=0)
    facts, rows = told(game), game.to_frame("pandas")
    assert facts["queries"] == rows["queries"].sum()
    assert facts["budget"] == pytest.approx(2.0 * rows["queries"].sum())
    assert facts["inclusiveness"] == pytest.approx((rows["queries"] > 0).mean())
    assert facts["query_cost"] == pytest.approx(2.0 * game.centres.shape[1])
    assert facts["most_spent"] == pytest.approx(rows["queries"].max() * facts["query_cost"])
    asked = rows["queries"].tolist()
    assert facts["gini"] == pytest.approx(sum(abs(a - b) for a in asked for b in asked) / (2 * len(asked) * sum(asked)))
    assert (facts["reached"], facts["certified"], facts["target"]) == (False, False, 0.999)
    assert facts["epsilon"] == pytest.approx(2 * facts["query_cost"])
    before, after = attack_of(1), attack_of(2)
    facts = told(da.Leakage(before, after))
    assert (facts["auc_before"], facts["auc_after"]) == (before.facts()["auc"], after.facts()["auc"])
    assert (facts["tpr_before"], facts["tpr_after"]) == (before.facts()["tpr.0.05"], after.facts()["tpr.0.05"])
    # Two settings of the owner, one exploration: the first is answered with 10, the second with 30, which leads.
    one = {"repeat": np.zeros(2), "queries": np.ones(2), "utility": np.ones(2), "inclusiveness": np.ones(2)}
    one |= {"spearman": np.zeros(2), "gini": np.array([0.1, 0.4]), "exploration": np.full(2, 0.01)}
    one |= {"epsilon": np.array([1.0, 2.0]), "t_max": np.array([5.0, 9.0]), "budget": np.array([10.0, 30.0])}
    facts = told(da.Equilibrium(**one, reached=np.ones(2), target=0.7, parameters={}, seed=0))
    assert facts == {
        "games": 2, "share_reached": 1.0, "target": 0.7, "best_epsilon": 2.0, "best_t_max": 9.0,
        "best_exploration": 0.01, "best_budget": 30.0, "best_gini": 0.4,
    }  # fmt: skip
    none = told(da.Equilibrium(**one, reached=np.zeros(2), target=0.7, parameters={}, seed=0))
    assert (none["share_reached"], none["best_budget"]) == (0.0, None)


def test_detection_curves_and_reproductions():
    wrong = np.arange(41) < 6
    facts = told(da.detect_errors(WORTH, wrong))
    assert facts["auroc"] == pytest.approx(roc_auc_score(wrong, -WORTH))
    assert facts["errors"] == 6
    assert facts["share_errors"] == pytest.approx(6 / 41)
    assert facts["precision"] == pytest.approx(sum(i < 6 for i in sorted(range(41), key=lambda i: WORTH[i])[:6]) / 6)
    train, validation, test = da.census(150, seed=1).split(0.5, 0.25, 0.25)
    curve = da.removal_curve(
        da.knn_shapley(train, X_val=validation), train, X_test=test, fractions=[0, 0.2], n_random=3
    )
    facts, rows = told(curve), curve.to_frame("pandas")
    assert facts["gain.mcc"] == pytest.approx((rows["mcc"] - rows["mcc_random"]).mean())
    assert (facts["steps"], facts["last.accuracy"]) == (2, rows["accuracy"].iloc[-1])
    from datassay.reproduce.engine import Cell, Reproduction

    cells = (
        Cell("a", "x", 0.5, 0.5),
        Cell("b", "x", 0.7, 0.5),
        Cell("c", "y", 0.7, 0.5, judged=False),
        Cell("d", "y", 1),
    )
    facts = told(Reproduction(cells, "some come out", False, name="n", title="t"))
    assert (facts["holds"], facts["compared"], facts["agree"]) == (False, 2, 1)
    assert (facts["ours.b.x"], facts["published.b.x"], facts["ours.d.y"]) == (0.7, 0.5, 1)
    assert "published.d.y" not in facts


def test_tables():
    frame = pd.DataFrame({"age": [1.0, None, 3.0], "city": ["a", "b", "a"], "y": [0, 1, 1]})
    facts = told(da.read_table(frame, label="y", text="categorical"))
    assert facts == {
        "records": 3, "columns": 3, "features": 2, "label": "y", "missing": 1, "kind.age": "numeric", "missing.age": 1,
        "kind.city": "categorical", "missing.city": 0, "values.city": 2, "kind.y": "numeric", "missing.y": 0,
    }  # fmt: skip
