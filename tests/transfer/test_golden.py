"""The published numbers, from the losses that the authors released."""

from __future__ import annotations

import csv
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

import curvewise
from curvewise.errors import CurvewiseWarning
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.result import TransferResult
from curvewise.transfer.risks import Control, TransferRisks

TASKS = ("normal", "depth", "imgnet_cls")
PUBLISHED = {  # Atanov et al. 2022, table 1: surface normals, depth, ImageNet
    "swav": (0.297, 0.379, 0.606),
    "moco": (0.302, 0.375, 0.330),
    "simclr": (0.367, 0.271, 0.520),
    "simsiam": (0.232, 0.235, 0.185),
    "barlow_twins": (0.294, 0.305, 0.580),
    "pirl": (0.230, 0.115, 0.252),
    "jigsaw": (0.257, 0.304, 0.249),
    "color": (0.122, 0.115, 0.058),
    "swav_task": (0.473, 0.431, None),
    "moco_task": (0.382, 0.358, None),
}
# The file holds sizes between those of the table.
FOUR = [100, 1000, 10000, 100000]
SIZES = {"normal": FOUR, "depth": FOUR}

pytestmark = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


@pytest.fixture(scope="module")
def table(data_dir: Path) -> dict[str, list]:
    path = data_dir / "transfer" / "transfer_controls_losses.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        "task": [r["domain"] for r in rows],
        "method": [r["method"] for r in rows],
        "n": [float(r["train_size"]) for r in rows],
        "loss": [float(r["test_loss"]) for r in rows],
        "seed": [r["seed"] for r in rows],
    }


@pytest.fixture(scope="module")
def measured(table: dict[str, list]) -> dict[str, TransferResult]:
    kept = {"blind": "blind-guess", "maximal": "gold", "sizes": SIZES, "methods": list(PUBLISHED)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        return {s: measure_transfer(table, seeds=s, **kept) for s in ("mean", "pooled")}


def as_risks(table: dict[str, list]) -> TransferRisks:
    columns = {k: np.array(v) for k, v in table.items()}
    control = np.isin(columns["method"], ["blind-guess", "gold"])

    def of(name: str) -> dict[str, Control]:
        where = columns["method"] == name
        return {str(t): Control(r) for t, r in zip(columns["task"][where], columns["loss"][where], strict=True)}

    return TransferRisks(
        tasks=columns["task"][~control],
        methods=columns["method"][~control],
        n=columns["n"][~control],
        risk=columns["loss"][~control],
        seeds=columns["seed"][~control],
        blind=of("blind-guess"),
        maximal=of("gold"),
    )


def published() -> dict[tuple[str, str], float]:
    return {
        (task, method): value
        for method, values in PUBLISHED.items()
        for task, value in zip(TASKS, values, strict=True)
        if value is not None
    }


def test_pooled_seeds_give_every_published_value(measured: dict[str, TransferResult]) -> None:
    got = {key: measured["pooled"].improvement(*key).cci.estimate for key in published()}
    assert len(got) == 28
    assert {k: round(v, 3) for k, v in got.items()} == published()


def test_the_call_of_the_page_gives_every_published_value(table: dict[str, list]) -> None:
    """The row of docs/papers/transfer.toml, word for word."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "papers" / "transfer.toml").read_text("utf-8")
    (row,) = [r for r in tomllib.loads(text)["item"] if r["where"] == "Table 1, normals, depth and ImageNet"]
    found = eval(row["call"], {"cw": curvewise, "losses": table})
    got = {key: round(found.improvement(*key).cci.estimate, 3) for key in published()}
    assert got == published()


def test_risks_with_their_controls_give_the_same(table: dict[str, list], measured: dict[str, TransferResult]) -> None:
    found = measure_transfer(as_risks(table), seeds="pooled", sizes=SIZES, methods=list(PUBLISHED))
    np.testing.assert_array_equal(found.columns()["cci"], measured["pooled"].columns()["cci"])
    np.testing.assert_array_equal(found.columns()["high"], measured["pooled"].columns()["high"])


def test_a_frame_is_read_like_a_dictionary(table: dict[str, list], measured: dict[str, TransferResult]) -> None:
    pd = pytest.importorskip("pandas")
    found = measure_transfer(
        pd.DataFrame(table), blind="blind-guess", maximal="gold", sizes=SIZES, methods=list(PUBLISHED)
    )
    assert found.columns()["method"] == measured["mean"].columns()["method"]
    np.testing.assert_array_equal(found.columns()["cci"], measured["mean"].columns()["cci"])


def test_scratch_is_no_better_than_itself_only_with_averaged_seeds(table: dict[str, list]) -> None:
    rows = [i for i, m in enumerate(table["method"]) if m in ("scratch", "blind-guess", "gold")]
    again = [i for i in rows if table["method"][i] == "scratch"]
    both = {k: [v[i] for i in (*rows, *again)] for k, v in table.items()}
    both["method"][len(rows) :] = ["again"] * len(again)
    found = {
        seeds: measure_transfer(both, blind="blind-guess", maximal="gold", seeds=seeds) for seeds in ("mean", "pooled")
    }
    for task in TASKS:
        assert found["mean"].improvement(task, "again").cci.estimate == 0.0
        assert (found["mean"].improvement(task, "again").gain == 0.0).all()
        assert abs(found["pooled"].improvement(task, "again").cci.estimate) > 1e-4


def test_averaging_changes_only_methods_with_several_runs(measured: dict[str, TransferResult]) -> None:
    mean, pooled = measured["mean"], measured["pooled"]
    for row in mean.improvements:
        curve = mean.curve(row.task, row.method)
        one = pooled.improvement(row.task, row.method).cci.estimate
        if curve.runs.max() == 1:
            assert row.cci.estimate == pytest.approx(one, nan_ok=True)
        elif row.method in ("swav_task", "moco_task") and row.task != "imgnet_cls":
            assert row.cci.estimate != pytest.approx(one, abs=1e-4)


def test_what_is_odd_in_the_file_is_said(table: dict[str, list]) -> None:
    chosen = ["swav", "pirl", "swav_orig", "simclr"]
    with pytest.warns(CurvewiseWarning) as caught:
        found = measure_transfer(table, blind="blind-guess", maximal="gold", sizes=SIZES, methods=chosen)
    said = [str(w.message) for w in caught]
    assert any("swav_orig: no size shared with scratch" in text for text in said)
    assert any("CCIs rest on different sizes" in text for text in said)
    assert any("depth: worse than the blind guess: pirl at n = 100." in w for w in found.warnings)
    assert any("normal: better than maximal supervision: simclr at n = 100,000" in w for w in found.warnings)


def test_the_table_looks_like_the_published_one(measured: dict[str, TransferResult]) -> None:
    head, _, *lines = measured["pooled"].table().splitlines()
    assert [cell.strip() for cell in head.strip("|").split("|")] == ["Method", "depth", r"imgnet\_cls", "normal"]
    row = next(line for line in lines if r"swav\_task" in line)
    assert row.count("**0.473**") == 1
    assert row.count("**0.431**") == 1
    assert "**0.606**" in next(line for line in lines if line.startswith("| swav "))
