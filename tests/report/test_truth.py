"""What the report says must be so: sentences held against what can be counted, on tables made for the purpose."""

import json
import math
import re
import shlex
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from typer.testing import CliRunner

import datassay as da
from datassay.cli import app
from datassay.report import Figure, Grid, Paragraph
from datassay.report.content import plain
from datassay.report.page import drawing


def told(section):
    """All the words of a section."""
    words = [plain(section.finding), plain(section.advice), *section.unseen]
    for block in section.blocks:
        if isinstance(block, Paragraph):
            words.append(plain(block.text))
        elif isinstance(block, Figure):
            words += [block.title, block.caption]
        else:
            words += [block.title, block.note]
    return "\n".join(words)


def grid(section, title):
    return next(block for block in section.blocks if isinstance(block, Grid) and title in block.title)


def figure(section, words):
    return next(block for block in section.blocks if isinstance(block, Figure) and words in block.title + block.caption)


def column(table, name):
    return [row[table.columns.index(name)] for row in table.rows]


def clusters(n=300, gap=30.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    frame = pd.DataFrame({"a": np.round(rng.normal(0, 1, n) + gap * y, 3), "b": rng.integers(0, 9, n)})
    return frame.assign(y=np.where(y, "one", "two"))


class TestWorth:
    def test_what_changes_nothing_is_not_said_to_spoil(self):
        made = da.report(clusters(), "y", sections=["worth"])
        curve = figure(made.section("worth"), "least valuable tenth")
        assert "does not clearly change predictions: accuracy 1.000 → 1.000" in curve.title
        said = float(re.search(r"up to about ([\d.]+) are within chance", curve.caption)[1])
        assert 0 < said < 0.1

    def test_the_curve_is_told_as_it_is(self):
        table = da.census(600, seed=3)
        section = da.report(table, sections=["worth"]).section("worth")
        train, validation, test = table.split(0.6, 0.2, 0.2, seed=0)
        values = da.knn_shapley(train, X_val=validation)
        shares = [round(0.05 * step, 2) for step in range(11)]
        curve = da.removal_curve(values, train, X_test=test, fractions=shares, n_random=20, seed=0)
        accuracy = curve.scores["accuracy"]
        assert f"accuracy {accuracy[0]:.3f} → {accuracy[2]:.3f}" in figure(section, "tenth").title
        assert section.facts["accuracy_without_worst_tenth"] == accuracy[2]
        p = (accuracy[0] * len(test) + 2) / (len(test) + 4)
        noise = 2 * math.sqrt(p * (1 - p) / (len(test) + 4))
        assert f"up to about {noise:.3f} are within chance" in figure(section, "tenth").caption
        step = round((values.values < 0).mean() / 0.05)
        better = accuracy[step] - curve.random["accuracy"][step]
        verdict = (
            "no better, beyond chance, than" if abs(better) <= noise else f"{'better' if better > 0 else 'worse'} than"
        )
        assert f"an accuracy of {accuracy[step]:.3f}: {verdict} leaving out as many at random" in told(section)

    def test_improving_and_spoiling_are_told_apart(self):
        """A fifth of the labels is flipped: without the worst tenth predictions improve, and never the reverse."""
        frame = clusters(600, gap=3.0)
        rng = np.random.default_rng(1)
        frame["y"] = np.where(rng.random(600) < 0.35, np.where(frame["y"] == "one", "two", "one"), frame["y"])
        section = da.report(frame, "y", sections=["worth"], k=1).section("worth")
        found = figure(section, "tenth")
        before, after = section.facts["accuracy"], section.facts["accuracy_without_worst_tenth"]
        noise = float(re.search(r"up to about ([\d.]+) are within chance", found.caption)[1])
        word = "does not clearly change" if abs(after - before) <= noise else "improves" if after > before else "spoils"
        assert f"tenth {word} predictions" in found.title

    def test_the_most_frequent_class_is_named_beside_guessing(self):
        frame = clusters(200)
        frame["y"] = np.where(np.arange(200) < 150, "many", "few")
        section = da.report(frame, "y", quick=True, sections=["worth"]).section("worth")
        assert "always naming the most frequent class would be right for 0.750" in told(section)
        assert any(card.note == "guessing: 0.500; always the most frequent class: 0.750" for card in section.cards)

    def test_where_nearly_all_of_a_smaller_class_are_negative_the_first_screen_says_so(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"a": rng.normal(size=400).round(2), "b": rng.integers(0, 9, 400)})
        frame["y"] = np.where(rng.random(400) < 0.05 + 0.4 * (frame["a"] > 0.8), "few", "many")
        found = da.knn_shapley(da.read_table(frame, label="y"))
        share = (found.values[found.labels == "few"] < 0).mean()
        assert share > 0.8
        made = da.report(frame, "y", quick=True, sections=["worth", "leaks"])
        warning = re.search(
            r"But ([\d.]+)% of the smaller class few have a negative value", plain(made.section("worth").advice)
        )
        assert float(warning[1]) == pytest.approx(100 * share, abs=0.06)
        assert "before you delete any: one class is among them far more often" in plain(made.section("leaks").advice)
        assert "have the label few, as have" in told(made.section("leaks"))

    def test_of_labels_that_are_noise_nothing_is_advised(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.integers(0, 9, (300, 6)), columns=list("abcdef")).assign(y=rng.integers(0, 2, 300))
        made = da.report(frame, "y", quick=True, sections=["worth", "leaks", "trade"])
        assert "do not clearly agree on labels more often than by chance" in told(made.section("worth"))
        assert "Act on no single value" in told(made.section("worth"))
        assert "Delete nobody for this" in told(made.section("leaks"))
        assert "Delete these first" not in told(made.section("leaks"))
        assert "Sell none of it by these values" in told(made.section("trade"))
        sense = da.report(clusters(), "y", quick=True, sections=["worth", "leaks", "trade"])
        for section in sense.sections:
            assert not re.search("chance, so that|Act on no|Delete nobody|Sell none", told(section))

    def test_rows_that_go_by_their_numbers_are_called_rows(self):
        frame = da.census(300, seed=2).to_frame("pandas").drop(columns=["id"])
        numbered = da.report(frame, "income", quick=True, sections=["worth"]).section("worth")
        assert re.search(r"beginning with rows \d+, \d+ and \d+ \(counted from 0\)\.", told(numbered))
        named = da.report(
            frame.assign(id=[f"p{i}" for i in range(300)]), "income", id="id", quick=True, sections=["worth"]
        )
        assert re.search(r"beginning with p\d+, p\d+ and p\d+\.", told(named.section("worth")))

    def test_guessing_is_one_in_the_number_of_classes(self):
        frame = clusters(90).assign(y=[f"c{i % 3}" for i in range(90)])
        section = da.report(frame, "y", quick=True, sections=["worth"]).section("worth")
        assert "from 0.333 (guessing) to" in told(section)
        assert section.facts["score"] == pytest.approx(
            1 / 3 + da.knn_shapley(frame[["a", "b"]], frame["y"]).values.sum(), abs=0.2
        )

    def test_a_class_table_is_about_its_own_class(self):
        table = da.census(400, seed=2)
        made = da.report(table, quick=True, sections=["worth"])
        rows = {row[0]: row for row in grid(made.section("worth"), "By class").rows}
        values = da.knn_shapley(table)
        for name in ("high", "low"):
            inside = values.labels == name
            assert rows[name][1:4] == (
                f"{inside.sum():,}", f"{values.values[inside].mean():.3g}", f"{(values.values[inside] < 0).mean():.1%}",
            )  # fmt: skip

    def test_titles_say_hurt_only_of_those_who_do(self):
        section = da.report(clusters(), "y", quick=True, sections=["worth"]).section("worth")
        assert grid(section, "of least value").title == "The ten records of least value"
        assert grid(section, "help most").title == "The ten records that help most"
        few = da.report(clusters(6), "y", quick=True, sections=["worth"]).section("worth")
        assert grid(few, "value").title.startswith("The 6 records")

    def test_labels_that_are_pure_chance_are_no_mistakes(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.integers(0, 5, (400, 4)), columns=list("abcd")).assign(y=rng.choice(["p", "q"], 400))
        made = da.report(frame, "y", quick=True, sections=["worth"])
        assert made.facts()["likely_mislabelled"] is None
        assert "mislabelled" not in plain(made.section("worth").finding)
        assert any("more often than by chance" in one for one in made.section("worth").unseen)

    def test_votes_are_those_of_twice_k_neighbours(self):
        table = da.census(500, seed=1)
        made = da.report(table, quick=True, sections=["worth"], k=4)
        np.testing.assert_array_equal(
            made.records["likely_mislabelled"], da.likely_errors(table, values=da.knn_shapley(table, k=4), k=8).likely
        )
        assert "of its 8 neighbours" in grid(made.section("worth"), "Check the labels").columns

    def test_balance_weighs_the_classes(self):
        table = da.census(400, seed=2)
        made = da.report(table, quick=True, sections=["worth"], balance=1.0)
        np.testing.assert_array_equal(
            made.values, da.knn_shapley(table, weights=da.balance_weights(table.labels, 1.0)).values
        )

    def test_nothing_is_said_of_records_that_were_not_looked_at(self):
        made = da.report(da.census(900, seed=3), quick=True, most=200, sections=["worth", "leaks"])
        seen = np.isfinite(made.values)
        assert seen.sum() == 200
        assert np.isnan(made.records["likely_mislabelled"][~seen]).all()
        assert (made.records["quadrant"][~seen] == "").all()
        listed = grid(made.section("leaks"), "most exposed first")
        flags = dict(zip(made.ids.tolist(), made.records["likely_mislabelled"].tolist(), strict=True))
        for row, flag in zip(listed.rows, column(listed, "likely mislabelled"), strict=True):
            assert (flag == "yes") == (flags[int(row[0])] == 1.0)

    def test_one_class_cannot_be_valued(self):
        made = da.report(clusters(60).assign(y="all"), "y", quick=True)
        for key in ("worth", "leaks", "told", "trade"):
            assert "one class only" in made.section(key).left_out
        assert not {"share_negative", "private_rank_correlation"} & set(made.facts())

    def test_what_was_not_judged_is_not_called_right(self):
        """An empty cell beside «likely mislabelled» reads as no: where labels were not judged, there is no such column."""
        for sections in (["worth", "leaks"], ["leaks"]):
            made = da.report(da.census(24, seed=1), quick=True, sections=sections)
            for section in made.sections:
                for block in section.blocks:
                    assert not isinstance(block, Grid) or "likely mislabelled" not in block.columns

    def test_a_number_that_stands_for_missing_ones_is_not_shown(self):
        """Of few salaries the median is one of them."""
        frame = da.census(120, seed=1).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
        frame["salary"] = np.where(np.arange(120) % 3 == 1, 912837.0, np.nan)
        made = da.report(frame, "income", id="id", quick=True, sections=["worth", "told"])
        assert any("missing values of 'salary' taken as the training median" in note for note in made.notes)
        for words in (made.html(), made.summary(), *made.notes):
            assert "912837" not in words
        shown = da.report(frame, "income", id="id", quick=True, sections=["worth"], show_rows=True)
        assert "912837" in shown.html()

    def test_numbers_too_large_are_refused_in_words_alone(self):
        """Not with warnings of another library as well, which are errors here."""
        frame = da.census(60).to_frame("pandas")
        frame["age"] = frame["age"] * 1e300
        made = da.report(frame, "income", id="id", quick=True)
        assert "too large to scale" in made.section("worth").left_out
        assert f"{frame['age'].max():g}" not in made.html()


