"""All measures of a trained network that may predict how well it generalises.

Here those of its outputs (loss, margins, separation of the classes, disagreement of two trainings) and of its response
to inputs; those of its weights are in :mod:`curvewise.response.networks.weights`.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import CurvewiseWarning, InputError, Message, arg, brief, list_names, prefix, quietly, suggest
from curvewise.nn.devices import steady_kernels
from curvewise.nn.networks import chosen_device, features_of
from curvewise.progress import Progress, progressing
from curvewise.response.curve import ResponseCurve
from curvewise.response.networks.measurement import measure_response
from curvewise.response.networks.sites import Site, caught, probe
from curvewise.response.networks.subject import NEEDS, Measure, Subject, checked_logits, copied, measure, rounding
from curvewise.response.networks.trial import Device, Execution, read_sample
from curvewise.response.networks.weights import FLATNESSES, NORMS, SHARPNESSES, squared_norms
from curvewise.response.scores import accuracy_at
from curvewise.text import format_number, format_table
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
# Examples for distances to the boundary, which need a backward pass.
MOST_MARGINS = 2000
# Rows and columns that images inside the network are averaged down to, as the winner of PGDL did.
PLACES = 4

_FORWARD = "one forward pass over all examples, shared"
_ALONE = "one forward pass over all examples"
_BACK = f"one forward and one backward pass over up to {MOST_MARGINS:,} examples"
_CURVE = "one response curve: a forward pass over all examples at each of 10 magnitudes, shared"
_BACKWARD = f"up to {EXACT} backward passes over up to {MOST:,} examples"
_CHANGES = f"a forward pass over all examples at each of up to {2 * len(AUGMENTATIONS)} changes"
_JIANG_MARGINS = "Jiang et al. 2019, Predicting the generalization gap with margin distributions"
_JIANG_TWINS = "Jiang et al. 2022, Assessing generalization via disagreement, which takes examples not trained on"
_KASHYAP = "after Kashyap et al. 2021, Robustness to augmentations as a generalization metric"
_NATEKAR = "Natekar and Sharma 2020, Representation based complexity measures"
_NOVAK = "Novak et al. 2018, Sensitivity and generalization in neural networks"
_SCHIFF = "Schiff et al. 2021, Predicting generalization with perturbation response curves"


DESCRIPTION = ("name", "orientation", "needs", "cost", "about")
"""Attributes of a measure that a list of them shows."""


def list_measures() -> pd.DataFrame:
    """List every measure: name, orientation, needs, cost, definition and paper.

    Examples
    --------
    >>> table = list_measures().set_index("name")
    >>> int(table.loc["distance", "orientation"]), table.loc["distance", "needs"]
    (1, 'initial')
    """
    columns = {key: [getattr(m, key) for m in MEASURES.values()] for key in DESCRIPTION}
    return data_frame({**columns, "needs": list(map(", ".join, columns["needs"]))})


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
    for argument, network in (("model", model), ("twin", twin)):
        if not isinstance(network, nn.Module) and (network is not None or argument == "model"):
            raise InputError(f"is a {type(network).__name__}: give a torch.nn.Module.", argument=argument)
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
    if measures is None:
        chosen = [m for m in MEASURES.values() if not m.lacks(subject)]
    else:
        chosen = list({one.name: one for one in find_measures(measures)}.values())
    for one in chosen:
        if lacking := one.lacks(subject):
            raise InputError(f"measure {one.name!r} needs {NEEDS[lacking[0]]}.")
    title = type(model).__name__
    values, seconds = {}, {}
    # Measures that fail for one reason share one warning.
    reasons: dict[str, list[str]] = {}
    with steady_kernels(), progressing("measuring", len(chosen), progress) as advance:
        for one in chosen:
            start = time.perf_counter()
            values[one.name], reason = _value(one, subject)
            seconds[one.name] = time.perf_counter() - start
            if reason:
                reasons.setdefault(reason, []).append(one.name)
            advance(1)
    notes = [*subject.notes, *(prefix(f"{', '.join(names)}: ", reason) for reason, names in reasons.items())]
    for text in notes:
        warnings.warn(prefix(f"{title}: ", text), CurvewiseWarning, stacklevel=2)
    orientation = {one.name: one.orientation for one in chosen}
    return ModelMeasures(title, values, orientation, seconds, settings, tuple(notes))


def _initial_weights(initial: Any, model: nn.Module, device: torch.device) -> dict[str, Tensor] | None:
    """Check that there is an initial value for each of the model's parameters."""
    if initial is None:
        return None
    given = initial.state_dict() if isinstance(initial, nn.Module) else initial
    if not isinstance(given, Mapping):
        raise InputError(f"is a {type(given).__name__}: give a module or its state_dict().", argument="initial")
    found = {}
    for name, parameter in model.named_parameters():
        value = given.get(name)
        if value is None or tuple(value.shape) != tuple(parameter.shape):
            seen = "nothing" if value is None else f"shape {tuple(value.shape)}"
            raise InputError(
                f"has {seen} for {name!r}, the model has shape {tuple(parameter.shape)}: give the weights of "
                "the same network before training.",
                argument="initial",
            )
        found[name] = torch.as_tensor(value).detach().to(device, torch.float32)
    return found


