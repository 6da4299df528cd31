"""The place in a network where a perturbation is applied, and the network split in two there.

What can be traced (torch.fx) is cut at the layer, so that the first half need not run again for every magnitude;
convolutions of the halves absorb the batch norm that follows them, and have weights with the channels innermost. What
cannot be traced runs as it is, and the output of the layer is replaced by a hook.
"""

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

from curvewise.errors import InputError, arg, list_names, suggest
from curvewise.nn.data import channels_last, is_channels_last
from curvewise.nn.networks import logits_of

_NO_ACTIVATION = ("MultiheadAttention", "Softmax", "Softmax2d", "Softmin", "LogSoftmax")


@dataclass(frozen=True, eq=False)
class Site:
    """One call of one submodule.

    Attributes
    ----------
    name : str
        Its name in results.
    module : Module
        Its output is perturbed.
    call : int
        In which of its calls within a forward pass, from 0 on.
    """

    name: str
    module: nn.Module
    call: int = 0


@dataclass(frozen=True, eq=False)
class Probe:
    """Observations of one forward pass.

    Attributes
    ----------
    logits : Tensor
        Its output.
    site : Site or None
        Where to perturb; None at the input.
    largest : int
        Bytes of the largest output of a submodule for one example.
    """

    logits: Tensor
    site: Site | None
    largest: int


