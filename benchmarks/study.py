"""Speed of the training engine: images per second, against a plain loop and Lightning.

Run on a GPU for the bars of convolutional networks and probes; on a CPU for small networks. All
ways train the same architecture with the same batch size on the same device; the engine augments
on top, the others do not. Prints one JSON line.

    python benchmarks/study.py            # the GPU if there is one
    python benchmarks/study.py --cpu
    python benchmarks/study.py --streamed # images that stay on the host, against images on the GPU
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path = [p for p in sys.path if not p.endswith("benchmarks")]

from dataclasses import replace

import numpy as np
import torch

from curvewise.nn import Assignment, Examples, Training
from curvewise.nn.engine import train
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--streamed", action="store_true")
    asked = parser.parse_args()
    gpu = torch.cuda.is_available() and not asked.cpu
    measured = streamed() if asked.streamed else on_gpu() if gpu else on_cpu()
    print(json.dumps({"benchmark": "study", **measured}))
