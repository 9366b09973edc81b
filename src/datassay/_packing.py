"""A task in a folder, from which other processes of this machine map its arrays instead of reading them."""

import mmap
import os
import pickle
import shutil
import signal
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from datassay._crew import Task
from datassay._errors import UnavailableError, UsageError, first_line

ALIGNMENT = 64  # bytes: where arrays begin within the file
_owned: dict[Path, int] = {}
"""Folders of tasks, each with a file in it that is locked, and open by this number, while this process lives."""


def _new_folder() -> Path:
    """A folder for a task, marked as that of a process that is alive; those of processes that were killed are removed.

    A lock is the system's to release, however a process ends: no other has it then, whatever its number.
    """
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix="datassay-"))
    with suppress(ImportError, OSError):  # not every system has locks, nor every place: then there is no mark
        import fcntl

        _owned[folder] = os.open(folder / "owner.new", os.O_WRONLY | os.O_CREAT, 0o600)
        fcntl.flock(_owned[folder], fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.replace(folder / "owner.new", folder / "owner")  # it has its name when it is locked
    return folder


def _remove_abandoned() -> None:
    """Remove what processes of this user left that were killed before they could."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    for folder in Path(tempfile.gettempdir()).glob("datassay-*"):
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and (folder / "owner").is_file():
                with (folder / "owner").open("rb") as mark:
                    fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its process lives
                    shutil.rmtree(folder, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove the folder of a task."""
    shutil.rmtree(folder, ignore_errors=True)
    mark = _owned.pop(folder, None)
    if mark is not None:
        os.close(mark)


def pack(task: Task, what: str) -> Path:
    """Write a task to a folder of its own: the arrays as they are, to be mapped, and the rest."""
    import cloudpickle  # carries closures, and models defined in a notebook, which pickle does not

    buffers: list[pickle.PickleBuffer] = []
    try:
        packed = cloudpickle.dumps(task, protocol=5, buffer_callback=buffers.append)
    except Exception as error:
        raise UsageError(f"{what} cannot be sent to workers ({first_line(error)}); n_jobs=1 needs none") from None
    folder = _new_folder()
    try:
        places: list[tuple[int, int]] = []
        with (folder / "arrays").open("wb") as file:
            for buffer in buffers:
                file.seek(-(-file.tell() // ALIGNMENT) * ALIGNMENT)
                raw = buffer.raw()
                places.append((file.tell(), raw.nbytes))
                file.write(raw)
        (folder / "rest").write_bytes(pickle.dumps((places, packed)))
    except BaseException as error:
        remove(folder)
        if isinstance(error, OSError):
            raise UnavailableError(
                f"the data cannot be written to {str(folder.parent)!r}, from where workers would map them: "
                f"{error.strerror}"
            ) from None
        raise
    return folder


def _unpack(folder: str, writable: bool) -> Task:
    """The task of a folder, its arrays mapped, not read.

    Kernels were compiled for arrays that may be written to: these may, and what is written stays in this process.
    """
    places, packed = pickle.loads((Path(folder) / "rest").read_bytes())
    file = Path(folder) / "arrays"
    whole = memoryview(b"")
    if file.stat().st_size:
        with file.open("rb") as opened:
            access = mmap.ACCESS_COPY if writable else mmap.ACCESS_READ
            whole = memoryview(mmap.mmap(opened.fileno(), 0, access=access))
    buffers = [whole[start : start + size] if size else bytearray() for start, size in places]
    task: Task = pickle.loads(packed, buffers=buffers)
    return task


_unpacked: dict[str, Task] = {}


def call_packed(folder: str, writable: bool, *arguments: Any) -> Any:
    """Call a task, whose folder a worker looks into once."""
    task = _unpacked.get(folder)
    if task is None:
        with suppress(ValueError):  # ^C stops the caller, who then stops the workers
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        task = _unpack(folder, writable)
        _unpacked.clear()
        _unpacked[folder] = task
    return task(*arguments)
