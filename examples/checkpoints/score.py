"""Features of every checkpoint on every task, the scores of all measures, and a linear probe.

For trainable networks also the accuracy after a few epochs of fine-tuning, and NLEEP over its two settings.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pool import POOL, Member
from tasks import TASKS, read_task

from curvewise.ranking.measure import CheckpointFeatures
from curvewise.ranking.networks.checkpoints import Checkpoint
from curvewise.ranking.networks.features import extract_many
from curvewise.ranking.networks.preprocessing import Preprocessing

IMAGES, TESTED = 1_000, 500


def as_checkpoint(member: Member) -> Checkpoint:
    """Return a member of the pool in the form that :func:`extract_many` takes."""
    from weights import load_network

    size = member.size if isinstance(member.size, tuple) else (member.size, member.size)
    prepared = Preprocessing(
        size, mean=member.scale[0], std=member.scale[1], channels="bgr" if member.swapped else "rgb"
    )
    source = load_network(member) if member.format == "torch" else member.path
    return Checkpoint(member.name, source, layer=member.layer, preprocessing=prepared, source_accuracy=member.accuracy)


def extract_pool(
    folder: Path,
    task: str,
    *,
    members: Sequence[Member] = POOL,
    images: int = IMAGES,
    tested: int = TESTED,
    device: str | None = None,
) -> dict[str, CheckpointFeatures]:
    """Return features of the first training and test images, in this order; cached on disk."""
    x, _, test_x, _ = read_task(folder / "tasks", task, images, tested)
    both = np.concatenate([x, test_x])
    found: dict[str, CheckpointFeatures] = {}
    for member in members:  # one network in memory at a time
        try:
            pool = [as_checkpoint(member)]
        except (FileNotFoundError, ImportError) as error:
            print(f"left out: {error}", flush=True)
            continue
        done, failures = extract_many(pool, both, device=device, cache=folder / "features")
        for name, why in failures.items():
            print(f"{task}, {name} failed: {why}", flush=True)
        for name, features in done.items():
            found[name] = features
            print(f"{task}, {features!r}, {features.layer}, {features.seconds:.0f} s", flush=True)
    return found


def score_pool(
    folder: Path,
    out: Path,
    *,
    tasks: Sequence[str] = TASKS,
    members: Sequence[Member] = POOL,
    images: int = IMAGES,
    tested: int = TESTED,
    device: str | None = None,
) -> None:
    """Write the score of every checkpoint by every measure on these tasks, and the probe's accuracy.

    Other tasks that the file holds stay in it. Measures see the images to train on and nothing
    else; those that split hold a fifth of them out. The probe is trained on all of them, and its
    accuracy is that on the images to test on.
    """
    from curvewise.ranking.networks.rank import MEASURES
    from curvewise.ranking.rank import rank_features

    measures = [m for m in MEASURES.values() if m.takes != "network"]
    tables = []
    for task in tasks:
        sizes = {"images": images, "tested": tested}
        features = extract_pool(folder, task, members=members, device=device, **sizes)
        _, y, _, test_y = read_task(folder / "tasks", task, images, tested)
        seen = {name: f.take(np.arange(images)) for name, f in features.items()}
        ranked = rank_features(seen, y, measures, resamples=0)
        table = pd.DataFrame({"task": task, "checkpoint": ranked.checkpoints, **ranked.scores})
        about = [_about(m, features[m.name], y, test_y) for m in members if m.name in features]
        tables.append(pd.DataFrame(about).merge(table, on="checkpoint"))
        print(f"{task}: seconds", {k: round(float(np.nansum(v)), 1) for k, v in ranked.seconds.items()})
    if out.is_file():
        kept = pd.read_csv(out)
        tables.append(kept[~kept["task"].isin(tasks)])
    whole = pd.concat(tables).sort_values("task", kind="stable")
    whole.insert(0, "task", whole.pop("task"))
    whole.to_csv(out, index=False, float_format="%.7g")


def _about(member: Member, found: CheckpointFeatures, y: np.ndarray, test_y: np.ndarray) -> dict[str, object]:
    from curvewise.ranking.networks.probes import linear_score

    rows, n = found.features, len(y)
    probe = linear_score(rows[:n], y, test_features=rows[n:], test_labels=test_y)
    return {
        "checkpoint": member.name,
        "source": member.source,
        "format": member.format,
        "dimensions": rows.shape[1],
        "parameters": found.parameters,
        "source accuracy": member.accuracy,
        "probe": probe,
    }


def grid_pool(
    folder: Path,
    out: Path,
    *,
    tasks: Sequence[str] = TASKS,
    members: Sequence[Member] = POOL,
    images: int = IMAGES,
    device: str | None = None,
) -> None:
    """Write Kendall's τ of NLEEP with fine-tuned accuracies over its two settings: figure 2 of the paper.

    The networks are those that :func:`finetune.finetune` starts from, without those trained on the task. Their
    features go to ``features-TASK.npz`` in the folder for large files.
    """
    from curvewise.ranking.agreement import measure_nleep_grid

    tables = []
    for task in tasks:
        x, y, _, _ = read_task(folder / "tasks", task, images, 0)
        found, _ = extract_many([_packed(m, folder) for m in _not_trained_on(members, task)], x, device=device)
        features = {name: f.features for name, f in found.items()}
        np.savez(folder / f"features-{task}.npz", labels=y, **features)
        grid = measure_nleep_grid({task: (features, y, _truth(task))})
        table = grid.frame().melt("energy", var_name="components", value_name="kendall")
        table["components"] = table["components"].str.removeprefix("components_").astype(int)
        tables.append(table.assign(task=task, n=len(features)))
    pd.concat(tables).to_csv(out, index=False, float_format="%.4g")


def rival_pool(
    folder: Path,
    out: Path,
    *,
    tasks: Sequence[str] = TASKS,
    members: Sequence[Member] = POOL,
    images: int = IMAGES,
    rates: Sequence[float] = (0.01,),
    device: str | None = None,
) -> None:
    """Write the accuracy of the trainable networks after 1 and 5 epochs of fine-tuning, row by row.

    A fifth of the images is held out for scoring, as for other measures; the default rate is that of curvewise.
    """
    from curvewise.ranking.measure import as_targets
    from curvewise.ranking.networks.finetuning import find_networks, finetuning_score
    from curvewise.ranking.networks.inputs import read_inputs
    from curvewise.ranking.scoring import split_rows

    for task in tasks:
        x, y, _, _ = read_task(folder / "tasks", task, images, 0)
        train, test = split_rows(as_targets(y, len(y), allowed=("classes",)), 0.2, np.random.default_rng(0))
        pool = [_packed(m, folder) for m in _not_trained_on(members, task)]
        for name, given in find_networks(pool, read_inputs((x, y), rng=np.random.default_rng(0)), device).items():
            for rate in rates:
                row: dict[str, Any] = {"task": task, "checkpoint": name, "images": images, "rate": rate}
                for epochs in (1, 5):
                    begun = time.perf_counter()
                    rows = {"test_data": given.data[test], "test_labels": y[test], "epochs": epochs, "rate": rate}
                    row[f"finetune-{epochs}"] = finetuning_score(
                        given.network, given.data[train], y[train], **rows, **given.options
                    )
                    row[f"seconds-{epochs}"] = time.perf_counter() - begun
                pd.DataFrame([row]).to_csv(out, mode="a", header=not out.is_file(), index=False, float_format="%.4g")


def _not_trained_on(members: Sequence[Member], task: str) -> list[Member]:
    """Return the trainable networks that were not trained on the task itself."""
    return [m for m in members if m.body and (task, m.source) != ("cifar10", "CIFAR-10")]


def _truth(task: str) -> dict[str, float]:
    """Return the accuracy of each network after fine-tuning at its best rate."""
    table = pd.read_csv(Path(__file__).parent / "finetune.csv")
    found = table[table["task"] == task].groupby("checkpoint")["accuracy"].max()
    return {str(k): float(v) for k, v in found.items()}


def _packed(member: Member, folder: Path) -> Checkpoint:
    """Return a network with the weights that fine-tuning starts from."""
    from finetune import packed_name
    from networks import BODIES
    from safetensors.torch import load_file

    body = BODIES[member.body](**member.options)
    stored = load_file(folder / "packs" / packed_name(member))
    body.load_state_dict({k.removeprefix("body."): v.float() for k, v in stored.items()}, strict=False)
    size = (member.size, member.size) if isinstance(member.size, int) else member.size
    prepared = Preprocessing(size, mean=member.scale[0], std=member.scale[1])
    return Checkpoint(member.name, body.eval(), preprocessing=prepared)
