"""Status of a study: its runs in the store, failures and their reasons, and the time that runs take."""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError, StoreError, arg
from curvewise.nn.task import Keep
from curvewise.nn.training import Training
from curvewise.store.claims import Claims
from curvewise.store.read import MissingRun, missing_file, read_record, without_collecting
from curvewise.store.record import TEST, set_name
from curvewise.store.tables import LOSSES, reason_of
from curvewise.study.spec.study import CHECKPOINTS, Job, StudySpec, examples_digest
from curvewise.text import format_count
from curvewise.types.results import Result

STATES = ("done", "failed", "outdated", "damaged", "running", "missing")
MOST_ATTEMPTS = 3
"""Attempts at a run that fails, over all calls; then it is only made when asked for."""
MOST_SECONDS = 60.0
"""Of measuring: a large grid is planned without waiting for each of its networks."""
# Sources of an estimate, the most reliable first.
STORED, MEASURED, UNKNOWN = "stored runs", "a short measurement", "unknown"
UNTRUSTED = "unknown without trust"
FIT_SECONDS = 3.0
"""Of fits of one estimator that are tried for their time; that of larger sizes follows from these."""

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
    diverged : int
        Failed runs whose training diverged.
    learners : dict of str to dict
        For each learner, the number of its ``runs``, how many are ``finished``, ``failed`` and ``remaining``, and the
        ``seconds`` of the stored ones.
    workers : dict of str to int
        Processes that are making runs, and how many each.
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
    diverged: int
    learners: Mapping[str, Mapping[str, float]]
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
        states = {state: getattr(self, state) for state in STATES}
        text = f"{count_text(self.planned, states, self.diverged)}."
        # Failed runs are tried again up to a number of times, all others that are not finished are made.
        again = self.to_do - self.outdated - self.damaged - self.running - self.missing
        if self.failed:
            which = "none of the failed runs" if not again else format_count(again, "failed run")
            which = "the failed runs" if again == self.failed > 1 else which
            text += f" `run` will try {which} again."
        if self.seconds_spent:
            text += f" The stored runs took {duration(self.seconds_spent)}"
            remain = self.planned - self.done - self.failed
            known = remain and math.isfinite(self.seconds_left)
            left = f"; the remaining ones need about {duration(self.seconds_left)}, one after the other."
            text += left if known else "."
        for failure in self.failures[:5]:
            who = ", ".join(failure.learners)
            text += f" {failure.count:,} failed ({who}): {failure.message} See run {failure.example}."
        for who, count in self.workers.items():
            text += f" {format_count(count, 'run')} being made by {who}."
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
    damage = []
    if problems:
        damage = [f"{format_count(len(problems), 'damaged run')} will be made again. The first: {problems[0]}"]
    return Status(
        name=study.name,
        store=str(study.runs_folder),
        planned=len(planned),
        **{state: states[state] for state in STATES},
        to_do=len(due),
        diverged=sum(r.has_diverged for r in planned),
        learners=_by_learner(planned),
        workers=dict(Counter(busy[i] for i in ids)),
        failures=group_failures([r for r in planned if r.state == "failed"]),
        seconds_spent=float(sum(r.seconds or 0.0 for r in planned)),
        seconds_left=float(sum(clock.estimate(r.job)[0] for r in due)),
        problems=problems,
        warnings=(*study.assumptions, *damage, *identical_runs(planned), *mixture(planned)),
    )


def count_text(total: int, states: Mapping[str, int], diverged: int = 0) -> str:
    """Write how many runs are finished, have failed and remain.

    >>> count_text(736, {})
    '736 runs: 0 finished, 736 remaining'
    >>> count_text(40, {"done": 30, "failed": 4, "running": 2}, diverged=3)
    '40 runs: 30 finished, 4 failed (3 diverged), 6 remaining (2 running)'
    """
    done, failed = states.get("done", 0), states.get("failed", 0)
    parts = [f"{done:,} finished"]
    if failed:
        parts.append(f"{failed:,} failed" + (f" ({diverged:,} diverged)" if diverged else ""))
    special = [f"{states[s]:,} {s}" for s in ("running", "damaged", "outdated") if states.get(s)]
    parts.append(f"{total - done - failed:,} remaining" + (f" ({', '.join(special)})" if special else ""))
    return f"{format_count(total, 'run')}: {', '.join(parts)}"


