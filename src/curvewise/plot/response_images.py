"""Images for a sheet: taken from whatever holds them, paired, and perturbed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.types import FloatArray

if TYPE_CHECKING:
    from curvewise.nn.perturbations import Perturbation

POOL = 512
"""Examples that rows and their partners are chosen from."""


@dataclass(frozen=True, eq=False)
class Images:
    """Pixels from 0 to 1, shape (N, C, H, W), with what else is known of them."""

    pixels: FloatArray
    labels: NDArray[np.int64] | None
    mean: FloatArray | None
    std: FloatArray | None

    def chosen(self, rows: Sequence[int] | NDArray[np.int64]) -> Images:
        """Some of them."""
        at = np.asarray(rows, dtype=np.int64)
        labels = None if self.labels is None else self.labels[at]
        return Images(self.pixels[at], labels, self.mean, self.std)


def take_images(
    data: Any,
    labels: ArrayLike | None,
    examples: int,
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
    random: np.random.Generator,
) -> Images:
    """Examples to choose from, in their own order where all are taken."""
    from curvewise.nn.sample import draw_sample

    given, none = _as_images(data), False
    if labels is None and hasattr(given, "ndim"):
        labels, none = np.zeros(len(given), dtype=np.int64), True
    drawn = draw_sample(given, labels, examples=max(POOL, examples), mean=mean, std=std, rng=random)
    if drawn.x.ndim != 4 or drawn.x.shape[1] not in (1, 3):
        raise InputError(
            f"images has shape {tuple(drawn.x.shape)}: give (examples, channels, height, width) "
            "with 1 or 3 channels."
        )
    pixels = drawn.pixels(drawn.x).numpy().astype(np.float64)
    if pixels.min() < -0.01 or pixels.max() > 1.01:
        raise InputError(
            f"images holds values from {pixels.min():.3g} to {pixels.max():.3g}: give uint8, "
            "values from 0 to 1, or the mean and std that they were normalised with."
        )
    order = np.argsort(drawn.rows) if len(drawn) <= examples else np.arange(len(drawn))
    centre, spread = (None if v is None else v.numpy() for v in (drawn.mean, drawn.std))
    known = None if none else drawn.y.numpy()
    return Images(pixels.clip(0, 1), known, centre, spread).chosen(order)


def _as_images(data: Any) -> Any:
    """Arrays with an axis of channels, after that of examples; the rest as it is."""
    if isinstance(data, list) and data and all(isinstance(i, np.ndarray) for i in data):
        if len({i.shape for i in data}) > 1:
            raise InputError("images have different sizes: give images of one size.")
        data = np.stack(data)
    if getattr(data, "ndim", 0) == 3:
        return data[:, None]
    if isinstance(data, np.ndarray) and data.ndim == 4:
        return np.moveaxis(data, -1, 1) if data.shape[1] not in (1, 3) else data
    return data


def choose_rows(pool: Images, examples: int) -> list[int]:
    """One of each class in turn, in the order of the classes; the first ones without classes."""
    count = min(examples, len(pool.pixels))
    if pool.labels is None or count == len(pool.pixels):
        return list(range(count))
    turn = np.zeros(len(pool.labels), dtype=np.int64)
    for label in np.unique(pool.labels):
        here = np.flatnonzero(pool.labels == label)
        turn[here] = np.arange(len(here))
    chosen: list[int] = np.lexsort((pool.labels, turn))[:count].tolist()
    return sorted(chosen, key=lambda i: (int(pool.labels[i]), turn[i]))  # type: ignore[index]


def choose_partners(
    pool: Images, rows: Sequence[int], kind: str, random: np.random.Generator
) -> list[int]:
    """For each row another example of its class, or one of another class."""
    if pool.labels is None:
        raise InputError(
            "labels is missing: which images are mixed depends on their classes. Pass labels=."
        )
    partners = []
    for row in rows:
        same = pool.labels == pool.labels[row]
        same[row] = kind == "inter"
        others = np.flatnonzero(same if kind == "intra" else ~same)
        if not len(others):
            label = pool.labels[row]
            lack = (
                f"class {label} has no second example"
                if kind == "intra"
                else (f"there is no class but {label}")
            )
            raise InputError(
                f"perturbation='mixup-{kind}': {lack} among the images. Give more images."
            )
        partners.append(int(random.choice(others)))
    return partners


def perturbed(
    images: Images,
    how: Perturbation,
    magnitude: float,
    seed: int,
    partner: Images | None,
    options: dict[str, Any],
) -> FloatArray:
    """Pixels after the perturbation; what is for values of any kind sees normalised ones."""
    from curvewise.nn.perturbations import perturb

    mixed = None if partner is None else partner.pixels.astype(np.float32)
    if images.mean is None or images.std is None or how.of == "images" or partner is not None:
        x = images.pixels.astype(np.float32)
        changed = perturb(x, how, magnitude, seed, partner=mixed, **options)
    else:
        centre, spread = (v[:, None, None] for v in (images.mean, images.std))
        x = ((images.pixels - centre) / spread).astype(np.float32)
        changed = perturb(x, how, magnitude, seed, **options) * spread + centre
    return np.clip(np.asarray(changed, dtype=np.float64), 0, 1)
