"""How strongly outputs react to inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from curvewise.nn.measures.measure import Measure
from curvewise.nn.measures.subject import Subject

MOST = 1000
"""Examples."""
EXACT = 16
"""Outputs up to which every one is differentiated; above, as many random mixtures of them."""


def jacobian(subject: Subject) -> Tensor:
    """Mean over examples of the Frobenius norm of the derivative of logits by inputs."""
    return _norms(subject, lambda logits: logits).mean()


def jacobian_softmax(subject: Subject) -> Tensor:
    """The same of the probabilities of classes."""
    return _norms(subject, lambda logits: logits.softmax(1)).mean()


def _norms(subject: Subject, finish: Callable[[Tensor], Tensor]) -> Tensor:
    """Frobenius norm of the Jacobian at each example."""
    norms = []
    for x, _ in subject.batches(MOST):
        leaf = x.detach().requires_grad_()
        out = finish(subject.answers(subject.model, leaf.clone()))
        squares = torch.zeros(len(x), device=x.device)
        for direction in directions(subject, out.shape[1]):
            slope = torch.autograd.grad(out, leaf, direction.expand_as(out), retain_graph=True)[0]
            squares += slope.flatten(1).square().sum(dim=1)
        norms.append(squares.sqrt())
    return torch.cat(norms)


def directions(subject: Subject, count: int) -> Tensor:
    """Rows v for which the sum of |vᵀJ|² is |J|², for few outputs exactly, else on average."""
    if count <= EXACT:
        return torch.eye(count, device=subject.device)
    rows = [subject.noise("jacobian", draw, count) for draw in range(EXACT)]
    scaled: Tensor = torch.stack(rows) / EXACT**0.5
    return scaled


_COST = f"up to {EXACT} backward passes over up to {MOST:,} examples"

JACOBIANS = (
    Measure(
        "jacobian",
        jacobian,
        1,
        ("continuous",),
        _COST,
        "Mean Frobenius norm of the derivative of logits by inputs.",
    ),
    Measure(
        "jacobian-softmax",
        jacobian_softmax,
        1,
        ("continuous",),
        _COST,
        "The same of probabilities (Novak et al. 2018, Sensitivity and generalization in neural "
        "networks).",
    ),
)
"""Measures of this module."""
