"""A share of a study's runs, for one of several processes that know nothing of each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from curvewise.errors import InputError

if TYPE_CHECKING:
    from curvewise.study.jobs import Job


def parse_shard(shard: str) -> tuple[int, int]:
    """Read ``"3/16"``: the third of sixteen.

    Examples
    --------
    >>> parse_shard("3/16")
    (3, 16)
    """
    found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", str(shard))
    if found:
        which, of = map(int, found.groups())
        if 1 <= which <= of:
            return which, of
    raise InputError(
        f"shard={shard!r}: write which and of how many, from '1/16' to '16/16' for sixteen."
    )


def shard_of(jobs: Sequence[Job], shard: str | None) -> list[Job]:
    """Runs of one shard, dealt by their ids: the shards are disjoint and together hold every run.

    Which shard a run belongs to does not change when sizes, seeds or learners are added. Searches
    for a learning rate that runs of a shard need belong to all of these shards: whoever comes first
    makes them, and the others wait.

    Parameters
    ----------
    jobs : sequence of Job
        All runs.
    shard : str, optional
        Such as ``"3/16"``; None for all.
    """
    if shard is None:
        return list(jobs)
    which, of = parse_shard(shard)
    mine = [j for j in jobs if not j.is_search and int(j.id, 16) % of == which - 1]
    needed = {j.needs for j in mine}
    return [j for j in jobs if j.is_search and j.id in needed] + mine
