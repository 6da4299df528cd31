"""Settings of torch under which the same work gives the same bits."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

ONE_AT_A_TIME = threading.RLock()
"""Held while something is set that all threads of a process share, and relied upon.

These are torch's settings, the random generators of torch and numpy, and Python's warnings.
"""


@contextmanager
def reproducible(kernels: set[str] | None = None) -> Iterator[None]:
    """Use deterministic kernels and honest float32 inside the block; put everything back after.

    Other threads wait meanwhile. A kernel that has no deterministic version is used all the same:
    torch's warning about it is kept from the user.

    Parameters
    ----------
    kernels : set of str, optional
        The names of such kernels are added to it.
    """
    import torch._dynamo

    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    with ONE_AT_A_TIME:
        before = (cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32)
        strict = torch.are_deterministic_algorithms_enabled()
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        filling = torch.utils.deterministic
        fill = filling.fill_uninitialized_memory  # type: ignore[attr-defined]
        threads = torch.get_num_threads()
        try:
            cudnn.deterministic, cudnn.benchmark = True, False
            cudnn.allow_tf32 = matmul.allow_tf32 = False
            torch.use_deterministic_algorithms(True, warn_only=True)
            filling.fill_uninitialized_memory = False  # type: ignore[attr-defined]
            torch.set_num_threads(1)  # sums on a CPU are cut into as many parts as threads
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
                _divert_to(set() if kernels is None else kernels)
                yield
        finally:
            cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = before
            torch.use_deterministic_algorithms(strict, warn_only=warn_only)
            filling.fill_uninitialized_memory = fill  # type: ignore[attr-defined]
            torch.set_num_threads(threads)


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
    """Why bits may differ after kernels that :func:`reproducible` noted.

    >>> doubts_of({"put_"})
    ('torch has no deterministic version of put_: made again, the bits may be others.',)
    """
    about = "torch has no deterministic version of {}: made again, the bits may be others."
    return tuple(about.format(name) for name in sorted(kernels))


@contextmanager
def own_generator(seed: int | None = None, device: torch.device | None = None) -> Iterator[None]:
    """Put torch's random generators back after the block; other threads wait meanwhile.

    Parameters
    ----------
    seed : int, optional
        What they start from inside the block; by default as they are.
    device : torch.device, optional
        Where numbers are drawn beside the CPU, if that is a GPU.
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
