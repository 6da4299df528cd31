"""Execute a study: hand its runs out to workers, on this machine or elsewhere, and report how it ended."""

from __future__ import annotations

import math
import os
import re
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from curvewise.errors import InputError, StoreError, Terminated, arg
from curvewise.progress import Advance, progress_bar, say, waiting
from curvewise.store.claims import Claims
from curvewise.store.tables import reason_of
from curvewise.store.write import cannot_write, check_writable, own_folder, put_back, remove_partial, write_labels
from curvewise.study.plan import default_folds, refuse_bad_learners
from curvewise.study.run.maker import DONE, FAILED, HELD, MEMORY, STAYS, THERE, Event, Maker, kind_of, store_run
from curvewise.study.run.processes import POLL_SECONDS, WorkerPool
from curvewise.study.spec.study import Job, StudySpec, check_inputs, check_precision
from curvewise.study.status import (
    Pace,
    Planned,
    Standing,
    choose_devices,
    count_text,
    duration,
    look_up,
    pace_key,
    stored_pace,
)
from curvewise.text import format_count

# Each look reads the claims of all held runs, perhaps over a network: the pauses grow up to the longest.
LONGEST_POLL = 5.0
SLOWER = 1.5
"""Times that the rest may take longer than by the speed so far before the line says why …"""
ROOM = 41
"""… and the characters up to which it has room for that, beside a bar in a terminal of 80 columns."""
HOPELESS = 3
"""Runs of a learner that fail first and for one reason, after which the reason is shown."""
REPLACED = ".replaced"
"""Folder of a store for runs that were made again on request; nothing is ever deleted there."""


@dataclass(frozen=True)
class RunSettings:
    """Options of an execution, checked; the same whatever executes the study.

    Attributes
    ----------
    in_flight : int, optional
        How many networks a worker trains at once; by default as the engine chooses.
    compile : bool
        Whether kernels are compiled on a GPU.
    stream : bool, optional
        Whether images stay on the host; by default where they take too much of a device's memory.
    fresh : bool
        Whether to move the stored runs of the study aside and make all of them again.
    shard : str, optional
        Such as ``"3/16"``: only this share of the runs.
    retry_failed : bool, optional
        Whether runs that failed before are made again: always, never, or (by default) until they
        have failed three times in all.
    progress : bool, optional
        Whether to show a bar on stderr; by default on a terminal. False says nothing at all.
    tell : callable, optional
        Called with an :class:`~curvewise.study.run.maker.Event` for every run.
    """

    in_flight: int | None = None
    compile: bool = True
    stream: bool | None = None
    fresh: bool = False
    shard: str | None = None
    retry_failed: bool | None = None
    progress: bool | None = None
    tell: Callable[[Event], None] | None = None

    @property
    def making(self) -> dict[str, Any]:
        """The options of a :class:`~curvewise.study.run.maker.Maker`."""
        return {"in_flight": self.in_flight, "compile": self.compile, "stream": self.stream}

    def __post_init__(self) -> None:
        if self.in_flight is not None and (type(self.in_flight) is not int or self.in_flight < 1):
            raise InputError("give a whole number from 1 on.", argument="in_flight", value=self.in_flight)
        if self.fresh and self.shard is not None:
            raise InputError(
                f"{arg('fresh', True)} with a shard would throw away what other shards have made: run once "
                f"with {arg('fresh', True)} and without a shard, or name another store."
            )


@dataclass(frozen=True)
class Outcome:
    """The outcome of an execution of a study.

    Attributes
    ----------
    planned : int
        Runs of the study, or of its shard.
    there : int
        Runs that were there before.
    made : int
        Runs made now, failed ones included.
    by_others : int
        Runs that other processes made meanwhile.
    failed : dict of str to str
        Runs that failed, now or before, and why.
    interrupted : tuple of str
        Runs that a process that is gone was making; they are made again where the study needs them.
    redone : tuple of str
        Runs that were there and were made again: failed, damaged or outdated ones.
    seconds : float
        How long it took.
    notes : tuple of str
        What a reader should know.
    lost : tuple of str
        Runs whose worker died; they were tried again.
    """

    planned: int
    there: int
    made: int
    by_others: int
    failed: dict[str, str]
    interrupted: tuple[str, ...]
    redone: tuple[str, ...]
    seconds: float
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def summary(self) -> str:
        """Summarise how it ended in a sentence or two."""
        parts = [f"{format_count(self.made, 'run')} made in {duration(self.seconds)}"]
        again = len({*self.redone, *self.interrupted})
        parts += [f"{again:,} of them interrupted, failed or damaged before"] if again else []
        parts += [f"{len(self.lost):,} repeated after a worker died"] if self.lost else []
        parts += [f"{self.by_others:,} made by other processes"] if self.by_others else []
        parts += [f"{len(self.failed):,} of {self.planned:,} failed"] if self.failed else []
        text = ", ".join(parts) + "."
        if self.failed:
            lines = next(iter(self.failed.values())).strip().splitlines() or ["no reason given"]
            text += f" The first failure: {lines[-1][:300]}"
        return text


