"""Measure how a trained network's accuracy responds to perturbations of its examples."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from curvewise.errors import CurvewiseWarning, InputError, arg
from curvewise.nn.data import Sample
from curvewise.nn.networks import arithmetic, borrowed, check_logits, chosen_device, has_answer, logits_of, unsteady
from curvewise.progress import Progress, progressing
from curvewise.response.cmi import cmi_score
from curvewise.response.curve import SCORES, CorpusSensitivity, ResponseCurve, ResponseCurves, ResponseSensitivity
from curvewise.response.load import ModelCorpus
from curvewise.response.networks.answers import BROKEN, RIGHT, Codes, NetworkInputs, answer, budget
from curvewise.response.networks.perturbations import Perturbation, draw_magnitudes, find_perturbation
from curvewise.response.networks.sites import NetworkHalves, probe, split
from curvewise.response.networks.trial import (
    EXAMPLES,
    Change,
    Device,
    Execution,
    ExecutionPlan,
    Magnitudes,
    Trial,
    as_tokens,
    check_kind,
    read_sample,
)
from curvewise.types.results import as_floats, check_whole

# Numbers of batches at which sensitivity is measured; the paper uses 180.
BATCHES = (5, 10, 20, 45, 90, 180)
# Examples of one of them.
BATCH = 128
# Clean accuracy below which the paper leaves a network out.
LOW = 0.8
# Answers from which on compiling, about half a minute, is worth its time on a GPU.
PAYS = 10**7
# Bytes that the largest output of a layer should take for a batch.
CACHE, CACHE_GPU = 2**23, 2**30
# Share of the training examples that are perturbed at random, as in the paper.
SHARE = 0.1
# Examples that are perturbed at random and answered at a time by default.
AT_ONCE = 512

Advance = Callable[[float], None]


def measure_response(
    model: Any,
    data: Any,
    perturbation: Change = "mixup-intra",
    *,
    layer: str | int | None = None,
    magnitudes: Magnitudes = None,
    examples: int | None = EXAMPLES,
    signs: str = "fold",
    reading: Mapping[str, Any] | None = None,
    device: Device = None,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
) -> ResponseCurve:
    """Measure a model's accuracy at growing magnitudes of a perturbation.

    The model is evaluated in evaluation mode and comes back as it was: mode, gradients, hooks and device. Take examples
    that it was trained on, for which it is nearly always right.

    Parameters
    ----------
    model : torch.nn.Module or callable
        Returns logits, (batch, classes); or a tuple that begins with them, or a mapping with ``"logits"``. A function
        of any other framework takes an array and returns logits or probabilities, or predicted classes as integers.
    data : Dataset, DataLoader, Examples, (inputs, labels), Tensor or ndarray
        Labelled examples; see :func:`curvewise.nn.data.draw_sample`. Images of uint8 are pixels; of floating point,
        they are what the network takes.
    perturbation : str, Perturbation or callable
        A name of :data:`curvewise.response.networks.perturbations.PERTURBATIONS`, or a function ``(x, magnitude, rng)
        -> x`` of what the network (or a layer) is given, a number, and a ``torch.Generator``. ``find_perturbation``
        gives one with a fill, an interpolation or tokens of its own.
    layer : str or int, optional
        Perturb the output of this submodule instead of the input. A number ℓ stands for the ℓ-th activation module that
        a forward pass calls: 1 is the first layer's output after its non-linearity.
    magnitudes : array_like, int or "paper", optional
        The magnitudes, or how many over the usual range; by default 10, and 11 where there are two directions. With
        "paper" over the range of Schiff et al. 2021, which is wider for rotation: 180 degrees either way, not 30.
    examples : int, optional
        Largest number to take at random; None for all.
    signs : {"fold", "keep"}
        How the scores take magnitudes of both signs, see :func:`curvewise.gi_score`.
    reading : mapping, optional
        How to read the data: ``labels``, where data holds inputs only; ``mean`` and ``std``, per channel or one for
        all, where the network takes (pixel − mean) / std of pixels from 0 to 1.
    device : str, torch.device or Execution, optional
        Where to compute, by default where the model is; or an :class:`Execution` with batch size, precision and
        compilation.
    rng : int or Generator
        Decides examples, partners, noise and places: the same for every model given the same data.
    progress : bool or callable, optional
        Show a bar, by default on a terminal; or a function that is called with the share done.

    Returns
    -------
    ResponseCurve
        Of a model with the name of its class; :func:`measure_responses` takes names. With the single answers and
        partners, so that intervals and paired comparisons
        (:func:`curvewise.response.compare_responses`) are closed-form. ``settings["path"]`` says how the network was
        executed: ``"traced"`` or ``"as is"``, at a layer ``"cut"`` there (what comes before it runs once per example)
        or with a ``"hook"`` (it runs once per magnitude).

    Raises
    ------
    InputError
        If arguments do not fit together; the message says what to do.

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
    seed = _seed(rng)
    sample = read_sample(data, reading, examples, seed)
    trial = Trial.prepare(sample, perturbation, seed, layer=layer, magnitudes=magnitudes, signs=signs)
    return _measure_each({name_of(model): model}, trial, Execution.of(device), progress).curves[0]


