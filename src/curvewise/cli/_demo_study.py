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


def is_demo_text(text: str) -> bool:
    """Whether a study file is as the demo writes it, for any seed.

    >>> is_demo_text(demo_text(7)), is_demo_text(demo_text(7) + "# mine")
    (True, False)
    """
    found = [line.removeprefix("seed = ") for line in text.splitlines() if "seed = " in line]
    seed = int(found[0]) if found and found[0].isdecimal() else 0
    return any(text == demo_text(seed, fast=fast) for fast in (False, True))
