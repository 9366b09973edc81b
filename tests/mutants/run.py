"""Do the tests bite? Change the code in one place, at random, and see whether a test of its room notices.

``make mutants`` draws mutants by seed from what computes: an operator, a comparison, a constant, a condition turned
round. A room's tests are collected once, in one process. Each mutant is a fork of it in which the code of one function
is replaced (a kernel is compiled again, and so are those that call it), and in which the tests run that call this
function, the quickest first, until one fails. So a mutant costs seconds: no tool of the kind forks after collection,
or knows about compiled kernels. Values frozen in 0.1.0 (tests/test_frozen.py) are left out: they would notice
everything, and show nothing.

``equal.toml`` says of each mutant known to survive why no test could notice. Mutants are known by their text, not by
their line. Any other survivor is printed and makes the command fail.
"""

import argparse
import ast
import gc
import inspect
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "datassay"
KEPT = ROOT / ".mutants"  # what each test calls, and which mutants have been tried
EQUAL = Path(__file__).with_name("equal.toml")
ROOMS = ("value", "neighbors", "privacy", "attacks", "identity", "release", "market", "evaluate")
ALSO = {  # tests beyond a room's own
    "neighbors": ["tests/value/test_values_exact.py", "tests/data/test_records.py"],
    "privacy": ["tests/value/test_layered.py"],
}
# Modules and functions that draw, speak, or run on a card.
NOT_FILES = re.compile(r"figures|triton|device|workers|__init__|fingerprint")
NOT_FUNCTIONS = re.compile(r"__repr__|__str__|_repr_html_|summary|plot|describe|_note|warning|progress|check_")
LONGEST = 5.0  # seconds of processor time of a test that is still asked


@dataclass(frozen=True)
class Place:
    """Where something can be changed: which node of a function's body, counted from 0, and in which of its ways."""

    file: str
    function: str
    node: int
    change: int


@dataclass(frozen=True)
class Mutant:
    """One change: where, what the statement around it was and became, and the changed module."""

    file: str
    line: int
    function: str
    was: str
    became: str
    module: ast.Module

    @property
    def key(self) -> str:
        """By what it is known: text alone."""
        return f"{self.function}: {self.was} -> {self.became}"


# --- making mutants ---------------------------------------------------------------------------------------------------

SWAPS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd, ast.MatMult: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def _changes(node: ast.AST) -> Iterator[Callable[[], None]]:
    """Ways to change a node in place."""
    match node:
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp() if type(node.op) in SWAPS:
            yield lambda: setattr(node, "op", SWAPS[type(node.op)]())
        case ast.Compare():
            for i, op in enumerate(node.ops):
                yield lambda i=i, op=op: node.ops.__setitem__(i, SWAPS[type(op)]())  # type: ignore[misc]
        case ast.Constant() if isinstance(node.value, bool):
            yield lambda: setattr(node, "value", not node.value)
        case ast.Constant() if isinstance(node.value, int | float):
            yield lambda: setattr(node, "value", node.value + 1)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield lambda: setattr(node, "op", ast.UAdd() if isinstance(node.op, ast.USub) else None)
        case ast.If() | ast.While() | ast.IfExp():
            yield lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
        case ast.Break() | ast.Continue():
            yield lambda: setattr(node, "__class__", ast.Continue if isinstance(node, ast.Break) else ast.Break)


