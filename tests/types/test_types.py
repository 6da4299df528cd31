"""Units, intervals, tables and the base of results."""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import curvewise as cw
from curvewise.errors import InputError
from curvewise.text import format_interval, format_number, format_table
from curvewise.types import Interval, Result, Unit, plain


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_number_can_be_written(value):
    text = format_number(value)
    assert text
    if math.isfinite(value) and value != 0 and 1e-4 <= abs(value) < 1e15:
        back = float(text.replace(",", ""))
        assert back == pytest.approx(value, rel=2e-3)


def test_json_is_strict(simulated):
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    text = json.dumps(curve.to_dict(), allow_nan=False)
    assert json.loads(text)["gamma"] == curve.gamma
    assert plain({"a": math.nan, "b": math.inf, "c": -math.inf}) == {"a": None, "b": "Infinity", "c": "-Infinity"}


def test_html_escapes_names(simulated):
    curve = cw.fit_learning_curve(*simulated, unit="percent", learner="<script>alert(1)</script>")
    page = curve._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_measurements_show_their_first_rows_in_a_notebook():
    rows = {"learner": ["a<b"] * 12, "n": [100] * 12, "seed": list(range(12)), "error": [0.123456] * 12}
    page = cw.load_measurements(rows)._repr_html_()
    assert page.count("<tr>") == 1 + 10
    assert "12.3%" in page
    assert "0.1234" not in page
    assert '<th style="text-align:left">learner</th>' in page
    assert '<td style="text-align:left">a&lt;b</td>' in page
    assert '<td style="text-align:right">12.3%</td>' in page
    assert "2 further rows are not shown" in page


def test_without_a_page_a_result_shows_readable_numbers(simulated, monkeypatch):
    monkeypatch.setitem(sys.modules, "curvewise.report.page", None)  # as where jinja2 is not installed
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    page = curve._repr_html_()
    assert "95% confidence intervals" in page
    assert f"{curve.e_N:.4f}" not in page
    assert format_interval(curve.interval_at().error, "percent") in page


def test_tables_escape_their_markup():
    columns = {"a_b": ["x|y", "50% & more"], "n": [1.0, float("inf")]}
    assert r"x\|y" in format_table(columns, "markdown")
    latex = format_table(columns, "latex")
    assert r"a\_b" in latex
    assert r"50\% \& more" in latex
    with pytest.raises(cw.InputError, match="format='yaml'"):
        format_table(columns, "yaml")


def test_tables_of_nothing():
    assert format_table({"a": [], "b": []}, "markdown").count("\n") == 1


def test_results_are_frozen(simulated):
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    with pytest.raises(AttributeError):
        curve.alpha = 3


def test_frame_and_predict_are_tables(simulated):
    pytest.importorskip("pandas")
    curve = cw.fit_learning_curve(*simulated, unit="percent")
    assert curve.frame()["e_N"][0] == curve.error_at()
    table = curve.predict([800, 1600])
    assert list(table.columns) == ["n", "error", "low", "high"]
    assert table["error"][1] == pytest.approx(curve.error_at(1600))
    with pytest.raises(cw.InputError, match="positive size"):
        curve.predict([-1])
    with pytest.raises(cw.InputError, match="interval='credible'"):
        curve.predict([800], interval="credible")


def test_interval_unpacks_and_contains():
    i = cw.Interval(2.0, 1.0, 3.0)
    assert tuple(i) == (2.0, 1.0, 3.0)  # estimate, low, high
    assert 2.5 in i
    assert 4 not in i
    assert not i.outside
    assert cw.Interval(5.0, 1.0, 3.0).outside
    assert str(i) == "2.0 [1.0, 3.0]"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'fit_everything'"):
        cw.fit_everything  # noqa: B018
    assert "fit_learning_curve" in dir(cw)


def test_accuracies_become_errors():
    unit = cw.types.Unit("fraction", higher_is_better=True)
    assert unit.errors([0.9, 0.7]) == pytest.approx([0.1, 0.3])
    score = cw.types.Unit("score", higher_is_better=True)
    assert np.array_equal(score.errors([30.0]), [30.0])


def test_a_result_is_one_line_unless_it_says_otherwise():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        curve = cw.fit_learning_curve([25, 50, 100, 200], [0.4, 0.3, 0.24, 0.2], unit="fraction")
    assert re.fullmatch(r"LearningCurve\(.*alpha=.*\)", repr(curve))
    assert len(repr(curve)) < 120

    @dataclass(frozen=True)
    class Own(Result):
        level: float
        low: Interval
        rows: tuple[int, ...]
        learner: tuple[str, ...] = ()
        warnings: tuple[str, ...] = ()

        def sentences(self) -> str:
            return ""

        def columns(self) -> dict[str, list[int]]:
            return {"rows": list(self.rows)}

    class Named(Own):
        def __repr__(self) -> str:
            return "my own"

    found = Own(0.95, Interval(1.0, 0.5, 2.0), (1, 2, 3))
    assert repr(found) == "Own(level=0.95, low=1.0 [0.5, 2.0], rows=(1, 2, 3))"
    assert repr(replace(found, rows=(1, 2, 3, 4), learner=("a", "b"))) == "Own(level=0.95, low=1.0 [0.5, 2.0], 4 rows)"
    assert repr(Named(0.95, Interval(1.0, 0.5, 2.0), ())) == "my own"


def test_tables_group_thousands_and_a_long_note_does_not_widen_them():
    columns = {"N": [8000, np.int64(12000)], "flag": [True, False], "x": [0.12345678, 2.0]}
    for kind in ("markdown", "latex", "html", "text"):
        text = format_table(columns, kind, None)
        assert "8,000" in text
        assert "12,000" in text
        assert "True" in text
        assert "0.1235" in text
    latex = format_table(columns, "latex", note="95% intervals " * 20)
    table, note = latex.split(r"\end{tabular}")
    assert "intervals" not in table
    assert note.startswith("\n\\par{\\footnotesize 95\\% intervals")


def test_latex_of_names_that_mean_something_to_it():
    names = ["[a]", "*b", 'c<d>|"e"', "f\ng", "h_1 & 50%", "-γ β × ∞ –", "−∞"]
    text = format_table({"[model] γ": names, "a−b ≤ c": [-0.5, -math.inf, 1.5, 2.5, 3.5, 4.5, 5.5]}, "latex")
    rows = text.splitlines()
    assert text.isascii()
    assert rows.pop(0) == r"% needs \usepackage{booktabs}"
    assert len(rows) == len(names) + 6  # two rules of the table, three of its lines, and the heading
    assert rows[2] == r"{}[model] $\gamma$ & a$-$b $\leq$ c \\"
    assert rows[4:7] == [r"{}[a] & $-0.50$ \\", r"{}*b & $-\infty$ \\", r"c$<$d$>$\textbar{}''e'' & 1.50 \\"]
    assert rows[7:11] == [
        r"f g & 2.50 \\",
        r"h\_1 \& 50\% & 3.50 \\",
        r"-$\gamma$ $\beta$ $\times$ $\infty$ -- & 4.50 \\",
        r"$-\infty$ & 5.50 \\",
    ]


def test_an_error_below_0_by_rounding_is_0():
    assert Unit("fraction").errors([1 - 0.9 - 0.1, 0.5]).tolist() == [0.0, 0.5]
    assert Unit("percent", higher_is_better=True).errors([100.00000000000001, 40]).tolist() == [0.0, 60.0]
    with pytest.raises(InputError, match="holds -1e-09, which is no fraction"):
        Unit("fraction").errors([-1e-9])
