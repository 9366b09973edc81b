"""The command line: the user's file in, values out, every bad input one clear line."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import datassay as da
from commands import complain, run


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = da.census(300, seed=1)
    frame = table.to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
    frame["id"] = [f"p{i:03d}" for i in frame["id"]]
    frame.iloc[:240].to_csv("train.csv", index=False)
    frame.iloc[240:].to_csv("val.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_values_of_a_file_against_a_validation_file(files, ending):
    out = f"values.{ending}"
    result = run("value", "train.csv", "--validation", "val.csv", "--label", "income", "--id", "id", "-o", out)
    assert result.exit_code == 0
    assert "240 records valued by knn_shapley (k=5, utility=soft" in result.output
    assert "Validated on 60 records of val.csv" in result.output
    train = da.read_table("train.csv", label="income", id="id")
    expected = da.knn_shapley(train, X_val=da.read_table("val.csv", like=train))
    if ending == "csv":
        frame = pd.read_csv(out)
        np.testing.assert_array_equal(frame["value"], expected.values)
        assert frame["id"].tolist() == expected.ids.tolist()
    else:
        saved = da.load_result(out)
        assert saved.values.tobytes() == expected.values.tobytes()
        assert saved.parameters == expected.parameters


@pytest.mark.parametrize(
    ("method", "extra", "call"),
    [
        ("knn-shapley", ["--k", "3", "--utility", "fraction"], lambda t, v: da.knn_shapley(t, X_val=v, k=3, utility="fraction")),
        ("knn-shapley", ["--tolerance", "0.05"], lambda t, v: da.knn_shapley(t, X_val=v, tolerance=0.05)),
        ("knn-banzhaf", ["--metric", "manhattan"], lambda t, v: da.knn_banzhaf(t, X_val=v, metric="manhattan")),
        ("knn-loo", ["-k", "7"], lambda t, v: da.knn_loo(t, X_val=v, k=7)),
        ("tknn-shapley", ["--tau", "-0.3"], lambda t, v: da.tknn_shapley(t, X_val=v, tau=-0.3)),
        ("tknn-shapley", [], lambda t, v: da.tknn_shapley(t, X_val=v, tau=da.tune_tau(t, X_val=v).best)),
        ("knn-shapley", ["-k", "auto"], lambda t, v: da.knn_shapley(t, X_val=v, k=int(da.tune_k(t, X_val=v).best))),
        ("knn-shapley", ["--balance", "2"], lambda t, v: da.knn_shapley(t, X_val=v, weights=da.balance_weights(v.labels, 2))),
    ],
)  # fmt: skip
def test_every_method_gives_what_the_library_gives(files, method, extra, call):
    result = run("value", "train.csv", "-l", "income", "--id", "id", "--split", "0.7", "--seed", "3", "-m", method,
                 *extra, "-o", "v.json", "-q")  # fmt: skip
    assert result.exit_code == 0
    assert result.output == ""
    parts = da.read_table("train.csv", label="income", id="id").split(0.7, seed=3)
    saved = da.load_result("v.json")
    np.testing.assert_array_equal(saved.values, call(*parts).values)
    assert saved.seed == 3


def test_without_validation_every_record_is_valued_by_the_others(files):
    result = run("value", "train.csv", "-l", "income", "--id", "id", "-o", "v.parquet")
    assert "the other records of train.csv, each in turn" in result.output
    train = da.read_table("train.csv", label="income", id="id")
    np.testing.assert_array_equal(da.load_result("v.parquet").values, da.knn_shapley(train).values)
    run("value", "train.csv", "-l", "income", "--id", "id", "-m", "self-shapley", "-o", "v.parquet")
    np.testing.assert_array_equal(da.load_result("v.parquet").values, da.self_shapley(train).values)


def test_a_built_in_data_set_is_valued_and_its_planted_errors_found(files):
    result = run("value", "census", "--truth", "label_error", "--plot", "v.svg", "--top", "2")
    assert result.exit_code == 0
    assert "Finding 'label_error' by low values: AUROC 0.9" in result.output
    assert (files / "v.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["nowhere.csv", "-l", "y"], "there is no file 'nowhere.csv'", 3),
        (["nothing", "-l", "y"], "there is no data set 'nothing'", 3),
        (["train.csv"], "name the column to predict with --label; train.csv has id, age", 2),
        (["train.csv", "-l", "incme"], "did you mean 'income'", 3),
        (["train.csv", "-l", "income"], "column 'id' of train.csv is text", 3),
        (["train.csv", "-l", "income", "--id", "sex"], "the id 'sex' of train.csv has duplicates", 3),
        (["train.csv", "-l", "income", "--id", "id", "--split", "1.5"], "--split must be a finite number above 0 and below 1", 2),
        (["train.csv", "-l", "income", "--id", "id", "--split", "0.5", "--validation", "val.csv"], "cannot go together", 2),
        (["train.csv", "-l", "income", "--id", "id", "-k", "0"], "k must be a whole number at least 1", 2),
        (["train.csv", "-l", "income", "--id", "id", "-k", "many"], "--k must be a whole number or 'auto', got 'many'", 2),
        (["train.csv", "-l", "income", "--id", "id", "-m", "tknn-shapley", "--tau", "nan"], "tau must be a finite number", 2),
        (["train.csv", "-l", "income", "--id", "id", "--tau", "0.5"], "--tau does not apply to knn-shapley", 2),
        (["train.csv", "-l", "income", "--id", "id", "-m", "self-shapley", "--split", "0.5"], "leave out --validation", 2),
        (["train.csv", "-l", "income", "--id", "id", "-o", "values.xlsx"], "must end in .parquet, .json or .csv", 2),
        (["train.csv", "-l", "income", "--id", "id", "-o", "gone/values.csv"], "the folder 'gone' does not exist", 2),
        (["train.csv", "-l", "income", "--id", "id", "--plot", "v.gif"], "must end in .svg, .png or .pdf", 2),
        (["train.csv", "-l", "income", "--id", "id", "-o", "train.csv"], "train.csv is an input; writing there would overwrite", 2),
        (["train.csv", "-l", "income", "--id", "id", "--validation", "val.csv", "-o", "./val.csv"], "val.csv is an input", 2),
        (["train.csv", "-l", "income", "--id", "id", "--jobs", "0"], "--jobs must be at least 1, or -1 for all cores", 2),
        (["train.csv", "-l", "income", "--id", "id", "--balance", "0"], "--balance must be a finite number above 0", 2),
        (["flag.csv", "-l", "income", "--id", "id", "--truth", "flag", "-o", "v.csv"], "--truth 'flag' is False in every record", 3),
        (["."], "the folder '.' holds no Parquet files", 3),
        (["census", "--truth", "age"], "column 'age' of census is not true or false at row 0", 3),
        (["train.csv", "-l", "income", "--id", "id", "--validation", "other.csv"], "other.csv lacks the column 'capital'", 3),
    ],
)  # fmt: skip
def test_a_bad_call_is_one_clear_line_and_writes_nothing(files, capsys, monkeypatch, arguments, message, status):
    pd.read_csv("val.csv").drop(columns="capital").to_csv("other.csv", index=False)
    pd.read_csv("val.csv").assign(flag=0).to_csv("flag.csv", index=False)
    before = sorted(files.iterdir())
    code, error = complain(capsys, monkeypatch, "value", *arguments)
    assert code == status
    assert message in error
    assert error.startswith("datassay: ")
    assert len(error.strip().splitlines()) == 1
    assert sorted(files.iterdir()) == before


def test_the_truth_is_looked_for_where_the_method_puts_it(files):
    text = run("value", "census", "-m", "self-shapley", "--truth", "label_error").output
    assert "Every record of census valued for predicting itself." in text
    assert "Finding 'label_error' by high values: AUROC 0.9" in text


def test_a_name_with_a_comma_can_be_ignored(files):
    frame = pd.read_csv("train.csv").rename(columns={"region": 'city, "home"'})
    frame.to_csv("comma.csv", index=False)
    result = run("value", "comma.csv", "-l", "income", "--id", "id", "--ignore", 'sex,"city, ""home"""', "-o", "v.json")
    assert result.exit_code == 0
    table = da.read_table("comma.csv", label="income", id="id", ignore=["sex", 'city, "home"'])
    np.testing.assert_array_equal(da.load_result("v.json").values, da.knn_shapley(table).values)


