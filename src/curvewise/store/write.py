"""Write runs to a store: one directory per run, written aside and renamed into place; no link is ever followed."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from numpy.typing import ArrayLike

from curvewise.errors import InputError, StoreError, os_reason
from curvewise.store.read import (
    ASIDE,
    LABELS,
    OPENS_IN_FOLDERS,
    REPLACED,
    AnyPath,
    MissingRun,
    ReplacedRun,
    check_folder,
    is_folder,
    open_folder,
    read_checked,
    read_part,
    read_record,
    replaced_id,
)
from curvewise.store.record import (
    MOST_RECORD,
    PREDICTIONS,
    RECORD,
    SCHEMA,
    TEST,
    Encoded,
    capture_environment,
    check_distinct,
    check_name,
    error_text,
    jsonable,
    metric_values,
    named_arrays,
    npy_bytes,
    part_file,
    record_bytes,
    run_id,
    set_name,
    weights_bytes,
)


def write_run(
    store: AnyPath,
    coordinates: Mapping[str, Any],
    predictions: ArrayLike | Mapping[str, ArrayLike] | None = None,
    metrics: Mapping[str, float] | None = None,
    *,
    arrays: Mapping[str, ArrayLike] | None = None,
    checkpoints: Mapping[str, Mapping[str, ArrayLike]] | None = None,
    labels: ArrayLike | Mapping[str, ArrayLike] | None = None,
    error: str | BaseException | None = None,
    environment: Mapping[str, Any] | None = None,
    notes: str | Sequence[str] = (),
    overwrite: bool = False,
) -> Path:
    """Store one run, from anyone's own training loop.

    The run appears whole or not at all: it is written aside, synced and renamed into place, so that
    a crash, a full disk, or another process writing the same run, leaves no half-written directory.
    A run that is replaced stays until the new one is in its place.

    A run that is there already with the same results is left alone and its path returned, whatever
    time either took; a failed one is replaced; one that differs is an error unless ``overwrite``.

    Parameters
    ----------
    store : path
        Folder of the store; made if missing.
    coordinates : dict
        What identifies the run (learner, n, fold, seeds, data digest, …): strings, numbers, bools,
        None, and lists and dicts of them. Their hash names the directory.
    predictions : array-like, or dict of str to array-like, optional
        What the model predicted for each evaluation example, any shape; numbers or strings. A dict
        has them by evaluation set, of which ``"test"`` is the one that a plain array is for.
    metrics : dict of str to float, optional
        Measured values. NaN and infinities are stored as null, and a note says so.
    arrays : dict of str to array-like, optional
        Further arrays: ``"probabilities"``, ``"probabilities.shifted"``, ``"features"``, …
    checkpoints : dict of str to dict of str to array-like, optional
        Weights by name, for each checkpoint; stored as ``<checkpoint>.safetensors``.
    labels : array-like, or dict of str to array-like, optional
        The true class of each evaluation example, by evaluation set; an array is the test set's.
        Stored once for all runs with the same ones.
    error : str or exception, optional
        Why the run failed; a run without an error is done.
    environment : dict, optional
        Added to what is captured: device, determinism flags, …
    notes : str or sequence of str
        Kept with the run.
    overwrite : bool
        Whether to replace whatever is there.

    Returns
    -------
    Path
        The run's directory.

    Raises
    ------
    InputError
        If something cannot be stored.
    StoreError
        If a different or damaged run with these coordinates is there, or if writing fails; what
        was stored stays.
    MissingDependencyError
        For checkpoints without safetensors.

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.store import read_run
    >>> store = tempfile.mkdtemp()
    >>> path = write_run(store, {"learner": "mine", "n": 100, "seed": 1}, [0, 1, 1], {"error": 0.2},
    ...                  arrays={"features": [[0.5], [1.5], [2.5]]}, labels=[0, 1, 0])
    >>> run = read_run(path)
    >>> run.metrics["error"], run.predictions.tolist(), run.labels().tolist()
    (0.2, [0, 1, 1], [0, 1, 0])
    >>> run.array("features").shape
    (3, 1)
    """
    identity = run_id(coordinates)
    kept = {k: npy_bytes(v, k) for k, v in named_arrays(predictions, arrays).items()}
    check_distinct(checkpoints or {}, "checkpoints")
    weights = {}
    for name, values in (checkpoints or {}).items():
        check_name(name, "checkpoints")
        weights[name] = weights_bytes(values, f"checkpoints[{name!r}]")
    truth = _encode_labels(labels)
    for name, (_, about) in truth.items():
        for kind in (PREDICTIONS, "probabilities"):
            array = set_name(kind, name)
            shape = kept[array][1]["shape"] if array in kept else None
            if shape is not None and shape[:1] != about["shape"][:1]:  # otherwise found only when it is read
                problem = f"has shape {tuple(shape)} and labels {name!r} {about['shape'][0]} examples"
                raise InputError(f"{problem}: give one prediction for each example.", argument=array)
    measured, lost = metric_values(metrics or {})
    record = {
        "schema": SCHEMA,
        "id": identity,
        "coordinates": jsonable(coordinates, "coordinates"),
        "status": "done" if error is None else "failed",
        "metrics": measured,
        "error": error_text(error),
        "environment": {
            **capture_environment(),
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
            **jsonable(environment or {}, "environment"),
        },
        "notes": [*([notes] if isinstance(notes, str) else map(str, notes)), *lost],
        "arrays": {k: about | {"file": part_file("arrays", k)} for k, (_, about) in kept.items()},
        "files": {k: about | {"file": part_file("files", k)} for k, (_, about) in weights.items()},
        "labels": {k: about["sha256"] for k, (_, about) in truth.items()},
    }
    files = {part_file("arrays", k): data for k, (data, _) in kept.items()}
    files |= {part_file("files", k): data for k, (data, _) in weights.items()}
    files[RECORD] = record_bytes(record)
    if len(files[RECORD]) > MOST_RECORD:
        raise InputError(
            f"The record of the run has {len(files[RECORD]):,} bytes, and {MOST_RECORD:,} are the "
            "most: store what is large as arrays=."
        )
    folder = Path(store)
    try:
        _write_truth(folder, truth)  # before the run that names it
        if not overwrite and _is_settled(folder / identity, record):
            return folder / identity
        return _publish(write_aside(folder, identity, files), folder / identity, record, overwrite)
    except StoreError:
        raise
    except OSError as problem:
        reason = os_reason(problem, place=False)
        raise StoreError(
            f"Run {identity} could not be written to store={str(store)!r}: {reason}. Nothing of it "
            "was stored; earlier runs are unchanged."
        ) from problem


def _publish(aside: Path, final: Path, record: Mapping[str, Any], overwrite: bool) -> Path:
    """Rename ``aside`` to ``final``; a run that is there is replaced, unless it has the same results.

    A replaced run is moved aside under a name that says so, and only deleted once its successor is in place and
    has been read again: after a crash in between, :func:`put_back` finds it.
    """
    replaced: list[Path] = []
    try:
        while True:
            try:
                os.rename(aside, final)
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise
            else:
                _sync_directory(final.parent)
                try:
                    _check_published(final)
                except BaseException:
                    discard(aside.parent, final)
                    raise
                return final
            if not overwrite and _is_settled(final, record):
                return final
            with suppress(FileNotFoundError):  # another process may have taken it away
                old = aside.with_name(f"{final.name}{REPLACED}{uuid.uuid4().hex[:12]}")
                os.rename(final, old)
                replaced.append(old)
    finally:
        remove(aside.parent, aside.name)
        for old in replaced:
            _put_back_or_discard(old, final)


def _check_published(folder: Path) -> None:
    """Read a run as others will, right after it was written."""
    try:
        record = read_record(folder)
        for kind in ("arrays", "files"):
            for name in record[kind]:
                read_part(folder, record, kind, name)
    except ReplacedRun:  # by another process, which checks what it has written
        return
    except StoreError as error:
        raise StoreError(f"{folder} was written and is not as it was written: {error} Store it again.") from error


def _is_settled(final: Path, record: Mapping[str, Any]) -> bool:
    """Return whether the run is there already and stays; a different one is an error."""
    if not os.path.lexists(final):
        put_back(final.parent)
    try:
        there = read_record(final)
    except MissingRun:
        return False
    if there["status"] == "failed":
        return False
    # Two runs with the same coordinates must agree in all but the time that they took.
    results = [
        [r["status"], r["arrays"], r["files"], {k: v for k, v in r["metrics"].items() if not k.endswith("seconds")}]
        for r in (there, record)
    ]
    if results[0] == results[1]:
        return True
    raise StoreError(
        f"{final} holds a run with the same coordinates but other results: pass overwrite=True to "
        "replace it, or add the coordinate in which they differ."
    )


# ---- True classes of evaluation sets, stored once for all runs that have the same


def write_labels(store: AnyPath, labels: ArrayLike | Mapping[str, ArrayLike]) -> dict[str, str]:
    """Store the true classes of evaluation sets; whole ones that are there stay.

    :func:`write_run` does so for the labels it is given: this restores labels that a store has lost.

    Parameters
    ----------
    store : path
        Folder of the store; made if missing.
    labels : array-like, or dict of str to array-like
        The true class of each evaluation example, by evaluation set; an array is the test set's.

    Returns
    -------
    dict of str to str
        The hash of each, which is the name of its file.

    Raises
    ------
    InputError
        If something cannot be stored.
    StoreError
        If writing fails.

    Examples
    --------
    >>> import tempfile
    >>> sorted(write_labels(tempfile.mkdtemp(), {"test": [0, 1], "shifted": [1, 0]}))
    ['shifted', 'test']
    """
    truth = _encode_labels(labels)
    try:
        _write_truth(Path(store), truth)
    except OSError as problem:
        raise cannot_write(Path(store), problem) from problem
    return {name: about["sha256"] for name, (_, about) in truth.items()}


def _encode_labels(labels: ArrayLike | Mapping[str, ArrayLike] | None) -> Encoded:
    """Encode labels by evaluation set; an array is the test set's."""
    if labels is None:
        return {}
    found = {}
    for name, values in (labels if isinstance(labels, Mapping) else {TEST: labels}).items():
        check_name(name, "labels")
        found[name] = npy_bytes(values, f"labels[{name!r}]")
        if not found[name][1]["shape"]:
            raise InputError(f"labels[{name!r}] is a single value: give one for each example.")
    return found


