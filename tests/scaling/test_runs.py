"""Runs that identify no law, that are in another unit, or that deserve a look."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.scaling import ScalingRuns, fit_scaling_law, load_scaling_runs

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


def _part(runs, mask):
    return {k: v[mask] for k, v in runs.items()}


def test_fewer_than_six_runs(made):
    with pytest.raises(InputError, match=r"runs holds 5 runs: with fewer than 6"):
        fit_scaling_law(_part(made(), np.array([0, 7, 14, 21, 28])))


def test_as_many_runs_as_the_form_has_parameters(made):
    with pytest.raises(InputError, match="fewer than 7 neither the 6 parameters"):
        fit_scaling_law(_part(made(), np.array([0, 7, 14, 21, 28, 35])), form="coupled")


def test_checkpoints_do_not_count_as_runs(made):
    runs = made(noise=0.01)
    runs = _part(runs, runs["params"] > np.unique(runs["params"])[1])
    with pytest.raises(InputError, match="holds 4 runs"):
        fit_scaling_law(runs | {"run": runs["params"].astype(str)})


def test_a_run_is_the_training_of_one_model(made):
    """A column such as the name of a family would turn models of all sizes into checkpoints of one another."""
    table = made(noise=0.01) | {"name": np.repeat(list("abcdef"), 6)}
    with pytest.raises(InputError, match=r"'a' has rows of 2e\+07 and of .* parameters"):
        load_scaling_runs(table)
    assert load_scaling_runs(table, columns={"run": None}).checkpoints == "none"


@pytest.mark.parametrize(
    ("chosen", "missing"),
    [
        (lambda n, d: n == n[0], "one N only .* A and α are not identified"),
        (lambda n, d: d == d[0], "one D only .* B and β are not identified"),
    ],
)
def test_one_size_names_what_is_not_identified(made, chosen, missing):
    runs = made(sizes=7)
    with pytest.raises(InputError, match=missing):
        fit_scaling_law(_part(runs, chosen(runs["params"], runs["tokens"])))


@quiet
@pytest.mark.parametrize("name", ["params", "tokens"])
def test_two_sizes_do_not_identify_an_exponent(made, name):
    runs = made(noise=0.002)
    two = np.isin(runs[name], np.unique(runs[name])[[0, 3]])
    with pytest.raises(InputError, match=r"two values of [ND] only.*tied"):
        fit_scaling_law(_part(runs, two))
    assert fit_scaling_law(_part(runs, two), form="tied").alpha > 0
    weighed = fit_scaling_law(_part(runs, two), form="auto")
    assert {name.split(",")[0] for name in weighed.weights} == {"tied"}


@quiet
@pytest.mark.slow
def test_six_runs_have_a_summary(made):
    law = fit_scaling_law(_part(made(noise=0.002), np.array([0, 7, 14, 21, 28, 33])))
    assert "6 runs" in law.summary()
    assert law.sensitivity(1e21).window == ("all rows",)


def test_constant_tokens_per_parameter():
    n = np.geomspace(1e7, 1e9, 8)
    with pytest.raises(InputError, match=r"same tokens per parameter .* \(D/N = 20\).* A and α against B and β"):
        fit_scaling_law({"params": n, "tokens": 20 * n, "loss": 2 + 100 / n**0.3})


def test_one_budget():
    n = np.geomspace(1e7, 1e9, 8)
    runs = {"params": n, "flops": np.full(8, 1e19), "loss": 2 + np.log(n / 1e8) ** 2}
    with pytest.raises(InputError, match=r"one compute budget only .* E and the exponents"):
        fit_scaling_law(runs)


def test_tokens_that_do_not_belong_to_flops_and_parameters(made):
    runs = made()
    flops = 6 * runs["params"] * runs["tokens"]
    ScalingRuns(**runs, flops=1.25 * flops)
    with pytest.raises(InputError, match="which parameter count"):
        ScalingRuns(**runs, flops=1.4 * flops)
    with pytest.raises(InputError, match="which parameter count"):
        fit_scaling_law(runs | {"flops": flops / 1.4})


def test_tokens_or_flops_are_needed(made):
    with pytest.raises(InputError, match="known as the training tokens or the compute"):
        fit_scaling_law({k: v for k, v in made().items() if k != "tokens"})
    with pytest.raises(InputError, match="known as the loss"):
        fit_scaling_law({k: v for k, v in made().items() if k != "loss"})


@pytest.mark.parametrize(
    ("change", "question"),
    [
        (lambda loss: loss - 3, "above 0. Which unit"),
        (lambda loss: -loss, "above 0. Which unit"),
        (lambda loss: np.exp(loss), "perplexity"),
        (lambda loss: 1 / loss, "are these accuracies"),
    ],
)
def test_values_that_are_no_loss_are_asked_about(made, change, question):
    runs = made(noise=0.002)
    with pytest.raises(InputError, match=question):
        fit_scaling_law(runs | {"loss": change(runs["loss"])})


@quiet
def test_perplexities_become_losses(made):
    runs = made(noise=0.002)
    asked = ScalingRuns(**runs | {"loss": np.exp(runs["loss"])}, unit="perplexity")
    assert fit_scaling_law(asked).alpha == pytest.approx(fit_scaling_law(runs).alpha)
    with pytest.raises(InputError, match="unit"):
        ScalingRuns(**runs, unit="bits")


def test_rows_of_steps_without_a_run_have_no_intervals(made):
    runs = made(noise=0.002)
    with pytest.warns(CurvewiseWarning, match="no column names the run"):
        law = fit_scaling_law(runs | {"step": np.arange(36.0)})
    assert np.isnan(law.interval("alpha").low)
    assert np.isnan(law.compute_optimal(1e21).params.high)
    assert np.isnan(law.prediction(1e9, 1e10)["low"][0])
    assert np.isnan(law.standard_errors()["alpha"])
    assert np.isfinite(law.alpha)


def test_equal_steps_in_tokens_without_a_run_have_no_intervals():
    n, d = (v.ravel() for v in np.meshgrid([1e8, 3e8, 1e9], np.linspace(1e9, 2e10, 20), indexing="ij"))
    with pytest.warns(CurvewiseWarning, match="no column names the run"):
        law = fit_scaling_law({"params": n, "tokens": d, "loss": 1.8 + 480 / n**0.35 + 2000 / d**0.37})
    assert np.isnan(law.interval("alpha").low)


def _warnings_of(runs, **options):
    with pytest.warns(CurvewiseWarning):
        return " ".join(fit_scaling_law(runs, **options).warnings)


def test_duplicated_runs_are_flagged(made):
    runs = made(noise=0.01)
    text = _warnings_of({k: np.append(v, v[:2]) for k, v in runs.items()})
    assert "2 rows repeat the sizes and the loss" in text


def test_mixed_sources_are_flagged(made):
    text = _warnings_of(made(noise=0.01) | {"source": np.repeat(["c4", "pile"], 18)})
    assert "2 sources (c4, pile)" in text or "2 sources ('c4'" in text


def test_diverged_runs_are_flagged_or_left_out(made):
    runs = made(noise=0.002)
    high = runs["loss"].copy()
    high[10] *= 1.3
    assert "Diverged? 1 run" in _warnings_of(runs | {"loss": high})
    high[10] = np.nan
    assert "1 row without a finite loss" in _warnings_of(runs | {"loss": high})
    with pytest.raises(InputError, match="no finite number"):
        fit_scaling_law(runs | {"loss": np.full(36, np.nan)})


def test_no_irreducible_loss_is_flagged(made):
    assert "E is at 0" in _warnings_of(made(noise=0.002, E=-0.3), loss="squares")


def test_an_exponent_at_its_bound_is_flagged(made):
    runs = made(noise=0.001)
    step = 1.8 + np.where(runs["tokens"] == runs["tokens"].min(), 1.0, 0.0) + 480 / runs["params"] ** 0.35
    assert "β is at its bound" in _warnings_of(runs | {"loss": step}, loss="squares")


@quiet
def test_a_bound_of_the_solver_is_no_limit(made):
    law = fit_scaling_law(made(noise=0.06, seed=4, sizes=4), loss="squares")
    assert law.interval("beta").high == np.inf
    assert 0 < law.interval("beta").low < law.beta


def test_repeated_tokens_are_flagged(made):
    runs = made(noise=0.002)
    assert "repeat their tokens" in _warnings_of(runs | {"unique_tokens": runs["tokens"] / 4})
    with pytest.raises(InputError, match="needs unique_tokens"):
        fit_scaling_law(runs, form="repeated")


@pytest.mark.parametrize(("name", "value"), [("form", "additve"), ("loss", "l1")])
def test_unknown_options(made, name, value):
    with pytest.raises(InputError, match=name):
        fit_scaling_law(made(), **{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("params", 0.0), ("params", np.nan), ("tokens", -1.0), ("tokens", np.inf), ("loss", np.inf)]
)
def test_impossible_sizes(made, name, value):
    runs = made()
    column = runs[name].copy()
    column[3] = value
    with pytest.raises(InputError, match=name):
        ScalingRuns(**runs | {name: column})


@pytest.mark.parametrize(("name", "scale"), [("params", 1e-9), ("tokens", 1e-9), ("tokens", 1e-8)])
def test_sizes_in_billions_are_asked_about(made, name, scale):
    runs = made(noise=0.002)
    with pytest.raises(InputError, match=rf"{name} holds .* are they millions or billions"):
        ScalingRuns(**runs | {name: runs[name] * scale})
    # A study of small models on few examples holds whole numbers.
    ScalingRuns(**runs | {"params": np.arange(36) + 10, "tokens": np.arange(36) % 7 + 20})


def test_columns_of_other_lengths(made):
    with pytest.raises(InputError, match="tokens"):
        ScalingRuns(**made() | {"tokens": np.ones(3)})
    with pytest.raises(InputError, match="no such file"):
        fit_scaling_law("runs.csv")
    with pytest.raises(InputError, match="which does not say what is what"):
        fit_scaling_law(np.ones((6, 3)))


def test_files_and_frames_are_read_alike(made, tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(made(noise=0.002)).assign(status=["failed"] + ["finished"] * 35)
    table.to_csv(tmp_path / "runs.csv", index=False)
    laws = [fit_scaling_law(v) for v in (table, tmp_path / "runs.csv", load_scaling_runs(table))]
    assert [law.count for law in laws] == [35] * 3
    assert laws[0].alpha == laws[2].alpha == pytest.approx(laws[1].alpha)


def test_a_table_with_two_columns_for_one_role(made):
    runs = made()
    with pytest.raises(InputError, match=r"could be the loss.*load_scaling_runs"):
        fit_scaling_law(runs | {"val_loss": runs["loss"]})


def test_selection_and_groups(made):
    runs = ScalingRuns(**made(), run=np.resize([f"r{k}" for k in range(6)], 36))
    assert (runs.count, len(runs), runs.checkpoints) == (6, 36, "grouped")
    part = runs.select(runs.params > 1e8)
    assert len(part) == (runs.params > 1e8).sum()
    np.testing.assert_allclose(part.compute, 6 * part.params * part.tokens)
    assert "checkpoints" in repr(runs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"flagged": ["no", "yes"]}, "flagged"),
        ({"run": [None, "b"]}, "run has missing names"),
        ({"tokens": None, "flops": [1, 20]}, "unit, such as 1e18 FLOP"),
    ],
)
def test_columns_that_would_be_misread_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        ScalingRuns(**{"params": [1e8, 1e9], "tokens": [2e9, 2e10], "loss": [3.2, 2.6]} | change)


def test_whole_numbers_in_millions_are_asked_about(made):
    runs = made(noise=0.003)
    runs["params"] = np.round(runs["params"] / 1e6)
    with pytest.warns(CurvewiseWarning, match="are they millions"):
        law = fit_scaling_law(runs)
    assert any("No run has more than 3000 params" in text for text in law.warnings)


@quiet
@pytest.mark.parametrize(("noise", "asked"), [(0.003, False), (0.05, True)])
def test_trials_of_a_search_are_no_runs_of_one_law(made, noise, asked):
    one = made()
    rng = np.random.default_rng(0)
    runs = {k: np.repeat(v, 6) for k, v in one.items()}
    runs["loss"] = runs["loss"] * np.exp(noise * rng.exponential(size=216))
    runs["loss"][::50] *= 3  # a few have diverged, which says nothing of the others
    law = fit_scaling_law(ScalingRuns(**runs, unit="loss"))
    assert any("trials of a search for hyperparameters" in text for text in law.warnings) == asked
