"""Study files: read, and written so that they read back as the same study."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from curvewise.errors import InputError, parse_reason
from curvewise.nn.task import Keep
from curvewise.nn.training import Training
from curvewise.store.write import replace_file
from curvewise.study.data.dataset import Dataset
from curvewise.study.spec.design import Design, Learner, check_keys, within
from curvewise.study.spec.evaluation import Evaluation
from curvewise.study.spec.recipes import with_recipe
from curvewise.study.spec.study import CHECKPOINTS, StudySpec

_WIDTH = 100
_Made = TypeVar("_Made")


def read_document(file: Path) -> dict[str, Any]:
    """Read the tables of a study file."""
    if file.is_dir():
        there = file / "study.toml"
        which = str(there) if there.is_file() else "the study file in it"
        raise InputError(f"{file} is a folder: name {which}.")
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as a study file: {error}.") from error
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # among them integers of thousands of digits
        raise InputError(f"{file} is not valid TOML: {parse_reason(error):.300}.") from error


def write_document(study: StudySpec, path: str | PathLike[str]) -> Path:
    """Write a study file that :func:`load_study` reads as the same study.

    Parameters
    ----------
    study : Study
        Its data must be named, not in memory.
    path : path
        The file; one that is there is replaced.
    """
    file = Path(path)
    replace_file(file, toml_text(document_of(study, file.parent)).encode())
    return file


def toml_text(document: Mapping[str, Any]) -> str:
    """Write tables as TOML: plain keys first, then a section for each table.

    >>> print(toml_text({"name": "a", "design": {"sizes": [1, 2], "poke": {"epoch": 0}}}), end="")
    name = "a"
    <BLANKLINE>
    [design]
    sizes = [1, 2]
    poke = { epoch = 0 }
    """
    lines = [_line(k, v) for k, v in document.items() if not isinstance(v, Mapping)]
    for name, table in document.items():
        if not isinstance(table, Mapping):
            continue
        # Learners and evaluation sets are tables of tables.
        inner = name in ("learners", "evaluate")
        sections = {(name, k): v for k, v in table.items()} if inner else {(name,): table}
        for path, section in sections.items():
            # A table of tables, such as groups of parameters, has a section of its own.
            nested = {k: v for k, v in section.items() if _is_nested(v)}
            lines += ["", f"[{'.'.join(map(_key, path))}]"]
            lines += [_line(k, v) for k, v in section.items() if k not in nested]
            for key, inner_table in nested.items():
                lines += ["", f"[{'.'.join(map(_key, (*path, key)))}]"]
                lines += [_line(k, v) for k, v in inner_table.items()]
    return "\n".join(lines).strip("\n") + "\n"


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) > 1 and all(isinstance(v, Mapping) for v in value.values())


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
    if isinstance(value, bool | int | float):
        return str(value).lower()  # true, false, inf and nan, which TOML writes as Python does but for capitals
    if isinstance(value, str | PathLike):
        return _text(os.fspath(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(v, key) for v in value)}]"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(str(k))} = {_value(v, str(k))}" for k, v in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    raise InputError(
        f"{key}={value!r} cannot be written to a study file: use text, numbers, true, false, lists and tables."
    )


def _text(text: str) -> str:
    """Quote a string; JSON escapes the same characters as TOML, but for one."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{text!r} cannot be written as text: {error.reason}.") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# ---- The tables of a study file, and the study that they describe

KEYS = ("name", "seed", "recipe", "data", "learners", "design", "evaluate", "keep", "store", "folder")
"""Keys that a study file may hold at its top."""

KINDS = ("architecture", "estimator", "command")
SETTINGS = tuple(f.name for f in fields(Training))
ESTIMATOR = ("estimator", "judged")
COMMAND = ("command", "timeout", "judged")

FOREIGN = {
    "lr": "rate",
    "learning_rate": "rate",
    "batch_size": "batch",
    "wd": "weight_decay",
    "num_epochs": "epochs",
    "max_epochs": "epochs",
    "max_steps": "steps",
    "lr_schedule": "schedule",
    "dtype": "precision",
    "pretrained": "weights",
    "model": "architecture",
    "network": "architecture",
    "ensemble": "members",
    "param_groups": "groups",
    "ns_steps": "newton_schulz",
}
"""Names of our settings elsewhere, too far apart in spelling to be found by it."""


INHERITED = "inherited"
"""In a file that was saved, settings of a recipe that a change of another one made idle: no mistake of the user."""

INSTEAD = {"epochs": "steps", "patience": "patience_steps", "patience_steps": "patience"}
"""Settings of a recipe that one given beside it replaces."""


