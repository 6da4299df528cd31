from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss as sklearn_log_loss

from curvewise.errors import MissingDependencyError, StoreError
from curvewise.nn.devices import describe_cpu, ran_out_of_memory, spoilt_device
from curvewise.nn.task import Assignment, Examples, Keep, Trained
from curvewise.nn.training import Training
from curvewise.store.claims import Claims
from curvewise.store.read import list_runs, read_run
from curvewise.study.data.dataset import Dataset, one_hot
from curvewise.study.run.drive import group_of
from curvewise.study.run.maker import (
    STAYS,
    Event,
    Maker,
    SpoiltDeviceError,
    Writers,
    average,
    search_rate,
    split_in_three,
)
from curvewise.study.spec.design import Design, Learner
from curvewise.study.spec.evaluation import Evaluation
from curvewise.study.spec.study import Job
from curvewise.study.status import look_up
from curvewise.study.study import Study

torch = pytest.importorskip("torch")


def blobs(examples: int = 150, classes: int = 3) -> Dataset:
    rng = np.random.default_rng(0)
    y = np.arange(examples) % classes
    x = rng.normal(size=(examples, 4)) + 2 * np.eye(classes, 4)[y]
    return Dataset(x.astype(np.float32), y)


def made_study(tmp_path: Path, learner: Learner | None = None, **options: Any) -> Study:
    learner = learner or Learner(training=Training("mlp", rate=0.1, epochs=2))
    design = options.pop("design", Design(sizes=[30], folds=2, seeds=2))
    return Study(blobs(), {"it": learner}, design, store=tmp_path / "store", **options)


class Engine:
    """Stands in for the engine: probabilities that depend on the seeds and the rate alone."""

    def __init__(self, trouble: Callable[[Assignment, int | None], Any] | None = None) -> None:
        self.trouble = trouble
        self.calls: list[tuple[Training, list[Assignment], int | None]] = []
        self.compiled: list[bool] = []
        self.streamed: list[bool | None] = []

    def __call__(
        self,
        training: Training,
        assignments: Sequence[Assignment],
        examples: Examples,
        evaluations: Mapping[str, Examples],
        *,
        device: str = "cpu",
        in_flight: int | None = None,
        compile: bool = True,
        keep: Keep | None = None,
        folder: Path | None = None,
        stream: bool | None = None,
    ) -> Iterator[tuple[int, Trained]]:
        self.calls.append((training, list(assignments), in_flight))
        self.compiled.append(compile)
        self.streamed.append(stream)
        for i in reversed(range(len(assignments))):  # the last is the first to finish
            given = None
            if self.trouble is not None:
                given = self.trouble(assignments[i], in_flight or len(assignments))
                if isinstance(given, Exception):
                    raise given
            yield i, given or self.result(training, assignments[i], evaluations)

    @staticmethod
    def result(training: Training, assignment: Assignment, evaluations: Mapping[str, Examples]) -> Trained:
        found = {}
        for name, part in evaluations.items():
            rng = np.random.default_rng([assignment.init, len(name)])
            p = 0.05 + rng.random((len(part.y), part.classes))
            found[name] = (p / p.sum(axis=1, keepdims=True)).astype(np.float32)
        metrics = {"train_error": 0.25, "train_loss": 0.5, "steps": 3, "epochs": 2}
        return Trained(found, metrics, {"end": {"w": np.ones(2)}}, {}, 0.5, "made up")


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Event]]:
    def run(study: Study, engine: Engine, jobs: Sequence[Job] | None = None, **options: Any) -> Any:
        from curvewise.nn import engine as module

        monkeypatch.setattr(module, "train", engine)
        events: list[Event] = []
        with Claims(study.runs_folder) as claims:
            Maker(study, claims=claims, tell=events.append, **options).make(jobs or study.jobs)
            assert not list((study.runs_folder / ".claims").glob("[!.]*"))
        return events

    return run


