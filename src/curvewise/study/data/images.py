"""Images in files: in a folder for each class, in a table, or in an archive; decoded, and kept for the next time."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg, brief, format_path, importing, list_names, os_reason
from curvewise.progress import progress_bar
from curvewise.reading.arrays import named_arrays
from curvewise.store.record import data_digest
from curvewise.study.data.dataset import DataPart, DataSource, Request, RowIndices, array_part

ImageFiles: TypeAlias = list[tuple[Path, str]]  # images and their classes

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
TRAIN = ("train", "training")
TEST = ("test", "testing", "val", "valid", "validation")
"""Folders above those of the classes; the first of each that is there is taken."""


def load_image_folder(path: Path, request: Request) -> DataSource:
    """Load images whose class is the folder they lie in."""
    name = request.text("name") or path.resolve().name
    reading, asked = image_reading(request, path), request.text("test")
    skip = request.one_of("on_error", ("raise", "skip"), "raise") == "skip"
    if skip and reading.cache is not None:
        problem = "leaves images out, and a cache holds all of them."
        raise InputError(problem, argument="data.on_error", value="skip", remedy=f"Leave out {arg('data.cache')}.")
    notes: list[str] = []
    below = {p.name.lower(): p for p in _subfolders(path)}
    train_at = next((below[n] for n in TRAIN if n in below), None)
    test_at = next((below[n] for n in ((asked.lower(),) if asked else TEST) if n in below), None)
    if asked and (train_at is None or test_at is None):
        problem = f"{format_path(path)} has the folders {list_names(below)}: there must be train and this one."
        raise InputError(problem, argument="data.test", value=asked)
    if (train_at is None) != (test_at is None) and len(below) == 1:
        raise InputError(
            f"{format_path(path)} has only the folder {list_names(below)}: give the folder of the classes "
            "itself, or put train beside test."
        )
    split = train_at is not None and test_at is not None
    if split and (left := [p.name for p in below.values() if p not in (train_at, test_at)]):
        notes.append(f"Folders not read: {list_names(sorted(left))}.")
    parts = [train_at, test_at] if split else [path]
    found = [_list_images(p, notes) for p in parts if p is not None]
    reading = reading.settled([image for part in found for image in part], skip)
    made = [_readable(images, reading, notes) if skip else file_part(images, reading) for images in found]
    return DataSource(made, None, name, notes=notes)


@dataclass(frozen=True)
class ImageReading:
    """Settings by which image files become arrays.

    Attributes
    ----------
    root : Path
        Folder they lie in; names within it are part of what a cache is known by.
    size : tuple of int, optional
        Height and width to which they are scaled and cut.
    channels : int, optional
        1 or 3; None until it is settled.
    cache : Path, optional
        Folder in which the decoded images are kept for the next time.
    """

    root: Path
    size: tuple[int, int] | None
    channels: int | None
    cache: Path | None

    def settled(self, found: ImageFiles, skip: bool = False) -> ImageReading:
        """The same with its channels: as asked for, else by the images."""
        return replace(self, channels=self.channels or _channels(found, skip))

    def decode(self, path: Path) -> NDArray[np.uint8]:
        """Decode one image."""
        return decode(path, self.size, self.channels or 3)


def image_reading(request: Request, root: Path) -> ImageReading:
    """Read ``size``, ``channels`` and ``cache``."""
    size, channels, cache = request.size("size"), request.one_of("channels", (1, 3)), request.text("cache")
    return ImageReading(root, size, channels, None if cache is None else request.folder / Path(cache).expanduser())


def file_part(found: ImageFiles, reading: ImageReading) -> DataPart:
    """Make a part of image files, which are decoded when they are asked for, or taken from the cache."""

    def read(rows: RowIndices | None) -> NDArray[np.uint8]:
        files = [found[i][0] for i in (range(len(found)) if rows is None else rows)]
        if reading.cache is not None:
            return _from_cache(files, reading, reading.cache)
        return decode_all(files, reading.decode, lambda i: _image_name(files[i]))

    return DataPart(np.array([label for _, label in found]), read)


# Decoded images are kept in a file that is mapped into memory, so that it may be larger than memory.


def _from_cache(files: Sequence[Path], reading: ImageReading, folder: Path) -> NDArray[np.uint8]:
    """Map the decoded images of these files; decode them into the cache first where they are not there.

    A cache is known by the folder, and name, length, times of change and inode of every file, and by how they are
    decoded. The name of the array's file ends in the hash of its pixels, so that neither is there without the other;
    it is compared at every start. Links are not followed.
    """
    about = hashlib.sha256(repr(("images/2", str(reading.root.resolve()), reading.size, reading.channels)).encode())
    for file in files:
        seen = file.stat()
        marks = f"{seen.st_size}\0{seen.st_mtime_ns}\0{seen.st_ctime_ns}\0{seen.st_ino}"
        about.update(f"{file.relative_to(reading.root)}\0{marks}\0".encode("utf-8", "replace"))
    key = about.hexdigest()[:32]
    place = folder / f"{key}.npy"
    try:
        if not _is_plain(folder, stat.S_ISDIR):
            folder.mkdir(parents=True, exist_ok=True)  # another worker may have made it since
        kept = sorted(folder.glob(f"{key}-*.npy"))
        if not kept:
            kept = [_write_images(folder, key, files, reading)]
        place = kept[0]
        if len(kept) > 1 or not _is_plain(place):
            raise ValueError("there are two of these images")
        array = np.load(place, mmap_mode="r", allow_pickle=False)
        if array.dtype != np.uint8 or array.ndim != 4 or len(array) != len(files):
            raise ValueError(f"it holds {array.dtype} of shape {array.shape}")
        digest = data_digest(array)
        if place.name != f"{key}-{digest}.npy":
            raise ValueError("it holds other pixels than were written")
        array.digest = digest
    except (OSError, ValueError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        problem = f"{format_path(place)} cannot be used: {reason}. Remove it, or name another folder."
        raise InputError(problem, argument="data.cache", value=str(folder)) from error
    found: NDArray[np.uint8] = array
    return found


def _is_plain(path: Path, kind: Callable[[int], bool] = stat.S_ISREG) -> bool:
    """Return whether a file or folder is there; raise for a link, or anything else of that name."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not kind(mode):
        raise ValueError("it is a link, or not a plain file or folder")
    return True


