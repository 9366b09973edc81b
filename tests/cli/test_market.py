"""``datassay market``."""

import json
import sys
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import commands
import datassay as da
from datassay.cli import app, main

run = partial(commands.run, "market")


def complain(capsys, monkeypatch, *arguments):
    return commands.complain(capsys, monkeypatch, "market", *arguments)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = da.census(260, seed=1).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
    frame["id"] = [f"p{i:03d}" for i in frame["id"]]
    frame.iloc[:200].to_csv("people.csv", index=False)
    frame.iloc[200:].to_csv("ours.csv", index=False)
    return tmp_path


GAME = ["people.csv", "--validation", "ours.csv", "--label", "income", "--id", "id"]
REAL = [*GAME, "--for-real", "--target", "0.99", "--bounds=-3,3"]  # some people are in both files: bounds are given


def test_prices_and_what_they_buy(files):
    da.knn_shapley(da.read_table("people.csv", label="income", id="id")).save("values.parquet")
    result = run(
        "price", "values.parquet", "--theta", "2", "--gamma", "100", "--share", "0.5", "-o", "p.json", "--plot", "p.svg",
        "--bought", "b.csv",
    )  # fmt: skip
    assert result.exit_code == 0
    prices = da.load_result("p.json")
    assert prices.buy(share=0.5).summary() in result.output
    assert (files / "p.svg").stat().st_size > 1000
    assert (files / "b.csv").read_text().splitlines()[0] == '"id","payment","value","bought","greedy"'
    search = run("price", "values.parquet", "--search", "--share", "0.5", "--thetas", "0.5,2", "-o", "s.csv")
    assert "Highest revenue" in search.output
    assert len((files / "s.csv").read_text().splitlines()) == 9


@pytest.mark.parametrize("search", [False, True])
def test_nothing_but_the_answer_is_printed(files, capfd, monkeypatch, search):
    """scipy's solver has lines of its own, printed beneath Python: they are in nobody's JSON."""
    import ctypes

    from datassay.market import Prices

    honest = Prices.buy

    def buy(self, *arguments, **named):
        ctypes.CDLL(None).printf(b"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();\n")
        return honest(self, *arguments, **named)

    monkeypatch.setattr(Prices, "buy", buy)
    da.knn_shapley(da.read_table("people.csv", label="income", id="id")).save("values.parquet")
    arguments = ["--search", "--thetas", "1"] if search else []
    monkeypatch.setattr(
        sys, "argv", ["datassay", "market", "price", "values.parquet", "--share", "0.5", "--json", *arguments]
    )
    with suppress(SystemExit):
        main()
    ctypes.CDLL(None).fflush(None)
    assert "cost" in " ".join(json.loads(capfd.readouterr().out)["facts"])


def test_a_rehearsal(files):
    result = run(
        "play", *GAME, "--strategy", "shapley", "--epsilon", "2", "--t-max", "3", "--target", "0.99", "--leakage", "insider",
        "-o", "game.parquet", "--plot", "g.svg", "--what", "spending",
    )  # fmt: skip
    assert result.exit_code == 0
    game = da.load_result("game.parquet")
    assert game.summary() in result.output
    assert game.seed == 0
    assert game.queries.tolist() == [3] * 200
    assert game.ids[0] == "p000"
    assert "Membership by lira (insider)" in result.output
    again = da.load_result("game.parquet")
    assert again.centres.tobytes() == game.centres.tobytes()
    assert (files / "g.svg").stat().st_size > 1000
    assert run("play", *GAME, "--t-max", "2", "--target", "0.99", "-q").output == ""


