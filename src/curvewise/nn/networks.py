"""Networks: architectures by name, one's own factories, timm and Hugging Face folders; made and restored.

A factory takes the shape of one input, the number of classes, and options. Weights are drawn from torch's global
generator while a network is made, so that ``torch.manual_seed`` before it fixes them; the order in which layers are
made is therefore part of what a seed stands for.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.devices import own_generator
from curvewise.nn.files.hugging_face import hugging_face_model
from curvewise.nn.files.tensors import load_part, load_weights
from curvewise.nn.own_code import find_function, importable, installed, names_own_code
from curvewise.nn.task import Outputs, check_outputs_of
from curvewise.nn.training import IMAGE_ARCHITECTURES, ROW_ARCHITECTURES, Training, misfit
from curvewise.text import Message, arg


def make_network(training: Training, shape: tuple[int, ...], classes: Outputs, folder: Path | None = None) -> nn.Module:
    """Make the network that a training asks for, with its initial weights, on the CPU.

    Parameters
    ----------
    training : Training
        Its architecture, options and weights are read.
    shape : tuple of int
        Shape of one input.
    classes : int or tuple of int
        Outputs: the number of classes, or the shape of the numbers to predict, (k,) or (channels,
        height, width). A factory of one's own is given it as it is.
    folder : Path, optional
        Where relative paths start, and where the file of a ``"module:function"`` may lie.

    Returns
    -------
    nn.Module
        In training mode. :func:`notes_of` has the remarks about its weights.

    Raises
    ------
    InputError
        The architecture, its options, or the file of weights cannot be used.
    MissingDependencyError
        The package of a foreign architecture is not installed.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> network = make_network(Training("mlp", options={"width": 16}), (1, 8, 8), classes=10)
    >>> sum(p.numel() for p in network.parameters())
    1482
    """
    with torch.device("cpu"):
        model = _made(training, tuple(shape), classes, folder)
        if training.weights is not None:
            path = (folder or Path()) / training.weights
            if training.weights_into is not None:
                notes = load_part(model, training.weights_into, path)
            else:
                # Networks that give images need not have a linear layer.
                dense = isinstance(classes, tuple) and len(classes) > 1
                notes = load_weights(model, path, None if dense else head_of(model)[0])
            object.__setattr__(model, "_notes", notes)  # plain data, neither weight nor layer
    return model.train()


def notes_of(model: nn.Module) -> tuple[str, ...]:
    """Return remarks about how a network was made, such as a head drawn anew."""
    notes: tuple[str, ...] = model.__dict__.get("_notes", ())
    return notes


def head_of(model: nn.Module) -> tuple[str, nn.Linear]:
    """Return the last linear layer of a network, and its name.

    Examples
    --------
    >>> head_of(ARCHITECTURES["linear"]((4,), 2))
    ('1', Linear(in_features=4, out_features=2, bias=True))
    """
    linears = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear)]
    if not linears:
        raise InputError(
            f"The network {type(model).__name__} has no torch.nn.Linear: what goes into its last "
            "layer cannot be found. End it with a Linear."
        )
    return linears[-1]


def features_of(model: nn.Module, x: Tensor) -> Tensor:
    """Return the inputs of the last linear layer for inputs x of the network, shape (examples, features).

    The network is called as it is: in its mode, on its device.
    """
    seen: list[Tensor] = []
    hook = head_of(model)[1].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    try:
        model(x)
    finally:
        hook.remove()
    if not seen:
        raise InputError(
            f"The last torch.nn.Linear of {type(model).__name__} is not used in a forward pass: "
            "its input cannot be taken as features."
        )
    return seen[-1].flatten(1)


def _made(training: Training, shape: tuple[int, ...], classes: Outputs, folder: Path | None) -> nn.Module:
    name, options = training.architecture, dict(training.options)
    kind, _, rest = name.partition(":")
    own = bool(rest) and kind not in ("timm", "hf")
    if not own:
        check_outputs_of(name, classes)
    if isinstance(classes, tuple) and not own and name not in IMAGE_ARCHITECTURES:
        classes = classes[0]
    if kind == "timm" and isinstance(classes, int):
        with installed(folder):
            return _timm_model(rest, shape, classes, options)
    if kind == "hf" and isinstance(classes, int):
        with installed(folder):
            return hugging_face_model((folder or Path()) / rest, shape, classes, options)
    if own:
        factory = find_function("architecture", name, folder)
    elif name in ARCHITECTURES:
        factory = ARCHITECTURES[name]
    else:
        own_ones = "'module:function' for a factory of your own, 'timm:NAME', or 'hf:FOLDER'"
        raise misfit("architecture", name, "not known.", f"Use one of {', '.join(ARCHITECTURES)}; {own_ones}.")
    try:
        inspect.signature(factory).bind((1,), 1, **options)
    except ValueError:  # some callables do not tell
        pass
    except TypeError as error:
        known = list(inspect.signature(factory).parameters)[2:]
        problem = f"cannot be called with shape, classes and options {sorted(options)} ({error})."
        raise misfit("architecture", name, problem, f"Its options are {', '.join(known) or 'none'}.") from error
    with importable(folder if names_own_code(name) else None):  # files beside it, imported only now
        model = factory(shape, classes, **options)
    if not isinstance(model, nn.Module):
        remedy = "A factory takes shape, classes and options, and returns a torch.nn.Module."
        raise misfit("architecture", name, f"it returned {type(model).__name__}.", remedy)
    return model


def _timm_model(name: str, shape: tuple[int, ...], classes: int, options: dict[str, Any]) -> nn.Module:
    """Make a model of timm with random weights: nothing is downloaded."""
    try:
        timm = importlib.import_module("timm")
    except ImportError as error:
        needs = Message(f"{arg('architecture', f'timm:{name}')} needs timm: pip install timm.")
        raise MissingDependencyError(needs) from error
    _image_shape(shape, f"timm:{name}")
    if name not in timm.list_models():
        known = "See timm.list_models()."
        raise misfit("architecture", f"timm:{name}", "not a model of the installed timm.", known)
    settings = {"pretrained": False, "num_classes": classes, "in_chans": shape[0], **options}
    model: nn.Module = timm.create_model(name, **settings)
    return model


def restore_network(
    training: Training,
    shape: tuple[int, ...],
    classes: Outputs,
    weights: Mapping[str, NDArray[Any]],
    folder: Path | None = None,
    seed: int = 0,
) -> nn.Module:
    """Make a network with stored weights, in evaluation mode, on the CPU.

    Parameters
    ----------
    training : Training
        Its architecture and options are read.
    shape, classes
        Of one input, and of the output: the number of classes, or the shape of numbers.
    weights : dict of str to ndarray
        Parameters and buffers by name, as :class:`~curvewise.nn.task.Trained` has them.
    folder : Path, optional
        Where relative paths start, and the file of a factory of one's own may lie.
    seed : int
        Of the initial weights. Where only the last layer was trained, only that was stored, and
        the rest is drawn again.

    Raises
    ------
    InputError
        If the weights do not fit the architecture.

    Examples
    --------
    >>> training = Training("linear")
    >>> start = initial_network(training, (4,), 2, seed=1)
    >>> weights = {name: value.numpy() for name, value in start.state_dict().items()}
    >>> again = restore_network(training, (4,), 2, weights)
    >>> all(torch.equal(a, b) for a, b in zip(start.parameters(), again.parameters()))
    True
    """
    head = training.trained == "head"
    start = training if head else replace(training, weights=None, weights_into=None)
    model = draw_network(start, shape, classes, 0 if training.weights else seed, folder)
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    wanted = {f"{head_of(model)[0]}.weight"} if head else set(model.state_dict())
    try:
        if head and not wanted <= tensors.keys():
            raise RuntimeError(f"they have no {', '.join(wanted)}.")
        unknown = model.load_state_dict(tensors, strict=not head).unexpected_keys
        if unknown:
            raise RuntimeError(f"it has no {', '.join(unknown)}.")
    except RuntimeError as error:
        raise InputError(
            f"The weights do not fit {arg('architecture', training.architecture)} with options "
            f"{dict(training.options)}: {error}"
        ) from error
    return model


def initial_network(
    training: Training, shape: tuple[int, ...], classes: Outputs, seed: int, folder: Path | None = None
) -> nn.Module:
    """Make a network with the weights that a training of this seed starts from, in evaluation mode.

    Parameters
    ----------
    training, shape, classes, folder
        As of :func:`restore_network`; a file of initial weights is read.
    seed : int
        Of the initial weights.

    Raises
    ------
    InputError
        If only the last layer is trained: it starts apart from its network.
    """
    if training.trained == "head":
        problem = "the last layer is trained on features that were computed once, and starts apart from its network."
        raise misfit("trained", "head", problem, f"Use {arg('trained', 'all')} to have initial weights.")
    return draw_network(training, shape, classes, seed, folder)


def draw_network(
    training: Training, shape: tuple[int, ...], classes: Outputs, seed: int, folder: Path | None = None
) -> nn.Module:
    """Make a network from a seed, in evaluation mode; torch's own generator stays as it is."""
    with own_generator(seed):
        return make_network(training, shape, classes, folder).eval()


