"""Reliability of an agent: pass@k and pass^k for several numbers of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, list_names, quietly, warn_all
from curvewise.evals.evals import Evals, place_of
from curvewise.evals.load import as_evals
from curvewise.evals.score import error_cells, score_evals
from curvewise.text import format_count, format_interval
from curvewise.types.results import FloatArray, Interval, Result

KINDS = {"pass@": "at least one of k samples is right", "pass^": "all k samples are right"}


def measure_passes(
    e: Evals | Any,
    kind: str = "pass^",
    k: Sequence[int] | None = None,
    *,
    average: str | Mapping[str, float] = "questions",
    level: float = 0.95,
) -> PassCurve:
    """Score each model by pass@k or pass^k for several k: how it fares with more attempts, and how reliable it is.

    Parameters
    ----------
    e : Evals, path, DataFrame or other source of :func:`load_evals`
        0/1 scores of models on questions, with several samples of each.
    kind : {"pass^", "pass@"}
        The chance that all k samples of a question are right, or that at least one of them is.
    k : sequence of int, optional
        Numbers of samples; by default every one from 1 to the fewest samples that a question has.
    average, level
        As in :func:`score_evals`.

    Examples
    --------
    >>> marks = np.array([[[1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 0]] * 5])
    >>> measure_passes(Evals(marks, ("a",), np.arange(20))).scores.round(3).tolist()
    [[0.5, 0.333, 0.25]]
    """
    if kind not in KINDS:
        raise InputError(f"must be one of {list_names(KINDS)}.", argument="kind", value=kind)
    e = as_evals(e)
    fewest = min(
        int(np.isfinite(e.scores[m][:, slots]).sum(axis=1).min())
        for m in range(len(e.models))
        for slots in e.seed_slots(m)
    )
    wanted = list(range(1, fewest + 1)) if k is None else sorted(set(k))
    if not wanted:
        raise InputError("is empty: give one or more numbers of samples.", argument="k")
    with quietly():
        found = [score_evals(e, f"{kind}{count}", average=average, level=level) for count in wanted]
    first = found[0]
    notes = tuple(dict.fromkeys(note for each in found for note in each.warnings))
    warn_all(notes)
    table = {
        name: np.stack([getattr(each, name) for each in found], axis=1)
        for name in ("scores", "standard_errors", "low", "high")
    }
    return PassCurve(
        models=e.models,
        kind=kind,
        k=tuple(map(int, wanted)),
        **table,
        questions=first.questions,
        samples=first.samples,
        average=first.average,
        level=level,
        unit="fraction",
        warnings=notes,
    )


@dataclass(frozen=True, eq=False)
class PassCurve(Result):
    """pass@k or pass^k of models, for several k.

    Attributes
    ----------
    models : tuple of str
        Their names.
    kind : {"pass^", "pass@"}
        All samples right, or at least one.
    k : tuple of int
        Numbers of samples, rising.
    scores, standard_errors, low, high : ndarray, shape (models, k)
        Each with its interval.
    questions : int
        Number of questions.
    samples : ndarray
        Samples of a question, the mean of each model.
    average : str
        Average of the questions: "questions", "tasks" or "weighted tasks".
    """

    models: tuple[str, ...]
    kind: str
    k: tuple[int, ...]
    scores: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    questions: int
    samples: FloatArray
    average: str
    level: float
    unit: str
    warnings: tuple[str, ...]

    def interval(self, model: str, k: int) -> Interval:
        """Return the score of one model with its interval."""
        m = place_of(model, self.models)
        if k not in self.k:
            raise InputError(f"there is no {self.kind}{k}; there are those of {', '.join(map(str, self.k))} samples.")
        i = self.k.index(k)
        return Interval(float(self.scores[m, i]), float(self.low[m, i]), float(self.high[m, i]), self.level)

    def columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per model and k: score, standard error and interval."""
        many = len(self.k)
        return {
            "model": [name for name in self.models for _ in self.k],
            "k": list(self.k) * len(self.models),
            "score": self.scores.ravel(),
            "standard_error": self.standard_errors.ravel(),
            "low": self.low.ravel(),
            "high": self.high.ravel(),
            "questions": np.full(many * len(self.models), self.questions),
        }

    def display_columns(self) -> Mapping[str, Sequence[Any] | NDArray[Any]]:
        """One row per model with a column for each k; of a single model one row per k."""
        if len(self.models) == 1:
            score, low, high = self.scores[0], self.low[0], self.high[0]
            each = {f"{self.kind}k": score, "low": low, "high": high, "standard_error": self.standard_errors[0]}
            return {"k": list(self.k), **each}
        table: dict[str, Sequence[Any] | NDArray[Any]] = {"model": list(self.models)}
        for i, name in enumerate(f"{self.kind}{k}" for k in self.k):
            table |= {name: self.scores[:, i], f"{name}_low": self.low[:, i], f"{name}_high": self.high[:, i]}
        return table

    def readable(self) -> Mapping[str, Sequence[Any]]:
        """Return the same with intervals beside the scores, standard errors in two digits."""
        table = dict(super().readable())
        if "std error" in table:
            table["std error"] = error_cells(self.standard_errors[0], self.unit)
        return table

    def sentences(self) -> str:
        """The scores of the first and the last k in a few sentences."""
        first, last = self.k[0], self.k[-1]
        order = np.argsort(-self.scores[:, -1], kind="stable")[:3]
        shown = []
        for m in order:
            name = self.models[m]
            one, two = (format_interval(self.interval(name, k), self.unit) for k in (first, last))
            shown.append(
                f"{name}: {one}" if first == last else f"{name}: {one} with k = {first}, {two} with k = {last}"
            )
        more = f"; and {len(self.models) - 3} more" if len(self.models) > 3 else ""
        over = "" if self.average == "questions" else ", averaged over tasks"
        return (
            f"{self.kind}k, the chance that {KINDS[self.kind]}, on {format_count(self.questions, 'question')}{over}: "
            f"{'; '.join(shown)}{more}. The {self.level:.0%} intervals are for new questions of the same kind."
        )
