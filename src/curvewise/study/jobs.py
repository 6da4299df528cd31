"""The runs that a study plans, each with the coordinates that name it in the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import InputError
from curvewise.learning.partition import Subset
from curvewise.nn.task import Poke
from curvewise.study._record import run_id
from curvewise.study.digest import data_digest
from curvewise.study.learner import Learner, settle_learner

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
    varies : str
        What differs between the runs it belongs with, as ``"init+order"``; no part of its
        coordinates, which say how it was trained and not why.
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
    varies: str = ""

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
    digests: dict[str, str] = {}
    for name, learner in study.learners.items():
        for settings in study.design.combinations(name, learner.takes):
            about = settle_learner(learner.with_settings(settings), study.outputs, name)
            weights = _weights_digest(about, study.folder, digests)
            shared = {
                "recipe": RECIPE,
                "data": study.data_digest,
                "learner": name,
                "training": about.as_dict(),
                **settings,
                **({"weights": weights} if weights else {}),
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
        for varies, seeds, poke in _chances(study, subset):
            coordinates = {**shared, **where, **{f"{k}_seed": v for k, v in seeds.items()}}
            if poke is not None:
                coordinates["poke"] = {"epoch": float(poke.epoch), "factor": float(poke.factor)}
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
                    varies=varies,
                )
            )
    return jobs


def _chances(study: Study, subset: Subset) -> Iterator[tuple[str, dict[str, int], Poke | None]]:
    """What varies, the seeds and the poke of each run on one subset.

    The run in which everything stays at its first seed would belong to every variation. It counts
    in the first one only, and the others go on to the next replicate, so that no run is in two.
    """
    design, taken = study.design, set()
    for variation in design.variations:
        left = design.seeds
        for replicate in count():
            seeds = design.seeds_of(study.seed, subset.n, subset.fold, replicate, variation)
            if (key := tuple(seeds.items())) in taken:
                continue
            taken.add(key)
            poke = Poke(seeds.pop("poke"), **(design.poke or {})) if "poke" in seeds else None
            yield "+".join(variation), seeds, poke
            left -= 1
            if not left:
                break


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


def _weights_digest(learner: Learner, folder: Path, known: dict[str, str]) -> str | None:
    """Hash of what the network starts from, so that other weights are another run."""
    training = learner.training
    if training is None:
        return None
    found = []
    if training.architecture.startswith("hf:"):
        place = folder / training.architecture.removeprefix("hf:")
        found += sorted(p for p in place.glob("*") if p.is_file())
    if training.weights is not None:
        path = folder / training.weights
        if not path.is_file():
            raise InputError(f"weights={training.weights!r}: there is no file {path}.")
        found.append(path)
    for path in found:
        if str(path) not in known:
            with path.open("rb") as stream:
                known[str(path)] = hashlib.file_digest(stream, "sha256").hexdigest()[:32]
    hashes = [known[str(path)] for path in found]
    return hashes[0] if len(hashes) == 1 else data_digest(hashes) if hashes else None
