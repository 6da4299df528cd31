"""Plan of a study: the runs that it will make, their time and disk space, and what to beware of."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError, Message, MissingDependencyError, arg, either, suggest
from curvewise.nn.training import IMAGE_ARCHITECTURES, ROW_ARCHITECTURES
from curvewise.study.run.estimators import SEEDS, has_parameters, make_estimator
from curvewise.study.run.programs import check_options, fill_command
from curvewise.study.spec.design import FIELDS, Learner
from curvewise.study.spec.study import Job, StudySpec, check_inputs, half_coloured
from curvewise.study.status import (
    MOST_ATTEMPTS,
    MOST_SECONDS,
    SEARCH,
    UNKNOWN,
    UNTRUSTED,
    Clock,
    Planned,
    choose_devices,
    count_text,
    device_kind,
    duration,
    mixture,
    planned_runs,
)
from curvewise.text import format_count
from curvewise.types.results import Result


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
    impossible : tuple of str
        Learners that cannot be trained as they are described; the warnings say why.
    bytes_needed, bytes_free : float
        Disk space that the runs to do will take, and what there is; NaN where it is not known.
    notes : tuple of str
        Why there are so many runs, where the design leaves that to a default.
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
    impossible: tuple[str, ...]
    bytes_needed: float
    bytes_free: float
    notes: tuple[str, ...]
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
        return "core" if device_kind(self.device) == "cpu" else "GPU"

    @property
    def saved_seconds(self) -> float:
        """Seconds that one more GPU would save; 0 on a CPU, or where there is not a run for each."""
        more = self.workers + 1
        if self.hours_of != "GPU" or self.total_to_do < more:
            return 0.0
        return self.known_seconds / self.workers - self.known_seconds / more

    def sentences(self) -> str:
        """A few sentences: runs, time, space."""
        done, failed = sum(self.done), sum(self.failed)
        text = f"{count_text(self.total_runs, {'done': done, 'failed': failed})}."
        unknown = sum(self.unknown)
        # Of a few seconds beside runs of unknown time there is nothing to say.
        if self.total_to_do and unknown < self.total_to_do and not (unknown and self._is_short):
            text += f" They take {self._time('at least' if unknown else 'about')}"
            disk = math.isfinite(self.bytes_needed)
            text += f" and {format_bytes(self.bytes_needed)} of disk space." if disk else "."
            if self.saved_seconds >= 60:  # less than that is gone before another has compiled its steps
                one = "A second GPU" if self.workers == 1 else "One more GPU"
                text += f" {one} would save about {duration(self.saved_seconds)}."
        text += f" {', '.join(self.impossible)} cannot be trained as described." if self.impossible else ""
        rows = [row for row in zip(self.learner, self.unknown, self.source, strict=True) if row[1]]
        rows = [row for row in rows if row[0].removesuffix(SEARCH) not in self.impossible]
        trust = either("trust=True", "--trust")
        for source, ending in (
            (UNKNOWN, "until the first is finished"),
            (UNTRUSTED, f"without {trust}, which imports their code"),
        ):
            alike = [row for row in rows if (source == UNTRUSTED) == (UNTRUSTED in row[2])]
            who = ", ".join(dict.fromkeys(name for name, _, _ in alike))
            many = format_count(sum(count for _, count, _ in alike), "run")
            text += f" The time of {many} ({who}) is unknown {ending}." if alike else ""
        return Message(" ".join([text, *self.notes]))

    @property
    def _is_short(self) -> bool:
        """True if starting the workers takes longer than the runs whose time is known."""
        return self.known_seconds / self.workers < 10

    def _time(self, about: str) -> str:
        """Write the time of the runs whose time is known, where it is spent and how it was estimated."""
        each = (s for joined, k in zip(self.source, self.to_do, strict=True) if k for s in joined.split(" and "))
        how = " and ".join(dict.fromkeys(s for s in each if s not in (UNKNOWN, UNTRUSTED)))
        gpu, seconds = self.hours_of == "GPU", self.known_seconds
        place = self.device if gpu else "one core"
        if self.workers != 1:
            place = f"{self.workers} {'GPUs' if gpu else 'cores'}"
        wall = "a few seconds" if self._is_short else f"{about} {duration(seconds / self.workers)}"
        spent = f", {seconds / 3600:.2g} {self.hours_of}-hours" if seconds >= 3600 else ""
        return f"{wall} on {place}{spent} (estimated from {how})"

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per learner and size."""
        names = ("learner", "n", "runs", "done", "failed", "to_do", "seconds", "source")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """All of the plan as plain Python values, with the totals."""
        totals = ("total_runs", "total_to_do", "total_seconds", "hours", "hours_of", "saved_seconds")
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
    full = f"The runs need about {format_bytes(needed)} of disk space, but only {format_bytes(free)} are free."
    # That such a learner could not be measured is no news then.
    problems = [p for p in clock.problems if not p.startswith(tuple(f"{k} could" for k in bad))]
    if late := [name for name in clock.unmeasured if name not in bad]:
        problems.append(
            f"Measuring stopped after {duration(MOST_SECONDS)}: the time of some or all runs of {', '.join(late)} is "
            "unknown."
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
        impossible=tuple(bad),
        bytes_needed=needed,
        bytes_free=free,
        notes=(why,) if (why := default_folds(study)) else (),
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


def default_folds(study: StudySpec) -> str:
    """Explain the number of runs of a study that does not set its folds; empty where there is nothing to explain."""
    folds = study.partition.folds
    if study.design.folds is not None or max(folds) == 1:
        return ""
    fewer = format_count(sum(job.fold == 0 for job in study.jobs if not job.is_search), "run")
    return (
        "folds is not set, so each size has as many disjoint training subsets as fit, at most 16 "
        f"({', '.join(map(str, folds))}); folds = 1 would plan {fewer}, without confidence intervals for the curves."
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
                f"{job.name}: {', '.join(lost)} of {training.weights} are not used, because {training.architecture} "
                "has only one layer for its classifier. Set classifier = 'full' to start from them too."
            ] = None
    return list(found)


def _warnings(study: StudySpec, planned: Sequence[Planned], device: str) -> list[str]:
    states = Counter(run.state for run in planned)
    found = list(study.partition.warnings)
    if not study.dataset.is_numbers:
        y, subsets = study.dataset.y, study.partition
        single = {s.n for s in subsets if len(np.unique(y[study.rows_of(s.n, s.fold)])) == 1}
        found += [f"n={n}: some subsets hold a single class." for n in sorted(single)]
    with suppress(MissingDependencyError):  # perturbing needs torch
        found += study.leaks(*study.evaluate)
    found += _idle(study)
    if study.design.test is not None and study.has_own_test:
        size = len(study.test_examples().y)
        found.append(
            f"design.test = {study.design.test:g} is ignored, because the data have a test set of their own ({size:,} "
            "examples). Set hold_out = true to hold out a part of the training examples instead."
        )
    if states["outdated"]:
        found.append(
            f"{format_count(states['outdated'], 'stored run')} will be made again, because an evaluation set was added "
            "or changed, or more is to be kept."
        )
    found += [f"{format_count(states['damaged'], 'damaged run')} will be made again."] if states["damaged"] else []
    hopeless = sum(r.state == "failed" and not r.standing.is_due() for r in planned)
    if hopeless:
        way = arg("retry_failed", True)
        many = format_count(hopeless, "run")
        found.append(Message(f"{many} failed {MOST_ATTEMPTS} times or more and will not be tried again without {way}."))
    found += mixture(planned, device if any(r.standing.is_due() for r in planned) else None)
    return found


def _unimported(study: StudySpec) -> list[str]:
    """Warn of learners whose code may not be imported."""
    trust = either("trust=True", "--trust")
    made = {(job.name, study.unimported(job.learner)): None for job in study.jobs}  # a grid may name code, too
    return [
        Message(f"{name} is made by {place}, which is not imported without {trust}: its options were not checked.")
        for name, place in made
        if place is not None
    ]


def _idle(study: StudySpec) -> list[str]:
    """Warn of learners whose runs will all be the same, because they do not use what varies."""
    found = []
    for name, learner in study.learners.items():
        if study.design.most_seeds > 1 and _has_no_seed(study, learner):
            found.append(
                f"{name}: the estimator has no parameter random_state or seed, so its runs with different seeds will "
                "probably be identical; seeds = 1 would do for it."
            )
            continue
        augmented = "augmentation" in study.design.settings or (
            learner.training is not None and bool(learner.training.augmentation)
        )
        for varied in study.design.variations if study.design.most_seeds > 1 else ():
            if learner.kind == "estimator" and "init" not in varied:
                why = "an estimator uses the seed of init only"
            elif learner.kind == "command" and set(varied) == {"poke"}:
                why = "poke does not apply to commands"
            elif learner.kind == "network" and set(varied) == {"augmentation"} and not augmented:
                why = "it has no augmentation (only dropout could make them differ)"
            else:
                continue
            found.append(f"{name}: runs that vary in {'+'.join(varied)} will be identical, because {why}.")
    return found


def _has_no_seed(study: StudySpec, learner: Learner) -> bool:
    """Return whether an estimator takes no seed; one that cannot be made is reported elsewhere."""
    if learner.kind != "estimator" or study.unimported(learner) is not None:
        return False
    try:
        model = make_estimator(learner, study.folder)
    except Exception:
        return False
    names = model.get_params() if has_parameters(model) else vars(type(model)) | getattr(model, "__dict__", {})
    return not any(name.rpartition("__")[2] in SEEDS for name in names)


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


def refuse_bad_learners(study: StudySpec, jobs: Sequence[Job]) -> None:
    """Raise before anything is trained if no run of some learner could be made."""
    bad = _bad_learners(study, jobs)
    if bad:
        reasons = " ".join(f"{name}: {why}" for name, found in bad.items() for why in found)
        raise InputError(f"{', '.join(bad)} cannot be trained as described, so that nothing was started. {reasons}")


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
        if study.dataset.is_numbers:
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
