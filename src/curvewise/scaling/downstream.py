"""Accuracy on a task at a larger size: the task's loss by a scaling law, then accuracy as a function of that loss.

Both steps are uncertain, and both uncertainties count: the prediction band of the law, the spread of the second curve
over runs, the scatter of single models about it, and how far it drifts off beyond the lowest loss that was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import expit, ndtri, stdtrit

from curvewise.errors import InputError, Message, arg, list_names, prefix, quietly, suggest, warn_all
from curvewise.scaling.law import ScalingLaw, fit_scaling_law
from curvewise.scaling.load import as_scaling_runs
from curvewise.scaling.optimum import short
from curvewise.scaling.runs import ScalingRuns
from curvewise.stats.correlation import spearman
from curvewise.text import format_count, format_interval, format_level, format_number
from curvewise.types.results import FloatArray, Interval, Result, as_floats, check_level

LAST = 5
"""Checkpoints at the end of a run whose mean is its result, and that a moving average takes."""
EARLY = 0.1
"""Share of the checkpoints of a run that are too early for the second step."""
HELD_OUT = (2.0, 4.0, 8.0, 16.0)
"""Factors of compute that are held out to see how the second step drifts."""
FEWEST = 5
"""Runs that the second step is fitted to at least."""
DRIFT = 0.38
"""Drift of accuracy per factor e of loss, where too few runs show it: the median over the tasks of Gadre's models that
rise (`benchmarks/scaling_downstream.py drift`). OLMo's ladder has no part in it, and enough runs of its own."""
RISES = 0.01
"""P-value below which accuracy is taken to rise as the loss falls."""


def predict_downstream(
    runs: Any, task: str | tuple[str, str], at: Any, *, chance: float | None = None, level: float = 0.95
) -> DownstreamPrediction:
    """Predict the accuracy of a larger model on a task.

    Parameters
    ----------
    runs : ScalingRuns, or a table that :func:`load_scaling_runs` has read
        Runs, or their checkpoints with a column that names the run, with the task's accuracy and loss among the
        ``metrics``.
    task : str or tuple of str
        Name of the task: the columns of its loss (such as bits per byte) and of its accuracy have it in their names.
        Or the two columns, loss first; "loss" for the loss of the runs themselves.
    at : tuple of float, or list of these
        Parameters N and tokens D of the model to predict, or several.
    chance : float, optional
        Accuracy of guessing, such as 0.25 with four answers: the level that accuracy has at a high loss. Fitted where
        it is not given.
    level : float
        Coverage of the prediction intervals.

    Returns
    -------
    DownstreamPrediction
        Loss and accuracy with prediction intervals.

    Raises
    ------
    InputError
        If no run is above chance: nothing then says at which loss accuracy begins to rise.

    Notes
    -----
    The two steps are those of OLMo's ladder (Bhagia et al. 2024), whose published predictions they reproduce. Step 1
    fits E + A/N^α + B/D^β to the mean of the last five checkpoints of each run. Step 2 fits a sigmoid of accuracy in
    that loss to moving averages of five checkpoints, without the first tenth of each run and with the point of loss 0
    and accuracy 1. The error of step 2 beyond the lowest loss measured is taken from the same runs: the largest are
    held out and predicted at their measured loss.

    Examples
    --------
    >>> n, d = (v.ravel() for v in np.meshgrid([1e8, 3e8, 1e9, 3e9], [4e9, 2e10, 1e11]))
    >>> loss = 0.5 + 300 / n**0.35 + 1500 / d**0.37
    >>> accuracy = 0.25 + 0.75 / (1 + np.exp(6 * (loss - 0.8)))
    >>> runs = ScalingRuns(n, d, loss + 2, metrics={"quiz_bpb": loss, "quiz_acc": accuracy})
    >>> found = predict_downstream(runs, "quiz", at=(1e10, 1e12), chance=0.25)
    >>> round(found.accuracy.estimate, 2)
    0.78
    """
    check_level(level)
    if chance is not None and not (isinstance(chance, int | float | np.number) and 0 <= chance < 1):
        raise InputError(f"{arg('chance', chance)} must be a fraction from 0 to below 1, such as 0.25.")
    given = as_scaling_runs(runs)
    names = _find_columns(given, task)
    places, single = _read_places(at)
    curves = _collect(given, *names)
    steps = _Steps(curves, chance)
    notes = [*given.warnings, *_check_chance(steps, names[1]), *steps.law.extrapolation(*places.T)]
    if curves.lost:
        which = " and ".join(dict.fromkeys(map(repr, names)))
        notes.append(f"{format_count(curves.lost, 'run')} without a value of {which} left out.")
    with quietly():
        band = steps.law.prediction(places[:, 0], places[:, 1], interval="prediction", level=level)
    loss_low, loss, loss_high = (band[end] for end in ("low", "loss", "high"))
    low, accuracy, high = steps.accuracies(loss_low, loss, loss_high, level)
    if given.checkpoints == "unclear":
        notes.append(
            "Rows look like checkpoints of one training, and no column names the run: each counts as a run of its own, "
            f"which makes intervals too narrow. Name the runs with {arg('columns', {'run': 'COLUMN'})}."
        )
    notes += [prefix("Law of the task's loss: ", text) for text in steps.law.warnings]
    warn_all(map(Message, notes))

    def intervals(*ends: FloatArray) -> Any:
        made = tuple(Interval(float(e), float(a), float(b), level, "prediction") for a, e, b in zip(*ends, strict=True))
        return made[0] if single else made

    return DownstreamPrediction(
        task=task if isinstance(task, str) else names[1],
        accuracy=intervals(low, accuracy, high),
        loss=intervals(loss_low, loss, loss_high),
        params=float(places[0, 0]) if single else tuple(places[:, 0].tolist()),
        tokens=float(places[0, 1]) if single else tuple(places[:, 1].tolist()),
        chance=chance,
        sigmoid=dict(zip(("low", "middle", "slope", "top"), map(float, steps.sigmoid), strict=True)),
        law=steps.law,
        count=len(curves.end),
        level=level,
        warnings=tuple(map(Message, notes)),
        _measured=curves.end,
    )


