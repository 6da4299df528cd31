"""All measures of a trained network that may predict how well it generalises; here those of its response to inputs."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from curvewise.errors import CurvewiseWarning, InputError, quietly
from curvewise.nn.evaluation import chosen_device
from curvewise.progress import Progress, progressing
from curvewise.response.curve import ResponseCurve
from curvewise.response.networks.margins import BASELINES, MARGINS, REPRESENTATIONS, TWINS, davies_bouldin, find_site
from curvewise.response.networks.measurement import measure_response
from curvewise.response.networks.subject import NEEDS, Measure, Subject, copied, rounding, steady
from curvewise.response.networks.trial import Device, Execution, read_sample
from curvewise.response.networks.weights import FLATNESSES, NORMS, SHARPNESSES
from curvewise.response.scores import accuracy_at
from curvewise.tables import format_table
from curvewise.text import Message, arg, format_number, list_names, prefix, suggest
from curvewise.types.results import Result, data_frame

if TYPE_CHECKING:
    import pandas as pd

# Examples of one forward pass by default.
BATCH = 512
AUGMENTATIONS = {
    "rotation": (-15.0, 15.0),
    "shift-x": (-0.1, 0.1),
    "shift-y": (-0.1, 0.1),
    "brightness": (-0.15, 0.15),
    "contrast": (-0.3, 0.3),
    "saturation": (-0.3, 0.3),
    "hue": (-0.05, 0.05),
    "noise": (0.0, 0.05),
    "blur": (0.0, 1.0),
    "cutout": (0.0, 0.25),
}
"""Magnitudes of each perturbation of the augmentation penalty, both directions where it has two."""
COLOURED = ("saturation", "hue")
"""Of these, the ones for images with three channels."""
# Examples for the Jacobian.
MOST = 1000
# Outputs up to which every one is differentiated; above, as many random mixtures of them.
EXACT = 16


def list_measures() -> pd.DataFrame:
    """List every measure: name, orientation, needs, cost, definition and paper.

    Examples
    --------
    >>> table = list_measures().set_index("name")
    >>> int(table.loc["distance", "orientation"]), table.loc["distance", "needs"]
    (1, 'initial')
    """
    shelf = MEASURES.values()
    return data_frame(
        {
            "name": [m.name for m in shelf],
            "orientation": [m.orientation for m in shelf],
            "needs": [", ".join(m.needs) for m in shelf],
            "cost": [m.cost for m in shelf],
            "about": [m.about for m in shelf],
        }
    )


def measure_model(
    model: nn.Module,
    data: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    examples: int | None = 5000,
    initial: nn.Module | Mapping[str, Any] | None = None,
    twin: nn.Module | None = None,
    layer: int | str = 1,
    reading: Mapping[str, Any] | None = None,
    device: Device = None,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
    name: str | None = None,
) -> ModelMeasures:
    """Compute measures of a trained network that may predict how well it generalises.

    The network itself is not touched: a copy is measured, in eval mode and float32.

    Parameters
    ----------
    model : nn.Module
        Gives logits, (batch, classes).
    data : Dataset, DataLoader, Examples, (inputs, labels), Tensor or ndarray
        Examples that it was trained on, see :func:`curvewise.nn.data.draw_sample`.
    measures : str, Measure or list of them, optional
        Names of :func:`list_measures`, or measures of your own. By default all whose needs are met.
    examples : int, optional
        Number drawn at random; None takes all. Costly measures use the first of them, as their cost says.
    initial : nn.Module or dict, optional
        The weights before training: the network, or its ``state_dict()``.
    twin : nn.Module, optional
        The same network trained with another seed.
    layer : int or str
        The layer of the representations of ``"dbi"``: the n-th activation module in a forward pass, or a submodule's
        name.
    reading : mapping, optional
        How to read the data: ``labels``, where data holds inputs only; ``mean`` and ``std``, per channel, for images of
        bytes or to recover pixels.
    device : str, torch.device or Execution, optional
        Where to compute, by default where the model is; or an :class:`Execution` with a batch size, 512 by default.
        Precision and compilation cannot be chosen here.
    rng : int or Generator
        Decides examples and all noise.
    progress : bool or callable, optional
        Show a bar, by default on a terminal; or a function that is called with the share done.
    name : str, optional
        Name of the network in the result; by default that of its class.

    Returns
    -------
    ModelMeasures
        With NaN, and the reason among its warnings, for a measure that this network does not have.

    Raises
    ------
    InputError
        If an argument cannot be used, or the needs of a measure that was asked for are not met.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Linear(2, 2, bias=False))
    >>> _ = model[0].weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> x, y = np.eye(2, dtype=np.float32), np.array([0, 1])
    >>> measure_model(model, (x, y), ["l2-norm", "margin-50"]).values
    {'l2-norm': 5.0, 'margin-50': 3.5}
    """
    _check_module(model, "model")
    numbered = isinstance(layer, int) and not isinstance(layer, bool) and layer >= 1
    if not numbered and not isinstance(layer, str):
        raise InputError("give a submodule's name, or 1 for the first activation.", argument="layer", value=layer)
    how = Execution.of(device)
    if how.precision != "float32" or how.compile:
        raise InputError("measures are computed in float32 and not compiled: leave precision and compile out.")
    # One seed for the sample and all noise: a measure has the same value alone and among others.
    seed = int(np.random.default_rng(rng).integers(2**31))
    place = chosen_device(model, how.device)
    sample = read_sample(data, reading, examples, seed)
    if twin is not None:
        _check_module(twin, "twin")
    subject = Subject(
        copied(model, place),
        sample.to(place),
        how.batch or BATCH,
        seed,
        layer,
        _initial_weights(initial, model, place),
        None if twin is None else copied(twin, place),
    )
    if isinstance(layer, str):
        find_site(subject, layer)  # a wrong name is the caller's mistake, not a measure's
    settings = {"examples": len(sample), "seed": seed, "device": str(place), "batch": subject.batch, "layer": layer}
    chosen = _choose(measures, subject)
    title = name or type(model).__name__
    values, seconds = {}, {}
    # Measures that fail for one reason share one warning.
    reasons: dict[str, list[str]] = {}
    with steady(), progressing("measuring", len(chosen), progress) as advance:
        for measure in chosen:
            start = time.perf_counter()
            values[measure.name], reason = _value(measure, subject)
            seconds[measure.name] = time.perf_counter() - start
            if reason:
                reasons.setdefault(reason, []).append(measure.name)
            advance(1)
    notes = [*subject.notes, *(prefix(f"{', '.join(names)}: ", reason) for reason, names in reasons.items())]
    for text in notes:
        warnings.warn(prefix(f"{title}: ", text), CurvewiseWarning, stacklevel=2)
    orientation = {measure.name: measure.orientation for measure in chosen}
    return ModelMeasures(title, values, orientation, seconds, settings, tuple(notes))


def _check_module(model: Any, argument: str) -> None:
    if not isinstance(model, nn.Module):
        raise InputError(f"{argument} is a {type(model).__name__}: give a torch.nn.Module.")


def _initial_weights(initial: Any, model: nn.Module, device: torch.device) -> dict[str, Tensor] | None:
    """Check that there is an initial value for each of the model's parameters."""
    if initial is None:
        return None
    given = initial.state_dict() if isinstance(initial, nn.Module) else initial
    if not isinstance(given, Mapping):
        raise InputError(f"initial is a {type(given).__name__}: give a module or its state_dict().")
    found = {}
    for name, parameter in model.named_parameters():
        value = given.get(name)
        if value is None or tuple(value.shape) != tuple(parameter.shape):
            seen = "nothing" if value is None else f"shape {tuple(value.shape)}"
            raise InputError(
                f"initial has {seen} for {name!r}, the model has shape {tuple(parameter.shape)}: give the weights of "
                "the same network before training."
            )
        found[name] = torch.as_tensor(value).detach().to(device, torch.float32)
    return found


