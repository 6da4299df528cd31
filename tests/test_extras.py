"""What pyproject.toml declares is what is imported, and each extra works without the others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {
    name: asked
    for name, asked in PROJECT["optional-dependencies"].items()
    if name not in ("all", "demo", "test", "docs", "dev")
}
MODULES = {"scikit-learn": "sklearn", "pillow": "PIL", "mlflow-skinny": "mlflow", "backports.zstd": "backports"}
"""Where a module is not called as its distribution, with _ for -."""
USERS_OWN = {"timm", "torchvision"}
"""Used where a user has them, and never asked for."""
OTHERS_NEED = {"accelerate"}
"""Needed by what an extra installs, and not imported here."""


def modules(requirements: list[str]) -> set[str]:
    names = [re.split(r"[\[><=!~ ]", r)[0].lower() for r in requirements]
    return {MODULES.get(name, name.replace("-", "_")) for name in names if name != "curvewise"}


def imported() -> dict[str, str]:
    """Every module of others that is imported under src, and where."""
    found = {}
    for file in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                ("import_module", "import_tracker", "_runtime")
            ):
                place = node.args[2] if ast.unparse(node.func) == "_runtime" else node.args[0]
                names = [place.value] if isinstance(place, ast.Constant) else []
            found.update({n.split(".")[0]: f"{file.name}:{node.lineno}" for n in names})
    own = {"curvewise", *sys.stdlib_module_names}
    return {name: where for name, where in found.items() if name not in own}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    extras = modules([r for asked in EXTRAS.values() for r in asked])
    declared = modules(PROJECT["dependencies"]) | extras
    found = imported()
    assert {n: w for n, w in found.items() if n not in declared | USERS_OWN} == {}
    assert declared - set(found) == OTHERS_NEED
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert everything == f"curvewise[{','.join(EXTRAS)}]"


def test_every_extra_is_listed_where_people_install() -> None:
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `([\w-]+)` \|", text, flags=re.MULTILINE)} == {*EXTRAS, "all", "demo"}
    # An integration is called as its module.
    folder = ROOT / "src" / "curvewise" / "integrations"
    own = {path.stem.replace("_", "-") for path in folder.glob("[a-z]*.py")} - {"runs"}
    assert own <= set(EXTRAS)


ONNX = """
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
random = np.random.default_rng(0)
conv = random.normal(size=(6, 3, 3, 3)).astype("f4")
dense = random.normal(size=(6, 2)).astype("f4")
nodes = [
    helper.make_node("Conv", ["in", "conv"], ["map"]),
    helper.make_node("GlobalAveragePool", ["map"], ["pool"]),
    helper.make_node("Flatten", ["pool"], ["flat"]),
    helper.make_node("Gemm", ["flat", "dense"], ["scores"]),
    helper.make_node("Softmax", ["scores"], ["out"]),
]
value = helper.make_tensor_value_info
graph = helper.make_graph(
    nodes, "g", [value("in", TensorProto.FLOAT, ["n", 3, 8, 8])],
    [value("out", TensorProto.FLOAT, ["n", 2])],
    [numpy_helper.from_array(w, n) for n, w in (("conv", conv), ("dense", dense))],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, folder + "/net.onnx")
labels = np.arange(40) % 2
images = random.integers(0, 256, (40, 3, 12, 16)).astype("u1")
images[labels == 1, 0] //= 3
pre = cw.ranking.Preprocessing((8, 8), interpolation="bicubic")
found = cw.extract_features(folder + "/net.onnx", images, preprocessing=pre)
assert found.features.shape == (40, 6) and found.gflops > 0
x = pre(images)
windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
wanted = np.einsum("nchwij,ocij->no", windows, conv) / 36
assert np.allclose(found.features, wanted, atol=1e-4)
scores = np.exp(wanted @ dense)
assert np.allclose(found.probabilities, scores / scores.sum(1, keepdims=True), atol=1e-4)
ranked = cw.rank_checkpoints([folder + "/net.onnx"], (images, labels), preprocessing=pre)
assert ranked.checkpoints == ("net",) and not ranked.failures
try:
    cw.rank_checkpoints([folder + "/net.onnx"], (images, labels), "linear", preprocessing=pre)
