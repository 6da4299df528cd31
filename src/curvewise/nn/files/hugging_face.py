"""Networks of transformers out of a local folder, in the format of Hugging Face."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from curvewise.errors import InputError, arg, importing
from curvewise.nn.files.datasets import SEGMENT


class HuggingFace(nn.Module):
    """A classifier of transformers, from tokens or pixels to logits.

    Tokens equal to the model's padding are masked out. Tokens of the second text of a pair are larger by
    :data:`~curvewise.nn.files.datasets.SEGMENT`, where the data has segments.
    """

    def __init__(self, network: nn.Module, *, text: bool, padding: int | None) -> None:
        super().__init__()
        self.network = network
        self.text = text
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        if self.text:
            output = call_hugging_face(self.network, x, None if self.padding is None else x != self.padding)
        else:
            output = self.network(pixel_values=x)
        logits: Tensor = output.logits
        return logits


def hugging_face_model(path: Path, shape: tuple[int, ...], classes: int, options: dict[str, Any]) -> nn.Module:
    """Make a classifier from a local folder: for text if an input has one axis, else for images.

    The option ``pretrained = false`` takes only the configuration and draws the weights; other options override
    fields of the configuration.
    """
    asked = arg("architecture", f"hf:{path}")
    transformers = _transformers(path, f"{asked} needs transformers", f"{asked}:")
    text = len(shape) == 1
    options = dict(options)
    pretrained = options.pop("pretrained", True)
    kind = transformers.AutoModelForSequenceClassification if text else transformers.AutoModelForImageClassification

    def make() -> tuple[Any, Any]:
        config = _config(transformers, path, num_labels=classes, **options)
        if pretrained:
            return config, kind.from_pretrained(path, config=config, ignore_mismatched_sizes=True, **_LOCAL)
        return config, kind.from_config(config, trust_remote_code=False)

    failed = f"{asked} cannot be made into a classifier of {'text' if text else 'images'}"
    config, model = _loaded(transformers, make, failed)
    return HuggingFace(model, text=text, padding=getattr(config, "pad_token_id", None))


def hugging_face_encoder(path: Path) -> nn.Module:
    """Load the network of a local folder: a classifier with its head, anything else without one."""
    transformers = _transformers(path, f"{path} is a folder of Hugging Face, and needs transformers", f"{path}:")

    def make() -> Any:
        config = _config(transformers, path)
        kind: Any = transformers.AutoModel
        for name in getattr(config, "architectures", None) or ():
            if name.endswith(("ForImageClassification", "ForSequenceClassification")):
                kind = getattr(transformers, name, kind)
        return kind.from_pretrained(path, config=config, **_LOCAL)

    model: nn.Module = _loaded(transformers, make, f"{path} cannot be loaded by transformers")
    return model


# Nothing is downloaded, and no code that a folder brings along is run.
_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def _transformers(path: Path, lacking: str, asked: str) -> Any:
    """Import transformers, and check that a folder holds a model."""
    with importing(lacking, "text"):
        import transformers
    if not (path / "config.json").is_file():
        raise InputError(
            f"{asked} no config.json in this folder. Give the folder that save_pretrained wrote; nothing is downloaded."
        )
    return transformers


def _loaded(transformers: Any, make: Callable[[], Any], failed: str) -> Any:
    """Make a model without progress bars and reports of heads drawn anew, once per run."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        return make()
    except InputError:
        raise
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{failed}: {reason}") from error
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _config(transformers: Any, path: Path, **fields: Any) -> Any:
    """Read a configuration; refuse one that has transformers fetch and run kernels of the hub."""
    config = transformers.AutoConfig.from_pretrained(path, **_LOCAL, **fields)
    parts = [getattr(config, name, None) for name in getattr(config, "sub_configs", None) or ()]
    for part in (config, *parts):
        for key in ("_attn_implementation", "_experts_implementation"):
            asked = getattr(part, key, None)
            if isinstance(asked, str) and "/" in asked:
                raise InputError(
                    f"{path / 'config.json'} asks for {key.strip('_')}={asked!r}, code that "
                    'transformers would fetch from the hub and run: set it to "sdpa" or "eager".'
                )
    return config


def is_hugging_face(model: nn.Module) -> bool:
    """Tell whether a network is of transformers."""
    return hasattr(getattr(model, "config", None), "model_type")


def call_hugging_face(model: nn.Module, x: Tensor, mask: Tensor | None) -> Any:
    """Give a network of transformers its inputs by name: whole numbers are tokens, and perhaps their segments."""
    if x.is_floating_point():
        return model(pixel_values=x)
    inputs = {"input_ids": x % SEGMENT}
    if (getattr(model.config, "type_vocab_size", None) or 0) > 1:  # BERT and its like tell two texts apart
        inputs["token_type_ids"] = x // SEGMENT
    if mask is not None:
        inputs["attention_mask"] = mask.long()
    return model(**inputs)
