from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cyclopts import App
from cyclopts.completion import bash, fish, zsh

from curvewise.cli.app import app

SHELLS = ["bash", "zsh", "fish"]


@pytest.fixture(autouse=True, scope="module")
def _one_script_for_each_shell() -> Iterator[None]:
    """Generate a shell's script once: it takes seconds, and an installation asks for it twice.

    Most of it is reading all commands, which is the same for every shell.
    """
    original = App.generate_completion
    made = cache(lambda shell: original(app, shell=shell))
    with pytest.MonkeyPatch.context() as patch:
        commands = bash.extract_completion_data(app)
        for module in (bash, zsh, fish):
            patch.setattr(module, "extract_completion_data", lambda _: commands)
        patch.setattr(App, "generate_completion", lambda self, *, shell: made(shell))
        yield


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """An empty home folder; the user's own is never touched."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    for name in ("ZSH", "ZSH_CUSTOM"):
        monkeypatch.delenv(name, raising=False)
    return folder


def install(call, shell, *arguments):
    return call("--install-completion", "--shell", shell, *arguments)


@pytest.mark.parametrize("shell", SHELLS)
def test_output_writes_one_file_and_nothing_else(call, home, tmp_path, shell):
    (home / ".bashrc").write_text("# mine\n")
    done = install(call, shell, "--output", tmp_path / "comp.sh")
    assert done.code == 0
    assert done.out == ""
    assert "no startup file was changed" in done.err
    script = (tmp_path / "comp.sh").read_text()
    assert all(word in script for word in ("curvewise", "learning", "compare"))
    assert (home / ".bashrc").read_text() == "# mine\n"
    assert [p.name for p in home.iterdir()] == [".bashrc"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["comp.sh", "home"]


def test_output_names_the_folder_that_is_missing_and_does_not_make_it(call, home, tmp_path):
    done = install(call, "bash", "--output", tmp_path / "no" / "comp.sh")
    assert done.code == 2
    assert f"there is no folder {tmp_path / 'no'}" in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["home"]
    assert not list(home.iterdir())


@pytest.mark.parametrize("output", [("--output", "-"), ("--output=-",), ("-o", "-")])
def test_a_hyphen_prints_the_script(call, home, tmp_path, output):
    done = install(call, "bash", *output)
    install(call, "bash", "--output", tmp_path / "comp.sh")
    assert done.code == 0
    assert done.err == ""
    assert done.out == (tmp_path / "comp.sh").read_text()
    assert not list(home.iterdir())


@pytest.mark.parametrize(("shell", "startup"), [("bash", ".bashrc"), ("zsh", ".zshrc")])
def test_installing_twice_adds_lines_once(call, home, shell, startup):
    (home / startup).write_text("# mine\n")
    first = install(call, shell)
    once = (home / startup).read_text()
    second = install(call, shell)
    assert (first.code, second.code) == (0, 0)
    assert f"{home / startup}: two lines added" in first.err
    assert f"{home / startup}: left as it was" in second.err
    assert "# mine\n" in once
    assert len(once.splitlines()) == 3
    assert (home / startup).read_text() == once


def test_a_line_of_the_users_own_is_enough(call, home):
    install(call, "bash")
    script = home / ".local" / "share" / "bash-completion" / "completions" / "curvewise"
    (home / ".bashrc").write_text(f"source {script}\n")
    install(call, "bash")
    assert (home / ".bashrc").read_text() == f"source {script}\n"


def test_fish_needs_no_startup_file(call, home):
    assert "no startup file was changed" in install(call, "fish").err
    assert [p.name for p in home.rglob("*") if p.is_file()] == ["curvewise.fish"]


def test_help_says_that_a_startup_file_is_changed(call):
    text = " ".join(call("--install-completion", "--help").out.split())
    assert "adds lines to your shell's startup file" in text
    assert "~/.bashrc" in text
    assert "startup file" in " ".join(call("--help").out.replace("│", " ").split())


def test_unknown_shell_is_asked_for(call, home, monkeypatch):
    from cyclopts.completion import detect

    def lost() -> None:
        raise detect.ShellDetectionError

    monkeypatch.setattr(detect, "detect_shell", lost)
    done = call("--install-completion")
    assert done.code == 2
    assert "--shell" in done.err
    assert not list(home.iterdir())
