"""``curvewise ranking`` as a user calls it: features and networks ranked, measures judged."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy import stats
from sklearn.datasets import load_digits
from torch import nn

from curvewise.nn.architectures import ARCHITECTURES
from curvewise.ranking import scoring as catalogue
from curvewise.ranking.commands import find_checkpoints
from curvewise.ranking.distances import knn
from curvewise.ranking.moments import logme
from curvewise.ranking.networks import rank as ranking
from curvewise.ranking.networks.rank import MEASURES

SHIFTS = {"weak": 0.2, "middling": 0.7, "strong": 2.0}
WEIGHTS = ("--factory", "mlp", "--factory-option", "width=32", "--preprocess", "channels=grey")


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with features of three checkpoints, the labels beside it."""
    folder = tmp_path_factory.mktemp("features")
    (folder / "pool").mkdir()
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 50)
    np.save(folder / "labels.npy", labels)
    for name, shift in SHIFTS.items():
        centres = shift * rng.normal(size=(4, 8))
        features = centres[labels] + rng.normal(size=(200, 8))
        np.save(folder / "pool" / f"{name}.npy", features.astype(np.float32))
    return folder


@pytest.fixture
def rank(call: Callable, stored: Path) -> Callable:
    """Rank the folder of features."""

    def run(*more: object, files: tuple = ("pool",), labels: object = "labels.npy"):
        head = [stored / file if isinstance(file, str) else file for file in files]
        options = () if "--measures" in more else ("--measures", "logme,knn")
        return call("ranking", "rank", *head, "--labels", stored / str(labels), *options, *more)

    return run


def test_scores_are_those_of_the_functions(rank, stored):
    seen = rank("--json", "--test", "0", "--resamples", "0")
    assert seen.code == 0, seen.err
    found = seen.document
    assert found["type"] == "CheckpointRanking"
    assert found["checkpoints"] == ["strong", "middling", "weak"]
    labels = np.load(stored / "labels.npy")
    for i, name in enumerate(found["checkpoints"]):
        features = np.load(stored / "pool" / f"{name}.npy")
        assert found["scores"]["logme"][i] == pytest.approx(logme(features, labels))
        assert found["scores"]["knn"][i] == pytest.approx(knn(features, labels))
    assert found["ranks"] == [1, 2, 3]
    assert found["by"] == "logme"


