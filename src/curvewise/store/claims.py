"""Claims: who is making which run, so that no two processes make the same one."""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from curvewise.errors import StoreError
from curvewise.store.read import read_file
from curvewise.store.write import cannot_write, names_in, own_folder, remove, remove_partial

FOLDER = ".claims"
STALE_SECONDS = 600.0
"""Twenty missed heartbeats: a network file system may hang for minutes."""
HEARTBEAT_SECONDS = 30.0
MOST_BYTES = 100_000
"""Of a file that says who owns a claim; a store may hold anything."""
# What file systems without hard links answer.
_NO_LINKS = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV}
_FOLLOWS = os.utime not in os.supports_follow_symlinks  # where it cannot be helped
# Names that are made here; nothing else in the folder is touched.
_is_claim = re.compile(r"[0-9a-f]{20}\.[0-9]{1,9}").fullmatch
_is_owner = re.compile(r"\.owner-[0-9a-f]{32}").fullmatch


class Claims:
    """The runs of a store that this process is making.

    A claim is a file ``<store>/.claims/<id>.<turn>``, a hard link to one file that says who owns
    it, so that it appears with its content and one touch keeps all claims of a process fresh. A
    claim is stale when its process ran on this machine and is gone, or when it was not touched for
    ten minutes by the clock of the file system. Taking over a stale claim makes the file of the
    next turn: of several processes that try, the file system lets one succeed.

    Parameters
    ----------
    store : path
        Folder of the store.

    Examples
    --------
    >>> import tempfile
    >>> store = Path(tempfile.mkdtemp())
    >>> with Claims(store) as mine, Claims(store) as theirs:
    ...     mine.take("a" * 20), theirs.take("a" * 20)
    (True, False)
    """

    def __init__(self, store: str | os.PathLike[str], token: str | None = None) -> None:
        self.store = Path(store)
        self.folder = self.store / FOLDER
        self.token = token or uuid.uuid4().hex
        self._owner = self.folder / f".owner-{self.token}"
        self._held: dict[str, Path] = {}
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Claims:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def take(self, identity: str) -> bool:
        """Claim a run; False when another process holds it and is alive."""
        if identity in self._held:
            return True
        self._introduce()
        there = self._turns(identity)
        if there and not self._is_stale(there[-1]):
            return False
        turn = 1 + (_turn(there[-1]) if there else -1)
        mine = self.folder / f"{identity}.{turn}"
        with self._lock:
            self._held[identity] = mine  # before it is made: an interrupt must not leave it behind
        try:
            made = self._make(mine)
        except StoreError:
            self.release(identity)
            raise
        # Someone whose look at the folder is older than ours may have begun at another turn.
        if not made or any(p != mine and not self._is_stale(p) for p in self._turns(identity)):
            self.release(identity)
            return False
        for old in there:
            self._remove(old)
        if there:
            remove_partial(self.store, identity)
        return True

    def holds(self, identity: str) -> bool:
        """Return whether the claim is still ours; another may have taken it while we slept."""
        there = self._turns(identity)
        return bool(there) and _read(there[-1]).get("token") == self.token

    def release(self, identity: str) -> None:
        """Give a claim back."""
        path = self._held.get(identity)
        if path is not None and _read(path).get("token") == self.token:
            self._remove(path)
        with self._lock:
            self._held.pop(identity, None)

    def close(self) -> None:
        """Give all claims back."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        for identity in list(self._held):
            self.release(identity)
        self._remove(self._owner)

    def sweep(self) -> list[str]:
        """Remove stale claims and what their processes left half-written; says of which runs."""
        interrupted = []
        for identity in self.claimed():
            if identity not in self._held and self.is_stale(identity) and self.take(identity):
                self.release(identity)
                interrupted.append(identity)
        for path in map(self.folder.joinpath, filter(_is_owner, names_in(self.folder))):
            if path != self._owner and self._is_stale(path):
                self._remove(path)
        return interrupted

    def claimed(self) -> list[str]:
        """Ids of the runs that have a claim, of a living process or not."""
        return sorted({path.name.rsplit(".", 1)[0] for path in self._files()})

    def owner(self, identity: str) -> str:
        """Name the process that is making a run."""
        there = self._turns(identity)
        about = _read(there[-1]) if there else {}
        if not isinstance(about.get("host"), str):
            return "an unknown process"
        return f"{about['host'][:100]}, process {about['pid']}"

    def is_held(self, identity: str) -> bool:
        """Return whether a living process, this one included, is making the run."""
        there = self._turns(identity)
        return bool(there) and not self._is_stale(there[-1])

    def is_stale(self, identity: str) -> bool:
        """Return whether a process that is gone was making the run."""
        there = self._turns(identity)
        return bool(there) and self._is_stale(there[-1])

    def forget(self, token: str) -> list[str]:
        """Remove the claims of an owner known to be gone; says of which runs."""
        lost = []
        for path in self._files():
            if _read(path).get("token") == token:
                lost.append(path.name.rsplit(".", 1)[0])
                # The claim last: if this process ends in between, the next one still finds what there is to remove.
                remove_partial(self.store, lost[-1])
                self._remove(path)
        self._remove(self.folder / f".owner-{token}")
        return lost

    def _remove(self, path: Path) -> None:
        remove(self.folder, path.name, directories=False)  # claims are files

    def _introduce(self) -> None:
        """Write who we are, once, and begin to show that we live."""
        if self._thread is not None and self._owner.exists():
            return
        try:
            own_folder(self.store, FOLDER)
            with open(self._owner, "x") as file:
                file.write(json.dumps({"token": self.token, **this_process()}))
        except OSError as error:
            self._remove(self._owner)
            raise cannot_write(self.store, error) from error
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, daemon=True, name="claims")
            self._thread.start()

    def _beat(self) -> None:
        while not self._done.wait(HEARTBEAT_SECONDS):
            with self._lock:
                held = list(self._held.values())
            for path in (self._owner, *held):
                with suppress(OSError):
                    os.utime(path, follow_symlinks=_FOLLOWS)

    def _make(self, path: Path) -> bool:
        try:
            try:
                os.link(self._owner, path)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                with open(path, "x") as file:  # where there are no hard links; it is empty for an instant
                    file.write(self._owner.read_text())
        except FileExistsError:
            return False
        except OSError as error:
            self._remove(path)
            raise cannot_write(self.store, error) from error
        return True

    def _files(self) -> list[Path]:
        return [self.folder / name for name in names_in(self.folder) if _is_claim(name)]

    def _turns(self, identity: str) -> list[Path]:
        return sorted((p for p in self._files() if p.name.startswith(f"{identity}.")), key=_turn)

    def _is_stale(self, path: Path) -> bool:
        owner = _read(path)
        if owner.get("token") == self.token:
            return False
        if owner and owner["where"] is not None and owner["where"] == _where():
            # Another process may have the same number by now; when it began tells them apart.
            return owner["started"] is not None and _start_time(owner["pid"]) != owner["started"]
        try:
            age = self._now() - path.lstat().st_mtime
        except FileNotFoundError:
            return False  # given back while we looked
        return age > STALE_SECONDS

    def _now(self) -> float:
        """The time by the clock that stamps the claims, which may be another machine's."""
        try:
            self._introduce()
            os.utime(self._owner)
            return self._owner.stat().st_mtime
        except OSError:  # only readers come here: in a store that cannot be written, there are no claims of ours
            return time.time()


def _turn(path: Path) -> int:
    return int(path.name.rsplit(".", 1)[-1])


def _read(path: Path) -> dict[str, Any]:
    try:
        owner = json.loads(read_file(os.fspath(path), MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(owner, dict) or not isinstance(owner.get("token"), str):
        return {}
    known = {"where", "started"} <= owner.keys() and type(owner.get("pid")) is int
    return owner if known else {}


def this_process() -> dict[str, Any]:
    """Describe this process, so that others can tell whether it still runs."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "where": _where(), "pid": pid, "started": _start_time(pid)}


def _where() -> str | None:
    """Name the machine, its boot, and the namespace of its process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux: only the heartbeat tells
        return None


def _start_time(pid: int) -> str | None:
    """Return when a process began, in ticks; None when it is gone or a zombie, or this is not Linux."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
