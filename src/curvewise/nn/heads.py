"""Linear probes: one layer trained on features that are computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from curvewise.nn._flags import doubts_of, own_generator, reproducible
from curvewise.nn.architectures import features_of, head_of, make_network
from curvewise.nn.lane import EVALUATION_BATCH
from curvewise.nn.resident import Resident, find_device
from curvewise.nn.settings import Training
from curvewise.nn.task import Assignment, Examples, Trained


def train_heads(
    training: Training,
    assignments: Sequence[Assignment],
    examples: Examples,
    evaluations: Mapping[str, Examples],
    *,
    device: str | torch.device,
    folder: Path | None,
    **how: Any,
) -> Iterator[tuple[int, Trained]]:
    """Train the last layer of a network whose other weights stay as they are.

    With weights from a file the features are computed once for all assignments. Without, every
    assignment has a random network of its own, drawn from its initial seed.
    """
    from curvewise.nn.engine import resident, train

    place = find_device(device)
    bodies: dict[int | None, list[int]] = {}
    for i, assignment in enumerate(assignments):
        bodies.setdefault(None if training.weights else assignment.init, []).append(i)
    for seed, numbers in bodies.items():
        body = _body(training, examples, folder, seed or 0).to(place)
        name, head = head_of(body)
        probe = _probe(training, head)
        kernels: set[str] = set()
        with reproducible(kernels):
            inputs = _features(body, examples, place)
            shown = {k: _features(body, v, place) for k, v in evaluations.items()}
            factor = _factor(body, head, inputs, resident(examples, place))
        own = [assignments[i] for i in numbers]
        for i, trained in train(probe, own, inputs, shown, device=place, folder=folder, **how):
            doubts = tuple(dict.fromkeys((*doubts_of(kernels), *trained.doubts)))
            yield numbers[i], replace(_named(trained, name, factor), doubts=doubts)


def stand_in(
    training: Training, examples: Examples, folder: Path | None
) -> tuple[Training, Examples]:
    """A layer of the right size and empty features for it, to be timed."""
    head = head_of(_body(training, examples, folder, 0))[1]
    y = examples.y[:1]
    x = np.zeros((len(y), head.in_features), dtype=np.float32)
    return _probe(training, head), Examples(x, y, examples.classes)


def _probe(training: Training, head: torch.nn.Linear) -> Training:
    options: dict[str, Any] = {} if head.bias is not None else {"bias": False}
    bare = replace(training, weights=None, weights_into=None, trained="all")
    return replace(bare, architecture="linear", options=options)


def _body(
    training: Training, examples: Examples, folder: Path | None, seed: int
) -> torch.nn.Module:
    with own_generator(seed):
        model = make_network(training, examples.shape, examples.outputs, folder)
    return model.eval()


def _features(body: torch.nn.Module, examples: Examples, device: torch.device) -> Examples:
    from curvewise.nn.engine import resident

    data = resident(examples, device)
    parts = []
    with torch.no_grad():
        for start in range(0, len(data.y), EVALUATION_BATCH):
            x = data.prepared(data.x[start : start + EVALUATION_BATCH])
            parts.append(features_of(body, x).float().cpu())
    return Examples(np.asarray(torch.cat(parts)), examples.y, examples.classes)


def _factor(
    body: torch.nn.Module, head: torch.nn.Linear, features: Examples, data: Resident
) -> float | None:
    """What the network multiplies the outputs of its last layer with; None if it does more."""
    with torch.no_grad():
        own = head(torch.from_numpy(features.x[:8]).to(head.weight.device)).double()
        whole = body(data.prepared(data.x[:8])).double()
    if own.shape != whole.shape:
        return None
    factor = float((own * whole).sum() / (own * own).sum())
    near = torch.allclose(whole, factor * own, rtol=1e-3, atol=1e-3 * float(whole.abs().max()))
    return factor if near and factor else None


def _named(trained: Trained, head: str, factor: float | None) -> Trained:
    """Give the weights of the layer as the network takes them, by the name they have there."""
    renamed = {
        when: {
            f"{head}.{k.rsplit('.', 1)[-1]}": v / np.float32(factor or 1)
            for k, v in weights.items()
        }
        for when, weights in trained.checkpoints.items()
    }
    notes = trained.notes
    if factor is None:
        notes = (*notes, "What the network does after its last layer was left out.")
    path = f"{trained.path}, features computed once"
    return replace(trained, checkpoints=renamed, path=path, notes=notes)
