"""Files in, measurements and fitted curves out; figures into files."""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.cli._console import UsageError, note, warn_each
from curvewise.errors import CurvewiseWarning, InputError

if TYPE_CHECKING:
    from curvewise.cli._options import Fitting, Reading
    from curvewise.io._columns import ColumnMap
    from curvewise.learning import LearningCurves
    from curvewise.types import Measurements

STDIN = "/dev/stdin"
"""What ``-`` stands for, here on every system."""


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


def names_of(files: Sequence[str]) -> dict[str, str]:
    """Shortest names that tell the files apart."""
    files = list(dict.fromkeys(files))
    stems = [Path(f).stem for f in files]
    return dict(zip(files, stems if len(set(stems)) == len(stems) else files, strict=True))


@contextmanager
def quietly() -> Iterator[None]:
    """Keep warnings back that are on the result, from where they are shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        yield


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


def choose(option: str, wanted: str | None, names: Sequence[str]) -> str:
    """Find the learner that an option names; with only one learner none need be named."""
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    there = ", ".join(map(repr, names[:20])) + (" …" if len(names) > 20 else "")
    if wanted is None:
        raise UsageError(f"Which learner? Name it with {option}. There are {there}.")
    lower = {name.lower(): name for name in names}
    close = get_close_matches(wanted.lower(), lower, n=1, cutoff=0.5)
    hint = f" Did you mean {lower[close[0]]!r}?" if close else ""
    raise UsageError(f"{option} {wanted!r} is not among the learners.{hint} There are {there}.")


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


def save_plot(path: Path | None, draw: Callable[[], Any], *, quiet: bool = False) -> None:
    """Let ``draw`` make Axes without a display and save their figure."""
    if path is None:
        return
    from curvewise.plot import save_picture

    save_picture(draw, path)
    if not quiet:
        note(f"drawn into {path}")
