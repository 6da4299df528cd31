"""Fine-tuning of all weights for some epochs, as a ranking measure."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from curvewise.errors import CurvewiseError, InputError, arg
from curvewise.nn.data import Sample
from curvewise.nn.devices import own_generator, reproducible
from curvewise.nn.networks import chosen_device
from curvewise.nn.schedules import rate_factors
from curvewise.nn.training import Training
from curvewise.progress import Advance, progress_bar
from curvewise.ranking.measure import (
    CheckpointFeatures,
    RankingMeasure,
    as_targets,
    as_test_targets,
    check_known,
    from_one_hot,
    warn,
)
from curvewise.ranking.networks.checkpoints import Checkpoint, as_checkpoints, channels_at_end, main_tensor, pooled
from curvewise.ranking.networks.formats import open_reader, stored_features
from curvewise.ranking.networks.inputs import Inputs, given_preprocessing, input_shape, preparation
from curvewise.ranking.networks.modules import LinearLayer, ScriptReader, TorchReader, call_plain, find_classifier
from curvewise.ranking.networks.probes import SHARE, TARGETS, Labelled, batch_size, hits_of, own_terms
from curvewise.types.results import FloatArray, check_whole

RATE = 0.01
# Those among which the paper on ranking takes the best for each checkpoint and task.
PAPER_RATES = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5)
# Momentum of SGD in Li et al. 2021.
MOMENTUM = 0.9
SCHEDULES = ("constant", "linear", "cosine")
TRAINING_PRECISIONS = ("float32", "bfloat16")
# Examples that are read, or scored, at a time.
BATCH = 256
CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Tunable:
    """Network and inputs, as the fine-tuning measures take them.

    Indexing it with rows gives the same network with those inputs.

    Attributes
    ----------
    network : nn.Module
        Left as it is.
    data : Tensor or ndarray
        Inputs, a row for each example.
    options : dict
        Further arguments of :func:`finetuning_score`, such as ``prepare``, ``features``, ``rate``,
        ``device`` and ``precision``.
    """

    network: nn.Module
    data: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: Any) -> Tunable:
        return replace(self, data=self.data[rows])


class TuningRecipe(TypedDict, total=False):
    """Training options of a fine-tuning; all have a default.

    Attributes
    ----------
    rate : float or sequence of float
        Learning rate, 0.01 by default. Of several, the one with the best score counts, as in the
        paper's ground truth: chosen on the test examples, which flatters every network alike.
        ``PAPER_RATES`` are the paper's.
    batch : int, optional
        Minimum number of examples in a batch; a fiftieth by default, from 32 to the paper's 512.
    schedule : {"constant", "linear", "cosine"}
        Decay of the rate; constant by default.
    precision : {"float32", "bfloat16"}
        Precision of the arithmetic, float32 by default; bfloat16 is for GPUs.
    """

    rate: float | Sequence[float]
    batch: int | None
    schedule: str
    precision: str


def finetuning_score(
    network: nn.Module,
    data: Any,
    labels: ArrayLike | None = None,
    *,
    test_data: Any = None,
    test_labels: ArrayLike | None = None,
    epochs: int = 5,
    prepare: Callable[[Tensor], Any] | None = None,
    features: Callable[[nn.Module, Any], Tensor] | None = None,
    device: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool | None = None,
    **recipe: Unpack[TuningRecipe],
) -> float:
    """Accuracy of a network on test examples after some epochs of training all its weights.

    A copy is trained by SGD with momentum 0.9 and without weight decay or augmentation, as in the
    paper (Li et al. 2021); the network itself is left as it was. A new linear layer, whose weights
    begin at 0, takes the place of its last. Statistics of batch norm are those of batches while it
    is trained and running ones afterwards; what was frozen is trained, too.

    Parameters
    ----------
    network : nn.Module
        That of the checkpoint.
    data : Tensor, ndarray or Sample
        Inputs of the training examples, as the network takes them, or as ``prepare`` does. Images
        of a Sample are normalised with its mean and spread.
    labels : array_like, optional
        A class for each, or a matrix of 0 and 1 (multi-label, if not every row has exactly one 1); those of a Sample
        by default.
    test_data, test_labels : optional
        The same for the examples that are scored; without, the training examples are (in-sample).
    epochs : int
        Number of epochs.
    prepare : callable, optional
        Makes the network's inputs from a batch of data, on the device.
    features : callable, optional
        ``features(network, batch)`` gives the inputs of the new layer, shape (examples,
        dimensions); by default the input of the linear layer that gives the network's scores (also
        as a convolution of one pixel), and the network's output where there is none.
    device : str, optional
        Where the network is by default.
    rng : int or Generator
        Decides the order of examples, and dropout.
    progress : bool, optional
        Show a bar; by default where stderr is a terminal.
    **recipe
        ``rate``, ``batch``, ``schedule``, ``precision``: see :class:`TuningRecipe`.

    Returns
    -------
    float
        The share of test examples that it gets right, or the mean average precision of their
        classes (see :func:`curvewise.ranking.networks.probes.linear_score`). NaN, with a warning, if it diverged.

    Warns
    -----
    CurvewiseWarning
        If training diverged, or has less than ten steps.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.arange(400) % 2
    >>> x = random.standard_normal((400, 8)).astype(np.float32) + labels[:, None]
    >>> network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1000))
    >>> finetuning_score(network, x, labels, epochs=2, rate=0.1) > 0.85
    True
    """
    settings: dict[str, Any] = {"epochs": epochs, "prepare": prepare, "features": features, "device": device, **recipe}
    test: dict[str, Any] = {"test_data": test_data, "test_labels": test_labels}
    return float(finetuning_hits(network, data, labels, **test, rng=rng, progress=progress, **settings).mean())


def finetuning_hits(
    network: nn.Module,
    data: Any,
    labels: ArrayLike | None = None,
    *,
    test_data: Any = None,
    test_labels: ArrayLike | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool | None = None,
    **settings: Any,
) -> FloatArray:
    """Return the value of each test example in :func:`finetuning_score`, which has the same arguments.

    Returns
    -------
    ndarray, shape (test examples,)
        1 where the network is right and 0 where it is not; NaN everywhere if it diverged.

    Examples
    --------
    >>> x = np.tile([[-1.0], [-0.5], [0.5], [1.0]], (16, 1))
    >>> labels = np.tile([0, 0, 1, 1], 16)
    >>> finetuning_hits(nn.Linear(1, 3), x, labels, rate=0.5, epochs=20).mean()
    np.float64(1.0)
    """
    if not isinstance(network, nn.Module):
        raise InputError(
            f"is {type(network).__name__}: give a torch.nn.Module. Other formats cannot be "
            "trained; take linear_score of their features.",
            argument="network",
        )
    how = Tuning(**settings)
    place = chosen_device(network, how.device)
    if how.precision == "bfloat16" and place.type == "cpu":
        problem = "it is for GPUs, and some CPUs stop at it: use 'float32'."
        raise InputError(problem, argument="precision", value=how.precision)
    train, test, prepare = _read(data, labels, test_data, test_labels, how.prepare, place)
    size = min(how.batch or batch_size(len(train)), len(train))
    how = replace(how, size=size, place=place, prepare=prepare)
    steps = how.epochs * max(len(train) // size, 1)
    if steps < 10:
        warn(
            f"{len(train)} examples in batches of {size} make {steps} steps: the network has "
            "hardly been fine-tuned. Take a smaller batch, or more epochs."
        )
    seed = int(np.random.default_rng(rng).integers(2**63))
    best, highest = np.full(len(test), np.nan), -math.inf
    with progress_bar("fine-tuning", len(how.rates) * steps, progress) as advance:
        for one in how.rates:
            logits = tuned_logits(network, train, test, how, one, seed, advance)
            hits = np.full(len(test), np.nan)
            if logits is not None:
                hits = hits_of(logits, test, "accuracy")
            if (mean := float(hits.mean())) > highest:
                best, highest = hits, mean
    if not math.isfinite(highest):
        tried = ", ".join(f"{r:g}" for r in how.rates)
        warn(f"Fine-tuning diverged at rate {tried}, and its score is NaN: try a lower one.")
    return best


def _read(
    data: Any,
    labels: ArrayLike | None,
    test_data: Any,
    test_labels: ArrayLike | None,
    prepare: Callable[[Tensor], Any] | None,
    place: torch.device,
) -> tuple[Labelled, Labelled, Callable[[Tensor], Any]]:
    """Read training and test examples, and the function that makes the network's inputs of them."""
    if isinstance(data, Sample) and prepare is None:
        prepare = data.take(0).to(place).given
    x, y = _one(data, labels, "data", "labels")
    test_x = truth = None
    if test_data is not None or test_labels is not None:
        test_x, truth = _one(test_data, test_labels, "test_data", "test_labels")
    y, truth = from_one_hot(y, truth)
    targets = as_targets(y, len(x), allowed=TARGETS, measure="fine-tuning")
    train = Labelled(inputs_of(x, "data", prepare, place), targets)
    test = train
    if test_x is not None:
        read = as_test_targets(truth, len(test_x), targets, "fine-tuning", seen=False)
        test = Labelled(inputs_of(test_x, "test_data", prepare, place), read)
    return train, test, prepare or (lambda x: x)


