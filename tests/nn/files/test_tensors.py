"""Initial weights out of files: what fits, what is drawn anew, what is refused."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn.architectures import ARCHITECTURES
from curvewise.nn.files.model import load_model
from curvewise.nn.networks import initial_network, make_network, notes_of, restore_network, settle_weights
from curvewise.nn.training import Training


def _source(classes: int = 3) -> dict[str, Tensor]:
    torch.manual_seed(42)
    model = make_network(Training("resnet18", options={"width": 4}), (1, 8, 8), classes)
    model(torch.randn(4, 1, 8, 8))  # running means that are not those of a new network
    return model.state_dict()


def _made(folder: Path, file: str, classes: int = 3, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    training = Training("resnet18", options={"width": 4}, weights=file)
    return make_network(training, (1, 8, 8), classes, folder)


def _saved(folder: Path, content: Any, name: str) -> str:
    if name.endswith(".safetensors"):
        save_file(content, folder / name)
    else:
        torch.save(content, folder / name)
    return name


@pytest.mark.parametrize("name", ["w.safetensors", "w.pt", "w.pth", "w.th"])
def test_every_kind_of_file_gives_back_what_was_saved(tmp_path: Path, name: str) -> None:
    source = _source()
    model = _made(tmp_path, _saved(tmp_path, source, name))
    assert all(torch.equal(v, source[k]) for k, v in model.state_dict().items())
    assert notes_of(model) == ()
    assert model.training


@pytest.mark.parametrize("nested", ["state_dict", "model"])
def test_wrappings_are_taken_off(tmp_path: Path, nested: str) -> None:
    source = _source()
    wrapped = {nested: {f"module.{k}": v for k, v in source.items()}, "epoch": 3}
    model = _made(tmp_path, _saved(tmp_path, wrapped, "w.pth"))
    assert all(torch.equal(v, source[k]) for k, v in model.state_dict().items())


def test_halves_are_read_as_single_precision(tmp_path: Path) -> None:
    halves = {k: v.half() if v.is_floating_point() else v for k, v in _source().items()}
    model = _made(tmp_path, _saved(tmp_path, halves, "w.safetensors"))
    assert all(p.dtype == torch.float32 for p in model.parameters())
    assert torch.equal(model.state_dict()["conv1.weight"], halves["conv1.weight"].float())


def test_a_head_of_another_shape_is_drawn_anew_by_the_seed(tmp_path: Path) -> None:
    source = _source(classes=10)
    file = _saved(tmp_path, source, "w.safetensors")
    one, two, again = (_made(tmp_path, file, seed=s) for s in (1, 2, 1))
    assert len(notes_of(one)) == 1
    assert "initialised randomly" in notes_of(one)[0]
    assert one.fc.weight.shape == (3, 32)
    assert torch.equal(one.fc.weight, again.fc.weight)
    assert not torch.equal(one.fc.weight, two.fc.weight)
    for key, value in one.state_dict().items():
        assert key.startswith("fc.") or torch.equal(value, source[key])


def test_a_file_without_a_head_or_counters_is_enough(tmp_path: Path) -> None:
    source = {k: v for k, v in _source().items() if not k.startswith("fc.")}
    source = {k: v for k, v in source.items() if not k.endswith("num_batches_tracked")}
    model = _made(tmp_path, _saved(tmp_path, source, "w.pt"))
    assert "initialised randomly" in notes_of(model)[0]
    assert torch.equal(model.state_dict()["layer4.1.bn2.running_var"], source["layer4.1.bn2.running_var"])


def test_the_notes_survive_a_copy(tmp_path: Path) -> None:
    import copy

    model = _made(tmp_path, _saved(tmp_path, _source(classes=10), "w.pt"))
    assert notes_of(copy.deepcopy(model)) == notes_of(model) != ()


def test_mismatches_are_named(tmp_path: Path) -> None:
    source = _source()
    lacking = {k: v for k, v in source.items() if k != "conv1.weight"}
    with pytest.raises(InputError, match=r"1 missing in the file, such as conv1\.weight"):
        _made(tmp_path, _saved(tmp_path, lacking, "a.pt"))
    more = {**source, "projection.weight": torch.zeros(2)}
    with pytest.raises(InputError, match=r"1 not in the network, such as projection\.weight"):
        _made(tmp_path, _saved(tmp_path, more, "b.pt"))
    other = {**source, "bn1.weight": torch.zeros(5)}
    with pytest.raises(InputError, match=r"1 of another shape.*bn1\.weight \(5,\) in the file and \(4,\)"):
        _made(tmp_path, _saved(tmp_path, other, "c.pt"))


def _imagenet(architecture: str) -> dict[str, Tensor]:
    torch.manual_seed(1)
    return ARCHITECTURES[architecture]((1, 32, 32), 3, width=4, stem="imagenet").state_dict()


@pytest.mark.parametrize("name", ["w.safetensors", "w.pt", "old.th", "w.npz"])
def test_weights_choose_the_stem_before_they_are_read_whole(tmp_path: Path, name: str) -> None:
    source = _imagenet("resnet18")
    if name == "w.npz":
        np.savez(tmp_path / name, **{k: v.numpy() for k, v in source.items()})
    elif name == "old.th":
        torch.save(source, tmp_path / name, _use_new_zipfile_serialization=False)
    else:
        _saved(tmp_path, source, name)
    open_ = Training("resnet18", options={"width": 4}, weights=name)
    said = replace(open_, options={"width": 4, "stem": "imagenet"})
    for training in (open_, said):
        assert settle_weights(training, (1, 32, 32), 3, tmp_path) == said
        model = make_network(training, (1, 32, 32), 3, tmp_path)
        assert all(torch.equal(v, source[k]) for k, v in model.state_dict().items())
    with pytest.raises(InputError, match=r"stem='imagenet' \(a first layer of 7×7\), not stem='small'"):
        settle_weights(replace(open_, options={"width": 4, "stem": "small"}), (1, 32, 32), 3, tmp_path)
    with pytest.raises(
        InputError, match=rf"{name}.*do not fit architecture='resnet18'.*conv1\.weight \(4, 1, 7, 7\) in the file"
    ):
        settle_weights(replace(open_, options={"width": 8}), (1, 32, 32), 3, tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=rf"{name}.*(damaged|cannot be read)"):
        settle_weights(open_, (1, 32, 32), 3, tmp_path)


@pytest.mark.parametrize("architecture", ["resnet18", "alexnet", "googlenet"])
def test_a_control_has_the_stem_of_weights_and_none_of_them(tmp_path: Path, architecture: str) -> None:
    source = _imagenet(architecture)
    file = _saved(tmp_path, source, "w.safetensors")
    usual = Training(architecture, options={"width": 4})
    said = replace(usual, options={"width": 4, "stem": "imagenet"})
    assert settle_weights(replace(usual, like=file), (1, 32, 32), 3, tmp_path) == said
    like, same = (initial_network(t, (1, 32, 32), 3, 5, tmp_path) for t in (replace(usual, like=file), said))
    assert all(torch.equal(a, b) for a, b in zip(like.parameters(), same.parameters(), strict=True))
    first = next(iter(source))
    assert like.state_dict()[first].shape == source[first].shape
    assert not torch.equal(like.state_dict()[first], source[first])
    small = replace(usual, like=file, options={"width": 4, "stem": "small"})  # what is said counts
    assert settle_weights(small, (1, 32, 32), 3, tmp_path) == replace(small, like=None)
    # Weights in hand tell the stem as well: those of a run, and of a file with a factory.
    arrays = {k: v.numpy() for k, v in source.items()}
    restored = restore_network(replace(usual, weights=file), (1, 32, 32), 3, arrays)
    loaded = load_model(tmp_path / file, shape=(1, 32, 32), classes=3, factory=architecture, options={"width": 4})
    for model in (restored, loaded.model):
        assert torch.equal(model.state_dict()[first], source[first])


def test_an_encoder_follows_the_weights_of_a_classifier(tmp_path: Path) -> None:
    file = _saved(tmp_path, _imagenet("resnet18"), "w.pt")
    training = Training("unet", options={"width": 4}, weights=file, weights_into="encoder")
    settled = settle_weights(training, (1, 32, 32), (1, 32, 32), tmp_path)
    assert settled.options == {"width": 4, "stem": "imagenet"}
    with pytest.raises(InputError, match="encoder, decoder, last"):
        settle_weights(replace(training, weights_into="body"), (1, 32, 32), (1, 32, 32), tmp_path)


class _Code:
    def __reduce__(self) -> Any:
        return os.getenv, ("HOME",)


def test_files_with_code_or_rubbish_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file"):
        _made(tmp_path, "absent.pt")
    with pytest.raises(InputError, match=r"end in \.safetensors"):
        _made(tmp_path, "w.ckpt2")
    (tmp_path / "code.pt").write_bytes(pickle.dumps({"a": _Code()}))
    with pytest.raises(InputError, match=r"run code.*refused"):
        _made(tmp_path, "code.pt")
    _saved(tmp_path, {"a": _Code()}, "code.pth")
    with pytest.raises(InputError, match=r"run code.*refused"):
        _made(tmp_path, "code.pth")
    with pytest.raises(InputError, match=r"not tensors \(epoch"):
        _made(tmp_path, _saved(tmp_path, {"epoch": 3, **_source()}, "mixed.pt"))
    with pytest.raises(InputError, match=r"holds no tensors by name"):
        _made(tmp_path, _saved(tmp_path, [torch.zeros(2)], "list.pt"))


@pytest.mark.parametrize("name", ["w.safetensors", "w.pt"])
@pytest.mark.parametrize("kept", [0, 5, 0.5, 0.99])
def test_a_file_cut_short_is_refused(tmp_path: Path, name: str, kept: float) -> None:
    _saved(tmp_path, _source(), name)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(kept * len(whole)) if kept < 1 else int(kept)])
    with pytest.raises(InputError, match=r"w\.(pt|safetensors).*damaged"):
        _made(tmp_path, name)


def test_the_file_of_a_hugging_face_model_fits_its_wrapper(tmp_path: Path) -> None:
    import transformers

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = transformers.BertConfig(vocab_size=9, intermediate_size=8, num_labels=2, **sizes)
    torch.manual_seed(1)
    source = transformers.BertForSequenceClassification(config)
    source.save_pretrained(tmp_path / "bert")
    with torch.no_grad():
        for p in source.parameters():
            p.add_(1)
    torch.save(source.state_dict(), tmp_path / "later.pt")
    model = make_network(Training("hf:bert", weights="later.pt"), (4,), 2, tmp_path)
    assert notes_of(model) == ()
    for key, value in source.state_dict().items():
        assert torch.equal(model.network.state_dict()[key], value)


@pytest.mark.parametrize("prefix", ["_orig_mod.module.", "module.encoder_q."])
def test_a_file_whose_weights_cannot_be_placed_is_no_likeness(prefix: str, tmp_path: Path) -> None:
    made = make_network(Training("resnet18", options={"width": 4, "stem": "imagenet"}), (3, 32, 32), 3)
    torch.save({prefix + name: value for name, value in made.state_dict().items()}, tmp_path / "w.pt")
    for options in ({"width": 4}, {"width": 4, "stem": "small"}):
        with pytest.raises(InputError, match=r"like='w.pt': it has none of conv1.weight.*Name its weights"):
            settle_weights(Training("resnet18", options=options, like="w.pt"), (3, 32, 32), 3, tmp_path)
    assert settle_weights(Training("mlp", like="w.pt"), (3, 32, 32), 3, tmp_path) == Training("mlp")
