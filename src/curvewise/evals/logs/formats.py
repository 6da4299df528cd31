"""Formats of tools but Inspect: lm-eval-harness, lighteval, HELM, Every Eval Ever, OpenCompass, tau2-bench, marks."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import InputError, brief, format_path
from curvewise.evals.logs.block import (
    SAMPLES_OF_HARNESS,
    Block,
    Coder,
    LogOptions,
    UnreadError,
    block_of_model,
    code_cells,
    hash_of,
    hidden_cells,
    id_of,
    json_beside,
    json_lines,
    one_name,
    records_only,
    scores_of,
)
from curvewise.reading.table import LARGEST_ARRAYS, check_unpacked
from curvewise.text import format_count
from curvewise.types.results import FloatArray


def read_document(data: Any, path: Path, options: LogOptions) -> list[Block] | None:
    """Read a JSON document by what it looks like; None for one of no known format."""
    if isinstance(data, list):
        is_helm = bool(data) and isinstance(data[0], dict) and {"instance_id", "stats"} <= data[0].keys()
        return [read_helm(data, path, options.metrics)] if is_helm else None
    if not isinstance(data, dict):
        return None
    if {"schema_version", "evaluation_results"} <= data.keys():
        raise refuse_record(data, path)
    simulations, details = data.get("simulations"), data.get("details")
    if (
        isinstance(simulations, list)
        and simulations
        and all(isinstance(s, dict) and "task_id" in s for s in simulations)
    ):
        return [read_simulations(data, path)]
    if isinstance(details, list | dict) and details and len(data) > 1:
        return [read_compass(data, path)]
    if "results" in data and {"config", "config_general", "configs"} & data.keys():  # of lm-eval-harness or lighteval
        if isinstance(data.get("samples"), dict):
            return read_inline(data, path, options)
        raise UnreadError(
            f"{format_path(path)} holds overall results only; scores of single questions are in samples_*.jsonl "
            "(lm-eval with --log_samples) or details_*.parquet (lighteval with --save-details).",
            "side" if _has_samples(path) else "log",
        )
    return None


def _has_samples(path: Path) -> bool:
    """Return whether the samples of a results file lie where lm-eval or lighteval writes them."""
    date = re.search(r"\d{4}-\d\d-\d\dT[\d.-]+(?=\.json)", path.name)
    if date is None:  # older versions
        return any(path.parent.glob("*.jsonl*"))
    details = (folder.glob(f"details/**/details_*_{date[0]}.parquet") for folder in path.resolve().parents[:4])
    return any(path.parent.glob(f"samples_*_{date[0]}.jsonl*")) or any(map(any, details))


# lm-eval-harness: ``samples_*.jsonl``, with ``results_*.json`` beside them.

_SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")
_ROW = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "schema")
_HASHES = ("doc_hash", "prompt_hash", "target_hash")


def is_harness_row(row: Mapping[str, Any]) -> bool:
    """Return whether a JSON line is a sample of lm-eval-harness."""
    return "doc_id" in row and ("filtered_resps" in row or "resps" in row or "doc_hash" in row)


def read_harness(path: Path, options: LogOptions) -> Block:
    """Read the samples of one task, and what the results file beside them says of the model and the task."""
    name = _SAMPLES.fullmatch(path.name)
    results = json_beside(path.with_name(f"results_{name['date']}.json")) if name else {}
    called = (model, None) if (model := _harness_model(results)) else _name_by_place(path)
    return _harness_block(json_lines(path), name["task"] if name else "", results, called, path, options)


def _name_by_place(path: Path) -> tuple[str, Path]:
    """Return what a model without a results file is called, and the folder or file that says so.

    lm-eval writes MODEL/samples_TASK_DATE.jsonl, with two underscores for a slash. A folder without them may also hold
    runs of several models: where its files have several dates, each is called by its own name.
    """
    folder = path.resolve().parent
    if _SAMPLES.fullmatch(path.name) and folder.name:
        dates = {found["date"] for file in folder.iterdir() if (found := _SAMPLES.fullmatch(file.name))}
        if "__" in folder.name or len(dates) == 1:
            return folder.name.replace("__", "/"), folder
    return path.name.removesuffix(".gz").removesuffix(".jsonl"), path


def read_inline(data: Mapping[str, Any], path: Path, options: LogOptions) -> list[Block]:
    """Read the samples that a results document holds itself, as ``simple_evaluate`` returns it."""
    called = (model, None) if (model := _harness_model(data)) else (path.stem, path)
    samples = data["samples"].items()
    return [_harness_block([rows], str(task), data, called, path, options) for task, rows in samples if rows]


def _harness_block(
    batches: Iterable[Sequence[Any]],
    task: str,
    results: Mapping[str, Any],
    called: tuple[str, Path | None],
    path: Path,
    options: LogOptions,
) -> Block:
    """Make a block of the samples of a task; ``called`` is the model, with the place that names it if no log does."""
    coders = {key: Coder() for key in ("question", "filter", "group", "doc_hash", "prompt_hash")}
    cells: dict[str, list[Any]] = {}
    rows = 0
    for batch in batches:
        for row in records_only(batch, path):
            if "doc_id" not in row:
                raise InputError(f"{format_path(path)} has a line without doc_id, the question: it cannot be aligned.")
            # Older versions do not list the metrics of a row: what is not a field of every row is one.
            listed = row.get("metrics")
            metrics = listed if isinstance(listed, list) else [k for k in row if k not in (*_ROW, *_HASHES)]
            for metric in {**cells, **dict.fromkeys(metrics)}:
                cells.setdefault(metric, [None] * rows).append(row.get(metric) if metric in metrics else None)
            rows += 1
        coders["question"].add(hidden_cells(row["doc_id"] for row in batch))
        coders["filter"].add(row.get("filter") or "none" for row in batch)
        for key in ("doc_hash", "prompt_hash"):
            coders[key].add(row.get(key) or "" for row in batch)
        if options.group is not None:
            docs = (row.get("doc") for row in batch)
            coders["group"].add(hidden_cells(d.get(options.group) if isinstance(d, dict) else None for d in docs))
    scores, unusable = scores_of(cells, path)
    group = coders["group"].finish()
    direction = (results.get("higher_is_better") or {}).get(task) or {}
    return Block(
        format_path(path),
        SAMPLES_OF_HARNESS,
        model=one_name(called[0], rows),
        task=one_name(task, rows),
        question=coders["question"].finish(),
        scores=scores,
        group=group if any(group.names) else None,
        filter=coders["filter"].finish(),
        hashes={key: coders[key].finish() for key in ("doc_hash", "prompt_hash")},
        settings=_known_settings(
            task_version=(results.get("versions") or {}).get(task), shots=(results.get("n-shot") or {}).get(task)
        ),
        higher={metric: value for metric, value in direction.items() if isinstance(value, bool)},
        unusable=unusable,
        called_by=called[1],
        warnings=_incomplete(results, task, len(coders["question"].places), path),
    )


def _harness_model(results: Mapping[str, Any]) -> str:
    """Return the model that a results file names, in its arguments where it has no field for it."""
    if results.get("model_name"):
        return str(results["model_name"])
    given = (results.get("config") or {}).get("model_args") or ""
    if isinstance(given, dict):
        return str(given.get("pretrained") or given.get("model") or "")
    found = re.search(r"(?:^|,)(?:pretrained|model)=([^,]+)", str(given))
    return found[1] if found else ""


def _known_settings(**settings: Any) -> dict[str, str]:
    """Return the settings that a log names, as texts."""
    return {name.replace("_", " "): str(value) for name, value in settings.items() if value is not None}


def _incomplete(results: Mapping[str, Any], task: str, questions: int, path: Path) -> tuple[str, ...]:
    """Warn of samples that are fewer than the results file counts: the file was cut at the end of a line."""
    count = ((results.get("n-samples") or {}).get(task) or {}).get("effective")
    if not isinstance(count, int) or questions >= count:
        return ()
    return (f"{format_path(path)} holds {questions:,} of the {count:,} questions that its results file counts.",)


# lighteval: a Parquet file for each task.

_DETAILS = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.parquet")


def is_details(columns: Sequence[str]) -> bool:
    """Return whether the columns of a Parquet file are those of lighteval's details."""
    return {"doc", "metric"} <= set(columns) or {"metrics", "full_prompt"} <= set(columns)


