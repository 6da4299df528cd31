"""Devices to train on: which there are, their errors, and settings under which the same work gives the same bits.

torch is imported only inside functions: a study is planned where it is not installed.
"""

from __future__ import annotations

import os
import platform
import re
import threading
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import importing
from curvewise.nn.training import misfit

if TYPE_CHECKING:
    import torch

ONE_AT_A_TIME = threading.RLock()
"""Held while something is set that all threads of a process share, and relied upon.

These are torch's settings, the random generators of torch and numpy, and Python's warnings.
"""

_CHOICES = (
    *("MKL_CBWR", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS"),
    *("DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE"),
)
"""Variables by which a user chooses the code that libraries run, and thereby their rounding."""

PRECISIONS = ("float32", "bfloat16", "float16")
"""Precisions in which a trained network can be asked to compute."""


def list_gpus() -> list[str]:
    """List the GPUs that torch can use, ``"cuda:0"`` and so on; none without a GPU."""
    with importing("Training networks needs torch", "torch"):
        import torch
    return [f"cuda:{i}" for i in range(torch.cuda.device_count())]


def find_device(device: str | torch.device) -> torch.device:
    """Return the device of that name, or raise if there is none."""
    import torch

    try:
        place = torch.device(device)
    except RuntimeError:
        place = None
    if place is None or place.type not in ("cpu", "cuda"):
        raise misfit("device", str(device), "not known.", "Use 'cpu', 'cuda' or 'cuda:1'.")
    gpus = torch.cuda.device_count()
    if place.type == "cuda" and (place.index or 0) >= gpus:
        seen = f"only {gpus} of them" if gpus else "no GPU"
        raise misfit("device", str(device), f"torch finds {seen} here.", "Use 'cpu'.")
    return place


def try_device(device: str) -> None:
    """Raise where a device is not there any more, or cannot compute.

    >>> try_device("cpu")
    """
    import torch

    torch.zeros(1, device=find_device(device)).item()


@cache
def describe_cpu() -> str:
    """Describe what the bits depend on here: the maker of the CPU, torch's instructions, what is chosen.

    Examples
    --------
    >>> describe_cpu()
    '..., ...'
    """
    import torch

    # "AuthenticAMD", "GenuineIntel"; on ARM the implementer's number, or the machine.
    maker = platform.processor() or platform.machine()
    with suppress(OSError):  # not on Linux
        text = Path("/proc/cpuinfo").read_text()
        if found := re.search(r"^(?:vendor_id|CPU implementer)\s*:(.*)$", text, re.MULTILINE):
            maker = found[1].strip()
    chosen = (f"{name}={os.environ[name]}" for name in _CHOICES if os.environ.get(name))
    return ", ".join([maker, torch.backends.cpu.get_cpu_capability(), *chosen])


def ran_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error is about too little memory: by its class and the first line of its message.

    A traceback's text would not do: its lines of source may name any error.

    Examples
    --------
    >>> ran_out_of_memory(MemoryError()), ran_out_of_memory(ValueError("MemoryError"))
    (True, False)
    >>> ran_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"))
    True
    """
    # torch raises a plain RuntimeError for the first, and for what cuBLAS lacks; their words are all there is.
    words = ("can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"MemoryError", "OutOfMemoryError"}) or _says(error, words)


def spoilt_device(error: BaseException) -> bool:
    """Tell whether a process cannot use its GPU any more after an error.

    Examples
    --------
    >>> spoilt_device(RuntimeError("CUDA error: device-side assert triggered"))
    True
    """
    return _says(error, ("CUDA error",)) and not ran_out_of_memory(error)


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    """Look for words in an error of torch, which has no classes for most of its errors."""
    first = str(error).partition("\n")[0]
    return isinstance(error, RuntimeError) and any(word in first for word in words)


@contextmanager
def steady_kernels() -> Iterator[None]:
    """Use deterministic kernels of cuDNN and full float32 inside the block."""
    import torch

    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = (cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32)
    try:
        # benchmark would choose the kernel that is quickest today, and kernels round differently.
        cudnn.deterministic, cudnn.benchmark = True, False
        cudnn.allow_tf32 = matmul.allow_tf32 = False
        yield
    finally:
        cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = before


@contextmanager
def reproducible(kernels: set[str] | None = None, *, compiles: bool = True) -> Iterator[None]:
    """Use deterministic kernels and honest float32 inside the block; put everything back after.

    Other threads wait meanwhile. A kernel that has no deterministic version is used all the same:
    torch's warning about it is kept from the user.

    Parameters
    ----------
    kernels : set of str, optional
        The names of such kernels are added to it.
    compiles : bool
        Whether kernels may be compiled inside the block. Where none are, torch's compiler need not be imported,
        which takes as long as the rest of torch.
    """
    import torch

    # use_deterministic_algorithms sets this and the compiler, which it imports; a private name, which may go.
    set_strict: Callable[..., None]
    set_strict = getattr(torch._C, "_set_deterministic_algorithms", torch.use_deterministic_algorithms)
    limits: AbstractContextManager[Any] = nullcontext()
    if compiles:
        import torch._dynamo  # here, before anything is set or caught

        set_strict = torch.use_deterministic_algorithms
        # Beyond its limit torch would run a further architecture without compiling it, which rounds differently.
        limits = torch._dynamo.config.patch({"recompile_limit": 10**6, "accumulated_recompile_limit": 10**6})
    # Sums on a CPU are cut into as many parts as there are threads.
    with ONE_AT_A_TIME, steady_kernels(), one_thread():
        strict = torch.are_deterministic_algorithms_enabled()
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        filling = torch.utils.deterministic
        fill = filling.fill_uninitialized_memory  # type: ignore[attr-defined]
        try:
            set_strict(True, warn_only=True)
            # Filling new memory makes reads of it repeatable, at a cost; nothing here reads what it did not write.
            filling.fill_uninitialized_memory = False  # type: ignore[attr-defined]
            with limits, warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
                _divert_to(set() if kernels is None else kernels)
                yield
        finally:
            set_strict(strict, warn_only=warn_only)
            filling.fill_uninitialized_memory = fill  # type: ignore[attr-defined]


def _divert_to(kernels: set[str]) -> None:
    """From here on, note the kernels that torch warns of for not repeating their bits."""
    words = " does not have a deterministic implementation"
    show = warnings.showwarning

    def note(message: Warning | str, *about: Any, **more: Any) -> None:
        name, found, _ = str(message).partition(words)
        if found:
            kernels.add(name)
        else:
            show(message, *about, **more)

    warnings.filterwarnings("always", message=f".*{words}")
    warnings.showwarning = note


def doubts_of(kernels: Collection[str]) -> tuple[str, ...]:
    """List reasons why bits may differ after kernels that :func:`reproducible` noted.

    >>> doubts_of({"put_"})
    ('torch has no deterministic version of put_: a repeated run may differ in the last digits.',)
    """
    about = "torch has no deterministic version of {}: a repeated run may differ in the last digits."
    return tuple(about.format(name) for name in sorted(kernels))


@contextmanager
def own_generator(seed: int | None = None, device: torch.device | None = None) -> Iterator[None]:
    """Put torch's random generators back after the block; other threads wait meanwhile.

    Parameters
    ----------
    seed : int, optional
        Their seed inside the block; by default they go on as they are.
    device : torch.device, optional
        A GPU on which numbers are drawn beside the CPU.
    """
    import torch

    gpus = [device] if device is not None and device.type == "cuda" else []
    with ONE_AT_A_TIME, torch.random.fork_rng(devices=gpus):
        if seed is not None:
            torch.default_generator.manual_seed(seed)
            for gpu in gpus:
                with torch.cuda.device(gpu):
                    torch.cuda.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread inside the block: sums on a CPU are cut into as many parts as threads, which changes the bits."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
