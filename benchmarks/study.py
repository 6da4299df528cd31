"""Speed of the training engine: images per second, against a plain loop and Lightning.

Run on a GPU for the bars of convolutional networks and probes; on a CPU for small networks. All
ways train the same architecture with the same batch size on the same device; the engine augments
on top, the others do not. Prints one JSON line.

    python benchmarks/study.py            # the GPU if there is one
    python benchmarks/study.py --cpu
    python benchmarks/study.py --streamed # images that stay on the host, against images on the GPU
    python benchmarks/study.py fast       # the recipe variance-fast: seconds a network and accuracy on CIFAR-10

`fast` looks for `cifar10_jpeg.npz` in the folder that CURVEWISE_DATA names (default `../shared/data`). Its baseline is
the same recipe with one network at a time, and PyPI's airbench where it is installed; compiling is not counted.
On a CPU: `--precision float32 --examples 40 --runs 2`, which shows that it works and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
import io
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path = [p for p in sys.path if not p.endswith("benchmarks")]

from dataclasses import replace

import numpy as np
import torch

from curvewise.nn import Assignment, Examples, Training
from curvewise.nn.engine import POOL, train
from curvewise.nn.networks import make_network

AUGMENTATION = ("flip", "translate:2", "cutout:12")


def make_examples(n: int, shape: tuple[int, ...], classes: int = 10) -> Examples:
    """Random inputs: speed does not depend on what they show."""
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=n)
    if len(shape) == 1:
        return Examples(rng.normal(size=(n, *shape)).astype(np.float32), y, classes)
    x = rng.integers(256, size=(n, *shape), dtype=np.uint8)
    return Examples(x, y, classes, mean=(0.3,) * shape[0], std=(0.35,) * shape[0])


def engine(training: Training, examples: Examples, runs: int, device: str, stream: bool | None = None) -> float:
    """Examples per second of the whole call: initial weights, training and evaluation."""
    test = Examples(examples.x[:2000], examples.y[:2000], examples.classes, examples.mean, examples.std)
    rows = np.arange(len(examples.y))
    seen = training.steps_for(len(rows)) * training.batch_for(len(rows)) * runs

    def once(first: int, training: Training = training) -> float:
        tasks = [Assignment(rows, first + r, first + r, first + r) for r in range(runs)]
        start = _clock(device)
        found = [t for _, t in train(training, tasks, examples, {"test": test}, device=device, stream=stream)]
        once.path = sorted({t.path for t in found})  # type: ignore[attr-defined]
        return seen / (_clock(device) - start)

    once(0, replace(training, epochs=0.1))  # compiles
    speed = statistics.median(once(100 * k) for k in range(1, 4))
    print(f"  engine: {once.path}, {speed:,.0f}/s", file=sys.stderr)  # type: ignore[attr-defined]
    return speed


def loop(training: Training, examples: Examples, device: str, steps: int) -> float:
    """Examples per second of the loop that everyone writes, with a DataLoader."""
    from torch.utils.data import DataLoader, TensorDataset

    x, y = _floats(examples)
    loader = DataLoader(TensorDataset(x, y), batch_size=training.batch, shuffle=True, drop_last=True)
    model = make_network(training, examples.shape, examples.classes).to(device).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    done, start = 0, 0.0
    while done < steps:
        for inputs, labels in loader:
            if done == 5:
                _wait(device)
                start = time.perf_counter()
            inputs, labels = inputs.to(device), labels.to(device)
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimiser.step()
            done += 1
            if done == steps:
                break
    _wait(device)
    return (steps - 5) * training.batch / (time.perf_counter() - start)


def lightning(training: Training, examples: Examples, steps: int, *, tuned: bool) -> float | None:
    """Examples per second of a Lightning Trainer, or None if it is not installed.

    As it comes, or ``tuned``: bfloat16, four loading processes and pinned memory.
    """
    try:
        import lightning.pytorch as pl
    except ModuleNotFoundError:
        try:
            import pytorch_lightning as pl
        except ModuleNotFoundError:
            return None
    from torch.utils.data import DataLoader, TensorDataset

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = make_network(training, examples.shape, examples.classes)
            self.times: list[float] = []

        def training_step(self, batch, number):
            if number in (5, steps - 1):
                torch.cuda.synchronize()
                self.times.append(time.perf_counter())
            return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)

    loader = DataLoader(
        TensorDataset(*_floats(examples)),
        batch_size=training.batch,
        shuffle=True,
        drop_last=True,
        **({"num_workers": 4, "persistent_workers": True, "pin_memory": True} if tuned else {}),
    )
    module = Module()
    trainer = pl.Trainer(
        max_steps=steps,
        accelerator="gpu",
        devices=1,
        precision="bf16-mixed" if tuned else "32-true",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)
    return (steps - 6) * training.batch / (module.times[1] - module.times[0])


def resident_loop(training: Training, examples: Examples, device: str, steps: int) -> float:
    """Examples per second of an eager loop whose data already lies on the device."""
    x, y = (t.to(device) for t in _floats(examples))
    model = make_network(training, examples.shape, examples.classes).to(device).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    start = 0.0
    for step in range(steps):
        if step == 5:
            _wait(device)
            start = time.perf_counter()
        index = torch.randint(len(y), (training.batch,), device=device)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x[index]), y[index]).backward()
        optimiser.step()
    _wait(device)
    return (steps - 5) * training.batch / (time.perf_counter() - start)


def whole_loop(training: Training, examples: Examples) -> float:
    """Examples per second of one whole run as the engine makes it, in a loop on resident data.

    Initial weights, steps, and predictions for 2,000 test examples and the training examples.
    """
    x, y = _floats(examples)
    steps = training.steps_for(len(y))
    start = _clock("cpu")
    model = make_network(training, examples.shape, examples.classes).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    order = torch.cat([torch.randperm(len(y)) for _ in range(int(training.epochs) + 1)])
    for step in range(steps):
        index = order[step * training.batch : (step + 1) * training.batch]
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(x[index]), y[index]).backward()
        optimiser.step()
    model.eval()
    with torch.no_grad():
        for part in (x[:2000], x):
            torch.cat([model(some).softmax(1) for some in part.split(2000)])
    return steps * training.batch / (_clock("cpu") - start)


def _floats(examples: Examples) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.from_numpy(examples.x).float()
    return (x / 255 if examples.x.dtype == np.uint8 else x), torch.from_numpy(examples.y)


def _clock(device: str) -> float:
    """Seconds: by the clock where a GPU works, of this process on a CPU, which may be shared."""
    return time.perf_counter() if device == "cuda" else time.process_time()


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def on_gpu() -> dict[str, object]:
    """The three bars of the GPU."""
    images = make_examples(50_000, (1, 28, 28))
    resnet = Training(
        "resnet9", batch=500, rate=0.01, epochs=8, weight_decay=5e-4, augmentation=AUGMENTATION, precision="bfloat16"
    )
    cnn = Training("cnn", batch=500, rate=0.01, epochs=8, augmentation=(), precision="bfloat16")
    found: dict[str, object] = {"device": torch.cuda.get_device_name()}
    for name, training, runs in (("resnet9", resnet, 4), ("cnn", cnn, 16)):
        print(name, file=sys.stderr)
        fast = engine(training, images, runs, "cuda")
        plain = loop(training, images, "cuda", 90)
        found[name] = {
            "engine_per_s": round(fast),
            "dataloader_per_s": round(plain),
            "ratio_dataloader": round(fast / plain, 2),
        }
        for label, tuned in (("lightning", False), ("lightning_tuned", True)):
            other = lightning(training, images, 90, tuned=tuned)
            if other is not None:
                found[name] |= {f"{label}_per_s": round(other), f"ratio_{label}": round(fast / other, 2)}  # type: ignore[operator]
    features = make_examples(10_000, (2048,))
    probe = Training("linear", batch=500, rate=0.01, epochs=20)
    print("probes", file=sys.stderr)
    fast = engine(probe, features, 256, "cuda")
    plain = resident_loop(probe, features, "cuda", 300)
    found["probes_256"] = {"engine_per_s": round(fast), "loop_per_s": round(plain), "ratio": round(fast / plain, 1)}
    return found


def streamed() -> dict[str, object]:
    """Images of CIFAR's size that are copied batch by batch, and all on the device."""
    found: dict[str, object] = {"device": torch.cuda.get_device_name()}
    training = Training("resnet9", batch=500, rate=0.01, epochs=8, augmentation=AUGMENTATION, precision="bfloat16")
    images = make_examples(50_000, (3, 32, 32))
    for runs in (1, 4):
        print(f"resnet9, {runs}", file=sys.stderr)
        on_device = engine(training, images, runs, "cuda", stream=False)
        from_host = engine(training, images, runs, "cuda", stream=True)
        found[f"resnet9_{runs}"] = {
            "streamed_per_s": round(from_host),
            "resident_per_s": round(on_device),
            "ratio": round(from_host / on_device, 2),
        }
    test = Examples(images.x[:500], images.y[:500], 10, images.mean, images.std)
    one = [Assignment(np.arange(50_000), 1, 2, 3)]
    both = []
    for stream in (False, True):
        ((_, trained),) = train(
            replace(training, epochs=0.2), one, images, {"test": test}, device="cuda", stream=stream
        )
        both.append(trained.probabilities["test"])
    return found | {"same_bits": bool(np.array_equal(*both))}