def read_details(file: Any, path: Path) -> Block:
    """Read lighteval's details out of an open Parquet file."""
    name, model = _DETAILS.fullmatch(path.name), _folder_model(path)
    columns = file.schema_arrow.names
    new = "doc" in columns
    asks = "doc" if new else "example" if "example" in columns else "full_prompt"
    wanted = ["doc.id", "doc.query", "metric"] if new else ["metrics", asks]
    size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
    check_unpacked(path, size, LARGEST_ARRAYS)
    rows = file.read(columns=wanted).to_pylist()
    marks = [_details_metrics(row["metric" if new else "metrics"], path) for row in rows]
    names = dict.fromkeys(metric for row in marks for metric in row)
    scores, unusable = scores_of({metric: [row.get(metric) for row in marks] for metric in names}, path)
    asked = [row["doc"].get("query") if new else row[asks] for row in rows]
    ids = [row["doc"].get("id") or None for row in rows] if new else [None] * len(rows)
    # Older files have no ids: a hash of the question takes their place.
    questions = asked if None in ids else ids
    return block_of_model(
        path,
        "lighteval details",
        model or path.stem,
        name["task"] if name else "",
        questions,
        scores,
        hashes={"question text": code_cells(hidden_cells([q] for q in asked))},
        unusable=unusable,
        called_by=None if model else path,
        notes=("question ids are hashes of the questions",) if None in ids else (),
    )