def test_for_real_with_a_ledger(files):
    result = run(
        "play", *REAL, "--strategy", "random", "--share", "0.05", "--t-max", "2",
        "--ledger", "l.ledger", "--budget-epsilon", "1000", "--consumer", "theirs.parquet",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "NOT CERTIFIED" not in result.output
    assert np.isnan(da.load_result("theirs.parquet").worth).all()
    short = run(
        "play", *REAL, "--strategy", "random", "--share", "0.05", "--t-max", "9",
        "--ledger", "m.ledger", "--budget-epsilon", "60", "-o", "m.parquet",
    )  # fmt: skip
    assert "ledger refused" in short.output
    assert da.load_result("m.parquet").n_queries > 0
    ledger = da.Ledger("l.ledger")
    encoder = da.fit_encoder(da.read_table("ours.csv", label="income", id="id"), source="validation")
    features = encoder.transform(da.read_table("people.csv", label="income", id="id"))[0].shape[1]
    assert ledger.disclosures()[1].total == 20 * features
    assert f"ε = {2 * features:.6g} of 1000 spent (replace-features)" in result.output
    shown = CliRunner().invoke(app, ["ledger", "show", "l.ledger"]).output
    assert "20 queries of 10 records" in " ".join(shown.split())


def test_a_search_goes_on(files):
    arguments = [
        "search", *GAME, "--t-maxes", "1,2", "--explorations", "0,0.1", "--repeats", "1", "--resume", "games.jsonl",
    ]  # fmt: skip
    first = run(*arguments, "-o", "e.parquet", "--plot", "e.svg", "--what", "gini")
    assert first.exit_code == 0
    assert len(da.load_result("e.parquet")) == 4
    assert "4 of 4 games were taken from" in run(*arguments).output
    assert (files / "e.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["play", *GAME, "--epsilon", "0"], "epsilon must be a finite number above 0", 2),
        (["play", *GAME, "--bootstrap", "3"], "--bootstrap does not apply to ucb", 2),
        (["play", *GAME, "--strategy", "random", "--exploration", "1"], "--exploration does not apply to random", 2),
        (["play", *GAME, "--ledger", "l"], "add --for-real", 2),
        (["play", *GAME, "--for-real"], "needs --target", 2),
        (["play", *GAME, "--for-real", "--target", "0.9", "--ledger", "l"], "give its budget with --budget-epsilon", 2),
        (["play", *GAME, "--consumer", "c.json"], "--consumer needs --for-real", 2),
        (
            ["play", "people.csv", "--label", "income", "--split", "0.5", "--for-real", "--target", "0.9"],
            "try it out",
            2,
        ),
        (
            ["play", *REAL, "--ledger", "l", "--budget-epsilon", "1"],
            "refuses this query: it would bring ε from 0",
            4,
        ),
        (["play", *REAL, "--ledger", "l", "--budget-epsilon", "99", "--epsilon", "0"], "epsilon must be", 2),
        (["play", *REAL, "--ledger", "no/l", "--budget-epsilon", "99"], "the folder 'no' does not exist", 2),
        (
            ["play", *GAME, "--for-real", "--target", "0.9", "--bounds", "data"],
            "give --bounds=LOW,HIGH that you know",
            2,
        ),
        (
            ["play", *GAME, "--for-real", "--target", "0.9", "--ledger", "l", "--budget-epsilon", "99"],
            "bounds were taken from the validation points, some of which are among the records",
            2,
        ),
        (["play", *GAME, "--epsilon", "1e308"], "epsilon is too large: over", 2),
        (["search", *GAME, "--epsilons", "1e308"], "epsilon is too large: over", 2),
        *(
            (["search", *GAME, "--t-maxes", bad], "--t-maxes must be whole numbers", 2)
            for bad in ("inf", "1e400", "nan")
        ),
        (["search", *GAME, "--t-maxes", "1e300"], "each of --t-maxes must be a whole number between", 2),
        (["search", *GAME, "--t-maxes", "0"], "each of --t-maxes must be a whole number between", 2),
        (["search", *GAME, "--t-maxes", "2,2"], "--t-maxes must be different numbers, got '2,2'", 2),
        (["search", *GAME, "--t-maxes", ""], "--t-maxes must be numbers separated by commas, got ''", 2),
        (["search", *GAME, "--epsilons", "1,-1"], "each of --epsilons must be a finite number above 0, got -1", 2),
        (["search", *GAME, "--explorations=-1"], "each of --explorations must be a finite number at least 0", 2),
        *(
            (["play", *REAL, "--ledger", "l", f"--budget-epsilon={bad}"], "--budget-epsilon must be a finite number", 2)
            for bad in ("-5", "inf")
        ),
        (["play", *REAL, "--seed", "3"], "the noise of a game for real has no seed: leave out --seed", 2),
        (["play", *GAME, "--what", "gini"], "--what says what to draw: add --plot FILE", 2),
        (["search", *GAME, "--what", "gini"], "--what says what to draw: add --plot FILE", 2),
        (["search", *GAME, "--plot-epsilon", "1"], "--plot-epsilon says what to draw: add --plot FILE", 2),
        (["play", *GAME, "--bounds", "1"], "--bounds must be validation, data, or two numbers", 2),
        (["play", *GAME, "-o", "people.csv"], "is an input", 2),
        (["play", *GAME, "-o", "x.txt"], "must end in .parquet", 2),
        (["play", "people.csv", "--label", "income"], "--validation FILE", 2),
        (["play", *GAME, "--target", "2"], "target must be", 2),
        (["search", *GAME, "--t-maxes", "1.5"], "--t-maxes must be whole numbers", 2),
        (["search", *GAME, "--epsilons", "one"], "--epsilons must be numbers separated by commas", 2),
        (
            ["search", *GAME, "--epsilons", "1,2", "--plot", "p.svg"],
            "a map is of one ε: choose it with --plot-epsilon",
            2,
        ),
        (["price", "nothing.parquet"], "there is no file", 3),
        (["price", "people.csv"], "results are kept in .parquet or .json", 3),
    ],
)
def test_bad_input_is_one_clear_line(files, capsys, monkeypatch, arguments, message, status):
    code, error = complain(capsys, monkeypatch, *arguments)
    assert code == status
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert sorted(p.name for p in files.iterdir()) == ["ours.csv", "people.csv"]


