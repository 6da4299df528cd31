"""A shelf of measures that may go with how well a network generalises.

Each is one function of a :class:`~curvewise.nn.measures.subject.Subject` with its orientation,
needs and cost declared; :func:`measure_model` computes them on one network.
"""

from curvewise.nn.measures.measure import Measure
from curvewise.nn.measures.result import ModelMeasures
from curvewise.nn.measures.shelf import MEASURES, list_measures, measure_model

__all__ = ["MEASURES", "Measure", "ModelMeasures", "list_measures", "measure_model"]