# The architectures of our own, from the simplest to the largest.


def linear(shape: tuple[int, ...], classes: int, *, bias: bool = True) -> nn.Module:
    """Make one linear layer on the flattened input: a convex problem."""
    return draw(nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), classes, bias=bias)))


def mlp(
    shape: tuple[int, ...], classes: int, *, width: int = 128, depth: int = 2, batch_norm: bool = False
) -> nn.Module:
    """Make hidden layers of one width with ReLU, then a linear layer.

    Parameters
    ----------
    shape : tuple of int
        Shape of one input; flattened.
    classes : int
        Outputs.
    width, depth : int
        Units of a hidden layer, and hidden layers.
    batch_norm : bool
        Batch norm before each ReLU.
    """
    _check_positive(width=width, depth=depth)
    layers: list[nn.Module] = [nn.Flatten()]
    inside = math.prod(shape)
    for _ in range(depth):
        layers.append(nn.Linear(inside, width))
        if batch_norm:
            layers.append(nn.BatchNorm1d(width))
        layers.append(nn.ReLU(inplace=True))
        inside = width
    return draw(nn.Sequential(*layers, nn.Linear(inside, classes)))


def cnn(shape: tuple[int, ...], classes: int, *, width: int = 32) -> nn.Module:
    """Make three 3×3 convolutions, each with ReLU and pooling, then a linear layer.

    The convolutions have width, 2 · width and 2 · width channels. Pooling is left out where an image is one
    pixel wide or high already.
    """
    channels, height, side = _image_shape(shape, "cnn")
    _check_positive(width=width)
    layers: list[nn.Module] = []
    for outside in (width, 2 * width, 2 * width):
        layers += _convolution(channels, outside, 3, batch_norm=False)
        pool, height, side = _pooling(height, side)
        layers.append(pool)
        channels = outside
    head = nn.Linear(channels * height * side, classes)
    return draw(nn.Sequential(*layers, nn.Flatten(), head))


