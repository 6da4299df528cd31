"""Make runs and keep them: subsets in, measurements out, each run on disk."""

from curvewise.nn.settings import Training
from curvewise.nn.task import Keep
from curvewise.study.corpus import measure_corpus
from curvewise.study.dataset import Dataset
from curvewise.study.datasets import load_dataset
from curvewise.study.design import Design
from curvewise.study.estimators import measure_learning_curve
from curvewise.study.evaluation import Evaluation
from curvewise.study.export import export_store
from curvewise.study.invariance import judge_invariance, measure_invariance
from curvewise.study.learner import Learner
from curvewise.study.plan import Plan
from curvewise.study.ranking import checkpoint_files, ranking_table
from curvewise.study.recipes import RECIPES, study_recipe
from curvewise.study.run import Run
from curvewise.study.status import Status
from curvewise.study.store import list_runs, read_run, write_run
from curvewise.study.study import Study
from curvewise.study.toml import load_study
from curvewise.study.transfer import transfer_risks
from curvewise.study.transfer_wins import study_win_rates
from curvewise.study.verify import verify_store

__all__ = [
    "RECIPES",
    "Dataset",
    "Design",
    "Evaluation",
    "Keep",
    "Learner",
    "Plan",
    "Run",
    "Status",
    "Study",
    "Training",
    "checkpoint_files",
    "export_store",
    "judge_invariance",
    "list_runs",
    "load_dataset",
    "load_study",
    "measure_corpus",
    "measure_invariance",
    "measure_learning_curve",
    "ranking_table",
    "read_run",
    "study_recipe",
    "study_win_rates",
    "transfer_risks",
    "verify_store",
    "write_run",
]
