"""Callbacks store classifiers only; whole trainings are in tests/examples."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import curvewise as cw

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("outputs", [1, 2])
def test_lightning_stores_no_single_logit_as_class_0(tmp_path: Path, outputs: int) -> None:
    lightning = pytest.importorskip("lightning")
    from curvewise.integrations.lightning import StoreLightningRun

    class Network(lightning.LightningModule):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            z = x.flatten()
            return torch.stack([0 * z, z], dim=-1)[:, -outputs:]  # as the message says

    x = torch.tensor([[1.0], [-1.0], [2.0]])
    callback = StoreLightningRun(tmp_path, {"learner": "net", "n": 3}, [(x, torch.tensor([1, 0, 0]))])
    trainer = SimpleNamespace(is_global_zero=True, current_epoch=1)
    if outputs == 1:
        told = r"outputs of shape \(3, 1\).* For a binary network return torch.stack\(\[0 \* z, z\], dim=-1\)"
        with pytest.raises(cw.InputError, match=told):
            callback.on_fit_end(trainer, Network())
        return
    callback.on_fit_end(trainer, Network())
    assert cw.load_measurements(tmp_path).error.tolist() == [1 / 3]
    (loss,) = cw.load_measurements(tmp_path, metric="loss").error
    z, y = x.flatten(), torch.tensor([1.0, 0.0, 0.0])
    assert loss == pytest.approx(torch.nn.functional.binary_cross_entropy_with_logits(z, y).item())


@pytest.mark.parametrize(("outputs", "labels"), [((4, 1), 4), ((4, 3), None), ((4, 5, 3), 4)])
def test_the_trainer_of_hugging_face_stores_one_class_for_each_label(
    tmp_path: Path, outputs: tuple[int, ...], labels: int | None
) -> None:
    pytest.importorskip("transformers")
    from curvewise.integrations.hugging_face import StoreTrainerRun

    truth = None if labels is None else np.zeros(labels, dtype=np.int64)
    out = SimpleNamespace(predictions=np.zeros(outputs), label_ids=truth, metrics={})
    trainer = SimpleNamespace(predict=lambda test: out, train_dataset=[0] * 9)
    callback = StoreTrainerRun(trainer, [], tmp_path, {"learner": "net"})
    with pytest.raises(cw.InputError, match="only runs of classifiers are stored"):
        callback.on_train_end(SimpleNamespace(seed=0), SimpleNamespace(is_world_process_zero=True, epoch=1), None)
