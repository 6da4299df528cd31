"""Execute a study on this machine, in one or several processes."""

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
from contextlib import suppress
from typing import IO, Any, Unpack

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, StoreError
from curvewise.nn.own_code import installed_only
from curvewise.study.run.drive import POLL_SECONDS, Drive
from curvewise.study.run.maker import Maker
from curvewise.study.run.options import Outcome, RunOptions, RunSettings, choose_devices
from curvewise.study.spec.study import Job, StudySpec

_LIBRARIES = ("OMP", "MKL", "OPENBLAS", "NUMEXPR")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in _LIBRARIES}
"""A worker's environment: sums are split among threads, so that their number changes the bits."""

STOP_SECONDS = 15.0
"""For a worker to store the run at hand after it was told to stop; longer than GIVE_UP_SECONDS."""
MOST_FALSE_STARTS = 3
"""Workers in a row that end before they are ready: an import fails, say, and will fail again."""


def run_local(
    study: StudySpec, *, device: str | None = None, workers: int | None = None, **options: Unpack[RunOptions]
) -> Outcome:
    """Make the runs that a study lacks, on this machine.

    Each worker is a process with one thread for its arithmetic, so that results do not depend on
    how many there are. One that dies is replaced; what it was making is tried again, run by run,
    and a run whose worker died three times is stored as failed.

    Several calls on one store, at the same time and from several machines, share the runs: each
    claims what it makes, goes on with others where it meets a living claim, and in the end waits
    for what the others hold.

    Parameters
    ----------
    study : Study
        What to execute.
    device : str, optional
        ``"cpu"``, ``"cuda"`` (all GPUs) or ``"cuda:1"``; by default GPUs if there are some and the
        study has networks.
    workers : int, optional
        Processes; by default one per core, or one per GPU. 0 works in this process, which is good
        for debugging: there, an arithmetic library may use several threads.
    **options
        ``in_flight`` (None): networks that a worker trains at once, by default as the engine likes.
        ``compile`` (True): compile kernels on a GPU; False for a corpus of many architectures with
        a few short runs of each, where compiling takes longer than training.
        ``fresh`` (False): move the study's runs to ``.replaced`` in the store and make them anew.
        ``shard`` (None): only a share of the runs, such as ``"3/16"``.
        ``retry_failed`` (None): make failed runs again always or never; by default until they have
        failed three times in all.
        ``progress`` (None): show a bar on stderr, by default on a terminal; False says nothing.
        ``tell`` (None): called with an event for every run.

    Returns
    -------
    Outcome
        What was made, what failed, what was redone.

    Raises
    ------
    StoreError
        If a run cannot be stored; what is stored is whole, and another call goes on from there.

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.study.spec.design import Design
    >>> from curvewise.study.spec.learner import Learner
    >>> from curvewise.study.study import Study
    >>> bayes = Learner(estimator="sklearn.naive_bayes:GaussianNB")
    >>> store = tempfile.mkdtemp()
    >>> study = Study("digits", {"bayes": bayes}, Design(sizes=[100, 200], folds=2), store=store)
    >>> outcome = run_local(study, workers=0, progress=False)
    >>> outcome.made, outcome.failed
    (4, {})
    """
    settings = RunSettings(**options)
    devices = choose_devices(study, device, workers)
    on_gpu = devices[0] != "cpu"
    with Drive(study, settings, len(devices), on_gpu=on_gpu) as drive:
        if workers == 0:
            _run_here(drive, devices[0])
        elif drive.due:
            _Pool(drive, devices).run()
        return drive.outcome()


def _run_here(drive: Drive, device: str) -> None:
    maker = Maker(drive.study, claims=drive.claims, tell=drive.hear, device=device, **drive.settings.making)
    last = None
    while not drive.board.is_finished:
        if chunk := drive.board.next_chunk(last):
            start, last = time.monotonic(), chunk[0]
            maker.make(chunk, drive.tried(chunk))
            drive.board.finish_chunk(chunk, time.monotonic() - start)
        else:
            drive.wait_for_others()