def _write_images(folder: Path, key: str, files: Sequence[Path], reading: ImageReading) -> Path:
    """Write one array of images aside, and name the file by their hash when it is whole.

    Picture by picture: a full disk is then an error, and not a fault in memory.
    """
    aside = folder / f".{uuid.uuid4().hex}.tmp"
    try:
        with aside.open("xb") as file:
            for i, picture in enumerate(_of_one_size(files, reading.decode, lambda i: _image_name(files[i]))):
                if i == 0:
                    shape = (len(files), *picture.shape)
                    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
                file.write(picture.tobytes())
        place = folder / f"{key}-{data_digest(np.load(aside, mmap_mode='r', allow_pickle=False))}.npy"
        return aside.replace(place)
    finally:
        aside.unlink(missing_ok=True)


def _subfolders(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))


def _list_images(path: Path, notes: list[str]) -> ImageFiles:
    """The images below a folder, class by class."""
    classes = _subfolders(path)
    if not classes:
        raise InputError(f"{format_path(path)} has no subfolders: images are expected in one folder for each class.")
    found: ImageFiles = []
    others = 0
    for folder in classes:
        inside = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")]
        images = sorted(p for p in inside if p.suffix.lower() in ENDINGS)
        others += len(inside) - len(images)
        if not images:
            raise InputError(
                f"{format_path(path)}/{format_path(folder)} holds no images (that end in "
                f"{', '.join(ENDINGS)}): remove the folder, or give its images."
            )
        found += [(image, folder.name) for image in images]
    notes += [f"{others} files in {format_path(path)} are not images and were left out."] if others else []
    return found


def _channels(found: ImageFiles, skip: bool) -> int:
    """Grey if every image is; looks at the headers only."""
    image = pillow("Reading images")
    for path, _ in found:
        try:
            with image.open(path) as opened:
                if opened.mode not in GREY_MODES:
                    return 3
        except (OSError, SyntaxError, ValueError) as error:
            if not skip:
                raise InputError(
                    f"{_image_name(path)} is not a whole picture ({error}): remove or replace it, "
                    f"or use {arg('data.on_error', 'skip')}."
                ) from error
    return 1


def _readable(found: ImageFiles, reading: ImageReading, notes: list[str]) -> DataPart:
    """Decode all images, and keep those that can be decoded."""
    pictures, good, bad = [], [], []
    for i, picture in enumerate(in_threads(reading.decode, [path for path, _ in found])):
        if isinstance(picture, ValueError):
            bad.append(_image_name(found[i][0]))
        else:
            pictures.append(picture)
            good.append(i)
    if not good:
        raise InputError(f"None of the {len(found)} images can be read; the first is {bad[0]}.")
    if bad:
        notes.append(f"{len(bad)} images cannot be read and were left out: {list_names(bad, 5)}.")
    x = decode_all(pictures, lambda picture: picture, lambda k: _image_name(found[good[k]][0]))
    return array_part(x, np.array([found[i][1] for i in good]), "images", "labels")


