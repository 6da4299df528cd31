"""Measuring how a trained network's accuracy responds to perturbations of its examples."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.data import Sample, draw_sample
from curvewise.nn.evaluation import (
    arithmetic,
    borrowed,
    check_logits,
    chosen_device,
    exact,
    is_told,
    logits_of,
    unsteady,
)
from curvewise.progress import Progress, progressing
from curvewise.response.curve import ResponseCurve, ResponseSensitivity
from curvewise.response.networks.answers import BROKEN, RIGHT, Codes, Inputs, answer, budget
from curvewise.response.networks.perturbations import Custom, Perturbation, draw_magnitudes, find_perturbation
from curvewise.response.networks.sites import Parts, Probed, probe, split
from curvewise.response.networks.trial import EXAMPLES, Manner, Options, Ready, check_count, make_ready
from curvewise.text import brief, suggest
from curvewise.types.units import as_floats

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
        Labelled examples; see :func:`curvewise.nn.data.draw_sample`. Images of uint8 are pixels;
        of floating point, they are what the network takes.
    perturbation : str, Perturbation or callable
        A name of :data:`curvewise.response.networks.perturbations.PERTURBATIONS`, or a function
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
        (:func:`curvewise.response.compare_responses`) are closed-form. ``settings["path"]`` says how the
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
        To be compared in pairs with :func:`curvewise.response.compare_responses`.
    """
    if not isinstance(models, Mapping) or not models:
        raise InputError(f"models is a {type(models).__name__}: give a mapping from names to models.")
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
    return draw_sample(data, options.labels, examples=options.examples, mean=options.mean, std=options.std, rng=seed)


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


# How one model is measured on what was made ready.

LOW = 0.8
"""Clean accuracy below which a response curve says little, as in the paper."""
PAYS = 10**7
"""Answers from which on compiling is worth its time on a GPU."""
CACHE, CACHE_GPU = 2**23, 2**30
"""Bytes that the largest output of a layer should take for a batch."""

Advance = Callable[[float], None]


def measure(model: Any, ready: Ready, options: Options, name: str, advance: Advance) -> ResponseCurve:
    """Measure one model."""
    notes: list[str] = []
    if ready.left_out:
        notes.append(
            f"{ready.left_out} example(s) left out: no other of their class is in the sample, and "
            f"{ready.task.perturbation.name!r} mixes two of a class."
        )
    if isinstance(model, nn.Module):
        clean, codes, how = _of_module(model, ready, options, advance, notes)
    elif callable(model):
        clean, codes, how = _of_callable(model, ready, options, advance, notes)
    else:
        raise InputError(
            f"model is a {type(model).__name__}: give a torch.nn.Module, or a function from an "
            "array of inputs to logits."
        )
    notes += _findings(clean, codes)
    task, hits = ready.task, codes == RIGHT
    return ResponseCurve(
        task.magnitudes,
        hits.sum(axis=1),
        np.full(len(hits), hits.shape[1]),
        int((clean == RIGHT).sum()),
        len(clean),
        model=name,
        perturbation=task.perturbation.name,
        layer=how.pop("layer"),
        unit=task.perturbation.unit,
        signs=options.signs,
        hits=hits,
        partners=task.partners,
        settings={
            "examples": hits.shape[1],
            "left_out": ready.left_out,
            "seed": task.seed,
            "sample": ready.digest,
            **how,
        },
        warnings=tuple(notes),
    )


def _of_module(
    model: nn.Module, ready: Ready, options: Options, advance: Advance, notes: list[str]
) -> tuple[Codes, Codes, dict[str, Any]]:
    device = chosen_device(model, options.device)
    start = time.perf_counter()
    with borrowed(model, device):
        sample = ready.sample
        if sample.x.numel() * sample.x.element_size() <= budget(device):
            sample = sample.to(device)
        dtype = _own_dtype(model)
        x = _first_ones(sample, device, dtype, int(options.batch or min(16, len(sample))))
        probed = probe(model, options.layer, x)
        check_logits(probed.logits, len(x), sample.classes)
        other = _first_ones(sample, device, dtype, 2 if len(x) > 2 else 4)
        doubt = unsteady(model, x, other, probed.logits)
        parts = split(model, probed, x)
        notes += _doubts(doubt, parts, probed)
        manner = _manner(ready, options, probed, device, advance)
        if parts.path == "hook":  # which no compiler follows
            manner = replace(manner, compiled=False)
        inputs = Inputs(sample, device, dtype, last=parts.pure and not _is_whole(sample.x))
        clean, codes = answer(parts, inputs, ready.task, manner)
    notes += manner.notes
    how = {
        "layer": "input" if probed.site is None else probed.site.name,
        "path": parts.path,
        "device": str(device),
        "precision": manner.precision,
        "batch": manner.batch,
        "compiled": manner.compiled and not manner.notes,
        "seconds": time.perf_counter() - start,
    }
    return clean, codes, how


def _doubts(doubt: str | None, parts: Parts, probed: Probed) -> Iterator[str]:
    """What a reader should know of a network that is not a function of one example's values."""
    if doubt is not None:
        yield doubt
    elif parts.whole is not None and probed.site is not None:
        yield (
            f"The network answers differently when the output of layer {probed.site.name!r} is "
            "replaced by a copy, as what is changed in place later belongs to other layers, too. "
            "Unperturbed examples are answered by the network itself; perturb another layer."
        )