def measure_responses(
    models: Any,
    data: Any,
    perturbation: Change | list[Any] | tuple[Any, ...] = "mixup-intra",
    *,
    layer: str | int | None = None,
    magnitudes: Magnitudes = None,
    examples: int | None = EXAMPLES,
    signs: str = "fold",
    reading: Mapping[str, Any] | None = None,
    device: Device = None,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
) -> ResponseCurves:
    """Measure several models on the same examples, perturbed in the same way, or in several ways one after another.

    Parameters
    ----------
    models : mapping of str to Module or callable, or one of these
        By name; one alone has the name of its class.
    data, layer, magnitudes, examples, signs, reading, device, rng
        As of :func:`measure_response`.
    perturbation : str, Perturbation or callable, or a list of them
        As of :func:`measure_response`. All of a list are applied to the same examples.
    progress : bool or callable, optional
        For all models together.

    Returns
    -------
    ResponseCurves
        A dict of curves by model, to be compared in pairs with :func:`curvewise.response.compare_responses`, with
        ``plot()`` and ``frame()``. For a list of perturbations, such a dict for each of them, by the name of the
        perturbation. Either may be indexed by model and by perturbation, in any order:
        ``curves["net"]["noise"]``.

    Examples
    --------
    >>> x = torch.rand(200, 4, generator=torch.Generator().manual_seed(0))
    >>> curves = measure_responses({"net": lambda x: x}, (x, x.argmax(1)), ["feature-noise", "intensity"])
    >>> curves["net"]["intensity"] is curves["intensity"]["net"]
    True
    """
    if isinstance(models, nn.Module) or (callable(models) and not isinstance(models, Mapping)):
        models = {name_of(models): models}
    if not isinstance(models, Mapping) or not models:
        problem = f"is a {type(models).__name__}: give a model, or a mapping from names to models."
        raise InputError(problem, argument="models")
    each: Sequence[Any] = perturbation if isinstance(perturbation, list | tuple) else [perturbation]
    changes = [find_perturbation(one) for one in each]
    # Names first: the second of two that are alike would take the place of the first.
    names = [change.name for change in changes]
    if not names or len(set(names)) < len(names):
        raise InputError("give one perturbation or more, each once.", argument="perturbation", value=names)
    seed = _seed(rng)
    sample = read_sample(data, reading, examples, seed)
    how: dict[str, Any] = {"layer": layer, "magnitudes": magnitudes, "signs": signs}
    trials = [Trial.prepare(sample, change, seed, **how) for change in changes]
    found = ResponseCurves()
    for i, trial in enumerate(trials):
        part = _part_of(progress, i, len(trials))
        found[names[i]] = _measure_each(models, trial, Execution.of(device), part)
    return found if each is perturbation else found[names[0]]


