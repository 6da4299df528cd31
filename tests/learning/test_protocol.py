"""The protocol of Hoiem et al. 2021: a small run of the recipe, plans at full scale, the content of every figure."""

from __future__ import annotations

import csv
import tomllib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curvewise as cw

pytest.importorskip("torch")
pytest.importorskip("sklearn")

N5 = np.array([25.0, 50.0, 100.0, 200.0, 400.0])
TINY = {"architecture": "mlp", "width": 32, "depth": 1, "epochs": 6, "rate": 0.03}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> cw.Study:
    """The recipe on 800 digits, with a network of 32 units: fine-tuning, a linear classifier, an ensemble."""
    digits = cw.load_dataset("digits")
    study = cw.study_recipe(
        "learning",
        cw.study.Dataset(digits.x[:800], digits.y[:800]),
        protocol="small",
        augmentation=["translate:1"],
        learners={
            "scratch": TINY | {"rate": [0.003, 0.03]},
            "scratch-linear": TINY,
            "plain": TINY | {"augmentation": []},
            "ensemble": TINY | {"members": 2, "epochs": 2},
        },
        folder=tmp_path_factory.mktemp("protocol"),
    )
    assert study.run(workers=0, progress=False, device="cpu").failures == ()
    return study


@pytest.fixture(scope="module")
def curves(ran: cw.Study) -> cw.learning.LearningCurves:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)  # six epochs on 640 digits are no good curve
        return cw.fit_learning_curves(ran.measurements())