class Vgg(nn.Module):
    """Simonyan and Zisserman's network with one linear layer, as is usual for small images.

    Layers are named as in torchvision; pooling is left out once a side is one pixel.

    Parameters
    ----------
    layers : {11, 13, 16, 19}
        Layers with weights in the original.
    shape, classes
        Shape of one input, and the number of outputs.
    batch_norm : bool
        Batch norm after each convolution.
    width : int
        Channels of the first stage; the others have 2, 4, 8 and 8 times as many.
    """

    def __init__(
        self, layers: int, shape: tuple[int, ...], classes: int, *, batch_norm: bool = False, width: int = 64
    ) -> None:
        super().__init__()
        # Convolutions in each of the five stages (Simonyan and Zisserman 2015, table 1: A, B, D and E).
        table = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
        channels, height, side = _image_shape(shape, f"vgg{layers}")
        _check_positive(width=width)
        stages: list[nn.Module] = []
        met: list[float] = []
        for repeats, outside in zip(table[layers], (1, 2, 4, 8, 8), strict=True):
            for _ in range(repeats):
                stages += _convolution(channels, outside * width, 3, batch_norm=batch_norm)
                # Of the three places of a kernel along an axis of s pixels, 3 − 2/s meet the image on average.
                met.append((3 - 2 / height) * (3 - 2 / side))
                channels = outside * width
            pool, height, side = _pooling(height, side)
            stages.append(pool)
        self.features = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)
        draw(self)
        convolutions = [m for m in stages if isinstance(m, nn.Conv2d)]
        # He et al. scale by all nine places of a kernel. Where only its middle meets the image, the signal of an
        # 8×8 image would vanish before the last layer: scale by the inputs that a convolution really adds up.
        with torch.no_grad():
            for convolution, places in zip(convolutions, met, strict=True):
                convolution.weight.mul_(math.sqrt(9 / places))

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.classifier(self.pool(self.features(x)).flatten(1))
        return logits


