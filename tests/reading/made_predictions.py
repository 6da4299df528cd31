"""Predictions made up once, for the tests of every form in which they can be stored."""

import numpy as np
import pandas as pd
import pytest

from curvewise.errors import InputError
from curvewise.variance.load import load_predictions

RUNS, EXAMPLES = 4, 30
RNG = np.random.default_rng(3)
LABELS = RNG.integers(0, 3, EXAMPLES)
PREDS = np.where(RNG.random((RUNS, EXAMPLES)) < 0.7, LABELS, RNG.integers(0, 3, (RUNS, EXAMPLES)))
PREDS[:, :3] = LABELS[:3] = [0, 1, 2]
PREDS = PREDS.astype(np.uint8)
ERRORS = (PREDS != LABELS).astype(np.uint8)
GROUPS = np.arange(EXAMPLES) // 5
LOSSES = RNG.random((RUNS, EXAMPLES)) + ERRORS
PROBABILITIES = np.eye(3)[PREDS] * 0.7 + 0.1


def long_frame(**more):
    frame = pd.DataFrame(
        {
            "seed": np.repeat(np.arange(RUNS), EXAMPLES),
            "id": np.tile(np.arange(EXAMPLES), RUNS),
            "pred": PREDS.ravel(),
            "label": np.tile(LABELS, RUNS),
        }
    )
    return frame.assign(**more)


def save_npz(folder, **arrays):
    path = folder / "runs.npz"
    np.savez_compressed(path, **arrays)
    return path


def same(p, labels=True):
    """The predictions are those that were written, run by run and example by example."""
    np.testing.assert_array_equal(p.errors(), ERRORS)
    if labels:
        assert p.kind == "labels"
        np.testing.assert_array_equal(np.concatenate([b for _, b in p.label_blocks()]), PREDS)
        np.testing.assert_array_equal(p.labels, LABELS)
    return p


def fails(message, source, **options):
    with pytest.raises(InputError, match=message) as caught:
        load_predictions(source, **options)
    assert str(caught.value).isprintable()


class Trap:
    """Fails the test if it is ever unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))
