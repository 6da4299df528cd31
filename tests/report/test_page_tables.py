"""What a table of a report shows."""

from __future__ import annotations

import math

import pytest

from curvewise.errors import Message, arg, prefix
from curvewise.report.content import ReportTable, Section
from curvewise.report.page import shown_columns
from curvewise.text import Cell, format_table


@pytest.mark.parametrize(("low", "high"), [("rank_low", "rank_high"), ("low", "high")])
def test_an_interval_stands_behind_what_it_is_of(low: str, high: str) -> None:
    given = {"name": ["a", "b"], "rank": [2, 3.5], low: [1, -math.inf], high: [3, 3.9]}
    name, rank = shown_columns(ReportTable("t", "T", given), 9)
    assert (name.name, name.is_number) == ("name", False)
    assert (rank.name, rank.is_number) == ("rank", True)
    assert [(c.text, c.interval, c.value) for c in rank.cells] == [("2", "[1, 3]", 2.0), ("3.50", "[−∞, 3.90]", 3.5)]


@pytest.mark.parametrize(
    "given",
    [{"low": [1], "high": [2]}, {"rank": ["first"], "rank_low": [1], "rank_high": [2]}, {"rank": [1], "rank_low": [1]}],
)
def test_no_column_is_lost_that_ends_no_interval(given: dict[str, list[object]]) -> None:
    assert len(shown_columns(ReportTable("t", "T", given), 9)) == len(given)


def test_ends_without_a_name_are_of_the_column_before_them() -> None:
    given = {"rank": [1], "runs": [4], "low": [1], "high": [2]}
    found = shown_columns(ReportTable("t", "T", given), 9)
    assert [(c.name, c.cells[0].interval) for c in found] == [("rank", ""), ("runs", "[1, 2]")]


def test_an_interval_that_is_not_known_is_no_pair_of_dashes() -> None:
    given = {"std": [0.1], "low": [None], "high": [math.nan]}
    (only,) = shown_columns(ReportTable("t", "T", given), 9)
    assert (only.cells[0].text, only.cells[0].interval) == ("0.1", "")


def test_an_upper_bound_of_a_p_value_is_sorted_as_a_number() -> None:
    (column,) = shown_columns(ReportTable("t", "P-values", {}, written={"p": [Cell("< 1e-09"), Cell("0.03")]}), 9)
    assert [(c.text, c.value) for c in column.cells] == [("< 1e-09", 1e-9), ("0.03", 0.03)]
    assert "$<$ 1e-09" in format_table({"p": [Cell("< 1e-09")]}, "latex")


@pytest.mark.parametrize("name", ["1.2.3", "...", ",", "-.", "2.0.1 [beta]"])
def test_a_name_that_looks_like_a_number_is_a_name(name: str) -> None:
    (column,) = shown_columns(ReportTable("t", "T", {"model": [name]}), 9)
    assert [(c.text, c.value) for c in column.cells] == [(name, None)]


def test_chances_are_numbers_that_sort_and_read_as_in_sentences() -> None:
    (chance,) = shown_columns(ReportTable("t", "T", {"probability_never": [9.4e-16, 0.2, 0.9967]}), 9)
    assert chance.is_number
    assert [(c.text, c.value) for c in chance.cells] == [("<1%", 1.0), ("20%", 20.0), (">99%", 99.0)]


def test_what_a_section_says_is_for_python_and_the_command_line() -> None:
    message = Message(f"Use {arg('form', 'auto')}.")
    section = Section("Why?", (message,), (prefix("net: ", message),))
    advice = 'Use form="auto" in Python, --form auto on the command line.'
    assert (section.text, section.warnings) == ((advice,), (f"net: {advice}",))
