"""What is printed on a terminal."""

from __future__ import annotations

from curvewise.cli._console import Page


def test_numbers_of_a_wide_table_are_never_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    columns = {"learner": ["a long name", "b"]}
    columns |= {f"column {i}": [123456.789 + i, 2.0] for i in range(9)}
    Page().table("wide", columns, 4)
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert all(f"{123456.789 + i:,.4f}" in shown for i in range(9))
    assert "long" in shown
