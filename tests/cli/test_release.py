"""``datassay risk`` and ``datassay release``."""

import re
from pathlib import Path

import pandas as pd
import pytest

import datassay as da
from commands import complain, run


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = da.census(300, seed=1).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
    frame["id"] = [f"p{i:03d}" for i in frame["id"]]
    frame.to_csv("people.csv", index=False)
    table = da.read_table("people.csv", label="income", id="id")
    da.release.mondrian(table, 5).save("released.csv", ids=True)
    da.release.synthesize(table, n=200).save("synthetic.parquet")
    frame.drop(columns=["id"]).to_csv("unnamed.csv", index=False)
    frame.drop(columns=["id"]).iloc[50:].to_csv("noids.csv", index=False)
    return table


def test_risk_of_a_released_file(files):
    result = run(
        "risk", "people.csv", "released.csv", "--id", "id", "--permutations", "5", "--people", "60", "--shapley",
        "--query", "age > 80", "-o", "risk.parquet", "--shapley-output", "values.json", "--plot", "risk.svg",
        "--plot-shapley", "values.png",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    released = da.read_table("released.csv", like=files)
    expected = da.reidentification_risk(files, released, people=60, permutations=5)
    assert (da.load_result("risk.parquet").values == expected.values).all()
    assert da.load_result("values.json").values.shape == (60, 9)
    assert "mean risk" in result.output
    assert "Verdict:" in result.output
    assert "age > 80" in result.output
    for name in ("risk.parquet", "values.json", "risk.svg", "values.png"):
        assert f"Written: {name}" in result.output
        assert Path(name).stat().st_size > 0


def test_named_attackers_and_synthetic_people(files):
    result = run("risk", "people.csv", "synthetic.parquet", "--id", "id", "--synthetic", "--known", "neighbour=age,sex",
                 "--known", "colleague=occupation,education", "--people", "40", "-c", "age,sex,occupation,education")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "neighbour" in result.output
    assert "40 people, 40 of them in the release" in result.output


def test_strategies_are_compared_and_one_is_written(files):
    result = run("release", "people.csv", "--label", "income", "--id", "id", "--strategies", "keep,k=5,shapley=0.25,copula",
                 "--people", "40", "--permutations", "5", "--individuals", "--write", "k=5", "--to", "out.csv", "--with-ids", "-o", "c.json",
                 "--plot", "t.svg", "--plot-risks", "b.svg")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert da.load_result("c.json").ids.tolist() == ["keep", "k=5", "shapley=0.25", "copula"]
    out = pd.read_csv("out.csv")
    assert list(out.columns) == list(pd.read_csv("people.csv").columns)
    assert out["id"].tolist() == pd.read_csv("people.csv")["id"].tolist()
    attributes = [c for c in out.columns if c != "id"]
    assert out.groupby(attributes).size().min() >= 5
    assert "rank correlation" in result.output
    assert run("release", "people.csv", "--label", "income", "--id", "id", "--people", "9", "--permutations", "2", "--strategies",
               "keep", "--write", "k=5", "--to", "plain.csv").exit_code == 0  # fmt: skip
    assert "id" not in pd.read_csv("plain.csv").columns
    assert (
        run("release", "people.csv", "--label", "income", "--people", "20", "--strategies", "keep", "-q").output == ""
    )


def test_quasi_identifiers_and_a_sensitive_column_are_chosen(files):
    result = run("release", "people.csv", "--label", "income", "--id", "id", "--people", "9", "--permutations", "2",
                 "--strategies", "k=4", "--alike", "age,sex", "--sensitive", "occupation", "--l", "3", "--t", "0.6", "--relaxed",
                 "--write", "k=4", "--to", "out.csv")  # fmt: skip
    assert result.exit_code == 0, result.output
    out, before = pd.read_csv("out.csv"), pd.read_csv("people.csv")
    assert sorted(out["hours"]) == sorted(before["hours"])
    groups = out.groupby(["age", "sex"])["occupation"]
    assert groups.size().min() >= 4
    assert groups.nunique().min() >= 3


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["risk", "unnamed.csv", "noids.csv"], "neither has ids", 3),
        (
            [
                "release",
                "people.csv",
                "--label",
                "income",
                "-o",
                "c.json",
                "--people",
                "5",
                "--permutations",
                "2",
                "--strategies",
                "keep",
                "--write",
                "magic",
                "--to",
                "x.csv",
            ],
            "'magic' is not known",
            2,
        ),
        (["risk", "people.csv", "released.csv", "--id", "idd"], "did you mean 'id'", 3),
        (["risk", "people.csv", "released.csv", "--id", "id", "--known", "age"], "NAME=ATTRIBUTES", 2),
        (
            ["risk", "people.csv", "released.csv", "--id", "id", "--known", "n=age", "--scenarios", "binomial"],
            "leave out",
            2,
        ),
        (["risk", "people.csv", "released.csv", "--id", "id", "--query", "agee = 3"], "'agee'", 3),
        (["risk", "people.csv", "released.csv", "--id", "id", "-o", "people.csv"], "is an input", 2),
        (["risk", "people.csv", "nowhere.csv"], "no file", 3),
        (["release", "people.csv", "--label", "income", "--strategies", "magic"], "not known", 2),
        (["release", "people.csv", "--label", "income", "--strategies", "k=9999"], "no group can be that large", 2),
        (["release", "people.csv", "--label", "income", "--write", "k=2"], "give both", 2),
        (["release", "people.csv"], "--label", 2),
    ],
)
def test_mistakes_are_one_clear_line(files, capsys, monkeypatch, arguments, message, status):
    before = sorted(f.name for f in Path().iterdir())
    code, error = complain(capsys, monkeypatch, *arguments)
    assert code == status
    assert len(error.strip().splitlines()) == 1
    assert re.search(message, error), error
    assert sorted(f.name for f in Path().iterdir()) == before


