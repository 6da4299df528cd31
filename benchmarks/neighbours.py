"""Show that the engine does not make the variance that it measures.

First: the same run alone and with seven others in flight must give the same probabilities, bit for
bit. Second: a hundred runs of the engine and a hundred of a plain eager loop must show the same
variance between runs, within its interval. Prints one JSON line.

    python benchmarks/neighbours.py [folder with Fashion-MNIST]     # the GPU if there is one
"""

from __future__ import annotations

import json
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path = [p for p in sys.path if not p.endswith("benchmarks")]

import numpy as np
import torch

from curvewise.nn import Assignment, Examples, Training
from curvewise.nn.engine import train
from curvewise.nn.networks import make_network
from curvewise.study.data.load import load_dataset
from curvewise.types import Predictions
from curvewise.variance import decompose_variance

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
AUGMENTATION = ("flip", "translate:2", "cutout:12")
RUNS = 100


def examples_of(where: str | None) -> tuple[Examples, Examples]:
    """Fashion-MNIST, or scikit-learn's digits."""
    if where is None:
        data = load_dataset("digits")
        cut = 1200
        parts = (data.x[:cut], data.y[:cut]), (data.x[cut:], data.y[cut:])
    else:
        data = load_dataset({"path": where})
        assert data.test_x is not None
        assert data.test_y is not None
        parts = (data.x, data.y), (data.test_x, data.test_y)
    mean, std = (parts[0][0].mean() / 255,), (parts[0][0].std() / 255,)
    first, second = (Examples(x, y.astype(np.int64), 10, mean, std) for x, y in parts)
    return first, second


def bits(fit: Examples, test: Examples) -> dict[str, object]:
    """For several networks, whether each of eight runs gives the same alone and together."""
    rows = np.arange(len(fit.y))[: 10_000 if GPU else 400]
    precise = "bfloat16" if GPU else "float32"
    cases = {
        "resnet9": Training("resnet9", batch=500, epochs=2, augmentation=AUGMENTATION),
        "resnet18": Training("resnet18", batch=250, epochs=1, optimiser="adamw", rate=1e-3),
        "vgg11": Training("vgg11", batch=250, epochs=1, options={"batch_norm": True}, rate=0.01),
        "cnn": Training("cnn", batch=125, epochs=2, rate=0.05),
        "mlp": Training("mlp", batch=100, epochs=4),
        "mlp, augmented": Training("mlp", batch=100, epochs=4, augmentation=("translate:2",)),
        "linear": Training("linear", batch=100, epochs=4, rate=0.01),
        "cnn, early stop": Training("cnn", batch=125, epochs=3, rate=0.05, schedule="early-stop", validation=0.2),
    }
    if not GPU:
        cases = {k: v for k, v in cases.items() if k in ("cnn", "mlp", "mlp, augmented", "linear")}
    found: dict[str, object] = {}
    for name, training in cases.items():
        for precision in {precise, "float32"} if name in ("resnet9", "mlp") else {precise}:
            own = Training(**{**training.__dict__, "precision": precision})
            tasks = [Assignment(rows, 10 + i, 20 + i, 30 + i) for i in range(8)]
            start = time.perf_counter()
            flight = dict(train(own, tasks, fit, {"t": test}, device=DEVICE, in_flight=8))
            again = dict(train(own, tasks[::-1], fit, {"t": test}, device=DEVICE, in_flight=3))
            alone = [dict(train(own, [task], fit, {"t": test}, device=DEVICE))[0] for task in tasks]
            trouble = [t.error for t in (*flight.values(), *alone) if t.error]
            assert not trouble, trouble[0]
            same = [
                np.array_equal(a.probabilities["t"], flight[i].probabilities["t"])
                and np.array_equal(a.probabilities["t"], again[7 - i].probabilities["t"])
                for i, a in enumerate(alone)
            ]
            error = (alone[0].probabilities["t"].argmax(1) != test.y).mean()
            found[f"{name}, {precision}"] = f"{sum(same)} of 8"
            print(
                f"{name} {precision}: {sum(same)} of 8 the same, error {error:.4f}, "
                f"{flight[0].path}, {time.perf_counter() - start:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    return found


def eager(training: Training, rows: np.ndarray, fit: Examples, test: Examples, seed: int):
    """Predictions of a network trained by the loop that everyone writes."""
    torch.manual_seed(seed)
    model = make_network(training, fit.shape, fit.classes).to(DEVICE).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=training.rate, momentum=0.9, weight_decay=training.weight_decay)
    steps = training.steps_for(len(rows))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    x, y = (t[rows] for t in (_ready(fit), torch.from_numpy(fit.y).to(DEVICE)))
    done = 0
    while done < steps:
        order = torch.randperm(len(rows), device=DEVICE)
        for index in order.split(training.batch):
            if len(index) < training.batch or done == steps:
                continue
            with torch.autocast(DEVICE, torch.bfloat16, enabled=training.precision == "bfloat16"):
                loss = torch.nn.functional.cross_entropy(model(x[index]), y[index])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            done += 1
    with torch.no_grad():
        return model.eval()(_ready(test)).argmax(1).cpu().numpy()


def _ready(examples: Examples) -> torch.Tensor:
    x = torch.from_numpy(examples.x.copy()).to(DEVICE).float() / 255
    return (x - examples.mean[0]) / examples.std[0]


def variances(fit: Examples, test: Examples) -> dict[str, object]:
    """Decompose the variance of a hundred runs made in either way."""
    if GPU:
        rows = np.arange(len(fit.y))[:10_000]
        training = Training("cnn", batch=500, epochs=8, rate=0.02, precision="bfloat16")
    else:
        rows = np.arange(len(fit.y))[:400]
        training = Training("mlp", batch=50, epochs=10, rate=0.1)
    tasks = [Assignment(rows, r, r, r) for r in range(RUNS)]
    start = time.perf_counter()
    ours = np.zeros((RUNS, len(test.y)), dtype=np.uint8)
    for i, trained in train(training, tasks, fit, {"t": test}, device=DEVICE):
        ours[i] = trained.probabilities["t"].argmax(1)
    middle = time.perf_counter()
    theirs = np.stack([eager(training, rows, fit, test, r) for r in range(RUNS)]).astype(np.uint8)
    end = time.perf_counter()
    found: dict[str, object] = {"seconds": [round(middle - start, 1), round(end - middle, 1)]}
    intervals = {}
    for name, values in (("engine", ours), ("eager", theirs)):
        result = decompose_variance(Predictions(values, "labels", labels=test.y))
        intervals[name] = result.distribution_interval
        found[name] = {
            "error": round(float(np.mean(values != test.y)), 5),
            "test_set_std": round(result.test_set_std, 6),
            "distribution_std": round(result.distribution_std, 6),
            "interval": [round(float(v), 6) for v in (intervals[name].low, intervals[name].high)],
        }
    a, b = intervals["engine"], intervals["eager"]
    found["each within the other's interval"] = bool(a.low <= b.estimate <= a.high and b.low <= a.estimate <= b.high)
    return found


if __name__ == "__main__":
    fit, test = examples_of(sys.argv[1] if len(sys.argv) > 1 else None)
    print(
        json.dumps(
            {
                "benchmark": "neighbours",
                "device": torch.cuda.get_device_name() if GPU else "cpu",
                "same bits alone and with seven others": bits(fit, test),
                f"variance of {RUNS} runs": variances(fit, test),
            }
        )
    )
