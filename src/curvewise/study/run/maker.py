"""Make runs: claim them, train, turn what comes out into predictions and errors, store them."""

from __future__ import annotations

import gc
import json
import math
import os
import socket
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, StoreError, os_reason
from curvewise.nn.devices import describe_cpu, ran_out_of_memory, spoilt_device
from curvewise.nn.task import Assignment, Keep, Trained, split_rows
from curvewise.store.claims import Claims
from curvewise.store.record import run_id, set_name
from curvewise.store.tables import LOSSES
from curvewise.store.write import remove_partial, write_run
from curvewise.study.data.dataset import log_loss, number_losses
from curvewise.study.run.estimators import fit_estimator
from curvewise.study.run.programs import run_command
from curvewise.study.spec.study import Job, StudySpec
from curvewise.study.status import Standing, is_done, join_keeps, look_up

DONE, FAILED, THERE, HELD, MEMORY = "done", "failed", "there", "held", "memory"
"""Kinds of an :class:`Event`."""
STAYS = "The stored run was kept, because repeating it failed."
"""First line of the text of a failure that is not stored."""
MOST_LETTERS = 20_000
"""Of an error that is kept with a run; a traceback may repeat itself without end."""
VALIDATION = "validation"
THREADS = 4
"""Storing waits for the disk, and a disk syncs several files in about the time of one."""
BACKLOG = 64
"""Runs waiting to be stored; more would only take memory."""


@dataclass(frozen=True)
class Event:
    """An event in the making of one run.

    Attributes
    ----------
    kind : {"done", "failed", "there", "held", "memory"}
        Made; made and failed; found made already; another process is making it; there was too
        little memory, and it is tried again with fewer networks at once.
    id : str
        Which run.
    text : str
        Why it failed, or what a reader should know.
    seconds : float
        How long it took.
    where : str
        Machine and process.
    """

    kind: str
    id: str
    text: str = ""
    seconds: float = 0.0
    where: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")

    @property
    def is_final(self) -> bool:
        """True if no more events of the run will come from the same process."""
        return self.kind != MEMORY


class SpoiltDeviceError(CurvewiseError):
    """After an error on the GPU, nothing more can be computed there by this process."""


