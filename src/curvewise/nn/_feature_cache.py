"""Features on disk, by a hash of all that determines them; checked when read, never pickled."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.types.features import CheckpointFeatures

FORMAT = 1
"""Changes whenever the same inputs would give other features than before."""
_ARRAYS = ("features", "probabilities", "examples")
_FIELDS = ("name", "layer", "parameters", "source_accuracy", "seconds", "gflops")
_MAPPED = 2**28  # bytes from which on an array is mapped, not read


class FeatureCache:
    """A folder of features; it grows until someone deletes files in it.

    Parameters
    ----------
    folder : path
        Made where it does not exist.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cache={str(folder)!r}: this folder cannot be made ({error.strerror}): give "
                "another one, or cache=None."
            ) from error

    @staticmethod
    def key(**parts: Any) -> str:
        """A hash of what determines features: plain values by name.

        >>> FeatureCache.key(layer="fc") == FeatureCache.key(layer="fc", pool=None)
        False
        """
        text = json.dumps({"format": FORMAT, **parts}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:40]

    def write(self, key: str, found: Sequence[CheckpointFeatures]) -> None:
        """Keep features; readers see all of them or none."""
        records = []
        for number, one in enumerate(found):
            record: dict[str, Any] = {name: getattr(one, name) for name in _FIELDS}
            record["notes"] = list(one.notes)
            record["arrays"] = {}
            for name in _ARRAYS:
                array = getattr(one, name, None)
                if array is not None:
                    file = f"{key}.{number}.{name}.npy"
                    record["arrays"][name] = {"file": file, "sha256": self._save(file, array)}
            records.append(record)
        text = json.dumps({"format": FORMAT, "key": key, "features": records}, indent=1)
        self._place(f"{key}.json", lambda aside: aside.write_text(text, encoding="utf-8"))

    def read(self, key: str) -> tuple[list[dict[str, Any]] | None, str | None]:
        """Fields of what was kept, arrays in their place; what was wrong with it, in words.

        Nothing and None where it was never kept.
        """
        file = self.folder / f"{key}.json"
        try:
            written = json.loads(file.read_text(encoding="utf-8"))
            if written["key"] != key or written["format"] != FORMAT:
                raise ValueError("it belongs to something else")
            return [self._fields(record) for record in written["features"]], None
        except FileNotFoundError as error:
            if error.filename == str(file):
                return None, None
            return None, _damaged(self.folder, "a file is missing")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return None, _damaged(self.folder, str(error))

    def _fields(self, record: dict[str, Any]) -> dict[str, Any]:
        arrays = {name: self._load(about) for name, about in record.pop("arrays").items()}
        return {**record, "notes": tuple(record["notes"]), **arrays}

    def _load(self, about: dict[str, str]) -> NDArray[Any]:
        path = self.folder / about["file"]
        if _hash(path) != about["sha256"]:
            raise ValueError(f"{path.name} is not what was written")
        mode: Any = "r" if path.stat().st_size > _MAPPED else None
        found: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False)
        return found

    def _save(self, file: str, array: NDArray[Any]) -> str:
        def write(aside: Path) -> None:
            with open(aside, "wb") as stream:
                np.save(stream, array, allow_pickle=False)

        self._place(file, write)
        return _hash(self.folder / file)

    def _place(self, file: str, write: Any) -> None:
        """Write aside, sync and rename into place."""
        aside = self.folder / f".{file}.{uuid.uuid4().hex[:12]}"
        try:
            write(aside)
            with open(aside, "rb+") as stream:
                os.fsync(stream.fileno())
            os.replace(aside, self.folder / file)
        except OSError as error:
            raise InputError(
                f"cache={str(self.folder)!r}: features cannot be written there "
                f"({error.strerror or error}): make room, or give another folder."
            ) from error
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)


def _hash(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _damaged(folder: Path, why: str) -> str:
    return f"what the cache {folder} had is damaged ({why}): the features were computed again"
