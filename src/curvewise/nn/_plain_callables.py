"""Models of any framework: functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from curvewise.errors import InputError
from curvewise.nn._guarding import check_logits


class PlainCallable:
    """Calls a function with an array of inputs, and makes logits of what it gives.

    Parameters
    ----------
    function : callable
        From inputs (B, ...) to logits or probabilities (B, classes), or to classes (B,) of
        integers.
    classes : int
        How many there are at least.
    """

    def __init__(self, function: Callable[..., Any], classes: int) -> None:
        self.function, self.classes = function, classes

    def __call__(self, x: Tensor) -> Tensor:
        """Logits; for classes, 1 for the one and 0 for the others."""
        output = self.function(x.numpy())
        found = output.detach().cpu().numpy() if isinstance(output, Tensor) else np.asarray(output)
        if found.dtype.kind in "iub" and found.shape == (len(x),):
            return self._chosen(found.astype(np.int64))
        if found.dtype.kind not in "fiub":
            raise InputError(
                f"model returned {found.dtype} of shape {found.shape}: it must return logits or "
                "probabilities, (examples, classes), or classes as integers, (examples,)."
            )
        logits = torch.from_numpy(np.array(found))
        check_logits(logits, len(x), self.classes)
        return logits

    def _chosen(self, classes: Any) -> Tensor:
        """One more class than there is takes what is not a class."""
        most = max(self.classes, int(classes.max(initial=0)) + 1)
        classes = np.where(classes < 0, most, classes)
        return torch.nn.functional.one_hot(torch.from_numpy(classes), most + 1).float()