def _details_metrics(value: Any, path: Path) -> dict[str, Any]:
    """Return the metrics of a row, which older versions wrote as the text of a dict."""
    if isinstance(value, str) and len(value) < 100_000:
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            value = None
    if not isinstance(value, dict):
        raise InputError(f"{format_path(path)} should hold metrics by name in each row, and does not.")
    return value


def _folder_model(path: Path) -> str:
    """Return the model that the folders name: details/MODEL/DATE/file, where MODEL may be two folders."""
    parts = path.resolve().parts[:-2]
    for i in range(len(parts) - 1, -1, -1):
        if parts[i] == "details":
            return "/".join(parts[i + 1 :])
        if parts[i].startswith("details_"):  # a repository on the Hub
            return parts[i].removeprefix("details_").replace("__", "/")
    return ""


# HELM: ``per_instance_stats.json``, with ``run_spec.json`` beside it.

_ACCOUNTING = re.compile(
    r"num_.*|.*_cost|.*_runtime.*|inference_.*|training_.*|batch_size|finish_reason_.*|prompt_truncated|max_prob|logprob"
)
"""Statistics of the run that are no scores of the answer; they can still be asked for by name."""
_SIDE = ("run_spec.json", "stats.json", "scenario.json", "scenario_state.json", "instances.json")


def is_side_file(path: Path) -> bool:
    """Return whether a file lies beside the scores of a run of HELM."""
    beside = path.name in _SIDE or path.name.startswith("display_")
    return beside and path.with_name("per_instance_stats.json").exists()