def _choose(measures: str | Measure | Sequence[str | Measure] | None, subject: Subject) -> list[Measure]:
    if measures is None:
        return [m for m in MEASURES.values() if not m.lacks(subject)]
    asked = [measures] if isinstance(measures, str | Measure) else list(measures)
    chosen = []
    for measure in asked:
        if not isinstance(measure, Measure):
            if measure not in MEASURES:
                raise InputError(
                    f"{arg('measures', measure)} is not known: use one of {list_names(MEASURES, 60)}."
                    f"{suggest(measure, MEASURES)}"
                )
            measure = MEASURES[measure]
        lacking = measure.lacks(subject)
        if lacking:
            raise InputError(f"measure {measure.name!r} needs {NEEDS[lacking[0]]}.")
        chosen.append(measure)
    if not chosen:
        raise InputError("measures is empty: name at least one, or leave it out for all.")
    return list({measure.name: measure for measure in chosen}.values())


def _value(measure: Measure, subject: Subject) -> tuple[float, Message | str]:
    """Return the value and no reason, or NaN and the reason why there is no value."""
    try:
        value = float(measure.function(subject))
    except InputError as error:
        return math.nan, error.message
    except Exception as error:  # the networks are foreign code: one failure must not lose the other measures
        return math.nan, f"failed with {type(error).__name__}: {error}"
    if not math.isfinite(value):
        return math.nan, "is not finite for this network."
    return value, ""


