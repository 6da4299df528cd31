"""Repeated curves put together."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.response.curve import ResponseCurve, ResponseSensitivity

GRID = np.array([0.0, 0.25, 0.5])


def repeated(examples: int, rng: np.random.Generator, repeats: int = 200) -> list[ResponseCurve]:
    found = []
    for _ in range(repeats):
        hits = rng.random((3, examples)) < np.array([0.95, 0.9, 0.7])[:, None]
        total = np.full(3, examples)
        found.append(ResponseCurve(GRID, hits.sum(axis=1), total, hits=hits, settings={"seconds": examples}))
    return found


def test_spread_falls_with_the_root_of_the_batches_and_is_what_curves_expect() -> None:
    rng = np.random.default_rng(0)
    curves = {count: repeated(count * 64, rng) for count in (1, 4, 16)}
    found = ResponseSensitivity.from_curves(64, curves)
    table = found.columns()
    assert table["examples"].tolist() == [64, 256, 1024]
    for score in ("gi", "pal", "mean_accuracy"):
        values = np.array([[getattr(c, score) for c in curves[count]] for count in (1, 4, 16)])
        assert table[score] == pytest.approx(values.mean(axis=1))
        assert table[f"{score}_sd"] == pytest.approx(values.std(axis=1, ddof=1))
    assert found.spread() / found.spread()[0] == pytest.approx([1, 1 / 2, 1 / 4], rel=0.25)
    assert table["gi_expected_sd"] == pytest.approx(table["gi_sd"], rel=0.2)
    assert table["seconds"].tolist() == [64, 256, 1024]
    assert "over 200 repeats" in found.summary()


def test_bad_repeats() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="same number of repeats"):
        ResponseSensitivity.from_curves(8, {1: repeated(8, rng, 2), 2: repeated(16, rng, 3)})
    found = ResponseSensitivity.from_curves(8, {1: repeated(8, rng, 2)})
    with pytest.raises(InputError, match="score='gini'"):
        found.spread("gini")
