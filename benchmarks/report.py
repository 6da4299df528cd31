"""A report of 200 learners and one of 60,000 runs, opened in Chromium; one JSON line each.

    python benchmarks/report.py               # both, about two minutes
    python benchmarks/report.py learners 3    # one of learners, runs; opened three times

Beside each stands a plain plotly page of the same figures: curves with bands and points, and the
runs as a table. Same browser, medians over the openings: size of the file, time from asking for the
page until it has painted what it shows, and time of a frame while the mouse moves over the picture
(`hover`) and drags in it (`drag`: the target here, the axes there), at the rate of a screen, which
is 16.7: the median of the frames and what only 5% of them exceed. It needs chromium, playwright and
plotly.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from playwright.sync_api import sync_playwright

import curvewise as cw
from curvewise.report.charts import learning_chart
from curvewise.report.content import Runs
from curvewise.report.page import page_of
from curvewise.report.results import results_report

SIZES = (25, 50, 100, 200, 400)
LEARNERS, RUNS, OPENINGS, MOVES = 200, 60_000, 5, 60

FRAMES = """() => { window.frames_ms = []; let last = performance.now();
    const step = () => { const now = performance.now();
        window.frames_ms.push(now - last); last = now;
        if (!window.enough) requestAnimationFrame(step); };
    window.enough = false; requestAnimationFrame(step); }"""
PAINTED = "() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))"


def main() -> None:
    """Make the pages and open those named on the command line, or all."""
    makers = {"learners": many_learners, "runs": many_runs}
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    names = [word for word in sys.argv[1:] if not word.isdigit()] or list(makers)
    openings = numbers[0] if numbers else OPENINGS
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        program = shutil.which("chromium")
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name in names:
            ours, theirs = makers[name](Path(folder))
            found = {"report": name, **opened(browser, ours, openings, drag_target)}
            found["plotly"] = opened(browser, theirs, openings, drag_axes)
            print(json.dumps(found), flush=True)
        browser.close()


def many_learners(folder: Path) -> tuple[Path, Path]:
    """Two pages of 200 curves."""
    curves, _ = fitted(LEARNERS, 4)
    ours, theirs = folder / "learners.html", folder / "learners-plotly.html"
    ours.write_text(page_of(results_report(curves)), encoding="utf-8")
    save([figure_of(list(curves))], theirs)
    return ours, theirs


def many_runs(folder: Path) -> tuple[Path, Path]:
    """Two pages of 12 curves and the table of the 60,000 runs behind them."""
    curves, columns = fitted(12, RUNS // 12 // len(SIZES))
    report = replace(results_report(curves), runs=Runs((f"{RUNS:,} runs.",), columns))
    ours, theirs = folder / "runs.html", folder / "runs-plotly.html"
    ours.write_text(page_of(report), encoding="utf-8")
    table = go.Table(header={"values": list(columns)}, cells={"values": list(columns.values())})
    save([figure_of(list(curves)), go.Figure(table)], theirs)
    return ours, theirs


def fitted(learners: int, repeats: int) -> tuple[Any, dict[str, list[Any]]]:
    """Curves fitted to simulated runs, and the runs."""
    rng = np.random.default_rng(0)
    n = np.repeat(SIZES, repeats).astype(float)
    names = [f"learner {i:03d}" for i in range(learners)]
    errors = {
        k: np.round(
            4 + 10 * rng.random() + (80 + 80 * rng.random()) / np.sqrt(n)
            + rng.standard_normal(len(n)) * np.sqrt(0.02 + 40 / n), 4,
        )
        for k in names
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        curves = cw.fit_learning_curves({k: (n, e) for k, e in errors.items()}, unit="percent")
    columns = {
        "learner": [k for k in names for _ in n],
        "n": [int(v) for _ in names for v in n],
        "seed": [i % repeats for _ in names for i in range(len(n))],
        "error": [float(v) for k in names for v in errors[k]],
        "status": ["done"] * (learners * len(n)),
    }
    return curves, columns


def figure_of(curves: list[Any]) -> go.Figure:
    """The picture as one draws it with plotly: for each curve a line, a band and points."""
    chart = learning_chart(curves)
    low, high = chart["x"]["range"]
    seen = [i for i, n in enumerate(chart["n"]) if low <= n <= high]
    x = [chart["n"][i] for i in seen]
    figure = go.Figure()
    for series in chart["series"]:
        value, under, over = ([series["line"][k][i] for i in seen] for k in ("value", "low", "high"))
        group = {"legendgroup": series["name"], "name": series["name"]}
        hidden = {"showlegend": False, **group}
        figure.add_scatter(
            x=x + x[::-1], y=over + under[::-1], fill="toself", mode="none", opacity=0.13,
            hoverinfo="skip", **hidden,
        )  # fmt: skip
        figure.add_scatter(x=x, y=value, mode="lines", **group)
        figure.add_scatter(
            x=[p["n"] for p in series["points"]], y=[p["value"] for p in series["points"]],
            mode="markers", **hidden,
        )  # fmt: skip
    return figure.update_layout(xaxis_type="log", height=450, dragmode="pan")


def save(figures: list[go.Figure], place: Path) -> None:
    """Figures in one file that needs nothing else."""
    parts = []
    for i, figure in enumerate(figures):
        last = i == len(figures) - 1
        script = "document.body.dataset.ready = 'yes'" if last else None
        parts.append(figure.to_html(full_html=False, include_plotlyjs=i == 0, post_script=script))
    head = '<!DOCTYPE html><html><head><meta charset="utf-8"></head><body>'
    place.write_text(f"{head}{''.join(parts)}</body></html>", encoding="utf-8")


def opened(browser: Any, place: Path, openings: int, drag: Any) -> dict[str, float]:
    """Medians over some openings of a page."""
    loads: list[float] = []
    moving: dict[str, list[float]] = {"hover": [], "drag": []}
    for _ in range(openings):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(180_000)
        start = time.perf_counter()
        page.goto(place.as_uri())
        page.wait_for_selector("body[data-ready]")
        page.evaluate(PAINTED)
        loads.append(1e3 * (time.perf_counter() - start))
        moving["hover"] += frames(page, hover)
        moving["drag"] += frames(page, drag)
        page.close()
    found = {"size_mb": round(place.stat().st_size / 1e6, 2)}
    found["load_ms"] = round(statistics.median(loads))
    for name, times in moving.items():
        found |= {f"{name}_ms": round(float(np.median(times)), 1)}
        found |= {f"{name}_95_ms": round(float(np.percentile(times, 95)), 1)}
    return found


def frames(page: Any, move: Any) -> list[float]:
    """Times of the frames, in milliseconds, while something moves."""
    page.evaluate(FRAMES)
    move(page, picture(page))
    page.evaluate(PAINTED)
    page.evaluate("() => { window.enough = true; }")
    found: list[float] = page.evaluate("() => window.frames_ms")
    return found


def picture(page: Any) -> dict[str, float]:
    """Where the picture is on the screen."""
    found: dict[str, float] = page.locator("svg.chart, .nsewdrag").first.bounding_box()
    return found


def hover(page: Any, box: dict[str, float]) -> None:
    """Move the mouse across the picture, down the middle of the curves."""
    for i in range(MOVES):
        share = (i + 1) / (MOVES + 1)
        page.mouse.move(box["x"] + box["width"] * (0.1 + 0.8 * share), box["y"] + box["height"] * (0.3 + 0.4 * share))


def drag_target(page: Any, box: dict[str, float]) -> None:
    """Drag the line of the target up and down."""
    line = page.locator(".handle").bounding_box()
    drag_from(page, box["x"] + box["width"] / 2, line["y"] + line["height"] / 2)


def drag_axes(page: Any, box: dict[str, float]) -> None:
    """Drag the picture up and down."""
    drag_from(page, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def drag_from(page: Any, x: float, y: float) -> None:
    """Drag from a place, up and down and back."""
    page.mouse.move(x, y)
    page.mouse.down()
    for i in range(MOVES):
        page.mouse.move(x, y - 40 * np.sin(2 * np.pi * i / MOVES))
    page.mouse.up()


if __name__ == "__main__":
    main()
