"""Compiled steps, and steps recorded as CUDA graphs."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Body = Callable[..., Tensor]

WARM = 3
"""Steps before a recording, in which libraries take their workspaces."""
_NUMBER = itertools.count()


def compiled(body: Body, tape: Sequence[Tensor]) -> Body:
    """Compile a function of the rows of tables, and call it once to see that it works.

    It gets a name of its own, because torch compiles a function only so many times.
    """
    code = body.__code__.replace(co_name=f"{body.__name__}_{next(_NUMBER)}")
    named = types.FunctionType(code, body.__globals__, code.co_name, None, body.__closure__)
    quick: Body = torch.compile(named, dynamic=False)
    quick(*(table[0] for table in tape))
    return quick


def replayed(body: Body, tape: Sequence[Tensor], advance: Callable[[float], None]) -> Tensor:
    """What a function gives for each row of tables on a GPU, without waiting in between.

    A step is recorded as a CUDA graph that finds its own place in the tables.
    """
    device, (count, width) = tape[0].device, tape[0].shape
    codes = torch.zeros((count, width), dtype=torch.uint8, device=device)
    cursor = torch.zeros(1, dtype=torch.int64, device=device)

    def step() -> None:
        code = body(*(table.index_select(0, cursor)[0] for table in tape))
        codes.index_copy_(0, cursor, code[None])
        cursor.add_(1)

    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            step()
            cursor.zero_()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        step()
    for _ in range(count):
        graph.replay()
        advance(width)
    return codes
