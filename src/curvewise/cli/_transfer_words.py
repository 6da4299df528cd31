"""Words of the command line for ``curvewise transfer``: what messages say, with options."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from curvewise.cli._console import UsageError, keeping_user_text
from curvewise.errors import InputError

_OPTIONS = {
    **{role: f"{role}-column" for role in ("task", "method", "n", "risk", "seed", "fold")},
    "methods": "method",
    "tasks": "task",
    "test_targets": "test",
    "metric": "risk-column",
    **{
        name: name.replace("_", "-")
        for name in (
            *("scratch", "blind", "maximal", "unit", "weight", "seeds", "sizes", "level", "levels"),
            *("loss", "per", "axis", "ignore", "clip", "groups", "paired", "higher_is_better"),
            *("drop_failed", "classes", "kind", "highlight", "smoothing", "average"),
        )
    },
}
_FLAGS = ("higher_is_better", "drop_failed", "paired")
_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_WHERE = re.compile(rf"\bwhere=\{{({_QUOTED}): ({_QUOTED}|[^}}]*)\}}")
_PAIR = re.compile(
    rf"(?<![\w.'\"-])({_NAMES})="
    rf"({_QUOTED}|…|\[[^\]]*\]|\([^)]*\)|[^\s;,:]*[^\s;,:.)…]|(?=[\s;,:.)]|$))"
)
_HOLDS = re.compile(rf"(?<![\w.-])({_NAMES}) (?:holds|names) ({_QUOTED}|[\d.e+]+\b)")
_SPOKEN = re.compile(r"(?<![\w.-])(blind|maximal|where) (is missing|names)\b")
_BY_TASK = re.compile(rf"(?<![\w.-])sizes=\{{({_QUOTED}): \[([^\]]*)\]\}}")
_COMMANDS = {
    r"(?:cw\.|curvewise\.)?blind_guess\([^)]*\)(?:\.control\(\))?": "`curvewise transfer blind`",
    r"(?:cw\.|curvewise\.)blind_guess\b": "`curvewise transfer blind`",
    r", or a function \(prediction, targets\) -> loss of each example": "",
    r", or call the column loss if it has no bounds": ", or unit='loss' if it has no bounds",
    r", or pass Predictions if it is so": "",
    r"load_risks\(…, (\w+=\w+)\)": r"\1",
    r"\bnp\.nan\b": "nan",
    r"\bstudy\.run\(\)": "`curvewise study run`",
    r"\btest_targets\b(?!=)": "--test",
}


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
    """Say with options of ``curvewise transfer`` what a message says with Python arguments.

    >>> as_options("could be the risk. Choose with risk='test_loss', or task=False for none.")
    'could be the risk. Choose with --risk-column test_loss, or --task-column= for none.'
    >>> as_options("name it with scratch=…. There are 'a'; blind='a b' is no method.")
    "name it with --scratch …. There are 'a'; --blind 'a b' is no method."
    >>> as_options("choose with where={'lr': '1'}, or pass higher_is_better=True and sizes=[1, 2].")
    "choose with --where 'lr=1', or pass --higher-is-better and --sizes 1,2."
    >>> as_options("blind is missing for task 'a=1': pass the risk. There are 'task=b'.")
    "--blind is missing for task 'a=1': pass the risk. There are 'task=b'."
    >>> as_options("methods holds 'swv'; pass blind= or cw.blind_guess(targets, loss).")
    '--method swv; pass --blind or `curvewise transfer blind`.'
    >>> as_options("is too low: pass test_targets=… and smoothing=….")
    'is too low: pass --test … and --smoothing ….'
    """
    for name, command in _COMMANDS.items():
        message = re.sub(name, command, message)
    message = message.replace("where=…", "--where COLUMN≡VALUE")
    message = _WHERE.sub(_where, message)
    message = _BY_TASK.sub(_sizes, message)
    message = _HOLDS.sub(_option, message)
    message = _SPOKEN.sub(r"--\1 \2", message)
    return _PAIR.sub(_option, message).replace("≡", "=")  # which is no argument's, and must stay


def _where(found: re.Match[str]) -> str:
    return "--where " + shlex.quote(f"{_unquoted(found[1])}≡{_unquoted(found[2])}")


def _sizes(found: re.Match[str]) -> str:
    """Sizes of one task.

    >>> as_options("pass sizes={'depth': [100, 1000]}.")
    'pass --sizes depth=100,1000.'
    """
    return "--sizes " + _for_shell(f"{_unquoted(found[1])}≡{found[2].replace(' ', '')}")


def _option(found: re.Match[str]) -> str:
    """An argument and its value as an option, in quotes where the shell needs them."""
    name, given = f"--{_OPTIONS[found[1]]}", found[2]
    if found[1] in _FLAGS:
        return name if given != "False" else _negative(name)
    if given == "False":
        return f"{name}≡"
    if given.startswith(("[", "(")):
        words = re.findall(rf"{_QUOTED}|[^\s,()\[\]]+", given)
        return f"{name} {_for_shell(','.join(map(_unquoted, words)))}".rstrip()
    return f"{name} {_for_shell(_unquoted(given))}".rstrip()


def _negative(name: str) -> str:
    return "--lower-is-better" if name == "--higher-is-better" else f"--no-{name[2:]}"


def _unquoted(text: str) -> str:
    return str(ast.literal_eval(text)) if re.fullmatch(_QUOTED, text) else text


def _for_shell(value: str) -> str:
    return shlex.quote(value) if value and re.search(r"[^\w…≡/@%+:,.-]", value) else value
