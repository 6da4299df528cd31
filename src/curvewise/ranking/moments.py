"""LogME, H-score, GBC and TransRate: measures from means and second moments of the features.

Sums of products are in double precision, over some rows of the features at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking.measure import (
    KINDS,
    LabelledRows,
    RankingMeasure,
    Targets,
    as_matrix,
    as_number,
    as_targets,
    check_known,
    read_rows,
    warn,
    warn_of_lone_classes,
)
from curvewise.types.results import FloatArray, check_whole

Matrix = NDArray[np.floating[Any]]
TINY = float(np.finfo(np.float64).eps)
# Numbers of the features that are held in double precision at a time (32 MB).
PART = 2**22

# LogME: share of the labels' squares below which the unexplained part is rounding.
EXACT = 1e-12
# LogME: median spread of features, relative to the largest value, below which squaring would lose them.
UNEVEN = 1e-5
# LogME: factor beyond the spectrum up to which the ratio of signal to noise is searched.
MARGIN = 1e4 / EXACT
# TransRate: rounding of an eigenvalue, relative to 1, below which a Cholesky factor gives the determinant.
RESOLVED = 1e-3
COVARIANCES = ("spherical", "diagonal")
# GBC: least variance of a class, as a share of the variance of all examples.
FLOOR = 1e-8


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
            f"LogME of {n} examples with {d} features may be inflated, as so many weights explain any labels: give "
            "more examples than features, or reduce the features first, or rank by 'nleep' or 'h-score'."
        )
    if (x == x[0]).all() and x[0].any():
        warn(
            "the features are the same for all examples: LogME is that of an intercept, which other checkpoints lack, "
            "and says nothing of the labels."
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
    """Return outputs × examples, without constant outputs, and the number of those."""
    if targets.values is not None:
        values = targets.values.T
        if not np.isfinite(values).all():
            raise InputError("has infinite values: leave those examples out.", argument="labels")
        varied = values.max(axis=1) > values.min(axis=1)
        if not varied.any():
            raise InputError("holds one value only: it takes two to tell.", argument="labels")
        return values[varied], int((~varied).sum())
    member = membership(targets.rows, targets.codes, (len(targets.classes), targets.count))
    counts = np.bincount(targets.codes, minlength=len(targets.classes))
    varied = (counts > 0) & (counts < targets.count)
    if not varied.any():
        raise InputError("gives every example the same classes: it takes two to tell.", argument="labels")
    return member[np.flatnonzero(varied)], int((~varied).sum())


def _project(x: Matrix, columns: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return squared singular values, squares of the labels along them, and the unexplained squares of each output."""
    n, d = x.shape
    high, low = x.max(axis=0), x.min(axis=0)
    squares = sum(np.einsum("ij,ij->j", part, part) for _, part in parts(x, mean_of(x)))
    spread = np.sqrt(squares[high > low] / n)
    largest = float(np.maximum(abs(high), abs(low)).max())
    if len(spread) and np.median(spread) < UNEVEN * largest:
        # Most features vary so little beside the largest that XᵀX would lose them to rounding: take the singular
        # value decomposition of X itself, which is slower.
        from scipy.linalg import svd

        vectors, sizes, _ = svd(x.astype(np.float64), full_matrices=False)
        kept = sizes > sizes[0] * TINY * max(x.shape)
        explained: FloatArray = (columns @ vectors[:, kept]) ** 2
        return sizes[kept][::-1] ** 2, explained[:, ::-1], _left(columns, explained)
    if n <= d:
        # The null space of XXᵀ holds the unexplained part, which a difference of squares would lose to rounding.
        spectrum, kept, lost = decompose(outer_products(x), d)
        return spectrum, (columns @ kept) ** 2, ((columns @ lost) ** 2).sum(axis=1)
    crossed = products_with(columns, x)
    spectrum, kept, _ = decompose(inner_products(x), n)
    explained = (crossed @ kept) ** 2 / spectrum
    return spectrum, explained, _left(columns, explained)


def _left(columns: Any, explained: FloatArray) -> FloatArray:
    """Return the squares of the labels that the features leave unexplained."""
    squares = np.asarray((columns * columns).sum(axis=1)).reshape(-1)
    found: FloatArray = np.maximum(squares - explained.sum(axis=1), 0.0)
    return found


