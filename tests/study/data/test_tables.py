"""Tables, texts and Hugging Face datasets, made on the spot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import datasets as hf
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_iris
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from curvewise.errors import InputError, MissingDependencyError
from curvewise.nn.files.datasets import SEGMENT
from curvewise.nn.networks import make_network
from curvewise.nn.training import Training
from curvewise.study import study_recipe
from curvewise.study.data.load import load_dataset

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "film", "very"]
TEXTS = ["good film", "bad film", "very very good film", "very bad"] * 2
MOODS = ["up", "down"] * 4


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tokenizer of eight words, in its folder."""
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    folder = tmp_path_factory.mktemp("tokenizer")
    PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    return str(folder)


def coded(text: str, length: int) -> list[int]:
    ids = [2, *(WORDS.index(w) for w in text.split()), 3]
    return [*ids, *[0] * (length - len(ids))]


# --- tables --------------------------------------------------------------------------------------


def iris_frame() -> pd.DataFrame:
    iris = load_iris()
    frame = pd.DataFrame(iris.data, columns=["a", "b", "c", "d"])
    frame["species"] = np.array(["setosa", "versicolor", "virginica"])[iris.target]
    return frame


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_tables_hold_features_and_named_classes(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"flowers.{ending}"
    frame = iris_frame()
    if ending == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="," if ending == "csv" else "\t")
    data = load_dataset({"path": str(path), "label": "species"})
    np.testing.assert_allclose(data.x, load_iris().data, rtol=1e-6)
    assert data.x.dtype == np.float32
    assert np.array_equal(data.y, load_iris().target)
    assert data.classes == ("setosa", "versicolor", "virginica")
    assert any("index" in note for note in data.notes) == (ending != "parquet")


def test_columns_may_be_chosen_and_a_second_file_may_hold_the_test_part(tmp_path: Path) -> None:
    frame = iris_frame()
    frame[::2].to_csv(tmp_path / "train.csv", index=False)
    frame[1::2].to_csv(tmp_path / "test.csv", index=False)
    spec = {"path": "train.csv", "test": "test.csv", "label": "species", "features": ["c", "a"]}
    data = load_dataset(spec, folder=tmp_path)
    np.testing.assert_allclose(data.x, load_iris().data[::2, [2, 0]], rtol=1e-6)
    np.testing.assert_allclose(data.test_x, load_iris().data[1::2, [2, 0]], rtol=1e-6)
    frame.drop(columns="c").to_csv(tmp_path / "test.csv", index=False)
    with pytest.raises(InputError, match=r"test.csv has no column 'c'"):
        load_dataset(spec, folder=tmp_path)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,2\n", {}, "say which one holds the classes"),
        ("a,b\n1,2\n", {"label": "lable"}, "not a column of t.csv"),
        ("a,label\n1,x\n,y\n", {}, "'a' of t.csv has 1 missing"),
        ("a,label\n1,x\ninf,y\n", {}, "1 missing or infinite"),
        ("a,label\n1,x\n2,\n", {}, "lacks 1 of 2 labels"),
        ("a,label\nred,x\nblue,y\n", {}, "holds 'red', no numbers"),
        ("a,label\n1,x\n2,x\n", {}, "one class only"),
        ("a,label\n1,0.5\n2,1.5\n", {}, "not measurements"),
        ("label\nx\ny\n", {}, "no columns beside"),
        ("a,label\n", {}, "but no rows"),
        ("", {}, "is empty"),
        ("a,label\n1,x\n2,y,z\n", {}, "cannot be read as a table"),
        ("a,label,label\n1,0,0\n2,1,1\n", {}, "more than one column called 'label'"),
    ],
)
def test_tables_that_do_not_do_are_refused(tmp_path: Path, text: str, options: dict[str, Any], message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        load_dataset({"path": str(tmp_path / "t.csv"), **options})


@pytest.mark.parametrize("kind", ["Int64", "string", "boolean", "category"])
def test_labels_that_pandas_calls_na_are_missing(tmp_path: Path, kind: str) -> None:
    labels = {"string": ["a", "b", None], "boolean": [True, False, None]}.get(kind, [0, 1, None])
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "label": pd.Series(labels, dtype=kind)})
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="'label' lacks 1 of 3 labels"):
        load_dataset(str(tmp_path / "t.parquet"))


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"t.parquet is not a whole Parquet file"):
        load_dataset(tmp_path / "t.parquet")


