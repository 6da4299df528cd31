"""The study that the demo runs, as a file to read and to change."""

from __future__ import annotations

A, B = "CNN", "MLP"
"""The two networks, the one with more to gain from data first."""

HEAD = """\
# Two networks on handwritten digits: which is better with how much data, what do seeds do, and
# what happens when the digits move?
#   curvewise study plan study.toml      what it would train, and how long that takes
#   curvewise study run study.toml       train what is not there yet
#   curvewise study status study.toml    how far it is
"""

TEXT = """\
name = "digits"
seed = {seed}

[data]
name = "digits"

[learners.{A}]
architecture = "cnn"
width = 8
rate = 0.03
batch = 25
epochs = {epochs}

[learners.{B}]
architecture = "mlp"
width = 64
depth = 1
rate = 0.1
batch = 25
epochs = {epochs}

[design]
test = 797    # digits held out; up to 1,000 are left to train on
sizes = {sizes}
folds = {folds}    # disjoint subsets of each size
seeds = {seeds}    # networks on each subset

[keep]
checkpoints = "end"    # the weights
"""

FULL = {
    "sizes": [62, 125, 250, 500, 1000],
    "folds": [8, 8, 4, 2, 1],
    "seeds": 16,
    "epochs": 25,
}
FAST = {
    "sizes": [60, 100, 160, 250, 400],
    "folds": [4, 4, 2, 2, 1],
    "seeds": 6,
    "epochs": 20,
}


def demo_text(seed: int = 0, *, fast: bool = False) -> str:
    """Text of the demo's study file.

    >>> "seeds = 6 " in demo_text(fast=True)
    True
    """
    return HEAD + "\n" + TEXT.format(seed=seed, A=A, B=B, **(FAST if fast else FULL))


TURNED_TEXT = """\
# The same digits, lying on their side: is a network that knows them upright a better start than
# none? Trained on digits that the first study held out.
name = "turned digits"
seed = {seed}

[data]
path = "turned.npz"

[learners.scratch]
architecture = "cnn"
width = 8
rate = 0.03
batch = 25
epochs = {epochs}

[learners.upright]
architecture = "cnn"
width = 8
weights = "{weights}"
rate = 0.03
batch = 25
epochs = {epochs}

[design]
test = 197
sizes = [25, 50, 100, 200]
folds = 3
"""


def turned_text(seed: int, epochs: float, weights: str) -> str:
    """Text of the second study file, on digits that lie on their side.

    >>> 'weights = "a.safetensors"' in turned_text(0, 20, "a.safetensors")
    True
    """
    return TURNED_TEXT.format(seed=seed, epochs=f"{epochs:g}", weights=weights)


def is_demo_text(text: str) -> bool:
    """Whether a study file is as the demo writes it, for any seed.

    >>> is_demo_text(demo_text(7)), is_demo_text(demo_text(7) + "# mine")
    (True, False)
    """
    found = [line.removeprefix("seed = ") for line in text.splitlines() if "seed = " in line]
    seed = int(found[0]) if found and found[0].isdecimal() else 0
    return any(text == demo_text(seed, fast=fast) for fast in (False, True))