def _one(data: Any, labels: Any, name: str, labels_name: str) -> tuple[Any, Any]:
    if isinstance(data, Sample):
        return data.x, data.y.cpu().numpy() if labels is None else labels
    if data is None or labels is None:
        raise InputError(f"{name} and {labels_name} belong together: give both.")
    return data, labels.cpu().numpy() if isinstance(labels, Tensor) else labels


def _of_tunable(
    given: Tunable,
    labels: ArrayLike,
    *,
    test_features: Tunable | None = None,
    test_labels: ArrayLike | None = None,
    epochs: int,
    rng: int | np.random.Generator = 0,
) -> FloatArray:
    """Compute hits with the signature of a ranking measure."""
    how: dict[str, Any] = {"progress": False, **given.options, "epochs": epochs, "rng": rng}
    test = None if test_features is None else test_features.data
    return finetuning_hits(given.network, given.data, labels, test_data=test, test_labels=test_labels, **how)


MEASURES = tuple(
    RankingMeasure(
        f"finetune-{epochs}",
        lambda given, labels, epochs=epochs, **how: float(_of_tunable(given, labels, epochs=epochs, **how).mean()),
        about=f"Accuracy after fine-tuning all weights for {duration} (Li et al. 2021).",
        cost=f"{3 * epochs} times the forward pass over the examples; its operations are for d "
        "operations of the forward pass of one example.",
        fails="The most expensive measure, and among the worst in the paper: accuracy early in training "
        "predicts the final accuracy poorly. It depends on the learning rate.",
        # With d the operations of a forward pass of one example; the backward pass costs two of them.
        flops=functools.partial(lambda times, n, d, classes: 3.0 * times * n * d, epochs),
        takes="network",
        hits=functools.partial(_of_tunable, epochs=epochs),
        **SHARE,
    )
    for epochs, duration in ((1, "one epoch"), (5, "five epochs"))
)


