"""How far a study is: what is done, what failed and why, who is at work, what is left."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from curvewise.study.plan import Clock, duration, mixture
from curvewise.study.standing import Planned, planned_runs, running
from curvewise.types.results import Result

if TYPE_CHECKING:
    from curvewise.study.run.options import Outcome
    from curvewise.study.spec.study import Study


STATES = ("done", "failed", "outdated", "damaged", "running", "missing")


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
    """How far a study is.

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
        """Whether every run is done or has failed for good."""
        return self.to_do == 0

    def summary(self) -> str:
        """A few sentences: counts, failures, time."""
        text = f"{self.name}: {self.done:,} of {self.planned:,} runs done"
        others = [s for s in STATES[1:-1] if getattr(self, s)]
        text += "".join(f", {getattr(self, s):,} {s}{self._again(s)}" for s in others)
        text += f", {self.missing:,} to do." if self.missing else "."
        if self.seconds_spent:
            text += f" The stored runs took {duration(self.seconds_spent)}"
            known = self.to_do and math.isfinite(self.seconds_left)
            text += f", what is left needs about {duration(self.seconds_left)}." if known else "."
        for failure in self.failures[:5]:
            text += (
                f" {failure.count:,} failed ({', '.join(failure.learners)}): {failure.message} See "
                f"run {failure.example}."
            )
        for who, count in self.workers.items():
            text += f" {count:,} being made by {who}."
        return text + "".join(f" Beware: {w}" for w in self.warnings)

    def _again(self, state: str) -> str:
        """How many of the runs in a state, all of which are counted there, will be made again."""
        if state == "running":
            return ""
        if state != "failed":
            return " (to be made again)"
        again = self.to_do - self.outdated - self.damaged - self.running - self.missing
        if again == self.failed:
            return " (to be tried again)"
        return f" ({again or 'none'} to be tried again)"

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per state."""
        return {"state": STATES, "runs": tuple(getattr(self, s) for s in STATES)}


def study_status(study: Study) -> Status:
    """Say how far a study is; reads the store and changes nothing."""
    planned, busy = planned_runs(study), running(study)
    making = [r for r in planned if r.job.id in busy and r.state != "done"]
    ids = {r.job.id for r in making}
    states = Counter("running" if r.job.id in ids else r.state for r in planned)
    due = [r for r in planned if r.standing.is_due() or r.job.id in ids]
    # Where most runs were made: asking torch for its devices would take longer than all the rest.
    devices = Counter(r.device for r in planned if r.device and r.job.learner.kind == "network")
    clock = Clock(study, planned, max(devices, key=devices.__getitem__, default="cpu"), measure=False)
    problems = tuple(r.standing.text for r in planned if r.state == "damaged")
    return Status(
        name=study.name,
        store=str(study.runs_folder),
        planned=len(planned),
        **{state: states[state] for state in STATES},
        to_do=len(due),
        workers=dict(Counter(busy[i] for i in ids)),
        failures=group_failures([r for r in planned if r.state == "failed"]),
        seconds_spent=float(sum(r.seconds or 0.0 for r in planned)),
        seconds_left=float(sum(clock.estimate(r.job).seconds for r in due)),
        problems=problems,
        warnings=(*study.assumptions, *_damage(problems), *mixture(planned)),
    )


def after_run(status: Status, outcome: Outcome) -> Status:
    """Add to a status what the execution before it had to say."""
    said = list(outcome.notes)
    if outcome.interrupted:
        said.append(f"{len(outcome.interrupted)} run(s) had been interrupted and were begun anew.")
    if outcome.redone:
        said.append(f"{len(outcome.redone)} run(s) were made again: they had failed, or were damaged or outdated.")
    return replace(status, warnings=(*status.warnings, *said))


def _damage(problems: Sequence[str]) -> list[str]:
    if not problems:
        return []
    return [f"{len(problems)} stored run(s) are damaged and will be made again: {problems[0]}"]


def group_failures(failed: Sequence[Planned]) -> tuple[Failure, ...]:
    """Gather runs that failed for one reason, the most frequent first."""
    groups: dict[str, list[Planned]] = {}
    for run in failed:
        groups.setdefault(_pattern(reason_of(run.standing.text)), []).append(run)
    found = [
        Failure(
            message=reason_of(runs[0].standing.text),
            count=len(runs),
            learners=tuple(dict.fromkeys(r.job.name for r in runs)),
            example=runs[0].job.id,
        )
        for runs in groups.values()
    ]
    return tuple(sorted(found, key=lambda f: -f.count))


def reason_of(text: str) -> str:
    r"""The line of an error that says what happened: the last one of a traceback.

    >>> reason_of("Traceback (most recent call last):\n  File …\nValueError: no")
    'ValueError: no'
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    line = lines[-1] if lines else "no reason given"
    return line if len(line) <= 300 else f"{line[:300]}…"


def _pattern(message: str) -> str:
    """The message without what differs from run to run: numbers, addresses, files."""
    return re.sub(r"0x[0-9a-fA-F]+|[0-9a-f]{20,}|/\S+|\d+(\.\d+)?(e[-+]?\d+)?", "#", message)
