"""One measure on one checkpoint: what it takes, what it gives, and why it failed."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking.distances import MEASURES as _KNN
from curvewise.ranking.distances import MEASURES_PARC as _PARC
from curvewise.ranking.measure import RankingMeasure, Targets
from curvewise.ranking.moments import MEASURES as _LOGME
from curvewise.ranking.moments import MEASURES_GBC as _GBC
from curvewise.ranking.moments import MEASURES_H_SCORE as _H_SCORE
from curvewise.ranking.moments import MEASURES_TRANSRATE as _TRANSRATE
from curvewise.ranking.moments import h_score, signed_h_score
from curvewise.ranking.prediction import MEASURES as _LEEP
from curvewise.ranking.prediction import MEASURES_NLEEP as _NLEEP
from curvewise.ranking.prediction import nleep, nleep_reduced, reduce_features
from curvewise.ranking.scores import CheckpointFeatures
from curvewise.types.units import FloatArray

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


def find_measures(measures: Sequence[Named] | Named, known: Mapping[str, RankingMeasure]) -> tuple[RankingMeasure, ...]:
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
    raise InputError(f"measures holds {item!r}, which is none of {', '.join(known)}.{hint}{FUNCTIONS}")


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

    def __init__(self, labels: NDArray[Any], targets: Targets, hits: Mapping[str, Callable[..., NDArray[Any]]]) -> None:
        self.labels, self.targets, self.hits = labels, targets, hits

    def score(self, measure: RankingMeasure, candidate: Candidate, train: Rows, test: Rows | None, seed: int) -> Scored:
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
        self, found: Scored, measure: RankingMeasure, candidate: Candidate, train: Rows, test: Rows | None, seed: int
    ) -> None:
        inputs = candidate.inputs[measure.takes]
        options: dict[str, Any] = {"rng": seed} if measure.seeded else {}
        if test is not None and measure.splits:
            name = "test_probabilities" if measure.takes == "probabilities" else "test_features"
            options |= {name: inputs[test], "test_labels": self.labels[test]}
        elif test is not None:
            train = np.sort(np.concatenate([train, test]))
        if measure.name in self.hits and test is not None:
            found.hits = np.asarray(self.hits[measure.name](inputs[train], self.labels[train], **options), dtype=float)
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


# Training and test rows, parts of them drawn anew, and how scores vary from part to part.

Rows = NDArray[np.int64]
FAILED_SHARE = 0.2  # of replicates that may fail before a checkpoint's spread is called unknown
LEAST = 10  # replicates for a spread to be known


def split_rows(targets: Targets, test: float | ArrayLike | None, rng: np.random.Generator) -> tuple[Rows, Rows | None]:
    """Training and test rows: a share of each class, a mask of the test rows, or no test rows.

    A class keeps at least one training row, so that no test row is of a class unknown.
    """
    if test is None:
        return np.arange(len(targets)), None
    if isinstance(test, int | float | np.number) and not isinstance(test, bool | np.bool_):
        if not 0 < test < 1:
            raise InputError(f"test={test!r}: give a share between 0 and 1, a mask, or None.")
        held = np.zeros(len(targets), dtype=np.bool_)
        for rows in strata(targets):
            held[rng.permutation(rows)[: round(float(test) * len(rows))]] = True
            if held[rows].all():
                held[rows[0]] = False
    else:
        held = np.asarray(test)
        if held.dtype != np.bool_ or held.shape != (len(targets),):
            raise InputError(
                f"test has shape {held.shape} of {held.dtype}: give a mask with True for each "
                f"test example among {len(targets)}, a share, or None."
            )
    if not held.any() or held.all():
        raise InputError(
            f"test leaves {int((~held).sum())} training and {int(held.sum())} test examples: "
            "both are needed. Give more examples, another share, or test=None."
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def strata(targets: Targets) -> list[Rows]:
    """Rows of each class; of several labels or numbers, all rows at once."""
    if targets.kind != "classes":
        return [np.arange(len(targets))]
    return [np.flatnonzero(targets.codes == code) for code in np.unique(targets.codes)]


def share_for(measure: RankingMeasure) -> float:
    """The share of the examples that a replicate keeps.

    Half of them where a measure is scored on examples it was not fitted on, or has chance in it
    which would be multiplied like the spread. In-sample fits depend on the number of examples
    beside that of dimensions, so that as little as is practical is taken away: a fifth.
    """
    return 0.5 if measure.splits or measure.seeded else 0.8


def draw_part(rows: Rows, codes: NDArray[np.int64] | None, share: float, rng: np.random.Generator) -> Rows:
    """A random share of the rows, of each class; numbers that are not whole are rounded by lot.

    Of a class with one row, that row: without it, the class would be unknown.
    """
    dealt = rng.permutation(rows)
    if codes is None:
        return np.sort(dealt[: max(1, round(share * len(rows)))])
    dealt = dealt[np.argsort(codes[dealt], kind="stable")]
    _, first, count = np.unique(codes[dealt], return_index=True, return_counts=True)
    place = np.arange(len(dealt)) - np.repeat(first, count)
    kept = np.maximum(np.floor(share * count + rng.random(len(count))), 1)
    return np.sort(dealt[place < np.repeat(kept, count)])


def draw_parts(
    train: Rows, test: Rows | None, targets: Targets, share: float, rng: np.random.Generator
) -> tuple[Rows, Rows | None]:
    """A random share of the training rows, and of the test rows."""
    codes = targets.codes if targets.kind == "classes" else None
    shown = None if test is None else draw_part(test, codes, share, rng)
    return draw_part(train, codes, share, rng), shown


def hit_replicates(hits: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Means of hits over test examples that are drawn anew, the same ones for every checkpoint.

    Parameters
    ----------
    hits : ndarray, shape (checkpoints, test examples)

    Returns
    -------
    ndarray, shape (resamples, checkpoints)
    """
    count = hits.shape[1]
    weights = rng.multinomial(count, np.full(count, 1 / count), size=resamples)
    found: FloatArray = weights @ hits.T / count
    return found


