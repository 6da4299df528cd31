"""Accuracy on examples that are perturbed at random: what a network should be invariant to."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn._guarding import (
    arithmetic,
    borrowed,
    check_logits,
    chosen_device,
    exact,
    is_told,
    logits_of,
)
from curvewise.nn._perturbation import Perturbation
from curvewise.nn._preparing import Options, make_ready
from curvewise.nn.perturbations import draw_magnitudes, find_perturbation
from curvewise.nn.response import measure_response
from curvewise.nn.sample import Sample, draw_sample
from curvewise.types import as_floats

SHARE = 0.1
"""Share of the training examples that are perturbed at random, as in the paper."""
BATCH = 512
"""Examples that are perturbed and answered at a time by default."""


def perturbed_accuracy(
    model: nn.Module,
    data: Any,
    perturbation: str | Perturbation,
    reach: tuple[float, float] | None = None,
    *,
    labels: Any = None,
    examples: float | None = None,
    batch: int | None = None,
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
        A fraction. Outputs that hold NaN, or whose largest value is infinite, count as wrong.

    Raises
    ------
    InputError
        What was given does not fit together; the message says what to do.

    Examples
    --------
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False))
    >>> _ = model[1].weight.data.copy_(torch.eye(2))
    >>> images = torch.tensor([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])
    >>> perturbed_accuracy(model, (images, [0, 1]), "rotation", (0, 0))
    1.0
    >>> perturbed_accuracy(model, (images, [0, 1]), "rotation", (180, 180))
    0.0
    """
    options = Options(batch=batch, precision=precision, fill=fill, interpolation=interpolation)
    options.check()
    size = int(options.batch or BATCH)
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a {type(model).__name__}: give a torch.nn.Module.")
    if isinstance(rng, bool) or not isinstance(rng, int) or rng < 0:
        raise InputError(f"rng={rng!r}: give a whole number from 0 on.")
    found, (low, high) = within(perturbation, reach)
    place = chosen_device(model, device)
    sample = draw_sample(data, labels, examples=examples, mean=mean, std=std, rng=rng)
    if found.of == "images" and sample.x.is_floating_point():
        make_ready(sample, found, options, rng)  # refuses what cannot be pixels
    sample = sample.to(place)
    found.check_input(sample.x)
    raw = found.of in ("tokens", "images")
    if found.learn is not None:
        found = found.fitted(sample.x if raw else sample.given(sample.x), padding=sample.padding)
    drawn = torch.from_numpy(draw_magnitudes(low, high, len(sample), rng)).to(place)
    right = torch.zeros((), dtype=torch.int64, device=place)
    with borrowed(model, place), arithmetic(place, precision):
        for first in range(0, len(sample), size):
            rows = torch.arange(first, min(first + size, len(sample)), device=place)
            x = _changed(sample, found, rows, drawn[rows], rng, fill, interpolation)
            logits = logits_of(model(_as_taken(x, model)))
            check_logits(logits, len(rows), sample.classes)
            right += (is_told(logits) & (logits.argmax(1) == sample.y[rows])).sum()
    return int(right) / len(sample)


def within(
    perturbation: str | Perturbation, reach: tuple[float, float] | None
) -> tuple[Perturbation, tuple[float, float]]:
    """A perturbation of single examples, and magnitudes that it takes."""
    found = find_perturbation(perturbation)
    if found.pairs is not None:
        raise InputError(
            f"perturbation={found.name!r} mixes pairs: give one that changes single examples."
        )
    ends = as_floats(found.usual if reach is None else reach, "reach")
    if ends.shape != (2,) or not ends[0] <= ends[1]:
        raise InputError(f"reach={reach!r}: give two magnitudes, the lower first.")
    low, high = ends.tolist()
    found.check(low)
    found.check(high)
    return found, (low, high)


def withstanding(
    model: nn.Module,
    train: Any,
    perturbation: str | Perturbation,
    magnitudes: Sequence[float],
    reach: tuple[float, float],
    *,
    examples: int | None = None,
    signs: str = "keep",
    device: str | torch.device | None = None,
    rng: int = 0,
) -> tuple[float, float, float]:
    """The Gi-score, the mean accuracy of the response curve, and the accuracy on a perturbed tenth.

    All three on training data; see :func:`curvewise.measure_invariance`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # a filter on accuracy follows
        curve = measure_response(
            model,
            train,
            perturbation,
            magnitudes=magnitudes,
            examples=examples,
            signs=signs,
            device=device,
            rng=rng,
            progress=False,
        )
    augmented = perturbed_accuracy(
        model, train, perturbation, reach, examples=SHARE, device=device, rng=rng
    )
    return curve.gi, curve.mean_accuracy, augmented


def _as_taken(x: Tensor, model: nn.Module) -> Tensor:
    """Inputs in the precision of the network's weights."""
    kinds = [p.dtype for p in model.parameters() if p.is_floating_point()]
    return x.to(kinds[0]) if kinds and x.is_floating_point() else x


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
    with exact(x.device):
        changed = perturbation.apply(
            x, magnitudes, seed, positions=rows, fill=fill, interpolation=interpolation
        )
    return sample.normalised(changed) if images else changed
