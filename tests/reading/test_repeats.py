"""Rows that are one run twice, settings that are pooled in silence, names with blanks, percent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import InputError
from curvewise.learning.load import load_measurements
from curvewise.ranking.load import load_checkpoint_scores
from curvewise.response.load import load_corpus
from curvewise.transfer.load import load_risks
from curvewise.variance.load import load_predictions
from curvewise.variance.scores import load_scores

SIZES = (50, 100, 200, 400)


def runs(seeds: int = 3, digits: int = 6, **more: Any) -> dict[str, list[Any]]:
    """Errors of one learner; a column for each of ``more`` with the same value in every row."""
    rng = np.random.default_rng(0)
    rows = [(n, seed) for n in SIZES for seed in range(seeds)]
    errors = [round(0.1 + n**-0.5 + rng.normal(0, 0.01), digits) for n, _ in rows]
    table: dict[str, list[Any]] = {"learner": ["net"] * len(rows), "n": [n for n, _ in rows]}
    table |= {"error": errors, "seed": [seed for _, seed in rows]}
    return table | {name: [value] * len(rows) for name, value in more.items()}


def without(table: dict[str, list[Any]], *names: str) -> dict[str, list[Any]]:
    return {name: cells for name, cells in table.items() if name not in names}


def twice(table: dict[str, list[Any]], times: int = 2) -> dict[str, list[Any]]:
    return {name: list(cells) * times for name, cells in table.items()}


def test_a_run_that_is_there_twice_is_refused():
    message = r"Rows 1 and 13 .* are the same run \(learner 'net', n 50, seed 0\); remove one"
    with pytest.raises(InputError, match=message):
        load_measurements(twice(runs()))
    with pytest.raises(InputError, match=r"the same run .*fold 0"):
        load_measurements({**without(runs(), "seed"), "fold": [0] * 12})
    assert len(load_measurements(runs())) == 12


def test_rows_of_one_run_that_differ_are_told_apart_by_what_they_differ_in():
    table = twice(runs())
    table["epoch"] = [10] * 12 + [20] * 12
    table["error"] = [e - (i >= 12) * 0.01 for i, e in enumerate(table["error"])]
    message = r"differ in 'epoch': choose with where=\{'epoch': 20\}, or tell .*\['learner', 'epoch'\]"
    with pytest.raises(InputError, match=message):
        load_measurements(table)
    assert len(load_measurements(table, where={"epoch": 20})) == 12
    both = load_measurements(table, columns={"learner": ["learner", "epoch"]})
    assert both.learners == ("net / 10", "net / 20")
    assert len(load_measurements(table, columns={"seed": None, "ignore": "epoch"})) == 24


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("epoch", [1, 2, 3] * 4),
        ("step", [1000, 2000, 3000] * 4),
        ("lr", [0.1, 0.03, 0.01] * 4),
        ("batch_size", [32, 64, 128] * 4),
        ("dataset", ["a", "b", "c"] * 4),
        ("iteration", [0, 1, 2] * 4),
        ("unheard_of", [4, 8, 16] * 4),
        ("unheard_of", ["a", "b", "c"] * 4),
    ],
)
def test_settings_are_not_pooled_in_silence(name, values):
    table = {**without(runs(), "seed"), name: values}
    with pytest.raises(InputError, match=rf"of one learner and size .* differ in '{name}'"):
        load_measurements(table)
    chosen = load_measurements(table, where={name: values[0]})
    assert (len(chosen), chosen.learners) == (4, ("net",))
    assert len(load_measurements(table, columns={"ignore": name})) == 12
    assert len(load_measurements(table, columns={"seed": name})) == 12
    assert len(load_measurements(table, columns={"learner": ["learner", name]}).learners) == 3


def test_what_came_of_a_run_is_no_setting():
    rng = np.random.default_rng(1)
    more = {
        "train_error": rng.uniform(0, 0.01, 12).round(3).tolist(),
        "seconds": rng.integers(10, 14, 12).tolist(),
        "norm": rng.normal(size=12).tolist(),
        "run_id": [f"r{i}" for i in range(12)],
        "host": ["a", "b", "a"] * 4,
    }
    table = {**without(runs(), "seed"), **more}
    assert len(load_measurements(table, columns={"value": "error"})) == 12


def grid(runs: int = 3) -> dict[str, list[Any]]:
    """Two learners at five sizes without a seed."""
    rng = np.random.default_rng(4)
    cells = [(k, n) for k in ("net", "tree") for n in (50, 100, 200, 400, 800) for _ in range(runs)]
    errors = [round(0.1 + n**-0.5 + rng.normal(0, 0.01), 6) for _, n in cells]
    return {"learner": [k for k, _ in cells], "n": [n for _, n in cells], "error": errors}


def varied(name: str, runs: int) -> list[Any]:
    """What came of runs, in 10 cells."""
    rng = np.random.default_rng(sum(map(ord, name)) + runs)
    whole = {"wall_s": 40, "power_w": 20, "n_iter": 9, "best_iter": 30, "best_val_epoch": 20}
    whole |= {"num_epochs": 12, "n_features_selected": 6, "tree_depth": 4, "n_test": 5}
    if name in whole:
        return (10 + rng.integers(0, whole[name], 10 * runs)).tolist()
    if name in ("converged", "early_stopped", "warned"):
        return (rng.random(10 * runs) < 0.6).tolist()
    if name in ("checkpoint", "weights"):
        return [f"ckpt{i}.pt" for i in range(10 * runs)]
    few = {"nodes": [1, 2], "day": ["Mon", "Tue", "Wed"], "best_C": [0.1, 1.0, 10.0]}
    return rng.choice(few.get(name) or rng.normal(3, 1, 50).round(1), 10 * runs).tolist()


@pytest.mark.parametrize("runs", [2, 3, 5])
@pytest.mark.parametrize(
    "name",
    [
        *("wall_s", "vram_gb", "power_w", "nodes", "day", "n_iter", "best_iter", "best_val_epoch"),
        *("num_epochs", "converged", "early_stopped", "n_features_selected", "tree_depth", "ece"),
        *("best_C", "n_test", "checkpoint", "weights", "warned"),
    ],
)
def test_what_varies_irregularly_is_no_setting(name, runs):
    m = load_measurements({**grid(runs), name: varied(name, runs)})
    assert len(m) == 10 * runs
    assert any(f"differ in '{name}': not settings" in note for note in m.notes)


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("name", ["experiment", "resample", "bootstrap", "cv", "i", "k"])
def test_numbers_of_runs_are_no_setting(name, start):
    m = load_measurements({**grid(), name: [start, start + 1, start + 2] * 10})
    assert f"'{name}' taken as run numbers" in m.notes


def test_a_flag_is_no_number_of_a_run():
    with pytest.raises(InputError, match="differ in 'pretrained'"):
        load_measurements({**grid(2), "pretrained": [0, 1] * 10})


@pytest.mark.parametrize("lost", [(), (4,), (4, 17, 29)])
def test_a_crossed_setting_is_found_even_if_runs_are_missing(lost):
    table = {**grid(), "alpha": [0.1, 1.0, 10.0] * 10}
    table = {k: [v for i, v in enumerate(c) if i not in lost] for k, c in table.items()}
    with pytest.raises(InputError, match="differ in 'alpha'"):
        load_measurements(table)
    own = {**grid(), "alpha": [0.1, 1.0, 10.0] * 5 + [0.0] * 15}  # of one learner only
    with pytest.raises(InputError, match="differ in 'alpha'"):
        load_measurements(own)


def test_a_crossed_setting_is_found_with_fewer_runs_of_the_larger_sizes():
    rows = [(n, a) for n, r in zip(SIZES, (6, 4, 2, 1), strict=True) for a in ("x", "y") * r]
    error = np.random.default_rng(0).uniform(0.1, 0.4, len(rows))
    with pytest.raises(InputError, match="differ in 'variant'"):
        load_measurements({"n": [n for n, _ in rows], "error": error, "variant": [a for _, a in rows]})


def test_a_copy_is_refused_as_a_copy_whatever_else_varies():
    table = {**grid(), "wall_s": varied("wall_s", 3), "epoch": [5] * 30}
    with pytest.raises(InputError, match=r"Every row of 'net' .* is there 2 times"):
        load_measurements(twice(table))


@pytest.mark.parametrize("items", [50, 180])
def test_equal_errors_of_a_small_test_set_are_runs(items):
    n = np.repeat(SIZES, 3)
    error = np.repeat([20, 11, 9, 7], 3) / items
    assert len(load_measurements({"n": n, "error": error})) == 12
    assert len(load_measurements({"n": n, "error (%)": 100 * error})) == 12


def test_rows_that_are_alike_can_be_said_to_be_runs():
    table = {"n": np.repeat(SIZES, 3), "error": np.repeat([0.41234567, 0.3123457, 0.21, 0.2], 3)}
    with pytest.raises(InputError, match=r"or pass columns=\{'seed': None\}, if these are diff"):
        load_measurements(table)
    assert len(load_measurements(table, columns={"seed": None})) == 12
    pasted = twice(runs())
    with pytest.raises(InputError, match="is there 2 times"):  # its seeds are there twice, too
        load_measurements(pasted, columns={"seed": None})


@pytest.mark.parametrize("name", ["trial", "run", "data_seed"])
def test_the_remedy_for_a_column_that_tells_no_runs_apart_works(name):
    table = {**without(runs(), "seed"), name: [0, 0, 1] * 4}
    with pytest.raises(InputError, match=rf"pass columns=\{{'ignore': '{name}'\}}"):
        load_measurements(table)
    assert len(load_measurements(table, columns={"ignore": name})) == 12


def test_a_setting_that_differs_between_seeds_is_noted():
    notes = load_measurements({**runs(), "lr": [0.1, 0.1, 0.01] * 4}).notes
    assert any("differ in 'lr'" in note for note in notes)


@pytest.mark.parametrize("times", [2, 3])
def test_a_file_that_was_pasted_again_is_refused(times):
    table = twice(without(runs(), "seed"), times)
    with pytest.raises(InputError, match=f"Every row of 'net' .* is there {times} times"):
        load_measurements(table)


def test_a_block_that_was_pasted_again_is_refused():
    table = without(runs(6), "seed")
    pasted = {name: cells + cells[3:12] for name, cells in table.items()}
    with pytest.raises(InputError, match="from row 4 on, are there again from row 25 on"):
        load_measurements(pasted)


def test_errors_that_are_alike_by_chance_are_runs():
    """Errors are counts of a small test set: some rows are alike."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        n = np.repeat(SIZES, 10)
        error = rng.binomial(180, 0.1 + n**-0.5) / 180
        m = load_measurements({"n": n, "error": error})
        assert len(m) == 40


