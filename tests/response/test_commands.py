"""``curvewise response`` as a user calls it, on networks and data of a few kinds."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy import stats
from sklearn.datasets import load_digits
from torch import nn

from curvewise.nn.architectures import ARCHITECTURES

FREE = ({0: torch.export.Dim.DYNAMIC},)


def pixels() -> tuple[np.ndarray, np.ndarray]:
    digits = load_digits()
    return (digits.images * (255 / 16)).round().astype(np.uint8)[:, None], digits.target


def trained(seed: int, steps: int) -> nn.Module:
    """A network of digits from 0 to 1 that is nearly always right after 60 steps."""
    x, y = torch.tensor(pixels()[0] / 255, dtype=torch.float32), torch.tensor(pixels()[1])
    torch.manual_seed(seed)
    network = ARCHITECTURES["mlp"]((1, 8, 8), 10, width=32)
    optimiser = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        optimiser.step()
    return network.eval()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of networks, and of digits as an .npz file with a test part."""
    folder = tmp_path_factory.mktemp("networks")
    with torch.random.fork_rng(devices=[]):
        good, other, poor = trained(0, 60), trained(1, 60), trained(2, 4)
    for name, network in (("good", good), ("other", other), ("poor", poor)):
        save_file(network.state_dict(), folder / f"{name}.safetensors")
    example = torch.rand(4, 1, 8, 8)
    program = torch.export.export(good, (example,), dynamic_shapes=FREE)
    torch.export.save(program, folder / "good.pt2")
    torch.save(good, folder / "module.pt")
    x, y = pixels()
    np.savez(folder / "digits.npz", x=x[:1200], y=y[:1200], test_x=x[1200:], test_y=y[1200:])
    return folder


WEIGHTS = ("--factory", "mlp", "--factory-option", "width=32")


@pytest.fixture
def measure(call: Callable, files: Path) -> Callable:
    """Measure networks of the folder on digits."""

    def run(*names: str, data: str = "digits", weights: bool = True, more: tuple = ()):
        models = [files / (n if "." in n else f"{n}.safetensors") for n in names]
        given = data if data == "digits" else files / data
        device = () if "--device" in more else ("--device", "cpu")
        head = ("response", "measure", *models, "--data", given, *device)
        return call(*head, *(WEIGHTS if weights else ()), *more)

    return run


def by_hand(network: nn.Module, magnitude: float) -> int:
    """Right answers where pixels are brighter by a share."""
    x, y = pixels()
    bright = np.clip(x / 255 * (1 + magnitude), 0, 1)
    with torch.no_grad():
        answers = network(torch.tensor(bright, dtype=torch.float32)).argmax(1).numpy()
    return int((answers == y).sum())


def test_counts_are_those_of_a_loop_by_hand(measure, files):
    options = ("--perturbation", "brightness", "--magnitudes=-0.9,-0.6,0,0.5", "--json")
    seen = measure("good", more=options)
    assert seen.code == 0, seen.err
    network = ARCHITECTURES["mlp"]((1, 8, 8), 10, width=32)
    from safetensors.torch import load_file

    network.load_state_dict(load_file(files / "good.safetensors"))
    found = seen.document
    assert found["type"] == "ResponseCurve"
    assert found["magnitude"] == [-0.9, -0.6, 0, 0.5]
    wanted = [by_hand(network.eval(), m) for m in found["magnitude"]]
    np.testing.assert_allclose(found["correct"], wanted, atol=1)  # clipped after rounding
    assert found["total"] == [1797] * 4
    assert found["clean_correct"] == found["correct"][2]


def test_one_model_is_shown_saved_and_drawn(measure, tmp_path):
    outputs = [tmp_path / name for name in ("curve.png", "sheet.png", "curve.csv")]
    options = ("--plot", outputs[0], "--sheet", outputs[1], "--save", outputs[2])
    seen = measure("good.pt2", weights=False, more=("--perturbation", "rotation", *options))
    assert seen.code == 0, seen.err
    assert "Response of good to rotation at the input" in seen.out
    assert "Accuracy under rotation at the input" in seen.out
    assert "relative Gi" in measure("good", more=("--verbose",)).out
    assert "not normalised" in seen.err
    assert "exported program" in seen.err
    assert all(path.stat().st_size > 5000 for path in outputs[:2])
    with open(outputs[2], newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(r["magnitude"]) for r in rows] == np.linspace(-30, 30, 11).tolist()
    assert {r["perturbation"] for r in rows} == {"rotation"}
    assert all(float(r["accuracy"]) == int(r["correct"]) / int(r["total"]) for r in rows)


