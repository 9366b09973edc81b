"""Time datassay against its peers on the same arrays in one run; report ratios.

``make bench`` runs every suite; the peers' environment is built under bench/.peers when it is first needed (pyDVL wants
numpy < 2). A suite is a module bench_NAME.py with ``run(report)``. Its figures go to the terminal, to
bench/results/NAME.json, which is committed, and into the pages that cite them (see ``figures``).
"""

import datetime
import importlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ("datassay", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "duckdb", "torch", "triton")


def machine() -> str:
    """Processor, cores and Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor()
    cores = len(os.sched_getaffinity(0))
    return f"{processor}, {cores} cores, {platform.system()}, Python {platform.python_version()}"


def commit() -> str:
    """What was measured: the commit, with a + if files were changed since."""
    asked = ["git", "describe", "--always", "--dirty=+", "--abbrev=7", "--exclude=*"]
    return subprocess.run(asked, cwd=HERE, capture_output=True, text=True).stdout.strip() or "no commit"


def versions() -> dict[str, str]:
    """Of what computes."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def changes(before: list, after: list) -> list[str]:
    """Every figure that is more than a tenth off what it was."""
    old = {figure.name: figure.value for figure in before}
    return [
        f"  {figure.name}: {old[figure.name]:.4g} → {figure.value:.4g} {figure.unit}".rstrip()
        for figure in after
        if figure.name in old and abs(figure.value - old[figure.name]) > 0.1 * abs(old[figure.name])
    ]


def main() -> None:
    """Run the suites named on the command line, or all of them."""
    sys.path.insert(0, str(HERE))
    import common
    import figures

    names = [name.removeprefix("bench_") for name in sys.argv[1:]]
    names = names or sorted(file.stem.removeprefix("bench_") for file in HERE.glob("bench_*.py"))
    print(machine())
    if (load := os.getloadavg()[0]) > 0.25 * len(os.sched_getaffinity(0)):
        print(f"Others use this machine (load {load:.1f}): what is measured now takes longer than it would")
    failed = False
    for name in names:
        before, report = figures.load(name), common.Report()
        command = "make bench-gpu" if name == "gpu" else f"make bench SUITES={name}"
        suite = figures.Suite(
            command=command, machine=machine(), date=datetime.date.today().isoformat(),
            commit=commit(), load=round(os.getloadavg()[0], 2), versions=versions(), figures=report.figures,
        )  # fmt: skip
        importlib.import_module(f"bench_{name}").run(report)
        if not report.figures:
            continue
        suite.save(name)
        changed = changes(before.figures, report.figures) if before else []
        print("\n".join([f"{name}: changed by more than a tenth since {before.date}", *changed]) if changed else "")
        failed = failed or not all(figure.holds for figure in report.figures)
    wrong = figures.update_pages()
    print("\n".join(wrong))
    sys.exit(failed or bool(wrong))


if __name__ == "__main__":
    main()
