"""What holds for every command: help, --json, --quiet, --fail-if, exit codes, --debug, interrupts, completion.

The commands are those of the app itself: one that is added without an entry in CALLS fails here.
"""

import inspect
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import datassay as da
from commands import wait_for_work
from datassay import _choices
from datassay.cli import build, main
from datassay.cli.command import check_conditions
from datassay.cli.inputs import complete_data, complete_file
from datassay.reproduce import engine
from datassay.results import write_folder, write_whole

DOCS = Path(__file__).resolve().parents[2] / "docs" / "commandline.md"


def every_command(command, path=()):
    for name, part in command.commands.items():
        if hasattr(part, "commands"):
            yield from every_command(part, (*path, name))
        else:
            yield " ".join((*path, name)), part


COMMANDS = dict(every_command(build()))
ALL = pytest.mark.parametrize("command", sorted(COMMANDS))
GAME = ["people.csv", "--validation", "public.csv", "--label", "income", "--id", "id"]

# How each command is called so that it is quickly done and writes a file.
CALLS = {
    "report": [
        "people.csv", "--label", "income", "--id", "id", "--quick", "--sections", "worth,found", "-o", "made.html",
    ],
    "value": ["people.csv", "--label", "income", "--id", "id", "-o", "made.json"],
    "private-value": [*GAME, "--tau", "-0.5", "-o", "made.json"],
    "attack": ["people.csv", "--label", "income", "--id", "id", "--games", "4", "--k", "1", "-o", "made.json"],
    "unique": ["people.csv", "--columns", "age,sex", "--by", "region", "-o", "made.json"],
    "risk": ["people.csv", "released.csv", "--id", "id", "--people", "20", "--permutations", "2", "-o", "made.json"],
    "release": [
        "people.csv", "--label", "income", "--id", "id", "--strategies", "keep,k=4", "--people", "9", "--permutations",
        "2", "-o", "made.json",
    ],
    "market price": ["values.json", "--share", "0.5", "-o", "made.json"],
    "market play": [*GAME, "--strategy", "random", "--t-max", "1", "--target", "0.99", "-o", "made.json"],
    "market search": [*GAME, "--t-maxes", "1", "--explorations", "0", "--repeats", "1", "-o", "made.json"],
    "ledger show": ["market.ledger"],
    "ledger export": ["market.ledger", "-o", "made.json"],
    "datasets": ["census", "-n", "50", "-o", "made.json"],
    "reproduce": ["tiny", "--figure", "made.svg"],
}  # fmt: skip
# The same with data that is not there.
NO_DATA = {
    "market price": ["nowhere.json"],
    "ledger show": ["nowhere.ledger"],
    "ledger export": ["nowhere.ledger"],
    "datasets": ["nowhere"],
    "reproduce": ["tiny", "--data", "nowhere"],
}


def written(command):
    """The files that a command writes when it is called so."""
    return {"ledger show": [], "report": ["made.html", "made.json"]}.get(command, [CALLS[command][-1]])


def no_data(command):
    return NO_DATA.get(command, ["nowhere.csv", *CALLS[command][1:]])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conventions")
    frame = da.census(160, seed=1).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
    frame["id"] = [f"p{i:03d}" for i in frame["id"]]
    frame.iloc[:120].to_csv(folder / "people.csv", index=False)
    frame.iloc[120:].to_csv(folder / "public.csv", index=False)
    table = da.read_table(folder / "people.csv", label="income", id="id")
    da.release.mondrian(table, 4).save(folder / "released.csv", ids=True)
    da.knn_shapley(table).save(folder / "values.json")
    da.Ledger(folder / "market.ledger", epsilon=1.0, delta=1e-5)
    return folder


@pytest.fixture
def files(prepared, tmp_path, monkeypatch):
    here = tmp_path / "here"
    shutil.copytree(prepared, here)
    monkeypatch.chdir(here)
    monkeypatch.delenv("DATASSAY_DATA", raising=False)
    cells = (engine.Cell("row", "column", 0.5, 0.5),)
    redone = engine.Redone(cells, "it comes out", True, lambda axes: axes)
    monkeypatch.setitem(engine.REPRODUCTIONS, "tiny", engine._Entry("A table", lambda: redone))
    return here


