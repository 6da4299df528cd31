"""One stored run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from numpy.typing import NDArray

from curvewise.errors import InputError, MissingDependencyError, StoreError
from curvewise.io._stored import REMEDY, array_of, part_file, read_labels, read_part


@dataclass(frozen=True, eq=False)
class Run:
    """One stored run.

    Attributes
    ----------
    id : str
        Hash of the coordinates, and the name of the run's directory.
    path : Path
        The run's directory.
    coordinates : dict
        What identifies the run.
    status : {"done", "failed"}
        How it ended.
    metrics : dict of str to float
        What was measured; NaN where the value was not finite.
    error : str or None
        Why it failed.
    environment : dict
        What it was made with.
    notes : tuple of str
        What a reader should know, such as warnings raised in training.
    arrays : dict
        For each array: file, sha256, shape, dtype.
    files : dict
        For each checkpoint: file, sha256, bytes.
    label_digests : dict of str to str
        For each evaluation set whose labels were given, their hash.
    predictions : ndarray or None
        What was predicted for the test set; None too when the run comes from :func:`list_runs`,
        which loads no arrays: ``read_run(run.path)`` or ``run.array("predictions")`` does.
    """

    id: str
    path: Path
    coordinates: Mapping[str, Any]
    status: str
    metrics: Mapping[str, float]
    error: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    arrays: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    label_digests: Mapping[str, str] = field(default_factory=dict)
    predictions: NDArray[Any] | None = None

    def array(self, name: str = "predictions") -> NDArray[Any]:
        """Read one array, such as ``"probabilities"`` or ``"predictions.shifted"``.

        Raises
        ------
        InputError
            If the run has no such array.
        StoreError
            If its file is missing or damaged.
        """
        if name not in self.arrays:
            self._lacks("array", name, self.arrays)
        return array_of(self.path, {"arrays": self.arrays}, name)

    def checkpoint(self, name: str = "end") -> dict[str, NDArray[Any]]:
        """Read the weights of one checkpoint, by their names.

        Raises
        ------
        InputError
            If the run has no such checkpoint.
        StoreError
            If its file is missing or damaged.
        MissingDependencyError
            Without safetensors.
        """
        if name not in self.files:
            self._lacks("checkpoint", name, self.files)
        path = self.path / part_file("files", name)
        data = read_part(self.path, {"files": self.files}, "files", name)
        try:
            from safetensors.numpy import load
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"Reading {path} needs safetensors, which is not installed: pip install "
                'safetensors, or "curvewise[torch]".'
            ) from error
        try:
            weights: dict[str, NDArray[Any]] = load(data)
        except Exception as error:  # safetensors has errors of its own, and lets numpy's through
            raise StoreError(f"{path} is no safetensors file: {error}. {REMEDY}") from error
        return weights

    def labels(self, evaluation: str = "test") -> NDArray[Any]:
        """Read the true classes of an evaluation set, where they were given.

        Raises
        ------
        InputError
            If the labels of this set were not stored.
        StoreError
            If their file is missing or damaged.
        """
        if evaluation not in self.label_digests:
            self._lacks("set of labels", evaluation, self.label_digests)
        return read_labels(self.path.parent, self.label_digests[evaluation])

    def _lacks(self, what: str, name: str, there: Mapping[str, Any]) -> NoReturn:
        known = ", ".join(map(repr, sorted(there))) or "none"
        raise InputError(f"Run {self.id} has no {what} {name!r}; there is {known}.")
