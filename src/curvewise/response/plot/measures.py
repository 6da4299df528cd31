"""Pictures of measures of generalization: judgements, measures against the gap, and conditional information."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from curvewise.drawing.axes import is_narrow, spans_decades, view
from curvewise.drawing.labels import clean, safe_names, safe_text, shorten
from curvewise.drawing.marks import (
    choose,
    choose_some,
    draw_estimates,
    ends_of,
    finish,
    key_dot,
    mark_value,
    note,
    plain,
    warned,
    zero_line,
)
from curvewise.drawing.panels import legend_above, new_panels, signed, write_below
from curvewise.drawing.rows import DIFFERENCE, draw_cells, draw_rows, rows_of, rows_shown
from curvewise.drawing.style import NEUTRAL, OWN, canvas, colour, new_axes, style
from curvewise.errors import CurvewiseWarning, InputError, arg
from curvewise.response.cmi import ConditionalInformation, cmi_score
from curvewise.response.judgement import HUNDREDFOLD, MeasureComparison, MeasureJudgement, MeasureScores, well_trained
from curvewise.response.load import ModelCorpus
from curvewise.response.plot.curves import percent
from curvewise.text import format_count, format_level, format_number, format_pvalue
from curvewise.types.results import FloatArray, Interval

SCORE, NULL, TASK = "curvewise-score", "curvewise-null", "curvewise-task"
MODELS, SET = "curvewise-models", "curvewise-set"
"""Group ids of artists."""

# Tasks up to which each has dots with intervals; of more, the mean has a dot among small ones.
FEW_TASKS = 4
# A measure whose largest value is so many times its smallest is drawn on a log scale.
DECADES = 100.0
# Sets of hyperparameters shown of many.
LEAST = 25
# Values of a hyperparameter that get a colour of their own: more cannot be distinguished.
MOST_VALUES = 10
TASK_MARKERS = "sD^v"
MODEL_MARKERS = "osD^vPX*<>"
LABELS = {
    "cmi": "CMI (%)",
    "pgdl": "CMI as the competition computes it (%)",
    "kendall": "Kendall's τ",
    "granulated": "granulated Kendall's τ",
    "pearson": "Pearson's r",
    "spearman": "Spearman's ρ",
}
"""Scores that can be drawn, with their axis labels."""

_BESIDE: dict[str, Any] = {"textcoords": "offset points", "va": "center", "color": "#6E6E6E"}


@dataclass(frozen=True, eq=False)
class _ScoreTable:
    """A score by measure (rows, the best first) and task (columns); NaN is unknown.

    With several tasks the last column is their average.
    """

    measures: list[str]
    tasks: list[str]
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    null: FloatArray
    # Decides which is the best: the size of a correlation where a measure has no declared direction.
    strength: FloatArray

    @property
    def several(self) -> int:
        """Number of tasks beside their average; 0 where there is one only."""
        return len(self.tasks) - 1


def plot_judgement(
    result: MeasureJudgement,
    ax: Axes | None = None,
    *,
    kind: str = "dots",
    score: str = "cmi",
    most: int | None = None,
    legend: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw how well measures predict the gap, the best on top.

    Parameters
    ----------
    result : MeasureJudgement
        What to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    kind : {"dots", "heat"}
        Scores with their intervals and what chance gives; or measures × tasks as a table in
        colours, the best of each task in bold.
    score : {"cmi", "pgdl", "kendall", "granulated", "pearson", "spearman"}
        Which; only the first has intervals.
    most : int, optional
        Only so many of the best measures; all by default, as many as fit on ``ax``.
    legend : bool
        Draw a legend.
    caption : bool, optional
        Write under the picture what is shown; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    choose("kind", kind, ("dots", "heat"))
    choose("score", score, tuple(LABELS))
    table = _table(result, score, rows_shown(ax, most, len(result.measures)))
    rows, columns = table.estimate.shape
    each = 0.1 + 0.13 * columns if 0 < table.several <= FEW_TASKS else 0.26
    height, width = (1.9 + each * rows, 7.0) if kind == "dots" else (1.9 + 0.27 * rows, 3.2 + 0.75 * columns)
    with canvas(ax, height, width) as (ax, own):
        names = safe_names(table.measures, 16 if is_narrow(ax) else 30)
        key = (_dots if kind == "dots" else _heat)(ax, table, names, score)
        if is_narrow(ax) and len(LABELS[score]) > 20:
            ax.set_xlabel(f"{score} (%)")
        lines = _judgement_caption(result, table, kind, score)
        options: dict[str, Any] = {"legend": legend, "caption": caption, "indent": max(map(len, names)) / 14}
        finish(ax, own, key, lines, columns=4 if own else 2, loc=None if own else "lower left", **options)
    return ax


def _table(result: MeasureJudgement, score: str, most: int) -> _ScoreTable:
    """Arrange scores, in percent where the competition does so, the best measures on top."""
    scale = 100.0 if score in HUNDREDFOLD else 1.0
    tasks = result.shown_tasks
    rows = [[result.row(name, task) for task in tasks] for name in result.measures]
    estimate = scale * np.array([[r.value(score) for r in row] for row in rows])
    ends = [[(r.cmi.low, r.cmi.high, r.null_mean) for r in row] for row in rows]
    spans = scale * np.array(ends) if score == "cmi" else np.full((*estimate.shape, 3), np.nan)
    strength = np.array([[r.strength(score) for r in row] for row in rows])
    last = np.where(np.isnan(strength[:, -1]), -np.inf, strength[:, -1])
    order = np.argsort(-last, kind="stable")[:most]
    low, high, null = np.moveaxis(spans[order], -1, 0)
    measures = [result.measures[i] for i in order]
    return _ScoreTable(measures, list(tasks), estimate[order], low, high, null, strength[order])


def _dots(ax: Axes, table: _ScoreTable, names: Sequence[str], score: str) -> list[tuple[Any, str]]:
    """Draw a row for each measure; tasks side by side in it, or small around their average."""
    zero_line(ax)
    limits = view(table.estimate, table.low, table.high, 0.0)
    few = table.several <= FEW_TASKS
    key = []
    shown = [table.several, *range(table.several if few else 0)]
    if not few:
        for column in table.estimate[:, :-1].T:
            look: dict[str, Any] = {"color": NEUTRAL, "ms": 3.0, "mew": 0.0, "label": "_score"}
            ax.plot(column, np.arange(float(len(names))), "o", gid=TASK, **look)
    for place, j in enumerate(shown):
        average = j == table.several
        shade, marker = (colour(0), "o") if average else (colour(j + 1), TASK_MARKERS[j % len(TASK_MARKERS)])
        at: FloatArray = np.arange(float(len(names))) + 0.66 * ((place + 0.5) / len(shown) - 0.5)
        ticks: dict[str, Any] = {"ms": 11.0 if len(shown) == 1 else 5.5, "mew": 1.1, "zorder": 1.9}
        ax.plot(table.null[:, j], at, "|", color="black", gid=NULL, label="_null", **ticks)
        ends = (table.estimate[:, j], table.low[:, j], table.high[:, j])
        dot: dict[str, Any] = {"marker": marker, "size": 5.5 if average else 4.0, "width": 1.3, "gid": SCORE}
        draw_estimates(ax, at, ends, shade, limits=limits, **dot)
        name = "average" if average else safe_names(table.tasks, 26)[j]
        key.append((key_dot(shade, marker), name.replace(r"\$", "$")))
    if not few:
        key.append((key_dot(NEUTRAL, size=3.0), "a task"))
    if np.isfinite(table.null).any():
        key.append((key_dot("black", "|", 9), "hyperparameters alone"))
    key = key if table.several else key[1:]
    rows_of(ax, names, room=ax.get_gid() != OWN and bool(key))
    for i in np.flatnonzero(np.isnan(table.estimate).all(axis=1)):
        note(ax, "unknown", (0.0, float(i)), xytext=(4, 0), **_BESIDE)
    ax.set_xlim(*limits)
    ax.set_xlabel(LABELS[score])
    return key


def _heat(ax: Axes, table: _ScoreTable, names: Sequence[str], score: str) -> list[tuple[Any, str]]:
    """Draw cells with numbers, the average as a column of its own."""
    values = table.estimate
    # Of each column; none where none is known.
    best = table.strength >= np.where(np.isnan(values), -np.inf, table.strength).max(axis=0) - 1e-9
    columns = safe_names(table.tasks, 10 if is_narrow(ax) else 16)
    if table.several:
        columns[-1] = "average"
    decimals = 1 if score in HUNDREDFOLD else 2
    draw_cells(ax, values, names, columns, best=best, apart=bool(table.several), decimals=decimals)
    ax.set_xlabel(LABELS[score])
    return []


def _judgement_caption(result: MeasureJudgement, table: _ScoreTable, kind: str, score: str) -> list[str]:
    said = f"{result.models:,} models."
    if kind == "heat":
        said += " Bold: the best of a column."
    elif score == "cmi":
        said += f" Bars: {format_level(result.level)} intervals."
        if np.isfinite(table.null).any():
            said += " Ticks: the mean score with what hyperparameters leave of the gap dealt anew."
    left = len(result.measures) - len(table.measures)
    few = [f"The best {len(table.measures)} of {len(result.measures)} measures."] if left else []
    return [said, *few, *warned(result)]


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
        Axes to draw on, for one measure on one task; a new figure by default.
    task : str, optional
        Only this one.
    colours : str, optional
        The hyperparameter that colours tell; the one that tells most of the gap by default.
    judgement : MeasureJudgement, optional
        Of this corpus, to take the CMI from; computed here by default.
    least_train_accuracy : float, optional
        Leave out models with a lower training accuracy.
    caption : bool, optional
        Write under the picture what is shown; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or those of the first panel.
    """
    if not isinstance(corpus, ModelCorpus):
        problem = f"is a {type(corpus).__name__}: give the ModelCorpus that was judged, and the judgement as "
        raise InputError(f"{problem}{arg('judgement')}.", argument="corpus")
    corpus, _ = well_trained(corpus, least_train_accuracy)
    known, tasks = list(corpus.measures), corpus.by_task()
    names = known[:6] if measures is None else list(choose_some("measures", measures, known))
    if task is not None:
        tasks = {task: tasks[choose("task", task, tuple(tasks))]}
    panels = [(name, where) for name in names for where in tasks]
    if ax is not None and len(panels) > 1:
        raise InputError(
            f"ax is one Axes, there are {len(names)} measure(s) and {len(tasks)} task(s): choose with "
            f"{arg('measures')} and {arg('task')}, or leave ax out."
        )
    palette = choose_colours(tasks, colours)
    lines = _scatter_caption(corpus, names, tasks)
    with style():
        own = ax is None
        if ax is None and len(panels) > 1:
            across = len(tasks) if len(tasks) > 1 and len(names) > 1 else min(len(panels), 3)
            axes = new_panels(len(panels), across, 3.3, 3.6 if len(names) == 1 and across == len(panels) else 3.0)
        else:
            axes = [ax or new_axes(5.6, 4.6)]
        for panel, (name, where) in zip(axes, panels, strict=True):
            judged = None if judgement is None else judgement.row(name, where)
            measured = _known(tasks[where], name)
            said = "no model has a number"
            panel.set_xlabel(safe_text(name, 28))
            if measured.any():
                here = tasks[where].select(measured)
                _scatter(panel, here, name, palette)
                said = _scores(here, name, judged, lines)
            title = "" if corpus.tasks is None else f"{safe_text(where, 36)}\n"
            panel.set_title(f"{title}{plain(said)}", loc="left", fontsize=9.0)
        _finish(axes, own, palette, lines, caption)
    return axes[0]


