"""What the suites share: a report of figures, a stopwatch, and calls into the peers' environment."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from figures import Figure


class Report:
    """What a suite measures, printed as it comes."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []

    def __call__(
        self, name: str, what: str, value: float, unit: str = "", target: float | None = None, at_least: bool = True
    ) -> None:
        if any(figure.name == name for figure in self.figures):
            raise ValueError(f"there is a figure {name} already")
        self.figures.append(Figure(name, what, float(value), unit, target, at_least))
        print(self.figures[-1], flush=True)


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


def ask_peer(name: str, arrays: dict[str, np.ndarray], **options: int) -> tuple[float, np.ndarray]:
    """Run a function of peers.py on these arrays in the peers' environment; its seconds and its values."""
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder, "given.npz"), Path(folder, "answer.npz")
        np.savez(given, **arrays)
        command = [
            str(environment("peers")),
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
