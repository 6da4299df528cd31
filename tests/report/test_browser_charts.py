"""Charts of every question in a real browser: what they show is what the results say."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.response.curve import ResponseCurve
from curvewise.text import format_interval

pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).parents[2]
Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """A result of each question that has a chart, and a comparison, which is a still picture."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        curves = cw.fit_learning_curves(cw.load_measurements(ROOT / "examples" / "errors.csv"))
        labels = np.arange(120) % 3
        pool = {f"net {k}": labels[:, None] + rng.normal(0, k, (120, 4)) for k in (1, 2, 4, 8)}
        counts = ResponseCurve.from_counts([0, 10, 20, 40], [97, 90, 71, 30], 100, model="naive Bayes", unit="degrees")
        return {
            "curves": curves,
            "compared": cw.compare_learning_curves(*reversed(list(curves))),
            "response": counts,
            "seeds": cw.decompose_variance(cw.load_predictions(ROOT / "examples" / "units64.npz")),
            "transfer": cw.measure_transfer(cw.load_risks(ROOT / "examples" / "transfer" / "risks.csv")),
            "ranking": cw.ranking.rank_features(pool, labels, "knn", k=2, resamples=0, reliability=0.8),
        }


@pytest.fixture(scope="module")
def page_of_all(results: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cw.write_report(results, tmp_path_factory.mktemp("all") / "report.html")


def chart(page: Any, title: str) -> Any:
    """The chart whose picture has this title."""
    return page.locator(".alive").filter(has=page.locator(f'svg.chart[aria-label^="{title}"]'))


def cells(place: Any) -> dict[str, list[str]]:
    rows = place.locator(".reading tbody tr").evaluate_all(
        "all => all.map((r) => [r.dataset.learner, [...r.querySelectorAll('td')].map((c) => c.textContent.trim())])"
    )
    return {name: [" ".join(text.split()) for text in texts] for name, texts in rows}


def test_response_is_read_off_at_any_magnitude(opened: Opened, results: dict[str, Any], page_of_all: Path) -> None:
    curve = results["response"]
    place = chart(opened(page_of_all), "Accuracy against the magnitude")
    field, slider = place.locator("input[type=number]"), place.locator("input[type=range]")
    low, high = curve.accuracy_interval()
    for i, magnitude in enumerate(curve.magnitude):
        field.fill(str(magnitude))
        accuracy, lost = cells(place)["naive Bayes"]
        assert accuracy == format_interval((100 * curve.accuracy[i], 100 * low[i], 100 * high[i]))
        assert float(lost) == pytest.approx(97 - 100 * curve.accuracy[i])
    field.fill("30")
    assert float(cells(place)["naive Bayes"][0].split()[0]) == pytest.approx(50.5, abs=0.51)  # half way from 71 to 30
    slider.focus()
    slider.press("End")
    assert slider.get_attribute("aria-valuetext") == "magnitude = 40"
    slider.press("ArrowLeft")
    assert 39.9 < float(field.input_value()) < 40
    svg = place.locator("svg.chart")
    svg.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        svg.press(key)
    said = format_interval((71.0, 100 * low[2], 100 * high[2]), "percent")
    assert place.locator(".tip").text_content() == f"naive Bayes, magnitude = 20, 71 of 100 right: {said}"


def test_the_mean_of_seeds_narrows_with_their_number(
    opened: Opened, results: dict[str, Any], page_of_all: Path
) -> None:
    found = results["seeds"]
    place = chart(opened(page_of_all), "Mean error by number of seeds")
    slider = place.locator("input[type=range]")
    for seeds in (1, 10, 40):
        place.locator("input[type=number]").fill(str(seeds))
        shown = cells(place)
        for name, std in {"this test set": found.test_set_interval, "new data": found.distribution_interval}.items():
            ends = [100 * v / np.sqrt(seeds) for v in (std.estimate, std.low, std.high)]
            mean = 100 * float(found.run_errors.mean())
            assert shown[name][1] == format_interval(tuple(ends))
            # By the upper limit: an estimate of 0 would let means of a few seeds look certain.
            assert shown[name][0] == format_interval((mean, max(0, mean - 1.96 * ends[2]), mean + 1.96 * ends[2]))
    slider.focus()
    slider.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "seeds = 41"
    assert place.locator(".still").is_visible(), "the distribution of the runs stays"


@pytest.mark.parametrize("low", [0.12, 0.1])
def test_a_scale_of_values_has_three_ticks_or_more(opened: Opened, tmp_path: Path, low: float) -> None:
    runs = {"method": ["scratch", "scratch", "new", "new"], "n": [10, 1000] * 2, "risk": [1.04, 0.3, 0.8, low]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        found = cw.measure_transfer(runs, blind=1.0, maximal=0.0)
    page = opened(cw.write_report(found, tmp_path / "report.html"), viewport={"width": 1280, "height": 900})
    page.wait_for_selector(".grid text")
    ticks = page.locator(".grid text[text-anchor=end]").all_text_contents()
    assert len(ticks) >= 3
    assert ticks == sorted(ticks, key=float)


def test_a_scale_of_sizes_has_two_ticks_or_more(opened: Opened, tmp_path: Path) -> None:
    runs = {"method": ["scratch", "scratch", "new", "new"], "n": [300, 450] * 2, "risk": [0.5, 0.4, 0.4, 0.3]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        found = cw.measure_transfer(runs, blind=1.0, maximal=0.0)
    page = opened(cw.write_report(found, tmp_path / "report.html"))
    page.wait_for_selector(".grid text")
    ticks = page.locator(".grid text[text-anchor=middle]:not(.name)").all_text_contents()
    assert sorted(ticks) == ["300", "350", "400", "450"]


@pytest.mark.parametrize("width", [390, 1440])
def test_long_numbers_of_the_axes_do_not_touch(opened: Opened, tmp_path: Path, width: int) -> None:
    n = np.repeat([0.5e6, 1e6, 2e6, 4e6], 3)
    loss = 2e7 * n**-0.5 + 500 * np.random.default_rng(0).standard_normal(len(n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        curve = cw.fit_learning_curve(n, loss, unit="loss")
    page = opened(cw.write_report(curve, tmp_path / "report.html"), viewport={"width": width, "height": 900})
    sides = "(({ left, right, top, bottom }) => [left, right, top, bottom])(t.getBoundingClientRect())"
    boxes = f"all => all.map((t) => [t.textContent, ...{sides}])"
    for scale in ("log", "linear", "root"):
        page.locator(f"input[value={scale}]").check()
        found = page.locator(".grid text:not(.at-line)").evaluate_all(boxes)
        assert len(found) > 6
        for i, (text, left, right, top, bottom) in enumerate(found):
            for other, *box in found[:i]:
                assert left >= box[1] or right <= box[0] or top >= box[3] or bottom <= box[2], (scale, text, other)


def test_transfer_is_read_off_at_any_size(opened: Opened, results: dict[str, Any], page_of_all: Path) -> None:
    found = results["transfer"]
    page = opened(page_of_all)
    for task in found.tasks:
        place = chart(page, f"Calibrated risk against number of training samples, {task}")
        curves = {c.method: c for c in found.curves if c.task == task}
        n = curves["scratch"].n
        place.locator("input[type=number]").fill(f"{n[1]:g}")
        for method, texts in cells(place).items():
            c = curves[method]
            assert texts[0] == format_interval((c.calibrated[1], c.low[1], c.high[1]))
            if method == "scratch":
                assert texts[1] == "–"
                continue
            gain = found.improvement(task, method)
            assert texts[1] == format_interval((gain.gain[1], gain.gain_low[1], gain.gain_high[1]))
        between = float(np.sqrt(n[1] * n[2]))  # half way on a log scale
        place.locator("input[type=number]").fill(repr(between))
        value = float(cells(place)["scratch"][0].split()[0])
        assert value == pytest.approx(curves["scratch"].calibrated[1:3].mean(), abs=0.01)


def test_checkpoints_to_try_are_named_with_their_chance(
    opened: Opened, results: dict[str, Any], page_of_all: Path
) -> None:
    found = results["ranking"]
    place = chart(opened(page_of_all), "Chance that the best checkpoint")
    slider = place.locator("input[type=range]")
    slider.focus()
    slider.press("Home")
    for k in range(1, 5):
        share = 100 * min(1.0, float(found.chance_best[:k].sum()))
        assert float(cells(place)["fine-tunes best"][0]) == pytest.approx(share, rel=0.006)
        said = place.locator(".panel > .hint").text_content()
        assert said.startswith(f"Try {found.checkpoints[0]}")
        assert all(name in said for name in found.checkpoints[:k])
        assert slider.get_attribute("aria-valuetext") == f"k = {k}"
        slider.press("ArrowRight")


LOOK = """(e) => { const s = getComputedStyle(e); return s.stroke; }"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_learner_has_one_colour_alive_and_still(opened: Opened, page_of_all: Path, scheme: str) -> None:
    page = opened(page_of_all, color_scheme=scheme)
    alive = {
        name: page.locator(f'.curves .series[data-learner="{name}"] .line:not(.outside)').first.evaluate(LOOK)
        for name in ("bagged trees", "naive Bayes")
    }
    assert len(set(alive.values())) == 2
    # The comparison names them the other way round: by its order alone the colours would be swapped.
    still = page.locator('figure:not(:has(.alive)) g[id*="curvewise-named-curve"] path')
    assert [still.nth(i).evaluate(LOOK) for i in range(2)] == [alive["naive Bayes"], alive["bagged trees"]]
    response = chart(page, "Accuracy against").locator(".curves .line").first
    assert response.evaluate(LOOK) == alive["naive Bayes"], "also under another question"
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert page.locator(".still").first.evaluate("(e) => getComputedStyle(e).backgroundColor") == paper


def test_lines_are_smooth_named_and_dashed_where_extrapolated(
    opened: Opened, results: dict[str, Any], page_of_all: Path
) -> None:
    page = opened(page_of_all)
    place = chart(page, "Error against number of training samples")
    for curve in results["curves"]:
        group = place.locator(f'.curves .series[data-learner="{curve.learner}"]')
        inside, outside = (group.locator(part).get_attribute("d") for part in (".line:not(.outside)", ".outside"))
        assert inside.count("L") + outside.count("L") > 100
        end = re.findall(r"[\d.]+,[\d.]+", inside)[-1]
        assert re.findall(r"[\d.]+,[\d.]+", outside)[0] == end, "dashes begin where the solid line ends"
        assert place.locator(".at-line", has_text=curve.learner).count() == 1
        dashes = group.locator(".outside").evaluate("(e) => getComputedStyle(e).strokeDasharray")
        assert dashes != "none"
    assert place.locator(".grid text.name").first.text_content() == "number of training samples"
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.querySelectorAll('.at-line').length === 0")  # the legend has the names
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    over = page.eval_on_selector_all(".picture, .panel", "all => all.map((e) => e.scrollWidth - e.clientWidth)")
    assert max(over) <= 0


def test_no_fault_of_accessibility(opened: Opened, page_of_all: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(opened(page_of_all, color_scheme="dark")).response["violations"]
    assert [(v["id"], [n["html"][:200] for n in v["nodes"][:3]]) for v in found if v["impact"] != "minor"] == []
