"""Protocols of the papers by name, each a study without its data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from curvewise.errors import InputError, arg
from curvewise.nn.training import Training
from curvewise.study.data.dataset import binary_groupings
from curvewise.study.spec.design import check_keys

# Learning curves as in Hoiem et al. 2021.

RATES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)
PROTOCOLS: dict[str, dict[str, Any]] = {
    "cifar": {"augmentation": ["translate:4"], "sizes": [0.0625, 0.125, 0.25, 0.5, 1.0], "folds": [16, 8, 4, 2, 1]},
    "places": {
        "augmentation": ["resized-crop:0.08", "flip"],
        "sizes": ["25/class", "50/class", "100/class", "200/class", "400/class", "1600/class"],
        "folds": [16, 8, 4, 3, 3, 1],
    },
    "small": {
        "augmentation": ["resized-crop:0.08", "flip"],
        "sizes": [0.25, 0.5, 1.0],
        "folds": [4, 2, 1],
        "patience": {"patience": 15, "patience_n": "largest"},
    },
}
"""Differences between the data sets: appendix A."""


def learning(
    architecture: str = "resnet18",
    weights: str | Mapping[str, str] | None = None,
    members: int = 6,
    augmentation: Sequence[str] | None = None,
    protocol: str = "cifar",
) -> dict[str, Any]:
    """Learning curves of a network: everything trained, only the last layer, and an ensemble.

    Hoiem et al. 2021, Learning Curves for Analysis of Deep Networks, section 4 and appendix A:
    a fifth of the data is held out, also where the data has a test set of its own, which is not used
    (``hold_out``); 16, 8, 4, 2 and 1 disjoint subsets of 1/16, 1/8, 1/4, 1/2 and all of the rest
    (25 to 400 examples per class of CIFAR-100); the learning rate is searched on
    one subset; the schedule of each subset is found on two thirds of it, watching the last third
    with a patience of 5 epochs at 400 examples per class that goes as n^-1/2, falls twice to a
    tenth from the best epoch, and is then followed on the whole subset. Batches of 64, weight
    decay 1e-4, Ranger. Only the last layer, or all, are trained on augmented images.

    The paper does not say which rates were searched: those are taken that its table 3 names. It
    limits the epochs by patience only; here 200 is the most. It enlarges all images to 224 × 224;
    here they have the size of the data: say ``size=224`` there, which networks with ImageNet weights
    need (their last maps are 1 × 1 for images of 32 × 32). CIFAR's binary files take no ``size``.
    Random resized crops are cut from what the data holds, which is already the middle of an image.
    Its networks start from ImageNet weights unless it says otherwise: give their file as ``weights``.

    Parameters
    ----------
    architecture : str
        The network.
    weights : str or dict of str to str, optional
        File of pretrained weights, or names and files of several (figure 6); with it, networks
        start from each of them and from random ones.
    members : int
        Networks in the ensemble, which starts from the first of the weights.
    augmentation : sequence of str, optional
        Of the images; by default that of the protocol.
    protocol : {"cifar", "places", "small"}
        Which data set's protocol. CIFAR: four pixels of padding and a random crop. Places365: random
        resized crops and flips, 16, 8, 4, 3, 3 and 1 subsets of 25 to 400 and of 1,600 examples per
        class; classes with fewer need ``sizes`` of yours. The small data sets of figure 10: 4, 2 and 1
        subsets of 20, 40 and 80% of all the data, and a patience of 15 epochs at the largest; the
        paper augments them as another one did, here as Places365.
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol={protocol!r}: use one of {', '.join(PROTOCOLS)}.")
    chosen = PROTOCOLS[protocol]
    usual = {
        "architecture": architecture,
        "optimiser": "ranger",
        "rate": list(RATES),
        "weight_decay": 1e-4,
        "batch": 64,
        "epochs": 200,
        "schedule": "searched",
        "augmentation": list(chosen["augmentation"] if augmentation is None else augmentation),
        **chosen.get("patience", {}),
    }
    if not isinstance(weights, str | Mapping | None):
        raise InputError("give the path of a file, or a table of names and paths.", argument="weights", value=weights)
    files = _files(weights or "")
    if taken := {"scratch", "ensemble"} & set(files):
        problem = f"names {', '.join(sorted(taken))}, which the recipe trains anyway: call these weights otherwise."
        raise InputError(problem, argument="weights")
    starts: dict[str, dict[str, Any]] = {"scratch": {}} | {name: {"weights": file} for name, file in files.items()}
    learners: dict[str, Any] = {}
    for name, begins in starts.items():
        learners[name] = usual | begins
        learners[f"{name}-linear"] = usual | begins | {"trained": "head"}
    first = next(iter(files), "scratch")
    learners["ensemble"] = usual | starts[first] | {"members": members}
    return {
        "training": usual,
        "learners": learners,
        "design": {"sizes": chosen["sizes"], "folds": chosen["folds"], "test": 0.2, "hold_out": True},
    }


