"""Plan and status of a study: its runs in the store, failures and their reasons, the time and space of the rest."""

from __future__ import annotations

import math
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, StoreError
from curvewise.nn.task import Keep
from curvewise.nn.training import IMAGE_ARCHITECTURES, ROW_ARCHITECTURES, Training
from curvewise.store.claims import Claims
from curvewise.store.read import MissingRun, missing_file, read_record, without_collecting
from curvewise.store.record import TEST
from curvewise.store.tables import LOSSES, reason_of
from curvewise.study.run.estimators import make_estimator
from curvewise.study.run.programs import check_options, fill_command
from curvewise.study.spec.design import FIELDS
from curvewise.study.spec.study import CHECKPOINTS, Job, StudySpec, check_inputs, examples_digest, half_coloured
from curvewise.text import Message, arg, either, suggest
from curvewise.types.results import Result

if TYPE_CHECKING:
    from curvewise.study.spec.study import Job, StudySpec


STATES = ("done", "failed", "outdated", "damaged", "running", "missing")
MOST_ATTEMPTS = 3
"""Attempts at a run that fails, over all calls; then it is only made when asked for."""
MOST_SECONDS = 60.0
"""Of measuring: a large grid is planned without waiting for each of its networks."""
# Sources of an estimate, the most reliable first.
STORED, MEASURED, UNKNOWN = "stored runs", "a short measurement", "unknown"

# Settings that decide how long a training lasts, and not how long a step takes.
_PLAIN: dict[str, Any] = {"schedule": "constant", "warmup": 0.0, "drops": (), "validation": 0.0, "patience": None}
_PLAIN |= dict.fromkeys(("patience_n", "patience_steps", "look_every"))


@dataclass(frozen=True)
class Failure:
    """Runs that failed for one reason.

    Attributes
    ----------
    message : str
        The last line of the error, numbers and places aside the same for all of them.
    count : int
        How many runs.
    learners : tuple of str
        Whose they are.
    example : str
        Id of one of them; its record has the whole error.
    """

    message: str
    count: int
    learners: tuple[str, ...]
    example: str


