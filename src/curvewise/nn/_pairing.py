"""Partners for perturbations of pairs: drawn through an index per class over the whole sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def draw_partners(labels: Integers, pairs: str, count: int, seed: int) -> Integers:
    """Draw a partner for each example, anew for each magnitude.

    Parameters
    ----------
    labels : ndarray of int, shape (N,)
        Classes. For ``"intra"`` each must be there twice or not at all (:func:`lonely`).
    pairs : {"intra", "inter"}
        Of the same class: every example is then the partner of exactly one other. Or of another
        class, all examples of other classes being equally likely.
    count : int
        Magnitudes.
    seed : int
        With the number of the magnitude it fully decides the partners.

    Returns
    -------
    ndarray of int, shape (count, N)
        Positions of the partners.

    Examples
    --------
    >>> labels = np.array([0, 1, 0, 1])
    >>> draw_partners(labels, "intra", 1, seed=0)
    array([[2, 3, 0, 1]])
    """
    draw = _same_class if pairs == "intra" else _other_class
    return np.stack([draw(labels, np.random.default_rng([seed, i])) for i in range(count)])


def lonely(labels: Integers) -> NDArray[np.bool_]:
    """Which examples are the only ones of their class.

    >>> lonely(np.array([0, 1, 0])).tolist()
    [False, True, False]
    """
    _, place, count = np.unique(labels, return_inverse=True, return_counts=True)
    alone: NDArray[np.bool_] = count[place] == 1
    return alone


def _same_class(labels: Integers, random: np.random.Generator) -> Integers:
    """Put each class in a ring of random order; the partner is the next one."""
    order = random.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    _, first, count = np.unique(labels[order], return_index=True, return_counts=True)
    following = np.arange(1, len(labels) + 1)
    following[first + count - 1] = first
    partners = np.empty(len(labels), dtype=np.int64)
    partners[order] = order[following]
    return partners


def _other_class(labels: Integers, random: np.random.Generator) -> Integers:
    """Draw from all examples, sorted by class, with the example's own class cut out."""
    order = np.argsort(labels, kind="stable")
    _, first, place, count = np.unique(
        labels[order], return_index=True, return_inverse=True, return_counts=True
    )
    own, start = count[place], first[place]
    drawn = random.integers(len(labels) - own)
    partners = np.empty(len(labels), dtype=np.int64)
    partners[order] = order[np.where(drawn < start, drawn, drawn + own)]
    return partners
