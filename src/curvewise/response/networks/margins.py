"""Measures of the outputs: loss, margins, separation of the classes, and disagreement of two trainings."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from curvewise.errors import InputError
from curvewise.nn.networks import features_of
from curvewise.response.networks.sites import Site, caught, probe
from curvewise.response.networks.subject import Measure, Subject, checked_logits
from curvewise.response.networks.weights import squared_norms
from curvewise.text import arg

# Examples for distances to the boundary, which need a backward pass.
MOST = 2000
# Rows and columns that images inside the network are averaged down to, as the winner of PGDL did.
PLACES = 4


def output_margins(logits: Tensor, labels: Tensor) -> Tensor:
    """Output of the right class minus the largest other one, negative for a wrong answer.

    >>> output_margins(torch.tensor([[1.0, 4.0, 2.0]]), torch.tensor([1])).tolist()
    [2.0]
    """
    right = logits.gather(1, labels[:, None])[:, 0]
    others = logits.scatter(1, labels[:, None], -torch.inf)
    return right - others.max(dim=1).values


def margin(subject: Subject, share: float) -> Tensor:
    """Quantile of the output margins."""
    return torch.quantile(output_margins(subject.logits, subject.sample.y), share)


def boundary_margin(subject: Subject, layer: int | None, share: float) -> Tensor:
    """Quantile of the distances to the boundary at a layer (None: the input), over the spread there."""
    if subject.sample.classes < 2:
        raise InputError("there are examples of one class only.")
    parts = [boundary_distances(subject, x, y, layer) for x, y in subject.batches(MOST)]
    places, distances = (torch.cat(part) for part in zip(*parts, strict=True))
    return torch.quantile(distances, share) / _spread(places)


def boundary_distances(subject: Subject, x: Tensor, y: Tensor, layer: int | None) -> tuple[Tensor, Tensor]:
    """Places of examples, and their distance to the boundary of the next class, to first order."""
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
    # To first order the boundary is at the margin over the length of its gradient (Jiang et al. 2019).
    slope = torch.autograd.grad(margins.sum(), places[0])[0].flatten(1).norm(dim=1)
    return places[0].detach().flatten(1), margins.detach() / slope.clamp(min=1e-12)


def _spread(values: Tensor) -> Tensor:
    """Root of the sum over columns of their variance over examples."""
    return values.double().var(dim=0).sum().sqrt()


def davies_bouldin(subject: Subject) -> Tensor:
    """Davies–Bouldin index of the classes at a layer, images averaged down to at most 4×4."""
    return subject.once("dbi", lambda: _index(subject, _at_layer(subject)))


def davies_bouldin_index(features: Tensor, labels: Tensor) -> Tensor:
    """Mean over classes of the overlap of each with its worst neighbour; lower is better.

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
        raise InputError("there are examples of one class only: nothing to separate.")
    features = features.double()
    shares = functional.one_hot(which).double().T / counts[:, None]
    centres = shares @ features
    spread = shares @ (features - centres[which]).norm(dim=1)
    # Products of matrices would lose the digits of centres that lie close together.
    apart = torch.cdist(centres, centres, compute_mode="donot_use_mm_for_euclid_dist")
    ratio: Tensor = (spread[:, None] + spread) / apart
    return ratio.fill_diagonal_(-torch.inf).max(dim=1).values.mean()


def _index(subject: Subject, represent: Callable[[Tensor], Tensor]) -> Tensor:
    with torch.no_grad():
        features = torch.cat([represent(x) for x, _ in subject.batches()])
    return davies_bouldin_index(features, subject.sample.y)


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


def find_site(subject: Subject, layer: int | str) -> Site:
    """Find a submodule by its name, or the n-th activation module that a forward pass calls."""

    def find() -> Site | None:
        x, _ = next(subject.batches(2))
        with torch.no_grad():
            return probe(subject.model, layer, x).site

    site = subject.once(("site", layer), find)
    if site is None:
        raise InputError("is the input: give a submodule's name or a number.", argument="layer", value=None)
    return site


