"""Work done by the workers of a Dask cluster, who are sent the data once and pass them on to those that come later."""

import logging
import pickle
import re
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from datassay._crew import MOST_LOSSES, Promise, Task, WorkerLostError
from datassay._errors import LostError, UnavailableError, UsageError, first_line, needed
from datassay._version import __version__

PATIENCE = 30.0  # seconds until a cluster without workers is given up
ANSWERS_WITHIN = 10.0  # seconds: a scheduler
RECOUNT = 5.0  # seconds between two looks at how large a cluster is


class SchedulerLostError(LostError):
    """The scheduler, which tells the workers of a cluster what to do, is gone."""


def dask_distributed() -> Any:
    """The package, or how to install it."""
    with needed("work on a cluster needs Dask", "dask"):
        import distributed
    return distributed


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """A client of the cluster whose scheduler is at this address, for as long as it is needed; Dask logs nothing."""
    distributed = dask_distributed()
    scheme, _, host = address.rpartition("://")
    if scheme not in ("", "tcp", "tls", "ucx", "ws", "wss") or not host:
        raise UsageError(f"{address!r} is no address of a Dask scheduler, such as tcp://HOST:8786")
    if scheme not in ("ws", "wss") and not re.fullmatch(r".+:[0-9]{1,5}", host):  # a Client would not get over it
        raise UsageError(f"{address!r} names no port; an address of a Dask scheduler is such as tcp://HOST:8786")
    with ExitStack() as stack:
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable()  # Dask would log tracebacks where one line says what went wrong
        try:
            client = distributed.Client(address, timeout=ANSWERS_WITHIN, set_as_default=False)
        except (OSError, TimeoutError):
            raise UnavailableError(f"no Dask scheduler answers at {address!r}; is it running?") from None
        except (ValueError, TypeError, ImportError) as error:
            raise UsageError(
                f"{address!r} is no address of a Dask scheduler, such as tcp://HOST:8786 ({error})"
            ) from None
        try:
            yield client
        finally:
            with suppress(Exception):  # a scheduler that is gone says goodbye badly
                client.close()


def threads_of(client: object) -> int:
    """How many calls the workers of a Dask cluster can run at once; waits until there is one."""
    distributed = dask_distributed()
    if not isinstance(client, distributed.Client):
        raise UsageError(f"client must be a dask.distributed.Client, got {type(client).__name__}")
    if client.asynchronous:
        raise UsageError("client must not be asynchronous: make it with Client(address), outside of an event loop")
    _check_scheduler(client)
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise UnavailableError(f"the Dask cluster at {_address(client)} has no workers; start some") from None
    return _threads_now(client)


def _threads_now(client: Any) -> int:
    return max(1, sum(map(int, client.nthreads().values())))


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", None) or "an unknown address")


def _check_scheduler(client: Any) -> None:
    if client.status in ("closing", "closed"):  # it also closes itself, if its scheduler does not come back
        raise SchedulerLostError(
            "client is closed, by close() or because its scheduler was lost; make another one with Client(address)"
        )
    if client.status != "running":
        raise SchedulerLostError(f"the Dask scheduler at {_address(client)} does not answer any more")


@dataclass(frozen=True)
class VersionedTask:
    """A task on its way; workers of another version might compute something else."""

    task: Task
    version: str


def _call(sent: VersionedTask, arguments: tuple[Any, ...]) -> Any:
    """Run by a worker of a cluster: the task is there already. The worker may have joined since all were asked."""
    if sent.version != __version__:
        raise UnavailableError(
            f"a Dask worker has datassay {__version__}, and who asks it {sent.version}: install the same on every "
            "worker"
        )
    return sent.task(*arguments)


def _version() -> str:
    """Run by a worker of a cluster."""
    return __version__


