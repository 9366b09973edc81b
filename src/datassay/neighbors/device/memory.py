"""How much memory a device has, and what to say where it is not enough."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from datassay import _checks
from datassay._errors import UnavailableError
from datassay._tensors import TorchDevice, the_torch

SHARE: Final = 0.8  # of a card's free memory


def allowed_bytes(device: TorchDevice, memory: int | None) -> int:
    """Bytes that may be used: what the caller said, or most of what is free on the card."""
    if memory is not None:
        return _checks.integer("memory", memory, at_least=1)
    if device.type != "cuda":
        return 2**29
    cuda = the_torch().cuda
    with enough_for(device, "anything at all"):  # to be asked, a card needs some memory
        free: int = cuda.mem_get_info(device)[0] + cuda.memory_reserved(device) - cuda.memory_allocated(device)
    return int(SHARE * free)


@contextmanager
def enough_for(device: TorchDevice, what: str) -> Iterator[None]:
    """Where memory is used up, the error says for what it was too little."""
    try:
        yield
    except RuntimeError as error:
        raise too_little(device, what, memory_ran_out(error)) from None


def is_of_memory(error: RuntimeError) -> bool:
    """Whether memory is used up, of a card or here, and not something else is wrong."""
    return isinstance(error, the_torch().OutOfMemoryError) or any(
        words in str(error) for words in ("out of memory", "allocate memory")
    )


def memory_ran_out(error: RuntimeError) -> str:
    """What torch says where memory is used up; any other error is raised again."""
    if not is_of_memory(error):
        raise error
    return str(error)


def too_little(device: TorchDevice, what: str, told: str) -> UnavailableError:
    """The error that says for what the memory was too little."""
    return UnavailableError(
        f"the memory of {device} is too little for {what} ({told.strip().splitlines()[0][:200]}); free some of it, use "
        "another card, or leave device out"
    )
