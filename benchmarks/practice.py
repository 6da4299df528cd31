"""Coverage of what people commonly report, beside that of curvewise: the table of the README.

    python benchmarks/practice.py             # 2,000 data sets a row, about two minutes
    python benchmarks/practice.py --sets 200  # rougher

Seeds are real: 200 ResNet-9 with 4 and with 16 epochs of training, and their errors on 10,000 test
images (``examples/fashion_mnist/seeds.npz``). The 10,000 images stand for the distribution. A data set is a
few of the runs on 1,000 images drawn from them. For the best of ten seeds the truth is the error of that
network on all images; otherwise it is the mean over all runs and images.

Learning curves: three runs at five sizes from each of the four published curves of Hoiem et al. (2021),
table 3, which are power laws, measured on 1,000 test items. The truth is the error at four times the
largest size. With ``CURVEWISE_DATA``, also the curves of LCDB 1.0 of odd data sets (the intervals were
calibrated on the even ones), from sizes up to a quarter of the largest; the truth is the mean error
measured there. A confidence band is for the mean of the law; a prediction band adds the residual scatter.
The median width is in percent points. Fits that do not converge are left out and counted.

Every interval claims 95%, except mean ± std, which claims nothing and is read as a 95% interval.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from learning_coverage import TRUTH, read_lcdb
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import OptimizeWarning, curve_fit

import curvewise as cw
from curvewise.text import format_table

Array = NDArray[np.float64]
SEEDS = Path(__file__).resolve().parents[1] / "examples" / "fashion_mnist" / "seeds.npz"
IMAGES = 1000
SIZES = 25 * 2.0 ** np.arange(5)
RUNS = 3
Z = stats.norm.ppf(0.975)


def main() -> None:
    """Count how often each interval holds the truth and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=2000, help="data sets a row")
    sets = parser.parse_args().sets
    warnings.simplefilter("ignore", cw.CurvewiseWarning)
    warnings.simplefilter("ignore", OptimizeWarning)
    warnings.simplefilter("ignore", RuntimeWarning)
    runs = load_runs()
    rows = [*one_training(runs, sets), comparison(runs, sets)]
    columns = ("common practice", "holds the truth (%)", "curvewise", "it holds the truth (%)")
    print(format_table({name: [row[i] for row in rows] for i, name in enumerate(columns)}, "markdown", 0))
    bands = {"simulated power laws": published_curves(sets)}
    frame = read_lcdb()
    if frame is not None:
        bands["LCDB, odd data sets"] = real_curves(frame)
    print("", format_table(summary(bands), "markdown", 1), sep="\n")


def load_runs() -> dict[int, NDArray[np.uint8]]:
    """Errors (0 or 1) of 200 runs × 10,000 images, by epochs of training."""
    with np.load(SEEDS) as file:
        count = int(file["examples"])
        return {epochs: np.unpackbits(file[f"errors_{epochs}"], axis=1, count=count) for epochs in (4, 16)}


