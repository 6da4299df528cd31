"""Variance between runs as in Jordan 2023."""

from __future__ import annotations

from typing import Any

from curvewise.errors import InputError

EPOCHS = (0, 4, 16, 64)
ALL = ["init", "order", "augmentation"]

RESNET9 = {
    "architecture": "resnet9",
    "optimiser": "sgd",
    "rate": 0.5,
    "momentum": 0.9,
    "weight_decay": 5e-4,
    "batch": 500,
    "epochs": 64,
    "schedule": "linear",
    "augmentation": ["flip", "translate:2", "cutout:12"],
}


def variance(architecture: str = "resnet9") -> dict[str, Any]:
    """Many runs of one training at four lengths, with all three seeds varied.

    Jordan 2023, On the Variance of Neural Network Training, section 2 and appendix A.1: a ResNet
    of nine layers for 0, 4, 16 and 64 epochs, batches of 500, SGD with a rate of 0.5 that falls
    linearly to 0, momentum 0.9, weight decay 5e-4; flips, shifts of 2 pixels and a cut-out of 12.

    The paper made 60,000 runs of each length; here 100, which ``seeds`` changes. It does not say
    at which precision; here float32 (``precision = "bfloat16"`` is quicker on a GPU).
    """
    usual = RESNET9 | {"architecture": architecture}
    return {
        "training": usual,
        "learners": {architecture.replace(":", "-"): usual},
        "design": {"seeds": 100, "vary": ALL, "grid": {"epochs": list(EPOCHS)}},
    }


def variance_sources(architecture: str = "resnet9", epoch: float = 0) -> dict[str, Any]:
    """What each source of randomness does alone, and a nudge of a single weight.

    Jordan 2023, appendix D: the same training with all three seeds varied, with only one of
    initial weights, order and augmentation varied, and with nothing varied but one weight that is
    multiplied by 1.001.

    Five experiments of ``seeds`` runs each and length, as one study: ``vary`` holds five lists.
    The paper made 4,000 runs of each and looked at more lengths; here 100, at 4, 16 and 64 epochs.

    Parameters
    ----------
    architecture : str
        The network.
    epoch : float
        When the weight is nudged; the paper also nudges later.
    """
    found = variance(architecture)
    return found | {
        "design": {
            "seeds": 100,
            "vary": [ALL, ["init"], ["order"], ["augmentation"], ["poke"]],
            "poke": {"epoch": epoch, "factor": 1.001},
            "grid": {"epochs": list(EPOCHS[1:])},
        },
    }


def variance_linear() -> dict[str, Any]:
    """A convex model, whose runs all end in the same place.

    Jordan 2023, section 3.4 and figure 7: a regularised linear model on the pixels hardly varies
    between runs. The paper gives neither optimiser nor penalty; here the training of its networks
    with a rate of 0.01, a weight decay of 5e-3 and 64 epochs, and without augmentation.
    """
    usual = {k: v for k, v in RESNET9.items() if k != "augmentation"}
    usual |= {"architecture": "linear", "rate": 0.01, "weight_decay": 5e-3}
    return {
        "training": usual,
        "learners": {"linear": usual},
        "design": {"seeds": 100, "vary": ["init", "order"]},
    }


def variance_text(model: str = "", length: int | None = None) -> dict[str, Any]:
    """Fine-tuning a text encoder many times.

    Jordan 2023, section 4.1 and appendix A.3: 3 epochs, batches of 16, Adam with a rate of 2e-5
    that falls linearly to 0. What varies is the new last layer, the order of the examples, and
    dropout, which goes with the seed of the augmentation.

    Parameters
    ----------
    model : str
        Folder of a Hugging Face encoder, such as one of BERT's size.
    length : int, optional
        Tokens of an example at most; an option of the model.
    """
    if not model:
        raise InputError("recipe 'variance-text' needs model=: the folder of a text encoder.")
    usual = {
        "architecture": model if model.startswith("hf:") else f"hf:{model}",
        "optimiser": "adam",
        "rate": 2e-5,
        "batch": 16,
        "epochs": 3,
        "schedule": "linear",
    }
    usual |= {} if length is None else {"length": length}
    return {
        "training": usual,
        "learners": {"encoder": usual},
        "design": {"seeds": 100, "vary": ALL},
    }
