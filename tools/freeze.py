"""Record what commands of every lens answer, and compare two source trees.

    python tools/freeze.py record before.json [LENS …]     # with this tree
    PYTHONPATH=/other/tree/src python tools/freeze.py record after.json [LENS …]
    python tools/freeze.py compare before.json after.json

A change that only moves, renames or simplifies code leaves every answer as it is. Each command runs in this process on
copies of the examples, made data and, where ``CURVEWISE_DATA`` names them, the published data; its exit status, its
``--json`` and its text are kept. Numbers are compared to one part in 10¹², or as ``--tolerance`` says.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # the last bits of two networks that are trained here depend on it
ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CURVEWISE_DATA", ROOT.parent / "shared" / "data"))

COMMANDS = """
learning fit errors.csv
learning fit errors.csv --form auto --predict 2874,5748 --reach 0.12
learning fit errors.csv --interval conditional --level 0.9
learning fit errors.csv --largest 3
learning fit networks.csv --form auto --predict 16000 --reach 0.12
learning fit networks.csv --form constrained
learning fit networks.csv --form last
learning fit networks.csv --form sqrt
learning fit fashion_mnist/errors.csv --column value=error
learning fit percent.csv --unit percent
learning fit scores.csv
learning compare networks.csv --form auto
learning compare errors.csv
learning compare errors.csv --at 100 --fail-if worse
learning compare scores.csv --fail-if undecided
learning plan errors.csv --learner "bagged trees" --factor 0.7
learning plan networks.csv --learner MLP
learning rank errors.csv --at 2000
learning rank networks.csv --at 4000
learning validate errors.csv
learning stability errors.csv --learner "bagged trees"
learning check errors.csv
variance decompose units128.npz
variance decompose units16.npz --level 0.9
variance decompose @variance/fashion_mnist_mlp_512runs.npz
variance decompose few.npz
variance compare wide=units128.npz narrow=units16.npz
variance compare units128.npz units64.npz --margin 0.005 --fail-if worse
variance compare first.npz second.npz --paired
variance compare units16.npz units64.npz units128.npz
variance compare few.npz first.npz
variance examine units64.npz --what luck --what ensemble
variance examine units64.npz
variance plan units128.npz units64.npz --difference 0.003
variance plan units128.npz --difference 0.01
variance plan units128.npz units64.npz --difference 0.003 --paired
variance test-sets first=first.npz second=second.npz
variance sweep 16=units16.npz 64=units64.npz 128=units128.npz
variance twins first.npz 0=second.npz
response measure net.safetensors --factory mlp --data digits --perturbation rotation
response measure net.safetensors --factory mlp --data digits --perturbation mixup-intra mixup-inter --examples 500
response measure net.safetensors --factory mlp --data digits --perturbation mixup-intra --layer 1
response measure net.safetensors other.safetensors --factory mlp --data digits --perturbation rotation --fail-if worse
response measure a=net.safetensors b=other.safetensors --factory mlp --data digits --perturbation shift-x
response measure net.safetensors --factory mlp --data digits --perturbation rotation --signs keep
response judge corpus/cifar10.csv --shelf
response judge corpus/cifar10.csv --shelf --mode pgdl
response judge corpus/cifar10.csv --shelf --mode kendall
response judge corpus/cifar10.csv --shelf --mode granulated
response judge corpus/cifar10.csv --measure frobenius-sum:+ --measure parameters --mode pearson
response judge corpus/cifar10.csv --least-train-accuracy 0.95
response judge corpus/cifar10-resnet.csv
response judge corpus/cifar10-vgg.csv --mode spearman
response judge corpus/rotation.csv
response judge corpus/shift-x.csv --mode kendall
response measures
response perturbations
transfer measure transfer/risks.csv
transfer measure transfer/risks.csv --level 0.9
transfer measure transfer/risks.csv --task classes
transfer measure transfer/risks.csv --method imagenet
transfer measure transfer/risks.csv --compare imagenet,fashion-mnist --fail-if worse
transfer measure transfer/risks.csv --seeds pooled
transfer measure transfer.csv
transfer measure transfer.csv --maximal 0.1
transfer measure transfer.csv --seeds pooled
transfer measure @transfer/transfer_controls_losses.csv --blind blind-guess --maximal gold
transfer measure @transfer/transfer_controls_losses.csv --blind blind-guess --maximal gold --seeds pooled
transfer tasks transfer/risks.csv
transfer tasks transfer.csv --levels 0.5,0.25
transfer blind targets.npy --loss l1
transfer blind targets.npy --loss l2
transfer blind labels.npy --loss cross-entropy
transfer blind labels.npy --loss error
transfer wins won.npy lost.npy
transfer wins won.npy lost.npy --fail-if undecided
ranking rank a=a.npy b=b.npy c=c.npy --labels labels.npy
ranking rank a=a.npy b=b.npy c=c.npy --labels labels.npy --measures nleep,leep,logme,gbc
ranking rank a=a.npy b=b.npy c=c.npy --labels labels.npy --measures logme,h-score,gbc,transrate,parc,knn
ranking rank a=a.npy b=b.npy --labels labels.npy --level 0.9 --seed 3
ranking judge checkpoints/scores.csv --accuracy checkpoints/finetune.csv --repeats best
ranking judge pool.csv
ranking judge pool.csv --k 1,2 --measures nleep,parameters
ranking judge @ranking/source_model_architectures_table.csv --where 'Trainable Backbone=False'
ranking judge @ranking/source_datasets_table.csv --repeats mean
ranking measures
evals show evals/logs/math
evals score evals/logs/math
evals score evals/logs/agents --pass-at 2
evals compare evals/logs/math --a made/tuned-13b --b made/base-13b
evals compare evals/logs/math --a made/tuned-13b --b made/base-13b --column group=passage
evals compare evals/logs/math --a made/tuned-7b --b made/base-7b --margin 0.05
evals compare evals/logs/math --a made/base-13b --b made/tuned-13b --fail-if worse
evals rank evals/logs/math
evals rank evals/logs/agents --pass-hat 4
evals plan evals/logs/agents --difference 0.05
evals plan --difference 0.03 --question-variance 0.05 --sampling-variance 0.15
evals plan evals/logs/math --a made/tuned-13b --b made/base-13b
evals plan --difference 0.05 --question-variance 0.05 --sampling-variance 0.15 --samples 5 --looks 4
evals score graded.csv
evals compare graded.csv --a model-0 --b model-1
evals rank graded.csv
evals score @evals/lm-eval-pyfade
evals score @evals/tau-bench
evals rank @evals/cruxeval
evals show @evals/every_eval_ever
scaling fit scaling/runs.csv --where family=base --at 10B,200B
scaling fit scaling/runs.csv --where family=base --form auto
scaling fit scaling/runs.csv --where family=base --loss squares
scaling optimal scaling/runs.csv --where family=base --budget 1e22,1e23
scaling optimal scaling/runs.csv --where family=base --budget 1e23 --sensitivity
scaling isoflops scaling/runs.csv --where family=base --budget 1e22
scaling backtest scaling/runs.csv --where family=base --form auto --hold-out 4,16
scaling compare scaling/runs.csv --column source=family --a base --b new
scaling plan scaling/runs.csv --where family=base --budget 1e22
scaling downstream scaling/runs.csv --where family=base --task quiz --at 10B,200B --chance 0.25
scaling tuned scaling/trials.csv --by model --a baseline --b ours
scaling tuned scaling/trials.csv --by model --a baseline --b ours --budget 10
study plan study.toml
study status study.toml
study run study.toml
study status study.toml
store list digits-runs
store verify digits-runs
store export digits-runs exported.csv --overwrite
learning fit digits-runs
learning compare digits-runs
"""
"""One command a line; ``@`` stands for the folder of the published data."""


def main() -> int:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(dest="job", required=True)
    record = jobs.add_parser("record")
    record.add_argument("file", type=Path)
    record.add_argument("lenses", nargs="*")
    compare = jobs.add_parser("compare")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument("--tolerance", type=float, default=1e-12)
    given = parser.parse_args()
    if given.job == "compare":
        return report(json.loads(given.before.read_text()), json.loads(given.after.read_text()), given.tolerance)
    target = given.file.resolve()
    with tempfile.TemporaryDirectory() as folder:
        make_place(Path(folder))
        os.chdir(folder)
        answers = {c: answer(c) for c in wanted(given.lenses)}
        os.chdir(ROOT)
    target.write_text(json.dumps(answers, indent=1), encoding="utf-8")
    failed = [c for c, a in answers.items() if a["status"] not in (0, 3)]
    print(f"{len(answers)} commands, {len(failed)} of them end in an error", *failed, sep="\n")
    return 0


def wanted(lenses: list[str]) -> list[str]:
    """Return the commands of these lenses, or all; each once but for the status of a study before and after it runs."""
    lines = [line for line in COMMANDS.strip().splitlines() if not lenses or line.split()[0] in lenses]
    seen: dict[str, int] = {}
    found = []
    for line in lines:
        if "@" in line and not DATA.exists():
            continue
        seen[line] = seen.get(line, 0) + 1
        found.append(line if seen[line] == 1 else f"{line} # again")
    return found


def make_place(folder: Path) -> None:
    """Copy the examples, and make the data that they lack."""
    import numpy as np

    shutil.copytree(
        ROOT / "examples", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*-runs", "__pycache__")
    )
    rng = np.random.default_rng(0)
    sizes = [(k, n, f) for k in "ab" for n in (100, 200, 400, 800) for f in range(3)]
    errors = [10 + 200 * n**-0.5 + rng.normal() - (k == "b") for k, n, f in sizes]
    write(folder / "percent.csv", "learner,n,fold,error", [(*s, e) for s, e in zip(sizes, errors, strict=True)])
    write(
        folder / "scores.csv",
        "learner,n,fold,accuracy",
        [(*s, 1 - e / 100) for s, e in zip(sizes, errors, strict=True)],
    )
    labels = rng.integers(5, size=300)
    np.save(folder / "labels.npy", labels)
    for k, name in enumerate("abc"):
        means = k * 0.6 * np.eye(5)[labels] @ rng.normal(size=(5, 12))
        np.save(folder / f"{name}.npy", means + rng.normal(size=(300, 12)))
    for name, runs in (("few", 4), ("first", 12), ("second", 12)):
        wrong = rng.random((runs, 300)) < 0.1 + 0.1 * rng.random((runs, 1))
        guesses = np.where(wrong, rng.integers(5, size=(runs, 300)), labels).astype("uint8")
        np.savez(folder / f"{name}.npz", predictions=guesses, labels=labels)
    np.save(folder / "targets.npy", rng.lognormal(size=(80, 3)))
    np.save(folder / "won.npy", rng.random((5, 400)))
    np.save(folder / "lost.npy", rng.random((5, 400)) + 0.1)
    risks: list[tuple[Any, ...]] = [("t", "blind-guess", "", 0, 1.0)]
    risks += [("t", "maximal", 100_000, s, 0.1 + 0.002 * rng.normal()) for s in range(4)]
    for method, factor in {"scratch": 1.0, "good": 0.6, "poor": 1.2}.items():
        for n in (100, 1000, 10_000):
            risks += [("t", method, n, s, 0.1 + factor * 3 * n**-0.5 + 0.01 * rng.normal()) for s in range(4)]
    write(folder / "transfer.csv", "task,method,n,seed,loss", risks)
    accuracy = rng.random((4, 10))
    nets = [(f"net {c}", f"task {t}", a, a + 0.05 * rng.normal(), c) for (t, c), a in np.ndenumerate(accuracy)]
    write(folder / "pool.csv", "checkpoint,task,accuracy,nleep,parameters", nets)
    scores = np.clip(rng.random(120) + 0.05 * np.arange(4)[:, None] + 0.2 * rng.normal(size=(4, 120)), 0, 1)
    graded = [(f"model-{m}", f"q{q}", score) for (m, q), score in np.ndenumerate(scores)]
    write(folder / "graded.csv", "model,question,score", graded)
    make_networks(folder)


def write(file: Path, header: str, rows: list[tuple[Any, ...]]) -> None:
    """Write a table."""
    file.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")


def make_networks(folder: Path) -> None:
    """Train two small networks on digits, and store them as weights of ``mlp``."""
    import torch
    from safetensors.torch import save_file
    from sklearn.datasets import load_digits

    from curvewise.nn.architectures import mlp

    digits = load_digits()
    x, y = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32), torch.tensor(digits.target)
    for name, steps in (("net", 60), ("other", 20)):
        torch.manual_seed(0)
        network = mlp((1, 8, 8), 10)
        optimiser = torch.optim.SGD(network.parameters(), lr=0.5)
        for _ in range(steps):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(x[:1000]), y[:1000]).backward()
            optimiser.step()
        save_file(network.state_dict(), folder / f"{name}.safetensors")


def answer(command: str) -> dict[str, Any]:
    """Run a command with ``--json`` where it has that, and as text; keep its status and both outputs."""
    import shlex

    words = [w.replace("@", f"{DATA}/") for w in shlex.split(command.removesuffix(" # again"))]
    kept: dict[str, Any] = {}
    for form, more in (("json", ["--json"]), ("text", [])):
        if form == "text" and words[:2] == ["study", "run"]:
            continue
        status, out, error = call([*words, *more])
        kept |= {"status": status, form: out, f"{form} messages": error}
    return kept


def call(words: list[str]) -> tuple[int, str, str]:
    """Run a command in this process."""
    from curvewise.cli import main as console

    out, error, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            status = console(words) or 0
        except SystemExit as stop:
            status = int(stop.code or 0) if not isinstance(stop.code, str) else 1
    return status, out.getvalue(), error.getvalue()


def report(before: dict[str, Any], after: dict[str, Any], tolerance: float) -> int:
    """Print where two records differ; return 1 if they do."""
    differing = 0
    for command in [*before, *(c for c in after if c not in before)]:
        if command not in before or command not in after:
            found = ["is in one record only"]
        else:
            found = list(differences(_parsed(before[command]), _parsed(after[command]), tolerance))
        if found:
            differing += 1
            print(command, *(f"    {line}" for line in found[:12]), *(["    …"] if len(found) > 12 else []), sep="\n")
    print(f"{len(before)} commands, {differing} differ")
    return int(differing > 0)


def _parsed(kept: dict[str, Any]) -> dict[str, Any]:
    with contextlib.suppress(ValueError, KeyError):
        return {**kept, "json": json.loads(kept["json"])}
    return kept


# Times and places differ from one run to the next.
CHANGING = re.compile(
    r"\d+(\.\d+)? ?(s|ms|min|MB|/s)\b|(/tmp|/var)/\S+|\d{4}-\d\d-\d\d[T ][\d:.+]+"
    r"|seconds|^(known|hours|bytes|bytes_free)$"
)


def differences(a: Any, b: Any, tolerance: float, place: str = "") -> Any:
    """Yield a line for each place in which two documents differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(k for k in b if k not in a)]:
            if CHANGING.search(str(key)):
                continue
            if key not in a or key not in b:
                yield f"{place}.{key}: only {'before' if key in a else 'after'}"
            else:
                yield from differences(a[key], b[key], tolerance, f"{place}.{key}")
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield f"{place}: {len(a)} entries, then {len(b)}"
        for i, (one, other) in enumerate(zip(a, b, strict=False)):
            yield from differences(one, other, tolerance, f"{place}[{i}]")
    elif isinstance(a, str) and isinstance(b, str):
        for one, other in zip(a.splitlines(), b.splitlines(), strict=False):
            if CHANGING.sub("", one).split() != CHANGING.sub("", other).split():
                yield f"{place}: {one[:200]!r}, then {other[:200]!r}"
        if len(a.splitlines()) != len(b.splitlines()):
            yield f"{place}: {len(a.splitlines())} lines, then {len(b.splitlines())}"
    elif isinstance(a, float | int) and isinstance(b, float | int) and not isinstance(a, bool):
        if a != b and not abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-12) and not (a != a and b != b):
            yield f"{place}: {a!r}, then {b!r}"
    elif a != b:
        yield f"{place}: {a!r}, then {b!r}"


if __name__ == "__main__":
    sys.exit(main())
