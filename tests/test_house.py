"""Rules of the house, read from its source: who may import whom, by which door, and how large things may grow.

The house is a graph: an edge is an import, wherever it stands (at the top of a module, inside a function, for types alone)
and however it is written (a string handed to ``import_module`` counts). A name that comes through a door, such as
``from datassay.data import prepare``, leads to the module in which the door's stub says that it lives.

Where a number is not yet what it should be, the rule is that it does not rise, and the target stands beside it.
"""

import ast
import inspect
import os
import pydoc
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import datassay as da

SOURCE = Path(da.__file__).parent
# A room imports only from rooms above it. The base is what stands beside the rooms: errors, checks, how work is run.
ROOMS = (
    "base", "results", "data", "neighbors", "value", "privacy", "attacks", "identity", "release", "market", "evaluate",
    "report", "reproduce", "cli",
)  # fmt: skip
# These are in no order: the package's own door, by which a result finds its class, and the definitions.
APART = ("top", "oracle")

MOST_EDGES = 78  # between rooms, the package's own door among them
MOST_LONG_MODULES = 2  # of more than 600 lines
MOST_WIDE_FUNCTIONS = 2  # of more than 8 parameters, those aside that people call and kernels
MOST_LINES = 36_110  # of Python, stubs included; 36,000 without them


class Edge(NamedTuple):
    """One name that a module imports, and from where: ``name`` is "" for a module as a whole."""

    source: str
    target: str
    name: str


@cache
def trees():
    """The syntax tree of every module, by its full name; that of a door is its stub, where it has one."""
    files = {}
    for file in sorted(SOURCE.rglob("*.py*")):
        if file.suffix in (".py", ".pyi"):  # a stub comes after its module, and takes its place
            parts = ("datassay", *file.relative_to(SOURCE).with_suffix("").parts)
            files[".".join(parts).removesuffix(".__init__")] = file
    return {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in files.items()}


@cache
def home_of(door):
    """Where each name of a door lives."""
    found = {}
    for node in ast.walk(trees()[door]):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                found[alias.name] = f"{door}.{node.module}" if node.module else f"{door}.{alias.name}"
        elif isinstance(node, ast.ImportFrom) and node.module.startswith(f"{door}."):
            found |= {alias.name: node.module for alias in node.names}
    return found


def room_of(module):
    """The room that a module belongs to."""
    _, first, *_ = *module.split("."), ""
    return "cli" if first == "__main__" else "base" if first.startswith("_") else first or "top"


def edges_of(module):
    """Every import of ours that a module makes, whenever it is made."""
    for node in ast.walk(trees()[module]):
        if isinstance(node, ast.Import):
            names = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [(node.module, alias.name) for alias in node.names]
        else:
            continue
        for target, name in names:
            if target.split(".")[0] == "datassay":
                yield Edge(module, *resolved(target, name))


def resolved(target, name):
    """The module that an import ends in: a name may be a module itself, or come through a door."""
    if f"{target}.{name}" in trees():
        return f"{target}.{name}", ""
    return home_of(target).get(name, target) if is_door(target) else target, name


@cache
def is_door(module):
    """Whether a module is a package: others stand behind it."""
    return any(other.startswith(f"{module}.") for other in trees())


@cache
def edges():
    """All edges but those of the doors to the modules behind them, which are loaded when a name is asked for."""
    every = {edge for module in trees() for edge in edges_of(module)}
    return sorted(edge for edge in every if not edge.target.startswith(f"{edge.source}."))


def strings_of(module):
    """Strings that name a module or a thing of ours, docstrings aside."""
    tree = trees()[module]
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    room = re.compile(rf"datassay\.({'|'.join(ROOMS)})\b")
    return [node.value for node in strings if id(node) not in prose and room.match(node.value)]


def names_in(node):
    """What a name, an attribute or an import names, under whatever name it is imported."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {getattr(node, "module", None), *(alias.name.split(".")[0] for alias in node.names)}
    return {node.id if isinstance(node, ast.Name) else node.attr}


# ------------------------------------------------------------------------------------------------------------- rooms


def test_only_doors_import_by_a_relative_path():
    """So that an edge is seen for what it is: ``from ..privacy import x`` would count for nothing here."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), file


def test_no_merge_was_left_half_done():
    marks = re.compile(r"^\s*(<{7}|>{7}) ", re.MULTILINE)
    root = Path(__file__).parents[1]
    for pattern in ("src/**/*.py", "src/**/*.pyi", "tests/**/*.py", "docs/**/*.md", "*.md"):
        for file in root.glob(pattern):
            assert not marks.search(file.read_text(encoding="utf-8")), file


def test_every_room_has_its_place():
    assert {room_of(module) for module in trees()} == {*ROOMS, *APART}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_rooms_above_it(room):
    for edge in edges():
        other = room_of(edge.target)
        if room_of(edge.source) == room and other in ROOMS:
            assert ROOMS.index(other) <= ROOMS.index(room), edge


def test_a_room_is_entered_by_its_door():
    for module in trees():
        for node in ast.walk(trees()[module]):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module.startswith("datassay."):
                room = room_of(node.module)
                by_door = room in ("base", room_of(module)) or node.module.count(".") == 1
                assert by_door, f"{module}: {node.module}"


def test_no_room_is_reached_by_a_string():
    for module in trees():
        for string in strings_of(module):
            assert room_of(string) == room_of(module), f"{module}: {string!r}"


