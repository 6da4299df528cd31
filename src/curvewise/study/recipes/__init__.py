"""Protocols of the papers by name, each a study without its data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from curvewise.errors import InputError
from curvewise.study.dataset import Dataset
from curvewise.study.design import Design
from curvewise.study.document import KEYS, check_keys, study_from_document
from curvewise.study.recipes.learning import learning
from curvewise.study.recipes.ranking import ranking, ranking_checkpoints
from curvewise.study.recipes.response import response
from curvewise.study.recipes.transfer import transfer
from curvewise.study.recipes.variance import (
    variance,
    variance_linear,
    variance_sources,
    variance_text,
)
from curvewise.study.study import Study

RECIPES: dict[str, Callable[..., dict[str, Any]]] = {
    "learning": learning,
    "variance": variance,
    "variance-sources": variance_sources,
    "variance-linear": variance_linear,
    "variance-text": variance_text,
    "response": response,
    "transfer": transfer,
    "ranking": ranking,
    "ranking-checkpoints": ranking_checkpoints,
}
"""Each gives the tables of a study file, and in ``training`` what holds for any learner."""


def study_recipe(recipe: str, data: Dataset | Mapping[str, Any] | str, /, **changes: Any) -> Study:
    """Make a study that follows the protocol of a paper.

    Parameters
    ----------
    recipe : str
        A name of :data:`curvewise.study.recipes.RECIPES`; the function behind it says what the
        paper did, where it is silent, and which options there are.
    data : Dataset, dict or str
        What to learn.
    **changes
        Options of the recipe (``architecture="resnet18"``); fields of :class:`Design`
        (``seeds=20``); or tables as in a study file: ``learners={"mine": {"rate": 0.1}}``,
        ``design``, ``evaluate``, ``keep``, ``seed``, ``name``, ``store``, ``folder``. Learners
        named here are trained instead of the recipe's, each from the recipe's settings.

    Returns
    -------
    Study
        Ready to be planned and run.

    Examples
    --------
    >>> study = study_recipe("variance", "cifar10", seeds=200)
    >>> study.design.grid["epochs"], study.learners["resnet9"].training.batch
    ([0, 4, 16, 64], 500)
    """
    tables = {k: v for k, v in changes.items() if k in KEYS and k not in ("recipe", "data")}
    designed = {f.name for f in fields(Design)}
    design = {k: v for k, v in changes.items() if k in designed}
    options = {k: v for k, v in changes.items() if k not in tables and k not in designed}
    tables["design"] = {**tables.get("design", {}), **design}
    folder = Path(tables.pop("folder", "."))
    store = {"store": str(tables.pop("store"))} if tables.get("store") is not None else {}
    document = {"name": recipe, **tables, **store, "recipe": {"name": recipe, **options}}
    named = data if isinstance(data, str) or not isinstance(data, Dataset) else "data"
    study = study_from_document({**document, "data": named}, folder, f"recipe {recipe!r}")
    return replace(study, data=data)


def with_recipe(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Put the tables of a document's recipe under its own; also the defaults of each learner."""
    own = {k: v for k, v in document.items() if k != "recipe"}
    if "recipe" not in document:
        return own, {}
    given = recipe_document(document["recipe"])
    usual, learners = given.pop("training"), given["learners"]
    merged = {**given, **own}
    for table in ("design", "keep", "evaluate"):
        if isinstance(own.get(table, {}), Mapping):
            merged[table] = {
                **_still(given.get(table, {}), own.get(table, {})),
                **own.get(table, {}),
            }
    if not own.get("learners"):
        return {**merged, "learners": learners}, {}
    return merged, {name: learners.get(name, usual) for name in own["learners"]}


def recipe_document(recipe: Any) -> dict[str, Any]:
    """Give the tables of a recipe: its name, or a table with its name and options."""
    asked = {"name": recipe} if isinstance(recipe, str) else recipe
    if not isinstance(asked, Mapping) or not isinstance(asked.get("name"), str):
        raise InputError(
            f"recipe={recipe!r}: give one of {', '.join(RECIPES)}, or a table with its name."
        )
    check_keys({asked["name"]: None}, list(RECIPES))
    make = RECIPES[asked["name"]]
    options = {k: v for k, v in asked.items() if k != "name"}
    check_keys(options, list(inspect.signature(make).parameters))
    return make(**options)


def _still(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What of a recipe's design still makes sense beside the user's own words."""
    gone = {"folds"} if "sizes" in own else set()
    gone |= {"poke"} if "vary" in own and "poke" not in str(own["vary"]) else set()
    return {k: v for k, v in given.items() if k not in gone}
