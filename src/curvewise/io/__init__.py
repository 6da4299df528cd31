"""Files and frames in, measurements out.

Importing this package loads neither pandas nor narwhals nor pyarrow; a reader imports what it
needs when it is called.
"""

from curvewise.io.measurements import load_measurements

__all__ = ["load_measurements"]
