"""Make runs and keep them: subsets in, measurements out, each run on disk."""

from curvewise.study.estimators import measure_learning_curve
from curvewise.study.store import Run, list_runs, read_run, write_run

__all__ = ["Run", "list_runs", "measure_learning_curve", "read_run", "write_run"]
