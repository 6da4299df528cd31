"""A hash of a network: its weights, its settings and its code, so that no other one has it."""

from __future__ import annotations

import enum
import functools
import hashlib
import io
import sys
import types
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), range, slice)
_PLAIN_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
_TENSORS = (Tensor, nn.Parameter, nn.Buffer)
_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
_UNUSED = (
    "training",
    "_non_persistent_buffers_set",
    "_is_full_backward_hook",
    "_compiled_call_impl",
)
"""What a network keeps that its answers in evaluation mode do not depend on."""
_DOCUMENTS = ("__annotations__", "__dict__", "__doc__", "__firstlineno__", "__module__")
"""What a class says about itself that does nothing, or differs where the same code is read."""


class _UntoldError(Exception):
    """Something whose content cannot be told."""


def network_digest(model: nn.Module) -> str | None:
    """A hash of everything that a network's answers depend on; None where that cannot be told.

    Weights, buffers, all attributes of each submodule (a number of heads, an epsilon), hooks, and
    the code of their classes with the functions that it names. Of code that is installed, the
    version of its package.

    Parameters
    ----------
    model : nn.Module
        The network, as it is.

    Examples
    --------
    >>> a, b = nn.Softplus(beta=1.0), nn.Softplus(beta=1.0)
    >>> network_digest(a) == network_digest(b)
    True
    >>> network_digest(a) == network_digest(nn.Softplus(beta=2.0))
    False
    """
    found = _Digest()
    try:
        found.add(model)
    except (_UntoldError, RecursionError):
        return None
    return found.hexdigest()


class _Digest:
    """Adds up what things consist of; each thing once."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._seen: dict[int, tuple[int, Any]] = {}  # by id; kept, so that no id is used again

    def hexdigest(self) -> str:
        """The hash of all that was added."""
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        """One thing with all of its parts."""
        if isinstance(value, enum.Enum):
            self._say(f"{type(value).__qualname__} {value.name}")
        elif isinstance(value, _PLAIN_OF_TORCH) or type(value) in _PLAIN:
            self._say(f"{type(value).__name__} {value!r}")
        elif isinstance(value, np.ndarray | np.generic):
            self._array(np.asarray(value))
        elif isinstance(value, dict):
            self._all("dict", [part for pair in value.items() for part in pair])
        elif isinstance(value, tuple | list):
            self._all(type(value).__name__, value)
        elif isinstance(value, set | frozenset):  # in no order of their own
            self._all("set", sorted(_alone(part) for part in value))
        elif id(value) in self._seen:
            self._say(f"again {self._seen[id(value)][0]}")
        else:
            self._seen[id(value)] = len(self._seen), value
            self._object(value)

    def _say(self, text: str) -> None:
        content = text.encode("utf-8", "surrogatepass")
        self._hash.update(len(content).to_bytes(8, "little") + content)

    def _all(self, what: str, parts: Iterable[Any]) -> None:
        parts = list(parts)
        self._say(f"{what} {len(parts)}")
        for part in parts:
            self.add(part)

    def _array(self, values: np.ndarray[Any, Any]) -> None:
        if values.dtype.hasobject:
            raise _UntoldError
        self._say(f"array {values.dtype.str} {values.shape}")
        self._hash.update(np.ascontiguousarray(values).tobytes())

    def _object(self, value: Any) -> None:
        if isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType):
            self._all("method", (value.__func__, value.__self__))
        elif isinstance(value, types.BuiltinFunctionType | types.MethodDescriptorType):
            self._say(f"builtin {value.__qualname__} {torch.__version__}")
        elif isinstance(value, types.ModuleType):
            self._say(f"module {value.__name__}")
        elif isinstance(value, functools.partial):
            self._all("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, nn.Module):
            self._module(value)
        elif hasattr(value, "__dict__") and not hasattr(type(value), "__slots__"):
            self._all("object", (type(value), vars(value)))
        else:  # such as weights packed for a processor
            raise _UntoldError

    def _tensor(self, value: Tensor) -> None:
        if type(value) not in _TENSORS or value.layout != torch.strided or value.is_quantized:
            raise _UntoldError
        self._say(f"tensor {tuple(value.shape)} {value.dtype}")
        flat = value.detach().cpu().contiguous().reshape(-1)
        self._hash.update(flat.view(torch.uint8).numpy().tobytes() if len(flat) else b"")

    def _module(self, value: nn.Module) -> None:
        inner = getattr(value, "_orig_mod", None)
        if isinstance(value, torch.jit.ScriptModule):
            content = io.BytesIO()
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
                torch.jit.save(value, content)
            self._all("script", [content.getvalue()])
        elif isinstance(value, torch.fx.GraphModule):
            parts = (value._parameters, value._buffers, value._modules)
            self._all("graph", (value.code, *parts))
        elif isinstance(inner, nn.Module):  # compiled
            self.add(inner)
        else:
            self.add(type(value))
            for name in _HOOKS:
                self._all(name, vars(value)[name].values())  # their keys are only counted up
            kept = {n: v for n, v in vars(value).items() if n not in _UNUSED and "_hooks" not in n}
            self.add(kept)

    def _class(self, value: type) -> None:
        """Its code; where it is installed, its name and version."""
        known = _installed(value.__module__)
        self._say(f"class {known or ''} {value.__qualname__}")
        if known is None:
            self.add(value.__bases__)
            own = [
                (n, _unwrapped(v)) for n, v in sorted(vars(value).items()) if n not in _DOCUMENTS
            ]
            for name, part in own:
                self._say(name)
                self._try(part)

    def _function(self, value: types.FunctionType) -> None:
        known = _installed(value.__module__ or "")
        self._say(f"function {known or ''} {value.__qualname__}")
        if known is None:
            self._code(value.__code__, value.__globals__)
        cells = [_content(cell) for cell in value.__closure__ or ()]
        self.add([value.__defaults__, value.__kwdefaults__, cells])

    def _code(self, code: types.CodeType, known: dict[str, Any]) -> None:
        self._all("code", (code.co_code, code.co_names, code.co_varnames))
        for part in code.co_consts:
            if isinstance(part, types.CodeType):
                self._code(part, known)
            else:
                self.add(part)
        for found in _named(code, known):
            self._try(found)

    def _try(self, value: Any) -> None:
        """Something beside the network itself: left out where it cannot be told, as a lock."""
        before = self._hash.copy()
        try:
            self.add(value)
        except _UntoldError:
            self._hash = before


def _named(code: types.CodeType, known: dict[str, Any]) -> list[Any]:
    """What code may mean by the names in it: things of its module, and of others of one's own."""
    found = [known[name] for name in code.co_names if name in known]
    modules = [m for m in found if isinstance(m, types.ModuleType)]
    for module in modules:
        if _installed(module.__name__) is None:
            found += [vars(module)[name] for name in code.co_names if name in vars(module)]
    return [value for value in found if not isinstance(value, types.ModuleType)]


def _alone(value: Any) -> str:
    found = _Digest()
    found.add(value)
    return found.hexdigest()


def _unwrapped(value: Any) -> Any:
    """The function inside of a static method, class method or property."""
    return value.fget if isinstance(value, property) else getattr(value, "__func__", value)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


@functools.lru_cache(maxsize=1024)
def _installed(module: str) -> str | None:
    """Package and version of code that changes with its version only; None for one's own."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "builtins":
        return f"{module} {sys.version}"
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not {"site-packages", "dist-packages"} & {*Path(file).parts}:
        return None
    return f"{module} {getattr(sys.modules.get(top), '__version__', '')}"
