"""The ledger: durable, atomic across processes, and never overspent, whatever dies when."""

import json
import sqlite3
import subprocess
import sys

import pytest

from datassay import InputError, UnavailableError
from datassay.privacy import BudgetExceededError, Cost, Ledger, total_epsilon
from datassay.privacy import ledger as ledgers

COST = Cost("gaussian", 20.0)


def spend(ledger, request="q", costs=(COST,)):
    return ledger.spend("data", request, costs, "noisy counts", "public")


def version(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA user_version").fetchone()[0]
    finally:
        connection.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "market.ledger"


def test_what_is_spent_is_the_composition_of_every_release(path):
    ledger = Ledger(path, epsilon=2.0, delta=1e-5)
    other = Cost("discrete gaussian", 15.0, count=3, sampling=0.2)
    spend(ledger, "a")
    spend(ledger, "b", [other])
    assert ledger.spent() == total_epsilon([COST, other], 1e-5)
    assert ledger.remaining() == pytest.approx(2.0 - ledger.spent())
    assert [line.costs for line in ledger.releases()] == [(COST,), (other,)]


def test_the_budget_is_used_up_to_the_last_release_that_fits(path):
    ledger = Ledger(path, epsilon=1.0, delta=1e-5)
    fits = 0
    while total_epsilon([COST] * (fits + 1), 1e-5) <= 1.0:
        fits += 1
    for i in range(fits):
        spend(ledger, str(i))
    with pytest.raises(BudgetExceededError, match=r"would bring ε from .* and the budget is 1. Nothing was drawn"):
        spend(ledger, "one more")
    assert len(ledger.releases()) == fits
    assert ledger.spent() <= 1.0


def test_a_completed_release_is_found_again_and_an_unfinished_one_is_not(path):
    ledger = Ledger(path, epsilon=1.0, delta=1e-5)
    number = spend(ledger)
    assert ledger.find("data", "q") is None
    ledger.complete(number, "[1, 2]")
    assert Ledger(path).find("data", "q").result == "[1, 2]"
    assert ledger.find("other data", "q") is None
    with pytest.raises(InputError, match="no unfinished release number 1"):
        ledger.complete(number, "[9, 9]")
    assert ledger.find("data", "q").result == "[1, 2]"


def test_a_ledger_keeps_its_budget(path):
    Ledger(path, epsilon=1.0, delta=1e-5, neighbours="replace")
    again = Ledger(path)
    assert (again.epsilon, again.delta, again.neighbours) == (1.0, 1e-5, "replace")
    Ledger(path, epsilon=1.0, delta=1e-5)
    for other in ({"epsilon": 2.0}, {"delta": 1e-6}, {"neighbours": "add-remove"}):
        with pytest.raises(InputError, match="a budget is never changed"):
            Ledger(path, **other)
    with pytest.raises(InputError, match="kept for 'replace'"):
        spend(again)


def test_the_export_is_json(path):
    ledger = Ledger(path, epsilon=1.0, delta=1e-5)
    ledger.complete(spend(ledger), "[5]")
    told = json.loads(json.dumps(ledger.to_dict()))
    assert told["releases"][0]["costs"][0]["scale"] == 20.0
    assert told["spent"] == ledger.spent()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a new one needs a budget"),
        ({"epsilon": 1.0}, "a new one needs a budget"),
        ({"epsilon": 0, "delta": 1e-5}, "epsilon must be"),
        ({"epsilon": 1, "delta": 1}, "delta must be"),
        ({"epsilon": 1, "delta": 0.1, "relation": "x"}, "relation must be one of"),
    ],
)
def test_a_bad_budget_makes_no_ledger(path, arguments, message):
    with pytest.raises(InputError, match=message):
        Ledger(path, **arguments)
    assert list(path.parent.iterdir()) == []


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InputError, match="does not exist; no ledger was made"):
        Ledger(tmp_path / "gone" / "l", epsilon=1, delta=0.1)