def test_predictions_errors_and_losses(tmp_path: Path, make: Any) -> None:
    keep = Keep(probabilities=True, checkpoints="end")
    shifted = Evaluation(blobs(60))
    study = made_study(tmp_path, keep=keep, evaluate={"shifted": shifted})
    events = make(study, Engine())
    assert [e.kind for e in events] == ["done"] * 4
    for job in study.jobs:
        run = read_run(study.runs_folder / job.id)
        assert run.coordinates == job.coordinates
        for name, part in study.evaluation_sets.items():
            ending = "" if name == "test" else f".{name}"
            given = run.array(f"probabilities{ending}")
            predicted = run.array(f"predictions{ending}")
            assert predicted.dtype == np.uint8
            assert (predicted == given.argmax(axis=1)).all()
            assert (run.labels(name) == part.y).all()
            wrong = np.mean(predicted != part.y)
            assert run.metrics[f"error{ending}"] == pytest.approx(wrong)
            exact = given.astype(float) / given.sum(axis=1, keepdims=True, dtype=float)
            expected = sklearn_log_loss(part.y, exact, labels=range(3))
            assert run.metrics[f"loss{ending}"] == pytest.approx(expected, rel=1e-5)
        assert run.metrics["gap"] == pytest.approx(run.metrics["error"] - 0.25)
        assert run.metrics["seconds"] == 0.5
        assert run.environment["path"] == "made up"
        assert run.checkpoint("end")["w"].tolist() == [1, 1]
        assert look_up(study.runs_folder, job, study.label_digests(), keep)[0].state == "done"


@pytest.mark.parametrize("asked", [False, True])
def test_features_are_kept_only_if_asked_for(tmp_path: Path, make: Any, asked: bool) -> None:
    class WithFeatures(Engine):
        @staticmethod
        def result(training: Training, assignment: Assignment, evaluations: Mapping[str, Examples]) -> Trained:
            features = {name: np.ones((len(part.y), 5), np.float32) for name, part in evaluations.items()}
            return replace(Engine.result(training, assignment, evaluations), features=features)

    study = made_study(tmp_path, keep=Keep(features=asked), evaluate={"shifted": Evaluation(blobs(60))})
    make(study, WithFeatures(), study.jobs[:1])
    arrays = set(read_run(study.runs_folder / study.jobs[0].id).arrays)
    predicted = {"predictions", "predictions.shifted"}
    assert arrays == (predicted | {"features", "features.shifted"} if asked else predicted)


def test_what_is_there_is_not_made_again(tmp_path: Path, make: Any) -> None:
    study, engine = made_study(tmp_path), Engine()
    make(study, engine, study.jobs[:3])
    events = make(study, engine)
    assert sorted(e.kind for e in events) == ["done", "there", "there", "there"]
    assert [len(a) for _, a, _ in engine.calls] == [3, 1]


def test_other_evaluation_sets_or_more_to_keep_are_reasons(tmp_path: Path, make: Any) -> None:
    study = made_study(tmp_path)
    make(study, Engine())
    shifted = made_study(tmp_path, evaluate={"shifted": Evaluation(blobs(60))})
    kept = made_study(tmp_path, keep=Keep(probabilities=True))
    weighed = made_study(tmp_path, keep=Keep(checkpoints="end"))
    for other in (shifted, kept, weighed):
        digests = other.label_digests()
        assert [j.id for j in other.jobs] == [j.id for j in study.jobs]
        states = {look_up(other.runs_folder, j, digests, other.keep)[0].state for j in other.jobs}
        assert states == ({"done"} if other is weighed else {"outdated"})
    assert {e.kind for e in make(shifted, Engine())} == {"done"}
    # The same name with other examples in it is another set.
    changed = made_study(tmp_path, evaluate={"shifted": Evaluation(blobs(63))})
    digests = changed.label_digests()
    found = look_up(changed.runs_folder, changed.jobs[0], digests, changed.keep)[0]
    assert (found.state, "shifted" in found.text) == ("outdated", True)


def test_a_claimed_run_is_left_and_told(tmp_path: Path, make: Any) -> None:
    study, engine = made_study(tmp_path), Engine()
    with Claims(study.runs_folder) as other:
        other.take(study.jobs[1].id)
        from curvewise.nn import engine as module

        events: list[Event] = []
        with Claims(study.runs_folder) as claims, pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "train", engine)
            Maker(study, claims=claims, tell=events.append).make(study.jobs)
    kinds = {e.id: e.kind for e in events}
    assert kinds[study.jobs[1].id] == "held"
    assert sorted(kinds.values()) == ["done", "done", "done", "held"]