def _write_truth(store: Path, truth: Encoded) -> None:
    """Write labels under their hash, unless they are there and intact."""
    check_folder(store)
    make_folder(store)
    for data, about in truth.values():
        name = f"{about['sha256']}.npy"
        try:
            read_checked(store / LABELS / name, about["sha256"])
        except StoreError:
            write_file(store, LABELS, name, data)


# ---- Directories and files that appear whole or not at all

LEFTOVER_SECONDS = 3600.0
"""Age of a half-written run at which its writer is taken for dead; writing one takes seconds."""
# The answers to a rename onto a directory, or onto a file or link with its name; Windows says that access is denied.
_IN_THE_WAY = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR} | ({errno.EACCES} if os.name == "nt" else set())
_is_leftover = re.compile(r"([0-9a-f]{20}|[0-9a-f]{64}(\.npy)?|(made-)?[0-9a-f]{32}(\.npz)?)-[0-9a-f]{12}").fullmatch
"""Names that are made here for runs, labels and data; nothing else in the folder is touched."""


def write_aside(store: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """Write and sync files in a fresh directory that no reader looks at; all of them or none."""
    folder = own_folder(store, ASIDE) / _fresh(name)
    try:
        folder.mkdir()
        # Ages are measured by the clock of the file system, which may be another machine's.
        remove_leftovers(store, now=folder.lstat().st_mtime)
        for file, data in files.items():
            _write(folder / file, data)
        _sync_directory(folder)
    except BaseException:
        remove(folder.parent, folder.name)
        raise
    return folder


def write_file(store: Path, folder: str, name: str, data: bytes | Callable[[IO[bytes]], object]) -> None:
    """Write a file aside, sync it and rename it into a folder of the store, over one there.

    ``data`` is what it holds, or what writes that to an open file.
    """
    aside = own_folder(store, ASIDE) / _fresh(name)
    try:
        final = own_folder(store, folder) / name
        _write(aside, data)
        os.replace(aside, final)
        _sync_directory(final.parent)
    finally:
        remove(aside.parent, aside.name)


def replace_file(target: Path, data: bytes) -> None:
    """Write a file anywhere, whole or not at all.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    aside = target.with_name(f".{uuid.uuid4().hex[:12]}{target.suffix}")
    try:
        with open(aside, "xb") as out:
            out.write(data)
        os.replace(aside, target)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {os_reason(error, place=False)}.") from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def own_folder(store: Path, name: str) -> Path:
    """Make a folder that a store has for itself, such as ``.partial``; refuse a link to elsewhere.

    Raises
    ------
    StoreError
        If a link or a file has its name.
    """
    folder = store / name
    if not is_folder(folder):
        if not os.path.lexists(folder):
            make_folder(folder)
        # Looked at again: another worker may have made it since the first look.
        if not is_folder(folder):
            raise StoreError(f"{folder} is a link or a file, where the store has a folder of its own: remove it.")
    return folder


def check_writable(store: Path) -> None:
    """Write a small file to the store and remove it, so that a full disk or a link is found now.

    Raises
    ------
    OSError
        If the next run could not be written either.
    """
    own_folder(store, LABELS)
    # 64 KiB, about the size of a small run: some disks have room for an empty file when they are full.
    aside = own_folder(store, ASIDE) / _fresh("0" * 20)
    try:
        _write(aside, bytes(1 << 16))
    finally:
        remove(aside.parent, aside.name)


def cannot_write(store: Path, error: OSError) -> StoreError:
    """Make an error of a store that cannot be written: read-only, say, or full."""
    if isinstance(error, StoreError):
        return error
    reason = os_reason(error, place=False)
    return StoreError(f"The store {store} cannot be written: {reason}. Stored runs are unchanged.")


def make_folder(folder: Path) -> None:
    """Make a folder with its parents, so that it outlives a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    with suppress(OSError):  # a parent that may be entered but not read
        _sync_directory(folder.parent)


def remove_leftovers(store: Path, now: float) -> None:
    """Remove what interrupted writes left, an hour after they were interrupted."""
    put_back(store)
    for name in names_in(store / ASIDE):
        path = store / ASIDE / name
        with suppress(OSError):
            if _is_leftover(name) and now - _last_written(path) > LEFTOVER_SECONDS:
                discard(path.parent, path)


def remove_partial(store: Path, identity: str) -> None:
    """Remove half-written copies of a run; only the holder of its claim may call this."""
    for name in names_in(store / ASIDE):
        if _is_leftover(name) and name.startswith(f"{identity}-"):
            discard(store / ASIDE, store / ASIDE / name)


def put_back(store: Path) -> None:
    """Put runs back that were about to be replaced when their writer was interrupted.

    Their writer may be alive, between its two renames: it then finds them in the way once more.
    """
    for name in names_in(store / ASIDE):
        identity = replaced_id(name)
        if identity is not None:
            _put_back_or_discard(store / ASIDE / name, store / identity)


def _put_back_or_discard(old: Path, final: Path) -> None:
    if is_folder(old) and not os.path.lexists(final):
        with suppress(OSError):  # another was put there in this moment, or has done the same
            os.rename(old, final)
            _sync_directory(final.parent)
            return
    discard(old.parent, old)


def discard(aside: Path, path: Path) -> None:
    """Delete a run or what was written of one, under another name.

    A process that is about to rename it, to publish it or to put it back, then finds nothing, rather than a
    directory that is half deleted.
    """
    stem = path.name.removeprefix("made-").partition(".")[0].partition("-")[0]
    doomed = aside / _fresh(stem)
    with suppress(OSError):
        os.rename(path, doomed)
        remove(aside, doomed.name)


def remove(folder: Path, name: str, *, directories: bool = True) -> None:
    """Delete a file, link or directory in a folder of the store, if it is there and can be.

    Neither the folder nor anything in the directory may be a link to elsewhere: these are not
    followed, even if they are put there while this runs.
    """
    with suppress(OSError):
        if not OPENS_IN_FOLDERS:
            if is_folder(folder):
                path = folder / name
                if not is_folder(path):
                    path.unlink()
                elif directories:
                    shutil.rmtree(path)
            return
        at = open_folder(folder)
        try:
            if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
                if directories:
                    shutil.rmtree(name, ignore_errors=True, dir_fd=at)
            else:
                os.unlink(name, dir_fd=at)
        finally:
            os.close(at)


def names_in(folder: Path) -> list[str]:
    """List the names in a folder of the store; none where there is no folder."""
    if is_folder(folder):
        with suppress(OSError):
            return sorted(os.listdir(folder))
    return []


def _last_written(path: Path) -> float:
    """Return the time of the last write to a file, or to a directory or a file in it."""
    times = [path.lstat().st_mtime]
    for name in names_in(path):
        with suppress(FileNotFoundError):
            times.append((path / name).lstat().st_mtime)
    return max(times)


def _write(path: Path, data: bytes | Callable[[IO[bytes]], object]) -> None:
    with open(path, "xb") as out:
        data(out) if callable(data) else out.write(data)
        out.flush()
        # Otherwise a rename may reach the disk before what it names.
        os.fsync(out.fileno())


def _fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:12]}"


def _sync_directory(folder: Path) -> None:
    if os.name == "nt":  # directories cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