@dataclass(frozen=True, eq=False)
class Status(Result):
    """The progress of a study.

    Attributes
    ----------
    name : str
        Of the study.
    store : str
        Folder of its runs.
    planned, done, failed, outdated, damaged, running, missing : int
        All runs, and how many are in each state. A run is outdated if it was made before an
        evaluation set was added or changed; it is running if a living process has claimed it.
    to_do : int
        Runs that ``run`` would make now, or that are running.
    workers : dict of str to int
        Who is at work, and on how many runs.
    failures : tuple of Failure
        Reasons for which runs failed, the most frequent first.
    seconds_spent : float
        On the stored runs.
    seconds_left : float
        On what is to do, one run after the other, judging by stored runs; NaN if they do not tell.
    problems : tuple of str
        What is damaged, and how to mend it.
    warnings : tuple of str
        What to beware of.
    """

    name: str
    store: str
    planned: int
    done: int
    failed: int
    outdated: int
    damaged: int
    running: int
    missing: int
    to_do: int
    workers: Mapping[str, int]
    failures: tuple[Failure, ...]
    seconds_spent: float
    seconds_left: float
    problems: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def is_finished(self) -> bool:
        """True if every run is done or has failed for good."""
        return self.to_do == 0

    def sentences(self) -> str:
        """A few sentences: counts, failures, time."""
        text = f"{self.name}: {self.done:,} of {self.planned:,} runs done"
        # Failed runs are tried again up to a number of times, running ones are not, all others are.
        again = self.to_do - self.outdated - self.damaged - self.running - self.missing
        some = "" if again == self.failed else f"{again or 'none'} "
        ways = {"failed": f" ({some}to be tried again)", "running": ""}
        for state in STATES[1:-1]:
            if getattr(self, state):
                text += f", {getattr(self, state):,} {state}{ways.get(state, ' (to be made again)')}"
        text += f", {self.missing:,} to do." if self.missing else "."
        if self.seconds_spent:
            text += f" The stored runs took {duration(self.seconds_spent)}"
            known = self.to_do and math.isfinite(self.seconds_left)
            text += f", what is left needs about {duration(self.seconds_left)}." if known else "."
        for failure in self.failures[:5]:
            who = ", ".join(failure.learners)
            text += f" {failure.count:,} failed ({who}): {failure.message} See run {failure.example}."
        for who, count in self.workers.items():
            text += f" {count:,} being made by {who}."
        return text

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per state."""
        return {"state": STATES, "runs": tuple(getattr(self, s) for s in STATES)}


def study_status(study: StudySpec) -> Status:
    """Say how far a study is; reads the store and changes nothing."""
    planned = planned_runs(study)
    with Claims(study.runs_folder) as claims:  # the runs that living processes are making, and who
        busy = {i: claims.owner(i) for i in claims.claimed() if claims.is_held(i)}
    making = [r for r in planned if r.job.id in busy and r.state != "done"]
    ids = {r.job.id for r in making}
    states = Counter("running" if r.job.id in ids else r.state for r in planned)
    due = [r for r in planned if r.standing.is_due() or r.job.id in ids]
    # Where most runs were made: asking torch for its devices would take longer than all the rest.
    devices = Counter(r.device for r in planned if r.device and r.job.learner.kind == "network")
    clock = Clock(study, planned, max(devices, key=devices.__getitem__, default="cpu"), measure=False)
    problems = tuple(r.standing.text for r in planned if r.state == "damaged")
    damage = [f"{len(problems)} stored run(s) are damaged and will be made again: {problems[0]}"] if problems else []
    return Status(
        name=study.name,
        store=str(study.runs_folder),
        planned=len(planned),
        **{state: states[state] for state in STATES},
        to_do=len(due),
        workers=dict(Counter(busy[i] for i in ids)),
        failures=group_failures([r for r in planned if r.state == "failed"]),
        seconds_spent=float(sum(r.seconds or 0.0 for r in planned)),
        seconds_left=float(sum(clock.estimate(r.job)[0] for r in due)),
        problems=problems,
        warnings=(*study.assumptions, *damage, *mixture(planned)),
    )


def group_failures(failed: Sequence[Planned]) -> tuple[Failure, ...]:
    """Gather runs that failed for one reason, the most frequent first."""
    groups: dict[str, list[Planned]] = {}
    for run in failed:
        # Numbers, addresses and files differ from run to run where the reason is the same.
        varying = r"0x[0-9a-fA-F]+|[0-9a-f]{20,}|/\S+|\d+(\.\d+)?(e[-+]?\d+)?"
        groups.setdefault(re.sub(varying, "#", reason_of(run.standing.text)), []).append(run)
    found = []
    for runs in groups.values():
        learners = tuple(dict.fromkeys(r.job.name for r in runs))
        found.append(Failure(reason_of(runs[0].standing.text), len(runs), learners, runs[0].job.id))
    return tuple(sorted(found, key=lambda f: -f.count))


# ---- Planned runs, each with what the store holds of it


@dataclass(frozen=True)
class Standing:
    """The state of a run in the store.

    Attributes
    ----------
    state : {"done", "failed", "missing", "damaged", "outdated"}
        Outdated: done, but other evaluation sets are asked for, or more is to be kept.
    attempts : int
        How often it was tried.
    text : str
        Why it failed, or what is wrong with it.
    metrics : dict
        What was measured.
    kept : Keep
        What a run that is done or outdated holds beside its predictions.
    sets : tuple of str
        The evaluation sets that it was tried on.
    """

    state: str
    attempts: int = 0
    text: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    kept: Keep = field(default_factory=Keep)
    sets: tuple[str, ...] = ()

    def is_due(self, retry_failed: bool | None = None) -> bool:
        """Return whether the run must be made: failed ones up to three times, always, or never."""
        if self.state != "failed":
            return self.state != "done"
        return self.attempts < MOST_ATTEMPTS if retry_failed is None else retry_failed


@dataclass(frozen=True, eq=False)
class Planned:
    """A planned run and what the store holds of it.

    Attributes
    ----------
    job : Job
        The run.
    standing : Standing
        Whether it is done, failed, missing, damaged or outdated.
    record : dict
        What is stored of it, if it can be read: metrics, arrays, environment, …
    """

    job: Job
    standing: Standing
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """Either ``"done"``, ``"failed"``, ``"missing"``, ``"damaged"`` or ``"outdated"``."""
        return self.standing.state

    @property
    def seconds(self) -> float | None:
        """Seconds that the stored run took."""
        value = self.standing.metrics.get("seconds")
        return None if value is None else float(value)

    @property
    def device(self) -> str | None:
        """The device that the stored run was made on."""
        device = self.record.get("environment", {}).get("device")
        return None if device is None else str(device)

    def has_evaluation(self, name: str, digest: str | None) -> bool:
        """Return whether the stored run was evaluated on a set as it is now."""
        known = self.record.get("environment", {}).get("evaluations", {}).get(name)
        return known is None or digest is None or known == digest


def planned_runs(study: StudySpec) -> list[Planned]:
    """Look up every planned run, searches for learning rates first; damage is a state, no error."""
    seen = _SEEN.get()
    if seen is not None and seen[0] is study:
        return list(seen[1])
    store, digests = study.runs_folder, evaluation_digests(study)
    with without_collecting():
        jobs = {job.id: job for job in study.jobs}.values()  # searches may be shared by settings of the grid
        return [Planned(job, *look_up(store, job, digests, study.keep)) for job in jobs]


# A report asks for the planned runs a dozen times; reading the store once also makes its parts agree.
_SEEN: ContextVar[tuple[StudySpec, list[Planned]] | None] = ContextVar("seen", default=None)


@contextmanager
def looked_up_once(study: StudySpec) -> Iterator[list[Planned]]:
    """Look the runs up now, for all that is read of the study in this block and thread."""
    found = planned_runs(study)
    token = _SEEN.set((study, found))
    try:
        yield list(found)
    finally:
        _SEEN.reset(token)


def evaluation_digests(study: StudySpec) -> dict[str, str]:
    """Hash of each evaluation set; of the test set only where perturbing needs what is missing."""
    try:
        return study.label_digests()
    except MissingDependencyError:
        return {TEST: examples_digest(study.test_examples())}


def look_up(store: Path, job: Job, digests: Mapping[str, str], keep: Keep) -> tuple[Standing, Mapping[str, Any]]:
    """Look a run up in the store.

    Parameters
    ----------
    store : Path
        Folder of the runs.
    job : Job
        Which run.
    digests : dict of str to str
        For each evaluation set, the hash of its examples.
    keep : Keep
        What should be kept beside the predictions.

    Returns
    -------
    standing : Standing
    record : dict
        Of the run; an empty one if it cannot be read.
    """
    folder = store / job.id
    try:
        record = read_record(folder)
    except MissingRun:
        return Standing("missing"), {}
    except StoreError as error:
        return Standing("damaged", 0, str(error)), {}
    # Runs of one's own training loop say nothing of attempts.
    attempts = record["environment"].get("attempts", 1)
    if record["status"] == "failed":
        return Standing("failed", attempts, record.get("error") or "", record["metrics"]), record
    if job.is_search:
        rate = record["metrics"].get("rate")
        lacks = "" if rate is not None and math.isfinite(rate) else "It names no rate."
    else:
        lacks = _lacks(record, folder, digests, keep)
    if lacks:
        # Another process may have replaced the run since its record was read: then look again.
        try:
            replaced = read_record(folder) != record
        except StoreError:
            replaced = True
        if replaced:
            return look_up(store, job, digests, keep)
    state, sets = "outdated" if lacks else "done", record["environment"].get("evaluations", {})
    found = Standing(state, attempts, lacks, record["metrics"], _kept(record), tuple(sets))
    return found, record


def _lacks(record: Mapping[str, Any], folder: Path, digests: Mapping[str, str], keep: Keep) -> str:
    known = record["environment"].get("evaluations", {})
    numbers = any(name.partition(".")[0] == LOSSES for name in record["arrays"])
    kinds = [LOSSES] if numbers else ["predictions"]
    kinds += ["predictions"] if keep.predictions and numbers else []
    kinds += ["probabilities"] if keep.probabilities else []
    # Only networks have features and weights, so that others have none to lack.
    network = "architecture" in record["coordinates"].get("training", {})
    kinds += ["features"] if keep.features and network else []
    for name, digest in digests.items():
        for kind in kinds:
            array = kind if name == TEST else f"{kind}.{name}"
            if known.get(name) != digest or array not in record["arrays"]:
                return f"It lacks {kind} for the evaluation set {name!r} as it is now."
    kept = _kept(record).checkpoints
    if network and CHECKPOINTS.index(kept) < CHECKPOINTS.index(keep.checkpoints):
        return f"It lacks checkpoints: {keep.checkpoints!r} are asked for, {kept!r} were kept."
    gone = missing_file(folder, record)
    return f"Its file {gone} is gone." if gone else ""


def _kept(record: Mapping[str, Any]) -> Keep:
    """Tell from its files what a run has kept, and from its record, as a training may have had no drops."""
    kinds = {name.partition(".")[0] for name in record["arrays"]}
    weights = "end" if record["files"] else "none"
    weights = "drops" if any("drop-" in name for name in record["files"]) else weights
    said = record["environment"].get("kept")
    said = said if said in CHECKPOINTS else "none"
    numbers = LOSSES in kinds and "predictions" in kinds
    found = Keep("probabilities" in kinds, weights, "features" in kinds, numbers)
    return join_keeps(found, Keep(checkpoints=said))


def join_keeps(one: Keep, other: Keep) -> Keep:
    """Join two requests, so that both have what they ask for.

    >>> join_keeps(Keep(features=True), Keep(checkpoints="end"))
    Keep(probabilities=False, checkpoints='end', features=True, predictions=False)
    """
    return Keep(
        probabilities=one.probabilities or other.probabilities,
        checkpoints=max(one.checkpoints, other.checkpoints, key=CHECKPOINTS.index),
        features=one.features or other.features,
        predictions=one.predictions or other.predictions,
    )


def is_done(folder: Path) -> bool:
    """Return whether a folder holds a run that was done, outdated or not."""
    try:
        return bool(read_record(folder)["status"] == "done")
    except StoreError:
        return False


# ---- Time that runs take


class Clock:
    """Estimates runs of one study on one device.

    A run takes as long as stored runs of the same learner and settings on that device, those of
    its size first, in proportion to the examples looked at. Networks that were never trained there
    are measured for a few steps.

    Parameters
    ----------
    study : Study
        Whose runs.
    planned : sequence of Planned
        Its runs with what is stored.
    device : str
        Where they will be made.
    measure : bool
        Whether to measure what the store does not know.
    """

    def __init__(self, study: StudySpec, planned: Sequence[Planned], device: str, *, measure: bool = True) -> None:
        self.study, self.device, self.measure = study, device, measure
        self.problems: dict[str, None] = {}
        # Seconds per unit of cost of stored runs, by kind and by kind and size.
        spent: dict[tuple[str, ...], list[tuple[float, float]]] = {}
        for run in planned:
            here = run.device is None or kind_of(run.device) == kind_of(device)
            usual = here or run.job.learner.kind != "network"  # estimators and commands use no GPU
            if run.state in ("done", "outdated") and run.seconds is not None and usual:
                for key in (_key(run.job), (*_key(run.job), str(run.job.n))):
                    spent.setdefault(key, []).append((run.seconds, run.job.cost))
        self._stored = {key: sum(s for s, _ in pairs) / sum(c for _, c in pairs) for key, pairs in spent.items()}
        self._measured: dict[tuple[str, ...], float] = {}
        self._spent = 0.0
        self.unmeasured: dict[str, None] = {}

    def estimate(self, job: Job) -> tuple[float, str]:
        """Seconds that a run will take, NaN if nothing is known, and where the number comes from."""
        for key in ((*_key(job), str(job.n)), _key(job)):
            if key in self._stored:
                return self._stored[key] * job.cost, STORED
        known = job.learner.training is not None and self.study.unimported(job.learner) is None
        seconds = self._measure(job) if self.measure and known else math.nan
        return seconds, MEASURED if math.isfinite(seconds) else UNKNOWN

    def _measure(self, job: Job) -> float:
        """Seconds of a run, by what an example costs a network of this kind in such batches."""
        training = job.learner.training
        assert training is not None
        step = replace(training, rate=training.rates[0], epochs=1, steps=None, **_PLAIN)
        # The rate has no part in the time of a step: a grid of rates is measured once.
        key = (repr(replace(step, rate=1.0)), str(step.batch_for(job.n)))
        if key not in self._measured:
            if self._spent > MOST_SECONDS:
                self.unmeasured[job.name] = None
                return math.nan
            looks = step.steps_for(job.n) * step.batch_for(job.n)
            self._measured[key] = self._seconds(job.name, step, job.n) / looks
        return self._measured[key] * job.cost

    def _seconds(self, name: str, step: Training, n: int) -> float:
        """Seconds of one pass over n examples."""
        start = time.monotonic()
        try:
            from curvewise.nn.engine import measure_seconds

            return measure_seconds(step, self.study.examples, n, device=self.device, folder=self.study.folder)
        except Exception as error:  # whatever a factory of one's own raises
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self.problems[f"{name} could not be measured: {first}"] = None
            return math.nan
        finally:
            self._spent += time.monotonic() - start


def _key(job: Job) -> tuple[str, ...]:
    return (job.name, repr(sorted(job.settings.items())), str(job.is_search))


def mixture(planned: Sequence[Planned], device: str | None = None) -> list[str]:
    """Say where runs of one training were made in different ways, which may differ a little."""
    words = {"device": "on different devices", "cpu": "on different kinds of CPU", "path": "in different ways"}
    seen: dict[str, dict[tuple[str, ...], dict[str, None]]] = {name: {} for name in words}
    for run in planned:
        if run.job.learner.kind != "network" or run.job.is_search:
            continue
        training = (run.job.name, repr(sorted(run.job.settings.items())), str(run.job.n))
        about = run.record.get("environment", {}) if run.state != "failed" else {}
        for name, found in seen.items():
            if about.get(name):
                found.setdefault(training, {})[kind_of(str(about[name]))] = None
        if device is not None and run.standing.is_due() and training in seen["device"]:
            seen["device"][training][kind_of(device)] = None
    notes = []
    for name, found in seen.items():
        mixed = [ways for ways in found.values() if len(ways) > 1]
        if mixed:
            ways = dict.fromkeys(way for ways in mixed for way in ways)
            notes.append(
                f"Runs of one training were or will be made {words[name]} ({'; '.join(ways)}), and "
                "may differ by more than their seeds: see the guide to studies."
            )
    return notes


def kind_of(device: str) -> str:
    """``"cuda"`` for ``"cuda:1"``."""
    return device.split(":")[0]


def duration(seconds: float) -> str:
    """Write a time for people.

    >>> duration(42.4), duration(3600 * 5.5), duration(float("nan")), duration(0.004)
    ('42 s', '5.5 hours', 'unknown', '0.004 s')
    """
    if math.isnan(seconds):
        return "unknown"
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            value = seconds / length
            return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == 0 else f"{seconds:.2g} s"


SEARCH = " (search for the rate)"


@dataclass(frozen=True, eq=False)
class Plan(Result):
    """The runs that a study will make. Tuples have one entry per learner and size.

    Attributes
    ----------
    name : str
        Of the study.
    store : str
        Folder of its runs.
    device : str
        Where the times are for.
    workers : int
        GPUs or cores that work at once.
    learner, n : tuple
        Whose runs; searches for a learning rate stand on lines of their own.
    runs, done, failed, to_do : tuple of int
        How many there are, and how many of them are done, have failed, or are to be made (again).
    seconds : tuple of float
        Estimated time of what is to do, one run after the other; NaN where that of any run is unknown.
    source : tuple of str
        Where the estimate comes from: stored runs, a short measurement, or nowhere.
    known, unknown : tuple
        Estimated time of those runs to do whose time is known, and how many others there are.
    bytes_needed, bytes_free : float
        Disk space that the runs to do will take, and what there is; NaN where it is not known.
    warnings : tuple of str
        What to beware of.
    """

    name: str
    store: str
    device: str
    workers: int
    learner: tuple[str, ...]
    n: tuple[int, ...]
    runs: tuple[int, ...]
    done: tuple[int, ...]
    failed: tuple[int, ...]
    to_do: tuple[int, ...]
    seconds: tuple[float, ...]
    source: tuple[str, ...]
    known: tuple[float, ...]
    unknown: tuple[int, ...]
    bytes_needed: float
    bytes_free: float
    warnings: tuple[str, ...]

    @property
    def total_runs(self) -> int:
        """All runs of the study."""
        return sum(self.runs)

    @property
    def total_to_do(self) -> int:
        """Runs that are to be made."""
        return sum(self.to_do)

    @property
    def total_seconds(self) -> float:
        """Estimated time of all runs to be made, one after the other; NaN if any is unknown."""
        return float(sum(s for s, k in zip(self.seconds, self.to_do, strict=True) if k))

    @property
    def known_seconds(self) -> float:
        """Estimated time of what can be estimated."""
        return float(sum(self.known))

    @property
    def hours(self) -> float:
        """Hours of the device, a GPU or a core of the CPU."""
        return self.total_seconds / 3600

    @property
    def hours_of(self) -> str:
        """The unit of the hours: ``"GPU"`` or ``"core"``."""
        return "core" if kind_of(self.device) == "cpu" else "GPU"

    def sentences(self) -> str:
        """A few sentences: runs, time, space."""
        done = sum(self.done)
        text = f"{self.name}: {self.total_runs:,} runs in {self.store}, {done:,} done"
        text += f", {sum(self.failed):,} failed" if any(self.failed) else ""
        text += f", {self.total_to_do:,} to do."
        if self.total_to_do:
            unknown = sum(self.unknown)
            if unknown == self.total_to_do:
                text += " How long that takes is not known: no such run is stored and none was measured."
            else:
                sources = zip(self.source, self.to_do, strict=True)
                each = (s for joined, k in sources if k for s in joined.split(" and "))
                how = " and ".join(dict.fromkeys(s for s in each if s != UNKNOWN))
                gpu, several = self.hours_of == "GPU", self.workers != 1
                place = (
                    f"{self.workers} {'GPUs' if gpu else 'cores'}" if several else self.device if gpu else "one core"
                )
                text += (
                    f" That takes {'at least' if unknown else 'about'} "
                    f"{duration(self.known_seconds / self.workers)} on {place}, "
                    f"{self.known_seconds / 3600:.2g} {self.hours_of}-hours (from {how})"
                )
                text += f", and {unknown:,} runs of unknown length." if unknown else "."
                text += " Starting the workers takes some seconds more."
            if math.isfinite(self.bytes_needed):
                free = f" of {format_bytes(self.bytes_free)} free" if self.bytes_free >= 0 else ""
                text += f" They take about {format_bytes(self.bytes_needed)}{free}."
        return text

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per learner and size."""
        names = ("learner", "n", "runs", "done", "failed", "to_do", "seconds", "source")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """All of the plan as plain Python values, with the totals."""
        totals = ("total_runs", "total_to_do", "total_seconds", "hours", "hours_of")
        values = {name: getattr(self, name) for name in totals}
        hours = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()}
        return {**super().to_dict(), **hours}


