"""Is the new training better, or only luckier? Many seeds of two trainings on handwritten digits.

Trains two sizes of a small network with twenty seeds each, splits the spread between seeds into
what is real and what is the finite test set, compares the two, and says how many seeds would have
been needed. Writes runs.png into the current folder. Takes about half a minute.
"""

import warnings

import matplotlib

matplotlib.use("Agg")  # draw into files, without a window

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import curvewise as cw

warnings.simplefilter("ignore", ConvergenceWarning)  # short trainings are what is studied
X, y = load_digits(return_X_y=True)
train, test, truth, labels = train_test_split(X / 16, y, test_size=0.5, random_state=0)


def predictions(units: int) -> np.ndarray:
    """Twenty runs × examples: what each run predicts for the digits held out."""
    runs = [
        MLPClassifier((units,), max_iter=100, random_state=seed).fit(train, truth).predict(test)
        for seed in range(20)
    ]
    return np.array(runs)


small, large = predictions(32), predictions(64)

# What part of the spread between seeds would show on new digits, too?
spread = cw.decompose_variance(small, labels)
print(spread.summary())

# Would picking the luckiest seed help?
print(cw.measure_seed_luck(small, labels=labels).summary())

# Is the larger network better: on these digits, and on new ones?
comparison = cw.compare_runs(large, small, labels, names=("64 units", "32 units"), margin=0.01)
print(comparison.summary())

# How many seeds of each would show a difference of one point?
plan = cw.plan_runs(difference=0.01, pilot=(cw.decompose_variance(large, labels), spread))
print(plan.summary())

comparison.plot().figure.savefig("runs.png", bbox_inches="tight")
