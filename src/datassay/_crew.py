"""Workers: what kind, how many of them, and what every kind can do with a task that it holds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from datassay._errors import LostError

Task = Callable[..., Any]
MOST_LOSSES = 3  # how often workers may be lost before the work is given up


@dataclass(frozen=True)
class Workers:
    """Who does the work, and how many of them at once."""

    kind: Literal["threads", "processes", "dask", "joblib"]
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


class Promise(Protocol):
    """An answer that will come."""

    def result(self) -> Any:
        """Wait for it. BrokenExecutor says that a worker was lost and with it the answer: renew, and ask again."""
        ...


class Crew(Protocol):
    """Workers who hold a task."""

    def submit(self, *arguments: Any) -> Promise:
        """Call the task."""
        ...

    def count(self) -> int:
        """How many calls they can run at once, by now."""
        ...

    def renew(self) -> None:
        """Mend what was lost."""
        ...

    def close(self, at_once: bool) -> None:
        """Let go of the task; ``at_once``: whatever they are doing, nobody waits for it."""
        ...
