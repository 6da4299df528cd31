"""Networks that others define: timm, a Hugging Face folder."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from curvewise.errors import InputError, MissingDependencyError


def timm_model(name: str, shape: tuple[int, ...], classes: int, options: dict[str, Any]) -> nn.Module:
    """A model of timm with random weights: nothing is downloaded."""
    try:
        timm = importlib.import_module("timm")
    except ImportError as error:
        raise MissingDependencyError(f"architecture='timm:{name}' needs timm: pip install timm.") from error
    if len(shape) != 3:
        raise InputError(
            f"architecture='timm:{name}' takes images, (channels, height, width); one input has shape {shape}."
        )
    if name not in timm.list_models():
        raise InputError(f"architecture='timm:{name}' is not a model of the installed timm: see timm.list_models().")
    settings = {"pretrained": False, "num_classes": classes, "in_chans": shape[0], **options}
    model: nn.Module = timm.create_model(name, **settings)
    return model


class HuggingFace(nn.Module):
    """A classifier of transformers, from tokens or pixels to logits.

    Tokens equal to the model's padding are masked out.
    """

    def __init__(self, network: nn.Module, *, text: bool, padding: int | None) -> None:
        super().__init__()
        self.network = network
        self.text = text
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        if not self.text:
            output = self.network(pixel_values=x)
        elif self.padding is None:
            output = self.network(input_ids=x)
        else:
            output = self.network(input_ids=x, attention_mask=(x != self.padding).long())
        logits: Tensor = output.logits
        return logits


def hugging_face_model(path: Path, shape: tuple[int, ...], classes: int, options: dict[str, Any]) -> nn.Module:
    """A classifier from a local folder: for text if an input has one axis, else for images.

    The option ``pretrained = false`` takes only the configuration and draws the weights; other
    options override fields of the configuration.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingDependencyError(
            f"architecture='hf:{path}' needs transformers, which is not installed: pip install \"curvewise[text]\"."
        ) from error
    if not (path / "config.json").is_file():
        raise InputError(
            f"architecture='hf:{path}': no config.json in this folder. Give the folder that "
            "save_pretrained wrote; nothing is downloaded."
        )
    text = len(shape) == 1
    options = dict(options)
    pretrained = options.pop("pretrained", True)
    local = {"local_files_only": True, "trust_remote_code": False}
    kind: Any = (
        transformers.AutoModelForSequenceClassification if text else transformers.AutoModelForImageClassification
    )
    try:
        with _quiet(transformers):
            config = transformers.AutoConfig.from_pretrained(path, num_labels=classes, **local, **options)
            _refuse_kernels(path, config)
            if pretrained:
                model = kind.from_pretrained(path, config=config, ignore_mismatched_sizes=True, **local)
            else:
                model = kind.from_config(config, trust_remote_code=False)
    except InputError:
        raise
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InputError(
            f"architecture='hf:{path}' cannot be made into a classifier of {'text' if text else 'images'}: {error}"
        ) from error
    return HuggingFace(model, text=text, padding=getattr(config, "pad_token_id", None))


def hugging_face_encoder(path: Path) -> nn.Module:
    """What a local folder holds: a classifier with its head, anything else without one."""
    try:
        import transformers
    except ImportError as error:
        raise MissingDependencyError(
            f'{path} is a folder of Hugging Face, and transformers is not installed: pip install "curvewise[text]".'
        ) from error
    if not (path / "config.json").is_file():
        raise InputError(
            f"{path}: no config.json in this folder. Give the folder that save_pretrained wrote; nothing is downloaded."
        )
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        with _quiet(transformers):
            config = transformers.AutoConfig.from_pretrained(path, **local)
            _refuse_kernels(path, config)
            kind: Any = transformers.AutoModel
            for name in getattr(config, "architectures", None) or ():
                if name.endswith(("ForImageClassification", "ForSequenceClassification")):
                    kind = getattr(transformers, name, kind)
            model: nn.Module = kind.from_pretrained(path, config=config, **local)
    except InputError:
        raise
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        said = str(error).strip().split("\n")[0]
        raise InputError(f"{path} cannot be loaded by transformers: {said}") from error
    return model


def _refuse_kernels(path: Path, config: Any) -> None:
    """Refuse a configuration that has transformers fetch and run kernels of the hub."""
    parts = [getattr(config, name, None) for name in getattr(config, "sub_configs", None) or ()]
    for part in (config, *parts):
        for key in ("_attn_implementation", "_experts_implementation"):
            asked = getattr(part, key, None)
            if isinstance(asked, str) and "/" in asked:
                raise InputError(
                    f"{path / 'config.json'} asks for {key.strip('_')}={asked!r}, code that "
                    'transformers would fetch from the hub and run: set it to "sdpa" or "eager".'
                )


def is_hugging_face(model: nn.Module) -> bool:
    """Whether a network is of transformers."""
    return hasattr(getattr(model, "config", None), "model_type")


def call_hugging_face(model: nn.Module, x: Tensor, mask: Tensor | None) -> Any:
    """Give a network of transformers its inputs by name: whole numbers are tokens."""
    if x.is_floating_point():
        return model(pixel_values=x)
    if mask is None:
        return model(input_ids=x)
    return model(input_ids=x, attention_mask=mask.long())


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without progress bars and reports of heads drawn anew, once per run."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
