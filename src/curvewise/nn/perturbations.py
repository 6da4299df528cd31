"""Perturbations of images, texts and tables by name: how far off, in which direction, of what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.io._table import brief, listed, suggest
from curvewise.nn import _feature_changes as values
from curvewise.nn import _image_changes as images
from curvewise.nn import _token_changes as tokens
from curvewise.nn._custom_changes import Custom, change_of
from curvewise.nn._image_changes import BLUR
from curvewise.nn._perturbation import INTERPOLATIONS, Perturbation
from curvewise.nn.chance import uniform

__all__ = [
    "AT_ONCE",
    "INTERPOLATIONS",
    "PERTURBATIONS",
    "Perturbation",
    "draw_magnitudes",
    "find_perturbation",
    "perturb",
    "usual_magnitudes",
]

AT_ONCE = 1024
"""Examples that :func:`perturb` has in work at a time."""


def find_perturbation(perturbation: str | Perturbation | Custom) -> Perturbation:
    """A perturbation by its name, or one made of a function.

    Parameters
    ----------
    perturbation : str, Perturbation or callable
        A name of :data:`PERTURBATIONS`; a perturbation, which is given back; or a function
        ``(x, magnitude, rng) -> x`` of a batch of floating point (what the network takes, or what
        a layer gives), one number, and a ``torch.Generator`` on the device of x. It must keep
        shape and device. It is not asked at magnitude 0, which changes nothing. Its generator
        is set by the seed and the first example of the batch: what it draws depends on batches.

    Raises
    ------
    InputError
        If there is no such name.

    Examples
    --------
    >>> find_perturbation("rotation").unit
    'degrees counter-clockwise'
    >>> louder = find_perturbation(lambda x, magnitude, rng: x * 2**magnitude)
    >>> louder.apply(torch.ones(2, 1), torch.tensor([0.0, 3.0])).tolist()
    [[1.0], [8.0]]
    """
    if isinstance(perturbation, Perturbation):
        return perturbation
    if callable(perturbation):
        return _from_function(perturbation)
    if not isinstance(perturbation, str) or perturbation not in PERTURBATIONS:
        raise InputError(
            f"perturbation={brief(perturbation)} is not known: use one of {listed(PERTURBATIONS)}, "
            f"or a function (x, magnitude, rng) -> x.{suggest(perturbation, PERTURBATIONS)}"
        )
    return PERTURBATIONS[perturbation]


def usual_magnitudes(
    perturbation: str | Perturbation | Custom, count: int = 10
) -> NDArray[np.float64]:
    """Evenly spaced magnitudes over the usual range of a perturbation.

    Both ends belong to it, but for mixup between classes, which ends before one half, where the
    mixture is as much of the one class as of the other. Ranges with both signs are symmetric; an
    odd count has 0.

    Examples
    --------
    >>> usual_magnitudes("mixup-inter", 5).tolist()
    [0.0, 0.1, 0.2, 0.30000000000000004, 0.4]
    >>> usual_magnitudes("rotation", 5).tolist()
    [-180.0, -90.0, 0.0, 90.0, 180.0]
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 2:
        raise InputError(f"count={brief(count)}: give a whole number of at least 2.")
    found = find_perturbation(perturbation)
    low, high = found.usual
    grid = np.linspace(low, high, count, endpoint=found.pairs != "inter")
    return (grid - grid[::-1]) / 2 if low == -high else grid


def draw_magnitudes(low: float, high: float, count: int, seed: int = 0) -> NDArray[np.float64]:
    """Draw a magnitude for each example uniformly, as a function of the seed and its position.

    Examples
    --------
    >>> draw_magnitudes(-180, 180, 3).round(1).tolist() == (
    ...     draw_magnitudes(-180, 180, 5).round(1).tolist()[:3]
    ... )
    True
    """
    unit = uniform(torch.tensor(seed, dtype=torch.int64), torch.arange(count))
    return low + (high - low) * unit.numpy().astype(np.float64)