def study_fields(document: Mapping[str, Any], folder: Path, source: str = "study") -> dict[str, Any]:
    """Turn the tables of a study file into the fields of a study; nothing named in them is imported or read."""
    with within(source):
        check_keys(document, KEYS)
        document, defaults = with_recipe(document) if "recipe" in document else (document, {})
        for key, kind in _TOP.items():
            if key in document and not isinstance(document[key], kind):
                raise InputError(f"give {_KIND_NAMES[kind]}.", argument=key, value=document[key])
        if not document.get("data"):
            lacks = "is empty" if "data" in document else "is missing"
            raise InputError(f"{lacks}: say what to learn, such as data = 'digits'.", argument="data")
        if not document.get("learners"):
            raise InputError("is missing: add a table such as [learners.small].", argument="learners")
    data = document["data"]
    learners, evaluate = {}, {}
    for name, table in document["learners"].items():
        with within(f"{source}, [learners.{name}]"):
            if not isinstance(table, Mapping):
                raise InputError(f"{table!r}: give a table with one of {', '.join(KINDS)}.")
            learners[name] = learner_from_table(table, defaults.get(name, {}))
    for name, table in document.get("evaluate", {}).items():
        with within(f"{source}, [evaluate.{name}]"):
            if not isinstance(table, Mapping):
                raise InputError(f"{table!r}: give a table with data, or with a perturbation.")
            evaluate[name] = _from_table(Evaluation, table)
    with within(f"{source}, [design]"):
        design = _from_table(Design, document.get("design", {}))
    with within(f"{source}, [keep]"):
        keep = _from_table(Keep, document.get("keep", {}))
        for name in ("probabilities", "features", "predictions"):
            if not isinstance(getattr(keep, name), bool):
                raise InputError("give true or false.", argument=name, value=getattr(keep, name))
        if keep.checkpoints not in CHECKPOINTS:
            problem = f"use one of {', '.join(CHECKPOINTS)}."
            raise InputError(problem, argument="checkpoints", value=keep.checkpoints)
    return {
        "data": data if isinstance(data, str) else dict(data),
        "learners": learners,
        "design": design,
        "evaluate": evaluate,
        "keep": keep,
        "folder": Path(os.path.normpath(folder / document.get("folder", "."))),
        **{k: document[k] for k in ("seed", "name", "store") if k in document},
    }


def _from_table(kind: type[_Made], table: Mapping[str, Any]) -> _Made:
    """Make a dataclass of the table with its fields; a key that is no field of it is an error."""
    check_keys(table, [f.name for f in fields(kind)])  # type: ignore[arg-type]
    return kind(**table)


_TOP: dict[str, Any] = {"name": str, "seed": int, "data": str | Mapping, "store": str, "folder": str}
_TOP |= dict.fromkeys(("learners", "design", "evaluate", "keep"), Mapping)
_KIND_NAMES: dict[Any, str] = {str: "text", int: "a whole number", Mapping: "a table"}
_KIND_NAMES[str | Mapping] = "a name or a table"


