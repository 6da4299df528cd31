"""Worker processes of this machine: what starts them and deals out runs to them, and what they do themselves."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, StoreError
from curvewise.nn.devices import try_device
from curvewise.nn.own_code import installed_only
from curvewise.store.claims import Claims
from curvewise.study.run.maker import Maker, SpoiltDeviceError
from curvewise.study.run.programs import kill_group
from curvewise.study.spec.study import Job, StudySpec

if TYPE_CHECKING:
    from curvewise.study.run.drive import Drive

POLL_SECONDS = 0.5
"""Between two looks at what others do, while no worker says anything."""
_LIBRARIES = ("OMP", "MKL", "OPENBLAS", "NUMEXPR")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in _LIBRARIES}
"""A worker's environment: sums are split among threads, so that their number changes the bits."""

STOP_SECONDS = 1.0
"""For all workers to store what is finished after they were asked to stop; longer than GIVE_UP_SECONDS."""
MOST_FALSE_STARTS = 3
"""Workers in a row that end before they are ready: an import fails, say, and will fail again."""


class _Worker:
    """A worker process, from outside."""

    def __init__(self, drive: Drive, device: str, inbox: Any) -> None:
        study, self.device = drive.study, device
        self.chunk: list[Job] = []
        self.last: Job | None = None
        self.reason: str | None = None
        self.token: str | None = None
        self.is_ready = False
        self.began = 0.0
        # Neither the current folder nor the study's: a file there would be imported in the place of
        # a package that is not installed. The study's own code is found through its folder.
        path = installed_only(sys.path, study.folder)
        code = f"import sys; sys.path[:] = {path!r}; "
        code += "from curvewise.study.run.processes import main; main()"
        # A group of its own, so that Ctrl-C reaches us alone and we stop the workers in order.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | ONE_THREAD,
            process_group=None if os.name == "nt" else 0,
        )
        # In a thread: the study may hold data larger than the buffer of the pipe, and the worker reads it late.
        hello = (study, {"device": device, **drive.settings.making})
        threading.Thread(target=self._listen, args=(hello, inbox), daemon=True).start()

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # a worker that is gone is noticed elsewhere
            send_message(self.process.stdin, message)

    def give(self, chunk: list[Job], tried: dict[str, int]) -> None:
        self.chunk, self.last, self.began = chunk, chunk[0], time.monotonic()
        self.send((chunk, tried))

    def _listen(self, hello: Any, inbox: Any) -> None:
        """Introduce the study, which may be long, and pass on what the worker says."""
        assert self.process.stdout is not None
        self.send(hello)
        try:
            while True:
                inbox.put((self, *read_message(self.process.stdout)))
        except Exception:  # the end of the stream, or a message cut off by the end of the process
            inbox.put((self, "gone", None))

    def end(self, until: float) -> None:
        """Wait for the process until a moment; then kill it, and what its libraries have started."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, until - time.monotonic()))
        kill_group(self.process)
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


class WorkerPool:
    """Worker processes, and the loop that deals out work to them."""

    def __init__(self, drive: Drive, devices: list[str]) -> None:
        self.drive, self.board = drive, drive.board
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.devices = devices[: len(drive.due)]
        self.workers: list[_Worker] = []
        self.false_starts = 0
        self.strikes = Counter[str]()
        """Workers in a row that ended on a device without finishing anything."""

    def run(self) -> None:
        """Deal out runs until all are made."""
        try:
            self.workers = [_Worker(self.drive, device, self.inbox) for device in self.devices]
            while not self.board.is_finished:
                self._deal()
                self._listen()
        finally:
            self._stop()

    def _deal(self) -> None:
        for worker in self.workers:
            if worker.is_ready and not worker.chunk and (chunk := self.board.next_chunk(worker.last)):
                worker.give(chunk, self.drive.tried(chunk))

    def _listen(self) -> None:
        try:
            worker, kind, content = self.inbox.get(timeout=POLL_SECONDS)
        except queue.Empty:
            self.drive.look_at_others()
            return
        if kind == "event":
            self.drive.hear(content)
        elif kind == "ready":
            worker.is_ready, worker.token, self.false_starts = True, content, 0
            self.drive.stage = self.drive.first_stage()
        elif kind == "finished":
            self.board.finish_chunk(worker.chunk, time.monotonic() - worker.began)
            worker.chunk, self.strikes[worker.device] = [], 0
        elif kind == "fatal":
            error, text = content
            raise ERRORS[error](text)
        elif kind == "spoilt":  # a new process may fare better
            worker.reason = f"with {content[1]}"
        elif kind == "gone":
            self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        ended = _how_it_ended(worker.process.wait())
        reason = worker.reason or ended
        self.strikes[worker.device] += 1
        # The study can go on with other devices.
        spare = any(self.strikes[w.device] < MOST_FALSE_STARTS for w in self.workers if w.device != worker.device)
        gives_up = spare and self.strikes[worker.device] >= MOST_FALSE_STARTS
        if not gives_up and not worker.is_ready:
            self.false_starts += 1
            if self.false_starts >= MOST_FALSE_STARTS:
                raise CurvewiseError(
                    f"Workers end before they can train anything, the last one {reason}: see above what they "
                    "printed, or use workers=0."
                )
        worker.end(time.monotonic() + STOP_SECONDS)
        self.drive.lose(worker.chunk, reason, worker.token)
        if gives_up:
            self.workers.remove(worker)
            self.drive.give_up(worker.device, f"{MOST_FALSE_STARTS} workers ended there, the last one {reason}")
        else:
            self.workers[self.workers.index(worker)] = _Worker(self.drive, worker.device, self.inbox)

    def _stop(self) -> None:
        for worker in self.workers:
            if worker.is_ready:
                worker.send(None)
            else:
                worker.process.kill()
        until = time.monotonic() + STOP_SECONDS
        for worker in self.workers:
            worker.end(until)
            self.drive.tidy(worker.chunk, worker.token)


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"with exit status {status}"
    name = str(-status)
    with suppress(ValueError):
        name = signal.Signals(-status).name
    hint = ": out of memory?" if name == "SIGKILL" else ""
    return f"by signal {name}{hint}"


# A process that makes runs: told which by the process that started it, through its input.

# A message is its length and a pickle: a pipe has no ends of messages.
LENGTH = struct.Struct("<Q")
GIVE_UP_SECONDS = 0.7
"""After which a training that does not react to an interrupt is cut off."""
KINDS = (StoreError, MissingDependencyError, InputError, CurvewiseError)
ERRORS = {kind.__name__: kind for kind in KINDS}
"""Errors of a worker that end the whole study."""


def main() -> None:
    """Serve until told to stop, or until the process that started this one is gone."""
    # Input and output are ours alone: what a training prints goes to stderr.
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    status = 0
    try:
        _serve(orders, answers)
    except KeyboardInterrupt:
        pass
    except BaseException as error:
        status = 1
        # Who hears of it tells us to stop, by a signal: we are about to.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        kind = "spoilt" if type(error).__name__ == "SpoiltDeviceError" else "fatal"
        send_message(answers, (kind, describe_fatal(error)))
    # At once: what libraries leave running in threads must not keep the process alive.
    sys.stderr.flush()
    os._exit(status)


def describe_fatal(error: BaseException) -> tuple[str, str]:
    """Name of a kind of error, and what it says; all of it where it is not one of ours."""
    for name, kind in ERRORS.items():
        if isinstance(error, kind):
            return name, str(error)
    return CurvewiseError.__name__, "".join(traceback.format_exception(error))


def read_message(stream: IO[bytes]) -> Any:
    """Read what :func:`send_message` wrote; EOFError when the other side is gone.

    The other side is a process of our own making, which is why unpickling is safe.
    """
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def send_message(stream: IO[bytes], message: Any) -> None:
    """Write a message for :func:`read_message` at the other end."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def _serve(orders: IO[bytes], answers: IO[bytes]) -> None:
    study, options = read_message(orders)
    check_device(study, options["device"])
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(orders, tasks), daemon=True).start()
    with Claims(study.runs_folder) as claims:
        maker = Maker(study, claims=claims, tell=lambda e: send_message(answers, ("event", e)), **options)
        send_message(answers, ("ready", claims.token))
        while (task := tasks.get()) is not None:
            maker.make(*task)
            send_message(answers, ("finished", None))


def check_device(study: StudySpec, device: str) -> None:
    """Raise where networks are to be trained on a GPU that cannot be used, before any run fails for that.

    Raises
    ------
    SpoiltDeviceError
        With the reason.
    """
    networks = any(learner.kind == "network" for learner in study.learners.values())
    if networks and device.startswith("cuda"):
        try:
            try_device(device)
        except Exception as error:
            raise SpoiltDeviceError(str(error).partition("\n")[0]) from error


def _listen(orders: IO[bytes], tasks: queue.SimpleQueue[Any]) -> None:
    """Pass orders on; at a stop, or when nobody is left to give any, interrupt the training."""
    with suppress(EOFError, OSError):  # the driver is gone, which is as good as a stop
        while (message := read_message(orders)) is not None:
            tasks.put(message)
    tasks.put(None)
    main_thread = threading.main_thread().ident
    if main_thread is not None and os.name != "nt":
        signal.pthread_kill(main_thread, signal.SIGINT)
    # A training that does not listen is cut off; the store takes no harm.
    threading.Event().wait(GIVE_UP_SECONDS)
    os._exit(1)
