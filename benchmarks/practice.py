"""Coverage of what people commonly report, beside that of curvewise: the table of the README.

    python benchmarks/practice.py             # 2,000 data sets a row, about two minutes
    python benchmarks/practice.py --sets 200  # rougher

Seeds are real: 200 ResNet-9 with 4 and with 16 epochs of training, and their errors on 10,000 test
images (``examples/fashion_mnist/seeds.npz``). The 10,000 images stand for the distribution. A data set is a
few of the runs on 1,000 images drawn from them, and the truth is the mean over all runs and images.

Learning curves: three runs at five sizes from each of the four published curves of Hoiem et al. (2021),
table 3, which are power laws, measured on 1,000 test items. The truth is the error at four times the
largest size. With ``CURVEWISE_DATA``, also the curves of LCDB 1.0 of odd data sets (the intervals were
calibrated on the even ones), from sizes up to a quarter of the largest; the truth is the mean there.

Every interval claims 95%, except mean ± std, which claims nothing and is read as if it did.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from learning_coverage import TRUTH, read_lcdb
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import OptimizeWarning, curve_fit

import curvewise as cw
from curvewise.tables import format_table

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
    rows = [*one_training(runs, sets), comparison(runs, sets), published_curves(sets)]
    frame = read_lcdb()
    if frame is not None:
        rows.append(real_curves(frame))
    columns = ("common practice", "holds the truth (%)", "curvewise", "it holds the truth (%)")
    print(format_table({name: [row[i] for row in rows] for i, name in enumerate(columns)}, "markdown", 0))


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
    for count, practice in ((10, "best of 10 seeds, binomial interval"), (3, "mean ± std of 3 seeds")):
        rng = np.random.default_rng(count)
        common = ours = 0
        for _ in range(sets):
            seen = draw(rng, errors, count, rng.integers(0, errors.shape[1], IMAGES))
            each = seen.mean(axis=1)
            if count == 10:
                best = float(each.min())
                common += abs(best - truth) <= Z * math.sqrt(best * (1 - best) / IMAGES)
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
        ours += truth in cw.compare_runs(a, b, kind="errors", paired=False, permutations=1).difference
    return "t-test over 10 seeds, one test set", 100 * common / sets, "compare_runs, 10 seeds", 100 * ours / sets


def published_curves(sets: int) -> tuple[str, float, str, float]:
    """A power law at four times the data, where a power law is true."""
    rng = np.random.default_rng(0)
    n = np.repeat(SIZES, RUNS)
    last = 4 * SIZES[-1]
    common = ours = total = 0
    for alpha, eta, gamma, _ in TRUTH.values():
        truth = alpha + eta * last**gamma
        chance = np.clip(alpha + eta * n**gamma, 0, 100) / 100
        for _ in range(max(1, sets // len(TRUTH))):
            values = 100 * rng.binomial(IMAGES, chance) / IMAGES
            low, high = scipy_band(n, values, last)
            common += low <= truth <= high
            found = cw.fit_learning_curve(n, values, unit="percent").interval_at(last).error
            ours += truth in found
            total += 1
    name = "power law by scipy's curve_fit, 4× the data, simulated"
    return name, 100 * common / total, "fit_learning_curve", 100 * ours / total


def real_curves(frame: object) -> tuple[str, float, str, float]:
    """The same on real learning curves, which follow no law."""
    common = ours = total = 0
    for (dataset, _), rows in frame.groupby(["openmlid", "learner"]):  # type: ignore[attr-defined]
        n, mean = rows["size_train"].to_numpy(float), rows["err_valid_mean"].to_numpy(float)
        seen = n <= n[-1] / 4
        if dataset % 2 == 0 or len(n) < 10 or n[-1] < 500 or seen.sum() < 4:
            continue
        low, high = scipy_band(n[seen], 100 * mean[seen], n[-1])
        common += low <= 100 * mean[-1] <= high
        curve = cw.fit_learning_curve(n[seen], 100 * mean[seen], unit="percent", form="auto")
        ours += 100 * mean[-1] in curve.interval_at(n[-1]).error
        total += 1
    name = f"the same on {total:,} curves of LCDB"
    return name, 100 * common / total, 'fit_learning_curve(form="auto")', 100 * ours / total


def scipy_band(n: Array, values: Array, at: float) -> tuple[float, float]:
    """Fit a + b n^c by least squares, with the 95% interval at one size from the covariance of the fit."""
    start = (0.8 * values.min(), (values.max() - 0.8 * values.min()) * n.min() ** 0.5, -0.5)
    try:
        (a, b, c), covariance = curve_fit(lambda x, a, b, c: a + b * x**c, n, values, p0=start, maxfev=5000)
    except RuntimeError:  # no convergence: no interval, which holds nothing
        return math.nan, math.nan
    slope = np.array([1.0, at**c, b * at**c * math.log(at)])
    half = stats.t.ppf(0.975, max(1, len(n) - 3)) * math.sqrt(max(0.0, float(slope @ covariance @ slope)))
    return a + b * at**c - half, a + b * at**c + half


if __name__ == "__main__":
    main()
