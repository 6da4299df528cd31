"""Write docs/papers.md, "What of each paper is here", from the tables in docs/papers.

    python tools/papers.py            write the page
    python tools/papers.py --check    end with 1 if the page is not what the tables say

A table has the paper's title, its ``item`` rows (a section, figure or table of the paper; the call that gives it, or
why there is none; the test that shows it) and its ``setting`` rows (a constant of the paper's protocol, and the key
of the recipe that holds it). ``tests/docs/test_papers.py`` holds the same tables against the recipes.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
ORDER = ("learning", "variance", "response", "transfer", "ranking")

HEAD = """\
# What of each paper is here

curvewise began as five papers. This page lists their sections with experiments, their figures and their tables: the
call that gives each, or the reason why there is none. Every row names the test that shows it. Below each list stand
the constants of the paper's protocol beside those of our recipe, compared by a test as well; where the two differ,
the row says why.

<!-- Written by tools/papers.py from docs/papers/*.toml: change those. -->
"""


def tables() -> dict[str, dict[str, Any]]:
    """Read the table of each paper."""
    return {name: tomllib.loads((DOCS / "papers" / f"{name}.toml").read_text("utf-8")) for name in ORDER}


def page() -> str:
    """Write the page."""
    parts = [HEAD]
    for table in tables().values():
        parts += [f"## {table['paper']}\n", "| in the paper | shows | call | checked by |\n|---|---|---|---|"]
        for row in table["item"]:
            call = f"`{row['call']}`" if "call" in row else f"*not here:* {row['missing']}"
            # A pipe inside a cell would end it.
            cells = [row["where"], row["shows"], call, f"`{row['check']}`" if "check" in row else ""]
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append("\n| recipe | setting | paper | here | where in the paper |\n|---|---|---|---|---|")
        for row in table.get("setting", []):
            here = f"{as_text(row['ours'])}: {row['why']}" if "ours" in row else "the same"
            options = "".join(f", {k}={v!r}" for k, v in row.get("options", {}).items())
            parts.append(
                f"| `{row['recipe']}{options}` | `{row['key']}` | {as_text(row.get('paper', 'not said'))} | {here} | "
                f"{row['where']} |"
            )
        parts.append("")
    return "\n".join(parts)


def as_text(value: Any) -> str:
    """Write a constant."""
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


if __name__ == "__main__":
    target = DOCS / "papers.md"
    if "--check" in sys.argv:
        if not target.exists() or target.read_text("utf-8") != page():
            sys.exit("docs/papers.md is not what docs/papers/*.toml say: run python tools/papers.py")
    else:
        target.write_text(page(), "utf-8")
