"""Words of the command line for ``curvewise ranking``: what messages say, with options."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from curvewise.cli._console import UsageError, keeping_user_text
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
            *("task", "test", "unit", "value", "wide"),
        )
    },
}
_NAMES = "|".join(sorted(_ARGUMENTS, key=len, reverse=True))
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PAIR = re.compile(
    rf"(?<![\w.-])({_NAMES})="
    rf"(?:({_QUOTED})|(\([^)]*\)|\[[^\]]*\]|[^\s;,:]*[^\s;,:.)])|(?=[\s;,:.)]|$))"
)
_HOLDS = re.compile(rf"(?<![\w.-])({_NAMES}|where) (?:holds|names) ({_QUOTED})")
_WHERE = re.compile(rf"where=\{{({_QUOTED}): ({_QUOTED}|[^}}]*)\}}")
_REPEATED = ("reference", "baseline")
"""Options that are given once for each value."""


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


@keeping_user_text
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
    >>> as_options("make it the group with group='Trainable Backbone', or pass union=False.")
    "make it the group with --group 'Trainable Backbone', or pass --no-union."
    >>> as_options("measures holds 'nlep'; pass measures=['a b', 'c'], or test=None.")
    "--measures nlep; pass --measures 'a b,c', or --test 0."
    """
    message = message.replace("the folder of the study", "the current folder")
    message = re.sub(r"\bunion=(True|False)", _flag, message)
    message = message.replace("test=None", "test=0")  # no test examples are a share of 0
    message = _PREPROCESSING.sub(_preprocess, message)
    message = _WHERE.sub(_where, message)
    message = _HOLDS.sub(_option, message)
    message = re.sub(r"\bdata\.(path|name)=", "data=", message)
    message = re.sub(r"\bdata\.(\w+)='?(\w*)'?", r"--data-option \1≡\2", message)
    return _PAIR.sub(_option, message).replace("≡", "=")  # which is no argument's, and must stay


def _preprocess(found: re.Match[str]) -> str:
    """The fields of a Preprocessing as options, whose values are written as in TOML."""
    fields = re.findall(r"(\w+)=(\([^()]*\)|[^,\s]+)", found[1]) or [("scale", "1")]
    tidy = [(k, re.sub(r"(?<!\d)\.(?=\d)", "0.", v.replace(" ", ""))) for k, v in fields]
    said = [f"--preprocess {k}≡{v.replace('(', '[').replace(')', ']')}" for k, v in tidy]
    return " ".join(said)


def _flag(found: re.Match[str]) -> str:
    return "--union" if found[1] == "True" else "--no-union"


def _where(found: re.Match[str]) -> str:
    """A condition on rows, in quotes in any case."""
    column, value = _unquoted(found[1]), _unquoted(found[2])
    both = f"{column}≡{value}"
    return f"--where {shlex.quote(both)}"


def _option(found: re.Match[str]) -> str:
    """An argument and its value as an option, in quotes where the shell needs them."""
    name = _ARGUMENTS.get(found[1], found[1])
    given = found[2] or (found[3] if len(found.groups()) > 2 else None) or ""
    if not given.startswith(("(", "[")):
        return f"--{name} {_for_shell(_unquoted(given))}".rstrip()
    values = [_unquoted(word) for word in re.findall(rf"{_QUOTED}|[^\s,()\[\]]+", given)]
    if name in _REPEATED:
        return " ".join(f"--{name} {_for_shell(value)}" for value in values)
    return f"--{name} {_for_shell(','.join(values))}".rstrip()


def _unquoted(text: str) -> str:
    """What a text of Python stands for; other words as they are.

    >>> _unquoted("'two words'"), _unquoted("0.2")
    ('two words', '0.2')
    """
    return str(ast.literal_eval(text)) if re.fullmatch(_QUOTED, text) else text


def _for_shell(value: str) -> str:
    """In quotes where a shell would split or read it otherwise; dots stand for what is open.

    >>> _for_shell("nleep"), _for_shell("Trainable Backbone"), _for_shell("…")
    ('nleep', "'Trainable Backbone'", '…')
    """
    return shlex.quote(value) if value and re.search(r"[^\w…/@%+:,.-]", value) else value
