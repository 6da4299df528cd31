"""Run the examples of the README and write what they print, and the picture, into it.

Run ``python tools/readme.py`` from the root after a change of outputs. The tests run the same examples and compare. A
``text`` block holds what the ``python`` block before it prints; lines below ``$ curvewise …`` are that command's. An
ellipsis on a line of its own stands for lines that are left out, and is kept.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
WIDTH = 112
MARK = "\N{BLACK SQUARE}next\N{BLACK SQUARE}"


def main() -> int:
    """Rewrite the outputs and the picture."""
    with tempfile.TemporaryDirectory() as folder:
        place = make_place(Path(folder))
        text = README.read_text(encoding="utf-8")
        README.write_text(rewrite(text, place), encoding="utf-8")
        shutil.copy(place / "networks.png", ROOT / "docs" / "images" / "networks.png")
    return 0


def make_place(folder: Path) -> Path:
    """Copy the examples and write the study, as a reader has them who cloned the repository."""
    ignored = shutil.ignore_patterns("*-runs", "__pycache__", "seeds.npz")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=ignored)
    (study,) = (body for language, body in FENCE.findall(README.read_text(encoding="utf-8")) if language == "toml")
    (folder / "digits.toml").write_text(study, encoding="utf-8")
    return folder


def rewrite(text: str, place: Path) -> str:
    """Replace the outputs in a text by those of now."""
    printed = iter(run_python(text, place))
    current = ""

    def block(found: re.Match[str]) -> str:
        nonlocal current
        language, body = found.groups()
        if language == "python":
            current = next(printed)
        elif language == "text":
            body = fold(current)
        elif language == "console":
            body = "".join(_session(command, shown, place) for command, shown in sessions(body))
        return f"```{language}\n{body}```"

    return FENCE.sub(block, text)


def run_python(text: str, place: Path) -> list[str]:
    """Run the Python blocks one after the other as one program; return what each prints."""
    code = f"\nprint({MARK!r})\n".join(body for language, body in FENCE.findall(text) if language == "python")
    done = run([sys.executable, "-W", "ignore", "-c", code], place)
    return done.split(MARK + "\n")


def sessions(body: str) -> list[tuple[str, str]]:
    """Split a console block into commands (with their prompt, where one is shown) and what is shown below them."""
    parts = re.split(r"^(?=\$ )", body, flags=re.MULTILINE)
    return [(part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in parts if part]


def table_commands(text: str) -> list[str]:
    """List the commands in the table of questions."""
    return re.findall(r"^\|[^|]*\| `(curvewise [^`]*)` \|", text, flags=re.MULTILINE)


def run(command: list[str], place: Path) -> str:
    """Run a program there and return its standard output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    settings = {
        **os.environ,
        "PATH": path,
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "NO_COLOR": "1",
        "COLUMNS": "120",
    }
    done = subprocess.run(command, cwd=place, env=settings, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def fold(text: str) -> str:
    """Fold long lines, and end with a line's end."""
    lines = [folded for line in text.rstrip().splitlines() for folded in textwrap.wrap(line, WIDTH) or [""]]
    return "\n".join(lines) + "\n"


def agree(shown: str, printed: str) -> bool:
    """Compare what is shown with what was printed: same words, numbers within 2% or one unit of their last digit.

    Line ends do not count. An ellipsis stands for anything.
    """
    words, at = printed.split(), 0
    pieces = [piece.split() for piece in re.split(r"^…$", shown, flags=re.MULTILINE)]
    for index, piece in enumerate(pieces):
        # After an ellipsis a piece may begin anywhere, the first one only at the beginning.
        starts = range(at, len(words) - len(piece) + 1) if index else [0]
        fits = [s for s in starts if len(words) - s >= len(piece) and all(map(_alike, piece, words[s:]))]
        if not fits:
            return False
        at = fits[0] + len(piece)
    return at == len(words) or not pieces[-1]


def _alike(shown: str, printed: str) -> bool:
    """Compare two words, numbers in them by value."""
    number = r"\d[\d,]*\.?\d*(?:e-?\d+)?"
    if re.sub(number, "0", shown) != re.sub(number, "0", printed):
        return False
    for a, b in zip(re.findall(number, shown), re.findall(number, printed), strict=True):
        x, y = (float(v.rstrip(".").replace(",", "")) for v in (a, b))
        digits = len(a.split(".")[1]) if "." in a and "e" not in a else 0
        if abs(x - y) > max(0.02 * abs(x), 1.001 * 10.0**-digits if x % 1 else 0.02 * abs(x)):
            return False
    return True


def _session(command: str, shown: str, place: Path) -> str:
    """Write one command with its output; where lines were left out, they stay out."""
    if not command.startswith("$ "):
        return f"{command}\n{shown}"
    printed = fold(run(["bash", "-c", command[2:]], place))
    if not shown.strip() or shown.strip() == "…":
        return f"{command}\n{shown}"
    return f"{command}\n{printed}"


if __name__ == "__main__":
    sys.exit(main())
