"""Training and test rows, parts of them drawn anew, and how scores vary from part to part."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking._targets import Targets
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import FloatArray

Rows = NDArray[np.int64]
FAILED_SHARE = 0.2  # of replicates that may fail before a checkpoint's spread is called unknown
LEAST = 10  # replicates for a spread to be known


def split_rows(
    targets: Targets, test: float | ArrayLike | None, rng: np.random.Generator
) -> tuple[Rows, Rows | None]:
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


def draw_part(
    rows: Rows, codes: NDArray[np.int64] | None, share: float, rng: np.random.Generator
) -> Rows:
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
