"""No two networks that answer differently have one hash, and the same network keeps its own."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from curvewise.nn.networks import make_network
from curvewise.nn.training import Training
from curvewise.ranking.networks.checkpoints import Checkpoint
from curvewise.ranking.networks.features import extract_features
from curvewise.ranking.networks.modules import network_digest

X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
FACTOR = 2.0


def scaled(x: Tensor) -> Tensor:
    return x * FACTOR


class Net(nn.Module):
    """Depends on an attribute, a member of its class and a value of its module."""

    power = 1.0

    def __init__(self, offset: float = 0.0) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 5)
        self.head = nn.Linear(5, 3)
        self.offset = offset
        with torch.no_grad():
            for i, weight in enumerate(self.parameters()):
                weight.copy_(torch.linspace(-1, 1, weight.numel()).view_as(weight) + i)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self._middle(x))  # type: ignore[no-any-return]

    def _middle(self, x: Tensor) -> Tensor:
        return scaled(self.inner(x)) ** self.power + self.offset


class Other(Net):
    """The same but for one number in its code."""

    def _middle(self, x: Tensor) -> Tensor:
        return scaled(self.inner(x)) ** self.power + self.offset + 1.0


def hooked() -> Net:
    found = Net()
    found.inner.register_forward_hook(lambda module, args, output: 2 * output)
    return found


def patched() -> Net:
    found = Net()
    found.forward = lambda x: found.head(found.inner(x))  # type: ignore[method-assign]
    return found


def heads(count: int) -> nn.Module:
    found = nn.TransformerEncoderLayer(4, count, 8, batch_first=True)
    for weight in found.parameters():
        nn.init.constant_(weight, 0.1)
    return found


DIFFERENT: dict[str, Callable[[], tuple[nn.Module, nn.Module]]] = {
    "attribute": lambda: (Net(), Net(0.5)),
    "method": lambda: (Net(), Other()),
    "hook": lambda: (Net(), hooked()),
    "patched": lambda: (Net(), patched()),
    "heads": lambda: (heads(1), heads(2)),
    "slope": lambda: (nn.LeakyReLU(0.1), nn.LeakyReLU(0.2)),
    "order": lambda: (nn.Sequential(nn.ReLU(), nn.Tanh()), nn.Sequential(nn.Tanh(), nn.ReLU())),
    "precision": lambda: (Net(), Net().double()),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_has_another_hash(what: str) -> None:
    one, other = DIFFERENT[what]()
    assert network_digest(one) == network_digest(copy.deepcopy(one).train())
    assert network_digest(one) != network_digest(other)
    assert network_digest(one) is not None


def test_values_that_the_code_names_count(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {network_digest(Net())}
    monkeypatch.setattr(Net, "power", 2.0)
    found.add(network_digest(Net()))
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    found.add(network_digest(Net()))
    assert len(found) == 3
    assert None not in found


@pytest.mark.parametrize("name", ["mlp", "cnn", "nin", "resnet9"])
def test_our_own_networks_have_one(name: str) -> None:
    shape = (3, 32, 32)
    made = [_made(name, shape, seed) for seed in (0, 0, 1)]
    same, again, other = map(network_digest, made)
    assert same is not None
    assert same == again != other


def _made(name: str, shape: tuple[int, ...], seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return make_network(Training(name), shape, 10)


def test_weights_that_cannot_be_seen_have_none(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packed = torch.ao.quantization.quantize_dynamic(Net())
    assert network_digest(packed) is None
    found = extract_features(packed, X, cache=tmp_path)
    assert any("not cached" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["traced", "script", "pt2"])
def test_programs_with_the_same_weights_are_told_apart(kind: str, tmp_path: Path) -> None:
    found = []
    for number, offset in enumerate((0.0, 0.5, 0.0)):
        model, x = Net(offset).eval(), torch.from_numpy(X)
        path = tmp_path / f"{number}.pt"
        if kind == "pt2":
            batch = ({0: torch.export.Dim.DYNAMIC},)
            torch.export.save(torch.export.export(model, (x,), dynamic_shapes=batch), path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = None if kind == "pt2" else torch.jit.trace(model, x)
            if kind == "script":
                assert program is not None
                torch.jit.save(program, path)
        source = program if kind == "traced" else path
        layer = "output" if kind == "traced" else None
        found.append(extract_features(Checkpoint("net", source, layer=layer), X, cache=tmp_path / "cache"))
    assert not np.allclose(found[0].features, found[1].features)
    assert np.allclose(found[0].features, found[2].features)
    again = extract_features(Checkpoint("net", source, layer=layer), X, cache=tmp_path / "cache")
    assert any("read from the cache" in note for note in again.notes)


PROGRAM = """
import torch
from torch import nn
from curvewise.ranking.networks.modules import network_digest

NAMES = {"a", "b", "c", "d"}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.known = {"x", "y", "z"}

    def forward(self, x):
        return self.linear(x) if "a" in {"a", "b", "c"} and NAMES else x

torch.manual_seed(0)
"""


def test_other_processes_find_the_same_hash() -> None:
    found = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}print(network_digest(Net()))"],
        env={"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    space: dict[str, Any] = {"__name__": "elsewhere"}
    exec(PROGRAM, space)
    assert found.strip() == network_digest(space["Net"]())