def test_copies_do_not_decide(tmp_path):
    """The same measurements three times over are no new evidence."""
    rng = np.random.default_rng(3)
    rows = [
        {"learner": k, "n": n, "error": float(0.1 + s + n**-0.5 + rng.normal(0, 0.02))}
        for k, s in (("a", 0.0), ("b", 0.01))
        for n in SIZES
        for _ in range(4)
    ]
    a, b = cw.fit_learning_curves(load_measurements(rows))
    assert cw.compare_learning_curves(a, b).verdict == "undecided"
    with pytest.raises(InputError, match="is there 3 times"):
        load_measurements(rows * 3)


def test_blanks_around_names_are_no_part_of_them():
    table = {"n": [1, 2], "error": [0.5, 0.4], "learner": [" a", " a"]}
    assert load_measurements(table).learners == ("a",)
    with pytest.raises(InputError, match="'a' and 'a ', which differ only in blanks"):
        load_measurements({**table, "learner": ["a", "a "]})
    with pytest.raises(InputError, match="differ only in blanks"):
        load_measurements({"a": {"n": [1], "error": [0.5]}, "a ": {"n": [2], "error": [0.4]}})
    with pytest.raises(InputError, match="differ only in blanks"):
        load_measurements({"n": [1, 2], "a": [0.5, 0.4], "a ": [0.3, 0.2]}, wide="learners")
    with pytest.raises(InputError, match="differ only in blanks"):
        cw.fit_learning_curves({**table, "learner": ["a", "a "]})