def test_a_column_of_one_file_only_can_be_ignored(files):
    pd.read_csv("val.csv").assign(extra=1).to_csv("more.csv", index=False)
    with pytest.raises(da.InputError, match="more.csv has the column 'extra' that the training data lacks"):
        run("value", "train.csv", "-l", "income", "--id", "id", "--validation", "more.csv")
    for name in ("extra", "region,extra"):
        assert (
            run(
                "value", "train.csv", "-l", "income", "--id", "id", "--validation", "more.csv", "--ignore", name
            ).exit_code
            == 0
        )
    with pytest.raises(da.InputError, match="there is no column 'nothing'"):
        run("value", "train.csv", "-l", "income", "--id", "id", "--validation", "val.csv", "--ignore", "nothing")


def test_a_data_set_by_name_is_not_overwritten_and_a_folder_does_not_hide_one(files, monkeypatch):
    (files / "sets").mkdir()
    (files / "census").mkdir()
    pd.read_csv("train.csv").drop(columns="id").to_parquet("sets/mine.parquet")
    monkeypatch.setenv("DATASSAY_DATA", str(files / "sets"))
    before = (files / "sets" / "mine.parquet").read_bytes()
    for arguments in (["value", "mine", "-l", "income"], ["datasets", "mine"]):
        with pytest.raises(da.InputError, match="is an input; writing there would overwrite"):
            run(*arguments, "-o", "sets/mine.parquet")
    assert (files / "sets" / "mine.parquet").read_bytes() == before
    assert run("value", "census", "-q").exit_code == 0