@dataclass(frozen=True, eq=False)
class ModelMeasures(Result):
    """Measures of one network.

    Attributes
    ----------
    model : str
        Its name.
    values : dict of float
        By name of the measure; NaN where the network has none, with the reason in ``warnings``.
    orientation : dict of int
        1 where a higher value should mean a larger generalisation gap, -1 where a smaller one.
    seconds : dict of float
        Time of each; the first of those that share some work pays for it.
    settings : dict
        Settings of the measurement: examples, seed, device, …
    """

    model: str
    values: dict[str, float]
    orientation: dict[str, int]
    seconds: dict[str, float]
    settings: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each measure."""
        return {
            "measure": list(self.values),
            "value": list(self.values.values()),
            "orientation": [self.orientation[name] for name in self.values],
            "seconds": [self.seconds[name] for name in self.values],
        }

    def table(self, format: str = "markdown", digits: int = 4) -> str:
        """Write the measures as a table, values with so many significant digits."""
        columns = self.columns()
        columns["value"] = ["" if math.isnan(v) else format_number(v, digits) for v in self.values.values()]
        higher = {1: "higher", -1: "lower"}
        columns["larger gap if"] = [higher[o] for o in columns.pop("orientation")]
        columns["seconds"] = [f"{s:.2f}" for s in columns.pop("seconds")]
        return format_table(columns, format, digits)

    def sentences(self) -> str:
        """Describe the result in a few sentences."""
        known = sum(not math.isnan(v) for v in self.values.values())
        without = len(self.values) - known
        lost = f", {without} could not be computed" if without else ""
        return (
            f"{known} measures of {self.model} on {self.settings['examples']:,} examples in "
            f"{sum(self.seconds.values()):.1f} s{lost}."
        )


def response_score(subject: Subject, score: str, perturbation: str = "mixup-intra", layer: int | None = None) -> float:
    """Return a score of a response curve: "gi", "pal" or "mean_accuracy"."""
    value: float = getattr(response_curve(subject, perturbation, layer), score)
    return value


def mixup(subject: Subject, layer: int | None = None) -> float:
    """Accuracy on the middle between two examples of a class."""
    curve = response_curve(subject, "mixup-intra", layer)
    return accuracy_at(curve.magnitude, curve.accuracy, 0.5)


def augmentation_penalty(subject: Subject) -> Tensor:
    """Mean over perturbations of the accuracy that each costs."""
    coloured = subject.sample.x.shape[1] == 3
    costs = []
    for name, magnitudes in AUGMENTATIONS.items():
        # Grey images have neither saturation nor hue.
        if coloured or name not in COLOURED:
            curve = response_curve(subject, name, None, magnitudes)
            costs.append(float(subject.accuracy) - float(curve.accuracy[curve.magnitude != 0].mean()))
    return torch.tensor(costs).mean()


def response_curve(
    subject: Subject, perturbation: str, layer: int | None, magnitudes: Sequence[float] | None = None
) -> ResponseCurve:
    """Measure a response curve on all examples, once for all measures."""

    def measure() -> ResponseCurve:
        sample = subject.sample
        scale = {"mean": sample.mean, "std": sample.std}
        with rounding(), quietly():  # the warnings are on the curve
            curve = measure_response(
                subject.model,
                (sample.x, sample.y),
                perturbation,
                layer=layer,
                magnitudes=magnitudes,
                signs="keep",  # accuracies are read off it: one distance from 0 is enough
                examples=len(sample),
                reading={key: value.tolist() for key, value in scale.items() if value is not None},
                device=Execution(device=subject.device),
                rng=subject.seed,
                progress=False,
            )
        subject.notes.extend(note for note in curve.warnings if note not in subject.notes)
        return curve

    return subject.once(("curve", perturbation, layer), measure)


def jacobian_norm(subject: Subject, finish: Callable[[Tensor], Tensor]) -> Tensor:
    """Mean over examples of the Frobenius norm of the Jacobian of ``finish(logits)`` by inputs."""
    norms = []
    for x, _ in subject.batches(MOST):
        leaf = x.detach().requires_grad_()
        out = finish(subject.answers(subject.model, leaf.clone()))
        squares = torch.zeros(len(x), device=x.device)
        count = out.shape[1]
        # Rows v for which the sum of |vᵀJ|² is |J|², for few outputs exactly, else on average.
        if count <= EXACT:
            directions = torch.eye(count, device=subject.device)
        else:
            rows = [subject.noise("jacobian", draw, count) for draw in range(EXACT)]
            directions = torch.stack(rows) / EXACT**0.5
        for direction in directions:
            slope = torch.autograd.grad(out, leaf, direction.expand_as(out), retain_graph=True)[0]
            squares += slope.flatten(1).square().sum(dim=1)
        norms.append(squares.sqrt())
    return torch.cat(norms).mean()


_SCHIFF = "Schiff et al. 2021, Predicting generalization with perturbation response curves"
_NATEKAR = "Natekar and Sharma 2020, Representation based complexity measures"
_CURVE = "one response curve: a forward pass over all examples at each of 10 magnitudes, shared"
_BACKWARD = f"up to {EXACT} backward passes over up to {MOST:,} examples"

RESPONSES = (
    # Gi and Pal for both kinds of mixup, at the input and at the first activation.
    *(
        Measure(
            f"{score}-{kind}{suffix}",
            partial(response_score, score=score, perturbation=f"mixup-{kind}", layer=layer),
            orientation,
            ("continuous",) if layer is None else (),
            _CURVE,
            f"{score.capitalize()}-score of {kind}-class mixup at {where} ({_SCHIFF}).",
        )
        for kind in ("intra", "inter")
        for layer, suffix, where in ((None, "", "the input"), (1, "-layer1", "the first activation"))
        for score, orientation in (("gi", 1), ("pal", -1))
    ),
    Measure(
        "mean-accuracy",
        partial(response_score, score="mean_accuracy"),
        -1,
        ("continuous",),
        _CURVE,
        f"Mean of the response curve to intra-class mixup at the input ({_SCHIFF}).",
    ),
    Measure(
        "mixup",
        mixup,
        -1,
        ("continuous",),
        _CURVE,
        f"Accuracy on the middle between two examples of a class ({_NATEKAR}).",
    ),
    Measure(
        "manifold-mixup",
        partial(mixup, layer=1),
        -1,
        cost=_CURVE,
        about=f"The same, mixed at the first activation ({_NATEKAR}).",
    ),
    Measure(
        "dbi-mixup",
        lambda s: davies_bouldin(s) * (1 - mixup(s)),
        1,
        ("continuous",),
        "as dbi and mixup, with which it is shared",
        f"Davies–Bouldin index times the error on mixed examples: the winner of PGDL ({_NATEKAR}).",
    ),
    Measure(
        "augmentation-penalty",
        augmentation_penalty,
        1,
        ("images",),
        f"a forward pass over all examples at each of up to {2 * len(AUGMENTATIONS)} changes",
        "Mean accuracy lost to rotation, shifts, colours, noise, blur and cutout of moderate size (after Kashyap et "
        "al. 2021, Robustness to augmentations as a generalization metric).",
    ),
)
"""Measures of the response to perturbed examples."""

JACOBIANS = (
    Measure(
        "jacobian",
        lambda s: jacobian_norm(s, lambda logits: logits),
        1,
        ("continuous",),
        _BACKWARD,
        "Mean Frobenius norm of the derivative of logits by inputs.",
    ),
    Measure(
        "jacobian-softmax",
        lambda s: jacobian_norm(s, lambda logits: logits.softmax(1)),
        1,
        ("continuous",),
        _BACKWARD,
        "The same of probabilities (Novak et al. 2018, Sensitivity and generalization in neural networks).",
    ),
)
"""Measures of the derivative of outputs by inputs."""

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        *BASELINES,
        *NORMS,
        *MARGINS,
        *SHARPNESSES,
        *FLATNESSES,
        *JACOBIANS,
        *REPRESENTATIONS,
        *RESPONSES,
        *TWINS,
    )
}
"""Measures by name."""
