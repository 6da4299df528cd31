"""Corpora of models for perturbation response as in Schiff et al. 2021."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curvewise.errors import InputError

DEPTHS = {
    "vgg": ["vgg11", "vgg13", "vgg16", "vgg19"],
    "resnet": ["resnet18", "resnet34", "resnet50"],
}
BATCHES = (1024, 2048, 4096)
RATES = (1e-4, 1e-5)
SHARES = (0.0, 0.5, 1.0)

REACH = {"rotation": 180.0, "shift-x": 0.5, "shift-y": 0.5, "colour": 0.25}
"""How far each perturbation goes to either side, table 2; 90 degrees for digits."""


def response(
    family: str = "vgg",
    perturbation: str = "rotation",
    reach: float | None = None,
    widths: Sequence[int] = (),
) -> dict[str, Any]:
    """A corpus of models that differ in depth, batch norm, batch, rate, and augmentation.

    Schiff et al. 2021, Predicting Generalization with Perturbation Response Curves, section 4.2.1
    and appendix A.9: VGG of 11, 13, 16 and 19 layers with and without batch norm, or ResNet-18, -34
    and -50; batches of 1024, 2048 and 4096; rates of 1e-4 and 1e-5; Adam; the rate falls when the
    training loss stalls; 5% of the training set is held out. Each is trained without augmentation,
    with random perturbations of up to half the range, and of the whole range. The table of the
    study has gap, train_error and the hyperparameters of every model.

    Beside the test set there is one that is perturbed at random over the whole range, a magnitude
    drawn for each image; its gap is what the paper's scores are to predict. Epochs and patience are
    not said: at most 200 and 10 are taken. Width is not varied in this section but is in the
    competition that the paper is about: ``widths`` adds it.

    Parameters
    ----------
    family : {"vgg", "resnet"}
        Which networks.
    perturbation : {"rotation", "shift-x", "shift-y", "colour"}
        What is augmented and tried.
    reach : float, optional
        How far it goes: 180 degrees, half of the image, or 0.25 for colour; the paper takes 90
        degrees for digits.
    widths : sequence of int
        Channels of the first layer; as usual if empty.
    """
    if family not in DEPTHS:
        raise InputError(f"family={family!r}: use one of {', '.join(DEPTHS)}.")
    if perturbation not in REACH and reach is None:
        raise InputError(
            f"perturbation={perturbation!r}: use one of {', '.join(REACH)}, or say reach=."
        )
    full = REACH[perturbation] if reach is None else reach
    usual = {
        "architecture": DEPTHS[family][0],
        "optimiser": "adam",
        "batch": BATCHES[0],
        "rate": RATES[0],
        "epochs": 200,
        "schedule": "plateau",
        "patience": 10,
        "validation": 0.05,
    }
    grid: dict[str, Any] = {"architecture": DEPTHS[family]}
    grid |= {"batch_norm": [False, True]} if family == "vgg" else {}
    grid |= {"width": list(widths)} if widths else {}
    grid |= {"batch": list(BATCHES), "rate": list(RATES)}
    grid["augmentation"] = [[f"{perturbation}:{s * full:g}"] if s else [] for s in SHARES]
    return {
        "training": usual,
        "learners": {family: usual},
        "design": {"grid": grid},
        "evaluate": {
            perturbation: {"perturbation": perturbation, "magnitude": [-full, full]},
        },
        "keep": {"checkpoints": "end"},
    }
