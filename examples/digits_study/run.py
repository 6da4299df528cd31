"""Train two networks on several amounts of data with many seeds, and compare them.

    python examples/digits_study/run.py

Trains the 736 small networks of study.toml, which takes one or two minutes on two cores. They are stored beside it, and
a second call continues where the first stopped. `curvewise demo` runs the same study and explains it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import curvewise as cw


def main(file: Path) -> None:
    """Run the study of a file and analyse it."""
    study = cw.load_study(file)
    print(study.run().summary())

    # How does error fall with data? Networks trained on one subset are not independent: average their seeds.
    curves = cw.fit_learning_curves(study.measurements(seeds="mean"))
    print(cw.compare_learning_curves(curves["CNN"], curves["MLP"]).summary())

    # How much of the variance between seeds would also appear on new digits?
    n = max(study.partition.sizes)
    cnn, mlp = (study.predictions(name, n=n) for name in ("CNN", "MLP"))
    print(cw.decompose_variance(cnn).summary())
    print(cw.compare_runs(cnn, mlp, names=("CNN", "MLP"), paired=False).summary())


if __name__ == "__main__":  # the study starts worker processes
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("study.toml"))