def _part_of(progress: Progress, done: int, parts: int) -> Progress:
    """Make a function of the share done of one part tell the share of the whole; bars are one for each part."""
    if not callable(progress):
        return progress
    whole = progress
    return lambda share: whole((done + share) / parts)


def measure_sensitivity(
    model: Any,
    data: Any,
    perturbation: Change = "mixup-intra",
    *,
    batches: Sequence[int] | None = None,
    repeats: int = 20,
    layer: str | int | None = None,
    magnitudes: Magnitudes = None,
    reading: Mapping[str, Any] | None = None,
    device: Device = None,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
) -> ResponseSensitivity:
    """Measure how scores and time depend on the number of batches (of 128 examples).

    Each repeat draws new examples and partners, without repetition, as in section 4.1.3 of the paper; fewer batches are
    the first ones of the same draw.

    Parameters
    ----------
    model, data, perturbation
        As of :func:`measure_response`.
    batches : sequence of int, optional
        Numbers of batches; by default 5 to 180, as far as there is data.
    repeats : int
        Of each.
    layer, magnitudes, reading, device, rng, progress
        As of :func:`measure_response`.

    Returns
    -------
    ResponseSensitivity
    """
    curves: dict[int, list[ResponseCurve]] = {}
    plan = _SensitivityPlan.of(batches, BATCH, repeats, rng)
    with progressing("measuring", int(plan.counts.sum()) * repeats, progress) as advance:
        for count, trial in plan.trials(data, perturbation, reading, layer=layer, magnitudes=magnitudes):
            curve = _measure(model, trial, Execution.of(device), name_of(model), lambda _: None)
            curves.setdefault(count, []).append(curve)
            advance(count)
    return ResponseSensitivity.from_curves(BATCH, curves)


def judge_sensitivity(
    models: Mapping[str, Any],
    data: Any,
    corpus: ModelCorpus,
    perturbation: Change = "mixup-intra",
    *,
    batches: Sequence[int] | None = None,
    batch: int = BATCH,
    repeats: int = 20,
    mode: str = "corrected",
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
    **measuring: Any,
) -> CorpusSensitivity:
    """Judge how the information in response scores depends on the number of batches.

    For each number of batches and each repeat, every model of a corpus is measured on the same newly drawn examples,
    and the conditional mutual information of each score with the gap is computed: figures 3 (right) and 5 of Schiff et
    al. 2021.

    Parameters
    ----------
    models : mapping of str to Module or callable
        By name, trained on the same examples.
    data : Dataset, DataLoader, Examples, (inputs, labels), Tensor or ndarray
        These examples.
    corpus : ModelCorpus
        Gap and hyperparameters of the models, under the same names; of one task.
    perturbation : str, Perturbation or callable
        As of :func:`measure_response`.
    batches : sequence of int, optional
        Numbers of batches; by default 5 to 180, as far as there is data.
    batch : int
        Examples in a batch.
    repeats : int
        Of each.
    mode : {"corrected", "pgdl"}
        As of :func:`cmi_score`; the paper's is the competition's, ``"pgdl"``.
    rng, progress
        As of :func:`measure_response`.
    **measuring
        ``layer``, ``magnitudes``, ``reading`` and ``device`` of :func:`measure_response`.

    Returns
    -------
    CorpusSensitivity
        Mean and standard deviation over the repeats; ``plot()`` draws them.

    Raises
    ------
    InputError
        If models and corpus have different names, or arguments do not fit together.
    """
    reading, device = measuring.pop("reading", None), measuring.pop("device", None)
    if odd := sorted(measuring.keys() - {"layer", "magnitudes"}):
        raise InputError(f"{odd[0]} is not known here: use layer, magnitudes, reading or device.")
    if not isinstance(models, Mapping) or not isinstance(corpus, ModelCorpus) or set(models) != set(corpus.models):
        raise InputError("models must be a dict with exactly the names of the corpus.")
    if len(corpus.task_names) > 1:
        raise InputError(f"has {len(corpus.task_names)} tasks: give the models of one.", argument="corpus")
    plan = _SensitivityPlan.of(batches, check_whole(batch, "batch", 1), repeats, rng)
    found: dict[int, dict[str, list[float]]] = {}
    notes: dict[str, str] = {}
    alarms: dict[str, None] = {}
    where = "input"
    with progressing("measuring", int(plan.counts.sum()) * repeats * len(models), progress) as advance:
        for count, trial in plan.trials(data, perturbation, reading, **measuring):
            curves = []
            for name in corpus.models:
                curves.append(_measure(models[name], trial, Execution.of(device), name, lambda _: None))
                advance(count)
            where = curves[0].layer
            # The first note on each model: others differ in their numbers.
            for curve in curves:
                notes |= {curve.model: curve.warnings[0]} if curve.warnings and curve.model not in notes else {}
            for score, orientation in zip(SCORES, (1, -1, -1), strict=True):
                values = [getattr(c, score) for c in curves]
                # A score that some model does not have leaves nothing to judge in this repeat.
                information = math.nan
                if np.isfinite(values).all():
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter("always", CurvewiseWarning)
                        information = cmi_score(
                            values, corpus.gap, corpus.hyperparameters, mode, orientation=orientation
                        )
                    alarms |= {str(one.message): None for one in caught}
                found.setdefault(count, {}).setdefault(score, []).append(information)
    counts = sorted(found)
    table = {score: np.array([found[count][score] for count in counts]) for score in SCORES}
    name = find_perturbation(perturbation).name
    texts = (*alarms, *(f"{model}: {text}" for model, text in notes.items()))
    return CorpusSensitivity(np.array(counts), batch, table, len(models), mode, name, where, texts)


