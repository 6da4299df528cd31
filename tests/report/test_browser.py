"""Reports in a real browser: they ask for nothing, and every control does what it says."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.report.content import Report, ReportTable, Reproduce, Runs, Section
from curvewise.report.page import page_of
from curvewise.report.results import results_report
from curvewise.text import csv_cell, format_interval, format_number

pytest.importorskip("playwright.sync_api")

SIZES = np.repeat([25.0, 50.0, 100.0, 200.0, 400.0], [8, 6, 4, 3, 2])
LAWS = {"oak": (8.0, 150.0), "elm": (14.0, 90.0), "ash": (2.0, 200.0)}
UNITS = {
    "percent": {"unit": "percent"},
    "fraction": {"unit": "fraction"},
    "loss": {"unit": "loss"},
    "score": {"unit": "score", "higher_is_better": True},
}
HOSTILE = [
    "<script>window.ran = 1</script>",
    "</script><img src=x onerror='window.ran = 1'>",
    "\"quotes\" 'and' `ticks` & <b>",
    "x" * 10_000,
    "🦉 owl 👩‍👩‍👧",
    "שלום עולם \u202e reversed",
    "__proto__",
    "constructor",
    "${window.ran = 1}",
    "=1+1",
]
RUNS = 60_000


Opened = Callable[..., Any]


def curves_of(kind: str, laws: dict[str, tuple[float, float]] = LAWS) -> Any:
    rng = np.random.default_rng(3)
    found = {}
    for name, (floor, fall) in laws.items():
        noise = rng.standard_normal(len(SIZES)) * np.sqrt(0.02 + 40 / SIZES)
        percent = floor + fall * SIZES**-0.5 + noise
        turned = {"percent": percent, "fraction": percent / 100, "loss": percent / 20, "score": 30 - percent}
        found[name] = (SIZES, turned[kind])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        return cw.fit_learning_curves(found, **UNITS[kind])


def many_runs(count: int = RUNS) -> Runs:
    index = np.arange(count)
    value = np.where(index % 7 == 3, np.nan, (index * 7919) % count / count)
    columns = {
        "learner": [list(LAWS)[i % 3] for i in index],
        "seed": [int(1_955_123_456 + i) for i in index],
        "error": [None if np.isnan(v) else float(v) for v in value],
        "status": ["failed" if np.isnan(v) else "done" for v in value],
        "note": [f"run {i}" for i in index],
    }
    failures = (
        SimpleNamespace(count=9, learners=("oak",), message="out of memory", example="a1"),
        SimpleNamespace(count=12, learners=("elm", "ash"), message="<b>diverged</b>", example="b2"),
    )
    return Runs((f"{count:,} runs.",), columns, failures)


def written(folder: Path, report: Report) -> Path:
    place = folder / "report.html"
    place.write_text(page_of(report), encoding="utf-8")
    return place


@pytest.fixture(scope="session")
def studied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A page with everything on it, and the curves that it shows."""
    curves = curves_of("percent")
    report = results_report({"How fast?": curves, "Which?": cw.compare_learning_curves(curves["oak"], curves["elm"])})
    odd = ReportTable(
        "odd",
        "Odd numbers",
        {
            "learner": ["oak", "elm", "ash", "fir"],
            "value": [10.0, math.nan, 9.0, math.inf],
            "word": ["v10", "v9", None, "v1"],
        },
    )
    first, second = report.sections
    report = replace(
        report,
        sections=(first, replace(second, tables=(*second.tables, odd))),
        warnings=tuple(f"Warning number {i}." for i in range(9)),
        runs=many_runs(200),
        reproduce=Reproduce(
            "Do this.",
            "curvewise study report my-study.toml --form auto --trust",
            "[study]",
            "my-study.toml",
            {"version": "1"},
        ),
    )
    return written(tmp_path_factory.mktemp("studied"), report), curves


