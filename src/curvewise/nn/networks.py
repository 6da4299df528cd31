"""Networks made, restored and evaluated: architectures by name, own factories, timm, torchvision, Hugging Face."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import InputError, MissingDependencyError, arg, suggest
from curvewise.nn.architectures import ARCHITECTURES, FIRST_LAYERS, image_shape
from curvewise.nn.data import Resident
from curvewise.nn.devices import find_device, own_generator
from curvewise.nn.files.datasets import foreign_library
from curvewise.nn.files.hugging_face import hugging_face_model
from curvewise.nn.files.tensors import load_part, load_weights, read_weights
from curvewise.nn.optimisers import make_optimiser
from curvewise.nn.own_code import find_function, importable, installed, names_own_code
from curvewise.nn.task import Outputs, check_outputs_of
from curvewise.nn.training import (
    IMAGE_ARCHITECTURES,
    PATCH,
    Training,
    behind_first_layer,
    check_torchvision_options,
    misfit,
)


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
        given = _weights_of(training, folder, shapes=training.weights is None)
        training = following_weights(training, given)
        model = _made(training, tuple(shape), classes, folder)
        if training.weights is not None:
            notes = _loaded(model, training, classes, given, folder)
            object.__setattr__(model, "_notes", notes)  # plain data, neither weight nor layer
    return model.train()


def settle_weights(
    training: Training, shape: tuple[int, ...], classes: Outputs, folder: Path | None = None
) -> Training:
    """Settle what a file of weights decides, and refuse one that does not fit; nothing large is read or made.

    Parameters
    ----------
    training, shape, classes, folder
        As of :func:`make_network`.

    Returns
    -------
    Training
        With the stem of the network that the weights are of, where another is usual; without ``like``, which has
        no other use.

    Raises
    ------
    InputError
        If the file cannot be read, holds weights of another network, or contradicts an option.
    """
    given = _weights_of(training, folder, shapes=True)
    training = replace(following_weights(training, given), like=None)
    name = training.architecture
    if training.weights is None or name.startswith("hf:") or names_own_code(name, training.options):
        return training
    try:
        with own_generator(), torch.device("meta"):
            model = _made(training, tuple(shape), classes, folder)
    except MissingDependencyError:
        return training
    except Exception as error:
        # A model of another library may need memory to be made: then the run itself tells.
        if isinstance(error, InputError) or ":" not in name:
            raise
        return training
    _loaded(model, training, classes, given, folder)
    return training


def check_groups(training: Training, shape: tuple[int, ...], classes: Outputs, folder: Path | None = None) -> None:
    """Refuse groups of parameters, or an optimiser, that a network has no parameters for; nothing large is made.

    Parameters
    ----------
    training, shape, classes, folder
        As of :func:`make_network`.

    Raises
    ------
    InputError
        As of :func:`~curvewise.nn.optimisers.make_optimiser`.
    """
    try:
        with own_generator(), torch.device("meta"):
            model = _made(replace(training, weights=None, weights_into=None, like=None), tuple(shape), classes, folder)
    except Exception:  # what cannot be made without memory, or at all, the run itself reports
        return
    make_optimiser(training, {name: p.shape for name, p in model.named_parameters() if p.requires_grad})


def _weights_of(training: Training, folder: Path | None, *, shapes: bool) -> dict[str, Tensor]:
    """Read the file that a training starts from, or is like."""
    file = training.weights or training.like
    return {} if file is None else read_weights((folder or Path()) / file, shapes=shapes)


def following_weights(training: Training, given: Mapping[str, Any]) -> Training:
    """Give a network the stem of the weights it will hold; refuse to start from weights with another than asked for.

    Parameters
    ----------
    training : Training
        Whose option ``stem`` may be left open.
    given : dict of str to Tensor or ndarray
        Weights by name.
    """
    factory = ARCHITECTURES.get(training.architecture)
    usual = None if factory is None else inspect.signature(factory).parameters.get("stem")
    side = next((given[n].shape[-1] for n in FIRST_LAYERS if n in given and len(given[n].shape) == 4), None)
    if training.like and not training.weights and usual is not None and usual.default is not None and side is None:
        problem = f"it has none of {', '.join(FIRST_LAYERS)}, but {', '.join(list(given)[:3]) or 'nothing'}, …"
        raise misfit("like", training.like, problem, "Name its weights as the architecture does, or leave it out.")
    if usual is None or usual.default is None or side is None:
        return training
    stem = "small" if side <= 3 else "imagenet"
    asked = training.options.get("stem", usual.default)
    if stem == asked:
        return training
    if "stem" not in training.options:
        return replace(training, options={**training.options, "stem": stem})
    if training.weights is None:
        return training
    problem = f"they are of a network with stem={stem!r} (a first layer of {side}×{side}), not stem={asked!r}."
    raise misfit("weights", training.weights, problem, "Leave stem out: the weights choose it.")


def _loaded(
    model: nn.Module, training: Training, classes: Outputs, given: Mapping[str, Tensor], folder: Path | None
) -> tuple[str, ...]:
    """Fill a network with weights; return remarks."""
    path = (folder or Path()) / str(training.weights)
    if training.weights_into is not None:
        return load_part(model, training.weights_into, given, path)
    # Networks that give images need not have a linear layer.
    dense = isinstance(classes, tuple) and len(classes) > 1
    what = arg("architecture", training.architecture)
    return load_weights(model, given, path, None if dense else head_of(model)[0], what)


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
    if training.first_layer is not None:
        inner = _made(replace(training, first_layer=None), behind_first_layer(training, shape), classes, folder)
        return nn.Sequential(OrderedDict(first_layer=Whitening(shape[0]), network=inner))
    name, options = training.architecture, dict(training.options)
    kind, _, rest = name.partition(":")
    own = bool(rest) and kind not in ("timm", "torchvision", "hf")
    if not own:
        check_outputs_of(name, classes)
    if isinstance(classes, tuple) and not own and name not in IMAGE_ARCHITECTURES:
        classes = classes[0]
    if kind in ("timm", "torchvision") and isinstance(classes, int):
        with installed(folder):
            return (_timm_model if kind == "timm" else _torchvision_model)(rest, shape, classes, options)
    if kind == "hf" and isinstance(classes, int):
        with installed(folder):
            return hugging_face_model((folder or Path()) / rest, shape, classes, options)
    if own:
        factory = find_function("architecture", name, folder)
    elif name in ARCHITECTURES:
        factory = ARCHITECTURES[name]
    else:
        own_ones = "'module:function' for a factory of your own, 'timm:NAME', 'torchvision:NAME', or 'hf:FOLDER'"
        raise misfit("architecture", name, "not known.", f"Use one of {', '.join(ARCHITECTURES)}; {own_ones}.")
    bare = own and _takes_only(factory, options)
    if not bare:
        check_factory_options(name, factory, options)
    with importable(folder if names_own_code(name) else None):  # files beside it, imported only now
        model = factory(**options) if bare else factory(shape, classes, **options)
    if not isinstance(model, nn.Module):
        remedy = "A factory takes shape, classes and options, and returns a torch.nn.Module."
        raise misfit("architecture", name, f"it returned {type(model).__name__}.", remedy)
    return model


def _takes_only(factory: Callable[..., nn.Module], options: Mapping[str, Any]) -> bool:
    """Return whether a factory takes its options alone, such as the class of a network of fixed shape."""
    try:
        signature = inspect.signature(factory)
        signature.bind(**options)
    except (TypeError, ValueError):
        return False
    return not _takes_two(signature)


def check_factory_options(name: str, factory: Callable[..., nn.Module], options: Mapping[str, Any]) -> None:
    """Refuse options that the factory of an architecture does not take."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # some callables do not tell what they take
        return
    try:
        signature.bind((1,), 1, **options)
    except TypeError as error:
        known = list(signature.parameters)[2:]
        remedy = f"Its options are {', '.join(known) or 'none'}."
        if not names_own_code(name):
            wrong = next(option for option in options if option not in known)
            raise InputError(f"{name} has no option {wrong!r}.{suggest(wrong, known)}", remedy=remedy) from error
        given = f"shape, classes and options {sorted(options)}" if options else "shape and classes"
        problem = f"cannot be called with {given} ({error})."
        if not _takes_two(signature):
            function = name.partition(":")[2]
            remedy = f"Define it as `def {function}(shape, classes, **options)`: it returns the network."
        raise misfit("architecture", name, problem, remedy) from error