def test_modules_are_loaded_by_a_computed_name_in_one_place():
    """The command line loads the command that was called; everything else is imported in the open."""
    computing = {"import_module", "__import__", "importlib", "pkgutil", "resolve_name", "runpy"}
    found = {
        module
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute | ast.Import | ast.ImportFrom) and computing & names_in(node)
    }
    assert found <= {"datassay.cli", "datassay.results.frames"}  # a frame needs the library it is of


def test_rooms_know_few_others():
    pairs = {(room_of(edge.source), room_of(edge.target)) for edge in edges()}
    pairs |= {("top", room_of(home)) for home in home_of("datassay").values()}
    assert len({(room, other) for room, other in pairs if room != other}) <= MOST_EDGES


def test_modules_are_tied_into_no_knots():
    """No module imports another that imports it back, through however many, lazily or for types."""
    ahead = {}
    for edge in edges():
        ahead.setdefault(edge.source, set()).add(edge.target)

    @cache
    def reached(module):
        seen, waiting = set(), [module]
        while waiting:
            for following in ahead.get(waiting.pop(), set()) - seen:
                seen.add(following)
                waiting.append(following)
        return seen

    assert not [module for module in ahead if module in reached(module)]


def test_a_name_with_an_underscore_stays_in_its_module():
    for module, tree in trees().items():
        modules = set()
        for edge in edges_of(module):
            assert edge.name.startswith("__") or not edge.name.startswith("_"), edge
            modules |= {edge.target.split(".")[-1]} if not edge.name else set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                assert node.attr.startswith("__") or not node.attr.startswith("_"), f"{module}: {node.attr}"


def test_the_oracle_imports_nothing_of_ours():
    assert not [edge for edge in edges() if edge.source == "datassay.oracle"]


# -------------------------------------------------------------------------------------------------------------- sizes


def lines_of(file):
    return len(file.read_text(encoding="utf-8").splitlines())


def test_few_modules_are_long():
    assert sum(lines_of(file) > 600 for file in SOURCE.rglob("*.py")) <= MOST_LONG_MODULES


def test_the_house_does_not_grow():
    assert sum(lines_of(file) for file in SOURCE.rglob("*.py*") if file.suffix in (".py", ".pyi")) <= MOST_LINES


def test_few_functions_take_many_parameters():
    wide = []
    for module, tree in trees().items():
        if module.split(".")[-1].endswith("kernels") or room_of(module) in ("oracle", "cli"):
            continue  # arrays and numbers, or one parameter an option
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name not in da.__all__:
                names = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                if len([name for name in names if name.arg not in ("self", "cls")]) > 8:
                    wide.append(f"{module}.{node.name}")
    assert len(wide) <= MOST_WIDE_FUNCTIONS, wide


# -------------------------------------------------------------------------------------------------------- what loads


def modules_after(code):
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split("\n")[-2].split())


def test_importing_loads_nothing_heavy():
    heavy = {"numba", "scipy", "sklearn", "pyarrow", "duckdb", "pandas", "polars", "matplotlib", "narwhals", "numpy"}
    assert not heavy & modules_after("import datassay")


def test_everything_can_be_loaded_at_once():
    """As lazy-loader does where EAGER_IMPORT is set: every name is there, in whatever order modules come."""
    run = [sys.executable, "-c", "import datassay"]
    assert not subprocess.run(run, env=os.environ | {"EAGER_IMPORT": "1"}, capture_output=True).stderr


def test_asking_for_help_compiles_nothing():
    assert "numba" not in modules_after("import datassay.cli")


def test_valuing_a_file_loads_a_third_of_the_house(tmp_path):
    people = tmp_path / "people.csv"
    da.census(60).to_frame("pandas").to_csv(people, index=False)
    call = ["datassay", "value", str(people), "--label", "income", "--split", "0.5"]
    code = f"import sys; sys.argv = {call}\nfrom datassay.cli import main\ntry: main()\nexcept SystemExit: pass"
    ours = {name for name in modules_after(code) if name.split(".")[0] == "datassay"}
    assert "datassay.value.knn" in ours
    assert len(ours) <= 45, sorted(ours)


# ------------------------------------------------------------------------------------------------------ public names


def test_public_names_are_listed_once():
    """In the stub of the package, and in that of each room: a door has no other list of them."""
    imported = [alias.asname for node in trees()["datassay"].body for alias in node.names]
    assert sorted(imported) == sorted([*da.__all__, "report"])  # which is a room, and the function of that name
    for door in SOURCE.rglob("__init__.py"):
        assert "__all__ = [" not in door.read_text(encoding="utf-8"), door


def test_every_public_name_is_there_and_documented():
    for name in da.__all__:
        thing = getattr(da, name)
        if callable(thing):
            assert thing.__doc__, name
    assert set(dir(da)) == set(da.__all__)
    with pytest.raises(AttributeError, match="attribute nothing"):
        da.nothing


def test_every_public_function_has_an_example_that_runs():
    for name in da.__all__:
        thing = getattr(da, name)
        if inspect.isfunction(thing):
            assert ">>>" in thing.__doc__, name


def test_the_report_is_a_room_that_can_be_called():
    assert inspect.ismodule(da.report)
    assert list(inspect.signature(da.report).parameters)[:2] == ["table", "label"]
    assert inspect.getdoc(da.report) == inspect.getdoc(da.report.report)
    assert "report(table:" in "".join(pydoc.plain(pydoc.render_doc(da.report)).split())


def test_types_are_shipped():
    assert (SOURCE / "py.typed").exists()
