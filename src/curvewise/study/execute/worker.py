"""A process that makes runs: told which by the process that started it, through its input."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import sys
import threading
import traceback
from contextlib import suppress
from typing import IO, Any

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, StoreError

LENGTH = struct.Struct("<Q")
GIVE_UP_SECONDS = 10.0
KINDS = (StoreError, MissingDependencyError, InputError, CurvewiseError)
ERRORS = {kind.__name__: kind for kind in KINDS}
"""What a worker may end with that ends the whole study."""


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
    from curvewise.study.claims import Claims
    from curvewise.study.making import Maker

    study, options = read_message(orders)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(orders, tasks), daemon=True).start()
    with Claims(study.runs_folder) as claims:
        maker = Maker(
            study, claims=claims, tell=lambda e: send_message(answers, ("event", e)), **options
        )
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
