"""Labels predicted through source classes: one by one, by brute force."""

import numpy as np
import pytest

from curvewise.ranking.measure import as_targets
from curvewise.ranking.prediction import predict_labels


@pytest.mark.parametrize("several", [False, True])
def test_probabilities_come_in_the_order_of_the_labels(several):
    rng = np.random.default_rng(0)
    source, tested = rng.dirichlet(np.ones(4), 30), rng.dirichlet(np.ones(4), 12)
    if several:
        labels, asked = rng.random((30, 3)) < 0.5, rng.random((12, 3)) < 0.5
        allowed = ("multilabel",)
    else:
        labels, asked = rng.permutation(np.arange(30) % 3), rng.permutation(np.arange(12) % 3)
        allowed = ("classes",)
    train = as_targets(labels.astype(int), 30, allowed=allowed)
    test = as_targets(asked.astype(int), 12, allowed=allowed, classes=train.classes)
    found = predict_labels(source, train, tested, test)
    expected = []
    for row, code in zip(test.rows, test.codes, strict=True):
        chance = 0.0
        for k in range(4):
            weight = sum(source[r, k] for r in train.rows)
            own = sum(source[r, k] for r, c in zip(train.rows, train.codes, strict=True) if c == code)
            chance += tested[row, k] * own / weight
        expected.append(chance)
    np.testing.assert_allclose(found, expected)