def _evidence(n: int, spectrum: FloatArray, explained: FloatArray, rest: FloatArray) -> list[float]:
    """Return the maximised log evidence per example of each output.

    At the log ratio u of β to α and the best noise for it, −2 log evidence is, but for a constant,
    n log(Σ explained/(1 + e^u s) + rest) + Σ log(1 + e^u s) over the squared singular values s.
    """
    from scipy.optimize import minimize_scalar

    def deviance(u: float, own: FloatArray, left: float) -> float:
        grown = 1 + math.exp(u) * spectrum
        return n * math.log(float((own / grown).sum()) + left) + float(np.log(grown).sum())

    if not len(spectrum):  # features are 0: all is noise
        return [-0.5 * (math.log(2 * math.pi * left / n) + 1) for left in rest]
    low = -math.log(MARGIN * spectrum[-1])
    high = math.log(MARGIN / spectrum[0])
    # A coarse grid over the whole range first: the deviance may have several minima.
    grid = np.linspace(low, high, 2 + math.ceil(high - low))
    shrunk = 1 / (1 + np.exp(grid[:, None]) * spectrum)
    coarse = n * np.log(explained @ shrunk.T + rest[:, None]) - np.log(shrunk).sum(axis=1)
    found: list[float] = []
    for own, left, best in zip(explained, rest, coarse.argmin(axis=1), strict=True):
        fine = minimize_scalar(
            deviance,
            args=(own, left),
            bounds=(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]),
            method="bounded",
            options={"xatol": 1e-6},
        )
        lowest = min(float(fine.fun), float(coarse[len(found), best]))
        found.append(-0.5 * (math.log(2 * math.pi / n) + 1 + lowest / n))
    return found


def h_score(features: ArrayLike, labels: ArrayLike, shrinkage: float | None = None) -> float:
    """Trace of the inverse covariance of features times the covariance of their class means.

    H = (1 − a) tr(Σ_a⁻¹ Σ_means) with Σ_a = (1 − a) Σ + a tr(Σ)/d I: Bao et al. (2019) with a = 0,
    regularised by Ibrahim et al. (2022). Covariances divide by the number of examples.

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        As the checkpoint gives them.
    labels : array_like
        A class for each example, or a matrix of 0 and 1 (multi-label: a row for each example and
        label).
    shrinkage : float, optional
        a, from 0 (the plain H-score, by the pseudo-inverse) to below 1; by default Ledoit's and
        Wolf's (2004), from the data.

    Returns
    -------
    float
        From 0 to the number of classes less one; more is better. In-sample.

    Warns
    -----
    CurvewiseWarning
        If the plain score is asked for and there are no more examples than dimensions, where it is
        the number of classes less one whatever the features; if a class has a single example; if
        the features are the same for all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2
    >>> good = rng.standard_normal((200, 5)) + 2 * labels[:, None]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(h_score(good, labels), 3), round(h_score(bad, labels), 3)
    (0.833, 0.0)
    """
    if shrinkage is not None:
        as_number(shrinkage, "shrinkage", "give a number from 0 to below 1, or None.", lambda a: 0 <= a < 1)
    return max(signed_h_score(features, labels, shrinkage), 0.0)


def signed_h_score(features: ArrayLike, labels: ArrayLike, shrinkage: float | None = None) -> float:
    """Compute the H-score, continued below 0 where the covariance is not distinguishable from a sphere.

    There the estimated shrinkage is a ≥ 1, which is taken as 1, so that many samples score exactly
    0 and seem not to vary. Around a = 1, H is (1 − a) d tr(Σ_means)/tr(Σ), of which (1/a − 1) in
    the place of (1 − a) is the bounded continuation. Intervals take their spread from it.
    """
    examples = read_rows(features, labels, "the H-score")
    n, d = examples.features.shape
    warn_of_lone_classes(examples.lone, "which is its own mean and so seems well separated")
    if shrinkage == 0 and n <= d:
        warn(
            f"the plain H-score of {n} examples with {d} features is the number of classes less "
            "one whatever the features: leave shrinkage out, or give more examples."
        )
    centre = mean_of(examples.features)
    products = smaller_products(examples.features, centre)
    if examples.same or not np.trace(products) > 0:
        warn("the features are the same for all examples: the H-score is 0.")
        return 0.0
    if shrinkage is None:
        shrinkage = _ledoit_wolf(examples, centre, products)
    if shrinkage >= 1:
        # Σ_a is a multiple of the identity, and H would be 0: its continuation around a = 1.
        between = float((_weighted_means(examples, centre) ** 2).sum())
        return float((1 / shrinkage - 1) * between * n * d / np.trace(products))
    if n < d:
        # By examples, as X Σ_a⁻¹ Xᵀ = XXᵀ (ridge I + (1 − a) XXᵀ/n)⁻¹. The matrix that makes weighted class means of X
        # has orthonormal rows, divided by √n.
        left = membership(np.arange(n), examples.codes, (len(examples.counts), n)).toarray().T
        left /= np.sqrt(examples.counts)
        right = products / n @ left
    else:
        left = right = _weighted_means(examples, centre).T
    return float((1 - shrinkage) * _trace(products / n, left, right, shrinkage, (n, d)))


