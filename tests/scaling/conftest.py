"""Made runs whose law is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

TRUTH = {"E": 1.8, "A": 480.0, "B": 2000.0, "alpha": 0.35, "beta": 0.37}


@pytest.fixture
def made() -> Callable[..., dict[str, Any]]:
    """Runs on a grid of sizes with the additive law, as a dict of arrays."""

    def make(noise: float = 0.0, seed: int = 0, sizes: int = 6, g: float = 1.0, **law: float) -> dict[str, Any]:
        known = TRUTH | law
        n, d = (v.ravel() for v in np.meshgrid(np.geomspace(2e7, 3e9, sizes), np.geomspace(1e9, 2e11, sizes)))
        terms = (known["A"] / n ** known["alpha"]) ** (1 / g) + (known["B"] / d ** known["beta"]) ** (1 / g)
        scatter = np.random.default_rng(seed).standard_normal(len(n))
        return {"params": n, "tokens": d, "loss": (known["E"] + terms**g) * np.exp(noise * scatter)}

    return make
