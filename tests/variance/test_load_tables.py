"""Predictions of many runs out of tables, long and wide."""

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from made_predictions import ERRORS, EXAMPLES, GROUPS, LABELS, LOSSES, PREDS, RUNS, fails, long_frame, same

import curvewise as cw
from curvewise.variance.load import load_predictions


def written(frame, folder, kind):
    path = folder / f"runs.{kind}"
    if kind in ("csv", "csv.gz"):
        frame.to_csv(path, index=False)
    elif kind in ("tsv", "txt"):
        frame.to_csv(path, index=False, sep="\t")
    elif kind == "json":
        frame.to_json(path, orient="records")
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif kind == "columns.json":
        path.write_text(json.dumps({k: frame[k].tolist() for k in frame}))
    else:
        frame.to_parquet(path)
    return path


KINDS_OF_FILE = ["csv", "csv.gz", "tsv", "txt", "json", "jsonl", "columns.json", "parquet"]


@pytest.mark.parametrize("kind", KINDS_OF_FILE)
def test_long_tables(tmp_path, kind):
    frame = long_frame(passage=np.tile(GROUPS, RUNS))
    p = same(load_predictions(written(frame, tmp_path, kind)))
    np.testing.assert_array_equal(p.groups, GROUPS)


@pytest.mark.parametrize("kind", KINDS_OF_FILE)
def test_long_tables_in_any_order_with_names_for_classes(tmp_path, kind):
    names = np.array(["None", "cat", "dog, or \x07"])
    frame = long_frame(pred=names[PREDS].ravel(), label=np.tile(names[LABELS], RUNS))
    frame = frame.sample(frac=1, random_state=1)
    p = load_predictions(written(frame, tmp_path, kind))
    order = np.argsort(p.run_ids)
    np.testing.assert_array_equal(p.errors()[order], ERRORS)
    assert p.classes == tuple(names)
    assert p.example_ids.tolist() == list(range(EXAMPLES))


def test_byte_order_mark_carriage_returns_and_empty_rows(tmp_path):
    text = long_frame().to_csv(index=False).replace("\n", "\r\n") + ",,,\r\n" * 2
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    p = same(load_predictions(tmp_path / "x.csv"))
    last = RUNS * EXAMPLES + 1
    assert f"2 row(s) left out as empty (2 rows, the first is row {last})" in p.notes


