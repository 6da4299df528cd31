"""Execute a study: hand its runs out to workers, on this machine or elsewhere, and report how it ended."""

from __future__ import annotations

import math
import os
import pickle
import queue
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, StoreError, Terminated, arg
from curvewise.nn.devices import try_device
from curvewise.nn.own_code import installed_only
from curvewise.progress import Advance, progress_bar, say, waiting
from curvewise.store.claims import Claims
from curvewise.store.tables import reason_of
from curvewise.store.write import cannot_write, check_writable, own_folder, put_back, remove_partial, write_labels
from curvewise.study.plan import default_folds, refuse_bad_learners
from curvewise.study.run.board import MOST_DEATHS, Board
from curvewise.study.run.maker import (
    DONE,
    FAILED,
    HELD,
    MEMORY,
    STAYS,
    THERE,
    Event,
    Maker,
    SpoiltDeviceError,
    store_run,
)
from curvewise.study.spec.study import Job, StudySpec, check_inputs, check_precision
from curvewise.study.status import (
    Planned,
    Standing,
    choose_devices,
    count_text,
    duration,
    look_up,
    run_counts,
    stored_pace,
)
from curvewise.text import format_count

# Each look reads the claims of all held runs, perhaps over a network: the pauses grow up to the longest.
POLL_SECONDS, LONGEST_POLL = 0.5, 5.0
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
        text = f"{run_counts(planned)}, in {self.store}."
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
            if event.kind == THERE:
                self._by_others.add(job.id)
            if event.kind == FAILED or (event.kind == THERE and event.text):
                self._failed[job.id] = event.text
            if event.kind in (DONE, FAILED):
                self._watch(job, event)
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


_LIBRARIES = ("OMP", "MKL", "OPENBLAS", "NUMEXPR")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in _LIBRARIES}
"""A worker's environment: sums are split among threads, so that their number changes the bits."""

STOP_SECONDS = 1.0
"""For all workers to store what is finished after they were asked to stop; longer than GIVE_UP_SECONDS."""
MOST_FALSE_STARTS = 3
"""Workers in a row that end before they are ready: an import fails, say, and will fail again."""


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
            _Pool(drive, devices).run()
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


class _Worker:
    """A worker process, from outside."""

    def __init__(self, drive: Drive, device: str, inbox: Any) -> None:
        study, self.device = drive.study, device
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
        code += "from curvewise.study.run.drive import main; main()"
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

    def end(self, until: float) -> None:
        """Wait for the process until a moment; then kill it, and what its libraries have started."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, until - time.monotonic()))
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "nt":
                self.process.kill()
            else:
                os.killpg(self.process.pid, signal.SIGKILL)
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
        self.strikes = Counter[str]()
        """Workers in a row that ended on a device without finishing anything."""

    def run(self) -> None:
        try:
            self.workers = [_Worker(self.drive, device, self.inbox) for device in self.devices]
            while not self.board.is_finished:
                self._deal()
                self._listen()
        finally:
            self._stop()

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
            self.drive.stage = self.drive.first_stage()
        elif kind == "finished":
            worker.is_busy, self.strikes[worker.device] = False, 0
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
        self.strikes[worker.device] += 1
        if self.strikes[worker.device] >= MOST_FALSE_STARTS and self._is_spare(worker):
            worker.end(time.monotonic() + STOP_SECONDS)
            self.workers.remove(worker)
            self.drive.lose(worker.chunk, reason, worker.token)
            self.drive.give_up(worker.device, f"{MOST_FALSE_STARTS} workers ended there, the last one {reason}")
            return
        if not worker.is_ready:
            self.false_starts += 1
            if self.false_starts >= MOST_FALSE_STARTS:
                raise CurvewiseError(
                    f"Workers end before they can train anything, the last one {reason}: see above what they "
                    "printed, or use workers=0."
                )
        worker.end(time.monotonic() + STOP_SECONDS)
        self.drive.lose(worker.chunk, reason, worker.token)
        self.workers[self.workers.index(worker)] = _Worker(self.drive, worker.device, self.inbox)

    def _is_spare(self, worker: _Worker) -> bool:
        """Return whether the study can go on with other devices than that of a worker."""
        return any(self.strikes[w.device] < MOST_FALSE_STARTS for w in self.workers if w.device != worker.device)

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
