"""Judge learners by their curves, not by one number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from curvewise.lazy import attach, public_names

__version__ = "0.3.0"

_getattr, __dir__, __all__ = attach(__name__, __file__)


def __getattr__(name: str) -> Any:
    try:
        return _getattr(name)
    except AttributeError as error:
        # Only the headline names are here; the others are found in their lens.
        for stub in sorted(Path(__file__).parent.glob("*/__init__.pyi")):
            if name in public_names(str(stub)):
                raise AttributeError(f"curvewise.{name} is reached as curvewise.{stub.parent.name}.{name}") from error
        raise
