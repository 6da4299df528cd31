"""Which devices there are to train on."""

from __future__ import annotations

from curvewise.errors import MissingDependencyError


def list_gpus() -> list[str]:
    """Names of the GPUs that torch can use, ``"cuda:0"`` and so on; none without a GPU."""
    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            'Training networks needs torch, which is not installed: pip install "curvewise[torch]".'
        ) from error
    return [f"cuda:{i}" for i in range(torch.cuda.device_count())]
