"""The report of evaluations: the answers of the functions, ids of questions and never their texts."""

from __future__ import annotations

import json

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import quietly
from curvewise.report.page import report_of

pytest.importorskip("jinja2")


def made(models: int, samples: int = 1, questions: int = 60) -> cw.Evals:
    rng = np.random.default_rng(1)
    chance = 1 / (1 + np.exp(-(np.linspace(2, -1, models)[:, None] + 1.5 * rng.normal(size=questions))))
    scores = rng.random((models, questions, samples)) < chance[:, :, None]
    return cw.Evals(scores, tuple(f"m{i}" for i in range(models)), [f"id-{i}" for i in range(questions)])


def test_report_of_a_leaderboard(tmp_path) -> None:
    e = made(5, samples=3)
    report = report_of(e)
    ranking = cw.rank_models(e)
    assert report.question == "Which model is best?"
    assert report.answer[0].startswith(f"{ranking.models[0]} has the best mean score of 5 models on 60")
    titles = [s.title for s in report.sections]
    first, second = ranking.models[:2]
    assert titles == [
        "Which model is best?",
        f"Is {first} better than {second}?",
        "How reliable are the models?",
        "Which difference do these questions show?",
    ]
    assert [len(t) for t in report.sections[0].tables] == [5, 10, 20]
    assert report.sections[0].tables[1].columns["pvalue_holm"] == ranking.pairs()["pvalue_holm"].tolist()
    page = cw.write_report(e, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "How reliable are the models?" in page
    assert "McNemar" in page


def test_the_two_best_of_many_are_compared_as_the_ranking_does() -> None:
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(30):
        e = cw.Evals(
            rng.random((6, 100)) < np.array([0.8, 0.68, 0.66, 0.64, 0.6, 0.5])[:, None], tuple("abcdef"), range(100)
        )
        with quietly():
            ranking, alone = cw.rank_models(e), cw.compare_evals(e, *cw.rank_models(e).models[:2])
            section = report_of(e).sections[1]
        apart = ranking.pair_columns()["pvalue_holm"][0] < 0.05
        found.add((alone.pvalue < 0.05, apart))
        assert ("is significantly better" in " ".join(section.text)) == apart
        assert any("two best of 6 models" in text for text in section.warnings) == (alone.pvalue < 0.05 and not apart)
    assert found == {(False, False), (True, False), (True, True)}


def test_many_pairs_are_those_of_neighbours() -> None:
    table = report_of(made(12)).sections[0].tables[1]
    assert len(table) == 11
    assert "neighbours" in table.title
    assert table.columns["a"][1:] == table.columns["b"][:-1]


def test_one_model_has_a_score_and_no_ranking() -> None:
    report = report_of(made(1))
    assert [s.title for s in report.sections] == ["How well does the model score?"]
    assert "for m0" in report.answer[0]


def test_two_models_that_never_differ_have_no_plan() -> None:
    scores = np.tile([1.0, 0.0], 15)
    with pytest.warns(cw.CurvewiseWarning):
        cw.rank_models(cw.Evals(np.stack([scores, scores]), ("a", "b"), np.arange(30)))
    report = report_of(cw.Evals(np.stack([scores, scores]), ("a", "b"), np.arange(30)))
    assert len(report.sections) == 2
    assert any("same score on every question" in w for w in report.warnings)


def test_texts_of_questions_are_not_on_the_page(tmp_path) -> None:
    secret = "What is the airspeed velocity of an unladen swallow?"
    for model, right in (("a", 3), ("b", 5), ("c", 9), ("d", 11)):
        rows = [
            {
                "doc_id": i,
                "doc": {"question": f"{secret} {i}"},
                "target": f"answer {i}",
                "filter": "none",
                "metrics": ["acc"],
                "arguments": {"gen_args_0": {"arg_0": f"{secret} {i}"}},
                "resps": [[secret]],
                "acc": float((7 * i) % 12 < right),
            }
            for i in range(12)
        ]
        folder, date = tmp_path / "logs" / model, "2026-01-01T00-00-00.000000"
        folder.mkdir(parents=True)
        (folder / f"samples_trivia_{date}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        about = {"results": {"trivia": {}}, "configs": {}, "config": {"model": "hf"}, "model_name": model}
        (folder / f"results_{date}.json").write_text(json.dumps(about))
    # A table whose ids are the questions themselves has short hashes in their place.
    lines = [f'{m},"{secret} {i}",{(i + k) % 2}' for k, m in enumerate("abcd") for i in range(12)]
    (tmp_path / "table.csv").write_text("model,question,score\n" + "\n".join(lines) + "\n")
    for source in (tmp_path / "logs", tmp_path / "table.csv"):
        with quietly():
            e = cw.load_evals(source)
            page = cw.write_report(e, tmp_path / "page.html").read_text(encoding="utf-8")
        assert "unladen" not in page
        assert "Which model is best?" in page


@pytest.mark.filterwarnings("ignore::curvewise.CurvewiseWarning")
def test_any_name_is_escaped(tmp_path) -> None:
    e = made(3)
    names = ("<script>alert(1)</script>", "a & b", "x" * 200)
    hostile = cw.Evals(e.scores, names, e.questions)
    page = cw.write_report(hostile, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
