"""What a study will do before it does it: runs, time, space, and what to beware of."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.nn.targets import IMAGES
from curvewise.study.estimate import UNKNOWN, Clock, duration, kind_of, usual_devices
from curvewise.study.learner import FIELDS
from curvewise.study.space import bytes_per_run, said_bytes
from curvewise.study.standings import Planned, planned_runs
from curvewise.types import Result

if TYPE_CHECKING:
    from curvewise.study.jobs import Job
    from curvewise.study.study import Study

SEARCH = " (search for the rate)"

NETWORKS = (
    *("linear", "mlp", "cnn", "vgg11", "vgg13", "vgg16", "vgg19", "nin"),
    *("resnet9", "resnet18", "resnet34", "resnet50"),
)
"""Names of ``curvewise.nn.architectures.ARCHITECTURES``, known here where torch is missing."""


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
        hours = {
            k: None if isinstance(v, float) and math.isnan(v) else v for k, v in values.items()
        }
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
        source=tuple(
            " and ".join(dict.fromkeys(e.source for e in found)) for found in estimates.values()
        ),
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
        found.append(
            f"{_runs(hopeless)} failed too often to be tried again unless asked for with "
            "retry_failed=True."
        )
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
    known = (*NETWORKS, *IMAGES)
    if ":" not in name and name not in known:
        close = get_close_matches(name, known, 1)
        raise InputError(
            f"architecture={name!r} is not known."
            + (f" Did you mean {close[0]!r}?" if close else "")
            + f" There are {', '.join(known)}, 'module:function', 'timm:NAME' and 'hf:FOLDER'."
        )


def _check_estimator(study: Study, job: Job) -> None:
    from curvewise.study.estimating import make_estimator

    make_estimator(job.learner, study.folder)


def _check_command(_: Study, job: Job) -> None:
    from curvewise.study.commands import fill_command

    given = job.learner.options
    if taken := sorted(set(given) & set(FIELDS)):
        raise InputError(
            f"grid has {', '.join(taken)}, which a command is given already: use another name."
        )
    words = dict.fromkeys(("id", "rows", "data", "out"), "")
    fill_command(str(job.learner.command), {**dict.fromkeys(FIELDS, 0), **words, **given})


def mixture(planned: Sequence[Planned], device: str | None = None) -> list[str]:
    """Say where runs of one training were made in different ways, which may differ a little."""
    words = {
        "device": "on different devices",
        "cpu": "on different kinds of CPU",
        "path": "in different ways",
    }
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