class _SensitivityPlan(NamedTuple):
    """Numbers of batches, the size of one, and a seed for each repeat."""

    counts: NDArray[Any]
    batch: int
    seeds: list[int]
    is_given: bool

    @classmethod
    def of(
        cls, batches: Sequence[int] | None, batch: int, repeats: int, rng: int | np.random.Generator
    ) -> _SensitivityPlan:
        counts = np.unique(np.asarray(BATCHES if batches is None else batches))
        if counts.dtype.kind not in "iu" or not counts.size or counts[0] < 1:
            raise InputError("give whole numbers of at least 1.", argument="batches", value=batches)
        # A seed for each repeat: more repeats leave the first ones as they are.
        seeds = np.random.default_rng(_seed(rng)).integers(2**62, size=check_whole(repeats, "repeats", 2)).tolist()
        return cls(counts, batch, seeds, batches is not None)

    def trials(
        self, data: Any, perturbation: Change, reading: Mapping[str, Any] | None, **where: Any
    ) -> Iterator[tuple[int, Trial]]:
        """Yield each number of batches of each repeat, and what is tried there; fewer batches are the first ones."""
        for seed in self.seeds:
            sample = read_sample(data, reading, int(self.counts[-1]) * self.batch, seed)
            fit = [int(count) for count in self.counts if count * self.batch <= len(sample)]
            if not fit or (self.is_given and len(fit) < len(self.counts)):
                least = self.counts[-1] if fit else self.counts[0]
                raise InputError(
                    f"{arg('batches', self.counts.tolist())} of {self.batch} need {least * self.batch:,} examples, "
                    f"and there are {len(sample):,}: give fewer."
                )
            for count in fit:
                yield count, Trial.prepare(sample.take(count * self.batch), perturbation, seed, **where)


def _seed(rng: int | np.random.Generator) -> int:
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**62))
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or not 0 <= rng < 2**63:
        raise InputError("give a whole number below 2**63, or a Generator.", argument="rng", value=rng)
    return int(rng)


def name_of(model: Any) -> str:
    """Return the name of a model's class, or of a function."""
    if isinstance(model, nn.Module):
        return type(model).__name__
    return str(getattr(model, "__name__", type(model).__name__))