class Drive:
    """One execution of a study, seen from the process that deals out the work."""

    def __init__(self, study: StudySpec, settings: RunSettings, workers: int, *, on_gpu: bool = False) -> None:
        self.study, self.settings, self._on_gpu = study, settings, on_gpu
        self.store: Path = study.runs_folder
        self._start = time.monotonic()
        self._digests = study.label_digests()
        self._exit = ExitStack()
        self._workers = workers
        self._made: set[str] = set()
        self._by_others: set[str] = set()
        self._failed: dict[str, str] = {}
        self._lost: set[str] = set()
        self._notes: dict[str, None] = {}
        self._first: dict[str, list[str]] = {}  # reasons of the first failures of each learner, "" where runs finished
        self._looked, self._pause = 0.0, POLL_SECONDS
        self._advance: Advance = lambda amount, text=None: None
        self.stage = ""
        """State shown before the first run is finished."""
        self._left = (-math.inf, "")

    def __enter__(self) -> Drive:
        try:
            self._prepare()
        except BaseException:
            self._exit.close()
            raise
        return self

    def _prepare(self) -> None:
        self._exit.enter_context(terminable())
        self.claims = self._exit.enter_context(Claims(self.store))
        jobs = shard_of(self.study.jobs, self.settings.shard)
        self.jobs = list({job.id: job for job in jobs}.values())
        if self.settings.fresh:
            aside = move_away(self.store, self.jobs, self.claims)
            if aside is not None:
                say(f"The runs that were stored before are now in {aside}.", self.settings.progress)
        # A run that was being replaced when its process died must count as there.
        put_back(self.store)
        if not self.study.dataset.is_numbers:  # which may be large, and no reader asks for them
            write_labels(self.store, {k: v.y for k, v in self.study.evaluation_sets.items()})
        # Readers without trust find the data of this run in the store.
        self.study.keep_made_data()
        with waiting("looking for stored runs", self.settings.progress):
            planned = self._look_up_all()
        states, diverged = Counter(run.state for run in planned), sum(run.has_diverged for run in planned)
        text = f"{count_text(len(planned), states, diverged)}, in {self.store}."
        again = sum(run.state == "failed" for run in planned if run.job.id in self.due)
        text += f" {format_count(again, 'failed run')} will be tried again." if again else ""
        mine = sum(identity in self.due for identity in self.interrupted)
        text += f" {format_count(mine, 'interrupted run')} will be started again." if mine else ""
        if len(self.due) == len(self.jobs) and (why := default_folds(self.study)):
            text += f" {why}"
        say(text, self.settings.progress)
        self.stage = f"starting {format_count(self._workers, 'worker')}" if self.due else ""
        bar = progress_bar("runs", len(self.due), self.settings.progress, status=self._how_far)
        self._advance = self._exit.enter_context(bar)

    def _look_up_all(self) -> list[Planned]:
        """Find out which runs are to be made, and whether they can be."""
        self.interrupted = tuple(self.claims.sweep()) if self.store.is_dir() else ()
        planned = [Planned(job, *look_up(self.store, job, self._digests, self.study.keep)) for job in self.jobs]
        self._standings = {run.job.id: run.standing for run in planned}
        due = [j for j in self.jobs if self._standings[j.id].is_due(self.settings.retry_failed)]
        self.due = {job.id: job for job in due}
        check_inputs(due, self.study.dataset)
        if not self._on_gpu:
            check_precision(due)
        self.study.check_trainings({job.name for job in due})
        refuse_bad_learners(self.study, due)
        for identity, standing in self._standings.items():
            if standing.state == "failed" and identity not in self.due:
                self._failed[identity] = standing.text
        pace = stored_pace(planned, "cuda" if self._on_gpu else "cpu")
        self.board = Board(due, self._workers, self.settings.in_flight, on_gpu=self._on_gpu, pace=pace)
        return planned

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.__exit__(kind, error, trace)
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            counts = count_text(len(self.jobs), self._states())
            say(f"Stopped. {counts}, in {self.store}. Run the study again to continue.", self.settings.progress)

    def hear(self, event: Event) -> None:
        """Record an event and show it."""
        job = self.board.hear(event)
        if event.kind in (MEMORY, DONE) and event.text:
            self._notes[event.text] = None
        if job is not None:
            if event.kind in (DONE, FAILED):
                self._made.add(job.id)
                self._watch(job, event)
            if event.kind == THERE:
                self._by_others.add(job.id)
            if event.kind == FAILED or (event.kind == THERE and event.text):
                self._failed[job.id] = event.text
            if event.kind != HELD:
                self._advance(1)
        if self.settings.tell is not None:
            self.settings.tell(event)

    def _watch(self, job: Job, event: Event) -> None:
        """Say once why the runs of a learner fail, where the first ones all failed for one reason."""
        found = self._first.setdefault(job.name, [])
        found.append(reason_of(event.text) if event.kind == FAILED else "")
        if len(found) == HOPELESS and found[0] and len(set(found)) == 1:
            say(f"The first {HOPELESS} runs of {job.name} failed: {found[0][:300]}", self.settings.progress)

    def _states(self) -> dict[str, int]:
        """Count the runs that are finished and those that failed, now and before."""
        finished = (self._made | self._by_others) - self._failed.keys()
        before = {i: s.state for i, s in self._standings.items() if i not in finished}
        failed = self._failed.keys() | {i for i, state in before.items() if state == "failed"}
        done = sum(state == "done" for i, state in before.items() if i not in failed)
        return {"done": len(finished) + done, "failed": len(failed)}

    def first_stage(self) -> str:
        """Say what workers do before their first run is finished."""
        compiles = self._on_gpu and self.settings.compile
        return "compiling and training the first runs" if compiles else "training the first runs"

    def tried(self, chunk: Sequence[Job]) -> dict[str, int]:
        """Count how often each run had been tried when we began: a further failure is another's."""
        return {job.id: self._standings[job.id].attempts for job in chunk}

    def lose(self, chunk: Sequence[Job], reason: str, token: str | None = None) -> None:
        """Put the runs of a dead worker back, or store runs as failed that killed several."""
        if token is not None:
            self.claims.forget(token)
        self._lost |= {job.id for job in chunk if self.board.is_running(job)}
        for job in self.board.lose_chunk(chunk):
            text = f"Its worker died {MOST_DEATHS} times, the last time {reason}."
            if self.claims.take(job.id):
                attempts = self._standings[job.id].attempts + 1
                environment = {"attempts": attempts}
                if not store_run(self.store, job.coordinates, environment=environment, error=text):
                    text = f"{STAYS}\n{text}"
                self.claims.release(job.id)
            self.hear(Event(FAILED, job.id, text))

    def give_up(self, device: str, reason: str) -> None:
        """Say that a device is not used any more, while others are."""
        text = f"{device} is not used any more: {reason}. The study goes on without it."
        self._notes[text] = None
        say(text, self.settings.progress)

    def tidy(self, chunk: Sequence[Job], token: str | None) -> None:
        """Remove the claims and half-written runs of a worker that was cut off."""
        if token is not None:
            self.claims.forget(token)
        for job in chunk:
            with suppress(StoreError):  # on a full disk, which is being told already
                if self.claims.take(job.id):
                    remove_partial(self.store, job.id)
                    self.claims.release(job.id)

    def wait_for_others(self) -> None:
        """Look after a while how far others are, where nothing is left for us at the moment."""
        time.sleep(self._pause)
        self._looked = -self._pause
        self.look_at_others()

    def look_at_others(self) -> None:
        """Look now and then which runs other processes have made, and take back those they left."""
        self._advance(0)
        if not self.board.held or time.monotonic() - self._looked < self._pause:
            return
        if self.board.is_exhausted and self._pause == POLL_SECONDS:
            many = len(self.board.held)
            say(f"Waiting for {format_count(many, 'run')} of other processes.", self.settings.progress)
        self._looked, self._pause = time.monotonic(), min(1.5 * self._pause, LONGEST_POLL)
        for job in self.board.look_at_held(self.claims.is_held, self._is_settled):
            standing = self._stand(job)
            self._by_others.add(job.id)
            if standing.state == "failed":
                self._failed[job.id] = standing.text
            self._advance(1)
            if self.settings.tell is not None:
                self.settings.tell(Event(THERE, job.id))

    def outcome(self) -> Outcome:
        """Return how it ended, and show it; clean up after processes that are gone."""
        self.claims.sweep()
        stays = {i for i, text in self._failed.items() if text.startswith(STAYS)}
        notes = [*self._notes]
        notes += [f"{format_count(len(self._lost), 'run')} repeated after a worker died."] if self._lost else []
        if stays:
            reason = self._failed[min(stays)].strip().splitlines()[-1][:300]
            notes.append(
                f"{format_count(len(stays), 'outdated run')} could not be updated, and the stored results were kept. "
                f"The first reason: {reason}"
            )
        found = Outcome(
            planned=len(self.jobs),
            there=len(self.jobs) - len(self.due),
            made=len(self._made),
            by_others=len(self._by_others),
            failed=dict(self._failed),
            interrupted=self.interrupted,
            redone=tuple(i for i in self._made - stays if self._standings[i].state != "missing"),
            seconds=time.monotonic() - self._start,
            notes=tuple(notes),
            lost=tuple(sorted(self._lost)),
        )
        say(found.summary(), self.settings.progress)
        return found

    def _is_settled(self, job: Job) -> bool:
        """Return whether another process has finished a run: made it, or failed once more."""
        now = self._stand(job)
        again = now.state == "failed" and now.attempts > self._standings[job.id].attempts
        return now.state == "done" or again

    def _stand(self, job: Job) -> Standing:
        return look_up(self.store, job, self._digests, self.study.keep)[0]

    def _how_far(self) -> str:
        """Say how many runs are finished and failed, how fast, and the time that is left; computed once a second."""
        now = time.monotonic()
        if now - self._left[0] < 1:
            return self._left[1]
        settled = self._made | self._by_others
        ended, failed = len(settled), len(self._failed.keys() & settled)
        parts = [f"{ended - failed:,}/{len(self.due):,} finished"] + ([f"{failed:,} failed"] if failed else [])
        elapsed = 0.0 if self.board.began is None else now - self.board.began
        seconds, whole = self.board.seconds_left(elapsed)
        speed = ended / elapsed if ended and elapsed > 0 else 0.0
        if speed:
            parts.append(f"{speed:.2g}/s" if speed >= 0.1 else f"{duration(1 / speed)} each")
        elif self.stage:
            parts.append(self.stage)
        if math.isfinite(seconds):
            parts.append(f"{'' if whole else 'over '}{duration(max(seconds, 1.0))} left")
            # Short runs go first: that the rest takes longer than the speed so far lets expect is no mistake.
            slower = speed and seconds > SLOWER * (len(self.due) - ended) / speed
            parts[-1] += " (longest last)" if slower and len(", ".join(parts)) <= ROOM else ""
        self._left = now, ", ".join(parts)
        return self._left[1]