class Cluster:
    """Workers of a Dask cluster: the task is sent to all of them once, and kept by them until it is closed."""

    def __init__(self, task: Task, client: Any) -> None:
        self._client, self._sent = client, VersionedTask(task, __version__)
        self._losses = self._calls = 0
        self._name = uuid4().hex
        self._count, self._counted = threads_of(client), time.monotonic()
        self._futures: dict[int, Any] = {}
        self._check_versions()
        self._ship()

    def _check_versions(self) -> None:
        """Another version may give other values, or none: better to know before anything is sent."""
        try:
            found = self._client.run(_version, on_error="return")
        except Exception as error:  # what a scheduler says while it goes down
            raise self._lost(error) from None
        for worker, version in found.items():
            if isinstance(version, OSError):  # it died just now, and that is seen to later
                continue
            if version != __version__:
                said = "cannot load datassay" if isinstance(version, Exception) else f"has datassay {version}"
                raise UnavailableError(
                    f"the Dask worker at {worker} {said}, and here is {__version__}: install the same on every worker"
                )

    def _ship(self) -> None:
        try:
            [self._unpacked] = self._client.scatter([self._sent], broadcast=True, hash=False)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise UsageError(
                f"the task cannot be sent to workers ({first_line(error)}); without a client it runs here"
            ) from None
        except (OSError, TimeoutError, CancelledError) as error:
            if isinstance(error, TimeoutError) and self._deserted():
                raise WorkerLostError(
                    f"all Dask workers of {_address(self._client)} died while the data were sent to them, most likely "
                    "for lack of memory"
                ) from None
            raise self._lost(error) from None

    def _deserted(self) -> bool:
        """Whether the scheduler is there, and no worker."""
        with suppress(Exception):
            return not self._client.nthreads()
        return False

    def _lost(self, error: BaseException) -> UnavailableError:
        return SchedulerLostError(
            f"the Dask scheduler at {_address(self._client)} does not answer any more ({first_line(error)})"
        )

    def submit(self, *arguments: Any) -> Promise:
        """Call the task."""
        _check_scheduler(self._client)
        self._calls += 1
        key = f"datassay-{self._name}-{self._calls}"
        future = self._client.submit(_call, self._unpacked, arguments, key=key, pure=False)
        self._futures[self._calls] = future
        return partial(self._result_of, self._calls)

    def count(self) -> int:
        """How many calls they can run at once: a cluster may grow and shrink."""
        if time.monotonic() > self._counted + RECOUNT:
            with suppress(Exception):  # that a scheduler is lost shows when an answer is waited for
                self._count = _threads_now(self._client)
            self._counted = time.monotonic()
        return self._count

    def _result_of(self, number: int) -> Any:
        """Wait for the answer to a call, and let go of it."""
        distributed = dask_distributed()
        future = self._futures[number]
        try:
            found = future.result()
        except distributed.KilledWorker as error:
            raise WorkerLostError(
                f"Dask workers died {MOST_LOSSES + 1} times at the same block, most likely for lack of memory: allow "
                f"fewer bytes with memory, or give workers more ({error.task})"
            ) from None
        except CancelledError:
            # Cut off from the scheduler all futures are cancelled; otherwise every worker that held the data is gone.
            _check_scheduler(self._client)
            raise BrokenExecutor("the data were lost with the workers") from None
        except OSError as error:
            if future.status == "error":  # what the task itself ran into
                raise
            raise self._lost(error) from None
        del self._futures[number]
        return found

    def renew(self) -> None:
        """Send the task again, after all who held it were lost."""
        self._losses += 1
        if self._losses > MOST_LOSSES:
            raise WorkerLostError(
                f"all Dask workers died {self._losses} times, most likely for lack of memory: allow fewer bytes with "
                "memory, or give workers more"
            )
        self._futures.clear()
        try:
            threads_of(self._client)
        except SchedulerLostError:
            raise
        except UnavailableError:
            raise WorkerLostError(
                f"all Dask workers died, and within {PATIENCE:g} seconds none came back to {_address(self._client)}"
            ) from None
        self._ship()

    def close(self, at_once: bool) -> None:
        """Let go of the task."""
        with suppress(Exception):  # what is wrong with a cluster that is left does not matter any more
            if self._client.status == "running" and self._futures:
                self._client.cancel(list(self._futures.values()), force=at_once)
        self._futures.clear()
        self._unpacked = None
