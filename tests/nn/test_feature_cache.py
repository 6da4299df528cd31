"""Features that were kept come back as they were; damage is found and told."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.nn._feature_cache import FeatureCache
from curvewise.nn._feature_rows import Rows
from curvewise.nn.features import TokenFeatures
from curvewise.types.features import CheckpointFeatures

RNG = np.random.default_rng(2)
FEATURES = RNG.normal(size=(12, 5)).astype(np.float32)
OWN = RNG.dirichlet(np.ones(3), 12).astype(np.float32)


def kept(folder: Path) -> tuple[FeatureCache, str]:
    cache = FeatureCache(folder / "made" / "here")
    key = cache.key(weights="a", data="b")
    one = CheckpointFeatures("net", FEATURES, OWN, "fc", 7, None, 0.25, 1.5, ("said",))
    two = TokenFeatures("net", FEATURES[:4], layer="conv", examples=np.array([0, 0, 1, 2]))
    cache.write(key, [one, two])
    return cache, key


def test_what_was_written_is_read(tmp_path: Path) -> None:
    cache, key = kept(tmp_path)
    (one, two), wrong = FeatureCache(cache.folder).read(key)  # type: ignore[misc]
    assert wrong is None
    assert np.array_equal(one.pop("features"), FEATURES)
    assert np.array_equal(one.pop("probabilities"), OWN)
    assert one == {
        "name": "net",
        "layer": "fc",
        "parameters": 7,
        "source_accuracy": None,
        "seconds": 0.25,
        "gflops": 1.5,
        "notes": ("said",),
    }
    assert two["examples"].tolist() == [0, 0, 1, 2]
    assert not [f for f in cache.folder.iterdir() if f.name.startswith(".")]  # nothing aside


def test_nothing_is_found_where_nothing_was_kept(tmp_path: Path) -> None:
    cache, key = kept(tmp_path)
    assert cache.read(cache.key(weights="a", data="c")) == (None, None)
    assert cache.key(weights="a", data="b") == key
    assert len({cache.key(a=1, b=2), cache.key(a=12, b=""), cache.key(a=1), key}) == 4


@pytest.mark.parametrize("damage", ["flipped", "cut", "missing", "json", "other", "pickle"])
def test_damage_is_found(tmp_path: Path, damage: str) -> None:
    cache, key = kept(tmp_path)
    array, record = cache.folder / f"{key}.0.features.npy", cache.folder / f"{key}.json"
    if damage == "flipped":
        content = bytearray(array.read_bytes())
        content[-3] ^= 1
        array.write_bytes(content)
    elif damage == "cut":
        array.write_bytes(array.read_bytes()[:-8])
    elif damage == "missing":
        array.unlink()
    elif damage == "json":
        record.write_text(record.read_text()[:50])
    elif damage == "other":
        record.write_text(record.read_text().replace(key, "0" * 40))
    else:
        np.save(array, np.array([{"code": 1}]), allow_pickle=True)
        written = json.loads(record.read_text())
        sha = hashlib.sha256(array.read_bytes()).hexdigest()
        written["features"][0]["arrays"]["features"]["sha256"] = sha
        record.write_text(json.dumps(written))
    found, wrong = cache.read(key)
    assert found is None
    assert wrong is not None
    assert "damaged" in wrong
    assert "computed again" in wrong


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        FeatureCache(tmp_path / "file" / "cache")


def test_rows_beyond_the_limit_lie_in_a_file_and_are_the_same(tmp_path: Path) -> None:
    parts = [RNG.normal(size=(n, 6)) for n in (3, 1, 8, 2)]
    small, large = Rows(), Rows(limit=100, folder=tmp_path)
    for part in parts:
        small.add(part)
        large.add(part)
    assert large.on_disk
    assert not small.on_disk
    assert isinstance(large.matrix(), np.memmap)
    wanted = np.concatenate(parts).astype(np.float32)
    assert np.array_equal(large.matrix(), wanted)
    assert np.array_equal(small.matrix(), wanted)
    assert list(tmp_path.iterdir()) == []  # it has no name that could be left behind


def test_rows_of_another_width_are_told() -> None:
    rows = Rows()
    rows.add(np.zeros((2, 3)))
    with pytest.raises(InputError, match="4 features and the ones before 3"):
        rows.add(np.zeros((2, 4)))