@pytest.fixture(scope="session")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of many runs."""
    report = Report("Many", "How many?", ("Many.",), runs=many_runs())
    return written(tmp_path_factory.mktemp("crowded"), report)


@pytest.fixture(scope="session", params=list(UNITS))
def in_unit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Any]:
    curves = curves_of(request.param)
    place = written(tmp_path_factory.mktemp(request.param), results_report(curves))
    return request.param, place, curves


def plain_number(text: str) -> float:
    return float(text.replace("∞", "inf").replace("−", "-").replace(",", ""))


def reading(cell: str) -> tuple[float, float, float]:
    """Estimate, low and high in a cell such as ``12 [10, ∞]``."""
    match = re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", " ".join(cell.split()))
    assert match, cell
    return tuple(map(plain_number, match.groups()))  # type: ignore[return-value]


def readings(page: Any) -> dict[str, list[str]]:
    """The numbers beside the chart: for each learner e_N, β_N and samples."""
    rows = page.eval_on_selector_all(
        ".reading tbody tr",
        """all => all.map(
            (r) => [r.dataset.learner, [...r.querySelectorAll("td")].map((c) => c.textContent)])""",
    )
    return dict(rows)


def opacity(page: Any, selector: str) -> list[float]:
    """How much is seen of elements: their opacity times that of all around them."""
    script = """all => all.map((e) => { let seen = 1;
        for (; e; e = e.parentElement) seen *= Number(getComputedStyle(e).opacity);
        return seen; })"""
    return page.eval_on_selector_all(selector, script)


def drawn_above(page: Any) -> list[str]:
    """Learners whose curves stand out, in front of the dimmed others."""
    return page.eval_on_selector_all(".chart .series", "all => all.map(g => g.dataset.learner)")


def legend(page: Any, name: str) -> Any:
    return page.locator(".legend").get_by_role("button", name=name, exact=True)


def test_a_learner_is_chosen_everywhere_and_escape_lets_go(opened: Opened, studied: Any) -> None:
    page = opened(studied[0])
    parts = (".reading tr", ".sortable tr", "#runs-table tr")
    assert set(opacity(page, ".series")) == {1}
    legend(page, "elm").click()
    assert legend(page, "elm").get_attribute("aria-pressed") == "true"
    assert legend(page, "oak").get_attribute("aria-pressed") == "false"
    for part in parts:
        own = opacity(page, f'{part}[data-learner="elm"]')
        others = opacity(page, f'{part}[data-learner]:not([data-learner="elm"])')
        assert set(own) <= {1}, part
        assert max(others, default=0) < 0.5, part
    first = page.eval_on_selector_all("#runs-table tbody tr", "all => all.map(r => r.dataset.learner)")
    assert set(first) == {"elm"}  # its runs come first
    assert drawn_above(page) == ["elm"]
    assert opacity(page, ".chart .series") == [1]
    assert max(opacity(page, ".curves .series")) < 0.5
    page.mouse.move(1, 1)
    page.keyboard.press("Escape")
    for part in parts:
        assert set(opacity(page, f"{part}[data-learner]")) == {1}, part
    assert set(opacity(page, ".series")) == {1}
    assert drawn_above(page) == []
    assert page.locator('[aria-pressed="true"]').count() == 0


def test_a_click_on_a_curve_chooses_its_learner(opened: Opened, studied: Any) -> None:
    page = opened(studied[0])
    legend(page, "ash").hover()
    assert drawn_above(page) == ["ash"]
    x, y = points_of(page)["oak"][0]
    page.mouse.move(*on_screen(page, x, y))
    tip = page.locator(".tip")
    assert tip.text_content().startswith("oak, n = 25, mean of 8 runs: ")
    page.mouse.click(*on_screen(page, x, y))
    page.mouse.move(1, 1)
    assert drawn_above(page) == ["oak"]
    assert legend(page, "oak").get_attribute("aria-pressed") == "true"


def points_of(page: Any) -> dict[str, list[tuple[float, float]]]:
    paths = page.eval_on_selector_all(
        ".curves .series", "all => all.map(g => [g.dataset.learner, g.querySelector('.points').getAttribute('d')])"
    )
    point = r"M([\d.]+),([\d.]+)h0"
    return {name: [(float(x), float(y)) for x, y in re.findall(point, d)] for name, d in paths}


def inner_box(page: Any) -> tuple[float, float, float, float]:
    """Left, top, right and bottom between the axes, read off the grid lines."""
    box = page.evaluate(
        """() => { const lines = [...document.querySelectorAll(".grid line")].map(
            (l) => ["x1", "y1", "x2", "y2"].map((k) => Number(l.getAttribute(k))));
            const flat = lines.find((l) => l[1] === l[3]), up = lines.find((l) => l[0] === l[2]);
            return [flat[0], up[1], flat[2], up[3]]; }"""
    )
    return tuple(box)


def on_screen(page: Any, x: float, y: float) -> tuple[float, float]:
    frame = page.locator("svg.chart").bounding_box()
    width = float(page.locator("svg.chart").get_attribute("viewBox").split()[2])
    scale = frame["width"] / width
    return frame["x"] + x * scale, frame["y"] + y * scale


AXES: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "log": (np.log, 25.0, 4000.0),
    "linear": (lambda n: n, 0.0, 4000.0),
    "root": (lambda n: -(np.asarray(n, dtype=float) ** -0.5), 25.0, math.inf),
}


def placed(scale: str, n: Any, left: float, right: float) -> Any:
    """Where a size belongs between the ends of the axis."""
    place, low, high = AXES[scale]
    return left + (place(n) - place(low)) / (place(high) - place(low)) * (right - left)


def test_axis_puts_points_where_they_belong(opened: Opened, studied: Any) -> None:
    path, curves = studied
    page = opened(path)
    floor, ceiling = json.loads(page.text_content("#chart-1"))["y"]["range"]
    for scale in ("linear", "root", "log"):
        page.check(f'input[type=radio][value="{scale}"]')
        left, top, right, bottom = inner_box(page)

        for curve in curves:
            x, y = np.array(points_of(page)[curve.learner]).T
            np.testing.assert_allclose(x, placed(scale, curve.n, left, right), atol=0.06)
            expected = bottom - (curve.mean - floor) / (ceiling - floor) * (bottom - top)
            np.testing.assert_allclose(y, expected, atol=0.06)
        ticks = page.eval_on_selector_all(
            ".grid text[text-anchor=middle]:not(.name)",
            "all => all.map((t) => [t.textContent, Number(t.getAttribute('x'))])",
        )
        assert len(ticks) >= 3
        for text, x in ticks:
            assert x == pytest.approx(placed(scale, plain_number(text), left, right))


def close(found: str, wanted: Any, share: float, times: float = 1.0) -> None:
    """An interval as shown and as computed, within a share of the estimate and the digits that are shown."""
    decimals = len(found.split()[0].partition(".")[2])
    for a, b in zip(reading(found), (wanted.estimate, wanted.low, wanted.high), strict=True):
        near = share * abs(times * wanted.estimate) + 0.51 * 10.0**-decimals
        assert a == pytest.approx(times * b, rel=share, abs=near), (found, wanted)


def supported(wanted: Any, times: float) -> str:
    """An interval with the digits that it supports, as Python writes it."""
    return format_interval(tuple(times * v for v in (wanted.estimate, wanted.low, wanted.high)))


def test_intervals_have_the_digits_of_python(opened: Opened, studied: Any) -> None:
    given = [(3.186, 2.705, 3.953), (48_213, 41_000, 5e9), (1.2, 0.3, 1500), (0.457, 0, 9.53), (-1.2, -1500, -0.3)]
    given += [(481.7, 51.9, 1403), (0, -1.1e-150, 1.1e-150), (0.00024, 4.4e-7, 0.03), (0.5, 1e-5, 1.2)]
    given += [(0.6493300380205680, 0.6493300380205679, 0.6493300380205681)]
    # Limits at any two distances from the estimate, from a millionth of it to a thousand times it.
    rng = np.random.default_rng(0)
    for estimate, below, above in 10 ** rng.uniform([-5, -6, -6], [5, 3, 3], size=(500, 3)):
        given += [(estimate, estimate * (1 - below), estimate * (1 + above))]
    script = (Path(cw.__file__).parent / "report" / "assets" / "base.js").read_text(encoding="utf-8")
    code = f"(all) => {{ {script}; return all.map((x) => ranged(...x, '%').join(' ')); }}"
    page = opened(studied[0])
    assert page.evaluate(code, given) == [format_interval(x, "percent") for x in given]


def same_size(shown: float, computed: float) -> bool:
    """Within 2%, apart from being shown as a whole number."""
    return shown == computed or abs(shown - computed) <= 0.02 * computed + 0.5


def test_slider_reads_off_the_curve(opened: Opened, in_unit: Any) -> None:
    kind, path, curves = in_unit
    times = 100.0 if kind == "fraction" else 1.0  # errors are read as percentages
    page = opened(path)
    field, slider = (page.get_by_label("Training size N as a number"), page.locator("input[type=range]"))
    assert float(field.input_value()) == 400
    for curve in curves:
        at, shown = curve.interval_at(400), readings(page)[curve.learner]
        for text, wanted in zip(shown, (at.error, at.data_reliance), strict=False):
            assert " ".join(text.split()) == supported(wanted, times)  # to the digit where it was measured
    for n in (400.0, 26.0, 77.0, 333.0, 1234.0, 3990.0):
        field.fill(str(n))
        for curve in curves:
            error, reliance, _ = readings(page)[curve.learner]
            close(error, curve.interval_at(n).error, 0.01, times)
            close(reliance, curve.interval_at(n).data_reliance, 0.01, times)
    slider.focus()
    before = float(slider.input_value())
    page.keyboard.press("ArrowLeft")
    assert float(slider.input_value()) == before - 1
    n = 25 * 160 ** ((before - 1) / 1000)
    assert float(field.input_value()) == pytest.approx(n, rel=0.005)
    assert slider.get_attribute("aria-valuetext").startswith("n = ")
    line = float(page.locator('[data-mark="n"]').get_attribute("x1"))
    left, _, right, _ = inner_box(page)
    share = math.log(float(field.input_value()) / 25) / math.log(160)
    assert line == pytest.approx(left + share * (right - left))


def test_target_reads_off_the_samples_needed(opened: Opened, in_unit: Any) -> None:
    kind, path, curves = in_unit
    page = opened(path)
    ends = [c.error_at(n) for c in curves for n in (30.0, 40_000.0)]
    targets = [float(f"{t:.4g}") for t in np.linspace(min(ends), max(ends), 17)]
    times = 100.0 if kind == "fraction" else 1.0
    shown = page.evaluate(
        """(targets) => targets.map((t) => {
            const field = [...document.querySelectorAll("label")].find(
                (l) => l.textContent.startsWith("Target")).querySelector("input");
            field.value = t; field.dispatchEvent(new Event("input"));
            return Object.fromEntries([...document.querySelectorAll(".reading tbody tr")].map(
                (row) => [row.dataset.learner, row.lastElementChild.textContent])); })""",
        [times * t for t in targets],
    )
    infinite = 0
    for target, cells in zip(targets, shown, strict=True):
        for curve in curves:
            wanted = curve.samples_to_reach(target)
            infinite += math.isinf(wanted.high)
            found = reading(cells[curve.learner])
            for a, b in zip(found, (wanted.estimate, wanted.low, wanted.high), strict=True):
                assert same_size(a, b), (kind, target, found, wanted)
    assert infinite > 3


def test_target_is_dragged(opened: Opened, studied: Any) -> None:
    path, curves = studied
    page = opened(path)
    field = page.get_by_label("Target error (%)")
    before = float(field.input_value())
    left, top, right, bottom = inner_box(page)
    y = float(page.locator('[data-mark="target"]').get_attribute("y1"))
    page.mouse.move(*on_screen(page, (left + right) / 2, y))
    page.mouse.down()
    for step in (10, 30, 60):
        page.mouse.move(*on_screen(page, (left + right) / 2, y - step))
    page.mouse.up()
    low, high = json.loads(page.text_content("#chart-1"))["y"]["range"]
    wanted = before + 60 / (bottom - top) * (high - low)
    target = float(field.input_value())
    assert target == pytest.approx(wanted, rel=0.02)
    assert page.locator(".reading thead th").last.text_content() == f"samples for {target:g}%"
    for curve in curves:
        samples = curve.samples_to_reach(target)
        assert same_size(reading(readings(page)[curve.learner][2])[0], samples.estimate)
    page.mouse.move(*on_screen(page, (left + right) / 2, y - 100))  # let go: it stays
    assert float(field.input_value()) == target


def test_targets_out_of_reach_are_infinite_and_never_nonsense(opened: Opened, studied: Any) -> None:
    path, curves = studied
    page = opened(path)
    for target in ("0", "-3", "99.9", "1e-9", "4"):
        page.get_by_label("Target error (%)").fill(target)
        for curve in curves:
            text = readings(page)[curve.learner][2]
            if float(target) <= 0:
                assert text == "∞ [∞, ∞]"
                continue
            wanted = curve.samples_to_reach(float(target))
            found = reading(text)  # numbers or ∞, and nothing else
            assert same_size(found[0], wanted.estimate)
            assert same_size(found[2], wanted.high)


def test_curve_that_rises_names_no_size(opened: Opened, tmp_path: Path) -> None:
    rising = {"yew": (SIZES, 20 + 0.02 * SIZES + np.sin(np.arange(len(SIZES))))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        curves = cw.fit_learning_curves(rising, unit="percent")
    page = opened(written(tmp_path, results_report(curves)))
    for target in (22.0, 40.0):
        page.get_by_label("Target error (%)").fill(str(target))
        estimate = curves["yew"].samples_to_reach(target).estimate
        text = readings(page)["yew"][2]
        assert text == ("none can be named" if np.isnan(estimate) else "∞ [∞, ∞]")


def test_intervals_without_end_are_shown_as_such(opened: Opened, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        curves = cw.fit_learning_curves({"yew": ([50, 100, 200], [0.31, 0.31, 0.13])})
    at = curves["yew"].interval_at(200)
    assert math.isinf(at.data_reliance.high)
    page = opened(written(tmp_path, results_report(curves)))
    error, reliance, samples = readings(page)["yew"]
    assert " ".join(error.split()) == supported(at.error, 100)
    assert " ".join(reliance.split()) == supported(at.data_reliance, 100)
    assert reading(samples)[2] == math.inf


def test_a_fit_outside_its_interval_is_read_off_as_in_python(opened: Opened, tmp_path: Path) -> None:
    n = np.repeat([50.0, 100.0, 200.0, 400.0], [8, 4, 2, 1])
    error = [0.1708, 0.1667, 0.1708, 0.1458, 0.2014, 0.2056, 0.1597, 0.1833]
    error += [0.1056, 0.1014, 0.1306, 0.1181, 0.0903, 0.0667, 0.0736]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        curves = cw.fit_learning_curves({"yew": (n, error)})
    wanted = curves["yew"].samples_to_reach(0.3)
    assert curves["yew"].error_at(wanted.low) > 0.3 > curves["yew"].error_at(wanted.estimate) - 1e-3
    page = opened(written(tmp_path, results_report(curves)))
    page.get_by_label("Target error").fill("30")
    found = reading(readings(page)["yew"][2])
    assert found == tuple(round(v) for v in (wanted.estimate, wanted.low, wanted.high))


def test_what_lies_far_beyond_the_data_is_marked(opened: Opened, studied: Any) -> None:
    path, curves = studied
    page = opened(path)
    field = page.get_by_label("Training size N as a number")
    caution = page.locator(".panel > .hint")
    target = page.get_by_label("Target error (%)")
    easy = max(c.error_at(400) for c in curves)
    target.fill(f"{easy:.3g}")
    assert page.locator(".far").count() == 0
    assert caution.text_content() == ""
    field.fill("1600")
    assert page.locator(".far").count() == 0
    field.fill("1700")
    assert page.locator(".far").count() == 2 * len(curves)
    assert "beyond 4 times the largest size" in caution.text_content()
    field.fill("400")
    hard = curves["oak"].error_at(3000)
    target.fill(f"{hard:.4g}")
    beyond = [c.learner for c in curves if 1600 < c.samples_to_reach(hard).estimate < math.inf]
    assert "oak" in beyond
    marked = page.locator("tr:has(.far)")
    assert [row.get_attribute("data-learner") for row in marked.all()] == beyond
    left, _, right, _ = inner_box(page)
    edge = float(page.locator(".beyond").get_attribute("x"))
    assert edge == pytest.approx(placed("log", 1600, left, right), abs=0.1)


def test_numbers_beside_the_chart_sort_as_they_change(opened: Opened, studied: Any) -> None:
    path, curves = studied
    page = opened(path)
    head = page.locator(".reading thead th").nth(1)
    for n in (25.0, 400.0):
        page.get_by_label("Training size N as a number").fill(str(n))
        head.get_by_role("button").click()
        rising = head.get_attribute("aria-sort") == "ascending"
        wanted = sorted(curves, key=lambda c: c.error_at(n), reverse=not rising)
        assert list(readings(page)) == [c.learner for c in wanted]


def test_numbers_beside_the_chart_do_not_run_into_each_other(opened: Opened, tmp_path: Path) -> None:
    laws = {"yew": (0.02, 1.2), "fir, with a longer name": (5.0, 20.0)}
    page = opened(written(tmp_path, results_report(curves_of("fraction", laws))))
    for width in (1440, 1000, 390):
        page.set_viewport_size({"width": width, "height": 900})
        over = page.eval_on_selector_all(".reading td", "all => all.map((e) => e.scrollWidth - e.clientWidth)")
        assert max(over) <= 0, width


def test_a_name_beside_the_chart_is_not_broken_and_columns_stay(opened: Opened, tmp_path: Path) -> None:
    laws = {"neighbours": (3.0, 40.0), "fir": (5.0, 20.0), "logistic": (4.0, 30.0)}
    page = opened(written(tmp_path, results_report(curves_of("fraction", laws))))
    for width in (1200, 390):
        page.set_viewport_size({"width": width, "height": 900})
        heights = page.eval_on_selector_all(".reading tbody bdi", "all => all.map((e) => e.offsetHeight)")
        assert len(heights) == 3
        assert len(set(heights)) == 1, "every name takes one line"
        heads = page.eval_on_selector_all(".reading thead th:not(:first-child)", "all => all.map((e) => e.offsetWidth)")
        assert min(heads) > (60 if width > 1000 else 100), "columns share the width"
    page.set_viewport_size({"width": 1200, "height": 900})
    places = []
    for n in (25, 400, 10_000):
        page.get_by_label("Training size n as a number").fill(str(n))
        places.append(page.eval_on_selector_all(".reading thead th", "all => all.map((e) => e.offsetLeft)"))
    assert places[0] == places[1] == places[2]


def column(page: Any, table: str, index: int) -> list[str]:
    return page.eval_on_selector_all(f"{table} tbody tr", f"all => all.map((r) => r.children[{index}].textContent)")


def test_tables_sort_numbers_as_numbers_and_leave_gaps_last(opened: Opened, studied: Any) -> None:
    page = opened(studied[0])
    table = '[aria-label="Odd numbers"] table'
    heads = page.locator(f"{table} th")
    heads.nth(1).get_by_role("button").click()
    assert heads.nth(1).get_attribute("aria-sort") == "ascending"
    assert column(page, table, 1) == ["9", "10", "∞", "–"]
    heads.nth(1).get_by_role("button").click()
    assert heads.nth(1).get_attribute("aria-sort") == "descending"
    assert column(page, table, 1) == ["∞", "10", "9", "–"]
    heads.nth(2).get_by_role("button").click()
    assert heads.nth(1).get_attribute("aria-sort") is None
    assert column(page, table, 2) == ["v1", "v9", "v10", "–"]
    failures = '[aria-label="Why runs failed"] table'
    page.locator(f"{failures} th button").first.click()
    assert column(page, failures, 0) == ["9", "12"]
    assert column(page, failures, 2) == ["out of memory", "<b>diverged</b>"]


def test_runs_are_turned_filtered_and_sorted(opened: Opened, crowded: Path) -> None:
    page = opened(crowded)
    status, rows = page.locator("#runs-table [role=status]"), page.locator("#runs-table tbody tr")
    assert status.text_content() == "60,000 of 60,000 runs, page 1 of 1200"
    assert rows.count() == 50
    back, on = (page.locator("#runs-table").get_by_role("button", name=n) for n in ("Previous", "Next"))
    assert back.is_disabled()
    on.click()
    assert status.text_content() == "60,000 of 60,000 runs, page 2 of 1200"
    assert column(page, "#runs-table", 4)[:2] == ["run 50", "run 51"]
    assert column(page, "#runs-table", 1)[0] == "1955123506"  # every digit
    back.click()
    head = page.locator("#runs-table thead").get_by_role("button", name="error (%)", exact=True)
    head.click()
    values = [float(v) for v in column(page, "#runs-table", 2)]
    columns = many_runs().columns
    truth = sorted(100 * v for v in columns["error"] if v is not None)
    np.testing.assert_allclose(values, truth[:50], rtol=1e-3, atol=1e-6)
    head.click()
    values = [float(v) for v in column(page, "#runs-table", 2)]  # what is missing stays last
    np.testing.assert_allclose(values, truth[:-51:-1], rtol=1e-3)
    assert page.locator('#runs-table th[aria-sort="descending"]').text_content() == "error (%)"
    page.get_by_label("Show runs that contain").fill("FAILED")
    count = sum(v == "failed" for v in columns["status"])
    assert status.text_content() == f"{count:,} of 60,000 runs, page 1 of {-(-count // 50)}"
    assert set(column(page, "#runs-table", 2)) == {"–"}
    page.get_by_label("Show runs that contain").fill("run 59999")
    assert column(page, "#runs-table", 4) == ["run 59999"]
    page.get_by_label("Show runs that contain").fill("no such run")
    assert status.text_content() == "0 of 60,000 runs, page 1 of 1"
    assert back.is_disabled()
    assert on.is_disabled()
    page.get_by_label("Show runs that contain").fill("")
    values = [float(v) for v in column(page, "#runs-table", 2)]
    np.testing.assert_allclose(values, truth[:-51:-1], rtol=1e-3)  # still sorted
    page.locator("#runs-table thead").get_by_role("button", name="note").click()
    assert column(page, "#runs-table", 4)[8:11] == ["run 8", "run 9", "run 10"]


def background(page: Any) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_runs_that_are_found_are_saved(opened: Opened, hostile: Path) -> None:
    page = opened(hostile)
    page.get_by_label("Show runs that contain").fill("quotes")
    for count in (1, len(HOSTILE)):
        with page.expect_download() as awaited:
            page.get_by_role("button", name="Save as CSV").click()
        text = Path(awaited.value.path()).read_bytes().decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert len(rows) == count
        for row in rows:
            assert row["learner"] == row["__proto__"] == csv_cell(HOSTILE[int(row["constructor"])])
        page.get_by_label("Show runs that contain").fill("")
    assert awaited.value.suggested_filename == "runs.csv"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(opened: Opened, studied: Any, scheme: str) -> None:
    page = opened(studied[0], color_scheme=scheme)
    other = {"light": "dark", "dark": "light"}[scheme]
    colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}
    assert background(page) == colours[scheme]
    page.get_by_role("button", name=f"Switch to {other} colours").click()
    assert background(page) == colours[other]
    page.emulate_media(color_scheme=other)
    page.emulate_media(color_scheme=scheme)
    assert background(page) == colours[other]  # what was chosen stays
    page.get_by_role("button", name=f"Switch to {scheme} colours").click()
    assert background(page) == colours[scheme]


def test_everything_is_reached_by_tab_and_focus_is_seen(opened: Opened, studied: Any) -> None:
    page = opened(studied[0])
    wanted = page.evaluate(
        """() => { const group = new Set();
            return [...document.querySelectorAll("a[href], button, input, summary, [tabindex='0']")]
            .filter((e) => e.checkVisibility() && !e.disabled)
            .filter((e) => e.type !== "radio" || (!group.has(e.name) && group.add(e.name)))
            .map((e, i) => { e.dataset.stop = i; return i; }).length; }"""
    )
    seen = set()
    for _ in range(2 * wanted):
        page.keyboard.press("Tab")
        stop, style = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
                return [e.dataset.stop ?? null, [s.outlineStyle, s.outlineWidth]]; }"""
        )
        if stop is None:
            break
        assert style[0] != "none"
        assert float(style[1].removesuffix("px")) >= 2
        seen.add(stop)
    assert len(seen) == wanted > 20