def test_truth_may_be_written_yes_and_no(files):
    frame = pd.read_csv("train.csv")
    frame.assign(bad=np.where(np.arange(len(frame)) % 7, "No", "Yes")).to_csv("t.csv", index=False)
    assert "Finding 'bad'" in run("value", "t.csv", "-l", "income", "--id", "id", "--truth", "bad").output


def test_what_a_written_data_set_says_to_do_works(files):
    shown = run("datasets", "census", "-n", "60", "-o", "c.csv").output.splitlines()
    told = next(line for line in shown if line.startswith("Value it"))
    result = run(*told.removeprefix("Value it: datassay ").split(), "-q", "-o", "v.json")
    assert result.exit_code == 0
    np.testing.assert_array_equal(da.load_result("v.json").values, da.knn_shapley(da.census(60)).values)


def test_datasets_are_listed_described_and_written(files):
    assert "census" in run("datasets").output
    described = run("datasets", "census", "-n", "50", "--seed", "2", "-o", "c.csv").output
    assert "census: 50 records" in described
    assert "income: categorical, 2 values, label" in described
    assert len(pd.read_csv("c.csv")) == 50
    with pytest.raises(da.InputError, match="name the data set to write"):
        run("datasets", "-o", "c.csv")


def test_reproductions_are_listed_and_run(shared_data):
    assert "tknn-detection" in run("reproduce").output
    result = run("reproduce", "tknn-detection", "--data", str(shared_data))
    assert result.exit_code == 0
    assert "16 of 16 published numbers come out" in result.output


@pytest.mark.parametrize("command", ["value", "datasets", "reproduce"])
def test_every_command_has_help_with_an_example(command):
    text = run(command, "--help").output
    assert f"datassay {command}" in text.split("Examples")[1]