def plan_study(study: StudySpec, *, measure: bool = True, device: str | None = None) -> Plan:
    """Plan a study: its runs, their time and disk space, and warnings."""
    try:
        devices = choose_devices(study, device, None)
    except ImportError:  # no torch: plan for the CPU
        devices = choose_devices(study, device or "cpu", None)
    device = devices[0]
    planned = planned_runs(study)
    clock = Clock(study, planned, device, measure=measure)
    rows: dict[tuple[str, int], list[Planned]] = {}
    for run in planned:
        name = run.job.name + (SEARCH if run.job.is_search else "")
        rows.setdefault((name, run.job.n), []).append(run)
    due = {key: [r for r in runs if r.standing.is_due()] for key, runs in rows.items()}
    check_inputs((r.job for runs in due.values() for r in runs), study.dataset)
    study.check_trainings({r.job.name for runs in due.values() for r in runs})
    estimates = {key: [clock.estimate(r.job) for r in runs] for key, runs in due.items()}
    needed = bytes_per_run(study, planned, measure) * sum(map(len, due.values()))
    there = next((p for p in (study.runs_folder, *study.runs_folder.resolve().parents) if p.exists()), None)
    free = math.nan if there is None else float(shutil.disk_usage(there).free)
    bad = _bad_learners(study, [r.job for runs in due.values() for r in runs])
    full = f"The runs take about {format_bytes(needed)}, and {format_bytes(free)} are free."
    # That such a learner could not be measured need not be said too.
    problems = [p for p in clock.problems if not p.startswith(tuple(f"{k} could" for k in bad))]
    if late := [name for name in clock.unmeasured if name not in bad]:
        problems.append(
            f"Measuring stopped after {duration(MOST_SECONDS)}, so not all was measured: the time of all or some runs "
            f"of {', '.join(late)} is unknown."
        )
    return Plan(
        name=study.name,
        store=str(study.runs_folder),
        device=device,
        workers=len(devices),
        learner=tuple(name for name, _ in rows),
        n=tuple(n for _, n in rows),
        runs=tuple(map(len, rows.values())),
        done=tuple(sum(r.state == "done" for r in runs) for runs in rows.values()),
        failed=tuple(sum(r.state == "failed" for r in runs) for runs in rows.values()),
        to_do=tuple(map(len, due.values())),
        seconds=tuple(float(sum(seconds for seconds, _ in found)) for found in estimates.values()),
        source=tuple(" and ".join(dict.fromkeys(source for _, source in found)) for found in estimates.values()),
        known=tuple(float(sum(s for s, _ in found if math.isfinite(s))) for found in estimates.values()),
        unknown=tuple(sum(math.isnan(s) for s, _ in found) for found in estimates.values()),
        bytes_needed=needed,
        bytes_free=free,
        warnings=(
            *study.assumptions,
            *_unimported(study),
            *(f"{name}: {why}" for name, reasons in bad.items() for why in reasons),
            *_lost_layers(study, [r.job for runs in due.values() for r in runs]),
            *_warnings(study, planned, device),
            *half_coloured((r.job for runs in due.values() for r in runs), study.dataset),
            *problems,
            *([full] if needed > free else []),
        ),
    )


