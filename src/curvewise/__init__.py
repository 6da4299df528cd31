"""Judge learners by their curves, not by one number."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curvewise.errors import CurvewiseError as CurvewiseError
    from curvewise.errors import CurvewiseWarning as CurvewiseWarning
    from curvewise.errors import InputError as InputError
    from curvewise.io import load_measurements as load_measurements
    from curvewise.learning import Constants as Constants
    from curvewise.learning import check_variance_model as check_variance_model
    from curvewise.learning import compare_learning_curves as compare_learning_curves
    from curvewise.learning import fit_learning_curve as fit_learning_curve
    from curvewise.learning import fit_learning_curves as fit_learning_curves
    from curvewise.learning import geometric_sizes as geometric_sizes
    from curvewise.learning import leave_one_size_out as leave_one_size_out
    from curvewise.learning import measure_stability as measure_stability
    from curvewise.learning import partition_training_set as partition_training_set
    from curvewise.learning import plan_sizes as plan_sizes
    from curvewise.learning import rank_learners as rank_learners
    from curvewise.plot import plot_learning_curves as plot_learning_curves
    from curvewise.study import measure_learning_curve as measure_learning_curve
    from curvewise.study import write_run as write_run
    from curvewise.types import Interval as Interval
    from curvewise.types import Measurements as Measurements
    from curvewise.types import Unit as Unit

__version__ = "0.1.0"

# Public name → where it lives. Nothing is imported before it is used, so that
# `import curvewise` stays quick.
_HOMES = {
    "errors": ("CurvewiseError", "CurvewiseWarning", "InputError"),
    "types": ("Interval", "Measurements", "Unit"),
    "io": ("load_measurements",),
    "learning": (
        "Constants",
        "check_variance_model",
        "compare_learning_curves",
        "fit_learning_curve",
        "fit_learning_curves",
        "geometric_sizes",
        "leave_one_size_out",
        "measure_stability",
        "partition_training_set",
        "plan_sizes",
        "rank_learners",
    ),
    "plot": ("plot_learning_curves",),
    "study": ("measure_learning_curve", "write_run"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'curvewise' has no attribute {name!r}")
    value = getattr(import_module(f"curvewise.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
