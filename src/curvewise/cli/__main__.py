"""``python -m curvewise.cli``."""

import sys

from curvewise.cli import main
from curvewise.nn._own_code import installed_first

if __name__ == "__main__":
    # Python has put the current folder first, where a study may lie beside a file json.py.
    sys.path[:] = installed_first(sys.path)
    sys.exit(main())
