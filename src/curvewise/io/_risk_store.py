"""Risks out of a store of runs: a row for each run, those that failed among them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curvewise.errors import InputError
from curvewise.io._records import HASHES
from curvewise.io._stored import is_search, read_records
from curvewise.io._table import Table, shown, table_from_records


def risk_table(folder: Path) -> Table:
    """Coordinates, status and metrics of each run of a store; seeds joined into one."""
    runs = [record for record in read_records(folder).values() if not is_search(record)]
    if not runs:
        raise InputError(f"{shown(folder)} holds no runs.")
    return table_from_records([_row(record) for record in runs], shown(folder), folder.name)


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    plain = {
        k: v
        for k, v in record["coordinates"].items()
        if k not in HASHES and not isinstance(v, Mapping | list)
    }
    seeds = {k: v for k, v in plain.items() if k.endswith("_seed")}
    if seeds and "seed" not in plain:
        plain = {k: v for k, v in plain.items() if k not in seeds}
        plain["seed"] = "/".join(str(v) for v in dict.fromkeys(seeds.values()))
    metrics = {k: v for k, v in record["metrics"].items() if k not in plain}
    return {**plain, "status": record["status"], **metrics}
