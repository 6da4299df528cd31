"""Style of pictures: colours, sizes of type, new figures, captions. Applied locally only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex, to_rgb
from matplotlib.legend import Legend
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import ScaledTranslation

from curvewise.drawing.labels import wrap_lines
from curvewise.errors import neutral
from curvewise.types.results import Unit

PALETTE = (
    "#005098",  # blue
    "#d87818",  # orange
    "#20a060",  # green
    "#c078a8",  # pink
    "#a878f8",  # violet
    "#605000",  # olive
    "#282048",  # indigo
    "#501018",  # wine
)
"""Colours of learners, the same as on the page of a report: each has a contrast of 3 with white paper, and any two
can be told apart with every kind of colour vision."""

DASHES: tuple[Any, ...] = ("-", (0, (6, 1.6)), (0, (1.2, 1.6)))
"""Line styles of learners: the next one for every eight learners."""

INK = "#222222"
"""Colour of what is not a learner and matters: an estimate, a measured quantity."""

NEUTRAL = "#8C8C8C"
"""Colour of what is not a learner and only helps to read: reference lines, the many unnamed curves."""

GREYS = ("#8c8c8c", "#6e6e6e", "#7a7a7a", "#b4b4b4", "#555555", "#b0b0b0")
"""Greys of pictures that stand for something faint, on dark paper too: lines of the grid, names, what stands back."""

PAGE_WIDTH = 6.0
"""Inches of a picture on a page beside text."""

CAPTION = "curvewise-caption"
OWN = "curvewise-axes"
"""Group ids of captions, and of Axes made here, which have room for a legend under them."""

_RC: dict[str, Any] = {
    "font.size": 10.0,
    "axes.labelsize": 10.0,
    "axes.titlesize": 10.5,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.fontsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.usetex": False,
    # A loop over many results is no mistake; closing figures is the caller's business.
    "figure.max_open_warning": 0,
}


@contextmanager
def style(own: Mapping[str, Any] = _RC) -> Iterator[None]:
    """The style, or other settings, for the length of a with statement.

    Only its own keys are put back: ``rc_context`` would undo the interactive mode that a notebook
    switches on when the first figure is made.
    """
    settings: MutableMapping[Any, Any] = rcParams  # matplotlib types the keys since 3.11
    before = {key: settings[key] for key in own}
    settings.update(own)
    try:
        yield
    finally:
        settings.update(before)


def new_axes(width: float = 7.0, height: float = 4.4) -> Axes:
    """Axes of a new pyplot figure, laid out so that nothing is cut off; sizes in inches."""
    import matplotlib.pyplot as plt

    if _SUBJECT.get()[1]:  # on a page, where a column or a phone would shrink the type of a wide one
        width = min(width, PAGE_WIDTH)
    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    ax.set_gid(OWN)
    return ax


@contextmanager
def canvas(ax: Axes | None, height: float = 4.4, width: float = 7.0) -> Iterator[tuple[Axes, bool]]:
    """Draw in our style on the Axes given, or on those of a new figure; the second value is True for a new one."""
    with style():
        yield ax or new_axes(width, height), ax is None


_PLACES: ContextVar[dict[str, int] | None] = ContextVar("curvewise-places", default=None)


@contextmanager
def one_document(places: dict[str, int] | None = None) -> Iterator[dict[str, int]]:
    """Give a learner the same colour and line style in all pictures drawn within a with statement.

    Parameters
    ----------
    places : dict of str to int, optional
        Numbers of the learners that are known already; others are added as they are drawn.

    Examples
    --------
    >>> with one_document({"cnn": 0}) as places:
    ...     place_of("mlp", 0), place_of("cnn", 5)
    (1, 0)
    >>> place_of("mlp", 0)
    0
    """
    known = {} if places is None else places
    token = _PLACES.set(known)
    try:
        yield known
    finally:
        _PLACES.reset(token)


def place_of(name: str, index: int) -> int:
    """Return the number of a learner in this document; ``index`` for a picture that stands alone."""
    known = _PLACES.get()
    if known is None:
        return index
    # A training of a learner, "cnn, n=400", has the colour of the learner.
    base = next((k for k in known if name.startswith(f"{k}, n=")), name)
    return known.setdefault(base, len(known))


_SUBJECT: ContextVar[tuple[str | None, str]] = ContextVar("curvewise-subject", default=(None, ""))


@contextmanager
def about(learner: str | None, said: str = "") -> Iterator[None]:
    """Draw a picture for a page within a with statement.

    Parameters
    ----------
    learner : str, optional
        The learner that it is about, whose colour it has though its result does not name it.
    said : str
        What stands beside it; its caption leaves these sentences out, and warnings, which the page has, too.
    """
    token = _SUBJECT.set((learner, " ".join(said.split())))
    try:
        yield
    finally:
        _SUBJECT.reset(token)


def unsaid(lines: Iterable[str]) -> list[str]:
    """Return the lines of a caption, each on one line, without what stands beside the picture."""
    said = _SUBJECT.get()[1]
    found = (" ".join(neutral(line).split()) for line in lines)
    return [line for line in found if not (said and (line in said or line.startswith("⚠")))]


def subject_colour() -> str:
    """Return the colour of the learner that the picture is about; the first one where it is not known."""
    learner, _ = _SUBJECT.get()
    return colour(0 if learner is None else place_of(learner, 0))


def pale(shade: str) -> str:
    """Return a pale and opaque tone of a colour, for areas that lie over each other.

    >>> pale("#005098")
    '#a3c0da'
    """
    red, green, blue = (0.36 * part + 0.64 for part in to_rgb(shade))
    return to_hex((red, green, blue))


def word_shade(shade: str) -> str:
    """Return the darker tone in which words have the colour of a learner; other colours stay.

    Words need a contrast of 4.5 with the paper, lines one of 3.

    >>> word_shade("#d87818")
    '#a15e1b'
    """
    if shade not in PALETTE:
        return shade
    mixed = (0.7 * part + 0.3 * ink for part, ink in zip(to_rgb(shade), to_rgb(INK), strict=True))
    return to_hex(tuple(mixed))  # type: ignore[arg-type]


def colour(index: int) -> str:
    """The colour of the learner with this number."""
    return PALETTE[index % len(PALETTE)]


def dashes(index: int) -> Any:
    """The line style of the learner with this number."""
    return DASHES[index // len(PALETTE) % len(DASHES)]


def colours_of(names: Iterable[str], places: Sequence[int | None] = ()) -> list[str]:
    """Return the colours of learners, in the document that is being drawn or among themselves.

    ``places`` are the numbers that the learners have elsewhere, in the same order; None where one is not known.
    """
    known = {i: place for i, place in enumerate(places) if place is not None}
    return [colour(place_of(name, known.get(i, i))) for i, name in enumerate(names)]


def value_label(unit: Unit) -> str:
    """Axis label of an error, loss or score."""
    return "error (%)" if unit.name in ("fraction", "percent") else unit.name


def unit_text(unit: Unit) -> str:
    """The unit in brackets after another word: "(%)" or "(loss)"."""
    return f"({'%' if unit.name in ('fraction', 'percent') else unit.name})"


def as_percent(axis: Axis, unit: Unit) -> None:
    """Write the ticks of an axis of fractions as percentages; the data stay fractions."""
    if unit.name == "fraction":
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.6g}".replace("-", "−")))


def write_caption(
    ax: Axes, lines: Sequence[str], under: Artist | None = None, indent: float = 0.0
) -> Annotation | None:
    """Small text under ``under`` (the x label if None), added to the caption that is there.

    ``indent`` is the width, in inches, that labels at the left take from a lone picture.
    """
    previous = [a for a in ax.texts if a.get_gid() == CAPTION]
    before = [line for a in previous for line in str(a.get_label()).split("\n")]
    for artist in previous:
        artist.remove()
    merged = list(dict.fromkeys([*before, *(piece for line in unsaid(lines) for piece in _pieces(line))]))
    # Two calls on the same Axes may say the same, one of them and a bit more.
    merged = [a for a in merged if not any(b != a and b.startswith(a) for b in merged)]
    if not merged:
        return None
    note = ax.annotate(
        wrap_lines(merged, caption_width(ax, indent)),
        xy=(0.0, 0.0),
        xycoords=(ax.transAxes, ax.xaxis.label if under is None else under),
        xytext=(0.0, -5.0),
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=8.5,
        color=rcParams["text.color"],
        alpha=0.8,
        annotation_clip=False,
        gid=CAPTION,
    )
    note.set_label("\n".join(merged))
    return note


LONGEST_LINE = 200
"""Characters of a caption after which a sentence begins a new line."""


def _pieces(line: str) -> list[str]:
    """A line of a caption, in two after a sentence where it would be cut for its length."""
    at = line.rfind(". ", 0, LONGEST_LINE) if len(line) > LONGEST_LINE else -1
    return [line] if at < 0 else [line[: at + 1], *_pieces(line[at + 2 :])]


def caption_width(ax: Axes, indent: float = 0.0) -> int:
    """Characters of a caption line that fit under the Axes."""
    figure = ax.get_figure(root=True)
    if figure is None:
        return 90
    # A layout engine has not run yet; for lone Axes it leaves about this share of the width.
    alone = figure.get_layout_engine() is not None and len(figure.axes) == 1
    inches = float(figure.get_size_inches()[0])
    width = 0.9 * inches - indent if alone else ax.get_position().width * inches
    return int(width * 72 / 4.95)


def make_legend(
    ax: Axes,
    handles: Sequence[Any],
    labels: Iterable[str],
    outside: bool,
    columns: int = 1,
    indent: float = 0.0,
    **look: Any,
) -> Legend:
    """A legend: under the x label of our own figure, or inside Axes that belong to someone.

    ``indent`` is the width, in inches, that labels at the left take from a lone picture.
    """
    texts = list(labels)
    place: dict[str, Any] = {"loc": "best"}
    if outside:
        figure = ax.get_figure(root=True)
        assert figure is not None
        # Points that tick labels and the x label take up under the Axes.
        rows = max((t.get_text().count("\n") + 1 for t in ax.get_xticklabels()), default=1)
        down = ScaledTranslation(0.0, -(27.0 + 11.5 * rows) / 72, figure.dpi_scale_trans)
        place = {
            "loc": "upper left",
            "bbox_to_anchor": (0.0, 0.0),
            "bbox_transform": ax.transAxes + down,
            "borderaxespad": 0.0,
        }
        # A legend wider than the figure would widen the picture, and its letters would be small on a page.
        room = figure.get_size_inches()[0] - indent
        fits = [k for k in range(columns, 0, -1) if _legend_inches(texts, k) <= room]
        columns = next(iter(fits), 1)
    # A label with a leading underscore would be left out, hence numbers first and texts after.
    look = {"frameon": not outside, "ncols": columns, "borderpad": 0.2, "handlelength": 2.6} | place | look
    legend = ax.legend(list(handles), [str(i) for i in range(len(texts))], **look)
    for artist, text in zip(legend.get_texts(), texts, strict=True):
        artist.set_text(text)
    return legend


def _legend_inches(texts: Sequence[str], columns: int) -> float:
    """Return about how wide a legend is: the longest text of each column, and its handles."""
    rows = -(-len(texts) // columns)
    longest = (max(map(len, texts[i : i + rows])) for i in range(0, len(texts), rows))
    return sum(4.7 * letters + 42.0 for letters in longest) / 72
