"""Is a larger network better, or only luckier? Forty seeds of three networks on handwritten digits.

Trains networks of three sizes with forty seeds each, splits the variance between seeds into real differences and the
effect of the finite test set, compares two of the networks, and plans how many seeds such a comparison needs. Writes
units16.npz, units64.npz, units128.npz and runs.png to the current folder. Takes about half a minute.
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

warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is fixed on purpose
X, y = load_digits(return_X_y=True)
train, test, truth, labels = train_test_split(X / 16, y, train_size=300, random_state=0, stratify=y)
FIRST_SEED = {16: 0, 64: 100, 128: 200}  # different seeds for each network: nothing is paired


def predictions(units: int) -> cw.Predictions:
    """Train forty runs and return what each predicts for the 1,497 test digits."""
    network = MLPClassifier((units,), learning_rate_init=0.01, batch_size=50, max_iter=30)
    seeds = FIRST_SEED[units] + np.arange(40)
    runs = [network.set_params(random_state=s).fit(train, truth).predict(test) for s in seeds]
    preds = np.array(runs, dtype=np.uint8)
    known = {"labels": labels.astype(np.uint8), "seed": seeds}
    np.savez_compressed(f"units{units}.npz", preds=preds, **known)
    return cw.load_predictions(f"units{units}.npz")


runs = {units: predictions(units) for units in FIRST_SEED}

# What part of the variance between seeds would also appear on new digits?
spread = {units: cw.decompose_variance(given) for units, given in runs.items()}
for units, found in spread.items():
    print(f"{units} units. {found.summary()}")

# Does it help to choose the best seed?
print(cw.measure_seed_luck(runs[64]).summary())

# Is the network with twice the units better, on these digits and on new ones?
comparison = cw.compare_runs(runs[128], runs[64], names=("128 units", "64 units"), margin=0.005)
print(comparison.summary())

# How many seeds of each detect a difference of half a percentage point?
print(cw.plan_runs(difference=0.005, pilot=(spread[128], spread[64])).summary())

comparison.plot().figure.savefig("runs.png", bbox_inches="tight")
