"""Read published weights from their files into the networks of networks.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networks
import numpy as np
import torch
from pool import Member
from torch import Tensor, nn

LAST = ("linear.", "_fc.")
"""Prefixes of the names of a last layer."""


def load_body(member: Member) -> nn.Module:
    """Return the network of a checkpoint with its weights and without its last layer, in evaluation mode."""
    body = networks.BODIES[member.body](**member.options)
    if member.format == "tflite":
        return networks.fill(body, tflite_weights(member.path)).eval()
    kept = [v for k, v in _torch_weights(member).items() if not k.startswith(LAST)]
    return networks.fill(body, kept).eval()


def load_network(member: Member) -> nn.Module:
    """Return the whole network of a torch checkpoint, with its last layer where the file has one."""
    last = [v for k, v in _torch_weights(member).items() if k.startswith(LAST)]
    network = nn.Sequential()
    network.add_module("body", load_body(member))
    if last:
        weight = last[0]
        network.add_module("head", networks.fill(nn.Linear(*reversed(weight.shape)), last))
    return network.eval()


def _torch_weights(member: Member) -> dict[str, Tensor]:
    found = torch.load(member.path, map_location="cpu", weights_only=True)
    found = {k.removeprefix("module."): v for k, v in found.get("state_dict", found).items()}
    return {k: v for k, v in found.items() if not k.endswith("num_batches_tracked")}


def tflite_weights(path: Path) -> list[Tensor]:
    """Return weights and biases of every convolution before the pooling, as floats, in order."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    graph, kinds = model.subgraphs[0], schema.BuiltinOperator
    found: list[Tensor] = []
    for operator in graph.operators:
        code = model.operatorCodes[operator.opcodeIndex].builtinCode
        if code in (kinds.AVERAGE_POOL_2D, kinds.MEAN):
            break
        if code in (kinds.CONV_2D, kinds.DEPTHWISE_CONV_2D):
            weight, bias = (_floats(model, graph.tensors[i]) for i in operator.inputs[1:3])
            # (out, height, width, in), but (1, height, width, out) for depthwise convolutions
            order = (0, 3, 1, 2) if code == kinds.CONV_2D else (3, 0, 1, 2)
            found += [weight.permute(order).contiguous(), bias]
    return found


def _floats(model: Any, tensor: Any) -> Tensor:
    """Return a quantised tensor as floats."""
    from ai_edge_litert.schema_py_generated import TensorType

    kind = {TensorType.UINT8: np.uint8, TensorType.INT8: np.int8, TensorType.INT32: np.int32}
    stored = np.frombuffer(bytes(model.buffers[tensor.buffer].data), kind[tensor.type])
    values = stored.reshape(tensor.shape).astype(np.float64)
    shape = [1] * values.ndim
    shape[tensor.quantization.quantizedDimension] = -1
    scale, zero = (
        np.asarray(v, dtype=np.float64).reshape(shape)
        for v in (tensor.quantization.scale, tensor.quantization.zeroPoint)
    )
    return torch.from_numpy(((values - zero) * scale).astype(np.float32))
