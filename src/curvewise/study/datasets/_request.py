"""What a study file asks for in its table of data, taken out key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curvewise.errors import InputError
from curvewise.io._table import brief, listed, suggest


class Request:
    """The options of one set of data; what nobody took in the end is an error.

    Parameters
    ----------
    options : dict
        As given.
    folder : Path
        Where relative paths start.
    """

    def __init__(self, options: Mapping[str, Any], folder: Path) -> None:
        self._options = dict(options)
        self._taken: set[str] = set()
        self.folder = folder

    def __contains__(self, key: str) -> bool:
        return self._options.get(key) is not None

    def text(self, key: str) -> str | None:
        """A text, or None where it is not given."""
        value = self._take(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise InputError(f"data.{key}={brief(value)}: give a text.")
        return value

    def texts(self, key: str) -> list[str] | None:
        """One text or a list of them."""
        value = self._take(key)
        if value is None:
            return None
        found = [value] if isinstance(value, str) else value
        if (
            not isinstance(found, Sequence)
            or not found
            or not all(isinstance(v, str) for v in found)
        ):
            raise InputError(f"data.{key}={brief(value)}: give a text, or a list of texts.")
        return list(found)

    def one_of(self, key: str, allowed: Sequence[Any], default: Any = None) -> Any:
        """One of a few values."""
        value = self._take(key)
        if value is not None and value not in allowed:
            raise InputError(f"data.{key}={brief(value)}: use one of {listed(allowed)}.")
        return default if value is None else value

    def count(self, key: str, least: int = 1) -> int | None:
        """A whole number, not below the least."""
        value = self._take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"data.{key}={brief(value)}: give a whole number from {least} on.")
        return value

    def size(self, key: str) -> tuple[int, int] | None:
        """Height and width, or one number for both."""
        value = self._take(key)
        if value is None:
            return None
        pair = [value, value] if isinstance(value, int) else value
        right = isinstance(pair, Sequence) and len(pair) == 2
        if not right or any(isinstance(v, bool) or not isinstance(v, int) or v < 1 for v in pair):
            raise InputError(f"data.{key}={brief(value)}: give pixels, such as 32 or [32, 48].")
        return pair[0], pair[1]

    def path(self, key: str) -> Path | None:
        """A file or folder that is there; relative ones start in the study's folder."""
        value = self._take(key)
        if value is None:
            return None
        try:
            path = self.folder / Path(value).expanduser()
            there = path.exists()
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            raise InputError(f"data.{key}={brief(value, 200)} is not a path: {error}.") from error
        if not there:
            where = "" if Path(value).is_absolute() else f" in {self.folder.resolve()}"
            raise InputError(
                f"data.{key}={brief(str(value), 200)}: there is no such file or folder{where}."
            )
        return path

    def rest(self) -> dict[str, Any]:
        """All that nobody has taken yet."""
        left = {k: v for k, v in self._options.items() if k not in self._taken}
        self._taken |= set(left)
        return left

    def finish(self) -> None:
        """Refuse options that were not taken."""
        if left := [key for key in self._options if key in self and key not in self._taken]:
            raise InputError(
                f"data has {listed(left)}, which such data does not take: it takes "
                f"{listed(sorted(self._taken))}.{suggest(left[0], self._taken)}"
            )

    def _take(self, key: str) -> Any:
        self._taken.add(key)
        return self._options.get(key)