class TestLeaks:
    def test_an_attack_that_fails_deletes_nobody(self):
        made = da.report(clusters(), "y", quick=True, sections=["leaks"])
        section = made.section("leaks")
        assert section.facts["auc_low"] <= 0.5
        assert "This attack does not tell members from others" in plain(section.finding)
        assert plain(section.advice) == "Nothing has to be deleted for this."
        assert "Delete" not in told(section).replace("deleted", "")

    def test_an_attack_that_works_is_said_to(self):
        section = da.report(da.census(400, seed=1), quick=True, sections=["leaks"], k=1).section("leaks")
        attack = da.membership_attack(da.census(400, seed=1), method="t-waka", k=1, games=16)
        assert attack.interval()[0] > 0.5
        assert plain(section.finding).startswith("Members can")
        assert "listed first" in plain(section.advice)
        assert f"finds {attack.tpr(0.05):.1%} of the members" in told(section)
        assert section.facts["tpr.0.05"] == attack.tpr(0.05)

    def test_leaks_and_prices_can_be_asked_for_alone(self):
        made = da.report(da.census(150, seed=1), quick=True, sections=["leaks", "trade"])
        assert [section.left_out for section in made.sections] == ["", ""]


class TestFound:
    def test_a_column_of_different_numbers_is_no_row_number(self):
        ages = [19, 20, 21, 22, 24, 25, 27, 29, 31, 33, 36, 40, 41, 43, 45, 46, 48, 50, 51, 53, 54, 55]
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"age": rng.permutation(ages), "sex": list("fm") * 11, "y": list("ab") * 11})
        made = da.report(frame, "y", quick=True, sections=["found"])
        assert made.facts()["share_unique"] == 1.0
        assert made.notes == () or not any("age" in note and "set aside" in note for note in made.notes)

    def test_what_numbers_the_rows_is_named_where_people_are_looked_for(self):
        frame = da.census(80, seed=2).to_frame("pandas")[["id", "sex", "region", "income"]]
        made = da.report(frame, "income", quick=True, sections=["found"])
        assert any("columns id, which number the rows" in one for one in made.section("found").unseen)
        asked = da.report(frame, "income", quick=True, sections=["found"], quasi_identifiers=["id"])
        assert asked.facts()["share_unique"] == 1.0

    def test_numbers_that_may_be_codes_are_named(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"zip": rng.integers(10_000, 99_999, 60), "pay": rng.integers(900, 90_000, 60), "born": 1980}
        )
        made = da.report(frame, quick=True, sections=["found"])
        assert [note for note in made.notes if "postal code" in note] == [
            "column 'zip' is taken for numbers; if its 5 digits are a code, such as a postal code, read it with "
            "--categorical"
        ]
        assert not any(
            "postal" in note for note in da.report(frame.astype({"zip": str}), quick=True, sections=["found"]).notes
        )

    def test_one_attribute_that_names_everybody_is_not_fine(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"phone": rng.permutation(np.arange(400) * 13 + 5)})
        section = da.report(frame, quick=True, sections=["found"], quasi_identifiers=["phone"]).section("found")
        assert "100% of the people are unique by 1 attribute" in plain(section.finding)
        assert "no attribute has to be made coarser" not in plain(section.advice)
        assert section.facts["share_unique_after_coarsening"] < 1

    def test_few_unique_people_need_nothing_and_the_limit_is_said(self):
        frame = pd.DataFrame({"sex": list("fm") * 100, "town": ["a", "b", "c", "d"] * 50})
        section = da.report(frame, quick=True, sections=["found"]).section("found")
        assert plain(section.advice) == "That is no more than 5%: no attribute has to be made coarser for this."

    def test_small_groups_are_not_called_fine(self):
        frame = pd.DataFrame({"sex": ["f"] * 96 + ["m"] * 4, "town": list("ab") * 50})
        section = da.report(frame, quick=True, sections=["found"]).section("found")
        assert plain(section.advice).endswith("decide whether the 4.0% in groups under 5 may be found.")

    def test_people_who_are_all_alike_are_said_to_be(self):
        frame = pd.DataFrame({"sex": ["f"] * 60, "town": ["a"] * 60})
        section = da.report(frame, quick=True, sections=["found"]).section("found")
        assert "all are alike" in plain(section.finding)
        assert "identifies people most" not in told(section)
        assert "gives people away most" not in told(section)
        assert "most at risk" not in told(section)

    def test_attributes_that_tell_as_much_are_named_together(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"sex": rng.choice(list("fm"), 60), "code": rng.permutation(60), "key": rng.permutation(60)}
        )
        section = da.report(frame, quick=True, sections=["found"]).section("found")
        assert section.facts["bits.code"] == pytest.approx(section.facts["bits.key"])
        assert "code and key identify people most" in plain(section.finding)
        assert "code and key identify people most" in told(section)
        assert "identifies" not in told(section)

    def test_what_chance_decides_is_no_finding(self):
        """Of 30 attributes made alike, none can be called the one that identifies people most."""
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({f"x{i}": rng.integers(0, 3, 200) for i in range(30)})
        section = da.report(frame, quick=True, sections=["found"]).section("found")
        assert "identifies people most" not in told(section)
        assert re.search(r"and \d+ others identify people most", plain(section.finding))
        assert "gives people away most" not in told(section)

    def test_small_groups_and_leaving_out_are_counted_right(self):
        table = da.census(500, seed=4)
        section = da.report(table, quick=True, sections=["found"]).section("found")
        frame = table.to_frame("pandas")
        frame["capital"] = np.floor(frame["capital"] / da.measured_bins(table)["capital"])

        def sizes(columns):
            return frame.groupby(list(columns))["id"].transform("size").to_numpy()

        every = list(table.features)
        assert f"{(sizes(every) < 5).mean():.1%} share it with fewer than four others" in told(section).replace(
            "100%", "100.0%"
        )
        for row in grid(section, "What each attribute tells").rows:
            without = (sizes([name for name in every if name != row[0]]) == 1).mean()
            assert row[-1] in (f"{without:.1%}", "100%", ">99.9%")
            assert row[-1] != "100%" or without == 1

    def test_who_stands_out_by_what(self):
        table = da.census(300, seed=5)
        section = da.report(table, quick=True, sections=["found"]).section("found")
        most = grid(section, "most at risk")
        ids = [int(row[0]) for row in most.rows]
        shapley = da.reidentification_shapley(table, table, people=np.array(ids))
        for i, said in enumerate(column(most, "stands out by")):
            by_name = shapley.of(ids[i])
            first, second = sorted(by_name, key=lambda name: -by_name[name])[:2]
            assert said == f"{first} and {second}"
        risk = da.reidentification_risk(table, table)
        assert f"a record picked at random scores {risk.guesses.mean():.3f}" in told(section)
        assert column(most, "risk")[0] == f"{risk.values.max():.3f}"

    def test_a_sample_is_not_called_the_table(self):
        section = da.report(da.census(900, seed=1), quick=True, most=150, sections=["found"]).section("found")
        assert "If a sample of 150 records of the table were given away" in told(section)
        assert "of 150 searched for" in grid(section, "most at risk").title
        assert any("Risk in the whole table" in one for one in section.unseen)

    def test_estimates_are_called_so(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.integers(0, 3, (120, 24)), columns=[f"c{i}" for i in range(24)])
        made = da.report(frame, quick=True, sections=["found"])
        caption = figure(made.section("found"), "identify people most").caption
        assert re.search(r"averaged over [\d,]+ random orders \(to ± [\d.]+ bits\)", caption)
        assert "add up" not in caption
        assert any("estimated from" in note for note in made.notes)

    def test_the_attributes_of_most_values_are_looked_at(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({f"c{i:02d}": rng.integers(0, 2 if i < 30 else 6, 150) for i in range(70)})
        made = da.report(frame, quick=True, sections=["found"])
        assert sorted(name[5:] for name in made.facts() if name.startswith("bits.")) == [
            f"c{i:02d}" for i in range(30, 70)
        ]

    def test_text_set_aside_is_named_where_people_are_looked_for(self):
        frame = da.census(200, seed=1).to_frame("pandas")[["age", "sex", "income"]]
        frame["surname"] = [f"name {i % 90}" for i in range(200)]
        made = da.report(frame, "income", quick=True, sections=["found"])
        assert "surname holds text with 90 different values" in told(made.section("found"))

    def test_the_label_is_called_unseen_only_if_it_was(self):
        table = da.census(150, seed=1)
        seen = da.report(table, quick=True, sections=["found"], quasi_identifiers=["age", "income"]).section("found")
        assert not any("label income" in one for one in seen.unseen)
        without = da.report(table, quick=True, sections=["found"], quasi_identifiers=["age", "sex"]).section("found")
        assert any("label income" in one for one in without.unseen)


class TestRelease:
    def numbers(self, section):
        table = grid(section, "Strategies")
        return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}

    def test_means_over_splits_are_what_is_shown_and_picked_by(self):
        table = da.census(300, seed=1)
        strategies = ["k=2", "k=8", "remove=0.25"]
        section = da.report(table, quick=True, sections=["release"], strategies=strategies).section("release")
        people = int(re.search(r"data, ([\d,]+) people", told(section))[1].replace(",", ""))
        found = [
            da.compare_releases(table, strategies=["keep", *strategies], people=people, seed=seed) for seed in range(3)
        ]
        shown = self.numbers(section)
        for i, name in enumerate(["keep", *strategies]):
            assert shown[name]["mean risk"] == f"{np.mean([one.values[i] for one in found]):.3f}"
            assert shown[name]["prediction (MCC)"] == f"{np.mean([one.mcc[i] for one in found]):.3f}"
            assert shown[name]["highest risk"] == f"{max(one.risks[i].max() for one in found):.3f}"
            assert f"{section.facts[f'highest_risk.{name}']:.3f}" == shown[name]["highest risk"]
        rho, n = np.mean([one.mcc[0] for one in found]), 45 * 3
        assert f"MCC up to about {2 * math.sqrt((1 - rho**2) / n):.2f} are within chance" in told(section)

    def test_the_error_of_a_correlation_is_not_understated(self):
        """Two standard errors of Matthews' correlation, simulated, against what the page says."""
        from datassay.report.releases import _Compared

        rng = np.random.default_rng(0)
        for n, flip in ((450, 0.2), (60, 0.07), (450, 0.03)):
            truth = rng.random((400, n)) < 0.5
            guess = truth ^ (rng.random((400, n)) < flip)
            rho = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(truth, guess, strict=True)])
            said = _Compared(
                ["keep"], np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)), np.full((1, 1), rho.mean()), 1, n, ()
            ).error
            assert 0.8 * 2 * rho.std() < said < 1.3 * 2 * rho.std()

    def test_that_the_person_most_at_risk_is_hardly_helped_is_said_where_it_is_so(self):
        from datassay.report.releases import _Compared, _least_helped

        def said(after, name="k=8"):
            risk, highest, one = np.array([[0.5, 0.2]]), np.array([[0.6, after]]), np.ones((1, 2))
            compared = _Compared(["keep", name], risk, highest, one, one, 9, 9, ())
            (paragraph,) = _least_helped(compared, compared.pick())
            return plain(paragraph.text)

        assert "hardly helped: 0.625 with k=8 and 0.600 as it is" in said(0.625)
        assert "hardly helped" not in said(0.3)
        assert "In groups of 2, whoever knows the others finds the last one" in said(0.3, "k=2")
        assert "In groups" not in said(0.3)

    def test_leaving_people_out_is_never_picked(self):
        section = da.report(
            da.census(200, seed=2), quick=True, sections=["release"], strategies=["remove=0.5"]
        ).section("release")
        assert section.facts["recommended_release"] is None
        assert "keep costs" not in told(section)
        assert "pick" not in [row[-1] for row in grid(section, "Strategies").rows]

    def test_where_nothing_keeps_its_use_nothing_is_picked(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"a": rng.integers(0, 200, 240), "b": rng.integers(0, 200, 240)})
        frame["y"] = np.where((frame["a"] + frame["b"]) % 2 == 0, "even", "odd")
        frame["c"] = np.where(frame["y"] == "even", 0, 1) * 100 + rng.integers(0, 60, 240)
        section = da.report(frame, "y", quick=True, sections=["release"], strategies=["k=100"]).section("release")
        if section.facts["recommended_release"] is None:
            assert "is the pick" not in told(section)
            assert all(card.number.text != "keep" for card in section.cards)
        assert section.facts["recommended_release"] in (None, "k=100")

    def test_records_that_are_all_alike_need_no_change(self):
        frame = pd.DataFrame({"sex": ["f"] * 40, "town": ["a"] * 40, "y": ["p", "q"] * 20})
        section = da.report(frame, "y", quick=True, sections=["release"]).section("release")
        assert "keeps 90%" not in plain(section.finding)
        assert section.facts["recommended_release"] is None

    def test_the_front_is_what_nothing_beats(self):
        section = da.report(da.census(300, seed=1), quick=True, sections=["release"]).section("release")
        shown = self.numbers(section)
        risk = {name: section.facts[f"risk.{name}"] for name in shown}
        mcc = {name: section.facts[f"mcc.{name}"] for name in shown}
        for name, row in shown.items():
            beaten = any(
                risk[o] <= risk[name] and mcc[o] >= mcc[name] and (risk[o] < risk[name] or mcc[o] > mcc[name])
                for o in shown
            )
            assert (row["worth considering"] in ("yes", "pick")) == (not beaten) or row["worth considering"] == "pick"

    def test_the_command_to_make_it_is_there(self):
        section = da.report("census", quick=True, sections=["release"]).section("release")
        name = section.facts["recommended_release"]
        aside = "--ignore label_error,duplicate_of,rare"
        how = f"{aside} --strategies keep,{name} --write {name} --to released.csv"
        assert f"datassay release census --label income {how}" in told(section)

    @pytest.mark.parametrize("label", ["income", None])
    def test_what_was_set_aside_does_not_slip_into_the_release(self, tmp_path, monkeypatch, label):
        frame = da.census(200, seed=1).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
        frame["id"] += 1000  # numbers the rows, and nobody named it
        frame["said, freely"] = [f"a remark of person {i}" for i in range(200)]  # text, and a comma in its name
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("datassay.report.releases.KEPT", 0.1)  # whatever is safer may be picked
        frame.to_csv("people.csv", index=False)
        made = da.report("people.csv", label, quick=True, sections=["release"], strategies=["k=8"])
        command = told(made.section("release")).split("To make it: ")[1].split("\n")[0]
        if label is None:
            exec(command, {"da": da})
        else:
            called = CliRunner().invoke(app, [*shlex.split(command)[1:], "--people", "5", "--strategies", "keep"])
            assert called.exit_code == 0, called.output
        released = da.read_table("released.csv")
        assert set(released.columns) == set(frame.columns) - {"id", "said, freely"}


