"""``python -m curvewise.cli``."""

from __future__ import annotations

import sys

from curvewise.cli import main

if __name__ == "__main__":
    sys.exit(main())
