"""Which devices there are to train on, what bits depend on there, and how they fail."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

from curvewise.errors import MissingDependencyError

_CHOICES = (
    *("MKL_CBWR", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS"),
    *("DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE"),
)
"""Variables by which a user chooses the code that libraries run, and so how they round."""


def list_gpus() -> list[str]:
    """Names of the GPUs that torch can use, ``"cuda:0"`` and so on; none without a GPU."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            'Training networks needs torch, which is not installed: pip install "curvewise[torch]".'
        ) from error
    return [f"cuda:{i}" for i in range(torch.cuda.device_count())]


@cache
def describe_cpu() -> str:
    """Name what bits depend on here: the maker of the CPU, torch's instructions, what is chosen.

    Examples
    --------
    >>> describe_cpu()
    '..., ...'
    """
    import torch

    chosen = (f"{name}={os.environ[name]}" for name in _CHOICES if os.environ.get(name))
    return ", ".join([_maker(), torch.backends.cpu.get_cpu_capability(), *chosen])


def _maker() -> str:
    """``"AuthenticAMD"``, ``"GenuineIntel"``; on ARM the implementer's number, or the machine."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not on Linux
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("vendor_id", "CPU implementer"):
            return value.strip()
    return platform.processor() or platform.machine()


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error is about too little memory: by its class and the first line of its message.

    A traceback's text would not do: its lines of source may name any error.

    Examples
    --------
    >>> ran_out_of_memory(MemoryError()), ran_out_of_memory(ValueError("MemoryError"))
    (True, False)
    >>> ran_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"))
    True
    """
    words = ("can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"MemoryError", "OutOfMemoryError"}) or _says(error, words)


def spoilt_device(error: BaseException) -> bool:
    """Whether an error is one after which a process cannot use its GPU any more.

    Examples
    --------
    >>> spoilt_device(RuntimeError("CUDA error: device-side assert triggered"))
    True
    """
    return _says(error, ("CUDA error",)) and not ran_out_of_memory(error)


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    """Whether torch raised it with such words; it has no classes for most of its errors."""
    first = str(error).partition("\n")[0]
    return isinstance(error, RuntimeError) and any(word in first for word in words)


PRECISIONS = ("float32", "bfloat16", "float16")
"""What a network of torch may be asked to compute in."""
