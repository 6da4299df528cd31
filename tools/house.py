"""Print the source tree in figures, and check that no module imports itself in a circle.

Run ``python tools/house.py`` from the root (``make house``); with ``--check`` only the circles are looked for, and the
exit status is 1 if there is one (part of ``make lint``).
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent / "src" / "curvewise"


def main() -> int:
    """Print the figures or the circles, and return the exit status."""
    trees = {_module(path): (path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(ROOT.rglob("*.py"))}
    imports = {name: _imports(tree, name, trees) for name, (_, tree) in trees.items()}
    circles = find_circles(imports)
    for circle in circles:
        print("modules that import each other:", ", ".join(sorted(circle)))
    if "--check" not in sys.argv:
        print_figures(trees, imports)
    return 1 if circles else 0


def print_figures(trees: dict[str, tuple[Path, ast.Module]], imports: dict[str, set[str]]) -> None:
    """Print lines by package, then what tells a house that splits too far or repeats itself."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for path, tree in trees.values():
        parts = path.relative_to(ROOT).parts
        found = _lines(path, tree)
        for package in (parts[0] if len(parts) > 1 else ".", "all"):
            rows[package].update(found)
    print(f"{'package':12} files   code    doc  comments")
    for package in [*sorted(set(rows) - {"all"}), "all"]:
        row = rows[package]
        print(f"{package:12} {row['files']:5} {row['code']:6} {row['doc']:6} {row['comments']:6}")
    folders = Counter(str(path.parent.relative_to(ROOT)) for path, _ in trees.values())
    print("largest folders:", ", ".join(f"{name} {count}" for name, count in folders.most_common(5)))
    families = Counter(
        (str(path.parent.relative_to(ROOT)), path.stem.split("_")[0])
        for path, _ in trees.values()
        if "_" in path.stem[1:]
    )
    large = [f"{folder}/{head}_ {count}" for (folder, head), count in families.most_common() if count > 2]
    print("three or more files with one prefix:", ", ".join(large) or "none")
    modules = [name for name, (path, _) in trees.items() if not path.name.startswith("__")]
    importers = Counter(target for name, targets in imports.items() for target in targets if target != name)
    once = sum(importers[name] == 1 for name in modules)
    print(f"modules with one importer: {once} of {len(modules)} ({once / len(modules):.0%})")
    functions = [n for _, tree in trees.values() for n in tree.body if isinstance(n, ast.FunctionDef)]
    # A name that two modules define is counted for both, which is close enough for a figure to watch.
    uses = Counter(
        n.id
        for _, tree in trees.values()
        for n in ast.walk(tree)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )
    single = [n for n in functions if uses[n.name] == 1]
    lengths = [(n.end_lineno or n.lineno) - n.lineno + 1 for n in functions]
    print(
        f"functions: {len(functions)}, used once {len(single)} ({len(single) / len(functions):.0%}), "
        f"median length {median(lengths):.0f} lines"
    )
    classes = Counter(n.name for _, tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    print("class names used twice:", ", ".join(f"{k} {v}" for k, v in classes.items() if v > 1) or "none")


def find_circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Find groups of modules that import each other, inside functions or not (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in imports[node]:
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            group = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(group)

    sys.setrecursionlimit(10_000)
    for node in imports:
        if node not in index:
            visit(node)
    return found


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, name: str, trees: dict[str, tuple[Path, ast.Module]]) -> set[str]:
    """Collect the modules that one imports when it runs; imports for type checkers make no circle."""
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typed:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in trees else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {target for target in found if target in trees and target != name}


def _lines(path: Path, tree: ast.Module) -> dict[str, int]:
    """Count code, docstring and comment lines of a file, each line once."""
    doc: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            doc |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code, comments = set(), set()
    empty = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in empty:
            code |= set(range(token.start[0], token.end[0] + 1))
    code -= doc
    return {"files": 1, "code": len(code), "doc": len(doc), "comments": len(comments - code - doc)}


if __name__ == "__main__":
    sys.exit(main())