class TestTold:
    def test_epsilon_and_delta_are_said_as_they_are(self):
        made = da.report(da.census(400, seed=1), quick=True, sections=["told"], epsilon=0.5, delta=3e-6)
        words = told(made.section("told"))
        assert f"e^0.5 = {math.exp(0.5):.3g} times as likely, but for a chance of δ = 3e-06, 1 in 333,333" in words
        assert f"at most {math.exp(0.5) / (1 + math.exp(0.5)):.0%} sure" in words
        assert "depends on that record openly: it is for them alone" in words
        assert "δ = 3e-06)-differential privacy" in words

    def test_agreement_is_with_the_open_values(self):
        table = da.census(400, seed=1)
        made = da.report(table, sections=["told"], epsilon=5.0)
        private, public = table.split(0.8, seed=0)
        tau = da.tune_tau(public).best
        openly = da.tknn_shapley(private, X_val=public, tau=tau)
        again = [
            spearmanr(
                da.private_tknn_shapley(
                    private, X_val=public, tau=tau, epsilon=5.0, delta=made.facts()["delta"]
                ).values,
                openly.values,
            ).statistic
            for _ in range(7)
        ]
        assert abs(made.facts()["private_rank_correlation"] - np.median(again)) < 0.1
        frame = pd.DataFrame({"label": private.labels.astype(str), "value": openly.values})
        means = frame.groupby("label")["value"].transform("mean")
        alone = f"would agree with them to {spearmanr(means, openly.values).statistic:.2f}"
        assert alone in told(made.section("told"))
        weak = da.report(table, sections=["told"], epsilon=0.01).facts()["private_rank_correlation"]
        assert weak < made.facts()["private_rank_correlation"]

    @pytest.mark.parametrize(
        ("how", "said"),
        [
            ({"epsilon": 50.0}, "promises next to nothing"),
            ({"delta": 0.5}, "may fail somebody altogether"),
            ({"epsilon": 0.002}, "rely on"),
        ],
    )
    def test_advice_follows_from_what_is_promised_and_reached(self, how, said):
        section = da.report(da.census(300, seed=1), quick=True, sections=["told"], **how).section("told")
        assert said in plain(section.advice)

    def test_to_raise_epsilon_is_to_raise_it(self):
        from datassay.report.private_values import _advice

        class Job:
            epsilon, delta, table = 1.0, 1e-6, range(100)

        assert "Raise ε to 2" in _advice(Job, 0.5, [2.0])
        assert "Tell each owner their own value and nobody else's" in _advice(Job, 0.9, [2.0])
        assert "Do not rely" in _advice(Job, 0.5, [])

    def test_public_records_among_the_private_ones_are_said(self):
        table = da.census(300, seed=1)
        frame = table.to_frame("pandas")
        made = da.report(
            frame.iloc[:200], "income", id="id", validation=frame.iloc[150:290], quick=True, sections=["told"]
        )
        assert "occur in the training data too" in told(made.section("told"))

    def test_a_label_that_only_the_public_records_have_does_not_end_it(self):
        frame = da.census(200, seed=1).to_frame("pandas")
        frame.loc[150:155, "income"] = "unheard of"
        made = da.report(
            frame.iloc[:150], "income", id="id", validation=frame.iloc[150:], quick=True, sections=["told"]
        )
        assert made.section("told").left_out == ""

    def test_a_rare_class_does_not_end_it(self):
        frame = da.census(200, seed=1).to_frame("pandas")
        frame.loc[3, "income"] = "unheard of"
        made = da.report(frame, "income", id="id", quick=True, sections=["told"])
        assert "n_classes" not in made.section("told").left_out

    def test_which_open_values_are_meant_is_said(self):
        table = da.census(400, seed=1)
        made = da.report(table, quick=True, sections=["worth", "told"])
        private, public = table.split(0.8, seed=0)
        openly = da.tknn_shapley(private, X_val=public, tau=da.tune_tau(public).best).values
        first = da.knn_shapley(table).values[private.ids]
        expected = spearmanr(openly, first).statistic
        assert made.facts()["open_rank_correlation"] == pytest.approx(expected)
        assert f"they agree to a rank correlation of {expected:.2f}" in told(made.section("told"))
        assert "open ones of the same kind" in plain(made.section("told").finding)
        alone = da.report(table, quick=True, sections=["told"])
        assert "by which this page ranks" not in told(alone.section("told"))
        assert "open_rank_correlation" not in alone.facts()

    def test_values_that_tell_the_label_alone_are_not_told_as_worth(self, monkeypatch):
        """Where everybody is within τ of everybody, nothing but the label makes a difference."""
        monkeypatch.setattr(da, "tune_tau", lambda *_, **__: SimpleNamespace(best=1.0))
        section = da.report(da.census(300, seed=1), quick=True, sections=["told"], epsilon=2.0).section("told")
        assert "differ by the label alone" in plain(section.finding)
        assert plain(section.advice).startswith("Do not tell them")

    def test_notes_are_not_taken_for_the_promise(self):
        frame = da.census(300, seed=1).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
        frame["born"] = pd.date_range("1950-01-01", periods=300, freq="30D").strftime("%Y-%m-%d")
        made = da.report(frame, "income", id="id", quick=True, sections=["told"])
        words = told(made.section("told"))
        assert "public records that are no part of the private ones. Noted on the way: " in words
        assert any("holds dates" in note for note in made.notes)
        assert "holds dates" not in words  # it is said once, where the data are


