"""Make runs: claim them, train, turn what comes out into predictions and errors, store them."""

from __future__ import annotations

import gc
import json
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import InputError, MissingDependencyError, StoreError, os_reason
from curvewise.nn.devices import describe_cpu, ran_out_of_memory, spoilt_device
from curvewise.nn.task import Keep, Trained
from curvewise.study._files import remove_partial
from curvewise.study.claims import Claims
from curvewise.study.execute import events
from curvewise.study.execute.assembling import assemble, assign, average, failed
from curvewise.study.execute.events import Event
from curvewise.study.execute.others import guarded, train_other
from curvewise.study.execute.rates import search_rate
from curvewise.study.execute.standing import Standing, is_done, join_keeps, stand
from curvewise.study.execute.troubles import SpoiltDeviceError
from curvewise.study.execute.writing import Writers
from curvewise.study.store import write_run

if TYPE_CHECKING:
    from curvewise.study.jobs import Job
    from curvewise.study.study import Study

Tell = Callable[[Event], None]
STAYS = "The stored run stays as it was, because making it again failed."
"""Begins what is told of a failure that is not stored."""


def make_runs(
    study: Study,
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
        Called with an :class:`~curvewise.study.execute.events.Event` for every run.
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
        study: Study,
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
        standing = stand(self.store, job, self._digests, self.study.keep)
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
            found = stand(self.store, search, self._digests, self.study.keep)
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
            assign(job, self.study.rows_of(job.n, job.fold), member)
            for job in jobs
            for member in range(members)
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
            f"Made again for a study without the evaluation sets {', '.join(sets)}: what was "
            "stored for them is gone."
        )


def store_run(store: Path, coordinates: Mapping[str, Any], **parts: Any) -> bool:
    """Store a run over whatever is there; a full disk stops the study and leaves nothing behind.

    A failure is not stored over a run that was done, and False says so.
    """
    from curvewise.study._record import run_id

    if parts.get("status") == "failed" and is_done(store / run_id(coordinates)):
        return False
    try:
        write_run(store, coordinates, overwrite=True, **parts)
    except MissingDependencyError:
        raise
    except Exception as error:
        remove_partial(store, run_id(coordinates))
        cause = error.__cause__
        reason = (
            os_reason(cause, place=False)
            if isinstance(cause, OSError)
            else str(error).removesuffix(".")
        )
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
