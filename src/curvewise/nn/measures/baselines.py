"""What any measure should beat: how well the network does on the examples themselves."""

from __future__ import annotations

from torch import Tensor

from curvewise.nn.measures.measure import Measure
from curvewise.nn.measures.subject import Subject


def training_loss(subject: Subject) -> Tensor:
    """Mean cross-entropy on the examples."""
    return subject.loss


def training_accuracy(subject: Subject) -> Tensor:
    """Share of the examples that the network gets right."""
    return subject.accuracy


_FORWARD = "one forward pass over all examples, shared"

BASELINES = (
    Measure(
        "loss",
        training_loss,
        1,
        (),
        _FORWARD,
        "Cross-entropy on the examples themselves: a trivial baseline.",
    ),
    Measure(
        "accuracy",
        training_accuracy,
        -1,
        (),
        _FORWARD,
        "Accuracy on the examples themselves: a trivial baseline.",
    ),
)
"""Measures of this module."""