def _takes_two(signature: inspect.Signature) -> bool:
    """Return whether a factory takes a shape and a number of classes, whatever its options are."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    return sum(kind in positional for kind in kinds) >= 2 or inspect.Parameter.VAR_POSITIONAL in kinds


def _timm_model(name: str, shape: tuple[int, ...], classes: int, options: dict[str, Any]) -> nn.Module:
    """Make a model of timm with random weights: nothing is downloaded."""
    timm = foreign_library("timm", arg("architecture", f"timm:{name}"))
    image_shape(shape, f"timm:{name}")
    if name not in timm.list_models():
        known = "See timm.list_models()."
        raise misfit("architecture", f"timm:{name}", "not a model of the installed timm.", known)
    settings = {"pretrained": False, "num_classes": classes, "in_chans": shape[0], **options}
    model: nn.Module = timm.create_model(name, **settings)
    return model


def _torchvision_model(name: str, shape: tuple[int, ...], classes: int, options: dict[str, Any]) -> nn.Module:
    """Make a classifier of torchvision with random weights: nothing is downloaded."""
    asked = f"torchvision:{name}"
    models = foreign_library("torchvision", arg("architecture", asked)).models
    if image_shape(shape, asked)[0] != 3:
        problem = f"takes images of 3 channels, and these have {shape[0]}."
        raise misfit("architecture", asked, problem, "Load them with channels=3, or use an architecture of ours.")
    if name not in models.list_models(module=models):
        known = "See torchvision.models.list_models()."
        raise misfit("architecture", asked, "not a classifier of the installed torchvision.", known)
    check_torchvision_options(name, options)
    # Auxiliary classifiers would make an Inception return several outputs.
    inception = {"aux_logits": False, "init_weights": True} if name in ("googlenet", "inception_v3") else {}
    model: nn.Module = models.get_model(name, **{"weights": None, "num_classes": classes, **inception, **options})
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
    # Of other networks the weights themselves tell the stem.
    start = (
        training if head else following_weights(replace(training, weights=None, weights_into=None, like=None), weights)
    )
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


# ---- A frozen first layer that whitens patches of images by what the training images look like

MOST_IMAGES = 5_000  # whose patches are looked at
RIDGE = 5e-4  # added to the variances, on the scale of normalised pixels: directions without variance stay small
CHUNK = 500  # images whose patches are in memory at a time


class Whitening(nn.Module):
    """Convolve with the principal directions of small patches and their negatives, add a trained bias, take GELU.

    Jordan 2024, arXiv 2404.00498. The filters are a buffer: :meth:`fill` sets them, nothing trains them.

    Parameters
    ----------
    channels : int
        Of the images.
    """

    weight: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        filters = 2 * channels * PATCH**2
        self.register_buffer("weight", torch.zeros(filters, channels, PATCH, PATCH))
        self.bias = nn.Parameter(torch.zeros(filters))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, channels, height, width) to (batch, filters, height − 1, width − 1)."""
        return functional.gelu(functional.conv2d(x, self.weight, self.bias))

    @torch.no_grad()
    def fill(self, data: Resident, rows: NDArray[np.int64]) -> None:
        """Compute the filters from the first of some training images."""
        self.weight.copy_(_filters(data, rows[:MOST_IMAGES]))