# Variance between runs as in Jordan 2023.

EPOCHS = (0, 4, 16, 64)
SOURCE_EPOCHS = (1, 4, 16, 32, 64, 128)
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


def variance(architecture: str = "resnet9", epochs: Sequence[float] = EPOCHS) -> dict[str, Any]:
    """Many runs of one training at four lengths, with all three seeds varied.

    Jordan 2023, On the Variance of Neural Network Training, section 2 and appendix A.1: a ResNet
    of nine layers for 0, 4, 16 and 64 epochs, batches of 500, SGD with a rate of 0.5 that falls
    linearly to 0, momentum 0.9, weight decay 5e-4; flips, shifts of 2 pixels and a cut-out of 12.

    The paper made 60,000 runs of each length; here 100, which ``seeds`` changes. It does not say
    at which precision; here float32 (``precision = "bfloat16"`` is quicker on a GPU).

    Parameters
    ----------
    architecture : str
        The network.
    epochs : sequence of float
        Lengths of the training.
    """
    return _resnet9(architecture, {"grid": {"epochs": list(epochs)}})


def _resnet9(architecture: str, design: Mapping[str, Any]) -> dict[str, Any]:
    """The training of the paper's core experiments, many times."""
    return _alone(RESNET9 | {"architecture": architecture}, {"seeds": 100, "vary": ALL, **design})


def _alone(usual: dict[str, Any], design: Mapping[str, Any], name: str | None = None, **tables: Any) -> dict[str, Any]:
    """A study of one network, called by its architecture."""
    name = name or usual["architecture"].replace(":", "-")
    return {"training": usual, "learners": {name: usual}, "design": dict(design), **tables}


def variance_sources(
    architecture: str = "resnet9", epoch: float | Sequence[float] = 0, epochs: Sequence[float] = SOURCE_EPOCHS
) -> dict[str, Any]:
    """The effect of each source of randomness alone, and of a nudge of a single weight.

    Jordan 2023, appendix D: the same training with all three seeds varied, with only one of
    initial weights, order and augmentation varied, and with one weight multiplied by 1.001.
    ``study.sources(epochs=4)`` compares the sources, ``study.twins(epochs=4)`` the nudged runs with
    those of the same seeds.

    Six experiments of ``seeds`` runs each and length, as one study: ``vary`` holds six lists. The
    nudge comes with all seeds varied, which makes a twin of each run of the first experiment, and
    with nothing else varied. The paper made 4,000 runs of each; here 100, at the lengths that its
    appendix names.

    Parameters
    ----------
    architecture : str
        The network.
    epoch : float or sequence of float
        When the weight is nudged; several for the right half of figure 11: ``[0, 1, 4, 16]``.
    epochs : sequence of float
        Lengths of the training.
    """
    vary = [ALL, ["init"], ["order"], ["augmentation"], [*ALL, "poke"], ["poke"]]
    several = list(epoch) if isinstance(epoch, Sequence) else epoch
    poke = {"epoch": several, "factor": 1.001}
    return _resnet9(architecture, {"vary": vary, "poke": poke, "grid": {"epochs": list(epochs)}})


