"""Derivatives of the forms against differences."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.scaling.forms import FORMS, Place


@pytest.mark.parametrize("name", FORMS)
def test_derivatives_are_those_of_differences(name):
    rng = np.random.default_rng(0)
    form = FORMS[name](20.0, 24.0)
    theta = np.column_stack(
        [rng.uniform(0.5, 2, 6), rng.uniform(-2, 0, (6, 2)), rng.uniform(0.2, 0.6, (6, form.size - 3))]
    )
    if name == "repeated":
        theta[:, 5:] = np.log(rng.uniform(1, 20, (6, 2)))
    x, y = 2 * rng.standard_normal((2, 40))
    at = Place(x, y, y - 2 * np.abs(rng.standard_normal(40)))
    values, weights = form.values(theta, at), rng.standard_normal((6, 40))
    bend = values.bend(weights)
    for j in range(form.size):
        step = 1e-5 * np.eye(form.size)[j]
        high, low = (form.values(theta + s * step, at) for s in (1, -1))
        np.testing.assert_allclose(values.slope[:, j], (high.loss - low.loss) / 2e-5, rtol=1e-6, atol=1e-7)
        if name != "repeated":  # which leaves out a part of its second derivatives
            second = ((high.slope - low.slope) * weights[:, None]).sum(axis=2) / 2e-5
            np.testing.assert_allclose(bend[:, :, j], second, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FORMS)
def test_parameters_of_papers_there_and_back(name):
    given = {"E": 1.7, "A": 400.0, "B": 900.0, "alpha": 0.3, "beta": 0.3, "g": 0.7, "R_D": 15.0, "R_N": 5.0}
    form = FORMS[name](20.0, 24.0)
    found = form.public(form.private(given)[None])
    assert {k: pytest.approx(v[0]) for k, v in found.items()} == {k: given[k] for k in found}
    # The loss by the equation, where tokens are not repeated and parameters not in excess.
    n, d = 1e8, 1e12
    power = 1 / given["g"] if name == "coupled" else 1.0
    expected = 1.7 + ((400 / n**0.3) ** power + (900 / d**0.3) ** power) ** (1 / power)
    at = Place(np.log([n]), np.log([d]), np.log([d]))
    assert form.loss(form.private(given)[None], at)[0, 0] == pytest.approx(expected)
    assert form.own_loss(form.private(given)[None], at)[0] == pytest.approx(expected)
