"""Ground truth for ranking checkpoints as in Li et al. 2021."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RATES = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5)
STEPS = (2500, 5000, 10000, 15000, 20000, 40000)


def ranking(
    architecture: str = "resnet50",
    checkpoints: Mapping[str, str] | None = None,
    scratch: bool = True,
) -> dict[str, Any]:
    """Fine-tune every checkpoint over rates and lengths; its truth is the least error.

    Li et al. 2021, Ranking Neural Checkpoints, appendix A.2: 8 rates and 6 numbers of steps,
    batches of 512, SGD with momentum 0.9, no augmentation, no weight decay; for training from
    scratch a decay of 0.01 times the rate, decoupled, which is a weight decay of 0.01.

    The longest training is printed as 400,000 steps, twenty times the one before; 40,000 is taken
    for it. The schedule is not said: the rate falls along a cosine.

    Parameters
    ----------
    architecture : str
        Of the checkpoints.
    checkpoints : dict of str to str
        Names and files of the checkpoints.
    scratch : bool
        Whether to train from random weights too, which is a reference and no checkpoint.
    """
    usual = {
        "architecture": architecture,
        "optimiser": "sgd",
        "momentum": 0.9,
        "weight_decay": 0.0,
        "batch": 512,
        "schedule": "cosine",
    }
    learners: dict[str, Any] = {k: usual | {"weights": v} for k, v in (checkpoints or {}).items()}
    if scratch or not learners:
        learners["scratch"] = usual | {"weight_decay": 0.01}
    return {
        "training": usual,
        "learners": learners,
        "design": {"grid": {"rate": list(RATES), "steps": list(STEPS)}},
    }


def ranking_checkpoints(architecture: str = "resnet50") -> dict[str, Any]:
    """Pretrain, and keep the weights around every drop of the rate: checkpoints to be ranked.

    Li et al. 2021, section 2.2, group II: a network of each source at several stages, kept at
    each drop of the learning rate; 300,000 steps, of which the paper names 90,000, 270,000 and
    300,000. Rate, decay and batch of the pretraining are not said: 0.1, 1e-4 and 512 are taken,
    with drops at 90,000, 180,000 and 270,000 steps.
    """
    usual = {
        "architecture": architecture,
        "optimiser": "sgd",
        "rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 1e-4,
        "batch": 512,
        "steps": 300_000,
        "schedule": "drops",
        "drops": [0.3, 0.6, 0.9],
        "augmentation": ["flip", "translate:4"],
    }
    return {
        "training": usual,
        "learners": {architecture.replace(":", "-"): usual},
        "keep": {"checkpoints": "drops"},
    }
