from curvewise.evals.evals import Evals as Evals
from curvewise.evals.load import EvalsSurvey as EvalsSurvey
from curvewise.evals.load import load_evals as load_evals
from curvewise.evals.load import survey_evals as survey_evals
from curvewise.evals.questions import QuestionScores as QuestionScores
from curvewise.evals.questions import question_scores as question_scores
