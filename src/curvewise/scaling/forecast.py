"""Extrapolation: forms weighed by how well they predict the largest runs from the smaller ones, bands, backtests.

Inside the runs at hand the largest are held out at several factors of compute, every member of a small family is fitted
to the rest, and members count by the inverse of their mean square error there. The same errors say how fast a
prediction drifts off with the distance in compute, which is the scale of prediction bands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from curvewise.errors import InputError, arg
from curvewise.scaling.forms import FORMS, Form, Place
from curvewise.scaling.runs import FEWEST, ScalingRuns, check_identified, count_sizes
from curvewise.scaling.solve import HUBER, Data, fit_global
from curvewise.text import format_count
from curvewise.types.results import FloatArray, Result

FAMILY = ("additive", "tied", "coupled")
EMPHASES = (0.0, 0.5)
"""Powers of compute by which rows are weighted: all alike, and the large more, which lie nearer to what is asked."""
INNER = (2.0, 4.0, 8.0, 16.0)
"""Factors of compute that are held out inside the data."""
FEWEST_INNER = 8
"""Runs that must be left to fit to."""
DRIFT = 0.0085
"""Drift of log loss per factor e of compute, where too few runs show it: the median over the benchmark's data sets."""
REACH = 1.5
"""Multiple of the drift in a 95% prediction band. In the backtests of `benchmarks/scaling.py`, with one weight per
source, 95% of the held-out losses take 1.28 where forms are weighed and 1.62 for a single form."""
NEAREST_LEAST = 8
"""Rows, at least, whose residuals show the noise at a place."""

Design = tuple[str, float]
"""A form by name, and a power of compute."""


InnerErrors = tuple[list[FloatArray], list[FloatArray]]
"""Errors of log loss of held-out runs and their distances, as :func:`inner_errors` returns them."""


class WeighedLaw(NamedTuple):
    """One fitted law of a forecast."""

    design: Design
    data: Data
    theta: FloatArray
    value: float
    weight: float = 1.0

    def log_loss(self, at: Place) -> FloatArray:
        """Predicted log loss at places, shape (n,)."""
        return np.asarray(np.log(self.data.form.loss(self.theta[None], at)[0]))


