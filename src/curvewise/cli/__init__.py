"""The command line: ``curvewise learning …``, ``variance …``, ``study …``, ``demo``."""

from __future__ import annotations

import os
import sys
from typing import Any

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # Python looks in the current folder, where a study may lie beside files json.py or torch.py.
    _here = sys.path.pop(0)
    if os.path.realpath(_here) == os.path.realpath(f"{__file__}/../../.."):
        sys.path.append(_here)  # curvewise itself is there, not installed


def __getattr__(name: str) -> Any:
    # Not imported above: the lines there must run before anything else is looked up.
    if name != "main":
        raise AttributeError(f"module 'curvewise.cli' has no attribute {name!r}")
    from curvewise.cli.app import main

    return main
