"""Every measure of a network at once."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.nn.data import draw_sample
from curvewise.nn.evaluation import chosen_device
from curvewise.progress import Progress, progressing
from curvewise.response.networks.margins import BASELINES, MARGINS, REPRESENTATIONS, TWINS, find_site
from curvewise.response.networks.norms import NORMS, PATHS
from curvewise.response.networks.robustness import JACOBIANS, RESPONSES
from curvewise.response.networks.sharpness import FLATNESSES, SHARPNESSES
from curvewise.response.networks.subject import NEEDS, Measure, Subject, copied, steady
from curvewise.tables import format_table
from curvewise.text import brief, format_number, list_names, suggest
from curvewise.types.results import Result, data_frame

if TYPE_CHECKING:
    import pandas as pd


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        *BASELINES,
        *NORMS,
        *PATHS,
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


def list_measures() -> pd.DataFrame:
    """Every measure: name, orientation, needs, cost, and what it is, with its paper.

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
    labels: Any = None,
    examples: int | None = 5000,
    initial: nn.Module | Mapping[str, Any] | None = None,
    twin: nn.Module | None = None,
    layer: int | str = 1,
    device: torch.device | str | None = None,
    batch: int = 512,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress = None,
    name: str | None = None,
) -> ModelMeasures:
    """Compute measures of a trained network that may tell how well it generalises.

    The network itself is not touched: a copy is measured, in eval mode and float32.

    Parameters
    ----------
    model : nn.Module
        Gives logits, (batch, classes).
    data : Dataset, DataLoader, Examples, (inputs, labels), Tensor or ndarray
        Examples that it was trained on, see :func:`curvewise.nn.data.draw_sample`.
    measures : str, Measure or list of them, optional
        Names of :func:`list_measures`, or measures of your own. By default all whose needs are met.
    labels : array_like of int, optional
        Classes, where data holds inputs only.
    examples : int, optional
        How many are drawn at random; None takes all. Costly measures use the first of them, as
        their cost says.
    initial : nn.Module or dict, optional
        The weights before training: the network, or its ``state_dict()``.
    twin : nn.Module, optional
        The same network trained with another seed.
    layer : int or str
        Where the representations of ``"dbi"`` are taken: the n-th activation module in a forward
        pass, or a submodule's name.
    device : optional
        Where to compute; by default where the model is.
    batch : int
        Examples of one forward pass.
    mean, std : sequence of float, optional
        Per channel, for images of bytes or to tell what pixels were.
    rng : int or Generator
        Decides examples and all noise.
    progress : bool or callable, optional
        Whether to show a bar, by default on a terminal; or a function that is told the share done.
    name : str, optional
        What to call the network.

    Returns
    -------
    ModelMeasures
        With NaN, and the reason among its warnings, for a measure that this network does not have.

    Raises
    ------
    InputError
        An argument cannot be used, or a measure was asked for whose needs are not met.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Linear(2, 2, bias=False))
    >>> _ = model[0].weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> x, y = np.eye(2, dtype=np.float32), np.array([0, 1])
    >>> measure_model(model, x, ["l2-norm", "margin-50"], labels=y).values
    {'l2-norm': 5.0, 'margin-50': 3.5}
    """
    _check(model, batch, layer)
    seed = int(np.random.default_rng(rng).integers(2**31))
    place = chosen_device(model, device)
    sample = draw_sample(data, labels, examples=examples, mean=mean, std=std, rng=seed)
    subject = Subject(
        copied(model, place),
        sample.to(place),
        batch,
        seed,
        layer,
        _weights(initial, model, place),
        None if twin is None else copied(_module(twin, "twin"), place),
    )
    if isinstance(layer, str):
        find_site(subject, layer)  # a wrong name is the caller's mistake
    settings = {"examples": len(sample), "seed": seed, "device": str(place), "batch": batch, "layer": layer}
    chosen = _chosen(measures, subject)
    return _measured(subject, chosen, settings, name or type(model).__name__, progress)


def _measured(
    subject: Subject, chosen: Sequence[Measure], settings: dict[str, Any], name: str, progress: Progress
) -> ModelMeasures:
    values, seconds = {}, {}
    reasons: dict[str, list[str]] = {}
    with steady(), progressing("measuring", len(chosen), progress) as advance:
        for measure in chosen:
            start = time.perf_counter()
            values[measure.name], reason = _value(measure, subject)
            seconds[measure.name] = time.perf_counter() - start
            if reason:
                reasons.setdefault(reason, []).append(measure.name)
            advance(1)
    said = [*subject.notes, *(f"{', '.join(n)}: {reason}" for reason, n in reasons.items())]
    for text in said:
        warnings.warn(f"{name}: {text}", CurvewiseWarning, stacklevel=3)
    orientation = {measure.name: measure.orientation for measure in chosen}
    return ModelMeasures(name, values, orientation, seconds, settings, tuple(said))


