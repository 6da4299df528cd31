"""Examples from every kind of source, as they are and as a network takes them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from curvewise.errors import InputError
from curvewise.nn import Examples
from curvewise.nn.data import draw_sample

X = np.arange(40 * 3, dtype=np.float32).reshape(40, 3)
Y = np.arange(40) % 4


class Rows(Dataset):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(X[index]), int(Y[index])


class Stream(IterableDataset):
    def __iter__(self):
        return iter(Rows()[i] for i in range(40))


SOURCES = {
    "pair of arrays": (X, Y),
    "pair of tensors": (torch.from_numpy(X), torch.from_numpy(Y)),
    "dataset": Rows(),
    "tensors": TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)),
    "loader": DataLoader(Rows(), batch_size=7, shuffle=True),
    "examples": Examples(X, Y, 4),
}


@pytest.mark.parametrize("source", SOURCES, ids=list(SOURCES))
def test_every_source_gives_the_same_examples(source: str) -> None:
    sample = draw_sample(SOURCES[source], examples=10, rng=3)
    assert len(sample) == 10
    assert len(set(sample.rows.tolist())) == 10
    assert np.array_equal(sample.x.numpy(), X[sample.rows])
    assert np.array_equal(sample.y.numpy(), Y[sample.rows])
    again = draw_sample(X, Y, examples=10, rng=3)
    assert np.array_equal(sample.rows, again.rows)
    assert not np.array_equal(sample.rows, draw_sample(X, Y, examples=10, rng=4).rows)


def test_a_stream_is_read_from_its_beginning() -> None:
    sample = draw_sample(DataLoader(Stream(), batch_size=16), examples=20)
    assert sample.rows.tolist() == list(range(20))
    assert np.array_equal(sample.x.numpy(), X[:20])


class Endless:
    """Goes through some examples, two at a time, again and again."""

    def __iter__(self):
        while True:
            yield from ([i, i + 1] for i in range(10, 20, 2))


SOME = range(10, 20)
SAMPLERS = {
    "subset": {"sampler": SubsetRandomSampler(SOME)},
    "list": {"sampler": list(SOME)},
    "tensors": {"sampler": [torch.tensor(i) for i in SOME]},
    "batches of a subset": {"batch_sampler": BatchSampler(SubsetRandomSampler(SOME), 3, False)},
    "own batches": {"batch_sampler": [[10, 11, 12, 13, 14], [15, 16, 17], [18, 19, 10]]},
    "endless": {"batch_sampler": Endless()},
    "weights": {"sampler": WeightedRandomSampler([float(i in SOME) for i in range(40)], 400)},
}


@pytest.mark.parametrize("name", SAMPLERS, ids=list(SAMPLERS))
def test_of_a_loader_only_what_its_sampler_gives_is_taken(name: str) -> None:
    loader = DataLoader(Rows(), **SAMPLERS[name])
    state = torch.get_rng_state()
    sample = draw_sample(loader, rng=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert sorted(sample.rows.tolist()) == list(SOME)
    assert np.array_equal(sample.x.numpy(), X[sample.rows])
    assert np.array_equal(sample.y.numpy(), Y[sample.rows])
    assert np.array_equal(sample.rows, draw_sample(loader, rng=1).rows)
    assert set(draw_sample(loader, examples=4).rows.tolist()) < set(SOME)
    assert len(draw_sample(loader, examples=0.5)) == 5


def test_samplers_of_part_of_the_data() -> None:
    first = DataLoader(Rows(), sampler=SequentialSampler(range(15)))
    assert sorted(draw_sample(first).rows.tolist()) == list(range(15))
    some = DataLoader(Rows(), sampler=RandomSampler(Rows(), num_samples=15))
    one, two = (draw_sample(some, rng=2).rows for _ in range(2))
    assert len(one) == 15
    assert np.array_equal(one, two)
    again = DataLoader(Rows(), sampler=RandomSampler(Rows(), replacement=True))
    assert len(draw_sample(again)) < 40
    pairs = DataLoader(Rows(), sampler=[(0, 1), (2, 3)])
    with pytest.raises(InputError, match=r"list that gives no positions.*Subset"):
        draw_sample(pairs)
    with pytest.raises(InputError, match="data is empty"):
        draw_sample(DataLoader(Rows(), sampler=[]))


def test_a_list_of_two_examples_is_a_dataset() -> None:
    pair = [(torch.from_numpy(X[5]), 1), (torch.from_numpy(X[7]), 0)]
    sample = draw_sample(pair)
    assert sorted(sample.y.tolist()) == [0, 1]
    assert np.array_equal(sample.x[int(np.flatnonzero(sample.rows == 0)[0])], X[5])
    assert len(draw_sample([X, Y])) == 40
    assert len(draw_sample([[[0.5], [1.5], [2.5]], [0, 1, 0]])) == 3


def test_inputs_of_different_lengths() -> None:
    texts = [(torch.ones(3 if i < 256 else 5), i % 2) for i in range(300)]

    def padded(items):
        x = torch.nn.utils.rnn.pad_sequence([item[0] for item in items], batch_first=True)
        return x, torch.tensor([item[1] for item in items])

    loader = DataLoader([*texts[:256], *texts[:40]], collate_fn=padded)
    assert draw_sample(loader).x.shape == (296, 3)
    uneven = DataLoader([(torch.ones(1 + i % 300), i % 2) for i in range(300)], collate_fn=padded)
    with pytest.raises(InputError, match=r"one batch and .* in another: .*fixed length"):
        draw_sample(uneven)
    with pytest.raises(InputError, match=r"cannot be put together .*collate_fn"):
        draw_sample(texts)


def test_no_more_than_there_is() -> None:
    assert len(draw_sample(X, Y, examples=1000)) == 40
    assert sorted(draw_sample(X, Y).rows.tolist()) == list(range(40))


def test_bytes_are_pixels_and_floats_are_what_the_network_takes() -> None:
    images = np.random.default_rng(0).integers(256, size=(6, 2, 3, 3), dtype=np.uint8)
    mean, std = [0.2, 0.4], [0.5, 0.25]
    sample = draw_sample(images, np.arange(6), mean=mean, std=std)
    pixels = images[sample.rows] / 255
    expected = (pixels - np.array(mean)[:, None, None]) / np.array(std)[:, None, None]
    assert np.allclose(sample.given(sample.x), expected, atol=1e-6)
    assert np.allclose(sample.pixels(sample.x), pixels, atol=1e-6)
    ready = draw_sample(expected, np.arange(6), mean=mean, std=std)
    assert np.allclose(ready.given(ready.x), expected[ready.rows], atol=1e-6)
    assert np.allclose(ready.pixels(ready.x), pixels[ready.rows], atol=1e-5)
    again = ready.normalised(ready.pixels(ready.x))
    assert np.allclose(again, expected[ready.rows], atol=1e-5)


def test_examples_bring_their_scale() -> None:
    images = np.zeros((4, 1, 2, 2), dtype=np.uint8)
    sample = draw_sample(Examples(images, Y[:4], 4, mean=(0.5,), std=(0.5,)))
    assert torch.equal(sample.given(sample.x), -torch.ones(4, 1, 2, 2))
    table = draw_sample(Examples(X, Y, 4, tuple(X.mean(axis=0)), tuple(X.std(axis=0))))
    assert np.allclose(table.x.mean(dim=0), 0, atol=1e-5)
    assert np.allclose(table.x.std(dim=0, correction=0), 1, atol=1e-5)


@pytest.mark.parametrize("kind", ["int16", "int32", "uint16", "int64"])
def test_whole_numbers_become_what_embeddings_take(kind: str) -> None:
    sample = draw_sample(np.arange(12).reshape(4, 3).astype(kind), np.arange(4))
    assert sample.x.dtype == torch.int64


def test_bytes_with_padding_are_tokens() -> None:
    tokens = np.arange(12, dtype=np.uint8).reshape(4, 3)
    sample = draw_sample(Examples(tokens, np.arange(4), 4, padding=0))
    assert sample.x.dtype == torch.int64
    assert sample.padding == 0
    assert torch.equal(sample.given(sample.x), sample.x)


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.bool_], ids=["double", "half", "bool"])
def test_other_numbers_become_float32(kind: type) -> None:
    sample = draw_sample(np.ones((4, 3), dtype=kind), np.arange(4))
    assert sample.x.dtype == torch.float32


def test_parts_and_batches() -> None:
    sample = draw_sample(X, Y)
    assert np.array_equal(sample.take(5).rows, sample.rows[:5])
    some = sample.take(np.array([3, 1]))
    assert torch.equal(some.x, sample.x[[3, 1]])
    assert torch.equal(some.y, sample.y[[3, 1]])
    parts = list(sample.batches(16))
    assert [len(y) for _, y in parts] == [16, 16, 8]
    assert torch.equal(torch.cat([x for x, _ in parts]), sample.x)
    assert sample.classes == 4
    assert sample.to("cpu").x.device.type == "cpu"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"data": X}, "labels is missing"),
        ({"data": X, "labels": Y[:3]}, "40 examples and labels 3"),
        ({"data": X[:0], "labels": Y[:0]}, "data is empty"),
        ({"data": X, "labels": Y - 1}, "-1"),
        ({"data": X, "labels": Y + 0.5}, "not whole"),
        ({"data": X, "labels": Y.astype(str)}, "classes as numbers"),
        ({"data": X, "labels": np.stack([Y, Y], axis=1)}, r"shape \(40, 2\)"),
        ({"data": X.astype(str), "labels": Y}, "give numbers"),
        ({"data": 3}, "is a int"),
        ({"data": X, "labels": Y, "examples": 0}, "examples=0"),
        ({"data": X, "labels": Y, "mean": [1.0]}, "belong together"),
        ({"data": np.zeros((2, 1, 2, 2)), "labels": [0, 1], "mean": [0, 0], "std": [1, 1]}, "1 channel"),
        ({"data": np.zeros((2, 1, 2, 2)), "labels": [0, 1], "mean": [0], "std": [0]}, "above 0"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_bad_data(given: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        draw_sample(**given)


def test_datasets_that_give_something_else() -> None:
    with pytest.raises(InputError, match="must give"):
        draw_sample([torch.zeros(2), torch.zeros(2), torch.zeros(2)])
    with pytest.raises(InputError, match="add a transform"):
        draw_sample([("a", 1), ("b", 0), ("c", 1)])


def test_a_scale_that_is_given_replaces_that_of_the_examples() -> None:
    images = Examples(np.zeros((8, 3, 2, 2), dtype=np.uint8), Y[:8], 4, mean=(0.1,) * 3, std=(0.2,) * 3)
    arrays = draw_sample(images, mean=np.full(3, 0.5), std=np.full(3, 0.25))
    assert arrays.mean.tolist() == [0.5] * 3
    assert arrays.std.tolist() == [0.25] * 3
    assert draw_sample(images, mean=0.0, std=1.0).mean.tolist() == [0.0] * 3


def test_labels_beside_labelled_examples_are_refused() -> None:
    with pytest.raises(InputError, match="labels of their own"):
        draw_sample(Examples(X, Y, 4), labels=Y[::-1])