ENDING = threading.Event()
"""Set by the first request to end."""


@contextmanager
def terminable() -> Iterator[None]:
    """Handle a request to end, as a scheduler sends it, like Ctrl-C: claims are then given back.

    A handler that somebody else has set stays, except the one that Ray sets when it is started.
    """
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if main else None
    of_ray = getattr(before, "__module__", None) or ""
    if before is not signal.SIG_DFL and not of_ray.startswith("ray."):
        yield
        return

    def terminate(number: int, frame: object) -> NoReturn:
        ENDING.set()
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        ENDING.clear()
        signal.signal(signal.SIGTERM, before)


def end_if_asked() -> None:
    """Raise where a request to end was raised inside compiled code, such as Ray's, and lost there."""
    if ENDING.is_set():
        raise Terminated


def move_away(store: Path, jobs: Sequence[Job], claims: Claims) -> Path | None:
    """Move a study's runs out of the way, so that they are made anew; gives where they are now."""
    there = [job.id for job in jobs if os.path.lexists(store / job.id)]
    # Also those that are not there yet: whoever makes them has made, or will make, others of ours.
    claimed = set(claims.claimed())
    for identity in (job.id for job in jobs if job.id in claimed):
        if claims.is_held(identity):
            raise StoreError(
                f"fresh=True, but another process is making run {identity} in {store}: wait for it, or stop it."
            )
    if not there:
        return None
    try:
        check_writable(store)  # before anything is moved
        aside = own_folder(store, REPLACED) / time.strftime("%Y%m%d-%H%M%S")
        while os.path.lexists(aside):
            aside = aside.with_name(aside.name + "-")
        aside.mkdir()
        for identity in there:
            os.rename(store / identity, aside / identity)
    except OSError as error:
        raise cannot_write(store, error) from error
    return aside