class TestTrade:
    def test_prices_that_change_nothing_are_not_said_to_decide(self):
        ages = [23, 35, 41, 23, 56, 61, 33, 28, 45, 50, 39, 23]
        table = da.read_table(pd.DataFrame({"age": ages, "sex": list("mf") * 6, "y": list("ab") * 6}), "y")
        paid = da.search_prices(da.knn_shapley(table), share=0.8).inclusiveness
        assert np.ptp(paid) == 0
        section = da.report(table, quick=True, sections=["trade"]).section("trade")
        assert f"At all prices that were tried {paid[0]:.1%} of the owners are paid" in told(section)
        assert "decide who is paid" not in told(section)

    def test_prices_that_pay_nobody_more_are_not_advised(self):
        x = np.array([0.1, 0.7, 0.2, 0.9, 1.1, 1.8, 1.6, 1.4, 1.2, 0.4, 0.6, 1.9])
        frame = pd.DataFrame({"x": x, "y": np.where(x + np.tile([0.5, -0.5, 0], 4) > 1, "hi", "lo")})
        for rows in (frame, frame.iloc[:6], frame.iloc[:4]):
            section = da.report(rows, "y", quick=True, sections=["trade"], k=3).section("trade")
            more = section.facts["owners_paid_at_most"] > section.facts["owners_paid_at_highest_revenue"]
            assert plain(section.advice).startswith("For many owners" if more else "None of the prices")

    def test_the_two_choices_are_those_of_the_search(self):
        table = da.census(300, seed=1)
        section = da.report(table, quick=True, sections=["trade"]).section("trade")
        found = da.search_prices(da.knn_shapley(table), share=0.8)
        rows = {row[0]: row for row in grid(section, "Two choices").rows}
        for title, at in (("highest revenue", found.best), ("most owners paid", found.most_inclusive)):
            assert rows[title][1] == f"{found.theta[at]:g}"
            assert rows[title][4] == f"{int(found.bought[at]):,}"
            assert rows[title][5] == f"{found.inclusiveness[at]:.1%}"
        assert f"pays {found.inclusiveness[found.best]:.1%} of the owners" in plain(section.finding)
        assert f"choose θ = {found.theta[found.most_inclusive]:g}" in plain(section.advice)