def _lost_layers(study: StudySpec, jobs: Sequence[Job]) -> list[str]:
    """Warn of hidden layers in the classifier of a file for a VGG, which our usual VGG does not have."""
    found: dict[str, None] = {}
    for job in {(j.name, repr(j.settings)): j for j in jobs}.values():
        training = job.learner.training
        if training is None or not training.architecture.startswith("vgg") or training.weights is None:
            continue
        if training.weights_into is not None or training.options.get("classifier") == "full":
            continue
        from curvewise.nn.files.tensors import lost_layers, read_weights

        if lost := lost_layers(read_weights(study.folder / training.weights, shapes=True), "classifier"):
            found[
                f"{job.name}: {', '.join(lost)} of {training.weights} are left out, since {training.architecture} has "
                "one layer for its classifier: give it classifier='full' to start from them too."
            ] = None
    return list(found)


def _warnings(study: StudySpec, planned: Sequence[Planned], device: str) -> list[str]:
    states = Counter(run.state for run in planned)
    found = list(study.partition.warnings)
    if not study.dataset.is_numbers:
        y, subsets = study.dataset.y, study.partition
        single = {s.n for s in subsets if len(np.unique(y[study.rows_of(s.n, s.fold)])) == 1}
        found += [f"n={n}: some subsets hold a single class." for n in sorted(single)]
    found += _idle(study)
    for state, why in (
        ("outdated", ", because an evaluation set was added or changed, or more is to be kept"),
        ("damaged", ": damaged"),
    ):
        found += [f"{_runs(states[state])} of the store will be made again{why}."] if states[state] else []
    hopeless = sum(r.state == "failed" and not r.standing.is_due() for r in planned)
    if hopeless:
        way = arg("retry_failed", True)
        found.append(Message(f"{_runs(hopeless)} failed too often to be tried again unless asked for with {way}."))
    found += mixture(planned, device if any(r.standing.is_due() for r in planned) else None)
    if not any(run.standing.is_due() for run in planned):
        found.append("There is nothing to do.")
    return found