def _image_name(path: Path) -> str:
    """Name an image for messages, with its class."""
    return f"{format_path(path.parent)}/{format_path(path)}"


# An archive of JPEG pictures in one ``.npz``: their bytes end to end, offsets and labels.


def is_archive(names: Sequence[str]) -> bool:
    """Return whether a file with such arrays is an archive of pictures."""
    return {"train_jpeg", "train_offsets", "train_labels"} <= set(names)


def load_archive(path: Path, request: Request) -> DataSource:
    """Load the pictures of an archive; only those asked for are decoded."""
    names, get = named_arrays(path)
    name = request.text("name") or path.stem.removesuffix("_jpeg")
    size = request.size("size")
    channels = request.one_of("channels", (1, 3), 3)
    there = ("train", "test") if "test_jpeg" in names else ("train",)
    classes = tuple(map(str, get("classes").tolist())) if "classes" in names else None
    return DataSource([_archive_part(get, part, path, size, channels) for part in there], classes, name)


def _archive_part(
    get: Callable[[str], Any], part: str, path: Path, size: tuple[int, int] | None, channels: int
) -> DataPart:
    offsets, labels = (np.asarray(get(f"{part}_{kind}")) for kind in ("offsets", "labels"))
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu" or len(offsets) != len(labels) + 1:
        raise InputError(
            f"{part}_offsets in {format_path(path)} has {offsets.dtype} of shape {offsets.shape}: it "
            f"must hold {len(labels) + 1} whole numbers, one more than {part}_labels."
        )
    ends = offsets.astype(np.int64)

    def read(rows: Any) -> Any:
        data = np.asarray(get(f"{part}_jpeg"))
        if data.dtype != np.uint8 or data.ndim != 1:
            raise InputError(f"{part}_jpeg in {format_path(path)} must hold bytes, in one row.")
        if ends[0] != 0 or ends[-1] != len(data) or np.any(np.diff(ends) <= 0):
            raise InputError(
                f"{part}_offsets in {format_path(path)} must rise from 0 to {len(data)}, the length of "
                f"{part}_jpeg; they go from {ends[0]} to {ends[-1]}."
            )
        wanted = list(range(len(labels)) if rows is None else rows)
        return decode_all(
            wanted,
            lambda i: decode(data[ends[i] : ends[i + 1]].tobytes(), size, channels),
            lambda i: f"Picture {wanted[i]} of {brief(part)} in {format_path(path)}",
        )

    return DataPart(labels, read)


# Data of torchvision, where it is installed and was downloaded.


def load_torchvision(request: Request) -> DataSource:
    """Load a dataset of torchvision from the folder it was downloaded to."""
    from curvewise.nn.files.datasets import open_torchvision

    kind = request.text("torchvision") or ""
    name, root = request.text("name") or kind, request.path("root")
    size, channels = request.size("size"), request.one_of("channels", (1, 3))
    if root is None:
        raise InputError(f"{arg('data.torchvision', kind)} needs {arg('data.root')}: the folder it was downloaded to.")
    train, test = (open_torchvision(kind, root, train=which) for which in (True, False))
    channels = channels or (1 if train[0][0].mode in ("1", "L") else 3)
    parts = [_torchvision_part(part, size, channels) for part in (train, test) if part is not None]
    names = getattr(train, "classes", None)
    classes = tuple(map(str, names)) if names is not None else None
    return DataSource(parts, classes, name)


def _torchvision_part(data: Any, size: tuple[int, int] | None, channels: int) -> DataPart:
    found = next((v for k in ("targets", "labels", "_labels") if (v := getattr(data, k, None)) is not None), None)
    labels = np.asarray([data[i][1] for i in range(len(data))] if found is None else found)
    if len(labels) != len(data):
        raise InputError(f"{type(data).__name__} has {len(data)} pictures and {len(labels)} labels.")

    return picture_part(
        labels, lambda i: picture_array(data[i][0], size, channels), lambda i: f"Picture {i} of {type(data).__name__}"
    )


# Decode pictures with Pillow, several at a time.

GREY_MODES = ("1", "L", "LA", "I", "I;16", "F")
AT_ONCE = 8
"""Threads at most; Pillow decodes without holding the interpreter."""

BATCH = 32  # pictures to a task: small ones are decoded faster than a task is handed over
WAITING = 1024  # pictures that may wait, decoded, to be stored
MANY = 5000  # of which decoding takes seconds and more, and is shown