def test_a_run_taken_over_meanwhile_is_not_stored(tmp_path: Path, make: Any) -> None:
    study = made_study(tmp_path)
    first, *rest = study.jobs

    def steal(assignment: Assignment, _: int | None) -> None:
        for path in (study.runs_folder / ".claims").glob(f"{first.id}.*"):
            path.unlink()

    kinds = {e.id: e.kind for e in make(study, Engine(steal))}
    assert kinds == {first.id: "held", **{j.id: "done" for j in rest}}
    assert not (study.runs_folder / first.id).exists()


@pytest.mark.parametrize(
    "given",
    [
        Trained(error="the loss is NaN after step 3"),
        Trained({"test": np.full((30, 3), np.nan, dtype=np.float32)}),
        Trained({"test": np.ones((29, 3), dtype=np.float32)}),
        Trained({"other": np.ones((30, 3), dtype=np.float32)}),
        ValueError("no such layer"),
    ],
)
def test_one_failure_is_recorded_and_the_rest_go_on(tmp_path: Path, make: Any, given: Any) -> None:
    study = made_study(tmp_path)
    bad = study.jobs[2]

    def fail(assignment: Assignment, _: int | None) -> Any:
        return given if assignment.init == bad.seeds["init"] else None

    events = make(study, Engine(fail))
    assert {e.id: e.kind for e in events} == {j.id: "failed" if j is bad else "done" for j in study.jobs}
    run = read_run(study.runs_folder / bad.id)
    assert run.status == "failed"
    assert run.error
    assert run.predictions is None
    assert run.environment["attempts"] == 1
    make(study, Engine(fail))
    assert read_run(study.runs_folder / bad.id).environment["attempts"] == 2
    make(study, Engine())
    assert {r.status for r in list_runs(study.runs_folder)} == {"done"}


@pytest.mark.parametrize("wish", [True, False])
def test_whether_to_compile_and_to_stream_reaches_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wish: bool
) -> None:
    engine = Engine()
    monkeypatch.setattr("curvewise.nn.engine.train", engine)
    made_study(tmp_path).run(workers=0, progress=False, device="cpu", compile=wish, stream=wish)
    assert engine.compiled == [wish]
    assert engine.streamed == [wish]


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory."),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 TB"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_too_little_memory_halves_what_is_in_flight(tmp_path: Path, make: Any, error: Exception) -> None:
    study = made_study(tmp_path, design=Design(sizes=[10], folds=2, seeds=4))

    def fill(assignment: Assignment, at_once: int | None) -> Any:
        return error if at_once is not None and at_once > 2 else None

    engine = Engine(fill)
    events = make(study, engine)
    assert [in_flight for _, _, in_flight in engine.calls] == [None, 4, 2]
    assert sum(e.kind == "done" for e in events) == 8
    assert [e.text[:40] for e in events if e.kind == "memory"] == [
        "Out of memory with 8 networks at once: 4",
        "Out of memory with 4 networks at once: 2",
    ]


def test_memory_that_never_suffices_is_a_failure(tmp_path: Path, make: Any) -> None:
    study = made_study(tmp_path)
    huge = study.jobs[0]

    def fill(assignment: Assignment, _: int | None) -> Any:
        if assignment.init == huge.seeds["init"]:
            return torch.OutOfMemoryError("CUDA out of memory.")
        return None

    kinds = {e.id: e.kind for e in make(study, Engine(fill)) if e.kind != "memory"}
    assert kinds == {j.id: "failed" if j is huge else "done" for j in study.jobs}
    assert "out of memory" in str(read_run(study.runs_folder / huge.id).error)


def test_an_engine_that_forgets_a_run_is_found_out(tmp_path: Path, make: Any) -> None:
    class Forgetful(Engine):
        def __call__(self, *arguments: Any, **options: Any) -> Iterator[tuple[int, Trained]]:
            return iter(list(super().__call__(*arguments, **options))[1:])

    kinds = [e.kind for e in make(made_study(tmp_path), Forgetful())]
    assert sorted(kinds) == ["done", "done", "done", "failed"]