def _runs(count: int) -> str:
    return f"{count:,} run" + ("" if count == 1 else "s")


def _unimported(study: StudySpec) -> list[str]:
    """Warn of learners whose code may not be imported."""
    found = {}
    for job in study.jobs:  # a grid may name code, too
        place = study.unimported(job.learner)
        if place is None:
            continue
        what = "its time is" if job.learner.training is None else "the number of its weights and its time are"
        trust = either("trust=True", "--trust")
        found[job.name, place] = Message(
            f"{job.name} is made by {place}, which is not imported without {trust}: its options were not checked, and "
            f"{what} unknown unless runs are stored."
        )
    return list(found.values())


def _idle(study: StudySpec) -> list[str]:
    """Warn of learners whose runs will all be the same, because what varies means nothing to them."""
    found = []
    for name, learner in study.learners.items():
        augmented = "augmentation" in study.design.settings or (
            learner.training is not None and bool(learner.training.augmentation)
        )
        for varied in study.design.variations if study.design.most_seeds > 1 else ():
            if learner.kind == "estimator" and "init" not in varied:
                why = "an estimator has one seed, that of init"
            elif learner.kind == "command" and set(varied) == {"poke"}:
                why = "a command cannot be poked"
            elif learner.kind == "network" and set(varied) == {"augmentation"} and not augmented:
                why = "it has no augmentation; only dropout could make them differ"
            else:
                continue
            found.append(f"{name}: runs that vary in {'+'.join(varied)} will be the same: {why}.")
    return found