def find_measures(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """Look measures up by their names; those of one's own stay as they are."""
    if not isinstance(measures, str | Measure | Iterable):
        raise InputError("give names of measures.", argument="measures", value=measures)
    requested = [measures] if isinstance(measures, str | Measure) else list(measures)
    if not requested:
        raise InputError("is empty: name at least one, or leave it out for all.", argument="measures")
    for one in requested:
        if not isinstance(one, Measure) and one not in MEASURES:
            raise InputError(
                f"{brief(one)} is not known: use one of {list_names(MEASURES, 60)}.{suggest(one, MEASURES)}",
                argument="measures",
            )
    return [one if isinstance(one, Measure) else MEASURES[one] for one in requested]


def _value(one: Measure, subject: Subject) -> tuple[float, Message | str]:
    """Return the value and no reason, or NaN and the reason why there is no value."""
    try:
        value = float(one(subject))
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

    def table(self, format: str = "markdown", digits: int | None = None) -> str:
        """Write the measures as a table, values with so many significant digits, 4 by default."""
        digits = 4 if digits is None else digits
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


@measure("loss", 1, _FORWARD)
def loss(subject: Subject) -> Tensor:
    """Cross-entropy on the examples themselves: a trivial baseline."""
    return subject.loss


@measure("accuracy", -1, _FORWARD)
def accuracy(subject: Subject) -> Tensor:
    """Accuracy on the examples themselves: a trivial baseline."""
    return subject.accuracy


def output_margins(logits: Tensor, labels: Tensor) -> Tensor:
    """Output of the right class minus the largest other one, negative for a wrong answer.

    >>> output_margins(torch.tensor([[1.0, 4.0, 2.0]]), torch.tensor([1])).tolist()
    [2.0]
    """
    right = logits.gather(1, labels[:, None])[:, 0]
    others = logits.scatter(1, labels[:, None], -torch.inf)
    return right - others.max(dim=1).values


def margin(subject: Subject, share: float) -> Tensor:
    """Quantile of the output margins."""
    return torch.quantile(output_margins(subject.logits, subject.sample.y), share)


@measure("margin-10", -1, _FORWARD)
def margin_10(subject: Subject) -> Tensor:
    """10% quantile of output margins: the right class's output less the largest other one."""
    return margin(subject, 0.1)


@measure("margin-50", -1, _FORWARD)
def margin_50(subject: Subject) -> Tensor:
    """Median of output margins."""
    return margin(subject, 0.5)


@measure("margin-10-spectral", -1, _FORWARD, paper="Bartlett et al. 2017, Spectrally-normalized margin bounds")
def margin_over_spectral(subject: Subject) -> Tensor:
    """10% quantile of output margins over the product of spectral norms of kernels."""
    # Half the logarithm of the product of squares is that of the product of norms.
    return margin(subject, 0.1).double() / (0.5 * squared_norms(subject, "kernel").log().sum()).exp()


@measure("margin-10-spread", -1, _FORWARD)
def margin_over_spread(subject: Subject) -> Tensor:
    """10% quantile of output margins over the spread of the outputs."""
    return margin(subject, 0.1) / _spread(subject.logits)


@measure("margin-10-input", -1, _BACK, "continuous", paper=_JIANG_MARGINS)
def margin_at_input(subject: Subject) -> Tensor:
    """10% quantile of the inputs' distance to the boundary, to first order, over their spread."""
    return boundary_margin(subject, None, 0.1)


@measure("margin-10-layer1", -1, _BACK, paper=_JIANG_MARGINS)
def margin_at_layer(subject: Subject) -> Tensor:
    """The same at the output of the first activation."""
    return boundary_margin(subject, 1, 0.1)


def boundary_margin(subject: Subject, layer: int | None, share: float) -> Tensor:
    """Quantile of the distances to the boundary at a layer (None: the input), over the spread there."""
    if subject.sample.classes < 2:
        raise InputError("there are examples of one class only.")
    parts = [boundary_distances(subject, x, y, layer) for x, y in subject.batches(MOST_MARGINS)]
    places, distances = (torch.cat(part) for part in zip(*parts, strict=True))
    return torch.quantile(distances, share) / _spread(places)


def boundary_distances(subject: Subject, x: Tensor, y: Tensor, layer: int | None) -> tuple[Tensor, Tensor]:
    """Places of examples, and their distance to the boundary of the next class, to first order."""
    places: list[Tensor] = []

    def kept(value: Tensor) -> Tensor:
        places.append(value.detach().requires_grad_())
        return places[0].clone()  # which a later layer may change in place

    if layer is None:
        logits = subject.answers(subject.model, kept(x))
    else:
        with caught(find_site(subject, layer), kept):
            logits = subject.answers(subject.model, x)
    margins = output_margins(logits, y)
    # To first order the boundary is at the margin over the length of its gradient (Jiang et al. 2019).
    slope = torch.autograd.grad(margins.sum(), places[0])[0].flatten(1).norm(dim=1)
    return places[0].detach().flatten(1), margins.detach() / slope.clamp(min=1e-12)


def _spread(values: Tensor) -> Tensor:
    """Root of the sum over columns of their variance over examples."""
    return values.double().var(dim=0).sum().sqrt()


@measure("dbi", 1, _ALONE, paper=f"{_NATEKAR}, the winner of PGDL")
def davies_bouldin(subject: Subject) -> Tensor:
    """Davies–Bouldin index of the classes at a layer (the first activation).

    Images are averaged down to at most 4×4, and flattened.
    """
    site = find_site(subject, subject.layer)

    def represented(x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        # A copy, as a later layer may change it in place.
        with caught(site, lambda out: seen.append(out.clone())):
            subject.model(x)
        out = seen[0]
        if out.ndim == 4:
            height, width = (min(PLACES, side) for side in out.shape[2:])
            out = functional.adaptive_avg_pool2d(out, (height, width))
        return out.flatten(1)

    return subject.once("dbi", lambda: _index(subject, represented))


@measure("dbi-last", 1, _ALONE)
def davies_bouldin_last(subject: Subject) -> Tensor:
    """Davies–Bouldin index of the classes in what the last linear layer is given."""
    return _index(subject, lambda x: features_of(subject.model, x))


def _index(subject: Subject, represent: Callable[[Tensor], Tensor]) -> Tensor:
    with torch.no_grad():
        features = torch.cat([represent(x) for x, _ in subject.batches()])
    return davies_bouldin_index(features, subject.sample.y)


def davies_bouldin_index(features: Tensor, labels: Tensor) -> Tensor:
    """Mean over classes of the overlap of each with its worst neighbour; lower is better.

    Parameters
    ----------
    features : Tensor, shape (examples, D)
        Representations.
    labels : Tensor of int, shape (examples,)
        Classes; those without an example do not count.

    Examples
    --------
    >>> x = torch.tensor([[0.0], [2.0], [9.0], [11.0]])
    >>> float(davies_bouldin_index(x, torch.tensor([0, 0, 1, 1])))  # (1 + 1) / 9
    0.2222...
    """
    _, which, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        raise InputError("there are examples of one class only: nothing to separate.")
    features = features.double()
    shares = functional.one_hot(which).double().T / counts[:, None]
    centres = shares @ features
    spread = shares @ (features - centres[which]).norm(dim=1)
    # Products of matrices would lose the digits of centres that lie close together.
    apart = torch.cdist(centres, centres, compute_mode="donot_use_mm_for_euclid_dist")
    ratio: Tensor = (spread[:, None] + spread) / apart
    return ratio.fill_diagonal_(-torch.inf).max(dim=1).values.mean()


def find_site(subject: Subject, layer: int | str) -> Site:
    """Find a submodule by its name, or the n-th activation module that a forward pass calls."""

    def find() -> Site | None:
        x, _ = next(subject.batches(2))
        with torch.no_grad():
            return probe(subject.model, layer, x).site

    site = subject.once(("site", layer), find)
    if site is None:
        raise InputError("is the input: give a submodule's name or a number.", argument="layer", value=None)
    return site


@measure("disagreement", 1, "one forward pass of the twin over all examples", "twin", paper=_JIANG_TWINS)
def disagreement(subject: Subject) -> Tensor:
    """Share of examples for which a second training gives another class."""
    return (subject.logits.argmax(1) != twin_logits(subject).argmax(1)).float().mean()


@measure("disagreement-soft", 1, "as disagreement, with which it is shared", "twin")
def disagreement_soft(subject: Subject) -> Tensor:
    """Total variation between the probabilities of two trainings.

    It distinguishes networks that have both memorised the examples.
    """
    return 0.5 * (subject.logits.softmax(1) - twin_logits(subject).softmax(1)).abs().sum(dim=1).mean()


def twin_logits(subject: Subject) -> Tensor:
    """Outputs of the second training for every example."""
    twin = subject.twin
    if twin is None:
        raise InputError(f"there is no second network: pass {arg('twin')}.")
    logits = subject.once("twin", lambda: checked_logits(subject, twin))
    if logits.shape != subject.logits.shape:
        raise InputError("has another number of outputs than the model.", argument="twin")
    return logits


def response_score(subject: Subject, score: str, perturbation: str, layer: int | None) -> float:
    """Return a score of a response curve: "gi", "pal" or "mean_accuracy"."""
    value: float = getattr(response_curve(subject, perturbation, layer), score)
    return value


@measure("mean-accuracy", -1, _CURVE, "continuous", paper=_SCHIFF)
def mean_accuracy(subject: Subject) -> float:
    """Mean of the response curve to intra-class mixup at the input."""
    return response_curve(subject, "mixup-intra", None).mean_accuracy


@measure("mixup", -1, _CURVE, "continuous", paper=_NATEKAR)
def mixup(subject: Subject) -> float:
    """Accuracy on the middle between two examples of a class."""
    return _mixed_accuracy(subject, None)


@measure("manifold-mixup", -1, _CURVE, paper=_NATEKAR)
def manifold_mixup(subject: Subject) -> float:
    """The same, mixed at the first activation."""
    return _mixed_accuracy(subject, 1)


def _mixed_accuracy(subject: Subject, layer: int | None) -> float:
    curve = response_curve(subject, "mixup-intra", layer)
    return accuracy_at(curve.magnitude, curve.accuracy, 0.5)


@measure("dbi-mixup", 1, "as dbi and mixup, with which it is shared", "continuous", paper=_NATEKAR)
def dbi_mixup(subject: Subject) -> Tensor | float:
    """Davies–Bouldin index times the error on mixed examples: the winner of PGDL."""
    return davies_bouldin(subject) * (1 - mixup(subject))


@measure("augmentation-penalty", 1, _CHANGES, "images", paper=_KASHYAP)
def augmentation_penalty(subject: Subject) -> Tensor:
    """Mean accuracy lost to rotation, shifts, colours, noise, blur and cutout of moderate size."""
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

    def curve_of() -> ResponseCurve:
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

    return subject.once(("curve", perturbation, layer), curve_of)


@measure("jacobian", 1, _BACKWARD, "continuous")
def jacobian(subject: Subject) -> Tensor:
    """Mean Frobenius norm of the derivative of logits by inputs."""
    return jacobian_norm(subject, lambda logits: logits)


@measure("jacobian-softmax", 1, _BACKWARD, "continuous", paper=_NOVAK)
def jacobian_softmax(subject: Subject) -> Tensor:
    """The same of probabilities."""
    return jacobian_norm(subject, lambda logits: logits.softmax(1))


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
    *(mean_accuracy, mixup, manifold_mixup, dbi_mixup, augmentation_penalty),
)
"""Measures of the response to perturbed examples."""

MARGINS = (margin_10, margin_50, margin_over_spectral, margin_over_spread, margin_at_input, margin_at_layer)
REPRESENTATIONS = (davies_bouldin, davies_bouldin_last)
MEASURES: dict[str, Measure] = {
    one.name: one
    for one in (
        *(loss, accuracy, *NORMS, *MARGINS, *SHARPNESSES, *FLATNESSES, jacobian, jacobian_softmax),
        *(*REPRESENTATIONS, *RESPONSES, disagreement, disagreement_soft),
    )
}
"""Measures by name."""
