"""What pictures of curves say: labels of the legend, the caption, the warnings."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from curvewise.learning import SamplesToReach
from curvewise.learning.base import Curve
from curvewise.plot.scene import CROWD
from curvewise.plot.text import safe_names, safe_text
from curvewise.tables import number

Warnings: TypeAlias = Sequence[tuple[str, ...]]
"""The warnings of each curve of a picture, in the order of the curves."""


def warnings_of(curves: Sequence[Curve]) -> Warnings:
    """All warnings of each curve; in a crowd only those of the fit, as the others are costly."""
    return [c.warnings if len(curves) > CROWD else c.all_warnings for c in curves]


def labels_of(curves: Sequence[Curve], at: float | None, found: Warnings) -> list[str]:
    """What the legend says of each curve: name, γ, e_N, β_N, N, and a mark if it is flagged."""
    names = safe_names(c.learner for c in curves)
    return [
        f"{name}   {_numbers(c, at)}" + (f"   {safe_text('⚠')}" if flags else "")
        for name, c, flags in zip(names, curves, found, strict=True)
    ]


def _numbers(curve: Curve, at: float | None) -> str:
    gamma = float(getattr(curve, "gamma", math.nan))
    shape = f"form {curve.form}" if math.isnan(gamma) else f"γ={gamma:.2f}"
    said = (
        shape,
        f"e_N={number(curve.error_at(at), 3)}",
        f"β_N={number(curve.data_reliance_at(at), 3)}",
        f"(N={number(curve._size(at))})",
    )
    return "   ".join(safe_text(part.replace("-", "−")) for part in said)


def caption_of(
    curves: Sequence[Curve],
    interval: str | None,
    level: float,
    *,
    held: bool = False,
    dotted: bool = False,
) -> str:
    """What is shaded, what circles, bars, dashes and dots mean."""
    parts = []
    crowd = len(curves) > CROWD
    kinds = dict.fromkeys(interval or c.default_interval for c in curves)
    if interval != "none" and not (crowd and interval is None):
        parts.append(f"Shaded: {100 * level:.4g}% {' and '.join(_KINDS[k] for k in kinds)}.")
    spread = not crowd and any(bool((c.runs > 1).any()) for c in curves)
    parts.append(
        "Circles: mean of the runs at a size"
        + (", bars: ±1 standard deviation of one run." if spread else ".")
    )
    if held:
        parts.append("Hollow: not used for the fit.")
    parts.append("Dashed: beyond 4× the largest size.")
    if dotted:
        parts.append("Dotted: flagged (⚠).")
    return " ".join(parts)


_KINDS = {
    "confidence": "confidence interval of the curve",
    "prediction": "prediction interval of the mean of many runs",
    "conditional": "interval of the curve with γ taken as known",
}


def reach_line(found: SamplesToReach) -> str:
    """At which size a target is reached, with its interval."""
    target = f"{number(found.error)}{found.unit.suffix}"
    ends = f"[{number(found.low)}, {number(found.high)}]"
    if math.isinf(found.estimate):
        return f"{found.learner[:60]} never reaches {target}, interval of n {ends}."
    return f"{found.learner[:60]} reaches {target} at n = {number(found.estimate)} {ends}."


def warning_lines(
    curves: Sequence[Curve], found: Warnings, failures: Mapping[str, str]
) -> list[str]:
    """The first warning of the first few flagged curves, and how many more there are."""
    most = 3 if len(curves) <= CROWD else 1
    flagged = [(c.learner, flags) for c, flags in zip(curves, found, strict=True) if flags]
    lines = [
        textwrap.shorten(f"⚠ {learner[:60]}: {flags[0]}", 220, placeholder=" …")
        for learner, flags in flagged[:most]
    ]
    if len(flagged) > most:
        lines.append(
            f"⚠ {len(flagged) - most} more of the {len(curves)} curves are flagged: see"
            " .all_warnings of each."
        )
    if failures:
        lines.append(f"⚠ {len(failures)} learner(s) could not be fitted and are not drawn.")
    return lines