def _bad_learners(study: StudySpec, jobs: Sequence[Job]) -> dict[str, list[str]]:
    """Find learners none of whose runs can be made, and why: known before a run is tried."""
    found: dict[str, list[str]] = {}
    for job in {(j.name, repr(j.settings)): j for j in jobs}.values():
        if study.unimported(job.learner) is not None:
            continue
        try:
            if job.learner.training is not None:
                training = job.learner.training
                name, known = training.architecture, (*ROW_ARCHITECTURES, *IMAGE_ARCHITECTURES)
                if ":" not in name and name not in known:
                    ways = f"{', '.join(known)}, 'module:function', 'timm:NAME', 'torchvision:NAME' and 'hf:FOLDER'"
                    problem = f"is not known.{suggest(name, known)} There are {ways}."
                    raise InputError(problem, argument="architecture", value=name)
                if name in known:
                    with suppress(ModuleNotFoundError):  # of torch: options are known where networks can be made
                        from curvewise.nn.architectures import ARCHITECTURES
                        from curvewise.nn.networks import check_factory_options

                        check_factory_options(name, ARCHITECTURES[name], training.options)
            elif job.learner.estimator is not None:
                make_estimator(job.learner, study.folder)
            else:
                check_options(job.learner.options)
                fields = {**dict.fromkeys(FIELDS, 0), **dict.fromkeys(("id", "rows", "data", "out"), "")}
                fill_command(str(job.learner.command), {**fields, **job.learner.options})
        except Exception as error:  # a class of one's own may raise anything
            why = str(error) or type(error).__name__
            if why not in found.setdefault(job.name, []):
                found[job.name].append(why)
    return found


