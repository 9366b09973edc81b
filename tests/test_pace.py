"""Progress in lines."""

import json

import pytest

import datassay as da
from commands import run
from datassay import _work


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_work.time, "monotonic", lambda: now[0])
    return now


def test_nothing_is_said_of_what_is_soon_done(clock, capsys):
    pace = _work.Pace()
    for done in range(1, 30):
        clock[0] += 1
        pace(done, 100)
    assert capsys.readouterr().err == ""


def test_what_takes_long_says_how_long_it_still_takes_and_ever_more_rarely(clock, capsys):
    pace = _work.Pace()
    for done in range(1, 101):
        clock[0] += 3
        pace(done, 100)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "10% done after 30 s, about 4 minutes left"
    assert [line.split()[0] for line in said] == ["10%", "20%", "40%", "80%"]
    clock[0] += 50
    for done in range(1, 6):  # the next calculation is measured by itself
        clock[0] += 15
        pace(done, 5)
    assert capsys.readouterr().err == "60% done after 30 s, about 30 s left\n"


def test_a_plan_is_said_before_it_starts_and_each_stage_when_it_ends(clock, capsys):
    with _work.Pace(n_jobs=2) as pace:
        pace.plan({"values": 80.0, "prices": 0.5, "risk": 45.0})
        assert capsys.readouterr().err == "About 2 minutes on 2 threads: values 80 s, risk 45 s.\n"
        for stage, seconds in (("values", 40), ("values", 30), ("prices", 2)):
            pace.show(0.0, stage)
            clock[0] += seconds
    assert capsys.readouterr().err.splitlines() == ["values: 70 s", "prices: 2 s"]


def test_a_short_plan_is_not_said(clock, capsys):
    with _work.Pace() as pace:
        pace.plan({"values": 4.0})
        pace.show(0.0, "values")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("quiet", [False, True])
def test_a_report_into_a_pipe_says_how_long_it_takes_beside_what_it_answers(tmp_path, monkeypatch, quiet):
    monkeypatch.setattr(_work, "WORTH_SAYING", 0.0)
    monkeypatch.chdir(tmp_path)
    da.census(80).save("people.csv")
    told = run("report", "people.csv", "--label", "income", "--quick", "--sections", "worth", "--json", *["-q"] * quiet)
    assert told.exit_code == 0
    assert json.loads(told.stdout)["facts"]["records"] == 80
    said = told.stderr.splitlines()
    assert [line.split(":")[0] for line in said if line.startswith("values")] == [] if quiet else ["values"]
    assert [line for line in said if line.startswith("About")] == ([] if quiet else said[:1])
