"""Settings of torch under which the same work gives the same bits."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ONE_AT_A_TIME = threading.RLock()
"""Held while something is set that all threads of a process share, and relied upon.

These are torch's settings, the random generators of torch and numpy, and Python's warnings.
"""


@contextmanager
def reproducible() -> Iterator[None]:
    """Use deterministic kernels and honest float32 inside the block; put everything back after.

    Other threads wait meanwhile.

    A kernel that has no deterministic version is used all the same: torch's warning about it is
    kept from the user here, because the plan says on which networks that may happen.
    """
    with ONE_AT_A_TIME:
        yield from _reproducible()


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


def _reproducible() -> Iterator[None]:
    import torch._dynamo

    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
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
        torch.set_num_threads(1)  # sums on a CPU are cut into as many parts as there are threads
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*does not have a deterministic")
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
            yield
    finally:
        cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = before
        torch.use_deterministic_algorithms(strict, warn_only=warn_only)
        filling.fill_uninitialized_memory = fill  # type: ignore[attr-defined]
        torch.set_num_threads(threads)
