"""Accuracy on examples that are perturbed at random: what a network should be invariant to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn._guarding import arithmetic, borrowed, check_logits, chosen_device, logits_of
from curvewise.nn._perturbation import Perturbation
from curvewise.nn.perturbations import draw_magnitudes, find_perturbation
from curvewise.nn.sample import Sample, draw_sample


def perturbed_accuracy(
    model: nn.Module,
    data: Any,
    perturbation: str | Perturbation,
    reach: tuple[float, float] | None = None,
    *,
    labels: Any = None,
    examples: float | None = None,
    batch: int = 512,
    device: str | torch.device | None = None,
    precision: str = "float32",
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    fill: float = 0.0,
    interpolation: str = "bilinear",
    rng: int = 0,
) -> float:
    """Accuracy on examples that are each perturbed by a magnitude drawn at random.

    On training examples this is the baseline that a response curve has to beat; on test examples it
    is what the curve should foretell (Schiff et al. 2021, section 4.2).

    Parameters
    ----------
    model : nn.Module
        The network; its mode and device are put back.
    data, labels, examples, mean, std
        As of :func:`curvewise.measure_response`.
    perturbation : str or Perturbation
        Any that needs no partners.
    reach : tuple of float, optional
        Lowest and highest magnitude; the usual range by default.
    batch, device, precision, fill, interpolation
        As of :func:`curvewise.measure_response`.
    rng : int
        Decides examples, magnitudes and noise.

    Returns
    -------
    float
        A fraction.
    """
    found = find_perturbation(perturbation)
    if found.pairs is not None:
        raise InputError(
            f"perturbation={found.name!r} mixes pairs: give one that changes single examples."
        )
    low, high = found.usual if reach is None else reach
    place = chosen_device(model, device)
    sample = draw_sample(data, labels, examples=examples, mean=mean, std=std, rng=rng).to(place)
    found = found.fitted(sample.x, padding=sample.padding)
    found.check_input(sample.x)
    for end in (low, high):
        found.check(end, sample.x.shape[1] if sample.x.ndim == 4 else None)
    drawn = torch.from_numpy(draw_magnitudes(low, high, len(sample), rng)).to(place)
    right = torch.zeros((), dtype=torch.int64, device=place)
    with borrowed(model, place), arithmetic(place, precision):
        for first in range(0, len(sample), batch):
            rows = torch.arange(first, min(first + batch, len(sample)), device=place)
            x = _changed(sample, found, rows, drawn[rows], rng, fill, interpolation)
            logits = logits_of(model(x))
            check_logits(logits, len(rows), sample.classes)
            right += (logits.argmax(1) == sample.y[rows]).sum()
    return int(right) / len(sample)


def _changed(
    sample: Sample,
    perturbation: Perturbation,
    rows: Tensor,
    magnitudes: Tensor,
    seed: int,
    fill: float,
    interpolation: str,
) -> Tensor:
    """Perturbed examples as the network takes them."""
    stored = sample.x[rows]
    images = perturbation.of == "images"
    x = sample.pixels(stored) if images else sample.given(stored)
    changed = perturbation.apply(
        x, magnitudes, seed, positions=rows, fill=fill, interpolation=interpolation
    )
    return sample.normalised(changed) if images else changed