def _ledoit_wolf(examples: LabelledRows, centre: FloatArray, products: FloatArray) -> float:
    """Estimate the shrinkage towards a multiple of the identity with the least expected squared error.

    The estimate may be above 1. XᵀX and XXᵀ have the same trace and squares, so either will do.
    """
    n, d = examples.features.shape
    if d == 1:  # the covariance is such a multiple
        return 0.0
    fourth = sum(float((np.einsum("ij,ij->i", part, part) ** 2).sum()) for _, part in parts(examples.features, centre))
    squares = float(np.einsum("ij,ij->", products, products)) / n**2
    apart = squares - float(np.trace(products) / n) ** 2 / d
    noise = (fourth / n - squares) / n
    return max(noise / apart, 0.0) if apart > 0 else math.inf


def _weighted_means(examples: LabelledRows, centre: FloatArray) -> FloatArray:
    """Return class means whose products add up to the covariance of class means."""
    means = class_means(examples.features, examples.codes, examples.counts, centre)
    found: FloatArray = means * np.sqrt(examples.counts / len(examples.codes))[:, None]
    return found


def _trace(matrix: FloatArray, left: FloatArray, right: FloatArray, shrinkage: float, shape: tuple[int, int]) -> float:
    """Compute tr(leftᵀ Σ_a⁻¹ right) of the products of features of a shape, which are shrunk."""
    from scipy.linalg import solve

    if shrinkage == 0:
        values, vectors, _ = decompose(matrix, max(shape))
        return float(((vectors.T @ left) * (vectors.T @ right) / values[:, None]).sum())
    shrunk = (1 - shrinkage) * matrix
    shrunk[np.diag_indices_from(shrunk)] += shrinkage * np.trace(matrix) / shape[1]
    return float((solve(shrunk, right, assume_a="pos", check_finite=False) * left).sum())


def transrate(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    eps: float = 1e-4,
    unit_scale: bool = False,
    rows: Literal["plain", "unit"] = "plain",
) -> float:
    """Coding rate of all features less the mean coding rate within classes (Huang et al. 2022).

    The rate of n centred rows Z is ½ log det(I + ZᵀZ/(n ε)), in nats; classes count by their share
    of the examples, as in the author's program. (The listing printed in the paper takes their plain
    mean, which is the same for classes of one size.)

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        As the checkpoint gives them.
    labels : array_like
        A class for each example, or a matrix of 0 and 1 (multi-label: a row for each example and
        label).
    eps : float
        Squared distortion that is allowed.
    unit_scale : bool
        Divide the features by the root of their mean variance first, so that the result does not
        depend on their scale, which differs between checkpoints. Not so in the paper.
    rows : {"plain", "unit"}
        "unit" divides each example's features by their norm, before and after they are centred, as
        the author's program does; the result then does not depend on their scale either. "plain" is
        the formula.

    Returns
    -------
    float
        More is better. In-sample.

    Warns
    -----
    CurvewiseWarning
        If there are fewer examples than dimensions, where rates grow with the number of examples;
        or if there are two classes: as classes are centred on the mean of all, two classes of one
        size have the same rate as both together however far apart they lie.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 4
    >>> good = rng.standard_normal((200, 5)) + 2 * np.eye(4, 5)[labels]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(transrate(good, labels), 3), round(transrate(bad, labels), 3)
    (0.51, 0.126)
    """
    as_number(eps, "eps", "give a number above 0.", lambda v: 0 < v < np.inf)
    check_known(rows, "rows", ("plain", "unit"))
    examples = read_rows(features, labels, "TransRate")
    x, centre = examples.features, mean_of(examples.features)
    if rows == "unit":
        x = _unit_rows(x)
        x, centre = _unit_rows(x - x.mean(axis=0)), np.zeros(x.shape[1])
    n, d = x.shape
    if n < d:
        warn(
            f"TransRate of {n} examples with {d} features says how many examples there are rather "
            "than how they lie: give more examples than features, or reduce the features first."
        )
    if len(examples.counts) == 2:
        warn(
            "TransRate hardly sees how far apart two classes lie, as both are centred on the mean "
            "of all examples: rank by another measure."
        )
    order = np.argsort(examples.codes, kind="stable")
    ends = np.cumsum(examples.counts)
    within = 0.0
    products = smaller_products(x, centre)
    if unit_scale:
        eps *= float(np.trace(products)) / (n * d) or 1.0
    for end, count in zip(ends, examples.counts, strict=True):
        own = x[order[end - count : end]]
        within += float(count) / n * _rate(smaller_products(own, centre), count * eps, max(count, d))
    return _rate(products, n * eps, max(n, d)) - within


