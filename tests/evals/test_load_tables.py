"""Tables of scores: columns found by their names, counts and lists, ids that are texts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import InputError

ROWS = {
    "model": ["a", "a", "a", "b", "b", "b"],
    "question": ["q10", "q2", "q1", "q1", "q2", "q10"],
    "score": [1, 0, 1, 0, 1, 1],
}
WANTED = [[1, 0, 1], [0, 1, 1]]


def write(folder: Path, ending: str, rows: dict[str, list[object]] = ROWS) -> Path:
    """Write a table in the format of the ending."""
    import pandas as pd

    path, frame = folder / f"scores{ending}", pd.DataFrame(rows)
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    elif ending == ".json":
        frame.to_json(path, orient="records")
    elif ending.startswith(".jsonl"):
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".json", ".jsonl", ".jsonl.gz", ".parquet"])
def test_every_format_gives_the_same(tmp_path, ending) -> None:
    e = cw.load_evals(write(tmp_path, ending))
    assert (e.models, e.questions.tolist()) == (("a", "b"), ["q1", "q2", "q10"])
    assert e.scores[:, :, 0].tolist() == WANTED


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_every_frame_gives_the_same(kind) -> None:
    module = pytest.importorskip(kind)
    frame = module.table(ROWS) if kind == "pyarrow" else module.DataFrame(ROWS)
    assert cw.load_evals(frame).scores[:, :, 0].tolist() == WANTED
    assert cw.load_evals(ROWS).scores[:, :, 0].tolist() == WANTED


def test_columns_are_found_by_their_usual_names() -> None:
    rows = {
        "Model Name": ["a"] * 4,
        "doc_id": [0, 0, 1, 1],
        "epoch": [1, 2, 1, 2],
        "task": ["t"] * 4,
        "passage_id": ["p"] * 4,
        "is_correct": [True, False, True, True],
        "latency": [0.1, 0.2, 0.3, 0.4],
        "tokens": [[1, 2], [3], [], [4]],
    }
    e = cw.load_evals(rows)
    assert (e.questions.tolist(), e.metric) == (["0", "1"], "is_correct")
    assert e.scores[0].tolist() == [[1, 0], [1, 1]]
    assert e.groups is not None
    assert e.groups.tolist() == ["p", "p"]
    sample_id = {"model": ["a", "a"], "sample_id": ["x", "y"], "trial": [0, 0], "reward": [1, 0]}
    assert cw.load_evals(sample_id).questions.tolist() == ["x", "y"]


def test_columns_can_be_named() -> None:
    rows = {"who": ["a", "a"], "no": [1, 2], "points": [7, 9], "score": [1, 1]}
    e = cw.load_evals(rows, columns={"model": "who", "question": "no", "score": "points"}, range=(1, 10))
    assert (e.models, e.scores[0, :, 0].tolist(), e.metric) == (("a",), [7, 9], "points")
    with pytest.raises(InputError, match=r"known as the question.*columns=\{'question': 'COLUMN'\}"):
        cw.load_evals(rows)
    with pytest.raises(InputError, match=r"'colour' is no role"):
        cw.load_evals(ROWS, columns={"colour": "model"})
    with pytest.raises(InputError, match=r"2 columns .* could be the question: 'question_id', 'sample_id'"):
        cw.load_evals({"question_id": [1], "sample_id": [2], "score": [1]})


def test_several_metrics_are_listed(tmp_path) -> None:
    rows = {**ROWS, "f1": [0.5] * 6, "f1_stderr": [0.1] * 6, "correct_answer": list("ABCDAB")}
    with pytest.raises(InputError, match=r"2 metrics: 'score', 'f1'"):
        cw.load_evals(rows)
    assert cw.load_evals(rows, "f1").scores.mean() == 0.5
    long = {"question": ["1", "1", "2", "2"], "metric": ["em", "f1"] * 2, "value": [1, 0.5, 0, 0.25]}
    with pytest.raises(InputError, match=r"2 metrics: 'em', 'f1'"):
        cw.load_evals(long)
    assert cw.load_evals(long, "f1").scores[0, :, 0].tolist() == [0.5, 0.25]
    variants = {"question": ["1", "1"], "filter": ["strict", "loose"], "score": [0, 1]}
    with pytest.raises(InputError, match=r"2 filters: 'strict', 'loose'"):
        cw.load_evals(variants)
    assert cw.load_evals(variants, filter="loose").scores.item() == 1


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_file_that_names_no_model_is_one_model(tmp_path, ending) -> None:
    for name, values in (("gpt", [1, 0]), ("claude", [1, 1])):
        write(tmp_path, ending, {"id": ["x", "y"], "correct": values}).rename(tmp_path / f"{name}{ending}")
    e = cw.load_evals([tmp_path / f"gpt{ending}", tmp_path / f"claude{ending}"])
    assert e.models == ("claude", "gpt")
    assert e.scores[:, :, 0].tolist() == [[1, 1], [1, 0]]
    assert cw.load_evals(str(tmp_path / f"*{ending}")).models == ("claude", "gpt")


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_counts_become_samples(tmp_path, ending) -> None:
    rows = {"model": ["a", "a"], "question": ["x", "y"], "correct": [2, 0], "count": [3, 1]}
    e = cw.load_evals(write(tmp_path, ending, rows))
    assert e.samples.tolist() == [[3, 1]]
    assert np.nansum(e.scores) == 2
    with pytest.raises(InputError, match=r"more right answers than attempts: 5 of 3 in row 1"):
        cw.load_evals({**rows, "correct": [5, 0]})
    with pytest.raises(InputError, match=r"not whole: 0\.5 of 3.*columns=\{'count': None\}"):
        cw.load_evals({**rows, "correct": [0.5, 0]})
    shares = cw.load_evals({**rows, "correct": [0.5, 0]}, columns={"count": None})
    assert shares.scores[0, :, 0].tolist() == [0.5, 0]


def test_lists_of_marks_become_samples(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [{"question": "x", "scores": [1, 0, 1]}, {"question": "y", "scores": [0]}]
    path.write_text("\n".join(map(json.dumps, lines)))
    e = cw.load_evals(path)
    assert (e.samples.tolist(), np.nansum(e.scores)) == ([[3, 1]], 2)


def test_lists_in_other_columns_do_not_matter(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [{"question": i, "score": 1, "tags": ["a"] * i, "trace": {"deep": [i]}} for i in range(3)]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert cw.load_evals(path).shape == (1, 3, 1)


def test_a_column_that_only_late_rows_have(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"question": i, "score": 1, "model": "a"} for i in range(1500)]
    rows += [{"question": i, "score": 0, "model": "b", "sample": 0, "note": "late"} for i in range(1500)]
    rows += [{"question": 3, "score": 1, "model": "b", "sample": 1}]
    path.write_text("\n".join(map(json.dumps, rows)))
    e = cw.load_evals(path)
    assert e.shape == (2, 1500, 2)
    assert e.samples[1, 3] == 2


def test_words_are_scores() -> None:
    rows = {"question": list("abcd"), "grade": ["C", "I", "P", "N"]}
    assert cw.load_evals(rows).scores[0, :, 0].tolist() == [1, 0, 0.5, 0]
    with pytest.raises(InputError, match=r"holds the text 'B'"):
        cw.load_evals({"question": list("ab"), "grade": ["B", "C"]}, "grade")


def test_texts_of_questions_are_never_shown(tmp_path) -> None:
    rows = {"prompt": ["What is the capital of France?", "Add 2 and 2\nplease"], "score": [1, None]}
    e = cw.load_evals(rows, missing="wrong")
    assert not any("France" in q or "please" in q for q in e.questions)
    assert any("hashes of the texts" in note for note in e.notes)
    again = cw.load_evals({"prompt": rows["prompt"][::-1], "score": [0, 1]})
    assert again.questions.tolist() == e.questions.tolist()
    with pytest.raises(InputError) as caught:
        cw.load_evals(rows)
    assert "capital" not in str(caught.value)
    assert "please" not in str(caught.value)


def test_ids_are_the_same_as_numbers_and_as_text(tmp_path) -> None:
    write(tmp_path, ".csv", {"id": [1, 2, 10], "correct": [1, 0, 1]}).rename(tmp_path / "a.csv")
    (tmp_path / "b.jsonl").write_text("\n".join(json.dumps({"id": str(i), "correct": 1}) for i in (10, 2, 1)))
    e = cw.load_evals(tmp_path)
    assert (e.models, e.questions.tolist()) == (("a", "b"), ["1", "2", "10"])


def test_large_numbers_of_labels_take_the_sorted_path() -> None:
    rng = np.random.default_rng(0)
    rows = {"question": [f"q{i}" for i in range(1500) for _ in range(2)], "completion_id": list(range(3000))}
    rows["score"] = rng.integers(0, 2, 3000).tolist()
    e = cw.load_evals(rows)
    assert e.shape == (1, 1500, 2)
    assert np.nansum(e.scores) == sum(rows["score"])


def test_a_column_for_each_model_is_asked_for(tmp_path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("question_id,m-a,m-b,remark\nq1,1,0,easy\nq2,1,1,hard\n")
    with pytest.raises(InputError, match=r"wide='models' if each of 'm-a', 'm-b' is a model"):
        cw.load_evals(path)
    e = cw.load_evals(path, wide="models")
    assert e.models == ("m-a", "m-b")
    assert e.scores[:, :, 0].tolist() == [[1, 1], [0, 1]]
    assert any("left out: 'remark'" in note for note in e.notes)
    frame = {"question": ["q1", "q2"], "accuracy": [1, 0], "x": [0, 0]}
    assert cw.load_evals(frame, wide="models").models == ("accuracy", "x")
    with pytest.raises(InputError, match="has a column for the model, 'model'"):
        cw.load_evals({"question": ["q"], "model": ["a"], "x": [1]}, wide="models")
    with pytest.raises(InputError, match="column 'x' of the dict is empty"):
        cw.load_evals({"question": ["q"], "a": [1], "x": [None]}, wide="models")
    with pytest.raises(InputError, match="wide='learners': is not known"):
        cw.load_evals(path, wide="learners")  # type: ignore[arg-type]


def test_a_mark_beside_a_number_of_something_is_asked_about() -> None:
    rows = {"question": [1, 2, 3], "solved": [1, 0, 1], "attempts": [3, 9, 1]}
    with pytest.raises(InputError, match=r"'solved' of the dict holds 0 and 1 only.*columns=\{'count': 'attempts'\}"):
        cw.load_evals(rows)
    assert cw.load_evals(rows, columns={"count": None}).scores[0, :, 0].tolist() == [1, 0, 1]
    assert cw.load_evals(rows, columns={"count": "attempts"}).samples.tolist() == [[3, 9, 1]]
    named = {"question": [1, 2], "num_correct": [1, 0], "num_samples": [4, 4]}
    assert cw.load_evals(named).samples.tolist() == [[4, 4]]


def test_lists_of_marks_beside_their_number() -> None:
    e = cw.load_evals({"question": [1, 2], "score": [[1, 0], [0, 1]], "n_samples": [2, 2]})
    assert e.scores.tolist() == [[[1, 0], [0, 1]]]


def test_arrays_and_tuples_in_cells_are_lists_of_marks() -> None:
    for cells in ([(1, 0), (1, 1)], [np.array([1, 0]), np.array([1, 1])]):
        assert cw.load_evals({"question": [1, 2], "score": cells}).scores.tolist() == [[[1, 0], [1, 1]]]


def test_lists_and_single_marks_may_change_along_a_file(tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"question": i, "score": 1 if i < 1500 else [1, 0]} for i in range(3000)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    e = cw.load_evals(path)
    assert e.samples[0].tolist() == [1] * 1500 + [2] * 1500


def test_an_empty_list_is_a_missing_score(tmp_path) -> None:
    path = tmp_path / "marks.json"
    path.write_text(json.dumps({"q1": [1, 0], "q2": []}))
    for source in (path, {"question": ["q1", "q2"], "score": [[1, 0], []]}):
        with pytest.raises(InputError, match=r"1 sample without a score.*'q2'"):
            cw.load_evals(source)
        assert cw.load_evals(source, missing="wrong").questions.tolist() == ["q1", "q2"]


def test_decimal_commas(tmp_path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("question;score;seconds\n1,5;0,5;0,25\n2,5;1;3\n")
    e = cw.load_evals(path)
    assert (e.questions.tolist(), e.scores[0, :, 0].tolist()) == (["1,5", "2,5"], [0.5, 1.0])


@pytest.mark.parametrize("name", ["generation", "sample"])
def test_a_column_of_answers_is_no_number_of_samples(name) -> None:
    rows = [
        {"question": q, name: "It is four, because two and two are." if k else "4", "score": (q + k) % 2}
        for q in (1, 2)
        for k in (0, 1)
    ]
    with pytest.raises(InputError, match=r"has the question '1' twice.*repeats='samples'"):
        cw.load_evals(rows)
    e = cw.load_evals(rows, repeats="samples")
    assert e.scores[0].tolist() == [[1, 0], [0, 1]]
    assert not any("sample from" in note for note in e.notes)
    short = [row | {name: "B" if row["score"] else "C"} for row in rows]
    assert any("sample from" in note for note in cw.load_evals(short, columns={"sample": name}).notes)
    numbered = [row | {name: i % 2} for i, row in enumerate(rows)]
    assert any("sample from" in note for note in cw.load_evals(numbered).notes)
    if name == "generation":  # a short answer is no number, either
        with pytest.raises(InputError, match=r"twice.*repeats='samples'"):
            cw.load_evals(short)


def test_a_dict_of_tables_names_the_model_of_each(tmp_path) -> None:
    pandas = pytest.importorskip("pandas")
    new = pandas.DataFrame({"question": ["p", "q"], "score": [1, 0]})
    old = pandas.DataFrame({"model": ["org/old"] * 2, "question": ["q", "p"], "score": [1, 0]})
    new.to_csv(tmp_path / "run.csv", index=False)
    for one in (new, new.to_dict("records"), new.to_dict("list"), tmp_path / "run.csv", [str(tmp_path / "run.csv")]):
        e = cw.load_evals({"new": one, "old": old})
        assert e.models == ("new", "old")
        assert e.scores[:, :, 0].tolist() == [[1, 0], [0, 1]]
    with pytest.raises(InputError, match="'old' is given as the name of logs of 2 models"):
        cw.load_evals({"new": new, "old": pandas.concat([old, new.assign(model="x")])})
    with pytest.raises(InputError, match="No column of the table of 'new' is known as the question"):
        cw.load_evals({"new": new.drop(columns="question"), "old": old})


@pytest.mark.parametrize(
    ("dtype", "marks"), [("boolean", [True, None, False, True]), ("string", ["C", None, "I", "C"])]
)
def test_a_missing_value_of_pandas_is_an_empty_cell(dtype, marks):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"model": list("aabb"), "question": ["x", "y"] * 2, "score": pandas.array(marks, dtype)})
    assert cw.load_evals(frame, missing="wrong").scores[:, :, 0].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("kind", ["list_", "large_list", "fixed"])
def test_lists_of_marks_in_any_parquet(kind, tmp_path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    lists = pa.list_(pa.int64(), 3) if kind == "fixed" else getattr(pa, kind)(pa.int64())
    columns = {"model": pa.array(["a", "b"], pa.large_string()), "question": ["q", "q"]}
    pq.write_table(pa.table(columns | {"score": pa.array([[1, 0, 1], [0, 0, 1]], lists)}), tmp_path / "x.parquet")
    e = cw.load_evals(tmp_path / "x.parquet")
    assert (e.models, e.scores.tolist()) == (("a", "b"), [[[1, 0, 1]], [[0, 0, 1]]])