def _measure_each(models: Mapping[str, Any], trial: Trial, execution: Execution, progress: Progress) -> ResponseCurves:
    curves = ResponseCurves()
    with progressing("measuring", trial.answers * len(models), progress) as advance:
        for name, model in models.items():
            curves[name] = _measure(model, trial, execution, str(name), advance)
    for name, curve in curves.items():
        for warning in curve.warnings:
            text = f"{name}: {warning}" if len(models) > 1 else warning
            warnings.warn(text, CurvewiseWarning, stacklevel=3)
    return curves


def _measure(model: Any, trial: Trial, execution: Execution, name: str, advance: Advance) -> ResponseCurve:
    notes: list[str] = []
    if trial.left_out:
        notes.append(
            f"{trial.left_out} example(s) left out: no other of their class is in the sample, and "
            f"{trial.perturbation.name!r} mixes two of a class."
        )
    if isinstance(model, nn.Module):
        clean, codes, how = _of_module(model, trial, execution, advance, notes)
    elif callable(model):
        clean, codes, how = _of_callable(model, trial, execution, advance)
    else:
        wanted = "a torch.nn.Module, or a function from an array of inputs to logits, such as its predict_proba"
        raise InputError(f"is a {type(model).__name__}: give {wanted}.", argument="model")
    broken = int((codes == BROKEN).sum()) + int((clean == BROKEN).sum())
    if broken:
        notes.append(
            f"{broken:,} of {codes.size + clean.size:,} outputs hold NaN, or an infinite largest value; they count as "
            "wrong."
        )
    accuracy = float((clean == RIGHT).mean())
    if accuracy < LOW:
        notes.append(
            f"The model is right on {accuracy:.1%} of the unperturbed examples: below {LOW:.0%} a response curve says "
            "little of generalization. Measure it on the training data."
        )
    hits = codes == RIGHT
    return ResponseCurve(
        trial.magnitudes,
        hits.sum(axis=1),
        np.full(len(hits), hits.shape[1]),
        int((clean == RIGHT).sum()),
        len(clean),
        model=name,
        perturbation=trial.perturbation.name,
        layer=how.pop("layer"),
        unit=trial.perturbation.unit,
        signs=trial.signs,
        hits=hits,
        partners=trial.partners,
        settings={
            "examples": hits.shape[1],
            "left_out": trial.left_out,
            "seed": trial.seed,
            "sample": trial.digest,
            **how,
        },
        warnings=tuple(notes),
    )


def _of_module(
    model: nn.Module, trial: Trial, execution: Execution, advance: Advance, notes: list[str]
) -> tuple[Codes, Codes, dict[str, Any]]:
    device = chosen_device(model, execution.device)
    start = time.perf_counter()
    with borrowed(model, device):
        # Examples lie on the device as a whole where they fit; else batches are copied there.
        sample = trial.sample
        if sample.x.numel() * sample.x.element_size() <= budget(device):
            sample = sample.to(device)
        dtype = _own_dtype(model)
        x = _first_ones(sample, device, dtype, int(execution.batch or min(16, len(sample))))
        seen = probe(model, trial.layer, x)
        check_logits(seen.logits, len(x), sample.classes)
        # A batch of another size with the same first examples shows a network whose answers depend on the batch.
        doubt = unsteady(model, x, _first_ones(sample, device, dtype, 2 if len(x) > 2 else 4), seen.logits)
        halves = split(model, seen, x)
        if doubt is not None:
            notes.append(doubt)
        elif halves.whole is not None and seen.site is not None:
            notes.append(
                f"The network answers differently when the output of layer {seen.site.name!r} is replaced by a copy, "
                "as what is changed in place later belongs to other layers, too. Unperturbed examples are answered by "
                "the network itself; perturb another layer."
            )
        cuda = device.type == "cuda"
        compiled = execution.compile if execution.compile is not None else cuda and trial.answers >= PAYS
        # Pairs of all magnitudes are answered in one row, single examples magnitude by magnitude.
        row = len(trial.sample) if trial.partners is None else trial.answers
        batch = int(execution.batch or 0) or batch_size(seen.largest, len(trial.sample), row, cuda)
        # No compiler follows hooks.
        plan = ExecutionPlan(device, execution.precision, batch, compiled and halves.path != "hook", advance)
        whole = not sample.x.is_floating_point() and sample.x.dtype != torch.uint8  # tokens have no channels
        inputs = NetworkInputs(sample, device, dtype, last=halves.pure and not whole)
        clean, codes = answer(halves, inputs, trial, plan)
    notes += plan.notes
    how = {
        "layer": "input" if seen.site is None else seen.site.name,
        "path": halves.path,
        "device": str(device),
        "precision": plan.precision,
        "batch": plan.batch,
        "compiled": plan.compiled and not plan.notes,
        "seconds": time.perf_counter() - start,
    }
    return clean, codes, how


