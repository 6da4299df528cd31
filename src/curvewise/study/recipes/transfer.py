"""Transfer with its controls as in Atanov et al. 2022."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SHARES = (0.03, 0.0625, 0.125, 0.25, 0.5, 1.0)


def transfer(
    architecture: str = "resnet50",
    weights: str = "",
    augmentation: Sequence[str] = ("flip", "translate:4"),
) -> dict[str, Any]:
    """Pretrained, frozen and from scratch, between the blind guess and all the data.

    Atanov et al. 2022, Simple Control Baselines for Evaluating Transfer Learning, supplement
    3.3 (CIFAR-100): 3% to 100% of the data, AdamW with a rate of 1e-3 from scratch and 1e-4 when
    fine-tuning, weight decay 1e-4, batches of 64, early stop on a fifth of each subset, two runs
    at each size; flips and random crops.

    The controls: ``blind`` needs no training, it gives each class its frequency in the subset
    (the best constant for the log-loss; scikit-learn's ``DummyClassifier``). ``maximal`` is the
    least loss at the last size, which is all the data.

    The paper counts steps, 40,000 at most and a patience of 10,000; here epochs, 64 and 16, which
    are as many steps on all of CIFAR-100 and fewer on less: raise ``epochs`` and ``patience``
    where small subsets need longer. Frozen networks see no augmentation. Their rate is not said in
    the supplement: that of training from scratch is taken, as their last layer is new.

    Parameters
    ----------
    architecture : str
        The network.
    weights : str
        File of the pretrained weights; without it, only scratch and blind are trained.
    augmentation : sequence of str
        Of the images.
    """
    usual = {
        "architecture": architecture,
        "optimiser": "adamw",
        "rate": 1e-3,
        "weight_decay": 1e-4,
        "batch": 64,
        "epochs": 64,
        "schedule": "early-stop",
        "validation": 0.2,
        "patience": 16,
        "augmentation": list(augmentation),
    }
    learners: dict[str, Any] = {"scratch": usual}
    if weights:
        pretrained = usual | {"weights": weights}
        learners["pretrained"] = pretrained | {"rate": 1e-4}
        learners["frozen"] = {k: v for k, v in pretrained.items() if k != "augmentation"}
        learners["frozen"]["trained"] = "head"
    learners["blind"] = {"estimator": "sklearn.dummy:DummyClassifier", "strategy": "prior"}
    return {
        "training": usual,
        "learners": learners,
        "design": {"sizes": list(SHARES), "folds": 1, "seeds": 2},
        "keep": {"probabilities": True},
    }