class TestPlanned:
    """A ledger that is made when it is first paid from, and not before."""

    def test_it_is_empty_and_nowhere_until_it_is_paid_from(self, path):
        ledger = Ledger.planned(path, epsilon=1.0, delta=1e-5)
        assert (ledger.spent(), ledger.remaining(), ledger.releases(), ledger.disclosures()) == (0.0, 1.0, [], {})
        assert ledger.find("data", "q") is None
        assert ledger.facts()["releases"] == 0
        assert not path.exists()
        spend(ledger)
        assert Ledger(path, 1.0, 1e-5, "add-remove").spent() == ledger.spent() > 0

    def test_what_it_can_never_pay_does_not_make_it(self, path):
        with pytest.raises(BudgetExceededError, match="refuses this release: it would bring ε from 0 to"):
            spend(Ledger.planned(path, epsilon=0.01, delta=1e-5))
        planned = Ledger.planned(path, epsilon=0.5, delta=1e-5, neighbours="replace-features")
        with pytest.raises(BudgetExceededError, match="refuses this query: it would bring ε from 0 to 0.6"):
            planned.open_disclosure("data", "copies", 0.6)
        assert not path.exists()

    def test_whoever_makes_it_first_settles_its_budget(self, path):
        same, other = (Ledger.planned(path, epsilon=epsilon, delta=1e-5) for epsilon in (1.0, 2.0))
        number = spend(Ledger(path, epsilon=1.0, delta=1e-5))
        assert spend(same, "r") == number + 1
        with pytest.raises(InputError, match="has epsilon=1.0, not 2.0; a budget is never changed"):
            spend(other)
        assert len(Ledger(path).releases()) == 2
        with pytest.raises(InputError, match="has epsilon=1.0, not 3"):
            Ledger.planned(path, epsilon=3.0, delta=1e-5)

    def test_a_bad_plan_is_refused_at_once(self, path, tmp_path):
        with pytest.raises(InputError, match="epsilon must be"):
            Ledger.planned(path, epsilon=0.0, delta=1e-5)
        with pytest.raises(InputError, match="does not exist"):
            Ledger.planned(tmp_path / "no" / "l", epsilon=1.0, delta=1e-5)


class TestForeignFiles:
    def test_anything_else_is_refused_and_left_as_it_is(self, path):
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE t (a)")
        database.commit()
        database.close()
        contents = [b"", b"hello", b"SQLite format 3\0" + b"x" * 200, path.read_bytes()]
        for content in contents:
            path.write_bytes(content)
            with pytest.raises(InputError, match="is not a datassay ledger, or is damaged"):
                Ledger(path, epsilon=1.0, delta=1e-5)
            assert path.read_bytes() == content

    def test_a_truncated_ledger_is_refused_and_left_as_it_is(self, path):
        ledger = Ledger(path, epsilon=1.0, delta=1e-5)
        for i in range(3):
            spend(ledger, str(i))
        whole = path.read_bytes()
        for size in (50, 99, 100, 3000, len(whole) - 4096, len(whole) - 1):
            path.write_bytes(whole[:size])
            with pytest.raises(InputError, match="damaged|cannot be used"):
                spend(Ledger(path, epsilon=1.0, delta=1e-5), "more")
            assert path.read_bytes() == whole[:size]

    def test_a_truncated_ledger_is_refused_whatever_the_size_of_its_pages(self, path):
        """A header has two bytes for the size of a page, and 65,536 is written as 1."""
        spend(Ledger(path, epsilon=1.0, delta=1e-5))
        database = sqlite3.connect(path, isolation_level=None)
        database.executescript("PRAGMA journal_mode = DELETE; PRAGMA page_size = 65536; VACUUM")
        database.close()
        whole = path.read_bytes()
        assert whole[16:18] == b"\0\1"
        assert len(Ledger(path, epsilon=1.0, delta=1e-5).releases()) == 1
        path.write_bytes(whole[:-1])
        with pytest.raises(InputError, match="is not a datassay ledger, or is damaged"):
            Ledger(path, epsilon=1.0, delta=1e-5)

    def test_another_version_is_refused(self, path):
        Ledger(path, epsilon=1.0, delta=1e-5)
        database = sqlite3.connect(path)
        database.execute("PRAGMA user_version = 99")
        database.close()
        with pytest.raises(InputError, match="another version"):
            Ledger(path)


RACER = """
import sys
from datassay.privacy import BudgetExceededError, Cost, Ledger
path, name = sys.argv[1:]
ledger = Ledger(path, epsilon=1.0, delta=1e-5)
sys.stdin.readline()
for i in range(3):
    try:
        print("spent", ledger.spend("data", f"{name}-{i}", [Cost("gaussian", 20.0)], "m", "public"))
    except BudgetExceededError:
        print("refused")
"""


