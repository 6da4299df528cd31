"""A study in plain words: the tables of a study file, and the study that they describe."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from curvewise.errors import InputError
from curvewise.nn.settings import Training
from curvewise.nn.task import Keep
from curvewise.study.dataset import Dataset
from curvewise.study.design import Design
from curvewise.study.evaluation import Evaluation
from curvewise.study.learner import Learner
from curvewise.study.study import Study

KEYS = (
    "name",
    "seed",
    "recipe",
    "data",
    "learners",
    "design",
    "evaluate",
    "keep",
    "store",
    "folder",
)
"""What a study file may hold at its top."""

KINDS = ("architecture", "estimator", "command")
SETTINGS = tuple(f.name for f in fields(Training))
ESTIMATOR = ("estimator", "judged")
COMMAND = ("command", "timeout", "judged")
CHECKPOINTS = ("none", "end", "drops")

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
}
"""What others call our settings: too far apart in spelling to be found by it."""


def study_from_document(document: Mapping[str, Any], folder: Path, source: str = "study") -> Study:
    """Make a study of the tables of a study file; nothing named in them is imported or read.

    Parameters
    ----------
    document : dict
        As ``tomllib`` reads a study file.
    folder : Path
        Where the file lies, and relative paths start.
    source : str
        What messages call it.
    """
    from curvewise.study.recipes import with_recipe

    with within(source):
        check_keys(document, KEYS)
        document, defaults = with_recipe(document)
        for key, kind in _TOP.items():
            if key in document and not isinstance(document[key], kind):
                raise InputError(f"{key}={document[key]!r}: give {_SAID[kind]}.")
        if "data" not in document:
            raise InputError("data is missing: say what to learn, such as data = 'digits'.")
        if not document.get("learners"):
            raise InputError("learners is missing: add a table such as [learners.small].")
    parts: dict[str, Any] = {
        "data": _data(document["data"], source),
        "learners": _learners(document["learners"], defaults, source),
        "design": _design(document.get("design", {}), source),
        "evaluate": _evaluations(document.get("evaluate", {}), source),
        "keep": _keep(document.get("keep", {}), source),
        "folder": Path(os.path.normpath(folder / document.get("folder", "."))),
    }
    with within(source):
        return Study(
            **parts, **{k: document[k] for k in ("seed", "name", "store") if k in document}
        )


_TOP: dict[str, Any] = {
    "name": str,
    "seed": int,
    "data": str | Mapping,
    "learners": Mapping,
    "design": Mapping,
    "evaluate": Mapping,
    "keep": Mapping,
    "store": str,
    "folder": str,
}
_SAID: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    Mapping: "a table",
    str | Mapping: "a name or a table",
}


@contextmanager
def within(place: str) -> Iterator[None]:
    """Say where a mistake stands."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def check_keys(table: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a key that means nothing here, and suggest the one that was meant."""
    for key in table:
        if key not in known:
            close = get_close_matches(str(key), known, 1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            raise InputError(f"{key!r} is not known here.{meant} There are {', '.join(known)}.")


def _data(data: str | Mapping[str, Any], source: str) -> str | dict[str, Any]:
    with within(f"{source}, [data]"):
        if not data:
            raise InputError("data is empty: say what to learn, such as data = 'digits'.")
    return data if isinstance(data, str) else dict(data)


def _learners(
    tables: Mapping[str, Any], defaults: Mapping[str, Any], source: str
) -> dict[str, Learner]:
    found = {}
    for name, table in tables.items():
        with within(f"{source}, [learners.{name}]"):
            if not isinstance(table, Mapping):
                raise InputError(f"{table!r}: give a table with one of {', '.join(KINDS)}.")
            found[name] = learner_from_table(table, defaults.get(name, {}))
    return found


def learner_from_table(
    table: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> Learner:
    """Make a learner of its table: settings, and options of the architecture beside them.

    >>> learner_from_table({"architecture": "mlp", "width": 32, "epochs": 5}).training.options
    {'width': 32}
    """
    if not any(kind in table for kind in ("estimator", "command")):
        table = {**(defaults or {}), **table}
    kinds = [kind for kind in KINDS if kind in table]
    if len(kinds) != 1:
        _check_some_kind(table, kinds)
    kind = kinds[0]
    own = {"architecture": (*SETTINGS, "members"), "estimator": ESTIMATOR}.get(kind, COMMAND)
    said = {k: v for k, v in table.items() if k in own and k != "options"}
    options = table.get("options", {})
    if not isinstance(options, Mapping):
        raise InputError(f"options={options!r}: give a table of names and values.")
    beside = {k: v for k, v in table.items() if k not in own and k != "options"}
    for key in beside:
        _check_option(key, own, kind)
    if both := sorted(options.keys() & beside.keys()):
        raise InputError(f"{both[0]!r} stands in options and beside it: give it once.")
    options = {**beside, **options}
    if kind == "architecture":
        members = said.pop("members", 1)
        return Learner(Training(**said, options=options), members=members)
    return Learner(**said, options=options)


def _check_some_kind(table: Mapping[str, Any], kinds: Sequence[str]) -> None:
    meant = {FOREIGN.get(k) or next(iter(get_close_matches(k, KINDS, 1)), None) for k in table}
    meant &= set(KINDS)
    close = f" Did you mean {meant.pop()!r}?" if meant and not kinds else ""
    raise InputError(
        f"a learner needs one of {', '.join(KINDS)}; it has {' and '.join(kinds) or 'none'}.{close}"
    )


def _check_option(key: str, own: Sequence[str], kind: str) -> None:
    if meant := _meant(key, own):
        raise InputError(
            f"{key!r} is not known here. Did you mean {meant!r}? If it really is an option of the "
            f"{kind}, put it into options = {{ {key} = … }}."
        )


def _meant(key: str, own: Sequence[str]) -> str | None:
    """A setting that the key looks like, if any."""
    if own == ESTIMATOR:  # its parameters may be called anything
        return None
    if FOREIGN.get(key) in own:
        return FOREIGN[key]
    return next(iter(get_close_matches(key, own, 1, cutoff=0.8)), None)


def _design(table: Mapping[str, Any], source: str) -> Design:
    with within(f"{source}, [design]"):
        check_keys(table, [f.name for f in fields(Design)])
        return Design(**table)


def _evaluations(tables: Mapping[str, Any], source: str) -> dict[str, Evaluation]:
    found = {}
    for name, table in tables.items():
        with within(f"{source}, [evaluate.{name}]"):
            if not isinstance(table, Mapping):
                raise InputError(f"{table!r}: give a table with data, or with a perturbation.")
            check_keys(table, [f.name for f in fields(Evaluation)])
            found[name] = Evaluation(**table)
    return found


def _keep(table: Mapping[str, Any], source: str) -> Keep:
    with within(f"{source}, [keep]"):
        check_keys(table, [f.name for f in fields(Keep)])
        for name in ("probabilities", "features", "predictions"):
            if not isinstance(table.get(name, False), bool):
                raise InputError(f"{name}={table[name]!r}: give true or false.")
        if table.get("checkpoints", "none") not in CHECKPOINTS:
            raise InputError(
                f"checkpoints={table['checkpoints']!r}: use one of {', '.join(CHECKPOINTS)}."
            )
        return Keep(**table)


def document_of(study: Study, folder: Path | None = None) -> dict[str, Any]:
    """Write a study as the tables of a study file in ``folder``; defaults are left out.

    Raises
    ------
    InputError
        If its data is in memory, which a file cannot name.
    """
    document: dict[str, Any] = {"name": study.name, "seed": study.seed}
    if study.store is not None:
        document["store"] = os.fspath(study.store)
    if folder is not None and (start := _start(study.folder, folder)) != ".":
        document["folder"] = start
    document["data"] = _plain_data(study.data, "data")
    document["learners"] = {k: table_of_learner(v) for k, v in study.learners.items()}
    document["design"] = _changed(study.design, Design())
    document["evaluate"] = {
        name: _changed(e, Evaluation())
        | ({} if e.data is None else {"data": _plain_data(e.data, f"evaluate.{name}.data")})
        for name, e in study.evaluate.items()
    }
    document["keep"] = _changed(study.keep, Keep())
    return {k: v for k, v in document.items() if v not in ({}, None)}


def _start(folder: Path, home: Path) -> str:
    return os.path.relpath(folder.resolve(), home.resolve())


def _plain_data(data: Any, where: str) -> Any:
    if isinstance(data, Dataset):
        raise InputError(
            f"{where} is a Dataset in memory, which a study file cannot hold: save its arrays with "
            "np.savez('data.npz', x=x, y=y) and use data = 'data.npz' (for numbers, data = "
            "{ path = 'data.npz', targets = 'numbers' }), or name a function that makes it, data = "
            "'module:function'."
        )
    return data if isinstance(data, str) else dict(data)


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
    """The fields that differ from the defaults, tuples as lists."""
    pairs = {f.name: (getattr(value, f.name), getattr(default, f.name)) for f in fields(value)}
    return {
        k: _listed(v)
        for k, (v, usual) in pairs.items()
        if v != usual and v is not None and not isinstance(v, Dataset)
    }


def _listed(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_listed(v) for v in value]
    return {k: _listed(v) for k, v in value.items()} if isinstance(value, Mapping) else value
