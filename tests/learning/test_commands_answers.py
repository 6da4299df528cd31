"""What headings and help say, and the learners that are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.types.results import Unit


@pytest.mark.parametrize(
    ("options", "heading"),
    [
        (("--form", "auto"), "Predicted error at n = 5,748 (95% prediction intervals, form auto)"),
        ((), "Predicted error at n = 5,748 (95% confidence intervals, form power)"),
    ],
)
def test_rank_heading_names_interval_and_form(call, errors, options, heading):
    assert heading in call("learning", "rank", errors, "--at", "5748", *options).out


@pytest.mark.parametrize(
    ("options", "heading"),
    [
        ((), "Predicted error (95% confidence intervals)"),
        (("--form", "auto"), "Predicted error (95% prediction intervals)"),
        (("--interval", "prediction"), "error (mean of runs)   error (one new run)"),
    ],
)
def test_heading_of_predictions_says_what_for(call, errors, options, heading):
    assert heading in call("learning", "fit", errors, "--predict", "3000", *options).out


def test_what_to_beware_of_is_said_with_the_result(call, errors):
    ranked = call("learning", "rank", errors, "--at", "5748")
    told = "n = 5,748 is 4 times the largest size measured: the ranking rests on the form of the curves. --form auto"
    assert told in " ".join(ranked.err.split())
    planned = call("learning", "plan", errors, "--learner", "naive Bayes", "--factor", "0.01", "--sizes", "60")
    assert "the width asked for is not reached" in " ".join(planned.err.split())


def test_predictions_are_for_one_new_run(call, errors):
    options = ("--predict", "3000", "--interval", "prediction", "--json")
    row = call("learning", "fit", errors, *options).document["predictions"][0]
    curve = cw.fit_learning_curves(cw.load_measurements(errors))[row["learner"]]
    assert row["low"] == pytest.approx(curve.band([3000], "prediction", runs=1)["low"][0])


def words(text: str) -> str:
    """The text of a help page without its frames and line breaks."""
    return " ".join(text.replace("│", " ").split())


def test_help_of_compare_describes_a_and_b(call):
    text = words(call("learning", "compare", "--help").out)
    assert "--a STR Name of the learner to judge" in text
    assert "--b STR Name of the learner to judge it against; by default all others." in text


def test_help_of_reach_says_that_it_is_an_error(call):
    text = words(call("learning", "fit", "--help").out)
    assert "An error in the unit of the file" in text
    assert "5 for an accuracy of 95 percent" in text


def test_reach_is_an_error_for_accuracies_too(call, tmp_path, errors):
    m = cw.load_measurements(errors)
    path = tmp_path / "accuracies.csv"
    rows = zip(m.learner, m.n, m.error, strict=True)
    lines = [f"{name},{n:.0f},{100 * (1 - e)}" for name, n, e in rows]
    path.write_text("learner,n,accuracy\n" + "\n".join(lines) + "\n")
    options = ("--unit", "percent", "--reach", "5", "--json")
    sizes = [
        [float(a["curve_reaches"]) for a in call("learning", "fit", *c).document["samples_to_reach"]]
        for c in ((path, *options), (errors, "--reach", "0.05", "--json"))
    ]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-3)


def test_fit_of_some_learners(call, table):
    path = table("three.csv", {"resnet-18": (0.1, 1), "resnet-50": (0.1, 1.2), "vit": (0.2, 1)})
    every = call("learning", "fit", path, "--json").document
    some = call("learning", "fit", path, "--learner", "vit", "--learner", "resnet-18", "--json").document
    assert list(some["curves"]) == ["resnet-18", "vit"]
    for name, curve in some["curves"].items():
        assert curve["alpha"] == pytest.approx(every["curves"][name]["alpha"])
    out = call("learning", "fit", path, "--learner", "vit", "--learner", "vit").out
    assert "vit" in out
    assert "resnet" not in out


def test_fit_of_an_unknown_learner_suggests_one(call, errors):
    done = call("learning", "fit", errors, "--learner", "naive bays")
    assert done.code == 2
    assert "Did you mean 'naive Bayes'?" in done.err
    assert done.out == ""


def test_fit_of_some_learners_keeps_runs_and_variances(call, tmp_path):
    path = tmp_path / "means.csv"
    rows = [f"{k},{n},{2 / n**0.5},{r},1e-4" for k, r in (("a", 5), ("b", 7)) for n in (50, 99)]
    path.write_text("learner,n,error,k,v\n" + "\n".join(rows) + "\n")
    options = ("--runs-column", "k", "--variance-column", "v", "--learner", "b", "--json")
    assert call("learning", "fit", path, *options).document["curves"]["b"]["runs"] == [7, 7]


def test_compare_takes_the_pair_as_learners(call, table):
    path = table("three.csv", {"resnet": (0.1, 1), "vit": (0.12, 1), "mlp": (0.2, 1)})
    pair = call("learning", "compare", path, "--learner", "vit", "--learner", "resnet", "--json").document
    assert (pair["a"], pair["b"]) == ("vit", "resnet")
    named = call("learning", "compare", path, "--a", "vit", "--b", "resnet", "--json").document
    assert pair["error_difference"] == named["error_difference"]
    ranked = call("learning", "rank", path, "--learner", "vit", "--learner", "mlp", "--json").document
    assert ranked["learners"] == ["vit", "mlp"]
    unknown = call("learning", "compare", path, "--learner", "vit", "--learner", "resnet50")
    assert unknown.code == 2
    assert "Did you mean 'resnet'?" in unknown.err


def test_compare_of_all_pairs_names_its_correction(call, table):
    path = table("three.csv", {"resnet": (0.1, 1), "vit": (0.1, 1.05), "mlp": (0.2, 1)})
    done = call("learning", "compare", path)
    title = "3 pairs at n = 800 (a minus b, simultaneous 95% confidence intervals, p-values × 3)"
    assert title in words(done.out)
    assert "corrected for 3 comparisons (Bonferroni)" in words(done.out)


def test_compare_beyond_the_data_warns(call, errors):
    done = call("learning", "compare", errors, "--at", "5748")
    assert "n = 5,748 is 4 times the largest size measured: the comparison rests on the form" in words(done.err)


def test_a_table_beyond_the_data_warns_once(call, errors):
    message = "n = 100,000 is more than four times the largest size measured"
    for options in ((), ("--predict", "100000,90000")):
        assert call("learning", "fit", errors, "--at", "100000", *options).err.count(message) == 1
    for command in ("plan", "rank"):
        assert message not in call("learning", command, errors, "--at", "100000").err


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_seeds_of_a_subset_are_averaged_as_in_a_report(call, tmp_path):
    """Three seeds on each of three subsets are three runs, not nine; the command does it and says so."""
    rng = np.random.default_rng(0)
    rows = []
    for learner, level in (("a", 1.0), ("b", 1.3)):
        for n in (50, 100, 200, 400):
            for fold in range(3):
                subset = level * n**-0.5 + rng.normal(0, 0.01)
                rows += [f"{learner},{n},{fold},{seed},{subset + rng.normal(0, 0.002):.6f}" for seed in range(3)]
    path = tmp_path / "runs.csv"
    path.write_text("learner,n,fold,seed,error\n" + "\n".join(rows) + "\n")
    means = cw.fit_learning_curves(cw.load_measurements(path).subset_means())
    wanted = cw.compare_learning_curves(means["a"], means["b"])
    found = call("learning", "compare", path, "--json")
    assert found.document["pvalue"] == pytest.approx(wanted.pvalue)
    assert found.document["error_difference"]["high"] == pytest.approx(wanted.error_difference.high)
    for command in ("compare", "fit", "rank"):
        said = call("learning", command, path)
        assert "note: 24 training subsets with several runs (seeds) each: their mean counts as one run" in said.err
        assert "subset_means" not in said.out + said.err
    assert any("24 training subsets" in text for text in call("learning", "fit", path, "--json").document["notes"])


def test_a_target_of_zero_is_refused(call, errors):
    done = call("learning", "fit", errors, "--reach", "0")
    assert done.code == 2
    assert "--reach 0 must be an error above 0" in words(done.err)


def test_predictions_give_the_mean_of_runs_and_one_new_run(call, errors):
    row = call("learning", "fit", errors, "--form", "auto", "--predict", "3000", "--json").document["predictions"][0]
    curve = cw.fit_learning_curves(cw.load_measurements(errors), form="auto")[row["learner"]]
    many, one = (curve.band([3000], runs=runs) for runs in (float("inf"), 1))
    assert (row["mean_low"], row["low"]) == pytest.approx((many["low"][0], one["low"][0]))
    shown = call("learning", "fit", errors, "--form", "auto", "--predict", "3000").out
    assert "error (mean of runs)   error (one new run)" in shown
    assert "e_N (mean of runs)" in shown


@pytest.mark.parametrize("markup", ["latex", "markdown", "text"])
def test_tables_for_papers_name_their_intervals(call, errors, markup):
    out = call("learning", "fit", errors, "--table", markup).out
    note = {
        "latex": r"\par{\footnotesize Error $e_N$ and data-reliance $\beta_N$ (95\% confidence intervals)\par}",
        "markdown": "\n\nError e_N and data-reliance β_N (95% confidence intervals)\n",
        "text": "\n\nError e_N and data-reliance β_N (95% confidence intervals)\n",
    }[markup]
    assert note in out
    assert out.startswith("% needs \\usepackage{booktabs}\n\\begin{tabular}") == (markup == "latex")
    curves = cw.fit_learning_curves(cw.load_measurements(errors))
    assert curves.table(markup) + "\n" == out


def test_the_example_of_fit_extrapolates_by_the_form_for_it(call):
    text = words(call("learning", "fit", "--help").out)
    assert "--form auto --predict 3000,6000" in text


def test_the_budget_of_a_score_is_headed_score(call: Any, tmp_path: Path) -> None:
    table = tmp_path / "rewards.csv"
    table.write_text(
        "n,reward\n" + "".join(f"{n},{30 - 20 * n**-0.5 + 0.01 * (n % 3)}\n" for n in (100, 200, 400, 800))
    )
    done = call("learning", "fit", table, "--unit", "score", "--value-column", "reward", "--cost-per-sample", "0.5")
    heading = next(line for line in done.out.splitlines() if "gain per cost" in line)
    assert "score" in heading
    assert "error" not in heading


@pytest.fixture
def rewards(tmp_path: Path) -> Path:
    table = tmp_path / "rewards.csv"
    rows = [(k, n, s) for k in "ab" for n in (100, 200, 400, 800) for s in range(3)]
    lines = [f"{k},{n},{s},{30 - 2 * (k == 'b') - 20 * n**-0.5 + 0.02 * s:.4f}\n" for k, n, s in rows]
    table.write_text("learner,n,seed,reward\n" + "".join(lines))
    return table


def test_the_legend_says_that_a_score_falls_with_less_data(call: Any, rewards: Path) -> None:
    done = call("learning", "fit", rewards, "--unit", "score", "--value-column", "reward")
    text = " ".join(done.out.split())
    assert "how much it would fall with a quarter of the data" in text
    assert "the fall is larger than β_N" in text
    done = call("learning", "plan", rewards, "--unit", "score", "--value-column", "reward", "--learner", "a")
    assert "interval of the score at n = 800" in " ".join(done.out.split())


def test_a_score_that_falls_with_more_data_is_said_to_fall() -> None:
    n = np.repeat([100.0, 200.0, 400.0, 800.0], 3)
    value = 10 + 20 * n**-0.5 + np.tile([0.0, 0.01, 0.02], 4)
    with pytest.warns(cw.CurvewiseWarning, match="Score falls with more data") as caught:
        cw.fit_learning_curve(n, value, unit="score", higher_is_better=True)
    assert not any("Error" in str(w.message) or "higher_is_better=True" in str(w.message) for w in caught)


def test_a_score_levels_off_below_a_target() -> None:
    answer = cw.learning.SamplesToReach(
        learner="a",
        error=9.0,
        estimate=np.inf,
        low=2e4,
        high=np.inf,
        level=0.95,
        probability_never=0.56,
        kind="confidence",
        unit=Unit("score", True),
        curve_reaches=1e5,
    )
    assert "the chance that it levels off below is 56%" in answer.summary()
