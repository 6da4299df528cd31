"""What goes wrong in a training and is not the fault of the run; told by the words of an error."""

from __future__ import annotations

from curvewise.errors import CurvewiseError

MEMORY_WORDS = (
    "OutOfMemoryError",
    "MemoryError",
    "can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


class SpoiltDeviceError(CurvewiseError):
    """After an error on the GPU, nothing more can be computed there by this process."""


def is_memory_text(text: str) -> bool:
    """Whether an error is about too little memory.

    >>> is_memory_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB.")
    True
    """
    return any(words in text for words in MEMORY_WORDS)


def is_spoilt_text(text: str) -> bool:
    """Whether an error is one after which a process cannot use its GPU any more.

    >>> is_spoilt_text("torch.AcceleratorError: CUDA error: device-side assert triggered")
    True
    """
    return "CUDA error" in text and not is_memory_text(text)