def test_layers_by_number_and_by_name_are_alike_in_every_kind_of_file(measure):
    found = [
        measure(name, weights="." not in name, more=("--layer", layer, "--json")).document
        for name in ("good", "good.pt2")
        for layer in ("1", "name:2")
    ]
    assert {f["layer"] for f in found} == {"2"}
    assert len({tuple(f["correct"]) for f in found}) == 1
    seen = measure("good", more=("--layer", "conv9"))
    assert seen.code == 1
    assert "--layer conv9: the model has no submodule of that name" in " ".join(seen.err.split())


def test_several_models_are_compared_in_pairs(measure, tmp_path):
    few = ("--examples", 300)
    options = (*few, "--perturbation", "noise", "--plot", tmp_path / "two.png")
    seen = measure("good", "poor", more=(*options, "--fail-if", "worse"))
    assert seen.code == 0, seen.err
    assert "good is significantly more robust to the perturbation than poor" in " ".join(seen.out.split())
    turned = measure("poor", "good", more=(*few, "--perturbation", "noise", "rotation"))
    assert " ".join(turned.out.split()).count("good is significantly more robust to the perturbation than poor") == 2
    both = measure("good", more=(*few, "--perturbation", "noise,cutout", "--json")).document["perturbations"]
    assert [found["perturbation"] for found in both.values()] == ["noise", "cutout"]
    assert (tmp_path / "two.png").stat().st_size > 5000
    assert measure("poor", "good", more=(*few, "--perturbation", "noise", "--fail-if", "worse")).code == 3
    assert measure("good", "poor", more=(*few, "--fail-if", "better", "--fail-if", "undecided")).code == 3
    told = measure("good", "other", "poor", more=(*few, "--json")).document
    assert list(told["curves"]) == ["good", "other", "poor"]
    assert [(c["a"], c["b"]) for c in told["comparisons"]] == [("good", "other"), ("good", "poor"), ("other", "poor")]
    assert all(c["paired"] for c in told["comparisons"])
    shown = measure("good", "other", "poor", more=few)
    assert "The 3 clearest of 3 differences" in shown.out
    assert "poor: The model is right on" in " ".join(shown.err.split())
    assert measure("good", "other", "poor", more=("--fail-if", "worse")).code == 2
    assert measure("good", "good", more=("--fail-if", "worse")).code == 2


def test_normalisation_is_what_was_asked_for(measure):
    plain = measure("good", more=("--json",)).document
    same = measure("good", more=("--mean", "0", "--std", "1", "--json"))
    assert same.document["correct"] == plain["correct"]
    assert "normalised with mean 0 and std 1" in same.err
    own = measure("good", more=("--normalise",))
    x = pixels()[0] / 255
    assert f"normalised with mean {x.mean():.4g} and std {x.std():.4g}" in own.err
    for more, words in (
        (("--mean", "0.5"), "belong together"),
        (("--mean", "0.5,0.5", "--std", "1,1"), "give one for each"),
        (("--mean", "0.5", "--std", "0"), "above 0"),
        (("--mean", "0.5", "--std", "1", "--normalise"), "give one of them"),
    ):
        seen = measure("good", more=more)
        assert seen.code == 2
        assert words in " ".join(seen.err.split())


def test_the_test_part_and_a_sample_of_it(measure):
    options = ("--part", "test", "--examples", "300", "--json")
    found = measure("good", data="digits.npz", more=options)
    assert found.document["total"] == [300] * 10
    assert "597 test examples" in found.err
    again = measure("good", data="digits.npz", more=options).document
    other = measure("good", data="digits.npz", more=(*options, "--seed", "1")).document
    assert again["correct"] == found.document["correct"] != other["correct"]
    assert measure("good", more=("--part", "test")).code == 2