def learner_from_table(table: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> Learner:
    """Make a learner of its table: settings, and options of the architecture beside them.

    >>> learner_from_table({"architecture": "mlp", "width": 32, "epochs": 5}).training.options
    {'width': 32}
    """
    listed = table.get(INHERITED, [])
    if not isinstance(listed, list | tuple) or not all(name in SETTINGS for name in listed):
        raise InputError("give a list of settings.", argument=INHERITED, value=listed)
    table = {k: v for k, v in table.items() if k != INHERITED}
    inherited: tuple[str, ...] = tuple(listed)
    if not any(kind in table for kind in ("estimator", "command")):
        # A length or a patience in another unit takes the place of the recipe's.
        gone = {INSTEAD[k] for k in table if INSTEAD.get(k) not in (None, *table)}
        usual = {k: v for k, v in (defaults or {}).items() if k not in gone}
        table = {**usual, **table}
        inherited += tuple(k for k, v in usual.items() if table[k] == v)
    kinds = [kind for kind in KINDS if kind in table]
    if len(kinds) != 1:
        likely = {FOREIGN.get(k) or next(iter(get_close_matches(k, KINDS, 1)), None) for k in table} & set(KINDS)
        close = f" Did you mean {likely.pop()!r}?" if likely and not kinds else ""
        raise InputError(f"a learner needs one of {', '.join(KINDS)}; it has {' and '.join(kinds) or 'none'}.{close}")
    kind = kinds[0]
    own = {"architecture": (*SETTINGS, "members"), "estimator": ESTIMATOR}.get(kind, COMMAND)
    given = {k: v for k, v in table.items() if k in own and k != "options"}
    options = table.get("options", {})
    if not isinstance(options, Mapping):
        raise InputError("give a table of names and values.", argument="options", value=options)
    beside = {k: v for k, v in table.items() if k not in own and k != "options"}
    for key in beside:
        if meant := _meant(key, own):
            raise InputError(
                f"{key!r} is not known here. Did you mean {meant!r}? If it really is an option of the "
                f"{kind}, put it into options = {{ {key} = … }}."
            )
    if both := sorted(options.keys() & beside.keys()):
        raise InputError(f"{both[0]!r} stands in options and beside it: give it once.")
    options = {**beside, **options}
    if kind == "architecture":
        members = given.pop("members", 1)
        return Learner(Training(**given, options=options), members=members, inherited=inherited)
    return Learner(**given, options=options)


def _meant(key: str, own: Sequence[str]) -> str | None:
    """Return a setting that the key looks like, if any."""
    if own == ESTIMATOR:  # its parameters may be called anything
        return None
    if FOREIGN.get(key) in own:
        return FOREIGN[key]
    return next(iter(get_close_matches(key, own, 1, cutoff=0.8)), None)


def document_of(study: StudySpec, folder: Path | None = None) -> dict[str, Any]:
    """Write a study as the tables of a study file in ``folder``; defaults are left out.

    Raises
    ------
    InputError
        If its data is in memory, which a file cannot name.
    """
    document: dict[str, Any] = {"name": study.name, "seed": study.seed}
    if study.store is not None:
        document["store"] = os.fspath(study.store)
    if folder is not None and (start := os.path.relpath(study.folder.resolve(), folder.resolve())) != ".":
        document["folder"] = start
    document["data"] = _plain_data(study.data, "data")
    document["learners"] = {k: table_of_learner(v) | _inherited(study, k) for k, v in study.learners.items()}
    document["design"] = _changed(study.design, Design())
    document["evaluate"] = {
        name: _changed(e, Evaluation())
        | ({} if e.data is None else {"data": _plain_data(e.data, f"evaluate.{name}.data")})
        for name, e in study.evaluate.items()
    }
    document["keep"] = _changed(study.keep, Keep())
    return {k: v for k, v in document.items() if v not in ({}, None)}


def _plain_data(data: Any, where: str) -> Any:
    if isinstance(data, Dataset):
        raise InputError(
            f"{where} is a Dataset in memory, which a study file cannot hold: save its arrays with "
            "np.savez('data.npz', x=x, y=y) and use data = 'data.npz' (for numbers, data = { path = 'data.npz', "
            "targets = 'numbers' }), or name a function that makes it, data = 'module:function'."
        )
    return data if isinstance(data, str) else dict(data)


def _inherited(study: StudySpec, name: str) -> dict[str, list[str]]:
    """Name the settings of a learner that came from a recipe and that nothing reads: they are part of its runs' ids."""
    learner = study.learners[name]
    idle: set[str] = set()
    if learner.inherited:
        for settings in study.design.combinations(name, learner.takes):
            training = learner.with_settings(settings).training
            idle |= set() if training is None else training.idle().keys()
    left = [k for k in learner.inherited if k in idle]
    return {INHERITED: left} if left else {}


def table_of_learner(learner: Learner) -> dict[str, Any]:
    """Write a learner as its table."""
    if learner.training is not None:
        own: tuple[str, ...] = (*SETTINGS, "members")
        table: dict[str, Any] = {"architecture": learner.training.architecture}
        table |= _changed(learner.training, Training())
        table |= {} if learner.members == 1 else {"members": learner.members}
        options: Mapping[str, Any] = table.pop("options", {})
    else:
        own = ESTIMATOR if learner.estimator is not None else COMMAND
        table = {k: getattr(learner, k) for k in own if getattr(learner, k) is not None}
        options = learner.options
    hidden = {k: v for k, v in options.items() if k in (*own, *KINDS, "options") or _meant(k, own)}
    table |= {k: v for k, v in options.items() if k not in hidden}
    return table | ({"options": hidden} if hidden else {})


def _changed(value: Any, default: Any) -> dict[str, Any]:
    """Return the fields that differ from the defaults, tuples as lists."""
    pairs = {f.name: (getattr(value, f.name), getattr(default, f.name)) for f in fields(value)}
    return {
        k: _listed(v) for k, (v, usual) in pairs.items() if v != usual and v is not None and not isinstance(v, Dataset)
    }


def _listed(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_listed(v) for v in value]
    return {k: _listed(v) for k, v in value.items()} if isinstance(value, Mapping) else value