def test_help_has_an_example():
    assert "datassay risk original.csv" in run("risk", "--help").output
    assert "datassay release people.csv" in run("release", "--help").output


def test_a_recorded_query_is_scored_as_the_reference_does():
    people = da.census(200, seed=2)
    scored = da.score_queries(
        people, people, ["age = 40 OR age = 41", "occupation = 'clerk' AND sex = 'male'", "age > 500"]
    )
    ages = people["age"]
    assert scored.matches[0] == scored.people[0] == ((ages == 40) | (ages == 41)).sum()
    assert scored.values[2] == 0
    assert scored.person[2] == ""
    # One person's own record, found by what is theirs alone, scores as the scenario that singles it out.
    alone = next(i for i in range(200) if ((ages == ages[i]) & (people["hours"] == people["hours"][i])).sum() == 1)
    query = f"age = {ages[alone]} AND hours = {people['hours'][alone]}"
    one = da.score_queries(people, people, [query])
    risk = da.reidentification_risk(people, people, scenarios={"both": ["age", "hours"]}, people=[alone])
    assert one.values[0] == pytest.approx(risk.values[0], abs=1e-12)
    assert one.person[0] == str(alone)


def test_dates_words_and_odd_names_can_be_queried():
    frame = pd.DataFrame(
        {"born": ["1970-01-31", "1971-02-01", "1980-05-05"] * 10, "row": range(30), "kind": ["SUBQUERY", "x", "y"] * 10}
    )
    scored = da.score_queries(frame, frame, ["born > '1975-01-01'", "kind = 'SUBQUERY'", "row = 3"])
    assert scored.matches.tolist() == [10, 10, 1]
    with pytest.raises(da.InputError, match="differ only in case"):
        both = pd.DataFrame({"Age": range(9), "age": range(9)})
        da.score_queries(both, both, ["age = 4"])


def test_queries_come_back_from_files_and_bad_ones_are_named(tmp_path):
    people = da.census(60)
    scored = da.score_queries(people, people, ["age > 30", "age > 900"])
    for ending in ("parquet", "json"):
        assert da.load_result(scored.save(tmp_path / f"q.{ending}")).summary() == scored.summary()
    for queries, message in (
        ("age > 3", "must be a list"),
        ([], "at least one"),
        (["age >"], "cannot be read"),
        (["1 = 1"], "mentions no attribute"),
        (["height = 3"], "mentions 'height'"),
        (["age IN (SELECT 1)"], "nothing else"),
        (["age = 1; DROP TABLE people"], "cannot be read"),
        (["age = 'old'"], "cannot be run"),
        (["age > 3 LIMIT 1"], "nothing else"),
        (["age > 3 UNION ALL SELECT 1"], "nothing else"),
        (["age > 100 * random()"], "nothing else"),
        (["COLUMNS('a.*') > 3"], "nothing else"),
        ([3], "in words"),
    ):
        with pytest.raises(da.InputError, match=message):
            da.score_queries(people, people, queries)