except cw.InputError as error:
    assert 'need torch: pip install "curvewise[torch]"' in str(error), error
try:
    cw.extract_features(weights, images)
except ImportError as error:
    assert 'needs torch, which is not installed: pip install "curvewise[torch]"' in str(error)
else:
    raise AssertionError("weights of torch were read without torch")
from curvewise.cli import main
np.savez(folder + "/data.npz", x=images, y=labels)
sys.argv = [
    "curvewise", "ranking", "rank", folder + "/net.onnx", "--data", folder + "/data.npz",
    "--preprocess", "size=[8,8]", "--json",
]
try:
    code = main()
except SystemExit as end:
    code = end.code
assert not code, code
"""
TFLITE = """
import numpy as np
images = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3)).astype("u1")
found = cw.extract_features(checkpoints + "/mobilenet_v1_0.25_128_quant.tflite", images)
assert found.features.shape == (8, 256) and found.probabilities.shape == (8, 1001)
"""
SKLEARN = """
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
x, y = load_iris(return_X_y=True)
found = cw.study.measure_learning_curve(GaussianNB(), x, y, sizes=[20, 40], folds=2)
assert len(found.error) == 4
assert cw.load_dataset("digits").x.shape == (1797, 1, 8, 8)
"""
TORCH = """
import numpy as np, torch
images = np.random.default_rng(0).integers(0, 256, (12, 3, 8, 8)).astype("u1")
assert cw.response.perturb(images, "rotation", 20).shape == images.shape
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3)).eval()
curve = cw.measure_response(network, (images, np.arange(12) % 3), "shift-x", magnitudes=[0, 0.5])
assert len(curve.accuracy) == 2
"""
REPORT = """
from pathlib import Path
result = cw.fit_learning_curve([25, 50, 100, 200, 400] * 3, [.5, .4, .3, .25, .2] * 3)
cw.write_report(result, folder + "/page.html")
assert "<html" in Path(folder, "page.html").read_text()
"""
PARQUET = """
import pandas as pd
table = pd.DataFrame({"n": [10, 20], "error": [.3, .2]})
table.to_parquet(folder + "/table.parquet")
assert list(cw.load_measurements(folder + "/table.parquet").n) == [10, 20]
"""
IMAGES = """
import numpy as np
from pathlib import Path
from PIL import Image
for i in range(12):
    place = Path(folder, "pictures", "ab"[i % 2])
    place.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((6, 6, 3), i, np.uint8)).save(place / f"{i}.png")
assert cw.load_dataset(folder + "/pictures").x.shape == (12, 3, 6, 6)
"""
USES = {
    "onnx": ONNX,
    "tflite": TFLITE,
    "sklearn": SKLEARN,
    "torch": TORCH,
    "report": REPORT,
    "parquet": PARQUET,
    "images": IMAGES,
}
ALWAYS = {"PIL"}
"""Comes with matplotlib."""


WITHOUT = """
import sys, warnings
from importlib.machinery import PathFinder
warnings.simplefilter("ignore")
usual = sys.meta_path[:]
class Without:
    find_distributions = staticmethod(PathFinder.find_distributions)
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in blocked:
            found = (finder.find_spec(name, path, target) for finder in usual)
            return next((spec for spec in found if spec is not None), None)
