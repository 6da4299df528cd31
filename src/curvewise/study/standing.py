"""How far a study is: every planned run, with what the store holds of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import MissingDependencyError, StoreError
from curvewise.nn.task import Keep
from curvewise.store.claims import Claims
from curvewise.store.read import MissingRun, missing_file, read_record, without_collecting
from curvewise.study.spec.study import Job

if TYPE_CHECKING:
    from curvewise.study.spec.study import Study


@dataclass(frozen=True)
class Standing:
    """What the store holds of a run.

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
        """Whether the run must be made: failed ones up to three times, always, or never."""
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
        """How long the stored run took."""
        value = self.standing.metrics.get("seconds")
        return None if value is None else float(value)

    @property
    def device(self) -> str | None:
        """Where the stored run was made."""
        device = self.record.get("environment", {}).get("device")
        return None if device is None else str(device)

    def has_evaluation(self, name: str, digest: str | None) -> bool:
        """Whether the stored run was tried on an evaluation set as it is now."""
        known = self.record.get("environment", {}).get("evaluations", {}).get(name)
        return known is None or digest is None or known == digest


def planned_runs(study: Study) -> list[Planned]:
    """Look up every planned run, searches for learning rates first; damage is a state, no error."""
    seen = _SEEN.get()
    if seen is not None and seen[0] is study:
        return list(seen[1])
    with without_collecting():
        return _looked_up(study)


_SEEN: ContextVar[tuple[Study, list[Planned]] | None] = ContextVar("seen", default=None)


@contextmanager
def looked_up_once(study: Study) -> Iterator[list[Planned]]:
    """Look the runs up now, for all that is read of the study in this block and thread."""
    found = planned_runs(study)
    token = _SEEN.set((study, found))
    try:
        yield list(found)
    finally:
        _SEEN.reset(token)


def _looked_up(study: Study) -> list[Planned]:
    store, digests = study.runs_folder, evaluation_digests(study)
    jobs = {job.id: job for job in study.jobs}.values()
    return [Planned(job, *look_up(store, job, digests, study.keep)) for job in jobs]


def evaluation_digests(study: Study) -> dict[str, str]:
    """Hash of each evaluation set; of the test set only where perturbing needs what is missing."""
    try:
        return study.label_digests()
    except MissingDependencyError:
        from curvewise.study.spec.study import TEST, examples_digest

        return {TEST: examples_digest(study.test_examples())}


def running(study: Study) -> dict[str, str]:
    """The runs that living processes are making, and who."""
    with Claims(study.runs_folder) as claims:
        return {i: claims.owner(i) for i in claims.claimed() if claims.is_held(i)}


# What the store holds of a planned run, and whether it must be made (again).

MOST_ATTEMPTS = 3
"""How often a run that fails is made, over all calls; then only when asked for."""

TEST = "test"
LOSSES = "losses"
"""The array that a run has where targets are numbers, in place of predicted classes."""
CHECKPOINTS = ("none", "end", "drops")
"""What may be kept of the weights; each holds the ones before it."""


def stand(store: Path, job: Job, digests: Mapping[str, str], keep: Keep) -> Standing:
    """Look a run up in the store.

    Parameters
    ----------
    store : Path
        Folder of the runs.
    job : Job
        Which run.
    digests : dict of str to str
        For each evaluation set, the hash of what is in it.
    keep : Keep
        What should be kept beside the predictions.
    """
    return look_up(store, job, digests, keep)[0]


def look_up(store: Path, job: Job, digests: Mapping[str, str], keep: Keep) -> tuple[Standing, Mapping[str, Any]]:
    """As :func:`stand`, with the record of the run; an empty one if it cannot be read."""
    folder = store / job.id
    try:
        record = read_record(folder)
    except MissingRun:
        return Standing("missing"), {}
    except StoreError as error:
        return Standing("damaged", 0, str(error)), {}
    attempts = record["environment"].get("attempts", 1)
    if record["status"] == "failed":
        return Standing("failed", attempts, record.get("error") or "", record["metrics"]), record
    lacks = _lacks_rate(record) if job.is_search else _lacks(record, folder, digests, keep)
    if lacks and _was_replaced(folder, record):
        return look_up(store, job, digests, keep)
    state, sets = "outdated" if lacks else "done", record["environment"].get("evaluations", {})
    found = Standing(state, attempts, lacks, record["metrics"], _kept(record), tuple(sets))
    return found, record


def _was_replaced(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether another process replaced a run since its record was read."""
    try:
        return read_record(folder) != record
    except StoreError:
        return True


def is_done(folder: Path) -> bool:
    """Whether a folder holds a run that was done, outdated or not."""
    try:
        return bool(read_record(folder)["status"] == "done")
    except StoreError:
        return False


def join_keeps(one: Keep, other: Keep) -> Keep:
    """What must be kept so that both have what they ask for.

    >>> join_keeps(Keep(features=True), Keep(checkpoints="end"))
    Keep(probabilities=False, checkpoints='end', features=True, predictions=False)
    """
    return Keep(
        probabilities=one.probabilities or other.probabilities,
        checkpoints=max(one.checkpoints, other.checkpoints, key=CHECKPOINTS.index),
        features=one.features or other.features,
        predictions=one.predictions or other.predictions,
    )


def _kept(record: Mapping[str, Any]) -> Keep:
    """What a run holds by its files; and by its word, as a training may have had no drops."""
    kinds = {name.partition(".")[0] for name in record["arrays"]}
    weights = "end" if record["files"] else "none"
    weights = "drops" if any("drop-" in name for name in record["files"]) else weights
    said = record["environment"].get("kept")
    said = said if said in CHECKPOINTS else "none"
    numbers = LOSSES in kinds and "predictions" in kinds
    found = Keep("probabilities" in kinds, weights, "features" in kinds, numbers)
    return join_keeps(found, Keep(checkpoints=said))


def _lacks_rate(record: Mapping[str, Any]) -> str:
    rate = record["metrics"].get("rate")
    return "" if rate is not None and math.isfinite(rate) else "It names no rate."


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
