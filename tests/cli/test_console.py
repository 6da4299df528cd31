"""What is printed on a terminal."""

from __future__ import annotations

from curvewise.cli.console import Page, as_options


def test_numbers_of_a_wide_table_are_never_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    columns = {"learner": ["a long name", "b"]}
    columns |= {f"column {i}": [123456.789 + i, 2.0] for i in range(9)}
    Page().table("wide", columns, 4)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert all(f"{123456.789 + i:,.4f}" in shown for i in range(9))
    assert "long" in shown


def test_options_in_messages_can_be_typed():
    assert as_options("say which with value=…. It has") == "say which with --value-column. It has"
    assert as_options("pass columns={'learner': None} to take none") == ("pass --column learner= to take none")
    assert as_options("pass columns={'value': None}, or labels=…") == ("pass --column value=, or --labels")