class TestPageText:
    MARK = "<b class=x>&amp;</b>"

    def test_every_place_of_the_page_escapes(self):
        """A report made by hand with markup in every text it can hold: none of it may become markup."""
        from datassay.report import Card, Number, Report, Section

        mark = self.MARK
        text = (mark, Number(mark, "knn-shapley"))
        table = Grid(mark, (mark,), ((mark,),), ("text",), "knn-shapley", mark)
        shape = Figure(mark, "<svg xmlns='http://www.w3.org/2000/svg'><g/></svg>", mark, "knn-shapley")
        section = Section("worth", mark, text, text, (Card(mark, Number(mark, "knn-shapley"), mark),),
                          (Paragraph(text), table, shape), (mark,), {}, "")  # fmt: skip
        out = Section("leaks", mark, left_out=mark)
        parameters = {"made": mark, "what": mark, "how": mark, "named": mark, "show_rows": False}
        made = Report(mark, (section, out), {"id": np.arange(1)}, parameters, (mark,))
        html = made.html()
        assert mark not in html
        assert "<b class=x>" not in html
        assert html.count("&lt;b class=x&gt;") >= 25

    def test_names_on_the_page_are_unique_and_figures_have_one(self):
        made = da.report(da.census(60, seed=1), quick=True, sections=["worth", "found", "told"])
        page = made.html()
        names = re.findall(r'\sid="([^"]*)"', page)
        assert sorted(names) == sorted(set(names))
        assert set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', page)) <= {
            pair for name in names for pair in ((name, ""), ("", name))
        }
        figures = sum(isinstance(block, Figure) for section in made.sections for block in section.blocks)
        titles = [
            re.search(rf'<h3 id="{name}">(.*)</h3>', page) for name in re.findall(r'labelledby="(figure-\d+)"', page)
        ]
        assert figures == len(titles) == page.count('role="img"') == page.count("<svg")
        assert all(title and title[1] for title in titles)

    def test_no_heading_skips_a_level(self):
        page = da.report(da.census(60, seed=1), quick=True, sections=["found"]).html()
        levels = [int(level) for level in re.findall(r"<h(\d)", page)]
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))

    def test_an_id_does_not_turn_the_text_after_it(self):
        frame = clusters(60).assign(id=[f"{i}\u202e\x1b" for i in range(60)])
        made = da.report(frame, "y", id="id", quick=True, sections=["worth"])
        page = made.html()
        assert made.ids[made.values.argmin()] in plain(made.section("worth").advice)
        assert not re.search("[\u202e\x1b]", page)
        assert f"{made.values.argmin()}\\u202e\\x1b" in page

    def test_the_page_says_that_it_is_not_private(self):
        html = " ".join(da.report(da.census(60), quick=True, sections=["found"]).html().split())
        assert "This page was made from the data and is not private." in html
        assert "shows no other cell of the table" in html
        assert "their row, counted from 0, and label" in html

    @pytest.mark.parametrize(
        "svg",
        [
            "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
            "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'></svg>",
            "<svg xmlns='http://www.w3.org/2000/svg'><image href='http://example.org/x.png'/></svg>",
            "<svg xmlns='http://www.w3.org/2000/svg'><a href='javascript:alert(1)'><text>x</text></a></svg>",
            "<svg xmlns='http://www.w3.org/2000/svg'><rect style='fill: url(http://example.org/x)'/></svg>",
            "<svg xmlns='http://www.w3.org/2000/svg'><use href='http://example.org/x.svg#a'/></svg>",
            "<svg xmlns='http://www.w3.org/2000/svg'><!--><meta http-equiv='refresh' content='0;url=x'/>--></svg>",
            "<svg xmlns='http://www.w3.org/2000/svg'><?x ><meta http-equiv='refresh' content='0;url=x'/>?></svg>",
            "<svg xmlns='http://www.w3.org/2000/svg'><text><![CDATA[<b>x</b>]]></text></svg>",
            "<!DOCTYPE svg [<!ENTITY a 'x'>]><svg xmlns='http://www.w3.org/2000/svg'><text>&a;</text></svg>",
            "<x:svg xmlns:x='http://www.w3.org/2000/svg'><x:g/></x:svg>",
            "<p>no drawing</p>",
            "<svg",
        ],
    )
    def test_a_figure_that_is_more_than_a_drawing_is_refused(self, svg):
        with pytest.raises(da.InputError, match="figure of this report"):
            drawing(svg)

    def test_a_doctored_file_is_refused(self, tmp_path):
        made = da.report(da.census(60), quick=True, sections=["worth"])
        made.save(tmp_path / "r.json")
        content = json.loads((tmp_path / "r.json").read_text())
        for block in content["datassay"]["sections"][0]["blocks"]:
            if block["kind"] == "figure":
                block["svg"] = "<svg><script>alert(1)</script></svg>"
        (tmp_path / "evil.json").write_text(json.dumps(content))
        with pytest.raises(da.InputError, match="holds more than a drawing"):
            da.load_result(tmp_path / "evil.json").html()
        content["datassay"]["sections"][0]["blocks"][0]["kind"] = "strange"
        (tmp_path / "odd.json").write_text(json.dumps(content))
        with pytest.raises(da.InputError, match="not a result"):
            da.load_result(tmp_path / "odd.json")

    def test_no_value_of_the_table_is_named_in_a_note(self, tmp_path):
        frame = da.census(200, seed=1).to_frame("pandas")
        frame.loc[190:, "occupation"] = "SECRET JOB"
        made = da.report(frame.iloc[:150], "income", id="id", validation=frame.iloc[150:], quick=True)
        assert "SECRET JOB" not in made.html()
        assert any("never occur" in note for note in made.notes)

    def test_classes_that_begin_with_an_underscore_are_in_the_legend(self):
        frame = clusters(80).assign(y=["_low", "high"] * 40)
        html = da.report(frame, "y", quick=True, sections=["worth"]).html()
        assert re.search(r"<text[^>]*>\u200b?_low</text>", html)