# The recipe of the speed record


def fast(asked: argparse.Namespace) -> dict[str, object]:
    """Seconds a network and accuracy of the recipe variance-fast on CIFAR-10, in flight and one at a time."""
    from curvewise.study.spec.recipes import recipe_document

    settings = recipe_document({"name": "variance-fast", "precision": asked.precision})["training"]
    training, (examples, test) = Training(**settings), cifar10(asked.examples)
    shown = {"test": test, "averaged": replace(test, views=("mirror", "shift:1"))}
    rows, device = np.arange(len(examples.y)), "cuda" if torch.cuda.is_available() else "cpu"

    def trained(count: int, in_flight: int | None, training: Training = training) -> tuple[float, list[Any]]:
        tasks = [Assignment(rows, seed, seed, seed) for seed in range(count)]
        start = time.perf_counter()
        found = dict(train(training, tasks, examples, shown, device=device, in_flight=in_flight))
        seconds = time.perf_counter() - start
        assert all(one.error is None for one in found.values()), [one.error for one in found.values()]
        return seconds / count, [found[i] for i in range(count)]

    runs, alone = asked.runs, min(3, asked.runs)
    start = time.perf_counter()
    trained(runs, asked.in_flight, replace(training, epochs=0.1))
    compiling = time.perf_counter() - start
    together = [trained(runs, asked.in_flight) for _ in range(2)]
    single = [trained(alone, 1) for _ in range(2)]
    seconds, baseline = (min(each for each, _ in some) for some in (together, single))
    many, few = together[0][1], single[0][1]
    same = [
        all(np.array_equal(few[i].probabilities[name], many[i].probabilities[name]) for name in shown)
        for i in range(alone)
    ]
    same.append(
        all(
            np.array_equal(a.probabilities["test"], b.probabilities["test"])
            for a, b in zip(many, together[1][1], strict=True)
        )
    )
    accuracy = {
        name: [float((one.probabilities[name].argmax(1) == part.y).mean()) for one in many]
        for name, part in shown.items()
    }
    found: dict[str, object] = {
        "networks": runs,
        "lanes": POOL.settled,
        "path": many[0].path,
        "seconds_a_network": round(seconds, 3),
        "one_at_a_time": round(baseline, 3),
        "ratio": round(baseline / seconds, 2),
        "compiling_s": round(compiling, 1),
        "accuracy": round(float(np.mean(accuracy["test"])), 4),
        "accuracy_averaged": round(float(np.mean(accuracy["averaged"])), 4),
        "accuracy_std": round(float(np.std(accuracy["averaged"], ddof=1)), 4),
        "same_bits": same,
    }
    if device == "cuda":
        found["memory_gib"] = round(torch.cuda.max_memory_reserved() / 2**30, 1)
    rival = airbench(examples, test)
    return found | (
        {} if rival is None else {"airbench": rival, "ratio_airbench": round(rival["seconds"] / seconds, 2)}
    )


