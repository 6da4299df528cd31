"""Checkpoints by their names: files, folders, and .toml files that list them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curvewise.cli._console import UsageError, note
from curvewise.cli._files import names_of

ARRAYS = (".npy", ".npz")
"""Endings of files that hold features."""

ENDINGS = (".pt2", ".pt", ".pth", ".th", ".onnx", ".tflite", ".safetensors", *ARRAYS)
"""Endings of the files that a folder of checkpoints is searched for."""

KEYS = (
    *("path", "layer", "factory", "options", "preprocessing", "pool", "tokenizer", "length"),
    *("shape", "classes", "source_accuracy"),
)
"""What a .toml file may say of a checkpoint."""


@dataclass(frozen=True)
class Found:
    """A checkpoint by its name, its file, and what is said of it."""

    name: str
    path: Path
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_array(self) -> bool:
        """Whether it is a file of features."""
        return self.path.suffix.lower() in ARRAYS


def find_checkpoints(words: Sequence[str], labels: Path | None = None) -> list[Found]:
    """Checkpoints out of files, folders, NAME=FILE, and .toml files that list them.

    A file of labels in one of the folders is none of them.
    """
    named: list[Found] = []
    plain: list[str] = []
    for word in words:
        name, equals, path = word.partition("=")
        if equals and not Path(word).exists():
            named.append(Found(name.strip(), there(Path(path))))
        elif Path(word).suffix.lower() == ".toml":
            named += _listed(there(Path(word)))
        else:
            plain += _files(there(Path(word)), labels)
    found = [Found(name, Path(file)) for file, name in names_of(_once(plain)).items()] + named
    for one in found:
        if not one.name or sum(other.name == one.name for other in found) > 1:
            raise UsageError(
                f"{one.path}: {one.name!r} names another checkpoint, too. Name it with "
                f"NAME={one.path}."
            )
    return found


def refuse_own_code(found: Sequence[Found]) -> None:
    """Refuse checkpoints of a .toml file whose network is made by code that the file names."""
    from curvewise.nn._own_code import names_own_code

    for one in found:
        factory = one.about.get("factory")
        if isinstance(factory, str) and names_own_code(factory, one.about.get("options")):
            raise UsageError(
                f"{one.name} is made by factory={factory!r}, code that a .toml file names: read "
                "it, and pass --trust to have it imported."
            )


def _once(files: Sequence[str]) -> list[str]:
    """Each file once, however it was written; those that were given again are told."""
    kept: dict[Path, str] = {}
    for file in files:
        place = Path(file).resolve()
        if place in kept:
            note(f"{file} is given more than once, and ranked once: NAME={file} ranks it again")
        kept.setdefault(place, file)
    return list(kept.values())


def there(path: Path) -> Path:
    """A path that exists."""
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder.")
    return path


def _files(path: Path, labels: Path | None) -> list[str]:
    """The file itself; of a folder what is in it, unless it is one checkpoint."""
    if not path.is_dir() or (path / "config.json").exists():
        return [str(path)]
    inside = [p for p in sorted(path.iterdir()) if labels is None or not _same(p, labels)]
    found = [
        str(p)
        for p in inside
        if p.suffix.lower() in ENDINGS or (p.is_dir() and (p / "config.json").exists())
    ]
    if not found:
        raise UsageError(f"{path}: no checkpoint is in this folder ({', '.join(ENDINGS)}).")
    _tell_left(path, [p for p in inside if str(p) not in found and not p.name.startswith(".")])
    return found


def _tell_left(path: Path, left: Sequence[Path]) -> None:
    """Say what in a folder is taken for no checkpoint, and why."""
    reasons = {
        f"no ending of a checkpoint ({', '.join(ENDINGS)})": [p for p in left if not p.is_dir()],
        "a folder without config.json": [p for p in left if p.is_dir()],
    }
    for why, paths in reasons.items():
        if paths:
            names = ", ".join(p.name for p in paths[:5]) + (" …" if len(paths) > 5 else "")
            note(f"{path}: left out {names}: {why}")


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.samefile(other)


def _listed(path: Path) -> list[Found]:
    """Checkpoints of a .toml file: a table for each, named by its key."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no TOML file: {error}.") from error
    found = []
    for name, table in tables.items():
        if not isinstance(table, dict) or "path" not in table:
            raise UsageError(
                f"{path}: {name} must be a table with the file of a checkpoint, such as "
                f'[{name}] path = "net.onnx".'
            )
        if odd := set(table) - set(KEYS):
            raise UsageError(f"{path}: {name} has {min(odd)!r}: use {', '.join(KEYS)}.")
        about = {key: value for key, value in table.items() if key != "path"}
        found.append(Found(name, there(path.parent / table["path"]), about))
    return found
