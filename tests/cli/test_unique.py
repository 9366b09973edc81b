"""``datassay unique``."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import commands
import datassay as da

run = partial(commands.run, "unique")


def complain(capsys, monkeypatch, *arguments):
    return commands.complain(capsys, monkeypatch, "unique", *arguments)


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = da.voters(2000, seed=1)
    frame = table.to_frame("pandas")
    frame["id"] = [f"p{i:04d}" for i in frame["id"]]
    frame["zip"] = frame["zip"].astype(int)
    frame["income, net"] = np.random.default_rng(0).normal(2000, 300, len(frame)).round(2)
    frame.to_csv("people.csv", index=False)
    return table


def test_the_whole_answer_from_a_csv_file(people):
    result = run(
        "people.csv", "--columns", "zip,race,age", "--by", "county", "--by", "age=20", "--coarsen", "age=5", "--id", "id",
        "--categorical", "zip", "--key", "--pairs", "--drop", "race", "-o", "unique.parquet", "--tables", "out",
        "--plot", "people.svg", "--plot-means", "means.png", "--plot-by", "by.pdf", "--plot-changes", "changes.svg",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    expected = da.uniqueness_shapley(people, ["zip", "race", "age"], coarsen={"age": 5})
    saved = da.load_result("unique.parquet")
    assert saved.ids[:2].tolist() == ["p0000", "p0001"]
    np.testing.assert_allclose(saved.values, expected.values, atol=1e-12)
    by = pd.read_csv("out/by_county.csv")
    assert {file.name for file in Path("out").iterdir()} == {
        "means.csv", "groups.csv", "by_county.csv", "by_age.csv", "changes.csv", "pairs.csv",
    }  # fmt: skip
    np.testing.assert_allclose(by["bits_age"], expected.by("county").values[:, 2], atol=1e-12)
    told = expected.mean()
    assert "2,000 records" in result.output
    zips = 2 ** told.entropies[0]
    assert f"it narrows a person down to 1 in {zips:,.0f}" in result.output
    assert "as it is" in result.output
    assert "age: 5" in result.output
    assert "40–59" in result.output
    assert "race: dropped" in result.output
    assert "with a database key" in result.output
    assert "beyond apart" in result.output
    for file in ("people.svg", "means.png", "by.pdf", "changes.svg"):
        assert f"Written: {file}" in result.output


def test_quiet_says_nothing_and_a_data_set_has_a_name(people):
    result = run("voters", "--columns", "race,age", "-q", "-o", "unique.json")
    assert result.exit_code == 0
    assert result.output == ""
    assert len(da.load_result("unique.json")) == 253_563


def test_ways_to_coarsen(people):
    result = run("people.csv", "-c", 'age,race,"income, net",zip', "--coarsen", "income, net=500", "--coarsen", "age=32,48",
                 "--coarsen", "race=", "--coarsen", "zip=county", "-o", "u.parquet", "--id", "id")  # fmt: skip
    assert result.exit_code == 0
    saved = da.load_result("u.parquet")
    assert saved.parameters["coarsen age"] == "cut at 32, 48"
    assert saved.parameters["coarsen race"] == "one bucket"
    assert saved.parameters["coarsen zip"] == "county"
    assert saved.mean().of("race") == 0
    # Income cannot be told as it is, and is coarse in all rows.
    assert "as it is, income, net: 500" in result.output
    assert "age: cut at 32, 48" in result.output


def test_sampling_and_weights(people):
    pd.read_csv("people.csv").assign(w=2).to_csv("w.csv", index=False)
    result = run(
        "w.csv", "-c", "zip,race,age", "--weights", "w", "--tolerance", "0.2", "--seed", "3", "-o", "u.parquet"
    )
    assert result.exit_code == 0
    assert "4,000 people (by weight)" in result.output
    assert "Sampled:" in result.output
    assert da.load_result("u.parquet").seed == 3
    assert run("w.csv", "-c", "zip,race,age", "--sampled", "--permutations", "9").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["people.csv"], "column 'income, net'.*coarsen", 3),
        (["people.csv", "-c", "zip", "--tables", "."], "not an empty folder", 2),
        (["people.csv", "-c", "zap"], "did you mean 'zip'", 3),
        (["people.csv", "-c", "zip", "--coarsen", "age"], "ATTRIBUTE=HOW", 2),
        (["people.csv", "-c", "age", "--coarsen", "age=5", "--coarsen", "age=6"], "twice", 2),
        (["people.csv", "-c", "zip", "--by", "planet"], "no column 'planet'", 3),
        (["people.csv", "-c", "zip", "--by", "age", "--by", "age=5"], "names 'age' twice", 2),
        (["people.csv", "-c", "zip,id", "--id", "id"], "is the id and cannot be an attribute", 2),
        (["people.csv", "-c", "zip", "--plot-by", "b.svg"], "needs --by", 2),
        (["people.csv", "-c", "zip", "--plot-changes", "b.svg"], "needs a change", 2),
        (["people.csv", "-c", "zip", "-o", "people.csv"], "is an input", 2),
        (["people.csv", "-c", "zip", "-o", "u.xlsx"], "must end in", 2),
        (["people.csv", "-c", "zip", "--plot", "nowhere/u.svg"], "does not exist", 2),
        (["people.csv", "-c", "zip", "--jobs", "0"], "--jobs", 2),
        (["people.csv", "-c", "zip", "--weights", "age", "--coarsen", "age=2"], "not among", 2),
        (["voters", "--id", "zip"], "leave out --id", 2),
        (["nobody"], "there is no file", 3),
    ],
)
def test_mistakes_are_one_clear_line(people, capsys, monkeypatch, arguments, message, status):
    before = sorted(f.name for f in Path().iterdir())
    code, error = complain(capsys, monkeypatch, *arguments)
    assert code == status
    assert len(error.strip().splitlines()) == 1
    assert re.search(message, error), error
    assert sorted(f.name for f in Path().iterdir()) == before


def test_help_has_an_example():
    assert "datassay unique people.csv" in run("--help").output