def draw(
    rng: np.random.Generator, errors: NDArray[np.uint8], runs: int, images: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Draw runs without replacement, on images that may be there twice, as in a draw from a distribution."""
    return errors[np.ix_(rng.permutation(len(errors))[:runs], images)]


def one_training(runs: dict[int, NDArray[np.uint8]], sets: int) -> Iterator[tuple[str, float, str, float]]:
    """The error of one training: the best of ten seeds, and the mean ± std of three."""
    errors = runs[16]
    truth = errors.mean()
    own = errors.mean(axis=1)
    best_of = "best of 10 seeds, binomial interval"
    for count, practice in ((10, best_of), (3, "mean ± std of 3 seeds, read as a 95% interval")):
        rng = np.random.default_rng(count)
        common = ours = 0
        for _ in range(sets):
            images = rng.integers(0, errors.shape[1], IMAGES)
            chosen = rng.permutation(len(errors))[:count]
            seen = errors[np.ix_(chosen, images)]
            each = seen.mean(axis=1)
            if count == 10:
                best = float(each.min())
                common += abs(best - own[chosen[each.argmin()]]) <= Z * math.sqrt(best * (1 - best) / IMAGES)
            else:
                common += abs(each.mean() - truth) <= each.std(ddof=1)
            found = cw.decompose_variance(seen, kind="errors", axes=("runs", "examples"), interval="F")
            ours += truth in found.error
        yield practice, 100 * common / sets, f"decompose_variance, {count} seeds", 100 * ours / sets


def comparison(runs: dict[int, NDArray[np.uint8]], sets: int) -> tuple[str, float, str, float]:
    """The difference of two trainings, ten seeds each, on one test set."""
    rng = np.random.default_rng(0)
    truth = runs[4].mean() - runs[16].mean()
    common = ours = 0
    for _ in range(sets):
        images = rng.integers(0, runs[4].shape[1], IMAGES)
        a, b = (draw(rng, runs[epochs], 10, images) for epochs in (4, 16))
        welch = stats.ttest_ind(a.mean(axis=1), b.mean(axis=1), equal_var=False).confidence_interval()
        common += welch.low <= truth <= welch.high
        ours += truth in cw.compare_runs(a, b, kind="errors", paired=False, permutations=19).difference
    return "t-test over 10 seeds, one test set", 100 * common / sets, "compare_runs, 10 seeds", 100 * ours / sets


Bands = dict[str, list[tuple[float, float, float]]]
"""Low end, high end and truth of each curve, by method; NaN for both ends where a fit failed."""


def published_curves(sets: int) -> Bands:
    """A power law at four times the data, where a power law is true."""
    rng = np.random.default_rng(0)
    n = np.repeat(SIZES, RUNS)
    last = 4 * SIZES[-1]
    bands: Bands = {}
    for alpha, eta, gamma, _ in TRUTH.values():
        truth = alpha + eta * last**gamma
        chance = np.clip(alpha + eta * n**gamma, 0, 100) / 100
        for _ in range(max(1, sets // len(TRUTH))):
            values = 100 * rng.binomial(IMAGES, chance) / IMAGES
            bands.setdefault("curve_fit, confidence band", []).append((*scipy_bands(n, values, last)[0], truth))
            found = cw.fit_learning_curve(n, values, unit="percent").interval_at(last).error
            bands.setdefault("fit_learning_curve", []).append((found.low, found.high, truth))
    return bands


def real_curves(frame: object) -> Bands:
    """The same on real learning curves, which follow no law."""
    bands: Bands = {}
    for (dataset, _), rows in frame.groupby(["openmlid", "learner"]):  # type: ignore[attr-defined]
        n, mean = rows["size_train"].to_numpy(float), 100 * rows["err_valid_mean"].to_numpy(float)
        seen = n <= n[-1] / 4
        if dataset % 2 == 0 or len(n) < 10 or n[-1] < 500 or seen.sum() < 4:
            continue
        confidence, prediction = scipy_bands(n[seen], mean[seen], n[-1])
        bands.setdefault("curve_fit, confidence band", []).append((*confidence, mean[-1]))
        bands.setdefault("curve_fit, prediction band", []).append((*prediction, mean[-1]))
        for form in ("auto", None):
            name = "fit_learning_curve" if form is None else f'fit_learning_curve(form="{form}")'
            options: dict[str, Any] = {} if form is None else {"form": form}
            found = cw.fit_learning_curve(n[seen], mean[seen], unit="percent", **options).interval_at(n[-1]).error
            bands.setdefault(f"{name}, {found.kind} interval", []).append((found.low, found.high, mean[-1]))
    return bands


def summary(bands: dict[str, Bands]) -> dict[str, list[object]]:
    """Coverage and median width of the bands at four times the data."""
    rows: list[tuple[object, ...]] = []
    for curves, methods in bands.items():
        for method, ends in methods.items():
            low, high, truth = np.array(ends).T
            made = np.isfinite(low) & np.isfinite(high)
            held = (low <= truth) & (truth <= high) & made
            width = np.median((high - low)[made])
            rows.append((curves, method, len(made), int((~made).sum()), 100 * held.sum() / made.sum(), width))
    columns = ("curves", "interval at 4× the data", "fits", "failed", "holds the truth (%)", "median width")
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


def scipy_bands(n: Array, values: Array, at: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Fit a + b n^c by least squares; the 95% confidence and prediction band at one size by its covariance."""
    start = (0.8 * values.min(), (values.max() - 0.8 * values.min()) * n.min() ** 0.5, -0.5)
    try:
        (a, b, c), covariance = curve_fit(lambda x, a, b, c: a + b * x**c, n, values, p0=start, maxfev=5000)
    except RuntimeError:  # no convergence
        return (math.nan, math.nan), (math.nan, math.nan)
    slope = np.array([1.0, at**c, b * at**c * math.log(at)])
    free = max(1, len(n) - 3)
    of_mean = max(0.0, float(slope @ covariance @ slope))
    scatter = float(((values - a - b * n**c) ** 2).sum()) / free
    centre, t = float(a + b * at**c), float(stats.t.ppf(0.975, free))
    half, wide = (t * math.sqrt(v) for v in (of_mean, of_mean + scatter))
    return (centre - half, centre + half), (centre - wide, centre + wide)


if __name__ == "__main__":
    main()