class Maker:
    """Makes runs of one study in one process, and stores each as soon as it is done.

    A run that raises or diverges is stored as failed and the others go on. Where memory does not suffice, half as
    many networks are trained at once, and so on down to one; this is remembered for the next runs of their kind.

    Parameters
    ----------
    study : Study
        Data, evaluation sets and what to keep.
    claims : Claims
        Keeps other processes off the runs.
    tell : callable
        Called with an :class:`~curvewise.study.run.maker.Event` for every run.
    device : str
        Where networks are trained.
    in_flight : int, optional
        How many networks at once; by default as the engine chooses.
    compile : bool
        Whether kernels are compiled on a GPU.
    stream : bool, optional
        Whether images stay on the host.
    """

    def __init__(
        self,
        study: StudySpec,
        *,
        claims: Claims,
        tell: Callable[[Event], None],
        device: str = "cpu",
        in_flight: int | None = None,
        compile: bool = True,
        stream: bool | None = None,
    ) -> None:
        self.study, self.claims, self.tell, self.device = study, claims, tell, device
        self.store: Path = study.runs_folder
        self.most, self.compile, self.stream = in_flight, compile, stream
        self._in_flight: dict[str, int] = {}
        self._digests = study.label_digests()
        self._attempts: dict[str, int] = {}
        self._before: dict[str, Standing] = {}
        self._lock = threading.Lock()

    def make(self, jobs: Sequence[Job], tried: Mapping[str, int] | None = None) -> None:
        """Make runs.

        Where ``tried`` says how often a run had been tried, one that was tried more often is left:
        another process was here and failed.

        Raises
        ------
        InputError
            If this process has loaded other examples than those that the runs are named by.
        StoreError
            If a run cannot be stored, on a full disk for instance; nothing half-written remains.
        """
        if any(job.coordinates["data"] != self.study.data_digest for job in jobs):
            raise InputError(
                "data have changed since the runs were planned: loading them again gave other "
                "examples. Was a file changed meanwhile? A function of your own must return the same "
                "data every time: use a fixed random seed."
            )
        mine: list[Job] = []
        try:
            for job in jobs:
                if self._claim(job, (tried or {}).get(job.id)):
                    mine.append(job)
            groups: dict[tuple[str, Keep], list[Job]] = {}
            for job in mine:
                groups.setdefault((kind_of(job), self._keep(job)), []).append(job)
            for group in groups.values():
                self._make_alike(group)
        finally:
            for job in mine:
                self.claims.release(job.id)

    def _say(self, event: Event) -> None:
        """Tell what happened, from any thread, one at a time."""
        with self._lock:
            self.tell(event)

    def _claim(self, job: Job, tried: int | None) -> bool:
        """Claim a run that is not there yet; another may have made it since we were asked to."""
        if not self.claims.take(job.id):
            self._say(Event(HELD, job.id))
            return False
        standing, _ = look_up(self.store, job, self._digests, self.study.keep)
        vain = standing.state == "failed" and tried is not None and standing.attempts > tried
        if standing.state == "done" or vain:
            self.claims.release(job.id)
            self._say(Event(THERE, job.id, standing.text))
            return False
        self._attempts[job.id], self._before[job.id] = standing.attempts, standing
        return True

    def _keep(self, job: Job) -> Keep:
        """Join what the study keeps with what another study kept of the run, which is made again, too."""
        return join_keeps(self.study.keep, self._before[job.id].kept)

    def _make_alike(self, jobs: list[Job]) -> None:
        """Make runs that differ in nothing but their examples and seeds."""
        if jobs[0].is_search:
            how: dict[str, Any] = {"device": self.device, "stream": self.stream}
            for job in jobs:
                study = self.study.grouped(job)
                self._finish(job, self._guarded(partial(search_rate, study, job, **how)))
        elif jobs[0].learner.kind == "network":
            settled = self._with_rate(jobs)
            if isinstance(settled, str):
                for job in jobs:
                    self._attempts[job.id] -= 1  # it was not even tried
                    self._finish(job, Trained(error=settled))
            else:
                self._train_networks(settled)
        else:
            train = fit_estimator if jobs[0].learner.kind == "estimator" else run_command
            for job in jobs:
                self._finish(job, self._guarded(partial(train, self.study.grouped(job), job)))

    def _with_rate(self, jobs: list[Job]) -> list[Job] | str:
        """Give the runs the learning rate that the search found; a text says why there is none."""
        needs = jobs[0].needs
        if needs is None:
            return jobs
        search = next((j for j in self.study.jobs if j.id == needs), None)
        found = Standing("missing")
        if search is not None:
            found, _ = look_up(self.store, search, self._digests, self.study.keep)
        if found.state != "done":
            return f"The search for the learning rate, {needs}, is {found.state}. {found.text}"
        training, rate = jobs[0].learner.training, found.metrics["rate"]
        assert training is not None
        assert rate is not None
        settled = replace(jobs[0].learner, training=replace(training, rate=rate))
        return [replace(job, learner=settled) for job in jobs]

    def _train_networks(self, jobs: list[Job]) -> None:
        """Train all; fewer at once while memory lacks, one by one where a stack raises."""
        pending = {job.id: job for job in jobs}
        group = kind_of(jobs[0])
        while pending:
            at_once = self._in_flight.get(group, self.most)
            trouble = self._attempt(pending, at_once)
            if trouble is None or not pending:
                break
            # What the failed attempt held must be gone before the next one.
            gc.collect()
            size = min(at_once or len(pending) * jobs[0].learner.members, 1 << 20)
            if ran_out_of_memory(trouble) and size > 1:
                self._in_flight[group] = max(1, size // 2)
                text = f"Out of memory with {size} networks at once: {size // 2} from here on."
                self._say(Event(MEMORY, next(iter(pending)), text))
            elif len(pending) > 1:
                for job in list(pending.values()):
                    self._train_networks([job])
                return
            else:
                (job,) = pending.values()
                self._finish(job, Trained(error="".join(traceback.format_exception(trouble))))
                return

    def _attempt(self, pending: dict[str, Job], at_once: int | None) -> BaseException | None:
        """Train; runs that finish are stored and leave ``pending``. Return the error that stopped the others."""
        with Writers() as writers:  # these store finished runs, whatever is raised here
            try:
                for job, trained in self._train(list(pending.values()), at_once):
                    del pending[job.id]
                    writers.submit(self._finish, job, trained)
            except (MissingDependencyError, SpoiltDeviceError, StoreError):
                raise
            except (Exception, SystemExit) as error:
                self._check_device(error)
                return error
        return RuntimeError("The engine did not say what became of the run.") if pending else None

    def _train(self, jobs: list[Job], at_once: int | None) -> Iterator[tuple[Job, Trained]]:
        from curvewise.nn.engine import train

        study = self.study.grouped(jobs[0])  # all have the settings of the first
        training, members = jobs[0].learner.training, jobs[0].learner.members
        assert training is not None
        keep = self._keep(jobs[0])
        if members > 1 and jobs[0].learner.loss is not None:  # an ensemble averages numbers, kept or not
            keep = replace(keep, predictions=True)
        drawn = [(job, study.rows_of(job.n, job.fold), held_rows(study, job)) for job in jobs]
        assignments = [assign(job, rows, m, held) for job, rows, held in drawn for m in range(members)]
        gathered: dict[int, dict[int, Trained]] = {}
        for index, trained in train(
            training,
            assignments,
            study.examples,
            study.evaluation_sets,
            device=self.device,
            in_flight=at_once,
            compile=self.compile,
            stream=self.stream,
            keep=keep,
            folder=study.folder,
        ):
            which, member = divmod(index, members)
            parts = gathered.setdefault(which, {})
            parts[member] = trained
            if len(parts) == members:
                yield jobs[which], average([parts[m] for m in sorted(parts)])
                del gathered[which]

    def _guarded(self, train: Callable[[], Trained]) -> Trained:
        """Record an exception as a failed run; also a call of ``exit``, which would end the process."""
        try:
            return train()
        except (MissingDependencyError, StoreError):
            raise
        except CurvewiseError as error:
            return Trained(error=str(error))
        except (Exception, SystemExit) as error:
            self._check_device(error)
            return Trained(error="".join(traceback.format_exception(error)))

    def _check_device(self, error: BaseException) -> None:
        """Raise where a GPU can no longer be used, which need not be the fault of this run."""
        if self.device.startswith("cuda") and spoilt_device(error):
            raise SpoiltDeviceError(str(error).partition("\n")[0]) from error

    def _finish(self, job: Job, trained: Trained) -> None:
        """Store the outcome of a run, unless another process has taken it over from us."""
        if not self.claims.holds(job.id):
            self._say(Event(HELD, job.id, "Another process took it over."))
            return
        keep = self._keep(job)
        outcome = assemble(self.study.grouped(job), job, trained, keep)
        lost = [name for name in self._before[job.id].sets if name not in self._digests]
        dropped = f"Repeated without the evaluation sets {', '.join(lost)}: their stored results were removed."
        if not lost or outcome["error"] is not None or job.is_search:
            dropped = ""
        outcome["notes"] = (*outcome["notes"], *([dropped] if dropped else []), *trained.doubts)
        on_cpu = job.learner.kind != "network" or self.device == "cpu"
        environment: dict[str, Any] = {"device": "cpu" if on_cpu else self.device, "path": trained.path}
        if job.learner.kind != "command":  # of which nothing is known
            environment["same_bits"] = not trained.doubts
        if job.learner.kind == "network" and on_cpu:  # whose kind decides the bits
            environment["cpu"] = describe_cpu()
        environment["attempts"] = self._attempts.get(job.id, 0) + 1
        if not job.is_search:
            environment |= {"evaluations": self._digests, "kept": keep.checkpoints}
        stored = store_run(self.store, job.coordinates, environment=environment, **outcome)
        self.claims.release(job.id)
        if outcome["error"] is None:
            self._say(Event(DONE, job.id, dropped, trained.seconds))
        else:
            text = outcome["error"] if stored else f"{STAYS}\n{outcome['error']}"
            self._say(Event(FAILED, job.id, text, trained.seconds))


def kind_of(job: Job) -> str:
    """Name what runs must share to be trained side by side."""
    # With the training: what a size holds out may differ where learner and settings are the same.
    training = job.learner.as_dict()
    return json.dumps([job.name, job.is_search, job.needs, dict(job.settings), training], default=str)


def store_run(store: Path, coordinates: Mapping[str, Any], **parts: Any) -> bool:
    """Store a run over whatever is there; a full disk stops the study and leaves nothing behind.

    A failure is not stored over a run that was done, and False says so.
    """
    if parts.get("error") is not None and is_done(store / run_id(coordinates)):
        return False
    try:
        write_run(store, coordinates, overwrite=True, **parts)
    except MissingDependencyError:
        raise
    except Exception as error:
        remove_partial(store, run_id(coordinates))
        cause = error.__cause__
        reason = os_reason(cause, place=False) if isinstance(cause, OSError) else str(error).removesuffix(".")
        raise StoreError(
            f"A run cannot be stored in {store}: {reason}. The stored runs are intact: run the study "
            "again once that is fixed, and it will continue where it stopped."
        ) from error
    return True


# ---- The outcome of a training, as the parts of a stored run


def assemble(study: StudySpec, job: Job, trained: Trained, keep: Keep) -> dict[str, Any]:
    """Turn the outcome of a training into the arguments of :func:`~curvewise.store.write.write_run`.

    Probabilities become predicted classes, errors and losses; numbers become losses. Values that are not finite,
    or not of the right shape, make the run a failed one.
    """
    metrics: dict[str, float] = {k: float(v) for k, v in trained.metrics.items()}
    metrics["seconds"] = trained.seconds
    parts: dict[str, Any] = {}
    error = trained.error
    if error is None and not job.is_search:
        try:
            parts = _evaluate(study, job, trained, keep)
        except UnusablePredictions as problem:
            error = str(problem)
    if error is not None:
        if len(error) > MOST_LETTERS:
            error = f"{error[: MOST_LETTERS // 2]}\n[…]\n{error[-MOST_LETTERS // 2 :]}"
        finite = {k: v for k, v in metrics.items() if math.isfinite(v)}
        return {"error": error, "metrics": finite, "notes": trained.notes}
    measured = parts.pop("metrics", {})
    main = "loss" if study.dataset.is_numbers else "error"
    if main in measured and f"train_{main}" in metrics:
        measured["gap"] = measured[main] - metrics[f"train_{main}"]
    return {"error": None, "metrics": {**metrics, **measured}, "notes": trained.notes, **parts}


class UnusablePredictions(Exception):
    """Predictions are missing, of the wrong shape or not finite."""


def _evaluate(study: StudySpec, job: Job, trained: Trained, keep: Keep) -> dict[str, Any]:
    """Measure the predictions for every evaluation set; arrays, labels and metrics have its name as a suffix."""
    predictions, arrays, labels = {}, {}, {}
    metrics: dict[str, float] = {}
    for name, examples in study.evaluation_sets.items():
        if study.dataset.is_numbers:
            losses = trained.losses.get(name)  # as the engine measured them, else from the predictions
            if losses is None:
                numbers = _predicted(trained.predictions.get(name), examples.y.shape, "Numbers", name)
                losses = number_losses(numbers, examples.y, str(job.learner.loss))
            _check_finite(losses, "losses", name)
            arrays[set_name(LOSSES, name)] = losses
            metrics[set_name("loss", name)] = float(losses.mean(dtype=np.float64))
            if keep.predictions and name in trained.predictions:
                predictions[name] = trained.predictions[name]
        else:
            shape = (len(examples.y), examples.classes)
            given = _predicted(trained.probabilities.get(name), shape, "Probabilities", name)
            _check_finite(given, "probabilities", name)
            predicted = given.argmax(axis=1).astype(np.min_scalar_type(examples.classes - 1))
            predictions[name], labels[name] = predicted, examples.y
            metrics[set_name("error", name)] = float(np.mean(predicted != examples.y))
            if not trained.hard:
                metrics[set_name("loss", name)] = log_loss(given, examples.y)
            if keep.probabilities:
                arrays[set_name("probabilities", name)] = given
        if keep.features and name in trained.features:
            arrays[set_name("features", name)] = trained.features[name]
    found = {"predictions": predictions, "metrics": metrics, "arrays": arrays, "labels": labels}
    return found | {"checkpoints": trained.checkpoints}


def _predicted(given: NDArray[Any] | None, expected: tuple[int, ...], what: str, name: str) -> NDArray[Any]:
    """Give what was predicted for an evaluation set, of the shape expected."""
    if given is None:
        raise UnusablePredictions(f"Nothing was predicted for the evaluation set {name!r}.")
    if given.shape != expected:
        raise UnusablePredictions(f"{what} for {name!r} have shape {given.shape}: expected {expected}.")
    return given


def _check_finite(values: NDArray[Any], what: str, name: str) -> None:
    if not np.isfinite(values).all():
        raise UnusablePredictions(f"The training diverged: {what} for {name!r} are not finite.")


def held_rows(study: StudySpec, job: Job) -> NDArray[np.int64] | None:
    """Choose the examples of a run to validate on, where its size says how many; None where it does not.

    So many of each class of the data, also where the run tells groups of classes apart.
    """
    held = study.held_of(job.n)
    if not held:
        return None
    return split_rows(study.rows_of(job.n, job.fold), study.dataset.y, f"{held}/class", least=0)[1]


def assign(job: Job, rows: NDArray[np.int64], member: int = 0, held: NDArray[np.int64] | None = None) -> Assignment:
    """Assign the engine a job, or one network of its ensemble.

    The first network has the seeds of a run without an ensemble, the others seeds derived of them.
    """

    def seed(name: str) -> int:
        own = job.seeds[name]
        return own if not member else int(np.random.SeedSequence([own, member]).generate_state(1)[0])

    return Assignment(rows, seed("init"), seed("order"), seed("augmentation"), job.poke, held)


def average(members: Sequence[Trained]) -> Trained:
    """Average the predictions of an ensemble's members; one that failed fails the ensemble.

    Metrics of the training examples are means over the members, and features stand side by side.
    """
    if len(members) == 1:
        return members[0]
    seconds = sum(m.seconds for m in members)
    for i, member in enumerate(members):
        if member.error is not None:
            return Trained(error=f"Network {i} of the ensemble: {member.error}", seconds=seconds)
    first = members[0]
    what = "train_loss is a mean" if first.predictions else "train_error and train_loss are means"
    note = f"{what} over the {len(members)} networks."
    averaged: dict[str, Any] = {}
    for kind in ("probabilities", "predictions"):
        given = [getattr(m, kind) for m in members]
        # In double precision and in the order of the members, whichever finished first.
        mean = {name: np.stack([g[name] for g in given]).astype(np.float64).mean(axis=0) for name in given[0]}
        averaged[kind] = {name: values.astype(np.float32) for name, values in mean.items()}
    kept = [(f"network-{i}-{name}", weights) for i, m in enumerate(members) for name, weights in m.checkpoints.items()]
    return replace(
        first,
        **averaged,
        metrics={k: float(np.mean([m.metrics[k] for m in members])) for k in first.metrics},
        checkpoints=dict(kept),
        features={name: np.concatenate([m.features[name] for m in members], axis=1) for name in first.features},
        losses={},  # of the average, not of the first
        seconds=seconds,
        notes=(*dict.fromkeys(n for m in members for n in m.notes), note),
        doubts=tuple(dict.fromkeys(doubt for m in members for doubt in m.doubts)),
    )


# ---- The search for a learning rate, on one training subset, for all runs of a learner


def search_rate(study: StudySpec, job: Job, *, device: str = "cpu", stream: bool | None = None) -> Trained:
    """Train with each candidate rate on two thirds of a subset and try it on the other third.

    Where the size of the subset says what to validate on, on the rest of it and on that.
    The rate with the least error is taken; among equals the one with the lower loss, then the lower
    rate. Where targets are numbers, the one with the least loss. One that diverges counts as all
    wrong.

    Parameters
    ----------
    study : Study
        Whose data it is.
    job : Job
        A search, whose learner names several rates.
    device : str
        Where to train.
    stream : bool, optional
        Whether images stay on the host.

    Returns
    -------
    Trained
        With the metrics ``rate``, ``error.<rate>`` (of classes) and ``loss.<rate>``, and no
        predictions; with an error if all rates diverged.
    """
    from curvewise.nn.engine import train

    training = job.learner.training
    assert training is not None
    subset = study.rows_of(job.n, job.fold)
    numbers = study.dataset.is_numbers
    labels = np.zeros(len(study.examples.y), np.int64) if numbers else study.examples.y
    own = held_rows(study, job)
    rows, held = split_in_three(subset, labels, job.seeds["order"]) if own is None else (subset, own)
    sets = {VALIDATION: replace(study.examples, x=study.examples.x[held], y=study.examples.y[held])}
    tried: list[tuple[float, float, float]] = []
    errors: list[str] = []
    seconds, path = 0.0, ""
    for rate in training.rates:
        how: dict[str, Any] = {"device": device, "folder": study.folder, "stream": stream}
        ((_, trained),) = train(
            replace(training, rate=rate), [assign(job, rows, held=own)], study.examples, sets, **how
        )
        seconds, path = seconds + trained.seconds, trained.path
        # Error and loss on the validation third, and why there are none; numbers have no error.
        error, loss, reason = 1.0, math.inf, trained.error
        given = trained.probabilities.get(VALIDATION)
        if reason is None and trained.losses:
            error, loss = 0.0, float(trained.losses[VALIDATION].mean(dtype=np.float64))
        elif reason is None and given is not None and np.isfinite(given).all():
            y = sets[VALIDATION].y
            error, loss = float(np.mean(given.argmax(axis=1) != y)), log_loss(given, y)
        if reason is None and not math.isfinite(loss):
            error, loss, reason = 1.0, math.inf, "the training diverged"
        errors += [] if reason is None else [f"rate {rate:g}: {reason}"]
        tried.append((error, loss, rate))
    if len(errors) == len(tried):
        reasons = "\n".join(errors)
        return Trained(error=f"Training failed with every learning rate.\n{reasons}", seconds=seconds)
    metrics = {} if numbers else {f"error.{rate!r}": error for error, _, rate in tried}
    metrics |= {f"loss.{rate!r}": loss for _, loss, rate in tried if np.isfinite(loss)}
    notes = tuple(text.splitlines()[0] for text in errors)
    best = min(tried)[2]
    return Trained(metrics={"rate": best, **metrics}, seconds=seconds, path=path, notes=notes)


def split_in_three(
    rows: NDArray[np.int64], labels: NDArray[np.int64], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split a subset 2:1, each class as evenly as it goes.

    Examples
    --------
    >>> y = np.repeat([0, 1], [6, 3])
    >>> two, one = split_in_three(np.arange(9), y, seed=0)
    >>> np.bincount(y[two]).tolist(), np.bincount(y[one]).tolist()
    ([4, 2], [2, 1])
    """
    shuffled = np.random.default_rng(seed).permutation(rows)
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    third = np.arange(len(rows)) % 3 == 2
    if not third.any():  # one or two examples: better tried on what was learnt than not at all
        return by_class, by_class
    return by_class[~third], by_class[third]


# ---- Threads that store runs while the next ones are trained


class Writers:
    """Threads that call functions, not too far behind; an exception in one is raised here.

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
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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