def _of_callable(
    model: Callable[..., Any], ready: Ready, options: Options, advance: Advance, notes: list[str]
) -> tuple[Codes, Codes, dict[str, Any]]:
    for what, value in (("layer", options.layer), ("device", options.device)):
        if value is not None:
            raise InputError(
                f"{what}={value!r}: model is a plain function, which has neither layers nor a "
                f"device. Leave {what} out, or give a torch.nn.Module."
            )
    place = torch.device("cpu")
    start = time.perf_counter()
    batch = int(options.batch or min(256, len(ready.sample)))
    manner = Manner(place, "float32", batch, False, advance)
    inputs = Inputs(ready.sample, place, None, last=False)
    parts = Parts(None, PlainCallable(model, ready.sample.classes), "callable")
    clean, codes = answer(parts, inputs, ready.task, manner)
    how = {"layer": "input", "path": parts.path, "device": "its own", "batch": manner.batch}
    return clean, codes, {**how, "seconds": time.perf_counter() - start}


def _manner(ready: Ready, options: Options, probed: Probed, device: torch.device, advance: Advance) -> Manner:
    cuda = device.type == "cuda"
    compiled = options.compile if options.compile is not None else cuda and ready.answers >= PAYS
    row = len(ready.sample) if ready.task.partners is None else ready.answers
    batch = int(options.batch or 0) or batch_size(probed.largest, len(ready.sample), row, cuda)
    return Manner(device, options.precision, batch, compiled, advance)


def batch_size(largest: int, examples: int, row: int, cuda: bool) -> int:
    """As many examples as keep the outputs of layers in a CPU's cache, or a GPU busy.

    Parameters
    ----------
    largest : int
        Bytes of the largest output for one example.
    examples, row : int
        How many there are, and how many are answered in a row, which the batches should fill.
    cuda : bool
        On a GPU.
    """
    room, least, most = (CACHE_GPU, 64, 4096) if cuda else (CACHE, 8, 256)
    size = int(2 ** int(np.log2(max(room // max(largest, 1), 1))))
    size = min(max(size, least), most)
    if cuda:
        even = math.ceil(row / math.ceil(row / size))
        size = min(size, math.ceil(even / 64) * 64)
    return min(size, examples)


def _findings(clean: Codes, codes: Codes) -> Iterator[str]:
    broken = int((codes == BROKEN).sum()) + int((clean == BROKEN).sum())
    if broken:
        yield (
            f"{broken:,} of {codes.size + clean.size:,} outputs hold NaN, or an infinite largest "
            "value; they count as wrong."
        )
    accuracy = float((clean == RIGHT).mean())
    if accuracy < LOW:
        yield (
            f"The model is right on {accuracy:.1%} of the unperturbed examples: below {LOW:.0%} a "
            "response curve says little of generalization. Measure it on the training data."
        )


def _own_dtype(model: nn.Module) -> torch.dtype | None:
    """The precision of a network's weights, where it is not float32."""
    kinds = [p.dtype for p in model.parameters() if p.is_floating_point()]
    return kinds[0] if kinds and kinds[0] != torch.float32 else None


def _first_ones(sample: Sample, device: torch.device, dtype: torch.dtype | None, count: int) -> Tensor:
    rows = torch.arange(count, device=sample.x.device) % len(sample)
    x = sample.given(sample.x[rows]).to(device)
    return x.to(dtype) if dtype is not None and x.is_floating_point() else x


def _is_whole(x: Tensor) -> bool:
    """Whether there are whole numbers, such as tokens, that are no images."""
    return not x.is_floating_point() and x.dtype != torch.uint8


def name_of(model: Any) -> str:
    """What a model is called unless its owner says so."""
    if isinstance(model, nn.Module):
        return type(model).__name__
    return str(getattr(model, "__name__", type(model).__name__))


# Models of any framework: functions of arrays.


class PlainCallable:
    """Calls a function with an array of inputs, and makes logits of what it gives.

    Parameters
    ----------
    function : callable
        From inputs (B, ...) to logits or probabilities (B, classes), or to classes (B,) of
        integers.
    classes : int
        How many there are at least.
    """

    def __init__(self, function: Callable[..., Any], classes: int) -> None:
        self.function, self.classes = function, classes

    def __call__(self, x: Tensor) -> Tensor:
        """Logits; for classes, 1 for the one and 0 for the others."""
        output = self.function(x.numpy())
        found = output.detach().cpu().numpy() if isinstance(output, Tensor) else np.asarray(output)
        if found.dtype.kind in "iub" and found.shape == (len(x),):
            return self._chosen(found.astype(np.int64))
        if found.dtype.kind not in "fiub":
            raise InputError(
                f"model returned {found.dtype} of shape {found.shape}: it must return logits or "
                "probabilities, (examples, classes), or classes as integers, (examples,)."
            )
        logits = torch.from_numpy(np.array(found))
        check_logits(logits, len(x), self.classes)
        return logits

    def _chosen(self, classes: Any) -> Tensor:
        """One more class than there is takes what is not a class."""
        most = max(self.classes, int(classes.max(initial=0)) + 1)
        classes = np.where(classes < 0, most, classes)
        return torch.nn.functional.one_hot(torch.from_numpy(classes), most + 1).float()


# Accuracy on examples that are perturbed at random: what a network should be invariant to.

SHARE = 0.1
"""Share of the training examples that are perturbed at random, as in the paper."""
BATCH_INVARIANCE = 512
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
    size = int(options.batch or BATCH_INVARIANCE)
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
        raise InputError(f"perturbation={found.name!r} mixes pairs: give one that changes single examples.")
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

    All three on training data; see :func:`curvewise.study.measure_invariance`.
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
    augmented = perturbed_accuracy(model, train, perturbation, reach, examples=SHARE, device=device, rng=rng)
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
        changed = perturbation.apply(x, magnitudes, seed, positions=rows, fill=fill, interpolation=interpolation)
    return sample.normalised(changed) if images else changed