# --- texts ---------------------------------------------------------------------------------------


def test_texts_become_tokens_of_one_length(tmp_path: Path, tokenizer: str) -> None:
    pd.DataFrame({"text": TEXTS, "mood": MOODS}).to_csv(tmp_path / "t.csv")
    spec = {"path": "t.csv", "text": "text", "label": "mood", "tokenizer": tokenizer, "length": 7}
    data = load_dataset(spec, folder=tmp_path)
    assert data.x.tolist() == [coded(text, 7) for text in TEXTS]
    assert data.x.dtype == np.int32
    assert data.padding == 0
    assert data.classes == ("down", "up")
    assert not any("cut" in note for note in data.notes)
    short = load_dataset({**spec, "length": 5}, folder=tmp_path)
    assert short.x.shape == (8, 5)
    assert any("2 of 8 texts" in note for note in short.notes)


def test_two_texts_may_belong_together(tmp_path: Path, tokenizer: str) -> None:
    pd.DataFrame({"a": TEXTS, "b": TEXTS[::-1], "label": MOODS}).to_csv(tmp_path / "t.csv")
    spec = {"path": "t.csv", "text": ["a", "b"], "tokenizer": tokenizer, "length": 12}
    data = load_dataset(spec, folder=tmp_path)
    second = [coded(t, 0)[1:] for t in TEXTS[::-1]]
    wanted = [coded(t, 0) + s for t, s in zip(TEXTS, second, strict=True)]
    assert data.x.tolist() == [ids + [0] * (12 - len(ids)) for ids in wanted]


def test_pairs_have_segments_as_berts_own_tokenizer_gives_them(tmp_path: Path) -> None:
    """From the file to the logits, beside transformers itself."""
    import torch
    import transformers

    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    special = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=special
    )
    folder = tmp_path / "bert"
    own = PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]")
    own.save_pretrained(folder)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=8, pad_token_id=0, initializer_range=0.5, **sizes)
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    model.save_pretrained(folder)
    pd.DataFrame({"a": TEXTS * 3, "b": TEXTS[::-1] * 3, "label": MOODS * 3}).to_csv(tmp_path / "t.csv")
    spec = {"path": "t.csv", "text": ["a", "b"], "tokenizer": "bert", "length": 12, "segments": True}
    data = load_dataset(spec, folder=tmp_path)
    plain = load_dataset({**spec, "segments": False}, folder=tmp_path)
    theirs = own(
        TEXTS, TEXTS[::-1], padding="max_length", max_length=12, return_tensors="pt", return_token_type_ids=True
    )
    assert (data.x[:8] % SEGMENT).tolist() == plain.x[:8].tolist() == theirs["input_ids"].tolist()
    assert (data.x[:8] // SEGMENT).tolist() == theirs["token_type_ids"].tolist()
    assert any("segments = true" in note for note in plain.notes)
    assert not any("segments" in note for note in data.notes)
    # Networks take them as transformers does, and the segments matter.
    network = make_network(Training("hf:bert"), (12,), 2, tmp_path).eval()
    ours = network(torch.from_numpy(data.x[:8]).long())
    torch.testing.assert_close(ours, model.eval()(**theirs).logits)
    assert (ours - network(torch.from_numpy(plain.x[:8]).long())).abs().max() > 1e-3
    # A study fine-tunes on them.
    study = study_recipe("variance-text", spec, model="bert", seeds=2, folder=tmp_path)
    assert study.run(workers=0, progress=False).done == 2
    with pytest.raises(InputError, match=r"data\.segments=True: tells two texts apart"):
        load_dataset({**spec, "text": "a"}, folder=tmp_path)


def test_segments_need_a_tokenizer_that_has_them(tmp_path: Path, tokenizer: str) -> None:
    pd.DataFrame({"a": TEXTS, "b": TEXTS[::-1], "label": MOODS}).to_csv(tmp_path / "t.csv")
    spec = {"path": str(tmp_path / "t.csv"), "text": ["a", "b"], "tokenizer": tokenizer, "segments": True}
    with pytest.raises(InputError, match="puts both texts of a pair into one segment"):
        load_dataset(spec)


def test_texts_without_a_tokenizer_or_without_text_are_refused(tmp_path: Path, tokenizer: str) -> None:
    pd.DataFrame({"text": ["good", None], "label": [0, 1]}).to_csv(tmp_path / "t.csv")
    spec = {"path": str(tmp_path / "t.csv"), "text": "text"}
    with pytest.raises(InputError, match=r"needs data\.tokenizer"):
        load_dataset(spec)
    with pytest.raises(InputError, match="1 cells that are no text"):
        load_dataset({**spec, "tokenizer": tokenizer})
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="cannot be loaded"):
        load_dataset({**spec, "tokenizer": str(tmp_path / "empty")})
    with pytest.raises(InputError, match="no such file or folder"):
        load_dataset({**spec, "tokenizer": str(tmp_path / "nowhere")})
    with pytest.raises(InputError, match="no column 'txt'"):
        load_dataset({**spec, "text": "txt", "tokenizer": tokenizer})


