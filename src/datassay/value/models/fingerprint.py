"""What a thing consists of, as a digest: the same for equal things in any process, another for any other.

Utilities are kept on disk under the fingerprint of what they depend on: data, model and scoring. Functions and classes
of somebody's own count by their code and by what they read; those of libraries by their names.
"""

import inspect
import os
import sys
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from types import EllipsisType, NoneType
from typing import Any

import numpy as np

MOVED = {"datassay.value.models.stable": "datassay.value.stable"}  # by the names under which 0.1.0 kept utilities


class _Unknown(Exception):
    """Something whose content cannot be told, such as a handle."""


def fingerprint(*parts: object) -> str:
    """A digest of models, functions, arrays and plain things by content; empty where that cannot be told."""
    import sklearn

    digest = sha256()
    try:
        for part in (sklearn.__version__, *parts):
            for piece in content(part):
                digest.update(piece)
    except _Unknown:
        return ""
    return digest.hexdigest()


def of_library(thing: Any) -> bool:
    """Whether its name is enough: Python's own, or installed, and not somebody's script."""
    name = getattr(thing, "__module__", None)
    if name is None:
        return inspect.isbuiltin(thing) or not inspect.isfunction(thing)
    top = str(name).split(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top in sys.stdlib_module_names or top == "datassay" or "site-packages" in file or "dist-packages" in file


def _place(thing: Any) -> bytes:
    """Under which name a function or class counts."""
    return f"{MOVED.get(thing.__module__, thing.__module__)}.{thing.__qualname__}".encode()


def content(thing: Any, within: tuple[int, ...] = ()) -> Iterator[bytes]:
    """What a thing consists of, the same for equal things in any process: no addresses, nothing left out."""
    yield b"<" + _place(type(thing))
    if id(thing) in within:  # it holds itself
        yield b"~>"
        return
    if len(within) > 60:
        raise _Unknown
    within = (*within, id(thing))
    if isinstance(thing, os.PathLike | str | int | float | complex | bytes | np.generic | NoneType | EllipsisType):
        yield repr(thing).encode()
    elif isinstance(thing, np.ndarray) and thing.dtype != object:
        yield f"{thing.dtype.str}{thing.shape}".encode()
        yield np.ascontiguousarray(thing).tobytes()
    elif isinstance(thing, list | tuple | np.ndarray):
        for piece in thing:
            yield from content(piece, within)
    elif isinstance(thing, set | frozenset):
        yield b"".join(sorted(sha256(b"".join(content(piece, within))).digest() for piece in thing))
    elif isinstance(thing, dict):
        for name in sorted(thing, key=repr):
            yield from content(name, within)
            yield from content(thing[name], within)
    elif isinstance(thing, slice):  # from Python 3.14 on a constant of code
        yield from content([thing.start, thing.stop, thing.step], within)
    elif isinstance(thing, partial):
        yield from content([thing.func, thing.args, thing.keywords], within)
    elif inspect.ismethod(thing):
        yield from content([thing.__func__, thing.__self__], within)
    elif isinstance(thing, type) or inspect.isroutine(thing):
        yield _place(thing)
        if not of_library(thing):
            yield from code_of(thing, within)
    elif inspect.ismodule(thing):
        yield thing.__name__.encode()
    elif hasattr(thing, "get_params"):
        yield from content([type(thing), thing.get_params(deep=False)], within)
    elif hasattr(thing, "__dict__") or hasattr(thing, "__slots__"):
        held = dict(getattr(thing, "__dict__", {}))
        for kind in type(thing).__mro__:
            slots = vars(kind).get("__slots__", ())
            names = [slots] if isinstance(slots, str) else slots
            held |= {n: getattr(thing, n) for n in names if n != "__weakref__" and hasattr(thing, n)}
        if not held and of_library(type(thing)):  # what it holds is not to be seen
            raise _Unknown
        yield from content([type(thing), held], within)
    else:
        raise _Unknown
    yield b">"


def code_of(thing: Any, within: tuple[int, ...]) -> Iterator[bytes]:
    """What somebody's own function or class does, and what it reads of its surroundings."""
    if isinstance(thing, type):
        own = {
            n: f for n, f in vars(thing).items() if inspect.isfunction(f) or isinstance(f, staticmethod | classmethod)
        }
        for name in sorted(own):
            yield name.encode()
            yield from code_of(getattr(own[name], "__func__", own[name]), within)
        for base in thing.__bases__:
            yield from content(base, within)
        return
    if not inspect.isfunction(thing):
        raise _Unknown
    names: set[str] = set()
    codes = [thing.__code__]
    while codes:  # with what is defined inside of it
        code = codes.pop()
        names |= set(code.co_names)
        yield code.co_code
        yield from content([part for part in code.co_consts if not inspect.iscode(part)], within)
        codes += [part for part in code.co_consts if inspect.iscode(part)]
    yield from content(sorted(names), within)
    yield from content([thing.__defaults__, thing.__kwdefaults__], within)
    for cell in thing.__closure__ or ():
        yield from content(cell.cell_contents, within)
    used = {name: thing.__globals__[name] for name in names if name in thing.__globals__}
    yield from content(used, within)
