"""How one model is measured on what was made ready."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn._answering import BROKEN, RIGHT, Codes, answer
from curvewise.nn._cutting import Parts, split
from curvewise.nn._guarding import borrowed, check_logits, chosen_device, unsteady
from curvewise.nn._plain_callables import PlainCallable
from curvewise.nn._preparing import Options, Ready
from curvewise.nn._sites import Probed, probe
from curvewise.nn._sources import Inputs, budget
from curvewise.nn._tasks import Manner
from curvewise.nn.sample import Sample
from curvewise.response.curve import ResponseCurve

LOW = 0.8
"""Clean accuracy below which a response curve says little, as in the paper."""
PAYS = 10**7
"""Answers from which on compiling is worth its time on a GPU."""
CACHE, CACHE_GPU = 2**23, 2**30
"""Bytes that the largest output of a layer should take for a batch."""

Advance = Callable[[float], None]


def measure(
    model: Any, ready: Ready, options: Options, name: str, advance: Advance
) -> ResponseCurve:
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


def _manner(
    ready: Ready, options: Options, probed: Probed, device: torch.device, advance: Advance
) -> Manner:
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


def _first_ones(
    sample: Sample, device: torch.device, dtype: torch.dtype | None, count: int
) -> Tensor:
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
