"""Sheets of perturbed images: what a magnitude looks like."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from curvewise.drawing.axes import is_narrow, width_of
from curvewise.drawing.labels import clean, escape, safe_names, safe_text
from curvewise.drawing.marks import finish
from curvewise.drawing.panels import figure_size
from curvewise.drawing.style import new_axes, style
from curvewise.errors import InputError, arg
from curvewise.types.results import FloatArray, as_floats, check_whole

if TYPE_CHECKING:
    from curvewise.nn.data import Sample
    from curvewise.response.networks.perturbations import Perturbation


SHEET = "curvewise-sheet"
CLASS = "curvewise-class"

# Numbers of columns, of which the first with round magnitudes is taken.
COLUMNS = (7, 6, 5)
# Width of an image with its gap in inches, in a figure of ours.
CELL = 1.0
# Examples that rows and their partners are chosen from, so that most classes are among them.
POOL = 512


def plot_perturbed(
    images: Any,
    perturbation: Any,
    magnitudes: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    classes: Sequence[str] | None = None,
    examples: int = 5,
    reading: Mapping[str, Any] | None = None,
    rng: int | np.random.Generator = 0,
    caption: bool | None = None,
) -> Axes:
    """Draw examples at growing magnitudes of a perturbation, one row for each.

    Parameters
    ----------
    images : ndarray, Tensor, (images, labels), Examples, Dataset or DataLoader
        Images of uint8, or of floating point: with values from 0 to 1, or as the network takes them if ``reading`` has
        their mean and std. Arrays have shape (N, height, width), (N, channels, height, width) or (N, height, width,
        channels).
    perturbation : str, Perturbation or callable
        As :func:`measure_response` takes it, with pixels.
    magnitudes : array_like, optional
        The columns; five to seven over the usual range by default.
    ax : Axes, optional
        Axes to draw on; a new figure by default.
    classes : sequence of str, optional
        Names of the classes from 0 on.
    examples : int
        Number of rows; of as many classes as there are.
    reading : mapping, optional
        How to read the images: ``labels``, where images holds none (mixup needs them); ``mean`` and ``std``, per
        channel, of the network's normalisation.
    rng : int or Generator
        Decides examples, partners, noise and places.
    caption : bool, optional
        Write under the picture what is shown; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> images = np.full((3, 1, 8, 8), 200, dtype=np.uint8)
    >>> ax = plot_perturbed(images, "brightness", [-0.5, 0, 0.5])
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['-0.5', '0', '0.5']
    """
    from curvewise.response.networks.perturbations import find_perturbation

    examples = check_whole(examples, "examples", 1)
    how = find_perturbation(perturbation)
    random = np.random.default_rng(rng)
    seed = int(random.integers(2**31))
    grid = _usual(how) if magnitudes is None else as_floats(magnitudes, "magnitudes")
    if grid.ndim != 1 or not len(grid) or not np.isfinite(grid).all():
        raise InputError("give a list of finite numbers.", argument="magnitudes", value=magnitudes)
    if magnitudes is not None:
        grid = np.unique(np.append(grid, 0.0))  # sorted, with the unchanged image to compare with
    pool = take_images(images, examples, reading or {}, random)
    rows = choose_rows(pool, examples)
    shown, partner = pool.take(rows), None
    if how.pairs is not None:
        partner = pool.take(choose_partners(pool, rows, how.pairs, random))
    columns = [perturbed(shown, how, float(m), seed, partner) for m in grid]
    narrow = ax is not None and is_narrow(ax)
    left, right = _names(shown, partner, classes, 10 if narrow else 14)
    lines = []
    if how.pairs is not None:
        whose = "its own class" if how.pairs == "intra" else "another class"
        lines = [f"Each image is mixed with its partner, of {whose}, at the right."]
    with style():
        own = ax is None
        if ax is None:
            count, _, height, width = shown.x.shape
            beside = sum(0.085 * max(map(len, side), default=0) for side in (left, right))
            across = CELL * (len(columns) + (partner is not None))
            ax = new_axes(0.25 + beside + across, 0.75 + CELL * count * height / width)
        _draw(ax, columns, grid, partner)
        places = ax.get_yticks()
        ax.set_yticklabels(left or [""] * len(places))
        look: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "va": "center"}
        look |= {"fontsize": 7.0 if is_narrow(ax) else 9.0, "annotation_clip": False, "gid": CLASS}
        for place, name in zip(places, right, strict=False):
            ax.annotate(name, (1.0, float(place)), (4.0, 0.0), **look)
        label = safe_text(how.name, 30)
        if narrow:
            ax.tick_params(labelsize=7.0)
        else:
            label = escape(textwrap.fill(f"{label} ({clean(how.unit)})", max(12, int(11 * figure_size(ax)[0]))))
        ax.set_xlabel(label)
        finish(ax, own, [], lines, caption=caption, indent=0.8)
    return ax


def _usual(how: Perturbation) -> FloatArray:
    """Return magnitudes over the usual range that are short to write."""
    from curvewise.response.networks.perturbations import usual_magnitudes

    # With two directions an odd number of columns, so that the unchanged image is in the middle.
    signed = how.usual[0] < 0
    grids = [usual_magnitudes(how, count) for count in COLUMNS if count % 2 or not signed]
    steps = [float(grid[1] - grid[0]) for grid in grids]
    tidy = [g for g, step in zip(grids, steps, strict=True) if abs(step - float(f"{step:.1g}")) < 1e-9]
    return tidy[0] if tidy else grids[-1]


def _draw(ax: Axes, columns: Sequence[FloatArray], grid: FloatArray, partner: Sample | None) -> None:
    """Draw all images as one, with clear gaps between them."""
    count, _, height, width = columns[0].shape
    gap = max(1, round(0.07 * min(height, width)))
    cells = [*columns, *([] if partner is None else [partner.pixels(partner.x).clamp(0, 1).numpy()])]
    lefts = [j * (width + gap) for j in range(len(columns))]
    if partner is not None:
        lefts.append(lefts[-1] + width + 3 * gap)
    # One image with transparent gaps, instead of an Axes for each example.
    sheet = np.zeros((count * (height + gap) - gap, lefts[-1] + width, 4))
    for left, images in zip(lefts, cells, strict=True):
        for i, image in enumerate(images):
            top = i * (height + gap)
            here = sheet[top : top + height, left : left + width]
            here[..., :3], here[..., 3] = np.moveaxis(image, 0, -1), 1.0
    ax.imshow(sheet, interpolation="nearest", gid=SHEET)
    names = [f"{m:.3g}" for m in grid.round(6)] + ([] if partner is None else ["partner"])
    ax.set_xticks([left + (width - 1) / 2 for left in lefts], labels=names)
    # The width of an image in inches, in Axes that keep the shape of the sheet.
    tall = ax.get_position().height * figure_size(ax)[1]
    if width * min(width_of(ax) / sheet.shape[1], tall / sheet.shape[0]) < 0.07 * max(map(len, names)):
        ax.tick_params(axis="x", rotation=90)
    ax.set_yticks([i * (height + gap) + (height - 1) / 2 for i in range(count)])
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def _names(
    images: Sample, partner: Sample | None, classes: Sequence[str] | None, longest: int
) -> tuple[list[str], list[str]]:
    """Return the classes of the rows, and those of their partners where they differ."""
    own = images.y.tolist()
    if own[0] < 0:
        return [], []
    other = [] if partner is None else partner.y.tolist()
    every = own + other
    if classes is not None and max(every) >= len(classes):
        raise InputError(f"has {len(classes)} names, labels goes up to {max(every)}: name each.", argument="classes")
    known = sorted(set(every))
    texts = safe_names([str(v) if classes is None else str(classes[v]) for v in known], longest)
    short = dict(zip(known, texts, strict=True))
    return [short[v] for v in own], [short[v] for v in other if other != own]


def take_images(data: Any, examples: int, reading: Mapping[str, Any], random: np.random.Generator) -> Sample:
    """Draw examples to choose from, in their own order where all are taken; class -1 where none is known."""
    from curvewise.response.networks.trial import read_sample

    if isinstance(data, tuple) and len(data) == 2 and "labels" not in reading:
        data, reading = data[0], {**reading, "labels": data[1]}
    given, unknown = _as_images(data), False
    if "labels" not in reading and hasattr(given, "ndim"):
        reading, unknown = {**reading, "labels": np.zeros(len(given), dtype=np.int64)}, True
    drawn = read_sample(given, reading, max(POOL, examples), random)
    if drawn.x.ndim != 4 or drawn.x.shape[1] not in (1, 3):
        wanted = "(examples, channels, height, width) with 1 or 3 channels"
        raise InputError(f"has shape {tuple(drawn.x.shape)}: give {wanted}.", argument="images")
    pixels = drawn.pixels(drawn.x)
    if pixels.min() < -0.01 or pixels.max() > 1.01:
        raise InputError(
            f"holds values from {float(pixels.min()):.3g} to {float(pixels.max()):.3g}: give uint8, "
            "values from 0 to 1, or the mean and std that they were normalised with.",
            argument="images",
        )
    drawn = drawn.take(np.argsort(drawn.rows)) if len(drawn) <= examples else drawn
    return replace(drawn, y=drawn.y - 1) if unknown else drawn


def _as_images(data: Any) -> Any:
    """Put the axis of channels of an array after that of examples; leave other data as they are."""
    if isinstance(data, list) and data and all(isinstance(i, np.ndarray) for i in data):
        if len({i.shape for i in data}) > 1:
            raise InputError("images have different sizes: give images of one size.")
        data = np.stack(data)
    if getattr(data, "ndim", 0) == 3:
        return data[:, None]
    if isinstance(data, np.ndarray) and data.ndim == 4:
        return np.moveaxis(data, -1, 1) if data.shape[1] not in (1, 3) and data.shape[3] in (1, 3) else data
    return data


def choose_rows(pool: Sample, examples: int) -> NDArray[np.int64]:
    """Choose one of each class in turn, in the order of the classes; the first ones without classes."""
    labels = pool.y.numpy()
    if len(labels) <= examples:
        return np.arange(len(labels))
    turn = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        here = np.flatnonzero(labels == label)
        turn[here] = np.arange(len(here))
    chosen = np.lexsort((labels, turn))[:examples]
    return chosen[np.lexsort((turn[chosen], labels[chosen]))]


def choose_partners(pool: Sample, rows: NDArray[np.int64], kind: str, random: np.random.Generator) -> NDArray[np.int64]:
    """Choose for each row another example of its class, or one of another class."""
    labels = pool.y.numpy()
    if labels[0] < 0:
        raise InputError("are missing: mixing depends on them. Give (images, labels).", argument="labels")
    partners = []
    for row in rows:
        same = labels == labels[row]
        others = np.flatnonzero(same & (np.arange(len(same)) != row) if kind == "intra" else ~same)
        if not len(others):
            label = labels[row]
            lack = f"class {label} has no second example" if kind == "intra" else f"there is no class but {label}"
            raise InputError(f"{arg('perturbation', f'mixup-{kind}')}: {lack} among the images. Give more images.")
        partners.append(int(random.choice(others)))
    return np.array(partners)


def perturbed(images: Sample, how: Perturbation, magnitude: float, seed: int, partner: Sample | None) -> FloatArray:
    """Return pixels after the perturbation; one for values of any kind is given normalised ones."""
    # Mixing commutes with normalising, so that mixtures need no normalised values.
    if how.of == "images" or partner is not None:
        x = images.pixels(images.x).clamp(0, 1)
        changed = how.fitted(x).apply(
            x, magnitude, seed, partner=None if partner is None else partner.pixels(partner.x)
        )
    else:
        x = images.given(images.x)
        changed = images.pixels(how.fitted(x).apply(x, magnitude, seed))
    return np.clip(changed.numpy().astype(np.float64), 0, 1)