RISKS: dict[str, list[Any]] = {
    "task": ["t"] * 6,
    "method": ["blind", "gold", "scratch", "scratch", "new", "new"],
    "n": [None, None, 10, 20, 10, 20],
    "error": [0.9, 0.1, 0.7, 0.5, 0.6, 0.4],
}
POOL: dict[str, list[Any]] = {
    "model": ["a", "b", "c"],
    "dataset": ["t"] * 3,
    "accuracy": [0.7, 0.8, 0.9],
    "logme": [1.0, 2.0, 3.0],
}


@pytest.mark.parametrize(
    ("read", "table", "column"),
    [
        (load_risks, RISKS, "method"),
        (load_risks, RISKS, "task"),
        (cw.measure_transfer, RISKS, "method"),
        (load_checkpoint_scores, POOL, "model"),
        (load_checkpoint_scores, POOL, "dataset"),
    ],
)
def test_names_with_blanks_are_refused_by_every_reader(read, table, column):
    cells = list(table[column])
    cells[-1] = cells[-2] + " "
    with pytest.raises(InputError, match="differ only in blanks"):
        read({**table, column: cells})


def test_cells_of_arrays_are_shown_as_plain_numbers():
    table = {k: cells[2:] * 2 for k, cells in RISKS.items()} | {"fold": [0] * 8}
    arrays = {k: np.array(v) for k, v in table.items()}
    arrays |= {"n": np.array([10, 20] * 4), "error": np.linspace(0.4, 0.7, 8)}
    with pytest.raises(InputError, match="n 10, fold 0"):
        load_risks(arrays)


