"""Speed of response curves beside the straightforward loop, in one process; one JSON line.

    python benchmarks/response.py            # on the GPU if there is one, about three minutes
    python benchmarks/response.py --cpu      # ten magnitudes of 23,040 examples
    python benchmarks/response.py --quick    # fewer examples

Intra-class mixup at ten magnitudes on 28×28 images, a small CNN and a ResNet-9. The loop is the
paper's: for each magnitude it shuffles, takes batches of 128, mixes each example with the next one
of its class in the batch, and counts right answers; images that find no partner are not counted.
`ratio` is how many times more images per second we answer. `layer` is the time of a curve at the
first and at the fifth activation (the third of the CNN) over that of one at the input.

On a GPU, `ours` is compiled, in bfloat16, and measured on 21 times as many magnitudes, without the
time of compiling; `eager` is not compiled; `bare` is the network alone, compiled in bfloat16 with
channels last and recorded as a CUDA graph, at its best batch size, and `share` is our part of that.
`seconds` is one whole call for ten magnitudes, compiled and eager.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# torch imports a package called coverage, which must not be the benchmark beside this one.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np
import torch
from torch import Tensor, nn

from curvewise.errors import CurvewiseWarning
from curvewise.nn.architectures import ARCHITECTURES
from curvewise.nn.lane import channels_last
from curvewise.response.networks import answers
from curvewise.response.networks.measurement import measure_response
from curvewise.response.networks.sites import probe, split
from curvewise.response.networks.trial import Execution

MEAN, STD = 0.2860, 0.3530
MAGNITUDES = np.linspace(0, 0.5, 10)
SIZES = (2048, 4096, 8192)
DEEP = {"cnn": 3, "resnet9": 5}


def main() -> None:
    """Measure both networks and print a line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--examples", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--batch", type=int, help="of ours; by default its own choice")
    wish = parser.parse_args()
    warnings.simplefilter("ignore", CurvewiseWarning)  # the networks know nothing
    if wish.threads:
        torch.set_num_threads(wish.threads)
    device = "cpu" if wish.cpu or not torch.cuda.is_available() else "cuda"
    torch.backends.cudnn.benchmark = True
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }
    for name in ("cnn", "resnet9"):
        examples = wish.examples or (23_040 if not wish.quick else 2304 if name == "cnn" else 384)
        found[name] = on_gpu(name, examples, wish.batch) if device == "cuda" else on_cpu(name, examples, wish.batch)
    print(json.dumps(found))


def on_cpu(name: str, examples: int, batch: int | None) -> dict[str, Any]:
    """Images per second of ours and of the loop, by turns, the best of three."""
    model, x, y = made(name, examples)
    options = {"magnitudes": MAGNITUDES, "reading": {"mean": [MEAN], "std": [STD]}, "device": Execution(batch=batch)}

    def ours(layer: int | None = None) -> float:
        start = time.perf_counter()
        measure_response(model, (x, y), layer=layer, progress=False, **options)
        return time.perf_counter() - start

    def theirs() -> float:
        start = time.perf_counter()
        answered = loop(model, x, y, "cpu")
        return (time.perf_counter() - start) * examples * len(MAGNITUDES) / answered

    deep = DEEP[name]
    times = np.array([[ours(), theirs(), ours(1), ours(deep)] for _ in range(3)]).min(axis=0)
    images = examples * len(MAGNITUDES)
    return {
        "ours": round(images / times[0]),
        "loop": round(images / times[1]),
        "ratio": round(times[1] / times[0], 2),
        "layer": [round(times[2] / times[0], 2), round(times[3] / times[0], 2)],
    }


