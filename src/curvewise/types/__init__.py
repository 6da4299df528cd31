"""What goes in and what comes out: units, measurements, predictions, intervals, results."""

from curvewise.types.coercion import as_predictions, asked_of
from curvewise.types.corpus import ModelCorpus
from curvewise.types.features import CheckpointFeatures, as_matrix
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import KINDS, Predictions, Source, check_labelled
from curvewise.types.results import (
    Interval,
    Result,
    check_level,
    data_frame,
    interval_columns,
    plain,
)
from curvewise.types.risks import Control, TransferRisks
from curvewise.types.scores import CheckpointScores
from curvewise.types.units import UNITS, FloatArray, Unit, as_floats

__all__ = [
    "KINDS",
    "UNITS",
    "CheckpointFeatures",
    "CheckpointScores",
    "Control",
    "FloatArray",
    "Interval",
    "Measurements",
    "ModelCorpus",
    "Predictions",
    "Result",
    "Source",
    "TransferRisks",
    "Unit",
    "as_floats",
    "as_matrix",
    "as_predictions",
    "asked_of",
    "check_labelled",
    "check_level",
    "data_frame",
    "interval_columns",
    "plain",
]
