"""Studies from others: what runs code, and when."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

# Says that it was imported, by a file that is there afterwards.
CANARY = "from pathlib import Path\nPath(__file__).resolve().parent.joinpath('{}.sang').touch()\n"

DATA = """
import numpy as np
from curvewise.study import Dataset

def make(apart=4.0):
    y = np.arange(120) % 2
    x = np.random.default_rng(0).normal(size=(120, 3)) + apart * y[:, None]
    return Dataset(x.astype(np.float32), y)
"""

MODEL = """
import numpy as np

class Nearest:
    def fit(self, x, y):
        self.centres = np.stack([x[y == k].mean(axis=0) for k in (0, 1)])

    def predict(self, x):
        return np.linalg.norm(x[:, None] - self.centres, axis=2).argmin(axis=1)
"""

NET = """
def make(shape, classes):
    import torch
    return torch.nn.Linear(shape[0], classes)
"""

LEARNERS = """
[learners.mine]
estimator = "canary_model:Nearest"

[learners.net]
architecture = "canary_net:make"
epochs = 1

[learners.zen]
estimator = "this:Zen"

[learners.bayes]
estimator = "sklearn.naive_bayes:GaussianNB"

[design]
sizes = [20, 40]
folds = 1
seeds = 2
test = 40

[keep]
checkpoints = "end"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"canary_data": DATA, "canary_model": MODEL, "canary_net": NET}.items():
        (tmp_path / f"{name}.py").write_text(CANARY.format(name) + text)
    x = np.random.default_rng(0).normal(size=(120, 3)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=np.arange(120) % 2)
    head = 'name = "other"\nstore = "runs"\n'
    (tmp_path / "files.toml").write_text(f'{head}data = "data.npz"\n{LEARNERS}')
    made = LEARNERS.replace('[learners.zen]\nestimator = "this:Zen"\n', "")
    made = f'{head}data = "canary_data:make"\n{made}'
    made += '[evaluate.far]\ndata = { function = "canary_data:make", apart = 9.0 }\n'
    (tmp_path / "made.toml").write_text(made)
    sys.modules.pop("this", None)
    return tmp_path


def sung(folder: Path) -> list[str]:
    """Which modules were imported since we last asked."""
    found = sorted(folder.rglob("*.sang"))
    for path in found:
        path.unlink()
    return [path.stem for path in found]


COMMANDS: list[tuple[str, ...]] = [
    ("study", "plan"),
    ("study", "plan", "--no-measure", "--json"),
    ("study", "run", "--dry-run"),
    ("study", "status"),
    ("study", "report"),
    ("study", "report", "--json", "--format", "html"),
    ("transfer", "measure"),
]


