"""LogME: how well a Bayesian linear regression from features explains the labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.ranking._examples import warn
from curvewise.ranking._moments import (
    TINY,
    Matrix,
    decompose,
    inner_products,
    mean_of,
    membership,
    outer_products,
    parts,
    products_with,
)
from curvewise.ranking._targets import KINDS, Targets, as_targets
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import FloatArray, as_matrix

EXACT = 1e-12
"""Share of the labels' squares below which what the features leave is taken for rounding."""

UNEVEN = 1e-5
"""Spread of most features, beside the largest value, below which they are not squared."""

MARGIN = 1e4 / EXACT
"""How far beyond the spectrum the ratio of signal to noise is searched."""


def logme(features: ArrayLike, labels: ArrayLike) -> float:
    """Log of the maximised evidence of a linear model, per example (You et al. 2021).

    Weights have the prior N(0, 1/α), labels the noise N(0, 1/β), and both α and β are such that the
    labels are most likely; there is no intercept. Classes are taken one against the others, and
    the mean over classes (or labels of a multi-label task, or outputs of a regression) is given.

    With the ratio λ = β/α given, the best noise is known, so that one number is searched for: over
    the whole range and then closely, which finds the global maximum also where the usual
    alternating updates stop at another, or never. Values differ from those of programs that count
    fewer eigenvalues than weights where features are more than examples, or depend on each other:
    they add (d − rank)/2n · log α, which can exceed all else.

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        As the checkpoint gives them.
    labels : array_like
        A class for each example (whole numbers or texts), a matrix of 0 and 1 (multi-label), or
        numbers with a fraction (regression), with a column for each output.

    Returns
    -------
    float
        More is better. All in-sample: nothing is held out.

    Warns
    -----
    CurvewiseWarning
        If there are fewer examples than dimensions, where any labels can be explained; if the
        labels are an exact linear function of the features, so that the evidence is infinite
        (noise of a millionth of the labels is then assumed); or if columns of the labels are
        constant and left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2
    >>> good = rng.standard_normal((200, 5)) + 2 * labels[:, None]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(logme(good, labels), 3), round(logme(bad, labels), 3)
    (-0.509, -1.072)
    """
    x = as_matrix(features, "features")
    n, d = x.shape
    targets = as_targets(labels, n, allowed=KINDS, measure="LogME")
    columns, left_out = _columns(targets)
    if left_out:
        outputs = columns.shape[0] + left_out
        warn(f"{left_out} of {outputs} columns of labels are constant: left out.")
    if n < d:
        warn(
            f"LogME of {n} examples with {d} features may be inflated, as so many weights explain "
            "any labels: give more examples than features, or reduce the features first, or rank "
            "by 'nleep' or 'h-score'."
        )
    spectrum, explained, rest = _project(x, columns)
    squares = explained.sum(axis=1) + rest
    if len(spectrum) < n:
        if exact := int((rest <= EXACT * squares).sum()):
            warn(
                f"{exact} of {len(rest)} columns of labels are an exact linear function of the "
                "features, so that their evidence has no bound: LogME is as large as the noise "
                "assumed for them (a millionth of the labels) makes it. Give more examples."
            )
        rest = np.maximum(rest, EXACT * squares)
    return float(np.mean(_evidence(n, spectrum, explained, rest)))


def _columns(targets: Targets) -> tuple[Any, int]:
    """Outputs × examples, by columns, and how many constant outputs are not among them."""
    if targets.values is not None:
        values = targets.values.T
        if not np.isfinite(values).all():
            raise InputError("labels has infinite values: leave those examples out.")
        varied = values.max(axis=1) > values.min(axis=1)
        if not varied.any():
            raise InputError("labels holds one value only: it takes two to tell.")
        return values[varied], int((~varied).sum())
    member = membership(targets.rows, targets.codes, (len(targets.classes), targets.count))
    counts = np.bincount(targets.codes, minlength=len(targets.classes))
    varied = (counts > 0) & (counts < targets.count)
    if not varied.any():
        raise InputError("labels gives every example the same classes: it takes two to tell.")
    return member[np.flatnonzero(varied)], int((~varied).sum())


