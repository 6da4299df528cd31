"""Accuracy of larger models by way of the task's loss."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.scaling import ScalingRuns

N, D = (v.ravel() for v in np.meshgrid([1e8, 3e8, 1e9, 3e9], [4e9, 2e10, 1e11], indexing="ij"))
TARGET = (1e10, 1e12)


def loss_of(n, d):
    return 0.5 + 300 / n**0.35 + 1500 / d**0.37


def accuracy_of(loss, chance=0.25):
    return chance + (1 - chance) / (1 + np.exp(6 * (loss - 0.8)))


def make_runs(seed: int = 0, noise: float = 0.0, checkpoints: int = 1, rise: float = 1.0) -> ScalingRuns:
    r = np.random.default_rng(seed)
    share = np.linspace(1 / checkpoints, 1, checkpoints)
    n, d = np.repeat(N, checkpoints), np.concatenate([v * share for v in D])
    loss = loss_of(n, d) * np.exp(noise * r.standard_normal(len(n)))
    accuracy = 0.25 + rise * (accuracy_of(loss) - 0.25) + noise * r.standard_normal(len(n))
    run = np.repeat(np.arange(len(N)), checkpoints).astype(str) if checkpoints > 1 else None
    return ScalingRuns(n, d, loss + 2, run=run, unit="loss", metrics={"quiz_bpb": loss, "quiz_acc": accuracy})


@pytest.mark.parametrize("chance", [None, 0.25])
def test_the_truth_is_found_without_noise(chance):
    found = cw.predict_downstream(make_runs(), "quiz", TARGET, chance=chance)
    assert found.loss.estimate == pytest.approx(loss_of(*TARGET), rel=1e-4)
    assert found.accuracy.estimate == pytest.approx(accuracy_of(loss_of(*TARGET)), rel=5e-3)
    assert found.sigmoid["middle"] == pytest.approx(0.8, rel=1e-2)
    assert found.accuracy.kind == "prediction"


@pytest.mark.slow
def test_intervals_hold_new_models():
    truth = accuracy_of(loss_of(*TARGET))
    held = 0
    for seed in range(8):
        with quietly():
            found = cw.predict_downstream(make_runs(seed, 0.01), "quiz", TARGET, chance=0.25)
        held += truth + 0.01 * np.random.default_rng(1000 + seed).standard_normal() in found.accuracy
    assert held >= 6


@pytest.mark.slow
def test_several_sizes_and_checkpoints_make_a_table():
    with quietly():
        found = cw.predict_downstream(make_runs(0, 0.005, 12), "quiz", [TARGET, (2e10, 2e12)], chance=0.25)
    rows = found.frame()
    assert list(rows) == ["params", "tokens", "loss", "loss_low", "loss_high", "accuracy", "low", "high"]
    assert (rows["low"] < rows["accuracy"]).all()
    assert (rows["accuracy"] < rows["high"]).all()
    assert rows["accuracy"][1] > rows["accuracy"][0]
    assert found.count == 12
    assert "10B parameters on 1T tokens" in found.summary()
    json.dumps(found.to_dict())


def test_no_run_above_chance_is_refused():
    flat = make_runs(0, 0.01, rise=0.0)
    for chance in (None, 0.25):
        with quietly(), pytest.raises(InputError, match=r"no run is (significantly )?above chance"):
            cw.predict_downstream(flat, "quiz", TARGET, chance=chance)


def test_columns_are_found_by_the_task_or_named():
    runs = make_runs()
    named = cw.predict_downstream(runs, ("quiz_bpb", "quiz_acc"), TARGET)
    assert named.accuracy == cw.predict_downstream(runs, "quiz", TARGET).accuracy
    # An accuracy alone is predicted by the loss of the runs.
    alone = cw.predict_downstream(runs, "quiz_acc", TARGET)
    assert alone.loss.estimate == pytest.approx(loss_of(*TARGET) + 2, rel=1e-3)


@pytest.mark.parametrize(
    ("task", "at", "options", "message"),
    [
        ("exam", TARGET, {}, "none has it in its name"),
        (("quiz_bpb", "exam"), TARGET, {}, "no column 'exam'"),
        (("quiz_bpb",), TARGET, {}, "two columns"),
        ("quiz", (1e10,), {}, "pair of parameters and tokens"),
        ("quiz", (1e10, -1), {}, "pair of parameters and tokens"),
        ("quiz", TARGET, {"chance": 25}, "fraction"),
    ],
)
def test_bad_input_is_refused(task, at, options, message):
    with pytest.raises(InputError, match=message):
        cw.predict_downstream(make_runs(), task, at, **options)


def test_runs_of_one_size_of_compute_get_the_drift_of_other_models():
    # All within a factor 2 of compute: none can be held out to see how the second step drifts.
    n, d = np.array([1.0, 1.1, 1.2, 1.0, 1.1, 1.2]) * 1e9, np.array([2.0, 2.0, 2.2, 2.6, 2.4, 2.6]) * 1e10
    loss = loss_of(n, d)
    runs = ScalingRuns(n, d, loss + 2, unit="loss", metrics={"quiz_bpb": loss, "quiz_acc": accuracy_of(loss)})
    with quietly():
        found = cw.predict_downstream(runs, "quiz", (2e9, 5e10), chance=0.25)
    beyond = np.log(loss.min() / loss_of(2e9, 5e10))
    assert found.accuracy.high - found.accuracy.estimate >= 1.96 * 0.38 * beyond


def test_a_model_far_beyond_the_runs_carries_a_warning():
    with pytest.warns(CurvewiseWarning, match="6e\\+24 FLOP is 3,330 times the largest run"):
        cw.predict_downstream(make_runs(), "quiz", (1e11, 1e13))
    with pytest.warns(CurvewiseWarning, match=r"0\.01 tokens per parameter .* in this order"):
        cw.predict_downstream(make_runs(), "quiz", TARGET[::-1])


def test_percentages_are_refused():
    runs = make_runs()
    percent = ScalingRuns(N, D, runs.loss, metrics={"quiz_acc": 100 * runs.metrics["quiz_acc"]}, unit="loss")
    with pytest.raises(InputError, match="Divide percentages by 100"):
        cw.predict_downstream(percent, "quiz_acc", TARGET)


def test_few_runs_above_chance_are_said():
    late = make_runs()
    accuracy = np.where(np.arange(12) == 11, 0.5, 0.25) + 1e-3 * np.random.default_rng(0).standard_normal(12)
    runs = ScalingRuns(
        N, D, late.loss, metrics={"quiz_acc": accuracy, "quiz_bpb": late.metrics["quiz_bpb"]}, unit="loss"
    )
    with pytest.warns(CurvewiseWarning, match="Only . of 12 runs are significantly above chance"):
        cw.predict_downstream(runs, "quiz", TARGET, chance=0.25)


SIZES = {"190M": 190354176, "370M": 371262464, "760M": 758220288, "1B": 1279395840}


@pytest.mark.slow
def test_published_predictions_of_the_ladder(data_dir: Path):
    pandas = pytest.importorskip("pandas")
    folder = data_dir / "scaling" / "ladder"
    table = pandas.read_csv(folder / "runs.csv.gz")
    table = table[table["run"].isin([f"{size}-{k}xC" for size in SIZES for k in (1, 2, 5, 10)])]
    runs = ScalingRuns(
        table["run"].str.split("-").str[0].map(SIZES).to_numpy(float),
        table["throughput/total_tokens"].to_numpy(float),
        table["eval/c4_en-validation/CrossEntropyLoss"].to_numpy(float),
        run=table["run"].to_numpy(str),
        metrics={k: table[k].to_numpy(float) for k in table if k.startswith("eval/downstream")},
        unit="loss",
    )
    assert runs.count == 16
    step1, chained = (
        pandas.read_csv(folder / f"published_{k}_main.csv").set_index("Task") for k in ("step1", "chained")
    )
    names = [name for name in step1.index if not name.startswith("mmlu")]
    assert len(names) == 7
    held = 0
    for name in names:
        with quietly():
            found = cw.predict_downstream(runs, name.replace("_5shot", "_rc_5shot"), (13202396160, 596057 * 8388608))
        assert round(found.loss.estimate, 4) == round(step1["Pred"][name], 4)
        assert round(found.accuracy.estimate, 4) == round(chained["Pred"][name], 4)
        held += chained["Actual"][name] in found.accuracy
    # Nothing was chosen by what the 13B model reached.
    assert held >= 6


def test_runs_without_the_task_are_counted():
    runs = make_runs()
    runs.metrics["quiz_acc"][:2] = np.nan
    with pytest.warns(CurvewiseWarning, match="2 runs without a value of 'quiz_bpb' and 'quiz_acc' left out"):
        found = cw.predict_downstream(runs, "quiz", TARGET, chance=0.25)
    assert found.count == 10
    with pytest.raises(InputError, match="chance"):
        cw.predict_downstream(runs, "quiz", TARGET, chance="low")


@pytest.mark.parametrize("chance", [None, 0.0])
def test_accuracies_that_fall_with_the_loss_are_refused(chance):
    runs = make_runs()
    runs.metrics["quiz_acc"][:] = 1 - runs.metrics["quiz_acc"]
    with pytest.raises(InputError, match=r"does not rise as the loss falls \(rank correlation -1.00"):
        cw.predict_downstream(runs, "quiz", TARGET, chance=chance)
    with pytest.raises(InputError, match="task"):
        cw.predict_downstream(runs, None, TARGET)


def test_runs_of_several_sources_are_said():
    runs = make_runs()
    runs = ScalingRuns(runs.params, runs.tokens, runs.loss, source=np.resize(["c4", "pile"], 12), metrics=runs.metrics)
    with pytest.warns(CurvewiseWarning, match=r"Runs of 2 sources \('c4', 'pile'\) are fitted as one law"):
        cw.predict_downstream(runs, "quiz", TARGET, chance=0.25)


@pytest.mark.parametrize("value", [45.0, -1.0])
def test_no_checkpoint_has_an_accuracy_beyond_its_range(value):
    """Each checkpoint counts in the second step, not those at the end of a run only."""
    runs = make_runs(checkpoints=10)
    accuracy = runs.metrics["quiz_acc"].copy()
    accuracy[3] = value
    runs = ScalingRuns(runs.params, runs.tokens, runs.loss, run=runs.run, metrics=runs.metrics | {"quiz_acc": accuracy})
    with pytest.raises(InputError, match=rf"'quiz_acc' holds {value:g}.*fractions from 0 to 1".replace("-", "[-−]")):
        cw.predict_downstream(runs, "quiz", TARGET, chance=0.25)