def test_sixteen_processes_racing_for_the_budget_never_overspend(path):
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, str(path), str(i)], stdin=-1, stdout=-1, stderr=-1, text=True)
        for i in range(16)
    ]
    answers = []
    for racer in racers:  # all of them make or open the same ledger, and wait
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        out, err = racer.communicate(timeout=120)
        assert racer.returncode == 0, err
        answers += out.split("\n")[:-1]
    fits = 0
    while total_epsilon([COST] * (fits + 1), 1e-5) <= 1.0:
        fits += 1
    assert 0 < fits < 48
    assert len(answers) == 48
    numbers = [int(answer.split()[1]) for answer in answers if answer.startswith("spent")]
    assert len(numbers) == len(set(numbers)) == fits
    ledger = Ledger(path)
    assert len(ledger.releases()) == fits
    assert ledger.spent() <= 1.0


DYING = """
import os, sys
from datassay.privacy import Cost, Ledger, ledger as module
path, moment = sys.argv[1:]
module._reached = lambda here: os.kill(os.getpid(), 9) if here == moment else None
ledger = Ledger(path, epsilon=1.0, delta=1e-5)
number = ledger.spend("data", "q", [Cost("gaussian", 20.0)], "m", "public")
print("noise")  # only now may noise be drawn
ledger.complete(number, "[1]")
"""


@pytest.mark.parametrize(
    ("moment", "noise", "lines"), [("before spending", 0, 0), ("after spending", 0, 1), ("", 1, 1)]
)
def test_a_process_killed_at_any_moment_never_has_noise_that_was_not_paid_for(path, moment, noise, lines):
    died = subprocess.run([sys.executable, "-c", DYING, str(path), moment], capture_output=True, text=True)
    assert died.returncode == (-9 if moment else 0)
    assert died.stdout.count("noise") == noise
    ledger = Ledger(path)
    assert len(ledger.releases()) == lines >= noise
    assert (ledger.spent() > 0) == (lines > 0)
    spend(ledger, "after")  # the ledger is as good as before


