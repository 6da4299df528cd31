"""Score, rank and compare models by their evaluation logs, and plan the next evaluation.

    python examples/evals/compare_models.py

Where the variable CURVEWISE_DATA names a folder with real logs (CRUXEval, 27 models with ten samples of each question;
trials of an agent in tau-bench), these are read. Elsewhere the small logs beside this file are, which are made: see
make_logs.py.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import curvewise as cw

MADE = Path(__file__).parent / "logs"
REAL = Path(os.environ.get("CURVEWISE_DATA", "")) / "evals" if os.environ.get("CURVEWISE_DATA") else None


def main() -> None:
    """Print the answers, and draw the leaderboard into leaderboard.png."""
    warnings.simplefilter("ignore", cw.CurvewiseWarning)  # the summaries below have them
    if REAL is not None and (REAL / "cruxeval").is_dir():
        print(f"Real logs in {REAL}\n")
        models, agents = cw.load_evals(REAL / "cruxeval", models="*temp0.8*"), cw.load_evals(REAL / "tau-bench")
    else:
        print("Made logs: no model was asked.\n")
        models, agents = cw.load_evals(MADE / "math"), cw.load_evals(MADE / "agents")

    ranking = cw.rank_models(models)
    print(ranking, "\n")
    first, second = ranking.models[:2]
    comparison = cw.compare_evals(models, first, second)
    print(comparison, "\n")
    print(cw.plan_evals(0.02, pilot=comparison), "\n")
    print(cw.evals.measure_passes(agents, "pass^"))
    ranking.plot().figure.savefig("leaderboard.png", dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main()