def _project(x: Matrix, columns: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Squared singular values, squares of the labels along them, and what is left of each."""
    n, d = x.shape
    if _is_uneven(x):
        return _project_closely(x, columns)
    if n <= d:
        spectrum, kept, lost = decompose(outer_products(x), d)
        return spectrum, (columns @ kept) ** 2, ((columns @ lost) ** 2).sum(axis=1)
    crossed = products_with(columns, x)
    spectrum, kept, _ = decompose(inner_products(x), n)
    explained: FloatArray = (crossed @ kept) ** 2 / spectrum
    return spectrum, explained, _left(columns, explained)


def _is_uneven(x: Matrix) -> bool:
    """Whether most features vary so little beside the largest that squares lose them."""
    high, low = x.max(axis=0), x.min(axis=0)
    squares = sum(np.einsum("ij,ij->j", part, part) for _, part in parts(x, mean_of(x)))
    spread = np.sqrt(squares[high > low] / len(x))
    largest = float(np.maximum(abs(high), abs(low)).max())
    return bool(len(spread) and np.median(spread) < UNEVEN * largest)


def _project_closely(x: Matrix, columns: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same without squares, by a singular value decomposition, which takes longer."""
    from scipy.linalg import svd

    vectors, sizes, _ = svd(x.astype(np.float64), full_matrices=False)
    kept = sizes > sizes[0] * TINY * max(x.shape)
    explained: FloatArray = (columns @ vectors[:, kept]) ** 2
    return sizes[kept][::-1] ** 2, explained[:, ::-1], _left(columns, explained)


def _left(columns: Any, explained: FloatArray) -> FloatArray:
    squares = np.asarray((columns * columns).sum(axis=1)).reshape(-1)
    found: FloatArray = np.maximum(squares - explained.sum(axis=1), 0.0)
    return found


def _evidence(n: int, spectrum: FloatArray, explained: FloatArray, rest: FloatArray) -> list[float]:
    """Maximised log evidence per example of each output."""
    from scipy.optimize import minimize_scalar

    if not len(spectrum):  # features are 0: all is noise
        return [-0.5 * (math.log(2 * math.pi * left / n) + 1) for left in rest]
    low = -math.log(MARGIN * spectrum[-1])
    high = math.log(MARGIN / spectrum[0])
    grid = np.linspace(low, high, 2 + math.ceil(high - low))
    shrunk = 1 / (1 + np.exp(grid[:, None]) * spectrum)
    coarse = n * np.log(explained @ shrunk.T + rest[:, None]) - np.log(shrunk).sum(axis=1)
    found: list[float] = []
    for own, left, best in zip(explained, rest, coarse.argmin(axis=1), strict=True):
        fine = minimize_scalar(
            lambda u, own=own, left=left: _deviance(n, u, spectrum, own, left),
            bounds=(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]),
            method="bounded",
            options={"xatol": 1e-6},
        )
        lowest = min(float(fine.fun), float(coarse[len(found), best]))
        found.append(-0.5 * (math.log(2 * math.pi / n) + 1 + lowest / n))
    return found


def _deviance(n: int, u: float, spectrum: FloatArray, explained: FloatArray, rest: float) -> float:
    """−2 log evidence, less a constant, at the log ratio u of β to α and the best noise for it."""
    grown = 1 + math.exp(u) * spectrum
    return n * math.log(float((explained / grown).sum()) + rest) + float(np.log(grown).sum())


def _flops(n: int, d: int, classes: int) -> float:
    small, large = min(n, d), max(n, d)
    return float(large) * small**2 + 9.0 * small**3 + 2.0 * classes * small * (small + 200)


MEASURES = (
    RankingMeasure(
        "logme",
        logme,
        about="Maximised evidence of a Bayesian linear regression on the labels (You et al. 2021).",
        cost="One product of the features with themselves and its eigenvectors: seconds of CPU for "
        "10,000 examples of 2,048 dimensions.",
        fails="May be inflated with fewer examples than dimensions; depends on where the features' "
        "zero is, as the model has no intercept.",
        flops=_flops,
        targets=KINDS,
    ),
)