def _known(corpus: ModelCorpus, name: str) -> NDArray[np.bool_]:
    return np.isfinite(corpus.measures[name]) & np.isfinite(corpus.gap)


def _scatter(ax: Axes, corpus: ModelCorpus, name: str, palette: HyperparameterColours | None) -> None:
    x, y = corpus.measures[name], 100 * corpus.gap
    look: dict[str, Any] = {"linewidths": 0.4, "edgecolors": "white", "zorder": 2.5}
    size = 26 if len(x) <= 120 else 14
    index = np.zeros(len(x), dtype=np.int64) if palette is None else palette.index(corpus)
    for i in np.unique(index):
        shade = colour(0) if palette is None else palette.shades[i]
        here = index == i
        marker = MODEL_MARKERS[i % len(MODEL_MARKERS)]
        dots = ax.scatter(x[here], y[here], s=size, color=shade, marker=marker, **look)
        dots.set_gid(MODELS)
    if spans_decades(x, DECADES):
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(numticks=5))
        ax.xaxis.set_minor_locator(NullLocator())
        # Small powers of ten as numbers, others as powers.
        ax.xaxis.set_major_formatter(
            FuncFormatter(lambda v, _: format_number(v) if 1e-3 <= v < 1e5 else f"$10^{{{round(math.log10(v))}}}$")
        )
    else:
        ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_xlabel(safe_text(name, 28 if is_narrow(ax) else 50))
    ax.set_ylabel("generalization gap (%)" if not is_narrow(ax) else "gap (%)")