def read_helm(data: Sequence[Any], path: Path, metrics: Sequence[str]) -> Block:
    """Read the statistics of each instance; splits and perturbations are the variants to choose from."""
    spec = json_beside(path.with_name("run_spec.json"))
    adapter = spec.get("adapter_spec") or {}
    name = str(spec.get("name") or path.resolve().parent.name)
    rows = [row for row in data if isinstance(row, dict) and "instance_id" in row]
    found: list[dict[str, Any]] = [{} for _ in rows]
    variants = []
    for values, row in zip(found, rows, strict=True):
        split = ""
        for stat in row.get("stats") or ():
            about = stat.get("name") or {}
            metric = str(about.get("name"))
            split = about.get("split") or split
            if stat.get("count") and (metric in metrics or not _ACCOUNTING.fullmatch(metric)):
                values[metric] = stat["mean"] if stat.get("mean") is not None else stat["sum"] / stat["count"]
        change = (row.get("perturbation") or {}).get("name")
        variants.append(", ".join(filter(None, (split, change))) or "none")
    names = dict.fromkeys(metric for values in found for metric in values)
    scores, unusable = scores_of({metric: [values.get(metric) for values in found] for metric in names}, path)
    # The name of a run holds the model, which must not make each model a task of its own.
    model = re.search(r"(?:^|[:,])model=([^,]+)", name)
    task = re.sub(r"(,model(?:_deployment)?=[^,]+)|(?<=:)model(?:_deployment)?=[^,]+,?", "", name).rstrip(":,")
    return block_of_model(
        path,
        "HELM run",
        str(adapter.get("model") or (model[1] if model else path.resolve().parent.name)),
        task,
        [row["instance_id"] for row in rows],
        scores,
        sample=code_cells(row.get("train_trial_index", 0) for row in rows),
        filter=code_cells(variants),
        settings=_settings(adapter),
        unusable=unusable,
    )


_PROMPT = ("instructions", "_prefix", "_suffix")


def _settings(adapter: Mapping[str, Any]) -> dict[str, str]:
    """Return what shapes the prompt: shots and method as they are, texts as a hash."""
    found = _known_settings(shots=adapter.get("max_train_instances"), method=adapter.get("method"))
    wording = {name: value for name, value in adapter.items() if name.endswith(_PROMPT)}
    return found | ({"prompt hash": hash_of(wording)} if wording else {})


# Every Eval Ever: JSON lines with a row for each question, and the JSON document that describes them.


def is_record_row(row: Mapping[str, Any]) -> bool:
    """Return whether a JSON line is the record of one question."""
    return {"evaluation_id", "model_id", "sample_id", "evaluation"} <= set(row)


def refuse_record(data: Mapping[str, Any], path: Path) -> UnreadError:
    """Make the error for a document with overall scores only."""
    detailed = data.get("detailed_evaluation_results")
    if isinstance(detailed, dict):
        there = Path(str(detailed.get("file_path"))).name
        return UnreadError(
            f"{format_path(path)} describes an evaluation; the scores of its questions are in {format_path(there)}.",
            "side" if any(path.with_name(n).exists() for n in (there, f"{path.stem}_samples.jsonl")) else "log",
        )
    count = format_count(len(data["evaluation_results"] or ()), "overall score")
    return UnreadError(f"{format_path(path)} holds {count} and no scores of single questions.")


def read_eval_records(path: Path, options: LogOptions) -> list[Block]:
    """Read records of single questions, a block for each metric."""
    about = _about(path)
    columns = ("model", "task", "result", "question", "group", "hash")
    coders = {key: Coder() for key in columns}
    values: list[Any] = []
    for batch in json_lines(path):
        rows = records_only(batch, path)
        if not all(map(is_record_row, rows)):
            raise InputError(
                f"{format_path(path)} has a line without model_id, sample_id or evaluation: it is damaged."
            )
        results = [str(row.get("evaluation_result_id") or row["evaluation_name"]).strip() for row in rows]
        cells: dict[str, Any] = {
            "model": (row["model_id"] for row in rows),
            "task": (row.get("evaluation_name") or "" for row in rows),
            "result": results,
            "question": hidden_cells(row["sample_id"] for row in rows),
            "group": hidden_cells((row.get("metadata") or {}).get(options.group) for row in rows),
            "hash": (row.get("sample_hash") or "" for row in rows),
        }
        for key in columns:
            coders[key].add(cells[key])
        for row, result in zip(rows, results, strict=True):
            score = (row["evaluation"] or {}).get("score")
            values.append(None if score == -1 and about.get(result, {}).get("has_unknown_level") else score)
    names = {key: coder.finish() for key, coder in coders.items()}
    scores, _ = scores_of({"score": values}, path)
    # Metrics of one name may have another range or direction in another task.
    alike: dict[Any, list[int]] = {}
    for code, result in enumerate(names["result"].names):
        config = about.get(result, {})
        scale = config.get("lower_is_better"), config.get("min_score"), config.get("max_score")
        alike.setdefault((_metric(config), *scale), []).append(code)
    blocks: list[Block] = []
    for (metric, *_), codes in alike.items():
        config = about.get(names["result"].names[codes[0]], {})
        block = Block(
            format_path(path),
            "Every Eval Ever records",
            model=names["model"],
            task=names["task"],
            question=names["question"],
            scores={metric: scores["score"]},
            group=names["group"] if any(names["group"].names) else None,
            hashes={"sample_hash": names["hash"]},
            ranges=_range(config, metric),
            higher={metric: not config["lower_is_better"]} if "lower_is_better" in config else {},
            warnings=() if blocks else _count_warning(about, len(values), path),
        )
        blocks.append(block.keep(np.isin(names["result"].codes, codes)))
    return blocks


