"""Text that is safe to draw: names from outside, shortened, with glyphs that the font has."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from matplotlib import rcParams
from matplotlib.font_manager import FontProperties, findfont, get_font

from curvewise.errors import neutral

LONGEST = 32
"""Characters of a name that are shown."""

_STAND_INS = {"⚠": "!", "−": "-", "…": "...", "×": "x", "±": "+/-", "∞": "inf", "²": "^2"}
_MISSING = "□"


def safe_text(text: str, longest: int = LONGEST, tail: float = 0.5) -> str:
    r"""Make any string drawable as it is: one line, no mathematics, no glyph the font lacks.

    Long strings lose their middle; ``tail`` is the share that the end keeps.

    >>> safe_text("a\nb $x$"), len(safe_text("x" * 300))
    ('a b \\$x\\$', 32)
    """
    return escape(shorten(clean(text), longest, tail))


def safe_names(names: Iterable[str], longest: int = LONGEST) -> list[str]:
    """Safe text of several names, shortened where they agree; those still alike get a number.

    >>> safe_names(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    wanted = list(names)
    # Names often differ only at one end (a prefix of the project, a suffix with the seed): cut where most stay apart.
    tries = [[safe_text(name, longest, tail) for name in wanted] for tail in (0.5, 0.85, 0.15)]
    seen: dict[str, int] = {}
    out = []
    for text in max(tries, key=lambda texts: len(set(texts))):
        seen[text] = seen.get(text, 0) + 1
        out.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return out


def wrap_lines(lines: Sequence[str], width: int, longest: int = 240) -> str:
    """Wrap plain lines for a caption, each shortened first."""
    wrapped = (textwrap.fill(shorten(clean(line), longest), max(width, 20)) for line in lines)
    return escape("\n".join(wrapped))


def clean(text: str) -> str:
    """One line without control characters, in glyphs that the font has."""
    known = _glyphs()
    kept = "".join(map(_plain_character, unicodedata.normalize("NFC", str(neutral(text)))))
    return "".join(_drawable(c, known) for c in " ".join(kept.split()))


def escape(text: str) -> str:
    """Switch off mathematics."""
    return text.replace("$", r"\$")


def shorten(text: str, longest: int, tail: float = 0.5) -> str:
    """Replace the middle by an ellipsis, of a sentence between words: half a number is another number."""
    if len(text) <= longest:
        return text
    end = int(tail * (longest - 1))
    first, last = text[: longest - 1 - end], text[len(text) - end :]
    if longest > 2 * LONGEST:  # no name
        first, last = first[: first.rfind(" ") + 1] or first, last[max(last.find(" "), 0) :]
    return first + _drawable("…", _glyphs()) + last


def _plain_character(c: str) -> str:
    kind = unicodedata.category(c)
    if kind == "Cf":
        return ""
    return " " if kind == "Cc" or c.isspace() else c


def _drawable(c: str, known: frozenset[int]) -> str:
    if ord(c) in known:
        return c
    if unicodedata.combining(c) or unicodedata.category(c) == "Mn":
        return ""
    return _STAND_INS.get(c, _MISSING if ord(_MISSING) in known else "?")


def _glyphs() -> frozenset[int]:
    """Code points of the fonts that matplotlib would use now, fallbacks included."""
    known: frozenset[int] = frozenset()
    for family in rcParams["font.family"]:
        try:
            path = findfont(FontProperties(family=[family]), fallback_to_default=False)
        except ValueError:
            continue
        known |= _charmap(str(path))
    return known or _charmap(str(findfont(FontProperties())))


@lru_cache(maxsize=32)
def _charmap(path: str) -> frozenset[int]:
    return frozenset(get_font(path).get_charmap())
