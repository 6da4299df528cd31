"""Margins: by how much the right class wins, and how far the inputs are from where it does not."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn.measures.measure import Measure
from curvewise.nn.measures.norms import spectral_product
from curvewise.nn.measures.representations import caught, find_site
from curvewise.nn.measures.subject import Subject


def output_margins(logits: Tensor, labels: Tensor) -> Tensor:
    """The right class's output less the largest other one, negative for a wrong answer.

    >>> output_margins(torch.tensor([[1.0, 4.0, 2.0]]), torch.tensor([1])).tolist()
    [2.0]
    """
    right = logits.gather(1, labels[:, None])[:, 0]
    others = logits.scatter(1, labels[:, None], -torch.inf)
    return right - others.max(dim=1).values


def margin(subject: Subject, share: float) -> Tensor:
    """A quantile of the output margins."""
    return torch.quantile(output_margins(subject.logits, subject.sample.y), share)


def margin_over_spectral(subject: Subject, share: float) -> Tensor:
    """A quantile of the output margins over the product of spectral norms."""
    return margin(subject, share).double() / (0.5 * spectral_product(subject)).exp()


def margin_over_spread(subject: Subject, share: float) -> Tensor:
    """A quantile of the output margins over the spread of the outputs."""
    return margin(subject, share) / _spread(subject.logits)


def margin_at_input(subject: Subject, share: float) -> Tensor:
    """A quantile of the distances to the boundary, over the spread of the inputs."""
    return _at_boundary(subject, None, share)


def margin_at_layer(subject: Subject, share: float) -> Tensor:
    """The same at the first activation."""
    return _at_boundary(subject, 1, share)


def boundary_distances(
    subject: Subject, x: Tensor, y: Tensor, layer: int | None
) -> tuple[Tensor, Tensor]:
    """Where examples are, and how far from the boundary to the next class, to first order."""
    places: list[Tensor] = []

    def kept(value: Tensor) -> Tensor:
        places.append(value.detach().requires_grad_())
        return places[0].clone()  # which a later layer may change in place

    if layer is None:
        logits = subject.answers(subject.model, kept(x))
    else:
        with caught(find_site(subject, layer), kept):
            logits = subject.answers(subject.model, x)
    margins = output_margins(logits, y)
    slope = torch.autograd.grad(margins.sum(), places[0])[0].flatten(1).norm(dim=1)
    return places[0].detach().flatten(1), margins.detach() / slope.clamp(min=1e-12)


def _at_boundary(subject: Subject, layer: int | None, share: float) -> Tensor:
    if subject.sample.classes < 2:
        raise InputError("there are examples of one class only.")
    parts = [boundary_distances(subject, x, y, layer) for x, y in subject.batches(MOST)]
    places, distances = (torch.cat(part) for part in zip(*parts, strict=True))
    return torch.quantile(distances, share) / _spread(places)


def _spread(values: Tensor) -> Tensor:
    """Root of the sum over columns of their variance over examples."""
    return values.double().var(dim=0).sum().sqrt()


MOST = 2000
"""Examples for distances to the boundary."""

_FORWARD = "one forward pass over all examples, shared"
_BACK = f"one forward and one backward pass over up to {MOST:,} examples"
_JIANG = "Jiang et al. 2019, Predicting the generalization gap with margin distributions"

MARGINS = (
    Measure(
        "margin-10",
        partial(margin, share=0.1),
        -1,
        (),
        _FORWARD,
        "10% quantile of output margins: the right class's output less the largest other one.",
    ),
    Measure("margin-50", partial(margin, share=0.5), -1, (), _FORWARD, "Median of output margins."),
    Measure(
        "margin-10-spectral",
        partial(margin_over_spectral, share=0.1),
        -1,
        (),
        _FORWARD,
        "10% quantile of output margins over the product of spectral norms of kernels (Bartlett "
        "et al. 2017, Spectrally-normalized margin bounds).",
    ),
    Measure(
        "margin-10-spread",
        partial(margin_over_spread, share=0.1),
        -1,
        (),
        _FORWARD,
        "10% quantile of output margins over the spread of the outputs.",
    ),
    Measure(
        "margin-10-input",
        partial(margin_at_input, share=0.1),
        -1,
        ("continuous",),
        _BACK,
        "10% quantile of the inputs' distance to the boundary, to first order, over their spread "
        f"({_JIANG}).",
    ),
    Measure(
        "margin-10-layer1",
        partial(margin_at_layer, share=0.1),
        -1,
        (),
        _BACK,
        f"The same at the output of the first activation ({_JIANG}).",
    ),
)
"""Measures of this module."""
