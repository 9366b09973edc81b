"""How work is run, written once: options that every function which takes a while accepts, and their documentation.

A function takes them as ``**run: Unpack[Run]`` and passes them on whole. :func:`documented` puts them into its
signature and docstring, with the parameters that it shares with other functions.
"""

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypedDict, TypeVar, Unpack, cast, get_args, get_origin

from typing_extensions import TypeAliasType

from datassay._crew import Workers
from datassay._work import Progress, thread_count, workers

if TYPE_CHECKING:
    import torch
    from distributed import Client as DaskClient

    from datassay._checkpoint import Checkpoint

Client = TypeAliasType("Client", "DaskClient")
Device = TypeAliasType("Device", "str | torch.device")


class Bytes(int):
    """A number of bytes that was not asked for: where a device has its own idea, that is taken instead."""


DEFAULT_MEMORY: Final = Bytes(512 * 2**20)
"""Bytes a pass may use for its blocks unless told otherwise; a card uses what is free.

Beside the blocks stand one copy of the training features, in tiles, and a few numbers a training record.
"""


class Threads(TypedDict, total=False):
    """How work is run by threads of this process.

    Parameters
    ----------
    n_jobs
        Threads; all cores if left out. They cannot change the result.
    progress
        True for a bar on standard error, or a callback that gets (how much is done, of how much).
    """

    n_jobs: int | None
    progress: Progress


class Blocks(Threads, total=False):
    """How work is run in blocks.

    Parameters
    ----------
    memory
        Bytes for blocks, 512 MiB if left out. It cannot change the result.
    """

    memory: int


class Tasks(Threads, total=False):
    """How tasks are run, each by a thread or a worker.

    Parameters
    ----------
    client
        A ``dask.distributed.Client``, whose cluster does the work. So it does within
        ``joblib.parallel_config(backend="dask")``.
    checkpoint
        A folder in which finished work is kept. A run that was stopped, or killed, goes on from there when it is called
        again, to the same bits; a folder of other data or parameters is refused.
    """

    client: Client | None
    checkpoint: str | os.PathLike[str] | None


class Run(Blocks, Tasks, total=False):
    """How work is run, wherever that is.

    Parameters
    ----------
    client
        A ``dask.distributed.Client``: blocks are run by its cluster, where ``memory`` is for each thread of a worker.
        So they are within ``joblib.parallel_config(backend="dask")``; other backends of joblib serve as well.
    device
        ``"cuda"`` (or ``"cuda:1"``, …): a graphics card does it, by torch (``pip install "datassay[gpu]"``), as it does
        for features that are tensors on a card already. ``"cpu"``: torch does it here, to try out what a card would
        say. Rankings are the same to the last tie, and values differ by rounding alone, some 1e-15. By default
        ``memory`` is then what is free on the card.
    """

    device: Device | None


class Fits(Tasks, total=False):
    """How models are fitted.

    Parameters
    ----------
    cache
        A file in which the utility of every coalition is kept for later calls; a checkpoint has one of its own.
    """

    cache: str | os.PathLike[str] | None


@dataclass(frozen=True)
class Schedule:
    """How a pass is run; none of it can change a result.

    ``client`` is a Dask client, ``checkpoint`` where that is kept which was done. ``here``: by threads of this process,
    whatever else was chosen, for what must not leave it.
    """

    n_jobs: int | None = None
    memory: int = DEFAULT_MEMORY
    progress: Progress = None
    client: object = None
    checkpoint: "Checkpoint | None" = None
    here: bool = False

    @classmethod
    def of(cls, run: Threads) -> "Schedule":
        """Those of the options for running that a pass knows; a device and a folder are for its caller."""
        given = cast(Run, run)
        return cls(given.get("n_jobs"), given.get("memory", DEFAULT_MEMORY), given.get("progress"), given.get("client"))

    def workers(self) -> Workers:
        """Who runs it."""
        return Workers("threads", thread_count(self.n_jobs)) if self.here else workers(self.n_jobs, self.client)

    @property
    def device_memory(self) -> int | None:
        """Bytes a device may use, if the caller said so; None for what is free there."""
        return None if isinstance(self.memory, Bytes) else self.memory

    def __reduce__(self) -> tuple[type["Schedule"], tuple[int | None, int]]:
        # Within a worker no bar is drawn, and no others are asked to work.
        return Schedule, (self.n_jobs, self.memory)