# ---- Disk space

BLOCK = 4096
"""Files take whole blocks of a disk."""


def bytes_per_run(study: StudySpec, planned: Sequence[Planned], measure: bool = True) -> float:
    """Estimate the bytes of a run: the mean of stored ones, or from what is kept; NaN if unknown."""
    stored = [r for r in planned if r.state == "done" and not r.job.is_search]
    if stored:
        arrays = [about for r in stored for about in r.record["arrays"].values()]
        sizes = [np.dtype(about["dtype"]).itemsize * math.prod(about["shape"]) for about in arrays]
        sizes += [about.get("bytes", 0) for r in stored for about in r.record["files"].values()]
        return 2.0 * BLOCK + sum(map(_blocks, sizes)) / len(stored)
    classes = len(study.dataset.classes)
    try:
        sets = study.evaluation_sets
    except CurvewiseError:
        return math.nan
    total = 2.0 * BLOCK  # the folder and the record
    for examples in sets.values():
        if examples.is_numbers:
            total += _blocks(4 * len(examples.y))
            total += _blocks(4 * examples.y.size) if study.keep.predictions else 0
            continue
        total += _blocks(len(examples.y) * np.min_scalar_type(classes - 1).itemsize)
        if study.keep.probabilities:
            total += _blocks(4 * len(examples.y) * classes)
    if study.keep.features or study.keep.checkpoints != "none":
        total += _weights(study, measure)
    return total