def _own_dtype(model: nn.Module) -> torch.dtype | None:
    """Precision of a network's weights; None where it has none."""
    return next((p.dtype for p in model.parameters() if p.is_floating_point()), None)


def _first_ones(sample: Sample, device: torch.device, dtype: torch.dtype | None, count: int) -> Tensor:
    rows = torch.arange(count, device=sample.x.device) % len(sample)
    x = sample.given(sample.x[rows]).to(device)
    return x.to(dtype) if dtype is not None and x.is_floating_point() else x


def batch_size(largest: int, examples: int, row: int, cuda: bool) -> int:
    """Number of examples that keeps the outputs of layers in a CPU's cache, or a GPU busy.

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
        # Batches of equal size instead of a nearly empty last one, in multiples of 64 for the tensor cores.
        even = math.ceil(row / math.ceil(row / size))
        size = min(size, math.ceil(even / 64) * 64)
    return min(size, examples)


def _of_callable(
    model: Callable[..., Any], trial: Trial, execution: Execution, advance: Advance
) -> tuple[Codes, Codes, dict[str, Any]]:
    for what, value in (("layer", trial.layer), ("device", execution.device)):
        if value is not None:
            problem = "the model is a plain function, which has neither layers nor a device."
            raise InputError(f"{problem} Leave it out, or give a torch.nn.Module.", argument=what, value=value)
    start = time.perf_counter()
    place = torch.device("cpu")
    batch = int(execution.batch or min(256, len(trial.sample)))
    halves = NetworkHalves(None, PlainCallable(model, trial.sample.classes), "callable")
    inputs = NetworkInputs(trial.sample, place, None, last=False)
    clean, codes = answer(halves, inputs, trial, ExecutionPlan(place, "float32", batch, False, advance))
    how = {"layer": "input", "path": halves.path, "device": "its own", "batch": batch}
    return clean, codes, {**how, "seconds": time.perf_counter() - start}


class PlainCallable:
    """A model of any framework: calls a function with an array, and makes logits of what it returns.

    Parameters
    ----------
    function : callable
        From inputs (B, ...) to logits or probabilities (B, classes), or to classes (B,) of integers.
    classes : int
        Least number of classes.
    """

    def __init__(self, function: Callable[..., Any], classes: int) -> None:
        self.function, self.classes = function, classes

    def __call__(self, x: Tensor) -> Tensor:
        """Return logits; for classes, 1 for the one and 0 for the others."""
        output = self.function(x.numpy())
        found = output.detach().cpu().numpy() if isinstance(output, Tensor) else np.asarray(output)
        if found.dtype.kind in "iub" and found.shape == (len(x),):
            classes = found.astype(np.int64)
            # One more class than there is takes what is not a class.
            most = max(self.classes, int(classes.max(initial=0)) + 1)
            classes = np.where(classes < 0, most, classes)
            return torch.nn.functional.one_hot(torch.from_numpy(classes), most + 1).float()
        if found.dtype.kind not in "fiub":
            raise InputError(
                f"model returned {found.dtype} of shape {found.shape}: it must return logits or probabilities, "
                "(examples, classes), or classes as integers, (examples,)."
            )
        logits = torch.from_numpy(np.array(found))
        check_logits(logits, len(x), self.classes)
        return logits


def perturbed_accuracy(
    model: nn.Module,
    data: Any,
    perturbation: str | Perturbation,
    reach: tuple[float, float] | None = None,
    *,
    examples: float | None = None,
    reading: Mapping[str, Any] | None = None,
    device: Device = None,
    rng: int = 0,
) -> float:
    """Accuracy on examples that are each perturbed by a magnitude drawn at random.

    On training examples this is the baseline that a response curve has to beat; on test examples it is what the curve
    should predict (Schiff et al. 2021, section 4.2).

    Parameters
    ----------
    model : nn.Module
        The network; its mode and device are restored.
    data, examples, reading, device
        As of :func:`measure_response`.
    perturbation : str or Perturbation
        Any that needs no partners.
    reach : tuple of float, optional
        Lowest and highest magnitude; the paper's range by default.
    rng : int
        Decides examples, magnitudes and noise.

    Returns
    -------
    float
        A fraction. Outputs that hold NaN, or whose largest value is infinite, count as wrong.

    Raises
    ------
    InputError
        If arguments do not fit together; the message says what to do.

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
    how = Execution.of(device)
    size = int(how.batch or AT_ONCE)
    if not isinstance(model, nn.Module):
        raise InputError(f"is a {type(model).__name__}: give a torch.nn.Module.", argument="model")
    if isinstance(rng, bool) or not isinstance(rng, int) or rng < 0:
        raise InputError("give a whole number from 0 on.", argument="rng", value=rng)
    change, (low, high) = single_perturbation(perturbation, reach)
    place = chosen_device(model, how.device)
    sample = read_sample(data, reading, examples, rng).to(place)
    check_kind(change, sample)
    sample = as_tokens(sample) if change.of == "tokens" else sample
    if change.learn is not None:
        change = change.fitted(sample.given(sample.x), padding=sample.padding)
    drawn = torch.from_numpy(draw_magnitudes(low, high, len(sample), rng)).to(place)
    right = torch.zeros((), dtype=torch.int64, device=place)
    inputs = NetworkInputs(sample, place, _own_dtype(model), last=False)
    with borrowed(model, place), arithmetic(place, how.precision):
        for first in range(0, len(sample), size):
            rows = torch.arange(first, min(first + size, len(sample)), device=place)
            logits = logits_of(model(inputs.perturbed(change, rows, magnitude=drawn[rows], seed=rng, positions=rows)))
            check_logits(logits, len(rows), sample.classes)
            right += (has_answer(logits) & (logits.argmax(1) == sample.y[rows])).sum()
    return int(right) / len(sample)


