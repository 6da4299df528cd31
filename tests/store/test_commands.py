"""``curvewise store``: list, verify, export."""

from __future__ import annotations

import pandas as pd
import pytest

from curvewise.store.read import list_runs
from curvewise.store.write import write_run


@pytest.fixture
def store(tmp_path):
    folder = tmp_path / "runs"
    for learner in ("a", "b\x1b[31m"):
        for n in (100, 1000):
            for seed in range(2):
                at = {"learner": learner, "n": n, "seed": seed}
                write_run(folder, at, [0, 1], {"error": 0.25}, labels=[0, 1])
    write_run(folder, {"learner": "a", "n": 100, "seed": 9}, error="no")
    write_run(folder, {"something": "else"})
    return folder


def test_list(call, store, tmp_path):
    done = call("store", "list", store)
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines()]
    assert ["a", "100", "2", "1"] in rows
    assert ["a", "1,000", "2", "0"] in rows
    assert ["–", "–", "1", "0"] in rows
    assert "\x1b" not in done.out
    counts = call("store", "list", store, "--json").document["counts"]
    assert sum(counts["done"]) + sum(counts["failed"]) == len(list_runs(store)) == 10
    assert call("store", "list", tmp_path / "none").code == 1
    assert "holds no runs" in call("store", "list", tmp_path).out


def test_verify(call, store, tmp_path):
    done = call("store", "verify", store)
    assert done.code == 0
    assert "all are intact" in " ".join(done.out.split())
    bad = next(run for run in list_runs(store) if run.status == "done" and run.arrays)
    (bad.path / "predictions.npy").write_bytes(b"\x93NUMPY")
    (bad.path / "extra").write_text("")
    (store / ".claims").mkdir()
    (store / ".claims" / "me").write_text("")
    done = call("store", "verify", store)
    assert done.code == 1
    assert f"{bad.id}/predictions.npy" in done.out
    assert "Restore it" in " ".join(done.out.split())
    assert "--remove" in done.out
    assert "belongs to no run" in done.err
    assert "1 claims: me" in done.err
    document = call("store", "verify", store, "--json").document
    assert document["sound"] is False
    assert [d["run"] for d in document["damage"]] == [bad.id]
    done = call("store", "verify", store, "--remove")
    assert done.code == 1
    assert "moved to .damaged" in " ".join(done.out.split())
    assert call("store", "verify", store).code == 0
    assert call("store", "verify", tmp_path / "none").code == 1


def test_export(call, store, tmp_path):
    for ending in ("csv", "parquet", "json"):
        path = tmp_path / f"runs.{ending}"
        assert call("store", "export", store, path).code == 0
        read = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet}[ending]
        assert len(read(path)) == 10
    done = call("store", "export", store, path)
    assert done.code == 2
    assert "--overwrite" in done.err
    assert call("store", "export", store, path, "--overwrite", "--json").document["path"] == str(path)
    assert call("store", "export", store, tmp_path / "x.xlsx").code == 2
    assert call("store", "export", store, tmp_path / "no" / "x.csv").code == 2
    assert call("store", "export", tmp_path / "none", tmp_path / "x.csv").code == 1


@pytest.mark.parametrize("command", [(), ("list",), ("verify",), ("export",)])
def test_help(call, command):
    done = call("store", *command, "--help")
    assert done.code == 0
    assert "STORE" in done.out


def test_help_needs_no_numpy(start):
    code = (
        "import sys; from curvewise.cli import main; main(['store', 'verify', '--help']);"
        "print('numpy' in sys.modules, file=sys.stderr)"
    )
    assert start("-c", code, python=True).err.strip() == "False"
