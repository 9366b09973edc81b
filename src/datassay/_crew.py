"""Workers: what kind, how many of them, and what every kind can do with a task that it holds."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self

from datassay._errors import LostError

Kind = Literal["threads", "processes", "dask", "joblib"]
Task = Callable[..., Any]
Promise = Callable[[], Any]
"""Waits for an answer; BrokenExecutor says that it was lost with a worker."""

MOST_LOSSES = 3  # how often workers may be lost before the work is given up


@dataclass(frozen=True)
class Workers:
    """Who does the work, and how many of them at once."""

    kind: Kind
    count: int
    client: Any = None

    @property
    def share_memory(self) -> bool:
        """Whether they share one machine, and with it the memory that was allowed."""
        return self.kind != "dask"

    def at_most(self, count: int) -> "Workers":
        """Fewer of them, where they share the machine."""
        return replace(self, count=min(self.count, count)) if self.share_memory else self


class WorkerLostError(LostError):
    """Workers died again and again, most likely for lack of memory."""


class Crew(Protocol):
    """Workers who hold a task."""

    def submit(self, *arguments: Any) -> Promise:
        """Call the task."""

    def count(self) -> int:
        """How many calls they can run at once, by now."""

    def renew(self) -> None:
        """Replace the workers that were lost."""

    def close(self, at_once: bool) -> None:
        """Let go of the task; ``at_once``: without waiting for what they are doing."""


class Calls:
    """Calls that were made to a crew and not answered yet, in order; the crew is let go of when the block ends."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._open: deque[tuple[tuple[Any, ...], Promise]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._crew.close(at_once=kind is not None and issubclass(kind, KeyboardInterrupt))

    def make(self, *arguments: Any) -> None:
        """Call the task."""
        self._open.append((arguments, self._crew.submit(*arguments)))

    def oldest(self) -> Any:
        """The answer to the oldest call; if a worker was lost, all are made again."""
        while True:
            try:
                found = self._open[0][1]()
                self._open.popleft()
                return found
            except BrokenExecutor:
                self._crew.renew()
                self._open = deque((arguments, self._crew.submit(*arguments)) for arguments, _ in self._open)
