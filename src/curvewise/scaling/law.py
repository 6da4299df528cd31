"""Fitted scaling laws: loss as a function of parameters and tokens, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, Message, arg, either, list_names, suggest, warn_all
from curvewise.scaling.fit import (
    EMPHASES,
    FAMILY,
    NEAREST,
    Design,
    Forecast,
    Quantity,
    fit_forecast,
    make_place,
    refit,
    split_by_compute,
)
from curvewise.scaling.forms import EXPONENT_BOUNDS, FORMS, Place
from curvewise.scaling.load import as_scaling_runs
from curvewise.scaling.optimum import (
    OFF,
    ComputeOptimal,
    Refittable,
    Sensitivity,
    check_repeats_known,
    extrapolation_notes,
    find_optimum,
    measure_sensitivity,
    read_budgets,
    short,
)
from curvewise.scaling.runs import FEWEST, FLOPS_PER, ScalingRuns, check_choice, check_identified, input_warnings
from curvewise.text import format_count, format_interval, format_level, format_number
from curvewise.types.results import FloatArray, Interval, Result, as_floats, check_level, data_frame, interval_columns

if TYPE_CHECKING:
    import pandas as pd

LOSSES = {"huber": "Huber loss of log residuals", "squares": "least squares of log loss", "linear": "least squares"}
INTERVALS = ("confidence", "prediction")
DIVERGED = 8.0
"""Robust standard deviations above the law from which a run is flagged as diverged."""
AT_BOUND = 1e-3
"""Distance from a bound of the solver, on its scale, that counts as none."""
DIVERGED_LEAST = 0.05
"""And at least this much of log loss, which no usual noise is."""


def fit_scaling_law(
    runs: Any,
    *,
    form: str = "additive",
    loss: str = "huber",
    base: Mapping[str, float] | ScalingLaw | None = None,
    few: bool = False,
) -> ScalingLaw:
    """Fit loss as a function of parameters N and tokens D.

    Parameters
    ----------
    runs : ScalingRuns, path, dict or DataFrame
        Runs as :func:`load_scaling_runs` reads them, or a table with the columns params, tokens (or flops) and loss,
        and perhaps run, unique_tokens, step and source.
    form : {"additive", "tied", "coupled", "repeated", "auto"}
        E + A/N^α + B/D^β; the same with one exponent; E + ((A/N^α)^(1/g) + (B/D^β)^(1/g))^g; the additive law with
        repeated tokens and excess parameters that decay in value (Muennighoff et al. 2023), which needs
        ``unique_tokens``. "auto" weighs forms by how well they predict the largest of these runs from the smaller
        ones, and is meant for extrapolation.
    loss : {"huber", "squares", "linear"}
        Huber's function of log residuals with δ = 0.001 (Hoffmann et al. 2022), which outliers hardly move; squares of
        log residuals, the most precise for normal noise; or squares of the loss itself, as some papers use.
    base : dict or ScalingLaw, optional
        For ``form="repeated"``: E, A, B, alpha and beta that are kept, so that only the two decay constants are fitted.
    few : bool
        Fit fewer than six runs, as some published recipes do. There are no intervals then.

    Returns
    -------
    ScalingLaw
        Its intervals are computed when they are asked for.

    Raises
    ------
    InputError
        If the runs do not identify the law: the message names what is missing.

    Notes
    -----
    Given the exponents the law is linear in E, A and B. These are solved for on a grid of exponents by least squares
    without negative coefficients, and from the best valleys of that grid all parameters are refined together by a
    bounded Newton method. On the published runs of ``benchmarks/scaling.py`` 200 random starts found no lower minimum
    of the additive, tied and coupled forms.

    Confidence intervals are profile intervals: how far a quantity can move before the best fit with it held there is
    significantly worse. Where rows are checkpoints of runs, their scale comes from fits that leave out whole runs.

    Examples
    --------
    >>> n, d = np.meshgrid([1e8, 3e8, 1e9, 3e9], [2e9, 8e9, 3e10, 1.2e11])
    >>> rng = np.random.default_rng(0)
    >>> loss = (1.8 + 480 / n**0.35 + 2000 / d**0.37) * np.exp(0.003 * rng.standard_normal(n.shape))
    >>> law = fit_scaling_law({"params": n.ravel(), "tokens": d.ravel(), "loss": loss.ravel()})
    >>> round(law.alpha, 2), round(law.beta, 2), round(law.E, 1)
    (0.35, 0.34, 1.8)
    >>> law.exponent in law.interval("exponent")
    True
    """
    given = as_scaling_runs(runs)
    check_choice("form", form, (*FORMS, "auto"))
    check_choice("loss", loss, LOSSES)
    repeats = given.unique_tokens is not None and bool((given.unique_tokens < 0.999 * given.tokens).any())
    if form == "repeated" and given.unique_tokens is None:
        raise InputError(f"{arg('form', 'repeated')} needs unique_tokens: how many of the tokens are distinct.")
    if base is not None and form != "repeated":
        raise InputError(f"{arg('base')} is for {arg('form', 'repeated')} only.")
    if form == "auto":
        names: Sequence[str] = ("repeated",) if repeats else FAMILY
        designs: list[Design] = [(name, emphasis) for name in names for emphasis in EMPHASES]
    else:
        designs = [(form, 0.0)]
    fixed = None if base is None else _read_base(base)
    check_identified(given, _fewest_parameters(designs, fixed), fewest=2 if few else FEWEST)
    forecast = fit_forecast(given, designs, loss, fixed, given.checkpoints != "unclear" and not few)
    lead = forecast.leading
    public = {k: float(v[0]) for k, v in lead.data.form.public(lead.theta[None]).items()}
    notes = (*given.warnings, *input_warnings(given), *_fit_warnings(given, forecast, form, repeats))
    warn_all(notes)
    return ScalingLaw(
        name=given.name,
        form=form,
        loss=loss,
        **{name: public.pop(name) for name in BASE},
        exponent=float(lead.data.form.exponent(lead.theta[None])[0]),
        further=public,
        objective=lead.value,
        weights={
            name + (", large runs first" if emphasis else ""): weight
            for (name, emphasis), *_, weight in forecast.members
        },
        count=given.count,
        warnings=notes,
        notes=given.notes,
        runs=given,
        _designs=tuple(designs),
        _forecast=forecast,
        _few=few,
    )


BASE = ("E", "A", "B", "alpha", "beta")
"""Parameters of the additive law, which ``base`` gives."""


def _read_base(base: Mapping[str, float] | ScalingLaw) -> dict[str, float]:
    """Return the parameters of a law that is given."""
    if isinstance(base, ScalingLaw):
        return {k: getattr(base, k) for k in BASE}
    if missing := [k for k in BASE if k not in base]:
        raise InputError(f"{arg('base')} lacks {', '.join(missing)}.")
    known = {k: float(as_floats(base[k], f"base[{k!r}]")) for k in BASE}
    if wrong := [k for k, v in known.items() if not (np.isfinite(v) and (v > 0 or (v == 0 and k == "E")))]:
        problem = f"holds {known[wrong[0]]:g} for {wrong[0]}: A, B, alpha and beta lie above 0, and E is not below 0."
        raise InputError(problem, argument="base")
    return known


def _fewest_parameters(designs: Sequence[Design], base: Mapping[str, float] | None) -> int:
    """Return the number of parameters of the form with the fewest; those of a base are not fitted."""
    return min(len(FORMS[name].names) for name, _ in designs) - (0 if base is None else len(BASE))


def _fit_warnings(runs: ScalingRuns, forecast: Forecast, form: str, repeats: bool) -> list[str]:
    """Return what deserves a look in the fit itself."""
    lead = forecast.leading
    notes = []
    named = dict(zip(lead.data.form.names, lead.theta, strict=True))
    low, high = lead.data.bounds
    at_bound = [k for k, v, a, b in zip(named, lead.theta, low, high, strict=True) if a < b and not a < v < b]
    if forecast.base is None and named["E"] <= 1e-6 * np.exp(lead.data.log_loss.min()):
        notes.append(
            "E is at 0: these runs do not show the irreducible loss, and extrapolations fall without end. Add larger "
            "runs or more tokens."
        )
    notes += [
        f"The exponent {symbol} is at its bound ({named[name]:g} of {EXPONENT_BOUNDS[0]:g} to {EXPONENT_BOUNDS[1]:g}): "
        f"these runs do not identify how loss falls with {what}."
        for name, symbol, what in (("alpha", "α", "parameters"), ("beta", "β", "tokens"))
        if name in at_bound
    ]
    further = {"a": "A (parameters)", "b": "B (tokens)", "g": "g", "log R_D": "R_D", "log R_N": "R_N"}
    notes += [
        f"{what} is at its bound: these runs do not identify it." for name, what in further.items() if name in at_bound
    ]
    residual = np.log(runs.loss) - lead.log_loss(make_place(runs))
    spread = 1.4826 * float(np.median(np.abs(residual)))
    diverged = residual > max(DIVERGED * spread, DIVERGED_LEAST)
    if diverged.any():
        rows = np.flatnonzero(diverged)[np.argsort(-residual[diverged])]
        examples = [
            f"loss {runs.loss[i]:.3g} at N = {short(runs.params[i])} and D = {short(runs.tokens[i])}" for i in rows
        ]
        how = either("law.sensitivity()", "`curvewise scaling optimal --sensitivity`")
        notes.append(
            f"Diverged? {format_count(len(rows), 'run')} more than {DIVERGED:g} standard deviations above the law "
            f"({list_names(examples, 3, quoted=False)}). Look at their training, and at how the answer moves without "
            f"the highest losses ({how})."
        )
    if repeats and form not in ("repeated", "auto"):
        notes.append(
            f"Some runs repeat their tokens, which this form counts as new ones. Use {arg('form', 'repeated')}, or "
            "select runs of one epoch."
        )
    return [Message(note) for note in notes]


@dataclass(frozen=True, eq=False)
class ScalingLaw(Refittable):
    """A fitted scaling law.

    Attributes
    ----------
    name : str
        Name of the runs.
    form, loss : str
        What was fitted, and how residuals count.
    E, A, B, alpha, beta : float
        Parameters; of the leading form where several are weighed. :meth:`interval` has their intervals.
    exponent : float
        a = β/(α + β): the compute-optimal N grows as C^a.
    further : dict of str to float
        Other parameters of the form: g, or R_D and R_N.
    objective : float
        Sum of Huber terms, or half the sum of squares, at the fit.
    weights : dict of str to float
        Weights of the forms.
    count : int
        Number of runs.
    warnings, notes : tuple of str
        What deserves a look, and how the input was read.
    runs : ScalingRuns
        What was fitted.
    """

    name: str
    form: str
    loss: str
    E: float
    A: float
    B: float
    alpha: float
    beta: float
    exponent: float
    further: Mapping[str, float]
    objective: float
    weights: Mapping[str, float]
    count: int
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    runs: ScalingRuns
    _designs: tuple[Design, ...]
    _forecast: Forecast
    _few: bool

    row_names: ClassVar[Mapping[str, str]] = {"alpha": "α", "beta": "β", "exponent": "a, of N* ∝ C^a"}

    def interval(self, name: str, *, level: float = 0.95) -> Interval:
        """Return a parameter with its confidence interval.

        Parameters
        ----------
        name : str
            E, A, B, alpha, beta, exponent, or another parameter of the form.
        level : float
            Coverage.

        Returns
        -------
        Interval
            Infinite limits where the runs do not bound it; NaN where rows are checkpoints of runs that are not named.
        """
        check_level(level)
        return self._intervals([name], level)[name]

    def _intervals(self, names: Sequence[str], level: float) -> dict[str, Interval]:
        """Intervals of parameters, searched for together."""
        there = self._quantities()
        if unknown := [name for name in names if name not in there]:
            problem = f"is no parameter.{suggest(unknown[0], there)} There are {', '.join(there)}."
            raise InputError(problem, argument="name", value=unknown[0])
        limits = np.full((2, len(names)), np.nan)
        if self._forecast.known:
            limits = self._forecast.profile.limits([there[name] for name in names], level)
        bounds = self._forecast.leading.data.bounds
        found = {}
        for name, low, high in zip(names, *limits, strict=True):
            value = getattr(self, name) if hasattr(self, name) else self.further[name]
            if low == high:  # a parameter that was given
                found[name] = Interval(value, value, value, level)
                continue
            if name in ("alpha", "beta", *self.further):
                # Where the solver stopped at its own bound, the data set no limit.
                lowest, highest = (float(there[name](bound[None])[0]) for bound in bounds)
                low = -np.inf if low <= lowest + AT_BOUND else low
                high = np.inf if high >= highest - AT_BOUND else high
            if name in ("A", "B", *self.further):
                with np.errstate(over="ignore"):
                    low, high = np.exp([low, high])
            # Limits that the data do not set are those that are possible at all.
            top = {"E": self.runs.loss.min(), "exponent": 1.0}.get(name, np.inf)
            ends = [0.0 if e == -np.inf else top if e == np.inf else e for e in (low, high)]
            found[name] = Interval(value, float(ends[0]), float(ends[1]), level)
        return found

    def _quantities(self) -> dict[str, Quantity]:
        """Parameters as functions of the solver's: the logarithms of those that have only a lower limit, 0."""
        form = self._forecast.leading.data.form

        def of(name: str) -> Quantity:
            if name in ("A", "B", *self.further):
                return lambda theta: np.log(form.public(theta)[name])
            return form.exponent if name == "exponent" else lambda theta: form.public(theta)[name]

        return {name: of(name) for name in (*BASE, "exponent", *self.further)}

    def standard_errors(self, *, resamples: int = 4000, rng: int | np.random.Generator = 0) -> dict[str, float]:
        """Return standard errors of the parameters: the spread of refits to runs drawn with replacement.

        Parameters
        ----------
        resamples : int
            Number of refits.
        rng : int or Generator
            Seed.
        """
        if not isinstance(resamples, int | np.integer) or resamples < 2:
            raise InputError("must be a whole number from 2.", argument="resamples", value=resamples)
        if self.runs.checkpoints == "unclear":
            return dict.fromkeys(self._quantities(), float("nan"))
        count, lead = self.count, self._forecast.leading
        drawn = np.random.default_rng(rng).multinomial(count, np.full(count, 1.0 / count), size=resamples)
        theta = refit(lead.data, lead.theta, drawn.astype(np.float64)[:, self.runs.groups])
        values = {**lead.data.form.public(theta), "exponent": lead.data.form.exponent(theta)}
        return {name: float(np.std(values[name])) for name in self._quantities()}

    def loss_at(self, params: ArrayLike, tokens: ArrayLike, unique_tokens: ArrayLike | None = None) -> FloatArray:
        """Return the expected loss at sizes, shape (n,)."""
        check_repeats_known(self._forecast, unique_tokens)
        return np.exp(self._forecast.log_loss(_places(params, tokens, unique_tokens)))

    def predict(
        self,
        params: ArrayLike,
        tokens: ArrayLike,
        *,
        unique_tokens: ArrayLike | None = None,
        interval: str = "confidence",
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Predict losses: a table with params, tokens, loss, low and high.

        Parameters
        ----------
        params, tokens : array_like
            N and D, which are broadcast against each other.
        unique_tokens : array_like, optional
            Distinct tokens, for a law of repeated data.
        interval : {"confidence", "prediction"}
            Of the expected loss, if the form is right; or of the loss of one new run, which includes its noise and how
            far laws drift off beyond the largest compute, calibrated on published data sets. It holds all of the
            confidence interval.
        level : float
            Coverage.
        """
        return data_frame(self.prediction(params, tokens, unique_tokens, interval, level))

    def prediction(
        self,
        params: ArrayLike,
        tokens: ArrayLike,
        unique_tokens: ArrayLike | None = None,
        interval: str = "confidence",
        level: float = 0.95,
    ) -> dict[str, FloatArray]:
        """Return the columns of :meth:`predict`."""
        check_level(level)
        check_choice("interval", interval, INTERVALS)
        check_repeats_known(self._forecast, unique_tokens)
        at = _places(params, tokens, unique_tokens)
        warn_all(map(Message, self.extrapolation(params, tokens)))
        centre = self._forecast.log_loss(at)
        low, high = self._forecast.log_loss_limits(at, level)
        if interval == "prediction":
            # With few runs the expected loss can be less certain than the drift of published laws suggests.
            half = self._forecast.band_half_width(at, level)
            low, high = np.minimum(low, centre - half), np.maximum(high, centre + half)
        columns = np.exp(np.stack([at.params, at.tokens, centre, low, high]))
        return dict(zip(("params", "tokens", "loss", "low", "high"), columns, strict=True))

    def extrapolation(self, params: ArrayLike, tokens: ArrayLike) -> list[str]:
        """Return warnings where models are unlike the runs: in compute by 64 times, in tokens per parameter by ten."""
        at = _places(params, tokens, None)
        notes = extrapolation_notes(self.runs, FLOPS_PER * np.exp(at.params + at.tokens))
        ratio, measured = at.tokens - at.params, np.log(self.runs.tokens / self.runs.params)
        unlike = ratio[(ratio < measured.min() - OFF) | (ratio > measured.max() + OFF)]
        if len(unlike):
            notes.append(
                f"{np.exp(unlike[0]):.3g} tokens per parameter is far from the {np.exp(measured.min()):.3g} to "
                f"{np.exp(measured.max()):.3g} of the runs. Are parameters and tokens given in this order?"
            )
        return notes

    def compute_optimal(
        self, budget: ArrayLike, *, level: float = 0.95, unique_tokens: float | None = None
    ) -> ComputeOptimal:
        """Find the model that makes the best of a budget C = 6 N D.

        Parameters
        ----------
        budget : float or list of float
            Compute in FLOP.
        level : float
            Coverage of the intervals.
        unique_tokens : float, optional
            Distinct tokens at hand, for a law of repeated data.
        """
        check_level(level)
        found = find_optimum(self._forecast, budget, level, unique_tokens)
        warn_all(found.warnings)
        windows = partial(self._sensitivity, float(read_budgets(budget).max()), None, level, unique_tokens)
        return replace(found, warnings=(*found.warnings, *self.warnings), _windows=windows)

    def backtest(self, hold_out: float = 16, *, level: float = 0.95) -> Backtest:
        """Hold out the runs within a factor of the largest compute, and predict them from the rest.

        Parameters
        ----------
        hold_out : float
            Factor of compute.
        level : float
            Coverage of the prediction band.
        """
        check_level(level)
        if not isinstance(hold_out, int | float | np.number) or not hold_out > 1:
            raise InputError("must be a factor of compute above 1, such as 16.", argument="hold_out", value=hold_out)
        runs, designs, base = self.runs, self._designs, self._forecast.base
        kept, held = split_by_compute(runs, float(hold_out))
        left = len(np.unique(runs.groups[kept]))
        if left < FEWEST:
            problem = f"leaves {format_count(left, 'run')} of {runs.count} to fit to: at least {FEWEST} are needed."
            remedy = "Hold out a smaller factor of compute."
            raise InputError(problem, argument="hold_out", value=hold_out, remedy=remedy)
        inside, outside = runs.select(kept), runs.select(held)
        try:
            check_identified(inside, _fewest_parameters(designs, base))
        except InputError as cause:
            raise InputError(f"{arg('hold_out', hold_out)} leaves runs that identify no law: {cause}") from None
        forecast = fit_forecast(inside, designs, self.loss, base)
        published = "repeated" if any(name == "repeated" for name, _ in designs) else "additive"
        rival = fit_forecast(inside, [(published, 0.0)], "huber", base)
        at = make_place(outside)
        predicted, measured = forecast.log_loss(at), np.log(outside.loss)
        half = forecast.band_half_width(at, level)
        beside = rival.log_loss(at)
        error, other = (
            float(np.exp(np.log(np.maximum(np.abs(p - measured), NEAREST)).mean())) for p in (predicted, beside)
        )
        few = [f"Only {format_count(len(outside), 'run')} are held out: their coverage says little."] * (
            len(outside) < 5
        )
        return Backtest(
            hold_out=float(hold_out),
            form=self.form,
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
            warnings=(*few, *self.warnings),
        )

    def _sensitivity(
        self, budget: float | None, drop: Sequence[int] | None, level: float, unique_tokens: float | None = None
    ) -> Sensitivity:
        at = budget or 100 * float(self.runs.compute.max())
        whence = "" if budget else "a hundred times the largest run"
        optimum = find_optimum(self._forecast, at, level, unique_tokens)

        def answer(part: ScalingRuns) -> tuple[float, float, float]:
            least = _fewest_parameters(self._designs, self._forecast.base)
            check_identified(part, least, fewest=2 if self._few else FEWEST)
            forecast = fit_forecast(part, self._designs, self.loss, self._forecast.base, known=False)
            best = find_optimum(forecast, at, level, unique_tokens)
            exponent = float(forecast.leading.data.form.exponent(forecast.leading.theta[None])[0])
            return float(np.log(best.params.estimate)), exponent, best.loss.estimate

        return measure_sensitivity(self.runs, answer, at, optimum.tokens_per_param, drop, whence=whence)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for each parameter: estimate, low and high."""
        return interval_columns(self._intervals(list(self._quantities()), 0.95))

    def sentences(self, level: float = 0.95) -> str:
        """The law in a few sentences, with intervals of a level."""
        found = self._intervals(["exponent", "alpha", "beta", "E"], level)
        what = f"the {self.form} law" if self.form != "auto" else f"{len(self.weights)} weighted laws"
        lines = [f"Fitted {what} to {format_count(self.count, 'run')} by {LOSSES[self.loss]}."]
        if self.form == "auto":
            leading = self._forecast.leading.design[0]
            share = sum(m.weight for m in self._forecast.members if m.design[0] == leading)
            lines.append(f"The {leading} form has {share:.0%} of the weight; its parameters follow.")
        grows, alpha, beta, irreducible = map(write_fitted, found.values())
        lines.append(
            f"α = {alpha}, β = {beta}, E = {irreducible}: the compute-optimal number of parameters grows as C^{grows}."
        )
        largest = float(self.runs.compute.max())
        best = find_optimum(self._forecast, largest, level, None)
        lines.append(
            f"At the largest compute measured, {largest:.3g} FLOP, {format_interval(best.tokens_per_param)} tokens per "
            "parameter are optimal."
        )
        return " ".join(lines)


def write_fitted(value: Interval) -> str:
    """Write a parameter with its interval, or that it is fixed by the form or by what was given.

    >>> write_fitted(Interval(0.5, 0.5, 0.5)), write_fitted(Interval(0.5, 0.4, 0.6))
    ('0.5 (fixed)', '0.50 [0.40, 0.60]')
    """
    return format_interval(value) if value.width != 0 else f"{format_number(value.estimate, 3)} (fixed)"


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
            f"{self.coverage:.0%} of the held-out losses lie inside their {format_level(self.level)} prediction band."
        )


def _places(params: ArrayLike, tokens: ArrayLike, unique_tokens: ArrayLike | None) -> Place:
    """Return sizes as logarithms, broadcast against each other."""
    given = {"params": params, "tokens": tokens} | ({} if unique_tokens is None else {"unique_tokens": unique_tokens})
    parts = {name: as_floats(values, name) for name, values in given.items()}
    for name, part in parts.items():
        if not part.size:
            raise InputError("is empty: give at least one size.", argument=name)
        if not (np.isfinite(part) & (part > 0)).all():
            raise InputError(f"holds {format_number(float(part.min()))}: give numbers above 0.", argument=name)
    try:
        return Place(*(np.log(np.atleast_1d(part).ravel()) for part in np.broadcast_arrays(*parts.values())))
    except ValueError:
        shapes = f"params has shape {parts['params'].shape} and tokens {parts['tokens'].shape}"
        raise InputError(f"{shapes}: give as many of each.") from None