def _weights(study: StudySpec, measure: bool) -> float:
    """Bytes of checkpoints and features of the study's networks, made once to be counted."""
    if not measure:
        return math.nan
    found = []
    for learner in study.learners.values():
        training = learner.training
        if training is None:
            found.append(0.0)
            continue
        if study.unimported(learner) is not None:
            return math.nan
        try:
            from curvewise.nn.networks import head_of, make_network

            examples = study.examples
            network = make_network(training, examples.shape, examples.outputs, study.folder)
            size = 4.0 * sum(p.numel() for p in network.parameters())
            width = head_of(network)[1].in_features if study.keep.features else 0
        except Exception:  # a factory of one's own may raise anything; measuring its time reports it
            return math.nan
        kept = {"none": 0, "end": 1}.get(study.keep.checkpoints, 1 + max(2, len(training.drops)))
        rows = sum(len(s.y) for s in study.evaluation_sets.values()) if study.keep.features else 0
        found.append(learner.members * (size * kept + 4.0 * width * rows))
    return float(np.mean(found))


def _blocks(size: float) -> float:
    """Round a file with its header of 128 bytes up to whole blocks."""
    return math.ceil((size + 128) / BLOCK) * BLOCK


def format_bytes(size: float) -> str:
    """Write a size for people.

    >>> format_bytes(512), format_bytes(3.2e9), format_bytes(float("nan"))
    ('1 kB', '3.2 GB', 'unknown')
    """
    if math.isnan(size):
        return "unknown"
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= length:
            return f"{size / length:.2g} {unit}" if size < 99.5 * length else f"{size / length:.0f} {unit}"
    return f"{max(1, round(size / 1e3))} kB"


# ---- Devices


def choose_devices(study: StudySpec, device: str | None, workers: int | None) -> list[str]:
    """Give each worker its device."""
    if workers is not None and (type(workers) is not int or workers < 0):
        raise InputError("give a whole number, 0 for this process.", argument="workers", value=workers)
    if device is not None and device != "cpu" and not device.startswith("cuda"):
        raise InputError("use 'cpu', 'cuda' or 'cuda:1'.", argument="device", value=device)
    networks = any(learner.kind == "network" for learner in study.learners.values())
    gpus: list[str] = []
    if networks and device in (None, "cuda"):
        from curvewise.nn.devices import list_gpus  # asks torch, which takes seconds to import

        gpus = list_gpus()
    if device == "cuda" and networks and not gpus:
        raise InputError(f"{arg('device', device)}, but torch sees no GPU here: use {arg('device', 'cpu')}.")
    if gpus:
        return [gpus[i % len(gpus)] for i in range(workers or len(gpus))]
    single = device or "cpu"
    most = 1 if single.startswith("cuda") else usable_cores()
    return [single] * max(1, most if workers is None else workers)


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
