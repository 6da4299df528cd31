"""Files and frames in, measurements, predictions, scores and corpora out.

Importing this package loads neither pandas nor narwhals nor pyarrow; a reader imports what it
needs when it is called.
"""

from curvewise.io.checkpoint_scores import load_checkpoint_scores
from curvewise.io.corpus import load_corpus
from curvewise.io.measurements import load_measurements
from curvewise.io.predictions import load_predictions
from curvewise.io.risks import load_risks
from curvewise.io.scores import load_scores

__all__ = [
    "load_checkpoint_scores",
    "load_corpus",
    "load_measurements",
    "load_predictions",
    "load_risks",
    "load_scores",
]
