"""Files that 0.1.0 saved are read as it read them (layered values: as an estimate, without their design).

``files-0.1.0`` holds a small file of every result that 0.1.0 could save, and ``manifest.json`` what was in each: its
class, settings, notes, and the numbers of ``to_frame`` and ``facts``. They were made by 0.1.0, and are not to be made
again.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import datassay as da
from frozen.cases import Case, agree

FOLDER = Path(__file__).with_name("files-0.1.0")
MANIFEST: dict[str, dict[str, Any]] = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
NOT_RESULTS = ("design.json", "market.ledger")
READABLE = [name for name in MANIFEST if name not in NOT_RESULTS]


def numbers(what: Any) -> dict[str, Any]:
    return Case(lambda: what, close=False).numbers()


@pytest.mark.parametrize("name", READABLE)
def test_a_result_saved_by_0_1_0_is_read_whole(name: str) -> None:
    old, new = MANIFEST[name], da.load_result(FOLDER / name)
    assert type(new).__name__ == old["class"]
    found = numbers(new)
    assert {key: found.get(key) for key in old["numbers"]} == old["numbers"]
    for field in ("notes", "seed", "version"):
        if old[field] is not None:
            kept = getattr(new, field)
            assert (list(kept) if field == "notes" else kept) == old[field]
    if old["parameters"] is not None:
        assert {key: new.parameters.get(key) for key in old["parameters"]} == old["parameters"]


@pytest.mark.parametrize("name", READABLE)
def test_what_0_1_0_saved_can_be_saved_and_read_again(name: str, tmp_path: Path) -> None:
    for ending in (".json", ".parquet"):
        again = da.load_result(da.load_result(FOLDER / name).save(tmp_path / f"again{ending}"))
        assert numbers(again) == numbers(da.load_result(FOLDER / name))


def test_a_design_saved_by_0_1_0_is_read_whole() -> None:
    d = da.load_design(FOLDER / "design.json")
    assert d == da.load_result(FOLDER / "design.json")
    found = {
        "facts": d.facts(),
        "sizes": d.sizes,
        "members": np.concatenate(d.members),
        "expected": d.expected,
        "repeats": d.repeats,
        "settings": [d.n, d.alpha, d.beta, d.c, d.seed],
        "bound": d.bound,
    }
    assert numbers(found) == MANIFEST["design.json"]["numbers"]


def test_a_ledger_kept_by_0_1_0_goes_on(tmp_path: Path) -> None:
    ledger = da.Ledger(shutil.copy(FOLDER / "market.ledger", tmp_path))
    lines = ledger.releases()
    found = {
        "facts": ledger.facts(),
        "spent": ledger.spent(),
        "remaining": ledger.remaining(),
        "releases": len(lines),
        "costs": [[c.noise, c.scale, c.sensitivity, c.count, c.sampling] for line in lines for c in line.costs],
    }
    old = MANIFEST["market.ledger"]["numbers"]
    new = numbers(found)
    assert old.keys() <= new.keys()
    # What was spent is the accountant's to say, and another version of it may round otherwise.
    assert not {key: (new[key], old[key]) for key in old if not agree(new[key], old[key])}


def test_every_old_file_is_in_the_manifest() -> None:
    assert {file.name for file in FOLDER.iterdir()} == MANIFEST.keys() | {"manifest.json"}
