"""``datassay private-value`` and ``datassay ledger``."""

import json

import numpy as np
import pandas as pd
import pytest

import datassay as da
from commands import complain, run


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = da.census(400, seed=1).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
    frame["id"] = [f"p{i:03d}" for i in frame["id"]]
    frame.iloc[:300].to_csv("people.csv", index=False)
    frame.iloc[300:].to_csv("public.csv", index=False)
    return tmp_path


BASE = ["private-value", "people.csv", "--validation", "public.csv", "--label", "income", "--id", "id"]


def test_one_file_for_the_operator_and_one_for_each_owner(files):
    result = run(
        *BASE, "--epsilon", "0.8", "--delta", "1e-4", "-o", "operator.parquet", "--owners", "owners", "--plot", "p.svg"
    )
    assert result.exit_code == 0
    assert "300 records valued privately by private_tknn_shapley" in result.output
    assert "(ε = 0.8, δ = 0.0001)-differential privacy for one record added or removed" in result.output
    assert "No ledger was asked" in result.output
    values = da.load_result("operator.parquet")
    assert isinstance(values, da.PrivateValues)
    assert values.ids.tolist() == [f"p{i:03d}" for i in range(300)]
    assert len(list((files / "owners").iterdir())) == 300
    told = json.loads((files / "owners" / "p017.json").read_text())
    assert told["private_value"] == values.of("p017")
    assert told["guarantee"]["epsilon"] <= 0.8
    # A new owner is answered from the operator's file, for nothing.
    record = pd.read_csv("public.csv").iloc[0].to_dict()
    assert np.isfinite(values.value_record(record, record["income"]))
    assert (files / "p.svg").stat().st_size > 1000


def test_columns_are_what_the_public_file_says(files):
    """The private file has no say in how columns are read: its numbers are categories if the public ones are."""
    people, public = pd.read_csv("people.csv"), pd.read_csv("public.csv")
    people["zip"], public["zip"] = range(len(people)), [f"z{i % 3}" for i in range(len(public))]
    people.to_csv("people.csv", index=False)
    public.to_csv("public.csv", index=False)
    assert run(*BASE, "-o", "o.json").exit_code == 0
    categories = [p for p in da.load_result("o.json").statistics.encoder.parts if p.name == "zip"]
    assert categories[0].categories == ("z0", "z1", "z2")


@pytest.mark.parametrize("names", [("--relation", "--neighbours"), ("--neighbours", "--relation")])
def test_two_relations_are_refused(files, names, capsys, monkeypatch):
    """One name may not overrule the other unseen: a promise is what was asked for."""
    first, second = names
    code, said = complain(capsys, monkeypatch, *BASE, first, "replace", second, "add-remove")
    assert code == 2
    assert "earlier name of --relation" in said


def test_every_option_reaches_the_function(files):
    assert (
        run(
            *BASE, "--neighbours", "replace", "--sampling", "0.5", "--tau", "-0.3", "--metric", "cosine", "-o", "a.json"
        ).exit_code
        == 0
    )
    told = da.load_result("a.json").parameters
    assert (told["relation"], told["sampling"], told["tau"], told["metric"]) == ("replace", 0.5, -0.3, "cosine")
    assert run(*BASE, "--release", "paper", "--classes", "5", "-q", "-o", "b.json").output == ""
    told = da.load_result("b.json").parameters
    assert (told["release"], told["n_classes"]) == ("paper", 5)
    assert run(*BASE, "--metric", "euclidean", "--geometry", "--tau", "0.5", "-o", "c.json").exit_code == 0
    assert da.load_result("c.json").parameters["geometry"] is True
    assert run(*BASE, "--method", "knn-shapley", "-k", "3", "-o", "d.json").exit_code == 0
    values = da.load_result("d.json")
    assert (values.method, values.parameters["k"]) == ("private_knn_shapley", 3)
    assert values.guarantee.audience == "owner, no collusion"


def test_a_data_set_by_name_can_be_tried_out():
    result = run("private-value", "census", "--split", "0.9", "--tau", "-0.5")
    assert result.exit_code == 0
    assert "Public: 300 validation records" in result.output


