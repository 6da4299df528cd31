"""The README's examples run and print what it shows."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def tool(name: str) -> Any:
    """A module of tools/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


readme, words = tool("readme"), tool("words")


def test_it_is_short_and_begins_with_an_answer() -> None:
    lines = TEXT.splitlines()
    assert len(lines) <= 120
    first = "\n".join(lines[:60])
    assert re.search(r"!\[[^]]+\]\(docs/images/networks\.png\)", first)
    assert "pip install ." in first
    assert re.search(r"is (significantly )?better than", first)
    assert "not significantly" not in TEXT
    for word in (r"\blens", r"\bshelf\b", "Pal-score", "data-reliance"):
        assert not re.search(word, first), word


@pytest.mark.filterwarnings("ignore")
def test_python_prints_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = readme.make_place(tmp_path)
    monkeypatch.chdir(place)
    names: dict[str, Any] = {}
    printed = io.StringIO()
    for language, body in readme.FENCE.findall(TEXT):
        if language == "python":  # one program in several blocks
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(body, names)
        elif language == "text":
            found = printed.getvalue()
            assert readme.agree(body, found), f"run `python tools/readme.py`; now it prints:\n{found}"
    assert (place / "networks.png").stat().st_size > 10_000


def test_commands_run(tmp_path: Path, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    place = readme.make_place(tmp_path)
    monkeypatch.chdir(place)
    save_own_files()
    consoles = [body for language, body in readme.FENCE.findall(TEXT) if language == "console"]
    shown = [session for body in consoles for session in readme.sessions(body) if session[0].startswith("$ ")]
    asked = [(f"$ {command}", "") for command in readme.table_commands(TEXT)]
    assert len(asked) == 11
    done: set[str] = set()
    for line, output in [*shown, *asked]:
        if line in done:
            continue
        done.add(line)
        program, *arguments = shlex.split(line[2:], comments=True)
        assert program == "curvewise"
        # In this process: workers of their own would load torch again.
        outcome = call(*arguments, *(["--workers", 0] if arguments[:2] == ["study", "run"] else []))
        assert outcome.code == 0, f"{line}\n{outcome.err[-2000:]}"
        if output.strip():
            assert readme.agree(output, outcome.out), f"{line}\n{outcome.out}"


def test_pages_and_files_that_it_names_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", TEXT):
        assert (ROOT / target).exists(), target
    for target in re.findall(r"`((?:benchmarks|examples|docs)/[\w/.]+\.\w+)`", TEXT):
        assert (ROOT / target).exists(), target


def test_outputs_are_compared_by_value() -> None:
    shown = "A is better: -2.5% [-2.9, -2.0]\n…\ncross near n = 394"
    assert readme.agree(shown, "A is better:\n-2.6% [-2.9, -2.0] p = 0.01\nThey cross near n = 397 [301, 472]") is False
    assert readme.agree(shown, "A is better:\n-2.6% [-2.9, -2.0] p = 0.01\nThey cross near n = 397")
    assert not readme.agree(shown, "B is better: -2.5% [-2.9, -2.0] They cross near n = 394")
    assert not readme.agree(shown, "A is better: -2.7% [-2.9, -2.0] They cross near n = 394")
    assert not readme.agree(shown, "A is better: -2.5% [-2.9, -2.0] They cross near n = 450")
    assert not readme.agree("nothing more", "nothing more is said")


@pytest.mark.parametrize(
    "text", ["It is surely\nworse.", "which\n    # cannot be", "Better here, no more.", "736 runs planned: 0 there"]
)
def test_the_word_list_finds_the_dialect(text: str) -> None:
    assert list(words.find_words(text))


def test_the_word_list_leaves_plain_words() -> None:
    assert not list(words.find_words("no more than 5; 736 runs: 0 finished, 736 remaining; the leisurely way"))


def save_own_files() -> None:
    """The network and the features that a reader has."""
    import torch

    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval()
    batch = torch.export.Dim("batch")
    program = torch.export.export(net, (torch.zeros(2, 1, 8, 8),), dynamic_shapes=({0: batch},))
    torch.export.save(program, "net.pt2")
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    np.save("labels.npy", labels)
    np.save("a.npy", np.eye(3)[labels] + rng.normal(size=(90, 3)))
    np.save("b.npy", rng.normal(size=(90, 3)))
