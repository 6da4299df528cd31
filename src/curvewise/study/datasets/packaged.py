"""Small data sets that come with scikit-learn."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from curvewise.errors import MissingDependencyError
from curvewise.study.datasets._source import Source, array_part

NAMES = ("digits", "iris", "wine", "breast-cancer")


def load_packaged(name: str) -> Source:
    """Load one of scikit-learn's sets; the digits as images, the others as features."""
    try:
        package = importlib.import_module("sklearn.datasets")
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"data='{name}' comes with scikit-learn, which is not installed: "
            'pip install "curvewise[sklearn]".'
        ) from error
    found: Any = getattr(package, f"load_{name.replace('-', '_')}")()
    classes = tuple(str(c) for c in found.target_names)
    if name == "digits":  # sixteen levels of grey and none
        x = np.round(found.images * (255 / 16)).astype(np.uint8)[:, None]
    else:
        x = found.data.astype(np.float32)
    return Source(array_part(x, found.target, "data", "target"), classes=classes, name=name)
