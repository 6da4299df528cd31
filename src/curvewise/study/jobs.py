"""The runs that a study plans, each with the coordinates that name it in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import InputError
from curvewise.nn.task import Poke
from curvewise.study._record import run_id
from curvewise.study.digest import data_digest
from curvewise.study.learner import Learner

if TYPE_CHECKING:
    from curvewise.study.study import Study

RECIPE = "study/1"  # counts up when the same coordinates would train otherwise
SEARCH = "rate-search/1"


@dataclass(frozen=True, eq=False)
class Job:
    """One run to be made.

    Attributes
    ----------
    id : str
        Hash of the coordinates, and the name of the run's folder in the store.
    coordinates : dict
        What identifies the run.
    name : str
        Name of the learner in the study.
    learner : Learner
        With the settings of the grid; its rate may still be several, see ``needs``.
    settings : dict
        The settings that the grid gave.
    n, fold : int
        Which training subset.
    seeds : dict of str to int
        init, order, augmentation.
    poke : Poke, optional
        Whether and when a weight is nudged.
    needs : str, optional
        Id of the search for the learning rate, which must be in the store before this run.
    is_search : bool
        Whether this is such a search.
    """

    id: str
    coordinates: Mapping[str, Any]
    name: str
    learner: Learner
    settings: Mapping[str, Any]
    n: int
    fold: int
    seeds: Mapping[str, int]
    poke: Poke | None = None
    needs: str | None = None
    is_search: bool = False

    @property
    def cost(self) -> float:
        """How long it takes, in examples looked at: only good for comparing runs of a learner."""
        training = self.learner.training
        if training is None:
            return float(self.n)
        looks = training.steps_for(self.n) * training.batch_for(self.n) + 1.0
        return looks * self.learner.members * (len(training.rates) if self.is_search else 1)


def plan_jobs(study: Study) -> list[Job]:
    """List the runs of a study: searches for rates first, then learner by learner."""
    searches: list[Job] = []
    runs: list[Job] = []
    weights = {k: _file_digest(v, study.folder) for k, v in study.learners.items()}
    for name, learner in study.learners.items():
        for settings in study.design.combinations():
            about = learner.with_settings(settings)
            shared = {
                "recipe": RECIPE,
                "data": study.data_digest,
                "learner": name,
                "training": about.as_dict(),
                **({"weights": weights[name]} if weights[name] else {}),
                **settings,
            }
            search = _search(study, name, about, settings, shared)
            searches += [] if search is None else [search]
            needs = None if search is None else search.id
            runs += _runs(study, name, about, settings, shared, needs)
    return searches + runs


def _runs(
    study: Study,
    name: str,
    learner: Learner,
    settings: Mapping[str, Any],
    shared: Mapping[str, Any],
    needs: str | None,
) -> list[Job]:
    jobs = []
    for subset in study.partition:
        where = {"n": subset.n, "fold": subset.fold, "subset": study.subset_digest(subset)}
        for replicate in range(study.design.seeds):
            seeds = study.design.seeds_of(study.seed, subset.n, subset.fold, replicate)
            poke = None
            if study.design.poke is not None:
                poke = Poke(seeds.pop("poke"), **study.design.poke)
            coordinates = {**shared, **where, **{f"{k}_seed": v for k, v in seeds.items()}}
            if poke is not None:
                coordinates["poke"] = {"epoch": poke.epoch, "factor": poke.factor}
                coordinates["poke_seed"] = poke.seed
            if needs is not None:
                coordinates["search"] = needs
            jobs.append(
                Job(
                    id=run_id(coordinates),
                    coordinates=coordinates,
                    name=name,
                    learner=learner,
                    settings=settings,
                    n=subset.n,
                    fold=subset.fold,
                    seeds=seeds,
                    poke=poke,
                    needs=needs,
                )
            )
    return jobs


def _search(
    study: Study,
    name: str,
    learner: Learner,
    settings: Mapping[str, Any],
    shared: Mapping[str, Any],
) -> Job | None:
    """The search for the learning rate, on the first subset of the middle size."""
    if learner.training is None or len(learner.training.rates) < 2:
        return None
    sizes = study.partition.sizes
    subset = study.partition.at(sizes[len(sizes) // 2])[0]
    seeds = study.design.seeds_of(study.seed, subset.n, subset.fold, 0)
    seeds.pop("poke", None)
    coordinates = {
        **shared,
        "recipe": SEARCH,
        "n": subset.n,
        "subset": study.subset_digest(subset),
        **{f"{k}_seed": v for k, v in seeds.items()},
    }
    return Job(
        id=run_id(coordinates),
        coordinates=coordinates,
        name=name,
        learner=replace(learner, members=1),
        settings=settings,
        n=subset.n,
        fold=subset.fold,
        seeds=seeds,
        is_search=True,
    )


def _file_digest(learner: Learner, folder: Path) -> str | None:
    """Hash of the file with the initial weights, so that other weights are another run."""
    if learner.training is None or learner.training.weights is None:
        return None
    path = folder / learner.training.weights
    if not path.is_file():
        raise InputError(f"weights={learner.training.weights!r}: there is no file {path}.")
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


def rows_digest(rows: Any) -> str:
    """Hash of the positions of a subset's examples."""
    return data_digest(rows)
