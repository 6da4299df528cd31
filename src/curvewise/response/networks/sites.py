"""Where in a network a perturbation is applied: a submodule's output, found by a forward pass."""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn.modules import activation
from torch.nn.utils.fusion import fuse_conv_bn_eval

from curvewise.errors import InputError
from curvewise.nn.evaluation import logits_of
from curvewise.text import brief, list_names, suggest

_NO_ACTIVATION = ("MultiheadAttention", "Softmax", "Softmax2d", "Softmin", "LogSoftmax")


@dataclass(frozen=True, eq=False)
class Site:
    """One call of one submodule.

    Attributes
    ----------
    name : str
        How it is shown.
    module : Module
        Its output is perturbed.
    call : int
        In which of its calls within a forward pass, from 0 on.
    """

    name: str
    module: nn.Module
    call: int = 0


@dataclass(frozen=True, eq=False)
class Probed:
    """What a forward pass showed.

    Attributes
    ----------
    logits : Tensor
        What came out.
    site : Site or None
        Where to perturb; None at the input.
    largest : int
        Bytes of the largest output of a submodule for one example.
    """

    logits: Tensor
    site: Site | None
    largest: int


def probe(model: nn.Module, layer: str | int | None, x: Tensor) -> Probed:
    """Call a network once, and find a layer in it.

    Raises
    ------
    InputError
        The network cannot be called, or there is no such layer, or it is called several times,
        never, or gives something else than one tensor for a batch.
    """
    named = _named(model, layer) if isinstance(layer, str) else None
    calls: list[tuple[nn.Module, Any]] = []
    largest = 0

    def seen(module: nn.Module, given: Any, output: Any) -> None:
        nonlocal largest
        if isinstance(output, Tensor):
            largest = max(largest, output.numel() * output.element_size() // len(x))
        if module is named or (named is None and is_activation(module)):
            calls.append((module, output))

    with _watched(model, seen):
        logits = logits_of(_called(model, x))
    if layer is None:
        return Probed(logits, None, largest)
    if named is not None:
        if len(calls) != 1:
            raise InputError(_called_wrongly(str(layer), len(calls)))
        number, name = 0, str(layer)
    else:
        number, name = _numbered(layer, calls, model)
    module, output = calls[number]
    _check_output(name, output, len(x))
    return Probed(logits, Site(name, module, _earlier(calls, number)), largest)


def is_activation(module: nn.Module) -> bool:
    """Whether a module is an activation function, of torch or of transformers.

    >>> is_activation(nn.ReLU()), is_activation(nn.Linear(1, 1))
    (True, False)
    """
    kind = type(module)
    home = kind.__module__
    if home == activation.__name__:
        return kind.__name__ not in _NO_ACTIVATION
    return home.endswith(".activations")


def _named(model: nn.Module, layer: str) -> nn.Module:
    named = model.named_modules(remove_duplicate=False)
    modules: dict[str, nn.Module] = {name: module for name, module in named if name}
    if layer not in modules:
        some = f" Some are {list_names(modules, 8)}." if modules else " It has no submodules."
        raise InputError(
            f"layer={brief(layer)}: the model has no submodule of that name.{suggest(layer, modules) or some}"
        )
    return modules[layer]


def _numbered(layer: str | int, calls: list[tuple[nn.Module, Any]], model: nn.Module) -> tuple[int, str]:
    """Position among the calls of activation modules, and a name."""
    if isinstance(layer, bool) or not isinstance(layer, int | np.integer) or layer < 1:
        raise InputError(
            f"layer={layer!r}: give a submodule's name, or a number from 1 (the output of the first activation module)."
        )
    if layer > len(calls):
        raise InputError(
            f"layer={layer}: a forward pass calls {len(calls)} activation modules (such as "
            "torch.nn.ReLU; torch.relu does not count). Give a submodule's name instead."
        )
    module = calls[layer - 1][0]
    name = next(name for name, other in model.named_modules() if other is module)
    earlier = _earlier(calls, layer - 1)
    several = sum(other is module for other, _ in calls) > 1
    return int(layer) - 1, f"{name} (call {earlier + 1})" if several else name


def _earlier(calls: list[tuple[nn.Module, Any]], number: int) -> int:
    """How often the same module was called before."""
    return sum(other is calls[number][0] for other, _ in calls[:number])


def _called_wrongly(layer: str, times: int) -> str:
    if times:
        return (
            f"layer={layer!r} is called {times} times in a forward pass, so that it is not clear "
            "which output to perturb: name a submodule that is called once, or give the number of "
            "an activation."
        )
    return (
        f"layer={layer!r} is never called in a forward pass: name one that is (a container whose "
        "parts are called one by one is not)."
    )


def _check_output(name: str, output: Any, examples: int) -> None:
    if not isinstance(output, Tensor):
        raise InputError(f"layer={name!r} returns {type(output).__name__}: name a submodule that returns one tensor.")
    if output.ndim < 2 or len(output) != examples or not output.is_floating_point():
        raise InputError(
            f"layer={name!r} returns {output.dtype} of shape {tuple(output.shape)} for {examples} "
            "examples: name a submodule that returns floating point, (examples, ...)."
        )


def _called(model: nn.Module, x: Tensor) -> Any:
    try:
        return model(x)
    except (RuntimeError, TypeError, ValueError, IndexError, AssertionError) as error:
        raise InputError(
            f"model cannot be called with a batch of {x.dtype} of shape {tuple(x.shape)}: {error}"
        ) from error


@contextlib.contextmanager
def _watched(model: nn.Module, seen: Callable[[nn.Module, Any, Any], None]) -> Iterator[None]:
    """Have a function called with every output of every submodule."""
    handles = []
    try:
        for module in model.modules():
            with contextlib.suppress(RuntimeError):  # what was scripted may take no hooks
                handles.append(module.register_forward_hook(seen))
        yield
    finally:
        for handle in handles:
            handle.remove()


# A network in two parts, before and after the place where it is perturbed.
#
# What can be traced (torch.fx) is cut there, so that the first part need not run again for every
# magnitude; convolutions of the parts absorb the batch norm that follows them, and have weights
# with the channels innermost. What cannot be traced runs as it is, and a layer is replaced by a hook.


@dataclass(frozen=True, eq=False)
class Parts:
    """A network to be called in two steps.

    Attributes
    ----------
    before : callable or None
        From inputs to what is perturbed, first, and whatever else the second part needs. None
        where the input itself is perturbed.
    after : callable
        From these to the network's output.
    path : {"traced", "as is", "cut", "hook"}
        How it was made: the whole network traced or not; cut at the layer or replaced by a hook.
    whole : callable, optional
        The network itself, where the parts give something else for unperturbed values: one that
        changes in place what a layer gave may change its other values with it.
    """

    before: Callable[[Tensor], tuple[Tensor, ...]] | None
    after: Callable[..., Any]
    path: str
    whole: nn.Module | None = None

    @property
    def pure(self) -> bool:
        """Whether several threads may call it at once."""
        return self.path in ("traced", "cut")


def split(model: nn.Module, probed: Probed, x: Tensor) -> Parts:
    """Split a network in evaluation mode where it is perturbed; x are inputs to check it with."""
    site = probed.site
    fast = _traced(model, site)
    if fast is not None and _agrees(fast, probed.logits, x, {0, len(x) // 2}):
        return fast
    if site is None:
        return Parts(None, model, "as is")
    hooked = _Hooked(model, site)
    parts = Parts(hooked.before, hooked.after, "hook")
    return parts if _agrees(parts, probed.logits, x, {0}) else replace(parts, whole=model)


class _Reached(Exception):
    """The layer was reached; the rest of the forward pass is not needed."""


class _Hooked:
    """A layer whose output is read, or replaced, by a hook for the time of a call."""

    def __init__(self, model: nn.Module, site: Site) -> None:
        self.model, self.site = model, site

    def before(self, x: Tensor) -> tuple[Tensor, ...]:
        found: list[Tensor] = []
        kept = x.clone()  # layers before may change it in place

        def stop(output: Tensor) -> Tensor:
            found.append(output.clone())
            raise _Reached

        with contextlib.suppress(_Reached):
            self._with(stop, x)
        return found[0], kept

    def after(self, features: Tensor, x: Tensor) -> Any:
        return self._with(lambda output: features.to(output.dtype), x)

    def _with(self, change: Callable[[Tensor], Tensor], x: Tensor) -> Any:
        calls = 0

        def hook(module: nn.Module, given: Any, output: Tensor) -> Tensor | None:
            nonlocal calls
            calls += 1
            return change(output) if calls == self.site.call + 1 else None

        handle = self.site.module.register_forward_hook(hook)
        try:
            return self.model(x)
        finally:
            handle.remove()


class _Tracer(fx.Tracer):
    """Leaves the layer whole, whatever is in it."""

    def __init__(self, whole: nn.Module | None) -> None:
        super().__init__()
        self.whole = whole

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return m is self.whole or super().is_leaf_module(m, module_qualified_name)


def _traced(model: nn.Module, site: Site | None) -> Parts | None:
    """The parts of a traced network; None where it cannot be traced, or has hooks to be run."""
    if any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()):
        return None
    # Networks fail to be traced in every way there is, and only then run as they are.
    with contextlib.suppress(Exception), _untouched(model), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracer = _Tracer(None if site is None else site.module)
        graph = tracer.trace(model, concrete_args=_defaults(model))
        if site is None:
            return Parts(None, _quick(fx.GraphModule(model, graph)), "traced")
        first, second = _cut(model, graph, site)
        return Parts(first, second, "cut")
    return None


@contextlib.contextmanager
def _untouched(model: nn.Module) -> Iterator[None]:
    """Undo what a traced forward pass leaves in the attributes of modules."""
    kept = [(module, dict(module.__dict__)) for module in model.modules()]
    try:
        yield
    finally:
        for module, attributes in kept:
            module.__dict__.clear()
            module.__dict__.update(attributes)


def _defaults(model: nn.Module) -> dict[str, Any]:
    """Values of the arguments after the first, which are not given."""
    parameters = list(inspect.signature(model.forward).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _cut(model: nn.Module, graph: fx.Graph, site: Site) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Put what depends on the layer's output into a second graph, the rest into the first."""
    modules = dict(model.named_modules(remove_duplicate=False))
    calls = [n for n in graph.nodes if n.op == "call_module" and modules[n.target] is site.module]
    at = calls[site.call]
    later = _dependants(at)
    first, second = fx.Graph(), fx.Graph()
    here: dict[fx.Node, fx.Node] = {}
    there: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        if node.op == "output" or node in later:
            continue
        here[node] = first.node_copy(node, lambda n: here[n])
    needed = [at] + [n for n in here if n is not at and n.op != "get_attr" and any(u in later for u in n.users)]
    first.output(tuple(here[n] for n in needed))
    for i, node in enumerate(needed):
        there[node] = second.placeholder(f"value_{i}")
    for node in graph.nodes:
        if node in later or (node.op == "get_attr" and any(u in later for u in node.users)):
            there[node] = second.node_copy(node, lambda n: there[n])
    return _quick(fx.GraphModule(model, first)), _quick(fx.GraphModule(model, second))


def _dependants(node: fx.Node) -> set[fx.Node]:
    """All nodes that need the value of a node, the graph's output among them."""
    found: set[fx.Node] = {n for n in node.graph.nodes if n.op == "output"}
    waiting = [node]
    while waiting:
        for user in waiting.pop().users:
            if user not in found:
                found.add(user)
                waiting.append(user)
    return found


def _quick(part: fx.GraphModule) -> fx.GraphModule:
    """Absorb batch norm, lay weights out for channels-last; modules are copied, not changed."""
    modules = dict(part.named_modules(remove_duplicate=False))
    calls = [str(n.target) for n in part.graph.nodes if n.op == "call_module"]
    for node in list(part.graph.nodes):
        if node.op == "call_method" and node.target == "view":
            node.target = "reshape"  # which works for every layout
        if _is_fusible(node, modules, calls):
            before = node.args[0]
            norm = modules[node.target]
            modules[before.target] = fuse_conv_bn_eval(modules[before.target], norm)
            node.replace_all_uses_with(before)
            part.graph.erase_node(node)
    for name, module in modules.items():
        if isinstance(module, nn.Conv2d) and name in calls:
            laid: Any = copy.deepcopy(module)
            above, _, last = name.rpartition(".")
            setattr(part.get_submodule(above), last, laid.to(memory_format=torch.channels_last))
    part.recompile()
    return part


def _is_fusible(node: fx.Node, modules: dict[str, nn.Module], calls: Sequence[str]) -> bool:
    """Whether a node is batch norm of what a convolution gives to nothing else."""
    if node.op != "call_module" or not isinstance(modules[str(node.target)], nn.BatchNorm2d):
        return False
    before, norm = node.args[0], modules[str(node.target)]
    return (
        isinstance(before, fx.Node)
        and before.op == "call_module"
        and type(modules[str(before.target)]) is nn.Conv2d
        and len(before.users) == 1
        and calls.count(str(before.target)) == 1
        and not norm.training
        and norm.running_mean is not None
    )


def _agrees(parts: Parts, wanted: Tensor, x: Tensor, starts: set[int]) -> bool:
    """Whether the parts give what the network gives, up to rounding, from these examples on."""
    wanted = wanted.float()
    slack = 1e-4 if x.device.type == "cpu" else 1e-2  # a GPU may round factors to 10 bits
    slack *= float(wanted.abs().nan_to_num(0, 0, 0).max())
    with contextlib.suppress(Exception):  # and then they are not used
        for first in starts:
            given = x[first:].clone()
            values = (given,) if parts.before is None else parts.before(given)
            # Values are stored, and put together in other batches than they came in.
            if not all(isinstance(v, Tensor) and len(v) == len(x) - first for v in values):
                return False
            # They are copied, too: those that share their memory do so no longer.
            found = logits_of(parts.after(*(v.clone() for v in values))).float()
            if not torch.allclose(found, wanted[first:], 1e-3, slack, equal_nan=True):
                return False
        return True
    return False
