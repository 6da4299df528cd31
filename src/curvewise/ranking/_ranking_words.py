"""What is said about a ranking: what failed, and what is worth knowing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from curvewise.ranking._scoring import Scored
from curvewise.ranking._targets import Targets
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import FloatArray

NAMED = 3  # checkpoints that a message names


def missing(
    found: Mapping[str, Sequence[Scored]], names: Sequence[str]
) -> dict[str, dict[str, str]]:
    """By measure: checkpoints that it gave no score, and why."""
    reasons = {
        measure: {n: s.reason for n, s in zip(names, own, strict=True) if s.reason}
        for measure, own in found.items()
    }
    return {measure: own for measure, own in reasons.items() if own}


def alarms(
    found: Mapping[str, Sequence[Scored]],
    names: Sequence[str],
    failures: Mapping[str, str],
    leader: str,
) -> list[str]:
    """What the user should look at: one sentence for all checkpoints that share a trouble."""
    said = [f"{name} is not ranked: {reason}" for name, reason in failures.items()]
    for measure, reasons in missing(found, names).items():
        last = ", ranked last without a rank" if measure == leader else ""
        for reason, own in _grouped((reason, name) for name, reason in reasons.items()):
            said.append(f"No {measure} for {listed(own, names)}{last}: {reason}")
    for measure, scored in found.items():
        told = ((text, n) for n, one in zip(names, scored, strict=True) for text in one.said)
        said += [f"{measure} of {listed(own, names)}: {text}" for text, own in _grouped(told)]
    return said


def ties(leader: str, names: Sequence[str], scores: FloatArray) -> list[str]:
    """Checkpoints of equal score."""
    groups = (
        [name for name, score in zip(names, scores, strict=True) if score == value]
        for value in np.unique(scores[np.isfinite(scores)])
    )
    return [
        f"{listed(own, [])} have the same {leader} and share a rank."
        for own in groups
        if len(own) > 1
    ]


def blind(measure: RankingMeasure, scores: FloatArray, targets: Targets, scored: int) -> list[str]:
    """Whether no checkpoint tells more of the labels than how often each occurs.

    A share of hits, the best of several, may be three standard errors above that by chance.
    """
    if not measure.guess or targets.kind != "classes" or not np.isfinite(scores).any():
        return []
    share = np.bincount(targets.codes) / len(targets)
    share = share[share > 0]
    guess = float(share @ np.log(share)) if measure.guess == "log" else float(share.max())
    slack = 3 * np.sqrt(guess * (1 - guess) / scored) if measure.guess == "share" else 0.0
    if np.nanmax(scores) > guess + slack:
        return []
    return [
        f"No checkpoint has a {measure.name} surely above {guess:.3g}, that of a guess by the "
        "frequencies of classes: none tells these labels. Check that labels and examples belong "
        "together."
    ]


def listed(some: Sequence[str], every: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["a", "b"], ["a", "b", "c"]), listed(["a", "b"], ["a", "b"])
    ("'a', 'b'", 'all 2 checkpoints')
    """
    if len(some) == len(every) and len(every) > 1:
        return f"all {len(some)} checkpoints"
    more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
    return ", ".join(map(repr, some[:NAMED])) + more


def _grouped(pairs: Iterable[tuple[str, str]]) -> Iterable[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for text, name in pairs:
        found.setdefault(text, []).append(name)
    return found.items()
