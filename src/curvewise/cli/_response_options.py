"""Words of the command line for ``curvewise response``: values of options, messages, checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from curvewise.cli._console import UsageError, check_folder, keeping_user_text
from curvewise.cli._options import check_picture
from curvewise.errors import InputError

_ARGUMENTS = (
    "data|seed|layer|perturbation|magnitudes|examples|batch|device|precision|mean|std|fill|"
    "interpolation|padding|mask|signs|factory|gap|hyperparameters|measures|task|least_train_accuracy|mode|permutations|level"
)
_OPTIONS = {
    "--hyperparameters": "--hyperparameter",
    "--measures": "--measure",
    "--architecture": "--factory",
}


def read_layer(text: str | None) -> str | int | None:
    """A layer by its name, or the so-many-th activation; some names are numbers.

    >>> read_layer("1"), read_layer("layer1.0"), read_layer("name:1"), read_layer(None)
    (1, 'layer1.0', '1', None)
    """
    if text is None or text in ("", "input"):
        return None
    if text.startswith("name:"):
        return text.removeprefix("name:")
    return int(text) if text.isdecimal() else text


def check_outputs(save: Path | None, sheet: Path | None, layer: str | None) -> None:
    """Refuse files that cannot be written before anything is measured."""
    if save is not None:
        if save.suffix.lower() != ".csv":
            raise UsageError(f"--save {save} must end in .csv.")
        check_folder("--save", save)
    check_picture("--sheet", sheet)
    if sheet is not None and read_layer(layer) is not None:
        raise UsageError("--sheet shows images, which --layer leaves as they are: drop one.")


@contextmanager
def worded() -> Iterator[None]:
    """Say with options what an error says with arguments."""
    try:
        yield
    except UsageError:
        raise
    except InputError as error:
        raise InputError(as_options(str(error))) from error


@keeping_user_text
def as_options(message: str) -> str:
    """Say with options of ``curvewise response`` what a message says with Python arguments.

    >>> as_options("layer='conv9' is not there. Pass examples=100, or mean= and std=.")
    '--layer conv9 is not there. Pass --examples 100, or --mean and --std.'
    >>> as_options("architecture='nets:make': put nets.py in the folder of the study.")
    '--factory nets:make: put nets.py in the current folder.'
    >>> as_options("say data.kind='features' or data.kind='tokens'.")
    'say --data-option kind=features or --data-option kind=tokens.'
    """
    message = message.replace("the folder of the study", "the current folder")
    message = re.sub(r"\bdata\.(path|name)=", "data=", message).replace("rng=", "seed=")
    message = re.sub(r"\bdata\.(\w+)='?(\w*)'?", r"--data-option \1≡\2", message)
    message = message.replace("=[…]", "=…")
    message = re.sub(
        rf"\b(architecture|{_ARGUMENTS})=(?:'([^']*)'|([^\s;,:]*[^\s;,:.])|(?=[\s;,:.]|$))",
        lambda m: f"--{m[1].replace('_', '-')} {m[2] or m[3] or ''}".rstrip(),
        message,
    )
    for name, option in _OPTIONS.items():
        message = re.sub(rf"{name}\b", option, message)
    return message.replace("≡", "=")  # which is no argument's, and must stay
