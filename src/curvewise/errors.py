"""What curvewise raises and warns with."""

from __future__ import annotations


class CurvewiseError(Exception):
    """Base of every error that curvewise raises on purpose."""


class InputError(CurvewiseError, ValueError):
    """An argument cannot be used.

    The message names the argument, the value seen, what is allowed and what to do.
    """


class UntrustedCodeError(InputError):
    """An answer needs code that a study file names, and nobody said that it may be imported."""


class MissingDependencyError(CurvewiseError, ImportError):
    """A feature needs a package that is not installed; the message names the extra to install."""


class StoreError(CurvewiseError, OSError):
    """A stored run is damaged, or belongs to another study than the one asked for."""


class CurvewiseWarning(UserWarning):
    """Something in the data or the fit deserves a look; also kept on the result."""
