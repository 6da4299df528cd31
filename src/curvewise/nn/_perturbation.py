"""A perturbation: what it changes, within which magnitudes, and how it is applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.io._table import brief, listed
from curvewise.nn._draw import Draw, each
from curvewise.nn._token_changes import Roles

INTERPOLATIONS = ("bilinear", "nearest")
WANTED = {
    "images": "images of uint8 or floating point, (batch, channels, height, width)",
    "values": "floating point, (batch, ...), or images of uint8",
    "tokens": "tokens as whole numbers, (batch, length)",
    "features": "features of floating point, (batch, features)",
}
"""What each kind of perturbation takes."""


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
        self,
        x: Tensor,
        *,
        padding: int | None = None,
        special: Sequence[int] | None = None,
        mask: int | None = None,
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
        >>> from curvewise.nn.perturbations import PERTURBATIONS
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
        >>> from curvewise.nn.perturbations import PERTURBATIONS
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
                f"magnitude={brief(magnitude)} of {self.name!r}: give {self.unit} from "
                f"{self.low:g} to {self.high:g}."
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
                f"x holds {dtype} of shape {tuple(x.shape)}: perturbation={self.name!r} is for "
                f"{WANTED[self.of]}."
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
            raise InputError(
                f"partner has shape {tuple(partner.shape)}: give one for each of x, "
                f"{tuple(x.shape)}."
            )
        return None if partner is None else self._values(partner)


def _is_bytes(x: Tensor, perturbation: Perturbation) -> bool:
    return x.dtype == torch.uint8 and perturbation.of != "tokens"


def _positions(positions: Tensor | None, x: Tensor) -> Tensor:
    if positions is None:
        return torch.arange(len(x), device=x.device)
    if positions.shape != (len(x),):
        raise InputError(
            f"positions has shape {tuple(positions.shape)}: give one for each of the {len(x)} "
            "examples."
        )
    return positions.to(device=x.device, dtype=torch.int64)


def _check_how(fill: float, interpolation: str) -> None:
    if interpolation not in INTERPOLATIONS:
        raise InputError(f"interpolation={interpolation!r}: use {listed(INTERPOLATIONS)}.")
    if not 0 <= fill <= 1:
        raise InputError(f"fill={fill!r}: give a value from 0 (black) to 1 (white).")
