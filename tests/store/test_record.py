"""Fingerprints: equal for the same work, different for other work."""

from __future__ import annotations

import functools
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from curvewise.store.record import data_digest, describe


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(4), np.zeros(4, dtype=np.float32)),
        ([1, 2], [2, 1]),
        (["ab", "c"], ["a", "bc"]),
        (np.array(["ab", "c"], dtype=object), np.array(["a", "bc"], dtype=object)),
        ([[1], [2, 3]], [[1, 2], [3]]),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
        (pd.DataFrame({"a": ["x"]}), pd.DataFrame({"a": ["y"]})),
        (sparse.csr_matrix([[0, 1]]), sparse.csr_matrix([[1, 0]])),
        (sparse.csr_matrix((1, 2)), sparse.csr_matrix((1, 3))),
    ],
)
def test_other_data_have_another_digest(a, b):
    assert data_digest(a) == data_digest(a)
    assert data_digest(a) != data_digest(b)


def test_layout_does_not_count():
    dense = np.arange(6.0).reshape(2, 3)
    assert data_digest(dense) == data_digest(np.asfortranarray(dense))
    assert data_digest(sparse.csr_matrix(dense)) == data_digest(sparse.coo_matrix(dense))
    frame = pd.DataFrame({"a": [1.5, 2.5]})
    assert data_digest(frame) == data_digest(frame.set_index(pd.Index([5, 6])))
    assert data_digest(pl.DataFrame({"a": [1.5]})) == data_digest(pl.DataFrame({"a": [1.5]}))


def make_scaler(power):
    return FunctionTransformer(lambda x: x**power)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (SVC(C=1.0), SVC(C=2.0)),
        (make_pipeline(StandardScaler(), SVC()), make_pipeline(StandardScaler(), SVC(C=2))),
        (VotingClassifier([("a", SVC())]), VotingClassifier([("a", SVC(kernel="linear"))])),
        (make_scaler(2), make_scaler(3)),
        (FunctionTransformer(lambda x: x + 1), FunctionTransformer(lambda x: x + 2)),
        (functools.partial(max, key=len), functools.partial(max, key=abs)),
        (SVC(class_weight=np.arange(5000)), SVC(class_weight=np.r_[:2500, 0, 2501:5000])),
        (SVC, RandomForestClassifier),
    ],
)
def test_other_estimators_have_another_description(a, b):
    assert describe(a) != describe(b)


def test_descriptions_hold_no_addresses_and_outlive_the_process():
    code = (
        "from curvewise.store.record import describe\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from sklearn.preprocessing import FunctionTransformer\n"
        "from sklearn.svm import SVC\n"
        "class Odd: pass\n"
        "odd = Odd(); odd.inner = object(); odd.names = {'b', 'a', 'c'}; odd.me = odd\n"
        "step = FunctionTransformer(lambda x: x, kw_args={'o': odd})\n"
        "print(describe(make_pipeline(step, SVC())))"
    )
    elsewhere = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    with redirect_stdout(StringIO()) as here:
        exec(code, {"__name__": "__main__"})
    assert here.getvalue() == elsewhere
    assert "0x" not in elsewhere