def test_arrow_keys_move_through_the_points_and_say_them(opened: Opened, studied: Any) -> None:
    path, curves = studied
    every = list(curves)
    page = opened(path)
    page.locator("svg.chart").focus()
    said = page.locator("[aria-live=polite]").first

    def words(curve: Any, i: int) -> str:
        runs = f"mean of {int(curve.runs[i])} runs"
        return f"{curve.learner}, n = {curve.n[i]:g}, {runs}: {format_number(curve.mean[i], 3)}%"

    for key, (learner, i) in [
        ("ArrowRight", (0, 0)),
        ("ArrowRight", (0, 1)),
        ("ArrowDown", (1, 1)),
        ("ArrowLeft", (1, 0)),
        ("ArrowLeft", (1, 4)),
        ("ArrowUp", (0, 4)),
        ("ArrowUp", (2, 4)),
        ("Home", (2, 0)),
        ("End", (2, 4)),
    ]:
        page.keyboard.press(key)
        assert said.text_content() == words(every[learner], i)
        assert page.locator(".tip").is_visible()
        x, y = points_of(page)[every[learner].learner][i]
        halo = page.locator(".halo")
        assert float(halo.get_attribute("cx")) == pytest.approx(x, abs=0.06)
        assert float(halo.get_attribute("cy")) == pytest.approx(y, abs=0.06)
    page.keyboard.press("Escape")
    assert not page.locator(".tip").is_visible()


