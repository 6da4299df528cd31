"""The demo's answers in plain words: what to remember of each question."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from curvewise.cli._demo_study import A
from curvewise.tables import about

if TYPE_CHECKING:
    from curvewise.learning import CurveComparison, LearnerRanking, LearningCurves, SamplesToReach
    from curvewise.ranking import CheckpointRanking
    from curvewise.response import ResponseComparison, ResponseCurve
    from curvewise.transfer import TransferResult
    from curvewise.variance import RunComparison, VarianceDecomposition

CLOSE = 0.8
"""Chance of being best up to which a ranking is no more than a lean."""


def said_crossing(few: CurveComparison, many: CurveComparison, curves: LearningCurves) -> str:
    """Which is better with little and with much data, by the fitted curves."""
    first, errors = _leader(few, curves)
    second, others = _leader(many, curves)
    again = "still " if first == second else ""
    text = (
        f"With {few.at:,.0f} digits the {first} {_sure(few)} ({errors}); with {many.at:,.0f} the "
        f"{second} {_sure(many, again)} ({others})."
    )
    crossing = many.crossing.estimate
    if few.at < crossing < many.at:
        text += f" The curves cross near {about(crossing)}."
    return text


def _leader(found: CurveComparison, curves: LearningCurves) -> tuple[str, str]:
    """Whose curve is lower, and the errors of both."""
    errors = {name: float(curves[name].error_at(found.at)) for name in (found.a, found.b)}
    better, worse = sorted(errors, key=lambda name: errors[name])
    return better, f"{errors[better]:.1%} wrong against {errors[worse]:.1%}"


def _sure(found: CurveComparison, again: str = "") -> str:
    return f"is {again}ahead, not surely" if found.verdict == "undecided" else f"is {again}better"


def said_response(found: ResponseComparison, curves: Mapping[str, ResponseCurve], at: str) -> str:
    """Which network holds up better when its own digits are moved."""
    better, worse = sorted(curves, key=lambda name: curves[name].gi)
    parts = [
        f"the {name} is right on {curves[name].accuracy.min():.0%}" for name in (better, worse)
    ]
    sure = "" if found.verdict != "undecided" else ", which may be chance"
    return f"With the digits it learned moved by {at}, {parts[0]} at worst, {parts[1]}{sure}."


def about_transfer(most: int, method: str, maximal: float) -> list[str]:
    """What is compared, and by which measure: to be read before the answer."""
    return [
        f"The ranking above chose among networks. This asks whether to start from one at all: "
        f"{method!r} is the {A} of the first study, which has learned {most:,} upright digits, and "
        "'scratch' the same network with random weights; both are trained on a few digits that lie "
        "on their side.",
        "CCI (calibrated cumulative improvement) is how far the start closes the gap between "
        "scratch and maximal supervision over all training sizes: 0 is no better than scratch, 1 "
        f"as good as maximal supervision. That is the error of {maximal:.1%} which the {A} has on "
        f"upright digits after {most:,} of them; the blind guess is the most frequent digit.",
    ]


def worth_said(found: TransferResult, method: str) -> str:
    """What the fewest digits of a start are worth in digits without one."""
    one = found.improvement(found.tasks[0], method)
    first, n = one.data_equivalence[0], one.n[0]
    lead = f"With {n:.0f} digits it is"
    if first.beyond == "above":
        most = found.curve(found.tasks[0], found.scratch).n[-1]
        return f"{lead} better than scratch with {most:,.0f}."
    worth = first.equivalent
    if first.beyond == "below":
        return f"{lead} no better than scratch with as many."
    ends = f" [{_digits(worth.low)}, {_digits(worth.high)}]" if worth.low == worth.low else ""
    return f"{lead} as good as scratch with about {_digits(worth.estimate)}{ends}."


def _digits(n: float) -> str:
    return f"{round(float(f'{n:.3g}')):,}" if math.isfinite(n) else "∞"


def said_transfer(found: TransferResult, method: str) -> str:
    """What a start is worth against none."""
    one = found.improvement(found.tasks[0], method)
    cci = one.cci
    start = f"Digits that lie on their side: a {A} that knows {method} ones is"
    sure = f"(CCI {cci.estimate:.2f} [{cci.low:.2f}, {cci.high:.2f}])"
    if cci.high < 0:
        return f"{start} a worse start than none {sure}."
    if not cci.low > 0:
        return f"{start} no better a start than none, as far as can be told {sure}."
    return f"{start} a better start than none {sure}. {worth_said(found, method)}"


def said_checkpoints(ranking: CheckpointRanking) -> str:
    """Which network is the best start for another task."""
    first = ranking.checkpoints[0]
    tied = int((ranking.rank_low == 1).sum()) - 1
    text = f"For digits that lie on their side, {first} is the network to start from"
    return text + (f", though {tied} others may be as good." if tied else ".")


def said_reach(answers: Sequence[SamplesToReach]) -> str:
    """How much data a target takes."""
    parts = [
        f"the {a.learner} about {about(a.estimate)} digits"
        if math.isfinite(a.estimate)
        else f"the {a.learner} more than there will ever be"
        for a in answers
    ]
    return f"An error of {answers[0].error:.0%} takes {' and '.join(parts)}."


def said_ranking(ranking: LearnerRanking) -> str:
    """Who is ahead with more data than there is."""
    best = int(ranking.probability_best.argmax())
    name, chance = ranking.learners[best], float(ranking.probability_best[best])
    if chance > CLOSE:
        return (
            f"With {ranking.at:,.0f} digits the {name} would probably be better (chance "
            f"{chance:.0%})."
        )
    return (
        f"Who would be better with {ranking.at:,.0f} digits is open: the {name} has a chance of "
        f"{chance:.0%}."
    )


def said_spread(spread: Mapping[str, VarianceDecomposition]) -> str:
    """What of the difference between seeds would be there again on new digits."""
    parts = [
        f"for the {name} about {found.distribution_share:.0%} "
        f"({found.share_interval.low:.0%} to {found.share_interval.high:.0%})"
        for name, found in spread.items()
    ]
    text = f"Of the variance between seeds, {' and '.join(parts)} is real"
    if all(found.distribution_share < 0.5 for found in spread.values()):
        return (
            f"{text}; the rest is which digits are in the test set. The seed that looks best is "
            "mostly the luckiest."
        )
    return f"{text}: it would be there again on new digits."


def said_real(found: RunComparison, n: int) -> str:
    """Whether the difference at the largest size holds beyond this test set."""
    points = f"{100 * abs(found.difference.estimate):.1f} points"
    if found.verdict == "undecided":
        return (
            f"Trained on these {n:,} digits, the {found.a} and the {found.b} differ by {points}: "
            "no more than seeds and the choice of test digits can explain."
        )
    pair = (found.a, found.b) if found.verdict == "a better" else (found.b, found.a)
    return (
        f"Trained on these {n:,} digits, the {pair[0]} beats the {pair[1]} on new ones, too, by "
        f"about {points}: more than seeds and the choice of test digits explain."
    )