def _scores(corpus: ModelCorpus, name: str, judged: MeasureScores | None, lines: list[str]) -> str:
    """Write n, CMI and r; warnings of the CMI are added to the lines."""
    x, y = corpus.measures[name], corpus.gap
    score = math.nan if judged is None else judged.cmi.estimate
    if judged is not None and judged.n != len(x):
        raise InputError(
            f"has {judged.n} models with {name!r}, the corpus {len(x)}: give the corpus "
            "that was judged, or the same least_train_accuracy.",
            argument="judgement",
        )
    # Without a judgement the CMI is computed here, and its warnings go into the caption.
    if judged is None and len(x) > 1:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", CurvewiseWarning)
            sign = corpus.orientation.get(name)
            score = cmi_score(x, y, corpus.hyperparameters, orientation=sign)
        said = [f"⚠ {w.message}" for w in heard if issubclass(w.category, CurvewiseWarning)]
        lines.extend(line for line in said if line not in lines)
    # Two points always lie on a line.
    constant = len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0
    r = math.nan if constant else float(np.corrcoef(x, y)[0, 1])
    shown = percent(score).replace("-", "−")
    return f"n = {len(x)}, CMI {shown}, r = {signed(r, 2)}"


def _finish(
    axes: Sequence[Axes], own: bool, palette: HyperparameterColours | None, lines: list[str], caption: bool | None
) -> None:
    key = [] if palette is None else palette.key()
    if len(axes) == 1:
        key = [(h, text.replace(r"\$", "$")) for h, text in key]
        finish(axes[0], own, key, lines, caption=caption, columns=4 if own else 1)
        box = axes[0].get_legend()
        if box is not None and palette is not None:
            box.set_title(safe_text(palette.name, 30), prop=FontProperties(size=8.5 if own else 7.5))
            box.set_alignment("left")
        return
    if palette is not None:
        legend_above(axes[0], key, safe_text(palette.name, 40))
    if caption is not False:
        write_below(axes[0], lines)


