"""Find damage in a store: each record, array, checkpoint, label and copy of data is checked."""

from __future__ import annotations

import os
import re
import stat
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from curvewise.errors import StoreError, arg
from curvewise.progress import progress_bar
from curvewise.reading.arrays import npz_arrays
from curvewise.store.claims import FOLDER as CLAIMS
from curvewise.store.read import (
    ASIDE,
    DATA,
    LABELS,
    MOST_READS,
    AnyPath,
    MissingRun,
    ReplacedRun,
    array_of,
    is_file,
    is_folder,
    open_file,
    read_copy,
    read_labels,
    read_part,
    read_record,
    run_folders,
    unreadable_data,
)
from curvewise.store.record import RECORD, REMEDY, UnknownSchema, has_id, is_guarded, part_file
from curvewise.store.write import cannot_write, names_in, own_folder
from curvewise.types.results import Result

DAMAGED = ".damaged"
OWN_FOLDERS = (ASIDE, CLAIMS, DAMAGED, LABELS, ".replaced", DATA)
"""Folders that a store has beside its runs."""
_is_data = re.compile(r"(made-)?[0-9a-f]{32}\.npz").fullmatch


@dataclass(frozen=True)
class Damage:
    """Something in a store that is not as it was written.

    Attributes
    ----------
    run : str or None
        Id of the run; None for what is not one run's: labels and data, which many share, or a
        run of another version.
    file : str
        Where, as seen from the store.
    problem : str
        What is wrong and what to do.
    """

    run: str | None
    file: str
    problem: str


@dataclass(frozen=True, eq=False)
class StoreCheck(Result):
    """The result of :func:`verify_store`.

    Attributes
    ----------
    store : str
        The folder.
    runs, done, failed : int
        How many runs there are, and how many of those that can be read ended how.
    files, bytes : int
        Files with a checksum that were read, and how much that was.
    damage : tuple of Damage
        All that is wrong.
    removed : tuple of str
        Ids of the damaged runs that were moved to ``.damaged``.
    leftovers, claims : tuple of str
        What interrupted or running writes left in ``.partial``, and the claims on runs being made.
    unguarded : int
        Records from before records had checksums: changed numbers in them would not be seen.
    warnings : tuple of str
        What is odd and no damage.
    """

    store: str
    runs: int
    done: int
    failed: int
    files: int
    bytes: int
    damage: tuple[Damage, ...] = ()
    removed: tuple[str, ...] = ()
    leftovers: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    unguarded: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """True if nothing is damaged."""
        return not self.damage

    @property
    def damaged_runs(self) -> tuple[str, ...]:
        """Ids of the damaged runs."""
        return tuple(dict.fromkeys(d.run for d in self.damage if d.run is not None))

    def sentences(self) -> str:
        """Summarise what was read and what is damaged."""
        many = f"{self.runs:,} run{'' if self.runs == 1 else 's'}"
        text = (
            f"{self.store} holds {many} ({self.done:,} done, {self.failed:,} failed); "
            f"{self.files:,} files, {self.bytes / 1e6:,.1f} MB, were read and "
        )
        if self.sound:
            return text + "all are intact."
        text += f"{len(self.damage):,} problems found, in {len(self.damaged_runs):,} runs."
        if self.removed:
            text += f" {len(self.removed):,} damaged runs were moved to {DAMAGED}: run the study again to repeat them."
        return text

    def columns(self) -> dict[str, list[Any]]:
        """A row for each thing that is damaged."""
        return {name: [getattr(d, name) for d in self.damage] for name in ("run", "file", "problem")}


def verify_store(store: AnyPath, *, remove: bool = False, progress: bool | None = None) -> StoreCheck:
    """Read every file of a store and check it against its checksum.

    Safe while runs are being written to the store, which is only read unless ``remove``. No link
    in it is followed: one that stands for a run, a file or a folder of the store is damage.

    Parameters
    ----------
    store : path
        Folder of the store.
    remove : bool
        Move damaged runs to ``.damaged`` inside the store, so that the study makes them again.
    progress : bool, optional
        Whether to show a bar; by default when stderr is a terminal.

    Returns
    -------
    StoreCheck
        ``.sound`` says whether all is well, ``.damage`` what is not.

    Raises
    ------
    StoreError
        If there is no such folder, or damaged runs cannot be moved.

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.store import write_run
    >>> store = tempfile.mkdtemp()
    >>> path = write_run(store, {"learner": "mine", "seed": 1}, [0, 1, 1])
    >>> verify_store(store).sound
    True
    >>> (path / "predictions.npy").write_bytes(b"cut")
    3
    >>> [d.file.split("/")[1] for d in verify_store(store, remove=True).damage]
    ['predictions.npy']
    >>> verify_store(store).runs
    0
    """
    folder = Path(store)
    if not folder.is_dir():
        raise StoreError(f"{arg('store', str(store))} is not a folder.")
    seen = _Seen(folder)
    paths = run_folders(folder)
    with progress_bar("checking", len(paths), progress) as advance:
        for path in paths:
            seen.look_at_run(Path(path))
            advance(1)
    seen.look_at_labels()
    seen.look_at_data()
    seen.look_around()
    warnings = list(seen.odd)
    if seen.unguarded:
        warnings.append(
            f"{seen.unguarded:,} records were written before records had checksums: a changed metric in them would not "
            "be seen."
        )
    found = StoreCheck(
        store=str(store),
        runs=seen.count.total(),
        done=seen.count["done"],
        failed=seen.count["failed"],
        files=seen.files,
        bytes=seen.bytes,
        unguarded=seen.unguarded,
        damage=tuple(seen.damage),
        leftovers=tuple(names_in(folder / ASIDE)),
        claims=tuple(names_in(folder / CLAIMS)),
        warnings=tuple(warnings),
    )
    return replace(found, removed=tuple(_set_aside(folder, found.damaged_runs))) if remove else found


