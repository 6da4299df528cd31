"""Features that were kept come back as they were; damage is found and told."""

from __future__ import annotations

import errno
import hashlib
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.nn.files.formats import file_digest
from curvewise.ranking.measure import CheckpointFeatures
from curvewise.ranking.networks import features as feature_module
from curvewise.ranking.networks.features import FeatureCache, GrowingMatrix, Room, TokenFeatures

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


@pytest.mark.parametrize("damage", ["flipped", "cut", "missing", "json", "cost", "other", "pickle"])
def test_damage_is_found(tmp_path: Path, damage: str) -> None:
    cache, key = kept(tmp_path)
    array, record = sorted(cache.folder.glob("*.features.npy"))[0], cache.folder / f"{key}.json"
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
    elif damage == "cost":
        record.write_text(record.read_text().replace('"gflops": 1.5', '"gflops": 2.5'))
    elif damage == "other":
        record.write_text(record.read_text().replace(key, "0" * 40))
    else:
        np.save(array, np.array([{"code": 1}]), allow_pickle=True)
        sha = file_digest(array)
        array.rename(cache.folder / f"{key}.{sha[:16]}.features.npy")
        written = json.loads(record.read_text())
        written["features"][0]["arrays"]["features"] = sha
        text = json.dumps(written["features"], sort_keys=True)
        written["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        record.write_text(json.dumps(written))
    found, wrong = cache.read(key)
    assert found is None
    assert wrong is not None
    assert "damaged" in wrong
    assert "computed again" in wrong
    assert ("allow_pickle" in wrong) == (damage == "pickle")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        FeatureCache(tmp_path / "file" / "cache")


def test_rows_beyond_the_limit_lie_in_a_file_and_are_the_same(tmp_path: Path) -> None:
    parts = [RNG.normal(size=(n, 6)) for n in (3, 1, 8, 2)]
    small, large = GrowingMatrix(), GrowingMatrix(Room(100), folder=tmp_path)
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


@pytest.mark.parametrize("limit", [10_000, 100])
def test_rows_whose_number_is_known_are_kept_in_their_place(limit: int) -> None:
    room = Room(limit)
    rows = GrowingMatrix(room, total=14)
    parts = [RNG.normal(size=(n, 6)) for n in (3, 1, 8, 2)]
    rows.add(parts[0])
    assert rows.on_disk == (limit == 100)
    assert room.left == limit - (0 if rows.on_disk else 14 * 6 * 4)
    assert np.array_equal(rows.matrix(), parts[0].astype(np.float32)) or rows.on_disk
    if not rows.on_disk:
        for part in parts[1:]:
            rows.add(part)
        assert np.array_equal(rows.matrix(), np.concatenate(parts).astype(np.float32))


def test_rows_of_another_width_are_told() -> None:
    rows = GrowingMatrix()
    rows.add(np.zeros((2, 3)))
    with pytest.raises(InputError, match="4 features and the ones before 3"):
        rows.add(np.zeros((2, 4)))


def test_rows_of_several_matrices_share_their_room() -> None:
    room = Room(1000)
    one, two = GrowingMatrix(room), GrowingMatrix(room)
    one.add(np.zeros((20, 10)))  # 800 bytes
    two.add(np.zeros((2, 10)))
    assert not one.on_disk
    assert not two.on_disk
    two.add(np.zeros((5, 10)))
    assert two.on_disk
    assert room.left == 200
    two.add(np.zeros((50, 10)))
    one.add(np.zeros((5, 10)))
    assert not one.on_disk
    assert len(two.matrix()) == 57


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: open("/dev/full", "wb"))  # noqa: SIM115
    with pytest.raises(InputError, match=r"do not fit .* TMPDIR"):
        GrowingMatrix(Room(10)).add(np.zeros((20_000, 10)))


@pytest.mark.parametrize("at", ["array", "record"])
def test_what_cannot_be_written_is_said_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: str
) -> None:
    cache = FeatureCache(tmp_path)
    one = CheckpointFeatures("net", FEATURES)

    def full(*given: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if at == "array":
        monkeypatch.setattr(feature_module.np, "save", full)
    else:
        monkeypatch.setattr(Path, "write_text", full)
    said = cache.write("k", [one])
    assert said is not None
    assert "No space left" in said
    assert not [f for f in tmp_path.iterdir() if f.name.startswith(".")]
    assert cache.read("k") == (None, None)


def test_writers_at_the_same_time_leave_one_whole(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path)
    # each writer has numbers of its own, as devices that add in another order do
    each = [CheckpointFeatures("net", FEATURES + i, OWN + i) for i in range(4)]

    def work(i: int) -> list[str]:
        wrong = []
        for _ in range(15):
            cache.write("k", [each[i]])
            found, said = cache.read("k")
            wrong += [] if said is None else [said]
            if found is not None:
                first, second = found[0]["features"], found[0]["probabilities"]
                same = [np.array_equal(first, c.features) for c in each]
                same_own = [np.array_equal(second, c.probabilities) for c in each]
                assert same == same_own
                assert sum(same) == 1
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert [said for part in pool.map(work, range(4)) for said in part] == []


def test_large_arrays_are_mapped_and_can_be_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(feature_module, "_MAPPED", 10)
    cache, key = kept(tmp_path)
    found, _ = cache.read(key)
    assert found is not None
    assert isinstance(found[0]["features"], np.memmap)
    found[0]["features"][0] = 7  # in memory only
    again, wrong = cache.read(key)
    assert again is not None
    assert wrong is None
    assert np.array_equal(again[0]["features"], FEATURES)