class Replicates:
    """How scores of the same examples vary together, from replicates.

    A share f of the examples without replacement has, around the whole, √((1 − f) / f) of the
    spread that the whole has around the population. Replicates are centred on their own mean:
    fewer examples shift scores, and how far is no concern of the spread. Those that fail for a
    checkpoint are dropped; one that fails often has no known spread.

    Parameters
    ----------
    replicates : ndarray, shape (replicates, checkpoints)
    share : float
        Of the examples that each rests on; for a bootstrap sample, too, the default is right.

    Attributes
    ----------
    deviations : ndarray, shape (replicates, checkpoints)
        Mean 0; NaN throughout for a checkpoint of unknown spread.
    """

    def __init__(self, replicates: FloatArray, share: float = 0.5) -> None:
        lost = ~np.isfinite(replicates)
        unknown = lost.mean(axis=0) > FAILED_SHARE if len(replicates) else lost.any(axis=0)
        whole = ~lost[:, ~unknown].any(axis=1)
        kept = np.where(unknown, np.nan, replicates)[whole]
        if len(kept) < LEAST:
            kept = np.full((LEAST, replicates.shape[1]), np.nan)
        scale = np.sqrt(share / (1 - share))
        self.deviations: FloatArray = scale * (kept - kept.mean(axis=0))

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the spread."""
        return len(self.deviations) - 1

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which checkpoints have a known spread."""
        return np.asarray(np.isfinite(self.deviations).all(axis=0), dtype=np.bool_)

    def errors(self) -> FloatArray:
        """Standard error of each score."""
        found: FloatArray = np.sqrt((self.deviations**2).sum(axis=0) / self.freedom)
        return found


# Measures as they are computed on parts of the examples.

ENERGY = 0.8  # what nleep keeps by default


def reused(
    measure: RankingMeasure, candidate: Candidate, train: Rows, test: Rows | None
) -> tuple[RankingMeasure, Candidate]:
    """The measure to compute on parts of the examples, and what of.

    Of NLEEP the principal components of the whole sample are kept. They are by far the largest part
    of its cost, and hardly vary from half to half beside the mixture; the coverage of intervals is
    that with components of each half (``benchmarks/ranking_coverage.py``). The H-score goes on
    below 0, without which parts of examples that all score 0 would seem not to vary.
    """
    if measure.function is h_score:
        return replace(measure, function=signed_h_score), candidate
    if measure.function is not nleep:
        return measure, candidate
    features = candidate.inputs["features"]
    tested = None if test is None else features[test]
    reduced, shown = reduce_features(features[train], tested, ENERGY)
    rows = train if test is None else np.concatenate([train, test])
    found: NDArray[Any] = np.empty((len(features), reduced.shape[1]), dtype=reduced.dtype)
    found[rows] = reduced if shown is None else np.concatenate([reduced, shown])
    inputs = {**candidate.inputs, "features": found}
    return replace(measure, function=_nleep_again), replace(candidate, inputs=inputs)


def _nleep_again(
    features: NDArray[Any],
    labels: ArrayLike,
    *,
    test_features: NDArray[Any] | None = None,
    test_labels: ArrayLike | None = None,
    rng: int = 0,
) -> float:
    return nleep_reduced(features, labels, test_features, test_labels, rng=rng)


# The measures that need features and labels alone, by name.

MEASURES: Mapping[str, RankingMeasure] = {
    measure.name: measure
    for family in (_NLEEP, _LEEP, _LOGME, _H_SCORE, _GBC, _TRANSRATE, _PARC, _KNN)
    for measure in family
}
"""By name; those that train something are in :mod:`curvewise.ranking.networks.rank`."""