def test_an_ensemble_averages_probabilities(tmp_path: Path, make: Any) -> None:
    learner = Learner(training=Training("mlp", rate=0.1, epochs=2), members=3)
    study = made_study(tmp_path, learner, keep=Keep(probabilities=True))
    engine = Engine()
    make(study, engine)
    ((training, assignments, _),) = engine.calls
    assert len({a.init for a in assignments}) == len(assignments) == 12
    for i, job in enumerate(study.jobs):
        own = assignments[3 * i : 3 * i + 3]
        assert own[0].init == job.seeds["init"]  # so that it can be compared with a single one
        single = [engine.result(training, a, study.evaluation_sets) for a in own]
        mean = np.mean([t.probabilities["test"] for t in single], axis=0)
        run = read_run(study.runs_folder / job.id)
        assert run.array("probabilities") == pytest.approx(mean, abs=1e-6)
        assert run.metrics["seconds"] == 1.5
        assert sorted(run.files) == [f"network-{m}-end" for m in range(3)]


def test_an_ensemble_fails_with_its_members() -> None:
    good = Trained({"test": np.ones((2, 1), dtype=np.float32)}, {"steps": 1})
    bad = average([good, Trained(error="NaN"), good])
    assert bad.error == "Network 1 of the ensemble: NaN"


RATES = (0.5, 0.1, 0.02)


def rate_engine(errors: Mapping[float, tuple[float, float] | None]) -> Any:
    """An engine whose networks err, at each rate, as often as given, and as confidently."""

    def train(training: Training, assignments: Any, examples: Any, sets: Any, **_: Any) -> Any:
        told = errors[training.rates[0]]
        ((name, part),) = sets.items()
        if told is None:
            yield 0, Trained(error="the loss is NaN")
            return
        wrong, sureness = told
        guess = part.y.copy()
        guess[: round(wrong * len(guess))] += 1
        p = sureness * one_hot(guess % 3, 3, "it") + (1 - sureness) / 3
        yield 0, Trained({name: p.astype(np.float32)}, seconds=1.0)

    return train


@pytest.mark.parametrize(
    ("errors", "best"),
    [
        ({0.5: (0.5, 0.9), 0.1: (0.2, 0.9), 0.02: (0.3, 0.9)}, 0.1),
        ({0.5: (0.2, 0.6), 0.1: (0.2, 0.9), 0.02: (0.3, 0.9)}, 0.5),  # the lower loss
        ({0.5: (0.2, 0.9), 0.1: (0.2, 0.9), 0.02: (0.3, 0.9)}, 0.1),  # the lower rate
        ({0.5: None, 0.1: (0.9, 0.9), 0.02: None}, 0.1),
    ],
)
def test_the_rate_with_the_least_error_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: Any, best: float
) -> None:
    study = made_study(tmp_path, Learner(training=Training("mlp", rate=RATES)))
    monkeypatch.setattr("curvewise.nn.engine.train", rate_engine(errors))
    found = search_rate(study, study.jobs[0])
    assert found.metrics["rate"] == best
    for rate, told in errors.items():
        assert found.metrics[f"error.{rate}"] == pytest.approx(told[0] if told else 1, abs=0.051)


def test_a_rate_whose_predicted_numbers_are_not_finite_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(training: Training, assignments: Any, examples: Any, sets: Any, **_: Any) -> Any:
        loss = {0.5: np.nan, 0.1: 2.0, 0.02: 3.0}[training.rates[0]]
        yield 0, Trained(losses={name: np.full(len(part.y), loss, np.float32) for name, part in sets.items()})

    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(90, 3)), rng.normal(size=90), targets="numbers")
    study = replace(made_study(tmp_path, Learner(training=Training("mlp", rate=RATES))), data=data)
    monkeypatch.setattr("curvewise.nn.engine.train", train)
    found = search_rate(study, study.jobs[0])
    assert found.metrics["rate"] == 0.1
    assert found.notes == ("rate 0.5: the training diverged",)


