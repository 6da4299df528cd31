"""Which of many checkpoints to fine-tune, from features alone."""

from curvewise.ranking.agreement import RankingAgreement, ranking_agreement
from curvewise.ranking.certainty import Reliability
from curvewise.ranking.comparing import RankingComparisons
from curvewise.ranking.gbc import gbc
from curvewise.ranking.grid import NleepGrid, measure_nleep_grid
from curvewise.ranking.h_score import h_score
from curvewise.ranking.joining import add_rankings
from curvewise.ranking.judge import judge_rankings
from curvewise.ranking.judgement import RankingJudgement
from curvewise.ranking.knn import knn
from curvewise.ranking.leep import leep, nce
from curvewise.ranking.logme import logme
from curvewise.ranking.measure import RankingMeasure
from curvewise.ranking.nleep import nleep
from curvewise.ranking.parc import parc
from curvewise.ranking.rank import rank_features
from curvewise.ranking.ranking_result import CheckpointRanking
from curvewise.ranking.transrate import transrate

__all__ = [
    "CheckpointRanking",
    "NleepGrid",
    "RankingAgreement",
    "RankingComparisons",
    "RankingJudgement",
    "RankingMeasure",
    "Reliability",
    "add_rankings",
    "gbc",
    "h_score",
    "judge_rankings",
    "knn",
    "leep",
    "logme",
    "measure_nleep_grid",
    "nce",
    "nleep",
    "parc",
    "rank_features",
    "ranking_agreement",
    "transrate",
]
