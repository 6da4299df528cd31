"""Study files: read in the user's words, written so that they read back."""

from __future__ import annotations

import re
import string
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvewise.errors import InputError, StoreError
from curvewise.nn.task import Keep
from curvewise.nn.training import OPTIMISERS, Training
from curvewise.study import Dataset, Design, Evaluation, Learner, Study, load_study
from curvewise.study.commands import starter_text
from curvewise.study.spec.document import toml_text
from curvewise.study.spec.recipes import RECIPES

EXAMPLE = """
name = "digits"
seed = 3

[data]
name = "digits"

[learners.small]
architecture = "mlp"
width = 32
rate = [0.05, 0.1, 0.2]
epochs = 30

[learners.forest]
estimator = "sklearn.ensemble:RandomForestClassifier"
n_estimators = 100

[learners.mine]
command = "python train.py --n {n} --seed {seed} --out {out}"
timeout = 60

[design]
sizes = [50, 100, 200, 400]
folds = [8, 4, 2, 1]
seeds = 3
vary = ["init", "order"]
poke = { epoch = 0, factor = 1.001 }
grid = { batch = [32, 128] }

[evaluate.rotated]
perturbation = "rotation"
magnitude = 30

[keep]
probabilities = true
checkpoints = "end"
"""

SMALLEST = "data = 'digits'\n[learners.a]\narchitecture = 'mlp'\n"


def load(text: str, folder: Path) -> Study:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def test_the_words_of_the_file_are_those_of_python(tmp_path):
    study = load(EXAMPLE, tmp_path)
    assert study == Study(
        data={"name": "digits"},
        learners={
            "small": Learner(Training("mlp", options={"width": 32}, rate=(0.05, 0.1, 0.2), epochs=30)),
            "forest": Learner(estimator="sklearn.ensemble:RandomForestClassifier", options={"n_estimators": 100}),
            "mine": Learner(command="python train.py --n {n} --seed {seed} --out {out}", timeout=60),
        },
        design=Design(
            sizes=[50, 100, 200, 400],
            folds=[8, 4, 2, 1],
            seeds=3,
            vary=["init", "order"],
            poke={"epoch": 0, "factor": 1.001},
            grid={"batch": [32, 128]},
        ),
        evaluate={"rotated": Evaluation(perturbation="rotation", magnitude=30)},
        keep=Keep(probabilities=True, checkpoints="end"),
        seed=3,
        name="digits",
        folder=tmp_path,
    )