def _unit_rows(x: Matrix) -> FloatArray:
    """Return rows of norm 1; a row of zeros stays as it is."""
    norms = np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    found: FloatArray = x / np.where(norms > 0, norms, 1.0)
    return found


def _rate(products: FloatArray, scale: float, longest: int) -> float:
    """Compute ½ log det(I + products/scale), of a matrix whose larger side is ``longest``."""
    inner = products / scale
    rounding = TINY * longest
    if rounding * float(np.trace(inner)) > RESOLVED:
        # Products so large that 1 is lost to rounding beside them: only the eigenvalues above rounding count.
        values = np.linalg.eigvalsh(inner)
        return float(np.log1p(values[values > rounding * values[-1]]).sum()) / 2
    inner[np.diag_indices_from(inner)] += 1.0
    return float(np.log(np.diag(np.linalg.cholesky(inner))).sum())


def gbc(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    covariance: Literal["spherical", "diagonal"] = "spherical",
    dims: int | None = 64,
) -> float:
    """Gaussian Bhattacharyya coefficient: overlap of classes, negative (Pándy et al. 2022).

    −Σ exp(−D) over ordered pairs of different classes, D the Bhattacharyya distance of Gaussians
    with the means and variances of the two classes. (The released program drops the number of
    dimensions in the logarithm's term for spherical Gaussians; here it stands.)

    Parameters
    ----------
    features : array_like, shape (examples, dimensions)
        As the checkpoint gives them.
    labels : array_like
        A class for each example, or a matrix of 0 and 1 (multi-label: a row for each example and
        label).
    covariance : {"spherical", "diagonal"}
        One variance for each class, or one for each class and dimension.
    dims : int, optional
        Principal components kept; None keeps the features as they are.

    Returns
    -------
    float
        From −C(C − 1) for C classes that are all the same to 0 for classes apart; more is better.
        In-sample.

    Warns
    -----
    CurvewiseWarning
        If a class has a single example (it is given the mean variance within the others), or
        hardly any variance (at least 1e-8 of that of all examples is assumed), which moves it apart
        from the others; or if the features are the same for all examples.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2
    >>> good = rng.standard_normal((200, 5)) + 2 * labels[:, None]
    >>> bad = rng.standard_normal((200, 5))
    >>> round(gbc(good, labels), 3), round(gbc(bad, labels), 3)
    (-0.138, -1.973)
    """
    check_known(covariance, "covariance", COVARIANCES)
    if dims is not None:
        dims = check_whole(dims, "dims", 1)
    examples = read_rows(features, labels, "GBC")
    if dims is not None and dims < examples.features.shape[1]:
        x = principal_coordinates(examples.features, dims)
    else:
        x = examples.features.astype(np.float64)
    x -= x.mean(axis=0)
    total = float((x**2).mean())
    if examples.same or not total > 0:
        warn("the features are the same for all examples: GBC is as low as it can be.")
        return float(-len(examples.counts) * (len(examples.counts) - 1))
    if covariance == "diagonal":  # dimensions that say nothing of any class
        x = x[:, (x**2).mean(axis=0) >= FLOOR * total]
    means = class_means(x, examples.codes, examples.counts, np.zeros(x.shape[1]))
    variances = class_means((x - means[examples.codes]) ** 2, examples.codes, examples.counts, np.zeros(x.shape[1]))
    many = examples.counts > 1
    if many.any():  # a class of one example has no variance: it gets that within the others
        variances[~many] = examples.counts[many] @ variances[many] / examples.counts[many].sum()
    if covariance == "spherical":
        variances = variances.mean(axis=1, keepdims=True)
    warn_of_lone_classes(examples.lone, "and so no variance: it is given that within the others")
    if tiny := int((variances < FLOOR * total).any(axis=1).sum()):
        warn(
            f"{tiny} of {len(variances)} classes have hardly any variance, so that GBC takes them "
            "for perfectly apart: give more examples of them, or fewer dims."
        )
    return _overlap(means, np.maximum(variances, FLOOR * total))


