"""The measures that need features and labels alone, by name."""

from __future__ import annotations

from collections.abc import Mapping

from curvewise.ranking.gbc import MEASURES as _GBC
from curvewise.ranking.h_score import MEASURES as _H_SCORE
from curvewise.ranking.knn import MEASURES as _KNN
from curvewise.ranking.leep import MEASURES as _LEEP
from curvewise.ranking.logme import MEASURES as _LOGME
from curvewise.ranking.measure import RankingMeasure
from curvewise.ranking.nleep import MEASURES as _NLEEP
from curvewise.ranking.parc import MEASURES as _PARC
from curvewise.ranking.transrate import MEASURES as _TRANSRATE

MEASURES: Mapping[str, RankingMeasure] = {
    measure.name: measure
    for family in (_NLEEP, _LEEP, _LOGME, _H_SCORE, _GBC, _TRANSRATE, _PARC, _KNN)
    for measure in family
}
"""By name; those that train something are in :mod:`curvewise.nn.ranking`."""