P = ParamSpec("P")
T = TypeVar("T")
_SECTION = re.compile(r"^(\w[\w ]*)\n(-{3,})$", re.MULTILINE)


def documented(*like: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Complete a function's signature by its options for running, and its docstring by the parameters it lacks.

    A parameter that the docstring does not describe is described as in the first of ``like`` that does, or in the
    options. A keyword that is no option is refused as Python would.
    """

    def complete(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        options = _options(parameters[-1]) if parameters else None
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=hint)
            for name, hint in (options.__annotations__ if options else {}).items()
        ]
        whole = signature.replace(parameters=[*parameters[: -1 if options else None], *added])

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            for name in kwargs:
                if name not in whole.parameters:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **kwargs)

        made = checked if options else function
        made.__signature__ = whole  # type: ignore[attr-defined]
        sources = [*like, *([options] if options else []), Threads, Blocks, Tasks, Run, Fits]
        made.__doc__ = _completed(function.__doc__ or "", list(whole.parameters), sources)
        return made

    return complete


DEFAULTS: Final = {"memory": DEFAULT_MEMORY, "confidence": 0.95, "on_failure": "empty", "fast": True, "seed": 0} | {
    "ignore": (),
    "categorical": (),
    "text": "refuse",
    "missing": "impute",
    "scale": "standard",
    "permutations": 50,
    "epsilon1": 100.0,
    "epsilon2": 0.5,
}
"""Options that are something else than None if left out."""


def _options(parameter: inspect.Parameter) -> Any:
    """The options that ``**run: Unpack[…]`` stands for; None for any other parameter."""
    is_rest = parameter.kind is inspect.Parameter.VAR_KEYWORD and get_origin(parameter.annotation) is Unpack
    return get_args(parameter.annotation)[0] if is_rest else None


@cache
def described(text: str) -> dict[str, list[str]]:
    """The parameters that a docstring describes: for each name the lines under it.

    >>> described('''What it is.
    ...
    ... Parameters
    ... ----------
    ... X, y
    ...     Features and labels.
    ... ''')
    {'X': ['    Features and labels.'], 'y': ['    Features and labels.']}
    """
    found: dict[str, list[str]] = {}
    names: list[str] = []
    parts = _SECTION.split(inspect.cleandoc(text))  # what comes before, then the title, the rule and the text of each
    for line in dict(zip(parts[1::3], parts[3::3], strict=True)).get("Parameters", "").splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
            found |= {name: [] for name in names}
        else:
            for name in names:
                found[name].append(line)
    return {name: "\n".join(lines).rstrip().splitlines() for name, lines in found.items()}


def _completed(text: str, names: list[str], sources: list[Any]) -> str:
    """The docstring with an entry for every one of ``names``, in their order, those that share a text in one."""
    text = inspect.cleandoc(text)
    own = described(text)
    known = [own, *(described(source.__doc__ or "") for source in sources)]
    entries: list[tuple[list[str], list[str]]] = []
    for name in names:
        lines = next((found[name] for found in known if name in found), None)
        if lines is None:
            continue
        if entries and entries[-1][1] == lines:
            entries[-1][0].append(name)
        else:
            entries.append(([name], lines))
    if not entries:
        return text
    body = "\n".join("\n".join([", ".join(group), *lines]) for group, lines in entries)
    section = f"Parameters\n----------\n{body}\n"
    if own:
        before, _, rest = text.partition("Parameters\n----------\n")
        following = _SECTION.search(rest)
        return f"{before}{section}\n{rest[following.start() :] if following else ''}".rstrip()
    place = _SECTION.search(text) or re.search(r"^>>> ", text, re.MULTILINE)
    if place is None:
        return f"{text}\n\n{section}".rstrip()
    heading = "" if place[0] != ">>> " else "Examples\n--------\n"
    return f"{text[: place.start()]}{section}\n{heading}{text[place.start() :]}"
