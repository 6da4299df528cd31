"""Learning curves as in Hoiem et al. 2021."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

RATES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)
SHARES = (0.0625, 0.125, 0.25, 0.5, 1.0)
FOLDS = (16, 8, 4, 2, 1)


def learning(
    architecture: str = "resnet18",
    weights: str | None = None,
    members: int = 6,
    augmentation: Sequence[str] = ("translate:4",),
) -> dict[str, Any]:
    """Learning curves of a network: everything trained, only the last layer, and an ensemble.

    Hoiem et al. 2021, Learning Curves for Analysis of Deep Networks, section 4 and appendix A:
    a fifth of the data is held out; 16, 8, 4, 2 and 1 disjoint subsets of 1/16, 1/8, 1/4, 1/2 and
    all of the rest (25 to 400 examples per class of CIFAR-100); the learning rate is searched on
    one subset; the schedule of each subset is found on two thirds of it, watching the last third
    with a patience of 5 epochs at 400 examples per class that goes as n^-1/2, falls twice to a
    tenth from the best epoch, and is then followed on the whole subset. Batches of 64, weight
    decay 1e-4, Ranger.

    The paper does not say which rates were searched: those are taken that its table 3 names. It
    limits the epochs by patience only; here 200 is the most. Its linear classifiers saw augmented
    images; here their features are computed once, without.

    Parameters
    ----------
    architecture : str
        The network.
    weights : str, optional
        File of pretrained weights; with it, networks start from them and from random ones.
    members : int
        Networks in the ensemble.
    augmentation : sequence of str
        Of the images; four pixels of padding and a random crop, as for CIFAR.
    """
    usual = {
        "architecture": architecture,
        "optimiser": "ranger",
        "rate": list(RATES),
        "weight_decay": 1e-4,
        "batch": 64,
        "epochs": 200,
        "schedule": "searched",
        "augmentation": list(augmentation),
    }
    linear = {k: v for k, v in usual.items() if k != "augmentation"} | {"trained": "head"}
    starts: dict[str, dict[str, Any]] = {"scratch": {}}
    starts |= {"pretrained": {"weights": weights}} if weights else {}
    learners: dict[str, Any] = {}
    for name, start in starts.items():
        learners[name] = usual | start
        learners[f"{name}-linear"] = linear | start
    learners["ensemble"] = usual | list(starts.values())[-1] | {"members": members}
    return {
        "training": usual,
        "learners": learners,
        "design": {"sizes": list(SHARES), "folds": list(FOLDS), "test": 0.2},
    }
