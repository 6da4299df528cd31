"""Names from outside are drawn as text, whatever they hold."""

import matplotlib as mpl
import pytest

from curvewise.drawing.labels import clean, safe_names, safe_text, wrap_lines
from curvewise.learning import compare_learning_curves, plan_sizes, rank_learners
from curvewise.learning.plot import plot_learning_curves

HOSTILE = [
    "$x_1$",
    "100$",
    r"\$a$b$c",
    "$\\frac{",
    "_hidden",
    "<script>alert(1)</script>",
    "emoji 😀 👩‍🔬",
    "日本語",
    "two\nlines\tand a tab",
    "x" * 500,
    "e\u0301 \u202ertl \x00 \ud800",
    "",
    " ",
]


@pytest.mark.parametrize("names", [HOSTILE[i : i + 5] for i in range(0, len(HOSTILE), 5)])
def test_hostile_names_can_be_drawn_among_others(fit, names):
    curves = [fit(name, seed=i, n=[100, 200, 400]) for i, name in enumerate(names)]
    for ax in (plot_learning_curves(curves), rank_learners(curves).plot()):
        ax.figure.canvas.draw()  # missing glyphs and broken mathematics would warn or raise here
    ax = plot_learning_curves(curves)
    texts = [t.get_text().split("\n")[0] for t in ax.texts if t.get_gid() == "curvewise-end"]
    assert len(texts) == len(names)
    assert ["⚠" in t for t in texts] == [bool(curve.all_warnings) for curve in curves]


def test_a_hostile_name_can_be_drawn_everywhere(fit):
    curve, other = fit("$a_b$ 日😀\n$" + "x" * 300), fit("other", alpha=20.0, gamma=-0.4, seed=1)
    for result in (compare_learning_curves(curve, other), curve.samples_to_reach(16.0), plan_sizes(curve)):
        ax = result.plot()
        ax.figure.canvas.draw()
        shown = [t.get_text() for t in ax.figure.findobj(lambda a: hasattr(a, "get_text"))]
        assert not any("x" * 300 in text for text in shown)


def test_dollars_underscores_and_markup_are_shown_as_they_are(fit):
    ax = plot_learning_curves([fit("$x_1$"), fit("_hidden"), fit("<script>")])
    texts = [t.get_text().split("\n")[0] for t in ax.texts if t.get_gid() == "curvewise-end"]
    assert texts == [r"\$x_1\$", "_hidden", "<script>"]


def test_text_is_cleaned():
    assert clean("two\nlines\tand  more") == "two lines and more"
    assert clean("日本a") == "□□a"
    assert clean("a\u202eb\u200d") == "ab"
    assert clean("e\u0301") == "é"
    assert safe_text("a$b$") == r"a\$b\$"


def test_long_names_keep_both_ends():
    text = safe_text("begin" + "x" * 300 + "end")
    assert len(text) == 32
    assert text.startswith("begin")
    assert text.endswith("end")
    assert "…" in text


def test_sentences_are_shortened_between_words():
    # Words of 25 characters: 240 of them end inside one.
    text = " ".join(f"{k:025d}" for k in range(30))
    first, last = wrap_lines([text], 1000).replace("...", "…").split("…")
    assert set(first.split()) | set(last.split()) <= set(text.split())


def test_names_are_shortened_where_they_agree():
    names = [f"sklearn.discriminant_analysis.{k}DiscriminantAnalysis" for k in ("Linear", "Quadratic")]
    a, b = safe_names(names)
    assert a != b
    assert "LinearDiscriminantAnalysis" in a
    assert safe_names(["x" * 40, "x" * 41, "y"])[1].endswith("(2)")


def test_a_font_without_the_signs_gets_stand_ins():
    with mpl.rc_context({"font.family": ["cmr10"]}):
        assert clean("⚠ a − b") == "! a - b"
        assert clean("γ") == "?"


def test_captions_wrap_and_a_dollar_cannot_escape_by_a_break():
    text = wrap_lines(["a" * 15 + "$" * 30, "b c " * 20], 20)
    assert max(len(line.replace(r"\$", "$")) for line in text.split("\n")) <= 20
    assert text.count("$") == text.count(r"\$") == 30
