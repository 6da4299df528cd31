"""A study file to begin with."""

from __future__ import annotations

import inspect

from curvewise.errors import InputError
from curvewise.study.recipes import RECIPES, recipe_document
from curvewise.study.toml import toml_text

STARTER = """\
# A study: many trainings by a plan. See what it would do, do it, look at it:
#   curvewise study plan study.toml
#   curvewise study run study.toml
#   curvewise study report study.toml

name = "digits"
seed = 0                    # decides the test set, the subsets and the seeds of all runs
# store = "runs"            # folder of the runs; by default digits-runs beside this file

[data]
name = "digits"             # or a file or folder: path = "data.npz"

# Networks: settings of the training, and beside them options of the architecture (width).
[learners.network]
architecture = "mlp"        # linear, mlp, cnn, vgg11 …, nin, resnet9 …, or "module:function"
width = 64
optimiser = "sgd"           # sgd, adam, adamw, ranger
rate = 0.1                  # several, as [0.05, 0.1], are searched on one subset
batch = 32
epochs = 20
schedule = "linear"         # constant, linear, cosine, drops, plateau, early-stop, searched

# Estimators of scikit-learn with their parameters.
[learners.forest]
estimator = "sklearn.ensemble:RandomForestClassifier"
n_estimators = 50

# Anything else: a command that writes its predictions into the folder {out}.
# [learners.mine]
# command = "python train.py --rows {rows} --seed {seed} --out {out}"

[design]
sizes = [50, 100, 200, 400]
folds = [8, 4, 2, 1]        # disjoint subsets of each size
seeds = 2                   # runs on each subset
vary = ["init", "order", "augmentation"]    # what differs between them
# poke = { epoch = 0, factor = 1.001 }      # nudge one weight
# grid = { batch = [16, 64] }               # every combination is trained

# Further sets to predict, beside the test set; needs the extra torch.
# [evaluate.rotated]
# perturbation = "rotation"
# magnitude = 30

[keep]
probabilities = false
checkpoints = "none"        # end, or drops: also before every drop of the learning rate
features = false
"""

# Recipes that cannot be written without a choice.
_CHOICES = {"variance-text": {"model": "models/encoder"}}


def starter_text(recipe: str | None = None) -> str:
    """Text of a study file to begin with, by the protocol of a paper if one is named.

    >>> "batch = 500" in starter_text("variance")
    True
    """
    if recipe is None:
        return STARTER
    asked = {"name": recipe, **_CHOICES.get(recipe, {})}
    document = recipe_document(asked)
    document.pop("training")
    words = inspect.getdoc(RECIPES[recipe]) or ""
    said = words.split("\nParameters\n")[0].strip()
    head = [
        f"# Recipe {recipe}. {line}" if i == 0 else f"# {line}".rstrip()
        for i, line in enumerate(said.splitlines())
    ]
    tables = toml_text({"name": recipe, "seed": 0, "data": {"name": "digits"}, **document})
    if not document["learners"]:
        raise InputError(f"recipe={recipe!r} names no learner.")
    return "\n".join([*head, "", tables])
