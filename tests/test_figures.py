"""Measured figures: pages say what bench/results has, and every result says where it comes from."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "methods").glob("*.md"))]


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return pytest.importorskip("figures")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_says_what_was_measured(page, figures):
    text = page.read_text(encoding="utf-8")
    assert figures.updated(text, figures.known()) == text
    assert len(figures.CITED.findall(text)) == len(re.findall(r"<!-- \w+\.\w+ -->", text)), "a citation has no number"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_how_fast_it_is_is_cited(page):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"\d\s+times\s+faster", text)
    measured = re.search(r"## What it costs\n(.*?)\n## ", text, re.DOTALL)
    if measured and page.parent.name == "methods":
        assert not re.search(r"Measured.*?\d (s|ms|MiB|times)\b(?!<!--)", measured[1], re.DOTALL)


def test_pages_are_put_right_or_refused(figures):
    known = {
        "a.seconds": figures.Figure("seconds", "", 1.2345, "s"),
        "a.ratio": figures.Figure("ratio", "", 163.4, "×"),
        "a.peak": figures.Figure("peak", "", 1552.0, "MiB"),
        "a.rate": figures.Figure("rate", "", 8.12e9, "/s"),
        "a.share": figures.Figure("share", "", 0.9976),
    }

    def put(text):
        return figures.updated(text, known)

    assert put("9.99 s<!-- a.seconds --> long") == "1.23 s<!-- a.seconds --> long"
    assert put("in 7\nms<!-- a.seconds -->") == "in 1,234\nms<!-- a.seconds -->"
    assert put("99 times<!-- a.ratio --> and 2.0 GiB<!-- a.peak -->") == (
        "163 times<!-- a.ratio --> and 1.5 GiB<!-- a.peak -->"
    )
    assert put("7.0 × 10⁹<!-- a.rate -->, 1.0%<!-- a.share -->") == "8.1 × 10⁹<!-- a.rate -->, 99.8%<!-- a.share -->"
    for kept in (
        "More than 130 times<!-- a.ratio -->",
        "about 1.1 s<!-- a.seconds -->",
        "less than 2 s<!-- a.seconds -->",
    ):
        assert put(kept) == kept
    for wrong in (
        "more than 164 times<!-- a.ratio -->",
        "more than 80 times<!-- a.ratio -->",  # true, and of no use
        "less than 1.2 s<!-- a.seconds -->",
        "about 2 s<!-- a.seconds -->",
        "5 s<!-- a.gone -->",
        "5 MiB<!-- a.seconds -->",
    ):
        with pytest.raises(ValueError, match=r"a\.|it is|no figure"):
            put(wrong)


def test_every_suite_has_results_that_say_where_they_come_from(figures):
    suites = {file.stem.removeprefix("bench_") for file in (ROOT / "bench").glob("bench_*.py")}
    assert {file.stem for file in figures.RESULTS.glob("*.json")} == suites
    for name in suites:
        suite = figures.load(name)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", suite.date)
        assert re.fullmatch(r"[0-9a-f]{7,}\+?", suite.commit)
        assert suite.command.startswith("make bench")
        assert suite.machine
        assert suite.note or (suite.load is not None and suite.versions), f"{name} keeps neither load nor versions"
        assert len({figure.name for figure in suite.figures}) == len(suite.figures)
