"""Write a report on the two studies on Fashion-MNIST; nothing is trained.

    python examples/fashion_mnist/report.py fashion-mnist.html

The errors and predictions come from run.py.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from analyse import load_errors, load_seeds

import curvewise as cw


def main(path: str) -> None:
    """Write the page."""
    warnings.simplefilter("ignore", cw.CurvewiseWarning)  # the page shows them
    measured = load_errors()
    curves = cw.fit_learning_curves(measured)
    sections = {
        "How does error fall with data?": curves,
        "Which will be best with four times the data?": cw.rank_learners(list(curves), at=4 * float(max(measured.n))),
    }
    for epochs, runs in load_seeds().items():
        many = "1 epoch" if epochs == 1 else f"{epochs} epochs"
        sections[f"How much do 200 runs differ after {many}?"] = cw.decompose_variance(runs)
    title = "Fashion-MNIST: three networks, many seeds"
    page = cw.write_report(sections, path, title=title, code=Path(__file__).read_text(encoding="utf-8"))
    print(f"{page}: {page.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", default="fashion-mnist.html")
    main(parser.parse_args().path)
