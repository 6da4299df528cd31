"""The grid of predicted images: inputs, what each method predicted, and the targets (figure 1 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from curvewise.drawing.labels import safe_names
from curvewise.drawing.marks import finish
from curvewise.drawing.panels import signed
from curvewise.drawing.style import new_axes, style
from curvewise.errors import InputError
from curvewise.transfer.images import PredictedImages, compare_images
from curvewise.transfer.plot.panels import compact, warned

IMAGE = "curvewise-image"
INPUT, TARGET = "input", "target"
MOST_ROWS = 40
GAP, ROOM = 0.06, 0.24  # between columns, and under a row for its losses, in widths of an image
CELL = 1.15  # inches


def plot_predictions(
    predictions: PredictedImages | Mapping[str, ArrayLike | Mapping[int, ArrayLike]],
    ax: Axes | None = None,
    *,
    targets: ArrayLike | None = None,
    inputs: ArrayLike | None = None,
    examples: Sequence[int] | None = None,
    channel: int | None = None,
    losses: bool = True,
    caption: bool | None = None,
) -> Axes:
    """Draw predicted images in a grid: a row for each example and training size, a column for each method.

    Parameters
    ----------
    predictions : PredictedImages, or dict of str to array
        What to draw: from a study :func:`curvewise.study.predicted_images`; or the images of each
        method, with ``targets`` and perhaps ``inputs``, as :func:`compare_images` takes them.
    ax : Axes, optional
        Where; a new figure by default.
    targets, inputs, examples
        With arrays: what was to be predicted, from what, and which of them to draw.
    channel : int, optional
        The channel of predictions and targets to draw. By default one is drawn in colours from
        low to high, three as red, green and blue, and of others the first.
    losses : bool
        Write its loss under each predicted image.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> depth = rng.random((2, 1, 8, 8))
    >>> noisy = {"scratch": depth + rng.normal(0, 0.2, depth.shape), "pretrained": depth}
    >>> ax = plot_predictions(noisy, targets=depth)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['scratch', 'pretrained', 'target']
    """
    if isinstance(predictions, PredictedImages):
        if any(given is not None for given in (targets, inputs, examples)):
            raise InputError("has its targets, inputs and examples already: leave them out.", argument="predictions")
        found = predictions
    elif targets is None:
        raise InputError("are missing: give the images that were to be predicted.", argument="targets")
    else:
        found = compare_images(predictions, targets, inputs, examples=examples)
    wanted = found.targets
    channels, height, width = wanted.shape[1:]
    if channel is not None and not 0 <= channel < channels:
        raise InputError(f"the images have channels 0 to {channels - 1}.", argument="channel", value=channel)
    if len(found.positions) * len(found.sizes) > MOST_ROWS:
        problem = f"make {len(found.positions) * len(found.sizes)} rows of images: at most {MOST_ROWS} are drawn."
        raise InputError(f"{len(found.positions)} examples {problem}", argument="examples", remedy="Choose fewer.")
    one = channel if channel is not None else None if channels == 3 else 0
    low, high = (float(end(wanted if one is None else wanted[:, one])) for end in (np.min, np.max))
    names = [*([INPUT] if found.inputs is not None else []), *found.methods, TARGET]
    tall = height / width
    with style():
        own = ax is None
        count = len(found.positions) * len(found.sizes)
        size = (CELL * len(names) + 0.9, CELL * (tall + ROOM) * count + 0.9)
        ax = ax or new_axes(*size)
        middles, top = [], 0.0
        for i, example in enumerate(found.positions):
            top += 0.15 if i and len(found.sizes) > 1 else 0.0
            for n in found.sizes:
                for column, name in enumerate(names):
                    left = column * (1 + GAP)
                    place = (left, left + 1, top + tall, top)
                    if name == INPUT and column == 0 and found.inputs is not None:
                        _draw_image(ax, found.inputs[i], place, None)
                        continue
                    images = wanted if column == len(names) - 1 else found.images_of(name, n)
                    if images is None:  # of a size that the method was not trained on
                        continue
                    _draw_image(ax, images[i], place, (low, high), one)
                    if losses and column < len(names) - 1:
                        text = f"{found.loss_of(name, example, n):.3g}"
                        at = (left + 0.5, top + tall + 0.02)
                        ax.text(*at, text, ha="center", va="top", fontsize=7.5)
                label = [f"image {example}"] if len(found.positions) > 1 or not n else []
                middles.append((top + tall / 2, "\n".join([*label, *([f"n = {compact(n)}"] if n else [])])))
                top += tall + ROOM
        ax.set_aspect("equal")
        ax.set(xlim=(0, len(names) * (1 + GAP) - GAP), ylim=(top, 0))
        shown = safe_names(names, 14)
        ax.set_xticks([k * (1 + GAP) + 0.5 for k in range(len(names))], labels=shown)
        ax.set_yticks([at for at, _ in middles], labels=[text for _, text in middles])
        ax.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
        ax.spines[:].set_visible(False)
        said = f"Under each image its {found.loss.upper()} loss." if losses else ""
        range_of = f"from {signed(low)} to {signed(high)}, the range of the targets."
        part = f"Channel {one} of {channels}. " if one is not None and channels > 1 else ""
        finish(ax, own, [], [f"{part}Colours run {range_of} {said}", *warned(found)], caption=caption)
    return ax


def _draw_image(
    ax: Axes,
    image: NDArray[Any],
    place: tuple[float, ...],
    ends: tuple[float, float] | None,
    channel: int | None = None,
) -> None:
    """Draw an image in its place: within the range of the targets, or an input within its own."""
    look: dict[str, Any] = {"extent": place, "aspect": "equal", "interpolation": "nearest", "gid": IMAGE}
    if ends is None:
        ends = (0.0, 255.0) if image.dtype == np.uint8 else (float(image.min()), float(image.max()))
        if len(image) != 3:  # grey; of two channels, or more than three, their mean
            ax.imshow(image.mean(axis=0), cmap="gray", vmin=ends[0], vmax=ends[1], **look)
            return
    elif channel is not None:
        ax.imshow(image[channel], cmap="viridis", vmin=ends[0], vmax=ends[1], **look)
        return
    span = ends[1] - ends[0] or 1.0
    ax.imshow(np.clip((np.moveaxis(image, 0, 2) - ends[0]) / span, 0, 1), **look)
