"""The report: what it says is what the methods say, planted faults show up where they should, odd tables do no harm."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import datassay as da
from datassay.data import truth
from datassay.neighbors import FeatureSpace
from datassay.report import METHODS, Figure, Grid, Number, Paragraph
from datassay.report.content import Section, plain

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """Tags, ids, links and text of a page; complains about tags that do not match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.ids, self.links, self.open, self.text, self.sources = [], [], [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        for name in ("src", "href", "xlink:href", "srcset", "action", "data"):
            if name in attributes and tag != "a":
                self.sources.append(attributes[name])
        assert not any(name.startswith("on") for name in attributes), attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def census():
    return da.report("census", truth="label_error")


@pytest.fixture(scope="module")
def page(census):
    return Page(census.html())


def numbers_of(section):
    texts = [section.finding, section.advice, *(block.text for block in section.blocks if isinstance(block, Paragraph))]
    return [piece for text in texts for piece in text if isinstance(piece, Number)]


def grids(report, key):
    return [block for block in report.section(key).blocks if isinstance(block, Grid)]


def test_neighbours_are_looked_for_once(monkeypatch):
    """Records among each other, public ones, private ones seen from these as encoded openly, and as encoded by them."""
    from datassay.data import inputs
    from datassay.neighbors import passes

    spaces, encoders, rows = [], [], []
    make, fit, fill = passes.make_space, inputs.fit_encoder, FeatureSpace.fill

    def filled(self, start, out):
        rows.append(out.shape)
        fill(self, start, out)

    monkeypatch.setattr(passes, "make_space", lambda *given, **how: spaces.append(given) or make(*given, **how))
    monkeypatch.setattr(inputs, "fit_encoder", lambda *given, **how: encoders.append(given) or fit(*given, **how))
    monkeypatch.setattr(FeatureSpace, "fill", filled)
    da.report(da.census(300), quick=True)
    assert len(spaces) == len(encoders) == 4
    assert sum(shape[0] for shape in rows if shape[1] == 300) == 300
    assert sum(shape[0] for shape in rows if shape[1] == 240) == 2 * 60


class TestCensus:
    def test_the_ten_records_that_hurt_most_are_planted_errors(self, census):
        wrong = truth(da.census(), "label_error")
        worst = next(grid for grid in grids(census, "worth") if "hurt most" in grid.title)
        assert len(worst.rows) == 10
        assert all(wrong[int(row[0])] for row in worst.rows)

    def test_those_called_mislabelled_are_mostly_planted_errors(self, census):
        wrong = truth(da.census(), "label_error")
        likely = census.records["likely_mislabelled"]
        assert wrong[likely].mean() > 0.7
        assert likely[wrong].mean() > 0.6
        facts = census.facts()
        assert facts["mislabelled_precision"] == pytest.approx(wrong[likely].mean())
        assert facts["mislabelled_recall"] == pytest.approx(likely[wrong].mean())

    def test_the_people_most_at_risk_are_the_rare_ones(self, census):
        rare = truth(da.census(), "rare")
        most = next(grid for grid in grids(census, "found") if "most at risk" in grid.title)
        assert sum(rare[int(row[0])] for row in most.rows) >= 7
        top = np.argsort(-census.records["risk"], kind="stable")[:30]
        assert rare[top].mean() > 20 * rare.mean()

    def test_facts_agree_with_the_methods_called_by_hand(self, census):
        table, facts = da.census(), census.facts()
        values = da.knn_shapley(table).values
        np.testing.assert_array_equal(census.values, values)
        assert facts["share_negative"] == (values < 0).mean()
        assert facts["score"] == pytest.approx(0.5 + values.sum())
        frame = table.to_frame("pandas")
        frame["capital"] = np.floor(frame["capital"] / 2)
        sizes = frame.groupby(list(table.features)).size()
        assert facts["share_unique"] == pytest.approx((sizes == 1).sum() / len(table))
        assert facts["share_below.5"] == pytest.approx(sizes[sizes < 5].sum() / len(table))
        assert facts["total_bits"] == pytest.approx((sizes / 3000 * -np.log2(sizes / 3000)).sum())
        bits = {name: facts[f"bits.{name}"] for name in table.features}
        assert sum(bits.values()) == pytest.approx(facts["total_bits"])
        assert facts["most_identifying"] == max(bits, key=bits.get)
        assert facts["auc"] == da.membership_attack(table, method="t-waka").auc
        assert facts["mean_risk"] == da.reidentification_risk(table, table).mean()

    def test_the_pick_is_the_safest_of_those_that_keep_their_use(self, census):
        facts = census.facts()
        names = [name.removeprefix("mcc.") for name in facts if name.startswith("mcc.")]
        enough = [
            name for name in names
            if facts[f"mcc.{name}"] >= 0.9 * facts["mcc.keep"] and not name.startswith("remove")
        ]  # fmt: skip
        assert facts["recommended_release"] == min(enough, key=lambda name: facts[f"risk.{name}"])
        assert facts["risk_recommended"] < facts["risk_as_it_is"] == facts["risk.keep"]

    def test_records_join_by_id_and_are_whole(self, census):
        frame = census.to_frame("pandas")
        assert len(frame) == 3000
        assert set(frame.columns) == {
            "id", "label", "value", "likely_mislabelled", "exposure", "quadrant", "bits", "alike", "risk"
        }  # fmt: skip
        np.testing.assert_array_equal(frame["exposure"], da.self_waka(da.census()).values)
        assert not frame.isna().any().any()

    def test_every_figure_has_a_finding_for_a_title(self, census):
        figures = [block for section in census.sections for block in section.blocks if isinstance(block, Figure)]
        assert len(figures) >= 8
        for figure in figures:
            assert figure.svg.startswith("<svg")
            assert len(figure.title.split()) >= 4
        assert any(re.search(r"\d", figure.title) for figure in figures)

    def test_axes_have_names_in_words_and_not_those_of_functions(self, census):
        drawings = [block.svg for section in census.sections for block in section.blocks if isinstance(block, Figure)]
        words = " ".join(
            re.sub(r"<[^>]*>", " ", text) for text in re.findall(r"<text.*?</text>", "".join(drawings), re.DOTALL)
        )
        assert METHODS["knn-shapley"].title in words
        assert not re.search(r"[a-z]_[a-z]", words)

    def test_the_first_screen_has_five_sentences_and_what_to_do(self, census, page):
        lines = census.summary().splitlines()
        first = [section for section in census.sections if not section.left_out][:5]
        assert [section.key for section in first] == ["worth", "leaks", "found", "release", "told"]
        text = "".join(page.text)
        for section, line in zip(first, lines, strict=False):
            assert plain(section.finding) in line
            assert plain(section.advice) in line
            assert section.advice
            assert plain(section.finding).split(". ")[0] in re.sub(r"\s+", " ", text)

    def test_every_section_says_what_it_did_not_look_at(self, census):
        assert all(section.unseen for section in census.sections)

    def test_what_epsilon_means_is_said(self, page):
        text = " ".join("".join(page.text).split())
        assert "e^1 = 2.72 times as likely" in text
        assert "can become at most 73% sure" in text  # e/(1+e)
        assert "nothing was released and no budget was spent" in text


class TestPage:
    def test_every_number_links_to_its_method(self, census, page):
        methods = {name.removeprefix("method-") for name in page.ids if name.startswith("method-")}
        assert methods <= set(METHODS)
        for section in census.sections:
            for number in [*numbers_of(section), *(card.number for card in section.cards)]:
                assert number.method in methods, number
            for block in section.blocks:
                if isinstance(block, Figure | Grid):
                    assert block.method in methods

    def test_no_number_stands_in_a_finding_without_its_link(self, census):
        for section in census.sections:
            rest = "".join(piece for piece in section.finding if isinstance(piece, str))
            rest = re.sub(
                r"of [\d,]+ \(|by \d+ attributes|guessing is 0\.5|wants \d+%|ε = |groups of \d+|\(k=\d+\)", "", rest
            )
            assert not re.search(r"\d", rest), rest

    def test_links_within_the_page_lead_somewhere(self, page):
        assert len(page.links) > 60
        for link in page.links:
            assert link.startswith("#"), link
            assert link[1:] in page.ids

    def test_ids_are_unique(self, page):
        assert len(page.ids) == len(set(page.ids))

    def test_nothing_is_fetched_and_nothing_runs(self, census, page):
        assert "script" not in page.tags
        assert {"iframe", "object", "embed", "form", "img", "link"}.isdisjoint(page.tags)
        assert all(source.startswith("#") for source in page.sources)
        text = census.html()
        assert "default-src 'none'" in text
        assert not re.search(r"url\((?!#)", text)
        assert "@import" not in text

    def test_no_row_of_the_table_is_shown(self, page):
        text = " ".join(page.text)
        for job in ("astronaut", "bishop", "lighthouse keeper", "ballerina", "islands", "widowed"):
            assert job not in text

    def test_rows_are_shown_if_asked_for(self):
        made = da.report(da.census(200, seed=4), quick=True, show_rows=True, sections=["worth"])
        table = da.census(200, seed=4)
        worst = next(grid for grid in grids(made, "worth") if "hurt most" in grid.title)
        for row in worst.rows:
            shown = dict(zip(worst.columns, row, strict=True))
            assert float(shown["age"]) == table["age"][int(shown["record"])]
            assert shown["occupation"] == table["occupation"][int(shown["record"])]

    def test_it_is_small_enough_to_send(self, census):
        assert len(census.html().encode()) < 600_000


class TestMischief:
    MARKS = (
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(2)>",
        '"><svg onload=alert(3)>',
        "$x^{2$",
        "{{ 7*7 }}",
        "&amp;",
    )

    def test_cells_names_and_labels_are_text(self, tmp_path):
        frame = da.census(240, seed=2).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
        script, image, drawing, mathematics, template, entity = self.MARKS
        frame["occupation"] = frame["occupation"].replace({"care": script, "sales": mathematics, "clerk": template})
        frame["income"] = frame["income"].replace({"high": drawing, "low": entity})
        frame["id"] = [f"{image}{i}" for i in range(len(frame))]
        frame = frame.rename(columns={"age": script, "hours": mathematics, "region": template})
        made = da.report(frame, "income", id="id", quick=True, show_rows=True)
        text = made.html()
        page = Page(text)
        assert "script" not in page.tags
        assert "img" not in page.tags
        shown = "".join(page.text)
        for mark in (script, drawing, entity, template, mathematics):
            assert mark in shown, mark
        assert f"{image}" in shown
        made.save(tmp_path / "r.html")
        again = da.load_result(tmp_path / "r.json")
        assert again.html() == text

    def test_a_column_name_that_looks_like_a_path_of_methods_changes_no_link(self):
        frame = da.census(120, seed=2).to_frame("pandas").rename(columns={"age": "#method-evil"})
        page = Page(da.report(frame, "income", id="id", quick=True).html())
        assert "#method-evil" not in page.links


class TestOddTables:
    def test_without_a_label_what_needs_one_is_left_out_and_says_so(self):
        frame = da.census(300, seed=5).to_frame("pandas")[["age", "sex", "region", "education"]]
        made = da.report(frame, quick=True)
        left = {section.key: section.left_out for section in made.sections if section.left_out}
        assert set(left) == {"worth", "leaks", "told", "trade"}
        assert all("--label" in why for why in left.values())
        assert made.facts()["recommended_release"] in ("copula", "k=2", "k=8", "k=32", None)
        assert "mcc.keep" not in made.facts()
        assert np.isnan(made.values).all()
        Page(made.html())

    def test_twelve_records_make_a_page(self, tmp_path):
        frame = da.census(20, seed=2).to_frame("pandas").iloc[:12]
        frame.to_csv(tmp_path / "twelve.csv", index=False)
        made = da.report(tmp_path / "twelve.csv", "income", id="id")
        left = {section.key for section in made.sections if section.left_out}
        assert left == {"release", "told"}
        assert made.facts()["likely_mislabelled"] is None
        assert "mislabelled" not in plain(made.section("worth").finding)
        Page(made.html())

    def test_two_hundred_columns_make_a_page(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.integers(0, 4, (200, 200)), columns=[f"c{i}" for i in range(200)])
        frame["y"] = np.where(frame["c0"] + frame["c1"] > 3, "a", "b")
        made = da.report(frame, "y", quick=True)
        assert not any(section.left_out for section in made.sections)
        assert made.facts()["attributes"] == 40
        assert "and 148 more" in " ".join(made.section("found").unseen)
        assert "by 40 attributes of 200" in plain(made.section("found").finding)
        Page(made.html())

    def test_measurements_alone_identify_nobody_we_know(self):
        made = da.report("iris", quick=True)
        assert "--quasi-identifiers" in made.section("found").left_out
        named = da.report("iris", quick=True, quasi_identifiers=["petal length (cm)"], sections=["found"])
        assert named.facts()["attributes"] == 1

    def test_missing_values_dates_and_constants(self):
        rng = np.random.default_rng(3)
        n = 150
        frame = pd.DataFrame(
            {
                "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 4000, n), unit="D"),
                "height": np.where(rng.random(n) < 0.1, np.nan, rng.normal(170, 9, n)),
                "city": rng.choice(["Hull", "York", None], n),
                "same": 1,
                "nothing": np.full(n, np.nan),
                "note": [f"free text number {i}" for i in range(n)],
                "y": rng.choice(["a", "b"], n),
            }
        )
        made = da.report(frame.drop(columns="nothing"), "y", quick=True)
        page = Page(made.html())
        assert "note holds text with 150 different values in 150 records" in " ".join("".join(page.text).split())
        assert not made.section("worth").left_out
        assert any("height" in note for note in made.notes)

    def test_one_class_is_said_and_not_a_crash(self):
        frame = da.census(60, seed=2).to_frame("pandas")
        frame["income"] = "high"
        made = da.report(frame, "income", id="id", quick=True)
        assert "one class only" in made.section("leaks").left_out
        Page(made.html())

    def test_a_column_that_counts_the_rows_is_set_aside(self):
        frame = da.census(80, seed=2).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
        made = da.report(frame, "income", quick=True, sections=["found"])
        assert any("'id' numbers the rows" in note for note in made.notes)
        assert "bits.id" not in made.facts()

    def test_a_sample_is_said_aloud_and_the_unique_are_counted_among_all(self):
        table = da.census(1500, seed=3)
        made = da.report(table, quick=True, most=300, sections=["worth", "found"])
        assert "300 of them, drawn at random" in made.parameters["what"]
        assert np.isfinite(made.values).sum() == 300
        assert made.facts()["records_valued"] == 300
        assert made.facts()["people"] == 1500
        assert any("1,200 records" in one for one in made.section("worth").unseen)
        assert made.facts()["share_unique"] == pytest.approx(
            da.group_sizes(table, list(table.features), coarsen=da.measured_bins(table)).unique
        )
        assert made.facts()["most_identifying"] == "age"

    def test_what_was_filled_in_is_counted_in_the_table_or_said_to_be_of_the_sample(self):
        frame = da.census(1000, seed=3).to_frame("pandas")
        frame.loc[frame.index % 5 == 0, "occupation"] = None
        made = da.report(frame, "income", quick=True, most=300, sections=["worth", "found"])
        counted = [note for note in made.notes if re.search(r"\d+ missing values of 'occupation'", note)]
        assert counted
        assert all(note.startswith("a sample of table: ") for note in counted)


class TestBadInput:
    @pytest.mark.parametrize(
        ("how", "said"),
        [
            ({"label": "incme"}, "did you mean 'income'"),
            ({"sections": ["worth", "price"]}, "sections must be one of"),
            ({"sections": "worth"}, "sections"),
            ({"epsilon": 0}, "epsilon must be a finite number above 0"),
            ({"delta": 2}, "delta must be"),
            ({"quasi_identifiers": ["ag"]}, "quasi_identifiers: there is no column 'ag'"),
            ({"quasi_identifiers": "age"}, "quasi_identifiers"),
            ({"truth": "sex"}, "not true or false"),
            ({"most": 3}, "most must be a whole number at least 20"),
            ({"k": 0}, "k must be a whole number"),
            ({"id": "age"}, "read already"),
            ({"sections": ["release"], "strategies": ["k=x"]}, "'x' is not a number"),
        ],
    )
    def test_what_is_wrong_is_named(self, how, said):
        with pytest.raises(da.InputError, match=re.escape(said)):
            da.report(da.census(60), quick=True, **how)

    def test_a_missing_label_is_an_error_at_once(self):
        frame = da.census(60).to_frame("pandas")
        frame.loc[7, "income"] = None
        with pytest.raises(da.InputError, match=r"'income'.*missing in 1 row, first at row 7"):
            da.report(frame, "income")

    def test_a_validation_file_that_lacks_a_column_is_an_error(self, tmp_path):
        frame = da.census(60).to_frame("pandas")
        frame.drop(columns="age").to_csv(tmp_path / "val.csv", index=False)
        with pytest.raises(da.InputError, match="age"):
            da.report(frame, "income", id="id", validation=tmp_path / "val.csv", quick=True, sections=["worth"])


class TestResult:
    @pytest.mark.parametrize("ending", ["json", "parquet"])
    def test_it_comes_back_from_a_file(self, census, tmp_path, ending):
        census.save(tmp_path / f"r.{ending}")
        again = da.load_result(tmp_path / f"r.{ending}")
        assert again.sections == census.sections
        assert again.facts() == census.facts()
        assert again.html() == census.html()
        np.testing.assert_array_equal(again.values, census.values)

    def test_the_json_beside_the_page_holds_all_of_it(self, census, tmp_path):
        census.save(tmp_path / "r.html")
        content = json.loads((tmp_path / "r.json").read_text())
        assert content["datassay"]["facts"] == census.facts()
        assert len(content["columns"]["value"]) == 3000
        assert [one["title"] for one in content["datassay"]["sections"]] == [one.title for one in census.sections]
        assert (tmp_path / "r.html").read_text() == census.html()

    def test_sections_survive_being_plain(self, census):
        for section in census.sections:
            assert Section.from_dict(json.loads(json.dumps(section.to_dict()))) == section

    def test_the_same_numbers_for_any_number_of_threads(self):
        table = da.census(200, seed=6)
        keep = ["worth", "leaks", "found", "release", "trade"]  # private noise is never the same
        one, two = (da.report(table, sections=keep, n_jobs=jobs, seed=3) for jobs in (1, 2))
        assert one.facts() == two.facts()
        assert one.sections == two.sections

    def test_the_room_can_be_called_however_it_was_imported(self):
        code = "import datassay.report; import datassay as da; print(da.report(da.census(40), quick=True, sections=['worth']))"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert out.stdout.startswith("Report('census': 40 records")

    def test_progress_goes_from_nothing_to_all(self):
        seen = []
        da.report(da.census(100), quick=True, progress=lambda done, of: seen.append(done / of))
        assert seen == sorted(seen)
        assert seen[0] == 0
        assert seen[-1] == 1


class TestLikelyErrors:
    def test_flags_by_the_definition(self):
        """Votes, class confidences and signs counted by plain loops."""
        rng = np.random.default_rng(5)
        X, y = rng.integers(0, 4, (40, 2)).astype(float), rng.integers(0, 3, 40)
        k = 4
        found = da.likely_errors(X, y, k=k)
        values = da.knn_shapley(X, y).values
        share = np.zeros((40, 3))
        for i in range(40):
            others = sorted((j for j in range(40) if j != i), key=lambda j: (((X[i] - X[j]) ** 2).sum(), j))[:k]
            for j in others:
                share[i, y[j]] += 1 / k
        confident = [np.mean([share[i, c] for i in range(40) if y[i] == c]) for c in range(3)]
        for i in range(40):
            c = max(range(3), key=lambda c: (share[i, c], -c))
            expected = share[i, c] >= confident[c] - 1e-12 and share[i, c] > share[i, y[i]] + 1e-12 and values[i] < 0
            assert found.likely[i] == expected, i
            assert found.suggested[i] == c

    def test_flipped_labels_of_separate_clusters_are_found_and_no_others(self):
        rng = np.random.default_rng(1)
        X = np.concatenate([rng.normal(0, 1, (100, 3)), rng.normal(20, 1, (100, 3))])
        y = np.repeat([0, 1], 100)
        flipped = np.zeros(200, bool)
        flipped[rng.permutation(200)[:9]] = True
        labels = np.where(flipped, 1 - y, y)
        found = da.likely_errors(X, labels)
        near, _ = da.nearest_neighbours(X, limit=10)
        certain = flipped & ~flipped[near].any(axis=1)  # outvoted by all of their neighbours
        assert certain.sum() >= 3
        assert found.likely[certain].all()
        assert not found.likely[~flipped].any()
        np.testing.assert_array_equal(found.suggested[flipped], y[flipped])

    def test_it_comes_back_from_a_file(self, tmp_path):
        found = da.likely_errors(da.census(200, seed=1))
        found.save(tmp_path / "s.parquet")
        again = da.load_result(tmp_path / "s.parquet")
        np.testing.assert_array_equal(again.likely, found.likely)
        assert again.summary() == found.summary()
        assert found.facts()["likely"] == found.likely.sum()

    def test_values_of_other_records_are_refused(self):
        with pytest.raises(da.InputError, match="those of these records"):
            da.likely_errors(da.census(50), values=da.knn_shapley(da.census(60)))


class TestCoarsening:
    def test_each_step_is_counted_right(self):
        table = da.voters(3000, seed=2)
        plan = da.suggest_coarsening(table, ["zip", "race", "age"], target=0.0, steps=3)
        frame = table.to_frame("pandas")[["zip", "race", "age"]].astype({"zip": str})
        for name, how in plan.coarsen.items():
            if how is None:
                frame[name] = 0
            elif isinstance(how, dict):
                frame[name] = frame[name].astype(str).replace(how)
            elif name == "zip":
                frame[name] = frame[name].str[:how]
            else:
                frame[name] = frame[name] // how
        sizes = frame.groupby(list(frame.columns)).size()
        assert plan.values[-1] == pytest.approx((sizes == 1).sum() / len(frame))
        assert plan.below[-1] == pytest.approx(sizes[sizes < 5].sum() / len(frame))
        assert (np.diff(plan.values) <= 0).all()

    def test_the_first_step_is_the_best_of_those_tried(self):
        plan = da.suggest_coarsening(da.voters(3000, seed=2), ["zip", "race", "age"], steps=1)
        assert plan.values[1] == min(one for one, _ in plan.tried.values())

    def test_it_stops_at_the_target(self):
        plan = da.suggest_coarsening(da.voters(3000, seed=2), ["race", "gender"], target=1.0)
        assert len(plan) == 1

    def test_people_alike_in_all_but_a_key_are_told_apart_by_the_key_first(self):
        frame = pd.DataFrame({"key": np.arange(60) * 7, "sex": ["f", "m"] * 30, "age": [20, 30, 40] * 20})
        plan = da.suggest_coarsening(frame, target=0.0)
        assert plan.attributes[1] == "key"
        assert plan.values[-1] == 0

    def test_bins_of_measurements(self):
        frame = pd.DataFrame({"height": np.linspace(150, 200, 101), "age": np.arange(101)})
        assert da.measured_bins(frame) == {"height": 5}

    def test_it_comes_back_from_a_file(self, tmp_path):
        plan = da.suggest_coarsening(da.census(300, seed=1))
        plan.save(tmp_path / "plan.json")
        again = da.load_result(tmp_path / "plan.json")
        assert again.summary() == plan.summary()
        assert again.coarsen == plan.coarsen
        assert again.tried == plan.tried
        assert plan.facts()["share_unique_after"] == plan.values[-1]
