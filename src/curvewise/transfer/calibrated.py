"""Risks on the scale between a blind guess and maximal supervision."""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError
from curvewise.types import FloatArray, as_floats


@overload
def calibrated_risk(risk: float, *, blind: float, maximal: float) -> float: ...
@overload
def calibrated_risk(risk: ArrayLike, *, blind: ArrayLike, maximal: ArrayLike) -> FloatArray: ...
def calibrated_risk(risk: ArrayLike, *, blind: ArrayLike, maximal: ArrayLike) -> float | FloatArray:
    """How far a risk is from maximal supervision, with the blind guess at 1.

    Atanov et al. 2022: (R − R_maximal) / (R_blind − R_maximal). 1 is no better than a blind guess,
    0 as good as with all the data anyone has; above 1 is worse than a guess, below 0 better than
    what was taken for maximal.

    Parameters
    ----------
    risk : array_like
        Losses or errors; NaN stays NaN.
    blind, maximal : array_like
        Risks of the two controls, in the same unit.

    Raises
    ------
    InputError
        If the blind guess is not worse than maximal supervision.

    Examples
    --------
    >>> calibrated_risk(0.5, blind=0.9, maximal=0.1)
    0.5
    """
    r, b, m = (as_floats(v, k) for v, k in ((risk, "risk"), (blind, "blind"), (maximal, "maximal")))
    if not (np.isfinite(b).all() and np.isfinite(m).all()):
        raise InputError("blind and maximal must be finite: a scale needs both of its ends.")
    if not (b > m).all():
        raise InputError(
            f"blind={blind!r} must be above maximal={maximal!r}: risks are lower-is-better. Turn "
            "accuracies into errors, or check which control is which."
        )
    found = (r - m) / (b - m)
    return float(found) if found.ndim == 0 else found
