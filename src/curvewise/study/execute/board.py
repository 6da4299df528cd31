"""What is still to be made: dealt out in chunks of runs that can be trained together."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from curvewise.study.execute import events
from curvewise.study.execute.events import Event
from curvewise.study.making import group_of, groups_of, kind_of

if TYPE_CHECKING:
    from curvewise.study.jobs import Job

FIRST_CHUNK, LEAST_CHUNK, LARGEST_CHUNK = 32, 8, 256
"""Networks in a chunk; fewer than the least could not be trained side by side."""
SHORT_SECONDS, LONG_SECONDS = 10.0, 60.0
MOST_DEATHS = 3
"""How often a run may take its worker down before it counts as failed."""


class Board:
    """The runs that are not made yet.

    Parameters
    ----------
    jobs : iterable of Job
        What is to be made.
    workers : int
        Among how many it is shared out.
    in_flight : int, optional
        How many networks a worker trains at once, and thus the least chunk that makes sense.
    on_gpu : bool
        Whether networks are trained side by side, on however many examples each.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        workers: int,
        in_flight: int | None = None,
        *,
        on_gpu: bool = False,
    ) -> None:
        waiting = sorted(jobs, key=lambda job: -job.cost)  # the long ones first
        self._waiting = {k: deque(v) for k, v in groups_of(waiting).items()}
        self._workers, self._on_gpu = max(1, workers), on_gpu
        self._first, self._least = in_flight or FIRST_CHUNK, in_flight or LEAST_CHUNK
        self._sizes: dict[str, int] = {}
        self._suspects: deque[Job] = deque()
        self._deaths: dict[str, int] = {}
        self._running: dict[str, Job] = {}
        self.held: dict[str, Job] = {}
        """Runs that another process is making."""
        self._open_searches = {job.id for job in waiting if job.is_search}

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to be made, by us or by others."""
        return not (self._running or self.held or self._suspects or any(self._waiting.values()))

    @property
    def is_exhausted(self) -> bool:
        """Whether only others' runs are left."""
        return not (self._running or self._suspects or any(self._waiting.values()))

    def next_chunk(self, last: Job | None = None) -> list[Job]:
        """Take runs for a worker, of the kind it made last where there are some; may be none."""
        if self._suspects:  # alone, so that one that takes its worker down is found
            return self._take([self._suspects.popleft()])
        for key in self._order(last):
            group = self._waiting[key]
            if group[0].needs not in self._open_searches:
                share = math.ceil(len(group) / self._workers)
                size = max(1, min(self._size(group[0]), share, len(group)))
                chunk = [group.popleft() for _ in range(size)]
                return self._take(chunk + self._company(chunk))
        return []

    def _company(self, chunk: list[Job]) -> list[Job]:
        """Runs on other sizes, where too few of one size are left to keep a GPU busy."""
        if not self._on_gpu or chunk[0].learner.kind != "network" or chunk[0].is_search:
            return []
        kind = kind_of(chunk[0])
        found: list[Job] = []
        for group in self._waiting.values():
            while group and kind_of(group[0]) == kind and len(chunk) + len(found) < self._least:
                found.append(group.popleft())
        return found

    def _order(self, last: Job | None) -> list[str]:
        """Groups as a worker should take them: what it has made ready serves its kind again."""
        keys = [key for key, group in self._waiting.items() if group]
        if last is None:
            return sorted(keys, key=lambda k: not self._is_search(k))
        group, kind = group_of(last), kind_of(last)
        others = {k: kind_of(self._waiting[k][0]) != kind for k in keys}
        return sorted(keys, key=lambda k: (k != group, not self._is_search(k), others[k]))

    def _is_search(self, key: str) -> bool:
        return bool(self._waiting[key]) and self._waiting[key][0].is_search

    def _size(self, job: Job) -> int:
        first = self._first if job.learner.kind == "network" and not job.is_search else 1
        return self._sizes.setdefault(group_of(job), first)

    def _take(self, chunk: list[Job]) -> list[Job]:
        self._running |= {job.id: job for job in chunk}
        return chunk

    def hear(self, event: Event) -> Job | None:
        """Take note of what became of a run; gives the run if it was being made here."""
        if not event.is_final:
            return None
        job = self._running.pop(event.id, None)
        if job is None:
            return None
        if event.kind == events.HELD:
            self.held[job.id] = job
        else:
            self._open_searches.discard(job.id)
        return job

    def is_running(self, job: Job) -> bool:
        """Whether a run was dealt out and nothing has been heard of it since."""
        return job.id in self._running

    def finish_chunk(self, chunk: Collection[Job], seconds: float) -> None:
        """Make the chunks of this kind larger or smaller, so that they take a while each."""
        silent = [job.id for job in chunk if job.id in self._running]
        if silent:
            raise RuntimeError(f"A worker said nothing of the runs {silent}.")
        key = group_of(next(iter(chunk)))
        if key not in self._sizes:
            return
        if seconds < SHORT_SECONDS and len(chunk) >= self._sizes[key]:
            self._sizes[key] = min(2 * self._sizes[key], LARGEST_CHUNK)
        elif seconds > LONG_SECONDS:
            self._sizes[key] = max(self._sizes[key] // 2, min(self._least, self._sizes[key]))

    def lose_chunk(self, chunk: Iterable[Job]) -> list[Job]:
        """Put back what a dead worker left; gives the runs that took too many workers down."""
        hopeless = []
        for job in chunk:
            if self._running.get(job.id) is None:
                continue
            self._deaths[job.id] = self._deaths.get(job.id, 0) + 1
            if self._deaths[job.id] >= MOST_DEATHS:
                hopeless.append(job)
            else:
                del self._running[job.id]
                self._suspects.append(job)
        return hopeless

    def look_at_held(
        self, is_held: Callable[[str], bool], is_done: Callable[[Job], bool]
    ) -> list[Job]:
        """See what others have finished, and put back what they gave up; gives the finished."""
        finished = []
        for job in list(self.held.values()):
            if is_done(job):
                finished.append(job)
                self._open_searches.discard(job.id)
                del self.held[job.id]
            elif not is_held(job.id):
                del self.held[job.id]
                self._waiting.setdefault(group_of(job), deque()).append(job)
        return finished
