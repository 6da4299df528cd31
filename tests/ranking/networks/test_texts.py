"""Encoders of transformers, made on the spot: images, texts and tokens, pooled or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessorPil,
    ViTModel,
)

from curvewise.errors import InputError
from curvewise.ranking.networks.checkpoints import Checkpoint
from curvewise.ranking.networks.features import TokenFeatures, extract_features

WORDS = ["[PAD]", "[UNK]", "the", "cat", "sat", "on", "a", "mat", "and", "ran"]
TEXTS = ["the cat sat", "a cat", "the cat sat on the mat and ran", "mat", "dog ran"]
IMAGES = np.random.default_rng(1).integers(0, 256, (5, 40, 30, 3)).astype(np.uint8)


def tokenizer() -> Any:
    backend = Tokenizer(WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    backend.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", model_max_length=6)


def bert(*, classes: int | None = None) -> Any:
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        num_labels=classes or 2,
    )
    torch.manual_seed(0)
    model = BertModel(config) if classes is None else BertForSequenceClassification(config)
    return model.eval()


def vit(*, classes: int | None = None) -> Any:
    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        image_size=16,
        patch_size=8,
        num_labels=classes or 2,
    )
    torch.manual_seed(0)
    return (ViTModel(config) if classes is None else ViTForImageClassification(config)).eval()


def alone(model: Any, text: str) -> np.ndarray:
    """States of the tokens of one text, without padding."""
    ids = tokenizer()([text], truncation=True, max_length=6, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        states: np.ndarray = model(input_ids=ids).last_hidden_state[0].numpy()
    return states


@pytest.mark.parametrize("where", ["object", "folder"])
@pytest.mark.parametrize("pool", ["auto", "first", "tokens"])
def test_texts_are_pooled_without_their_padding(where: str, pool: str, tmp_path: Path) -> None:
    model = bert()
    states = [alone(model, text) for text in TEXTS]
    if where == "folder":
        model.save_pretrained(tmp_path)
        tokenizer().save_pretrained(tmp_path)
        one = Checkpoint("bert", tmp_path, pool=pool)
    else:
        one = Checkpoint("bert", model, tokenizer=tokenizer(), pool=pool)
    found = extract_features(one, TEXTS, batch=3)
    wanted = {
        "auto": np.stack([s.mean(axis=0) for s in states]),
        "first": np.stack([s[0] for s in states]),
        "tokens": np.concatenate(states),
    }[pool]
    assert np.allclose(found.features, wanted, atol=1e-5)
    assert "texts are cut to 6 tokens" in found.notes
    if pool == "tokens":
        assert isinstance(found, TokenFeatures)
        assert found.examples is not None
        assert found.examples.tolist() == np.repeat(range(5), [len(s) for s in states]).tolist()


def test_tokens_in_an_array_are_the_same_as_texts() -> None:
    model = bert()
    ids = tokenizer()(TEXTS, padding=True, truncation=True, max_length=6)["input_ids"]
    by_text = extract_features(Checkpoint("b", model, tokenizer=tokenizer()), TEXTS)
    by_token = extract_features(model, np.array(ids))  # 0 is what the network pads with
    assert np.allclose(by_text.features, by_token.features, atol=1e-5)
    short = extract_features(Checkpoint("b", model, tokenizer=tokenizer(), length=2), TEXTS)
    assert not np.allclose(short.features, by_text.features, atol=1e-3)


def test_a_tokenizer_that_was_used_before_is_the_same(tmp_path: Path) -> None:
    one = Checkpoint("b", bert(), tokenizer=tokenizer())
    first = extract_features(one, TEXTS, cache=tmp_path)
    second = extract_features(one, TEXTS, cache=tmp_path)
    assert any("read from the cache" in note for note in second.notes)
    assert np.array_equal(first.features, second.features)
    other = Checkpoint("b", bert(), tokenizer=tokenizer(), length=3)
    third = extract_features(other, TEXTS, cache=tmp_path)
    assert not any("read from the cache" in note for note in third.notes)


def test_a_classifier_of_texts_keeps_its_head(tmp_path: Path) -> None:
    model = bert(classes=3)
    model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    found = extract_features(tmp_path, TEXTS, cache=tmp_path / "cache")
    assert found.layer == "input of classifier"
    given = tokenizer()(TEXTS, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        output = model(input_ids=given["input_ids"], attention_mask=given["attention_mask"])
        inner = model.bert(input_ids=given["input_ids"], attention_mask=given["attention_mask"])
    assert np.allclose(found.features, inner.pooler_output, atol=1e-5)
    assert found.probabilities is not None
    assert np.allclose(found.probabilities, output.logits.softmax(1), atol=1e-5)
    again = extract_features(tmp_path, TEXTS, cache=tmp_path / "cache")
    assert any("read from the cache" in note for note in again.notes)


def test_layers_of_an_encoder_by_name() -> None:
    one = Checkpoint("b", bert(), tokenizer=tokenizer(), layer="encoder.layer.0")
    assert extract_features(one, TEXTS).features.shape == (5, 16)


@pytest.mark.parametrize("classes", [None, 3], ids=["encoder", "classifier"])
def test_images_through_the_folders_own_processor(classes: int | None, tmp_path: Path) -> None:
    model = vit(classes=classes)
    processor = ViTImageProcessorPil(size={"height": 16, "width": 16})
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    found = extract_features(tmp_path, IMAGES, batch=2)
    pixels = processor(images=list(IMAGES), return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        output = model(pixel_values=pixels, output_hidden_states=True)
        last = output.hidden_states[-1]
    if classes is None:
        wanted = output.last_hidden_state.mean(dim=1)
        assert found.probabilities is None
    else:
        wanted = model.vit.layernorm(last)[:, 0].detach()
        assert found.probabilities is not None
        assert np.allclose(found.probabilities, output.logits.softmax(1), atol=5e-3)
        assert found.layer == "input of classifier"
    assert np.allclose(found.features, wanted, atol=0.05)  # Pillow rounds between its two passes
    assert found.gflops is not None
    assert found.gflops > 0


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json in this folder"):
        extract_features(tmp_path, TEXTS)
    with pytest.raises(InputError, match="tokenizer of 'BertModel' is missing"):
        extract_features(bert(), TEXTS)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="cannot be loaded by transformers"):
        extract_features(tmp_path, TEXTS)
