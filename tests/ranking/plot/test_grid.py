"""The picture of NLEEP's settings."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from curvewise.drawing.picture import draw
from curvewise.errors import InputError
from curvewise.ranking.agreement import NleepGrid

HOSTILE = "$x$_<b>\n" + "long " * 30


def grid(tasks=("pets", "cars"), seed=0):
    values = np.random.default_rng(seed).uniform(0.2, 0.8, (len(tasks), 5, 8))
    return NleepGrid((0.5, 0.6, 0.7, 0.8, 0.9), tuple(range(1, 9)), tasks, values, dict.fromkeys(tasks, values))


def cells(ax):
    return [t for t in ax.texts if t.get_gid() == "curvewise-cell"]


def test_cells_are_means_over_tasks_with_the_highest_energy_on_top():
    found = grid()
    ax = draw(found)
    wanted = found.kendall.mean(axis=0)[::-1]
    shown = np.array([float(t.get_text()) for t in cells(ax)]).reshape(5, 8)
    np.testing.assert_allclose(shown, wanted, atol=0.0051)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["90%", "80%", "70%", "60%", "50%"]
    assert [t.get_text() for t in ax.get_xticklabels()] == [f"{c}×" for c in range(1, 9)]
    bold = [i for i, t in enumerate(cells(ax)) if t.get_fontweight() == "bold"]
    assert bold == [int(np.argmax(wanted))]


def test_one_task():
    found = grid()
    ax = draw(found, task="cars")
    shown = np.array([float(t.get_text()) for t in cells(ax)]).reshape(5, 8)
    np.testing.assert_allclose(shown, found.kendall[1][::-1], atol=0.0051)
    with pytest.raises(InputError, match="task='dogs' is not known: use one of 'pets', 'cars'"):
        draw(found, task="dogs")


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.3, 2.6)])
def test_numbers_do_not_touch_in_axes_of_any_size(size):
    before = dict(mpl.rcParams)
    found = grid((HOSTILE,))
    found.kendall[0, 0, 0] = np.nan
    figure = Figure(figsize=size, layout="constrained")
    own = draw(found)
    for ax in (found.plot(ax=figure.add_subplot()), own):
        ax.figure.draw_without_rendering()
        boxes = [t.get_window_extent() for t in cells(ax)]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert sum(t.get_text() == "?" for t in cells(ax)) == 1
    assert dict(mpl.rcParams) == before
