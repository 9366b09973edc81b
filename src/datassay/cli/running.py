"""Who does the work of a command, and with how much memory."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datassay._errors import UsageError
from datassay.cli.command import Options, given, option

if TYPE_CHECKING:
    from datassay._work import Progress


def to_bytes(mebibytes: int | None) -> int | None:
    """MiB of the command line as the library counts memory."""
    return None if mebibytes is None else mebibytes * 2**20


@dataclass(frozen=True)
class Threads(Options):
    """How many threads do the work."""

    jobs: int = option("Threads; -1 for all cores.", "--jobs", "-j", default=-1)

    def __post_init__(self) -> None:
        if self.jobs != -1 and self.jobs < 1:
            raise UsageError(f"--jobs must be at least 1, or -1 for all cores; got {self.jobs}")

    def arguments(self, progress: "Progress") -> dict[str, Any]:
        """How to run, as functions take it; how much memory, only if it was said."""
        return {"n_jobs": self.jobs, "progress": progress} | given(memory=getattr(self, "memory", None))


@dataclass(frozen=True)
class Blocks(Threads):
    """How many threads do the work, in blocks of which size."""

    memory: int | None = option("MiB to use for blocks of distances ({knn_shapley.memory}).", min=1, callback=to_bytes)


@dataclass(frozen=True)
class Cluster(Threads):
    """Threads or a Dask cluster, and where what is done is kept."""

    dask: str | None = option(
        "Run on the Dask cluster with its scheduler here, such as tcp://HOST:8786.", metavar="ADDRESS"
    )
    checkpoint: Path | None = option(
        "Keep what is done in this folder; a run that was stopped goes on from it.", metavar="FOLDER"
    )

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let the Dask cluster do what is done meanwhile, if one was named."""
        if self.dask is None:
            yield
            return
        import joblib

        from datassay._cluster import connect

        with connect(self.dask) as client, joblib.parallel_config(backend="dask", client=client):
            yield

    def folder(self, part: str) -> Path | None:
        """Where a command that calculates several things keeps one of them."""
        if self.checkpoint is None:
            return None
        try:
            self.checkpoint.mkdir(exist_ok=True)
        except OSError as error:
            raise UsageError(f"no checkpoint can be kept in {str(self.checkpoint)!r}: {error.strerror}") from None
        return self.checkpoint / part


@dataclass(frozen=True)
class Devices(Cluster):
    """Threads, a Dask cluster or a graphics card."""

    device: str | None = option(
        "Where the neighbours are found: cuda (a graphics card) or cpu, by torch; without it, here."
    )
    memory: int | None = option(
        "MiB to use for blocks of distances ({knn_shapley.memory}, or with --device what is free there).",
        min=1,
        callback=to_bytes,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dask is not None and self.device is not None:
            raise UsageError("--dask and --device are two answers to who does the work; give one of them")


@contextmanager
def nothing_printed() -> Iterator[None]:
    """Keep standard output for what the command says: scipy's solver (HiGHS) prints there, whatever it is asked.

    It does so beneath Python, hence the file descriptors.
    """
    import ctypes

    try:
        sys.stdout.flush()
        kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    except (OSError, ValueError):  # it is closed
        yield
        return
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        with suppress(Exception):  # what C still holds back would come out later
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
