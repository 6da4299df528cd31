"""Run a program to its end, with everything that it starts, and no longer than we live."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

TAIL = 8_000
"""Bytes of a program's output that are kept for the error text."""


def run_process(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    timeout: float | None = None,
) -> str | None:
    """Run a program without a shell, in a process group of its own.

    Parameters
    ----------
    words : sequence of str
        The program and its arguments.
    folder : Path
        Where it runs.
    environment : dict of str to str
        Added to our own environment.
    timeout : float, optional
        Seconds after which it is killed.

    Returns
    -------
    str or None
        What went wrong, with the end of what it printed; None if nothing did.

    Examples
    --------
    >>> import sys
    >>> run_process([sys.executable, "-c", "print('done')"], Path(), {})
    >>> print(run_process([sys.executable, "-c", "exit(3)"], Path(), {}))
    $ ... -c 'exit(3)'
    ended with exit status 3. It printed nothing.
    """
    said = f"$ {shlex.join(words)}"
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"{said}\ncannot be started in {folder}: {error}"
    assert process.stdout is not None
    tail = _Tail(process.stdout)
    late = False
    try:
        with _guarded(process.pid):
            process.wait(timeout)
    except subprocess.TimeoutExpired:
        late = True
    finally:  # also when we are interrupted; and what the program left running ends with it
        _kill_group(process)
        tail.finish()
    if late:
        return f"{said}\ntook longer than timeout={timeout:g} seconds and was killed.{tail.text()}"
    if process.returncode != 0:
        return f"{said}\n{_how_it_ended(process.returncode)}.{tail.text()}"
    return None


@contextmanager
def _guarded(group: int) -> Iterator[None]:
    """Have the group killed if we are: by SIGKILL, say, after which we can do nothing ourselves.

    A shell waits for a line that never comes. When we are gone, the other end of the pipe is
    closed, it stops waiting, and kills the group.
    """
    shell = Path("/bin/sh")
    if not shell.exists():
        yield
        return
    script = 'read line; kill -s KILL -- "-$1"'
    with subprocess.Popen(
        [shell, "-c", script, "guard", str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as guard:
        try:
            yield
        finally:
            guard.kill()


class _Tail:
    """The end of what a process prints, read while it runs so that it never waits for us."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._kept, self._cut = b"", False
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while chunk := os.read(self._stream.fileno(), 65_536):
            whole = self._kept + chunk
            self._cut = self._cut or len(whole) > TAIL
            self._kept = whole[-TAIL:]

    def finish(self) -> None:
        """Read what is left; a process that fled its group may hold the other end open."""
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._stream.close()

    def text(self) -> str:
        """What was printed last, on lines of its own."""
        printed = self._kept.decode(errors="replace").strip()
        if not printed:
            return " It printed nothing."
        return f" The {'end' if self._cut else 'whole'} of what it printed:\n{printed}"


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _how_it_ended(status: int) -> str:
    if status > 0:
        return f"ended with exit status {status}"
    with suppress(ValueError):
        return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    return f"was killed by signal {-status}"
