"""Make runs: claim them, train, turn what comes out into predictions and errors, store them."""

from __future__ import annotations

import gc
import json
import math
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, StoreError, os_reason
from curvewise.nn.devices import describe_cpu, ran_out_of_memory, spoilt_device
from curvewise.nn.task import Assignment, Examples, Keep, Trained
from curvewise.store.claims import Claims
from curvewise.store.record import TEST
from curvewise.store.tables import LOSSES
from curvewise.store.write import remove_partial, write_run
from curvewise.study.data.dataset import log_loss, number_losses
from curvewise.study.run import options as events
from curvewise.study.run.options import Event, SpoiltDeviceError
from curvewise.study.status import Standing, is_done, join_keeps, look_up

if TYPE_CHECKING:
    from curvewise.study.spec.study import Job, StudySpec


Tell = Callable[[Event], None]
STAYS = "The stored run stays as it was, because making it again failed."
"""Begins what is told of a failure that is not stored."""


def make_runs(
    study: StudySpec,
    jobs: Sequence[Job],
    store: Path | None = None,
    *,
    claims: Claims,
    tell: Tell,
    device: str = "cpu",
    in_flight: int | None = None,
    compile: bool = True,
) -> None:
    """Make runs and store each as soon as it is done.

    A run that raises or diverges is stored as failed and the others go on. Where memory does not
    suffice, half as many networks are trained at once, and so on down to one.

    Parameters
    ----------
    study : Study
        Data, evaluation sets and what to keep.
    jobs : sequence of Job
        Which runs.
    store : Path, optional
        Folder of the runs; the study's by default.
    claims : Claims
        Keeps other processes off these runs.
    tell : callable
        Called with an :class:`~curvewise.study.run.options.Event` for every run.
    device : str
        Where networks are trained.
    in_flight : int, optional
        How many networks at once; by default as the engine likes.
    compile : bool
        Whether kernels are compiled on a GPU.

    Raises
    ------
    StoreError
        If a run cannot be stored, on a full disk for instance; nothing half-written remains.
    """
    options: dict[str, Any] = {"device": device, "in_flight": in_flight, "compile": compile}
    Maker(study, store, claims=claims, tell=tell, **options).make(jobs)


