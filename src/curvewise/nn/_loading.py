"""Examples out of datasets and loaders: which of them there are, and how they come together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
)

from curvewise.errors import InputError
from curvewise.nn._flags import own_generator

ROUNDS = 10
"""How often a sampler may go through its dataset: some never end."""

Integers = NDArray[np.int64]


def load(
    data: Any, examples: int | None, choose: Callable[[int], Integers], seed: int
) -> tuple[Tensor, Any, Integers]:
    """Inputs, labels and positions out of a dataset or a loader.

    Parameters
    ----------
    data : Dataset or DataLoader
        Of a loader the examples that its sampler gives are taken, not their order.
    examples : int, optional
        How many of a stream.
    choose : callable
        Picks positions among so many.
    seed : int
        For samplers that draw which examples they give.
    """
    loader = data if isinstance(data, DataLoader) else DataLoader(_checked(data), batch_size=256)
    if isinstance(loader.dataset, IterableDataset):
        x, y = _joined(loader, examples)
        return x, y, np.arange(len(y), dtype=np.int64)
    dataset: Any = loader.dataset
    known = sampled_rows(loader, len(dataset), seed)
    rows = choose(len(dataset)) if known is None else known[choose(len(known))]
    parts = (rows[i : i + 256].tolist() for i in range(0, len(rows), 256))
    batches = (_collated(loader, [dataset[i] for i in part]) for part in parts)
    x, y = _joined(batches, None)
    return x, y, rows


def sampled_rows(loader: DataLoader[Any], size: int, seed: int) -> Integers | None:
    """Positions that a loader's sampler gives, in order; None where that is the whole dataset."""
    sampler: Any = loader.sampler
    if loader.batch_sampler is not None:
        batches: Any = loader.batch_sampler
        sampler = batches.sampler if type(batches) is BatchSampler else batches
    if _is_plain(sampler, size):
        return None
    nested = sampler is loader.batch_sampler
    with own_generator(seed):
        found: Iterable[Any] = chain.from_iterable(sampler) if nested else iter(sampler)
        try:
            rows = np.array([int(i) for i in islice(found, ROUNDS * size)], dtype=np.int64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"data has a {type(sampler).__name__} that gives no positions of examples "
                f"({error}): pass the dataset, or a torch.utils.data.Subset of it."
            ) from error
    return np.unique(rows)


def _is_plain(sampler: Any, size: int) -> bool:
    """Whether a sampler gives every example of a dataset once."""
    if type(sampler) not in (SequentialSampler, RandomSampler):
        return False
    drawn = getattr(sampler, "num_samples", size)
    return (
        len(sampler.data_source) == drawn == size
        and getattr(sampler, "replacement", False) is False
    )


def _checked(data: Any) -> Any:
    if isinstance(data, IterableDataset) or (
        hasattr(data, "__getitem__") and hasattr(data, "__len__")
    ):
        return data
    raise InputError(
        f"data is a {type(data).__name__}: give a torch Dataset, a DataLoader, or (inputs, labels)."
    )


def _collated(loader: DataLoader[Any], items: list[Any]) -> Any:
    try:
        return loader.collate_fn(items)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"data gives examples that cannot be put together ({error}): add a transform that "
            "makes tensors of one shape, or pass a DataLoader with a collate_fn that does."
        ) from error


def _joined(batches: Iterable[Any], examples: int | None) -> tuple[Tensor, Any]:
    """Inputs and labels of all batches, at most so many."""
    xs: list[Tensor] = []
    ys: list[Tensor] = []
    count = 0
    for x, y in _pairs(batches):
        if xs and x.shape[1:] != xs[0].shape[1:]:
            raise InputError(
                f"data gives inputs of shape {tuple(xs[0].shape[1:])} in one batch and "
                f"{tuple(x.shape[1:])} in another: bring all to one shape, such as with a "
                "collate_fn that pads to a fixed length."
            )
        xs.append(x)
        ys.append(y)
        count += len(x)
        if examples is not None and count >= examples:
            break
    if not xs:
        raise InputError("data is empty: give at least one example.")
    return torch.cat(xs)[:examples], torch.cat(ys)[:examples].numpy()


def _pairs(batches: Iterable[Any]) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and labels of each batch, as tensors."""
    for batch in batches:
        if not isinstance(batch, tuple | list) or len(batch) < 2:
            raise InputError(
                f"data gives {type(batch).__name__} for a batch: it must give (inputs, labels)."
            )
        if not isinstance(batch[0], Tensor):
            raise InputError(
                f"data gives inputs of {type(batch[0]).__name__}: add a transform that makes "
                "tensors."
            )
        yield batch[0], torch.as_tensor(batch[1])
