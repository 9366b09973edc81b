"""What the suites share: a row of the report, a stopwatch, and calls into the peers' environment."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Row:
    """One measurement; ``target`` is what it must reach (None: reported only)."""

    what: str
    measured: float
    unit: str
    target: float | None = None
    at_least: bool = True

    @property
    def holds(self) -> bool:
        if self.target is None:
            return True
        return self.measured >= self.target if self.at_least else self.measured <= self.target

    def __str__(self) -> str:
        goal = ""
        if self.target is not None:
            sign = "≥" if self.at_least else "≤"
            goal = f"   (wanted {sign} {self.target:g}: {'yes' if self.holds else 'NO'})"
        return f"{self.what:<78} {self.measured:>12.4g} {self.unit}{goal}"


def stopwatch(call: Callable[[], object], repeats: int = 5) -> float:
    """The best of a few runs after one to warm up."""
    call()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def environment(name: str) -> Path:
    """The interpreter of a peer's own environment, bench/.NAME, built from bench/NAME.txt if need be."""
    here = Path(__file__).resolve().parent
    folder = here / f".{name}"
    ready, wanted = folder / ".ready", (here / f"{name}.txt").read_text()
    if not ready.exists() or ready.read_text() != wanted:
        print(f"building the environment of {name} …", flush=True)
        python = os.environ.get("PYTHON", sys.executable)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([*pip, "-r", str(here / f"{name}.txt")], check=True)
        ready.write_text(wanted)
    return folder / "bin" / "python"


def ask_peer(python: Path, name: str, arrays: dict[str, np.ndarray], **options: int) -> tuple[float, np.ndarray]:
    """Run a function of peers.py on these arrays in the peers' environment; its seconds and its values."""
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder, "given.npz"), Path(folder, "answer.npz")
        np.savez(given, **arrays)
        command = [
            str(python),
            "-W",
            "ignore",
            str(Path(__file__).with_name("peers.py")),
            name,
            str(given),
            str(answer),
        ]
        subprocess.run([*command, json.dumps(options)], check=True)
        with np.load(answer) as found:
            return float(found["seconds"]), found["values"]
