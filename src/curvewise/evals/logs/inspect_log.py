"""Logs of Inspect: ``.eval``, a zip archive with summaries of the samples, and ``.json``; transcripts are not kept."""

from __future__ import annotations

import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from curvewise.errors import InputError, MissingDependencyError, arg, format_path
from curvewise.evals.logs.block import (
    Block,
    LogOptions,
    UnreadError,
    block_of_model,
    code_cells,
    hash_of,
    hidden_cells,
    usable_scores,
)
from curvewise.reading.table import LARGEST_TEXT, check_file, check_unpacked
from curvewise.text import format_count

_ZSTD = 93
"""The number of zstd among the compressions of zip archives."""
_LARGEST_RATIO, _SMALL = 200, 1 << 24
"""A member that unpacks to more than 16 MiB and to so many times its size is hardly a log."""
_STATES = {"cancelled": "was cancelled", "error": "ended with an error", "started": "has not finished"}


def read_eval(path: Path, options: LogOptions) -> Block:
    """Read an ``.eval`` file: its header, and the summaries of its samples."""
    check_file(path)
    with open(path, "rb") as stream:
        if stream.read(2) != b"PK":
            raise InputError(f"{format_path(path)} is no zip archive, as .eval files are: it was cut short or renamed.")
    try:
        with zipfile.ZipFile(path) as plain:
            packed = any(member.compress_type == _ZSTD for member in plain.infolist())
        with _zip_module(packed, path).ZipFile(path) as archive:
            header, summaries = _read_members(archive, path)
    except (InputError, MissingDependencyError):
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{format_path(path)} is not a whole .eval file ({error}): it was cut short.") from error
    except Exception as error:  # the errors of zstd are classes of their own
        if type(error).__name__ not in ("ZstdError", "BadZipFile"):
            raise
        raise InputError(f"{format_path(path)} is not a whole .eval file ({error}): it is damaged.") from error
    return _block(header, summaries, path, options)


def _zip_module(packed: bool, path: Path) -> Any:
    """Return the module that reads the archive: Python's own, before 3.14 with a package for zstd."""
    if not packed or sys.version_info >= (3, 14):
        return zipfile
    try:
        from backports.zstd import zipfile as with_zstd
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"Reading {format_path(path)} needs backports.zstd, which is not installed: pip install "
            '"curvewise[zstd]". Or convert it: inspect log convert --to json.'
        ) from error
    return with_zstd


def _read_members(archive: Any, path: Path) -> tuple[dict[str, Any], list[Any]]:
    members = {member.filename: member for member in archive.infolist()}

    def read(name: str) -> Any:
        member = members[name]
        check_unpacked(path, member.file_size, min(LARGEST_TEXT, max(_SMALL, _LARGEST_RATIO * member.compress_size)))
        with archive.open(member) as stream:
            # A header may lie about the size: no more is read than it says.
            data = stream.read(member.file_size + 1)
        if len(data) > member.file_size:
            raise InputError(f"{format_path(path)} is damaged: {name} is longer than it says.")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name} in {format_path(path)} is not whole JSON: the file is damaged.") from error

    if "header.json" in members:
        header = read("header.json")
    elif "_journal/start.json" in members:  # a log that is still written to, or whose process was killed
        header = {"status": "started", **read("_journal/start.json")}
    else:
        raise InputError(f"{format_path(path)} is a zip archive without header.json: it is no log of Inspect.")
    if not isinstance(header, dict) or not isinstance(header.get("eval"), dict):
        raise InputError(f"{format_path(path)} is no log of Inspect: its header does not describe an evaluation.")
    if "summaries.json" in members:
        return header, _list(read("summaries.json"), path)
    journal = [name for name in members if re.fullmatch(r"_journal/summaries/\d+\.json", name)]
    journal.sort(key=lambda name: int(name.rpartition("/")[2].removesuffix(".json")))
    samples = [s for name in journal for s in _list(read(name), path) if isinstance(s, dict)]
    # Of a sample that was run again the last summary counts.
    return header, list({(str(s.get("id")), s.get("epoch", 1)): s for s in samples}.values())


def _list(value: Any, path: Path) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{format_path(path)} is no log of Inspect: its samples are not a list.")
    return value


# A log in one JSON document, samples and all: the transcript of each sample is dropped as soon as it is parsed.

_TRANSCRIPT = {"messages", "output", "events", "timelines", "store", "attachments", "files", "error_retries"}


def is_inspect_json(text: str) -> bool:
    """Return whether a JSON text begins as a log of Inspect does."""
    head = text[:2000]
    return bool(re.match(r'\s*\{\s*"(version|status|eval)"\s*:', head) and re.search(r'"(eval|status)"\s*:', head))


def read_inspect_json(text: str, path: Path, options: LogOptions) -> Block:
    """Read a ``.json`` log."""
    try:
        header = json.loads(text, object_hook=_trimmed)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{format_path(path)} is not whole JSON ({error!s:.200}): it was cut short, or is something else."
        ) from error
    if not isinstance(header.get("eval"), dict) or "status" not in header:
        raise UnreadError(f"{format_path(path)} is no log of Inspect, though it begins like one.", "unknown")
    return _block(header, _list(header.pop("samples", None) or [], path), path, options)