def test_names_of_trainings_runs_and_models_have_no_blanks():
    scores = {"model": ["a", "a "], "error": [0.5, 0.4]}
    with pytest.raises(InputError, match="differ only in blanks"):
        load_scores(scores, by="model")
    rows = {"run": ["r", "r", "r ", "s", "s"], "example": [0, 1, 0, 0, 1]}
    with pytest.raises(InputError, match="differ only in blanks"):
        load_predictions({**rows, "error": [0, 1, 1, 0, 1]})
    corpus = {"model": ["m", "m ", "o"], "gap": [0.1, 0.2, 0.3], "depth": [1, 2, 2]}
    with pytest.raises(InputError, match="differ only in blanks"):
        load_corpus(corpus, hyperparameters=["depth"])


NAMED = ["Error rate in %", "error (%)", "error%", "Error [%]", "error_pct", "test error percent", "err percentage"]


@pytest.mark.parametrize("name", NAMED)
def test_percent_in_a_name_means_percent(name):
    table = {"n": [10, 20], name: [0.4, 0.3]}
    m = load_measurements(table)
    assert (m.unit.name, m.error.tolist()) == ("percent", [0.4, 0.3])
    assert load_measurements(table, unit="percent").error.tolist() == [0.4, 0.3]
    with pytest.raises(InputError, match="unit='fraction' contradicts the name"):
        load_measurements(table, unit="fraction")
    scores = load_scores({name: [0.4, 0.3]})
    assert next(iter(scores.values())).tolist() == pytest.approx([0.004, 0.003])


def test_percent_in_the_name_of_accuracies():
    m = load_measurements({"n": [10, 20], "acc [%]": [0.4, 93.0]})
    assert (m.unit.name, m.error.tolist()) == ("percent", [99.6, 7.0])
    named = {"n": [10, 20], "metric": ["acc (%)"] * 2, "value": [0.4, 93.0]}
    assert load_measurements(named).error.tolist() == [99.6, 7.0]
    scores = load_scores({"acc [%]": [0.4, 93.0]})
    assert next(iter(scores.values())).tolist() == pytest.approx([0.996, 0.07])


def test_percent_among_columns_of_learners_is_asked_about():
    table = {"n": [10, 20], "net (%)": [0.4, 0.3], "other": [0.5, 0.2]}
    with pytest.raises(InputError, match="pass unit='percent', or unit='fraction'"):
        load_measurements(table, wide="learners")
    assert load_measurements(table, wide="learners", unit="percent").unit.name == "percent"


def test_a_spread_in_percent_beside_fractions_is_refused():
    table = {"n": [10, 20], "error": [0.4, 0.3], "runs": [3, 3], "std (%)": [1.0, 1.0]}
    with pytest.raises(InputError, match="says percent, and the values are read in 'fraction'"):
        load_measurements(table)


@pytest.mark.parametrize("name", ["accuracy (%)", "acc_pct", "Test Acc [%]"])
def test_percent_in_other_readers(name):
    pool = {**without(POOL, "accuracy"), name: [0.7, 0.8, 90.0]}
    assert load_checkpoint_scores(pool).accuracy.tolist() == pytest.approx([0.007, 0.008, 0.9])
    risks = load_risks({**without(RISKS, "error"), name: [0.1, 0.9, 0.3, 0.5, 0.4, 0.6]})
    assert risks.risk.tolist() == pytest.approx([99.7, 99.5, 99.6, 99.4])


def test_percent_in_corpora_is_by_column():
    rows = {"depth": [2, 2, 4, 4], "train_acc": [1.0, 1.0, 0.99, 1.0], "norm": [1.0, 2.0, 3.0, 4.0]}
    corpus = load_corpus({**rows, "gap (%)": [0.5, 0.4, 0.3, 0.2]})
    assert corpus.gap.tolist() == pytest.approx([0.005, 0.004, 0.003, 0.002])
    assert corpus.train_accuracy is not None
    assert corpus.train_accuracy.tolist() == [1.0, 1.0, 0.99, 1.0]