def cifar10(most: int | None) -> tuple[Examples, Examples]:
    """Training and test images."""
    from curvewise.study.data.load import load_dataset

    folder = Path(os.environ.get("CURVEWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    data = load_dataset({"name": "cifar10", "path": str(folder / "cifar10_jpeg.npz")})
    assert data.test_x is not None
    assert data.test_y is not None
    x, y, test_x, test_y = (part[:most] for part in (data.x, data.y, data.test_x, data.test_y))
    levels = [x[:, channel] / np.float32(255) for channel in range(3)]
    mean, std = (tuple(float(getattr(level, what)()) for level in levels) for what in ("mean", "std"))
    return tuple(Examples(a, b.astype(np.int64), 10, mean, std) for a, b in ((x, y), (test_x, test_y)))  # type: ignore[return-value]


def airbench(examples: Examples, test: Examples) -> dict[str, Any] | None:
    """Seconds a network and accuracy of PyPI's airbench on the same images; None where it is not installed."""
    if importlib.util.find_spec("airbench") is None or not torch.cuda.is_available():
        return None
    import airbench as rival

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        Path("cifar10").mkdir()
        for name, part in (("train", examples), ("test", test)):
            images, labels = torch.from_numpy(part.x.transpose(0, 2, 3, 1).copy()), torch.from_numpy(part.y)
            torch.save({"images": images, "labels": labels, "classes": list(range(10))}, f"cifar10/{name}.pt")
        rival.warmup94()
        times, found = [], []
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            network = rival.train94()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
            found.append(float(rival.evaluate(network, rival.CifarLoader("cifar10", train=False), tta_level=2)))
    version = importlib.metadata.version("airbench")
    return {"version": version, "seconds": round(min(times), 3), "accuracy_averaged": round(float(np.mean(found)), 4)}


def on_cpu() -> dict[str, object]:
    """Small networks on one core, against a loop that does the same on resident tensors."""
    torch.set_num_threads(1)
    found: dict[str, object] = {"device": "cpu, one thread"}
    cases = {
        "mlp_batch_16": (Training("mlp", options={"width": 64}, batch=16, epochs=4), (1, 8, 8)),
        "mlp_batch_64": (Training("mlp", options={"width": 64}, batch=64, epochs=4), (1, 8, 8)),
        "mlp_batch_500": (Training("mlp", options={"width": 256}, batch=500, epochs=4), (1, 28, 28)),
        "linear_batch_64": (Training("linear", batch=64, epochs=4), (512,)),
        "cnn_batch_64": (Training("cnn", options={"width": 8}, batch=64, epochs=4), (1, 8, 8)),
    }
    for name, (training, shape) in cases.items():
        print(name, file=sys.stderr)
        examples = make_examples(2_000, shape)
        fast = engine(training, examples, 32 if "cnn" not in name else 4, "cpu")
        plain = statistics.median(whole_loop(training, examples) for _ in range(7))
        found[name] = {"engine_per_s": round(fast), "loop_per_s": round(plain), "ratio": round(fast / plain, 2)}
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", nargs="?", choices=["fast"])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--streamed", action="store_true")
    parser.add_argument("--runs", type=int, default=16, help="of fast: networks")
    parser.add_argument("--in-flight", type=int, help="of fast: lanes, by default as measured")
    parser.add_argument("--precision", default="bfloat16", help="of fast")
    parser.add_argument("--examples", type=int, help="of fast: only the first images of each set")
    wish = parser.parse_args()
    gpu = torch.cuda.is_available() and not wish.cpu
    if wish.row == "fast":
        measured: dict[str, object] = {"fast": fast(wish)}
    else:
        measured = streamed() if wish.streamed else on_gpu() if gpu else on_cpu()
    print(json.dumps({"benchmark": "study", **measured}))
