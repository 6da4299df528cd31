"""Wide tables: a column per run, per learner or per size."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvewise.errors import InputError
from curvewise.learning.load import load_measurements

NAN = float("nan")


def rows(m):
    return Counter(zip(m.learner.tolist(), m.n.tolist(), m.error.tolist(), strict=True))


def test_runs_are_seen_by_their_names():
    m = load_measurements({"n": [25, 50], "run1": [0.5, 0.4], "run_2": [0.6, None]})
    assert m.n.tolist() == [25, 25, 50]
    assert m.error.tolist() == [0.5, 0.6, 0.4]
    assert m.labels["run"].tolist() == ["run1", "run_2", "run1"]
    assert "value from 2 columns taken as runs, 'run1', 'run_2'" in m.notes[0]
    assert "1 empty cell taken as not measured" in m.notes


def test_learners_by_column():
    data = {"n": [25, 50], "net": [0.5, 0.4], "svm": [0.6, 0.7], "dataset": ["x", "x"]}
    m = load_measurements(data, wide="learners")
    assert m.learners == ("net", "svm")
    assert rows(m.of("svm")) == {("svm", 25, 0.6): 1, ("svm", 50, 0.7): 1}
    assert m.labels["dataset"].tolist() == ["x"] * 4


def test_chosen_columns_only():
    data = {"n": [25], "a": [0.5], "b": [0.6], "epoch": [3]}
    m = load_measurements(data, columns={"value": ["a", "b"]}, wide="learners")
    assert m.learners == ("a", "b")
    assert m.labels["epoch"].tolist() == [3, 3]


def test_runs_of_several_learners_and_accuracies():
    data = {"n": [25, 25], "model": ["a", "b"], "accuracy 1": [0.5, 0.75], "accuracy 2": [1, 1]}
    m = load_measurements(data, wide="runs")
    assert rows(m) == {("a", 25, 0.5): 1, ("a", 25, 0.0): 1, ("b", 25, 0.25): 1, ("b", 25, 0.0): 1}


@pytest.mark.parametrize("names", [("25", "50"), (25, 50), ("25.0", " 5e1"), (25.0, 50.0)])
def test_sizes_as_column_names(names):
    m = load_measurements(pd.DataFrame({"model": ["a", "b"], names[0]: [0.5, 0.6], names[1]: [0.4, NAN]}))
    assert rows(m) == {("a", 25, 0.5): 1, ("a", 50, 0.4): 1, ("b", 25, 0.6): 1}
    assert m.notes[0].startswith("n from the column names; learner from 'model'; value from 2 columns taken as sizes")


def test_sizes_as_column_names_in_a_file(tmp_path):
    (tmp_path / "m.csv").write_text('learner,25,"1,000"\na,0.5,0.4\na,0.6,\n')
    m = load_measurements(tmp_path / "m.csv", per_class=10)
    assert rows(m) == {("a", 250, 0.5): 1, ("a", 10_000, 0.4): 1, ("a", 250, 0.6): 1}


def test_decimal_commas_in_a_wide_file(tmp_path):
    (tmp_path / "m.csv").write_text("n;run1;run2\n25;0,5;0,25\n50;;1\n")
    m = load_measurements(tmp_path / "m.csv")
    assert m.error.tolist() == [0.5, 0.25, 1.0]
    assert "decimal commas read as points: '0,5'" in m.notes
    (tmp_path / "m.csv").write_text("learner;25;1000\na;0,5;0,25\n")
    m = load_measurements(tmp_path / "m.csv")
    assert (m.n.tolist(), m.error.tolist()) == ([25, 1000], [0.5, 0.25])


cells = st.one_of(st.none(), st.floats(0, 1))


@given(
    st.integers(1, 6).flatmap(
        lambda k: st.lists(
            st.tuples(st.integers(1, 10**6), st.lists(cells, min_size=k, max_size=k)), min_size=1, max_size=8
        )
    ),
    st.sampled_from(["runs", "learners"]),
)
def test_long_and_wide_say_the_same(table, wide):
    names = [f"column {i}" for i in range(len(table[0][1]))]
    long = [
        {"learner": name if wide == "learners" else "learner", "n": n, "error": value}
        for n, values in table
        for name, value in zip(names, values, strict=True)
        if value is not None
    ]
    frame = {"n": [n for n, _ in table]}
    frame |= {name: [values[i] for _, values in table] for i, name in enumerate(names)}
    if not long:
        with pytest.raises(InputError, match="are empty"):
            load_measurements(frame, wide=wide)
        return
    assert rows(load_measurements(frame, wide=wide)) == rows(load_measurements(long))


@given(
    st.dictionaries(
        st.tuples(st.text(min_size=1).filter(lambda s: s[-1] != "\0" and s == s.strip()), st.integers(1, 10**9)),
        st.floats(0, 1),
        min_size=1,
    )
)
def test_measurements_survive_their_own_frame(curves):
    records = [{"learner": k, "n": n, "error": e} for (k, n), e in curves.items()]
    m = load_measurements(records)
    assert rows(load_measurements(m.frame())) == rows(m)
    sizes = sorted({n for _, n in curves})
    if len(sizes) > 1:
        names = list(dict.fromkeys(k for k, _ in curves))
        wide = {"learner": names} | {str(n): [curves.get((k, n), NAN) for k in names] for n in sizes}
        assert rows(load_measurements(wide)) == rows(m)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"n": [1], "a": [0.5], "b": [0.4]}, {}, r"wide='runs' .* wide='learners' .*'value': 'a'"),
        ({"n": [1], "a": [0.5]}, {}, "no column known as the value; 'a' hold"),
        ({"n": [1], "a": [0.5], "b": [0.4]}, {"columns": {"value": ["a", "b"]}}, "wide='runs'"),
        ({"n": [1], "a": ["x"]}, {"wide": "runs"}, "no column of numbers"),
        ({"n": [1], "a": [0.5]}, {"wide": "sizes"}, "no column whose name is a size"),
        ({"n": [1], "5": [0.5]}, {"wide": "sizes"}, "column 'n' of the dict holds sizes too"),
        ({"a": [1], "b": [0.5]}, {"wide": "runs"}, "known as the training-set size"),
        ({"n": [1], "a": [0.5]}, {"wide": "rows"}, "wide='rows': is not known: use one of 'runs'"),
        (
            {"n": [1], "model": ["m"], "a": [0.5]},
            {"wide": "learners"},
            r"column 'model' of the dict names learners too.*\{'learner': None\}",
        ),
        ({"n": [1], "a": [0.5], "std": [0.1]}, {"wide": "runs"}, "'std', which a wide|is the std"),
        ({"n": [1, 2], "run1": [0.5, "oops"]}, {"wide": "runs"}, "Row 2 in column 'run1'.*'oops'"),
        ({"n": [1, 2], "a": [0.5, "oops"]}, {"wide": "learners"}, "Row 2 in column 'a'.*'oops'"),
        ({"n": [1], "a": ["0,5"]}, {"wide": "learners"}, "decimal comma write 0.5"),
        ({"n": [1], "run1": [0.5], "lr": [0.1]}, {"wide": "runs"}, r"some are not \('lr'\)"),
        ({"n": [1], "run1": [0.5], "run2": [np.inf]}, {}, "1 of 2 values .* infinite"),
        ({"25": [0.5], "0.4": [0.5]}, {}, "is the line with the names missing"),
        ({"25": [0.5], "x": [0.5]}, {"columns": {"value": "x"}, "wide": "sizes"}, "must all be"),
    ],
)
def test_wide_tables_that_are_asked_about(data, options, message):
    with pytest.raises(InputError, match=message):
        load_measurements(data, **options)


def test_learners_in_columns_called_after_accuracies_are_asked_about() -> None:
    rows = {"n": [25, 50], "cnn_acc": [0.5, 0.75], "mlp_acc": [0.25, 0.5]}
    with pytest.raises(InputError, match="higher_is_better=True"):
        load_measurements(rows, wide="learners")
    m = load_measurements(rows, wide="learners", higher_is_better=True)
    assert m.error.tolist() == [0.5, 0.75, 0.25, 0.5]
