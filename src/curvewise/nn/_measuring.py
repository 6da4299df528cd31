"""What is measured, made ready once for all models, and how one model is measured on it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.io._table import brief, listed
from curvewise.nn._answering import BROKEN, RIGHT, Codes, Manner, Task, answer
from curvewise.nn._custom_changes import Custom
from curvewise.nn._cutting import Parts, split
from curvewise.nn._guarding import PRECISIONS, borrowed, check_logits, chosen_device
from curvewise.nn._pairing import draw_partners, lonely
from curvewise.nn._perturbation import Perturbation
from curvewise.nn._plain_callables import PlainCallable
from curvewise.nn._sites import Probed, probe
from curvewise.nn._sources import Inputs, budget
from curvewise.nn.perturbations import find_perturbation, usual_magnitudes
from curvewise.nn.sample import Sample
from curvewise.response.curve import ResponseCurve
from curvewise.response.scores import SIGNS, check_magnitudes
from curvewise.types import FloatArray, as_floats

EXAMPLES = 180 * 128
"""Examples taken by default: the paper's 180 batches of 128."""
LOW = 0.8
"""Clean accuracy below which a response curve says little, as in the paper."""
PAYS = 10**7
"""Answers from which on compiling is worth its time on a GPU."""
CACHE, CACHE_GPU = 3 * 2**20, 2**30
"""Bytes that the largest output of a layer should take for a batch."""

Advance = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Ready:
    """Examples, magnitudes and partners, the same for every model."""

    sample: Sample
    task: Task
    left_out: int

    @property
    def answers(self) -> int:
        """How many a model is asked for."""
        return len(self.task.levels) * len(self.sample)

    @property
    def digest(self) -> str:
        """Tells samples apart."""
        rows, labels = self.sample.rows, self.task.labels
        return hashlib.blake2b(rows.tobytes() + labels.tobytes(), digest_size=8).hexdigest()


@dataclass(frozen=True, eq=False)
class Options:
    """What :func:`curvewise.nn.response.measure_response` is told beside model and data."""

    layer: str | int | None = None
    magnitudes: ArrayLike | int | None = None
    labels: Any = None
    examples: int | None = EXAMPLES
    batch: int | None = None
    device: str | torch.device | None = None
    precision: str = "float32"
    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    fill: float = 0.0
    interpolation: str = "bilinear"
    signs: str = "fold"
    compile: bool | None = None
    rng: int | np.random.Generator = 0

    def check(self) -> None:
        """Refuse what is not known before anything is computed."""
        if self.precision not in PRECISIONS:
            raise InputError(f"precision={self.precision!r}: use one of {listed(PRECISIONS)}.")
        if self.signs not in SIGNS:
            raise InputError(f"signs={self.signs!r}: use one of {listed(SIGNS)}.")
        if self.batch is not None and (isinstance(self.batch, bool) or self.batch < 1):
            raise InputError(f"batch={self.batch!r}: give a whole number of at least 1.")


def make_ready(
    sample: Sample, perturbation: str | Perturbation | Custom, options: Options, seed: int
) -> Ready:
    """Check that the perturbation fits the examples, and draw partners."""
    change = find_perturbation(perturbation)
    grid = _grid(change, options.magnitudes)
    _check_kind(change, sample, options.layer)
    labels = sample.y.cpu().numpy()
    if len(np.unique(labels)) < 2:
        raise InputError(
            f"labels holds one class only, {labels[0]}, in {len(labels)} example(s): a response "
            "needs two or more classes."
        )
    alone = lonely(labels) & (change.pairs == "intra")
    if alone.all():
        raise InputError(
            f"perturbation={change.name!r} mixes two examples of a class, and no class has "
            "two: give more examples."
        )
    if alone.any():
        sample, labels = sample.take(np.flatnonzero(~alone)), labels[~alone]
    partners = None
    if change.pairs is not None:
        partners = draw_partners(labels, change.pairs, len(grid), seed)
    task = Task(labels, change, grid, partners, seed, options.fill, options.interpolation)
    return Ready(sample, task, int(alone.sum()))


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
        x = _first_ones(sample, device, dtype, options.batch or min(16, len(sample)))
        probed = probe(model, options.layer, x)
        check_logits(probed.logits, len(x), sample.classes)
        parts = split(model, probed, x)
        manner = _manner(ready, options, probed, device, advance)
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
    manner = Manner(place, "float32", options.batch or min(256, len(ready.sample)), False, advance)
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
    batch = options.batch or _batch_size(probed.largest, ready.answers, len(ready.sample), cuda)
    return Manner(device, options.precision, batch, compiled, advance)


def _batch_size(largest: int, answers: int, examples: int, cuda: bool) -> int:
    """As many as keep the outputs of layers in a CPU's cache, or a GPU busy."""
    room, least, most = (CACHE_GPU, 64, 4096) if cuda else (CACHE, 8, 256)
    size = 2 ** int(np.log2(max(room // max(largest, 1), 1)))
    size = min(max(size, least), most)
    if cuda and answers > size:  # no batch should be mostly filling
        size = min(-(-answers // -(-answers // size) // 64) * 64 + 64, size)
    return min(size, examples)


def _findings(clean: Codes, codes: Codes) -> Iterator[str]:
    broken = int((codes == BROKEN).sum()) + int((clean == BROKEN).sum())
    if broken:
        yield (
            f"{broken:,} of {codes.size + clean.size:,} outputs hold NaN or infinite values; they "
            "count as wrong."
        )
    accuracy = float((clean == RIGHT).mean())
    if accuracy < LOW:
        yield (
            f"The model is right on {accuracy:.1%} of the unperturbed examples: below {LOW:.0%} a "
            "response curve says little of generalization. Measure it on the training data."
        )


def _grid(perturbation: Perturbation, magnitudes: ArrayLike | int | None) -> FloatArray:
    if magnitudes is None or isinstance(magnitudes, int):
        return usual_magnitudes(perturbation, 10 if magnitudes is None else magnitudes)
    grid = np.sort(as_floats(magnitudes, "magnitudes"))
    if grid.ndim != 1:
        raise InputError(f"magnitudes={brief(magnitudes)}: give a list of numbers, or how many.")
    check_magnitudes(grid)
    for magnitude in grid:
        perturbation.check(float(magnitude))
    return grid


def _check_kind(perturbation: Perturbation, sample: Sample, layer: str | int | None) -> None:
    """Refuse a perturbation of something else than there is."""
    if layer is not None:
        if perturbation.of not in ("values", "features"):
            raise InputError(
                f"perturbation={perturbation.name!r} is for {perturbation.of} and cannot be "
                f"applied at layer={layer!r}: leave layer out, or use mixup, feature-noise or a "
                "function of your own."
            )
        return
    if perturbation.of == "images" and sample.x.is_floating_point() and sample.x.ndim == 4:
        pixels = sample.pixels(sample.x)
        low, high = float(pixels.min()), float(pixels.max())
        if not -0.005 <= low <= high <= 1.005:
            scaled = sample.mean is not None
            raise InputError(
                f"data holds images with values from {low:.3g} to {high:.3g}"
                f"{' once mean and std are undone' if scaled else ''}, and perturbation="
                f"{perturbation.name!r} is for pixels from 0 to 1: pass the mean= and std= that "
                "the images were normalised with, or images of uint8."
            )
    raw = perturbation.of in ("tokens", "images")
    perturbation.check_input(sample.x[:1] if raw else sample.given(sample.x[:1]))


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
