"""Tables with more columns than a terminal has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curvewise.cli._console import Page, console, rich_table, width_of

if TYPE_CHECKING:
    from curvewise.cli._console import Columns


def table_in_parts(page: Page, title: str, columns: Columns) -> None:
    """Print a table; in a terminal that is too narrow, one below the other with as many columns.

    The first column names the rows and begins every part.
    """
    if page.as_json or page.markup is not None:
        page.table(title, columns, None)
        return
    for i, part in enumerate(parts_of(columns, console().width)):
        page.table(title if i == 0 else f"{title}, continued", part, None)


def parts_of(columns: Columns, width: int) -> list[dict[str, Any]]:
    """Split columns so that each part fits, if a part of two columns does.

    >>> columns = {"name": ["a", "b"], "first": [1, 2], "second": [3, 4], "third": [5, 6]}
    >>> [list(part) for part in parts_of(columns, 24)]
    [['name', 'first', 'second'], ['name', 'third']]
    """
    (key, names), *rest = columns.items()
    parts: list[dict[str, Any]] = [{key: names}]
    for name, values in rest:
        longer = {**parts[-1], name: values}
        if len(parts[-1]) > 1 and width_of(rich_table(longer, None))[1] > width:
            longer = {key: names, name: values}
            parts.append(longer)
        parts[-1] = longer
    return parts