def _overlap(means: FloatArray, variances: FloatArray) -> float:
    """Compute −Σ exp(−D) over ordered pairs of classes."""
    each = means.shape[1] // variances.shape[1]  # dimensions that share a variance
    logs = each * np.log(variances).sum(axis=1)
    total = 0.0
    # A class with all those after it at a time: memory grows with classes, not with pairs.
    for one in range(len(means) - 1):
        middle = (variances[one] + variances[one + 1 :]) / 2
        moved = ((means[one] - means[one + 1 :]) ** 2 / middle).sum(axis=1) / 8
        spread = each * np.log(middle).sum(axis=1) / 2 - (logs[one] + logs[one + 1 :]) / 4
        total -= 2.0 * float(np.exp(-moved - spread).sum())
    return total


def mean_of(features: Matrix) -> FloatArray:
    """Return the mean of each feature in double precision."""
    mean: FloatArray = features.mean(axis=0, dtype=np.float64)
    return mean


def parts(features: Matrix, centre: FloatArray | None) -> Iterator[tuple[slice, FloatArray]]:
    """Yield some rows at a time in double precision, with their places.

    Less the centre: one row for all, or a column with a number for each row.
    """
    step = max(1, PART // features.shape[1])
    for start in range(0, len(features), step):
        rows = slice(start, start + step)
        part = features[rows].astype(np.float64)
        if centre is not None:
            part -= centre if centre.ndim == 1 else centre[rows]
        yield rows, part


def inner_products(features: Matrix, centre: FloatArray | None = None) -> FloatArray:
    """Return XᵀX, of dimensions with dimensions.

    >>> inner_products(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[10., 14.],
           [14., 20.]])
    """
    found = np.zeros((features.shape[1], features.shape[1]))
    for _, part in parts(features, centre):
        found += part.T @ part
    return found


def outer_products(features: Matrix, centre: FloatArray | None = None) -> FloatArray:
    """Return XXᵀ, of examples with examples.

    >>> outer_products(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 5., 11.],
           [11., 25.]])
    """
    return inner_products(features.T, None if centre is None else centre[:, None])


def smaller_products(features: Matrix, centre: FloatArray) -> FloatArray:
    """Return XᵀX or XXᵀ, whichever is smaller: both have the same eigenvalues above 0."""
    build = outer_products if len(features) < features.shape[1] else inner_products
    return build(features, centre)


def products_with(weights: Any, features: Matrix, centre: FloatArray | None = None) -> FloatArray:
    """Return WX for weights (outputs × examples), an array or a sparse one by columns.

    >>> products_with(np.array([[1.0, 1.0]]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[4., 6.]])
    """
    found: FloatArray = np.zeros((weights.shape[0], features.shape[1]))
    for rows, part in parts(features, centre):
        found += weights[:, rows] @ part
    return found


def membership(rows: NDArray[np.int64], codes: NDArray[np.int64], shape: tuple[int, int]) -> Any:
    """Return sparse classes × examples, 1 where an example has the class."""
    from scipy.sparse import csc_array

    return csc_array((np.ones(len(rows)), (codes, rows)), shape=shape)


def class_means(
    features: Matrix, codes: NDArray[np.int64], counts: NDArray[np.int64], centre: FloatArray
) -> FloatArray:
    """Return the mean of each class, less the centre."""
    member = membership(np.arange(len(codes)), codes, (len(counts), len(codes)))
    means: FloatArray = products_with(member, features, centre) / counts[:, None]
    return means


def decompose(symmetric: FloatArray, longest: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return eigenvalues above rounding, their vectors, and the vectors of the others.

    ``longest`` is the larger side of the matrix whose products these are.
    """
    # The same LAPACK routine as scipy's driver="evd", which fails for one dimension before 1.14.
    values, vectors = np.linalg.eigh(symmetric)
    kept = values > max(float(values[-1]), 0.0) * TINY * longest
    return values[kept], vectors[:, kept], vectors[:, ~kept]


def principal_coordinates(features: Matrix, dims: int) -> FloatArray:
    """Return examples along at most ``dims`` principal axes, around their mean.

    Axes along which there is nothing but rounding are left out, except the first.

    >>> principal_coordinates(np.array([[0.0, 5.0], [2.0, 5.0]]), 2).round(6) ** 2
    array([[1.],
           [1.]])
    """
    from scipy.linalg import eigh

    n, d = features.shape
    centre = mean_of(features)
    size = min(n, d)
    values, vectors = eigh(smaller_products(features, centre), subset_by_index=(max(0, size - dims), size - 1))
    kept = values > values[-1] * TINY * max(n, d)
    kept[-1] = True
    if n < d:
        coordinates: FloatArray = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))
        return coordinates
    return np.concatenate([part @ vectors[:, kept] for _, part in parts(features, centre)])


def _flops(n: float, d: float, cubic: float) -> float:
    """Count the operations of XᵀX or XXᵀ, whichever is smaller, and of a decomposition of the result."""
    return float(max(n, d)) * min(n, d) ** 2 + cubic * min(n, d) ** 3


MEASURES = (
    RankingMeasure(
        "logme",
        logme,
        about="Maximised evidence of a Bayesian linear regression on the labels (You et al. 2021).",
        cost="One product of the features with themselves and its eigenvectors: seconds of CPU for "
        "10,000 examples of 2,048 dimensions.",
        fails="May be inflated with fewer examples than dimensions; depends on where the features' "
        "zero is, as the model has no intercept.",
        flops=lambda n, d, classes: _flops(n, d, 9) + 2.0 * classes * min(n, d) * (min(n, d) + 200),
        targets=KINDS,
    ),
    RankingMeasure(
        "h-score",
        h_score,
        about="Between-class variance of features relative to their shrunk covariance "
        "(Bao et al. 2019, regularised by Ibrahim et al. 2022).",
        cost="One product of the features with themselves and a linear system: about a second of "
        "CPU for 10,000 examples of 2,048 dimensions.",
        fails="In-sample: too high with few examples of a class; without shrinkage it says nothing "
        "with fewer examples than dimensions.",
        flops=lambda n, d, classes: _flops(n, d, 1 / 3) + 2.0 * n * d + 4.0 * classes * min(n, d) ** 2,
        targets=("classes", "multilabel"),
        bounds=(0.0, np.inf),
    ),
    RankingMeasure(
        "gbc",
        gbc,
        about="Overlap of the classes as Gaussians, by Bhattacharyya coefficients (Pándy et al. 2022).",
        cost="A principal component analysis to 64 dimensions: about two seconds of CPU for "
        "10,000 examples of 2,048 dimensions.",
        fails="A class of one or few examples seems apart from all others; classes far apart all "
        "give 0; ignores what classes have beyond mean and variance.",
        flops=lambda n, d, classes: _flops(n, d, 4 / 3) + min(64, n, d) * (2.0 * n * d + 8.0 * n + 4.0 * classes**2),
        targets=("classes", "multilabel"),
        bounds=(-np.inf, 0.0),
    ),
    RankingMeasure(
        "transrate",
        transrate,
        about="Coding rate of the features less that within classes (Huang et al. 2022).",
        cost="A product of the features with themselves and a determinant, for all and for each "
        "class: about two seconds of CPU for 10,000 examples of 2,048 dimensions.",
        fails="Says little with fewer examples than dimensions, or of two classes; depends on the "
        "scale of the features, which differs between checkpoints (see unit_scale and rows).",
        flops=lambda n, d, classes: _flops(n, d, 1 / 3) + classes * _flops(n / classes, d, 1 / 3),
        targets=("classes", "multilabel"),
    ),
)
