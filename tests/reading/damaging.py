"""Damage for files of every kind, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from curvewise.errors import CurvewiseError

LONGEST = 1500
"""Characters of a message that is one sentence or a few."""

WORDS = (
    *("nan", "inf", "-inf", "-1", "0", "1e999", "1e-400", "9" * 400, "9" * 5000, "", "  ", "a "),
    *("a\u00a0", "\u202e", "=1+1", "null", "NA", "1,000", "1.000,5", "0,5", "50%", "1_000", "0x10"),
    *("true", "[1, 2]", "{}", "٣", "½", "1k", "all", "\x07", "a" * 300),
)
_BYTES = (
    *(b"nan", b"inf", b"-1", b"1e999", b"\x00", b'"', b",", b"[", b"{", b"null", b"\xff"),
    *(b"\xe2\x80\xae", b"%", b"\t", b"\r", b"9" * 400, b"9" * 5000, b"\xff" * 8),
    *(b"\xff\xff\xff\x7f", b"\x80\x00\x00\x00"),
)


def damaged(data: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """Files that were cut short, overwritten, pasted into or repeated."""
    rng = random.Random(seed)
    for _ in range(count):
        made = bytearray(data)
        for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
            made = made or bytearray(b"x")
            head = rng.random() < 0.5  # where most of the structure is
            i = rng.randrange(min(len(made), 400) if head else len(made))
            kind = rng.randrange(9)
            if kind == 0:
                made[i] = rng.randrange(256)
            elif kind == 1:
                made = made[:i]
            elif kind == 2:
                made[i:i] = rng.randbytes(rng.choice((1, 3, 50)))
            elif kind == 3:
                del made[i : i + rng.choice((1, 5, 50))]
            elif kind == 4:
                made[i:i] = rng.choice(_BYTES)
            elif kind == 5:
                made[i : i + 8] = b"\xff" * 8
            elif kind == 6:
                j = rng.randrange(len(made))
                made[i:i] = made[j : j + 20]
            elif kind == 7:
                made = made.replace(b"\n", b"\r") if rng.random() < 0.5 else made + made
            else:
                made = bytearray(b"before") + made
        yield bytes(made)


def survives(load: Callable[[Any], Any], source: Any) -> bool:
    """Whether it loads; raises unless it is refused in words of curvewise."""
    try:
        load(source)
    except CurvewiseError as error:
        if not 0 < len(str(error)) < LONGEST:
            raise AssertionError(f"{len(str(error))} characters: {error!s:.300}") from error
        return False
    except BaseException as error:
        said = source.read_bytes()[:200] if isinstance(source, Path) else repr(source)[:200]
        raise AssertionError(f"{type(error).__name__}: {error!s:.200} for {said!r}") from error
    return True