def on_gpu(name: str, examples: int, batch: int | None) -> dict[str, Any]:
    """Images per second of ours, of the loop and of the bare network."""
    model, x, y = made(name, examples)
    model.to("cuda")
    options: dict[str, Any] = {"reading": {"mean": [MEAN], "std": [STD]}, "progress": False}

    def ours(compiled: bool, layer: int | None, factor: int) -> float:
        """Seconds of a whole call."""
        grid = np.linspace(0, 0.5, len(MAGNITUDES) * factor)
        start = time.perf_counter()
        how = Execution(batch=batch, precision="bfloat16", compile=compiled)
        measure_response(model, (x, y), layer=layer, magnitudes=grid, device=how, **options)
        return time.perf_counter() - start

    def rate(layer: int | None = None) -> float:
        """Images per second once everything is compiled."""
        with timed() as seconds:
            ours(True, layer, 21)
        return examples * len(MAGNITUDES) * 21 / sum(seconds)

    loop(model, x, y, "cuda")
    start = time.perf_counter()
    answered = loop(model, x, y, "cuda")
    torch.cuda.synchronize()
    theirs = answered / (time.perf_counter() - start)
    bare, size = max((bare_rate(model, size), size) for size in SIZES)
    compiled, first, deep = rate(), rate(1), rate(DEEP[name])
    few, many = (min(ours(False, None, factor) for _ in range(2)) for factor in (1, 6))
    return {
        "ours": round(compiled),
        "eager": round(5 * examples * len(MAGNITUDES) / (many - few)),
        "loop": round(theirs),
        "ratio": round(compiled / theirs, 2),
        "bare": round(bare),
        "bare_batch": size,
        "share": round(compiled / bare, 3),
        "layer": [round(compiled / first, 2), round(compiled / deep, 2)],
        "seconds": [round(ours(True, None, 1), 1), round(few, 2)],
    }


@contextlib.contextmanager
def timed() -> Iterator[list[float]]:
    """Time the replays of CUDA graphs, the recording included."""
    seconds: list[float] = []
    replayed = answers.replayed

    def slow(*given: Any) -> Tensor:
        torch.cuda.synchronize()
        start = time.perf_counter()
        codes = replayed(*given)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        return codes

    answers.replayed = slow
    try:
        yield seconds
    finally:
        answers.replayed = replayed


def made(name: str, examples: int) -> tuple[nn.Module, np.ndarray, np.ndarray]:
    """A network with drawn weights, and images of noise: speed does not depend on them."""
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    x = random.integers(256, size=(examples, 1, 28, 28), dtype=np.uint8)
    return ARCHITECTURES[name]((1, 28, 28), 10), x, random.integers(10, size=examples)


def loop(model: nn.Module, x: np.ndarray, y: np.ndarray, device: str) -> int:
    """The paper's algorithms 1 and 3 as one would write them down; returns how many it answered."""
    images = (torch.from_numpy(x).float() / 255 - MEAN) / STD
    labels = torch.from_numpy(y)
    images, labels = images.to(device), labels.to(device)
    model.eval()
    answered, accuracies = 0, []
    with torch.no_grad():
        for magnitude in MAGNITUDES:
            order, right, total = torch.randperm(len(labels), device=device), 0, 0
            for start in range(0, len(labels), 128):
                rows = order[start : start + 128]
                rows = rows[labels[rows].argsort()]
                partners = rows.roll(-1)
                same = labels[rows] == labels[partners]
                rows, partners = rows[same], partners[same]
                mixed = (1 - magnitude) * images[rows] + magnitude * images[partners]
                right += (model(mixed).argmax(dim=1) == labels[rows]).sum().item()
                total += len(rows)
            accuracies.append(right / total)
            answered += total
    return answered


def bare_rate(model: nn.Module, size: int) -> float:
    """Images per second of the compiled network on one batch that lies ready."""
    x = channels_last(torch.randn(size, 1, 28, 28, device="cuda"))
    with torch.no_grad(), torch.autocast("cuda", dtype=torch.bfloat16):
        laid = split(model.eval(), probe(model, None, x), x).after
        quick: Callable[[Tensor], Tensor] = torch.compile(laid, dynamic=False)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(5):
                quick(x)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            quick(x)
        times = []
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(50):
                graph.replay()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    torch._dynamo.reset()
    return 50 * size / min(times)


if __name__ == "__main__":
    main()