@dataclass(frozen=True, eq=False)
class DownstreamPrediction(Result):
    """Predicted loss and accuracy of larger models on a task.

    Attributes
    ----------
    task : str
        Name of the task.
    accuracy, loss : Interval, or tuple of Interval for several sizes
        Predictions for one new model of that size.
    params, tokens : float or tuple of float
        Sizes.
    chance : float or None
        Accuracy of guessing, where it was given.
    sigmoid : dict of str to float
        Second step: accuracy = low + (top − low)/(1 + exp(slope (loss − middle))).
    law : ScalingLaw
        First step: the law of the task's loss.
    count : int
        Number of runs.
    level : float
        Coverage of the intervals.
    """

    task: str
    accuracy: Any
    loss: Any
    params: Any
    tokens: Any
    chance: float | None
    sigmoid: Mapping[str, float]
    law: ScalingLaw
    count: int
    level: float
    warnings: tuple[str, ...]
    _measured: FloatArray

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """Return a row for each size: params, tokens, loss and accuracy, each of these with low and high."""
        each = (self.params, self.tokens, self.loss, self.accuracy)
        n, d, loss, accuracy = ([v] for v in each) if isinstance(self.accuracy, Interval) else map(list, each)
        names = ("loss", "loss_low", "loss_high", "accuracy", "low", "high")
        ends = (list(v) for part in (loss, accuracy) for v in zip(*part, strict=True))
        return {"params": n, "tokens": d} | dict(zip(names, ends, strict=True))

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return a row for each size with counts and intervals as people write them."""
        n, d, *ends = self.columns().values()
        return {
            "params": [short(v) for v in n],
            "tokens": [short(v) for v in d],
            "loss of the task": [format_interval(row) for row in zip(*ends[:3], strict=True)],
            "accuracy": [format_interval(row, "fraction") for row in zip(*ends[3:], strict=True)],
        }

    def sentences(self) -> str:
        """The predictions in a few sentences."""
        lines = [
            f"{n} parameters on {d} tokens: {accuracy} of {self.task} right"
            for n, d, _, accuracy in zip(*self.readable().values(), strict=True)
        ]
        intervals = f"{format_level(self.level)} prediction intervals, from {format_count(self.count, 'run')}"
        return f"{'; '.join(lines)} ({intervals})."

    def table_note(self) -> str:
        """Return the kind of the intervals."""
        return f"{format_level(self.level)} prediction intervals of one new model."


def _find_columns(runs: ScalingRuns, task: str | tuple[str, str]) -> tuple[str, str]:
    """Return the columns of the task's loss and of its accuracy."""
    there = list(runs.metrics)
    if not isinstance(task, str):
        if not isinstance(task, Sequence) or len(task) != 2:
            raise InputError(f"{arg('task', task)} must be a name, or two columns: loss and accuracy.")
        for name in task:
            if name not in there and not (name == "loss" and name == task[0]):
                raise InputError(f"{arg('task', task)}: no column {name!r}.{suggest(name, there)} {_listed(there)}")
        return task[0], task[1]
    if task in there:
        return "loss", task
    held = [name for name in there if task.lower() in name.lower()]
    losses = [name for name in held if _says(name, _LOSS_WORDS)]
    scores = [name for name in held if name not in losses and _says(name, _SCORE_WORDS)]
    if len(scores) != 1 or len(losses) > 1:
        matches = f"{list_names(held)} have it in their names" if held else "none has it in its name"
        raise InputError(
            f"{arg('task', task)} must name one accuracy and at most one loss among the columns, and {matches}. Name "
            f"both with {arg('task', ('LOSS', 'ACCURACY'))}. {_listed(there)}"
        )
    return (losses[0] if losses else "loss"), scores[0]