vgg11, vgg13, vgg16, vgg19 = (partial(Vgg, layers) for layers in (11, 13, 16, 19))


def nin(
    shape: tuple[int, ...], classes: int, *, depth: int = 3, width: int = 192, batch_norm: bool = False
) -> nn.Module:
    """Make network in network: blocks of a convolution and two layers across channels at each pixel.

    The first block's convolution is 5×5, the others' 3×3; images are halved between blocks. A global mean over
    pixels precedes the linear layer, which is the same as averaging class maps.

    Parameters
    ----------
    shape, classes
        Shape of one input, and the number of outputs.
    depth, width : int
        Blocks, and channels of each layer.
    batch_norm : bool
        Batch norm after each convolution.
    """
    channels, height, side = _image_shape(shape, "nin")
    _check_positive(depth=depth, width=width)
    layers: list[nn.Module] = []
    for block in range(depth):
        if block:
            pool, height, side = _pooling(height, side)
            layers.append(pool)
        layers += _convolution(channels, width, 3 if block else 5, batch_norm=batch_norm)
        layers += _convolution(width, width, 1, batch_norm=batch_norm)
        layers += _convolution(width, width, 1, batch_norm=batch_norm)
        channels = width
    head = nn.Linear(width, classes)
    return draw(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head))


def _convolution(inside: int, outside: int, side: int, *, batch_norm: bool) -> list[nn.Module]:
    """Make a convolution that keeps the image's size, batch norm if asked for, and ReLU."""
    layers: list[nn.Module] = [nn.Conv2d(inside, outside, side, padding=side // 2)]
    if batch_norm:
        layers.append(nn.BatchNorm2d(outside))
    return [*layers, nn.ReLU(inplace=True)]


def _pooling(height: int, width: int) -> tuple[nn.Module, int, int]:
    """Return pooling, or nothing where a side is one pixel; and the size after it."""
    if min(height, width) < 2:
        return nn.Identity(), height, width
    return nn.MaxPool2d(2), height // 2, width // 2


def resnet9(shape: tuple[int, ...], classes: int, *, width: int = 64, scale: float = 0.2) -> nn.Module:
    """Make the nine-layer network of the variance paper (Page 2019, as in Ilyas et al. 2022).

    Convolutions with batch norm and ReLU: 64 channels; 128, 5×5 with stride 2; two of 128 with a shortcut; 256,
    pooled; two of 256 with a shortcut; 128 without padding. The largest value of each channel goes into a linear
    layer without bias, whose output is scaled.

    Parameters
    ----------
    shape, classes
        Shape of one input, and the number of outputs.
    width : int
        Channels of the first convolution; the others have 2, 2, 4, 4 and 2 times as many.
    scale : float
        Factor of the logits.
    """
    channels, height, side = _image_shape(shape, "resnet9")
    _check_positive(width=width)
    two, four = 2 * width, 4 * width
    smallest = (min(height, side) + 1) // 2 // 2
    if smallest < 1:
        problem = f"needs images of 3×3 pixels or more, and these have {height}×{side}."
        raise misfit("architecture", "resnet9", problem, "Use 'cnn' or 'mlp'.")
    layers = nn.Sequential(
        _normed(channels, width),
        _normed(width, two, kernel=5, stride=2, padding=2),
        Residual(_normed(two, two), _normed(two, two)),
        _normed(two, four),
        nn.MaxPool2d(2),
        Residual(_normed(four, four), _normed(four, four)),
        # Images below 11×11 are smaller than this kernel by now: pad them, or it would not fit.
        _normed(four, two, padding=0 if smallest >= 3 else 1),
        GlobalMax(),
        nn.Linear(two, classes, bias=False),
        Scale(scale),
    )
    return draw(layers, convolutions="uniform")


class Scale(nn.Module):
    """Multiply by a constant."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """Multiply."""
        return x * self.factor


class GlobalMax(nn.Module):
    """Take the largest value of each channel: AdaptiveMaxPool2d(1) in fewer kernels.

    By position, not by value (``amax``): a compiled backward pass computes the values again in another precision,
    finds none equal to the largest, and divides by zero.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, channels, height, width) to (batch, channels)."""
        return x.flatten(2).max(dim=2).values


class Residual(nn.Module):
    """Add the output of layers to their input."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Add."""
        summed: Tensor = x + self.layers(x)
        return summed


class ResNet(nn.Module):
    """He et al.'s network, its layers named as in torchvision so that files of weights fit.

    Parameters
    ----------
    layers : {18, 34, 50}
        Layers with weights.
    shape, classes
        Shape of one input, and the number of outputs.
    width : int
        Channels of the first stage.
    stem : {"small", "imagenet"}
        A 3×3 convolution that keeps the size, or a 7×7 one with stride 2 and pooling.
    """

    STEMS = ("small", "imagenet")

    def __init__(
        self, layers: int, shape: tuple[int, ...], classes: int, *, width: int = 64, stem: str = "small"
    ) -> None:
        super().__init__()
        # He et al. 2016, table 1: the block, and how often it is repeated in each stage. All stages but the first
        # halve the image.
        table = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
        bottleneck = layers == 50
        channels, _, _ = _image_shape(shape, "resnet")
        _check_positive(width=width)
        if stem not in self.STEMS:
            raise InputError(f"stem={stem!r} is not known: use {' or '.join(self.STEMS)}.", argument="options")
        large = stem == "imagenet"
        kernel, stride = (7, 2) if large else (3, 1)
        self.conv1 = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool: nn.Module = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        inside, stages = width, []
        for stage, count in enumerate(table[layers]):
            blocks = []
            for number in range(count):
                stride = 2 if stage and not number else 1
                blocks.append(_Block(inside, width * 2**stage, stride, bottleneck=bottleneck))
                inside = width * 2**stage * (4 if bottleneck else 1)
            stages.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inside, classes)
        draw(self, convolutions="fan_out")

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits


