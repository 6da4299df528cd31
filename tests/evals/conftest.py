"""Small logs in the formats of the tools that write them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

LOGS = Path(__file__).parent / "logs"
"""Two logs that Inspect 0.3.285 wrote, with zstd: 3 questions × 2 epochs of the models mockllm/a and mockllm/b."""


@pytest.fixture
def inspect_log(tmp_path: Path) -> Callable[..., Path]:
    """Write a log as Inspect does, compressed by deflate."""

    def write(
        name: str = "log.eval",
        marks: Mapping[str, Sequence[Any]] | None = None,
        *,
        model: str = "openai/gpt",
        status: str = "success",
        version: int = 0,
        scorer: str = "match",
        question: str = "How much is {}?",
        journal: bool = False,
        transcript: str = "not even JSON",
        **header: Any,
    ) -> Path:
        samples = []
        for i, values in (marks or {"1": ["C"], "2": ["I"]}).items():
            for epoch, value in enumerate(values, 1):
                scores = {} if value is None else {scorer: {"value": value, "answer": "x"}}
                text = question.format(i)
                samples.append(
                    {"id": i, "epoch": epoch, "input": text, "scores": scores, "metadata": {"subject": i[0]}}
                )
        about = {"task": "sums", "task_version": version, "model": model, "dataset": {}, "config": {}}
        head = {"version": 2, "status": status, "eval": about, "results": {"total_samples": len(samples)}} | header
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".json":
            path.write_text(json.dumps(head | {"samples": [s | {"messages": [transcript]} for s in samples]}))
            return path
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": about}))
            for sample in samples:
                archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", transcript)
            archive.writestr("_journal/summaries/1.json", json.dumps(samples))
            if not journal:
                archive.writestr("summaries.json", json.dumps(samples))
                archive.writestr("header.json", json.dumps(head))
        return path

    return write


@pytest.fixture
def harness_log(tmp_path: Path) -> Callable[..., Path]:
    """Write samples and results as lm-eval-harness does."""

    def write(
        model: str = "org/one",
        rows: Sequence[Mapping[str, Any]] | None = None,
        *,
        task: str = "gsm8k",
        filters: Sequence[str] = ("strict-match",),
        folder: str = "",
        date: str = "2025-09-09T13-31-53.431753",
        results: bool = True,
        prompt: str = "p",
        version: float = 3.0,
    ) -> Path:
        rows = [{"exact_match": 1.0}, {"exact_match": 0.0}, {"exact_match": 1.0}] if rows is None else rows
        place = tmp_path / (folder or model.replace("/", "__"))
        place.mkdir(parents=True, exist_ok=True)
        lines = []
        for name in filters:
            for i, row in enumerate(rows):
                about = {"doc_id": i, "doc": {"question": f"Question {i}?", "subject": f"s{i % 2}"}, "target": "1"}
                about |= {"arguments": {"gen_args_0": {"arg_0": "text"}}, "resps": [["1"]], "filtered_resps": ["1"]}
                about |= {"filter": name, "metrics": list(row), "doc_hash": f"d{i}", "prompt_hash": f"{prompt}{i}"}
                lines.append(json.dumps({**about, "target_hash": "t", **row}))
        path = place / f"samples_{task}_{date}.jsonl"
        path.write_text("\n".join(lines) + "\n")
        if results:
            document = {"results": {task: {}}, "configs": {}, "config": {"model": "hf"}, "model_name": model}
            document |= {
                "versions": {task: version},
                "n-shot": {task: 5},
                "n-samples": {task: {"effective": len(rows)}},
            }
            document |= {"higher_is_better": {task: {"exact_match": True, "perplexity": False}}}
            (place / f"results_{date}.json").write_text(json.dumps(document))
        return path

    return write