def _scatter_caption(corpus: ModelCorpus, names: Sequence[str], tasks: Mapping[str, ModelCorpus]) -> list[str]:
    falling = [shorten(clean(n), 30) for n in names if corpus.orientation.get(n, 1) < 0]
    lines = ["A dot is a model. CMI: what the measure tells of the gap beyond the hyperparameters."]
    if falling:
        lines.append(f"Higher should mean a smaller gap: {', '.join(falling[:6])}.")
    left_out = sum(int((~_known(c, name)).sum()) for c in tasks.values() for name in names)
    if left_out:
        lines.append(f"⚠ {left_out} dot(s) left out, where a gap or a measure is no number.")
    return lines


def plot_information(result: ConditionalInformation, ax: Axes | None = None, *, caption: bool | None = None) -> Axes:
    """Draw what a measure tells of the gap given each set of hyperparameters, the least on top.

    Parameters
    ----------
    result : ConditionalInformation
        What to draw. Of many sets, those that leave the least are shown.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    caption : bool, optional
        Write the result under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    values = 100 * result.values
    most = rows_shown(ax, None, LEAST + 1) - 1
    known = [i for i in np.argsort(values, kind="stable").tolist() if math.isfinite(values[i])]
    sets = known[:most]
    names = ["score", *(" & ".join(result.sets[i]) or "nothing" for i in sets)]
    with canvas(ax, 2.0 + 0.24 * len(names)) as (ax, own):
        unknown = np.full(len(sets), math.nan)
        scores = np.array([result.score, result.value.low, result.value.high])
        ends = [
            np.concatenate([[100 * score], rest])
            for score, rest in zip(scores, (values[sets], unknown, unknown), strict=True)
        ]
        shades = [colour(0), *[NEUTRAL] * len(sets)]
        texts = safe_names(names, 16 if is_narrow(ax) else 40)
        indent = draw_rows(ax, texts, ends, shades, zero=0.0, gid=SET)
        if math.isfinite(result.null_mean):
            mark_value(ax, 100 * result.null_mean, "hyperparameters alone", bottom=True)
        ax.set_xlabel("CMI given the hyperparameters (%)" if not is_narrow(ax) else "CMI (%)")
        said = f"{result.models:,} models. The score is the least of {format_count(len(result.sets), 'set')}"
        said += f", {len(known) - len(sets)} of them not shown." if len(known) > len(sets) else "."
        if math.isfinite(result.value.low):
            said += f" Bar: {format_level(result.value.level)} interval."
        if math.isfinite(result.pvalue):
            said += f" As much by hyperparameters alone: {format_pvalue(result.pvalue)}."
        lines = [said, *warned(result)]
        finish(ax, own, [], lines, caption=caption, indent=indent)
    return ax


def plot_measure_comparison(result: MeasureComparison, ax: Axes | None = None, *, caption: bool | None = None) -> Axes:
    """Draw how much more one measure tells than another, task by task and on average.

    Parameters
    ----------
    result : MeasureComparison
        What to draw.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    caption : bool, optional
        Write the result under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.
    """
    each: list[Interval] = list(result.by_task)
    rows = list(result.tasks)
    if len(rows) > 1:
        each, rows = [*each, result.difference], [*rows, "average"]
    estimate, low, high = (100 * end for end in ends_of(each))
    with canvas(ax, 1.9 + 0.28 * len(rows)) as (ax, own):
        names = safe_names(rows, 16 if is_narrow(ax) else 30)
        shades = [NEUTRAL] * (len(rows) - 1) + [colour(0)]
        indent = draw_rows(ax, names, (estimate, low, high), shades, zero=0.0, gid=DIFFERENCE)
        one, two = safe_names((result.one, result.two), 12 if is_narrow(ax) else 30)
        ax.set_xlabel(f"CMI of {one} − {two} (%)")
        d = result.difference
        points = [signed(100 * v, 1) for v in (d.estimate, d.low, d.high)]
        who = [shorten(clean(name), 40) for name in (result.one, result.two)]
        said = (
            f"CMI of {who[0]} less that of {who[1]}: {points[0]} [{points[1]}, {points[2]}] points"
            f" ({format_pvalue(result.pvalue)}). Bars: {format_level(d.level)} intervals."
        )
        lines = [said, *warned(result)]
        finish(ax, own, [], lines, caption=caption, indent=indent)
    return ax


@dataclass(frozen=True, eq=False)
class HyperparameterColours:
    """One hyperparameter as colours and shapes of dots: its values, and the colour of each."""

    name: str
    values: tuple[Any, ...]
    shades: tuple[str, ...]

    def index(self, corpus: ModelCorpus) -> NDArray[np.int64]:
        """Return the number of each model's value."""
        place = {str(v): i for i, v in enumerate(self.values)}
        return np.array([place[str(v)] for v in corpus.hyperparameters[self.name].tolist()])

    def key(self) -> list[tuple[Line2D, str]]:
        """Return the entries of a legend."""
        names = safe_names([format_number(v) if isinstance(v, float) else str(v) for v in self.values], 18)
        return [
            (key_dot(shade, MODEL_MARKERS[i % len(MODEL_MARKERS)], 5.5), name)
            for i, (shade, name) in enumerate(zip(self.shades, names, strict=True))
        ]


