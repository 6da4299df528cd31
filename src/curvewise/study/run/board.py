"""The runs that are still to be made: in which order, in which chunks, and how long they will take."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from statistics import median
from typing import TYPE_CHECKING

from curvewise.study.spec.study import Job

if TYPE_CHECKING:
    from curvewise.study.run.maker import Event

FIRST_CHUNK, LEAST_CHUNK, LARGEST_CHUNK = 32, 8, 256
"""Networks in a chunk; fewer than the least could not be trained side by side."""
FEW = 4
"""Networks in a chunk on a CPU where they are slow, or of unknown speed."""
# A chunk should last long enough that dealing it out costs nothing, and not so long that a dead worker loses much.
SHORT_SECONDS, LONG_SECONDS = 10.0, 60.0
MOST_DEATHS = 3
"""Times that a run may take its worker down before it counts as failed."""
LATEST = 5
"""Finished runs of a size whose time is used to estimate that of others."""
KINDS = ("estimator", "network", "command")
"""Learners of unknown speed are tried in this order: the kind whose runs are usually the shortest first."""


class Pace:
    """Estimates how long runs take, from the time of others.

    A run takes as long as the latest finished runs of the same learner, settings and size: the first ones of a worker
    also load libraries. Between two sizes, and beyond them, the time is linear in the examples looked at; where one
    size is known, it is in proportion to them.
    """

    def __init__(self) -> None:
        # Seconds of the latest finished runs by cost, which follows the size, for each learner and its settings.
        self._spent: dict[tuple[str, ...], dict[float, deque[float]]] = {}

    def learn(self, job: Job, seconds: float) -> None:
        """Take the time of a finished run into account."""
        self._spent.setdefault(pace_key(job), {}).setdefault(job.cost, deque(maxlen=LATEST)).append(seconds)

    def seconds(self, job: Job) -> float:
        """Return the expected seconds of a run, NaN if nothing is known of its learner."""
        known = {cost: median(latest) for cost, latest in self._spent.get(pace_key(job), {}).items()}
        if not known or job.cost in known:
            return known.get(job.cost, math.nan)
        costs = sorted(known, key=lambda cost: abs(math.log(cost / job.cost)))
        near = costs[0]
        in_proportion = known[near] / near * job.cost
        if len(costs) == 1:
            return in_proportion
        slope = (known[near] - known[costs[1]]) / (near - costs[1])
        # A larger run takes no less time than a smaller one, and at most in proportion.
        low, high = sorted((known[near], in_proportion))
        return min(max(known[near] + slope * (job.cost - near), low), high)


def pace_key(job: Job) -> tuple[str, ...]:
    """Name what runs must share for the time of one to say something about another."""
    return (job.name, repr(sorted(job.settings.items())), str(job.is_search))


class Board:
    """The runs that are not made yet.

    Short runs go first, so that results come in early and an interrupted study has kept some. Learners of unknown
    speed are tried once each, with their smallest run. Where several workers share the runs, the longest one is begun
    as soon as the others are expected to need no longer for all the rest: so no worker is left alone with it.

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
    pace : Pace, optional
        What is known of the time of such runs, from stored ones.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        workers: int,
        in_flight: int | None = None,
        *,
        on_gpu: bool = False,
        pace: Pace | None = None,
    ) -> None:
        waiting = sorted(jobs, key=lambda job: job.cost)
        self._waiting: dict[str, deque[Job]] = {}
        for job in waiting:
            self._waiting.setdefault(group_of(job), deque()).append(job)
        self._on_gpu, self._pace = on_gpu, pace or Pace()
        self.workers = max(1, workers)
        """Among how many the runs are shared out, which may change on the way."""
        self._first, self._least = in_flight or FIRST_CHUNK, in_flight or LEAST_CHUNK
        self._sizes: dict[str, int] = {}
        self._suspects: deque[Job] = deque()
        self._deaths: dict[str, int] = {}
        self._running: dict[str, Job] = {}
        self._early: list[set[str]] = []  # chunks that were begun early because they are long
        self.held: dict[str, Job] = {}
        """Runs that another process is making."""
        self._open_searches = {job.id for job in waiting if job.is_search}
        self._spent = 0.0
        self.began: float | None = None
        """When the first run was dealt out."""

    @property
    def is_finished(self) -> bool:
        """True if nothing is left to be made, by us or by others."""
        return self.is_exhausted and not self.held

    @property
    def is_exhausted(self) -> bool:
        """True if only others' runs are left."""
        return not (self._running or self._suspects or any(self._waiting.values()))

    @property
    def ready(self) -> int:
        """Count the runs that could be dealt out now."""
        groups = self._waiting.values()
        return len(self._suspects) + sum(len(g) for g in groups if g and g[0].needs not in self._open_searches)

    def seconds_left(self, elapsed: float) -> tuple[float, bool]:
        """Estimate the time until all is made.

        Parameters
        ----------
        elapsed : float
            Seconds since the first run was dealt out.

        Returns
        -------
        seconds : float
            NaN if nothing is known.
        whole : bool
            Whether that is the time of all runs; otherwise of those whose learner's speed is known.
        """
        alike = [(group[0], len(group)) for group in self._waiting.values() if group]
        alike += [(job, 1) for some in (self._running.values(), self._suspects, self.held.values()) for job in some]
        each = [self._pace.seconds(job) * many for job, many in alike]
        known = [seconds for seconds in each if not math.isnan(seconds)]
        if not known:
            return (math.nan, False) if each else (0.0, True)
        # Storing and the end of a chunk take time, too: compare what was made with the time that it took. At the
        # start that says little, since runs being made do not count yet.
        rate = self._spent / elapsed if elapsed > 0 else 0.0
        return sum(known) / min(max(rate, self.workers / 4), self.workers), len(known) == len(each)

    def next_chunk(self, last: Job | None = None) -> list[Job]:
        """Take runs for a worker, on a GPU of the kind it made last where there are some; may be none."""
        if self.began is None:
            self.began = time.monotonic()
        if self._suspects:  # alone, so that one that takes its worker down is found
            return self._take([self._suspects.popleft()])
        ready = {k: g for k, g in self._waiting.items() if g and g[0].needs not in self._open_searches}
        if not ready:
            return []
        key = self._critical(ready)
        early = key is not None
        key = key if key is not None else min(ready, key=lambda k: self._rank(ready[k][0], last))
        group = ready[key]
        chunk = [group.popleft() for _ in range(self._chunk_size(key, group))]
        if early:
            self._early.append({job.id for job in chunk})
        return self._take(chunk + self._company(chunk))

    def _chunk_size(self, key: str, group: Collection[Job]) -> int:
        first = next(iter(group))
        many = self._first if first.learner.kind == "network" and not first.is_search else 1
        most = self._sizes.setdefault(key, many)
        if not self._on_gpu and many > 1:
            # A stack on a CPU gives all its results at its end: a short one loses little when it is interrupted.
            seconds = self._pace.seconds(first)
            fitting = 0.0 if math.isnan(seconds) else math.inf if seconds <= 0 else SHORT_SECONDS / seconds
            most = int(min(most, max(FEW, fitting)))
        return max(1, min(most, math.ceil(len(group) / self.workers)))

    def _rank(self, job: Job, last: Job | None) -> tuple[object, ...]:
        """Order the groups for a worker; the least rank comes first."""
        seconds = self._pace.seconds(job)
        unknown = math.isnan(seconds)
        tried = unknown and any(pace_key(job) == pace_key(other) for other in self._running.values())
        # What has never been tried, then the shortest; what is being tried for the first time waits for its outcome.
        order = (0 if unknown and not tried else 1 + tried, KINDS.index(job.learner.kind) if unknown else 0)
        speed = (*order, job.cost if unknown else seconds)
        if not self._on_gpu or last is None:
            return (not job.is_search, *speed)
        # Data and kernels that a GPU has prepared serve their kind again.
        return (group_of(job) != group_of(last), not job.is_search, kind_of(job) != kind_of(last), *speed)

    def _critical(self, ready: dict[str, deque[Job]]) -> str | None:
        """Find a chunk that would end last of all if it were not begun now."""
        self._early = [chunk for chunk in self._early if chunk & self._running.keys()]
        # One worker stays with the short ones.
        if len(self._early) >= self.workers - 1 or any(group[0].is_search for group in ready.values()):
            return None
        each = {key: self._pace.seconds(group[0]) for key, group in ready.items()}
        if any(map(math.isnan, each.values())):
            return None
        longest = max(each, key=lambda key: each[key] * self._chunk_size(key, ready[key]))
        own = each[longest] * self._chunk_size(longest, ready[longest])
        total = sum(each[key] * len(group) for key, group in ready.items())
        return longest if total - own <= own * (self.workers - 1) else None

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

    def _take(self, chunk: list[Job]) -> list[Job]:
        self._running |= {job.id: job for job in chunk}
        return chunk

    def hear(self, event: Event) -> Job | None:
        """Record the outcome of a run; return the run if it was being made here."""
        job = self._running.pop(event.id, None) if event.is_final else None
        if job is not None and event.kind == "held":
            self.held[job.id] = job
        elif job is not None:
            self._open_searches.discard(job.id)
            if event.kind == "done":
                self._pace.learn(job, event.seconds)
            self._spent += event.seconds
        return job

    def is_running(self, job: Job) -> bool:
        """Return whether a run was dealt out and nothing has been heard of it since."""
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
        """Put the runs of a dead worker back; return those that took too many workers down."""
        hopeless = []
        for job in filter(self.is_running, chunk):
            self._deaths[job.id] = self._deaths.get(job.id, 0) + 1
            if self._deaths[job.id] >= MOST_DEATHS:
                hopeless.append(job)
            else:
                del self._running[job.id]
                self._suspects.append(job)
        return hopeless

    def look_at_held(self, is_held: Callable[[str], bool], is_done: Callable[[Job], bool]) -> list[Job]:
        """Return the runs that others have finished, and put back those they gave up."""
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


def group_of(job: Job) -> str:
    """Name the group of runs that take as long as each other and may be trained in one stack."""
    return f"{job.n} {kind_of(job)}"


def kind_of(job: Job) -> str:
    """Name what runs must share to be trained side by side."""
    # With the training: what a size holds out may differ where learner and settings are the same.
    training = job.learner.as_dict()
    return json.dumps([job.name, job.is_search, job.needs, dict(job.settings), training], default=str)
