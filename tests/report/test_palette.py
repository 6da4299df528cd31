"""The colours of curves can be told from the page and from each other, by everyone."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from curvewise.drawing.style import PALETTE, word_shade
from curvewise.report.page import follow_theme

CONTRAST = 3.0  # of graphics against the page: WCAG 2.2, success criterion 1.4.11
READABLE = 4.5  # of text against the page: 1.4.3
APART = 25.0  # CIELAB distance of any two colours; about 2.3 can just be noticed side by side

# What eyes without one kind of cones see, in linear RGB: Machado, Oliveira and Fernandes (2009),
# A physiologically-based model for simulation of color vision deficiency, severity 1.
EYES = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def palette(theme: str) -> dict[str, np.ndarray]:
    """The named colours of a theme in linear RGB."""
    style = (files("curvewise.report") / "assets" / "report.css").read_text(encoding="utf-8")
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    return {name: linear(light if theme == "light" else dark) for name, light, dark in pairs}


def series(theme: str) -> list[np.ndarray]:
    return [colour for name, colour in palette(theme).items() if name.startswith("series-")]


def linear(colour: str) -> np.ndarray:
    share = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def contrast(a: np.ndarray, b: np.ndarray) -> float:
    bright, dim = sorted((float(XYZ[1] @ c) + 0.05 for c in (a, b)), reverse=True)
    return bright / dim


def lab(colour: np.ndarray) -> np.ndarray:
    share = XYZ @ np.clip(colour, 0, 1) / (XYZ @ np.ones(3))
    x, y, z = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_measures_agree_with_published_values() -> None:
    assert contrast(linear("#000000"), linear("#ffffff")) == pytest.approx(21)
    assert contrast(linear("#777777"), linear("#ffffff")) == pytest.approx(4.48, abs=0.01)  # WebAIM
    np.testing.assert_allclose(lab(linear("#ff0000")), [53.24, 80.09, 67.20], atol=0.02)
    np.testing.assert_allclose(lab(linear("#0000ff")), [32.30, 79.19, -107.86], atol=0.02)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_curves_are_seen_against_the_page(theme: str) -> None:
    colours = palette(theme)
    assert len(series(theme)) == 8
    for colour in series(theme):
        assert contrast(colour, colours["paper"]) >= CONTRAST
    for text, page in [("ink", "paper"), ("faint", "paper"), ("accent", "paper"), ("ink", "soft")]:
        assert contrast(colours[text], colours[page]) >= READABLE
    assert contrast(colours["warn-ink"], colours["warn"]) >= READABLE


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_at_curves_can_be_read(theme: str) -> None:
    style = (files("curvewise.report") / "assets" / "report.css").read_text(encoding="utf-8")
    (share,) = re.findall(r"at-line \{ fill: color-mix\(in srgb, var\(--colour\) (\d+)%, var\(--ink\)\)", style)
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    shade = {name: light if theme == "light" else dark for name, light, dark in pairs}
    part, ink = int(share) / 100, np.array(to_rgb(shade["ink"]))
    for i in range(len(PALETTE)):
        word = to_hex(part * np.array(to_rgb(shade[f"series-{i}"])) + (1 - part) * ink)
        assert contrast(linear(word), linear(shade["paper"])) >= READABLE


def test_names_in_still_pictures_can_be_read_and_follow_the_page() -> None:
    for i, shade in enumerate(PALETTE):
        word = word_shade(shade)
        assert contrast(linear(word), linear("#ffffff")) >= READABLE
        assert f"color-mix(in srgb, var(--series-{i}" in follow_theme(f'<text style="fill: {word}">')


def test_still_pictures_have_the_colours_of_the_page() -> None:
    style = (files("curvewise.report") / "assets" / "report.css").read_text(encoding="utf-8")
    assert tuple(re.findall(r"--series-\d: light-dark\((#\w{6})", style)) == PALETTE


@pytest.mark.parametrize("eyes", list(EYES))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_any_two_curves_are_told_apart(theme: str, eyes: str) -> None:
    seen = [lab(EYES[eyes] @ colour) for colour in series(theme)]
    for (i, a), (j, b) in combinations(enumerate(seen), 2):
        assert np.linalg.norm(a - b) >= APART, f"series {i} and {j}"
