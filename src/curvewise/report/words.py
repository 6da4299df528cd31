"""What each lens asks, and how it answers, in words."""

from __future__ import annotations

from curvewise.types import Result

QUESTIONS = {
    "learning": "How does error fall with data?",
    "variance": "How much do runs differ, and what of it is real?",
    "response": "How does it respond when the input moves?",
    "transfer": "Does pretraining beat simple controls?",
    "ranking": "Which checkpoint should be fine-tuned?",
    "study": "How far is it?",
}

METHODS = {
    "learning": (
        "The extended power law e(n) = α + ηn^γ is fitted to the runs by weighted least squares "
        "with a prior on γ (Hoiem et al. 2021). Confidence intervals are by profile likelihood and "
        "suppose that form; prediction intervals were calibrated on real learning curves.",
    ),
    "variance": (
        "The variance of the error over runs is split into what independent errors on a finite "
        "test set would give and what is left, which is there on new data too (Jordan 2023).",
    ),
    "response": (
        "What the network was trained on is perturbed with growing magnitude; the Gi-score sums up "
        "how its accuracy falls from 0 (never) to 1, the Pal-score compares high with low "
        "magnitudes (Schiff et al. 2021).",
    ),
    "transfer": (
        "Risks are put on the scale between maximal supervision (0) and a blind guess (1); the "
        "area between a method and scratch, weighted by what scratch learns, is the calibrated "
        "cumulative improvement (Atanov et al. 2022). Intervals count the runs.",
    ),
    "ranking": (
        "Features of labelled examples are scored, nothing is trained (Li et al. 2021). Ranks have "
        "intervals from scoring random parts of the examples again.",
    ),
}


def lens_of(result: Result) -> str:
    """The lens that made a result: the folder of its class.

    >>> from curvewise.learning import LearningCurves
    >>> lens_of(LearningCurves.__new__(LearningCurves))
    'learning'
    """
    parts = type(result).__module__.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "curvewise" else ""
