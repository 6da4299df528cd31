"""Tables in CSV or Parquet files: a column of classes, and numbers or a text to learn from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseError, InputError
from curvewise.io._arrays import check_file
from curvewise.io._files import parquet_frame
from curvewise.io._table import brief, check_names, listed, shown, suggest
from curvewise.study.datasets._request import Request
from curvewise.study.datasets._source import Part, Source, array_part
from curvewise.study.datasets._texts import Encoding, encoding_of, text_part

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".parquet")
LABELS = ("label", "labels", "target", "class", "y")


def load_table(path: Path, request: Request) -> Source:
    """Load a table; a second file may hold the test examples."""
    name = request.text("name") or path.stem
    test_path = request.path("test")
    asked_label, asked_features = request.text("label"), request.texts("features")
    encoding = encoding_of(request) if "text" in request else None
    notes: list[str] = []
    frames = [_read(p) for p in (path, test_path) if p is not None]
    label = label_column(list(frames[0].columns), asked_label, shown(path))
    features = asked_features
    if encoding is None and features is None:
        features = _features(frames[0], label, notes)
    parts = []
    for frame, file in zip(frames, (path, test_path), strict=False):
        assert file is not None
        _check_columns(
            frame, [label, *(features or []), *(encoding.columns if encoding else [])], file
        )
        parts.append(_part(frame, label, features or [], encoding, shown(file), notes))
    padding = encoding.padding if encoding else None
    return Source(parts[0], parts[1] if len(parts) > 1 else None, None, name, padding, notes)


def label_column(names: list[str], asked: str | None, source: str) -> str:
    """The column of classes: as asked for, else by its usual names."""
    if asked is not None and asked in names:
        return asked
    if asked is not None:
        raise InputError(
            f"data.label={brief(asked)} is not a column of {source}, which has {listed(names)}."
            f"{suggest(asked, names)}"
        )
    found = [name for name in names if name.strip().lower() in LABELS]
    if len(found) != 1:
        raise InputError(
            f"{source} has the columns {listed(names)}: say which one holds the classes, with "
            "data.label=…"
        )
    return found[0]


def label_values(column: Any, name: str) -> NDArray[Any]:
    """Labels as an array of numbers or of texts; missing ones are an error."""
    cells = column.tolist() if hasattr(column, "tolist") else list(column)
    missing = sum(c is None or c != c for c in cells)
    if missing:
        raise InputError(f"{brief(name)} lacks {missing} of {len(cells)} labels: drop these rows.")
    if any(isinstance(c, str) for c in cells):
        return np.array([str(c) for c in cells])
    values = np.asarray(cells)
    return values if values.dtype.kind != "O" else np.array([str(c) for c in cells])


def _read(path: Path) -> pd.DataFrame:
    import pandas as pd

    check_file(path)
    try:
        if path.suffix.lower() == ".parquet":
            frame: pd.DataFrame = parquet_frame(path.read_bytes(), path).to_pandas()
        else:
            frame = pd.read_csv(path, sep="\t" if path.suffix.lower() == ".tsv" else ",")
    except CurvewiseError:
        raise
    except (ValueError, OSError, OverflowError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{shown(path)} cannot be read as a table: {reason}") from error
    check_names([str(c) for c in frame.columns], shown(path))
    if not len(frame):
        raise InputError(f"{shown(path)} has columns ({listed(frame.columns)}) but no rows.")
    return frame.set_axis([str(c) for c in frame.columns], axis=1)


def _features(frame: pd.DataFrame, label: str, notes: list[str]) -> list[str]:
    """Every column but the label and a nameless index."""
    index = [c for c in frame.columns if c == "" or c.startswith("Unnamed: ")]
    notes += [f"Columns left out, an index without a name: {listed(index)}."] if index else []
    return [c for c in frame.columns if c != label and c not in index]


def _check_columns(frame: pd.DataFrame, names: list[str], path: Path) -> None:
    if lacking := [name for name in names if name not in frame.columns]:
        raise InputError(
            f"{shown(path)} has no column {listed(lacking)}, but {listed(frame.columns)}."
            f"{suggest(lacking[0], frame.columns)}"
        )


def _part(
    frame: pd.DataFrame,
    label: str,
    features: list[str],
    encoding: Encoding | None,
    source: str,
    notes: list[str],
) -> Part:
    labels = label_values(frame[label], label)
    if encoding is not None:
        columns = [frame[name].tolist() for name in encoding.columns]
        return text_part(columns, labels, encoding, source, notes)
    if not features:
        raise InputError(f"{source} has no columns beside {brief(label)}: nothing to learn from.")
    return array_part(_numbers(frame, features, source), labels, source, brief(label))


def _numbers(frame: pd.DataFrame, features: list[str], source: str) -> NDArray[np.float32]:
    out = np.empty((len(frame), len(features)), dtype=np.float32)
    for i, name in enumerate(features):
        column = frame[name]
        if column.dtype.kind not in "fiub":
            raise InputError(
                f"column {brief(name)} of {source} holds {brief(column.iloc[0])}, no numbers: turn "
                "it into numbers, or leave it out with data.features=[…]."
            )
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if bad := int(np.sum(~np.isfinite(values))):
            raise InputError(
                f"column {brief(name)} of {source} has {bad} missing or infinite values: fill or "
                "drop these rows, or leave the column out with data.features=[…]."
            )
        out[:, i] = values
    return out
