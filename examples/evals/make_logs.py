"""Make the small logs of this folder: no model was asked anything, the answers are drawn at random.

    python examples/evals/make_logs.py            # writes examples/evals/logs

``logs/math`` has the form of lm-eval-harness: four models, 150 questions about 30 passages, one answer to each.
``logs/agents`` has the form of Inspect: two agents, 40 tasks, eight trials of each. Both agents succeed about as often;
the first one succeeds on the same tasks each time, the second one now and then on most of them.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np

MODELS = {"made/base-7b": -0.5, "made/tuned-7b": -0.3, "made/base-13b": 0.5, "made/tuned-13b": 1.2}
"""Skill of each model, on the scale of log-odds."""
QUESTIONS, PASSAGES = 150, 30
TASKS, TRIALS = 40, 8
DATE = "2026-01-05T10-00-00.000000"


def main(folder: Path) -> None:
    """Write all logs."""
    write_math(folder / "math")
    write_agents(folder / "agents")


def write_math(folder: Path) -> None:
    """Write answers to questions, which are hard or easy for all models alike, by passage and by question."""
    rng = np.random.default_rng(5)
    passage = 0.8 * rng.standard_normal(PASSAGES)[np.arange(QUESTIONS) % PASSAGES]
    ease = passage + 2.0 * rng.standard_normal(QUESTIONS)
    for model, skill in MODELS.items():
        place = folder / model.replace("/", "__")
        place.mkdir(parents=True, exist_ok=True)
        right = [rng.random() < 1 / (1 + math.exp(-(skill + e))) for e in ease]
        lines = [
            {
                "doc_id": i,
                "doc": {"passage": f"p{i % PASSAGES:02d}"},
                "filter": "strict-match",
                "metrics": ["exact_match"],
                "doc_hash": f"{i:04x}",
                "exact_match": float(mark),
            }
            for i, mark in enumerate(right)
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (place / f"samples_made_math_{DATE}.jsonl").write_text(text, encoding="utf-8")
        about = {
            "results": {"made_math": {"exact_match,strict-match": sum(right) / QUESTIONS}},
            "configs": {"made_math": {"task": "made_math", "repeats": 1}},
            "config": {"model": "made"},
            "model_name": model,
            "versions": {"made_math": 1.0},
            "n-samples": {"made_math": {"original": QUESTIONS, "effective": QUESTIONS}},
            "higher_is_better": {"made_math": {"exact_match": True}},
        }
        (place / f"results_{DATE}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def write_agents(folder: Path) -> None:
    """Write trials of two agents: one that either can do a task or cannot, and one that is never certain."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    rank = rng.random(TASKS)
    chances = {"made/steady-agent": np.where(rank < 0.56, 0.96, 0.04), "made/flaky-agent": 0.86 - 0.6 * rank}
    for model, chance in chances.items():
        samples = [
            {"id": f"task-{i:02d}", "epoch": k + 1, "scores": {"success": {"value": "C" if rng.random() < p else "I"}}}
            for i, p in enumerate(chance)
            for k in range(TRIALS)
        ]
        log = {
            "version": 2,
            "status": "success",
            "eval": {"task": "made_airline", "model": model, "dataset": {}, "config": {"epochs": TRIALS}},
            "results": {"total_samples": len(samples), "completed_samples": len(samples)},
            "samples": samples,
        }
        name = f"2026-01-05T10-00-00_airline_{model.partition('/')[2]}.json"
        (folder / name).write_text(json.dumps(log) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "logs")
