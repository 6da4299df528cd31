"""Measures against the generalization gap, model by model (figures 6 to 9 of the paper)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.plot import response_parts as parts
from curvewise.plot.panels import new_panels, signed, write_below
from curvewise.plot.response_colours import MARKERS, Colours, choose_colours
from curvewise.plot.style import colour, new_axes, style
from curvewise.plot.text import clean, safe_text, shorten
from curvewise.plot.variance_axes import is_narrow, spans_decades
from curvewise.plot.variance_parts import finish, plain
from curvewise.response.cmi import cmi_score
from curvewise.response.judgement import Judged, MeasureJudgement
from curvewise.tables import number
from curvewise.types.corpus import ModelCorpus

MODELS = "curvewise-models"
DECADES = 100.0
"""A measure whose largest value is so many times its smallest is drawn on a log scale."""


def plot_measures(
    corpus: ModelCorpus,
    measures: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    *,
    task: str | None = None,
    colours: str | None = None,
    judgement: MeasureJudgement | None = None,
    least_train_accuracy: float | None = None,
    caption: bool | None = None,
) -> Axes:
    """Draw what measures say of models against their generalization gap, a panel for each task.

    Over each panel stand the number of models, the conditional mutual information (CMI) and
    Pearson's correlation. The CMI asks what a measure knows beyond the hyperparameters, so that
    it can be low where the points lie on a line, and the other way round.

    Parameters
    ----------
    corpus : ModelCorpus
        Models with hyperparameters, gaps and measures.
    measures : str or sequence of str, optional
        Which; the first six by default. Several measures become rows, and tasks columns.
    ax : Axes, optional
        Where, for one measure on one task; a new figure by default.
    task : str, optional
        Only this one.
    colours : str, optional
        The hyperparameter that colours tell; the one that tells most of the gap by default.
    judgement : MeasureJudgement, optional
        Of this corpus, to take the CMI from; computed here by default.
    least_train_accuracy : float, optional
        Leave out models with a lower training accuracy.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.
    """
    if not isinstance(corpus, ModelCorpus):
        raise InputError(
            f"corpus is a {type(corpus).__name__}: give the ModelCorpus that was judged, and the "
            "judgement as judgement=."
        )
    corpus = _trained(corpus, least_train_accuracy)
    names = _chosen(corpus, measures)
    tasks = _tasks(corpus, task)
    panels = [(name, where) for name in names for where in tasks]
    if ax is not None and len(panels) > 1:
        raise InputError(
            f"ax is one Axes, there are {len(names)} measure(s) and {len(tasks)} task(s): choose "
            "with measures= and task=, or leave ax out."
        )
    told = choose_colours(tasks, colours)
    lines = _caption(corpus, names, tasks)
    with style():
        own = ax is None
        axes = [ax] if ax is not None else _panels(len(names), len(tasks))
        for panel, (name, where) in zip(axes, panels, strict=True):
            judged = None if judgement is None else judgement.row(name, where)
            said = _panel(panel, tasks[where], name, told, judged, lines)
            title = "" if corpus.tasks is None else f"{safe_text(where, 36)}\n"
            panel.set_title(f"{title}{plain(said)}", loc="left", fontsize=9.0)
        _finish(axes, own, told, lines, caption)
    return axes[0]


def _trained(corpus: ModelCorpus, least: float | None) -> ModelCorpus:
    if least is None:
        return corpus
    if corpus.train_accuracy is None:
        raise InputError("least_train_accuracy: the corpus has no training accuracy; leave it out.")
    return corpus.select(corpus.train_accuracy >= least)


def _chosen(corpus: ModelCorpus, measures: str | Sequence[str] | None) -> list[str]:
    names = list(corpus.measures)
    if measures is None:
        return names[:6]
    wanted = [measures] if isinstance(measures, str) else list(measures)
    for name in wanted:
        if name not in corpus.measures:
            raise InputError(
                f"measures={name!r} is not in the corpus: use {', '.join(map(repr, names))}."
            )
    return wanted


def _tasks(corpus: ModelCorpus, task: str | None) -> dict[str, ModelCorpus]:
    every = corpus.by_task()
    if task is None:
        return every
    if task not in every:
        raise InputError(f"task={task!r} is not known: use {', '.join(map(repr, every))}.")
    return {task: every[task]}


def _known(corpus: ModelCorpus, name: str) -> NDArray[np.bool_]:
    return np.isfinite(corpus.measures[name]) & np.isfinite(corpus.gap)


def _panels(rows: int, tasks: int) -> list[Axes]:
    if rows * tasks == 1:
        return [new_axes(5.6, 4.6)]
    columns = tasks if rows > 1 else min(tasks, 3)
    height = 3.6 if columns >= rows * tasks else 3.0
    return new_panels(rows * tasks, columns if tasks > 1 else min(rows, 3), 3.3, height)


def _panel(
    ax: Axes,
    corpus: ModelCorpus,
    name: str,
    told: Colours | None,
    judged: Judged | None,
    lines: list[str],
) -> str:
    """One measure on one task, and what to say of it."""
    known = _known(corpus, name)
    if not known.any():
        ax.set_xlabel(safe_text(name, 28))
        return "no model has a number"
    here = corpus.select(known)
    _scatter(ax, here, name, told)
    return _scores(here, name, judged, lines)


def _scatter(ax: Axes, corpus: ModelCorpus, name: str, told: Colours | None) -> None:
    x, y = corpus.measures[name], 100 * corpus.gap
    look: dict[str, Any] = {"linewidths": 0.4, "edgecolors": "white", "zorder": 2.5}
    size = 26 if len(x) <= 120 else 14
    index = np.zeros(len(x), dtype=np.int64) if told is None else told.index(corpus)
    for i in np.unique(index):
        shade = colour(0) if told is None else told.shades[i]
        here = index == i
        marker = MARKERS[i % len(MARKERS)]
        dots = ax.scatter(x[here], y[here], s=size, color=shade, marker=marker, **look)
        dots.set_gid(MODELS)
    if spans_decades(x, DECADES):
        _log_axis(ax)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_xlabel(safe_text(name, 28 if is_narrow(ax) else 50))
    ax.set_ylabel("generalization gap (%)" if not is_narrow(ax) else "gap (%)")


def _log_axis(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(numticks=5))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _power(x)))


def _power(x: float) -> str:
    """Small powers of ten as numbers, others as powers."""
    return number(x) if 1e-3 <= x < 1e5 else f"$10^{{{round(math.log10(x))}}}$"


def _scores(corpus: ModelCorpus, name: str, judged: Judged | None, lines: list[str]) -> str:
    """n, CMI and r; what is to be said of the CMI is added to the lines."""
    x, y = corpus.measures[name], corpus.gap
    score = math.nan if judged is None else judged.cmi.estimate
    if judged is not None and judged.n != len(x):
        raise InputError(
            f"judgement has {judged.n} models with {name!r}, the corpus {len(x)}: give the corpus "
            "that was judged, or the same least_train_accuracy."
        )
    if judged is None and len(x) > 1:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", CurvewiseWarning)
            sign = corpus.orientation.get(name)
            score = cmi_score(x, y, corpus.hyperparameters, orientation=sign)
        said = [f"⚠ {w.message}" for w in heard if issubclass(w.category, CurvewiseWarning)]
        lines.extend(line for line in said if line not in lines)
    constant = len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0
    r = math.nan if constant else float(np.corrcoef(x, y)[0, 1])
    shown = parts.percent(score).replace("-", "−")
    return f"n = {len(x)}, CMI {shown}, r = {signed(r, 2)}"


def _finish(
    axes: Sequence[Axes], own: bool, told: Colours | None, lines: list[str], caption: bool | None
) -> None:
    key = [] if told is None else told.key()
    if len(axes) == 1:
        key = [(h, text.replace(r"\$", "$")) for h, text in key]
        finish(axes[0], own, key, lines, caption=caption, columns=4 if own else 1)
        box = axes[0].get_legend()
        if box is not None and told is not None:
            box.set_title(safe_text(told.name, 30), prop=FontProperties(size=8.5 if own else 7.5))
            box.set_alignment("left")
        return
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    if told is not None:
        box = figure.legend(
            [h for h, _ in key],
            [str(i) for i in range(len(key))],
            loc="outside upper left",
            ncols=len(key) if len(key) * 12 < 10 * figure.get_size_inches()[0] else 3,
            frameon=False,
            title=safe_text(told.name, 40),
            alignment="left",
            handlelength=1.0,
        )
        for artist, (_, text) in zip(box.get_texts(), key, strict=True):
            artist.set_text(text)
    if caption is not False:
        write_below(axes[0], lines)


def _caption(
    corpus: ModelCorpus, names: Sequence[str], tasks: Mapping[str, ModelCorpus]
) -> list[str]:
    falling = [shorten(clean(n), 30) for n in names if corpus.orientation.get(n, 1) < 0]
    lines = ["A dot is a model. CMI: what the measure tells of the gap beyond the hyperparameters."]
    if falling:
        lines.append(f"Higher should mean a smaller gap: {', '.join(falling[:6])}.")
    left_out = sum(int((~_known(c, name)).sum()) for c in tasks.values() for name in names)
    if left_out:
        lines.append(f"⚠ {left_out} dot(s) left out, where a gap or a measure is no number.")
    return lines