def test_values_that_cannot_be_shown_are_marked(opened: Opened, studied: Any) -> None:
    page = opened(studied[0])
    size, target = page.get_by_label("Training size n as a number"), page.get_by_label("Target error (%)")
    hint, before = page.locator(".panel .hint[role=status]"), target.input_value()
    for field, asked, shown, said in [
        (size, "-5", size.get_attribute("min"), "Training size n: between 25 and 4,000."),
        (target, "-3", before, "Target: at least 0%."),
    ]:
        field.fill(asked)
        assert field.get_attribute("aria-invalid") == "true"
        assert hint.text_content() == said
        field.press("Enter")
        assert field.input_value() == shown
        assert field.get_attribute("aria-invalid") is None
    size.fill("100")
    assert hint.text_content() != "Target: at least 0%."


def test_legend_shows_every_learner_of_a_dozen(opened: Opened, tmp_path: Path) -> None:
    n, error = [100, 100, 200, 200, 400, 400], [0.31, 0.29, 0.25, 0.24, 0.21, 0.20]
    names = [f"ResNet-{i}, augmented" for i in range(12)]
    curves = cw.fit_learning_curves(dict.fromkeys(names, (n, error)))
    page = opened(cw.write_report(curves, tmp_path / "report.html"))
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.eval_on_selector(".legend", "e => e.scrollHeight <= e.clientHeight + 1")
        lines = page.eval_on_selector_all(".reading tbody bdi", "all => all.map(e => e.getClientRects()[0].height)")
        assert max(lines) < 60, "a word is broken"


