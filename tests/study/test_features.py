"""Networks on plain tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from curvewise.nn import Training
from curvewise.study import Dataset, Design, Learner, Study


def test_features_of_any_scale_come_to_networks_on_one(tmp_path: Path) -> None:
    x, y = load_breast_cancer(return_X_y=True)  # from thousandths to thousands
    wide = np.concatenate([x, np.full((len(x), 1), 7.0)], axis=1)  # and one that never varies
    learner = Learner(Training("mlp", options={"width": 16}, epochs=20, rate=0.05))
    study = Study(
        Dataset(wide.astype(np.float32), y.astype(np.int64)),
        {"net": learner},
        Design(sizes=[200], folds=2, seeds=1),
        folder=tmp_path,
    )
    rows = study.train_rows
    assert study.examples.mean == pytest.approx(wide[rows].mean(axis=0), rel=1e-5)
    assert study.examples.std is not None
    assert study.examples.std[-1] == 1.0
    assert study.run(workers=0, progress=False).done == 2
    # The larger class has 63%; a network on the raw table does not get beyond it.
    assert study.measurements().error.max() < 0.12
