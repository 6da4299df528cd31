"""Fit one learning curve: the extended power law of Hoiem et al. 2021, or an extrapolator."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.errors import CurvewiseError, CurvewiseWarning, InputError
from curvewise.learning.curve import Curve, LearningCurve, parametric_refits
from curvewise.learning.diagnosis import diagnose, is_near_chance, near_chance
from curvewise.learning.ensemble import ENSEMBLE_FORMS, EnsembleCurve
from curvewise.learning.power import (
    FORMS,
    Constants,
    Replicates,
    Scale,
    bounds,
    fit_power,
    fit_replicates,
    from_means,
    gamma_grid,
    group_runs,
    scale_for,
    size_variance,
    size_weights,
    slope_variance,
)
from curvewise.text import as_count, format_number
from curvewise.types.measurements import Measurements
from curvewise.types.results import Result
from curvewise.types.units import FloatArray, Unit, same_names


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
            points, unit, scale, form=form, learner=learner, notes=notes, constants=constants, chance=guess
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
    known = f"{format_number(mean)}{unit.suffix}"
    if np.isfinite(spread):
        error = np.sqrt(spread / data.runs[0])
        half = float(stdtrit(data.runs[0] - 1.0, 0.975) * error)
        floor, ceiling = bounds(unit, data.mean)
        top = ceiling / (100.0 / unit.top) if unit.bounded else ceiling
        known += f" [{format_number(max(mean - half, floor))}, {format_number(min(mean + half, top))}]"
    raise InputError(
        f"n holds one training size only ({format_number(float(data.n[0]))}): that is no curve. All that"
        f" is known is the mean there, {known} over {format_number(float(data.runs[0]))} run(s). Train at"
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
            f" (α = {format_number(scale.value(alpha))}): do not extrapolate it. Use form='auto'.",
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
            f" {format_number(scale.factor)} so that its largest mean is 100 points."
        )
    return tuple(notes)


def _misread(unit: Unit, mean: FloatArray) -> tuple[str, ...]:
    """Errors that look like fractions read as percentages, accuracies turned first or not."""
    suspicious = float(mean.max()) <= 1.0 or float(mean.min()) >= 99.0
    if unit.name != "percent" or not suspicious:
        return ()
    return ("All errors lie within 1% of 0 or of 100%: if these are fractions, pass unit='fraction'.",)


# Many learning curves in one vectorised call.

FEW = 4
"""Up to so many curves, each is said."""


@dataclass(frozen=True, eq=False)
class LearningCurves(Result):
    """Fitted curves of many learners.

    Attributes
    ----------
    curves : dict of str to LearningCurve or EnsembleCurve
        By learner, in the order of the input. Iterating gives the curves.
    at : float or None
        N of the table; None for each curve's own largest size.
    bootstrap : dict of str to ndarray
        With ``refits``: standard error and 95% percentiles of e_N, β_N, α and γ for each curve.
    failures : dict of str to str
        Learners that could not be fitted, and why.
    """

    curves: dict[str, Curve]
    at: float | None
    bootstrap: dict[str, FloatArray]
    failures: dict[str, str]
    warnings: tuple[str, ...] = ()

    def __getitem__(self, learner: str) -> Curve:
        if learner in self.failures:
            raise InputError(f"learner={learner!r} could not be fitted: {self.failures[learner]}")
        if learner not in self.curves:
            close = get_close_matches(str(learner), self.curves, n=1)
            raise InputError(
                f"learner={learner!r} was not fitted"
                + (f"; did you mean {close[0]!r}? There are: " if close else "; there are: ")
                + ", ".join(map(repr, list(self.curves)[:20]))
            )
        return self.curves[learner]

    def __iter__(self) -> Iterator[Curve]:
        return iter(self.curves.values())

    def __len__(self) -> int:
        return len(self.curves)

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings, and for up to twenty curves those that need their intervals."""
        if len(self.curves) > 20:
            return self.warnings
        late = [f"{c.learner}: {w}" for c in self for w in c.all_warnings if w not in c.warnings]
        return (*self.warnings, *late)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per learner: e_N and β_N with their intervals, γ, and the bootstrap columns."""
        curves = list(self)
        sizes = [c.largest_n if self.at is None else self.at for c in curves]
        at = [c.interval_at(n) for c, n in zip(curves, sizes, strict=True)]
        return {
            "learner": list(self.curves),
            "N": [as_count(n) for n in sizes],
            "e_N": [i.error.estimate for i in at],
            "e_N low": [i.error.low for i in at],
            "e_N high": [i.error.high for i in at],
            "beta_N": [i.data_reliance.estimate for i in at],
            "beta_N low": [i.data_reliance.low for i in at],
            "beta_N high": [i.data_reliance.high for i in at],
            "gamma": [float(getattr(c, "gamma", np.nan)) for c in curves],
            **self.bootstrap,
        }

    def summary(self) -> str:
        """The best at the largest size that all have, how many are flagged, what failed."""
        parts = [self._best()] if len(self.curves) > 1 else []
        if flagged := self._flagged():
            parts.append(f"{flagged} of {len(self.curves)} curves flagged.")
        for curve in list(self) if len(self.curves) <= FEW else []:
            n = curve.largest_n if self.at is None else self.at
            at = curve.interval_at(n)
            parts.append(
                f"{curve.learner}: e_N {curve._say(at.error)}, β_N {curve._say(at.data_reliance)}"
                f" at n = {format_number(n)}."
            )
        if self.failures:
            first = next(iter(self.failures.items()))
            parts.append(f"{len(self.failures)} could not be fitted; {first[0]}: {first[1]}")
        return " ".join([*parts, *(f"Beware: {w}" for w in self.all_warnings)])

    def _best(self) -> str:
        """The best, at the largest size that all of them have; of many, the next two as well."""
        curves = list(self)
        n = min(c.largest_n for c in curves) if self.at is None else self.at
        unit = curves[0].unit.name
        score, word = unit == "score", {"score": "highest score", "loss": "lowest loss"}
        ranked = sorted(curves, key=lambda c: float(c.interval_at(n).error.estimate) * (-1 if score else 1))
        said = [c._say(c.interval_at(n).error) for c in ranked[:3]]
        text = f"{ranked[0].learner} has the {word.get(unit, 'lowest error')} of"
        text += f" {len(curves)} learners at n = {format_number(n)}"
        if len(curves) <= FEW:
            return f"{text}."
        then = [f"{c.learner} {e}" for c, e in zip(ranked[1:], said[1:], strict=False)]
        return f"{text}: {said[0]}; then {', '.join(then)}."

    def _flagged(self) -> int:
        """How many curves have warnings, counted as ``all_warnings`` does."""
        few = len(self.curves) <= 20
        return sum(bool(c.all_warnings if few else c.warnings) for c in self)


def fit_learning_curves(
    frame: Any,
    *,
    by: str = "learner",
    unit: str | None = None,
    higher_is_better: bool = False,
    form: str = "power",
    weights: str = "size",
    chance: float | None = None,
    at: float | None = None,
    refits: int = 0,
    rng: int = 0,
    constants: Constants = Constants(),  # noqa: B008 (frozen)
) -> LearningCurves:
    """Fit one curve per learner; curves measured at the same sizes are fitted together.

    Parameters
    ----------
    frame : Measurements, DataFrame or mapping
        Measurements; or a table with columns ``by``, "n" and "error", and perhaps "runs" and
        "variance" when errors are means; or a dict of learner to (n, error).
    by : str
        Column that names the learner.
    unit, higher_is_better : str, bool
        As in :func:`fit_learning_curve`; Measurements bring their own.
    form, weights, constants
        As in :func:`fit_learning_curve`.
    chance : float, optional
        Value of a blind guess, the same for all learners, in the unit of the frame.
    at : float, optional
        N of the table.
    refits : int
        With the power-law forms: refit each curve this many times by a parametric bootstrap.
    rng : int
        Seed of the refits; the refits of one curve do not depend on the other curves.
    """
    check_form(form)
    read_as, groups = _grouped(frame, by, unit, higher_is_better)
    kind = read_as.once_read
    data: dict[str, Replicates] = {}
    failures: dict[str, str] = {}
    for name, columns in groups.items():
        try:
            data[name] = _replicates(columns, read_as)
            check_several_sizes(data[name], kind)
        except CurvewiseError as error:
            data.pop(name, None)
            failures[name] = str(error)
    if not data:
        detail = next(iter(failures.values()), "the table has no rows.")
        raise InputError(f"frame holds no curve that can be fitted: {detail}")
    guess = None if chance is None else float(read_as.errors(chance, "chance"))
    if form in FORMS:
        fitted = dict(_fit_together(data, kind, form, weights, constants))
        if guess is not None:
            fitted = {k: beside_chance(c, c._scale.points(guess).item()) for k, c in fitted.items()}
        curves: dict[str, Curve] = {**fitted}
    else:
        curves = {
            k: build_curve(d, kind, form=form, learner=k, constants=constants, chance=guess) for k, d in data.items()
        }
    result = LearningCurves(
        curves={k: curves[k] for k in data},
        at=at,
        bootstrap=_bootstrap(curves, list(data), at, refits, rng) if refits else {},
        failures=failures,
        warnings=(*_failed_runs(frame), *_shared_subsets(frame), *_warnings(curves, failures)),
    )
    for message in result.warnings:
        python_warnings.warn(message, CurvewiseWarning, stacklevel=2)
    return result


def _grouped(
    frame: Any, by: str, unit: str | None, higher_is_better: bool
) -> tuple[Unit, dict[str, dict[str, NDArray[Any]]]]:
    """Columns of each learner, and the unit."""
    if isinstance(frame, Measurements):
        if (unit is not None and unit != frame.unit.name) or higher_is_better:
            raise InputError(
                f"The measurements are in {frame.unit.name!r} and bring their direction: leave unit"
                " and higher_is_better out."
            )
        columns: dict[str, Any] = {"learner": frame.learner, "n": frame.n, "error": frame.error}
        columns |= {"runs": frame.runs} if frame.runs is not None else {}
        columns |= {"variance": frame.variance} if frame.variance is not None else {}
        status = frame.labels.get("status")
        if status is not None:
            done = np.asarray(status) != "failed"
            columns = {k: v[done] for k, v in columns.items()}
        return frame.unit, _split(columns, "learner")
    kind = Unit(unit or "fraction", higher_is_better)
    if isinstance(frame, str | bytes) or hasattr(frame, "__fspath__"):
        raise InputError(f"frame={frame!r} is a path: read it first with cw.load_measurements.")
    if isinstance(frame, Mapping) and all(_is_pair(v) for v in frame.values()):
        return kind, {str(k): {"n": np.asarray(v[0]), "error": np.asarray(v[1])} for k, v in frame.items()}
    return kind, _split(_columns(frame, by), by)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _columns(frame: Any, by: str) -> dict[str, Any]:
    names = list(frame.columns if hasattr(frame, "columns") else frame)
    value = "score" if "score" in names and "error" not in names else "error"
    missing = [c for c in (by, "n", value) if c not in names]
    if missing:
        raise InputError(
            f"frame lacks the column(s) {', '.join(map(repr, missing))}; it has "
            f"{', '.join(map(repr, names))}. Rename them, pass by=, or read it with"
            " cw.load_measurements, which takes a column map."
        )
    if "variance" in names and "runs" not in names:
        raise InputError("frame has a column 'variance' but no 'runs': over how many runs is it?")
    columns = {c: frame[c] for c in (by, "n", "runs", "variance") if c in names}
    return {**columns, "error": frame[value]}


def _split(columns: dict[str, Any], by: str) -> dict[str, dict[str, NDArray[Any]]]:
    given = np.asarray(columns.pop(by))
    if given.dtype == object and any(v is None or v != v for v in given.tolist()):
        raise InputError(f"frame: the column {by!r} has missing values; name every learner.")
    names = np.array(same_names(given.astype(str).tolist(), f"frame: the column {by!r}"))
    arrays = {k: np.asarray(v) for k, v in columns.items()}
    unique, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(len(unique) + 1))
    return {
        str(unique[i]): {k: v[order[bounds[i] : bounds[i + 1]]] for k, v in arrays.items()} for i in np.argsort(first)
    }


def _replicates(columns: dict[str, NDArray[Any]], unit: Unit) -> Replicates:
    values = unit.errors(columns["error"])
    if "runs" in columns:
        return from_means(columns["n"], values, columns["runs"], columns.get("variance"))
    return group_runs(columns["n"], values)


def _fit_together(
    data: dict[str, Replicates], unit: Unit, form: str, weights: str, constants: Constants
) -> Iterator[tuple[str, LearningCurve]]:
    same_sizes: dict[bytes, list[str]] = {}
    for name, d in data.items():
        same_sizes.setdefault(d.n.tobytes(), []).append(name)
    s0 = constants.sigma0_squared
    gammas = gamma_grid(form, constants.gamma)
    for names in same_sizes.values():
        scales = [scale_for(unit, data[k].mean) for k in names]
        points = [to_points(data[k], s) for k, s in zip(names, scales, strict=True)]
        n, runs = points[0].n, np.stack([p.runs for p in points])
        slope = slope_variance(n, runs, np.stack([p.variance for p in points]), s0)
        weight = size_weights(weights, runs, size_variance(n, slope[:, None], s0))
        mean = np.stack([p.mean for p in points])
        fits = fit_power(n, mean, weight, gammas=gammas, prior=constants.prior, terms=FORMS[form][1])
        theta = np.stack([fits.alpha, fits.eta, fits.delta, fits.gamma], axis=1)
        for k, p, scale, row in zip(names, points, scales, theta, strict=True):
            yield k, wrap_fit(p, tuple(row.tolist()), unit, scale, form, weights, k, constants, ())


def _bootstrap(
    curves: Mapping[str, Curve], names: list[str], at: float | None, refits: int, seed: int
) -> dict[str, FloatArray]:
    rows = []
    for name in names:
        curve = curves[name]
        if not isinstance(curve, LearningCurve):
            raise InputError("refits needs one of the power-law forms; form='auto' has none.")
        # Seeded by the curve's own data, so that adding a learner changes nothing for the others.
        own = np.frombuffer(curve.mean.tobytes(), dtype=np.uint32)
        fits = parametric_refits(curve, refits, np.random.default_rng([seed, *own.tolist()]))
        n = curve.largest_n if at is None else at
        x = fits.eta * n**fits.gamma
        square = fits.delta * n ** (2 * fits.gamma)
        draws = np.stack(
            [
                curve._scale.values(fits.alpha + x + square),
                -2.0 * fits.gamma * (x + 2.0 * square) / curve._scale.factor,
                curve._scale.values(fits.alpha),
                fits.gamma,
            ]
        )
        low, high = np.percentile(draws, [2.5, 97.5], axis=1)
        rows.append(np.concatenate([draws.std(axis=1, ddof=1 if refits > 1 else 0), low, high]))
    table = np.array(rows).T
    quantities = ("e_N", "beta_N", "alpha", "gamma")
    labels = [f"{q} {s}" for s in ("se", "2.5%", "97.5%") for q in quantities]
    return dict(zip(labels, table, strict=True))


def _shared_subsets(frame: Any) -> list[str]:
    """Runs that differ in their seeds only tell less than their number says."""
    shared = frame.shared_subsets if isinstance(frame, Measurements) else 0
    if not shared:
        return []
    return [
        f"{shared} training subset(s) have several runs, which are not independent of each other: "
        "the intervals take them so and are too narrow. Average over the seeds first, with "
        "measurements.subset_means()."
    ]


def _failed_runs(frame: Any) -> tuple[str, ...]:
    """Say how many failed runs are left out of the fits, and whose."""
    if not isinstance(frame, Measurements) or "status" not in frame.labels:
        return ()
    failed = np.asarray(frame.labels["status"]) == "failed"
    if not failed.any():
        return ()
    whose = ", ".join(dict.fromkeys(frame.learner[failed].tolist()))
    return (f"{int(failed.sum())} of {len(frame)} runs failed and are left out ({whose}).",)


def _warnings(curves: Mapping[str, Curve], failures: Mapping[str, str]) -> tuple[str, ...]:
    flagged = [k for k, c in curves.items() if c.warnings]
    found = []
    if flagged:
        first = curves[flagged[0]].warnings[0]
        found.append(
            f"{len(flagged)} of {len(curves)} curves are flagged, see .warnings of each; the first,"
            f" {flagged[0]}: {first}"
        )
    if failures:
        name, why = next(iter(failures.items()))
        found.append(f"{len(failures)} learner(s) could not be fitted; the first, {name}: {why}")
    return tuple(found)
