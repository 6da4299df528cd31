"""How the numbers of this lens are said."""

from __future__ import annotations

import numpy as np

from curvewise.types import Predictions

SUSPICIOUS = 2 / 3
"""A mean error above this is more likely a mistake in the input than a training."""

MOSTLY_WRONG = (
    "more than two thirds of the answers are wrong. If these are hits, or accuracies, say so"
    " (kind='correct', higher_is_better=True); if classes were predicted, check that the labels are"
    " there and in order."
)

HALF_WRONG = (
    "more than half of the predictions are wrong: if 1 means a correct answer, pass kind='correct'."
)


def mostly_wrong(error: float, unit: str, given: Predictions | None = None) -> list[str]:
    """Warn of a mean error that is more likely a mistake in the input.

    Hits beside labels of two classes look like predicted classes, and coin flips would be right
    half the time.
    """
    if unit != "fraction":
        return []
    truth = given.labels if given is not None and given.kind == "labels" else None
    if truth is not None and len(np.unique(truth)) == 2 and error > 0.5:
        return [HALF_WRONG]
    return [MOSTLY_WRONG] if error > SUSPICIOUS else []


FEW_GROUPS = 10
"""With fewer groups of equal weight their own variance is hardly known."""


def few_groups(effective: float | None) -> list[str]:
    """Warn of groups that weigh as much as a few of equal size; None where there are no groups."""
    if effective is None or effective >= FEW_GROUPS:
        return []
    return [
        f"the groups weigh as much as {effective:.1f} of equal size: too few to generalize well"
        " from this test set to new groups."
    ]
