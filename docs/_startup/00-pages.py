"""Runs in every page before its first cell: sharp pictures, and the examples' data."""

import os
import shutil

from IPython import get_ipython

get_ipython().run_line_magic("matplotlib", "inline")
get_ipython().run_line_magic("config", "InlineBackend.figure_formats = ['svg']")
for _file in ("errors.csv", "units16.npz", "units64.npz", "units128.npz"):
    shutil.copy(os.path.join(os.environ["CURVEWISE_EXAMPLES"], _file), _file)