# --- Hugging Face --------------------------------------------------------------------------------


def sentences(labels: list[int]) -> hf.Dataset:
    features = hf.Features({"sentence": hf.Value("string"), "label": hf.ClassLabel(names=["neg", "pos"])})
    return hf.Dataset.from_dict({"sentence": TEXTS, "label": labels}, features=features)


def test_withheld_labels_are_passed_over_for_the_validation_part(tmp_path: Path, tokenizer: str) -> None:
    parts = {"train": [0, 1] * 4, "validation": [1, 1, 0, 0] * 2, "test": [-1] * 8}
    hf.DatasetDict({k: sentences(v) for k, v in parts.items()}).save_to_disk(str(tmp_path / "sst"))
    spec = {"hf": "sst", "text": "sentence", "tokenizer": tokenizer, "length": 7}
    data = load_dataset(spec, folder=tmp_path)
    assert data.x.tolist() == [coded(text, 7) for text in TEXTS]
    assert data.test_y.tolist() == parts["validation"]
    assert data.classes == ("neg", "pos")
    assert data.padding == 0
    by_path = load_dataset({**spec, "hf": None, "path": "sst"}, folder=tmp_path)
    assert np.array_equal(by_path.x, data.x)
    with pytest.raises(InputError, match="say which to learn from"):
        load_dataset("hf:sst", folder=tmp_path)
    with pytest.raises(InputError, match="label -1"):
        load_dataset({**spec, "test": "test"}, folder=tmp_path)
    with pytest.raises(InputError, match="there are the parts 'train'"):
        load_dataset({**spec, "test": "tset"}, folder=tmp_path)


def test_images_of_a_hub_dataset_are_decoded(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
    features = hf.Features({"image": hf.Image(), "label": hf.ClassLabel(names=["a", "b"])})
    made = hf.Dataset.from_dict({"image": [Image.fromarray(p) for p in pixels], "label": [0, 1] * 3}, features=features)
    made.save_to_disk(str(tmp_path / "pictures"))
    data = load_dataset("hf:pictures", folder=tmp_path)
    assert np.array_equal(np.moveaxis(data.x, 1, 3), pixels)
    assert load_dataset({"hf": "pictures", "examples": 2}, folder=tmp_path).x.shape[0] == 2


def test_numbers_of_a_hub_dataset_are_features(tmp_path: Path) -> None:
    columns = {"a": [0.5, 1.5, 2.5, 3.5], "b": [1, 2, 3, 4], "label": ["x", "y", "x", "y"]}
    hf.Dataset.from_dict(columns).save_to_disk(str(tmp_path / "numbers"))
    data = load_dataset("hf:numbers", folder=tmp_path)
    assert data.x.tolist() == [[0.5, 1], [1.5, 2], [2.5, 3], [3.5, 4]]
    assert data.classes == ("x", "y")
    vectors = {"v": [[1.0, 2.0], [3.0, 4.0]], "label": [0, 1]}
    hf.Dataset.from_dict(vectors).save_to_disk(str(tmp_path / "vectors"))
    assert load_dataset("hf:vectors", folder=tmp_path).x.tolist() == vectors["v"]


def test_a_hub_name_that_is_not_in_the_cache_is_refused_without_the_network(tmp_path: Path, monkeypatch: Any) -> None:
    import socket

    def refuse(*_: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(InputError, match="without the network"):
        load_dataset("hf:not-at-all/there", folder=tmp_path)
    assert not hf.config.HF_HUB_OFFLINE


def test_without_datasets_the_package_is_named(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "curvewise\[text\]"'):
        load_dataset("hf:anything")
