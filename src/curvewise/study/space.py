"""How much disk space runs take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from curvewise.errors import CurvewiseError
from curvewise.study.standings import Planned

if TYPE_CHECKING:
    from curvewise.study.study import Study

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
            from curvewise.nn.architectures import head_of, make_network

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
            return (
                f"{size / length:.2g} {unit}"
                if size < 99.5 * length
                else f"{size / length:.0f} {unit}"
            )
    return f"{max(1, round(size / 1e3))} kB"
