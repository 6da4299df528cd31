"""Does pretraining beat simple controls? Calibrated risk and cumulative improvement."""

from curvewise.transfer.blind import BlindGuess, blind_guess
from curvewise.transfer.calibrated import calibrated_risk
from curvewise.transfer.comparison import TransferComparison
from curvewise.transfer.cumulative import cci
from curvewise.transfer.equivalence import Equivalence, data_equivalence
from curvewise.transfer.gains import GainEnd, gain_end
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.ranks import TransferRanks
from curvewise.transfer.spread import RunSpread, measure_spread
from curvewise.transfer.tasks import TaskRanking, rank_tasks
from curvewise.transfer.transfer_result import Improvement, RiskCurve, TransferResult
from curvewise.transfer.wins import WinRate, WinRates, win_rate, win_rates

__all__ = [
    "BlindGuess",
    "Equivalence",
    "GainEnd",
    "Improvement",
    "RiskCurve",
    "RunSpread",
    "TaskRanking",
    "TransferComparison",
    "TransferRanks",
    "TransferResult",
    "WinRate",
    "WinRates",
    "blind_guess",
    "calibrated_risk",
    "cci",
    "data_equivalence",
    "gain_end",
    "measure_spread",
    "measure_transfer",
    "rank_tasks",
    "win_rate",
    "win_rates",
]
