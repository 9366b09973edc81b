"""Stop and resume: what a long run has done is kept in a folder, and the next run that is given it goes on from there.

A file is written under another name, brought to the disk, and only then given its own: at whatever moment a run is
killed, every file is whole. Work is done and kept in order, so what is there is a beginning, and a run that goes on
ends with the same bits as one that was never stopped. A folder belongs to one calculation: its data, method and
parameters, and the version of datassay; any other is refused.
"""

import errno
import hashlib
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import CheckpointError, InputError, UnavailableError, UsageError
from datassay._version import __version__

Arrays = tuple[NDArray[Any], ...]
Plain = str | int | float | bool | None

EVERY: Final = 1.0  # seconds between two files, at least
SHARE: Final = 0.05  # of the time may go into writing them
SLACK: Final = 0.01  # of the time so far may be lost, so that a long run does not end as ten thousand files
A_MOMENT: Final = 0.5  # seconds, in which another run has begun


def digest(*parts: object) -> str:
    """A digest of arrays, dataclasses and plain values by content.

    >>> digest(np.arange(3)) == digest(np.array([0, 1, 2])), digest(np.arange(3)) == digest(np.arange(3.0))
    (True, False)
    """
    found = hashlib.sha256()

    def put(part: object) -> None:
        if isinstance(part, np.ndarray):
            plain = np.ascontiguousarray(part if part.dtype != object else part.astype(np.str_))
            found.update(f"[{plain.dtype.str}{plain.shape}".encode())
            if plain.size:
                found.update(plain.reshape(-1).view(np.uint8).data)
        elif is_dataclass(part) and not isinstance(part, type):
            found.update(f"<{type(part).__name__}".encode())
            put_all(value for one in fields(part) for value in (one.name, getattr(part, one.name)))
        elif isinstance(part, Mapping):
            found.update(f"{{{len(part)}".encode())
            put_all(chain.from_iterable(part.items()))
        elif isinstance(part, tuple | list):
            found.update(f"({len(part)}".encode())
            put_all(part)
        else:
            found.update(repr(part).encode())
        found.update(b"|")

    def put_all(several: Iterable[object]) -> None:
        for one in several:
            put(one)

    put_all(parts)
    return found.hexdigest()


class Checkpoint:
    """The folder of one calculation. Its passes are kept one by one, in the order in which they come."""

    def __init__(self, folder: object, method: str, parameters: Mapping[str, Plain], data: str) -> None:
        if not isinstance(folder, str | os.PathLike):
            raise UsageError(f"checkpoint must be the name of a folder, got {folder!r}")
        self.folder = Path(folder)
        self._passes = 0
        about = {"kind": "checkpoint", "version": __version__}
        own = {"datassay": about, "method": method, "parameters": dict(sorted(parameters.items())), "data": data}
        own = json.loads(json.dumps(own))  # as it will be read
        self.key = digest(own)
        try:
            self.folder.mkdir(exist_ok=True)
        except FileNotFoundError:
            above = str(self.folder.parent)
            raise UsageError(f"the folder {above!r}, where the checkpoint would be, does not exist") from None
        except (FileExistsError, NotADirectoryError):
            raise UsageError(f"checkpoint must be a folder, and {str(folder)!r} is a file") from None
        except OSError as error:
            raise self._cannot(error) from None
        if not self._is_there(own):
            self._claim(own)

    def _claim(self, own: Mapping[str, Any]) -> None:
        """Make the folder that of this calculation; who begins at the same time finds what the first one wrote."""
        try:
            with self._alone():
                if not self._is_there(own):
                    self.write("checkpoint.json", lambda out: out.write(json.dumps(own, indent=1).encode()))
        except UnavailableError:
            time.sleep(A_MOMENT)
            if not self._is_there(own):
                raise

    def _is_there(self, own: Mapping[str, Any]) -> bool:
        """Whether the folder is that of this calculation already; refuses one that is anything else."""
        file = self.folder / "checkpoint.json"
        try:
            if not file.exists():
                others = sorted(one.name for one in self.folder.iterdir() if not one.name.startswith("."))
                if not others:
                    return False
                found = _checks.listed(others)
                raise UsageError(f"{str(self.folder)!r} holds {found} and no checkpoint; give a new folder")
            there = json.loads(file.read_text(encoding="utf-8"))
            about = there["datassay"]
            if about["kind"] != "checkpoint" or not {"method", "data"} <= set(there):
                raise KeyError("kind")
            if "version" not in about or not isinstance(there["parameters"], dict):
                raise KeyError("version")
        except UsageError:
            raise
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{str(file)!r} is not a checkpoint of datassay; give another folder") from None
        except OSError as error:
            raise self._cannot(error) from None
        self._refuse_others(there, own)
        return True

    def _cannot(self, error: OSError) -> UnavailableError:
        return UnavailableError(f"no checkpoint can be kept in {str(self.folder)!r}: {error.strerror}")

    def _refuse_others(self, there: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        say = f"the checkpoint in {str(self.folder)!r} is"
        end = "; give another folder, or delete it to begin anew"
        if there["method"] != own["method"]:
            raise UsageError(f"{say} one of {there['method']}, not of {own['method']}{end}")
        version = there["datassay"]["version"]
        if version != __version__:
            raise UsageError(f"{say} one of datassay {version}, and this is {__version__}: bits may differ{end}")
        before, now = there["parameters"], own["parameters"]
        other = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
        if other:
            told = ", ".join(f"{name} was {before.get(name)!r} and is {now.get(name)!r}" for name in other)
            raise UsageError(f"{say} one of other parameters: {told}{end}")
        if there["data"] != own["data"]:
            raise UsageError(f"{say} one of other data: records, labels or weights differ{end}")

    def write(self, name: str, fill: Any) -> None:
        """Let ``fill`` write a file, which is there whole, or not at all."""
        try:
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".writing-")
            try:
                with os.fdopen(handle, "wb") as out:
                    fill(out)
                    out.flush()
                    os.fsync(out.fileno())
                os.replace(temporary, self.folder / name)
            finally:
                with suppress(OSError):  # moved already, if all went well
                    os.unlink(temporary)
            self._settle()
        except FileNotFoundError:
            raise CheckpointError(
                f"the checkpoint in {str(self.folder)!r} cannot be written: it was deleted while this ran; run it "
                "again, and it begins anew"
            ) from None
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint in {str(self.folder)!r} cannot be written ({error.strerror or error}); what was kept "
                "there before is whole: make room, run it again, and it goes on from there"
            ) from None

    def _settle(self) -> None:
        """Bring the new name to the disk, too; not every system can."""
        with suppress(OSError):
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    @contextmanager
    def begin(self, kind: Literal["sum", "rows"]) -> "Iterator[Kept]":
        """The next pass, and what is kept of it; only this run may write to the folder meanwhile."""
        self._passes += 1
        with self._alone():
            yield Kept(self, f"{kind}-{self._passes}", whole=kind == "sum")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process writes meanwhile; and no other thread, which the system's locks do not tell apart."""
        name = os.path.realpath(self.folder)
        with _guard:
            if name in _taken:
                raise self._busy("thread")
            _taken.add(name)
        try:
            with self._locked():
                for left in self.folder.glob(".writing-*"):  # by one that was killed
                    left.unlink(missing_ok=True)
                yield
        finally:
            with _guard:
                _taken.discard(name)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            import fcntl
        except ImportError:  # not on Windows
            yield
            return
        try:
            lock = (self.folder / ".lock").open("wb")
        except OSError as error:
            raise self._cannot(error) from None
        with lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):  # as where a network's files have no locks
                    raise self._cannot(error) from None
                raise self._busy("process") from None
            yield

    def _busy(self, who: str) -> UnavailableError:
        where = str(self.folder)
        return UnavailableError(f"another {who} is writing to the checkpoint in {where!r}; wait for it to end")