def variance_binary(architecture: str = "resnet9", classes: int = 10, tasks: int | None = None) -> dict[str, Any]:
    """A network for every way to split the classes in two, many times each.

    Jordan 2023, section 3.4 and figure 6: 511 binary tasks out of the ten classes of CIFAR-10, whose
    variance between runs is held against err/2n. How many runs of each, and for how many epochs, is
    not given: here 20 of 64 epochs. :func:`~curvewise.variance.measure_bipartitions` takes the runs,
    one task after another, or those of a training with all classes, whose votes it collapses.

    Parameters
    ----------
    architecture : str
        The network.
    classes : int
        Classes of the data.
    tasks : int, optional
        Draw so many of the tasks; by default all.
    """
    return _resnet9(architecture, {"seeds": 20, "grid": {"classes": binary_groupings(classes, tasks)}})


def variance_rates(architecture: str = "resnet9") -> dict[str, Any]:
    """The same training at thirteen learning rates.

    Jordan 2023, section 4.3 and figure 8: every power of two from 2^-10 to 2^2, 64 epochs. The paper
    made 1,000 runs of each; here 100. ``cw.variance.measure_sweep(study.predictions_by("rate"))``
    decomposes the variance along them.
    """
    return _resnet9(architecture, {"grid": {"rate": [2.0**k for k in range(-10, 3)]}})


def variance_augmentation(architecture: str = "resnet9") -> dict[str, Any]:
    """With and without augmentation, on all of the data and on a fifth of it.

    Jordan 2023, section 4.2 and figure 7: no augmentation, or a fixed fifth of the training examples,
    give the same mean accuracy and very different variance. Here all four trainings, 100 runs of
    each; the number of runs is not given in the paper.
    """
    grid = {"augmentation": [RESNET9["augmentation"], []]}
    return _resnet9(architecture, {"sizes": [0.2, 1.0], "folds": 1, "grid": grid})


def variance_imagenet(architecture: str = "resnet18", stem: str = "imagenet") -> dict[str, Any]:
    """Many runs of an ImageNet training, for several test sets.

    Jordan 2023, section 4.4 and appendix A.2 and C: ResNet-18 for 100 epochs, batches of 1024, SGD
    with a rate that rises linearly to 0.5 over the first 2 epochs and falls linearly to 0, momentum
    0.9, weight decay 5e-5; flips and random resized crops at a resolution of 192. The rate starts at
    0 and not at 5e-5. The share of the area that a crop keeps is not given: 0.08 to 1, as usual.

    The paper made 1,000 runs; here 100. The resolution is that of the data: ``data = { path =
    "imagenet", size = 192 }``. Further test sets (ImageNet-V2, -R, -Sketch, ObjectNet) go into
    ``evaluate``, each with ``data`` of its own. Images that do not fit on the device are streamed.

    Parameters
    ----------
    architecture : str
        The network.
    stem : {"imagenet", "small", ""}
        First layers of a ResNet: stride 4 for large images; "" where the network has no such option.
    """
    usual = RESNET9 | {"architecture": architecture, "weight_decay": 5e-5, "batch": 1024, "epochs": 100, "warmup": 0.02}
    usual |= {"augmentation": ["flip", "resized-crop:0.08"]}
    usual |= {"stem": stem} if stem else {}
    return _alone(usual, {"seeds": 100, "vary": ALL})


FAST_BATCH = 2_000


