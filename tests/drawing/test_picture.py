"""The way from a result to its picture."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import numpy as np
import pytest
from matplotlib import pyplot as plt

import curvewise
from curvewise.drawing.marks import finish
from curvewise.drawing.picture import PICTURES, draw, picture_of, svg_text
from curvewise.drawing.rows import rows_of
from curvewise.drawing.style import PALETTE, about, make_legend, new_axes, one_document, subject_colour
from curvewise.errors import InputError
from curvewise.learning import compare_learning_curves
from curvewise.types.results import Result

LENSES = ("learning", "variance", "response", "transfer", "ranking", "evals", "scaling")


def result_classes():
    """Concrete and abstract results of the mathematics of every lens, by name."""
    for lens in LENSES:
        package = import_module(f"curvewise.{lens}")
        for module in pkgutil.iter_modules(package.__path__):
            if not module.ispkg and module.name not in ("commands", "plot"):
                import_module(f"curvewise.{lens}.{module.name}")
    found, queue = {}, [Result]
    while queue:
        kind = queue.pop()
        queue += kind.__subclasses__()
        found[kind.__name__] = kind
    return found


def test_every_entry_names_a_result_and_a_function_of_its_lens():
    kinds = result_classes()
    for name, place in PICTURES.items():
        if name == "Measurements":  # no result of a lens, but they can be drawn
            continue
        lens = kinds[name].__module__.split(".")[1]
        assert place.startswith(f"curvewise.{lens}.plot"), name
        assert callable(picture_of(kinds[name])), name


def test_a_result_of_elsewhere_has_no_picture_by_its_name_alone():
    stranger = type("Stability", (), {"__module__": "elsewhere"})
    assert picture_of(stranger) is None
    with pytest.raises(InputError, match="has no picture"):
        draw(stranger())


def test_a_picture_loads_only_its_own_lens(start):
    code = (
        "import sys, curvewise as cw\n"
        "cw.fit_learning_curve([10, 20, 40, 80] * 2, [.5, .4, .32, .27, .51, .41, .31, .26]).plot()\n"
        "print([m for m in sys.modules if m.startswith('curvewise.') and m.split('.')[1] in "
        "('variance', 'response', 'transfer', 'ranking', 'nn', 'study')])"
    )
    done = start("-W", "ignore", "-c", code, python=True)
    assert done.out.strip() == "[]", done.err


def test_the_package_draws(fit):
    assert curvewise.drawing.draw(fit()).has_data()


def test_a_picture_about_a_learner_has_its_colour_and_does_not_repeat_the_text_beside_it(fit):
    result = compare_learning_curves(fit("a"), fit("b", alpha=30.0))
    alone = caption(result.plot())
    assert result.sentences()[:40] in alone
    with one_document({"x": 0, "cnn": 1}), about("cnn, n=400", result.sentences()):
        assert subject_colour() == PALETTE[1]
        beside = caption(result.plot())
    assert result.sentences()[:40] not in beside
    assert "Shaded: 95%" in beside
    assert subject_colour() == PALETTE[0]


def test_a_caption_can_be_text_beside_the_picture(fit):
    note = []
    beside = svg_text(fit().plot, note)
    assert note[0].startswith("Shaded: 95%")
    assert note[0][:12] not in beside
    assert note[0][:12] in svg_text(fit().plot)


def test_a_legend_is_no_wider_than_its_figure():
    ax = new_axes(width=6.0)
    lines = ax.plot([0, 1], np.tile([0.0, 1.0], (3, 1)).T)
    texts = ["may be the best", "significantly worse than another", "not significantly different"]
    legend = make_legend(ax, lines, texts, outside=True, columns=3)
    ax.figure.draw_without_rendering()
    assert legend.get_window_extent().width <= 6.0 * ax.figure.dpi
    assert make_legend(ax, lines, ["a", "b", "c"], outside=True, columns=3)._ncols == 3


def test_a_legend_beside_long_names_ends_in_its_figure():
    ax = new_axes(width=6.0)
    indent = rows_of(ax, ["a name of thirty-two characters"])
    lines = ax.plot([0, 1], np.tile([0.0, 1.0], (3, 1)).T)
    key = list(zip(lines, ["average", "a task with a long name", "hyperparameters alone"], strict=True))
    finish(ax, True, key, [], columns=4, indent=indent)
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x1 <= 6.0 * ax.figure.dpi


def test_a_legend_that_is_wider_than_its_axes_does_not_shrink_them():
    widths = []
    for text in ("a", "a long name " * 5):
        figure, axes = plt.subplots(1, 3, figsize=(7, 2), layout="constrained")
        finish(axes[0], False, [(axes[0].plot([0, 1])[0], text)], [])
        figure.draw_without_rendering()
        widths.append(axes[0].get_position().width)
    assert widths[1] == pytest.approx(widths[0])


def caption(ax):
    (text,) = [t.get_text() for t in ax.texts if t.get_gid() == "curvewise-caption"]
    return " ".join(text.split())


def test_a_saved_figure_leaves_the_interactive_mode_of_a_notebook() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")

    def axes() -> object:
        plt.ion()  # as a notebook does when its first figure is made
        return plt.subplots()[1]

    try:
        assert "<svg" in svg_text(axes)  # a result that shows itself draws like this
        assert plt.isinteractive()  # or the next plot() would show nothing
    finally:
        plt.ioff()
