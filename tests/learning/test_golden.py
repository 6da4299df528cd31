"""The paper's printed figures: table 3 of Hoiem et al. 2021, both column groups."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import curvewise as cw

TABLE_3 = {
    "no_pretr_linear": (78.51, 120.13, -0.84, 79.29, 1.32),
    "no_pretr_ft": (5.68, 259.29, -0.41, 27.91, 18.23),
    "pretr_linear": (24.40, 65.28, -0.35, 32.42, 5.61),
    "pretr_ft": (12.48, 194.19, -0.57, 18.86, 7.28),
}
TABLE_3_FIXED = {
    "no_pretr_linear": (78.06, 26.12, 79.36, 1.31),
    "no_pretr_ft": (11.21, 336.13, 28.02, 16.81),
    "pretr_linear": (27.33, 102.16, 32.44, 5.11),
    "pretr_ft": (11.37, 150.73, 18.91, 7.54),
}


@pytest.mark.parametrize("name", TABLE_3)
def test_extended_power_law_gives_every_printed_digit(golden, name):
    curve = cw.fit_learning_curve(*golden[name], unit="percent")
    got = (curve.alpha, curve.eta, curve.gamma, curve.error_at(400), curve.data_reliance_at(400))
    assert tuple(round(v, 2) for v in got) == TABLE_3[name]


@pytest.mark.parametrize("name", TABLE_3_FIXED)
def test_three_largest_sizes_with_gamma_half(golden, name):
    n, error = golden[name]
    curve = cw.fit_learning_curve(n, error, unit="percent", largest=3)
    got = (curve.alpha, curve.eta, curve.error_at(400), curve.data_reliance_at(400))
    assert tuple(round(v, 2) for v in got) == TABLE_3_FIXED[name]
    assert (curve.form, curve.gamma, list(curve.n)) == ("sqrt", -0.5, [100, 200, 400])
    assert "Only the 3 largest sizes are used, and γ is held at −½." in curve.notes
    # The variance model sees no other size either, and many curves at once give the same.
    again = cw.fit_learning_curve(n[n >= 100], error[n >= 100], unit="percent", form="sqrt")
    many = cw.fit_learning_curves({"one": (n, error)}, unit="percent", largest=3)["one"]
    assert curve.sigma_hat_squared == again.sigma_hat_squared == many.sigma_hat_squared
    assert (many.alpha, many.eta) == (curve.alpha, curve.eta)


def test_a_form_or_gamma_that_is_named_holds_for_the_largest_sizes(golden):
    n, error = golden["pretr_ft"]
    fitted = cw.fit_learning_curve(n, error, unit="percent", form="power", largest=4)
    assert fitted.gamma == cw.fit_learning_curve(n[n > 25], error[n > 25], unit="percent").gamma != -0.5
    assert fitted.notes == ("Only the 4 largest sizes are used.",)
    held = cw.learning.Constants(gamma=-0.4)
    assert cw.fit_learning_curve(n, error, unit="percent", largest=3, constants=held).gamma == -0.4


@pytest.mark.parametrize("name", TABLE_3)
@pytest.mark.parametrize(("unit", "factor"), [("fraction", 0.01), ("percent", 1.0)])
def test_unit_does_not_change_the_fit(golden, name, unit, factor):
    n, error = golden[name]
    curve = cw.fit_learning_curve(n, error * factor, unit=unit)
    assert curve.gamma == TABLE_3[name][2]
    assert round(curve.error_at(400) / factor, 2) == TABLE_3[name][3]


def test_accuracies_fit_like_their_errors(golden):
    n, error = golden["pretr_ft"]
    curve = cw.fit_learning_curve(n, 100 - error, unit="percent", higher_is_better=True)
    assert round(curve.error_at(400), 2) == 18.86
    assert any("turned into errors" in note for note in curve.notes)


def test_rms_difference_of_the_two_parameterisations(data_dir):
    """The text says .42 and .95 over all rows; exchanging two suspicious rows would give .16."""
    with (data_dir / "papers_tables" / "hoiem2021_table3.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    e, b, alpha, eta = (
        np.array([float(r[k]) for r in rows]) for k in ("e_400", "beta_400", "alpha_fixed", "eta_fixed")
    )
    e_fixed, b_fixed = alpha + eta * 400**-0.5, -2 * eta * -0.5 * 400**-0.5
    assert len(rows) == 41
    assert round(float(np.sqrt(np.mean((e - e_fixed) ** 2))), 2) == 0.42
    assert round(float(np.sqrt(np.mean((b - b_fixed) ** 2))), 2) == 0.95


def test_printed_parameters_give_printed_error_and_reliance(data_dir):
    """e_N = α + ηN^γ and β_N = −2ηγN^γ hold on all 41 rows, within the rounding of γ and η."""
    with (data_dir / "papers_tables" / "hoiem2021_table3.csv").open() as handle:
        for r in csv.DictReader(handle):
            a, h, g = (float(r[k]) for k in ("alpha", "eta", "gamma"))
            slack = h * 400**g * np.log(400) * 0.005 + 0.01
            assert abs(a + h * 400**g - float(r["e_400"])) < slack + 0.01
            assert abs(-2 * h * g * 400**g - float(r["beta_400"])) < 2 * slack + 0.02


def test_conditional_band_is_the_papers_equation_3(golden):
    """Brute force: the full run-by-run matrices of §3.2."""
    n, error = golden["pretr_ft"]
    curve = cw.fit_learning_curve(n, error, unit="percent")
    sizes, count = np.unique(n, return_counts=True)
    variance = 0.02 + curve.sigma_hat_squared / n
    runs = count[np.searchsorted(sizes, n)]
    design = np.stack([np.ones_like(n), n**curve.gamma], axis=1)
    root = np.sqrt(1 / (runs * variance))
    m = np.linalg.pinv(root[:, None] * design) * root
    at = np.array([1.0, 1600.0**curve.gamma])
    sd = np.sqrt(at @ (m * variance) @ m.T @ at)
    row = curve.band(np.array([1600.0]), "conditional")
    assert row["error"][0] == pytest.approx(at @ m @ error, rel=1e-9)
    assert row["high"][0] - row["error"][0] == pytest.approx(1.959964 * sd, rel=1e-6)
