"""True classes of evaluation sets, stored once for all runs that have the same."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from curvewise.errors import StoreError
from curvewise.io._stored import LABELS, read_checked
from curvewise.study._files import cannot_write, make_folder, write_file
from curvewise.study._record import TEST, check_name, npy_bytes

AnyPath: TypeAlias = "str | PathLike[str]"
Encoded: TypeAlias = "dict[str, tuple[bytes, dict[str, Any]]]"


def write_labels(store: AnyPath, labels: ArrayLike | Mapping[str, ArrayLike]) -> dict[str, str]:
    """Store the true classes of evaluation sets; whole ones that are there stay.

    :func:`write_run` does so for the labels it is given: this mends a store whose labels were lost.

    Parameters
    ----------
    store : path
        Folder of the store; made if missing.
    labels : array-like, or dict of str to array-like
        The true class of each evaluation example, by evaluation set; an array is the test set's.

    Returns
    -------
    dict of str to str
        The hash of each, which is the name of its file.

    Raises
    ------
    InputError
        If something cannot be stored.
    StoreError
        If writing fails.

    Examples
    --------
    >>> import tempfile
    >>> sorted(write_labels(tempfile.mkdtemp(), {"test": [0, 1], "shifted": [1, 0]}))
    ['shifted', 'test']
    """
    truth = encode_labels(labels)
    try:
        store_labels(Path(store), truth)
    except OSError as problem:
        raise cannot_write(Path(store), problem) from problem
    return {name: about["sha256"] for name, (_, about) in truth.items()}


def encode_labels(labels: ArrayLike | Mapping[str, ArrayLike] | None) -> Encoded:
    """Labels as bytes under the names of their evaluation sets; an array is the test set's."""
    if labels is None:
        return {}
    found = {}
    for name, values in (labels if isinstance(labels, Mapping) else {TEST: labels}).items():
        check_name(name, "labels")
        found[name] = npy_bytes(values, f"labels[{name!r}]")
    return found


def store_labels(store: Path, truth: Encoded) -> None:
    """Write labels under their hash, unless they are there and whole."""
    check_folder(store)
    make_folder(store)
    for data, about in truth.values():
        name = f"{about['sha256']}.npy"
        try:
            read_checked(store / LABELS / name, about["sha256"])
        except StoreError:
            write_file(store, LABELS, name, data)


def check_folder(folder: Path) -> None:
    """Refuse a store that is a file."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"store={str(folder)!r} is not a folder.")
