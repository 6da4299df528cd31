"""Runs in every page before its first cell: sharp pictures, and the example's data."""

import os
import shutil

from IPython import get_ipython

get_ipython().run_line_magic("matplotlib", "inline")
get_ipython().run_line_magic("config", "InlineBackend.figure_formats = ['svg']")
shutil.copy(os.path.join(os.environ["CURVEWISE_EXAMPLES"], "errors.csv"), "errors.csv")
