"""``python -m curvewise.cli``."""

from __future__ import annotations

import sys

from curvewise.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
