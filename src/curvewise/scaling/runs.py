"""Runs by parameters and tokens with their losses: the input of the scaling lens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, Message, arg, list_names, suggest
from curvewise.stats.correlation import spearman
from curvewise.text import format_count, format_number
from curvewise.types.results import FloatArray, RowTable, as_column, as_floats, count_missing, distinct

FLOPS_PER = 6.0
"""Training takes about six floating-point operations for each parameter and token."""
FLOPS_OFF = 1.3
"""Ratio of tokens to flops/6N from which the two do not belong to one count of parameters."""
FEWEST = 6
"""Runs below which five parameters and their uncertainty are not identified."""
ONE_SIZE = 0.01
"""Difference of log N, or of log D, up to which two sizes count as one."""
WHOLE = 1e4
"""Largest value up to which a column of counts must hold whole numbers; larger ones may have been computed."""
FLAT = 0.05
"""Range of log D/N, or of log N D, below which it counts as constant."""
PERPLEXITY = 20.0
"""Values above this are no cross-entropy: that of a uniform guess among 400 million tokens is 20."""
MANY = 5
"""Rows of one size that show how much they differ."""
SWEEP = 0.02
"""Spread of log loss among rows of one size that seeds do not explain: theirs is 0.002 to 0.003 in published runs, that
of a search for hyperparameters 0.12."""
UNITS = ("loss", "perplexity")
ROWS = ("params", "tokens", "flops", "loss", "run", "unique_tokens", "step", "source", "flagged")
"""Fields of runs, which are also the roles of columns in a file."""


@dataclass(frozen=True, eq=False, repr=False)
class ScalingRuns(RowTable):
    """Losses of trained models by their size: what :func:`load_scaling_runs` makes.

    Attributes
    ----------
    params, tokens : ndarray, shape (n,)
        Parameters N and training tokens D. One of ``tokens`` and ``flops`` may be None: C = 6 N D.
    loss : ndarray, shape (n,)
        Loss above 0, in nats per token or another unit of a loss.
    run : ndarray of str, shape (n,), optional
        Run that a row is a checkpoint of. None if each row is a run of its own.
    unique_tokens : ndarray, shape (n,), optional
        Tokens that are distinct, where data is repeated.
    step : ndarray, shape (n,), optional
        Step of a checkpoint.
    source : ndarray of str, shape (n,), optional
        Where a run is from: data set, code base, family of models.
    flops : ndarray, shape (n,), optional
        Compute C, where it was given.
    flagged : ndarray of bool, shape (n,), optional
        Rows that whoever made the table holds for outliers. They are fitted; ``sensitivity`` shows the fit without.
    metrics : dict of str to ndarray, shape (n,)
        Further measurements, such as accuracies on tasks; NaN where a row has none.
    name : str
        For legends and sentences.
    unit : {"loss", "perplexity"}, optional
        What ``loss`` holds. Without it values that could be perplexities or accuracies are an error; perplexities
        become their logarithms.
    notes, warnings : tuple of str
        How the input was interpreted, and what deserves a look.

    Examples
    --------
    >>> runs = ScalingRuns([1e8, 1e9], None, [3.2, 2.6], flops=[1.2e18, 1.2e20])
    >>> runs
    ScalingRuns(2 runs, N from 1e+08 to 1e+09, D from 2e+09 to 2e+10)
    >>> runs.tokens.tolist()
    [2000000000.0, 20000000000.0]
    """

    params: FloatArray
    tokens: FloatArray
    loss: FloatArray
    run: NDArray[np.str_] | None = None
    unique_tokens: FloatArray | None = None
    step: FloatArray | None = None
    source: NDArray[np.str_] | None = None
    flops: FloatArray | None = None
    flagged: NDArray[np.bool_] | None = None
    metrics: Mapping[str, FloatArray] = field(default_factory=dict)
    name: str = "runs"
    unit: str | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    by_row: ClassVar[tuple[str, ...]] = (*ROWS, "metrics")
    noun: ClassVar[str] = "rows"

    def __post_init__(self) -> None:
        params = as_floats(self.params, "params")
        if params.ndim != 1 or not len(params):
            raise InputError(f"has shape {params.shape}: give one number for each run.", argument="params")
        for name in ("params", "tokens", "flops", "loss", "unique_tokens", "step"):
            if name == "loss" or getattr(self, name) is not None:
                column = as_column(as_floats(getattr(self, name), name), name, len(params), "runs")
                if name not in ("loss", "step"):
                    _check_sizes(column, name)
                object.__setattr__(self, name, column)
        for name in ("run", "source"):
            if getattr(self, name) is not None:
                given = np.asarray(getattr(self, name))
                if count_missing(given.ravel().tolist()):
                    raise InputError("has missing names: name every row.", argument=name)
                object.__setattr__(self, name, as_column(given.astype(np.str_), name, len(params), "runs"))
        if self.flagged is not None:
            flags = as_column(np.asarray(self.flagged), "flagged", len(params), "runs")
            if not np.isin(flags, [0, 1]).all():  # any text would count as true
                raise InputError("must hold True and False, one for each run.", argument="flagged")
            object.__setattr__(self, "flagged", flags.astype(np.bool_))
        metrics = {k: as_column(as_floats(v, k), k, len(params), "runs") for k, v in self.metrics.items()}
        object.__setattr__(self, "metrics", metrics)
        self._set_tokens()
        self._check_loss()
        if self.run is not None:
            self._check_runs(self.run)

    def _check_runs(self, run: NDArray[np.str_]) -> None:
        """Refuse names that models of several sizes share, such as that of a family."""
        groups = self.groups
        low, high = np.full(self.count, np.inf), np.zeros(self.count)
        np.minimum.at(low, groups, self.params)
        np.maximum.at(high, groups, self.params)
        unlike = np.flatnonzero(np.log(high / low) > ONE_SIZE)
        if len(unlike):
            k = unlike[0]
            raise InputError(
                f"Run {str(distinct(run)[k])!r} has rows of {low[k]:g} and of {high[k]:g} parameters: a run is one "
                f"training of one model. Say which column names the runs with {arg('columns', {'run': 'COLUMN'})}, "
                f"or that none does with {arg('columns', {'run': None})}."
            )

    def _set_tokens(self) -> None:
        """Make tokens of flops where they are not given; where both are, they must belong to these parameters."""
        if self.flops is None and self.tokens is None:
            raise InputError("tokens are missing: give tokens, or flops from which tokens = flops/6N follow.")
        if self.tokens is None:
            assert self.flops is not None  # for the type checker
            object.__setattr__(self, "tokens", self.flops / (FLOPS_PER * self.params))
            if self.tokens.min() < 1:
                problem = f"gives {self.tokens.min():.3g} tokens by flops/6N: is it in another unit, such as 1e18 FLOP?"
                raise InputError(problem, argument="flops")
        elif self.flops is not None:
            ratio = self.tokens * FLOPS_PER * self.params / self.flops
            off = np.abs(np.log(ratio)) > np.log(FLOPS_OFF)
            if off.any():
                raise InputError(
                    f"tokens differ from flops/6N by more than {FLOPS_OFF - 1:.0%} in {int(off.sum())} of {len(off)} "
                    f"runs (by a factor of {format_number(float(np.median(ratio[off])), 3)}): which parameter count "
                    "is it, with or without embeddings, and of all or of the active parameters? Pass the count that "
                    "flops = 6 N D holds for, or leave out flops to use tokens and parameters as they are, or tokens "
                    "to use flops/6N.",
                    argument="params",
                )
        if self.unique_tokens is not None and bool((self.unique_tokens > self.tokens * 1.001).any()):
            # A data set that is larger than what was read of it has no repetition.
            object.__setattr__(self, "unique_tokens", np.minimum(self.unique_tokens, self.tokens))

    def _check_loss(self) -> None:
        loss = self.loss
        bad = ~np.isfinite(loss)
        if bad.any():
            count = format_count(int(bad.sum()), "value")
            raise InputError(f"holds {count} that are NaN or infinite: leave diverged runs out.", argument="loss")
        if self.unit is not None:
            check_choice("unit", self.unit, UNITS)
        if loss.min() <= 0:
            raise InputError(
                f"holds {loss.min():g}: a loss lies above 0. Which unit is it? For log-likelihoods change the sign; "
                "differences to another loss cannot be fitted.",
                argument="loss",
            )
        if self.unit is None:
            self._check_unit()
        if self.unit == "perplexity":
            if loss.min() <= 1:
                raise InputError(f"holds {loss.min():g}: a perplexity lies above 1.", argument="loss")
            object.__setattr__(self, "loss", np.log(loss))
        # From here on the unit is known, for every part of the rows.
        object.__setattr__(self, "unit", "loss")

    def _check_unit(self) -> None:
        most = float(self.loss.max())
        if most > PERPLEXITY:
            raise InputError(
                f"holds {most:g}: is it a perplexity? Pass {arg('unit', 'perplexity')}, or {arg('unit', 'loss')} if it "
                "is a loss of another kind.",
                argument="loss",
            )
        compute = np.log(self.params) + np.log(self.tokens)
        if len(self.loss) >= FEWEST and float(spearman(compute[None], self.loss)[0]) > 0.5:
            raise InputError(
                "rises with compute: are these accuracies? A scaling law is fitted to a loss, which falls; for "
                f"accuracies use predict_downstream. Pass {arg('unit', 'loss')} if they are losses nevertheless.",
                argument="loss",
            )

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def compute(self) -> FloatArray:
        """C = 6 N D of each row."""
        return FLOPS_PER * self.params * self.tokens

    @property
    def groups(self) -> NDArray[np.intp]:
        """Number of the run of each row, from 0 on."""
        if self.run is None:
            return np.arange(len(self))
        place = {name: k for k, name in enumerate(distinct(self.run))}
        return np.array([place[name] for name in self.run.tolist()], dtype=np.intp)

    @property
    def count(self) -> int:
        """Number of runs."""
        return int(self.groups.max()) + 1

    @property
    def checkpoints(self) -> str:
        """State of the rows: "none", "grouped" (by runs) or "unclear" (no column says which run)."""
        if self.run is not None:
            return "none" if self.count == len(self) else "grouped"
        return "unclear" if self._same_run() else "none"

    def _same_run(self) -> bool:
        """Return whether rows look like checkpoints of one run: several steps, or equal gaps in tokens, of a model."""
        model, counts = self._alike("params", "unique_tokens", "source")
        for k in np.flatnonzero(counts >= (6 if self.step is None else 2)):
            rows = np.flatnonzero(model == k)
            if self.step is not None and len(np.unique(self.step[rows])) > 1:
                return True
            tokens = np.unique(self.tokens[rows])
            gaps = np.diff(tokens)
            # Five and more equal steps are those of a schedule of evaluations; designs go by factors.
            if len(gaps) >= 5 and gaps.max() < 1.05 * np.median(gaps) and gaps.min() > 0.95 * np.median(gaps):
                return True
        return False

    def _alike(self, *names: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Number the rows that have the same values in some columns, as far as there are such; count each number."""
        known = [v for v in (getattr(self, name) for name in names) if v is not None]
        keys = np.stack([np.unique(v, return_inverse=True)[1].ravel() for v in known])
        _, number, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
        return number.ravel(), counts

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a row for each row: params, tokens, loss and what else is known."""
        names = ("params", "tokens", "loss", "run", "step", "unique_tokens", "source", "flops", "flagged")
        return {k: v for k in names if (v := getattr(self, k)) is not None} | dict(self.metrics)

    def __repr__(self) -> str:
        rows = format_count(self.count, "run")
        if self.count < len(self):
            rows += f", {format_count(len(self), 'checkpoint')}"
        spans = [f"{k} from {v.min():.3g} to {v.max():.3g}" for k, v in (("N", self.params), ("D", self.tokens))]
        return f"ScalingRuns({rows}, {', '.join(spans)})"


def check_identified(runs: ScalingRuns, parameters: int = 5, fewest: int = FEWEST) -> None:
    """Raise where no fit can tell the parameters of a law apart, and name those that are not identified."""
    remedy = "Add runs with other sizes."
    count = runs.count
    need = max(fewest, parameters + (fewest >= FEWEST))
    if count < need:
        raise InputError(
            f"holds {format_count(count, 'run')}: with fewer than {need} neither the {parameters} parameters of the "
            "law nor their uncertainty are identified.",
            argument="runs",
        )
    n, d = np.log(runs.params), np.log(runs.tokens)
    for values, symbol, names in ((n, "N", "A and α"), (d, "D", "B and β")):
        if np.ptp(values) < FLAT:
            problem = f"has one {symbol} only ({np.exp(values[0]):.3g}): {names} are not identified. {remedy}"
            raise InputError(problem, argument="runs")
        if parameters >= 5 and count_sizes(values) < 3:
            raise InputError(
                f"has two values of {symbol} only: they fix the difference that {symbol} makes, not {names} apart "
                f"from E. {remedy} Or fit one exponent for both with {arg('form', 'tied')}.",
                argument="runs",
            )
    if np.ptp(d - n) < FLAT:
        raise InputError(
            f"has the same tokens per parameter throughout (D/N = {np.exp(np.median(d - n)):.3g}): the parts of N "
            "and D, A and α against B and β, are not identified. Train some models on more or fewer tokens.",
            argument="runs",
        )
    if np.ptp(d + n) < FLAT:
        raise InputError(
            f"has one compute budget only ({FLOPS_PER * np.exp(np.median(d + n)):.3g}): E and the exponents are not "
            "identified. Add runs at another budget.",
            argument="runs",
        )


def count_sizes(logs: FloatArray) -> int:
    """Return the number of sizes, by their logarithms; sizes that differ by less than 1% count as one."""
    return 1 + int((np.diff(np.sort(logs)) > ONE_SIZE).sum())


def input_warnings(
    runs: ScalingRuns, unclear: str = "they are not independent, so that no intervals are given"
) -> list[str]:
    """Return what deserves a look before anything is fitted: duplicates, mixed sources, ``unclear`` checkpoints."""
    notes: list[str] = []
    rows = np.stack([runs.params, runs.tokens, runs.loss])
    rows = rows[:, np.lexsort(rows)]
    double = int((rows[:, 1:] == rows[:, :-1]).all(axis=0).sum())
    if double:
        rows_repeat = f"{format_count(double, 'row')} {'repeats' if double == 1 else 'repeat'}"
        notes.append(
            f"{rows_repeat} the sizes and the loss of another: duplicated runs make intervals too narrow. Remove them."
        )
    notes += [
        f"No run has more than {values.max():g} {name}: are they millions or billions? C = 6 N D must hold in FLOP."
        for name, values in (("params", runs.params), ("tokens", runs.tokens))
        if values.max() < WHOLE
    ]
    if runs.source is not None and len(distinct(runs.source)) > 1:
        notes.append(
            f"Runs of {len(distinct(runs.source))} sources ({list_names(distinct(runs.source), 4)}) are fitted as one "
            "law: losses on different data or tokens are not comparable. Select one source."
        )
    # Log losses less the mean of their size, for sizes with many rows: only chance should tell these apart.
    size, counts = runs._alike("params", "tokens", "unique_tokens")
    logs = np.log(runs.loss)
    gaps = (logs - (np.bincount(size, logs) / counts)[size])[counts[size] >= MANY]
    spread = float(np.subtract(*np.quantile(gaps, [0.75, 0.25]))) if len(gaps) else 0.0
    if spread > SWEEP:
        notes.append(
            f"The middle half of the losses of models of one size spans {spread:.0%} ({format_count(len(gaps), 'row')} "
            f"of sizes with {MANY} and more): are these trials of a search for hyperparameters? Fit the best of each "
            "size: a law of all describes no model that anyone would train."
        )
    if runs.checkpoints == "unclear":
        notes.append(
            f"Rows look like checkpoints of one training, and no column names the run: {unclear}. Name the runs with "
            f"{arg('columns', {'run': 'COLUMN'})}, or drop the steps if each row is a run of its own."
        )
    return [Message(note) for note in notes]


def check_choice(name: str, value: Any, options: Iterable[str]) -> None:
    """Raise unless a value is one of the options."""
    if value not in options:
        problem = f"is not known: use one of {', '.join(map(repr, options))}.{suggest(value, options)}"
        raise InputError(problem, argument=name, value=value)


def pair_names(names: tuple[str, str] | None, a: str, b: str) -> tuple[str, str]:
    """Return names of two that are compared: those given, or else their own where they differ."""
    if names is None:
        return ("a", "b") if a == b else (a, b)
    if isinstance(names, str) or len(names) != 2 or names[0] == names[1]:
        raise InputError("must be two different names.", argument="names", value=names)
    return names[0], names[1]


def _check_sizes(values: FloatArray, name: str) -> None:
    """Refuse numbers that are not above 0, and those that cannot be counts, such as 0.19 and 1.3 for millions."""
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        raise InputError(
            f"holds {format_number(float(values[bad][0]))} in {format_count(int(bad.sum()), 'row')}: give numbers "
            "above 0.",
            argument=name,
        )
    broken = values[(values < 1) | ((values != np.round(values)) & (values.max() < WHOLE))]
    if len(broken) and name in ("params", "tokens"):
        raise InputError(
            f"holds {format_number(float(broken[0]))}, which is no count: are they millions or billions? Multiply by "
            "1e6 or 1e9, so that C = 6 N D holds in FLOP.",
            argument=name,
        )