def test_the_ledger_pays_once_and_refuses_what_is_too_much(files, capsys, monkeypatch):
    first = run(*BASE, "--epsilon", "0.6", "--ledger", "m.ledger", "--budget-epsilon", "1", "-o", "a.json")
    assert "Ledger m.ledger: ε = 0.6 of 1 spent at δ = 1e-05 (add-remove)." in first.output
    again = run(*BASE, "--epsilon", "0.6", "--ledger", "m.ledger", "-o", "b.json")
    assert "served again from the ledger (release number 1), at no cost" in again.output
    assert da.load_result("a.json").values.tobytes() == da.load_result("b.json").values.tobytes()
    code, said = complain(
        capsys, monkeypatch, *BASE, "--epsilon", "0.9", "--ledger", "m.ledger", "-o", "c.json", "--owners", "o"
    )
    assert code == 4
    assert "refuses this release: it would bring ε from 0.6 to" in said
    assert not (files / "c.json").exists()
    assert not (files / "o").exists()

    shown = run("ledger", "show", "m.ledger").output
    assert "Budget ε = 1 at δ = 1e-05 (add-remove); spent ε = 0.6" in shown
    assert "released" in shown
    assert run("ledger", "export", "m.ledger", "-o", "m.json").exit_code == 0
    exported = json.loads((files / "m.json").read_text())
    assert exported == json.loads(run("ledger", "export", "m.ledger").output)
    assert len(exported["releases"]) == 1
    assert exported["releases"][0]["costs"][0]["noise"] == "discrete gaussian"
    assert "secret" not in exported["releases"][0]


def test_an_empty_ledger_says_so(files):
    da.Ledger("e.ledger", epsilon=1, delta=1e-5)
    assert "Nothing was released yet" in run("ledger", "show", "e.ledger").output


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        (["private-value", "people.csv", "--label", "income"], "name the public validation records with --validation FILE", 2),
        ([*BASE, "--split", "0.5"], "--validation and --split cannot go together", 2),
        ([*BASE, "--epsilon", "0"], "epsilon must be", 2),
        ([*BASE, "--delta", "1"], "delta must be", 2),
        ([*BASE, "--sampling", "2"], "sampling must be", 2),
        ([*BASE, "--k", "3"], "--k does not apply to tknn-shapley", 2),
        ([*BASE, "--method", "knn-shapley", "--tau", "1"], "--tau does not apply to knn-shapley", 2),
        ([*BASE, "--tau", "much"], "--tau must be a number or 'auto', got 'much'", 2),
        ([*BASE, "--budget-epsilon", "1"], "name it with --ledger", 2),
        ([*BASE, "--ledger", "l", "--budget-epsilon=-5"], "--budget-epsilon must be a finite number above 0, got -5.0", 2),
        ([*BASE, "--ledger", "l", "--budget-epsilon", "1", "--budget-delta", "1"], "--budget-delta must be a finite number", 2),
        ([*BASE, "--ledger", "kept.ledger", "--budget-epsilon", "2"], "--budget-epsilon 2: the ledger 'kept.ledger' has", 2),
        ([*BASE, "--ledger", "kept.ledger", "--budget-delta", "0.5"], "--budget-delta 0.5: the ledger 'kept.ledger' has", 2),
        ([*BASE, "--ledger", "new.ledger"], "there is no ledger 'new.ledger'; to make one, give its budget", 2),
        ([*BASE, "--ledger", "people.csv"], "people.csv is an input", 2),
        ([*BASE, "--ledger", "text.ledger"], "is not a datassay ledger", 3),
        ([*BASE, "-o", "public.csv"], "public.csv is an input", 2),
        ([*BASE, "-o", "no/where.json"], "does not exist", 2),
        ([*BASE, "--owners", "."], "is not an empty folder", 2),
        ([*BASE, "--owners", "no/where"], "does not exist", 2),
        ([*BASE, "--jobs", "0"], "--jobs must be", 2),
        (["private-value", "nothing.csv", "--validation", "public.csv", "--label", "income"], "there is no file 'nothing.csv'", 3),
        (["private-value", "empty.csv", "--validation", "public.csv", "--label", "income"], "empty.csv is empty: it has no header", 3),
        (["private-value", "people.csv", "--validation", "empty.csv", "--label", "income"], "empty.csv is empty: it has no header", 3),
        (["private-value", "people.csv", "--validation", "nothing.csv", "--label", "income"], "there is no file 'nothing.csv'", 3),
        ([*BASE[:-1], "Id"], "people.csv: there is no column 'Id'; there are 'id'", 3),
        ([*BASE, "--ledger", "a.json", "--budget-epsilon", "1", "-o", "./a.json"], "is named twice", 2),
        ([*BASE, "--plot", "v.svg", "--owners", "v.svg"], "is named twice", 2),
        ([*BASE, "--epsilon", "1e6"], "epsilon=1e+06 is beyond what the accountant can do here", 2),
        ([*BASE, "--epsilon", "1e-9"], "it must be from 0.001 to 200", 2),
        ([*BASE, "--delta", "1e-50"], "delta=1e-50 is beyond", 2),
        ([*BASE, "--sampling", "1e-9"], "sampling=1e-09 is beyond", 2),
        ([*BASE, "--tau", "-2"], "tau=-2 is no cosine distance", 2),
        ([*BASE, "--tau", "-2", "--metric", "euclidean"], "tau=-2 is below 0", 2),
        ([*BASE, "--epsilon", "3", "--ledger", "l", "--budget-epsilon", "1"], "refuses this release", 4),
        (["private-value", "people.csv", "--validation", "people.csv", "--label", "income", "--id", "id"], "every validation record is also in the training data", 3),
        (["ledger", "show", "nothing.ledger"], "there is no ledger 'nothing.ledger'", 3),
        (["ledger", "show", "people.csv"], "is not a datassay ledger", 3),
        (["ledger", "export", "people.csv"], "is not a datassay ledger", 3),
    ],
)  # fmt: skip
def test_every_bad_input_is_one_clear_line(files, capsys, monkeypatch, arguments, said, status):
    (files / "text.ledger").write_text("not a ledger\n" * 50)
    (files / "empty.csv").touch()
    da.Ledger("kept.ledger", epsilon=1, delta=1e-5)
    before = {f.name: f.read_bytes() for f in files.iterdir()}
    code, error = complain(capsys, monkeypatch, *arguments)
    assert code == status
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert {f.name: f.read_bytes() for f in files.iterdir()} == before


