"""How well classes are separated inside the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn._sites import Site, probe
from curvewise.nn.architectures import features_of
from curvewise.nn.measures.measure import Measure
from curvewise.nn.measures.subject import Subject

PLACES = 4
"""Rows and columns that images inside the network are averaged down to."""


def davies_bouldin(subject: Subject) -> Tensor:
    """Davies–Bouldin index of the classes at a layer, images averaged down to at most 4×4."""
    return subject.once("dbi", lambda: _index(subject, _at_layer(subject)))


def davies_bouldin_last(subject: Subject) -> Tensor:
    """Davies–Bouldin index of the classes in what the last linear layer is given."""
    return _index(subject, lambda x: features_of(subject.model, x))


def davies_bouldin_index(features: Tensor, labels: Tensor) -> Tensor:
    """Mean over classes of how badly each is separated from its worst neighbour; lower is better.

    Parameters
    ----------
    features : Tensor, shape (examples, D)
        Representations.
    labels : Tensor of int, shape (examples,)
        Classes; those without an example do not count.

    Examples
    --------
    >>> x = torch.tensor([[0.0], [2.0], [9.0], [11.0]])
    >>> float(davies_bouldin_index(x, torch.tensor([0, 0, 1, 1])))  # (1 + 1) / 9
    0.2222...
    """
    _, which, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        raise InputError("there are examples of one class only: nothing to tell apart.")
    features = features.double()
    shares = functional.one_hot(which).double().T / counts[:, None]
    centres = shares @ features
    spread = shares @ (features - centres[which]).norm(dim=1)
    apart = torch.cdist(centres, centres, compute_mode="donot_use_mm_for_euclid_dist")
    ratio: Tensor = (spread[:, None] + spread) / apart
    return ratio.fill_diagonal_(-torch.inf).max(dim=1).values.mean()


def find_site(subject: Subject, layer: int | str) -> Site:
    """A submodule by its name, or the n-th activation module that a forward pass calls."""

    def find() -> Site | None:
        x, _ = next(subject.batches(2))
        with torch.no_grad():
            return probe(subject.model, layer, x).site

    site = subject.once(("site", layer), find)
    if site is None:
        raise InputError("layer=None is the input: give a submodule's name or a number.")
    return site


@contextmanager
def caught(site: Site, catch: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """Have a function called with what a layer gives; what it returns takes its place."""
    calls = 0

    def hook(_: nn.Module, given: Any, out: Tensor) -> Tensor | None:
        nonlocal calls
        calls += 1
        return catch(out) if calls == site.call + 1 else None

    handle = site.module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def _at_layer(subject: Subject) -> Callable[[Tensor], Tensor]:
    site = find_site(subject, subject.layer)

    def represented(x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        # A copy, as a later layer may change it in place.
        with caught(site, lambda out: seen.append(out.clone())):
            subject.model(x)
        out = seen[0]
        if out.ndim == 4:
            height, width = (min(PLACES, side) for side in out.shape[2:])
            out = functional.adaptive_avg_pool2d(out, (height, width))
        return out.flatten(1)

    return represented


def _index(subject: Subject, represent: Callable[[Tensor], Tensor]) -> Tensor:
    with torch.no_grad():
        features = torch.cat([represent(x) for x, _ in subject.batches()])
    return davies_bouldin_index(features, subject.sample.y)


_NATEKAR = "Natekar and Sharma 2020, Representation based complexity measures, the winner of PGDL"

REPRESENTATIONS = (
    Measure(
        "dbi",
        davies_bouldin,
        1,
        (),
        "one forward pass over all examples",
        "Davies–Bouldin index of the classes at layer= (the first activation), images averaged "
        f"down to at most {PLACES}×{PLACES} and flattened ({_NATEKAR}).",
    ),
    Measure(
        "dbi-last",
        davies_bouldin_last,
        1,
        (),
        "one forward pass over all examples",
        "Davies–Bouldin index of the classes in what the last linear layer is given.",
    ),
)
"""Measures of this module."""
