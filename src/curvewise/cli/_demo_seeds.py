"""The second half of the demo: the same training with many seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from curvewise.cli._console import Page, note, sentences, warn_each
from curvewise.cli._files import quietly, save_plot

if TYPE_CHECKING:
    from curvewise.types import Predictions

TREES = (10, 20)
RUNS, FEW_RUNS = 20, 8


def show_seeds(page: Page, out: Path, seed: int, fast: bool) -> list[str]:
    """Train with many seeds, say what differences are real, and give the files written."""
    from curvewise.variance import compare_runs, decompose_variance

    runs = FEW_RUNS if fast else RUNS
    few, many = (_train(out, count, runs, seed) for count in TREES)
    names = (f"{TREES[1]} trees", f"{TREES[0]} trees")
    with quietly():
        spread = decompose_variance(few)
        better = compare_runs(many, few, names=names, paired=False)
    page.document |= {"seeds": spread, "more_trees": better}
    for question, answer in {
        f"How much of the spread between {runs} seeds of {names[1]} is real?": spread,
        f"Are {names[0]} better than {TREES[0]}, on new digits too?": better,
    }.items():
        page.say(question, style="bold")
        page.say(sentences(answer), close=True)
        warn_each(answer.all_warnings)
    save_plot(out / "seeds.png", better.plot, quiet=True)
    return [str(out / f"trees-{count}.npz") for count in TREES] + [str(out / "seeds.png")]


def _train(out: Path, count: int, runs: int, seed: int) -> Predictions:
    """Predictions of many seeds for the digits held out, kept in a file."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.ensemble import BaggingClassifier
    from sklearn.model_selection import train_test_split

    from curvewise.io import load_predictions

    path = out / f"trees-{count}.npz"
    if path.exists() and (kept := load_predictions(path)).runs == runs:
        return kept
    note(f"training {runs} models of {count} trees with different seeds")
    X, y = load_digits(return_X_y=True)
    split = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    train, test, truth, labels = split
    preds = [
        BaggingClassifier(n_estimators=count, random_state=1000 * seed + r)
        .fit(train, truth)
        .predict(test)
        for r in range(runs)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, preds=np.array(preds, dtype=np.uint8), labels=labels)
    return load_predictions(path)
