"""What a ranking measure is: a function of features and labels with its conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class RankingMeasure:
    """A number for a checkpoint and a task of which more predicts better fine-tuning.

    Attributes
    ----------
    name : str
        What it is asked for by.
    function : callable
        ``function(x, labels, *, test_features=None, test_labels=None, rng=0) -> float``, where x
        is what it takes (``test_probabilities`` in the place of ``test_features`` for those that
        take probabilities). A measure that does not split has no ``test_`` arguments, one without
        chance no ``rng``.
    takes : {"features", "probabilities", "network"}
        What it is computed from.
    splits : bool
        Whether it is fitted on training examples and scored on test examples; one that does not
        is computed on all examples at once.
    seeded : bool
        Whether chance enters.
    targets : tuple of str
        Among "classes", "multilabel", "numbers".
    flops : callable
        ``flops(n, d, classes) -> float``: operations for n examples of d dimensions, apart from
        the forward pass.
    guess : {"", "log", "share"}
        What a guess by the frequencies of classes scores: the mean of their logs, or the largest
        share; unknown if empty.
    bounds : tuple of float
        The lowest and the highest value that there can be; intervals end there.
    about, cost, fails : str
        One sentence each: what it is and where it comes from; what it costs; when it fails.
    """

    name: str
    function: Callable[..., float]
    about: str
    cost: str
    fails: str
    flops: Callable[[int, int, int], float]
    takes: str = "features"
    splits: bool = False
    seeded: bool = False
    targets: tuple[str, ...] = ("classes",)
    guess: str = ""
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def columns(self) -> dict[str, Any]:
        """What is said of it, in a row."""
        return {
            "measure": self.name,
            "takes": self.takes,
            "targets": ", ".join(self.targets),
            "about": self.about,
            "cost": self.cost,
            "fails": self.fails,
        }
