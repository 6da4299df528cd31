"""Settings of a training in plain values, as a study file gives them for one learner; no torch."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from curvewise.errors import InputError
from curvewise.text import arg, suggest

ROW_ARCHITECTURES = (
    *("linear", "mlp", "cnn", "vgg11", "vgg13", "vgg16", "vgg19", "nin"),
    *("resnet9", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152"),
    *("resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2", "wide_resnet101_2"),
    *("alexnet", "mobilenet_v2", "googlenet"),
)
IMAGE_ARCHITECTURES = ("unet", "unet6")
"""Architectures of ours, by what they give for an input: a row of numbers, or an image.

``curvewise.nn.architectures`` has a factory of each name. Those of timm, torchvision and Hugging Face give a row.
"""
SMALLEST_SIDES = {("alexnet", "imagenet"): 7, ("googlenet", "small"): 2, ("googlenet", "imagenet"): 15}
"""Pixels that an image needs along either side, by architecture and stem: with fewer nothing is left after pooling."""

OPTIMISERS = ("sgd", "sgdw", "adam", "adamw", "ranger")
CONTROLLED = ("plateau", "early-stop", "searched")
"""Schedules that look at a validation set, or at the training loss, in the course of the training."""

LARGEST = "largest"
"""Size for ``patience_n`` that a study replaces by the largest size of its design."""

NUMBER_LOSSES = ("l1", "l2")
_CHOICES = {
    "optimiser": OPTIMISERS,
    "schedule": ("constant", "linear", "cosine", "drops", *CONTROLLED),
    "precision": ("float32", "bfloat16"),
    "trained": ("all", "head"),
    "loss": ("cross-entropy", *NUMBER_LOSSES),
}
LATER = ("loss", "weights_into", "like", "patience_n", "patience_steps", "look_every")
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
    optimiser : {"sgd", "sgdw", "adam", "adamw", "ranger"}
        Stochastic gradient descent with momentum, the same with decoupled decay, Adam, Adam with
        decoupled decay, or rectified Adam with look-ahead and centralised gradients. Decoupled
        means that each step shrinks the weights by ``rate * weight_decay`` of themselves, beside
        the step along the gradient; ``sgd`` and ``adam`` add the decay to the gradient.
    rate : float, or tuple of float
        Learning rate. Several are tried on one subset, and the one with the least validation
        error (of numbers, loss) is taken for all.
    momentum, weight_decay, label_smoothing : float
        As usual; momentum is for ``sgd`` and ``sgdw``.
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
    precision : {"float32", "bfloat16"}
        Of the arithmetic; weights are float32 always.
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

    def __post_init__(self) -> None:
        # Lists become tuples, so that settings compare alike wherever they came from.
        for name in ("rate", "drops", "augmentation"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        if isinstance(self.augmentation, str):
            object.__setattr__(self, "augmentation", (self.augmentation,))
        self._check_kinds()
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed and not (name == "loss" and value is None):
                raise misfit(name, value, "not known.", f"Use one of {', '.join(allowed)}.")
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
        for name in ("patience_n", "patience_steps", "look_every"):
            if getattr(self, name) not in (None, LARGEST if name == "patience_n" else None):
                _check_number(name, getattr(self, name), above=0, whole=True)
        self._check_agreement()
        # 20 and 20.0, one rate and a list of it, are one training and must have one id.
        for name in ("momentum", "weight_decay", "label_smoothing", "epochs", "warmup", "validation", "patience"):
            if getattr(self, name) is not None and not (name == "validation" and per_class):
                object.__setattr__(self, name, float(getattr(self, name)))
        object.__setattr__(self, "drops", tuple(float(drop) for drop in self.drops))
        rates = sorted(float(rate) for rate in self.rates)
        object.__setattr__(self, "rate", tuple(rates) if len(rates) > 1 else rates[0])

    def _check_kinds(self) -> None:
        words = isinstance(self.augmentation, tuple) and all(isinstance(v, str) for v in self.augmentation)
        for name, right, remedy in (
            ("augmentation", words, "Give a list of words, such as ['flip']."),
            ("drops", isinstance(self.drops, tuple), "Give a list of shares, such as [0.5, 0.75]."),
            (
                "architecture",
                isinstance(self.architecture, str) and self.architecture,
                "Give a name such as 'mlp', or 'module:function'.",
            ),
            ("weights", isinstance(self.weights, str | None), "Give the path of a file."),
            ("weights_into", isinstance(self.weights_into, str | None), "Give the name of a part."),
            ("like", isinstance(self.like, str | None), "Give the path of a file."),
            ("options", isinstance(self.options, Mapping), "Give a dict of names and values."),
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
        if self.patience_steps is not None and self.patience is not None:
            problem = f"stands beside {arg('patience', self.patience)}, which counts epochs."
            raise misfit("patience_steps", self.patience_steps, problem, "Give one of them.")

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates to try; one when it is settled."""
        return self.rate if isinstance(self.rate, tuple) else (self.rate,)

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
        # By setting: whether something reads it, what does, and how to say so.
        watches = self.schedule in ("early-stop", "plateau")
        shares = f"{arg('schedule', 'early-stop')} or {arg('schedule', 'plateau')}"
        readers: dict[str, tuple[bool, str]] = {
            "momentum": (self.optimiser in ("sgd", "sgdw"), f"{arg('optimiser', 'sgd')} or {arg('optimiser', 'sgdw')}"),
            "epochs": (self.steps is None, f"a training without {arg('steps')}, which replaces it"),
            "drops": (self.schedule == "drops", arg("schedule", "drops")),
            "validation": (watches, shares),
            "patience": (self.controlled, f"{shares}, or {arg('schedule', 'searched')}"),
            "patience_n": (self.controlled, f"{shares}, or {arg('schedule', 'searched')}"),
            "patience_steps": (watches, shares),
            "look_every": (watches, shares),
        }
        usual = {f.name: f.default for f in fields(self)}
        return {
            name: (f"changes nothing here: it is for {where}.", "Leave it out, or train in that way.")
            for name, (read, where) in readers.items()
            if not read and getattr(self, name) != usual[name]
        }

    def as_dict(self) -> dict[str, Any]:
        """Return everything that determines the training, ready for JSON."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {k: v for k, v in plain.items() if k not in LATER or v is not None}
        # Schedules that watch passed over a warm-up before version 0.2: runs of that time are others.
        if self.warmup and self.schedule in CONTROLLED:
            plain["warmup_watched"] = True
        return {
            k: list(v) if isinstance(v, tuple) else dict(v) if isinstance(v, Mapping) else v for k, v in plain.items()
        }


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
}
"""Augmentations by name, and the meaning of their number."""

MOVES = ("flip", "translate", "crop", "cutout")
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
    if kind == "flip":
        if text is not None:
            raise misfit("augmentation", spec, "'flip' takes no number.")
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


def misfit(argument: str, value: Any, problem: str, remedy: str = "") -> InputError:
    """Return the error for a value that cannot be used, its parts in the order of the message."""
    return InputError(problem, argument=argument, value=value, remedy=remedy)


def check_sides(architecture: str, stem: Any, sides: Sequence[int]) -> None:
    """Refuse images that are too small for a network."""
    least = SMALLEST_SIDES.get((architecture, str(stem)), 1)
    if min(sides) < least:
        problem = (
            f"with stem={stem!r} needs images of {least}×{least} pixels or more; these have {sides[0]}×{sides[1]}."
        )
        remedy = "Use stem='small'." if stem == "imagenet" else "Use larger images, or another architecture."
        raise misfit("architecture", architecture, problem, remedy)


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