# ---- A share of a study's runs, for one of several processes that know nothing of each other


def parse_shard(shard: str) -> tuple[int, int]:
    """Read ``"3/16"``: the third of sixteen.

    Examples
    --------
    >>> parse_shard("3/16")
    (3, 16)
    """
    found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", str(shard))
    which, of = map(int, found.groups()) if found else (0, 0)
    if not 1 <= which <= of:
        problem = "write which and of how many, from '1/16' to '16/16' for sixteen."
        raise InputError(problem, argument="shard", value=shard)
    return which, of


def shard_of(jobs: Sequence[Job], shard: str | None) -> list[Job]:
    """Runs of one shard, dealt by their ids: the shards are disjoint and together hold every run.

    Which shard a run belongs to does not change when sizes, seeds or learners are added. Searches
    for a learning rate that runs of a shard need belong to all of these shards: whoever comes first
    makes them, and the others wait.

    Parameters
    ----------
    jobs : sequence of Job
        All runs.
    shard : str, optional
        Such as ``"3/16"``; None for all.
    """
    if shard is None:
        return list(jobs)
    which, of = parse_shard(shard)
    # Ids are hashes: the remainder deals them evenly, and independently of all other runs.
    mine = [j for j in jobs if not j.is_search and int(j.id, 16) % of == which - 1]
    needed = {j.needs for j in mine}
    return [j for j in jobs if j.is_search and j.id in needed] + mine


