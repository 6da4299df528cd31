"""Speed and memory of the evals lens beside what users have; one JSON line each.

    python benchmarks/evals.py                        # everything, some minutes
    python benchmarks/evals.py parquet lines          # some of parquet, lines, inspect, harness
    python benchmarks/evals.py --quick                # a hundredth of the rows, to see that it runs
    python benchmarks/evals.py inspect --inspect-python PATH   # inspect's reader, in an environment that has it

`parquet`: 200 models × 10,000 questions × 10 samples, 20 million rows in 200 row groups. `lines`: 2 million rows of
JSON lines. `inspect`: an `.eval` file of 10,000 samples with transcripts of 20 kB each. `harness`: 10,000 samples of
lm-eval with documents of 5 kB, two filters.

Each reader runs in a process of its own, on one thread: CPU seconds from the start of the import to scores by model
and question, and the peak of memory. pandas stops at the mean over samples, as it is usually used; `inspect` reads its
sample summaries, and its data frame of samples; evalci and evalsig read each of the two filters as questions of their
own. null: the package is not installed, or cannot read the file.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

# A package called coverage may be imported, which must not be the benchmark beside this one.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np

FRAME = "print(frame.groupby(['model', 'question'], observed=True)['score'].mean().unstack().shape)"
READERS: dict[str, dict[str, str]] = {
    "parquet": {
        "ours": "import curvewise as cw; print(cw.load_evals(path).shape)",
        "pandas": f"import pandas as pd; frame = pd.read_parquet(path); {FRAME}",
    },
    "lines": {
        "ours": "import curvewise as cw; print(cw.load_evals(path).shape)",
        "pandas": f"import pandas as pd; frame = pd.read_json(path, lines=True); {FRAME}",
    },
    "inspect": {
        "ours": "import curvewise as cw; print(cw.load_evals(path).shape)",
        "inspect summaries": "import inspect_ai.log as log; print(len(log.read_eval_log_sample_summaries(path)))",
        "inspect samples_df": "from inspect_ai.analysis import samples_df; print(samples_df(path, quiet=True).shape)",
    },
    "harness": {
        "ours": "import curvewise as cw; print(cw.load_evals(path, filter='strict-match').shape)",
        "evalci": "from evalci.adapters import load_lm_eval_harness as read; print(read(path).shape)",
        "evalsig": "from evalsig.io.lm_eval import read_lm_eval_json as read; "
        "print(len(read(path, model_id='m', task_id='t', metric_name='exact_match').items))",
        "pandas": "import pandas as pd; frame = pd.read_json(path, lines=True); "
        "print(frame[frame['filter'] == 'strict-match'].set_index('doc_id')['exact_match'].shape)",
    },
}
"""For each file, the code of each reader; it prints the size of what it found."""


def main() -> None:
    """Print a line for each row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", default=tuple(READERS), help=", ".join(READERS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--inspect-python", default=sys.executable, help="the Python of an environment with inspect-ai")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for row in wish.rows:
            print(json.dumps(measure_reading(row, Path(folder), wish.quick, wish.inspect_python)), flush=True)


def measure_reading(row: str, folder: Path, quick: bool, other: str) -> dict[str, Any]:
    """Make a file and read it with each reader."""
    path, rows = MAKERS[row](folder, 0.01 if quick else 1.0)
    found: dict[str, Any] = {"row": row, "rows": rows, "megabytes": round(path.stat().st_size / 1e6, 1)}
    for name, code in READERS[row].items():
        python = other if name.startswith("inspect") else sys.executable
        found[name] = measure_process(python, f"path = {str(path)!r}; {code}")
    return found


def measure_process(python: str, code: str) -> dict[str, Any] | None:
    """Run code in a process of its own; return CPU and wall seconds, GiB of memory, and what it printed."""
    end = "import resource, time, json; use = resource.getrusage(resource.RUSAGE_SELF)"
    end += "; print(json.dumps([use.ru_utime + use.ru_stime, time.time() - start, use.ru_maxrss / 2**20]))"
    script = f"import time, warnings; start = time.time(); warnings.simplefilter('ignore')\n{code}\n{end}"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    *_, said, numbers = done.stdout.strip().splitlines()
    cpu, wall, peak = json.loads(numbers)
    return {"cpu_s": round(cpu, 2), "wall_s": round(wall, 2), "peak_gib": round(peak, 2), "found": said}


