"""The notebooks, executed from the first cell to the last."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"
PICTURES = {"learning_curve": 2, "seeds": 3}


def outputs(notebook, kind: str) -> list[str]:
    """What cells printed, or the pictures they showed."""
    every = [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]
    if kind == "image/png":
        return [out.data[kind] for out in every if kind in out.get("data", {})]
    return [out.text for out in every if out.output_type == "stream" and out.name == kind]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", PICTURES)
def test_notebook_runs_and_shows_its_pictures(name, monkeypatch, tmp_path):
    config = tmp_path / "profile_default" / "ipython_kernel_config.py"
    config.parent.mkdir()
    config.write_text("c.IPKernelApp.log_level = 'ERROR'\n")  # it would remark on its transport
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # a notebook has its own
    path = NOTEBOOKS / f"{name}.ipynb"
    stored = nbformat.read(path, as_version=4)
    assert path.stat().st_size < 300_000
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOKS)}})
    client.execute()  # an exception in a cell is one here
    assert outputs(notebook, "stderr") == []  # no warning, either
    pictures = outputs(notebook, "image/png")
    assert len(pictures) == len(outputs(stored, "image/png")) == PICTURES[name]
    assert all(len(base64.b64decode(picture)) > 5_000 for picture in pictures)  # not an empty frame
    printed = "".join(outputs(notebook, "stdout"))
    if name == "learning_curve":  # the text says that both errors lie in their intervals
        found = re.findall(r"predicted ([0-9.]+)% to ([0-9.]+)%, measured ([0-9.]+)%", printed)
        assert len(found) == 2
        assert all(float(low) <= float(error) <= float(high) for low, high, error in found)
    else:
        (wrong,) = re.findall(r"In ([0-9]+)% of the draws", printed)
        assert 10 <= int(wrong) <= 40