def _about(path: Path) -> dict[str, dict[str, Any]]:
    """Return the description of each metric, out of the document beside the records."""
    beside = path.with_name(path.name.replace("_samples.jsonl", ".json"))
    data = {} if beside == path else json_beside(beside)
    if "evaluation_results" not in data or "schema_version" not in data:
        return {}
    found: dict[str, dict[str, Any]] = {}
    rows = (data.get("detailed_evaluation_results") or {}).get("total_rows")
    for result in data["evaluation_results"] or ():
        config = dict(result.get("metric_config") or {}) | {"_rows": rows}
        found |= {
            str(key).strip(): config
            for key in (result.get("evaluation_result_id"), result.get("evaluation_name"))
            if key
        }
    return found


def _metric(config: Mapping[str, Any]) -> str:
    return str(config.get("metric_name") or config.get("metric_id") or "score")


def _range(config: Mapping[str, Any], metric: str) -> dict[str, tuple[float, float]]:
    """Return the range of a metric, where both ends are given; an end may be the text "Infinity"."""
    try:
        low, high = float(config["min_score"]), float(config["max_score"])
    except (KeyError, TypeError, ValueError):
        return {}
    return {metric: (low, high)} if low < high and not math.isnan(low + (high if math.isfinite(high) else 0)) else {}


def _count_warning(about: Mapping[str, Mapping[str, Any]], rows: int, path: Path) -> tuple[str, ...]:
    counts = {config["_rows"] for config in about.values() if isinstance(config.get("_rows"), int)}
    if not counts or rows in counts:
        return ()
    return (f"{format_path(path)} has {rows:,} rows, and the document beside it says {min(counts):,}: is it whole?",)


# OpenCompass: a JSON file for each model and data set, whose details hold a mark for each question.

_MARKS = ("correct", "is_correct", "cascade_correct")


def read_compass(data: Mapping[str, Any], path: Path) -> Block:
    """Read the details of OpenCompass; the folder is the model and the file the task."""
    details = data["details"]
    items = list(details.items()) if isinstance(details, dict) else [(str(i), d) for i, d in enumerate(details)]
    rows = [(str(d.get("example_abbr") or key), d) for key, d in items if isinstance(d, dict)]
    mark = next((m for m in _MARKS if rows and all(m in d for _, d in rows)), None)
    if mark is None:
        raise UnreadError(
            f"{format_path(path)} has details without marks ({', '.join(_MARKS)}): its evaluator gives no score of "
            "single questions."
        )
    given = [(question, d[mark] if isinstance(d[mark], list) else [d[mark]]) for question, d in rows]
    return _block_of_lists(path, "OpenCompass details", path.resolve().parent.name, path.stem, mark, given)


