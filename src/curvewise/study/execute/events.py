"""What happened to a run, told by whoever makes it to whoever watches."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field

DONE, FAILED, THERE, HELD, MEMORY = "done", "failed", "there", "held", "memory"


@dataclass(frozen=True)
class Event:
    """What happened to one run.

    Attributes
    ----------
    kind : {"done", "failed", "there", "held", "memory"}
        Made; made and failed; found made already; another process is making it; there was too
        little memory, and it is tried again with fewer networks at once.
    id : str
        Which run.
    text : str
        Why it failed, or what a reader should know.
    seconds : float
        How long it took.
    where : str
        Machine and process.
    """

    kind: str
    id: str
    text: str = ""
    seconds: float = 0.0
    where: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")

    @property
    def is_final(self) -> bool:
        """Whether nothing more will be heard of the run from who told this."""
        return self.kind != MEMORY
