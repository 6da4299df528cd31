"""Words of the command line for ``curvewise ranking``: what messages say, with options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from curvewise.cli._console import UsageError
from curvewise.errors import InputError

_ARGUMENTS = {
    "accuracies": "accuracy",
    "accuracy": "accuracy-column",
    "architecture": "factory",
    "baselines": "baseline",
    "rng": "seed",
    "preprocessing": "preprocess",
    **{
        name: name
        for name in (
            *("batch", "by", "cache", "checkpoint", "data", "device", "examples", "factory"),
            *("group", "k", "labels", "layer", "level", "measure", "measures", "permutations"),
            *("precision", "pool", "reference", "reliability", "repeats", "resamples", "score"),
            *("task", "test", "unit", "wide"),
        )
    },
}
_PAIR = re.compile(
    rf"(?<![\w.-])({'|'.join(sorted(_ARGUMENTS, key=len, reverse=True))})="
    r"(?:'([^']*)'|(\([^)]*\)|[^\s;,:]*[^\s;,:.])|(?=[\s;,:.]|$))"
)
_WHERE = re.compile(r"where=\{('?)(.*?)\1: ('?)(.*?)\3\}")


_PREPROCESSING = re.compile(r"(?:preprocessing=)?Preprocessing\(((?:[^()]|\([^()]*\))*)\)")


@contextmanager
def worded() -> Iterator[None]:
    """Say with options what an error says with arguments."""
    try:
        yield
    except UsageError:
        raise
    except InputError as error:
        raise InputError(as_options(str(error))) from error


def as_options(message: str) -> str:
    """Say with options of ``curvewise ranking`` what a message says with Python arguments.

    >>> as_options("by='logme' is none of the measures: pass measures=…, or test=0.2.")
    '--by logme is none of the measures: pass --measures …, or --test 0.2.'
    >>> as_options("name it with accuracy=…, or pass the table as accuracies=….")
    'name it with --accuracy-column …, or pass the table as --accuracy ….'
    >>> as_options("where={'task': 'pets'} is in no row")
    "--where 'task=pets' is in no row"
    >>> as_options("preprocessing=Preprocessing(size=256, mean=(.5, .5)); Preprocessing() brings")
    '--preprocess size=256 --preprocess mean=[0.5,0.5]; --preprocess scale=1 brings'
    """
    message = message.replace("the folder of the study", "the current folder")
    message = _PREPROCESSING.sub(_preprocess, message)
    message = _WHERE.sub(r"--where '\2≡\4'", message)
    message = re.sub(r"\bdata\.(path|name)=", "data=", message)
    message = re.sub(r"\bdata\.(\w+)='?(\w*)'?", r"--data-option \1≡\2", message)
    return _PAIR.sub(_option, message).replace("≡", "=")  # which is no argument's, and must stay


def _preprocess(found: re.Match[str]) -> str:
    """The fields of a Preprocessing as options, whose values are written as in TOML."""
    fields = re.findall(r"(\w+)=(\([^()]*\)|[^,\s]+)", found[1]) or [("scale", "1")]
    tidy = [(k, re.sub(r"(?<!\d)\.(?=\d)", "0.", v.replace(" ", ""))) for k, v in fields]
    said = [f"--preprocess {k}≡{v.replace('(', '[').replace(')', ']')}" for k, v in tidy]
    return " ".join(said)


def _option(found: re.Match[str]) -> str:
    value = found[2] or found[3] or ""
    if value.startswith("("):
        value = value.strip("()").replace(", ", ",").strip(",").replace("'", "")
    return f"--{_ARGUMENTS[found[1]]} {value}".rstrip()