class Maker:
    """Makes runs of one study in one process, and remembers how many fit into memory."""

    def __init__(
        self,
        study: StudySpec,
        store: Path | None = None,
        *,
        claims: Claims,
        tell: Tell,
        device: str = "cpu",
        in_flight: int | None = None,
        compile: bool = True,
    ) -> None:
        self.study, self.claims, self.tell, self.device = study, claims, tell, device
        self.store = study.runs_folder if store is None else Path(store)
        self.most, self.compile = in_flight, compile
        self._in_flight: dict[str, int] = {}
        self._digests = study.label_digests()
        self._attempts: dict[str, int] = {}
        self._before: dict[str, Standing] = {}
        self._lock = threading.Lock()

    def make(self, jobs: Sequence[Job], tried: Mapping[str, int] | None = None) -> None:
        """Make runs, as :func:`make_runs` does.

        Where ``tried`` says how often a run had been tried, one that was tried more often is left:
        another process was here and failed.
        """
        self._check_data(jobs)
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

    def _check_data(self, jobs: Sequence[Job]) -> None:
        """Raise where this process has loaded other examples than those that runs are named by."""
        if any(job.coordinates["data"] != self.study.data_digest for job in jobs):
            raise InputError(
                "data are not what they were when the runs were planned: they were loaded again, "
                "and came out otherwise. Was a file changed meanwhile? A function of your own must "
                "give the same every time: let it draw random numbers with a fixed seed."
            )

    def _say(self, event: Event) -> None:
        """Tell from whatever thread, one at a time."""
        with self._lock:
            self.tell(event)

    def _claim(self, job: Job, tried: int | None) -> bool:
        """Claim a run that is not there yet; another may have made it since we were told to."""
        if not self.claims.take(job.id):
            self._say(Event(events.HELD, job.id))
            return False
        standing, _ = look_up(self.store, job, self._digests, self.study.keep)
        vain = standing.state == "failed" and tried is not None and standing.attempts > tried
        if standing.state == "done" or vain:
            self.claims.release(job.id)
            self._say(Event(events.THERE, job.id, standing.text))
            return False
        self._attempts[job.id], self._before[job.id] = standing.attempts, standing
        return True

    def _keep(self, job: Job) -> Keep:
        """What to keep of a run: what another study kept of it stays, although it is made anew."""
        return join_keeps(self.study.keep, self._before[job.id].kept)

    def _keep_of_network(self, job: Job) -> Keep:
        """What is wanted of each network: an ensemble averages numbers, kept or not."""
        keep, averaged = self._keep(job), job.learner.members > 1 and job.learner.loss is not None
        return replace(keep, predictions=True) if averaged else keep

    def _make_alike(self, jobs: list[Job]) -> None:
        """Make runs that differ in nothing but their examples and seeds."""
        if jobs[0].is_search:
            for job in jobs:
                search = partial(search_rate, self.study, job, device=self.device)
                self._finish(job, guarded(search, self._check_device))
        elif jobs[0].learner.kind == "network":
            settled = self._with_rate(jobs)
            if isinstance(settled, str):
                for job in jobs:
                    self._attempts[job.id] -= 1  # it was not even tried
                    self._finish(job, failed(settled))
            else:
                self._train_networks(settled)
        else:
            for job in jobs:
                train = partial(train_other, self.study, job)
                self._finish(job, guarded(train, self._check_device))

    def _with_rate(self, jobs: list[Job]) -> list[Job] | str:
        """The runs with the learning rate that the search found; or why there is none."""
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
        """Train what is pending; fewer at once while memory lacks, alone what raises in company."""
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
                self._say(Event(events.MEMORY, next(iter(pending)), text))
            elif len(pending) > 1:
                for job in list(pending.values()):
                    self._train_networks([job])
                return
            else:
                (job,) = pending.values()
                self._finish(job, failed("".join(traceback.format_exception(trouble))))
                return

    def _attempt(self, pending: dict[str, Job], at_once: int | None) -> BaseException | None:
        """Train; what finishes is stored and leaves ``pending``. Gives what went wrong for all."""
        with Writers() as writers:  # which store what has finished, whatever is raised here
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

        training, members = jobs[0].learner.training, jobs[0].learner.members
        assert training is not None
        assignments = [
            assign(job, self.study.rows_of(job.n, job.fold), member) for job in jobs for member in range(members)
        ]
        gathered: dict[int, dict[int, Trained]] = {}
        for index, trained in train(
            training,
            assignments,
            self.study.examples,
            self.study.evaluation_sets,
            device=self.device,
            in_flight=at_once,
            compile=self.compile,
            keep=self._keep_of_network(jobs[0]),
            folder=self.study.folder,
        ):
            which, member = divmod(index, members)
            parts = gathered.setdefault(which, {})
            parts[member] = trained
            if len(parts) == members:
                yield jobs[which], average([parts[m] for m in sorted(parts)])
                del gathered[which]

    def _check_device(self, error: BaseException) -> None:
        """Raise where a GPU can be used no more, which need not be the fault of this run."""
        if self.device.startswith("cuda") and spoilt_device(error):
            raise SpoiltDeviceError(str(error).partition("\n")[0]) from error

    def _finish(self, job: Job, trained: Trained) -> None:
        """Store what came of a run, unless another process has taken it over from us."""
        if not self.claims.holds(job.id):
            self._say(Event(events.HELD, job.id, "Another process took it over."))
            return
        keep = self._keep(job)
        outcome = assemble(self.study, job, trained, keep)
        dropped = self._dropped(job) if outcome["status"] == "done" else ""
        outcome["notes"] = (*outcome["notes"], *([dropped] if dropped else []))
        outcome["notes"] = (*outcome["notes"], *trained.doubts)
        environment = {
            "device": self.device if job.learner.kind == "network" else "cpu",
            "path": trained.path,
            **self._bits(job, trained),
            "attempts": self._attempts.get(job.id, 0) + 1,
            **({} if job.is_search else {"evaluations": self._digests, "kept": keep.checkpoints}),
        }
        stored = store_run(self.store, job.coordinates, environment=environment, **outcome)
        self.claims.release(job.id)
        if outcome["status"] == "done":
            self._say(Event(events.DONE, job.id, dropped, trained.seconds))
        else:
            text = outcome["error"] if stored else f"{STAYS}\n{outcome['error']}"
            self._say(Event(events.FAILED, job.id, text, trained.seconds))

    def _bits(self, job: Job, trained: Trained) -> dict[str, Any]:
        """Whether the run has the same bits however it is made, and on which kinds of CPU.

        Nothing is known of commands.
        """
        if job.learner.kind == "command":
            return {}
        on_cpu = job.learner.kind == "network" and self.device == "cpu"
        cpu = {"cpu": describe_cpu()} if on_cpu else {}
        return {"same_bits": not trained.doubts, **cpu}

    def _dropped(self, job: Job) -> str:
        """What the stored run had been tried on, and will not be any more."""
        sets = [name for name in self._before[job.id].sets if name not in self._digests]
        if job.is_search or not sets:
            return ""
        return (
            f"Made again for a study without the evaluation sets {', '.join(sets)}: what was stored for them is gone."
        )


