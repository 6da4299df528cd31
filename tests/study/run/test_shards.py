from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.nn.training import Training
from curvewise.store.read import list_runs
from curvewise.store.verify import verify_store
from curvewise.study.data.dataset import Dataset
from curvewise.study.run.drive import parse_shard, run_local, shard_of
from curvewise.study.spec.design import Design, Learner
from curvewise.study.study import Study


def made_study(seeds: int = 40) -> Study:
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(60, 3)), np.arange(60) % 3)
    learners = {
        "one": Learner(training=Training("mlp", rate=(0.1, 0.2))),
        "two": Learner(training=Training("mlp", rate=(0.1, 0.3))),
        "three": Learner(estimator="sklearn.svm:SVC"),
    }
    return Study(data, learners, Design(sizes=[10, 20], folds=2, seeds=seeds))


@pytest.mark.parametrize("of", [1, 2, 7, 16])
def test_shards_are_disjoint_and_together_everything(of: int) -> None:
    study = made_study()
    counts = Counter(j.id for k in range(of) for j in shard_of(study.jobs, f"{k + 1}/{of}"))
    runs = {j.id for j in study.jobs if not j.is_search}
    assert {i for i in counts if i in runs} == runs
    assert {counts[i] for i in runs} == {1}
    sizes = [sum(j.id in runs for j in shard_of(study.jobs, f"{k + 1}/{of}")) for k in range(of)]
    even = len(runs) / of
    assert max(abs(s - even) for s in sizes) <= 5 * np.sqrt(even)


def test_a_shard_has_the_searches_that_its_runs_need() -> None:
    study = made_study(seeds=1)
    for k in range(8):
        jobs = shard_of(study.jobs, f"{k + 1}/8")
        searches = {j.id for j in jobs if j.is_search}
        assert searches == {j.needs for j in jobs if j.needs is not None}
        assert [j.is_search for j in jobs] == sorted((j.is_search for j in jobs), reverse=True)


def test_more_seeds_leave_runs_in_their_shards() -> None:
    few, many = made_study(seeds=3), made_study(seeds=9)
    for k in range(5):
        then = {j.id for j in shard_of(few.jobs, f"{k + 1}/5") if not j.is_search}
        now = {j.id for j in shard_of(many.jobs, f"{k + 1}/5") if not j.is_search}
        assert then <= now


@pytest.mark.parametrize("shard", ["0/4", "5/4", "1", "1/0", "a/b", "-1/4", "1/4/2", "", 3])
def test_what_is_no_shard(shard: str) -> None:
    with pytest.raises(InputError, match="shard="):
        parse_shard(shard)


def test_fresh_shards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="other shards"):
        run_local(made_study(), shard="1/4", fresh=True)


PLAN = """
import json, sys
from pathlib import Path
import numpy as np
from curvewise.nn.training import Training
from curvewise.study.data.dataset import Dataset
from curvewise.study.spec.design import Design
from curvewise.study.run.drive import run_local
from curvewise.study.spec.design import Learner
from curvewise.study.study import Study

def make_study(store):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    data = Dataset((rng.normal(size=(90, 3)) + np.eye(3)[y]).astype(np.float32), y)
    learners = {"net": Learner(training=Training("mlp", rate=(0.1, 0.2), epochs=2, batch=8))}
    return Study(data, learners, Design(sizes=[10, 20], folds=3, seeds=6), store=Path(store))

def tell(event):
    print(json.dumps([event.kind, event.id]), flush=True)

if __name__ == "__main__":
    store, shard = sys.argv[1:]
    run_local(make_study(store), workers=0, shard=shard, progress=False, tell=tell)
"""


def test_concurrent_shards_of_one_folder(tmp_path: Path) -> None:
    plan, store = tmp_path / "plan.py", tmp_path / "store"
    plan.write_text(PLAN)
    command = [sys.executable, str(plan), str(store)]
    shards = [subprocess.Popen([*command, f"{k}/2"], stdout=subprocess.PIPE, text=True) for k in (1, 2)]
    said = [shard.communicate(timeout=1800)[0] for shard in shards]
    assert [shard.returncode for shard in shards] == [0, 0]
    events = [json.loads(line) for text in said for line in text.splitlines()]
    made = Counter(i for kind, i in events if kind == "done")
    jobs = runpy.run_path(str(plan))["make_study"](store).jobs
    assert made == {j.id: 1 for j in jobs}  # the search too: one made it, the other waited
    assert [r.id for r in list_runs(store)] == sorted(made)
    assert verify_store(store).sound
    assert not list((store / ".claims").iterdir())
