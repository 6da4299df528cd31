"""What a study will do before it does it: runs, time, space, and what to beware of."""

from __future__ import annotations

import math
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError
from curvewise.nn.training import IMAGE_ARCHITECTURES, ROW_ARCHITECTURES, Training
from curvewise.study.spec.learner import FIELDS
from curvewise.study.spec.study import Job
from curvewise.study.standing import Planned, planned_runs
from curvewise.types.results import Result

if TYPE_CHECKING:
    from curvewise.study.spec.study import Study


SEARCH = " (search for the rate)"


@dataclass(frozen=True, eq=False)
class Plan(Result):
    """What a study will do. Tuples have one entry per learner and size.

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
        Estimated time of what is to do, one run after the other; NaN where nothing is known.
    source : tuple of str
        Where the estimate comes from: stored runs, a short measurement, or nowhere.
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
        """Estimated time of all that is to do, one run after the other; NaN if any is unknown."""
        return float(sum(s for s, k in zip(self.seconds, self.to_do, strict=True) if k))

    @property
    def known_seconds(self) -> float:
        """Estimated time of what can be estimated."""
        return float(np.nansum([s for s, k in zip(self.seconds, self.to_do, strict=True) if k]))

    @property
    def hours(self) -> float:
        """Hours of the device, a GPU or a core of the CPU."""
        return self.total_seconds / 3600

    @property
    def hours_of(self) -> str:
        """What the hours are of: ``"GPU"`` or ``"core"``."""
        return "core" if kind_of(self.device) == "cpu" else "GPU"

    def summary(self) -> str:
        """A few sentences: runs, time, space."""
        done = sum(self.done)
        text = f"{self.name}: {self.total_runs:,} runs in {self.store}, {done:,} done"
        text += f", {sum(self.failed):,} failed" if any(self.failed) else ""
        text += f", {self.total_to_do:,} to do."
        if self.total_to_do:
            text += f" {self._time()}"
            if math.isfinite(self.bytes_needed):
                free = f" of {said_bytes(self.bytes_free)} free" if self.bytes_free >= 0 else ""
                text += f" They take about {said_bytes(self.bytes_needed)}{free}."
        return text + "".join(f" Beware: {w}" for w in self.warnings)

    def _time(self) -> str:
        todo = [(s, k) for s, k in zip(self.source, self.to_do, strict=True) if k]
        unknown = sum(k for s, k in todo if s == UNKNOWN)
        if unknown == self.total_to_do:
            return "How long that takes is not known: no such run is stored and none was measured."
        hours = self.known_seconds / 3600
        how = " and ".join(dict.fromkeys(s for s, _ in todo if s != UNKNOWN))
        text = (
            f"That takes about {duration(self.known_seconds / self.workers)} on {self._place()}, "
            f"{hours:.2g} {self.hours_of}-hours (from {how})"
        )
        text += f", and {unknown:,} runs of unknown length." if unknown else "."
        return f"{text} Starting the workers takes some seconds more."

    def _place(self) -> str:
        if self.hours_of == "GPU":
            return self.device if self.workers == 1 else f"{self.workers} GPUs"
        return "one core" if self.workers == 1 else f"{self.workers} cores"

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


def plan_study(study: Study, *, measure: bool = True, device: str | None = None) -> Plan:
    """Say what a study will do, without doing it."""
    devices = usual_devices(study, device)
    device = devices[0]
    planned = planned_runs(study)
    clock = Clock(study, planned, device, measure=measure)
    rows: dict[tuple[str, int], list[Planned]] = {}
    for run in planned:
        name = run.job.name + (SEARCH if run.job.is_search else "")
        rows.setdefault((name, run.job.n), []).append(run)
    due = {key: [r for r in runs if r.standing.is_due()] for key, runs in rows.items()}
    estimates = {key: [clock.estimate(r.job) for r in runs] for key, runs in due.items()}
    needed = bytes_per_run(study, planned, measure) * sum(map(len, due.values()))
    free = _free_space(study.runs_folder)
    bad = _bad_learners(study, [r.job for runs in due.values() for r in runs])
    # That such a learner could not be measured need not be said too.
    problems = [p for p in clock.problems if not p.startswith(tuple(f"{k} could" for k in bad))]
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
        seconds=tuple(float(sum(e.seconds for e in found)) for found in estimates.values()),
        source=tuple(" and ".join(dict.fromkeys(e.source for e in found)) for found in estimates.values()),
        bytes_needed=needed,
        bytes_free=free,
        warnings=(
            *study.assumptions,
            *_unimported(study),
            *(f"{name}: {why}" for name, reasons in bad.items() for why in reasons),
            *_warnings(study, planned, device),
            *problems,
            *_space(needed, free),
        ),
    )


def _free_space(folder: Path) -> float:
    there = next((p for p in (folder, *folder.resolve().parents) if p.exists()), None)
    return math.nan if there is None else float(shutil.disk_usage(there).free)


def _space(needed: float, free: float) -> list[str]:
    if not needed > free:
        return []
    return [f"The runs take about {said_bytes(needed)}, and {said_bytes(free)} are free."]


def _warnings(study: Study, planned: Sequence[Planned], device: str) -> list[str]:
    states = Counter(run.state for run in planned)
    found = [*study.partition.warnings, *_few_classes(study), *_idle(study)]
    if states["outdated"]:
        found.append(
            f"{_runs(states['outdated'])} of the store will be made again, because an evaluation "
            "set was added or changed, or more is to be kept."
        )
    if states["damaged"]:
        found.append(f"{_runs(states['damaged'])} of the store will be made again: damaged.")
    hopeless = sum(r.state == "failed" and not r.standing.is_due() for r in planned)
    if hopeless:
        found.append(f"{_runs(hopeless)} failed too often to be tried again unless asked for with retry_failed=True.")
    found += mixture(planned, device if any(r.standing.is_due() for r in planned) else None)
    if not any(run.standing.is_due() for run in planned):
        found.append("There is nothing to do.")
    return found


def _runs(count: int) -> str:
    return f"{count:,} run" + ("" if count == 1 else "s")


def _unimported(study: Study) -> list[str]:
    """Say what is not known of learners whose code may not be imported."""
    found = {}
    for job in study.jobs:  # a grid may name code, too
        place = study.unimported(job.learner)
        if place is None:
            continue
        what = "options were not checked, and its time is"
        if job.learner.training is not None:
            what = "options were not checked, and the number of its weights and its time are"
        found[job.name, place] = (
            f"{job.name} is made by {place}, which is not imported without --trust (in Python "
            f"trust=True): its {what} unknown unless runs are stored."
        )
    return list(found.values())


def _few_classes(study: Study) -> list[str]:
    y = study.dataset.y
    if study.dataset.is_numbers:
        return []
    single = {s.n for s in study.partition if len(np.unique(y[study.rows_of(s.n, s.fold)])) == 1}
    return [f"n={n}: some subsets hold a single class." for n in sorted(single)]


def _idle(study: Study) -> list[str]:
    """Say whose runs will all be the same, because what varies means nothing to them."""
    found = []
    for name, learner in study.learners.items():
        augmented = "augmentation" in study.design.settings or (
            learner.training is not None and bool(learner.training.augmentation)
        )
        for varied in study.design.variations if study.design.seeds > 1 else ():
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


def _bad_learners(study: Study, jobs: Sequence[Job]) -> dict[str, list[str]]:
    """Learners none of whose runs can be made, and why: known before a run is tried."""
    checks = {"network": _check_network, "estimator": _check_estimator, "command": _check_command}
    found: dict[str, list[str]] = {}
    for job in {(j.name, repr(j.settings)): j for j in jobs}.values():
        if study.unimported(job.learner) is not None:
            continue
        try:
            checks[job.learner.kind](study, job)
        except Exception as error:  # whatever a class of one's own raises
            why = str(error) or type(error).__name__
            if why not in found.setdefault(job.name, []):
                found[job.name].append(why)
    return found


def _check_network(_: Study, job: Job) -> None:
    assert job.learner.training is not None
    name = job.learner.training.architecture
    known = (*ROW_ARCHITECTURES, *IMAGE_ARCHITECTURES)
    if ":" not in name and name not in known:
        close = get_close_matches(name, known, 1)
        raise InputError(
            f"architecture={name!r} is not known."
            + (f" Did you mean {close[0]!r}?" if close else "")
            + f" There are {', '.join(known)}, 'module:function', 'timm:NAME' and 'hf:FOLDER'."
        )


def _check_estimator(study: Study, job: Job) -> None:
    from curvewise.study.run.estimators import make_estimator

    make_estimator(job.learner, study.folder)


def _check_command(_: Study, job: Job) -> None:
    from curvewise.study.run.programs import fill_command

    given = job.learner.options
    if taken := sorted(set(given) & set(FIELDS)):
        raise InputError(f"grid has {', '.join(taken)}, which a command is given already: use another name.")
    words = dict.fromkeys(("id", "rows", "data", "out"), "")
    fill_command(str(job.learner.command), {**dict.fromkeys(FIELDS, 0), **words, **given})


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


# How long runs will take: from stored ones, or from a short measurement.

MOST_SECONDS = 60.0
"""Of measuring: a large grid is planned without waiting for each of its networks."""

# What decides how long a training lasts, and not how long a step takes.
_PLAIN: dict[str, Any] = {"schedule": "constant", "warmup": 0.0, "drops": (), "validation": 0.0, "patience": None}

STORED, MEASURED, UNKNOWN = "stored runs", "a short measurement", "unknown"


@dataclass(frozen=True)
class Estimate:
    """Seconds of a run, and where the number comes from; NaN if nothing is known."""

    seconds: float
    source: str


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

    def __init__(self, study: Study, planned: Sequence[Planned], device: str, *, measure: bool = True) -> None:
        self.study, self.device, self.measure = study, device, measure
        self.problems: dict[str, None] = {}
        self._stored = _rates(planned, device)
        self._measured: dict[tuple[str, ...], float] = {}
        self._spent = 0.0

    def estimate(self, job: Job) -> Estimate:
        """Seconds that a run will take."""
        for key in ((*_key(job), str(job.n)), _key(job)):
            if key in self._stored:
                return Estimate(self._stored[key] * job.cost, STORED)
        known = job.learner.training is not None and self.study.unimported(job.learner) is None
        if self.measure and known:
            seconds = self._measure(job)
            return Estimate(seconds, MEASURED if math.isfinite(seconds) else UNKNOWN)
        return Estimate(math.nan, UNKNOWN)

    def _measure(self, job: Job) -> float:
        """Seconds of a run, by what an example costs a network of this kind in such batches."""
        training = job.learner.training
        assert training is not None
        step = replace(training, rate=training.rates[0], epochs=1, steps=None, **_PLAIN)
        key = (repr(step), str(step.batch_for(job.n)))
        if key not in self._measured:
            looks = step.steps_for(job.n) * step.batch_for(job.n)
            self._measured[key] = self._seconds(job.name, step, job.n) / looks
        return self._measured[key] * job.cost

    def _seconds(self, name: str, step: Training, n: int) -> float:
        """Seconds of one pass over n examples."""
        if self._spent > MOST_SECONDS:
            self.problems[f"Measuring took {duration(self._spent)}, so not all was measured."] = None
            return math.nan
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


def _rates(planned: Sequence[Planned], device: str) -> Mapping[tuple[str, ...], float]:
    """Seconds per unit of cost of stored runs, by kind and by kind and size."""
    spent: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for run in planned:
        here = run.device is None or kind_of(run.device) == kind_of(device)
        usual = here or run.job.learner.kind != "network"
        if run.state in ("done", "outdated") and run.seconds is not None and usual:
            for key in (_key(run.job), (*_key(run.job), str(run.job.n))):
                spent.setdefault(key, []).append((run.seconds, run.job.cost))
    return {key: sum(seconds for seconds, _ in pairs) / sum(cost for _, cost in pairs) for key, pairs in spent.items()}


def usual_devices(study: Study, device: str | None = None) -> list[str]:
    """The device of each worker on this machine; the cores of the CPU where torch is missing."""
    from curvewise.study.run.options import choose_devices

    try:
        return choose_devices(study, device, None)
    except ImportError:
        return choose_devices(study, device or "cpu", None)


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


# How much disk space runs take.

BLOCK = 4096
"""Files take whole blocks of a disk."""


def bytes_per_run(study: Study, planned: Sequence[Planned], measure: bool = True) -> float:
    """Bytes that a run takes on average: as stored ones, or from what is kept; NaN if unknown."""
    stored = [r for r in planned if r.state == "done" and not r.job.is_search]
    if stored:
        return float(np.mean([_stored(r) for r in stored]))
    classes = len(study.dataset.classes)
    try:
        sets = study.evaluation_sets
    except CurvewiseError:
        return math.nan
    total = 2.0 * BLOCK
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


def _stored(run: Planned) -> float:
    total = 2.0 * BLOCK
    for about in run.record["arrays"].values():
        size = np.dtype(about["dtype"]).itemsize * math.prod(about["shape"])
        total += _blocks(size)
    return total + sum(_blocks(about.get("bytes", 0)) for about in run.record["files"].values())


def _weights(study: Study, measure: bool) -> float:
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
        except Exception:  # whatever a factory of one's own raises; measuring its time says it
            return math.nan
        kept = {"none": 0, "end": 1}.get(study.keep.checkpoints, 1 + max(2, len(training.drops)))
        rows = sum(len(s.y) for s in study.evaluation_sets.values()) if study.keep.features else 0
        found.append(learner.members * (size * kept + 4.0 * width * rows))
    return float(np.mean(found))


def _blocks(size: float) -> float:
    return math.ceil((size + 128) / BLOCK) * BLOCK


def said_bytes(size: float) -> str:
    """Write a size for people.

    >>> said_bytes(512), said_bytes(3.2e9), said_bytes(float("nan"))
    ('1 kB', '3.2 GB', 'unknown')
    """
    if math.isnan(size):
        return "unknown"
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= length:
            return f"{size / length:.2g} {unit}" if size < 99.5 * length else f"{size / length:.0f} {unit}"
    return f"{max(1, round(size / 1e3))} kB"
