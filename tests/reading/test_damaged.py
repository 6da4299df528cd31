"""Every loader gives a result, or says in a few words what is wrong: whatever the file holds."""

from __future__ import annotations

import gzip
import io
import json
import random
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from damaging import WORDS, damaged, survives

import curvewise as cw
from curvewise.errors import InputError
from curvewise.learning.load import load_measurements
from curvewise.ranking.load import load_checkpoint_scores
from curvewise.reading import arrays as _arrays
from curvewise.reading import table as _files
from curvewise.response.load import load_corpus
from curvewise.transfer.load import load_risks
from curvewise.variance.load import load_predictions
from curvewise.variance.scores import load_scores

pytestmark = pytest.mark.filterwarnings("ignore")

MEASUREMENTS = {
    "learner": ["a", "a", "b", "b"],
    "n": [10, 20, 10, 20],
    "error": [0.5, 0.4, 0.3, 0.25],
    "seed": [0, 0, 0, 0],
}
TABLES: dict[str, dict[str, list[Any]]] = {
    "measurements": MEASUREMENTS,
    "scores": MEASUREMENTS,
    "risks": {
        "method": ["blind", "gold", "scratch", "scratch", "new", "new"],
        "n": [None, None, 10, 20, 10, 20],
        "error": [0.9, 0.1, 0.7, 0.5, 0.6, 0.4],
    },
    "pool": {
        "model": ["a", "b", "c"] * 2,
        "dataset": ["t"] * 3 + ["u"] * 3,
        "accuracy": [0.7, 0.8, 0.9, 0.5, 0.6, 0.7],
        "logme": [1.0, 2.0, 3.0, 2.0, 3.0, 1.0],
    },
    "predictions": {"run": [0, 0, 1, 1], "example": [0, 1, 0, 1], "pred": [1, 0, 1, 1], "label": [1, 0, 1, 0]},
    "corpus": {"hp.depth": [1, 1, 2, 2], "gap": [0.1, 0.2, 0.3, 0.4], "measure.norm": [1.0, 2.0, 3.0, 4.0]},
    "data": {"a": [1.0, 2.0, 3.0, 4.0], "label": [0, 1, 0, 1]},
}
LOADERS: dict[str, Callable[[Any], Any]] = {
    "measurements": load_measurements,
    "scores": lambda source: load_scores(source, by="learner"),
    "risks": load_risks,
    "pool": load_checkpoint_scores,
    "predictions": load_predictions,
    "corpus": load_corpus,
    "data": cw.load_dataset,
}


def write(frame: pd.DataFrame, ending: str) -> bytes:
    if ending == "json":
        return frame.to_json(orient="records").encode()
    if ending == "jsonl":
        return frame.to_json(orient="records", lines=True).encode()
    if ending == "parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer)
        return buffer.getvalue()
    text = frame.to_csv(index=False, sep="\t" if ending == "tsv" else ",").encode()
    return gzip.compress(text, mtime=0) if ending.endswith(".gz") else text


ENDINGS = ("csv", "tsv", "json", "jsonl", "csv.gz", "parquet")


@pytest.mark.parametrize("kind", LOADERS)
def test_damaged_tables(tmp_path, kind):
    for ending in ENDINGS if kind != "data" else ("csv", "tsv", "parquet"):
        path = tmp_path / f"x.{ending}"
        path.write_bytes(write(pd.DataFrame(TABLES[kind]), ending))
        assert survives(LOADERS[kind], path)
        for made in damaged(path.read_bytes(), 20):
            path.write_bytes(made)
            survives(LOADERS[kind], path)


def odd(frame: pd.DataFrame, rng: random.Random) -> pd.DataFrame:
    """A table with odd cells, names, rows and columns."""
    frame = frame.astype(object)
    more = ("epoch", "tags", "fold", "status", "run", "std", "runs", "variance", "metric", "split")
    for _ in range(rng.choice((1, 1, 2, 4))):
        name, row = rng.choice(list(frame.columns)), rng.randrange(len(frame))
        change = rng.randrange(5)
        if change < 2:
            frame.loc[row, name] = rng.choice(WORDS)
        elif change == 2:
            frame = frame.rename(columns={name: rng.choice((*WORDS, *more, "error (%)"))})
        elif change == 3:
            frame = pd.concat([frame, frame.iloc[[row]]], ignore_index=True)
        else:
            frame[rng.choice(more)] = [rng.choice(WORDS) for _ in range(len(frame))]
        if frame.columns.duplicated().any():
            break
    return frame


