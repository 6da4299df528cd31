"""Plan a study before it is run: runs, time, disk space, and warnings."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError
from curvewise.nn.training import IMAGE_ARCHITECTURES, ROW_ARCHITECTURES
from curvewise.study.run.estimators import make_estimator
from curvewise.study.run.options import choose_devices
from curvewise.study.run.programs import fill_command
from curvewise.study.spec.learner import FIELDS, Learner
from curvewise.study.spec.study import Job
from curvewise.study.status import UNKNOWN, Clock, Planned, duration, kind_of, mixture, planned_runs
from curvewise.text import Message, arg, either, suggest
from curvewise.types.results import Result

if TYPE_CHECKING:
    from curvewise.study.spec.study import Job, StudySpec


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
        """Estimated time of all runs to be made, one after the other; NaN if any is unknown."""
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
        """The unit of the hours: ``"GPU"`` or ``"core"``."""
        return "core" if kind_of(self.device) == "cpu" else "GPU"

    def sentences(self) -> str:
        """A few sentences: runs, time, space."""
        done = sum(self.done)
        text = f"{self.name}: {self.total_runs:,} runs in {self.store}, {done:,} done"
        text += f", {sum(self.failed):,} failed" if any(self.failed) else ""
        text += f", {self.total_to_do:,} to do."
        if self.total_to_do:
            text += f" {self._time()}"
            if math.isfinite(self.bytes_needed):
                free = f" of {format_bytes(self.bytes_free)} free" if self.bytes_free >= 0 else ""
                text += f" They take about {format_bytes(self.bytes_needed)}{free}."
        return text

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
    estimates = {key: [clock.estimate(r.job) for r in runs] for key, runs in due.items()}
    needed = bytes_per_run(study, planned, measure) * sum(map(len, due.values()))
    there = next((p for p in (study.runs_folder, *study.runs_folder.resolve().parents) if p.exists()), None)
    free = math.nan if there is None else float(shutil.disk_usage(there).free)
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
            *(
                [f"The runs take about {format_bytes(needed)}, and {format_bytes(free)} are free."]
                if needed > free
                else []
            ),
        ),
    )


def _warnings(study: StudySpec, planned: Sequence[Planned], device: str) -> list[str]:
    states = Counter(run.state for run in planned)
    found = list(study.partition.warnings)
    if not study.dataset.is_numbers:
        y, subsets = study.dataset.y, study.partition
        single = {s.n for s in subsets if len(np.unique(y[study.rows_of(s.n, s.fold)])) == 1}
        found += [f"n={n}: some subsets hold a single class." for n in sorted(single)]
    found += _idle(study)
    if states["outdated"]:
        found.append(
            f"{_runs(states['outdated'])} of the store will be made again, because an evaluation "
            "set was added or changed, or more is to be kept."
        )
    if states["damaged"]:
        found.append(f"{_runs(states['damaged'])} of the store will be made again: damaged.")
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
        what = "options were not checked, and its time is"
        if job.learner.training is not None:
            what = "options were not checked, and the number of its weights and its time are"
        trust = either("trust=True", "--trust")
        found[job.name, place] = Message(
            f"{job.name} is made by {place}, which is not imported without {trust}: its {what} unknown unless runs "
            "are stored."
        )
    return list(found.values())


def _idle(study: StudySpec) -> list[str]:
    """Warn of learners whose runs will all be the same, because what varies means nothing to them."""
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


def _bad_learners(study: StudySpec, jobs: Sequence[Job]) -> dict[str, list[str]]:
    """Find learners none of whose runs can be made, and why: known before a run is tried."""
    found: dict[str, list[str]] = {}
    for job in {(j.name, repr(j.settings)): j for j in jobs}.values():
        if study.unimported(job.learner) is not None:
            continue
        try:
            if job.learner.training is not None:
                _check_architecture(job.learner.training.architecture)
            elif job.learner.estimator is not None:
                make_estimator(job.learner, study.folder)
            else:
                _check_command(job.learner)
        except Exception as error:  # a class of one's own may raise anything
            why = str(error) or type(error).__name__
            if why not in found.setdefault(job.name, []):
                found[job.name].append(why)
    return found


def _check_architecture(name: str) -> None:
    known = (*ROW_ARCHITECTURES, *IMAGE_ARCHITECTURES)
    if ":" not in name and name not in known:
        raise InputError(
            f"architecture={name!r} is not known.{suggest(name, known)} There are {', '.join(known)}, "
            "'module:function', 'timm:NAME' and 'hf:FOLDER'."
        )


def _check_command(learner: Learner) -> None:
    if taken := sorted(set(learner.options) & set(FIELDS)):
        raise InputError(f"grid has {', '.join(taken)}, which a command is given already: use another name.")
    words = dict.fromkeys(("id", "rows", "data", "out"), "")
    fill_command(str(learner.command), {**dict.fromkeys(FIELDS, 0), **words, **learner.options})


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
