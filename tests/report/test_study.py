"""The report of a study: what it asks, what it answers, and what it says of the runs."""

from __future__ import annotations

import json
import re
import shlex
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.cli.app import main
from curvewise.errors import CurvewiseWarning, neutral
from curvewise.learning.partition import partition_training_set
from curvewise.report.content import WAYS
from curvewise.report.lenses import StudyFindings
from curvewise.report.page import page_of, write_report
from curvewise.report.results import results_report
from curvewise.report.study import BEST, _lowest, advise_folds, study_report
from curvewise.stats import wilson_interval
from curvewise.study import Design, Learner, Study, load_study
from curvewise.study import status as standings
from curvewise.study.status import planned_runs
from curvewise.text import format_interval, format_value


def test_one_training_subset_says_why_there_is_no_answer_and_what_to_do(ran_report, ran):
    assert ran_report.question == BEST
    assert ran_report.answer[0].startswith("The runs cannot show which learner is best.")
    assert "one training subset per size" in ran_report.answer[0]
    assert "set folds = 2 or more" in ran_report.answer[0]
    frame = load_study(ran).frame().query("n == 200")
    lowest = frame.groupby("learner")["error"].mean().idxmin()
    assert ran_report.answer[1].startswith(f"{lowest}: error ")
    assert ran_report.figure.name == "curves"
    assert ran_report.figure.chart["series"][0]["name"] == "bayes"


def test_two_learners_are_compared_and_the_numbers_are_those_of_the_lens(several, tmp_path):
    found = study_report(several)
    comparison = cw.compare_learning_curves(*cw.fit_learning_curves(several.measurements(seeds="mean")))
    assert found.question == BEST
    assert comparison.sentences().startswith(found.answer[0])
    assert "[" in found.answer[0]  # never without its interval
    undecided = any(text.startswith("To decide, ") for text in found.answer)
    assert undecided == (comparison.verdict == "undecided")


def test_errors_are_the_means_over_the_runs(ran_report, ran):
    frame = load_study(ran).frame()
    table = next(t for s in ran_report.sections for t in s.tables if t.name == "errors").columns
    expected = frame.groupby(["learner", "n"])["error"].agg(["size", "mean", "std"]).reset_index()
    assert table["learner"] == expected["learner"].tolist()
    assert table["n"] == expected["n"].tolist()
    assert table["runs"] == expected["size"].tolist()
    np.testing.assert_allclose(table["error"], expected["mean"])
    np.testing.assert_allclose(table["std"], expected["std"], atol=1e-12)


def test_what_the_curves_rest_on_is_checked_as_the_lens_does(ran_report, several):
    assert "variance_check" not in ran_report.found  # one subset of each size
    report = study_report(several)
    curves = list(report.found["curves"])
    known = cw.learning.check_variance_model(curves)
    (section,) = [s for s in report.sections if s.title == "Can the curves be trusted?"]
    assert section.text == (known.sentences(),)
    assert [f.name for f in section.figures] == ["variance-check"]
    variance, few = section.tables
    np.testing.assert_allclose(variance.columns["measured"], np.sqrt(known.measured))
    assert all(str(cell.text).endswith("%") for cell in variance.readable()["measured"])
    assert few.columns["learner"] == [c.learner for c in curves]
    one = curves[0]
    drawn = cw.learning.measure_stability(one.n, one.mean, runs=one.runs, variance=one.variance, forms=["power"])
    assert few.columns["e_N_std"][0] == drawn.error_std[0]


def test_every_warning_of_every_result_stands_on_the_first_screen(ran_report):
    found = ran_report.found
    for curve in found["curves"]:
        assert all(f"{curve.learner}: {neutral(w, **WAYS)}" in ran_report.warnings for w in curve.all_warnings)
    for label, result in found["variance"].items():
        assert all(f"{label}: {neutral(w)}" in ran_report.warnings for w in result.all_warnings)
    assert len(set(ran_report.warnings)) == len(ran_report.warnings) > 0


