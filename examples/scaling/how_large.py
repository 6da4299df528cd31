"""Choose a model size for a compute budget, check the extrapolation, compare two families, and plan further runs.

    python examples/scaling/how_large.py

The runs beside this file are simulated: see make_runs.py, which knows the truth.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import curvewise as cw

RUNS = Path(__file__).parent / "runs.csv"


def main() -> None:
    """Print the answers, and draw the law into law.png."""
    warnings.simplefilter("ignore", cw.CurvewiseWarning)  # the summaries below have them
    print("Simulated runs: no model was trained.\n")
    base, new = (cw.load_scaling_runs(RUNS, where={"family": name}, name=name) for name in ("base", "new"))

    law = cw.fit_scaling_law(base)
    print(law, "\n")
    print(law.compute_optimal(1e23), "\n")
    print(law.backtest(hold_out=16), "\n")
    print(law.sensitivity(1e23), "\n")
    print(cw.compare_scaling_laws(law, cw.fit_scaling_law(new)), "\n")
    print(cw.plan_scaling_runs(law, 1e23))
    law.plot(budget=1e23).figure.savefig("law.png", dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main()