def test_no_command_but_run_imports_what_a_study_names(
    call: Callable, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in COMMANDS:
        call(*command, folder / "files.toml")
        outcome = call(*command, folder / "made.toml")
        assert outcome.code != 0
        assert "canary_data:make, which is not imported without --trust" in " ".join(outcome.err.split())
        assert sung(folder) == []
        assert "this" not in sys.modules
    planned = call("study", "plan", folder / "files.toml")
    told = " ".join(planned.err.split())
    for name, place in {"mine": "canary_model:Nearest", "net": "canary_net:make"}.items():
        assert f"{name} is made by {place}, which is not imported without --trust" in told
    assert "is unknown without --trust, which imports their code" in " ".join(planned.out.split())
    assert "zen is made by this:Zen" in told
    assert "bayes is made by" not in told  # of scikit-learn


def test_with_trust_a_plan_imports_and_checks(call: Callable, folder: Path) -> None:
    outcome = call("study", "plan", "--trust", folder / "files.toml")
    assert outcome.code == 1  # a learner cannot be made
    assert sung(folder) == ["canary_model", "canary_net"]
    assert "estimator='this:Zen': the module has no 'Zen'" in " ".join(outcome.err.split())
    assert call("study", "plan", "--trust", folder / "made.toml").code == 0
    assert "canary_data" in sung(folder)


def test_after_a_run_all_is_read_from_the_store(call: Callable, folder: Path) -> None:
    file = folder / "made.toml"
    outcome = call("study", "run", "--workers", "0", file)
    assert outcome.code == 0, outcome.err
    assert sung(folder) == ["canary_data", "canary_model", "canary_net"]
    for command in COMMANDS[:-1]:
        outcome = call(*command, file)
        assert (outcome.code, sung(folder)) == (0, []), outcome.err
        assert "canary_data:make was not called" in " ".join((outcome.out + outcome.err).split())
    assert call("study", "status", "--json", file).document["done"] == 12
    for command in ("verify", "export"):
        more = [folder / "out.csv"] if command == "export" else []
        call("store", command, folder / "runs", *more)
        assert sung(folder) == []
    # With trust the same runs are found, and nothing is assumed.
    outcome = call("study", "status", "--json", "--trust", file)
    assert (outcome.document["done"], outcome.document["missing"]) == (12, 0)
    assert "not called" not in outcome.out


def test_a_status_says_when_the_code_has_changed(call: Callable, folder: Path) -> None:
    file = folder / "made.toml"
    assert call("study", "run", "--workers", "0", file).code == 0
    assert "has changed since" not in call("study", "status", file).err
    (folder / "canary_data.py").write_text(DATA.replace("default_rng(0)", "default_rng(1)"))
    assert "has changed since" in " ".join(call("study", "status", file).err.split())
    assert call("study", "status", "--json", "--trust", file).document["missing"] == 12
    # Other options name other data, of which there is no copy.
    file.write_text(file.read_text().replace("apart = 9.0", "apart = 8.0"))
    outcome = call("study", "status", file)
    assert outcome.code != 0
    assert "evaluate.far.data is made by canary_data:make" in " ".join(outcome.err.split())


SHADOWS = ("json.py", "pickle.py", "struct.py", "queue.py", "joblib.py", "numpy/__init__.py")

CONSTANT = """
class Constant:
    def fit(self, x, y):
        pass

    def predict(self, x):
        return [0] * len(x)
"""


def test_what_is_installed_is_never_shadowed(start: Callable, folder: Path) -> None:
    """The worst case: in the study's folder, with Python's path as ``python -m`` sets it."""
    for name in SHADOWS:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(CANARY.format("shadow"))
    (folder / "constant.py").write_text(CANARY.format("constant") + CONSTANT)
    (folder / "small.toml").write_text(
        'data = "data.npz"\n[design]\nsizes = [20]\nfolds = 1\n'
        '[learners.mine]\nestimator = "constant:Constant"\n'
        '[learners.bayes]\nestimator = "sklearn.naive_bayes:GaussianNB"\n'
    )
    outcome = start("study", "run", "--workers", "1", "small.toml", cwd=folder)
    assert outcome.code == 0, outcome.err
    assert sung(folder) == ["constant"]


# Python as it is where some packages are not installed.
HIDE = """
import sys, sysconfig
from importlib.machinery import PathFinder
places = {{sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}}
find = PathFinder.find_spec
def find_spec(name, path=None, target=None):
    if name in {hidden!r}:
        path = [p for p in (sys.path if path is None else path) if p not in places]
    return find(name, path, target)
PathFinder.find_spec = staticmethod(find_spec)
sys.argv[0] = "-m"
from curvewise.cli import main
sys.exit(main({words!r}))
"""


@pytest.mark.parametrize(
    ("hidden", "estimator", "told"),
    [
        ("pytest", "sklearn.utils._testing:MinimalClassifier", "not imported without --trust"),
        ("pytest", "sklearn.conftest:Zen", "not imported without --trust"),
        ("pytest", "sklearn.utils.tests.test_validation:Zen", "not imported without --trust"),
        ("joblib", "sklearn.svm:SVC", "cannot import 'joblib'"),
        ("sklearn", "sklearn.evil:Zen", "needs scikit-learn, which is not installed"),
    ],
)
def test_names_that_need_no_trust_are_never_found_beside_a_study(
    start: Callable, folder: Path, hidden: str, estimator: str, told: str
) -> None:
    for name in ("pytest.py", "joblib.py", "sklearn/__init__.py", "sklearn/evil.py"):
        if name.startswith(hidden):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(CANARY.format("shadow"))
    (folder / "small.toml").write_text(
        f'data = "data.npz"\n[design]\nsizes = [20]\nfolds = 1\n[learners.mine]\nestimator = "{estimator}"\n'
    )
    code = HIDE.format(hidden=(hidden,), words=["study", "plan", str(folder / "small.toml")])
    (folder / "elsewhere").mkdir()
    outcome = start("-c", code, python=True, cwd=folder / "elsewhere")
    assert sung(folder) == []
    assert told in " ".join(outcome.err.split())


def test_what_is_not_installed_is_not_found_in_the_current_folder(start: Callable, folder: Path) -> None:
    optional = ("numba", "pandas", "polars", "pyarrow", "sklearn", "torch", "tqdm")
    for name in optional:
        (folder / f"{name}.py").write_text(CANARY.format(name))
    (folder / "runs.parquet").write_bytes(b"PAR1")
    (folder / "net.toml").write_text(
        'data = "data.npz"\n[design]\nsizes = [20]\n[learners.net]\narchitecture = "mlp"\n'
    )
    told = {"runs.parquet": "pip install", "net.toml": "No module named 'torch'"}
    for words in (["learning", "fit", "runs.parquet"], ["study", "plan", "net.toml"]):
        outcome = start("-c", HIDE.format(hidden=optional, words=words), python=True, cwd=folder)
        assert told[words[-1]] in outcome.err
        assert sung(folder) == []


OWN = """
import json, os, sys
from pathlib import Path
Path(__file__).with_name(f"path-{os.getpid()}.json").write_text(json.dumps(sys.path))

class Constant:
    def __init__(self):
        import own_first

    def fit(self, x, y):
        import own_second

    def predict(self, x):
        return [0] * len(x)
"""


@pytest.mark.parametrize("here", [True, False])
def test_own_code_is_found_while_it_runs_and_the_folder_is_no_longer_on_the_path(
    start: Callable, folder: Path, here: bool
) -> None:
    for name, text in {"own_code": OWN, "own_first": "", "own_second": ""}.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "small.toml").write_text(
        'data = "data.npz"\n[design]\nsizes = [20]\nfolds = 1\n[learners.mine]\nestimator = "own_code:Constant"\n'
    )
    (folder / "other").mkdir()
    place = folder if here else folder / "other"
    words = ("study", "run", "--workers", "1", "--shard", "1/1", folder / "small.toml")
    outcome = start(*words, cwd=place)
    assert outcome.code == 0, outcome.err
    paths = [json.loads(file.read_text()) for file in folder.glob("path-*.json")]
    assert paths
    for path in paths:  # once, at the end, while the study's code is imported
        assert [i for i, entry in enumerate(path) if entry == str(folder)] == [len(path) - 1]
        assert str(place) not in path[:-1]
        assert "" not in path