@dataclass(frozen=True, eq=False)
class Tuning:
    """Settings of a fine-tuning; see :func:`finetuning_score`."""

    epochs: int = 5
    rate: float | Sequence[float] = RATE
    batch: int | None = None
    schedule: str = "constant"
    precision: str = "float32"
    device: str | None = None
    prepare: Any = None
    features: Callable[[nn.Module, Any], Tensor] | None = None
    place: torch.device = CPU
    size: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epochs", check_whole(self.epochs, "epochs", 1))
        if self.batch is not None:
            object.__setattr__(self, "batch", check_whole(self.batch, "batch", 2))
        if not self.rates or not all(0 < rate < math.inf for rate in self.rates):
            raise InputError("give a number above 0, or several.", argument="rate", value=self.rates)
        check_known(self.schedule, "schedule", SCHEDULES)
        check_known(self.precision, "precision", TRAINING_PRECISIONS)

    @property
    def rates(self) -> list[float]:
        """Learning rates to try."""
        return [float(rate) for rate in np.atleast_1d(self.rate)]

    def arithmetic(self) -> torch.autocast:
        """Return the context of its precision."""
        kind = None if self.precision == "float32" else getattr(torch, self.precision)
        return torch.autocast(self.place.type, dtype=kind, enabled=kind is not None)


