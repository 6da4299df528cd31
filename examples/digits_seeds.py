"""Is the new training better, or only luckier? Many seeds of three trainings on handwritten digits.

Trains networks of three sizes with forty seeds each, splits the spread between seeds into what is
real and what is the finite test set, compares two of them, and says how many seeds would have been
needed. Writes units16.npz, units64.npz, units128.npz and runs.png into the current folder. Takes
about half a minute.
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

warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of epochs is meant
X, y = load_digits(return_X_y=True)
train, test, truth, labels = train_test_split(X / 16, y, train_size=300, random_state=0, stratify=y)
FIRST_SEED = {16: 0, 64: 100, 128: 200}  # other seeds for every training: nothing is paired


def predictions(units: int) -> cw.Predictions:
    """Forty runs × 1,497 digits held out: what each run predicts."""
    network = MLPClassifier((units,), learning_rate_init=0.01, batch_size=50, max_iter=30)
    seeds = FIRST_SEED[units] + np.arange(40)
    runs = [network.set_params(random_state=s).fit(train, truth).predict(test) for s in seeds]
    preds = np.array(runs, dtype=np.uint8)
    known = {"labels": labels.astype(np.uint8), "seed": seeds}
    np.savez_compressed(f"units{units}.npz", preds=preds, **known)
    return cw.load_predictions(f"units{units}.npz")


runs = {units: predictions(units) for units in FIRST_SEED}

# What part of the spread between seeds would show on new digits, too?
spread = {units: cw.decompose_variance(given) for units, given in runs.items()}
for units, found in spread.items():
    print(f"{units} units. {found.summary()}")

# Would picking the luckiest seed help?
print(cw.measure_seed_luck(runs[64]).summary())

# Are twice the units better: on these digits, and on new ones?
comparison = cw.compare_runs(runs[128], runs[64], names=("128 units", "64 units"), margin=0.005)
print(comparison.summary())

# How many seeds of each would show a difference of half a point?
print(cw.plan_runs(difference=0.005, pilot=(spread[128], spread[64])).summary())

comparison.plot().figure.savefig("runs.png", bbox_inches="tight")
