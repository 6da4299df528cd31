"""Runs in every page before its first cell: sharp pictures, and the examples' data."""

import os
import shutil

from IPython import get_ipython

get_ipython().run_line_magic("matplotlib", "inline")
get_ipython().run_line_magic("config", "InlineBackend.figure_formats = ['svg']")
_corpora = [
    f"corpus/{name}.csv" for name in ("cifar10", "cifar10-vgg", "cifar10-resnet", "rotation", "shift-x", "shift-y")
]
_pools = [f"checkpoints/{name}.csv" for name in ("scores", "finetune", "judged", "stable_transfer", "grid", "rivals")]
os.makedirs("corpus", exist_ok=True)
os.makedirs("checkpoints", exist_ok=True)
os.makedirs("transfer", exist_ok=True)
_starts = [f"transfer/{name}.csv" for name in ("risks", "wins")]
_small = ("errors.csv", "units16.npz", "units64.npz", "units128.npz")
for _file in (*_small, *_corpora, *_pools, *_starts):
    shutil.copy(os.path.join(os.environ["CURVEWISE_EXAMPLES"], _file), _file)