def test_the_version_is_told():
    assert run("--version").output.strip() == f"datassay {da.__version__}"


def test_the_installed_command_runs():
    told = subprocess.run([sys.executable, "-m", "datassay", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == f"datassay {da.__version__}"


def test_waka_on_the_command_line(files):
    train = da.read_table("train.csv", label="income", id="id")
    held = da.read_table("val.csv", like=train)
    base = ["value", "train.csv", "--label", "income", "--id", "id", "-o", "w.json"]
    assert (
        run(*base, "--validation", "val.csv", "--method", "waka", "--variant", "removal", "--tau", "0.4").exit_code == 0
    )
    expected = da.waka(train, X_val=held, variant="removal", tau=0.4)
    assert da.load_result("w.json").values.tobytes() == expected.values.tobytes()
    shown = run(*base, "--method", "self-waka", "--k", "1")
    assert da.load_result("w.json").values.tobytes() == da.self_waka(train, k=1).values.tobytes()
    assert "Most exposed" in shown.output


def test_an_attack_tells_who_is_exposed(files):
    base = ["attack", "train.csv", "--label", "income", "--id", "id", "--k", "1", "--games", "6"]
    shown = run(*base, "-o", "e.parquet", "--plot", "roc.svg", "--quadrants", "q.svg")
    assert shown.exit_code == 0
    assert "t-waka: 600 targets in 6 games" in shown.output
    assert "delete first:" in shown.output
    joined = da.load_result("e.parquet")
    train = da.read_table("train.csv", label="income", id="id")
    assert joined.exposure.tobytes() == da.self_waka(train, k=1).values.tobytes()
    assert joined.values.tobytes() == da.knn_shapley(train, k=1).values.tobytes()
    assert (files / "roc.svg").exists()
    assert (files / "q.svg").exists()
    everyone = run(*base, "--method", "t-waka", "--everyone", "-o", "e.json", "-q")
    assert everyone.output == ""
    attack = da.membership_attack(train, method="t-waka", k=1, games=6, targets=None)
    rates = dict(zip(*(column.tolist() for column in attack.success_rates()), strict=True))
    joined = da.load_result("e.json")
    assert dict(zip(joined.ids.tolist(), joined.exposure.tolist(), strict=True)) == rates


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        (["attack", "train.csv"], "name the column to predict with --label", 2),
        (
            ["attack", "train.csv", "--label", "income", "--id", "id", "--k", "200"],
            "k=200 is more than half of the 240",
            2,
        ),
        (
            ["attack", "train.csv", "--label", "income", "--id", "id", "-m", "lira", "--shadows", "99"],
            "shadows must be",
            2,
        ),
        (
            ["attack", "train.csv", "--label", "income", "--id", "id", "--everyone", "--targets", "5"],
            "leave out --targets",
            2,
        ),
        (["attack", "train.csv", "--label", "income", "--id", "id", "--targets", "500"], "targets must be", 2),
        (["attack", "train.csv", "--label", "income", "--id", "id", "-o", "train.csv"], "is an input", 2),
        (["attack", "nothing.csv", "--label", "income"], "there is no file 'nothing.csv'", 3),
        (
            ["value", "train.csv", "--label", "income", "--id", "id", "--method", "waka", "--tau", "0.3"],
            "--tau is the threshold of",
            2,
        ),
        (
            ["value", "train.csv", "--label", "income", "--id", "id", "--variant", "removal"],
            "--variant does not apply to knn-shapley",
            2,
        ),
        (
            ["value", "train.csv", "--label", "income", "--id", "id", "--method", "self-waka", "--split", "0.5"],
            "self-waka values records for themselves",
            2,
        ),
    ],
)
def test_bad_attacks_are_one_clear_line(files, capsys, monkeypatch, arguments, said, status):
    code, error = complain(capsys, monkeypatch, *arguments)
    assert code == status
    assert said in error
    assert len(error.strip().splitlines()) == 1
