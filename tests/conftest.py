import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "datassay", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("datassay")

# Started in the background by a shell, ^C is ignored, and by all processes that tests start: tests of it need it heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


SLOW = tuple((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").split())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``make check`` leaves out: every test whose name begins with a line of slow.txt."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")


def _shared_data() -> Path | None:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("DATASSAY_DATA") or beside)
    return folder if (folder / "phoneme.parquet").is_file() else None


@pytest.fixture
def shared_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real data sets, made the one that load_dataset reads; the test is skipped without it."""
    folder = _shared_data()
    if folder is None:
        pytest.skip("needs the data sets of the published tables: set DATASSAY_DATA to their folder")
    monkeypatch.setenv("DATASSAY_DATA", str(folder))
    return folder
