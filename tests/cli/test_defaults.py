"""One default, in Python and on the command line: commands against the functions behind them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from cyclopts import App

import curvewise as cw
from curvewise.cli.app import app

READING = "learning:load_measurements"
FITTING = "learning:fit_learning_curves"
RUNS, LAW = "scaling:load_scaling_runs", "scaling:fit_scaling_law"
EXAMINED = (
    "measure_accuracy_distribution measure_seed_luck measure_calibration measure_disagreement "
    "measure_ensemble measure_dependent_pairs measure_bipartitions"
)
BEHIND: dict[str, tuple[str, ...]] = {
    "learning fit": (READING, FITTING, "learning:plot_learning_curves"),
    "learning compare": (READING, FITTING, "learning:compare_learning_curves"),
    "learning plan": (READING, FITTING, "learning:plan_sizes"),
    "learning rank": (READING, FITTING, "learning:rank_learners"),
    "learning validate": (READING, "learning:leave_one_size_out"),
    "learning stability": (READING, "learning:measure_stability", "learning.plot:plot_stability"),
    "learning check": (READING, "learning:check_variance_model"),
    "variance decompose": (
        "variance:load_predictions",
        "variance:load_scores",
        "variance:decompose_variance",
        "variance:decompose_totals",
    ),
    "variance examine": ("variance:load_predictions", *(f"variance:{name}" for name in EXAMINED.split())),
    "variance compare": (
        "variance:load_predictions",
        "variance:load_scores",
        "variance:compare_runs",
        "variance:compare_trainings",
    ),
    "variance plan": ("variance:load_predictions", "variance:plan_runs"),
    "variance sweep": ("variance:load_predictions", "variance:measure_sweep"),
    "variance twins": ("variance:load_predictions", "variance:measure_twins"),
    "variance test-sets": ("variance:load_predictions", "variance:compare_test_sets"),
    "response measure": ("response:measure_response",),
    "response judge": ("response:load_corpus", "response:judge_measures", "response:cmi_score"),
    "response invariance": ("study:judge_invariance", "study:measure_invariance"),
    "response measures": ("response:measure_model",),
    "response perturbations": (),
    "transfer measure": ("transfer:load_risks", "study:transfer_risks", "transfer:measure_transfer"),
    "transfer tasks": ("transfer:load_risks", "study:transfer_risks", "transfer:rank_tasks"),
    "transfer blind": ("transfer:blind_guess",),
    "transfer wins": ("transfer:win_rate",),
    "transfer images": ("study:predicted_images",),
    "ranking rank": ("ranking:rank_checkpoints", "ranking.rank:RankSettings"),
    "ranking judge": ("ranking:load_checkpoint_scores", "ranking:judge_rankings"),
    "ranking measures": (),
    "evals show": ("evals:load_evals",),
    "evals score": ("evals:load_evals", "evals:score_evals", "evals:measure_passes"),
    "evals compare": ("evals:load_evals", "evals:compare_evals", "evals.plot:plot_eval_comparison"),
    "evals rank": ("evals:load_evals", "evals:rank_models", "evals.plot:plot_leaderboard"),
    "evals plan": ("evals:load_evals", "evals:plan_evals", "evals.plot:plot_eval_plan"),
    "scaling fit": (RUNS, LAW, "scaling.plot:plot_scaling_law"),
    "scaling optimal": (RUNS, LAW, "scaling:ScalingLaw.compute_optimal", "scaling.plot:plot_scaling_law"),
    "scaling isoflops": (RUNS, "scaling:fit_isoflops"),
    "scaling backtest": (RUNS, LAW, "scaling:ScalingLaw.backtest"),
    "scaling plan": (RUNS, LAW, "scaling:plan_scaling_runs"),
    "scaling compare": (RUNS, "scaling:compare_scaling_laws"),
    "scaling downstream": (RUNS, "scaling:predict_downstream"),
    "scaling tuned": ("scaling:load_trials", "scaling:compare_tuned", "scaling:expected_best"),
    "study new": ("study.commands:starter_text",),
    "study plan": ("study:Study.plan",),
    "study run": ("study:Study.run", "study.run.drive:run_local", "study.run.ray:run_ray"),
    "study submit": ("study.run.slurm:slurm_script",),
    "study status": (),
    "study report": ("report.study:study_report",),
    "store list": (),
    "store verify": ("store:verify_store",),
    "store export": ("store:export_store",),
    "demo": (),
}
"""Every command, and the functions whose arguments its options are."""

CALLED: dict[str, dict[str, str]] = {
    "": {"rng": "seed", "value": "value_column", "forms": "form"},
    **{
        k: {"unit": "", "higher_is_better": ""}
        for k in (FITTING, "learning:leave_one_size_out", "learning:measure_stability")
    },
    "transfer:load_risks": {k: f"{k}_column" for k in ("task", "method", "n", "risk", "seed", "fold")},
    "ranking:load_checkpoint_scores": {"accuracies": "accuracy", "accuracy": "accuracy_column"},
    "response:load_corpus": {"hyperparameters": "hyperparameter", "measures": "measure"},
    "study:transfer_risks": {"metric": "risk_column"},
    "scaling:load_scaling_runs": {"columns": "column"},
    "scaling:fit_isoflops": {"budgets": "nominal"},
    "evals:load_evals": {"models": "model", "columns": "column"},
    "transfer:measure_transfer": {"methods": "method", "tasks": "task"},
    "transfer:rank_tasks": {"tasks": "task"},
    "study:predicted_images": {"methods": "method"},
    "transfer:blind_guess": {"test_targets": "test"},
    "ranking:judge_rankings": {"table": ""},
    "response:measure_response": {"labels": ""},
}
"""Arguments that have another name as options."""

DERIVED = {
    # An option that is absent means the same as the default of the function.
    ("learning fit", "learning:plot_learning_curves", "x"),
    # Scores are read into fractions, which is the default of the functions.
    ("variance decompose", "variance:decompose_totals", "unit"),
    ("variance compare", "variance:compare_trainings", "unit"),
    # Three states: absent, the name of the column says so.
    ("variance decompose", "variance:decompose_totals", "higher_is_better"),
    ("variance compare", "variance:compare_runs", "higher_is_better"),
    ("variance compare", "variance:compare_trainings", "higher_is_better"),
    # Passed only where the option is given.
    *(("study run", "study.run.ray:run_ray", name) for name in ("cpus", "gpus")),
    ("study submit", "study.run.slurm:slurm_script", "sbatch"),
    ("ranking judge", "ranking:judge_rankings", "k"),
    ("transfer tasks", "transfer:rank_tasks", "levels"),
    ("response measures", "response:measure_model", "batch"),
    # By default the coordinate of a store that is swept; a hyperparameter without one.
    ("variance sweep", "variance:measure_sweep", "name"),
    # A layer is written as a text.
    ("response measures", "response:measure_model", "layer"),
}
"""Options whose default is worded otherwise; answers are compared below."""


def commands(group: App = app, name: str = "") -> Iterator[tuple[str, Callable[..., Any]]]:
    for word, sub in group.resolved_commands().items():
        if word.startswith("-"):
            continue
        path = f"{name} {word}".strip()
        if sub.default_command is not None:
            yield path, sub.default_command
        else:
            yield from commands(sub, path)


def options(command: Callable[..., Any]) -> dict[str, Any]:
    """Defaults of a command by option; those of its groups of options among them."""
    hints = get_type_hints(command, include_extras=False)
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kinds = [hints[name], *get_args(hints[name])]
        group = next((k for k in kinds if is_dataclass(k)), None)
        if group is None:
            found[name] = parameter.default
            continue
        for field in fields(group):
            made = field.default_factory
            found[field.name] = field.default if made is MISSING else made()
    return found


def function(name: str) -> Callable[..., Any]:
    module, _, path = name.partition(":")
    found: Any = import_module(f"curvewise.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    return found


def plain(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 1:  # an option that may have several values
        return value[0]
    return None if isinstance(value, list | tuple | str) and not len(value) else value


FOUND = dict(commands())


def test_every_command_is_compared():
    assert set(FOUND) == set(BEHIND)


@pytest.mark.parametrize("name", BEHIND)
def test_defaults_of_commands_are_those_of_the_functions(name):
    pytest.importorskip("torch") if name.startswith(("response", "ranking rank")) else None
    given, differ = options(FOUND[name]), []
    for behind in BEHIND[name]:
        renamed = {**CALLED[""], **CALLED.get(behind, {})}
        for argument, parameter in inspect.signature(function(behind)).parameters.items():
            option = renamed.get(argument, argument)
            if option not in given or (name, behind, argument) in DERIVED:
                continue
            ours, theirs = plain(given[option]), plain(parameter.default)
            if inspect.Parameter.empty not in (ours, theirs) and ours != theirs:
                differ.append(f"{option}: {ours!r}, but {behind} has {theirs!r}")
    assert not differ


def same(document: Any, result: Any) -> bool:
    """Whether a JSON document holds the numbers of a result."""
    for key, value in result.to_dict().items():
        if isinstance(value, list) and value and all(isinstance(v, float) for v in value):
            if not np.allclose(document[key], value, equal_nan=True):
                return False
        elif isinstance(value, str | int | bool) and document[key] != value:
            return False
    return True


@pytest.fixture
def curves(errors):
    return cw.fit_learning_curves(cw.load_measurements(errors))


def test_learning_commands_answer_as_the_functions_do(call, errors, curves):
    a, b = curves
    assert same(call("learning", "rank", errors, "--json").document, cw.rank_learners(curves))
    at = ("--at", "5748", "--json")
    assert same(call("learning", "rank", errors, *at).document, cw.rank_learners(curves, at=5748))
    compared = call("learning", "compare", errors, "--json").document
    assert same(compared, cw.compare_learning_curves(a, b))
    planned = call("learning", "plan", errors, "--learner", a.learner, "--json").document
    assert same(planned, cw.plan_sizes(a))


def test_ranking_beyond_the_data_by_power_laws_is_warned_of(call, errors, curves):
    assert any("form='auto'" in text for text in cw.rank_learners(curves, at=5748).warnings)
    assert not any("form='auto'" in text for text in cw.rank_learners(curves).warnings)
    assert "--form auto" in call("learning", "rank", errors, "--at", "5748").err
    auto = call("learning", "rank", errors, "--at", "5748", "--form", "auto")
    assert "beyond the sizes measured" not in auto.err
