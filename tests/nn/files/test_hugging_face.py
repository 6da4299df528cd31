"""Classifiers of transformers, made on the spot and read from a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
import transformers

from curvewise.errors import InputError
from curvewise.nn.files.hugging_face import hugging_face_encoder
from curvewise.nn.networks import features_of, head_of, make_network
from curvewise.nn.training import Training


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny text encoder without a head, as a pretraining leaves it."""
    folder = tmp_path_factory.mktemp("hf") / "encoder"
    config = transformers.BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=20,
        max_position_embeddings=12,
        pad_token_id=3,
    )
    torch.manual_seed(5)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


TOKENS = torch.tensor([[7, 8, 9, 3, 3, 3], [7, 8, 9, 10, 11, 12]])


def test_text_classifiers_mask_their_padding(encoder: Path) -> None:
    torch.manual_seed(0)
    model = make_network(Training("hf:encoder"), (6,), 5, encoder.parent).eval()
    logits = model(TOKENS)
    assert logits.shape == (2, 5)
    torch.testing.assert_close(logits[:1], model(TOKENS[:1, :3]), atol=1e-6, rtol=1e-5)
    reference = transformers.BertForSequenceClassification.from_pretrained(encoder, num_labels=5)
    reference.classifier.load_state_dict(head_of(model)[1].state_dict())
    mask = torch.tensor([[1, 1, 1, 0, 0, 0], [1] * 6])
    theirs = reference.eval()(input_ids=TOKENS, attention_mask=mask).logits
    torch.testing.assert_close(logits, theirs)
    torch.testing.assert_close(head_of(model)[1](features_of(model, TOKENS)), logits)


def test_weights_come_from_the_folder_and_the_head_from_the_seed(encoder: Path) -> None:
    def made(seed: int, **options: object) -> dict[str, torch.Tensor]:
        torch.manual_seed(seed)
        training = Training(f"hf:{encoder}", options=options)
        return make_network(training, (6,), 5).state_dict()

    first, again, other = made(1), made(1), made(2)
    assert all(torch.equal(first[k], again[k]) for k in first)
    differing = {k for k in first if not torch.equal(first[k], other[k])}
    assert differing == {"network.classifier.weight"}
    scratch, scratch_other = made(1, pretrained=False), made(2, pretrained=False)
    name = "network.bert.embeddings.word_embeddings.weight"
    assert not torch.equal(scratch[name], first[name])
    assert not torch.equal(scratch[name], scratch_other[name])
    assert all(torch.equal(scratch[k], v) for k, v in made(1, pretrained=False).items())


def test_image_classifiers(tmp_path: Path) -> None:
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=20,
        image_size=8,
        patch_size=4,
        num_channels=1,
        num_labels=9,
    )
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "vit")
    x = torch.randn(2, 1, 8, 8)
    model = make_network(Training("hf:vit"), (1, 8, 8), 4, tmp_path)
    assert model(x).shape == (2, 4)
    same = make_network(Training("hf:vit"), (1, 8, 8), 9, tmp_path).eval()
    saved = transformers.ViTForImageClassification.from_pretrained(tmp_path / "vit").eval()
    torch.testing.assert_close(same(x), saved(x).logits)


def test_a_folder_without_a_model_is_refused(tmp_path: Path, encoder: Path) -> None:
    with pytest.raises(InputError, match=r"no config\.json.*nothing is downloaded"):
        make_network(Training("hf:bert-base-uncased"), (6,), 5, tmp_path)
    with pytest.raises(InputError, match="classifier of images"):
        make_network(Training("hf:encoder"), (1, 8, 8), 5, encoder.parent)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="classifier of text"):
        make_network(Training(f"hf:{tmp_path}"), (6,), 5)


@pytest.mark.parametrize("known", [True, False])
def test_code_in_a_folder_is_not_run(tmp_path: Path, encoder: Path, known: bool) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(encoder, folder)
    about = json.loads((folder / "config.json").read_text())
    kinds = ("AutoModel", "AutoModelForSequenceClassification", *(() if known else ("AutoConfig",)))
    about |= {"auto_map": dict.fromkeys(kinds, "theirs.Theirs")}
    about |= {"model_type": "bert" if known else "theirs"}
    (folder / "config.json").write_text(json.dumps(about))
    (folder / "theirs.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for make in (lambda: make_network(Training("hf:theirs"), (6,), 5, tmp_path), lambda: hugging_face_encoder(folder)):
        if known:
            make()
        else:
            with pytest.raises(InputError, match="contains custom code"):
                make()
    assert not (tmp_path / "ran").exists()


def test_kernels_of_the_hub_are_refused(tmp_path: Path, encoder: Path) -> None:
    folder = tmp_path / "theirs"
    shutil.copytree(encoder, folder)
    about = json.loads((folder / "config.json").read_text())
    about["attn_implementation"] = "someone/kernel"
    (folder / "config.json").write_text(json.dumps(about))
    said = r"asks for attn_implementation='someone/kernel', code .* set it to \"sdpa\""
    with pytest.raises(InputError, match=said):
        make_network(Training("hf:theirs"), (6,), 5, tmp_path)
    with pytest.raises(InputError, match=said):
        hugging_face_encoder(folder)


def test_loading_is_quiet_and_leaves_transformers_as_it_was(encoder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logging = transformers.utils.logging
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    make_network(Training("hf:encoder"), (6,), 5, encoder.parent)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")