def _by_learner(planned: Sequence[Planned]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for run in planned:
        name = run.job.name + (SEARCH if run.job.is_search else "")
        counts = found.setdefault(name, {"runs": 0, "finished": 0, "failed": 0, "remaining": 0, "seconds": 0.0})
        counts["runs"] += 1
        counts[{"done": "finished", "failed": "failed"}.get(run.state, "remaining")] += 1
        counts["seconds"] += run.seconds or 0.0
    return found


def identical_runs(planned: Sequence[Planned]) -> list[str]:
    """Warn of learners whose runs with different seeds gave the same results on every training subset."""
    subsets: dict[str, dict[str, list[Planned]]] = {}
    for run in planned:
        if run.state == "done" and not run.job.is_search:
            subsets.setdefault(run.job.name, {}).setdefault(apart_from_seeds(run.job), []).append(run)
    found = []
    for name, groups in subsets.items():
        # Runs that are right on every example agree whatever their seeds do.
        several = [runs for runs in groups.values() if len(runs) > 1 and not all(map(_is_perfect, runs))]
        if several and all(len({outcome_of(run) for run in runs}) == 1 for runs in several):
            most = max(map(len, several))
            found.append(
                f"{name}: {most:,} runs with different seeds made identical predictions on every training subset. The "
                "learner may ignore its seed; then they are one run in effect, and seeds = 1 would do."
            )
    return found


def apart_from_seeds(job: Job) -> str:
    """Return what a run is made of, but for its seeds: equal for runs that only seeds tell apart."""
    return repr((job.name, sorted(job.settings.items()), job.n, job.fold, job.varies, job.poke))


def outcome_of(run: Planned) -> str:
    """Return the digests of what a run stored, and what it measured but for time: equal for identical runs."""
    hashes = sorted((name, about["sha256"]) for name, about in run.record["arrays"].items())
    return repr((hashes, sorted((k, v) for k, v in run.standing.metrics.items() if "seconds" not in k)))


def _is_perfect(run: Planned) -> bool:
    """Return whether a run predicted every class, without probabilities that could tell it from others."""
    return run.standing.metrics.get("error") == 0 and not run.standing.kept.probabilities


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

    @property
    def has_diverged(self) -> bool:
        """True if the run failed because its training diverged."""
        return self.state == "failed" and "diverged" in self.standing.text

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
            if known.get(name) != digest or set_name(kind, name) not in record["arrays"]:
                return f"It has no {kind} for the current evaluation set {name!r}."
    kept = _kept(record).checkpoints
    if network and CHECKPOINTS.index(kept) < CHECKPOINTS.index(keep.checkpoints):
        return f"It has no checkpoints {keep.checkpoints!r}: only {kept!r} were kept."
    gone = missing_file(folder, record)
    return f"Its file {gone} is missing." if gone else ""


def _kept(record: Mapping[str, Any]) -> Keep:
    """Tell from its files what a run has kept, and from its record, as a training may have had no drops."""
    kinds = {name.partition(".")[0] for name in record["arrays"]}
    weights = "end" if record["files"] else "none"
    weights = "drops" if any("drop-" in name for name in record["files"]) else weights
    recorded = record["environment"].get("kept")
    recorded = recorded if recorded in CHECKPOINTS else "none"
    numbers = LOSSES in kinds and "predictions" in kinds
    found = Keep("probabilities" in kinds, weights, "features" in kinds, numbers)
    return join_keeps(found, Keep(checkpoints=recorded))


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

LATEST = 5
"""Finished runs of a size whose time is used to estimate that of others."""


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


class Clock:
    """Estimates runs of one study on one device.

    A run takes as long as stored runs of the same learner and settings on that device, those of
    its size first, in proportion to the examples looked at. Networks that were never trained there
    are measured for a few steps, and estimators are fitted at their smallest sizes.

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
        self._stored = stored_pace(planned, device)
        self._measured: dict[tuple[str, ...], float] = {}
        self._fits = Pace()
        self._fitted: dict[tuple[str, ...], float] = {}
        self._spent = 0.0
        self.unmeasured: dict[str, None] = {}

    def estimate(self, job: Job) -> tuple[float, str]:
        """Seconds that a run will take, NaN if nothing is known, and where the number comes from."""
        if math.isfinite(stored := self._stored.seconds(job)):
            return stored, STORED
        if self.study.unimported(job.learner) is not None:
            return math.nan, UNTRUSTED
        seconds = math.nan
        if self.measure and job.learner.training is not None:
            seconds = self._measure(job)
        elif self.measure and job.learner.estimator is not None:
            seconds = self._fit(job)
        return seconds, MEASURED if math.isfinite(seconds) else UNKNOWN

    def _fit(self, job: Job) -> float:
        """Seconds of an estimator, fitted once at each size from the smallest on while that is quick."""
        key, size = pace_key(job), (*pace_key(job), str(job.n))
        if self._fitted.get(key, 0.0) < FIT_SECONDS and size not in self._measured:
            seconds = self._try(job.name, lambda: _fit_seconds(self.study, job))
            if seconds is not None:
                self._measured[size] = seconds
                # One that fails is not tried again at other sizes.
                self._fitted[key] = self._fitted.get(key, 0.0) + (seconds if math.isfinite(seconds) else FIT_SECONDS)
                if math.isfinite(seconds):
                    self._fits.learn(job, seconds)
        return self._fits.seconds(job)

    def _measure(self, job: Job) -> float:
        """Seconds of a run, by what an example costs a network of this kind in such batches."""
        training = job.learner.training
        assert training is not None
        step = replace(training, rate=training.rates[0], epochs=1, steps=None, **_PLAIN)
        # The rate has no part in the time of a step: a grid of rates is measured once.
        key = (repr(replace(step, rate=1.0)), str(step.batch_for(job.n)))
        if key not in self._measured:
            seconds = self._try(job.name, lambda: _step_seconds(self.study, step, job.n, self.device))
            if seconds is None:
                return math.nan
            self._measured[key] = seconds / (step.steps_for(job.n) * step.batch_for(job.n))
        return self._measured[key] * job.cost

    def _try(self, name: str, measure: Callable[[], float]) -> float | None:
        """Seconds that were measured, NaN where that raises; None where there is no time left to measure."""
        if self._spent > MOST_SECONDS:
            self.unmeasured[name] = None
            return None
        start = time.monotonic()
        try:
            return measure()
        except Exception as error:  # whatever a class or a factory of one's own raises
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self.problems[f"{name} could not be measured: {first}"] = None
            return math.nan
        finally:
            self._spent += time.monotonic() - start


def _fit_seconds(study: StudySpec, job: Job) -> float:
    """Seconds of one fit."""
    from curvewise.study.run.estimators import fit_estimator

    found = fit_estimator(study, job)
    if found.error is not None:
        raise CurvewiseError(reason_of(found.error))
    return max(float(found.seconds), 1e-6)


def _step_seconds(study: StudySpec, step: Training, n: int, device: str) -> float:
    """Seconds of one pass over n examples."""
    from curvewise.nn.engine import measure_seconds

    return measure_seconds(step, study.examples, n, device=device, folder=study.folder)


def stored_pace(planned: Iterable[Planned], device: str) -> Pace:
    """Learn from stored runs how long such runs take on a device."""
    pace = Pace()
    for run in planned:
        here = run.device is None or device_kind(run.device) == device_kind(device)
        usual = here or run.job.learner.kind != "network"  # estimators and commands use no GPU
        if run.state in ("done", "outdated") and run.seconds is not None and usual:
            pace.learn(run.job, run.seconds)
    return pace


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
                found.setdefault(training, {})[device_kind(str(about[name]))] = None
        if device is not None and run.standing.is_due() and training in seen["device"]:
            seen["device"][training][device_kind(device)] = None
    notes = []
    for name, found in seen.items():
        mixed = [ways for ways in found.values() if len(ways) > 1]
        if mixed:
            ways = dict.fromkeys(way for ways in mixed for way in ways)
            notes.append(
                f"Runs of one learner were or will be made {words[name]} ({'; '.join(ways)}), so they may differ by "
                "more than their seeds: see the guide to studies."
            )
    return notes


def device_kind(device: str) -> str:
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
