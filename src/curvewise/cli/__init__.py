"""The command line: ``curvewise learning …``, ``variance …``, ``study …``, ``demo``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # Python looks in the current folder, where a study may lie beside files json.py or torch.py.
    _here = sys.path.pop(0)
    if os.path.realpath(_here) == os.path.realpath(f"{__file__}/../../.."):
        sys.path.append(_here)  # curvewise itself is there, not installed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of ``sys.argv[1:]``.
    """
    from curvewise.cli.app import run

    return run(arguments)