@pytest.fixture(scope="module")
def printed(data_dir) -> dict[str, dict[str, dict[str, Any]]]:
    """Table 3 by group and name."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with (data_dir / "papers_tables" / "hoiem2021_table3.csv").open() as handle:
        for row in csv.DictReader(handle):
            found.setdefault(row["group"], {})[row["name"]] = row
    return found


def fit_printed(rows: dict[str, dict[str, Any]], **options: Any) -> cw.learning.LearningCurves:
    """Curves through the errors that the printed parameters stand for, at the sizes of CIFAR-100, with little noise."""
    columns: dict[str, list[Any]] = {k: [] for k in ("learner", "n", "error", "runs", "variance")}
    for name, row in rows.items():
        alpha, eta, gamma = (float(row[k]) for k in ("alpha", "eta", "gamma"))
        for n in N5:
            values = (name, n, alpha + eta * n**gamma, 4, 0.02)
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)  # some of the paper's curves have α < 0
        return cw.fit_learning_curves(columns, unit="percent", at=400, **options)


def plan(data: Any = "cifar100", **changes: Any) -> cw.Study:
    return cw.study_recipe("learning", data, **changes)


# ---- The protocol


def test_the_recipe_runs_as_the_paper_trains(ran):
    frame = ran.frame()
    runs = frame.groupby(["learner", "n"]).size().unstack()
    assert runs.loc["scratch"].to_dict() == {160: 4, 320: 2, 640: 1}
    for n in (160, 320):
        rows = np.concatenate([s.indices for s in ran.partition.at(n)])
        assert len(np.unique(rows)) == len(rows) == 640, "the subsets of a size are a partition of the training part"
    # One rate is searched for, on one subset, and taken for all.
    (search,) = [job for job in ran.jobs if job.is_search]
    assert search.learner.training.rates == (0.003, 0.03)
    assert frame.loc[frame["learner"] == "scratch", "rate"].nunique() == 1
    # Three stretches, the schedule found on two thirds, are followed on the whole subset.
    alone = frame[frame["learner"] == "scratch"]
    epochs = alone[["epochs_1", "epochs_2", "epochs_3"]].sum(axis=1)
    assert (alone["steps"] == np.ceil(epochs * alone["n"] / 64)).all()
    patience = {job.learner.training.patience_for(job.n, 10) for job in ran.jobs if not job.is_search}
    assert sorted(patience) == pytest.approx([15, 15 * 2**0.5, 30])


def test_parameters_are_those_trained(ran):
    """As the paper counts: all weights, those of the last layer for a linear classifier, all members together."""
    one = 64 * 32 + 32 + 32 * 10 + 10
    assert ran.parameters() == {"scratch": one, "scratch-linear": 330, "plain": one, "ensemble": 2 * one}
    # Published: 11,689,512 with 1,000 classes and a stem of 7 × 7; here 100 and 3 × 3. Table 3 has 51K for the layer.
    images = cw.study.Dataset(np.zeros((500, 3, 32, 32), np.uint8), np.arange(500) % 100)
    found = plan(images, sizes=[1.0], folds=1).parameters()
    network = 11_689_512 - 900 * 513 - 64 * 3 * (7 * 7 - 3 * 3)
    assert found == {"scratch": network, "scratch-linear": 51_300, "ensemble": 6 * network}


def test_a_protocol_that_is_not_known_is_refused():
    with pytest.raises(cw.InputError, match="protocol='imagenet': use one of cifar, places, small"):
        plan(protocol="imagenet")
    with pytest.raises(cw.InputError, match="weights names ensemble, which the recipe trains anyway"):
        plan(weights={"ensemble": "e.pt"})
    with pytest.raises(cw.InputError, match="weights=3: give the path of a file, or a table"):
        plan(weights=3)


def test_the_linearised_asymptote_is_error_less_reliance(golden):
    curve = cw.fit_learning_curve(*golden["pretr_ft"], unit="percent")
    (found,) = curve.linearised_at(float("inf"), at=400)
    assert found == pytest.approx(curve.error_at(400) - curve.data_reliance_at(400))


def test_gamma_far_from_a_half_is_a_sign_of_bad_hyperparameters():
    n = np.repeat(N5, 2)
    error = 10 + 40 * n**-0.05 + np.tile([-0.01, 0.01], 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cw.CurvewiseWarning)
        curve = cw.fit_learning_curve(n, error, unit="percent")
    assert any("check that the hyperparameters suit all sizes" in text for text in curve.warnings)


# ---- Figures


def test_calls_of_the_page():
    """The rows of docs/papers/learning.toml that plan a study, word for word."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "papers" / "learning.toml").read_text("utf-8")
    rows = {r["where"]: r["call"] for r in tomllib.loads(text)["item"] if r.get("call", "").startswith("cw.study_rec")}
    found = {where: eval(call, {"cw": cw}).learners for where, call in rows.items()}
    pretrained = found["Section 4.2, figure 4, pretrained"]
    assert {k: v.training.momentum for k, v in pretrained.items()}["plain"] == 0
    assert {v.training.weights for v in pretrained.values()} == {"resnet18.pt"}
    linear = found["Section 4.2, figures 7d and 7e"]
    assert {v.training.trained for v in linear.values()} == {"head"}
    assert list(linear) == list(found["Section 4.2, figures 7a and 7b, all networks"])
    assert {"resnet34", "wide_resnet101_2"} < set(linear)
    assert found["Appendix A, size of images"]["pretrained"].training.augmentation == ("translate:28",)


def test_figure_1_curves_with_their_error_and_reliance(ran, curves):
    measured = ran.measurements()
    ax = cw.plot_learning_curves(curves, x="sqrt")
    named = [t.get_text() for t in ax.texts]
    table = curves.frame().set_index("learner")
    for curve in curves:
        assert any(text.startswith(curve.learner) for text in named)
        assert table.loc[curve.learner, ["e_N", "beta_N"]].tolist() == pytest.approx([curve.e_N, curve.beta_N])
    # (a) is the mean at the largest size, one point of the curve.
    full = measured.of("scratch")
    assert curves["scratch"].mean[-1] == full.error[full.n == 640].mean()
    # (d): a quarter of the data costs β_N, to first order.
    c = curves["plain"]
    assert c.linearised_at(160)[0] == pytest.approx(c.e_N + c.beta_N)


