"""Files, folders and frames into blocks of scores: finds the logs and asks the reader of their format."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import CurvewiseError, InputError, arg, brief, either, format_path, list_names, prefix
from curvewise.evals.logs import formats, inspect_log
from curvewise.evals.logs.block import Block, LogOptions, UnreadError, json_lines, one_name
from curvewise.evals.logs.tables import ROLES, read_lines, read_parquet, read_table_scores
from curvewise.reading.roles import normal
from curvewise.reading.table import (
    as_path,
    check_file,
    expand_files,
    json_table,
    kind_of,
    natural,
    parse_json,
    read_file,
    read_table,
    read_text,
)
from curvewise.text import format_count

_ENDINGS = (".eval", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".tab", ".parquet", ".pq")
_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".npy", ".npz")
_OTHER = (".xlsx", ".xls", ".ods", ".arrow", ".feather", ".db", ".sqlite", ".zip", ".zst", ".bz2", ".xz", ".tgz")
"""Formats in which people keep tables and logs, and which are not read."""


@dataclass(frozen=True)
class Collection:
    """Blocks of all files, with warnings of what was left out."""

    blocks: tuple[Block, ...]
    warnings: tuple[str, ...] = ()


def collect(paths: Any, options: LogOptions) -> Collection:
    """Read every log that ``paths`` names: a file, a folder, a pattern, a list or dict of these, or a frame."""
    given = _as_paths(paths)
    if isinstance(paths, np.ndarray):
        raise InputError(
            f"is an array of shape {paths.shape}, which names no models and questions.",
            argument="paths",
            remedy="Pass Evals(scores, models, questions), scores of shape models × questions × samples.",
        )
    if given is None and isinstance(paths, Mapping) and any(map(_is_table, paths.values())) and not _has_ids(paths):
        each = [_of_model(str(name), value, options) for name, value in paths.items()]
        return Collection(tuple(b for one in each for b in one.blocks), tuple(w for one in each for w in one.warnings))
    if given is None:
        return Collection(tuple(read_table_scores(read_table(paths), options)))
    blocks: list[Block] = []
    renamed: dict[str, list[Block]] = {}
    unread: list[UnreadError] = []
    warnings: list[str] = []
    files: dict[Path, tuple[str, bool]] = {}
    for name, several in given:
        for path, asked in _files(several, warnings).items():
            if files.setdefault(path, (name, asked))[0] != name:
                both = f"as {files[path][0]!r} and as {name!r}"
                raise InputError(f"{format_path(path)} is given {both}: name it once.")
    labels = _labels(list(files))
    for path in sorted(files, key=lambda path: natural(str(path))):
        name, asked = files[path]
        try:
            found = [replace(block, source=labels[path]) for block in read_log(path, options)]
            if name:
                renamed.setdefault(name, []).extend(found)
                found = [_renamed(block, name) for block in found]
            blocks += found
        except UnreadError as error:
            if asked and error.kind == "unknown":
                raise
            unread.append(error)
    if not blocks:
        _nothing(unread)
    for name, its_blocks in renamed.items():
        _check_one_model(its_blocks, name)
    _check_folders(blocks)
    left = [error for error in unread if error.kind != "side"]
    warnings += [prefix("left out: ", error.message) for error in left]
    return Collection(tuple(blocks), tuple(warnings))


def _as_paths(paths: Any) -> list[tuple[str, list[Path]]] | None:
    """Return paths with the model that the user says they are of, empty where none; None for a table in memory."""
    given = paths if isinstance(paths, Mapping) else {"": paths}
    if isinstance(paths, Mapping) and _is_columns(paths):
        return None
    found: list[tuple[str, list[Path]]] = []
    for name, value in given.items():
        several = [value] if isinstance(value, str | PathLike) else value
        if not isinstance(several, list | tuple) or not all(isinstance(p, str | PathLike) for p in several):
            return None
        found.append((str(name), [as_path(p) for p in several]))
    if not found or not all(files for _, files in found):
        raise InputError("paths is empty: name at least one log, or a folder of logs.")
    return found


def _is_table(value: Any) -> bool:
    """Return whether a value of a dict is a table: a frame, columns by name, or records."""
    records = isinstance(value, list | tuple) and bool(value) and all(isinstance(row, Mapping) for row in value)
    return hasattr(value, "columns") or isinstance(value, Mapping) or records


def _of_model(name: str, value: Any, options: LogOptions) -> Collection:
    """Read a table in memory, or paths, of one model by the name that the user gives."""
    if not _is_table(value):
        return collect({name: value}, options)
    blocks = read_table_scores(replace(read_table(value), source=f"the table of {brief(name)}"), options)
    _check_one_model(blocks, name)
    return Collection(tuple(_renamed(block, name) for block in blocks))


def _renamed(block: Block, name: str) -> Block:
    return replace(block, model=one_name(name, len(block)), called_by=None)


def _check_one_model(blocks: Sequence[Block], name: str) -> None:
    """Refuse one name for logs of several models; those called by their file may all be of the same."""
    logged = (block for block in blocks if block.called_by is None or block.called_by.is_dir())
    there = dict.fromkeys(block.model.names[i] for block in logged for i in np.unique(block.model.codes))
    if len(there) > 1:
        raise InputError(
            f"{name!r} is given as the name of logs of {len(there)} models: {list_names(there, 5)}. Give the logs "
            f"without a name, and choose with {arg('models', {name: next(iter(there))})}."
        )


def _check_folders(blocks: Sequence[Block]) -> None:
    """Refuse two folders of one name: nothing says whether they are of the same model."""
    places: dict[str, Path] = {}
    for block in blocks:
        place, name = block.called_by, block.model.names[0]
        if place is None or not place.is_dir() or "__" in place.name:
            continue  # two underscores stand for the slash of a model's full name
        first = places.setdefault(name, place)
        if first != place:
            one, two = (format_path("/".join(folder.parts[-2:])) for folder in (first, place))
            raise InputError(
                f"{one} and {two} hold samples without a results_*.json, which would "
                "name the model: nothing says whether it is the same. Give the name of each: "
                f"{either('load_evals({NAME: FOLDER, ...})', 'NAME=FOLDER NAME=FOLDER')}."
            )


def _labels(paths: Sequence[Path]) -> dict[Path, str]:
    """Return the shortest ends of paths that tell them apart: files of one name lie in different folders.

    >>> list(_labels([Path("a/b/x.json"), Path("c/b/x.json"), Path("c/y.json")]).values())
    ['a/b/x.json', 'c/b/x.json', 'y.json']
    """
    labels = {path: path.name for path in paths}
    for length in range(2, max((len(path.parts) for path in paths), default=0) + 1):
        counts = Counter(labels.values())
        labels = {
            path: "/".join(path.parts[-length:]) if counts[label] > 1 else label for path, label in labels.items()
        }
    return {path: format_path(label) for path, label in labels.items()}


def _files(named: Sequence[Path], warnings: list[str]) -> dict[Path, bool]:
    """Return the files to read, and whether the user named each of them."""
    asked: dict[Path, bool] = {}
    for path in named:
        if path.is_dir():
            found, left = _walk(path)
            warnings += [
                f"left out in {format_path(path)}: {list_names(names, 3)}; {why}."
                for why, names in left.items()
                if names
            ]
            if not found:
                raise InputError(f"{arg('paths', str(path))} has no files that end in {', '.join(_ENDINGS)}.")
            asked |= {file: asked.get(file, False) for file in found}
            continue
        for file in expand_files(path):
            if file.is_dir():
                asked |= {inner: asked.get(inner, False) for inner in _walk(file)[0]}
            elif file != path:  # matched by a pattern
                asked.setdefault(file, False)
            elif asked.get(file):
                raise InputError(f"{format_path(file)} is given twice: name each log once.")
            else:
                asked[file] = True
    return asked


def _walk(folder: Path) -> tuple[list[Path], dict[str, list[str]]]:
    """Return the files of a folder that may be logs, and the names of others that may hold scores, by the reason."""
    found: list[Path] = []
    links, pickles, others = list[str](), list[str](), list[str]()
    for root, folders, files in os.walk(folder):
        here = Path(root)
        links += [name for name in (*folders, *files) if (here / name).is_symlink()]
        # Parts of a log of Inspect that lies merged beside their folder would count twice.
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and not (here / name).is_symlink()
            and not (name.endswith(".shards") and (here / name).with_suffix(".eval").exists())
        ]
        for name in files:
            path = here / name
            if path.is_symlink() or name.startswith("."):
                continue
            if name.lower().removesuffix(".gz").endswith(_ENDINGS):
                found.append(path)
            elif path.suffix.lower() in _PICKLES:
                pickles.append(name)
            elif path.suffix.lower() in _OTHER:
                others.append(name)
    return found, {
        "links are not followed": links,
        "pickles can run code and are never read": pickles,
        "such files are not read: save them as CSV, JSON lines or Parquet": others,
    }


def _nothing(unread: Sequence[UnreadError]) -> None:
    """Raise where no file holds scores: with all reasons, or the first few."""
    if len(unread) == 1:
        raise unread[0]
    # Files beside a log say little where there is a log that could not be used.
    worth = [e for e in unread if e.kind == "log"] or [e for e in unread if e.kind == "unknown"] or list(unread)
    more = f" And {format_count(len(worth) - 3, 'more file')}." if len(worth) > 3 else ""
    reasons = " ".join(e.message.marked for e in worth[:3])
    raise InputError(f"None of {format_count(len(unread), 'file')} holds scores to read. {reasons}{more}")


def read_log(path: Path, options: LogOptions) -> list[Block]:
    """Read one file by its ending and its content."""
    try:
        return _read_log(path, options)
    except CurvewiseError:
        raise
    except (AttributeError, TypeError, LookupError, ValueError, ArithmeticError) as error:
        # A list where every version of a tool writes an object, and the like: readers do not check each field.
        raise InputError(
            f"{format_path(path)} does not have the structure of its format ({type(error).__name__}): damaged, or "
            "of a version that is not known."
        ) from error


def _read_log(path: Path, options: LogOptions) -> list[Block]:
    suffix = path.suffix.lower()
    if suffix == ".eval":
        return [inspect_log.read_eval(path, options)]
    if suffix in _PICKLES and path.exists():
        raise InputError(
            f"{format_path(path)} is a file of Python or numpy objects, which is never read here: a pickle can run "
            "code. Save the scores as CSV, JSON lines or Parquet, with model, question and score."
        )
    kind, _ = kind_of(path)
    if kind == "parquet":
        return read_parquet(path, options)
    if kind == "lines":
        return _read_lines(path, options)
    if kind == "json":
        check_file(path)
        if formats.is_side_file(path):
            raise UnreadError(
                f"{format_path(path)} lies beside the scores of a run of HELM, in per_instance_stats.json.", "side"
            )
        text = read_text(path)
        if inspect_log.is_inspect_json(text):
            return [inspect_log.read_inspect_json(text, path, options)]
        return _read_document(parse_json(text, path), path, options)
    return read_table_scores(read_file(path), options)


def _read_lines(path: Path, options: LogOptions) -> list[Block]:
    first = next(json_lines(path), [None])[0]
    if isinstance(first, Mapping):
        if formats.is_harness_row(first):
            return [formats.read_harness(path, options)]
        if formats.is_record_row(first):
            return formats.read_eval_records(path, options)
    return read_lines(path, options)


def _read_document(data: Any, path: Path, options: LogOptions) -> list[Block]:
    """Read a JSON document by what it looks like: a known format, or a table."""
    if (found := formats.read_document(data, path, options)) is not None:
        return found
    if isinstance(data, dict) and not _is_columns(data):
        if formats.is_passes(data):
            return [formats.read_passes(data, path)]
        raise UnreadError(f"{format_path(path)} is no log of a known format, and no table.", "unknown")
    if not isinstance(data, list | dict) or (isinstance(data, list) and not all(isinstance(r, dict) for r in data)):
        raise UnreadError(f"{format_path(path)} is no log of a known format, and no list of records.", "unknown")
    return read_table_scores(json_table(data, path), options)


def _is_columns(data: Mapping[str, Any]) -> bool:
    """Return whether a JSON object holds columns by name: one of them is called as the question."""
    return _has_ids(data) and all(isinstance(v, list) for v in data.values())


def _has_ids(names: Iterable[str]) -> bool:
    question = next(role for role in ROLES if role.name == "question")
    return any(question.is_called(normal(str(name))) for name in names)
