"""How long runs will take: from stored ones, or from a short measurement."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curvewise.nn.settings import Training
from curvewise.study.jobs import Job
from curvewise.study.standings import Planned

if TYPE_CHECKING:
    from curvewise.study.study import Study

MOST_SECONDS = 60.0
"""Of measuring: a large grid is planned without waiting for each of its networks."""

# What decides how long a training lasts, and not how long a step takes.
_PLAIN: dict[str, Any] = {
    "schedule": "constant",
    "warmup": 0.0,
    "drops": (),
    "validation": 0.0,
    "patience": None,
}

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

    def __init__(
        self, study: Study, planned: Sequence[Planned], device: str, *, measure: bool = True
    ) -> None:
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
            self.problems[f"Measuring took {duration(self._spent)}, so not all was measured."] = (
                None
            )
            return math.nan
        start = time.monotonic()
        try:
            from curvewise.nn.engine import measure_seconds

            return measure_seconds(
                step, self.study.examples, n, device=self.device, folder=self.study.folder
            )
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
    return {
        key: sum(seconds for seconds, _ in pairs) / sum(cost for _, cost in pairs)
        for key, pairs in spent.items()
    }


def usual_devices(study: Study, device: str | None = None) -> list[str]:
    """The device of each worker on this machine; the cores of the CPU where torch is missing."""
    from curvewise.study.execute.options import choose_devices

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