def test_a_perturbation_and_a_factory_of_ones_own(measure, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own_of_test.py").write_text(
        "from curvewise.nn.architectures import ARCHITECTURES\n"
        "def gain(x, magnitude, rng):\n    return x * (1 + magnitude)\n"
        "def make(shape, classes, wide=8):\n"
        "    return ARCHITECTURES['mlp'](shape, classes, width=wide)\n"
    )
    own = ("--factory", "own_of_test:make", "--factory-option", "wide=32")
    more = (*own, "--perturbation", "own_of_test:gain", "--magnitudes", "0,1,2", "--json")
    found = measure("good", weights=False, more=more)
    assert found.code == 0, found.err
    assert found.document["perturbation"] == "gain"
    wrong = measure("good", weights=False, more=(*own[:3], "wide=16"))
    assert wrong.code == 1
    assert "(32, 64) in the file and (16, 64) in the network" in " ".join(wrong.err.split())
    assert measure("good", more=("--perturbation", "own_of_test:gian")).code == 2
    # A class that takes nothing is called so.
    Path("bare_of_test.py").write_text(
        "from curvewise.nn.architectures import ARCHITECTURES\n"
        "def make():\n    return ARCHITECTURES['mlp']((1, 8, 8), 10, width=32)\n"
    )
    bare = measure("good", weights=False, more=("--factory", "bare_of_test:make", "--perturbation", "noise", "--json"))
    usual = measure("good", more=("--perturbation", "noise", "--json"))
    assert bare.code == 0, bare.err
    assert bare.document["correct"] == usual.document["correct"]


def test_several_perturbations_have_a_sheet_each(measure, tmp_path):
    more = ("--perturbation", "rotation", "--perturbation", "noise", "--sheet", tmp_path / "sheet.png")
    seen = measure("good", more=more)
    assert seen.code == 0, seen.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sheet-noise.png", "sheet-rotation.png"]


