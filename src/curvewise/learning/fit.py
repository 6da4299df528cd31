"""Fit one learning curve: the extended power law of Hoiem et al. 2021, or an extrapolator."""

from __future__ import annotations

import warnings as python_warnings
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.learning.curve import LearningCurve
from curvewise.learning.diagnose import diagnose, is_near_chance, near_chance
from curvewise.learning.ensemble import ENSEMBLE_FORMS, EnsembleCurve
from curvewise.learning.power import FORMS, Constants, fit_replicates
from curvewise.learning.replicates import Replicates, from_means, group_runs
from curvewise.learning.units import Scale, bounds, scale_for
from curvewise.tables import number
from curvewise.types import FloatArray, Unit


def fit_learning_curve(
    n: ArrayLike,
    error: ArrayLike,
    *,
    unit: str = "fraction",
    higher_is_better: bool = False,
    form: str = "power",
    weights: str = "size",
    largest: int | None = None,
    chance: float | None = None,
    runs: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    learner: str = "learner",
    constants: Constants = Constants(),  # noqa: B008 (frozen)
) -> LearningCurve | EnsembleCurve:
    """Fit e(n) = α + η n^γ, or another form, to errors measured at several training sizes.

    Parameters
    ----------
    n, error : array_like, shape (runs,)
        Training size and error of each run. Repeat a size for replicates.
    unit : {"fraction", "percent", "loss", "score"}
        What the values are. Every number comes back in this unit.
    higher_is_better : bool
        The values are accuracies (turned into errors) or, with unit="score", scores.
    form : str
        "power" (the paper's), "sqrt" (γ = −½), "power2" and "sqrt2" (the same with δ n^2γ), or one
        of the extrapolators "auto", "constrained" (α, η ≥ 0) and "last" (carry the last mean).
    weights : {"size", "run", "none"}
        Weight of a run: 1/(F σ²), 1/σ², or 1.
    largest : int, optional
        Use only this many of the largest sizes; the paper's light design is form="sqrt", largest=3.
    chance : float, optional
        Value of a blind guess, in the unit given (an accuracy with higher_is_better); sizes near
        it are flagged, and it caps the extrapolators.
    runs, variance : array_like, optional
        When ``error`` already holds means: over how many runs, and their variance at ddof 1.
    learner : str
        Name for legends and sentences.
    constants : Constants
        The paper's λ and σ0², in percentage points; or a γ to hold fixed.

    Returns
    -------
    LearningCurve or EnsembleCurve
        The second for the forms "auto", "constrained" and "last".

    References
    ----------
    Hoiem, Gupta, Li and Shlapentokh-Rothman, Learning Curves for Analysis of Deep Networks, 2021.

    Examples
    --------
    >>> n = [100, 100, 200, 200, 400, 400, 800]
    >>> curve = fit_learning_curve(n, [.32, .30, .24, .25, .19, .18, .15], unit="fraction")
    >>> round(curve.error_at(800), 3), round(curve.data_reliance_at(800), 3)
    (0.15, 0.09)
    """
    read_as = Unit(unit, higher_is_better)
    values = read_as.errors(error)
    if runs is None and variance is not None:
        raise InputError("variance needs runs=: over how many runs each mean was taken.")
    data = group_runs(n, values) if runs is None else from_means(n, values, runs, variance)
    if largest is not None:
        if largest < 1:
            raise InputError(f"largest={largest} must be at least 1: how many sizes to use.")
        data = data.only(slice(-largest, None))
    guess = None if chance is None else float(read_as.errors(chance, "chance"))
    turned = read_as.bounded and higher_is_better
    said = f"Accuracies were turned into errors: error = {read_as.top:g} − accuracy."
    curve = build_curve(
        data,
        read_as.once_read,
        form=form,
        weights=weights,
        learner=learner,
        constants=constants,
        chance=guess,
        notes=(said,) if turned else (),
    )
    for message in curve.warnings:
        python_warnings.warn(message, CurvewiseWarning, stacklevel=2)
    return curve


def build_curve(
    data: Replicates,
    unit: Unit,
    *,
    form: str = "power",
    weights: str = "size",
    learner: str = "learner",
    constants: Constants = Constants(),  # noqa: B008 (frozen)
    chance: float | None = None,
    notes: tuple[str, ...] = (),
) -> LearningCurve | EnsembleCurve:
    """Fit a curve to grouped runs given in ``unit``; warnings are kept on the result only."""
    check_form(form)
    check_several_sizes(data, unit)
    scale = scale_for(unit, data.mean)
    points = to_points(data, scale)
    guess = None if chance is None else float(scale.points(chance))
    notes = (*notes, *_notes(unit, data, scale))
    if form in ENSEMBLE_FORMS:
        ensemble = EnsembleCurve.fit(
            points,
            unit,
            scale,
            form=form,
            learner=learner,
            notes=notes,
            constants=constants,
            chance=guess,
        )
        return replace(ensemble, warnings=(*ensemble.warnings, *_misread(unit, points.mean)))
    fits = fit_replicates(points, form, weights, constants)
    theta = tuple(float(a[0]) for a in (fits.alpha, fits.eta, fits.delta, fits.gamma))
    curve = wrap_fit(points, theta, unit, scale, form, weights, learner, constants, notes)
    return curve if guess is None else beside_chance(curve, guess)


