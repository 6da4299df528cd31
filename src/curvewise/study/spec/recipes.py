"""Protocols of the papers by name, each a study without its data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from curvewise.errors import InputError
from curvewise.study.spec.design import check_keys

# Learning curves as in Hoiem et al. 2021.

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


# Variance between runs as in Jordan 2023.

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
    """The effect of each source of randomness alone, and of a nudge of a single weight.

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
        }
    }


def variance_linear() -> dict[str, Any]:
    """A convex model, whose runs all end in the same place.

    Jordan 2023, section 3.4 and figure 7: a regularised linear model on the pixels hardly varies
    between runs. The paper gives neither optimiser nor penalty; here the training of its networks
    with a rate of 0.01, a weight decay of 5e-3 and 64 epochs, and without augmentation.
    """
    usual = {k: v for k, v in RESNET9.items() if k != "augmentation"}
    usual |= {"architecture": "linear", "rate": 0.01, "weight_decay": 5e-3}
    return {"training": usual, "learners": {"linear": usual}, "design": {"seeds": 100, "vary": ["init", "order"]}}


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
    return {"training": usual, "learners": {"encoder": usual}, "design": {"seeds": 100, "vary": ALL}}


# Corpora of models for perturbation response as in Schiff et al. 2021.

DEPTHS = {"vgg": ["vgg11", "vgg13", "vgg16", "vgg19"], "resnet": ["resnet18", "resnet34", "resnet50"]}
BATCHES = (1024, 2048, 4096)
RESPONSE_RATES = (1e-4, 1e-5)
RESPONSE_SHARES = (0.0, 0.5, 1.0)

REACH = {"rotation": 180.0, "shift-x": 0.5, "shift-y": 0.5, "colour": 0.25}
"""Reach of each perturbation to either side, table 2; 90 degrees for digits."""


def response(
    family: str = "vgg", perturbation: str = "rotation", reach: float | None = None, widths: Sequence[int] = ()
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
        raise InputError(f"perturbation={perturbation!r}: use one of {', '.join(REACH)}, or say reach=.")
    full = REACH[perturbation] if reach is None else reach
    usual = {
        "architecture": DEPTHS[family][0],
        "optimiser": "adam",
        "batch": BATCHES[0],
        "rate": RESPONSE_RATES[0],
        "epochs": 200,
        "schedule": "plateau",
        "patience": 10,
        "validation": 0.05,
    }
    grid: dict[str, Any] = {"architecture": DEPTHS[family]}
    grid |= {"batch_norm": [False, True]} if family == "vgg" else {}
    grid |= {"width": list(widths)} if widths else {}
    grid |= {"batch": list(BATCHES), "rate": list(RESPONSE_RATES)}
    grid["augmentation"] = [[f"{perturbation}:{s * full:g}"] if s else [] for s in RESPONSE_SHARES]
    return {
        "training": usual,
        "learners": {family: usual},
        "design": {"grid": grid},
        "evaluate": {perturbation: {"perturbation": perturbation, "magnitude": [-full, full]}},
        "keep": {"checkpoints": "end"},
    }


# Transfer with its controls as in Atanov et al. 2022.

TRANSFER_SHARES = (0.03, 0.0625, 0.125, 0.25, 0.5, 1.0)


def transfer(
    architecture: str = "resnet50", weights: str = "", augmentation: Sequence[str] = ("flip", "translate:4")
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
        "design": {"sizes": list(TRANSFER_SHARES), "folds": 1, "seeds": 2},
        "keep": {"probabilities": True},
    }


# Ground truth for ranking checkpoints as in Li et al. 2021.

RANKING_RATES = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5)
STEPS = (2500, 5000, 10000, 15000, 20000, 40000)


def ranking(
    architecture: str = "resnet50", checkpoints: Mapping[str, str] | None = None, scratch: bool = True
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
        "design": {"grid": {"rate": list(RANKING_RATES), "steps": list(STEPS)}},
    }


def ranking_checkpoints(
    architecture: str = "resnet50",
    stages: Sequence[int] = (90_000, 180_000, 270_000, 300_000),
    augmentation: Sequence[str] = ("resized-crop:0.08", "flip"),
) -> dict[str, Any]:
    """Pretrain, and keep the weights at every drop of the rate and at the end: checkpoints to be ranked.

    Li et al. 2021, section 2.2, group II, and A.4, group IV: a network of each source at four
    stages, kept right after each drop of the learning rate. Stages are 90,000, 180,000, 270,000 and
    300,000 steps for ImageNet and iNaturalist, 60,000, 120,000, 180,000 and 200,000 for Places365;
    the first architecture is ResNet-50, that of group IV ResNet-101. Images are augmented as for
    Inception networks: a random crop of 8 to 100% of the area, resized, and a random mirror image.
    Rate, decay and batch of the pretraining are not said: 0.1, 1e-4 and 512 are taken.

    ``curvewise.study.stage_checkpoints`` makes of the finished study what ``rank_checkpoints`` takes.

    Parameters
    ----------
    architecture : str
        The network.
    stages : sequence of int
        Steps at which weights are kept; the rate drops at all but the last, where training ends.
    augmentation : sequence of str
        Of the images.
    """
    *drops, steps = stages
    usual = {
        "architecture": architecture,
        "optimiser": "sgd",
        "rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 1e-4,
        "batch": 512,
        "steps": steps,
        "schedule": "drops",
        "drops": [step / steps for step in drops],
        "augmentation": list(augmentation),
    }
    return {"training": usual, "learners": {architecture.replace(":", "-"): usual}, "keep": {"checkpoints": "drops"}}


RECIPES: dict[str, Callable[..., dict[str, Any]]] = {
    "learning": learning,
    "variance": variance,
    "variance-sources": variance_sources,
    "variance-linear": variance_linear,
    "variance-text": variance_text,
    "response": response,
    "transfer": transfer,
    "ranking": ranking,
    "ranking-checkpoints": ranking_checkpoints,
}
"""Each gives the tables of a study file, and in ``training`` what holds for any learner."""


def with_recipe(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Put the tables of a document's recipe under its own; also the defaults of each learner."""
    own = {k: v for k, v in document.items() if k != "recipe"}
    given = recipe_document(document["recipe"])
    usual, learners = given.pop("training"), given["learners"]
    merged = {**given, **own}
    for table in ("design", "keep", "evaluate"):
        if isinstance(own.get(table, {}), Mapping):
            mine = own.get(table, {})
            # Folds and pokes of a recipe make no sense beside the user's own sizes and variations.
            gone = {"folds"} if "sizes" in mine else set()
            gone |= {"poke"} if "vary" in mine and "poke" not in str(mine["vary"]) else set()
            merged[table] = {**{k: v for k, v in given.get(table, {}).items() if k not in gone}, **mine}
    if not own.get("learners"):
        return {**merged, "learners": learners}, {}
    return merged, {name: learners.get(name, usual) for name in own["learners"]}


def recipe_document(recipe: Any) -> dict[str, Any]:
    """Give the tables of a recipe: its name, or a table with its name and options."""
    asked = {"name": recipe} if isinstance(recipe, str) else recipe
    if not isinstance(asked, Mapping) or not isinstance(asked.get("name"), str):
        raise InputError(f"recipe={recipe!r}: give one of {', '.join(RECIPES)}, or a table with its name.")
    check_keys({asked["name"]: None}, list(RECIPES))
    make = RECIPES[asked["name"]]
    options = {k: v for k, v in asked.items() if k != "name"}
    check_keys(options, list(inspect.signature(make).parameters))
    return make(**options)
