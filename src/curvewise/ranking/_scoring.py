"""One measure on one checkpoint: what it takes, what it gives, and why it failed."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking._resampling import Rows
from curvewise.ranking._targets import Targets
from curvewise.ranking.measure import RankingMeasure
from curvewise.types.features import CheckpointFeatures

Named = str | RankingMeasure | Callable[..., float]
FUNCTIONS = " A function of features and labels will do, too."
"""Said of measures that are not known, where functions can be given."""

MISSING = {
    "probabilities": "has no classes of its own (no probabilities)",
    "network": "is not given as a network that can be trained",
}


@dataclass(frozen=True, eq=False)
class Candidate:
    """A checkpoint with what measures are computed from.

    Attributes
    ----------
    name : str
    inputs : dict of str to object
        By what a measure takes: "features", "probabilities" or "network"; each gives those of some
        examples when indexed by their rows.
    about : CheckpointFeatures
        What is known of its forward pass.
    """

    name: str
    inputs: Mapping[str, Any]
    about: CheckpointFeatures

    @classmethod
    def of(cls, found: CheckpointFeatures, **more: Any) -> Candidate:
        """A checkpoint of which there are features, and probabilities maybe."""
        inputs = {"features": found.features, "probabilities": found.probabilities, **more}
        return cls(found.name, {k: v for k, v in inputs.items() if v is not None}, found)


@dataclass(eq=False)
class Scored:
    """What a measure gave for a checkpoint.

    Attributes
    ----------
    value : float
        NaN where it failed or does not apply.
    seconds, gflops : float
        What it took, apart from the forward pass.
    reason : str
        Why there is no value.
    said : tuple of str
        Its warnings.
    hits : ndarray, optional
        Of a measure that is a mean over test examples, their parts in it.
    """

    value: float = math.nan
    seconds: float = math.nan
    gflops: float = math.nan
    reason: str = ""
    said: tuple[str, ...] = ()
    hits: NDArray[Any] | None = field(default=None, repr=False)


def find_measures(
    measures: Sequence[Named] | Named, known: Mapping[str, RankingMeasure]
) -> tuple[RankingMeasure, ...]:
    """Measures by name, as they are, or out of a function."""
    given = [measures] if isinstance(measures, str) or callable(measures) else measures
    listed: list[Named] = [given] if isinstance(given, RankingMeasure) else list(given)
    if not listed:
        raise InputError("measures is empty: give at least one.")
    found = [_measure(item, known) for item in listed]
    names = [measure.name for measure in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"measures holds {name!r} {names.count(name)} times: give it once.")
    return tuple(found)


def _measure(item: Named, known: Mapping[str, RankingMeasure]) -> RankingMeasure:
    if isinstance(item, RankingMeasure):
        return item
    if callable(item):
        return _from_function(item)
    if item in known:
        return known[item]
    near = " or ".join(map(repr, get_close_matches(str(item), known)))
    hint = f" Did you mean {near}?" if near else ""
    raise InputError(
        f"measures holds {item!r}, which is none of {', '.join(known)}.{hint}{FUNCTIONS}"
    )


def _from_function(function: Callable[..., float]) -> RankingMeasure:
    """A measure out of a function: its arguments say what it takes and whether it splits."""
    arguments = inspect.signature(function).parameters
    own = "probabilities" if "test_probabilities" in arguments else "features"
    return RankingMeasure(
        name=getattr(function, "__name__", type(function).__name__),
        function=function,
        about="A function of your own.",
        cost="Unknown.",
        fails="Unknown.",
        flops=lambda n, d, classes: math.nan,
        takes=own,
        splits=f"test_{own}" in arguments,
        seeded="rng" in arguments,
        targets=("classes", "multilabel", "numbers"),
    )


class Scorer:
    """Computes measures of candidates on some rows of the same examples.

    Parameters
    ----------
    labels : ndarray
        For each example.
    targets : Targets
        The same, read.
    hits : dict of str to callable, optional
        Functions like a measure's that give its parts, one for each test example, by name.
    """

    def __init__(
        self,
        labels: NDArray[Any],
        targets: Targets,
        hits: Mapping[str, Callable[..., NDArray[Any]]],
    ) -> None:
        self.labels, self.targets, self.hits = labels, targets, hits

    def score(
        self,
        measure: RankingMeasure,
        candidate: Candidate,
        train: Rows,
        test: Rows | None,
        seed: int,
    ) -> Scored:
        """A measure on some rows, with its cost; a failure is recorded, not raised."""
        if self.targets.kind not in measure.targets:
            return Scored(reason=f"takes {' or '.join(measure.targets)}, not {self.targets.kind}")
        if measure.takes not in candidate.inputs:
            return Scored(reason=MISSING.get(measure.takes, f"has no {measure.takes}"))
        found = Scored()
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                self._compute(found, measure, candidate, train, test, seed)
            except Exception as error:  # one that fails must not stop the others
                found.reason = f"{error}" if isinstance(error, InputError) else repr(error)
        found.seconds = time.perf_counter() - start
        found.said = tuple(dict.fromkeys(_said(heard)))
        if not found.reason and not math.isfinite(found.value):
            found.value, found.reason = math.nan, f"gave {found.value}"
        rows = len(train) + (0 if test is None else len(test))
        found.gflops = self.flops(measure, candidate, rows) / 1e9
        return found

    def flops(self, measure: RankingMeasure, candidate: Candidate, rows: int) -> float:
        """Operations of a measure, as far as they are known.

        What takes a network counts by the operations of its forward pass of one example.
        """
        count, width = candidate.about.features.shape
        if measure.takes == "network":
            forward = candidate.about.gflops
            width = 0 if forward is None else round(1e9 * forward / count)
        elif measure.takes == "probabilities" and "probabilities" in candidate.inputs:
            width = candidate.inputs["probabilities"].shape[1]
        return measure.flops(rows, width, max(len(self.targets.classes), 1)) or math.nan

    def _compute(
        self,
        found: Scored,
        measure: RankingMeasure,
        candidate: Candidate,
        train: Rows,
        test: Rows | None,
        seed: int,
    ) -> None:
        inputs = candidate.inputs[measure.takes]
        options: dict[str, Any] = {"rng": seed} if measure.seeded else {}
        if test is not None and measure.splits:
            name = "test_probabilities" if measure.takes == "probabilities" else "test_features"
            options |= {name: inputs[test], "test_labels": self.labels[test]}
        elif test is not None:
            train = np.sort(np.concatenate([train, test]))
        if measure.name in self.hits and test is not None:
            found.hits = np.asarray(
                self.hits[measure.name](inputs[train], self.labels[train], **options), dtype=float
            )
            found.value = float(found.hits.mean())
        else:
            found.value = float(measure.function(inputs[train], self.labels[train], **options))


def _said(heard: Iterable[warnings.WarningMessage]) -> Iterable[str]:
    """What a measure warned of; what others warned of is passed on."""
    for one in heard:
        if issubclass(one.category, CurvewiseWarning):
            yield str(one.message)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
