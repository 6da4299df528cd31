"""What the store holds of a planned run, and whether it must be made (again)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import StoreError
from curvewise.io._stored import read_record
from curvewise.nn.task import Keep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from curvewise.study.jobs import Job

MOST_ATTEMPTS = 3
"""How often a run that fails is made, over all calls; then only when asked for."""

TEST = "test"


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
    """

    state: str
    attempts: int = 0
    text: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)

    def is_due(self, retry_failed: bool | None = None) -> bool:
        """Whether the run must be made: failed ones up to three times, always, or never."""
        if self.state != "failed":
            return self.state != "done"
        return self.attempts < MOST_ATTEMPTS if retry_failed is None else retry_failed


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
    folder = store / job.id
    if not folder.exists():
        return Standing("missing")
    try:
        record = read_record(folder)
    except StoreError as error:
        return Standing("missing") if not folder.exists() else Standing("damaged", 0, str(error))
    attempts = record["environment"].get("attempts", 1)
    if record["status"] == "failed":
        return Standing("failed", attempts, record.get("error") or "", record["metrics"])
    lacks = _lacks_rate(record) if job.is_search else _lacks(record, folder, digests, keep)
    return Standing("outdated" if lacks else "done", attempts, lacks, record["metrics"])


def _lacks_rate(record: Mapping[str, Any]) -> str:
    rate = record["metrics"].get("rate")
    return "" if rate is not None and math.isfinite(rate) else "It names no rate."


def _lacks(record: Mapping[str, Any], folder: Path, digests: Mapping[str, str], keep: Keep) -> str:
    known = record["environment"].get("evaluations", {})
    kinds = ["predictions"]
    kinds += ["probabilities"] if keep.probabilities else []
    # Only networks have features and weights, so that others have none to lack.
    network = "architecture" in record["coordinates"].get("training", {})
    kinds += ["features"] if keep.features and network else []
    for name, digest in digests.items():
        for kind in kinds:
            array = kind if name == TEST else f"{kind}.{name}"
            if known.get(name) != digest or array not in record["arrays"]:
                return f"It lacks {kind} for the evaluation set {name!r} as it is now."
    if keep.checkpoints != "none" and network and not record["files"]:
        return "It lacks checkpoints."
    for name in record["arrays"]:
        if not os.path.isfile(folder / f"{name}.npy"):
            return f"Its file {name}.npy is gone."
    return ""