resnet18, resnet34, resnet50 = (partial(ResNet, layers) for layers in (18, 34, 50))


class _Block(nn.Module):
    """Two 3×3 convolutions beside a shortcut; or a 3×3 one between two 1×1 ones, the last four times as wide."""

    def __init__(self, inside: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        # The stride is in the 3×3 convolution, as in torchvision, not in the first 1×1 as in the paper.
        first, second = ((1, 1), (3, stride)) if bottleneck else ((3, stride), (3, 1))
        self.conv1 = nn.Conv2d(inside, width, *first, first[0] // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, *second, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        outside = width
        if bottleneck:
            outside = 4 * width
            self.conv3 = nn.Conv2d(width, outside, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.bottleneck, self.downsample = bottleneck, None
        if stride != 1 or inside != outside:  # a 1×1 convolution where the block changes the shape
            short = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.downsample = nn.Sequential(short, nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        beside = x if self.downsample is None else self.downsample(x)
        x = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.bottleneck:
            x = self.bn3(self.conv3(self.relu(x)))
        summed: Tensor = self.relu(x + beside)
        return summed


class Unet(nn.Module):
    """A residual network without its last layer, and a decoder with links across: images to images.

    The encoder is the network of that name, its layers named alike, so that a file of weights of one that was
    trained to classify fits it. From its last stage on, four steps enlarge the image to the size of the stage
    before, put that stage's channels beside, and convolve.

    Parameters
    ----------
    shape : tuple of int
        Shape of one input: (channels, height, width).
    outputs : tuple of int
        Shape of one target: (channels, height, width), of any height and width.
    encoder : {"resnet18", "resnet34", "resnet50"}
        Network that encodes.
    width : int
        Channels of its first stage.
    stem : {"small", "imagenet"}
        Its first layers, as of :class:`ResNet`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        outputs: tuple[int, ...],
        *,
        encoder: str = "resnet18",
        width: int = 64,
        stem: str = "small",
    ) -> None:
        super().__init__()
        self.encoder, last = _encoder(encoder, shape, width, stem)
        inside = last
        steps = []
        for beside in (last // 2, last // 4, last // 8, width):  # channels of the stages backwards, and of the stem
            steps.append(_normed(inside + beside, beside))
            inside = beside
        self.decoder = nn.ModuleList(steps)
        self.size = outputs[1:]
        self.last = nn.Conv2d(inside, outputs[0], 3, padding=1)
        draw(self, convolutions="fan_out")
        draw(self.last, convolutions="uniform")  # small, as of a last linear layer

    def forward(self, x: Tensor) -> Tensor:
        """Return predicted images."""
        found = _stages(self.encoder, x)
        x = found.pop()
        for step, beside in zip(self.decoder, reversed(found), strict=True):
            x = step(torch.cat([_enlarged(x, beside.shape[-2:]), beside], dim=1))
        images: Tensor = self.last(_enlarged(x, self.size))
        return images


unet = Unet


class Unet6(nn.Module):
    """The network of the transfer paper for images as targets: a residual encoder and six blocks that enlarge.

    The last stage of the encoder is halved once more; each block doubles the image, so that six of them come from
    a sixty-fourth of the side back to all of it. The first five put beside their own channels what a 1×1 convolution
    makes of the encoder's last, …, first stage and of its first convolution (Atanov et al. 2022, supplement 3.2 and
    figure 2). The paper gives neither the channels of the blocks nor what is in one: here 8, 4, 2, 1, 1/2 and 1/4
    times the width, and two 3×3 convolutions with batch norm.

    Parameters
    ----------
    shape, outputs
        As of :class:`Unet`.
    encoder, width, stem
        As of :class:`Unet`; by default those of the paper, a ResNet-50 as published for ImageNet.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        outputs: tuple[int, ...],
        *,
        encoder: str = "resnet50",
        width: int = 64,
        stem: str = "imagenet",
    ) -> None:
        super().__init__()
        self.encoder, last = _encoder(encoder, shape, width, stem)
        self.pool = nn.MaxPool2d(2, ceil_mode=True)  # a side of one pixel stays
        stages = (last, last // 2, last // 4, last // 8, width)  # channels backwards, those of the stem at the end
        own = [max(1, 8 * width // 2**block) for block in range(6)]
        self.links = nn.ModuleList(
            nn.Conv2d(there, here, 1, bias=False) for there, here in zip(stages, own, strict=False)
        )
        blocks, inside = [], last
        for block, here in enumerate(own):
            beside = here if block < len(stages) else 0
            blocks.append(nn.Sequential(_normed(inside + beside, here), _normed(here, here)))
            inside = here
        self.blocks = nn.ModuleList(blocks)
        self.size = outputs[1:]
        self.last = nn.Conv2d(inside, outputs[0], 3, padding=1)
        draw(self, convolutions="fan_out")
        draw(self.last, convolutions="uniform")  # small, as of a last linear layer

    def forward(self, x: Tensor) -> Tensor:
        """Return predicted images."""
        size, found = x.shape[-2:], _stages(self.encoder, x)
        x = self.pool(found[-1])
        for block, link, there in zip(self.blocks, self.links, reversed(found), strict=False):
            beside = link(there)
            x = block(torch.cat([_enlarged(x, beside.shape[-2:]), beside], dim=1))
        images: Tensor = self.last(_enlarged(self.blocks[-1](_enlarged(x, size)), self.size))
        return images


unet6 = Unet6


def _encoder(name: str, shape: tuple[int, ...], width: int, stem: str) -> tuple[ResNet, int]:
    """Make a residual network without its last layer; and the channels of its last stage."""
    _image_shape(shape, "unet")
    encoders = {"resnet18": resnet18, "resnet34": resnet34, "resnet50": resnet50}
    if name not in encoders:
        raise InputError(f"encoder={name!r} is not known: use {' or '.join(encoders)}.", argument="options")
    made = encoders[name](shape, 1, width=width, stem=stem)
    last = made.fc.in_features
    made.fc = nn.Identity()  # type: ignore[assignment]
    return made, last


def _stages(body: ResNet, x: Tensor) -> list[Tensor]:
    """Return what the first convolution and each of the four stages of an encoder give."""
    found = [body.relu(body.bn1(body.conv1(x)))]
    found.append(body.layer1(body.maxpool(found[0])))
    for stage in (body.layer2, body.layer3, body.layer4):
        found.append(stage(found[-1]))
    return found


def _normed(inside: int, outside: int, *, kernel: int = 3, stride: int = 1, padding: int = 1) -> nn.Sequential:
    """Make a convolution without bias, batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, stride, padding, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True)
    )


def _enlarged(x: Tensor, size: tuple[int, ...]) -> Tensor:
    """Enlarge images by repeating pixels: the gradient of interpolation differs between runs on a GPU."""
    if tuple(x.shape[-2:]) == tuple(size):
        return x
    return functional.interpolate(x, size=list(size), mode="nearest")


def draw(model: nn.Module, *, convolutions: str = "fan_in") -> nn.Module:
    """Draw every weight anew from torch's global generator, and return the model.

    Convolutions by the rule of He et al.: normal, with variance 2 over the fan-in or fan-out; or, with
    ``"uniform"``, as linear layers are: weights and biases uniform within ±1/√fan-in.
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and convolutions != "uniform":
            fan: Any = convolutions
            nn.init.kaiming_normal_(module.weight, mode=fan, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Conv2d | nn.Linear):
            bound = 1 / math.sqrt(module.weight[0].numel())
            nn.init.uniform_(module.weight, -bound, bound)
            if module.bias is not None:
                nn.init.uniform_(module.bias, -bound, bound)
        elif isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
    return model


def _image_shape(shape: tuple[int, ...], architecture: str) -> tuple[int, int, int]:
    """Return (channels, height, width), or raise for inputs that are not images."""
    if len(shape) != 3 or min(shape) < 1:
        problem = f"takes images, (channels, height, width); one input has shape {tuple(shape)}."
        raise misfit("architecture", architecture, problem, "Use 'linear' or 'mlp' for plain features.")
    return shape[0], shape[1], shape[2]


def _check_positive(**numbers: Any) -> None:
    """Refuse options that are not whole numbers from 1 on."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name}={value!r}.", argument="options", remedy="Give a whole number of at least 1.")


ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    # The names are listed once, in a module that a study can import to plan where torch is not installed.
    name: globals()[name]
    for name in (*ROW_ARCHITECTURES, *IMAGE_ARCHITECTURES)
}
"""Factories by name, called with the shape of one input, the classes (or the shape of a target), and options."""