@pytest.fixture
def run(capfd, monkeypatch):
    def call(*arguments):
        """Exit code, standard output and standard error, through the real entry point."""
        monkeypatch.setattr(sys, "argv", ["datassay", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        return stop.value.code, out, err

    return call


def one_line(text):
    assert text.startswith("datassay: ")
    assert len(text.splitlines()) == 1
    return text


def test_every_command_has_a_call_here():
    assert set(CALLS) == set(COMMANDS)


# --- help


@ALL
def test_help_says_what_it_does_with_an_example_and_the_common_options(run, command):
    code, out, err = run(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert f"datassay {command}" in out.split("Examples:")[1]
    for option in ("--json", "--fail-if", "--quiet", "--debug"):
        assert option in out
    assert "Exit codes" in run("--help")[1]
    assert not re.search(r"{(\w+\.\w|[A-Z_]+})", out)  # the defaults of functions are filled in


@pytest.mark.parametrize(
    ("command", "option", "function", "parameter"),
    [
        ("attack", "--games", "membership_attack", "games"),
        ("private-value", "--delta", "private_tknn_shapley", "delta"),
        ("release", "--people", "compare_releases", "people"),
        ("value", "--k", "knn_shapley", "k"),
        ("value", "--scale", "read_table", "scale"),
        ("value", "--kappa", "StableLogisticRegression", "kappa"),
        ("private-value", "--lam", "StableLogisticRegression", "lam"),
    ],
)
def test_the_help_of_an_option_has_the_default_of_the_function(run, monkeypatch, command, option, function, parameter):
    monkeypatch.setenv("COLUMNS", "300")
    told = next(line for line in run(command, "--help")[1].splitlines() if f"{option} " in line)
    default = inspect.signature(getattr(da, function)).parameters[parameter].default
    assert f"({default:g})" in told if isinstance(default, float) else f"({default})" in told


@pytest.mark.parametrize(
    ("command", "option", "default"),
    [
        ("value", "--max-coalitions", str(_choices.DEFAULT_COALITIONS)),
        ("report", "--most", f"({_choices.MOST_PAIRED}; quick {_choices.MOST_PAIRED_QUICKLY})"),
        ("market price", "--markups", "(0, 0.5, 1, 2)"),
        ("market play", "--bootstrap", f"({_choices.DEFAULT_BOOTSTRAP})"),
        ("market play", "--what", "(utility)"),
    ],
)
def test_help_has_the_defaults_that_depend_on_other_options(run, monkeypatch, command, option, default):
    monkeypatch.setenv("COLUMNS", "300")
    assert default in next(line for line in run(*command.split(), "--help")[1].splitlines() if f"{option} " in line)


@pytest.mark.parametrize("group", ["market", "ledger"])
def test_a_group_of_commands_has_examples_as_well(run, group):
    assert f"datassay {group} " in run(group, "--help")[1].split("Examples:")[1]


def test_help_is_what_no_command_gets(run):
    for arguments in ((), ("market",), ("ledger",)):
        code, out, err = run(*arguments)
        assert code == 2
        assert "Usage: datassay" in out + err


# --- what comes out


@ALL
def test_json_is_one_object_and_nothing_else(run, files, command):
    code, out, err = run(*command.split(), *CALLS[command], "--json")
    assert (code, err) == (0, "")
    told = json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert list(told) == ["command", "version", "facts", "notes", "written"]
    assert (told["command"], told["version"]) == (command, da.__version__)
    assert told["written"] == written(command)
    assert all(Path(file).stat().st_size for file in told["written"])
    assert all(isinstance(note, str) for note in told["notes"])
    assert told["facts"]
    for name, fact in told["facts"].items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*(\..+)?", name)
        assert fact is None or isinstance(fact, str | int | float | bool)
    assert run(*command.split(), *CALLS[command], "--json", "--quiet")[1] != ""


@ALL
def test_every_fact_is_in_the_documentation(run, files, command):
    facts = json.loads(run(*command.split(), *CALLS[command], "--json")[1])["facts"]
    text = DOCS.read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| `{command}` |"))
    listed = set(re.findall(r"`([a-z][a-z0-9_]*)", row.split("|", 2)[2]))
    assert {name.split(".")[0] for name in facts} <= listed


@ALL
def test_quiet_says_nothing(run, files, command):
    assert run(*command.split(), *CALLS[command], "--quiet") == (0, "", "")
    assert all(Path(file).exists() for file in written(command))


@ALL
def test_the_summary_is_plain_text_that_ends_with_what_was_written(run, files, command):
    code, out, err = run(*command.split(), *CALLS[command])
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    lines = out.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert command == "ledger show" or lines[-1] == f"Written: {written(command)[-1]}"
    assert command == "ledger export" or len(lines) > 1


def test_lists_are_not_cut_where_nobody_looks(run, monkeypatch):
    monkeypatch.delenv("DATASSAY_DATA", raising=False)
    shown = run("datasets")[1].splitlines()
    known = da.list_datasets()
    assert len(shown) == len(known) + 1
    for line, info in zip(shown[1:], known, strict=True):
        assert line.strip().startswith(info.name)
        assert line.endswith(info.description)
    assert "uniqueness-voters" in run("reproduce")[1]


def test_a_ledger_to_the_terminal_is_the_ledger_or_the_facts(run, files):
    assert json.loads(run("ledger", "export", "market.ledger")[1])["releases"] == []
    told = json.loads(run("ledger", "export", "market.ledger", "--json")[1])
    assert told["facts"]["left_epsilon"] == 1.0
    assert "--output" in told["notes"][0]


def test_json_is_utf8_whatever_the_terminal_is(files):
    Path("été.csv").write_bytes(Path("people.csv").read_bytes())
    command = [sys.executable, "-m", "datassay", "unique", "été.csv", "-c", "age", "--json", "-o", "für.json"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert json.loads(done.stdout.decode("utf-8"))["written"] == ["für.json"]


# --- --fail-if


@ALL
def test_a_condition_that_holds_is_exit_code_1_and_everything_is_written(run, files, command):
    call = [*command.split(), *CALLS[command]]
    facts = json.loads(run(*call, "--json")[1])["facts"]
    steady = {n: f for n, f in facts.items() if isinstance(f, int | float) and "value" not in n}  # some have noise
    name, fact = next(iter(steady.items()))
    made = [Path(file) for file in written(command)]
    for file in made:
        file.unlink()
    code, out, err = run(*call, "--fail-if", f"{name} >= {float(fact)!r}", "--json")
    assert code == 1
    assert one_line(err) == f"datassay: --fail-if '{name} >= {float(fact)!r}' holds: {name} is {str(fact).lower()}\n"
    assert json.loads(out)["facts"][name] == fact
    assert all(file.exists() for file in made)
    for holds_not in (f"{name}>{float(fact)!r}", f"{name} != {float(fact)!r}", f" {name} < {float(fact)!r} "):
        assert run(*call, "-q", "--fail-if", holds_not) == (0, "", "")


@ALL
def test_a_condition_of_an_unknown_fact_is_a_wrong_call(run, files, command):
    code, _, err = run(*command.split(), *CALLS[command], "-q", "--fail-if", "no_such_thing > 3")
    assert code == 2
    assert "there is no fact 'no_such_thing' here" in one_line(err)
    assert " are '" in err


@ALL
@pytest.mark.parametrize(
    "condition",
    ["records", "records >", "> 3", "records = 3", "records >> 3", "records=<3", "records <> 3", "records === 3",
     "records > many", "records > nan", ""],
)  # fmt: skip
def test_a_condition_that_cannot_be_read_is_refused_before_any_work(run, files, command, condition):
    before = sorted(file.name for file in files.iterdir())
    code, out, err = run(*command.split(), *no_data(command), "--fail-if", condition)
    assert (code, out) == (2, "")
    assert "NAME OP NUMBER" in one_line(err)
    assert sorted(file.name for file in files.iterdir()) == before


def test_conditions_are_read_from_their_end():
    for text, name, comparison, number in (
        ("risk.k=8 > 0.1", "risk.k=8", ">", 0.1),
        ("score.age > 34 AND zip = '1'>=0.5", "score.age > 34 AND zip = '1'", ">=", 0.5),
        ("bits.a <= b!=-1e-3", "bits.a <= b", "!=", -0.001),
        ("share_unique==1", "share_unique", "==", 1.0),
        ("bits.income, net<  .5", "bits.income, net", "<", 0.5),
    ):
        (found,) = check_conditions([text])
        assert (found.name, found.comparison, found.number) == (name, comparison, number)
    assert check_conditions(None) == []


def test_several_conditions_are_each_judged(run, files):
    call = ["unique", "people.csv", "-c", "age,sex", "-q"]
    conditions = ["--fail-if", "records == 120", "--fail-if", "records > 120", "--fail-if", "attributes <= 2"]
    code, _, err = run(*call, *conditions)
    assert code == 1
    assert [line.split("'")[1] for line in err.splitlines()] == ["records == 120", "attributes <= 2"]
    code, _, err = run(*call, "--fail-if", "share_uniqe > 3")
    assert (code, "did you mean 'share_unique'?" in err) == (2, True)


def test_what_is_not_known_does_not_pass(run, files):
    call = [*CALLS["risk"], "-q"]
    for operator in (">", "<", "=="):
        code, _, err = run("risk", *call, "--fail-if", f"control_risk {operator} 0.5")
        assert code == 1
        assert "control_risk is not known" in one_line(err)


def test_a_word_is_no_number(run, files):
    code, _, err = run("datasets", "census", "-q", "--fail-if", "label > 3")
    assert code == 2
    assert "label is 'income', which is no number" in one_line(err)


def test_truth_is_one(run, files):
    assert run(*["market", "price", *CALLS["market price"]], "-q", "--fail-if", "proven == 1")[0] == 1
    assert run(*["market", "price", *CALLS["market price"]], "-q", "--fail-if", "proven == 0")[0] == 0


def test_a_reproduction_that_does_not_hold_is_exit_code_1(run, files, monkeypatch):
    redone = engine.Redone((engine.Cell("row", "column", 0.9, 0.5),), "it does not", False)
    monkeypatch.setitem(engine.REPRODUCTIONS, "tiny", engine._Entry("A table", lambda: redone))
    code, out, _ = run("reproduce", "tiny", "--json")
    assert code == 1
    assert json.loads(out)["facts"]["holds"] is False


# --- what goes wrong


@ALL
def test_a_wrong_option_is_exit_code_2(run, files, command):
    code, out, err = run(*command.split(), *CALLS[command], "--no-such-option", "--json")
    assert (code, out) == (2, "")
    assert "--no-such-option" in one_line(err)
    assert f"see 'datassay {command} --help'" in err


@ALL
def test_data_that_is_not_there_is_exit_code_3(run, files, command):
    for more in ([], ["--json"], ["--quiet"]):
        code, out, err = run(*command.split(), *no_data(command), *more)
        assert (code, out) == (3, "")
        assert "nowhere" in one_line(err)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
@ALL
def test_a_file_of_garbage_is_exit_code_3_and_named(run, files, command, ending):
    for at, file in enumerate(CALLS[command]):
        if not Path(file).is_file():
            continue
        garbage = Path("garbage" + (ending if file.endswith(".csv") else Path(file).suffix))
        garbage.write_bytes(np.random.default_rng(0).bytes(5000))
        code, out, err = run(*command.split(), *CALLS[command][:at], str(garbage), *CALLS[command][at + 1 :])
        assert (code, out) == (3, ""), err
        assert garbage.name in one_line(err)


def test_a_report_that_answers_nothing_is_exit_code_3_and_no_page(run, files):
    lines = [f"{10**18 + 7 * i},{i % 9},{i % 2}" for i in range(60)]
    Path("accounts.csv").write_text("\n".join(["account,age,y", *lines]))
    status, out, err = run("report", "accounts.csv", "--label", "y", "--quick", "-o", "made.html")
    assert (status, out) == (3, "")
    assert "'account' of accounts.csv has whole numbers beyond 2**53" in one_line(err)
    assert not Path("made.html").exists()
    assert not Path("made.json").exists()


def test_an_unknown_command_is_exit_code_2(run):
    code, _, err = run("vaule")
    assert code == 2
    assert "value" in one_line(err)


FAILURES = [
    (da.InputError("a row is bad"), 3, "a row is bad"),
    (da.UsageError("k must be 1"), 2, "k must be 1"),
    (da.UnavailableError("no memory"), 4, "no memory"),
    (da.BudgetExceededError("no budget"), 4, "no budget"),
    (da.MissingDependencyError("pip install ctgan"), 4, "pip install ctgan"),
    (ModuleNotFoundError("No module named 'torch'", name="torch"), 4, "pip install torch"),
    (OSError(28, "No space left on device", "v.json"), 4, "No space left on device: v.json"),
    (PermissionError(13, "Permission denied", "v.json"), 4, "Permission denied: v.json"),
    (MemoryError(), 4, "out of memory"),
    (KeyboardInterrupt(), 130, "interrupted"),
    (KeyboardInterrupt("interrupted; it is kept"), 130, "interrupted; it is kept"),
    (ZeroDivisionError("division\nby zero"), 70, "ZeroDivisionError: division by zero. This is a bug in datassay"),
    (ModuleNotFoundError("No module named 'datassay.x'", name="datassay.x"), 70, "a bug in datassay"),
    (RecursionError(), 70, "RecursionError. This is a bug in datassay; run again with --debug"),
]


@ALL
@pytest.mark.parametrize(
    ("error", "code", "message"), FAILURES, ids=[f"{type(e).__name__}-{c}" for e, c, _ in FAILURES]
)
def test_whatever_goes_wrong_is_one_line_and_its_exit_code(run, monkeypatch, command, error, code, message):
    def fail(*_):
        raise error

    monkeypatch.setattr("datassay.cli.command.check_conditions", fail)
    call = [*command.split(), *CALLS[command]]
    status, out, err = run(*call)
    assert (status, out) == (code, "")
    assert message in one_line(err)
    for arguments in ([*call, "--debug"], ["--debug", *call], [*command.split(), "--debug", *CALLS[command]]):
        status, _, err = run(*arguments)
        assert status == code
        assert "Traceback (most recent call last)" in err
        assert message in " ".join(err.splitlines()[-1].split())


def test_a_reader_who_has_seen_enough_is_no_error(files):
    command = f"{sys.executable} -m datassay unique people.csv -c age,sex --by region | true; echo ${{PIPESTATUS[0]}}"
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    done = subprocess.run([bash, "-c", command], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "141")  # 0 if it was all in the pipe before


def test_a_reader_who_has_seen_enough_of_the_help_is_no_finding():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "datassay", "unique", "--help"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_full_disk_is_exit_code_4(files):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    command = [sys.executable, "-m", "datassay", "unique", "people.csv", "-c", "age,sex"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4
    assert "No space left on device" in one_line(done.stderr)


def seen_in_a_terminal(arguments, **environment):
    """What a command shows on a terminal of its own."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "datassay", *arguments],
        stdin=slave, stdout=slave, stderr=slave,
        env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm-256color", **environment},
    )  # fmt: skip
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 4096):
            shown += part
    except OSError:  # the terminal is closed
        pass
    process.wait()
    os.close(master)
    return shown.decode()


def test_errors_are_red_unless_that_is_not_wanted(files):
    call = ["unique", "nowhere.csv"]
    assert "\x1b[31mdatassay: there is no file" in seen_in_a_terminal(call)
    assert seen_in_a_terminal(call, NO_COLOR="1").strip() == "datassay: there is no file 'nowhere.csv'"
    assert "\x1b[3" not in seen_in_a_terminal(["unique", "--help"], NO_COLOR="1")


def test_nothing_in_the_data_steers_the_terminal(files):
    lines = [f"{'a' * (i % 7)}\x1b]0;owned\x07,{i % 3}\u202e" for i in range(60)]
    Path("odd.csv").write_text("\n".join(["job\x1b[2J,b\u202e", *lines]), encoding="utf-8")
    shown = seen_in_a_terminal(["unique", "odd.csv", "--quiet", "--fail-if", "bits.job > 0"])
    for arguments in (
        ["odd.csv"],
        ["odd.csv", "--columns", "job\x1b[2J", "--by", "b\u202e"],
        ["odd.csv", "--columns", "\x1b[2J"],
    ):
        shown += seen_in_a_terminal(["unique", *arguments])
    assert "job\\x1b[2J" in shown
    assert not re.search("\x1b\\[2J|\x1b\\]|\x07|\u202e", shown)


# --- interrupts


def interrupted(arguments, seconds):
    """What a command says that is interrupted when it has worked for so many seconds of the processor's time."""
    process = subprocess.Popen(
        [sys.executable, "-m", "datassay", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_work(process, seconds)
    assert process.poll() is None, "it was done before it could be interrupted"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    "arguments",
    [
        ["attack", "large.csv", "--label", "income", "--id", "id", "--games", "100000", "-o", "made.json"],
        [
            "risk", "large.csv", "large.csv", "--id", "id", "--permutations", "1000", "--shapley", "-o", "made.json",
            "--json",
        ],
        [
            "private-value", "large.csv", "--validation", "public.csv", "--label", "income", "--id", "id", "--method",
            "layered-shapley", "--alpha", "0.02", "--ledger", "new.ledger", "--budget-epsilon", "3", "-o", "made.json",
            "-q",
        ],
    ],
    ids=["attack", "risk", "private-value"],
)  # fmt: skip
def test_an_interrupt_is_one_line_and_leaves_nothing(files, arguments):
    frame = da.census(3000, seed=3).to_frame("pandas").drop(columns=["label_error", "duplicate_of", "rare"])
    frame["id"] = [f"q{i:04d}" for i in frame["id"]]
    frame.to_csv("large.csv", index=False)
    before = sorted(file.name for file in files.iterdir())
    code, out, err = interrupted(arguments, 4)
    assert (code, out) == (130, "")
    assert one_line(err) == "datassay: interrupted\n"
    assert sorted(file.name for file in files.iterdir()) == before


def test_an_interrupt_while_writing_leaves_what_was_there(tmp_path):
    def stop(path):
        (path / "part" if path.is_dir() else path).write_text("half")
        raise KeyboardInterrupt

    (tmp_path / "v.json").write_text("before")
    for write, name in ((write_whole, "v.json"), (write_folder, "owners")):
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / name, stop)
    assert [file.name for file in tmp_path.iterdir()] == ["v.json"]
    assert (tmp_path / "v.json").read_text() == "before"


def test_an_interrupt_that_a_library_renames_is_one_still(run, files, monkeypatch):
    def fail(*_):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RuntimeError("query interrupted") from None

    monkeypatch.setattr("datassay.cli.command.check_conditions", fail)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background has it ignored
    try:
        code, _, err = run("unique", "people.csv")
        assert (code, err) == (130, "datassay: interrupted\n")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


# --- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_shell_can_be_taught_to_complete(run, shell):
    code, out, err = run("--show-completion", shell)
    assert (code, err) == (0, "")
    assert f"complete_{shell}" in out
    assert "_DATASSAY_COMPLETE" in out
    assert run("--show-completion", "abacus")[0] == 2


def test_completion_is_installed_where_the_shell_looks(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    code, out, _ = run("--install-completion", "bash")
    assert code == 0
    assert "Written: " in out
    assert "complete" in (tmp_path / ".bash_completions" / "datassay.sh").read_text()


def completed(*words):
    done = subprocess.run(
        [sys.executable, "-m", "datassay"],
        capture_output=True, text=True,
        env={**os.environ, "_DATASSAY_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(["datassay", *words]),
             "COMP_CWORD": str(len(words))},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_words_are_completed(files, monkeypatch):
    monkeypatch.delenv("DATASSAY_DATA", raising=False)
    assert completed("pri") == ["private-value"]
    assert completed("value", "cen") == ["census"]
    assert completed("market", "play", "vot") == ["voters"]
    assert completed("datasets", "iri") == ["iris"]
    assert completed("value", "peo") == ["people.csv"]
    assert completed("risk", "rel") == ["released.csv"]
    assert completed("reproduce", "uniqueness-f") == ["uniqueness-flare"]
    assert "--debug" in completed("unique", "people.csv", "--de")
    assert completed("value", "people.csv", "--method", "knn-b") == ["knn-banzhaf"]


def test_a_shell_that_shows_help_is_not_kept_waiting_for_defaults():
    shown = subprocess.run(
        [sys.executable, "-m", "datassay"],
        capture_output=True, text=True,
        env={**os.environ, "_DATASSAY_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "datassay attack p.csv --"},
    )  # fmt: skip
    assert '"--k":"Neighbours of the k-NN model under attack."' in shown.stdout
    assert "{" not in shown.stdout


def test_bash_itself_completes(files, run):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    Path("datassay").write_text(f'#!/bin/sh\nexec {sys.executable} -m datassay "$@"\n')
    Path("datassay").chmod(0o755)
    script = run("--show-completion", "bash")[1]
    asked = 'COMP_WORDS=(datassay value cens); COMP_CWORD=2; _datassay_completion datassay; echo "${COMPREPLY[@]}"'
    done = subprocess.run(
        [bash, "--norc", "-c", f"{script}\n{asked}"], capture_output=True, text=True,
        env={**os.environ, "PATH": f"{files}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout.split() == ["census"]


def test_files_are_completed_within_folders(files):
    Path("more/deep").mkdir(parents=True)
    for name in ("more/a.csv", "more/b.PARQUET", "more/c.png", "more/.hidden.csv"):
        Path(name).touch()
    assert complete_file("more/") == ["more/a.csv", "more/b.PARQUET", "more/deep/"]
    assert complete_file("more/.h") == ["more/.hidden.csv"]
    assert complete_file("nowhere/x") == []
    assert complete_file(f"{files}/peo") == [f"{files}/people.csv"]
    assert complete_data("voter") == ["voters"]