def inputs_of(data: Any, argument: str, prepare: object, place: torch.device) -> Tensor:
    """Return inputs as a tensor, on the device if it has room for them.

    Bytes are refused where nothing makes them into what a network takes.
    """
    x = data.detach() if isinstance(data, Tensor) else torch.from_numpy(np.array(data))
    if not len(x):
        raise InputError("is empty: give examples.", argument=argument)
    if x.is_floating_point() and not bool(x.isfinite().all()):
        raise InputError("has NaN or infinite values: leave those examples out.", argument=argument)
    if prepare is None:
        if x.dtype == torch.uint8:
            raise InputError(
                f"holds bytes: give {arg('prepare')} to make the network's inputs of them, such as "
                "lambda x: (x / 255 - mean) / std.",
                argument=argument,
            )
        x = x.to(torch.float32 if x.is_floating_point() else torch.int64)
    if place.type == "cuda" and x.nbytes > torch.cuda.mem_get_info(place)[0] // 4:
        return x
    return x.to(place)


def tuned_logits(
    network: nn.Module, train: Labelled, test: Labelled, how: Tuning, rate: float, seed: int, advance: Advance
) -> Tensor | None:
    """Fine-tune a copy of a network and return its logits for test examples; None if it diverged."""
    place, threads = how.place, torch.get_num_threads()
    with reproducible(), own_generator(seed, place), own_terms(place):
        torch.set_num_threads(threads)  # as deterministic with all of them
        model = _copied(network).to(place)
        tuned = _Tuned(model, how, train.x[:2].to(place), len(train.targets.classes))
        if not _train(tuned, train, how, rate, seed, advance):
            return None
        tuned.eval()
        with torch.no_grad():
            # copies, since a network may work in place
            parts = [tuned(rows.to(place, copy=True)).float() for rows in test.x.split(BATCH)]
        return torch.cat(parts)


class _Tuned(nn.Module):
    """Network with a new linear layer on its features, which begins at 0."""

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
        """True if the last step had gradients for weights before the new layer, if there are any.

        The layer whose place it takes has none.
        """
        old = set() if self.last is None else set(self.last.module.parameters())
        own = [weights for weights in self.model.parameters() if weights not in old]
        return not own or any(weights.grad is not None for weights in own)

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits for stored inputs."""
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
                f"features gave shape {tuple(found.shape)} for {len(x)} examples: give a row of features for each."
            )
        return found


def _before(model: nn.Module, last: LinearLayer | None, x: Any) -> Tensor:
    """Return the input of a layer, a row for each example; the network's output without a layer."""
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
            f"example: give the inputs of the new layer by {arg('features')}."
        )
    return found


