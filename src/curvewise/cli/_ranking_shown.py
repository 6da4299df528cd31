"""Rankings and measures out: tables on stdout, scores into files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.cli._console import Page, UsageError, check_folder, note, sentences, warn_each
from curvewise.cli._ranking_tables import table_in_parts
from curvewise.cli._ranking_words import as_options

if TYPE_CHECKING:
    from curvewise.ranking.measure import RankingMeasure
    from curvewise.ranking.ranking_result import CheckpointRanking


def show_ranking(page: Page, result: CheckpointRanking) -> None:
    """Print the ranked table, agreement among measures, cost, certainty and failures."""
    page.document = result.to_dict()
    page.document["top"] = list(result.top)
    page.say(sentences(result))
    title = f"Checkpoints by {result.by}, {result.examples:,} examples"
    if result.resamples:
        title += f" ({result.level:.0%} intervals)"
    table_in_parts(page, title, _ranked(result))
    _show_agreement(page, result)
    _show_costs(page, result)
    _show_lost(page, result)
    if page.markup is None and len(result.top) < result.ranked:
        names = ", ".join(result.top)
        page.say(f"To try: {names}. Trying {result.enough()} would be enough for 90% certainty.")
    warn_each([as_options(text) for text in result.all_warnings])


def _ranked(result: CheckpointRanking) -> dict[str, list[Any]]:
    """A row for each checkpoint."""
    columns: dict[str, list[Any]] = {
        "checkpoint": list(result.checkpoints),
        "rank": [_place(v) for v in result.ranks],
    }
    if result.resamples:
        columns["from"] = [_place(v) for v in result.rank_low]
        columns["to"] = [_place(v) for v in result.rank_high]
    columns[result.by] = _numbers(result.scores[result.by])
    if result.resamples:
        columns["low"] = _numbers(result.score_low)
        columns["high"] = _numbers(result.score_high)
    columns["P(best)"] = [f"{p:.0%}" if p == p else "–" for p in result.chance_best]
    others = [name for name in result.measures if name != result.by]
    return {**columns, **{name: _numbers(result.scores[name]) for name in others}}


def _show_agreement(page: Page, result: CheckpointRanking) -> None:
    if len(result.measures) < 2:
        return
    columns: dict[str, list[Any]] = {"measure": list(result.measures)}
    for j, name in enumerate(result.measures):
        values = result.agreement[:, j]
        columns[name] = [
            "–" if i == j else f"{v:.2f}" if v == v else "–" for i, v in enumerate(values)
        ]
    table_in_parts(page, "Agreement of measures (Kendall's τ-b)", columns)


def _show_costs(page: Page, result: CheckpointRanking) -> None:
    costs = result.costs()
    columns = {
        "part": costs["part"],
        "seconds": _numbers(costs["seconds"], 3),
        "GFLOPs": _numbers(costs["gflops"], 3),
    }
    page.table("Cost over all checkpoints", columns, None)
    page.document["costs"] = costs


def _show_lost(page: Page, result: CheckpointRanking) -> None:
    """Which checkpoints have no features, or no score, those of one reason together."""
    lost: dict[tuple[str, str], list[str]] = {}
    for name, why in result.failures.items():
        lost.setdefault(("features", why), []).append(name)
    for measure, found in result.missing.items():
        for name, why in found.items():
            lost.setdefault((measure, why), []).append(name)
    if not lost:
        return
    columns = {
        "checkpoint": [", ".join(names) for names in lost.values()],
        "has no": [what for what, _ in lost],
        "because": [as_options(why) for _, why in lost],
    }
    page.table("Failed", columns, None)


def show_shelf(page: Page, shelf: Mapping[str, RankingMeasure]) -> None:
    """Print which measures there are, what they need, what they cost and when they fail."""
    found = list(shelf.values())
    page.document = {
        "type": "RankingMeasures",
        "measures": [
            {**m.columns(), "targets": list(m.targets), "splits": m.splits, "seeded": m.seeded}
            for m in found
        ],
    }
    columns: dict[str, list[Any]] = {
        "measure": [m.name for m in found],
        "takes": [m.takes for m in found],
        "targets": [", ".join(m.targets) for m in found],
        "what it is": [m.about for m in found],
        "cost": [m.cost for m in found],
        "fails": [m.fails for m in found],
    }
    if page.markup is None:  # --table and --json have all of it
        for name in ("targets", "what it is"):
            del columns[name]
    page.table("Measures of a checkpoint, more is better", columns, None)


def check_scores(path: Path | None) -> None:
    """Refuse a file of scores that cannot be written, before anything is computed."""
    if path is None:
        return
    if path.suffix.lower() != ".csv":
        raise UsageError(f"--save {path} must end in .csv.")
    check_folder("--save", path)


def save_scores(path: Path, result: CheckpointRanking) -> None:
    """Write a row for each checkpoint, as ``curvewise ranking judge`` reads it."""
    from curvewise.tables import csv_cell

    columns = {"checkpoint": list(result.checkpoints), **result.scores}
    with open(path, "w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(map(csv_cell, columns))
        rows.writerows(
            ["" if value != value else csv_cell(value) for value in row]
            for row in zip(*columns.values(), strict=True)
        )
    note(f"scores written to {path}")


def show_plan(page: Page, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> None:
    """Print what would be done."""
    page.document = {"type": "RankingPlan", **about, "checkpoints": list(rows)}
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    page.table("Checkpoints", columns, None)
    page.say("; ".join(f"{key}: {value}" for key, value in about.items()))
    note("--dry-run: nothing was computed")


def _place(value: float) -> str:
    return "–" if value != value else f"{value:g}"


def _numbers(values: Iterable[float], digits: int = 4) -> list[str]:
    from curvewise.tables import number

    return ["–" if v != v else number(float(v), digits) for v in values]
