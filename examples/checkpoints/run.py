"""Twenty-one real checkpoints on three tasks: scores by every measure, and accuracy after fine-tuning.

    python examples/checkpoints/run.py prepare --mnist PATH         # images and weights, once
    python examples/checkpoints/run.py features                     # one pass for each checkpoint
    python examples/checkpoints/run.py score                        # every measure, and a probe
    python examples/checkpoints/run.py finetune --device cuda       # ground truth: minutes on a GPU
    python examples/checkpoints/run.py grid --device cuda           # NLEEP over its two settings
    python examples/checkpoints/run.py rivals --device cuda         # a few epochs of fine-tuning as a measure
    python examples/checkpoints/run.py judge                        # Kendall's τ of every measure

Large files are kept in pool-runs beside this file; a second call continues where the first stopped. The results are
scores.csv, finetune.csv, grid.csv, rivals.csv, judged.csv and stable_transfer.csv.
"""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TRAVEL = "travel.zip"
"""Images and weights in one file below 64 MiB, to take to another machine."""


def prepare(work: Path, places: dict[str, str]) -> None:
    """Write the images and the weights that can be trained, and pack both."""
    from finetune import pack_weights
    from tasks import prepare_tasks

    prepare_tasks(work / "tasks", places)
    pack_weights(work / "packs")
    with zipfile.ZipFile(work / TRAVEL, "w", zipfile.ZIP_LZMA) as packed:
        for path in sorted([*work.glob("tasks/*.npz"), *work.glob("packs/*.safetensors")]):
            packed.write(path, path.relative_to(work))
    print(f"{work / TRAVEL}: {(work / TRAVEL).stat().st_size / 2**20:.1f} MiB")


def unpack(work: Path) -> None:
    """Unpack what another machine prepared, unless that is done already."""
    if not (work / "tasks").is_dir() and (work / TRAVEL).is_file():
        with zipfile.ZipFile(work / TRAVEL) as packed:
            packed.extractall(work)


def main(asked: argparse.Namespace) -> None:
    """Run one of the seven steps."""
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.what == "prepare":
        prepare(asked.work, {"mnist": asked.mnist, "cifar10": asked.cifar10})
        return
    if asked.what == "judge":
        from judge import judge_pool, judge_stable_transfer

        judge_pool(asked.out / "scores.csv", asked.out / "finetune.csv", asked.out / "judged.csv")
        judge_stable_transfer(asked.out / "stable_transfer.csv")
        return
    from pool import POOL

    unpack(asked.work)
    chosen = [m for m in POOL if not asked.only or any(o in m.name for o in asked.only)]
    if asked.what in ("features", "score", "grid", "rivals"):
        from score import extract_pool, grid_pool, rival_pool, score_pool
        from tasks import TASKS

        if asked.what in ("grid", "rivals"):
            how = _given(asked, "images", "device", "tasks", *(["rates"] if asked.what == "rivals" else []))
            function = grid_pool if asked.what == "grid" else rival_pool
            function(asked.work, asked.out / f"{asked.what}.csv", members=chosen, **how)
            return
        given = _given(asked, "images", "tested", "device")
        if asked.what == "score":
            tasks = asked.tasks or TASKS
            score_pool(asked.work, asked.out / "scores.csv", tasks=tasks, members=chosen, **given)
            return
        for task in asked.tasks or TASKS:
            extract_pool(asked.work, task, members=chosen, **given)
    else:
        from finetune import finetune

        chosen = [m for m in chosen if m.body]
        given = _given(asked, "images", "tested", "device", "rates", "epochs", "precision")
        given |= {"scratch": not asked.only, "workers": asked.workers, "members": chosen}
        if asked.tasks:
            given["tasks"] = asked.tasks
        finetune(asked.work, asked.out / "finetune.csv", **given)


def _given(asked: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the options that were given; the others keep the defaults of the function."""
    return {name: getattr(asked, name) for name in names if getattr(asked, name) is not None}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prepare", "features", "score", "finetune", "grid", "rivals", "judge"])
    parser.add_argument("--mnist", help="folder with the IDX files of MNIST")
    parser.add_argument("--cifar10", help="CIFAR-10, unless it is below CURVEWISE_DATA")
    parser.add_argument("--only", nargs="*", help="checkpoints whose name contains one of these")
    parser.add_argument("--tasks", nargs="*", help="all by default")
    parser.add_argument("--device", help="cpu, cuda or cuda:0; by default a GPU if there is one")
    parser.add_argument("--images", type=int, help="training images (score 1000, finetune 2000)")
    parser.add_argument("--tested", type=int, help="test images (score 500, finetune 2000)")
    parser.add_argument(
        "--rates", nargs="+", type=float, help="learning rates (finetune 1e-4, 3e-4, 1e-3, rivals 1e-2)"
    )
    parser.add_argument("--epochs", type=int, help="epochs of fine-tuning (6)")
    parser.add_argument("--precision", choices=["bfloat16", "float32"], help="(bfloat16)")
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    parser.add_argument("--work", type=Path, default=HERE / "pool-runs", help="folder for large files")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the tables")
    main(parser.parse_args())
