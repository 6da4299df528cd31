"""Trainings in, comparisons out: what the commands of ``curvewise variance`` share."""

from __future__ import annotations

from typing import Any

from curvewise.cli._console import (
    Page,
    UsageError,
    note,
    sentences,
    shown_as,
    warn,
    warn_each,
)
from curvewise.cli._files import choose, names_of, quietly, save_plot
from curvewise.cli._options import Drawing
from curvewise.cli._predictions import PredictionReading, ScoreReading

MOST_PAIRS = 30
"""Pairs of trainings that are shown; --json has all of them."""

ERRORS = (
    "estimate",
    "difference",
    "low",
    "high",
    "detectable",
    "std error",
    "half-width",
)
"""Columns that hold errors or standard deviations of errors, which are shown in percent."""


NO_ERRORS = ("chance", "share", "correlation", "random splits", "ratio", "distance")
"""Words in the names of quantities that are no errors."""


def read_trainings(
    files: list[str],
    reading: PredictionReading,
    scores: ScoreReading,
    a: str | None = None,
    b: str | None = None,
) -> dict[str, Any]:
    """Predictions or scores of each training, by name."""
    if scores.scores:
        found: dict[str, Any] = dict(scores.load(files, reading.allow_large))
    elif len(files) == 1 and a is not None and b is not None:
        found = {name: reading.load(files[0], learner=name, directed=True) for name in (a, b)}
    else:
        names = names_of(files)
        found = {names[file]: reading.load(file, alone=False, directed=True) for file in names}
    if len(found) < 2:
        raise UsageError(
            f"There is one training, {next(iter(found))!r}: a comparison needs two. Give a file for"
            " each, or name two trainings of one table with --a and --b; of a table of scores, --by"
            " names the column that tells them apart."
        )
    return found


def with_runs(trainings: dict[str, Any], fewest: int) -> dict[str, Any]:
    """Leave out trainings with too few runs, and say which."""
    runs = {name: getattr(t, "runs", None) or len(t) for name, t in trainings.items()}
    few = [name for name, count in runs.items() if count < fewest]
    scored = [name for name, t in trainings.items() if not hasattr(t, "runs")]
    alone = [name for name in scored if runs[name] < 2]
    if len(runs) - len(alone) < 2 <= len(alone):
        raise UsageError(
            f"{len(alone)} of {len(runs)} trainings have one score each, such as {alone[0]!r}, and"
            " one score per training cannot be compared: nothing says how much it varies between"
            " runs. Give a row for each of several runs of a training, or files of what each"
            " training answered to every example, without --scores."
        )
    if alone and fewest < 2 and len(runs) > 2:
        raise UsageError(
            f"{len(alone)} training(s) have one score, such as {alone[0]!r}: --min-runs 2 leaves"
            " them out."
        )
    if few:
        shown = ", ".join(map(repr, few[:5])) + (" …" if len(few) > 5 else "")
        warn(f"{len(few)} training(s) have fewer than {fewest} runs and are left out: {shown}.")
    kept = {name: t for name, t in trainings.items() if name not in few}
    if len(kept) < 2:
        raise UsageError(f"--min-runs {fewest} leaves {len(kept)} training(s) to compare.")
    return kept


def choose_two(trainings: dict[str, Any], a: str | None, b: str | None) -> tuple[str, str]:
    """The two trainings to compare."""
    names = list(trainings)
    if a is None and b is None:
        a, b = names
    one, two = choose("--a", a, names), choose("--b", b, names)
    if one == two:
        raise UsageError(f"Both are {one!r}: a comparison needs two trainings.")
    return one, two


def compare_many(
    page: Page,
    trainings: dict[str, Any],
    scores: ScoreReading,
    drawing: Drawing | None,
    **options: Any,
) -> int:
    """Compare all pairs of trainings and show the clearest."""
    from curvewise.variance import compare_trainings

    trainings, shared = without_shared_path(trainings)
    if shared and (baseline := options.get("baseline")) is not None:
        options["baseline"] = str(baseline).removeprefix(shared)
    with quietly():
        result = compare_trainings(
            trainings, **options, **(scores.options if scores.scores else {})
        )
    page.document = result.to_dict()
    page.say(sentences(result))
    order = sorted(range(len(result.pairs)), key=lambda i: result.adjusted[i])[:MOST_PAIRS]
    rows = {name: [column[i] for i in order] for name, column in worded_columns(result).items()}
    if page.markup is None:
        rows |= {key: [_shortened(name) for name in rows[key]] for key in ("a", "b")}
        rows.pop("p")  # the adjusted one counts, and names want the room
    shown = f"The {len(order)} clearest of {len(result.pairs):,} pairs"
    page.table(f"{shown} (intervals hold together at {result.level:.0%})", rows, None)
    warn_each(result.all_warnings)
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


def _shortened(name: str, most: int = 20) -> str:
    """A name that leaves room for numbers; its end tells more than its beginning."""
    return name if len(name) <= most else f"{name[: most // 4]}…{name[1 + most // 4 - most :]}"


def without_shared_path(trainings: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Names without the folders that all of them start with, and those folders."""
    parts = [name.split("/")[:-1] for name in trainings]
    common = 0
    while all(len(p) > common and p[common] == parts[0][common] for p in parts):
        common += 1
    shared = "".join(f"{part}/" for part in parts[0][:common])
    if shared:
        note(f"names without {shared}, with which all of them start")
    return {name.removeprefix(shared): t for name, t in trainings.items()}, shared


def gate_holds(result: Any, gate: str) -> bool:
    """Whether a result is what ``--fail-if`` names."""
    if gate in ("equivalent", "undecided"):
        return bool(result.verdict == gate)
    return bool(getattr(result, gate.replace("-", "_")))


def show_result(
    page: Page, result: Any, title: str, style: str = "", said: str | None = None
) -> None:
    """Print the sentences (those of the result, unless given), the table and the warnings."""
    page.document = result.to_dict()
    page.say(said or sentences(result), style=style)
    page.table(title, worded_columns(result), None)
    warn_each(result.all_warnings)


def worded_columns(result: Any) -> dict[str, Any]:
    """The table with errors as percentages; shares, chances and p-values stay as they are."""
    from curvewise.variance.wording import said

    columns = dict(result.columns())
    for key in ("p", "adjusted p"):
        if key in columns:
            columns[key] = [p if p != p else f"{p:.2g}" for p in columns[key]]
    if getattr(result, "unit", None) != "fraction":  # some tables are not of errors
        return columns
    rows = columns.get("quantity", [""] * len(next(iter(columns.values()))))
    free = [any(word in str(name) for word in NO_ERRORS) for name in rows]
    for key in ("power", "one more"):
        if key in columns:
            columns[key] = [shown_as(value, ".1%") for value in columns[key]]
    for key in ERRORS:
        if key in columns:
            columns[key] = [
                value if value != value else f"{value:.3f}" if is_free else said(value, "fraction")
                for value, is_free in zip(columns[key], free, strict=True)
            ]
    return columns
