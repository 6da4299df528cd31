"""Networks made and restored: architectures by name, one's own factories, those of timm, torchvision, Hugging Face."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.architectures import ARCHITECTURES
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
