"""``python -m curvewise.cli``."""

import sys

from curvewise.cli import main

if __name__ == "__main__":
    sys.exit(main())