def _trimmed(found: dict[str, Any]) -> dict[str, Any]:
    """Drop the transcript of a sample, which may be long; all else stays as it is."""
    if found.keys() >= {"id", "epoch", "input"}:  # metadata may have these, too, and a field that names the cluster
        return {key: value for key, value in found.items() if key not in _TRANSCRIPT}
    return found


def _block(header: Mapping[str, Any], samples: Iterable[Any], path: Path, options: LogOptions) -> Block:
    """Make a block of a header and the scored samples."""
    about, source = header["eval"], format_path(path)
    kept = [s for s in samples if isinstance(s, dict)]
    _check_status(header, kept, source, options)
    cells: dict[str, list[Any]] = {}
    for i, sample in enumerate(kept):
        for metric, value in _values(sample, header):
            cells.setdefault(metric, [None] * len(kept))[i] = value
    scores, unusable = usable_scores(cells)
    if not scores:
        why = "; ".join(f"scorer {metric!r} {what}" for metric, what in unusable.items())
        raise UnreadError(
            f"{source} is unscored: {why}."
            if why
            else f"{source} is unscored: none of its {format_count(len(kept), 'sample')} has a score. Score it with "
            "`inspect score`."
        )
    failed = sum(bool(s.get("error")) for s in kept)
    version, passed = about.get("task_version", 0), about.get("task_args_passed")
    warnings = {
        f": {format_count(failed, 'sample')} ended with an error": failed,
        ": some of its samples were marked as invalid": header.get("invalidated"),
        f" {_STATES.get(header['status'], header['status'])}": header["status"] != "success",
    }
    marks = {metric: {v for v in column if isinstance(v, str)} for metric, column in cells.items()}
    return block_of_model(
        path,
        "Inspect log",
        str(about.get("model", "")),
        str(about.get("task", "")),
        [s.get("id") for s in kept],
        scores,
        sample=code_cells(s.get("epoch", 1) for s in kept),
        group=_group(kept, options.group),
        hashes={"question text": code_cells(_hash(s.get("input"), s.get("choices")) for s in kept)},
        settings={"task version": str(version)} | ({} if passed is None else {"task arguments": json.dumps(passed)}),
        higher={metric: True for metric, letters in marks.items() if letters},  # C is correct, whatever it is called
        unusable=unusable,
        notes=("P counts as ½ and N as 0",) if {"P", "N"} & set().union(*marks.values()) else (),
        warnings=tuple(f"{source}{text}." for text, holds in warnings.items() if holds),
    )


def _check_status(header: Mapping[str, Any], kept: list[Any], source: str, options: LogOptions) -> None:
    status = str(header.get("status"))
    if status != "success" and not options.unfinished:
        total = (header.get("results") or {}).get("total_samples")
        done = f"{len(kept):,} of {total:,} samples" if isinstance(total, int) else format_count(len(kept), "sample")
        raise UnreadError(
            f"{source} {_STATES.get(status, f'has the status {status!r}')}; it holds {done}. Samples that end early "
            f"may be the easy ones: pass {arg('unfinished', True)} to read it nevertheless."
        )
    if not kept:
        overall = (header.get("results") or {}).get("scores")
        raise UnreadError(
            f"{source} holds only overall scores: it was written without its samples."
            if overall
            else f"{source} holds no samples."
        )


_SCORER = "88F74D2C"
"""Inspect's stand-in for the name of the only scorer, in older logs."""


def _values(sample: Mapping[str, Any], header: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of each scorer; those of a scorer that gives several by their names."""
    scores = sample.get("scores") or ({_SCORER: sample["score"]} if sample.get("score") else {})
    for name, score in scores.items():
        overall = (header.get("results") or {}).get("scores")
        scorer = str(overall[0].get("name", "score")) if name == _SCORER and overall else name
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from ((f"{scorer}/{key}", part) for key, part in value.items())
        else:
            yield scorer, value


_COMPARED = 500
"""Characters of a question that are compared: summaries hold its beginning only."""


def _hash(asked: Any, choices: Any) -> str:
    """Return a hash of the beginning of a question; messages also hold ids, which differ between runs."""
    texts: list[str] = []
    for message in asked if isinstance(asked, list) else [asked]:
        content = message.get("content") if isinstance(message, dict) else message
        parts = content if isinstance(content, list) else [content]
        texts += [str(part.get("text", "")) if isinstance(part, dict) else str(part or "") for part in parts]
    text = " ".join(" ".join(texts).split())[:_COMPARED]
    # Long texts are kept apart from the sample in .json logs.
    return "" if not text or "attachment://" in text else hash_of([text, choices])


def _group(kept: list[Any], name: str | None) -> Any:
    """Return the field of the metadata that names the cluster of a question."""
    if name is None:
        return None
    found = [(s.get("metadata") or {}).get(name) for s in kept]
    return None if all(value is None for value in found) else code_cells(hidden_cells(found))
