"""Find words that users should not have to decode, and name plain ones to write instead.

Run ``python tools/words.py`` from the root (part of ``make lint``): every hit is printed with file and line, and the
exit status is 1 if there is one. Files or folders may be named; by default it is all that a reader sees.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READ = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "src", "docs", "examples", "benchmarks", "tests", "tools")
ENDINGS = {".py", ".pyi", ".md", ".toml", ".html", ".js", ".ipynb", ".cff"}
SKIPPED = {"_build", "jupyter_execute", "__pycache__"}

# A pattern, and what to write instead. A blank also matches the end of a line, in a comment too.
WORDS = {
    r"\bsurely\b": "significantly; certainly",
    r"\bforetell(?:s|ing)?\b|\bforetold\b": "predict",
    r"\bwhich cannot be\b": "say what is impossible, and what to do",
    r"\bno more\.|, no more\b(?! than)": "only",
    r"\b(?:is|are|was|were) told\b": "is given; says",
    r"\bfor want of\b": "due to limited",
    r"\bon the distribution\b": "on new data",
    r"\bcannot be told apart\b": "not significantly different",
    r"\bearns? (?:its|their) keep\b": "pays off; is worth it",
    r"\bruns planned: \d|\d there, \d+ to do": "N runs: n finished, n remaining",
    r"\bwhat is no network\b|\bnobody plays\b|\bwhich so few\b": "the usual words of the field",
    r'"""(?:What|Whether|How|Those who|Who) ': "open a docstring with a verb or a noun",
}
GAP = r"[\s#]+"
PATTERN = re.compile("|".join(f"(?P<w{i}>{p.replace(' ', GAP)})" for i, p in enumerate(WORDS)), re.IGNORECASE)


def main() -> int:
    """Print every hit and return the exit status."""
    places = [Path(name).resolve() for name in sys.argv[1:]] or [ROOT / name for name in READ]
    count = 0
    for path in sorted({file for place in places for file in _files(place)}):
        for line, words, instead in find_words(path.read_text(encoding="utf-8")):
            if words.startswith('"""') and "tests" in path.parts:
                continue
            count += 1
            print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}: {words!r}: {instead}")
    if count:
        print(f"{count} to be written in plain words")
    return 1 if count else 0


def find_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the words and what to write instead for each hit in a text."""
    for hit in PATTERN.finditer(text):
        instead = list(WORDS.values())[int((hit.lastgroup or "w0")[1:])]
        yield text.count("\n", 0, hit.start()) + 1, " ".join(hit.group().split()), instead


def _files(place: Path) -> Iterator[Path]:
    """Yield the text files below a place, but neither this one nor its test, which hold the words themselves."""
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        wanted = path.suffix in ENDINGS and path.is_file() and not SKIPPED & set(path.parts)
        if wanted and path.name not in (Path(__file__).name, "test_readme.py"):
            yield path


if __name__ == "__main__":
    sys.exit(main())