def make_parquet(folder: Path, share: float) -> tuple[Path, int]:
    """Write rows of model, question, sample and 0/1 score, the questions of each model in an order of its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    models, questions, samples = max(2, int(200 * share)), 10_000, 10
    random = np.random.default_rng(0)
    ids = pa.array([f"q{i:05d}" for i in range(questions)])
    kinds = [("model", pa.string()), ("question", pa.string()), ("sample", pa.int32()), ("score", pa.int8())]
    schema, path = pa.schema(kinds), folder / "scores.parquet"
    with pq.ParquetWriter(path, schema) as writer:
        for m in range(models):
            order = np.repeat(random.permutation(questions), samples)
            columns = [pa.array([f"model-{m}"] * len(order)), ids.take(pa.array(order))]
            columns += [pa.array(np.tile(np.arange(samples, dtype=np.int32), questions))]
            columns += [pa.array((random.random(len(order)) < 0.5).astype(np.int8))]
            writer.write_table(pa.table(columns, schema=schema))
    return path, models * questions * samples


def make_lines(folder: Path, share: float) -> tuple[Path, int]:
    """Write the same as JSON lines, of 20 models."""
    models, questions, samples = max(2, int(20 * share)), 10_000, 10
    random, path = np.random.default_rng(0), folder / "scores.jsonl"
    with open(path, "w") as stream:
        for m in range(models):
            for q in random.permutation(questions).tolist():
                for k, right in enumerate((random.random(samples) < 0.5).tolist()):
                    row = {"model": f"model-{m}", "question": f"q{q:05d}", "sample": k, "score": int(right)}
                    stream.write(json.dumps(row) + "\n")
    return path, models * questions * samples


def make_inspect(folder: Path, share: float) -> tuple[Path, int]:
    """Write an .eval file with a transcript of 20 kB for each sample."""
    count, path = int(10_000 * share), folder / "log.eval"
    random = np.random.default_rng(0)
    words = [f"word{i}" for i in range(2000)]
    about = {"created": "2025-01-01T00:00:00+00:00", "task": "sums", "task_version": 0, "model": "openai/gpt"}
    about |= {"dataset": {"name": "sums"}, "config": {}}
    summaries = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": about, "plan": {}}))
        for i in range(count):
            text = " ".join(random.choice(words, 2500).tolist())
            scores = {"match": {"value": "CI"[int(random.random() < 0.4)], "answer": "x", "explanation": text[:300]}}
            sample = {"id": i + 1, "epoch": 1, "input": text[:300], "target": "x", "metadata": {"subject": "s"}}
            summaries.append(sample | {"scores": scores})
            told = {"messages": [{"role": "assistant", "content": text}], "output": {"model": "m", "choices": []}}
            archive.writestr(f"samples/{i + 1}_epoch_1.json", json.dumps(sample | {"scores": scores} | told))
        archive.writestr("summaries.json", json.dumps(summaries))
        results = {"total_samples": count, "completed_samples": count, "scores": []}
        header = {"version": 2, "status": "success", "eval": about, "plan": {}, "results": results, "stats": {}}
        archive.writestr("header.json", json.dumps(header))
    return path, count


def make_harness(folder: Path, share: float) -> tuple[Path, int]:
    """Write samples of lm-eval with two filters."""
    count = int(10_000 * share)
    random, path = np.random.default_rng(0), folder / "samples_gsm8k_2025-01-01T00-00-00.jsonl"
    words = [f"word{i}" for i in range(2000)]
    with open(path, "w") as stream:
        for name in ("strict-match", "flexible-extract"):
            for i in range(count):
                text = " ".join(random.choice(words, 300).tolist())
                row = {
                    "doc_id": i,
                    "doc": {"question": text},
                    "target": "1",
                    "arguments": {"gen_args_0": {"arg_0": text}},
                }
                row |= {"resps": [[text]], "filtered_resps": ["1"], "filter": name, "metrics": ["exact_match"]}
                row |= {"doc_hash": f"d{i}", "prompt_hash": f"p{i}", "exact_match": float(random.random() < 0.5)}
                stream.write(json.dumps(row) + "\n")
    return path, 2 * count


MAKERS = {"parquet": make_parquet, "lines": make_lines, "inspect": make_inspect, "harness": make_harness}


if __name__ == "__main__":
    main()
