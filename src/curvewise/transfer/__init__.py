"""Does pretraining beat simple controls? Calibrated risk and cumulative improvement."""

from curvewise.transfer.calibrated import calibrated_risk
from curvewise.transfer.cumulative import cci

__all__ = ["calibrated_risk", "cci"]