def variance_fast(precision: str = "bfloat16") -> dict[str, Any]:
    """Many runs of a network that is trained in a second: the training of the speed record for CIFAR-10.

    Jordan 2024, 94% on CIFAR-10 in 3.29 Seconds on a Single GPU (arXiv 2404.00498), and the variant with Muon of its
    repository: a frozen layer that whitens patches of 2×2 pixels (``first_layer``), whose bias is trained for the
    first 3 epochs; six 3×3 convolutions with batch norm of a fixed scale; 8 epochs, batches of 2,000, label smoothing
    of 0.2, alternating flips and reflected shifts of 2 pixels. Filters by Muon with a rate of 0.24, momentum 0.6 and 3
    steps of its iteration, each bank rescaled before the step; biases and the last layer by SGD with Nesterov's
    momentum of 0.85. All rates fall linearly to 0. The set ``averaged`` is the test set seen as the paper sees it: half
    of the weight on the image and its mirror image, half on two copies that are moved by a pixel.

    The paper sums the loss over the batch; here it is the mean, so that its rates for SGD are multiplied and its decays
    divided by 2,000. It computes in float16; here in bfloat16, and weights are float32. The constants were tuned for
    colour images of 32×32 pixels: other sizes and colour counts are trained with the same. A CPU needs
    ``precision="float32"``.

    Parameters
    ----------
    precision : {"bfloat16", "float16", "float32"}
        Of the arithmetic.
    """
    sgd = {"optimiser": "sgd", "momentum": 0.85}
    # Published for the summed loss: rates of 0.053 and 0.67, and a decay of 2e-6 · batch over the rate.
    biases = {**sgd, "rate": 0.053 * FAST_BATCH, "weight_decay": 2e-6 / 0.053}
    head = {**sgd, "rate": 0.67 * FAST_BATCH, "weight_decay": 2e-6 / 0.67}
    usual = {
        "architecture": "speednet",
        "first_layer": "whitening",
        "optimiser": "muon",
        "rate": 0.24,
        "momentum": 0.6,
        "nesterov": True,
        "newton_schulz": 3,
        "rescale_filters": True,
        "groups": {"first_layer.bias": {**biases, "epochs": 3}, "network.*bias": biases, "network.head.weight": head},
        "batch": FAST_BATCH,
        "epochs": 8,
        "schedule": "linear",
        "label_smoothing": 0.2,
        "augmentation": ["alternating-flip", "crop:2"],
        "precision": precision,
    }
    return _alone(usual, {"seeds": 100, "vary": ALL}, evaluate={"averaged": {"views": ["mirror", "shift:1"]}})


def variance_linear() -> dict[str, Any]:
    """A convex model, whose runs all end in the same place.

    Jordan 2023, section 3.4 and figure 7: a regularised linear model on the pixels hardly varies
    between runs. The paper gives neither optimiser nor penalty; here the training of its networks
    with a rate of 0.01, a weight decay of 5e-3 and 64 epochs, and without augmentation.
    """
    usual = {k: v for k, v in RESNET9.items() if k != "augmentation"}
    usual |= {"architecture": "linear", "rate": 0.01, "weight_decay": 5e-3}
    return _alone(usual, {"seeds": 100, "vary": ["init", "order"]})


def variance_text(model: str = "", length: int | None = None) -> dict[str, Any]:
    """Fine-tuning a text encoder many times.

    Jordan 2023, section 4.1 and appendix A.3: 3 epochs, batches of 16, Adam with a rate of 2e-5
    that falls linearly to 0. What varies is the new last layer, the order of the examples, and
    dropout, which goes with the seed of the augmentation. The paper made 1,000 runs of BERT-base and
    of BERT-large; here 100.

    For pairs of sentences (MRPC) the data names both columns and the segments: ``data = { path =
    "mrpc.csv", text = ["sentence1", "sentence2"], segments = true, tokenizer = "bert" }``.

    Parameters
    ----------
    model : str
        Folder of a Hugging Face encoder, such as one of BERT's size.
    length : int, optional
        Tokens of an example at most; an option of the model.
    """
    if not model:
        raise InputError("needs model=: the folder of a text encoder.")
    usual = {
        "architecture": model if model.startswith("hf:") else f"hf:{model}",
        "optimiser": "adam",
        "rate": 2e-5,
        "batch": 16,
        "epochs": 3,
        "schedule": "linear",
    }
    usual |= {} if length is None else {"length": length}
    return _alone(usual, {"seeds": 100, "vary": ALL}, "encoder")


# Corpora of models for perturbation response as in Schiff et al. 2021.

DEPTHS = {"vgg": ["vgg11", "vgg13", "vgg16", "vgg19"], "resnet": ["resnet18", "resnet34", "resnet50"]}
BATCHES = (1024, 2048, 4096)
RESPONSE_RATES = (1e-4, 1e-5)
RESPONSE_SHARES = (0.0, 0.5, 1.0)