_taken: set[str] = set()  # folders that a thread of this process writes to
_guard = threading.Lock()


class Kept:
    """What is kept of one pass: a beginning of its blocks. ``whole``: a sum, of which the latest is all there is."""

    def __init__(self, checkpoint: Checkpoint, name: str, whole: bool) -> None:
        self._checkpoint, self._name, self._whole = checkpoint, name, whole
        self.folder = str(checkpoint.folder)
        self._of = digest(checkpoint.key, name)  # nothing is gone on from but what this calculation kept
        self._started = self._saved = time.monotonic()
        self._cost = 0.0
        self.done = 0

    def load(self) -> Iterator[tuple[range, Arrays]]:
        """What is there: blocks, and what was found of them."""
        if self._whole:
            file = self._checkpoint.folder / f"{self._name}.npz"
            if file.exists():
                yield self._read(file)
            return
        pieces: dict[int, tuple[int, Path]] = {}
        for file in self._checkpoint.folder.glob(f"{self._name}-*.npz"):
            between = re.fullmatch(r"-(\d{9,})-(\d{9,})", file.stem.removeprefix(self._name))
            if between:  # and no copy that somebody made of it
                first, stop = map(int, between.groups())
                pieces[first] = max(pieces.get(first, (0, file)), (stop, file))
        while self.done in pieces:
            yield self._read(pieces[self.done][1])

    def _read(self, file: Path) -> tuple[range, Arrays]:
        try:
            with np.load(file, allow_pickle=False) as read:  # a zip file: its sums are checked
                first, stop = read["blocks"].tolist()
                of = str(read["of"])
                arrays = tuple(read[f"part{at}"] for at in range(len(read.files) - 2))
        except Exception as error:
            raise InputError(
                f"{str(file)!r} of the checkpoint is damaged ({type(error).__name__}): delete it, and what it held is "
                "done again"
            ) from None
        if of != self._of:
            raise InputError(
                f"{str(file)!r} was not written by this calculation: delete it, and what it should hold is done again"
            )
        self.done = stop
        return range(first, stop), arrays

    def is_time(self) -> bool:
        """Whether enough was done since the last file to be worth another."""
        now = time.monotonic()
        wait = max(EVERY, self._cost / SHARE, SLACK * (now - self._started) if EVERY else 0.0)
        return now - self._saved >= wait

    def save(self, stop: int, arrays: Arrays) -> None:
        """Keep what was found of the blocks up to ``stop``: since the last time, or all of them if it is a sum."""
        if stop == self.done:
            return
        before = time.monotonic()
        first = 0 if self._whole else self.done
        name = f"{self._name}.npz" if self._whole else f"{self._name}-{first:09}-{stop:09}.npz"
        named: dict[str, Any] = {f"part{at}": array for at, array in enumerate(arrays)}
        self._checkpoint.write(name, lambda out: np.savez(out, of=self._of, blocks=np.array([first, stop]), **named))
        self.done = stop
        self._saved = time.monotonic()
        self._cost = self._saved - before