def store_run(store: Path, coordinates: Mapping[str, Any], **parts: Any) -> bool:
    """Store a run over whatever is there; a full disk stops the study and leaves nothing behind.

    A failure is not stored over a run that was done, and False says so.
    """
    from curvewise.store.record import run_id

    if parts.get("status") == "failed" and is_done(store / run_id(coordinates)):
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
            f"A run cannot be stored in {store}: {reason}. What is stored is whole: run the study "
            "again once that is mended, and it goes on where it stopped."
        ) from error
    return True


def groups_of(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    """Runs by what they have in common, in their order."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(group_of(job), []).append(job)
    return groups


def group_of(job: Job) -> str:
    """Names what runs share that take as long as each other and may be trained in one stack."""
    return f"{job.n} {kind_of(job)}"


def kind_of(job: Job) -> str:
    """Names what runs must share to be trained side by side."""
    return json.dumps([job.name, job.is_search, job.needs, dict(job.settings)], default=str)


# What came out of a training, as the parts of a stored run.

MOST_LETTERS = 20_000
"""Of an error that is kept with a run; a traceback may repeat itself without end."""


def assemble(study: StudySpec, job: Job, trained: Trained, keep: Keep | None = None) -> dict[str, Any]:
    """Turn what came of a training into what :func:`~curvewise.store.write.write_run` takes.

    Probabilities become predicted classes, errors and losses; of numbers there are losses. Those
    that are not finite, or not of the right shape, make the run a failed one. What is kept is what
    the study asks for, unless ``keep`` says otherwise.
    """
    metrics: dict[str, float] = {k: float(v) for k, v in trained.metrics.items()}
    metrics["seconds"] = trained.seconds
    error = trained.error
    numbers = study.dataset.is_numbers
    if numbers and error is None and not job.is_search:
        trained, error = _judged(study, job, trained)
    elif error is None and not job.is_search:
        error = _wrong(trained.probabilities, study.evaluation_sets)
    if error is not None:
        finite = {k: v for k, v in metrics.items() if math.isfinite(v)}
        text = _shortened(error)
        return {"status": "failed", "error": text, "metrics": finite, "notes": trained.notes}
    parts = {"status": "done", "metrics": metrics, "notes": trained.notes}
    if job.is_search:
        return parts
    measure = _measured_numbers if numbers else _measured
    return {**parts, **measure(study, trained, metrics, keep or study.keep)}


def _judged(study: StudySpec, job: Job, trained: Trained) -> tuple[Trained, str | None]:
    """Losses of predicted numbers, where they were not measured yet; and what is wrong."""
    losses = dict(trained.losses)
    for name, examples in study.evaluation_sets.items():
        if name in trained.predictions and name not in losses:
            given, expected = trained.predictions[name], examples.y.shape
            if given.shape != expected:
                return trained, f"Numbers for {name!r} have shape {given.shape}: not {expected}."
            losses[name] = number_losses(given, examples.y, str(job.learner.loss))
        if name not in losses:
            return trained, f"Nothing was predicted for the evaluation set {name!r}."
        if not np.isfinite(losses[name]).all():
            return trained, f"The training diverged: losses for {name!r} are not finite."
    return replace(trained, losses=losses), None


def _measured_numbers(study: StudySpec, trained: Trained, metrics: dict[str, float], keep: Keep) -> dict[str, Any]:
    arrays, measured = {}, {}
    for name in study.evaluation_sets:
        ending = "" if name == TEST else f".{name}"
        arrays[f"{LOSSES}{ending}"] = trained.losses[name]
        measured[f"loss{ending}"] = float(trained.losses[name].mean(dtype=np.float64))
        if keep.features and name in trained.features:
            arrays[f"features{ending}"] = trained.features[name]
    if "train_loss" in metrics:
        measured["gap"] = measured["loss"] - metrics["train_loss"]
    return {
        "predictions": dict(trained.predictions) if keep.predictions else None,
        "metrics": {**metrics, **measured},
        "arrays": arrays,
        "checkpoints": trained.checkpoints,
    }


def _measured(study: StudySpec, trained: Trained, metrics: dict[str, float], keep: Keep) -> dict[str, Any]:
    predictions, arrays, labels = {}, {}, {}
    measured: dict[str, float] = {}
    for name, examples in study.evaluation_sets.items():
        ending = "" if name == TEST else f".{name}"
        given = trained.probabilities[name]
        predicted = given.argmax(axis=1).astype(np.min_scalar_type(examples.classes - 1))
        predictions[name], labels[name] = predicted, examples.y
        measured[f"error{ending}"] = float(np.mean(predicted != examples.y))
        if not trained.hard:
            measured[f"loss{ending}"] = log_loss(given, examples.y)
        if keep.probabilities:
            arrays[f"probabilities{ending}"] = given
        if keep.features and name in trained.features:
            arrays[f"features{ending}"] = trained.features[name]
    if "train_error" in metrics:
        measured["gap"] = measured["error"] - metrics["train_error"]
    return {
        "predictions": predictions,
        "metrics": {**metrics, **measured},
        "arrays": arrays,
        "labels": labels,
        "checkpoints": trained.checkpoints,
    }


def _wrong(probabilities: Mapping[str, NDArray[np.float32]], sets: Mapping[str, Examples]) -> str | None:
    for name, examples in sets.items():
        if name not in probabilities:
            return f"Nothing was predicted for the evaluation set {name!r}."
        given, expected = probabilities[name], (len(examples.y), examples.classes)
        if given.shape != expected:
            return f"Probabilities for {name!r} have shape {given.shape}: expected {expected}."
        if not np.isfinite(given).all():
            return f"The training diverged: probabilities for {name!r} are not finite."
    return None


def _shortened(text: str) -> str:
    if len(text) <= MOST_LETTERS:
        return text
    return f"{text[: MOST_LETTERS // 2]}\n[…]\n{text[-MOST_LETTERS // 2 :]}"


def failed(text: str) -> Trained:
    """A training that came to nothing."""
    return Trained(error=text)


def assign(job: Job, rows: NDArray[np.int64], member: int = 0) -> Assignment:
    """What the engine is to train for a job, or for one network of its ensemble.

    The first network has the seeds of a run without an ensemble, the others seeds derived of them.
    """

    def seed(name: str) -> int:
        own = job.seeds[name]
        return own if not member else int(np.random.SeedSequence([own, member]).generate_state(1)[0])

    return Assignment(rows, seed("init"), seed("order"), seed("augmentation"), job.poke)


def average(members: Sequence[Trained]) -> Trained:
    """Average what an ensemble's members predict; one that failed fails the ensemble.

    What was measured on the training examples is the mean over the members, and features stand side
    by side.
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
    return Trained(
        probabilities={name: _mean([m.probabilities[name] for m in members]) for name in first.probabilities},
        metrics={k: float(np.mean([m.metrics[k] for m in members])) for k in first.metrics},
        checkpoints={
            f"network-{i}-{name}": weights
            for i, member in enumerate(members)
            for name, weights in member.checkpoints.items()
        },
        features={name: np.concatenate([m.features[name] for m in members], axis=1) for name in first.features},
        seconds=seconds,
        path=first.path,
        notes=(*dict.fromkeys(n for m in members for n in m.notes), note),
        hard=first.hard,
        predictions={name: _mean([m.predictions[name] for m in members]) for name in first.predictions},
        doubts=tuple(dict.fromkeys(doubt for m in members for doubt in m.doubts)),
    )


def _mean(parts: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """In double precision and the order of the members, whoever finished first."""
    mean: NDArray[np.float64] = np.stack(parts).astype(np.float64).mean(axis=0)
    return mean.astype(np.float32)


# Find a learning rate on one training subset, for all runs of a learner.

VALIDATION = "validation"


def search_rate(study: StudySpec, job: Job, *, device: str = "cpu") -> Trained:
    """Train with each candidate rate on two thirds of a subset and try it on the other third.

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
    numbers = study.examples.is_numbers
    labels = np.zeros(len(study.examples.y), np.int64) if numbers else study.examples.y
    rows, held = split_in_three(subset, labels, job.seeds["order"])
    sets = {VALIDATION: _part(study.examples, held)}
    tried: list[tuple[float, float, float]] = []
    errors: list[str] = []
    seconds, path = 0.0, ""
    for rate in training.rates:
        ((_, trained),) = train(
            replace(training, rate=rate), [assign(job, rows)], study.examples, sets, device=device, folder=study.folder
        )
        seconds, path = seconds + trained.seconds, trained.path
        error, loss, reason = _judge(trained, sets[VALIDATION].y)
        errors += [] if reason is None else [f"rate {rate:g}: {reason}"]
        tried.append((error, loss, rate))
    if len(errors) == len(tried):
        reasons = "\n".join(errors)
        return Trained(error=f"No learning rate led anywhere.\n{reasons}", seconds=seconds)
    metrics = {} if numbers else {f"error.{rate!r}": error for error, _, rate in tried}
    metrics |= {f"loss.{rate!r}": loss for _, loss, rate in tried if np.isfinite(loss)}
    notes = tuple(text.splitlines()[0] for text in errors)
    best = min(tried)[2]
    return Trained(metrics={"rate": best, **metrics}, seconds=seconds, path=path, notes=notes)


def _judge(trained: Trained, y: NDArray[np.int64]) -> tuple[float, float, str | None]:
    if trained.error is not None:
        return 1.0, float("inf"), trained.error
    if trained.losses:
        return 0.0, float(trained.losses[VALIDATION].mean(dtype=np.float64)), None
    given = trained.probabilities[VALIDATION]
    if not np.isfinite(given).all():
        return 1.0, float("inf"), "the training diverged"
    return float(np.mean(given.argmax(axis=1) != y)), log_loss(given, y), None


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


def _part(examples: Examples, rows: NDArray[np.int64]) -> Examples:
    return replace(examples, x=examples.x[rows], y=examples.y[rows])


# Train what is no network, and take what is raised for a failed run.


def train_other(study: StudySpec, job: Job) -> Trained:
    """Have an estimator or a command make a run."""
    if job.learner.kind == "estimator":
        from curvewise.study.run.estimators import fit_estimator

        return fit_estimator(study, job)
    from curvewise.study.run.programs import run_command

    return run_command(study, job)


def guarded(train: Callable[[], Trained], check: Callable[[BaseException], None]) -> Trained:
    """What raises is a failed run, with the reason; also what would end the process.

    An error is shown to ``check`` first, which may raise another.
    """
    try:
        return train()
    except (MissingDependencyError, StoreError):
        raise
    except CurvewiseError as error:
        return failed(str(error))
    except (Exception, SystemExit) as error:
        check(error)
        return failed("".join(traceback.format_exception(error)))


# Threads that store runs while the next ones are trained.

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