def test_a_clash_is_an_error_that_says_so(call: Callable, folder: Path) -> None:
    (folder / "sklearn").mkdir()
    (folder / "sklearn" / "__init__.py").write_text(CANARY.format("shadow"))
    outcome = call("study", "plan", folder / "files.toml")
    told = " ".join(outcome.err.split())
    assert "there are two modules 'sklearn'" in told
    assert "rename sklearn" in told
    assert sung(folder) == []
    # Also of what a file beside the study imports, which is why it is read before it is run.
    (folder / "json.py").write_text(CANARY.format("shadow"))
    (folder / "canary_model.py").write_text(CANARY.format("canary_model") + "import helper" + MODEL)
    (folder / "helper.py").write_text("from json import dumps")
    outcome = call("study", "plan", "--trust", folder / "files.toml")
    assert "there are two modules 'json'" in " ".join(outcome.err.split())
    assert "canary_model" not in sung(folder)


def test_a_pool_of_checkpoints_names_no_code_without_trust(call: Callable, folder: Path) -> None:
    np.savez(folder / "weights.npz", weight=np.zeros((2, 3), np.float32), bias=np.zeros(2))
    (folder / "pool.toml").write_text('[one]\npath = "weights.npz"\nfactory = "canary_net:make"\nshape = [3]\n')
    words = ("ranking", "rank", folder / "pool.toml", "--data", folder / "data.npz")
    assert call(*words, "--dry-run").code == 0
    outcome = call(*words)
    assert outcome.code == 2
    assert "pass --trust" in outcome.err
    assert sung(folder) == []


def test_a_matplotlibrc_beside_a_study_is_not_followed(start: Callable, folder: Path) -> None:
    (folder / "matplotlibrc").write_text("lines.linewidth: 77\ntext.usetex: True\n")
    code = "from curvewise.drawing.picture import use_no_display; import matplotlib; use_no_display();"
    code += "print(matplotlib.rcParams['lines.linewidth'], matplotlib.rcParams['text.usetex'])"
    assert start("-c", code, python=True, cwd=folder).out.split() == ["1.5", "False"]