def _copied(network: nn.Module) -> nn.Module:
    """Return a copy in float32 that can be trained."""
    try:
        if "train" in vars(network):  # an exported program's refuses; its copy would not
            network.train(network.training)
        return copy.deepcopy(network).float()
    except (NotImplementedError, RuntimeError, TypeError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise InputError(
            f"network ({type(network).__name__}) cannot be copied and trained: {reason} Make it "
            "again from its code and weights, or take linear_score of its features."
        ) from error


def _train(tuned: _Tuned, train: Labelled, how: Tuning, rate: float, seed: int, advance: Advance) -> bool:
    """Train in place; return False if the loss is no longer a number."""
    place, random = how.place, np.random.default_rng(seed)
    target = train.target(place)
    loss_of = nn.BCEWithLogitsLoss() if train.several else nn.CrossEntropyLoss()
    trained = [weights for weights in tuned.parameters() if weights.requires_grad]
    search = torch.optim.SGD(trained, lr=rate, momentum=MOMENTUM)
    steps = max(len(train) // how.size, 1)  # no batch is smaller: of one, batch norm has no spread
    factors = iter(rate_factors(Training(schedule=how.schedule), how.epochs * steps).tolist())
    tuned.train()
    for _ in range(how.epochs):
        total = torch.zeros((), device=place)
        order = torch.from_numpy(random.permutation(len(train)))
        there, here = (order.to(where).tensor_split(steps) for where in (train.x.device, place))
        for rows, target_rows in zip(there, here, strict=True):
            search.param_groups[0]["lr"] = rate * next(factors)
            search.zero_grad(set_to_none=True)
            logits = tuned(train.x[rows].to(place))
            loss = loss_of(logits.float(), target[target_rows])
            loss.backward()
            search.step()
            total += loss.detach()
            advance(1)
        if not tuned.reached:
            raise InputError(
                "No weight of the network is reached by gradients: something cuts them off, such "
                "as detach() in features. Correct it, or take linear_score of its features."
            )
        if not bool(total.isfinite()):
            return False
    return True


def find_networks(
    checkpoints: Any, inputs: Inputs, device: str | None = None, precision: str = "float32"
) -> dict[str, Tunable]:
    """Find the networks of torch that can be trained, by name, with the examples as their inputs.

    Examples are kept as they are stored and made ready by the checkpoint's own preprocessing a
    batch at a time. Networks that take more than one tensor (texts) are left out, as is whatever
    is no network of torch.
    """
    batches = list(inputs.batches(BATCH))
    arrays = [batch for batch in batches if isinstance(batch, np.ndarray)]
    if len(arrays) < len(batches) or len({batch.shape[1:] for batch in arrays}) > 1:
        return {}  # texts, or images of several sizes
    stored = torch.from_numpy(np.concatenate(arrays))
    options = {"device": device, "precision": precision if precision in TRAINING_PRECISIONS else "float32"}
    found = {}
    for checkpoint in as_checkpoints(checkpoints):
        reader = _reader(checkpoint, inputs, device)
        if reader is None:
            continue
        first: Any = stored[: min(2, len(stored))]
        ready = preparation(checkpoint, reader, inputs, first)
        if ready(first).mask is None:
            # From stored examples to the network's inputs, on their device.
            prepare = functools.partial(lambda ready, batch: ready(batch).x.to(batch.device), ready)
            found[checkpoint.name] = Tunable(reader.model, stored, {**options, "prepare": prepare})
    return found


def _reader(checkpoint: Checkpoint, inputs: Inputs, device: str | None) -> TorchReader | None:
    """Return the reader of a network that can be trained; None for anything else."""
    if isinstance(checkpoint.source, CheckpointFeatures):
        return None
    try:
        if stored_features(checkpoint) is not None:
            return None
        first = next(iter(inputs.batches(min(2, len(inputs)))))
        shape = input_shape(given_preprocessing(checkpoint, inputs), first)
        reader = open_reader(checkpoint, shape, device, "float32")
    except (CurvewiseError, OSError, RuntimeError):  # told when its features were asked for
        return None
    if isinstance(reader, ScriptReader) or not isinstance(reader, TorchReader):
        return None
    return reader if reader.call is call_plain and reader.parameters else None