def single_perturbation(
    perturbation: str | Perturbation, reach: tuple[float, float] | None
) -> tuple[Perturbation, tuple[float, float]]:
    """Find a perturbation of single examples, and check the range of its magnitudes."""
    found = find_perturbation(perturbation)
    if found.pairs is not None:
        raise InputError(f"{arg('perturbation', found.name)} mixes pairs: give one that changes single examples.")
    ends = as_floats(found.paper_range if reach is None else reach, "reach")
    if ends.shape != (2,) or not ends[0] <= ends[1]:
        raise InputError("give two magnitudes, the lower first.", argument="reach", value=reach)
    low, high = ends.tolist()
    found.check(low)
    found.check(high)
    return found, (low, high)


def invariance_scores(
    model: nn.Module,
    train: Any,
    perturbation: str | Perturbation,
    magnitudes: Sequence[float],
    reach: tuple[float, float],
    *,
    examples: int | None = None,
    device: Device = None,
    rng: int = 0,
) -> tuple[float, float, float]:
    """Gi-score, mean accuracy of the response curve, and accuracy on a tenth perturbed at random.

    All three on training data; see :func:`curvewise.study.measure_invariance`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # a filter on accuracy follows
        how: dict[str, Any] = {"examples": examples, "signs": "keep", "device": device, "rng": rng}  # as in the paper
        curve = measure_response(model, train, perturbation, magnitudes=magnitudes, progress=False, **how)
    augmented = perturbed_accuracy(model, train, perturbation, reach, examples=SHARE, device=device, rng=rng)
    return curve.gi, curve.mean_accuracy, augmented
