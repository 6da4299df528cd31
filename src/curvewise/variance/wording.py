"""How the numbers of this lens are said."""

from __future__ import annotations

import math

import numpy as np

from curvewise.tables import number
from curvewise.types import Interval, Predictions

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


def said(value: float, unit: str) -> str:
    """Errors as percentages, losses as they are.

    >>> said(0.00163, "fraction"), said(3.2763, "loss"), said(float("nan"), "fraction")
    ('0.163%', '3.276', 'unknown')
    """
    if unit != "fraction" or not math.isfinite(value):
        return number(value)
    percent = 100 * value
    return f"{percent:.2f}%" if abs(percent) >= 1 else f"{percent:.3f}%"


def said_interval(interval: Interval, unit: str) -> str:
    """An estimate with its limits in brackets.

    >>> said_interval(Interval(0.00163, 0.00115, 0.00217), "fraction")
    '0.163% [0.115%, 0.217%]'
    """
    low, high = said(interval.low, unit), said(interval.high, unit)
    return f"{said(interval.estimate, unit)} [{low}, {high}]"


def said_pvalue(p: float) -> str:
    """A p-value in two digits.

    >>> said_pvalue(9.1e-7), said_pvalue(0.034), said_pvalue(0.0)
    ('p = 9e-07', 'p = 0.034', 'p < 1e-300')
    """
    if p < 1e-300:
        return "p < 1e-300"
    return f"p = {p:.1g}" if p < 0.001 else f"p = {p:.2g}"
