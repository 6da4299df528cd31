"""The published learning curves, read from where they lie."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from curvewise.errors import InputError
from curvewise.learning.load import load_measurements

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("CURVEWISE_DATA", ROOT.parent / "shared" / "data")) / "learning_curves"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no published curves at {DATA}: set CURVEWISE_DATA to have them read"
)


def test_lcdb_with_a_column_map():
    path = DATA / "lcdb10_error_mean_var.csv.gz"
    m = load_measurements(
        path,
        columns={
            "n": "size_train",
            "value": "err_valid_mean",
            "variance": "err_valid_var",
            "runs": "n_rep",
            "learner": ["openmlid", "learner"],
        },
    )
    with gzip.open(path, "rt") as file:
        frame = pd.read_csv(file)
    assert len(m.learners) == 4367
    np.testing.assert_array_equal(m.n, frame["size_train"])
    np.testing.assert_array_equal(m.error, frame["err_valid_mean"])
    np.testing.assert_array_equal(m.variance, frame["err_valid_var"])
    np.testing.assert_array_equal(m.runs, frame["n_rep"])
    np.testing.assert_array_equal(m.labels["openmlid"], frame["openmlid"])
    assert m.learner[0] == "3 / SVC_linear"
    assert "13 rows without a variance" in m.notes


def test_lcdb_asks_which_error():
    with pytest.raises(InputError, match="'err_valid_mean', 'err_test_mean'"):
        load_measurements(DATA / "lcdb10_error_mean_var.csv.gz")


@pytest.mark.parametrize("name", ["pretr_ft", "pretr_linear", "no_pretr_ft", "no_pretr_linear"])
def test_errors_by_size_in_percent(name):
    path = DATA / f"{name}.json"
    m = load_measurements(path, unit="percent")
    raw = json.loads(path.read_text())
    assert m.learners == (name,)
    assert m.error.tolist() == [e for record in raw for e in record["test_errors"]]
    assert m.n.tolist() == [r["num_train_samples"] for r in raw for _ in r["test_errors"]]
    with pytest.raises(InputError, match="unit='percent'"):
        load_measurements(path)


def test_four_learners_in_one_dict():
    names = ("pretr_ft", "no_pretr_ft")
    data = {name: json.loads((DATA / f"{name}.json").read_text()) for name in names}
    m = load_measurements(data, unit="percent")
    assert m.learners == names
    alone = load_measurements(DATA / "pretr_ft.json", unit="percent")
    np.testing.assert_array_equal(m.of("pretr_ft").error, alone.error)


def test_scaling_curves():
    path = DATA / "benchmark.vision.csv"
    m = load_measurements(path, columns={"learner": ["Domain", "Task", "Model"]})
    frame = pd.read_csv(path, dtype={"Loss": str})  # pandas before 3.1 rounds numbers wrongly
    assert len(m.learners) == 72
    np.testing.assert_array_equal(m.n, frame["Seen Examples"])
    np.testing.assert_array_equal(m.error, frame["Loss"].astype(float))
    np.testing.assert_array_equal(m.labels["Training"], frame["Training"])
    assert "value from 'Loss'" in m.notes[0]