@pytest.mark.parametrize(
    ("column", "values", "kind"),
    [
        ("error", ERRORS, "errors"),
        ("wrong", ERRORS.astype(bool), "errors"),
        ("Is correct", ERRORS == 0, "correct"),
        ("loss", LOSSES, "losses"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_other_kinds_in_long_tables(tmp_path, column, values, kind, form):
    frame = long_frame().drop(columns=["pred", "label"]).assign(**{column: values.ravel()})
    p = load_predictions(written(frame, tmp_path, form))
    assert p.kind == kind
    np.testing.assert_allclose(p.errors(), LOSSES if kind == "losses" else ERRORS)


def test_decimal_commas_in_losses(tmp_path):
    frame = long_frame(loss=LOSSES.ravel()).drop(columns=["pred", "label"])
    frame.to_csv(tmp_path / "x.csv", sep=";", decimal=",", index=False)
    np.testing.assert_allclose(load_predictions(tmp_path / "x.csv").errors(), LOSSES)


def test_repeats(tmp_path):
    frame = pd.concat([long_frame(sample=0), long_frame(sample=1, pred=PREDS[::-1].ravel())])
    p = load_predictions(written(frame, tmp_path, "csv"))
    assert p.repeats == 2
    both = np.stack([ERRORS, ERRORS[::-1]], axis=2)
    np.testing.assert_array_equal(np.concatenate([b for _, b in p.error_blocks(True)]), both)
    fails(
        r"120 cell\(s\) more than once: run 0, example 0 is in rows 1 and 121.*'repeat'", frame.drop(columns="sample")
    )
    fails("lacks 1 of 240 cells: run 3, example 29, repeat 1", frame.iloc[:-1])
    same(load_predictions(long_frame(sample=4)))  # one sample of each is no axis


def test_missing_cells():
    frame = long_frame()
    fails("lacks 1 of 120 cells: run 1, example 5. Every run needs every", frame.drop(index=35))
    fails(r"lacks 20 of 120 cells: run 3, example 10; .* …\. Every", frame.iloc[:-20])
    gone = frame.assign(pred=frame["pred"].astype(float).where(frame.index != 40))
    fails(r"'pred' .* is empty or NaN in row 41. It is in run\(s\) '1': one that diverged", gone)
    gone = frame.assign(id=frame["id"].astype(float).where(frame.index != 40))
    fails("column 'id' of the DataFrame is empty or NaN in row 41. Fill it in", gone)
    everyone = pd.DataFrame({"run": np.arange(40), "id": np.arange(40), "error": 0})
    fails("lacks 1,560 of 1,600 cells: run 0, example 1; run 0, example 2", everyone)


def test_duplicates_and_labels_that_disagree():
    frame = long_frame()
    fails(r"1 cell\(s\) more than once: run 0, example 3 is in rows 4 and 121", pd.concat([frame, frame.iloc[[3]]]))
    frame.loc[95, "label"] = 9
    fails("label of example 5 .* not the same in all rows", frame)
    groups = np.concatenate([np.tile(GROUPS, RUNS - 1), GROUPS[::-1]])
    fails("group of example 1 .* not the same|group of example 0", long_frame(group=groups))


def test_several_learners():
    frame = pd.concat([long_frame(model="a"), long_frame(model="b", pred=PREDS[::-1].ravel())])
    fails("'model' of the DataFrame names 2 learners: 'a', 'b'. Choose one with learner='a'", frame)
    p = same(load_predictions(frame, learner="a"))
    assert "120 of 240 rows taken: learner is 'a'" in p.notes
    np.testing.assert_array_equal(load_predictions(frame, learner="b").errors(), ERRORS[::-1])
    fails("learner='c' is not in column 'model'", frame, learner="c")
    fails("learner='a': the DataFrame has no column of learners", long_frame(), learner="a")


def test_columns_by_the_users_word():
    names = {"run": "job", "example": "what", "prediction": "said", "label": "so"}
    frame = long_frame().set_axis(["job", "what", "said", "so"], axis=1)
    same(load_predictions(frame, columns=names))
    same(load_predictions(frame, key="said", columns={k: v for k, v in names.items() if v != "said"}))
    fails("No column of the DataFrame is known as predictions", frame)
    fails("No column .* known as the run: .*If the table is wide.*axes=", frame,
          columns={"prediction": "said", "example": "what"})  # fmt: skip
    fails("no such column. Did you mean 'said'", frame, columns={"prediction": "sai"})
    fails("'example': 'job'} gives a column two roles", frame, columns={"run": "job", "example": "job"})
    fails("is no role. Did you mean", frame, columns={"runner": "job"})


def test_better_names_win_and_equal_ones_are_asked_about():
    p = same(load_predictions(long_frame(run=np.repeat(list("wxyz"), EXAMPLES))))
    assert p.run_ids.tolist() == list("wxyz")
    fails("could be the run: 'run', 'run_id'", long_frame(run=0, run_id=0))
    both = long_frame(correct=1 - ERRORS.ravel())
    fails(r"2 columns .* 'pred', 'correct'. Choose with columns=\{'prediction': 'pred'\}, or", both)
    same(load_predictions(both, kind="labels"))
    assert load_predictions(both, kind="correct").kind == "correct"


def test_labels_by_position_need_one_order():
    frame = long_frame().drop(columns="label")
    frame["id"] = [f"q{i}" for i in frame["id"]]
    same(load_predictions(frame, labels=LABELS))
    mixed = pd.concat([frame.iloc[:EXAMPLES], frame.iloc[: -EXAMPLES - 1 : -1], frame.iloc[30:90]])
    fails("labels=… is in the order .* and runs .* different orders", mixed, labels=LABELS)
    numbered = long_frame().drop(columns="label").iloc[::-1]
    p = load_predictions(numbered, labels=LABELS)
    np.testing.assert_array_equal(p.errors(), ERRORS[::-1])
    fails("labels=… differs from the labels that the Data", long_frame(), labels=LABELS[::-1])
    same(load_predictions(long_frame(), labels=LABELS))
    fails("labels has shape", long_frame().drop(columns="label"), labels=LABELS[:-1])


def test_text_where_flags_should_be():
    frame = long_frame().drop(columns=["pred", "label"]).assign(error="maybe")
    fails("should hold errors and holds text", frame)


def test_wide_with_a_row_for_each_run(tmp_path):
    frame = pd.DataFrame(PREDS, columns=[f"q{i}" for i in range(EXAMPLES)])
    frame.insert(0, "seed", [11, 12, 13, 14])
    path = written(frame, tmp_path, "csv")
    fails("If the table is wide, pass axes=", path, labels=LABELS)
    for source in (path, frame, pl.DataFrame(frame.to_dict("list")), written(frame, tmp_path, "parquet")):
        p = same(load_predictions(source, labels=LABELS, axes=("runs", "examples")))
        assert p.run_ids.tolist() == [11, 12, 13, 14]
        assert p.example_ids[0] == "q0"


def test_wide_with_a_column_for_each_run(tmp_path):
    frame = pd.DataFrame(PREDS.T, columns=[f"run_{i}" for i in range(RUNS)])
    frame = frame.assign(label=LABELS, video=GROUPS)
    frame.index = [f"q{i}" for i in range(EXAMPLES)]
    frame.to_csv(tmp_path / "x.tsv", sep="\t")
    p = same(load_predictions(tmp_path / "x.tsv", axes=("examples", "runs")))
    assert p.run_ids.tolist() == ["run_0", "run_1", "run_2", "run_3"]
    assert p.example_ids.tolist()[:2] == ["q0", "q1"]
    np.testing.assert_array_equal(p.groups, GROUPS)
    fails("'label' .* a row for each run cannot carry", tmp_path / "x.tsv", axes=("runs", "examples"))
    fails("has two axes", tmp_path / "x.tsv", axes=("runs", "examples", "repeats"))


@pytest.mark.parametrize("name", ["seed{}", "run_{}", "Seed {}"])
def test_wide_with_numbered_runs_is_recognised(tmp_path, name):
    frame = pd.DataFrame(PREDS.T, columns=[name.format(i) for i in range(RUNS)])
    frame.assign(label=LABELS).to_csv(tmp_path / "wide.csv", index=False)
    p = same(load_predictions(tmp_path / "wide.csv"))
    assert "each row is one example, each column one run" in p.notes[0]
    frame.to_csv(tmp_path / "bare.csv")  # an index without a name, labels elsewhere
    same(load_predictions(tmp_path / "bare.csv", LABELS))


def test_wide_with_other_names_gets_the_right_remedy_first(tmp_path):
    frame = pd.DataFrame(PREDS.T, columns=[f"net{chr(97 + i)}" for i in range(RUNS)]).assign(label=LABELS)
    remedy = r"axes=\('examples', 'runs'\) where it has a column for each run.*If one column holds the predictions"
    fails(remedy, frame)


def test_wide_without_names(tmp_path):
    path = tmp_path / "x.csv"
    np.savetxt(path, PREDS, fmt="%d", delimiter=",")
    same(load_predictions(path, labels=LABELS, axes=("runs", "examples")))
    np.savetxt(path, PREDS.T, fmt="%d", delimiter=",")
    p = same(load_predictions(path, labels=LABELS, axes=("examples", "runs")))
    assert p.run_ids is None
    np.savetxt(path, [[0, 1, 2], [1, 1, 0]], fmt="%d", delimiter=",")
    ask = {"axes": ("runs", "examples"), "kind": "losses"}
    fails("numbers that could be names .* header=True or header=False", path, **ask)
    assert load_predictions(path, header=False, **ask).runs == 2
    assert load_predictions(path, header=True, **ask).example_ids.tolist() == ["0", "1", "2"]


def test_wide_cells_that_do_not_fit(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n0,\n1,0\n")
    ask = {"axes": ("runs", "examples")}
    fails("column 'b' of x.csv is empty or NaN in row 1", path, **ask)
    path.write_text("who,a,b\nx,0,1\ny,1,0\n")
    fails(r"'who' of x.csv holds text and others .* columns=\{'run': 'who'\}", path, **ask)
    p = load_predictions(path, columns={"run": "who"}, **ask)
    assert p.run_ids.tolist() == ["x", "y"]
    path.write_text("a,b,c\nTrue,False,False\nFalse,False,True\n")
    p = load_predictions(path, kind="correct", **ask)
    assert p.errors().tolist() == [[0, 1, 1], [1, 1, 0]]
    fails("header=True: says nothing", long_frame(), header=True)


def test_nested_json(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"preds": PREDS.tolist(), "labels": LABELS.tolist()}))
    same(load_predictions(path))
    path.write_text(json.dumps(PREDS.tolist()))
    same(load_predictions(path, labels=LABELS))
    path.write_text("[[1, 2], [1]]")
    fails("x.json holds lists of different lengths", path)
    path.write_text("[[1, null], [1, 2]]")
    fails("x.json holds something that is neither", path)


def _answers(**further: list[Any]) -> list[dict[str, Any]]:
    rows = [{"seed": r, "id": i, "pred": (r + i) % 3, "label": i % 3} for r in range(3) for i in range(6)]
    return [{**row, **{k: v[row["seed"]] for k, v in further.items()}} for row in rows]


def test_runs_that_failed_by_their_status_are_left_out() -> None:
    with pytest.warns(cw.CurvewiseWarning, match="6 row.* not finished"):
        p = cw.load_predictions(_answers(status=["finished", "failed", "finished"]))
    assert p.run_ids is not None
    assert p.run_ids.tolist() == [0, 2]


def test_examples_of_two_splits_are_not_one_test_set() -> None:
    train = [{**row, "id": f"train {row['id']}", "split": "train"} for row in _answers()]
    with pytest.raises(cw.InputError, match="names 2 splits"):
        cw.load_predictions([*train, *({**row, "split": "test"} for row in _answers())])


def test_names_of_columns_of_runs_say_what_they_hold() -> None:
    right = {f"correct_{r}": [1, 1, 0, 1, 1, 0] for r in range(3)}
    p = cw.load_predictions(right, axes=("examples", "runs"))
    assert p.errors().mean() == pytest.approx(1 / 3)
    with pytest.raises(cw.InputError, match="'fold': is that a run"):
        cw.load_predictions({**right, "fold": [0, 1, 0, 1, 0, 1]}, axes=("examples", "runs"))
    hits = np.array([[1, 1, 0], [1, 0, 1]])
    assert cw.load_predictions({"accuracy": hits}).errors().tolist() == (1 - hits).tolist()


def test_names_that_no_label_has_are_refused() -> None:
    names = np.array(["cat", "dog", "fox"])
    with pytest.raises(cw.InputError, match=r"No name in .* is a label"):
        cw.load_predictions(np.char.upper(names)[[[0, 1, 2], [1, 1, 2]]], names)
    assert cw.load_predictions(names[[[0, 1, 2], [1, 1, 2]]], names).errors().sum() == 1