def test_the_runs_are_those_of_the_store(ran_report, ran):
    study = load_study(ran)
    columns = ran_report.runs.columns
    assert columns["run"] == [job.id for job in study.jobs]
    record = json.loads((study.runs_folder / columns["run"][7] / "record.json").read_text())
    assert columns["error"][7] == record["metrics"]["error"]
    assert columns["init seed"][7] == record["coordinates"]["init_seed"]
    assert "order seed" not in columns  # which follows the other
    assert set(columns["status"]) == {"done"}
    assert "30 runs: 30 finished, 0 remaining" in ran_report.runs.text[0]


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A finished study of two learners on three subsets of each size."""
    return small(tmp_path_factory.mktemp("several"), ["bayes", "tree"], [50, 100, 200], folds=3)


def test_the_commands_of_a_report_make_it_again(ran, tmp_path, monkeypatch, capsys):
    report = study_report(load_study(ran), file=ran, form="sqrt")
    # As someone would who has only the page: the file from it, and its commands, one by one.
    (tmp_path / report.reproduce.file_name).write_text(report.reproduce.file)
    monkeypatch.chdir(tmp_path)
    for line in report.reproduce.command.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "curvewise"
        more = ["--workers", "0"] if arguments[1] == "run" else ["--format", "html"]
        assert main([*arguments, *more]) == 0
    capsys.readouterr()
    written = (tmp_path / "tiny-report" / "report.html").read_text()

    def without_place(page):
        for aside in (
            r'"seconds":\{"values":\[[^]]*\]',
            r"The stored runs took .*? m?s\.",
            "<dt>Commit</dt><dd>.*?</dd>",
        ):
            page = re.sub(aside, "", page)
        return page.replace(str(ran.parent), "").replace(str(tmp_path), "")

    assert without_place(page_of(report)) == without_place(written)


def test_what_it_takes_to_make_it_again(ran_report, ran):
    reproduce = ran_report.reproduce
    assert "curvewise study run study.toml" in reproduce.command
    assert reproduce.file == ran.read_text()
    assert load_study(ran).data_digest in reproduce.facts["Data"]
    assert f"numpy {np.__version__}" in reproduce.facts["Packages"]
    again = study_report(load_study(ran)).reproduce  # without its file, as it would be written
    assert '[learners.bayes]\nestimator = "sklearn.naive_bayes:GaussianNB"' in again.file
    assert again.command == reproduce.command
    assert again.file_name == "study.toml"


def test_results_show_the_script_that_made_them(curves, tmp_path):
    page = write_report(curves, tmp_path / "a.html", code="import curvewise\nx = 1 < 2\n").read_text()
    assert "import curvewise\nx = 1 &lt; 2" in page
    assert "run the script or notebook again" in write_report(curves, tmp_path / "b.html").read_text()


def test_curves_of_one_run_per_size_say_so_first():
    with pytest.warns(cw.CurvewiseWarning):
        curve = cw.fit_learning_curve([50, 100, 200, 400], [0.3, 0.25, 0.21, 0.19])
    assert results_report(curve).answer[0].startswith("One run per size: the spread between runs is unknown.")


def test_the_store_is_read_once(ran, monkeypatch):
    looked = []
    look_up = standings.look_up
    monkeypatch.setattr(standings, "look_up", lambda *given: looked.append(given[1].id) or look_up(*given))
    study = load_study(ran)
    study_report(study)
    assert sorted(looked) == sorted(job.id for job in study.jobs)
    study.status()  # and anew, once the report is done
    assert len(looked) == 60


@pytest.mark.parametrize("keep", [0, 12])
def test_an_unfinished_study_says_what_is_missing(copied, keep, tmp_path):
    study = copied(keep=keep)
    found = study_report(study)
    assert any(f"30 runs: {keep} finished" in text for text in found.answer)
    assert (found.answer[0].startswith("No run has finished yet")) == (keep == 0)
    assert found.runs.columns["status"].count("missing") == 30 - keep
    assert f"30 runs: {keep} finished" in write_report(found, tmp_path / "a.html").read_text()


def test_a_study_that_failed_says_why(copied):
    study = copied(("max_features = 8", "max_features = -1"))
    study.run(workers=0, progress=False)
    found = study_report(study)
    assert found.question == "How does the error fall with data?"  # of the one that is left
    assert found.runs.failures[0].count == 15
    assert found.runs.failures[0].learners == ("tree",)
    reasons = found.runs.columns["reason"]
    assert sum("max_features" in str(reason) for reason in reasons) == 15
    assert any("15 of 30 runs failed (tree)" in w for w in found.warnings)


def test_learners_without_a_curve_are_named_and_one_that_is_ahead_too(tmp_path):
    near = {"n_neighbors": 60, "weights": "distance"}  # cannot be fitted to 50 examples
    learners = {
        "near": Learner(estimator="sklearn.neighbors:KNeighborsClassifier", options=near),
        "guess": Learner(estimator="sklearn.dummy:DummyClassifier"),
        "never": Learner(estimator="sklearn.dummy:DummyClassifier", options={"strategy": "none"}),
    }
    study = Study("digits", learners, Design(sizes=[50, 100, 200], folds=1), folder=tmp_path)
    study.run(workers=0, progress=False)
    found = study_report(study)
    lost = "near (runs at 2 sizes) and never (no finished run)"
    assert f"There is no curve for {lost}: a curve needs 3 sizes." in found.answer
    ahead = [text for text in found.answer if text.startswith("However, near has the lowest mean error")]
    errors = found.found["errors"]
    (value,) = (
        e for k, n, e in zip(errors["learner"], errors["n"], errors["error"], strict=True) if (k, n) == ("near", 200)
    )
    assert ahead == [f"However, near has the lowest mean error at n = 200: {format_value(value, 'fraction')}."]


def test_one_reason_with_many_paths_is_one_warning(tmp_path):
    command = f"{shlex.quote(sys.executable)} -c \"raise OSError('cannot write {{out}}')\""
    design = Design(sizes=[50, 100, 200], folds=1)
    good = Learner(estimator="sklearn.naive_bayes:GaussianNB")
    study = Study("digits", {"own": Learner(command=command), "bayes": good}, design, folder=tmp_path)
    study.run(workers=0, progress=False)
    found = study_report(study)
    assert [f.count for f in found.runs.failures] == [3]
    assert len([w for w in found.warnings if "cannot write" in w]) == 1
    assert any(w.startswith("3 of 6 runs failed (own): ") for w in found.warnings)
    assert not any("cannot write" in text for text in found.runs.text)  # the table has it


def test_a_damaged_record_is_counted_and_named(copied):
    study = copied()
    damaged = study.jobs[3]
    (study.runs_folder / damaged.id / "record.json").write_text('{"schema": 1')
    found = study_report(study)
    assert found.runs.columns["status"][3] == "damaged"
    assert any("damaged" in w for w in found.warnings)


def small(folder: Path, names: list[str], sizes: list[int], **design: int) -> Study:
    kinds = {
        "bayes": "sklearn.naive_bayes:GaussianNB",
        "tree": "sklearn.tree:ExtraTreeClassifier",
        "other": "sklearn.tree:DecisionTreeClassifier",
    }
    options = {"bayes": {}, "tree": {}, "other": {"max_features": 4}}
    study = Study(
        data="digits",
        learners={k: Learner(estimator=kinds[k], options=options[k]) for k in names},
        design=Design(sizes=sizes, **design),
        folder=folder,
    )
    study.run(workers=0, progress=False)
    return study


def test_many_seeds_of_one_learner_ask_how_much_runs_differ(tmp_path):
    found = study_report(small(tmp_path, ["tree"], [100], folds=1, seeds=6))
    assert found.question.startswith("How much do runs differ")
    assert found.figure.name.startswith("variance-tree")
    assert found.answer[0].startswith("Over 6 runs")


def test_many_sizes_of_one_learner_ask_how_error_falls(tmp_path):
    found = study_report(small(tmp_path, ["bayes"], [50, 100, 200], folds=2))
    assert found.question == "How does the error fall with data?"
    assert found.figure.name == "curves"


def test_learners_at_one_size_are_compared_by_their_runs(tmp_path):
    study = small(tmp_path, ["bayes", "tree", "other"], [100], folds=1, seeds=5)
    found = study_report(study)
    means = study.frame().groupby("learner")["error"].mean().sort_values()
    best, second = means.index[:2]
    assert found.question == BEST
    better = found.found["better"]
    assert better.difference.estimate == pytest.approx(means[best] - means[second])
    assert any("the two best of 3" in text for s in found.sections for text in s.text)


def test_few_runs_are_told_with_what_is_not_known(tmp_path):
    found = study_report(small(tmp_path, ["bayes", "tree"], [50, 100], folds=1))
    assert found.question == "Which errors did the learners reach?"
    assert found.answer[0].startswith("bayes: error")
    assert found.answer[0].endswith("one run.")
    assert "set seeds or folds to 2 or more" in found.answer[-1]


def test_the_interval_of_a_mean_is_that_of_student(tmp_path):
    stats = pytest.importorskip("scipy.stats")
    study = small(tmp_path, ["tree"], [50, 100], folds=1, seeds=3)
    values = study.frame().query("n == 100")["error"]
    low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    within = (values.mean(), max(low, 0.0), min(high, 1.0))  # errors are between 0 and 1
    assert format_interval(within, "fraction") in study_report(study).answer[0]


def test_runs_on_one_training_subset_are_not_taken_as_independent(tmp_path):
    stats = pytest.importorskip("scipy.stats")
    study = small(tmp_path, ["bayes"], [50, 100], folds=3, seeds=2)  # whose seeds change nothing
    values = study.frame().query("n == 100").groupby("fold")["error"].mean()
    low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    (said,) = study_report(study).answer
    assert format_interval((values.mean(), max(low, 0.0), min(high, 1.0)), "fraction") in said
    assert said.endswith("mean of 6 runs of 3 training subsets on this test set.")


def lowest(columns: dict[str, list[Any]], planned: list[Any], study: Any) -> str:
    errors = {"learner": ["bayes"], "n": [100], "runs": [2], "error": columns["error"], "std": columns["std"]}
    return _lowest(StudyFindings(study, planned, "power", study.measurements(), found={"errors": errors}))[0]


def test_only_runs_with_the_same_predictions_are_called_identical(tmp_path):
    seeds = small(tmp_path / "seeds", ["bayes"], [50, 100], folds=1, seeds=2)
    assert study_report(seeds).answer[0].endswith("2 runs with identical predictions.")
    folds = small(tmp_path / "folds", ["bayes"], [50, 100], folds=2)
    planned, examples = planned_runs(folds), len(folds.predictions(n=100).labels)
    low, high = (float(end) for end in wilson_interval(0.1, examples))
    said = lowest({"error": [0.1], "std": [0.0]}, planned, folds)
    assert "identical" not in said
    assert format_interval((0.1, low, high), "fraction") in said
    assert "[0.0, " in lowest({"error": [0.08], "std": [0.03]}, planned, folds)  # not below 0%


def test_weights_make_it_a_question_of_transfer(tmp_path):
    pytest.importorskip("torch")
    network = {"architecture": "mlp", "options": {"width": 8}, "epochs": 2.0, "rate": 0.1}
    from curvewise.nn.training import Training

    base = Study(
        data="digits",
        learners={"base": Learner(training=Training(**network))},
        design=Design(sizes=[200]),
        keep=cw.nn.Keep(checkpoints="end"),
        folder=tmp_path,
        name="base",
    )
    base.run(workers=0, device="cpu", progress=False)
    weights = next(iter(cw.study.checkpoint_files(base, "base", n=200).values()))
    start = Training(**network, weights=str(weights))
    study = replace(
        base,
        learners={"scratch": Learner(training=Training(**network)), "tuned": Learner(training=start)},
        design=Design(sizes=[50, 100, 200], folds=2),
        name="tuned",
    )
    study.run(workers=0, device="cpu", progress=False)
    found = study_report(study)
    assert found.question == "Does pretraining beat simple controls?"
    with pytest.warns(cw.CurvewiseWarning):
        risks = cw.measure_transfer(cw.study.transfer_risks(study, metric="error"))
    assert found.answer[0] == "No method is significantly better than scratch."
    assert risks.summary().startswith(found.answer[1])


def test_names_are_shown_and_not_run(copied, tmp_path):
    study = copied(('"tiny"', '"<script>alert(1)</script>"'), keep=0)
    text = write_report(study, tmp_path / "report.html").read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


@pytest.mark.parametrize("source", ["study.toml", 3, None])
def test_a_source_that_is_none(source, tmp_path):
    with pytest.raises(cw.InputError, match="give a result, several of them, evaluations"):
        write_report(source, tmp_path / "a.html")


def test_a_folder_that_is_not_there(ran, tmp_path):
    with pytest.raises(cw.InputError, match="there is no folder"):
        write_report(load_study(ran), tmp_path / "none" / "a.html")


def test_a_study_all_of_whose_runs_failed(tmp_path):
    tree = Learner(estimator="sklearn.tree:ExtraTreeClassifier", options={"max_features": -1})
    study = Study("digits", {"tree": tree}, Design(sizes=[50, 100, 200], folds=1), folder=tmp_path)
    assert study.run(workers=0, progress=False).failed == 3
    found = study_report(study)
    assert found.answer[0].startswith("Every run failed, most often with: ")
    assert "max_features" in found.answer[0]
    assert "--retry-failed" in found.answer[1]
    assert found.runs.failures[0].count == 3
    assert found.sections[0].tables[0].columns["failed"] == [1, 1, 1]


def test_a_form_that_is_not_known_leaves_the_curves_out_and_says_why(ran):
    found = study_report(load_study(ran), form="cubic")
    (text,) = [text for s in found.sections for text in s.text if text.startswith("No curves of form cubic")]
    assert "power2" in text  # the forms that there are


def test_the_advice_to_add_folds_fits_the_training_examples():
    def advice(total, sizes, folds):
        return advise_folds(partition_training_set(total, sizes, folds, stratify=False), sizes[-1])

    assert advice(1437, [60, 100], 3).endswith("add folds at n = 100: four times as many halve the interval.")
    assert advice(1437, [60, 240], 3).endswith("up to 5 training subsets fit without sharing examples.")
    full = advice(1437, [60, 120, 240, 470], 3)
    assert "more than 3 training subsets of 470 examples do not fit into 1,437 examples" in full
    assert "Add folds at smaller sizes (up to 11 at n = 120 and 5 at n = 240), or use a larger training set." in full
    assert advice(400, [100, 200], [4, 2]).endswith("without sharing. Use a larger training set.")


def test_the_advice_to_add_folds_agrees_with_the_warning_of_folds_that_share():
    with pytest.warns(CurvewiseWarning) as caught:
        partition = partition_training_set(1437, [100, 300, 1000], 5, stratify=False)
    told = [str(w.message) for w in caught]
    assert [text.partition(":")[0] for text in told] == ["n=300", "n=1000"]
    assert "without sharing, at most 4 fit at this size." in told[0]
    assert "without sharing, at most 1 fit at this size." in told[1]
    advice = advise_folds(partition, 1000)
    assert "more than 1 training subset of 1,000 examples does not fit into 1,437 examples" in advice
    assert "Add folds at smaller sizes (up to 14 at n = 100), or use a larger training set." in advice
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # none where no more than these are asked for
        partition_training_set(1437, [100, 300, 1000], [14, 4, 1], stratify=False)


def test_seeds_on_one_of_several_subsets_are_said_to_be(tmp_path, ran_report):
    found = study_report(small(tmp_path, ["tree"], [50, 100], folds=2, seeds=5))
    (section,) = [s for s in found.sections if s.title == "How much do runs differ?"]
    mean = found.found["errors"]["error"][-1]
    assert "only the runs of tree on the first of the 2 training subsets of 100 examples" in section.text[0]
    assert f"differs from the mean over all subsets ({mean:.1%})" in section.text[0]
    assert not any("one training set" in text for s in ran_report.sections for text in s.text)


def test_the_method_of_an_ensemble_is_no_power_law(several):
    sections = study_report(several, form="auto").sections
    methods = [text for s in sections for text in s.method if "curves" in text]
    assert methods
    assert not any("e(n) = α + ηn^γ" in text for text in methods)
    # The form is named once, not for each learner; and the table names the intervals of each column.
    curves = next(s for s in sections if s.title.startswith("How does the error"))
    assert [text for text in curves.text if "orm" in text] == [
        "Form auto: a mean of several laws, which are named under Methods and settings."
    ]
    title = "Error e_N and data-reliance β_N at the largest size N "
    assert curves.tables[0].title == f"{title}(95% prediction intervals; β_N: confidence, of form power)"
    assert any("e(n) = α + ηn^γ" in text for s in study_report(several).sections for text in s.method)