def test_ids_of_a_page_are_its_own(opened: Opened, studied: Any) -> None:
    page = opened(studied[0])
    ids = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_picture_of_the_first_screen_is_on_it_and_only_once(opened: Opened, studied: Any) -> None:
    page = opened(studied[0])
    assert page.locator("svg.chart").count() == 1
    for part in ("h1", ".answer", ".warnings summary", "svg.chart", ".reading", "input[type=range]"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 900, part
    page.get_by_role("link", name="Chart at the top").click()
    assert page.url.endswith("#picture")


@pytest.fixture(scope="session")
def sectioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with many questions, some of them asked of several learners."""
    curves = curves_of("percent", {"oak": LAWS["oak"]})
    part = results_report(curves).sections[0]
    still = replace(part.figures[0], chart=None)
    sections = [replace(part, title=f"Which of {i} questions?", figures=(still,)) for i in range(3)]
    sections += [replace(part, title="How much?", label=name, figures=(still,)) for name in LAWS]
    sections += [Section(f"And number {i}?", (f"It is {i}.",)) for i in range(8)]
    report = Report("Many", "Which?", ("This one.",), figure=part.figures[0], sections=tuple(sections))
    return written(tmp_path_factory.mktemp("sectioned"), report)


BOXES = "all => all.map((e) => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"


def test_contents_fit_and_lead_to_every_section(opened: Opened, sectioned: Path) -> None:
    page = opened(sectioned)
    links = page.locator("nav a")
    wanted = ["Answer", *(f"Which of {i} questions?" for i in range(3)), "How much?", *LAWS]
    wanted += [*(f"And number {i}?" for i in range(8)), "Methods and settings"]
    assert links.all_text_contents() == wanted
    (main,) = page.eval_on_selector_all("main", BOXES)
    for left, top, right, bottom in page.eval_on_selector_all("nav a", BOXES):
        assert 0 <= left < right <= main[0]  # beside the text, and none cut off
        assert 0 <= top < bottom <= 900
    for i in (5, 9, 0):  # a learner, a question, the answer
        links.nth(i).click()
        page.wait_for_function("i => document.querySelectorAll('nav a')[i].ariaCurrent === 'true'", arg=i)
        assert page.locator("nav a[aria-current]").all_text_contents() == [wanted[i]]
    page.mouse.move(800, 400)
    page.mouse.wheel(0, 1800)  # and follow the reader
    page.wait_for_function("() => document.querySelectorAll('nav a')[0].ariaCurrent === null")
    first = page.locator("nav a[aria-current]").get_attribute("href")
    assert page.locator(first).bounding_box()["y"] <= 90


def test_contents_of_a_narrow_screen_unfold(opened: Opened, sectioned: Path) -> None:
    page = opened(sectioned, viewport={"width": 390, "height": 844})
    links = page.locator("nav a")
    assert not links.first.is_visible()
    page.locator("nav summary").click()
    assert all(link.is_visible() for link in links.all())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    links.nth(9).click()
    assert not links.first.is_visible()  # out of the way again
    top = page.locator("h2", has_text="And number 1?").bounding_box()["y"]
    bar = page.locator("header.bar").bounding_box()
    assert bar["y"] + bar["height"] <= top < 300


def test_text_and_figure_stand_side_by_side_where_there_is_room(opened: Opened, sectioned: Path) -> None:
    page = opened(sectioned, viewport={"width": 1600, "height": 900})
    part = "#section-1 .sided"
    (words,) = page.eval_on_selector_all(f"{part} .words", BOXES)
    (figure,) = page.eval_on_selector_all(f"{part} figure", BOXES)
    assert words[2] <= figure[0]
    assert abs(words[1] - figure[1]) < 20
    page.set_viewport_size({"width": 390, "height": 844})
    (words,) = page.eval_on_selector_all(f"{part} .words", BOXES)
    (figure,) = page.eval_on_selector_all(f"{part} figure", BOXES)
    assert words[3] <= figure[1]
    assert figure[2] <= 390


def test_a_narrow_screen_has_letters_that_can_be_read_and_headers_apart(opened: Opened, studied: Any) -> None:
    page = opened(studied[0], viewport={"width": 390, "height": 844})
    assert page.locator(".still:visible").count() > 0
    # Pictures are scrolled within their card; what a caption says is text below it.
    letters = """all => all.filter((e) => e.checkVisibility()).map((e) => {
        const turned = e.getScreenCTM?.() ?? { a: 1, b: 0 };
        return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(turned.a, turned.b); })"""
    assert min(page.eval_on_selector_all(".still:not([hidden]) svg text", letters)) >= 9
    assert min(page.eval_on_selector_all(".note", letters)) >= 13
    for left, _, right, _ in page.eval_on_selector_all(".still, .note", BOXES):
        assert 0 <= left <= right <= 390
    texts = """all => all.map((row) => [...row.children].filter((e) => e.checkVisibility()).map((e) => {
        const range = document.createRange(); range.selectNodeContents(e);
        const { left, right } = range.getBoundingClientRect(); return [left, right]; }))"""
    for row in page.eval_on_selector_all(".reading thead tr, .sortable thead tr", texts):
        assert all(after[0] - before[1] >= 9 for before, after in pairwise(row))
    command = page.locator(".command")
    assert command.evaluate("(e) => e.scrollWidth - e.clientWidth") == 0
    assert set(lines_of(page, ".command span")) == {1}  # no option is divided at its hyphens
    # Tables of five columns or fewer; more are scrolled.
    small = page.locator(".scroll:not(:has(th:nth-child(6)))")
    assert small.locator(".range").count() > 0
    assert small.evaluate_all("all => all.filter((e) => e.scrollWidth > e.clientWidth).length") == 0
    for left, _, right, _ in page.eval_on_selector_all(".scroll caption", BOXES):
        assert left >= 0
        assert right <= 390
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_paper_has_no_controls_and_every_warning(opened: Opened, studied: Any) -> None:
    page = opened(studied[0], color_scheme="dark")
    page.get_by_role("button", name="Switch to light colours").click()
    page.get_by_role("button", name="Switch to dark colours").click()
    page.eval_on_selector_all("details", "all => all.forEach((d) => d.removeAttribute('open'))")
    page.emulate_media(media="print")
    assert background(page) == "rgb(255, 255, 255)"
    seen = "all => all.map((e) => e.checkVisibility())"
    for part in ("header", "input", "fieldset", ".tip", "#runs-table", "footer"):
        assert not any(page.eval_on_selector_all(part, seen)), part
    for part in (".cover", ".paper", ".warnings li", "details p", "svg.chart", ".reading tr"):
        found = page.eval_on_selector_all(part, seen)
        assert found, part
        assert all(found), part
    heights = page.eval_on_selector_all(".warnings ul", "all => all.map((e) => e.scrollHeight - e.clientHeight)")
    assert max(heights) <= 1  # nothing to scroll
    assert page.pdf(format="A4")[:5] == b"%PDF-"
    assert "page 1 of" not in page.locator("body").inner_text()
    # A header, a heading and a caption stay on the page of what follows.
    for part in ("thead", "caption", "h2"):
        assert set(page.eval_on_selector_all(part, "all => all.map((e) => getComputedStyle(e).breakAfter)")) == {
            "avoid"
        }
    kept = "all => all.map((e) => getComputedStyle(e).breakInside)"
    assert set(page.eval_on_selector_all(".scroll:not(#runs-table *), tr", kept)) == {"avoid"}
    # Chromium leaves the box of a button blank in a header that is repeated.
    boxes = page.eval_on_selector_all("thead button", "all => all.map((e) => getComputedStyle(e).display)")
    assert set(boxes) == {"contents"}


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with a table of many columns."""
    columns = {"learner": ["augmented"], "note": ["two words"]}
    columns |= {f"quantity {i}": [0.012345 * (i + 1)] for i in range(14)}  # type: ignore[misc]
    table = ReportTable("wide", "Wide", columns)
    report = Report("Wide", "How wide?", ("So.",), sections=(Section("One", tables=(table,)),))
    return written(tmp_path_factory.mktemp("wide"), report)


def lines_of(page: Any, selector: str) -> list[int]:
    script = "all => all.map((e) => { const r = document.createRange(); r.selectNodeContents(e);"
    script += " return new Set([...r.getClientRects()].map((b) => Math.round(b.top))).size; })"
    return page.eval_on_selector_all(selector, script)


def test_no_word_is_broken_because_a_table_is_wide(opened: Opened, wide: Path) -> None:
    page = opened(wide)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert lines_of(page, "td:first-child bdi") == [1]
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_paper_has_every_column_and_no_number_in_pieces(opened: Opened, wide: Path) -> None:
    page = opened(wide, viewport={"width": 688, "height": 1000})  # of A4 between its margins
    page.emulate_media(media="print")
    table = page.locator(".sortable").bounding_box()
    assert table["x"] + table["width"] <= 688
    assert set(lines_of(page, "td.number bdi")) == {1}


def test_paper_begins_with_the_picture(opened: Opened, studied: Any) -> None:
    page = opened(studied[0], viewport={"width": 688, "height": 1000})
    page.emulate_media(media="print")
    kept = "(e) => getComputedStyle(e).breakInside"
    assert page.locator("#picture figure").evaluate(kept) == "auto"  # its legend may go on
    assert page.locator("#picture .picture").evaluate(kept) == "avoid"


@pytest.mark.parametrize("name", ["evil \u202e name", "שלום", "שלום עולם", "مصنف"])
def test_no_name_turns_numbers_around(opened: Opened, tmp_path: Path, name: str) -> None:
    text = f"Best is {name} 0.17 [0.15, 0.18], then oak."
    page = opened(written(tmp_path, Report("T", "Q?", (text,), warnings=(text,))))
    for selector in (".answer p", ".warnings li"):
        places = page.locator(selector).evaluate(
            """(e) => ["0.17", "[0.15", "0.18]", "then"].map((part) => {
                const walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
                while (walk.nextNode()) {
                    const at = walk.currentNode.data.indexOf(part);
                    if (at < 0) continue;
                    const range = document.createRange();
                    range.setStart(walk.currentNode, at);
                    range.setEnd(walk.currentNode, at + part.length);
                    return range.getBoundingClientRect().left;
                } })"""
        )
        assert places == sorted(places)
        assert len(set(places)) == 4


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    laws = {name: (5.0 + i, 100.0 + 9 * i) for i, name in enumerate(HOSTILE)}
    curves = curves_of("percent", laws)
    report = results_report({HOSTILE[0]: curves}, title=HOSTILE[1], question=HOSTILE[3])
    columns = {"learner": list(laws), "__proto__": HOSTILE, "constructor": list(range(len(laws)))}
    runs = Runs((HOSTILE[1],), columns, ())
    report = replace(report, runs=runs, warnings=tuple(HOSTILE))
    return written(tmp_path_factory.mktemp("hostile"), report)


@pytest.mark.parametrize("width", [1440, 390])
def test_names_are_shown_and_not_run(opened: Opened, hostile: Path, width: int) -> None:
    page = opened(hostile, viewport={"width": width, "height": 844})
    assert page.evaluate("window.ran") is None
    assert page.title() == HOSTILE[1]
    assert list(readings(page)) == HOSTILE
    assert column(page, ".sortable", 0) == HOSTILE
    assert column(page, "#runs-table", 0) == HOSTILE
    assert column(page, "#runs-table", 1) == HOSTILE
    plainly = [name.replace("\u202e", "") for name in HOSTILE]  # which would turn the rest around
    assert page.locator(".warnings li").all_text_contents()[: len(HOSTILE)] == plainly
    for i, name in enumerate(HOSTILE):
        button = page.locator(".legend tbody button").nth(i)
        button.click()
        page.mouse.move(1, 1)
        assert drawn_above(page) == [name]
        assert page.locator("#runs-table tr.chosen").count() == 1
        page.locator("svg.chart").focus()
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.documentElement.scrollWidth") == width
    heights = page.eval_on_selector_all("tbody tr", "all => all.map((r) => r.offsetHeight)")
    assert max(heights) < 200  # a long name does not fill the screen
    assert page.locator("body img").count() == 0
    assert page.evaluate("window.ran") is None


def test_many_learners_are_found_by_name(opened: Opened, tmp_path: Path) -> None:
    laws = {f"net {i}": (5.0 + i / 10, 120.0) for i in range(26)}
    page = opened(written(tmp_path, results_report(curves_of("percent", laws))))
    page.get_by_label("Find a learner").fill("net 2")
    shown = page.locator(".reading tbody tr:visible")
    assert shown.count() == 7
    kinds = page.eval_on_selector_all(
        ".curves .series",
        """all => all.map((g) => getComputedStyle(g.querySelector('.line')).stroke
            + getComputedStyle(g.querySelector('.line')).strokeDasharray)""",
    )
    assert len(set(kinds[:24])) == 24  # colours, then dashes


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_no_serious_fault_of_accessibility(opened: Opened, studied: Any, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = opened(studied[0], color_scheme=scheme, viewport={"width": width, "height": 844})
    page.eval_on_selector_all("details", "all => all.forEach((d) => d.setAttribute('open', ''))")
    found = axe.run(page).response["violations"]
    serious = [
        (v["id"], v["help"], [n["html"][:200] for n in v["nodes"][:3]])
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
