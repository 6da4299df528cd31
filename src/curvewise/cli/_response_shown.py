"""Curves, measures and perturbations out: tables on stdout, curves into files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.cli._console import Page, note, sentences, warn_each

if TYPE_CHECKING:
    from curvewise.nn.measures import ModelMeasures
    from curvewise.response import ResponseCurve
    from curvewise.response.compare import ResponseComparison
    from curvewise.types import Interval

MOST_PAIRS = 20
"""Pairs of models that are shown; --json has all of them."""

SCORES = {
    "clean_accuracy": "clean accuracy",
    "mean_accuracy": "mean accuracy",
    "gi": "Gi",
    "gi_relative": "relative Gi",
    "pal": "Pal",
}
"""Scores of a curve and what they are called in tables."""


def show_curve(page: Page, curve: ResponseCurve, level: float) -> None:
    """Print one curve and its scores."""
    page.document = curve.to_dict()
    page.say(sentences(curve))
    low, high = curve.accuracy_interval(level)
    columns = {
        "magnitude": [f"{m:.4g}" for m in curve.magnitude],
        "accuracy": _percent(curve.accuracy),
        "low": _percent(low),
        "high": _percent(high),
        "right": curve.correct.tolist(),
        "of": curve.total.tolist(),
    }
    page.table(f"Accuracy at each magnitude ({level:.0%} intervals)", columns, None)
    scores = curve.scores(level)
    shown = [_write(key, i.estimate) for key, i in scores.items()]
    rows = {
        "score": [SCORES[key] for key in scores],
        "estimate": shown,
        "low": [_write(key, i.low) for key, i in scores.items()],
        "high": [_write(key, i.high) for key, i in scores.items()],
    }
    page.table(f"Scores ({level:.0%} intervals)", rows, None)
    warn_each(curve.all_warnings)


def show_curves(page: Page, curves: Mapping[str, ResponseCurve], level: float) -> None:
    """Print the scores of several models, the lowest Gi first."""
    page.document = {
        "type": "Responses",
        "curves": {name: curve.to_dict() for name, curve in curves.items()},
    }
    order = sorted(curves, key=lambda name: curves[name].gi)
    scores = {name: curves[name].scores(level) for name in order}
    columns: dict[str, list[Any]] = {
        "model": order,
        "clean": _percent(curves[name].clean_accuracy for name in order),
        "mean": _percent(curves[name].mean_accuracy for name in order),
        "Gi": [_rounded(scores[name]["gi"], 4) for name in order],
        "Pal": [_rounded(scores[name]["pal"], 2) for name in order],
    }
    first = next(iter(curves.values()))
    where = "the input" if first.layer == "input" else f"layer {first.layer}"
    page.table(
        f"Response to {first.perturbation} at {where} ({level:.0%} intervals)", columns, None
    )
    warn_each([f"{name}: {w}" for name, c in curves.items() for w in c.all_warnings])


def show_pairs(page: Page, found: Sequence[ResponseComparison], level: float) -> None:
    """Print how two models differ, or of several the clearest differences of the Gi-score."""
    how = "on the same perturbed examples" if all(c.paired for c in found) else "unpaired"
    if len(found) == 1:
        rows = [(SCORES[key], found[0], key) for key in found[0].differences]
        head, title = "score", f"{found[0].a} minus {found[0].b}, {how}"
    else:
        order = sorted(found, key=lambda c: c.pvalues["gi"])[:MOST_PAIRS]
        rows = [(f"{c.a} − {c.b}", c, "gi") for c in order]
        head, title = "Gi", f"The {len(order)} clearest of {len(found)} differences of Gi, {how}"
    columns = {
        head: [word for word, _, _ in rows],
        "difference": [_write(key, c.differences[key].estimate) for _, c, key in rows],
        "low": [_write(key, c.differences[key].low) for _, c, key in rows],
        "high": [_write(key, c.differences[key].high) for _, c, key in rows],
        "p": [_chance(c.pvalues[key]) for _, c, key in rows],
    }
    page.table(f"{title} ({level:.0%} intervals)", columns, None)


def save_curves(path: Path, curves: Mapping[str, ResponseCurve]) -> None:
    """Write a row for each model and magnitude."""
    from curvewise.tables import csv_cell

    with open(path, "w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        head = ("model", "perturbation", "layer")
        rows.writerow([*head, *next(iter(curves.values())).columns()])
        for name, curve in curves.items():
            about = (name, curve.perturbation, curve.layer)
            table = (column.tolist() for column in curve.columns().values())
            rows.writerows(map(csv_cell, (*about, *row)) for row in zip(*table, strict=True))
    note(f"curves written to {path}")


def show_measures(page: Page, found: Mapping[str, ModelMeasures]) -> None:
    """Print what the measures of networks are."""
    from curvewise.tables import number

    page.document = {
        "type": "Measures",
        "models": {name: result.to_dict() for name, result in found.items()},
    }
    for result in found.values():
        page.say(sentences(result), close=True)
    names = list(dict.fromkeys(key for result in found.values() for key in result.values))
    signs = {key: sign for result in found.values() for key, sign in result.orientation.items()}
    columns: dict[str, list[Any]] = {"measure": names}
    for model, result in found.items():
        values = [result.values.get(key, float("nan")) for key in names]
        columns[model] = ["–" if v != v else number(v) for v in values]
    columns["larger gap if"] = [_higher(signs[key]) for key in names]
    page.table("Measures", columns, None)
    warn_each([f"{name}: {w}" for name, result in found.items() for w in result.all_warnings])


def show_shelf(page: Page) -> None:
    """Print which measures there are."""
    from curvewise.nn.measures import MEASURES

    shelf = list(MEASURES.values())
    page.document = {
        "type": "Shelf",
        "measures": [
            {
                "name": m.name,
                "orientation": m.orientation,
                "needs": list(m.needs),
                "cost": m.cost,
                "about": m.about,
            }
            for m in shelf
        ],
    }
    columns = {
        "measure": [m.name for m in shelf],
        "larger gap if": [_higher(m.orientation) for m in shelf],
        "needs": [", ".join(m.needs) or "–" for m in shelf],
        "cost": [m.cost for m in shelf],
        "what it is": [m.about for m in shelf],
    }
    if page.markup is None:  # --table and --json have all of it
        del columns["cost"]
        columns["what it is"] = [m.about.partition(" (")[0].rstrip(".") for m in shelf]
    page.table("Measures of a network that may go with its generalisation gap", columns, None)


def show_perturbations(page: Page) -> None:
    """Print which perturbations there are."""
    from curvewise.nn.perturbations import PERTURBATIONS

    found = list(PERTURBATIONS.values())
    page.document = {
        "type": "Perturbations",
        "perturbations": [
            {
                "name": p.name,
                "of": p.of,
                "pairs": p.pairs,
                "unit": p.unit,
                "low": p.low,
                "high": p.high,
                "usual": list(p.usual),
                "coloured": p.coloured,
            }
            for p in found
        ],
    }
    columns = {
        "perturbation": [p.name for p in found],
        "of": ["colour images" if p.coloured else p.of for p in found],
        "magnitudes in": [p.unit for p in found],
        "from": [f"{p.low:g}" for p in found],
        "to": [f"{p.high:g}" for p in found],
        "by default": [_range(p.usual, p.pairs == "inter") for p in found],
    }
    page.table("Perturbations", columns, None)


def _range(ends: Sequence[float], below: bool = False) -> str:
    low, high = ends
    return f"±{high:g}" if low == -high else f"{low:g} … {'<' if below else ''}{high:g}"


def _higher(orientation: int) -> str:
    return "higher" if orientation > 0 else "lower"


def _percent(shares: Iterable[float]) -> list[str]:
    return [f"{share:.2%}" for share in shares]


def _rounded(interval: Interval, digits: int) -> Interval:
    ends = {key: round(getattr(interval, key), digits) for key in ("estimate", "low", "high")}
    return replace(interval, **ends)


def _write(score: str, value: float) -> str:
    """Accuracies as percentages, scores with four digits."""
    from curvewise.tables import number

    if value != value:
        return "–"
    return f"{value:.2%}" if "accuracy" in score else number(value)


def _chance(p: float) -> str:
    return "–" if p != p else "< 1e-12" if p < 1e-12 else f"{p:.2g}"
