import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "datassay", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("datassay")


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
