"""Measures of how the network responds to perturbed examples, from shared response curves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from curvewise.errors import CurvewiseWarning
from curvewise.response.curve import ResponseCurve
from curvewise.response.networks import measurement as response
from curvewise.response.networks.margins import davies_bouldin
from curvewise.response.networks.subject import Measure, Subject, rounding
from curvewise.response.scores import accuracy_at

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


def gi(subject: Subject, perturbation: str, layer: int | None = None) -> float:
    """Gi-score."""
    return response_curve(subject, perturbation, layer).gi


def pal(subject: Subject, perturbation: str, layer: int | None = None) -> float:
    """Pal-score."""
    return response_curve(subject, perturbation, layer).pal


def mean_accuracy(subject: Subject) -> float:
    """Mean of the response curve to intra-class mixup."""
    return response_curve(subject, "mixup-intra", None).mean_accuracy


def mixup(subject: Subject, layer: int | None = None) -> float:
    """Accuracy on the middle between two examples of a class."""
    curve = response_curve(subject, "mixup-intra", layer)
    return accuracy_at(curve.magnitude, curve.accuracy, 0.5)


def dbi_mixup(subject: Subject) -> Tensor:
    """Davies–Bouldin index times the error on mixed examples."""
    return davies_bouldin(subject) * (1 - mixup(subject))


def augmentation_penalty(subject: Subject) -> Tensor:
    """Mean over perturbations of the accuracy that each costs."""
    coloured = subject.sample.x.shape[1] == 3
    names = [name for name in AUGMENTATIONS if coloured or name not in COLOURED]
    costs = []
    for name in names:
        curve = response_curve(subject, name, None, AUGMENTATIONS[name])
        perturbed = curve.accuracy[curve.magnitude != 0].mean()
        costs.append(float(subject.accuracy) - float(perturbed))
    return torch.tensor(costs).mean()


def response_curve(
    subject: Subject, perturbation: str, layer: int | None, magnitudes: Sequence[float] | None = None
) -> ResponseCurve:
    """A response curve on all examples, measured once."""
    return subject.once(("curve", perturbation, layer), lambda: _measured(subject, perturbation, layer, magnitudes))


def _measured(
    subject: Subject, perturbation: str, layer: int | None, magnitudes: Sequence[float] | None
) -> ResponseCurve:
    sample = subject.sample
    with rounding(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # they are on the curve
        curve = response.measure_response(
            subject.model,
            (sample.x, sample.y),
            perturbation,
            layer=layer,
            magnitudes=magnitudes,
            signs="keep",  # accuracies are read off it: one distance from 0 is enough
            examples=len(sample),
            device=subject.device,
            rng=subject.seed,
            mean=None if sample.mean is None else sample.mean.tolist(),
            std=None if sample.std is None else sample.std.tolist(),
            progress=False,
        )
    subject.notes.extend(note for note in curve.warnings if note not in subject.notes)
    return curve


_SCHIFF = "Schiff et al. 2021, Predicting generalization with perturbation response curves"
_NATEKAR = "Natekar and Sharma 2020, Representation based complexity measures"
_CURVE = "one response curve: a forward pass over all examples at each of 10 magnitudes, shared"
_PLACES = {None: ("", "the input"), 1: ("-layer1", "the first activation")}


def _scores() -> list[Measure]:
    """Gi and Pal for both kinds of mixup at the input and at the first activation."""
    found = []
    for kind in ("intra", "inter"):
        for layer, (suffix, where) in _PLACES.items():
            needs = ("continuous",) if layer is None else ()
            words = f"of {kind}-class mixup at {where} ({_SCHIFF})."
            for name, function, orientation in (("gi", gi, 1), ("pal", pal, -1)):
                found.append(
                    Measure(
                        f"{name}-{kind}{suffix}",
                        partial(function, perturbation=f"mixup-{kind}", layer=layer),
                        orientation,
                        needs,
                        _CURVE,
                        f"{name.capitalize()}-score {words}",
                    )
                )
    return found


RESPONSES = (
    *_scores(),
    Measure(
        "mean-accuracy",
        mean_accuracy,
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
        (),
        _CURVE,
        f"The same, mixed at the first activation ({_NATEKAR}).",
    ),
    Measure(
        "dbi-mixup",
        dbi_mixup,
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
        "Mean accuracy lost to rotation, shifts, colours, noise, blur and cutout of moderate size "
        "(after Kashyap et al. 2021, Robustness to augmentations as a generalization metric).",
    ),
)
"""Measures of this module."""


# How strongly outputs react to inputs.

MOST = 1000
"""Examples."""
EXACT = 16
"""Outputs up to which every one is differentiated; above, as many random mixtures of them."""


def jacobian(subject: Subject) -> Tensor:
    """Mean over examples of the Frobenius norm of the derivative of logits by inputs."""
    return _norms(subject, lambda logits: logits).mean()


def jacobian_softmax(subject: Subject) -> Tensor:
    """The same of the probabilities of classes."""
    return _norms(subject, lambda logits: logits.softmax(1)).mean()


def _norms(subject: Subject, finish: Callable[[Tensor], Tensor]) -> Tensor:
    """Frobenius norm of the Jacobian at each example."""
    norms = []
    for x, _ in subject.batches(MOST):
        leaf = x.detach().requires_grad_()
        out = finish(subject.answers(subject.model, leaf.clone()))
        squares = torch.zeros(len(x), device=x.device)
        for direction in directions(subject, out.shape[1]):
            slope = torch.autograd.grad(out, leaf, direction.expand_as(out), retain_graph=True)[0]
            squares += slope.flatten(1).square().sum(dim=1)
        norms.append(squares.sqrt())
    return torch.cat(norms)


def directions(subject: Subject, count: int) -> Tensor:
    """Rows v for which the sum of |vᵀJ|² is |J|², for few outputs exactly, else on average."""
    if count <= EXACT:
        return torch.eye(count, device=subject.device)
    rows = [subject.noise("jacobian", draw, count) for draw in range(EXACT)]
    scaled: Tensor = torch.stack(rows) / EXACT**0.5
    return scaled


_COST = f"up to {EXACT} backward passes over up to {MOST:,} examples"

JACOBIANS = (
    Measure(
        "jacobian", jacobian, 1, ("continuous",), _COST, "Mean Frobenius norm of the derivative of logits by inputs."
    ),
    Measure(
        "jacobian-softmax",
        jacobian_softmax,
        1,
        ("continuous",),
        _COST,
        "The same of probabilities (Novak et al. 2018, Sensitivity and generalization in neural networks).",
    ),
)
"""Measures of this module."""