RANGES = {"rotation": (-180.0, 179.0), "shift-x": (-0.5, 0.5), "shift-y": (-0.5, 0.5), "colour": (-0.25, 0.25)}
"""Lowest and highest magnitude of each perturbation, table 2; ±90 degrees for digits."""


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
    not given: at most 200 and 10 are taken. Width is not varied in this section but is in the
    competition that the paper is about: ``widths`` adds it.

    Parameters
    ----------
    family : {"vgg", "resnet"}
        Which networks.
    perturbation : {"rotation", "shift-x", "shift-y", "colour"}
        What is augmented and tried.
    reach : float, optional
        How far it goes to either side. By default the paper's ranges: -180 to 179 degrees, half of
        the image, or 0.25 for colour; the paper takes 90 degrees for digits.
    widths : sequence of int
        Channels of the first layer; as usual if empty.
    """
    if family not in DEPTHS:
        raise InputError(f"family={family!r}: use one of {', '.join(DEPTHS)}.")
    if perturbation not in RANGES and reach is None:
        raise InputError(f"perturbation={perturbation!r}: use one of {', '.join(RANGES)}, or say reach=.")
    if reach is not None and (isinstance(reach, bool) or not isinstance(reach, int | float) or not reach > 0):
        raise InputError(f"reach={reach!r}: give a number above 0, such as 90 for degrees.")
    low, high = RANGES[perturbation] if reach is None else (-reach, reach)
    usual = {
        "architecture": DEPTHS[family][0],
        "optimiser": "adam",
        "batch": BATCHES[0],
        "rate": RESPONSE_RATES[0],
        "epochs": 200,
        "schedule": "plateau",
        "patience": 10,
    }
    grid: dict[str, Any] = {"architecture": DEPTHS[family]}
    grid |= {"batch_norm": [False, True]} if family == "vgg" else {}
    grid |= {"width": list(widths)} if widths else {}
    grid |= {"batch": list(BATCHES), "rate": list(RESPONSE_RATES)}
    # Augmentation draws from both sides alike: up to 180 degrees, which the last degree of the range leaves out.
    grid["augmentation"] = [[f"{perturbation}:{-s * low:g}"] if s else [] for s in RESPONSE_SHARES]
    # 95% are trained on. A validation share would hold the rest out as well, but plateaus would be those of its loss.
    tried = {perturbation: {"perturbation": perturbation, "magnitude": [low, high]}}
    design = {"sizes": [0.95], "folds": 1, "grid": grid}
    return _alone(usual, design, family, evaluate=tried, keep={"checkpoints": "end"})


# Transfer with its controls as in Atanov et al. 2022.

FEW = ["3/class + 1/class", "5/class + 1/class", "7/class + 1/class", "10/class + 1/class"]
"""Examples of each class to train on, and one more of each to validate on."""
TRANSFER_SIZES = [*FEW, 0.03, 0.0625, 0.125, 0.25, 0.5, 1.0]
EUROSAT_SIZES = ["18 + 1/class", "37 + 1/class", "75 + 1/class", 303, 1215, 4860, 19440]
IMAGENET_SIZES = [31_250, 62_500, 125_000, 250_000, 500_000, 1_000_000]
DENSE_SIZES = [100, 1_000, 10_000, 100_000]
ADAMW: dict[str, Any] = {
    "optimiser": "adamw",
    "rate": 1e-3,
    "batch": 64,
    # At most so many steps; given up after so many without a lower validation error.
    "steps": 40_000,
    "schedule": "early-stop",
    "validation": 0.2,
    "look_every": 500,
    "patience_steps": 10_000,
}


def transfer(
    architecture: str = "resnet50",
    weights: str | Mapping[str, str] = "",
    augmentation: Sequence[str] = ("flip", "translate:4"),
    frozen: bool = True,
) -> dict[str, Any]:
    """Pretrained, frozen and from scratch, between the blind guess and all the data.

    Atanov et al. 2022, Simple Control Baselines for Evaluating Transfer Learning, supplement
    3.3 (CIFAR-100): 3, 5, 7 and 10 examples of each class with one more of each to validate on, then
    3% to 100% of the data with a fifth of each subset to validate on; AdamW with a rate of 1e-3 from
    scratch and 1e-4 when fine-tuning, weight decay 1e-4, batches of 64; at most 40,000 steps at every
    size, given up after 10,000 without a lower validation error; two runs at each size and one on all
    the data; flips and random crops.

    The controls: ``blind`` needs no training, it gives each class its frequency in the subset
    (the best constant for the log-loss; scikit-learn's ``DummyClassifier``). ``maximal`` is the
    least loss at the last size, which is all the data.

    The paper does not say how often it validates: here every 500 steps. It asks for a fall of the
    validation error by 1e-4, which is one of 10,000 images, the most that are held out of CIFAR-100:
    here any fall counts. Frozen networks are no part of the supplement: they are trained as those from
    scratch, as their last layer is new.

    Parameters
    ----------
    architecture : str
        The network.
    weights : str, or dict of str to str
        File of the pretrained weights, or names and files of several; without it, only scratch and
        blind are trained.
    augmentation : sequence of str
        Of the images.
    frozen : bool
        Whether to train the last layer alone, too.
    """
    usual = {"architecture": architecture, **ADAMW, "weight_decay": 1e-4, "augmentation": list(augmentation)}
    learners = _starts(usual, weights, {"rate": 1e-4})
    for name, file in _files(weights).items() if frozen else ():
        still = "frozen" if isinstance(weights, str) else f"{name}-frozen"
        learners[still] = usual | {"weights": file, "trained": "head"}
    learners["blind"] = {"estimator": "sklearn.dummy:DummyClassifier", "strategy": "prior"}
    return {
        "training": usual,
        "learners": learners,
        "design": {"sizes": TRANSFER_SIZES, "folds": 1, "seeds": [2] * (len(TRANSFER_SIZES) - 1) + [1]},
        "keep": {"probabilities": True},
    }


def transfer_eurosat(
    architecture: str = "resnet50", weights: str | Mapping[str, str] = "", frozen: bool = True
) -> dict[str, Any]:
    """Transfer to a folder of images per class without a test set, from two images of each class on.

    Atanov et al. 2022, supplement 3.3 (EuroSAT): a tenth is held out as test set, class by class;
    18, 37 and 75 images, stratified, with one more of each class to validate on, then 303 to 19,440;
    only flips. All else is as for CIFAR-100, recipe ``transfer``, the two runs at each size among it.

    The paper splits 8 : 1 : 1, and does not say of which part its sizes are: here of the nine tenths
    that are no test set, a fifth of each size from 303 on held out to validate on.

    Parameters
    ----------
    architecture, weights, frozen
        As of :func:`transfer`.
    """
    found = transfer(architecture, weights, ("flip",), frozen)
    seeds = [2] * (len(EUROSAT_SIZES) - 1) + [1]
    return found | {"design": {"sizes": EUROSAT_SIZES, "folds": 1, "seeds": seeds, "test": 0.1}}


def transfer_imagenet(architecture: str = "resnet50", weights: str | Mapping[str, str] = "") -> dict[str, Any]:
    """Transfer to a large folder of images per class, from 31,250 images to a million.

    Atanov et al. 2022, supplement 3.3 (ImageNet): SGD with momentum 0.9 and weight decay 1e-4, 100
    epochs, batches of 256; a rate of 0.1 that rises for 5 epochs and falls to a tenth every 30; flips
    and random resized crops. The test set is the folder's own, 50,000 images for ImageNet.

    The paper holds out a fifth of each subset and does not say what for: this schedule needs no
    validation, and here the whole subset is trained on. The rate is given for the pretrained; here it
    is that of scratch, too. The least area of a crop is not given: 0.08, as is usual.

    Parameters
    ----------
    architecture, weights
        As of :func:`transfer`.
    """
    usual = {
        "architecture": architecture,
        "optimiser": "sgd",
        "momentum": 0.9,
        "rate": 0.1,
        "weight_decay": 1e-4,
        "batch": 256,
        "epochs": 100,
        "schedule": "drops",
        "drops": [0.3, 0.6, 0.9],
        "warmup": 0.05,
        "validation": 0.0,
        "augmentation": ["resized-crop:0.08", "flip"],
    }
    learners = _starts(usual, weights, {})
    learners["blind"] = {"estimator": "sklearn.dummy:DummyClassifier", "strategy": "prior"}
    design = {"sizes": IMAGENET_SIZES, "folds": 1, "seeds": 1}
    return {"training": usual, "learners": learners, "design": design, "keep": {"probabilities": True}}


def transfer_dense(architecture: str = "unet6", weights: str | Mapping[str, str] = "") -> dict[str, Any]:
    """Transfer to images as targets (depth, surface normals, edges): an encoder and six blocks.

    Atanov et al. 2022, supplement 3.2 and 4 (Taskonomy): a ResNet-50 that encodes and a decoder of
    six blocks (``unet6``), L1 loss, AdamW with a rate of 1e-3 and weight decay 1e-3, batches of 64;
    a warm-up of 1,000 steps where the encoder is pretrained; 100, 1,000, 10,000 and 100,000 images
    with a fifth of each to validate on, and 60,000 to test on. Four subsets of 100 and of 1,000 images
    and three of 10,000, to see the spread (section 4).

    How long the paper trains these networks, and what stops it, is not given: here as those for
    CIFAR-100, recipe ``transfer``. Predicted images are kept, for
    :func:`~curvewise.study.predicted_images`: 16 GB a run for 60,000 of 256 × 256 pixels, which the
    plan counts; ``keep={"predictions": False}`` or a smaller ``test`` saves them. The blind guess is
    computed by :func:`~curvewise.study.transfer_risks`.

    Parameters
    ----------
    architecture : str
        The network, with a part called ``encoder`` for the weights; ``unet6`` has the options
        ``encoder`` (``"resnet50"``), ``width`` and ``stem``.
    weights : str, or dict of str to str
        File of the pretrained encoder, or names and files of several; without it, only scratch is
        trained.
    """
    usual = {"architecture": architecture, "loss": "l1", **ADAMW, "weight_decay": 1e-3}
    started = {"weights_into": "encoder", "warmup": 1_000 / ADAMW["steps"]}
    return {
        "training": usual,
        "learners": _starts(usual, weights, started),
        "design": {"sizes": DENSE_SIZES, "folds": [4, 4, 3, 1], "test": 60_000},
        "keep": {"predictions": True},
    }


def _files(weights: str | Mapping[str, str]) -> dict[str, str]:
    """Names and files of pretrained weights; a single file is called pretrained."""
    return ({"pretrained": weights} if weights else {}) if isinstance(weights, str) else dict(weights)


def _starts(usual: dict[str, Any], weights: str | Mapping[str, str], tuned: Mapping[str, Any]) -> dict[str, Any]:
    """Learners from scratch and from each file of weights, the latter with settings of their own."""
    return {"scratch": usual} | {name: usual | {"weights": file, **tuned} for name, file in _files(weights).items()}


# Ground truth for ranking checkpoints as in Li et al. 2021.

RANKING_RATES = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5)
STEPS = (2500, 5000, 10000, 15000, 20000, 40000)


def ranking(
    architecture: str = "resnet50", checkpoints: Mapping[str, str] | None = None, scratch: bool = True
) -> dict[str, Any]:
    """Fine-tune every checkpoint over rates and lengths; its truth is the least error.

    Li et al. 2021, Ranking Neural Checkpoints, appendix A.2: 8 rates and 6 numbers of steps,
    batches of 512, SGD with momentum 0.9, no augmentation, no weight decay; for training from
    scratch a decay of 0.01 times the rate, decoupled (``sgdw``): momentum does not carry it on.

    The longest training is printed as 400,000 steps, twenty times the one before; 40,000 is taken
    for it. The schedule is not given: the rate falls along a cosine.

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
        "augmentation": [],
    }
    learners: dict[str, Any] = {k: usual | {"weights": v} for k, v in (checkpoints or {}).items()}
    if scratch or not learners:
        learners["scratch"] = usual | {"optimiser": "sgdw", "weight_decay": 0.01}
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
    Rate, decay and batch of the pretraining are not given: 0.1, 1e-4 and 512 are taken.

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
    recipe.__name__.replace("_", "-"): recipe
    for recipe in (
        *(learning, variance, variance_sources, variance_binary, variance_rates, variance_augmentation),
        *(variance_imagenet, variance_fast, variance_linear, variance_text, response),
        *(transfer, transfer_eurosat, transfer_imagenet, transfer_dense, ranking, ranking_checkpoints),
    )
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
            _check_beside_sizes(given.get(table, {}), mine)
            # A poke of a recipe makes no sense beside the user's own variations.
            gone = {"poke"} if "vary" in mine and "poke" not in str(mine["vary"]) else set()
            merged[table] = {**{k: v for k, v in given.get(table, {}).items() if k not in gone}, **mine}
    if not own.get("learners"):
        return {**merged, "learners": learners}, learners
    if not isinstance(own["learners"], Mapping):  # reported later
        return merged, {}
    defaults = {name: learners.get(name, usual) for name in own["learners"]}
    # The file of the recipe is not what a control is like where the pretrained learner is given another.
    plain = {name: {k: v for k, v in table.items() if k != "like"} for name, table in defaults.items()}
    tables = {name: {**plain[name], **t} for name, t in own["learners"].items() if isinstance(t, Mapping)}
    return merged, {name: {**table, **_form(tables, name)} for name, table in defaults.items()}