def test_loading_imports_and_reads_nothing_that_the_file_names(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        "data = 'no-such-file.npz'\n[learners.a]\narchitecture = 'nowhere_at_all:network'\n"
        "weights = 'no-such.safetensors'\n[learners.b]\nestimator = 'nowhere_at_all:Model'\n"
    )
    script = f"import sys, curvewise as cw; cw.load_study({str(path)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "curvewise.study.spec.document" in loaded
    assert loaded.isdisjoint({"torch", "sklearn", "pandas", "matplotlib", "nowhere_at_all"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = 2\n" + SMALLEST, "study.toml: 'seeds' is not known here. Did you mean 'seed'?"),
        (SMALLEST + "[desing]\n", "Did you mean 'design'?"),
        (SMALLEST + "[design]\nsize = [1]\n", "[design]: 'size' is not known here. Did you mean 's"),
        (SMALLEST + "epoch = 3\n", "[learners.a]: 'epoch' is not known here. Did you mean 'epochs'?"),
        (SMALLEST + "lr = 0.1\n", "Did you mean 'rate'?"),
        (SMALLEST + "batch_size = 8\n", "Did you mean 'batch'?"),
        (SMALLEST + "optimizer = 'sgd'\n", "Did you mean 'optimiser'?"),
        (SMALLEST + "epochs = 'many'\n", "[learners.a]: epochs='many': Give a number"),
        (SMALLEST + "augmentation = [1]\n", "[learners.a]: augmentation=(1,): Give a list of words"),
        (SMALLEST + "optimiser = 'adamm'\n", "not known. Use one of sgd, sgdw, adam"),
        (SMALLEST + "[design]\nseeds = 0\n", "[design]: seeds=0"),
        (SMALLEST + "[design]\nsizes = 'all'\n", "[design]: sizes='all'"),
        (SMALLEST + "[design]\nnested = 1\n", "[design]: nested=1: give true or false"),
        (SMALLEST + "[design]\nvary = ['inits']\n", "vary has 'inits': use some of init"),
        (SMALLEST + "[design]\ngrid = {batch = 3}\n", "grid['batch']=3: give a list"),
        (SMALLEST + "[keep]\ncheckpoints = 'all'\n", "[keep]: checkpoints='all': use one of none"),
        (SMALLEST + "[keep]\nprobabilities = 'yes'\n", "[keep]: probabilities='yes'"),
        (SMALLEST + "[evaluate.x]\nmagnitude = 1\n", "[evaluate.x]: perturbation and magnitude"),
        (
            SMALLEST + "[evaluate.x]\nperturbation = 'noise'\nmagnitude = [0.2, 0.1]\n",
            "[evaluate.x]: magnitude=[0.2, 0.1]: give one number, or a range of two, the lower",
        ),
        (
            SMALLEST + "[evaluate.x]\nperturbation = 'noise'\nmagnitude = [0, 0.1, 0.2]\n",
            "or a range of two, the lower first",
        ),
        (SMALLEST + "[evaluate]\nx = 1\n", "[evaluate.x]: 1: give a table"),
        (SMALLEST + "[learners.b]\nmodel = 'mlp'\n", "Did you mean 'architecture'?"),
        (SMALLEST + "[learners.b]\narchitecture = 'm'\ncommand = 'x'\n", "has architecture and com"),
        (SMALLEST + "[learners.b]\ncommand = 'python x.py'\n", "does not say {out}"),
        (SMALLEST + "[learners.b]\nestimator = 'SVC'\n", "give its place as 'module:Class'"),
        (SMALLEST + "[learners]\nb = 3\n", "[learners.b]: 3: give a table"),
        ("seed = -1\n" + SMALLEST, "study.toml: seed=-1"),
        ("seed = 'a'\n" + SMALLEST, "seed='a': give a whole number"),
        ("recipe = 'variances'\n" + SMALLEST, "Did you mean 'variance'?"),
        ("recipe = {name = 'variance', architectur = 'x'}\n" + SMALLEST, "'architecture'?"),
        ("[learners.a]\narchitecture = 'mlp'\n", "data is missing"),
        ("data = 'digits'\n", "learners is missing"),
        ("data = 3\n[learners.a]\narchitecture = 'mlp'\n", "data=3: give a name or a table"),
        ("data = 'digits\n", "study.toml is not valid TOML"),
        ("name = 'a'\nname = 'b'\n", "line 2"),
        (f"seed = {'1' * 5000}\n", "valid TOML: it holds a whole number of thousands of digits."),
    ],
)
def test_a_mistake_is_named_with_its_place_and_the_way_out(tmp_path, text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        load(text, tmp_path)


def test_a_missing_file_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read as a study file"):
        load_study(tmp_path / "none.toml")


def test_an_option_that_looks_like_a_setting_can_be_forced(tmp_path):
    study = load(SMALLEST + "options = {epoch = 3}\n", tmp_path)
    assert study.learners["a"].training.options == {"epoch": 3}
    with pytest.raises(InputError, match="stands in options and beside it"):
        load(SMALLEST + "width = 3\noptions = {width = 4}\n", tmp_path)


def test_relative_paths_start_at_the_file(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    assert load(SMALLEST, inner).runs_folder == inner / "study-runs"
    assert load("store = 'here'\n" + SMALLEST, inner).runs_folder == inner / "here"
    assert load("folder = '..'\n" + SMALLEST, inner).folder == tmp_path


def test_a_study_saved_elsewhere_keeps_its_paths(tmp_path):
    study = Study("data.npz", {"a": Learner(Training("mlp"))}, folder=tmp_path, store=Path("runs"))
    (tmp_path / "deep" / "er").mkdir(parents=True)
    again = load_study(study.save(tmp_path / "deep" / "er" / "study.toml"))
    assert again == study


def test_data_in_memory_cannot_be_saved(tmp_path):
    data = Dataset(np.zeros((4, 2)), np.array([0, 1, 0, 1]))
    path = tmp_path / "study.toml"
    with pytest.raises(InputError, match=r"Dataset in memory.*np\.savez"):
        Study(data, {"a": Learner(Training("mlp"))}).save(path)
    shifted = Study("digits", {"a": Learner(Training("mlp"))}, evaluate={"b": Evaluation(data)})
    with pytest.raises(InputError, match=r"evaluate\.b\.data is a Dataset in memory"):
        shifted.save(path)
    assert list(tmp_path.iterdir()) == []


def test_what_toml_cannot_hold_is_refused(tmp_path):
    study = Study("digits", {"a": Learner(Training("mlp", options={"width": None}))})
    with pytest.raises(InputError, match="width=None cannot be written to a study file"):
        study.save(tmp_path / "study.toml")


def test_a_study_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    study = Study("digits", {"a": Learner(Training("mlp"))})
    with pytest.raises(StoreError, match=r"study\.toml cannot be written: No such file or directory"):
        study.save(tmp_path / "none" / "study.toml")


# Studies of all kinds: names that need quotes, options called like settings, nested values.
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
floats = st.floats(allow_nan=False, width=32)
values = st.recursive(
    st.integers(-(10**12), 10**12) | floats | st.booleans() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
options = st.dictionaries(
    words | st.sampled_from(["lr", "epoch", "batch_size", "width", "command", "members"]), values, max_size=4
)
rates = st.floats(1e-6, 10)


@st.composite
def networks(draw: st.DrawFn) -> Learner:
    training = Training(
        architecture=draw(words),
        options=draw(options),
        weights=draw(st.none() | words),
        optimiser=draw(st.sampled_from(OPTIMISERS)),
        rate=draw(rates | st.lists(rates, min_size=1, max_size=3, unique=True).map(tuple)),
        weight_decay=draw(st.floats(0, 1)),
        batch=draw(st.integers(1, 1000)),
        epochs=draw(st.integers(0, 100) | st.floats(0, 100)),
        schedule=draw(st.sampled_from(["constant", "linear", "cosine"])),
        augmentation=draw(st.lists(words, max_size=2).map(tuple)),
        patience=draw(st.none() | st.floats(0.5, 20)),
    )
    return Learner(training, members=draw(st.integers(1, 3)))


others = st.builds(Learner, estimator=st.just("sklearn.svm:SVC"), options=options) | st.builds(
    Learner,
    command=words.map(lambda w: re.sub(r"[{}]", "", w) + " {out}"),
    options=options,
    timeout=st.none() | st.floats(1, 1e6),
)
designs = st.builds(
    Design,
    sizes=st.none() | st.lists(st.integers(1, 999) | st.floats(0.01, 1), min_size=1, max_size=3),
    folds=st.none() | st.integers(1, 9) | st.lists(st.integers(1, 9), min_size=1, max_size=3),
    seeds=st.integers(1, 50),
    vary=st.sampled_from([["init"], ["order", "init"], [["init"], ["order"], ["poke"]], ["poke"]]),
    poke=st.fixed_dictionaries({"epoch": st.floats(0, 9)}, optional={"factor": floats}).filter(
        lambda p: np.isfinite(p.get("factor", 1))
    ),
    grid=st.dictionaries(words.map("x-{}".format), st.lists(values, min_size=1, max_size=1), max_size=2),
    test=st.floats(0.01, 0.9) | st.integers(1, 99),
    nested=st.booleans(),
)
names = st.text(string.ascii_letters + string.digits, min_size=1, max_size=8).filter(
    lambda n: n not in ("test", "train")
)
evaluations = st.builds(Evaluation, data=words | st.dictionaries(words, values, min_size=1)) | (
    st.builds(
        Evaluation, perturbation=words, magnitude=st.floats(-9, 9) | st.tuples(st.floats(-9, -1), st.floats(1, 9))
    )
)


@settings(max_examples=150, deadline=None)
@given(
    data=words | st.dictionaries(words, values, min_size=1, max_size=3),
    learners=st.dictionaries(words, networks() | others, min_size=1, max_size=3),
    design=designs,
    evaluate=st.dictionaries(names, evaluations, max_size=2),
    keep=st.builds(
        Keep, probabilities=st.booleans(), checkpoints=st.sampled_from(["none", "end", "drops"]), features=st.booleans()
    ),
    seed=st.integers(0, 2**40),
    name=words.filter(str.strip),
)
def test_a_saved_study_is_the_same_study(data, learners, design, evaluate, keep, seed, name):
    with tempfile.TemporaryDirectory() as folder:
        study = Study(data, learners, design, evaluate, keep, seed, name, folder=Path(folder))
        again = load_study(study.save(Path(folder) / "study.toml"))
    for field in fields(Study):
        if field.name != "trust":  # which no file can say of itself
            assert getattr(again, field.name) == getattr(study, field.name), field.name
    assert again == study


@given(st.dictionaries(words, st.dictionaries(words, values, max_size=3), max_size=3))
def test_written_toml_is_what_tomllib_reads(document):
    document = {f"t-{k}": v for k, v in document.items()}
    assert tomllib.loads(toml_text(document)) == document


def test_the_starter_file_is_a_study(tmp_path):
    study = load(starter_text(), tmp_path)
    assert set(study.learners) == {"network", "forest"}
    # Uncommented, its other lines are words that the reader knows too.
    every = re.sub(r"^# (\[|command|perturbation|magnitude|store)", r"\1", starter_text(), flags=re.M)
    every = re.sub(r"^# (poke|grid) = ", r"\1 = ", every, flags=re.M)
    more = load(re.sub(r"^# store.*$", "", every, flags=re.M), tmp_path)
    assert set(more.learners) == {"network", "forest", "mine"}
    assert more.design.grid == {"batch": [16, 64]}
    assert more.evaluate["rotated"].magnitude == 30


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_starter_file_of_a_recipe_is_the_recipe(tmp_path, recipe):
    study = load(starter_text(recipe), tmp_path)
    option = ", model = 'models/encoder'" if recipe == "variance-text" else ""
    same = f"name = '{recipe}'\nrecipe = {{name = '{recipe}'{option}}}\n[data]\nname = 'digits'\n"
    assert load(same, tmp_path) == study