def twin_logits(subject: Subject) -> Tensor:
    """Outputs of the second training for every example."""
    twin = subject.twin
    if twin is None:
        raise InputError(f"there is no second network: pass {arg('twin')}.")
    logits = subject.once("twin", lambda: checked_logits(subject, twin))
    if logits.shape != subject.logits.shape:
        raise InputError("twin has another number of outputs than the model.")
    return logits


_FORWARD = "one forward pass over all examples, shared"
_ALONE = "one forward pass over all examples"
_BACK = f"one forward and one backward pass over up to {MOST:,} examples"
_JIANG = "Jiang et al. 2019, Predicting the generalization gap with margin distributions"
_NATEKAR = "Natekar and Sharma 2020, Representation based complexity measures, the winner of PGDL"

BASELINES = (
    Measure(
        "loss",
        lambda s: s.loss,
        1,
        cost=_FORWARD,
        about="Cross-entropy on the examples themselves: a trivial baseline.",
    ),
    Measure(
        "accuracy",
        lambda s: s.accuracy,
        -1,
        cost=_FORWARD,
        about="Accuracy on the examples themselves: a trivial baseline.",
    ),
)
"""Trivial measures, which any other should beat."""

MARGINS = (
    Measure(
        "margin-10",
        lambda s: margin(s, 0.1),
        -1,
        cost=_FORWARD,
        about="10% quantile of output margins: the right class's output less the largest other one.",
    ),
    Measure("margin-50", lambda s: margin(s, 0.5), -1, cost=_FORWARD, about="Median of output margins."),
    Measure(
        "margin-10-spectral",
        # Half the logarithm of the product of squares is that of the product of norms.
        lambda s: margin(s, 0.1).double() / (0.5 * squared_norms(s, "kernel").log().sum()).exp(),
        -1,
        cost=_FORWARD,
        about="10% quantile of output margins over the product of spectral norms of kernels (Bartlett et al. 2017, "
        "Spectrally-normalized margin bounds).",
    ),
    Measure(
        "margin-10-spread",
        lambda s: margin(s, 0.1) / _spread(s.logits),
        -1,
        cost=_FORWARD,
        about="10% quantile of output margins over the spread of the outputs.",
    ),
    Measure(
        "margin-10-input",
        lambda s: boundary_margin(s, None, 0.1),
        -1,
        ("continuous",),
        _BACK,
        f"10% quantile of the inputs' distance to the boundary, to first order, over their spread ({_JIANG}).",
    ),
    Measure(
        "margin-10-layer1",
        lambda s: boundary_margin(s, 1, 0.1),
        -1,
        cost=_BACK,
        about=f"The same at the output of the first activation ({_JIANG}).",
    ),
)
"""Measures of the distance to wrong answers."""

REPRESENTATIONS = (
    Measure(
        "dbi",
        davies_bouldin,
        1,
        cost=_ALONE,
        about="Davies–Bouldin index of the classes at a layer (the first activation), images averaged down to at most "
        f"{PLACES}×{PLACES} and flattened ({_NATEKAR}).",
    ),
    Measure(
        "dbi-last",
        lambda s: _index(s, lambda x: features_of(s.model, x)),
        1,
        cost=_ALONE,
        about="Davies–Bouldin index of the classes in what the last linear layer is given.",
    ),
)
"""Measures of how well classes are separated inside the network."""

TWINS = (
    Measure(
        "disagreement",
        lambda s: (s.logits.argmax(1) != twin_logits(s).argmax(1)).float().mean(),
        1,
        ("twin",),
        "one forward pass of the twin over all examples",
        "Share of examples for which a second training gives another class (Jiang et al. 2022, Assessing "
        "generalization via disagreement, which takes examples not trained on).",
    ),
    Measure(
        "disagreement-soft",
        lambda s: 0.5 * (s.logits.softmax(1) - twin_logits(s).softmax(1)).abs().sum(dim=1).mean(),
        1,
        ("twin",),
        "as disagreement, with which it is shared",
        "Total variation between the probabilities of two trainings; tells networks apart that both know the examples "
        "by heart.",
    ),
)
"""Measures of how much a second training of the same network differs."""
