"""Fit learning curves: the extended power law of Hoiem et al. 2021, or an extrapolator; one curve or many at once."""

from __future__ import annotations

import math
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from curvewise.errors import CurvewiseError, InputError, Message, arg, list_names, prefix, quietly, suggest, warn_all
from curvewise.learning.calibration import ensemble_interval
from curvewise.learning.curve import (
    EXTRAPOLATION_LIMIT,
    Curve,
    LearningCurve,
    check_size,
    estimate_columns,
    far_sizes,
    note_on_estimates,
    readable_estimates,
)
from curvewise.learning.diagnosis import diagnose, is_below, is_near_chance, not_followed
from curvewise.learning.extrapolation import SHORTEST_PREFIX, LawEnsemble, fit_ensemble, fit_member
from curvewise.learning.power import (
    FORMS,
    Constants,
    GroupedRuns,
    PowerFits,
    bounds,
    check_choice,
    check_constants,
    fit_means,
    group_runs,
    scale_for,
)
from curvewise.learning.profile import NoiseAverage, Profile, profile_replicates
from curvewise.stats.intervals import excluded_level
from curvewise.text import format_count, format_number
from curvewise.types.measurements import Measurements
from curvewise.types.results import FloatArray, Result, Unit, as_floats, count_missing, data_frame, same_names

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ENSEMBLE_FORMS = ("auto", "constrained", "last")
"""Forms made to extrapolate: the ensemble, the power law with α, η ≥ 0, the last mean carried."""


