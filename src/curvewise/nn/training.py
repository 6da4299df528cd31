"""Settings of a training in plain values, as a study file gives them for one learner; no torch."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from curvewise.errors import InputError, arg, suggest

ROW_ARCHITECTURES = (
    *("linear", "mlp", "cnn", "vgg11", "vgg13", "vgg16", "vgg19", "nin"),
    *("resnet9", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
    *("resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2", "wide_resnet101_2"),
    *("alexnet", "mobilenet_v2", "googlenet", "speednet"),
)
IMAGE_ARCHITECTURES = ("unet", "unet6")
"""Architectures of ours, by what they give for an input: a row of numbers, or an image.

``curvewise.nn.architectures`` has a factory of each name. Those of timm, torchvision and Hugging Face give a row.
"""
SMALLEST_SIDES: dict[tuple[str, str | None], int] = {
    ("alexnet", "imagenet"): 7,
    ("googlenet", "small"): 2,
    ("googlenet", "imagenet"): 15,
    ("speednet", None): 8,
}
"""Pixels that an image needs along either side, by architecture and stem: with fewer nothing is left after pooling."""

PATCH = 2
"""Pixels along either side of the patches that a first layer whitens."""

OPTIMISERS = ("sgd", "sgdw", "adam", "adamw", "ranger", "muon")
WITH_MOMENTUM = ("sgd", "sgdw", "muon")
"""Optimisers that read ``momentum`` and ``nesterov``."""

GROUP_SETTINGS = ("optimiser", "rate", "momentum", "nesterov", "weight_decay", "epochs")
"""Settings that a group of parameters may have of its own."""

CONTROLLED = ("plateau", "early-stop", "searched")
"""Schedules that look at a validation set, or at the training loss, in the course of the training."""

LARGEST = "largest"
"""Size for ``patience_n`` that a study replaces by the largest size of its design."""

NUMBER_LOSSES = ("l1", "l2")
_CHOICES = {
    "optimiser": OPTIMISERS,
    "schedule": ("constant", "linear", "cosine", "drops", *CONTROLLED),
    "precision": ("float32", "bfloat16", "float16"),
    "trained": ("all", "head"),
    "loss": (None, "cross-entropy", *NUMBER_LOSSES),
    "first_layer": (None, "whitening"),
}
LATER = (
    *("loss", "weights_into", "like", "patience_n", "patience_steps", "look_every"),
    *("nesterov", "newton_schulz", "rescale_filters", "groups", "first_layer"),
)
"""Settings that came later: left out of :meth:`Training.as_dict` where unused, so that ids of older runs hold."""


@dataclass(frozen=True)
class Training:
    """Settings of a training.

    Attributes
    ----------
    architecture : str
        A name of :data:`curvewise.nn.architectures.ARCHITECTURES`; ``"module:function"`` for a
        factory of one's own, called with ``shape, classes, **options``; ``"timm:NAME"``;
        ``"torchvision:NAME"``; ``"hf:PATH"`` for a Hugging Face model in a folder. For targets
        that are numbers, a factory of one's own is given the shape of a target instead of the
        classes, ``(3,)`` or ``(1, 32, 32)``; ``"unet"`` and ``"unet6"`` give images.
    options : dict
        Arguments of the factory beside shape and classes: width, depth, …
    weights : str, optional
        File with initial weights (``.safetensors``, ``.pt``, ``.th``); None for random ones. Where
        the option ``stem`` of an architecture is not given, the network has the stem of the weights.
    trained : {"all", "head"}
        Everything, or only a linear layer on the features that the rest gives.
    optimiser : {"sgd", "sgdw", "adam", "adamw", "ranger", "muon"}
        Stochastic gradient descent with momentum, the same with decoupled decay, Adam, Adam with
        decoupled decay, rectified Adam with look-ahead and centralised gradients, or momentum whose
        direction is made orthogonal, for matrices and banks of filters only. Decoupled
        means that each step shrinks the weights by ``rate * weight_decay`` of themselves, beside
        the step along the gradient (``muon`` does, too); ``sgd`` and ``adam`` add the decay to the gradient.
    rate : float, or tuple of float
        Learning rate. Several are tried on one subset, and the one with the least validation
        error (of numbers, loss) is taken for all.
    momentum, weight_decay, label_smoothing : float
        As usual; momentum is for ``sgd``, ``sgdw`` and ``muon``.
    batch : int
        Examples per step. Smaller training sets are taken whole.
    epochs : float
        Passes over the training set; at most that many where the schedule may stop earlier.
    steps : int, optional
        Steps, instead of epochs; at most that many where the schedule may stop earlier.
    schedule : str
        ``constant``; ``linear`` (down to 0) or ``cosine``; ``drops`` (to a tenth at each of
        ``drops``); ``plateau`` (to a tenth when the training loss stalls for ``patience`` epochs);
        ``early-stop`` (the best epoch on the validation share, given up after ``patience``);
        ``searched`` (found on two thirds of the subset, then followed on all of it).
    warmup : float
        Share of the training over which the rate rises from 0, in equal steps; of the longest
        training (``steps``, or ``epochs``) where the schedule may stop earlier.
    drops : tuple of float
        Shares of the training at which the rate falls to a tenth.
    validation : float or str
        Share of the subset held out for ``early-stop`` and ``plateau``; or ``"1/class"``, so many
        examples of each class.
    patience : float, optional
        Epochs without improvement before the schedule acts. By default ``5 sqrt(400 c / n)`` for
        ``searched`` with c classes, 10 for the others and for numbers.
    patience_n : int or "largest", optional
        Size at which ``patience`` holds; at n examples it is ``patience * sqrt(patience_n / n)``,
        at least 1. A study takes ``"largest"`` for the largest size of its design. Without it, the
        patience is the same at every size.
    patience_steps : int, optional
        Patience in steps instead of epochs, for ``early-stop`` and ``plateau``.
    look_every : int, optional
        Steps after which ``early-stop`` and ``plateau`` look; by default after each epoch.
    augmentation : tuple of str
        ``"flip"``, ``"translate:2"`` (pixels), ``"cutout:12"`` (pixels), ``"rotation:30"``
        (degrees), ``"resized-crop:0.08"`` (least share of the area), …; drawn anew for each example and epoch.
    precision : {"float32", "bfloat16", "float16"}
        Of the arithmetic; weights are float32 always. With ``float16`` the loss is multiplied by about
        the batch on the way back, and gradients are divided by it: small ones would be 0 otherwise.
    loss : {"cross-entropy", "l1", "l2"}, optional
        Loss to minimise: for classes the cross-entropy; for numbers the mean of absolute (``l1``)
        or squared (``l2``, the usual one) differences over the outputs of each example, then over
        examples.
    weights_into : str, optional
        Part of the network that the file of weights fills, such as ``"encoder"`` of a ``unet``;
        the rest is drawn, and a note of the run says what was left out. None for all of it.
    like : str, optional
        File with weights of the same architecture, of which only the form is taken: the network has
        the stem of theirs and starts from random weights, as the control of a pretrained one should.
    nesterov : bool, optional
        Look ahead along the velocity (Nesterov's momentum). By default ``muon`` does and ``sgd`` does not.
    newton_schulz : int, optional
        Steps of the iteration that makes the direction of ``muon`` orthogonal; 5 by default.
    rescale_filters : bool, optional
        Rescale each matrix or bank of filters to the norm √(number of filters) before a step of ``muon``.
    groups : dict of str to dict, optional
        Parameters that are trained otherwise, by their names in the network, where ``*`` stands for
        anything: ``{"*bias": {"optimiser": "sgd", "rate": 0.1}}``. A group may have its own
        ``optimiser``, ``rate``, ``momentum``, ``nesterov``, ``weight_decay``, and ``epochs``, after which
        its parameters stay as they are and over which its rate follows the schedule. All else is as for
        the other parameters; rates rise and fall together.
    first_layer : {"whitening"}, optional
        A frozen layer in front of the network that whitens patches of 2×2 pixels: a convolution by the
        principal directions of the patches of at most 5,000 of the run's training images, and their
        negatives, a trained bias, and GELU. The parameters of the network are then called ``network.…``, the bias
        ``first_layer.bias``.
        Unused beside ``weights``.

    Examples
    --------
    >>> Training("mlp", options={"width": 64}, rate=0.1, epochs=20).batch
    64
    """

    architecture: str = "mlp"
    options: Mapping[str, Any] = field(default_factory=dict)
    weights: str | None = None
    trained: str = "all"
    optimiser: str = "sgd"
    rate: float | tuple[float, ...] = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    batch: int = 64
    epochs: float = 20
    steps: int | None = None
    schedule: str = "linear"
    warmup: float = 0.0
    drops: tuple[float, ...] = ()
    validation: float | str = 0.0
    patience: float | None = None
    augmentation: tuple[str, ...] = ()
    precision: str = "float32"
    loss: str | None = None
    weights_into: str | None = None
    like: str | None = None
    patience_n: int | str | None = None
    patience_steps: int | None = None
    look_every: int | None = None
    nesterov: bool | None = None
    newton_schulz: int | None = None
    rescale_filters: bool | None = None
    groups: Mapping[str, Mapping[str, Any]] | None = None
    first_layer: str | None = None

    def __post_init__(self) -> None:
        for name in (f.name for f in fields(self)):
            if isinstance(given := getattr(self, name), np.ndarray | np.generic):
                object.__setattr__(self, name, given.tolist())
        # Lists become tuples, so that settings compare alike wherever they came from.
        for name in ("rate", "drops", "augmentation"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        if isinstance(self.augmentation, str):
            object.__setattr__(self, "augmentation", (self.augmentation,))
        self._check_kinds()
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                remedy = f"Use one of {', '.join(filter(None, allowed))}."
                raise misfit(name, getattr(self, name), "not known.", remedy)
        for rate in self.rates:
            _check_number("rate", rate, above=0)
        for drop in self.drops:
            _check_number("drops", drop, above=0, below=1)
        _check_number("batch", self.batch, above=0, whole=True)
        for name in ("epochs", "weight_decay"):
            _check_number(name, getattr(self, name), least=0)
        per_class = isinstance(self.validation, str)
        if isinstance(self.validation, str) and not re.fullmatch(r"[1-9]\d*/class", self.validation):
            raise misfit("validation", self.validation, "Give a share such as 0.2, or '1/class'.")
        for name in ("momentum", "label_smoothing", "warmup", *(() if per_class else ("validation",))):
            _check_number(name, getattr(self, name), least=0, below=1)
        if self.steps is not None:
            _check_number("steps", self.steps, least=0, whole=True)
        if self.patience is not None:
            _check_number("patience", self.patience, above=0)
        for name in ("patience_n", "patience_steps", "look_every", "newton_schulz"):
            if getattr(self, name) not in (None, LARGEST if name == "patience_n" else None):
                _check_number(name, getattr(self, name), above=0, whole=True)
        self._check_agreement()
        # 20 and 20.0, one rate and a list of it, are one training and must have one id.
        for name in ("momentum", "weight_decay", "label_smoothing", "epochs", "warmup", "validation", "patience"):
            if getattr(self, name) is not None and not (name == "validation" and per_class):
                object.__setattr__(self, name, float(getattr(self, name)) + 0.0)  # which makes 0.0 of -0.0
        object.__setattr__(self, "drops", tuple(float(drop) for drop in self.drops))
        rates = sorted(float(rate) for rate in self.rates)
        object.__setattr__(self, "rate", tuple(rates) if len(rates) > 1 else rates[0])
        if self.groups is not None:
            object.__setattr__(self, "groups", {name: self._settled_group(name) for name in self.groups} or None)

    def _settled_group(self, name: str) -> dict[str, Any]:
        """Return what a group of parameters has of its own, its numbers as those of the training."""
        own: Any = (self.groups or {})[name]
        if not isinstance(own, Mapping) or not own or not set(own) <= set(GROUP_SETTINGS):
            problem = (
                f"has {name!r}: {own!r}." if isinstance(own, Mapping) else f"has {name!r}: {own!r}, which is no table."
            )
            raise InputError(problem, argument="groups", remedy=f"Give some of {', '.join(GROUP_SETTINGS)}.")
        try:
            alone = self.group_training(name)
            _check_number("epochs", own.get("epochs", 1), above=0)
            if isinstance(own.get("rate"), list | tuple):
                raise misfit("rate", own["rate"], "a group has one rate.", "Give a number.")
            if "epochs" in own and self.controlled:
                raise misfit(
                    "epochs", own["epochs"], f"needs a schedule that is known beforehand, not {self.schedule}."
                )
            for setting in ("momentum", "nesterov"):
                if setting in own and alone.optimiser not in WITH_MOMENTUM:
                    raise misfit(setting, own[setting], f"changes nothing with {arg('optimiser', alone.optimiser)}.")
        except InputError as error:
            raise InputError(f"groups[{name!r}]: {error}") from error
        return {
            key: float(own[key]) if key == "epochs" else getattr(alone, key) for key in GROUP_SETTINGS if key in own
        }

    def group_training(self, name: str) -> Training:
        """Return the training of a group of parameters, as if they were all there are.

        >>> muon = Training(optimiser="muon", groups={"*bias": {"optimiser": "sgd", "rate": 0.5}})
        >>> muon.group_training("*bias").optimiser
        'sgd'
        """
        own: dict[str, Any] = {key: value for key, value in (self.groups or {})[name].items() if key != "epochs"}
        return replace(self, groups=None, **own)

    def _check_kinds(self) -> None:
        words = isinstance(self.augmentation, tuple) and all(isinstance(v, str) for v in self.augmentation)
        named = isinstance(self.architecture, str) and self.architecture
        for name, right, remedy in (
            ("augmentation", words, "Give a list of words, such as ['flip']."),
            ("drops", isinstance(self.drops, tuple), "Give a list of shares, such as [0.5, 0.75]."),
            ("architecture", named, "Give a name such as 'mlp', or 'module:function'."),
            ("weights", isinstance(self.weights, str | None) and self.weights != "", "Give the path of a file."),
            ("weights_into", isinstance(self.weights_into, str | None), "Give the name of a part."),
            ("like", isinstance(self.like, str | None) and self.like != "", "Give the path of a file."),
            ("options", isinstance(self.options, Mapping), "Give a dict of names and values."),
            ("nesterov", isinstance(self.nesterov, bool | None), "Give true or false."),
            ("rescale_filters", isinstance(self.rescale_filters, bool | None), "Give true or false."),
            ("groups", isinstance(self.groups, Mapping | None), "Give a table of names and settings."),
        ):
            if not right:
                raise misfit(name, getattr(self, name), remedy)

    def _check_agreement(self) -> None:
        if self.schedule == "drops" and not self.drops:
            raise misfit("schedule", "drops", f"needs {arg('drops')}, the shares of the training, such as [0.5, 0.75].")
        if self.schedule == "early-stop" and not self.validation:
            held = f"needs {arg('validation')}, the share of the subset to hold out, such as 0.2."
            raise misfit("schedule", "early-stop", held)
        if len(set(self.rates)) < len(self.rates):
            raise misfit("rate", list(self.rates), "a value occurs twice.", "Give each once.")
        if not self.rates:
            raise misfit("rate", [], "Give at least one learning rate.")
        if self.weights_into is not None and self.weights is None:
            raise misfit("weights_into", self.weights_into, f"needs {arg('weights')}, the file for that part.")
        if self.steps is not None and self.schedule == "searched":
            raise misfit("schedule", self.schedule, "counts epochs.", f"Give {arg('epochs')}, not {arg('steps')}.")
        if self.patience_n is not None and self.patience is None:
            raise misfit("patience_n", self.patience_n, f"needs {arg('patience')}, the epochs at that size.")
        if self.first_layer is not None and self.trained == "head":
            problem = "is for networks that are trained whole: the last layer alone is trained on features."
            raise misfit("first_layer", self.first_layer, problem, f"Use {arg('trained', 'all')}.")
        if self.patience_steps is not None and self.patience is not None:
            problem = f"stands beside {arg('patience', self.patience)}, which counts epochs."
            raise misfit("patience_steps", self.patience_steps, problem, "Give one of them.")

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates to try; one when it is settled."""
        return self.rate if isinstance(self.rate, tuple) else (self.rate,)

    @property
    def optimisers(self) -> set[str]:
        """The optimiser, and those of the groups of parameters."""
        return {self.optimiser, *(group.get("optimiser", self.optimiser) for group in (self.groups or {}).values())}

    @property
    def controlled(self) -> bool:
        """True if the schedule depends on what is measured during the training."""
        return self.schedule in CONTROLLED

    def batch_for(self, n: int) -> int:
        """Return the examples per step on n training examples."""
        return min(self.batch, n)

    def steps_for(self, n: int) -> int:
        """Return the steps of a whole training on n examples; at most that many if it may stop earlier."""
        if self.steps is not None:
            return self.steps
        # Rounded first: 1.1 · 50 / 5 is a little above 11 in floating point, and would count as 12 steps.
        return math.ceil(round(self.epochs * n / self.batch_for(n), 9))

    def patience_for(self, n: int, usual: float) -> float:
        """Return the patience on n training examples, in epochs, or as usual where none is given.

        >>> Training(schedule="searched", patience=15, patience_n=1600).patience_for(400, 10)
        30.0
        """
        if self.patience is None:
            return usual
        if self.patience_n is None:
            return self.patience
        return max(1.0, self.patience * math.sqrt(int(self.patience_n) / n))

    def idle(self) -> dict[str, tuple[str, str]]:
        """Find settings that were given and change nothing: for each the reason and a remedy.

        A setting that has its default value counts as not given.

        >>> list(Training(schedule="linear", drops=(0.5,), optimiser="adam", momentum=0.5).idle())
        ['momentum', 'drops']
        """
        shares = f"{arg('schedule', 'early-stop')} or {arg('schedule', 'plateau')}"
        moving = ", ".join(arg("optimiser", name) for name in WITH_MOMENTUM)
        # By settings: whether something reads them, and what does.
        readers: dict[tuple[str, ...], tuple[bool, str]] = {
            ("momentum", "nesterov"): (bool(self.optimisers & set(WITH_MOMENTUM)), moving),
            ("newton_schulz", "rescale_filters"): ("muon" in self.optimisers, arg("optimiser", "muon")),
            ("epochs",): (self.steps is None, f"a training without {arg('steps')}, which replaces it"),
            ("drops",): (self.schedule == "drops", arg("schedule", "drops")),
            ("patience", "patience_n"): (self.controlled, f"{shares}, or {arg('schedule', 'searched')}"),
            ("validation", "patience_steps", "look_every"): (self.schedule in ("early-stop", "plateau"), shares),
        }
        usual = {f.name: f.default for f in fields(self)}
        return {
            name: (f"changes nothing here: it is for {where}.", "Leave it out, or train in that way.")
            for names, (read, where) in readers.items()
            for name in names
            if not read and getattr(self, name) != usual[name]
        }

    def as_dict(self) -> dict[str, Any]:
        """Return everything that determines the training, ready for JSON."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {k: v for k, v in plain.items() if k not in LATER or v is not None}
        # Schedules that watch passed over a warm-up before version 0.2: runs of that time are others.
        if self.warmup and self.schedule in CONTROLLED:
            plain["warmup_watched"] = True
        return {k: _plain(v) for k, v in plain.items()}


def _plain(value: Any) -> Any:
    """Return tuples as lists and mappings as dicts, as JSON has them."""
    if isinstance(value, Mapping):
        return {k: _plain(v) if isinstance(v, Mapping) else v for k, v in value.items()}
    return list(value) if isinstance(value, tuple) else value


AUGMENTATIONS: dict[str, str] = {
    "flip": "left to right, for half of the examples",
    "translate": "by whole pixels, up to that many along each axis; 'translate:2'",
    "crop": "out of the image padded by that many reflected pixels; 'crop:4'",
    "cutout": "a square of that side, wholly inside the image; 'cutout:12'",
    "rotation": "by up to that many degrees either way; 'rotation:30'",
    "shift-x": "sideways by up to that share of the width either way; 'shift-x:0.5'",
    "shift-y": "up or down by up to that share of the height; 'shift-y:0.5'",
    "colour": "brightness, contrast, saturation and hue by up to that share; 'colour:0.25'",
    "noise": "normal, of that standard deviation on the scale 0 to 1; 'noise:0.1'",
    "resized-crop": "a part of at least that share of the area, enlarged to the image; 'resized-crop:0.08'",
    "alternating-flip": "left to right, for half of the examples at first, and then each the other way in each epoch",
}
"""Augmentations by name, and the meaning of their number; new ones come last, as draws are numbered by the place."""

MOVES = ("flip", "translate", "crop", "cutout", "alternating-flip")
"""Augmentations that move pixels and do not calculate with them."""

_LARGEST = {"rotation": 180.0, "shift-x": 1.0, "shift-y": 1.0, "colour": 0.5, "noise": math.inf, "resized-crop": 1.0}


def parse_augmentation(specs: tuple[str, ...], shape: tuple[int, ...]) -> list[tuple[str, float]]:
    """Parse specifications of augmentation into names of :data:`AUGMENTATIONS` and their numbers.

    Parameters
    ----------
    specs : tuple of str
        Such as ``("flip", "translate:2")``.
    shape : tuple of int
        Of one input: (channels, height, width).

    Raises
    ------
    InputError
        A specification is not known, or does not fit inputs of this shape.

    Examples
    --------
    >>> parse_augmentation(("flip", "translate:2"), (3, 32, 32))
    [('flip', 0.0), ('translate', 2.0)]
    """
    if specs and len(shape) != 3:
        problem = f"for images, (channels, height, width); one input has shape {tuple(shape)}."
        raise misfit("augmentation", list(specs), problem, "Leave it out.")
    found = []
    for spec in specs:
        kind, colon, text = str(spec).partition(":")
        if kind not in AUGMENTATIONS:
            known = "; ".join(f"{name}: {meaning}" for name, meaning in AUGMENTATIONS.items())
            raise misfit("augmentation", spec, f"not known.{suggest(kind, AUGMENTATIONS)}", f"There are: {known}.")
        found.append((kind, _amount(spec, kind, text if colon else None, shape)))
    return found


def _amount(spec: str, kind: str, text: str | None, shape: tuple[int, ...]) -> float:
    if kind in ("flip", "alternating-flip"):
        if text is not None:
            raise misfit("augmentation", spec, f"{kind!r} takes no number.")
        return 0.0
    whole = kind in MOVES
    side = min(shape[1:])
    largest = side if kind == "cutout" else side - 1 if whole else _LARGEST[kind]
    try:
        value = float(int(text or "")) if whole else float(text or "")
    except ValueError:
        value = math.nan
    if not 0 <= value <= largest or math.isinf(value) or (kind == "resized-crop" and not value):
        number = "whole number" if whole else "number"
        least = "above 0" if kind == "resized-crop" else "from 0"
        bound = "" if math.isinf(largest) else f" to {largest:g}"
        size = f"{shape[1]}×{shape[2]} ({AUGMENTATIONS[kind]})"
        problem = f"Give a {number} {least}{bound} after the colon for images of {size}."
        raise misfit("augmentation", spec, problem)
    return value


VIEWS: dict[str, str] = {
    "mirror": "the image and its mirror image, averaged",
    "shift": "half of the weight on the image, half on two copies that are moved by so many pixels along either "
    "diagonal, edges reflected; 'shift:1'",
}
"""Views of an image whose outputs are averaged, by name (test-time augmentation)."""


def parse_views(specs: Sequence[str], shape: tuple[int, ...]) -> list[tuple[float, int, bool]]:
    """Parse specifications of views: for each view its weight, its shift in pixels, and whether it is mirrored.

    Parameters
    ----------
    specs : sequence of str
        Names of :data:`VIEWS`, each at most once; empty for the image alone.
    shape : tuple of int
        Of one input: (channels, height, width).

    Raises
    ------
    InputError
        A specification is not known, or does not fit inputs of this shape.

    Examples
    --------
    >>> parse_views(["mirror"], (3, 32, 32))
    [(0.5, 0, False), (0.5, 0, True)]
    >>> [shift for _, shift, _ in parse_views(["shift:1"], (3, 32, 32))]
    [0, -1, 1]
    """
    if specs and len(shape) != 3:
        problem = f"for images, (channels, height, width); one input has shape {tuple(shape)}."
        raise misfit("views", list(specs), problem, "Leave it out.")
    shifts, mirrored, seen = [(1.0, 0)], False, set()
    for spec in specs:
        kind, colon, text = str(spec).partition(":")
        if kind not in VIEWS or kind in seen:
            known = "; ".join(f"{name}: {meaning}" for name, meaning in VIEWS.items())
            problem = "stands there twice." if kind in seen else f"not known.{suggest(kind, VIEWS)}"
            raise misfit("views", spec, problem, f"There are: {known}.")
        seen.add(kind)
        if kind == "mirror":
            if colon:
                raise misfit("views", spec, "'mirror' takes no number.")
            mirrored = True
            continue
        side = min(shape[1:])
        if not text.isdecimal() or not 1 <= int(text) < side:
            problem = f"Give a whole number from 1 to {side - 1} after the colon for images of {shape[1]}×{shape[2]}."
            raise misfit("views", spec, problem)
        shifts = [(0.5, 0), (0.25, -int(text)), (0.25, int(text))]
    turned = (False, True) if mirrored else (False,)
    return [(weight / len(turned), shift, turn) for weight, shift in shifts for turn in turned]


def misfit(argument: str, value: Any, problem: str, remedy: str = "") -> InputError:
    """Return the error for a value that cannot be used, its parts in the order of the message."""
    return InputError(problem, argument=argument, value=value, remedy=remedy)


def check_sides(architecture: str, stem: Any, sides: Sequence[int]) -> None:
    """Refuse images that are too small for a network."""
    stem = None if (architecture, None) in SMALLEST_SIDES else str(stem)
    least = SMALLEST_SIDES.get((architecture, stem), 1)
    if min(sides) < least:
        form = "" if stem is None else f"with stem={stem!r} "
        problem = f"{form}needs images of {least}×{least} pixels or more; it is given {sides[0]}×{sides[1]}."
        remedy = "Use stem='small'." if stem == "imagenet" else "Use larger images, or another architecture."
        raise misfit("architecture", architecture, problem, remedy)


def behind_first_layer(training: Training, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of what the network behind a first layer is given, or raise where inputs are no such images.

    >>> behind_first_layer(Training("speednet", first_layer="whitening"), (3, 32, 32))
    (24, 31, 31)
    """
    if training.first_layer is None:
        return shape
    if len(shape) != 3 or min(shape[1:]) <= PATCH:
        problem = f"takes images of more than {PATCH}×{PATCH} pixels; one input has shape {tuple(shape)}."
        raise misfit("first_layer", training.first_layer, problem, "Leave it out.")
    channels, height, width = shape
    return 2 * channels * PATCH**2, height - PATCH + 1, width - PATCH + 1


def check_torchvision_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse weights that torchvision would download."""
    if options.get("weights") is not None:
        problem = f"has weights={options['weights']!r}, which torchvision would download for {name}, and nothing is."
        remedy = f"Fetch the file, and give its path as {arg('weights')} beside the options."
        raise misfit("options", dict(options), problem, remedy)


def _check_number(
    name: str,
    value: Any,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    whole: bool = False,
) -> None:
    kinds = int if whole else int | float
    right = isinstance(value, kinds) and not isinstance(value, bool) and math.isfinite(value)
    if right and least <= value and above < value < below:
        return
    bounds = [f"at least {least:g}"] if least > -math.inf else []
    bounds += [f"above {above:g}"] if above > -math.inf else []
    bounds += [f"below {below:g}"] if below < math.inf else []
    raise misfit(name, value, f"Give a {'whole number' if whole else 'number'} {' and '.join(bounds)}.")
