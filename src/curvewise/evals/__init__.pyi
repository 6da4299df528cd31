from curvewise.evals.evals import Evals as Evals
from curvewise.evals.questions import QuestionScores as QuestionScores
from curvewise.evals.questions import question_scores as question_scores
