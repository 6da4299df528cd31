"""How the execution of a study ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """How the execution of a study ended.

    Attributes
    ----------
    planned : int
        Runs of the study, or of its shard.
    there : int
        Runs that were there before.
    made : int
        Runs made now, failed ones included.
    by_others : int
        Runs that other processes made meanwhile.
    failed : dict of str to str
        Runs that failed, now or before, and why.
    interrupted : tuple of str
        Runs that a process that is gone was making; they are made again where the study needs them.
    redone : tuple of str
        Runs that were there and were made again: failed, damaged or outdated ones.
    seconds : float
        How long it took.
    notes : tuple of str
        What a reader should know.
    lost : tuple of str
        Runs whose worker died; they were tried again.
    """

    planned: int
    there: int
    made: int
    by_others: int
    failed: dict[str, str]
    interrupted: tuple[str, ...]
    redone: tuple[str, ...]
    seconds: float
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def summary(self) -> str:
        """Say in a sentence or two how it ended."""
        parts = [f"{self.made} of {self.planned} runs made"]
        again = len({*self.redone, *self.interrupted})
        parts += [f"{again} of them interrupted, failed or damaged before"] if again else []
        parts += [f"{len(self.lost)} redone after a worker died"] if self.lost else []
        parts += [f"{self.there} were there"] if self.there else []
        parts += [f"{self.by_others} made by other processes"] if self.by_others else []
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        text = ", ".join(parts) + f", in {self.seconds:.0f} s."
        if self.failed:
            lines = next(iter(self.failed.values())).strip().splitlines() or ["no reason given"]
            text += f" The first failure: {lines[-1][:300]}"
        return text
