"""Threads that store runs while the next ones are trained."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

THREADS = 4
"""Storing waits for the disk, and a disk syncs several files in about the time of one."""
BACKLOG = 64


class Writers:
    """Calls functions in threads, not too far behind; what one raises is raised by us.

    Examples
    --------
    >>> done = []
    >>> with Writers() as writers:
    ...     for i in range(3):
    ...         writers.submit(done.append, i)
    >>> sorted(done)
    [0, 1, 2]
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="writing")
        self._waiting: deque[Future[None]] = deque()

    def __enter__(self) -> Writers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an error, what has not begun is left; what has begun is finished in any case.
        self._pool.shutdown(wait=False, cancel_futures=kind is not None)
        self._finish()
        while kind is None and self._waiting:
            self._waiting.popleft().result()

    def _finish(self) -> None:
        """Wait for what has begun, however often we are interrupted: claims are released next."""
        interrupt = None
        while open_ones := [future for future in self._waiting if not future.done()]:
            try:
                open_ones[0].exception()
            except KeyboardInterrupt as error:
                interrupt = error
                self._pool.shutdown(wait=False, cancel_futures=True)
        if interrupt is not None:
            raise interrupt

    def submit(self, function: Callable[..., None], *arguments: Any) -> None:
        """Have a function called soon; waits while too much is waiting already."""
        while self._waiting and (len(self._waiting) >= BACKLOG or self._waiting[0].done()):
            self._waiting[0].result()  # which stays in the queue if we are interrupted
            self._waiting.popleft()
        self._waiting.append(self._pool.submit(function, *arguments))
