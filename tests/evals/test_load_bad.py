"""Bad input: each a clear message, and nothing guessed."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError, MissingDependencyError, quietly


def lines(path: Path, count: int = 3) -> Path:
    path.write_text("".join(json.dumps({"question": i, "score": 1}) + "\n" for i in range(count)))
    return path


def test_truncated_json_lines_name_the_line(tmp_path, harness_log) -> None:
    path = lines(tmp_path / "a.jsonl")
    path.write_text(path.read_text()[:-5])
    with pytest.raises(InputError, match=r"line 3 of a\.jsonl is not whole JSON.*cut short there"):
        cw.load_evals(path)
    log = harness_log("one")
    log.write_text(log.read_text()[:-20])
    with pytest.raises(InputError, match=r"line 3 of samples_gsm8k.* is not whole JSON"):
        cw.load_evals(log)
    path.write_text('{"question": 1, "score": 1}\n\n{"question": 2, "score"\n{"question": 3, "score": 1}\n')
    with pytest.raises(InputError, match=r"line 3 of a\.jsonl is not whole JSON"):
        cw.load_evals(path)
    path.write_text('{"question": 1, "score": 1}\n{"question": 2, "score": 1}, {"question": 3, "score": 1}\n')
    with pytest.raises(InputError, match=r"line 2 of a\.jsonl"):
        cw.load_evals(path)
    path.write_text("[1, 2]\n")
    with pytest.raises(InputError, match=r"an object in each line"):
        cw.load_evals(path)
    path.write_text('{"question": 1, "score": 1, "score": 0}\n')
    with pytest.raises(InputError, match=r"more than one column called 'score'"):
        cw.load_evals(path)


@pytest.mark.parametrize("cut", [100, 300, -30])
def test_truncated_archives(inspect_log, cut) -> None:
    path = inspect_log()
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"is not a whole .eval file"):
        cw.load_evals(path)


def test_archives_that_are_no_logs(tmp_path) -> None:
    path = tmp_path / "a.eval"
    path.write_text("hello")
    with pytest.raises(InputError, match=r"is no zip archive"):
        cw.load_evals(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(InputError, match=r"without header.json"):
        cw.load_evals(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
    with pytest.raises(InputError, match=r"does not describe an evaluation"):
        cw.load_evals(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", '{"status": "success", "eval": {"model": "m"}}')
        archive.writestr("summaries.json", '[{"id": 1')
    with pytest.raises(InputError, match=r"summaries.json in a.eval is not whole JSON"):
        cw.load_evals(path)


def bomb(path: Path, size: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"status": "success", "eval": {"model": "m"}}')
        with archive.open("summaries.json", "w") as stream:
            for _ in range(size >> 20):
                stream.write(b" " * (1 << 20))
            stream.write(b'[{"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}}}]')
    return path


def test_zip_bombs(tmp_path) -> None:
    with pytest.raises(InputError, match=r"unpacks to more than 0.015625 GiB, from [\d,]+ bytes.*allow_large=True"):
        cw.load_evals(bomb(tmp_path / "ratio.eval", 1 << 25))
    assert cw.load_evals(tmp_path / "ratio.eval", allow_large=True).shape == (1, 1, 1)
    path = bomb(tmp_path / "liar.eval", 1 << 21)
    data = path.read_bytes()
    # The directory at the end of the archive claims that the member is short.
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("summaries.json").file_size.to_bytes(4, "little")
    place = data.rindex(size)
    path.write_bytes(data[:place] + (100).to_bytes(4, "little") + data[place + 4 :])
    with pytest.raises(InputError, match=r"damaged|not a whole"):
        cw.load_evals(path)


def test_packed_lines_that_are_no_gzip(tmp_path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(lines(tmp_path / "b.jsonl").read_bytes())[:-10])
    with pytest.raises(InputError, match=r"not a whole gzip file"):
        cw.load_evals(path)


def test_pickles_are_refused(tmp_path) -> None:
    path = tmp_path / "scores.pkl"
    path.write_bytes(pickle.dumps({"question": [1], "score": [1]}))
    with pytest.raises(InputError, match=r"pickle can run code"):
        cw.load_evals(path)
    lines(tmp_path / "a.jsonl")
    with quietly():
        assert any("scores.pkl" in w and "never read" in w for w in cw.load_evals(tmp_path).warnings)


def test_links_in_a_folder_are_not_followed(tmp_path) -> None:
    outside = lines(tmp_path / "outside.jsonl")
    folder = tmp_path / "logs"
    folder.mkdir()
    lines(folder / "inside.jsonl")
    os.symlink(outside, folder / "link.jsonl")
    os.symlink(tmp_path, folder / "all")
    with quietly():
        e = cw.load_evals(folder)
    assert e.models == ("inside",)
    assert any("'link.jsonl'" in w and "'all'" in w and "links are not followed" in w for w in e.warnings)


def test_paths_that_lead_nowhere(tmp_path) -> None:
    with pytest.raises(InputError, match=r"no such file"):
        cw.load_evals(tmp_path / "absent.eval")
    with pytest.raises(InputError, match=r"matches no file"):
        cw.load_evals(str(tmp_path / "*.eval"))
    with pytest.raises(InputError, match=r"has no files that end in .eval"):
        cw.load_evals(tmp_path)
    with pytest.raises(InputError, match=r"name at least one log"):
        cw.load_evals([])
    with pytest.raises(InputError, match=r"is an address"):
        cw.load_evals("https://example.org/a.eval")
    path = lines(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match=r"is given twice"):
        cw.load_evals([path, path])
    (tmp_path / "b.jsonl").write_text("")
    with pytest.raises(InputError, match=r"b.jsonl is empty"):
        cw.load_evals(tmp_path / "b.jsonl")


def test_json_that_is_something_else(tmp_path) -> None:
    for text in (
        '{"train_loss": [2.5, 1.5], "val_loss": [3, 2]}',
        '{"hello": "world"}',
        "3",
        '["a", "b"]',
        "[[1, 2]]",
        '{"a": {"b": 1}}',
        '{"version": 3, "eval": 1}',
    ):
        path = tmp_path / "a.json"
        path.write_text(text)
        with pytest.raises(InputError, match=r"a\.json is no log"):
            cw.load_evals(path)
    path.write_text('{"version": 2, "status": "success", "eval": {"mod')
    with pytest.raises(InputError, match=r"is not whole JSON"):
        cw.load_evals(path)
    path.write_text('{"results": {}, "configs": {}}')
    with pytest.raises(InputError, match=r"holds overall results only"):
        cw.load_evals(path)


def test_a_damaged_log_in_a_folder_is_an_error(tmp_path, inspect_log) -> None:
    inspect_log("a.eval")
    path = inspect_log("b.eval", model="b")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match=r"b.eval is not a whole"):
        cw.load_evals(tmp_path)


def test_cells_without_names(tmp_path) -> None:
    with pytest.raises(InputError, match=r"column 'question' .* names no question in row 2"):
        cw.load_evals({"question": ["a", None], "score": [1, 0]})
    with pytest.raises(InputError, match=r"column 'model' .* names no model in row 1 and 1 more"):
        cw.load_evals({"model": ["", " "], "question": ["a", "b"], "score": [1, 0]})
    with pytest.raises(InputError, match=r"'question' .* holds lists or objects"):
        cw.load_evals([{"question": ["a"], "score": 1}])
    with pytest.raises(InputError, match="column 'score' of the dict is empty"):
        cw.load_evals({"question": ["a", "b"], "score": [None, None]})


def test_all_right_all_wrong_and_one_question() -> None:
    assert cw.load_evals({"question": ["a", "b"], "score": [1, 1]}).scores.mean() == 1
    assert cw.load_evals({"question": ["a", "b"], "score": [0, 0]}).scores.mean() == 0
    assert cw.load_evals({"question": ["a"], "score": [True]}).shape == (1, 1, 1)


def test_damaged_parquet(tmp_path) -> None:
    pytest.importorskip("pyarrow")
    import pandas as pd

    path = tmp_path / "a.parquet"
    pd.DataFrame({"question": range(1000), "score": [1] * 1000}).to_parquet(path)
    data = path.read_bytes()
    for cut in (10, len(data) // 2, len(data) - 4):
        path.write_bytes(data[:cut])
        with pytest.raises(InputError, match=r"not a whole Parquet file"):
            cw.load_evals(path)


def test_zstd_without_its_package_names_the_extra(monkeypatch) -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("Python reads zstd by itself")
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    with pytest.raises(MissingDependencyError, match=r"curvewise\[zstd\]"):
        cw.load_evals(Path(__file__).parent / "logs" / "sums_a.eval")


def test_messages_of_the_command_line_speak_of_options(call, tmp_path) -> None:
    lines(tmp_path / "a.jsonl")
    done = call("evals", "show", tmp_path / "a.jsonl", "--metric", "f2")
    assert "--metric f2" in done.out


@pytest.mark.parametrize("cells", [["T", "F"], ["Y", "N"], ["right", "wrong"], ["100%", "0%"], [1, "timeout"]])
def test_texts_in_the_column_of_the_score_are_named(cells) -> None:
    with pytest.raises(InputError, match=r"column 'score' of the dict holds the text '\w+%?': a score is a number"):
        cw.load_evals({"question": [1, 2], "score": cells})


def test_a_text_among_scores_does_not_make_another_metric_the_score(tmp_path) -> None:
    rows = [{"question": i, "score": 1, "f1": 0.5} for i in range(3000)]
    for place in (2, 2999):
        path = tmp_path / f"{place}.jsonl"
        made = [row | ({"score": "timeout"} if row["question"] == place else {}) for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in made))
        with pytest.raises(InputError, match=r"column 'score' of .* holds the text 'timeout'"):
            cw.load_evals(path)
    # A verdict in words beside a score is no spoilt score.
    words = {"question": [1, 2, 3], "score": [1, 0, 1], "judgement": ["good", "bad", "C"]}
    assert cw.load_evals(words).metric == "score"


def test_a_named_file_with_a_bad_score_is_not_left_out(tmp_path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text("question,score\n1,1\n2,0\n")
    for text, metric in (("nope", None), ("nope", "score"), ("", None)):
        bad.write_text(f"question,score\n1,{1 if text else ''}\n2,{text}\n")
        with pytest.raises(InputError, match=r"column 'score'.* (holds the text 'nope'|is empty)"):
            cw.load_evals([good, bad], metric)


def test_arrays_are_refused_with_the_way_to_pass_them() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 3\).* Pass Evals\(scores, models, questions\)"):
        cw.score_evals(np.ones((2, 3)))


def test_a_row_without_a_task_among_others() -> None:
    rows = {"model": ["a", "a"], "question": [1, 2], "score": [1, 0]}
    with pytest.raises(InputError, match="column 'task' of the dict names no task in row 2"):
        cw.load_evals({**rows, "task": ["s", None]})
    assert cw.load_evals({**rows, "task": [None, None]}).tasks is None
    with pytest.raises(InputError, match="They name no tasks: leave it out"):
        cw.load_evals(rows, task="s")


def test_names_with_numbers_of_thousands_of_digits_are_put_in_order() -> None:
    names = ["9" * 5000, "1" * 4999, "run 10", "run 9", "run 010b"]
    rows = [{"model": name, "question": 1, "score": 1} for name in names]
    assert cw.load_evals(rows).models == (names[1], names[0], names[3], names[2], names[4])


def test_names_that_are_numbers_and_columns_that_are_no_dict() -> None:
    rows = {"model": [1, 1, 2, 2], "question": [1, 2, 1, 2], "score": [1, 0, 1, 1]}
    assert cw.load_evals(rows, models=1).models == ("1",)
    assert cw.load_evals(rows, models={7: 2}).models == ("7",)
    assert cw.load_evals(rows, models=np.array([2, 1])).models == ("1", "2")
    with pytest.raises(InputError, match="metric='5': there is no such metric"):
        cw.load_evals(rows, metric=5)
    for load in (cw.load_evals, cw.load_measurements):
        with pytest.raises(InputError, match="columns='model' must be a dict of roles"):
            load(rows, columns="model")


@pytest.mark.parametrize("load", [cw.load_evals, cw.evals.survey_evals])
def test_a_keyword_that_there_is_not(load) -> None:
    with pytest.raises(
        TypeError, match=r"load_evals\(\) got an unexpected keyword argument 'taks'. Did you mean 'task'"
    ):
        load({"question": [1], "score": [1]}, taks="x")


def test_help_shows_what_can_be_chosen_with_its_defaults() -> None:
    shown = inspect.signature(cw.load_evals).parameters
    for name in ("task", "models", "repeats", "range", "higher_is_better"):
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert shown[name].default is None


def test_tables_of_other_formats_in_a_folder_are_named(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("question,score\nq1,1\n")
    (tmp_path / "b.xlsx").write_bytes(b"PK")
    with pytest.warns(CurvewiseWarning, match=r"b\.xlsx.*are not read"):
        assert cw.load_evals(tmp_path).models == ("a",)
