"""Public names of a package, loaded when they are first used.

The one list of names is the stub ``__init__.pyi``, which type checkers read as well.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    file : str
        Its ``__file__``, beside which the stub lies.
    """
    homes = public_names(file)

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:  # a package within this one
            return import_module(f"{package}.{name}")
        try:
            value = getattr(import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            if error.name not in ("torch", "safetensors"):
                raise
            from curvewise.errors import MissingDependencyError

            raise MissingDependencyError(
                f'{package}.{name} needs {error.name}, which is not installed: pip install "curvewise[torch]".'
            ) from error
        # Kept on the package, so that Python does not ask again.
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(name for name, home in homes.items() if home != package)
    return __getattr__, lambda: sorted(homes), names


def public_names(file: str) -> dict[str, str]:
    """Return the public names of a package and the modules that define them."""
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    return {name: module for module, name in _LINE.findall(stub)}
