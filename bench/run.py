"""Time datassay against its peers on the same arrays in one run; report ratios.

``make bench`` builds the peers' environment under bench/.peers the first time (pyDVL needs numpy < 2) and runs every
suite. A suite is a module bench_*.py with ``run(peers) -> list[Row]``. Results go to the terminal and to
bench/results/NAME.json.
"""

import importlib
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent


def machine() -> str:
    """Processor, cores and Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor()
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def main() -> None:
    """Run the suites named on the command line, or all of them."""
    sys.path.insert(0, str(HERE))
    import common

    names = sys.argv[1:] or sorted(file.stem for file in HERE.glob("bench_*.py"))
    # Plain torch is the peer on a card, and it is here.
    peers = HERE if names == ["bench_gpu"] else common.environment("peers")
    print(machine())
    failed = False
    (HERE / "results").mkdir(exist_ok=True)
    for name in names:
        rows = importlib.import_module(name).run(peers)
        (HERE / "results" / f"{name}.json").write_text(
            json.dumps({"machine": machine(), "rows": [asdict(row) for row in rows]}, indent=1)
        )
        failed = failed or not all(row.holds for row in rows)
    sys.exit(failed)


if __name__ == "__main__":
    main()
