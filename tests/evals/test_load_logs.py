"""Logs of each tool, made here and real ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning, InputError, quietly

LOGS = Path(__file__).parent / "logs"


def test_logs_that_inspect_wrote_with_zstd() -> None:
    if sys.version_info < (3, 14):  # which reads zstd by itself
        pytest.importorskip("backports.zstd")
    e = cw.load_evals(LOGS)
    assert e.models == ("mockllm/a", "mockllm/b")
    assert e.questions.tolist() == ["q1", "q2", "q10"]
    # C, I, P and N are 1, 0, ½ and 0; epochs are samples.
    assert e.scores[0].tolist() == [[1, 1], [1, 0], [0.5, 0]]
    # The accuracies that Inspect computed and wrote into the headers.
    np.testing.assert_allclose(e.scores.mean(axis=(1, 2)), [0.5833333333333334, 0.3333333333333333])
    assert "P counts as ½ and N as 0" in e.notes
    assert not e.warnings
    grouped = cw.load_evals(LOGS, columns={"group": "subject"})
    assert grouped.groups is not None
    assert grouped.groups.tolist() == ["x", "x", "y"]


def test_what_inspect_writes_now(tmp_path: Path) -> None:
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    @solver
    def guess():  # type: ignore[no-untyped-def]
        async def solve(state, generate):  # type: ignore[no-untyped-def]
            state.output = ModelOutput.from_content("mockllm/model", str(int(state.sample_id[1:]) % 3))
            return state

        return solve

    data = MemoryDataset([Sample(id=f"q{i}", input=f"{i}?", target="1") for i in range(12)])
    for form in ("eval", "json"):
        task = inspect_ai.Task(name="thirds", dataset=data, solver=guess(), scorer=match())
        log = inspect_ai.eval(
            task, model=get_model("mockllm/model"), log_dir=str(tmp_path / form), log_format=form, display="none"
        )[0]
        e = cw.load_evals(log.location)
        assert e.scores.mean() == pytest.approx(log.results.scores[0].metrics["accuracy"].value)


@pytest.mark.parametrize("ending", [".eval", ".json"])
def test_inspect_reads_scores_and_no_transcripts(inspect_log, ending) -> None:
    # The members of samples/ in the archive are not JSON: reading one of them would fail.
    path = inspect_log(f"a{ending}", {"q1": ["C", "I"], "q2": ["P", "N"], "q10": [True, "0.25"]})
    e = cw.load_evals(path)
    assert e.models == ("openai/gpt",)
    assert e.scores[0].tolist() == [[1, 0], [0.5, 0], [1, 0.25]]


def test_inspect_scorers_and_their_parts_are_metrics(inspect_log) -> None:
    path = inspect_log(marks={"1": [{"a": 1, "b": 0}], "2": [{"a": 0, "b": 0.5}]}, scorer="two")
    with pytest.raises(InputError, match=r"2 metrics: 'two/a', 'two/b'.*metric='two/a'"):
        cw.load_evals(path)
    assert cw.load_evals(path, metric="two/b").scores[0, :, 0].tolist() == [0, 0.5]


def test_inspect_logs_of_older_versions(tmp_path) -> None:
    about = {"status": "success", "eval": {"task": "t", "model": "m"}, "results": {"scores": [{"name": "match"}]}}
    samples = [
        {"id": 1, "epoch": 1, "scores": {"88F74D2C": {"value": "C"}}},
        {"id": 2, "epoch": 1, "score": {"value": "I"}},
    ]
    (tmp_path / "old.json").write_text(json.dumps({"version": 1, **about, "samples": samples}))
    e = cw.load_evals(tmp_path / "old.json")
    assert (e.metric, e.scores[0, :, 0].tolist()) == ("match", [1, 0])


def test_inspect_messages_are_compared_by_their_text(tmp_path) -> None:
    for model, name in (("a", "x1"), ("b", "x2")):
        asked = [{"id": name, "role": "user", "content": "How  much?"}]
        sample = {"id": 1, "epoch": 1, "input": asked, "scores": {"match": {"value": "C"}}}
        log = {"version": 2, "status": "success", "eval": {"task": "t", "model": model}, "samples": [sample]}
        (tmp_path / f"{model}.json").write_text(json.dumps(log))
    assert not cw.load_evals(tmp_path).warnings  # ids of messages differ between runs


def test_inspect_logs_without_usable_scores_say_so(inspect_log) -> None:
    with pytest.raises(InputError, match=r"a\.eval is unscored: none of its 2 samples has a score"):
        cw.load_evals(inspect_log("a.eval", {"1": [None], "2": [None]}))
    with pytest.raises(InputError, match=r"is unscored: scorer 'match' holds the text 'A'"):
        cw.load_evals(inspect_log("b.eval", {"1": ["A"], "2": ["C"]}))
    for status, word in (("cancelled", "was cancelled"), ("error", "ended with an error"), ("started", "not finished")):
        path = inspect_log(f"{status}.json", status=status)
        with pytest.raises(InputError, match=f"{word}; it holds 2 of 2 samples.*unfinished=True"):
            cw.load_evals(path)
        with pytest.warns(CurvewiseWarning, match=word):
            assert cw.load_evals(path, unfinished=True).scores.mean() == 0.5
    with pytest.raises(InputError, match=r"not finished; it holds 2 samples"):
        cw.load_evals(inspect_log("killed.eval", journal=True))
    with pytest.raises(InputError, match=r"only overall scores"):
        cw.load_evals(inspect_log("none.json", {"1": []}, results={"scores": [{"name": "match"}]}))


def test_epochs_of_several_logs_are_further_samples(inspect_log, tmp_path) -> None:
    inspect_log("a.eval", {"1": ["C", "I"], "2": ["C", "C"]})
    inspect_log("b.eval", {"2": ["I"], "1": ["I"]})
    e = cw.load_evals(tmp_path, repeats="samples")
    assert e.scores[0].tolist() == [[1, 0, 0], [1, 1, 0]]
    path = tmp_path / "twice.json"
    log = json.loads(inspect_log("twice.json").read_text())
    path.write_text(json.dumps(log | {"samples": log["samples"] * 2}))
    with pytest.raises(InputError, match=r"the same sample of the question '1' of the task 'sums' twice"):
        cw.load_evals(path)


def test_samples_without_a_score_are_counted(inspect_log) -> None:
    path = inspect_log(marks={"1": ["C", None], "2": ["I", "C"]})
    with pytest.raises(InputError, match=r"1 sample without a score, the first of 'openai/gpt' on '1'"):
        cw.load_evals(path)
    assert cw.load_evals(path, missing="wrong").scores[0].tolist() == [[1, 0], [0, 1]]
    dropped = cw.load_evals(path, missing="drop")
    assert dropped.samples.tolist() == [[1, 2]]
    assert any("1 sample without a score" in note for note in dropped.notes)


def test_a_folder_leaves_unusable_logs_out_and_says_so(inspect_log, tmp_path) -> None:
    inspect_log("a.eval", model="a")
    inspect_log("b.eval", model="b")
    inspect_log("c.eval", model="c", status="cancelled")
    (tmp_path / "notes.json").write_text('{"hello": "world"}')
    with quietly():
        e = cw.load_evals(tmp_path)
    assert e.models == ("a", "b")
    assert any("c.eval was cancelled" in w for w in e.warnings)
    assert any("notes.json is no log of a known format" in w for w in e.warnings)


def test_parts_of_a_merged_log_are_not_read_twice(inspect_log, tmp_path) -> None:
    inspect_log("whole.eval")
    inspect_log("whole.shards/0/part.eval", {"1": ["C"]})
    assert cw.load_evals(tmp_path).shape == (1, 2, 1)


def test_harness_model_task_and_direction_come_from_the_results_file(harness_log, tmp_path) -> None:
    harness_log("org/one")
    harness_log("org/two", [{"exact_match": 0.0}, {"exact_match": 0.0}, {"exact_match": 1.0}])
    e = cw.load_evals(tmp_path)
    assert e.models == ("org/one", "org/two")
    assert e.scores[:, :, 0].tolist() == [[1, 0, 1], [0, 0, 1]]
    assert (e.metric, e.higher_is_better, e.warnings) == ("exact_match", True, ())
    assert {"filter 'strict-match'", "task 'gsm8k'"} <= set(e.notes)
    low = cw.load_evals(
        harness_log("org/three", [{"perplexity": 0.5}], task="lambada", folder="three"), models="org/three"
    )
    assert not low.higher_is_better


def test_harness_filters_and_metrics_are_asked_for(harness_log) -> None:
    rows = [{"exact_match": 1.0, "f1": 0.5}, {"exact_match": 0.0, "f1": 0.25}]
    path = harness_log("one", rows, filters=("strict-match", "flexible-extract"))
    with pytest.raises(InputError, match=r"2 metrics: 'exact_match', 'f1'"):
        cw.load_evals(path)
    with pytest.raises(InputError, match=r"2 filters: 'strict-match', 'flexible-extract'.*filter='strict-match'"):
        cw.load_evals(path, "f1")
    e = cw.load_evals(path, "f1", "flexible-extract")
    assert e.shape == (1, 2, 1)  # not four questions
    with pytest.raises(InputError, match=r"filter='loose'.*no such filter"):
        cw.load_evals(path, "f1", "loose")
    with pytest.raises(InputError, match=r"metric='acc'.*no such metric.*'exact_match', 'f1'"):
        cw.load_evals(path, "acc")


def test_harness_lists_as_metrics_do_not_break_the_others(harness_log) -> None:
    rows = [{"prompt_level_strict_acc": True, "inst_level_strict_acc": [True, False]}] * 3
    path = harness_log("one", rows, task="ifeval")
    assert cw.load_evals(path).metric == "prompt_level_strict_acc"
    with pytest.raises(InputError, match=r"inst_level_strict_acc.*holds lists"):
        cw.load_evals(path, "inst_level_strict_acc")


def test_harness_without_results_is_called_by_its_folder(harness_log, tmp_path) -> None:
    for model in ("org/one", "two"):
        harness_log(model, results=False)
    e = cw.load_evals(tmp_path)
    assert e.models == ("org/one", "two")
    assert "'org/one', 'two' are called by their folders (no results_*.json of the same date)" in e.notes
    named = cw.load_evals({"new": tmp_path / "org__one", "old": tmp_path / "two"})
    assert not any("no results_*.json" in note for note in named.notes)
    # Further tasks and dates of a model lie in its folder.
    harness_log("org/one", results=False, task="arc", date="2026-01-01T00-00-00")
    assert cw.load_evals(tmp_path, missing="drop", task="gsm8k").models == ("org/one", "two")


def test_harness_without_results_never_merges_two_models(harness_log, tmp_path) -> None:
    # One folder, two dates, different tasks: nothing says that the model is the same.
    for task, date in (("arc", "2025-01-01T00-00-00"), ("gsm8k", "2025-01-02T00-00-00")):
        harness_log("x", results=False, task=task, date=date, folder="logs")
    found = cw.evals.survey_evals(tmp_path / "logs")
    assert found.model == ("samples_arc_2025-01-01T00-00-00", "samples_gsm8k_2025-01-02T00-00-00")
    assert "no two share a question" in found.problem
    # Two folders of one name.
    for task, folder in (("arc", "new/run"), ("gsm8k", "old/run")):
        harness_log("x", results=False, task=task, folder=folder)
    with pytest.raises(InputError, match=r"new/run and .*old/run.*whether it is the same.*NAME: FOLDER"):
        cw.load_evals([tmp_path / "new", tmp_path / "old"])
    one = cw.load_evals({"m": [tmp_path / "new" / "run", tmp_path / "old" / "run" / "samples_*.jsonl"]}, task="arc")
    assert one.models == ("m",)


def test_a_dict_names_the_models_of_files_and_folders(harness_log, tmp_path) -> None:
    harness_log("org/one")
    harness_log("org/two", results=False)
    e = cw.load_evals({"new": tmp_path / "org__one", "old": str(tmp_path / "org__two")})
    assert e.models == ("new", "old")
    with pytest.raises(InputError, match=r"'both' is given as the name of logs of 2 models: 'org/one', 'org/two'"):
        cw.load_evals({"both": tmp_path})
    with pytest.raises(InputError, match=r"given as 'a' and as 'b'"):
        cw.load_evals({"a": tmp_path / "org__one" / "*.jsonl", "b": tmp_path / "org__one" / "samples_*"})
    # A dict of columns is a table still.
    assert cw.load_evals({"model": ["a", "b"], "question": ["q", "q"], "score": ["1", "0"]}).models == ("a", "b")


def test_harness_samples_inside_the_results(tmp_path) -> None:
    rows = [{"doc_id": i, "filter": "none", "metrics": ["acc"], "acc": i % 2, "doc": {}, "resps": []} for i in range(4)]
    document = {
        "results": {},
        "config": {"model_args": "pretrained=org/m,dtype=auto"},
        "samples": {"arc": rows, "boolq": rows},
    }
    (tmp_path / "run.json").write_text(json.dumps(document))
    e = cw.load_evals(tmp_path / "run.json")
    assert (e.models, e.shape, e.scores.mean()) == (("org/m",), (1, 8, 1), 0.5)


def test_harness_samples_that_were_cut_at_a_line(harness_log) -> None:
    path = harness_log("one")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    with pytest.warns(CurvewiseWarning, match=r"holds 2 of the 3 questions that its results file counts"):
        cw.load_evals(path)


def test_several_tasks_have_a_metric_each_and_their_names_in_the_ids(harness_log, tmp_path) -> None:
    for model in ("one", "two"):
        harness_log(model, task="gsm8k")
        harness_log(model, [{"acc": 1.0, "acc_norm": 0.0}], task="arc", filters=("none",))
    with pytest.raises(InputError, match=r"the task 'arc' has 2 metrics"):
        cw.load_evals(tmp_path)
    e = cw.load_evals(tmp_path, ["acc_norm", "exact_match"])
    assert e.questions.tolist() == ["arc/0", "gsm8k/0", "gsm8k/1", "gsm8k/2"]
    assert e.tasks is not None
    assert e.tasks.tolist() == ["arc", "gsm8k", "gsm8k", "gsm8k"]
    assert cw.load_evals(tmp_path, task="gsm*").tasks is None
    with pytest.raises(InputError, match=r"task='gsm'.*none of the logs.*Did you mean 'gsm8k'"):
        cw.load_evals(tmp_path, task="gsm")


def test_groups_are_a_field_of_the_document(harness_log) -> None:
    e = cw.load_evals(harness_log("one"), columns={"group": "subject"})
    assert e.groups is not None
    assert e.groups.tolist() == ["s0", "s1", "s0"]
    hashed = cw.load_evals(harness_log("one"), columns={"group": "question"})
    assert hashed.groups is not None
    assert "Question" not in "".join(hashed.groups)  # a text is never shown
    assert len(set(hashed.groups)) == 3


def helm_run(folder: Path, model: str, values: dict[str, float], shots: int = 5, split: str = "test") -> None:
    folder.mkdir(parents=True)
    rows = []
    for instance, value in values.items():
        stats = [{"name": {"name": "exact_match", "split": split}, "count": 1, "sum": value, "mean": value}]
        stats += [{"name": {"name": "num_prompt_tokens", "split": split}, "count": 1, "sum": 9, "mean": 9.0}]
        rows.append({"instance_id": instance, "train_trial_index": 0, "stats": stats})
    (folder / "per_instance_stats.json").write_text(json.dumps(rows))
    adapter = {"model": model, "max_train_instances": shots, "method": "joint", "instructions": "Answer."}
    name = f"mmlu:subject=law,method=joint,model={model.replace('/', '_')}"
    (folder / "run_spec.json").write_text(json.dumps({"name": name, "adapter_spec": adapter}))
    (folder / "stats.json").write_text("[]")


def test_helm_runs(tmp_path) -> None:
    helm_run(tmp_path / "a", "org/a", {"id2": 1.0, "id1": 0.0})
    helm_run(tmp_path / "b", "org/b", {"id1": 1.0, "id2": 1.0}, shots=0)
    with pytest.warns(CurvewiseWarning, match=r"'mmlu:subject=law,method=joint'.*shots is '5' for 'org/a' and '0' for"):
        e = cw.load_evals(tmp_path)
    assert e.models == ("org/a", "org/b")
    assert e.scores[:, :, 0].tolist() == [[0, 1], [1, 1]]
    assert cw.load_evals(tmp_path / "a", "num_prompt_tokens", range=(0, 100)).scores.mean() == 9
    with pytest.raises(InputError, match=r"lies beside the scores"):
        cw.load_evals(tmp_path / "a" / "stats.json")


def eee_records(folder: Path, scores: dict[str, float], **config: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    metric = {"metric_name": "judge", "lower_is_better": False, "min_score": 1, "max_score": 10} | config
    about = {"schema_version": "0.3.0", "evaluation_id": "e", "model_info": {"id": "org/m"}}
    about |= {
        "evaluation_results": [{"evaluation_result_id": "r", "evaluation_name": "bench", "metric_config": metric}]
    }
    about |= {"detailed_evaluation_results": {"file_path": "data/x_samples.jsonl", "total_rows": len(scores)}}
    (folder / "x.json").write_text(json.dumps(about))
    rows = [
        {"schema_version": "0.3.0", "evaluation_id": "e", "model_id": "org/m", "evaluation_name": "bench"}
        | {"evaluation_result_id": "r", "sample_id": i, "sample_hash": f"h{i}", "interaction_type": "single_turn"}
        | {
            "input": {"raw": "A question?"},
            "evaluation": {"score": s, "is_correct": s > 5},
            "metadata": {"level": i[0]},
        }
        for i, s in scores.items()
    ]
    path = folder / "x_samples.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_records_bring_range_and_direction(tmp_path) -> None:
    path = eee_records(tmp_path, {"a1": 7, "a2": 10, "b1": 1})
    e = cw.load_evals(tmp_path, columns={"group": "level"})
    assert (e.models, e.metric, e.range, e.higher_is_better) == (("org/m",), "judge", (1, 10), True)
    assert e.groups is not None
    assert e.groups.tolist() == ["a", "a", "b"]
    assert not cw.load_evals(eee_records(tmp_path / "low", {"a": 2}, lower_is_better=True)).higher_is_better
    unknown = eee_records(tmp_path / "unknown", {"a": 2, "b": -1}, has_unknown_level=True)
    assert cw.load_evals(unknown, missing="drop").questions.tolist() == ["a"]
    with pytest.raises(InputError, match=r"scores of its questions are in x_samples\.jsonl"):
        cw.load_evals(tmp_path / "x.json")
    path.write_text("\n".join(path.read_text().splitlines()[:2]))
    with pytest.warns(CurvewiseWarning, match=r"has 2 rows, and the document beside it says 3"):
        cw.load_evals(path)


def test_marks_and_counts_by_question(tmp_path) -> None:
    (tmp_path / "lists.json").write_text(
        json.dumps({"raw_scored_generations": {"s2": [1, 0], "s10": [0]}, "pass_at_1": 50})
    )
    e = cw.load_evals(tmp_path / "lists.json")
    assert (e.models, e.questions.tolist(), e.samples.tolist()) == (("lists",), ["s2", "s10"], [[2, 1]])
    (tmp_path / "counts.json").write_text(
        json.dumps({"s2": {"correct": 1, "total": 3}, "s10": {"correct": 0, "total": 1}})
    )
    counts = cw.load_evals(tmp_path / "counts.json")
    assert np.nansum(counts.scores, axis=2).tolist() == [[1, 0]]
    assert counts.samples.tolist() == [[3, 1]]
    (tmp_path / "bad.json").write_text(json.dumps({"s2": {"correct": 4, "total": 3}}))
    with pytest.raises(InputError, match=r"more right answers than attempts: 4 of 3"):
        cw.load_evals(tmp_path / "bad.json")


def test_trials_of_agents(tmp_path) -> None:
    trials = [
        {"task_id": t, "trial": k, "reward": float(t == k), "traj": [{"role": "user"}]} for k in (1, 0) for t in (0, 1)
    ]
    (tmp_path / "gpt-4o-retail.json").write_text(json.dumps(trials))
    e = cw.load_evals(tmp_path / "gpt-4o-retail.json")
    assert (e.models, e.shape, e.metric) == (("gpt-4o-retail",), (1, 2, 2), "reward")
    assert e.scores[0].tolist() == [[1, 0], [0, 1]]
    simulations = [{"task_id": "7", "trial": k, "reward_info": {"reward": 1.0}, "messages": []} for k in (0, 1)]
    about = {"agent_info": {"llm": "gpt-4.1"}, "environment_info": {"domain_name": "retail"}}
    (tmp_path / "tau2.json").write_text(json.dumps({"info": about, "simulations": simulations}))
    e = cw.load_evals(tmp_path / "tau2.json")
    assert (e.models, e.shape) == (("gpt-4.1",), (1, 1, 2))


def test_details_of_lighteval(tmp_path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for model, values in (("one", [1.0, 0.0]), ("two", [1.0, 1.0])):
        folder = tmp_path / "details" / "org" / model / "2025-01-02T03-04-05.6"
        folder.mkdir(parents=True)
        rows = [
            {
                "doc": {"id": str(i), "query": f"Question {i}?"},
                "metric": {"extractive_match": v},
                "model_response": {"text": ["x"]},
            }
            for i, v in enumerate(values)
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / "details_lighteval|gsm8k|0_2025-01-02T03-04-05.6.parquet")
    e = cw.load_evals(tmp_path)
    assert (e.models, e.metric) == (("org/one", "org/two"), "extractive_match")
    assert e.scores[:, :, 0].tolist() == [[1, 0], [1, 1]]
    assert "task 'lighteval|gsm8k|0'" in e.notes
    # Version 0.9 and before: no ids, and metrics as the text of a dict where they are nested.
    folder = tmp_path / "old" / "details_org__three" / "2024-01-01T00-00-00"
    folder.mkdir(parents=True)
    rows = [{"example": f"Question {i}?", "full_prompt": "…", "metrics": "{'acc': 1, 'em': [1]}"} for i in range(2)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "details_harness|arc|25_2024-01-01T00-00-00.parquet")
    old = cw.load_evals(tmp_path / "old")
    assert (old.models, old.metric, old.scores.mean()) == (("org/three",), "acc", 1)
    assert not any("Question" in q for q in old.questions)


def test_details_of_opencompass(tmp_path) -> None:
    for model, marks in (("m-1", [[True, False], [True, True]]), ("m-2", [[False, False], [True, False]])):
        (tmp_path / "results" / model).mkdir(parents=True)
        details = [{"example_abbr": f"gsm8k_{i}", "pred": ["1"], "correct": given} for i, given in enumerate(marks)]
        document = {"accuracy (2 runs average)": 75.0, "details": details}
        (tmp_path / "results" / model / "gsm8k.json").write_text(json.dumps(document))
    e = cw.load_evals(tmp_path)
    assert (e.models, e.shape, "task 'gsm8k'" in e.notes) == (("m-1", "m-2"), (2, 2, 2), True)
    by_number = {"type": "GEN", "0": {"prompt": "…", "correct": True}, "1": {"prompt": "…", "correct": False}}
    (tmp_path / "old.json").write_text(json.dumps({"score": 50, "details": by_number}))
    assert cw.load_evals(tmp_path / "old.json").scores[0, :, 0].tolist() == [1, 0]
    (tmp_path / "bare.json").write_text(json.dumps({"score": 50, "details": {"0": {"pred": "1", "references": "2"}}}))
    with pytest.raises(InputError, match=r"details without marks"):
        cw.load_evals(tmp_path / "bare.json")


# Real logs, where they are mounted.


def real(data_dir: Path, name: str) -> Path:
    path = data_dir / "evals" / name
    if not path.exists():
        pytest.skip(f"no {name} among the data")
    return path


def test_real_inspect_logs(data_dir) -> None:
    e = cw.load_evals(real(data_dir, "inspect/2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval"))
    values = e.scores[0, :, 0]
    assert (e.models, e.metric, len(values)) == (("openai/gpt-4o-mini",), "match", 10)
    assert values.mean() == pytest.approx(0.8)
    assert values.std(ddof=1) / np.sqrt(10) == pytest.approx(0.13333333333333333)  # as the log has it
    with pytest.raises(InputError, match=r"unscored"):
        cw.load_evals(real(data_dir, "inspect/2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval"))
    with pytest.raises(InputError, match=r"cancelled"):
        cw.load_evals(real(data_dir, "inspect/2025-05-12T20-28-13-04-00_popularity.json"))


@pytest.mark.parametrize(
    "name",
    ["inspect/2025-05-12T20-28-26-04-00_security-guide.json", "inspect/mmlu-summary-choices.eval"]
    + [f"every_eval_ever/inspect/data_{n}.json" for n in ("arc_qwen", "arc_sonnet", "pubmedqa_gpt4o_mini")],
)
def test_real_inspect_logs_agree_with_their_own_accuracy(data_dir, name) -> None:
    import zipfile

    path = real(data_dir, name)
    text = zipfile.ZipFile(path).read("header.json") if path.suffix == ".eval" else path.read_text()
    said = json.loads(text)["results"]["scores"][0]["metrics"]["accuracy"]["value"]
    assert cw.load_evals(path).scores.mean() == pytest.approx(said)


def test_real_harness_logs(data_dir) -> None:
    with quietly():  # the files are excerpts: 3 of 100 questions
        e = cw.load_evals(real(data_dir, "lm-eval-pyfade"))
    assert e.models == ("gemma3:12b-it-q4_K_M", "gemma3:12b-u1")
    assert e.questions.tolist() == ["16", "17", "18"]
    assert e.scores[:, :, 0].tolist() == [[1, 0, 1], [1, 0, 0]]


def test_real_helm_run_agrees_with_its_own_mean(data_dir) -> None:
    folder = real(
        data_dir, "every_eval_ever/helm/mmlu-subject=philosophy,method=multiple_choice_joint,model=openai_gpt2"
    )
    with pytest.raises(InputError, match=r"8 metrics: 'exact_match'"):
        cw.load_evals(folder)
    with pytest.raises(InputError, match=r"2 filters"):
        cw.load_evals(folder, "exact_match")
    e = cw.load_evals(folder, "exact_match", "test")
    stats = json.loads((folder / "stats.json").read_text())
    plain = [s for s in stats if s["name"] == {"name": "exact_match", "split": "test"}]
    assert e.scores.mean() == pytest.approx(plain[0]["mean"])
    assert e.models == ("openai/gpt2",)


def test_real_marks_agree_with_their_own_pass_at_k(data_dir) -> None:
    folder = real(data_dir, "cruxeval")
    e = cw.load_evals(folder)
    assert e.shape == (52, 800, 10)
    assert not e.warnings
    for m in range(0, 52, 9):
        own = json.loads((folder / f"{e.models[m]}.json").read_text())
        assert 100 * e.scores[m].mean() == pytest.approx(own["pass_at_1"])


def test_real_trials(data_dir) -> None:
    e = cw.load_evals(real(data_dir, "tau-bench/gpt-4o-airline.json"))
    assert (e.models, e.shape) == (("gpt-4o-airline",), (1, 50, 4))
    assert e.scores.mean() == pytest.approx(0.42)


def test_real_preferences(data_dir) -> None:
    path = real(data_dir, "alpaca_eval/preferences.csv")
    with pytest.raises(InputError, match=r"No column .* known as the score: it has .*'preference'"):
        cw.load_evals(path)
    with pytest.raises(InputError, match=r"from 1 to 2.*range=\(1, 2\)"):
        cw.load_evals(path, metric="preference")
    e = cw.load_evals(path, metric="preference", range=(1, 2))
    wins = 100 * (e.select(["claude-2.1"]).scores[0, :, 0] - 1)
    assert wins.mean() == pytest.approx(15.733507, abs=1e-6)
    assert wins.std(ddof=1) / np.sqrt(len(wins)) == pytest.approx(1.120316, abs=1e-6)


def test_real_records(data_dir) -> None:
    e = cw.load_evals(real(data_dir, "every_eval_ever/skill_reference_conversion"))
    assert (e.models, e.questions.tolist(), e.range) == (("demo-org/demo-model",), ["demo_0001"], (0, 1))
    with pytest.raises(InputError, match=r"6 overall scores"):
        cw.load_evals(real(data_dir, "every_eval_ever/98ea850e-7019-4728-a558-8b1819ec47c2.json"))
    with pytest.raises(InputError, match=r"overall scores"):
        cw.load_evals(real(data_dir, "every_eval_ever/inspect/data_with_llm_scoring.json"))


def test_metadata_with_the_fields_of_a_sample_keep_the_one_that_names_the_group(tmp_path) -> None:
    samples = [
        {"id": i, "epoch": 1, "input": "x", "scores": {"match": {"value": "C"}}, "messages": ["long"], "metadata": more}
        for i in range(4)
        for more in [{"id": i, "epoch": 3, "input": "y", "passage": f"p{i // 2}"}]
    ]
    log = {"version": 2, "status": "success", "eval": {"model": "m", "task": "t"}, "samples": samples}
    (tmp_path / "log.json").write_text(json.dumps(log))
    e = cw.load_evals(tmp_path / "log.json", columns={"group": "passage"})
    assert e.groups.tolist() == ["p0", "p0", "p1", "p1"]


def test_a_model_whose_samples_are_not_there_is_named(harness_log, tmp_path, recwarn) -> None:
    harness_log("org/one")
    other = harness_log("org/two", date="2025-09-10T13-31-53.431753")
    assert cw.load_evals(tmp_path).models == ("org/one", "org/two")
    assert not recwarn.list
    # The results of lighteval lie beside the folder of its details.
    date = "2025-01-01T00-00-00.1"
    results = tmp_path / "light" / "results" / "org" / "m" / f"results_{date}.json"
    results.parent.mkdir(parents=True)
    results.write_text(json.dumps({"config_general": {}, "results": {}}))
    details = tmp_path / "light" / "details" / "org" / "m" / date / f"details_x_{date}.parquet"
    details.parent.mkdir(parents=True)
    details.touch()
    with pytest.raises(InputError, match="is empty"):  # an empty file is no reason to leave the rest out
        cw.load_evals(tmp_path)
    assert not recwarn.list
    details.unlink()
    other.unlink()
    described = {
        "schema_version": "1",
        "evaluation_results": [],
        "detailed_evaluation_results": {"file_path": "x.jsonl"},
    }
    (tmp_path / "described.json").write_text(json.dumps(described))
    assert cw.load_evals(tmp_path).models == ("org/one",)
    texts = sorted(str(w.message) for w in recwarn.list)
    assert [text.split()[2] for text in texts] == [
        "described.json",
        results.name,
        "results_2025-09-10T13-31-53.431753.json",
    ]


def test_a_metric_of_two_records_has_the_range_and_direction_of_each(tmp_path) -> None:
    path = eee_records(tmp_path, {"a1": 7, "a2": 10, "b1": 1})
    about, (row, *_) = json.loads((tmp_path / "x.json").read_text()), path.read_text().splitlines()
    config = {"metric_name": "judge", "lower_is_better": True, "min_score": 0, "max_score": 20}
    about["evaluation_results"] += [{"evaluation_result_id": "s", "evaluation_name": "other", "metric_config": config}]
    del about["detailed_evaluation_results"]["total_rows"]
    other = json.loads(row) | {"evaluation_name": "other", "evaluation_result_id": "s"}
    (tmp_path / "x.json").write_text(json.dumps(about))
    path.write_text(f"{path.read_text()}\n{json.dumps(other)}")
    with pytest.raises(InputError, match="some are better high and some low"):
        cw.load_evals(path)
    for task, ends, higher in (("bench", (1, 10), True), ("other", (0, 20), False)):
        e = cw.load_evals(path, task=task)
        assert (e.range, e.higher_is_better, e.metric) == (ends, higher, "judge")