def _value(measure: Measure, subject: Subject) -> tuple[float, str]:
    """The measure, or NaN and why there is none."""
    try:
        value = float(measure.function(subject))
    except InputError as error:
        return math.nan, str(error)
    except Exception as error:  # whatever a stranger's network does, the others go on
        return math.nan, f"failed with {type(error).__name__}: {error}"
    if not math.isfinite(value):
        return math.nan, "is not finite for this network."
    return value, ""


def _chosen(measures: str | Measure | Sequence[str | Measure] | None, subject: Subject) -> list[Measure]:
    if measures is None:
        return [m for m in MEASURES.values() if not m.lacks(subject)]
    asked = [measures] if isinstance(measures, str | Measure) else list(measures)
    chosen = []
    for measure in asked:
        if not isinstance(measure, Measure):
            if measure not in MEASURES:
                raise InputError(
                    f"measures: {brief(measure)} is not known: use one of "
                    f"{list_names(MEASURES, 60)}.{suggest(measure, MEASURES)}"
                )
            measure = MEASURES[measure]
        lacking = measure.lacks(subject)
        if lacking:
            raise InputError(f"measure {measure.name!r} needs {NEEDS[lacking[0]]}.")
        chosen.append(measure)
    if not chosen:
        raise InputError("measures is empty: name at least one, or leave it out for all.")
    return list({measure.name: measure for measure in chosen}.values())


def _check(model: Any, batch: Any, layer: Any) -> None:
    _module(model, "model")
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise InputError(f"batch={batch!r}: give a whole number of at least 1.")
    numbered = isinstance(layer, int) and not isinstance(layer, bool) and layer >= 1
    if not numbered and not isinstance(layer, str):
        raise InputError(f"layer={brief(layer)}: give a submodule's name, or 1 for the first activation.")


def _module(model: Any, argument: str) -> nn.Module:
    if not isinstance(model, nn.Module):
        raise InputError(f"{argument} is a {type(model).__name__}: give a torch.nn.Module.")
    return model


def _weights(initial: Any, model: nn.Module, device: torch.device) -> dict[str, Tensor] | None:
    """Initial weights for each of the model's parameters, or an error."""
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
                f"initial has {seen} for {name!r}, the model has shape {tuple(parameter.shape)}: "
                "give the weights of the same network before training."
            )
        found[name] = torch.as_tensor(value).detach().to(device, torch.float32)
    return found


# What measuring one network gives.


@dataclass(frozen=True, eq=False)
class ModelMeasures(Result):
    """Measures of one network.

    Attributes
    ----------
    model : str
        What it is called.
    values : dict of float
        By name of the measure; NaN where the network has none, with the reason in ``warnings``.
    orientation : dict of int
        1 where a higher value should mean a larger generalisation gap, -1 where a smaller one.
    seconds : dict of float
        What each took; the first of those that share some work pays for it.
    settings : dict
        How they were measured: examples, seed, device, …
    """

    model: str
    values: dict[str, float]
    orientation: dict[str, int]
    seconds: dict[str, float]
    settings: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """A row for each measure."""
        return {
            "measure": list(self.values),
            "value": list(self.values.values()),
            "orientation": [self.orientation[name] for name in self.values],
            "seconds": [self.seconds[name] for name in self.values],
        }

    def table(self, format: str = "markdown", digits: int = 4) -> str:
        """The measures as text, values with so many significant digits."""
        columns = self.columns()
        columns["value"] = ["" if math.isnan(v) else format_number(v, digits) for v in self.values.values()]
        higher = {1: "higher", -1: "lower"}
        columns["larger gap if"] = [higher[o] for o in columns.pop("orientation")]
        columns["seconds"] = [f"{s:.2f}" for s in columns.pop("seconds")]
        return format_table(columns, format, digits)

    def summary(self) -> str:
        """A few sentences."""
        known = sum(not math.isnan(v) for v in self.values.values())
        without = len(self.values) - known
        lost = f", {without} could not be computed" if without else ""
        return (
            f"{known} measures of {self.model} on {self.settings['examples']:,} examples in "
            f"{sum(self.seconds.values()):.1f} s{lost}."
        )