@pytest.mark.parametrize("kind", LOADERS)
def test_odd_tables(tmp_path, kind):
    rng = random.Random(0)
    for _ in range(40):
        frame = odd(pd.DataFrame(TABLES[kind]), rng)
        path = tmp_path / "x.csv"
        path.write_bytes(write(frame, "csv"))
        survives(LOADERS[kind], path)
        if kind != "data":
            survives(LOADERS[kind], frame)
            survives(LOADERS[kind], frame.to_dict("records"))


def arrays(save: Callable[..., None], **more: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, preds=np.array([[0, 1, 1], [1, 1, 0]]), labels=np.array([0, 1, 1]), **more)
    return buffer.getvalue()


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_damaged_arrays(tmp_path):
    errors = npy(np.array([[0, 1, 1], [1, 1, 0]]))
    inputs = io.BytesIO()
    np.savez(inputs, x=np.random.default_rng(0).normal(size=(6, 3)), y=np.arange(6) % 2)
    cases: list[tuple[str, bytes, Callable[[Path], Any]]] = [
        ("x.npz", arrays(np.savez_compressed), load_predictions),
        ("x.npz", arrays(np.savez), load_predictions),
        ("x.npy", errors, lambda p: load_predictions(p, axes=("runs", "examples"))),
        ("x.npz", inputs.getvalue(), cw.load_dataset),
    ]
    for name, data, load in cases:
        path = tmp_path / name
        path.write_bytes(data)
        assert survives(load, path)
        for made in damaged(data, 60):
            path.write_bytes(made)
            survives(load, path)


def test_damaged_safetensors(tmp_path):
    save = pytest.importorskip("safetensors.numpy").save
    path = tmp_path / "x.safetensors"
    preds = np.array([[0, 1, 1], [1, 1, 0]])
    path.write_bytes(save({"preds": preds, "labels": np.array([0, 1, 1])}))
    assert survives(load_predictions, path)
    for made in damaged(path.read_bytes(), 60):
        path.write_bytes(made)
        survives(load_predictions, path)


STUDY = b"""name = "a"
data = "iris"
[learners.tree]
estimator = "sklearn.tree:DecisionTreeClassifier"
max_depth = 3
[learners.bayes]
estimator = "sklearn.naive_bayes:GaussianNB"
[design]
sizes = [20, 40]
folds = [4, 2]
seeds = 1
"""


def test_damaged_studies(tmp_path):
    pytest.importorskip("sklearn")
    path = tmp_path / "study.toml"
    path.write_bytes(STUDY)
    assert survives(lambda p: cw.load_study(p).plan(measure=False), path)
    for made in damaged(STUDY, 120):
        path.write_bytes(made)
        survives(cw.load_study, path)


@pytest.mark.parametrize(
    "design",
    [
        "folds = 1000000",
        "seeds = 1000000000",
        f"seeds = {10**30}",
        "sizes = [10, 20]\nfolds = [1000000, 2]",
        "folds = 1000\nseeds = 1000",
        f"seeds = {'9' * 5000}",
    ],
)
def test_designs_of_far_too_many_runs_are_refused_at_once(tmp_path, design):
    path = tmp_path / "study.toml"
    path.write_bytes(STUDY.partition(b"[design]")[0] + f"[design]\n{design}\n".encode())
    with pytest.raises(InputError, match=r"at most 500,000|not valid TOML"):
        cw.load_study(path).plan(measure=False)


