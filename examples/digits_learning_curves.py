"""Compare two classifiers by their learning curves, and estimate what more data would bring.

Measures the learning curves of two classifiers on the handwritten digits of scikit-learn. Writes errors.csv and
curves.png to the current folder. Takes about ten seconds.
"""

import matplotlib

matplotlib.use("Agg")  # draw into files, without a window

from sklearn.datasets import load_digits
from sklearn.ensemble import BaggingClassifier
from sklearn.naive_bayes import GaussianNB

import curvewise as cw

X, y = load_digits(return_X_y=True)
learners = {"bagged trees": BaggingClassifier(n_estimators=10), "naive Bayes": GaussianNB(var_smoothing=0.001)}

# Train both on the same disjoint subsets: many small ones, fewer large ones. A fifth of the data
# is held out as the test set. With store="runs", an interrupted script can be resumed.
measurements = cw.study.measure_learning_curve(
    learners, X, y, sizes=[44, 89, 179, 359, 718, 1437], folds=[16, 16, 8, 4, 2, 1], rng=0
)
table = measurements.frame()[["learner", "n", "fold", "error"]]
table.round(6).to_csv("errors.csv", index=False)

# Describe: the error with all data, and how strongly it depends on the amount of data.
curves = cw.fit_learning_curves(measurements)
for curve in curves:
    print(curve.summary())

# Compare them with the data at hand.
trees, bayes = curves["bagged trees"], curves["naive Bayes"]
print(cw.compare_learning_curves(trees, bayes).summary())

# Is more data worth it? How much would an error of 5% take?
print(trees.samples_to_reach(0.05).summary())

# Which is better with four times the data? form="auto" extrapolates best.
extrapolators = cw.fit_learning_curves(measurements, form="auto")
print(cw.rank_learners(extrapolators, at=4 * 1437).summary())

cw.plot_learning_curves(curves).figure.savefig("curves.png", bbox_inches="tight")
