"""``datassay value`` with a model, and ``datassay private-value --method layered-shapley``."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import datassay as da
from commands import complain, run


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = da.census(240, seed=1).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
    frame["the owner"] = [f"shop {i % 5}" for i in range(len(frame))]
    frame.iloc[:120].to_csv("train.csv", index=False)
    frame.iloc[120:].drop(columns="the owner").to_csv("val.csv", index=False)
    return tmp_path


BASE = ["value", "train.csv", "--validation", "val.csv", "--label", "income", "--id", "id", "--jobs", "1"]
RECORDS = [*BASE, "--ignore", "the owner"]


def test_records_are_valued_by_a_model_with_intervals(files):
    result = run(
        *RECORDS, "--method", "data-shapley", "--model", "logistic-regression", "--max-coalitions", "2000",
        "-o", "v.parquet", "--convergence", "c.svg", "--plot", "p.svg",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "120 records valued by data_shapley" in result.output
    assert "95% intervals reach" in result.output
    values = da.load_result("v.parquet")
    assert isinstance(values, da.Estimate)
    assert values.coalitions <= 2000
    assert (files / "c.svg").stat().st_size > 1000
    table = da.read_table("train.csv", label="income", id="id", ignore=["the owner"])
    from sklearn.linear_model import LogisticRegression

    same = da.data_shapley(
        LogisticRegression(max_iter=1000), table, X_val=da.read_table("val.csv", like=table), max_coalitions=2000,
        n_jobs=1,
    )  # fmt: skip
    assert (values.values == same.values).all()


def test_owners_are_valued_exactly_where_they_are_few(files):
    result = run(*BASE, "--method", "data-shapley", "--group-by", "the owner", "-o", "owners.csv")
    assert result.exit_code == 0
    frame = pd.read_csv("owners.csv")
    assert frame["id"].tolist() == [f"shop {i}" for i in range(5)]
    assert frame["records"].tolist() == [24] * 5
    assert "every coalition was visited" in result.output


@pytest.mark.parametrize(
    ("method", "options", "told"),
    [
        ("data-banzhaf", ["--max-coalitions", "300"], "data_banzhaf"),
        ("beta-shapley", ["--alpha", "4", "--beta", "1", "--max-coalitions", "600"], "alpha=4.0, beta=1.0"),
        ("leave-one-out", ["--scoring", "neg_log_loss"], "scoring=neg_log_loss"),
        ("data-shapley", ["--model", "naive-bayes", "--max-coalitions", "240", "--sampling", "plain"], "GaussianNB"),
        ("data-shapley", ["--model", "decision-tree", "--truncation", "0.02", "--max-seconds", "3"], "DecisionTree"),
    ],
)
def test_every_method_has_its_options(files, method, options, told):
    result = run(*RECORDS, "--method", method, *options)
    assert result.exit_code == 0
    assert told in result.output


def test_out_of_bag_values_need_no_validation(files, capsys, monkeypatch):
    result = run("value", "train.csv", "--label", "income", "--ignore", "the owner", "--method", "data-oob", "--model",
                 "decision-tree", "--max-coalitions", "60", "--jobs", "1")  # fmt: skip
    assert result.exit_code == 0
    assert "120 records valued by data_oob" in result.output
    code, said = complain(capsys, monkeypatch, *RECORDS, "--method", "data-oob")
    assert code != 0
    assert "needs no validation records" in said


def test_a_layered_design_is_told_before_and_kept(files):
    options = ["--method", "layered-shapley", "--kappa", "2", "--alpha", "2", "--design", "core.json"]
    first = run(*RECORDS, *options, "-o", "one.json")
    assert first.exit_code == 0
    assert "model fits" in first.output
    kept = ["--method", "layered-shapley", "--kappa", "2", "--design", "core.json"]
    again = run(*RECORDS, *kept, "-o", "two.json")
    assert again.exit_code == 0
    assert (da.load_result("one.json").values == da.load_result("two.json").values).all()
    assert da.load_design("core.json").n == 120


def test_a_cache_is_used_again(files):
    options = ["--method", "data-banzhaf", "--max-coalitions", "200", "--cache", "u.db"]
    run(*RECORDS, *options, "-o", "one.json")
    run(*RECORDS, *options, "-o", "two.json")
    assert da.load_result("two.json").fits == 0
    assert (da.load_result("one.json").values == da.load_result("two.json").values).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*RECORDS, "--method", "data-shapley", "--k", "3"], "--k does not apply to data-shapley"),
        ([*RECORDS, "--model", "decision-tree"], "--model does not apply to knn-shapley"),
        ([*RECORDS, "--method", "leave-one-out", "--max-width", "0.1"], "--max-width does not apply"),
        (["value", "train.csv", "--label", "income", "--method", "data-shapley"], "--validation"),
        ([*BASE, "--method", "data-shapley", "--group-by", "shop"], "there is no column 'shop'"),
        ([*RECORDS, "--method", "data-shapley", "--scoring", "acuracy"], "did you mean 'accuracy'"),
        ([*RECORDS, "--method", "data-shapley", "--max-coalitions", "100"], "max_coalitions=100 is not enough"),
        ([*RECORDS, "--method", "data-shapley", "--model", "naive-bayes", "--kappa", "1"], "--kappa and --lam"),
        ([*RECORDS, "--method", "layered-shapley", "--model", "naive-bayes"], "give c"),
        ([*RECORDS, "--method", "data-shapley", "--convergence", "c.txt"], "must end in .svg"),
        ([*RECORDS, "--method", "data-shapley", "--cache", "train.csv"], "is an input"),
        ([*BASE, "--method", "data-shapley", "--group-by", "the owner", "--truth", "age"], "leave one of them out"),
    ],
)
def test_what_cannot_be_done_is_said(files, capsys, monkeypatch, arguments, message):
    code, said = complain(capsys, monkeypatch, *arguments)
    assert code not in (0, None)
    assert message in said


def kept_in(cache):
    """How many utilities a cache holds that another process writes."""
    if not Path(cache).exists():
        return 0
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(cache)) as connection:  # it has no table yet
        return connection.execute("SELECT count(*) FROM utilities").fetchone()[0]
    return 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupted_command_writes_what_it_has(files):
    command = [sys.executable, "-m", "datassay", *RECORDS, "--method", "data-shapley", "--model", "decision-tree",
               "--max-coalitions", "10000000", "--cache", "u.db", "-o", "v.json"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ)
    give_up = time.monotonic() + 300
    while kept_in("u.db") < 1000:  # several orders of 120 records: there are values
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < give_up
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=300)
    assert process.returncode == 130, told
    assert "it was interrupted" in told
    assert np.isfinite(da.load_result("v.json").values).all()


PRIVATE = ["private-value", "train.csv", "--validation", "val.csv", "--label", "income", "--id", "id", "--ignore",
           "the owner", "--method", "layered-shapley", "--alpha", "1", "--jobs", "1"]  # fmt: skip


def test_a_private_layered_release_is_planned_paid_and_written(files):
    result = run(*PRIVATE, "--ledger", "l", "--budget-epsilon", "1", "-o", "o.parquet", "--recipients", "3")
    assert result.exit_code == 0
    assert "Before anything is spent:" in result.output
    assert "rank correlation" in result.output
    assert "Warning: these values will say little" in result.output
    assert "3 who share" in result.output
    values = da.load_result("o.parquet")
    assert values.guarantee.neighbours == "replace"
    assert da.Ledger("l").neighbours == "replace"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--at-least", "0.9", "--ledger", "l", "--budget-epsilon", "1"], "nothing was spent"),
        (["--neighbours", "add-remove"], "--relation replace"),
        (["--sampling", "0.5"], "--sampling does not apply"),
        (["--metric", "cosine"], "--metric does not apply"),
        (["--k", "3"], "--k does not apply to layered-shapley"),
    ],
)
def test_a_private_layered_release_that_cannot_be_is_refused(files, capsys, monkeypatch, options, message):
    code, said = complain(capsys, monkeypatch, *PRIVATE, *options)
    assert code not in (0, None)
    assert message in said
    assert not (files / "l").exists()


def test_layered_options_do_not_apply_elsewhere(files, capsys, monkeypatch):
    code, said = complain(
        capsys, monkeypatch, "private-value", "train.csv", "--validation", "val.csv", "--label", "income", "--ignore",
        "the owner", "--kappa", "2",
    )  # fmt: skip
    assert code not in (0, None)
    assert "--kappa does not apply to tknn-shapley" in said


def test_numbers_are_predicted_by_a_regression():
    result = run("value", "diabetes", "--label", "progression", "--split", "0.2", "--method", "leave-one-out", "--model",
                 "ridge-regression", "--jobs", "1")  # fmt: skip
    assert result.exit_code == 0
    assert "scoring=r2" in result.output


def test_exact_values_have_no_convergence_to_draw(files):
    result = run(*BASE, "--method", "data-shapley", "--group-by", "the owner", "--convergence", "c.svg")
    assert result.exit_code == 0
    assert "c.svg was not written" in result.output


def test_a_private_release_takes_a_design_drawn_before(files):
    da.layered_design(120, 1.0, c=da.StableLogisticRegression().c).save("core.json")
    chosen = [*PRIVATE[: PRIVATE.index("--alpha")], "--jobs", "1"]
    result = run(*chosen, "--design", "core.json")
    assert result.exit_code == 0
