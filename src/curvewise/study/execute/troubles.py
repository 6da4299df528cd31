"""What goes wrong in a training and is not the fault of the run."""

from __future__ import annotations

from curvewise.errors import CurvewiseError


class SpoiltDeviceError(CurvewiseError):
    """After an error on the GPU, nothing more can be computed there by this process."""
