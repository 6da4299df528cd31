"""Perturbations of images, texts and tables by name: how far off, in which direction, of what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn.chance import hashed, uniform
from curvewise.response.networks import changes as images
from curvewise.response.networks import changes as tokens
from curvewise.response.networks import changes as values
from curvewise.response.networks.changes import BLUR, Draw, Roles, each
from curvewise.text import brief, list_names, suggest

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
            f"perturbation={brief(perturbation)} is not known: use one of {list_names(PERTURBATIONS)}, "
            f"or a function (x, magnitude, rng) -> x.{suggest(perturbation, PERTURBATIONS)}"
        )
    return PERTURBATIONS[perturbation]


def usual_magnitudes(perturbation: str | Perturbation | Custom, count: int = 10) -> NDArray[np.float64]:
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
    name: str, unit: str, limits: tuple[float, float], change: Any, usual: tuple[float, float], **more: Any
) -> Perturbation:
    return Perturbation(name, unit, *limits, change, usual=usual, **more)


_QUARTER, _HALF, _UP = (-0.25, 0.25), (-0.5, 0.5), (0, 0.5)
_TEXTS = {"of": "tokens", "learn": tokens.vocabulary}


@dataclass(frozen=True)
class Perturbation:
    """A family of changes to examples; magnitude 0 changes nothing.

    Attributes
    ----------
    name, unit : str
        What it is called and what magnitudes are measured in.
    low, high : float
        The magnitudes that it takes. Where ``low`` is negative the sign is a direction.
    change : callable
        ``(x, magnitude, draw)`` with magnitudes of shape (B,); ``(x, magnitude, partner)`` where
        there are pairs. Images come with values from 0 to 1, and what is given back is clipped to
        that.
    coloured : bool
        Whether it needs three channels.
    of : {"images", "values", "tokens", "features"}
        What it changes: pixels; any floating point, at the input or at any layer; tokens of texts;
        or rows of a table.
    pairs : {"intra", "inter"}, optional
        Whether each example has a partner, of its own class or of another.
    usual : tuple of float
        The range that is looked at unless one asks for another.
    learn : callable, optional
        What it has to know of the whole sample, see :meth:`fitted`.
    known : object, optional
        What it knows.
    """

    name: str
    unit: str
    low: float
    high: float
    change: Callable[[Tensor, Tensor, Any], Tensor]
    coloured: bool = False
    of: str = "images"
    pairs: str | None = None
    usual: tuple[float, float] = (0.0, 1.0)
    learn: Callable[[Tensor, Roles], Any] | None = None
    known: Any = field(default=None, compare=False, repr=False)

    def fitted(
        self, x: Tensor, *, padding: int | None = None, special: Sequence[int] | None = None, mask: int | None = None
    ) -> Perturbation:
        """The same, knowing the sample: spreads, other examples, tokens.

        Feature noise is measured in spreads over the sample, features are swapped between its
        examples, tokens are replaced by its tokens. One that was not fitted takes the batch that
        it is applied to for the sample. Those that need nothing, and those that were fitted
        before, stay as they are.

        Parameters
        ----------
        x : Tensor, shape (examples, ...)
            The sample, in the order that positions count; what the layer gives for it, where
            a layer is perturbed. Best on the device where it will be applied.
        padding : int, optional
            The token that fills short texts up. It is never touched.
        special : sequence of int, optional
            Other tokens that are never touched, such as those for beginning and end. Unless
            given: those that every text has equally often, where there are at least 32 texts.
        mask : int, optional
            What a dropped token becomes; the padding unless given.

        Examples
        --------
        >>> from curvewise.response.networks.perturbations import PERTURBATIONS
        >>> texts = torch.tensor([[1, 5, 6, 2, 0], [1, 7, 2, 0, 0]])
        >>> drop = PERTURBATIONS["token-dropout"].fitted(texts, padding=0, special=(1, 2), mask=9)
        >>> drop.apply(texts, 1.0).tolist()
        [[1, 9, 9, 2, 0], [1, 9, 2, 0, 0]]
        """
        if self.learn is None or self.known is not None:
            return self
        return replace(self, known=self.learn(self._values(x), Roles(padding, special, mask)))

    def apply(
        self,
        x: Tensor,
        magnitude: float | Tensor,
        seed: int = 0,
        *,
        positions: Tensor | None = None,
        fill: float = 0.0,
        interpolation: str = "bilinear",
        partner: Tensor | None = None,
    ) -> Tensor:
        """Perturb a batch of examples, on the device it is on.

        Parameters
        ----------
        x : Tensor, shape (B, ...)
            As ``of`` says. Images are uint8, or floating point from 0 to 1; the result is of the
            same kind.
        magnitude : float, or Tensor of shape (B,)
            One for all, or one for each example. Whether it is in range is not looked up on a
            device other than the CPU, which would have to be waited for.
        seed : int
            Decides noise and places. Together with ``positions`` it fully determines the result.
        positions : Tensor of int, shape (B,), optional
            Position of each example in the sample: parts of a batch with their positions get the
            same noise as the whole. 0, 1, … unless given.
        fill : float
            Value from 0 to 1 of what comes in from outside an image, or is cut out.
        interpolation : {"bilinear", "nearest"}
            For what moves pixels by parts of a pixel.
        partner : Tensor, shape (B, ...), optional
            For those with pairs: what each example is mixed with.

        Returns
        -------
        Tensor
            As x.

        Examples
        --------
        >>> from curvewise.response.networks.perturbations import PERTURBATIONS
        >>> x = torch.tensor([[[[0, 100, 200]]]], dtype=torch.uint8)
        >>> PERTURBATIONS["cutout"].apply(x, 1, fill=0.5).tolist()
        [[[[128, 128, 128]]]]
        """
        before = self._values(x)
        magnitudes = self._magnitudes(magnitude, before)
        _check_how(fill, interpolation)
        aside: Any = self._partner(x, partner)
        if self.pairs is None:
            known = self.known
            if self.learn is not None and known is None:
                known = self.learn(before, Roles())
            number = torch.full((), seed, dtype=torch.int64, device=x.device)
            aside = Draw(number, _positions(positions, x), fill, interpolation, known)
        changed = self.change(before, magnitudes, aside)
        if self.of == "images" or x.dtype == torch.uint8:
            changed = changed.clamp(0, 1)
        still = each(magnitudes == 0, x.ndim)  # resampling by nothing would leave a trace
        changed = torch.where(still, before, changed)
        return (changed * 255).round().to(x.dtype) if _is_bytes(x, self) else changed.to(x.dtype)

    def check(self, magnitude: Any, channels: int | None = None) -> None:
        """Refuse a magnitude out of range, or images without colours where they are needed."""
        number = isinstance(magnitude, Real) and not isinstance(magnitude, bool)
        if not number or not self.low <= float(magnitude) <= self.high:
            raise InputError(
                f"magnitude={brief(magnitude)} of {self.name!r}: give {self.unit} from {self.low:g} to {self.high:g}."
            )
        if self.pairs == "inter" and magnitude >= 0.5:
            raise InputError(
                f"magnitude={brief(magnitude)} of {self.name!r}: give less than 0.5, from where on "
                "the mixture is no longer of the first one's class."
            )
        if self.coloured and channels not in (None, 3):
            raise InputError(
                f"perturbation={self.name!r} is for colours; these images have {channels} "
                f"channel{'' if channels == 1 else 's'}, not 3."
            )

    def check_input(self, x: Any) -> None:
        """Refuse examples, a Tensor or ndarray, of a kind or shape that it cannot change."""
        dtype = str(x.dtype).removeprefix("torch.")
        floating, whole = dtype.startswith(("float", "bfloat")), dtype.lstrip("u").startswith("int")
        picture = x.ndim == 4 and (dtype == "uint8" or floating)
        fits = {
            "images": picture,
            "values": picture or (floating and x.ndim > 1),
            "tokens": whole and x.ndim == 2,
            "features": floating and x.ndim == 2,
        }
        if not fits[self.of]:
            raise InputError(
                f"x holds {dtype} of shape {tuple(x.shape)}: perturbation={self.name!r} is for {WANTED[self.of]}."
            )
        if self.coloured:
            self.check(0.0, x.shape[1])

    def _values(self, x: Tensor) -> Tensor:
        """What is computed with: at least float32, images of bytes as values from 0 to 1."""
        self.check_input(x)
        if self.of == "tokens" or x.dtype in (torch.float32, torch.float64):
            return x
        return x.to(torch.float32) / (255 if x.dtype == torch.uint8 else 1)

    def _magnitudes(self, magnitude: float | Tensor, x: Tensor) -> Tensor:
        kind = x.dtype if x.is_floating_point() else torch.float32
        if not isinstance(magnitude, Tensor):
            self.check(magnitude)
            return torch.full((len(x),), float(magnitude), dtype=kind, device=x.device)
        if magnitude.ndim and magnitude.shape != (len(x),):
            raise InputError(
                f"magnitude has shape {tuple(magnitude.shape)}: give one number, or one for each "
                f"of the {len(x)} examples."
            )
        if magnitude.device.type == "cpu" and len(x):
            self.check(float(magnitude.min()))
            self.check(float(magnitude.max()))
        return magnitude.to(device=x.device, dtype=kind).expand(len(x))

    def _partner(self, x: Tensor, partner: Tensor | None) -> Tensor | None:
        if (partner is not None) != (self.pairs is not None):
            raise InputError(
                f"perturbation={self.name!r} "
                + (
                    "changes one example at a time: leave partner out."
                    if self.pairs is None
                    else "mixes pairs: give partner=, an example for each of x."
                )
            )
        if partner is not None and partner.shape != x.shape:
            raise InputError(f"partner has shape {tuple(partner.shape)}: give one for each of x, {tuple(x.shape)}.")
        return None if partner is None else self._values(partner)


PERTURBATIONS = {
    p.name: p
    for p in (
        _described("mixup-intra", "shares of the partner", (0, 1), values.mixed, _UP, of="values", pairs="intra"),
        _described("mixup-inter", "shares of the partner", (0, 0.5), values.mixed, _UP, of="values", pairs="inter"),
        _described("rotation", "degrees counter-clockwise", (-180, 180), images.rotated, (-180, 180)),
        _described("shift-x", "widths to the right", (-1, 1), images.shifted_right, _HALF),
        _described("shift-y", "heights downwards", (-1, 1), images.shifted_down, _HALF),
        _described("brightness", "shares of it added", (-1, 10), images.brighter, _QUARTER),
        _described("contrast", "shares of it added", (-1, 10), images.contrasted, _QUARTER),
        _described("saturation", "shares of it added", (-1, 10), images.saturated, _QUARTER, coloured=True),
        _described("hue", "turns of the wheel", _HALF, images.hued, _QUARTER, coloured=True),
        _described("colour", "shares of all four", _HALF, images.recoloured, _QUARTER),
        _described("intensity", "shares of it added", (-1, 10), values.scaled, _HALF, of="values"),
        _described("noise", "standard deviations, 1 the whole range", (-1, 1), images.noisy, (0, 0.25)),
        _described("blur", "pixels of standard deviation", (0, BLUR), images.blurred, (0, 3)),
        _described("cutout", "shares of height and width", (0, 1), images.cut_out, _UP),
        _described("token-dropout", "shares of the tokens", (0, 1), tokens.dropped, _UP, **_TEXTS),
        _described("token-replacement", "shares of the tokens", (0, 1), tokens.replaced, _UP, **_TEXTS),
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
            "feature-swap", "shares of the features", (0, 1), values.swapped, _UP, of="features", learn=values.donors
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


# A perturbation: what it changes, within which magnitudes, and how it is applied.

INTERPOLATIONS = ("bilinear", "nearest")
WANTED = {
    "images": "images of uint8 or floating point, (batch, channels, height, width)",
    "values": "floating point, (batch, ...), or images of uint8",
    "tokens": "tokens as whole numbers, (batch, length)",
    "features": "features of floating point, (batch, features)",
}
"""What each kind of perturbation takes."""


def _is_bytes(x: Tensor, perturbation: Perturbation) -> bool:
    return x.dtype == torch.uint8 and perturbation.of != "tokens"


def _positions(positions: Tensor | None, x: Tensor) -> Tensor:
    if positions is None:
        return torch.arange(len(x), device=x.device)
    if positions.shape != (len(x),):
        raise InputError(f"positions has shape {tuple(positions.shape)}: give one for each of the {len(x)} examples.")
    return positions.to(device=x.device, dtype=torch.int64)


def _check_how(fill: float, interpolation: str) -> None:
    if interpolation not in INTERPOLATIONS:
        raise InputError(f"interpolation={interpolation!r}: use {list_names(INTERPOLATIONS)}.")
    if not 0 <= fill <= 1:
        raise InputError(f"fill={fill!r}: give a value from 0 (black) to 1 (white).")


# Perturbations that are a function someone wrote.

Custom = Callable[[Tensor, float, torch.Generator], Tensor]


def change_of(function: Custom, name: str) -> Callable[[Tensor, Tensor, Draw], Tensor]:
    """A change that calls the function once for each magnitude in a batch, and checks its answer.

    It is not called for magnitude 0. Its generator is set by the seed and the first position.
    """

    def change(x: Tensor, magnitudes: Tensor, draw: Draw) -> Tensor:
        state = int(hashed(draw.seed, draw.positions[0])) & (2**63 - 1)
        rng = torch.Generator(device=x.device).manual_seed(state)
        out = x.clone()
        for magnitude in sorted(set(magnitudes.tolist()) - {0.0}):
            rows = (magnitudes == magnitude).nonzero().squeeze(1)
            said = float(f"{magnitude:.7g}") if x.dtype == torch.float32 else magnitude
            out[rows] = _checked(function(x[rows], said, rng), x[rows], name)
        return out

    return change


def _checked(changed: Any, x: Tensor, name: str) -> Tensor:
    if not isinstance(changed, Tensor):
        raise InputError(f"perturbation={name!r} returned {type(changed).__name__}: return the changed tensor.")
    if changed.shape != x.shape:
        raise InputError(
            f"perturbation={name!r} returned shape {tuple(changed.shape)} for an x of {tuple(x.shape)}: keep the shape."
        )
    if changed.device != x.device:
        raise InputError(
            f"perturbation={name!r} returned a tensor on {changed.device} for an x on {x.device}: keep the device."
        )
    if not changed.is_floating_point():
        raise InputError(
            f"perturbation={name!r} returned {changed.dtype} for an x of {x.dtype}: return floating point."
        )
    return changed.to(x.dtype)
