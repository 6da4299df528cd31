"""Options and files of learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from curvewise.cli._files import STDIN, choose, names_of, quietly
from curvewise.cli._options import FITTING, SHOWING, Drawing, Form, Showing, Size, read_where

if TYPE_CHECKING:
    from curvewise.io._columns import ColumnMap
    from curvewise.learning import LearningCurves
    from curvewise.types import Measurements

import math
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from curvewise.cli._console import (
    UsageError,
    note,
    warn_each,
)
from curvewise.cli._files import STDIN, names_of
from curvewise.cli._options import READING, Numbers, Texts
from curvewise.errors import InputError


def _check_sizes(_: Any, sizes: Sequence[float]) -> None:
    for n in sizes:
        if not 0 < n < math.inf:
            raise ValueError(f"{n:g} is no training size: give positive numbers, such as 800,1600.")


Sizes = Annotated[Numbers, Parameter(validator=_check_sizes)]


@Parameter(name="*", group=READING)
@dataclass
class Reading:
    """How to read measurements.

    Parameters
    ----------
    unit
        What the values are; by default percent if the column's name says so, else fractions.
    higher_is_better
        The values are accuracies or scores. By default the column's name says so.
    n_column
        Column of training sizes. Columns with usual names are found by themselves.
    value_column
        Column of errors, accuracies, losses or scores.
    learner_column
        Column that names the learner; repeat it to join several columns.
    runs_column
        Over how many runs a row is the mean.
    variance_column
        Variance of those runs.
    column
        Any other role, as ROLE=COLUMN: fold, seed, split, metric, std; ignore=COLUMN does not
        read it. ROLE= leaves a role out.
    wide
        Each column of numbers is a run, a learner or a size.
    per_class
        Number of classes, if sizes count examples of each class.
    metric
        Which rows to take where a column names metrics.
    split
        Which rows to take where a column names splits, such as test.
    where
        Only rows with this, as COLUMN=VALUE; may be repeated, for several values of a column, too.
    drop_failed
        Leave out rows without a finite value, and say which.
    same_name
        A learner that is in several files: pool its runs, or keep the files separate.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    unit: Literal["fraction", "percent", "loss", "score"] | None = None
    higher_is_better: Annotated[
        bool | None,
        Parameter(name=("--higher-is-better", "--accuracy"), negative="--lower-is-better"),
    ] = None
    n_column: str | None = None
    value_column: str | None = None
    learner_column: Annotated[list[str], Parameter(negative="", show_default=False)] = field(
        default_factory=list
    )
    runs_column: str | None = None
    variance_column: str | None = None
    column: Annotated[list[str], Parameter(negative="", show_default=False)] = field(
        default_factory=list
    )
    wide: Literal["runs", "learners", "sizes"] | None = None
    per_class: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    metric: str | None = None
    split: str | None = None
    where: Texts = field(default_factory=list)
    drop_failed: Annotated[bool, Parameter(negative="", show_default=False)] = False
    same_name: Literal["pool", "separate"] | None = None
    allow_large: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def rows(self) -> dict[str, Any] | None:
        """Which rows to take, for ``load_measurements``."""
        return read_where(self.where)

    def columns(self) -> dict[str, Any] | None:
        """Which column plays which role, for ``load_measurements``."""
        named: dict[str, list[str]] = {
            role: [name]
            for role, name in (
                ("n", self.n_column),
                ("value", self.value_column),
                ("runs", self.runs_column),
                ("variance", self.variance_column),
            )
            if name is not None
        }
        if self.learner_column:
            named["learner"] = list(self.learner_column)
        for pair in self.column:
            role, equals, name = pair.partition("=")
            if not equals or not role.strip():
                raise UsageError(f"--column {pair!r} must read ROLE=COLUMN, such as fold=split.")
            named.setdefault(role.strip(), []).extend([name] if name else [])
        one_or_many = {r: v[0] if len(v) == 1 else (v or None) for r, v in named.items()}
        return one_or_many or None


@Parameter(name="*", group=FITTING)
@dataclass
class Fitting:
    """How to fit the curves.

    Parameters
    ----------
    form
        power (α + η n^γ) describes and compares; auto predicts best beyond the sizes measured;
        sqrt fixes γ at −½.
    weights
        Weigh sizes alike, runs alike by their variance, or not at all.
    chance
        Error of a blind guess, in the unit of the table: intervals of curves still near it allow
        them to fall.
    at
        Training size N at which to judge; by default the largest measured, and of several learners
        that are compared or ranked the smallest of their largest sizes.
    level
        Coverage of the intervals.
    """

    form: Form = "power"
    weights: Literal["size", "run", "none"] = "size"
    chance: float | None = None
    at: Size = None
    level: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.95


