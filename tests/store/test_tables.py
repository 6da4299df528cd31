"""A store as the lenses read it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import InputError


def test_failed_runs_are_nan_whatever_they_measured(tmp_path: Path) -> None:
    for seed in range(3):
        failed = {"error": "ValueError: no"} if seed == 2 else {}
        at = {"learner": "a", "n": 10, "seed": seed}
        cw.write_run(tmp_path, at, metrics={"error": 0.25}, **failed)
    m = cw.load_measurements(tmp_path)
    failed_rows = m.labels["status"] == "failed"
    assert failed_rows.sum() == 1
    assert np.isnan(m.error[failed_rows]).all()
    assert m.error[~failed_rows].tolist() == [0.25, 0.25]
    assert "1 of 3 runs failed (a): ValueError: no" in m.notes


def test_runs_on_other_examples_are_not_put_together(tmp_path: Path) -> None:
    cw.write_run(tmp_path, {"learner": "a", "seed": 0}, [0, 1, 1])
    cw.write_run(tmp_path, {"learner": "a", "seed": 1}, [0, 1])
    with pytest.raises(InputError, match=r"of shape \(\d,\).*all runs must be on the same examples"):
        cw.load_predictions(tmp_path, labels=[0, 1, 1])


def test_risks_of_runs_that_a_list_tells_apart_are_chosen_by_it(tmp_path: Path) -> None:
    for augmentation, error in (([], 0.5), (["flip", "crop"], 0.25)):
        for learner in ("scratch", "blind"):
            at = {"learner": learner, "n": 10, "seed": 0, "augmentation": augmentation}
            cw.write_run(tmp_path, at, metrics={"error": error})
    with pytest.raises(InputError, match=r"choose with where=\{'augmentation': '(none|flip, crop)'\}"):
        cw.transfer.load_risks(tmp_path)
    for text, error in (("none", 0.5), ("flip, crop", 0.25)):
        assert cw.transfer.load_risks(tmp_path, where={"augmentation": text}).risk.tolist() == [error]
