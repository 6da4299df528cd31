"""Results in a notebook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import curvewise as cw
from curvewise.report import page
from curvewise.report.content import Figure, ReportTable, Section
from curvewise.report.page import fragment_of

pytest.importorskip("jinja2")
pyplot = pytest.importorskip("matplotlib.pyplot")

ROOT = Path(__file__).parents[2]


def test_a_result_shows_its_picture_beside_its_numbers(curves):
    before = pyplot.get_fignums()
    shown = curves._repr_html_()
    assert '<th scope="col" style="text-align:left">learner</th><th scope="col">N</th>' in shown
    assert '<td style="text-align:left"><bdi>naive Bayes</bdi></td>' in shown
    assert shown.count("<svg ") == 1
    assert re.findall(r"<text[^>]*>([^<]*bagged trees[^<]*)</text>", shown)
    assert "<script" not in shown
    assert "<table>" in shown
    assert pyplot.get_fignums() == before  # or the notebook would show it twice


def test_pictures_of_one_notebook_keep_their_own_parts(curves):
    every = [curves._repr_html_(), curves["naive Bayes"]._repr_html_()]
    ids = [set(re.findall(r'\bid="([^"]+)"', shown)) for shown in every]
    assert min(map(len, ids)) > 10
    assert not ids[0] & ids[1]
    for own, shown in zip(ids, every, strict=True):
        assert set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", shown)) <= own


def section(draw) -> Section:
    table = ReportTable("t", "Numbers", {"value": [1]})
    return Section("One", ("Said.",), figures=(Figure("f", '"><b>', draw),), tables=(table,))


def test_numbers_stand_where_no_picture_can_be_drawn():
    def draw():
        raise cw.InputError("nothing to draw")

    shown = fragment_of(section(draw))
    assert "<svg" not in shown
    assert "Said." in shown
    assert "<td><bdi>1</bdi></td>" in shown


def test_a_large_picture_is_not_kept(monkeypatch):
    def draw():
        return pyplot.subplots()[1]

    whole = fragment_of(section(draw))
    assert "<svg" in whole
    assert "<b>" not in whole
    monkeypatch.setattr(page, "MOST_SVG", 100)
    assert "<svg" not in fragment_of(section(draw))
    assert "The picture is large" in fragment_of(section(draw))