def _inner(node: ast.AST) -> Iterator[ast.AST]:
    """What is inside a function's body and computes: no docstrings, types, messages."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "args"):
            if name == "args" and isinstance(value, list):  # of a call
                for one in value:
                    yield from _walk(one)
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST):
                yield from _walk(one)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("warn", "cast", "join"):
        return
    yield node
    yield from _inner(node)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions of a module and methods of its classes, by qualified name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _statement(function: ast.FunctionDef, target: ast.AST) -> ast.AST:
    """The innermost statement around a node."""
    found: ast.AST = function
    while True:
        inside = [
            one
            for one in ast.walk(found)
            if isinstance(one, ast.stmt) and one is not found and any(inner is target for inner in ast.walk(one))
        ]
        if not inside:
            return found
        found = inside[0]


def _text(node: ast.AST) -> str:
    """A statement as one line; of one with a body its head alone."""
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    lines = ast.unparse(node).splitlines()
    return lines[0] if hasattr(node, "body") else " ".join(line.strip() for line in lines)


def places(file: Path) -> list[Place]:
    """Where a file can be changed."""
    return [
        Place(str(file.relative_to(SOURCE)), name, i, j)
        for name, function in _functions(ast.parse(file.read_text(encoding="utf-8")))
        if not NOT_FUNCTIONS.search(name)
        for i, node in enumerate(_nodes(function))
        for j, _ in enumerate(_changes(node))
    ]


def _nodes(function: ast.FunctionDef) -> list[ast.AST]:
    return [node for statement in function.body for node in _walk(statement)]


def make(place: Place) -> Mutant:
    """Change the code there."""
    module = ast.parse((SOURCE / place.file).read_text(encoding="utf-8"))
    function = dict(_functions(module))[place.function]
    node = _nodes(function)[place.node]
    around = _statement(function, node)
    was = _text(around)
    list(_changes(node))[place.change]()
    if isinstance(node, ast.UnaryOp) and node.op is None:  # ``not`` is gone
        _replace(function, node, node.operand)
    return Mutant(place.file, getattr(node, "lineno", function.lineno), place.function, was, _text(around), module)


def _replace(root: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for node in ast.walk(root):
        for name, value in ast.iter_fields(node):
            if value is old:
                setattr(node, name, new)
            elif isinstance(value, list):
                setattr(node, name, [new if one is old else one for one in value])


# --- running tests ----------------------------------------------------------------------------------------------------


class Loop:
    """A pytest plugin that runs the collected tests once for each mutant, in a fork."""

    def __init__(self, room: str, tried: list[Place]) -> None:
        self.room, self.tried = room, tried
        self.results = KEPT / f"{room}.results.jsonl"

    def pytest_sessionstart(self) -> None:
        """A failing example is not made small: that it fails is enough."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.get_profile("datassay"), phases=phases)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: Any) -> bool:
        """Instead of running the tests."""
        self.items = {item.nodeid: item for item in session.items}
        for file in sorted((SOURCE / self.room).rglob("*.py")):
            if not re.search(r"triton|__main__", file.name):
                __import__(".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"))
        calls = self.recorded()
        done = {one["key"] for one in _lines(self.results) if one["ending"] in ("killed", "timeout")} | equal()
        with self.results.open("a", encoding="utf-8") as log:
            for place in self.tried:
                mutant = make(place)
                if mutant.was == mutant.became or mutant.key in done:
                    continue
                started = time.perf_counter()
                ending, by, asked = self.ask(mutant, calls)
                row = {"key": mutant.key, "file": mutant.file, "line": mutant.line, "ending": ending, "by": by}
                row |= {"asked": asked, "seconds": round(time.perf_counter() - started, 1)}
                log.write(json.dumps(row) + "\n")
                log.flush()
        return True

    # what each test calls

    def recorded(self) -> dict[str, dict[str, Any]]:
        """Of each test, seconds of processor time and the functions called; a test that has not changed is not asked again."""
        kept = KEPT / f"{self.room}.calls.jsonl"
        known = {one["test"]: one for one in _lines(kept)}
        missing = [item for name, item in self.items.items() if known.get(name, {}).get("stamp") != _stamp(item)]
        with kept.open("a", encoding="utf-8") as log:
            by_file: dict[str, list[Any]] = {}
            for item in missing:
                by_file.setdefault(str(item.path), []).append(item)
            for items in by_file.values():
                self.fork(lambda items=items: self._record(items, log.fileno()), 3600)  # type: ignore[misc]
        return {one["test"]: one for one in _lines(kept) if one["test"] in self.items}

    def _record(self, items: list[Any], log: int) -> int:
        prefix = str(SOURCE)
        called: set[tuple[str, str]] = set()

        def trace(frame: FrameType, event: str, _: object) -> None:
            code = frame.f_code
            if code.co_filename.startswith(prefix):
                called.add((code.co_filename[len(prefix) + 1 :], code.co_qualname.split(".<locals>")[0]))

        for i, item in enumerate(items):
            called.clear()
            before = _processor_time()
            threading.settrace(trace)
            sys.settrace(trace)
            signal.signal(signal.SIGPROF, _too_long)
            signal.setitimer(signal.ITIMER_PROF, 2 * LONGEST)  # tracing takes time too
            passes = _passes(items, i)
            signal.setitimer(signal.ITIMER_PROF, 0)
            sys.settrace(None)
            row = {
                "test": item.nodeid, "stamp": _stamp(item), "seconds": round(_processor_time() - before, 3),
                "passes": passes, "calls": sorted(map(":".join, called)),
            }  # fmt: skip
            os.write(log, (json.dumps(row) + "\n").encode())
        return 0

    # a mutant

    def ask(self, mutant: Mutant, calls: dict[str, dict[str, Any]]) -> tuple[str, str, int]:
        """How a mutant ends, and by which test."""
        functions = _running(mutant)
        if not functions:
            return "not found", "", 0
        callers = {f"{mutant.file}:{mutant.function}"}
        touched = _kernels_calling(functions)
        if touched:
            callers |= _named_in(touched)
        near = Path(mutant.file).stem
        chosen = [
            one for one in calls.values()
            if one["passes"] and one["seconds"] < 2 * LONGEST and callers & set(one["calls"])
        ]  # fmt: skip
        chosen.sort(key=lambda one: (round(one["seconds"] * 2), near not in one["test"], one["seconds"]))
        if not chosen:
            return "not called", "", 0
        seconds = sum(one["seconds"] for one in chosen)
        read, write = os.pipe()

        def run() -> int:
            if not _patch(mutant, functions, touched):
                return 3
            items = [self.items[one["test"]] for one in chosen]
            for i in range(len(items)):
                os.write(write, b"%d\n" % i)
                if not _passes(items, i):
                    return 1
            return 0

        code = self.fork(run, 20 + 5 * seconds)
        os.close(write)
        with os.fdopen(read) as pipe:
            last = pipe.read().split()
        by = chosen[int(last[-1])]["test"] if last else ""
        ending = {0: "survived", 1: "killed", 3: "not made"}.get(code, "timeout")
        return ending, by if ending in ("killed", "timeout") else "", len(chosen)

    def fork(self, work: Callable[[], int], seconds: float) -> int:
        """Do something in a child that may take so much processor time; its exit code."""
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
                resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
                code = work()
            except BaseException:
                code = 1
            finally:
                os._exit(code)
        status = _wait(child, seconds * 20)
        with suppress(ProcessLookupError, PermissionError):  # what it has started
            os.killpg(child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(status)


class TooLong(BaseException):
    """A test takes longer than is worth while."""


def _too_long(signum: int, frame: FrameType | None) -> None:
    raise TooLong


def _passes(items: list[Any], i: int) -> bool:
    """Run one of several tests."""
    from _pytest.runner import runtestprotocol

    after = items[i + 1] if i + 1 < len(items) else None
    return not any(report.failed for report in runtestprotocol(items[i], log=False, nextitem=after))


def _wait(child: int, seconds: float) -> int:
    """Wait for a child, and end one that sleeps for ever."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1]
        time.sleep(0.02)


def _processor_time() -> float:
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def _stamp(item: Any) -> str:
    """What changes when a test does."""
    test = getattr(item, "function", None)
    return str(Path(item.path).stat().st_size) if test is None else f"{zlib.crc32(inspect.getsource(test).encode()):x}"


def _lines(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _running(mutant: Mutant) -> list[FunctionType]:
    """The functions in this process whose code the mutant changes."""
    file = str(SOURCE / mutant.file)
    return [
        one for one in gc.get_objects()
        if type(one) is FunctionType and one.__code__.co_filename == file
        and one.__code__.co_qualname == mutant.function
    ]  # fmt: skip


def _dispatchers() -> list[Any]:
    from numba.core.dispatcher import Dispatcher

    return [one for one in gc.get_objects() if issubclass(type(one), Dispatcher) and hasattr(one, "py_func")]


def _kernels_calling(functions: list[FunctionType]) -> list[Any]:
    """The kernels made of these functions, and those that call them."""
    every = _dispatchers()
    found = [one for one in every if one.py_func in functions]
    names = {one.py_func.__name__ for one in found}
    while True:
        more = [
            one for one in every
            if one not in found and any(names & set(code.co_names) for code in _codes(one.py_func.__code__))
        ]  # fmt: skip
        if not more or not found:
            return found
        found += more
        names |= {one.py_func.__name__ for one in more}


def _named_in(kernels: list[Any]) -> set[str]:
    """The functions of the package that name one of these kernels, or spell its name: who calls them cannot be traced."""
    names = {one.py_func.__name__ for one in kernels}
    prefix = str(SOURCE)
    return {
        f"{one.__code__.co_filename[len(prefix) + 1 :]}:{one.__code__.co_qualname.split('.<locals>')[0]}"
        for one in gc.get_objects()
        if type(one) is FunctionType and one.__code__.co_filename.startswith(prefix)
        and any(names & {*code.co_names, *code.co_consts} for code in _codes(one.__code__))
    }  # fmt: skip


def _patch(mutant: Mutant, functions: list[FunctionType], kernels: list[Any]) -> bool:
    """Put the mutant's code in the place of the original's; kernels are compiled again when they are called."""
    from numba.core.caching import NullCache

    module = compile(ast.fix_missing_locations(mutant.module), str(SOURCE / mutant.file), "exec")
    new = next(code for code in _codes(module) if code.co_qualname == mutant.function)
    for kernel in kernels:
        kernel._cache = NullCache()
        kernel._make_finalizer()()
        kernel._reset_overloads()
    try:
        for function in functions:
            function.__code__ = new
    except ValueError:  # it sees other variables around it than before
        return False
    return True


# --- the command ------------------------------------------------------------------------------------------------------


def draw(count: int, seed: int) -> list[Place]:
    """So many places to change, of all rooms, by seed."""
    files = [
        file for room in ROOMS for file in sorted((SOURCE / room).rglob("*.py")) if not NOT_FILES.search(file.name)
    ]
    every = [place for file in files for place in places(file)]
    return random.Random(seed).sample(every, min(count, len(every)))


def run_room(room: str, tried: list[Place], quick: bool, tests: list[str] | None) -> None:
    """Try these mutants of a room, in this process."""
    import pytest

    own = ["tests/" + room, f"src/datassay/{room}", *ALSO.get(room, ())]
    asked = [str(ROOT / test) for test in tests or own] + (["-m", "not slow"] if quick else [])
    quiet = f"-q -p no:cacheprovider -p no:xdist --timeout=120 --rootdir {ROOT} -c {ROOT / 'pyproject.toml'}".split()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        code = pytest.main([*asked, *quiet, f"--basetemp={folder}/tests"], plugins=[Loop(room, tried)])
        sys.exit(code if code > pytest.ExitCode.TESTS_FAILED else 0)


def main() -> None:
    """Try mutants room by room and say who survived."""
    KEPT.mkdir(exist_ok=True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", action="append", help="one of them only", choices=ROOMS)
    parser.add_argument("--match", default="", help="only mutants whose file:function has this in it, all of them")
    parser.add_argument("--change", default="", help="of those, the ones whose «was -> became» has this in it")
    parser.add_argument(
        "--quick", action="store_true", help="without slow tests: a run without it asks survivors again"
    )
    parser.add_argument("--test", action="append", help="these tests alone, such as tests/value/test_tknn.py::test_it")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.match:
        chosen = [place for place in draw(10**9, 0) if asked.match in f"{place.file}:{place.function}"]
        chosen = [place for place in chosen if asked.change in make(place).key]
    else:
        chosen = draw(asked.count, asked.seed)
    rooms = [room for room in asked.room or ROOMS if any(place.file.split("/")[0] == room for place in chosen)]
    if asked.here:
        run_room(rooms[-1], [one for one in chosen if one.file.split("/")[0] == rooms[-1]], asked.quick, asked.test)
        return
    for room in rooms:
        print(f"{room} …", flush=True)
        command = [sys.executable, __file__, "--here", *sys.argv[1:], f"--room={room}"]
        with (KEPT / f"{room}.log").open("w") as log:
            path = os.environ | {"PYTHONPATH": str(SOURCE.parent)}
            if subprocess.run(command, env=path, stdout=log).returncode:
                sys.exit(f"the tests of {room} could not be run: see {log.name}")
    sys.exit(tell(chosen, rooms))


def equal() -> set[str]:
    """The mutants that no test could notice, by key."""
    known = tomllib.loads(EQUAL.read_text(encoding="utf-8"))["equal"]
    return {f"{one['function']}: {one['was']} -> {one['became']}" for one in known}


def tell(chosen: list[Place], rooms: list[str]) -> int:
    """Count how mutants ended and print those that survived without a reason: 1 if there are any."""
    ended = {one["key"]: one["ending"] for room in ROOMS for one in _lines(KEPT / f"{room}.results.jsonl")}
    ended |= dict.fromkeys(equal(), "equal")
    counts: dict[str, int] = {}
    for mutant in (make(place) for place in chosen if place.file.split("/")[0] in rooms):
        ending = ended.get(mutant.key)
        if ending is None:
            continue
        counts[ending] = counts.get(ending, 0) + 1
        if ending in ("survived", "not called"):
            print(f"{ending}: {mutant.file}:{mutant.line} in {mutant.function}\n  {mutant.was}\n  {mutant.became}")
    print(", ".join(f"{number} {ending}" for ending, number in sorted(counts.items())) or "no mutants were tried")
    return int(bool(counts.keys() & {"survived", "not called"}))


if __name__ == "__main__":
    main()
