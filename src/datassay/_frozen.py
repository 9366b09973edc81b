"""A mapping that cannot be changed, but can be copied and sent to another process (unlike mappingproxy)."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

V = TypeVar("V")


class FrozenMapping(Mapping[str, V]):
    """A read-only dictionary with string keys.

    >>> FrozenMapping({"k": 5})
    {'k': 5}
    """

    __slots__ = ("_data",)

    def __init__(self, data: Mapping[str, V]) -> None:
        self._data = dict(data)

    def __getitem__(self, key: str) -> V:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return repr(self._data)
