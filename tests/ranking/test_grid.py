"""NLEEP's agreement with accuracies over PCA energies and numbers of components."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import kendalltau
from scipy.stats import t as student

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.agreement import measure_nleep_grid
from curvewise.ranking.measure import CheckpointFeatures, as_targets
from curvewise.ranking.prediction import nleep
from curvewise.ranking.scoring import split_rows

ENERGIES, COMPONENTS = (0.5, 0.8, 0.99), (1, 2)


def make_task(seed, n=160):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    scale = np.array([4.0, 3.0, 2.0, 1.0, 0.5, 0.2])
    pool = {f"net {i}": scale * rng.normal(size=(n, 6)) + 0.4 * i * labels[:, None] * scale for i in range(5)}
    accuracy = {name: 0.5 + 0.1 * i + 0.08 * rng.normal() for i, name in enumerate(pool)}
    return pool, labels, accuracy


@pytest.fixture(scope="module")
def tasks():
    return {"one": make_task(0), "two": make_task(1), "three": make_task(2)}


@pytest.fixture(scope="module")
def grid(tasks):
    return measure_nleep_grid(tasks, ENERGIES, COMPONENTS, progress=False)


@pytest.mark.slow
def test_every_cell_is_nleep_with_those_settings(tasks, grid):
    for name, (pool, labels, accuracy) in tasks.items():
        targets = as_targets(labels, len(labels))
        train, test = split_rows(targets, 0.2, np.random.default_rng(0))
        for e, energy in enumerate(ENERGIES):
            for c, components in enumerate(COMPONENTS):
                scores = [
                    nleep(
                        x[train],
                        labels[train],
                        test_features=x[test],
                        test_labels=labels[test],
                        energy=energy,
                        components=components,
                    )
                    for x in pool.values()
                ]
                np.testing.assert_allclose(grid.scores[name][:, e, c], scores, rtol=1e-9)
                tau = kendalltau(scores, list(accuracy.values())).statistic
                place = list(tasks).index(name)
                assert grid.kendall[place, e, c] == pytest.approx(tau)
    assert len(np.unique(grid.scores["one"][0])) == 6  # settings matter


def test_means_and_intervals_over_tasks(grid):
    np.testing.assert_allclose(grid.mean, grid.kendall.mean(axis=0))
    values = grid.kendall[:, 1, 1]
    found = grid.interval_at(0.8, 2)
    half = student(2).ppf(0.975) * values.std(ddof=1) / np.sqrt(3)
    assert found.estimate == pytest.approx(values.mean())
    assert found.low == pytest.approx(max(-1, values.mean() - half))
    assert found.high == pytest.approx(min(1, values.mean() + half))
    with pytest.raises(InputError, match="the grid has energies"):
        grid.interval_at(0.7, 2)


def test_the_result_reads_well(grid):
    assert list(grid.columns()) == ["energy", "components_1", "components_2"]
    assert "over 3 tasks" in grid.summary()
    json.dumps(grid.to_dict(), allow_nan=False)


def test_one_task_has_no_interval(tasks):
    pool, labels, accuracy = tasks["one"]
    given = {name: CheckpointFeatures(name, x) for name, x in pool.items()}
    one = measure_nleep_grid({"one": (given, labels, accuracy)}, (0.8,), (1,), test=None)
    assert np.isnan(one.interval_at(0.8, 1).low)
    scores = [nleep(x, labels, energy=0.8, components=1) for x in pool.values()]
    np.testing.assert_allclose(one.scores["one"][:, 0, 0], scores)


def test_what_nleep_warns_of_is_kept(tasks):
    with pytest.warns(CurvewiseWarning) as heard:
        found = measure_nleep_grid({"one": tasks["one"]}, (0.8,), (40,))
    assert found.warnings == tuple(str(one.message) for one in heard)
    assert sum("fewer than 5" in text for text in found.warnings) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"energies": (0.0,)}, "energies"),
        ({"energies": ()}, "energies"),
        ({"components": (0,)}, "components"),
        ({"tasks": {}}, "tasks is empty"),
        ({"level": 2}, "level"),
    ],
    ids=["zero", "none", "components", "tasks", "level"],
)
def test_bad_options_are_named(tasks, options, message):
    with pytest.raises(InputError, match=message):
        measure_nleep_grid(**{"tasks": tasks, **options})


def test_bad_tasks_are_named(tasks):
    pool, labels, accuracy = tasks["one"]
    with pytest.raises(InputError, match="no accuracy of 'net 4'"):
        measure_nleep_grid({"one": (pool, labels, {**accuracy, "net 4": np.nan})})
    with pytest.raises(InputError, match="1 checkpoint"):
        measure_nleep_grid({"one": ({"net 0": pool["net 0"]}, labels, accuracy)})
    with pytest.raises(InputError, match="160 rows and labels 100"):
        measure_nleep_grid({"one": (pool, labels[:100], accuracy)})


def test_a_task_whose_accuracies_are_all_equal_is_refused(tasks):
    """Its correlation is undefined, and made the mean over tasks unknown and the summary fail."""
    pool, labels, accuracy = tasks["one"]
    with pytest.raises(InputError, match="task 'flat' has one accuracy"):
        measure_nleep_grid({"flat": (pool, labels, dict.fromkeys(accuracy, 0.5))}, (0.8,), (1,))


@pytest.mark.filterwarnings("ignore:all examples have the same features")
def test_scores_that_are_all_equal_have_a_correlation_of_0(tasks):
    _, labels, accuracy = tasks["one"]
    found = measure_nleep_grid({"t": (dict.fromkeys(accuracy, np.ones((160, 2))), labels, accuracy)}, (0.8,), (1,))
    assert found.mean.tolist() == [[0.0]]
    assert "from 0 " in found.summary()