@dataclass(frozen=True, eq=False)
class Forecast:
    """Fitted laws with weights that sum to 1, and the scale of their errors.

    Attributes
    ----------
    members : tuple of WeighedLaw
        At least one.
    runs : ScalingRuns
        What was fitted.
    loss : str
        How residuals count.
    """

    members: tuple[WeighedLaw, ...]
    runs: ScalingRuns
    loss: str
    _inner: InnerErrors | None = None

    def noise(self, at: Place) -> FloatArray:
        """Return the standard deviation of a run's log loss at places, shape (n,).

        It is that of the residuals of the half of the rows that is nearest in compute: small runs are often noisier.
        """
        rows, size = len(self.runs), self.members[0].data.form.size
        square = (self.log_loss(make_place(self.runs)) - np.log(self.runs.loss)) ** 2
        count = min(max(-(-rows // 2), NEAREST_LEAST), rows)
        distance = np.abs((at.params + at.tokens)[:, None] - np.log(self.runs.params * self.runs.tokens))
        nearest = np.argpartition(distance, count - 1, axis=1)[:, :count]
        # Each row has lost its share of the parameters' degrees of freedom.
        return np.asarray(np.sqrt(square[nearest].sum(axis=1) / max(count * (1 - size / rows), 2.0)))

    @cached_property
    def drift(self) -> float:
        """Root mean square error of log loss per factor e of compute, in inner backtests; NaN with too few runs."""
        inner = self._inner or inner_errors(self.runs, [m.design for m in self.members], self.loss)
        weights = np.array([m.weight for m in self.members])
        squares = far = 0.0
        for error, distance in zip(*inner, strict=True):
            tried = np.asarray(~np.isnan(error).any(axis=1))
            if (weights * tried).sum() > 0:
                share = weights * tried / (weights * tried).sum()
                squares += float(((share @ np.where(tried[:, None], error, 0.0)) ** 2).mean())
                far += float((distance**2).mean())
        return float(np.sqrt(squares / far)) if far > 0 else float("nan")

    @property
    def leading(self) -> WeighedLaw:
        """The member with the largest weight, those of one form counted together."""
        total: dict[str, float] = {}
        for member in self.members:
            total[member.design[0]] = total.get(member.design[0], 0.0) + member.weight
        best = max(total, key=lambda name: total[name])
        # Of the leading form the plain fit: its parameters are those of all runs alike.
        return next(m for m in self.members if m.design[0] == best)

    def log_loss(self, at: Place) -> FloatArray:
        """Predicted log loss at places, shape (n,)."""
        return np.asarray(sum(m.weight * m.log_loss(at) for m in self.members))

    def spread(self, at: Place) -> FloatArray:
        """Standard deviation of the members' log losses at places, by their weights."""
        each = np.stack([m.log_loss(at) for m in self.members])
        weight = np.array([m.weight for m in self.members])
        return np.asarray(np.sqrt(weight @ (each - weight @ each) ** 2))

    def leverage(self, at: Place) -> FloatArray:
        """Return the variance of the leading law's log loss at places over that of a run's noise, to first order."""
        lead = self.leading
        form, theta = lead.data.form, lead.theta[None]
        here, there = (form.values(theta, place) for place in (lead.data.at, form.shift(at)))
        known, asked = here.slope[0] / here.loss[0], there.slope[0] / there.loss[0]
        size = np.sqrt((known**2).sum(axis=1)) + 1e-100
        unit = known / size[:, None]
        path = np.linalg.pinv(unit @ unit.T, rcond=1e-13, hermitian=True) @ (asked / size[:, None])
        return np.asarray((path * asked / size[:, None]).sum(axis=0))

    def half_width(self, at: Place, quantile: float, level_ratio: float = 1.0) -> FloatArray:
        """Half the width of a prediction band of log loss.

        Parameters
        ----------
        at : Place
            Sizes.
        quantile : float
            Of the noise of a single run, in standard deviations.
        level_ratio : float
            Quantile of the level over that of 95%, by which the drift is scaled.
        """
        beyond = np.maximum(np.log(6.0 / self.runs.compute.max()) + at.params + at.tokens, 0.0)
        far = REACH * level_ratio
        drift = self.drift if np.isfinite(self.drift) else DRIFT
        # At sizes that are unlike all runs, the law is less certain than a run is noisy.
        near = (quantile * self.noise(at)) ** 2 * np.maximum(self.leverage(at), 1.0)
        return np.asarray(np.sqrt(near + far**2 * ((drift * beyond) ** 2 + self.spread(at) ** 2)))


def make_place(runs: ScalingRuns) -> Place:
    """Return the sizes of runs as logarithms."""
    unique = None if runs.unique_tokens is None else np.log(runs.unique_tokens)
    return Place(np.log(runs.params), np.log(runs.tokens), unique)


def make_data(runs: ScalingRuns, form: str, loss: str = "huber", emphasis: float = 0.0) -> Data:
    """Return the problem of fitting a form to runs."""
    at = make_place(runs)
    made: Form = FORMS[form](float(at.params.mean()), float(at.tokens.mean()))
    weights = None
    if emphasis:
        weights = (runs.compute / runs.compute.max()) ** emphasis
        weights = weights / weights.mean()
    delta = HUBER if loss == "huber" else np.inf
    return Data(made.shift(at), np.log(runs.loss), made, delta, weights, logs=loss != "linear")


def fit_forecast(runs: ScalingRuns, designs: Sequence[Design], loss: str = "huber") -> Forecast:
    """Fit members to runs and weigh them by inner backtests."""
    # Beside others, a form that nearly interpolates the runs has nothing to say.
    spare = 1 if len(designs) > 1 else 0
    members = [m for m in (_fit(runs, design, loss, spare) for design in designs) if m is not None]
    if len(members) == 1:
        return Forecast((members[0],), runs, loss)
    inner = inner_errors(runs, [m.design for m in members], loss)
    weights = _weights(inner[0], len(members))
    weighted = tuple(m._replace(weight=float(w)) for m, w in zip(members, weights, strict=True))
    return Forecast(weighted, runs, loss, inner)


def _fit(runs: ScalingRuns, design: Design, loss: str, spare: int) -> WeighedLaw | None:
    """Fit one member; None where there are fewer runs than its parameters and some to spare, or too few sizes."""
    data = make_data(runs, design[0], loss, design[1])
    few_sizes = spare and data.form.size > 4 and min(map(count_sizes, make_place(runs)[:2])) < 3
    if runs.count < data.form.size + spare or few_sizes:
        return None
    theta, value = fit_global(data)
    return WeighedLaw(design, data, theta, value)


def inner_errors(runs: ScalingRuns, designs: Sequence[Design], loss: str = "huber") -> InnerErrors:
    """Hold out the largest runs at each factor of :data:`INNER`.

    Returns
    -------
    errors : list of ndarray, shape (members, held out)
        Signed errors of log loss for each factor that leaves enough to fit to; NaN for members that could not be.
    distances : list of ndarray, shape (held out,)
        Log of compute over the largest that was fitted.
    """
    errors, distances = [], []
    for factor in INNER:
        kept, held = split_by_compute(runs, factor)
        if not kept.any() or not held.any():
            continue
        inside = runs.select(kept)
        if inside.count < FEWEST_INNER or min(len(np.unique(v)) for v in (inside.params, inside.tokens)) < 3:
            continue
        outside = runs.select(held)
        at, measured = make_place(outside), np.log(outside.loss)
        fits = [_fit(inside, design, loss, 1) for design in designs]
        errors.append(
            np.stack([np.full(len(outside), np.nan) if m is None else m.log_loss(at) - measured for m in fits])
        )
        distances.append(np.log(outside.compute / inside.compute.max()))
    return errors, distances


def split_by_compute(runs: ScalingRuns, factor: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the rows to fit to, up to the largest compute over a factor, and of those held out."""
    held = runs.compute > runs.compute.max() / factor * (1 + 1e-9)
    # Earlier checkpoints of a run that is held out share its error: they are not fitted either.
    return ~np.isin(runs.groups, runs.groups[held]), held


def _weights(errors: Sequence[FloatArray], count: int) -> FloatArray:
    """Weights by the inverse mean square error, its logarithm averaged over the factors; equal without any."""
    if not errors or count == 1:
        return np.full(count, 1.0 / count)
    logs = np.stack([0.5 * np.log((e**2).mean(axis=1)) for e in errors])
    known = ~np.isnan(logs)
    score = np.where(known, logs, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    # A member that could not be tried is taken to be as bad as the worst that was.
    score[~known.any(axis=0)] = score[known.any(axis=0)].max()
    weights = np.exp(-2.0 * (score - score.min()))
    return np.asarray(weights / weights.sum())


NEAREST = 1e-6
"""Log errors below this count as this: a geometric mean must not hang on a lucky hit."""


@dataclass(frozen=True, eq=False)
class Backtest(Result):
    """Losses of the largest runs as predicted from the smaller ones.

    Attributes
    ----------
    hold_out : float
        Runs within this factor of the largest compute were held out.
    form : str
        What was fitted to the rest.
    error : float
        Geometric mean of the absolute differences of log predicted and log measured loss.
    coverage : float
        Share of held-out losses inside their prediction band.
    published_error : float
        The same error of the published method: additive form, Huber loss (Hoffmann et al. 2022).
    level : float
        Nominal coverage.
    fitted : int
        Runs that were fitted.
    params, tokens, loss, predicted, low, high, published : ndarray
        The held-out rows with their predictions.
    """

    hold_out: float
    form: str
    error: float
    coverage: float
    published_error: float
    level: float
    fitted: int
    params: FloatArray
    tokens: FloatArray
    loss: FloatArray
    predicted: FloatArray
    low: FloatArray
    high: FloatArray
    published: FloatArray
    warnings: tuple[str, ...]

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for each held-out run: measured and predicted loss, band, and the published method's."""
        names = ("params", "tokens", "loss", "predicted", "low", "high", "published")
        return {name: getattr(self, name) for name in names}

    def sentences(self) -> str:
        """The backtest in three sentences."""
        return (
            f"Fitted to {format_count(self.fitted, 'run')}, the {self.form} law predicts the losses of the "
            f"{len(self.loss)} within {self.hold_out:g}× of the largest compute. They are {self.error:.2%} off "
            f"(geometric mean), with the published method (Hoffmann et al. 2022) {self.published_error:.2%}. "
            f"{self.coverage:.0%} of the held-out losses lie inside their {self.level:.0%} prediction band."
        )


def run_backtest(
    runs: ScalingRuns, designs: Sequence[Design], form: str, loss: str, hold_out: float, level: float = 0.95
) -> Backtest:
    """Hold out the runs within a factor of the largest compute, and predict them from the rest."""
    if not isinstance(hold_out, int | float | np.number) or not hold_out > 1:
        raise InputError("must be a factor of compute above 1, such as 16.", argument="hold_out", value=hold_out)
    kept, held = split_by_compute(runs, float(hold_out))
    left = len(np.unique(runs.groups[kept]))
    if left < FEWEST:
        raise InputError(
            f"leaves {format_count(left, 'run')} of {runs.count} to fit to: at least {FEWEST} are needed.",
            argument="hold_out",
            value=hold_out,
            remedy="Hold out a smaller factor of compute.",
        )
    inside, outside = runs.select(kept), runs.select(held)
    try:
        check_identified(inside, min(len(FORMS[name].names) for name, _ in designs))
    except InputError as problem:
        raise InputError(f"{arg('hold_out', hold_out)} leaves runs that identify no law: {problem}") from None
    forecast = fit_forecast(inside, designs, loss)
    published = "repeated" if any(name == "repeated" for name, _ in designs) else "additive"
    rival = fit_forecast(inside, [(published, 0.0)], "huber")
    at = make_place(outside)
    predicted, measured = forecast.log_loss(at), np.log(outside.loss)
    half = band_half_width(forecast, at, len(inside), level)
    beside = rival.log_loss(at)
    error, other = (
        float(np.exp(np.log(np.maximum(np.abs(p - measured), NEAREST)).mean())) for p in (predicted, beside)
    )
    few = [f"Only {format_count(len(outside), 'run')} are held out: their coverage says little."] * (len(outside) < 5)
    return Backtest(
        hold_out=float(hold_out),
        form=form,
        error=error,
        coverage=float((np.abs(predicted - measured) <= half).mean()),
        published_error=other,
        level=level,
        fitted=left,
        params=outside.params,
        tokens=outside.tokens,
        loss=outside.loss,
        predicted=np.exp(predicted),
        low=np.exp(predicted - half),
        high=np.exp(predicted + half),
        published=np.exp(beside),
        warnings=tuple(few),
    )


def band_half_width(forecast: Forecast, at: Place, rows: int, level: float) -> FloatArray:
    """Half the width of the prediction band of log loss for one new run."""
    size = forecast.leading.data.form.size
    quantile = float(stdtrit(max(rows - size, 2), 0.5 + level / 2))
    ratio = float(ndtri(0.5 + level / 2) / ndtri(0.975))
    return np.asarray(forecast.half_width(at, quantile, ratio))
