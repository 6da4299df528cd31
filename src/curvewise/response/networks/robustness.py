"""Measures of how outputs react to changed inputs: scores of response curves, and the Jacobian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from curvewise.errors import quietly
from curvewise.response.curve import ResponseCurve
from curvewise.response.networks.margins import davies_bouldin
from curvewise.response.networks.measurement import measure_response
from curvewise.response.networks.subject import Measure, Subject, rounding
from curvewise.response.networks.trial import Execution
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
# Examples for the Jacobian.
MOST = 1000
# Outputs up to which every one is differentiated; above, as many random mixtures of them.
EXACT = 16


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
