"""``--plot``: every learning command draws, and refuses early what it cannot."""

from __future__ import annotations

import pytest

COMMANDS = {
    "fit": ("--largest", "3"),
    "compare": (),
    "plan": ("--learner", "naive Bayes"),
    "rank": ("--at", "5748"),
    "validate": (),
    "stability": ("--learner", "naive Bayes", "--kind", "curves", "--x", "log", "--draws", "20"),
    "check": (),
}


@pytest.mark.parametrize(("command", "options"), COMMANDS.items())
def test_every_command_draws(call, errors, tmp_path, command, options):
    done = call("learning", command, errors, *options, "--plot", tmp_path / "c.png")
    assert done.code == 0
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "drawn into" in done.err


def test_plan_that_needs_no_runs_draws(call, errors, tmp_path):
    options = ("--learner", "naive Bayes", "--factor", "0.999", "--plot", tmp_path / "p.svg")
    assert call("learning", "plan", errors, *options).code == 0
    assert (tmp_path / "p.svg").stat().st_size > 1000


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_kinds_of_files(call, errors, tmp_path, ending):
    path = tmp_path / f"curves.{ending}"
    assert call("learning", "fit", errors, "--plot", path, "--x", "log").code == 0
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_ending_is_refused_before_reading(call, tmp_path, command):
    done = call("learning", command, tmp_path / "absent.csv", "--plot", "curves.docx")
    assert done.code == 2
    assert ".png, .svg, .pdf" in done.err
    assert "absent" not in done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_folder_is_named_before_reading(call, tmp_path, command):
    missing = tmp_path / "no"
    done = call("learning", command, tmp_path / "absent.csv", "--plot", missing / "c.png")
    assert done.code == 2
    assert f"there is no folder {missing}." in done.err
    assert "absent" not in done.err
    assert not missing.exists()


def test_file_in_the_current_folder(call, errors, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("learning", "rank", errors, "--plot", "r.png").code == 0
    assert (tmp_path / "r.png").exists()