_LOSS_WORDS = ("bpb", "bits", "loss", "nll", "cross_entropy", "crossentropy", "ce")
_SCORE_WORDS = ("acc", "accuracy", "len_norm", "acc_norm", "em", "exact_match", "score", "f1", "pass")


def _says(name: str, words: Sequence[str]) -> bool:
    plain = f"_{name.lower().replace('/', '_').replace('-', '_').replace('.', '_')}_"
    return any(f"_{word}_" in plain for word in words)


def _listed(there: Sequence[str]) -> str:
    return f"The metrics are {list_names(there)}." if there else "The runs have no metrics: read them with the table."


def _read_places(at: Any) -> tuple[FloatArray, bool]:
    places = as_floats(at, "at")
    single = places.ndim == 1
    places = np.atleast_2d(places)
    if places.ndim != 2 or places.shape[1] != 2 or not (np.isfinite(places) & (places > 0)).all():
        raise InputError(f"{arg('at', at)} must be a pair of parameters and tokens, or a list of pairs.")
    return places, single


@dataclass(frozen=True)
class _Curves:
    """Loss and accuracy at the ends of runs and along them.

    ``end`` has a row (loss, accuracy) for each run, ``last`` its last row; ``points`` are moving averages of ``run``.
    ``lost`` runs have no loss or no accuracy on the task.
    """

    end: FloatArray
    last: ScalingRuns
    points: FloatArray
    run: NDArray[np.intp]
    lost: int


