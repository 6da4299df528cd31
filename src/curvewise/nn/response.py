"""Measuring how a trained network's accuracy responds to perturbations of its examples."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.io._table import brief, suggest
from curvewise.nn._bar import Progress, progressing
from curvewise.nn._custom_changes import Custom
from curvewise.nn._measuring import measure, name_of
from curvewise.nn._perturbation import Perturbation
from curvewise.nn._preparing import EXAMPLES, Options, check_count, make_ready
from curvewise.nn.sample import Sample, draw_sample
from curvewise.response.curve import ResponseCurve
from curvewise.response.sensitivity import ResponseSensitivity

BATCHES = (5, 10, 20, 45, 90, 180)
"""Batches of 128 at which sensitivity is measured by default."""
BATCH = 128


def measure_response(
    model: Any,
    data: Any,
    perturbation: str | Perturbation | Custom = "mixup-intra",
    *,
    layer: str | int | None = None,
    magnitudes: ArrayLike | int | None = None,
    labels: ArrayLike | None = None,
    examples: int | None = EXAMPLES,
    batch: int | None = None,
    device: str | torch.device | None = None,
    precision: str = "float32",
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    fill: float = 0.0,
    interpolation: str = "bilinear",
    signs: str = "fold",
    padding: int | None = None,
    mask: int | None = None,
    compile: bool | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
    name: str | None = None,
) -> ResponseCurve:
    """Measure a model's accuracy at growing magnitudes of a perturbation.

    The model is evaluated in evaluation mode and comes back as it was: mode, gradients, hooks and
    device. Take examples that it was trained on, for which it is nearly always right.

    Parameters
    ----------
    model : torch.nn.Module or callable
        Returns logits, (batch, classes); or a tuple that begins with them, or a mapping with
        ``"logits"``. A function of any other framework takes an array and returns logits or
        probabilities, or predicted classes as integers.
    data : Dataset, DataLoader, Examples, (inputs, labels), Tensor or ndarray
        Labelled examples; see :func:`curvewise.nn.sample.draw_sample`. Images of uint8 are pixels;
        of floating point, they are what the network takes.
    perturbation : str, Perturbation or callable
        A name of :data:`curvewise.nn.perturbations.PERTURBATIONS`, or a function
        ``(x, magnitude, rng) -> x`` of what the network (or a layer) is given, a number, and a
        ``torch.Generator``.
    layer : str or int, optional
        Perturb the output of this submodule instead of the input. A number ℓ stands for the ℓ-th
        activation module that a forward pass calls: 1 is the first layer's output after its
        non-linearity.
    magnitudes : array_like or int, optional
        How much, or how many over the usual range; by default 10, and 11 where there are two
        directions.
    labels : array_like of int, optional
        Classes, where data holds inputs only.
    examples : int, optional
        How many to take at random, at most; None for all.
    batch : int, optional
        Examples given to the model at a time; by default what suits device and model. Answers do
        not depend on it, up to rounding.
    device : str, optional
        Where to compute; by default where the model is.
    precision : {"float32", "bfloat16", "float16"}
        Of the arithmetic, by autocast.
    mean, std : float or sequence of float, optional
        Per channel, or one for all: the network takes (pixel − mean) / std of pixels from 0 to 1.
    fill : float
        Value from 0 to 1 of what comes in from outside an image.
    interpolation : {"bilinear", "nearest"}
        For what moves pixels by parts of a pixel.
    signs : {"fold", "keep"}
        How the scores take magnitudes of both signs, see :func:`curvewise.gi_score`.
    padding, mask : int, optional
        For tokens: the one that fills short texts up and is never touched, by default the data's;
        and what a dropped token becomes, by default the padding.
    compile : bool, optional
        Compile the network together with the mixing of pairs, which takes half a minute; by default
        on a GPU, from ten million answers on.
    rng : int or Generator
        Decides examples, partners, noise and places: the same for every model given the same data.
    progress : bool or callable, optional
        Whether to show a bar, by default on a terminal; or a function that is told the share done.
    name : str, optional
        What the model is called in the result.

    Returns
    -------
    ResponseCurve
        With the single answers and partners, so that intervals and paired comparisons
        (:func:`curvewise.compare_responses`) are closed-form. ``settings["path"]`` says how the
        network was executed: ``"traced"`` or ``"as is"``, at a layer ``"cut"`` there (what comes
        before it runs once per example) or with a ``"hook"`` (it runs once per magnitude).

    Raises
    ------
    InputError
        What was given does not fit together; the message says what to do.

    Examples
    --------
    >>> x = torch.rand(200, 4, generator=torch.Generator().manual_seed(0))
    >>> y = (x[:, 0] > x[:, 1]).long()
    >>> model = torch.nn.Linear(4, 2, bias=False)
    >>> _ = model.weight.data.copy_(torch.tensor([[-1.0, 1, 0, 0], [1, -1, 0, 0]]))
    >>> curve = measure_response(model, (x, y), "feature-noise", magnitudes=[0, 0.5, 1])
    >>> curve.accuracy[0] == 1, curve.gi > 0.05
    (np.True_, True)
    """
    options = Options(
        layer, magnitudes, labels, examples, batch, device, precision, mean, std, fill,
        interpolation, signs, padding, mask, compile, rng,
    )  # fmt: skip
    found = {name or name_of(model): model}
    (curve,) = _measured(found, data, perturbation, options, progress).values()
    return curve


def measure_responses(
    models: Mapping[str, Any],
    data: Any,
    perturbation: str | Perturbation | Custom = "mixup-intra",
    *,
    progress: Progress = None,
    **options: Any,
) -> dict[str, ResponseCurve]:
    """Measure several models on the same examples, perturbed in the same way.

    Parameters
    ----------
    models : mapping of str to Module or callable
        By name.
    data, perturbation
        As of :func:`measure_response`.
    progress : bool or callable, optional
        For all models together.
    **options
        All other arguments of :func:`measure_response`.

    Returns
    -------
    dict of str to ResponseCurve
        To be compared in pairs with :func:`curvewise.compare_responses`.
    """
    if not isinstance(models, Mapping) or not models:
        raise InputError(
            f"models is a {type(models).__name__}: give a mapping from names to models."
        )
    return _measured(models, data, perturbation, _options(options), progress)


def measure_sensitivity(
    model: Any,
    data: Any,
    perturbation: str | Perturbation | Custom = "mixup-intra",
    *,
    batches: Sequence[int] | None = None,
    repeats: int = 20,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
    name: str | None = None,
    **options: Any,
) -> ResponseSensitivity:
    """Measure how scores and time depend on the number of batches (of 128 examples).

    Each repeat draws examples and partners anew, without repetition, as in section 4.1.3 of the
    paper; fewer batches are the first ones of the same draw.

    Parameters
    ----------
    model, data, perturbation
        As of :func:`measure_response`.
    batches : sequence of int, optional
        How many; by default 5 to 180, as far as there is data.
    repeats : int
        Of each.
    rng, progress, name
        As of :func:`measure_response`.
    **options
        All other arguments of :func:`measure_response` but ``examples``.

    Returns
    -------
    ResponseSensitivity
    """
    check_count(repeats, "repeats", 2)
    if "examples" in options:
        raise InputError("examples is decided by batches here: leave it out.")
    counts = _counts(batches)
    wished = _options({**options, "examples": counts[-1] * BATCH})
    wished.check()
    seeds = np.random.default_rng(_seed(rng)).integers(2**62, size=repeats).tolist()
    curves: dict[int, list[ResponseCurve]] = {}
    with progressing("measuring", sum(counts) * repeats, progress) as advance:
        for seed in seeds:
            sample = _sample(data, wished, seed)
            for count in _that_fit(counts, len(sample), batches is None):
                ready = make_ready(sample.take(count * BATCH), perturbation, wished, seed)
                curve = measure(model, ready, wished, name or name_of(model), lambda _: None)
                curves.setdefault(count, []).append(curve)
                advance(count)
    return ResponseSensitivity.from_curves(BATCH, curves)


def _measured(
    models: Mapping[str, Any],
    data: Any,
    perturbation: str | Perturbation | Custom,
    options: Options,
    progress: Progress,
) -> dict[str, ResponseCurve]:
    options.check()
    seed = _seed(options.rng)
    ready = make_ready(_sample(data, options, seed), perturbation, options, seed)
    curves = {}
    with progressing("measuring", ready.answers * len(models), progress) as advance:
        for name, model in models.items():
            curves[name] = measure(model, ready, options, str(name), advance)
    for name, curve in curves.items():
        for warning in curve.warnings:
            said = f"{name}: {warning}" if len(models) > 1 else warning
            warnings.warn(said, CurvewiseWarning, stacklevel=3)
    return curves


def _sample(data: Any, options: Options, seed: int) -> Sample:
    return draw_sample(
        data,
        options.labels,
        examples=options.examples,
        mean=options.mean,
        std=options.std,
        rng=seed,
    )


def _options(given: dict[str, Any]) -> Options:
    known = [field.name for field in fields(Options)]
    for name in given:
        if name not in known:
            raise TypeError(f"{name!r} is no argument of measure_response.{suggest(name, known)}")
    return Options(**given)


def _seed(rng: int | np.random.Generator) -> int:
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**62))
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or not 0 <= rng < 2**63:
        raise InputError(f"rng={brief(rng)}: give a whole number below 2**63, or a Generator.")
    return int(rng)


def _counts(batches: Sequence[int] | None) -> list[int]:
    counts = np.unique(np.asarray(BATCHES if batches is None else batches))
    if counts.dtype.kind not in "iu" or not counts.size or counts[0] < 1:
        raise InputError(f"batches={brief(batches)}: give whole numbers of at least 1.")
    return [int(count) for count in counts]


def _that_fit(counts: list[int], examples: int, some: bool) -> list[int]:
    """Numbers of batches that there is data for; all or an error unless some suffice."""
    fit = [count for count in counts if count * BATCH <= examples]
    if not fit or not (some or fit == counts):
        raise InputError(
            f"batches={counts} of {BATCH} need {(counts[-1] if fit else counts[0]) * BATCH:,} "
            f"examples, and there are {examples:,}: give fewer."
        )
    return fit