def header(shape: str, descr: str = "'<i8'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(118 if len(text) < 118 else len(text) + 1) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + b"\0" * 48


@pytest.mark.parametrize(
    "made",
    [
        header("(-1, 3)"),
        header("(-2, -3)"),
        header("(100000000, 100000)"),
        header(f"({10**30}, 0)"),
        header(f"({'9' * 5000},)"),
        header("(1000000000000,)", "'<U0'"),
        header("(2, 3)", "'O'"),
        header("(2, 3)", "[('a', '<i4'), ('b', 'O')]"),
        header("(((((1,),),),),)"),
        header("'a'"),
        b"\x93NUMPY\x09\x00",
        b"\x93NUMPY\x01\x00\xff\xff{",
    ],
)
def test_headers_that_lie_take_no_memory(tmp_path, made):
    (tmp_path / "x.npy").write_bytes(made)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("preds.npy", made)
        archive.writestr("labels.npy", npy(np.array([0, 1, 1])))
    tracemalloc.start()
    for name in ("x.npy", "x.npz"):
        with pytest.raises(InputError):
            load_predictions(tmp_path / name, axes=("runs", "examples"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25


def test_an_archive_with_something_before_it_or_a_name_twice(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"#!/bin/sh\n" + arrays(np.savez))
    with pytest.raises(InputError, match="something stands before it"):
        load_predictions(path)
    preds = npy(np.array([[0, 1, 1], [1, 1, 0]]))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("preds.npy", preds)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("preds.npy", preds)
    with pytest.raises(InputError, match=r"'preds.npy' twice"):
        load_predictions(path)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (_files, _arrays):
        monkeypatch.setattr(module, "LARGEST_ARRAYS", 1 << 20)
    monkeypatch.setattr(_files, "LARGEST_TEXT", 1 << 20)


@pytest.mark.usefixtures("small_limits")
def test_compressed_files_are_read_up_to_a_limit(tmp_path):
    rows = "learner,n,error,seed\n" + "".join(f"a,10,0.5,{i:07d}\n" for i in range(70_000))
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(rows.encode(), mtime=0))
    np.savez_compressed(tmp_path / "x.npz", errors=np.zeros((20, 100_000), dtype=np.int8))
    pytest.importorskip("pyarrow")
    many = pd.DataFrame({"n": np.full(10**5, 10), "error": np.full(10**5, 0.5)})
    many.to_parquet(tmp_path / "x.parquet", row_group_size=10**5)
    cases: list[tuple[Callable[..., Any], str]] = [
        (load_measurements, "x.csv.gz"),
        (load_scores, "x.csv.gz"),
        (load_predictions, "x.npz"),
        (load_scores, "x.parquet"),
    ]
    for load, name in cases:
        with pytest.raises(InputError, match=r"unpacks to more than .*allow_large=True"):
            load(tmp_path / name)
        load(tmp_path / name, allow_large=True)
    with pytest.raises(InputError, match="unpacks to more than"):
        cw.load_dataset(tmp_path / "x.parquet")
    from curvewise.cli import main

    assert main(["variance", "decompose", str(tmp_path / "x.npz")]) == 1
    assert main(["variance", "decompose", str(tmp_path / "x.npz"), "--allow-large"]) == 0


def test_lines_that_end_in_cr_are_lines(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"learner,n,error\ra,10,0.5\ra,20,0.4\r")
    assert load_measurements(tmp_path / "x.csv").error.tolist() == [0.5, 0.4]


@pytest.mark.parametrize("digits", [400, 4000, 5000])
def test_integers_of_thousands_of_digits(tmp_path, digits):
    number = "9" * digits
    (tmp_path / "x.csv").write_text(f"learner,n,error\na,{number},0.5\n")
    (tmp_path / "x.json").write_text(f'[{{"n": {number}, "error": 0.5}}]')
    for name in ("x.csv", "x.json"):
        with pytest.raises(InputError) as refused:
            load_measurements(tmp_path / name)
        assert len(str(refused.value)) < 500
    with pytest.raises(InputError):
        load_measurements([{"n": 10**digits, "error": 0.5}])
    with pytest.raises(InputError):
        load_measurements([{"n": 10, "error": 10**digits}])


@pytest.mark.parametrize(
    ("kind", "load"),
    [
        ("measurements", load_measurements),
        ("measurements", lambda p: load_measurements(p, columns={"value": "error", "n": "n"})),
        ("scores", lambda p: load_scores(p, value="error", by="learner")),
        ("risks", lambda p: load_risks(p, columns={"method": "method", "risk": "error"})),
        ("pool", load_checkpoint_scores),
        ("predictions", load_predictions),
        ("corpus", load_corpus),
    ],
)
def test_lists_in_other_columns_do_no_harm(tmp_path, kind, load):
    records = pd.DataFrame(TABLES[kind]).astype(object).to_dict("records")
    for i, record in enumerate(records):
        record |= {"layers": [64] * 3, "tags": ["a", "b"][: i % 3], "config": {"deep": [1, 2]}}
    for name, text in {
        "x.jsonl": "\n".join(json.dumps(r) for r in records).replace("NaN", "null"),
        "x.json": json.dumps(records).replace("NaN", "null"),
    }.items():
        (tmp_path / name).write_text(text)
        assert survives(load, tmp_path / name)


def test_lists_in_the_columns_that_are_read_are_runs(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"n": 25, "errors": [0.5, 0.4], "tags": ["a", "b", "c"]}\n')
    assert load_measurements(tmp_path / "x.jsonl").error.tolist() == [0.5, 0.4]