def test_figure_2_is_a_table_of_forms_and_weights(golden):
    every = [(n, e, np.full(len(n), name)) for name, (n, e) in golden.items()]
    n, error, names = (np.concatenate(part) for part in zip(*every, strict=True))
    result = cw.leave_one_size_out(n, error, learner=names, unit="percent")
    columns = result.columns()
    assert list(columns)[:8] == ["form", "weights", "r_squared", *(f"rmse_{s:g}" for s in N5)]
    rows = list(zip(result.forms, result.weights, strict=True))[:6]
    paper = [("power", "size"), ("power", "run"), ("power", "none"), ("sqrt", "size"), ("sqrt2", "size")]
    assert rows == [*paper, ("power2", "size")]
    # Over 16 curves the paper finds 1.04 on average and R² = 0.998; four of them are published.
    assert result.r_squared[0] > 0.98
    assert result.average[0] == pytest.approx(1.04, abs=0.3)
    assert result.average[0] < result.average[3], "γ = −½ predicts worse"


def test_figure_3_architectures(printed):
    networks = ("alexnet", "resnet50", "resnext50_32x4d", "resnet101")
    vgg = {"architecture": "vgg16", "batch_norm": True, "classifier": "full", "weights": "vgg16_bn.pt"}
    others = {name: {"architecture": name, "weights": f"{name}.pt"} for name in networks}
    found = {k: v.training for k, v in plan(learners={"vgg16": vgg} | others).learners.items()}
    assert [k.architecture for k in found.values()] == ["vgg16", *networks]
    assert found["vgg16"].options == {"batch_norm": True, "classifier": "full"}
    assert {(k.optimiser, k.batch, k.schedule) for k in found.values()} == {("ranger", 64, "searched")}
    ranking = cw.rank_learners(fit_printed(printed["ARCHITECTURES_IN2CIFAR"]), at=400)
    assert ranking.learners == ("ResNet-101", "ResNeXt-50(32x4d)", "ResNet-50", "VGG-16(bn)", "AlexNet")


def test_figure_4_optimisers():
    ways = {"ranger": {}, "adam": {"optimiser": "adam"}, "momentum": {"optimiser": "sgd"}}
    study = plan("cifar10", learners=ways | {"sgd": {"optimiser": "sgd", "momentum": 0.0}})
    found = {name: (k.training.optimiser, k.training.momentum) for name, k in study.learners.items()}
    assert found == {"ranger": ("ranger", 0.9), "adam": ("adam", 0.9), "momentum": ("sgd", 0.9), "sgd": ("sgd", 0.0)}
    assert all(k.training.rates == study.learners["ranger"].training.rates for k in study.learners.values())


def test_figure_5_pretraining_lowers_error_and_reliance(golden):
    a, b = (cw.fit_learning_curve(*golden[k], unit="percent", learner=k) for k in ("pretr_ft", "no_pretr_ft"))
    found = cw.compare_learning_curves(a, b, at=400)
    assert found.verdict == "a better"
    assert found.error_difference.estimate == pytest.approx(18.86 - 27.91, abs=0.02)
    assert found.data_reliance_difference.estimate == pytest.approx(7.28 - 18.23, abs=0.02)
    assert found.data_reliance_difference.high < 0


def test_figure_5b_holds_the_largest_size_out(golden):
    n, error = golden["no_pretr_ft"]
    curve = cw.fit_learning_curve(n[n < 400], error[n < 400], unit="percent")
    ax = cw.plot_learning_curves(curve, held_out=(n[n == 400], error[n == 400]))
    (hollow,) = [c for c in ax.collections if c.get_gid() == "curvewise-held-out"]
    assert hollow.get_offsets().tolist() == [[400, error[n == 400][0]]]


def test_figure_6_sources_of_weights(printed):
    study = plan(weights={"imagenet": "i.pt", "places": "p.pt", "moco": "m.pt"})
    starts = {k: v.training.weights for k, v in study.learners.items() if "linear" not in k}
    assert starts == {"scratch": None, "imagenet": "i.pt", "places": "p.pt", "moco": "m.pt", "ensemble": "i.pt"}
    frame = fit_printed(printed["PRETRAIN_IN_PLACES_MOCO2CIFAR"]).frame().set_index("learner")
    assert frame["beta_N"].idxmin() == "Pretr on Imagenet"
    assert frame["beta_N"].idxmax() == "No Pretr"