def beside_chance(curve: LearningCurve, chance: float) -> LearningCurve:
    """Flag sizes near a blind guess, given in points; see :meth:`Curve._may_drop`."""
    return replace(
        curve,
        warnings=(*curve.warnings, *near_chance(curve._data, chance)),
        _at_chance=bool(is_near_chance(curve._data.mean, chance)[-1]),
    )


def check_form(form: str) -> None:
    """Raise unless the form is known."""
    known = (*FORMS, *ENSEMBLE_FORMS)
    if form not in known:
        raise InputError(f"form={form!r} is not known: use one of {', '.join(map(repr, known))}.")


def check_several_sizes(data: Replicates, unit: Unit) -> None:
    """Raise where all runs have one size, and say what is known there."""
    if len(data.n) > 1:
        return
    mean, spread = float(data.mean[0]), float(data.variance[0])
    known = f"{number(mean)}{unit.suffix}"
    if np.isfinite(spread):
        error = np.sqrt(spread / data.runs[0])
        half = float(stdtrit(data.runs[0] - 1.0, 0.975) * error)
        floor, ceiling = bounds(unit, data.mean)
        top = ceiling / (100.0 / unit.top) if unit.bounded else ceiling
        known += f" [{number(max(mean - half, floor))}, {number(min(mean + half, top))}]"
    raise InputError(
        f"n holds one training size only ({number(float(data.n[0]))}): that is no curve. All that"
        f" is known is the mean there, {known} over {number(float(data.runs[0]))} run(s). Train at"
        " half and a quarter of that size too."
    )


def to_points(data: Replicates, scale: Scale) -> Replicates:
    """Grouped runs from the user's unit to points."""
    if scale == Scale(1.0):
        return data
    return Replicates(data.n, data.runs, scale.points(data.mean), data.variance * scale.factor**2)


def wrap_fit(
    points: Replicates,
    theta: tuple[float, ...],
    unit: Unit,
    scale: Scale,
    form: str,
    weights: str,
    learner: str,
    constants: Constants,
    notes: tuple[str, ...],
) -> LearningCurve:
    """Make the result out of fitted (α, η, δ, γ) in points."""
    alpha, eta, delta, gamma = theta
    x = points.n**gamma
    fitted = alpha + eta * x + delta * x * x
    free, terms = FORMS[form]
    parameters = terms + int(free and constants.gamma is None)
    found = diagnose(
        points,
        fitted,
        gamma=gamma,
        parameters=parameters,
        sigma0_squared=constants.sigma0_squared,
        paper_noise=constants.noise == "paper",
    )
    found = (*found, *_misread(unit, points.mean))
    if alpha < bounds(unit, points.mean)[0]:
        found = (
            *found,
            "The fit implies a negative error with unlimited data"
            f" (α = {number(scale.value(alpha))}): do not extrapolate it. Use form='auto'.",
        )
    return LearningCurve(
        learner=learner,
        form=form,
        unit=unit,
        n=points.n,
        runs=points.runs,
        mean=scale.values(points.mean),
        variance=points.variance / scale.factor**2,
        warnings=found,
        notes=notes,
        constants=constants,
        _data=points,
        _scale=scale,
        _at_chance=False,
        alpha=scale.value(alpha),
        eta=scale.value(eta),
        gamma=gamma,
        delta=scale.value(delta),
        weights=weights,
        parameters=parameters,
        _points=(alpha, eta, delta),
    )


def _notes(unit: Unit, data: Replicates, scale: Scale) -> tuple[str, ...]:
    notes = []
    if not unit.bounded:
        notes.append(
            f"The paper's constants hold for percentages: the {unit.name} was multiplied by"
            f" {number(scale.factor)} so that its largest mean is 100 points."
        )
    return tuple(notes)


def _misread(unit: Unit, mean: FloatArray) -> tuple[str, ...]:
    """Errors that look like fractions read as percentages, accuracies turned first or not."""
    suspicious = float(mean.max()) <= 1.0 or float(mean.min()) >= 99.0
    if unit.name != "percent" or not suspicious:
        return ()
    return (
        "All errors lie within 1% of 0 or of 100%: if these are fractions, pass unit='fraction'.",
    )
