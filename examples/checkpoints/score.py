"""Features of every checkpoint on every task, what measures say of them, and a linear probe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
    """A member of the pool as :func:`extract_many` takes it."""
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
    """Features of the first images to train on and to test on, in this order; kept in a cache."""
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
    """Write what every measure says of every checkpoint on these tasks, and the probe's accuracy.

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
