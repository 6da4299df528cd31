"""Which of many checkpoints to fine-tune, from features alone."""

from curvewise.ranking.agreement import RankingAgreement, ranking_agreement
from curvewise.ranking.gbc import gbc
from curvewise.ranking.h_score import h_score
from curvewise.ranking.knn import knn
from curvewise.ranking.leep import leep, nce
from curvewise.ranking.logme import logme
from curvewise.ranking.nleep import nleep
from curvewise.ranking.parc import parc
from curvewise.ranking.transrate import transrate

__all__ = [
    "RankingAgreement",
    "gbc",
    "h_score",
    "knn",
    "leep",
    "logme",
    "nce",
    "nleep",
    "parc",
    "ranking_agreement",
    "transrate",
]