def run_local(study: StudySpec, *, device: str | None = None, workers: int | None = None, **options: Any) -> Outcome:
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
        ``stream`` (None): leave images on the host and copy batch by batch, with the same results; by
        default where the images take more than half of the device's free memory.
        ``fresh`` (False): move the stored runs to ``.replaced`` in the store and make all of them again.
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
    >>> from curvewise.study.spec.design import Learner
    >>> from curvewise.study.study import Study
    >>> bayes = Learner(estimator="sklearn.naive_bayes:GaussianNB")
    >>> store = tempfile.mkdtemp()
    >>> study = Study("digits", {"bayes": bayes}, Design(sizes=[100, 200], folds=2), store=store)
    >>> outcome = run_local(study, workers=0, progress=False)
    >>> outcome.made, outcome.failed
    (4, {})
    """
    settings = RunSettings(**options)
    with waiting("looking for devices and reading the data", settings.progress):
        devices = choose_devices(study, device, workers)
        on_gpu = devices[0] != "cpu"
        drive = Drive(study, settings, len(devices), on_gpu=on_gpu)
    with drive:
        if workers != 0 and drive.due:
            WorkerPool(drive, devices).run()
        elif workers == 0:  # in this process
            maker = Maker(study, claims=drive.claims, tell=drive.hear, device=devices[0], **settings.making)
            drive.stage, last = drive.first_stage(), None
            while not drive.board.is_finished:
                if chunk := drive.board.next_chunk(last):
                    start, last = time.monotonic(), chunk[0]
                    maker.make(chunk, drive.tried(chunk))
                    drive.board.finish_chunk(chunk, time.monotonic() - start)
                else:
                    drive.wait_for_others()
        return drive.outcome()


# ---- The runs that are still to be made: in which order, and in which chunks

FIRST_CHUNK, LEAST_CHUNK, LARGEST_CHUNK = 32, 8, 256
"""Networks in a chunk; fewer than the least could not be trained side by side."""
FEW = 4
"""Networks in a chunk on a CPU where they are slow, or of unknown speed."""
# A chunk should last long enough that dealing it out costs nothing, and not so long that a dead worker loses much.
SHORT_SECONDS, LONG_SECONDS = 10.0, 60.0
MOST_DEATHS = 3
"""Times that a run may take its worker down before it counts as failed."""
KINDS = ("estimator", "network", "command")
"""Learners of unknown speed are tried in this order: the kind whose runs are usually the shortest first."""


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
