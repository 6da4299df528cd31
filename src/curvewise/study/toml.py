"""Study files: read, and written so that they read back as the same study."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
import uuid
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from curvewise.errors import InputError, parse_reason
from curvewise.study.document import document_of, study_from_document
from curvewise.study.study import Study

_WIDTH = 100


def load_study(path: str | PathLike[str], *, trust: bool = False) -> Study:
    """Read a study file.

    Nothing is trained, and nothing that the file names is imported or read. Code that it names is
    imported by :meth:`~Study.run`, and before that only if the file is trusted: see the page on
    studies from others. Relative paths in it start at the file's folder.

    Parameters
    ----------
    path : path
        A TOML file, see the guide to studies; ``curvewise study new`` writes one to begin with.
    trust : bool
        Whether code that the file names may be imported by whatever needs it, such as
        :meth:`~Study.plan` and :meth:`~Study.network`, and not by :meth:`~Study.run` only.

    Returns
    -------
    Study
        Ready for :meth:`~Study.plan` and :meth:`~Study.run`.

    Raises
    ------
    InputError
        If the file cannot be read as a study; the message names the table and the key.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "study.toml"
    >>> _ = path.write_text('''
    ... data = "digits"
    ... [learners.small]
    ... architecture = "mlp"
    ... width = 32
    ... [design]
    ... sizes = [100, 400]
    ... ''')
    >>> study = load_study(path)
    >>> study.learners["small"].training.options, study.design.sizes
    ({'width': 32}, (100, 400))
    """
    file = Path(path)
    if file.is_dir():
        there = file / "study.toml"
        which = str(there) if there.is_file() else "the study file in it"
        raise InputError(f"{file} is a folder: name {which}.")
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as a study file: {error}.") from error
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # among them integers of thousands of digits
        raise InputError(f"{file} is not valid TOML: {parse_reason(error):.300}.") from error
    return replace(study_from_document(document, file.parent, file.name), trust=trust)


def write_study(study: Study, path: str | PathLike[str]) -> Path:
    """Write a study file that :func:`load_study` reads as the same study.

    Parameters
    ----------
    study : Study
        Its data must be named, not in memory.
    path : path
        The file; one that is there is replaced.
    """
    file = Path(path)
    text = toml_text(document_of(study, file.parent))
    aside = file.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with aside.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)
    return file


def toml_text(document: Mapping[str, Any], comments: Mapping[str, str] | None = None) -> str:
    """Write tables as TOML: plain keys first, then a section for each table.

    >>> print(toml_text({"name": "a", "design": {"sizes": [1, 2], "poke": {"epoch": 0}}}), end="")
    name = "a"
    <BLANKLINE>
    [design]
    sizes = [1, 2]
    poke = { epoch = 0 }
    """
    comments = comments or {}
    lines = [_line(k, v) for k, v in document.items() if not isinstance(v, Mapping)]
    for name, table in document.items():
        if not isinstance(table, Mapping):
            continue
        # Learners and evaluation sets are tables of tables.
        inner = name in ("learners", "evaluate")
        sections = {(name, k): v for k, v in table.items()} if inner else {(name,): table}
        if name in comments:
            lines += ["", *(f"# {line}".rstrip() for line in comments[name].splitlines())]
        for i, (path, section) in enumerate(sections.items()):
            gap = [] if i == 0 and name in comments else [""]
            lines += [*gap, f"[{'.'.join(map(_key, path))}]"]
            lines += [_line(k, v) for k, v in section.items()]
    return "\n".join(lines).strip("\n") + "\n"


def _line(key: str, value: Any) -> str:
    line = f"{_key(key)} = {_value(value, key)}"
    if len(line) <= _WIDTH or not isinstance(value, list | tuple):
        return line
    rows = [f"    {_value(v, key)}," for v in value]
    return "\n".join([f"{_key(key)} = [", *rows, "]"])


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _value(value: Any, key: str) -> str:
    if hasattr(value, "item") and not isinstance(value, Mapping):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str | PathLike):
        return _text(os.fspath(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(v, key) for v in value)}]"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(str(k))} = {_value(v, str(k))}" for k, v in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    raise InputError(
        f"{key}={value!r} cannot stand in a study file: use text, numbers, true, false, lists and "
        "tables."
    )


def _text(text: str) -> str:
    """A quoted string; JSON escapes what TOML does, but for one character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{text!r} cannot be written as text: {error.reason}.") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