def _block_of_lists(
    path: Path, kind: str, model: str, task: str, metric: str, given: Sequence[tuple[str, Sequence[Any]]], **more: Any
) -> Block:
    """Make a block of questions with a list of marks each."""
    scores, _ = scores_of({metric: [mark for _, marks in given for mark in marks]}, path)
    questions = [question for question, marks in given for _ in marks]
    samples = code_cells(i for _, marks in given for i in range(len(marks)))
    return block_of_model(path, kind, model, task, questions, scores, sample=samples, **more)


# Lists or counts of marks by question id.

_LISTS = "raw_scored_generations"
_RIGHT = ("correct", "num_correct", "passed", "passes", "c")
_MOST = 1_000_000
"""Attempts at one question; each takes a number in memory."""
_TRIED = ("count", "total", "num_samples", "n")


def is_passes(data: Mapping[str, Any]) -> bool:
    """Return whether a JSON document maps question ids to lists of marks or to counts."""
    marks = data.get(_LISTS, data)
    return isinstance(marks, dict) and bool(marks) and all(_is_list(v) or _is_count(v) for v in marks.values())


def _is_list(value: Any) -> bool:
    # Other lists of numbers, such as losses by epoch, are no marks.
    return isinstance(value, list) and all(isinstance(v, bool | int | float) and v in (0, 1) for v in value)


def _is_count(value: Any) -> bool:
    return isinstance(value, dict) and any(k in value for k in _RIGHT) and any(k in value for k in _TRIED)


def read_passes(data: Mapping[str, Any], path: Path) -> Block:
    """Read lists of marks, as CRUXEval writes them, or numbers of right answers and of attempts."""
    source = format_path(path)
    lists = []
    for question, value in data.get(_LISTS, data).items():
        if isinstance(value, dict):
            right, tried = (next(value[k] for k in keys if k in value) for keys in (_RIGHT, _TRIED))
            try:
                given: Any = expand_counts(np.array([right], float), np.array([tried], float), source)[0]
            except (TypeError, ValueError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{brief(id_of(question))} in {source} has counts that are no numbers.") from error
        else:
            given = value or [None]  # an empty list is a question without a score
        lists.append((question, list(given)))
    return _block_of_lists(path, "lists of marks", path.stem, "", "pass", lists, called_by=path)


def expand_counts(right: FloatArray, tried: FloatArray, source: str) -> list[FloatArray]:
    """Make ones and zeros of the number of right answers among so many attempts.

    >>> expand_counts(np.array([2.0, 0.0]), np.array([3.0, 1.0]), "runs.csv")
    [array([1., 1., 0.]), array([0.])]
    """
    known = np.isfinite(right) & np.isfinite(tried)
    for bad, why in (
        (known & (right > tried), "more right answers than attempts: {} of {}"),
        (known & ((right < 0) | (tried < 0)), "a negative count: {} of {}"),
        (known & ((right % 1 != 0) | (tried % 1 != 0)), "counts that are not whole: {} of {}"),
        (known & (tried > _MOST), "more attempts than anyone makes: {1}"),
    ):
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            shown = why.format(f"{right[row]:g}", f"{tried[row]:g}")
            raise InputError(f"{source} has {shown} in row {row + 1}.")
    return [
        np.repeat([1.0, 0.0], [int(c), int(n - c)]) if ok else np.array([np.nan])
        for c, n, ok in zip(right, tried, known & (tried > 0), strict=True)
    ]


def read_simulations(data: Mapping[str, Any], path: Path) -> Block:
    """Read the reward of each simulation; trials are samples."""
    about = data.get("info") or {}
    rows = data["simulations"]
    scores, _ = scores_of({"reward": [(row.get("reward_info") or {}).get("reward") for row in rows]}, path)
    model = (about.get("agent_info") or {}).get("llm") or path.stem
    domain = (about.get("environment_info") or {}).get("domain_name") or ""
    questions, trials = [row["task_id"] for row in rows], code_cells(row.get("trial", 0) for row in rows)
    return block_of_model(path, "tau2-bench simulations", str(model), str(domain), questions, scores, sample=trials)