def _form(tables: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, str]:
    """Give a control the form of the pretrained network: it differs in its weights alone, also where those choose it.

    Parameters
    ----------
    tables : dict of str to dict
        All learners.
    name : str
        Of the learner, which is a control where another of the same architecture has weights and it has none.
    """
    table = tables.get(name, {})
    own = any(key in table for key in ("like", "stem", "estimator", "command")) or table.get("weights")
    if own or "stem" in (table.get("options") or ()):
        return {}
    alike = (t for t in tables.values() if t.get("weights") and t.get("architecture") == table.get("architecture"))
    return next(({"like": t["weights"]} for t in alike), {})


def _check_beside_sizes(design: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    """Refuse sizes of one's own that are more or fewer than the recipe's folds or seeds, where these are lists."""
    sizes = mine.get("sizes")
    for name in ("folds", "seeds"):
        there = design.get(name)
        if name in mine or not isinstance(there, list) or not isinstance(sizes, Sequence) or len(sizes) == len(there):
            continue
        raise InputError(
            f"{name} of the recipe is {there}, one for each of its {len(there)} sizes, and sizes has {len(sizes)}.",
            remedy=f"Say {arg(name)} too: one number for all sizes, or one for each.",
        )


def recipe_document(recipe: Any) -> dict[str, Any]:
    """Give the tables of a recipe: its name, or a table with its name and options."""
    asked = {"name": recipe} if isinstance(recipe, str) else recipe
    if not isinstance(asked, Mapping) or not isinstance(asked.get("name"), str):
        raise InputError(f"recipe={recipe!r}: give one of {', '.join(RECIPES)}, or a table with its name.")
    check_keys({asked["name"]: None}, list(RECIPES))
    make = RECIPES[asked["name"]]
    given = {k: v for k, v in asked.items() if k != "name"}
    takes = list(inspect.signature(make).parameters)
    has_network = bool({"architecture", "family"} & set(takes))
    check_keys(given, [*takes, *(["options"] if has_network and "options" not in takes else [])])
    options = given.pop("options", {}) if "options" not in takes else {}
    return _with_options(make(**given), options)


def _with_options(document: dict[str, Any], options: Any) -> dict[str, Any]:
    """Give every network of a recipe options of its architecture; those from scratch, the form of the pretrained."""
    if not isinstance(options, Mapping):
        raise InputError("give a table, such as {'width': 32}.", argument="options", value=options)
    settings = [f.name for f in fields(Training)]
    if wrong := next((name for name in options if name in settings), None):
        problem = f"has {wrong!r}, a setting of the training and no option of the architecture."
        raise InputError(problem, argument="options", remedy="Give it for a learner: learners={'NAME': {…}}.")
    document["training"] = {**document["training"], **options}
    networks = {k: {**v, **options} for k, v in document["learners"].items() if "architecture" in v}
    formed = {name: {**table, **_form(networks, name)} for name, table in networks.items()}
    document["learners"] = {**document["learners"], **formed}
    return document
