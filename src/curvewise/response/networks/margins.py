"""Margins: by how much the right class wins, and how far the inputs are from where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn.networks import features_of
from curvewise.response.networks.norms import spectral_product
from curvewise.response.networks.sites import Site, probe
from curvewise.response.networks.subject import Measure, Subject, checked_logits


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


def boundary_distances(subject: Subject, x: Tensor, y: Tensor, layer: int | None) -> tuple[Tensor, Tensor]:
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
        f"10% quantile of the inputs' distance to the boundary, to first order, over their spread ({_JIANG}).",
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


# How well classes are separated inside the network.

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


# What any measure should beat: how well the network does on the examples themselves.


def training_loss(subject: Subject) -> Tensor:
    """Mean cross-entropy on the examples."""
    return subject.loss


def training_accuracy(subject: Subject) -> Tensor:
    """Share of the examples that the network gets right."""
    return subject.accuracy


BASELINES = (
    Measure("loss", training_loss, 1, (), _FORWARD, "Cross-entropy on the examples themselves: a trivial baseline."),
    Measure(
        "accuracy", training_accuracy, -1, (), _FORWARD, "Accuracy on the examples themselves: a trivial baseline."
    ),
)
"""Measures of this module."""


# What a second training of the same network tells.


def disagreement(subject: Subject) -> Tensor:
    """Share of the examples for which the twin gives another class."""
    return (subject.logits.argmax(1) != _twin(subject).argmax(1)).float().mean()


def disagreement_soft(subject: Subject) -> Tensor:
    """Mean over examples of the total variation between the two networks' probabilities."""
    apart = subject.logits.softmax(1) - _twin(subject).softmax(1)
    return 0.5 * apart.abs().sum(dim=1).mean()


def _twin(subject: Subject) -> Tensor:
    twin = subject.twin
    if twin is None:
        raise InputError("there is no second network: pass twin=.")
    logits = subject.once("twin", lambda: checked_logits(subject, twin))
    if logits.shape != subject.logits.shape:
        raise InputError("twin has another number of outputs than the model.")
    return logits


TWINS = (
    Measure(
        "disagreement",
        disagreement,
        1,
        ("twin",),
        "one forward pass of the twin over all examples",
        "Share of examples for which a second training gives another class (Jiang et al. 2022, "
        "Assessing generalization via disagreement, which takes examples not trained on).",
    ),
    Measure(
        "disagreement-soft",
        disagreement_soft,
        1,
        ("twin",),
        "as disagreement, with which it is shared",
        "Total variation between the probabilities of two trainings; tells networks apart that "
        "both know the examples by heart.",
    ),
)
"""Measures of this module."""