class TestDisclosures:
    """Single records, each with an account: parallel composition within a data set, sums across."""

    def ledger(self, path, epsilon=10.0):
        return Ledger(path, epsilon=epsilon, delta=1e-5, neighbours="replace-features")

    def test_a_data_set_costs_what_its_record_most_asked_for_has_spent(self, path):
        ledger = self.ledger(path)
        number = ledger.open_disclosure("data", "noisy copies")
        assert ledger.spent() == 0
        ledger.charge(number, ["a", "b", "c"], 1.5)
        ledger.charge(number, ["b"], 1.5)
        assert ledger.spent() == 3.0
        told = ledger.disclosures()[number]
        assert (told.queries, told.records, told.total, told.most) == (4, 3, 6.0, 3.0)
        # The same people again, in another game: their accounts go on. Other people may be the same: they are added.
        again = ledger.open_disclosure("data", "noisy copies")
        ledger.charge(again, ["a"], 4.0)
        assert ledger.spent() == 5.5
        other = ledger.open_disclosure("newer data", "noisy copies")
        ledger.charge(other, ["a"], 2.0)
        assert ledger.spent() == 7.5
        assert Ledger(path).spent() == 7.5

    def test_disclosures_add_to_other_releases(self, path):
        ledger = self.ledger(path)
        cost = Cost("gaussian", 20.0, neighbours="replace")  # whoever may replace a record may replace its features
        spend(ledger, costs=[cost])
        ledger.charge(ledger.open_disclosure("data", "noisy copies"), ["a"], 2.0)
        assert ledger.spent() == total_epsilon([cost], 1e-5) + 2.0
        with pytest.raises(BudgetExceededError):
            spend(ledger, "much", [Cost("gaussian", 0.4, neighbours="replace")])
        with pytest.raises(InputError, match="accounted for relation='add-remove'"):
            spend(ledger, "other")

    def test_all_queries_of_a_charge_or_none(self, path):
        ledger = self.ledger(path, 3.0)
        number = ledger.open_disclosure("data", "noisy copies")
        ledger.charge(number, ["a"], 2.0)
        with pytest.raises(BudgetExceededError, match="this query: it would bring ε from 2 to 4"):
            ledger.charge(number, ["b", "a"], 2.0)
        assert ledger.disclosures()[number].queries == 1
        ledger.charge(number, ["b"], 2.0)
        assert ledger.spent() == 2.0

    def test_the_whole_budget_in_small_sums(self, path):
        ledger = self.ledger(path, 0.3)
        number = ledger.open_disclosure("data", "noisy copies")
        for _ in range(3):
            ledger.charge(number, ["a"], 0.1)
        with pytest.raises(BudgetExceededError):
            ledger.charge(number, ["a"], 1e-6)
        assert ledger.disclosures()[number].total == 0.1 * 3

    def test_what_is_closed_stays_closed(self, path):
        ledger = self.ledger(path)
        number = ledger.open_disclosure("data", "noisy copies")
        ledger.complete(number, "{}")
        ordinary = spend(ledger, costs=[Cost("gaussian", 20.0, neighbours="replace")])
        for wrong in (number, 99, ordinary):
            with pytest.raises(InputError, match=f"no open disclosure number {wrong}"):
                ledger.charge(wrong, ["a"], 1.0)
        with pytest.raises(InputError, match="once at a time"):
            ledger.charge(ledger.open_disclosure("data", "more"), ["a", "a"], 1.0)
        with pytest.raises(InputError, match="epsilon"):
            ledger.charge(number, ["a"], 0.0)

    def test_ids_are_not_told(self, path):
        ledger = self.ledger(path)
        ledger.charge(ledger.open_disclosure("data", "noisy copies"), ["someone@example.org"], 1.0)
        assert b"someone" not in path.read_bytes()
        told = json.dumps(ledger.to_dict())
        assert "someone" not in told
        assert json.loads(told)["disclosures"]["1"] == {"queries": 1, "records": 1, "total": 1.0, "most": 1.0}

    def test_a_ledger_of_whole_records_gives_out_none(self, path):
        ledger = Ledger(path, epsilon=1.0, delta=1e-5, neighbours="replace")
        with pytest.raises(InputError, match="made with relation='replace-features'"):
            ledger.open_disclosure("data", "noisy copies")
        assert ledger.disclosures() == {}

    def test_readers_that_do_not_know_accounts_are_kept_out(self, path):
        ledger = self.ledger(path)
        assert version(path) == 1
        ledger.open_disclosure("data", "noisy copies")
        assert version(path) == 2

    def test_peaks_are_those_of_the_accounts(self, path):
        ledger = self.ledger(path)
        number = ledger.open_disclosure("data", "noisy copies")
        ledger.charge(number, ["a", "b"], 4.0)
        connection = sqlite3.connect(path)
        connection.execute("DROP TABLE peaks")
        connection.commit()
        connection.close()
        ledger.open_disclosure("data", "more")
        assert ledger.spent() == 4.0

    def test_many_processes_never_overspend_an_account(self, path):
        ledger = self.ledger(path, 5.0)
        number = ledger.open_disclosure("data", "noisy copies")
        code = (
            "import sys\nfrom datassay.privacy import BudgetExceededError, Ledger\n"
            "ledger = Ledger(sys.argv[1])\n"
            "for i in range(10):\n"
            "    try:\n        ledger.charge(int(sys.argv[2]), ['a', f'b{sys.argv[3]}-{i}'], 1.0)\n"
            "    except BudgetExceededError:\n        pass\n"
        )
        racers = [
            subprocess.Popen([sys.executable, "-c", code, str(path), str(number), str(racer)]) for racer in range(4)
        ]
        assert [racer.wait() for racer in racers] == [0] * 4
        told = ledger.disclosures()[number]
        assert (told.queries, told.most, ledger.spent()) == (10, 5.0, 5.0)  # five charges of two records each


class TestBusy:
    def test_a_ledger_that_somebody_holds_is_busy(self, path, monkeypatch):
        monkeypatch.setattr(ledgers, "WAIT_SECONDS", 0.05)
        ledger = Ledger(path, epsilon=1.0, delta=1e-5)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            with pytest.raises(UnavailableError, match="stayed busy"):
                spend(ledger)
        finally:
            other.close()
        assert ledger.spent() == 0

    @pytest.mark.parametrize(
        ("said", "error", "message"),
        [("database is locked", UnavailableError, "is busy"), ("disk I/O error", InputError, "or is damaged")],
    )
    def test_only_what_is_locked_is_busy(self, path, monkeypatch, said, error, message):
        ledger = Ledger(path, epsilon=1.0, delta=1e-5)

        class Failing:
            def execute(self, *_):
                raise sqlite3.OperationalError(said)

            def close(self):
                pass

        monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: Failing())
        with pytest.raises(error, match=message):
            spend(ledger)