def test_a_table_with_agreement_cost_and_certainty(rank, tmp_path):
    picture, scores = tmp_path / "ranks.png", tmp_path / "scores.csv"
    seen = rank("--plot", picture, "--save", scores, "--k", "1", "--by", "knn")
    assert seen.code == 0, seen.err
    out = words(seen.out)
    assert "Checkpoints by knn, 200 examples (95% intervals)" in out
    assert "is ranked first with probability" in out
    assert "Fine-tune strong;" in out
    assert "Cost over all checkpoints" not in out
    detailed = words(rank("--k", "1", "--by", "knn", "--verbose").out)
    assert "Agreement of measures (Kendall's τ-b)" in detailed
    assert "Cost over all checkpoints" in detailed
    assert "forward pass" in detailed
    assert picture.stat().st_size > 5000
    with open(scores, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [r["checkpoint"] for r in rows] == ["strong", "middling", "weak"]
    assert float(rows[0]["knn"]) > float(rows[2]["knn"])


def test_ranks_without_doubt_have_an_interval_and_all_checkpoints_are_no_choice(rank):
    out = words(rank().out)
    assert "strong 1 [1, 1]" in out
    assert "weak 3 [3, 3]" in out
    few = words(rank("--reliability", "1").out)
    assert "fine-tune the first 1 checkpoint." in few
    none = words(rank("--reliability", "0").out)
    assert "fine-tune all 3 checkpoints: the examples do not narrow the choice." in none
    assert "fine-tune the first" not in none


def test_the_seed_decides_everything(rank):
    one, again, other = (
        rank("--json", "--measures", "nleep", "--resamples", "10", "--seed", seed).document for seed in (1, 1, 2)
    )
    for found in (one, again, other):
        for key in ("seconds", "interval_seconds", "costs"):
            del found[key]
    assert one == again
    assert one["scores"] != other["scores"]


def test_names_files_folders_and_lists(rank, stored, tmp_path):
    listing = stored / "pool.toml"
    listing.write_text('[good]\npath = "pool/strong.npy"\nsource_accuracy = 0.8\n\n[bad]\npath = "pool/weak.npy"\n')
    quick = ("--json", "--resamples", "0", "--measures", "logme")
    assert rank(*quick, files=("pool.toml",)).document["checkpoints"] == ["good", "bad"]
    named = (f"mine={stored / 'pool' / 'weak.npy'}", "pool/strong.npy")
    found = rank(*quick, files=(Path(named[0]), named[1])).document
    assert sorted(found["checkpoints"]) == ["mine", "strong"]
    twice = rank(*quick, files=(Path(f"strong={stored / 'pool' / 'weak.npy'}"), "pool/strong.npy"))
    assert twice.code == 2
    assert "'strong' names another checkpoint" in words(twice.err)
    for cell in ('file = "pool/strong.npy"', "path = 5"):
        listing.write_text(f"[good]\n{cell}\n")
        assert "good must be a table with the file" in words(rank(files=("pool.toml",)).err)
    listing.write_text('[good]\npath = "pool/strong.npy"\nlayers = "fc"\n')
    assert "good has 'layers': use path, layer" in words(rank(files=("pool.toml",)).err)
    listing.write_text("[good\n")
    assert "is not a TOML file" in words(rank(files=("pool.toml",)).err)
    (tmp_path / "empty").mkdir()
    seen = rank(files=(tmp_path / "empty",))
    assert seen.code == 2
    assert "no checkpoint is in this folder" in words(seen.err)


@pytest.mark.parametrize("kind", ["npy", "npz", "txt", "csv"])
def test_labels_of_several_kinds(rank, stored, tmp_path, kind):
    labels = np.load(stored / "labels.npy")
    path = tmp_path / f"labels.{kind}"
    if kind == "npy":
        np.save(path, np.array(["cat", "dog", "fox", "owl"])[labels])
    elif kind == "npz":
        np.savez(path, labels=labels, other=labels * 2)
    else:
        head = ["label"] if kind == "csv" else []
        path.write_text("\n".join([*head, *map("class {}".format, labels)]) + "\n")
    quick = ("--json", "--resamples", "0", "--measures", "logme")
    plain = rank(*quick).document
    assert rank(*quick, labels=path).document["scores"] == plain["scores"]


def test_several_labels_and_numbers_are_told_from_classes(rank, stored, tmp_path):
    labels = np.load(stored / "labels.npy")
    np.save(tmp_path / "many.npy", np.eye(4, dtype=int)[labels])
    np.save(tmp_path / "numbers.npy", labels + 0.5 * np.sin(np.arange(200)))
    for name in ("many.npy", "numbers.npy"):
        seen = rank("--json", "--resamples", "0", "--measures", "logme", labels=tmp_path / name)
        assert seen.code == 0, seen.err
        assert seen.document["checkpoints"][0] == "strong"


def test_one_that_fails_is_reported_and_the_others_go_on(rank, stored, tmp_path):
    broken = np.load(stored / "pool" / "weak.npy")
    broken[3] = np.nan
    np.save(tmp_path / "broken.npy", broken)
    np.savez(tmp_path / "unnamed.npz", a=broken, b=broken)
    files = ("pool", tmp_path / "broken.npy", tmp_path / "unnamed.npz")
    scores = tmp_path / "scores.csv"
    seen = rank("--resamples", "0", "--measures", "logme,leep", "--save", scores, files=files)
    assert seen.code == 1, seen.err
    assert "broken is not ranked" in words(seen.err)
    assert "Checkpoints by logme" in seen.out
    assert "Failed" in seen.out
    assert len(scores.read_text().splitlines()) == 4
    whole = rank("--resamples", "0", "--measures", "logme,leep")  # which takes own classes
    assert whole.code == 0  # that they have no classes of their own, which leep takes, is no failure
    found = rank("--json", "--resamples", "0", files=files).document
    assert set(found["failures"]) == {"broken", "unnamed"}
    assert "NaN or infinite values in 1 of 200 rows" in found["failures"]["broken"]
    assert "call the matrix of features 'features'" in found["failures"]["unnamed"]
    assert found["checkpoints"] == ["strong", "middling", "weak"]
    alone = rank(files=(tmp_path / "broken.npy",))
    assert alone.code == 1
    assert "no checkpoint could be read" in words(alone.err)


def test_some_of_the_examples(rank):
    quick = ("--json", "--resamples", "0", "--measures", "logme", "--examples", "100")
    one, again, other = (rank(*quick, "--seed", seed).document for seed in (0, 0, 1))
    assert one["examples"] == 100
    assert one["scores"] == again["scores"] != other["scores"]
    assert rank("--examples", "3").code == 2


def test_a_dry_run_says_what_would_be_done(rank, stored):
    seen = rank("--dry-run", "--json", "--measures", "nleep,knn")
    assert seen.code == 0
    assert seen.document["measures"] == "nleep, knn"
    assert [c["checkpoint"] for c in seen.document["checkpoints"]] == ["middling", "strong", "weak"]
    assert {c["as"] for c in seen.document["checkpoints"]} == {"features"}
    assert "nothing was computed" in rank("--dry-run").err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--measures", "nlep"), "--measures nlep: not among"),
        (("--measures", "nlep"), "Did you mean 'nleep' or 'leep'?"),
        (("--reliability", "2"), "--reliability 2.0: a correlation lies between -1 and 1"),
        (("--reliability", "mine"), "--reliability mine: it has no reference"),
        (("--by", "parc"), "--by parc is none of the measures logme, knn"),
        (("--save", "scores.txt"), "--save scores.txt must end in .csv"),
        (("--plot", "ranks.gif"), "must end in .png"),
        (("--data", "digits"), "--data brings its labels"),
        (("--test", "1.5"), "Must be < 1"),
        (("--k", "0"), "Must be >= 1"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_computed(rank, more, said):
    seen = rank(*more)
    assert seen.code == 2
    assert said in words(seen.err)
    assert seen.out == ""


def test_what_is_missing_is_named(call, stored, rank):
    file = stored / "pool" / "weak.npy"
    seen = call("ranking", "rank", file)
    assert (seen.code, "--labels is missing" in words(seen.err)) == (2, True)
    seen = call("ranking", "rank", stored / "nothing.npy", "--labels", stored / "labels.npy")
    assert (seen.code, "there is no such file or folder" in words(seen.err)) == (2, True)
    (stored / "short.txt").write_text("a\nb\n")
    seen = rank(labels="short.txt")
    assert seen.code == 1
    assert "has 200 rows, and there are 2 labels" in words(seen.err)
    (stored / "wide.txt").write_text("a,b\nc,d\n")
    assert "give one label in each line" in words(rank(labels="wide.txt").err)


def test_a_table_for_a_paper(rank):
    seen = rank("--table", "markdown", "--resamples", "0")
    assert seen.code == 0
    assert seen.out.startswith("| checkpoint")
    assert "3 checkpoints ranked by logme" in words(seen.err)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Networks of digits with a few and with many steps of training, as weights and exported."""
    folder = tmp_path_factory.mktemp("networks")
    digits = load_digits()
    x = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
    y = torch.tensor(digits.target)
    with torch.random.fork_rng(devices=[]):
        for name, steps in (("fresh", 0), ("trained", 40)):
            torch.manual_seed(0)
            network = ARCHITECTURES["mlp"]((1, 8, 8), 10, width=32)
            optimiser = torch.optim.Adam(network.parameters(), 0.02)
            for _ in range(steps):
                optimiser.zero_grad()
                nn.functional.cross_entropy(network(x), y).backward()
                optimiser.step()
            save_file(network.state_dict(), folder / f"{name}.safetensors")
    program = torch.export.export(network.eval(), (x[:4],), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    torch.export.save(program, folder / "program.pt2")
    return folder


def test_networks_are_run_over_the_data_once_and_cached(call, networks, tmp_path):
    head = ("ranking", "rank", networks, "--data", "digits", *WEIGHTS, "--device", "cpu")
    options = ("--examples", "400", "--measures", "logme,leep", "--resamples", "0", "--json")
    options = (*options, "--cache", tmp_path / "cache")
    seen = call(*head, *options)
    assert seen.code == 0, seen.err
    found = seen.document
    assert set(found["checkpoints"]) == {"fresh", "trained", "program"}
    assert found["checkpoints"][-1] == "fresh"
    assert found["examples"] == 400
    scores = dict(zip(found["checkpoints"], found["scores"]["logme"], strict=True))
    assert scores["trained"] == pytest.approx(scores["program"], rel=1e-3)
    assert any((tmp_path / "cache").iterdir())
    again = call(*head, *options).document
    assert again["scores"] == found["scores"]


def test_a_network_that_fails_is_reported(call, networks, tmp_path):
    (tmp_path / "broken.pt2").write_bytes(b"nothing")
    head = ("ranking", "rank", networks, tmp_path / "broken.pt2", "--data", "digits", *WEIGHTS)
    options = ("--examples", "200", "--measures", "logme", "--resamples", "0", "--device", "cpu")
    found = call(*head, *options, "--json").document
    assert set(found["failures"]) == {"broken"}
    assert len(found["checkpoints"]) == 3
    seen = call("ranking", "rank", networks / "program.pt2", "--data", "digits", "--device", "cpu")
    assert seen.code == 1
    assert "preprocessing of" in words(seen.err)
    assert "--preprocess size=256 --preprocess crop=224" in words(seen.err)
    missing = call("ranking", "rank", networks, "--labels", tmp_path / "labels.npy")
    assert missing.code == 2
    assert "--data is missing" in words(missing.err)


def quick(data: object) -> tuple[object, ...]:
    options = ("--measures", "logme", "--resamples", "0", "--test", "0", "--device", "cpu")
    return ("--data", data, *options)


def test_preprocess_is_the_default_of_files_that_say_nothing(call, data_dir, tmp_path):
    path = data_dir / "checkpoints" / "mobilenet_v1_0.25_128_quant.tflite"
    if not path.is_file():
        pytest.skip(f"no {path.name} among the data")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (12, 32, 32, 3)).astype(np.uint8)
    np.savez(tmp_path / "x.npz", x=images, y=np.arange(12) % 2)
    head = ("ranking", "rank", path, *quick(tmp_path / "x.npz"), "--json")
    own = call(*head)
    assert own.code == 0, own.err
    other = call(*head, "--preprocess", "mean=0.9")
    assert other.document["scores"] == own.document["scores"]
    (tmp_path / "pool.toml").write_text(f'[one]\npath = "{path}"\npreprocessing = {{mean = 0.9}}\n')
    said = call("ranking", "rank", tmp_path / "pool.toml", *head[3:])
    assert said.document["scores"] != own.document["scores"]


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_whole_numbers_in_lines_are_classes(rank, stored, tmp_path, ending):
    path = tmp_path / f"y.{ending}"
    path.write_text("\n".join(map(str, np.load(stored / "labels.npy"))) + "\n")
    options = ("--json", "--resamples", "0", "--measures", "logme")
    seen = rank(*options, labels=path)
    assert seen.code == 0, seen.err
    assert seen.document["scores"] == rank(*options).document["scores"]
    path.write_text("\n".join(f"{y}.0" for y in np.load(stored / "labels.npy")) + "\n")
    assert "whole numbers in floating point" in words(rank(*options, labels=path).err)
    path.write_text("\n".join(f"{10**30 + int(y)}" for y in np.load(stored / "labels.npy")) + "\n")
    assert rank(*options, labels=path).code == 0  # numbers too long to be any are names


def test_advice_on_test_examples_can_be_followed(rank):
    seen = rank("--measures", "nleep", "--examples", "5", "--resamples", "0")
    assert seen.code == 1
    assert "another share, or --test 0." in words(seen.err)


PRINTS = """
from curvewise.nn.architectures import ARCHITECTURES

def make(shape, classes, **options):
    print("hello from the factory")
    return ARCHITECTURES["mlp"](shape, classes, **options)
"""


def test_what_a_factory_prints_is_no_result(call, networks, tmp_path, monkeypatch):
    (tmp_path / "printing_nets.py").write_text(PRINTS)
    monkeypatch.chdir(tmp_path)
    made = ("--factory", "printing_nets:make", *WEIGHTS[2:])
    seen = call("ranking", "rank", networks / "trained.safetensors", *quick("digits"), *made, "--json")
    assert seen.code == 0, seen.err
    assert seen.document["checkpoints"] == ["trained"]
    assert "hello from the factory" in seen.err


def test_what_is_taken_from_a_folder_and_why_not(call, networks, tmp_path):
    torch.save(load_file(networks / "trained.safetensors"), tmp_path / "mine.th")
    (tmp_path / "notes.md").write_text("mine")
    (tmp_path / "logs").mkdir()
    seen = call("ranking", "rank", tmp_path, *quick("digits"), *WEIGHTS, "--json")
    assert seen.code == 0, seen.err
    assert seen.document["checkpoints"] == ["mine"]
    assert "left out notes.md: no ending of a checkpoint (.pt2," in words(seen.err)
    assert "left out logs: a folder without config.json" in words(seen.err)


def test_a_key_that_no_preprocessing_has(call, networks, tmp_path):
    path = networks / "program.pt2"
    seen = call("ranking", "rank", path, *quick("digits"), "--preprocess", "mena=0.5")
    assert seen.code == 2
    assert "--preprocess has 'mena'. Did you mean 'mean'? Use size, crop" in words(seen.err)
    (tmp_path / "pool.toml").write_text(f'[one]\npath = "{path}"\npreprocessing = {{stdd = 1}}\n')
    seen = call("ranking", "rank", tmp_path / "pool.toml", *quick("digits"))
    assert seen.code == 2
    assert "preprocessing of one has 'stdd'. Did you mean 'std'?" in words(seen.err)


def test_help_shows_a_list_of_checkpoints_that_can_be_read(call, tmp_path):
    shown = call("ranking", "rank", "--help").out
    lines = [line.strip() for line in shown.split("its folder:")[1].split("╭")[0].splitlines()]
    (tmp_path / "pool.toml").write_text("\n".join(lines))
    for name in ("mine.pth", "other.onnx"):
        (tmp_path / name).touch()
    mine, other = find_checkpoints([str(tmp_path / "pool.toml")])
    assert (mine.name, other.name) == ("mine", "other")
    assert set(mine.about) == {"factory", "options", "preprocessing"}


def test_the_same_file_twice_is_told(rank, stored):
    options = ("--json", "--resamples", "0", "--measures", "logme")
    seen = rank(*options, files=("pool", "pool/../pool/weak.npy"))
    assert seen.document["checkpoints"] == ["strong", "middling", "weak"]
    assert words(seen.err).count("weak.npy is given more than once") == 1
    assert "more than once" not in rank(*options).err


def test_torch_is_spoken_of_where_a_trained_measure_is_wanted(call, rank, monkeypatch):
    told = 'measures that are trained need torch: pip install "curvewise[torch]"'
    monkeypatch.setattr(ranking, "NEED_TORCH", told)  # as without torch
    monkeypatch.setattr(ranking, "MEASURES", dict(catalogue.MEASURES))
    assert "torch" not in rank("--resamples", "0").err
    seen = rank("--measures", "linear")
    assert seen.code == 2
    assert "measures that are trained need torch" in words(seen.err)
    assert "measures that are trained need torch" in words(call("ranking", "measures").err)


def test_measures_are_listed_with_cost_and_failure(call):
    seen = call("ranking", "measures", "--json")
    assert seen.code == 0
    found = {m["measure"]: m for m in seen.document["measures"]}
    pure = {"nleep", "leep", "nce", "logme", "h-score", "gbc", "transrate", "parc", "knn"}
    assert pure | {"linear-1", "linear-5", "linear", "mi-0.01", "mi-pca-0.5"} <= set(found)
    assert set(found) == set(MEASURES)
    assert all(m["cost"] and m["fails"] and m["about"] and m["takes"] for m in found.values())
    assert found["leep"]["takes"] == "probabilities"
    assert all(found[name]["takes"] == measure.takes for name, measure in MEASURES.items())
    shown = call("ranking", "measures").out
    assert all(name in shown for name in found)
    assert call("ranking", "measures", "--table", "markdown").out.count("\n| ") == len(found)


ROLES = {
    "--measure": "Transferability Metric",
    "--score": "Transferability Metric Score",
    "--checkpoint": "Source Architecture",
    "--task": "Target Dataset",
    "--accuracy-column": "Test Accuracy",
}


@pytest.fixture(scope="module")
def architectures(data_dir: Path) -> Path:
    return data_dir / "ranking" / "source_model_architectures_table.csv"


@pytest.fixture
def judge(call: Callable, architectures: Path) -> Callable:
    """Judge a benchmark of 19 checkpoints on nine tasks, fine-tuned or with frozen features."""

    def run(*more: object, trained: str = "false"):
        roles = [word for pair in ROLES.items() for word in pair]
        where = ("--where", f"Trainable Backbone={trained}")
        return call("ranking", "judge", architectures, *roles, *where, *more)

    return run


@pytest.mark.parametrize(("trained", "tau", "r"), [("false", 0.755, 0.912), ("true", 0.610, 0.830)])
def test_published_figures_of_nleep(judge, trained, tau, r):
    found = judge("--json", "--measures", "nleep", "--permutations", "9", trained=trained).document
    (row,) = [row for row in found["rows"] if row["task"] == "average"]
    assert row["kendall"]["estimate"] == pytest.approx(tau, abs=5e-4)
    assert row["pearson"] == pytest.approx(r, abs=5e-4)


def test_a_judgement_is_shown_compared_and_drawn(judge, tmp_path):
    pictures = {name: tmp_path / f"{name}.png" for name in ("plot", "heat", "scatter", "bars")}
    options = [word for name, path in pictures.items() for word in (f"--{name}", path)]
    seen = judge("--permutations", "99", "--by-task", "--measures", "nleep,gbc", "--verbose", *options)
    assert seen.code == 0, seen.err
    out = words(seen.out)
    assert "measure Recall@1 Rel@1 Recall@3 Rel@3 Pearson Kendall" in out
    assert re.search(r"nleep 0\.667 0\.994 1\.000 1\.000 0\.912 0\.7[56]", out)
    assert max(map(len, seen.out.split("\n\n")[0].splitlines())) <= 80
    assert "all checkpoints: Kendall by task" in out
    assert "Differences of Kendall, all checkpoints" in out
    assert "19 checkpoints, 9 tasks" in words(seen.err)
    assert all(path.stat().st_size > 5000 for path in pictures.values())


def test_the_order_of_rows_does_not_matter_and_the_seed_decides(judge, call, architectures, tmp_path):
    with open(architectures, newline="") as stream:
        rows = list(csv.DictReader(stream))
    with open(tmp_path / "turned.csv", "w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0])[1:], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows[::-1])
    roles = [word for pair in ROLES.items() for word in pair]
    head = ("ranking", "judge", tmp_path / "turned.csv", *roles, "--where", "Trainable Backbone=false")
    turned = call(*head, "--json", "--measures", "gbc,nleep").document
    plain = judge("--json", "--measures", "gbc,nleep").document
    for name in ("gbc", "nleep"):
        one, two = (
            next(r for r in d["rows"] if (r["measure"], r["task"]) == (name, "average")) for d in (plain, turned)
        )
        assert one["kendall"]["estimate"] == pytest.approx(two["kendall"]["estimate"])
    assert judge("--json", "--measures", "gbc,nleep").document == plain


def test_scores_and_accuracies_of_two_files_with_a_reference(call, rank, tmp_path):
    assert rank("--save", tmp_path / "scores.csv", "--resamples", "0").code == 0
    (tmp_path / "tuned.csv").write_text("checkpoint,accuracy\nweak,61\nmiddling,80\nstrong,79\nscratch,70\n")
    head = ("ranking", "judge", tmp_path / "scores.csv", "--accuracy", tmp_path / "tuned.csv")
    options = ("--unit", "percent", "--reference", "scratch", "--k", "1,2")
    seen = call(*head, *options, "--json")
    assert seen.code == 0, seen.err
    row = next(r for r in seen.document["rows"] if r["measure"] == "logme")
    assert row["kendall"]["estimate"] == pytest.approx(stats.kendalltau([1, 2, 3], [61, 80, 79])[0])
    assert row["recall"] == {"1": 0.0, "2": 1.0}
    assert row["rel"]["1"] == pytest.approx(79 / 80)
    (reference,) = seen.document["references"]
    assert (reference["below"], reference["n"]) == (1, 3)
    shown = words(call(*head, *options).out)
    assert "References, which are never ranked" in shown
    assert "1 of 3" in shown
    latex = call(*head, *options, "--table", "latex").out
    assert r"\textbf" in latex or r"\begin{tabular}" in latex
    wrong = call(*head)
    assert wrong.code == 1
    assert "--unit percent" in words(wrong.err)


def test_groups_their_union_and_what_to_beware_of(call, tmp_path):
    rng = np.random.default_rng(0)
    rows = ["checkpoint,group,task,accuracy,nleep,nleep_gflops,parameters"]
    for group in ("small", "large"):
        for task in ("pets", "cars"):
            for i in range(6):
                accuracy = rng.uniform(0.5, 0.9)
                score = "" if (group, task, i) == ("small", "pets", 2) else f"{accuracy - 2:.4f}"
                rows.append(f"{group}{i},{group},{task},{accuracy:.4f},{score},50,{i}")
    (tmp_path / "pool.csv").write_text("\n".join(rows) + "\n")
    options = ("--permutations", "99", "--cost", tmp_path / "cost.png")
    seen = call("ranking", "judge", tmp_path / "pool.csv", *options)
    assert seen.code == 0, seen.err
    assert [f"{name}, 2 tasks" in seen.out for name in ("small", "large", "union")] == [True] * 3
    assert "parameters (baseline)" in seen.out
    assert "1 of 6 checkpoints has no score" in words(seen.err)
    assert (tmp_path / "cost.png").stat().st_size > 5000
    alone = call("ranking", "judge", tmp_path / "pool.csv", "--no-union", "--permutations", "9")
    assert "union, 2 tasks" not in alone.out
    latex = call("ranking", "judge", tmp_path / "pool.csv", "--table", "latex").out
    assert latex.count(r"\begin{tabular}") == 3
    none = call("ranking", "judge", tmp_path / "pool.csv", "--where", "task=moon")
    assert none.code == 1
    assert "--where task=moon is in no row" in words(none.err)
    one = call("ranking", "judge", tmp_path / "pool.csv", "--measures", "nleep", "--json")
    assert one.document["comparisons"] is None
    (tmp_path / "tuned.csv").write_text("checkpoint,accuracy\na,0.5\nb,0.6\n")
    bare = call("ranking", "judge", tmp_path / "tuned.csv")
    assert bare.code == 2
    assert "tuned.csv has no scores of measures: name their columns" in words(bare.err)
    assert "with --measure COLUMN --score COLUMN" in words(bare.err)
    picture = tmp_path / "bars.png"
    alone = call("ranking", "judge", tmp_path / "tuned.csv", "--bars", picture, "--json")
    assert alone.code == 0, alone.err
    assert alone.document["accuracy"] == [0.5, 0.6]
    assert "nothing is judged" in words(alone.err)
    assert picture.stat().st_size > 5000
    both = ("--bars", picture, "--heat", tmp_path / "heat.png")
    assert call("ranking", "judge", tmp_path / "tuned.csv", *both).code == 2


@pytest.mark.parametrize("groups", [3, 8])
def test_every_group_is_drawn(call, tmp_path, groups):
    names = [f"pool {g}" for g in range(groups)]
    rows = ["checkpoint,group,accuracy,nleep"]
    rows += [f"{g}{i},{g},0.{i + 3},{i * i - i}" for g in names for i in range(4)]
    (tmp_path / "pool.csv").write_text("\n".join(rows) + "\n")
    picture = tmp_path / "plot.svg"
    seen = call("ranking", "judge", tmp_path / "pool.csv", "--plot", picture)
    assert seen.code == 0, seen.err
    text = picture.read_text()
    drawn = [name for name in (*names, "union") if f">{name}</text>" in text]
    assert drawn == ([*names, "union"] if groups == 3 else [*names[:5], "union"])
    told = "6 of 9 groups are drawn: pool 0, pool 1, pool 2, pool 3, pool 4, union; --where"
    assert (told in words(seen.err)) == (groups == 8)


LONG = """net,target set,acc,my method,value
a,pets,0.5,nleep,-1
b,pets,0.6,nleep,-0.9
c,pets,0.7,nleep,-0.5
a,pets,0.5,logme,1
b,pets,0.6,logme,1.2
c,pets,0.7,logme,1.1
"""


@pytest.mark.parametrize("more", [(), ("--measures", "nleep")])
def test_advice_on_a_long_table_can_be_followed(call, tmp_path, more):
    (tmp_path / "long.csv").write_text(LONG)
    head = ("ranking", "judge", tmp_path / "long.csv", "--checkpoint", "net", *more, "--json")
    seen = call(*head)
    assert seen.code == 1
    advice = re.search(r"pass (--measure .*? --score \w+)\.", words(seen.err))
    assert advice is not None
    options = shlex.split(advice[1])
    assert options == ["--measure", "my method", "--score", "value"]
    followed = call(*head, *options)
    assert followed.code == 0, followed.err
    assert followed.document["measures"] == (["nleep"] if more else ["nleep", "logme"])
    typo = call(*head[:5], *options, "--measures", "nlep")
    assert "--measures nlep: no row of" in words(typo.err)
    assert "Did you mean 'nleep'?" in words(typo.err)


def test_advice_is_given_as_options_for_a_shell(call, tmp_path):
    rows = ["checkpoint,accuracy,nleep,Trainable Backbone"]
    kinds = {"no": 4, "it's so": 5}
    rows += [f"{n},0.{i + k},{i},{b}" for b, k in kinds.items() for i, n in enumerate("abc")]
    (tmp_path / "twice.csv").write_text("\n".join(rows) + "\n")
    head = ("ranking", "judge", tmp_path / "twice.csv")
    seen = words(call(*head).err)
    assert "--where 'Trainable Backbone=no'" in seen
    assert "--group 'Trainable Backbone'" in seen
    assert "--repeats best or --repeats mean" in seen
    clash = call(*head, "--group", "Trainable Backbone", "--json")
    assert clash.code == 1
    assert "pass --no-union" in words(clash.err)
    followed = call(*head, "--group", "Trainable Backbone", "--no-union", "--json")
    assert followed.document["groups"] == ["no", "it's so"]


def test_a_reference_can_be_borrowed(rank):
    quick = ("--json", "--resamples", "0", "--measures", "knn")
    alone, lent = rank(*quick), rank(*quick, "--reliability", "nleep")
    assert alone.document["reliability"]["source"] == "examples/checkpoints"
    assert lent.document["reliability"]["source"] == "stable_transfer, examples/checkpoints"
    assert rank(*quick, "--reliability", "0.5").document["reliability"]["source"] == "given"


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--measures", "nlep"), 1, "Did you mean 'nleep' or 'leep'?"),
        (("--k", "0.5"), 2, "must be a whole number from 1 on"),
        (("--value", "rel_at_9"), 2, "--value rel_at_9: use one of recall_at_1"),
        (("--where", "rubbish"), 2, "must read COLUMN=VALUE"),
        (("--where", "Trainable Backbone=maybe"), 1, "--where 'Trainable Backbone=maybe' is in no row"),
        (("--heat", "heat.gif"), 2, "--heat heat.gif must end in"),
        (("--cost", "cost.png"), 2, "has no costs, such as a column nleep_gflops"),
    ],
)
def test_what_cannot_be_judged_is_told(judge, more, code, said):
    seen = judge(*more)
    assert seen.code == code
    assert said in words(seen.err)


def test_nothing_is_imported_that_listing_does_not_need(start):
    code = (
        "import sys, curvewise.ranking.commands; "
        "print([m for m in ('torch', 'pandas', 'matplotlib', 'scipy.stats') if m in sys.modules])"
    )
    assert start("-c", code, python=True).out.strip() == "[]"


def test_labels_in_a_folder_are_no_checkpoint(tmp_path):
    for name in ("a", "b", "y"):
        np.save(tmp_path / f"{name}.npy", np.zeros((4, 2)))
    assert [one.name for one in find_checkpoints([str(tmp_path)])] == ["a", "b", "y"]
    assert [one.name for one in find_checkpoints([str(tmp_path)], tmp_path / "y.npy")] == ["a", "b"]
