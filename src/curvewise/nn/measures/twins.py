"""What a second training of the same network tells."""

from __future__ import annotations

from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn.measures.measure import Measure
from curvewise.nn.measures.subject import Subject, checked_logits


def disagreement(subject: Subject) -> Tensor:
    """Share of the examples for which the twin gives another class."""
    return (subject.logits.argmax(1) != _twin(subject).argmax(1)).float().mean()


def disagreement_soft(subject: Subject) -> Tensor:
    """Mean over examples of the total variation between the two networks' probabilities."""
    apart = subject.logits.softmax(1) - _twin(subject).softmax(1)
    return 0.5 * apart.abs().sum(dim=1).mean()


def _twin(subject: Subject) -> Tensor:
    twin = subject.twin
    if twin is None:
        raise InputError("there is no second network: pass twin=.")
    logits = subject.once("twin", lambda: checked_logits(subject, twin))
    if logits.shape != subject.logits.shape:
        raise InputError("twin has another number of outputs than the model.")
    return logits


TWINS = (
    Measure(
        "disagreement",
        disagreement,
        1,
        ("twin",),
        "one forward pass of the twin over all examples",
        "Share of examples for which a second training gives another class (Jiang et al. 2022, "
        "Assessing generalization via disagreement, which takes examples not trained on).",
    ),
    Measure(
        "disagreement-soft",
        disagreement_soft,
        1,
        ("twin",),
        "as disagreement, with which it is shared",
        "Total variation between the probabilities of two trainings; tells networks apart that "
        "both know the examples by heart.",
    ),
)
"""Measures of this module."""