def choose_colours(tasks: Mapping[str, ModelCorpus], name: str | None) -> HyperparameterColours | None:
    """Choose colours for the values of a hyperparameter: from dark to bright where they are numbers.

    Unless one is named, it is the one that the gaps of a task differ most by.
    """
    columns = {
        k: [v for c in tasks.values() for v in c.hyperparameters[k].tolist()]
        for k in next(iter(tasks.values())).hyperparameters
    }
    kinds = {k: {str(v): v for v in column} for k, column in columns.items()}
    if name is None:
        few = [k for k, values in kinds.items() if 1 < len(values) <= MOST_VALUES]
        if not few:
            return None
        name = max(few, key=lambda k: sum(_between_squares(c.gap, c.hyperparameters[k]) for c in tasks.values()))
    choose("colours", name, tuple(columns))
    values = list(kinds[name].values())
    if len(values) > MOST_VALUES:
        problem = f"it has {len(values)} values: use a hyperparameter with at most {MOST_VALUES}."
        raise InputError(problem, argument="colours", value=name)
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    values.sort(key=None if numbers else str)
    if numbers and len(values) > 2:
        shades = [to_hex(colormaps["viridis"](s)) for s in np.linspace(0.0, 0.88, len(values))]
    else:
        shades = [colour(i) for i in range(len(values))]
    return HyperparameterColours(name, tuple(values), tuple(shades))


def _between_squares(gap: FloatArray, column: NDArray[Any]) -> float:
    """Sum of squares of the gap between the values of a hyperparameter."""
    known = np.isfinite(gap)
    if not known.any():
        return 0.0
    _, index = np.unique(column.astype(str)[known], return_inverse=True)
    count = np.bincount(index)
    mean = np.bincount(index, gap[known]) / count
    return float(np.sum(count * (mean - gap[known].mean()) ** 2))
