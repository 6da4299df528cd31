"""Train what is no network, and take what is raised for a failed run."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from curvewise.errors import CurvewiseError, MissingDependencyError, StoreError
from curvewise.nn.task import Trained
from curvewise.study.execute.assembling import failed

if TYPE_CHECKING:
    from curvewise.study.jobs import Job
    from curvewise.study.study import Study


def train_other(study: Study, job: Job) -> Trained:
    """Have an estimator or a command make a run."""
    if job.learner.kind == "estimator":
        from curvewise.study.estimating import fit_estimator

        return fit_estimator(study, job)
    from curvewise.study.commands import run_command

    return run_command(study, job)


def guarded(train: Callable[[], Trained], check: Callable[[BaseException], None]) -> Trained:
    """What raises is a failed run, with the reason; also what would end the process.

    An error is shown to ``check`` first, which may raise another.
    """
    try:
        return train()
    except (MissingDependencyError, StoreError):
        raise
    except CurvewiseError as error:
        return failed(str(error))
    except (Exception, SystemExit) as error:
        check(error)
        return failed("".join(traceback.format_exception(error)))