def pillow(purpose: str) -> Any:
    """Pillow's Image module, or an error that says what it was wanted for."""
    with importing(f"{purpose} needs Pillow", "images"):
        return importlib.import_module("PIL.Image")


def picture_part(labels: NDArray[Any], one: Callable[[int], NDArray[np.uint8]], name: Callable[[int], str]) -> DataPart:
    """Make a part whose pictures are decoded when they are asked for; both functions take a position."""

    def read(rows: RowIndices | None) -> NDArray[np.uint8]:
        wanted = list(range(len(labels)) if rows is None else map(int, rows))
        return decode_all(wanted, one, lambda i: name(wanted[i]))

    return DataPart(labels, read)


def decode(source: Path | bytes, size: tuple[int, int] | None, channels: int) -> NDArray[np.uint8]:
    """One picture as (channels, height, width); upright, and cut to the size if there is one.

    Raises
    ------
    ValueError
        If it cannot be decoded.
    """
    image = pillow("Reading pictures")
    ops = importlib.import_module("PIL.ImageOps")
    try:
        with image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as opened:
            opened.load()
            return picture_array(ops.exif_transpose(opened), size, channels)
    except (OSError, SyntaxError, ValueError, EOFError, image.DecompressionBombError) as error:
        raise ValueError(str(error).splitlines()[0] if str(error) else repr(error)) from error


def picture_array(picture: Any, size: tuple[int, int] | None, channels: int) -> NDArray[np.uint8]:
    """A picture of Pillow as (channels, height, width) bytes.

    With a size, it is scaled until it covers it, proportions kept, and the middle is cut out.
    """
    ops = importlib.import_module("PIL.ImageOps")
    if picture.mode in ("I", "I;16", "I;16B", "I;16L"):
        # Pillow cuts sixteen bits off at 255 instead of scaling them.
        values = np.clip(np.asarray(picture).astype(np.int64), 0, 65535) >> 8
        picture = pillow("Scaling").fromarray(values.astype(np.uint8))
    plain = picture.convert("L" if channels == 1 else "RGB")
    if size is not None and plain.size != (size[1], size[0]):
        plain = ops.fit(plain, (size[1], size[0]), method=pillow("Resizing").Resampling.BILINEAR)
    array = np.asarray(plain, dtype=np.uint8)
    return array[None] if channels == 1 else np.moveaxis(array, 2, 0)


def decode_all(
    sources: Sequence[Any], one: Callable[[Any], NDArray[np.uint8]], name: Callable[[int], str]
) -> NDArray[np.uint8]:
    """Decode many pictures of one size into one array; ``name`` says how to call one of them."""
    out: NDArray[np.uint8] | None = None
    for i, picture in enumerate(_of_one_size(sources, one, name)):
        if out is None:
            out = np.empty((len(sources), *picture.shape), dtype=np.uint8)
        out[i] = picture
    assert out is not None
    return out


def _of_one_size(
    sources: Sequence[Any], one: Callable[[Any], NDArray[np.uint8]], name: Callable[[int], str]
) -> Iterator[NDArray[np.uint8]]:
    """Decode pictures in order; one that is damaged or of another size is an error. Many are shown as progress."""
    first: NDArray[np.uint8] | None = None
    with progress_bar("decoding images", len(sources), None if len(sources) >= MANY else False) as advance:
        for i, picture in enumerate(in_threads(one, sources)):
            if isinstance(picture, ValueError):
                raise InputError(
                    f"{name(i)} is not a whole picture ({picture}): remove or replace it, or use "
                    f"{arg('data.on_error', 'skip')} for pictures in folders."
                ) from picture
            first = picture if first is None else first
            if picture.shape != first.shape:
                (_, h, w), (_, h0, w0) = picture.shape, first.shape
                raise InputError(
                    f"{name(i)} is {h} × {w} pixels and {name(0)} {h0} × {w0}: bring all to one size, such "
                    f"as {arg('data.size', 32)}."
                )
            advance(1)
            yield picture


def in_threads(
    one: Callable[[Any], NDArray[np.uint8]], sources: Sequence[Any]
) -> Iterable[NDArray[np.uint8] | ValueError]:
    """Decode with threads, in order; a picture that fails gives its error."""

    def tried(few: Sequence[Any]) -> list[NDArray[np.uint8] | ValueError]:
        out: list[NDArray[np.uint8] | ValueError] = []
        for source in few:
            try:
                out.append(one(source))
            except ValueError as error:
                out.append(error)
        return out

    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
        for first in range(0, len(sources), WAITING):
            here = sources[first : first + WAITING]
            batches = [here[i : i + BATCH] for i in range(0, len(here), BATCH)]
            for batch in pool.map(tried, batches):
                yield from batch