class TestFiles:
    def test_page_and_json_come_together_or_not_at_all(self, tmp_path, monkeypatch):
        one = da.report(da.census(60, seed=1), quick=True, sections=["found"])
        one.save(tmp_path / "r.html")
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        two = da.report(da.census(70, seed=2), quick=True, sections=["found"])
        from datassay.results import files

        def fail(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(files, "_plain_list", fail)
        with pytest.raises(OSError, match="No space"):
            two.save(tmp_path / "r.html")
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before

    def test_a_file_of_the_users_own_is_not_overwritten(self, tmp_path):
        from datassay.report import check_page

        (tmp_path / "people.json").write_text('{"mine": 1}')
        with pytest.raises(da.UsageError, match="would be overwritten, and is no report"):
            check_page(tmp_path / "people.html")
        da.report(da.census(60), quick=True, sections=["found"]).save(tmp_path / "r.html")
        check_page(tmp_path / "r.html")

    def test_other_endings_are_named(self, tmp_path):
        made = da.report(da.census(60), quick=True, sections=["found"])
        with pytest.raises(da.UsageError, match=r"\.html, \.json, \.parquet or \.csv"):
            made.save(tmp_path / "r.pdf")


class TestWrongCalls:
    @pytest.mark.parametrize("how", [{"strategies": ["k=foo"]}, {"epsilon": 1000.0}, {"strategies": ["shapely=0.2"]}])
    def test_a_wrong_option_is_no_section_left_out(self, how):
        with pytest.raises(da.UsageError):
            da.report(da.census(80), quick=True, **how)

    def test_a_label_that_is_no_name_is_refused(self):
        frame = da.census(40).to_frame("pandas")
        with pytest.raises(da.UsageError, match="label must be the name of a column"):
            da.report(frame, frame["income"])

    def test_why_nothing_could_be_valued_is_told_by_every_section(self):
        frame = da.census(60).to_frame("pandas")
        frame["age"] = np.where(np.arange(60) == 7, np.inf, frame["age"])
        made = da.report(frame, "income", id="id", quick=True)
        for key in ("worth", "leaks", "trade"):
            assert "has no label" not in made.section(key).left_out
            assert made.section(key).left_out