@pytest.mark.parametrize("command", [["private-value"], ["ledger", "show"], ["ledger", "export"]])
def test_help_has_an_example(command):
    shown = run(*command, "--help")
    assert "Example" in shown.output
    assert f"datassay {' '.join(command)}" in " ".join(shown.output.split())


def test_what_is_in_the_ledger_stays_there(files):
    """Neither the values of owners nor anything to check guesses of the data by is exported, and nobody may read it."""
    assert (
        run(*BASE, "-m", "knn-shapley", "--ledger", "l", "--budget-epsilon", "2", "-o", "o.json", "-q").exit_code == 0
    )
    assert (files / "l").stat().st_mode & 0o077 == 0
    exported = run("ledger", "export", "l").output
    for value in da.load_result("o.json").values.tolist():
        assert repr(value) not in exported
    assert json.loads(exported)["releases"][0]["dataset"] == 1
    again = run(*BASE, "-m", "knn-shapley", "--ledger", "l", "-o", "p.json")
    assert "served again" in again.output
    assert da.load_result("o.json").values.tobytes() == da.load_result("p.json").values.tobytes()
    da.Ledger("m", epsilon=1, delta=1e-5)
    first, second = (da.Ledger(name)._masked("the same data") for name in ("l", "m"))
    assert first != second


def test_one_record_changes_nobody_elses_file(files):
    """Whatever one person writes in their cells, the others' ids and encodings stay what they are."""
    people = pd.read_csv("people.csv").iloc[:40]
    public = pd.read_csv("public.csv")
    people["id"], public["id"] = range(1000, 1040), range(5000, 5100)
    rng = np.random.default_rng(0)
    for frame in (people, public):
        frame["member"] = rng.choice(["true", "FALSE", "True"], len(frame))
        frame["zip"] = rng.choice(["1", "02", "3"], len(frame))
    hostile = people.iloc[[0]].copy()
    for column, value in (("id", "x-1"), ("member", "unknown"), ("zip", "banana"), ("age", 1e9), ("occupation", "?")):
        hostile[column] = hostile[column].astype(object)
        hostile[column] = value
    public.to_csv("public.csv", index=False)
    people.to_csv("people.csv", index=False)
    pd.concat([people, hostile]).to_csv("more.csv", index=False)
    told = {}
    for name in ("people.csv", "more.csv"):
        base = ["private-value", name, *BASE[2:], "--categorical", "zip", "--tau", "-0.5"]
        assert run(*base, "--owners", f"o-{name}", "-o", f"{name}.json", "-q").exit_code == 0
        told[name] = json.loads((files / f"o-{name}" / "1003.json").read_text())
    assert told["people.csv"]["id"] == told["more.csv"]["id"] == "1003"
    # The encoding of everybody else is the same, bit by bit.
    from datassay.data import prepare

    table = da.read_table("public.csv", label="income", id="id", categorical=["zip"])
    points = [
        prepare(da.read_table(name, like=table), None, table, None, fitted_on="validation").points
        for name in ("people.csv", "more.csv")
    ]
    np.testing.assert_array_equal(points[0], points[1][:40])
    assert points[0].any(axis=0).sum() > 10


def test_a_ledger_is_never_deleted(files, monkeypatch):
    """Not even a new one of a command that failed: somebody else may be paying from it."""
    from datassay.privacy import Cost, releases

    def fails(*arguments, **options):
        da.Ledger("l").spend("data", "question", [Cost("gaussian", 50.0)], "counts", "public")
        raise RuntimeError("in the middle of a release")

    monkeypatch.setattr(releases, "add_noise", fails)
    monkeypatch.setattr(
        releases.Ledger, "releases", lambda self: []
    )  # what the other one wrote came too late to be seen
    with pytest.raises(RuntimeError):
        run(*BASE, "--method", "knn-shapley", "--ledger", "l", "--budget-epsilon", "9")
    monkeypatch.undo()
    monkeypatch.chdir(files)
    assert len(da.Ledger("l").releases()) == 2