def probe(model: nn.Module, layer: str | int | None, x: Tensor) -> Probe:
    """Call a network once, and find a layer in it.

    Raises
    ------
    InputError
        If the network cannot be called, or there is no such layer, or it is called several times, never, or returns
        something else than one tensor for a batch.
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

    handles = []
    try:
        for module in model.modules():
            with contextlib.suppress(RuntimeError):  # what was scripted may take no hooks
                handles.append(module.register_forward_hook(seen))
        try:
            logits = logits_of(model(x))
        except (RuntimeError, TypeError, ValueError, IndexError, AssertionError) as error:
            if isinstance(error, InputError):
                raise
            if is_channels_last(x.shape):
                raise InputError(channels_last(x.shape), argument="data") from error
            raise InputError(
                f"cannot be called with a batch of {x.dtype} of shape {tuple(x.shape)}: {error}", argument="model"
            ) from error
    finally:
        for handle in handles:
            handle.remove()
    if layer is None:
        return Probe(logits, None, largest)
    number, name = (0, str(layer)) if named is not None else _numbered(layer, calls, model)
    if named is not None and len(calls) != 1:
        often = (
            f"{len(calls)} times in a forward pass, so that it is not clear which output to perturb: name a submodule"
        )
        problem = (
            f"is called {often} that is called once, or give the number of an activation."
            if calls
            else "is never called in a forward pass: name one that is (a container whose parts are run singly is not)."
        )
        raise InputError(f"{arg('layer', layer)} {problem}")
    module, output = calls[number]
    if not isinstance(output, Tensor):
        raise InputError(f"{arg('layer', name)} returns {type(output).__name__}: name one that returns one tensor.")
    if output.ndim < 2 or len(output) != len(x) or not output.is_floating_point():
        raise InputError(
            f"{arg('layer', name)} returns {output.dtype} of shape {tuple(output.shape)} for {len(x)} examples: name a "
            "submodule that returns floating point, (examples, ...)."
        )
    return Probe(logits, Site(name, module, _earlier(calls, number)), largest)


def _named(model: nn.Module, layer: str) -> nn.Module:
    named = model.named_modules(remove_duplicate=False)
    modules: dict[str, nn.Module] = {name: module for name, module in named if name}
    if layer not in modules:
        some = f" Some are {list_names(modules, 8)}." if modules else " It has no submodules."
        problem = f"the model has no submodule of that name.{suggest(layer, modules) or some}"
        raise InputError(problem, argument="layer", value=layer)
    return modules[layer]


def _numbered(layer: str | int | None, calls: list[tuple[nn.Module, Any]], model: nn.Module) -> tuple[int, str]:
    """Return the position among the calls of activation modules, and a name."""
    if isinstance(layer, bool) or not isinstance(layer, int | np.integer) or layer < 1:
        raise InputError("give a submodule's name, or 1 for the first activation.", argument="layer", value=layer)
    if layer > len(calls):
        raise InputError(
            f"a forward pass calls {len(calls)} activation modules (such as torch.nn.ReLU; torch.relu does not count). "
            "Give a submodule's name instead.",
            argument="layer",
            value=layer,
        )
    module = calls[layer - 1][0]
    name = next(name for name, other in model.named_modules() if other is module)
    several = sum(other is module for other, _ in calls) > 1
    return int(layer) - 1, f"{name} (call {_earlier(calls, layer - 1) + 1})" if several else name


def _earlier(calls: list[tuple[nn.Module, Any]], number: int) -> int:
    """Count earlier calls of the same module."""
    return sum(other is calls[number][0] for other, _ in calls[:number])


def is_activation(module: nn.Module) -> bool:
    """Return True for an activation function, of torch or of transformers.

    >>> is_activation(nn.ReLU()), is_activation(nn.Linear(1, 1))
    (True, False)
    """
    kind = type(module)
    home = kind.__module__
    if home == activation.__name__:
        return kind.__name__ not in _NO_ACTIVATION
    return home.endswith(".activations")


@contextlib.contextmanager
def caught(site: Site, catch: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """Call a function with the output of a layer; its return value, if any, replaces the output."""
    calls = 0

    def hook(_: nn.Module, given: Any, out: Tensor) -> Tensor | None:
        nonlocal calls
        calls += 1
        return catch(out) if calls == site.call + 1 else None

    handle = site.module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@dataclass(frozen=True, eq=False)
class NetworkHalves:
    """A network to be called in two steps.

    Attributes
    ----------
    before : callable or None
        From inputs to what is perturbed, first, and whatever else the second part needs. None
        where the input itself is perturbed.
    after : callable
        From these to the network's output.
    path : {"traced", "as is", "cut", "hook"}
        The whole network traced or not; cut at the layer or its output replaced by a hook.
    whole : callable, optional
        The network itself, where the halves give something else for unperturbed values: one that changes in place what
        a layer gave may change its other values with it.
    """

    before: Callable[[Tensor], tuple[Tensor, ...]] | None
    after: Callable[..., Any]
    path: str
    whole: nn.Module | None = None

    @property
    def pure(self) -> bool:
        """Several threads may call it at once."""
        return self.path in ("traced", "cut")


def split(model: nn.Module, seen: Probe, x: Tensor) -> NetworkHalves:
    """Split a network in evaluation mode where it is perturbed; x are inputs to check it with."""
    site = seen.site
    fast = trace_halves(model, site)
    if fast is not None and _agrees(fast, seen.logits, x, {0, len(x) // 2}):
        return fast
    if site is None:
        return NetworkHalves(None, model, "as is")
    hooked = _Hooked(model, site)
    halves = NetworkHalves(hooked.before, hooked.after, "hook")
    return halves if _agrees(halves, seen.logits, x, {0}) else replace(halves, whole=model)


class _Reached(Exception):
    """Raised at the layer: the rest of the forward pass is not needed."""


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

        with contextlib.suppress(_Reached), caught(self.site, stop):
            self.model(x)
        return found[0], kept

    def after(self, features: Tensor, x: Tensor) -> Any:
        with caught(self.site, lambda output: features.to(output.dtype)):
            return self.model(x)


class _Tracer(fx.Tracer):
    """Leaves the layer whole, whatever is in it."""

    def __init__(self, whole: nn.Module | None) -> None:
        super().__init__()
        self.whole = whole

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return m is self.whole or super().is_leaf_module(m, module_qualified_name)


def trace_halves(model: nn.Module, site: Site | None) -> NetworkHalves | None:
    """Trace a network; None where it cannot be traced, or has hooks to be run."""
    if any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()):
        return None
    # Networks fail to be traced in every way there is, and only then run as they are.
    with contextlib.suppress(Exception), _untouched(model), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracer = _Tracer(None if site is None else site.module)
        graph = tracer.trace(model, concrete_args=_defaults(model))
        if site is None:
            return NetworkHalves(None, _quick(fx.GraphModule(model, graph)), "traced")
        first, second = _cut(model, graph, site)
        return NetworkHalves(first, second, "cut")
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
    """Return the defaults of the arguments after the first, which are not given."""
    parameters = list(inspect.signature(model.forward).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.default is not p.empty}


def _cut(model: nn.Module, graph: fx.Graph, site: Site) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Move the nodes that depend on the layer's output into a second graph, the rest into the first."""
    modules = dict(model.named_modules(remove_duplicate=False))
    calls = [n for n in graph.nodes if n.op == "call_module" and modules[n.target] is site.module]
    at = calls[site.call]
    # What does not depend on the layer, a shortcut past it say, is computed once in the first half and handed over.
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
    """Return all nodes that need the value of a node, the graph's output among them."""
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
            # Each convolution is called once and feeds only this norm, so that its weights may change.
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
    """Return True for batch norm of the output of a convolution that feeds nothing else."""
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


def _agrees(halves: NetworkHalves, wanted: Tensor, x: Tensor, starts: set[int]) -> bool:
    """Compare the outputs of the halves with the network's, up to rounding, from these examples on."""
    wanted = wanted.float()
    slack = 1e-4 if x.device.type == "cpu" else 1e-2  # a GPU may round factors to 10 bits
    slack *= float(wanted.abs().nan_to_num(0, 0, 0).max())
    with contextlib.suppress(Exception):  # and then they are not used
        for first in starts:
            given = x[first:].clone()
            values = (given,) if halves.before is None else halves.before(given)
            # Values are stored, and put together in other batches than they came in.
            if not all(isinstance(v, Tensor) and len(v) == len(x) - first for v in values):
                return False
            # They are copied, too: those that share their memory do so no longer.
            found = logits_of(halves.after(*(v.clone() for v in values))).float()
            if not torch.allclose(found, wanted[first:], 1e-3, slack, equal_nan=True):
                return False
        return True
    return False