sys.meta_path[:] = [Without()]
"""


def run(code: str, blocked: set[str], **names: str) -> None:
    """Run code in a process of its own where some modules are not found."""
    lines = [
        f"blocked = {blocked!r}",
        WITHOUT,
        "import curvewise as cw",
        *(f"{name} = {value!r}" for name, value in names.items()),
        code,
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("extra", USES)
def test_an_extra_works_where_no_other_is_installed(extra: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    own = modules(EXTRAS[extra])
    for module in own:
        pytest.importorskip(module)
    names = {"folder": str(tmp_path)}
    if extra == "tflite":
        names["checkpoints"] = str(request.getfixturevalue("data_dir") / "checkpoints")
        if not Path(names["checkpoints"], "mobilenet_v1_0.25_128_quant.tflite").is_file():
            pytest.skip("no TensorFlow Lite file among the data")
    if extra == "onnx":
        names["weights"] = str(tmp_path / "weights.safetensors")
        header = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        content = len(header).to_bytes(8, "little") + header + bytes(4)
        (tmp_path / "weights.safetensors").write_bytes(content)
    others = {m for name, asked in EXTRAS.items() for m in modules(asked) if name != extra}
    run(USES[extra], others - own - ALWAYS, **names)


LACKING = """
import numpy as np
from importlib import import_module
from pathlib import Path
images = np.zeros((4, 3, 8, 8), "u1")
Path(folder, "a.onnx").write_bytes(b"\\x08\\x08" + bytes(20))
Path(folder, "a.tflite").write_bytes(bytes(4) + b"TFL3" + bytes(20))
Path(folder, "a.parquet").write_bytes(b"PAR1" + bytes(20))
Path(folder, "a.csv").write_text("text,label\\ngood,1\\nbad,0\\n")
(Path(folder) / "pictures" / "a").mkdir(parents=True)
Path(folder, "pictures", "a", "1.png").write_bytes(bytes(20))
curve = cw.fit_learning_curve([25, 50, 100, 200, 400] * 3, [.5, .4, .3, .25, .2] * 3)
learners = {"bayes": cw.Learner(estimator="sklearn.naive_bayes:GaussianNB")}
study = cw.Study(
    cw.study.Dataset(np.eye(8), np.arange(8) % 2), learners, cw.Design(sizes=[4], folds=1), folder=folder
)
text = {"path": folder + "/a.csv", "label": "label", "text": "text", "tokenizer": folder}
attempts = {
    "images": lambda: cw.load_dataset(folder + "/pictures"),
    "onnx": lambda: cw.extract_features(folder + "/a.onnx", images),
    "tflite": lambda: cw.extract_features(folder + "/a.tflite", images),
    "torch": lambda: cw.response.perturb(images, "blur", 1),
    "sklearn": lambda: cw.load_dataset("digits"),
    "report": lambda: cw.write_report(curve, folder + "/a.html"),
    "parquet": lambda: cw.load_measurements(folder + "/a.parquet"),
    "text": lambda: cw.load_dataset(text),
    "ray": lambda: study.run(on="ray"),
    "lightning": lambda: import_module("curvewise.integrations.lightning"),
    "hugging-face": lambda: import_module("curvewise.integrations.hugging_face"),
}
for extra, attempt in attempts.items():
    try:
        attempt()
    except ImportError as error:
        assert f'pip install "curvewise[{extra}]"' in str(error), (extra, error)
    else:
        raise AssertionError(f"{extra} was not missed")
    blocked.discard("PIL")  # matplotlib needs it
"""


def test_an_extra_that_is_missing_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    blocked = {m for asked in EXTRAS.values() for m in modules(asked)}
    run(LACKING, blocked, folder=str(tmp_path))


def test_pictures_are_resized_alike_with_and_without_torch() -> None:
    torch = pytest.importorskip("torch")
    from curvewise.ranking.networks.preprocessing import Preprocessing

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (2, 3, 37, 50)).astype(np.uint8)
    for sides in ((17, 23), (90, 61), (37, 20), (5, 50), (1, 3)):
        for way in ("nearest", "bilinear", "bicubic"):
            for antialias in (True, False):
                made = Preprocessing(sides, scale=255, interpolation=way, antialias=antialias, channels="bgr")
                ours, theirs = made(images), made(torch.from_numpy(images)).numpy()
                assert ours.dtype == np.float32
                off = np.abs(ours - theirs)
                assert off.max() <= 1, (sides, way, antialias)  # a half is rounded either way
                assert (off > 0).sum() <= 2 + 1e-3 * off.size, (sides, way, antialias)