def test_figure_7_depth_width_and_ensembles(printed):
    sizes = {"deep": {"architecture": "resnet101"}, "wide": {"architecture": "wide_resnet50_2"}}
    ensembles = {
        "6 x 18": {"architecture": "resnet18", "members": 6},
        "3 x 50": {"architecture": "resnet50", "members": 3},
    }
    study = plan(learners=sizes | ensembles)
    assert [k.members for k in study.learners.values()] == [1, 1, 6, 3]
    # (f): the table of e_N and β_N, as printed.
    rows = printed["WIDTH_FT"] | printed["ENSEMBLE"]
    table = fit_printed(rows).frame().set_index("learner")
    for name, row in rows.items():
        assert table.loc[name, "e_N"] == pytest.approx(float(row["e_400"]), abs=0.05)
        assert table.loc[name, "beta_N"] == pytest.approx(float(row["beta_400"]), abs=0.25)
    # Six ResNet-18 have about as many weights as one wide ResNet-50, and a larger error.
    assert table.loc["6xResnet-18", "e_N"] > table.loc["2xWide-Resnet-50", "e_N"]


def test_figure_8_augmentation_is_worth_a_multiple_of_the_data(ran, printed):
    assert {k: v.training.augmentation for k, v in ran.learners.items()}["plain"] == ()
    curves = fit_printed(printed["AUG_NO_PRETR_FT"])
    found = cw.compare_learning_curves(curves["Resnet-18 w/ Data-Aug"], curves["Resnet-18 w/o Data-Aug"], at=100)
    table = found.equivalence_at(N5)
    assert table["factor"][2] == pytest.approx(found.data_equivalence.estimate)
    # e_a(n) = e_b(kn), solved for k with the printed parameters.
    a, b = (
        [float(printed["AUG_NO_PRETR_FT"][k][p]) for p in ("alpha", "eta", "gamma")]
        for k in ("Resnet-18 w/ Data-Aug", "Resnet-18 w/o Data-Aug")
    )
    exact = ((a[0] + a[1] * N5 ** a[2] - b[0]) / b[1]) ** (1 / b[2]) / N5
    np.testing.assert_allclose(table["factor"], exact, rtol=0.05)
    assert (table["low"] < table["factor"]).all()
    # The paper says 1.8 throughout; its own fits go from 1.6 at n = 25 to 2.7 at 400.
    assert 1.5 < exact.min() < 1.8 < exact.max() < 2.8


def test_figure_9_sampled_curves(golden):
    n, error = golden["no_pretr_ft"]
    result = cw.learning.measure_stability(n, error, unit="percent", sizes=[50, 100, 200, 400], draws=100)
    assert result.forms == ("power", "sqrt", "power2", "sqrt2")
    sampled = result.sampled_at([25, 400, np.inf])
    np.testing.assert_allclose(sampled[:, :, 1].std(axis=1), result.error_std)
    np.testing.assert_allclose(sampled[:, :, 2].std(axis=1), result.alpha_std)
    assert result.alpha_std[0] > 3 * result.error_std[0], "the asymptote varies widely"
    ax = result.plot(kind="curves")
    (lines,) = [c for c in ax.collections if c.get_gid() == "curvewise-sampled"]
    assert len(lines.get_segments()) == 400
    assert len(ax.get_legend().get_texts()) == 5


def test_figure_10_small_data_sets():
    small = plan(protocol="small")
    assert (small.design.sizes, small.design.folds, small.design.test) == ((0.25, 0.5, 1.0), (4, 2, 1), 0.2)
    for learner in small.learners.values():
        assert (learner.training.patience, learner.training.patience_n) == (15, "largest")


# ---- Tables


def test_table_2_two_curves_in_three_numbers(curves):
    frame = curves.frame()
    for _, row in frame.iterrows():
        curve = curves[row["learner"]]
        # With N, these give the curve back.
        eta = row["beta_N"] / (-2 * row["gamma"] * row["N"] ** row["gamma"])
        alpha = row["e_N"] - eta * row["N"] ** row["gamma"]
        if not curve.all_warnings:
            assert (alpha, eta) == pytest.approx((curve.alpha, curve.eta))