@dataclass(eq=False)
class _Seen:
    """Findings so far in one store."""

    store: Path
    damage: list[Damage] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)
    digests: set[str] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    unguarded: int = 0

    def look_at_run(self, folder: Path) -> None:
        """Check the files of one run; again where another process replaces it meanwhile."""
        try:
            for left in reversed(range(MOST_READS)):
                try:
                    record, found = _check_files(folder)
                    break
                except ReplacedRun:
                    if not left:
                        raise
        except MissingRun:  # it was deleted since the store was listed
            return
        except UnknownSchema as error:  # another version may read it: it must not be moved aside
            self.count["unreadable"] += 1
            self.damage.append(Damage(None, f"{folder.name}/{RECORD}", str(error)))
            return
        # A link or file in the place of a run is itself the damaged file.
        places = [f"{folder.name}/{file}" if is_folder(folder) else folder.name for file, _ in found]
        self.damage += [Damage(folder.name, place, text) for place, (_, text) in zip(places, found, strict=True)]
        self.count["unreadable" if record is None else record["status"]] += 1
        if record is None:
            return
        self.unguarded += not is_guarded(record)
        self.digests.update(record["labels"].values())
        known = [RECORD, *(part_file(k, name) for k in ("arrays", "files") for name in record[k])]
        self._measure(folder / name for name in known)
        with suppress(OSError):
            extra = sorted(set(os.listdir(folder)) - set(known))
            self.odd += [f"{folder.name}/{name} belongs to no run." for name in extra]

    def look_at_labels(self) -> None:
        """Check every file of labels that a run names."""
        for digest in sorted(self.digests):
            try:
                read_labels(self.store, digest)
            except StoreError as error:
                self.damage.append(Damage(None, f"{LABELS}/{digest}.npy", str(error)))
            self._measure([self.store / LABELS / f"{digest}.npy"])

    def look_at_data(self) -> None:
        """Check every copy of a study's examples."""
        for name in filter(_is_data, names_in(self.store / DATA)):
            path = self.store / DATA / name
            try:
                if name.startswith("made-"):  # by a function: with a digest
                    read_copy(path)
                else:  # written for commands: whatever can be unpacked has the checksums of the zip file
                    with unreadable_data(path):
                        names, get = npz_arrays(path, open_file)
                        for part in names:
                            get(part)
            except StoreError as error:
                self.damage.append(Damage(None, f"{DATA}/{name}", str(error)))
            self._measure([path])

    def look_around(self) -> None:
        """Find runs in folders that no reader looks at, and links in place of the store's own."""
        for name in OWN_FOLDERS:
            if os.path.lexists(self.store / name) and not is_folder(self.store / name):
                text = f"{self.store / name} is a link or a file, where a store has a folder of its own: remove it."
                self.damage.append(Damage(None, name, text))
        with suppress(OSError), os.scandir(self.store) as entries:
            known = {os.path.basename(p) for p in run_folders(self.store)}
            for name in sorted(e.name for e in entries if e.name not in known):
                if is_folder(self.store / name) and is_file(self.store / name / RECORD):
                    text = f"{self.store / name} holds a run under a name that is not a run id. {REMEDY}"
                    self.damage.append(Damage(None, name, text))

    def _measure(self, paths: Iterable[Path]) -> None:
        for path in paths:
            with suppress(OSError):
                about = path.lstat()
                if stat.S_ISREG(about.st_mode):
                    self.bytes += about.st_size
                    self.files += 1


def _check_files(folder: Path) -> tuple[dict[str, Any] | None, list[tuple[str, str]]]:
    """Read all files of a run: its record, and for each damaged file what is wrong with it."""
    try:
        record = read_record(folder)
    except (MissingRun, UnknownSchema):
        raise
    except StoreError as error:
        return None, [(RECORD, str(error))]
    found = []
    if not has_id(record["coordinates"], folder.name):  # a hash for each run is too slow for listing a store
        found.append((RECORD, f"{folder / RECORD} has the coordinates of another run. {REMEDY}"))
    for kind in ("arrays", "files"):
        for name, about in record[kind].items():
            try:
                if kind == "files":
                    read_part(folder, record, kind, name)
                    continue
                array = array_of(folder, record, name)
                # The header of the file may say otherwise than the record, although the checksum is right.
                if (list(array.shape), str(array.dtype)) != (about.get("shape"), about.get("dtype")):
                    raise StoreError(f"{folder / name}.npy is not the array recorded. {REMEDY}")
            except (MissingRun, ReplacedRun):
                raise
            except StoreError as error:
                found.append((part_file(kind, name), str(error)))
    return record, found


def _set_aside(store: Path, ids: Iterable[str]) -> Iterator[str]:
    """Move damaged runs where no reader looks."""
    for identity in ids:
        try:
            away = own_folder(store, DAMAGED) / f"{identity}-{uuid.uuid4().hex[:12]}"
            os.rename(store / identity, away)
        except FileNotFoundError:  # another process has done so
            continue
        except OSError as error:
            raise cannot_write(store, error) from error
        yield identity