class _Worker:
    """A worker process, from outside."""

    def __init__(self, study: StudySpec, device: str, making: dict[str, Any], inbox: Any) -> None:
        self.device = device
        self.chunk: list[Job] = []
        self.last: Job | None = None
        self.reason: str | None = None
        self.token: str | None = None
        self.is_ready = self.is_busy = False
        self.began = 0.0
        # Neither the current folder nor the study's: a file there would be imported in the place of
        # a package that is not installed. The study's own code is found through its folder.
        path = installed_only(sys.path, study.folder)
        code = f"import sys; sys.path[:] = {path!r}; "
        code += "from curvewise.study.run.local import main; main()"
        # A group of its own, so that Ctrl-C reaches us alone and we stop the workers in order.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | ONE_THREAD,
            process_group=None if os.name == "nt" else 0,
        )
        # In a thread: the study may hold data larger than the buffer of the pipe, and the worker reads it late.
        hello = (study, {"device": device, **making})
        threading.Thread(target=self._listen, args=(hello, inbox), daemon=True).start()

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # a worker that is gone is noticed elsewhere
            send_message(self.process.stdin, message)

    def give(self, chunk: list[Job], tried: dict[str, int]) -> None:
        self.chunk, self.is_busy = chunk, True
        self.last, self.began = chunk[0], time.monotonic()
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

    def end(self) -> None:
        """Stop politely; then not."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


class _Pool:
    """Worker processes, and the loop that deals out work to them."""

    def __init__(self, drive: Drive, devices: list[str]) -> None:
        self.drive, self.board = drive, drive.board
        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.devices = devices[: len(drive.due)]
        self.workers: list[_Worker] = []
        self.false_starts = 0

    def run(self) -> None:
        try:
            self.workers = [self._start(device) for device in self.devices]
            while not self.board.is_finished:
                self._deal()
                self._listen()
        finally:
            self._stop()

    def _start(self, device: str) -> _Worker:
        return _Worker(self.drive.study, device, self.drive.settings.making, self.inbox)

    def _deal(self) -> None:
        for worker in self.workers:
            idle = worker.is_ready and not worker.is_busy
            if idle and (chunk := self.board.next_chunk(worker.last)):
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
        elif kind == "finished":
            worker.is_busy = False
            self.board.finish_chunk(worker.chunk, time.monotonic() - worker.began)
            worker.chunk = []
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
        if not worker.is_ready:
            self.false_starts += 1
            if self.false_starts >= MOST_FALSE_STARTS:
                raise CurvewiseError(
                    f"Workers end before they begin, the last one {reason}: see above what they "
                    "printed, or try workers=0."
                )
        worker.end()
        self.drive.lose(worker.chunk, reason, worker.token)
        self.workers[self.workers.index(worker)] = self._start(worker.device)

    def _stop(self) -> None:
        for worker in self.workers:
            if worker.is_ready:
                worker.send(None)
            else:
                worker.process.kill()
        for worker in self.workers:
            worker.end()
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
GIVE_UP_SECONDS = 10.0
"""After which a training that does not react to an interrupt is cut off."""
KINDS = (StoreError, MissingDependencyError, InputError, CurvewiseError)
ERRORS = {kind.__name__: kind for kind in KINDS}
"""Errors of a worker that end the whole study."""


def main() -> None:
    """Serve until told to stop, or until the process that started this one is gone."""
    orders, answers = _private_streams()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _serve(orders, answers)
    except KeyboardInterrupt:
        status = 0
    except BaseException as error:
        status = 1
        # Who hears of it tells us to stop, by a signal: we are about to.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        kind = "spoilt" if type(error).__name__ == "SpoiltDeviceError" else "fatal"
        send_message(answers, (kind, describe_fatal(error)))
    else:
        status = 0
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


def _private_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Keep input and output to ourselves: what a training prints goes to stderr."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return orders, answers


def _serve(orders: IO[bytes], answers: IO[bytes]) -> None:
    from curvewise.store.claims import Claims
    from curvewise.study.run.maker import Maker

    study, options = read_message(orders)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(orders, tasks), daemon=True).start()
    with Claims(study.runs_folder) as claims:
        maker = Maker(study, claims=claims, tell=lambda e: send_message(answers, ("event", e)), **options)
        send_message(answers, ("ready", claims.token))
        while (task := tasks.get()) is not None:
            maker.make(*task)
            send_message(answers, ("finished", None))


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
