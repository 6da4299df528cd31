"""Alignment: any order gives the same; seeds, samples, missing cells, groups, scales, and models under new names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.evals import Evals, load_evals, score_evals


def same(a: Evals, b: Evals) -> None:
    np.testing.assert_array_equal(a.scores, b.scores)
    assert (a.models, a.questions.tolist()) == (b.models, b.questions.tolist())
    for name in ("groups", "tasks", "seeds"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None)
        assert x is None or x.tolist() == y.tolist()


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, object]]:
    """Rows of some models, questions, seeds and samples, ragged, each cell with at least one sample."""
    models = draw(st.lists(st.sampled_from(["a", "b", "m-2", "m-10"]), min_size=1, max_size=3, unique=True))
    questions = draw(st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True))
    seeds = draw(st.integers(1, 2))
    rows: list[dict[str, object]] = []
    for model in models:
        for question in questions:
            for seed in range(seeds):
                for sample in range(draw(st.integers(1, 3))):
                    cell = {
                        "model": model,
                        "question": question,
                        "sample": sample,
                        "score": draw(st.sampled_from([0, 1, 0.5])),
                    }
                    rows.append(
                        cell | ({"seed": seed} if seeds > 1 else {}) | {"group": question % 3, "task": question % 2}
                    )
    return rows


@settings(max_examples=60)
@given(rows=tables(), random=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, random) -> None:
    first = load_evals(rows)
    shuffled = rows[:]
    random.shuffle(shuffled)
    same(first, load_evals(shuffled))
    # Every score is in its cell, whatever its place there.
    for m, model in enumerate(first.models):
        for q, question in enumerate(first.questions):
            mine = [
                r["score"] for r in rows if r["model"] == model and str(r["question"]) == question.rpartition("/")[2]
            ]
            held = first.scores[m, q][np.isfinite(first.scores[m, q])]
            assert sorted(held.tolist()) == sorted(map(float, mine))


@settings(max_examples=25)
@given(rows=tables(), random=st.randoms(use_true_random=False))
def test_the_split_into_files_does_not_matter(rows, random, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("logs")
    # A cell stays in one file: rows of a model and question in two logs would be two logs of the model.
    cells: dict[object, list[dict[str, object]]] = {}
    for row in rows:
        cells.setdefault((row["model"], row["question"]), []).append(row)
    parts: list[list[dict[str, object]]] = [[], [], []]
    for cell in cells.values():
        parts[random.randrange(3)].extend(cell)
    paths = []
    for i, part in enumerate(parts):
        if part:
            paths.append(folder / f"{random.randrange(100)}-{i}.jsonl")
            paths[-1].write_text("\n".join(map(json.dumps, part)))
    random.shuffle(paths)
    same(load_evals(rows), load_evals(paths))


@settings(max_examples=40)
@given(rows=tables())
def test_frames_come_back(rows) -> None:
    e = load_evals(rows)
    same(e, load_evals({name: column.tolist() for name, column in e.columns().items()}))


# Seeds and samples.


def log(folder: Path, name: str, values: list[float], **more: object) -> Path:
    path = folder / f"{name}.jsonl"
    rows = [{"id": f"q{i}", "score": v, **more} for i, v in enumerate(values)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_a_column_of_seeds(tmp_path) -> None:
    rows = [
        {"model": m, "question": q, "seed": s, "sample": k, "score": (s + k) % 2}
        for m in "ab"
        for q in (1, 2)
        for s in ((11, 9) if m == "a" else (3,))
        for k in (0, 1)
    ]
    e = load_evals(rows)
    assert e.seeds is not None
    assert e.seeds.tolist() == [["9", "9", "11", "11"], ["3", "3", "", ""]]
    assert e.scores[0].tolist() == [[1, 0, 1, 0]] * 2
    p = e.predictions("a")
    assert (p.runs, p.examples, p.repeats) == (2, 2, 2)


def test_several_logs_are_trainings_of_one_model(tmp_path) -> None:
    for seed, values in ((1, [1, 0, 1]), (2, [0, 0, 1]), (10, [1, 1, 1])):
        log(tmp_path, f"base-s{seed}", values)
    log(tmp_path, "other", [1, 1, 0])
    e = load_evals(tmp_path, models={"base": "base-s*", "other": "other"})
    assert e.models == ("base", "other")
    assert e.seeds is not None
    assert e.seeds.tolist() == [["base-s1.jsonl", "base-s2.jsonl", "base-s10.jsonl"], ["0", "", ""]]
    assert e.scores[0].tolist() == [[1, 0, 1], [0, 0, 1], [1, 1, 1]]
    assert e.samples.tolist() == [[3, 3, 3], [1, 1, 1]]
    p = e.predictions("base")
    assert (p.runs, p.errors().tolist()) == (3, [[0, 1, 0], [1, 1, 0], [0, 0, 0]])
    samples = load_evals(tmp_path, models={"base": "base-s*"}, repeats="samples")
    assert (samples.seeds, samples.shape) == (None, (1, 3, 3))


def test_a_training_that_lacks_a_question(tmp_path) -> None:
    log(tmp_path, "s1", [1, 0, 1])
    log(tmp_path, "s2", [0, 0])
    with pytest.raises(InputError, match=r"'base' lacks 1 in one of its trainings, the first 'q2'"):
        load_evals(tmp_path, models={"base": "s*"})
    assert load_evals(tmp_path, models={"base": "s*"}, missing="drop").questions.tolist() == ["q0", "q1"]
    wrong = load_evals(tmp_path, models={"base": "s*"}, missing="wrong")
    assert wrong.scores[0].tolist() == [[1, 0], [0, 0], [1, 0]]


def test_the_same_model_twice_is_asked_about(tmp_path) -> None:
    log(tmp_path, "one", [1, 0], model="gpt")
    log(tmp_path, "two", [1, 1], model="gpt")
    with pytest.raises(
        InputError, match=r"'gpt' is in 2 logs with the same 2 questions.*repeats='samples'.*models="
    ) as e:
        load_evals(tmp_path)
    assert "'gpt 1': 'one.jsonl'" in str(e.value)
    assert load_evals(tmp_path, repeats="samples").scores[0].tolist() == [[1, 1], [0, 1]]
    seeds = load_evals(tmp_path, repeats="seeds").seeds
    assert seeds is not None
    assert seeds.tolist() == [["one.jsonl", "two.jsonl"]]
    apart = load_evals(tmp_path, models={"gpt 1": "one.jsonl", "gpt 2": "two.jsonl"})
    assert apart.models == ("gpt 1", "gpt 2")


def test_files_of_the_same_name_are_told_apart_by_their_folders(tmp_path) -> None:
    for folder, values in (("x", [1, 0]), ("y", [1, 1])):
        (tmp_path / folder).mkdir()
        log(tmp_path / folder, "run", values)
    with pytest.raises(InputError, match=r"'run' is in 2 logs .*'x/run.jsonl', 'y/run.jsonl'"):
        load_evals(tmp_path)
    e = load_evals(tmp_path, models={"a": "x/run.jsonl", "b": "y/*"})
    assert (e.models, e.scores[:, :, 0].tolist()) == (("a", "b"), [[1, 0], [1, 1]])


def test_parts_of_a_benchmark_in_several_files_are_one(tmp_path) -> None:
    (tmp_path / "1.jsonl").write_text('{"model": "a", "id": 1, "score": 1}')
    (tmp_path / "2.jsonl").write_text('{"model": "a", "id": 2, "score": 0}')
    assert load_evals(tmp_path).shape == (1, 2, 1)


def test_duplicate_rows(tmp_path) -> None:
    rows = {"model": ["a"] * 3, "question": ["x", "y", "x"], "score": [1, 0, 1]}
    with pytest.raises(InputError, match=r"'a' has the question 'x' twice.*repeats='samples'"):
        load_evals(rows)
    assert load_evals(rows, repeats="samples").samples.tolist() == [[2, 1]]
    numbered = rows | {"sample": [0, 0, 0]}
    with pytest.raises(InputError, match=r"the same sample of the question 'x' twice"):
        load_evals(numbered, repeats="samples")


def test_models_are_chosen_and_renamed() -> None:
    rows = {"model": ["gpt-4", "gpt-3", "x"], "question": ["q"] * 3, "score": [1, 0, 1]}
    assert load_evals(rows, models="gpt-*").models == ("gpt-3", "gpt-4")
    assert load_evals(rows, models=["x", "gpt-3"]).models == ("gpt-3", "x")
    assert load_evals(rows, models={"new": "x", "old": "gpt-3"}).models == ("new", "old")
    with pytest.raises(InputError, match=r"models='gtp-4'.*Did you mean 'gpt-4'.*There are 'gpt-3', 'gpt-4', 'x'"):
        load_evals(rows, models="gtp-4")
    with pytest.raises(InputError, match=r"gives 'gpt-4' .* the names"):
        load_evals(rows, models={"a": "gpt-4", "b": "gpt*"})


# Missing cells.

GAPS = {"model": ["a", "a", "a", "b", "b"], "question": ["q1", "q2", "q3", "q2", "q1"], "score": [1, 1, 1, 1, None]}


def test_missing_cells_are_named_and_counted() -> None:
    with pytest.raises(InputError, match=r"2 of 6 pairs of model and question without a score.*1 of 3 questions would"):
        load_evals(GAPS)
    wrong = load_evals(GAPS, missing="wrong")
    assert wrong.scores[1, :, 0].tolist() == [0, 1, 0]
    assert any("1 of 6 pairs" in note and "counted as 0" in note for note in wrong.notes)
    drop = load_evals(GAPS, missing="drop")
    assert drop.questions.tolist() == ["q2"]
    assert any("2 of 6 pairs" in note and "2 questions of 3 dropped" in note for note in drop.notes)
    with pytest.raises(InputError, match=r"missing='zero' is not known"):
        load_evals(GAPS, missing="zero")  # type: ignore[arg-type]


def test_wrong_is_the_worst_score_and_as_many_samples_as_usual() -> None:
    rows = {"model": list("aab"), "question": ["x", "y", "x"], "loss": [0.2, 0.3, 0.4]}
    e = load_evals(rows, missing="wrong", range=(0, 5))
    assert not e.higher_is_better
    assert e.scores[1, :, 0].tolist() == [0.4, 5]
    with pytest.raises(InputError, match=r"has no bound"):
        load_evals(rows, missing="wrong", range=(0, np.inf))
    many = {
        "model": ["a"] * 6 + ["b"] * 3,
        "question": ["x"] * 3 + ["y"] * 3 + ["x"] * 3,
        "sample": [0, 1, 2] * 3,
        "score": [1] * 9,
    }
    assert load_evals(many, missing="wrong").scores[1].tolist() == [[1, 1, 1], [0, 0, 0]]


def test_a_model_that_was_given_other_questions() -> None:
    rows = {"model": list("aabbc"), "question": ["x", "y", "x", "y", "z"], "score": [1] * 4 + [None]}
    with pytest.raises(InputError, match=r"'c' has none of the 3 questions, .* Choose .* models=\['a', 'b'\]"):
        load_evals(rows)


def test_nothing_is_left() -> None:
    rows = {"model": list("ab"), "question": ["x", "y"], "score": [1, 1]}
    with pytest.raises(InputError, match=r"no question is left"):
        load_evals(rows, missing="drop")


def test_models_with_different_tasks_are_told_how_to_choose() -> None:
    rows = {"model": list("aab"), "task": ["t1", "t2", "t2"], "question": ["x", "x", "x"], "score": [1, 0, 1]}
    with pytest.raises(InputError, match=r"not given the same tasks. 't1': 'a'; 't2': 'a', 'b'. Choose with task='t2'"):
        load_evals(rows)
    assert load_evals(rows, task="t2").shape == (2, 1, 1)


@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_models_that_share_no_question_are_not_told_to_drop_or_choose_a_task(missing) -> None:
    rows = {"model": list("aab"), "task": ["t1", "t2", "t3"], "question": list("xyz"), "score": [1, 0, 1]}
    with pytest.raises(InputError, match="no two share a question") as told:
        load_evals(rows, missing=missing)
    assert "drop" not in str(told.value)
    assert "task=" not in str(told.value)
    assert "models='a'" in str(told.value)
    assert load_evals(rows, missing=missing, models="a").shape == (1, 2, 1)
    del rows["task"]
    with pytest.raises(InputError, match="No two models share a question") as told:
        load_evals(rows, missing=missing)
    assert "drop" not in str(told.value)
    assert "wrong" not in str(told.value)
    some = {"model": list("aabbcc"), "task": list("tutuvw"), "question": list("xyxyzz"), "score": [1] * 6}
    with pytest.raises(InputError, match="Choose with task='t'") as told:  # two of three share two tasks
        load_evals(some, missing=missing)
    assert "drop" not in str(told.value)
    assert load_evals(some, task="t").shape == (2, 1, 1)


# Groups, scales and what differs between models.


def test_a_question_is_in_one_group() -> None:
    rows = {"model": list("ab"), "question": ["x", "x"], "group": ["g", "h"], "score": [1, 0]}
    with pytest.raises(InputError, match=r"the question 'x' is in the groups 'g', 'h'"):
        load_evals(rows)
    with pytest.raises(InputError, match=r"1 of 2 questions have no group, the first is 'y'"):
        load_evals({"question": ["x", "y"], "group": ["g", None], "score": [1, 0]})


def test_the_scale_is_asked_for() -> None:
    judge = {"question": list("xyz"), "score": [1, 7, 10]}
    with pytest.raises(InputError, match=r"scores go from 1 to 10, outside of 0 to 1.*range=\(1, 10\)"):
        load_evals(judge)
    assert load_evals(judge, range=(1, 10)).range == (1, 10)
    mixed = {"model": list("aabb"), "question": list("xyxy"), "score": [0.5, 1, 50, 90]}
    with pytest.raises(InputError, match=r"scores of 'a' go up to 1 and those of 'b' to 90: are some fractions"):
        load_evals(mixed)
    with pytest.warns(CurvewiseWarning, match=r"are they on one scale"):
        load_evals(mixed, range=(0, 100))
    by_task = {"task": list("aabb"), "question": list("xyxy"), "score": [0.5, 1, 50, 90]}
    with pytest.raises(InputError, match=r"scores of 'a' go up to 1 and those of 'b' to 90"):
        load_evals(by_task)
    with pytest.raises(InputError, match=r"range=.* must be the lowest and the highest"):
        load_evals(judge, range=(10, 1))
    with pytest.raises(InputError, match=r"infinite"):
        load_evals({"question": ["x"], "score": [np.inf]}, range=(0, np.inf))
    assert load_evals({"question": list("xy"), "score": [-3.0, 7.5]}, range=(-np.inf, np.inf)).range == (
        -np.inf,
        np.inf,
    )


def test_the_direction_is_known_by_name_or_given() -> None:
    loss = {"question": list("xy"), "log_loss": [0.2, 0.4]}
    assert not load_evals(loss).higher_is_better
    assert load_evals(loss, higher_is_better=True).higher_is_better
    assert load_evals({"question": ["x"], "quality": [1]}).higher_is_better


def test_versions_prompts_and_questions_that_differ_are_warned_of(harness_log, inspect_log, tmp_path) -> None:
    harness_log("one", folder="h/one")
    harness_log("two", folder="h/two", prompt="other", version=2.0)
    with quietly():
        warned = load_evals(tmp_path / "h").warnings
    assert any("task version is '3.0' for 'one' and '2.0' for 'two'" in w for w in warned)
    assert any("3 of 3 questions were asked with other prompts of 'one' and 'two'" in w for w in warned)
    inspect_log("i/a.eval", model="a")
    inspect_log("i/b.eval", model="b", question="What is {}?", version=1)
    with quietly():
        warned = load_evals(tmp_path / "i").warnings
    assert any("2 of 2 questions have the same id and another text for 'a' and 'b'" in w for w in warned)
    assert any("task version is '0' for 'a' and '1' for 'b'" in w for w in warned)


@pytest.mark.parametrize(
    ("names", "alike"),
    [
        (("gpt-4o-2024-05-13", "gpt-4o-2024-08-06"), True),
        (("gpt-4o", "gpt-4o-2024-08-06"), True),
        (("GPT-4o", "gpt-4o"), True),
        (("gpt-4-0613", "gpt-4-1106"), True),
        (("claude-3-5-sonnet-20240620", "claude-3-5-sonnet-20241022"), True),
        (("llama-3-8b", "llama-3-70b"), False),
        (("run-step-1000", "run-step-2000"), False),
    ],
)
def test_names_that_differ_only_by_a_date(names, alike) -> None:
    rows = {"model": list(names), "question": ["q", "q"], "score": [1, 0]}
    with quietly():
        assert any("differ only by a date or by capital letters" in w for w in load_evals(rows).warnings) == alike


# Predictions and back.


def test_predictions_and_back() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"model": m, "question": f"q{q}", "seed": s, "sample": k, "group": f"g{q % 3}", "score": int(rng.integers(2))}
        for m in ("a", "b")
        for q in range(7)
        for s in (1, 2)
        for k in range(3)
    ]
    e = load_evals(rows)
    back = Evals.from_predictions({m: e.predictions(m) for m in e.models}, groups=e.groups)
    same(e, back)
    one = load_evals([r for r in rows if r["seed"] == 1 and r["sample"] == 0])
    p = one.predictions("a")
    assert p.errors()[0].tolist() == (1 - one.scores[0, :, 0]).tolist()
    same(one.select(["a"]), Evals.from_predictions({"a": p}, groups=one.groups))
    assert (p.kind, p.name) == ("correct", "a")


def test_graded_predictions_and_back() -> None:
    rows = [{"model": m, "question": q, "score": q / 10 + (m == "b") / 20} for m in "ab" for q in range(5)]
    e = load_evals(rows)
    back = Evals.from_predictions({m: e.predictions(m) for m in e.models}, range=e.range)
    np.testing.assert_allclose(back.scores, e.scores)
    ragged = load_evals({"question": ["x", "x", "y"], "sample": [0, 1, 0], "score": [1, 0, 1]})
    with pytest.raises(InputError, match=r"different numbers of samples"):
        ragged.predictions("model")


def test_ids_that_are_written_differently_are_not_called_wrong_answers(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("question,score\n1,1\n2,0\n")
    (tmp_path / "b.csv").write_text("question,score\n1.0,1\n2.0,0\n")
    with pytest.raises(InputError, match="are the ids of the same questions written alike"):
        load_evals(tmp_path)


def test_a_model_without_the_metric_has_no_wrong_answers(tmp_path) -> None:
    (tmp_path / "a.csv").write_text("question,accuracy\n1,1\n2,0\n")
    (tmp_path / "b.csv").write_text("question,exact_match\n1,1\n2,1\n")
    with pytest.raises(InputError, match="'b' has none of the 2 questions"):
        load_evals(tmp_path, "accuracy", missing="wrong")


def test_the_names_that_tell_two_tables_apart_can_be_used(tmp_path) -> None:
    for name, mark in (("x", 1), ("y", 0)):
        (tmp_path / f"{name}.csv").write_text(f"model,question,score\na,1,{mark}\nb,1,1\n")
    with pytest.raises(InputError, match=r"models=\{'a 1': 'x.csv, a', 'a 2': 'y.csv, a'\}"):
        load_evals(tmp_path)
    e = load_evals(tmp_path, models={"a 1": "x.csv, a", "a 2": "y.csv, a"})
    assert (e.models, e.scores.ravel().tolist()) == (("a 1", "a 2"), [1, 0])


def test_losses_on_both_sides_of_one_are_no_two_scales(recwarn) -> None:
    rows = {"model": ["a", "a", "b", "b"], "question": [1, 2, 1, 2], "loss": [2.5, 0.1, 1.0, 0.2]}
    with pytest.raises(InputError, match=r"range=\(0, np.inf\)"):
        load_evals(rows)
    score_evals(load_evals(rows, range=(0, np.inf)))
    assert not any("scale" in str(w.message) for w in recwarn)


def test_a_model_without_the_chosen_filter_is_not_read_with_another(harness_log) -> None:
    harness_log("org/one", filters=("strict-match", "flexible-extract"))
    path = harness_log("org/two", filters=("flexible-extract",)).parents[1]
    with pytest.raises(InputError, match="'org/two' has none of the 3 questions, or not with this metric and filter"):
        load_evals(path, filter="strict-match")
    assert load_evals(path, filter="flexible-extract").models == ("org/one", "org/two")


def test_each_task_of_a_table_has_its_own_filters_and_metrics() -> None:
    filters = {"t": ("strict", "loose"), "u": ("none",)}
    rows = [
        {"task": t, "question": q, "filter": f, "score": float(f != "loose")}
        for t, own in filters.items()
        for q in "ab"
        for f in own
    ]
    e = load_evals(rows, filter="strict")
    assert e.questions.tolist() == ["t/a", "t/b", "u/a", "u/b"]
    assert (e.scores == 1).all()
    own = [
        {"task": t, "question": q, "acc": 1 if t == "t" else None, "f1": 0.5 if t == "u" else None}
        for t in "tu"
        for q in "ab"
    ]
    assert load_evals(own).scores.ravel().tolist() == [1, 1, 0.5, 0.5]
    with pytest.raises(InputError, match="'t': 'model'; 'u': no model"):
        load_evals(own, "acc")
    with pytest.raises(InputError, match="2 of 4 pairs of model and question without a score"):
        load_evals([{k: v for k, v in row.items() if k != "f1"} for row in own])


def test_seeds_of_single_answers_are_no_trainings() -> None:
    rows = {"model": list("aabb"), "question": ["p", "q"] * 2, "seed": [11, 12, 13, 14], "score": [1, 0, 1, 1]}
    for missing in ("refuse", "wrong", "drop"):
        with pytest.raises(InputError, match=r"in one of its trainings.* pass columns=\{'seed': None\}"):
            load_evals(rows, missing=missing, columns={"seed": "seed"})
    assert load_evals(rows, columns={"seed": None}).scores[:, :, 0].tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize("seed", ["seed", "random_seed"])
def test_seeds_may_be_those_of_trainings_or_of_samples(seed) -> None:
    rows = [{"model": m, "question": q, seed: s, "score": (s + q) % 2} for m in "ab" for q in (1, 2) for s in (1, 2, 3)]
    with pytest.raises(InputError, match=r"several seeds of one model.*\{'seed': '.*'\} if.*\{'sample': '.*'\} if"):
        load_evals(rows)
    trainings, samples = load_evals(rows, columns={"seed": seed}), load_evals(rows, columns={"sample": seed})
    assert trainings.seeds is not None
    assert trainings.seeds.tolist() == [["1", "2", "3"]] * 2
    assert (samples.seeds, samples.shape) == (None, (2, 2, 3))
    # Clear without a question: the name says it, samples have a column of their own, or nothing varies.
    named = [{"training_seed" if k == seed else k: v for k, v in row.items()} for row in rows]
    numbered = [row | {"sample": 0} for row in rows]
    one_each = [row for row in rows if row[seed] == 1 + (row["model"] == "b")]
    for clear, count in ((named, 3), (numbered, 3), (one_each, 1)):
        found = load_evals(clear)
        assert (found.shape[2], found.seeds is None) == (count, count == 1)
    assert load_evals(trainings.columns()).seeds is not None


def test_a_metric_whose_name_does_not_say_which_scores_are_better_is_noted():
    rows = {"model": ["a", "a", "b", "b"], "question": [1, 2, 1, 2], "score": [0, 1, 0, 0]}

    def read(name, **options):
        return load_evals({name if k == "score" else k: v for k, v in rows.items()}, metric=name, **options)

    def guessed(e):
        return [note for note in e.notes if "taken to be better" in note]

    assert guessed(read("sentiment")) == [
        "high scores are taken to be better (the name 'sentiment' does not say): otherwise pass higher_is_better=False"
    ]
    assert guessed(read("toxicity_score"))
    assert not guessed(read("sentiment", higher_is_better=False))
    for name in ("accuracy", "resolved", "rating"):
        assert (read(name).higher_is_better, guessed(read(name))) == (True, [])
    for name in ("bits_per_byte", "toxicity", "hallucination_rate"):
        assert (read(name).higher_is_better, guessed(read(name))) == (False, [])


def test_a_task_whose_log_gives_a_direction_does_not_decide_for_another(tmp_path):
    row = {"doc_id": 0, "filtered_resps": [], "metrics": ["acc"], "acc": 1}
    for task, metric in (("quiz", "acc"), ("text", "bits_per_byte")):
        line = {**row, "metrics": [metric], metric: 1}
        (tmp_path / f"samples_{task}_2025-01-01T00-00-00.0.jsonl").write_text(json.dumps(line))
    about = {"model_name": "m", "results": {}, "higher_is_better": {"quiz": {"acc": True}}}
    (tmp_path / "results_2025-01-01T00-00-00.0.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="some are better high and some low"):
        load_evals(tmp_path, metric=["acc", "bits_per_byte"])


BOTH = "model,question,score\nnew,q1,1\nnew,q2,0\nold,q1,1\nold,q2,1\n"


@pytest.mark.parametrize("models", ["new", ["new"], {"new": "new"}, {"new": ["new", "new"]}])
def test_the_name_of_a_model_comes_before_that_of_its_file(models, tmp_path) -> None:
    (tmp_path / "new.csv").write_text(BOTH)
    e = load_evals(tmp_path / "new.csv", models=models)
    assert (e.models, e.shape, e.seeds, e.scores.ravel().tolist()) == (("new",), (1, 2, 1), None, [1, 0])
    renamed = load_evals(tmp_path / "new.csv", models={"b": "new", "a": "old"})
    assert (renamed.models, renamed.scores[:, :, 0].tolist()) == (("b", "a"), [[1, 0], [1, 1]])


def test_a_file_of_two_models_has_no_single_name(tmp_path) -> None:
    (tmp_path / "runs.csv").write_text(BOTH)
    for pattern in ("runs", "runs.csv", "r*"):
        with pytest.raises(InputError, match=r"holds 2 models: 'new', 'old'\. Name the model .*\{'x': 'new'\}"):
            load_evals(tmp_path / "runs.csv", models={"x": pattern})
        assert load_evals(tmp_path / "runs.csv", models=pattern).models == ("new", "old")
    assert load_evals(tmp_path / "runs.csv", models={"x": "new"}).scores.ravel().tolist() == [1, 0]
    assert load_evals(tmp_path / "runs.csv", models={"x": "runs.csv, old"}).scores.ravel().tolist() == [1, 1]


def test_names_with_brackets_stand_for_themselves() -> None:
    rows = {
        "model": ["m[1]", "m[1]", "m1"],
        "task": ["t[1]", "t1", "t[1]"],
        "question": ["q", "q", "q"],
        "score": [1, 0, 0],
    }
    assert load_evals(rows, task="t[1]", models="m[1]").scores.ravel().tolist() == [1]
    assert load_evals(rows, task="t1").models == ("m[1]",)
    assert load_evals(rows, task="t[[]1]").models == ("m1", "m[1]")


def test_samples_are_counted_of_what_is_kept() -> None:
    rows = {
        "model": ["a", "a", "a", "b"],
        "question": ["q1", "q1", "q2", "q2"],
        "sample": [0, 1, 0, 0],
        "score": [1, 0, 1, 0],
    }
    e = load_evals(rows, missing="drop")
    assert (repr(e), e.shape) == ("Evals(2 models × 1 question × 1 sample)", (2, 1, 1))
    several = Evals(np.array([[[1, np.nan, np.nan]] * 3, [[1, 0, 1]] * 3]), ("a", "b"), np.arange(3))
    assert repr(several.select(["a"])) == "Evals(1 model × 3 questions × 1 sample)"
    assert several.select(["b"]).shape == (1, 3, 3)


def test_a_metric_that_no_task_has_is_refused_beside_one_that_there_is() -> None:
    rows = {"model": ["a", "a"], "question": ["x", "y"], "f1": [1, 0], "acc": [1, 0]}
    assert load_evals(rows, metric=["f1"]).metric == "f1"
    with pytest.raises(InputError, match=r"metric='acc_norm' is in none of the logs"):
        load_evals(rows, metric=["f1", "acc_norm"])
