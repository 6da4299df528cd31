"""A store as one table, whatever its runs are called."""

from __future__ import annotations

import csv
import json
import sys
import traceback

import numpy as np
import pandas as pd
import pytest

import curvewise as cw
from curvewise.errors import InputError, MissingDependencyError
from curvewise.store.read import list_runs
from curvewise.store.tables import export_store
from curvewise.store.write import write_run

HOSTILE = ["a,b", 'say "hi"', "two\nlines", "\r", "=cmd|' /C calc'!A0", "é∞", "", " x ", "'", ";\t"]


def read(path):
    """Read a table as a stranger would: pandas, or the csv module, nothing of ours."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_dict("records")
    if path.suffix == ".json":
        return json.loads(path.read_text(), parse_constant=pytest.fail)
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_every_run_is_a_row(tmp_path, ending):
    store = tmp_path / "store"
    for seed in range(3):
        coordinates = {"learner": "a", "n": 100, "seed": seed, "training": {"adam": {"rate": 0.5}}}
        metrics = {"error": 0.25 * seed, "seconds": 2, "loss": float("inf")}
        write_run(store, coordinates, [1], metrics, environment={"device": "cpu"}, notes=("slow",))
    error = "\nValueError: no luck\n  at line 3"
    write_run(store, {"learner": "b", "sizes": [1, 2]}, error=error)
    path = export_store(store, tmp_path / f"runs.{ending}")
    rows = {row["id"]: row for row in read(path)}
    runs = {run.id: run for run in list_runs(store)}
    assert rows.keys() == runs.keys()
    for identity, row in rows.items():
        run = runs[identity]
        assert row["status"] == run.status
        assert row["learner"] == run.coordinates["learner"]
        assert row["environment.packages.numpy"] == np.__version__
        if run.status == "done":
            assert int(row["seed"]) == run.coordinates["seed"]
            assert float(row["training.adam.rate"]) == 0.5
            assert float(row["error"]) == run.metrics["error"]
            assert float(row["seconds"]) == 2
            assert row["environment.device"] == "cpu"
            assert row["notes"].startswith("slow")
            assert row["loss"] is None or row["loss"] == "" or np.isnan(row["loss"])
        else:
            assert row["failure"] == "ValueError: no luck"
            assert row["sizes"] == "[1, 2]"


def test_the_failure_of_a_traceback_is_its_reason(tmp_path):
    try:
        int("many")
    except ValueError:
        write_run(tmp_path / "store", {"learner": "a"}, error=traceback.format_exc())  # as a study does
    (row,) = read(export_store(tmp_path / "store", tmp_path / "runs.csv"))
    assert row["failure"] == "ValueError: invalid literal for int() with base 10: 'many'"


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_hostile_names_stay_what_they_are(tmp_path, ending):
    for name in HOSTILE:
        write_run(tmp_path / "store", {"learner": name, name: name}, metrics={"error": 0.5})
    rows = read(export_store(tmp_path / "store", tmp_path / f"x.{ending}"))
    formula = "=+-@\t\r\n" if ending == "csv" else ()  # what a spreadsheet would compute
    wanted = [f"'{name}" if name[:1] and name[0] in formula else name for name in HOSTILE]
    assert sorted(row["learner"] for row in rows) == sorted(wanted)
    for row in rows:
        assert row[row["learner"]] == row["learner"]


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_names_and_types_that_clash(tmp_path, ending):
    store = tmp_path / "store"
    coordinates = {"id": "mine", "loss": "hinge", "a": {"b": 1}, "a.b": 2, "failure": 3, "big": 2**70}
    write_run(store, coordinates, metrics={"loss": 0.5, "error": 1})
    write_run(store, {"fold": 1, "rate": 1, "flag": True}, metrics={"loss": 0.25})
    write_run(store, {"fold": "x", "rate": 0.5, "flag": False, "name": "\ud800"})
    rows = read(export_store(store, tmp_path / f"x.{ending}"))
    row = next(r for r in rows if r["loss"] == "hinge")
    assert row["coordinates.id"] == "mine"
    assert float(row["metrics.loss"]) == 0.5
    assert float(row["a.b"]) == 1
    assert float(row["coordinates.a.b"]) == 2
    assert float(row["coordinates.failure"]) == 3
    assert int(row["big"]) == 2**70
    assert {float(r["metrics.loss"] or 0) for r in rows} >= {0.5, 0.25}
    assert sorted(r["fold"] for r in rows if r["fold"] in ("1", "x")) == ["1", "x"]
    rates = [float(r["rate"] or "nan") for r in rows]
    assert sorted(rate for rate in rates if rate == rate) == [0.5, 1]


def test_the_table_feeds_the_lenses(tmp_path):
    for n in (50, 100, 200, 400):
        for seed in range(3):
            at = {"learner": "a", "n": n, "seed": seed}
            write_run(tmp_path / "store", at, metrics={"error": 0.1 + n**-0.5, "seconds": seed})
    m = cw.load_measurements(export_store(tmp_path / "store", tmp_path / "x.csv"))
    assert len(m) == 12
    assert sorted(set(m.error.tolist())) == pytest.approx([0.15, 0.1 + 200**-0.5, 0.2, 0.1 + 50**-0.5])


def test_the_hash_of_a_subset_is_not_taken_for_a_split(tmp_path):
    """Readers of tables know a column called subset as the one that says train or test."""
    for n in (50, 100, 200, 400):
        for fold in range(3):
            at = {"learner": "a", "n": n, "fold": fold, "subset": f"{n:08x}{fold:08x}"}
            write_run(tmp_path / "store", at, metrics={"error": 0.1 + n**-0.5})
    path = export_store(tmp_path / "store", tmp_path / "x.csv")
    assert "subset" not in read(path)[0]
    assert {row["subset_digest"] for row in read(path)} == {
        run.coordinates["subset"] for run in list_runs(tmp_path / "store")
    }
    m = cw.load_measurements(path)
    assert len(m) == 12
    assert sorted(set(m.n.tolist())) == [50, 100, 200, 400]


def test_a_digest_that_has_its_name_already(tmp_path):
    write_run(tmp_path / "store", {"subset_digest": "mine", "subset": "hash"})
    (row,) = read(export_store(tmp_path / "store", tmp_path / "x.csv"))
    assert sorted(v for k, v in row.items() if "subset" in k) == ["hash", "mine"]


def test_numbers_beyond_floats_beside_floats(tmp_path):
    write_run(tmp_path / "store", {"rate": 10**400})
    write_run(tmp_path / "store", {"rate": 0.5}, environment={"packages": "numpy"})
    rows = read(export_store(tmp_path / "store", tmp_path / "x.csv"))
    assert sorted(row["rate"] for row in rows) == ["0.5", str(10**400)]


def test_files_are_not_overwritten_by_accident(tmp_path):
    write_run(tmp_path / "store", {"n": 1})
    path = tmp_path / "x.csv"
    path.write_text("mine")
    with pytest.raises(InputError, match="overwrite=True"):
        export_store(tmp_path / "store", path)
    assert path.read_text() == "mine"
    export_store(tmp_path / "store", path, overwrite=True)
    assert path.read_text().startswith("id,status,n,")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["store", "x.csv"]
    for target, message in [(tmp_path / "x.xlsx", "must end in"), (tmp_path / "none" / "x.csv", "Make it first")]:
        with pytest.raises(InputError, match=message):
            export_store(tmp_path / "store", target)
    with pytest.raises(InputError, match="holds no runs"):
        export_store(tmp_path / "empty", tmp_path / "y.csv")


def test_only_parquet_needs_pyarrow(tmp_path, monkeypatch):
    write_run(tmp_path / "store", {"n": 1})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"curvewise\[parquet\]"):
        export_store(tmp_path / "store", tmp_path / "x.parquet")
    assert not (tmp_path / "x.parquet").exists()
    export_store(tmp_path / "store", tmp_path / "x.csv")