def test_the_found_rate_is_used_and_no_rate_is_a_failure(
    tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = made_study(tmp_path, Learner(training=Training("mlp", rate=RATES)))
    search, *runs = study.jobs
    none = dict.fromkeys(RATES)
    kinds = [e.kind for e in make(study, rate_engine(none))]
    assert kinds == ["failed"] * 5
    run = read_run(study.runs_folder / runs[0].id)
    assert "search for the learning rate" in str(run.error)
    assert run.environment["attempts"] == 0  # it was not its fault, and not tried
    make(study, rate_engine({**none, 0.02: (0.1, 0.9)}), [search])
    engine = Engine()
    assert [e.kind for e in make(study, engine, runs)] == ["done"] * 4
    assert {training.rate for training, _, _ in engine.calls} == {0.02}


def test_subsets_are_split_two_to_one() -> None:
    y = np.random.default_rng(0).integers(0, 4, 90)
    rows = np.random.default_rng(1).permutation(90)[:61]
    two, one = split_in_three(rows, y, 3)
    assert sorted([*two, *one]) == sorted(rows)
    assert len(one) == 20
    share = np.bincount(y[one], minlength=4) / np.bincount(y[rows], minlength=4)
    assert np.abs(share - 1 / 3).max() < 0.1
    assert [r.tolist() for r in split_in_three(rows, y, 3)] == [two.tolist(), one.tolist()]
    assert split_in_three(rows, y, 4)[1].tolist() != one.tolist()


def test_a_full_disk_stops_everything_and_leaves_nothing_half(
    tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, left = made_study(tmp_path), 9
    from curvewise.store import write as _files

    whole = _files._write

    def write(path: Path, data: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            path.write_bytes(data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        whole(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(_files, "_write", write)
        with pytest.raises(StoreError, match=r"No space left .* continue where it stopped"):
            make(study, Engine())
    assert len(list_runs(study.runs_folder)) < 4
    assert not list((study.runs_folder / ".partial").iterdir())
    assert not list((study.runs_folder / ".claims").glob("[!.]*"))
    make(study, Engine())
    assert len(list_runs(study.runs_folder)) == 4


def test_a_missing_package_is_not_the_fault_of_a_run(
    tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = made_study(tmp_path, Learner(estimator="sklearn.svm:SVC"))

    def refuse(study: Study, job: Job) -> Trained:
        raise MissingDependencyError("scikit-learn is not installed")

    monkeypatch.setattr("curvewise.study.run.maker.fit_estimator", refuse)
    with pytest.raises(MissingDependencyError):
        make(study, Engine())
    assert list_runs(study.runs_folder) == []


def test_estimators_without_probabilities_have_no_loss(tmp_path: Path, make: Any) -> None:
    study = made_study(tmp_path, Learner(estimator="sklearn.svm:LinearSVC"))
    assert {e.kind for e in make(study, Engine())} == {"done"}
    run = list_runs(study.runs_folder)[0]
    assert "loss" not in run.metrics
    assert 0 <= run.metrics["error"] < 0.5


def test_an_error_without_end_is_shortened(tmp_path: Path, make: Any) -> None:
    study = made_study(tmp_path)
    long = "x" * 10**6 + "the end"
    make(study, Engine(lambda *_: Trained(error=long)))
    error = str(list_runs(study.runs_folder)[0].error)
    assert len(error) < 30_000
    assert error.endswith("the end")


def test_the_real_engine_alone_and_together(tmp_path: Path) -> None:
    learner = Learner(training=Training("mlp", rate=(0.1, 0.01), epochs=2, batch=16))
    design = Design(sizes=[30], folds=2, seeds=2)
    stores = []
    for name, chunk in (("a", 1), ("b", 8)):
        study = Study(blobs(), {"it": learner}, design, store=tmp_path / name)
        with Claims(study.runs_folder) as claims:
            for start in range(0, len(study.jobs), chunk):
                some = study.jobs[start : start + chunk]
                Maker(study, claims=claims, tell=lambda event: None).make(some)
        runs = list_runs(study.runs_folder)
        assert {r.status for r in runs} == {"done"}
        stores.append({r.id: (r.arrays, {k: v for k, v in r.metrics.items() if k != "seconds"}) for r in runs})
    assert len(stores[0]) == 5
    assert stores[0] == stores[1]


def test_finite_metrics_only(tmp_path: Path, make: Any) -> None:
    study = made_study(tmp_path)
    make(study, Engine(lambda *_: Trained(metrics={"train_loss": math.nan}, error="diverged")))
    assert set(list_runs(study.runs_folder)[0].metrics) == {"seconds"}


@pytest.mark.parametrize("doubts", [(), ("A kernel was used that does not repeat.",)])
def test_records_say_whether_bits_are_promised(tmp_path: Path, make: Any, doubts: tuple[str, ...]) -> None:
    study = made_study(tmp_path)

    class Doubtful(Engine):
        def __call__(self, *arguments: Any, **options: Any) -> Iterator[tuple[int, Trained]]:
            for i, trained in super().__call__(*arguments, **options):
                yield i, replace(trained, doubts=doubts)

    make(study, Doubtful())
    for run in list_runs(study.runs_folder):
        record = read_run(study.runs_folder / run.id)
        assert record.environment["same_bits"] == (not doubts)
        assert record.environment["cpu"] == describe_cpu()
        assert set(doubts) <= set(record.notes)


def test_a_source_line_that_names_memory_is_not_about_memory(tmp_path: Path, make: Any) -> None:
    study = made_study(tmp_path)

    def fill(assignment: Assignment, at_once: int | None) -> Any:
        raise ValueError("3")  # neither a MemoryError nor a CUDA error: out of memory

    engine = Engine(fill)
    events = make(study, engine, device="cuda:0")
    assert [e.kind for e in events] == ["failed"] * len(study.jobs)
    assert {in_flight for _, _, in_flight in engine.calls} == {None}


def test_errors_are_told_apart_by_class_and_message() -> None:
    class ArrayMemoryError(MemoryError): ...

    for error in (
        torch.OutOfMemoryError("CUDA out of memory"),
        ArrayMemoryError("Unable to allocate"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be …"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
    ):
        assert ran_out_of_memory(error)
        assert not spoilt_device(error)
    for error in (
        ValueError("MemoryError"),
        ValueError("CUDA error: out of memory"),
        RuntimeError("Caught an error in a worker:\n  raise MemoryError  # CUDA error"),
    ):
        assert not ran_out_of_memory(error)
        assert not spoilt_device(error)
    assert spoilt_device(torch.AcceleratorError("CUDA error: device-side assert triggered"))


def test_what_spoils_a_gpu_is_no_failure_of_a_run(tmp_path: Path, make: Any) -> None:
    study = made_study(tmp_path)
    error = RuntimeError("CUDA error: an illegal memory access was encountered")
    with pytest.raises(SpoiltDeviceError, match="illegal memory access"):
        make(study, Engine(lambda *_: error), device="cuda:0")
    assert list_runs(study.runs_folder) == []
    make(study, Engine(lambda *_: error), device="cpu")
    assert {r.status for r in list_runs(study.runs_folder)} == {"failed"}


def test_groups_share_learner_settings_and_size(tmp_path: Path) -> None:
    design = Design(sizes=[10, 20], folds=2, seeds=2, grid={"rate": [0.1, 0.2]})
    study = made_study(tmp_path, design=design)
    groups: dict[str, list[Job]] = {}
    for job in study.jobs:
        groups.setdefault(group_of(job), []).append(job)
    assert [len(g) for g in groups.values()] == [4, 4, 4, 4]
    for group in groups.values():
        assert len({(j.n, str(j.learner.training)) for j in group}) == 1
    other = replace(study.jobs[0], needs="x")
    assert group_of(other) != group_of(study.jobs[0])


@pytest.mark.parametrize("architecture", ["mlp", "linear"])
def test_runs_of_several_sizes_are_the_same_together_and_one_by_one(tmp_path: Path, architecture: str) -> None:
    training = Training(architecture, rate=0.1, epochs=3, batch=16, warmup=0.3)
    design = Design(sizes=[8, 30, 60], folds=2)  # 8: a batch of its own size
    kept = []
    for name in ("together", "alone"):
        learner, keep = Learner(training=training), Keep(checkpoints="end")
        study = made_study(tmp_path / name, learner, design=design, keep=keep)
        parts = [study.jobs] if name == "together" else [[job] for job in study.jobs]
        with Claims(study.runs_folder) as claims:
            for jobs in parts:
                Maker(study, claims=claims, tell=lambda event: None).make(jobs)
        files = study.runs_folder.glob("*/*.safetensors")
        kept.append({f.parent.name: f.read_bytes() for f in files})
    assert len(kept[0]) == 6
    assert kept[0] == kept[1]


@pytest.mark.parametrize("given", [Trained(error="bad luck"), ValueError("bad luck")])
def test_a_failure_does_not_replace_what_was_done(tmp_path: Path, make: Any, given: Any) -> None:
    study = made_study(tmp_path)
    make(study, Engine())
    before = {p: p.read_bytes() for p in study.runs_folder.glob("*/*") if p.is_file()}
    more = made_study(tmp_path, keep=Keep(probabilities=True))
    events = make(more, Engine(lambda *_: given))
    assert [e.kind for e in events] == ["failed"] * 4
    assert all(e.text.startswith(STAYS) and "bad luck" in e.text for e in events)
    assert {p: p.read_bytes() for p in study.runs_folder.glob("*/*") if p.is_file()} == before
    assert {e.kind for e in make(more, Engine())} == {"done"}


def test_code_that_would_end_the_process_fails_its_run_alone(tmp_path: Path, make: Any) -> None:
    study = made_study(tmp_path)
    bad = study.jobs[1]

    def leave(assignment: Assignment, _: int | None) -> None:
        if (assignment.init, assignment.rows.tolist()) == (bad.seeds["init"], study.rows_of(bad.n, bad.fold).tolist()):
            raise SystemExit("no licence")

    events = {e.id: e.kind for e in make(study, Engine(leave))}
    assert events == {j.id: "failed" if j is bad else "done" for j in study.jobs}
    assert "SystemExit: no licence" in str(read_run(study.runs_folder / bad.id).error)


def test_checkpoints_are_complete_or_made_again(tmp_path: Path, make: Any) -> None:
    end, drops = (made_study(tmp_path, keep=Keep(checkpoints=c)) for c in ("end", "drops"))
    job, engine = end.jobs[0], Engine()
    make(end, engine, [job])

    def state(study: Study) -> str:
        return look_up(study.runs_folder, job, study.label_digests(), study.keep)[0].state

    assert (state(end), state(drops)) == ("done", "outdated")
    make(drops, engine, [job])  # whose rate never drops, so that there are no more files
    assert (state(end), state(drops)) == ("done", "done")
    (end.runs_folder / job.id / "end.safetensors").unlink()
    assert state(end) == "outdated"


def test_a_run_made_again_holds_what_it_held(tmp_path: Path, make: Any) -> None:
    first = {"x": Evaluation(blobs(60))}
    rich = made_study(tmp_path, keep=Keep(probabilities=True), evaluate=first)
    make(rich, Engine(), rich.jobs[:1])
    other = made_study(tmp_path, evaluate={"y": Evaluation(blobs(63))})
    events = make(other, Engine())
    run, fresh = (read_run(other.runs_folder / j.id) for j in other.jobs[:2])
    assert {"probabilities", "probabilities.y"} <= set(run.arrays)
    assert set(fresh.arrays) == {"predictions", "predictions.y"}
    assert "without the evaluation sets x" in " ".join(run.notes)
    assert fresh.notes == ()
    assert [e.id for e in events if e.text] == [run.id]


def test_an_interrupt_leaves_no_writer_behind() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), []

    def write() -> None:
        begun.set()
        go_on.wait(300)
        done.append(1)

    class Interrupted(Future[None]):
        """Waiting for it is interrupted twice."""

        left = 2

        def exception(self, timeout: float | None = None) -> BaseException | None:
            Interrupted.left -= 1
            if Interrupted.left >= 0:
                raise KeyboardInterrupt
            go_on.set()
            return super().exception(timeout)

    writers = Writers()
    writers.submit(write)
    writers._waiting[0].__class__ = Interrupted
    assert begun.wait(300)
    with pytest.raises(KeyboardInterrupt):
        writers.__exit__(None, None, None)
    assert done == [1]