def test_the_command_that_compares_is_named(call):
    seen = call("response", "compare", "a.pt2", "b.pt2")
    assert seen.code == 2
    assert "curvewise response measure A B" in " ".join(seen.err.split())


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (("--perturbation", "rotatoin"), 2, "Did you mean 'rotation'?"),
        (("--magnitudes", "0,7"), 1, "from 0 to 1"),
        (("--magnitudes", "0,x"), 2, "magnitudes"),
        (("--perturbation", "hue"), 1, "is for colours"),
        (("--perturbation", "feature-swap"), 1, "feature-swap"),
        (("--save", "curve.txt"), 2, "must end in .csv"),
        (("--sheet", "sheet.txt"), 2, "must end in .png"),
        (("--sheet", "s.png", "--layer", "1"), 2, "drop one"),
        (("--save", "nowhere/at/all.csv"), 2, "there is no folder"),
        (("--device", "gpu"), 1, "--device gpu: not known"),
        (("--seed", "-1"), 2, "seed"),
        (("--examples", "1"), 2, "examples"),
        (("--factory-option", "width"), 2, "KEY=VALUE"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_told_before_anything_is_shown(measure, more, code, words):
    seen = measure("good", more=more)
    assert seen.code == code
    assert seen.out == ""
    assert words in " ".join(seen.err.replace("│", " ").split())


def test_files_and_data_that_cannot_be_used(call, files, measure, tmp_path):
    (tmp_path / "empty.pt2").touch()
    (tmp_path / "text.onnx").write_text("hello")
    (tmp_path / "cut.pt2").write_bytes((files / "good.pt2").read_bytes()[:5000])
    for model, words in (
        (files / "module.pt", "would run code"),
        (files / "good.safetensors", "--factory module:function"),
        (files / "digits.npz", "archive of numpy arrays"),
        (tmp_path / "empty.pt2", "is empty"),
        (tmp_path / "text.onnx", "cannot be read"),
        (tmp_path / "cut.pt2", "cut short"),
        (tmp_path / "absent.pt2", "there is no such file"),
        (tmp_path, "is a folder"),
    ):
        seen = call("response", "measure", model, "--data", "digits")
        assert seen.code == 1
        assert seen.out == ""
        assert words in " ".join(seen.err.split())
    unknown = call("response", "measure", files / "good.pt2", "--data", "digitz")
    assert unknown.code == 1
    assert "--data digitz is not known" in unknown.err
    missing = call("response", "measure", files / "good.pt2", "--data", "missing.npz")
    assert "--data missing.npz: there is no such file" in missing.err
    kind = call("response", "measure", files / "good.pt2", "--data", files / "digits.npz", "--data-option", "axes=3")
    assert "--data-option axes=3: use one of" in kind.err
    features = call("response", "measure", files / "good.pt2", "--data", "wine")
    assert features.code == 1
    assert "takes inputs of shape (1, 8, 8), and the data has (13,)" in features.err
    assert call("response", "measure", files / "good.pt2").code == 2


def test_torch_itself_says_nothing(start, files):
    done = start("response", "measure", files / "good.pt2", "--data", "digits", "--examples", 200, "--json")
    assert done.document["type"] == "ResponseCurve"
    assert [line.partition(":")[0] for line in done.err.splitlines()] == ["note", "note"]


def test_precision_and_fill_reach_the_measurement(measure):
    few = ("--json", "--examples", 60, "--perturbation", "shift-x", "--magnitudes", "0,0.4")
    dark, bright, low = (
        measure("good", more=(*few, *more)).document for more in ((), ("--fill", 1), ("--precision", "bfloat16"))
    )
    assert dark["settings"]["precision"] == "float32"
    assert low["settings"]["precision"] == "bfloat16"
    assert dark["correct"][0] == bright["correct"][0]
    assert dark["correct"][1] != bright["correct"][1]


def test_perturbations_are_listed(call):
    seen = call("response", "perturbations")
    assert seen.code == 0
    assert "degrees" in seen.out
    told = call("response", "perturbations", "--json").document["perturbations"]
    rotation = next(p for p in told if p["name"] == "rotation")
    assert (rotation["low"], rotation["high"], rotation["usual"]) == (-180, 180, [-30, 30])


def test_the_shelf_is_listed(call):
    seen = call("response", "measures")
    assert seen.code == 0
    assert "path-norm" in seen.out
    told = call("response", "measures", "--json").document["measures"]
    assert {m["name"]: m["orientation"] for m in told}["margin-10"] == -1
    assert call("response", "measures", "--measure", "l2-norm").code == 2


def test_measures_of_networks(call, files):
    models = [files / f"{name}.safetensors" for name in ("good", "other")]
    chosen = [w for m in ("l2-norm", "distance", "disagreement") for w in ("--measure", m)]
    beside = ("--initial", files / "poor.safetensors", "--twin", files / "poor.safetensors")
    options = ("--data", "digits", *WEIGHTS, *beside, *chosen)
    seen = call("response", "measures", *models, *options)
    assert seen.code == 0, seen.err
    assert "larger gap if" in seen.out
    told = call("response", "measures", *models, *options, "--json").document["models"]
    from safetensors.numpy import load_file

    weights, poor = (load_file(files / f"{name}.safetensors") for name in ("good", "poor"))
    norm = np.sqrt(sum((w.astype(float) ** 2).sum() for w in weights.values()))
    distance = np.sqrt(sum(((w - poor[k]).astype(float) ** 2).sum() for k, w in weights.items()))
    assert told["good"]["values"]["l2-norm"] == pytest.approx(norm, rel=1e-5)
    assert told["good"]["values"]["distance"] == pytest.approx(distance, rel=1e-5)
    assert 0 < told["good"]["values"]["disagreement"] < 1


def test_measures_that_cannot_be_computed(call, files):
    closed = call("response", "measures", files / "good.pt2", "--data", "digits")
    assert closed.code == 2
    assert "give weights (.safetensors) with --factory" in " ".join(closed.err.split())
    weights = (files / "good.safetensors", *WEIGHTS)
    assert call("response", "measures", *weights).code == 2
    unknown = call("response", "measures", *weights, "--data", "digits", "--measure", "l3-norm")
    assert unknown.code == 1
    assert "l3-norm" in unknown.err


@pytest.mark.parametrize("command", [(), ("measure",), ("judge",), ("measures",), ("perturbations",)], ids=str)
def test_help(call, command):
    seen = call("response", *command, "--help")
    assert seen.code == 0
    assert seen.err == ""
    assert max(map(len, seen.out.splitlines())) <= 80


def test_help_imports_nothing_heavy(start):
    heavy = ("numpy", "pandas", "scipy", "matplotlib", "sklearn", "torch", "onnxruntime")
    code = (
        "import sys; from curvewise.cli import main; main(['response', 'measure', '--help']);"
        f"print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    done = start("-c", code, python=True)
    assert done.code == 0
    assert done.err.strip() == "[]"


def test_without_torch_it_says_what_to_install(start):
    code = (
        "import importlib.util as u, sys; find = u.find_spec;"
        "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a);"
        "from curvewise.cli import main; sys.exit(main(['response', 'perturbations']))"
    )
    done = start("-c", code, python=True)
    assert done.code == 1
    assert 'pip install "curvewise[torch]"' in done.err


def models(tasks: tuple[str, ...]) -> list[dict[str, object]]:
    """Models of which gi-intra and pal-intra tell the gap, and noise does not."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    for task in tasks:
        for i in range(36):
            gap = 0.1 + 0.02 * (i % 3) + 0.02 * rng.normal()
            train = 0.7 if i % 12 == 5 else 0.99
            rows.append(
                {
                    "task": task,
                    "model": f"{task}-{i}",
                    "depth": 2 + i % 3,
                    "lr": (0.1, 0.01)[i // 3 % 2],
                    "train_acc": train,
                    "test_acc": train - gap,
                    "gi-intra": gap + 0.01 * rng.normal(),
                    "pal-intra": 80 - 30 * gap + 0.3 * rng.normal(),
                    "noise": rng.normal(),
                }
            )
    return rows


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    with open(path, "w", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return write(tmp_path / "one.csv", models(("cnn",)))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write(tmp_path / "two.csv", models(("cnn", "nin")))


def test_correlations_are_those_of_scipy(call, one):
    seen = call("response", "judge", one, "--json")
    assert seen.code == 0, seen.err
    assert "hyperparameters from 'depth', 'lr'" in " ".join(seen.err.split())
    rows = models(("cnn",))
    gap = [r["train_acc"] - r["test_acc"] for r in rows]  # type: ignore[operator]
    told = {r["measure"]: r for r in seen.document["rows"]}
    assert list(told) == ["gi-intra", "pal-intra", "noise"]
    for name, found in told.items():
        values = [r[name] for r in rows]
        assert found["kendall"] == pytest.approx(stats.kendalltau(values, gap).statistic)
        assert found["pearson"] == pytest.approx(stats.pearsonr(values, gap).statistic)
        assert found["n"] == 36


def test_directions_are_told_by_suffix_or_taken_from_the_shelf(call, one):
    def scores(*options):
        rows = call("response", "judge", one, *options, "--json").document["rows"]
        return {r["measure"]: (r["directed"], r["cmi"]["estimate"]) for r in rows}

    right = scores("--measure", "gi-intra:+", "--measure", "pal-intra:-", "--measure", "noise")
    assert [right[k][0] for k in ("gi-intra", "pal-intra", "noise")] == [True, True, False]
    assert right["gi-intra"][1] > 0.1 < right["pal-intra"][1]
    wrong = scores("--measure", "gi-intra:-")
    assert list(wrong) == ["gi-intra"]
    assert wrong["gi-intra"][1] < 0
    assert scores("--shelf") == right


def test_a_table_for_people(call, one, two, tmp_path):
    pictures = tmp_path / "judged.png", tmp_path / "scatter.png"
    seen = call("response", "judge", two, "--shelf", "--plot", pictures[0], "--scatter", pictures[1])
    assert seen.code == 0, seen.err
    assert "CMI × 100, by task (models: cnn 36, nin 36)" in seen.out
    assert "noise ±" in seen.out
    assert all(p.stat().st_size > 5000 for p in pictures)
    alone = call("response", "judge", one, "--mode", "granulated")
    assert "Measures of cnn, 36 models" in alone.out
    assert "granulated" in alone.out
    assert max(map(len, alone.out.split("\n\n")[0].splitlines())) <= 80


def test_tables_for_papers_have_the_best_in_bold(call, two):
    chosen = ("--measure", "gi-intra:+", "--measure", "noise:+")
    markdown = call("response", "judge", two, *chosen, "--table", "markdown")
    lines = markdown.out.splitlines()
    assert lines[0].split() == ["|", "measure", "|", "cnn", "|", "nin", "|", "All", "Avg", "|"]
    assert next(line for line in lines if "gi-intra" in line).count("**") == 6
    assert "judged on 72 models" in " ".join(markdown.err.split())
    latex = call("response", "judge", two, *chosen, "--table", "latex", "--mode", "pgdl")
    assert r"\begin{tabular}{lrrr}" in latex.out
    assert r"\textbf{" in latex.out


def test_models_that_are_not_trained_are_left_out(call, one):
    seen = call("response", "judge", one, "--least-train-accuracy", "0.8", "--json")
    assert {r["n"] for r in seen.document["rows"]} == {33}
    assert "n = 33" in seen.err
    assert call("response", "judge", one, "--least-train-accuracy", "80").code == 2


def test_the_layout_of_the_competition(call, tmp_path):
    rows = models(("cnn",))
    specifications = {
        r["model"]: {
            "hparams": {
                "depth": {"possible_values": [2, 3, 4], "current_value": r["depth"]},
                "rate": {"possible_values": [0.1, 0.01], "current_value": r["lr"]},
            },
            "metrics": {"train_acc": r["train_acc"], "test_acc": r["test_acc"]},
        }
        for r in rows
    }
    (tmp_path / "corpus" / "task1").mkdir(parents=True)
    path = tmp_path / "corpus" / "task1" / "model_configs.json"
    path.write_text(json.dumps(specifications))
    guesses = tmp_path / "corpus" / "gi"
    guesses.mkdir()
    (guesses / "task1.predict").write_text(json.dumps({r["model"]: r["gi-intra"] for r in rows}))
    seen = call("response", "judge", tmp_path / "corpus", "--measure", "gi:+", "--json")
    assert seen.code == 0, seen.err
    (row,) = seen.document["rows"]
    table = call("response", "judge", write(tmp_path / "t.csv", rows), "--shelf", "--json")
    same = next(r for r in table.document["rows"] if r["measure"] == "gi-intra")
    assert row["cmi"]["estimate"] == pytest.approx(same["cmi"]["estimate"])
    assert row["pgdl"] == pytest.approx(same["pgdl"])


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--measure", "gi-intro"), 1, "Did you mean 'gi-intra'?"),
        (("--gap", "gpa"), 1, "has no such column"),
        (("--hyperparameter", "deepth"), 1, "has no such column"),
        (("--unit", "score"), 2, "percent"),
        (("--mode", "pgdll"), 2, "pgdl"),
        (("--plot", "judged.txt"), 2, "must end in"),
        (("--scatter", "judged.txt"), 2, "must end in"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_judged(call, one, options, code, words):
    seen = call("response", "judge", one, *options)
    assert seen.code == code
    assert seen.out == ""
    assert words in " ".join(seen.err.replace("│", " ").split())


def test_files_that_are_no_corpus(call, tmp_path):
    (tmp_path / "empty.csv").touch()
    (tmp_path / "words.csv").write_text("a,b\nhello,world\n")
    for name in ("empty.csv", "words.csv", "absent.csv"):
        seen = call("response", "judge", tmp_path / name)
        assert seen.code == 1
        assert name in " ".join(seen.err.split())
    unclear = tmp_path / "unclear.csv"
    unclear.write_text("gap,thing\n0.1,1\n0.2,1\n0.3,2\n0.2,2\n0.1,3\n0.1,3\n")
    seen = call("response", "judge", unclear)
    assert seen.code == 1
    assert "--hyperparameter thing or --measure thing" in " ".join(seen.err.split())