def perturb(
    x: NDArray[Any],
    name: str | Perturbation | Custom,
    magnitude: float | ArrayLike,
    seed: int = 0,
    *,
    fill: float = 0.0,
    interpolation: str = "bilinear",
    partner: NDArray[Any] | None = None,
    padding: int | None = None,
    special: Sequence[int] | None = None,
) -> NDArray[Any]:
    """Perturb examples in an array; each the same whatever is perturbed at a time.

    Parameters
    ----------
    x : ndarray, shape (examples, ...)
        Images of uint8 or of values from 0 to 1, (examples, channels, height, width); floating
        point; or tokens, (examples, length).
    name : str, Perturbation or callable
        As :func:`find_perturbation` takes it.
    magnitude : float, or array_like of shape (examples,)
        In its unit, one for all or one for each; 0 changes nothing.
    seed : int
        Decides noise and places.
    fill : float
        Value from 0 to 1 of what comes in from outside an image, or is cut out.
    interpolation : {"bilinear", "nearest"}
        For what moves pixels by parts of a pixel.
    partner : ndarray, optional
        As x: what each example is mixed with, for mixup.
    padding, special : int, sequence of int, optional
        Tokens that are not touched, see :meth:`Perturbation.fitted`.

    Examples
    --------
    >>> x = np.full((2, 1, 4, 4), 100, dtype=np.uint8)
    >>> perturb(x, "brightness", 0.2)[0, 0, 0].tolist()
    [120, 120, 120, 120]
    """
    perturbation = find_perturbation(name)
    x = np.asarray(x)
    _check_pixels(x, perturbation)
    many = np.ndim(magnitude) > 0
    strengths = torch.as_tensor(np.array(magnitude, dtype=np.float64)) if many else None
    if strengths is not None and strengths.shape != (len(x),):
        raise InputError(
            f"magnitude has shape {tuple(strengths.shape)}: give one number, or one for each of "
            f"the {len(x):,} examples."
        )
    if perturbation.learn is not None:
        whole = torch.from_numpy(np.array(x))
        perturbation = perturbation.fitted(whole, padding=padding, special=special)
    out = np.empty_like(x)
    for first in range(0, len(x), AT_ONCE):
        here = slice(first, first + AT_ONCE)
        changed = perturbation.apply(
            torch.from_numpy(np.array(x[here])),
            magnitude if strengths is None else strengths[here],  # type: ignore[arg-type]
            seed,
            positions=torch.arange(first, min(first + AT_ONCE, len(x))),
            fill=fill,
            interpolation=interpolation,
            partner=None if partner is None else torch.from_numpy(np.array(partner[here])),
        )
        out[here] = changed.numpy()
    return out


def _check_pixels(x: NDArray[Any], perturbation: Perturbation) -> None:
    if perturbation.of == "images" and x.dtype.kind == "f" and x.size:
        low, high = float(x.min()), float(x.max())
        if not -1e-3 <= low <= high <= 1 + 1e-3:
            raise InputError(
                f"x holds values from {low:g} to {high:g}: {perturbation.name!r} is for images "
                "with values from 0 to 1, before they are normalised, or of uint8."
            )


def _from_function(function: Custom) -> Perturbation:
    name = str(getattr(function, "__name__", type(function).__name__))
    infinite = float("inf")
    change = change_of(function, name)
    return Perturbation(name, "its own unit", -infinite, infinite, change, of="values")


def _described(
    name: str,
    unit: str,
    limits: tuple[float, float],
    change: Any,
    usual: tuple[float, float],
    **more: Any,
) -> Perturbation:
    return Perturbation(name, unit, *limits, change, usual=usual, **more)


_QUARTER, _HALF, _UP = (-0.25, 0.25), (-0.5, 0.5), (0, 0.5)
_TEXTS = {"of": "tokens", "learn": tokens.vocabulary}
PERTURBATIONS = {
    p.name: p
    for p in (
        _described(
            "mixup-intra",
            "shares of the partner",
            (0, 1),
            values.mixed,
            _UP,
            of="values",
            pairs="intra",
        ),
        _described(
            "mixup-inter",
            "shares of the partner",
            (0, 0.5),
            values.mixed,
            _UP,
            of="values",
            pairs="inter",
        ),
        _described(
            "rotation", "degrees counter-clockwise", (-180, 180), images.rotated, (-180, 180)
        ),
        _described("shift-x", "widths to the right", (-1, 1), images.shifted_right, _HALF),
        _described("shift-y", "heights downwards", (-1, 1), images.shifted_down, _HALF),
        _described("brightness", "shares of it added", (-1, 10), images.brighter, _QUARTER),
        _described("contrast", "shares of it added", (-1, 10), images.contrasted, _QUARTER),
        _described(
            "saturation", "shares of it added", (-1, 10), images.saturated, _QUARTER, coloured=True
        ),
        _described("hue", "turns of the wheel", _HALF, images.hued, _QUARTER, coloured=True),
        _described("colour", "shares of all four", _HALF, images.recoloured, _QUARTER),
        _described("intensity", "shares of it added", (-1, 10), values.scaled, _HALF, of="values"),
        _described(
            "noise", "standard deviations, 1 the whole range", (-1, 1), images.noisy, (0, 0.25)
        ),
        _described("blur", "pixels of standard deviation", (0, BLUR), images.blurred, (0, 3)),
        _described("cutout", "shares of height and width", (0, 1), images.cut_out, _UP),
        _described("token-dropout", "shares of the tokens", (0, 1), tokens.dropped, _UP, **_TEXTS),
        _described(
            "token-replacement", "shares of the tokens", (0, 1), tokens.replaced, _UP, **_TEXTS
        ),
        _described(
            "feature-noise",
            "standard deviations of each feature",
            (-10, 10),
            values.jittered,
            (0, 1),
            of="values",
            learn=values.spreads,
        ),
        _described(
            "feature-swap",
            "shares of the features",
            (0, 1),
            values.swapped,
            _UP,
            of="features",
            learn=values.donors,
        ),
    )
}
"""Perturbations by name.

Colours follow torchvision's ColorJitter, with a factor of 1 plus the magnitude: ``"colour"`` is
``"brightness"``, ``"contrast"``, ``"saturation"`` and ``"hue"`` in this order by one magnitude (the
first two for grey images). The augmentation of that name draws the four independently.
``"intensity"`` scales what the network takes, normalised as it is, or what a layer gives; of bytes
it is the same as brightness.
"""
