"""A report of very many records: what would take too long is estimated, and says so."""

import importlib
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import datassay as da
from datassay.cli import app
from datassay.report import Grid, Paragraph
from datassay.report.content import plain

found = importlib.import_module("datassay.report.found")


def told(section):
    return "\n".join(plain(block.text) for block in section.blocks if isinstance(block, Paragraph))


@pytest.fixture(scope="module")
def exact():
    return da.report(da.census(900), sections=["found"], quick=True)


@pytest.fixture
def estimated(monkeypatch):
    monkeypatch.setattr(found, "LONGEST", 0.0)
    monkeypatch.setattr(found, "DRAWN", 300)
    return da.report(da.census(900), sections=["found"], quick=True)


def test_below_the_limit_bits_are_the_exact_ones(exact):
    table = da.census(900)
    bins = da.measured_bins(table)
    bits = da.uniqueness_shapley(table, coarsen=bins)
    facts, means = exact.facts(), bits.mean()
    assert {name: facts[f"bits.{name}"] for name in means.ids} == dict(zip(means.ids, means.values, strict=True))
    assert np.array_equal(exact.records["bits"], bits.totals)
    assert np.array_equal(exact.records["alike"], bits.group_sizes)
    assert facts["share_unique"] == bits.groups().unique
    assert facts["share_below.5"] == bits.groups().share_below(5)
    assert facts["smallest_group"] == bits.groups().smallest
    assert "bits_within" not in facts
    assert "estimated" not in told(exact.section("found"))


def test_above_the_limit_means_are_estimated_within_what_is_said(exact, estimated):
    facts, truth = estimated.facts(), exact.facts()
    within = facts.pop("bits_within")
    names = [name for name in truth if name.startswith("bits.")]
    assert 0 < within < 0.3
    for name in names:
        assert facts[name] != truth[name]
        assert abs(facts[name] - truth[name]) <= 2 * within  # the widest of intervals that cover with 95%
    assert {name: facts[name] for name in truth if name not in (*names, "total_bits")} == pytest.approx(
        {name: truth[name] for name in truth if name not in (*names, "total_bits")}
    )
    assert facts["total_bits"] == pytest.approx(truth["total_bits"])


def test_what_is_counted_is_the_same_for_every_record(exact, estimated):
    assert np.array_equal(exact.records["alike"], estimated.records["alike"])
    np.testing.assert_allclose(exact.records["bits"], estimated.records["bits"], atol=1e-9)


def test_the_page_says_so_with_the_interval_the_limit_and_a_command_that_has_the_exact_bits(
    exact, estimated, tmp_path, monkeypatch
):
    section = estimated.section("found")
    words = told(section)
    assert f"to ± {estimated.facts()['bits_within']:.2g} bits, each with probability 95%" in words
    assert "from 300 people drawn at random and counted among all 900" in words
    assert "a report takes at most 0 seconds for them" in words
    table = next(block for block in section.blocks if isinstance(block, Grid) and "tells" in block.title)
    assert table.note.startswith("Bits are estimates")
    command = words[words.index("datassay unique") :].split("\n")[0]
    da.census(900).save(tmp_path / "census.csv")
    monkeypatch.chdir(tmp_path)
    arguments = shlex.split(command.replace("census", "census.csv", 1))[1:]
    done = CliRunner().invoke(app, [*arguments, "--output", "bits.json", "--quiet"])
    assert done.exit_code == 0, done.output
    means = da.load_result(tmp_path / "bits.json").mean()
    for name, value in zip(means.ids, means.values, strict=True):
        assert value == pytest.approx(exact.facts()[f"bits.{name}"])


def test_the_estimate_is_the_same_for_the_same_seed(estimated):
    again = da.report(da.census(900), sections=["found"], quick=True)
    assert again.facts() == estimated.facts()


def test_many_attributes_of_many_people_are_estimated_from_some_of_them(monkeypatch):
    monkeypatch.setattr(found, "LONGEST", 0.0)
    monkeypatch.setattr(found, "DRAWN", 200)
    rng = np.random.default_rng(0)
    import pandas as pd

    frame = pd.DataFrame(rng.integers(0, 3, (400, 22)), columns=[f"a{j}" for j in range(22)]).astype(str)
    section = da.report(frame, sections=["found"], quick=True).section("found")
    assert "random orders were tried" in told(section)
    assert section.facts["bits_within"] > 0
    assert section.facts["share_unique"] == (frame.groupby(list(frame)).a0.transform("size") == 1).mean()
