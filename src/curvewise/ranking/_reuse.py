"""Measures as they are computed on parts of the examples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.ranking._resampling import Rows
from curvewise.ranking._scoring import Candidate
from curvewise.ranking.h_score import h_score, signed_h_score
from curvewise.ranking.measure import RankingMeasure
from curvewise.ranking.nleep import nleep, nleep_reduced, reduce_features

ENERGY = 0.8  # what nleep keeps by default


def reused(
    measure: RankingMeasure, candidate: Candidate, train: Rows, test: Rows | None
) -> tuple[RankingMeasure, Candidate]:
    """The measure to compute on parts of the examples, and what of.

    Of NLEEP the principal components of the whole sample are kept. They are by far the largest part
    of its cost, and hardly vary from half to half beside the mixture; the coverage of intervals is
    that with components of each half (``benchmarks/ranking_coverage.py``). The H-score goes on
    below 0, without which parts of examples that all score 0 would seem not to vary.
    """
    if measure.function is h_score:
        return replace(measure, function=signed_h_score), candidate
    if measure.function is not nleep:
        return measure, candidate
    features = candidate.inputs["features"]
    tested = None if test is None else features[test]
    reduced, shown = reduce_features(features[train], tested, ENERGY)
    rows = train if test is None else np.concatenate([train, test])
    found: NDArray[Any] = np.empty((len(features), reduced.shape[1]), dtype=reduced.dtype)
    found[rows] = reduced if shown is None else np.concatenate([reduced, shown])
    inputs = {**candidate.inputs, "features": found}
    return replace(measure, function=_nleep_again), replace(candidate, inputs=inputs)


def _nleep_again(
    features: NDArray[Any],
    labels: ArrayLike,
    *,
    test_features: NDArray[Any] | None = None,
    test_labels: ArrayLike | None = None,
    rng: int = 0,
) -> float:
    return nleep_reduced(features, labels, test_features, test_labels, rng=rng)