def fit_learning_curve(
    n: ArrayLike,
    error: ArrayLike,
    *,
    unit: str = "fraction",
    higher_is_better: bool = False,
    form: str | None = None,
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
    form : str, optional
        "power" (the paper's, and the default without ``largest``), "sqrt" (γ = −½), "power2" and "sqrt2"
        (the same with δ n^2γ), or one of the extrapolators "auto", "constrained" (α, η ≥ 0) and "last"
        (carry the last mean).
    weights : {"size", "run", "none"}
        Weight of a run: 1/(F σ²), 1/σ², or 1.
    largest : int, optional
        Use only this many of the largest sizes, σ̂² included. The form is then "sqrt" unless one is named: γ is
        held at −½ and not fitted, since few sizes do not determine it. ``largest=3`` is the paper's light design.
    chance : float, optional
        Value of a blind guess, in the unit given (an accuracy with higher_is_better); sizes near
        it are flagged, and it caps the extrapolators.
    runs, variance : array_like, optional
        When ``error`` already holds means: over how many runs, and their variance at ddof 1.
    learner : str
        Name for legends and sentences.
    constants : Constants
        The paper's λ and σ0², in percentage points; a γ to hold fixed.

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
    form, notes = _form_of(form, largest, constants)
    data = group_runs(n, values, runs, variance)
    notes = _too_many(largest, data, form) or notes
    data = data.keep_largest(largest)
    if read_as.bounded and higher_is_better:
        notes.append(f"Accuracies were turned into errors: error = {read_as.top:g} − accuracy.")
    settings: dict[str, Any] = {"form": form, "weights": weights, "learner": learner, "constants": constants}
    curve = build_curve(data, read_as.once_read, chance=_error_of_guess(chance, read_as), notes=notes, **settings)
    warn_all(curve.warnings)
    return curve


def _form_of(form: str | None, largest: int | None, constants: Constants) -> tuple[str, list[str]]:
    """Return the form to fit, and what to note: with only the largest sizes γ is −½, unless a form or a γ is given."""
    if largest is None:
        return form or "power", []
    if not isinstance(largest, int | np.integer) or isinstance(largest, bool) or largest < 2:
        problem = "must be a whole number from 2: how many of the largest sizes to use."
        raise InputError(problem, argument="largest", value=largest)
    used = f"Only the {largest} largest sizes are used"
    check_constants(constants)
    if form is None and constants.gamma is None:
        return "sqrt", [f"{used}, and γ is held at −½."]
    return form or "power", [f"{used}."]


def _too_many(largest: int | None, data: GroupedRuns, form: str) -> list[str]:
    """Note that there are fewer sizes than asked for, so that all are used."""
    if largest is None or largest <= data.n.size:
        return []
    held = ", with γ held at −½" if form == "sqrt" else ""
    text = f"{arg('largest', largest)} was asked for, and there are {data.n.size} sizes: all are used{held}."
    return [Message(text)]


def fit_learning_curves(
    frame: Any,
    *,
    by: str = "learner",
    unit: str | None = None,
    higher_is_better: bool = False,
    form: str | None = None,
    weights: str = "size",
    largest: int | None = None,
    chance: float | None = None,
    at: float | None = None,
    refits: int = 0,
    rng: int = 0,
    constants: Constants = Constants(),  # noqa: B008 (frozen)
) -> LearningCurves:
    """Fit one curve per learner; curves measured at the same sizes are fitted together.

    Parameters
    ----------
    frame : Measurements, DataFrame, mapping or path
        Measurements; or a table with columns ``by``, "n" and "error", and perhaps "runs" and
        "variance" when errors are means, rows whose "status" is "failed" being left out; or a dict of
        learner to (n, error). A table with other columns, and a file, are read as by
        :func:`curvewise.load_measurements`; ``notes`` of the curves then say how.
    by : str
        Column that names the learner.
    unit, higher_is_better : str, bool
        As in :func:`fit_learning_curve`; Measurements bring their own.
    form, weights, largest, constants
        As in :func:`fit_learning_curve`.
    chance : float, optional
        Value of a blind guess, the same for all learners, in the unit of the frame: an error, or with
        ``higher_is_better`` an accuracy.
    at : float, optional
        N of the table.
    refits : int
        With the power-law forms: refit each curve this many times by a parametric bootstrap.
    rng : int
        Seed of the refits; the refits of one curve do not depend on the other curves.
    """
    form, notes = _form_of(form, largest, constants)
    # Checked first: a wrong form would otherwise fail for each learner separately.
    check_choice("form", form, (*FORMS, *ENSEMBLE_FORMS))
    guessed = higher_is_better  # the direction of the blind guess
    if (read := _read_frame(frame, by, unit, higher_is_better)) is not None:
        frame, unit, higher_is_better = read, None, False
        notes = [*notes, *read.notes]
    read_as, groups = _group_by_learner(frame, by, unit, higher_is_better)
    kind = read_as.once_read
    data: dict[str, GroupedRuns] = {}
    failures: dict[str, str] = {}
    lost: dict[str, int] = {}
    few: dict[str, None] = {}
    total = 0
    for name, columns in groups.items():
        total += columns["n"].size
        done = np.array([s != "failed" for s in columns.pop("status", np.zeros(columns["n"].size)).tolist()])
        if not done.all():
            lost[name] = int((~done).sum())
            if not done.any():
                failures[name] = f"all its runs failed ({lost[name]})."
                continue
        try:
            finished = columns if done.all() else {k: v[done] for k, v in columns.items()}
            grouped = group_runs(**{**finished, "error": read_as.errors(finished["error"])})
            few.update(dict.fromkeys(_too_many(largest, grouped, form)))
            grouped = grouped.keep_largest(largest)
            _check_several_sizes(grouped, kind)
        except CurvewiseError as error:
            failures[name] = error.args[0]
        else:
            data[name] = grouped
    if not data:
        detail = next(iter(failures.values()), "the table has no rows.")
        raise InputError(prefix("No curve can be fitted: ", detail))
    guess = _error_of_guess(chance, read_as if read is None else Unit(read_as.name, guessed))
    curves = build_curves(data, kind, form=form, weights=weights, constants=constants, chance=guess, notes=notes)
    general = [*([left_out(lost, total)] if lost else []), *few]
    if isinstance(frame, Measurements) and frame.variance is not None and frame.runs is None:
        general.append(
            "The variance of the means is not used, because no column says over how many runs each was taken: every"
            f" mean counts as one run. Name that column with {arg('columns', {'runs': 'COLUMN'})}."
        )
    if isinstance(frame, Measurements) and (shared := frame.shared_subsets):
        # Runs that differ in their seeds only carry less information than their number suggests.
        text = f"{format_count(shared, 'training subset')} with several runs each, which are not independent of each"
        text += " other: the intervals take them so and are too narrow."
        remedy = " Average over the seeds first: fit cw.load_measurements(…).subset_means()."
        general.append(text + (remedy if frame.runs is None else ""))
    bootstrap = _bootstrap(curves, at, refits, rng) if refits else {}
    asked = [] if at is None else [check_size(at, "at", infinite=True)]
    far = far_sizes(np.array(asked), list(curves.values())) if asked else ()
    warnings = (*general, *far, *_first_warnings(curves, failures))
    result = LearningCurves({**curves}, at, bootstrap, failures, warnings, tuple(general))
    warn_all(result.warnings)
    return result


def fitted_curves(curves: Any, **options: Any) -> Any:
    """Return fitted curves; fit measurements, tables, files and dicts of (n, error) with options.

    Curves in a dict get its keys as names.
    """
    table = isinstance(curves, Measurements | str | PathLike) or hasattr(curves, "columns")
    if (table or _is_pairs(curves)) and not isinstance(curves, Result):
        with quietly():  # the result that is made of them has their warnings
            return fit_learning_curves(curves, **options)
    for name, value in options.items():
        raise InputError(f"{arg(name, value)} is for measurements that are yet to be fitted, and these curves are.")
    if isinstance(curves, Mapping):
        named = {name: isinstance(curve, Curve) and curve.learner != name for name, curve in curves.items()}
        return [replace(curves[name], learner=str(name)) if rename else curves[name] for name, rename in named.items()]
    return curves


FEW = 4
"""Up to so many curves, the sentences have the estimates of each."""


@dataclass(frozen=True, eq=False)
class LearningCurves(Result):
    """Fitted curves of many learners.

    Iterating gives the curves; ``curves["resnet"]`` is that of a learner, and ``keys()``, ``values()`` and ``items()``
    are those of a dict of learner to curve.

    Attributes
    ----------
    curves : dict of str to LearningCurve or EnsembleCurve
        By learner, in the order of the input.
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
    _general: tuple[str, ...] = ()

    def __getitem__(self, learner: str | Curve) -> Curve:
        if isinstance(learner, Curve):  # iterating gives curves, and their names are keys
            learner = learner.learner
        if not isinstance(learner, str):
            remedy = f"There are {list_names(self.curves)}; list(curves)[i] is the curve at place i."
            raise InputError("is not the name of a learner.", argument="learner", value=learner, remedy=remedy)
        if learner in self.failures:
            raise InputError(prefix("could not be fitted. ", self.failures[learner]), argument="learner", value=learner)
        if learner not in self.curves:
            raise InputError(
                "was not fitted.",
                argument="learner",
                value=learner,
                remedy=f"{suggest(learner, self.curves).strip()} There are {list_names(self.curves)}.".strip(),
            )
        return self.curves[learner]

    def __iter__(self) -> Iterator[Curve]:
        return iter(self.curves.values())

    def __len__(self) -> int:
        return len(self.curves)

    def __contains__(self, learner: object) -> bool:
        return (learner.learner if isinstance(learner, Curve) else learner) in self.curves

    def keys(self) -> KeysView[str]:
        """Return the learners, in the order of the input."""
        return self.curves.keys()

    def values(self) -> ValuesView[Curve]:
        """Return the curves, in the same order."""
        return self.curves.values()

    def items(self) -> ItemsView[str, Curve]:
        """Return pairs of learner and curve."""
        return self.curves.items()

    @property
    def general_warnings(self) -> tuple[str, ...]:
        """Warnings that concern the measurements as a whole, not single curves."""
        return self._general

    @property
    def curve_warnings(self) -> tuple[str, ...]:
        """Why learners could not be fitted, then all warnings of every curve with its learner's name."""
        failed = [prefix(f"{name} could not be fitted: ", why) for name, why in self.failures.items()]
        return (*failed, *(prefix(f"{c.learner}: ", w) for c in self for w in c.all_warnings))

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings, and for up to twenty curves those that need their intervals."""
        if len(self.curves) > 20:
            return self.warnings
        late = [prefix(f"{c.learner}: ", w) for c in self for w in c.all_warnings if w not in c.warnings]
        return (*self.warnings, *late)

    def predict(
        self, n: ArrayLike, interval: str | None = None, *, level: float = 0.95, runs: float = 1
    ) -> pd.DataFrame:
        """Return the curves at sizes n with their intervals, as :meth:`Curve.predict`.

        Returns
        -------
        DataFrame
            Columns learner, n, error, low, high; a row for each learner and size.
        """
        with quietly():
            tables = [c.predict(n, interval, level=level, runs=runs) for c in self]
        warn_all(far_sizes(tables[0]["n"].to_numpy(), list(self)))
        columns = {k: np.concatenate([t[k].to_numpy() for t in tables]) for k in ("n", "error", "low", "high")}
        found = data_frame({"learner": np.repeat([c.learner for c in self], len(tables[0])), **columns})
        found.attrs = tables[0].attrs
        return found

    def samples_to_reach(self, error: float, *, level: float = 0.95) -> pd.DataFrame:
        """Return how many training samples it takes each learner to reach an error, as :meth:`Curve.samples_to_reach`.

        Returns
        -------
        DataFrame
            Columns learner, error, n, low, high, probability_never; a row for each learner.
        """
        rows = [c.samples_to_reach(error, level=level).columns() for c in self]
        return data_frame({k: [row[k][0] for row in rows] for k in rows[0]})

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw all curves with measurements and intervals, and return the Axes.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        **options
            Those of :func:`curvewise.learning.plot_learning_curves`: x="log" (or "linear", "log-log", "sqrt"),
            at=N, predict=[sizes to mark], to=size to end at, reach=target, interval, level, held_out=(n, values),
            limit and legend.
        """
        return super().plot(ax, **options)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per learner: e_N and β_N with their intervals, γ, and the bootstrap columns."""
        return {**estimate_columns(list(self), self.at), **self.bootstrap}

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return one row per learner: e_N, β_N and γ with their intervals, the best e_N in bold."""
        return readable_estimates(list(self), self.at)

    def table_note(self) -> str:
        """Name the quantities and their intervals."""
        return note_on_estimates(list(self))

    def sentences(self) -> str:
        """The best at the largest size that all have, how many are flagged, what failed."""
        parts = [self._best()] if len(self.curves) > 1 else []
        few = len(self.curves) <= 20  # as in all_warnings
        if flagged := sum(bool(c.all_warnings if few else c.warnings) for c in self):
            parts.append(f"{flagged} of {len(self.curves)} curves {'has' if flagged == 1 else 'have'} warnings.")
        for curve in list(self) if len(self.curves) <= FEW else []:
            n = curve.largest_n if self.at is None else self.at
            at = curve.interval_at(n)
            estimates = f"e_N {curve._say(at.error)}, β_N {curve._say(at.data_reliance)}"
            parts.append(f"{curve.learner}: {estimates} at n = {format_number(n)}.")
        if self.failures:
            first = next(iter(self.failures.items()))
            parts.append(f"{len(self.failures)} could not be fitted; {first[0]}: {first[1]}")
        return " ".join(parts)

    def _best(self) -> str:
        """The best, at the largest size that all of them have; of many, the next two as well."""
        curves = list(self)
        n = min(c.largest_n for c in curves) if self.at is None else self.at
        unit = curves[0].unit.name
        score, word = unit == "score", {"score": "highest score", "loss": "lowest loss"}
        ranked = sorted(curves, key=lambda c: float(c.interval_at(n).error.estimate) * (-1 if score else 1))
        errors = [c._say(c.interval_at(n).error) for c in ranked[:3]]
        text = f"{ranked[0].learner} has the {word.get(unit, 'lowest error')} of"
        text += f" {len(curves)} learners at n = {format_number(n)}"
        if len(curves) <= FEW:
            return f"{text}."
        then = [f"{c.learner} {e}" for c, e in zip(ranked[1:], errors[1:], strict=False)]
        return f"{text}: {errors[0]}; then {', '.join(then)}."


def _read_frame(frame: Any, by: str, unit: str | None, higher_is_better: bool) -> Measurements | None:
    """Read a file, or a table with other columns than those expected; None for what needs no reading."""
    if isinstance(frame, Measurements) or _is_pairs(frame):
        return None
    names = [] if isinstance(frame, str | PathLike) else _names_of(frame)
    # Any further column may say that rows are no runs of one curve: a split, a metric, an epoch, a run given twice.
    # Scores of which nobody says that higher is better are read by their name.
    value = "score" if higher_is_better and "error" not in names else "error"
    if {by, "n", value} <= set(names) <= {by, "n", value, "runs", "variance", "status"}:
        return None
    # here, because a fit of arrays reads no file
    from curvewise.learning.load import load_measurements, read_stored

    columns: dict[str, str | None] = {} if by == "learner" else {"learner": by}
    if "error" in names and "n" in names:
        columns |= {"n": "n", "value": "error"}
    higher = higher_is_better or None
    try:
        if "status" in names and set(np.asarray(frame["status"]).tolist()) == {"done", "failed"}:
            # A frame of measurements of a store: failed runs stay, to be counted.
            return read_stored(frame, columns, unit, higher)
        return load_measurements(frame, unit=unit, higher_is_better=higher, columns=columns or None)
    except InputError as error:
        error.add_note("columns=…, wide=… and the like are options of cw.load_measurements: read it with that first.")
        raise


def _is_pairs(frame: Any) -> bool:
    """Return True for a dict of learner to (n, error)."""
    return isinstance(frame, Mapping) and all(isinstance(v, tuple) and len(v) == 2 for v in frame.values())


def _names_of(frame: Any) -> list[Any]:
    """Return the names of the columns of a data frame, a table of pyarrow or a dict."""
    if hasattr(frame, "column_names"):  # of pyarrow, whose ``columns`` are the arrays
        return list(frame.column_names)
    return list(frame.columns if hasattr(frame, "columns") else frame if isinstance(frame, Mapping) else [])


def _group_by_learner(
    frame: Any, by: str, unit: str | None, higher_is_better: bool
) -> tuple[Unit, dict[str, dict[str, NDArray[Any]]]]:
    """Columns of each learner, and the unit."""
    if isinstance(frame, Measurements):
        if (unit is not None and unit != frame.unit.name) or higher_is_better:
            raise InputError(
                f"The measurements are in {frame.unit.name!r} and bring their direction:"
                f" leave {arg('unit')} and {arg('higher_is_better')} out."
            )
        columns = frame.columns()
        if frame.runs is None:
            columns.pop("variance", None)  # of how many runs is not known
        return frame.unit, _split_rows(_columns_of(columns, "learner"), "learner")
    kind = Unit(unit or "fraction", higher_is_better)
    if _is_pairs(frame):
        return kind, {str(k): {"n": np.asarray(v[0]), "error": np.asarray(v[1])} for k, v in frame.items()}
    return kind, _split_rows(_columns_of(frame, by), by)


def _columns_of(frame: Any, by: str) -> dict[str, Any]:
    names = _names_of(frame)
    value = "score" if "score" in names and "error" not in names else "error"
    if "variance" in names and "runs" not in names:
        raise InputError("has a column 'variance' but no 'runs': over how many runs is it?", argument="frame")
    columns = {c: frame[c] for c in (by, "n", "runs", "variance", "status") if c in names}
    return {**columns, "error": frame[value]}


def _split_rows(columns: dict[str, Any], by: str) -> dict[str, dict[str, NDArray[Any]]]:
    given = np.asarray(columns.pop(by))
    if count_missing(given.tolist()):
        raise InputError(f"the column {by!r} has missing values; name every learner.", argument="frame")
    names = np.array(same_names(given.astype(str).tolist(), f"frame: the column {by!r}"))
    arrays = {k: np.asarray(v) for k, v in columns.items()}
    unique, first, inverse = np.unique(names, return_index=True, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    bounds = np.searchsorted(inverse[order], np.arange(len(unique) + 1))
    return {
        str(unique[i]): {k: v[order[bounds[i] : bounds[i + 1]]] for k, v in arrays.items()} for i in np.argsort(first)
    }


def _error_of_guess(chance: float | None, unit: Unit) -> float | None:
    """Return the error of a blind guess, or raise an error that names the argument."""
    if chance is None:
        return None
    given = as_floats(chance, "chance")
    value = math.nan if given.ndim else float(given)
    if not math.isfinite(value) or (unit.bounded and not 0 <= value <= unit.top):
        allowed = f"a {unit.name} from 0 to {unit.top:g}" if unit.bounded else "a finite number"
        raise InputError(f"must be {allowed}, in the unit of the values.", argument="chance", value=chance)
    return float(unit.errors(value))


def _bootstrap(curves: Mapping[str, Curve], at: float | None, refits: int, seed: int) -> dict[str, FloatArray]:
    """Standard errors and percentiles of e_N, β_N, α and γ over refits, one entry per curve."""
    rows = []
    for curve in curves.values():
        if not isinstance(curve, LearningCurve):
            raise InputError("needs one of the power-law forms.", argument="refits", value=refits)
        # Seeded by the curve's own data, so that adding a learner changes nothing for the others.
        own = np.frombuffer(curve.mean.tobytes(), dtype=np.uint32)
        fits = curve.bootstrap(refits, rng=np.random.default_rng([seed, *own.tolist()]))
        n = curve.largest_n if at is None else at
        reliance = fits.reliance_at(n) * curve._scale.sign
        draws = np.stack([fits.errors_at(n)[:, 0], reliance, fits.alpha, fits.gamma])
        low, high = np.percentile(draws, [2.5, 97.5], axis=1)
        rows.append(np.concatenate([draws.std(axis=1, ddof=1 if refits > 1 else 0), low, high]))
    labels = [f"{q}_{s}" for s in ("se", "q025", "q975") for q in ("e_N", "beta_N", "alpha", "gamma")]
    return dict(zip(labels, np.array(rows).T, strict=True))


def left_out(lost: Mapping[str, int], total: int) -> str:
    """State how many of all runs failed, from the number of failed runs of each learner that has some."""
    return f"{sum(lost.values())} of {total} runs failed and are left out ({', '.join(lost)})."


def _first_warnings(curves: Mapping[str, Curve], failures: Mapping[str, str]) -> Iterator[str]:
    """Count the curves that are flagged and the learners that failed, each with the first as an example."""
    flagged = [k for k, c in curves.items() if c.warnings]
    if flagged:
        first = curves[flagged[0]].warnings[0]
        head = f"{len(flagged)} of {len(curves)} curves are flagged, see .warnings of each; the first, {flagged[0]}: "
        yield prefix(head, first)
    if failures:
        name, why = next(iter(failures.items()))
        yield prefix(f"{format_count(len(failures), 'learner')} could not be fitted; the first, {name}: ", why)


def _check_several_sizes(data: GroupedRuns, unit: Unit) -> None:
    """Raise where all runs have one size; the message gives the mean there with its interval."""
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
        f" is known is the mean there, {known} over {format_count(int(data.runs[0]), 'run')}. Train at"
        " half and a quarter of that size too."
    )


def build_curve(
    data: GroupedRuns, unit: Unit, *, learner: str = "learner", **options: Any
) -> LearningCurve | EnsembleCurve:
    """Fit a curve to grouped runs given in ``unit``, as :func:`build_curves`; warnings are kept on the result only."""
    _check_several_sizes(data, unit)
    return build_curves({learner: data}, unit, **options)[learner]


def build_curves(
    data: Mapping[str, GroupedRuns],
    unit: Unit,
    *,
    form: str = "power",
    weights: str = "size",
    constants: Constants = Constants(),  # noqa: B008 (frozen)
    chance: float | None = None,
    notes: Sequence[str] = (),
) -> dict[str, LearningCurve | EnsembleCurve]:
    """Fit a curve to the grouped runs of each learner, quietly; those measured at the same sizes together."""
    check_choice("form", form, (*FORMS, *ENSEMBLE_FORMS))
    check_constants(constants)
    curves: dict[str, LearningCurve | EnsembleCurve] = {}
    places = {name: i for i, name in enumerate(data)}
    # Curves at the same sizes share the basis of the grid over γ, so that one call fits them all.
    same_sizes: dict[bytes, list[str]] = {}
    for name, d in data.items():
        same_sizes.setdefault(d.n.tobytes(), []).append(name)
    for names in same_sizes.values():
        scales = [scale_for(unit, data[k].mean) for k in names]
        points = [data[k].in_points(s) for k, s in zip(names, scales, strict=True)]
        fits = None
        if form in FORMS:
            runs, mean, variance = (np.stack([getattr(p, k) for p in points]) for k in ("runs", "mean", "variance"))
            fits = fit_means(points[0].n, runs, mean, variance, form, weights, constants)
        for i, (name, p, scale) in enumerate(zip(names, points, scales, strict=True)):
            guess = None if chance is None else float(scale.points(chance))
            own = list(notes)
            if not unit.bounded:
                own.append(
                    f"The paper's constants hold for percentages: the {unit.name} was multiplied by"
                    f" {format_number(scale.factor)} so that its largest mean is 100 points."
                )
            common: dict[str, Any] = {
                "learner": name,
                "form": form,
                "unit": unit,
                "n": p.n,
                "runs": p.runs,
                "mean": scale.values(p.mean),
                "variance": p.variance / scale.factor**2,
                "notes": tuple(own),
                "constants": constants,
                "_data": p,
                "_scale": scale,
                "_at_chance": guess is not None and bool(is_near_chance(p.mean, guess)[-1]),
                "_place": places[name] if len(places) > 1 else None,
            }
            if fits is None:
                curves[name] = _ensemble_curve(common, guess)
            else:
                theta = (float(v[i]) for v in (fits.alpha, fits.eta, fits.delta, fits.gamma))
                curves[name] = _power_curve(common, *theta, weights=weights, chance=guess)
    return {name: curves[name] for name in data}


def _power_curve(
    common: dict[str, Any], alpha: float, eta: float, delta: float, gamma: float, *, weights: str, chance: float | None
) -> LearningCurve:
    """Make the result of fitted (α, η, δ, γ) in points."""
    points, scale, constants = common["_data"], common["_scale"], common["constants"]
    free, terms = FORMS[common["form"]]
    parameters = terms + int(free and constants.gamma is None)
    x = points.n**gamma
    law: dict[str, Any] = {"gamma": gamma, "parameters": parameters, "chance": chance, "unit": common["unit"]}
    found = diagnose(points, alpha + eta * x + delta * x * x, constants, **law)
    if is_below(alpha, bounds(common["unit"], points.mean)[0]):
        found.append(not_followed("negative", float(points.n[-1]), common["unit"]))
    return LearningCurve(
        **common,
        warnings=tuple(map(Message, found)),
        alpha=scale.value(alpha),
        eta=scale.value(eta),
        gamma=gamma,
        delta=scale.value(delta),
        weights=weights,
        parameters=parameters,
        _points=(alpha, eta, delta),
    )


def _ensemble_curve(common: dict[str, Any], chance: float | None) -> EnsembleCurve:
    """Fit a form made to extrapolate; ``chance`` is the error of a blind guess in points."""
    points, constants, form = common["_data"], common["constants"], common["form"]
    floor, ceiling = bounds(common["unit"], points.mean)
    ceiling = ceiling if chance is None else max(chance, float(points.mean.max()))
    limits = {"floor": floor if np.isfinite(floor) else None, "ceiling": ceiling if np.isfinite(ceiling) else None}
    stderr = points.standard_error(constants.sigma0_squared) if points.replicated else None
    # Any other form names the one member of the ensemble that is fitted.
    fit = fit_ensemble if form == "auto" else partial(fit_member, form)
    ensemble = fit(points.n, points.mean, stderr, **limits)
    found = diagnose(points, ensemble.predict(points.n), constants, chance=chance, unit=common["unit"])
    if len(points.n) == 2 and form != "last":
        found.append(
            "Two sizes do not determine a curve, and none is fitted: the last mean is carried"
            " forward, with the interval of such forecasts. Add sizes."
        )
    if SHORTEST_PREFIX <= len(points.n) < 5 and form == "auto":
        found.append(
            f"With {len(points.n)} sizes the forms of the ensemble cannot be weighed by how well they"
            " predict held-out sizes: those that fit all sizes count alike."
        )
    return EnsembleCurve(
        **common,
        warnings=tuple(map(Message, found)),
        members=dict(zip(ensemble.members, ensemble.weights.tolist(), strict=True)),
        rolling_error=dict(ensemble.rolling_error),
        _ensemble=ensemble,
    )


@dataclass(frozen=True, eq=False)
class EnsembleCurve(Curve):
    """A curve made to extrapolate.

    Its intervals are prediction intervals calibrated on real learning curves; it has no confidence
    intervals, because it supposes no form that could be true. One or two sizes are not fitted:
    their means are joined and the last one is carried forward. Beyond a largest size that is still
    within a tenth of chance, intervals reach down to the lowest possible error.

    Attributes
    ----------
    members : dict of str to float
        Weight of each form in the ensemble.
    rolling_error : dict of str to float
        What each form erred, relatively, when it predicted the later of the measured sizes from
        the earlier ones; NaN where there were too few sizes.
    """

    members: dict[str, float]
    rolling_error: dict[str, float]
    _ensemble: LawEnsemble

    @property
    def default_interval(self) -> str:
        """Always "prediction"."""
        return "prediction"

    def sentences(self) -> str:
        """A few sentences: the error now, at twice and at four times the data."""
        word = self.unit.quantity
        now, twice, four = (
            self._say(self.interval_at(k * self.largest_n).error) for k in (1.0, 2.0, EXTRAPOLATION_LIMIT)
        )
        forms = sum(weight > 0 for weight in self.members.values())
        how = f", a weighted mean of {forms} forms" if forms > 1 else ""
        if len(self.n) < SHORTEST_PREFIX and self.form != "last":
            how = ", the means are joined, no law is fitted"
        return (
            f"{self.learner}: at n = {format_number(self.largest_n)} the {word} is {now}. With twice the"
            f" data it is predicted to be {twice}, with four times {four} (95% prediction intervals"
            f" for the mean of many runs). Form: {self.form}{how}, {self._data.total} runs at {len(self.n)} sizes."
        )

    @cached_property
    def _profile(self) -> Profile | NoiseAverage:
        return profile_replicates(self._data, self.constants)

    def _error_points(self, n: FloatArray) -> FloatArray:
        return self._ensemble.predict(np.minimum(n, 1e30))

    def _gain_band(self, n: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        low, high = self._clip(*self._band_points(n, level, "prediction", np.inf))
        now = float(self._error_points(np.array([self.largest_n]))[0])
        return (now - high) / self._scale.factor, (now - low) / self._scale.factor

    @cached_property
    def _power(self) -> PowerFits:
        """The paper's power law of the same data, in points."""
        runs, mean, variance = (v[None] for v in (self._data.runs, self._data.mean, self._data.variance))
        return fit_means(self._data.n, runs, mean, variance, constants=self.constants)

    def _reliance_points(self, n: float) -> float:
        # The slope of an average of forms jumps where their weights and damping set in. β_N is that of form="power",
        # so that one learner has one β_N with one interval, whatever its errors are predicted by.
        return float(self._power.reliance_at(n)[0])

    def _large_points(self, n: float) -> float:
        return float(self._power.errors_at(n)[0, 0]) - self._reliance_points(n)

    def _band_points(self, n: FloatArray, level: float, interval: str, runs: float) -> tuple[FloatArray, FloatArray]:
        if interval != "prediction":
            raise InputError(
                f"has prediction intervals only: it averages several forms. Leave {arg('interval', interval)} out,"
                f" or fit {arg('form', 'power')}.",
                argument="form",
                value=self.form,
            )
        noise = self._noise_of_mean(n, level, runs)
        low, high = ensemble_interval(self._data, self._ensemble, n, level, noise)
        low, high = self._not_surer_than_runs(n, level, noise, low, high)
        return self._may_drop(n, low), high

    def _probability_never(self, target: float) -> float:
        """Probability that neither today's data nor a thousand times as much is enough."""
        return min(self._probability_above(k * self.largest_n, target) for k in (1e3, 1.0))

    def _probability_above(self, n: float, target: float) -> float:
        size = np.array([n])

        def interval(level: float) -> tuple[float, float]:
            low, high = self._band_points(size, level, "prediction", np.inf)
            return float(low[0]), float(high[0])

        outside = excluded_level(interval, target)
        above = float(self._error_points(size)[0]) > target
        return 0.5 * (1.0 + outside) if above else 0.5 * (1.0 - outside)
