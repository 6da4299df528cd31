"""Scores of models on questions, several samples of each: the input of the evals lens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, arg, brief, list_names
from curvewise.text import format_count
from curvewise.types.predictions import Predictions
from curvewise.types.results import FloatArray, as_floats, data_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Evals:
    """Scores of M models on Q questions, up to K samples of each: what :func:`load_evals` makes.

    Attributes
    ----------
    scores : ndarray of float, shape (models, questions, samples)
        NaN where a model has fewer samples of a question than others; at least one sample of each
        question by each model.
    models : tuple of str
        Names of the models, each once.
    questions : ndarray of str, shape (questions,)
        Ids of the questions, each once; with several tasks they begin with the task.
    groups : ndarray of str, shape (questions,), optional
        Which questions belong together: those about one passage, say. They are a cluster.
    tasks : ndarray of str, shape (questions,), optional
        Task of each question, for averages over tasks.
    seeds : ndarray of str, shape (models, samples), optional
        Training seed of the model that gave each sample: several trainings of one model. Empty where
        a model has no such sample.
    range : tuple of float
        Lowest and highest possible score: (0, 1) unless known otherwise; may be infinite.
    higher_is_better : bool
        False for losses and other scores that should be low.
    metric : str
        Name of the score in the logs.
    notes, warnings : tuple of str
        How the logs were interpreted, and what deserves a look.

    Examples
    --------
    >>> e = Evals(np.array([[[1, 1], [0, 1]], [[0, 1], [0, np.nan]]]), ("a", "b"), np.array(["q1", "q2"]))
    >>> e
    Evals(2 models × 2 questions × 1 to 2 samples)
    >>> e.samples.tolist()
    [[2, 2], [2, 1]]
    """

    scores: FloatArray
    models: tuple[str, ...]
    questions: NDArray[np.str_]
    groups: NDArray[np.str_] | None = None
    tasks: NDArray[np.str_] | None = None
    seeds: NDArray[np.str_] | None = None
    range: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    metric: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        scores = as_floats(self.scores, "scores")
        if scores.ndim == 2:
            scores = scores[:, :, None]
        if scores.ndim != 3 or 0 in scores.shape:
            raise InputError(f"scores has shape {scores.shape}: give models × questions × samples, none of them empty.")
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "models", tuple(map(str, self.models)))
        wanted = {"models": (scores.shape[0],), "questions": scores.shape[1:2], "groups": scores.shape[1:2]}
        wanted |= {"tasks": scores.shape[1:2], "seeds": (scores.shape[0], scores.shape[2])}
        for name, shape in wanted.items():
            values = getattr(self, name)
            if values is not None and np.shape(values) != shape:
                raise InputError(f"{name} has shape {np.shape(values)}; scores of shape {scores.shape} need {shape}.")
            if values is not None and name != "models":
                # As a text, a missing value would be a name: all questions without a group would be one cluster.
                # NaN differs from itself; the NA of pandas refuses to be compared.
                missing = [
                    v is None or type(v).__name__ == "NAType" or bool(v != v)
                    for v in np.asarray(values, dtype=object).flat
                ]
                if any(missing) and name != "seeds":
                    count, first = format_count(sum(missing), "missing value"), missing.index(True)
                    raise InputError(f"{name} has {count}, the first at place {first}: give the {name[:-1]} of each.")
                object.__setattr__(self, name, np.asarray(values).astype(np.str_))
        for name, names in (("models", self.models), ("questions", self.questions.tolist())):
            if twice := [value for value, count in Counter(names).items() if count > 1]:
                raise InputError(f"{name} has {list_names(twice[:3])} twice: each may be there only once.")
        object.__setattr__(self, "range", check_range(self.range))
        self._check_scores()

    def _check_scores(self) -> None:
        if np.isinf(self.scores).any():
            raise InputError("scores holds infinite values: leave failed samples out, or give them a score on purpose.")
        empty = np.isnan(self.scores).all(axis=2)
        if empty.any():
            m, q = np.argwhere(empty)[0]
            raise InputError(
                f"{int(empty.sum()):,} of {empty.size:,} pairs of model and question have no score, the first "
                f"{self.models[m]!r} on {str(self.questions[q])!r}: leave these questions out, or score them as wrong."
            )
        low, high = self.range
        least, most = float(np.nanmin(self.scores)), float(np.nanmax(self.scores))
        if least < low or most > high:
            raise InputError(
                f"scores go from {least:g} to {most:g}, outside of the range {low:g} to {high:g}: pass the range of "
                f"the score, such as {arg('range', (0, 100))}."
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of models, of questions, and the largest number of samples of a question by a model."""
        return len(self.models), len(self.questions), int(self.samples.max())

    @cached_property
    def samples(self) -> NDArray[np.int64]:
        """Number of samples of each question by each model, shape (models, questions)."""
        counts: NDArray[np.int64] = np.isfinite(self.scores).sum(axis=2)
        return counts

    @cached_property
    def binary(self) -> bool:
        """True where every score is 0 or 1, the ends of its range."""
        return self.range == (0.0, 1.0) and self.two_valued

    @cached_property
    def two_valued(self) -> bool:
        """True where every score is the lowest or the highest possible: right or wrong, on whatever scale."""
        s, (low, high) = self.scores, self.range
        return math.isfinite(high - low) and bool(((s == low) | (s == high) | np.isnan(s)).all())

    def __repr__(self) -> str:
        m, q, k = self.shape
        least = int(self.samples.min())
        samples = f"{least} to {k}" if least < k else f"{k}"
        words = [f"{m:,} model{'s' * (m > 1)} × {q:,} question{'s' * (q > 1)} × {samples} sample{'s' * (k > 1)}"]
        for name in ("groups", "tasks"):
            values = getattr(self, name)
            words += [] if values is None else [format_count(len(np.unique(values)), name[:-1])]
        return f"Evals({', '.join(words)})"

    def index(self, model: str) -> int:
        """Return the place of a model; the error names the models that there are."""
        return place_of(model, self.models)

    def seed_slots(self, model: int) -> list[NDArray[np.bool_]]:
        """Return which samples belong to each training seed of a model, in order; all to one where there are none."""
        used: NDArray[np.bool_] = np.isfinite(self.scores[model]).any(axis=0)
        if self.seeds is None:
            return [used]
        return [used & (self.seeds[model] == name) for name in dict.fromkeys(self.seeds[model][used].tolist())]

    def select(self, models: Sequence[str] | None = None, questions: ArrayLike | None = None) -> Self:
        """Select models by name and questions by mask or place."""
        rows = np.array([self.index(m) for m in (self.models if models is None else models)], dtype=np.int64)
        columns = np.arange(len(self.questions))
        if questions is not None and np.size(questions):
            try:
                columns = columns[np.asarray(questions)].ravel()
            except IndexError as error:
                raise InputError(
                    f"must be a mask with an entry for each of {format_count(len(columns), 'question')}, or places"
                    f" among them ({error}).",
                    argument="questions",
                ) from None
        elif questions is not None:
            columns = columns[:0]
        if not len(rows) or not len(columns):
            raise InputError("nothing is selected: at least one model and one question must be left.")
        return replace(
            self,
            scores=self.scores[np.ix_(rows, columns)],
            models=tuple(self.models[i] for i in rows),
            questions=self.questions[columns],
            groups=None if self.groups is None else self.groups[columns],
            tasks=None if self.tasks is None else self.tasks[columns],
            seeds=None if self.seeds is None else self.seeds[rows],
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each sample: model, question, sample, score, and seed, group, task where known."""
        m, q, k = np.nonzero(np.isfinite(self.scores))
        table: dict[str, NDArray[Any]] = {"model": np.array(self.models)[m], "question": self.questions[q]}
        table |= {"sample": k, "score": self.scores[m, q, k]}
        more = (("seed", self.seeds, (m, k)), ("group", self.groups, q), ("task", self.tasks, q))
        return table | {name: values[place] for name, values, place in more if values is not None}

    def frame(self) -> pd.DataFrame:
        """Return a row for each sample as a pandas DataFrame."""
        return data_frame(self.columns())

    def predictions(self, model: str) -> Predictions:
        """Return the scores of one model as :class:`Predictions`: a run for each training seed, samples as repeats."""
        scores = self.scores[self.index(model)]
        seeds = np.full(scores.shape[1], "") if self.seeds is None else self.seeds[self.index(model)]
        used = np.isfinite(scores).any(axis=0)
        names = list(dict.fromkeys(seeds[used].tolist()))
        runs = [scores[:, used & (seeds == name)] for name in names]
        if len({r.shape for r in runs}) > 1 or any(np.isnan(r).any() for r in runs):
            raise InputError(
                f"{brief(model)} has different numbers of samples of its questions; predictions need as many of each."
            )
        values = np.stack(runs)
        values = values[:, :, 0] if values.shape[2] == 1 else values
        codes = None if self.groups is None else np.unique(self.groups, return_inverse=True)[1].astype(np.int64)
        kind = "losses" if not self.higher_is_better else "correct" if self.binary else "scores"
        return Predictions(
            values,
            kind,
            groups=codes,
            run_ids=np.array(names) if len(names) > 1 else None,
            example_ids=self.questions,
            name=model,
        )

    @classmethod
    def from_predictions(cls, predictions: Mapping[str, Predictions], **fields: Any) -> Self:
        """Make evaluations of :class:`Predictions` by model, on the same examples: runs are training seeds.

        Further ``fields`` are those of :class:`Evals`, such as ``tasks``.
        """
        if not predictions:
            raise InputError("predictions is empty: give at least one model.")
        first = next(iter(predictions.values()))
        ids: NDArray[Any] = np.arange(first.examples) if first.example_ids is None else first.example_ids
        slots = max(p.runs * p.repeats for p in predictions.values())
        scores = np.full((len(predictions), first.examples, slots), np.nan)
        seeds = np.full((len(predictions), slots), "", dtype=object)

        def kind(p: Predictions) -> tuple[int, str, bool]:
            return p.examples, p.unit, p.unit == "fraction" or p.higher_is_better

        higher, groups = kind(first)[2], None
        for m, (name, p) in enumerate(predictions.items()):
            if kind(p) != kind(first):
                raise InputError(
                    f"the predictions of {brief(name)} have other examples or another kind than the first ones."
                )
            order = _align(ids, p.example_ids, name)
            if p.groups is not None:
                own = p.groups[order].tolist()
                # The codes of groups may differ between predictions; which examples are together may not.
                places = {code: i for i, code in enumerate(dict.fromkeys(own))}
                own = [places[code] for code in own]
                if groups not in (None, own):
                    raise InputError(f"the predictions of {brief(name)} have other groups of examples than others.")
                groups = own
            for start, errors in p.error_blocks(repeats=True):
                right = 1.0 - errors if p.unit == "fraction" else (-errors if higher else errors)
                for r, block in enumerate(right, start):
                    place = slice(r * p.repeats, (r + 1) * p.repeats)
                    scores[m, :, place] = block[order]
                    seeds[m, place] = str(r if p.run_ids is None else p.run_ids[r])
        several = any(p.runs > 1 for p in predictions.values())
        made: dict[str, Any] = {"higher_is_better": higher, "seeds": seeds.astype(np.str_) if several else None}
        if first.unit != "fraction":
            made["range"] = (-np.inf, np.inf)
        if groups is not None:
            made["groups"] = groups
        return cls(scores, tuple(predictions), ids, **made | fields)


def check_range(given: Any) -> tuple[float, float]:
    """Return the lowest and the highest possible score as numbers."""
    try:
        low, high = map(float, given)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high:
        raise InputError(f"{arg('range', given)} must be the lowest and the highest possible score, such as (0, 100).")
    return low, high


def place_of(model: str, models: Sequence[str]) -> int:
    """Return the place of a model; the error names the models that there are."""
    if model not in models:
        raise InputError(f"there is no model {brief(model)}; there are {list_names(models)}.")
    return models.index(model)


def _align(ids: NDArray[Any], own: NDArray[Any] | None, name: str) -> NDArray[np.int64]:
    """Return where each of ``ids`` is among a model's own; in order where it has none."""
    if own is None:
        return np.arange(len(ids))
    place = {key: i for i, key in enumerate(own.tolist())}
    missing = [key for key in ids.tolist() if key not in place]
    if missing:
        raise InputError(f"the predictions of {brief(name)} lack {len(missing):,} questions, the first {missing[0]!r}.")
    return np.array([place[key] for key in ids.tolist()])