def test_prices_need_one_target(files, capsys, monkeypatch):
    da.knn_shapley(da.read_table("people.csv", label="income", id="id")).save("values.parquet")
    for arguments, message in (
        (["--search"], "name one of --target"),
        (["--target", "0.1", "--share", "0.1"], "name one of --target"),
        (["--budget", "1"], "--budget belongs to --search"),
        (["--thetas", "1,2"], "--thetas belongs to --search"),
        (["--markups", "1,2"], "--markups belongs to --search"),
        (["--search", "--share", "0.5", "--thetas", "200"], "each of thetas must be such that φ^θ can be written down"),
        (["--search", "--share", "0.5", "--thetas", "1,-1"], "each of --thetas must be a finite number at least 0"),
        (["--search", "--share", "0.5", "--thetas", ""], "--thetas must be numbers separated by commas, got ''"),
        (["--search", "--share", "0.5", "--markups=-1"], "each of --markups must be a finite number at least 0"),
        (["--search", "--share", "0.5", "--markups", ""], "--markups must be numbers separated by commas, got ''"),
        (["--search", "--share", "0.5", "--budget", "0"], "--budget must be a finite number above 0, got 0.0"),
        (["--search", "--share", "0.5", "--theta", "2"], "leave out --theta"),
        (["--bought", "b.csv"], "--bought needs"),
        (["--target", "99"], "out of reach"),
    ):
        code, error = complain(capsys, monkeypatch, "price", "values.parquet", *arguments)
        assert code == 2
        assert message in error


def test_a_file_without_values_to_price_is_named(files, capsys, monkeypatch):
    da.price([0.5, 0.2]).save("prices.json")
    table, ours = (da.read_table(name, label="income", id="id") for name in ("people.csv", "ours.csv"))
    da.private_knn_shapley(table, X_val=ours, delta=1e-5).save("private.json")
    for name, message in (
        ("prices.json", "'prices.json' holds Prices and no values of records"),
        ("private.json", "'private.json' holds private values: each is for its owner alone"),
    ):
        code, error = complain(capsys, monkeypatch, "price", name, "--share", "0.5")
        assert code == 3
        assert message in error


def test_a_ledger_is_never_deleted(files, monkeypatch):
    """Not even a new one from which nothing was paid: somebody else may be about to."""
    from datassay.market import DataOwner
    from datassay.privacy import NoisyRecords

    def fails(self, points):
        raise RuntimeError("in the middle of a game")

    with monkeypatch.context() as patch:
        patch.setattr(DataOwner, "_pay", fails)
        with pytest.raises(RuntimeError):
            run("play", *REAL, "--ledger", "l", "--budget-epsilon", "500")
    ledger = da.Ledger("l")
    DataOwner(np.full((1, 1), 0.5), NoisyRecords([0.0], [1.0], 2.0), 5, ledger=ledger).query([0])
    assert (ledger.epsilon, ledger.spent()) == (500.0, 2.0)


def test_what_the_consumer_may_not_see_is_not_written_and_the_game_is_told(files, capsys, monkeypatch):
    code, error = complain(
        capsys, monkeypatch, "play", *GAME, "--for-real", "--target", "0.99", "--t-max", "1", "--max-queries", "3",
        "--consumer", "c.json", "-o", "g.json",
    )  # fmt: skip
    assert code == 3
    assert "nothing in this game that the consumer may see: bounds were taken from the validation points" in error
    assert not (files / "c.json").exists()
    assert da.load_result("g.json").n_queries == 3


def test_a_game_that_the_ledger_left_alone_is_told_and_is_no_success(files, monkeypatch):
    from datassay._errors import UnavailableError

    honest, calls = da.Ledger.charge, []

    def charge(self, *arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise UnavailableError("the ledger stayed busy")
        honest(self, *arguments)

    monkeypatch.setattr(da.Ledger, "charge", charge)
    result = run("play", *REAL, "--ledger", "l", "--budget-epsilon", "500", "-o", "g.json", "--consumer", "c.json")
    assert result.exit_code == 4
    assert "Note: the ledger stayed busy" in result.output
    assert da.load_result("g.json").outcome == "ledger unavailable"
    assert da.load_result("c.json").n_queries == 2
