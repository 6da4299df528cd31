"""Failed runs of a store: left out, counted, and named where nothing else is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.cli.console import in_options

SIZES = (50, 100, 200, 400)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Runs of net, of which one failed, of tree, and of cmd, which all failed."""
    for learner, level in (("net", 0.1), ("tree", 0.2), ("cmd", 0.3)):
        for n in SIZES:
            for fold in (0, 1):
                failed = learner == "cmd" or (learner, n, fold) == ("net", 50, 1)
                ended: dict[str, Any] = {"error": "ValueError: no"} if failed else {}
                value = level + 1.5 * n**-0.5 + 0.01 * fold + 1e-5 * n * (1 + fold)
                at = {"learner": learner, "n": n, "fold": fold, "seed": fold}
                cw.write_run(tmp_path / "runs", at, metrics={"error": value}, **ended)
    return tmp_path / "runs"


def said(done: Any) -> str:
    return " ".join((done.out + done.err).replace("│", " ").split())


def test_validate_leaves_failed_runs_out(call: Any, store: Path) -> None:
    done = call("learning", "validate", store)
    assert done.code == 0
    assert "9 of 24 runs failed and are left out (" in said(done)


def test_validate_where_all_runs_failed(call: Any, store: Path) -> None:
    done = call("learning", "validate", store, "--where", "learner=cmd")
    assert done.code != 0
    assert "runs: all 8 runs failed." in said(done)


def test_failed_runs_of_a_store_stay_failed_beside_a_table(call: Any, store: Path) -> None:
    table = store.parent / "more.csv"
    table.write_text("learner,n,error\n" + "".join(f"oak,{n},{0.1 + n**-0.5}\n" for n in SIZES))
    done = call("learning", "fit", store, table, "--learner", "net", "--learner", "oak")
    assert done.code == 0
    assert "1 of 12 runs failed and are left out (net)" in said(done)
    reversed_order = call("learning", "fit", table, store, "--learner", "net", "--learner", "oak")
    assert "1 of 12 runs failed and are left out (net)" in said(reversed_order)


def test_a_frame_with_a_status_is_fitted_as_measurements_are(store: Path) -> None:
    m = cw.load_measurements(store)
    with pytest.warns(cw.CurvewiseWarning):
        curves = cw.fit_learning_curves(m)
    with pytest.warns(cw.CurvewiseWarning):
        framed = cw.fit_learning_curves(m.columns())
    for found in (curves, framed):
        assert any(w.startswith("9 of 24 runs failed and are left out (") for w in found.warnings)
    assert set(framed.curves) == set(curves.curves) == {"net", "tree"}
    assert framed["net"].error_at(400) == curves["net"].error_at(400)
    assert framed.failures == curves.failures == {"cmd": "all its runs failed (8)."}
    assert curves.curve_warnings[0] == "cmd could not be fitted: all its runs failed (8)."


def test_values_that_are_nan_name_the_option_that_drops_them() -> None:
    with pytest.raises(cw.InputError, match="drop_failed=True") as caught:
        cw.fit_learning_curve([10, 20], [0.5, np.nan])
    assert "--drop-failed" in in_options(caught.value.message)


def test_failed_runs_do_not_share_a_subset() -> None:
    columns: dict[str, Any] = {"learner": np.array(["a"] * 3), "n": np.array([10.0, 10.0, 20.0])}
    labels = {"fold": np.array([0, 0, 0])}
    assert cw.Measurements(**columns, error=np.array([0.5, np.nan, 0.3]), labels=labels).shared_subsets == 0
    assert cw.Measurements(**columns, error=np.array([0.5, 0.4, 0.3]), labels=labels).shared_subsets == 1


def test_status_and_run_of_a_store_are_not_offered_as_learners(store: Path) -> None:
    assert not any("kept as labels" in text for text in cw.load_measurements(store).notes)


@pytest.mark.parametrize(("option", "other"), [("--a", "--b"), ("--b", "--a")])
def test_compare_names_the_option_whose_runs_all_failed(call: Any, store: Path, option: str, other: str) -> None:
    done = call("learning", "compare", store, option, "cmd", other, "tree")
    assert done.code != 0
    assert f"{option} cmd: could not be fitted: all its runs failed (8)." in said(done)


def test_a_chance_that_cannot_be_blames_the_option(call: Any, errors: Path) -> None:
    done = call("learning", "fit", errors, "--chance", 90)
    assert done.code != 0
    assert "--chance 90.0: must be a fraction from 0 to 1" in said(done)
    assert f"{errors}:" not in done.err


def test_advice_near_chance_names_an_option_of_the_command_line() -> None:
    with pytest.warns(cw.CurvewiseWarning):
        curve = cw.fit_learning_curve([25, 50, 100, 200, 400], [0.89, 0.88, 0.7, 0.5, 0.4], chance=0.9, form="auto")
    (near,) = [w for w in curve.warnings if "a tenth of chance" in w]
    assert "(largest=3)" in near
    assert "(--largest 3)" in in_options(near)
