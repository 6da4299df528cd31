"""A copy of a network with a new last layer, trained for a while."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn._feature_heads import LinearLayer, find_classifier
from curvewise.nn._flags import own_generator, reproducible
from curvewise.nn._labelled import Labelled, own_terms
from curvewise.nn._pooling import channels_at_end, main_tensor, pooled
from curvewise.nn.schedules import rate_factors
from curvewise.nn.settings import Training
from curvewise.progress import Advance

MOMENTUM = 0.9
SHOWN = 256
"""Test examples in a batch."""

SCHEDULES = ("constant", "linear", "cosine")


@dataclass(frozen=True, eq=False)
class Tuning:
    """How to fine-tune; see :func:`curvewise.nn.finetuning.finetuning_score`."""

    epochs: int
    batch: int
    schedule: str
    precision: str
    place: torch.device
    prepare: Callable[[Tensor], Any]
    features: Callable[[nn.Module, Any], Tensor] | None

    def __post_init__(self) -> None:
        if int(self.epochs) != self.epochs or self.epochs < 1:
            raise InputError(f"epochs={self.epochs!r}: give a whole number of at least 1.")
        if self.schedule not in SCHEDULES:
            raise InputError(f"schedule={self.schedule!r}: use one of {', '.join(SCHEDULES)}.")
        if self.precision not in ("float32", "bfloat16"):
            raise InputError(f"precision={self.precision!r}: use 'float32' or 'bfloat16'.")
        if self.precision == "bfloat16" and self.place.type == "cpu":
            raise InputError(
                "precision='bfloat16' is for GPUs, and some CPUs stop at it: use 'float32'."
            )

    def arithmetic(self) -> torch.autocast:
        """Its precision."""
        kind = None if self.precision == "float32" else getattr(torch, self.precision)
        return torch.autocast(self.place.type, dtype=kind, enabled=kind is not None)


def inputs_of(data: Any, argument: str, prepare: object, place: torch.device) -> Tensor:
    """Inputs as a tensor, on the device where there is room for them.

    Bytes are refused where nothing makes them into what a network takes.
    """
    x = data.detach() if isinstance(data, Tensor) else torch.from_numpy(np.array(data))
    if not len(x):
        raise InputError(f"{argument} is empty: give examples.")
    if prepare is None:
        if x.dtype == torch.uint8:
            raise InputError(
                f"{argument} holds bytes: say with prepare= how the network takes them, such as "
                "lambda x: (x / 255 - mean) / std."
            )
        x = x.to(torch.float32 if x.is_floating_point() else torch.int64)
    if place.type == "cuda" and x.nbytes > torch.cuda.mem_get_info(place)[0] // 4:
        return x
    return x.to(place)


def tuned_logits(
    network: nn.Module,
    train: Labelled,
    test: Labelled,
    how: Tuning,
    rate: float,
    seed: int,
    advance: Advance,
) -> Tensor | None:
    """What a copy of a network says of test examples after it was fine-tuned; None: it diverged."""
    place = how.place
    with _reproducible(place, seed):
        model = _copied(network).to(place)
        tuned = _Tuned(model, how, train.x[:2].to(place), len(train.targets.classes))
        if not _train(tuned, train, how, rate, seed, advance):
            return None
        tuned.eval()
        with torch.no_grad():
            # copies, since a network may work in place
            parts = [tuned(rows.to(place, copy=True)).float() for rows in test.x.split(SHOWN)]
        return torch.cat(parts)


class _Tuned(nn.Module):
    """A network whose features go into a new linear layer that begins at 0."""

    def __init__(self, model: nn.Module, how: Tuning, few: Tensor, classes: int) -> None:
        super().__init__()
        self.model, self.how = model, how
        model.eval()
        with torch.no_grad(), how.arithmetic():
            self.last = None
            if how.features is None:
                given = how.prepare(few.clone())
                self.last = find_classifier(model, lambda: _output(model, given))[0]
            width = self._features(few.clone()).shape[1]
        self.head = nn.Linear(width, classes, device=how.place, dtype=torch.float32)
        for weights in (self.head.weight, self.head.bias):
            nn.init.zeros_(weights)
        for weights in model.parameters():
            weights.requires_grad_(weights.is_floating_point())

    @property
    def reached(self) -> bool:
        """Whether the last step had gradients for weights before the new layer, if there are any.

        The layer whose place it takes has none.
        """
        old = set() if self.last is None else set(self.last.module.parameters())
        own = [weights for weights in self.model.parameters() if weights not in old]
        return not own or any(weights.grad is not None for weights in own)

    def forward(self, x: Tensor) -> Tensor:
        """Logits for stored inputs."""
        with self.how.arithmetic():
            logits: Tensor = self.head(self._features(x))
        return logits

    def _features(self, x: Tensor) -> Tensor:
        given = self.how.prepare(x)
        if self.how.features is not None:
            found = self.how.features(self.model, given)
        else:
            found = _before(self.model, self.last, given)
        if found.ndim != 2 or len(found) != len(x):
            raise InputError(
                f"features gave shape {tuple(found.shape)} for {len(x)} examples: give a row of "
                "features for each."
            )
        return found


def _before(model: nn.Module, last: LinearLayer | None, x: Any) -> Tensor:
    """What a layer of a network is given, a row for each example; its output without a layer."""
    if last is None:
        output = _output(model, x)
        whole: Tensor = pooled(output, "auto", last=channels_at_end(None, output))
        return whole
    seen: list[Tensor] = []

    def note(module: nn.Module, args: Any, kwargs: Any) -> None:
        seen.append(next(v for v in (*args, *kwargs.values()) if isinstance(v, Tensor)))

    handle = last.module.register_forward_pre_hook(note, with_kwargs=True)
    try:
        model(x)
    finally:
        handle.remove()
    rows: Tensor = pooled(seen[-1], "auto", last=last.last)
    return rows


def _output(model: nn.Module, x: Any) -> Tensor:
    given = model(x)
    found = main_tensor(given, len(x))
    if found is None:
        raise InputError(
            f"network returned {type(given).__name__} without a tensor that has a row for each "
            "example: say with features= what a new layer is put on."
        )
    return found


def _copied(network: nn.Module) -> nn.Module:
    """A copy in float32 that can be trained."""
    try:
        if "train" in vars(network):  # an exported program's refuses; its copy would not
            network.train(network.training)
        return copy.deepcopy(network).float()
    except (NotImplementedError, RuntimeError, TypeError) as error:
        said = str(error).strip().split("\n")[0][:200]
        raise InputError(
            f"network ({type(network).__name__}) cannot be copied and trained: {said} Make it "
            "anew from its code and weights, or take linear_score of its features."
        ) from error


def _train(
    tuned: _Tuned, train: Labelled, how: Tuning, rate: float, seed: int, advance: Advance
) -> bool:
    """Train in place; false if the loss is no longer a number."""
    place, random = how.place, np.random.default_rng(seed)
    target = train.target(place)
    loss_of = nn.BCEWithLogitsLoss() if train.several else nn.CrossEntropyLoss()
    trained = [weights for weights in tuned.parameters() if weights.requires_grad]
    search = torch.optim.SGD(trained, lr=rate, momentum=MOMENTUM)
    steps = max(len(train) // how.batch, 1)  # no batch is smaller: of one, batch norm has no spread
    factors = iter(rate_factors(Training(schedule=how.schedule), how.epochs * steps).tolist())
    tuned.train()
    for _ in range(how.epochs):
        total = torch.zeros((), device=place)
        order = torch.from_numpy(random.permutation(len(train)))
        there, here = (order.to(where).tensor_split(steps) for where in (train.x.device, place))
        for rows, told in zip(there, here, strict=True):
            search.param_groups[0]["lr"] = rate * next(factors)
            search.zero_grad(set_to_none=True)
            logits = tuned(train.x[rows].to(place))
            loss = loss_of(logits.float(), target[told])
            loss.backward()
            search.step()
            total += loss.detach()
            advance(1)
        if not tuned.reached:
            raise InputError(
                "No weight of the network is reached by gradients: something cuts them off, such "
                "as detach() in features=. Correct it, or take linear_score of its features."
            )
        if not bool(total.isfinite()):
            return False
    return True


@contextlib.contextmanager
def _reproducible(place: torch.device, seed: int) -> Iterator[None]:
    """The same every time with as many threads as there are; torch's own chance is put back."""
    threads = torch.get_num_threads()
    with reproducible(), own_generator(seed, place), own_terms(place):
        torch.set_num_threads(threads)
        yield