def patch_covariance(data: Resident, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the covariance of the patches of some images, on the scale of normalised pixels.

    Sums of products of bytes are whole numbers below 2⁵³, and thus exact in double precision: the same on every
    device, and in any order.

    Parameters
    ----------
    data : Resident
        Images, and their mean and spread by channel.
    rows : ndarray of int64
        Positions of the images.

    Returns
    -------
    ndarray of float64, shape (values, values)
        Values of a patch in the order channels, rows, columns.
    """
    size, count, device = data.mean.numel() * PATCH**2, 0, data.mean.device
    products = torch.zeros((size, size), dtype=torch.float64, device=device)
    sums = torch.zeros(size, dtype=torch.float64, device=device)
    for start in range(0, len(rows), CHUNK):
        images = data.stored(torch.from_numpy(rows[start : start + CHUNK]).to(device))
        patches = images.unfold(2, PATCH, 1).unfold(3, PATCH, 1)  # examples, channels, height, width, rows, columns
        values = patches.permute(1, 4, 5, 0, 2, 3).reshape(size, -1).to(torch.float64)
        products += values @ values.T
        sums += values.sum(dim=1)
        count += values.shape[1]
    mean = np.asarray(sums.cpu()) / count
    scale = np.repeat(np.asarray(data.std.cpu(), dtype=np.float64) * 255, PATCH**2)
    found: NDArray[np.float64] = (np.asarray(products.cpu()) / count - np.outer(mean, mean)) / np.outer(scale, scale)
    return found


def _filters(data: Resident, rows: NDArray[np.int64]) -> Tensor:
    """Return filters from some images, (filters, channels, 2, 2): the largest variance first, then the negatives."""
    known = _KNOWN.setdefault(data, {})
    which = hashlib.sha256(rows.tobytes()).hexdigest()
    if which not in known:
        variances, directions = np.linalg.eigh(patch_covariance(data, rows))
        directions = directions.T[::-1]
        # Either sign is an eigenvector: the largest entry is made positive, whatever the library found.
        largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
        whitening = directions * np.sign(largest) / np.sqrt(np.maximum(variances[::-1], 0) + RIDGE)[:, None]
        both = np.concatenate([whitening, -whitening]).reshape(-1, data.mean.numel(), PATCH, PATCH)
        known[which] = torch.from_numpy(both.astype(np.float32))
    return known[which]


_KNOWN: WeakKeyDictionary[Resident, dict[str, Tensor]] = WeakKeyDictionary()
"""Filters of data on a device by the rows they were computed from: most runs of a study share theirs."""


# ---- Trained networks in evaluation: mode, device and precision for a while, and checks of what they return


def place_of(model: Any) -> torch.device:
    """Return the device of a network's weights; the CPU if it has none."""
    tensors = [*model.parameters(), *model.buffers()] if isinstance(model, nn.Module) else []
    return tensors[0].device if tensors else torch.device("cpu")


def chosen_device(model: Any, device: str | torch.device | None) -> torch.device:
    """Return the device asked for, or the one that the network is on."""
    place = place_of(model) if device is None else find_device(device)
    if place.type == "meta":
        problem = "is on the 'meta' device and has no weights: load them, or make it elsewhere."
        raise InputError(problem, argument="model")
    return place


@contextlib.contextmanager
def borrowed(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Put a network in evaluation mode on a device inside the block; restore both, also after an error.

    Modes are put back for each submodule. No gradient is computed inside, none is touched.
    """
    modes = [(module, module.training) for module in model.modules()]
    home = place_of(model)
    try:
        # A program that was exported has no modes.
        with contextlib.suppress(NotImplementedError):
            model.eval()
        if home != device:
            model.to(device)
        with torch.no_grad():  # not inference_mode: what a network keeps must stay usable
            yield
    finally:
        if home != device:
            model.to(home)
        for module, training in modes:
            module.training = training


@contextlib.contextmanager
def arithmetic(device: torch.device, precision: str) -> Iterator[None]:
    """Compute without gradients in a precision inside the block; only in the thread that enters."""
    kind = None if precision == "float32" else getattr(torch, precision)
    with torch.no_grad(), torch.autocast(device.type, dtype=kind, enabled=kind is not None):
        yield


def exact(device: torch.device) -> torch.autocast:
    """Return a context in which values keep their own precision, whatever the network computes in."""
    return torch.autocast(device.type, enabled=False)


def has_answer(logits: Tensor) -> Tensor:
    """Tell which rows have a largest logit: no NaN, none infinite; −∞ excludes a class.

    >>> has_answer(torch.tensor([[0.0, -torch.inf], [0.0, torch.inf], [0.0, torch.nan]])).tolist()
    [True, False, False]
    """
    return logits.amax(dim=1).isfinite()


def logits_of(output: Any) -> Tensor:
    """Return the logits, shape (batch, classes), in what a network returned, or raise."""
    found = output
    if isinstance(output, Mapping):
        found = output.get("logits", output)
    elif hasattr(output, "logits"):
        found = output.logits
    elif isinstance(output, tuple | list) and output:
        found = output[0]
    if not isinstance(found, Tensor):
        keys = f" with {', '.join(map(repr, output))}" if isinstance(output, Mapping) else ""
        raise InputError(
            f"returned {type(output).__name__}{keys}: it must return logits as a tensor, a tuple that begins with "
            "them, or a mapping with 'logits'. Wrap it in a module that does.",
            argument="model",
        )
    return found


def unsteady(model: nn.Module, x: Tensor, other: Tensor, logits: Tensor) -> str | None:
    """Return a warning if a network's answers depend on more than the example; else None.

    Parameters
    ----------
    model : nn.Module
        In evaluation mode.
    x, other : Tensor
        Two batches of different size that begin with the same examples.
    logits : Tensor
        Its answers to x before.
    """
    # Far above rounding, which is coarser on a GPU (TF32) and in half precision.
    share = 1e-3 if x.device.type == "cpu" else 1e-2
    if x.dtype in (torch.float16, torch.bfloat16):
        share = 5e-2
    slack = share * float(logits.float().nan_to_num(0, 0, 0).abs().max())
    with contextlib.suppress(Exception):  # some take one size of batches only
        for given, reason in (
            (x, "on chance (such as dropout that is never turned off): they change with every run"),
            (
                other,
                "on the other examples of a batch (such as batch norm without running statistics): "
                "they change with batch",
            ),
        ):
            found = logits_of(model(given.clone()))
            count = min(len(found), len(logits))
            here, there = found[:count].float(), logits[:count].float()
            if not torch.allclose(here, there, share, slack, equal_nan=True):
                return f"The network's outputs depend {reason}, so this curve does too."
    return None


def check_logits(logits: Tensor, examples: int, classes: int) -> None:
    """Refuse outputs that are not one row of at least two logits for each example."""
    shape = tuple(logits.shape)
    if shape in ((examples,), (examples, 1)):
        raise InputError(
            f"returned shape {shape} for {examples} examples, one number each: give logits of two classes. For a "
            "binary network wrap it in a module that returns torch.stack([0 * z, z], dim=-1) of its logits z, "
            "flattened.",  # [-z, z] would have the probabilities and the loss of 2z
            argument="model",
        )
    if len(shape) != 2 or shape[0] != examples:
        problem = f"returned shape {shape} for {examples} examples: it must return logits, (examples, classes)."
        raise InputError(problem, argument="model")
    if classes > shape[1]:
        problem = f"holds class {classes - 1}, but the model has {shape[1]} outputs"
        raise InputError(f"{problem}: count classes from 0 on, as the model does.", argument="labels")
