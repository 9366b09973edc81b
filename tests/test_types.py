"""What mypy sees in a user's project: the README's code passes in strict mode, and every public name has a type."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import datassay as da

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
# scikit-learn ships no types.
SETTINGS = "[mypy]\nstrict = true\nshow_error_codes = true\n\n[mypy-sklearn.*]\nignore_missing_imports = true\n"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What mypy says, by file: of the README's code, and of every public name."""
    project = tmp_path_factory.mktemp("project")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    (project / "readme.py").write_text("\n".join(blocks), encoding="utf-8")
    (project / "names.py").write_text(
        "\n".join(["import datassay", *(f"reveal_type(datassay.{name})" for name in da.__all__)]), encoding="utf-8"
    )
    (project / "mypy.ini").write_text(SETTINGS, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", f"--cache-dir={ROOT / '.mypy_cache' / 'user'}", "--follow-imports=silent",
         "readme.py", "names.py"],
        cwd=project, env=os.environ | {"MYPYPATH": str(Path(da.__file__).parents[1])}, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout + run.stderr
    lines = run.stdout.splitlines()
    return {file: [line for line in lines if line.startswith(f"{file}:")] for file in ("readme.py", "names.py")}


def test_the_readme_passes_a_strict_type_checker(told):
    assert told["readme.py"] == []


def test_every_public_name_has_a_type(told):
    revealed = [re.search(r'Revealed type is "(.*)"$', line) for line in told["names.py"]]
    assert len(revealed) == len(da.__all__)
    assert all(revealed), told["names.py"]
    types = dict(zip(da.__all__, (found[1] for found in revealed), strict=True))
    assert [name for name, kind in types.items() if kind == "Any"] == []
    assert re.match(r"def \(table: .*label: str \| None =.*\) -> datassay\.report\.result\.Report", types["report"])
