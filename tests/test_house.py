"""Rules of the house: rooms import from rooms above them, the door is light, names are public where promised."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import datassay as da

SOURCE = Path(da.__file__).parent
ROOMS = (
    "results",
    "data",
    "neighbors",
    "value",
    "privacy",
    "attacks",
    "identity",
    "release",
    "market",
    "evaluate",
    "report",
    "reproduce",
    "cli",
)


def imported_rooms(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "datassay" and len(parts) > 1 and parts[1] in ROOMS:
                yield parts[1]


@pytest.mark.parametrize("file", sorted(SOURCE.glob("*/*.py")), ids=lambda f: f"{f.parent.name}/{f.name}")
def test_a_room_imports_only_from_rooms_above_it(file):
    room = file.parent.name
    assert room in ROOMS
    for other in imported_rooms(file):
        assert ROOMS.index(other) <= ROOMS.index(room), f"{room} imports {other}"


@pytest.mark.parametrize("file", sorted(SOURCE.glob("*/*.py")), ids=lambda f: f"{f.parent.name}/{f.name}")
def test_a_room_is_entered_by_its_door(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("datassay."):
            parts = node.module.split(".")
            assert parts[1] not in ROOMS or parts[1] == file.parent.name or len(parts) == 2, node.module


def test_the_oracle_imports_nothing_of_ours():
    assert "datassay" not in (SOURCE / "oracle.py").read_text().split('"""', 2)[2]


def modules_after(code):
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_importing_loads_nothing_heavy():
    heavy = {"numba", "scipy", "sklearn", "pyarrow", "duckdb", "pandas", "polars", "matplotlib", "narwhals", "numpy"}
    assert not heavy & modules_after("import datassay")


def test_asking_for_help_compiles_nothing():
    assert "numba" not in modules_after("import datassay.cli")


def test_every_public_name_is_there_and_documented():
    for name in da.__all__:
        thing = getattr(da, name)
        if callable(thing):
            assert thing.__doc__, name
    assert set(dir(da)) == set(da.__all__)
    with pytest.raises(AttributeError, match="attribute nothing"):
        da.nothing


def test_every_public_function_has_an_example_that_runs():
    import inspect

    for name in da.__all__:
        thing = getattr(da, name)
        if inspect.isfunction(thing):
            assert ">>>" in thing.__doc__, name


def test_types_are_shipped():
    assert (SOURCE / "py.typed").exists()