def _collect(runs: ScalingRuns, loss: str, accuracy: str) -> _Curves:
    both = np.column_stack([runs.loss if loss == "loss" else runs.metrics[loss], runs.metrics[accuracy]])
    known = np.isfinite(both).all(axis=1)
    if (both[known, 0] <= 0).any():
        raise InputError(f"holds losses of 0 and below in {loss!r}.", argument="task")
    outside = both[known & ((both[:, 1] < 0) | (both[:, 1] > 1)), 1]
    if len(outside):
        raise InputError(
            f"{accuracy!r} holds {format_number(float(outside[0]))}: accuracies are fractions from 0 to 1. Divide "
            "percentages by 100.",
            argument="task",
        )
    groups = runs.groups if runs.checkpoints != "unclear" else np.arange(len(runs))
    end, last, points, owner = [], [], [], []
    for k in range(int(groups.max()) + 1):
        rows = np.flatnonzero((groups == k) & known)
        if not len(rows):
            continue
        rows = rows[np.argsort(runs.tokens[rows], kind="stable")]
        end.append(both[rows[-LAST:]].mean(axis=0))
        last.append(rows[-1])
        kept = both[rows[int(np.ceil(EARLY * len(rows))) if len(rows) > 1 else 0 :]]
        total = np.cumsum(np.vstack([np.zeros(2), kept]), axis=0)
        first = np.maximum(np.arange(len(kept)) - LAST + 1, 0)
        points.append((total[1:] - total[first]) / (np.arange(len(kept)) - first + 1)[:, None])
        owner += [len(end) - 1] * len(kept)
    if len(end) < FEWEST:
        problem = f"{format_count(len(end), 'run')} with both {loss!r} and {accuracy!r}: at least {FEWEST} are needed."
        raise InputError(problem, argument="runs")
    lost = int(groups.max()) + 1 - len(end)
    return _Curves(np.array(end), runs.select(np.array(last)), np.vstack(points), np.array(owner), lost)


