"""Backtests: hold out the largest runs, predict them from the rest, and compare with what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from curvewise.errors import InputError
from curvewise.scaling.forecast import Design, fit_forecast, make_place, split_by_compute
from curvewise.scaling.forms import FORMS
from curvewise.scaling.runs import FEWEST, ScalingRuns, check_identified
from curvewise.text import arg, format_count
from curvewise.types.results import Result
from curvewise.types.units import FloatArray

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
        Geometric mean of |log predicted − log measured|.
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
        """The backtest in two sentences."""
        count = len(self.loss)
        ratio = self.error / self.published_error
        better = "like" if 0.995 < ratio < 1.005 else "less than" if ratio < 1 else "more than"
        return (
            f"Fitted to {format_count(self.fitted, 'run')} and asked for the {count} within {self.hold_out:g}× of the "
            f"largest compute, the {self.form} law errs by {self.error:.2%} (geometric mean of |Δ log loss|), "
            f"{better} the published method's {self.published_error:.2%}. "
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


def band_half_width(forecast: Any, at: Any, rows: int, level: float) -> FloatArray:
    """Half the width of the prediction band of log loss for one new run."""
    size = forecast.leading.data.form.size
    quantile = float(stdtrit(max(rows - size, 2), 0.5 + level / 2))
    ratio = float(ndtri(0.5 + level / 2) / ndtri(0.975))
    return np.asarray(forecast.half_width(at, quantile, ratio))