@Parameter(name="*", group=SHOWING)
@dataclass
class CurveDrawing(Drawing):
    """Whether and how to draw curves.

    Parameters
    ----------
    plot
        Draw the curves into this .png, .svg or .pdf file.
    x
        Horizontal axis: n^−½, on which most curves are straight, or log n. By default sqrt, and
        log to compare.
    """

    x: Literal["sqrt", "log"] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What to pass to a function that draws."""
        return {} if self.x is None else {"x": self.x}


def given(
    reading: Reading | None, fitting: Fitting | None, showing: Showing | None
) -> tuple[Reading, Fitting, Showing]:
    """Give the defaults in place of groups of options of which none was set."""
    return reading or Reading(), fitting or Fitting(), showing or Showing()


def read_files(
    files: Sequence[str], reading: Reading, same_name: str | None = None
) -> Measurements:
    """Read measurements from all files, telling on stderr what was taken for what.

    Parameters
    ----------
    files : sequence of str
        Paths; :data:`STDIN` is CSV on stdin.
    reading : Reading
        The options.
    same_name : {"pool", "separate"}, optional
        What to do with a learner that is in several files if the options do not say.
    """
    parts = {}
    for file in dict.fromkeys(files):
        parts[file] = _read(file, reading)
        head = f"{file}: " if len(files) > 1 else ""
        note(head + "; ".join(n for n in parts[file].notes if n))
    if len(parts) == 1:
        return next(iter(parts.values()))
    return _joined(parts, reading.same_name or same_name, reading.columns())


def _read(file: str, reading: Reading) -> Measurements:
    from curvewise.io import load_measurements

    def load(path: str | Path) -> Measurements:
        return load_measurements(
            path,
            unit=reading.unit,
            higher_is_better=reading.higher_is_better,
            columns=reading.columns(),
            wide=reading.wide,
            per_class=reading.per_class,
            metric=reading.metric,
            split=reading.split,
            where=reading.rows(),
            drop_failed=reading.drop_failed,
            allow_large=reading.allow_large,
        )

    if file != STDIN:
        return load(file)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        path.write_bytes(sys.stdin.buffer.read())
        return load(path)


def _joined(
    parts: dict[str, Measurements], same_name: str | None, columns: ColumnMap | None
) -> Measurements:
    import numpy as np

    from curvewise.io._repeats import check_repeats, not_told_apart
    from curvewise.types import Measurements

    seen: dict[str, list[str]] = {}
    for file, part in parts.items():
        for learner in part.learners:
            seen.setdefault(learner, []).append(file)
    if same_name is None and (twice := next((k for k, f in seen.items() if len(f) > 1), None)):
        raise UsageError(
            f"The learner {twice!r} is in {' and in '.join(seen[twice][:3])}. Pass --same-name "
            "pool to take its runs together, or --same-name separate to tell the files apart."
        )
    names = names_of(list(parts)) if same_name == "separate" else {}
    every = list(parts.items())

    def named(file: str, part: Measurements) -> Any:
        if file not in names:
            return part.learner
        alone = len(part.learners) == 1
        return [names[file] if alone else f"{names[file]} / {k}" for k in part.learner.tolist()]

    if len({p.unit for _, p in every}) > 1:
        raise UsageError("The files are in different units: read them with the same --unit.")
    means = any(p.runs is not None for _, p in every)
    spread = any(p.variance is not None for _, p in every)
    shared = [k for k in every[0][1].labels if all(k in p.labels for _, p in every)]
    found = Measurements(
        learner=np.concatenate([np.asarray(named(f, p), dtype=np.str_) for f, p in every]),
        n=np.concatenate([p.n for _, p in every]),
        error=np.concatenate([p.error for _, p in every]),
        unit=every[0][1].unit,
        runs=_column(every, "runs", 1.0) if means else None,
        variance=_column(every, "variance", np.nan) if spread else None,
        labels={k: np.concatenate([p.labels[k] for _, p in every]) for k in shared},
    )
    apart, alike = not_told_apart(columns, list(found.labels))
    check_repeats(found, " and ".join(parts), range(1, len(found) + 1), (), apart, alike)
    return found


def _column(parts: Iterable[tuple[str, Measurements]], name: str, filling: float) -> Any:
    import numpy as np

    columns = [(len(p), getattr(p, name)) for _, p in parts]
    return np.concatenate([np.full(k, filling) if v is None else v for k, v in columns])


def fit_files(
    measurements: Measurements, fitting: Fitting, files: Sequence[str] = ()
) -> LearningCurves:
    """Fit every learner, and warn of what concerns all; warnings of one stay on its curve."""
    from curvewise.learning import fit_learning_curves

    try:
        with quietly():
            curves = fit_learning_curves(
                measurements,
                form=fitting.form,
                weights=fitting.weights,
                chance=fitting.chance,
                at=fitting.at,
            )
    except InputError as error:
        start, rest = "frame holds", str(error)
        if not files or not rest.startswith(start):
            raise
        verb = "holds" if len(files) == 1 else "hold"
        raise InputError(f"{' and '.join(files)} {verb}{rest.removeprefix(start)}") from None
    of_one = [*curves.failures.values(), *(text for curve in curves for text in curve.warnings)]
    warn_each([text for text in curves.warnings if not any(one in text for one in of_one)])
    return curves


def keep_learners(measurements: Measurements, wanted: Sequence[str]) -> Measurements:
    """Keep the rows of the learners that ``--learner`` names; all if it names none."""
    if not wanted:
        return measurements
    import numpy as np

    names = {choose("--learner", name, measurements.learners) for name in wanted}
    keep = np.array([name in names for name in measurements.learner.tolist()])
    runs, variance = measurements.runs, measurements.variance
    return replace(
        measurements,
        learner=measurements.learner[keep],
        n=measurements.n[keep],
        error=measurements.error[keep],
        runs=None if runs is None else runs[keep],
        variance=None if variance is None else variance[keep],
        labels={k: v[keep] for k, v in measurements.labels.items()},
    )