class _Steps:
    """The two steps, fitted."""

    def __init__(self, curves: _Curves, chance: float | None) -> None:
        self.curves, self.chance = curves, chance
        last = curves.last
        runs = ScalingRuns(
            last.params, last.tokens, curves.end[:, 0], source=last.source, name="task loss", unit="loss"
        )
        with quietly():
            self.law = fit_scaling_law(runs)
        every = np.arange(len(curves.end))
        self.sigmoid = self._fit(every)
        residual = curves.end[:, 1] - _accuracy(self.sigmoid, curves.end[:, 0])
        size = 4 if chance is None else 3
        self.degrees = max(len(every) - size, 1)
        self.noise = float(np.sqrt((residual**2).sum() / self.degrees))

    def accuracies(
        self, loss_low: FloatArray, loss: FloatArray, loss_high: FloatArray, level: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the predicted accuracy with its prediction interval: low, estimate, high."""
        centre = _accuracy(self.sigmoid, loss)
        # Step 2 by itself: fits without each run, the scatter of single models, drift beyond the lowest loss.
        runs = np.arange(len(self.curves.end))
        without = np.stack([_accuracy(self._fit(np.delete(runs, k)), loss) for k in runs])
        spread = np.sqrt((len(runs) - 1) / len(runs) * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
        beyond = np.maximum(np.log(self.curves.end[:, 0].min() / loss), 0.0)
        t = float(stdtrit(self.degrees, 0.5 + level / 2))
        z = float(ndtri(0.5 + level / 2))
        own = (t * spread) ** 2 + (t * self.noise) ** 2 + (z * self.drift * beyond) ** 2
        # The error of step 1 is carried through the curve, which bends: each side for itself.
        up, down = _accuracy(self.sigmoid, loss_low) - centre, centre - _accuracy(self.sigmoid, loss_high)
        low, high = centre - np.sqrt(down**2 + own), centre + np.sqrt(up**2 + own)
        return np.clip(low, 0.0, 1.0), centre, np.clip(high, 0.0, 1.0)

    @property
    def drift(self) -> float:
        """Root mean square error of step 2 per factor e of loss below the lowest fitted, by holding out large runs."""
        compute = self.curves.last.compute
        squares = far = 0.0
        for factor in HELD_OUT:
            kept = compute <= compute.max() / factor * (1 + 1e-9)
            if kept.sum() < FEWEST or kept.all():
                continue
            theta = self._fit(np.flatnonzero(kept))
            held = self.curves.end[~kept]
            beyond = np.log(self.curves.end[kept, 0].min() / held[:, 0])
            held, beyond = held[beyond > 0], beyond[beyond > 0]
            squares += float(((held[:, 1] - _accuracy(theta, held[:, 0])) ** 2).sum())
            far += float((beyond**2).sum())
        return float(np.sqrt(squares / far)) if far > 0 else DRIFT

    def _fit(self, runs: NDArray[np.intp]) -> FloatArray:
        """Fit the sigmoid (low, middle, slope, top) to the points of some runs and to (0, 1) by least squares."""
        rows = np.isin(self.curves.run, runs)
        x, y = np.append(self.curves.points[rows, 0], 0.0), np.append(self.curves.points[rows, 1], 1.0)
        fixed = self.chance

        def unpack(p: FloatArray) -> FloatArray:
            # Parameters are middle, slope, top and top − low; with a chance level the last follows.
            return np.array([p[2] - p[3] if fixed is None else fixed, *p[:2], p[2]])

        def errors(p: FloatArray) -> FloatArray:
            return np.asarray(_accuracy(unpack(p), x) - y)

        def slopes(p: FloatArray) -> FloatArray:
            low, m, k, top = unpack(p)
            share = expit(-k * (x - m))
            steep = (top - low) * share * (1 - share)
            ends = [np.ones_like(x), share - 1] if fixed is None else [share]
            return np.column_stack([steep * k, -steep * (x - m), *ends])

        middle = float(np.median(x))
        guesses = [(m, k, 1.0, 0.75) for m in (0.9, middle, 0.6 * middle) for k in (3.0, 8.0)]
        bounds = ([0.0, 0.0, 0.0, 0.0], [np.inf, np.inf, 1.0, np.inf])
        if fixed is not None:
            guesses, bounds = [g[:3] for g in guesses], ([0.0, 0.0, fixed], [np.inf, np.inf, 1.0])  # type: ignore[misc]
        start = getattr(self, "_near", None)
        tried = [least_squares(errors, g, jac=slopes, bounds=bounds) for g in (guesses if start is None else [start])]
        best = min(tried, key=lambda found: float(found.cost))
        if start is None:  # later fits, to fewer runs, begin here
            self._near = np.clip(best.x, np.array(bounds[0]) + 1e-9, np.array(bounds[1]) - 1e-9)
        return np.asarray(unpack(best.x))


def _accuracy(theta: FloatArray, loss: FloatArray) -> FloatArray:
    low, middle, slope, top = theta
    return np.asarray(low + (top - low) * expit(-slope * (loss - middle)))


def _check_chance(steps: _Steps, name: str) -> list[str]:
    """Refuse accuracies that do not rise as the loss falls, and where no run is above chance; warn where few are."""
    end = steps.curves.end
    count = len(end)
    rank = float(spearman(end[None, :, 1], -end[:, 0])[0]) if np.ptp(end[:, 1]) > 0 else 0.0
    above = rank / np.sqrt(max(1 - rank**2, 1e-12)) * np.sqrt(count - 2)
    # Where chance is known, few runs above it are enough, as long as the others do not speak against a rise.
    rises = stdtrit(count - 2, 1 - RISES)
    if above < (rises if steps.chance is None else -rises):
        raise InputError(
            f"{name!r} does not rise as the loss falls (rank correlation {rank:.2f} over "
            f"{format_count(count, 'run')}): no run is above chance, and nothing says at which loss accuracy begins to "
            "rise. Add larger runs.",
            argument="runs",
        )
    if steps.chance is None:
        return []
    # The scatter of single models, and as many chances to exceed it as there are runs.
    needed = steps.chance + float(stdtrit(steps.degrees, 1 - 0.05 / count)) * steps.noise
    above_chance = int((end[:, 1] > needed).sum())
    if not above_chance:
        raise InputError(
            f"no run is significantly above chance on {name!r} (the best has {end[:, 1].max():.3g}, chance is "
            f"{steps.chance:g}): nothing says at which loss accuracy begins to rise. Add larger runs.",
            argument="runs",
        )
    if above_chance < FEWEST - 1:
        return [f"Only {above_chance} of {count} runs are significantly above chance on {name!r}: all rests on them."]
    return []
