"""Runs in every page before its first cell: quiet warnings, sharp pictures, the example's data."""

import os
import shutil

os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
get_ipython().run_line_magic("config", "InlineBackend.figure_formats = ['svg']")  # noqa: F821

import matplotlib  # noqa: E402

matplotlib.rcParams["svg.hashsalt"] = "curvewise"
shutil.copy(os.path.join(os.environ["CURVEWISE_EXAMPLES"], "errors.csv"), "errors.csv")
